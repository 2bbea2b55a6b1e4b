// Measures the dashboard in Chromium: node figures.mjs MODULES URL KEY BOX. Prints one JSON object.
import { createRequire } from "node:module";
import { join } from "node:path";

const [, , modules, url, key, box] = process.argv;
const { chromium } = createRequire(join(modules, "x.js"))("playwright-core");
const middle = (list) => list.sort((a, b) => a - b)[Math.floor(list.length / 2)];

async function open(...args) {
  const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox", ...args] });
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 } });
  return { browser, context, page: await context.newPage() };
}

async function signIn(page) {
  await page.goto(url);
  await page.getByLabel("Key", { exact: true }).fill(key);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.locator("canvas").first().waitFor(); // a chart of the overview
}

const { browser, context, page } = await open();

// ---- the first page: what is sent for it ----
const cdp = await context.newCDPSession(page);
await cdp.send("Network.enable");
const sent = new Map();
cdp.on("Network.responseReceived", (e) => sent.set(e.requestId, { url: e.response.url, bytes: 0 }));
cdp.on("Network.loadingFinished", (e) => sent.has(e.requestId) && (sent.get(e.requestId).bytes = e.encodedDataLength));
await signIn(page);
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
for (let i = 0; i < 5; i++) {
  await page.goto("about:blank");
  await page.goto(`${url}/#/sandboxes`);
  paints.push(await (await page.waitForFunction(() => window.painted)).jsonValue());
  rows = Number((await page.locator(".nav-count").innerText()).replace(/\D/g, ""));
}

// ---- the terminal: from the key to what xterm has made of its echo ----
async function echoes(page) {
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
  // Beside it the same without xterm: what the server and the shell take of it, on this machine, now.
  await page.evaluate(async (id) => {
    const socket = new WebSocket(`${location.origin.replace("http", "ws")}/v1/sandboxes/${id}/terminal?cols=80&rows=24`);
    socket.binaryType = "arraybuffer";
    const next = () => new Promise((done) => (socket.onmessage = (e) => typeof e.data !== "string" && done()));
    await next(); // the prompt
    window.bare = async () => {
      const began = performance.now();
      const echoed = next();
      socket.send(new TextEncoder().encode("x"));
      await echoed;
      return performance.now() - began;
    };
  }, box);
  const bare = [];
  for (let i = 1; i <= 30; i++) {
    await new Promise((done) => setTimeout(done, Math.random() * 50)); // people do not type in step with the screen
    await page.keyboard.press("x");
    await page.waitForFunction((n) => window.echo.rendered.length >= n, i);
    bare.push(await page.evaluate(() => window.bare()));
  }
  const { parsed, rendered } = await page.evaluate(() => window.echo);
  return { parsed: middle(parsed), rendered: middle(rendered), bare: middle(bare) };
}

// After a key in a text field Chromium holds all other work of a page back until the next frame, half of one on average: that is
// not the page's. So it is measured without this, too.
const usual = await echoes(page);
await browser.close();
const other = await open("--disable-features=DeferRendererTasksAfterInput");
await signIn(other.page);
const own = await echoes(other.page);
await other.browser.close();

console.log(JSON.stringify({
  first_page_bytes: files.reduce((n, f) => n + f.bytes, 0), files: files.length,
  sandboxes: rows, list_first_ms: paints[0], list_ms: middle(paints),
  echo_ms: usual.parsed, echo_rendered_ms: usual.rendered, echo_bare_ms: own.bare, echo_own_ms: own.parsed, echo_own_rendered_ms: own.rendered,
}));
