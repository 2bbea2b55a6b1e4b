/* What waits for a person, one at a time. The card on the screen changes only when the person moves on. */
import { useEffect, useRef, useState } from "preact/hooks";
import { ApiError } from "../api";
import { plain } from "../format";
import Card from "../money/card";
import { namedTx } from "../money/native";
import { Banner, Countdown } from "../money/parts";
import { changed, loadQueue, notices, queue, wantNotices } from "../money/queue";
import { approve, type Chain, pauseAgent, pauseAll, reject, type Signer, STATE_WORDS, type Tx, txPath } from "../money/types";
import WalletStep from "../money/walletstep";
import { go, href } from "../route";
import { toast, useLoad, who } from "../store";
import { Button, Confirm, Empty, Failure, Page, Skeleton } from "../ui";

/* A click that was meant for the card before this one must not approve this one. */
const ARM_MS = 600;

function decidedBy(tx: Tx): string {
  const by = plain(tx.decided_by ?? "");
  const mine = who.value?.key && tx.decided_by?.includes(who.value.key);
  return `${STATE_WORDS[tx.state]}${by ? ` Decided by ${by}${mine ? " (your key)" : ""}.` : ""}`;
}

function Decide({ tx, reload }: { tx: Tx; reload: () => void }) {
  const [typed, setTyped] = useState("");
  const [busy, setBusy] = useState("");
  const [error, setError] = useState("");
  const [armed, setArmed] = useState(false);
  const [mine, setMine] = useState(false);
  const no = useRef<HTMLDivElement>(null);
  const confirm = tx.card?.confirm ?? null;
  const dangerous = confirm !== null;
  useEffect(() => {
    no.current?.querySelector<HTMLButtonElement>("button.reject-one")?.focus({ preventScroll: true });
    const t = setTimeout(() => setArmed(true), ARM_MS);
    return () => clearTimeout(t);
  }, []);
  const run = async (what: string, f: () => Promise<unknown>, said: string) => {
    setBusy(what);
    setError("");
    try {
      await f();
      toast(said);
    } catch (e) {
      setError(e instanceof ApiError && e.status === 403 ? `It was not approved: ${e.message}` : (e as Error).message);
    }
    setBusy("");
    reload();
    void loadQueue();
  };
  const right = !dangerous || typed.trim().toLowerCase() === confirm.toLowerCase();
  const { needed, have } = tx.card!.approvers;
  return (
    <div class="decide" ref={no}>
      {dangerous && (
        <label class="field danger">
          <span>This can give away more than it shows. To approve it: {plain(tx.card!.confirm_hint ?? "")}</span>
          <input class="mono" maxLength={8} autocomplete="off" spellcheck={false} value={typed} onInput={(e) => setTyped(e.currentTarget.value)} />
        </label>
      )}
      {needed > 1 && <p class="dim">{have} of {needed} approvals are there.{mine && " Yours is one of them: the next one must be somebody else’s, with another key."}</p>}
      {error && <p class="bad" role="alert">{plain(error)}</p>}
      <div class="actions">
        <button type="button" class="btn plain reject-one" disabled={busy !== ""} onClick={() => run("reject", () => reject(tx.id), "Rejected")}>Reject</button>
        <Button kind={dangerous ? "danger" : "primary"} busy={busy === "approve"} disabled={!right || !armed || busy !== ""} onClick={() => run("approve", () => approve(tx).then(() => setMine(true)), "Approved")}>Approve</Button>
        <span class="grow" />
        <Confirm small kind="ghost" title={`Pause ${plain(tx.agent_name ?? tx.agent)}?`} text="It may not spend anything until the owner ends the pause on the machine itself. Its program goes on." word="Pause the agent" run={async () => { await pauseAgent(tx.agent); toast("The agent is paused"); }}>
          Pause this agent
        </Confirm>
      </div>
    </div>
  );
}

