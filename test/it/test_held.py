"""What the api holds and how long it works at once, while it answers with content: files, output, results of code.

One rule for every dialect (docs/design/answers.md): no content is in memory as a whole as an answer, and encoding goes as far as the
client reads. The attacks come from held_routes.py, in which every route that returns content has one.
"""

import base64
import contextlib
import json
import pickle
import socket
import subprocess
import sys
import time

import pytest

import held_routes
import paddock
from dialects import Words
from held_routes import CONTENT, FILE, SIZE, bytes_of
from paddock import read_response

MB = 1024
CONNECTIONS = 6  # for one attack
BUDGET = 64 * MB  # of one tenant
SLACK = 40 * MB


@pytest.fixture(scope="module")
def words(daemon, api):
    """A sandbox with long files, and what the attacks say of it."""
    made = api.post("/sandboxes", {"templateID": "base", "timeout": 3600}).json()
    daemon.saw(made["sandboxID"])
    box = paddock.Box(api, {"id": made["sandboxID"]})
    box.check(f"head -c {SIZE} /dev/zero | tr '\\0' '\\1' > {FILE} && yes {'x' * 400} | head -n 9000 > /workspace/lines")
    box.check(f"head -c {60 << 20} /dev/zero | tr '\\0' '\\1' > /workspace/huge")
    assert api.post(f"{box.path}/processes", {"argv": ["sh", "-c", f"cat {FILE}"], "tag": "printed"}).status == 201
    context = api.post(f"{box.path}/contexts", {"language": "python"}).json()["id"]
    base = f"/sandbox/{box.id}/v1/bash"
    assert api.post(f"{base}/sessions/create", {"session_id": "held"}).status == 200
    ran = api.post(f"{base}/exec", {"session_id": "held", "command": f"cat {FILE}"}).json()
    yield Words(box=box.id, token=made["envdAccessToken"], port=str(daemon.port), key=daemon.key, command=ran["data"]["command_id"],
                context=context)
    assert api.delete(box.path).status == 204


class Peak:
    """How many KB more than at its beginning the api has held at most: the kernel keeps the peak."""

    def __init__(self, daemon):
        self.pid = daemon.api_pid()
        self.before = paddock.rss_kb(self.pid)
        with open(f"/proc/{self.pid}/clear_refs", "w") as file:
            file.write("5")

    def grown(self):
        return paddock.rss_kb(self.pid, "VmHWM") - self.before


@contextlib.contextmanager
def unread(daemon, requests, receive=4096):
    """Connections whose answers have begun, and of which nothing more is read."""
    made = []
    try:
        for data in requests:
            one = socket.socket()
            if receive:
                one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive)
            one.settimeout(60 * paddock.SLOW)
            one.connect((daemon.host, daemon.port))
            one.sendall(data)
            made.append(one)
        yield made
    finally:
        for one in made:
            one.close()


# ---- no route is forgotten ----


def test_every_route_is_judged():
    known = held_routes.routes() | held_routes.methods() | held_routes.tools()
    judged = set(CONTENT) | set(held_routes.OTHERS)
    assert known - judged == set(), "does it return content? add it to held_routes.py"
    assert judged - known == set(), "held_routes.py has what is not there"
    assert not set(CONTENT) & set(held_routes.OTHERS) and len(held_routes.OTHERS) == len(set(held_routes.OTHERS))


# ---- memory ----


@pytest.fixture(scope="module")
def base(daemon, words):
    """What the api holds before the first attack: what one leaves behind counts for the next."""
    return paddock.rss_kb(daemon.api_pid())


@pytest.mark.parametrize("name", CONTENT)
def test_an_answer_is_not_held_as_a_whole(daemon, words, base, name):
    for op in CONTENT[name]:
        peak = Peak(daemon)
        with unread(daemon, [bytes_of(op, words)] * (1 if name in held_routes.IN_TURN else CONNECTIONS)) as many:
            begun = [one.recv(12, socket.MSG_PEEK) for one in many]
            assert {status[9:12] for status in begun} <= {b"200", b"429"} and begun[0][9:12] == b"200", (name, begun)
            time.sleep(0.05)  # what it has begun to build, it builds
        grown = peak.grown()
        assert grown < BUDGET + SLACK, f"{name}: {grown // MB} MB for {CONNECTIONS} answers"


