// The calls: an operation of the API by its name, with typed parameters, retried where that is safe.

import { type ClientOptions, findPlace, hasNode, isNode, type Place } from './config.js';
import { ConnectionError, errorFor, PaddockError } from './errors.js';
import { type Operations, ROUTES } from './schema.js';
import { browserSocket, type Socket, type SocketEvents } from './socket.js';
import { type Answer, type BodySource, fetchTransport, type Transport } from './transport.js';

export type OperationName = keyof Operations;

/** What every call of the SDK accepts beside its own parameters. */
export interface CallOptions {
  /** Ends the call when it is aborted. */
  signal?: AbortSignal | undefined;
}

type Given<T> = { [K in keyof T]?: T[K] | undefined };

export interface Call<K extends OperationName> extends CallOptions {
  path?: { [P in keyof Operations[K]['path']]: string | number };
  query?: Given<Operations[K]['query']>;
  json?: Operations[K]['body'];
  /** A body that is not JSON, with its type. */
  raw?: BodySource;
  type?: string;
  accept?: string;
  headers?: Record<string, string>;
  /** Whether a repetition has the same effect. GET, HEAD and the refused are repeated anyway. */
  repeatable?: boolean;
}

const SAFE = new Set(['GET', 'HEAD', 'OPTIONS']);
const FIRST_WAIT_MS = 100;

/** The parts of a path between its parameters, split once. */
const TEMPLATES = new Map<OperationName, string[]>();

function template(name: OperationName): string[] {
  let parts = TEMPLATES.get(name);
  if (!parts) {
    parts = ROUTES[name][1].split(/[{}]/);
    TEMPLATES.set(name, parts);
  }
  return parts;
}

/** A `path` keeps its slashes. A first slash is left out: the template has it. */
function escaped(name: string, value: string): string {
  if (name !== 'path') return encodeURIComponent(value);
  return value.replace(/^\/+/, '').split('/').map(encodeURIComponent).join('/');
}

function queryText(query: Record<string, unknown>): string {
  let text = '';
  const add = (name: string, value: unknown) => {
    text += `${text ? '&' : '?'}${encodeURIComponent(name)}=${encodeURIComponent(String(value))}`;
  };
  for (const [name, value] of Object.entries(query)) {
    if (value === undefined || value === null) continue;
    if (typeof value === 'boolean') add(name, value ? '1' : '0');
    else if (typeof value === 'object') for (const [key, one] of Object.entries(value)) add(`${name}.${key}`, one);
    else add(name, value);
  }
  return text;
}

export function target(name: OperationName, call: { path?: object | undefined; query?: object | undefined }): string {
  const parts = template(name), given = call.path as Record<string, string | number> | undefined;
  let text = parts[0]!;
  for (let i = 1; i < parts.length; i += 2) text += escaped(parts[i]!, String(given![parts[i]!])) + (parts[i + 1] ?? '');
  return call.query ? text + queryText(call.query as Record<string, unknown>) : text;
}

export function wait(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) {
      reject(signal.reason);
      return;
    }
    const end = () => {
      clearTimeout(timer);
      reject(signal!.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', end);
      resolve();
    }, ms);
    signal?.addEventListener('abort', end, { once: true });
  });
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The error that an answer with a status of 400 or more tells. */
export async function errorOf(answer: Answer): Promise<PaddockError> {
  const text = await answer.text().catch(() => '');
  const said = (parsed(text) as { error?: { code?: string; message?: string; request_id?: string } } | undefined)?.error;
  const after = Number(answer.header('retry-after'));
  const requestId = said?.request_id ?? answer.header('x-request-id');
  const code = said?.code ?? BY_STATUS[answer.status] ?? 'internal';
  return errorFor(said?.message ?? `the server answered ${answer.status}`, {
    code, status: answer.status, requestId, retryAfter: after > 0 ? after : null,
  });
}

/** Answers to HEAD have no body. */
const BY_STATUS: Record<number, string> = {
  400: 'invalid_argument', 401: 'unauthorized', 403: 'forbidden', 404: 'not_found', 409: 'wrong_state', 410: 'gone',
  429: 'quota_exceeded', 501: 'not_supported', 503: 'unavailable', 504: 'timeout',
};

export class Core {
  readonly maxRetries: number;
  readonly reconnectMs: number;
  private place: Promise<Place> | undefined;
  private transport: Transport | undefined;

  constructor(readonly options: ClientOptions = {}) {
    this.maxRetries = options.maxRetries ?? 2;
    this.reconnectMs = options.reconnectMs ?? 30_000;
  }

  /** The address and the key, found once. */
  where(): Promise<Place> {
    this.place ??= findPlace(this.options).catch((e: unknown) => {
      this.place = undefined;
      throw e;
    });
    return this.place;
  }

