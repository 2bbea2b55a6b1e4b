/* Every setting, its value, and where the value comes from. */
import { useState } from "preact/hooks";
import { plain } from "../format";
import { SecretList } from "../secretlist";
import { useLoad } from "../store";
import { Card, Page, Shown, StatusBadge, Table } from "../ui";

interface Setting {
  name: string;
  value: unknown;
  source: string;
}
interface Part {
  name: string;
  ok: boolean;
  required: boolean;
  detail: string;
}

const text = (v: unknown) => (v === null || v === "" ? "–" : typeof v === "object" ? JSON.stringify(v) : String(v));

export default function Settings() {
  const list = useLoad<{ settings: Setting[] }>("/dashboard/settings");
  const posture = useLoad<{ ok: boolean; parts: Part[] }>("/v1/posture");
  const [query, setQuery] = useState("");
  return (
    <Page title="Settings" sub="They are read when the daemon starts: from paddock.yaml, PADDOCK_… variables and the command line. See paddock.yaml(5).">
      <div class="toolbar"><input class="search" type="search" aria-label="Search settings" placeholder="Search settings" value={query} onInput={(e) => setQuery(e.currentTarget.value)} /></div>
      <Card title="Configuration" flush>
        <Shown of={list} rows={12}>
          {(d) => (
            <Table
              name="Settings"
              id={(s) => s.name}
              rows={d.settings.filter((s) => s.name.includes(query.toLowerCase()))}
              columns={[
                { head: "Setting", mono: true, cell: (s) => plain(s.name) },
                { head: "Value", mono: true, wide: true, cell: (s) => <span class="clip" title={plain(text(s.value))}>{plain(text(s.value))}</span> },
                { head: "From", cell: (s) => <span class={s.source === "default" ? "dim" : ""}>{plain(s.source)}</span> },
              ]}
            />
          )}
        </Shown>
      </Card>
      <SecretList path="/v1/secrets" title="Secrets of this tenant" hint="Values are sealed in the vault and are never shown again." />
      <Card title="Isolation of this machine" flush>
        <Shown of={posture} rows={6}>
          {(d) => (
            <Table
              name="Isolation"
              id={(p) => p.name}
              rows={d.parts}
              columns={[
                { head: "Feature", mono: true, cell: (p) => plain(p.name) },
                { head: "State", cell: (p) => <StatusBadge status={p.ok ? "ok" : p.required ? "missing" : "absent"} /> },
                { head: "Detail", wide: true, cell: (p) => <span class="dim">{plain(p.detail)}</span> },
              ]}
            />
          )}
        </Shown>
      </Card>
    </Page>
  );
}
