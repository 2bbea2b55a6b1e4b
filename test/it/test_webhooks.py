"""Webhooks: signed, at least once, tried again, carried by a program that can do nothing else."""

import hashlib
import hmac
import http.server
import json
import ssl
import subprocess
import threading
import time

import pytest

import paddock


# Receivers are on loopback, which is refused by default.
LOOPBACK = {"PADDOCK_WEBHOOKS_REFUSE": "link-local"}


class Receiver:
    """An HTTP server that keeps what it was sent; `status` decides its answers."""

    def __init__(self, port=0, pair=None):
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                outer.got.append((self.path, dict(self.headers), body))
                status = outer.status(len(outer.got)) if callable(outer.status) else outer.status
                self.send_response(status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        self.got, self.status = [], 200
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.server.handle_error = lambda *_: None  # clients that go away in the handshake
        if pair:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*pair)
            # The handshake in the thread of its connection, not in accept.
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True, do_handshake_on_connect=False)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}/hook?a=b"

    def events(self):
        return [json.loads(body) for _, _, body in self.got]

    def wait(self, count, timeout=15):
        paddock.until(lambda: len(self.got) >= count, f"{count} deliveries", timeout)
        return self.events()

    def close(self):
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def receiver():
    it = Receiver()
    yield it
    it.close()


@pytest.fixture
def make_hook(api):
    made = []

    def make(client=None, **wish):
        response = (client or api).post("/v1/webhooks", wish)
        assert response.status == 201, response
        made.append(response.json())
        return made[-1]

    yield make
    for hook in made:
        assert api.delete(f"/v1/webhooks/{hook['id']}").status in (204, 404)


def check_signature(secret, headers, body):
    stamp, signature = (part.split("=", 1)[1] for part in headers["Paddock-Signature"].split(","))
    assert headers["Paddock-Signature"] == f"t={stamp},v1={signature}"
    assert abs(time.time() - int(stamp)) < 30
    expected = hmac.new(secret.encode(), f"{stamp}.".encode() + body, hashlib.sha256).hexdigest()
    assert signature == expected


def test_delivery(daemon, api, receiver, make_hook):
    hook = make_hook(url=receiver.url)
    # Not an admin, who sees other ids.
    user = paddock.Client(daemon, api.post("/v1/keys", {"tenant": "default", "role": "user"}).json()["key"])
    assert hook["secret"].startswith("whsec_") and hook["events"] == []
    box = api.create(name="hooked")
    box.delete()
    events = receiver.wait(2)
    assert [(event["type"], event["sandbox"]) for event in events] == [("created", box.id), ("deleted", box.id)]
    for path, headers, body in receiver.got:
        assert path == "/hook?a=b" and headers["Host"] == f"127.0.0.1:{receiver.port}"
        assert headers["Content-Type"] == "application/json"
        check_signature(hook["secret"], headers, body)
        event = json.loads(body)
        assert headers["Paddock-Event"] == event["type"]
        assert headers["Paddock-Delivery"] == f"{hook['id']}-{event['id']}"
        # word for word what the log shows
        shown = user.get(f"/v1/events?after={event['id'] - 1}&limit=1").json()["events"]
        assert shown == [event]
    shown = paddock.until(lambda: (s := api.get(f"/v1/webhooks/{hook['id']}").json())["delivered"] == 2 and s, "the log")
    assert "secret" not in shown and shown["pending"] == 0 and shown["failed"] == 0
    assert [(d["status"], d["attempt"], d["final"], d["error"]) for d in shown["deliveries"]] == [(200, 1, True, None)] * 2


def test_own_secret_and_types(api, receiver, make_hook):
    make_hook(url=receiver.url, secret="a secret of mine", events=["deleted"])
    boxes = [api.create() for _ in range(3)]
    for box in boxes:
        box.delete()
    events = receiver.wait(3)
    assert [(event["type"], event["sandbox"]) for event in events] == [("deleted", box.id) for box in boxes]
    for _, headers, body in receiver.got:
        check_signature("a secret of mine", headers, body)


def test_a_long_secret(api, receiver, make_hook):
    secret = "s" * 128
    make_hook(url=receiver.url, secret=secret)
    api.create().delete()
    receiver.wait(2)
    check_signature(secret, *receiver.got[0][1:])


