/* One request of an agent, with everything that a person needs to decide: facts first, the agent's own words last. */
import type { ComponentChildren } from "preact";
import { moment, plain } from "../format";
import { href } from "../route";
import { Ago, Copy, Facts } from "../ui";
import { isNative } from "./amounts";
import { Address, Amount, assetName, Banner, LimitBar, TokenNote, TxBadge, WINDOWS } from "./parts";
import { type Chain, type Risk, STATE_WORDS, type Tx, type TxCard } from "./types";

const LEVEL: Record<Risk["level"], [string, string]> = { danger: ["Danger", "danger"], warning: ["Warning", "warning"], note: ["Note", "note"] };
const ORDER = ["danger", "warning", "note"];

function Block({ title, children }: { title: string; children: ComponentChildren }) {
  return (
    <section class="ask-block">
      <h3>{title}</h3>
      {children}
    </section>
  );
}

function Deltas({ tx, card }: { tx: Tx; card: TxCard }) {
  const known = card.simulation.method === "trace" || card.simulation.method === "simulate_v1";
  if (!known) {
    if (!tx.effects.length) return null;
    return (
      <Block title="What it counts as">
        <ul class="deltas">
          {tx.effects.map((e, i) => (
            <li key={i}>
              <span class="amount minus">{e.approval ? "may be taken: " : "leaves: "}<Amount amount={e.amount} asset={e.asset} /></span> <TokenNote asset={e.asset} />
            </li>
          ))}
        </ul>
      </Block>
    );
  }
  return (
    <Block title="What changes in the wallet, by simulation">
      {card.simulation.deltas.length === 0 ? (
        <p class="dim">No asset enters or leaves the wallet, except the fee.</p>
      ) : (
        <ul class="deltas">
          {card.simulation.deltas.map((d, i) => (
            <li key={i}>
              <Amount amount={d.amount} asset={d.asset} sign /> <span class="dim">{d.amount.startsWith("-") ? "leaves the wallet" : "enters the wallet"}</span> <TokenNote asset={d.asset} />
            </li>
          ))}
        </ul>
      )}
    </Block>
  );
}

function Recipient({ card }: { card: TxCard }) {
  const r = card.recipient;
  if (!r) return null;
  return (
    <Block title={r.contract ? "Contract that is called" : "Recipient"}>
      <Address address={r.address} />
      <div class="chips">
        {r.first_time && <span class="chip warn">first time</span>}
        {r.first_time === false && <span class="chip">used before</span>}
        {typeof r.contract === "boolean" && <span class="chip">{r.contract ? "contract" : "account"}</span>}
        {r.note && <span class="chip good">{plain(r.note)}</span>}
      </div>
    </Block>
  );
}

function Allowance({ card }: { card: TxCard }) {
  const a = card.allowance;
  if (!a) return null;
  return (
    <Block title={`Spender, who may take ${assetName(a.asset)}`}>
      <Address address={a.spender} />
      <p>
        Allowance: {typeof a.before === "string" ? <><Amount amount={a.before} asset={a.asset} /> → </> : "from now on "}<strong>{a.unlimited ? `unlimited ${assetName(a.asset)}` : <Amount amount={a.after} asset={a.asset} />}</strong> <TokenNote asset={a.asset} />
      </p>
    </Block>
  );
}

function Risks({ title, risks }: { title: string; risks: Risk[] }) {
  if (!risks.length) return null;
  return (
    <Block title={title}>
      <ul class="risks">
        {risks.toSorted((a, b) => ORDER.indexOf(a.level) - ORDER.indexOf(b.level)).map((r, i) => (
          <li key={i} class={LEVEL[r.level]?.[1]}>
            <strong>{LEVEL[r.level]?.[0] ?? plain(r.level)}</strong> {plain(r.text)}
          </li>
        ))}
      </ul>
    </Block>
  );
}

