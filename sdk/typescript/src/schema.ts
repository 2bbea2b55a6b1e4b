// Made by sdk/typescript/generate from api/openapi.yaml: do not edit.

/** A body that is not JSON: bytes. */
export type Bytes = Uint8Array;

export interface Error {
  error: {
    code: ErrorCode;
    message: string;
    request_id: string;
  };
}

/** From src/base/err_codes.def; docs/errors.md explains them. */
export type ErrorCode = 'invalid_argument' | 'bad_request' | 'unauthorized' | 'forbidden' | 'not_found' | 'method_not_allowed' | 'conflict' | 'wrong_state' | 'gone' | 'length_required' | 'too_large' | 'uri_too_long' | 'unsupported_media' | 'range_not_satisfiable' | 'expectation_failed' | 'quota_exceeded' | 'rate_limited' | 'header_too_large' | 'cancelled' | 'internal' | 'not_supported' | 'cannot_isolate' | 'unavailable' | 'timeout' | 'http_version_not_supported' | 'storage_full' | 'command_not_found' | 'not_executable';

export interface Limits {
  /** Cores. */
  cpu: number;
  /** Memory and swap together. */
  memory_mb: number;
  /** Processes and threads. */
  pids: number;
  /** Open files of a process. */
  nofile: number;
  /** Limit of its own files, enforced by the file system; absent if there is none. */
  disk_mb?: number;
}

/** What happens when the sandbox expires or was idle for too long. */
export type OnEnd = 'delete' | 'stop' | 'pause';

export interface SandboxChange {
  /** Replaces all entries. */
  metadata?: Record<string, string> | null;
  /** 0 means that it may be idle forever. */
  idle_seconds?: number | null;
  on_end?: 'delete' | 'stop' | 'pause' | null;
  auto_resume?: boolean | null;
  ports_public?: boolean | null;
  /** A new name. The host name inside does not change. */
  name?: string | null;
  /** Time until it expires, counted from now; 0 means never. */
  ttl_seconds?: number | null;
  /** Applied at once, also while it runs. A memory limit below the current usage is refused (`wrong_state`). */
  limits?: {
    cpu?: number | null;
    memory_mb?: number | null;
    pids?: number | null;
    /** Refused, because processes get this limit when they start. */
    nofile?: number | null;
    disk_mb?: number | null;
  } | null;
}

export interface SandboxCreate {
  /** Unique among the tenant's sandboxes; usable instead of the id. */
  name?: string | null;
  /** A name or a digest. */
  image?: string | null;
  /**
   * The kind of isolation, one of `backends` of `/v1/capabilities`. When absent it is that of the snapshot,
   * or the default. A snapshot of another backend is refused, unless this one can start from
   * `foreign_snapshots`.
   */
  backend?: string | null;
  /** The user of the image that runs commands. */
  user?: string | null;
  /** Variables of every command. */
  env?: Record<string, string> | null;
  /** The working directory of commands; an absolute path that exists. */
  workdir?: string | null;
  /** Absent limits have the configured default; /v1/capabilities has the maxima. */
  limits?: {
    cpu?: number | null;
    memory_mb?: number | null;
    pids?: number | null;
    nofile?: number | null;
    /**
     * Needs storage on btrfs. The configured default, or the share of a tenant with a quota of disk, when
     * absent.
     */
    disk_mb?: number | null;
  } | null;
  /** The sandbox expires after this time. 0 means never, if the configuration allows that. */
  ttl_seconds?: number | null;
  /**
   * The sandbox ends when it was not used for this time. Every command and every file operation is a use,
   * and so is any operation that is still in progress. Showing the sandbox is not a use.
   */
  idle_seconds?: number | null;
  on_end?: 'delete' | 'stop' | 'pause' | null;
  /** The next use of a paused sandbox resumes it. */
  auto_resume?: boolean | null;
  /** A snapshot's name or id, instead of an image. */
  snapshot?: string | null;
  /** A workspace to mount at /workspace. When absent, the sandbox has its own, which is deleted with it. */
  workspace?: null | string | {
    name: string;
    /** Only one running sandbox at a time may mount it rw; any number may read. */
    mode?: 'rw' | 'ro' | null;
  };
  /**
   * Workspaces and where to mount them. Together with `workspace` at most 8. No mount may lie in another
   * one of these or of `mounts`. A path that is missing is created; a path that leads through a symbolic
   * link is refused, also at a later start.
   */
  workspaces?: Array<{
    name: string;
    /** Absolute, without `..`, and not in /proc, /sys, /dev or /run. Default /workspace. */
    path?: string | null;
    /** Only one running sandbox at a time may mount it rw; any number may read. */
    mode?: 'rw' | 'ro' | null;
  }> | null;
  /** At most 64 entries; a list can be filtered by them. */
  metadata?: Record<string, string> | null;
  /**
   * Secrets that are mounted at every start, as files in memory and as variables of every process. They are
   * not part of snapshots and forks.
   */
  secrets?: Array<SecretMount> | null;
  /**
   * Directories of the daemon's machine that are mounted at every start. Only for administrators and for
   * tenants that `mounts.allow` of the configuration names; refused (403) otherwise. Not part of snapshots
   * and forks.
   */
  mounts?: Array<HostMount> | null;
  /** Makes everything but /workspace, /tmp and /dev/shm read-only. */
  readonly_root?: boolean | null;
  /**
   * Whether its users can become root with `sudo` and `su`, without a password. A file /etc/paddock/no-sudo
   * in the image, or `defaults.sudo: false` in the configuration, also turns it off.
   */
  sudo?: boolean | null;
  /**
   * Time zone: /etc/localtime and /etc/timezone are set at every start. By default `defaults.timezone` of
   * the configuration, or whatever the files of the image or snapshot say.
   */
  timezone?: string | null;
  /**
   * Isolation features that this sandbox must have at every start. If one is not available, the create
   * fails with `cannot_isolate` and names it.
   */
  require?: Array<Feature> | null;
  ai?: AiAllowance | null;
  /** Its egress policy. When absent, the policy of its image, tenant or the installation applies. */
  egress?: null | EgressPolicy;
  /** Anyone who knows the id can reach its ports without a key, a token or a signed link. */
  ports_public?: boolean | null;
  /**
   * The sandbox lives as long as this connection. The answer is a stream (`application/x-ndjson`): the
   * sandbox as one line, then empty lines. When the client disconnects for any reason, the sandbox is
   * deleted; when the sandbox is gone, the stream ends.
   */
  delete_on_disconnect?: boolean | null;
  /** The Host header that its servers see instead of the client's; `${PORT}` stands for the port. */
  mask_host?: string | null;
}

export interface Link {
  id: string;
  /** Its id. */
  from: string;
  /** Its id. */
  to: string;
  port: number;
  listen: number;
  /** Whether `from` listens. It does not while it is stopped or the port is in use. */
  up: boolean;
}

export interface Ports {
  public: boolean;
  /**
   * Opens the ports of this sandbox and nothing else, in the header `X-Paddock-Traffic-Token` or
   * `E2b-Traffic-Access-Token`.
   */
  traffic_token: string;
  ports: Array<{
    port: number;
    address: string;
    /** null if PID 1 cannot see which process it is. */
    pid: number | null;
    process: string | null;
    /** The address of this port; private unless the sandbox has `ports_public`. */
    url: string;
  }>;
}

export interface Sandbox {
  id: string;
  name: string | null;
  /** A stopped sandbox has files but no processes and can be started again. */
  status: 'creating' | 'running' | 'paused' | 'stopped' | 'deleting';
  /** As given in the request. */
  image: string;
  /** The digest of the image at that time. */
  image_digest: string;
  /** The kind of its isolation: one of `backends` of `/v1/capabilities`. */
  backend: string;
  tenant: string;
  user: string;
  workdir: string;
  created_at: string;
  expires_at: string | null;
  /** 0 means that it may be idle forever. */
  idle_seconds: number;
  on_end: OnEnd;
  auto_resume: boolean;
  /** The snapshot it was created from, as given in the request. */
  snapshot: string | null;
  /** The workspace at /workspace; null means its own. */
  workspace: {
    name: string;
    mode: 'rw' | 'ro';
  } | null;
  /** All workspaces that it mounts, also the one at /workspace. */
  workspaces: Array<{
    name: string;
    path: string;
    mode: 'rw' | 'ro';
  }>;
  limits: Limits;
  disk: {
    /** The last measurement. Showing this one sandbox makes a new one; null before the first. */
    used_bytes: number | null;
    limit_mb: number | null;
  };
  secrets: Array<SecretMount>;
  mounts?: Array<HostMount>;
  readonly_root: boolean;
  /** null: as the files of its image or snapshot say. */
  timezone?: string | null;
  /** Whether its users become root by `sudo` and `su`. */
  sudo: boolean;
  require: Array<Feature>;
  ports_public: boolean;
  metadata: Record<string, string>;
}

export interface Snapshot {
  id: string;
  name: string | null;
  tenant: string;
  /** The image of the original sandbox. */
  image: string;
  image_digest: string;
  /** The backend of the original sandbox. A sandbox made from the snapshot has the same. */
  backend: string;
  /** Size of the sandbox's own files; shared with the sandbox until one of them changes. */
  bytes: number;
  /** How long the sandbox was frozen, in microseconds. */
  stopped_us: number;
  created_at: string;
}

export interface Workspace {
  id: string;
  name: string;
  tenant: string;
  disk: {
    used_bytes: number;
    limit_mb: number | null;
  };
  /** Whether it is a snapshot of another workspace, which never changes. */
  readonly: boolean;
  /** The sandboxes that refer to it. */
  used_by: Array<{
    id: string;
    /** Where it is mounted. */
    path: string;
    mode: 'rw' | 'ro';
    status: string;
  }>;
  created_at: string;
}

export interface SandboxPage {
  sandboxes: Array<Sandbox>;
  /** The cursor of the next page; null on the last. */
  next: string | null;
}

export interface Stats {
  memory_bytes: number;
  memory_limit_bytes: number;
  /** Since the sandbox was created. */
  cpu_usec: number;
  /** Of its own files. */
  disk_bytes: number;
  /** 0: none. */
  disk_limit_bytes: number;
  pids: number;
  pids_limit: number;
  oom_kills: number;
  /**
   * Received in its network namespace since it was started. That has only a loopback interface, so what is
   * sent within the sandbox counts, too, and is received as it is sent.
   */
  net_rx_bytes: number;
  net_tx_bytes: number;
  /** With `?history=1`; the oldest first. */
  history?: Array<{
    at: string;
    cpu_usec: number;
    memory_bytes: number;
    disk_bytes: number;
    pids: number;
    oom_kills: number;
    net_rx_bytes: number;
    net_tx_bytes: number;
  }>;
}

/**
 * `started`: a stopped sandbox runs again. `exited`: it has ended by itself. `stopped`: somebody, or the
 * end of its time, stopped it. `oom`: something in it was killed for want of memory. `expired`: its time
 * was over, or it was idle for too long; what comes of that follows. `ai.budget.warning`: a budget for
 * models is spent as far as its `warn` says, once in a period. `ai.budget.exceeded`: one did not suffice
 * for a call; at most once an hour. `transaction.pending`: a request of an agent waits for a person.
 * `transaction.decided`: it was approved, rejected or cancelled, or has expired. `transaction.changed`: it
 * was signed, sent, included in a block, confirmed, replaced, dropped and so on.
 */
export type EventType = 'created' | 'started' | 'exited' | 'paused' | 'resumed' | 'stopped' | 'oom' | 'expired' | 'deleted' | 'forked' | 'snapshot' | 'ai.budget.warning' | 'ai.budget.exceeded' | 'transaction.pending' | 'transaction.decided' | 'transaction.changed';

export interface Event {
  /** Increases and is never reused: a number among the events of the tenant, or, for an admin, of all. */
  id: number;
  type: EventType;
  at: string;
  /** Its id; of `transaction.*` the sandbox in which the agent runs, or empty. */
  sandbox: string;
  tenant: string;
  /**
   * The sandbox's name (where it has one) and image; of `exited` exit_code, signal and oom; of
   * `ai.budget.*` scope (sandbox or tenant), window, limit_usd, spent_usd and reserved_usd; of
   * `transaction.*` id, agent, agent_name, chain, state and summary.
   */
  data: Record<string, unknown>;
}

export interface Events {
  events: Array<Event>;
  /** For `after` of the next page. */
  next: number;
  /** The oldest event that is kept. */
  first: number;
}

export interface WebhookCreate {
  /**
   * https:// or http://. The certificate must be valid for the host and signed by a known authority
   * (`webhooks.ca_file`). Addresses that are not public (loopback, private networks, link-local) are
   * refused unless the administrator allows them (`webhooks.refuse` in the configuration). A name is judged
   * by the address that is dialled.
   */
  url: string;
  /** Types of events to send; empty or absent means all. */
  events?: Array<EventType> | null;
  /** Generated when absent. */
  secret?: string | null;
}

export interface SecretValue {
  /** At most 64 KiB. */
  value: string;
  encoding?: 'utf-8' | 'base64' | null;
  /**
   * Replaces what was said before; without it, that stays. It is not secret. At most 8192 bytes, and 512
   * KiB for all secrets of a tenant.
   */
  metadata?: Record<string, string> | null;
}

export interface Secret {
  name: string;
  /** The newest. */
  version: number;
  updated_at: string;
  /** The versions that are kept, newest first. */
  versions: Array<{
    version: number;
    created_at: string;
  }>;
  metadata: Record<string, string>;
}

export interface Secrets {
  secrets: Array<Secret>;
}

export interface HostMount {
  /**
   * The directory, absolute, without links on the way. Its owner is the user (uid 1000) in the sandbox;
   * files of others belong to nobody there.
   */
  source: string;
  /** Where it is in the sandbox. Missing directories are made. */
  path: string;
  /** ro when absent. rw is refused for a directory of root. */
  mode?: 'rw' | 'ro' | null;
}

/** Exactly one of `file` and `env`. */
export interface SecretMount {
  /** The sandbox's own secret of this name, else the tenant's. */
  name: string;
  /** A file name below /run/secrets, which is in memory; mode 0400, owned by the user. For sandboxes only. */
  file?: string | null;
  /** The name of a variable. */
  env?: string | null;
  /** The newest version when absent. */
  version?: number | null;
}

export interface AgentCreate {
  manifest: AgentManifest;
  /** Made from the manifest's name if it is absent. */
  name?: string | null;
  /** Somebody has seen what the manifest asks for and agrees. */
  consent: boolean;
}

/** The content of assegai.json. */
export interface AgentManifest {
  name: string;
  version: string;
  description?: string;
  author?: string;
  runtime: 'node' | 'python';
  entrypoint: string;
  permissions?: {
    /** CAIP-2 ids such as eip155:1. */
    chains?: Array<string>;
    /** URLs of nodes; agents.rpcs of the configuration must list them. */
    rpcs?: Record<string, string>;
    apis?: Array<'openai' | 'anthropic'>;
    /** The contracts that it may call; none means any. */
    contracts?: Array<string>;
    /** Hosts that it may connect to. */
    hosts?: Array<string>;
  };
  resources?: {
    memory?: string;
    cpu?: string;
  };
  spending_limits?: {
    per_transaction?: string;
    daily?: string;
    weekly?: string;
    monthly?: string;
  };
}

export interface Agent {
  id: string;
  name: string;
  tenant: string;
  status: 'waiting' | 'building' | 'failed' | 'stopped' | 'starting' | 'running' | 'stopping' | 'crashed';
  /** Why the build failed, or how the program ended last. */
  reason: string | null;
  /** The id of the sandbox in which it runs. */
  sandbox: string | null;
  /** The id of the key that consented to the manifest. */
  consented_by: string;
  /** In a row. */
  crashes: number;
  created_at: string;
  started_at: string | null;
  next_start_at: string | null;
  upgrade: null | AgentUpgrade;
  manifest: AgentManifest;
}

export interface AgentUpgradeRequest {
  manifest: AgentManifest;
  /** Somebody has seen what the manifest asks for beyond the present one and agrees. */
  consent: boolean;
}

/** A new version that is not there yet, or could not be built. */
export interface AgentUpgrade {
  version: string;
  status: 'waiting' | 'building' | 'failed';
  /** Why the build failed. */
  reason: string | null;
}

