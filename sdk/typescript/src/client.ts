// The client: everything that does not belong to one sandbox.

import type { ClientOptions } from './config.js';
import { type CallOptions, Core } from './core.js';
import { WorkspaceFiles } from './files.js';
import { type EgressState, secretBody } from './network.js';
import { Sandbox } from './sandbox.js';
import type { CreateOptions } from './sandbox.js';
import type {
  Agent, AgentLimits, AgentLimitsChange, AgentLog, AgentManifest, AiAccount, AiAllowance, AuditEntries, AuditPage, Capabilities, Catalogue, Chain, Dialects, EgressPolicy, Event, EventType, Health, Image, Key, KeyCreate, Link, Operations, Posture, Quota,
  Secret, SignerStatus, Snapshot, Spending, Tenant, Transaction, TransactionAnswer, TransactionState, Wallet, WalletConnect, WalletPairing, WalletSession, Webhook,
  WebhookCreate, Workspace,
} from './schema.js';
import { again, sentEventsOf, SSE } from './stream.js';
import { ConnectionError } from './errors.js';
import type { BodySource } from './transport.js';

class Group {
  constructor(protected readonly core: Core) {}
}

export interface ListSandboxesOptions extends CallOptions {
  status?: 'creating' | 'running' | 'paused' | 'stopped';
  metadata?: Record<string, string>;
}

class Sandboxes extends Group {
  create(options: CreateOptions = {}): Promise<Sandbox> {
    return Sandbox.create(options, { core: this.core });
  }
  /** A sandbox by its id or its name. */
  async get(idOrName: string, options: CallOptions = {}): Promise<Sandbox> {
    return new Sandbox(this.core, await this.core.call('getSandbox', { path: { id: idOrName }, ...options }));
  }
  /** All sandboxes, in the order of their creation, page after page. */
  async *list(options: ListSandboxesOptions = {}): AsyncGenerator<Sandbox, void> {
    const { signal, ...query } = options;
    for (let cursor: string | undefined; ; ) {
      const page = await this.core.call('listSandboxes', { query: { ...query, limit: 100, cursor }, signal });
      for (const info of page.sandboxes) yield new Sandbox(this.core, info);
      if (page.next === null) return;
      cursor = page.next;
    }
  }
}

class Snapshots extends Group {
  async list(options: CallOptions = {}): Promise<Snapshot[]> {
    return (await this.core.call('listSnapshots', options)).snapshots;
  }
  get(id: string, options: CallOptions = {}): Promise<Snapshot> {
    return this.core.call('getSnapshot', { path: { id }, ...options });
  }
  remove(id: string, options: CallOptions = {}): Promise<void> {
    return this.core.call('removeSnapshot', { path: { id }, ...options });
  }
}

class Workspaces extends Group {
  create(params: Operations['createWorkspace']['body'] & CallOptions): Promise<Workspace> {
    const { signal, ...json } = params;
    return this.core.call('createWorkspace', { json, signal });
  }
  async list(options: CallOptions = {}): Promise<Workspace[]> {
    return (await this.core.call('listWorkspaces', options)).workspaces;
  }
  get(name: string, options: CallOptions = {}): Promise<Workspace> {
    return this.core.call('getWorkspace', { path: { name }, ...options });
  }
  remove(name: string, options: CallOptions = {}): Promise<void> {
    return this.core.call('removeWorkspace', { path: { name }, ...options });
  }
  /** Its files, without a sandbox. */
  files(name: string): WorkspaceFiles {
    return new WorkspaceFiles(this.core, name);
  }
}

