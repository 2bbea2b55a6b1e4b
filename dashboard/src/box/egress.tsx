/* What the sandbox may reach, what it tried to reach, and the way to allow it. */
import { useState } from "preact/hooks";
import { boxPath, call } from "../api";
import { clock, count, plain } from "../format";
import type { TabProps } from "../pages/box";
import { attempt, useLoad } from "../store";
import { Button, Card, Empty, Shown, StatusBadge, Table } from "../ui";

interface Verdict {
  id: number;
  at: string;
  count: number;
  verdict: "allow" | "deny";
  reason: string;
  rule: string | null;
  protocol: string | null;
  host: string | null;
  address: string | null;
  port: number;
  method: string | null;
  path: string | null;
  would_allow: string | null;
}
interface Policy {
  source: string;
  policy: { default: string; rules: { action: string; set?: string; host?: string; cidr?: string; protocol?: string; ports?: unknown[] }[] };
}

const SOURCES: Record<string, string> = { none: "No policy: nothing can be reached.", sandbox: "This sandbox has a policy of its own.", tenant: "The tenant’s policy applies.", image: "The image’s policy applies.", config: "The installation’s policy applies." };

export default function Egress({ box }: TabProps) {
  const policy = useLoad<Policy>(`${boxPath(box.id)}/egress`);
  const log = useLoad<{ verdicts: Verdict[] }>(`${boxPath(box.id)}/egress/log?limit=256`, 2000);
  const [host, setHost] = useState("");
  const [busy, setBusy] = useState("");

  const allow = async (target: string) => {
    setBusy(target);
    const ok = await attempt(async () => (await call("POST", `${boxPath(box.id)}/egress/rules`, { action: "allow", targets: [target] }), true), `${plain(target)} can be reached now`);
    setBusy("");
    policy.reload();
    return ok;
  };
  const allowed = new Set(policy.data?.policy.rules.filter((r) => r.action === "allow").map((r) => r.host ?? r.set ?? r.cidr));
  return (
    <>
      <Card title="Policy">
        <Shown of={policy} rows={2}>
          {(p) => (
            <>
              <p class="dim">{SOURCES[p.source] ?? `From: ${plain(p.source)}`} What no rule names is {p.policy.default === "allow" ? "allowed" : "denied"}.</p>
              <div class="chips">
                {p.policy.rules.map((r, i) => (
                  <span key={i} class={r.action === "allow" ? "chip good" : "chip bad"}>{r.action} {plain(r.host ?? r.set ?? r.cidr ?? "everything")}{r.ports?.length ? `:${r.ports.join(",")}` : ""}</span>
                ))}
              </div>
            </>
          )}
        </Shown>
        <form class="inline" onSubmit={async (e) => { e.preventDefault(); if (await allow(host.trim())) setHost(""); }}>
          <input class="mono" aria-label="Host to allow" placeholder="api.example.com, *.example.com, or the name of a set" value={host} onInput={(e) => setHost(e.currentTarget.value)} />
          <Button type="submit" disabled={!host.trim()} busy={busy === host.trim() && busy !== ""}>Allow</Button>
        </form>
      </Card>
      <Card title="Log" flush>
        <Shown of={log}>
          {(d) =>
            d.verdicts.length === 0 ? (
              <Empty icon="shield" title="Nothing was tried">Every connection that the sandbox opens or is denied appears here.</Empty>
            ) : (
              <Table
                name="Egress log"
                id={(v) => v.id}
                rows={d.verdicts.toSorted((a, b) => b.id - a.id)}
                columns={[
                  { head: "Time", hide: true, cell: (v) => <time class="mono" dateTime={v.at}>{clock(v.at)}</time> },
                  { head: "Verdict", cell: (v) => <StatusBadge status={v.verdict} /> },
                  { head: "Host", wide: true, cell: (v) => <span class="mono">{plain(v.host ?? v.address ?? "–")}<span class="dim">:{v.port}</span></span> },
                  { head: "Protocol", hide: true, cell: (v) => plain(v.protocol ?? "–") },
                  { head: "Reason", hide: true, cell: (v) => plain(v.rule ?? v.reason.replaceAll("_", " ")) },
                  { head: "Times", num: true, hide: true, cell: (v) => count(v.count) },
                  { head: "", cell: (v) => v.verdict === "deny" && v.would_allow ? (allowed.has(v.would_allow) ? <span class="dim">allowed now</span> : <Button small busy={busy === v.would_allow} label={`Allow ${plain(v.would_allow)}`} onClick={() => allow(v.would_allow!)}>Allow</Button>) : null },
                ]}
              />
            )
          }
        </Shown>
      </Card>
    </>
  );
}
