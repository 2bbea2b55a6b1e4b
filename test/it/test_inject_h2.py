"""HTTP/2 on hosts that the gate looks into: judged by stream, with secrets, masked.

The servers are node's http2 and @grpc/grpc-js in the test's internet (h2/server.js), the
clients in the box curl, node (h2/client.js), @grpc/grpc-js and frames written by hand.
"""

import io
import json
import tarfile
from pathlib import Path

import pytest

import npm
import paddock
from canary import canary, forms, in_memory, nowhere
from internet import Internet, internet
from test_inject import curl, inject
from test_secrets import put

HERE = Path(__file__).resolve().parent / "h2"
PORT, GRPC_PORT, CLEAR_PORT = 9443, 9445, 9480
URL = f"https://api.test:{PORT}"
KEY = {"secret": "TOKEN", "header": "X-Key"}
PLACE = {"secret": "TOKEN", "placeholder": True}


@pytest.fixture(scope="module")
def modules():
    return npm.install(HERE, "h2")


class World(Internet):
    """With servers of HTTP/2."""

    def serve(self, modules):
        place = self.directory
        self.node = self.run("node", HERE / "server.js", place / "site.key", place / "site.pem", PORT, GRPC_PORT, CLEAR_PORT,
                             env={"PATH": "/usr/bin:/bin:/usr/local/bin", "NODE_PATH": str(modules / "node_modules")})
        assert self.node.stdout.readline() == "up\n"

    def seen_h2(self):
        self.node.stdin.write("seen\n")
        self.node.stdin.flush()
        return json.loads(self.node.stdout.readline())


@pytest.fixture(scope="module")
def net(workdir, modules):
    with internet(workdir / "world-h2", ("api.test", "site.test", "evil.test"), World) as world:
        world.set("unknown.test", world.host(20))
        world.serve(modules)
        yield world


@pytest.fixture(scope="module")
def site(daemon_factory, net):
    daemon = daemon_factory("inject-h2", environment=net.environment).start()
    yield daemon
    daemon.finish()


@pytest.fixture(scope="module")
def client(site):
    it = site.client()
    yield it
    it.close()


@pytest.fixture(scope="module")
def home(client, modules):
    """A box with the clients in it; its rules are each test's own."""
    box = client.create()
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        tar.add(modules / "node_modules", "h2/node_modules")
        for name in ("client.js", "server.js"):
            tar.add(HERE / name, f"h2/{name}")
    assert box.put("/tmp/h2.tar", packed.getvalue()).status in (200, 201, 204)
    box.check("cd /tmp && tar xf h2.tar && rm h2.tar")
    yield box
    box.delete()


@pytest.fixture
def value(client):
    it = canary()
    assert put(client, "TOKEN", it).status in (200, 201)
    return it


@pytest.fixture
def rules(client, home, net):
    def use(*list_of):
        response = client.send_json("PUT", f"{home.path}/egress", {"rules": list(list_of)})
        assert response.status == 200, response
        net.seen_h2()
        return home

    return use


def node(box, scenario, argument=None, url=URL):
    output = box.exec(["node", "/tmp/h2/client.js", scenario, json.dumps(argument)], env={"H2_URL": url}, timeout_ms=60_000)
    assert output.exit_code == 0, output
    return json.loads(output.out)


def stars(value):
    return "*" * len(value)


# ---- which version ---------------------------------------------------------


def test_curl(net, rules, value):
    box = rules(inject("api.test", {"secret": "TOKEN", "header": "Authorization", "prefix": "Bearer "}))
    answer = curl(box, "-i", f"{URL}/v1/things?a=b", "-H", "Authorization: Bearer mine", "-H", "X-Other: kept")
    assert answer.exit_code == 0 and answer.text.startswith("HTTP/2 200"), answer
    (request,) = net.seen_h2()
    assert request["headers"]["authorization"] == f"Bearer {value}" and request["headers"]["x-other"] == "kept"
    assert request["path"] == "/v1/things?a=b" and request["authority"] == f"api.test:{PORT}" and request["scheme"] == "https"
    assert request["headers"]["accept-encoding"] == "identity"
    assert f"Bearer {stars(value)}" in answer.text and value not in answer.text