def test_retries(api, receiver, make_hook):
    """A failure is tried again, and does not hold up what comes after it."""
    receiver.status = lambda n: 500 if n in (1, 3) else 204
    hook = make_hook(url=receiver.url, events=["created"])
    one, two = api.create(), api.create()
    events = receiver.wait(4)
    assert [event["sandbox"] for event in events].count(one.id) == 3
    assert [event["sandbox"] for event in events].count(two.id) == 1
    assert [event["sandbox"] for event in events][1] == two.id, "the second was not held up"
    shown = paddock.until(lambda: (s := api.get(f"/v1/webhooks/{hook['id']}").json())["pending"] == 0 and s, "done")
    newest = shown["deliveries"][0]
    assert (newest["attempt"], newest["status"], newest["final"]) == (3, 204, True)
    assert shown["failed"] == 2 and shown["delivered"] == 2
    for box in (one, two):
        box.delete()


def test_what_was_delivered_makes_place(api, receiver, make_hook):
    """paddock-hook has 256 deliveries under way at most: those that are done are none of them."""
    for _ in range(5):
        make_hook(url=receiver.url, events=["paused", "resumed"])
    box = api.create()
    for n in range(1, 28):
        for verb in ("pause", "resume"):
            assert api.post(f"{box.path}/{verb}", {}).status == 200
        receiver.wait(10 * n)
    box.delete()


def test_nobody_listens_then_somebody_does(own_daemon):
    """What could not be delivered waits over restarts of everything."""
    daemon = own_daemon(environment=LOOPBACK).start()
    api = daemon.client()
    first = Receiver()
    port = first.port
    first.close()
    hook = api.post("/v1/webhooks", {"url": f"http://127.0.0.1:{port}/x"}).json()
    box = api.create()
    paddock.until(lambda: api.get(f"/v1/webhooks/{hook['id']}").json()["pending"] == 1, "it failed")
    attempt = api.get(f"/v1/webhooks/{hook['id']}").json()["deliveries"][-1]
    assert attempt["status"] is None and "refused" in attempt["error"] and not attempt["final"]
    daemon.restart()
    api = daemon.client()
    assert api.get(f"/v1/webhooks/{hook['id']}").json()["pending"] == 1
    receiver = Receiver(port)
    events = receiver.wait(1, 30)
    assert (events[0]["type"], events[0]["sandbox"]) == ("created", box.id)
    paddock.until(lambda: api.get(f"/v1/webhooks/{hook['id']}").json()["pending"] == 0, "it is done")
    # what happens while the api is down is delivered by the next one
    assert api.post("/v1/tenants", {"name": "later"}).status == 201  # a write that is waited for: those before are on disk
    daemon.kill_api()
    api = daemon.client()
    paddock.Box(api, box.document).delete()
    assert [event["type"] for event in receiver.wait(2)] == ["created", "deleted"]
    receiver.close()


def test_the_carrier_dies(own_daemon):
    daemon = own_daemon(environment=LOOPBACK).start()
    api = daemon.client()
    receiver = Receiver()
    api.post("/v1/webhooks", {"url": receiver.url})
    box = api.create()
    receiver.wait(1)
    carrier = [pid for pid, name in daemon.programs().items() if name == "paddock-hook"]
    assert len(carrier) == 1
    paddock.kill(carrier[0])
    box.delete()
    assert [event["type"] for event in receiver.wait(2)][-1] == "deleted"
    receiver.close()


def test_the_carrier_can_do_nothing_else(daemon, api, receiver, make_hook):
    make_hook(url=receiver.url)
    api.create().delete()
    receiver.wait(2)
    pid = [pid for pid, name in daemon.programs().items() if name == "paddock-hook"][0]
    status = paddock.proc_status(pid)
    assert set(status["Uid"].split()) == set(status["Gid"].split()) == {"59001"}
    for field in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        assert int(status[field], 16) == 0, field
    assert status["NoNewPrivs"] == "1" and status["Seccomp"] == "2"
    assert status["Groups"] == ""


def test_no_carrier_without_webhooks(own_daemon):
    daemon = own_daemon().start()
    daemon.client().create().delete()
    assert "paddock-hook" not in daemon.programs().values()


def test_tenants(daemon, api, receiver, make_hook):
    keys = [api.post("/v1/keys", {"tenant": f"hooks-{i}", "role": "user", "create_tenant": True}).json() for i in range(2)]
    one, two = (paddock.Client(daemon, key["key"]) for key in keys)
    hook = make_hook(one, url=receiver.url)
    assert two.get("/v1/webhooks").json() == {"webhooks": []}
    for method in ("GET", "DELETE"):
        assert two.request(method, f"/v1/webhooks/{hook['id']}").status == 404
    assert [h["id"] for h in one.get("/v1/webhooks").json()["webhooks"]] == [hook["id"]]
    other, mine = two.create(), one.create()
    assert [event["sandbox"] for event in receiver.wait(1)] == [mine.id]
    other.delete()
    mine.delete()
    assert {event["sandbox"] for event in receiver.wait(2)} == {mine.id}
    assert one.delete(f"/v1/webhooks/{hook['id']}").status == 204
    assert one.delete(f"/v1/webhooks/{hook['id']}").status == 404
    for client, key in zip((one, two), keys):
        client.close()
        api.delete(f"/v1/keys/{key['id']}")


