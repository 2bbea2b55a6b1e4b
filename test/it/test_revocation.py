"""A key that is removed: what goes on in its name ends within seconds, and what another key of the same tenant has goes on.

Every kind of answer without an end is opened twice, with a key that is removed and with one that stays."""

import contextlib
import json
import select
import socket
import sqlite3
import time

import paddock
import pytest
from dialects import META
from test_dashboard import cookie_of, page, sign_in

ENDS_S = 5
UPGRADE = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="}
SSE = {"Accept": "text/event-stream"}
JSON = {"Content-Type": "application/json"}
SERVER = """
import socket, threading
def serve(c):
    c.recv(65536)
    c.sendall(b"HTTP/1.1 200 OK\\r\\nContent-Type: text/plain\\r\\n\\r\\nbegun")
    c.recv(65536)
s = socket.create_server(("127.0.0.1", 8000))
while True:
    threading.Thread(target=serve, args=(s.accept()[0],)).start()
"""


@pytest.fixture(scope="module")
def site(daemon_factory):
    daemon = daemon_factory("revocation").start()
    yield daemon
    daemon.delete_all()
    daemon.finish()


def new_key(site):
    return site.client().post("/v1/keys", {"role": "user", "tenant": "revoked", "create_tenant": True}).json()


class Open:
    """A request whose answer has begun and does not end."""

    def __init__(self, site, method, path, headers, body=b""):
        self.socket = socket.create_connection((site.host, site.port), timeout=30 * paddock.SLOW)
        lines = [f"{method} {path} HTTP/1.1", f"Host: {site.host}:{site.port}", f"Content-Length: {len(body)}", *(f"{k}: {v}" for k, v in headers.items())]
        self.socket.sendall("\r\n".join(lines).encode() + b"\r\n\r\n" + body)
        self.text = b""
        while b"\r\n\r\n" not in self.text:
            assert select.select([self.socket], [], [], 30 * paddock.SLOW)[0], (path, self.text)
            data = self.socket.recv(65536)
            assert data, (path, self.text)
            self.text += data
        self.status = int(self.text.split()[1])

    def ended(self):
        """Whether the connection is closed, after all that there is to be read."""
        while select.select([self.socket], [], [], 0)[0]:
            try:
                if not self.socket.recv(65536):
                    return True
            except ConnectionError:
                return True
        return False


def ticket_of(client, box):
    return client.post(f"/sandbox/{box}/tickets", {}).json()["ticket"]


def mcp_session(client):
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}}
    return client.request("POST", "/mcp", json.dumps(hello).encode(), {**JSON, "Accept": "application/json, text/event-stream"}).headers["mcp-session-id"]


def streams(site, box, client):
    """(name, method, path, headers, body): what this client can open; the key is not yet in the headers."""
    cookie = cookie_of(sign_in(paddock.Client(site), client.key))
    listen = {"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": {"notifications": {"toolsListChanged": True}, "_meta": META}}
    envelope = json.dumps({"sessionId": box, "command": "echo begun; sleep 4321"}).encode()
    key = {"Authorization": f"Bearer {client.key}"}
    return {
        "events": ("GET", "/v1/events", {**SSE, **key}, b""),
        "events by a session of the dashboard": ("GET", "/v1/events", {**SSE, **page(site), "Cookie": cookie}, b""),
        "a terminal": ("GET", f"/v1/sandboxes/{box}/terminal", {**UPGRADE, **key}, b""),
        "a watch": ("GET", f"/v1/sandboxes/{box}/fs/watch?path=/tmp", {**SSE, **key}, b""),
        "a command": ("POST", f"/v1/sandboxes/{box}/exec", {**JSON, **SSE, **key}, json.dumps({"command": "echo begun; sleep 4321"}).encode()),
        "a tunnel": ("GET", f"/v1/sandboxes/{box}/tunnel/8000", {**UPGRADE, **key}, b""),
        "a server's answer": ("GET", f"/v1/sandboxes/{box}/ports/8000/", key, b""),
        "a server's answer by its host": ("GET", "/", {**key, "E2b-Sandbox-Id": box, "E2b-Sandbox-Port": "8000"}, b""),
        "MCP": ("GET", "/mcp", {**SSE, **key, "MCP-Protocol-Version": "2025-11-25", "Mcp-Session-Id": mcp_session(client)}, b""),
        "MCP of 2026": ("POST", "/mcp", {**JSON, **key, "Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2026-07-28",
                                         "Mcp-Method": "subscriptions/listen"}, json.dumps(listen).encode()),
        "agentbox": ("POST", "/sandbox.v1.SandboxService/ExecStream", {**key, "Content-Type": "application/connect+json", "Connect-Protocol-Version": "1"},
                     b"\0" + len(envelope).to_bytes(4, "big") + envelope),
        "a shell of AIO by a ticket": ("GET", f"/sandbox/{box}/v1/shell/ws?ticket={ticket_of(client, box)}", UPGRADE, b""),
        "a server's answer by a ticket of AIO": ("GET", f"/sandbox/{box}/proxy/8000/?ticket={ticket_of(client, box)}", {}, b""),
        "a terminal of Agent-Sandbox": ("GET", f"/api/v1/terminal/sandbox/{box}/ws", {**UPGRADE, **key}, b""),
        "Agent-Sandbox's router": ("GET", f"/sandboxes/router/{box}/8000/", key, b""),
    }


