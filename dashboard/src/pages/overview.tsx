/* The state of the installation at a glance, live. */
import type { ComponentChildren } from "preact";
import { useMemo } from "preact/hooks";
import type { Event } from "../api";
import { createBox } from "../actions";
import { bytes, count, ms, plain } from "../format";
import { href } from "../route";
import { boxes, recent, type Sample, samples, useLoad, who } from "../store";
import type { Series } from "../chart";
import { Ago, Button, Card, Empty, Failure, lazy, Page, Skeleton, StatusBadge } from "../ui";
import { GetStarted } from "./start";

const Chart = lazy(() => import("../chart"));

function rate(list: Sample[], of: (s: Sample) => number): (number | null)[] {
  return list.map((s, i) => {
    const before = list[Math.max(0, i - 1)]!;
    return i === 0 ? null : Math.max(0, (of(s) - of(before)) / Math.max(0.5, s.at - before.at));
  });
}

/* By the buckets of the histogram between two samples, in seconds. */
export function quantile(a: Sample, b: Sample, q: number): number | null {
  const n = b.createCount - a.createCount;
  if (n <= 0) return null;
  let low = 0;
  let before = 0;
  for (let i = 0; i < b.buckets.length; i++) {
    const [le, v] = b.buckets[i]!;
    const c = v - (a.buckets[i]?.[1] ?? 0);
    if (c >= q * n) return le === Infinity ? low : low + (le - low) * ((q * n - before) / Math.max(1, c - before));
    low = le;
    before = c;
  }
  return low;
}

function latency(list: Sample[], q: number): (number | null)[] {
  return list.map((s, i) => (i === 0 ? null : quantile(list[Math.max(0, i - 15)]!, s, q)));
}

function Stat({ title, value, sub }: { title: string; value: ComponentChildren; sub?: ComponentChildren }) {
  return (
    <div class="stat">
      <div class="stat-title">{title}</div>
      <div class="stat-value">{value}</div>
      <div class="stat-sub">{sub ?? "\u00a0"}</div>
    </div>
  );
}

function Plot({ title, series, at, format, now, least }: { title: string; series: Series[]; at: number[]; format: (n: number) => string; now: string; least: number }) {
  return (
    <Card title={title} actions={<strong class="now">{now}</strong>}>
      {at.length < 2 ? <div class="chart wait">Collecting…</div> : <Chart name={title} at={at} series={series} format={format} least={least} />}
      <div class="legend">
        {series.map((s) => (
          <span key={s.label}>
            <svg width="10" height="10" aria-hidden="true"><circle cx="5" cy="5" r="4" fill={`var(${s.color})`} /></svg>
            {s.label}
          </span>
        ))}
      </div>
    </Card>
  );
}

function Charts({ list }: { list: Sample[] }) {
  const admin = who.value?.role === "admin";
  const at = useMemo(() => list.map((s) => s.at), [list]);
  const last = list.at(-1);
  const creates = rate(list, (s) => s.creates);
  const p50 = latency(list, 0.5);
  const p99 = latency(list, 0.99);
  return (
    <div class="charts">
      <Plot title="Sandboxes" least={4} at={at} format={(n) => (Number.isInteger(n) ? count(n) : "")} now={count(last?.running ?? 0)}
        series={[{ label: "running", values: list.map((s) => s.running), color: "--accent", fill: true }, { label: "paused", values: list.map((s) => s.paused), color: "--amber" }]} />
      <Plot title="CPU" least={1} at={at} format={(n) => n.toFixed(n < 1 ? 2 : 1)} now={`${(last?.cpu ?? 0).toFixed(2)} cores`}
        series={[{ label: "cores in use", values: list.map((s) => s.cpu), color: "--blue", fill: true }]} />
      <Plot title="Memory" least={67108864} at={at} format={bytes} now={bytes(last?.memory ?? 0)}
        series={[{ label: "in use", values: list.map((s) => s.memory), color: "--violet", fill: true }]} />
      {admin && (
        <>
          <Plot title="Creates per second" least={1} at={at} format={(n) => n.toFixed(1)} now={(creates.at(-1) ?? 0).toFixed(1)}
            series={[{ label: "creates", values: creates, color: "--accent", fill: true }, { label: "commands", values: rate(list, (s) => s.execs), color: "--blue" }]} />
          <Plot title="Create latency" least={0.005} at={at} format={ms} now={p50.findLast((v) => v !== null) == null ? "–" : ms(p50.findLast((v) => v !== null)!)}
            series={[{ label: "p50", values: p50, color: "--accent" }, { label: "p99", values: p99, color: "--amber" }]} />
          <Plot title="Egress per second" least={1} at={at} format={(n) => n.toFixed(1)} now={`${count(last?.denied ?? 0)} denied`}
            series={[{ label: "allowed", values: rate(list, (s) => s.allowed), color: "--blue" }, { label: "denied", values: rate(list, (s) => s.denied), color: "--red" }]} />
        </>
      )}
    </div>
  );
}

