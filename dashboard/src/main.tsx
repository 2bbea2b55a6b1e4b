/* The frame: who is signed in, the navigation, and which page the address names. */
import "./style.css";
import { render } from "preact";
import { useEffect, useState } from "preact/hooks";
import { get, onSignedOut, type Who } from "./api";
import { count } from "./format";
import { queue } from "./money/queue";
import { PAGES, signOut } from "./nav";
import { Palette } from "./palette";
import Boxes from "./pages/boxes";
import Overview from "./pages/overview";
import SignIn from "./pages/signin";
import Start from "./pages/start";
import { href, type Route, useRoute } from "./route";
import { boxes, live, start, stop, who } from "./store";
import { setTheme, theme } from "./theme";
import { Button, Empty, Failure, Icon, lazy, Logo, Toasts } from "./ui";

const BoxPage = lazy(() => import("./pages/box"));
const Workspaces = lazy(() => import("./pages/workspaces"));
const Images = lazy(() => import("./pages/images"));
const Pool = lazy(() => import("./pages/pool"));
const Tenants = lazy(() => import("./pages/tenants"));
const Usage = lazy(() => import("./pages/usage"));
const Audit = lazy(() => import("./pages/audit"));
const Agents = lazy(() => import("./pages/agents"));
const Approvals = lazy(() => import("./pages/approvals"));
const Transactions = lazy(() => import("./pages/transactions"));
const Wallets = lazy(() => import("./pages/wallets"));
const Settings = lazy(() => import("./pages/settings"));

function page(route: Route, me: Who) {
  const [first = "", second = "", ...rest] = route.parts;
  const entry = PAGES.find((p) => p.path === first);
  if (entry?.admin && me.role !== "admin")
    return (
      <Empty icon="shield" title="This page needs an admin key">
        You are signed in with a key of the role “user”. Sign out, and sign in with an admin key.
      </Empty>
    );
  switch (first) {
    case "":
      return <Overview />;
    case "start":
      return <Start />;
    case "sandboxes":
      return second ? <BoxPage key={second} id={second} tab={rest[0] ?? "terminal"} rest={rest.slice(1)} /> : <Boxes />;
    case "workspaces":
      return <Workspaces />;
    case "images":
      return <Images />;
    case "pool":
      return <Pool />;
    case "tenants":
      return <Tenants id={second} />;
    case "agents":
      return <Agents key={second} id={second} />;
    case "approvals":
      return <Approvals id={second} />;
    case "transactions":
      return <Transactions id={second} />;
    case "wallets":
      return <Wallets />;
    case "usage":
      return <Usage />;
    case "audit":
      return <Audit />;
    case "settings":
      return <Settings />;
    default:
      return (
        <Empty icon="search" title="There is no such page" action={<a class="btn plain" href="#/">Go to the overview</a>}>
          The address may be of another version of the dashboard.
        </Empty>
      );
  }
}

function Nav({ route, me, close }: { route: Route; me: Who; close: () => void }) {
  const n = boxes.use().list.length;
  const waiting = queue.use().list.length;
  const shown = PAGES.filter((p) => !p.admin || me.role === "admin");
  const groups = [...new Set(shown.map((p) => p.group))];
  return (
    <nav aria-label="Pages">
      {groups.map((g) => (
        <div key={g} class="nav-group">
          {g && <div class="nav-title">{g}</div>}
          {shown
            .filter((p) => p.group === g)
            .map((p) => (
              <a key={p.path} href={p.path ? href(p.path) : "#/"} onClick={close} aria-current={(route.parts[0] ?? "") === p.path ? "page" : undefined}>
                <Icon name={p.icon} />
                <span>{p.title}</span>
                {p.path === "sandboxes" && n > 0 && <span class="nav-count">{count(n)}</span>}
                {p.path === "approvals" && waiting > 0 && <span class="nav-count urgent"><span class="sr">waiting: </span>{count(waiting)}</span>}
              </a>
            ))}
        </div>
      ))}
      <div class="nav-group">
        <a href="/docs">
          <Icon name="book" />
          <span>Docs</span>
        </a>
      </div>
    </nav>
  );
}

