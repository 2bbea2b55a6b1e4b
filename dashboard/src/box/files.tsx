/* Files: a tree that loads what is opened, an editor, uploads by drop, downloads. */
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { boxPath, call, filePath, get, HEADERS, send } from "../api";
import { Editor } from "../editor";
import { bytes, moment, plain } from "../format";
import type { TabProps } from "../pages/box";
import { go, href } from "../route";
import { attempt } from "../store";
import { Button, Confirm, Empty, Failure, Icon, Skeleton } from "../ui";

interface File {
  name: string;
  type: string;
  size: number;
  mode: string;
  modified_at: string | null;
}

const EDIT_MAX = 1024 * 1024;
const join = (dir: string, name: string) => (dir === "/" ? `/${name}` : `${dir}/${name}`);
const parent = (path: string) => path.slice(0, path.lastIndexOf("/")) || "/";

function Folder({ box, path, depth, open, current, toggle, turn, pick }: { box: string; path: string; depth: number; open: Set<string>; current: string; toggle: (p: string) => void; turn: number; pick: (p: string) => void }) {
  const [list, setList] = useState<File[] | null>(null);
  const [error, setError] = useState("");
  useEffect(() => {
    const stop = new AbortController();
    (async () => {
      try {
        const all: File[] = [];
        let next: string | null = "";
        do {
          const d: { entries: File[]; next?: string | null } = await get(`${filePath(box, path)}?list=1&limit=1000${next ? `&cursor=${encodeURIComponent(next)}` : ""}`, stop.signal);
          all.push(...d.entries);
          next = d.next ?? null;
        } while (next && all.length < 5000);
        all.sort((a, b) => Number(b.type === "directory") - Number(a.type === "directory") || (a.name < b.name ? -1 : 1));
        setList(all);
        setError("");
      } catch (e) {
        if (!stop.signal.aborted) setError((e as Error).message);
      }
    })();
    return () => stop.abort();
  }, [box, path, turn]);
  if (error) return <li class="tree-note" role="none">{error}</li>;
  if (!list) return <li class="tree-note" role="none">Loading…</li>;
  return (
    <>
      {list.length === 0 && <li class="tree-note" role="none" style={{ paddingLeft: `${depth * 14 + 28}px` }}>empty</li>}
      {list.map((f) => {
        const full = join(path, f.name);
        const dir = f.type === "directory";
        const isOpen = dir && open.has(full);
        return (
          <li key={f.name} role="none">
            <button type="button" role="treeitem" aria-expanded={dir ? isOpen : undefined} aria-selected={current === full} class={current === full ? "node on" : "node"} style={{ paddingLeft: `${depth * 14 + 8}px` }} title={`${f.mode} · ${bytes(f.size)}${f.modified_at ? ` · ${moment(f.modified_at)}` : ""}`} onClick={() => (dir ? toggle(full) : pick(full))}>
              <span class={isOpen ? "twist open" : "twist"}>{dir && <Icon name="chevron" size={12} />}</span>
              <Icon name={dir ? "folder" : "file"} size={14} />
              <span class="node-name">{plain(f.name)}</span>
              {!dir && <small>{bytes(f.size)}</small>}
            </button>
            {isOpen && (
              <ul role="group">
                <Folder box={box} path={full} depth={depth + 1} open={open} current={current} toggle={toggle} turn={turn} pick={pick} />
              </ul>
            )}
          </li>
        );
      })}
    </>
  );
}

/* XMLHttpRequest tells the progress of an upload; fetch does not. */
function put(path: string, body: Blob, progress: (share: number) => void): Promise<void> {
  return new Promise((done, fail) => {
    const x = new XMLHttpRequest();
    x.open("PUT", path);
    Object.entries(HEADERS).forEach(([k, v]) => x.setRequestHeader(k, v));
    x.setRequestHeader("Content-Type", "application/octet-stream");
    x.upload.onprogress = (e) => progress(e.lengthComputable ? e.loaded / e.total : 0);
    x.onload = () => {
      if (x.status < 300) return done();
      try {
        fail(new Error((JSON.parse(x.responseText) as { error: { message: string } }).error.message));
      } catch {
        fail(new Error(`The server answered ${x.status}.`));
      }
    };
    x.onerror = () => fail(new Error("The connection was lost."));
    x.send(body);
  });
}

/* The bytes come by a signed address, so that a file of any size goes straight to the disk. */
async function download(box: string, path: string) {
  const s = await attempt(() => call<{ url: string }>("POST", `${boxPath(box)}/fs/sign`, { path, method: "GET", expires_seconds: 60 }));
  if (!s) return;
  const a = document.createElement("a");
  a.href = new URL(s.url, location.href).pathname + new URL(s.url, location.href).search;
  a.download = path.slice(path.lastIndexOf("/") + 1);
  a.click();
}

