"""Attacks on paddock-api by those who have no key, or one: memory, connections, time.

Each is small enough to run in seconds, and large enough that the daemon it was written against failed it.
Memory is what /proc says of the process.
"""

import contextlib
import json
import os
import re
import select
import socket
import struct
import time

import pytest

import frames
import paddock
from paddock import Background, read_response, read_responses, rss_kb, statuses, until
from test_http import PREFACE, frame, headers, literal

MB = 1024


@contextlib.contextmanager
def sockets(daemon, count, receive=None, sources=("127.0.0.1",)):
    """`count` connections, with small receive buffers where they are not going to be read."""
    made = []
    try:
        for i in range(count):
            one = socket.socket()
            one.bind((sources[i % len(sources)], 0))
            if receive:
                one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive)
            one.settimeout(20 * paddock.SLOW)
            one.connect((daemon.host, daemon.port))
            made.append(one)
        yield made
    finally:
        for one in made:
            one.close()


def push(connection, data):
    """Sends what the peer takes without waiting for it; the number of bytes."""
    connection.setblocking(False)
    sent = 0
    with contextlib.suppress(BlockingIOError, BrokenPipeError, ConnectionResetError):
        while sent < len(data):
            sent += connection.send(data[sent:sent + 65536])
    return sent


def push_all(connections, data, seconds=3.0):
    """The same to all of them, until no one takes any more or the time is over."""
    left, end = {one: data for one in connections}, time.monotonic() + seconds * paddock.SLOW
    while left and time.monotonic() < end:
        moved = 0
        for one in list(left):
            sent = push(one, left[one])
            moved += sent
            left[one] = left[one][sent:]
            if not left[one]:
                del left[one]
        if not moved:
            time.sleep(0.02)


def peak_during(daemon, act):
    """How many KB the api grew at most while `act` ran and for a little while after it."""
    pid, most = daemon.api_pid(), 0
    before = rss_kb(pid)
    running = Background(act)
    while running.is_alive():
        most = max(most, rss_kb(pid))
        time.sleep(0.01)
    running.result()
    return most - before


def goes_back(daemon, before, slack=24 * MB):
    """The memory is given back to the system when the burst is over."""
    pid = daemon.api_pid()
    until(lambda: rss_kb(pid) < before + slack,
          f"the api gives its memory back: {rss_kb(pid) // MB} MB, before {before // MB} MB", 15)


def hello(connection, daemon, key=None):
    """One request on a connection that is open; its status."""
    line = f"Authorization: Bearer {key}\r\n" if key else ""
    connection.sendall(f"GET {'/v1/sandboxes' if key else '/health'} HTTP/1.1\r\nHost: x\r\n{line}\r\n".encode())
    return read_responses(connection, 1)[0][0]


# ---- memory without a key -------------------------------------------------


def largest_asset(daemon):
    """The dashboard's, by its compressed size."""
    with contextlib.closing(paddock.Client(daemon)) as guest:
        page = guest.get("/", headers={"Accept": "text/html"}).body.decode()
        names = set(re.findall(r'"(/dashboard/assets/[^"]+)"', page))
        return max((len(guest.get(name, headers={"Accept-Encoding": "gzip"}).body), name) for name in names)


@pytest.mark.parametrize("what", ["the API's document", "the dashboard"])
def test_h2_zero_window_does_not_hold_answers(daemon, what):
    """128 requests for a large constant answer on each of 40 connections whose window is shut."""
    size, path = largest_asset(daemon) if what == "the dashboard" else (None, "/openapi.json")
    closed = frame(4, 0, 0, b"\0\4" + struct.pack(">I", 0))  # INITIAL_WINDOW_SIZE 0
    block = headers(path.encode()) + literal(b"accept-encoding", b"gzip")
    requests = b"".join(frame(1, 5, 2 * i + 1, block) for i in range(128))
    assert size is None or size > 16384
    before = rss_kb(daemon.api_pid())

    def attack():
        with sockets(daemon, 40) as many:
            for one in many:
                one.sendall(PREFACE + closed + requests)
            for one in many:  # they were read: a ping is answered
                one.sendall(frame(6, 0, 0, b"12345678"))
                seen = b""
                while b"12345678" not in seen:
                    piece = one.recv(65536)
                    if not piece:
                        break
                    seen += piece

    grown = peak_during(daemon, attack)
    assert grown < 60 * MB, f"{grown // MB} MB for 40 connections"
    goes_back(daemon, before)


