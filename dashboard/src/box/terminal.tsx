/*
 * Terminals in tabs. A shell outlives the connection: after an interruption the terminal goes on at the byte where it was cut
 * off, and after a reload it shows again what the server still has.
 */
import { FitAddon } from "@xterm/addon-fit";
import { Terminal } from "@xterm/xterm";
import "@xterm/xterm/css/xterm.css";
import { useEffect, useRef, useState } from "preact/hooks";
import { boxPath, call, get } from "../api";
import type { TabProps } from "../pages/box";
import { theme } from "../theme";
import { Button, Icon } from "../ui";
import { allowStyles } from "./styles";

allowStyles();

interface Tab {
  key: number;
  pid: number; /* 0: not begun */
  ended?: string;
}

const COLORS = {
  dark: { background: "#0a0a0b", foreground: "#e4e4e7", cursor: "#22c55e", cursorAccent: "#0a0a0b", selectionBackground: "#3f3f46" },
  light: { background: "#ffffff", foreground: "#18181b", cursor: "#16a34a", cursorAccent: "#ffffff", selectionBackground: "#d4d4d8", black: "#18181b", brightBlack: "#52525b", white: "#52525b", brightWhite: "#18181b", yellow: "#a16207", brightYellow: "#854d0e", green: "#15803d", brightGreen: "#166534", cyan: "#0e7490", brightCyan: "#155e75" },
};

/* One connection after another to one process. */
class Wire {
  private socket?: WebSocket;
  private offset = 0;
  private wait = 250;
  private closed = false;
  private readonly queue: Uint8Array[] = [];
  private timer?: ReturnType<typeof setTimeout>;
  constructor(
    private readonly box: string,
    public pid: number,
    private readonly term: Terminal,
    private readonly on: { pid: (pid: number) => void; state: (s: "connecting" | "open" | "lost") => void; end: (text: string) => void },
  ) {
    this.open();
  }
  private open() {
    if (this.closed) return;
    const q = new URLSearchParams(this.pid ? { process: String(this.pid), offset: String(this.offset) } : { cols: String(this.term.cols), rows: String(this.term.rows), term: "xterm-256color" });
    const s = new WebSocket(`${location.protocol === "https:" ? "wss" : "ws"}://${location.host}${boxPath(this.box)}/terminal?${q}`);
    let ready = false;
    s.binaryType = "arraybuffer";
    s.onmessage = (e: MessageEvent<ArrayBuffer | string>) => {
      if (typeof e.data !== "string") {
        const piece = new Uint8Array(e.data);
        this.offset += piece.length;
        this.term.write(piece);
        return;
      }
      const m = JSON.parse(e.data) as { type: string; pid?: number; offset?: number; exit_code?: number; message?: string };
      if (m.type === "attached") {
        ready = true;
        this.wait = 250;
        this.pid = m.pid!;
        this.offset = m.offset!;
        this.on.pid(m.pid!);
        this.on.state("open");
        this.size();
        this.queue.splice(0).forEach((b) => s.send(b));
      } else {
        this.closed = true;
        this.on.end(m.type === "exit" ? `The shell has ended (${m.exit_code}).` : (m.message ?? "The terminal has ended."));
      }
    };
    s.onclose = () => {
      if (this.closed) return;
      this.on.state("lost");
      if (!ready && this.pid) void this.check();
      this.timer = setTimeout(() => this.open(), this.wait);
      this.wait = Math.min(this.wait * 2, 5000);
    };
    this.socket = s;
  }
  /* Whether there is still something to go back to. */
  private async check() {
    try {
      await get(`${boxPath(this.box)}/processes/${this.pid}`);
    } catch (e) {
      if ((e as { status?: number }).status !== 404) return;
      this.close();
      this.on.end("The shell has ended.");
    }
  }
  send(b: Uint8Array) {
    if (this.socket?.readyState === WebSocket.OPEN) this.socket.send(b);
    else if (!this.closed) this.queue.push(b);
  }
  size() {
    if (this.socket?.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify({ type: "resize", cols: this.term.cols, rows: this.term.rows }));
  }
  drop() {
    this.socket?.close();
  }
  close() {
    this.closed = true;
    clearTimeout(this.timer);
    this.socket?.close();
  }
}

