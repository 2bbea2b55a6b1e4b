"""The documentation at /docs: every page, every link, what is generated from the sources, and the pages in Debian's Chromium (docs_walk.mjs)."""

import gzip
import json
import re
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest
import yaml

import npm
import paddock
from test_docs import DOCS, blocks
from test_metrics import parse as parse_metrics

HERE = Path(__file__).resolve().parent
HTML = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
STEPS = re.findall(r'^  async "([^"]+)"\(\)', (HERE / "docs_walk.mjs").read_text(), re.M)
VOID = {"meta", "link", "img", "br", "hr", "input"}
METHODS = ("get", "put", "post", "delete", "head", "patch", "options")


class Reader(HTMLParser):
    """What a page has. Asserts that every element is closed where it was opened."""

    def __init__(self, text):
        super().__init__()
        self.ids, self.links, self.resources, self.scripts, self.headings, self.stack, self.inline = [], [], [], 0, [], [], []
        self.title, self.current, self.words = "", [], {}
        self.feed(text)
        self.close()
        assert not self.stack, self.stack

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.inline += [name for name in given if name.startswith("on") or name == "style"]
        if "id" in given:
            self.ids.append(given["id"])
        if tag == "a":
            self.links.append(given["href"])
        if tag in ("script", "img"):
            self.resources.append(given["src"])
        if tag == "link":
            self.resources.append(given["href"])
        if "aria-current" in given:
            self.current.append(given["href"])
        if tag not in VOID:
            self.stack.append(tag)
        if re.fullmatch("h[1-6]", tag):
            self.headings.append([int(tag[1]), given.get("id"), ""])

    def handle_endtag(self, tag):
        assert self.stack and self.stack.pop() == tag, f"</{tag}> at {self.getpos()}"

    def handle_data(self, data):
        if self.stack and self.stack[-1] == "title":
            self.title += data
        if self.stack and self.stack[-1] in ("script", "style"):
            assert not data.strip(), "nothing inline"
        if self.headings and any(re.fullmatch("h[1-6]", tag) for tag in self.stack) and self.stack[-1] != "a":
            self.headings[-1][2] += data


@pytest.fixture(scope="module")
def guest(daemon):
    """Somebody without a key."""
    client = paddock.Client(daemon)
    yield client
    client.close()


@pytest.fixture(scope="module")
def site(guest):
    """{path: Reader} of every page that can be reached from /docs by links."""
    pages, todo = {}, ["/docs"]
    while todo:
        path = todo.pop()
        if path in pages:
            continue
        answer = guest.get(path, headers=HTML)
        assert answer.status == 200 and answer.headers["content-type"] == "text/html; charset=utf-8", path
        pages[path] = Reader(answer.body.decode())
        todo += [link.partition("#")[0] for link in pages[path].links if re.match(r"/docs(/|#|$)", link) and "/files/" not in link]
    return pages


# ---- pages ----


def test_every_page_is_reached(site, tmp_path):
    subprocess.run([paddock.ROOT / "scripts" / "docs", "--html", tmp_path], check=True, timeout=60)
    made = {"/" + path.parent.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("index.html")}
    assert made - set(site) == {"/docs/404"} and set(site) <= made
    wanted = {"/docs", "/docs/quick-start", "/docs/concepts", "/docs/rest", "/docs/e2b", "/docs/mcp", "/docs/agentbox", "/docs/sandkasten", "/docs/agent-sandbox",
              "/docs/aio", "/docs/ai", "/docs/sdk/python", "/docs/sdk/typescript", "/docs/cli", "/docs/configuration", "/docs/api", "/docs/tasks/production",
              "/docs/metrics", "/docs/sizing", "/docs/security", "/docs/dashboard"}
    assert wanted <= set(site)


