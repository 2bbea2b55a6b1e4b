"""Terminals over WebSocket. The peer of the protocol tests is a client of our own, which can
misbehave; `ws` of Node.js is the one that knows nothing of us."""

import base64
import contextlib
import hashlib
import json
import os
import re
import select
import struct
import subprocess
import time

import pytest

import paddock

TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10

# Before readline shows it, it reads the terminal's size and sets what it has read: a size from between is lost,
# in every terminal. So tests of sizes wait for it, here and with the other clients.
PROMPT = rb"(?s:.*)\$ "


class Socket:
    def __init__(self, daemon, path, headers=(), key=None, upgrade=True):
        self.connection = daemon.raw()
        self.buffer, self.at = bytearray(), 0
        nonce = base64.b64encode(os.urandom(16)).decode()
        lines = [f"GET {path} HTTP/1.1", f"Host: {daemon.host}:{daemon.port}"]
        if upgrade:
            lines += ["Connection: keep-alive, Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13", f"Sec-WebSocket-Key: {nonce}"]
        if key is None:
            lines.append(f"Authorization: Bearer {daemon.key}")
        self.connection.sendall("\r\n".join([*lines, *headers, "", ""]).encode())
        head = self.until(b"\r\n\r\n").decode()
        self.status = int(head.split()[1])
        self.headers = {k.lower(): v for k, v in (line.split(": ", 1) for line in head.split("\r\n")[1:] if line)}
        if self.status == 101:
            accept = base64.b64encode(hashlib.sha1((nonce + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode()).digest()).decode()
            assert self.headers["sec-websocket-accept"] == accept
            assert self.headers["upgrade"].lower() == "websocket" and self.headers["connection"].lower() == "upgrade"

    def until(self, mark):
        while mark not in self.buffer:
            piece = self.connection.recv(65536)
            assert piece, self.buffer
            self.buffer += piece
        head, rest = self.buffer.split(mark, 1)
        self.buffer = rest
        return bytes(head)

    def take(self, n):
        while len(self.buffer) - self.at < n:
            piece = self.connection.recv(1 << 20)
            if not piece:
                raise EOFError
            self.buffer = self.buffer[self.at:] + piece
            self.at = 0
        self.at += n
        return bytes(self.buffer[self.at - n:self.at])

    def body(self):
        length = int(self.headers.get("content-length", 0))
        return self.take(length)

    # -- frames

    def send(self, opcode, data=b"", fin=True, mask=True, rsv=0, length=None):
        data = data.encode() if isinstance(data, str) else data
        n = len(data) if length is None else length
        head = bytes([(0x80 if fin else 0) | rsv << 4 | opcode])
        bit = 0x80 if mask else 0
        if n < 126:
            head += bytes([bit | n])
        elif n < 1 << 16:
            head += bytes([bit | 126]) + struct.pack(">H", n)
        else:
            head += bytes([bit | 127]) + struct.pack(">Q", n)
        if mask:
            key = os.urandom(4)
            head += key
            data = bytes(b ^ key[i & 3] for i, b in enumerate(data))
        self.connection.sendall(head + data)

    def receive(self):
        first, second = self.take(2)
        assert first & 0x70 == 0 and second & 0x80 == 0 and first & 0x80, "unmasked, whole, no reserved bits"
        n = second & 0x7f
        if n == 126:
            n = struct.unpack(">H", self.take(2))[0]
        elif n == 127:
            n = struct.unpack(">Q", self.take(8))[0]
        return first & 0x0f, self.take(n)

    def control(self):
        opcode, data = self.receive()
        assert opcode == TEXT, (opcode, data)
        return json.loads(data)

    def read_until(self, pattern, timeout=10):
        """Bytes of the terminal up to a match; pings are answered on the way."""
        got, end = b"", time.monotonic() + timeout
        while not re.search(pattern, got):
            assert time.monotonic() < end, got
            opcode, data = self.receive()
            if opcode == BINARY:
                got += data
            else:
                assert opcode == PING, (opcode, data, got)
                self.send(PONG, data)
        return got

    def rest(self):
        """Everything up to the close: (bytes, [text messages], close code)."""
        got, texts = bytearray(), []
        while True:
            opcode, data = self.receive()
            if opcode == BINARY:
                got += data
            elif opcode == TEXT:
                texts.append(json.loads(data))
            elif opcode == PING:
                self.send(PONG, data)
            elif opcode == CLOSE:
                return got, texts, struct.unpack(">H", data[:2])[0] if data else None

    def close(self):
        self.connection.close()


@pytest.fixture
def box(make_box):
    return make_box()


@pytest.fixture
def connect(daemon):
    made = []

    def make(box, query="", **options):
        made.append(Socket(daemon, f"{box.path}/terminal" + (f"?{query}" if query else ""), **options))
        return made[-1]

    yield make
    for socket in made:
        socket.close()


# ---- terminals ------------------------------------------------------------


def test_a_login_shell(box, connect):
    ws = connect(box, "cols=101&rows=31")
    assert ws.status == 101
    first = ws.control()
    assert first["type"] == "attached" and first["pid"] > 1 and first["offset"] == 0
    ws.send(BINARY, "stty size; tty; echo $TERM; id -un; shopt login_shell\n")
    text = ws.read_until(rb"login_shell\s+on\r\n" + PROMPT)
    assert b"31 101\r\n" in text and b"/dev/pts/" in text and b"xterm-256color\r\n" in text and b"\r\nuser\r\n" in text
    ws.send(TEXT, json.dumps({"type": "resize", "cols": 77, "rows": 22}))
    ws.send(BINARY, "stty size\n")
    ws.read_until(rb"22 77\r\n")
    ws.send(BINARY, "exit 7\n")
    _, texts, code = ws.rest()
    assert texts[-1]["type"] == "exit" and texts[-1]["exit_code"] == 7 and code == 1000


def test_ctrl_c_and_ctrl_d(box, connect):
    ws = connect(box)
    ws.control()
    ws.send(BINARY, "sleep 8000\n")
    pid = box.find_process("8000")
    ws.send(BINARY, b"\x03")
    assert paddock.wait_gone(pid)
    ws.send(BINARY, "echo st:$?\n")
    ws.read_until(rb"st:130\r\n" + PROMPT)  # before it Ctrl-D ends a line of nobody
    ws.send(BINARY, b"\x04")
    assert ws.rest()[1][-1]["exit_code"] == 0


def test_user_and_cwd(box, connect):
    ws = connect(box, "user=root&cwd=/usr")
    ws.control()
    ws.send(BINARY, "echo $(id -u):$(pwd)\n")
    ws.read_until(rb"0:/usr\r\n")


def test_resume_by_offset(box, connect):
    ws = connect(box)
    pid = ws.control()["pid"]
    ws.send(BINARY, "stty -echo; PS1=; echo one; until test -e /tmp/go; do sleep 0.05; done; echo two; touch /tmp/told\n")
    got = ws.read_until(rb"one\r\n(?!.*one)")
    while not got.endswith(b"one\r\n"):
        got += ws.receive()[1]
    ws.close()
    box.check("touch /tmp/go; until test -e /tmp/told; do sleep 0.05; done; rm -f /tmp/go /tmp/told")
    again = connect(box, f"process={pid}&offset={len(got)}")
    first = again.control()
    assert first == {"type": "attached", "pid": pid, "offset": len(got)}
    again.read_until(rb"two\r\n")
    again.send(BINARY, "echo still here; exit 3\n")
    got, texts, _ = again.rest()
    assert b"still here" in got and texts[-1]["exit_code"] == 3
    after = connect(box, f"process={pid}&offset=999999")
    assert after.control()["type"] == "attached"
    assert after.rest()[1][-1]["exit_code"] == 3, "the end, though it came before"


def test_two_at_one_terminal(box, connect):
    one = connect(box)
    pid = one.control()["pid"]
    two = connect(box, f"process={pid}")
    two.control()
    two.send(BINARY, "echo shared\n")
    one.read_until(rb"shared\r\n")
    two.read_until(rb"shared\r\n")


def test_a_lost_client_kills_only_when_wished(box, connect):
    stays, goes = connect(box), connect(box, "kill_on_disconnect=1")
    pids = [ws.control()["pid"] for ws in (stays, goes)]
    stays.close()
    goes.close()
    answer = box.client.get(f"{box.path}/processes/{pids[1]}/wait?timeout_ms=30000").json()
    assert answer["running"] is False
    assert box.client.get(f"{box.path}/processes/{pids[0]}/wait?timeout_ms=200").json() == {"running": True}


def test_much_output_and_a_slow_reader(box, connect, daemon):
    ws = connect(box)
    ws.control()
    ws.send(BINARY, "stty -echo -opost; PS1=; head -c 30000000 /dev/zero | tr '\\0' x; echo; echo END; exit\n")
    time.sleep(1)
    assert paddock.rss_kb(daemon.api_pid()) < 100_000
    got, texts, _ = ws.rest()
    assert got.count(b"x") >= 30_000_000 and b"END" in got and texts[-1]["type"] == "exit"


def test_much_input(box, connect):
    ws = connect(box)
    ws.control()
    ws.send(BINARY, "stty raw -echo; PS1=; echo rea''dy; head -c 2000000 | sha256sum; exit\n")
    ws.read_until(rb"ready")
    data = bytes(range(256)) * 7813
    for i in range(0, 2_000_000, 100_000):
        ws.send(BINARY, data[i:min(i + 100_000, 2_000_000)])
    assert hashlib.sha256(data[:2_000_000]).hexdigest().encode() in ws.rest()[0]


# ---- the protocol ---------------------------------------------------------


def test_fragments_and_controls_between_them(box, connect):
    ws = connect(box)
    ws.control()
    ws.send(BINARY, "echo fr", fin=False)
    ws.send(PING, b"are you there")
    ws.send(0, "ag", fin=False)
    ws.send(PONG, b"unasked")
    ws.send(0, "", fin=False)
    ws.send(0, "ment''s\n")
    got, pong = b"", None
    while not re.search(rb"fragments\r\n" + PROMPT, got):
        opcode, data = ws.receive()
        if opcode == PONG:
            pong = data
        else:
            got += data
    assert pong == b"are you there"
    ws.send(TEXT, '{"type":"resize",', fin=False)
    ws.send(0, '"cols":50,"rows":20}')
    ws.send(BINARY, "stty size\n")
    ws.read_until(rb"20 50\r\n")


@pytest.mark.parametrize("code", [1000, 1001, 3000, 4999, None])
def test_close_is_answered(box, connect, code):
    ws = connect(box)
    ws.control()
    ws.send(CLOSE, b"" if code is None else struct.pack(">H", code) + "tschüß".encode())
    assert ws.rest()[2] == code
    with pytest.raises(EOFError):
        ws.take(1)


VIOLATIONS = {
    "not masked": (lambda ws: ws.send(BINARY, b"x", mask=False), 1002),
    "reserved bit": (lambda ws: ws.send(BINARY, b"x", rsv=4), 1002),
    "opcode 3": (lambda ws: ws.send(3, b"x"), 1002),
    "opcode 11": (lambda ws: ws.send(11, b"x"), 1002),
    "continuation of nothing": (lambda ws: ws.send(0, b"x"), 1002),
    "message in a message": (lambda ws: (ws.send(TEXT, b"x", fin=False), ws.send(TEXT, b"y")), 1002),
    "ping in fragments": (lambda ws: ws.send(PING, b"x", fin=False), 1002),
    "long ping": (lambda ws: ws.send(PING, b"x" * 126), 1002),
    "half a close code": (lambda ws: ws.send(CLOSE, b"\x03"), 1002),
    "close code 1005": (lambda ws: ws.send(CLOSE, struct.pack(">H", 1005)), 1002),
    "close code 999": (lambda ws: ws.send(CLOSE, struct.pack(">H", 999)), 1002),
    "close code 5000": (lambda ws: ws.send(CLOSE, struct.pack(">H", 5000)), 1002),
    "close reason not UTF-8": (lambda ws: ws.send(CLOSE, struct.pack(">H", 1000) + b"\xff"), 1007),
    "text not UTF-8": (lambda ws: ws.send(TEXT, b"\xff"), 1007),
    "text ends in a character": (lambda ws: ws.send(TEXT, b"\xe2\x82"), 1007),
    "surrogate": (lambda ws: ws.send(TEXT, b"\xed\xa0\x80"), 1007),
    "too large": (lambda ws: ws.send(BINARY, b"", length=2_000_000), 1009),
    "too large in fragments": (lambda ws: [ws.send(BINARY if i == 0 else 0, b"x" * 200_000, fin=False) for i in range(6)], 1009),
    "text too large": (lambda ws: ws.send(TEXT, b"x" * 5000), 1009),
    "no JSON": (lambda ws: ws.send(TEXT, "hello"), 1008),
    "no such message": (lambda ws: ws.send(TEXT, '{"type":"reboot"}'), 1008),
    "resize to nothing": (lambda ws: ws.send(TEXT, '{"type":"resize","cols":0,"rows":1}'), 1008),
}


@pytest.mark.parametrize("act,code", VIOLATIONS.values(), ids=VIOLATIONS.keys())
def test_violations_end_the_connection(box, connect, act, code):
    ws = connect(box)
    ws.control()
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        act(ws)
    assert ws.rest()[2] == code


def test_length_that_is_not_the_shortest(box, connect):
    for head in (b"\x82\xfe\x00\x05", b"\x82\xff" + struct.pack(">Q", 300), b"\x82\xff" + struct.pack(">Q", 1 << 63)):
        ws = connect(box)
        ws.control()
        ws.connection.sendall(head + b"\0\0\0\0")
        assert ws.rest()[2] == 1002


def test_handshakes_that_are_none(daemon, box, connect):
    assert connect(box, upgrade=False).status == 400
    for line in ("Sec-WebSocket-Version: 12", "Sec-WebSocket-Key: short", "Sec-WebSocket-Key: " + "!" * 22 + "=="):
        with daemon.raw() as connection:
            headers = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="}
            name, value = line.split(": ")
            headers[name] = value
            connection.sendall((f"GET {box.path}/terminal HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {daemon.key}\r\n"
                                + "".join(f"{k}: {v}\r\n" for k, v in headers.items()) + "\r\n").encode())
            assert connection.recv(4096).startswith(b"HTTP/1.1 400"), line
    for query in ("cols=0", "cols=x", "rows=99999", "offset=-1", "process=99999", "nonsense=1", "user=nobody-such", "cwd=/no/such"):
        ws = connect(box, query)
        assert ws.status in (400, 404), query
        assert b'"error"' in ws.body()


# ---- who may --------------------------------------------------------------


def test_without_a_key(daemon, box, connect):
    assert connect(box, key="").status == 401
    assert connect(box, key="", headers=["Authorization: Bearer pdk_" + "0" * 40]).status == 401
    assert connect(box, key="", headers=["Sec-WebSocket-Protocol: paddock, paddock.bearer.pdk_" + "0" * 40]).status == 401


def test_key_as_a_subprotocol(daemon, box, connect):
    bearer = f"paddock.bearer.{daemon.key}"
    ws = connect(box, key="", headers=[f"Sec-WebSocket-Protocol: paddock, {bearer}"])
    assert ws.status == 101 and ws.headers["sec-websocket-protocol"] == "paddock"
    ws = connect(box, key="", headers=[f"Sec-WebSocket-Protocol: {bearer}"])
    assert ws.status == 101 and ws.headers["sec-websocket-protocol"] == bearer
    assert "sec-websocket-protocol" not in connect(box).headers


def test_origin(daemon, box, connect):
    bearer = f"Sec-WebSocket-Protocol: paddock, paddock.bearer.{daemon.key}"
    own = f"{daemon.host}:{daemon.port}"
    for origin, status in ((f"http://{own}", 101), (f"https://{own}", 101), ("http://evil.example", 403), ("null", 403),
                           (f"http://{daemon.host}", 403), (f"http://{own}.evil.example", 403), (f"file://{own}", 403)):
        assert connect(box, key="", headers=[bearer, f"Origin: {origin}"]).status == status, origin
    assert connect(box, headers=["Origin: http://evil.example"]).status == 101, "who can set a header is no page"


def test_another_tenant(daemon, api, box, connect):
    key = api.post("/v1/keys", {"name": "t", "role": "user", "tenant": "terminal-other", "create_tenant": True}).json()["key"]
    assert connect(box, key="", headers=[f"Authorization: Bearer {key}"]).status == 404


# ---- restarts -------------------------------------------------------------


def test_a_terminal_survives_the_api(own_daemon):
    daemon = own_daemon().start()
    client = daemon.client()
    box = client.create()
    ws = Socket(daemon, f"{box.path}/terminal")
    pid = ws.control()["pid"]
    ws.send(BINARY, "x=remembered\n")
    ws.read_until(rb"remembered\r\n")
    daemon.kill_api()
    ws.close()
    ws = Socket(daemon, f"{box.path}/terminal?process={pid}")
    assert ws.control()["pid"] == pid
    ws.send(BINARY, "echo got:$x\n")
    ws.read_until(rb"got:remembered\r\n")
    ws.close()
    client.close()


# ---- a client that knows nothing of us ------------------------------------

NODE = r"""
const WebSocket = require('ws');
const [url, key, mode] = process.argv.slice(1);
const options = mode === 'subprotocol' ? {} : { headers: { Authorization: 'Bearer ' + key } };
const ws = mode === 'subprotocol' ? new WebSocket(url, ['paddock', 'paddock.bearer.' + key]) : new WebSocket(url, options);
let out = '', texts = [], asked = false;
ws.on('open', () => { ws.ping('hello'); });
ws.on('pong', data => texts.push({ type: 'pong', data: data.toString() }));
ws.on('message', (data, binary) => {
  if (!binary) {
    const message = JSON.parse(data.toString());
    texts.push(message);
  } else {
    out += data.toString('latin1');
    if (!asked && out.endsWith('$ ')) {
      asked = true;
      ws.send(JSON.stringify({ type: 'resize', cols: 66, rows: 11 }));
      ws.send(Buffer.from('stty size; '), { fin: false });
      ws.send(Buffer.from('head -c 200000 /dev/zero | tr "\\0" x; exit 5\n'), { fin: true });
    }
  }
});
ws.on('close', code => { console.log(JSON.stringify({ code, texts, size: /11 66/.test(out), x: out.split('x').length - 1, protocol: ws.protocol })); });
ws.on('error', error => { console.log(JSON.stringify({ error: error.message })); });
"""


@pytest.mark.parametrize("mode", ["header", "subprotocol"])
def test_ws_of_node(daemon, box, mode):
    result = subprocess.run(
        ["node", "-e", NODE, f"ws://{daemon.host}:{daemon.port}{box.path}/terminal", daemon.key, mode],
        capture_output=True, text=True, timeout=30, env={**os.environ, "NODE_PATH": "/usr/share/nodejs"})
    assert result.returncode == 0, result.stderr
    answer = json.loads(result.stdout)
    assert answer["code"] == 1000 and answer["size"] and answer["x"] >= 200_000, answer
    kinds = [text["type"] for text in answer["texts"]]
    assert sorted(kinds) == ["attached", "exit", "pong"] and answer["texts"][-1]["exit_code"] == 5
    assert answer["protocol"] == ("paddock" if mode == "subprotocol" else "")
