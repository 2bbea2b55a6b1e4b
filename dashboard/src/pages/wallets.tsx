/* Wallets: whose keys the signer holds, and those that are elsewhere. */
import { useEffect, useState } from "preact/hooks";
import { call } from "../api";
import { left, moment, plain } from "../format";
import { accounts, type Injected, useWallets } from "../money/injected";
import { SpendingBars } from "../money/limits";
import { namedSpending } from "../money/native";
import { Address, Banner } from "../money/parts";
import type { Chain, Session, Signer, Spending, Wallet } from "../money/types";
import { useSessions } from "../money/walletstep";
import { attempt, useLoad, who } from "../store";
import { Ago, Button, Card, Confirm, Copy, Dialog, Empty, Field, Page, Shown, Snippet, StatusBadge, Table } from "../ui";
import { SignerState } from "./approvals";

const KINDS: Record<Wallet["kind"], string> = {
  test: "test account of development chains",
  generated: "generated here",
  imported: "imported",
  external: "elsewhere: it asks its owner once more",
};

/* Rows of 0 and 1, which the server made; a QR code needs four modules of white around it. */
function QrCode({ rows }: { rows: string[] }) {
  const n = rows.length + 8;
  const d = rows.flatMap((row, y) => [...row].map((c, x) => (c === "1" ? `M${x + 4} ${y + 4}h1v1h-1z` : ""))).join("");
  return (
    <svg class="qr" viewBox={`0 0 ${n} ${n}`} role="img" aria-label="QR code of the pairing URI" shape-rendering="crispEdges">
      <rect width={n} height={n} fill="#fff" />
      <path d={d} fill="#000" />
    </svg>
  );
}

function WalletSpending({ wallet }: { wallet: Wallet }) {
  const spent = useLoad<Spending>(`/v1/wallets/${encodeURIComponent(wallet.id)}/spending`);
  const chains = useLoad<{ chains: Chain[] }>("/v1/chains");
  return <Shown of={spent} rows={2}>{(d) => (d.lines.length ? <SpendingBars lines={namedSpending(d, chains.data?.chains).lines} /> : <p class="dim">Nothing was spent, and no limit holds for all its agents together.</p>)}</Shown>;
}

function List() {
  const list = useLoad<{ wallets: Wallet[] }>("/v1/wallets", 5000);
  const [open, setOpen] = useState<Wallet | null>(null);
  const none = <Empty icon="wallet" title="No wallets" action={<Snippet name="the command" text={"sudo paddock wallet new main"} />}>Wallets are added on the machine itself: keys never pass through this page.</Empty>;
  if (list.missing && !list.data) return <Card title="Wallets" flush>{none}</Card>;
  return (
    <Card title="Wallets" flush>
      <Shown of={list} rows={3}>
        {(d) =>
          d.wallets.length === 0 ? (
            none
          ) : (
            <Table
              name="Wallets"
              id={(w) => w.id}
              rows={d.wallets}
              columns={[
                { head: "Name", cell: (w) => <strong>{plain(w.label || w.id)}</strong> },
                { head: "Address", wide: true, cell: (w) => <Address address={w.address} /> },
                { head: "Kind", hide: true, cell: (w) => KINDS[w.kind] ?? plain(w.kind) },
                { head: "Added", num: true, hide: true, cell: (w) => <Ago at={w.created_at} /> },
                { head: "", cell: (w) => <div class="actions">{who.value?.role === "admin" && <Button small onClick={() => setOpen(w)}>Spending</Button>}</div> },
              ]}
            />
          )
        }
      </Shown>
      {open && <Dialog wide title={`Spending from ${plain(open.label || open.id)}`} onClose={() => setOpen(null)}><WalletSpending wallet={open} /></Dialog>}
    </Card>
  );
}

interface Pairing {
  id: string; /* of the session that comes of it */
  uri: string;
  expires_at: string;
  qr: string[];
}

function Connect({ known, onClose }: { known: Session[]; onClose: () => void }) {
  const [label, setLabel] = useState("");
  const [pairing, setPairing] = useState<Pairing | null>(null);
  const fresh = pairing && known.some((s) => s.id === pairing.id);
  useEffect(() => { if (fresh) onClose(); }, [fresh]);
  const begin = async (e: globalThis.Event) => {
    e.preventDefault();
    const p = await attempt(() => call<Pairing>("POST", "/v1/wallets/connect", label.trim() ? { label: label.trim() } : {}));
    if (p) setPairing(p);
  };
  return (
    <Dialog title="Connect a wallet" onClose={onClose}>
      {pairing ? (
        <>
          <p>Scan this with the wallet, or paste the text there. It is valid until {moment(pairing.expires_at)}.</p>
          <QrCode rows={pairing.qr} />
          <div class="snippet"><pre tabIndex={0} aria-label="Pairing URI">{plain(pairing.uri)}</pre><Copy text={pairing.uri} label="Copy the URI" /></div>
          <p class="dim" role="status">Waiting for the wallet…</p>
        </>
      ) : (
        <form onSubmit={begin}>
          <p>By WalletConnect: the wallet keeps its key and asks you for each transaction once more.</p>
          <Field label="Name"><input autofocus value={label} maxLength={64} placeholder="phone" onInput={(e) => setLabel(e.currentTarget.value)} /></Field>
          <footer><Button onClick={onClose}>Cancel</Button><Button kind="primary" type="submit">Show the QR code</Button></footer>
        </form>
      )}
    </Dialog>
  );
}

