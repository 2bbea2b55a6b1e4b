// Describes the latest block with the help of a model.

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

const EVERY_MS = 600 * 1000;

async function turn() {
  const block = await query("eth_getBlockByNumber", ["latest", false]);
  const facts = { number: Number(block.number), transactions: block.transactions.length, gasUsed: Number(block.gasUsed) };
  await log("info", `block ${facts.number}`, facts);
  const answer = await ask("/api/openai/v1/chat/completions", {
    model: "gpt-4o-mini", max_tokens: 100, messages: [{ role: "user", content: `Describe this block in one sentence: ${JSON.stringify(facts)}` }],
  });
  await log("success", answer.choices[0].message.content);
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
