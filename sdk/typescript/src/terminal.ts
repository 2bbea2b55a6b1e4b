// A terminal in a sandbox, over a WebSocket. The process outlives the connection: when it breaks, the terminal attaches
// again at the byte where it was.

import type { CallOptions, Core } from './core.js';
import { ConnectionError, errorFor, PaddockError } from './errors.js';
import type { Operations } from './schema.js';
import type { Socket } from './socket.js';
import { again } from './stream.js';

export interface TerminalOptions extends CallOptions, Omit<Operations['openTerminal']['query'], 'process'> {
  /** Attach to the terminal of this process, by pid or tag, instead of starting a login shell. */
  process?: string | number;
}

export interface TerminalExit {
  exit_code: number;
  signal: string | null;
}

type Note =
  | { type: 'attached'; pid: number; offset: number }
  | ({ type: 'exit' } & TerminalExit)
  | { type: 'error'; code: string; message: string; request_id?: string };

const HIGH = 1 << 20;

/** Iterating yields the output as bytes; `text()` yields it as text. The loop ends with the process. */
export class Terminal implements AsyncIterable<Uint8Array> {
  /** The pid in the sandbox. */
  pid = 0;
  /** The number of bytes of output so far: `offset` of a terminal that attaches later. */
  offset = 0;
  private socket: Socket | undefined;
  private size: { cols: number; rows: number };
  private queue: Uint8Array[] = [];
  private queued = 0;
  private wake: () => void = () => {};
  private ended: { exit?: TerminalExit; error?: unknown } | undefined;
  private paused = false;
  private broken: object | undefined;
  /** Input that waits for a connection. */
  private unsent: Array<string | Uint8Array> = [];

  private constructor(private readonly core: Core, private readonly id: string, private readonly options: TerminalOptions) {
    this.size = { cols: options.cols ?? 80, rows: options.rows ?? 24 };
    options.signal?.addEventListener('abort', () => this.finish({ error: options.signal!.reason }), { once: true });
  }

  /** @internal */
  static async open(core: Core, id: string, options: TerminalOptions = {}): Promise<Terminal> {
    options.signal?.throwIfAborted();
    const made = new Terminal(core, id, options);
    await made.connect();
    options.signal?.throwIfAborted();
    return made;
  }

  /** Connects, and returns when the server has said which process it is. */
  private async connect(): Promise<void> {
    const { signal: _, process, ...rest } = this.options;
    const query = this.pid
      ? { ...rest, ...this.size, process: String(this.pid), offset: this.offset }
      : { ...rest, ...this.size, ...(process === undefined ? {} : { process: String(process) }) };
    const attempt = {}; // this connection, for `lost`
    let attached = false, told!: { resolve: () => void; reject: (e: unknown) => void };
    const said = new Promise<void>((resolve, reject) => {
      told = { resolve, reject };
    });
    said.catch(() => {}); // Where the socket itself fails, nobody asks.
    const socket = await this.core.socket('openTerminal', { path: { id: this.id }, query }, {
      message: (data) => {
        if (typeof data !== 'string') {
          this.take(data);
          return;
        }
        const note = JSON.parse(data) as Note;
        if (note.type === 'attached') {
          this.pid = note.pid;
          this.offset = note.offset;
          attached = true;
          told.resolve();
        } else if (note.type === 'exit') {
          this.finish({ exit: { exit_code: note.exit_code, signal: note.signal } });
        } else if (note.type === 'error') {
          const error = errorFor(note.message, { code: note.code, status: 101, requestId: note.request_id ?? null });
          if (attached) this.finish({ error });
          else told.reject(error);
        }
      },
      close: () => {
        if (attached) this.lost(attempt);
        else told.reject(new ConnectionError('the terminal was closed before it began'));
      },
    });
    await said;
    if (this.ended) socket.close();
    if (this.ended || this.broken === attempt) return;
    this.socket = socket;
    for (const data of this.unsent.splice(0)) this.send(data);
  }

