/* Dark or light: what was chosen, else what the system says. */
import { useEffect, useState } from "preact/hooks";

type Mode = "dark" | "light";
const system = matchMedia("(prefers-color-scheme: dark)");
const readers = new Set<() => void>();
const kept = () => {
  try {
    return localStorage.getItem("theme");
  } catch {
    return null;
  }
};

function current(): Mode {
  const chosen = kept();
  return chosen === "dark" || chosen === "light" ? chosen : system.matches ? "dark" : "light";
}

function apply() {
  document.documentElement.dataset.theme = current();
  readers.forEach((f) => f());
}

export function setTheme(mode: Mode) {
  try {
    localStorage.setItem("theme", mode);
  } catch {
    /* a private window */
  }
  apply();
}

export const theme = {
  get: current,
  use(): Mode {
    const [mode, set] = useState(current);
    useEffect(() => {
      const f = () => set(current());
      readers.add(f);
      return () => void readers.delete(f);
    }, []);
    return mode;
  },
};

system.addEventListener("change", apply);
apply();
