import { count, plain, usd } from "../format";
import { go, href, useRoute } from "../route";
import { boxes, useLoad } from "../store";
import { Card, Empty, Page, Shown, Table } from "../ui";

interface Use {
  day?: string;
  tenant?: string;
  box?: string;
  provider?: string;
  model?: string;
  requests: number;
  input_tokens: number;
  output_tokens: number;
  cache_read_tokens: number;
  cost_usd: number;
}

const BY: [string, string][] = [["model", "Model"], ["box", "Sandbox"], ["tenant", "Tenant"], ["day", "Day"]];

export default function Usage() {
  const { query } = useRoute();
  const by = query.get("by") ?? "model";
  const use = useLoad<{ usage: Use[]; total: Use }>(`/v1/usage?by=${encodeURIComponent(by === "model" ? "provider,model" : by)}`, 5000);
  const known = new Map(boxes.use().list.map((b) => [b.id, b.name]));
  const title = (u: Use) => {
    if (by === "box") return u.box && known.has(u.box) ? <a href={href("sandboxes", u.box)}>{plain(known.get(u.box) ?? u.box)}</a> : <span class="mono">{plain(u.box)}</span>;
    return plain(by === "model" ? `${u.provider ?? ""} ${u.model ?? ""}` : by === "tenant" ? u.tenant : u.day);
  };
  return (
    <Page title="AI usage" sub="Calls to models that sandboxes made through the gateway.">
      <div class="toolbar">
        <div class="segments" role="group" aria-label="Group by">
          {BY.map(([k, label]) => <button type="button" key={k} aria-pressed={by === k} onClick={() => go(`#/usage?by=${k}`, true)}>{label}</button>)}
        </div>
      </div>
      <Shown of={use}>
        {(d) => (
          <>
            <div class="stats">
              <div class="stat"><div class="stat-title">Cost</div><div class="stat-value">{usd(d.total.cost_usd)}</div><div class="stat-sub">in all</div></div>
              <div class="stat"><div class="stat-title">Calls</div><div class="stat-value">{count(d.total.requests)}</div><div class="stat-sub">requests</div></div>
              <div class="stat"><div class="stat-title">Input</div><div class="stat-value">{count(d.total.input_tokens)}</div><div class="stat-sub">tokens</div></div>
              <div class="stat"><div class="stat-title">Output</div><div class="stat-value">{count(d.total.output_tokens)}</div><div class="stat-sub">tokens</div></div>
            </div>
            <Card flush>
              {d.usage.length === 0 ? (
                <Empty icon="spark" title="No model was called">
                  Configure a provider in paddock.yaml and let sandboxes call it at <code>{location.origin}/api/openai</code> with their token. Keys of providers never enter a sandbox.
                </Empty>
              ) : (
                <Table
                  name="Usage"
                  id={(u) => JSON.stringify([u.day, u.tenant, u.box, u.provider, u.model])}
                  rows={d.usage.toSorted((a, b) => b.cost_usd - a.cost_usd)}
                  columns={[
                    { head: BY.find(([k]) => k === by)?.[1] ?? by, wide: true, cell: title },
                    { head: "Calls", num: true, cell: (u) => count(u.requests) },
                    { head: "Input", num: true, hide: true, cell: (u) => count(u.input_tokens) },
                    { head: "Cached", num: true, hide: true, cell: (u) => count(u.cache_read_tokens) },
                    { head: "Output", num: true, hide: true, cell: (u) => count(u.output_tokens) },
                    { head: "Cost", num: true, cell: (u) => usd(u.cost_usd) },
                  ]}
                />
              )}
            </Card>
          </>
        )}
      </Shown>
    </Page>
  );
}
