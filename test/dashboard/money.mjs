// Drives the pages about agents and money in Chromium: node money.mjs WORLD, a JSON object. Prints one JSON line for each scenario,
// in order; each goes on where the one before stopped, as a person would.
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { createRequire } from "node:module";
import { join } from "node:path";
import { readFileSync } from "node:fs";
import { launch } from "./browser.mjs";

const world = JSON.parse(process.argv[2]);
const { url, chain } = world;
const it = await launch(world.modules, url, world.key, world.shots);
const { browser, context, page, complaints, api, watch, until, signIn, shown } = it;

// WalletKit takes seconds to start: it does that beside the first steps.
const phone = spawn("node", ["wallet.mjs", JSON.stringify(world.phone)], { cwd: world.wallets, stdio: ["pipe", "pipe", "ignore"] });
let heard = "";
phone.stdout.on("data", (d) => (heard += d));
phone.stdin.on("error", () => {}); // it has ended: whoever waits for its answer says so
process.on("exit", () => phone.kill());

const open = (where, p = page) => p.goto(`${url}/#/${where}`);
const status = async () => (await api("GET", `/v1/agents/${world.agent}`)).status;

// ---- those beside the page: the owner, the chain, the agent ----

// On the machine itself, as root.
const paddock = (...args) => execFileSync(world.paddock, args, { encoding: "utf8", env: { ...process.env, PADDOCK_RUN_DIR: world.run_dir, PADDOCK_URL: url, PADDOCK_API_KEY: world.key } });
const allow = (wallet, ...more) => paddock("agent", "allow", "payer", "--wallet", wallet, "--limit", "1/3/5", "--max-pending", "10", "--yes", ...more);
const ETHER = 10n ** 18n;

const node = (method, ...params) => ask(world.node, method, params);
// What the node between the daemon and anvil cannot do from now on.
const mood = (how) => ask(world.front, "test_mood", [how]);
async function ask(where, method, params) {
  const r = await fetch(where, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }) });
  const d = await r.json();
  if (d.error) throw Object.assign(new Error(d.error.message), { code: d.error.code });
  return d.result;
}

// JavaScript in the agent's sandbox, with its credentials; what it returns.
function inside(script) {
  const answer = run(script);
  answer.catch(() => {}); // whoever waits for it hears of it; a step that failed before does not end the walk
  return answer;
}
async function run(script) {
  const { sandbox } = await api("GET", `/v1/agents/${world.agent}`);
  const done = await api("POST", `/v1/sandboxes/${sandbox}/exec`, { argv: ["node", "/agent-code/run.js", script], cwd: "/agent-code", timeout_ms: 120000 });
  assert.equal(done.exit_code, 0, JSON.stringify(done));
  return JSON.parse(done.stdout);
}
// The agent asks and waits; a promise of {status, body}.
function wants(body) {
  return inside(`const r = await fetch(env.ASSEGAI_API_PROXY + "/agent/request-transaction", { method: "POST", headers, body: ${JSON.stringify(JSON.stringify({ chain, data: "0x", gasLimit: "21000", ...body }))} }); return { status: r.status, body: await r.json() };`);
}
let serial = 1000;
const somebody = () => "0x" + String(++serial).padStart(40, "0"); // no letters: the case of letters is its checksum
const finney = (n) => String(BigInt(n) * 10n ** 15n);
const waiting = async () => (await api("GET", "/v1/transactions?state=pending")).transactions;
const oneWaits = (to) => until("the request waits", async () => (await waiting()).find((t) => t.to?.toLowerCase() === to.toLowerCase()));
const state = async (id) => (await api("GET", `/v1/transactions/${id}`)).state;
const reaches = (id, ...states) => until(`${id} is ${states}`, async () => states.includes(await state(id)));
const DONE = ["included", "confirmed", "final"];
const EVIL = "<img src=x onerror=window.pwned=1>";
// A call of a model, and what all of the agent's have cost by then.
async function costs() {
  const before = (await api("GET", `/v1/agents/${world.agent}/spending`)).ai_cost_usd.lifetime;
  await inside('return await sdk.callOpenAI({ model: "gpt-4o-mini", messages: [{ role: "user", content: "x" }] })');
  return until("the call is settled", async () => {
    const now = (await api("GET", `/v1/agents/${world.agent}/spending`)).ai_cost_usd.lifetime;
    return now > before && now;
  });
}

// Of the request on the screen in the queue.
const place = (text) => page.locator(".queue strong").getByText(text, { exact: true }).waitFor();

async function show(id, p = page) {
  await open(`approvals/${id}`, p);
  await p.getByRole("article").locator(".sentence").waitFor();
}

