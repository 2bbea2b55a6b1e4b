"""No route of any dialect tells one tenant of another's things: what is another's is as if it were not there.

The routes come from the documents, so that a new one is tested by being described. A new dialect joins by a line in
DIALECTS; what its paths begin with joins by a line in OWNERS.
"""

import json
import re
import time
import urllib.parse

import pytest
import yaml

import paddock

# The dialect, its document. Routes of sandboxes' own hosts (envd, the interpreter) are judged by a sandbox's token: test_envd.py.
DIALECTS = [("rest", "openapi.yaml"), ("e2b", "e2b/openapi.yaml")]
METHODS = ("get", "put", "post", "delete", "head", "patch")

# What stands in the place of a path's first parameter: a thing of the first tenant's, by `World`.
OWNERS = [
    (r"/v1/sandboxes/|(/v2)?/sandboxes/", "box"),
    (r"/v1/workspaces/", "workspace"),
    (r"/volumes/|/volumecontent/", "volume"),
    (r"/v1/snapshots/", "snapshot"),
    (r"/v1/webhooks/", "webhook"),
    (r"/v1/agents/", "agent"),
    (r"/v1/wallets/", "wallet"),
    (r"/v1/links/", "link"),
    (r"/v1/keys/", "key"),
    (r"/v1/tenants/", "tenant"),
    (r"/v1/images/", "image"),
    (r"/templates/aliases/", "template_name"),
    (r"(/v2)?/templates/", "template"),
    (r"(/v1)?/secrets/", "secret"),
]
# For administrators: refused before anything is looked up.
ADMIN = re.compile(r"/v1/(keys|tenants|images|wallets)/")
# Each tenant has names of its own there, so these work and touch nothing of another's.
OWN_NAMES = {("put", "/v1/secrets/{name}"), ("delete", "/v1/secrets/{name}"), ("post", "/secrets/{id}")}
# The caller proves by something other than its key that it may.
OTHER_PROOF = re.compile(r"put /templates/\{id\}/files/"  # a signature
                         r"|\w+ /v1/previews/"  # a ticket
                         r"|\w+ /v1/transactions/"  # they need a chain: test_transactions.py has two tenants with some
                         r"|\w+ /api/\{provider\}/")  # a sandbox's token
UPGRADE = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="}

AGENT = {"name": "Apart", "version": "1.0.0", "runtime": "node", "entrypoint": "index.js"}
# Bodies for which the least that a schema requires is not enough, and what a schema cannot tell.
BODIES = {
    "/v1/sandboxes/{id}/exec": {"argv": ["true"]},
    "/v1/sandboxes/{id}/processes": {"argv": ["true"]},
    "/v1/sandboxes/{id}/execute": {"code": "1"},
    "/v1/sandboxes/{id}/egress/rules": {"action": "allow", "targets": ["example.com"]},
    "/v1/sandboxes/{id}/egress/token": {"allowed_hosts": ["example.com"]},
    "/v1/sandboxes/{id}/processes/{process}/signal": {"signal": "TERM"},
    "/v1/sandboxes/{id}/fs/sign": {"path": "/etc/passwd", "method": "GET", "expires_seconds": 60},
    "/v1/sandboxes/{id}/fs/chmod": {"path": "/etc/passwd", "mode": "0600"},
    "/v1/sandboxes/{id}/contexts": {"language": "bash"},
    "/v1/agents/{id}/upgrade": {"manifest": AGENT, "consent": True},
    "/v1/agents/{id}/limits": {"paused": True},
}


