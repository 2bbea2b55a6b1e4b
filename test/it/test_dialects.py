"""Every dialect gets the same list of bad requests, and answers each in its own words: never a 5xx, never with a dead api.

A dialect joins by a line in DIALECTS, a case by a line in CASES.
"""

import json
import os
import socket
import time

import pytest

import paddock

JSON = {"Content-Type": "application/json"}


class Dialect:
    """`path` and `body` run a command in the sandbox {box}; `keys` are the sets of keys that an error's document may have."""

    def __init__(self, name, path, body, keys, headers=None, method="POST", soft=False):
        self.name, self.path, self.body, self.keys, self.method = name, path, body, keys, method
        self.headers = {**JSON, **(headers or {})}
        self.soft = soft  # a missing sandbox is told in an answer of status 200

    def target(self, box):
        return self.path.replace("{box}", box)

    def document(self, box):
        return json.loads(json.dumps(self.body).replace("{box}", box))

    def ask(self, client, box, body=None, headers=None, method=None, path=None):
        data = json.dumps(self.document(box)).encode() if body is None else body
        if self.method == "GET" and body is None:
            data = None
        return client.request(method or self.method, path or self.target(box), data, {**self.headers, **(headers or {})})


MCP = {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "exec", "Accept": "application/json, text/event-stream"}
META = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}


def tool(**arguments):
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "exec", "arguments": arguments, "_meta": META}}


DIALECTS = [
    Dialect("rest", "/v1/sandboxes/{box}/exec", {"argv": ["true"]}, [{"error"}]),
    Dialect("e2b", "/sandboxes/{box}/timeout", {"timeout": 600}, [{"code", "message", "error_code"}]),
    Dialect("sandkasten", "/v1/sessions/{box}/exec", {"cmd": "true"}, [{"error_code", "message"}, {"error_code", "message", "details"}]),
    Dialect("agentbox", "/sandbox.v1.SandboxService/Exec", {"session_id": "{box}", "command": "true"}, [{"code", "message"}],
            {"Connect-Protocol-Version": "1"}, soft=True),
    Dialect("agentsandbox", "/api/v1/terminal/sandbox/{box}", {"command": "true"}, [{"code", "error"}]),
    Dialect("aio", "/sandbox/{box}/tickets", {}, [{"success", "message", "data", "hint", "detail"}]),
    Dialect("mcp", "/mcp", tool(sandbox="{box}", command="true"), [{"jsonrpc", "id", "error"}, {"jsonrpc", "error"}], MCP, soft=True),
    Dialect("mcp of one", "/sandbox/{box}/mcp", tool(command="true"), [{"jsonrpc", "id", "error"}, {"jsonrpc", "error"}], MCP, soft=True),
]


@pytest.fixture(params=DIALECTS, ids=lambda dialect: dialect.name.replace(" ", "-"))
def dialect(request, daemon):
    pid = daemon.api_pid()
    yield request.param
    assert daemon.api_pid() == pid, "the api died"


@pytest.fixture(scope="module")
def box(api):
    it = api.create(name=f"walk-{time.monotonic_ns()}")
    yield it
    assert api.delete(it.path).status == 204


def refused(dialect, response, *statuses):
    """The client is at fault, and hears so in the dialect's words."""
    assert 400 <= response.status < 500, (dialect.name, response)
    assert not statuses or response.status in statuses, (dialect.name, response)
    assert set(response.json()) in dialect.keys, (dialect.name, response)


def test_it_works(dialect, api, box):
    """The control: what is asked below is right but for what a case makes wrong."""
    response = dialect.ask(api, box.id)
    assert 200 <= response.status < 300, response
    assert b'"isError":true' not in response.body and b'"error"' not in response.body, response


@pytest.mark.parametrize("key", [None, "pdk_" + "0" * 40, "\xff", "x" * 4000], ids=["none", "wrong", "not ASCII", "long"])
def test_key(dialect, daemon, box, key):
    client = paddock.Client(daemon, key)
    response = dialect.ask(client, box.id)
    client.close()
    refused(dialect, response, 401)


