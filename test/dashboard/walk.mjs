// Drives the dashboard in Chromium: node walk.mjs MODULES URL KEY. Prints one JSON line for each scenario, in order; each
// goes on where the one before stopped, as a person would.
import { mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import assert from "node:assert/strict";
import { launch } from "./browser.mjs";

const [, , modules, url, key, shots] = process.argv;
const it = await launch(modules, url, key, shots);
const { browser, context, page, complaints, api, watch, until, signIn, shown } = it;
let box; // that the walk is about

const terminal = (p) => p.locator(".term:not([hidden]) .term-host");
const screen = (p) => terminal(p).evaluate((el) => el.paddock.text());
const open = (tab) => page.goto(`${url}/#/sandboxes/${box.id}/${tab}`);

async function type(p, text) {
  await terminal(p).click();
  await p.keyboard.type(text);
  await p.keyboard.press("Enter");
}

// ---- the walk ----

const scenarios = {
  async "a wrong key is refused"() {
    await page.goto(url);
    await page.getByLabel("Key", { exact: true }).fill("pdk_" + "0".repeat(40));
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByText("this is not a valid key").waitFor();
  },

  async "sign in"() {
    await signIn(page);
    const cookies = await context.cookies();
    assert.ok(cookies.length === 1 && cookies[0].httpOnly && cookies[0].sameSite === "Strict");
    assert.equal(await page.evaluate(() => document.cookie), "");
    const kept = await page.evaluate(() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }]));
    assert.ok(!kept.includes(key), "the key is not kept");
  },

  async "the first start shows what to do"() {
    await page.getByRole("heading", { name: "Welcome to Paddock" }).waitFor();
    const snippets = await page.locator(".snippet pre").allTextContents();
    assert.equal(snippets.length, 3);
    assert.ok(snippets.every((s) => s.includes(url)), "with this installation's address");
  },

  async "a sandbox in one click"() {
    await page.getByRole("button", { name: "Open a sandbox" }).click();
    await page.waitForURL(/#\/sandboxes\/[a-z0-9]{20}$/);
    box = await api("GET", `/v1/sandboxes/${page.url().split("/").pop()}`);
    assert.equal(box.status, "running");
    await page.locator(".term-host[data-state=open]").waitFor();
  },

  async "type in the terminal"() {
    await type(page, "echo $((6*7))-answer");
    await until("the answer", async () => /^42-answer$/m.test(await screen(page)));
    await page.getByRole("button", { name: "New terminal" }).click();
    await page.locator(".term:not([hidden]) .term-host[data-state=open]").waitFor();
    await type(page, "echo second-$((1+1))");
    await until("the second terminal", async () => /^second-2$/m.test(await screen(page)));
    await page.getByRole("button", { name: "Shell 1", exact: true }).click();
    assert.match(await screen(page), /^42-answer$/m);
  },

  async "a lost connection loses no byte"() {
    await type(page, "clear; for i in $(seq 1 120); do echo line-$i-; sleep 0.004; done; echo END-$((1+1))");
    for (const mark of [20, 55, 90]) {
      await until(`line ${mark}`, async () => (await screen(page)).includes(`line-${mark}-`));
      await terminal(page).evaluate((el) => el.paddock.drop());
    }
    await until("the end", async () => /^END-2$/m.test(await screen(page)));
    const found = (await screen(page)).match(/^line-\d+-$/gm);
    assert.deepEqual(found, Array.from({ length: 120 }, (_, i) => `line-${i + 1}-`), "each line once, in order");
    await page.reload();
    await page.locator(".term:not([hidden]) .term-host[data-state=open]").waitFor();
    await until("what was there before the reload", async () => /^END-2$/m.test(await screen(page)));
    assert.equal(await page.locator(".term-tab").count(), 2);
  },

  async "edit and download a file"() {
    await open("files");
    await page.getByLabel("Files to upload").setInputFiles({ name: "hello.py", mimeType: "text/x-python", buffer: Buffer.from("print('old') # note\n") });
    await page.getByRole("treeitem", { name: /hello\.py/ }).click();
    const editor = page.getByLabel("Content of /workspace/hello.py");
    await until("the content", async () => (await editor.inputValue()) === "print('old') # note\n");
    assert.ok((await page.locator(".hl-string").count()) && (await page.locator(".hl-comment").count()), "in colours");
    await editor.fill("print('new')\n");
    await editor.press("Control+s");
    await until("the file in the sandbox", async () => {
      const r = await fetch(`${url}/v1/sandboxes/${box.id}/files/workspace/hello.py`, { headers: { Authorization: `Bearer ${key}` } });
      return (await r.text()) === "print('new')\n";
    });
    const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Download" }).click()]);
    assert.equal(download.suggestedFilename(), "hello.py");
    const place = join(mkdtempSync(join(tmpdir(), "dash-")), "hello.py");
    await download.saveAs(place);
    assert.equal(readFileSync(place, "utf8"), "print('new')\n");
  },

  async "drop files to upload them"() {
    const dropped = await page.evaluateHandle(() => {
      const d = new DataTransfer();
      d.items.add(new File(["x".repeat(3_000_000)], "dropped.bin"));
      d.items.add(new File(["small"], "<b>dropped.txt"));
      return d;
    });
    await page.evaluate(() => {
      window.bars = new Set();
      new MutationObserver(() => document.querySelectorAll(".upload progress").forEach((p) => window.bars.add(p.getAttribute("aria-label")))).observe(document.body, { childList: true, subtree: true });
    });
    await page.locator(".files").dispatchEvent("drop", { dataTransfer: dropped });
    await page.getByRole("treeitem", { name: /<b>dropped/ }).waitFor();
    const there = await api("POST", `/v1/sandboxes/${box.id}/exec`, { command: "cd /workspace; stat -c %s dropped.bin; cat '<b>dropped.txt'" });
    assert.equal(there.stdout, "3000000\nsmall");
    assert.ok((await page.evaluate(() => window.bars.size)) >= 1, "with progress");
  },

  async "a cell with a chart"() {
    await open("code");
    await page.getByLabel("Code of cell 1").fill("import matplotlib.pyplot as plt\nplt.plot([1, 4, 9])\nplt.show()\nprint('drawn')");
    await page.getByLabel("Code of cell 1").press("Shift+Enter");
    await page.locator(".cell[data-state=done]").waitFor({ timeout: 60000 });
    const image = page.locator(".out.result img").first();
    await until("the picture", () => image.evaluate((el) => el.complete && el.naturalWidth > 100));
    await page.locator(".out.stdout", { hasText: "drawn" }).waitFor();
  },

  async "processes and ports with a preview"() {
    await open("processes");
    await page.getByLabel("Start a process").fill("mkdir -p /tmp/www; cd /tmp/www; echo '<h1 id=x>from the sandbox</h1>' > index.html; exec python3 -m http.server 8000");
    await page.getByRole("button", { name: "Start", exact: true }).click();
    await open("ports");
    await page.getByRole("button", { name: "Preview" }).first().click();
    await page.frameLocator("iframe.preview").getByText("from the sandbox").waitFor();
  },

  async "a live chart moves"() {
    await page.goto(`${url}/#/`);
    const chart = page.getByRole("img", { name: /^Sandboxes:/ });
    await chart.waitFor();
    const before = { text: await chart.getAttribute("aria-label"), points: Number(await chart.getAttribute("data-points")) };
    const more = await Promise.all([1, 2, 3].map((i) => api("POST", "/v1/sandboxes", { name: `chart-${i}`, metadata: { walk: "chart" } })));
    await until("another figure", async () => (await chart.getAttribute("aria-label")) !== before.text && Number(await chart.getAttribute("data-points")) > before.points);
    for (const b of more) await page.locator(".lines a", { hasText: b.name }).first().waitFor();
  },

  async "search, filter, and delete many"() {
    await page.goto(`${url}/#/sandboxes`);
    await page.getByLabel("Search sandboxes").fill("walk=chart");
    await until("three rows", async () => (await page.locator(".vrow").count()) === 3);
    assert.match(page.url(), /q=walk/, "it can be linked");
    await page.getByLabel("Select all").click();
    await page.getByRole("button", { name: "Pause", exact: true }).click();
    await until("they are paused", async () => (await page.locator(".vrow .badge.paused").count()) === 3);
    await page.getByLabel("Select all").click();
    await page.getByRole("button", { name: "Delete", exact: true }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
    await page.getByText("No sandbox matches").waitFor();
    assert.equal((await api("GET", "/v1/sandboxes?metadata.walk=chart")).sandboxes.length, 0);
  },

  async "allow a host that was denied"() {
    await api("POST", `/v1/sandboxes/${box.id}/exec`, { command: "curl -s -m 5 http://denied.example/ || true" });
    await open("egress");
    await page.getByRole("button", { name: "Allow denied.example" }).first().click();
    await page.locator(".chip.good", { hasText: "denied.example" }).waitFor();
    const rules = (await api("GET", `/v1/sandboxes/${box.id}/egress`)).policy.rules;
    assert.ok(rules.some((r) => r.action === "allow" && r.host === "denied.example"));
  },

  async "fork"() {
    await open("tree");
    await page.getByRole("button", { name: "Take a snapshot" }).click();
    await page.locator(".leaf", { hasText: "snapshot" }).waitFor();
    await page.locator(".card").getByRole("button", { name: "Fork" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Fork" }).click();
    await until("the page of the fork", () => !page.url().includes(box.id) && /sandboxes\/[a-z0-9]{20}/.test(page.url()));
    const id = page.url().split("/").pop();
    await open("tree");
    await page.locator(".lineage ul a", { hasText: id }).waitFor();
    await api("DELETE", `/v1/sandboxes/${id}`);
  },

  async "build a template, read its log, use it"() {
    await page.goto(`${url}/#/images`);
    await page.getByRole("button", { name: "Build a template" }).click();
    await page.getByLabel("Name", { exact: false }).fill("walk-tools");
    await page.getByLabel("Steps", { exact: true }).fill("FROM scratch\nCOPY a b\n");
    await page.getByRole("button", { name: "Build", exact: true }).click();
    await page.getByText("COPY needs files beside the text").waitFor();
    await page.getByLabel("Steps", { exact: true }).fill(`# a comment
RUN echo from-\\
  the-build && \\
    echo '<img src=x onerror=window.pwned=1>'
ENV COLOUR="light blue"
RUN ["sh", "-c", "echo made > /workspace/made"]
`);
    await page.getByRole("button", { name: "Build", exact: true }).click();
    await page.locator(".log", { hasText: "The template is ready" }).waitFor();
    assert.match(await page.locator(".log").innerText(), /onerror/);
    assert.equal(await page.evaluate(() => window.pwned), undefined);
    await page.getByRole("button", { name: "Close" }).click();
    const row = page.getByRole("row", { name: /walk-tools/ });
    await row.locator(".badge.ready").waitFor();
    await row.getByRole("button", { name: "New sandbox" }).click();
    await page.waitForURL(/#\/sandboxes\/[a-z0-9]{20}$/);
    const id = page.url().split("/").pop();
    const done = await api("POST", `/v1/sandboxes/${id}/exec`, { command: "cat /workspace/made; echo $COLOUR" });
    assert.equal(done.stdout, "made\nlight blue\n");
    await api("DELETE", `/v1/sandboxes/${id}`);
    await page.goto(`${url}/#/images`);
    await page.getByRole("button", { name: "Delete walk-tools" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
    await page.getByText("No templates").waitFor();
  },

  async "who did what"() {
    await page.goto(`${url}/#/audit`);
    await page.getByRole("row", { name: /template\.delete/ }).first().waitFor();
    await page.getByLabel("Area").selectOption("policy");
    const row = page.getByRole("row", { name: /policy\.rule/ }).first();
    assert.match(await row.innerText(), /dashboard[\s\S]*denied\.example/, "by the page, and what was allowed");
    assert.match(page.url(), /area=policy/, "it can be linked");
    await api("PUT", "/v1/secrets/walk", { value: "never-to-be-shown" });
    await page.getByLabel("Area").selectOption("secret");
    await page.getByRole("row", { name: /secret\.set/ }).first().waitFor();
    assert.ok(!(await page.content()).includes("never-to-be-shown"));
    await api("DELETE", "/v1/secrets/walk");
    await page.getByRole("tab", { name: "Sandbox events" }).click();
    await page.getByRole("row", { name: /forked/ }).first().waitFor();
  },

  async "charts show the past at once"() {
    await until("two samples", async () => (await api("GET", "/dashboard/trend")).samples.length >= 2);
    const p = watch(await context.newPage());
    await p.route(/\/metrics$/, () => {}); // no sample of the page's own
    await p.goto(`${url}/#/`);
    const chart = p.getByRole("img", { name: /^Sandboxes:/ });
    await chart.waitFor();
    assert.ok(Number(await chart.getAttribute("data-points")) >= 2);
    await p.close();
  },

  async "the palette by keyboard"() {
    await page.goto(`${url}/#/`);
    await page.getByRole("heading", { name: "Overview" }).waitFor();
    await page.keyboard.press("Control+k");
    await page.getByRole("combobox").fill("tenants");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "Tenants & keys" }).waitFor();
  },

  async "every page shows something and no error"() {
    await api("POST", "/v1/workspaces", { name: "walk" });
    for (const p of ["workspaces", "images", "usage", "audit", "pool", "tenants", "settings", "start", ...["metrics", "events", "secrets", "details"].map((t) => `sandboxes/${box.id}/${t}`)]) {
      await page.goto(`${url}/#/${p}`);
      await page.getByRole("heading", { level: 1 }).waitFor();
      await shown(page);
      assert.equal(await page.locator(".failure").count(), 0, p);
    }
    await page.goto(`${url}/#/settings`);
    const row = page.getByRole("row", { name: /^data_dir / });
    assert.match(await row.innerText(), /command line/);
    await api("DELETE", "/v1/workspaces/walk");
  },

  async "a hostile sandbox"() {
    const evil = "<img src=x onerror=window.pwned=1>";
    const b = await api("POST", "/v1/sandboxes", { name: "hostile", metadata: { note: `${evil}"'><script>window.pwned=1</script>` } });
    const p = watch(await context.newPage());
    let dialogs = 0;
    p.on("dialog", (d) => (dialogs++, d.dismiss()));
    const strangers = [];
    p.on("request", (r) => !r.url().startsWith(url) && !/^(data|blob|about):/.test(r.url()) && strangers.push(r.url()));
    const safe = async (where) => {
      for (const f of p.frames()) assert.equal(await f.evaluate(() => window.pwned).catch(() => undefined), undefined, where);
      assert.match(await p.title(), /Paddock$/, where);
      assert.equal(await p.locator("#app img[src=x], #app script").count(), 0, where);
    };
    const put = (path, text) => fetch(`${url}/v1/sandboxes/${b.id}/files/${path.split("/").map(encodeURIComponent).join("/")}`, { method: "PUT", headers: { Authorization: `Bearer ${key}`, "Content-Type": "application/octet-stream" }, body: text });
    await put(`workspace/${evil.replaceAll("/", "")}.html`, `${evil}<script>window.pwned=1</script>`);
    await put("workspace/\u202egnp.exe", "x");
    await put("tmp/www/index.html", `<body>hostile page<script>
      window.pwned = 1; let r = [];
      try { parent.document.body.innerHTML = 'taken'; r.push('parent') } catch {}
      try { top.location = 'about:blank'; } catch {}
      try { document.cookie; r.push('cookie') } catch {}
      try { localStorage.x = 1; r.push('storage') } catch {}
      fetch('/v1/sandboxes', { headers: { 'X-Paddock-Dashboard': '1' } }).then((x) => x.ok && r.push('api'), () => {}).then(() => { document.body.append(' reached:[' + r + ']'); });
    </script>`);
    const say = String.raw`printf '\033]0;<b>title</b>\007\033]2;pwned\007\033]52;c;cHduZWQ=\007\033]8;;javascript:window.pwned=1\007link\033]8;;\007\033[?1049h\033[?1049l<script>window.pwned=1</script>done-%s\n' x`;

    await p.goto(`${url}/#/sandboxes/${b.id}/terminal`);
    await p.locator(".term-host[data-state=open]").waitFor();
    await type(p, say);
    await until("the output", async () => (await screen(p)).includes("done-x"));
    await safe("terminal");

    await p.goto(`${url}/#/sandboxes/${b.id}/files`);
    const node = p.getByRole("treeitem", { name: /onerror/ });
    await node.click();
    await p.locator(".editor textarea").waitFor();
    assert.ok(!(await p.getByRole("tree").innerText()).includes("\u202e"), "no writing backwards");
    await safe("files");

    await p.goto(`${url}/#/sandboxes/${b.id}/code`);
    await p.getByLabel("Code of cell 1").fill(`
class Evil:
    def _repr_mimebundle_(self, **k): return {"text/html": "${evil}<script>window.pwned=1;parent.pwned=1</script><a href=javascript:window.pwned=1 id=l>html</a>"}
class Svg:
    def _repr_svg_(self): return '<svg xmlns="http://www.w3.org/2000/svg" width="20" height="20" onload="window.pwned=1"><script>window.pwned=1</script></svg>'
class Html:
    def _repr_html_(self): return "${evil}<script>window.pwned=1;top.pwned=1</script>shown"
import sys
from IPython.display import display
`.replace("from IPython.display import display\n", "") + `
print("${evil}\\x1b]0;pwned\\x07")
print("<script>window.pwned=1</script>", file=sys.stderr)
try:
    display(Svg())
except NameError: pass
Html()`);
    await p.getByLabel("Code of cell 1").press("Shift+Enter");
    await p.locator(".cell[data-state=done]").waitFor({ timeout: 60000 });
    await p.locator(".out.stdout", { hasText: "onerror" }).waitFor();
    await p.frameLocator("iframe.rich").getByText("shown").waitFor();
    assert.equal(await p.locator("iframe.rich").first().getAttribute("sandbox"), "");
    await safe("code");
    await p.getByLabel("Code of cell 1").fill(`raise Exception("${evil}")`);
    await p.getByLabel("Code of cell 1").press("Shift+Enter");
    await p.locator(".out.error", { hasText: "onerror" }).waitFor();
    await safe("an exception");

    await api("POST", `/v1/sandboxes/${b.id}/processes`, { argv: ["sh", "-c", `echo '${evil}'; cd /tmp/www; exec python3 -m http.server 8000`, evil], tag: null });
    await p.goto(`${url}/#/sandboxes/${b.id}/processes`);
    await p.locator("td", { hasText: "onerror" }).first().waitFor();
    await p.getByRole("button", { name: "Output" }).last().click();
    await p.locator(".log, .dialog .dim").waitFor();
    await safe("processes");
    await p.goto(`${url}/#/sandboxes/${b.id}/ports`);
    await p.reload();
    await p.getByRole("button", { name: "Preview" }).first().click();
    const inner = p.frameLocator("iframe.preview").locator("body");
    await until("its attempts", async () => (await inner.innerText()).includes("reached:["));
    assert.match(await inner.innerText(), /reached:\[\]/, "the page of a sandbox has no rights here");
    assert.match(p.url(), /ports$/);
    assert.equal(await p.evaluate(() => window.pwned), undefined);

    for (const t of ["details", "events", "egress"]) {
      await p.goto(`${url}/#/sandboxes/${b.id}/${t}`);
      await shown(p);
      await safe(t);
    }
    await p.goto(`${url}/#/sandboxes?q=onerror`);
    await p.locator(".vrow", { hasText: "hostile" }).waitFor();
    await safe("the list");
    assert.equal(dialogs, 0);
    assert.deepEqual(strangers, [], "nothing of others is loaded");
    await p.close();
    await api("DELETE", `/v1/sandboxes/${b.id}`);
  },

  async "a thousand sandboxes"() {
    const p = watch(await context.newPage());
    const all = Array.from({ length: 1000 }, (_, i) => ({ ...box, id: `b${String(i).padStart(19, "0")}`, name: `many-${i}`, created_at: new Date(1.79e12 + i * 1000).toISOString() }));
    await p.route(/\/v1\/sandboxes\?/, (r) => r.fulfill({ json: { sandboxes: all, next: null } }));
    await p.goto(`${url}/#/sandboxes`);
    await p.locator(".vrow", { hasText: "many-999" }).waitFor();
    assert.ok((await p.locator(".vrow").count()) < 60, "only what can be seen is in the page");
    await p.locator(".vbody").evaluate((el) => (el.scrollTop = el.scrollHeight));
    await p.locator(".vrow", { hasText: /^many-0/ }).waitFor();
    await p.getByLabel("Search sandboxes").fill("many-123");
    await until("one row", async () => (await p.locator(".vrow").count()) === 1);
    await p.close();
  },

  async "no serious finding of axe"() {
    const findings = [];
    for (const scheme of ["light", "dark"]) {
      await page.emulateMedia({ colorScheme: scheme, reducedMotion: "reduce" });
      const tabs = scheme === "light" ? ["terminal", "files", "code", "processes", "ports", "metrics", "egress", "tree"] : ["files", "code", "egress"];
      const pages = scheme === "light" ? ["", "sandboxes", "workspaces", "images", "usage", "audit", "tenants", "settings", "start"] : ["", "sandboxes", "audit", "images"];
      for (const where of [...pages, ...tabs.map((t) => `sandboxes/${box.id}/${t}`)]) {
        await page.goto(`${url}/#/${where}`);
        await page.getByRole("heading", { level: 1 }).waitFor();
        await shown(page);
        // The other theme differs in nothing but its colours.
        findings.push(...(await it.findings(page, `${scheme} /${where}`, scheme === "light" ? undefined : { runOnly: ["color-contrast"] })));
      }
    }
    assert.deepEqual(findings, []);
    await page.emulateMedia({ colorScheme: "light" });
  },

  async "on a phone nothing is wider than the screen"() {
    const phone = await browser.newContext({ viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true });
    const p = watch(await phone.newPage());
    await signIn(p);
    for (const where of ["", "sandboxes", "images", "tenants", "settings", "audit", "start", ...["terminal", "files", "code", "egress", "tree"].map((t) => `sandboxes/${box.id}/${t}`)]) {
      await p.goto(`${url}/#/${where}`);
      await p.getByRole("heading", { level: 1 }).waitFor();
      await shown(p);
      const wide = await p.evaluate(() => document.querySelector("main").scrollWidth - document.querySelector("main").clientWidth);
      assert.ok(wide <= 0, `/${where} is ${wide} pixels too wide`);
    }
    await p.getByRole("button", { name: "Menu" }).click();
    await p.getByRole("link", { name: "Images" }).click();
    await p.getByRole("heading", { name: "Images", level: 1 }).waitFor();
    await phone.close();
  },

  async "a lost server comes back"() {
    await page.goto(`${url}/#/sandboxes`);
    await page.locator(".link-state.on").waitFor();
    await context.setOffline(true);
    await page.evaluate(() => 0);
    await page.goto(`${url}/#/images`).catch(() => {});
    await page.locator(".failure").first().waitFor();
    await context.setOffline(false);
    await page.getByRole("button", { name: "Try again" }).first().click();
    await page.locator("td", { hasText: "machine" }).first().waitFor();
  },

  async "delete"() {
    await open("details");
    await page.getByRole("button", { name: "Delete", exact: true }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
    await page.waitForURL(/#\/sandboxes$/);
    const gone = await fetch(`${url}/v1/sandboxes/${box.id}`, { headers: { Authorization: `Bearer ${key}` } });
    assert.equal(gone.status, 404);
  },

  async "sign out"() {
    const [cookie] = await context.cookies();
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByRole("heading", { name: "Sign in to Paddock" }).waitFor();
    assert.equal((await context.cookies()).length, 0);
    const r = await fetch(`${url}/v1/sandboxes`, { headers: { Cookie: `${cookie.name}=${cookie.value}`, "X-Paddock-Dashboard": "1" } });
    assert.equal(r.status, 401, "the server has forgotten it");
  },

  async "nothing was refused by the page's policy"() {
    assert.deepEqual([...new Set(complaints)], []);
  },
};

await it.run(scenarios, (error) => error && !box); // without one nothing that follows makes sense
