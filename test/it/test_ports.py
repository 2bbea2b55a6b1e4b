"""Ports of boxes: the proxy by path, host and header, WebSockets, tunnels, links."""

import base64
import contextlib
import hashlib
import http.client
import json
import os
import shutil
import socket
import ssl
import struct
import subprocess
import threading

import pytest

import paddock
from test_terminal import BINARY, CLOSE, TEXT, Socket

DOMAIN = "boxes.test"

# One server for many questions; HTTP/1.1 and chunked by hand.
SERVER = r"""
import http.server, json, socketserver, sys, time, hashlib, threading
class H(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def log_message(self, *a): pass
    def body(self):
        if self.headers.get("transfer-encoding") == "chunked":
            out = b""
            while True:
                n = int(self.rfile.readline().split(b";")[0], 16)
                data = self.rfile.read(n); self.rfile.readline()
                if n == 0: return out
                out += data
        return self.rfile.read(int(self.headers.get("content-length") or 0))
    def send(self, data, kind="application/json", status=200, **headers):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        for k, v in headers.items(): self.send_header(k.replace("_", "-"), v)
        self.end_headers()
        if self.command != "HEAD": self.wfile.write(data)
    def chunk(self, data):
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data)); self.wfile.flush()
    def any(self):
        what = self.path.split("?")[0]
        if what == "/echo":
            body = self.body()
            self.send(json.dumps({"method": self.command, "path": self.path, "n": len(body), "sum": hashlib.sha256(body).hexdigest(),
                                  "headers": [[k.lower(), v] for k, v in self.headers.items()]}).encode())
        elif what == "/spelling":
            self.send(json.dumps([k for k in self.headers]).encode(), X_aNSWER="1", ETag="2")
        elif what == "/chunked":
            self.send_response(200); self.send_header("Transfer-Encoding", "chunked"); self.send_header("Trailer", "X-T"); self.end_headers()
            for i in range(5): self.chunk(b"piece%d" % i)
            self.wfile.write(b"0\r\nX-T: 1\r\n\r\n")
        elif what == "/close":
            self.send_response(200); self.send_header("Connection", "close"); self.end_headers()
            self.wfile.write(b"to the end"); self.close_connection = True
        elif what == "/sse":
            self.send_response(200); self.send_header("Content-Type", "text/event-stream"); self.end_headers()
            self.wfile.write(b"data: one\n\n"); self.wfile.flush()
            open("/tmp/sse", "w").close()
            try:
                while True:
                    line = go.get(); self.wfile.write(line); self.wfile.flush()
            except OSError: pass
            self.close_connection = True
        elif what == "/next":
            go.put(self.body()); self.send(b"{}")
        elif what in ("/big", "/huge"):
            pieces = 256 if what == "/big" else 2048
            self.send_response(200); self.send_header("Content-Length", str(pieces << 16)); self.end_headers()
            piece = bytes(range(256)) * 256
            try:
                for i in range(pieces): self.wfile.write(piece); open("/tmp/big", "w").write(str(i))
            except OSError: open("/tmp/big-broke", "w").close()
        elif what == "/interim":
            for i in range(3): self.wfile.write(b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n")
            self.send(b"after")
        elif what == "/cookies":
            self.send(b"x", "text/html", Set_Cookie="mine=1; Path=/", Clear_Site_Data='"*"', Alt_Svc="h3=\":1\"")
        elif what == "/wide-cookie":
            self.send(b"x", "text/html", Set_Cookie="wide=1; Domain=boxes.test")
        elif what == "/move":
            self.send(b"", status=302, Location="/there?x=1")
        elif what == "/304":
            self.send_response(304); self.end_headers()
        else:
            self.send(b"hello from " + what.encode(), "text/plain")
    do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = do_OPTIONS = do_HEAD = any
import queue
go = queue.Queue()
class S(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True
    request_queue_size = 256
    import socket as s
    address_family = s.AF_INET6 if len(sys.argv) > 2 else s.AF_INET
S((sys.argv[2] if len(sys.argv) > 2 else "127.0.0.1", int(sys.argv[1])), H).serve_forever()
"""


def background(box, argv):
    response = box.client.post(box.path + "/processes", {"argv": argv})
    assert response.status == 201, response
    return response.json()


def ports(box):
    response = box.client.get(box.path + "/ports")
    assert response.status == 200, response
    return response.json()


def listening(box, port):
    return paddock.until(lambda: [p for p in ports(box)["ports"] if p["port"] == port], f"port {port} listens", 30)[0]


def serve(box, port=8000, *more):
    box.put("/tmp/server.py", SERVER.encode())
    background(box, ["/usr/bin/python3", "/tmp/server.py", str(port), *more])
    return listening(box, port)


@pytest.fixture(scope="module")
def site(daemon_factory):
    """A daemon with a domain."""
    it = daemon_factory("ports", environment={"PADDOCK_PORTS_DOMAIN": DOMAIN}).start()
    yield it
    it.finish()


@pytest.fixture(scope="module")
def app(site):
    """A box with the server of many answers, private."""
    client = site.client()
    box = client.create()
    serve(box)
    yield box
    box.delete()
    client.close()


def ask(daemon, path, method="GET", body=None, headers=None, **options):
    connection = http.client.HTTPConnection(daemon.host, daemon.port, timeout=30)
    try:
        connection.request(method, path, body=body, headers=headers or {}, **options)
        response = connection.getresponse()
        return paddock.Response(response.status, response.headers, response.read())
    finally:
        connection.close()


def token(box):
    return {"E2b-Traffic-Access-Token": ports(box)["traffic_token"]}