function View({ box, path, changed, close }: { box: string; path: string; changed: () => void; close: () => void }) {
  const [text, setText] = useState<string | null>(null);
  const [saved, setSaved] = useState("");
  const [note, setNote] = useState("");
  const [error, setError] = useState("");
  const [busy, setBusy] = useState(false);
  const load = useCallback(async () => {
    setError("");
    setNote("");
    setText(null);
    try {
      const head = await send(filePath(box, path), { method: "HEAD" });
      const size = Number(head.headers.get("content-length") ?? 0);
      if (size > EDIT_MAX) return setNote(`It has ${bytes(size)}; files up to ${bytes(EDIT_MAX)} can be edited here.`);
      const data = new Uint8Array(await (await send(filePath(box, path))).arrayBuffer());
      if (data.includes(0)) return setNote("It is not text.");
      const t = new TextDecoder("utf-8", { fatal: true }).decode(data);
      setText(t);
      setSaved(t);
    } catch (e) {
      if (e instanceof TypeError) setNote("It is not text in UTF-8.");
      else setError((e as Error).message);
    }
  }, [box, path]);
  useEffect(() => void load(), [load]);
  const dirty = text !== null && text !== saved;
  const save = async () => {
    if (!dirty || busy) return;
    setBusy(true);
    const ok = await attempt(async () => (await send(filePath(box, path), { method: "PUT", headers: { "Content-Type": "application/octet-stream" }, body: text }), true), "Saved");
    setBusy(false);
    if (ok) {
      setSaved(text);
      changed();
    }
  };
  return (
    <div class="file-view">
      <div class="file-head">
        <span class="mono">{plain(path)}{dirty && <b title="not saved"> ●</b>}</span>
        <div class="actions">
          <Button small icon="down" onClick={() => download(box, path)}>Download</Button>
          <Confirm small icon="trash" kind="ghost" label="Delete the file" title="Delete this file?" text={plain(path)} word="Delete" run={async () => { await call("DELETE", filePath(box, path)); changed(); close(); }} />
          {text !== null && <Button small kind="primary" busy={busy} disabled={!dirty} onClick={save}>Save</Button>}
        </div>
      </div>
      {error ? <Failure error={error} retry={load} /> : note ? (
        <Empty icon="file" title="No preview" action={<Button icon="down" onClick={() => download(box, path)}>Download</Button>}>{note}</Empty>
      ) : text === null ? <Skeleton rows={8} /> : (
        <Editor value={text} name={path} label={`Content of ${plain(path)}`} onInput={setText} onKeyDown={(e) => { if ((e.ctrlKey || e.metaKey) && e.key === "s") { e.preventDefault(); void save(); } }} />
      )}
    </div>
  );
}

export default function Files({ box, rest }: TabProps) {
  const path = rest.length ? "/" + rest.join("/") : "";
  const [root, setRoot] = useState(box.workdir || "/");
  const [open, setOpen] = useState<Set<string>>(new Set());
  const [turn, setTurn] = useState(0);
  const [over, setOver] = useState(false);
  const [uploads, setUploads] = useState<{ name: string; share: number }[]>([]);
  const chooser = useRef<HTMLInputElement>(null);
  const again = () => setTurn((n) => n + 1);
  const show = (p: string) => go(p ? href("sandboxes", box.id, "files", ...p.slice(1).split("/")) : href("sandboxes", box.id, "files"));

  const upload = async (files: FileList | null) => {
    for (const f of files ?? []) {
      const set = (share: number) => setUploads((l) => [...l.filter((u) => u.name !== f.name), ...(share < 2 ? [{ name: f.name, share }] : [])]);
      set(0);
      await attempt(() => put(filePath(box.id, join(root, f.name)), f, set), `Uploaded ${plain(f.name)}`);
      set(2);
    }
    again();
  };
  const create = async () => {
    const name = prompt("The new file’s name:");
    if (!name) return;
    const full = name.startsWith("/") ? name : join(root, name);
    if (await attempt(async () => (await send(filePath(box.id, full), { method: "PUT", headers: { "Content-Type": "application/octet-stream" }, body: "" }), true))) {
      again();
      show(full);
    }
  };
  const crumbs = root === "/" ? [""] : root.split("/");
  return (
    <div
      class={over ? "files over" : "files"}
      onDragOver={(e) => { e.preventDefault(); setOver(true); }}
      onDragLeave={(e) => e.currentTarget === e.target && setOver(false)}
      onDrop={(e) => { e.preventDefault(); setOver(false); void upload(e.dataTransfer?.files ?? null); }}
    >
      <div class={path ? "tree has-file" : "tree"}>
        <div class="tree-head">
          <div class="crumbs mono">
            {crumbs.map((c, i) => (
              <button type="button" key={i} onClick={() => setRoot(crumbs.slice(0, i + 1).join("/") || "/")}>{i === 0 ? "/" : plain(c)}{i > 0 && i < crumbs.length - 1 ? "/" : ""}</button>
            ))}
          </div>
          <Button small kind="ghost" icon="refresh" label="Load again" onClick={again} />
          <Button small kind="ghost" icon="plus" label="New file" onClick={create} />
          <Button small kind="ghost" icon="up" label="Upload files" onClick={() => chooser.current!.click()} />
          <input ref={chooser} type="file" multiple hidden aria-label="Files to upload" onChange={(e) => { void upload(e.currentTarget.files); }} />
        </div>
        <ul role="tree" aria-label={`Files of ${plain(root)}`}>
          {root !== "/" && (
            <li role="none"><button type="button" role="treeitem" class="node" onClick={() => setRoot(parent(root))}><span class="twist" /><Icon name="folder" size={14} /><span class="node-name">..</span></button></li>
          )}
          <Folder key={root} box={box.id} path={root} depth={0} open={open} current={path} turn={turn} pick={show} toggle={(p) => setOpen((o) => { const n = new Set(o); n.has(p) ? n.delete(p) : n.add(p); return n; })} />
        </ul>
        {uploads.map((u) => (
          <div key={u.name} class="upload"><span>{plain(u.name)}</span><progress max={1} value={u.share} aria-label={`Upload of ${plain(u.name)}`} /></div>
        ))}
      </div>
      {path ? (
        <View key={path} box={box.id} path={path} changed={again} close={() => show("")} />
      ) : (
        <Empty icon="file" title="Choose a file" action={<Button icon="up" onClick={() => chooser.current!.click()}>Upload files</Button>}>
          Open it to edit it here. Drop files anywhere to upload them to <code>{plain(root)}</code>.
        </Empty>
      )}
      {over && <div class="drop">Drop to upload to {plain(root)}</div>}
    </div>
  );
}
