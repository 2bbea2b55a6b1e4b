"""HTTP as bytes on a socket: strictness, framing, limits, HTTP/2, TLS."""

import json
import shutil
import socket
import ssl
import struct
import subprocess
import time

import pytest

import paddock
from paddock import exchange, read_response, read_responses, statuses

FOLLOW = b"GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n"


def request(daemon, head, body=b"", target=b"/v1/sandboxes/none/exec", method=b"POST"):
    """A request with a good key and exactly these header lines."""
    return (method + b" " + target + b" HTTP/1.1\r\nAuthorization: Bearer " + daemon.key.encode() + b"\r\n"
            + head + b"\r\n" + body)


# ---- smuggling ------------------------------------------------------------
#
# Each input means one thing to some server and another thing to another. Ours must refuse
# it, answer once, and close: what follows on the connection must never be read as a request.

SMUGGLING = {
    "CL and TE": b"Host: x\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n|0\r\n\r\n",
    "TE and CL": b"Host: x\r\nTransfer-Encoding: chunked\r\nContent-Length: 4\r\n|0\r\n\r\n",
    "two CL that differ": b"Host: x\r\nContent-Length: 0\r\nContent-Length: 5\r\n|",
    "two CL that agree": b"Host: x\r\nContent-Length: 2\r\nContent-Length: 2\r\n|{}",
    "CL list": b"Host: x\r\nContent-Length: 2, 2\r\n|{}",
    "CL with plus": b"Host: x\r\nContent-Length: +2\r\n|{}",
    "CL negative": b"Host: x\r\nContent-Length: -1\r\n|",
    "CL hexadecimal": b"Host: x\r\nContent-Length: 0x2\r\n|{}",
    "CL empty": b"Host: x\r\nContent-Length: \r\n|",
    "CL with a space inside": b"Host: x\r\nContent-Length: 1 2\r\n|",
    "CL beyond 64 bits": b"Host: x\r\nContent-Length: 18446744073709551618\r\n|{}",
    "CL with a letter": b"Host: x\r\nContent-Length: 2a\r\n|{}",
    "space before the colon": b"Host: x\r\nContent-Length : 2\r\n|{}",
    "TE space before the colon": b"Host: x\r\nTransfer-Encoding : chunked\r\n|0\r\n\r\n",
    "TE xchunked": b"Host: x\r\nTransfer-Encoding: xchunked\r\n|0\r\n\r\n",
    "TE identity": b"Host: x\r\nTransfer-Encoding: identity\r\n|",
    "TE chunked twice": b"Host: x\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n|0\r\n\r\n",
    "TE chunked, identity": b"Host: x\r\nTransfer-Encoding: chunked, identity\r\n|0\r\n\r\n",
    "TE gzip, chunked": b"Host: x\r\nTransfer-Encoding: gzip, chunked\r\n|0\r\n\r\n",
    "TE with a vertical tab": b"Host: x\r\nTransfer-Encoding: \x0bchunked\r\n|0\r\n\r\n",
    "TE with a NUL": b"Host: x\r\nTransfer-Encoding: chunked\x00\r\n|0\r\n\r\n",
    "TE quoted": b'Host: x\r\nTransfer-Encoding: "chunked"\r\n|0\r\n\r\n',
    "TE folded": b"Host: x\r\nTransfer-Encoding:\r\n chunked\r\n|0\r\n\r\n",
    "folded line": b"Host: x\r\nX-A: b\r\n Content-Length: 2\r\n|",
    "leading space in the first header": b" Host: x\r\n|",
    "bare LF ends a line": b"Host: x\nContent-Length: 2\r\n|{}",
    "bare CR in a value": b"Host: x\r\nX-A: b\rContent-Length: 2\r\n|",
    "NUL in a value": b"Host: x\r\nX-A: b\x00c\r\n|",
    "empty header name": b"Host: x\r\n: b\r\n|",
    "space in a header name": b"Host: x\r\nX A: b\r\n|",
    "control character in a name": b"Host: x\r\nX\x01A: b\r\n|",
    "line without a colon": b"Host: x\r\nnonsense\r\n|",
    "no Host": b"Content-Length: 0\r\n|",
    "two Hosts": b"Host: x\r\nHost: y\r\n|",
    "Host with a path": b"Host: x/y\r\n|",
    "Host with a space": b"Host: x y\r\n|",
    "chunk size hexadecimal prefix": b"Host: x\r\nTransfer-Encoding: chunked\r\n|0x2\r\n{}\r\n0\r\n\r\n",
    "chunk size with plus": b"Host: x\r\nTransfer-Encoding: chunked\r\n|+2\r\n{}\r\n0\r\n\r\n",
    "chunk size negative": b"Host: x\r\nTransfer-Encoding: chunked\r\n|-2\r\n{}\r\n0\r\n\r\n",
    "chunk size empty": b"Host: x\r\nTransfer-Encoding: chunked\r\n|\r\n{}\r\n0\r\n\r\n",
    "chunk size beyond 64 bits": b"Host: x\r\nTransfer-Encoding: chunked\r\n|10000000000000002\r\n{}\r\n0\r\n\r\n",
    "chunk size with a space before": b"Host: x\r\nTransfer-Encoding: chunked\r\n| 2\r\n{}\r\n0\r\n\r\n",
    "chunk line ended by LF": b"Host: x\r\nTransfer-Encoding: chunked\r\n|2\n{}\r\n0\r\n\r\n",
    "chunk extension with a bare LF": b"Host: x\r\nTransfer-Encoding: chunked\r\n|2;a=\nb\r\n{}\r\n0\r\n\r\n",
    "chunk extension with a bare CR": b"Host: x\r\nTransfer-Encoding: chunked\r\n|2;a\rb\r\n{}\r\n0\r\n\r\n",
    "chunk data without its CRLF": b"Host: x\r\nTransfer-Encoding: chunked\r\n|2\r\n{}0\r\n\r\n",
    "chunk data longer than said": b"Host: x\r\nTransfer-Encoding: chunked\r\n|2\r\n{}xx\r\n0\r\n\r\n",
    "chunk data ended by LF": b"Host: x\r\nTransfer-Encoding: chunked\r\n|2\r\n{}\n0\r\n\r\n",
    "trailer with a bad name": b"Host: x\r\nTransfer-Encoding: chunked\r\n|2\r\n{}\r\n0\r\nX A: b\r\n\r\n",
    "endless chunk extension": b"Host: x\r\nTransfer-Encoding: chunked\r\n|2;" + b"a" * 70000 + b"\r\n{}\r\n0\r\n\r\n",
}


