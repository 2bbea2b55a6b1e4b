"""What is answered is stored: an api that is killed right after an answer has forgotten nothing of it, nor who did it.

SQLite's write lock is held from outside, so no write of the store ends. While it is held, no route that changes something durable may
answer; when it is released, all of them answer well, and the audit log has an entry for each. Every mutating route of
api/openapi.yaml, of the dialects, and every mutating tool is either in the sweep or among the exceptions, with the reason.
"""

import contextlib
import io
import json
import re
import sqlite3
import tarfile
import time

import pytest
import yaml

import paddock
from test_images import Tar

from dialects import CONNECT, JSON, META, Op, service, tool

HELD_S = 2  # the api gives up after BUSY_MS (5 s, src/store/store_sql.c)
MUTATING = ("POST", "PUT", "PATCH", "DELETE", "*")


@pytest.fixture(scope="module")
def site(daemon_factory):
    it = daemon_factory("stored", environment={"PADDOCK_WEBHOOKS_REFUSE": "link-local"}).start()
    yield it
    it.finish()


class World:
    """Makes what a request needs before the lock is taken."""

    def __init__(self, daemon):
        self.daemon, self.api, self.count = daemon, daemon.client(), 0

    def name(self):
        self.count += 1
        return f"w{self.count}"

    def box(self, **spec):
        return self.api.create(**spec)

    def made(self, path, document, status=(201, 202)):
        answer = self.api.post(path, document)
        assert answer.status in status, (path, answer)
        return answer.json()

    def does(self, method, path, document=None):
        answer = self.api.send_json(method, path, document) if document is not None else self.api.request(method, path)
        assert 200 <= answer.status < 300, (method, path, answer)
        return answer

    def paused(self):
        box = self.box(ttl_seconds=3600)
        self.does("POST", f"{box.path}/pause", {})
        return box

    def stopped(self):
        box = self.box(ttl_seconds=3600)
        self.does("POST", f"{box.path}/stop", {})
        return box

    def tenant(self):
        return self.made("/v1/tenants", {"name": self.name()})["id"]

    def link(self):
        return {"from": self.box().id, "to": self.box().id, "port": 8080}

    def template(self):
        build = self.made("/v3/templates", {"name": self.name()})
        one = f"/templates/{build['templateID']}"
        self.does("POST", f"/v2{one}/builds/{build['buildID']}", {"fromImage": "base"})

        def ready():
            status = self.api.get(f"{one}/builds/{build['buildID']}/status").json()
            assert status["status"] != "error", status
            return status["status"] == "ready"

        paddock.until(ready, "the template is built")
        return build

    def snapshot(self):
        return self.made(f"{self.box().path}/snapshots", {})["id"]

    def agent(self, built=False, running=False):
        """The id of a new agent."""
        one = self.made("/v1/agents", {"manifest": AGENT, "name": self.name(), "consent": True})["id"]
        if not built and not running:
            return one
        code = io.BytesIO()
        with tarfile.open(fileobj=code, mode="w") as tar:
            program = tarfile.TarInfo("main.py")
            program.size = len(AGENT_PROGRAM)
            tar.addfile(program, io.BytesIO(AGENT_PROGRAM))
        answer = self.api.request("PUT", f"/v1/agents/{one}/code", code.getvalue())
        assert answer.status == 202, answer

        def ready():
            now = self.api.get(f"/v1/agents/{one}").json()
            assert now["status"] != "failed", now
            return now["status"] == "stopped"

        paddock.until(ready, "the agent is built")
        if running:
            self.does("POST", f"/v1/agents/{one}/start")
        return one

    def secret(self, at="/v1/secrets"):
        name = self.name()
        self.does("PUT", f"{at}/{name}", {"value": "hush"})
        return name

    def image(self):
        return self.made("/v1/images", {"name": self.name(), "snapshot": self.snapshot()})["name"]

    def hook(self):
        at = f"/sandbox/{self.box().id}/v1/sandbox/hooks"
        self.does("POST", at, {"name": "a", "command": "true", "event": "shutdown"})
        return f"{at}/a"

    def webhook(self):
        return {"url": "http://127.0.0.1:1/", "events": ["created"]}


def on_box(what, body, method="POST", **spec):
    """A request about a new sandbox."""
    return lambda w: Op(method, f"/v1/sandboxes/{w.box(**spec).id}{what}", body)