class Images extends Group {
  async list(options: CallOptions = {}): Promise<Image[]> {
    return (await this.core.call('listImages', options)).images;
  }
  /** Creates an image from a snapshot (admin). */
  create(params: Operations['createImage']['body'] & CallOptions): Promise<Image> {
    const { signal, ...json } = params;
    return this.core.call('createImage', { json, signal });
  }
  /** Imports a tar archive of a root file system, or one of `docker save` or an OCI tool (admin). */
  import(name: string, archive: BodySource, options: CallOptions = {}): Promise<Image> {
    return this.core.call('importImage', { path: { name }, raw: archive, type: 'application/x-tar', ...options });
  }
  remove(name: string, options: CallOptions = {}): Promise<void> {
    return this.core.call('removeImage', { path: { name }, ...options });
  }
}

class Keys extends Group {
  /** The key itself is in this answer only. */
  create(params: KeyCreate & CallOptions = {}): Promise<Key> {
    const { signal, ...json } = params;
    return this.core.call('createKey', { json, signal });
  }
  async list(options: CallOptions = {}): Promise<Key[]> {
    return (await this.core.call('listKeys', options)).keys;
  }
  remove(id: string, options: CallOptions = {}): Promise<void> {
    return this.core.call('removeKey', { path: { id }, ...options });
  }
}

export interface EventOptions extends CallOptions {
  /** The id of the last event that was seen. */
  after?: number;
  /** Only of this sandbox, by its id. */
  sandbox?: string;
  /** Only of these types. */
  types?: EventType[];
}

/** The id of no sandbox: a page of its events is empty, and tells the number of the last event of all. */
const NOBODY = '0'.repeat(20);

class Events extends Group {
  private query({ after, sandbox, types }: EventOptions) {
    return { after, sandbox, type: types?.join(',') };
  }
  /** The events that are kept, the oldest first, page after page. */
  async *list(options: EventOptions = {}): AsyncGenerator<Event, void> {
    for (let after = options.after; ; ) {
      const page = await this.core.call('listEvents', { query: { ...this.query(options), after, limit: 500 }, signal: options.signal });
      if (page.events.length === 0) return;
      yield* page.events;
      after = page.next;
    }
  }
  /**
   * Events as they happen, without an end: from the next one, or after `after`. A broken connection resumes after the last
   * event. `onLost` is called when the server had to drop events in between, `onReady` when the server listens.
   */
  async *stream(options: EventOptions & { onLost?: () => void; onReady?: () => void } = {}): AsyncGenerator<Event, void> {
    const { signal } = options;
    // Without a number to resume after, a connection that breaks before the first event would lose those in between.
    let after = options.after ?? (await this.core.call('listEvents', { query: { sandbox: NOBODY, limit: 1 }, signal })).next;
    for (let first = true; ; first = false) {
      const open = () => this.core.body('listEvents', { query: { ...this.query(options), after }, accept: SSE, signal });
      const answer = first ? await open() : await again(this.core, options, open);
      if (first) options.onReady?.();
      try {
        for await (const { event, data } of sentEventsOf(answer)) {
          if (event === 'lost') {
            options.onLost?.();
            continue;
          }
          const told = JSON.parse(data) as Event;
          after = told.id;
          yield told;
        }
      } catch (e) {
        if (!(e instanceof ConnectionError)) throw e;
      } finally {
        answer.discard();
      }
    }
  }
}

