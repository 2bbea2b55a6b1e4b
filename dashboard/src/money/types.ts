/* Transactions, limits, wallets and chains, as api/openapi.yaml describes them. Amounts are decimal strings of base units. */
import { call } from "../api";

export type TxState =
  | "denied" | "pending" | "rejected" | "expired" | "cancelled" | "approved" | "signed" | "broadcast" | "included" | "confirmed" | "final"
  | "reverted" | "replaced" | "dropped" | "failed" | "awaiting_wallet" | "wallet_rejected" | "wallet_timeout" | "mismatch";

export const STATES: TxState[] = [
  "pending", "approved", "awaiting_wallet", "signed", "broadcast", "included", "confirmed", "final", "denied", "rejected", "expired", "cancelled",
  "wallet_rejected", "wallet_timeout", "failed", "reverted", "replaced", "dropped", "mismatch",
];

export interface Asset {
  address: string;
  symbol: string | null;
  decimals: number | null;
}

export interface Effect {
  asset: Asset;
  amount: string;
  to: string | null;
  approval: boolean;
  target: boolean; /* called within a wrapper, or given control; the amount may be 0 */
  first_time: boolean;
  note: string | null;
}

export interface Tx {
  id: string;
  kind: "transaction" | "message" | "typed_data";
  agent: string;
  agent_name: string | null;
  tenant: string | null;
  chain: string;
  chain_name: string | null;
  wallet: string | null;
  from: string | null;
  to: string | null;
  value: string;
  class: string;
  state: TxState;
  summary: string;
  digest: string;
  reason: string | null;
  error: string | null;
  effects: Effect[];
  automatic: boolean;
  created_at: string;
  expires_at: string | null;
  decided_at: string | null;
  decided_by: string | null;
  hash: string | null;
  nonce: number | null;
  generation: number;
  waits_for_nonce: number | null;
  card?: TxCard;
}

export interface LimitLine {
  scope: string; /* agent:ID or wallet:ID */
  fee: boolean;
  asset: Asset;
  window: "transaction" | "day" | "week" | "month" | "lifetime";
  limit: string;
  before: string;
  after: string;
}

export interface Risk {
  level: "note" | "warning" | "danger";
  name: string;
  text: string;
}

export interface TxCard {
  sentence: string;
  confirm: string | null;
  confirm_hint: string | null;
  recipient: { address: string; first_time: boolean | null; contract?: boolean | null; note: string | null } | null;
  allowance: { asset: Asset; spender: string; before?: string | null; after: string; unlimited: boolean } | null;
  limits: LimitLine[];
  fee: { asset: Asset; gas: number; worst_case: string } | null;
  risks: Risk[];
  simulation: {
    method: "none" | "estimate" | "trace" | "simulate_v1";
    block: number | null;
    moves: { asset: Asset; from: string; to: string; amount: string; approval: boolean }[];
    deltas: { asset: Asset; amount: string }[];
  };
  trace: { step: number; name: string; passed: boolean; text: string }[];
  call: { class: string; tree: string[] };
  data: string;
  signature: string | null;
  approvers: { needed: number; have: number };
  attempts: { generation: number; hash: string; nonce: number; signed_at: string | null }[];
  block: number | null;
  block_hash: string | null;
  confirmations: number | null;
  confirmations_needed: number | null;
  stuck: boolean;
  note: string | null;
  deviation: string | null;
}

export interface TxPage {
  transactions: Tx[];
  next: string | null;
}

export interface Wallet {
  id: string;
  kind: "test" | "generated" | "imported" | "external";
  label: string;
  address: string;
  created_at: string;
}

export interface Session {
  id: string;
  name: string | null;
  url: string | null;
  accounts: string[];
  created_at: string;
  expires_at: string;
}

export interface Chain {
  id: string;
  name: string | null;
  status: "unknown" | "ok" | "down" | "wrong_chain";
  error: string | null;
  block: number | null;
  checked_at: string | null;
  nodes: number;
  confirmations: number;
  under_way: number;
  symbol?: string | null; /* of its native asset */
  explorer?: string | null;
}

export interface SpendingLimit {
  chain: string;
  asset: string;
  per_transaction: string;
  day?: string | null;
  week?: string | null;
  month?: string | null;
  lifetime?: string | null;
  decimals?: number | null;
  symbol?: string | null;
  unlimited_approvals?: boolean | null;
}

export interface AgentLimits {
  agent: string;
  wallets: { chain: string; wallet: string }[];
  limits: SpendingLimit[];
  addresses: { chain: string | null; address: string; deny: boolean | null; call: boolean | null; note: string | null }[];
  only_listed: boolean;
  allow_creation: boolean;
  allow_dangerous: boolean;
  allow_messages: boolean;
  require_simulation: boolean;
  paused: boolean;
  approvers: number;
  auto_below: string | null;
  max_pending: number;
  expiry_seconds: number;
}

export type Amounts = Record<"day" | "week" | "month" | "lifetime", string | null>;

export interface SpendingLine {
  chain: string;
  fee: boolean;
  asset: Asset;
  per_transaction: string | null;
  spent: Amounts;
  limit: Amounts;
  reserved: string;
}

export interface Spending {
  scope: string;
  ai_cost_usd: Record<"day" | "week" | "month" | "lifetime", number> | null; /* null: of a wallet */
  lines: SpendingLine[];
}

export interface Signer {
  available: boolean;
  paused: boolean | null;
  wallets: number | null;
  pending: number | null;
}

export type WalletAnswer = { hash: string } | { signature: string } | { rejected: true };

export const txPath = (id: string) => `/v1/transactions/${encodeURIComponent(id)}`;
export const approve = (tx: Tx) => call<Tx>("POST", `${txPath(tx.id)}/approve`, { digest: tx.digest });
export const reject = (id: string, note?: string) => call<Tx>("POST", `${txPath(id)}/reject`, note ? { note } : {});
export const cancel = (id: string) => call<Tx>("POST", `${txPath(id)}/cancel`, {});
export const speedUp = (id: string) => call<Tx>("POST", `${txPath(id)}/speed-up`, {});
export const revoke = (id: string) => call<Tx>("POST", `${txPath(id)}/revoke`, {});
export const walletAnswer = (id: string, answer: WalletAnswer) => call<Tx>("POST", `${txPath(id)}/wallet`, answer);
export const pauseAgent = (agent: string) => call<AgentLimits>("PUT", `/v1/agents/${encodeURIComponent(agent)}/limits`, { paused: true });
export const pauseAll = (cancel_pending: boolean) => call<Signer>("PUT", "/v1/signer", { paused: true, cancel_pending });

/* What a state means, for people. */
export const STATE_WORDS: Record<TxState, string> = {
  denied: "The policy refused it.",
  pending: "It waits for a person.",
  rejected: "It was rejected.",
  expired: "Nobody decided in time.",
  cancelled: "It was withdrawn before it was signed.",
  approved: "It was approved and will be signed.",
  signed: "It is signed.",
  broadcast: "It was sent and is in no block yet.",
  included: "It is in a block.",
  confirmed: "Enough blocks followed.",
  final: "The chain calls its block final.",
  reverted: "It is in a block, and its call failed. The fee was spent.",
  replaced: "Another transaction with its nonce was mined.",
  dropped: "The nodes no longer have it.",
  failed: "It could not be sent.",
  awaiting_wallet: "It was approved and waits for its wallet.",
  wallet_rejected: "It was declined in the wallet.",
  wallet_timeout: "The wallet did not answer.",
  mismatch: "The wallet sent something else than was approved.",
};
