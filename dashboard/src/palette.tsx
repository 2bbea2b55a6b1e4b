/* Everything by keyboard: pages, sandboxes, actions. */
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Who } from "./api";
import { createBox } from "./actions";
import { plain } from "./format";
import { PAGES, signOut } from "./nav";
import { go, href } from "./route";
import { boxes } from "./store";
import { setTheme, theme } from "./theme";
import { Dialog, Icon } from "./ui";

interface Item {
  key: string;
  icon: string;
  title: string;
  hint: string;
  run: () => void;
}

function items(me: Who): Item[] {
  const list: Item[] = [
    { key: "new", icon: "plus", title: "Create a sandbox", hint: "Action", run: () => void createBox() },
    ...PAGES.filter((p) => !p.admin || me.role === "admin").map((p) => ({ key: `p-${p.path}`, icon: p.icon, title: p.title, hint: "Page", run: () => go(p.path ? href(p.path) : "#/") })),
    { key: "theme", icon: "sun", title: theme.get() === "dark" ? "Light colours" : "Dark colours", hint: "Action", run: () => setTheme(theme.get() === "dark" ? "light" : "dark") },
    { key: "out", icon: "out", title: "Sign out", hint: "Action", run: () => void signOut() },
  ];
  for (const b of boxes.value.list)
    list.push({ key: b.id, icon: "box", title: plain(b.name ?? b.id), hint: `${b.status} · ${plain(b.image)}`, run: () => go(href("sandboxes", b.id)) });
  return list;
}

export function Palette({ me, onClose }: { me: Who; onClose: () => void }) {
  const [query, setQuery] = useState("");
  const [at, setAt] = useState(0);
  const list = useRef<HTMLUListElement>(null);
  const all = useMemo(() => items(me), []);
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  const found = all.filter((i) => words.every((w) => `${i.title} ${i.hint} ${i.key}`.toLowerCase().includes(w))).slice(0, 50);
  const chosen = Math.min(at, Math.max(0, found.length - 1));

  useEffect(() => list.current?.children[chosen]?.scrollIntoView({ block: "nearest" }), [chosen]);
  const run = (i: Item | undefined) => {
    if (!i) return;
    onClose();
    i.run();
  };
  const key = (e: KeyboardEvent) => {
    if (e.key === "ArrowDown") setAt(Math.min(chosen + 1, found.length - 1));
    else if (e.key === "ArrowUp") setAt(Math.max(chosen - 1, 0));
    else if (e.key === "Enter") run(found[chosen]);
    else return;
    e.preventDefault();
  };
  return (
    <Dialog title="Commands" onClose={onClose}>
      <div class="palette">
        <input
          autofocus
          role="combobox"
          aria-expanded="true"
          aria-controls="palette-list"
          aria-activedescendant={found[chosen] ? `pal-${chosen}` : undefined}
          aria-label="Search pages, sandboxes and actions"
          placeholder="Search pages, sandboxes and actions"
          value={query}
          onInput={(e) => (setQuery(e.currentTarget.value), setAt(0))}
          onKeyDown={key}
        />
        <ul id="palette-list" role="listbox" aria-label="Results" ref={list}>
          {found.map((i, n) => (
            <li key={i.key} id={`pal-${n}`} role="option" aria-selected={n === chosen} onMouseMove={() => n !== chosen && setAt(n)} onClick={() => run(i)}>
              <Icon name={i.icon} />
              <span>{i.title}</span>
              <small>{i.hint}</small>
            </li>
          ))}
        </ul>
        {found.length === 0 && <p class="none">Nothing is called like this.</p>}
      </div>
    </Dialog>
  );
}
