"""Attempts to reach something, run inside a box and, as a control, outside of it.

The whole file is given to `python3 -c`; argv[1] is a JSON list of attempts, each
[name, argument...]. Prints a list of results: {"ok": what came back} or {"no": why not}.
"""

import json
import os
import socket
import ssl
import struct
import sys
import time

TIMEOUT = 8


def connect(address, port):
    connection = socket.create_connection((address, port), timeout=TIMEOUT)
    connection.settimeout(TIMEOUT)
    return connection


def read_all(connection):
    data = b""
    while (piece := connection.recv(65536)):
        data += piece
    return data


def exchange(connection, data, least=1):
    """What comes back, up to `least` bytes or the end."""
    connection.sendall(data)
    received = b""
    while len(received) < least:
        piece = connection.recv(65536)
        if not piece:
            break
        received += piece
    return received


def answered(data):
    if not data:
        raise ConnectionError("closed without an answer")
    return data.decode("latin-1")


def request(host, path="/", method="GET", extra=""):
    return f"{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{extra}\r\n".encode()


def web(data):
    """A 200 with the server's document; anything else is a refusal."""
    head, _, body = data.partition(b"\r\n\r\n")
    if not head.startswith(b"HTTP/1.1 200"):
        raise ConnectionError(f"answer: {head[:80]!r}")
    return json.loads(body)


# ---- attempts


def http(address, port, host, path="/", method="GET"):
    connection = connect(address, port)
    connection.sendall(request(host, path, method))
    return web(read_all(connection))


def raw(address, port, text, until_end=True):
    connection = connect(address, port)
    connection.sendall(text.encode("latin-1"))
    return answered(read_all(connection) if until_end else connection.recv(65536))


def echoed(address, port, text, timeout=TIMEOUT):
    """To a server that sends back what it gets: it got exactly this."""
    connection = connect(address, port)
    connection.settimeout(timeout)
    connection.sendall(text.encode("latin-1"))
    got = b""
    while len(got) < len(text) and (piece := connection.recv(65536)):
        got += piece
    if got.decode("latin-1") != text:
        raise ConnectionError(f"answer: {got[:40]!r}")
    return len(got)


def fast_open(address, port, host):
    """The request travels with the SYN, where the kernel does that."""
    connection = socket.socket()
    connection.sendto(request(host), 0x20000000, (address, port))
    connection.settimeout(TIMEOUT)
    return web(read_all(connection))