export interface Catalogue {
  name: string;
  /** A directory of a web server; or */
  url?: string;
  /** A directory where the command line runs. */
  path?: string;
  /** The public key (Ed25519) of its index, in hexadecimal digits. */
  key: string;
}

export interface AgentLog {
  id: number;
  at: string;
  level: 'debug' | 'info' | 'success' | 'warn' | 'error';
  source: 'agent' | 'stdout' | 'stderr' | 'build' | 'daemon';
  message: string;
  /** Any JSON value; null if there is none. */
  data: unknown;
}

/**
 * `denied`: the policy refused it. `pending`: it waits for people. `approved`: it will be signed. `signed`:
 * it will be sent. `broadcast`: a node has it. `included`: it is in a block. `confirmed`: enough blocks
 * followed. `final`: the chain calls its block final. A message ends as `signed`. `mismatch`: a wallet sent
 * something else than was approved.
 */
export type TransactionState = 'denied' | 'pending' | 'rejected' | 'expired' | 'cancelled' | 'approved' | 'signed' | 'broadcast' | 'included' | 'confirmed' | 'final' | 'reverted' | 'replaced' | 'dropped' | 'failed' | 'awaiting_wallet' | 'wallet_rejected' | 'wallet_timeout' | 'mismatch';

export interface Asset {
  /** The token's address, or 0xEeeeeEeeeEeEeeEeEeEeeEEEeeeeEeeeeeeeEEeE for the chain's own asset. */
  address: string;
  /**
   * As the owner called it when the limit was set, never what the token says of itself. null: show the
   * address.
   */
  symbol: string | null;
  /** As pinned by the owner; null: show base units. */
  decimals: number | null;
}

/** What is counted against the limits, and whom it reaches. */
export interface TransactionEffect {
  asset: Asset;
  /** In base units. */
  amount: string;
  /** Recipient or spender. */
  to: string | null;
  /** The spender may take the amount. */
  approval: boolean;
  /** An approval without an end. */
  unlimited: boolean;
  /** `to` is called within a wrapper, or is given control; the amount may be 0. */
  target: boolean;
  /** The wallet never sent anything to `to`. */
  first_time: boolean;
  /** The owner's name for `to`. */
  note: string | null;
}

export interface Transaction {
  id: string;
  kind: 'transaction' | 'message' | 'typed_data';
  /** Its id. */
  agent: string;
  /** null once the agent is removed. */
  agent_name: string | null;
  tenant: string | null;
  /** A CAIP-2 id. */
  chain: string;
  chain_name: string | null;
  /** The id of the wallet. */
  wallet: string | null;
  from: string | null;
  /** null for the creation of a contract and for messages. */
  to: string | null;
  /** Of the native asset, in base units. */
  value: string;
  class: 'native' | 'erc20_transfer' | 'approval' | 'nft' | 'wrapped' | 'message' | 'unknown' | 'creation' | 'dangerous' | 'typed';
  state: TransactionState;
  /** One sentence, made by the signer. */
  summary: string;
  /** What is approved. */
  digest: string;
  /** The agent's own words. Show them quoted and below the facts. */
  reason: string | null;
  /** Of denied ones: what the agent was told. */
  error: string | null;
  effects: Array<TransactionEffect>;
  /** Approved without a person, by the rule `auto_below`. */
  automatic: boolean;
  created_at: string;
  /** When it stops waiting for a person. */
  expires_at: string | null;
  decided_at: string | null;
  /** Those who approved, or the one who rejected: ids and names of keys. */
  decided_by: string | null;
  /** Of the newest change of state. */
  changed_at: string;
  /** Of the newest signed transaction. */
  hash: string | null;
  nonce: number | null;
  /** How often it was signed: more than 1 after a speed-up or a cancellation. */
  generation: number;
  /**
   * Of a transaction that was sent: a nonce of its account before its own, which neither the chain has nor
   * Paddock sends. Until that is sent it is not mined.
   */
  waits_for_nonce: number | null;
  card?: TransactionCard;
}

/** Everything that a person needs to decide. In answers for one transaction only. */
export interface TransactionCard {
  /** Who wants to do what, in one sentence. The words of the agent are not in it. */
  sentence: string;
  /**
   * The whole card as plain text, for terminals and chats. Words of others are quoted, without control
   * characters.
   */
  text: string;
  /**
   * With a risk of level danger: eight hexadecimal digits of the address, which a person must type to
   * approve. They are from its middle, or where it differs from an address that it looks like.
   */
  confirm: string | null;
  /** Which digits they are, as a sentence for a person. */
  confirm_hint: string | null;
  /** Who gets it; for calls of contracts the contract. */
  recipient: {
    address: string;
    /** Whether the wallet never sent anything there; null if that is not known. */
    first_time: boolean | null;
    /** Whether the address has code; null if that is not known. */
    contract: boolean | null;
    /** From the list of addresses in the agent's limits. */
    note: string | null;
  } | null;
  /** Of approvals. */
  allowance: {
    asset: Asset;
    spender: string;
    /** What the spender may take now; null if that is not known. */
    before: string | null;
    /** What the spender may take from then on. */
    after: string;
    unlimited: boolean;
  } | null;
  /** What counts before this transaction and with it. Absent limits have no entry. */
  limits: Array<{
    /** agent:ID or wallet:ID. */
    scope: string;
    /** Whether it is a limit for fees. */
    fee: boolean;
    asset: Asset;
    window: 'transaction' | 'day' | 'week' | 'month' | 'lifetime';
    limit: string;
    before: string;
    after: string;
  }>;
  /** Of transactions; null where it could not be estimated. */
  fee: {
    asset: Asset;
    /** The limit. */
    gas: number;
    /** The limit times the highest price, in base units. */
    worst_case: string;
  } | null;
  risks: Array<{
    level: 'note' | 'warning' | 'danger';
    /** Such as recipient.new; docs/design/signer.md has the list. */
    name: string;
    text: string;
  }>;
  simulation: {
    method: 'none' | 'estimate' | 'trace' | 'simulate_v1';
    block: number | null;
    moves: Array<{
      asset: Asset;
      from: string;
      to: string;
      amount: string;
      /** `from` lets `to` take the amount. */
      approval: boolean;
    }>;
    /** What the wallet gains and loses, without fees. */
    deltas: Array<{
      asset: Asset;
      amount: string;
    }>;
  };
  /** Every check of the policy, in the order of evaluation. */
  trace: Array<{
    step: number;
    name: string;
    passed: boolean;
    text: string;
  }>;
  call: {
    class: string;
    /** The decoded call, a line for each part, indented by two spaces for each level. Selectors are guesses. */
    tree: Array<string>;
  };
  /** Call data, the bytes of a message, or the JSON of typed data. */
  data: string;
  /** Of messages and typed data, once they are signed. */
  signature: string | null;
  approvers: {
    needed: number;
    have: number;
  };
  /** The signed transactions, the newest first. */
  attempts: Array<{
    generation: number;
    hash: string;
    nonce: number;
    signed_at: string;
  }>;
  /** The block that has it. */
  block: number | null;
  block_hash: string | null;
  /** null while it is in no block. */
  confirmations: number | null;
  confirmations_needed: number | null;
  /** It was sent long ago and is in no block: `speed-up` and `cancel` help. */
  stuck: boolean;
  /** What hinders it now, such as a node that does not answer. */
  note: string | null;
  /** How the receipt differs from the simulation. */
  deviation: string | null;
}

export interface TransactionApprove {
  /** Of the transaction that the person saw. */
  digest: string;
}

export interface TransactionNote {
  /** Kept in the audit log. */
  note?: string | null;
}

export interface TransactionAnswer {
  /** Of the transaction that the wallet sent. */
  hash?: string | null;
  /** Of a message or typed data. */
  signature?: string | null;
  /** The person declined in the wallet. */
  rejected?: boolean | null;
}

export interface Wallet {
  id: string;
  kind: 'test' | 'generated' | 'imported' | 'external';
  label: string;
  address: string;
  created_at: string;
}

export interface WalletConnect {
  /** CAIP-2 ids; all of the configuration when absent. */
  chains?: Array<string> | null;
  label?: string | null;
}

export interface WalletPairing {
  /** Of the session that comes of it. */
  id: string;
  /** wc:… */
  uri: string;
  /** The QR code of the URI: rows of 0 and 1, without a quiet zone. */
  qr: Array<string>;
  expires_at: string;
}

export interface WalletSession {
  id: string;
  /** The wallet's name for itself. */
  name: string | null;
  url: string | null;
  /** CAIP-10 ids such as eip155:1:0x…. */
  accounts: Array<string>;
  created_at: string;
  expires_at: string;
}

export interface Chain {
  /** A CAIP-2 id. */
  id: string;
  name: string | null;
  /** What people call the chain's native asset, such as ETH; null: not known. */
  symbol: string | null;
  /** The https address of a block explorer; a transaction is below it at `/tx/HASH`. */
  explorer: string | null;
  /**
   * `unknown`: nothing was asked yet. `wrong_chain`: a node answered with another chain id; nothing is
   * signed.
   */
  status: 'unknown' | 'ok' | 'down' | 'wrong_chain';
  /** Without the URL of the node. */
  error: string | null;
  /** The newest block that was seen. */
  block: number | null;
  checked_at: string | null;
  /** How many are configured. */
  nodes: number;
  /** How many make a transaction confirmed. */
  confirmations: number;
  /** Transactions that are followed: of the key's tenant, or for administrators all of them. */
  under_way: number;
}

/**
 * Of one asset on one chain. Nothing of an asset without an entry may be spent. Amounts are in base units;
 * a window without an amount is not limited.
 */
export interface SpendingLimit {
  chain: string;
  /** An address of a token, or `native`. */
  asset: string;
  per_transaction: string;
  day?: string | null;
  week?: string | null;
  month?: string | null;
  lifetime?: string | null;
  /** Of a token, for people. */
  decimals?: number | null;
  /** For people. */
  symbol?: string | null;
  /** Whether an unlimited approval may be given; it counts as per_transaction. */
  unlimited_approvals?: boolean | null;
}

export interface SpendingAddress {
  /** null means every chain. */
  chain?: string | null;
  address: string;
  deny?: boolean | null;
  /** Calls that cannot be decoded are allowed to it. */
  call?: boolean | null;
  /** What the owner calls it; only the owner gives names. */
  note?: string | null;
}

export interface SpendingWindow {
  days: Array<'mon' | 'tue' | 'wed' | 'thu' | 'fri' | 'sat' | 'sun'>;
  /** UTC. */
  start: string;
  /** Not included; 24:00 is the end of the day. */
  end: string;
}

export interface AgentLimits {
  /** Its id. */
  agent: string;
  /** The wallet for each chain. No other chain is allowed. */
  wallets: Array<{
    chain: string;
    wallet: string;
  }>;
  limits: Array<SpendingLimit>;
  addresses: Array<SpendingAddress>;
  /** Typed data without a decoder that may be signed. */
  typed: Array<{
    chain: string;
    contract: string;
    primary_type: string;
  }>;
  /** Times at which it may spend; none means always. */
  windows: Array<SpendingWindow>;
  /** Recipients and contracts must be in `addresses`. */
  only_listed: boolean;
  allow_creation: boolean;
  /** Operators, ownership and upgrades, always with a person. */
  allow_dangerous: boolean;
  allow_messages: boolean;
  require_simulation: boolean;
  paused: boolean;
  /** How many different keys must approve. */
  approvers: number;
  /** Native, to listed recipients: no person is asked up to this much. */
  auto_below: string | null;
  max_pending: number;
  expiry_seconds: number;
  /** A first transfer to a new recipient is not signed before this long. */
  cool_down_seconds: number;
  /** Paused after this many refusals within an hour; 0: never. */
  suspend_after: number;
}

export interface AgentLimitsChange {
  limits?: Array<SpendingLimit> | null;
  addresses?: Array<SpendingAddress> | null;
  windows?: Array<SpendingWindow> | null;
  only_listed?: boolean | null;
  allow_creation?: boolean | null;
  allow_dangerous?: boolean | null;
  allow_messages?: boolean | null;
  require_simulation?: boolean | null;
  paused?: boolean | null;
  approvers?: number | null;
  /** "0": a person is always asked. */
  auto_below?: string | null;
  max_pending?: number | null;
  expiry_seconds?: number | null;
  cool_down_seconds?: number | null;
  suspend_after?: number | null;
}

/** In base units; sliding windows of 24 hours, 7 days and 30 days. */
export interface SpendingAmounts {
  day: string | null;
  week: string | null;
  month: string | null;
  lifetime: string | null;
}

export interface Spending {
  /** agent:ID or wallet:ID. */
  scope: string;
  /** What the agent's models have cost; null for a wallet. */
  ai_cost_usd: AiCost | null;
  /** Each asset that has a limit or was spent. */
  lines: Array<{
    chain: string;
    /** Whether it is what fees have cost. */
    fee: boolean;
    asset: Asset;
    per_transaction: string | null;
    spent: SpendingAmounts;
    limit: SpendingAmounts;
    /** The part that waits for a decision or a signature. */
    reserved: string;
  }>;
}

/** In US dollars, by days of UTC. Sandboxes that the agent had before count too. */
export interface AiCost {
  /** Today. */
  day: number;
  /** Today and the 6 days before. */
  week: number;
  /** Today and the 29 days before. */
  month: number;
  /** All that is kept, which is 400 days. */
  lifetime: number;
}

export interface SignerStatus {
  /**
   * Whether there is a signer that answers. If not, the other members are null. All but `paused` are null
   * for keys that are not an administrator's.
   */
  available: boolean;
  paused: boolean | null;
  wallets: number | null;
  /** Requests that wait for a decision or a signature. */
  pending: number | null;
  /** The number of the newest entry of the audit log. */
  audit_seq: number | null;
  /** Keep it elsewhere to notice later that entries were changed. */
  audit_hash: string | null;
}

export interface SignerPause {
  paused: true;
  /** Also cancel what waits for a decision or a signature. */
  cancel_pending?: boolean | null;
}

export interface AuditEntry {
  seq: number;
  at: string;
  actor: string;
  action: string;
  object: string;
  /** JSON, as it was hashed. */
  detail: string;
  prev: string;
  /** SHA-256 of prev, seq, time and the texts, each preceded by its length. */
  hash: string;
}

export interface AuditEntries {
  entries: Array<AuditEntry>;
  /** For `after` of the next page. */
  next: number;
  /** With `verify=true`. */
  verified?: {
    entries: number;
    /** The first entry that does not fit; null if the chain is whole. */
    broken_at: number | null;
  };
}

export interface Webhook {
  id: string;
  url: string;
  tenant: string;
  events: Array<EventType>;
  created_at: string;
  /** Since the start of the daemon. */
  delivered: number;
  /** Failed attempts since the start of the daemon. */
  failed: number;
  /** Events whose delivery failed and will be repeated. */
  pending: number;
  /** Only in the answer to its creation. */
  secret?: string;
  /** The last attempts since the start of the daemon, the newest first. In the answer for one webhook only. */
  deliveries?: Array<{
    event: number;
    type: string | null;
    at: string;
    /** From 1. */
    attempt: number;
    /** HTTP status; null if there was no answer. */
    status: number | null;
    error: string | null;
    duration_ms: number;
    /** Whether it was delivered or given up. */
    final: boolean;
  }>;
}

export interface TenantCreate {
  name: string;
}

/**
 * The first matching rule decides; if none matches, `default` does. `allow` and `deny` are short forms for
 * rules that follow `rules`, with those of `deny` first. Answers have only `rules`.
 */
export interface EgressPolicy {
  default?: 'deny' | 'allow' | null;
  rules?: Array<EgressRule> | null;
  allow?: Array<EgressTarget> | null;
  deny?: Array<EgressTarget> | null;
  /** 0 or absent means no limit other than the gate's own. */
  limits?: {
    /** Open at once. */
    connections?: number | null;
    connections_per_second?: number | null;
    /** Both directions together. */
    bytes_per_second?: number | null;
    /**
     * In total, both directions together. A restart of the daemon resets the count; a stop of the sandbox
     * or a change of its policy does not.
     */
    bytes?: number | null;
  } | null;
  /**
   * How to treat TLS with an encrypted ClientHello (ECH) where the rules ask for names. The readable name
   * need not be the true one, and browsers always send something that looks like ECH. `intercept`: if the
   * readable name is allowed, the gate intercepts the connection with a certificate of the installation's
   * authority and sends that name to the server without ECH; the log has the reason `ech`. `refuse`: the
   * connection counts as TLS without a name. If rules allow the address regardless of the name, the
   * connection passes unchanged in both cases. Answers contain this field only if it is `refuse`.
   */
  ech?: 'intercept' | 'refuse' | null;
}