class Document:
    def __init__(self, file):
        self.tree = yaml.safe_load((paddock.ROOT / "api" / file).read_text())

    def follow(self, item):
        while isinstance(item, dict) and "$ref" in item:
            target = self.tree
            for part in item["$ref"].removeprefix("#/").split("/"):
                target = target[part]
            item = target
        return item

    def least(self, schema):
        """The smallest value that fits."""
        schema = self.follow(schema)
        for kind in ("oneOf", "anyOf"):
            if kind in schema:
                return self.least(schema[kind][0])
        if "allOf" in schema:
            return {k: v for part in schema["allOf"] for k, v in self.least(part).items()}
        if "enum" in schema:
            return schema["enum"][0]
        kind = schema.get("type", "object")
        kind = kind[0] if isinstance(kind, list) else kind
        if kind == "object":
            return {name: self.least(schema["properties"][name]) for name in schema.get("required", ())}
        if kind == "array":
            return [self.least(schema["items"])] * schema.get("minItems", 0)
        return {"integer": max(1, schema.get("minimum", 1)), "number": 1, "boolean": True, "null": None}.get(kind, "/tmp")

    def routes(self):
        for path, item in self.tree["paths"].items():
            for method, operation in item.items():
                if method in METHODS:
                    parameters = [self.follow(p) for p in (*item.get("parameters", ()), *operation.get("parameters", ()))]
                    yield method, path, operation, parameters

    def body(self, path, operation):
        content = self.follow(operation.get("requestBody", {})).get("content", {})
        if not content:
            return None, {}
        kind = next(iter(content))
        if kind == "application/json":
            document = BODIES.get(path, self.least(content[kind].get("schema", {})))
            return json.dumps(document).encode(), {"Content-Type": kind}
        if kind == "multipart/form-data":
            return b'--b\r\nContent-Disposition: form-data; name="file"; filename="f"\r\n\r\nx\r\n--b--\r\n', \
                {"Content-Type": "multipart/form-data; boundary=b"}
        return b"x", {"Content-Type": kind}


class World:
    """A tenant that has one of everything, and one that has nothing."""

    def __init__(self, api, daemon):
        self.api, self.made = api, []
        self.one, self.two = (self.client(daemon, name) for name in ("apart-one", "apart-two"))
        one, mark = self.one, f"apart{time.monotonic_ns()}"
        self.box = one.create(name=mark, metadata={"mark": mark})
        other = one.create()

        def post(path, body, key="id"):
            response = one.post(path, body)
            assert response.status in (200, 201, 202), (path, response)
            return response.json()[key] if key else response.json()

        self.workspace = mark + "w"
        self.ids = {
            "box": self.box.id,
            "workspace": post("/v1/workspaces", {"name": self.workspace}),
            "volume": post("/volumes", {"name": mark + "v"}, "volumeID"),
            "snapshot": post(f"{self.box.path}/snapshots", {"name": mark + "s"}),
            "webhook": post("/v1/webhooks", {"url": "http://127.0.0.1:9/", "events": ["oom"]}),
            "agent": post("/v1/agents", {"manifest": AGENT, "consent": True, "name": mark}),
            "wallet": "k0123456789abcdef",  # nobody's: whose key is which, only administrators may ask
            "link": post("/v1/links", {"from": self.box.id, "to": other.id, "port": 8000}),
            "key": self.made[0]["id"],
            "tenant": "apart-one",
            "image": "machine",
            "secret": post("/secrets", {"name": mark, "value": "hidden" + mark}, None).get("id", mark),
        }
        template = post("/v3/templates", {"name": mark + "t"}, None)
        self.ids.update(template=template["templateID"], template_name=mark + "t")
        self.inner = {"build": template["buildID"], "path": "etc/passwd", "port": "8000", "hash": "abc", "call": "1", "watcher": "w",
                      "process": str(post(f"{self.box.path}/processes", {"argv": ["sleep", "1000"]}, "pid")),
                      "context": post(f"{self.box.path}/contexts", {"language": "bash"}), "name": mark + "n", "alias": mark + "t"}
        post(f"{self.box.path}/shells", {"name": mark + "n"}, None)
        self.mark, self.other = mark, other

    def client(self, daemon, tenant):
        key = self.api.post("/v1/keys", {"tenant": tenant, "role": "user", "create_tenant": True}).json()
        self.made.append(key)
        client = daemon.client(key["key"])
        return client

    def close(self):
        one = self.one
        paddock.until(lambda: one.delete(f"/v1/agents/{self.ids['agent']}").status in (204, 404), "the agent is removed")
        for path in (f"/v1/webhooks/{self.ids['webhook']}", self.box.path, self.other.path, f"/v1/snapshots/{self.ids['snapshot']}",
                     f"/v1/workspaces/{self.ids['workspace']}", f"/volumes/{self.ids['volume']}", f"/secrets/{self.ids['secret']}",
                     f"/templates/{self.ids['template']}"):
            assert one.delete(path).status in (200, 204, 404), path
        for secret in self.two.get("/v1/secrets").json()["secrets"]:
            self.two.delete(f"/v1/secrets/{secret['name']}")
        for client in (self.one, self.two):
            client.close()
        for key in self.made:
            assert self.api.delete(f"/v1/keys/{key['id']}").status == 204


