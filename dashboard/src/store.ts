/* What several pages show and the server tells live: sandboxes, events, and the figures of the charts. */
import { useEffect, useState } from "preact/hooks";
import { ApiError, type Box, boxPath, type Event, events, get, HEADERS, type Who } from "./api";

export class Cell<T> {
  private readonly readers = new Set<() => void>();
  constructor(public value: T) {}
  set(value: T) {
    this.value = value;
    this.readers.forEach((f) => f());
  }
  use(): T {
    const [, again] = useState(0);
    useEffect(() => {
      const f = () => again((n) => n + 1);
      this.readers.add(f);
      f();
      return () => void this.readers.delete(f);
    }, []);
    return this.value;
  }
}

export const who = new Cell<Who | null>(null);
export const boxes = new Cell<{ list: Box[]; ready: boolean; error: string }>({ list: [], ready: false, error: "" });
export const live = new Cell<boolean>(false);
export const recent = new Cell<Event[]>([]);
/* Told of every event, and (null) when the stream was opened and something may have been missed. */
export const watchers = new Set<(e: Event | null, signal: AbortSignal) => void>();
export const toasts = new Cell<{ id: number; text: string; bad: boolean }[]>([]);

let toastId = 0;
export function toast(text: string, bad = false) {
  const id = ++toastId;
  toasts.set([...toasts.value.slice(-3), { id, text, bad }]);
  setTimeout(() => toasts.set(toasts.value.filter((t) => t.id !== id)), bad ? 8000 : 3500);
}

/* Runs it and says what went wrong. */
export async function attempt<T>(what: () => Promise<T>, done?: string): Promise<T | undefined> {
  try {
    const value = await what();
    if (done) toast(done);
    return value;
  } catch (e) {
    toast((e as Error).message, true);
    return undefined;
  }
}

const newest = (a: Box, b: Box) => (a.created_at < b.created_at ? 1 : a.created_at > b.created_at ? -1 : a.id < b.id ? 1 : -1);

interface BoxesPage {
  sandboxes: Box[];
  next: string | null;
}
const FIRST = "/v1/sandboxes?limit=1000";

/* Who was signed in a moment ago most likely still is: the list is asked for together with the session. */
const HINT = "signed-in";
let early = sessionStorage.getItem(HINT) ? fetch(FIRST, { headers: HEADERS, cache: "no-store" }).then((r) => (r.ok ? (r.json() as Promise<BoxesPage>) : null), () => null) : null;

export async function loadBoxes(signal?: AbortSignal) {
  const list: Box[] = [];
  try {
    let page = await early;
    early = null;
    page ??= await get<BoxesPage>(FIRST, signal);
    list.push(...page.sandboxes);
    while (page.next) {
      if (!boxes.value.ready) boxes.set({ list: [...list].sort(newest), ready: true, error: "" });
      page = await get<BoxesPage>(`${FIRST}&cursor=${encodeURIComponent(page.next)}`, signal);
      list.push(...page.sandboxes);
    }
    if (signal?.aborted) return;
    boxes.set({ list: list.sort(newest), ready: true, error: "" });
  } catch (e) {
    if (!signal?.aborted) boxes.set({ ...boxes.value, error: (e as Error).message });
  }
}

export function putBox(b: Box) {
  const list = boxes.value.list.filter((x) => x.id !== b.id);
  list.push(b);
  boxes.set({ list: list.sort(newest), ready: true, error: "" });
}

export function dropBox(id: string) {
  boxes.set({ ...boxes.value, list: boxes.value.list.filter((x) => x.id !== id) });
}

const stale = new Set<string>();
let timer: ReturnType<typeof setTimeout> | undefined;

/* Many events at once become few requests. */
function refresh(id: string, signal: AbortSignal) {
  stale.add(id);
  timer ??= setTimeout(async () => {
    timer = undefined;
    const ids = [...stale];
    stale.clear();
    if (ids.length > 12) return loadBoxes(signal);
    await Promise.all(
      ids.map(async (one) => {
        try {
          putBox(await get<Box>(boxPath(one), signal));
        } catch (e) {
          if (e instanceof ApiError && e.status === 404) dropBox(one);
        }
      }),
    );
  }, 60);
}

function take(e: Event, signal: AbortSignal) {
  recent.set([e, ...recent.value].slice(0, 200));
  watchers.forEach((f) => f(e, signal));
  if (e.type.startsWith("transaction.")) return; // of an agent, which is no sandbox
  if (e.type === "deleted" || (e.type === "expired" && e.data.action === "delete")) dropBox(e.sandbox);
  else if (!e.type.startsWith("ai.")) refresh(e.sandbox, signal);
}

async function follow(signal: AbortSignal) {
  let last: string | undefined;
  let again: ReturnType<typeof setTimeout> | undefined;
  let wait = 500;
  while (!signal.aborted) {
    try {
      for await (const e of events("/v1/events", signal, last)) {
        if (e.id) last = e.id;
        if (e.type === "open" || e.type === "lost") {
          live.set(true);
          wait = 500;
          clearTimeout(again);
          watchers.forEach((f) => f(null, signal));
          again = setTimeout(() => loadBoxes(signal), last || e.type === "lost" ? 0 : 400); // the first list is on its way
        } else take(JSON.parse(e.data) as Event, signal);
      }
    } catch {
      /* again, below */
    }
    if (signal.aborted) return;
    live.set(false);
    await new Promise((r) => setTimeout(r, wait));
    wait = Math.min(wait * 2, 10000);
  }
}

/* ---- figures ---- */

