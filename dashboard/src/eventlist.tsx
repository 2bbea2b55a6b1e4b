/* A list of events, the newest first. */
import type { Event } from "./api";
import { moment, plain } from "./format";
import { href } from "./route";
import { boxes } from "./store";
import { StatusBadge, Table } from "./ui";

export function describe(e: Event): string {
  const parts = Object.entries(e.data).map(([k, v]) => `${k} ${typeof v === "object" ? JSON.stringify(v) : String(v)}`);
  return plain(parts.join(" · "));
}

/* A setting that was asked for, as words. */
export function inWords(text: string): string {
  try {
    const d = JSON.parse(text) as Record<string, unknown>;
    return plain(Object.entries(d).map(([k, v]) => `${k} ${Array.isArray(v) && v.every((x) => typeof x !== "object") ? v.join(", ") : typeof v === "object" ? JSON.stringify(v) : String(v)}`).join(" · "));
  } catch {
    return plain(text); // it was cut off
  }
}

/* On a phone without the day. */
export function When({ at }: { at: string }) {
  const text = moment(at);
  return <time class="mono" dateTime={at} title={text}><span class="day">{text.slice(0, 11)}</span>{text.slice(11)}</time>;
}

export function EventTable({ events, withBox }: { events: Event[]; withBox: boolean }) {
  const known = new Map(boxes.use().list.map((b) => [b.id, b]));
  return (
    <Table
      name="Events"
      id={(e) => e.id}
      rows={events}
      columns={[
        { head: "Time", cell: (e) => <When at={e.at} /> },
        { head: "Event", cell: (e) => <StatusBadge status={e.type} /> },
        ...(withBox ? [{ head: "Sandbox", cell: (e: Event) => (e.type.startsWith("transaction.") ? <a href={href("transactions", String(e.data.id))}>transaction</a> : known.has(e.sandbox) ? <a href={href("sandboxes", e.sandbox)}>{plain(known.get(e.sandbox)!.name ?? e.sandbox)}</a> : <span class="mono dim">{e.sandbox}</span>) }, { head: "Tenant", hide: true, cell: (e: Event) => plain(e.tenant) }] : []),
        { head: "Details", wide: true, hide: true, cell: (e) => <span class="dim">{describe(e)}</span> },
      ]}
    />
  );
}