function Frame({ me }: { me: Who }) {
  const route = useRoute();
  const isLive = live.use();
  const waiting = queue.use().list.length;
  const mode = theme.use();
  const [open, setOpen] = useState(false);
  const [palette, setPalette] = useState(false);

  useEffect(() => {
    const on = (e: KeyboardEvent) => {
      const typing = (e.target as HTMLElement).closest("input,textarea,select,.xterm");
      if ((e.metaKey || e.ctrlKey) && e.key.toLowerCase() === "k") {
        e.preventDefault();
        setPalette((v) => !v);
      } else if (e.key === "/" && !typing) {
        e.preventDefault();
        setPalette(true);
      }
    };
    window.addEventListener("keydown", on, true);
    return () => window.removeEventListener("keydown", on, true);
  }, []);
  useEffect(() => {
    const entry = PAGES.find((p) => p.path === (route.parts[0] ?? ""));
    document.title = `${waiting ? `(${waiting}) ` : ""}${entry?.title ?? "Paddock"} · Paddock`;
  }, [route, waiting]);
  useEffect(() => setOpen(false), [route]);

  return (
    <div class={open ? "frame open" : "frame"}>
      <a class="skip" href="#main" onClick={(e) => { e.preventDefault(); document.getElementById("main")?.focus(); }}>
        Skip to the content
      </a>
      <header class="topbar">
        <Button kind="ghost" icon="menu" label="Menu" onClick={() => setOpen(!open)} />
        <a class="brand" href="#/">
          <Logo /> Paddock
        </a>
        <Button kind="ghost" icon="search" label="Search and commands" onClick={() => setPalette(true)} />
      </header>
      <div class="shade" onClick={() => setOpen(false)} />
      <aside>
        <a class="brand" href="#/">
          <Logo /> Paddock
        </a>
        <button type="button" class="finder" onClick={() => setPalette(true)}>
          <Icon name="search" size={14} />
          <span>Search or jump to…</span>
          <kbd>⌘K</kbd>
        </button>
        <Nav route={route} me={me} close={() => setOpen(false)} />
        <div class="foot">
          <div class={isLive ? "link-state on" : "link-state"}>
            <i />
            {isLive ? "Live" : "Reconnecting…"}
            <span>v{me.version}</span>
          </div>
          <div class="me">
            <div>
              <strong>{me.tenant}</strong>
              <small>{me.role} · {me.key}</small>
            </div>
            <Button kind="ghost" small icon={mode === "dark" ? "sun" : "moon"} label={mode === "dark" ? "Light colours" : "Dark colours"} onClick={() => setTheme(mode === "dark" ? "light" : "dark")} />
            <Button kind="ghost" small icon="out" label="Sign out" onClick={signOut} />
          </div>
        </div>
      </aside>
      <main id="main" tabIndex={-1}>{page(route, me)}</main>
      {palette && <Palette me={me} onClose={() => setPalette(false)} />}
    </div>
  );
}

function App() {
  const me = who.use();
  const [error, fail] = useState("");
  const look = () => {
    fail("");
    get<Who>("/dashboard/session").then((w) => who.set(w), (e: Error) => fail(e.message));
  };
  useEffect(look, []);
  useEffect(() => onSignedOut(() => who.value?.signed_in && (stop(), who.set({ ...who.value, signed_in: false }))), []);
  useEffect(() => {
    if (me?.signed_in) start(me.role === "admin");
  }, [me?.signed_in, me?.key]);
  return (
    <>
      {error ? <Failure error={error} retry={look} /> : !me ? null : me.signed_in ? <Frame me={me} /> : <SignIn />}
      <Toasts />
    </>
  );
}

render(<App />, document.getElementById("app")!);
