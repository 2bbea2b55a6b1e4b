// A wallet: WalletKit, an account of anvil, and a person who does what the lines on stdin say. Events go to stdout, a line each.
import { createInterface } from "node:readline";
import { WalletKit } from "@reown/walletkit";
import { Core } from "@walletconnect/core";
import { formatJsonRpcError, formatJsonRpcResult } from "@walletconnect/jsonrpc-utils";
import { getSdkError } from "@walletconnect/utils";
import { getBytes, JsonRpcProvider, Wallet } from "ethers";

const { relay, project, rpc, key, chain, chains, lasts } = JSON.parse(process.argv[2]);
const say = (event, more = {}) => console.log(JSON.stringify({ event, ...more }));
const account = new Wallet(key, new JsonRpcProvider(rpc, undefined, { cacheTimeout: -1, pollingInterval: 100 }));
const metadata = { name: "Test Wallet", description: "a wallet", url: "https://wallet.example", icons: [] };
const core = new Core({ relayUrl: relay, projectId: project, storageOptions: { database: ":memory:" }, customStoragePrefix: String(process.pid),
  telemetryEnabled: false, logger: "silent" });
const kit = await WalletKit.init({ core, metadata });
const held = [];
// What WalletKit itself would never send. `lasts` are seconds, for its sessions; `forged` replaces parts of what it settles.
let forged = {};
const encode = core.crypto.encode.bind(core.crypto);
core.crypto.encode = (topic, payload, options) => {
  if (payload.method === "wc_sessionSettle") Object.assign(payload.params, lasts ? { expiry: Math.floor(Date.now() / 1000) + lasts } : {}, forged);
  return encode(topic, payload, options);
};
let mode = "approve";

const namespaces = (list) => ({ eip155: { chains: list, accounts: list.map((c) => `${c}:${account.address}`),
  methods: ["eth_sendTransaction", "personal_sign", "eth_signTypedData_v4"], events: ["accountsChanged", "chainChanged"] } });

kit.on("session_proposal", async ({ id, params }) => {
  say("proposal", { name: params.proposer.metadata.name, chains: params.optionalNamespaces.eip155.chains, methods: params.optionalNamespaces.eip155.methods });
  if (mode === "reject") return kit.rejectSession({ id, reason: getSdkError("USER_REJECTED") });
  try {
    const session = await kit.approveSession({ id, namespaces: namespaces(chains ?? [chain]) });
    say("session", { topic: session.topic });
  } catch (e) {
    say("failed", { message: e.message });
  }
});

async function act(request) {
  const { method, params } = request;
  if (method === "personal_sign") return account.signMessage(getBytes(params[0]));
  if (method === "eth_signTypedData_v4") {
    const doc = typeof params[1] === "string" ? JSON.parse(params[1]) : params[1];
    const { EIP712Domain, ...types } = doc.types;
    return account.signTypedData(doc.domain, types, doc.message);
  }
  const { from, to, value, data } = params[0];
  const edited = mode === "edit" ? BigInt(value ?? 0) + 1n : value;
  return (await account.sendTransaction({ to, value: edited, data })).hash;
}

async function answer({ topic, id, request }) {
  try {
    const reply = mode === "reject" ? formatJsonRpcError(id, getSdkError("USER_REJECTED")) :
      mode === "wrong" ? formatJsonRpcResult(id, await Wallet.createRandom().signMessage("x")) : formatJsonRpcResult(id, await act(request));
    await kit.respondSessionRequest({ topic, response: reply });
    say("answered", { id: String(id), result: reply.result, error: reply.error });
  } catch (e) {
    say("failed", { message: e.message });
  }
}

kit.on("session_request", ({ topic, id, params }) => {
  say("request", { id: String(id), method: params.request.method, params: params.request.params, chain: params.chainId });
  if (mode === "hold") held.push({ topic, id, request: params.request });
  else void answer({ topic, id, request: params.request });
});
kit.on("session_delete", ({ topic }) => say("deleted", { topic }));

const commands = {
  count: () => Object.keys(kit.getActiveSessions()).length,
  pair: ({ uri }) => kit.pair({ uri }),
  mode: ({ to }) => void (mode = to),
  forge: ({ parts }) => void (forged = parts),
  release: async ({ to }) => { mode = to ?? "approve"; for (const one of held.splice(0)) await answer(one); },
  forget: () => void held.splice(0),
  disconnect: () => Promise.allSettled(Object.keys(kit.getActiveSessions()).map((topic) => kit.disconnectSession({ topic, reason: getSdkError("USER_DISCONNECTED") }))),
  update: ({ chains: list }) => Promise.all(Object.keys(kit.getActiveSessions()).map(async (topic) => (await kit.updateSession({ topic, namespaces: namespaces(list) })).acknowledged())),
  extend: () => Promise.all(Object.keys(kit.getActiveSessions()).map(async (topic) => (await kit.extendSession({ topic })).acknowledged())),
  ping: () => Promise.all(Object.keys(kit.getActiveSessions()).map((topic) => kit.engine.signClient.ping({ topic }))),
};
createInterface({ input: process.stdin }).on("line", async (line) => {
  const { do: what, ...more } = JSON.parse(line);
  try {
    say("done", { what, value: await commands[what](more) });
  } catch (e) {
    say("failed", { what, message: e.message });
  }
}).on("close", () => process.exit(0));
say("ready", { address: account.address });