def test_removed_means_silent(api, receiver):
    hook = api.post("/v1/webhooks", {"url": receiver.url}).json()
    assert api.delete(f"/v1/webhooks/{hook['id']}").status == 204
    other = api.post("/v1/webhooks", {"url": receiver.url + "&other"}).json()
    api.create().delete()
    receiver.wait(2)
    assert {path for path, _, _ in receiver.got} == {"/hook?a=b&other"}
    assert api.delete(f"/v1/webhooks/{other['id']}").status == 204


BAD = [
    {}, {"url": ""}, {"url": "ftp://x/"}, {"url": "http://"}, {"url": "http:///x"}, {"url": "http://h:0/"},
    {"url": "http://h:99999/"}, {"url": "http://user@h/"}, {"url": "http://h/a b"}, {"url": "http://h/\r\nX: y"},
    {"url": "http://h\r\nX: y/"}, {"url": "http://h?x"}, {"url": "http://h/#f"}, {"url": "http://h/" + "x" * 2000},
    {"url": "http://169.254.169.254/latest"}, {"url": "http://[fe80::1]/"}, {"url": "http://[::ffff:169.254.1.1]/"},
    {"url": "http://0.0.0.0/"}, {"url": "http://[fd00:ec2::254]/"}, {"url": "http://224.0.0.1/"},
    {"url": "http://h/", "secret": "short"}, {"url": "http://h/", "events": ["nonsense"]},
    {"url": "http://h/", "events": "created"}, {"url": "http://h/", "x": 1}, {"url": "http://h/", "events": ["created,deleted"]},
]


@pytest.mark.parametrize("wish", BAD, ids=[str(i) for i in range(len(BAD))])
def test_bad_wishes(api, wish):
    response = api.post("/v1/webhooks", wish)
    assert (response.status, response.code()) == (400, "invalid_argument"), wish


def openssl(*arguments, **options):
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True, timeout=30, **options)


@pytest.fixture(scope="module")
def authority(workdir):
    """An authority of our own; what it signs by `sign(name, san)` is a pair of PEM files."""
    base = workdir / "authority"
    base.mkdir()
    curve = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    openssl("req", "-x509", *curve, "-days", "2", "-subj", "/CN=ours", "-keyout", base / "ca.key", "-out", base / "ca.pem")

    def sign(name, san):
        cert, key = base / f"{name}.pem", base / f"{name}.key"
        openssl("req", "-new", *curve, "-subj", "/CN=hook", "-keyout", key, "-out", base / "request")
        (base / "extensions").write_text(f"subjectAltName={san}\n")
        openssl("x509", "-req", "-in", base / "request", "-CA", base / "ca.pem", "-CAkey", base / "ca.key", "-CAcreateserial",
                "-days", "2", "-extfile", base / "extensions", "-out", cert)
        return cert, key

    sign.file = base / "ca.pem"
    return sign


@pytest.fixture
def trusting(own_daemon, authority):
    return own_daemon(environment={**LOOPBACK, "PADDOCK_WEBHOOKS_CA_FILE": authority.file}).start()


def first_try(api, hook):
    return paddock.until(lambda: api.get(f"/v1/webhooks/{hook['id']}").json()["deliveries"], "a try")[-1]


def test_https(trusting, authority):
    receivers = [Receiver(pair=authority("named", "DNS:localhost,IP:127.0.0.1")) for _ in range(2)]
    api = trusting.client()
    hooks = [api.post("/v1/webhooks", {"url": f"https://{host}:{receiver.port}/x"}).json()
             for host, receiver in zip(("localhost", "127.0.0.1"), receivers)]
    box = api.create()
    box.delete()
    for hook, receiver in zip(hooks, receivers):
        assert [(event["type"], event["sandbox"]) for event in receiver.wait(2)] == [("created", box.id), ("deleted", box.id)]
        for _, headers, body in receiver.got:
            check_signature(hook["secret"], headers, body)
        receiver.close()