@pytest.mark.parametrize("offer, url, version, status", [
    ("--http2", URL, "2", "200"),                      # both offered, the server takes HTTP/2
    ("--http2", "https://api.test", "1.1", "200"),      # both offered, the server has no ALPN
    ("--http1.1", "https://api.test", "1.1", "200"),
    ("--http1.1", URL, "1.1", "502"),                   # the server has nothing but HTTP/2
])
def test_both_sides_speak_the_same(net, rules, value, offer, url, version, status):
    box = rules(inject("api.test", KEY))
    answer = curl(box, offer, f"{url}/", "-o", "/dev/null", "-w", "%{http_version} %{http_code}")
    assert answer.text == f"{version} {status}", answer


@pytest.mark.parametrize("url, words", [("https://api.test", "does not speak HTTP/2"),
                                        (f"https://unknown.test:{PORT}", "hostname mismatch")])
def test_only_http2_where_there_is_none(net, rules, value, url, words):
    """A client that offers nothing else is told so in HTTP/2, and not by a broken handshake."""
    box = rules(inject("api.test", KEY), inject("unknown.test", KEY))
    (answer,) = node(box, "many", [[{":path": "/x"}, None]], url)
    assert answer["status"] == 502 and words in answer["body"], answer
    assert net.seen_h2() == []


def test_extended_connect_is_not_offered(net, rules, value):
    box = rules(inject("api.test", KEY))
    settings = node(box, "settings")
    assert not settings.get("enableConnectProtocol") and settings["maxConcurrentStreams"] == 100
    (answer,) = node(box, "many", [[{":method": "CONNECT", ":authority": "api.test:22"}, None]])
    assert answer["status"] != 200 and net.seen_h2() == []


def test_in_clear(net, rules, value, client):
    """Nobody looks into it: refused with a reason, where no rule allows plain TCP."""
    url = f"http://api.test:{CLEAR_PORT}/x"
    box = rules({"action": "allow", "host": "api.test"})
    assert curl(box, "--http2-prior-knowledge", url).exit_code != 0 and net.seen_h2() == []

    def verdicts():
        log = client.get(f"{box.path}/egress/log?limit=256").json()["verdicts"]
        return any(each["reason"] == "no_name" and each["port"] == CLEAR_PORT for each in log)

    paddock.until(verdicts, "the verdict is told", 10)
    box = rules({"action": "allow", "host": "api.test", "protocol": "tcp"})
    answer = curl(box, "--http2-prior-knowledge", url)
    assert answer.exit_code == 0 and len(net.seen_h2()) == 1, answer


# ---- judging ---------------------------------------------------------------


