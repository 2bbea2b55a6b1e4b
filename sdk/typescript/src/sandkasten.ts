// The classes of @sandkasten/client, for programs that were written for it: only the import changes.

import { variable } from './config.js';
import { sentEventsOf } from './stream.js';
import { fetchTransport } from './transport.js';

export interface SandboxClientOptions {
  baseUrl: string;
  /** `PADDOCK_API_KEY` if it is absent. */
  apiKey?: string;
}
export interface CreateSessionOptions {
  image?: string;
  ttlSeconds?: number;
  workspaceId?: string;
}
export interface SessionInfo {
  id: string;
  image: string;
  status: string;
  cwd: string;
  created_at: string;
  expires_at: string;
  workspace_id?: string;
  last_activity?: string;
}
export interface ExecResult {
  exit_code: number;
  cwd: string;
  /** stdout and stderr together. */
  output: string;
  truncated: boolean;
  duration_ms: number;
}
export interface ReadResult {
  path: string;
  content_base64: string;
  truncated: boolean;
}
export interface WorkspaceInfo {
  id: string;
  created_at?: string;
  session_count?: number;
  active_session_count?: number;
}
export interface ExecChunk {
  output: string;
  timestamp: number;
  exit_code?: number;
  cwd?: string;
  duration_ms?: number;
  done: boolean;
}
export interface ExecOptions {
  timeoutMs?: number;
  rawOutput?: boolean;
}

/** An error of the server. */
export class SandkastenError extends Error {
  constructor(message: string, readonly status: number, readonly code: string | undefined) {
    super(message);
    this.name = 'SandkastenError';
  }
}

interface Init {
  method?: string;
  body?: string;
  headers?: Record<string, string>;
}

export class SandboxClient {
  private readonly baseUrl: string;
  private readonly apiKey: string | undefined;

  constructor(options: SandboxClientOptions) {
    this.baseUrl = options.baseUrl.replace(/\/+$/, '');
    this.apiKey = options.apiKey ?? variable('PADDOCK_API_KEY');
  }

  async createSession(options: CreateSessionOptions = {}): Promise<Session> {
    const body = JSON.stringify({ image: options.image, ttl_seconds: options.ttlSeconds, workspace_id: options.workspaceId });
    const { id } = await this.json<SessionInfo>('/v1/sessions', { method: 'POST', body });
    return new Session(id, this);
  }
  getSession(id: string): Promise<SessionInfo> {
    return this.json(`/v1/sessions/${encodeURIComponent(id)}`);
  }
  async listSessions(): Promise<SessionInfo[]> {
    const told = await this.json<SessionInfo[] | { sessions?: SessionInfo[] }>('/v1/sessions');
    return Array.isArray(told) ? told : told.sessions ?? [];
  }
  /** The main address of Paddock answers in its own form, in which a workspace has a name besides its id. */
  async listWorkspaces(): Promise<WorkspaceInfo[]> {
    const { workspaces } = await this.json<{ workspaces?: Array<WorkspaceInfo & { name?: string }> }>('/v1/workspaces');
    return (workspaces ?? []).map(({ id, name, created_at }) => ({ id: name ?? id, ...(created_at ? { created_at } : {}) }));
  }
  async deleteWorkspace(id: string): Promise<void> {
    await this.fetch(`/v1/workspaces/${encodeURIComponent(id)}`, { method: 'DELETE' });
  }

  /** @internal */
  async json<T>(path: string, init?: Init): Promise<T> {
    return (await (await this.fetch(path, init)).json()) as T;
  }
  /** @internal */
  async fetch(path: string, init: Init = {}): Promise<Response> {
    const headers: Record<string, string> = { 'content-type': 'application/json', ...init.headers };
    if (this.apiKey) headers['authorization'] = `Bearer ${this.apiKey}`;
    const response = await globalThis.fetch(this.baseUrl + path, { ...init, headers });
    if (response.ok) return response;
    const text = await response.text();
    let code: string | undefined;
    try {
      code = (JSON.parse(text) as { error_code?: string }).error_code;
    } catch {
      // Not JSON: the text says what there is to say.
    }
    throw new SandkastenError(`sandkasten: ${response.status} ${response.statusText} - ${text}`, response.status, code);
  }
}

export class Session {
  constructor(readonly id: string, private readonly client: SandboxClient) {}

  private at(rest = ''): string {
    return `/v1/sessions/${encodeURIComponent(this.id)}${rest}`;
  }
  private command(cmd: string, options: ExecOptions): string {
    return JSON.stringify({ cmd, timeout_ms: options.timeoutMs, raw_output: options.rawOutput });
  }
  exec(cmd: string, options: ExecOptions = {}): Promise<ExecResult> {
    return this.client.json(this.at('/exec'), { method: 'POST', body: this.command(cmd, options) });
  }
  /** The output as it comes; the last chunk is `done` and has the exit code. */
  async *execStream(cmd: string, options: ExecOptions = {}): AsyncGenerator<ExecChunk, void> {
    const response = await this.client.fetch(this.at('/exec/stream'), { method: 'POST', body: this.command(cmd, options) });
    const answer = await fetchTransport(async () => response)({ method: 'POST', url: response.url, headers: {} });
    for await (const { event, data } of sentEventsOf(answer)) {
      const told = JSON.parse(data) as { chunk?: string; timestamp?: number; error?: string; exit_code?: number; cwd?: string; duration_ms?: number };
      if (event === 'chunk') yield { output: told.chunk ?? '', timestamp: told.timestamp ?? Date.now(), done: false };
      else if (event === 'error') throw new SandkastenError(told.error ?? 'the stream failed', response.status, undefined);
      else if (event === 'done') {
        const { exit_code = 0, cwd = '', duration_ms = 0 } = told;
        yield { output: '', timestamp: Date.now(), exit_code, cwd, duration_ms, done: true };
        return;
      }
    }
    throw new SandkastenError('the stream ended before the command did', response.status, undefined);
  }
  async write(path: string, content: string | Uint8Array): Promise<void> {
    const body = typeof content === 'string' ? { path, text: content } : { path, content_base64: encoded(content) };
    await this.client.fetch(this.at('/fs/write'), { method: 'POST', body: JSON.stringify(body) });
  }
  async read(path: string, options: { maxBytes?: number } = {}): Promise<Uint8Array> {
    const query = new URLSearchParams({ path, ...(options.maxBytes ? { max_bytes: String(options.maxBytes) } : {}) });
    const { content_base64 } = await this.client.json<ReadResult>(this.at(`/fs/read?${query}`));
    return Uint8Array.from(atob(content_base64), (c) => c.charCodeAt(0));
  }
  async readText(path: string, options: { maxBytes?: number } = {}): Promise<string> {
    return new TextDecoder().decode(await this.read(path, options));
  }
  async writeText(path: string, text: string): Promise<void> {
    await this.write(path, text);
  }
  info(): Promise<SessionInfo> {
    return this.client.getSession(this.id);
  }
  async destroy(): Promise<void> {
    await this.client.fetch(this.at(), { method: 'DELETE' });
  }
}

function encoded(bytes: Uint8Array): string {
  let text = '';
  for (const byte of bytes) text += String.fromCharCode(byte);
  return btoa(text);
}