export interface Sample {
  at: number;
  running: number;
  paused: number;
  stopped: number;
  creates: number;
  execs: number;
  failures: number;
  denied: number;
  allowed: number;
  createCount: number;
  buckets: [number, number][];
  cpu: number | null;
  memory: number | null;
}

export const samples = new Cell<Sample[]>([]);
export const SAMPLE_MS = 2000;
const KEEP = 450;

function readMetrics(text: string): Map<string, number> {
  const found = new Map<string, number>();
  for (const line of text.split("\n")) {
    if (!line || line[0] === "#") continue;
    const at = line.lastIndexOf(" ");
    found.set(line.slice(0, at), Number(line.slice(at + 1)));
  }
  return found;
}

export interface Load {
  id: string;
  cpu: number;
  memory_bytes: number;
}
export const loads = new Cell<Map<string, Load>>(new Map());

async function sample(admin: boolean, signal: AbortSignal) {
  const load = await get<{ sandboxes: Load[] }>("/dashboard/load", signal).catch(() => null);
  if (load) loads.set(new Map(load.sandboxes.map((l) => [l.id, l])));
  const r = admin ? await fetch("/metrics", { headers: { "X-Paddock-Dashboard": "1" }, signal }) : null;
  const m = r?.ok ? readMetrics(await r.text()) : new Map<string, number>();
  const n = (name: string) => m.get(name) ?? 0;
  const of = (status: string) =>
    admin ? n(`paddock_sandboxes{status="${status}"}`) : boxes.value.list.filter((b) => b.status === status).length;
  const buckets: [number, number][] = [];
  for (const [k, v] of m) {
    const le = /^paddock_sandbox_create_seconds_bucket\{le="([^"]+)"\}$/.exec(k);
    if (le) buckets.push([le[1] === "+Inf" ? Infinity : Number(le[1]), v]);
  }
  const one: Sample = {
    at: Date.now() / 1000,
    running: of("running"),
    paused: of("paused"),
    stopped: of("stopped"),
    creates: n("paddock_sandbox_creates_total"),
    execs: n("paddock_execs_total"),
    failures: n("paddock_sandbox_create_failures_total"),
    denied: n("paddock_egress_denied_total"),
    allowed: n("paddock_egress_allowed_total"),
    createCount: n("paddock_sandbox_create_seconds_count"),
    buckets,
    cpu: load ? load.sandboxes.reduce((s, l) => s + l.cpu, 0) : null,
    memory: load ? load.sandboxes.reduce((s, l) => s + l.memory_bytes, 0) : null,
  };
  samples.set([...samples.value.slice(-KEEP), one]);
}

interface Past {
  bounds: number[];
  samples: { at_ms: number; running: number; paused: number; stopped: number; creates: number; failures: number; execs: number; allowed: number; denied: number; buckets: number[]; cpu: number; memory_bytes: number }[];
}

/* What the server has seen before this page did, so that charts begin full. */
async function remember(signal: AbortSignal) {
  const past = await get<Past>("/dashboard/trend", signal);
  samples.set(
    past.samples.map(({ at_ms, memory_bytes, buckets, ...s }) => ({
      ...s,
      at: at_ms / 1000,
      memory: memory_bytes,
      createCount: s.creates - s.failures,
      buckets: [...buckets.map((n, i): [number, number] => [past.bounds[i]!, n]), [Infinity, s.creates - s.failures]],
    })),
  );
}

async function measure(admin: boolean, signal: AbortSignal) {
  let away = true;
  while (!signal.aborted) {
    if (document.hidden) away = true;
    else {
      if (away && admin) await remember(signal).catch(() => {});
      away = false;
      await sample(admin, signal).catch(() => {});
    }
    await new Promise((r) => setTimeout(r, SAMPLE_MS));
  }
}

let running: AbortController | undefined;
export function start(admin: boolean) {
  stop();
  running = new AbortController();
  sessionStorage.setItem(HINT, "1");
  void loadBoxes(running.signal);
  void follow(running.signal);
  void measure(admin, running.signal);
}
export function stop() {
  running?.abort();
  running = undefined;
  boxes.set({ list: [], ready: false, error: "" });
  samples.set([]);
  recent.set([]);
  live.set(false);
}

/* ---- loading ---- */

export interface Loaded<T> {
  data: T | undefined;
  error: string;
  missing: boolean; /* the error is that this server has no such thing */
  loading: boolean;
  reload: () => void;
}

/* Loads now, when `path` changes, and every so often; what was shown stays while it loads. null: nothing. */
export function useLoad<T>(path: string | null, everyMs = 0): Loaded<T> {
  const [state, set] = useState<{ path: string | null; data?: T; error: string; missing?: boolean }>({ path: null, error: "" });
  const [turn, again] = useState(0);
  useEffect(() => {
    if (path === null) return;
    const stopped = new AbortController();
    let t: ReturnType<typeof setTimeout> | undefined;
    const load = async () => {
      try {
        if (!document.hidden || everyMs === 0) {
          const data = await get<T>(path, stopped.signal);
          set({ path, data, error: "" });
        }
      } catch (e) {
        if (stopped.signal.aborted) return;
        set((s) => ({ path, data: s.path === path ? s.data : undefined, error: (e as Error).message, missing: e instanceof ApiError && e.status === 501 }));
      }
      if (everyMs && !stopped.signal.aborted) t = setTimeout(load, everyMs);
    };
    void load();
    return () => {
      stopped.abort();
      clearTimeout(t);
    };
  }, [path, everyMs, turn]);
  const mine = state.path === path;
  return {
    data: mine ? state.data : undefined,
    error: mine ? state.error : "",
    missing: mine && state.missing === true,
    loading: path !== null && (!mine || (state.data === undefined && !state.error)),
    reload: () => again((n) => n + 1),
  };
}
