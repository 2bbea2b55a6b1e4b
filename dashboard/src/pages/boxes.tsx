/* All sandboxes: filters, search, actions on many. Only the rows that can be seen are in the page. */
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { actAll, createBox, MAY, type Verb } from "../actions";
import type { Box } from "../api";
import { bytes, count, left, plain } from "../format";
import { go, href, useRoute } from "../route";
import { boxes, loads, useLoad } from "../store";
import { Ago, Button, Confirm, Dialog, Empty, Failure, Field, Page, Skeleton, StatusBadge } from "../ui";

const ROW = 44;
const STATES = ["running", "paused", "stopped"];

export function CreateDialog({ onClose }: { onClose: () => void }) {
  const images = useLoad<{ images: { name: string | null; names: string[] }[] }>("/v1/images");
  const caps = useLoad<{ defaults: { image: string; limits: { cpu: number; memory_mb: number } } }>("/v1/capabilities");
  const [busy, setBusy] = useState(false);
  const form = useRef<HTMLFormElement>(null);
  const submit = async (e: Event) => {
    e.preventDefault();
    const d = new FormData(form.current!);
    const text = (k: string) => String(d.get(k) ?? "").trim();
    const num = (k: string) => (text(k) ? Number(text(k)) : undefined);
    setBusy(true);
    const allow = text("allow").split(/[\s,]+/).filter(Boolean);
    const made = await createBox({
      name: text("name") || undefined,
      image: text("image") || undefined,
      ttl_seconds: num("ttl"),
      limits: { cpu: num("cpu"), memory_mb: num("memory") },
      egress: allow.length ? { allow } : undefined,
    });
    setBusy(false);
    if (made) onClose();
  };
  const names = [...new Set(images.data?.images.flatMap((i) => i.names) ?? [])];
  return (
    <Dialog title="New sandbox" onClose={onClose}>
      <form ref={form} onSubmit={submit}>
        <Field label="Name" hint="Optional. Letters, digits and dashes.">
          <input name="name" autofocus autocomplete="off" maxLength={63} />
        </Field>
        <Field label="Image">
          <select name="image">
            <option value="">Default ({plain(caps.data?.defaults.image ?? "machine")})</option>
            {names.map((n) => (
              <option key={n} value={n}>{plain(n)}</option>
            ))}
          </select>
        </Field>
        <div class="row">
          <Field label="CPU cores">
            <input name="cpu" type="number" min="0.01" step="any" placeholder={String(caps.data?.defaults.limits.cpu ?? 1)} />
          </Field>
          <Field label="Memory, MB">
            <input name="memory" type="number" min="1" placeholder={String(caps.data?.defaults.limits.memory_mb ?? 512)} />
          </Field>
          <Field label="Lifetime, seconds">
            <input name="ttl" type="number" min="1" placeholder="no limit" />
          </Field>
        </div>
        <Field label="Allowed hosts" hint="Nothing else can be reached. For example: pypi github.com">
          <input name="allow" autocomplete="off" placeholder="none" />
        </Field>
        <footer>
          <Button onClick={onClose}>Cancel</Button>
          <Button kind="primary" type="submit" busy={busy}>Create</Button>
        </footer>
      </form>
    </Dialog>
  );
}

function matches(b: Box, words: string[]): boolean {
  const text = `${b.id} ${b.name ?? ""} ${b.image} ${b.tenant} ${Object.entries(b.metadata).map(([k, v]) => `${k}=${v}`).join(" ")}`.toLowerCase();
  return words.every((w) => text.includes(w));
}

function Row({ b, top, chosen, choose }: { b: Box; top: number; chosen: boolean; choose: (id: string, on: boolean, range: boolean) => void }) {
  const load = loads.value.get(b.id);
  const name = plain(b.name ?? b.id);
  return (
    <div class={chosen ? "vrow chosen" : "vrow"} role="row" style={{ transform: `translateY(${top}px)` }}>
      <span role="cell" class="pick">
        <input type="checkbox" checked={chosen} aria-label={`Select ${name}`} onClick={(e) => choose(b.id, e.currentTarget.checked, e.shiftKey)} />
      </span>
      <span role="cell" class="name">
        <a href={href("sandboxes", b.id)}>{name}</a>
        {b.name && <small class="mono">{b.id}</small>}
      </span>
      <span role="cell" class="state"><StatusBadge status={b.status} /></span>
      <span role="cell" class="image">{plain(b.image)}</span>
      <span role="cell" class="num">{b.status === "running" && load ? `${Math.round(load.cpu * 100)} %` : "–"}</span>
      <span role="cell" class="num">{b.status === "running" && load ? bytes(load.memory_bytes) : "–"}</span>
      <span role="cell" class="num">{left(b.expires_at)}</span>
      <span role="cell" class="num age"><Ago at={b.created_at} /></span>
    </div>
  );
}

