// Drives the documentation in Chromium: node docs_walk.mjs MODULES URL PAGES. Prints one JSON line for each scenario.
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import assert from "node:assert/strict";

const [, , modules, url, list] = process.argv;
const pages = JSON.parse(list);
const require = createRequire(join(modules, "x.js"));
const { chromium } = require("playwright-core");
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");

const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox"] });
const complaints = [];

async function open(path, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, colorScheme: "light", ...options });
  const page = await context.newPage();
  page.setDefaultTimeout(30000);
  page.on("pageerror", (e) => complaints.push(`error in the page: ${e.message}`));
  page.on("console", (m) => {
    if (/Content Security Policy|Refused to/.test(m.text())) complaints.push(m.text().slice(0, 300));
  });
  page.on("request", (r) => {
    if (!r.url().startsWith(url) && !r.url().startsWith("data:")) complaints.push(`a request to ${r.url()}`);
  });
  await page.goto(url + path);
  return page;
}

const results = (page) => page.locator("#site-results li[data-url]");

async function search(page, words) {
  await page.getByRole("combobox").fill(words);
  await results(page).first().waitFor();
  return results(page).evaluateAll((items) => items.map((item) => ({ url: item.dataset.url, title: item.querySelector(".title").textContent })));
}

const scenarios = {
  async "search by keyboard"() {
    const page = await open("/docs");
    await page.keyboard.press("/");
    assert.equal(await page.evaluate(() => document.activeElement.id), "site-query");
    assert.equal(await page.getByRole("combobox").inputValue(), "", "the key itself is not typed");
    await page.keyboard.type("workspace");
    await results(page).nth(2).waitFor();
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("ArrowUp");
    const chosen = page.locator('#site-results [aria-selected="true"]');
    assert.equal(await chosen.count(), 1);
    assert.equal(await chosen.getAttribute("id"), await page.getByRole("combobox").getAttribute("aria-activedescendant"));
    const target = await chosen.getAttribute("data-url");
    await page.keyboard.press("Enter");
    await page.waitForURL(url + target);
    await page.keyboard.press("/");
    await page.keyboard.type("quota");
    await results(page).first().waitFor();
    await page.keyboard.press("Escape");
    assert.ok(await page.locator("#site-results").isHidden());
    await page.context().close();
  },

  async "headings come before text"() {
    const page = await open("/docs/quick-start");
    for (const [words, want] of [["max.body_bytes", "/docs/configuration#max.body_bytes"], ["create a sandbox", "/docs/api/sandboxes#createSandbox"], ["paddock open", "/docs/cli#open"],
      ["Grafana", "/docs/metrics#grafana"], ["restore", "/docs/tasks/production#restore"], ["glossary", "/docs/glossary"]]) {
      const found = await search(page, words);
      assert.ok(found.slice(0, 3).some((hit) => hit.url === want), `${words}: ${JSON.stringify(found.slice(0, 3))}`);
    }
    const words = "egress";
    const found = await search(page, words), first = found.findIndex((hit) => !hit.title.toLowerCase().includes(words));
    assert.ok(found.length > 5 && (first < 0 || !found.slice(first).some((hit) => hit.title.toLowerCase().split(/\W+/).includes(words))), JSON.stringify(found));
    await page.getByRole("combobox").fill("<img src=x onerror=alert(1)> zzzz");
    await page.getByText("Nothing has all of these words.").waitFor();
    await page.context().close();
  },

  async "code is copied"() {
    const page = await open("/docs/rest", { permissions: ["clipboard-read", "clipboard-write"] });
    const block = page.locator(".code").first();
    await block.hover();
    await block.getByRole("button", { name: "Copy" }).click();
    await block.getByRole("button", { name: "Copied" }).waitFor();
    assert.equal(await page.evaluate(() => navigator.clipboard.readText()), await block.locator("pre").textContent());
    await page.context().close();
  },

  async "light and dark"() {
    const page = await open("/docs", { colorScheme: "dark" });
    const theme = () => page.evaluate(() => [document.documentElement.dataset.theme, getComputedStyle(document.body).backgroundColor]);
    const dark = await theme();
    assert.equal(dark[0], "dark");
    await page.getByRole("button", { name: "Light" }).click();
    const light = await theme();
    assert.ok(light[0] === "light" && light[1] !== dark[1]);
    await page.goto(url + "/docs/glossary");
    assert.deepEqual(await theme(), light, "it is kept, also for the dashboard");
    assert.equal(await page.evaluate(() => localStorage.getItem("theme")), "light");
    await page.context().close();
  },

  async "headings have addresses"() {
    const page = await open("/docs/egress");
    const heading = page.locator("h2").nth(1);
    await heading.hover();
    await heading.getByRole("link").click();
    assert.equal(new URL(page.url()).hash, "#" + (await heading.getAttribute("id")));
    const top = (await heading.boundingBox()).y;
    assert.ok(top >= 50 && top < 200, `below the bar: ${top}`);
    await page.getByRole("link", { name: /^Next/ }).click();
    await page.waitForURL(url + "/docs/secrets");
    await page.context().close();
  },

  async "on a phone"() {
    const page = await open("/docs", { viewport: { width: 390, height: 844 } });
    const tree = page.getByRole("navigation", { name: "Documentation" });
    assert.ok(await tree.isHidden());
    await page.getByRole("button", { name: "Menu" }).click();
    await tree.getByText("Operations").click();
    await tree.getByRole("link", { name: "Metrics" }).click();
    await page.waitForURL(url + "/docs/metrics");
    await search(page, "histogram");
    assert.ok((await page.locator("#site-results").boundingBox()).width <= 390);
    await page.context().close();
  },

  async "no page is wider than a phone"() {
    const page = await open("/docs", { viewport: { width: 390, height: 844 } });
    for (const path of pages) {
      await page.goto(url + path, { waitUntil: "domcontentloaded" });
      const wide = await page.evaluate(() => document.documentElement.scrollWidth);
      assert.ok(wide <= 390, `${path}: ${wide}`);
    }
    await page.context().close();
  },

  async "without scripts"() {
    const page = await open("/docs/egress", { javaScriptEnabled: false, viewport: { width: 390, height: 844 } });
    assert.ok(await page.getByRole("heading", { level: 1 }).isVisible());
    assert.ok(await page.getByRole("link", { name: "Quick start" }).isVisible());
    assert.ok(await page.locator(".search").isHidden(), "what needs scripts is not shown");
    await page.context().close();
  },

  async "accessible"() {
    const found = [];
    for (const [width, colorScheme, paths] of [[1440, "light", ["/docs/quick-start", "/docs/api/exec", "/docs/nothing"]], [390, "dark", ["/docs/dashboard", "/docs/errors"]]]) {
      const page = await open("/docs", { viewport: { width, height: 900 }, colorScheme });
      for (const path of paths) {
        await page.goto(url + path);
        if (path === paths[0]) await search(page, "sandbox"); // the list is open
        await page.evaluate(axe);
        const run = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
        found.push(...run.violations.filter((v) => ["serious", "critical"].includes(v.impact)).map((v) => `${path} ${width} ${v.id}: ${v.nodes[0].html.slice(0, 120)}`));
      }
      await page.context().close();
    }
    assert.deepEqual(found, []);
  },

  async "nothing was refused"() {
    assert.deepEqual(complaints, []);
  },
};

for (const [name, run] of Object.entries(scenarios)) {
  const start = Date.now();
  let error = null;
  try {
    await run();
  } catch (e) {
    error = String(e.stack ?? e).slice(0, 3000);
  }
  console.log(JSON.stringify({ name, ms: Date.now() - start, error }));
}
await browser.close();
