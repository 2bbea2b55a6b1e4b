import { count, plain } from "../format";
import { useLoad } from "../store";
import { Card, Empty, Meter, Page, Shown, Table } from "../ui";

interface Pool {
  parts: number;
  claims: number;
  total: number;
  images: { image: string; ready: number; wanted: number }[];
}

export default function PoolPage() {
  const pool = useLoad<Pool>("/dashboard/pool", 2000);
  return (
    <Page title="Pool" sub="Sandboxes that are started ahead and wait to be claimed.">
      <Shown of={pool} rows={3}>
        {(p) => (
          <>
            <div class="stats">
              <div class="stat"><div class="stat-title">Ready</div><div class="stat-value">{count(p.total)}</div><div class="stat-sub">sandboxes</div></div>
              <div class="stat"><div class="stat-title">Claimed</div><div class="stat-value">{count(p.claims)}</div><div class="stat-sub">since the start</div></div>
              <div class="stat"><div class="stat-title">Parts</div><div class="stat-value">{count(p.parts)}</div><div class="stat-sub">networks and cgroups made ahead</div></div>
            </div>
            <Card title="Images" flush>
              {p.images.length === 0 ? (
                <Empty icon="pool" title="Nothing is kept ready">
                  Set <code>pool: {"{machine: {warm: 4}}"}</code> in paddock.yaml to keep four sandboxes of the image “machine” warm.
                </Empty>
              ) : (
                <Table
                  name="Pool"
                  id={(i) => i.image}
                  rows={p.images}
                  columns={[
                    { head: "Image", wide: true, cell: (i) => <strong>{plain(i.image)}</strong> },
                    { head: "Ready", num: true, cell: (i) => count(i.ready) },
                    { head: "Wanted", num: true, cell: (i) => count(i.wanted) },
                    { head: "Filled", cell: (i) => <Meter value={i.ready} max={i.wanted} label={`${plain(i.image)} ready`} /> },
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
