// A session of the official TypeScript client with Paddock. Prints one JSON object: what it saw.
//   node client.mjs URL|stdio KEY [PROGRAM ARGUMENTS…]
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const require = createRequire(process.env.MCP_MODULES + "/");
const load = async (path) => import(pathToFileURL(require.resolve("@modelcontextprotocol/sdk/" + path)));
const { Client } = await load("client/index.js");
const { StreamableHTTPClientTransport } = await load("client/streamableHttp.js");
const { StdioClientTransport } = await load("client/stdio.js");

const [url, key, program, ...args] = process.argv.slice(2);
const transport = url === "stdio"
  ? new StdioClientTransport({ command: program, args, env: { ...process.env } })
  : new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers: { Authorization: `Bearer ${key}` } } });
const client = new Client({ name: "paddock-test", version: "1" });
await client.connect(transport);

const seen = { server: client.getServerVersion().name, tools: (await client.listTools()).tools.map((t) => t.name) };
const call = async (name, args, options) => client.callTool({ name, arguments: args }, undefined, options);
const box = (await call("sandbox_create", {})).structuredContent.id;
try {
  await call("exec", { sandbox: box, command: "cd /tmp; X=kept" });
  seen.exec = (await call("exec", { sandbox: box, command: "echo $X $PWD" })).structuredContent.stdout;
  const progress = [];
  await call("exec", { sandbox: box, command: "echo going; sleep 1.6" }, { onprogress: (p) => progress.push(p.message) });
  seen.progress = progress;
  const code = await call("run_code", { sandbox: box, code: "import base64\nclass P:\n  def _repr_png_(self): return b'\\x89PNG'\nP()" });
  seen.image = code.content.find((c) => c.type === "image")?.mimeType;
  const long = await call("exec", { sandbox: box, command: "seq 1 20000" });
  const link = long.content.find((c) => c.type === "resource_link");
  seen.linked = (await client.readResource({ uri: link.uri })).contents[0].text.split("\n").length;
  seen.failed = (await call("file_read", { sandbox: box, path: "/nope" })).isError;
  const stop = new AbortController();
  const slow = call("exec", { sandbox: box, command: "sleep 600", stateful: false }, { signal: stop.signal });
  setTimeout(() => stop.abort("enough"), 300);
  seen.cancelled = await slow.then(() => false, () => true);
  // The word that it is cancelled comes by itself: wait in the sandbox until the command is gone.
  const gone = "for i in $(seq 100); do pgrep -x sleep >/dev/null || { echo none; break; }; read -t 0.1 <> <(:); done";
  seen.after = (await call("exec", { sandbox: box, command: gone })).structuredContent.stdout.trim();
} finally {
  await call("sandbox_delete", { sandbox: box });
}
await client.close();
console.log(JSON.stringify(seen));