def on_tenant(what, body, method="PUT"):
    return lambda w: Op(method, f"/v1/tenants/{w.tenant()}{what}", body)


def e2b(what, body, method="POST", at="/sandboxes", **spec):
    return lambda w: Op(method, f"{at}/{w.box(ttl_seconds=3600, **spec).id}{what}", body)


def about(method, pattern, make, body=None):
    """A request about something that `make` makes."""
    return lambda w: Op(method, pattern.format(make(w)), body)


AGENT = {"name": "Waits", "version": "1.0.0", "runtime": "python", "entrypoint": "main.py"}
AGENT_PROGRAM = b"import signal\nsignal.pause()\n"
RULES = {"egress": {"allow": ["example.org"]}}
POLICY = RULES["egress"]

SWEEP = {
    # sandboxes
    "POST /v1/sandboxes": lambda w: Op("POST", "/v1/sandboxes", {"name": w.name()}),
    "DELETE /v1/sandboxes/{}": on_box("", None, "DELETE"),
    "PATCH /v1/sandboxes/{}": on_box("", {"metadata": {"a": "b"}, "limits": {"memory_mb": 256}}, "PATCH"),
    "POST /v1/sandboxes/{}/extend": on_box("/extend", {"ttl_seconds": 600}),
    "POST /v1/sandboxes/{}/pause": on_box("/pause", {}),
    "POST /v1/sandboxes/{}/resume": about("POST", "/v1/sandboxes/{}/resume", lambda w: w.paused().id, {}),
    "POST /v1/sandboxes/{}/stop": on_box("/stop", {}),
    "POST /v1/sandboxes/{}/start": about("POST", "/v1/sandboxes/{}/start", lambda w: w.stopped().id, {}),
    "POST /v1/sandboxes/{}/snapshots": on_box("/snapshots", {}),
    "POST /v1/sandboxes/{}/fork": on_box("/fork", {"count": 2}),
    "DELETE /v1/snapshots/{}": about("DELETE", "/v1/snapshots/{}", World.snapshot),
    "POST /v1/workspaces": lambda w: Op("POST", "/v1/workspaces", {"name": w.name()}),
    "DELETE /v1/workspaces/{}": about("DELETE", "/v1/workspaces/{}", lambda w: w.made("/v1/workspaces", {"name": w.name()})["name"]),
    "POST /v1/links": lambda w: Op("POST", "/v1/links", w.link()),
    "DELETE /v1/links/{}": about("DELETE", "/v1/links/{}", lambda w: w.made("/v1/links", w.link())["id"]),
    "PUT /v1/sandboxes/{}/egress": on_box("/egress", POLICY, "PUT"),
    "DELETE /v1/sandboxes/{}/egress": on_box("/egress", None, "DELETE", **RULES),
    "POST /v1/sandboxes/{}/egress/rules": on_box("/egress/rules", {"action": "allow", "targets": ["example.com"]}, **RULES),
    "PUT /v1/sandboxes/{}/ai": on_box("/ai", {"day": 1}, "PUT"),
    "PATCH /v1/sandboxes/{}/ai": on_box("/ai", {"day": 1}, "PATCH"),
    "POST /v1/sandboxes/{}/ai/token": on_box("/ai/token", {}),
    # tenants, keys, webhooks
    "POST /v1/tenants": lambda w: Op("POST", "/v1/tenants", {"name": w.name()}),
    "PUT /v1/tenants/{}/quota": on_tenant("/quota", {"boxes": 3}),
    "PUT /v1/tenants/{}/ai": on_tenant("/ai", {"day": 1}),
    "PATCH /v1/tenants/{}/ai": on_tenant("/ai", {"day": 1}, "PATCH"),
    "PUT /v1/tenants/{}/egress": on_tenant("/egress", POLICY),
    "DELETE /v1/tenants/{}/egress": on_tenant("/egress", None, "DELETE"),
    "POST /v1/keys": lambda w: Op("POST", "/v1/keys", {"role": "user"}),
    "DELETE /v1/keys/{}": about("DELETE", "/v1/keys/{}", lambda w: w.made("/v1/keys", {"role": "user"})["id"]),
    "POST /v1/webhooks": lambda w: Op("POST", "/v1/webhooks", w.webhook()),
    "DELETE /v1/webhooks/{}": about("DELETE", "/v1/webhooks/{}", lambda w: w.made("/v1/webhooks", w.webhook())["id"]),
    # agents
    "POST /v1/agents": lambda w: Op("POST", "/v1/agents", {"manifest": AGENT, "name": w.name(), "consent": True}),
    "PUT /v1/agents/{}/code": lambda w: Op("PUT", f"/v1/agents/{w.agent()}/code", b"\0" * 10240, {"Content-Type": "application/x-tar"}),
    "POST /v1/agents/{}/upgrade": about("POST", "/v1/agents/{}/upgrade", lambda w: w.agent(built=True), {"manifest": {**AGENT, "version": "1.1.0"}, "consent": True}),
    "POST /v1/agents/{}/start": about("POST", "/v1/agents/{}/start", lambda w: w.agent(built=True)),
    "POST /v1/agents/{}/stop": about("POST", "/v1/agents/{}/stop", lambda w: w.agent(running=True)),
    "POST /v1/agents/{}/restart": about("POST", "/v1/agents/{}/restart", lambda w: w.agent(running=True)),
    "DELETE /v1/agents/{}": about("DELETE", "/v1/agents/{}", World.agent),
    # E2B
    "POST /sandboxes": lambda w: Op("POST", "/sandboxes", {"templateID": "base"}),
    "POST /v2/sandboxes": lambda w: Op("POST", "/v2/sandboxes", {"templateID": "base"}),
    "DELETE /sandboxes/{}": e2b("", None, "DELETE"),
    "POST /sandboxes/{}/timeout": e2b("/timeout", {"timeout": 600}),
    "POST /sandboxes/{}/refreshes": e2b("/refreshes", {"duration": 3600}),
    "POST /sandboxes/{}/pause": e2b("/pause", {}),
    "POST /sandboxes/{}/resume": about("POST", "/sandboxes/{}/resume", lambda w: w.paused().id, {"timeout": 600}),
    "POST /sandboxes/{}/connect": about("POST", "/sandboxes/{}/connect", lambda w: w.paused().id, {"timeout": 600}),
    "POST /v2/sandboxes/{}/connect": e2b("/connect", {"timeout": 7200}, at="/v2/sandboxes"),
    "POST /sandboxes/{}/fork": e2b("/fork", {"count": 1}),
    "POST /sandboxes/{}/snapshots": e2b("/snapshots", {}),
    "PUT /sandboxes/{}/network": e2b("/network", {"allowOut": ["example.org"], "denyOut": ["0.0.0.0/0"]}, "PUT"),
    "POST /v3/templates": lambda w: Op("POST", "/v3/templates", {"name": w.name()}),
    "DELETE /templates/{}": about("DELETE", "/templates/{}", lambda w: w.template()["templateID"]),
    "POST /templates/tags": lambda w: Op("POST", "/templates/tags", {"target": w.template()["names"][0], "tags": ["one"]}),
    "DELETE /templates/tags": lambda w: Op("DELETE", "/templates/tags", {"name": w.template()["names"][0], "tags": ["default"]}),
    "POST /volumes": lambda w: Op("POST", "/volumes", {"name": w.name()}),
    "DELETE /volumes/{}": about("DELETE", "/volumes/{}", lambda w: w.made("/volumes", {"name": w.name()})["volumeID"]),
    # Agent-Sandbox, agentbox, Sandkasten, AIO
    "POST /api/v1/sandbox": lambda w: Op("POST", "/api/v1/sandbox", {"name": w.name()}),
    "DELETE /api/v1/sandbox/{}": about("DELETE", "/api/v1/sandbox/{}", lambda w: w.box(name=w.name()).id),
    "POST /api/v1/sandbox/pause/{}": about("POST", "/api/v1/sandbox/pause/{}", lambda w: w.box(name=w.name()).id),
    "POST /api/v1/sandbox/resume/{}": about("POST", "/api/v1/sandbox/resume/{}", lambda w: w.paused().id),
    "POST /sandbox.v1.SandboxService/CreateSession": lambda w: service("CreateSession", session_id=w.name()),
    "POST /sandbox.v1.SandboxService/DestroySession": lambda w: service("DestroySession", session_id=w.box().id),
    "POST /v1/sessions": lambda w: Op("POST", "/v1/sessions", {"ttl_seconds": 600}),
    "DELETE /v1/sessions/{}": about("DELETE", "/v1/sessions/{}", lambda w: w.made("/v1/sessions", {})["id"]),
    "POST /sandbox/{}/v1/sandbox/hooks": about("POST", "/sandbox/{}/v1/sandbox/hooks", lambda w: w.box().id,
                                               {"name": "a", "command": "true", "event": "shutdown"}),
    # kept by others than the store (the vault, the keeper), or nowhere: who did it is in the store
    "POST /secrets": lambda w: Op("POST", "/secrets", {"name": w.name(), "value": "hush"}),
    "POST /secrets/{}": about("POST", "/secrets/{}", World.secret, {"value": "other"}),
    "DELETE /secrets/{}": about("DELETE", "/secrets/{}", World.secret),
    "PUT /v1/secrets/{}": lambda w: Op("PUT", f"/v1/secrets/{w.name()}", {"value": "hush"}),
    "DELETE /v1/secrets/{}": about("DELETE", "/v1/secrets/{}", World.secret),
    "PUT /v1/sandboxes/{}/secrets/{}": on_box("/secrets/a", {"value": "hush"}, "PUT"),
    "DELETE /v1/sandboxes/{}/secrets/{}": lambda w: (lambda at: Op("DELETE", f"{at}/{w.secret(at)}"))(f"/v1/sandboxes/{w.box().id}/secrets"),
    "POST /v1/vault/rotate": lambda w: Op("POST", "/v1/vault/rotate"),
    "PUT /v1/signer": lambda w: Op("PUT", "/v1/signer", {"paused": True}),
    "POST /v1/images": lambda w: Op("POST", "/v1/images", {"name": w.name(), "snapshot": w.snapshot()}),
    "DELETE /v1/images/{}": about("DELETE", "/v1/images/{}", World.image),
    "PUT /v1/images/{}": lambda w: Op("PUT", f"/v1/images/{w.name()}", Tar().bytes(), {"Content-Type": "application/x-tar"}),
    "POST /sandbox/{}/tickets": about("POST", "/sandbox/{}/tickets", lambda w: w.box().id, {}),
    "DELETE /sandbox/{}/v1/sandbox/hooks/{}": about("DELETE", "{}", World.hook),
    "POST /v1/sandboxes/{}/egress/token": on_box("/egress/token", {"allowed_hosts": ["example.org"]}, **RULES),
    "POST /v1/sandboxes/{}/fs/sign": on_box("/fs/sign", {"path": "/etc/passwd", "method": "GET", "expires_seconds": 60}),
    "POST /v1/sandboxes/{}/previews": on_box("/previews", {"port": 8080}),
    "POST /v2/templates/{}/builds/{}": about("POST", "/v2/templates/{}", lambda w: (lambda b: f"{b['templateID']}/builds/{b['buildID']}")(
        w.made("/v3/templates", {"name": w.name()})), {"fromImage": "base"}),
    # tools
    "tool sandbox_create": lambda w: tool("/mcp", "sandbox_create", name=w.name()),
    "tool sandbox_delete": lambda w: tool("/mcp", "sandbox_delete", sandbox=w.box().id),
    "tool snapshot": lambda w: tool("/mcp", "snapshot", sandbox=w.box().id),
    "tool fork": lambda w: tool("/mcp", "fork", sandbox=w.box().id),
    "tool createSandbox": lambda w: tool("/mcp", "createSandbox", name=w.name()),
    "tool deleteSandbox": lambda w: tool("/mcp", "deleteSandbox", name=w.box(name=w.name()).document["name"]),
}

