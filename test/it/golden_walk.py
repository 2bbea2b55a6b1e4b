"""What test_golden_answers.py asks of the daemon: for each dialect its steps, and the routes that have no step that succeeds.

A step is (method, route as in golden/routes.txt, body, what). The braces of the route are filled from the words that are known by
then; `?…` behind it is a query. What: `status` (200, 201, 202 and 204 are fine without), `learn` {word: member of the answer},
`headers`, `at` {brace: value}, `until` (asked again until it has one of these statuses, these members, or something in this member),
`shape` (only the types of the answer are recorded:
figures of the machine), `opaque` (nothing of its body is).
"""

import io
import tarfile

JSON = "application/json"
BYTES = "application/octet-stream"


def step(method, route, body=None, **what):
    return method, route, body, what


def code_of_agent():
    out, program = io.BytesIO(), b"import signal\nsignal.pause()\n"
    with tarfile.open(fileobj=out, mode="w") as tar:
        info = tarfile.TarInfo("main.py")
        info.size = len(program)
        tar.addfile(info, io.BytesIO(program))
    return out.getvalue()


AGENT = {"name": "Waits", "version": "1.0.0", "runtime": "python", "entrypoint": "main.py"}
BOX, FILE = "/v1/sandboxes/{id}", "/v1/sandboxes/{id}/files/{path}"
SHAPED = {"shape": True}
GONE = {"status": 204}

