import { useState } from "preact/hooks";
import { call } from "../api";
import { createBox } from "../actions";
import { moment, plain } from "../format";
import { useLoad, who } from "../store";
import { Ago, Button, Card, Confirm, Copy, Dialog, Empty, Page, Shown, StatusBadge, Table } from "../ui";

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

export default function Images() {
  const list = useLoad<{ images: Image[] }>("/v1/images");
  const templates = useLoad<{ templates: Template[] }>("/dashboard/templates", 3000);
  const [shown, setShown] = useState<Template | null>(null);
  const admin = who.value?.role === "admin";
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
      <Card title="Templates" flush>
        <Shown of={templates} rows={2}>
          {(d) =>
            d.templates.length === 0 ? (
              <Empty icon="image" title="No templates">Templates are built by E2B’s SDK or command line, for example <code>e2b template build</code>. Their build logs appear here.</Empty>
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
                  { head: "", cell: (t) => <Button small onClick={() => setShown(t)}>Build log</Button> },
                ]}
              />
            )
          }
        </Shown>
      </Card>
      {!admin && <p class="sub">Images are imported by an admin, with <code>paddock image import</code>.</p>}
      {shown && <BuildLog t={shown} onClose={() => setShown(null)} />}
    </Page>
  );
}
