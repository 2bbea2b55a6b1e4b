"""Agent-Sandbox's API: /api/v1 in its envelope, /sandbox/{name}/… and E2B's other address."""

import json
import time

import pytest

import paddock
from test_terminal import TEXT, Socket


def data(response):
    assert response.status == 200, response
    document = response.json()
    assert set(document) == {"code", "data"} and document["code"] == "0", document
    return document["data"]


def error(response, status, text=""):
    assert response.status == status, response
    document = response.json()
    assert set(document) == {"code", "error"} and document["code"] == str(status), document
    assert text in document["error"], document


@pytest.fixture
def name(api):
    it = f"as-{time.monotonic_ns()}"
    yield it
    api.delete(f"/v1/sandboxes/{it}")


@pytest.fixture
def sandbox(api, daemon, name):
    made = data(api.post("/api/v1/sandbox", {"name": name, "template": "sandbox-base"}))
    daemon.saw(made["id"])
    return made


NOW = {"id", "name", "template", "environment", "image", "envVars", "env", "metadata", "timeout", "idle_timeout", "idle_policy",
       "autoPause", "autoResume", "cpu", "cpu_limit", "memory", "memory_limit", "workdir", "port", "ports", "status", "user",
       "created_at"}


def test_today(api, daemon, name):
    made = data(api.post("/api/v1/sandbox", {
        "name": name, "template": "sandbox-code", "envVars": {"A": "1"}, "timeout": 900, "idle_timeout": 100,
        "cpu_limit": "500m", "memory_limit": "256Mi", "metadata": {"k": "v"}, "autoPause": True, "autoResume": True}))
    daemon.saw(made["id"])
    assert set(made) == NOW and made["name"] == name and made["status"] == "running" and made["timeout"] == 900
    assert made["template"] == "sandbox-code" and made["memory_limit"] == "256Mi" and made["cpu_limit"] == "500m"
    ours = api.get(f"/v1/sandboxes/{name}").json()
    assert ours["idle_seconds"] == 100 and ours["on_end"] == "pause" and ours["auto_resume"]
    assert ours["limits"]["memory_mb"] == 256 and ours["limits"]["cpu"] == 0.5
    assert name in [s["name"] for s in data(api.get("/api/v1/sandbox"))]
    ran = data(api.post(f"/api/v1/terminal/sandbox/{name}", {"command": "echo $A $AGENT_SANDBOX_NAME; echo no >&2"}))
    assert ran["output"] == f"1 {name}\n" and ran["errorOutput"] == "no\n" and ran["command"].startswith("echo")
    assert data(api.post(f"/api/v1/sandbox/pause/{name}", {}))["status"] == "paused"
    assert data(api.post(f"/api/v1/sandbox/resume/{name}", {}))["status"] == "running"
    assert data(api.delete(f"/api/v1/sandbox/{name}")) == f"Sandbox {name} deleted successfully"
    error(api.get(f"/api/v1/sandbox/{name}"), 404, "not found")


def test_the_first_release(api, daemon, name):
    """Minutes, a sentence as the answer, and fields that were stored and never enforced there."""
    body = {"name": name, "environment": "aio", "env": {"A": "1"}, "timeout": 30, "idle_timeout": 5, "idle_policy": "delete",
            "workdir": "/tmp", "memory_limit": "1Gi"}
    assert data(api.post("/api/v1/sandbox", body)) == f"Sandbox {name} created successfully"
    shown = data(api.get(f"/api/v1/sandbox/{name}"))
    daemon.saw(shown["id"])
    assert shown["environment"] == "aio" and shown["workdir"] == "/tmp"
    ours = api.get(f"/v1/sandboxes/{name}").json()
    assert 1700 < paddock.seconds_until(ours["expires_at"]) <= 1800 and ours["idle_seconds"] == 300
    assert ours["limits"]["memory_mb"] == 1024
    error(api.post("/api/v1/sandbox", body), 409, "already exists")


def test_what_a_client_of_the_first_release_sends(api, daemon, name):
    """The whole object, with what Go writes for fields that nobody has set."""
    body = {"name": name, "environment": "aio", "args": [], "app": "", "image": "", "env": {}, "timeout": 60, "idle_timeout": 10,
            "idle_policy": "delete", "workdir": "", "cpu": "100m", "memory": "128Mi", "cpu_limit": "1000m", "memory_limit": "1024Mi",
            "ports": [], "status": ""}
    assert data(api.post("/api/v1/sandbox", body)) == f"Sandbox {name} created successfully"
    shown = data(api.get(f"/api/v1/sandbox/{name}"))
    daemon.saw(shown["id"])
    assert (shown["cpu_limit"], shown["memory_limit"], shown["status"]) == ("1000m", "1024Mi", "running")


