"""Which routes return content (a file, output, code's results) and which do not: for test_held.py.

CONTENT has an attack for each that does: a request whose answer is 4 MiB of control characters of /workspace/big or of a command, or
more. OTHERS has all the rest by the reason that they need none. A route of test/it/golden/routes.txt, a method of a service or a
tool of MCP that is in neither fails test_held.py.
"""

import re
from urllib.parse import quote

import yaml

import paddock
from dialects import JSON, META, STREAM, Op, envd, port, service, to_bytes, tool

SIZE = 4 << 20  # bytes of /workspace/big
FILE = "/workspace/big"
# Both streams of a command, each with SIZE bytes.
PRINT = f"cat {FILE}; cat {FILE} >&2"
CODE = f"import sys\nt = open({FILE!r}).read()\nsys.stdout.write(t); sys.stdout.flush()\nsys.stderr.write(t); sys.stderr.flush()"
SCRIPT = f"const t = require('fs').readFileSync({FILE!r}, 'utf8'); process.stdout.write(t); process.stderr.write(t)"
EVENTS = {**JSON, "Accept": "text/event-stream"}


def aio(path, body, headers=JSON):
    return Op("POST", "/sandbox/{box}" + path, body, headers)


def rest(method, path, body=None, headers=JSON):
    return Op(method, "/v1/sandboxes/{box}" + path, body, headers)


def varint_string(number, text):
    return bytes([number << 3 | 2, len(text)]) + text.encode()


def message(*fields):
    return lambda words: b"".join(varint_string(number, words.fill(text)) for number, text in fields)


def enveloped(body):
    def make(words):
        data = body(words)
        return b"\0" + len(data).to_bytes(4, "big") + data
    return make


# The method of MCP for files and kept output.
RESOURCE = Op("POST", "/mcp", {"jsonrpc": "2.0", "id": 1, "method": "resources/read",
                               "params": {"uri": f"paddock://sandboxes/{{box}}/files{FILE}", "_meta": META}},
              {**JSON, "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "resources/read",
               "Mcp-Name": f"paddock://sandboxes/{{box}}/files{FILE}", "Accept": "application/json, text/event-stream"})
READ = message((1, "{box}"), (2, FILE))