@pytest.fixture(scope="module")
def world(api, daemon):
    it = World(api, daemon)
    yield it
    it.close()


def absent(thing):
    """Of the same shape, and nobody's."""
    return re.sub(r"[a-z0-9]", "0", thing) if "_" not in thing else thing[:3] + "0" * (len(thing) - 3)


def owner_of(path):
    for pattern, name in OWNERS:
        if re.match(pattern, path):
            return name
    raise AssertionError(f"{path}: whose is it? (OWNERS)")


def fill(world, path, first):
    names = re.findall(r"\{([^}]*)\}", path)
    values = [first] + [world.inner[name] for name in names[1:]]
    for name, value in zip(names, values):
        path = path.replace("{%s}" % name, value, 1)
    return path


def said(response, thing, method):
    """What a client can tell answers apart by."""
    text = "" if method == "head" else response.body.decode().replace(thing, "ID")
    return response.status, re.sub(r'"(request_id|traceID)":"[^"]*"', "", text)


@pytest.mark.parametrize("dialect, file", DIALECTS, ids=[dialect for dialect, _ in DIALECTS])
def test_what_is_anothers_is_not_there(world, dialect, file):
    document, wrong, seen = Document(file), [], 0
    for method, path, operation, parameters in document.routes():
        if "{" not in path or OTHER_PROOF.match(f"{method} {path}"):
            continue
        query = {p["name"]: document.least(p.get("schema", {})) for p in parameters if p["in"] == "query" and p.get("required")}
        body, headers = document.body(path, operation)
        thing = world.ids[owner_of(path)]
        answers = []
        for first in (thing, absent(thing)):
            target = fill(world, path, first) + ("?" + urllib.parse.urlencode(query) if query else "")
            upgrade = UPGRADE if "101" in map(str, operation["responses"]) else {}
            response = world.two.request(method.upper(), target, body, {**headers, **upgrade})
            answers.append((*said(response, first, method), target))
        seen += 1
        expected = (403,) if ADMIN.match(path) else (401, 403, 404) if "volumecontent" in path else (404,)
        if (method, path) in OWN_NAMES or {answer[0] for answer in answers} == {501}:
            continue
        if answers[0][:2] != answers[1][:2] or answers[0][0] not in expected:
            wrong.append((method, *answers))
    assert not wrong, "\n".join(map(str, wrong))
    assert seen > 20


@pytest.mark.parametrize("dialect, file", DIALECTS, ids=[dialect for dialect, _ in DIALECTS])
def test_no_list_has_it(world, dialect, file):
    for method, path, operation, parameters in Document(file).routes():
        if method != "get" or "{" in path or path in ("/metrics", "/v1/audit"):  # test_audit
            continue
        response = world.two.get(path)
        text = response.body.decode(errors="replace")
        for name, thing in (*world.ids.items(), ("mark", world.mark)):
            assert name in ("image", "tenant") or thing not in text, (path, name)


# ---- dialects without a document: their routes are read from the tables in the sources, their calls from the .proto ----