@pytest.mark.parametrize("body, status", [
    ({"template": "no-such"}, 404), ({"image": "no-such"}, 404), ({"name": "../x"}, 400), ({"cpu_limit": "lots"}, 400),
    ({"memory_limit": "-1Gi"}, 400), ({"timeout": 86401}, 400), ({"timeout": -2}, 400), ({"idle_policy": "keep"}, 400),
    ({"args": ["x"]}, 501), ({"no_such_field": 1}, 400), (b"{", 400),
])
def test_bad_wishes(api, body, status):
    error(api.post("/api/v1/sandbox", body), status)


def test_who_asks(api, daemon, sandbox, tenant):
    """There: any token reaches any sandbox by its name, and /sandbox/… asks for none."""
    name = sandbox["name"]
    nobody = paddock.Client(daemon, "pdk_" + "0" * 40)
    paths = [f"/api/v1/sandbox/{name}", "/api/v1/sandbox", f"/api/v1/logs/sandbox/{name}", "/api/v1/events",
             f"/api/v1/sandbox/files/{name}?path=/workspace", f"/sandbox/{name}", f"/sandbox/{name}/x",
             f"/sandboxes/router/{sandbox['id']}/8080/", f"/api/v1/terminal/sandbox/{name}/ws", "/api/v1/config/runtime"]
    for path in paths:
        error(nobody.get(path), 401, "Unauthorized")
    for path in paths:
        if (name in path or sandbox["id"] in path) and not path.endswith("/ws"):
            assert tenant.get(path).status == 404, path
    stranger = Socket(daemon, f"/api/v1/terminal/sandbox/{name}/ws", [f"Authorization: Bearer {tenant.key}"], key="")
    assert stranger.status == 404
    stranger.close()
    error(tenant.delete(f"/api/v1/sandbox/{name}"), 404)
    error(tenant.post(f"/api/v1/sandbox/pause/{name}", {}), 404)
    error(tenant.post(f"/api/v1/terminal/sandbox/{name}", {"command": "true"}), 404)
    assert data(tenant.get("/api/v1/sandbox")) == []
    assert data(tenant.post("/api/v1/sandbox/metrics", {"names": [name]})) == {"items": {}}
    # The key in its other places.
    for headers, path in (({"X-Api-Key": daemon.key}, "/api/v1/sandbox"), ({}, f"/api/v1/sandbox?api_key={daemon.key}"),
                          ({"X-Api-Key": "e2b_" + daemon.key}, "/api/v1/sandbox"), ({}, f"/api/v1/sandbox?api_key=e2b_{daemon.key}")):
        nobody.key = None
        assert data(nobody.request("GET", path, headers=headers))
    assert data(nobody.get("/api/v1/status"))["status"] == "ok"
    nobody.close()


def test_files(api, sandbox):
    files = f"/api/v1/sandbox/files/{sandbox['name']}"
    body = (b'--e\r\nContent-Disposition: form-data; name="file"; filename="x y.bin"\r\n\r\n' + b"\0\1" * 100000 + b"\r\n--e--\r\n")
    response = api.request("POST", files + "/upload?path=/workspace/up", body, {"Content-Type": "multipart/form-data; boundary=e"})
    assert data(response) == "uploaded 1 file"
    listed = data(api.get(files + "?path=/workspace/up"))
    assert [(f["name"], f["size"], f["isDir"]) for f in listed["files"]] == [("x y.bin", 200000, False)]
    assert api.get(files + "/download?path=/workspace/up/x%20y.bin").body == b"\0\1" * 100000
    assert data(api.request("DELETE", files + "?path=/workspace/up")) == "deleted"
    error(api.get(files + "/download?path=/workspace/up/x%20y.bin"), 404)
    error(api.get(files + "?path=relative"), 400)
    error(api.request("DELETE", files), 400)
    error(api.request("POST", files + "/upload", b"--e--\r\n", {"Content-Type": "multipart/form-data; boundary=e"}), 400, "no file")


