// A sandbox.

import { type Command, type CommandEvent, run, type RunOptions, runInShell, type ShellRunOptions, Shells, stream, type StreamOptions } from './commands.js';
import type { ClientOptions } from './config.js';
import { Contexts, type ExecuteOptions } from './contexts.js';
import { type CallOptions, Core } from './core.js';
import { ConnectionError } from './errors.js';
import { Files } from './files.js';
import { Egress, Ports, SandboxModels, SandboxSecrets } from './network.js';
import { Processes } from './processes.js';
import type { ExecResult, Execution, Posture, Sandbox as SandboxInfo, SandboxChange, SandboxCreate, Snapshot, Stats } from './schema.js';
import { linesOf, NDJSON } from './stream.js';
import { Terminal, type TerminalOptions } from './terminal.js';

export interface CreateOptions extends SandboxCreate, CallOptions {}
/** How to reach the server: options, or a client that is there already. */
export type Connection = ClientOptions | { core: Core };

const DISPOSE: typeof Symbol.asyncDispose = Symbol.asyncDispose ?? (Symbol.for('Symbol.asyncDispose') as typeof Symbol.asyncDispose);

/** Clients with default options share one, and with it its connections. */
let shared: Core | undefined;

export function coreOf(connection: Connection = {}): Core {
  if ('core' in connection) return connection.core;
  return Object.keys(connection).length ? new Core(connection) : (shared ??= new Core());
}

export class Sandbox {
  /** As the server last told it; `refresh` asks again. */
  info: SandboxInfo;
  readonly files: Files;
  readonly processes: Processes;
  readonly shells: Shells;
  readonly contexts: Contexts;
  readonly ports: Ports;
  readonly egress: Egress;
  readonly secrets: SandboxSecrets;
  readonly ai: SandboxModels;
  /** Ends the connection that a sandbox with `delete_on_disconnect` lives by. */
  private release: (() => void) | undefined;

  constructor(readonly core: Core, info: SandboxInfo) {
    this.info = info;
    this.files = new Files(core, info.id, () => this.info.workdir);
    this.processes = new Processes(core, info.id);
    this.shells = new Shells(core, info.id);
    this.contexts = new Contexts(core, info.id);
    this.ports = new Ports(core, info.id);
    this.egress = new Egress(core, info.id);
    this.secrets = new SandboxSecrets(core, info.id);
    this.ai = new SandboxModels(core, info.id);
  }

  /** Creates a sandbox and returns when it runs. */
  static async create(options: CreateOptions = {}, connection: Connection = {}): Promise<Sandbox> {
    const core = coreOf(connection), { signal, ...json } = options;
    if (json.delete_on_disconnect) return await Sandbox.createTied(core, json, signal);
    return new Sandbox(core, await core.call('createSandbox', { json, signal }));
  }

  /** The answer is a stream that lasts as long as the sandbox: its first line is the sandbox. */
  private static async createTied(core: Core, json: SandboxCreate, signal: AbortSignal | undefined): Promise<Sandbox> {
    const answer = await core.body('createSandbox', { json, accept: NDJSON, signal });
    const lines = linesOf(answer), first = await lines.next();
    if (first.done) throw new ConnectionError('the server ended the answer');
    const made = new Sandbox(core, JSON.parse(first.value) as SandboxInfo);
    made.release = () => answer.discard();
    (async () => {
      for await (const _ of lines) continue;
    })().catch(() => {});
    return made;
  }

  /** An existing sandbox, by its id or its name. */
  static async connect(idOrName: string, options: CallOptions & Connection = {}): Promise<Sandbox> {
    const { signal, ...connection } = options, core = coreOf(connection);
    return new Sandbox(core, await core.call('getSandbox', { path: { id: idOrName }, signal }));
  }

  get id(): string {
    return this.info.id;
  }
  get name(): string | null {
    return this.info.name;
  }
  get status(): SandboxInfo['status'] {
    return this.info.status;
  }
  private get path() {
    return { id: this.info.id };
  }

  // ---- commands ----