REST = [
    *(step("GET", path, shape=True) for path in ("/health", "/healthz", "/readyz", "/v1/capabilities")),
    step("GET", "/v1/posture", opaque=True),
    step("GET", "/openapi.json", opaque=True),
    step("GET", "/v1/dialects", shape=True),
    step("GET", "/v1/egress/sets", shape=True), step("GET", "/v1/chains"), step("GET", "/v1/catalogues"),
    # sandboxes
    step("POST", "/v1/sandboxes", {"name": "golden", "metadata": {"a": "b"}, "ttl_seconds": 3600,
                                   "limits": {"cpu": 1, "memory_mb": 256, "pids": 100, "nofile": 512},
                                   "env": {"COLOUR": "green"}, "egress": {"allow": ["example.org"]}}, learn={"id": "id"}),
    step("POST", "/v1/sandboxes", {"name": "golden"}, status=409),
    step("POST", "/v1/sandboxes", {"image": "none"}, status=404),
    step("POST", "/v1/sandboxes", {"limits": {"pids": 1}}, status=400),
    step("GET", "/v1/sandboxes"), step("GET", "/v1/sandboxes?metadata.a=b&status=running&limit=1"), step("GET", BOX),
    step("PATCH", BOX, {"metadata": {"a": "c"}, "idle_seconds": 600, "limits": {"pids": 90}}),
    step("PATCH", BOX, {"limits": {"nofile": 100}}, status=400),
    step("POST", BOX + "/extend", {"ttl_seconds": 7200}),
    step("GET", BOX + "/posture", opaque=True),
    step("POST", BOX + "/exec", {"command": "echo out; echo err >&2; exit 3"}),
    step("POST", BOX + "/exec", {"argv": ["/none"]}, status=None),
    step("POST", BOX + "/exec", {"command": "echo out"}, headers={"Accept": "application/x-ndjson"}),
    step("POST", BOX + "/exec", {"command": "echo in a shell", "shell": "default"}),
    # files
    step("PUT", FILE, b"one\ntwo\n", at={"path": "workspace/f"}, headers={"Content-Type": BYTES}),
    step("PUT", FILE + "?append=1", b"three\n", at={"path": "workspace/f"}, headers={"Content-Type": BYTES}),
    step("GET", FILE, at={"path": "workspace/f"}), step("HEAD", FILE, at={"path": "workspace/f"}),
    step("GET", FILE, at={"path": "workspace/f"}, headers={"Range": "bytes=2-4"}, status=206),
    step("GET", FILE + "?list=1", at={"path": "workspace"}), step("GET", FILE, at={"path": "none"}, status=404),
    step("GET", FILE + "?list=1", at={"path": "workspace/f"}, status=400),
    step("POST", FILE, b'--B\r\nContent-Disposition: form-data; name="f"; filename="x"\r\n\r\nz\r\n--B--\r\n', at={"path": "workspace/form"},
         headers={"Content-Type": "multipart/form-data; boundary=B"}),
    step("POST", BOX + "/fs/mkdir", {"path": "/workspace/d", "mode": "0750"}),
    step("POST", BOX + "/fs/copy", {"from": "/workspace/f", "to": "/workspace/d/c"}),
    step("POST", BOX + "/fs/copy", {"from": "/none", "to": "/workspace/d/c"}, status=404),
    step("POST", BOX + "/fs/move", {"from": "/workspace/d/c", "to": "/workspace/d/m"}),
    step("POST", BOX + "/fs/chmod", {"path": "/workspace/d", "mode": "0755", "recursive": True}),
    step("POST", BOX + "/fs/find", {"path": "/workspace/d", "pattern": "*"}),
    step("POST", BOX + "/fs/grep", {"path": "/workspace/d", "pattern": "two"}),
    step("POST", BOX + "/fs/grep", {"path": "/workspace", "pattern": "(", "regex": True}, status=400),
    step("POST", BOX + "/fs/replace", {"path": "/workspace/d/m", "old": "two", "new": "2"}),
    step("GET", BOX + "/fs/stat?path=/workspace/d/m"), step("GET", BOX + "/fs/stat?path=/none", status=404),
    step("POST", BOX + "/fs/sign", {"path": "/workspace/f", "method": "GET", "expires_seconds": 60}, shape=True),
    step("POST", BOX + "/fs/watchers", {"path": "/workspace/d"}, learn={"watcher": "id"}),
    step("GET", BOX + "/fs/watchers/{watcher}"), step("DELETE", BOX + "/fs/watchers/{watcher}"),
    step("DELETE", FILE, at={"path": "workspace/f"}), step("DELETE", FILE, at={"path": "workspace/f"}, status=404),
    # processes, shells, contexts
    step("POST", BOX + "/shells", {"name": "s"}), step("GET", BOX + "/shells"), step("GET", BOX + "/shells/{name}", at={"name": "s"}),
    step("DELETE", BOX + "/shells/{name}", at={"name": "s"}),
    step("POST", BOX + "/processes", {"argv": ["cat"], "tag": "golden", "pty": {"cols": 80, "rows": 24}}, status=None),
    step("GET", BOX + "/processes", shape=True),
    *(step(method, BOX + "/processes/{process}" + rest, body, at={"process": "golden"}, status=None, **more) for method, rest, body, more in (
        ("GET", "", None, SHAPED), ("POST", "/resize", {"cols": 100, "rows": 30}, {}), ("POST", "/stdin", b"x\n", {"headers": {"Content-Type": BYTES}}),
        ("POST", "/signal", {"signal": 9}, {}), ("GET", "/wait", None, {}), ("GET", "/output", None, {"opaque": True}))),
    step("POST", BOX + "/processes", {"argv": ["sleep", "600"], "tag": "ended"}), step("DELETE", BOX + "/processes/{process}", at={"process": "ended"}),
    step("POST", BOX + "/contexts", {"language": "bash"}, learn={"context": "id"}), step("GET", BOX + "/contexts"), step("GET", BOX + "/contexts/{context}"),
    step("POST", BOX + "/contexts/{context}/execute", {"code": "echo context"}),
    step("POST", BOX + "/contexts/{context}/interrupt", {}), step("POST", BOX + "/contexts/{context}/restart", {}),
    step("DELETE", BOX + "/contexts/{context}"), step("POST", BOX + "/contexts", {"language": "cobol"}, status=400),
    step("POST", BOX + "/execute", {"code": "echo $A", "language": "bash", "env": {"A": "1"}}),
    # its network
    step("GET", BOX + "/egress"), step("PUT", BOX + "/egress", {"allow": ["example.com", "*.example.net"], "deny": ["bad.example.net"]}),
    step("PUT", BOX + "/egress", {"allow": ["no such host"]}, status=400),
    step("POST", BOX + "/egress/rules", {"action": "allow", "targets": ["pypi.example"]}), step("GET", BOX + "/egress/log"),
    step("GET", BOX + "/egress/sets", shape=True), step("POST", BOX + "/egress/token", {"allowed_hosts": ["example.com"]}, shape=True),
    step("DELETE", BOX + "/egress"), step("GET", BOX + "/ports"),
    step("POST", BOX + "/previews", {"port": 8000}, shape=True),
    step("GET", BOX + "/stats", opaque=True), step("GET", BOX + "/tunnel/{port}", at={"port": "8000"}, status=None),
    step("GET", BOX + "/terminal", status=None),
    *(step(method, BOX + "/ports/{port}/{path}", at={"port": "8000", "path": "x"}, status=502) for method in ("GET", "POST")),
    # secrets, models
    step("PUT", "/v1/secrets/{name}", {"value": "hush"}, at={"name": "GOLDEN"}), step("GET", "/v1/secrets"),
    step("PUT", BOX + "/secrets/{name}", {"value": "hush"}, at={"name": "OWN"}), step("GET", BOX + "/secrets"),
    step("DELETE", BOX + "/secrets/{name}", at={"name": "OWN"}), step("DELETE", "/v1/secrets/{name}", at={"name": "GOLDEN"}),
    step("GET", "/v1/vault/ca.pem"), step("POST", "/v1/vault/rotate", shape=True),
    step("GET", BOX + "/ai"), step("PUT", BOX + "/ai", {"day": 1, "models": ["gpt-4o-mini"]}, status=None), step("PATCH", BOX + "/ai", {"day": 2}),
    step("POST", BOX + "/ai/token", {}, shape=True), step("GET", BOX + "/ai/calls"), step("GET", "/v1/usage"), step("GET", "/v1/usage?by=colour", status=400),
    # life
    *(step("POST", f"{BOX}/{what}") for what in ("pause", "resume", "stop")), step("POST", BOX + "/exec", {"command": "true"}, status=409),
    step("POST", BOX + "/start"),
    step("POST", BOX + "/snapshots", {"name": "snap"}, learn={"snapshot": "id"}, shape=True),
    step("GET", "/v1/snapshots", shape=True), step("GET", "/v1/snapshots/{id}", at={"id": "snap"}, shape=True),
    step("POST", "/v1/images", {"name": "golden-image", "snapshot": "snap"}, shape=True), step("GET", "/v1/images", shape=True),
    step("PUT", "/v1/images/{name}", {}, at={"name": "golden-image"}, status=None),
    step("DELETE", "/v1/images/{name}", at={"name": "golden-image"}),
    step("POST", BOX + "/fork", {"count": 1}, learn={"fork": "sandboxes.0.id"}), step("DELETE", BOX, at={"id": "{fork}"}),
    step("POST", "/v1/sandboxes", {"name": "other"}, learn={"other": "id"}),
    step("POST", "/v1/links", {"from": "{id}", "to": "{other}", "port": 8080}, learn={"link": "id"}), step("GET", "/v1/links"),
    step("DELETE", "/v1/links/{id}", at={"id": "{link}"}), step("DELETE", "/v1/snapshots/{id}", at={"id": "snap"}),
    # workspaces
    step("POST", "/v1/workspaces", {"name": "golden-files"}), step("GET", "/v1/workspaces"), step("GET", "/v1/workspaces/{name}", at={"name": "golden-files"}),
    *(step(method, "/v1/workspaces/{name}/files/{path}", body, at={"name": "golden-files", "path": "f"}) for method, body in (
        ("PUT", b"x"), ("GET", None), ("HEAD", None), ("DELETE", None))),
    step("DELETE", "/v1/workspaces/{name}", at={"name": "golden-files"}, until=(200, 204)),
    # tenants, keys, webhooks, events
    step("POST", "/v1/tenants", {"name": "golden-tenant"}, learn={"tenant": "id"}), step("GET", "/v1/tenants"),
    step("PUT", "/v1/tenants/{id}/quota", {"boxes": 3}, at={"id": "{tenant}"}), step("GET", "/v1/tenants/{id}/quota", at={"id": "{tenant}"}),
    *(step(method, "/v1/tenants/{id}/ai", body, at={"id": "{tenant}"}) for method, body in (("PUT", {"day": 1}), ("PATCH", {"day": 2}), ("GET", None))),
    *(step(method, "/v1/tenants/{id}/egress", body, at={"id": "{tenant}"}) for method, body in (("PUT", {"allow": ["example.org"]}), ("GET", None), ("DELETE", None))),
    step("POST", "/v1/keys", {"tenant": "golden-tenant", "role": "user"}, learn={"key": "id"}), step("GET", "/v1/keys"),
    step("DELETE", "/v1/keys/{id}", at={"id": "{key}"}),
    step("POST", "/v1/webhooks", {"url": "http://127.0.0.1:9/", "events": ["oom"]}, learn={"webhook": "id"}, shape=True), step("GET", "/v1/webhooks"),
    step("GET", "/v1/webhooks/{id}", at={"id": "{webhook}"}), step("DELETE", "/v1/webhooks/{id}", at={"id": "{webhook}"}),
    step("GET", "/v1/events?limit=1"),
    # agents without money
    step("POST", "/v1/agents", {"manifest": AGENT, "name": "golden-agent", "consent": True}, learn={"agent": "id"}), step("GET", "/v1/agents"),
    step("GET", "/v1/agents/{id}", at={"id": "golden-agent"}), step("GET", "/v1/agents/{id}/logs", at={"id": "golden-agent"}, shape=True),
    step("GET", "/v1/agents/{id}/limits", at={"id": "golden-agent"}, status=None), step("GET", "/v1/agents/{id}/spending", at={"id": "golden-agent"}, status=None),
    step("POST", "/v1/agents/{id}/start", at={"id": "golden-agent"}, status=409),
    *(step(method, "/v1/agents/{id}" + rest, body, at={"id": "golden-agent"}, **more) for method, rest, body, more in (
        ("PUT", "/code", code_of_agent(), {"shape": True, "label": "an archive"}),
        ("GET", "", None, {"until": {"status": "stopped"}, "shape": True}), ("POST", "/start", None, {"shape": True}), ("POST", "/restart", None, SHAPED),
        ("POST", "/stop", None, {"shape": True}), ("POST", "/upgrade", {"manifest": {**AGENT, "version": "1.1.0"}, "consent": True}, {"shape": True}))),
    step("DELETE", "/v1/agents/{id}", at={"id": "golden-agent"}),
    step("GET", "/v1/transactions"), step("GET", "/v1/wallets"), step("GET", "/v1/wallets/sessions"), step("GET", "/v1/signer"), step("GET", "/v1/signer/audit"),
]
REST_END = [step("DELETE", BOX, at={"id": "{other}"}), step("DELETE", BOX), step("GET", BOX, status=404), step("GET", "/metrics", opaque=True)]

