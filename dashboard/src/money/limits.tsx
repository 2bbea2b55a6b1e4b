/* What an agent may spend and has spent; limits can be made stricter here, and looser by the owner on the machine alone. */
import { useState } from "preact/hooks";
import { call } from "../api";
import { plain, usd } from "../format";
import { toast, useLoad } from "../store";
import { Button, Card, Confirm, Dialog, Failure, Skeleton, Snippet } from "../ui";
import { type Agent, agentPath } from "./agents";
import { base, big, isNative, units } from "./amounts";
import { namedSpending, nativeName } from "./native";
import { amountText, assetName, Banner, LimitBar, TokenNote, WINDOWS } from "./parts";
import { type AgentLimits, type Chain, pauseAgent, type Spending, type SpendingLimit, type SpendingLine, type Wallet } from "./types";

const SPANS = ["day", "week", "month", "lifetime"] as const;

/* A word of a shell, quoted where it must be. */
const word = (s: string) => (/^[\w.:@/-]+$/.test(s) ? s : `'${s.replaceAll("'", `'\\''`)}'`);

export function SpendingBars({ lines }: { lines: SpendingLine[] }) {
  return (
    <div class="spending">
      {lines.map((l) => (
        <div key={`${l.chain} ${l.asset.address} ${l.fee}`} class="spending-line">
          <h3>{l.fee && "Fees, "}{assetName(l.asset)} <span class="mono dim">{plain(l.chain)}</span> <TokenNote asset={l.asset} /></h3>
          {l.per_transaction && <p class="dim">At most {amountText(l.per_transaction, l.asset)} {assetName(l.asset)} in one transaction.{big(l.reserved) > 0n && ` ${amountText(l.reserved, l.asset)} ${assetName(l.asset)} of it waits for a decision or a signature.`}</p>}
          {SPANS.filter((w) => l.limit[w] !== null).map((w) => <LimitBar key={w} label={`Spent, ${WINDOWS[w]}`} before={l.spent[w] ?? "0"} limit={l.limit[w]!} asset={l.asset} />)}
          {SPANS.every((w) => l.limit[w] === null) && <p class="dim">Spent in all: {amountText(l.spent.lifetime ?? "0", l.asset)} {assetName(l.asset)}. No window limits it.</p>}
        </div>
      ))}
    </div>
  );
}

function Stricter({ agent, rules, chains, onClose, done }: { agent: Agent; rules: AgentLimits; chains: Chain[] | undefined; onClose: () => void; done: () => void }) {
  const unit = (l: SpendingLimit) => {
    const asset = { address: l.asset, symbol: l.symbol ?? (isNative(l.asset) ? nativeName(chains, l.chain) : null), decimals: l.decimals ?? null };
    return { decimals: l.decimals ?? (isNative(l.asset) ? 18 : 0), name: assetName(asset) };
  };
  const fields = ["per_transaction", ...SPANS] as const;
  const shown = (l: SpendingLimit, f: (typeof fields)[number]) => (l[f] ? units(l[f], unit(l).decimals).replaceAll(",", "") : "");
  const [texts, setTexts] = useState(() => rules.limits.map((l) => Object.fromEntries(fields.map((f) => [f, shown(l, f)])) as Record<(typeof fields)[number], string>));
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState("");
  const save = async (e: globalThis.Event) => {
    e.preventDefault();
    const limits: SpendingLimit[] = [];
    for (const [i, old] of rules.limits.entries()) {
      const one: SpendingLimit = { ...old };
      if (isNative(old.asset)) delete one.decimals; // they are the chain's, and no part of a rule
      for (const f of fields) {
        const t = texts[i]![f].trim();
        const n = t === "" ? null : base(t, unit(old).decimals);
        if (t !== "" && n === null) return setError(`“${t}” is not an amount of ${unit(old).name}.`);
        if (old[f] && (n === null || big(n) > big(old[f]))) return setError("Limits can only be made smaller here. The owner loosens them on the machine itself.");
        if (n !== null) one[f] = n;
      }
      limits.push(one);
    }
    setBusy(true);
    setError("");
    try {
      await call<AgentLimits>("PUT", `${agentPath(agent.id)}/limits`, { limits });
      toast("The limits are stricter now");
      done();
      onClose();
    } catch (e) {
      setError((e as Error).message);
      setBusy(false);
    }
  };
  return (
    <Dialog wide title={`Stricter limits for ${plain(agent.name)}`} onClose={onClose}>
      <form onSubmit={save}>
        <p class="dim">Smaller amounts take effect at once. Larger ones are refused: only the owner allows more.</p>
        {rules.limits.map((l, i) => (
          <fieldset key={i} class="stricter">
            <legend>{unit(l).name} <span class="mono dim">{plain(l.chain)}</span></legend>
            <div class="row">
              {fields.map((f) => (
                <label key={f} class="field">
                  <span>{f === "per_transaction" ? "Per transaction" : f === "lifetime" ? "In all" : `Within ${WINDOWS[f]}`}</span>
                  <input class="mono" inputMode="decimal" value={texts[i]![f]} placeholder="no limit" onInput={(e) => setTexts(texts.map((t, j) => (j === i ? { ...t, [f]: e.currentTarget.value } : t)))} />
                </label>
              ))}
            </div>
          </fieldset>
        ))}
        <div class="field-error" role="alert">{plain(error)}</div>
        <footer><Button onClick={onClose}>Cancel</Button><Button kind="primary" type="submit" busy={busy}>Make stricter</Button></footer>
      </form>
    </Dialog>
  );
}

/* What has to be typed on the machine before the agent may spend anything. */
function NotAllowed({ agent }: { agent: Agent }) {
  const wallets = useLoad<{ wallets: Wallet[] }>("/v1/wallets");
  const first = wallets.data?.wallets[0];
  const chains = agent.manifest.permissions?.chains ?? [];
  if (chains.length === 0) return <p class="dim">Its manifest asks for no chain. It cannot spend anything.</p>;
  const name = first ? word(first.label || first.id) : "main";
  return (
    <>
      <p>The owner has not allowed this agent to spend anything. On the machine itself, this allows what the manifest asks for; it shows it first:</p>
      <Snippet name="the command" text={`${first ? "" : `sudo paddock wallet new ${name}\n`}sudo paddock agent allow ${word(agent.name)} --wallet ${name}`} />
    </>
  );
}

/* Of all its sandboxes: every start makes a new one. */
function AiCosts({ spent, error }: { spent: Spending | undefined; error: string }) {
  const cost = spent?.ai_cost_usd;
  return (
    <Card title="Costs of AI">
      {cost ? (
        <>
          <div class="stat-value">{usd(cost.lifetime)}</div>
          <p class="dim">Since it was installed. Today {usd(cost.day)}, within 7 days {usd(cost.week)}, within 30 days {usd(cost.month)}. The calls are on the page <a href="#/usage">AI usage</a>.</p>
        </>
      ) : (
        <p class="dim">{spent || error ? <>They are on the page <a href="#/usage">AI usage</a>, by sandbox, until the owner has added a wallet.</> : "…"}</p>
      )}
    </Card>
  );
}

export default function AgentMoney({ agent }: { agent: Agent }) {
  const rules = useLoad<AgentLimits>(`${agentPath(agent.id)}/limits`, 5000);
  const spent = useLoad<Spending>(`${agentPath(agent.id)}/spending`, 5000);
  const chains = useLoad<{ chains: Chain[] }>("/v1/chains").data?.chains;
  const [edit, setEdit] = useState(false);
  const none = rules.data ? rules.data.limits.length === 0 : rules.missing;
  const reload = () => (rules.reload(), spent.reload());
  const actions = rules.data && !none && (
    <>
      <Button small onClick={() => setEdit(true)}>Make stricter</Button>
      {!rules.data.paused && <Confirm small kind="danger" title={`Pause ${plain(agent.name)}?`} text="It may not spend anything until the owner ends the pause on the machine itself. Its program goes on." word="Pause spending" run={async () => { await pauseAgent(agent.id); toast("The agent is paused"); reload(); }}>Pause spending</Confirm>}
    </>
  );
  return (
    <div class="two">
      <Card title="Spending" actions={actions}>
        {rules.data?.paused && <Banner kind="amber" icon="pause">Spending is paused. The owner ends this on the machine itself: <code>sudo paddock agent allow {plain(word(agent.name))} --resume</code></Banner>}
        {none ? <NotAllowed agent={agent} /> : rules.data && spent.data ? <SpendingBars lines={namedSpending(spent.data, chains).lines} /> : rules.error || spent.error ? <Failure error={rules.error || spent.error} retry={reload} /> : <Skeleton rows={3} />}
      </Card>
      <AiCosts spent={spent.data} error={spent.error} />
      {edit && rules.data && <Stricter agent={agent} rules={rules.data} chains={chains} onClose={() => setEdit(false)} done={reload} />}
    </div>
  );
}
