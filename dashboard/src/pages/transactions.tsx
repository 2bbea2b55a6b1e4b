/* Everything that agents asked for, and what became of it. */
import { useEffect } from "preact/hooks";
import { get, send } from "../api";
import { When } from "../eventlist";
import { plain } from "../format";
import type { Agent } from "../money/agents";
import { isNative, short } from "../money/amounts";
import Card, { explorerLink } from "../money/card";
import { namedTx } from "../money/native";
import { Amount, assetName, Banner, TxBadge } from "../money/parts";
import { changed } from "../money/queue";
import { cancel, type Chain, revoke, speedUp, STATE_WORDS, STATES, type Tx, txPath, type TxPage, type TxState } from "../money/types";
import { go, href, useRoute } from "../route";
import { toast, useLoad } from "../store";
import { Button, Card as Box, Confirm, Empty, Failure, Icon, Page, Shown, Skeleton, Table } from "../ui";

const PAGE = 50;
const EARLY: TxState[] = ["pending", "approved"];
const SENT: TxState[] = ["signed", "broadcast", "dropped"];
const ALLOWS: TxState[] = ["signed", "broadcast", "included", "confirmed", "final"];

/* It was signed and lets somebody take a token, as far as is known here: the daemon asks the chain. */
const allows = (t: Tx) => t.kind === "transaction" && ALLOWS.includes(t.state) && t.effects.some((e) => e.approval && e.asset.address === t.to && e.amount !== "0");

function Details({ id }: { id: string }) {
  const tx = useLoad<Tx>(txPath(id), 3000);
  const chains = useLoad<{ chains: Chain[] }>("/v1/chains");
  const event = changed.use();
  useEffect(() => {
    if (event.n > 0 && (event.id === id || event.id === "")) tx.reload();
  }, [event]);
  const t = tx.data && namedTx(tx.data, chains.data?.chains);
  const act = (word: string, f: (id: string) => Promise<unknown>) => async () => {
    await f(id);
    toast(word);
    tx.reload();
  };
  const takeBack = async () => {
    const made = await revoke(id);
    toast("A new request was made. It is to be approved.");
    go(href(made.state === "pending" ? "approvals" : "transactions", made.id));
  };
  return (
    <div class="page">
      <header class="page-head">
        <div>
          <nav class="crumbs" aria-label="Breadcrumb"><a href="#/transactions">Transactions</a><Icon name="chevron" size={12} /><span class="mono">{plain(id)}</span></nav>
          <h1>Transaction {t && <TxBadge state={t.state} />}</h1>
        </div>
        {t && (
          <div class="actions">
            {(t.state === "pending" || t.state === "awaiting_wallet") && <a class="btn primary" href={href("approvals", t.id)}>Decide</a>}
            {t.kind === "transaction" && SENT.includes(t.state) && (
              <>
                <Confirm title="Send it again with higher fees?" text="The same transaction with the same nonce and fees at least 12.5 % higher. Only one of the two can be mined." word="Speed up" run={act("Sent with higher fees", speedUp)}>Speed up</Confirm>
                <Confirm kind="danger" title="Replace it by nothing?" text="A transaction with the same nonce that sends nothing is sent with higher fees. Whichever is mined first wins; its fee is spent." word="Replace it" run={act("A replacement was sent", cancel)}>Cancel it</Confirm>
              </>
            )}
            {allows(t) && <Confirm title="Revoke this allowance?" text="The agent gets a new request that sets the allowance to nothing. It has a fee, and it is to be approved like any other." word="Revoke it" run={takeBack}>Revoke this allowance</Confirm>}
            {EARLY.includes(t.state) && <Confirm kind="danger" title="Withdraw this request?" text="The agent is told that it was rejected." word="Withdraw" run={act("Withdrawn", cancel)}>Withdraw</Confirm>}
          </div>
        )}
      </header>
      {t ? <article class="card ask-card" aria-label="Transaction"><Card tx={t} chain={chains.data?.chains.find((c) => c.id === t.chain)} /></article> : tx.error ? <Failure error={tx.error} retry={tx.reload} /> : <Skeleton rows={8} />}
    </div>
  );
}

/* The whole history as a file, page by page: what is shown is not all there is. */
async function exportJson(query: string) {
  const all: Tx[] = [];
  for (let after = ""; ; ) {
    const page: TxPage = await get<TxPage>(`/v1/transactions?limit=500${query}${after ? `&after=${encodeURIComponent(after)}` : ""}`);
    all.push(...page.transactions);
    if (!page.next || all.length >= 10000) break;
    after = page.next;
  }
  save("transactions.json", "application/json", JSON.stringify({ transactions: all }, null, 2));
}

async function exportCsv(query: string) {
  save("transactions.csv", "text/csv", await (await send(`/v1/transactions?format=csv${query}`)).text());
}

function save(name: string, type: string, text: string) {
  const a = document.createElement("a");
  a.href = URL.createObjectURL(new Blob([text], { type }));
  a.download = name;
  a.click();
  setTimeout(() => URL.revokeObjectURL(a.href), 10000);
}

