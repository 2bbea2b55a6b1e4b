/* The first start: three things to copy, and a sandbox to play with. */
import { useState } from "preact/hooks";
import { createBox } from "../actions";
import { Button, Card, Page, Snippet } from "../ui";

function snippets(url: string): { id: string; title: string; text: string }[] {
  return [
    {
      id: "cli",
      title: "Command line",
      text: `export PADDOCK_URL=${url}
export PADDOCK_API_KEY=pdk_…
paddock run -- python3 -c 'print(6*7)'`,
    },
    {
      id: "curl",
      title: "HTTP",
      text: `export PADDOCK_URL=${url}
export PADDOCK_API_KEY=pdk_…
curl -s "$PADDOCK_URL/v1/sandboxes" -d '{"name":"hello"}' \\
  -H "Authorization: Bearer $PADDOCK_API_KEY" -H 'Content-Type: application/json'
curl -s "$PADDOCK_URL/v1/sandboxes/hello/exec" -d '{"command":"uname -a"}' \\
  -H "Authorization: Bearer $PADDOCK_API_KEY" -H 'Content-Type: application/json'`,
    },
    {
      id: "mcp",
      title: "Agent (MCP)",
      text: `{
  "mcpServers": {
    "paddock": {
      "url": "${url}/mcp",
      "headers": { "Authorization": "Bearer pdk_…" }
    }
  }
}`,
    },
  ];
}

export function GetStarted() {
  const list = snippets(location.origin);
  const [busy, setBusy] = useState(false);
  return (
    <div class="start">
      <Card>
        <div class="hero">
          <div>
            <h2>Try a sandbox</h2>
            <p>An isolated Linux system with a terminal, files and code cells. It starts in milliseconds and is deleted after an hour.</p>
          </div>
          <Button kind="primary" icon="play" busy={busy} onClick={async () => { setBusy(true); await createBox({ ttl_seconds: 3600, metadata: { from: "dashboard" } }); setBusy(false); }}>
            Open a sandbox
          </Button>
        </div>
      </Card>
      <h2 class="section">Use it from your code</h2>
      <div class="snippets">
        {list.map((s) => (
          <Card key={s.id} title={s.title}>
            <Snippet name={s.title} text={s.text} />
          </Card>
        ))}
      </div>
      <p class="sub">
        Replace <code>pdk_…</code> with a key from <a href="#/tenants">Tenants &amp; keys</a>. The API is described at <a href="/openapi.json">openapi.json</a>.
      </p>
    </div>
  );
}

export default function Start() {
  return (
    <Page title="Get started" sub={`This installation is at ${location.origin}`}>
      <GetStarted />
    </Page>
  );
}