  private async carrier(ca: string | undefined): Promise<Transport> {
    if (!this.transport) {
      if (this.options.fetch) this.transport = fetchTransport(this.options.fetch);
      else if (isNode) this.transport = (await import('#node')).nodeTransport(ca);
      else this.transport = fetchTransport((input, init) => globalThis.fetch(input, init));
    }
    return this.transport;
  }

  private mayRepeat(method: string, call: Call<OperationName>, e: unknown): boolean {
    if (!(e instanceof PaddockError)) return false;
    const replayable = call.raw === undefined || typeof call.raw === 'string' || call.raw instanceof Uint8Array;
    if (!replayable) return false;
    // A request that never arrived, or was refused before it began, had no effect.
    if (e.code === 'rate_limited' || (e instanceof ConnectionError && e.unsent)) return true;
    return (SAFE.has(method) || call.repeatable === true) && (e instanceof ConnectionError || e.code === 'unavailable');
  }

  /** Sends a request and returns its answer, whose status is below 400. */
  async send<K extends OperationName>(name: K, call: Call<K>): Promise<Answer> {
    const [method] = ROUTES[name], { url, key, ca } = await this.where();
    const headers: Record<string, string> = { ...this.options.headers, authorization: `Bearer ${key}`, ...call.headers };
    if (call.json !== undefined) headers['content-type'] = 'application/json';
    else if (call.type) headers['content-type'] = call.type;
    if (call.accept) headers['accept'] = call.accept;
    const body = call.json !== undefined ? JSON.stringify(call.json) : call.raw;
    const outgoing = { method, url: url + target(name, call), headers, body, signal: call.signal };
    const carry = this.transport ?? (await this.carrier(ca));
    for (let tried = 0; ; tried++) {
      try {
        const answer = await carry(outgoing);
        if (answer.status < 400) return answer;
        throw await errorOf(answer);
      } catch (e) {
        if (e instanceof PaddockError) this.options.onAnswer?.(name, e.status, undefined);
        if (tried >= this.maxRetries || !this.mayRepeat(method, call as Call<OperationName>, e)) throw e;
        const after = (e as PaddockError).retryAfter;
        await wait(after ? after * 1000 : FIRST_WAIT_MS * 4 ** tried * (0.5 + Math.random()), call.signal);
      }
    }
  }

  /** Calls an operation whose answer is JSON, or nothing. */
  async call<K extends OperationName>(name: K, call: Call<K> = {}): Promise<Operations[K]['result']> {
    const answer = await this.send(name, call);
    const text = await answer.text();
    const result = text === '' ? undefined : parsed(text);
    if (text !== '' && result === undefined) throw new PaddockError(`what answered is no Paddock: ${text.slice(0, 80)}`, { code: 'internal', status: answer.status });
    this.options.onAnswer?.(name, answer.status, result);
    return result as Operations[K]['result'];
  }

  /** Calls an operation whose answer is text or bytes. */
  async body<K extends OperationName>(name: K, call: Call<K> = {}): Promise<Answer> {
    const answer = await this.send(name, call);
    this.options.onAnswer?.(name, answer.status, undefined);
    return answer;
  }

  /** A request of the caller's own to a path of the server, as fetch does it, with the key. The path may have a query. */
  async fetch(name: OperationName, call: { path: { path: string; [name: string]: unknown } }, init: RequestInit = {}, auth?: Record<string, string>): Promise<Response> {
    const { url, key } = await this.where(), headers = new Headers(init.headers);
    const [, path = '', query = ''] = /^([^?#]*)(\?[^#]*)?/.exec(call.path.path)!;
    for (const [header, value] of Object.entries(auth ?? { authorization: `Bearer ${key}` }))
      if (!headers.has(header)) headers.set(header, value);
    const send = this.options.fetch ?? ((input: string, how?: RequestInit) => globalThis.fetch(input, how));
    const response = await send(url + target(name, { path: { ...call.path, path } }) + query, { ...init, headers });
    this.options.onAnswer?.(name, response.status, undefined);
    return response;
  }

  /** Opens a WebSocket. */
  async socket<K extends OperationName>(name: K, call: Call<K>, events: Omit<SocketEvents, 'refused'>): Promise<Socket> {
    const { url, key, ca } = await this.where(), address = url + target(name, call);
    const all = { ...events, refused: errorOf };
    const made = hasNode
      ? await (await import('#node')).openSocket(address, { ...this.options.headers, authorization: `Bearer ${key}` }, all, ca)
      : await browserSocket(address, key, all).catch((e: unknown) => {
          throw new ConnectionError('the WebSocket was refused', e);
        });
    this.options.onAnswer?.(name, 101, undefined);
    return made;
  }
}