  /** The connection broke: attach again. */
  private lost(attempt: object): void {
    if (this.ended || this.broken === attempt) return;
    this.broken = attempt;
    this.socket = undefined;
    if (this.options.kill_on_disconnect) {
      this.finish({ error: new ConnectionError('the connection of the terminal broke off') });
      return;
    }
    again(this.core, this.options, async () => {
      if (!this.ended) await this.connect();
    }).catch((error: unknown) => this.finish({ error }));
  }

  private take(data: Uint8Array): void {
    this.offset += data.length;
    this.queue.push(data);
    this.queued += data.length;
    if (this.queued > HIGH && !this.paused) {
      this.paused = true;
      this.socket?.pause();
    }
    this.wake();
  }

  private finish(how: { exit?: TerminalExit; error?: unknown }): void {
    this.ended ??= how;
    this.socket?.close();
    this.socket = undefined;
    this.wake();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array, void> {
    for (;;) {
      const next = this.queue.shift();
      if (next) {
        this.queued -= next.length;
        if (this.paused && this.queued < HIGH / 2) {
          this.paused = false;
          this.socket?.resume();
        }
        yield next;
      } else if (this.ended) {
        if (this.ended.error !== undefined) throw this.ended.error;
        return;
      } else {
        await new Promise<void>((resolve) => {
          this.wake = resolve;
        });
      }
    }
  }

  /** The output as text. A character is never split. */
  async *text(): AsyncGenerator<string, void> {
    const decoder = new TextDecoder();
    for await (const piece of this) {
      const text = decoder.decode(piece, { stream: true });
      if (text) yield text;
    }
  }

  private send(data: string | Uint8Array): void {
    if (!this.socket?.send(data)) this.unsent.push(data);
  }

  /** Types into the terminal. Input that is on its way while the connection breaks may be lost. */
  write(data: string | Uint8Array): void {
    if (this.ended) throw new ConnectionError('the terminal has ended');
    this.send(typeof data === 'string' ? new TextEncoder().encode(data) : data);
  }

  resize(cols: number, rows: number): void {
    this.size = { cols, rows };
    if (!this.ended) this.send(JSON.stringify({ type: 'resize', cols, rows }));
  }

  /** Reads to the end and returns how the process ended. Output that nobody has read is dropped. */
  async exit(): Promise<TerminalExit> {
    for await (const _ of this) continue;
    return this.ended!.exit!;
  }

  /** Closes the connection. The process runs on: `sb.terminal({ process: pid, offset })` comes back to it. */
  detach(): void {
    this.finish({ error: new PaddockError('the terminal was detached', { code: 'detached' }) });
  }

  /** Kills the process and everything that it has started. */
  async kill(options: CallOptions = {}): Promise<void> {
    await this.core.call('killProcess', { path: { id: this.id, process: String(this.pid) }, ...options });
  }
}

/** A TCP connection to a port of a sandbox. Not in browsers: the server takes the key from a header only. */
export class Tunnel implements AsyncIterable<Uint8Array> {
  private socket!: Socket;
  private queue: Uint8Array[] = [];
  private over = false;
  private clean = false;
  private wake: () => void = () => {};

  /** @internal */
  static async open(core: Core, id: string, port: number): Promise<Tunnel> {
    const made = new Tunnel();
    made.socket = await core.socket('openTunnel', { path: { id, port } }, {
      message: (data) => {
        if (typeof data === 'string') made.end_of_input(data === 'end');
        else made.queue.push(data);
        made.wake();
      },
      close: () => {
        made.over = true;
        made.wake();
      },
    });
    return made;
  }

  private end_of_input(clean: boolean): void {
    this.clean ||= clean;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array, void> {
    for (;;) {
      const next = this.queue.shift();
      if (next) yield next;
      else if (this.clean) return;
      else if (this.over) throw new ConnectionError('the tunnel broke off');
      else
        await new Promise<void>((resolve) => {
          this.wake = resolve;
        });
    }
  }

  write(data: string | Uint8Array): void {
    this.socket.send(typeof data === 'string' ? new TextEncoder().encode(data) : data);
  }
  /** Says that no more bytes follow. The other direction stays open. */
  end(): void {
    this.socket.send('end');
  }
  close(): void {
    this.socket.close();
  }
}
