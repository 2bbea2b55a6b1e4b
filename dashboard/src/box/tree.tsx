/* Where the sandbox comes from and what was made of it. */
import { useState } from "preact/hooks";
import { type Box, boxPath, call, type Event } from "../api";
import { createBox } from "../actions";
import { bytes, plain } from "../format";
import { ForkDialog, type TabProps } from "../pages/box";
import { href } from "../route";
import { attempt, boxes, useLoad } from "../store";
import { Ago, Button, Card, Confirm, Empty, Icon, Shown, StatusBadge } from "../ui";

interface Snapshot {
  id: string;
  name: string | null;
  bytes: number;
  created_at: string;
}
interface Node {
  id: string;
  box?: Box;
  snapshot?: Snapshot;
  kids: Node[];
}

/* From the events: what was forked from what, which snapshot was taken of what, what was made from a snapshot. */
function grow(id: string, all: Box[], snapshots: Snapshot[], events: Event[]): Node {
  const from = new Map<string, string>();
  for (const e of events) {
    if (e.type === "forked" && typeof e.data.source === "string") from.set(e.sandbox, e.data.source);
    if (e.type === "snapshot" && typeof e.data.snapshot === "string") from.set(e.data.snapshot, e.sandbox);
  }
  for (const b of all) if (b.snapshot) from.set(b.id, b.snapshot);
  let root = id;
  const seen = new Set<string>();
  while (from.has(root) && !seen.has(root)) {
    seen.add(root);
    root = from.get(root)!;
  }
  const make = (one: string, depth: number): Node => ({
    id: one,
    box: all.find((b) => b.id === one),
    snapshot: snapshots.find((s) => s.id === one),
    kids: depth > 20 ? [] : [...from].filter(([, p]) => p === one).map(([k]) => make(k, depth + 1)).filter((k) => k.box || k.snapshot || k.kids.length),
  });
  return make(root, 0);
}

function Branch({ node, current, again }: { node: Node; current: string; again: () => void }) {
  const { box, snapshot } = node;
  return (
    <li>
      <div class={node.id === current ? "leaf on" : "leaf"}>
        <Icon name={snapshot ? "disk" : "box"} size={14} />
        {box ? <a href={href("sandboxes", box.id, "tree")}>{plain(box.name ?? box.id)}</a> : snapshot ? <span>{plain(snapshot.name ?? snapshot.id)}</span> : <span class="dim mono">{node.id} (gone)</span>}
        {box && <StatusBadge status={box.status} />}
        {snapshot && <span class="dim">snapshot · {bytes(snapshot.bytes)}</span>}
        <span class="grow" />
        <span class="dim"><Ago at={box?.created_at ?? snapshot?.created_at} /></span>
        {snapshot && (
          <>
            <Button small onClick={() => createBox({ snapshot: snapshot.id })}>New sandbox</Button>
            <Confirm small kind="ghost" icon="trash" label="Delete the snapshot" title="Delete this snapshot?" text="Sandboxes that were made from it stay." word="Delete" run={async () => { await call("DELETE", `/v1/snapshots/${snapshot.id}`); again(); }} />
          </>
        )}
      </div>
      {node.kids.length > 0 && <ul>{node.kids.map((k) => <Branch key={k.id} node={k} current={current} again={again} />)}</ul>}
    </li>
  );
}

export default function Tree({ box }: TabProps) {
  const state = boxes.use();
  const snapshots = useLoad<{ snapshots: Snapshot[] }>("/v1/snapshots", 5000);
  const events = useLoad<{ events: Event[] }>("/v1/events?type=forked,snapshot&limit=1000", 5000);
  const [busy, setBusy] = useState(false);
  const [forking, setForking] = useState(false);
  const again = () => (snapshots.reload(), events.reload());
  const take = async () => {
    setBusy(true);
    await attempt(() => call("POST", `${boxPath(box.id)}/snapshots`, {}), "Snapshot created");
    setBusy(false);
    again();
  };
  return (
    <Card
      title="Snapshots and forks"
      actions={
        <>
          <Button small icon="disk" busy={busy} onClick={take}>Take a snapshot</Button>
          <Button small icon="fork" disabled={box.status === "stopped"} onClick={() => setForking(true)}>Fork</Button>
        </>
      }
    >
      <Shown of={snapshots} rows={3}>
        {(s) => {
          const tree = grow(box.id, state.list, s.snapshots, events.data?.events ?? []);
          return (
            <>
              <ul class="lineage"><Branch node={tree} current={box.id} again={again} /></ul>
              {tree.kids.length === 0 && tree.id === box.id && (
                <Empty icon="fork" title="Nothing was made of this sandbox yet">A snapshot keeps its files as they are now. A fork is a copy that runs at once.</Empty>
              )}
            </>
          );
        }}
      </Shown>
      {forking && <ForkDialog box={box} onClose={() => setForking(false)} />}
    </Card>
  );
}
