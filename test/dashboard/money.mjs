// Drives the pages about agents and money in Chromium: node money.mjs WORLD, a JSON object. Prints one JSON line for each scenario,
// in order; each goes on where the one before stopped, as a person would.
import assert from "node:assert/strict";
import { join } from "node:path";
import { mkdirSync } from "node:fs";
import { launch } from "./browser.mjs";

const world = JSON.parse(process.argv[2]);
const { url, chain } = world;
const it = await launch(world.modules, url, world.key, world.shots);
const { browser, context, page, complaints, api, watch, until, signIn, shown } = it;

const open = (where, p = page) => p.goto(`${url}/#/${where}`);
const status = async () => (await api("GET", `/v1/agents/${world.agent}`)).status;
const shot = (name) => (mkdirSync(world.shots, { recursive: true }), page.screenshot({ path: join(world.shots, `${name}.png`), fullPage: true }));

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
    assert.match(await asks.innerText(), /Says hello\. <img src=x onerror/, "as text");
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

await it.run(scenarios);