@pytest.mark.parametrize("text", SMUGGLING.values(), ids=SMUGGLING.keys())
def test_smuggling(daemon, text):
    head, _, body = text.partition(b"|")
    with daemon.raw() as connection:
        received, closed = exchange(connection, request(daemon, head, body) + FOLLOW)
    assert len(statuses(received)) == 1, received
    assert statuses(received)[0] in (400, 411, 413, 431, 501), received
    assert closed and b"smuggled" not in received.replace(FOLLOW, b"")


REQUEST_LINES = {
    "two spaces": (b"GET  /health HTTP/1.1", 400),
    "tab": (b"GET\t/health HTTP/1.1", 400),
    "leading space": (b" GET /health HTTP/1.1", 400),
    "trailing space": (b"GET /health HTTP/1.1 ", 400),
    "no version": (b"GET /health", 400),
    "lower-case version": (b"GET /health http/1.1", 400),
    "HTTP/1.2": (b"GET /health HTTP/1.2", 505),
    "HTTP/2.0": (b"GET /health HTTP/2.0", 505),
    "HTTP/0.9": (b"GET /health HTTP/0.9", 505),
    "version with a long minor": (b"GET /health HTTP/1.11", 400),
    "no slash": (b"GET health HTTP/1.1", 400),
    "control character": (b"GET /he\x01alth HTTP/1.1", 400),
    "raw UTF-8": ("GET /hälth HTTP/1.1".encode(), 400),
    "fragment": (b"GET /health#x HTTP/1.1", 400),
    "method with a bad character": (b"G(T /health HTTP/1.1", 400),
    "empty": (b" ", 400),
    "over-long target": (b"GET /" + b"a" * 60000 + b" HTTP/1.1", (414, 431)),
    "binary": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400),
}