def half_closed(address, port, host):
    connection = connect(address, port)
    connection.sendall(f"GET /half HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
    connection.shutdown(socket.SHUT_WR)
    return web(read_all(connection))


def by_proxy(text):
    """A request line and headers to the proxy port, as they are."""
    connection = connect("127.0.0.1", 15004)
    connection.sendall(text.encode("utf-8"))
    data = read_all(connection)
    if not data.startswith(b"HTTP/1.1 200"):
        raise ConnectionError(f"answer: {data[:40]!r}")
    return data.decode("latin-1")


def socks_command(command, host, port, version=5):
    connection = connect("127.0.0.1", 15004)
    if version == 4:
        reply = exchange(connection, b"\4\1" + struct.pack(">H", port) + socket.inet_aton(host) + b"\0", 8)
        if reply[1:2] != b"\x5a":
            raise ConnectionError(f"reply {reply.hex()}")
        return "granted"
    assert exchange(connection, b"\5\1\0", 2) == b"\5\0"
    reply = exchange(connection, b"\5" + bytes([command]) + b"\0\1" + socket.inet_aton(host) + struct.pack(">H", port), 10)
    if reply[1:2] != b"\0":
        raise ConnectionError(f"reply {reply.hex()}")
    return "granted"


def named_hello(address, port, *names):
    """A ClientHello with these names, one or several, in one server_name extension. What the server answers first."""
    data = bytearray(hello("x.test"))
    at = data.index(b"\0\0\0\x0b\0\x09\0\0\x06x.test")
    listed = b"".join(b"\0" + struct.pack(">H", len(name)) + name.encode("latin-1") for name in names)
    new = b"\0\0" + struct.pack(">HH", len(listed) + 2, len(listed)) + listed
    more, data[at:at + 15] = len(new) - 15, new
    where = 9 + 2 + 32
    where += 1 + data[where]
    where += 2 + struct.unpack(">H", data[where:where + 2])[0]
    where += 1 + data[where]
    for place, size in ((3, 2), (6, 3), (where, 2)):
        value = int.from_bytes(data[place:place + size], "big") + more
        data[place:place + size] = value.to_bytes(size, "big")
    return answered(exchange(connect(address, port), bytes(data)))[:1].encode("latin-1").hex()


def context():
    it = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    it.check_hostname, it.verify_mode = False, ssl.CERT_NONE
    return it


def tls_over(connection, sni, host):
    with context().wrap_socket(connection, server_hostname=sni) as it:
        it.sendall(request(host))
        data = b""
        try:
            while (piece := it.recv(65536)):
                data += piece
        except ssl.SSLEOFError:
            pass
        return web(data)


def tls(address, port, sni, host=None):
    return tls_over(connect(address, port), sni, host or sni or address)


def verified(name, port, authority):
    """As a careful program would: by name, with the certificate checked."""
    it = ssl.create_default_context(cadata=authority)
    it.verify_flags |= ssl.VERIFY_X509_STRICT  # the default from Python 3.13 on
    with it.wrap_socket(connect(name, port), server_hostname=name) as connection:
        connection.sendall(request(name))
        return web(read_all(connection))


def hello(sni, newest=ssl.TLSVersion.MAXIMUM_SUPPORTED):
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    how = context()
    how.maximum_version = newest
    it = how.wrap_bio(incoming, outgoing, server_hostname=sni)
    try:
        it.do_handshake()
    except ssl.SSLWantReadError:
        pass
    return outgoing.read()


def ech_hello(sni, payload):
    """A ClientHello with the extension that hides the true name. With TLS 1.2, so that the certificate comes in clear."""
    data = bytearray(hello(sni, ssl.TLSVersion.TLSv1_2)) + b"\xfe\x0d" + struct.pack(">H", len(payload)) + payload
    at = 9 + 2 + 32
    at += 1 + data[at]
    at += 2 + struct.unpack(">H", data[at:at + 2])[0]
    at += 1 + data[at]
    for place, size in ((3, 2), (6, 3), (at, 2)):
        value = int.from_bytes(data[place:place + size], "big") + 4 + len(payload)
        data[place:place + size] = value.to_bytes(size, "big")
    return bytes(data)


def ech_answer(connection, sni, payload=b"\0evil.test"):
    """What the other side says to it: its hello, its certificate, and that it is done."""
    answer = b""
    connection.sendall(ech_hello(sni, payload))
    while b"\x0e\0\0\0" not in answer[-9:]:
        piece = connection.recv(65536)
        if not piece:
            break
        answer += piece
    return answered(answer).encode("latin-1")


def ech_send(address, port, sni, payload):
    """To somebody who hangs up."""
    connection = connect(address, port)
    connection.sendall(ech_hello(sni, payload.encode()))
    return read_all(connection).decode("latin-1")


def ech(address, port, sni, by_proxy=False):
    """Reached is the server that shows its own certificate: it could open the hello."""
    connection = tunnel(address, port) if by_proxy else connect(address, port)
    if b"A test's own authority" not in ech_answer(connection, sni):
        raise ConnectionError("somebody else's certificate")
    return "reached"


def ech_issuer(address, port, sni, authority, payload):
    """Whether this authority (PEM) is in the chain that is shown."""
    return ssl.PEM_cert_to_DER_cert(authority) in ech_answer(connect(address, port), sni, payload.encode())


def split_hello(address, port, sni):
    """A ClientHello in records of forty bytes, each a packet of its own."""
    data = hello(sni)[5:]
    connection = connect(address, port)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for at in range(0, len(data), 40):
        piece = data[at:at + 40]
        connection.sendall(b"\x16\x03\x01" + struct.pack(">H", len(piece)) + piece)
    return answered(connection.recv(1)).encode("latin-1").hex()


def tcp(address, port, text="hello", timeout=TIMEOUT):
    connection = connect(address, port)
    connection.settimeout(timeout)
    return answered(exchange(connection, text.encode(), len(text)))


def banner(address, port):
    begin = time.monotonic()
    connection = connect(address, port)
    text = answered(connection.recv(100))
    took = time.monotonic() - begin
    connection.sendall(b"more\n")
    return {"text": text, "echo": answered(connection.recv(100)), "took": took}


def banner_then_tls(address, port, sni):
    connection = connect(address, port)
    text = answered(connection.recv(100))
    return text + answered(exchange(connection, hello(sni)))[:1]


def udp(address, port):
    connection = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM)
    connection.settimeout(2)
    connection.connect((address, port))
    connection.send(b"hello")
    return connection.recv(100).decode()