EXCEPTIONS = {reason: set(re.split(r"\s{2,}", routes.strip())) for reason, routes in {
    "the signer has its own database and answers when it has the change (docs/design/signer.md)": """
        POST /v1/transactions/{}/approve  POST /v1/transactions/{}/reject  POST /v1/transactions/{}/cancel
        POST /v1/transactions/{}/speed-up  POST /v1/transactions/{}/revoke  POST /v1/transactions/{}/wallet  PUT /v1/agents/{}/limits
        tool transactions""",
    "not supported yet": """
        POST /v1/wallets/connect  DELETE /v1/wallets/sessions/{}""",
    "it goes to a server in the sandbox": """
        * /sandbox/{}/absproxy/{}  * /sandbox/{}/absproxy/{}/{}  * /sandbox/{}/proxy/{}  * /sandbox/{}/proxy/{}/{}  * /sandbox/{}/{}
        * /sandboxes/router/{}/{}/{}  DELETE /v1/previews/{}/{}/{}/{}  PATCH /v1/previews/{}/{}/{}/{}  POST /v1/previews/{}/{}/{}/{}
        PUT /v1/previews/{}/{}/{}/{}  DELETE /v1/sandboxes/{}/ports/{}/{}  PATCH /v1/sandboxes/{}/ports/{}/{}
        POST /v1/sandboxes/{}/ports/{}/{}  PUT /v1/sandboxes/{}/ports/{}/{}""",
    "it is a question": """
        POST /api/v1/sandbox/metrics  POST /grpc.health.v1.Health/Check  POST /grpc.health.v1.Health/Watch
        POST /grpc.reflection.v1.ServerReflection/ServerReflectionInfo
        POST /grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo  POST /sandbox.v1.SandboxService/GetSession
        POST /sandbox.v1.SandboxService/ListSessions""",
    "it is refused, or changes nothing": """
        POST /api/v1/config/{}  DELETE /api/v1/pool/{}  DELETE /sandbox/{}/v1/browser/{}  POST /sandbox/{}/v1/browser/{}
        PUT /sandbox/{}/v1/browser/{}  POST /sandbox/{}/v1/display/record  DELETE /sandbox/{}/v1/proxy/excludes
        POST /sandbox/{}/v1/proxy/excludes  POST /sandbox/{}/v1/proxy/mappings  DELETE /sandbox/{}/v1/proxy/mappings/{}
        DELETE /sandbox/{}/v1/proxy/upstream  PUT /sandbox/{}/v1/proxy/upstream  PATCH /v2/templates/{}""",
    "uploads are for builds": """
        PUT /templates/{}/files/{}""",
    "what a call costs is reserved before it and counted behind its last byte": """
        POST /api/{}/{}""",
    "a session of MCP ends with the api; its tools are on their own": """
        DELETE /mcp  POST /mcp  DELETE /sandbox/{}/mcp  POST /sandbox/{}/mcp  POST /sandbox/{}/v1/mcp/{}/tools/{}  tool sandboxExecutor""",
    "these are files of a workspace": """
        DELETE /v1/workspaces/{}/files/{}  PUT /v1/workspaces/{}/files/{}  POST /v1/workspaces/{}/fs/upload
        POST /v1/workspaces/{}/fs/write  POST /volumecontent/{}/dir  PUT /volumecontent/{}/file  DELETE /volumecontent/{}/path
        PATCH /volumecontent/{}/path""",
    "it is the sandbox's own: its files, processes, shells, contexts and watchers are in no store": """
        DELETE /api/v1/sandbox/files/{}  POST /api/v1/sandbox/files/{}/upload  POST /api/v1/terminal/sandbox/{}  POST /contexts
        DELETE /contexts/{}  POST /contexts/{}/restart  POST /exec  POST /exec/stream  POST /execute  POST /file/read  POST /file/write
        POST /files  POST /files/compose  POST /filesystem.Filesystem/CreateWatcher  POST /filesystem.Filesystem/GetWatcherEvents
        POST /filesystem.Filesystem/ListDir  POST /filesystem.Filesystem/MakeDir  POST /filesystem.Filesystem/Move
        POST /filesystem.Filesystem/Remove  POST /filesystem.Filesystem/RemoveWatcher  POST /filesystem.Filesystem/Stat
        POST /filesystem.Filesystem/WatchDir  POST /process.Process/CloseStdin  POST /process.Process/Connect
        POST /process.Process/List  POST /process.Process/SendInput  POST /process.Process/SendSignal  POST /process.Process/Start
        POST /process.Process/StreamInput  POST /process.Process/Update  POST /sandbox.v1.SandboxService/Exec
        POST /sandbox.v1.SandboxService/ExecStream  POST /sandbox.v1.SandboxService/PipInstall
        POST /sandbox.v1.SandboxService/PipInstallStream  POST /sandbox.v1.SandboxService/ReadFile
        POST /sandbox.v1.SandboxService/WriteFile  POST /sandbox/{}/v1/bash/exec  POST /sandbox/{}/v1/bash/kill
        POST /sandbox/{}/v1/bash/output  POST /sandbox/{}/v1/bash/sessions/create  POST /sandbox/{}/v1/bash/sessions/{}/close
        POST /sandbox/{}/v1/bash/write  POST /sandbox/{}/v1/code/execute  POST /sandbox/{}/v1/file/find  POST /sandbox/{}/v1/file/glob
        POST /sandbox/{}/v1/file/grep  POST /sandbox/{}/v1/file/list  POST /sandbox/{}/v1/file/read  POST /sandbox/{}/v1/file/replace
        POST /sandbox/{}/v1/file/search  POST /sandbox/{}/v1/file/str_replace_editor  POST /sandbox/{}/v1/file/upload
        POST /sandbox/{}/v1/file/watch  POST /sandbox/{}/v1/file/watch/wait  DELETE /sandbox/{}/v1/file/watch/{}
        POST /sandbox/{}/v1/file/watch/{}/poll  POST /sandbox/{}/v1/file/write  POST /sandbox/{}/v1/jupyter/execute
        DELETE /sandbox/{}/v1/jupyter/sessions  POST /sandbox/{}/v1/jupyter/sessions/create  DELETE /sandbox/{}/v1/jupyter/sessions/{}
        POST /sandbox/{}/v1/nodejs/execute  POST /sandbox/{}/v1/nodejs/sessions  DELETE /sandbox/{}/v1/nodejs/sessions/{}
        PATCH /sandbox/{}/v1/nodejs/sessions/{}  POST /sandbox/{}/v1/sandbox/observe/export
        DELETE /sandbox/{}/v1/sandbox/observe/reports/{}  POST /sandbox/{}/v1/sandbox/observe/start
        POST /sandbox/{}/v1/sandbox/observe/stop  POST /sandbox/{}/v1/shell/exec  POST /sandbox/{}/v1/shell/kill
        DELETE /sandbox/{}/v1/shell/sessions  POST /sandbox/{}/v1/shell/sessions/create  POST /sandbox/{}/v1/shell/sessions/update
        DELETE /sandbox/{}/v1/shell/sessions/{}  POST /sandbox/{}/v1/shell/view  POST /sandbox/{}/v1/shell/wait
        POST /sandbox/{}/v1/shell/write  DELETE /sandbox/{}/v1/skills  POST /sandbox/{}/v1/skills/register
        DELETE /sandbox/{}/v1/skills/{}  POST /sandbox/{}/v1/util/convert_to_markdown  POST /v1/sandboxes/{}/contexts
        DELETE /v1/sandboxes/{}/contexts/{}  POST /v1/sandboxes/{}/contexts/{}/execute  POST /v1/sandboxes/{}/contexts/{}/interrupt
        POST /v1/sandboxes/{}/contexts/{}/restart  POST /v1/sandboxes/{}/exec  POST /v1/sandboxes/{}/execute
        DELETE /v1/sandboxes/{}/files/{}  POST /v1/sandboxes/{}/files/{}  PUT /v1/sandboxes/{}/files/{}  POST /v1/sandboxes/{}/fs/chmod
        POST /v1/sandboxes/{}/fs/copy  POST /v1/sandboxes/{}/fs/find  POST /v1/sandboxes/{}/fs/grep  POST /v1/sandboxes/{}/fs/mkdir
        POST /v1/sandboxes/{}/fs/move  POST /v1/sandboxes/{}/fs/replace  POST /v1/sandboxes/{}/fs/watchers
        DELETE /v1/sandboxes/{}/fs/watchers/{}  POST /v1/sandboxes/{}/processes  DELETE /v1/sandboxes/{}/processes/{}
        POST /v1/sandboxes/{}/processes/{}/resize  POST /v1/sandboxes/{}/processes/{}/signal  POST /v1/sandboxes/{}/processes/{}/stdin
        POST /v1/sandboxes/{}/shells  DELETE /v1/sandboxes/{}/shells/{}  POST /v1/sessions/{}/exec  POST /v1/sessions/{}/exec/stream
        POST /v1/sessions/{}/fs/upload  POST /v1/sessions/{}/fs/write  tool exec  tool file_edit  tool file_write  tool processes
        tool run_code""",
}.items()}