def test_each_stream_is_judged(net, rules, value, client):
    """One connection: what is denied gets its 403, the others go on."""
    box = rules(inject("api.test", KEY, paths=["/open"], methods=["GET", "POST"]))
    asked = [({":path": "/open/1"}, None), ({":path": "/closed"}, None), ({":path": "/open/2", ":method": "POST"}, "body"),
             ({":path": "/open", ":method": "DELETE"}, None), ({":path": "/closed", ":method": "POST"}, 300_000),
             ({":path": "/open/../closed"}, None), ({":path": "/open/3", ":authority": f"api.test:{PORT}", "host": "evil.test"}, None),
             ({":path": "/open/4", ":authority": "evil.test"}, None), ({":path": "/open/5", ":authority": "api.test:1"}, None),
             ({":path": "/open/6", ":scheme": "http"}, None), ({":path": "/open/7"}, None)]
    answers = node(box, "many", asked)
    assert [answer["status"] for answer in answers] == [200, 403, 200, 403, 403, 403, 403, 403, 403, 400, 200], answers
    assert answers[1]["body"] == "paddock: the policy of this sandbox does not allow it\n"
    assert answers[7]["body"] == "paddock: Host does not fit the connection\n"
    seen = net.seen_h2()
    assert sorted(each["path"] for each in seen) == ["/open/1", "/open/2", "/open/7"]
    assert all(each["headers"]["x-key"] == value for each in seen)

    def verdicts():
        log = client.get(f"{box.path}/egress/log?limit=256").json()["verdicts"]
        return {(each.get("path"), each["reason"]) for each in log if each["verdict"] == "deny"}

    wanted = {("/closed", "no_rule"), ("/open/3", "mismatch"), ("/open/4", "mismatch"), ("/open/5", "mismatch"), ("/open/6", "malformed")}
    paddock.until(lambda: wanted <= verdicts(), "the verdicts are told", 10)


def test_a_secret_stays_with_its_host(net, rules, value, client):
    other = canary()
    assert put(client, "OTHER", other).status in (200, 201)
    box = rules(inject("api.test", PLACE), inject("evil.test", {"secret": "OTHER", "placeholder": True}))
    evil = f"https://evil.test:{PORT}"
    answers = node(box, "many", [[{":path": "/", "x-key": "{{secret.TOKEN}}"}, None], [{":path": "/", ":method": "POST", "content-length": 16}, "{{secret.TOKEN}}"],
                                 [{":path": "/{{secret.NONE}}"}, None], [{":path": "/fine", "x-key": "{{secret.OTHER}}"}, None]], evil)
    assert [answer["status"] for answer in answers] == [403, 403, 403, 200], answers
    assert "TOKEN" in answers[0]["body"]
    (seen,) = net.seen_h2()
    assert seen["headers"]["x-key"] == other


# ---- secrets ---------------------------------------------------------------


def test_query_and_placeholders(net, rules, value, client):
    other = "sp ace/&?=" + canary()
    assert put(client, "OTHER", other).status in (200, 201)
    box = rules(inject("api.test", {"secret": "OTHER", "query": "key"}, PLACE))
    answer = curl(box, "--globoff", f"{URL}/bot{{{{secret.TOKEN}}}}/x?key=mine&t=%7B%7Bsecret.TOKEN%7D%7D&u=1", "-u", "me:{{secret.TOKEN}}",
                  "-H", "X-Key: a {{secret.TOKEN}} b", "-d", '{"token": "{{secret.TOKEN}}", "twice": "{{secret.TOKEN}}"}')
    (request,) = net.seen_h2()
    assert request["path"].startswith(f"/bot{value}/x?t={value}&u=1&key=sp%20ace%2F%26%3F%3Dcanary-")
    assert request["headers"]["x-key"] == f"a {value} b"
    assert json.loads(request["body"]) == {"token": value, "twice": value}
    assert int(request["headers"]["content-length"]) == len(request["body"])
    assert answer.exit_code == 0 and not any(form in answer.out for form in forms(value) | forms(other))


