// Where the server is and which key opens it: options, then PADDOCK_URL, PADDOCK_API_KEY and PADDOCK_KEY_FILE, then the
// daemon of this machine, as the command line does it. The key of this machine's daemon is sent to this machine only.

import { AuthenticationError } from './errors.js';
import type { Fetch } from './transport.js';

const DEFAULT_URL = 'http://127.0.0.1:7080';
const LOCAL = '/run/paddock.json';
const KEY_FILES = ['/var/lib/paddock/admin.key', './var/lib/admin.key'];

export interface ClientOptions {
  /** The address of the server; by default `PADDOCK_URL`, then this machine's daemon. */
  url?: string;
  /** The API key; by default `PADDOCK_API_KEY`, then the file `PADDOCK_KEY_FILE`, then the key of this machine's daemon. */
  apiKey?: string;
  /** Sends requests instead of the SDK's own transport. */
  fetch?: Fetch;
  /** Sent with every request. */
  headers?: Record<string, string>;
  /** How often a request that can be repeated safely is repeated; 2 by default. */
  maxRetries?: number;
  /** How long a broken stream or terminal tries to reach the server again; 30,000 ms by default. */
  reconnectMs?: number;
  /** The certificates (PEM) of authorities to trust instead of the system's, in Node; by default the file `PADDOCK_CA`. */
  ca?: string;
  /** Called with the operation and the status of each answer. For logs and tests. */
  onAnswer?: (operation: string, status: number, body: unknown) => void;
}

export interface Place {
  url: string;
  key: string;
  ca: string | undefined;
}

interface Platform {
  process?: { env?: Record<string, string | undefined>; versions?: { node?: string } };
  Deno?: { env: { get(name: string): string | undefined } };
  Bun?: unknown;
  document?: unknown;
}

const platform = globalThis as Platform;

/** A variable of the environment; nothing in a browser, or where Deno does not allow to read it. */
export function variable(name: string): string | undefined {
  try {
    return (platform.Deno ? platform.Deno.env.get(name) : platform.process?.env?.[name]) || undefined;
  } catch {
    return undefined;
  }
}

/** Whether Node's own modules are there. Bun and Deno have them, too. */
export const hasNode = (platform.process?.versions?.node !== undefined || platform.Deno !== undefined) && platform.document === undefined;

/** Node itself, whose fetch and WebSocket are not used. */
export const isNode = hasNode && platform.Deno === undefined && platform.Bun === undefined;

async function readIfThere(path: string): Promise<string | undefined> {
  try {
    return (await (await import('#node')).readText(path)).trim();
  } catch {
    return undefined;
  }
}

/** The daemon that runs on this machine, as it says itself. */
async function localDaemon(): Promise<{ url: string; key_file: string } | undefined> {
  const text = await readIfThere(LOCAL);
  try {
    const said: unknown = text && JSON.parse(text);
    if (said && typeof said === 'object' && 'url' in said && 'key_file' in said && 'pid' in said) {
      // The note of a daemon that has ended stays.
      const runs = (await readIfThere(`/proc/${Number(said.pid)}/comm`))?.startsWith('paddock');
      return runs ? { url: String(said.url), key_file: String(said.key_file) } : undefined;
    }
  } catch {
    // A file that is being written.
  }
  return undefined;
}

function isLoopback(url: string): boolean {
  const host = new URL(url).hostname;
  return host === 'localhost' || host === '[::1]' || /^127\.\d+\.\d+\.\d+$/.test(host);
}

async function findKey(url: string, local: { url: string; key_file: string } | undefined): Promise<string> {
  const named = variable('PADDOCK_KEY_FILE');
  if (named) {
    const key = await readIfThere(named);
    if (!key) throw new AuthenticationError(`cannot read the key file ${named}`, { code: 'unauthorized' });
    return key;
  }
  if (isLoopback(url)) {
    for (const file of [...(local?.url === url ? [local.key_file] : []), ...KEY_FILES]) {
      const key = await readIfThere(file);
      if (key) return key;
    }
  }
  throw new AuthenticationError(`no API key for ${url}`, { code: 'unauthorized' });
}

export async function findPlace(options: ClientOptions): Promise<Place> {
  const given = options.url ?? variable('PADDOCK_URL'), key = options.apiKey ?? variable('PADDOCK_API_KEY');
  const browser = !hasNode && typeof location !== 'undefined' ? location.origin : undefined;
  const local = hasNode && (!given || !key) ? await localDaemon() : undefined;
  const url = (given ?? browser ?? local?.url ?? DEFAULT_URL).replace(/\/+$/, '');
  const caFile = hasNode && !options.ca ? variable('PADDOCK_CA') : undefined;
  const ca = options.ca ?? (caFile ? await readIfThere(caFile) : undefined);
  return { url, key: (key ?? (await findKey(url, local))).trim(), ca };
}