/** Agents that are installed from manifests. */
class Agents extends Group {
  /** What a manifest asks for, as the daemon understands it. Nothing is installed. */
  async preview(manifest: AgentManifest, options: CallOptions = {}): Promise<AgentManifest> {
    return (await this.core.call('installAgent', { json: { manifest, consent: false }, ...options })).manifest;
  }
  /** Consents to what the manifest asks for. The agent waits for its files (`upload`). */
  install(manifest: AgentManifest, options: { name?: string } & CallOptions = {}): Promise<Agent> {
    const { name, ...rest } = options;
    return this.core.call('installAgent', { json: { manifest, name, consent: true }, ...rest }) as Promise<Agent>;
  }
  /** Its files, as a tar archive. The image is built from them: the agent is `building` until it is `stopped` or `failed`. */
  upload(id: string, archive: BodySource, options: CallOptions = {}): Promise<Agent> {
    return this.core.call('uploadAgentCode', { path: { id }, raw: archive, type: 'application/x-tar', ...options });
  }
  /** What a new version asks for, and what of that is new. Nothing changes. */
  previewUpgrade(id: string, manifest: AgentManifest, options: CallOptions = {}): Promise<{ manifest: AgentManifest; asks_more: string[] }> {
    return this.core.call('upgradeAgent', { path: { id }, json: { manifest, consent: false }, ...options }) as Promise<{ manifest: AgentManifest; asks_more: string[] }>;
  }
  /** Consents to what the new version asks for. The agent goes on, and waits for the new files (`upload`). */
  upgrade(id: string, manifest: AgentManifest, options: CallOptions = {}): Promise<Agent> {
    return this.core.call('upgradeAgent', { path: { id }, json: { manifest, consent: true }, ...options }) as Promise<Agent>;
  }
  /** The catalogues of the configuration. */
  async catalogues(options: CallOptions = {}): Promise<Catalogue[]> {
    return (await this.core.call('listCatalogues', options)).catalogues;
  }
  async list(options: CallOptions = {}): Promise<Agent[]> {
    return (await this.core.call('listAgents', options)).agents;
  }
  get(id: string, options: CallOptions = {}): Promise<Agent> {
    return this.core.call('getAgent', { path: { id }, ...options });
  }
  start(id: string, options: CallOptions = {}): Promise<Agent> {
    return this.core.call('startAgent', { path: { id }, ...options });
  }
  stop(id: string, options: CallOptions = {}): Promise<Agent> {
    return this.core.call('stopAgent', { path: { id }, ...options });
  }
  restart(id: string, options: CallOptions = {}): Promise<Agent> {
    return this.core.call('restartAgent', { path: { id }, ...options });
  }
  /** The newest entries, or those behind the one with the id `after`. */
  async logs(id: string, options: { level?: AgentLog['level']; after?: number; limit?: number } & CallOptions = {}): Promise<AgentLog[]> {
    const { signal, ...query } = options;
    return (await this.core.call('listAgentLogs', { path: { id }, query, signal })).entries;
  }
  remove(id: string, options: CallOptions = {}): Promise<void> {
    return this.core.call('removeAgent', { path: { id }, ...options });
  }
  /** What it may spend. Empty rules allow nothing. */
  limits(id: string, options: CallOptions = {}): Promise<AgentLimits> {
    return this.core.call('getAgentLimits', { path: { id }, ...options });
  }
  /** Makes its limits stricter; what allows more than before is refused. `{ paused: true }` pauses it. */
  restrict(id: string, change: AgentLimitsChange, options: CallOptions = {}): Promise<AgentLimits> {
    return this.core.call('setAgentLimits', { path: { id }, json: change, ...options });
  }
  /** What it has spent, beside its limits. */
  spending(id: string, options: CallOptions = {}): Promise<Spending> {
    return this.core.call('getAgentSpending', { path: { id }, ...options });
  }
}

export interface TransactionFilter {
  agent?: string;
  state?: TransactionState;
  /** Such as `eip155:1`. */
  chain?: string;
  /** The address of a token, or `native`. */
  asset?: string;
}

