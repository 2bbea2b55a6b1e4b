// Watches a chain and logs its height and its gas price.

// A small client of the API that every agent finds in its sandbox. It needs no package.
const { ASSEGAI_API_PROXY: url, ASSEGAI_AGENT_ID: id, ASSEGAI_AGENT_TOKEN: token } = process.env;
const headers = { "Content-Type": "application/json", "X-Assegai-Agent-ID": id, "X-Assegai-Agent-Token": token };

async function ask(path, body) {
  const response = await fetch(url + path, { method: "POST", headers, body: JSON.stringify(body) });
  const answer = await response.json();
  if (!response.ok) throw new Error(answer.error);
  return answer;
}
const log = (level, message, data) => ask("/agent/log", { level, message, data });
const chain = "eip155:31337";
const query = async (method, params = []) => (await ask("/agent/query-chain", { chain, method, params })).result;

const EVERY_MS = 15000;
let last = 0;

async function turn() {
  const block = Number(await query("eth_blockNumber"));
  const gas = Number(await query("eth_gasPrice")) / 1e9;
  await log(block < last ? "warn" : "info", `block ${block}, gas ${gas.toFixed(2)} gwei`, { block, gas });
  last = block;
}

async function main() {
  for (;;) {
    try {
      await turn();
    } catch (e) {
      await log("error", e.message);
    }
    await new Promise((resolve) => setTimeout(resolve, EVERY_MS));
  }
}
main();
