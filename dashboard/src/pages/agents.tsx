/* The agents that were installed, and whether they run. */
import { plain } from "../format";
import { actOn, type Agent, type AgentVerb, MAY } from "../money/agents";
import { href } from "../route";
import { useLoad } from "../store";
import { Ago, Button, Card, Empty, lazy, Page, Shown, Snippet, StatusBadge, Table } from "../ui";

const AgentPage = lazy(() => import("../money/agent"));

const VERBS: [AgentVerb, string, string][] = [["start", "Start", "play"], ["stop", "Stop", "stop"], ["restart", "Restart", "refresh"]];

export function AgentVerbs({ agent, small, done }: { agent: Agent; small?: boolean; done: () => void }) {
  return (
    <>
      {VERBS.filter(([v]) => MAY[v](agent)).map(([v, word, icon]) => (
        <Button key={v} small={small} icon={icon} kind={small ? "ghost" : "plain"} label={small ? `${word} ${plain(agent.name)}` : undefined} onClick={async () => { await actOn(agent, v); done(); }}>
          {small ? undefined : word}
        </Button>
      ))}
    </>
  );
}

function List() {
  const list = useLoad<{ agents: Agent[] }>("/v1/agents", 2000);
  return (
    <Page title="Agents" sub="Programs that the daemon runs for you. Each has a sandbox of its own, holds no key, and spends what you allow.">
      <Card flush>
        <Shown of={list}>
          {(d) =>
            d.agents.length === 0 ? (
              <Empty icon="bot" title="No agents are installed" action={<Snippet name="commands" text={"paddock agent new monitor ./my-agent\npaddock agent install ./my-agent\npaddock agent start my-agent"} />}>
                An agent is installed from a directory with its manifest, by the command line, which asks for your consent.
              </Empty>
            ) : (
              <Table
                name="Agents"
                id={(a) => a.id}
                rows={d.agents}
                columns={[
                  { head: "Name", wide: true, cell: (a) => <><a href={href("agents", a.id)}><strong>{plain(a.name)}</strong></a>{a.reason && <div class="dim clip">{plain(a.reason)}</div>}</> },
                  { head: "State", cell: (a) => <StatusBadge status={a.status} /> },
                  { head: "Version", hide: true, cell: (a) => plain(a.manifest.version) },
                  { head: "Chains", hide: true, mono: true, cell: (a) => plain((a.manifest.permissions?.chains ?? []).join(", ")) || "–" },
                  { head: "Started", num: true, hide: true, cell: (a) => <Ago at={a.started_at} /> },
                  { head: "", cell: (a) => <div class="actions"><AgentVerbs agent={a} small done={list.reload} /></div> },
                ]}
              />
            )
          }
        </Shown>
      </Card>
    </Page>
  );
}

export default function Agents({ id }: { id: string }) {
  return id ? <AgentPage id={id} /> : <List />;
}
