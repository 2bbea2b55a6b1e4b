"""Every dialect gets the same list of bad requests, and answers each in its own words: never a 5xx of its own, never with a dead api.

A dialect joins by an entry in dialects.py, which also says what it must answer to each case; a case joins by a test here.
"""

import contextlib
import json
import os
import select
import socket
import time

import pytest

import paddock
from dialects import DIALECTS, OK, Error, Words, error_of, to_bytes
from provider import KEYS, Provider

NOBODY = "0" * 20  # has the form of an id


@pytest.fixture(scope="module")
def provider(workdir):
    place = workdir / "provider-dialects"
    place.mkdir()
    it = Provider(place)
    yield it
    it.stop()


@pytest.fixture(scope="module")
def daemon(daemon_factory, provider):
    """One of its own, with the AI gateway; some tests here kill its api."""
    it = daemon_factory("walk")
    config = it.base / "paddock.yaml"
    providers = {name: {"url": provider.url, "secret": f"{name}-key"} for name in KEYS}
    config.write_text(json.dumps({"ai": {"providers": providers, "ca_file": str(provider.authority)}}))
    it.arguments += ["--config", str(config)]
    it.start()
    client = it.client()
    for name, key in KEYS.items():
        assert client.send_json("PUT", f"/v1/secrets/{name}-key", {"value": key}).status in (200, 201)
    client.close()
    yield it
    it.finish()


def sandbox(api, daemon):
    """Made as E2B's clients do, so that it has all tokens: (its box, its words)."""
    made = api.post("/sandboxes", {"templateID": "base", "timeout": 3600}).json()
    daemon.saw(made["sandboxID"])
    box = paddock.Box(api, {"id": made["sandboxID"]})
    return box, Words(box=box.id, token=made["envdAccessToken"], ai=api.get(f"{box.path}/ai").json()["token"], port=str(daemon.port), key=daemon.key,
                      file="walk.txt", text="some text", image="machine", host="example.org", new="walk")


@pytest.fixture(scope="module")
def walk(daemon, api):
    box, words = sandbox(api, daemon)
    yield words
    assert api.delete(box.path).status == 204


@pytest.fixture(params=DIALECTS, ids=repr)
def dialect(request, daemon):
    pid = daemon.api_pid()
    yield request.param
    assert daemon.api_pid() == pid, "the api died"


@pytest.fixture(scope="module")
def nobody(daemon):
    """A client that shows nothing by itself."""
    client = paddock.Client(daemon)
    yield client
    client.close()


def shown(dialect, words, key=None):
    """The headers that show who asks. `key`: in place of the right one."""
    key = words.words[dialect.auth] if key is None else key
    return {"X-Access-Token": key} if dialect.auth == "token" else {"Authorization": f"Bearer {key}"}


@pytest.fixture
def ask(dialect, nobody, walk):
    def send(op=dialect.run, words=walk, key=None, body=None, headers=None, method=None, path=None):
        data = to_bytes(op, words) if body is None else body
        if body is None and isinstance(data, bytes) and isinstance(op.body, bytes):
            data = words.fill(data.decode()).encode()
        everything = {**words.fill(op.headers), **shown(dialect, words, key), **(headers or {})}
        return nobody.request(method or op.method, path or words.fill(op.path), data, {k: v for k, v in everything.items() if v})

    return send


def succeeded(dialect, answer):
    """Nothing in it says that it failed, in any dialect's words."""
    assert answer.status in (200, 201, 204), (dialect, answer)
    for word in (b'"error', b'"isError":true', b'"success":false', b'"exitCode":-1', b'"error_code"'):
        assert word not in answer.body.replace(b'"errorOutput"', b""), (dialect, answer)


def refused(dialect, answer, case):
    if dialect.want[case] is OK:
        succeeded(dialect, answer)
    else:
        assert error_of(dialect, answer) == dialect.want[case], (dialect, case, answer)


