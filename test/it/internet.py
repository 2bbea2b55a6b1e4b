"""An internet of the test's own.

A process in a network namespace of its own, joined to the host's by a veth pair, with a
name server, web servers (with certificates of an authority of its own), an echo, a server
that speaks first, and one that never answers. The host reaches it as it would the world:
by public addresses (a random /24 of 11.0.0.0/8 and a /64 of 2001:db8::/32) and, so that
it can be shown that boxes do not, by a private, a shared and a link-local one.

    net = Internet(directory).start()
    net.host(10)                    an address; any number from 2 to 120 is a server, net.host6 another
    net.set("a.test", net.host(10)) what the name server says; several addresses, or none
    net.dns                         for the setting gate.dns
    net.environment                 of a daemon whose boxes live in it and trust its authority
    net.seen()                      what has reached its servers, net.questions() its name server
    net.run("node", "server.js")    a program of the test's own in there, with pipes
    net.stop()

The web servers answer any request with a JSON document that says what they saw.
"""

import base64
import contextlib
import ctypes
import gzip
import json
import os
import random
import select
import signal
import socket
import ssl
import struct
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

CLONE_NEWNET = 0x40000000
NAMES = ("a.test", "b.test", "c.test", "evil.test", "site.test", "api.test", "*.a.test", "*.b.test")
WEB_PORTS, TLS_PORTS = (80, 8080), (443, 8443)
ECHO_PORT, BANNER_PORT, SILENT_PORT, SINK_PORT, PROXY_PORT, UDP_PORT, FIRST_PORT = 7, 2222, 9, 5001, 3128, 443, 4433
FLOOD_PORT, DEAF_PORT, RESET_PORT = 5002, 5003, 5004


def run(*command):
    subprocess.run(command, check=True, capture_output=True)


@contextlib.contextmanager
def internet(directory, hosts, kind=None, **options):
    """One that has its directory made, and these names from the tenth address on; it ends with the block."""
    directory.mkdir()
    net = (kind or Internet)(directory, **options).start()
    try:
        for number, name in enumerate(hosts, 10):
            net.set(name, net.host(number))
        yield net
    finally:
        net.stop()


