/* Small parts of the pages about money. */
import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { plain, seconds } from "../format";
import { Copy, Icon } from "../ui";
import { big, isNative, share, short, units } from "./amounts";
import type { Asset, TxState } from "./types";

/* The native asset has the chain's name for it. What a token says of itself may be a lie, so its address is shown, too. */
export function assetName(a: Asset): string {
  return plain(a.symbol ?? (isNative(a.address) ? "(native)" : short(a.address))).slice(0, 24);
}

export function amountText(amount: string | bigint, a: Asset): string {
  const decimals = a.decimals ?? (isNative(a.address) ? 18 : null);
  return decimals === null ? `${units(amount, 0)} base units of` : units(amount, decimals);
}

/* Two to the 255th and more is what wallets call unlimited. */
const ENDLESS = 1n << 255n;

export function Amount({ amount, asset, sign }: { amount: string; asset: Asset; sign?: boolean }) {
  const minus = amount.startsWith("-");
  const n = big(amount.replace(/^-/, ""));
  return (
    <span class={sign ? (minus ? "amount minus" : "amount plus") : "amount"}>
      {sign && (minus ? "− " : "+ ")}
      {n >= ENDLESS ? "unlimited" : amountText(n, asset)} {assetName(asset)}
    </span>
  );
}

export function TokenNote({ asset }: { asset: Asset }) {
  return isNative(asset.address) ? null : <span class="mono dim token">{plain(asset.address)}</span>;
}

/* In full, with the case that is its checksum, in groups that are easy to compare; copied without the gaps. */
export function Address({ address, children }: { address: string; children?: ComponentChildren }) {
  return (
    <span class="address">
      <span class="mono">{plain(address)}</span>
      <Copy text={address} label={`Copy ${plain(address)}`} />
      {children}
    </span>
  );
}

const GOOD = new Set(["confirmed", "final", "included"]);
const BAD = new Set(["denied", "failed", "reverted", "mismatch", "dropped"]);
export function TxBadge({ state }: { state: TxState }) {
  const kind = GOOD.has(state) ? "ok" : BAD.has(state) ? "error" : state === "pending" || state === "awaiting_wallet" ? "waiting" : ["approved", "signed", "broadcast"].includes(state) ? "creating" : "";
  return (
    <span class={`badge ${kind}`}>
      <i />
      {state.replaceAll("_", " ")}
    </span>
  );
}

export const WINDOWS: Record<string, string> = { transaction: "per transaction", day: "24 hours", week: "7 days", month: "30 days", lifetime: "all time" };

/* Spent so far, and with `after` what it would be with this transaction. */
export function LimitBar({ label, before, after, limit, asset }: { label: string; before: string; after?: string; limit: string; asset: Asset }) {
  const all = big(limit);
  const b = share(big(before), all);
  const a = after === undefined ? b : share(big(after), all);
  const over = big(after ?? before) > all;
  const text = `${amountText(before, asset)}${after === undefined ? "" : ` → ${amountText(after, asset)}`} of ${amountText(limit, asset)} ${assetName(asset)}`;
  return (
    <div class={over ? "limit over" : after === undefined && b > 0.9 ? "limit hot" : "limit"}>
      <div class="limit-text"><span>{label}</span><span class="dim">{text}{over ? " – over the limit" : ""}</span></div>
      <svg class="bar" viewBox="0 0 1000 8" preserveAspectRatio="none" role="img" aria-label={`${label}: ${text}`}>
        <rect class="bar-all" width="1000" height="8" />
        {a > b && <rect class="bar-after" width={a * 1000} height="8" />}
        <rect class="bar-before" width={b * 1000} height="8" />
      </svg>
    </div>
  );
}

export function Countdown({ until }: { until: string }) {
  const [now, set] = useState(Date.now());
  useEffect(() => {
    const t = setInterval(() => set(Date.now()), 1000);
    return () => clearInterval(t);
  }, []);
  const left = (Date.parse(until) - now) / 1000;
  return <span class={left < 60 ? "countdown soon" : "countdown"} role="timer">{left <= 0 ? "expired" : `expires in ${seconds(left)}`}</span>;
}

export function Banner({ kind, icon = "alert", children }: { kind: "grey" | "amber" | "red"; icon?: string; children: ComponentChildren }) {
  return (
    <div class={`banner ${kind}`}>
      <Icon name={icon} />
      <div>{children}</div>
    </div>
  );
}
