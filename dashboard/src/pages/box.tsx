/* One sandbox. */
import { useEffect, useState } from "preact/hooks";
import { act, MAY, type Verb } from "../actions";
import { ApiError, type Box, boxPath, call, get } from "../api";
import { left, plain } from "../format";
import { go, href } from "../route";
import { attempt, boxes, putBox, toast } from "../store";
import { Ago, Button, Confirm, Copy, Dialog, Empty, Facts, Failure, Field, Icon, lazy, Skeleton, StatusBadge } from "../ui";

export interface TabProps {
  box: Box;
  rest: string[];
}

const TABS: { id: string; title: string; view: ReturnType<typeof lazy<TabProps>>; needs?: boolean }[] = [
  { id: "terminal", title: "Terminal", view: lazy(() => import("../box/terminal")), needs: true },
  { id: "files", title: "Files", view: lazy(() => import("../box/files")), needs: true },
  { id: "code", title: "Code", view: lazy(() => import("../box/code")), needs: true },
  { id: "processes", title: "Processes", view: lazy(() => import("../box/processes")), needs: true },
  { id: "ports", title: "Ports", view: lazy(() => import("../box/ports")), needs: true },
  { id: "metrics", title: "Metrics", view: lazy(() => import("../box/metrics")) },
  { id: "events", title: "Events", view: lazy(() => import("../box/events")) },
  { id: "egress", title: "Egress", view: lazy(() => import("../box/egress")) },
  { id: "secrets", title: "Secrets", view: lazy(() => import("../box/secrets")) },
  { id: "tree", title: "Snapshots & forks", view: lazy(() => import("../box/tree")) },
  { id: "details", title: "Details", view: lazy(async () => ({ default: Details })) },
];

function Details({ box }: TabProps) {
  return (
    <div class="card">
      <Facts
        items={[
          ["Id", <span class="mono">{box.id} <Copy text={box.id} label="Copy the id" /></span>],
          ["Name", plain(box.name ?? "–")],
          ["Tenant", plain(box.tenant)],
          ["Image", plain(box.image)],
          ["Walls", plain(box.backend)],
          ["User", plain(box.user)],
          ["Working directory", <span class="mono">{plain(box.workdir)}</span>],
          ["Created", <Ago at={box.created_at} />],
          ["Time left", left(box.expires_at)],
          ["At the end", box.on_end],
          ["CPU", `${box.limits.cpu} cores`],
          ["Memory", `${box.limits.memory_mb} MB`],
          ["Processes", String(box.limits.pids)],
          ["Workspace", box.workspace ? `${plain(box.workspace.name)} (${box.workspace.mode})` : "–"],
          ["Ports", box.ports_public ? "public" : "private"],
          ...Object.entries(box.metadata).map(([k, v]): [string, string] => [`Label ${plain(k)}`, plain(v)]),
        ]}
      />
    </div>
  );
}

export function ForkDialog({ box, onClose }: { box: Box; onClose: () => void }) {
  const [n, setN] = useState(1);
  const [busy, setBusy] = useState(false);
  const fork = async (e: Event) => {
    e.preventDefault();
    setBusy(true);
    const made = await attempt(() => call<{ sandboxes: Box[]; stopped_us: number }>("POST", `${boxPath(box.id)}/fork`, { count: n }));
    setBusy(false);
    if (!made) return;
    made.sandboxes.forEach(putBox);
    toast(`Forked. The sandbox stood still for ${(made.stopped_us / 1000).toFixed(1)} ms.`);
    onClose();
    go(made.sandboxes.length === 1 ? href("sandboxes", made.sandboxes[0]!.id) : href("sandboxes", box.id, "tree"));
  };
  return (
    <Dialog title={`Fork ${plain(box.name ?? box.id)}`} onClose={onClose}>
      <form onSubmit={fork}>
        <p>Copies of this sandbox with the same files. They change independently from then on.</p>
        <Field label="How many">
          <input type="number" min={1} max={16} value={n} autofocus onInput={(e) => setN(Number(e.currentTarget.value))} />
        </Field>
        <footer>
          <Button onClick={onClose}>Cancel</Button>
          <Button kind="primary" type="submit" busy={busy}>Fork</Button>
        </footer>
      </form>
    </Dialog>
  );
}

