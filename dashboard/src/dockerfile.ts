/* The steps of a template from the text of a Dockerfile: the instructions that need no files beside it. */

export interface Plan {
  from: string;
  start: string;
  steps: { type: string; args: string[] }[];
}

/* Words with quotes and backslashes, as a shell splits them. */
function words(text: string): string[] {
  const found: string[] = [];
  for (const m of text.matchAll(/(?:"((?:[^"\\]|\\.)*)"|'([^']*)'|((?:[^\s"'\\]|\\.)+))+/g)) found.push(m[0].replace(/"((?:[^"\\]|\\.)*)"|'([^']*)'|\\(.)/g, (_, a?: string, b?: string, c?: string) => (a !== undefined ? a.replace(/\\(.)/g, "$1") : (b ?? c ?? ""))));
  return found;
}

/* ["a", "b c"], or a shell's line. */
function command(text: string): string {
  if (!text.startsWith("[")) return text;
  let list: unknown;
  try {
    list = JSON.parse(text);
  } catch {
    return text;
  }
  return Array.isArray(list) ? list.map((w) => `'${String(w).replaceAll("'", "'\\''")}'`).join(" ") : text;
}

export function readDockerfile(text: string): Plan {
  const plan: Plan = { from: "", start: "", steps: [] };
  const lines = text
    .split("\n")
    .filter((l) => !/^\s*#/.test(l))
    .join("\n")
    .replace(/\\\s*\n/g, " ")
    .split("\n");
  for (const line of lines) {
    const m = /^\s*(\w+)\s+(.*?)\s*$/.exec(line);
    if (!m) {
      if (line.trim()) throw new Error(`“${line.trim().slice(0, 60)}” is no instruction.`);
      continue;
    }
    const [, word = "", rest = ""] = m;
    switch (word.toUpperCase()) {
      case "FROM":
        if (plan.from) throw new Error("There is more than one FROM. Builds in several stages are not supported.");
        plan.from = rest.split(/\s+/)[0]!;
        break;
      case "RUN":
        plan.steps.push({ type: "RUN", args: [command(rest)] });
        break;
      case "ENV": {
        const pairs = /^[A-Za-z_]\w*=/.test(rest) ? words(rest).map((w): [string, string] => [w.slice(0, w.indexOf("=")), w.slice(w.indexOf("=") + 1)]) : [[rest.split(/\s+/)[0]!, rest.replace(/^\S+\s*/, "")]];
        for (const [k, v] of pairs) plan.steps.push({ type: "ENV", args: [k!, v!] });
        break;
      }
      case "WORKDIR":
      case "USER":
        plan.steps.push({ type: word.toUpperCase(), args: [rest] });
        break;
      case "CMD":
      case "ENTRYPOINT":
        plan.start = command(rest);
        break;
      case "COPY":
      case "ADD":
        throw new Error(`${word.toUpperCase()} needs files beside the text. Write them with RUN, or build with “e2b template build”.`);
      case "EXPOSE":
      case "LABEL":
        break;
      default:
        throw new Error(`${word} is not supported. The instructions are FROM, RUN, ENV, WORKDIR, USER and CMD.`);
    }
  }
  return plan;
}