def test_a_long_file_costs_little(daemon, words):
    """60 MB of control characters, in JSON 360 MB."""
    peak = Peak(daemon)
    ask = bytes_of(held_routes.service("ReadFile", session_id="{box}", path="/workspace/huge"), words)
    with unread(daemon, [ask], receive=None) as (one,):
        left = 40 << 20
        while left > 0:
            data = one.recv(1 << 20)
            assert data
            left -= len(data)
    assert peak.grown() < 24 * MB, f"{peak.grown() // MB} MB"


# ---- time ----

READER = """
import pickle, select, socket, sys
address, requests = pickle.load(sys.stdin.buffer)
nowhere, open_ = bytearray(1 << 18), {}
def begin(data):
    one = socket.create_connection(address)
    one.sendall(data)
    one.setblocking(False)
    open_[one] = data
for data in requests: begin(data)
print("reads", flush=True)
while True:
    for one in select.select(list(open_), [], [])[0]:
        try:
            if one.recv_into(nowhere): continue
        except BlockingIOError:
            continue
        except ConnectionResetError:
            pass
        data = open_.pop(one)
        one.close()
        begin(data)
"""


@contextlib.contextmanager
def readers(daemon, requests):
    """A program that reads these answers as fast as it can, again and again."""
    data = [each.replace(b"\r\n", b"\r\nConnection: close\r\n", 1) for each in requests]
    reader = subprocess.Popen([sys.executable, "-c", READER], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        reader.stdin.write(pickle.dumps(((daemon.host, daemon.port), data)))
        reader.stdin.close()
        assert reader.stdout.readline() == b"reads\n"
        yield
    finally:
        reader.kill()
        reader.wait()
        reader.stdout.close()


def slow_health(daemon, requests, samples=150):
    """The latency of /healthz in ms that one of twenty passes, while these are read."""
    with readers(daemon, requests), daemon.raw() as connection:
        stream = connection.makefile("rb")
        found = []
        for _ in range(samples):
            begun = time.monotonic()
            connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
            assert read_response(stream)[0] == 200
            found.append((time.monotonic() - begun) * 1000)
            time.sleep(0.005)
    return sorted(found)[-samples // 20]


# Those whose work is the api's: the others wait for programs in the sandbox.
BUSY = ["agentbox ReadFile", "agentbox in a sandbox (port 2024) POST /file/read", "aio POST /v1/file/read", "agentbox Exec",
        "rest POST /v1/sandboxes/{id}/exec", "MCP tool file_read"]


def test_health_does_not_wait_for_long_answers(daemon, words):
    """Against the same number of readers of plain files, for which nothing is encoded."""
    plain = bytes_of(held_routes.rest("GET", "/files" + FILE), words)
    attack = [bytes_of(op, words) for name in BUSY for op in CONTENT[name]]
    usual = slow_health(daemon, [plain] * len(attack))
    slowest = slow_health(daemon, attack)
    assert slowest < max(50, 4 * usual), f"{slowest:.0f} ms, with plain files {usual:.0f} ms"


# ---- what comes is what was there ----

# Beyond what is read once, with characters of every length over the edges of the pieces.
TEXT = "é\n\"\\\U0001f600\x01€x" * 60_000


@pytest.fixture(scope="module")
def text(api, words):
    path = "/workspace/text"
    assert api.request("PUT", f"/v1/sandboxes/{words.words['box']}/files{path}", TEXT.encode()).status in (201, 204)
    return path


def ask(daemon, words, op):
    with daemon.raw(timeout=60) as connection:
        connection.sendall(bytes_of(op, words))
        status, _, body = read_response(connection.makefile("rb"))
    assert status == 200, body[:300]
    return body


def fields(data):
    """Of a message whose fields are strings and numbers."""
    def number(at):
        value = shift = 0
        while True:
            value, shift, at = value | (data[at] & 127) << shift, shift + 7, at + 1
            if data[at - 1] < 128:
                return value, at

    found, at = {}, 0
    while at < len(data):
        key, at = number(at)
        value, at = number(at)
        if key & 7 == 2:
            value, at = data[at:at + value], at + value
        found[key >> 3] = value
    return found


def unwrapped(body):
    """The one message of a stream, and its end."""
    n = int.from_bytes(body[1:5], "big")
    assert body[0] == 0 and body[5 + n] == 0x80 and b"grpc-status: 0" in body[5 + n:].lower().replace(b"grpc-status:0", b"grpc-status: 0")
    return body[5:5 + n]


CODECS = {
    "application/json": (lambda body: json.dumps(body).encode(), lambda body: json.loads(body)["content"]),
    "application/proto": (None, lambda body: fields(body)[2].decode()),
    "application/grpc-web+proto": (None, lambda body: fields(unwrapped(body))[2].decode()),
    "application/grpc-web+json": (None, lambda body: json.loads(unwrapped(body))["content"]),
}


@pytest.mark.parametrize("kind", CODECS)
def test_a_long_file_in_every_codec(daemon, words, text, kind):
    message = held_routes.message((1, "{box}"), (2, text))
    body = {"session_id": "{box}", "path": text}
    if kind.endswith("grpc-web+json"):
        body = held_routes.enveloped(lambda w: json.dumps({"session_id": w.words["box"], "path": text}).encode())
    elif kind.endswith("grpc-web+proto"):
        body = held_routes.enveloped(message)
    elif kind.endswith("/proto"):
        body = message
    answer = ask(daemon, words, held_routes.Op("POST", "/sandbox.v1.SandboxService/ReadFile", body, {"Content-Type": kind}))
    assert CODECS[kind][1](answer) == TEXT


def aio(daemon, words, path, /, **body):
    answer = json.loads(ask(daemon, words, held_routes.aio(path, body)))
    assert answer["success"], str(answer)[:300]
    return answer["data"]


def test_long_text_is_the_same_everywhere(daemon, words, text):
    """Through each way in which a handler can leave a hole."""
    assert json.loads(ask(daemon, words, held_routes.port(2024, "POST", "/file/read", {"path": text})))["content"] == TEXT
    assert aio(daemon, words, "/v1/file/read", file=text)["content"] == TEXT
    lines = TEXT.split("\n")
    assert aio(daemon, words, "/v1/file/read", file=text, start_line=3, end_line=50_003)["content"] == "\n".join(lines[3:50_003])
    assert aio(daemon, words, "/v1/file/read", file=text, start_line=59_999)["content"] == "\n".join(lines[59_999:])
    shown = aio(daemon, words, "/v1/file/str_replace_editor", command="view", path=text)["output"]
    assert [line.split("\t", 1)[1] for line in shown.split("\n")[-4:-1]] == lines[-3:]
    code = f"import sys\nsys.stdout.write(open({text!r}).read())\nsys.stdout.flush()\nsys.stderr.write('e' * 20_000)\nprint('end')"
    ran = aio(daemon, words, "/v1/jupyter/execute", code=code)
    assert "".join(each["text"] for each in ran["outputs"] if each["name"] == "stdout") == TEXT + "end\n"
    ran = aio(daemon, words, "/v1/code/execute", language="python", code=code + "\nraise ValueError('x' * 30_000)")
    assert ran["stdout"] == TEXT + "end\n" and ran["stderr"].startswith("e" * 20_000) and ran["status"] == "error"
    assert [each["output_type"] for each in ran["outputs"]][-1] == "error" and "ValueError" in "".join(ran["traceback"])
    script = f"process.stdout.write(require('fs').readFileSync({text!r}, 'utf8')); process.stderr.write('a\\nb\\n' + 'c'.repeat(40000)); process.exitCode = 3"
    ran = aio(daemon, words, "/v1/code/execute", language="javascript", code=script)
    assert ran["stdout"] == TEXT and ran["exit_code"] == 3 and ran["traceback"] == ["a", "b", "c" * 40_000]
    assert ran["outputs"][0]["text"] == TEXT and ran["outputs"][2]["traceback"] == ran["traceback"]
    ran = aio(daemon, words, "/v1/bash/exec", command=f"cat {text}; exit 4", max_output_length=60_000_000)
    assert ran["stdout"] == TEXT and ran["exit_code"] == 4
    ran = aio(daemon, words, "/v1/shell/exec", command=f"cat {text}", truncate=False)
    assert ran["output"].replace("\r\n", "\n") == TEXT and ran["console"][0]["output"] == ran["output"]
    box = f"/v1/sandboxes/{words.words['box']}"
    ran = json.loads(ask(daemon, words, held_routes.Op("POST", f"{box}/execute", {"code": code + "\n'v' * 20_000"})))
    assert ran["stdout"] == TEXT + "end\n" and ran["results"][0]["text"] == repr("v" * 20_000) and ran["error"] is None


def test_a_resource_is_the_file(daemon, words, text):
    """MCP's resources/read, for text and for bytes."""
    box = words.words["box"]
    ask(daemon, words, held_routes.rest("POST", "/exec", {"command": "head -c 100001 /dev/zero | tr '\\0' '\\377' > /workspace/raw"}))
    for path, key, want in ((text, "text", TEXT), ("/workspace/raw", "blob", base64.b64encode(b"\xff" * 100_001).decode())):
        uri = f"paddock://sandboxes/{box}/files{path}"
        op = held_routes.RESOURCE._replace(headers={**held_routes.RESOURCE.headers, "Mcp-Name": uri})
        params = {**op.body["params"], "uri": uri}
        result = json.loads(ask(daemon, words, op._replace(body={**op.body, "params": params})))
        assert result["result"]["contents"][0][key] == want, str(result)[:200]


def test_a_file_that_becomes_shorter_is_a_broken_answer(daemon, api, words):
    """It is read twice, and what was promised cannot be had: nobody takes the part for the whole."""
    path, box = "/workspace/shrinks", words.words["box"]
    run = f"/v1/sandboxes/{box}/exec"
    assert api.post(run, {"command": f"head -c {12 << 20} /dev/zero | tr '\\0' x > {path}"}).json()["exit_code"] == 0
    with unread(daemon, [bytes_of(held_routes.aio("/v1/file/read", {"file": path}), words)]) as (one,):
        assert one.recv(12) == b"HTTP/1.1 200"
        assert api.post(run, {"command": f"truncate -s 1000 {path}"}).json()["exit_code"] == 0
        data = b""
        with contextlib.suppress(ConnectionResetError):
            while piece := one.recv(1 << 20):
                data = (data + piece)[-16:]
        assert not data.endswith(b"\r\n0\r\n\r\n")


# ---- one budget ----

FLOOD = "import os\nfor fd in (1, 2):\n    for _ in range(8): os.write(fd, b'\\x01' * (1 << 20))"


def test_output_and_requests_are_one_budget(daemon, tenant, api):
    """Output that nobody reads leaves no memory for a request's body, of this tenant; another's is read."""
    box = tenant.create()
    mine = Words(box=box.id, token="", port=str(daemon.port), key=tenant.key)
    flood = bytes_of(held_routes.rest("POST", "/exec", {"argv": ["python3", "-c", FLOOD]}), mine)

    def status(client):
        return client.post("/v1/sandboxes", {"no": 1}).status

    with contextlib.ExitStack() as stack:
        for _ in range(12):  # what the kernel takes of their answers makes room for some more
            (one,) = stack.enter_context(unread(daemon, [flood]))
            begun = one.recv(12, socket.MSG_PEEK)[9:]
            if begun != b"200":
                break
        assert begun == b"429" and status(tenant) == 429
        assert status(api) == 400
    paddock.until(lambda: status(tenant) == 400, "the budget is given back")


def test_output_that_tools_keep_gives_way(daemon, tenant):
    """A tool of MCP keeps long output for a while: never so much that nothing else can be done."""
    box = tenant.create()
    op = held_routes.tool("/mcp", "exec", sandbox="{box}", command="head -c 16000000 /dev/zero | tr '\\0' x", stateful=False)
    words = Words(box=box.id, token="", port=str(daemon.port), key=tenant.key)
    for _ in range(10):
        result = json.loads(ask(daemon, words, op))["result"]
        assert not result.get("isError"), result
    assert tenant.get(f"{box.path}/files/etc/hosts").status == 200
    assert tenant.post("/v1/sandboxes", {"no": 1}).status == 400, "not 429"