function Actions({ box }: { box: Box }) {
  const [busy, setBusy] = useState("");
  const [forking, setForking] = useState(false);
  const run = async (v: Verb) => {
    setBusy(v);
    await attempt(() => act(box, v));
    setBusy("");
  };
  const verbs: [Verb, string, string][] = [["pause", "Pause", "pause"], ["resume", "Resume", "play"], ["start", "Start", "play"], ["stop", "Stop", "stop"]];
  return (
    <div class="actions">
      {verbs.filter(([v]) => MAY[v](box)).map(([v, word, icon]) => (
        <Button key={v} icon={icon} busy={busy === v} onClick={() => run(v)}>{word}</Button>
      ))}
      <Button icon="fork" disabled={box.status === "stopped"} onClick={() => setForking(true)}>Fork</Button>
      <Confirm icon="trash" kind="danger" title="Delete this sandbox?" text="Everything that runs in it ends, and its files are removed." word="Delete" run={async () => { await act(box, "delete"); toast("Sandbox deleted"); go("#/sandboxes"); }}>
        Delete
      </Confirm>
      {forking && <ForkDialog box={box} onClose={() => setForking(false)} />}
    </div>
  );
}

export default function BoxPage({ id, tab, rest }: { id: string; tab: string; rest: string[] }) {
  const state = boxes.use();
  const box = state.list.find((b) => b.id === id || b.name === id);
  const [error, setError] = useState<Error | null>(null);
  useEffect(() => {
    if (box) return;
    get<Box>(boxPath(id)).then((b) => { putBox(b); setError(null); }, setError);
  }, [id, !box]);

  if (!box) {
    if (error instanceof ApiError && error.status === 404)
      return (
        <Empty icon="box" title="This sandbox does not exist" action={<a class="btn plain" href="#/sandboxes">All sandboxes</a>}>
          It was deleted or has expired, or it belongs to another tenant.
        </Empty>
      );
    return <div class="page">{error ? <Failure error={error.message} retry={() => location.reload()} /> : <Skeleton rows={8} />}</div>;
  }
  const shown = TABS.find((t) => t.id === tab) ?? TABS[0]!;
  const View = shown.view;
  return (
    <div class="page wide boxpage">
      <header class="page-head">
        <div>
          <nav class="crumbs" aria-label="Breadcrumb">
            <a href="#/sandboxes">Sandboxes</a>
            <Icon name="chevron" size={12} />
            <span class="mono">{box.id}</span>
          </nav>
          <h1>
            {plain(box.name ?? box.id)} <StatusBadge status={box.status} />
          </h1>
        </div>
        <Actions box={box} />
      </header>
      <div class="tabs" role="tablist" aria-label="Parts of the sandbox">
        {TABS.map((t) => (
          <a key={t.id} ref={(el) => { if (el && t === shown) el.parentElement!.scrollLeft = Math.max(0, el.offsetLeft - el.parentElement!.offsetLeft - 60); }} id={`tab-${t.id}`} role="tab" aria-selected={t === shown} aria-controls="tab-panel" href={href("sandboxes", box.id, t.id)}>
            {t.title}
          </a>
        ))}
      </div>
      <div id="tab-panel" class="tab" role="tabpanel" aria-labelledby={`tab-${shown.id}`} key={shown.id}>
        {shown.needs && box.status !== "running" ? (
          <Empty icon="pause" title={`The sandbox is ${box.status}`} action={MAY.resume(box) ? <Button kind="primary" onClick={() => attempt(() => act(box, "resume"))}>Resume it</Button> : MAY.start(box) ? <Button kind="primary" onClick={() => attempt(() => act(box, "start"))}>Start it</Button> : undefined}>
            This part is available while it runs.
          </Empty>
        ) : (
          <View box={box} rest={rest} />
        )}
      </div>
    </div>
  );
}