def test_placeholders_over_frames(net, rules, value):
    """Cut anywhere, with and without a length, and more than is kept."""
    box = rules(inject("api.test", PLACE))
    text = "a {{secret.TOKEN}} b {{secret.TOKEN}}{ {{secret.TOKEN}}"
    full = text.replace("{{secret.TOKEN}}", value)
    for headers in ({}, {"content-length": str(len(text))}):
        answer = node(box, "pieces", {"headers": {":path": "/p", ":method": "POST", **headers}, "pieces": list(text), "trailers": {"x-sum": "1"}})
        assert answer["status"] == 200, answer
        (request,) = net.seen_h2()
        assert request["body"] == full and request["trailers"]["x-sum"] == "1"
        assert request["headers"].get("content-length") == (str(len(full)) if headers else None)
    box.check("python3 -c \"import sys; sys.stdout.write('x' * 1500000 + '{{secret.TOKEN}}' + 'y' * 70000 + '{{secret.TOKEN}}')\" > /tmp/big")
    answer = curl(box, f"{URL}/up", "--data-binary", "@/tmp/big", "-o", "/dev/null", "-w", "%{http_code}")
    assert answer.text == "200", answer
    (request,) = net.seen_h2()
    assert request["body"] == "x" * 1500000 + value + "y" * 70000 + value
    # one that is not for this host, when half of it has gone: the server sees no end
    pieces = [100_000, "{{secret.NONE}}", "y"]
    answer = node(box, "pieces", {"headers": {":path": "/cut", ":method": "POST"}, "pieces": pieces})
    assert answer["status"] == 403 and "NONE" in answer["body"], answer
    (request,) = net.seen_h2()
    assert not request["ended"]


def test_masked_in_head_body_and_trailers(net, rules, value):
    box = rules(inject("api.test", KEY))
    echo, zipped = node(box, "many", [[{":path": "/echo"}, None], [{":path": "/gzip"}, None]])
    assert echo["body"] == f"before {stars(value)} after"
    assert echo["headers"]["x-echo"] == stars(value)
    assert echo["trailers"] == {**echo["trailers"], "x-tail": f"<{stars(value)}>", "plain": "yes"}
    assert zipped["status"] == 502 and "compressed" in zipped["body"]
    assert value not in json.dumps([echo, zipped])


def test_nobody_keeps_it(net, rules, value, site):
    """In head, target, body and trailers, there and back: when the connections have ended the value is nowhere."""
    box = rules(inject("api.test", KEY, PLACE))
    asked = [[{":path": "/echo"}, None], [{":path": "/{{secret.TOKEN}}", ":method": "POST"}, "{{secret.TOKEN}}"], [{":path": "/gzip"}, None]]
    assert [answer["status"] for answer in node(box, "many", asked)] == [200, 200, 502]
    seen = net.seen_h2()
    assert any(each.get("body") == value for each in seen), "the control: it was sent"
    nowhere(site, value, box)


def test_answers_without_a_body(net, rules, value):
    answer, empty, head = node(rules(inject("api.test", KEY)), "many", [[{":path": "/hints"}, None], [{":path": "/empty"}, None],
                                                                        [{":path": "/big", ":method": "HEAD", "x-size": "70000"}, None]])
    assert empty["status"] == 204 and empty["headers"]["x-a"] == "b" and empty["bytes"] == 0, empty
    assert head["status"] == 200 and head["headers"]["content-length"] == "70000" and head["bytes"] == 0, head
    assert answer["informed"] == [103] and answer["status"] == 200 and answer["body"] == "hinted"


# ---- gRPC ------------------------------------------------------------------


def test_grpc(net, rules, value):
    """Calls of every kind at once on one connection, with metadata of the gate's, and trailers."""
    box = rules(inject("api.test", {"secret": "TOKEN", "header": "Authorization", "prefix": "Bearer "}))
    result = node(box, "grpc", {"target": f"api.test:{GRPC_PORT}", "calls": ["unary", "fail", "gather", "count", "talk", "missing"]})
    missing = result.pop("missing")
    assert missing["code"] == 12 and "does not implement" in missing["details"], "a status in the head of an answer that is nothing else"
    hidden = f"Bearer {stars(value)}"
    assert {name: each["code"] for name, each in result.items()} == {"unary": 0, "fail": 9, "gather": 0, "count": 0, "talk": 0}, result
    assert all(each["head"]["x-head"] == hidden and each["tail"]["x-tail"] == hidden for each in result.values()), result
    assert result["unary"]["messages"] == [{"got": {"hello": "you"}, "authorization": hidden}]
    assert result["fail"]["details"] == "as asked"
    assert result["gather"]["messages"] == [{"sum": 5050}]
    assert result["count"]["messages"] == list(range(1, 201))
    assert result["talk"]["messages"] == [{"twice": 2 * n} for n in range(1, 21)]
    assert all(each["authorization"] == f"Bearer {value}" for each in net.seen_h2())


