/* The parts that pages are made of. */
import type { ComponentChildren, ComponentType, JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { Status } from "./api";
import { ago, moment } from "./format";
import { attempt, toast, toasts } from "./store";

const PATHS: Record<string, string> = {
  home: "M3 10.5 12 3l9 7.500V20a1 1 0 0 1-1 1h-5v-6H9v6H4a1 1 0 0 1-1-1z",
  box: "M12 3 4 7v10l8 4 8-4V7zM4 7l8 4 8-4M12 11v10",
  disk: "M4 6c0-1.7 3.6-3 8-3s8 1.3 8 3-3.6 3-8 3-8-1.3-8-3zm0 0v12c0 1.7 3.6 3 8 3s8-1.3 8-3V6M4 12c0 1.7 3.6 3 8 3s8-1.3 8-3",
  image: "M4 4h16v16H4zM4 15l4-4 4 4 3-3 5 5M15 8.500h.01",
  pool: "M4 8h16M4 12h16M4 16h10",
  users: "M9 11a4 4 0 1 0 0-8 4 4 0 0 0 0 8zm-7 10a7 7 0 0 1 14 0M17 11a3.5 3.5 0 0 0 0-7M19 21a6 6 0 0 0-3-5.5",
  spark: "M12 3v4m0 10v4M3 12h4m10 0h4M6 6l2.5 2.500m7 7L18 18M6 18l2.5-2.500m7-7L18 6",
  list: "M8 6h12M8 12h12M8 18h12M4 6h.01M4 12h.01M4 18h.01",
  gear: "M12 15.500a3.5 3.5 0 1 0 0-7 3.5 3.5 0 0 0 0 7zM19.4 14a1.6 1.6 0 0 0 .3 1.8 2 2 0 1 1-2.8 2.8 1.6 1.6 0 0 0-2.7 1.1 2 2 0 1 1-4 0 1.6 1.6 0 0 0-2.7-1.1 2 2 0 1 1-2.8-2.8 1.6 1.6 0 0 0-1.1-2.7 2 2 0 1 1 0-4 1.6 1.6 0 0 0 1.1-2.7 2 2 0 1 1 2.8-2.8 1.6 1.6 0 0 0 2.7-1.1 2 2 0 1 1 4 0 1.6 1.6 0 0 0 2.7 1.1 2 2 0 1 1 2.8 2.8 1.6 1.6 0 0 0 1.1 2.7 2 2 0 1 1 0 4 1.6 1.6 0 0 0-1.4.9z",
  search: "M11 18a7 7 0 1 0 0-14 7 7 0 0 0 0 14zm9 2-4-4",
  plus: "M12 5v14M5 12h14",
  copy: "M9 9h11v11H9zM5 15H4V4h11v1",
  check: "M5 12.5 10 17 19 7",
  x: "M6 6l12 12M18 6 6 18",
  menu: "M4 7h16M4 12h16M4 17h16",
  play: "M7 5v14l12-7z",
  pause: "M8 5v14M16 5v14",
  stop: "M6 6h12v12H6z",
  trash: "M4 7h16M9 7V4h6v3m-8 0 1 13h8l1-13",
  fork: "M7 3v6a3 3 0 0 0 3 3h4a3 3 0 0 1 3 3v6M7 12v9M17 3v4",
  file: "M6 3h8l4 4v14H6zM14 3v4h4",
  folder: "M3 6h6l2 2h10v11H3z",
  down: "M12 4v11m-5-5 5 5 5-5M5 20h14",
  up: "M12 20V9m-5 5 5-5 5 5M5 4h14",
  chevron: "M9 6l6 6-6 6",
  sun: "M12 17a5 5 0 1 0 0-10 5 5 0 0 0 0 10zM12 1v2m0 18v2M4 4l1.5 1.500m13 13L20 20M1 12h2m18 0h2M4 20l1.5-1.500m13-13L20 4",
  moon: "M20 14.500A8.5 8.5 0 0 1 9.5 4a8.5 8.5 0 1 0 10.5 10.500z",
  out: "M10 4H5v16h5M15 8l4 4-4 4M19 12H9",
  link: "M14 4h6v6M20 4l-9 9M18 14v6H4V6h6",
  refresh: "M20 11a8 8 0 1 0-.6 4M20 5v6h-6",
  shield: "M12 3 5 6v6c0 4.5 3 7.5 7 9 4-1.5 7-4.5 7-9V6z",
  book: "M4 4h6a3 3 0 0 1 2 1 3 3 0 0 1 2-1h6v14h-6a3 3 0 0 0-2 1 3 3 0 0 0-2-1H4zM12 5v14",
  bot: "M5 9h14v10H5zM12 9V5M12 5h.01M9 13.500v1M15 13.500v1M2 13v3M22 13v3",
  stamp: "M5 20h14M7 16h10v-2a3 3 0 0 0-3-3h-.5l.5-5a2 2 0 0 0-4 0l.5 5H10a3 3 0 0 0-3 3z",
  swap: "M4 8h14l-4-4M20 16H6l4 4",
  wallet: "M4 7h15v12H4zM4 7l11-4v4M15 13h.01",
  alert: "M12 3 2 20h20zM12 10v4M12 17h.01",
  bell: "M6 16V11a6 6 0 0 1 12 0v5l2 2H4zM10 21h4",
  term: "M5 7l5 5-5 5M12 17h7",
};

export function Icon({ name, size = 16 }: { name: string; size?: number }) {
  return (
    <svg class="icon" width={size} height={size} viewBox="0 0 24 24" fill="none" stroke="currentColor" stroke-width="1.8" stroke-linecap="round" stroke-linejoin="round" aria-hidden="true">
      <path d={PATHS[name] ?? ""} />
    </svg>
  );
}

type ButtonProps = {
  children?: ComponentChildren;
  icon?: string;
  kind?: "primary" | "danger" | "ghost" | "plain";
  small?: boolean;
  busy?: boolean;
  label?: string;
} & Omit<JSX.HTMLAttributes<HTMLButtonElement>, "icon" | "label"> & { disabled?: boolean; type?: "button" | "submit" };

export function Button({ children, icon, kind = "plain", small, busy, label, ...rest }: ButtonProps) {
  return (
    <button
      type="button"
      {...rest}
      disabled={rest.disabled || busy}
      aria-label={label}
      title={label}
      class={`btn ${kind}${small ? " small" : ""}${children ? "" : " square"}`}
    >
      {busy ? <span class="spinner" /> : icon && <Icon name={icon} size={small ? 14 : 16} />}
      {children && <span>{children}</span>}
    </button>
  );
}

export function StatusBadge({ status }: { status: Status | string }) {
  return (
    <span class={`badge ${status}`}>
      <i />
      {status}
    </span>
  );
}

export function Empty({ icon, title, children, action }: { icon: string; title: string; children?: ComponentChildren; action?: ComponentChildren }) {
  return (
    <div class="empty">
      <div class="empty-icon">
        <Icon name={icon} size={22} />
      </div>
      <h3>{title}</h3>
      {children && <p>{children}</p>}
      {action}
    </div>
  );
}

export function Failure({ error, retry }: { error: string; retry?: () => void }) {
  return (
    <div class="failure" role="alert">
      <strong>This could not be loaded.</strong>
      <span>{error}</span>
      {retry && (
        <Button small icon="refresh" onClick={retry}>
          Try again
        </Button>
      )}
    </div>
  );
}

export function Skeleton({ rows = 5 }: { rows?: number }) {
  return (
    <div class="skeleton" aria-busy="true" aria-label="Loading">
      {Array.from({ length: rows }, (_, i) => (
        <div key={i} />
      ))}
    </div>
  );
}

/* One of: loading, an error, nothing, or the content. */
export function Shown<T>(p: {
  of: { data: T | undefined; error: string; loading: boolean; reload: () => void };
  rows?: number;
  children: (data: T) => ComponentChildren;
}) {
  if (p.of.data !== undefined) return <>{p.children(p.of.data)}</>;
  if (p.of.error) return <Failure error={p.of.error} retry={p.of.reload} />;
  return <Skeleton rows={p.rows} />;
}

export function Page({ title, sub, actions, children, wide }: { title: ComponentChildren; sub?: ComponentChildren; actions?: ComponentChildren; children: ComponentChildren; wide?: boolean }) {
  return (
    <div class={wide ? "page wide" : "page"}>
      <header class="page-head">
        <div>
          <h1>{title}</h1>
          {sub && <p class="sub">{sub}</p>}
        </div>
        {actions && <div class="actions">{actions}</div>}
      </header>
      {children}
    </div>
  );
}

export function Card({ title, actions, children, flush }: { title?: ComponentChildren; actions?: ComponentChildren; children: ComponentChildren; flush?: boolean }) {
  return (
    <section class={flush ? "card flush" : "card"}>
      {(title || actions) && (
        <header>
          <h2>{title}</h2>
          {actions && <div class="actions">{actions}</div>}
        </header>
      )}
      {children}
    </section>
  );
}

export function Facts({ items }: { items: [string, ComponentChildren][] }) {
  return (
    <dl class="facts">
      {items.map(([k, v]) => (
        <div key={k}>
          <dt>{k}</dt>
          <dd>{v}</dd>
        </div>
      ))}
    </dl>
  );
}

export interface Column<T> {
  head: string;
  cell: (row: T) => ComponentChildren;
  num?: boolean;
  mono?: boolean;
  wide?: boolean;
  hide?: boolean; /* on a phone */
}

export function Table<T>({ rows, columns, name, id }: { rows: T[]; columns: Column<T>[]; name: string; id: (row: T) => string | number }) {
  const cls = (c: Column<T>) => [c.num && "num", c.mono && "mono", c.wide && "grow", c.hide && "hide"].filter(Boolean).join(" ");
  return (
    <div class="table-wrap" tabIndex={0} role="region" aria-label={name}>
      <table>
        <thead>
          <tr>
            {columns.map((c, i) => (
              <th key={i} class={cls(c)} scope="col">
                {c.head || <span class="sr">Actions</span>}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((r) => (
            <tr key={id(r)}>
              {columns.map((c, i) => (
                <td key={i} class={cls(c)}>
                  {c.cell(r)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

export function Ago({ at }: { at: string | null | undefined }) {
  const [, tick] = useState(0);
  useEffect(() => {
    const t = setInterval(() => tick((n) => n + 1), 10000);
    return () => clearInterval(t);
  }, []);
  return at ? (
    <time dateTime={at} title={moment(at)}>
      {ago(at)}
    </time>
  ) : (
    <>–</>
  );
}

export async function copyText(text: string) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const t = document.createElement("textarea"); // without TLS there is no clipboard API
    t.value = text;
    t.className = "sr";
    document.body.append(t);
    t.select();
    document.execCommand("copy");
    t.remove();
  }
  toast("Copied to the clipboard");
}

export function Copy({ text, label = "Copy" }: { text: string; label?: string }) {
  return <Button small kind="ghost" icon="copy" label={label} onClick={() => copyText(text)} />;
}

export function Snippet({ text, name }: { text: string; name: string }) {
  return (
    <div class="snippet">
      <pre tabIndex={0} aria-label={name}>{text}</pre>
      <Copy text={text} label={`Copy ${name}`} />
    </div>
  );
}

export function Dialog({ title, children, onClose, wide }: { title: string; children: ComponentChildren; onClose: () => void; wide?: boolean }) {
  const ref = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const d = ref.current!;
    d.showModal();
    return () => d.close();
  }, []);
  return (
    <dialog
      ref={ref}
      class={wide ? "wide" : ""}
      aria-label={title}
      onCancel={(e) => {
        e.preventDefault();
        onClose();
      }}
      onMouseDown={(e) => e.target === ref.current && onClose()}
    >
      <div class="dialog">
        <header>
          <h2>{title}</h2>
          <Button kind="ghost" small icon="x" label="Close" onClick={onClose} />
        </header>
        {children}
      </div>
    </dialog>
  );
}

/* A button that asks once more. */
export function Confirm({ title, text, word, run, children, ...b }: { title: string; text: string; word: string; run: () => Promise<unknown> } & Pick<ButtonProps, "children" | "icon" | "kind" | "small" | "label" | "disabled">) {
  const [open, set] = useState(false);
  const [busy, setBusy] = useState(false);
  return (
    <>
      <Button {...b} onClick={() => set(true)}>
        {children}
      </Button>
      {open && (
        <Dialog title={title} onClose={() => set(false)}>
          <p>{text}</p>
          <footer>
            <Button onClick={() => set(false)}>Cancel</Button>
            <Button
              kind="danger"
              busy={busy}
              onClick={async () => {
                setBusy(true);
                await attempt(run);
                setBusy(false);
                set(false);
              }}
            >
              {word}
            </Button>
          </footer>
        </Dialog>
      )}
    </>
  );
}

export function Field({ label, hint, children }: { label: string; hint?: string; children: ComponentChildren }) {
  return (
    <label class="field">
      <span>{label}</span>
      {children}
      {hint && <small>{hint}</small>}
    </label>
  );
}

export function Toasts() {
  const list = toasts.use();
  return (
    <div class="toasts" role="status" aria-live="polite">
      {list.map((t) => (
        <div key={t.id} class={t.bad ? "toast bad" : "toast"}>
          <Icon name={t.bad ? "x" : "check"} size={14} />
          <span>{t.text}</span>
        </div>
      ))}
    </div>
  );
}

/* A page that is loaded when it is needed. */
export function lazy<P extends object>(load: () => Promise<{ default: ComponentType<P> }>): ComponentType<P> {
  let found: ComponentType<P> | undefined;
  return function Lazy(props: P) {
    const [C, set] = useState<ComponentType<P> | undefined>(() => found);
    const [error, fail] = useState("");
    useEffect(() => {
      if (!found)
        load().then(
          (m) => {
            found = m.default;
            set(() => found);
          },
          (e: Error) => fail(e.message),
        );
    }, []);
    if (error) return <Failure error={error} retry={() => location.reload()} />;
    return C ? <C {...props} /> : <Skeleton rows={6} />;
  };
}

export function Meter({ value, max, label }: { value: number; max: number; label: string }) {
  const share = max > 0 ? Math.min(1, value / max) : 0;
  return (
    <meter class={share > 0.9 ? "hot" : ""} min={0} max={1} value={share} aria-label={label} title={`${label}: ${Math.round(share * 100)} %`} />
  );
}

export function Logo() {
  return (
    <svg width="22" height="22" viewBox="0 0 32 32" aria-hidden="true">
      <rect width="32" height="32" rx="8" fill="var(--accent)" />
      <path d="M8 24V9m5.3 15V9m5.4 15V9M24 24V9M5 13.5h22M5 19.5h22" stroke="#fff" stroke-width="2.2" stroke-linecap="round" fill="none" />
    </svg>
  );
}