/* Whom it reaches, where that is more than the recipient above. */
function Reached({ tx }: { tx: Tx }) {
  if (tx.effects.length < 2 && !tx.effects.some((e) => e.target)) return null;
  return (
    <Block title="Every address that it reaches">
      <ul class="reached">
        {tx.effects.map((e, i) => (
          <li key={i}>
            <Address address={e.to ?? "–"} />
            <span class="dim">{e.approval ? "may take " : e.target && e.amount === "0" ? "is called or given control" : "gets "}{!(e.target && e.amount === "0") && <Amount amount={e.amount} asset={e.asset} />}</span>
            <span class="chips">
              {e.first_time && <span class="chip warn">first time</span>}
              {e.note && <span class="chip good">{plain(e.note)}</span>}
            </span>
          </li>
        ))}
      </ul>
    </Block>
  );
}

/* The bytes of a message as text; typed data as JSON with line breaks. */
function readable(tx: Tx, data: string): string {
  try {
    const bytes = Uint8Array.from(data.slice(2).match(/../g) ?? [], (b) => parseInt(b, 16));
    const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    if (bytes.some((b) => (b < 0x20 && ![9, 10, 13].includes(b)) || b === 0x7f)) throw new TypeError("control characters");
    return tx.kind === "typed_data" ? JSON.stringify(JSON.parse(text), null, 2) : text;
  } catch {
    return `These bytes are no text:\n${data}`;
  }
}

const NOT_SIMULATED: Record<string, string> = {
  none: "Not simulated: this node has no eth_simulateV1 and no debug_traceCall. What you see is what the call says, not what the chain would do.",
  estimate: "Not simulated: this node has no eth_simulateV1 and no debug_traceCall. It says that the call would not fail, and not what would move: what you see is what the call says.",
};

export function Sentence({ tx }: { tx: Tx }) {
  return <p class="sentence">{plain(tx.card?.sentence || tx.summary || STATE_WORDS[tx.state])}</p>;
}