def of(dialects, what):
    return pytest.mark.parametrize("dialect", [each for each in dialects if getattr(each, what)], ids=repr, indirect=True)


# ---- requests ----


def test_it_works(dialect, ask):
    """The control: what is asked below is right but for what a case makes wrong."""
    succeeded(dialect, ask())
    succeeded(dialect, ask())


@pytest.mark.parametrize("key", ["", "pdk_" + "0" * 40, "\xff", "x" * 4000], ids=["none", "wrong", "not ASCII", "long"])
def test_key(dialect, ask, key):
    refused(dialect, ask(key=key), "key")


def test_another_tenants(dialect, ask, walk, tenant):
    """As if it were not there; by the token of another sandbox neither."""
    mine, its = sandbox(tenant, tenant.daemon)
    words = walk.but(token=its.words["token"], ai=its.words["ai"])
    if dialect.auth == "ai":  # the token says which sandbox: that of one that is gone says nothing
        mine.delete()
        refused(dialect, ask(words=words), "absent")
        return
    key = tenant.key if dialect.auth == "key" else words.words["token"]
    theirs, absent = ask(key=key), ask(key=key, words=words.but(box=NOBODY))
    refused(dialect, absent, "absent")
    if dialect.name in ("port 2024", "envd", "interpreter"):
        refused(dialect, theirs, "key")  # its ports are public: that it is there is no secret
    else:
        refused(dialect, theirs, "absent")
        assert theirs.body.replace(walk.words["box"].encode(), NOBODY.encode()).split(b'"request_id"')[0] == absent.body.split(b'"request_id"')[0]
    control = words.but(box=mine.id)
    succeeded(dialect, ask(key=key, words=control))


SYNTAX = {
    "cut off": b'{"a": ',
    "no JSON": b"hello",
    "twice": b"{}{}",
    "NUL": b'{"a\\u0000b": "\\u0000"}',
    "raw NUL": b'{"a": "\0"}',
    "not UTF-8": b'{"a": "\xff\xfe"}',
    "half a surrogate": b'{"a": "\\ud800"}',
    "deep": b"[" * 5000 + b"]" * 5000,
}


@pytest.mark.parametrize("case", SYNTAX)
def test_syntax(dialect, ask, case):
    refused(dialect, ask(body=SYNTAX[case]), "syntax")


@pytest.mark.parametrize("body", [b"[1]", b"7", b'"x"', b"null", b"true"])
def test_shape(dialect, ask, body):
    """JSON, and not what is expected."""
    refused(dialect, ask(body=body), "shape")


@pytest.mark.parametrize("value", [7000, [], {}, None, True], ids=repr)
def test_type(dialect, ask, walk, value):
    """Every field of the body in turn."""
    for field in dialect.fields(dialect.run.body):
        body = walk.fill(dialect.run.body)
        dialect.fields(body)[field] = value
        answer = ask(body=json.dumps(body).encode())
        if any(field == name and repr(value) == repr(accepted) for name, accepted in dialect.lax):
            assert answer.status in (200, 204), (dialect, field, answer)
        else:
            refused(dialect, answer, "type")


def test_unknown_field(dialect, ask, walk):
    body = walk.fill(dialect.run.body)
    dialect.fields(body)["no_such_field"] = 1
    refused(dialect, ask(body=json.dumps(body).encode()), "unknown")


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "x" * 500])
def test_media(dialect, ask, kind):
    refused(dialect, ask(headers={"Content-Type": kind}), "media")


@pytest.mark.parametrize("method", ["PATCH", "BREW"])
def test_method(dialect, ask, method):
    refused(dialect, ask(method=method), "method")


@pytest.mark.parametrize("suffix", ["/", "//", "/..", "/%2e%2e/x", "/%00", "/%ff", "%2f"])
def test_path(dialect, ask, walk, suffix):
    answer = ask(path=walk.fill(dialect.run.path) + suffix)
    if answer.status == 502:  # what of /sandbox/NAME/ is no dialect's own leads to a server in the sandbox, and none is there
        assert dialect.run.path.startswith("/sandbox/") and b"port is not open" in answer.body, answer
    else:
        assert answer.status in (400, 403, 404, 405), answer
        error_of(DIALECTS[0] if dialect.name == "mcp" else dialect, answer)  # below /mcp nothing is MCP's