/** A `set`, a `host` or a `cidr`. If both `host` and `cidr` are given, both must match. */
export interface EgressRule {
  action: 'allow' | 'deny';
  set?: string;
  /** A name, `*.example.org` for all names below it, or `*`. */
  host?: string;
  /** A network or an address. */
  cidr?: string;
  /**
   * tls: TLS, judged by the name in its ClientHello; http: HTTP in clear; tcp: any bytes, for a host to the
   * addresses that DNS gave the sandbox. Absent or any: each of these except HTTP/2 in clear, whose
   * requests cannot be judged and which needs tcp.
   */
  protocol?: 'any' | 'tcp' | 'tls' | 'http';
  ports?: Array<number | string>;
  /**
   * With methods or paths, a rule applies to requests: in clear (`http`), within TLS (`tls`) or both
   * (absent, `any`). For requests within TLS the gate intercepts the TLS of its hosts, as for `inject`,
   * unless an earlier rule decides. A deny rule also denies connections to its hosts that cannot be
   * inspected (TLS without a name, other protocols), unless its protocol is http.
   */
  methods?: Array<string>;
  /** Each path and all paths below it. A deny rule also matches other spellings (escapes, upper case). */
  paths?: Array<string>;
  /**
   * Secrets that the gate adds to requests over TLS to this host (an allow rule with `host`, not `*`). The
   * gate intercepts the TLS of these hosts with a certificate of the installation's authority
   * (`getAuthority`), which the sandbox trusts, and checks the server's own certificate. HTTP/1.1 and
   * HTTP/2 (gRPC) work if client and server both support them; WebSocket works over HTTP/1.1. The value is
   * masked in the answer, and the sandbox never holds it. Answers are complete (`Range` is dropped) and
   * must not be compressed; neither must bodies with placeholders.
   */
  inject?: Array<EgressInject>;
}

/** A `secret` and exactly one of `header`, `query` and `placeholder`; or a `header` and its `value`. */
export interface EgressInject {
  /** Of a header, where it is no secret: it is not masked in answers. */
  value?: string | null;
  /** The name of a secret of the sandbox or its tenant; the value must have at least 4 bytes. */
  secret?: string | null;
  /** Replaces this header. */
  header?: string | null;
  /** Text before the value in the header, such as "Bearer ". */
  prefix?: string | null;
  /** Sets this query parameter. */
  query?: string | null;
  /**
   * Replaces `{{secret.NAME}}` in the target, in headers (also within Basic credentials) and in the body. A
   * placeholder of a secret that is not for this host is refused with 403.
   */
  placeholder?: boolean | null;
}

/**
 * A set (`pypi`), a host (`example.org`, `*.example.org:443`), a network (`192.0.2.0/24:5432`,
 * `[2001:db8::]/32`), or a URL (`https://example.org/v1`: that path and all paths below it).
 */
export type EgressTarget = string;

/**
 * Absent fields have the default (`ai.box`, `ai.tenant` of the configuration). For numbers, 0 means no
 * limit; money is in dollars, days are in UTC, weeks begin on Monday. Lists contain patterns (`*` matches
 * anything). Each list of the configuration, the tenant and the sandbox must allow a call; an empty list
 * allows nothing.
 */
export interface AiAllowance {
  requests_per_minute?: number | null;
  tokens_per_minute?: number | null;
  parallel?: number | null;
  day?: number | null;
  week?: number | null;
  month?: number | null;
  /** The fraction of a budget at which to warn. */
  warn?: number | null;
  /**
   * Whether the text of calls is kept, for `GET /v1/sandboxes/{id}/ai/calls/{call}`. A sandbox without a
   * setting has its tenant's. If the tenant or `ai.max` forbids it (false), it cannot be turned on.
   */
  log_bodies?: boolean | null;
  providers?: Array<'openai' | 'anthropic'> | null;
  endpoints?: Array<string> | null;
  models?: Array<string> | null;
}

/** The limits in force. 0 means no limit; money is in dollars. */
export interface AiLimits {
  requests_per_minute?: number;
  tokens_per_minute?: number;
  parallel?: number;
  day?: number;
  week?: number;
  month?: number;
  warn?: number;
  log_bodies?: boolean;
}

export interface AiAccount {
  limits: AiLimits;
  /** Where each limit comes from; null if there is no limit. */
  sources: Record<string, 'sandbox' | 'tenant' | 'default' | 'configuration' | null>;
  own: AiAllowance;
  /** The lists of the tenant and the sandbox, in addition to the configuration's. */
  allow?: Record<string, Array<{
    from?: 'tenant' | 'sandbox';
    patterns?: Array<string>;
  }>>;
  spent: {
    day?: number;
    week?: number;
    month?: number;
    /** Reserved for calls in progress. */
    reserved?: number;
    /** Number of calls in progress. */
    parallel?: number;
  };
}

export type SandboxAi = AiAccount & ({
  token: string;
  token_expires_at: string | null;
  providers: Record<string, {
    path?: string;
    inside?: string;
    /** Whether the lists of the tenant and the sandbox allow it. */
    allowed?: boolean;
    /** From the configuration; an empty list means all. */
    endpoints?: Array<string>;
    /** From the configuration; an empty list means all. */
    models?: Array<string>;
  }>;
  tenant: AiAccount;
});

export interface AiCall {
  id?: number;
  /** When it began. */
  at?: string;
  duration_ms?: number;
  provider?: string;
  endpoint?: string;
  model?: string;
  /** The provider's status; 0 if there was no answer. */
  status?: number;
  /**
   * `client`: it went away. `broken`: the provider did. `budget`: cut off, it took more than was reserved.
   * `lost`: the daemon was killed; what was reserved is what it cost.
   */
  finish?: 'complete' | 'error' | 'client' | 'broken' | 'timeout' | 'budget' | 'lost';
  estimated?: boolean;
  /** Without tokens read from or written to a cache. */
  input_tokens?: number;
  cache_read_tokens?: number;
  cache_write_tokens?: number;
  output_tokens?: number;
  cost_usd?: number;
}

/**
 * Null where it was not kept, or is not any more. At most 16 KiB; what looks like a key, a token or a
 * password is `[redacted]`.
 */
export type AiBody = {
  text: string;
  truncated: boolean;
} | null;

export interface ModelUsage {
  day?: string;
  tenant?: string;
  box?: string;
  provider?: string;
  model?: string;
  requests: number;
  /** The number of calls whose tokens the provider did not report. */
  estimated: number;
  /** Without tokens read from or written to a cache. */
  input_tokens: number;
  cache_read_tokens: number;
  cache_write_tokens: number;
  output_tokens: number;
  cost_usd: number;
}

export type EgressSets = Record<string, Array<EgressTarget>>;

export interface EgressVerdict {
  /** Increases, also over restarts. */
  id: number;
  /** Time of the last occurrence. */
  at: string;
  first_at: string;
  /** Number of occurrences. */
  count: number;
  verdict: 'allow' | 'deny';
  /**
   * `rule` and `no_rule`: by the policy; `address`: the name leads to an address that is not public and
   * that no rule names; `mismatch`: SNI, Host, the proxy's target and the address do not agree; `ech`: an
   * encrypted ClientHello, allowed by `rule` and intercepted for that, or denied because the policy wishes
   * it or it cannot be intercepted at the moment; `secret`: a secret of the rule, or of a placeholder, is
   * not there, not for this host or does not fit: the answer (403) says which.
   */
  reason: 'rule' | 'no_rule' | 'no_policy' | 'address' | 'mismatch' | 'no_name' | 'unresolved' | 'limit' | 'malformed' | 'token' | 'unreachable' | 'ech' | 'secret' | 'none' | 'other';
  /** `rules[N]` of the policy, `default`, or `refuse`: the installation's. */
  rule: string | null;
  protocol: string | null;
  host: string | null;
  address: string | null;
  port: number;
  method: string | null;
  path: string | null;
  via: string | null;
  /** A target that would allow it, if a rule can. */
  would_allow: string | null;
}

/** 0 or absent means the default of the configuration (`max.tenant`), or no limit if there is none. */
export interface Quota {
  /** All sandboxes that exist. */
  boxes?: number | null;
  /** Cores; the sum of the limits of running sandboxes. */
  cpu?: number | null;
  /** The sum of the limits of running sandboxes. */
  memory_mb?: number | null;
  /**
   * The sum of the limits of sandboxes and workspaces, of the sizes of snapshots, and of the build cache,
   * which gives way when room is needed. A sandbox or workspace that asks for no limit gets
   * `defaults.disk_mb`, or if that is not set a share: the quota divided by that of sandboxes, or by 8.
   */
  disk_mb?: number | null;
  /** The sum of the limits (`pids`) of running sandboxes. */
  processes?: number | null;
  /** Hidden sandboxes at a time, which serve the files of workspaces. */
  helpers?: number | null;
  workspaces?: number | null;
  /** Those of templates included. */
  snapshots?: number | null;
  templates?: number | null;
  webhooks?: number | null;
  /** Those of sandboxes included. */
  secrets?: number | null;
  /** The size of all versions of all secrets on disk. */
  secrets_kb?: number | null;
  creates_per_minute?: number | null;
}

/** What a tenant holds at the moment, in the units of its quota. */
export interface TenantUse {
  boxes: number;
  cpu: number;
  memory_mb: number;
  disk_mb: number;
  processes: number;
  helpers: number;
  workspaces: number;
  snapshots: number;
  templates: number;
  webhooks: number;
  secrets: number;
  secrets_kb: number;
  /** Number of events in the log. When it is full, the tenant with the most loses its oldest. */
  events: number;
  /**
   * Size of the build logs of templates. Where there is too much, the tenant with the most loses its
   * oldest; the same holds for the following.
   */
  logs_kb: number;
  /** Number of entries of the egress log. */
  verdicts: number;
  /** Number of calls in the log of models. */
  ai_calls: number;
  /** Size of their text, where it is kept. */
  ai_text_kb: number;
}

export interface Tenant {
  id: string;
  name: string;
  created_at: string;
  quota: Quota;
  /** What applies, the quota or else the default of the configuration; 0 means no limit. */
  limits: Quota;
  used: TenantUse;
}

/** Exactly one of `command` and `argv`. */
export interface Exec {
  /** A command line for `bash -c`. */
  command?: string | null;
  /** The program, found by PATH, and its arguments. */
  argv?: Array<string> | null;
  /** An absolute path; by default the sandbox's workdir. */
  cwd?: string | null;
  /** Added to the sandbox's variables, which they override. */
  env?: Record<string, string> | null;
  user?: string | null;
  /** Empty input when absent. */
  stdin?: string | null;
  timeout_ms?: number | null;
  /** Runs `command` in this shell. `argv`, `cwd`, `env` and `user` are then not allowed. */
  shell?: string | null;
  kill_on_disconnect?: boolean | null;
  /**
   * Variables of this command alone. In a shell they are there while it runs, for what it starts, and gone
   * after it however it ends; bash does not wipe its own memory.
   */
  secrets?: Array<SecretMount> | null;
}

export interface ExecResult {
  /** 128 plus the signal's number if a signal ended it. */
  exit_code: number;
  /** Name of the signal, such as SIGKILL. */
  signal: string | null;
  stdout: string;
  stderr: string;
  /** Encoding of both outputs; base64 if one of them is not text. */
  encoding: 'utf-8' | 'base64';
  /** Whether there was more output than is kept. */
  truncated: boolean;
  timed_out: boolean;
  /** Whether a process of the sandbox was killed during the run because memory ran out. */
  oom_killed: boolean;
  /** The memory limit; present with `oom_killed`. */
  memory_limit_mb?: number;
  duration_ms: number;
  shell?: string;
  /** Of the shell, after the command. */
  cwd?: string;
  /** Whether the shell ended and was restarted. */
  restarted?: boolean;
}

/**
 * One event of a stream. As Server-Sent Events the type is the event's name and the rest its data; as lines
 * of JSON each line is an object with `type`. `start` comes first, `exit` or `error` last. A character of
 * UTF-8 is never split over two events. Every 15 seconds comes a comment, or a line of the type
 * `keep-alive`.
 */
export type StreamEvent =
  | ({ type: 'start' } & {
    pid: number;
    tag?: string | null;
  })
  | ({ type: 'stdout' | 'stderr' } & {
    /** Of the first byte. */
    offset: number;
    data: string;
    encoding: 'utf-8' | 'base64';
  })
  | ({ type: 'exit' } & {
    exit_code: number;
    signal: string | null;
    timed_out: boolean;
    /** Whether a process of the sandbox was killed during the run because memory ran out. */
    oom_killed: boolean;
    /** The memory limit; present with `oom_killed`. */
    memory_limit_mb?: number;
    truncated: boolean;
    duration_ms: number;
    shell?: string;
    cwd?: string;
    restarted?: boolean;
  })
  | ({ type: 'error' } & {
    code: string;
    message: string;
    request_id: string;
  });

export interface ShellCreate {
  name: string;
  cwd?: string | null;
  env?: Record<string, string> | null;
  user?: string | null;
}

export interface Shell {
  name: string;
  pid: number | null;
  /** Whether it runs. If not, the next command starts it. */
  running: boolean;
  user: string;
  /** As last reported. */
  cwd: string;
  busy: boolean;
  /** Number of waiting commands. */
  queued: number;
  started_at: string | null;
}

export interface ContextCreate {
  /** 501 with a text that names the missing package if the image does not have it. */
  language: 'python' | 'javascript' | 'typescript' | 'r' | 'java' | 'bash';
  /** An absolute path; by default the sandbox's workdir. */
  cwd?: string | null;
  /** Added to the sandbox's variables, which they override. */
  env?: Record<string, string> | null;
  user?: string | null;
}

export interface Context {
  id: string;
  language: 'python' | 'javascript' | 'typescript' | 'r' | 'java' | 'bash';
  /** That it was started in. */
  cwd: string;
  user: string;
  /** null if it does not run; the next code starts it. */
  pid: number | null;
  busy: boolean;
  /** Number of waiting executions. */
  queued: number;
  created_at: string;
}

export interface ExecuteInContext {
  code: string;
  /** Variables for this code only; they override the context's. */
  env?: Record<string, string> | null;
  timeout_ms?: number | null;
  /** Interrupts the code when its client disconnects. */
  kill_on_disconnect?: boolean | null;
  /** Variables for this code only, like `env`, with values of secrets. */
  secrets?: Array<SecretMount> | null;
}

export type Execute = ExecuteInContext & ({
  language?: 'python' | 'javascript' | 'typescript' | 'r' | 'java' | 'bash' | null;
  /** The id of a context, which determines the language. */
  context?: string | null;
});

/**
 * A value in all the forms that it can be shown in. What is binary is in base64. Forms that are too large
 * are left out.
 */
export interface ExecutionResult {
  /** Whether it is the value of the last expression. */
  main: boolean;
  /** Whether there was more. */
  truncated: boolean;
  text?: string;
  html?: string;
  markdown?: string;
  latex?: string;
  svg?: string;
  png?: string;
  jpeg?: string;
  pdf?: string;
  javascript?: string;
  /** Also of a dict or list of Python. */
  json?: unknown;
  /** A DataFrame or Series of pandas, or a data frame of R: the values of each column. */
  data?: Record<string, Array<unknown>>;
  /**
   * A figure of matplotlib as what it shows: `type` (line, scatter, bar, pie, box_and_whisker, superchart
   * or unknown), `title`, `elements` and, by its type, labels, units, ticks and scales of the axes.
   */
  chart?: Record<string, unknown>;
  /** Other MIME types. */
  extra?: Record<string, unknown>;
}

export interface ExecutionError {
  /**
   * The exception's. ExitStatus in bash; Interrupted and ProcessExit in JavaScript. Timeout, Restarted and
   * InterpreterDied where the interpreter is gone.
   */
  name: string;
  value: string;
  traceback: string;
}

