/*
 * Code cells. Results come from the sandbox and are never part of this page: pictures are images (scripts in an SVG do not
 * run there), HTML is shown in a frame of its own that may do nothing, and everything else is text.
 */
import { useEffect, useRef, useState } from "preact/hooks";
import { boxPath, lines, send } from "../api";
import { Editor } from "../editor";
import { plain } from "../format";
import type { TabProps } from "../pages/box";
import { Button } from "../ui";

interface Result {
  text?: string;
  html?: string;
  markdown?: string;
  latex?: string;
  svg?: string;
  png?: string;
  jpeg?: string;
  json?: unknown;
  truncated?: boolean;
}
type Output = { kind: "stdout" | "stderr"; text: string } | { kind: "result"; result: Result } | { kind: "error"; name: string; value: string; traceback: string };
interface Cell {
  id: number;
  language: string;
  code: string;
  outputs: Output[];
  state: "idle" | "running" | "done";
  count?: number;
  ms?: number;
}

const LANGUAGES = ["python", "javascript", "typescript", "bash", "r", "java"];
const FILES: Record<string, string> = { python: "a.py", javascript: "a.js", typescript: "a.ts", bash: "a.sh", r: "a.r", java: "a.java" };
const FIRST = "import sys\nprint(sys.version)";

const b64 = (s: string) => {
  let bin = "";
  new TextEncoder().encode(s).forEach((b) => (bin += String.fromCharCode(b)));
  return btoa(bin);
};

function Rich({ r }: { r: Result }) {
  if (r.png) return <img src={`data:image/png;base64,${r.png}`} alt="Chart" />;
  if (r.jpeg) return <img src={`data:image/jpeg;base64,${r.jpeg}`} alt="Picture" />;
  if (r.svg) return <img src={`data:image/svg+xml;base64,${b64(r.svg)}`} alt="Drawing" />;
  if (r.html) return <iframe class="rich" sandbox="" srcdoc={r.html} title="HTML result" referrerpolicy="no-referrer" />;
  if (r.json !== undefined && r.text === undefined) return <pre>{plain(JSON.stringify(r.json, null, 2))}</pre>;
  return <pre>{plain(r.text ?? r.markdown ?? r.latex ?? "")}</pre>;
}

/* Colours and cursor movements of a traceback are not for a page. */
const bare = (s: string) => plain(s.replace(/\u001b\[[0-9;?]*[ -/]*[@-~]/g, ""));

function Outputs({ list }: { list: Output[] }) {
  return (
    <div class="outputs">
      {list.map((o, i) =>
        o.kind === "result" ? (
          <div key={i} class="out result"><Rich r={o.result} /></div>
        ) : o.kind === "error" ? (
          <pre key={i} class="out error">{bare(o.traceback || `${o.name}: ${o.value}`)}</pre>
        ) : (
          <pre key={i} class={`out ${o.kind}`}>{bare(o.text)}</pre>
        ),
      )}
    </div>
  );
}

function add(list: Output[], o: Output): Output[] {
  const last = list.at(-1);
  if (last && (o.kind === "stdout" || o.kind === "stderr") && last.kind === o.kind) return [...list.slice(0, -1), { kind: o.kind, text: last.text + o.text }];
  return [...list, o];
}

const unpack = (e: { data: string; encoding?: string }) => (e.encoding === "base64" ? new TextDecoder().decode(Uint8Array.from(atob(e.data), (c) => c.charCodeAt(0))) : e.data);

export default function Code({ box }: TabProps) {
  const place = `cells:${box.id}`;
  const [cells, setCells] = useState<Cell[]>(() => {
    const kept = JSON.parse(sessionStorage.getItem(place) ?? "null") as { language: string; code: string }[] | null;
    return (kept ?? [{ language: "python", code: FIRST }]).map((c, i) => ({ id: i, ...c, outputs: [], state: "idle" }));
  });
  const next = useRef(cells.length);
  useEffect(() => sessionStorage.setItem(place, JSON.stringify(cells.map(({ language, code }) => ({ language, code })))), [cells]);

  const change = (id: number, more: (c: Cell) => Partial<Cell>) => setCells((l) => l.map((c) => (c.id === id ? { ...c, ...more(c) } : c)));
  const append = (language = cells.at(-1)?.language ?? "python") => {
    const id = next.current++;
    setCells((l) => [...l, { id, language, code: "", outputs: [], state: "idle" }]);
  };
  const run = async (cell: Cell) => {
    change(cell.id, () => ({ outputs: [], state: "running" }));
    const put = (o: Output) => change(cell.id, (c) => ({ outputs: add(c.outputs, o) }));
    try {
      const r = await send(`${boxPath(box.id)}/execute`, { method: "POST", headers: { "Content-Type": "application/json", Accept: "application/x-ndjson" }, body: JSON.stringify({ code: cell.code, language: cell.language }) });
      for await (const line of lines(r)) {
        if (!line.trim()) continue;
        const e = JSON.parse(line);
        if (e.type === "stdout" || e.type === "stderr") put({ kind: e.type, text: unpack(e) });
        else if (e.type === "result") put({ kind: "result", result: e });
        else if (e.type === "error") put({ kind: "error", name: e.name ?? e.code, value: e.value ?? e.message, traceback: e.traceback ?? "" });
        else if (e.type === "end") change(cell.id, () => ({ count: e.execution_count, ms: e.duration_ms }));
      }
    } catch (e) {
      put({ kind: "error", name: "Error", value: (e as Error).message, traceback: "" });
    }
    change(cell.id, () => ({ state: "done" }));
  };
  return (
    <div class="cells">
      {cells.map((c, i) => (
        <section key={c.id} class="cell" aria-label={`Cell ${i + 1}`} data-state={c.state}>
          <div class="cell-head">
            <Button small kind="primary" icon="play" busy={c.state === "running"} onClick={() => run(c)} label={`Run cell ${i + 1}`} />
            <select aria-label={`Language of cell ${i + 1}`} value={c.language} onChange={(e) => change(c.id, () => ({ language: e.currentTarget.value }))}>
              {LANGUAGES.map((l) => <option key={l}>{l}</option>)}
            </select>
            <span class="dim">{c.count !== undefined && `[${c.count}]`} {c.ms !== undefined && `${Math.round(c.ms)} ms`}</span>
            <span class="grow" />
            <Button small kind="ghost" icon="x" label={`Remove cell ${i + 1}`} onClick={() => setCells((l) => l.filter((x) => x.id !== c.id))} />
          </div>
          <Editor fit value={c.code} name={FILES[c.language] ?? ""} label={`Code of cell ${i + 1}`} onInput={(code) => change(c.id, () => ({ code }))} onKeyDown={(e) => { if (e.key === "Enter" && (e.ctrlKey || e.metaKey || e.shiftKey)) { e.preventDefault(); void run(c); } }} />
          {c.outputs.length > 0 && <Outputs list={c.outputs} />}
        </section>
      ))}
      <div class="actions">
        <Button icon="plus" onClick={() => append()}>Add a cell</Button>
        <span class="dim">Shift + Enter runs a cell. Variables stay between cells of one language.</span>
      </div>
    </div>
  );
}