# rest and e2b are above; of models a sandbox's token decides (test_ai.py), of assegai its connection (test_agents_life.py); docs has the same pages for everybody, and no key.
OURS = {"rest", "e2b", "models", "sandkasten", "agentbox", "agentsandbox", "aio", "mcp", "dashboard", "docs", "assegai"}


def test_every_dialect_is_here():
    names = {path.name for path in (paddock.ROOT / "src/api/dialect").iterdir() if path.is_dir()}
    assert names == OURS, "a new dialect: ask its routes here, too"


def sandkasten_routes():
    for path in sorted((paddock.ROOT / "src/api/dialect/sandkasten").glob("*.c")):
        yield from re.findall(r'\{ "([A-Z]+)", "(/v1/[^"]*\{[^"]*)"', path.read_text())


SANDKASTEN = {"exec": {"cmd": "true"}, "exec/stream": {"cmd": "true"}, "fs/write": {"path": "x", "text": "y"}}


@pytest.mark.parametrize("method, path", list(sandkasten_routes()))
def test_sandkasten(world, method, path):
    thing = world.ids["box" if "/sessions/" in path else "workspace"]
    body, headers = SANDKASTEN.get(path.split("{id}/")[-1]), {}
    if "upload" in path:
        body, headers = b'--b\r\nContent-Disposition: form-data; name="file"; filename="f"\r\n\r\nx\r\n--b--\r\n', \
            {"Content-Type": "multipart/form-data; boundary=b"}
    elif body:
        body, headers = json.dumps(body).encode(), {"Content-Type": "application/json"}
    query = "?path=x" if path.endswith("/read") else ""
    answers = []
    for first in (thing, absent(thing)):
        response = world.two.request(method, path.replace("{id}", first) + query, body, headers)
        answers.append(said(response, first, method.lower()))
    assert answers[0] == answers[1] and answers[0][0] == 404, answers


def dashboard_routes():
    text = (paddock.ROOT / "src/api/dialect/dashboard/dashboard_state.c").read_text()
    return re.findall(r'\{ "GET", "(/dashboard/[^"]+)"', text)


def test_audit(world):
    """The second's own requests, in its own words: it has named things of the first, and learns no more of them."""
    response = world.two.get("/v1/audit")
    assert response.status == 200 and {entry["tenant"] for entry in response.json()["entries"]} <= {"apart-two"}, response


@pytest.mark.parametrize("path", dashboard_routes())
def test_dashboard(world, path):
    answers = []
    for first in (world.ids["template"], absent(world.ids["template"])):
        response = world.two.get(path.replace("{id}", first))
        answers.append(said(response, first, "get"))
        assert all(name.encode() not in response.body for name in (world.mark, world.box.id)), response
    assert answers[0] == answers[1] and answers[0][0] == (404 if "{id}" in path else 403 if path.endswith(("pool", "settings", "trend")) else 200)


def agentsandbox_routes():
    for path in sorted((paddock.ROOT / "src/api/dialect/agentsandbox").glob("*.c")):
        yield from re.findall(r'\{ "([A-Z]+)", "(/[^"]*sandbox/[^"]*\{name\}[^"]*)"', path.read_text())


@pytest.mark.parametrize("method, path", list(agentsandbox_routes()))
def test_agentsandbox(world, method, path):
    for thing in (world.box.id, world.mark):
        answers = []
        for first in (thing, absent(thing)):
            headers = UPGRADE if path.endswith("/ws") else {"Content-Type": "application/json"}
            body = json.dumps({"command": "true"}).encode() if method == "POST" else None
            if path.endswith("/upload"):
                body, headers = b'--b\r\nContent-Disposition: form-data; name="file"; filename="f"\r\n\r\nx\r\n--b--\r\n', \
                    {"Content-Type": "multipart/form-data; boundary=b"}
            response = world.two.request(method, path.replace("{name}", first), body, headers)
            answers.append(said(response, first, method.lower()))
        assert answers[0] == answers[1] and answers[0][0] in (400, 404), (path, answers)


