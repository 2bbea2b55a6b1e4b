/* What people call a chain's own asset: the signer knows it as "(native)", the configuration of the chain has its symbol. */
import { isNative } from "./amounts";
import type { Asset, Chain, Spending, Tx } from "./types";

const symbolOf = (chains: Chain[] | undefined, id: string) => chains?.find((c) => c.id === id)?.symbol ?? null;

/* The same, with the symbol in every asset that is the chain's own and has no name. */
function put<T>(it: T, symbol: string): T {
  if (Array.isArray(it)) return it.map((x) => put(x, symbol)) as T;
  if (typeof it !== "object" || it === null) return it;
  const a = it as unknown as Asset;
  if (typeof a.address === "string" && a.symbol === null) return isNative(a.address) ? { ...it, symbol } : it;
  return Object.fromEntries(Object.entries(it).map(([k, v]) => [k, put(v, symbol)])) as T;
}

const inText = (text: string, symbol: string) => text.replace(/(\d) \(native\)/g, `$1 ${symbol}`);

export function namedTx(tx: Tx, chains: Chain[] | undefined): Tx {
  const symbol = symbolOf(chains, tx.chain);
  if (!symbol) return tx;
  const named = put({ effects: tx.effects, card: tx.card }, symbol);
  if (named.card) named.card.sentence = inText(named.card.sentence, symbol);
  return { ...tx, ...named, summary: inText(tx.summary, symbol) };
}

export function namedSpending(s: Spending, chains: Chain[] | undefined): Spending {
  return { ...s, lines: s.lines.map((l) => put(l, symbolOf(chains, l.chain) ?? "(native)")) };
}

export const nativeName = (chains: Chain[] | undefined, chain: string) => symbolOf(chains, chain);