def plain(route):
    return re.sub(r"\{[^}]*\}", "{}", route)


def served(client):
    """Every mutating route, and every mutating tool."""
    answer = client.get("/v1/dialects").json()
    routes = {plain(route) for place in (*answer["listeners"][0]["dialects"], *answer["ports"]) for route in place["routes"]}
    document = yaml.safe_load((paddock.ROOT / "api" / "openapi.yaml").read_text())
    routes |= {plain(f"{method.upper()} {path}") for path, item in document["paths"].items() for method in item}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": META}}
    tools = client.request("POST", "/mcp", json.dumps(body).encode(), {**JSON, "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/list",
                                                                       "Accept": "application/json, text/event-stream"}).json()["result"]["tools"]
    return ({route for route in routes if route.split()[0] in MUTATING}
            | {f"tool {each['name']}" for each in tools if not each.get("annotations", {}).get("readOnlyHint")})


def test_every_route_is_known(site):
    every = served(site.client())
    excepted = {route for routes in EXCEPTIONS.values() for route in routes}
    assert every - set(SWEEP) - excepted == set(), "neither in the sweep nor an exception with its reason"
    assert (set(SWEEP) | excepted) - every == set(), "not served, or not mutating"
    assert set(SWEEP) & excepted == set()


@contextlib.contextmanager
def locked(daemon):
    """Nobody writes to the store in this block."""
    with contextlib.closing(sqlite3.connect(daemon.data_dir / "store" / "paddock.db", isolation_level=None)) as store:
        store.execute("BEGIN IMMEDIATE")
        try:
            yield
        finally:
            store.execute("ROLLBACK")