/** What agents ask to spend or to sign, and the decisions of people. */
class Transactions extends Group {
  /** The newest first, without cards, page after page. */
  async *list(options: TransactionFilter & CallOptions = {}): AsyncGenerator<Transaction, void> {
    const { signal, ...query } = options;
    for (let after: string | undefined; ; ) {
      const page = await this.core.call('listTransactions', { query: { ...query, limit: 100, after }, signal });
      yield* page.transactions;
      if (page.next === null) return;
      after = page.next;
    }
  }
  /** The newest 10,000 as CSV. */
  async exportCsv(options: TransactionFilter & CallOptions = {}): Promise<string> {
    const { signal, ...query } = options;
    return await (await this.core.body('listTransactions', { query: { ...query, format: 'csv' }, signal })).text();
  }
  /** With its card: everything that a person needs to decide. */
  get(id: string, options: CallOptions = {}): Promise<Transaction> {
    return this.core.call('getTransaction', { path: { id }, ...options });
  }
  /** `digest` is that of the transaction which a person saw. */
  approve(id: string, digest: string, options: CallOptions = {}): Promise<Transaction> {
    return this.core.call('approveTransaction', { path: { id }, json: { digest }, ...options });
  }
  reject(id: string, options: { note?: string } & CallOptions = {}): Promise<Transaction> {
    const { signal, ...json } = options;
    return this.core.call('rejectTransaction', { path: { id }, json, signal });
  }
  /** Withdraws it; one that was sent is replaced by a transaction that sends nothing. */
  cancel(id: string, options: { note?: string } & CallOptions = {}): Promise<Transaction> {
    const { signal, ...json } = options;
    return this.core.call('cancelTransaction', { path: { id }, json, signal });
  }
  /** Sends it again with higher fees. */
  speedUp(id: string, options: { note?: string } & CallOptions = {}): Promise<Transaction> {
    const { signal, ...json } = options;
    return this.core.call('speedUpTransaction', { path: { id }, json, signal });
  }
  /** Takes back the allowance that it gave: a new transaction, which is to be approved. */
  revoke(id: string, options: { note?: string } & CallOptions = {}): Promise<Transaction> {
    const { signal, ...json } = options;
    return this.core.call('revokeTransaction', { path: { id }, json, signal });
  }
  /** What an external wallet did. */
  answer(id: string, answer: TransactionAnswer, options: CallOptions = {}): Promise<Transaction> {
    return this.core.call('answerTransaction', { path: { id }, json: answer, ...options });
  }
}

/** Wallets that agents spend from. They are added on the machine itself (`paddock wallet`). */
class Wallets extends Group {
  async list(options: CallOptions = {}): Promise<Wallet[]> {
    return (await this.core.call('listWallets', options)).wallets;
  }
  /** What all agents together have spent from it (admin). */
  spending(id: string, options: CallOptions = {}): Promise<Spending> {
    return this.core.call('getWalletSpending', { path: { id }, ...options });
  }
  /** A URI for a WalletConnect wallet, to be shown as a QR code (admin). */
  connect(params: WalletConnect & CallOptions = {}): Promise<WalletPairing> {
    const { signal, ...json } = params;
    return this.core.call('connectWallet', { json, signal });
  }
  /** Sessions with WalletConnect wallets (admin). */
  async sessions(options: CallOptions = {}): Promise<WalletSession[]> {
    return (await this.core.call('listWalletSessions', options)).sessions;
  }
  disconnect(id: string, options: CallOptions = {}): Promise<void> {
    return this.core.call('removeWalletSession', { path: { id }, ...options });
  }
}

/** The program that holds the keys and decides what is signed. */
class Signer extends Group {
  get(options: CallOptions = {}): Promise<SignerStatus> {
    return this.core.call('getSigner', options);
  }
  /** The kill switch (admin). Only the owner ends it, on the machine itself. */
  pause(options: { cancel_pending?: boolean } & CallOptions = {}): Promise<SignerStatus> {
    const { signal, ...rest } = options;
    return this.core.call('pauseSigner', { json: { paused: true, ...rest }, signal });
  }
  /** The chain of entries (admin). With `verify` the signer checks all of it first. */
  audit(options: { after?: number; limit?: number; verify?: boolean } & CallOptions = {}): Promise<AuditEntries> {
    const { signal, ...query } = options;
    return this.core.call('listSignerAudit', { query, signal });
  }
  /** The chains of the configuration, with their health. */
  async chains(options: CallOptions = {}): Promise<Chain[]> {
    return (await this.core.call('listChains', options)).chains;
  }
}