def test_another_tenants(dialect, tenant, box):
    """As if it were not there."""
    nobodys = "0" * len(box.id)
    theirs, absent = dialect.ask(tenant, box.id), dialect.ask(tenant, nobodys)
    assert theirs.status == absent.status
    if dialect.soft and theirs.status == 200:
        assert b"not_found" in theirs.body or b"ession not found" in theirs.body, theirs
    else:
        refused(dialect, theirs, 404)


CASES = {
    "cut off": b'{"a": ',
    "not JSON": b"hello",
    "an array": b"[1]",
    "a number": b"7",
    "twice": b"{}{}",
    "NUL": b'{"a\\u0000b": "\\u0000"}',
    "raw NUL": b'{"a": "\0"}',
    "not UTF-8": b'{"a": "\xff\xfe"}',
    "half a surrogate": b'{"a": "\\ud800"}',
    "deep": b"[" * 5000 + b"]" * 5000,
    "a huge number": b'{"a": 1' + b"0" * 400 + b"}",
}


@pytest.mark.parametrize("case", CASES)
def test_body(dialect, api, box, case):
    response = dialect.ask(api, box.id, CASES[case])
    if response.status < 300:  # routes that need no body pass over one; a call without a session says so
        assert dialect.name == "aio" or b"ession not found" in response.body or b'"error"' in response.body, response
    else:
        refused(dialect, response)


@pytest.mark.parametrize("value", [7000, [], {}, None, True, "\0"], ids=repr)
def test_wrong_type(dialect, api, box, value):
    """Every field of the body in turn."""
    for field in dialect.document(box.id):
        response = dialect.ask(api, box.id, json.dumps({**dialect.document(box.id), field: value}).encode())
        assert response.status < 500, (field, response)
        if response.status >= 400:
            refused(dialect, response)


@pytest.mark.parametrize("method", ["PATCH", "BREW"])
def test_method(dialect, api, box, method):
    response = dialect.ask(api, box.id, method=method)
    assert response.status in ((404, 405) if method == "PATCH" else (400, 404, 405, 501)), response
    if method == "PATCH" and not (dialect.name == "agentbox" and response.status == 405):  # Connect's 405 has no body
        refused(dialect, response)


@pytest.mark.parametrize("suffix", ["/", "//", "/..", "/%2e%2e/x", "/%00", "/%ff", "%2f"])
def test_path(dialect, api, box, suffix):
    response = dialect.ask(api, box.id, path=dialect.target(box.id) + suffix)
    if response.status == 502:  # what of /sandbox/NAME/ is no dialect's own leads to a server in the sandbox, and none is there
        assert dialect.path.startswith("/sandbox/") and b"port is not open" in response.body, response
    else:
        assert 400 <= response.status < 500, response


def test_header_too_large(dialect, api, box):
    assert dialect.ask(api, box.id, headers={"X-Long": "x" * 200000}).status in (400, 431)


@pytest.mark.parametrize("chunked", [False, True], ids=["length", "chunked"])
def test_body_too_large(dialect, api, box, chunked):
    """It is refused by its length, or where it passes the limit; aio's route takes no body and drops it."""
    piece, times = b" " * (1 << 20), 65
    headers = {**dialect.headers} if chunked else {**dialect.headers, "Content-Length": str(len(piece) * times)}
    try:
        response = api.request("POST", dialect.target(box.id), (piece for _ in range(times)), headers, encode_chunked=chunked)
    except (BrokenPipeError, ConnectionResetError):
        return  # the answer was there before the body's end
    # Connect says resource_exhausted with 429.
    assert response.status in {"agentbox": (429,), "aio": (200, 400, 413)}.get(dialect.name, (400, 413)), response
    if response.status >= 400:
        refused(dialect, response)