def test_what_goes_on_ends_with_its_key(site):
    doomed, stays = new_key(site), new_key(site)
    clients = {name: paddock.Client(site, key=each["key"]) for name, each in (("doomed", doomed), ("stays", stays))}
    made = clients["stays"].create(name="revocation")
    site.saw(made.id)
    started = clients["stays"].post(f"{made.path}/processes", {"argv": ["python3", "-c", SERVER]})
    assert started.status == 201, started
    paddock.until(lambda: made.exec("python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", 8000))'").exit_code == 0, "the server listens")
    opened = {who: {name: Open(site, *what) for name, what in streams(site, made.id, client).items()} for who, client in clients.items()}
    bad = {(who, name): each.text for who, each_of in opened.items() for name, each in each_of.items() if each.status not in (101, 200)}
    assert not bad, bad
    tickets = {who: ticket_of(client, made.id) for who, client in clients.items()}
    guest = paddock.Client(site)

    def renews(who):
        return guest.get(f"/sandbox/{made.id}/v1/shell/terminal-url?ticket={tickets[who]}").status

    assert renews("doomed") == 200 and not any(each.ended() for each in opened["doomed"].values())
    assert site.client().delete(f"/v1/keys/{doomed['id']}").status == 204
    assert renews("doomed") == 401 and renews("stays") == 200
    end = time.monotonic() + ENDS_S * paddock.SLOW
    left = dict(opened["doomed"])
    while left and time.monotonic() < end:
        left = {name: each for name, each in left.items() if not each.ended()}
        select.select([each.socket for each in left.values()], [], [], 0.2)
    assert not left, f"go on with a key that was removed: {sorted(left)}"
    ended = sorted(name for name, each in opened["stays"].items() if each.ended())
    assert not ended, f"ended with a key of somebody else: {ended}"
    for each in opened["stays"].values():
        each.socket.close()


def test_a_key_that_removes_itself_is_answered(site):
    own = site.client().post("/v1/keys", {"role": "admin"}).json()
    client = paddock.Client(site, key=own["key"])
    assert client.delete(f"/v1/keys/{own['id']}").status == 204
    assert client.get("/v1/sandboxes").status == 401


# ---- sessions of the dashboard


def who_is(site, cookie):
    return paddock.Client(site).get("/dashboard/session", headers={**page(site), "Cookie": cookie}).json()


def shifted(site, made_s=0, used_s=0):
    """All sessions were made and used so much earlier."""
    site.stop()
    with contextlib.closing(sqlite3.connect(site.data_dir / "store" / "paddock.db", isolation_level=None)) as store:
        rows = store.execute("SELECT name, CAST(value AS TEXT) FROM settings WHERE name LIKE 'login %'").fetchall()
        for name, value in rows:
            host, made, used, key = value.split(" ")
            store.execute("UPDATE settings SET value = ? WHERE name = ?", (f"{host} {int(made) - 1000 * made_s} {int(used) - 1000 * used_s} {key}".encode(), name))
    site.start()
    return len(rows)


@pytest.fixture
def fixed(daemon_factory, tmp_path):
    """At an address that stays: the cookie's name and the session have its port."""
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as free:
        port = free.getsockname()[1]
    daemon = daemon_factory("logins", listen=f"127.0.0.1:{port}").start()
    yield daemon
    daemon.finish()


HOUR = 3600


def test_sessions_last_over_a_restart_and_not_longer_than_they_may(fixed):
    cookie = cookie_of(sign_in(paddock.Client(fixed), fixed.key))
    out = cookie_of(sign_in(paddock.Client(fixed), fixed.key))
    assert paddock.Client(fixed).request("DELETE", "/dashboard/session", b"", {**page(fixed), "Cookie": out}).status == 204
    fixed.kill_api()
    paddock.until(fixed.healthy, "the api is back")
    assert who_is(fixed, cookie)["signed_in"], "a crash signs nobody out"
    assert not who_is(fixed, out)["signed_in"], "who signed out stays out"
    assert shifted(fixed, made_s=11 * HOUR) == 1 and who_is(fixed, cookie)["signed_in"], "the control: eleven hours"
    shifted(fixed, made_s=2 * HOUR)
    assert not who_is(fixed, cookie)["signed_in"], "thirteen hours, however busy"
    other = cookie_of(sign_in(paddock.Client(fixed), fixed.key))
    shifted(fixed, used_s=HOUR // 2)
    assert who_is(fixed, other)["signed_in"], "the control: half an hour without a request"
    shifted(fixed, used_s=HOUR)
    assert not who_is(fixed, other)["signed_in"]


def test_the_session_of_a_removed_key(fixed):
    made = fixed.client().post("/v1/keys", {"role": "user"}).json()
    cookie = cookie_of(sign_in(paddock.Client(fixed), made["key"]))
    assert who_is(fixed, cookie)["signed_in"]
    assert fixed.client().delete(f"/v1/keys/{made['id']}").status == 204
    assert not who_is(fixed, cookie)["signed_in"]
    fixed.restart()
    assert not who_is(fixed, cookie)["signed_in"]
