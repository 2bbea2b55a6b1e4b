// Reading streams of events, and resuming them.

import { type CallOptions, type Core, wait } from './core.js';
import { ConnectionError, errorFor } from './errors.js';
import type { Answer } from './transport.js';

export const NDJSON = 'application/x-ndjson';
export const SSE = 'text/event-stream';

/** The lines of a body. */
export async function* linesOf(answer: Answer): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let rest = '';
  for await (const piece of answer.chunks()) {
    const lines = (rest + decoder.decode(piece, { stream: true })).split('\n');
    rest = lines.pop()!;
    yield* lines;
  }
  if (rest) yield rest;
}

/** The objects of lines of JSON, without what only keeps the connection alive. */
export async function* objectsOf<T extends { type: string }>(answer: Answer): AsyncGenerator<T> {
  for await (const line of linesOf(answer)) {
    if (line === '') continue;
    const event = JSON.parse(line) as T;
    if (event.type !== 'keep-alive') yield event;
  }
}

export interface ServerSentEvent {
  event: string;
  data: string;
  id: string | undefined;
}

/** Server-Sent Events. */
export async function* sentEventsOf(answer: Answer): AsyncGenerator<ServerSentEvent> {
  let event = '', data: string[] = [], id: string | undefined;
  for await (const line of linesOf(answer)) {
    if (line === '' || line === '\r') {
      if (event || data.length) yield { event: event || 'message', data: data.join('\n'), id };
      event = '';
      data = [];
      continue;
    }
    const [, name, value] = /^([^:]*):? ?(.*?)\r?$/.exec(line)!;
    if (name === 'event') event = value!;
    else if (name === 'data') data.push(value!);
    else if (name === 'id') id = value!;
  }
}

/** Throws the error that the server tells inside a stream. */
export function throwIfError(event: { type: string; code?: string; message?: string; request_id?: string }): void {
  if (event.type === 'error' && event.code !== undefined && event.message !== undefined)
    throw errorFor(event.message, { code: event.code, status: 200, requestId: event.request_id ?? null });
}

/**
 * Repeats `attempt` until it succeeds, as long as the server cannot be reached and the time of `reconnectMs` is not over:
 * a daemon that restarts is back after a moment, and its sandboxes ran on.
 */
export async function again<T>(core: Core, options: CallOptions, attempt: () => Promise<T>): Promise<T> {
  const end = Date.now() + core.reconnectMs;
  for (let pause = 50; ; pause = Math.min(pause * 2, 2000)) {
    try {
      return await attempt();
    } catch (e) {
      const lost = e instanceof ConnectionError || (e as { code?: string }).code === 'unavailable';
      if (!lost || Date.now() + pause > end) throw e;
      await wait(pause, options.signal);
    }
  }
}

/** The number of bytes in a piece of output. */
export function sizeOf({ data, encoding }: { data: string; encoding: 'utf-8' | 'base64' }): number {
  if (encoding === 'base64') return (data.length / 4) * 3 - (data.endsWith('==') ? 2 : data.endsWith('=') ? 1 : 0);
  let n = 0;
  for (let i = 0; i < data.length; i++) {
    const c = data.charCodeAt(i);
    n += c < 0x80 ? 1 : c < 0x800 ? 2 : c >= 0xd800 && c < 0xe000 ? 2 : 3; // a pair of surrogates is four bytes
  }
  return n;
}

/** The bytes of a piece of output. */
export function bytesOf({ data, encoding }: { data: string; encoding: 'utf-8' | 'base64' }): Uint8Array {
  if (encoding === 'utf-8') return new TextEncoder().encode(data);
  return Uint8Array.from(atob(data), (c) => c.charCodeAt(0));
}
