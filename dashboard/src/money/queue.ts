/* What waits for a person, live: for the badge, the approvals and the notices of the browser. */
import { ApiError, type Event, get } from "../api";
import { plain } from "../format";
import { go, href } from "../route";
import { Cell, watchers } from "../store";
import type { Tx, TxPage } from "./types";

export interface Queue {
  list: Tx[]; /* the oldest first: it expires first */
  ready: boolean;
  error: string;
  missing: boolean; /* this server has no such route */
}
const EMPTY: Queue = { list: [], ready: false, error: "", missing: false };
export const queue = new Cell<Queue>(EMPTY);

/* The newest event about a transaction; pages that show it load it again. */
export const changed = new Cell<{ id: string; n: number }>({ id: "", n: 0 });

export async function loadQueue(signal?: AbortSignal) {
  try {
    const [asked, confirm] = await Promise.all(["pending", "awaiting_wallet"].map((s) => get<TxPage>(`/v1/transactions?state=${s}&limit=100`, signal)));
    const list = [...asked!.transactions, ...confirm!.transactions].sort((a, b) => (a.created_at < b.created_at ? -1 : 1));
    queue.set({ list, ready: true, error: "", missing: false });
  } catch (e) {
    if (signal?.aborted) return;
    const missing = e instanceof ApiError && (e.status === 404 || e.status === 501);
    queue.set({ list: missing ? [] : queue.value.list, ready: true, error: (e as Error).message, missing });
  }
}

/* Many events at once become one request. */
let timer: ReturnType<typeof setTimeout> | undefined;
export function refreshQueue(signal?: AbortSignal) {
  timer ??= setTimeout(() => {
    timer = undefined;
    void loadQueue(signal);
  }, 60);
}

/* ---- notices of the browser ---- */

const WANTED = "notices";
export const notices = new Cell<boolean>(localStorage.getItem(WANTED) === "on" && typeof Notification !== "undefined" && Notification.permission === "granted");

export async function wantNotices(on: boolean): Promise<string> {
  if (!on) localStorage.removeItem(WANTED);
  else if (typeof Notification === "undefined") return "This browser has no notifications, or this page is not served by https or from this machine.";
  else if ((await Notification.requestPermission()) !== "granted") return "The browser does not allow notifications of this page.";
  else localStorage.setItem(WANTED, "on");
  notices.set(on);
  return "";
}

function tell(id: string, summary: string) {
  if (!notices.value || Notification.permission !== "granted") return;
  const n = new Notification("An agent waits for your decision", { body: plain(summary).slice(0, 200), tag: `paddock-${id}` }); // one for all tabs
  n.onclick = () => {
    window.focus();
    go(href("approvals", id));
    n.close();
  };
}

watchers.add((e: Event | null, signal) => {
  if (e === null) {
    changed.set({ id: "", n: changed.value.n + 1 });
    return refreshQueue(signal);
  }
  if (!e.type.startsWith("transaction.")) return;
  const id = String(e.data.id ?? "");
  changed.set({ id, n: changed.value.n + 1 });
  refreshQueue(signal);
  if (e.type === "transaction.pending") tell(id, String(e.data.summary ?? ""));
});