function One({ id, next }: { id: string; next: Tx | undefined }) {
  const tx = useLoad<Tx>(txPath(id));
  const chains = useLoad<{ chains: Chain[] }>("/v1/chains");
  const event = changed.use();
  const after = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (event.n > 0 && (event.id === id || event.id === "")) tx.reload();
  }, [event]);
  const expires = tx.data?.state === "pending" ? tx.data.expires_at : null;
  useEffect(() => {
    if (!expires) return;
    const t = setTimeout(tx.reload, Math.max(0, Date.parse(expires) - Date.now()) + 1500);
    return () => clearTimeout(t);
  }, [expires]);
  const over = tx.data !== undefined && tx.data.state !== "pending" && tx.data.state !== "awaiting_wallet";
  useEffect(() => {
    if (over) after.current?.querySelector<HTMLElement>("a,button")?.focus({ preventScroll: true });
  }, [over]);

  if (!tx.data) return tx.error ? <Failure error={tx.error} retry={tx.reload} /> : <Skeleton rows={8} />;
  const t = namedTx(tx.data, chains.data?.chains);
  const chain = chains.data?.chains.find((c) => c.id === t.chain);
  return (
    <article class={over ? "card ask-card over" : "card ask-card"} aria-label="Request">
      {t.state === "pending" && t.expires_at && <Countdown until={t.expires_at} />}
      {over && (
        <div class="decided" ref={after} role="status">
          <span>{decidedBy(t)}</span>
          {next ? <a class="btn primary" href={href("approvals", next.id)}>Next request</a> : <a class="btn plain" href={href("transactions", t.id)}>Show it in the history</a>}
        </div>
      )}
      <Card tx={t} chain={chain} />
      {t.state === "pending" && <Decide key={t.id} tx={t} reload={tx.reload} />}
      {t.state === "awaiting_wallet" && <WalletStep tx={t} chain={chain} reload={tx.reload} />}
    </article>
  );
}

function Notices() {
  const on = notices.use();
  return (
    <Button small icon="bell" aria-pressed={on} onClick={async () => { const wrong = await wantNotices(!on); if (wrong) toast(wrong, true); }}>
      {on ? "Notifications are on" : "Notify me"}
    </Button>
  );
}

function Actions({ list, signer, reload }: { list: Tx[]; signer: Signer | undefined; reload: () => void }) {
  const open = list.filter((t) => t.state === "pending");
  const rejectAll = async () => {
    for (const t of open) await reject(t.id).catch((e: Error) => { if (!(e instanceof ApiError && e.status === 409)) throw e; }); // 409: somebody was faster
    toast(`${open.length} rejected`);
    void loadQueue();
  };
  return (
    <>
      <Notices />
      <Confirm small kind="danger" disabled={open.length === 0} title="Reject all requests?" text={`${open.length} requests are rejected. Agents may ask again.`} word="Reject all" run={rejectAll}>Reject all</Confirm>
      {who.value?.role === "admin" && (
        <Confirm small kind="danger" icon="stop" disabled={!signer?.available || signer.paused === true} title="Stop all signing?" text="Nothing is signed any more, for no agent, and what waits is cancelled. Only the owner ends this, on the machine itself: sudo paddock wallet resume." word="Stop all signing" run={async () => { await pauseAll(true); toast("All signing is stopped"); reload(); void loadQueue(); }}>
          Kill switch
        </Confirm>
      )}
    </>
  );
}

export function SignerState({ signer }: { signer: Signer | undefined }) {
  if (signer && !signer.available) return <Banner kind="grey">The signer does not run. Nothing can be signed. It starts when the owner adds a wallet: <code>sudo paddock wallet</code></Banner>;
  if (signer?.paused) return <Banner kind="red" icon="stop">All signing is stopped. The owner ends this on the machine itself: <code>sudo paddock wallet resume</code></Banner>;
  return null;
}

export default function Approvals({ id }: { id: string }) {
  const q = queue.use();
  const signer = useLoad<Signer>("/v1/signer", 5000);
  const first = q.list[0]?.id;
  useEffect(() => {
    if (!id && first) go(href("approvals", first), true);
  }, [id, first]);
  const at = q.list.findIndex((t) => t.id === id);
  const others = q.list.filter((t) => t.id !== id);
  const shown = id || first;
  return (
    <Page title="Approvals" sub="Agents ask, you decide. What you approve is what is signed." actions={<Actions list={q.list} signer={signer.data} reload={signer.reload} />}>
      <SignerState signer={signer.data} />
      {q.missing && signer.data?.available !== false && <Banner kind="grey">{plain(q.error)}</Banner>}
      {q.error && !q.missing && <Failure error={q.error} retry={() => void loadQueue()} />}
      {shown && (
        <nav class="queue" aria-label="Requests that wait">
          <strong>{at >= 0 ? `${at + 1} of ${q.list.length}` : `${q.list.length} waiting`}</strong>
          <div class="actions">
            <Button small disabled={at <= 0} onClick={() => go(href("approvals", q.list[at - 1]!.id))}>Previous</Button>
            <Button small disabled={at < 0 ? others.length === 0 : at >= q.list.length - 1} onClick={() => go(href("approvals", (at < 0 ? others[0]! : q.list[at + 1]!).id))}>Next</Button>
          </div>
        </nav>
      )}
      {shown ? (
        <One key={shown} id={shown} next={others[0]} />
      ) : q.ready ? (
        (!q.error || q.missing) && <div class="card"><Empty icon="stamp" title="Nothing waits for you" action={<a class="btn plain" href={href("transactions")}>Transactions</a>}>Requests of agents appear here at once, in all open tabs.</Empty></div>
      ) : (
        <Skeleton rows={6} />
      )}
    </Page>
  );
}