class Audit extends Group {
  /** Who did what, the newest first: a page. `next` is the `cursor` of the next one. */
  list(options: Operations['listAudit']['query'] & CallOptions = {}): Promise<AuditPage> {
    const { signal, ...query } = options;
    return this.core.call('listAudit', { query, signal });
  }
}

class Webhooks extends Group {
  /** The secret is in this answer only. `verifyWebhook` checks what arrives. */
  create(params: WebhookCreate & CallOptions): Promise<Webhook> {
    const { signal, ...json } = params;
    return this.core.call('createWebhook', { json, signal });
  }
  async list(options: CallOptions = {}): Promise<Webhook[]> {
    return (await this.core.call('listWebhooks', options)).webhooks;
  }
  /** A webhook with its last deliveries. */
  get(id: string, options: CallOptions = {}): Promise<Webhook> {
    return this.core.call('getWebhook', { path: { id }, ...options });
  }
  remove(id: string, options: CallOptions = {}): Promise<void> {
    return this.core.call('removeWebhook', { path: { id }, ...options });
  }
}

/** The secrets of the tenant. Values go in and never come out. */
class Secrets extends Group {
  async list(options: CallOptions = {}): Promise<Secret[]> {
    return (await this.core.call('listSecrets', options)).secrets;
  }
  set(name: string, value: string | Uint8Array, options: CallOptions = {}): Promise<Secret> {
    return this.core.call('setSecret', { path: { name }, json: secretBody(value), ...options });
  }
  remove(name: string, options: CallOptions = {}): Promise<void> {
    return this.core.call('removeSecret', { path: { name }, ...options });
  }
}

class Vault extends Group {
  /** Rotates the master key (admin). */
  rotate(options: CallOptions = {}): Promise<Operations['rotateVault']['result']> {
    return this.core.call('rotateVault', options);
  }
  /** The certificate, in PEM, of the authority for connections that the gate intercepts. */
  async authority(options: CallOptions = {}): Promise<string> {
    return await (await this.core.body('getAuthority', options)).text();
  }
}

class Links extends Group {
  /** Connects a port of one sandbox to another sandbox. */
  create(params: Operations['createLink']['body'] & CallOptions): Promise<Link> {
    const { signal, ...json } = params;
    return this.core.call('createLink', { json, signal });
  }
  async list(options: CallOptions = {}): Promise<Link[]> {
    return (await this.core.call('listLinks', options)).links;
  }
  remove(id: string, options: CallOptions = {}): Promise<void> {
    return this.core.call('deleteLink', { path: { id }, ...options });
  }
}

/** Tenants, their quotas and policies (admin). */
class Tenants extends Group {
  create(name: string, options: CallOptions = {}): Promise<Tenant> {
    return this.core.call('createTenant', { json: { name }, ...options });
  }
  async list(options: CallOptions = {}): Promise<Tenant[]> {
    return (await this.core.call('listTenants', options)).tenants;
  }
  /** A tenant with its quota and what it uses. */
  get(id: string, options: CallOptions = {}): Promise<Tenant> {
    return this.core.call('getQuota', { path: { id }, ...options });
  }
  /** Replaces the whole quota. */
  setQuota(id: string, quota: Quota, options: CallOptions = {}): Promise<Tenant> {
    return this.core.call('setQuota', { path: { id }, json: quota, repeatable: true, ...options });
  }
  getAi(id: string, options: CallOptions = {}): Promise<AiAccount> {
    return this.core.call('getTenantAi', { path: { id }, ...options });
  }
  setAi(id: string, limits: AiAllowance, options: CallOptions = {}): Promise<AiAccount> {
    return this.core.call('setTenantAi', { path: { id }, json: limits, repeatable: true, ...options });
  }
  changeAi(id: string, limits: AiAllowance, options: CallOptions = {}): Promise<AiAccount> {
    return this.core.call('changeTenantAi', { path: { id }, json: limits, ...options });
  }
  getEgress(id: string, options: CallOptions = {}): Promise<EgressState> {
    return this.core.call('getTenantEgress', { path: { id }, ...options });
  }
  setEgress(id: string, policy: EgressPolicy, options: CallOptions = {}): Promise<EgressState> {
    return this.core.call('setTenantEgress', { path: { id }, json: policy, repeatable: true, ...options });
  }
  resetEgress(id: string, options: CallOptions = {}): Promise<EgressState> {
    return this.core.call('resetTenantEgress', { path: { id }, ...options });
  }
}