E2B = [
    step("POST", "/sandboxes", {"templateID": "base", "metadata": {"k": "v"}}, learn={"e2b": "sandboxID", "e2btoken": "envdAccessToken"}), step("GET", "/sandboxes"),
    step("POST", "/v2/sandboxes", {"templateID": "base"}, learn={"e2b2": "sandboxID"}), step("GET", "/v2/sandboxes"),
    step("POST", "/sandboxes", {"templateID": "none"}, status=404),
    *(step(method, "/sandboxes/{id}" + rest, body, at={"id": "{e2b}"}, **more) for method, rest, body, more in (
        ("GET", "", None, {}), ("POST", "/timeout", {"timeout": 600}, {}), ("POST", "/refreshes", {"duration": 700}, {}),
        ("PUT", "/network", {"allowOut": ["example.org"], "denyOut": ["0.0.0.0/0"]}, {}), ("GET", "/logs", None, SHAPED),
        ("GET", "/metrics", None, {"opaque": True}), ("POST", "/pause", None, {}), ("POST", "/resume", {"timeout": 600}, {}),
        ("POST", "/pause", None, {}), ("POST", "/connect", {"timeout": 600}, {}), ("POST", "/fork", {"count": 1, "timeout": 600}, {"shape": True}),
        ("POST", "/snapshots", {"name": "golden-e2b"}, {"learn": {"e2bsnap": "snapshotID"}, "shape": True}))),
    step("POST", "/v2/sandboxes/{id}/connect", {"timeout": 600}, at={"id": "{e2b}"}), step("GET", "/v2/sandboxes/{id}/logs", at={"id": "{e2b}"}, shape=True),
    step("GET", "/sandboxes/metrics?sandbox_ids={e2b}", opaque=True), step("GET", "/snapshots", shape=True), step("GET", "/teams", status=501),
    step("POST", "/secrets", {"name": "golden_e2b", "value": "hush"}), step("GET", "/secrets"),
    *(step(method, "/secrets/{id}", body, at={"id": "golden_e2b"}) for method, body in (("GET", None), ("POST", {"value": "hush2"}), ("DELETE", None))),
    step("POST", "/volumes", {"name": "golden-volume"}, learn={"volume": "volumeID", "volumetoken": "token"}), step("GET", "/volumes"),
    step("GET", "/volumes/{id}", at={"id": "{volume}"}),
    *(step(method, "/volumecontent/{id}/" + rest, body, at={"id": "{volume}"}, headers={"Authorization": "Bearer {volumetoken}"}, **more)
      for method, rest, body, more in (
        ("PUT", "file?path=/f", b"x", {}), ("GET", "file?path=/f", None, {}), ("POST", "dir?path=/d", None, {}), ("GET", "dir?path=/", None, SHAPED),
        ("GET", "path?path=/f", None, SHAPED), ("PATCH", "path?path=/f", {"mode": 384}, SHAPED), ("DELETE", "path?path=/f", None, {}))),
    step("DELETE", "/volumes/{id}", at={"id": "{volume}"}, until=(204,)),
    step("GET", "/templates", shape=True), step("GET", "/templates/aliases/{alias}", at={"alias": "base"}),
    step("POST", "/v3/templates", {"name": "golden-template"}, learn={"template": "templateID", "build": "buildID"}),
    step("GET", "/templates/{id}/files/{hash}", at={"id": "{template}", "hash": "0" * 64}, shape=True),
    step("POST", "/v2/templates/{id}/builds/{build}", {"fromImage": "base"}, at={"id": "{template}"}),
    step("GET", "/templates/{id}/builds/{build}/status", at={"id": "{template}"}, until={"status": "ready"}, shape=True),
    step("GET", "/templates/{id}/builds/{build}/logs", at={"id": "{template}"}, shape=True),
    step("GET", "/templates/{id}", at={"id": "{template}"}, shape=True), step("GET", "/templates/{id}/tags", at={"id": "{template}"}, shape=True),
    step("POST", "/templates/tags", {"target": "golden-template", "tags": ["one"]}, shape=True),
    step("DELETE", "/templates/tags", {"name": "golden-template", "tags": ["one"]}, shape=True),
    step("PATCH", "/v2/templates/{id}", {"public": False}, at={"id": "{template}"}),
    step("DELETE", "/templates/{id}", at={"id": "{template}"}), step("DELETE", "/templates/{id}", at={"id": "{e2bsnap}"}),
]
E2B_END = [step("DELETE", "/sandboxes/{id}", at={"id": word}) for word in ("{e2b2}", "{e2b}")]