def test_grpc_denied(net, rules, value):
    box = rules(inject("api.test", KEY, paths=["/test.Test/Unary"]))
    result = node(box, "grpc", {"target": f"api.test:{GRPC_PORT}", "calls": ["unary", "fail", "talk"]})
    assert {name: each["code"] for name, each in result.items()} == {"unary": 0, "fail": 7, "talk": 7}, result  # PERMISSION_DENIED
    assert [each["grpc"] for each in net.seen_h2()] == ["Unary"]


# ---- flow control, ends ----------------------------------------------------


def test_much_both_ways(net, rules, value):
    box = rules(inject("api.test", KEY))
    size = 8_000_000
    answer = node(box, "upload", {"headers": {":path": "/up", ":method": "POST"}, "size": size})
    assert answer["status"] == 200 and json.loads(answer["body"])["bytes"] == size
    both = node(box, "stalled", {"size": size})
    assert both["other"]["bytes"] == both["first"]["bytes"] == size, both


def test_a_stream_that_is_not_read_costs_no_memory(net, rules, value, site):
    (gate,) = [pid for pid, name in site.programs().items() if name == "paddock-gate"]

    def memory():
        return int(next(line for line in Path(f"/proc/{gate}/status").read_text().splitlines() if line.startswith("VmHWM")).split()[1])

    box = rules(inject("api.test", KEY))
    Path(f"/proc/{gate}/clear_refs").write_text("5")  # the peak starts anew
    before = memory()
    both = node(box, "stalled", {"size": 24_000_000})
    assert both["other"]["bytes"] == 24_000_000
    assert memory() - before < 8 * 1024, "kibibytes"


def test_resets_and_ends(net, rules, value):
    box = rules(inject("api.test", KEY))
    answers = node(box, "many", [[{":path": "/reset"}, None], [{":path": "/half"}, None], [{":path": "/huge-head"}, None],
                                 [{":path": "/fine"}, None]])
    assert answers[0]["code"] == 11 and answers[0]["status"] == 0, "ENHANCE_YOUR_CALM is the server's own"
    assert answers[1]["code"] == 2, "cut, not ended"
    assert answers[2]["status"] == 502, answers[2]
    assert answers[3]["status"] == 200
    result = node(box, "cancel")
    assert result["stopped"]["code"] == 8 and result["after"]["status"] == result["last"]["status"] == 200, result
    paddock.until(lambda: any(each["path"] == "/big" for each in net.seen_h2()), "the server saw it", 10)


@pytest.mark.parametrize("path, status", [("/goaway", 200), ("/die", 502)])
def test_the_server_leaves(net, rules, value, path, status):
    result = node(rules(inject("api.test", KEY)), "leave", {"path": path})
    assert result["answer"]["status"] == status and result["events"][:1] == [["goaway", 0]], result


# ---- frames by hand --------------------------------------------------------

