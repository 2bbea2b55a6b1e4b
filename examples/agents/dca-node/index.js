// Sends the same amount to the same address once an hour, if a person approves.

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

const EVERY_MS = 3600 * 1000;
const TO = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8";
const WEI = "10000000000000000"; // 0.01

async function turn() {
  const { txHash } = await ask("/agent/request-transaction", { chain, to: TO, value: WEI });
  await log("success", `sent ${WEI} wei`, { txHash });
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