SESSION = "/v1/sessions/{id}"
UPLOAD = b'--B\r\nContent-Disposition: form-data; name="file"; filename="up"\r\n\r\nz\r\n--B--\r\n'
FORM = {"Content-Type": "multipart/form-data; boundary=B"}
SANDKASTEN = [
    step("GET", "/healthz"),
    step("POST", "/v1/sessions", {"ttl_seconds": 600, "workspace_id": "golden-ws"}, learn={"session": "id"}), step("GET", "/v1/sessions"),
    step("POST", "/v1/sessions", {"image": "none"}, status=400),
    *(step(method, SESSION + rest, body, at={"id": "{session}"}, **more) for method, rest, body, more in (
        ("GET", "", None, {}), ("POST", "/exec", {"cmd": "echo out; exit 3"}, {}), ("POST", "/exec/stream", {"cmd": "echo out"}, {}),
        ("GET", "/stats", None, SHAPED), ("POST", "/fs/write", {"path": "f", "text": "x"}, {}), ("GET", "/fs/read?path=f", None, {}),
        ("GET", "/fs/read?path=none", None, {"status": None}), ("POST", "/fs/upload", UPLOAD, {"headers": FORM}))),
    step("DELETE", SESSION, at={"id": "{session}"}), step("GET", "/v1/workspaces", shape=True),
    *(step(method, "/v1/workspaces/{id}" + rest, body, at={"id": "golden-ws"}, **more) for method, rest, body, more in (
        ("POST", "/fs/write", {"path": "g", "text": "y"}, {}), ("GET", "/fs?path=/workspace", None, SHAPED), ("GET", "/fs/read?path=g", None, {}),
        ("POST", "/fs/upload", UPLOAD, {"headers": FORM}), ("DELETE", "", None, {"until": (200, 204)}))),
]