def test_header_too_large(dialect, ask):
    assert ask(headers={"X-Long": "x" * 200000}).status in (400, 431)


# ---- bodies that are too large, and clients that go away ----


class Raw:
    """A request whose body is ours to send, or not to."""

    def __init__(self, daemon, dialect, words, *headers):
        op, self.dialect = dialect.run, dialect
        self.sock = socket.create_connection((daemon.host, daemon.port), timeout=60 * paddock.SLOW)
        lines = [f"{op.method} {words.fill(op.path)} HTTP/1.1", *headers]
        lines += [f"{name}: {value}" for name, value in {"Host": "127.0.0.1", **words.fill(op.headers), **shown(dialect, words)}.items()]
        self.sock.sendall("\r\n".join(lines).encode() + b"\r\n\r\n")

    def answers(self):
        return bool(select.select([self.sock], [], [], 0)[0])

    def answer(self):
        with self.sock.makefile("rb") as stream:
            status, headers, body = paddock.read_response(stream)
        return paddock.Response(status, headers, body)

    def close(self):
        self.sock.close()


TOO_LARGE = 65 << 20


@pytest.mark.parametrize("chunked", [False, True], ids=["length", "chunked"])
def test_body_too_large(dialect, daemon, walk, chunked):
    """It is refused by its length, or where it passes the limit: not at its end."""
    raw = Raw(daemon, dialect, walk, "Transfer-Encoding: chunked" if chunked else f"Content-Length: {TOO_LARGE}")
    sent, piece = 0, b" " * 65536
    try:
        while not raw.answers() and sent < TOO_LARGE:
            raw.sock.sendall(f"{len(piece):x}\r\n".encode() + piece + b"\r\n" if chunked else piece)
            sent += len(piece)
        assert sent < TOO_LARGE, "nobody minded"
        refused(dialect, raw.answer(), "large")
    finally:
        raw.close()


def held(daemon):
    return len(os.listdir(f"/proc/{daemon.api_pid()}/fd"))


@pytest.mark.parametrize("length, data", [("Content-Length: 1000", b'{"a'), ("Transfer-Encoding: chunked", b'5\r\n{"a')],
                         ids=["length", "chunked"])
def test_client_goes_away(dialect, daemon, ask, walk, length, data):
    ask()
    before = held(daemon)
    for _ in range(20):
        raw = Raw(daemon, dialect, walk, length)
        raw.sock.sendall(data)
        raw.close()
    paddock.until(lambda: held(daemon) <= before, "the api lets go of the connections")
    succeeded(dialect, ask())


@pytest.mark.skipif(paddock.SANITIZED, reason="a sanitizer keeps freed memory")
def test_memory_is_given_back(dialect, daemon, ask, walk):
    """Of bodies that were refused at their end, and of those whose client left in the middle."""
    large = b'{"a": "' + b"x" * 1_500_000  # no end
    ask(body=large)
    ask()
    before = paddock.rss_kb(daemon.api_pid())
    raws = [Raw(daemon, dialect, walk, "Content-Length: 1600000") for _ in range(16)]
    for raw in raws:
        raw.sock.sendall(large)
    paddock.until(lambda: paddock.rss_kb(daemon.api_pid()) > before + 8192, "the api holds them")
    for raw in raws:
        raw.close()
    for _ in range(8):
        refused(dialect, ask(body=large), "syntax")
    paddock.until(lambda: paddock.rss_kb(daemon.api_pid()) < before + 6144, "the memory is given back")
    succeeded(dialect, ask())


# ---- creating ----


def create(dialect, ask, walk, **words):
    return ask(dialect.create, walk.but(new=f"walk-{time.monotonic_ns()}", **words))