class Internet:
    def __init__(self, directory, names=NAMES):
        self.directory = Path(directory)
        self.names = names  # in its servers' certificate
        self.process = None
        self.others = []

    # ---- the host's side

    def start(self):
        for attempt in range(20):
            self.a, self.b = random.randrange(1, 255), random.randrange(1, 255)
            self.six = f"2001:db8:{self.a:x}{self.b:02x}"
            self.link = f"pdk{self.a:02x}{self.b:02x}{os.getpid() % 10000}"
            if subprocess.run(["ip", "link", "show", self.link], capture_output=True).returncode:
                break
        self.make_certificates()
        self.process = subprocess.Popen(
            [sys.executable, __file__, str(self.directory)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            text=True, preexec_fn=self.unshare)
        try:
            self.join()
            self.say("start")
        except BaseException:
            self.stop()
            raise
        return self

    @staticmethod
    def unshare():
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)
        if ctypes.CDLL(None).unshare(CLONE_NEWNET):
            os._exit(1)

    def join(self):
        pid = str(self.process.pid)
        assert self.process.stdout.readline() == "up\n"
        run("ip", "link", "add", self.link, "type", "veth", "peer", "name", "world", "netns", pid)
        run("ip", "addr", "add", f"11.{self.a}.{self.b}.1/24", "dev", self.link)
        run("ip", "-6", "addr", "add", f"{self.six}::1/64", "dev", self.link, "nodad")
        run("ip", "link", "set", self.link, "up")
        inside = ["nsenter", "-t", pid, "-n", "ip"]
        run(*inside, "link", "set", "lo", "up")
        run(*inside, "link", "set", "world", "up")
        for network in (f"11.{self.a}.{self.b}.128/25", *(f"{address}/32" for address in self.inner())):
            run(*inside, "route", "add", "local", network, "dev", "world")
        run(*inside, "addr", "add", f"11.{self.a}.{self.b}.2/24", "dev", "world")
        run(*inside, "-6", "addr", "add", f"{self.six}::2/64", "dev", "world", "nodad")
        for address in self.inner():
            run("ip", "route", "add", f"{address}/32", "via", f"11.{self.a}.{self.b}.2", "dev", self.link)

    def inner(self):
        return [self.private, self.shared, self.link_local]

    def host(self, number):
        return f"11.{self.a}.{self.b}.{128 + number}"


    private = property(lambda self: f"10.{self.a}.{self.b}.10")
    shared = property(lambda self: f"100.64.{self.a}.{self.b}")
    link_local = property(lambda self: f"169.254.{self.a}.{self.b}")
    host6 = property(lambda self: f"{self.six}::2")
    gateway = property(lambda self: f"11.{self.a}.{self.b}.1")  # one of the host's own addresses
    dns = property(lambda self: f"{self.host(53)}:53")
    authority = property(lambda self: self.directory / "ca.pem")
    environment = property(lambda self: {"PADDOCK_GATE_DNS": self.dns, "PADDOCK_GATE_CA_FILE": self.authority})

    def make_certificates(self):
        def openssl(*arguments):
            run("openssl", *arguments)

        place = self.directory
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "30",
                "-subj", "/CN=A test's own authority", "-addext", "keyUsage=critical,keyCertSign,cRLSign",
                "-keyout", place / "ca.key", "-out", place / "ca.pem")
        openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", "/CN=test",
                "-keyout", place / "site.key", "-out", place / "site.csr")
        # The key's identifier, like the authority's keyUsage: Python 3.13 takes nothing else.
        (place / "names").write_text("authorityKeyIdentifier=keyid\nsubjectAltName=" + ",".join(f"DNS:{name}" for name in self.names) + "\n")
        openssl("x509", "-req", "-in", place / "site.csr", "-CA", place / "ca.pem", "-CAkey", place / "ca.key",
                "-CAcreateserial", "-days", "30", "-extfile", place / "names", "-out", place / "site.pem")

    def say(self, word, *arguments):
        self.process.stdin.write(json.dumps([word, *arguments]) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def lie(self, name, *lies):
        """Before each true answer about the name come false ones: [what is wrong with it, the address that it tells]"""
        self.say("lie", name, list(lies))

    def set(self, name, *addresses, delay=0):
        """Addresses; names before them are aliases (CNAME), one after the other."""
        self.say("set", name, list(addresses), delay)

    def seen(self):
        """What has reached the servers since the last time: [{address, port, ...}]"""
        return self.say("seen")

    def questions(self):
        """[[name, type]] that the name server was asked since the last time."""
        return [tuple(each) for each in self.say("questions")]

    def run(self, *command, **options):
        """A process among the servers, which ends with them."""
        self.others.append(subprocess.Popen(
            ["nsenter", "-t", str(self.process.pid), "-n", *map(str, command)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            preexec_fn=lambda: ctypes.CDLL(None).prctl(1, signal.SIGKILL), **options))
        return self.others[-1]

    def stop(self):
        for other in self.others:
            other.kill()
            other.wait()
            other.stdin.close()
            other.stdout.close()
        self.others = []
        if self.process:
            self.process.kill()
            self.process.wait()
            self.process.stdin.close()
            self.process.stdout.close()
            self.process = None
        subprocess.run(["ip", "link", "del", self.link], capture_output=True)


# ---- the world's side, in its own process ---------------------------------

lock, seen, questions, names, forgeries = threading.Lock(), [], [], {}, {}


def note(**what):
    with lock:
        seen.append(what)


class Web(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def answer(self):
        connection = self.connection
        size = int(self.headers.get("Content-Length", 0))
        body = self.rfile.read(size) if size else self.read_chunks()
        what = {
            "address": connection.getsockname()[0].removeprefix("::ffff:"), "port": connection.getsockname()[1],
            "host": self.headers.get("Host"), "method": self.command, "path": self.path,
            "sni": getattr(connection, "asked_for", None), "headers": dict(self.headers.items()),
            "body": body.decode(errors="replace"),
        }
        note(**what)
        if (self.headers.get("Upgrade") or "").lower() == "websocket":
            return self.upgrade()
        if self.path == "/page":
            return self.page()
        if self.path.startswith("/echo/"):
            return self.echo(self.path.removeprefix("/echo/"), self.headers.get(self.headers.get("X-Want"), ""))
        if self.path == "/moved":
            self.send_response(302)
            self.send_header("Location", self.headers.get("X-To", "/"))
            self.send_header("Content-Length", "0")
            self.end_headers()
            return None
        document = json.dumps(what).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(document)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(document)
        return None

    def page(self):
        """For browsers: what it says is said by its script."""
        document = b"<!doctype html><title>A page</title><p id=p>?</p><script>p.textContent = `run at ${location.host}`</script>"
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(document)))
        self.end_headers()
        self.wfile.write(document)

    def read_chunks(self):
        body = b""
        while self.headers.get("Transfer-Encoding") == "chunked" and (size := int(self.rfile.readline(), 16)):
            body += self.rfile.read(size)
            self.rfile.readline()
        if self.headers.get("Transfer-Encoding") == "chunked":
            self.rfile.readline()
        return body

    def echo(self, how, value):
        """What a header said comes back, in one of several ways to hide it."""
        text = f"before {value} after".encode()
        self.send_response(200)
        if how == "header":
            self.send_header("X-Echo", value)
        if how == "part" and (span := (self.headers.get("Range") or "").removeprefix("bytes=")):
            first, _, last = span.partition("-")
            text = text[int(first):int(last) + 1 if last else None]
        if how == "gzip":
            text = gzip.compress(text)
            self.send_header("Content-Encoding", "gzip")
        if how == "base64":
            text = b"before " + base64.b64encode(b"x" + value.encode() + b"yz") + b" after"
        if how == "chunks":
            self.send_header("Transfer-Encoding", "chunked")
            text = b"".join(b"1\r\n%c\r\n" % byte for byte in text) + b"0\r\n\r\n"
        elif how == "close":
            self.send_header("Connection", "close")
        else:
            self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def upgrade(self):
        """Not WebSocket itself: what comes after the switch is echoed."""
        self.wfile.write(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n")
        while (data := self.rfile.read1(65536)):
            self.wfile.write(data)
        self.close_connection = True

    do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = do_OPTIONS = do_PATCH = answer

    def log_message(self, *_):
        pass


class Server(ThreadingHTTPServer):
    address_family = socket.AF_INET6
    daemon_threads = True
    request_queue_size = 1024
    tls = None

    def finish_request(self, request, client_address):
        # The handshake belongs to the connection's thread, not to the accepting one.
        if self.tls:
            try:
                request = self.tls.wrap_socket(request, server_side=True)
            except (OSError, ssl.SSLError) as error:
                note(port=self.server_address[1], tls_error=str(error))
                return
        try:
            self.RequestHandlerClass(request, client_address, self)
        except OSError:
            pass

    def handle_error(self, request, client_address):
        pass


def serve_web(port, tls=None):
    server = Server(("::", port), Web)
    server.tls = tls
    threading.Thread(target=server.serve_forever, daemon=True).start()


def serve_tcp(port, work):
    listener = socket.create_server(("::", port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=1024)

    def each(connection):
        note(address=connection.getsockname()[0].removeprefix("::ffff:"), port=port)
        try:
            work(connection)
        except OSError:
            pass
        connection.close()

    def loop():
        while True:
            connection, _ = listener.accept()
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=each, args=(connection,), daemon=True).start()

    threading.Thread(target=loop, daemon=True).start()


def echo(connection):
    while (data := connection.recv(65536)):
        connection.sendall(data)


def banner(connection):
    connection.sendall(b"SSH-2.0-world\r\n")
    echo(connection)


def silent(connection):
    while connection.recv(65536):
        pass


def first(connection):
    """Tells what came first, and hangs up."""
    note(first=connection.recv(65536).hex())


def sink(connection):
    """Counts what comes and says how much it was."""
    total = 0
    while (data := connection.recv(1 << 20)):
        total += len(data)
    connection.sendall(str(total).encode())


def flood(connection):
    """Sends without an end, whether anybody reads or not."""
    while True:
        connection.sendall(b"x" * 65536)


def deaf(connection):
    """Reads nothing, and says nothing."""
    time.sleep(60)


def reset(connection):
    """Half an answer, and a reset."""
    connection.recv(65536)
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def proxy(connection):
    """CONNECT, and bytes."""
    head = b""
    while b"\r\n\r\n" not in head:
        head += connection.recv(1)
    host, port = head.split()[1].decode().rsplit(":", 1)
    note(proxied=f"{host}:{port}")
    with socket.create_connection((host.strip("[]"), int(port)), timeout=5) as other:
        connection.sendall(b"HTTP/1.1 200 fine\r\nX-Y: z\r\n\r\n")
        while True:
            for ready in select.select([connection, other], [], [])[0]:
                data = ready.recv(65536)
                if not data:
                    return
                (other if ready is connection else connection).sendall(data)


def serve_udp(port):
    server = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    server.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    server.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_RECVPKTINFO, 1)
    server.bind(("::", port))

    def loop():
        while True:
            message, control, _, sender = server.recvmsg(4096, 256)
            note(port=port, udp=len(message))
            server.sendmsg([message], [(level, kind, data[:16] + b"\0\0\0\0") for level, kind, data in control], 0, sender)

    threading.Thread(target=loop, daemon=True).start()


def dns_answer(message):
    at, labels = 12, []
    while message[at]:
        labels.append(message[at + 1:at + 1 + message[at]].decode("latin-1"))
        at += 1 + message[at]
    kind = struct.unpack(">H", message[at + 1:at + 3])[0]
    name = ".".join(labels).lower()
    with lock:
        questions.append([name, kind])
        known, delay = names.get(name, (None, 0))
    aliases = [a for a in known or [] if a[-1].isalpha() and ":" not in a]
    wanted = [a for a in known or [] if a not in aliases and (":" in a) == (kind == 28) and kind in (1, 28)]
    head = message[:2] + struct.pack(">HHHHH", 0x8180 if known is not None else 0x8183, 1, len(aliases) + len(wanted), 0, 0)
    answer, owner = head + message[12:at + 5], b"\xc0\x0c"
    for alias in aliases:
        raw = b"".join(bytes([len(label)]) + label.encode() for label in alias.split(".")) + b"\0"
        answer += owner + struct.pack(">HHIH", 5, 1, 5, len(raw)) + raw
        owner = raw
    for address in wanted:
        raw = socket.inet_pton(socket.AF_INET6 if kind == 28 else socket.AF_INET, address)
        answer += owner + struct.pack(">HHIH", kind, 1, 5, len(raw)) + raw
    return answer, delay


def forge(message, what, address):
    """An answer that is wrong in one thing, with an address of the forger's."""
    head, question = bytearray(message[:2] + b"\x81\x80\0\1\0\1\0\0\0\0"), bytearray(message[12:])
    if what == "id":
        head[1] ^= 1
    if what == "name":
        question[1] ^= 1
    if what == "type":
        question[-3] ^= 1 ^ 28
    if what == "question":
        head[2] &= 0x7f
    if what == "none":
        head[5], question = 0, b""
    record = b"\xc0\x0c\0\1\0\1\0\0\0\x3c\0\4" + socket.inet_aton(address)
    return bytes(head) + bytes(question) + record


def serve_dns():
    server = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    server.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    server.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_RECVPKTINFO, 1)
    server.bind(("::", 53))

    def loop():
        while True:
            message, control, _, sender = server.recvmsg(4096, 256)
            # The answer comes from the address that was asked.
            control = [(level, kind, data[:16] + b"\0\0\0\0") for level, kind, data in control]
            try:
                answer, delay = dns_answer(message)
            except (IndexError, struct.error):
                continue
            if len(answer) > 512:
                answer = answer[:2] + struct.pack(">HHHHH", 0x8380, 1, 0, 0, 0) + message[12:]
            with lock:
                lies = [lie for name, each in forgeries.items() if name.split(".")[0].encode() in message.lower() for lie in each]
            for what, address in lies:
                server.sendmsg([forge(message, what, address)], control, 0, sender)
            if delay:
                threading.Timer(delay, server.sendmsg, ([answer], control, 0, sender)).start()
            else:
                server.sendmsg([answer], control, 0, sender)

    threading.Thread(target=loop, daemon=True).start()