def test_every_page_is_whole(site):
    for path, page in site.items():
        assert not page.inline, path
        assert len(page.ids) == len(set(page.ids)), f"{path}: an id twice"
        assert [h[0] for h in page.headings].count(1) == 1 and page.title.strip(), path
        assert page.current == [path], path
        levels = [h[0] for h in page.headings]
        assert all(b <= a + 2 for a, b in zip(levels, levels[1:])), path


def test_every_link_leads_somewhere(site, guest):
    seen = set()
    for path, page in site.items():
        for link in page.links:
            target, _, anchor = link.partition("#")
            if re.match(r"https?://", link) or link == "/":
                continue
            if target.startswith("/docs/files/"):
                seen.add(target)
            else:
                assert (target or path) in site, f"{path}: {link}"
                assert not anchor or anchor in site[target or path].ids, f"{path}: {link}"
        for resource in page.resources:
            assert resource.startswith(("/docs/files/", "data:image/svg+xml,")), f"{path}: {resource}"
            seen |= {resource} - {r for r in page.resources if r.startswith("data:")}
    assert len(seen) > 6
    for target in seen:
        assert guest.get(target).status == 200, target


def test_headers_keep_browsers_strict(guest):
    css = re.search(r'href="(/docs/files/docs-[0-9a-f]+\.css)"', guest.get("/docs").body.decode())[1]
    for path, status in (("/docs", 200), (css, 200), ("/docs/nothing", 404), ("/docs/files/nothing.js", 404)):
        for headers in (HTML, {}):
            answer = guest.get(path, headers=headers)
            assert answer.status == status
            policy = answer.headers["content-security-policy"]
            for rule in ("default-src 'none'", "script-src 'self'", "style-src 'self'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'none'"):
                assert rule in policy
            assert "unsafe" not in policy and "http" not in policy and "*" not in policy
            assert answer.headers["x-content-type-options"] == "nosniff" and answer.headers["referrer-policy"] == "no-referrer"


def test_no_such_page(guest):
    shown = guest.get("/docs/nothing", headers=HTML)
    assert shown.status == 404 and "There is no such page" in shown.body.decode() and "Quick start" in shown.body.decode()
    assert guest.get("/docs/nothing").code() == "not_found"
    for path in ("/docs/..%2f..%2fetc%2fpasswd", "/docs/404", "/docs/files/", "/docsx", "/docs/%00"):
        assert guest.get(path).status in (400, 401, 404), path
    assert guest.request("POST", "/docs", b"").status == 405
    assert guest.get("/docs/").status == 200 and guest.get("/docs/egress/").status == 200 and guest.get("/docs?x=y").status == 200


def test_compressed_and_known_again(guest):
    plain, packed = guest.get("/docs/egress"), guest.get("/docs/egress", headers={"Accept-Encoding": "gzip"})
    assert "content-encoding" not in plain.headers and packed.headers["content-encoding"] == "gzip"
    assert gzip.decompress(packed.body) == plain.body and len(packed.body) < len(plain.body) / 2
    assert packed.headers["cache-control"] == "no-cache", "the next version has other pages"
    again = guest.get("/docs/egress", headers={"If-None-Match": packed.headers["etag"]})
    assert again.status == 304 and again.body == b""
    assert guest.request("HEAD", "/docs/egress").body == b""
    css = re.search(r'href="(/docs/files/docs-[0-9a-f]+\.css)"', plain.body.decode())[1]
    assert "immutable" in guest.get(css).headers["cache-control"]


def test_no_key_is_needed_and_none_is_asked(guest, daemon):
    for headers in ({}, {"Authorization": "Bearer pdk_wrong"}, {"Authorization": f"Bearer {daemon.key}"}):
        answer = guest.get("/docs", headers=headers)
        assert answer.status == 200 and "set-cookie" not in answer.headers and "www-authenticate" not in answer.headers