def test_https_certificates_that_are_refused(trusting, own_daemon, authority):
    """Of another host, of another address, of an authority that is not ours; and no TLS at all."""
    other = Receiver(pair=authority("other", "DNS:elsewhere.example,IP:127.0.0.2"))
    good = Receiver(pair=authority("good", "DNS:localhost"))
    plain = Receiver()
    strict = own_daemon(environment=LOOPBACK).start()  # which knows the system's authorities, if any
    cases = [(trusting, f"https://localhost:{other.port}/", "ostname mismatch"),
             (trusting, f"https://127.0.0.1:{other.port}/", "IP address mismatch"),
             (trusting, f"https://127.0.0.1:{good.port}/", "IP address mismatch"),
             (trusting, f"https://localhost:{plain.port}/", "TLS: "),
             (strict, f"https://localhost:{good.port}/", "certificate")]
    for daemon, url, why in cases:
        api = daemon.client()
        hook = api.post("/v1/webhooks", {"url": url, "events": ["created"]}).json()
        api.create().delete()
        attempt = first_try(api, hook)
        assert attempt["status"] is None and why in attempt["error"], attempt
        api.delete(f"/v1/webhooks/{hook['id']}")
    assert not other.got and not good.got and not plain.got
    for receiver in (other, good, plain):
        receiver.close()


def test_addresses_that_are_not_public(own_daemon):
    """Refused by default, under a name too; an administrator can allow them."""
    receiver = Receiver()
    for refuse in (None, "link-local", "none"):
        daemon = own_daemon(environment={"PADDOCK_WEBHOOKS_REFUSE": refuse} if refuse else {}).start()
        api = daemon.client()
        hook = api.post("/v1/webhooks", {"url": f"http://localhost:{receiver.port}/{refuse}"}).json()
        api.create().delete()
        shown = paddock.until(lambda: (s := api.get(f"/v1/webhooks/{hook['id']}").json())["deliveries"] and s, "a try")
        assert bool(shown["delivered"]) == bool(refuse)
        if not refuse:
            assert "refused" in shown["deliveries"][-1]["error"]
        for address in ("127.0.0.1", "10.0.0.1", "192.168.1.1", "[::1]", "[fd00::1]", "[::ffff:127.0.0.1]",
                        "[64:ff9b::7f00:1]", "100.64.0.1"):
            response = api.post("/v1/webhooks", {"url": f"http://{address}:9/", "events": ["oom"]})
            assert response.status == (201 if refuse else 400), (refuse, address, response)
            if not refuse:
                assert "webhooks.refuse" in response.json()["error"]["message"]
            else:
                assert api.delete(f"/v1/webhooks/{response.json()['id']}").status == 204
        metadata = api.post("/v1/webhooks", {"url": "http://169.254.169.254/", "events": ["oom"]})
        assert metadata.status == (201 if refuse == "none" else 400), (refuse, metadata)
    assert {path for path, _, _ in receiver.got} == {"/link-local", "/none"}
    receiver.close()


def test_answers_that_are_none(api, make_hook):
    """Garbage, silence after the request, a closed door: failures, and nothing hangs."""
    import socket

    listener = socket.create_server(("127.0.0.1", 0))
    answers = [b"nonsense\r\n", b"", b"HTTP/1.1 2x0 OK\r\n", b"x" * 5000]

    def serve():
        for answer in answers:
            connection, _ = listener.accept()
            connection.recv(65536)
            connection.sendall(answer)
            connection.close()

    threading.Thread(target=serve, daemon=True).start()
    hook = make_hook(url=f"http://127.0.0.1:{listener.getsockname()[1]}/", events=["created"])
    boxes = [api.create() for _ in range(2)]
    shown = paddock.until(lambda: (s := api.get(f"/v1/webhooks/{hook['id']}").json())["failed"] >= 4 and s, "4 tries", 20)
    assert all(d["status"] is None and d["error"] for d in shown["deliveries"][-4:])
    listener.close()
    for box in boxes:
        box.delete()


def test_ids_are_those_of_the_tenant(daemon, api, receiver, make_hook):
    """Neither the event's id nor the delivery's tells how much other tenants do."""
    client = paddock.Client(daemon, api.post("/v1/keys", {"tenant": "hooked-ids", "role": "user", "create_tenant": True}).json()["key"])
    hook = make_hook(client, url=receiver.url)
    for _ in range(2):
        api.create().delete()
        client.create().delete()
    assert [event["id"] for event in receiver.wait(4)] == [1, 2, 3, 4]
    assert [headers["Paddock-Delivery"] for _, headers, _ in receiver.got] == [f"{hook['id']}-{n}" for n in range(1, 5)]
    log = paddock.until(lambda: len(d := client.get(f"/v1/webhooks/{hook['id']}").json()["deliveries"]) == 4 and d, "they are logged")
    assert sorted(one["event"] for one in log) == [1, 2, 3, 4]
    client.close()