SANDBOX = "/api/v1/sandbox"
AGENT_SANDBOX = [
    step("GET", "/healthz"), step("GET", "/api/v1/status", shape=True), step("GET", "/api/v1/ratelimit"), step("GET", "/api/v1/pool"),
    step("GET", "/api/v1/config/templates", shape=True), step("GET", "/api/v1/config/runtime", shape=True), step("GET", "/api/v1/config/blueprint", status=501),
    step("POST", "/api/v1/config/{what}", {}, at={"what": "templates"}, status=501),
    step("POST", SANDBOX, {"name": "golden-as"}, shape=True), step("POST", SANDBOX, {"name": "golden-as"}, status=409),
    step("GET", SANDBOX, shape=True), step("GET", SANDBOX + "/{name}", at={"name": "golden-as"}, shape=True),
    step("POST", SANDBOX + "/pause/{name}", {}, at={"name": "golden-as"}, shape=True), step("POST", SANDBOX + "/resume/{name}", {}, at={"name": "golden-as"}, shape=True),
    step("POST", SANDBOX + "/metrics", {"names": ["golden-none"]}),
    step("POST", "/api/v1/terminal/sandbox/{name}", {"command": "echo out; echo err >&2"}, at={"name": "golden-as"}),
    step("GET", "/api/v1/terminal/sandbox/{name}/detect-shell", at={"name": "golden-as"}),
    step("GET", "/api/v1/terminal/sandbox/{name}/ws", at={"name": "golden-as"}, status=None),
    step("POST", SANDBOX + "/files/{name}/upload?path=/workspace",
         UPLOAD, at={"name": "golden-as"}, headers=FORM),
    step("GET", SANDBOX + "/files/{name}?path=/workspace", at={"name": "golden-as"}, shape=True),
    step("GET", SANDBOX + "/files/{name}/download?path=/workspace/up", at={"name": "golden-as"}),
    step("DELETE", SANDBOX + "/files/{name}?path=/workspace/up", at={"name": "golden-as"}),
    step("GET", "/api/v1/events?limit=1", shape=True), step("GET", "/api/v1/logs/sandbox/{name}", at={"name": "golden-as"}, shape=True),
    step("GET", "/api/v1/telemetry/{what}", at={"what": "summary"}, shape=True), step("GET", "/api/v1/telemetry/logs?tailLines=1", shape=True),
    step("GET", "/sandbox/{name}", at={"name": "golden-as"}, status=None),
    step("DELETE", SANDBOX + "/{name}", at={"name": "golden-as"}),
]