@pytest.mark.parametrize("line, status", REQUEST_LINES.values(), ids=REQUEST_LINES.keys())
def test_request_line(daemon, line, status):
    with daemon.raw() as connection:
        received, closed = exchange(connection, line + b"\r\nHost: x\r\n\r\n" + FOLLOW)
    expected = status if isinstance(status, tuple) else (status, 400)
    assert len(statuses(received)) == 1 and statuses(received)[0] in expected, received
    assert closed


def test_a_refusal_is_an_error_object_too(daemon):
    with daemon.raw() as connection:
        connection.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n")
        status, headers, body = read_response(connection.makefile("rb"))
    assert status == 400 and headers["connection"] == "close"
    assert json.loads(body)["error"]["code"] == "bad_request"


def test_head_too_large(daemon):
    with daemon.raw() as connection:
        received, closed = exchange(connection, b"GET /health HTTP/1.1\r\nHost: x\r\nX-A: " + b"a" * 70000 + b"\r\n\r\n")
    assert statuses(received) == [431] and closed


def test_too_many_headers(daemon):
    lines = b"".join(b"X-%d: a\r\n" % i for i in range(1000))
    with daemon.raw() as connection:
        received, closed = exchange(connection, b"GET /health HTTP/1.1\r\nHost: x\r\n" + lines + b"\r\n")
    assert statuses(received) == [431] and closed


# ---- what is legal and must work ------------------------------------------


def test_pipelining(daemon):
    with daemon.raw() as connection:
        connection.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\nGET /nothing HTTP/1.1\r\nHost: x\r\n\r\n" * 50)
        answers = read_responses(connection, 100)
    assert [status for status, _, _ in answers] == [200, 404] * 50 or [s for s, _, _ in answers] == [200, 401] * 50