function List() {
  const { query } = useRoute();
  const word = (k: string) => query.get(k) ?? "";
  const set = (k: string, v: string) => {
    const q = new URLSearchParams(query);
    v ? q.set(k, v) : q.delete(k);
    if (k !== "after") q.delete("after");
    go(`#/transactions${q.size ? `?${q}` : ""}`, k !== "after");
  };
  const filter = ["agent", "chain", "state", "asset"].filter(word).map((k) => `&${k}=${encodeURIComponent(word(k))}`).join("");
  const list = useLoad<TxPage>(`/v1/transactions?limit=${PAGE}${filter}${word("after") ? `&after=${encodeURIComponent(word("after"))}` : ""}`, 10000);
  const agents = useLoad<{ agents: Agent[] }>("/v1/agents");
  const chains = useLoad<{ chains: Chain[] }>("/v1/chains");
  const event = changed.use();
  useEffect(() => {
    if (event.n > 0) list.reload();
  }, [event]);
  /* Tokens of the page, and the one that was chosen. */
  const tokens = new Map(word("asset") && word("asset") !== "native" ? [[word("asset"), ""]] : []);
  for (const e of list.data?.transactions.flatMap((t) => t.effects) ?? []) if (!isNative(e.asset.address)) tokens.set(e.asset.address, assetName(e.asset));
  const fail = (e: Error) => toast(e.message, true);
  return (
    <Page title="Transactions" sub="What agents asked for, and what became of it." actions={<><Button small icon="down" onClick={() => void exportCsv(filter).catch(fail)}>CSV</Button><Button small icon="down" onClick={() => void exportJson(filter).catch(fail)}>JSON</Button></>}>
      <div class="toolbar">
        <select aria-label="Agent" value={word("agent")} onChange={(e) => set("agent", e.currentTarget.value)}>
          <option value="">All agents</option>
          {agents.data?.agents.map((a) => <option key={a.id} value={a.id}>{plain(a.name)}</option>)}
        </select>
        <select aria-label="Chain" value={word("chain")} onChange={(e) => set("chain", e.currentTarget.value)}>
          <option value="">All chains</option>
          {chains.data?.chains.map((c) => <option key={c.id} value={c.id}>{plain(c.name ?? c.id)}</option>)}
        </select>
        <select aria-label="State" value={word("state")} onChange={(e) => set("state", e.currentTarget.value)}>
          <option value="">All states</option>
          {STATES.map((s) => <option key={s} value={s}>{s.replaceAll("_", " ")}</option>)}
        </select>
        <select aria-label="Asset" value={word("asset")} onChange={(e) => set("asset", e.currentTarget.value)}>
          <option value="">All assets</option>
          <option value="native">native assets</option>
          {[...tokens].map(([address, name]) => <option key={address} value={address}>{name} {short(address)}</option>)}
        </select>
      </div>
      {list.missing && <Banner kind="grey">{plain(list.error)}</Banner>}
      <Box flush>
        <Shown of={list.missing ? { ...list, data: { transactions: [], next: null } } : list} rows={8}>
          {(d) =>
            d.transactions.length === 0 ? (
              <Empty icon="swap" title={filter ? "No transaction matches" : "No agent has asked for anything"}>{filter ? "Try other filters." : "When an agent wants to send or sign something, it appears here."}</Empty>
            ) : (
              <Table
                name="Transactions"
                id={(t) => t.id}
                rows={d.transactions.map((t) => namedTx(t, chains.data?.chains))}
                columns={[
                  { head: "Time", cell: (t) => <When at={t.created_at} /> },
                  { head: "What", wide: true, cell: (t) => <a href={href("transactions", t.id)}>{plain(t.summary || t.error || STATE_WORDS[t.state])}</a> },
                  { head: "Agent", hide: true, cell: (t) => plain(t.agent_name ?? t.agent) },
                  { head: "Amount", num: true, hide: true, cell: (t) => t.effects.slice(0, 2).map((e, i) => <div key={i}><Amount amount={e.amount} asset={e.asset} /></div>) },
                  { head: "Chain", hide: true, cell: (t) => plain(t.chain_name ?? t.chain) },
                  { head: "State", cell: (t) => <TxBadge state={t.state} /> },
                  { head: "", hide: true, cell: (t) => { const link = explorerLink(chains.data?.chains.find((c) => c.id === t.chain), t.hash); return link ? <a href={link} target="_blank" rel="noopener noreferrer" aria-label="Open in the explorer"><Icon name="link" /></a> : null; } },
                ]}
              />
            )
          }
        </Shown>
      </Box>
      <div class="pager">
        {word("after") && <Button small onClick={() => set("after", "")}>Newest</Button>}
        {list.data?.next && <Button small onClick={() => set("after", list.data!.next!)}>Older</Button>}
      </div>
    </Page>
  );
}

export default function Transactions({ id }: { id: string }) {
  return id ? <Details key={id} id={id} /> : <List />;
}