// Nothing that an agent says is obeyed.
async function safe(p, where) {
  assert.equal(await p.evaluate(() => window.pwned), undefined, where);
  assert.equal(await p.locator("#app img[src=x], #app script").count(), 0, where);
  assert.ok(!/[\u202a-\u202e\u2066-\u2069]/.test(await p.locator("#app").innerText()), `${where}: writing backwards`);
}

const scenarios = {
  async "the agents and their states"() {
    await signIn(page);
    await page.getByRole("link", { name: "Agents" }).click();
    const row = page.getByRole("row", { name: /payer/ });
    await row.locator(".badge.running").waitFor();
    world.sandbox = (await api("GET", `/v1/agents/${world.agent}`)).sandbox;
    world.once = inside('return await sdk.callOpenAI({ model: "gpt-4o-mini", messages: [{ role: "user", content: "x" }] })');
    await world.once;
    await row.getByRole("button", { name: "Stop payer" }).click();
    await row.locator(".badge.stopped").waitFor();
    assert.equal(await status(), "stopped");
    await row.getByRole("button", { name: "Start payer" }).click();
    await row.locator(".badge.running").waitFor();
    await row.getByRole("link", { name: "payer" }).click();
    await page.getByRole("heading", { name: /payer/, level: 1 }).waitFor();
  },

  async "what its manifest asks for"() {
    const asks = page.locator(".card", { hasText: "What its manifest asks for" });
    await asks.waitFor();
    assert.match(await asks.innerText(), /eip155:31337[\s\S]*openai[\s\S]*1\.0 per transaction, 3\.0 a day/);
    assert.match(await asks.innerText(), /Says hello\. <img src=x onerror[\s\S]*Author\s+<img src=x/, "as text");
    await safe(page, "the manifest");
  },

  async "its log by level, live"() {
    const log = page.getByRole("log");
    await log.getByText("hello by the API").first().waitFor();
    await log.getByText("hello on stderr").first().waitFor();
    const { sandbox } = await api("GET", `/v1/agents/${world.agent}`);
    await api("POST", `/v1/sandboxes/${sandbox}/exec`, { argv: ["node", "/agent-code/run.js", "await sdk.log('warn', 'look <img src=x onerror=window.pwned=1>', {a: 1})"], cwd: "/agent-code" });
    await log.getByText("look <img").waitFor();
    await page.getByLabel("Level").selectOption("warn");
    await log.getByText("look <img").waitFor();
    assert.equal(await log.getByText("hello by the API").count(), 0);
    await log.locator(".line.error", { hasText: "hello on stderr" }).first().waitFor();
    await safe(page, "the log");
    await page.reload();
    await log.getByText("look <img").waitFor();
    assert.equal(await page.getByLabel("Level").inputValue(), "warn", "it is part of the address");
  },

  async "before the owner says so, nothing may be spent"() {
    await open(`agents/${world.agent}`);
    const command = page.getByLabel("the command", { exact: true });
    await command.waitFor();
    assert.equal(await command.innerText(), "sudo paddock wallet new main\nsudo paddock agent allow payer --wallet main");
    paddock("wallet", "test", "0", "--name", "pocket money");
    await page.reload();
    await until("the command names the wallet", async () => (await command.innerText()) === "sudo paddock agent allow payer --wallet 'pocket money'");
    const refused = await wants({ to: somebody(), value: finney(1) });
    assert.equal(refused.status, 403);
    allow("pocket money");
    world.allowed = true;
    await page.reload();
    await page.getByRole("img", { name: /24 hours: 0 of 3 tETH/ }).waitFor();
  },

  async "the costs of AI beside it, of all its sandboxes"() {
    assert.notEqual((await api("GET", `/v1/agents/${world.agent}`)).sandbox, world.sandbox);
    const all = await costs();
    const last = (await api("GET", `/v1/usage?box=${(await api("GET", `/v1/agents/${world.agent}`)).sandbox}&by=box`)).total.cost_usd;
    assert.ok(last > 0 && all > last * 1.5, `${all} with the first sandbox, ${last} in the second`);
    await page.reload();
    await until("the sum is shown", async () => (await page.locator(".card", { hasText: "Costs of AI" }).locator(".stat-value").innerText()) === `$${all.toFixed(4)}`);
  },

  async "a request is in every tab at once, with a notice"() {
    await context.grantPermissions(["notifications"], { origin: url });
    await page.addInitScript(() => {
      const Real = window.Notification;
      window.told = [];
      window.Notification = class extends Real {
        constructor(title, how) {
          super(title, how);
          window.told.push({ title, ...how });
        }
      };
    });
    await open("approvals");
    await page.reload();
    await page.getByText("Nothing waits for you").waitFor();
    await page.getByRole("button", { name: "Notify me" }).click();
    await page.getByRole("button", { name: "Notifications are on" }).waitFor();
    world.other = watch(await context.newPage());
    await open("images", world.other);
    world.to = somebody();
    world.answer = wants({ to: world.to, value: finney(500), reason: 'For coffee <img src=x onerror=window.pwned=1>\u202e evil \u2066" onclick="x' });
    await place("1 of 1");
    await world.other.locator(".nav-count.urgent", { hasText: "1" }).waitFor();
    assert.match(await world.other.title(), /^\(1\) Images/);
    const told = await until("the notice", () => page.evaluate(() => window.told[0]));
    assert.match(told.body, /0\.5/);
  },

  async "the card has the facts first and the agent's words last, as text"() {
    const card = page.getByRole("article");
    if (process.env.WALK_PICTURES) await page.screenshot({ path: join(process.env.WALK_PICTURES, "approvals.png") });
    await card.locator(".sentence", { hasText: /payer.*0\.5 tETH/ }).waitFor();
    await card.getByText("− 0.5 tETH").waitFor();
    assert.ok(!(await page.locator("main").innerText()).includes("(native)"), "the chain has a name for it");
    assert.ok((await card.locator(".address").first().innerText()).includes(world.to), "the whole address");
    assert.match(await card.innerText(), /first time[\s\S]*account/);
    await card.getByRole("img", { name: /24 hours: 0 → 0\.5 of 3 / }).waitFor();
    assert.match(await card.innerText(), /Fee at worst[\s\S]*0\.\d+ /);
    assert.match(await card.locator("blockquote").innerText(), /For coffee <img src=x onerror/);
    const text = await card.innerText();
    assert.ok(text.indexOf("Fee at worst") < text.indexOf("For coffee"));
    await safe(page, "the card");
    assert.equal(await page.evaluate(() => document.activeElement.textContent), "Reject", "it has the focus");
    assert.deepEqual(await it.findings(page, "the card"), []);
  },

  async "approve, and it is mined"() {
    const tx = await oneWaits(world.to);
    await show(tx.id, world.other);
    await page.getByRole("article").getByRole("button", { name: "Approve" }).click();
    const answer = await world.answer;
    assert.equal(answer.status, 200, JSON.stringify(answer));
    await reaches(tx.id, ...DONE);
    const mined = await node("eth_getTransactionByHash", answer.body.txHash);
    assert.deepEqual([mined.to, BigInt(mined.value)], [world.to, ETHER / 2n]);
    for (const p of [page, world.other]) {
      await p.locator(".ask-card.over .decided", { hasText: /Decided by .*(your key)/ }).waitFor();
      assert.equal(await p.getByRole("button", { name: "Approve" }).count(), 0);
    }
    await page.locator(".nav-count.urgent").waitFor({ state: "detached" });
    await open(`agents/${world.agent}`);
    await page.getByRole("img", { name: /24 hours: 0\.5 of 3 / }).waitFor();
  },

  async "reject by keyboard"() {
    const to = somebody();
    const answer = wants({ to, value: finney(10) });
    const tx = await oneWaits(to);
    await show(tx.id);
    await until("the focus", () => page.evaluate(() => document.activeElement.textContent === "Reject"));
    await page.keyboard.press("Enter");
    const { status, body } = await answer;
    assert.equal(body.error, "Transaction rejected by user", `${status}`);
    await page.locator(".decided", { hasText: "It was rejected. Decided by" }).waitFor();
    assert.equal(await state(tx.id), "rejected");
  },

  async "decided elsewhere, the card says by whom"() {
    const to = somebody();
    const answer = wants({ to, value: finney(10) });
    const tx = await oneWaits(to);
    await show(tx.id);
    await page.getByRole("button", { name: "Approve" }).waitFor();
    await api("POST", `/v1/transactions/${tx.id}/reject`, { note: "by the API" });
    await page.locator(".decided", { hasText: "Decided by" }).waitFor();
    assert.equal(await page.getByRole("button", { name: "Approve" }).count(), 0);
    await answer;
  },

  async "another digest is refused"() {
    const to = somebody();
    const answer = wants({ to, value: finney(10) });
    const tx = await oneWaits(to);
    await page.route(new RegExp(`/v1/transactions/${tx.id}$`), async (r) => { // what the person sees is not what there is
      const response = await r.fetch();
      await r.fulfill({ response, json: { ...(await response.json()), digest: "0x" + "0".repeat(64) } }).catch(() => {}); // the page may have left meanwhile
    });
    await show(tx.id);
    await page.getByRole("button", { name: "Approve" }).click();
    await page.locator(".decide [role=alert]").waitFor();
    assert.equal(await state(tx.id), "pending");
    await page.unrouteAll({ behavior: "ignoreErrors" }); // the page may be loading it just now
    await api("POST", `/v1/transactions/${tx.id}/reject`, {});
    await answer;
  },

  async "one of three, and all of them rejected"() {
    const answers = [1, 2, 3].map((n) => wants({ to: somebody(), value: finney(n) }));
    await until("three wait", async () => (await waiting()).length === 3);
    await open("approvals");
    await place("1 of 3");
    const first = await page.locator(".sentence").innerText();
    await page.getByRole("button", { name: "Next", exact: true }).click();
    await place("2 of 3");
    await until("another card", async () => (await page.locator(".sentence").innerText()) !== first);
    await page.getByRole("button", { name: "Reject all" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Reject all" }).click();
    for (const a of await Promise.all(answers)) assert.equal(a.body.error, "Transaction rejected by user");
    assert.deepEqual(await waiting(), []);
  },

  async "what is dangerous needs digits of the address"() {
    allow("pocket money", "--allow-dangerous");
    const to = somebody();
    await node("anvil_setCode", to, "0x00"); // a contract that agrees to everything
    const answer = wants({ to, value: "0", gasLimit: "100000", data: "0xa22cb465" + somebody().slice(2).padStart(64, "0") + "1".padStart(64, "0") });
    const tx = await oneWaits(to);
    assert.equal(tx.class, "dangerous");
    await show(tx.id);
    const button = page.getByRole("button", { name: "Approve" });
    const field = page.getByLabel(/Type digits 17 to 24/);
    await field.fill(to.slice(-4));
    assert.ok(await button.isDisabled());
    const { card } = await api("GET", `/v1/transactions/${tx.id}`);
    await field.fill(card.confirm);
    await until("it can be approved", () => button.isEnabled());
    await page.getByRole("button", { name: "Reject", exact: true }).click();
    await answer;
  },

  async "a message is shown as what it is"() {
    allow("pocket money", "--allow-messages");
    const text = "Sign in <img src=x onerror=window.pwned=1> \u202ekcab";
    const answer = inside(`return rpc({ jsonrpc: "2.0", id: 1, method: "personal_sign", params: ["0x${Buffer.from(text).toString("hex")}", "${world.address}"] })`);
    const tx = await until("it waits", async () => (await waiting()).find((t) => t.kind === "message"));
    await show(tx.id);
    assert.match(await page.getByLabel("What would be signed").innerText(), /^Sign in <img src=x onerror/);
    await safe(page, "a message");
    await page.getByRole("button", { name: "Approve" }).click();
    const { body } = await answer;
    assert.match(body.result ?? JSON.stringify(body), /^0x[0-9a-f]{130}$/);
  },

  async "speed up what is stuck"() {
    allow("pocket money");
    await node("evm_setAutomine", false);
    const to = somebody();
    const answer = wants({ to, value: finney(7) });
    const tx = await oneWaits(to);
    await api("POST", `/v1/transactions/${tx.id}/approve`, { digest: tx.digest });
    await reaches(tx.id, "broadcast");
    await open(`transactions/${tx.id}`);
    await page.getByRole("button", { name: "Speed up" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Speed up" }).click();
    await page.locator(".attempts", { hasText: "attempt 2" }).waitFor();
    await node("evm_mine");
    await node("evm_setAutomine", true);
    await reaches(tx.id, ...DONE);
    await until("confirmations", async () => /Confirmations\s+\d/.test(await page.getByRole("article").innerText()));
    assert.equal((await answer).status, 200);
  },

  async "cancel what was sent"() {
    await node("evm_setAutomine", false);
    const to = somebody();
    const answer = wants({ to, value: finney(8) });
    const tx = await oneWaits(to);
    await api("POST", `/v1/transactions/${tx.id}/approve`, { digest: tx.digest });
    await reaches(tx.id, "broadcast");
    await open(`transactions/${tx.id}`);
    await page.getByRole("button", { name: "Cancel it" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Replace it" }).click();
    await page.locator(".attempts", { hasText: "attempt 2" }).waitFor();
    await node("evm_mine");
    await node("evm_setAutomine", true);
    await answer;
    assert.equal(BigInt(await node("eth_getBalance", to, "latest")), 0n);
  },

  async "the history: filters, paging, files"() {
    await open("transactions");
    await page.getByRole("row", { name: /rejected/ }).first().waitFor();
    await page.getByLabel("State").selectOption("rejected");
    await until("only rejected ones", async () => {
      const states = await page.locator("tbody .badge").allInnerTexts();
      return states.length >= 2 && states.every((s) => s.trim() === "rejected");
    });
    assert.match(page.url(), /state=rejected/, "it can be linked");
    await page.getByLabel("Agent").selectOption(world.agent);
    await page.getByLabel("Chain").selectOption(chain);
    await page.getByRole("row", { name: /rejected/ }).first().waitFor();
    const read = async (name) => {
      const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name }).click()]);
      return readFileSync(await download.path(), "utf8");
    };
    const whole = JSON.parse(await read("JSON")).transactions;
    assert.ok(whole.length >= 2 && whole.every((t) => t.state === "rejected" && t.agent === world.agent));
    const lines = (await read("CSV")).trim().split("\n");
    assert.ok(lines[0].includes("state") && lines.length >= 3, lines[0]);
    await page.getByLabel("State").selectOption("");
    await page.getByRole("row", { name: /payer/ }).first().waitFor();
    await safe(page, "the history");
  },

  async "what cannot be simulated says so"() {
    const card = page.getByRole("article");
    await mood({ without: ["eth_simulateV1", "debug_traceCall"] });
    try {
      const to = somebody();
      const answer = wants({ to, value: finney(4) });
      const tx = await oneWaits(to);
      await show(tx.id);
      await card.locator(".banner.grey", { hasText: "Not simulated: this node has no eth_simulateV1 and no debug_traceCall" }).waitFor();
      await card.getByRole("heading", { name: "What it counts as" }).waitFor();
      assert.match(await card.innerText(), /leaves: 0\.004 tETH/);
      await page.getByRole("button", { name: "Reject", exact: true }).click();
      await answer;
    } finally {
      await mood({});
    }
    const to = somebody();
    const answer = wants({ to, value: finney(4) });
    const tx = await oneWaits(to);
    await show(tx.id);
    await card.getByRole("heading", { name: "What changes in the wallet, by simulation" }).waitFor();
    assert.equal(await card.locator(".banner.grey").count(), 0);
    await page.getByRole("button", { name: "Reject", exact: true }).click();
    await answer;
  },

  async "two people, and a key that is not an administrator's"() {
    allow("pocket money", "--approvers", "2");
    const second = await api("POST", "/v1/keys", { tenant: "default", role: "user", name: `second ${EVIL}` });
    const stranger = await api("POST", "/v1/keys", { tenant: "elsewhere", create_tenant: true, role: "user", name: "stranger" });
    const [theirs, others] = await Promise.all([second, stranger].map(async ({ key }) => {
      const p = watch(await (await browser.newContext({ viewport: { width: 1440, height: 900 } })).newPage());
      await signIn(p, key);
      return p;
    }));
    const to = somebody();
    const answer = wants({ to, value: finney(5) });
    const tx = await oneWaits(to);
    await show(tx.id);
    await page.getByText("0 of 2 approvals are there").waitFor();
    await page.getByRole("button", { name: "Approve" }).click();
    await page.getByText("1 of 2 approvals are there. Yours is one of them").waitFor();
    await api("POST", `/v1/transactions/${tx.id}/approve`, { digest: tx.digest }); // the same person again
    assert.deepEqual([await state(tx.id), (await api("GET", `/v1/transactions/${tx.id}`)).card.approvers.have], ["pending", 1]);

    await open("approvals", others);
    await others.getByText("Nothing waits for you").waitFor();
    await open(`approvals/${tx.id}`, others);
    await others.getByRole("alert").waitFor();
    assert.equal(await others.getByRole("button", { name: "Approve" }).count(), 0, "of another tenant");
    await open("wallets", others);
    await others.getByText("No wallets").waitFor();

    await open("wallets", theirs);
    await theirs.getByRole("row", { name: /^pocket money 0x/ }).waitFor();
    assert.equal(await theirs.getByRole("button", { name: "Connect a wallet" }).count(), 0, "for administrators");
    await show(tx.id, theirs);
    await theirs.getByText("1 of 2 approvals are there").waitFor();
    assert.equal(await theirs.getByRole("button", { name: "Kill switch" }).count(), 0, "for administrators");
    await theirs.getByRole("button", { name: "Approve" }).click();
    assert.equal((await answer).status, 200);
    await reaches(tx.id, ...DONE);
    await page.locator(".decided", { hasText: "Decided by" }).waitFor();
    for (const p of [page, theirs]) await safe(p, "the name of a key");
    await theirs.context().close();
    await others.context().close();
  },

  async "an allowance, before and after, and a note of the owner"() {
    const spender = somebody();
    allow("pocket money", "--reset", "approvers", "--token", `${world.token}:2:COIN=300`, "--to", `${spender}=${EVIL}`);
    const approves = (n) => ({ to: world.token, value: "0", gasLimit: "200000", data: "0x095ea7b3" + spender.slice(2).padStart(64, "0") + n.toString(16).padStart(64, "0") });
    const first = wants(approves(7000));
    const one = await oneWaits(world.token);
    await api("POST", `/v1/transactions/${one.id}/approve`, { digest: one.digest });
    assert.equal((await first).status, 200);
    await reaches(one.id, "confirmed", "final");
    world.allowed = one.id;
    const answer = wants(approves(8050));
    const tx = await oneWaits(world.token);
    await show(tx.id);
    const card = page.getByRole("article");
    await card.getByText("Allowance: 70 COIN → 80.5 COIN").waitFor();
    const text = await card.innerText();
    assert.match(text, new RegExp(`Spender, who may take COIN[\\s\\S]*${spender}`));
    assert.ok(text.toLowerCase().includes(world.token.toLowerCase()), "the token's address is beside its name");
    await page.getByRole("button", { name: "Reject", exact: true }).click();
    await answer;
    const paid = wants({ to: spender, value: finney(1) });
    const pays = await oneWaits(spender);
    await show(pays.id);
    await card.getByText(EVIL).first().waitFor(); // the owner's note about the address
    await safe(page, "names of the owner");
    await page.getByRole("button", { name: "Reject", exact: true }).click();
    await paid;
  },

  async "an allowance is revoked"() {
    await open(`transactions/${world.allowed}`);
    await page.getByRole("button", { name: "Revoke this allowance" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Revoke it" }).click();
    const card = page.getByRole("article");
    await card.getByText("Allowance: 70 COIN → 0 COIN").waitFor(); // the new request, in the queue
    await card.getByText(`revoke ${world.allowed}`).first().waitFor();
    const tx = await oneWaits(world.token);
    await page.getByRole("button", { name: "Approve" }).click();
    await reaches(tx.id, ...DONE);
    await open(`transactions/${world.allowed}`);
    await page.getByRole("button", { name: "Revoke this allowance" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Revoke it" }).click();
    await page.getByText("the allowance is 0 already").first().waitFor();
    await open(`transactions/${tx.id}`);
    await card.locator(".sentence").waitFor();
    assert.equal(await page.getByRole("button", { name: "Revoke this allowance" }).count(), 0, "it gives none");
  },

  async "what a node says is text"() {
    const to = somebody();
    const answer = wants({ to, value: finney(6) });
    const tx = await oneWaits(to);
    await mood({ refuses: ["eth_sendRawTransaction"], says: `${EVIL}\u202e\u0007 backwards` });
    try {
      await api("POST", `/v1/transactions/${tx.id}/approve`, { digest: tx.digest });
      await until("the node's words are known", async () => (await api("GET", `/v1/transactions/${tx.id}`)).card.note?.includes("<img"));
      await open(`transactions/${tx.id}`);
      await page.getByRole("article").locator(".banner", { hasText: "<img src=x onerror" }).waitFor();
      await safe(page, "a node's error");
      await open("transactions");
      await page.getByRole("row", { name: /payer/ }).first().waitFor();
      await safe(page, "a node's error in the list");
    } finally {
      await mood({});
    }
    await reaches(tx.id, ...DONE); // it is sent again
    assert.equal((await answer).status, 200);
  },

  async "limits get stricter here, and no looser"() {
    await open(`agents/${world.agent}`);
    await page.getByRole("button", { name: "Make stricter" }).click();
    const day = page.locator("fieldset", { hasText: "tETH" }).getByLabel("Within 24 hours");
    assert.equal(await day.inputValue(), "3");
    await day.fill("4");
    await page.getByRole("dialog").getByRole("button", { name: "Make stricter" }).click();
    await page.getByRole("alert").filter({ hasText: "only be made smaller" }).waitFor();
    await day.fill("2.5");
    await page.getByRole("dialog").getByRole("button", { name: "Make stricter" }).click();
    await page.getByRole("dialog").waitFor({ state: "detached" });
    await page.getByRole("img", { name: /24 hours: .* of 2\.5 / }).waitFor();
    const { limits } = await api("GET", `/v1/agents/${world.agent}/limits`);
    assert.equal(limits[0].day, String(ETHER * 5n / 2n));
  },

  async "a wallet of the browser sends what was approved"() {
    const [, , , , , account] = await node("eth_accounts");
    paddock("wallet", "external", account, "browser");
    allow("browser", "--reset", "all");
    const p = watch(await context.newPage());
    const asked = [];
    await p.exposeFunction("toNode", async (method, params) => {
      asked.push({ method, params });
      return method === "eth_requestAccounts" ? [account] : node(method, ...params);
    });
    await p.addInitScript(() => {
      let on = "0x1"; // another chain, and it does not know ours yet
      let known = false;
      window.mood = "declines";
      const fails = (code, message) => Promise.reject(Object.assign(new Error(message), { code }));
      const provider = {
        async request({ method, params = [] }) {
          if (method === "eth_chainId") return on;
          if (method === "wallet_switchEthereumChain") return known ? void (on = params[0].chainId) : fails(4902, "Unrecognized chain");
          if (method === "wallet_addEthereumChain") return void ((known = true), (window.added = params[0]));
          if (method === "eth_signTypedData_v4") return window.toNode(method, [params[0], JSON.parse(params[1])]); // anvil wants no text
          if (method === "eth_sendTransaction" && window.mood === "declines") return fails(4001, "User rejected");
          return window.toNode(method, params);
        },
      };
      const icon = "data:image/svg+xml," + encodeURIComponent('<svg xmlns="http://www.w3.org/2000/svg" onload="window.pwned=1"><script>window.pwned=1</script></svg>');
      const announce = () => window.dispatchEvent(new CustomEvent("eip6963:announceProvider", { detail: Object.freeze({ info: { uuid: "350670db-19fa-4704-a166-e52e178b59d2", name: "Test <b>Wallet</b>", rdns: "example.wallet", icon }, provider }) }));
      window.addEventListener("eip6963:requestProvider", announce);
      announce();
    });
    const to = somebody();
    const answer = wants({ to, value: finney(20) });
    const tx = await oneWaits(to);
    await open("wallets", p);
    await p.getByText("Test <b>Wallet</b>").waitFor();
    await show(tx.id, p);
    await p.getByRole("button", { name: "Approve" }).click();
    const send = p.getByRole("button", { name: /Send with Test/ });
    await send.click();
    const url = p.getByLabel(/does not know the chain/);
    await url.fill("http://127.0.0.1:8545");
    await send.click();
    await p.getByRole("alert").filter({ hasText: "You rejected it in the wallet" }).waitFor();
    assert.equal((await p.evaluate(() => window.added)).chainId, "0x7a69");
    assert.equal(await state(tx.id), "awaiting_wallet", "it can be sent again");
    await p.evaluate(() => (window.mood = "agrees"));
    await send.click();
    const { status, body } = await answer;
    assert.equal(status, 200, JSON.stringify(body));
    await reaches(tx.id, ...DONE);
    const sent = asked.filter((c) => c.method === "eth_sendTransaction");
    assert.deepEqual(sent.map((c) => c.params.map((x) => ({ ...x, from: x.from.toLowerCase() }))), [[{ from: account.toLowerCase(), to: tx.to, value: "0x470de4df820000" }]], "exactly what was approved, once");
    await safe(p, "a wallet's words");

    const typed = { types: { EIP712Domain: [{ name: "name", type: "string" }, { name: "chainId", type: "uint256" }, { name: "verifyingContract", type: "address" }], Mail: [{ name: "text", type: "string" }] },
      primaryType: "Mail", domain: { name: "Post", chainId: 31337, verifyingContract: to }, message: { text: `hello ${EVIL}` } };
    allow("browser", "--typed", `${to}:Mail`);
    const signed = inside(`return rpc({ jsonrpc: "2.0", id: 1, method: "eth_signTypedData_v4", params: ["${account}", ${JSON.stringify(JSON.stringify(typed))}] })`);
    const mail = await until("it waits", async () => (await waiting()).find((t) => t.kind === "typed_data"));
    await show(mail.id, p);
    assert.deepEqual(JSON.parse(await p.getByLabel("What would be signed").innerText()), typed);
    await p.getByLabel(/Type digits \d+ to \d+/).fill((await api("GET", `/v1/transactions/${mail.id}`)).card.confirm);
    await p.getByRole("button", { name: "Approve" }).click();
    await p.getByRole("button", { name: /Sign with Test/ }).click();
    const signature = (await signed).body.result;
    assert.match(signature, /^0x[0-9a-f]{130}$/);
    assert.deepEqual(asked.filter((c) => c.method === "eth_signTypedData_v4").map((c) => [c.params[0].toLowerCase(), c.params[1]]), [[account.toLowerCase(), typed]], "exactly what was approved, once");
    assert.equal(signature, await node("eth_signTypedData_v4", account, typed));
    await safe(p, "typed data");
    await p.close();
  },

  async "a wallet elsewhere, by the QR code"() {
    const does = (what) => phone.stdin.write(JSON.stringify(what) + "\n");
    await until("the wallet is ready", () => heard.includes('"ready"'));
    await open("wallets");
    await page.getByRole("button", { name: "Connect a wallet" }).click();
    await page.getByLabel("Name").fill("phone");
    await page.getByRole("button", { name: "Show the QR code" }).click();
    const image = await page.locator(".qr").screenshot(); // what a camera sees
    const seen = await page.evaluate(async (png) => {
      const picture = new Image();
      picture.src = `data:image/png;base64,${png}`;
      await picture.decode();
      const canvas = Object.assign(document.createElement("canvas"), { width: picture.width, height: picture.height });
      const c = canvas.getContext("2d");
      c.drawImage(picture, 0, 0);
      const { data } = c.getImageData(0, 0, picture.width, picture.height);
      let dark = ""; // a bit for each pixel: as numbers they would take seconds on their way
      for (let i = 0; i < data.length; i += 4) dark += data[i] < 128 ? "1" : "0";
      return { width: picture.width, height: picture.height, dark };
    }, image.toString("base64"));
    const jsqr = createRequire(join(world.wallets, "node_modules", "x.js"))("jsqr");
    const pixels = Uint8ClampedArray.from([...seen.dark].flatMap((bit) => (bit === "1" ? [0, 0, 0, 255] : [255, 255, 255, 255])));
    const uri = (jsqr.default ?? jsqr)(pixels, seen.width, seen.height)?.data;
    assert.equal(uri, await page.getByLabel("Pairing URI", { exact: true }).innerText());
    does({ do: "pair", uri });
    await page.getByRole("dialog").waitFor({ state: "detached" });
    const row = page.getByRole("row", { name: /Test Wallet https:\/\/wallet\.example/ });
    await row.waitFor();
    assert.match(await row.innerText(), /6d 23h|7d 0h/);
    await page.getByRole("row", { name: /^phone 0x7099/ }).waitFor();
    allow("phone");
    does({ do: "mode", to: "hold" });
    const to = somebody();
    const answer = wants({ to, value: finney(30) });
    const tx = await oneWaits(to);
    await show(tx.id);
    await page.getByRole("button", { name: "Approve" }).click();
    await page.getByText("was sent to Test Wallet by WalletConnect").waitFor();
    await until("the wallet has the request", () => heard.includes('"eth_sendTransaction"'));
    does({ do: "release", to: "approve" });
    assert.equal((await answer).status, 200);
    await page.locator(".decided").waitFor();
    await reaches(tx.id, ...DONE);
    await open("wallets");
    await row.getByRole("button", { name: "Disconnect" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Disconnect" }).click();
    await page.getByText("No wallet is connected").waitFor();
  },

  async "the kill switch"() {
    allow("pocket money");
    await open("approvals");
    await page.getByRole("button", { name: "Kill switch" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Stop all signing" }).click();
    await page.locator(".banner.red", { hasText: "sudo paddock wallet resume" }).waitFor();
    assert.equal((await api("GET", "/v1/signer")).paused, true);
    assert.equal((await wants({ to: somebody(), value: finney(1) })).status, 403);
    paddock("wallet", "resume");
    await page.reload();
    await page.getByRole("button", { name: "Kill switch" }).waitFor();
    await page.locator(".banner.red").waitFor({ state: "detached" });
  },

  async "pause one agent"() {
    const to = somebody();
    const answer = wants({ to, value: finney(3) });
    const tx = await oneWaits(to);
    await show(tx.id);
    await page.getByRole("button", { name: "Pause this agent" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Pause the agent" }).click();
    await until("it is paused", async () => (await api("GET", `/v1/agents/${world.agent}/limits`)).paused);
    await page.getByRole("button", { name: "Reject", exact: true }).click();
    await answer;
    await open(`agents/${world.agent}`);
    await page.locator(".banner", { hasText: "Spending is paused" }).waitFor();
  },

  async "no serious finding of axe, and nothing wider than a phone"() {
    const findings = [];
    const places = ["agents", `agents/${world.agent}`, "approvals", "transactions", "wallets"];
    for (const scheme of ["light", "dark"]) {
      await page.emulateMedia({ colorScheme: scheme, reducedMotion: "reduce" });
      for (const where of places) {
        await open(where);
        await page.getByRole("heading", { level: 1 }).waitFor();
        await shown(page);
        findings.push(...(await it.findings(page, `${scheme} /${where}`, scheme === "light" ? undefined : { runOnly: ["color-contrast"] })));
      }
    }
    await page.emulateMedia({ colorScheme: "light" });
    await page.setViewportSize({ width: 390, height: 844 });
    for (const where of places) {
      await open(where);
      await page.getByRole("heading", { level: 1 }).waitFor();
      await shown(page);
      const wide = await page.evaluate(() => document.querySelector("main").scrollWidth - document.querySelector("main").clientWidth);
      if (wide > 0) findings.push(`/${where} is ${wide} pixels too wide`);
    }
    await page.setViewportSize({ width: 1440, height: 900 });
    assert.deepEqual(findings, []);
  },

  async "nothing was refused by the page's policy"() {
    assert.deepEqual([...new Set(complaints)], []);
  },
};

await it.run(scenarios, (error) => error && !world.allowed); // without limits nothing that follows makes sense
process.exit(0);
