// What needs Node's own modules: HTTP without the time limits of Node's fetch, WebSockets with headers (Node 18 and 20
// have none at all), and files. Loaded on demand, by Node, Bun and Deno only.

import { webcrypto } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import http from 'node:http';
import https from 'node:https';
import type { Duplex } from 'node:stream';
import { Readable } from 'node:stream';

import { ConnectionError } from './errors.js';
import { FrameReader, frame, OP } from './frames.js';
import type { Socket, SocketEvents } from './socket.js';
import { type Answer, isIterable, type Outgoing, type Transport } from './transport.js';

const IDLE_MS = 60_000; // The server closes an idle connection after 75 s.
const UNSENT = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH']);

export async function readText(path: string): Promise<string> {
  return await readFile(path, 'utf8');
}

export function subtleCrypto(): SubtleCrypto {
  return webcrypto.subtle as unknown as SubtleCrypto;
}

class NodeAnswer implements Answer {
  readonly status: number;
  constructor(
    private readonly message: http.IncomingMessage,
    private readonly signal: AbortSignal | undefined,
  ) {
    this.status = message.statusCode ?? 0;
  }
  header(name: string): string | null {
    const value = this.message.headers[name.toLowerCase()] ?? this.message.trailers[name.toLowerCase()];
    return value === undefined ? null : Array.isArray(value) ? value.join(', ') : value;
  }
  private collect(): Promise<Buffer> {
    return new Promise((resolve, reject) => {
      const parts: Buffer[] = [];
      this.message.on('data', (piece: Buffer) => parts.push(piece));
      this.message.on('end', () => {
        if (this.message.complete) resolve(parts.length === 1 ? parts[0]! : Buffer.concat(parts));
      });
      this.message.on('close', () => reject(this.why()));
      this.message.on('error', () => reject(this.why()));
    });
  }
  private why(cause?: unknown): unknown {
    return this.signal?.aborted ? this.signal.reason : new ConnectionError('the connection broke off', cause);
  }
  async text(): Promise<string> {
    return (await this.collect()).toString('utf8');
  }
  async bytes(): Promise<Uint8Array> {
    const all = await this.collect();
    return new Uint8Array(all.buffer, all.byteOffset, all.byteLength);
  }
  async *chunks(): AsyncGenerator<Uint8Array> {
    try {
      for await (const piece of this.message) yield piece as Buffer;
    } catch (e) {
      throw this.why(e);
    }
    if (!this.message.complete) throw this.why();
  }
  discard(): void {
    this.message.destroy();
  }
}

/** A bracketed IPv6 address without its brackets, as http.request wants it. */
function target(url: URL): { host: string; port: string; path: string } {
  return { host: url.hostname.replace(/^\[|\]$/g, ''), port: url.port, path: url.pathname + url.search };
}

function failed(e: NodeJS.ErrnoException, url: URL, signal: AbortSignal | undefined): unknown {
  if (signal?.aborted) return signal.reason;
  return new ConnectionError(`no answer from ${url.origin}: ${e.message || e.code}`, e, UNSENT.has(e.code ?? ''));
}

function send(request: http.ClientRequest, body: Outgoing['body']): void {
  if (body === undefined || typeof body === 'string' || body instanceof Uint8Array) request.end(body);
  else if (body instanceof ArrayBuffer) request.end(new Uint8Array(body));
  else {
    const source = body instanceof Blob ? body.stream() : body;
    const readable = isIterable(source) ? Readable.from(source, { objectMode: false }) : Readable.fromWeb(source as never);
    readable.on('error', (e) => request.destroy(e));
    readable.pipe(request);
  }
}

const headersOf = ({ headers, body }: Outgoing): Record<string, string | number> => {
  if (typeof body === 'string') return { ...headers, 'content-length': Buffer.byteLength(body) };
  if (body instanceof Uint8Array || body instanceof ArrayBuffer) return { ...headers, 'content-length': body.byteLength };
  if (body instanceof Blob) return { ...headers, 'content-length': body.size };
  return headers;
};

export function nodeTransport(ca?: string): Transport {
  const options = { keepAlive: true, timeout: IDLE_MS, maxFreeSockets: 64, noDelay: true, scheduling: 'lifo' as const };
  const agents = { http: new http.Agent(options), https: new https.Agent(ca ? { ...options, ca } : options) };
  return (outgoing) => new Promise((resolve, reject) => {
    const { method, signal } = outgoing;
    if (signal?.aborted) {
      reject(signal.reason);
      return;
    }
    const url = new URL(outgoing.url), secure = url.protocol === 'https:';
    const request = (secure ? https : http).request({
      ...target(url), method, headers: headersOf(outgoing), agent: secure ? agents.https : agents.http, ...(signal ? { signal } : {}),
    });
    request.on('response', (message) => resolve(new NodeAnswer(message, signal)));
    request.on('error', (e) => reject(failed(e, url, signal)));
    send(request, outgoing.body);
  });
}

/** A WebSocket over the connection of an HTTP request. */
class NodeSocket implements Socket {
  private reader: FrameReader;
  private closed = false;
  constructor(private readonly stream: Duplex, events: SocketEvents, head: Buffer) {
    this.reader = new FrameReader({
      message: (data) => events.message(data),
      ping: (data) => this.put(OP.pong, data),
      close: (code) => {
        this.close(code);
        events.close(code);
      },
    });
    stream.on('data', (piece: Buffer) => this.take(piece));
    stream.on('close', () => events.close(1006));
    stream.on('error', () => events.close(1006));
    if (head.length) this.take(head);
  }
  private take(piece: Buffer): void {
    if (!this.reader.push(piece)) this.stream.destroy();
  }
  private put(op: number, data: Uint8Array): boolean {
    if (this.closed || !this.stream.writable) return false;
    this.stream.write(frame(op, data));
    return true;
  }
  send(data: string | Uint8Array): boolean {
    return typeof data === 'string' ? this.put(OP.text, Buffer.from(data)) : this.put(OP.binary, data);
  }
  close(code = 1000): void {
    if (this.closed) return;
    this.put(OP.close, code === 1005 || code === 1006 ? new Uint8Array(0) : Uint8Array.of(code >> 8, code & 255));
    this.closed = true;
    this.stream.end();
  }
  pause(): void {
    this.stream.pause();
  }
  resume(): void {
    this.stream.resume();
  }
}

/** Opens a WebSocket with headers. `refused` gets the answer when the server does not agree. */
export function openSocket(address: string, headers: Record<string, string>, events: SocketEvents, ca?: string): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const url = new URL(address), secure = url.protocol === 'https:';
    const request = (secure ? https : http).request({
      ...target(url), method: 'GET', agent: false, ...(secure && ca ? { ca } : {}),
      headers: {
        ...headers, connection: 'Upgrade', upgrade: 'websocket', 'sec-websocket-version': '13',
        'sec-websocket-key': Buffer.from(webcrypto.getRandomValues(new Uint8Array(16))).toString('base64'),
      },
    });
    request.on('upgrade', (_message, stream, head) => resolve(new NodeSocket(stream, events, head)));
    request.on('response', (message) => events.refused(new NodeAnswer(message, undefined)).then(reject, reject));
    request.on('error', (e) => reject(failed(e, url, undefined)));
    request.end();
  });
}
