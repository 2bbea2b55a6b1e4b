// Evaluates an async function's body with the agent's credentials, and prints what it returns.
const { AssegaiSDK } = require("./sdk");
const fs = require("fs");
for (let n = 0; !fs.existsSync("/tmp/env.json") && n < 600; n++) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 100); // until the agent itself has begun
const env = JSON.parse(fs.readFileSync("/tmp/env.json"));
const sdk = new AssegaiSDK({ apiProxyUrl: env.ASSEGAI_API_PROXY, agentId: env.ASSEGAI_AGENT_ID, agentToken: env.ASSEGAI_AGENT_TOKEN });
const headers = { "Content-Type": "application/json", "X-Assegai-Agent-ID": env.ASSEGAI_AGENT_ID, "X-Assegai-Agent-Token": env.ASSEGAI_AGENT_TOKEN };
const rpc = async (body, chain = "eip155:31337") => {
  const response = await fetch(`${env.ASSEGAI_API_PROXY}/rpc/${chain}`, { method: "POST", headers, body: typeof body === "string" ? body : JSON.stringify(body) });
  return { status: response.status, body: await response.json() };
};
const attempt = (promise) => promise.then((value) => ({ value }), (e) => ({ code: e.code, status: e.status, message: e.message }));
const run = new (Object.getPrototypeOf(async () => {}).constructor)("sdk", "env", "headers", "rpc", "attempt", "require", process.argv[2]);
run(sdk, env, headers, rpc, attempt, require).then(
  (value) => console.log(JSON.stringify(value, (_, v) => (typeof v === "bigint" ? String(v) : v))),
  (e) => { console.error(e); process.exit(1); });