def host(box, port=8000):
    return {"Host": f"{port}-{box.id}.{DOMAIN}"}


# ---- what listens -----------------------------------------------------------


def test_listeners(app):
    found = listening(app, 8000)
    assert found["address"] == "127.0.0.1" and "python" in found["process"] and found["pid"] > 1
    assert found["url"].startswith(f"http://8000-{app.id}.{DOMAIN}:")


def test_listeners_of_root_and_v6(make_box):
    box = make_box()
    box.put("/tmp/server.py", SERVER.encode())
    response = box.client.post(box.path + "/processes", {"argv": ["/usr/bin/python3", "/tmp/server.py", "81", "::1"], "user": "root"})
    assert response.status == 201, response
    found = listening(box, 81)
    assert found["address"] == "::1" and found["pid"] > 1
    # Only the v6 loopback: the proxy finds it.
    assert box.client.get(box.path + "/ports/81/x").body == b"hello from /x"


# ---- by path ------------------------------------------------------------------


def test_path(app):
    response = app.client.get(app.path + "/ports/8000/echo?a=1&b=%20")
    assert response.status == 200, response
    seen = response.json()
    headers = dict(map(tuple, seen["headers"]))
    assert seen["path"] == "/echo?a=1&b=%20" and seen["method"] == "GET"
    assert headers["host"] == "localhost:8000"
    assert headers["x-forwarded-for"] == "127.0.0.1" and headers["x-forwarded-proto"] == "http"
    assert headers["x-forwarded-prefix"] == app.path + "/ports/8000"
    assert "authorization" not in headers and "cookie" not in headers
    # On our origin a page of a box is nobody.
    assert response.headers["content-security-policy"].startswith("sandbox") and "same-origin" not in response.headers["content-security-policy"]
    assert response.headers["referrer-policy"] == "no-referrer"


def test_path_of_the_name(site):
    client = site.client()
    box = client.create(name="with-a-name")
    serve(box)
    assert client.get("/v1/sandboxes/with-a-name/ports/8000/x").body == b"hello from /x"
    assert ask(site, "/v1/sandboxes/with-a-name/ports/8000/x").status == 401
    box.delete()
    client.close()


def test_path_needs_its_slash(app):
    response = app.client.get(app.path + "/ports/8000?x=1")
    assert (response.status, response.headers["location"]) == (308, app.path + "/ports/8000/?x=1")


def test_path_redirect_stays_below(app):
    response = app.client.get(app.path + "/ports/8000/move")
    assert (response.status, response.headers["location"]) == (302, app.path + "/ports/8000/there?x=1")


def test_path_has_no_cookies(app):
    response = app.client.request("GET", app.path + "/ports/8000/cookies", headers={"Cookie": "session=1"})
    assert "set-cookie" not in response.headers and "clear-site-data" not in response.headers and "alt-svc" not in response.headers
    seen = app.client.request("GET", app.path + "/ports/8000/echo", headers={"Cookie": "session=1", "Referer": "http://x/secret"}).json()
    assert not {"cookie", "referer"} & {k for k, _ in seen["headers"]}


def test_path_is_private(site, app):
    path = app.path + "/ports/8000/echo"
    assert ask(site, path).status == 401
    assert ask(site, path, headers={"X-API-Key": "pdk_" + "0" * 40}).status == 401
    assert ask(site, "/v1/sandboxes/" + "a" * 20 + "/ports/8000/").status == 401
    assert app.client.get("/v1/sandboxes/" + "a" * 20 + "/ports/8000/").status == 404
    other = app.client.post("/v1/keys", {"tenant": "stranger", "role": "user", "create_tenant": True}).json()["key"]
    assert ask(site, path, headers={"X-API-Key": other}).status == 404
    assert ask(site, path, headers=token(app)).status == 200


def test_nothing_listens(app):
    response = app.client.get(app.path + "/ports/9/")
    assert response.status == 502 and response.code() == "unavailable", response
    assert "not open" in response.json()["error"]["message"]


MOST_AT_ONCE = 512  # RELAY_MAX of src/init/relay.h


