// The classes of @agentbox/client, for programs that were written for it: only the import changes. The calls go over
// Connect with JSON, which the server speaks beside gRPC and gRPC-Web, so that no protobuf library is needed.

import { variable } from './config.js';
import { joined } from './frames.js';
import { piecesOf } from './transport.js';

const SERVICE = '/sandbox.v1.SandboxService/';

export interface SandboxOptions {
  sessionId?: string;
  tenantId?: string;
  /** Hosts that the sandbox may reach. An empty list, and none, mean the defaults: package registries and GitHub. */
  allowedHosts?: string[];
}
export interface ExecOptions {
  /** Seconds; 30 if it is absent. */
  timeout?: number;
  workdir?: string;
}
export interface SessionInfo {
  sessionId: string;
  containerId: string;
  /** Seconds since 1970. */
  createdAt: number;
  lastActivity: number;
  status: string;
  tenantId?: string;
  allowedHosts: string[];
}
export interface ExecResponse {
  exitCode: number;
  stdout: string;
  stderr: string;
  timedOut: boolean;
}
export interface ExecStreamResponse {
  type: 'stdout' | 'stderr' | 'exit' | 'error';
  data: string;
  exitCode?: number;
}
export interface ClientOptions {
  /** A key of Paddock's; `PADDOCK_API_KEY` if it is absent. The listener of `--agentbox-env` needs none. */
  apiKey?: string;
}

/** An error of the server, with the name of its gRPC status (`not_found`). */
export class AgentboxError extends Error {
  constructor(message: string, readonly code: string) {
    super(message);
    this.name = 'AgentboxError';
  }
}

/** JSON of protobuf leaves out what has its default. */
const EXEC: ExecResponse = { exitCode: 0, stdout: '', stderr: '', timedOut: false };
const SESSION: SessionInfo = { sessionId: '', containerId: '', createdAt: 0, lastActivity: 0, status: '', allowedHosts: [] };

interface Failure {
  code?: string;
  message?: string;
}

export class Sandbox {
  private readonly baseUrl: string;
  private readonly apiKey: string | undefined;
  private session: SessionInfo | null = null;

  constructor(baseUrl = 'http://localhost:50051', options: ClientOptions = {}) {
    this.baseUrl = baseUrl.replace(/\/+$/, '');
    this.apiKey = options.apiKey ?? variable('PADDOCK_API_KEY');
  }

  get sessionId(): string | null {
    return this.session?.sessionId ?? null;
  }
  get allowedHosts(): string[] {
    return [...(this.session?.allowedHosts ?? [])];
  }
  get networkEnabled(): boolean {
    return this.allowedHosts.length > 0;
  }

  private post(method: string, type: string, body: string | Uint8Array): Promise<Response> {
    const headers: Record<string, string> = { 'content-type': type, 'connect-protocol-version': '1' };
    if (this.apiKey) headers['authorization'] = `Bearer ${this.apiKey}`;
    return globalThis.fetch(this.baseUrl + SERVICE + method, { method: 'POST', headers, body: body as BodyInit });
  }
  private async call<T>(method: string, message: object): Promise<T> {
    const response = await this.post(method, 'application/json', JSON.stringify(message));
    const told = (await response.json()) as T & Failure;
    if (!response.ok) throw new AgentboxError(told.message ?? `the server answered ${response.status}`, told.code ?? 'unknown');
    return told;
  }
  /** A stream of Connect: a byte of flags, four of length, then JSON. The last one has the flag 2 and may tell an error. */
  private async *stream<T extends object>(method: string, message: object): AsyncGenerator<T, void> {
    const text = new TextEncoder().encode(JSON.stringify(message)), head = new Uint8Array(5);
    new DataView(head.buffer).setUint32(1, text.length);
    const response = await this.post(method, 'application/connect+json', joined([head, text]));
    if (!response.ok || !response.body) throw new AgentboxError(`the server answered ${response.status}`, 'unknown');
    let rest: Uint8Array = new Uint8Array(0);
    for await (const piece of piecesOf(response.body)) {
      rest = joined([rest, piece]);
      while (rest.length >= 5) {
        const size = new DataView(rest.buffer, rest.byteOffset).getUint32(1);
        if (rest.length < 5 + size) break;
        const told = JSON.parse(new TextDecoder().decode(rest.subarray(5, 5 + size))) as T & { error?: Failure };
        const last = (rest[0]! & 2) !== 0;
        rest = rest.slice(5 + size);
        if (!last) yield told as Awaited<T>;
        else if (told.error) throw new AgentboxError(told.error.message ?? 'the stream failed', told.error.code ?? 'unknown');
        else return;
      }
    }
    throw new AgentboxError('the stream ended before the command did', 'unavailable');
  }
  private get id(): string {
    if (!this.session) throw new Error('No active session. Call create() first.');
    return this.session.sessionId;
  }