def aio_routes():
    """Their paths are below /sandbox/{name}. A ticket proves who asks at /auth, so that it is asked without one."""
    for path in sorted((paddock.ROOT / "src/api/dialect/aio").glob("*.c")):
        yield from re.findall(r'\{ "([A-Z]+)", "(/[^"]*)"', path.read_text())


OF_NOBODY = ("/v1/openapi.json", "/v1/docs")  # the same text for every sandbox, there or not


@pytest.mark.parametrize("method, path", list(aio_routes()))
def test_aio(world, method, path):
    for thing in (world.box.id, world.mark):
        answers = []
        for first in (thing, absent(thing)):
            body, headers = (b"{}", {"Content-Type": "application/json"}) if method in ("POST", "PUT") else (None, {})
            headers = UPGRADE if path.endswith("/ws") else headers
            response = world.two.request(method, f"/sandbox/{first}{path}", body, headers)
            answers.append(said(response, first, method.lower()))
        assert answers[0] == answers[1] and answers[0][0] == (200 if path in OF_NOBODY else 404), (path, answers)
    if path == "/v1/sandbox":
        assert world.one.get(f"/sandbox/{world.mark}{path}").status == 200, "the control"


AGENTBOX = re.findall(r"rpc (\w+)\(\w+\) returns \((stream )?", (paddock.ROOT / "api/agentbox/sandbox.proto").read_text())
FIELDS = {"command": "true", "path": "x", "content": "y", "packages": ["six"]}
WANTED = {"Exec": ["command"], "ExecStream": ["command"], "WriteFile": ["path", "content"], "ReadFile": ["path"],
          "PipInstall": ["packages"], "PipInstallStream": ["packages"]}


@pytest.mark.parametrize("call, stream", AGENTBOX, ids=[call for call, _ in AGENTBOX])
def test_agentbox(world, call, stream):
    """By Connect; names of sessions are each tenant's own, so that a create makes another one."""
    def ask(client, name):
        message = json.dumps({"session_id": name, **{field: FIELDS[field] for field in WANTED.get(call, [])}} if call != "ListSessions" else {}).encode()
        kind = "application/connect+json" if stream else "application/json"
        body = b"\0" + len(message).to_bytes(4, "big") + message if stream else message
        return client.request("POST", f"/sandbox.v1.SandboxService/{call}", body, {"Content-Type": kind, "Connect-Protocol-Version": "1"})

    if call == "ListSessions":
        text = ask(world.two, "").body.decode()
        assert world.box.id not in text and world.mark not in text
        assert world.mark in ask(world.one, "").body.decode(), "the control"
        return
    for thing in (world.box.id, world.mark):
        theirs, nobodys = ask(world.two, thing), ask(world.two, absent(thing))
        if call == "CreateSession":
            made = theirs.json()["session"]["containerId"]
            assert made != world.box.id
            for one in {made, nobodys.json()["session"]["containerId"]}:
                assert world.two.delete(f"/v1/sandboxes/{one}").status == 204
        else:
            assert said(theirs, thing, "post") == said(nobodys, absent(thing), "post"), (theirs, nobodys)
            assert b'"success":true' not in theirs.body and b'"exit_code":0' not in theirs.body and b'"exitCode":0' not in theirs.body, theirs
    if call == "Exec":
        assert ask(world.one, world.mark).json().get("exitCode", 0) == 0, "the control"


REFERENCES = [
    ("/v1/sandboxes", lambda w: {"snapshot": w.ids["snapshot"]}),
    ("/v1/sandboxes", lambda w: {"workspace": {"name": w.ids["workspace"]}}),
    ("/v1/sandboxes", lambda w: {"workspace": {"name": w.workspace}}),
    ("/v1/workspaces", lambda w: {"name": "x", "clone_of": w.ids["workspace"]}),
    ("/v1/workspaces", lambda w: {"name": "x", "clone_of": w.workspace}),
    ("/v1/links", lambda w: {"from": w.ids["box"], "to": w.other.id, "port": 8001}),
    ("/sandboxes", lambda w: {"templateID": w.ids["template"]}),
    ("/sandboxes", lambda w: {"templateID": w.ids["snapshot"]}),
    ("/templates/tags", lambda w: {"target": w.ids["template_name"], "tags": ["t"]}),
]


