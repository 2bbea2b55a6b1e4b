/* The second confirmation, in a wallet of this browser: it gets exactly what was approved, and we report its answer. */
import { useEffect, useState } from "preact/hooks";
import { plain } from "../format";
import { useLoad, who } from "../store";
import { Button, Copy } from "../ui";
import { type Injected, sendApproved, useWallets, WalletError } from "./injected";
import { Banner } from "./parts";
import { type Chain, type Session, type Tx, type WalletAnswer, walletAnswer } from "./types";

/* So that two tabs do not ask the wallet for the same thing. */
const mark = (id: string) => `wallet-${id}`;

function WalletIcon({ wallet }: { wallet: Injected }) {
  return wallet.icon ? <img class="wallet-icon" src={wallet.icon} alt="" width={18} height={18} /> : null;
}

export function useSessions() {
  return useLoad<{ sessions: Session[] }>(who.value?.role === "admin" ? "/v1/wallets/sessions" : null, 5000);
}

export default function WalletStep({ tx, chain, reload }: { tx: Tx; chain?: Chain; reload: () => void }) {
  const wallets = useWallets();
  const sessions = useSessions();
  const [busy, setBusy] = useState("");
  const [error, setError] = useState("");
  const [declined, setDeclined] = useState(false);
  const [hash, setHash] = useState("");
  const [node, setNode] = useState("");
  const [needsNode, setNeedsNode] = useState(false);
  const [taken, setTaken] = useState(() => localStorage.getItem(mark(tx.id)) !== null);
  useEffect(() => {
    const on = () => setTaken(localStorage.getItem(mark(tx.id)) !== null);
    window.addEventListener("storage", on);
    return () => window.removeEventListener("storage", on);
  }, [tx.id]);
  const phone = sessions.data?.sessions.find((s) => s.accounts.some((a) => a.toLowerCase() === `${tx.chain}:${tx.from}`.toLowerCase()));

  const answerOf = (found: string): WalletAnswer => (tx.kind === "transaction" ? { hash: found } : { signature: found });
  const report = async (answer: WalletAnswer) => {
    try {
      await walletAnswer(tx.id, answer);
      localStorage.removeItem(mark(tx.id));
      setError("");
      reload();
    } catch (e) {
      setError(`The daemon could not be told: ${(e as Error).message}`);
    }
  };
  const send = async (w: Injected) => {
    setError("");
    setDeclined(false);
    setBusy(w.uuid);
    localStorage.setItem(mark(tx.id), w.name);
    try {
      const found = await sendApproved(
        w,
        { kind: tx.kind, chain: tx.chain, from: tx.from ?? "", to: tx.to, value: tx.value, data: tx.card?.data ?? "0x" },
        { id: tx.chain, name: chain?.name ?? tx.chain, native: chain?.symbol ? { symbol: chain.symbol } : undefined, explorer: chain?.explorer },
        async () => (setNeedsNode(true), node.trim() || null),
      );
      setHash(found);
      await report(answerOf(found));
    } catch (e) {
      localStorage.removeItem(mark(tx.id));
      setDeclined(e instanceof WalletError && e.code === 4001);
      setError((e as Error).message);
    }
    setBusy("");
  };

  return (
    <section class="wallet-step" aria-label="Confirm in the wallet">
      <h3>Confirm in the wallet</h3>
      <p>It is approved. The key of <span class="mono">{plain(tx.from)}</span> is in a wallet elsewhere, which asks you once more. It gets exactly what was approved.</p>
      {phone && <Banner kind="grey" icon="bell">The request was sent to {plain(phone.name ?? "the wallet")} by WalletConnect. Confirm it there.</Banner>}
      <div class="actions">
        {wallets.map((w) => (
          <Button key={w.uuid} busy={busy === w.uuid} disabled={busy !== "" || hash !== "" || (taken && busy === "")} onClick={() => send(w)}>
            <WalletIcon wallet={w} /> {tx.kind === "transaction" ? "Send" : "Sign"} with {plain(w.name)}
          </Button>
        ))}
        {wallets.length === 0 && <span class="dim">No wallet has announced itself in this browser (EIP-6963).</span>}
      </div>
      {taken && busy === "" && !hash && (
        <p class="dim">
          Another tab has asked the wallet. <Button small kind="ghost" onClick={() => { localStorage.removeItem(mark(tx.id)); setTaken(false); }}>Ask again here</Button>
        </p>
      )}
      {needsNode && (
        <label class="field">
          <span>The wallet does not know the chain {plain(tx.chain)}. The URL of a node for it:</span>
          <input type="url" class="mono" value={node} placeholder="http://127.0.0.1:8545" onInput={(e) => setNode(e.currentTarget.value)} />
          <small>The wallet will ask whether to add the chain. Paddock does not give away the addresses of its own nodes. Then send again.</small>
        </label>
      )}
      {error && <p class="bad" role="alert">{plain(error)}</p>}
      {hash && error && (
        <p>
          The wallet answered <span class="mono hash">{hash}</span> <Copy text={hash} label="Copy the hash" /> <Button small onClick={() => report(answerOf(hash))}>Report it again</Button>
        </p>
      )}
      {declined && <Button small onClick={() => report({ rejected: true })}>Give it up: tell the agent that it was rejected</Button>}
    </section>
  );
}
