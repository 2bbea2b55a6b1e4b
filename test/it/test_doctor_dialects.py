"""`paddock doctor --dialects`: what it lists is what a request finds, at every listener."""

import json
import re
import subprocess

import pytest

import paddock

ANY = re.compile(r"\{[^}]*\}")


@pytest.fixture(scope="module")
def site(daemon_factory):
    """A daemon with further listeners: one with a key, one without, one for a sandbox."""
    it = daemon_factory("dialects")
    file = it.base / "paddock.yaml"
    file.write_text("sandkasten: {workspaces: false}\nlisteners:\n"
                    "  - {address: '127.0.0.1:0', dialect: agent-sandbox}\n"
                    "  - {address: '127.0.0.1:0', dialect: sandkasten, anonymous: true}\n"
                    "  - {address: '[::1]:0', dialect: aio, sandbox: only}\n")
    it.arguments += ["--config", str(file)]
    it.start()
    client = it.client()
    client.create(name="only")
    client.close()
    yield it
    it.finish()


def run(daemon, *words, key=None):
    return subprocess.run([paddock.BIN / "paddock", "doctor", "--dialects", *words], capture_output=True, text=True, timeout=60,
                          env=paddock.clean_environment(PADDOCK_URL=daemon.url, PADDOCK_API_KEY=key or daemon.key))


@pytest.fixture(scope="module")
def served(site):
    done = run(site, "--json")
    assert done.returncode == 0, done
    return json.loads(done.stdout)


class At:
    """A client at one listener."""

    def __init__(self, daemon, listener):
        class Place:
            host, port, key = listener["address"], listener["port"], daemon.key
        self.client = paddock.Client(Place, daemon.key)

    def __enter__(self):
        return self.client

    def __exit__(self, *_):
        self.client.close()


def test_every_listener(site, served):
    main, agent, sandkasten, aio = served["listeners"]
    assert (main["address"], main["port"]) == (site.host, site.port) and main["dialect"] is None
    assert [d["name"] for d in main["dialects"]] == ["models", "aio", "agent-sandbox", "e2b", "mcp", "agentbox", "sandkasten", "rest"]
    bound = [(at["dialect"], [d["name"] for d in at["dialects"]], at["anonymous"], at["sandbox"]) for at in (agent, sandkasten, aio)]
    assert bound == [("agent-sandbox", ["aio", "agent-sandbox", "e2b", "mcp"], False, None), ("sandkasten", ["sandkasten"], True, None),
                     ("aio", ["aio", "mcp"], False, "only")]
    assert aio["address"] == "::1" and all(at["port"] > 0 and not at["tls"] for at in served["listeners"])
    assert {p["port"]: p["dialect"] for p in served["ports"]} == {49983: "e2b", 49999: "e2b", 2024: "agentbox"}
    # As the daemon's own words about where it listens.
    for at in (agent, sandkasten, aio):
        host = f"[{at['address']}]" if ":" in at["address"] else at["address"]
        assert f"listening on {host}:{at['port']} for {at['dialect']}" in site.log(1000)


def named(served, name, listener=0):
    return next(d for d in served["listeners"][listener]["dialects"] if d["name"] == name)


def test_whose_a_path_is(served):
    """Some paths are in the tables of two dialects, and a request gets to one of them."""
    ours, theirs = named(served, "rest"), named(served, "sandkasten")
    assert "GET /v1/workspaces" in ours["routes"] and "GET /v1/workspaces" not in theirs["routes"]
    assert "POST /v1/workspaces/{id}/fs/write" in theirs["routes"]
    assert "GET /v1/workspaces" in named(served, "sandkasten", 2)["routes"], "at its own listener it is its own"
    assert "POST /sandbox/{name}/v1/file/read" in named(served, "aio")["routes"]
    assert "POST /v1/file/read" in named(served, "aio", 3)["routes"]
    assert "POST /sandbox/{name}/v1/file/read" in named(served, "aio", 1)["routes"], "beside another dialect, as on the common listener"
    assert "GET /healthz" in named(served, "agent-sandbox", 1)["routes"] and "GET /healthz" not in named(served, "agent-sandbox")["routes"]
    assert named(served, "models")["routes"] == ["GET /api/{provider}/{path}", "POST /api/{provider}/{path}"]
    assert "POST /sandbox.v1.SandboxService/Exec" in named(served, "agentbox")["routes"]
    assert "/sandbox.v1.SandboxService" in named(served, "agentbox")["paths"]
    assert (named(served, "e2b")["alias"], named(served, "rest")["alias"]) == ("/e2b/v1", None)
    for at in served["listeners"]:
        for dialect in at["dialects"]:
            assert dialect["routes"] and dialect["paths"] and len(set(dialect["paths"])) == len(dialect["paths"])
            for route in dialect["routes"]:
                assert any(route.split()[1].startswith(path) for path in dialect["paths"]), route


