// What the walks through the dashboard share: Chromium, a page that is watched, the REST API beside it, and scenarios of which
// each prints one JSON line.
import { createRequire } from "node:module";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import assert from "node:assert/strict";

const PATIENCE = 60000;

export async function until(what, condition, limit = PATIENCE) {
  for (const end = Date.now() + limit; ; await new Promise((r) => setTimeout(r, 40))) {
    const value = await condition();
    if (value) return value;
    assert.ok(Date.now() < end, `still not: ${what}`);
  }
}

export async function shown(p) {
  await p.waitForFunction(() => !document.querySelector(".skeleton"));
}

export async function launch(modules, url, key, shots, options = {}) {
  const require = createRequire(join(modules, "x.js"));
  const { chromium } = require("playwright-core");
  const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
  const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox"] });
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, acceptDownloads: true, colorScheme: "light", ...options });
  const complaints = [];

  async function api(method, path, body) {
    const r = await fetch(url + path, { method, headers: { Authorization: `Bearer ${key}`, ...(body === undefined ? {} : { "Content-Type": "application/json" }) }, body: body === undefined ? undefined : JSON.stringify(body) });
    assert.ok(r.ok, `${method} ${path}: ${r.status} ${await r.clone().text()}`);
    const text = await r.text();
    return text ? JSON.parse(text) : undefined;
  }

  function watch(p) {
    p.setDefaultTimeout(PATIENCE);
    p.on("pageerror", (e) => complaints.push(`error in the page: ${e.message}`));
    p.on("console", (m) => {
      if (/Content Security Policy|Refused to/.test(m.text())) complaints.push(m.text().slice(0, 300));
    });
    return p;
  }

  async function signIn(p, by = key) {
    await p.goto(url);
    await p.getByLabel("Key", { exact: true }).fill(by);
    await p.getByRole("button", { name: "Sign in" }).click();
    await p.locator("main#main").waitFor();
  }

  // What axe calls serious or critical on the page as it is.
  async function findings(p, where, how = { rules: { region: { enabled: false } } }) {
    if (!(await p.evaluate(() => "axe" in window))) await p.evaluate(axe);
    const result = await p.evaluate((h) => window.axe.run({ exclude: [[".xterm-rows"]] }, { // the colours there are a program's
      resultTypes: ["violations"], ...h }), how);
    return result.violations.filter((v) => ["serious", "critical"].includes(v.impact)).map((v) => `${where}: ${v.id}: ${v.nodes.map((n) => n.target.join(" ")).slice(0, 3).join(" | ")}`);
  }

  const page = watch(await context.newPage());

  // A promise that nobody waits for, such as a handler of a page that is gone, must not end the walk: it fails the step that it belongs to.
  const loose = [];
  process.on("unhandledRejection", (e) => loose.push(e));

  async function run(scenarios, ends) {
    for (const [name, scenario] of Object.entries(scenarios)) {
      const began = Date.now();
      let error = null;
      try {
        await scenario();
        await new Promise((r) => setImmediate(r));
        if (loose.length) throw loose[0];
      } catch (e) {
        error = String(e.stack ?? e).slice(0, 2000);
        if (shots) {
          mkdirSync(shots, { recursive: true });
          await page.screenshot({ path: join(shots, `${name.replace(/\W+/g, "-")}.png`) }).catch(() => {});
          writeFileSync(join(shots, `${name.replace(/\W+/g, "-")}.txt`), `${page.url()}\n${error}`);
        }
      }
      loose.length = 0;
      console.log(JSON.stringify({ name, ms: Date.now() - began, error }));
      if (ends?.(error)) break;
    }
    await browser.close().catch(() => {});
  }

  return { require, browser, context, page, complaints, api, watch, until, signIn, shown, findings, run };
}