  /** Runs a command and waits for its end. `exit_code`, `stdout` and `stderr` are in the result. */
  run(command: Command, options: RunOptions = {}): Promise<ExecResult> {
    return run(this.core, this.id, command, options);
  }
  /** Runs a command in a shell that keeps its working directory, variables and functions. */
  shell(command: string, options: ShellRunOptions = {}): Promise<ExecResult> {
    return runInShell(this.core, this.id, command, options);
  }
  /** Runs a command and yields its output as it comes. It resumes where a broken connection left it. */
  stream(command: Command, options: StreamOptions = {}): AsyncGenerator<CommandEvent, void> {
    return stream(this.core, this.id, command, options);
  }
  /** Executes code that keeps its state: Python, unless `language` says otherwise. */
  execute(code: string, options: ExecuteOptions = {}): Promise<Execution> {
    return this.contexts.execute(code, options);
  }
  /** A login shell in a terminal, or the terminal of a process. */
  terminal(options: TerminalOptions = {}): Promise<Terminal> {
    return Terminal.open(this.core, this.id, options);
  }

  // ---- life ----

  private async now(told: Promise<SandboxInfo>): Promise<this> {
    this.info = await told;
    return this;
  }
  refresh(options: CallOptions = {}): Promise<this> {
    return this.now(this.core.call('getSandbox', { path: this.path, ...options }));
  }
  /** Changes its name, limits, metadata or expiry. */
  update(changes: SandboxChange & CallOptions): Promise<this> {
    const { signal, ...json } = changes;
    return this.now(this.core.call('changeSandbox', { path: this.path, json, signal }));
  }
  /** Resets its expiry, counted from now. */
  extend(ttl_seconds: number, options: CallOptions = {}): Promise<this> {
    return this.now(this.core.call('extendSandbox', { path: this.path, json: { ttl_seconds }, ...options }));
  }
  pause(options: CallOptions = {}): Promise<this> {
    return this.now(this.core.call('pauseSandbox', { path: this.path, ...options }));
  }
  resume(options: CallOptions = {}): Promise<this> {
    return this.now(this.core.call('resumeSandbox', { path: this.path, ...options }));
  }
  stop(options: CallOptions = {}): Promise<this> {
    return this.now(this.core.call('stopSandbox', { path: this.path, ...options }));
  }
  start(options: CallOptions = {}): Promise<this> {
    return this.now(this.core.call('startSandbox', { path: this.path, ...options }));
  }
  /** Creates copies with the same files: all of them, or none. */
  async fork(count = 1, options: { name_prefix?: string; metadata?: Record<string, string> } & CallOptions = {}): Promise<Sandbox[]> {
    const { signal, ...rest } = options;
    const { sandboxes } = await this.core.call('forkSandbox', { path: this.path, json: { count, ...rest }, signal });
    return sandboxes.map((info) => new Sandbox(this.core, info));
  }
  /** Saves its files as they are now. */
  snapshot(name?: string, options: CallOptions = {}): Promise<Snapshot> {
    return this.core.call('createSnapshot', { path: this.path, json: name === undefined ? {} : { name }, ...options });
  }
  /** What it uses now and, with `history`, in the last hour. */
  stats(options: { history?: boolean } & CallOptions = {}): Promise<Stats> {
    const { signal, ...query } = options;
    return this.core.call('getSandboxStats', { path: this.path, query, signal });
  }
  /** Its isolation features. */
  posture(options: CallOptions = {}): Promise<Posture> {
    return this.core.call('getSandboxPosture', { path: this.path, ...options });
  }
  /** Kills its processes and removes its files. */
  async delete(options: CallOptions = {}): Promise<void> {
    await this.core.call('deleteSandbox', { path: this.path, ...options });
    this.release?.();
  }
  /** For `await using`: deletes the sandbox at the end of the block. */
  async [DISPOSE](): Promise<void> {
    try {
      await this.delete();
    } catch (e) {
      if ((e as { status?: number }).status !== 404) throw e; // It is gone already.
    }
  }
}
