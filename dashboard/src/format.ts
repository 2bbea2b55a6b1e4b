/* Numbers and times as people read them. */

export function bytes(n: number | null | undefined): string {
  if (n === null || n === undefined) return "–";
  const units = ["B", "KB", "MB", "GB", "TB"];
  let i = 0;
  while (n >= 1000 && i < units.length - 1) {
    n /= 1024;
    i++;
  }
  return `${i === 0 ? n : n.toFixed(n < 10 ? 1 : 0)} ${units[i]}`;
}

export function count(n: number | null | undefined): string {
  return n === null || n === undefined ? "–" : n.toLocaleString("en-US");
}

export function seconds(s: number): string {
  s = Math.max(0, Math.round(s));
  if (s < 60) return `${s}s`;
  if (s < 3600) return `${Math.floor(s / 60)}m ${s % 60}s`;
  if (s < 86400) return `${Math.floor(s / 3600)}h ${Math.floor((s % 3600) / 60)}m`;
  return `${Math.floor(s / 86400)}d ${Math.floor((s % 86400) / 3600)}h`;
}

export function ago(at: string | null | undefined, now = Date.now()): string {
  if (!at) return "–";
  const s = Math.round((now - Date.parse(at)) / 1000);
  if (s < 5) return "just now";
  if (s < 60) return `${s}s ago`;
  if (s < 3600) return `${Math.floor(s / 60)}m ago`;
  if (s < 86400) return `${Math.floor(s / 3600)}h ago`;
  return `${Math.floor(s / 86400)}d ago`;
}

export function left(at: string | null): string {
  return at ? seconds((Date.parse(at) - Date.now()) / 1000) : "never";
}

export function clock(at: string): string {
  return new Date(at).toLocaleTimeString("en-GB");
}

export function moment(at: string): string {
  const d = new Date(at);
  return `${d.toLocaleDateString("en-CA")} ${d.toLocaleTimeString("en-GB")}`;
}

export function usd(n: number): string {
  return `$${n.toFixed(n === 0 ? 2 : n >= 100 ? 0 : n >= 1 ? 2 : 4)}`;
}

export function ms(s: number): string {
  return s < 0.001 ? `${(s * 1e6).toFixed(0)} µs` : s < 1 ? `${(s * 1000).toFixed(s < 0.01 ? 1 : 0)} ms` : `${s.toFixed(2)} s`;
}

/* Control characters, those that change the direction of writing, and those that nobody sees are shown, not obeyed. */
export function plain(s: unknown): string {
  return String(s ?? "").replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2064\u2066-\u206f\ufeff\u{e0000}-\u{e007f}]/gu, "\ufffd");
}