def test_connections_that_ended_do_not_count(app):
    """More of each end than there may be at once: refused, done, and left by the client."""
    key = app.client.headers()["Authorization"]
    head = f"GET {app.path}/ports/%s HTTP/1.1\r\nHost: x\r\nAuthorization: {key}\r\n\r\n"
    daemon = app.client.daemon
    for _ in range(MOST_AT_ONCE // 2):
        with contextlib.closing(socket.create_connection((daemon.host, daemon.port), timeout=30 * paddock.SLOW)) as left:
            left.sendall((head % "8000/echo").encode())
    for _ in range(MOST_AT_ONCE // 2 + 8):
        assert app.client.get(app.path + "/ports/9/").status == 502
    for _ in range(8):
        assert app.client.get(app.path + "/ports/8000/echo").status == 200


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
def test_methods(app, method):
    body = b"x" * 100 if method in ("POST", "PUT", "PATCH") else None
    response = app.client.request(method, app.path + "/ports/8000/echo", body)
    assert response.status == 200
    if method == "HEAD":
        assert response.body == b"" and int(response.headers["content-length"]) > 0
    else:
        assert (response.json()["method"], response.json()["n"]) == (method, len(body or b""))


# ---- bodies ---------------------------------------------------------------------


def test_names_keep_their_spelling(site, app):
    """Over HTTP/1, in both directions; programs are not supposed to care and do."""
    long = "X-" + "Aa" * 60
    connection = http.client.HTTPConnection(site.host, site.port, timeout=30)
    connection.request("GET", "/spelling", headers={**host(app), **token(app), "X-CuStOm": "1", "SOAPAction": "2", "Cookie": "a=b", long: "3", "x-low": "4"})
    answer = connection.getresponse()
    names = json.loads(answer.read())
    assert {"X-CuStOm", "SOAPAction", "Cookie", "x-low"} <= set(names), names
    assert [n for n in names if n.lower() == long.lower()] == [long[:63] + long[63:].lower()]
    assert {"X-aNSWER", "ETag"} <= {name for name, _ in answer.getheaders()}
    connection.close()


def test_upload_by_length(app):
    data = os.urandom(1 << 20) * 8
    seen = app.client.request("POST", app.path + "/ports/8000/echo", data).json()
    assert (seen["n"], seen["sum"]) == (len(data), hashlib.sha256(data).hexdigest())


def test_upload_in_chunks(app):
    pieces = [os.urandom(n) for n in (1, 70000, 3, 300000)]
    seen = app.client.request("POST", app.path + "/ports/8000/echo", iter(pieces), encode_chunked=True,
                              headers={"Transfer-Encoding": "chunked"}).json()
    assert seen["sum"] == hashlib.sha256(b"".join(pieces)).hexdigest()


def test_answers_in_all_framings(app):
    assert app.client.get(app.path + "/ports/8000/chunked").body == b"piece0piece1piece2piece3piece4"
    assert app.client.get(app.path + "/ports/8000/close").body == b"to the end"
    assert app.client.get(app.path + "/ports/8000/interim").body == b"after"
    not_modified = app.client.get(app.path + "/ports/8000/304")
    assert (not_modified.status, not_modified.body) == (304, b"")


def test_events_are_not_held_back(site, app):
    reader = http.client.HTTPConnection(site.host, site.port, timeout=30)
    reader.request("GET", "/sse", headers={**host(app), **token(app)})
    stream = reader.getresponse()
    assert stream.readline() == b"data: one\n" and stream.readline() == b"\n"
    for word in (b"two", b"three"):
        assert ask(site, "/next", "POST", b"data: " + word + b"\n\n", {**host(app), **token(app)}).status == 200
        assert stream.readline() == b"data: " + word + b"\n" and stream.readline() == b"\n"
    reader.close()


def test_back_pressure(site, app):
    """A client that does not read stops the server in the box, and nothing piles up here."""
    api = site.api_pid()
    with socket.create_connection((site.host, site.port)) as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        head = "".join(f"{k}: {v}\r\n" for k, v in {**host(app), **token(app)}.items())
        s.sendall(f"GET /huge HTTP/1.1\r\n{head}\r\n".encode())
        assert s.recv(12) == b"HTTP/1.1 200"
        taken = paddock.until_still(lambda: app.exec(["cat", "/tmp/big"]).text, "the server is stopped")
        # (The kernel's buffers of the three sockets on the way may take up to 16 MiB.)
        assert int(taken) < 512, "32 of 128 MiB were taken"
        assert paddock.rss_kb(api) < 150 * 1024
    paddock.until(lambda: app.exec(["test", "-e", "/tmp/big-broke"]).exit_code == 0, "the server sees the client go", 20)


def test_bulk_is_whole(app):
    data = app.client.get(app.path + "/ports/8000/big").body
    assert len(data) == 16 << 20 and hashlib.sha256(data).digest() == hashlib.sha256(bytes(range(256)) * (1 << 16)).digest()


def test_many_at_once(site, app):
    headers, failed = {**host(app), **token(app)}, []

    def one(n):
        try:
            for i in range(5):
                assert ask(site, f"/{n}-{i}", headers=headers).body == f"hello from /{n}-{i}".encode()
        except Exception as error:
            failed.append(error)
    threads = [threading.Thread(target=one, args=(n,)) for n in range(24)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failed, failed[0]


def test_no_answer_in_time(own_daemon):
    daemon = own_daemon(environment={"PADDOCK_PORTS_ANSWER_SECONDS": "1"}).start()
    client = daemon.client()
    box = client.create()
    box.put("/tmp/mute.py", b"import socket; s = socket.create_server(('127.0.0.1', 8000)); kept = [s.accept() for _ in range(9)]")
    background(box, ["/usr/bin/python3", "/tmp/mute.py"])
    listening(box, 8000)
    assert client.get(box.path + "/ports/8000/").code() == "timeout"
    response = ask(daemon, "/", headers={"E2b-Sandbox-Id": box.id, "E2b-Sandbox-Port": "8000", **token(box)})
    assert response.status == 504 and response.json()["code"] == 504
    client.close()


# ---- by host and header -----------------------------------------------------------


def test_host(site, app):
    own = {**host(app), **token(app), "Cookie": "a=1; paddock_preview=x; b=2", "Authorization": "Bearer of-the-app", "X-API-Key": "of-the-app"}
    response = ask(site, "/echo", headers=own)
    headers = dict(map(tuple, response.json()["headers"]))
    assert headers["host"] == own["Host"] and headers["x-forwarded-host"] == own["Host"]
    assert headers["cookie"] == "a=1; b=2" and headers["authorization"] == "Bearer of-the-app" and headers["x-api-key"] == "of-the-app"
    assert "e2b-traffic-access-token" not in headers
    assert "content-security-policy" not in response.headers
    cookies = ask(site, "/cookies", headers=own).headers
    assert cookies["set-cookie"] == "mine=1; Path=/" and cookies["clear-site-data"] is None
    assert ask(site, "/wide-cookie", headers=own).headers["set-cookie"] is None


def test_our_keys_do_not_reach_the_box(site, app):
    for name, value in (("Authorization", f"Bearer {app.client.key}"), ("X-API-Key", app.client.key)):
        response = ask(site, "/echo", headers={**host(app), name: value})
        assert response.status == 200 and app.client.key not in response.body.decode()


def test_host_is_private(site, app):
    response = ask(site, "/echo", headers=host(app))
    assert response.status == 502 and response.json()["message"] == "The sandbox was not found"
    assert ask(site, "/echo", headers={**host(app), "E2b-Traffic-Access-Token": "0" * 64}).status == 502
    page = ask(site, "/echo", headers={**host(app), "Accept": "text/html"})
    assert page.status == 502 and page.headers["content-type"].startswith("text/html")


def test_unknown_box(site):
    for headers in ({"Host": f"8000-{'x' * 20}.{DOMAIN}"}, {"E2b-Sandbox-Id": "x" * 20, "E2b-Sandbox-Port": "8000"}):
        response = ask(site, "/", headers=headers)
        assert response.status == 502
        assert response.json() == {"sandboxId": "x" * 20, "message": "The sandbox was not found", "code": 502}


def test_other_hosts_are_ours(site):
    for name in (DOMAIN, f"api.{DOMAIN}", f"8000-x.{DOMAIN}.evil", "8000.x", f"0-x.{DOMAIN}", f"8000-X_y.{DOMAIN}"):
        assert ask(site, "/healthz", headers={"Host": name}).status == 200, name


def test_e2b_headers(site, app):
    names = {"E2b-Sandbox-Id": app.id, "E2b-Sandbox-Port": "8000"}
    assert ask(site, "/echo", headers=names).status == 502
    seen = ask(site, "/echo", headers={**names, **token(app)})
    assert seen.status == 200 and not any(k.startswith("e2b-") for k, _ in seen.json()["headers"])
    closed = ask(site, "/", headers={**names, **token(app), "E2b-Sandbox-Port": "9"})
    assert closed.status == 502
    assert closed.json() == {"sandboxId": app.id, "message": "The sandbox is running but port is not open", "port": 9, "code": 502}


def test_public_and_masked(site):
    client = site.client()
    box = client.create(ports_public=True, mask_host="inner.example:${PORT}")
    serve(box)
    response = ask(site, "/echo", headers=host(box))
    assert dict(map(tuple, response.json()["headers"]))["host"] == "inner.example:8000"
    assert ask(site, box.path + "/ports/8000/x").status == 200
    assert client.send_json("PATCH", box.path, {"ports_public": False}).json()["ports_public"] is False
    assert ask(site, "/echo", headers=host(box)).status == 502
    assert client.try_create(mask_host="a\r\nb").status == 400
    box.delete()
    client.close()


def test_paused(site):
    client = site.client()
    box = client.create(auto_resume=True)
    serve(box)
    keys = token(box)
    assert client.post(box.path + "/pause", {}).status == 200
    assert ask(site, "/x", headers={**host(box), **keys}).body == b"hello from /x"
    assert client.send_json("PATCH", box.path, {"auto_resume": False}).status == 200
    assert client.post(box.path + "/pause", {}).status == 200
    refused = ask(site, "/x", headers={**host(box), **keys})
    assert refused.status == 502 and "not running" in refused.json()["message"]
    box.delete()
    client.close()


# ---- TLS ----------------------------------------------------------------------------


def certificate(place, name, subject):
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                    "-subj", "/CN=test", "-addext", f"subjectAltName=DNS:{subject}", "-keyout", place / f"{name}.key", "-out", place / f"{name}.pem"],
                   check=True, capture_output=True)
    return place / f"{name}.pem", place / f"{name}.key"


def test_tls_and_http2(own_daemon, tmp_path):
    """Each name has its certificate; HTTP/2 to us, HTTP/1.1 to the box."""
    own, own_key = certificate(tmp_path, "own", "api.test")
    wild, wild_key = certificate(tmp_path, "wild", f"*.{DOMAIN}")
    daemon = own_daemon(environment={"PADDOCK_PORTS_DOMAIN": DOMAIN, "PADDOCK_TLS_CERT": own, "PADDOCK_TLS_KEY": own_key,
                                     "PADDOCK_PORTS_CERT": wild, "PADDOCK_PORTS_KEY": wild_key}).start()

    def curl(name, path, ca, *more):
        result = subprocess.run(["curl", "-sS", "--cacert", ca, "--resolve", f"{name}:{daemon.port}:127.0.0.1", "-H", f"X-API-Key: {daemon.key}",
                                 "-w", "\n%{http_code} %{http_version}", *more, f"https://{name}:{daemon.port}{path}"],
                                capture_output=True, timeout=30)
        body, _, end = result.stdout.rpartition(b"\n")
        return result.returncode, end.decode(), body

    code, end, body = curl("api.test", "/v1/sandboxes", own, "-X", "POST", "-H", "Content-Type: application/json", "-d", "{}")
    assert (code, end) == (0, "201 2"), (code, end, body)
    box = json.loads(body)["id"]
    daemon.saw(box)
    assert curl("api.test", f"/v1/sandboxes/{box}/files/tmp/server.py", own, "-X", "PUT", "--data-binary", SERVER)[1] == "201 2"
    start = json.dumps({"argv": ["/usr/bin/python3", "/tmp/server.py", "8000"]})
    assert curl("api.test", f"/v1/sandboxes/{box}/processes", own, "-H", "Content-Type: application/json", "-d", start)[1] == "201 2"
    name = f"8000-{box}.{DOMAIN}"
    paddock.until(lambda: curl(name, "/x", wild)[1] == "200 2", "the server answers", 20)
    upload = os.urandom(1 << 20)
    (tmp_path / "upload").write_bytes(upload)
    code, end, body = curl(name, "/echo", wild, "-H", "Content-Type: x/y", "--data-binary", f"@{tmp_path / 'upload'}")
    seen = json.loads(body)
    headers = dict(map(tuple, seen["headers"]))
    assert end == "200 2" and seen["sum"] == hashlib.sha256(upload).hexdigest()
    assert headers["x-forwarded-proto"] == "https" and headers["host"] == f"{name}:{daemon.port}" and headers["x-forwarded-for"] == "127.0.0.1"
    assert curl(name, "/chunked", wild)[2] == b"piece0piece1piece2piece3piece4"
    assert curl(name, "/chunked", wild, "--http1.1")[1:] == ("200 1.1", b"piece0piece1piece2piece3piece4")
    # Neither certificate stands for the other names.
    assert curl(name, "/x", own)[0] == 60 and curl("api.test", "/healthz", wild)[0] == 60
    assert curl("api.test", f"/v1/sandboxes/{box}", own, "-X", "DELETE")[1] == "204 2"
    # What is left is looked for without TLS.
    daemon.stop()
    daemon.environment = {}


# ---- signed links -----------------------------------------------------------------


def preview(box, port=8000, **more):
    response = box.client.post(box.path + "/previews", {"port": port, **more})
    assert response.status == 201, response
    return response.json()["url"]


def test_preview_of_a_host(site, app):
    url = preview(app, expires_seconds=60)
    path = url.split("/", 3)[3]
    assert url.startswith(f"http://8000-{app.id}.{DOMAIN}:{site.port}/?paddock_ticket=")
    first = ask(site, f"/{path}&x=1", headers=host(app))
    assert (first.status, first.headers["location"]) == (302, "/?x=1")
    cookie = first.headers["set-cookie"]
    assert "HttpOnly" in cookie and "SameSite=Lax" in cookie and "Domain" not in cookie
    value = cookie.split(";")[0]
    seen = ask(site, "/echo", headers={**host(app), "Cookie": value})
    assert seen.status == 200 and value.split("=")[1] not in seen.body.decode()
    # Of this port of this box alone, and only as it was signed.
    assert ask(site, "/echo", headers={**host(app, 8001), "Cookie": value}).status == 502
    assert ask(site, "/echo", headers={**host(app), "Cookie": value[:-1] + ("0" if value[-1] != "0" else "1")}).status == 502
    ticket = value.split("=")[1]
    later = f"{int(ticket.split('-')[0]) + 1000}-{ticket.split('-')[1]}"
    assert ask(site, "/echo", headers={**host(app), "Cookie": f"paddock_preview={later}"}).status == 502
    assert ask(site, f"/?paddock_ticket={later}", headers=host(app)).status == 502
    # One that a page of another box has set for the whole domain does not hide it, and none of them reaches the box.
    seen = ask(site, "/echo", headers={**host(app), "Cookie": f"paddock_preview=tossed; {value}; own=1"})
    assert seen.status == 200 and "own=1" in seen.body.decode() and "paddock_preview" not in seen.body.decode()


def test_preview_cookie_is_for_its_own_pages(site, app):
    """All boxes are one site to a browser: the page of another one must not use the cookie."""
    cookie = {**host(app), "Cookie": f"paddock_preview={preview(app).split('=')[1]}"}
    mine = f"http://8000-{app.id}.{DOMAIN}"
    allowed = [{"Origin": mine}, {"Sec-Fetch-Site": "same-origin"}, {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}]
    refused = [{"Origin": f"http://8000-{'x' * 20}.{DOMAIN}"}, {"Origin": "null"}, {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "no-cors"},
               {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "websocket", "Origin": "http://evil"}]
    for more in allowed:
        assert ask(site, "/echo", headers={**cookie, **more}).status == 200, more
    for more in refused:
        assert ask(site, "/echo", headers={**cookie, **more}).status == 502, more
    assert ask(site, "/echo", "POST", b"x", {**cookie, "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}).status == 502


def test_preview_expires(site, app):
    value = preview(app, expires_seconds=3).split("=")[1]
    headers = {**host(app), "Cookie": f"paddock_preview={value}"}
    assert ask(site, "/echo", headers=headers).status == 200
    paddock.until(lambda: ask(site, "/echo", headers=headers).status == 403, "the link expires", 20)
    late = ask(site, f"/?paddock_ticket={value}", headers=host(app))
    assert late.status == 403 and "not any more" in late.json()["message"]


@pytest.fixture
def nameless(own_daemon, tmp_path):
    """A daemon without a domain, which on loopback must be said."""
    (tmp_path / "c.yaml").write_text("ports: {domain: ''}\n")
    return own_daemon(arguments=["--config", str(tmp_path / "c.yaml")]).start()


def test_preview_of_a_path(nameless):
    daemon, box = nameless, nameless.client().create()
    serve(box)
    url = preview(box)
    path = "/" + url.split("/", 3)[3]
    assert path.startswith(f"/v1/previews/{box.id}/8000/")
    response = ask(daemon, path + "echo")
    assert response.status == 200 and path.split("/")[5] not in response.body.decode()
    assert response.headers["content-security-policy"].startswith("sandbox")
    assert ask(daemon, path + "move").headers["location"] == path + "there?x=1"
    assert ask(daemon, path.replace("/8000/", "/8001/")).status == 401
    assert box.client.post(box.path + "/previews", {"port": 0}).status == 400
    assert box.client.post(box.path + "/previews", {"port": 80, "expires_seconds": 10 ** 7}).status == 400


# ---- servers that mean ill -----------------------------------------------------------

HOSTILE = r"""
import socket, sys, threading
answers = {
  "both": b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
  "two-lengths": b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!",
  "bare-lf": b"HTTP/1.1 200 OK\nContent-Length: 2\n\nhi",
  "folded": b"HTTP/1.1 200 OK\r\nX: a\r\n b\r\nContent-Length: 0\r\n\r\n",
  "control": b"HTTP/1.1 200 OK\r\nX: a\x01b\r\nContent-Length: 0\r\n\r\n",
  "not-http": b"SSH-2.0-x\r\n\r\n",
  "no-version": b"HTTP/2 200\r\n\r\n",
  "status": b"HTTP/1.1 99 Low\r\n\r\n",
  "switch": b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n",
  "interim": b"HTTP/1.1 100 Continue\r\n\r\n" * 40 + b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
  "long": b"HTTP/1.1 200 OK\r\nX: " + b"a" * 70000,
  "many": b"HTTP/1.1 200 OK\r\n" + b"X: a\r\n" * 1000 + b"\r\n",
  "nothing": b"",
  "half": b"HTTP/1.1 200 OK\r\nContent-",
}
cut = {
  "short": b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nonly this",
  "bad-chunk": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhelloXX",
  "no-last-chunk": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
}
extra = {
  "pipelined": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison",
  "head-lies": b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison",
  "hop": b"HTTP/1.1 200 OK\r\nConnection: x-secret, close\r\nX-Secret: 1\r\nKeep-Alive: timeout=5\r\nProxy-Authenticate: Basic\r\nContent-Length: 2\r\n\r\nok",
}
everything = {**answers, **cut, **extra}
def one(c):
    data = b""
    while b"\r\n\r\n" not in data:
        more = c.recv(65536)
        if not more: return c.close()
        data += more
    c.sendall(everything.get(data.split(b" ")[1].decode().strip("/"), b"HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n"))
    c.shutdown(1); c.recv(1); c.close()
if sys.argv[1] == "names":
    print(" ".join(answers)); print(" ".join(cut))
else:
    s = socket.create_server(("127.0.0.1", int(sys.argv[1])))
    while True: threading.Thread(target=one, args=(s.accept()[0],), daemon=True).start()
"""


@pytest.fixture(scope="module")
def hostile(site):
    client = site.client()
    box = client.create(ports_public=True)
    box.put("/tmp/hostile.py", HOSTILE.encode())
    background(box, ["/usr/bin/python3", "/tmp/hostile.py", "8000"])
    listening(box, 8000)
    yield box
    box.delete()
    client.close()


def test_hostile_heads(site, hostile):
    names = hostile.check(["/usr/bin/python3", "/tmp/hostile.py", "names"]).splitlines()[0].split()
    assert len(names) > 10
    for name in names:
        response = ask(site, "/" + name, headers=host(hostile))
        assert response.status == 502 and response.json()["code"] == 502, (name, response)


def test_hostile_bodies_are_seen_to_be_broken(site, hostile):
    for name in hostile.check(["/usr/bin/python3", "/tmp/hostile.py", "names"]).splitlines()[1].split():
        with pytest.raises((http.client.IncompleteRead, ConnectionResetError, http.client.HTTPException)):
            ask(site, "/" + name, headers=host(hostile))


def test_nothing_is_smuggled(site, hostile):
    """On one connection of the client, the box's second answer goes to nobody."""
    connection = http.client.HTTPConnection(site.host, site.port, timeout=30)
    for path, body in (("/pipelined", b"ok"), ("/hop", b"ok"), ("/pipelined", b"ok")):
        connection.request("GET", path, headers=host(hostile))
        response = connection.getresponse()
        assert response.read() == body
    connection.request("HEAD", "/head-lies", headers=host(hostile))
    assert connection.getresponse().read() == b""
    connection.request("GET", "/hop", headers=host(hostile))
    response = connection.getresponse()
    assert response.read() == b"ok"
    assert response.headers["x-secret"] is None and response.headers["keep-alive"] is None and response.headers["proxy-authenticate"] is None
    connection.close()


# ---- WebSockets: Node's `ws` on both ends ----------------------------------------------

WS_SERVER = r"""
const { WebSocketServer } = require('/usr/share/nodejs/ws');
const server = new WebSocketServer({ port: +process.argv[2], host: '127.0.0.1', maxPayload: 64 << 20,
  handleProtocols: (set) => set.has('chat') ? 'chat' : false });
server.on('connection', (ws, request) => {
  ws.send(JSON.stringify({ url: request.url, headers: request.headers }));
  ws.on('message', (data, binary) => data.toString() === 'bye' ? ws.close(4001, 'as you wish') : ws.send(data, { binary }));
});
"""

WS_CLIENT = r"""
const WebSocket = require('/usr/share/nodejs/ws');
const [url, headers] = [process.argv[1], JSON.parse(process.argv[2])];
const ws = new WebSocket(url, ['chat'], { headers });
const big = Buffer.alloc(3 << 20, 'abc');
const got = [];
ws.on('message', (data, binary) => {
  got.push(binary ? `binary ${data.equals(big)}` : data.toString());
  if (got.length === 1) ws.send('text');
  if (got.length === 2) ws.send(big);
  if (got.length === 3) ws.ping('p');
});
ws.on('pong', (data) => { got.push('pong ' + data); ws.send('bye'); });
ws.on('close', (code, reason) => { console.log(JSON.stringify({ got, code, reason: reason.toString(), protocol: ws.protocol })); });
ws.on('unexpected-response', (_, response) => { console.log(JSON.stringify({ status: response.statusCode })); process.exit(0); });
ws.on('error', (error) => { console.log(JSON.stringify({ error: error.message })); });
"""


def node(url, headers):
    result = subprocess.run(["node", "-e", WS_CLIENT, "--", url, json.dumps(headers)], capture_output=True, text=True, timeout=30)
    assert result.returncode == 0 and result.stdout, result.stderr
    return json.loads(result.stdout)


@pytest.fixture(scope="module")
def chat(site):
    client = site.client()
    box = client.create()
    box.put("/tmp/ws.js", WS_SERVER.encode())
    background(box, ["node", "/tmp/ws.js", "8001"])
    listening(box, 8001)
    yield box
    box.delete()
    client.close()


def test_websocket(site, chat):
    base = f"ws://{site.host}:{site.port}"
    for url, headers in ((f"{base}/a?b=c", {**host(chat, 8001), **token(chat)}),
                         (f"{base}{chat.path}/ports/8001/a?b=c", {"Authorization": f"Bearer {chat.client.key}"})):
        said = node(url, headers)
        first = json.loads(said["got"][0])
        assert first["url"] == "/a?b=c" and chat.client.key not in said["got"][0] and token(chat)["E2b-Traffic-Access-Token"] not in said["got"][0]
        assert said["got"][1:] == ["text", "binary true", "pong p"]
        assert (said["code"], said["reason"], said["protocol"]) == (4001, "as you wish", "chat")


def test_websocket_refused(site, chat, app):
    base = f"ws://{site.host}:{site.port}"
    assert node(f"{base}/", host(chat, 8001)) == {"status": 502}
    assert node(f"{base}/", {**host(chat, 9), **token(chat)}) == {"status": 502}
    # A server that does not know WebSockets answers as it likes.
    assert node(f"{base}/echo", {**host(app), **token(app)}) == {"status": 200}


def test_websocket_client_gone(site, chat):
    """The server in the box learns that its client is gone."""
    def open_now():
        rows = chat.check("cat /proc/net/tcp").splitlines()[1:]
        return sum(row.split()[1].endswith(":%04X" % 8001) and row.split()[3] == "01" for row in rows)
    assert paddock.until(lambda: open_now() == 0, "nobody else is there", 10)
    s = Socket(site, "/x", [f"{k}: {v}" for k, v in token(chat).items()] + [f"E2b-Sandbox-Id: {chat.id}", "E2b-Sandbox-Port: 8001"], key="none")
    assert s.status == 101 and open_now() == 1
    s.connection.close()
    paddock.until(lambda: open_now() == 0, "the connection in the box is closed", 10)


# ---- tunnels -----------------------------------------------------------------------

ECHO = r"""
import socket, sys, threading
def one(c):
    # Answers only when the other side has ended: half-closes must pass.
    data = b""
    while True:
        more = c.recv(65536)
        if not more: break
        data += more
        if data.startswith(b"now"): c.sendall(more)
    if not data.startswith(b"now"): c.sendall(b"%d:" % len(data) + data)
    c.close()
s = socket.create_server(("127.0.0.1", 8002))
while True: threading.Thread(target=one, args=(s.accept()[0],), daemon=True).start()
"""


@pytest.fixture(scope="module")
def echo(site, app):
    background(app, ["/usr/bin/python3", "-c", ECHO])
    listening(app, 8002)
    return app


def test_tunnel(site, echo):
    s = Socket(site, echo.path + "/tunnel/8002")
    assert s.status == 101
    s.send(BINARY, b"hello ")
    s.send(BINARY, b"world")
    s.send(TEXT, "end")
    assert s.receive() == (BINARY, b"11:hello world")
    assert s.receive() == (TEXT, b"end")
    opcode, data = s.receive()
    assert opcode == CLOSE and data[:2] == struct.pack(">H", 1000)


def test_tunnel_refused(site, echo):
    assert Socket(site, echo.path + "/tunnel/9").status == 404
    assert Socket(site, echo.path + "/tunnel/0").status == 400
    assert Socket(site, echo.path + "/tunnel/8002", upgrade=False).status == 400
    assert Socket(site, echo.path + "/tunnel/8002", key="none").status == 401
    s = Socket(site, echo.path + "/tunnel/8002")
    s.send(TEXT, "what")
    opcode, data = s.receive()
    assert opcode == CLOSE and data[:2] == struct.pack(">H", 1008)


@contextlib.contextmanager
def forwarding(daemon, *arguments):
    process = subprocess.Popen([paddock.BIN / "paddock", "forward", "--url", daemon.url, "--key-file", daemon.data_dir / "admin.key", *arguments],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        line = process.stdout.readline()
        assert " -> " in line, process.communicate()
        yield int(line.split(" -> ")[0].split(":")[1])
    finally:
        process.terminate()
        process.communicate(timeout=10)


def test_forward(site, echo):
    with forwarding(site, echo.id, "0:8002") as port:
        data = os.urandom(3 << 20)
        with socket.create_connection(("127.0.0.1", port)) as c:
            c.sendall(data)
            c.shutdown(socket.SHUT_WR)
            got = b"".join(iter(lambda: c.recv(1 << 20), b""))
        assert got == b"%d:" % len(data) + data
        # Both directions full at once.
        with socket.create_connection(("127.0.0.1", port)) as c:
            data = b"now" + data
            sender = threading.Thread(target=lambda: (c.sendall(data), c.shutdown(socket.SHUT_WR)))
            sender.start()
            got = b"".join(iter(lambda: c.recv(65536), b""))
            sender.join()
        assert got == data


def test_forward_http(site, app):
    with forwarding(site, app.id, "0:8000") as port:
        connections = [http.client.HTTPConnection("127.0.0.1", port, timeout=30) for _ in range(8)]
        for n, c in enumerate(connections):
            c.request("GET", f"/{n}")
        for n, c in enumerate(connections):
            assert c.getresponse().read() == f"hello from /{n}".encode()
            c.close()


def test_forward_mistakes(site, app):
    def run(*arguments):
        return subprocess.run([paddock.BIN / "paddock", "forward", "--url", site.url, "--key-file", site.data_dir / "admin.key", *arguments],
                              capture_output=True, text=True, timeout=20)
    assert run(app.id, "x").returncode == 1 and run(app.id, "1:0").returncode == 1
    assert run("nobody", "0:80").returncode == 1
    with socket.create_server(("127.0.0.1", 0)) as taken:
        result = run(app.id, f"{taken.getsockname()[1]}:80")
        assert result.returncode == 1 and "in use" in result.stderr


# ---- links between boxes ---------------------------------------------------------------

FETCH = r"""
import http.client, sys
c = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]), timeout=20)
c.request("POST", "/echo", body=b"x" * int(sys.argv[2]))
print(c.getresponse().read().decode())
"""


def fetch(box, port, size=10):
    return box.exec(["/usr/bin/python3", "-c", FETCH, str(port), str(size)])


@pytest.fixture
def two(make_box):
    near, far = make_box(), make_box()
    serve(far)
    return near, far


def link(box, to, **more):
    return box.client.post("/v1/links", {"from": box.id, "to": to.id, "port": 8000, **more})


def test_link(two):
    near, far = two
    assert fetch(near, 8000).exit_code != 0, "there is a way without a link"
    made = link(near, far)
    assert made.status == 201, made
    document = made.json()
    assert {k: document[k] for k in ("from", "to", "port", "listen", "up")} == {"from": near.id, "to": far.id, "port": 8000, "listen": 8000, "up": True}
    for size in (10, 3 << 20):
        output = fetch(near, 8000, size)
        assert output.exit_code == 0 and json.loads(output.text)["n"] == size, output
    assert document in near.client.get("/v1/links").json()["links"]
    # Not back again.
    assert fetch(far, 8001).exit_code != 0
    assert near.client.delete(f"/v1/links/{document['id']}").status == 204
    assert fetch(near, 8000).exit_code != 0
    assert near.client.delete(f"/v1/links/{document['id']}").status == 404


def test_with_the_gate(two):
    """A box that has a way out: ports and links as before, but the way out is not a way in."""
    near, far = two
    for box in two:
        assert box.client.send_json("PUT", box.path + "/egress", {"allow": ["example.test"]}).status == 200
    paddock.until(lambda: "3A9C" in near.check("cat /proc/net/tcp6"), "the gate listens", 20)
    assert [p["port"] for p in ports(near)["ports"]] == [] and [p["port"] for p in ports(far)["ports"]] == [8000]
    assert near.client.get(near.path + "/ports/15004/").status == 403
    assert Socket(near.client.daemon, near.path + "/tunnel/15004").status == 403
    assert near.client.get(near.path + "/ports/9/").status == 502
    assert link(near, far).status == 201
    assert fetch(near, 8000).exit_code == 0 and fetch(near, 8001).exit_code != 0


def test_link_to_nothing(two):
    near, far = two
    assert link(near, far, port=7, listen=7000).status == 201
    assert fetch(near, 7000).exit_code != 0


def test_link_mistakes(daemon, api, two):
    near, far = two
    assert link(near, near).status == 400
    assert link(near, far, port=0).status == 400
    assert link(far, near, listen=8000).code() == "conflict", "the port is the server's"
    assert link(near, far).status == 201
    assert link(near, far).code() == "conflict"
    key = api.post("/v1/keys", {"tenant": "neighbour", "role": "user", "create_tenant": True}).json()["key"]
    other = daemon.client(key)
    theirs = other.create()
    assert other.post("/v1/links", {"from": theirs.id, "to": far.id, "port": 8000}).status == 404
    assert api.post("/v1/links", {"from": theirs.id, "to": far.id, "port": 8000}).status == 403, "not even an admin joins tenants"
    assert other.get("/v1/links").json() == {"links": []}
    mine = [l for l in api.get("/v1/links").json()["links"] if l["from"] == near.id]
    assert other.delete(f"/v1/links/{mine[0]['id']}").status == 404
    theirs.delete()
    other.close()


def test_link_goes_with_either(make_box, two):
    near, far = two
    third = make_box()
    assert link(near, far).status == 201 and link(third, far).status == 201

    def links():
        return {(l["from"], l["to"]) for l in near.client.get("/v1/links").json()["links"] if far.id in (l["from"], l["to"])}
    assert links() == {(near.id, far.id), (third.id, far.id)}
    third.delete()
    assert links() == {(near.id, far.id)}
    far.delete()
    assert links() == set()
    assert fetch(near, 8000).exit_code != 0
    # The port is free again.
    serve(near)


def test_link_survives(own_daemon):
    """A restart of the api, and a stop and start of the box."""
    daemon = own_daemon().start()
    client = daemon.client()
    near, far = client.create(), client.create()
    serve(far)
    assert link(near, far).status == 201

    def works():
        return fetch(near, 8000).exit_code == 0
    assert works()
    daemon.kill_api()
    paddock.until(works, "the link is there again", 30)
    assert client.post(near.path + "/stop", {}).status == 200
    assert [l["up"] for l in client.get("/v1/links").json()["links"]] == [False]
    assert client.post(near.path + "/start", {}).status == 200
    paddock.until(works, "the link is there again", 30)
    client.close()