@pytest.mark.parametrize("index", range(4))
def test_what_is_listed_is_there(site, served, index):
    """A route that is listed never answers that nothing is there; the control is a path that is not."""
    at = served["listeners"][index]
    with At(site, at) as client:
        for dialect in at["dialects"]:
            for route in dialect["routes"]:
                method, path = route.split()
                path = ANY.sub("only", path.replace("{provider}", "openai"))
                if method == "GET" and "{" not in route and "events" not in route:
                    response = client.get(path)
                    assert response.status != 404 or "there is nothing" not in response.body.decode(), (route, response)
        nothing = client.get("/v1/no-such-thing")
        assert nothing.status == 404, nothing
        if at["dialect"] == "agent-sandbox":
            return
        others = {r for k, other in enumerate(served["listeners"]) if k and k != index for d in other["dialects"] for r in d["routes"]}
        mine = {ANY.sub("{}", r) for d in at["dialects"] for r in d["routes"]}
        for route in sorted(others):
            method, path = route.split()
            if index and method == "GET" and "{" not in route and ANY.sub("{}", route) not in mine:
                assert client.get(path).status == 404, route


def test_versions(site, served):
    """As each dialect says itself."""
    client = site.client()
    found = client.request("POST", "/mcp", json.dumps({"jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": {"_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}}}),
        {"Content-Type": "application/json", "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "server/discover",
         "Accept": "application/json, text/event-stream"}).json()["result"]["supportedVersions"]
    assert set(named(served, "mcp")["version"].split(", ")) == set(found)
    assert client.get("/sandbox/only/v1/sandbox").json()["version"] == named(served, "aio")["version"]
    assert named(served, "e2b")["version"] == f"envd {client.get('/sandboxes').json()[0]['envdVersion']}"
    assert named(served, "rest")["version"] == client.get("/v1/capabilities").json()["api"]
    client.close()


def test_what_is_off(site, served):
    off = {(d["name"], o["what"]): o["why"] for d in served["listeners"][0]["dialects"] for o in d["disabled"]}
    assert off["models", "/api/openai"] == off["models", "/api/anthropic"] == "not in ai.providers"
    assert off["sandkasten", "workspace_id"] == "sandkasten.workspaces is false"
    assert off["agent-sandbox", "/api/v1/pool"] == "pool is empty" and ("e2b", "PORT-ID.DOMAIN") not in off
    client = site.client()
    assert client.post("/v1/sessions", {"workspace_id": "w1"}).status == 400
    for (name, what), why in off.items():
        if why == "not supported":
            assert client.get(what).status == 501, what
    client.close()


def test_for_people(site, served):
    done = run(site)
    assert done.returncode == 0 and done.stderr == "", done
    text = done.stdout
    at = served["listeners"]
    assert f"http://127.0.0.1:{at[0]['port']}: every dialect; with a key\n" in text
    assert f"http://127.0.0.1:{at[2]['port']}: sandkasten only; without a key\n" in text
    assert f"http://[::1]:{at[3]['port']}: aio and what belongs to it; for the sandbox only; with a key\n" in text
    assert "  e2b: version envd " in text and "; also below /e2b/v1\n" in text
    assert "    off: workspace_id (sandkasten.workspaces is false)\n" in text
    assert "  2024: agentbox\n    /health /exec /file\n" in text
    assert all(len(line) <= 100 for line in text.splitlines())


def test_who_may_ask(site):
    client = site.client()
    key = client.post("/v1/keys", {"role": "user"}).json()
    done = run(site, key=key["key"])
    assert done.returncode == 1 and done.stdout == "" and "admin" in done.stderr, done
    assert client.delete(f"/v1/keys/{key['id']}").status == 204
    client.close()


def test_nobody_answers(tmp_path):
    class Nowhere:
        url, key = "http://127.0.0.1:1", "pdk_" + "0" * 40
    done = run(Nowhere)
    assert done.returncode == 1 and done.stdout == "" and "127.0.0.1:1" in done.stderr, done