def dns_stream(connection):
    """Over TCP; whatever does not look like it comes back."""
    while data := connection.recv(65536):
        whole = len(data) > 14 and struct.unpack(">H", data[:2])[0] == len(data) - 2
        answer = dns_answer(data[2:])[0] if whole else b""
        connection.sendall(struct.pack(">H", len(answer)) + answer if whole else data)


def start(directory):
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(directory / "site.pem", directory / "site.key")

    def on_name(connection, name, _):
        connection.asked_for = name

    tls.sni_callback = on_name
    for port in WEB_PORTS:
        serve_web(port)
    for port in TLS_PORTS:
        serve_web(port, tls)
    serve_tcp(ECHO_PORT, echo)
    serve_tcp(53, dns_stream)
    serve_tcp(BANNER_PORT, banner)
    serve_tcp(SILENT_PORT, silent)
    serve_tcp(SINK_PORT, sink)
    serve_tcp(FIRST_PORT, first)
    serve_tcp(PROXY_PORT, proxy)
    serve_tcp(FLOOD_PORT, flood)
    serve_tcp(DEAF_PORT, deaf)
    serve_tcp(RESET_PORT, reset)
    serve_udp(UDP_PORT)
    serve_dns()


def main(directory):
    print("up", flush=True)
    for line in sys.stdin:
        word, *arguments = json.loads(line)
        result = None
        with lock:
            if word == "set":
                names[arguments[0]] = (arguments[1], arguments[2])
            elif word == "lie":
                forgeries[arguments[0]] = arguments[1]
            elif word == "seen":
                result, seen[:] = list(seen), []
            elif word == "questions":
                result, questions[:] = list(questions), []
        if word == "start":
            start(directory)
        print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