DOCS = [step("GET", "/docs", opaque=True), step("GET", "/docs/{path}", at={"path": "mcp"}, opaque=True, status=None)]

PAGE = {"X-Paddock-Dashboard": "1", "Origin": "{origin}", "Sec-Fetch-Site": "same-origin"}
DASHBOARD = [
    step("GET", "/", headers={"Accept": "text/html"}, opaque=True), step("GET", "/dashboard/session", headers=PAGE),
    step("POST", "/dashboard/session", {"key": "{adminkey}"}, headers=PAGE, shape=True), step("POST", "/dashboard/session", {"key": "none"}, headers=PAGE, status=401),
    step("DELETE", "/dashboard/session", headers=PAGE),
    step("POST", "/dashboard/templates", {"name": "golden-page"}, learn={"page": "id"}, shape=True),
    *(step(method, "/dashboard/templates/{id}" + rest, body, at={"id": "{page}"}, **more) for method, rest, body, more in (
        ("GET", "/log", None, {"until": {"status": "ready"}, "shape": True}),
        ("POST", "/sandboxes", None, {"shape": True, "learn": {"paged": "id"}}), ("DELETE", "", None, {}))),
    *(step("GET", f"/dashboard/{what}", shape=True) for what in ("audit", "pool", "settings", "templates", "trend")),
    step("GET", "/dashboard/load", until="sandboxes", shape=True),
]

META = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}


def tell(path, method, at=None, **params):
    """A request of MCP without a session."""
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": META}}
    headers = {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": method, "Accept": "application/json, text/event-stream"}
    return step("POST", path, body, headers={**headers, **({"Mcp-Name": params["name"]} if "name" in params else {})}, at=at or {}, status=None)


MCP = [
    *(step("GET", "/.well-known/oauth-protected-resource" + rest, at={"name": "{id}"}) for rest in ("", "/mcp", "/sandbox/{name}/mcp")),
    *(tell(path, method, {"name": "{id}"}, **params) for path in ("/mcp", "/sandbox/{name}/mcp", "/sandbox/{name}/v1/mcp")
      for method, params in (("server/discover", {}), ("tools/list", {}), ("prompts/list", {}), ("resources/list", {}), ("none", {}),
                             ("tools/call", {"name": "exec", "arguments": {"command": "true", "sandbox": "{id}"}}))),
]

INTERPRETER = [step(method, path, body, headers={"E2b-Sandbox-Id": "{e2b}", "E2b-Sandbox-Port": "49999", "X-Access-Token": "{e2btoken}"}, **more) for method, path, body, more in (
    ("GET", "/health", None, {}), ("POST", "/contexts", {"language": "bash"}, {"learn": {"context49999": "id"}}), ("GET", "/contexts", None, SHAPED),
    ("POST", "/execute", {"code": "echo hi", "language": "bash"}, {}), ("POST", "/execute", {"code": "x", "language": "cobol"}, {"status": None}),
    ("POST", "/contexts/{id}/restart", None, {"at": {"id": "{context49999}"}}), ("DELETE", "/contexts/{id}", None, {"at": {"id": "{context49999}"}}))]

AGENTBOX = [
    step("GET", "/health"), step("POST", "/exec", {"command": "echo out"}), step("POST", "/exec/stream", {"command": "echo out"}),
    step("POST", "/file/write", {"path": "/workspace/ab", "content": "x"}), step("POST", "/file/read", {"path": "/workspace/ab"}),
    step("POST", "/file/read", {"path": "/none"}, status=403), step("POST", "/file/read", {"path": "/workspace/none"}, status=None),
]

AIO = [step("GET", f"/v1/{what}", opaque=True) for what in ("openapi.json", "docs")] + [step("GET", "/terminal", status=None, opaque=True)]

# {heading of golden/routes.txt: (steps, steps at the end, authority and prefix)}: {port} is of a sandbox, {id} the sandbox that REST made.
DIALECTS = {
    "rest": (REST, REST_END, ""), "MCP": (MCP, [], ""), "e2b": (E2B, E2B_END, ""), "sandkasten": (SANDKASTEN, [], ""),
    "agent-sandbox": (AGENT_SANDBOX, [], ""), "docs": (DOCS, [], ""), "dashboard": (DASHBOARD, [], ""),
    "interpreter": (INTERPRETER, [], "49999"), "agentbox in a sandbox (port 2024)": (AGENTBOX, [], "2024"),
    "aio": (AIO, [], "/sandbox/{id}"),  # and test_aio_walk.py's
}

# Headings of golden/routes.txt that the walk leaves out.
ELSEWHERE = {
    "assegai (http://host.docker.internal:8765 of an agent)": "only an agent in its sandbox can ask: test_agents.py",
    "agentbox": "it has calls of RPC alone: test_agentbox.py",
}

# Routes of which no success is recorded here, by reason. Their errors are.
WITHOUT = {reason: {line.strip() for line in routes.strip().splitlines()} for reason, routes in {
    "a stream or a WebSocket, which does not end by itself": """
        MCP: GET /mcp
        MCP: GET /sandbox/{name}/mcp
        MCP: GET /sandbox/{name}/v1/mcp
        agent-sandbox: GET /api/v1/terminal/sandbox/{name}/ws
        aio: GET /v1/file/watch/{id}/events
        aio: GET /v1/shell/ws
        rest: GET /v1/sandboxes/{id}/fs/watch
        rest: GET /v1/sandboxes/{id}/terminal
        rest: GET /v1/sandboxes/{id}/tunnel/{port}""",
    "served on AIO's own listeners only: test_aio_client.py (elsewhere the path is Agent-Sandbox's)": """
        MCP: POST /sandbox/{name}/v1/mcp""",
    "a session of MCP, which test_mcp.py and test/mcp walk through": """
        MCP: DELETE /mcp
        MCP: DELETE /sandbox/{name}/mcp
        MCP: DELETE /sandbox/{name}/v1/mcp""",
    "never succeeds: it answers what is not supported, or not there": """
        agent-sandbox: DELETE /api/v1/pool/{name}
        agent-sandbox: GET /api/v1/config/blueprint
        agent-sandbox: POST /api/v1/config/{what}
        aio: DELETE /v1/browser/{path}
        aio: DELETE /v1/proxy/excludes
        aio: DELETE /v1/proxy/mappings/{path}
        aio: DELETE /v1/proxy/upstream
        aio: GET /v1/browser/page/screenshot
        aio: GET /v1/browser/proxy.pac
        aio: GET /v1/browser/screenshot
        aio: GET /v1/browser/{path}
        aio: POST /v1/browser/{path}
        aio: POST /v1/display/record
        aio: POST /v1/proxy/excludes
        aio: POST /v1/proxy/mappings
        aio: PUT /v1/browser/{path}
        aio: PUT /v1/proxy/upstream
        e2b: GET /teams""",
    "the answer is that of a server in the sandbox, or of a provider": """
        agent-sandbox: * /sandbox/{name}/{path}
        agent-sandbox: * /sandboxes/router/{id}/{port}/{path}
        aio: * /absproxy/{port}
        aio: * /absproxy/{port}/{path}
        aio: * /proxy/{port}
        aio: * /proxy/{port}/{path}
        rest: GET /api/{provider}/{path}
        rest: POST /api/{provider}/{path}
        rest: GET /v1/sandboxes/{id}/ai/calls/{call}
        rest: GET /v1/sandboxes/{id}/ports/{port}/{path}
        rest: HEAD /v1/sandboxes/{id}/ports/{port}/{path}
        rest: POST /v1/sandboxes/{id}/ports/{port}/{path}
        rest: PUT /v1/sandboxes/{id}/ports/{port}/{path}
        rest: PATCH /v1/sandboxes/{id}/ports/{port}/{path}
        rest: DELETE /v1/sandboxes/{id}/ports/{port}/{path}
        rest: OPTIONS /v1/sandboxes/{id}/ports/{port}/{path}
        rest: GET /v1/previews/{id}/{port}/{ticket}/{path}
        rest: HEAD /v1/previews/{id}/{port}/{ticket}/{path}
        rest: POST /v1/previews/{id}/{port}/{ticket}/{path}
        rest: PUT /v1/previews/{id}/{port}/{ticket}/{path}
        rest: PATCH /v1/previews/{id}/{port}/{ticket}/{path}
        rest: DELETE /v1/previews/{id}/{port}/{ticket}/{path}
        rest: OPTIONS /v1/previews/{id}/{port}/{ticket}/{path}""",
    "needs a wallet and a chain: test_transactions.py, test_wallets.py and test_walletconnect.py have them": """
        rest: DELETE /v1/wallets/sessions/{id}
        rest: GET /v1/transactions/{id}
        rest: GET /v1/wallets/{id}/spending
        rest: POST /v1/transactions/{id}/approve
        rest: POST /v1/transactions/{id}/cancel
        rest: POST /v1/transactions/{id}/reject
        rest: POST /v1/transactions/{id}/revoke
        rest: POST /v1/transactions/{id}/speed-up
        rest: POST /v1/transactions/{id}/wallet
        rest: POST /v1/wallets/connect
        rest: PUT /v1/agents/{id}/limits
        rest: PUT /v1/signer""",
    "an upload that others have as a test: test_images.py, test_templates.py": """
        rest: PUT /v1/images/{name}
        e2b: PUT /templates/{id}/files/{hash}""",
    "a page of this build, named by its hash: test_dashboard.py": """
        dashboard: GET /dashboard/assets/{name}""",
}.items()}