FRAMES = r"""
import json, socket, ssl, struct, sys, time
DATA, HEADERS, PRIORITY, RESET, SETTINGS, PUSH, PING, GOAWAY, WINDOW, CONTINUATION = range(10)
context = ssl.create_default_context()
context.set_alpn_protocols(["h2"])

def field(name, value):
    def text(what):
        what = what.encode() if isinstance(what, str) else what
        n = len(what)
        if n < 127: return bytes([n]) + what
        n, size = n - 127, b"\x7f"
        while n > 127: size, n = size + bytes([n & 127 | 128]), n >> 7
        return size + bytes([n]) + what
    return b"\0" + text(name) + text(value)

def head(path="/x", *more, method="GET", scheme="https", authority="api.test:%d"):
    fields = [(":method", method), (":scheme", scheme), (":authority", authority), (":path", path), *more]
    return b"".join(field(*each) for each in fields)

def frame(kind, flags=0, stream=0, body=b""):
    return struct.pack(">I", len(body))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + body

class Connection:
    def __init__(self):
        raw = socket.create_connection(("api.test", %d), 20)
        self.s = context.wrap_socket(raw, server_hostname="api.test")
        assert self.s.selected_alpn_protocol() == "h2"
        self.bytes, self.over = b"", False
        self.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(SETTINGS))

    def send(self, *frames):
        try:
            self.s.sendall(b"".join(frames))
        except OSError:
            self.over = True

    def read(self):
        # The next frame, or None: the end.
        def take(n):
            while len(self.bytes) < n:
                try:
                    got = self.s.recv(65536)
                except TimeoutError:
                    return None
                except OSError:
                    got = b""
                if not got:
                    self.over = True
                    return None
                self.bytes += got
            part, self.bytes = self.bytes[:n], self.bytes[n:]
            return part
        first = take(9)
        if first is None: return None
        n, kind, flags, stream = int.from_bytes(first[:3], "big"), first[3], first[4], int.from_bytes(first[5:], "big")
        body = take(n)
        return None if body is None else (kind, flags, stream, body)

    def until(self, *kinds):
        # What came, up to the first frame of these kinds or the end: [(kind, flags, stream, text)]
        got = []
        while (f := self.read()) is not None:
            if f[0] == SETTINGS and not f[1] & 1: self.send(frame(SETTINGS, 1))
            if f[0] in (SETTINGS, WINDOW, PING): continue
            got.append((*f[:3], f[3].decode("latin-1")))
            if f[0] in kinds: break
        return got
""" % (PORT, PORT)


def frames(box, script):
    return box.python_json(FRAMES + script, timeout_ms=50_000)


def ends(got, code=None):
    """The last frame is an end of the stream or of the connection, with this code."""
    kind, _, _, body = got[-1]
    if kind == 3:
        return int.from_bytes(body.encode("latin-1"), "big") == code if code is not None else True
    return kind == 7 and (code is None or int.from_bytes(body[4:8].encode("latin-1"), "big") == code)


def test_early_answers(net, rules, value):
    """A request without an end that has its answer, by the server's or our own decision, is ended without an error."""
    box = rules(inject("api.test", KEY, paths=["/early"]))
    result = frames(box, """
result = []
for path in ("/early", "/denied"):
    c = Connection()
    c.send(frame(HEADERS, 4, 1, head(path, method="POST")), frame(DATA, 0, 1, b"x" * 1000))
    result.append(c.until(RESET, GOAWAY))
print(json.dumps(result))
""")
    for got, body in zip(result, ("too much", "paddock: the policy of this sandbox does not allow it\n")):
        assert [each[0] for each in got if each[0] != 0] == [1, 3] and ends(got, 0), got
        assert "".join(each[3] for each in got if each[0] == 0) == body
        assert any(each[0] == 0 and each[1] & 1 for each in got), "the answer has an end of its own"


