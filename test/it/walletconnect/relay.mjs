// A relay of WalletConnect, as small as a test needs: topics with a mailbox, the tokens of clients checked, pushes that are
// repeated on the next connection until they are acknowledged. POST /drop closes every connection, POST /down?ms=N also
// refuses new ones for a while, POST /hold?tag=N keeps messages of this tag back until POST /release, GET /log says what was
// published. With a certificate and its key it speaks TLS.
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { createServer as createSecureServer } from "node:https";
import { verifyJWT } from "@walletconnect/relay-auth";
import { WebSocketServer } from "ws";

const [port, project, cert, key] = [Number(process.argv[2]), ...process.argv.slice(3)];
const address = `${cert ? "wss" : "ws"}://127.0.0.1:${port}`;
const topics = new Map(); // topic: [{message, tag, from, acked: Set}]
const clients = new Set();
const log = [];
let downUntil = 0;
let lastId = 0;
let holding = 0;

const mailbox = (topic) => topics.get(topic) ?? topics.set(topic, []).get(topic);
const subscription = (topic, client) => createHash("sha256").update(topic + client).digest("hex");

function deliver(c, topic, m) {
  if (m.tag === holding || m.from === c.name || m.acked.has(c.name) || c.ws.readyState !== 1 || [...c.pushed.values()].includes(m)) return;
  // 19 digits, which JSON.parse would round: as text.
  const id = `${Date.now()}${String(++lastId).padStart(6, "0")}`;
  c.pushed.set(id, m);
  const params = { id: subscription(topic, c.name), data: { topic, message: m.message, publishedAt: Date.now(), tag: m.tag } };
  c.ws.send(`{"id":${id},"jsonrpc":"2.0","method":"irn_subscription","params":${JSON.stringify(params)}}`);
}

function publish(from, topic, message, tag) {
  log.push({ tag, topic, from });
  const m = { message, tag, from, acked: new Set() };
  if (mailbox(topic).some((other) => other.message === message)) return; // sent again
  mailbox(topic).push(m);
  // The sender hears first that it was taken: WalletKit loses an answer that is faster than that.
  setImmediate(() => clients.forEach((c) => c.topics.has(topic) && deliver(c, topic, m)));
}

function subscribe(c, topic) {
  if (!c.topics.has(topic)) {
    c.topics.add(topic);
    for (const m of [...mailbox(topic)]) setImmediate(() => deliver(c, topic, m));
  }
  return subscription(topic, c.name);
}

const methods = {
  irn_publish: (c, p) => publish(c.name, p.topic, p.message, p.tag) ?? true,
  irn_subscribe: (c, p) => subscribe(c, p.topic),
  irn_batchSubscribe: (c, p) => p.topics.map((t) => subscribe(c, t)),
  irn_unsubscribe: (c, p) => c.topics.delete(p.topic) || true,
  irn_batchFetchMessages: () => ({ messages: [], hasMore: false }),
  wc_proposeSession: (c, p) => (subscribe(c, p.pairingTopic), publish(c.name, p.pairingTopic, p.sessionProposal, 1100), true),
  wc_approveSession: (c, p) => {
    subscribe(c, p.sessionTopic);
    publish(c.name, p.pairingTopic, p.sessionProposalResponse, 1101);
    publish(c.name, p.sessionTopic, p.sessionSettlementRequest, 1102);
    return true;
  },
};

const serve = (request, response) => {
  const url = new URL(request.url, "http://x");
  if (url.pathname === "/down") downUntil = Date.now() + Number(url.searchParams.get("ms"));
  if (url.pathname === "/drop" || url.pathname === "/down") for (const c of clients) c.ws.terminate();
  if (url.pathname === "/hold") holding = Number(url.searchParams.get("tag"));
  if (url.pathname === "/release") {
    holding = 0;
    for (const c of clients) for (const t of c.topics) for (const m of mailbox(t)) deliver(c, t, m);
  }
  response.end(JSON.stringify({ log, clients: [...clients].map((c) => ({ name: c.name, agent: c.agent, topics: [...c.topics] })) }));
};
const server = cert ? createSecureServer({ cert: readFileSync(cert), key: readFileSync(key) }, serve) : createServer(serve);
const sockets = new WebSocketServer({ noServer: true });

server.on("upgrade", async (request, socket, head) => {
  const url = new URL(request.url, "http://x");
  const token = url.searchParams.get("auth") ?? "";
  const claims = token ? JSON.parse(Buffer.from(token.split(".")[1], "base64url")) : {};
  const known = token && (await verifyJWT(token).catch(() => false)) && claims.exp > Date.now() / 1000;
  if (!known || url.searchParams.get("projectId") !== project || claims.aud !== address || Date.now() < downUntil) {
    socket.end(`HTTP/1.1 ${Date.now() < downUntil ? 503 : 401} No\r\ncontent-length: 0\r\n\r\n`);
    return;
  }
  sockets.handleUpgrade(request, socket, head, (ws) => {
    const c = { ws, name: claims.iss, agent: url.searchParams.get("ua"), topics: new Set(), pushed: new Map() };
    clients.add(c);
    ws.on("close", () => clients.delete(c));
    ws.on("error", () => clients.delete(c));
    ws.on("message", (data) => {
      const text = String(data);
      const id = /"id":\s*"?(\d+)/.exec(text)[1];
      const message = JSON.parse(text);
      if (!message.method) {
        c.pushed.get(id)?.acked.add(c.name);
        return;
      }
      const result = methods[message.method]?.(c, message.params);
      const answer = result === undefined ? `"error":{"code":-32601,"message":"no ${message.method}"}` : `"result":${JSON.stringify(result)}`;
      ws.send(`{"id":${id},"jsonrpc":"2.0",${answer}}`);
    });
  });
});
server.listen(port, "127.0.0.1", () => console.log("ready"));