def test_search_knows_every_page(site, guest):
    index = re.search(r'data-index="([^"]+)"', guest.get("/docs").body.decode())[1]
    rows = guest.get(index).json()
    assert {row[0].partition("#")[0] for row in rows} == set(site)
    for url, page, title, text in rows:
        path, _, anchor = url.partition("#")
        assert not anchor or anchor in site[path].ids, url
        assert page and title and isinstance(text, str)


# ---- what is made from the sources ----


def test_every_setting_is_explained(guest):
    shown = subprocess.run([paddock.BIN / "paddock", "config", "show"], check=True, capture_output=True, text=True, env=paddock.clean_environment(), timeout=20).stdout
    tables = dict(re.findall(r"<tr><td><code>([a-z0-9_.]+)</code></td><td>[^<]+</td><td>(.*?)</td>", guest.get("/docs/configuration").body.decode()))

    def walk(value, path):
        for key, below in value.items():
            here = f"{path}{key}"
            if here in ("origins", "egress.sources", "ai.max.warn"):
                continue
            if isinstance(below, dict) and below and here not in ("pool", "egress.sets"):
                walk(below, here + ".")
            else:
                assert here in tables, here

    walk(json.loads(shown), "")
    assert tables["max.boxes"] == "<code>4000</code>" and tables["defaults.limits.cpu"] == "<code>1</code>" and len(tables) > 100


def test_every_operation_is_described(site, guest):
    document = yaml.safe_load((paddock.ROOT / "api/openapi.yaml").read_text())
    for path, item in document["paths"].items():
        for method, operation in item.items():
            if method not in METHODS:
                continue
            page = f"/docs/api/{operation['tags'][0]}"
            assert operation["operationId"] in site[page].ids, operation["operationId"]
            text = guest.get(page).body.decode()
            part = text.split(f'id="{operation["operationId"]}"')[1].split("<h2 ")[0]
            assert f"{method.upper()} {path}" in part and 'class="language-sh"' in part, "an example"
            for status in operation["responses"]:
                assert (f"<code>{status}</code>" if status != "default" else "otherwise") in part, (operation["operationId"], status)
            for parameter in operation.get("parameters", ()):
                if "$ref" not in parameter:
                    assert f"<code>{parameter['name']}</code>" in part, parameter
    for name in document["components"]["schemas"]:
        assert name.lower() in site["/docs/api/schemas"].ids


def test_every_command_is_described(site):
    listed = subprocess.run([paddock.BIN / "paddock", "help"], check=True, capture_output=True, text=True, timeout=20).stdout
    names = {match[1].strip() for match in re.finditer(r"^  ([a-z][a-z-]*(?: [a-z][a-z-]*)?)(?=  )", listed, re.M)} | {"workspace create"}
    titles = {name.strip() for _, _, title in site["/docs/cli"].headings for name in title.split(",")}
    assert names - titles == set() and len(names) > 90


AGENTS = ("docs/agents.md", "docs/walletconnect.md")


@pytest.mark.parametrize("name", AGENTS)
def test_pages_of_agents(name, tmp_path):
    """What they configure is accepted, and their commands exist with these options; test_agents.py and others run them."""
    for language, line, text in blocks(name):
        if language == "yaml":
            file = tmp_path / "it.yaml"
            file.write_text(re.sub(r"[0-9a-f]{4}…", "1f" * 32, text))
            done = subprocess.run([paddock.BIN / "paddock", "config", "check", "--config", str(file)], capture_output=True, text=True, timeout=60)
            assert done.returncode == 0, (name, line, done.stderr)
        for words in re.findall(r"^paddock (\w+ \w+)(.*)$", text, re.M) if language == "sh" else ():
            shown = subprocess.run([paddock.BIN / "paddock", "help", *words[0].split()], capture_output=True, text=True, timeout=60)
            assert shown.returncode == 0, (name, line, words)
            for option in re.findall(r"(?<= )--[a-z-]+", words[1].split("#")[0]):
                assert option in shown.stdout, (name, line, option)


