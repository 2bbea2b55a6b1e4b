"""What proves who asks does not reach a sandbox: every way to a server in one, with every spelling of a credential."""

import base64
import json
import re
import socket
import subprocess
import urllib.parse

import pytest

import paddock

DOMAIN = "boxes.test"
PORTS = (8000, 8080)  # Agent-Sandbox's /sandbox/NAME/ leads to the second

# Answers with the head that it got, byte for byte; a WebSocket is agreed to, and gets it as its first message.
SERVER = r"""
import base64, hashlib, json, socketserver, sys, threading
class H(socketserver.BaseRequestHandler):
    def handle(self):
        head = b""
        while b"\r\n\r\n" not in head:
            piece = self.request.recv(65536)
            if not piece: return
            head += piece
        body = json.dumps(head.decode("latin-1")).encode()
        nonce = [l.split(b": ")[1] for l in head.split(b"\r\n") if l.lower().startswith(b"sec-websocket-key")]
        if nonce:
            accept = base64.b64encode(hashlib.sha1(nonce[0] + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest())
            self.request.sendall(b"HTTP/1.1 101 x\r\nUpgrade: websocket\r\nConnection: upgrade\r\nSec-WebSocket-Accept: " + accept
                                 + b"\r\n\r\n\x82\x7e" + len(body).to_bytes(2, "big") + body + b"\x88\x00")
        else:
            self.request.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
class S(socketserver.ThreadingTCPServer):
    allow_reuse_address = daemon_threads = True
for port in map(int, sys.argv[1:]):
    threading.Thread(target=S(("127.0.0.1", port), H).serve_forever).start()
"""


@pytest.fixture(scope="module")
def site(daemon_factory):
    """A daemon with a domain, and a listener for one sandbox."""
    it = daemon_factory("proxy-secrets", environment={"PADDOCK_PORTS_DOMAIN": DOMAIN})
    file = it.base / "paddock.yaml"
    file.write_text("listeners:\n  - {address: '127.0.0.1:0', dialect: aio, sandbox: app}\n")
    it.arguments += ["--config", str(file)]
    it.start()
    yield it
    it.finish()


@pytest.fixture(scope="module")
def app(site):
    client = site.client()
    box = client.create(name="app")
    box.put("/tmp/server.py", SERVER.encode())
    made = client.post(box.path + "/processes", {"argv": ["/usr/bin/python3", "/tmp/server.py", *map(str, PORTS)]})
    assert made.status == 201, made

    def listen():
        return {p["port"] for p in client.get(box.path + "/ports").json()["ports"]} >= set(PORTS)

    paddock.until(listen, "the server listens")
    yield box
    client.close()


@pytest.fixture(scope="module")
def listed(site):
    done = subprocess.run([paddock.BIN / "paddock", "doctor", "--dialects", "--json"], capture_output=True, text=True, timeout=60, check=True,
                          env=paddock.clean_environment(PADDOCK_URL=site.url, PADDOCK_API_KEY=site.key))
    return json.loads(done.stdout)


class Way:
    """A way to a server: where, below which path, with which headers; and how its dialect takes a key."""

    def __init__(self, route, path, place=None, headers=(), query=(), names=("Authorization", "X-API-Key"), proof=()):
        self.route, self.path, self.place = route, path, place
        self.headers, self.query, self.names = dict(headers), query, names
        self.proof = dict(proof)  # lets in without a key


