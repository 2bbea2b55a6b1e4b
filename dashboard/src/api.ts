/* Requests to the REST API, with the session's cookie. The header is what a page of another origin cannot send. */

export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
  ) {
    super(message);
  }
}

export interface Who {
  signed_in: boolean;
  role?: "admin" | "user";
  tenant?: string;
  key?: string;
  version: string;
  session_seconds: number;
}

export interface Limits {
  cpu: number;
  memory_mb: number;
  pids: number;
  nofile: number;
  disk_mb?: number;
}

export type Status = "creating" | "running" | "paused" | "stopped" | "deleting";

export interface Box {
  id: string;
  name: string | null;
  status: Status;
  image: string;
  backend: string;
  tenant: string;
  user: string;
  workdir: string;
  created_at: string;
  expires_at: string | null;
  idle_seconds: number;
  on_end: string;
  snapshot: string | null;
  workspace: { name: string; mode: string } | null;
  limits: Limits;
  disk: { used_bytes: number | null; limit_mb: number | null };
  secrets: { name: string; env: string | null; file: string | null }[];
  ports_public: boolean;
  metadata: Record<string, string>;
}

export interface Event {
  id: number;
  type: string;
  at: string;
  sandbox: string;
  tenant: string;
  data: Record<string, unknown>;
}

const signedOut = new Set<() => void>();
export function onSignedOut(f: () => void) {
  signedOut.add(f);
  return () => void signedOut.delete(f);
}

export const HEADERS = { "X-Paddock-Dashboard": "1" };

async function refuse(r: Response): Promise<never> {
  let code = "error";
  let message = `The server answered ${r.status}.`;
  try {
    const d = await r.json();
    if (d.reasons) message = d.reasons.join(", "); // of /readyz
    code = d.error.code;
    message = d.error.message;
  } catch {
    /* not ours */
  }
  if (r.status === 401) signedOut.forEach((f) => f());
  throw new ApiError(r.status, code, message);
}

export async function send(path: string, init: RequestInit = {}): Promise<Response> {
  let r: Response;
  try {
    r = await fetch(path, { ...init, headers: { ...HEADERS, ...init.headers }, cache: "no-store" });
  } catch (e) {
    if ((e as Error).name === "AbortError") throw e;
    throw new ApiError(0, "unreachable", "The server cannot be reached. Is the daemon running?");
  }
  return r.ok ? r : refuse(r);
}

export async function get<T>(path: string, signal?: AbortSignal): Promise<T> {
  return (await send(path, { signal, headers: { Accept: "application/json" } })).json();
}

export async function call<T = unknown>(method: string, path: string, body?: unknown): Promise<T> {
  const r = await send(path, {
    method,
    headers: body === undefined ? {} : { "Content-Type": "application/json" },
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  const text = await r.text();
  return (text ? JSON.parse(text) : undefined) as T;
}

/* The pieces of an answer that is a stream of lines. */
export async function* lines(r: Response): AsyncGenerator<string> {
  const reader = r.body!.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      rest += value;
      let at: number;
      while ((at = rest.indexOf("\n")) >= 0) {
        yield rest.slice(0, at);
        rest = rest.slice(at + 1);
      }
    }
    if (rest) yield rest;
  } finally {
    void reader.cancel().catch(() => {});
  }
}

export interface Sse {
  id: string;
  type: string;
  data: string;
}

/* Server-Sent Events by fetch: EventSource cannot send the header. */
export async function* events(path: string, signal: AbortSignal, last?: string): AsyncGenerator<Sse> {
  const headers: Record<string, string> = { Accept: "text/event-stream" };
  if (last) headers["Last-Event-ID"] = last;
  const r = await send(path, { signal, headers });
  let one: Sse = { id: "", type: "message", data: "" };
  yield { id: last ?? "", type: "open", data: "" };
  for await (const line of lines(r)) {
    if (line === "") {
      if (one.data || one.type !== "message") yield one;
      one = { id: one.id, type: "message", data: "" };
    } else if (line.startsWith("id:")) one.id = line.slice(3).trim();
    else if (line.startsWith("event:")) one.type = line.slice(6).trim();
    else if (line.startsWith("data:")) one.data += (one.data ? "\n" : "") + line.slice(5).trimStart();
  }
}

export const enc = (path: string) => path.split("/").map(encodeURIComponent).join("/");
export const boxPath = (id: string) => `/v1/sandboxes/${encodeURIComponent(id)}`;
export const filePath = (id: string, path: string) => `${boxPath(id)}/files${enc(path.startsWith("/") ? path : "/" + path)}`;