function Sessions() {
  const list = useSessions();
  const [open, setOpen] = useState(false);
  const add = <Button small kind="primary" icon="plus" onClick={() => setOpen(true)}>Connect a wallet</Button>;
  if (list.missing) return <Card title="WalletConnect"><p class="dim">{plain(list.error)}</p></Card>;
  return (
    <Card title="WalletConnect" flush actions={add}>
      <Shown of={list} rows={2}>
        {(d) =>
          d.sessions.length === 0 ? (
            <Empty icon="link" title="No wallet is connected">Wallets on a phone or another machine connect by a QR code.</Empty>
          ) : (
            <Table
              name="Sessions"
              id={(s) => s.id}
              rows={d.sessions}
              columns={[
                { head: "Wallet", wide: true, cell: (s) => <><strong>{plain(s.name ?? "unnamed")}</strong> <span class="dim">{plain(s.url ?? "")}</span></> },
                { head: "Accounts", hide: true, cell: (s) => s.accounts.map((a) => <div key={a} class="mono clip">{plain(a)}</div>) },
                { head: "Ends in", num: true, cell: (s) => <span title={moment(s.expires_at)}>{left(s.expires_at)}</span> },
                { head: "", cell: (s) => <div class="actions"><Confirm small kind="danger" title={`Disconnect ${plain(s.name ?? "the wallet")}?`} text="Requests that wait for it can no longer be answered by it." word="Disconnect" run={async () => { await call("DELETE", `/v1/wallets/sessions/${encodeURIComponent(s.id)}`); list.reload(); }}>Disconnect</Confirm></div> },
              ]}
            />
          )
        }
      </Shown>
      {open && <Connect known={list.data?.sessions ?? []} onClose={() => (setOpen(false), list.reload())} />}
    </Card>
  );
}

function InBrowser() {
  const found = useWallets();
  const [held, setHeld] = useState<Record<string, string[]>>({});
  const look = async (w: Injected) => {
    const a = await attempt(() => accounts(w));
    if (a) setHeld({ ...held, [w.uuid]: a });
  };
  return (
    <Card title="In this browser">
      {found.length === 0 ? (
        <p class="dim">No wallet has announced itself (EIP-6963). A browser extension such as a wallet appears here when it is installed.</p>
      ) : (
        <ul class="injected">
          {found.map((w) => (
            <li key={w.uuid}>
              {w.icon && <img class="wallet-icon" src={w.icon} alt="" width={24} height={24} />}
              <strong>{plain(w.name)}</strong> <span class="mono dim">{plain(w.rdns)}</span>
              <span class="grow" />
              {held[w.uuid] ? held[w.uuid]!.map((a) => <Address key={a} address={a} />) : <Button small onClick={() => look(w)}>Show its accounts</Button>}
              {held[w.uuid]?.[0] && <Snippet name="the command" text={`sudo paddock wallet external ${held[w.uuid]![0]} browser`} />}
            </li>
          ))}
        </ul>
      )}
      <p class="dim">To let an agent use an account of such a wallet, the owner adds its address as an external wallet. Each transaction is then approved here and confirmed in the wallet.</p>
    </Card>
  );
}

function Chains() {
  const list = useLoad<{ chains: Chain[] }>("/v1/chains", 5000);
  if (list.missing) return null;
  return (
    <Card title="Chains" flush>
      <Shown of={list} rows={2}>
        {(d) =>
          d.chains.length === 0 ? (
            <Empty icon="link" title="No chains are configured">Set <code>agents: {"{chains: …}"}</code> in paddock.yaml.</Empty>
          ) : (
            <Table
              name="Chains"
              id={(c) => c.id}
              rows={d.chains}
              columns={[
                { head: "Chain", wide: true, cell: (c) => <><strong>{plain(c.name ?? c.id)}</strong> <span class="mono dim">{plain(c.id)}</span>{c.error && <div class="bad">{plain(c.error)}</div>}</> },
                { head: "State", cell: (c) => <StatusBadge status={c.status === "wrong_chain" ? "error" : c.status === "down" ? "missing" : c.status} /> },
                { head: "Block", num: true, hide: true, cell: (c) => c.block ?? "–" },
                { head: "Nodes", num: true, hide: true, cell: (c) => c.nodes },
              ]}
            />
          )
        }
      </Shown>
    </Card>
  );
}

export default function Wallets() {
  const signer = useLoad<Signer>("/v1/signer", 5000);
  const admin = who.value?.role === "admin";
  return (
    <Page title="Wallets" sub="The accounts that agents spend from. No key passes through this page.">
      <SignerState signer={signer.data} />
      {signer.error && <Banner kind="grey">{plain(signer.error)}</Banner>}
      <List />
      {admin && <Sessions />}
      <InBrowser />
      <Chains />
    </Page>
  );
}