def request_id(route):
    return "r-" + re.sub(r"[^a-z0-9]+", "-", route, flags=re.IGNORECASE)[:60]


def send(daemon, op, route):
    client = daemon.client()
    try:
        body = op.body if op.body is None or isinstance(op.body, bytes) else json.dumps(op.body).encode()
        headers = op.headers if body is not None else {}
        return client.request(op.method, op.path, body, {**headers, "X-Request-Id": request_id(route)})
    finally:
        client.close()


def went_well(op, answer):
    if not 200 <= answer.status < 300:
        return False
    document = answer.json() if answer.body and op.headers in (JSON, CONNECT) or "Mcp-Name" in op.headers else {}
    return not isinstance(document, dict) or not (document.get("error") or document.get("result", {}).get("isError") or document.get("success") is False)


# Commands of the signer that a daemon without a wallet refuses; test_transactions.py looks for their entries.
ELSEWHERE = {"/agent/request-transaction", "/agent/transactions/{id}/cancel"}
INSIDE = {"/agent/log", "/agent/query-chain", "/rpc/{chain}"}  # an agent's log, questions to a chain


def test_routes_that_no_document_has(site):
    """Those of the dashboard and of agents have entries, too: test_audit.py, test_transactions.py."""
    lines = (paddock.ROOT / "test" / "it" / "golden" / "routes.txt").read_text().split("\n\n")
    others = {line for block in lines for line in block.splitlines()[1:]
              if re.match(r"=== (dashboard|assegai)", block) and line.split()[0] in MUTATING}
    assert {line for line in others if line.startswith("POST /agent") or line.startswith("POST /rpc")} == {f"POST {path}" for path in ELSEWHERE | INSIDE}
    assert {line for line in others if "/dashboard/" in line} == {
        "POST /dashboard/session", "DELETE /dashboard/session", "POST /dashboard/templates", "DELETE /dashboard/templates/{id}",
        "POST /dashboard/templates/{id}/sandboxes"}