def test_every_snippet_is_run():
    """Pages with blocks of code are those of test_docs.py, or have tests of their own."""
    own = {"sdk/python/README.md", "sdk/typescript/README.md", *AGENTS}  # sdk/python/tests, test/sdk-typescript; below, and test_agents*.py
    sources = [*paddock.ROOT.glob("docs/*.md"), *paddock.ROOT.glob("docs/*/*.md"), paddock.ROOT / "SECURITY.md", paddock.ROOT / "CONTRIBUTING.md"]
    for name in (path.relative_to(paddock.ROOT).as_posix() for path in sources):
        if any(language not in ("", "text") for language, _, _ in blocks(name)):
            assert name in DOCS or name in own or name == "docs/errors.md", name


def test_the_shape_of_errors(guest):
    text = next(text for language, _, text in blocks("docs/errors.md") if language == "json")
    assert set(json.loads(text)["error"]) == set(guest.get("/docs/nothing").json()["error"])


# ---- metrics ----


@pytest.fixture(scope="module")
def metrics(api):
    return {re.match(r"\w+", name)[0] for name in parse_metrics(api.get("/metrics").body.decode())}


def family(name):
    return re.sub(r"_(bucket|sum|count)$", "", name)


def test_every_metric_is_explained(metrics):
    text = (paddock.ROOT / "docs/metrics.md").read_text()
    rows = re.findall(r"^\| `(\w+)` \| (?:counter|gauge|histogram) \|", text, re.M)
    assert len(rows) == len(set(rows)) and set(rows) == {family(name) for name in metrics}
    for expression in re.findall(r"^\| `([^`]*[(>][^`]*)` \|", text, re.M):
        assert set(re.findall(r"\b(?:paddock|process)_\w+", expression)) <= metrics, expression


def test_grafana_shows_what_is_exported(metrics, guest):
    text = (paddock.ROOT / "etc/grafana/paddock.json").read_text()
    assert guest.get("/docs/files/paddock-grafana.json").body.decode() == text
    board = json.loads(text)
    used = {name for panel in board["panels"] for target in panel["targets"] for name in re.findall(r"\b(?:paddock|process)_\w+", target["expr"])}
    used |= set(re.findall(r"\b(?:paddock|process)_\w+", board["templating"]["list"][1]["query"]["query"]))
    assert used <= metrics, "a panel would stay empty"
    assert {family(name) for name in used} == {family(name) for name in metrics}, "a metric is not shown"
    places = [(x, y) for panel in board["panels"] for grid in [panel["gridPos"]]
              for x in range(grid["x"], grid["x"] + grid["w"]) for y in range(grid["y"], grid["y"] + grid["h"])]
    assert len(places) == len(set(places)) and max(x for x, _ in places) == 23, "panels do not overlap"
    assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"])
    for panel in board["panels"]:
        assert panel["title"] and all(target["datasource"]["uid"] == "${datasource}" for target in panel["targets"])
        for target in panel["targets"]:
            assert target["expr"].count("(") == target["expr"].count(")")
            for counter in re.findall(r"(\w+)\(paddock_\w+_total", target["expr"]):
                assert counter in ("rate", "increase"), target["expr"]


# ---- in a browser ----


@pytest.fixture(scope="module")
def walk(daemon, site):
    """{step: {ms, error}} of one run of the walk."""
    home = npm.install(paddock.ROOT / "test" / "dashboard", "dashboard-test")
    done = subprocess.run(["node", HERE / "docs_walk.mjs", home / "node_modules", daemon.url, json.dumps(sorted(site))],
                          capture_output=True, text=True, timeout=300 * paddock.SLOW, check=False)
    found = {step["name"]: step for step in map(json.loads, done.stdout.splitlines())}
    assert found, done.stderr[-3000:]
    return found


@pytest.mark.parametrize("step", STEPS)
def test_step(walk, step):
    assert step in walk, f"the walk ended before it: {list(walk)[-1]}"
    assert not walk[step]["error"], walk[step]["error"]