@of(DIALECTS, "create")
def test_create(dialect, ask, walk, api, daemon):
    words = walk.but(new=f"walk-{time.monotonic_ns()}")
    answer = ask(dialect.create, words)
    succeeded(dialect, answer)
    made = dialect.made(answer.json())
    daemon.saw(made)
    assert api.get(f"/v1/sandboxes/{made}").json()["status"] == "running"
    if "twice" in dialect.want:
        again = ask(dialect.create, words)
        refused(dialect, again, "twice")
        assert dialect.want["twice"] is not OK or dialect.made(again.json()) == made
    assert api.delete(f"/v1/sandboxes/{made}").status == 204


@of(DIALECTS, "create")
def test_create_badly(dialect, ask, walk, api):
    before = {box["id"] for box in api.list()}
    refused(dialect, create(dialect, ask, walk, image="no-such-image", host="10.0.0.0/8"), "image")
    if "name" in dialect.want:
        for name in ("../x", "x" * 64, ".x", "a/b", "a b", ""):
            if name or dialect.name not in ("agent-sandbox", "agentbox", "rest"):  # an empty one is none at all there
                refused(dialect, ask(dialect.create, walk.but(new=name)), "name")
    for body in SYNTAX.values():
        refused(dialect, ask(dialect.create, body=body), "syntax")
    refused(dialect, ask(dialect.create, key="pdk_" + "0" * 40), "key")
    refused(dialect, ask(dialect.create, headers={"Content-Type": "text/plain"}), "media")
    assert {box["id"] for box in api.list()} == before, "what was refused made nothing"


@of(DIALECTS, "create")
def test_create_counts(dialect, ask, api, tenant, walk):
    """No dialect is a way around a quota."""
    assert api.send_json("PUT", f"{tenant.path}/quota", {"boxes": 1}).status == 200
    first = tenant.create()
    answer = ask(dialect.create, walk.but(new=f"walk-{time.monotonic_ns()}"), key=tenant.key)
    assert b"quota" in answer.body or answer.status in (429, 507), answer
    assert [box["id"] for box in tenant.list()] == [first.id]


# ---- files ----


@of(DIALECTS, "write")
def test_files(dialect, ask, walk):
    words = walk.but(file=f"walk-{time.monotonic_ns()}", text="zwölf Boxkämpfer \U0001f94a\n")
    succeeded(dialect, ask(dialect.write, words))
    answer = ask(dialect.read, words)
    succeeded(dialect, answer)
    assert dialect.content(answer) == words.words["text"].encode()


@of(DIALECTS, "write")
@pytest.mark.parametrize("case, name", [("missing", "no/such"), ("directory", "."), ("long", "x" * 300), ("outside", "../etc/hostname")])
def test_files_that_cannot_be_read(dialect, ask, walk, case, name):
    if case in dialect.want:  # where files are all of the sandbox's, nothing is outside
        refused(dialect, ask(dialect.read, walk.but(file=name)), case)


@of(DIALECTS, "write")
def test_files_of_another_tenant(dialect, ask, walk, tenant, api):
    if dialect.auth != "key" or dialect.name == "port 2024":
        case, key = "key", "0" * 20 + "x" * 64
    else:
        case, key = "absent", tenant.key
    path = f"/v1/sandboxes/{walk.words['box']}/files/workspace/walk-theirs"
    assert api.request("PUT", path, b"mine", {"Content-Type": "application/octet-stream"}).status in (200, 201)
    words = walk.but(file="walk-theirs", text="theirs")
    for op in (dialect.read, dialect.write):
        answer = ask(op, words, key=key)
        assert b"mine" not in answer.body
        if dialect.name == "envd":
            assert error_of(dialect, answer) == Error(401, 401)  # /files is no call: its code is the number
        else:
            refused(dialect, answer, case)
    assert api.get(path).body == b"mine"


# ---- streams ----


def cmdline(pid):
    with contextlib.suppress(OSError), open(f"/proc/{pid}/cmdline", "rb") as file:
        return file.read()
    return b""