STREAMS = [
    ("rest", "/v1/sandboxes/{box}/exec", {"argv": ["sh", "-c", "echo begun; exec sleep 4321"], "kill_on_disconnect": True}, {"Accept": "text/event-stream"}),
    ("sandkasten", "/v1/sessions/{box}/exec/stream", {"cmd": "echo begun; sleep 4321"}, {}),
    ("agentbox", "/sandbox.v1.SandboxService/ExecStream", {"session_id": "{box}", "command": "echo begun; sleep 4321"},
     {"Content-Type": "application/connect+json", "Connect-Protocol-Version": "1"}),
]


@pytest.fixture(params=STREAMS, ids=[stream[0] for stream in STREAMS])
def stream(request, make_box, daemon):
    """A sandbox of its own, and the connection on which a command there has said a word."""
    _, path, body, headers = request.param
    pid, box = daemon.api_pid(), make_box(name=f"walk-{time.monotonic_ns()}")
    name = box.document["name"]
    data = json.dumps(body).replace("{box}", name).encode()
    if headers.get("Content-Type") == "application/connect+json":
        data = b"\0" + len(data).to_bytes(4, "big") + data
    client = paddock.Client(daemon, daemon.key)
    answer = client.start("POST", path.replace("{box}", box.id), data, {**JSON, **headers})
    assert answer.status == 200, answer.read()
    text = b""
    while b"begun" not in text and b"YmVndW4" not in text:
        piece = answer.read1(4096)
        assert piece, text
        text += piece
    yield box, client, answer
    client.close()
    assert daemon.api_pid() == pid, "the api died"


def test_box_deleted_in_a_stream(stream, api):
    """The answer ends, and nobody waits for what is no more."""
    box, _, answer = stream
    assert api.delete(box.path).status == 204
    try:
        while answer.read1(4096):
            pass
    except (ConnectionResetError, OSError) as error:
        assert not isinstance(error, TimeoutError), "the stream hangs"


def test_client_leaves_a_stream(stream, daemon, api):
    """Its connection is let go of, its command ends, and the sandbox goes on."""
    box, client, _ = stream
    asleep = lambda: [pid for pid in paddock.descendants(daemon.keeper_pid) if b"4321" in cmdline(pid)]
    paddock.until(asleep, "the command sleeps")  # its shell forks after what it has said
    before = len(os.listdir(f"/proc/{daemon.api_pid()}/fd"))
    client.close()
    client.connection = None
    paddock.until(lambda: len(os.listdir(f"/proc/{daemon.api_pid()}/fd")) < before, "the api lets go of the connection")
    paddock.until(lambda: not asleep(), "the command ends")
    assert api.post(f"{box.path}/exec", {"argv": ["true"]}).status == 200


def cmdline(pid):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read()
    except OSError:
        return b""


def raw(daemon, dialect, box, length, data):
    """A request whose client disconnects in the middle of its body."""
    with socket.create_connection((daemon.host, daemon.port)) as sock:
        lines = [f"{dialect.method} {dialect.target(box)} HTTP/1.1", "Host: x", f"Authorization: Bearer {daemon.key}", length]
        lines += [f"{name}: {value}" for name, value in dialect.headers.items()]
        sock.sendall("\r\n".join(lines).encode() + b"\r\n\r\n" + data)


@pytest.mark.parametrize("length, data", [("Content-Length: 1000", b'{"a'), ("Transfer-Encoding: chunked", b'5\r\n{"a')],
                         ids=["length", "chunked"])
def test_client_goes_away(dialect, daemon, api, box, length, data):
    count = lambda: len(os.listdir(f"/proc/{daemon.api_pid()}/fd"))
    dialect.ask(api, box.id)
    before = count()
    for _ in range(20):
        raw(daemon, dialect, box.id, length, data)
    paddock.until(lambda: count() <= before, "the api lets go of the connections")
    assert dialect.ask(api, box.id).status < 300