# What is asked; each is what the route (or the method, or the tool) is called in the lists.
CONTENT = {
    "rest POST /v1/sandboxes/{id}/exec": [
        rest("POST", "/exec", {"command": PRINT}),
        rest("POST", "/exec", {"command": PRINT}, EVENTS)],
    "rest POST /v1/sandboxes/{id}/execute": [
        rest("POST", "/execute", {"code": CODE}), rest("POST", "/execute", {"code": CODE}, EVENTS)],
    "rest POST /v1/sandboxes/{id}/contexts/{context}/execute": [rest("POST", "/contexts/{context}/execute", {"code": CODE})],
    "rest GET /v1/sandboxes/{id}/files/{path}": [rest("GET", "/files" + FILE)],
    "rest POST /v1/sandboxes/{id}/fs/grep": [rest("POST", "/fs/grep", {"path": "/workspace/lines", "pattern": "x"})],
    "rest GET /v1/sandboxes/{id}/processes/{process}/output": [rest("GET", "/processes/printed/output")],
    "agentbox Exec": [service("Exec", session_id="{box}", command=PRINT)],
    "agentbox ExecStream": [Op("POST", "/sandbox.v1.SandboxService/ExecStream", {"session_id": "{box}", "command": PRINT}, STREAM)],
    "agentbox ReadFile": [
        service("ReadFile", session_id="{box}", path=FILE),
        Op("POST", "/sandbox.v1.SandboxService/ReadFile", READ, {"Content-Type": "application/proto"}),
        Op("POST", "/sandbox.v1.SandboxService/ReadFile", enveloped(READ), {"Content-Type": "application/grpc-web+proto"})],
    "agentbox in a sandbox (port 2024) POST /exec": [port(2024, "POST", "/exec", {"command": PRINT})],
    "agentbox in a sandbox (port 2024) POST /exec/stream": [port(2024, "POST", "/exec/stream", {"command": PRINT})],
    "agentbox in a sandbox (port 2024) POST /file/read": [port(2024, "POST", "/file/read", {"path": FILE})],
    "agent-sandbox POST /api/v1/terminal/sandbox/{name}": [Op("POST", "/api/v1/terminal/sandbox/{box}", {"command": PRINT})],
    "agent-sandbox GET /api/v1/sandbox/files/{name}/download": [Op("GET", f"/api/v1/sandbox/files/{{box}}/download?path={quote(FILE)}")],
    "aio POST /v1/file/read": [aio("/v1/file/read", {"file": FILE})],
    "aio POST /v1/file/search": [aio("/v1/file/search", {"file": "/workspace/lines", "regex": "x"})],
    "aio POST /v1/file/grep": [aio("/v1/file/grep", {"path": "/workspace", "pattern": "x", "output_mode": "content"})],
    "aio POST /v1/file/str_replace_editor": [aio("/v1/file/str_replace_editor", {"command": "view", "path": FILE})],
    "aio GET /v1/file/download": [Op("GET", f"/sandbox/{{box}}/v1/file/download?path={quote(FILE)}")],
    "aio POST /v1/code/execute": [
        aio("/v1/code/execute", {"language": "python", "code": CODE}),
        aio("/v1/code/execute", {"language": "javascript", "code": SCRIPT})],
    "aio POST /v1/jupyter/execute": [aio("/v1/jupyter/execute", {"code": CODE})],
    "aio POST /v1/nodejs/execute": [aio("/v1/nodejs/execute", {"code": SCRIPT})],
    "aio POST /v1/bash/exec": [aio("/v1/bash/exec", {"command": PRINT, "max_output_length": 60_000_000})],
    "aio POST /v1/bash/output": [aio("/v1/bash/output", {"session_id": "held", "command_id": "{command}"})],
    "aio POST /v1/shell/exec": [
        aio("/v1/shell/exec", {"command": f"cat {FILE}", "truncate": False}),
        aio("/v1/shell/exec", {"command": f"cat {FILE}", "truncate": False}, EVENTS)],
    "aio POST /v1/mcp/{server_name}/tools/{tool_name}": [aio("/v1/mcp/sandbox/tools/file_read", {"path": FILE})],
    "interpreter POST /execute": [port(49999, "POST", "/execute", {"code": CODE})],
    "e2b in a sandbox process.Process/Start": [
        envd("POST", "/process.Process/Start", {"process": {"cmd": "/bin/sh", "args": ["-c", PRINT]}}, STREAM)],
    "sandkasten POST /v1/sessions/{id}/exec": [Op("POST", "/v1/sessions/{box}/exec", {"cmd": PRINT})],
    "sandkasten POST /v1/sessions/{id}/exec/stream": [Op("POST", "/v1/sessions/{box}/exec/stream", {"cmd": PRINT})],
    "sandkasten GET /v1/sessions/{id}/fs/read": [Op("GET", f"/v1/sessions/{{box}}/fs/read?path={quote(FILE)}&max_bytes={SIZE}")],
    "MCP POST /mcp": [RESOURCE],
    "MCP tool exec": [tool("/mcp", "exec", sandbox="{box}", command=PRINT)],
    "MCP tool run_code": [tool("/mcp", "run_code", sandbox="{box}", code=CODE)],
    "MCP tool file_read": [tool("/mcp", "file_read", sandbox="{box}", path=FILE)],
}

# Commands that wait for each other, so that one whose answer is not read stops the next.
IN_TURN = {"sandkasten POST /v1/sessions/{id}/exec/stream", "rest POST /v1/sandboxes/{id}/execute",
           "rest POST /v1/sandboxes/{id}/contexts/{context}/execute", "sandkasten POST /v1/sessions/{id}/exec",
           "interpreter POST /execute", "MCP tool exec", "MCP tool run_code"}

HERE = paddock.ROOT / "test/it"
OTHERS = [line for line in (HERE / "held_others.txt").read_text().splitlines() if line and not line.startswith("#")]


def routes():
    section, found = None, set()
    for line in (HERE / "golden/routes.txt").read_text().splitlines():
        if line.startswith("=== "):
            section = line[4:].split(" (http")[0]
        elif line:
            found.add(f"{section} {line}")
    return found


def methods():
    found = set()
    for file, prefix in (("agentbox/sandbox", "agentbox "), ("e2b/filesystem", "e2b in a sandbox filesystem.Filesystem/"),
                         ("e2b/process", "e2b in a sandbox process.Process/")):
        text = (paddock.ROOT / f"api/{file}.proto").read_text()
        found |= {prefix + name for name in re.findall(r"^  rpc (\w+)", text, re.M)}
    return found


def tools():
    described = yaml.safe_load((paddock.ROOT / "src/api/dialect/mcp/tools.yaml").read_text())
    return {f"MCP tool {tool['name']}" for tool in described["tools"]}


def bytes_of(op, words):
    """The request as it is sent."""
    body = op.body(words) if callable(op.body) else op.body
    if body is not None and not isinstance(body, bytes):
        body = to_bytes(op, words)
    headers = {"Host": "localhost", **words.fill(op.headers), "Authorization": "Bearer " + words.words["key"],
               "X-Access-Token": words.words["token"]}
    if body is not None:
        headers["Content-Length"] = str(len(body))
    lines = [f"{op.method} {words.fill(op.path)} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + (body or b"")