function One({ box, tab, shown, onPid, onEnd }: { box: string; tab: Tab; shown: boolean; onPid: (pid: number) => void; onEnd: (text: string) => void }) {
  const host = useRef<HTMLDivElement>(null);
  const parts = useRef<{ term: Terminal; fit: FitAddon; wire: Wire }>();
  const [state, setState] = useState("connecting");
  const mode = theme.use();

  useEffect(() => {
    const term = new Terminal({
      fontFamily: "ui-monospace, SFMono-Regular, Menlo, Consolas, monospace",
      fontSize: 13,
      lineHeight: 1.2,
      cursorBlink: true,
      scrollback: 10000,
      theme: COLORS[mode],
      minimumContrastRatio: 4.5, // whatever colours a program chooses
      linkHandler: { activate: () => {} }, // a link that a program in the sandbox prints is text
    });
    const fit = new FitAddon();
    term.loadAddon(fit);
    term.open(host.current!);
    fit.fit();
    const wire = new Wire(box, tab.pid, term, { pid: onPid, state: setState, end: onEnd });
    const bytes = new TextEncoder();
    term.onData((d) => wire.send(bytes.encode(d)));
    term.onBinary((d) => wire.send(Uint8Array.from(d, (c) => c.charCodeAt(0))));
    term.onResize(() => wire.size());
    parts.current = { term, fit, wire };
    (host.current as HTMLDivElement & { paddock?: unknown }).paddock = { text: () => read(term), drop: () => wire.drop(), term };
    const watch = new ResizeObserver(() => host.current!.offsetWidth && fit.fit());
    watch.observe(host.current!);
    return () => {
      watch.disconnect();
      wire.close();
      setTimeout(() => term.dispose(), 1000); // it has work under way that does not know of its end
    };
  }, []);
  useEffect(() => {
    if (parts.current) parts.current.term.options.theme = COLORS[mode];
  }, [mode]);
  useEffect(() => {
    if (!shown || !parts.current) return;
    parts.current.fit.fit();
    parts.current.term.focus();
  }, [shown]);
  return (
    <div class="term" hidden={!shown}>
      <div class="term-host" ref={host} data-state={state} />
      {(tab.ended || state === "lost") && <div class="term-note" role="status">{tab.ended ?? "The connection is lost. Reconnecting…"}</div>}
    </div>
  );
}

/* For the tests: what the terminal shows and has shown. */
function read(term: Terminal): string {
  const b = term.buffer.active;
  const rows: string[] = [];
  for (let i = 0; i < b.length; i++) rows.push(b.getLine(i)?.translateToString(true) ?? "");
  return rows.join("\n").trimEnd();
}

const place = (box: string) => `terminals:${box}`;
function remember(box: string, tabs: Tab[]) {
  sessionStorage.setItem(place(box), JSON.stringify(tabs.filter((t) => t.pid && !t.ended).map((t) => t.pid)));
}

export default function Terminals({ box }: TabProps) {
  const [tabs, setTabs] = useState<Tab[] | null>(null);
  const [shown, setShown] = useState(0);
  const next = useRef(1);

  useEffect(() => {
    void (async () => {
      const kept = JSON.parse(sessionStorage.getItem(place(box.id)) ?? "[]") as number[];
      const alive = kept.length ? await get<{ processes: { pid: number; running: boolean; pty: boolean }[] }>(`${boxPath(box.id)}/processes`).catch(() => ({ processes: [] })) : { processes: [] };
      const pids = kept.filter((p) => alive.processes.some((a) => a.pid === p && a.running && a.pty));
      const first = (pids.length ? pids : [0]).map((pid) => ({ key: next.current++, pid }));
      setTabs(first);
      setShown(first[0]!.key);
    })();
  }, [box.id]);
  useEffect(() => {
    if (tabs) remember(box.id, tabs);
  }, [tabs]);

  const change = (key: number, more: Partial<Tab>) => setTabs((l) => l!.map((t) => (t.key === key ? { ...t, ...more } : t)));
  const add = () => {
    const t = { key: next.current++, pid: 0 };
    setTabs((l) => [...(l ?? []), t]);
    setShown(t.key);
  };
  const close = (t: Tab) => {
    if (t.pid && !t.ended) void call("DELETE", `${boxPath(box.id)}/processes/${t.pid}`).catch(() => {});
    const rest = tabs!.filter((x) => x.key !== t.key);
    setTabs(rest);
    if (shown === t.key && rest.length) setShown(rest.at(-1)!.key);
  };
  return (
    <div class="terminals">
      <div class="term-tabs">
        {tabs?.map((t, i) => (
          <div key={t.key} class={t.key === shown ? "term-tab on" : "term-tab"}>
            <button type="button" aria-pressed={t.key === shown} onClick={() => setShown(t.key)}>
              <Icon name="term" size={13} /> Shell {i + 1}
            </button>
            <button type="button" aria-label={`Close shell ${i + 1}`} onClick={() => close(t)}>
              <Icon name="x" size={12} />
            </button>
          </div>
        ))}
        <Button small kind="ghost" icon="plus" label="New terminal" onClick={add} />
      </div>
      <div class="term-area">
        {tabs?.map((t) => (
          <One key={t.key} box={box.id} tab={t} shown={t.key === shown} onPid={(pid) => change(t.key, { pid })} onEnd={(ended) => change(t.key, { ended })} />
        ))}
        {tabs?.length === 0 && (
          <div class="empty">
            <Button icon="plus" onClick={add}>New terminal</Button>
          </div>
        )}
      </div>
    </div>
  );
}