def test_what_is_going_on(api, sandbox):
    name = sandbox["name"]
    events = paddock.until(lambda: data(api.get(f"/api/v1/events?sandbox={name}&limit=5"))["events"], "its creation is told")
    assert events and {e["sandbox"] for e in events} == {sandbox["id"]} and events[0]["type"] == "created"
    assert "created" in data(api.get(f"/api/v1/logs/sandbox/{name}?tailLines=10"))["logs"]
    error(api.get("/api/v1/events?limit=501"), 400)
    assert data(api.get("/api/v1/telemetry/summary"))["running"] >= 1
    for what in ("status", "timeseries", "by_user", "durations"):
        data(api.get(f"/api/v1/telemetry/{what}"))
    assert "created" in data(api.get("/api/v1/telemetry/logs?tailLines=2000"))["logs"]
    error(api.get("/api/v1/telemetry/nothing"), 404)
    assert set(data(api.get("/api/v1/ratelimit"))) == {"max_sandbox", "sandboxes", "creates_per_minute"}
    assert data(api.get("/api/v1/pool")) == []
    assert "machine" in [t["name"] for t in data(api.get("/api/v1/config/templates"))]
    assert "pdk_" not in api.get("/api/v1/config/runtime").body.decode()
    error(api.post("/api/v1/config/templates", {}), 501)
    item = paddock.until(lambda: data(api.post("/api/v1/sandbox/metrics", {"names": [name]}))["items"].get(name), "a sample", 30)
    assert set(item) == {"cpuMilli", "memoryBytes", "memoryMB", "sampledAt"}
    assert data(api.get(f"/api/v1/terminal/sandbox/{name}/detect-shell"))["shell"].endswith("/bash")


def test_a_server_in_the_sandbox(api, sandbox, make_box):
    name = sandbox["name"]
    box = paddock.Box(api, api.get(f"/v1/sandboxes/{name}").json())
    box.exec("mkdir -p /tmp/www/sub; echo hello > /tmp/www/sub/x; cd /tmp/www; "
             "setsid -f python3 -m http.server 8080 >/dev/null 2>&1 </dev/null")
    got = paddock.until(lambda: (r := api.get(f"/sandbox/{name}/sub/x?a=1")).status == 200 and r, "the server answers")
    assert got.body == b"hello\n"
    assert api.get(f"/sandboxes/router/{sandbox['id']}/8080/sub/x").body == b"hello\n"
    error(api.get(f"/sandboxes/router/{sandbox['id']}/70000/"), 400)
    assert api.get(f"/sandboxes/router/{sandbox['id']}/9999/").status == 502
    page = api.get(f"/sandbox/{name}")
    assert page.status == 200 and page.headers["content-type"].startswith("text/html")
    for link in (f"/sandbox/{name}/terminal", "files", "/ports"):
        assert link in page.body.decode()


def test_terminal(daemon, sandbox):
    path = f"/api/v1/terminal/sandbox/{sandbox['name']}/ws"
    socket = Socket(daemon, path)
    assert socket.status == 101 and socket.control()["type"] == "ready"
    socket.send(TEXT, json.dumps({"type": "init", "cols": 100, "rows": 30}).encode())
    socket.send(TEXT, json.dumps({"type": "input", "data": "stty size; echo \u00f6; exit 3\n"}).encode())
    seen, output = [], ""
    while not seen or seen[-1]["type"] != "closed":
        seen.append(socket.control())
        output += seen[-1].get("data", "")
    assert "30 100" in output and "ö" in output
    assert seen[-2] == {"type": "exit", "code": 3}
    socket.close()
    again = Socket(daemon, path)
    assert again.control()["type"] == "ready"
    again.send(TEXT, json.dumps({"type": "close"}).encode())
    while again.control()["type"] != "closed":
        pass
    again.close()
    page = Socket(daemon, path, ["Origin: http://evil.example"])
    assert page.status == 403
    page.close()


def test_e2b_has_another_address(api, daemon, name):
    made = api.post("/e2b/v1/sandboxes", {"templateID": "base"})
    assert made.status == 201, made
    identity = made.json()["sandboxID"]
    daemon.saw(identity)
    assert api.get(f"/e2b/v1/sandboxes/{identity}").status == 200
    assert identity in [s["sandboxID"] for s in api.get("/e2b/v1/v2/sandboxes").json()]
    assert api.delete(f"/e2b/v1/sandboxes/{identity}").status == 204


# ---- at its own address ----


