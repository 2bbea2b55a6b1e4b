// How requests reach the server. A transport sends one request and returns its answer as soon as the head is there.
// In Node it is node:http (src/node.ts): fetch there gives up after five minutes without a byte, and is slower. Bun, Deno
// and browsers use fetch.

import { ConnectionError } from './errors.js';

export type BodySource = string | Uint8Array | ArrayBuffer | Blob | ReadableStream<Uint8Array> | AsyncIterable<Uint8Array | string>;

export interface Outgoing {
  method: string;
  url: string;
  headers: Record<string, string>;
  body?: BodySource | undefined;
  signal?: AbortSignal | undefined;
}

export interface Answer {
  readonly status: number;
  header(name: string): string | null;
  text(): Promise<string>;
  bytes(): Promise<Uint8Array>;
  /** The body as it arrives. Leaving the loop early closes the connection. */
  chunks(): AsyncIterable<Uint8Array>;
  /** Gives up the rest of the body. */
  discard(): void;
}

export type Transport = (request: Outgoing) => Promise<Answer>;

export type Fetch = (input: string, init?: RequestInit) => Promise<Response>;

const encoder = new TextEncoder();

export function isIterable(body: unknown): body is AsyncIterable<Uint8Array | string> {
  return typeof body === 'object' && body !== null && Symbol.asyncIterator in body;
}

/** The pieces of a stream, also where ReadableStream is not iterable (Safari). */
export async function* piecesOf(stream: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array> {
  const reader = stream.getReader();
  let ended = false;
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) {
        ended = true;
        return;
      }
      yield value;
    }
  } finally {
    if (!ended) await reader.cancel().catch(() => {});
    reader.releaseLock();
  }
}

function streamOf(source: AsyncIterable<Uint8Array | string>): ReadableStream<Uint8Array> {
  const iterator = source[Symbol.asyncIterator]();
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      const { done, value } = await iterator.next();
      if (done) controller.close();
      else controller.enqueue(typeof value === 'string' ? encoder.encode(value) : value);
    },
    async cancel() {
      await iterator.return?.();
    },
  });
}

/** Browsers stream uploads over HTTP/2 only: there, the body is collected first. */
async function fetchBody(body: BodySource): Promise<{ body: BodyInit; duplex?: 'half' }> {
  if (typeof body === 'string' || body instanceof Uint8Array || body instanceof ArrayBuffer || body instanceof Blob)
    return { body: body as BodyInit };
  const stream = body instanceof ReadableStream ? body : streamOf(body);
  if (typeof document !== 'undefined' || 'WorkerGlobalScope' in globalThis && !('Deno' in globalThis || 'Bun' in globalThis))
    return { body: await new Response(stream).blob() };
  return { body: stream, duplex: 'half' };
}

class FetchAnswer implements Answer {
  readonly status: number;
  constructor(private readonly response: Response) {
    this.status = response.status;
  }
  header(name: string): string | null {
    return this.response.headers.get(name);
  }
  text(): Promise<string> {
    return this.response.text().catch(broken);
  }
  async bytes(): Promise<Uint8Array> {
    return new Uint8Array(await this.response.arrayBuffer().catch(broken));
  }
  async *chunks(): AsyncGenerator<Uint8Array> {
    try {
      if (this.response.body) yield* piecesOf(this.response.body);
    } catch (e) {
      broken(e);
    }
  }
  discard(): void {
    this.response.body?.cancel().catch(() => {});
  }
}

/** An abort is the caller's own and passes as it is. */
function broken(e: unknown): never {
  if (e instanceof Error && (e.name === 'AbortError' || e.name === 'TimeoutError')) throw e;
  throw new ConnectionError('the connection broke off', e);
}

/** Whether nothing listens there: each platform says it in its own way. */
function wasRefused(e: unknown): boolean {
  const { code, message, cause } = e as { code?: string; message?: string; cause?: { code?: string; message?: string } };
  const known = code ?? cause?.code;
  return known === 'ECONNREFUSED' || known === 'ConnectionRefused' || /connection refused/i.test(`${message} ${cause?.message}`);
}

export function fetchTransport(fetch: Fetch): Transport {
  return async ({ method, url, headers, body, signal }) => {
    const init: RequestInit & { duplex?: 'half'; timeout?: false } = { method, headers, timeout: false, cache: 'no-store' };
    if (signal) init.signal = signal;
    if (body !== undefined) Object.assign(init, await fetchBody(body));
    try {
      return new FetchAnswer(await fetch(url, init));
    } catch (e) {
      if (signal?.aborted) throw signal.reason;
      throw new ConnectionError(`no answer from ${new URL(url).origin}`, e, wasRefused(e));
    }
  };
}
