// Ports, egress, secrets and models of one sandbox.

import type { CallOptions, Core } from './core.js';
import type {
  AiAllowance, AiCall, EgressPolicy, EgressRule, EgressSets, EgressVerdict, Operations, Ports as PortList, SandboxAi, Secret, SecretValue,
} from './schema.js';
import { Tunnel } from './terminal.js';

export type EgressState = Operations['getEgress']['result'];
type EgressToken = Operations['createEgressToken']['result'];
type SetsWithSources = Operations['listEgressSets']['result'];

export interface EgressOptions extends CallOptions {
  /** What becomes of open connections that are not allowed any more. */
  open?: 'keep' | 'close';
}

/** The operation for a request to a server in a sandbox, by its method. */
const PORT = { GET: 'portGet', HEAD: 'portHead', POST: 'portPost', PUT: 'portPut', PATCH: 'portPatch', DELETE: 'portDelete', OPTIONS: 'portOptions' } as const;
const PREVIEW = {
  GET: 'previewGet', HEAD: 'previewHead', POST: 'previewPost', PUT: 'previewPut', PATCH: 'previewPatch', DELETE: 'previewDelete', OPTIONS: 'previewOptions',
} as const;

type Method = keyof typeof PORT;

function methodOf(init: RequestInit | undefined): Method {
  const method = (init?.method ?? 'GET').toUpperCase();
  if (!(method in PORT)) throw new TypeError(`the method ${method} is not passed on`);
  return method as Method;
}

/** A signed link to a port: whoever has it can reach the port until it expires. */
export class Preview {
  constructor(private readonly core: Core, readonly url: string, readonly expires_at: string) {}
  /** A request through the link, without a key. */
  async fetch(path = '/', init?: RequestInit): Promise<Response> {
    const link = new URL(this.url), [, id, port, first] = /^\/v1\/previews\/([^/]+)\/(\d+)\/([^/]+)/.exec(link.pathname) ?? [];
    // Under a domain, the link names a host of the port's own. It is reached at the server's address as well.
    const [, own, box] = /^(\d+)-([a-z0-9]{20})\./.exec(link.hostname) ?? [], ticket = first ?? link.searchParams.get('paddock_ticket');
    return await this.core.fetch(PREVIEW[methodOf(init)], { path: { id: id ?? box, port: port ?? own, ticket, path } }, init, {});
  }
}

export class Ports {
  constructor(private readonly core: Core, private readonly id: string) {}

  /** The listening ports, and the token that opens them. */
  list(options: CallOptions = {}): Promise<PortList> {
    return this.core.call('listPorts', { path: { id: this.id }, ...options });
  }
  /** The address of a port, whether something listens there or not. */
  async url(port: number, options: CallOptions = {}): Promise<string> {
    const found = (await this.core.call('listPorts', { path: { id: this.id }, query: { port }, ...options })) as unknown as { url: string };
    return found.url.startsWith('/') ? (await this.core.where()).url + found.url : found.url;
  }
  /** A request to a server in the sandbox, as fetch does it. */
  async fetch(port: number, path = '/', init?: RequestInit): Promise<Response> {
    return await this.core.fetch(PORT[methodOf(init)], { path: { id: this.id, port, path } }, init);
  }
  /** A link to a port that needs no key. */
  async preview(port: number, options: { expires_seconds?: number } & CallOptions = {}): Promise<Preview> {
    const { signal, ...rest } = options;
    const { url, expires_at } = await this.core.call('createPreview', { path: { id: this.id }, json: { port, ...rest }, signal });
    return new Preview(this.core, url.startsWith('/') ? (await this.core.where()).url + url : url, expires_at);
  }
  /** A TCP connection to a port. */
  tunnel(port: number): Promise<Tunnel> {
    return Tunnel.open(this.core, this.id, port);
  }
}

/** The egress policy of a sandbox, and the log of its connections. */
export class Egress {
  constructor(private readonly core: Core, private readonly id: string) {}

