import { useState } from "preact/hooks";
import { boxPath, call } from "../api";
import { plain } from "../format";
import type { TabProps } from "../pages/box";
import { attempt, useLoad } from "../store";
import { Button, Card, copyText, Empty, Shown, Table } from "../ui";

interface Port {
  port: number;
  address: string;
  pid: number | null;
  process: string | null;
  url: string;
}

/* On our own origin the server's page is shown without any right (the answer says so, too): it is a stranger's. */
function frameOf(box: string, port: number, url: string): string {
  const u = new URL(url, location.href);
  const ticket = u.searchParams.get("paddock_ticket");
  return ticket ? `/v1/previews/${encodeURIComponent(box)}/${port}/${encodeURIComponent(ticket)}/` : u.pathname;
}

export default function Ports({ box }: TabProps) {
  const list = useLoad<{ public: boolean; ports: Port[] }>(`${boxPath(box.id)}/ports`, 2500);
  const [shown, setShown] = useState<{ port: number; src: string } | null>(null);
  const link = (port: number) => attempt(() => call<{ url: string }>("POST", `${boxPath(box.id)}/previews`, { port, expires_seconds: 3600 }));
  return (
    <>
      <Card flush>
        <Shown of={list}>
          {(d) =>
            d.ports.length === 0 ? (
              <Empty icon="link" title="Nothing listens">
                Start a server in the sandbox, for example <code>python3 -m http.server 8000</code>. Its port appears here.
              </Empty>
            ) : (
              <Table
                name="Ports"
                id={(p) => `${p.address}:${p.port}`}
                rows={d.ports}
                columns={[
                  { head: "Port", num: true, cell: (p) => p.port },
                  { head: "Address", mono: true, cell: (p) => plain(p.address) },
                  { head: "Process", wide: true, cell: (p) => plain(p.process ?? "–") },
                  {
                    head: "",
                    cell: (p) => (
                      <div class="actions">
                        <Button small onClick={async () => { const l = await link(p.port); if (l) setShown({ port: p.port, src: frameOf(box.id, p.port, l.url) }); }}>Preview</Button>
                        <Button small kind="ghost" icon="link" label={`Open port ${p.port} in a new tab`} onClick={async () => { const l = await link(p.port); if (l) window.open(l.url, "_blank", "noopener,noreferrer"); }} />
                        <Button small kind="ghost" icon="copy" label={`Copy a link to port ${p.port}, valid for an hour`} onClick={async () => { const l = await link(p.port); if (l) await copyText(l.url); }} />
                      </div>
                    ),
                  },
                ]}
              />
            )
          }
        </Shown>
      </Card>
      {shown && (
        <Card title={`Preview of port ${shown.port}`} actions={<Button small kind="ghost" icon="x" label="Close the preview" onClick={() => setShown(null)} />} flush>
          <iframe class="preview" key={shown.src} src={shown.src} sandbox="allow-scripts allow-forms" title={`Preview of port ${shown.port}`} referrerpolicy="no-referrer" />
        </Card>
      )}
    </>
  );
}
