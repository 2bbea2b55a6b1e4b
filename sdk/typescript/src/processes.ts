// Processes that outlive their client.

import { type Command, type CommandEvent, commandOf, resumed } from './commands.js';
import type { CallOptions, Core } from './core.js';
import type { Process as ProcessInfo, ProcessCreate, ProcessEnd, ProcessOutput, TerminalSize } from './schema.js';
import { NDJSON } from './stream.js';
import type { BodySource } from './transport.js';

export interface ProcessOptions extends Omit<ProcessCreate, 'command' | 'argv' | 'kill_on_disconnect'>, CallOptions {}

export interface OutputOptions extends CallOptions {
  /** The next byte wanted of stdout, or of the terminal. */
  stdout?: number;
  stderr?: number;
}

/** One process of a sandbox, by its pid or its tag. */
export class Process {
  constructor(private readonly core: Core, private readonly id: string, readonly process: string) {}

  private get path() {
    return { id: this.id, process: this.process };
  }
  /** The pid in the sandbox; undefined for a process that was named by its tag. */
  get pid(): number | undefined {
    return /^\d+$/.test(this.process) ? Number(this.process) : undefined;
  }
  info(options: CallOptions = {}): Promise<ProcessInfo> {
    return this.core.call('getProcess', { path: this.path, ...options });
  }
  /** The output that is there now. */
  output(options: OutputOptions = {}): Promise<ProcessOutput> {
    const { signal, ...query } = options;
    return this.core.call('readProcessOutput', { path: this.path, query, signal });
  }
  /** The output as it comes, to the end of the process. It resumes where a broken connection left it. */
  async *follow(options: OutputOptions = {}): AsyncGenerator<CommandEvent, void> {
    const { signal, stdout = 0, stderr = 0 } = options, { pid } = await this.info({ signal });
    const first = () => this.core.body('readProcessOutput', { path: this.path, query: { stdout, stderr, follow: true }, accept: NDJSON, signal });
    yield* resumed(this.core, this.id, first, { pid, stdout, stderr }, { signal });
  }
  /** Waits for the end, or for `timeout_ms`: then `running` is true. */
  wait(options: { timeout_ms?: number } & CallOptions = {}): Promise<ProcessEnd> {
    const { signal, ...query } = options;
    return this.core.call('waitForProcess', { path: this.path, query, signal });
  }
  /** Writes to its stdin or terminal. `close` ends its input. */
  write(data: BodySource, options: { close?: boolean } & CallOptions = {}): Promise<void> {
    const { signal, ...query } = options;
    return this.core.call('writeProcessInput', { path: this.path, query, raw: data, type: 'application/octet-stream', signal });
  }
  /** Sends a signal to its process group: a name, with or without SIG, or a number. */
  signal(signal: string | number, options: CallOptions = {}): Promise<void> {
    return this.core.call('signalProcess', { path: this.path, json: { signal }, ...options });
  }
  resize(size: TerminalSize, options: CallOptions = {}): Promise<void> {
    return this.core.call('resizeProcess', { path: this.path, json: size, ...options });
  }
  /** Kills it and everything that it has started. */
  kill(options: CallOptions = {}): Promise<void> {
    return this.core.call('killProcess', { path: this.path, ...options });
  }
}

export class Processes {
  constructor(private readonly core: Core, private readonly id: string) {}

  async start(command: Command, options: ProcessOptions = {}): Promise<Process> {
    const { signal, ...rest } = options;
    const { pid } = await this.core.call('startProcess', { path: { id: this.id }, json: { ...commandOf(command), ...rest }, signal });
    return this.get(pid);
  }
  /** A process by its pid or tag. */
  get(process: string | number): Process {
    return new Process(this.core, this.id, String(process));
  }
  async list(options: CallOptions = {}): Promise<ProcessInfo[]> {
    return (await this.core.call('listProcesses', { path: { id: this.id }, ...options })).processes;
  }
}