export interface Execution {
  /** Of this interpreter; 0 when it is gone. */
  execution_count: number;
  stdout: string;
  stderr: string;
  /** Encoding of both outputs; base64 if one of them is not text. */
  encoding: 'utf-8' | 'base64';
  results: Array<ExecutionResult>;
  error: null | ExecutionError;
  duration_ms: number;
  timed_out: boolean;
  /** Whether a process of the sandbox was killed during the run because memory ran out. */
  oom_killed: boolean;
  /** The memory limit; present with `oom_killed`. */
  memory_limit_mb?: number;
  /** Whether the interpreter is gone; the next code starts with an empty namespace. */
  state_lost: boolean;
  /** Whether there was more output than is kept. */
  truncated: boolean;
}

/**
 * One event of a stream, framed like a StreamEvent: `start` first, `end` last (or an `error` with a `code`,
 * which is the server's and not the code's).
 */
export type ExecutionEvent =
  | ({ type: 'start' } & {
    context: string;
    language: string;
    pid: number;
  })
  | ({ type: 'stdout' | 'stderr' } & {
    /** Of the first byte in this execution. */
    offset: number;
    data: string;
    encoding: 'utf-8' | 'base64';
  })
  | ({ type: 'result' } & ExecutionResult)
  | ({ type: 'error' } & ExecutionError)
  | ({ type: 'end' } & {
    execution_count: number;
    timed_out: boolean;
    /** Whether a process of the sandbox was killed during the run because memory ran out. */
    oom_killed: boolean;
    /** The memory limit; present with `oom_killed`. */
    memory_limit_mb?: number;
    state_lost: boolean;
    truncated: boolean;
    duration_ms: number;
  });

export interface TerminalSize {
  cols: number;
  rows: number;
}

/** Exactly one of `command` and `argv`. */
export interface ProcessCreate {
  /** A command line for `bash -c`. */
  command?: string | null;
  argv?: Array<string> | null;
  cwd?: string | null;
  env?: Record<string, string> | null;
  user?: string | null;
  /** A name that is unique among running processes; not all digits. */
  tag?: string | null;
  /** Whether input can be written to it; otherwise stdin is `/dev/null`. */
  stdin?: boolean | null;
  /** Starts it in a terminal of this size. */
  pty?: TerminalSize | null;
  /** No limit when absent. */
  timeout_ms?: number | null;
  /** Ends the process with this stream. Only for a streamed answer. */
  kill_on_disconnect?: boolean | null;
  /** Variables for this process only. */
  secrets?: Array<SecretMount> | null;
}

export interface ProcessStarted {
  pid: number;
  tag: string | null;
  pty: boolean;
  running: boolean;
}

export interface ProcessExit {
  exit_code: number;
  signal: string | null;
  timed_out: boolean;
  /** Whether a process of the sandbox was killed during the run because memory ran out. */
  oom_killed: boolean;
  /** The memory limit; present with `oom_killed`. */
  memory_limit_mb?: number;
  duration_ms: number;
}

export interface Process {
  /** In the sandbox. */
  pid: number;
  /** Of a shell it is `shell:NAME`. */
  tag: string | null;
  argv: Array<string>;
  /** In which it was started. */
  cwd: string;
  user: string;
  pty: boolean;
  running: boolean;
  started_at: string | null;
  exit: ProcessExit | null;
  /** Written so far. */
  stdout_bytes: number;
  stderr_bytes: number;
}

export interface OutputPiece {
  offset: number;
  data: string;
  encoding: 'utf-8' | 'base64';
}

export interface ProcessOutput {
  pid: number;
  tag: string | null;
  argv: Array<string>;
  cwd: string;
  user: string;
  pty: boolean;
  running: boolean;
  started_at: string | null;
  exit: ProcessExit | null;
  stdout_bytes: number;
  stderr_bytes: number;
  stdout: OutputPiece;
  stderr: OutputPiece;
}

export interface ProcessEnd {
  running: boolean;
  exit_code?: number;
  signal?: string | null;
  timed_out?: boolean;
  oom_killed?: boolean;
  memory_limit_mb?: number;
  truncated?: boolean;
  duration_ms?: number;
}

export type FileType = 'file' | 'directory' | 'symlink' | 'fifo' | 'socket' | 'device' | 'unknown';

export interface File {
  /** U+FFFD replaces bytes that are not valid UTF-8. */
  name: string;
  /** The bytes of the name; present only if it is not valid UTF-8. */
  name_base64?: string;
  /** In lists of more than one level and in results of `findFiles`: the path relative to the start. */
  path?: string;
  path_base64?: string;
  type: FileType;
  size: number;
  mode: string;
  uid: number;
  gid: number;
  modified_at: string | null;
  /** Of a symlink. */
  target?: string;
}

export interface FileList {
  path: string;
  entries: Array<File>;
  /** With `limit`: the cursor of the next page; null on the last. */
  next?: string | null;
}

export interface FileSum {
  files: number;
  directories: number;
  bytes: number;
  /** Sockets, devices and the like. */
  skipped: number;
}

export interface FileMove {
  from: string;
  to: string;
  user?: string | null;
  overwrite?: boolean | null;
}

export interface FileCopy {
  from: string;
  to: string;
  user?: string | null;
  overwrite?: boolean | null;
  recursive?: boolean | null;
}

export interface FileMkdir {
  path: string;
  user?: string | null;
  mode?: string | null;
  parents?: boolean | null;
}

/** A mode, an owner or both. */
export interface FileChmod {
  path: string;
  /** Whose rights. */
  user?: string | null;
  mode?: string | null;
  /**
   * `USER`, `USER:` (with its group), `USER:GROUP` or `:GROUP`. A user is a name or a number, a group a
   * number, or that of a user.
   */
  owner?: string | null;
  recursive?: boolean | null;
}

export interface FileFind {
  path: string;
  user?: string | null;
  pattern: string;
  type?: 'file' | 'directory' | 'symlink' | 'fifo' | 'socket' | 'device' | null;
  limit?: number | null;
}

export interface FileFound {
  entries: Array<File>;
  /** There is more. */
  truncated: boolean;
}

export interface FileGrep {
  path: string;
  user?: string | null;
  pattern: string;
  /** The pattern is an extended regular expression. */
  regex?: boolean | null;
  ignore_case?: boolean | null;
  /** A pattern for names of files to search. */
  include?: string | null;
  limit?: number | null;
}

export interface FileMatches {
  matches: Array<{
    /** Relative to the start. */
    path: string;
    path_base64?: string;
    /** From 1. */
    line: number;
    /** From 1, in bytes. */
    column: number;
    /** The line, truncated if it is long. */
    text: string;
  }>;
  truncated: boolean;
  /** Number of files searched. */
  files: number;
  skipped: number;
}

export interface FileReplace {
  path: string;
  user?: string | null;
  old: string;
  new: string;
  count?: number | null;
}

export interface FileSign {
  path: string;
  method: 'GET' | 'PUT';
  expires_seconds: number;
  user?: string | null;
}

export interface FileEvent {
  type: 'create' | 'write' | 'remove' | 'rename' | 'chmod' | 'overflow';
  /** Relative to the watched path. */
  path: string;
  path_base64?: string;
  /** Of `rename`. */
  old_path?: string;
  old_path_base64?: string;
  directory: boolean;
}

export interface WatcherCreate {
  path: string;
  user?: string | null;
  recursive?: boolean | null;
}

export interface FileNews {
  events: Array<FileEvent>;
  /** Whether more events occurred than are kept. */
  overflow: boolean;
  /** Whether no more events will follow, because the watched path is gone or the sandbox has stopped. */
  ended: boolean;
}

export interface Image {
  /** The first of its names. */
  name: string | null;
  names: Array<string>;
  digest: string;
  created_at: string | null;
  /** The view of the server's own /usr. */
  machine: boolean;
  /** In the answer to an import: the number of device nodes, fifos and sockets that were left out. */
  skipped?: number;
  /** For an image from `docker save` or an OCI tool: the default user of its sandboxes. */
  user?: string;
  /** The default directory of its sandboxes. */
  workdir?: string;
  /** Default variables of its sandboxes, which a sandbox can override. */
  env?: Record<string, string>;
  /** What `paddock run` runs if it is given no command, followed by `cmd`; sandboxes start without it. */
  entrypoint?: Array<string>;
  /** For information only. */
  cmd?: Array<string>;
}

export interface KeyCreate {
  name?: string | null;
  /** Must exist, unless `create_tenant` is true. Defaults to the tenant of the key that asks. */
  tenant?: string | null;
  role?: 'admin' | 'user' | null;
  /** Create the tenant if it does not exist. Otherwise an unknown tenant is refused (`not_found`). */
  create_tenant?: boolean | null;
}

export interface Key {
  id: string;
  /** Only in the answer to its creation. */
  key?: string;
  name: string | null;
  tenant: string;
  role: 'admin' | 'user';
  created_at: string;
}

/**
 * An isolation feature that depends on the kernel or the configuration; see paddock.yaml(5) and
 * SECURITY.md.
 */
export type Feature = 'landlock.truncate' | 'landlock.ioctl_dev' | 'landlock.scopes' | 'overlay.detached' | 'cgroup.kill' | 'cgroup.freeze' | 'limit.socket_memory' | 'limit.disk' | 'egress.capture' | 'view.proc' | 'view.uptime' | 'view.calls';

export interface Posture {
  /** Whether it is the default. */
  backend: string;
  /** Whether every required part is available. */
  ok: boolean;
  parts: Array<{
    name: string;
    ok: boolean;
    required: boolean;
    detail: string;
  }>;
  /** Of a sandbox: the directories of the machine that it has. */
  mounts?: Array<HostMount>;
}

export interface Dialects {
  listeners: Array<{
    /** An IPv4 or IPv6 address. */
    address: string;
    port: number;
    tls: boolean;
    /** Whether requests without a key are a user's. */
    anonymous: boolean;
    /** The sandbox that it is for; null: all. */
    sandbox: string | null;
    /** The only dialect here; null: all of them. */
    dialect: string | null;
    /** In the order in which a request is offered to them. */
    dialects: Array<Dialect>;
  }>;
  /** Ports of every sandbox that the server answers itself. */
  ports: Array<DialectPort>;
}

export interface Dialect {
  name: string;
  version: string | null;
  /** Another beginning that all its paths may have. */
  alias: string | null;
  routes: DialectRoutes;
  paths: DialectPaths;
  disabled: Array<{
    what: string;
    why: string;
  }>;
}

export interface DialectPort {
  port: number;
  dialect: string;
  version: string | null;
  routes: DialectRoutes;
  paths: DialectPaths;
}

/** Each as `METHOD /path/{name}`; the method `*` is any. */
export type DialectRoutes = Array<string>;

/** The beginnings of the routes, each once. */
export type DialectPaths = Array<string>;

export interface Capabilities {
  version: string;
  api: 'v1';
  backends: Array<{
    name: string;
    available: boolean;
    /** Parts of the posture that the machine does not support. */
    missing: Array<string>;
    /**
     * What its sandboxes can do on this machine. `capture`: every connection goes through the gate, not
     * only those to its proxy port. `disk_quota`: files have a limit. `pause`: it can be paused.
     * `snapshots`: its files can be copied; `memory_snapshots`: its processes with them.
     * `foreign_snapshots`: it starts from snapshots that other backends took. `own_kernel`: it does not
     * share the host's kernel.
     */
    can: Array<string>;
  }>;
  defaults: {
    backend: string;
    image: string;
    user: string;
    workdir: string;
    /** 0 means never. */
    ttl_seconds: number;
    limits: Limits;
  };
  max: {
    limits: Limits;
    sandboxes: number;
    /** 0 means no maximum. */
    ttl_seconds: number;
    /** Also the default. */
    exec_timeout_ms: number;
    /** Of stdout, and of stderr. */
    exec_output_bytes: number;
    /** Of a JSON body. */
    body_bytes: number;
  };
  images: Array<string>;
  features: Array<string>;
}

export interface Health {
  status: 'ok' | 'unavailable';
  /** Milliseconds since 1970. */
  timestamp: number;
  version: string;
  reasons?: Array<string>;
}

