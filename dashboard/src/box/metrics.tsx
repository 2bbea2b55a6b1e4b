import { boxPath } from "../api";
import Chart from "../chart";
import { bytes, count, seconds } from "../format";
import type { TabProps } from "../pages/box";
import { useLoad } from "../store";
import { Card, Meter, Shown } from "../ui";

interface Point {
  at: string;
  cpu_usec: number;
  memory_bytes: number;
  disk_bytes: number;
  pids: number;
  net_rx_bytes: number;
  net_tx_bytes: number;
}
interface Stats extends Omit<Point, "at"> {
  memory_limit_bytes: number;
  disk_limit_bytes: number;
  pids_limit: number;
  oom_kills: number;
  history: Point[];
}

const perSecond = (h: Point[], of: (p: Point) => number) =>
  h.map((p, i) => (i === 0 ? null : Math.max(0, (of(p) - of(h[i - 1]!)) / Math.max(0.1, (Date.parse(p.at) - Date.parse(h[i - 1]!.at)) / 1000))));

export default function Metrics({ box }: TabProps) {
  const stats = useLoad<Stats>(`${boxPath(box.id)}/stats?history=1`, 2000);
  return (
    <Shown of={stats}>
      {(s) => {
        const at = s.history.map((p) => Date.parse(p.at) / 1000);
        return (
          <>
            <div class="stats">
              <div class="stat"><div class="stat-title">Memory</div><div class="stat-value">{bytes(s.memory_bytes)}</div><div class="stat-sub">of {bytes(s.memory_limit_bytes)}</div><Meter value={s.memory_bytes} max={s.memory_limit_bytes} label="Memory" /></div>
              <div class="stat"><div class="stat-title">Processes</div><div class="stat-value">{count(s.pids)}</div><div class="stat-sub">of {count(s.pids_limit)}</div><Meter value={s.pids} max={s.pids_limit} label="Processes" /></div>
              <div class="stat"><div class="stat-title">CPU time</div><div class="stat-value">{seconds(s.cpu_usec / 1e6)}</div><div class="stat-sub">limit {box.limits.cpu} cores</div></div>
              <div class="stat"><div class="stat-title">Out of memory</div><div class="stat-value">{count(s.oom_kills)}</div><div class="stat-sub">processes killed</div></div>
            </div>
            {at.length < 2 ? (
              <Card><p class="dim">The first samples are on their way.</p></Card>
            ) : (
              <div class="charts">
                <Card title="CPU"><Chart name="CPU" least={1} at={at} format={(n) => n.toFixed(2)} series={[{ label: "cores", color: "--blue", fill: true, values: perSecond(s.history, (p) => p.cpu_usec / 1e6) }]} /></Card>
                <Card title="Memory"><Chart name="Memory" least={67108864} at={at} format={bytes} series={[{ label: "in use", color: "--violet", fill: true, values: s.history.map((p) => p.memory_bytes) }]} /></Card>
                <Card title="Processes"><Chart name="Processes" least={4} at={at} format={(n) => count(Math.round(n))} series={[{ label: "processes", color: "--accent", fill: true, values: s.history.map((p) => p.pids) }]} /></Card>
                <Card title="Network, bytes per second"><Chart name="Network" least={1024} at={at} format={bytes} series={[{ label: "in", color: "--blue", values: perSecond(s.history, (p) => p.net_rx_bytes) }, { label: "out", color: "--amber", values: perSecond(s.history, (p) => p.net_tx_bytes) }]} /></Card>
              </div>
            )}
          </>
        );
      }}
    </Shown>
  );
}