/** A server. `new Paddock()` finds the address and the key as the command line does. */
export class Paddock {
  readonly core: Core;
  readonly sandboxes: Sandboxes;
  readonly snapshots: Snapshots;
  readonly workspaces: Workspaces;
  readonly images: Images;
  readonly keys: Keys;
  readonly tenants: Tenants;
  readonly events: Events;
  readonly audit: Audit;
  readonly agents: Agents;
  readonly transactions: Transactions;
  readonly wallets: Wallets;
  readonly signer: Signer;
  readonly webhooks: Webhooks;
  readonly secrets: Secrets;
  readonly vault: Vault;
  readonly links: Links;

  constructor(options: ClientOptions = {}) {
    this.core = new Core(options);
    this.sandboxes = new Sandboxes(this.core);
    this.snapshots = new Snapshots(this.core);
    this.workspaces = new Workspaces(this.core);
    this.images = new Images(this.core);
    this.keys = new Keys(this.core);
    this.tenants = new Tenants(this.core);
    this.events = new Events(this.core);
    this.audit = new Audit(this.core);
    this.agents = new Agents(this.core);
    this.transactions = new Transactions(this.core);
    this.wallets = new Wallets(this.core);
    this.signer = new Signer(this.core);
    this.webhooks = new Webhooks(this.core);
    this.secrets = new Secrets(this.core);
    this.vault = new Vault(this.core);
    this.links = new Links(this.core);
  }

  /** Usage of models, by `tenant`, `box`, `model` and so on. */
  usage(query: Operations['getUsage']['query'] & CallOptions = {}): Promise<Operations['getUsage']['result']> {
    const { signal, ...rest } = query;
    return this.core.call('getUsage', { query: rest, signal });
  }
  /** The egress sets of the installation. */
  egressSets(options: CallOptions = {}): Promise<Operations['listEgressSets']['result']> {
    return this.core.call('listEgressSets', options);
  }
  /** The isolation features of the machine (admin). */
  posture(options: CallOptions = {}): Promise<Posture> {
    return this.core.call('getPosture', options);
  }
  /** The features and limits of the server. */
  capabilities(options: CallOptions = {}): Promise<Capabilities> {
    return this.core.call('getCapabilities', options);
  }
  /** Which APIs are served at which address (admin). */
  dialects(options: CallOptions = {}): Promise<Dialects> {
    return this.core.call('getDialects', options);
  }
  /** Whether the server answers. */
  health(options: CallOptions = {}): Promise<Health> {
    return this.core.call('health', options);
  }
  /** The same as `health`, at the path that Kubernetes uses. */
  healthz(options: CallOptions = {}): Promise<Health> {
    return this.core.call('healthz', options);
  }
  /** Whether the server is ready; an UnavailableError if it is not. */
  ready(options: CallOptions = {}): Promise<Health> {
    return this.core.call('readyz', options);
  }
  /** Metrics in the Prometheus text format (admin). */
  async metrics(options: CallOptions = {}): Promise<string> {
    return await (await this.core.body('metrics', options)).text();
  }
  /** The description of the API. */
  openapi(options: CallOptions = {}): Promise<Record<string, unknown>> {
    return this.core.call('openapi', options);
  }
}