export function EventLine({ e }: { e: Event }) {
  const b = boxes.value.list.find((x) => x.id === e.sandbox);
  return (
    <li>
      <StatusBadge status={e.type} />
      {e.type.startsWith("transaction.") ? <a href={href("transactions", String(e.data.id))}>{plain(e.data.summary || e.data.agent_name || "transaction")}</a> : b ? <a href={href("sandboxes", b.id)}>{plain(b.name ?? b.id)}</a> : <span class="mono dim">{plain(e.data.name ?? e.sandbox)}</span>}
      <Ago at={e.at} />
    </li>
  );
}

export default function Overview() {
  const state = boxes.use();
  const list = samples.use();
  const now = recent.use();
  const past = useLoad<{ events: Event[]; next: number }>("/v1/events?limit=1000");
  const ready = useLoad("/readyz", 10000);
  const events = [...now, ...(past.data?.events ?? []).toReversed().filter((e) => !now.some((n) => n.id === e.id))].slice(0, 12);
  const last = list.at(-1);
  const first = list[0];
  const never = state.ready && state.list.length === 0 && past.data?.events.length === 0 && now.length === 0;

  if (never)
    return (
      <Page title="Welcome to Paddock" sub={`This installation is at ${location.origin}. It has no sandbox yet.`}>
        {ready.error && <Failure error={ready.error} />}
        <GetStarted />
      </Page>
    );
  const running = state.list.filter((b) => b.status === "running");
  const median = last && first ? quantile({ ...first, createCount: 0, buckets: first.buckets.map(([le]) => [le, 0]) }, last, 0.5) : null;
  return (
    <Page title="Overview" sub={location.host} actions={<Button kind="primary" icon="plus" onClick={() => createBox()}>New sandbox</Button>}>
      {state.error && <Failure error={state.error} />}
      {ready.error && <Failure error={ready.error} />}
      <div class="stats">
        <Stat title="Running" value={state.ready ? count(running.length) : "–"} sub={state.ready ? `of ${count(state.list.length)} sandboxes` : ""} />
        <Stat title="CPU" value={last?.cpu == null ? "–" : last.cpu.toFixed(2)} sub="cores in use" />
        <Stat title="Memory" value={bytes(last?.memory)} sub={state.ready ? `of ${bytes(running.reduce((s, b) => s + b.limits.memory_mb, 0) * 1048576)} allowed` : ""} />
        <Stat title="Create time" value={median === null ? "–" : ms(median)} sub="median since the start" />
      </div>
      <Charts list={list} />
      <div class="two">
        <Card title="Newest sandboxes" actions={<a href="#/sandboxes">All sandboxes</a>} flush>
          {!state.ready ? (
            <Skeleton rows={4} />
          ) : state.list.length === 0 ? (
            <Empty icon="box" title="No sandboxes" action={<Button icon="plus" onClick={() => createBox()}>Create one</Button>} />
          ) : (
            <ul class="lines">
              {state.list.slice(0, 8).map((b) => (
                <li key={b.id}>
                  <StatusBadge status={b.status} />
                  <a href={href("sandboxes", b.id)}>{plain(b.name ?? b.id)}</a>
                  <Ago at={b.created_at} />
                </li>
              ))}
            </ul>
          )}
        </Card>
        <Card title="Activity" actions={<a href="#/audit?view=events">All events</a>} flush>
          {past.error ? <Failure error={past.error} retry={past.reload} /> : past.loading ? <Skeleton rows={4} /> : (
            <ul class="lines">{events.map((e) => <EventLine key={e.id} e={e} />)}</ul>
          )}
        </Card>
      </div>
    </Page>
  );
}