def ping(address, kind):
    connection = socket.socket(socket.AF_INET, getattr(socket, kind), socket.IPPROTO_ICMP)
    connection.settimeout(2)
    body = struct.pack(">BBHHH", 8, 0, 0, os.getpid() & 0xFFFF, 1)
    total = sum(struct.unpack(">4H", body))
    total = (total & 0xFFFF) + (total >> 16)
    connection.sendto(body[:2] + struct.pack(">H", ~total & 0xFFFF) + body[4:], (address, 0))
    return len(connection.recv(100))


def names(name):
    return sorted({each[4][0] for each in socket.getaddrinfo(name, 80, type=socket.SOCK_STREAM)})


def dns(server, name, kind=1, over_tcp=False):
    """[rcode, number of answers]"""
    question = b"\x07\x07\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00"
    for label in name.split("."):
        question += bytes([len(label)]) + label.encode("latin-1")
    question += b"\0" + struct.pack(">HH", kind, 1)
    if over_tcp:
        connection = connect(server, 53)
        message = exchange(connection, struct.pack(">H", len(question)) + question, 14)[2:]
    else:
        connection = socket.socket(socket.AF_INET6 if ":" in server else socket.AF_INET, socket.SOCK_DGRAM)
        connection.settimeout(TIMEOUT)
        connection.sendto(question, (server, 53))
        message, sender = connection.recvfrom(4096)
        assert sender[0] == server, sender
    if message[2] < 128:
        raise ConnectionError("not an answer")
    return [message[3] & 15, struct.unpack(">H", message[6:8])[0]]


def tunnel(host, port, extra=""):
    """A connection by the box's proxy."""
    connection = connect("127.0.0.1", 15004)
    connection.sendall(f"CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}:{port}\r\n{extra}\r\n".encode("latin-1"))
    head = b""
    while b"\r\n\r\n" not in head:
        piece = connection.recv(1)
        if not piece:
            break
        head += piece
    if not head.startswith(b"HTTP/1.1 200"):
        raise ConnectionError(f"answer: {head[:40]!r}")
    return connection


def proxied(host, port, sni=None, inner=None, extra=""):
    """CONNECT, then TLS (with a name of its own) or plain HTTP."""
    connection = tunnel(host, port, extra)
    if sni is not None:
        return tls_over(connection, sni or None, inner or host)
    connection.sendall(request(inner or host))
    return web(read_all(connection))


def socks(host, port, inner=None, kind=3):
    connection = connect("127.0.0.1", 15004)
    assert exchange(connection, b"\5\1\0", 2) == b"\5\0"
    name = host.encode("latin-1")
    target = bytes([len(name)]) + name if kind == 3 else socket.inet_aton(host)
    reply = exchange(connection, b"\5\1\0" + bytes([kind]) + target + struct.pack(">H", port), 10)
    if reply[1:2] != b"\0":
        raise ConnectionError(f"reply {reply[1:2].hex()}")
    connection.sendall(request(inner or host))
    return web(read_all(connection))


def through(url, **variables):
    """A program that heeds HTTP_PROXY."""
    import urllib.request

    opener = urllib.request.build_opener(
        urllib.request.ProxyHandler(variables), urllib.request.HTTPSHandler(context=context()))
    return json.loads(opener.open(url, timeout=TIMEOUT).read())


def attempt(name, *arguments):
    try:
        return {"ok": globals()[name](*arguments)}
    except Exception as error:  # noqa: BLE001 - whatever it is, it did not get through
        return {"no": f"{type(error).__name__}: {error}"}


if __name__ == "__main__":
    print(json.dumps([attempt(*each) for each in json.loads(sys.argv[1])]))