def audited(site, wanted):
    """The entries of these requests, by route; each has one."""
    entries = site.client().get("/v1/audit?limit=2000").json()["entries"]
    found = {route: [e for e in entries if e["request_id"] == request_id(route)] for route in wanted}
    bad = {route: each for route, each in found.items() if len(each) != 1}
    assert not bad, f"without an entry of their own: {bad}"
    return {route: each[0] for route, each in found.items()}


WITHOUT_OBJECT = {"POST /v1/vault/rotate", "PUT /v1/signer"}


def test_what_is_answered_is_stored(site):
    assert len({request_id(route) for route in SWEEP}) == len(SWEEP)
    world = World(site)
    wanted = {route: make(world) for route, make in SWEEP.items()}
    with locked(site):
        sent = {route: paddock.Background(send, site, op, route) for route, op in wanted.items()}
        end = time.monotonic() + HELD_S  # not for an event: for one that must not come
        for each in sent.values():
            each.join(max(0, end - time.monotonic()))
        answered = {route: each.value or each.error for route, each in sent.items() if not each.is_alive()}
    results = {route: each.result() for route, each in sent.items()}
    assert not answered, "answered without being stored:\n" + "\n".join(f"{route}: {answer}" for route, answer in answered.items())
    bad = {route: answer for route, answer in results.items() if not went_well(wanted[route], answer)}
    assert not bad, "\n".join(f"{route}: {answer}" for route, answer in bad.items())
    for route, entry in audited(site, wanted).items():
        assert (entry["verdict"], entry["code"], entry["key"], entry["from"]) == ("done", None, "k_admin", "127.0.0.1"), (route, entry)
        assert entry["target"] or route in WITHOUT_OBJECT, (route, entry)