def test_pipelined_slow_and_fast_stay_in_order(daemon, box):
    def call(document):
        body = json.dumps(document).encode()
        return request(daemon, b"Host: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n" % len(body), body,
                       f"{box.path}/exec".encode())

    with daemon.raw() as connection:
        connection.sendall(call({"command": "sleep 0.4; echo one"}) + call({"command": "echo two"})
                           + b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
        one, two, three = read_responses(connection, 3)
    assert json.loads(one[2])["stdout"] == "one\n" and json.loads(two[2])["stdout"] == "two\n"
    assert json.loads(three[2])["status"] == "ok"


def test_a_byte_at_a_time(daemon):
    with daemon.raw() as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n":
            connection.sendall(bytes([byte]))
        assert read_responses(connection, 1)[0][0] == 200


def test_empty_lines_before_a_request(daemon):
    """RFC 9112, 2.2: a server should ignore at least one empty line there."""
    with daemon.raw() as connection:
        connection.sendall(b"\r\nGET /health HTTP/1.1\r\nHost: x\r\n\r\n")
        assert read_responses(connection, 1)[0][0] == 200


def test_optional_white_space(daemon):
    with daemon.raw() as connection:
        connection.sendall(b"GET /health HTTP/1.1\r\nHost:x\r\nX-A:\t b \t\r\nContent-Length: 0 \r\n\r\n")
        assert read_responses(connection, 1)[0][0] == 200


def test_chunked_request(daemon, box):
    pieces = b"".join(b"%x;name=value\r\n%s\r\n" % (1, bytes([byte])) for byte in b'{"argv":["echo","hi"]}')
    head = b"Host: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n"
    with daemon.raw() as connection:
        connection.sendall(request(daemon, head, pieces + b"0\r\nX-Trailer: t\r\n\r\n", f"{box.path}/exec".encode()) * 2)
        for status, _, body in read_responses(connection, 2):
            assert status == 200 and json.loads(body)["stdout"] == "hi\n"


def test_http_1_0(daemon):
    with daemon.raw() as connection:
        received, closed = exchange(connection, b"GET /health HTTP/1.0\r\n\r\n")
    assert statuses(received) == [200] and closed and b"chunked" not in received.lower()


def test_http_1_0_has_no_chunked_requests(daemon):
    with daemon.raw() as connection:
        received, closed = exchange(
            connection, b"POST /health HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + FOLLOW)
    assert statuses(received) == [400] and closed


def test_connection_close(daemon):
    with daemon.raw() as connection:
        received, closed = exchange(connection, b"GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n" + FOLLOW)
    assert statuses(received) == [200] and closed and b"connection: close" in received.lower()


def test_head_has_no_body(daemon):
    with daemon.raw() as connection:
        connection.sendall(b"HEAD /health HTTP/1.1\r\nHost: x\r\n\r\nGET /health HTTP/1.1\r\nHost: x\r\n\r\n")
        stream = connection.makefile("rb")
        status, headers, _ = read_response(stream, "HEAD")
        assert status == 200 and int(headers["content-length"]) > 0
        assert read_response(stream)[0] == 200


def test_expect_100_continue(daemon, box):
    data = b"x" * 100_000
    head = b"Host: x\r\nContent-Length: %d\r\nExpect: 100-continue\r\n" % len(data)
    with daemon.raw() as connection:
        connection.sendall(request(daemon, head, b"", box.file_path("/workspace/e").encode(), b"PUT"))
        stream = connection.makefile("rb")
        assert read_response(stream)[0] == 100
        connection.sendall(data)
        assert read_response(stream)[0] == 201


def test_expect_refused_before_the_body(daemon, box):
    """Nobody is asked for a gigabyte that will be refused."""
    for head, status in (
        (b"Authorization: Bearer pdk_00\r\nContent-Length: 1000000000\r\nExpect: 100-continue\r\n", 401),
        (b"Content-Length: 5\r\nExpect: something-else\r\n", 417),
    ):
        if status == 417:
            head = b"Authorization: Bearer " + daemon.key.encode() + b"\r\n" + head
        with daemon.raw() as connection:
            connection.sendall(b"PUT " + box.file_path("/workspace/e").encode() + b" HTTP/1.1\r\nHost: x\r\n" + head + b"\r\n")
            assert read_response(connection.makefile("rb"))[0] == status


def test_body_to_a_refused_request_is_not_read_as_the_next(daemon):
    with daemon.raw() as connection:
        body = FOLLOW * 3
        connection.sendall(b"POST /v1/nothing HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        received, _ = exchange(connection, b"", 1.0)
    assert len(statuses(received)) == 1 and statuses(received)[0] in (401, 404)


def test_absolute_form_and_asterisk(daemon):
    with daemon.raw() as connection:
        received, _ = exchange(connection, b"GET http://elsewhere/health HTTP/1.1\r\nHost: x\r\n\r\n", 1.0)
    assert statuses(received)[0] in (200, 400)
    with daemon.raw() as connection:
        received, _ = exchange(connection, b"OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n", 1.0)
    assert statuses(received)[0] in (200, 204, 400, 404, 405, 501)
    with daemon.raw() as connection:
        received, _ = exchange(connection, b"CONNECT elsewhere:443 HTTP/1.1\r\nHost: x\r\n\r\n", 1.0)
    assert statuses(received)[0] in (400, 404, 405, 501)


# ---- time and number ------------------------------------------------------


@pytest.mark.slow
def test_slow_head_is_cut_off(daemon):
    """A byte now and then does not hold a connection: the head as a whole has a deadline."""
    begun = time.monotonic()
    with daemon.raw(timeout=1) as connection:
        connection.sendall(b"GET /health HTTP/1.1\r\n")
        received = b""
        while time.monotonic() - begun < 20:
            try:
                connection.sendall(b"X")
                piece = connection.recv(4096)
                if not piece:
                    break
                received += piece
            except socket.timeout:
                continue
            except (BrokenPipeError, ConnectionResetError):
                break
        took = time.monotonic() - begun
    assert 5 < took < 19, f"cut off after {took:.1f} s"
    assert not statuses(received) or statuses(received) == [408] or statuses(received) == [400]


def test_many_idle_connections_do_not_block(daemon):
    idle = [daemon.raw() for _ in range(500)]
    try:
        for connection in idle[::2]:
            connection.sendall(b"GET /health HTTP/1.1\r\nHo")
        begun = time.monotonic()
        with daemon.raw() as connection:
            connection.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
            assert read_responses(connection, 1)[0][0] == 200
        assert time.monotonic() - begun < 15
    finally:
        for connection in idle:
            connection.close()


def test_half_closed_client_still_gets_its_answer(daemon):
    with daemon.raw() as connection:
        connection.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
        connection.shutdown(socket.SHUT_WR)
        received, closed = exchange(connection, b"", 3.0)
    assert statuses(received) == [200] and closed


# ---- HTTP/2 ---------------------------------------------------------------


def curl(*arguments, data=None, check=True):
    result = subprocess.run(["curl", "-sS", "--max-time", "60", *arguments], input=data, capture_output=True)
    assert not check or result.returncode == 0, result.stderr.decode()
    return result.stdout


H2 = "--http2-prior-knowledge"


def test_h2_health(daemon):
    out = curl(H2, "-w", "\n%{http_version} %{http_code}", f"{daemon.url}/health").decode()
    assert out.endswith("\n2 200") and json.loads(out.rsplit("\n", 1)[0])["status"] == "ok"


def test_h2_is_the_same_api(daemon):
    auth = ["-H", f"Authorization: Bearer {daemon.key}"]
    made = json.loads(curl(H2, *auth, "--json", "{}", f"{daemon.url}/v1/sandboxes"))
    daemon.saw(made["id"])
    path = f"{daemon.url}/v1/sandboxes/{made['id']}"
    data = bytes(range(256)) * 40_000  # 10 MB: beyond every window
    out = curl(H2, *auth, "-w", "%{http_code}", "-T", "-", f"{path}/files/workspace/x", data=data)
    assert out.endswith(b"201")
    assert curl(H2, *auth, f"{path}/files/workspace/x") == data
    answer = json.loads(curl(H2, *auth, "--json", '{"command":"wc -c < x"}', f"{path}/exec"))
    assert answer["stdout"] == f"{len(data)}\n"
    out = curl(H2, "-w", "\n%{http_code}", f"{path}").decode()
    assert out.endswith("\n401") and json.loads(out.rsplit("\n", 1)[0])["error"]["code"] == "unauthorized"
    assert curl(H2, *auth, "-w", "%{http_code}", "-X", "DELETE", path) == b"204"


def test_h2_multiplexing(daemon, box):
    """A slow exec does not hold up others of the same connection."""
    result = subprocess.run(
        ["nghttp", "-nv", "--no-dep", "-m", "20", f"{daemon.url}/health"], capture_output=True, timeout=30)
    assert result.returncode == 0 and result.stdout.count(b":status: 200") == 20, result.stdout[-2000:]


def test_h2_many_requests(daemon):
    result = subprocess.run(["h2load", "-n", "2000", "-c", "4", "-m", "50", f"{daemon.url}/health"],
                            capture_output=True, timeout=60)
    assert b"2000 succeeded, 0 failed" in result.stdout, result.stdout


PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def literal(name, value):
    """HPACK: a literal header without indexing, no Huffman; lengths below 127."""
    return b"\0" + bytes([len(name)]) + name + bytes([len(value)]) + value


def headers(path=b"/health", extra=b"", method=b"GET"):
    return (literal(b":method", method) + literal(b":scheme", b"http") + literal(b":authority", b"x")
            + literal(b":path", path) + extra)


def h2_ends(daemon, data, timeout=10):
    """Sends raw frames; true when the server ended the connection (GOAWAY or close)."""
    with daemon.raw() as connection:
        received, closed = exchange(connection, PREFACE + frame(4, 0, 0) + data, timeout)
    kinds, rest = [], received
    while len(rest) >= 9:
        kinds.append(rest[3])
        rest = rest[9 + int.from_bytes(rest[:3], "big"):]
    return closed or 7 in kinds


def h2_resets(daemon, block):
    """One request; true when the server refused the stream or answered it with 400."""
    with daemon.raw() as connection:
        received, closed = exchange(connection, PREFACE + frame(4, 0, 0) + frame(1, 5, 1, block), 1.0)
    rest = received
    while len(rest) >= 9:
        length, kind = int.from_bytes(rest[:3], "big"), rest[3]
        if kind in (3, 7):
            return True
        if kind == 1:
            return b"400" in rest[9:9 + length] or rest[9:10] == b"\x8c"  # static index of :status 400
        rest = rest[9 + length:]
    return closed


def test_h2_rapid_reset_is_bounded(daemon):
    """CVE-2023-44487: streams opened and reset at once must not cost without end."""
    block = headers()
    burst = b"".join(frame(1, 5, i, block) + frame(3, 0, i, b"\0\0\0\x08") for i in range(1, 40001, 2))
    assert h2_ends(daemon, burst), "20,000 resets were all taken"
    assert daemon.healthy()


def test_h2_ping_and_settings_floods_are_bounded(daemon):
    assert h2_ends(daemon, frame(4, 0, 0) * 50_000 + frame(6, 0, 0, b"12345678") * 50_000)
    assert daemon.healthy()


def test_h2_continuation_flood_is_bounded(daemon):
    """CVE-2024-28182: CONTINUATION frames without end."""
    data = frame(1, 1, 1, headers()) + frame(9, 0, 1, literal(b"x-a", b"b" * 100) * 100) * 2000
    assert h2_ends(daemon, data)
    assert daemon.healthy()


@pytest.mark.parametrize("data", [
    frame(0, 0, 1, b"data on an idle stream"), frame(1, 5, 2, headers()), frame(8, 0, 0, b"\0\0\0\0"),
    frame(4, 0, 0, b"\0\4\xff\xff\xff\xff"), frame(1, 5, 1, b"\xff\xff\xff\xff\xff\xff"),
    b"\xff\xff\xff\0\0\0\0\0\1" + b"x" * 70000, frame(5, 4, 1, b"\0\0\0\2" + headers()),
], ids=["DATA on idle", "even stream", "zero window", "huge window", "bad HPACK", "frame too large", "PUSH_PROMISE"])
def test_h2_violations_end_the_connection(daemon, data):
    assert h2_ends(daemon, data, 5)


@pytest.mark.parametrize("block", [
    headers(extra=literal(b"transfer-encoding", b"chunked")),
    headers(extra=literal(b"connection", b"close")),
    headers(extra=literal(b"X-Upper", b"a")),
    headers(extra=literal(b"x-a", b"b\r\nc: d")),
    headers(extra=literal(b":path", b"/other")),
    literal(b":method", b"GET") + literal(b":scheme", b"http") + literal(b":authority", b"x"),
    headers(path=b"health"),
    headers(path=b"/a b"),
    headers(extra=literal(b"content-length", b"5")),
], ids=["TE", "Connection", "upper case", "CRLF in a value", "path twice", "no path", "path without slash",
        "space in the path", "length without a body"])
def test_h2_bad_requests(daemon, block):
    assert h2_resets(daemon, block)


# ---- TLS ------------------------------------------------------------------


@pytest.fixture(scope="module")
def certificate(workdir):
    directory = workdir / "tls"
    directory.mkdir()
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
         "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1",
         "-keyout", directory / "key.pem", "-out", directory / "cert.pem"],
        check=True, capture_output=True)
    return directory


def test_tls(own_daemon, certificate):
    cert, key = certificate / "cert.pem", certificate / "key.pem"
    daemon = own_daemon(environment={"PADDOCK_TLS_CERT": cert, "PADDOCK_TLS_KEY": key}).start()
    assert daemon.scheme == "https"
    base = f"https://127.0.0.1:{daemon.port}"
    trust = ["--cacert", str(cert)]
    for version, option in ((b"2", "--http2"), (b"1.1", "--http1.1")):
        out = curl(*trust, option, "-w", "\n%{http_version} %{http_code}", f"{base}/health")
        assert out.endswith(b"\n" + version + b" 200")

    # A big file through records, both ways, over either protocol.
    auth = ["-H", f"Authorization: Bearer {daemon.key}"]
    box = json.loads(curl(*trust, *auth, "--json", "{}", f"{base}/v1/sandboxes"))["id"]
    daemon.saw(box)
    data = bytes(range(256)) * 20_000
    for option in ("--http2", "--http1.1"):
        target = f"{base}/v1/sandboxes/{box}/files/workspace/{option[2:]}"
        assert curl(*trust, *auth, option, "-w", "%{http_code}", "-T", "-", target, data=data).endswith(b"201")
        assert curl(*trust, *auth, option, target) == data
    assert curl(*trust, *auth, "-X", "DELETE", "-w", "%{http_code}", f"{base}/v1/sandboxes/{box}") == b"204"

    context = ssl.create_default_context(cafile=str(cert))
    context.set_alpn_protocols(["h2", "http/1.1"])
    with socket.create_connection(("127.0.0.1", daemon.port), 10) as plain:
        with context.wrap_socket(plain, server_hostname="localhost") as secure:
            assert secure.selected_alpn_protocol() == "h2"
            assert secure.version() in ("TLSv1.2", "TLSv1.3")

    old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    old.check_hostname, old.verify_mode = False, ssl.CERT_NONE
    old.set_ciphers("ALL:@SECLEVEL=0")
    old.minimum_version = ssl.TLSVersion.TLSv1
    old.maximum_version = ssl.TLSVersion.TLSv1_1
    with socket.create_connection(("127.0.0.1", daemon.port), 10) as plain, pytest.raises((ssl.SSLError, ConnectionError)):
        old.wrap_socket(plain)

    # Plain HTTP and garbage on the TLS port are refused without harm.
    for data in (b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n", b"\0" * 500, b"\x16\x03\x01\xff\xff" + b"x" * 3000):
        with socket.create_connection(("127.0.0.1", daemon.port), 10) as plain:
            received, _ = exchange(plain, data, 2)
            assert b"200 OK" not in received
    assert curl(*trust, "-w", "%{http_code}", "-o", "/dev/null", f"{base}/health") == b"200"
    # The command-line tools cannot trust this certificate: delete over curl was the last box.
    daemon.delete_all = lambda: None


def test_tls_key_must_fit_its_certificate(own_daemon, certificate, workdir):
    other = workdir / "other.pem"
    subprocess.run(["openssl", "genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-out", other],
                   check=True, capture_output=True)
    daemon = own_daemon(environment={"PADDOCK_TLS_CERT": certificate / "cert.pem", "PADDOCK_TLS_KEY": other})
    with pytest.raises(AssertionError, match="(?i)key|cert"):
        daemon.start(timeout=10)
    shutil.rmtree(daemon.data_dir, ignore_errors=True)
