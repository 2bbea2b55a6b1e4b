import { useState } from "preact/hooks";
import { boxPath, call, get, type Box } from "../api";
import { createBox } from "../actions";
import { moment, plain } from "../format";
import { readDockerfile } from "../dockerfile";
import { Editor } from "../editor";
import { go, href } from "../route";
import { attempt, putBox, useLoad, who } from "../store";
import { Ago, Button, Card, Confirm, Copy, Dialog, Empty, Field, Page, Shown, StatusBadge, Table } from "../ui";

interface Image {
  name: string | null;
  names: string[];
  digest: string;
  created_at: string | null;
  machine: boolean;
  user?: string;
  cmd?: string[];
}
interface Template {
  id: string;
  names: string[];
  status: string;
  build: string;
  created_at: string;
  tenant: string;
}

function BuildLog({ t, onClose }: { t: Template; onClose: () => void }) {
  const log = useLoad<{ status: string; lines: { at: string; level: string; message: string }[] }>(`/dashboard/templates/${t.id}/log`, 1500);
  return (
    <Dialog wide title={`Build of ${plain(t.names[0] ?? t.id)}`} onClose={onClose}>
      <Shown of={log}>
        {(d) => (d.lines.length ? <pre class="log" tabIndex={0}>{d.lines.map((l, i) => <div key={i} class={l.level === "error" ? "bad" : ""}><span class="dim">{moment(l.at).slice(11)} </span>{plain(l.message)}</div>)}</pre> : <p class="dim">The build has written nothing.</p>)}
      </Shown>
    </Dialog>
  );
}

const EXAMPLE = `FROM machine
RUN echo "made at $(date)" > /workspace/MADE
ENV COLOUR=blue
`;

function BuildDialog({ images, onClose, onBuilt }: { images: string[]; onClose: () => void; onBuilt: (t: Template) => void }) {
  const [name, setName] = useState("");
  const [text, setText] = useState(EXAMPLE.replace("machine", images[0] ?? "machine"));
  const [error, setError] = useState("");
  const [busy, setBusy] = useState(false);
  const build = async (e: Event) => {
    e.preventDefault();
    setBusy(true);
    try {
      const { from, start, steps } = readDockerfile(text);
      onBuilt(await call<Template>("POST", "/dashboard/templates", { name: name.trim(), from: from || null, start, steps }));
    } catch (x) {
      setError((x as Error).message);
    }
    setBusy(false);
  };
  return (
    <Dialog wide title="Build a template" onClose={onClose}>
      <form onSubmit={build}>
        <Field label="Name" hint="Building an existing name again replaces what new sandboxes of it start from.">
          <input autofocus required maxLength={100} value={name} placeholder="data-tools" onInput={(e) => setName(e.currentTarget.value)} />
        </Field>
        <div class="field">
          <span>Steps</span>
          <div class="buildfile"><Editor value={text} name="Dockerfile" label="Steps" onInput={setText} /></div>
          <small>FROM names an image or a template that is here. RUN, ENV, WORKDIR, USER and CMD work as in a Dockerfile.</small>
        </div>
        {error && <p class="bad" role="alert">{error}</p>}
        <footer>
          <Button onClick={onClose}>Cancel</Button>
          <Button kind="primary" type="submit" busy={busy} disabled={!name.trim()}>Build</Button>
        </footer>
      </form>
    </Dialog>
  );
}

async function useTemplate(t: Template) {
  await attempt(async () => {
    const { id } = await call<{ id: string }>("POST", `/dashboard/templates/${encodeURIComponent(t.id)}/sandboxes`);
    putBox(await get<Box>(boxPath(id)));
    go(href("sandboxes", id));
  });
}

export default function Images() {
  const list = useLoad<{ images: Image[] }>("/v1/images");
  const templates = useLoad<{ templates: Template[] }>("/dashboard/templates", 3000);
  const [shown, setShown] = useState<Template | null>(null);
  const [building, setBuilding] = useState(false);
  const admin = who.value?.role === "admin";
  const add = <Button small icon="plus" onClick={() => setBuilding(true)}>Build a template</Button>;
  return (
    <Page title="Images" sub="What sandboxes are made from.">
      <Card title="Images" flush>
        <Shown of={list} rows={3}>
          {(d) => (
            <Table
              name="Images"
              id={(i) => i.digest}
              rows={d.images}
              columns={[
                { head: "Name", wide: true, cell: (i) => <><strong>{plain(i.names.join(", ") || "–")}</strong>{i.machine && <span class="dim"> · this machine’s own /usr</span>}</> },
                { head: "Digest", mono: true, hide: true, cell: (i) => <>{i.digest.slice(0, 19)}… <Copy text={i.digest} label="Copy the digest" /></> },
                { head: "Created", num: true, hide: true, cell: (i) => <Ago at={i.created_at} /> },
                {
                  head: "",
                  cell: (i) => (
                    <div class="actions">
                      <Button small onClick={() => createBox({ image: i.name ?? i.digest })}>New sandbox</Button>
                      {admin && !i.machine && i.name && <Confirm small kind="ghost" icon="trash" label={`Delete ${plain(i.name)}`} title={`Delete ${plain(i.name)}?`} text="Sandboxes that use it go on." word="Delete" run={async () => { await call("DELETE", `/v1/images/${encodeURIComponent(i.name!)}`); list.reload(); }} />}
                    </div>
                  ),
                },
              ]}
            />
          )}
        </Shown>
      </Card>
      <Card title="Templates" actions={templates.data?.templates.length ? add : undefined} flush>
        <Shown of={templates} rows={2}>
          {(d) =>
            d.templates.length === 0 ? (
              <Empty icon="image" title="No templates" action={add}>A template is a sandbox that was prepared once: packages installed, files written. Build one here, or with E2B’s SDK or <code>e2b template build</code>.</Empty>
            ) : (
              <Table
                name="Templates"
                id={(t) => t.id}
                rows={d.templates}
                columns={[
                  { head: "Name", wide: true, cell: (t) => <strong>{plain(t.names[0] ?? t.id)}</strong> },
                  { head: "Status", cell: (t) => <StatusBadge status={t.status} /> },
                  { head: "Tenant", hide: true, cell: (t) => plain(t.tenant) },
                  { head: "Created", num: true, hide: true, cell: (t) => <Ago at={t.created_at} /> },
                  {
                    head: "",
                    cell: (t) => (
                      <div class="actions">
                        <Button small onClick={() => setShown(t)}>Build log</Button>
                        <Button small disabled={t.status !== "ready"} onClick={() => useTemplate(t)}>New sandbox</Button>
                        <Confirm small kind="ghost" icon="trash" label={`Delete ${plain(t.names[0] ?? t.id)}`} title={`Delete ${plain(t.names[0] ?? t.id)}?`} text="Sandboxes that were made from it go on." word="Delete" run={async () => { await call("DELETE", `/dashboard/templates/${encodeURIComponent(t.id)}`); templates.reload(); }} />
                      </div>
                    ),
                  },
                ]}
              />
            )
          }
        </Shown>
      </Card>
      {!admin && <p class="sub">Images are imported by an admin, with <code>paddock image import</code>.</p>}
      {building && <BuildDialog images={list.data?.images.flatMap((i) => i.names.slice(0, 1)) ?? []} onClose={() => setBuilding(false)} onBuilt={(t) => (setBuilding(false), templates.reload(), setShown(t))} />}
      {shown && <BuildLog t={shown} onClose={() => setShown(null)} />}
    </Page>
  );
}
