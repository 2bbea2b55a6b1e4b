/* What can be done with sandboxes from several pages. */
import { type Box, boxPath, call } from "./api";
import { go, href } from "./route";
import { attempt, dropBox, putBox, toast } from "./store";

export async function createBox(spec: Record<string, unknown> = {}): Promise<Box | undefined> {
  const b = await attempt(() => call<Box>("POST", "/v1/sandboxes", spec), "Sandbox created");
  if (b) {
    putBox(b);
    go(href("sandboxes", b.id));
  }
  return b;
}

export type Verb = "pause" | "resume" | "stop" | "start" | "delete";

export async function act(b: Box, verb: Verb): Promise<void> {
  if (verb === "delete") {
    await call("DELETE", boxPath(b.id));
    dropBox(b.id);
    return;
  }
  const changed = await call<Box | undefined>("POST", `${boxPath(b.id)}/${verb}`);
  if (changed?.id) putBox(changed);
}

export const MAY: Record<Verb, (b: Box) => boolean> = {
  pause: (b) => b.status === "running",
  resume: (b) => b.status === "paused",
  stop: (b) => b.status === "running" || b.status === "paused",
  start: (b) => b.status === "stopped",
  delete: () => true,
};

const DONE: Record<Verb, string> = { pause: "paused", resume: "resumed", stop: "stopped", start: "started", delete: "deleted" };

/* A few at a time, and one message for all. */
export async function actAll(list: Box[], verb: Verb): Promise<void> {
  const todo = list.filter(MAY[verb]);
  let good = 0;
  let wrong = "";
  const one = async () => {
    for (let b = todo.shift(); b; b = todo.shift()) {
      try {
        await act(b, verb);
        good++;
      } catch (e) {
        wrong = (e as Error).message;
      }
    }
  };
  await Promise.all(Array.from({ length: 6 }, one));
  if (wrong) toast(`${good} ${DONE[verb]}. The others failed: ${wrong}`, true);
  else toast(`${good} sandbox${good === 1 ? "" : "es"} ${DONE[verb]}`);
}
