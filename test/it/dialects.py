"""The dialects as a table: of each how to run a command, create a sandbox, write and read a file, stream; and how an error reads.

For test_dialects.py, which walks all of them through one list of cases. Texts may have {box} (a sandbox's id), {new} (a name), {file}
(a name of a file), {port} (the daemon's), {key} (an admin's), {token} (E2B's token of the sandbox) and {ai} (its token for models).
"""

import base64
import json
from collections import namedtuple

JSON = {"Content-Type": "application/json"}
BYTES = {"Content-Type": "application/octet-stream"}
CONNECT = {**JSON, "Connect-Protocol-Version": "1"}
STREAM = {"Content-Type": "application/connect+json", "Connect-Protocol-Version": "1"}

Op = namedtuple("Op", "method path body headers", defaults=(None, JSON))
Error = namedtuple("Error", "status code")


class Words:
    """Texts to put into an operation."""

    def __init__(self, **words):
        self.words = words

    def but(self, **words):
        return Words(**{**self.words, **words})

    def fill(self, value):
        if isinstance(value, str):
            for name, word in self.words.items():
                value = value.replace("{" + name + "}", word)
            return value
        if isinstance(value, dict):
            return {key: self.fill(each) for key, each in value.items()}
        if isinstance(value, list):
            return [self.fill(each) for each in value]
        return value


def envelope(data):
    return b"\0" + len(data).to_bytes(4, "big") + data


def to_bytes(op, words):
    if op.body is None or isinstance(op.body, bytes):
        return op.body
    data = json.dumps(words.fill(op.body)).encode()
    return envelope(data) if op.headers.get("Content-Type") == STREAM["Content-Type"] else data


# ---- how an error reads: each returns its code, after it has checked the form


def of_rest(answer, document):
    assert set(document) == {"error"} and set(document["error"]) == {"code", "message", "request_id"}
    assert document["error"]["message"]
    return document["error"]["code"]


def of_e2b(answer, document):
    assert set(document) == {"code", "message", "error_code"} and document["code"] == answer.status and document["message"]
    return document["error_code"]


def of_connect(answer, document):
    assert set(document) == {"code", "message"} and document["message"]
    return document["code"]


def of_envd(answer, document):
    if "sandboxId" in document:  # as E2B's proxy has it, which stands before every sandbox
        assert set(document) == {"sandboxId", "message", "code"} and document["code"] == answer.status
        return "proxy"
    return of_connect(answer, document)


def of_agentbox(answer, document):
    """Its calls tell most of what goes wrong in their answers."""
    if answer.status != 200:
        return of_connect(answer, document)
    said = document["error"] if "error" in document else document["stderr"]
    assert set(document) == {"error"} or document == {"exitCode": -1, "stderr": said}
    return said if said in ("Session not found", "Path not allowed") else "said"


def of_sandkasten(answer, document):
    assert set(document) == {"error_code", "message"} and document["message"]
    return document["error_code"]


def of_process_api(answer, document):
    if answer.status == 200:
        assert set(document) == {"success", "error"} and document["success"] is False and document["error"]
        return "said"
    assert set(document) == {"error"} and document["error"]
    return "error"


def of_agent_sandbox(answer, document):
    assert set(document) == {"code", "error"} and document["error"]
    return document["code"]


def of_aio(answer, document):
    if set(document) == {"detail"}:  # as FastAPI has it
        assert [set(each) for each in document["detail"]] == [{"loc", "msg", "type"}] and document["detail"][0]["loc"][0] == "body"
        return document["detail"][0]["type"]
    assert set(document) - {"detail"} == {"success", "message", "data", "hint"} and document["success"] is False and document["message"]
    return "false"


def of_mcp(answer, document):
    if "result" in document:
        result = document["result"]
        assert result["isError"] is True and [each["type"] for each in result["content"]] == ["text"]
        return result["content"][0]["text"].split(":")[0]
    assert set(document) == {"jsonrpc", "id", "error"} and set(document["error"]) <= {"code", "message", "data"}
    assert document["jsonrpc"] == "2.0" and document["error"]["message"]
    return document["error"]["code"]


