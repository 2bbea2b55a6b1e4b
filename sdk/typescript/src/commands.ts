// Commands in a sandbox: run to the end, streamed, or in a shell that keeps its state.

import type { CallOptions, Core } from './core.js';
import { CommandFailedError, ConnectionError } from './errors.js';
import type { Exec, ExecResult, Shell, ShellCreate, StreamEvent } from './schema.js';
import { again, NDJSON, objectsOf, sizeOf, throwIfError } from './stream.js';
import type { Answer } from './transport.js';

/** A command line for bash, or a program with its arguments. */
export type Command = string | readonly string[];

type Further = Omit<Exec, 'command' | 'argv' | 'shell'>;

export interface RunOptions extends Further, CallOptions {
  /** Throws a CommandFailedError if the exit code is not 0. */
  check?: boolean;
}

export interface StreamOptions extends Further, CallOptions {}

export interface ShellRunOptions extends Pick<Exec, 'stdin' | 'timeout_ms' | 'kill_on_disconnect' | 'secrets'>, CallOptions {
  /** The name of the shell; `default` if it is absent. */
  shell?: string;
  check?: boolean;
}

export type OutputEvent = Extract<StreamEvent, { type: 'stdout' | 'stderr' }>;
export type ExitEvent = Extract<StreamEvent, { type: 'exit' }>;
/** What a stream yields: `start`, then output, then `exit`. An error is thrown. */
export type CommandEvent = Exclude<StreamEvent, { type: 'error' }>;

export function commandOf(command: Command): Pick<Exec, 'command' | 'argv'> {
  return typeof command === 'string' ? { command } : { argv: [...command] };
}

function checked(result: ExecResult, check: boolean | undefined): ExecResult {
  if (check && result.exit_code !== 0) throw new CommandFailedError(result);
  return result;
}

export async function run(core: Core, id: string, command: Command, options: RunOptions = {}): Promise<ExecResult> {
  const { signal, check, ...rest } = options;
  return checked(await core.call('exec', { path: { id }, json: { ...commandOf(command), ...rest }, signal }), check);
}

export async function runInShell(core: Core, id: string, command: string, options: ShellRunOptions = {}): Promise<ExecResult> {
  const { signal, check, shell = 'default', ...rest } = options;
  return checked(await core.call('exec', { path: { id }, json: { command, shell, ...rest }, signal }), check);
}

/** Where a stream is, so that it can be continued. */
interface Position {
  pid: number | undefined;
  stdout: number;
  stderr: number;
}

/** Yields the events of one answer and notes how far they go. True if the end was among them. */
async function* eventsOf(answer: Answer, at: Position): AsyncGenerator<CommandEvent, boolean> {
  for await (const event of objectsOf<StreamEvent>(answer)) {
    throwIfError(event);
    if (event.type === 'error') continue;
    if (event.type === 'start') {
      const first = at.pid === undefined;
      at.pid = event.pid;
      if (first) yield event;
      continue;
    }
    if (event.type === 'stdout' || event.type === 'stderr') at[event.type] = event.offset + sizeOf(event);
    yield event;
    if (event.type === 'exit') return true;
  }
  return false;
}

function follow(core: Core, id: string, at: Position, options: CallOptions): Promise<Answer> {
  const query = { stdout: at.stdout, stderr: at.stderr, follow: true };
  return core.body('readProcessOutput', { path: { id, process: String(at.pid) }, query, accept: NDJSON, signal: options.signal });
}

/** The events of a process. When the connection breaks, it goes on at the offset where it was. */
export async function* resumed(
  core: Core, id: string, first: () => Promise<Answer>, at: Position, options: CallOptions, resumable = true,
): AsyncGenerator<CommandEvent, void> {
  let answer = await first();
  for (;;) {
    try {
      if (yield* eventsOf(answer, at)) return;
    } catch (e) {
      if (!(e instanceof ConnectionError) || at.pid === undefined || !resumable) throw e;
    } finally {
      answer.discard();
    }
    if (at.pid === undefined || !resumable) throw new ConnectionError('the stream ended before the command did');
    answer = await again(core, options, () => follow(core, id, at, options));
  }
}

export function stream(core: Core, id: string, command: Command, options: StreamOptions = {}): AsyncGenerator<CommandEvent, void> {
  const { signal, ...rest } = options, json = { ...commandOf(command), ...rest };
  const first = () => core.body('exec', { path: { id }, json, accept: NDJSON, signal });
  // A command that ends with its client's connection has nothing to come back to.
  return resumed(core, id, first, { pid: undefined, stdout: 0, stderr: 0 }, { signal }, rest.kill_on_disconnect !== true);
}

/** The shells of a sandbox, which keep their working directory, variables and functions. */
export class Shells {
  constructor(private readonly core: Core, private readonly id: string) {}

  /** Creates a shell with its own working directory, variables or user. Others are created by their first command. */
  create(params: ShellCreate & CallOptions): Promise<Shell> {
    const { signal, ...json } = params;
    return this.core.call('createShell', { path: { id: this.id }, json, signal });
  }
  async list(options: CallOptions = {}): Promise<Shell[]> {
    return (await this.core.call('listShells', { path: { id: this.id }, ...options })).shells;
  }
  get(name: string, options: CallOptions = {}): Promise<Shell> {
    return this.core.call('getShell', { path: { id: this.id, name }, ...options });
  }
  /** Ends a shell and everything that it has started. */
  remove(name: string, options: CallOptions = {}): Promise<void> {
    return this.core.call('removeShell', { path: { id: this.id, name }, ...options });
  }
  run(command: string, options: ShellRunOptions = {}): Promise<ExecResult> {
    return runInShell(this.core, this.id, command, options);
  }
  /** Streams the output of a command in a shell. It cannot be resumed: the next command's output follows in the same stream. */
  stream(command: string, options: Omit<ShellRunOptions, 'check'> = {}): AsyncGenerator<CommandEvent, void> {
    const { signal, shell = 'default', ...rest } = options, json = { command, shell, ...rest };
    const first = () => this.core.body('exec', { path: { id: this.id }, json, accept: NDJSON, signal });
    return resumed(this.core, this.id, first, { pid: undefined, stdout: 0, stderr: 0 }, { signal }, false);
  }
}
