/* The log of an agent, as it is written. */
import { useEffect, useRef, useState } from "preact/hooks";
import { events } from "../api";
import { clock, plain } from "../format";
import { go, href, useRoute } from "../route";
import { Card } from "../ui";
import { agentPath, LEVELS, type LogEntry } from "./agents";

const KEEP = 1000;

/* Follows it from the newest 200 entries; goes on behind the last one after a lost connection. */
function useLog(id: string, level: string): { entries: LogEntry[]; error: string } {
  const [state, set] = useState<{ entries: LogEntry[]; error: string }>({ entries: [], error: "" });
  useEffect(() => {
    const stopped = new AbortController();
    let last = 0;
    let fresh: LogEntry[] = [];
    let frame = 0;
    set({ entries: [], error: "" });
    const show = () => {
      frame = 0;
      const more = fresh;
      fresh = [];
      set((s) => ({ entries: [...s.entries, ...more].slice(-KEEP), error: "" }));
    };
    const follow = async () => {
      for (let wait = 500; !stopped.signal.aborted; wait = Math.min(wait * 2, 10000)) {
        try {
          for await (const e of events(`${agentPath(id)}/logs?level=${level}&limit=200${last ? `&after=${last}` : ""}`, stopped.signal)) {
            if (!e.data) continue;
            const entry = JSON.parse(e.data) as LogEntry;
            last = Math.max(last, entry.id);
            fresh.push(entry);
            frame ||= requestAnimationFrame(show);
            wait = 500;
          }
        } catch (e) {
          if (!stopped.signal.aborted) set((s) => ({ ...s, error: (e as Error).message }));
        }
        await new Promise((r) => setTimeout(r, wait));
      }
    };
    void follow();
    return () => {
      stopped.abort();
      cancelAnimationFrame(frame);
    };
  }, [id, level]);
  return state;
}

export default function AgentLog({ id }: { id: string }) {
  const { query } = useRoute();
  const level = query.get("level") ?? "info";
  const { entries, error } = useLog(id, level);
  const view = useRef<HTMLDivElement>(null);
  const atEnd = useRef(true);
  useEffect(() => {
    if (view.current && atEnd.current) view.current.scrollTop = view.current.scrollHeight;
  }, [entries]);
  const choose = (
    <select aria-label="Level" value={level} onChange={(e) => go(`${href("agents", id)}?level=${e.currentTarget.value}`, true)}>
      {LEVELS.map((l) => <option key={l} value={l}>{l === "debug" ? "all entries" : l === "error" ? "errors" : `${l} and above`}</option>)}
    </select>
  );
  return (
    <Card title="Log" actions={choose}>
      <div class="log agentlog" ref={view} tabIndex={0} role="log" aria-label="Log of the agent" onScroll={(e) => (atEnd.current = e.currentTarget.scrollHeight - e.currentTarget.scrollTop - e.currentTarget.clientHeight < 24)}>
        {entries.map((e) => (
          <div key={e.id} class={`line ${e.level}`}>
            <time dateTime={e.at}>{clock(e.at)}</time>
            <span class="level">{e.level}</span>
            <span class="text">{plain(e.message)}{e.data !== null && e.data !== undefined && <span class="dim"> {plain(JSON.stringify(e.data))}</span>}</span>
          </div>
        ))}
        {entries.length === 0 && <span class="dim">{error ? plain(error) : "Nothing of this level was logged yet."}</span>}
      </div>
    </Card>
  );
}