function List({ rows, chosen, choose, all }: { rows: Box[]; chosen: Set<string>; choose: (id: string, on: boolean, range: boolean) => void; all: (on: boolean) => void }) {
  const ref = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({ top: 0, height: 600 });
  loads.use();
  useEffect(() => {
    const el = ref.current!;
    const on = () => setView({ top: el.scrollTop, height: el.clientHeight });
    on();
    el.addEventListener("scroll", on, { passive: true });
    const watch = new ResizeObserver(on);
    watch.observe(el);
    return () => {
      el.removeEventListener("scroll", on);
      watch.disconnect();
    };
  }, []);
  const from = Math.max(0, Math.floor(view.top / ROW) - 8);
  const to = Math.min(rows.length, Math.ceil((view.top + view.height) / ROW) + 8);
  const picked = rows.filter((b) => chosen.has(b.id)).length;
  return (
    <div class="vlist" role="table" aria-label="Sandboxes" aria-rowcount={rows.length}>
      <div class="vhead" role="row">
        <span role="columnheader" class="pick">
          <input type="checkbox" aria-label="Select all" checked={picked > 0 && picked === rows.length} ref={(el) => { if (el) el.indeterminate = picked > 0 && picked < rows.length; }} onClick={(e) => all(e.currentTarget.checked)} />
        </span>
        <span role="columnheader" class="name">Name</span>
        <span role="columnheader" class="state">Status</span>
        <span role="columnheader" class="image">Image</span>
        <span role="columnheader" class="num">CPU</span>
        <span role="columnheader" class="num">Memory</span>
        <span role="columnheader" class="num">Time left</span>
        <span role="columnheader" class="num age">Created</span>
      </div>
      <div class="vbody" ref={ref} role="rowgroup" tabIndex={0} aria-label="Rows">
        <div role="presentation" style={{ height: `${rows.length * ROW}px` }}>
          {rows.slice(from, to).map((b, i) => (
            <Row key={b.id} b={b} top={(from + i) * ROW} chosen={chosen.has(b.id)} choose={choose} />
          ))}
        </div>
      </div>
    </div>
  );
}

export default function Boxes() {
  const { query } = useRoute();
  const state = boxes.use();
  const [chosen, setChosen] = useState<Set<string>>(new Set());
  const [creating, setCreating] = useState(query.has("new"));
  const [busy, setBusy] = useState("");
  const last = useRef("");
  const text = query.get("q") ?? "";
  const status = query.get("status") ?? "";

  const set = (k: string, v: string) => {
    const q = new URLSearchParams(query);
    v ? q.set(k, v) : q.delete(k);
    go(`#/sandboxes${q.size ? `?${q}` : ""}`, true);
  };
  const rows = useMemo(() => {
    const words = text.toLowerCase().split(/\s+/).filter(Boolean);
    return state.list.filter((b) => (!status || b.status === status) && matches(b, words));
  }, [state.list, text, status]);
  const picked = state.list.filter((b) => chosen.has(b.id));

  const choose = (id: string, on: boolean, range: boolean) => {
    const next = new Set(chosen);
    const a = rows.findIndex((b) => b.id === last.current);
    const z = rows.findIndex((b) => b.id === id);
    const ids = range && a >= 0 ? rows.slice(Math.min(a, z), Math.max(a, z) + 1).map((b) => b.id) : [id];
    ids.forEach((i) => (on ? next.add(i) : next.delete(i)));
    last.current = id;
    setChosen(next);
  };
  const bulk = async (verb: Verb) => {
    setBusy(verb);
    await actAll(picked, verb);
    setBusy("");
    setChosen(new Set());
  };
  const counts = (s: string) => state.list.filter((b) => !s || b.status === s).length;
  return (
    <Page wide title="Sandboxes" actions={<Button kind="primary" icon="plus" onClick={() => setCreating(true)}>New sandbox</Button>}>
      <div class="toolbar">
        <div class="segments" role="group" aria-label="Status">
          {["", ...STATES].map((s) => (
            <button type="button" key={s} aria-pressed={status === s} onClick={() => set("status", s)}>
              {s || "All"} <span class="dim">{count(counts(s))}</span>
            </button>
          ))}
        </div>
        <input class="search" type="search" placeholder="Search name, id, image, label" aria-label="Search sandboxes" value={text} onInput={(e) => set("q", e.currentTarget.value)} />
      </div>
      <div class={picked.length ? "bulk on" : "bulk"} aria-live="polite">
        {picked.length > 0 && (
          <>
            <strong>{picked.length} selected</strong>
            {(["pause", "resume", "stop", "start"] as Verb[]).map((v) => (
              <Button key={v} small busy={busy === v} disabled={!picked.some(MAY[v])} onClick={() => bulk(v)}>{v[0]!.toUpperCase() + v.slice(1)}</Button>
            ))}
            <Confirm small kind="danger" icon="trash" title={`Delete ${picked.length} sandbox${picked.length === 1 ? "" : "es"}?`} text="Everything that runs in them ends, and their files are removed." word="Delete" run={() => bulk("delete")}>
              Delete
            </Confirm>
            <Button small kind="ghost" onClick={() => setChosen(new Set())}>Clear</Button>
          </>
        )}
      </div>
      {state.error && !state.ready ? (
        <Failure error={state.error} />
      ) : !state.ready ? (
        <Skeleton rows={10} />
      ) : state.list.length === 0 ? (
        <Empty icon="box" title="No sandboxes yet" action={<Button kind="primary" icon="plus" onClick={() => setCreating(true)}>New sandbox</Button>}>
          Create one here, or with <code>paddock create</code>. It appears in this list at once.
        </Empty>
      ) : rows.length === 0 ? (
        <Empty icon="search" title="No sandbox matches" action={<Button onClick={() => go("#/sandboxes", true)}>Clear the filters</Button>} />
      ) : (
        <List rows={rows} chosen={chosen} choose={choose} all={(on) => setChosen(new Set(on ? rows.map((b) => b.id) : []))} />
      )}
      {creating && <CreateDialog onClose={() => (setCreating(false), set("new", ""))} />}
    </Page>
  );
}