BAD = r"""
def one(name, *frames_of):
    c = Connection()
    c.send(*frames_of)
    return c.until(RESET, GOAWAY, DATA)

long = head("/x", *((f"x-{n}", "v" * 4000) for n in range(14)))
pieces = [long[i:i + 16000] for i in range(0, len(long), 16000)]
result = {
    "connection": one(1, frame(HEADERS, 5, 1, head("/x", ("connection", "close")))),
    "te": one(1, frame(HEADERS, 5, 1, head("/x", ("te", "gzip")))),
    "transfer-encoding": one(1, frame(HEADERS, 4, 1, head("/x", ("transfer-encoding", "chunked"))), frame(DATA, 1, 1, b"0")),
    "upper case": one(1, frame(HEADERS, 5, 1, head("/x", ("X-Upper", "v")))),
    "line break": one(1, frame(HEADERS, 5, 1, head("/x", ("x-a", "v\r\nx-key: mine")))),
    "late pseudo": one(1, frame(HEADERS, 5, 1, head("/x", ("x-a", "v"), (":path", "/y")))),
    "protocol": one(1, frame(HEADERS, 4, 1, head("/x", (":protocol", "websocket"), method="CONNECT"))),
    "two authorities": one(1, frame(HEADERS, 5, 1, head("/x", (":authority", "evil.test")))),
    "short": one(1, frame(HEADERS, 4, 1, head("/x", ("content-length", "10"), method="POST")), frame(DATA, 1, 1, b"abc")),
    "long": one(1, frame(HEADERS, 4, 1, head("/x", ("content-length", "2"), method="POST")), frame(DATA, 1, 1, b"abc")),
    "large head": one(1, frame(HEADERS, 1, 1, pieces[0]), *(frame(CONTINUATION, 0, 1, p) for p in pieces[1:-1]), frame(CONTINUATION, 4, 1, pieces[-1])),
    "push": one(1, frame(PUSH, 4, 1, b"\0\0\0\2" + head())),
    "no preface": None,
}
c = Connection()
c.send(frame(HEADERS, 5, 1, head("/fine")))
result["fine"] = c.until(DATA)
print(json.dumps(result))
"""


def test_malformed_requests(net, rules, value, site):
    gate = [pid for pid, name in site.programs().items() if name == "paddock-gate"]
    box = rules(inject("api.test", KEY))
    result = frames(box, BAD)
    assert "/fine" in result.pop("fine")[-1][3]
    assert result.pop("no preface") is None
    large = result.pop("large head")
    assert "too large" in large[-1][3], large
    for name, got in result.items():
        assert got and got[-1][0] in (3, 7) and not ends(got, 0), (name, got)
    # a body that is shorter or longer than it says has begun: but the server has seen no end of it
    assert all(each["path"] == "/fine" or not each["ended"] for each in net.seen_h2())
    assert [pid for pid, name in site.programs().items() if name == "paddock-gate"] == gate


FLOODS = r"""
def flood(frames_of):
    c = Connection()
    sent = 0
    for each in frames_of:
        c.send(each)
        sent += 1
        if c.over: break
    got = [] if c.over else c.until(GOAWAY)
    return [c.over, sent, got[-1:]]

streams = range(1, 40001, 2)
result = {
    "resets": flood(frame(HEADERS, 4, n, head()) + frame(RESET, 0, n, b"\0\0\0\x08") for n in streams),
    "pings": flood(frame(PING, 0, 0, b"12345678") * 100 for _ in range(1000)),
    "settings": flood(frame(SETTINGS) * 100 for _ in range(1000)),
    "empty data": flood([frame(HEADERS, 4, 1, head(method="POST"))] + [frame(DATA, 0, 1) * 100 for _ in range(1000)]),
    "continuations": flood([frame(HEADERS, 0, 1, head())] + [frame(CONTINUATION, 0, 1) * 100 for _ in range(1000)]),
    "bad streams": flood(frame(HEADERS, 5, n, head("/x", ("connection", "x"))) for n in streams),
}
c = Connection()
c.send(*(frame(HEADERS, 4, n, head("/hang", method="POST")) for n in range(1, 401, 2)))
refused = 0
c.s.settimeout(20)
while refused < 100:
    kind, flags, stream, body = c.read()
    refused += kind == RESET and body == b"\0\0\0\7"
result["refused"] = refused
c = Connection()
c.send(frame(HEADERS, 5, 1, head("/fine")))
result["fine"] = c.until(DATA)
print(json.dumps(result))
"""


