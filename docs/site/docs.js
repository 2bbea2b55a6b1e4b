// The documentation's search, colours, menu and copy buttons. Everything that it shows is set as text.
"use strict";

const root = document.documentElement;
root.classList.add("js");

function stored() {
  try {
    return localStorage.getItem("theme"); // the dashboard's, too
  } catch {
    return null;
  }
}

const theme = () => stored() ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
root.dataset.theme = theme();

// ---- search ----

let sections; // [{url, page, title, text, lower…}], when they are loaded

async function load() {
  if (!sections) {
    const rows = await (await fetch(document.body.dataset.index)).json();
    sections = rows.map(([url, page, title, text]) => ({ url, page, title, text, inPage: page.toLowerCase(), inTitle: title.toLowerCase(), inText: text.toLowerCase() }));
  }
  return sections;
}

// How well a word fits: as a whole word or the beginning of one, in a heading more than in a page's name, there more than in text.
function rank(section, word) {
  const within = (text, whole, start, part) => {
    let best = 0;
    for (let at = text.indexOf(word); at >= 0 && best < whole; at = text.indexOf(word, at + 1)) {
      const begins = at === 0 || !/[\p{L}\p{N}]/u.test(text[at - 1]);
      const ends = at + word.length === text.length || !/[\p{L}\p{N}]/u.test(text[at + word.length]);
      best = Math.max(best, begins && ends ? whole : begins ? start : part);
    }
    return best;
  };
  return within(section.inTitle, 60, 40, 20) + within(section.inPage, 24, 12, 4) + within(section.inText, 6, 3, 1);
}

function find(all, query) {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  const found = [];
  for (const section of all) {
    let sum = 0;
    for (const word of words) {
      const points = rank(section, word);
      if (!points) {
        sum = 0;
        break;
      }
      sum += points;
    }
    if (sum) found.push({ section, sum: sum + (section.inTitle === words.join(" ") ? 100 : 0) - Math.min(section.title.length, 60) / 60 - (section.url.startsWith("/docs/design") ? 8 : 0) });
  }
  found.sort((a, b) => b.sum - a.sum);
  return { words, hits: found.slice(0, 20).map((hit) => hit.section) };
}

// The text with the words marked.
function marked(className, text, words) {
  const out = document.createElement("div");
  out.className = className;
  const pattern = words.map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")).join("|");
  for (const part of text.split(new RegExp(`(${pattern})`, "gi"))) {
    if (words.includes(part.toLowerCase())) {
      const mark = document.createElement("mark");
      mark.textContent = part;
      out.append(mark);
    } else out.append(part);
  }
  return out;
}

function excerpt(section, words) {
  const at = Math.min(...words.map((word) => section.inText.indexOf(word)).filter((place) => place >= 0));
  const from = Number.isFinite(at) && at > 60 ? section.text.indexOf(" ", at - 50) + 1 : 0;
  return (from ? "… " : "") + section.text.slice(from, from + 180);
}

function search() {
  const input = document.getElementById("site-query");
  const list = document.getElementById("site-results");
  const status = document.getElementById("site-found");
  let chosen = -1, turn = 0;

  function close() {
    turn++;
    list.hidden = true;
    list.replaceChildren();
    input.setAttribute("aria-expanded", "false");
    input.removeAttribute("aria-activedescendant");
    chosen = -1;
  }

  function choose(index) {
    const items = list.querySelectorAll("[data-url]");
    if (!items.length) return;
    chosen = (index + items.length) % items.length;
    items.forEach((item, i) => item.setAttribute("aria-selected", String(i === chosen)));
    items[chosen].scrollIntoView({ block: "nearest" });
    input.setAttribute("aria-activedescendant", items[chosen].id);
  }

  function go(item) {
    close();
    input.blur();
    location.assign(item.dataset.url);
  }

  function show({ words, hits }) {
    list.replaceChildren(...hits.map((section, i) => {
      const item = document.createElement("li");
      item.id = `site-result-${i}`;
      item.setAttribute("role", "option");
      item.setAttribute("aria-selected", "false");
      item.dataset.url = section.url;
      item.append(marked("title", section.title, words), marked("where", section.page, words), marked("text", excerpt(section, words), words));
      return item;
    }));
    if (!hits.length) {
      const none = document.createElement("li");
      none.className = "none";
      none.setAttribute("role", "option");
      none.setAttribute("aria-disabled", "true");
      none.setAttribute("aria-selected", "false");
      none.textContent = "Nothing has all of these words.";
      list.append(none);
    }
    status.textContent = `${hits.length} results`;
    list.hidden = false;
    input.setAttribute("aria-expanded", "true");
    choose(0);
  }

  input.addEventListener("focus", load, { once: true });
  input.addEventListener("input", async () => {
    const mine = ++turn, query = input.value.trim();
    if (!query) return close();
    const all = await load();
    if (mine === turn) show(find(all, query));
  });
  input.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      choose(chosen + (event.key === "ArrowDown" ? 1 : -1));
    } else if (event.key === "Enter") {
      const item = list.querySelector('[aria-selected="true"][data-url]');
      if (item) go(item);
    } else if (event.key === "Escape") {
      input.value = "";
      close();
      input.blur();
    }
  });
  list.addEventListener("mousedown", (event) => event.preventDefault()); // the field keeps the focus
  list.addEventListener("click", (event) => {
    const item = event.target.closest("[data-url]");
    if (item) go(item);
  });
  input.addEventListener("blur", () => setTimeout(close, 100));
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && !event.ctrlKey && !event.metaKey && !event.altKey && !event.target.closest("input, textarea, select, [contenteditable]")) {
      event.preventDefault();
      input.focus();
      input.select();
    }
  });
}

// ---- the rest ----

function copyButtons() {
  for (const block of document.querySelectorAll(".code")) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "copy";
    button.textContent = "Copy";
    button.addEventListener("click", async () => {
      let done = true;
      try {
        await navigator.clipboard.writeText(block.querySelector("pre").textContent);
      } catch { // without TLS there is no clipboard: what can be copied by hand is selected
        getSelection().selectAllChildren(block.querySelector("pre"));
        done = false;
      }
      button.textContent = done ? "Copied" : "Selected";
      button.classList.add("done");
      setTimeout(() => {
        button.textContent = "Copy";
        button.classList.remove("done");
      }, 1500);
    });
    block.append(button);
  }
}

function colours() {
  const button = document.querySelector(".theme");
  const name = () => (button.textContent = root.dataset.theme === "dark" ? "Light" : "Dark");
  name();
  button.addEventListener("click", () => {
    root.dataset.theme = root.dataset.theme === "dark" ? "light" : "dark";
    try {
      localStorage.setItem("theme", root.dataset.theme);
    } catch { /* it holds for this page */ }
    name();
  });
}

function menu() {
  const button = document.querySelector(".menu"), tree = document.getElementById("site-nav");
  button.addEventListener("click", () => button.setAttribute("aria-expanded", String(tree.classList.toggle("open"))));
  tree.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest" });
}

document.addEventListener("DOMContentLoaded", () => {
  search();
  copyButtons();
  colours();
  menu();
});
