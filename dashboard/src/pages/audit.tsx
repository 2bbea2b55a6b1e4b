/* Who changed what, and what happened to sandboxes. */
import { useEffect, useMemo } from "preact/hooks";
import type { Event } from "../api";
import { EventTable, inWords, When } from "../eventlist";
import { plain } from "../format";
import { go, href, useRoute } from "../route";
import { boxes, recent, useLoad, who } from "../store";
import { Button, Card, Empty, Page, Shown, Table } from "../ui";

const TYPES = ["created", "started", "exited", "paused", "resumed", "stopped", "forked", "snapshot", "oom", "expired", "deleted", "ai.budget.warning", "ai.budget.exceeded", "transaction.pending", "transaction.decided", "transaction.changed"];
const AREAS = ["sandbox", "key", "tenant", "quota", "policy", "secret", "image", "template", "workspace", "snapshot", "webhook", "link", "agent", "transaction", "wallet", "signer", "ai", "vault", "dashboard"];
const PAGE = 500;

interface Entry {
  id: number;
  at: string;
  tenant: string;
  key: string;
  role: string;
  via: string;
  action: string;
  target: string;
  detail: string;
  verdict: string;
  code: string | null;
  from: string;
  request_id: string;
}

function useWord(query: URLSearchParams): [(k: string) => string, (k: string, v: string) => void] {
  return [
    (k) => query.get(k) ?? "",
    (k, v) => {
      const q = new URLSearchParams(query);
      v ? q.set(k, v) : q.delete(k);
      go(`#/audit${q.size ? `?${q}` : ""}`, true);
    },
  ];
}

function Target({ text, names }: { text: string; names: Map<string, string | null> }) {
  const words = text.split(" ").filter(Boolean);
  return <>{words.map((w, i) => <span key={i}>{i > 0 && " "}{names.has(w) ? <a href={href("sandboxes", w)}>{plain(names.get(w) ?? w)}</a> : <span class="mono">{plain(w)}</span>}</span>)}</>;
}

function Changes({ word, set }: { word: (k: string) => string; set: (k: string, v: string) => void }) {
  const admin = who.value?.role === "admin";
  const list = useLoad<{ entries: Entry[]; next: string | null }>(`/v1/audit?limit=${PAGE}${word("cursor") ? `&cursor=${encodeURIComponent(word("cursor"))}` : ""}`, 2500);
  const keys = useLoad<{ keys: { id: string; name: string }[] }>(admin ? "/v1/keys" : null);
  const newest = recent.use()[0]?.id;
  useEffect(() => { if (newest !== undefined) list.reload(); }, [newest]);
  const state = boxes.use();
  const names = useMemo(() => new Map(state.list.map((b) => [b.id, b.name])), [state.list]);
  const people = new Map(keys.data?.keys.map((k) => [k.id, k.name]));
  const text = word("q").toLowerCase();
  return (
    <>
      <div class="toolbar">
        <select aria-label="Area" value={word("area")} onChange={(e) => set("area", e.currentTarget.value)}>
          <option value="">All areas</option>
          {AREAS.map((a) => <option key={a}>{a}</option>)}
        </select>
        <input class="search" type="search" aria-label="Search changes" placeholder="Search key, action, target" value={word("q")} onInput={(e) => set("q", e.currentTarget.value)} />
      </div>
      <Card flush>
        <Shown of={list} rows={10}>
          {(d) => {
            const found = d.entries.filter((e) => (!word("area") || e.action.startsWith(word("area") + ".")) && (!text || `${e.action} ${e.target} ${e.key} ${people.get(e.key) ?? ""} ${e.tenant} ${e.via} ${e.detail}`.toLowerCase().includes(text)));
            if (!found.length) return <Empty icon="list" title={d.entries.length ? "No entry matches" : "Nothing was changed yet"}>{d.entries.length ? "Try other words, or an older page." : "Whoever creates or changes something appears here: sandboxes, keys, tenants, policies, secrets, images."}</Empty>;
            return (
              <Table
                name="Changes"
                id={(e) => e.id}
                rows={found}
                columns={[
                  { head: "Time", cell: (e) => <When at={e.at} /> },
                  { head: "Who", cell: (e) => <span title={e.key}>{plain(people.get(e.key) || e.key || "without a key")} <span class="dim day">{plain(e.tenant)}</span></span> },
                  { head: "Action", cell: (e) => <span class={e.verdict === "done" ? "chip" : "chip bad"} title={plain(`request ${e.request_id}${e.code ? `: ${e.code}` : ""}`)}>{plain(e.action)}{e.verdict === "done" ? "" : ` ${plain(e.verdict)}`}</span> },
                  { head: "Target", hide: true, cell: (e) => <Target text={e.target} names={names} /> },
                  { head: "Via", hide: true, cell: (e) => <span class="dim" title={plain(e.from)}>{plain(e.via)}</span> },
                  { head: "Details", wide: true, hide: true, cell: (e) => <span class="dim clip" title={plain(e.detail)}>{inWords(e.detail)}</span> },
                ]}
              />
            );
          }}
        </Shown>
      </Card>
      <div class="pager">
        {word("cursor") && <Button small onClick={() => set("cursor", "")}>Newest</Button>}
        {list.data?.next && <Button small onClick={() => set("cursor", list.data!.next!)}>Older</Button>}
      </div>
    </>
  );
}

function Events({ word, set }: { word: (k: string) => string; set: (k: string, v: string) => void }) {
  const type = word("type");
  const text = word("q").toLowerCase();
  const past = useLoad<{ events: Event[]; next: number; first: number }>(`/v1/events?limit=1000${type ? `&type=${encodeURIComponent(type)}` : ""}`);
  const now = recent.use().filter((e) => !type || e.type === type);
  return (
    <>
      <div class="toolbar">
        <select aria-label="Type of event" value={type} onChange={(e) => set("type", e.currentTarget.value)}>
          <option value="">All events</option>
          {TYPES.map((t) => <option key={t}>{t}</option>)}
        </select>
        <input class="search" type="search" aria-label="Search events" placeholder="Search sandbox, tenant, details" value={word("q")} onInput={(e) => set("q", e.currentTarget.value)} />
      </div>
      <Card flush>
        <Shown of={past} rows={10}>
          {(d) => {
            const all = [...now, ...d.events.toReversed().filter((e) => !now.some((n) => n.id === e.id))];
            const found = all.filter((e) => !text || `${e.sandbox} ${e.tenant} ${e.type} ${JSON.stringify(e.data)}`.toLowerCase().includes(text));
            return found.length ? <EventTable events={found.slice(0, 500)} withBox /> : <Empty icon="list" title={all.length ? "No event matches" : "Nothing has happened yet"}>{all.length ? "Try other words." : "Create a sandbox, and it appears here."}</Empty>;
          }}
        </Shown>
      </Card>
    </>
  );
}

export default function Audit() {
  const { query } = useRoute();
  const [word, set] = useWord(query);
  const events = word("view") === "events";
  return (
    <Page title="Audit" sub={events ? "What happened to sandboxes in the last seven days, live. For a copy elsewhere, create a webhook." : "Who changed what, by which key. Commands and files inside sandboxes are not recorded."}>
      <div class="tabs" role="tablist" aria-label="Kinds of entries">
        <a role="tab" aria-selected={!events} href="#/audit">Changes</a>
        <a role="tab" aria-selected={events} href="#/audit?view=events">Sandbox events</a>
      </div>
      {events ? <Events word={word} set={set} /> : <Changes word={word} set={set} />}
    </Page>
  );
}