class Place:
    """A further listener of a daemon."""

    def __init__(self, daemon, port):
        self.host, self.port, self.saw = daemon.host, port, daemon.saw


@pytest.fixture(scope="module")
def place(daemon_factory):
    """As its users have it: one address for all of it."""
    it = daemon_factory("as")
    file = it.base / "paddock.yaml"
    file.write_text("listeners: [{address: '127.0.0.1:0', dialect: agent-sandbox}]\n")
    it.arguments += ["--config", str(file)]
    it.start()
    client = it.client()
    found = Place(it, client.get("/v1/dialects").json()["listeners"][1]["port"])
    client.close()
    found.key = it.key
    yield found
    it.finish()


@pytest.fixture
def there(place):
    client = paddock.Client(place, place.key)
    yield client
    client.close()


def test_its_own_listener_has_all_of_it(there, place):
    nobody = paddock.Client(place)
    assert set(nobody.get("/healthz").json()) == {"status", "version"}
    assert data(nobody.get("/api/v1/status"))["status"] == "ok"
    made = data(there.post("/api/v1/sandbox", {"name": "here", "template": "sandbox-base"}))
    place.saw(made["id"])
    # MCP, for all of them and for one.
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "sandboxExecutor", "arguments": {
        "sandbox_name": "here", "tool_name": "exec", "arguments": {"command": "echo hi"}}, "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}}}
    headers = {"Content-Type": "application/json", "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "sandboxExecutor",
               "Accept": "application/json, text/event-stream"}
    assert there.request("POST", "/mcp", json.dumps(call), headers).json()["result"]["structuredContent"]["stdout"] == "hi\n"
    assert nobody.request("POST", "/mcp", json.dumps(call), headers).status == 401
    # AIO's API, where its sandboxes have it.
    assert there.get("/sandbox/here/v1/sandbox").json()["success"] is True
    # What belongs to other systems is not there.
    for path in ("/v1/sandboxes", "/v1/sessions", "/v1/capabilities", "/openapi.json"):
        error(there.get(path), 404)
    assert data(there.delete("/api/v1/sandbox/here"))
    nobody.close()


def test_e2b_at_its_own_listener(there, place):
    """The control plane below /e2b/v1 and envd below /sandboxes/router, as it tells E2B's clients."""
    for key in (place.key, "e2b_" + place.key):
        made = paddock.Client(place).request("POST", "/e2b/v1/sandboxes", json.dumps({"templateID": "base"}),
                                             {"Content-Type": "application/json", "X-API-Key": key})
        assert made.status == 201, made
        box, token = made.json()["sandboxID"], made.json()["envdAccessToken"]
        place.saw(box)
        listed = there.get("/e2b/v1/v2/sandboxes")
        assert box in [each["sandboxID"] for each in listed.json()]
        path, body = f"/sandboxes/router/{box}/49983", json.dumps({"path": "/tmp"})
        nobody, connect = paddock.Client(place), {"Content-Type": "application/json", "Connect-Protocol-Version": "1"}
        stat = nobody.request("POST", path + "/filesystem.Filesystem/Stat", body, {**connect, "X-Access-Token": token})
        assert stat.status == 200 and stat.json()["entry"]["path"] == "/tmp", stat
        # There the token is the sandbox's id; here it must be one.
        for wrong in (box, "", box + "0" * 64):
            assert nobody.request("POST", path + "/filesystem.Filesystem/Stat", body, {**connect, "X-Access-Token": wrong}).status == 401
        put = nobody.request("POST", path + "/files?path=/tmp/f", b"x", {"Content-Type": "application/octet-stream", "X-Access-Token": token})
        assert put.status == 200 and nobody.request("GET", path + "/files?path=/tmp/f", headers={"X-Access-Token": token}).body == b"x"
        ran = nobody.request("POST", f"/sandboxes/router/{box}/49999/execute", json.dumps({"code": "6 * 7"}),
                             {"Content-Type": "application/json", "X-Access-Token": token})
        assert ran.status == 200 and b'"42"' in ran.body, ran
        # By headers, as E2B's own clients do it with one address.
        by_header = nobody.request("POST", "/filesystem.Filesystem/Stat", body, {**connect, "X-Access-Token": token, "E2b-Sandbox-Id": box})
        assert by_header.status == 200
        assert there.delete(f"/e2b/v1/sandboxes/{box}").status == 204
        nobody.close()