  get(options: CallOptions = {}): Promise<EgressState> {
    return this.core.call('getEgress', { path: { id: this.id }, ...options });
  }
  /** Sets the whole policy. */
  set(policy: EgressPolicy, options: EgressOptions = {}): Promise<EgressState> {
    const { signal, ...query } = options;
    return this.core.call('setEgress', { path: { id: this.id }, json: policy, query, repeatable: true, signal });
  }
  /** Removes the sandbox's own policy. */
  reset(options: EgressOptions = {}): Promise<EgressState> {
    const { signal, ...query } = options;
    return this.core.call('resetEgress', { path: { id: this.id }, query, signal });
  }
  /** Allows targets: sets (`pypi`), hosts, networks or URLs. */
  allow(targets: string | readonly string[], options: EgressOptions & { inject?: EgressRule['inject'] } = {}): Promise<EgressState> {
    return this.add('allow', targets, options);
  }
  deny(targets: string | readonly string[], options: EgressOptions = {}): Promise<EgressState> {
    return this.add('deny', targets, options);
  }
  private add(action: 'allow' | 'deny', given: string | readonly string[], options: EgressOptions & { inject?: EgressRule['inject'] }): Promise<EgressState> {
    const { signal, open, inject } = options, targets = typeof given === 'string' ? [given] : [...given];
    return this.core.call('addEgressRules', {
      path: { id: this.id }, query: { open }, json: { action, targets, ...(inject ? { inject } : {}) }, signal,
    });
  }
  /** A token that restricts the gate's proxy further. */
  token(params: { allowed_hosts: string[]; ttl_seconds?: number } & CallOptions): Promise<EgressToken> {
    const { signal, ...json } = params;
    return this.core.call('createEgressToken', { path: { id: this.id }, json, signal });
  }
  /** The sets that its policy can name, with their hosts. */
  sets(options: CallOptions = {}): Promise<SetsWithSources> {
    return this.core.call('listSandboxEgressSets', { path: { id: this.id }, ...options });
  }
  /** The entries of the log, the oldest first, page after page. */
  async *log(options: { after?: number; verdict?: 'allow' | 'deny' } & CallOptions = {}): AsyncGenerator<EgressVerdict, void> {
    const { signal, ...rest } = options;
    for (let after = rest.after ?? 0; ; ) {
      const page = await this.core.call('getEgressLog', { path: { id: this.id }, query: { ...rest, after, limit: 256 }, signal });
      if (page.verdicts.length === 0) return;
      yield* page.verdicts;
      after = page.next;
    }
  }
}

export type { EgressSets };

/** A value as the API takes it. */
export function secretBody(value: string | Uint8Array): SecretValue {
  if (typeof value === 'string') return { value };
  let text = '';
  for (const byte of value) text += String.fromCharCode(byte);
  return { value: btoa(text), encoding: 'base64' };
}

/** The secrets of one sandbox. Values go in and never come out. */
export class SandboxSecrets {
  constructor(private readonly core: Core, private readonly id: string) {}
  async list(options: CallOptions = {}): Promise<Secret[]> {
    return (await this.core.call('listSandboxSecrets', { path: { id: this.id }, ...options })).secrets;
  }
  set(name: string, value: string | Uint8Array, options: CallOptions = {}): Promise<Secret> {
    return this.core.call('setSandboxSecret', { path: { id: this.id, name }, json: secretBody(value), ...options });
  }
  remove(name: string, options: CallOptions = {}): Promise<void> {
    return this.core.call('removeSandboxSecret', { path: { id: this.id, name }, ...options });
  }
}

/** The access of one sandbox to models. */
export class SandboxModels {
  constructor(private readonly core: Core, private readonly id: string) {}
  get(options: CallOptions = {}): Promise<SandboxAi> {
    return this.core.call('getSandboxAi', { path: { id: this.id }, ...options });
  }
  /** Sets all limits. */
  set(limits: AiAllowance, options: CallOptions = {}): Promise<SandboxAi> {
    return this.core.call('setSandboxAi', { path: { id: this.id }, json: limits, repeatable: true, ...options });
  }
  /** Changes the limits that are given. */
  change(limits: AiAllowance, options: CallOptions = {}): Promise<SandboxAi> {
    return this.core.call('changeSandboxAi', { path: { id: this.id }, json: limits, ...options });
  }
  /** A new token; the old one is not valid any more. */
  rotateToken(options: { ttl_seconds?: number } & CallOptions = {}): Promise<SandboxAi> {
    const { signal, ...json } = options;
    return this.core.call('rotateSandboxAiToken', { path: { id: this.id }, json, signal });
  }
  /** The calls, the newest first, page after page. */
  async *calls(options: CallOptions = {}): AsyncGenerator<AiCall, void> {
    for (let before: number | undefined; ; ) {
      const page = await this.core.call('listSandboxAiCalls', { path: { id: this.id }, query: { limit: 100, before }, ...options });
      yield* page.calls;
      if (page.next === null) return;
      before = page.next;
    }
  }
  call(call: number, options: CallOptions = {}): Promise<Operations['getSandboxAiCall']['result']> {
    return this.core.call('getSandboxAiCall', { path: { id: this.id, call }, ...options });
  }
  /** A request to a model provider in the name of the sandbox, with its token. */
  async fetch(provider: 'openai' | 'anthropic', path: string, init?: RequestInit): Promise<Response> {
    const { token } = await this.get(init?.signal ? { signal: init.signal } : {});
    const name = methodOf(init) === 'GET' ? 'aiGet' : 'aiPost';
    return await this.core.fetch(name, { path: { provider, path } }, init, { authorization: `Bearer ${token}` });
  }
}
