// Measures the dashboard in Chromium: node figures.mjs MODULES URL KEY BOX. Prints one JSON object.
import { createRequire } from "node:module";
import { join } from "node:path";

const [, , modules, url, key, box] = process.argv;
const { chromium } = createRequire(join(modules, "x.js"))("playwright-core");
const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox"] });
const context = await browser.newContext({ viewport: { width: 1440, height: 900 } });
const page = await context.newPage();
const middle = (list) => list.sort((a, b) => a - b)[Math.floor(list.length / 2)];

// ---- the first page: what is sent for it ----
const cdp = await context.newCDPSession(page);
await cdp.send("Network.enable");
const sent = new Map();
cdp.on("Network.responseReceived", (e) => sent.set(e.requestId, { url: e.response.url, bytes: 0 }));
cdp.on("Network.loadingFinished", (e) => sent.has(e.requestId) && (sent.get(e.requestId).bytes = e.encodedDataLength));
await page.goto(url);
await page.getByLabel("Key", { exact: true }).fill(key);
await page.getByRole("button", { name: "Sign in" }).click();
await page.locator("canvas").first().waitFor(); // a chart of the overview
const files = [...sent.values()].filter((f) => f.url === `${url}/` || f.url.includes("/assets/"));

// ---- the list: from the navigation to the frame that has it ----
await context.addInitScript(() => {
  const watch = new MutationObserver(() => {
    if (window.painted !== undefined || !document.querySelector(".vrow")) return;
    window.painted = null;
    requestAnimationFrame(() => setTimeout(() => (window.painted = performance.now())));
  });
  watch.observe(document, { childList: true, subtree: true });
});
const paints = [];
let rows = 0;
for (let i = 0; i < 7; i++) {
  await page.goto("about:blank");
  await page.goto(`${url}/#/sandboxes`);
  paints.push(await (await page.waitForFunction(() => window.painted)).jsonValue());
  rows = Number((await page.locator(".nav-count").innerText()).replace(/\D/g, ""));
}

// ---- the terminal: from the key to what xterm has made of its echo ----
await page.goto(`${url}/#/sandboxes/${box}/terminal`);
await page.locator(".term-host[data-state=open]").waitFor();
await page.locator(".term-host").click();
await page.waitForFunction(() => document.querySelector(".term-host").paddock.text().length > 0); // the prompt
await page.evaluate(() => {
  const { term } = document.querySelector(".term-host").paddock;
  const now = (window.echo = { at: 0, parsed: [], rendered: [] });
  addEventListener("keydown", (e) => (now.at = e.timeStamp), true);
  term.onWriteParsed(() => now.at && now.parsed.push(performance.now() - now.at));
  term.onRender(() => {
    if (!now.at || now.parsed.length === now.rendered.length) return;
    now.rendered.push(performance.now() - now.at);
    now.at = 0;
  });
});
for (let i = 1; i <= 60; i++) {
  await page.keyboard.press("x");
  await page.waitForFunction((n) => window.echo.rendered.length >= n, i);
}
const echo = await page.evaluate(() => window.echo);
console.log(JSON.stringify({
  first_page_bytes: files.reduce((n, f) => n + f.bytes, 0), files: files.length,
  sandboxes: rows, list_first_ms: paints[0], list_ms: middle(paints),
  echo_ms: middle(echo.parsed), echo_rendered_ms: middle(echo.rendered),
}));
await browser.close();