  async create(options: SandboxOptions = {}): Promise<SessionInfo> {
    const { session } = await this.call<{ session?: Partial<SessionInfo> }>('CreateSession', options);
    this.session = { ...SESSION, ...session };
    return { ...this.session };
  }
  async destroy(): Promise<boolean> {
    if (!this.session) return false;
    const { success } = await this.call<{ success?: boolean }>('DestroySession', { sessionId: this.id });
    this.session = null;
    return success ?? false;
  }
  /** The session as the server sees it now. */
  async info(): Promise<SessionInfo> {
    const { session } = await this.call<{ session?: Partial<SessionInfo> }>('GetSession', { sessionId: this.id });
    return { ...SESSION, ...session };
  }
  /** All sessions of the key's tenant. */
  async list(): Promise<SessionInfo[]> {
    const { sessions } = await this.call<{ sessions?: Array<Partial<SessionInfo>> }>('ListSessions', {});
    return (sessions ?? []).map((one) => ({ ...SESSION, ...one }));
  }
  async exec(command: string, options: ExecOptions = {}): Promise<ExecResponse> {
    const { timeout = 30, workdir = '/workspace' } = options;
    return { ...EXEC, ...(await this.call<Partial<ExecResponse>>('Exec', { sessionId: this.id, command, timeout, workdir })) };
  }
  async *execStream(command: string, workdir = '/workspace'): AsyncGenerator<ExecStreamResponse, void> {
    for await (const told of this.stream<ExecStreamResponse>('ExecStream', { sessionId: this.id, command, workdir })) yield { ...told, data: told.data ?? '' };
  }
  async writeFile(path: string, content: string, mode: 'w' | 'a' = 'w'): Promise<void> {
    const told = await this.call<{ success?: boolean; error?: string }>('WriteFile', { sessionId: this.id, path, content, mode });
    if (!told.success) throw new Error(`Failed to write file: ${told.error}`);
  }
  async readFile(path: string): Promise<string> {
    const told = await this.call<{ success?: boolean; content?: string; error?: string }>('ReadFile', { sessionId: this.id, path });
    if (!told.success) throw new Error(`Failed to read file: ${told.error}`);
    return told.content ?? '';
  }
  /** Installs Python packages. The server says so if the hosts that this needs are not allowed. */
  async pipInstall(packages: string[]): Promise<ExecResponse> {
    return { ...EXEC, ...(await this.call<Partial<ExecResponse>>('PipInstall', { sessionId: this.id, packages })) };
  }
  /** What pip says while it works. */
  async *pipInstallStream(packages: string[]): AsyncGenerator<ExecStreamResponse, void> {
    for await (const told of this.stream<ExecStreamResponse>('PipInstallStream', { sessionId: this.id, packages })) yield { ...told, data: told.data ?? '' };
  }
  async runPython(code: string, timeout = 30): Promise<ExecResponse> {
    await this.writeFile('_temp_script.py', code);
    try {
      return await this.exec('python3 _temp_script.py', { timeout });
    } finally {
      await this.exec('rm -f _temp_script.py').catch(() => {});
    }
  }
}
