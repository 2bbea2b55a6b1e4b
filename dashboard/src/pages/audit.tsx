/* What has happened to sandboxes, live. */
import type { Event } from "../api";
import { EventTable } from "../eventlist";
import { go, useRoute } from "../route";
import { recent, useLoad } from "../store";
import { Card, Empty, Page, Shown } from "../ui";

const TYPES = ["created", "started", "exited", "paused", "resumed", "stopped", "forked", "snapshot", "oom", "expired", "deleted", "ai.budget.warning", "ai.budget.exceeded"];

export default function Audit() {
  const { query } = useRoute();
  const type = query.get("type") ?? "";
  const text = query.get("q") ?? "";
  const past = useLoad<{ events: Event[]; next: number; first: number }>(`/v1/events?limit=1000${type ? `&type=${encodeURIComponent(type)}` : ""}`);
  const now = recent.use().filter((e) => !type || e.type === type);
  const set = (k: string, v: string) => {
    const q = new URLSearchParams(query);
    v ? q.set(k, v) : q.delete(k);
    go(`#/audit${q.size ? `?${q}` : ""}`, true);
  };
  return (
    <Page title="Audit" sub="Events of the last seven days, live. For a copy elsewhere, create a webhook.">
      <div class="toolbar">
        <select aria-label="Type of event" value={type} onChange={(e) => set("type", e.currentTarget.value)}>
          <option value="">All events</option>
          {TYPES.map((t) => <option key={t}>{t}</option>)}
        </select>
        <input class="search" type="search" aria-label="Search events" placeholder="Search sandbox, tenant, details" value={text} onInput={(e) => set("q", e.currentTarget.value)} />
      </div>
      <Card flush>
        <Shown of={past} rows={10}>
          {(d) => {
            const all = [...now, ...d.events.toReversed().filter((e) => !now.some((n) => n.id === e.id))];
            const found = all.filter((e) => !text || `${e.sandbox} ${e.tenant} ${e.type} ${JSON.stringify(e.data)}`.toLowerCase().includes(text.toLowerCase()));
            return found.length ? <EventTable events={found.slice(0, 500)} withBox /> : <Empty icon="list" title={all.length ? "No event matches" : "Nothing has happened yet"}>{all.length ? "Try other words." : "Create a sandbox, and it appears here."}</Empty>;
          }}
        </Shown>
      </Card>
    </Page>
  );
}