export function explorerLink(chain: Chain | undefined, hash: string | null): string | null {
  const root = chain?.explorer;
  return root && hash && /^https?:\/\/[^\s"'<>]+$/.test(root) ? `${root.replace(/\/+$/, "")}/tx/${hash}` : null;
}

function Fate({ tx, card, chain }: { tx: Tx; card: TxCard; chain?: Chain }) {
  const link = explorerLink(chain, tx.hash);
  const far = card.confirmations;
  return (
    <Block title="What became of it">
      <Facts
        items={[
          ["State", <><TxBadge state={tx.state} /> <span class="dim">{STATE_WORDS[tx.state]}</span></>],
          ["Decided", tx.decided_at ? <>{tx.automatic ? "without a person, by a rule of the owner" : plain(tx.decided_by ?? "–")} <Ago at={tx.decided_at} /></> : "–"],
          ["Confirmations", far === null ? "–" : `${far}${card.confirmations_needed ? ` of ${card.confirmations_needed}` : ""}${card.block !== null ? `, block ${card.block}` : ""}`],
          ["Nonce", tx.nonce ?? "–"],
          ...(link ? [["Explorer", <a class="explorer" href={link} target="_blank" rel="noopener noreferrer">Open the transaction</a>] as [string, ComponentChildren]] : []),
        ]}
      />
      {tx.error && <p class="bad">{plain(tx.error)}</p>}
      {card.attempts.length > 0 && (
        <ul class="attempts">
          {card.attempts.map((a) => (
            <li key={a.generation}>
              <span class="chip">attempt {a.generation}</span> <span class="mono hash">{plain(a.hash)}</span> <Copy text={a.hash} label={`Copy the hash of attempt ${a.generation}`} />
              <span class="dim">{a.signed_at ? `signed ${moment(a.signed_at)}` : ""}</span>
            </li>
          ))}
        </ul>
      )}
      {card.signature && <p class="mono hash">{plain(card.signature)} <Copy text={card.signature} label="Copy the signature" /></p>}
    </Block>
  );
}

export default function Card({ tx, chain }: { tx: Tx; chain?: Chain }) {
  const card = tx.card!;
  const sim = card.simulation;
  const ended = tx.state !== "pending" && tx.state !== "awaiting_wallet";
  return (
    <div class="ask">
      <Sentence tx={tx} />
      <Risks title="Look at this first" risks={card.risks.filter((r) => r.level === "danger")} />
      <p class="dim ask-line">
        Agent <a href={href("agents", tx.agent)}>{plain(tx.agent_name ?? tx.agent)}</a> · {plain(tx.chain_name ?? tx.chain)} <span class="mono">{plain(tx.chain)}</span> · asked <Ago at={tx.created_at} />
      </p>
      {tx.kind === "transaction" && NOT_SIMULATED[sim.method] && <Banner kind="grey">{NOT_SIMULATED[sim.method]}</Banner>}
      {card.note && <Banner kind="amber">{plain(card.note)}</Banner>}
      {tx.waits_for_nonce !== null && <Banner kind="amber">It waits for the transaction with nonce {tx.waits_for_nonce} of its account, which is not known here. If nobody sends that, the owner gives this one up: <code>sudo paddock wallet abandon {plain(tx.id)}</code></Banner>}
      {card.stuck && <Banner kind="amber">It was sent long ago and is in no block yet.</Banner>}
      {card.deviation && <Banner kind="red">It did something else than the simulation showed: {plain(card.deviation)}</Banner>}
      {ended && <Fate tx={tx} card={card} chain={chain} />}
      {tx.kind === "transaction" && <Deltas tx={tx} card={card} />}
      {tx.kind !== "transaction" && (
        <Block title={tx.kind === "message" ? "The text to be signed" : "The data to be signed"}>
          <pre class="log said" tabIndex={0} aria-label="What would be signed">{plain(readable(tx, card.data))}</pre>
        </Block>
      )}
      <Recipient card={card} />
      <Reached tx={tx} />
      <Allowance card={card} />
      {card.limits.length > 0 && (
        <Block title="Limits, before and with this request">
          <div class="limits">
            {card.limits.map((l, i) => (
              <LimitBar key={i} label={`${l.scope.startsWith("wallet") ? "Wallet" : "Agent"}${l.fee ? ", fees" : ""}, ${WINDOWS[l.window] ?? l.window}${isNative(l.asset.address) ? "" : `, ${assetName(l.asset)}`}`} before={l.before} after={l.after} limit={l.limit} asset={l.asset} />
            ))}
          </div>
        </Block>
      )}
      {card.fee && (
        <Block title="Fee at worst">
          <p><Amount amount={card.fee.worst_case} asset={card.fee.asset} /> <span class="dim">gas limit {card.fee.gas.toLocaleString("en-US")}</span></p>
        </Block>
      )}
      <Risks title="Risks" risks={card.risks.filter((r) => r.level !== "danger")} />
      <div class="folds">
        <details open={card.call.tree.length > 0 && card.call.class !== "native"}>
          <summary>Decoded call</summary>
          <pre class="log" tabIndex={0} aria-label="Decoded call">{card.call.tree.map(plain).join("\n") || "There is nothing to decode: no call data."}</pre>
        </details>
        {sim.moves.length > 0 && (
          <details>
            <summary>Moves in the simulation{sim.block !== null ? ` at block ${sim.block}` : ""}</summary>
            <ul class="moves">
              {sim.moves.map((m, i) => (
                <li key={i}><Amount amount={m.amount} asset={m.asset} /> {m.approval ? "may be taken from" : "from"} <span class="mono">{plain(m.from)}</span> {m.approval ? "by" : "to"} <span class="mono">{plain(m.to)}</span></li>
              ))}
            </ul>
          </details>
        )}
        <details>
          <summary>Checks of the policy</summary>
          <ol class="trace">
            {card.trace.map((c, i) => <li key={i} class={c.passed ? "" : "bad"}>{c.passed ? "passed" : "refused"}: {plain(c.text)} <span class="mono dim">{plain(c.name)}</span></li>)}
          </ol>
        </details>
        <details>
          <summary>Raw data</summary>
          <Facts items={[["Value", <span class="mono">{plain(tx.value)} wei</span>], ["To", <span class="mono">{plain(tx.to ?? "none: it creates a contract")}</span>], ["From", <span class="mono">{plain(tx.from ?? "–")}</span>], ["Digest", <span class="mono">{plain(tx.digest)}</span>]]} />
          <pre class="log raw" tabIndex={0} aria-label="Raw data">{plain(card.data)}</pre>
        </details>
      </div>
      {tx.reason && (
        <Block title="What the agent says about it">
          <blockquote class="reason"><bdi>{plain(tx.reason)}</bdi></blockquote>
          <p class="dim">These are the agent’s own words. Nobody has checked them.</p>
        </Block>
      )}
    </div>
  );
}