def test_floods(net, rules, value, site):
    """What costs the gate and not the box has an end: each of these is cut, and nobody else notices."""
    gate = [pid for pid, name in site.programs().items() if name == "paddock-gate"]
    result = frames(rules(inject("api.test", KEY)), FLOODS)
    assert "/fine" in result.pop("fine")[-1][3] and result.pop("refused") == 100
    for name, (over, sent, last) in result.items():
        assert over or not last or last[0][0] == 7, (name, sent, last)
        assert over or last or name == "continuations", (name, "nobody ended it")
    assert [pid for pid, name in site.programs().items() if name == "paddock-gate"] == gate


DEAF = r"""
import select
def deaf():
    raw = socket.socket()
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    raw.settimeout(20)
    raw.connect(("api.test", %d))
    s = context.wrap_socket(raw, server_hostname="api.test")
    window = struct.pack(">HI", 4, 1 << 30)
    s.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(SETTINGS, 0, 0, window) + frame(WINDOW, 0, 0, struct.pack(">I", 1 << 30))
              + frame(HEADERS, 5, 1, head("/big", ("x-size", "24000000"))))
    return s

def waiting():
    # What the gate's ends of these connections have not got rid of: they are sockets of this network, too.
    rows = [line.split() for name in ("tcp", "tcp6") for line in open("/proc/net/" + name).read().splitlines()[1:]]
    return [row[4] for row in rows if row[3] == "01" and row[1].endswith(":%%04X" %% %d) and not row[4].startswith("00000000")]

held = [deaf() for _ in range(6)]
before, since = None, time.monotonic()
started = since
while time.monotonic() - since < 1:  # until nothing more comes: they are full
    now = waiting()
    if now != before or len(now) < len(held): before, since = now, time.monotonic()
    if time.monotonic() - started > 20: sys.exit(f"they do not fill: {now}")
    time.sleep(0.02)
for s in held: s.sendall(frame(SETTINGS) * 60)
begin, took = time.monotonic(), []
poll = select.poll()
for s in held: poll.register(s, 0)  # ends alone
while held and time.monotonic() - begin < 20 and not took:
    for fd, _ in poll.poll(1000):
        took.append(time.monotonic() - begin)
        poll.unregister(fd)
print(json.dumps(took))
""" % (PORT, PORT)


def test_who_reads_nothing_is_not_waited_for(net, rules, value):
    """A client that asks for too much is told to leave; one that does not even read that is cut after a while."""
    took = frames(rules(inject("api.test", KEY)), DEAF)
    assert took and all(5 < each < 20 for each in took), took


# ---- the canary --------------------------------------------------------------


IDLE = """
const session = require('http2').connect(process.env.H2_URL);
const ask = (path, done) => {
  const stream = session.request({ ':method': 'POST', ':path': path, 'x-want': '{{secret.TOKEN}}' });
  stream.on('end', done).resume();
  stream.end('{{secret.TOKEN}}');
};
ask('/one', () => ask('/two', () => console.log('both-answered')));
"""


def test_canary(net, rules, value, client, site):
    """The gate knows it as long as the connection lives, to mask it; then no table of HPACK has it, nor anybody else."""
    box = rules(inject("api.test", KEY, PLACE))
    started = client.post(f"{box.path}/processes", {"argv": ["node", "-e", IDLE], "tag": "idle", "env": {"H2_URL": URL}})
    assert started.status == 201, started
    paddock.until(lambda: client.get(f"{box.path}/processes/idle/output").json()["stdout"]["data"] == "both-answered\n", "both are answered", 20)
    sent = net.seen_h2()
    assert [(each["headers"]["x-key"], each["headers"]["x-want"], each["body"]) for each in sent] == [(value,) * 3] * 2, "the control"
    assert in_memory(site, forms(value), box) == {"paddock-gate"}
    assert client.get(f"{box.path}/processes/idle").json()["running"], "it is open"
    assert client.delete(f"{box.path}/processes/idle").status in (200, 204)
    nowhere(site, value, box)
