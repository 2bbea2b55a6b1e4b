/* Names of secrets; values go in and never come out. */
import { useState } from "preact/hooks";
import { call } from "./api";
import { plain } from "./format";
import { attempt, useLoad } from "./store";
import { Ago, Button, Card, Confirm, Empty, Field, Shown, Table } from "./ui";

interface Secret {
  name: string;
  version: number;
  updated_at: string;
}

export function SecretList({ path, title, hint }: { path: string; title: string; hint: string }) {
  const list = useLoad<{ secrets: Secret[] }>(path);
  const [name, setName] = useState("");
  const [value, setValue] = useState("");
  const save = async (e: Event) => {
    e.preventDefault();
    if ((await attempt(async () => (await call("PUT", `${path}/${encodeURIComponent(name.trim())}`, { value }), true), "Secret set")) === undefined) return;
    setName("");
    setValue("");
    list.reload();
  };
  return (
    <Card title={title} flush>
      <Shown of={list} rows={2}>
        {(d) =>
          d.secrets.length === 0 ? (
            <Empty icon="shield" title="No secrets">{hint}</Empty>
          ) : (
            <Table
              name={title}
              id={(s) => s.name}
              rows={d.secrets}
              columns={[
                { head: "Name", mono: true, wide: true, cell: (s) => plain(s.name) },
                { head: "Version", num: true, cell: (s) => s.version },
                { head: "Changed", num: true, cell: (s) => <Ago at={s.updated_at} /> },
                { head: "", cell: (s) => <Confirm small kind="ghost" icon="trash" label={`Delete ${plain(s.name)}`} title={`Delete ${plain(s.name)}?`} text="All its versions are removed. Sandboxes that were given it keep what they read." word="Delete" run={async () => { await call("DELETE", `${path}/${encodeURIComponent(s.name)}`); list.reload(); }} /> },
              ]}
            />
          )
        }
      </Shown>
      <form class="inline pad" onSubmit={save} autocomplete="off">
        <Field label="Name"><input class="mono" value={name} onInput={(e) => setName(e.currentTarget.value)} placeholder="GITHUB_TOKEN" /></Field>
        <Field label="Value"><input type="password" autocomplete="new-password" value={value} onInput={(e) => setValue(e.currentTarget.value)} /></Field>
        <Button type="submit" disabled={!name.trim() || !value}>Set</Button>
      </form>
    </Card>
  );
}
