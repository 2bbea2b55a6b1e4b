// Assegai's SDK, rebuilt from its contract: the headers, the routes, the abort after 30 s, and how errors are told apart.
class AssegaiError extends Error {
  constructor(message, code, status) { super(message); this.code = code; this.status = status; }
}

// In this order: the SDK looks at the text first, and at the status only then.
function classify(text, status) {
  if (text.includes("No spending allowances") || text.includes("allowance")) return "INSUFFICIENT_ALLOWANCE";
  if (text.includes("rejected by user")) return "TRANSACTION_REJECTED";
  if (text.includes("approval timeout")) return "TRANSACTION_TIMEOUT";
  if (text.includes("Rate limit")) return "RATE_LIMITED";
  if (text.includes("RPC Error")) return "RPC_ERROR";
  return { 401: "UNAUTHORIZED", 403: "FORBIDDEN", 404: "NOT_FOUND", 429: "RATE_LIMITED", 408: "TIMEOUT" }[status] || "API_ERROR";
}

class AssegaiSDK {
  constructor({ apiProxyUrl = process.env.ASSEGAI_API_PROXY || "http://host.docker.internal:8765",
    agentId = process.env.ASSEGAI_AGENT_ID, agentToken = process.env.ASSEGAI_AGENT_TOKEN, timeout = 30000 } = {}) {
    if (!agentId || !agentToken) throw new AssegaiError("no credentials", "UNAUTHORIZED");
    Object.assign(this, { url: apiProxyUrl, agentId, agentToken, timeout });
  }

  async call(method, path, body) {
    const abort = new AbortController();
    const timer = setTimeout(() => abort.abort(), this.timeout);
    try {
      const response = await fetch(this.url + path, {
        method, signal: abort.signal, body: body === undefined ? undefined : JSON.stringify(body),
        headers: { "Content-Type": "application/json", "X-Assegai-Agent-ID": this.agentId, "X-Assegai-Agent-Token": this.agentToken },
      });
      const document = await response.json().catch(() => ({}));
      if (!response.ok) {
        const text = document.error || document.message || response.statusText;
        throw new AssegaiError(text, classify(text, response.status), response.status);
      }
      return document;
    } catch (e) {
      if (e instanceof AssegaiError) throw e;
      throw new AssegaiError(String(e.cause || e), e.name === "AbortError" ? "TIMEOUT" : "NETWORK_ERROR");
    } finally {
      clearTimeout(timer);
    }
  }

  async getWalletAddress(chain) { return (await this.call("GET", `/agent/wallet-address/${chain}`)).address; }
  async queryChain(chain, method, params = []) {
    return (await this.call("POST", "/agent/query-chain", { chain, method, params })).result;
  }
  getBalance(chain, address) { return this.queryChain(chain, "eth_getBalance", [address, "latest"]); }
  getTransactionCount(chain, address) { return this.queryChain(chain, "eth_getTransactionCount", [address, "latest"]); }
  getGasPrice(chain) { return this.queryChain(chain, "eth_gasPrice"); }
  getBlockNumber(chain) { return this.queryChain(chain, "eth_blockNumber"); }
  async isContract(chain, address) { return (await this.queryChain(chain, "eth_getCode", [address, "latest"])) !== "0x"; }
  async requestTransaction({ chain, to, value, data = "0x", gasLimit = "21000" }) {
    if (!/^0x[a-fA-F0-9]{40}$/.test(to)) throw new AssegaiError("to", "VALIDATION_ERROR");
    return this.call("POST", "/agent/request-transaction", { chain, to, value, data, gasLimit });
  }
  callOpenAI(body) { return this.call("POST", "/api/openai/v1/chat/completions", body); }
  callClaude(body) { return this.call("POST", "/api/anthropic/v1/messages", { max_tokens: 4096, ...body }); }
  log(level, message, data) { return this.call("POST", "/agent/log", { level, message, data }); }
  healthCheck() { return this.call("GET", "/health"); }
}

module.exports = { AssegaiSDK, AssegaiError };
