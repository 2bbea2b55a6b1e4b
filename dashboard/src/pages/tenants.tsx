import { useState } from "preact/hooks";
import { call } from "../api";
import { count, plain } from "../format";
import { attempt, useLoad } from "../store";
import { Ago, Button, Card, Confirm, Dialog, Empty, Field, Page, Shown, Snippet, StatusBadge, Table } from "../ui";

type Quota = Record<string, number>;
interface Tenant {
  id: string;
  name: string;
  created_at: string;
  quota: Quota;
  limits: Quota;
  used: Quota;
}
interface Key {
  id: string;
  key?: string;
  name: string | null;
  tenant: string;
  role: string;
  created_at: string;
}

const NAMES: Record<string, string> = { boxes: "Sandboxes", cpu: "CPU cores", memory_mb: "Memory, MB", disk_mb: "Disk, MB", processes: "Processes", workspaces: "Workspaces", snapshots: "Snapshots", templates: "Templates", secrets: "Secrets", webhooks: "Webhooks", creates_per_minute: "Creates a minute" };

function QuotaDialog({ t, onClose }: { t: Tenant; onClose: () => void }) {
  const [values, setValues] = useState<Record<string, string>>(() => Object.fromEntries(Object.keys(NAMES).map((k) => [k, t.quota[k] ? String(t.quota[k]) : ""])));
  const save = async (e: Event) => {
    e.preventDefault();
    const quota = Object.fromEntries(Object.entries(values).map(([k, v]) => [k, v.trim() ? Number(v) : null]));
    if (await attempt(() => call("PUT", `/v1/tenants/${encodeURIComponent(t.id)}/quota`, quota), "Quota set")) onClose();
  };
  return (
    <Dialog title={`Quota of ${plain(t.name)}`} onClose={onClose}>
      <form onSubmit={save}>
        <div class="grid2">
          {Object.entries(NAMES).map(([k, label]) => (
            <Field key={k} label={label} hint={t.used[k] === undefined ? undefined : `${count(t.used[k])} in use`}>
              <input type="number" min={0} step="any" placeholder={t.limits[k] ? String(t.limits[k]) : "no limit"} value={values[k]} onInput={(e) => setValues({ ...values, [k]: e.currentTarget.value })} />
            </Field>
          ))}
        </div>
        <footer><Button onClick={onClose}>Cancel</Button><Button kind="primary" type="submit">Save</Button></footer>
      </form>
    </Dialog>
  );
}

function KeyDialog({ tenants, onClose }: { tenants: Tenant[]; onClose: () => void }) {
  const [name, setName] = useState("");
  const [tenant, setTenant] = useState("default");
  const [role, setRole] = useState("user");
  const [made, setMade] = useState<Key | null>(null);
  const create = async (e: Event) => {
    e.preventDefault();
    const k = await attempt(() => call<Key>("POST", "/v1/keys", { name: name.trim() || undefined, tenant, role, create_tenant: true }));
    if (k) setMade(k);
  };
  return (
    <Dialog title={made ? "The new key" : "New key"} onClose={onClose}>
      {made ? (
        <>
          <p>Copy it now. It is not shown again.</p>
          <Snippet name="the new key" text={made.key!} />
          <footer><Button kind="primary" onClick={onClose}>Done</Button></footer>
        </>
      ) : (
        <form onSubmit={create}>
          <Field label="Name"><input autofocus value={name} placeholder="who or what it is for" onInput={(e) => setName(e.currentTarget.value)} /></Field>
          <Field label="Tenant" hint="One that does not exist is created.">
            <input list="tenants" value={tenant} onInput={(e) => setTenant(e.currentTarget.value)} />
            <datalist id="tenants">{tenants.map((t) => <option key={t.id} value={t.name} />)}</datalist>
          </Field>
          <Field label="Role"><select value={role} onChange={(e) => setRole(e.currentTarget.value)}><option value="user">user: the tenant’s own sandboxes</option><option value="admin">admin: everything</option></select></Field>
          <footer><Button onClick={onClose}>Cancel</Button><Button kind="primary" type="submit">Create</Button></footer>
        </form>
      )}
    </Dialog>
  );
}

const of = (used: number | undefined, limit: number | undefined) => (
  <>{count(used ?? 0)}<span class="dim"> / {limit ? count(limit) : "∞"}</span></>
);

export default function Tenants({ id }: { id: string }) {
  const tenants = useLoad<{ tenants: Tenant[] }>("/v1/tenants", 5000);
  const keys = useLoad<{ keys: Key[] }>("/v1/keys");
  const [quota, setQuota] = useState<Tenant | null>(null);
  const [adding, setAdding] = useState(id === "new-key");
  return (
    <Page title="Tenants & keys" sub="A key belongs to a tenant. Tenants do not see each other’s sandboxes." actions={<Button kind="primary" icon="plus" onClick={() => setAdding(true)}>New key</Button>}>
      <Card title="Tenants" flush>
        <Shown of={tenants}>
          {(d) => (
            <Table
              name="Tenants"
              id={(t) => t.id}
              rows={d.tenants}
              columns={[
                { head: "Name", wide: true, cell: (t) => <strong>{plain(t.name)}</strong> },
                { head: "Sandboxes", num: true, cell: (t) => of(t.used.boxes, t.limits.boxes) },
                { head: "CPU", num: true, hide: true, cell: (t) => of(t.used.cpu, t.limits.cpu) },
                { head: "Memory, MB", num: true, hide: true, cell: (t) => of(t.used.memory_mb, t.limits.memory_mb) },
                { head: "Workspaces", num: true, hide: true, cell: (t) => of(t.used.workspaces, t.limits.workspaces) },
                { head: "Snapshots", num: true, hide: true, cell: (t) => of(t.used.snapshots, t.limits.snapshots) },
                { head: "", cell: (t) => <Button small onClick={() => setQuota(t)}>Quota</Button> },
              ]}
            />
          )}
        </Shown>
      </Card>
      <Card title="Keys" flush>
        <Shown of={keys}>
          {(d) =>
            d.keys.length === 0 ? <Empty icon="users" title="No keys" /> : (
              <Table
                name="Keys"
                id={(k) => k.id}
                rows={d.keys}
                columns={[
                  { head: "Name", wide: true, cell: (k) => <><strong>{plain(k.name || "–")}</strong> <span class="mono dim">{k.id}</span></> },
                  { head: "Tenant", cell: (k) => plain(k.tenant) },
                  { head: "Role", cell: (k) => <StatusBadge status={k.role} /> },
                  { head: "Created", num: true, hide: true, cell: (k) => <Ago at={k.created_at} /> },
                  { head: "", cell: (k) => <Confirm small kind="ghost" icon="trash" label={`Revoke ${plain(k.name || k.id)}`} title="Revoke this key?" text="Clients that use it are refused at once, and its sessions end." word="Revoke" run={async () => { await call("DELETE", `/v1/keys/${k.id}`); keys.reload(); }} /> },
                ]}
              />
            )
          }
        </Shown>
      </Card>
      {quota && <QuotaDialog t={quota} onClose={() => (setQuota(null), tenants.reload())} />}
      {adding && <KeyDialog tenants={tenants.data?.tenants ?? []} onClose={() => (setAdding(false), keys.reload(), tenants.reload())} />}
    </Page>
  );
}