def test_the_document_is_whole_when_the_window_opens(daemon):
    """The shared answer is the right one in small windows, over HTTP/2 and when HTTP/1.1 pipelines it."""
    with daemon.raw() as connection:
        connection.sendall(b"GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n" * 5
                           + b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
        time.sleep(0.1)
        answers = read_responses(connection, 6)
    assert [status for status, _, _ in answers] == [200] * 6
    document = answers[0][2]
    assert json.loads(document)["openapi"] and all(body == document for _, _, body in answers[:5])
    assert b"ok" in answers[5][2]
    with daemon.raw() as connection:
        connection.sendall(PREFACE + frame(4, 0, 0, b"\0\4" + struct.pack(">I", 1000))
                           + frame(1, 5, 1, headers(b"/openapi.json")) + frame(1, 5, 3, headers(b"/openapi.json")))
        stream, bodies, ended = connection.makefile("rb"), {1: b"", 3: b""}, set()
        while len(ended) < 2:
            head = stream.read(9)
            kind, flags, number = head[3], head[4], int.from_bytes(head[5:], "big")
            payload = stream.read(int.from_bytes(head[:3], "big"))
            if kind == 0:
                bodies[number] += payload
                more = struct.pack(">I", len(payload)) if payload else None
                if more:
                    connection.sendall(frame(8, 0, 0, more) + frame(8, 0, number, more))
                if flags & 1:
                    ended.add(number)
    assert bodies == {1: document, 3: document}


def test_pipelining_without_reading_is_bounded(daemon):
    """400 clients send requests as fast as they are taken and read no answer."""
    before = rss_kb(daemon.api_pid())

    def attack():
        with sockets(daemon, 400, receive=4096) as many:
            push_all(many, b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n" * 100_000)
            with daemon.raw() as other:
                assert hello(other, daemon) == 200

    grown = peak_during(daemon, attack)
    assert grown < 64 * MB, f"{grown // MB} MB for 400 connections"  # what clients without a key may hold (SECURITY.md)
    goes_back(daemon, before)


def test_h2_heads_are_bounded(daemon):
    """Large heads that HPACK makes cheap, on streams whose answers cannot leave."""
    closed = frame(4, 0, 0, b"\0\4" + struct.pack(">I", 0))
    # 0x40: literal with indexing, so that it is in the table as entry 62 from then on.
    large = b"\x40\x03x-a\x7f\x91\x1d" + b"v" * 3856  # 3856 = 127 + 0x11 + (0x1d << 7)
    first = frame(1, 5, 1, headers(extra=large))
    rest = b"".join(frame(1, 5, 2 * i + 1, headers(extra=b"\xbe" * 8)) for i in range(1, 128))
    before = rss_kb(daemon.api_pid())

    def attack():
        with sockets(daemon, 60) as many:
            for one in many:
                one.sendall(PREFACE + closed + first + rest + frame(6, 0, 0, b"12345678"))
            for one in many:
                seen = b""
                while b"12345678" not in seen:
                    piece = one.recv(65536)
                    if not piece:
                        break
                    seen += piece

    grown = peak_during(daemon, attack)
    assert grown < 80 * MB, f"{grown // MB} MB for 60 connections"
    goes_back(daemon, before)


# ---- lock-out without a key -----------------------------------------------

DRIP = (b"POST /v1/sandboxes HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer pdk_" + b"0" * 40
        + b"\r\nContent-Type: application/json\r\nContent-Length: 60000\r\n\r\n")
HALF = b"GET /health HTTP/1.1\r\nHost: x\r\n"
UPLOAD = b"POST /v1/sandboxes HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.fixture(scope="module")
def small(daemon_factory):
    """A daemon for at most 200 connections."""
    it = daemon_factory("small", environment={"PADDOCK_MAX_CONNECTIONS": "200"}).start()
    yield it
    it.finish()


def test_connections_are_configured(own_daemon):
    it = own_daemon(environment={"PADDOCK_MAX_CONNECTIONS": "3"})
    with pytest.raises(AssertionError, match="max.connections"):
        it.start()


@pytest.mark.parametrize("first", [DRIP, HALF, UPLOAD, b""], ids=["body with a bad key", "half a head", "chunks", "nothing"])
def test_dripping_strangers_do_not_lock_others_out(small, first):
    """400 sockets that send a byte now and then; others come in at once, with a key and without."""
    def drip(many, byte=b"x"):
        for one in many:
            one.setblocking(False)
            with contextlib.suppress(BlockingIOError, BrokenPipeError, ConnectionResetError):
                one.send(byte)

    with small.raw() as keyed:
        assert hello(keyed, small, small.key) == 200
        with sockets(small, 400) as many:
            for one in many:
                with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                    one.sendall(first)
            slowest = 0
            for _ in range(5):
                if first:
                    drip(many)
                begun = time.monotonic()
                with small.raw(timeout=5) as other:
                    assert hello(other, small) == 200
                with small.raw(timeout=5) as other:
                    assert hello(other, small, small.key) == 200
                slowest = max(slowest, time.monotonic() - begun)
            assert slowest < 2 * paddock.SLOW, f"{slowest:.1f} s"
            # Whoever has shown a key was not the one to make place.
            assert hello(keyed, small, small.key) == 200


@pytest.mark.parametrize("addresses, most", [(1, 100), (8, 150)], ids=["one address", "many addresses"])
def test_strangers_have_a_share_of_the_connections(small, addresses, most):
    """Of 200 places an address without a key has half, and all of them three quarters."""
    def count():
        return int(re.search(rb"^paddock_http_connections (\d+)", keyed.get("/metrics").body, re.M)[1])

    keyed = small.client()
    assert keyed.get("/v1/sandboxes").status == 200
    with sockets(small, 400, sources=[f"127.0.0.{1 + i}" for i in range(addresses)]) as many:
        many[-1].sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        assert b" 200 " in many[-1].recv(4096), "all were accepted"
        assert most - 10 <= count() <= most + 10
    paddock.until(lambda: count() < 10, "they are gone")
    keyed.close()


def test_a_key_does_not_take_all_connections(small):
    """Streams of one tenant leave places for others: its oldest ends when there are too many."""
    admin = small.client()
    assert admin.post("/v1/tenants", {"name": "greedy"}).status == 201
    key = admin.post("/v1/keys", {"tenant": "greedy", "role": "user"}).json()
    ask = (f"GET /v1/events HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\nAuthorization: Bearer {key['key']}\r\n\r\n").encode()
    with sockets(small, 0) as many:
        for _ in range(220):
            one = small.raw(timeout=5)
            many.append(one)
            one.sendall(ask)
            assert b" 200 " in one.recv(4096)
        with small.raw(timeout=5) as other:
            assert hello(other, small, small.key) == 200
        with small.raw(timeout=5) as other:
            assert hello(other, small) == 200
    admin.delete(f"/v1/keys/{key['id']}")
    admin.close()


def test_another_tenants_connections_stay(small):
    """One tenant takes all places, with streams and with silent connections: who comes next takes one of its own."""
    admin = small.client()
    keys = {}
    for name in ("taker", "other"):
        assert admin.post("/v1/tenants", {"name": name}).status == 201
        keys[name] = admin.post("/v1/keys", {"tenant": name, "role": "user"}).json()["key"]
    ask = f"GET /v1/events HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\nAuthorization: Bearer {keys['taker']}\r\n\r\n".encode()
    with contextlib.ExitStack() as stack:
        others = [stack.enter_context(small.raw(timeout=20 * paddock.SLOW)) for _ in range(20)]
        for one in others:
            assert hello(one, small, keys["other"]) == 200
        for _ in range(95):
            one = stack.enter_context(small.raw(timeout=20 * paddock.SLOW))
            one.sendall(ask)
            assert b" 200 " in one.recv(4096)
        many = stack.enter_context(sockets(small, 120))
        for _ in range(30):
            with small.raw(timeout=20 * paddock.SLOW) as newcomer:
                assert hello(newcomer, small) == 200
        assert [hello(one, small, keys["other"]) for one in others] == [200] * len(others)
        assert len(many) == 120
    admin.close()


def test_a_refused_body_is_not_awaited(daemon):
    """401 comes before the body, and the connection does not stay for the rest of it."""
    with daemon.raw() as connection:
        connection.sendall(DRIP)
        connection.settimeout(5 * paddock.SLOW)
        assert b" 401 " in connection.recv(4096)
        begun = time.monotonic()
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            while time.monotonic() - begun < 20 * paddock.SLOW:
                connection.send(b"x")
                connection.settimeout(0.2)
                try:
                    if not connection.recv(4096):
                        break
                except TimeoutError:
                    pass
        assert time.monotonic() - begun < 15 * paddock.SLOW


# ---- memory with one key --------------------------------------------------

FLOOD = "import os\nfor fd in (1, 2):\n    for _ in range(8): os.write(fd, b'\\x01' * (1 << 20))"


def flood(daemon, box, connections, begin, program=FLOOD):
    """Commands with 2 × 8 MiB of output, none of which is read until all have begun to answer like that."""
    body = json.dumps({"argv": ["python3", "-c", program]}).encode()
    ask = (f"POST {box.path}/exec HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {daemon.key}\r\n"
           f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n").encode() + body
    for one in connections:
        one.settimeout(60 * paddock.SLOW)
        one.sendall(ask)
    for one in connections:
        assert one.recv(len(begin), socket.MSG_PEEK) == begin


def test_output_is_escaped_as_it_leaves(daemon, make_box):
    """2 × 8 MiB of control characters are 100 MB of JSON, of which little is in memory at once."""
    box = make_box()
    before = rss_kb(daemon.api_pid())

    def run():
        with sockets(daemon, 3, receive=65536) as many:
            flood(daemon, box, many, b"HTTP/1.1 200")
            status, head, answer = read_response(many[0].makefile("rb"))
            assert status == 200
            return json.loads(answer)

    kept = []
    grown = peak_during(daemon, lambda: kept.append(run()))
    assert kept[0]["stdout"] == kept[0]["stderr"] == "\x01" * (8 << 20)
    assert not kept[0]["truncated"] and kept[0]["exit_code"] == 0 and kept[0]["encoding"] == "utf-8"
    assert grown < 110 * MB, f"{grown // MB} MB for three answers of 100 MB"
    goes_back(daemon, before)


def test_long_output_is_the_same_in_every_form(box):
    """Around the length from which on an answer is sent in pieces, and over the edges of the pieces."""
    for text in ("é\n\"" * 40_000, "x" * 65_537, "\U0001f600" * 30_000 + "\\"):
        out = box.exec(["cat"], stdin=text)
        assert out.text == text and out.err == b"" and out.encoding == "utf-8"
    raw = box.exec("head -c 200000 /dev/zero | tr '\\0' '\\377'; echo end >&2")
    assert raw.encoding == "base64" and raw.out == b"\xff" * 200_000 and raw.err == b"end\n"


def test_kept_output_has_a_budget_for_each_tenant(daemon, tenant, make_box):
    """Answers that a tenant does not read: beyond 64 MiB output is cut, and said to be; then no more commands are begun."""
    box, other = tenant.create(), make_box()
    before = rss_kb(daemon.api_pid())

    def run():
        with sockets(daemon, 5, receive=4096) as many:
            # One after another, so that each keeps 16 MiB until it is sent, and the one before the last 12 of them.
            for one in many[:3]:
                flood(tenant, box, [one], b"HTTP/1.1 200")
            flood(tenant, box, many[3:4], b"HTTP/1.1 200", FLOOD.replace("range(8)", "range(12 - 4 * fd)"))
            assert box.exec(["python3", "-c", FLOOD]).truncated, "there is room for 4 MiB"
            flood(tenant, box, many[4:], b"HTTP/1.1 200")
            refused = box.try_exec("true")
            assert (refused.status, refused.code()) == (429, "quota_exceeded"), refused
            assert other.check("echo goes on") == "goes on\n"

    grown = peak_during(daemon, run)
    assert grown < 110 * MB, f"{grown // MB} MB"
    until(lambda: box.try_exec("true").status == 200, "the budget is given back")
    goes_back(daemon, before)


def test_unfinished_bodies_have_a_budget_for_each_tenant(daemon):
    """60 JSON bodies of 3.9 MB without their end: past the budget they are refused."""
    head = (f"POST /v1/sandboxes HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {daemon.key}\r\n"
            "Content-Type: application/json\r\nContent-Length: 4000000\r\n\r\n").encode()
    before = rss_kb(daemon.api_pid())

    def run():
        with sockets(daemon, 60) as many:
            push_all(many, head + b" " * 3_900_000, 30)  # taken by the kernel, which the api reads by and by

            def refused():
                found, _, _ = select.select(many, [], [], 1)
                return found and read_responses(found[0], 1)[0]

            status, _, answer = until(refused, "a body is refused that would be too much", 30)
            assert status == 429 and json.loads(answer)["error"]["code"] == "quota_exceeded", answer

    grown = peak_during(daemon, run)
    assert grown < 120 * MB, f"{grown // MB} MB"
    client = daemon.client()
    until(lambda: client.post("/v1/sandboxes", {"no": 1}).status == 400, "the budget is given back")
    client.close()
    goes_back(daemon, before)


def test_a_pipeline_does_not_hold_up_others(daemon):
    """40 clients with thousands of requests waiting: another one is answered between them."""
    ask = f"GET /v1/capabilities HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {daemon.key}\r\n\r\n".encode()
    stop = []

    def read(many):
        while not stop:
            for one in many:
                with contextlib.suppress(BlockingIOError, OSError):
                    one.recv(1 << 20)
                push(one, ask * 500)

    with sockets(daemon, 40) as many:
        for one in many:
            push(one, ask * 3000)
        reader = Background(read, many)
        took = []
        for _ in range(5):
            begun = time.monotonic()
            with daemon.raw() as other:
                assert hello(other, daemon) == 200
            took.append(time.monotonic() - begun)
        stop.append(True)
        reader.result()
    assert min(took) < 0.5 * paddock.SLOW, took


def test_pings_without_reading_pongs(daemon, make_box):
    """A client that sends pings and reads nothing gets the last pong, not all of them."""
    from test_terminal import PING, PONG, Socket
    box = make_box()
    terminal = Socket(daemon, f"{box.path}/terminal")
    assert terminal.status == 101
    before = rss_kb(daemon.api_pid())
    ping = struct.pack(">BBI", 0x80 | PING, 0x80 | 120, 0) + b"p" * 120
    last = struct.pack(">BBI", 0x80 | PING, 0x80 | 4, 0) + b"last"

    def flood():
        push_all([terminal.connection], ping * 300_000, 10)

    grown = peak_during(daemon, flood)
    assert grown < 8 * MB, f"{grown // MB} MB for 38 MB of pings"
    # It is still a good session: what is read now ends with the pong to the last ping.
    terminal.connection.setblocking(True)
    terminal.connection.settimeout(20 * paddock.SLOW)
    feeder = Background(terminal.connection.sendall, last)
    until_last, seen = time.monotonic() + 20 * paddock.SLOW, b""
    mark = bytes([0x80 | PONG, 4]) + b"last"
    while mark not in seen and time.monotonic() < until_last:
        seen = seen[-64:] + terminal.connection.recv(1 << 20)
    assert mark in seen
    feeder.result()
    terminal.connection.close()
    assert rss_kb(daemon.api_pid()) < before + 24 * MB


# ---- small leaks ----------------------------------------------------------


@pytest.mark.slow
def test_a_tree_of_any_depth_is_removed(box, place):
    # From the bottom up, which is quick at any depth.
    box.python(f"import os\nos.chdir({place!r})\nos.mkdir('d')\nopen('d/f', 'w')\nfor i in range(30_000):\n"
               "    os.mkdir('n'); os.rename('d', 'n/d'); os.rename('n', 'd')")
    assert box.remove(f"{place}/d", "recursive=1").status == 204
    assert box.ls(place).json()["entries"] == []


def test_a_leased_file_is_busy(box, place):
    """EAGAIN is an answer about the file, not a fault of ours."""
    holder = ("import fcntl, os, sys, time\nfd = os.open('leased', os.O_RDWR | os.O_CREAT)\n"
              "fcntl.fcntl(fd, fcntl.F_SETSIG, 0)\nimport signal\nsignal.signal(signal.SIGIO, signal.SIG_IGN)\n"
              "fcntl.fcntl(fd, 1024, fcntl.F_WRLCK)\nopen('ready', 'w')\ntime.sleep(60)")
    started = box.client.post(f"{box.path}/processes", {"argv": ["python3", "-c", holder], "cwd": place})
    assert started.status == 201, started
    until(lambda: box.read(f"{place}/ready").status == 200, "the lease is taken")
    got = box.read(f"{place}/leased")
    assert got.status == 409, (got, box.exec("cat /proc/locks").text)
    assert got.code() == "conflict"
    box.client.delete(f"{box.path}/processes/{started.json()['pid']}")