class Stream:
    """A command that has said a word and sleeps, in a sandbox of its own."""

    def __init__(self, dialect, api, daemon, provider):
        self.dialect, self.daemon, self.provider = dialect, daemon, provider
        self.box, self.words = sandbox(api, daemon)
        self.client = paddock.Client(daemon)
        if dialect.auth == "ai":
            provider.hold = True
            for event in (provider.begun, provider.hung_up, provider.go):
                event.clear()
        op = dialect.stream
        self.answer = self.client.start(op.method, self.words.fill(op.path), to_bytes(op, self.words),
                                        {**self.words.fill(op.headers), **shown(dialect, self.words)})
        assert self.answer.status == 200, self.answer.read()
        text = b""
        while not any(word in text for word in (b"begun", b"YmVndW4", b"Hel")):
            piece = self.answer.read1(4096)
            assert piece, text
            text += piece
        paddock.until(self.sleeps, f"{dialect}: the command sleeps")  # its shell forks after what it has said

    def sleeps(self):
        if self.dialect.auth == "ai":
            return self.provider.begun.is_set() and not self.provider.hung_up.is_set()
        with contextlib.suppress(OSError):
            first = int(paddock.read(self.daemon.run_dir / "boxes" / self.box.id / "pid"))
            return any(b"4321" in cmdline(pid) and b"sleep" in cmdline(pid).split(b"\0")[0] for pid in paddock.descendants(first))
        return False

    def ends(self):
        """Whoever waits for the answer hears that there is no more."""
        try:
            while self.answer.read1(4096):
                pass
        except OSError as error:
            assert not isinstance(error, TimeoutError), f"{self.dialect}: the stream hangs"
        except Exception as error:  # http.client: a chunk that was cut off
            assert type(error).__name__ == "IncompleteRead", error

    def close(self):
        self.client.close()
        self.client.connection = None
        if self.dialect.auth == "ai":
            self.provider.hold = False
            self.provider.go.set()


@pytest.fixture
def streams(api, daemon, provider):
    made = []

    def make(dialect):
        made.append(Stream(dialect, api, daemon, provider))
        return made[-1]

    yield make
    for stream in made:
        stream.close()
        assert api.delete(stream.box.path).status in (204, 404)


@of(DIALECTS, "stream")
def test_sandbox_deleted_in_a_stream(dialect, streams, api):
    """The answer ends, and nobody waits for what is no more."""
    stream = streams(dialect)
    assert api.delete(stream.box.path).status == 204
    if dialect.auth != "ai":  # a call to a model goes on: it is paid for, and its answer is the client's
        stream.ends()


@of(DIALECTS, "stream")
def test_client_leaves_a_stream(dialect, streams, daemon):
    """Its connection is let go of, its command ends (or goes on, where that is promised), and the sandbox goes on."""
    stream = streams(dialect)
    before = held(daemon)
    stream.client.close()
    paddock.until(lambda: held(daemon) < before, "the api lets go of the connection")
    if not dialect.stays:
        paddock.until(lambda: not stream.sleeps(), "the command ends")
    assert stream.box.check("echo on") == "on\n"
    assert stream.sleeps() == dialect.stays


@pytest.mark.parametrize("what", ["api", "daemon"])
def test_restart_in_streams(what, streams, daemon, api, walk, nobody):
    """All of them at once: each ends, every sandbox goes on, and every dialect works again."""
    open_ones = [streams(dialect) for dialect in DIALECTS if dialect.stream]
    if what == "api":
        daemon.kill_api()
    else:
        daemon.restart()
    for stream in open_ones:
        stream.ends()
        assert stream.box.with_client(api).check("echo on") == "on\n"
    for dialect in DIALECTS:
        op = dialect.run
        succeeded(dialect, nobody.request(op.method, walk.fill(op.path), to_bytes(op, walk),
                                          {**walk.fill(op.headers), **shown(dialect, walk)}))