@pytest.mark.parametrize("path, body", REFERENCES, ids=[f"{i}{path}" for i, (path, _) in enumerate(REFERENCES)])
def test_nothing_is_made_from_it(world, path, body):
    response = world.two.post(path, body(world))
    assert response.status in (400, 404), response


def test_it_is_untouched(world):
    """After all of that."""
    one = world.one
    assert world.box.get()["status"] == "running" and world.box.get()["metadata"] == {"mark": world.mark}
    for path in ("/v1/snapshots/{snapshot}", "/v1/workspaces/{workspace}", "/volumes/{volume}", "/v1/webhooks/{webhook}",
                 "/templates/{template}"):
        assert one.get(path.format(**world.ids)).status == 200, path
    assert [link["id"] for link in one.get("/v1/links").json()["links"]] == [world.ids["link"]]
    assert one.get(f"{world.box.path}/processes/{world.inner['process']}").json()["running"] is not False
    assert one.get(f"{world.box.path}/contexts/{world.inner['context']}").status == 200
    secret, = one.get("/v1/secrets").json()["secrets"]
    assert secret["name"] == world.mark and len(secret["versions"]) == 1, "another tenant wrote its own of this name"


# ---- MCP: its tools are read from tools.yaml ----

MCP_TOOLS = yaml.safe_load((paddock.ROOT / "src/api/dialect/mcp/tools.yaml").read_text())["tools"]
MCP_ARGUMENTS = {"exec": {"command": "true"}, "run_code": {"code": "1"}, "file_read": {"path": "/etc/hostname"},
                 "file_write": {"path": "/tmp/x", "content": "y"}, "file_edit": {"path": "/etc/hostname", "old": "a", "new": "b"},
                 "file_list": {"path": "/"}, "file_search": {"pattern": "x", "path": "/etc"}}
MCP_NAMES = {"getSandbox": "name", "deleteSandbox": "name", "sandboxExecutor": "sandbox_name"}
# They name no sandbox that there is. test_transactions.py has transactions of others.
MCP_OF_NOBODY = {"sandbox_create", "sandbox_list", "createSandbox", "listSandbox", "transactions"}


def ask_mcp_tool(client, path, tool, arguments):
    meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments, "_meta": meta}}
    return client.request("POST", path, json.dumps(body).encode(), {
        "Content-Type": "application/json", "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": tool})


@pytest.mark.parametrize("tool", [tool["name"] for tool in MCP_TOOLS if tool["name"] not in MCP_OF_NOBODY])
def test_mcp_tools(world, tool):
    answers, thing = [], world.ids["box"]
    for box in (thing, absent(thing)):
        arguments = {MCP_NAMES.get(tool, "sandbox"): box, **MCP_ARGUMENTS.get(tool, {})}
        if tool == "sandboxExecutor":
            arguments.update(tool_name="exec", arguments={"command": "true"})
        response = ask_mcp_tool(world.two, "/mcp", tool, arguments)
        answers.append(response.body.decode().replace(box, "ID"))
    assert answers[0] == answers[1] and "not_found" in answers[0] and '"isError":true' in answers[0], answers


@pytest.mark.parametrize("tool", [tool["name"] for tool in MCP_TOOLS if tool.get("box")])
def test_mcp_of_one_sandbox(world, tool):
    answers, thing = [], world.ids["box"]
    for box in (thing, absent(thing)):
        response = ask_mcp_tool(world.two, f"/sandbox/{box}/mcp", tool, MCP_ARGUMENTS.get(tool, {}))
        answers.append(response.body.decode().replace(box, "ID"))
    assert answers[0] == answers[1] and "not_found" in answers[0], answers