def test_an_entry_that_the_disk_refused_is_written_later(site):
    """The store gives up after a while, and says so to whoever asked; the audit log tries again."""
    key = site.client().post("/v1/keys", {"tenant": "default", "role": "user"}).json()["key"]
    with locked(site):
        answer = site.client(key).request("POST", "/v1/tenants", b'{"name": "forbidden"}', {**JSON, "X-Request-Id": "refused-once"})
        assert answer.status == 403 and "the audit log cannot be written" in site.log(400)

    def stored():
        with contextlib.closing(sqlite3.connect(site.data_dir / "store" / "paddock.db")) as store:
            return store.execute("SELECT count(*) FROM audit WHERE request = 'refused-once'").fetchone()[0]

    paddock.until(lambda: stored() == 1, "it is written")


def test_a_link_goes_with_its_target(site):
    """They are removed in one transaction: a later api finds no link that leads nowhere."""
    world = World(site)
    for _ in range(5):
        wish = world.link()
        world.made("/v1/links", wish)
        with contextlib.closing(sqlite3.connect(site.data_dir / "store" / "paddock.db")) as store:
            def spec():
                return store.execute("SELECT spec FROM boxes WHERE id = ?", (wish["from"],)).fetchone()[0]

            assert wish["to"] in spec()
            world.does("DELETE", f"/v1/sandboxes/{wish['to']}")
            assert wish["to"] not in spec()