/** Every operation of the API, with the types of its parameters, its body and its result. */
export interface Operations {
  /** List sandboxes: `GET /v1/sandboxes` */
  listSandboxes: {
    path: {};
    query: {
      status?: 'creating' | 'running' | 'paused' | 'stopped';
      limit?: number;
      /** The `next` of the page before. */
      cursor?: string;
      /** Spelled `metadata.KEY=VALUE`. */
      metadata?: Record<string, string>;
    };
    body: undefined;
    result: SandboxPage;
  };
  /** Create a sandbox: `POST /v1/sandboxes` */
  createSandbox: {
    path: {};
    query: {};
    body: SandboxCreate;
    result: Sandbox;
  };
  /** Show a sandbox: `GET /v1/sandboxes/{id}` */
  getSandbox: {
    path: {
      /** The id, or the name within the key's tenant. */
      id: string;
    };
    query: {};
    body: undefined;
    result: Sandbox;
  };
  /** Change a sandbox's name, limits, metadata or expiry: `PATCH /v1/sandboxes/{id}` */
  changeSandbox: {
    path: {
      /** The id, or the name within the key's tenant. */
      id: string;
    };
    query: {};
    body: SandboxChange;
    result: Sandbox;
  };
  /** Delete a sandbox: `DELETE /v1/sandboxes/{id}` */
  deleteSandbox: {
    path: {
      /** The id, or the name within the key's tenant. */
      id: string;
    };
    query: {};
    body: undefined;
    result: void;
  };
  /** Reset a sandbox's expiry, counted from now: `POST /v1/sandboxes/{id}/extend` */
  extendSandbox: {
    path: {
      /** The id, or the name within the key's tenant. */
      id: string;
    };
    query: {};
    body: {
      /** 0 is no end, where the configuration allows that. */
      ttl_seconds: number;
    };
    result: Sandbox;
  };
  /** Pause a sandbox: `POST /v1/sandboxes/{id}/pause` */
  pauseSandbox: {
    path: {
      /** The id, or the name within the key's tenant. */
      id: string;
    };
    query: {};
    body: undefined;
    result: Sandbox;
  };
  /** Resume a sandbox: `POST /v1/sandboxes/{id}/resume` */
  resumeSandbox: {
    path: {
      /** The id, or the name within the key's tenant. */
      id: string;
    };
    query: {};
    body: undefined;
    result: Sandbox;
  };
  /** Stop a sandbox: `POST /v1/sandboxes/{id}/stop` */
  stopSandbox: {
    path: {
      /** The id, or the name within the key's tenant. */
      id: string;
    };
    query: {};
    body: undefined;
    result: Sandbox;
  };
  /** Start a stopped sandbox: `POST /v1/sandboxes/{id}/start` */
  startSandbox: {
    path: {
      /** The id, or the name within the key's tenant. */
      id: string;
    };
    query: {};
    body: undefined;
    result: Sandbox;
  };
  /** Create a snapshot: `POST /v1/sandboxes/{id}/snapshots` */
  createSnapshot: {
    path: {
      /** The id, or the name within the key's tenant. */
      id: string;
    };
    query: {};
    body: {
      /** Unique among the tenant's snapshots; usable instead of the id. */
      name?: string | null;
    };
    result: Snapshot;
  };
  /** Fork a sandbox: `POST /v1/sandboxes/{id}/fork` */
  forkSandbox: {
    path: {
      /** The id, or the name within the key's tenant. */
      id: string;
    };
    query: {};
    body: {
      count?: number | null;
      /** They are called PREFIX-1, PREFIX-2 and so on; without it they have no names. */
      name_prefix?: string | null;
      /** Instead of those of the original. */
      metadata?: Record<string, string> | null;
    };
    result: {
      sandboxes: Array<Sandbox>;
      /** How long the original stood still, in microseconds. */
      stopped_us: number;
    };
  };
  /** List snapshots: `GET /v1/snapshots` */
  listSnapshots: {
    path: {};
    query: {};
    body: undefined;
    result: {
      snapshots: Array<Snapshot>;
    };
  };
  /** Show a snapshot: `GET /v1/snapshots/{id}` */
  getSnapshot: {
    path: {
      /** The id, or the name within the key's tenant. */
      id: string;
    };
    query: {};
    body: undefined;
    result: Snapshot;
  };
  /** Delete a snapshot: `DELETE /v1/snapshots/{id}` */
  removeSnapshot: {
    path: {
      /** The id, or the name within the key's tenant. */
      id: string;
    };
    query: {};
    body: undefined;
    result: void;
  };
  /** List workspaces: `GET /v1/workspaces` */
  listWorkspaces: {
    path: {};
    query: {};
    body: undefined;
    result: {
      workspaces: Array<Workspace>;
    };
  };
  /** Create a workspace: `POST /v1/workspaces` */
  createWorkspace: {
    path: {};
    query: {};
    body: {
      /** Unique among the tenant's workspaces. */
      name: string;
      /** Its quota. The configured default, or that of the original, when absent. */
      disk_mb?: number | null;
      /** Begins with the files of this workspace, as they are at the moment. */
      clone_of?: string | null;
      /**
       * With `clone_of`: a snapshot, which never changes. It can be mounted with mode `ro`, read, cloned
       * and removed.
       */
      readonly?: boolean | null;
    };
    result: Workspace;
  };
  /** Show a workspace: `GET /v1/workspaces/{name}` */
  getWorkspace: {
    path: {
      /** The name within the key's tenant, or the id. */
      name: string;
    };
    query: {};
    body: undefined;
    result: Workspace;
  };
  /** Delete a workspace and its files: `DELETE /v1/workspaces/{name}` */
  removeWorkspace: {
    path: {
      /** The name within the key's tenant, or the id. */
      name: string;
    };
    query: {};
    body: undefined;
    result: void;
  };
  /** Read a file or list a directory of a workspace: `GET /v1/workspaces/{name}/files/{path}` */
  readWorkspaceFile: {
    path: {
      /** The name within the key's tenant, or the id. */
      name: string;
      /**
       * Relative to the workspace, percent-encoded, without `..`. Everything else is as with the files of a
       * sandbox that has the workspace at /workspace.
       */
      path: string;
    };
    query: {
      /** Whose rights; the configured default user when absent. */
      user?: string;
    };
    body: undefined;
    result: FileList;
  };
  /** Show the metadata of a file in a workspace: `HEAD /v1/workspaces/{name}/files/{path}` */
  statWorkspaceFile: {
    path: {
      /** The name within the key's tenant, or the id. */
      name: string;
      /**
       * Relative to the workspace, percent-encoded, without `..`. Everything else is as with the files of a
       * sandbox that has the workspace at /workspace.
       */
      path: string;
    };
    query: {
      /** Whose rights; the configured default user when absent. */
      user?: string;
    };
    body: undefined;
    result: void;
  };
  /** Write a file in a workspace: `PUT /v1/workspaces/{name}/files/{path}` */
  writeWorkspaceFile: {
    path: {
      /** The name within the key's tenant, or the id. */
      name: string;
      /**
       * Relative to the workspace, percent-encoded, without `..`. Everything else is as with the files of a
       * sandbox that has the workspace at /workspace.
       */
      path: string;
    };
    query: {
      /** Whose rights; the configured default user when absent. */
      user?: string;
    };
    body: Bytes;
    result: File;
  };
  /** Delete a file or directory in a workspace: `DELETE /v1/workspaces/{name}/files/{path}` */
  removeWorkspaceFile: {
    path: {
      /** The name within the key's tenant, or the id. */
      name: string;
      /**
       * Relative to the workspace, percent-encoded, without `..`. Everything else is as with the files of a
       * sandbox that has the workspace at /workspace.
       */
      path: string;
    };
    query: {
      /** Whose rights; the configured default user when absent. */
      user?: string;
      recursive?: boolean;
    };
    body: undefined;
    result: void;
  };
  /** Show resource usage, now and for the last hour: `GET /v1/sandboxes/{id}/stats` */
  getSandboxStats: {
    path: {
      /** The id, or the name within the key's tenant. */
      id: string;
    };
    query: {
      /** With `1` also the samples of the last hour, one every ten seconds. */
      history?: boolean;
    };
    body: undefined;
    result: Stats;
  };
  /** Show the isolation features of a sandbox: `GET /v1/sandboxes/{id}/posture` */
  getSandboxPosture: {
    path: {
      /** The id, or the name within the key's tenant. */
      id: string;
    };
    query: {};
    body: undefined;
    result: Posture;
  };
  /** Run a command and wait for its end: `POST /v1/sandboxes/{id}/exec` */
  exec: {
    path: {
      /** The id, or the name within the key's tenant. */
      id: string;
    };
    query: {};
    body: Exec;
    result: ExecResult;
  };
  /** List shells: `GET /v1/sandboxes/{id}/shells` */
  listShells: {
    path: {
      /** The id, or the name within the key's tenant. */
      id: string;
    };
    query: {};
    body: undefined;
    result: {
      shells: Array<Shell>;
    };
  };
  /** Create a shell: `POST /v1/sandboxes/{id}/shells` */
  createShell: {
    path: {
      /** The id, or the name within the key's tenant. */
      id: string;
    };
    query: {};
    body: ShellCreate;
    result: Shell;
  };
  /** Show a shell: `GET /v1/sandboxes/{id}/shells/{name}` */
  getShell: {
    path: {
      /** The id, or the name within the key's tenant. */
      id: string;
      name: string;
    };
    query: {};
    body: undefined;
    result: Shell;
  };
  /** End a shell: `DELETE /v1/sandboxes/{id}/shells/{name}` */
  removeShell: {
    path: {
      /** The id, or the name within the key's tenant. */
      id: string;
      name: string;
    };
    query: {};
    body: undefined;
    result: void;
  };
  /** List processes: `GET /v1/sandboxes/{id}/processes` */
  listProcesses: {
    path: {
      /** The id, or the name within the key's tenant. */
      id: string;
    };
    query: {};
    body: undefined;
    result: {
      processes: Array<Process>;
    };
  };
  /** Start a process that outlives its client: `POST /v1/sandboxes/{id}/processes` */
  startProcess: {
    path: {
      /** The id, or the name within the key's tenant. */
      id: string;
    };
    query: {};
    body: ProcessCreate;
    result: ProcessStarted;
  };
  /** Show a process: `GET /v1/sandboxes/{id}/processes/{process}` */
  getProcess: {
    path: {
      /** The id, or the name within the key's tenant. */
      id: string;
      /** A pid or a tag. */
      process: string;
    };
    query: {};
    body: undefined;
    result: Process;
  };
  /** Kill a process and everything it has started: `DELETE /v1/sandboxes/{id}/processes/{process}` */
  killProcess: {
    path: {
      /** The id, or the name within the key's tenant. */
      id: string;
      /** A pid or a tag. */
      process: string;
    };
    query: {};
    body: undefined;
    result: void;
  };
  /** Read or follow the output of a process: `GET /v1/sandboxes/{id}/processes/{process}/output` */
  readProcessOutput: {
    path: {
      /** The id, or the name within the key's tenant. */
      id: string;
      /** A pid or a tag. */
      process: string;
    };
    query: {
      /** The next byte wanted of stdout, or of the terminal. */
      stdout?: number;
      stderr?: number;
      follow?: boolean;
    };
    body: undefined;
    result: ProcessOutput;
  };
  /** Wait for the end of a process: `GET /v1/sandboxes/{id}/processes/{process}/wait` */
  waitForProcess: {
    path: {
      /** The id, or the name within the key's tenant. */
      id: string;
      /** A pid or a tag. */
      process: string;
    };
    query: {
      /** After this time the answer is that it still runs. */
      timeout_ms?: number;
    };
    body: undefined;
    result: ProcessEnd;
  };
  /** Write to the stdin of a process: `POST /v1/sandboxes/{id}/processes/{process}/stdin` */
  writeProcessInput: {
    path: {
      /** The id, or the name within the key's tenant. */
      id: string;
      /** A pid or a tag. */
      process: string;
    };
    query: {
      /** `1` closes stdin at the end of the body. A terminal cannot be closed. */
      close?: boolean;
    };
    body: Bytes | undefined;
    result: void;
  };
  /** Send a signal to a process group: `POST /v1/sandboxes/{id}/processes/{process}/signal` */
  signalProcess: {
    path: {
      /** The id, or the name within the key's tenant. */
      id: string;
      /** A pid or a tag. */
      process: string;
    };
    query: {};
    body: {
      /** A name, with or without SIG, or a number from 1 to 64. */
      signal: string | number;
    };
    result: void;
  };
  /** Change the size of a process's terminal: `POST /v1/sandboxes/{id}/processes/{process}/resize` */
  resizeProcess: {
    path: {
      /** The id, or the name within the key's tenant. */
      id: string;
      /** A pid or a tag. */
      process: string;
    };
    query: {};
    body: TerminalSize;
    result: void;
  };
  /** Open a terminal over a WebSocket: `GET /v1/sandboxes/{id}/terminal` */
  openTerminal: {
    path: {
      /** The id, or the name within the key's tenant. */
      id: string;
    };
    query: {
      cols?: number;
      rows?: number;
      /** TERM of the shell, as the client's terminal is; xterm-256color when absent. */
      term?: string;
      /** LANG of the shell; C.UTF-8 when absent, or where the sandbox does not have that locale. */
      lang?: string;
      user?: string;
      cwd?: string;
      /** Attach to this one, by pid or tag, instead. */
      process?: string;
      /** The next byte wanted of its output. */
      offset?: number;
      kill_on_disconnect?: boolean;
    };
    body: undefined;
    result: void;
  };
  /** Execute code in the default context of its language: `POST /v1/sandboxes/{id}/execute` */
  execute: {
    path: {
      /** The id, or the name within the key's tenant. */
      id: string;
    };
    query: {};
    body: Execute;
    result: Execution;
  };
  /** List code contexts: `GET /v1/sandboxes/{id}/contexts` */
  listContexts: {
    path: {
      /** The id, or the name within the key's tenant. */
      id: string;
    };
    query: {};
    body: undefined;
    result: {
      contexts: Array<Context>;
    };
  };
  /** Create a code context: `POST /v1/sandboxes/{id}/contexts` */
  createContext: {
    path: {
      /** The id, or the name within the key's tenant. */
      id: string;
    };
    query: {};
    body: ContextCreate;
    result: Context;
  };
  /** Show a code context: `GET /v1/sandboxes/{id}/contexts/{context}` */
  getContext: {
    path: {
      /** The id, or the name within the key's tenant. */
      id: string;
      /** Its id; the name of a language is the one that `execute` makes. */
      context: string;
    };
    query: {};
    body: undefined;
    result: Context;
  };
  /** End a code context: `DELETE /v1/sandboxes/{id}/contexts/{context}` */
  removeContext: {
    path: {
      /** The id, or the name within the key's tenant. */
      id: string;
      /** Its id; the name of a language is the one that `execute` makes. */
      context: string;
    };
    query: {};
    body: undefined;
    result: void;
  };
  /** Restart a code context with an empty namespace: `POST /v1/sandboxes/{id}/contexts/{context}/restart` */
  restartContext: {
    path: {
      /** The id, or the name within the key's tenant. */
      id: string;
      /** Its id; the name of a language is the one that `execute` makes. */
      context: string;
    };
    query: {};
    body: undefined;
    result: Context;
  };
  /** Interrupt running code: `POST /v1/sandboxes/{id}/contexts/{context}/interrupt` */
  interruptContext: {
    path: {
      /** The id, or the name within the key's tenant. */
      id: string;
      /** Its id; the name of a language is the one that `execute` makes. */
      context: string;
    };
    query: {};
    body: undefined;
    result: Context;
  };
  /** Execute code in a context: `POST /v1/sandboxes/{id}/contexts/{context}/execute` */
  executeInContext: {
    path: {
      /** The id, or the name within the key's tenant. */
      id: string;
      /** Its id; the name of a language is the one that `execute` makes. */
      context: string;
    };
    query: {};
    body: ExecuteInContext;
    result: Execution;
  };
  /** List listening ports: `GET /v1/sandboxes/{id}/ports` */
  listPorts: {
    path: {
      /** The id, or the name within the key's tenant. */
      id: string;
    };
    query: {
      /**
       * The answer is the address of this port alone, `{port, url}`, whether something listens there or
       * not.
       */
      port?: number;
    };
    body: undefined;
    result: Ports;
  };
  /** Send a GET request to a server in the sandbox: `GET /v1/sandboxes/{id}/ports/{port}/{path}` */
  portGet: {
    path: {
      /** The id, or the name within the key's tenant. */
      id: string;
      port: number;
      /**
       * What the server in the sandbox sees, with everything behind it. HTTP/1.1, streamed both ways;
       * WebSockets pass. Keys and tokens of ours and all cookies are taken out of the request. The page
       * gets no cookies, and a Content-Security-Policy that makes it a stranger to this server's origin:
       * where it needs an origin of its own, use a domain (`ports.domain` in the configuration), where
       * PORT-ID.domain is the same port.
       */
      path: string;
    };
    query: {};
    body: undefined;
    result: void;
  };
  /** Send a HEAD request to a server in the sandbox: `HEAD /v1/sandboxes/{id}/ports/{port}/{path}` */
  portHead: {
    path: {
      /** The id, or the name within the key's tenant. */
      id: string;
      port: number;
      /**
       * What the server in the sandbox sees, with everything behind it. HTTP/1.1, streamed both ways;
       * WebSockets pass. Keys and tokens of ours and all cookies are taken out of the request. The page
       * gets no cookies, and a Content-Security-Policy that makes it a stranger to this server's origin:
       * where it needs an origin of its own, use a domain (`ports.domain` in the configuration), where
       * PORT-ID.domain is the same port.
       */
      path: string;
    };
    query: {};
    body: undefined;
    result: void;
  };
  /** Send a PUT request to a server in the sandbox: `PUT /v1/sandboxes/{id}/ports/{port}/{path}` */
  portPut: {
    path: {
      /** The id, or the name within the key's tenant. */
      id: string;
      port: number;
      /**
       * What the server in the sandbox sees, with everything behind it. HTTP/1.1, streamed both ways;
       * WebSockets pass. Keys and tokens of ours and all cookies are taken out of the request. The page
       * gets no cookies, and a Content-Security-Policy that makes it a stranger to this server's origin:
       * where it needs an origin of its own, use a domain (`ports.domain` in the configuration), where
       * PORT-ID.domain is the same port.
       */
      path: string;
    };
    query: {};
    body: undefined;
    result: void;
  };
  /** Send a POST request to a server in the sandbox: `POST /v1/sandboxes/{id}/ports/{port}/{path}` */
  portPost: {
    path: {
      /** The id, or the name within the key's tenant. */
      id: string;
      port: number;
      /**
       * What the server in the sandbox sees, with everything behind it. HTTP/1.1, streamed both ways;
       * WebSockets pass. Keys and tokens of ours and all cookies are taken out of the request. The page
       * gets no cookies, and a Content-Security-Policy that makes it a stranger to this server's origin:
       * where it needs an origin of its own, use a domain (`ports.domain` in the configuration), where
       * PORT-ID.domain is the same port.
       */
      path: string;
    };
    query: {};
    body: undefined;
    result: void;
  };
  /** Send a PATCH request to a server in the sandbox: `PATCH /v1/sandboxes/{id}/ports/{port}/{path}` */
  portPatch: {
    path: {
      /** The id, or the name within the key's tenant. */
      id: string;
      port: number;
      /**
       * What the server in the sandbox sees, with everything behind it. HTTP/1.1, streamed both ways;
       * WebSockets pass. Keys and tokens of ours and all cookies are taken out of the request. The page
       * gets no cookies, and a Content-Security-Policy that makes it a stranger to this server's origin:
       * where it needs an origin of its own, use a domain (`ports.domain` in the configuration), where
       * PORT-ID.domain is the same port.
       */
      path: string;
    };
    query: {};
    body: undefined;
    result: void;
  };
  /** Send a DELETE request to a server in the sandbox: `DELETE /v1/sandboxes/{id}/ports/{port}/{path}` */
  portDelete: {
    path: {
      /** The id, or the name within the key's tenant. */
      id: string;
      port: number;
      /**
       * What the server in the sandbox sees, with everything behind it. HTTP/1.1, streamed both ways;
       * WebSockets pass. Keys and tokens of ours and all cookies are taken out of the request. The page
       * gets no cookies, and a Content-Security-Policy that makes it a stranger to this server's origin:
       * where it needs an origin of its own, use a domain (`ports.domain` in the configuration), where
       * PORT-ID.domain is the same port.
       */
      path: string;
    };
    query: {};
    body: undefined;
    result: void;
  };
  /** Send a OPTIONS request to a server in the sandbox: `OPTIONS /v1/sandboxes/{id}/ports/{port}/{path}` */
  portOptions: {
    path: {
      /** The id, or the name within the key's tenant. */
      id: string;
      port: number;
      /**
       * What the server in the sandbox sees, with everything behind it. HTTP/1.1, streamed both ways;
       * WebSockets pass. Keys and tokens of ours and all cookies are taken out of the request. The page
       * gets no cookies, and a Content-Security-Policy that makes it a stranger to this server's origin:
       * where it needs an origin of its own, use a domain (`ports.domain` in the configuration), where
       * PORT-ID.domain is the same port.
       */
      path: string;
    };
    query: {};
    body: undefined;
    result: void;
  };
  /** Send a GET request through a signed link: `GET /v1/previews/{id}/{port}/{ticket}/{path}` */
  previewGet: {
    path: {
      /** The id, or the name within the key's tenant. */
      id: string;
      port: number;
      /** Of `createPreview`. */
      ticket: string;
      /** What the server in the sandbox sees, with everything behind it. */
      path: string;
    };
    query: {};
    body: undefined;
    result: void;
  };
  /** Send a HEAD request through a signed link: `HEAD /v1/previews/{id}/{port}/{ticket}/{path}` */
  previewHead: {
    path: {
      /** The id, or the name within the key's tenant. */
      id: string;
      port: number;
      /** Of `createPreview`. */
      ticket: string;
      /** What the server in the sandbox sees, with everything behind it. */
      path: string;
    };
    query: {};
    body: undefined;
    result: void;
  };
  /** Send a PUT request through a signed link: `PUT /v1/previews/{id}/{port}/{ticket}/{path}` */
  previewPut: {
    path: {
      /** The id, or the name within the key's tenant. */
      id: string;
      port: number;
      /** Of `createPreview`. */
      ticket: string;
      /** What the server in the sandbox sees, with everything behind it. */
      path: string;
    };
    query: {};
    body: undefined;
    result: void;
  };
  /** Send a POST request through a signed link: `POST /v1/previews/{id}/{port}/{ticket}/{path}` */
  previewPost: {
    path: {
      /** The id, or the name within the key's tenant. */
      id: string;
      port: number;
      /** Of `createPreview`. */
      ticket: string;
      /** What the server in the sandbox sees, with everything behind it. */
      path: string;
    };
    query: {};
    body: undefined;
    result: void;
  };
  /** Send a PATCH request through a signed link: `PATCH /v1/previews/{id}/{port}/{ticket}/{path}` */
  previewPatch: {
    path: {
      /** The id, or the name within the key's tenant. */
      id: string;
      port: number;
      /** Of `createPreview`. */
      ticket: string;
      /** What the server in the sandbox sees, with everything behind it. */
      path: string;
    };
    query: {};
    body: undefined;
    result: void;
  };
  /** Send a DELETE request through a signed link: `DELETE /v1/previews/{id}/{port}/{ticket}/{path}` */
  previewDelete: {
    path: {
      /** The id, or the name within the key's tenant. */
      id: string;
      port: number;
      /** Of `createPreview`. */
      ticket: string;
      /** What the server in the sandbox sees, with everything behind it. */
      path: string;
    };
    query: {};
    body: undefined;
    result: void;
  };
  /** Send a OPTIONS request through a signed link: `OPTIONS /v1/previews/{id}/{port}/{ticket}/{path}` */
  previewOptions: {
    path: {
      /** The id, or the name within the key's tenant. */
      id: string;
      port: number;
      /** Of `createPreview`. */
      ticket: string;
      /** What the server in the sandbox sees, with everything behind it. */
      path: string;
    };
    query: {};
    body: undefined;
    result: void;
  };
  /** Create a signed link to a port: `POST /v1/sandboxes/{id}/previews` */
  createPreview: {
    path: {
      /** The id, or the name within the key's tenant. */
      id: string;
    };
    query: {};
    body: {
      port: number;
      expires_seconds?: number | null;
    };
    result: {
      url: string;
      expires_at: string;
    };
  };
  /** Open a TCP connection to a port over a WebSocket: `GET /v1/sandboxes/{id}/tunnel/{port}` */
  openTunnel: {
    path: {
      /** The id, or the name within the key's tenant. */
      id: string;
      port: number;
    };
    query: {};
    body: undefined;
    result: void;
  };
  /** List links: `GET /v1/links` */
  listLinks: {
    path: {};
    query: {};
    body: undefined;
    result: {
      links: Array<Link>;
    };
  };
  /** Link a port of one sandbox to another: `POST /v1/links` */
  createLink: {
    path: {};
    query: {};
    body: {
      /** An id or a name. */
      from: string;
      /** An id or a name. */
      to: string;
      port: number;
      /** The same as `port` when absent. */
      listen?: number | null;
    };
    result: Link;
  };
  /** Delete a link: `DELETE /v1/links/{id}` */
  deleteLink: {
    path: {
      id: string;
    };
    query: {};
    body: undefined;
    result: void;
  };
  /** Read a file, list a directory, or download a tree: `GET /v1/sandboxes/{id}/files/{path}` */
  readFile: {
    path: {
      /** The id, or the name within the key's tenant. */
      id: string;
      /**
       * The absolute path in the sandbox without its first slash, percent-encoded; slashes may stay as they
       * are. Resolved inside the sandbox, with the rights of `user`.
       */
      path: string;
    };
    query: {
      /** A name or a uid in the sandbox; its own default user when absent. */
      user?: string;
      /** `1` lists the directory instead. */
      list?: boolean;
      /** Of a list. More than 1 also lists directories in it; the entries then have a `path`. */
      depth?: number;
      /**
       * Of a list: a page of at most so many entries, in the order of their paths. All of them, in no
       * order, when absent.
       */
      limit?: number;
      /** The `next` of the page before. */
      cursor?: string;
      archive?: 'tar';
      /** Of `signUrl`, instead of a key. No parameter but `expires` and `user` can be given with it. */
      signature?: string;
      /** Of `signUrl`, with `signature`. */
      expires?: number;
    };
    body: undefined;
    result: FileList;
  };
  /** Show the metadata of a file: `HEAD /v1/sandboxes/{id}/files/{path}` */
  statFile: {
    path: {
      /** The id, or the name within the key's tenant. */
      id: string;
      /**
       * The absolute path in the sandbox without its first slash, percent-encoded; slashes may stay as they
       * are. Resolved inside the sandbox, with the rights of `user`.
       */
      path: string;
    };
    query: {
      /** A name or a uid in the sandbox; its own default user when absent. */
      user?: string;
      /** Of `signUrl`, instead of a key. No parameter but `expires` and `user` can be given with it. */
      signature?: string;
      /** Of `signUrl`, with `signature`. */
      expires?: number;
    };
    body: undefined;
    result: void;
  };
  /** Write a file: `PUT /v1/sandboxes/{id}/files/{path}` */
  writeFile: {
    path: {
      /** The id, or the name within the key's tenant. */
      id: string;
      /**
       * The absolute path in the sandbox without its first slash, percent-encoded; slashes may stay as they
       * are. Resolved inside the sandbox, with the rights of `user`.
       */
      path: string;
    };
    query: {
      /** A name or a uid in the sandbox; its own default user when absent. */
      user?: string;
      append?: boolean;
      archive?: 'tar';
      /** Of `signUrl`, instead of a key. No parameter but `expires` and `user` can be given with it. */
      signature?: string;
      /** Of `signUrl`, with `signature`. */
      expires?: number;
      /** Octal. 0644 for a new file, unchanged for an old one when absent. */
      mode?: string;
    };
    body: Bytes;
    result: File | FileSum | File;
  };
  /** Upload several files into a directory: `POST /v1/sandboxes/{id}/files/{path}` */
  uploadFiles: {
    path: {
      /** The id, or the name within the key's tenant. */
      id: string;
      /**
       * The absolute path in the sandbox without its first slash, percent-encoded; slashes may stay as they
       * are. Resolved inside the sandbox, with the rights of `user`.
       */
      path: string;
    };
    query: {
      /** A name or a uid in the sandbox; its own default user when absent. */
      user?: string;
    };
    body: Bytes;
    result: {
      files: Array<File>;
    };
  };
  /** Delete a file or directory: `DELETE /v1/sandboxes/{id}/files/{path}` */
  removeFile: {
    path: {
      /** The id, or the name within the key's tenant. */
      id: string;
      /**
       * The absolute path in the sandbox without its first slash, percent-encoded; slashes may stay as they
       * are. Resolved inside the sandbox, with the rights of `user`.
       */
      path: string;
    };
    query: {
      /** A name or a uid in the sandbox; its own default user when absent. */
      user?: string;
      /** `1` also removes the contents of a directory. */
      recursive?: boolean;
    };
    body: undefined;
    result: void;
  };
  /** Move or rename a file or directory: `POST /v1/sandboxes/{id}/fs/move` */
  moveFile: {
    path: {
      /** The id, or the name within the key's tenant. */
      id: string;
    };
    query: {};
    body: FileMove;
    result: {
      copied: boolean;
    };
  };
  /** Copy a file or directory: `POST /v1/sandboxes/{id}/fs/copy` */
  copyFile: {
    path: {
      /** The id, or the name within the key's tenant. */
      id: string;
    };
    query: {};
    body: FileCopy;
    result: FileSum;
  };
  /** Create a directory: `POST /v1/sandboxes/{id}/fs/mkdir` */
  makeDirectory: {
    path: {
      /** The id, or the name within the key's tenant. */
      id: string;
    };
    query: {};
    body: FileMkdir;
    result: void;
  };
  /** Change mode or owner of a file: `POST /v1/sandboxes/{id}/fs/chmod` */
  changeMode: {
    path: {
      /** The id, or the name within the key's tenant. */
      id: string;
    };
    query: {};
    body: FileChmod;
    result: {
      changed: number;
    };
  };
  /** Show what is at a path: `GET /v1/sandboxes/{id}/fs/stat` */
  statPath: {
    path: {
      /** The id, or the name within the key's tenant. */
      id: string;
    };
    query: {
      /** An absolute path. */
      path: string;
      user?: string;
    };
    body: undefined;
    result: File;
  };
  /** Find files by name: `POST /v1/sandboxes/{id}/fs/find` */
  findFiles: {
    path: {
      /** The id, or the name within the key's tenant. */
      id: string;
    };
    query: {};
    body: FileFind;
    result: FileFound;
  };
  /** Search text in files: `POST /v1/sandboxes/{id}/fs/grep` */
  grepFiles: {
    path: {
      /** The id, or the name within the key's tenant. */
      id: string;
    };
    query: {};
    body: FileGrep;
    result: FileMatches;
  };
  /** Replace text in a file: `POST /v1/sandboxes/{id}/fs/replace` */
  replaceInFile: {
    path: {
      /** The id, or the name within the key's tenant. */
      id: string;
    };
    query: {};
    body: FileReplace;
    result: {
      replaced: number;
      file: File;
    };
  };
  /** Create a URL that needs no key: `POST /v1/sandboxes/{id}/fs/sign` */
  signUrl: {
    path: {
      /** The id, or the name within the key's tenant. */
      id: string;
    };
    query: {};
    body: FileSign;
    result: {
      url: string;
      expires_at: string;
    };
  };
  /** Watch files as a stream of events: `GET /v1/sandboxes/{id}/fs/watch` */
  watchFiles: {
    path: {
      /** The id, or the name within the key's tenant. */
      id: string;
    };
    query: {
      /** An absolute path. */
      path: string;
      user?: string;
      recursive?: boolean;
    };
    body: undefined;
    result: Bytes;
  };
  /** Create a watcher to be polled: `POST /v1/sandboxes/{id}/fs/watchers` */
  createWatcher: {
    path: {
      /** The id, or the name within the key's tenant. */
      id: string;
    };
    query: {};
    body: WatcherCreate;
    result: {
      id: string;
    };
  };
  /** Get the changes since the last poll: `GET /v1/sandboxes/{id}/fs/watchers/{watcher}` */
  pollWatcher: {
    path: {
      /** The id, or the name within the key's tenant. */
      id: string;
      watcher: string;
    };
    query: {};
    body: undefined;
    result: FileNews;
  };
  /** Delete a watcher: `DELETE /v1/sandboxes/{id}/fs/watchers/{watcher}` */
  removeWatcher: {
    path: {
      /** The id, or the name within the key's tenant. */
      id: string;
      watcher: string;
    };
    query: {};
    body: undefined;
    result: void;
  };
  /** List images: `GET /v1/images` */
  listImages: {
    path: {};
    query: {};
    body: undefined;
    result: {
      images: Array<Image>;
    };
  };
  /** Create an image from a snapshot (admin): `POST /v1/images` */
  createImage: {
    path: {};
    query: {};
    body: {
      name: string;
      /** A name or an id. */
      snapshot: string;
    };
    result: Image;
  };
  /** Import an image from an archive (admin): `PUT /v1/images/{name}` */
  importImage: {
    path: {
      /** A name; for DELETE also a digest. */
      name: string;
    };
    query: {};
    body: Bytes;
    result: Image;
  };
  /** Delete an image (admin): `DELETE /v1/images/{name}` */
  removeImage: {
    path: {
      /** A name; for DELETE also a digest. */
      name: string;
    };
    query: {};
    body: undefined;
    result: void;
  };
  /** List keys (admin): `GET /v1/keys` */
  listKeys: {
    path: {};
    query: {};
    body: undefined;
    result: {
      keys: Array<Key>;
    };
  };
  /** Create a key (admin): `POST /v1/keys` */
  createKey: {
    path: {};
    query: {};
    body: KeyCreate;
    result: Key;
  };
  /** Revoke a key (admin): `DELETE /v1/keys/{id}` */
  removeKey: {
    path: {
      id: string;
    };
    query: {};
    body: undefined;
    result: void;
  };
  /** List or stream events: `GET /v1/events` */
  listEvents: {
    path: {};
    query: {
      /** The id of the last event that was seen. */
      after?: number;
      /** Only of this sandbox, by its id. */
      sandbox?: string;
      /** Only of these types, separated by commas. */
      type?: string;
      /** Of a page. */
      limit?: number;
    };
    body: undefined;
    result: Events;
  };
  /** List agents: `GET /v1/agents` */
  listAgents: {
    path: {};
    query: {};
    body: undefined;
    result: {
      agents: Array<Agent>;
    };
  };
  /** Install an agent from its manifest: `POST /v1/agents` */
  installAgent: {
    path: {};
    query: {};
    body: AgentCreate;
    result: {
      manifest: AgentManifest;
    } | Agent;
  };
  /** Show an agent: `GET /v1/agents/{id}` */
  getAgent: {
    path: {
      /** Its id or name. */
      id: string;
    };
    query: {};
    body: undefined;
    result: Agent;
  };
  /** Stop and delete an agent, its image and its workspace: `DELETE /v1/agents/{id}` */
  removeAgent: {
    path: {
      /** Its id or name. */
      id: string;
    };
    query: {};
    body: undefined;
    result: void;
  };
  /** Upload an agent's files and build its image: `PUT /v1/agents/{id}/code` */
  uploadAgentCode: {
    path: {
      /** Its id or name. */
      id: string;
    };
    query: {};
    body: Bytes;
    result: Agent;
  };
  /** Upgrade an agent to a new version: `POST /v1/agents/{id}/upgrade` */
  upgradeAgent: {
    path: {
      /** Its id or name. */
      id: string;
    };
    query: {};
    body: AgentUpgradeRequest;
    result: {
      manifest: AgentManifest;
      /** What it asks for beyond the present manifest, such as `permissions.chains: eip155:1`. */
      asks_more: Array<string>;
    } | Agent;
  };
  /** List the catalogues of agents: `GET /v1/catalogues` */
  listCatalogues: {
    path: {};
    query: {};
    body: undefined;
    result: {
      catalogues: Array<Catalogue>;
    };
  };
  /** Start an agent: `POST /v1/agents/{id}/start` */
  startAgent: {
    path: {
      /** Its id or name. */
      id: string;
    };
    query: {};
    body: undefined;
    result: Agent;
  };
  /** Stop an agent: `POST /v1/agents/{id}/stop` */
  stopAgent: {
    path: {
      /** Its id or name. */
      id: string;
    };
    query: {};
    body: undefined;
    result: Agent;
  };
  /** Restart an agent: `POST /v1/agents/{id}/restart` */
  restartAgent: {
    path: {
      /** Its id or name. */
      id: string;
    };
    query: {};
    body: undefined;
    result: Agent;
  };
  /** Read or follow an agent's log: `GET /v1/agents/{id}/logs` */
  listAgentLogs: {
    path: {
      /** Its id or name. */
      id: string;
    };
    query: {
      /** Entries of this level and above. */
      level?: 'debug' | 'info' | 'success' | 'warn' | 'error';
      /** Entries behind the one with this id. Without it, the newest ones. */
      after?: number;
      limit?: number;
    };
    body: undefined;
    result: {
      entries: Array<AgentLog>;
      /** For `after` of the next request. */
      next: number;
    };
  };
  /** Show what an agent may spend: `GET /v1/agents/{id}/limits` */
  getAgentLimits: {
    path: {
      /** Its id or name. */
      id: string;
    };
    query: {};
    body: undefined;
    result: AgentLimits;
  };
  /** Make an agent's limits stricter: `PUT /v1/agents/{id}/limits` */
  setAgentLimits: {
    path: {
      /** Its id or name. */
      id: string;
    };
    query: {};
    body: AgentLimitsChange;
    result: AgentLimits;
  };
  /** Show what an agent has spent, beside its limits: `GET /v1/agents/{id}/spending` */
  getAgentSpending: {
    path: {
      /** Its id or name. */
      id: string;
    };
    query: {};
    body: undefined;
    result: Spending;
  };
  /** List transactions: `GET /v1/transactions` */
  listTransactions: {
    path: {};
    query: {
      /** The agent's id or name. */
      agent?: string;
      state?: TransactionState;
      /** A CAIP-2 id such as eip155:1. */
      chain?: string;
      /** An address of a token, or `native`. Only transactions that spend it. */
      asset?: string;
      /** At most 500; with `format=csv` 10,000, which is then the default. */
      limit?: number;
      /** The `next` of the page before, or its `Paddock-Next`. */
      after?: string;
      format?: 'json' | 'csv';
    };
    body: undefined;
    result: {
      transactions: Array<Transaction>;
      /** For `after` of the next page; null on the last one. */
      next: string | null;
    };
  };
  /** Show a transaction with everything that a person needs to decide: `GET /v1/transactions/{id}` */
  getTransaction: {
    path: {
      id: string;
    };
    query: {};
    body: undefined;
    result: Transaction;
  };
  /** Approve a transaction: `POST /v1/transactions/{id}/approve` */
  approveTransaction: {
    path: {
      id: string;
    };
    query: {};
    body: TransactionApprove;
    result: Transaction;
  };
  /** Reject a transaction: `POST /v1/transactions/{id}/reject` */
  rejectTransaction: {
    path: {
      id: string;
    };
    query: {};
    body: TransactionNote;
    result: Transaction;
  };
  /** Cancel a transaction: `POST /v1/transactions/{id}/cancel` */
  cancelTransaction: {
    path: {
      id: string;
    };
    query: {};
    body: TransactionNote;
    result: Transaction;
  };
  /** Send a transaction again with higher fees: `POST /v1/transactions/{id}/speed-up` */
  speedUpTransaction: {
    path: {
      id: string;
    };
    query: {};
    body: TransactionNote;
    result: Transaction;
  };
  /** Take back the allowance that a transaction gave: `POST /v1/transactions/{id}/revoke` */
  revokeTransaction: {
    path: {
      id: string;
    };
    query: {};
    body: TransactionNote;
    result: Transaction;
  };
  /** Report what an external wallet did: `POST /v1/transactions/{id}/wallet` */
  answerTransaction: {
    path: {
      id: string;
    };
    query: {};
    body: TransactionAnswer;
    result: Transaction;
  };
  /** List wallets: `GET /v1/wallets` */
  listWallets: {
    path: {};
    query: {};
    body: undefined;
    result: {
      wallets: Array<Wallet>;
    };
  };
  /** Show what all agents together have spent from a wallet: `GET /v1/wallets/{id}/spending` */
  getWalletSpending: {
    path: {
      id: string;
    };
    query: {};
    body: undefined;
    result: Spending;
  };
  /** Connect a wallet by WalletConnect: `POST /v1/wallets/connect` */
  connectWallet: {
    path: {};
    query: {};
    body: WalletConnect;
    result: WalletPairing;
  };
  /** List the sessions with WalletConnect wallets: `GET /v1/wallets/sessions` */
  listWalletSessions: {
    path: {};
    query: {};
    body: undefined;
    result: {
      sessions: Array<WalletSession>;
    };
  };
  /** End a session with a wallet: `DELETE /v1/wallets/sessions/{id}` */
  removeWalletSession: {
    path: {
      id: string;
    };
    query: {};
    body: undefined;
    result: void;
  };
  /** List the chains of the configuration, with their health: `GET /v1/chains` */
  listChains: {
    path: {};
    query: {};
    body: undefined;
    result: {
      chains: Array<Chain>;
    };
  };
  /** Show the signer's status: `GET /v1/signer` */
  getSigner: {
    path: {};
    query: {};
    body: undefined;
    result: SignerStatus;
  };
  /** The kill switch: stop all signing: `PUT /v1/signer` */
  pauseSigner: {
    path: {};
    query: {};
    body: SignerPause;
    result: SignerStatus;
  };
  /** Read the signer's audit log: `GET /v1/signer/audit` */
  listSignerAudit: {
    path: {};
    query: {
      /** Entries behind the one with this number. */
      after?: number;
      limit?: number;
      verify?: boolean;
    };
    body: undefined;
    result: AuditEntries;
  };
  /** List webhooks: `GET /v1/webhooks` */
  listWebhooks: {
    path: {};
    query: {};
    body: undefined;
    result: {
      webhooks: Array<Webhook>;
    };
  };
  /** Create a webhook: `POST /v1/webhooks` */
  createWebhook: {
    path: {};
    query: {};
    body: WebhookCreate;
    result: Webhook;
  };
  /** Show a webhook and its last deliveries: `GET /v1/webhooks/{id}` */
  getWebhook: {
    path: {
      id: string;
    };
    query: {};
    body: undefined;
    result: Webhook;
  };
  /** Delete a webhook: `DELETE /v1/webhooks/{id}` */
  removeWebhook: {
    path: {
      id: string;
    };
    query: {};
    body: undefined;
    result: void;
  };
  /** List the tenant's secrets: `GET /v1/secrets` */
  listSecrets: {
    path: {};
    query: {};
    body: undefined;
    result: Secrets;
  };
  /** Set a secret of the tenant: `PUT /v1/secrets/{name}` */
  setSecret: {
    path: {
      name: string;
    };
    query: {};
    body: SecretValue;
    result: Secret;
  };
  /** Delete a secret of the tenant and all its versions: `DELETE /v1/secrets/{name}` */
  removeSecret: {
    path: {
      name: string;
    };
    query: {};
    body: undefined;
    result: void;
  };
  /** List a sandbox's own secrets: `GET /v1/sandboxes/{id}/secrets` */
  listSandboxSecrets: {
    path: {
      /** The id, or the name within the key's tenant. */
      id: string;
    };
    query: {};
    body: undefined;
    result: Secrets;
  };
  /** Set a secret of one sandbox: `PUT /v1/sandboxes/{id}/secrets/{name}` */
  setSandboxSecret: {
    path: {
      /** The id, or the name within the key's tenant. */
      id: string;
      name: string;
    };
    query: {};
    body: SecretValue;
    result: Secret;
  };
  /** Delete a secret of one sandbox: `DELETE /v1/sandboxes/{id}/secrets/{name}` */
  removeSandboxSecret: {
    path: {
      /** The id, or the name within the key's tenant. */
      id: string;
      name: string;
    };
    query: {};
    body: undefined;
    result: void;
  };
  /** Rotate the master key (admin): `POST /v1/vault/rotate` */
  rotateVault: {
    path: {};
    query: {};
    body: undefined;
    result: {
      /** The id of the new key. */
      key: string;
      /** Files that were sealed again. */
      resealed: number;
    };
  };
  /** Get the certificate of the installation's authority: `GET /v1/vault/ca.pem` */
  getAuthority: {
    path: {};
    query: {};
    body: undefined;
    result: Bytes;
  };
  /** List tenants with their quotas and usage (admin): `GET /v1/tenants` */
  listTenants: {
    path: {};
    query: {};
    body: undefined;
    result: {
      tenants: Array<Tenant>;
    };
  };
  /** Create a tenant (admin): `POST /v1/tenants` */
  createTenant: {
    path: {};
    query: {};
    body: TenantCreate;
    result: Tenant;
  };
  /** Show a tenant's quota and usage (admin): `GET /v1/tenants/{id}/quota` */
  getQuota: {
    path: {
      /** The id or the name. */
      id: string;
    };
    query: {};
    body: undefined;
    result: Tenant;
  };
  /** Set a tenant's quota (admin): `PUT /v1/tenants/{id}/quota` */
  setQuota: {
    path: {
      /** The id or the name. */
      id: string;
    };
    query: {};
    body: Quota;
    result: Tenant;
  };
  /** Show the egress policy of a sandbox: `GET /v1/sandboxes/{id}/egress` */
  getEgress: {
    path: {
      /** The id, or the name within the key's tenant. */
      id: string;
    };
    query: {};
    body: undefined;
    result: {
      source: 'sandbox' | 'image' | 'tenant' | 'default' | 'none';
      policy: EgressPolicy;
      sets: EgressSets;
    };
  };
  /** Set the egress policy of a sandbox: `PUT /v1/sandboxes/{id}/egress` */
  setEgress: {
    path: {
      /** The id, or the name within the key's tenant. */
      id: string;
    };
    query: {
      /** What becomes of open connections that are not allowed any more. */
      open?: 'keep' | 'close';
    };
    body: EgressPolicy;
    result: {
      source: 'sandbox' | 'image' | 'tenant' | 'default' | 'none';
      policy: EgressPolicy;
      sets: EgressSets;
    };
  };
  /** Remove the sandbox's own egress policy: `DELETE /v1/sandboxes/{id}/egress` */
  resetEgress: {
    path: {
      /** The id, or the name within the key's tenant. */
      id: string;
    };
    query: {
      /** What becomes of open connections that are not allowed any more. */
      open?: 'keep' | 'close';
    };
    body: undefined;
    result: {
      source: 'sandbox' | 'image' | 'tenant' | 'default' | 'none';
      policy: EgressPolicy;
      sets: EgressSets;
    };
  };
  /** Insert rules before the sandbox's other rules: `POST /v1/sandboxes/{id}/egress/rules` */
  addEgressRules: {
    path: {
      /** The id, or the name within the key's tenant. */
      id: string;
    };
    query: {
      /** What becomes of open connections that are not allowed any more. */
      open?: 'keep' | 'close';
    };
    body: {
      action: 'allow' | 'deny';
      targets: Array<EgressTarget>;
      inject?: EgressRule['inject'];
    };
    result: {
      source: 'sandbox' | 'image' | 'tenant' | 'default' | 'none';
      policy: EgressPolicy;
      sets: EgressSets;
    };
  };
  /** Create a token that restricts the proxy further: `POST /v1/sandboxes/{id}/egress/token` */
  createEgressToken: {
    path: {
      /** The id, or the name within the key's tenant. */
      id: string;
    };
    query: {};
    body: {
      allowed_hosts: Array<string>;
      ttl_seconds?: number | null;
    };
    result: {
      token: string;
      /** For HTTPS_PROXY and its like in the sandbox. */
      proxy: string;
      expires_at: string;
    };
  };
  /** List the egress sets of a sandbox and their hosts: `GET /v1/sandboxes/{id}/egress/sets` */
  listSandboxEgressSets: {
    path: {
      /** The id, or the name within the key's tenant. */
      id: string;
    };
    query: {};
    body: undefined;
    result: {
      sets: EgressSets;
      /** For each set; several where one adds to another. */
      sources: Record<string, Array<'configuration' | 'machine' | 'tool' | 'known' | 'image' | 'template'>>;
    };
  };
  /** Show the egress log of a sandbox: `GET /v1/sandboxes/{id}/egress/log` */
  getEgressLog: {
    path: {
      /** The id, or the name within the key's tenant. */
      id: string;
    };
    query: {
      after?: number;
      limit?: number;
      verdict?: 'allow' | 'deny';
    };
    body: undefined;
    result: {
      verdicts: Array<EgressVerdict>;
      next: number;
      /** The oldest that is kept. */
      first: number | null;
    };
  };
  /** Show a sandbox's access to models and its spending: `GET /v1/sandboxes/{id}/ai` */
  getSandboxAi: {
    path: {
      /** The id, or the name within the key's tenant. */
      id: string;
    };
    query: {};
    body: undefined;
    result: SandboxAi;
  };
  /** Set a sandbox's limits for models: `PUT /v1/sandboxes/{id}/ai` */
  setSandboxAi: {
    path: {
      /** The id, or the name within the key's tenant. */
      id: string;
    };
    query: {};
    body: AiAllowance;
    result: SandboxAi;
  };
  /** Change a sandbox's limits for models: `PATCH /v1/sandboxes/{id}/ai` */
  changeSandboxAi: {
    path: {
      /** The id, or the name within the key's tenant. */
      id: string;
    };
    query: {};
    body: AiAllowance;
    result: SandboxAi;
  };
  /** Rotate a sandbox's token for models: `POST /v1/sandboxes/{id}/ai/token` */
  rotateSandboxAiToken: {
    path: {
      /** The id, or the name within the key's tenant. */
      id: string;
    };
    query: {};
    body: {
      /** How long it is good; without it, as long as the sandbox is there. */
      ttl_seconds?: number | null;
    } | undefined;
    result: SandboxAi;
  };
  /** List a sandbox's calls to models: `GET /v1/sandboxes/{id}/ai/calls` */
  listSandboxAiCalls: {
    path: {
      /** The id, or the name within the key's tenant. */
      id: string;
    };
    query: {
      limit?: number;
      /** `next` of the page before. */
      before?: number;
    };
    body: undefined;
    result: {
      calls: Array<AiCall>;
      /** For `before`; null on the last page. */
      next: number | null;
    };
  };
  /** Show a call to a model: `GET /v1/sandboxes/{id}/ai/calls/{call}` */
  getSandboxAiCall: {
    path: {
      /** The id, or the name within the key's tenant. */
      id: string;
      call: number;
    };
    query: {};
    body: undefined;
    result: AiCall & {
      request: AiBody;
      response: AiBody;
    };
  };
  /** Show a tenant's limits for models and its spending (admin): `GET /v1/tenants/{id}/ai` */
  getTenantAi: {
    path: {
      /** The id or the name. */
      id: string;
    };
    query: {};
    body: undefined;
    result: AiAccount;
  };
  /** Set a tenant's limits for models (admin): `PUT /v1/tenants/{id}/ai` */
  setTenantAi: {
    path: {
      /** The id or the name. */
      id: string;
    };
    query: {};
    body: AiAllowance;
    result: AiAccount;
  };
  /** Change a tenant's limits for models (admin): `PATCH /v1/tenants/{id}/ai` */
  changeTenantAi: {
    path: {
      /** The id or the name. */
      id: string;
    };
    query: {};
    body: AiAllowance;
    result: AiAccount;
  };
  /** Show usage of models: `GET /v1/usage` */
  getUsage: {
    path: {};
    query: {
      /** What the sums are for, between commas. */
      by?: string;
      /** The first day; by default 30 days ago. */
      from?: string;
      /** The last day; by default today. */
      to?: string;
      /** The id of one sandbox. */
      box?: string;
      provider?: string;
      model?: string;
    };
    body: undefined;
    result: {
      usage: Array<ModelUsage>;
      total: ModelUsage;
    };
  };
  /** Forward a GET request to a model provider: `GET /api/{provider}/{path}` */
  aiGet: {
    path: {
      provider: 'openai' | 'anthropic';
      /**
       * Of the provider: for openai POST v1/chat/completions, v1/responses, v1/embeddings, v1/moderations
       * and GET v1/models; for anthropic POST v1/messages, v1/messages/count_tokens and GET v1/models.
       * Everything else is 403.
       */
      path: string;
    };
    query: {};
    body: undefined;
    result: void;
  };
  /** Call a model: `POST /api/{provider}/{path}` */
  aiPost: {
    path: {
      provider: 'openai' | 'anthropic';
      /**
       * Of the provider: for openai POST v1/chat/completions, v1/responses, v1/embeddings, v1/moderations
       * and GET v1/models; for anthropic POST v1/messages, v1/messages/count_tokens and GET v1/models.
       * Everything else is 403.
       */
      path: string;
    };
    query: {};
    body: Record<string, unknown> | undefined;
    result: void;
  };
  /** List the egress sets of the installation: `GET /v1/egress/sets` */
  listEgressSets: {
    path: {};
    query: {};
    body: undefined;
    result: {
      sets: EgressSets;
      /** For each set; several where one adds to another. */
      sources: Record<string, Array<'configuration' | 'machine' | 'tool' | 'known' | 'image' | 'template'>>;
    };
  };
  /** Show the egress policy of a tenant (admin): `GET /v1/tenants/{id}/egress` */
  getTenantEgress: {
    path: {
      /** The id or the name. */
      id: string;
    };
    query: {};
    body: undefined;
    result: {
      source: 'sandbox' | 'image' | 'tenant' | 'default' | 'none';
      policy: EgressPolicy;
      sets: EgressSets;
    };
  };
  /** Set the egress policy of a tenant (admin): `PUT /v1/tenants/{id}/egress` */
  setTenantEgress: {
    path: {
      /** The id or the name. */
      id: string;
    };
    query: {};
    body: EgressPolicy;
    result: {
      source: 'sandbox' | 'image' | 'tenant' | 'default' | 'none';
      policy: EgressPolicy;
      sets: EgressSets;
    };
  };
  /** Remove the egress policy of a tenant (admin): `DELETE /v1/tenants/{id}/egress` */
  resetTenantEgress: {
    path: {
      /** The id or the name. */
      id: string;
    };
    query: {};
    body: undefined;
    result: {
      source: 'sandbox' | 'image' | 'tenant' | 'default' | 'none';
      policy: EgressPolicy;
      sets: EgressSets;
    };
  };
  /** Show the isolation features of this machine (admin): `GET /v1/posture` */
  getPosture: {
    path: {};
    query: {};
    body: undefined;
    result: Posture;
  };
  /** Show the features and limits of this server: `GET /v1/capabilities` */
  getCapabilities: {
    path: {};
    query: {};
    body: undefined;
    result: Capabilities;
  };
  /** Show which APIs are served at which address (admin): `GET /v1/dialects` */
  getDialects: {
    path: {};
    query: {};
    body: undefined;
    result: Dialects;
  };
  /** Check whether the server answers: `GET /health` */
  health: {
    path: {};
    query: {};
    body: undefined;
    result: Health;
  };
  /** Check whether the server answers (same as /health): `GET /healthz` */
  healthz: {
    path: {};
    query: {};
    body: undefined;
    result: Health;
  };
  /** Check whether the server is ready: `GET /readyz` */
  readyz: {
    path: {};
    query: {};
    body: undefined;
    result: Health;
  };
  /** Get metrics in the Prometheus text format (admin): `GET /metrics` */
  metrics: {
    path: {};
    query: {};
    body: undefined;
    result: Bytes;
  };
  /** Get this document: `GET /openapi.json` */
  openapi: {
    path: {};
    query: {};
    body: undefined;
    result: Record<string, unknown>;
  };
}

