/* One agent: what it asks for, what it may spend, what it says. */
import { useEffect } from "preact/hooks";
import { call } from "../api";
import { plain } from "../format";
import { AgentVerbs } from "../pages/agents";
import { go, href } from "../route";
import { recent, toast, useLoad } from "../store";
import { Ago, Card, Confirm, Empty, Facts, Failure, Icon, Skeleton, StatusBadge } from "../ui";
import { type Agent, agentPath, type Manifest } from "./agents";
import AgentMoney from "./limits";
import AgentLog from "./log";

function Chips({ list, none }: { list: string[] | undefined; none: string }) {
  return list?.length ? <span class="chips">{list.map((w) => <span key={w} class="chip">{plain(w)}</span>)}</span> : <span class="dim">{none}</span>;
}

function Asks({ agent, m }: { agent: Agent; m: Manifest }) {
  const p = m.permissions ?? {};
  const l = m.spending_limits;
  const rpcs = Object.entries(p.rpcs ?? {});
  return (
    <Card title="What its manifest asks for">
      {m.description && <p>“<bdi>{plain(m.description)}</bdi>”</p>}
      <Facts
        items={[
          ["Chains", <Chips list={p.chains} none="none" />],
          ["Contracts", <Chips list={p.contracts} none="any" />],
          ["Models", <Chips list={p.apis} none="none" />],
          ["Hosts", <Chips list={p.hosts} none="none: it has no network" />],
          ...(rpcs.length ? [["Nodes of its own", <Chips list={rpcs.map(([c, u]) => `${c} ${u}`)} none="" />] as [string, preact.ComponentChildren]] : []),
          ["Limits it wants", l ? plain([["per transaction", l.per_transaction], ["a day", l.daily], ["a week", l.weekly], ["a month", l.monthly]].filter(([, v]) => v).map(([k, v]) => `${v} ${k}`).join(", ")) || "none" : "none"],
          ["Resources", plain([m.resources?.memory, m.resources?.cpu && `${m.resources.cpu} cores`].filter(Boolean).join(", ")) || "the defaults"],
          ["Program", plain(`${m.runtime} ${m.entrypoint}, version ${m.version}`)],
          ["Author", plain(m.author ?? "–")],
          ["Consented by key", <span class="mono">{plain(agent.consented_by)}</span>],
          ["Installed", <Ago at={agent.created_at} />],
        ]}
      />
    </Card>
  );
}

export default function AgentPage({ id }: { id: string }) {
  const load = useLoad<Agent>(agentPath(id), 2000);
  const newest = recent.use()[0]?.id;
  useEffect(() => { if (newest !== undefined) load.reload(); }, [newest]);
  const a = load.data;
  if (!a) {
    if (/no such|not found|does not exist/i.test(load.error)) return <Empty icon="bot" title="This agent does not exist" action={<a class="btn plain" href="#/agents">All agents</a>}>It was removed, or it belongs to another tenant.</Empty>;
    return <div class="page">{load.error ? <Failure error={load.error} retry={load.reload} /> : <Skeleton rows={8} />}</div>;
  }
  const remove = async () => {
    await call("DELETE", agentPath(a.id));
    toast("The agent was removed");
    go("#/agents");
  };
  return (
    <div class="page">
      <header class="page-head">
        <div>
          <nav class="crumbs" aria-label="Breadcrumb"><a href="#/agents">Agents</a><Icon name="chevron" size={12} /><span class="mono">{plain(a.id)}</span></nav>
          <h1>{plain(a.name)} <StatusBadge status={a.status} /></h1>
          {(a.reason || a.next_start_at) && <p class="sub">{plain(a.reason ?? "")}{a.crashes > 0 && ` Crashes in a row: ${a.crashes}.`}</p>}
        </div>
        <div class="actions">
          <AgentVerbs agent={a} done={load.reload} />
          <a class="btn plain" href={`#/transactions?agent=${encodeURIComponent(a.id)}`}>Transactions</a>
          {a.sandbox && <a class="btn plain" href={href("sandboxes", a.sandbox)}>Sandbox</a>}
          <Confirm icon="trash" kind="danger" title={`Remove ${plain(a.name)}?`} text="It is stopped, and its image and its workspace are removed." word="Remove" run={remove}>Remove</Confirm>
        </div>
      </header>
      <AgentMoney agent={a} />
      <Asks agent={a} m={a.manifest} />
      <AgentLog id={a.id} />
    </div>
  );
}
