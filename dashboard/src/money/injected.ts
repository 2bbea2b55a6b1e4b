/* Wallets in the browser (EIP-6963, EIP-1193). They hold the key and ask their owner; we send them what was approved, unchanged. */
import { useEffect, useState } from "preact/hooks";
import { ApiError } from "../api";

export interface Provider {
  request(call: { method: string; params?: unknown[] }): Promise<unknown>;
  on?(event: string, f: (value: never) => void): void;
  removeListener?(event: string, f: (value: never) => void): void;
}

export interface Injected {
  uuid: string;
  name: string;
  rdns: string;
  icon: string;
  provider: Provider;
}

export interface ChainInfo {
  id: string;
  name: string;
  native?: { symbol?: string; decimals?: number };
  explorer?: string | null;
}

/* Only a picture, and only one that asks no server: a script in an SVG does not run in <img>. */
const ICON = /^data:image\/(png|jpeg|gif|webp|svg\+xml)[;,]/i;

interface Announced {
  info?: { uuid?: unknown; name?: unknown; rdns?: unknown; icon?: unknown };
  provider?: Provider;
}

function read(detail: Announced | null): Injected | null {
  const info = detail?.info;
  if (!info || typeof detail.provider?.request !== "function" || typeof info.uuid !== "string" || typeof info.name !== "string") return null;
  return {
    uuid: info.uuid,
    name: info.name.slice(0, 64),
    rdns: typeof info.rdns === "string" ? info.rdns.slice(0, 128) : "",
    icon: typeof info.icon === "string" && ICON.test(info.icon) && info.icon.length < 200_000 ? info.icon : "",
    provider: detail.provider,
  };
}

/* Calls `f` for each wallet that announces itself, now and later. The answer stops that. */
export function watchWallets(f: (w: Injected) => void): () => void {
  const on = (e: globalThis.Event) => {
    const w = read((e as CustomEvent<Announced | null>).detail);
    if (w) f(w);
  };
  window.addEventListener("eip6963:announceProvider", on);
  window.dispatchEvent(new window.Event("eip6963:requestProvider"));
  return () => window.removeEventListener("eip6963:announceProvider", on);
}

export function useWallets(): Injected[] {
  const [list, set] = useState<Injected[]>([]);
  useEffect(() => watchWallets((w) => set((old) => [...old.filter((o) => o.uuid !== w.uuid), w].slice(-20))), []);
  return list;
}

const MEANING: Record<number, string> = {
  4001: "You rejected it in the wallet.",
  4100: "The wallet has not allowed this page to use the account.",
  4200: "The wallet does not support this.",
  4900: "The wallet is not connected to any chain.",
  4901: "The wallet is not connected to this chain.",
  4902: "The wallet does not know this chain.",
};

export class WalletError extends Error {
  constructor(
    readonly code: number,
    message: string,
  ) {
    super(message);
  }
}

/* One call, with the wallet's error as a sentence. Some wallets wrap the code of another error. */
async function ask<T>(w: Injected, method: string, params: unknown[] = []): Promise<T> {
  try {
    return (await w.provider.request({ method, params })) as T;
  } catch (e) {
    const err = e as { code?: unknown; message?: unknown; data?: { originalError?: { code?: unknown } } };
    const code = Number(err?.data?.originalError?.code ?? err?.code ?? 0) || 0;
    const said = typeof err?.message === "string" ? err.message.slice(0, 300) : "";
    throw new WalletError(code, MEANING[code] ?? (said ? `The wallet answered: ${said}` : "The wallet did not answer."));
  }
}

export const hexChain = (chain: string) => "0x" + BigInt(chain.replace(/^eip155:/, "")).toString(16);
const chainOf = (hex: unknown) => (typeof hex === "string" && /^0x[0-9a-f]+$/i.test(hex) ? `eip155:${BigInt(hex)}` : "");

export async function accounts(w: Injected): Promise<string[]> {
  const list = await ask<unknown>(w, "eth_requestAccounts");
  return Array.isArray(list) ? list.filter((a): a is string => typeof a === "string" && /^0x[0-9a-fA-F]{40}$/.test(a)) : [];
}

/* The wallet is on the chain afterwards; it may be told about it, with the address of a node that the person gives. */
export async function onChain(w: Injected, chain: ChainInfo, rpc: () => Promise<string | null>): Promise<void> {
  const is = async () => chainOf(await ask(w, "eth_chainId")) === chain.id;
  if (await is()) return;
  try {
    await ask(w, "wallet_switchEthereumChain", [{ chainId: hexChain(chain.id) }]);
  } catch (e) {
    if (!(e instanceof WalletError) || e.code !== 4902) throw e;
    const url = await rpc();
    if (!url) throw e;
    await ask(w, "wallet_addEthereumChain", [
      {
        chainId: hexChain(chain.id),
        chainName: chain.name,
        nativeCurrency: { name: chain.native?.symbol ?? "ETH", symbol: chain.native?.symbol ?? "ETH", decimals: chain.native?.decimals ?? 18 },
        rpcUrls: [url],
        ...(chain.explorer ? { blockExplorerUrls: [chain.explorer] } : {}),
      },
    ]);
    if (!(await is())) await ask(w, "wallet_switchEthereumChain", [{ chainId: hexChain(chain.id) }]);
  }
  if (!(await is())) throw new WalletError(4901, "The wallet did not switch to the chain of this transaction.");
}

export interface Approved {
  kind: string;
  chain: string;
  from: string;
  to: string | null;
  value: string;
  data: string;
}

/* What the wallet answers to exactly the approved request: the hash of the transaction, or the signature of a message. */
export async function sendApproved(w: Injected, tx: Approved, chain: ChainInfo, rpc: () => Promise<string | null>): Promise<string> {
  const held = await accounts(w);
  if (!held.some((a) => a.toLowerCase() === tx.from.toLowerCase())) throw new WalletError(4100, `The wallet does not offer the account ${tx.from} to this page. Select it in the wallet.`);
  await onChain(w, chain, rpc);
  const call: [string, unknown[]] =
    tx.kind === "message"
      ? ["personal_sign", [tx.data, tx.from]]
      : tx.kind === "typed_data"
        ? ["eth_signTypedData_v4", [tx.from, new TextDecoder().decode(bytesOf(tx.data))]]
        : ["eth_sendTransaction", [{ from: tx.from, ...(tx.to ? { to: tx.to } : {}), value: "0x" + BigInt(tx.value || "0").toString(16), ...(tx.data && tx.data !== "0x" ? { data: tx.data } : {}) }]];
  const answer = await ask<unknown>(w, ...call);
  const wanted = tx.kind === "transaction" ? /^0x[0-9a-fA-F]{64}$/ : /^0x[0-9a-fA-F]+$/;
  if (typeof answer !== "string" || !wanted.test(answer)) throw new ApiError(0, "wallet", "The wallet's answer is not a hash.");
  return answer;
}

function bytesOf(hex: string): Uint8Array {
  return Uint8Array.from(hex.replace(/^0x/, "").match(/../g) ?? [], (b) => parseInt(b, 16));
}