def of_openai(answer, document):
    assert set(document) == {"error"} and set(document["error"]) == {"type", "message", "code", "param"} and document["error"]["message"]
    return document["error"]["code"]


def error_of(dialect, answer):
    """(status, code); the code is None for an answer without a body, "text" for one that is no JSON."""
    if not answer.body:
        return Error(answer.status, None)
    if not answer.headers.get("content-type", "").startswith("application/json"):
        assert answer.headers["content-type"].startswith("text/plain"), answer
        return Error(answer.status, "text")
    try:
        return Error(answer.status, dialect.form(answer, answer.json()))
    except (AssertionError, KeyError, TypeError) as error:
        raise AssertionError(f"{dialect.name}: {answer}: {error!r}") from None


# ---- the table

META = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}


def tool(path, name, /, **arguments):
    return Op("POST", path, {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": arguments, "_meta": META}},
              {**JSON, "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": name, "Accept": "application/json, text/event-stream"})


def service(name, /, **body):
    return Op("POST", f"/sandbox.v1.SandboxService/{name}", body, CONNECT)


def port(number, method, path, body=None, headers=JSON):
    return Op(method, path, body, {"Host": f"{number}-{{box}}.localhost:{{port}}", **headers})


def envd(method, path, body=None, headers=JSON):
    return Op(method, path, body, {"E2b-Sandbox-Id": "{box}", "E2b-Sandbox-Port": "49983", **headers})


class Dialect:
    """`run` does something in the sandbox {box} and can be done again and again. `write` has the content {text}; `content` finds it in
    the answer to `read`. `made` finds the id of what `create` made. `stream` says "begun" and then sleeps. `want` has the answer to
    each case: (status, code), or OK where the dialect accepts it. `lax` are fields and values of another type that `run` accepts.
    `stays`: a command goes on when its client leaves, which may connect to it again."""

    def __init__(self, name, form, run, want, auth="key", create=None, made=None, write=None, read=None, content=None, stream=None,
                 fields=None, lax=(), stays=False):
        self.stays = stays
        self.name, self.form, self.run, self.auth, self.lax = name, form, run, auth, lax
        self.create, self.made, self.write, self.read, self.content, self.stream = create, made, write, read, content, stream
        self.fields = fields if fields is not None else lambda body: body  # where the fields are, of its body
        self.want = {case: Error(*(each if isinstance(each, tuple) else (each, want["code"].get(each)))) if each is not OK else OK
                     for case, each in want.items() if case != "code"}

    def __repr__(self):
        return self.name.replace(" ", "-")


OK = "accepted"
INVALID = {400: "invalid_argument", 401: "unauthorized", 404: "not_found", 405: "method_not_allowed", 409: "conflict", 413: "too_large",
           415: "unsupported_media"}
USUAL = {"key": 401, "absent": 404, "syntax": 400, "shape": 400, "type": 400, "unknown": 400, "media": 415, "method": 405, "large": 413}
CONNECTS = {"code": {400: "invalid_argument", 401: "unauthenticated", 429: "resource_exhausted"}, **USUAL, "unknown": OK, "large": 429}
FILES = {"missing": 404, "directory": 400, "long": 400}
CREATES = {"image": 404, "name": 400, "twice": 409}
SAID = (200, "said")


def same(code, *statuses):
    return {status: code for status in statuses or (400, 401, 403, 404, 405, 409, 413, 415)}


SLEEP = "echo begun; sleep 4321"
AT = "/workspace/{file}"
FORM = {"Content-Type": "multipart/form-data; boundary=edge"}
UPLOAD = b'--edge\r\nContent-Disposition: form-data; name="file"; filename="{file}"\r\n\r\n{text}\r\n--edge--\r\n'


CHAT = {"model": "gpt-4o-mini", "messages": [{"role": "user", "content": "hello"}], "max_tokens": 50}
MCP = {"code": {400: -32600, 401: -32000, 405: -32000, 413: -32000, 415: -32000}, **USUAL, "absent": (200, "not_found"), "syntax": (400, -32700),
       "type": (200, "invalid_argument"), "unknown": (200, "invalid_argument"), "missing": (200, "not_found"),
       "directory": (200, "invalid_argument"), "long": (200, "invalid_argument")}


def progress(op):
    params = op.body["params"]
    return op._replace(body={**op.body, "params": {**params, "_meta": {**META, "progressToken": "p"}}})


def arguments(body):
    return body["params"]["arguments"]


DIALECTS = [
    Dialect("rest", of_rest, Op("POST", "/v1/sandboxes/{box}/exec", {"argv": ["true"]}), {"code": INVALID, **USUAL, **FILES, **CREATES},
            create=Op("POST", "/v1/sandboxes", {"name": "{new}", "image": "{image}"}), made=lambda d: d["id"],
            write=Op("PUT", "/v1/sandboxes/{box}/files" + AT, b"{text}", BYTES), read=Op("GET", "/v1/sandboxes/{box}/files" + AT),
            content=lambda answer: answer.body,
            stream=Op("POST", "/v1/sandboxes/{box}/exec", {"command": SLEEP, "kill_on_disconnect": True}, {**JSON, "Accept": "text/event-stream"})),
    Dialect("e2b", of_e2b, Op("POST", "/sandboxes/{box}/timeout", {"timeout": 600}), {"code": INVALID, **USUAL, "image": 404},
            create=Op("POST", "/sandboxes", {"templateID": "{image}", "metadata": {"k": "v"}}), made=lambda d: d["sandboxID"],
            lax=[("timeout", 7000)]),
    Dialect("envd", of_envd, envd("POST", "/filesystem.Filesystem/Stat", {"path": "/tmp"}, CONNECT),
            {**CONNECTS, "absent": (502, "proxy"), "missing": (404, 404), "directory": (400, 400), "long": (400, 400)}, auth="token",
            write=envd("POST", "/files?path=" + AT, b"{text}", BYTES), read=envd("GET", "/files?path=" + AT, headers={}), content=lambda answer: answer.body,
            stream=envd("POST", "/process.Process/Start", {"process": {"cmd": "/bin/bash", "args": ["-c", SLEEP]}}, STREAM),
            lax=[("path", None)], stays=True),
    Dialect("interpreter", of_envd, port(49999, "POST", "/execute", {"code": "1"}),
            {"code": same("text"), **USUAL, "absent": (502, "proxy"), "media": OK, "unknown": OK}, auth="token",
            stream=port(49999, "POST", "/execute", {"code": "import subprocess; print('begun', flush=True); subprocess.run(['sleep', '4321'])"})),
    Dialect("sandkasten", of_sandkasten, Op("POST", "/v1/sessions/{box}/exec", {"cmd": "true"}),
            {"code": {**same("INVALID_REQUEST"), 401: "UNAUTHORIZED", 404: "SESSION_NOT_FOUND"}, **USUAL, **FILES, "missing": (404, "INVALID_REQUEST"),
             "outside": 400, "image": (400, "INVALID_IMAGE")},
            create=Op("POST", "/v1/sessions", {"image": "{image}", "ttl_seconds": 600}), made=lambda d: d["id"],
            write=Op("POST", "/v1/sessions/{box}/fs/write", {"path": AT, "text": "{text}"}), read=Op("GET", "/v1/sessions/{box}/fs/read?path=" + AT),
            content=lambda answer: base64.b64decode(answer.json()["content_base64"]),
            stream=Op("POST", "/v1/sessions/{box}/exec/stream", {"cmd": SLEEP})),
    Dialect("agentbox", of_agentbox, service("Exec", session_id="{box}", command="true"),
            {**CONNECTS, "absent": (200, "Session not found"), "missing": SAID, "directory": SAID, "long": SAID, "outside": (200, "Path not allowed"),
             "image": 400, "name": 400, "twice": OK},
            create=service("CreateSession", session_id="{new}", allowed_hosts=["{host}"]), made=lambda d: d["session"]["containerId"],
            write=service("WriteFile", session_id="{box}", path=AT, content="{text}"), read=service("ReadFile", session_id="{box}", path=AT),
            content=lambda answer: answer.json()["content"].encode(),
            stream=Op("POST", "/sandbox.v1.SandboxService/ExecStream", {"session_id": "{box}", "command": SLEEP}, STREAM),
            lax=[("session_id", None)]),
    Dialect("port 2024", of_process_api, port(2024, "POST", "/exec", {"command": "true"}),
            {"code": same("error"), **USUAL, "key": 403, "missing": SAID, "directory": SAID, "long": SAID, "outside": 403},
            write=port(2024, "POST", "/file/write", {"path": AT, "content": "{text}"}), read=port(2024, "POST", "/file/read", {"path": AT}),
            content=lambda answer: answer.json()["content"].encode(),
            stream=port(2024, "POST", "/exec/stream", {"command": SLEEP})),
    Dialect("agent-sandbox", of_agent_sandbox, Op("POST", "/api/v1/terminal/sandbox/{box}", {"command": "true"}),
            {"code": {status: str(status) for status in INVALID}, **USUAL, **FILES, **CREATES},
            create=Op("POST", "/api/v1/sandbox", {"name": "{new}", "image": "{image}"}), made=lambda d: d["data"]["id"],
            write=Op("POST", "/api/v1/sandbox/files/{box}/upload?path=/workspace", UPLOAD, FORM),
            read=Op("GET", "/api/v1/sandbox/files/{box}/download?path=" + AT), content=lambda answer: answer.body),
    Dialect("aio", of_aio, Op("POST", "/sandbox/{box}/v1/file/list", {"path": "/tmp"}),
            {"code": {**same("false"), 200: "false", 422: "value_error"}, **USUAL, "syntax": 422, "shape": 422, "type": 422, "unknown": OK,
             "missing": 200, "directory": 200, "long": 200},
            write=Op("POST", "/sandbox/{box}/v1/file/write", {"file": AT, "content": "{text}"}),
            read=Op("POST", "/sandbox/{box}/v1/file/read", {"file": AT}), content=lambda answer: answer.json()["data"]["content"].encode()),
    Dialect("mcp", of_mcp, tool("/mcp", "exec", sandbox="{box}", command="true"),
            {**MCP, "image": (200, "not_found"), "name": (200, "invalid_argument"), "twice": (200, "conflict")}, fields=arguments,
            create=tool("/mcp", "sandbox_create", name="{new}", image="{image}"), made=lambda d: d["result"]["structuredContent"]["id"],
            write=tool("/mcp", "file_write", sandbox="{box}", path=AT, content="{text}"), read=tool("/mcp", "file_read", sandbox="{box}", path=AT),
            content=lambda answer: answer.json()["result"]["structuredContent"]["content"].encode()),
    Dialect("mcp of one", of_mcp, tool("/sandbox/{box}/mcp", "exec", command="true"), MCP, fields=arguments,
            write=tool("/sandbox/{box}/mcp", "file_write", path=AT, content="{text}"), read=tool("/sandbox/{box}/mcp", "file_read", path=AT),
            content=lambda answer: answer.json()["result"]["structuredContent"]["content"].encode(),
            stream=progress(tool("/sandbox/{box}/mcp", "exec", command=SLEEP))),
    Dialect("models", of_openai, Op("POST", "/api/openai/v1/chat/completions", CHAT),
            {"code": {400: "invalid_argument", 401: "invalid_api_key", 413: "request_too_large"}, **USUAL, "absent": 401, "syntax": (400, "bad_request"),
             "unknown": OK, "media": OK, "method": (403, "not_allowed")}, auth="ai",
            stream=Op("POST", "/api/openai/v1/chat/completions", {**CHAT, "stream": True}),
            lax=[("max_tokens", 7000), ("max_tokens", None), *(("messages", value) for value in (7000, [], {}, None, True))]),
]
