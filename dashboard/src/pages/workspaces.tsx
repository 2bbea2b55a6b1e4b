import { useState } from "preact/hooks";
import { call } from "../api";
import { createBox } from "../actions";
import { bytes, plain } from "../format";
import { href } from "../route";
import { attempt, useLoad } from "../store";
import { Ago, Button, Card, Confirm, Dialog, Empty, Field, Page, Shown, Table } from "../ui";

interface Workspace {
  id: string;
  name: string;
  tenant: string;
  disk: { used_bytes: number; limit_mb: number | null };
  readonly: boolean;
  used_by: { id: string; mode: string; status: string }[];
  created_at: string;
}

export default function Workspaces() {
  const list = useLoad<{ workspaces: Workspace[] }>("/v1/workspaces", 5000);
  const [open, setOpen] = useState(false);
  const [name, setName] = useState("");
  const create = async (e: Event) => {
    e.preventDefault();
    if (!(await attempt(() => call<Workspace>("POST", "/v1/workspaces", { name: name.trim() }), "Workspace created"))) return;
    setOpen(false);
    setName("");
    list.reload();
  };
  const add = <Button kind="primary" icon="plus" onClick={() => setOpen(true)}>New workspace</Button>;
  return (
    <Page title="Workspaces" sub="Directories that outlive sandboxes and can be shared between them." actions={add}>
      <Card flush>
        <Shown of={list}>
          {(d) =>
            d.workspaces.length === 0 ? (
              <Empty icon="disk" title="No workspaces" action={add}>Files in a workspace stay when its sandboxes are gone.</Empty>
            ) : (
              <Table
                name="Workspaces"
                id={(w) => w.id}
                rows={d.workspaces}
                columns={[
                  { head: "Name", wide: true, cell: (w) => <strong>{plain(w.name)}</strong> },
                  { head: "Tenant", hide: true, cell: (w) => plain(w.tenant) },
                  { head: "Size", num: true, cell: (w) => bytes(w.disk.used_bytes) },
                  { head: "Used by", cell: (w) => (w.used_by.length ? w.used_by.map((u) => <a key={u.id} class="mono" href={href("sandboxes", u.id)}>{u.id.slice(0, 8)} </a>) : <span class="dim">nobody</span>) },
                  { head: "Created", num: true, hide: true, cell: (w) => <Ago at={w.created_at} /> },
                  {
                    head: "",
                    cell: (w) => (
                      <div class="actions">
                        <Button small onClick={() => createBox({ workspace: w.name })}>New sandbox</Button>
                        <Confirm small kind="ghost" icon="trash" label={`Delete ${plain(w.name)}`} disabled={w.used_by.length > 0} title={`Delete ${plain(w.name)}?`} text="Its files are removed." word="Delete" run={async () => { await call("DELETE", `/v1/workspaces/${encodeURIComponent(w.name)}`); list.reload(); }} />
                      </div>
                    ),
                  },
                ]}
              />
            )
          }
        </Shown>
      </Card>
      {open && (
        <Dialog title="New workspace" onClose={() => setOpen(false)}>
          <form onSubmit={create}>
            <Field label="Name"><input autofocus value={name} onInput={(e) => setName(e.currentTarget.value)} /></Field>
            <footer><Button onClick={() => setOpen(false)}>Cancel</Button><Button kind="primary" type="submit" disabled={!name.trim()}>Create</Button></footer>
          </form>
        </Dialog>
      )}
    </Page>
  );
}