def ways(site, app, listed):
    token = app.client.get(app.path + "/ports").json()["traffic_token"]
    traffic = {"E2b-Traffic-Access-Token": token}
    link = app.client.post(app.path + "/previews", {"port": 8000}).json()["url"].split("paddock_ticket=")[1]
    aio = listed["listeners"][1]
    ticket = app.client.post(f"/sandbox/{app.id}/tickets", {})
    assert ticket.status == 200, ticket
    ticket = ticket.json()["ticket"]
    found = [
        Way("(host)", "/", headers={"Host": f"8000-{app.id}.{DOMAIN}"}, proof=traffic),
        Way("(header)", "/", headers={"E2b-Sandbox-Id": app.id, "E2b-Sandbox-Port": "8000"}, proof=traffic),
        Way("/v1/sandboxes/{id}/ports/{port}/{path}", f"/v1/sandboxes/{app.id}/ports/8000/"),
        Way("/sandbox/{name}/{path}", "/sandbox/app/x", query=["api_key"]),
        Way("/sandboxes/router/{id}/{port}/{path}", f"/sandboxes/router/{app.id}/8000/", query=["api_key"]),
    ]
    for base, place, prefix in ("/sandbox/app", None, "/sandbox/{name}"), ("", (aio["address"], aio["port"]), ""):
        for word in "proxy", "absproxy":
            found += [Way(f"{prefix}/{word}/{{port}}", f"{base}/{word}/8000", place, query=["api_key"],
                          names=("X-AIO-API-Key", "Authorization", "X-API-Key")),
                      Way(f"{prefix}/{word}/{{port}}/{{path}}", f"{base}/{word}/8000/x", place, query=["api_key"],
                          names=("X-AIO-API-Key", "Authorization", "X-API-Key"))]
    found.append(Way("/v1/previews/{id}/{port}/{ticket}/{path}", f"/v1/previews/{app.id}/8000/{link}/"))
    return found, ticket, token


def ask(site, way, headers=(), query="", websocket=False):
    """(status, the head that the server got as text, or the answer's body)."""
    host, port = way.place or (site.host, site.port)
    lines = {"Host": f"{host}:{port}", **way.headers}
    if websocket:
        lines |= {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
                  "Sec-WebSocket-Key": base64.b64encode(b"0123456789abcdef").decode()}
    else:
        lines |= {"Connection": "close"}
    text = "".join(f"{k}: {v}\r\n" for k, v in [*lines.items(), *headers])
    with socket.create_connection((host, port), timeout=30) as s:
        s.sendall(f"GET {way.path}{'?' + query if query else ''} HTTP/1.1\r\n{text}\r\n".encode())
        data = b""
        while piece := s.recv(65536):
            data += piece
            if websocket and (b"\x88\x00" in data or not data.startswith(b"HTTP/1.1 101")):
                break
    head, body = data.split(b"\r\n\r\n", 1)
    status = int(head.split()[1])
    if status == 101:
        body = body[4:4 + int.from_bytes(body[2:4], "big")]
    return status, json.loads(body) if status in (200, 101) else body.decode("latin-1")


def escaped(text, every=True):
    return "".join(f"%{ord(c):02X}" if every or not c.isalnum() else c for c in text)


def seen(head, secret):
    """Whether the secret is in there, however it is coded."""
    texts = [head]
    for _ in range(4):
        texts.append(urllib.parse.unquote_plus(texts[-1]))
    for word in re.findall(r"[A-Za-z0-9+/_-]{12,}", head):
        word = word.replace("+", "-").replace("/", "_")[:len(word) - (len(word) % 4 == 1)]
        texts.append(base64.urlsafe_b64decode(word + "=" * (-len(word) % 4)).decode("latin-1"))
    return any(secret.lower() in text.lower() for text in texts)


def spellings(way, key):
    """(headers, query) with a key in it; the first ones let in by themselves."""
    for name in way.names:
        for value in ([f"Bearer {key}", f"bearer  {key}"] if name == "Authorization" else [key]):
            yield [(name, value)], ""
    for name in way.query:
        for word in (name, name.replace("_", "%5F"), name.replace("_", "%5f"), escaped(name), escaped(name[:3]) + name[3:]):
            for value in (key, escaped(key), key.replace("pdk_", "e2b_")):
                yield [], f"{word}={value}"
                yield [], f"own=1&{word}={value}&other=2"
    own = [(way.names[0], f"Bearer {key}" if way.names[0] == "Authorization" else key)]
    digits = key.split("_")[1]
    for word in ("api_key", "API_KEY", "apikey", "x", "token", "a%5Fb"):
        for value in (key, escaped(key), escaped(escaped(key)), escaped(escaped(escaped(key))), f"e2b_{digits}", "%25zz" + escaped(key), f"Bearer+{key}"):
            yield own, f"{word}={value}"
    yield own, key
    yield own, f"own=1&{escaped(key)}&other=2"
    for name, value in (("Authorization", "Basic " + base64.b64encode(f"user:{key}".encode()).decode()), ("Authorization", f"Token {key}"),
                        ("X-Original-URI", f"/x?api_key={key}"), ("X-Forwarded-Uri", f"/x?api_key={escaped(key)}"), ("X-Auth", key),
                        ("Sec-WebSocket-Protocol", f"bearer, {key}"), ("Referer", f"http://h/?api_key={key}"), ("Cookie", f"own=1; k={key}; two=2"),
                        ("Cookie", f"k={escaped(key)}"), ("X-E2B-Key", f"e2b_{digits}"), ("X-Twice", escaped(escaped(key))), ("X-Broken", "%zz" + escaped(key)),
                        ("X-Auth", "basic " + base64.b64encode(f"user:{key}".encode()).decode())):
        rest = [] if name == way.names[0] else own
        if not rest and not way.proof:
            rest = [("X-API-Key", key)]
        yield [*rest, *way.proof.items(), (name, value)], "own=1"