def test_why_a_session_is_gone_is_known_at_once(site):
    """Sandkasten's clients are told that it has expired, also before the event is stored."""
    world = World(site)
    path = f"/v1/sessions/{world.made('/v1/sessions', {'ttl_seconds': 1})['id']}"
    with locked(site):
        answer = paddock.until(lambda: [each for each in [world.api.get(path)] if each.status != 200], "the session ends")[0]
    assert answer.status == 410 and answer.json()["error_code"] == "SESSION_EXPIRED", answer
    assert world.api.get(path).status == 410


def test_a_build_has_failed_when_that_is_stored(site):
    """Whoever is told finds the same in a later api, and the steps that it kept."""
    world = World(site)
    build = world.made("/v3/templates", {"name": world.name()})
    status = f"/templates/{build['templateID']}/builds/{build['buildID']}/status"
    wait = {"type": "RUN", "args": ["until test -e /tmp/go; do sleep 0.05; done; touch /tmp/went; exit 7", "root"]}
    world.does("POST", f"/v2/templates/{build['templateID']}/builds/{build['buildID']}", {"fromImage": "base", "steps": [wait]})
    [box] = paddock.until(lambda: world.api.list(f"metadata.build={build['buildID']}&status=running"), "there is a sandbox for it")
    with locked(site):
        world.does("POST", f"/v1/sandboxes/{box['id']}/exec", {"command": "touch /tmp/go", "user": "root"})
        end = time.monotonic() + HELD_S
        while time.monotonic() < end:
            told = world.api.get(status).json()
            assert told["status"] == "building", told
    paddock.until(lambda: world.api.get(status).json()["status"] == "error", "it has failed")