/** The method and the path of each operation. */
export const ROUTES: { readonly [K in keyof Operations]: readonly [method: string, path: string] } = {
  listSandboxes: ['GET', '/v1/sandboxes'],
  createSandbox: ['POST', '/v1/sandboxes'],
  getSandbox: ['GET', '/v1/sandboxes/{id}'],
  changeSandbox: ['PATCH', '/v1/sandboxes/{id}'],
  deleteSandbox: ['DELETE', '/v1/sandboxes/{id}'],
  extendSandbox: ['POST', '/v1/sandboxes/{id}/extend'],
  pauseSandbox: ['POST', '/v1/sandboxes/{id}/pause'],
  resumeSandbox: ['POST', '/v1/sandboxes/{id}/resume'],
  stopSandbox: ['POST', '/v1/sandboxes/{id}/stop'],
  startSandbox: ['POST', '/v1/sandboxes/{id}/start'],
  createSnapshot: ['POST', '/v1/sandboxes/{id}/snapshots'],
  forkSandbox: ['POST', '/v1/sandboxes/{id}/fork'],
  listSnapshots: ['GET', '/v1/snapshots'],
  getSnapshot: ['GET', '/v1/snapshots/{id}'],
  removeSnapshot: ['DELETE', '/v1/snapshots/{id}'],
  listWorkspaces: ['GET', '/v1/workspaces'],
  createWorkspace: ['POST', '/v1/workspaces'],
  getWorkspace: ['GET', '/v1/workspaces/{name}'],
  removeWorkspace: ['DELETE', '/v1/workspaces/{name}'],
  readWorkspaceFile: ['GET', '/v1/workspaces/{name}/files/{path}'],
  statWorkspaceFile: ['HEAD', '/v1/workspaces/{name}/files/{path}'],
  writeWorkspaceFile: ['PUT', '/v1/workspaces/{name}/files/{path}'],
  removeWorkspaceFile: ['DELETE', '/v1/workspaces/{name}/files/{path}'],
  getSandboxStats: ['GET', '/v1/sandboxes/{id}/stats'],
  getSandboxPosture: ['GET', '/v1/sandboxes/{id}/posture'],
  exec: ['POST', '/v1/sandboxes/{id}/exec'],
  listShells: ['GET', '/v1/sandboxes/{id}/shells'],
  createShell: ['POST', '/v1/sandboxes/{id}/shells'],
  getShell: ['GET', '/v1/sandboxes/{id}/shells/{name}'],
  removeShell: ['DELETE', '/v1/sandboxes/{id}/shells/{name}'],
  listProcesses: ['GET', '/v1/sandboxes/{id}/processes'],
  startProcess: ['POST', '/v1/sandboxes/{id}/processes'],
  getProcess: ['GET', '/v1/sandboxes/{id}/processes/{process}'],
  killProcess: ['DELETE', '/v1/sandboxes/{id}/processes/{process}'],
  readProcessOutput: ['GET', '/v1/sandboxes/{id}/processes/{process}/output'],
  waitForProcess: ['GET', '/v1/sandboxes/{id}/processes/{process}/wait'],
  writeProcessInput: ['POST', '/v1/sandboxes/{id}/processes/{process}/stdin'],
  signalProcess: ['POST', '/v1/sandboxes/{id}/processes/{process}/signal'],
  resizeProcess: ['POST', '/v1/sandboxes/{id}/processes/{process}/resize'],
  openTerminal: ['GET', '/v1/sandboxes/{id}/terminal'],
  execute: ['POST', '/v1/sandboxes/{id}/execute'],
  listContexts: ['GET', '/v1/sandboxes/{id}/contexts'],
  createContext: ['POST', '/v1/sandboxes/{id}/contexts'],
  getContext: ['GET', '/v1/sandboxes/{id}/contexts/{context}'],
  removeContext: ['DELETE', '/v1/sandboxes/{id}/contexts/{context}'],
  restartContext: ['POST', '/v1/sandboxes/{id}/contexts/{context}/restart'],
  interruptContext: ['POST', '/v1/sandboxes/{id}/contexts/{context}/interrupt'],
  executeInContext: ['POST', '/v1/sandboxes/{id}/contexts/{context}/execute'],
  listPorts: ['GET', '/v1/sandboxes/{id}/ports'],
  portGet: ['GET', '/v1/sandboxes/{id}/ports/{port}/{path}'],
  portHead: ['HEAD', '/v1/sandboxes/{id}/ports/{port}/{path}'],
  portPut: ['PUT', '/v1/sandboxes/{id}/ports/{port}/{path}'],
  portPost: ['POST', '/v1/sandboxes/{id}/ports/{port}/{path}'],
  portPatch: ['PATCH', '/v1/sandboxes/{id}/ports/{port}/{path}'],
  portDelete: ['DELETE', '/v1/sandboxes/{id}/ports/{port}/{path}'],
  portOptions: ['OPTIONS', '/v1/sandboxes/{id}/ports/{port}/{path}'],
  previewGet: ['GET', '/v1/previews/{id}/{port}/{ticket}/{path}'],
  previewHead: ['HEAD', '/v1/previews/{id}/{port}/{ticket}/{path}'],
  previewPut: ['PUT', '/v1/previews/{id}/{port}/{ticket}/{path}'],
  previewPost: ['POST', '/v1/previews/{id}/{port}/{ticket}/{path}'],
  previewPatch: ['PATCH', '/v1/previews/{id}/{port}/{ticket}/{path}'],
  previewDelete: ['DELETE', '/v1/previews/{id}/{port}/{ticket}/{path}'],
  previewOptions: ['OPTIONS', '/v1/previews/{id}/{port}/{ticket}/{path}'],
  createPreview: ['POST', '/v1/sandboxes/{id}/previews'],
  openTunnel: ['GET', '/v1/sandboxes/{id}/tunnel/{port}'],
  listLinks: ['GET', '/v1/links'],
  createLink: ['POST', '/v1/links'],
  deleteLink: ['DELETE', '/v1/links/{id}'],
  readFile: ['GET', '/v1/sandboxes/{id}/files/{path}'],
  statFile: ['HEAD', '/v1/sandboxes/{id}/files/{path}'],
  writeFile: ['PUT', '/v1/sandboxes/{id}/files/{path}'],
  uploadFiles: ['POST', '/v1/sandboxes/{id}/files/{path}'],
  removeFile: ['DELETE', '/v1/sandboxes/{id}/files/{path}'],
  moveFile: ['POST', '/v1/sandboxes/{id}/fs/move'],
  copyFile: ['POST', '/v1/sandboxes/{id}/fs/copy'],
  makeDirectory: ['POST', '/v1/sandboxes/{id}/fs/mkdir'],
  changeMode: ['POST', '/v1/sandboxes/{id}/fs/chmod'],
  statPath: ['GET', '/v1/sandboxes/{id}/fs/stat'],
  findFiles: ['POST', '/v1/sandboxes/{id}/fs/find'],
  grepFiles: ['POST', '/v1/sandboxes/{id}/fs/grep'],
  replaceInFile: ['POST', '/v1/sandboxes/{id}/fs/replace'],
  signUrl: ['POST', '/v1/sandboxes/{id}/fs/sign'],
  watchFiles: ['GET', '/v1/sandboxes/{id}/fs/watch'],
  createWatcher: ['POST', '/v1/sandboxes/{id}/fs/watchers'],
  pollWatcher: ['GET', '/v1/sandboxes/{id}/fs/watchers/{watcher}'],
  removeWatcher: ['DELETE', '/v1/sandboxes/{id}/fs/watchers/{watcher}'],
  listImages: ['GET', '/v1/images'],
  createImage: ['POST', '/v1/images'],
  importImage: ['PUT', '/v1/images/{name}'],
  removeImage: ['DELETE', '/v1/images/{name}'],
  listKeys: ['GET', '/v1/keys'],
  createKey: ['POST', '/v1/keys'],
  removeKey: ['DELETE', '/v1/keys/{id}'],
  listEvents: ['GET', '/v1/events'],
  listAgents: ['GET', '/v1/agents'],
  installAgent: ['POST', '/v1/agents'],
  getAgent: ['GET', '/v1/agents/{id}'],
  removeAgent: ['DELETE', '/v1/agents/{id}'],
  uploadAgentCode: ['PUT', '/v1/agents/{id}/code'],
  upgradeAgent: ['POST', '/v1/agents/{id}/upgrade'],
  listCatalogues: ['GET', '/v1/catalogues'],
  startAgent: ['POST', '/v1/agents/{id}/start'],
  stopAgent: ['POST', '/v1/agents/{id}/stop'],
  restartAgent: ['POST', '/v1/agents/{id}/restart'],
  listAgentLogs: ['GET', '/v1/agents/{id}/logs'],
  getAgentLimits: ['GET', '/v1/agents/{id}/limits'],
  setAgentLimits: ['PUT', '/v1/agents/{id}/limits'],
  getAgentSpending: ['GET', '/v1/agents/{id}/spending'],
  listTransactions: ['GET', '/v1/transactions'],
  getTransaction: ['GET', '/v1/transactions/{id}'],
  approveTransaction: ['POST', '/v1/transactions/{id}/approve'],
  rejectTransaction: ['POST', '/v1/transactions/{id}/reject'],
  cancelTransaction: ['POST', '/v1/transactions/{id}/cancel'],
  speedUpTransaction: ['POST', '/v1/transactions/{id}/speed-up'],
  revokeTransaction: ['POST', '/v1/transactions/{id}/revoke'],
  answerTransaction: ['POST', '/v1/transactions/{id}/wallet'],
  listWallets: ['GET', '/v1/wallets'],
  getWalletSpending: ['GET', '/v1/wallets/{id}/spending'],
  connectWallet: ['POST', '/v1/wallets/connect'],
  listWalletSessions: ['GET', '/v1/wallets/sessions'],
  removeWalletSession: ['DELETE', '/v1/wallets/sessions/{id}'],
  listChains: ['GET', '/v1/chains'],
  getSigner: ['GET', '/v1/signer'],
  pauseSigner: ['PUT', '/v1/signer'],
  listSignerAudit: ['GET', '/v1/signer/audit'],
  listWebhooks: ['GET', '/v1/webhooks'],
  createWebhook: ['POST', '/v1/webhooks'],
  getWebhook: ['GET', '/v1/webhooks/{id}'],
  removeWebhook: ['DELETE', '/v1/webhooks/{id}'],
  listSecrets: ['GET', '/v1/secrets'],
  setSecret: ['PUT', '/v1/secrets/{name}'],
  removeSecret: ['DELETE', '/v1/secrets/{name}'],
  listSandboxSecrets: ['GET', '/v1/sandboxes/{id}/secrets'],
  setSandboxSecret: ['PUT', '/v1/sandboxes/{id}/secrets/{name}'],
  removeSandboxSecret: ['DELETE', '/v1/sandboxes/{id}/secrets/{name}'],
  rotateVault: ['POST', '/v1/vault/rotate'],
  getAuthority: ['GET', '/v1/vault/ca.pem'],
  listTenants: ['GET', '/v1/tenants'],
  createTenant: ['POST', '/v1/tenants'],
  getQuota: ['GET', '/v1/tenants/{id}/quota'],
  setQuota: ['PUT', '/v1/tenants/{id}/quota'],
  getEgress: ['GET', '/v1/sandboxes/{id}/egress'],
  setEgress: ['PUT', '/v1/sandboxes/{id}/egress'],
  resetEgress: ['DELETE', '/v1/sandboxes/{id}/egress'],
  addEgressRules: ['POST', '/v1/sandboxes/{id}/egress/rules'],
  createEgressToken: ['POST', '/v1/sandboxes/{id}/egress/token'],
  listSandboxEgressSets: ['GET', '/v1/sandboxes/{id}/egress/sets'],
  getEgressLog: ['GET', '/v1/sandboxes/{id}/egress/log'],
  getSandboxAi: ['GET', '/v1/sandboxes/{id}/ai'],
  setSandboxAi: ['PUT', '/v1/sandboxes/{id}/ai'],
  changeSandboxAi: ['PATCH', '/v1/sandboxes/{id}/ai'],
  rotateSandboxAiToken: ['POST', '/v1/sandboxes/{id}/ai/token'],
  listSandboxAiCalls: ['GET', '/v1/sandboxes/{id}/ai/calls'],
  getSandboxAiCall: ['GET', '/v1/sandboxes/{id}/ai/calls/{call}'],
  getTenantAi: ['GET', '/v1/tenants/{id}/ai'],
  setTenantAi: ['PUT', '/v1/tenants/{id}/ai'],
  changeTenantAi: ['PATCH', '/v1/tenants/{id}/ai'],
  getUsage: ['GET', '/v1/usage'],
  aiGet: ['GET', '/api/{provider}/{path}'],
  aiPost: ['POST', '/api/{provider}/{path}'],
  listEgressSets: ['GET', '/v1/egress/sets'],
  getTenantEgress: ['GET', '/v1/tenants/{id}/egress'],
  setTenantEgress: ['PUT', '/v1/tenants/{id}/egress'],
  resetTenantEgress: ['DELETE', '/v1/tenants/{id}/egress'],
  getPosture: ['GET', '/v1/posture'],
  getCapabilities: ['GET', '/v1/capabilities'],
  getDialects: ['GET', '/v1/dialects'],
  health: ['GET', '/health'],
  healthz: ['GET', '/healthz'],
  readyz: ['GET', '/readyz'],
  metrics: ['GET', '/metrics'],
  openapi: ['GET', '/openapi.json'],
};