def test_every_way_is_walked(site, app, listed):
    """A route that leads to a port is one of those below: found from the tables."""
    found, _, _ = ways(site, app, listed)
    walked = {way.route for way in found}
    leads = re.compile(r"/(abs)?proxy/\{port\}|/ports/\{port\}/\{path\}|/router/\{id\}/\{port\}|/previews/.*\{path\}|/sandbox/\{name\}/\{path\}$")
    served = {route.split()[1] for at in listed["listeners"] for dialect in at["dialects"] for route in dialect["routes"]}
    known = {route for route in served if leads.search(route)}
    assert len(known) >= 8
    assert known <= walked, known - walked


def test_no_credential_reaches_the_server(site, app, listed):
    found, ticket, token = ways(site, app, listed)
    digits, n = site.key.split("_")[1], 0
    for way in found:
        for headers, query in spellings(way, site.key):
            status, head = ask(site, way, headers, query)
            assert status == 200, (way.route, headers, query, head)
            assert not seen(head, digits), (way.route, headers, query, head)
            n += 1
            if "own=1" in query:
                assert "own=1" in head.split("\r\n")[0], (way.route, query, head)
            if "other=2" in query:
                assert "own=1&other=2" in head.split("\r\n")[0], (way.route, query, head)
    assert n > 500


def test_none_reaches_it_by_a_websocket(site, app, listed):
    found, _, _ = ways(site, app, listed)
    digits = site.key.split("_")[1]
    for way in found:
        for headers, query in [*spellings(way, site.key)][:8]:
            status, head = ask(site, way, headers, query, websocket=True)
            assert status == 101, (way.route, headers, query, head)
            assert "upgrade: websocket" in head.lower() and not seen(head, digits), (way.route, headers, query, head)


def test_tickets_and_tokens(site, app, listed):
    found, ticket, token = ways(site, app, listed)
    for way in found:
        if "absproxy" in way.route or "/proxy/" in way.route:
            for word in "ticket", "%74icket", escaped("ticket"):
                status, head = ask(site, way, [], f"a=1&{word}={ticket}&b=2")
                assert status == 200 and "?a=1&b=2 " in head and not seen(head, ticket), (way.route, word, head)
        if way.proof:
            for name in "E2b-Traffic-Access-Token", "X-Paddock-Traffic-Token":
                status, head = ask(site, way, [(name, token)], "a=1")
                assert status == 200 and not seen(head, token), (way.route, head)


def test_what_is_the_servers_own_passes(site, app, listed):
    """The control: such a request of an application arrives as it was sent."""
    found, _, _ = ways(site, app, listed)
    way = found[0]
    query = "api_key=mine&token=pdk_short&k=%70&a+b=%25zz&empty=&&flag&x=e2b_" + "g" * 40
    status, head = ask(site, way, [*way.proof.items(), ("Authorization", "Bearer of-the-app"), ("X-API-Key", "of-the-app"), ("Cookie", "a=1; b=pdk_2")],
                       query)
    assert status == 200 and f"?{query} HTTP/1.1" in head
    assert "Bearer of-the-app" in head and "X-API-Key: of-the-app" in head and "a=1; b=pdk_2" in head
