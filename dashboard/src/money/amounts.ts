/* Amounts are decimal strings of base units: they never become floating-point numbers. */

export const NATIVE = "0xeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee";
export const isNative = (asset: string) => asset.toLowerCase() === NATIVE || asset === "native";

export function big(text: string | null | undefined): bigint {
  return typeof text === "string" && /^[0-9]{1,80}$/.test(text) ? BigInt(text) : 0n;
}

/* 1500000000000000000 with 18 decimals is "1.5". Exact. */
export function units(text: string | bigint | null | undefined, decimals: number): string {
  const n = typeof text === "bigint" ? text : big(text);
  const s = n.toString().padStart(decimals + 1, "0");
  const whole = s.slice(0, s.length - decimals).replace(/\B(?=(\d{3})+$)/g, ",");
  const rest = decimals ? s.slice(s.length - decimals).replace(/0+$/, "") : "";
  return rest ? `${whole}.${rest}` : whole;
}

/* The opposite, of what a person types: null if it is no number, or finer than the asset. */
export function base(text: string, decimals: number): string | null {
  const m = /^(\d{1,60})(?:\.(\d+))?$/.exec(text.trim());
  if (!m) return null;
  const rest = (m[2] ?? "").replace(/0+$/, "");
  if (rest.length > decimals) return null;
  return BigInt(m[1]! + rest.padEnd(decimals, "0")).toString();
}

/* Between 0 and 1, for a bar. */
export function share(part: bigint, whole: bigint): number {
  if (whole <= 0n) return part > 0n ? 1 : 0;
  const p = Number((part * 10000n) / whole) / 10000;
  return p > 1 ? 1 : p;
}

export const short = (address: string) => (address.length > 14 ? `${address.slice(0, 6)}…${address.slice(-4)}` : address);
