"""Without proof, nobody learns from the sandbox plane whether a sandbox exists."""

import http.client
import itertools
import statistics
import time

import pytest

import paddock
from envd import Envd
from test_ports import DOMAIN, ask, host, serve

NONE = "z" * 20  # an id of the right form, of no box
PORTS = (8000, 9, 22, 2024, 3128, 49983, 49999)
PATHS = ("/", "/health", "/files?path=/etc/passwd", "/files?path=/etc/passwd&signature=v1_AAAA", "/envs", "/execute", "/contexts",
         "/process.Process/List", "/?paddock_ticket=99999999999-" + "0" * 64, "/v1/sandboxes")
METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS")


@pytest.fixture(scope="module")
def site(daemon_factory):
    it = daemon_factory("silent", environment={"PADDOCK_PORTS_DOMAIN": DOMAIN}).start()
    yield it
    it.finish()


@pytest.fixture(scope="module")
def private(site):
    client = site.client()
    box = client.create(auto_resume=True)
    serve(box)
    yield box
    box.delete()
    client.close()


def seen(site, box_id, method, path, headers):
    """Everything of an answer that does not name the request itself."""
    answer = ask(site, path, method, body=b"{}" if method in ("POST", "PUT") else None,
                 headers={k: v.replace("BOX", box_id) for k, v in headers.items()})
    kept = sorted((k.lower(), v) for k, v in answer.headers.items() if k.lower() not in ("date", "x-request-id"))
    return answer.status, kept, answer.body.replace(box_id.encode(), b"BOX")


def names(port):
    yield {"Host": f"{port}-BOX.{DOMAIN}"}
    yield {"E2b-Sandbox-Id": "BOX", "E2b-Sandbox-Port": str(port)}
    if port == 49983:
        yield {"E2b-Sandbox-Id": "BOX"}


def shown(stranger, foreign):
    """What somebody may show who was told nothing."""
    return ({}, {"X-Access-Token": "BOX" + "0" * 64}, {"E2b-Traffic-Access-Token": "BOX" + "0" * 64},
            {"X-Access-Token": foreign["access"], "E2b-Traffic-Access-Token": foreign["traffic"]}, {"X-API-Key": stranger},
            {"Authorization": "Bearer pdk_" + "0" * 40}, {"Cookie": "paddock_ticket=99999999999-" + "0" * 64},
            {"Accept": "text/html"}, {"Origin": "http://evil.example", "Access-Control-Request-Method": "POST"},
            {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "A" * 22 + "=="},
            {"Content-Type": "application/connect+json", "Connect-Protocol-Version": "1"})


@pytest.fixture(scope="module")
def outsider(site):
    """The key of another tenant, and the tokens of its own box."""
    admin = site.client()
    key = admin.post("/v1/keys", {"tenant": "outsider", "create_tenant": True}).json()["key"]
    made = site.client(key).post("/sandboxes", {"templateID": "base", "network": {"allowPublicTraffic": False}}).json()
    return key, {"access": made["envdAccessToken"], "traffic": made["trafficAccessToken"]}


def differences(site, box_id, wishes):
    found = []
    for method, path, headers in wishes:
        here, nowhere = (seen(site, i, method, path, headers) for i in (box_id, NONE))
        if here != nowhere:
            found.append((method, path, headers, here, nowhere))
    return found


def test_a_box_looks_like_none(site, private, outsider):
    key, foreign = outsider
    some = [(m, p, {**n, **s}) for m, p, port in itertools.product(("GET", "POST"), PATHS, PORTS) for n in names(port)
            for s in shown(key, foreign)[:6]]
    every = [(m, p, {**n, **s}) for m, p, port in itertools.product(METHODS, PATHS[:3], (8000, 49983, 49999)) for n in names(port)
             for s in shown(key, foreign)]
    assert not differences(site, private.id, some + every)


def test_a_box_that_does_not_run_looks_like_none(site, private, outsider):
    wishes = [("GET", p, {**n, **s}) for p, port in itertools.product(PATHS, (8000, 49983, 49999)) for n in names(port)
              for s in shown(*outsider)[:3]]
    assert private.client.post(private.path + "/pause", {}).status == 200
    assert not differences(site, private.id, wishes)
    assert private.client.get(private.path).json()["status"] == "paused", "a stranger resumes nothing"
    assert private.client.post(private.path + "/resume", {}).status == 200


def test_who_shows_something_is_told(site, private):
    """The controls: what differs for those who may know."""
    client = site.client()
    made = client.post("/sandboxes", {"templateID": "base", "network": {"allowPublicTraffic": False}}).json()
    access, traffic = made["envdAccessToken"], made["trafficAccessToken"]
    box = paddock.Box(client, {"id": made["sandboxID"]})
    one = Envd(site, box.id, access)
    assert one.request("GET", "/health").status == 204
    assert Envd(site, box.id, None).request("GET", "/health").status == 502
    signed = {"path": "/etc/hostname", "username": "user"}
    over = {**signed, "signature_expiration": 1, "signature": one.signature("/etc/hostname", "read", "user", 1)}
    late = Envd(site, box.id, None).request("GET", "/files", **over)
    assert late.status == 401 and "expired" in late.json()["message"]
    closed = ask(site, "/", headers={**host(box, 9), "E2b-Traffic-Access-Token": traffic})
    assert closed.status == 502 and "port is not open" in closed.json()["message"]
    assert ask(site, "/", headers={**host(box, 9), "X-API-Key": client.key}).json()["port"] == 9
    assert client.delete(box.path).status == 204
    assert one.request("GET", "/health").status == 502, "of its own box, also when that is gone"

    public = client.create(ports_public=True)
    assert Envd(site, public.id, None).request("GET", "/health").status == 204, "public is visible"
    assert Envd(site, public.id, None).request("GET", "/envs").status == 401
    public.delete()
    client.close()


def test_nor_does_the_time_tell(site, private):
    spent = {private.id: [], NONE: []}
    connection = http.client.HTTPConnection(site.host, site.port, timeout=30)
    for _ in range(400):
        for box_id, times in spent.items():
            start = time.monotonic()
            connection.request("GET", "/health", headers={"E2b-Sandbox-Id": box_id, "X-Access-Token": box_id + "0" * 64})
            connection.getresponse().read()
            times.append(time.monotonic() - start)
    here, nowhere = (statistics.median(times) for times in spent.values())
    assert 0.8 < here / nowhere < 1.25, (here, nowhere)
