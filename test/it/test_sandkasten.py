"""Sandkasten's HTTP API, as its clients use it."""

import base64
import json
import threading
import time

import pytest

import paddock


class Session:
    """What Sandkasten's own clients send, and nothing that they do not."""

    def __init__(self, client, **body):
        self.client = client
        response = client.post("/v1/sessions", body)
        assert response.status == 201, response
        self.info = response.json()
        self.id = self.info["id"]
        client.daemon.saw(self.id)
        self.path = f"/v1/sessions/{self.id}"

    def exec(self, cmd, **body):
        response = self.client.post(self.path + "/exec", {"cmd": cmd, **body})
        assert response.status == 200, response
        return response.json()

    def write(self, path, **body):
        response = self.client.post(self.path + "/fs/write", {"path": path, **body})
        assert response.status == 200 and response.json() == {"ok": True}, response

    def read(self, path, query=""):
        response = self.client.get(f"{self.path}/fs/read?path={path}{query}")
        assert response.status == 200, response
        return response.json()


@pytest.fixture
def session(api):
    made = []

    def make(**body):
        made.append(Session(api, **body))
        return made[-1]

    yield make
    for one in made:
        assert api.delete(one.path).status in (200, 404, 410)


@pytest.fixture
def workspace_ids(api):
    names = []
    yield names
    for name in names:
        paddock.until(lambda: api.delete(f"/v1/workspaces/{name}").status in (204, 404), f"{name} is removed")


def events(text):
    """[(event, data)] of a stream of Server-Sent Events."""
    found = []
    for block in text.decode().split("\n\n"):
        lines = dict(line.split(": ", 1) for line in block.splitlines() if not line.startswith(":"))
        if lines:
            found.append((lines["event"], json.loads(lines["data"])))
    return found


def error(response, status, code):
    assert response.status == status, response
    document = response.json()
    assert set(document) <= {"error_code", "message", "details"} and document["error_code"] == code, document
    assert document["message"]


def test_life_of_a_session(session, api):
    one = session(ttl_seconds=600)
    assert set(one.info) == {"id", "image", "status", "cwd", "acquire_source", "created_at", "expires_at"}
    assert one.info["status"] == "running" and one.info["cwd"] == "/workspace" and one.info["acquire_source"] == "cold"
    listed = api.get("/v1/sessions").json()
    assert isinstance(listed, list) and one.id in [s["id"] for s in listed]
    shown = api.get(one.path).json()
    assert set(shown) == {"id", "image", "status", "cwd", "created_at", "expires_at"}
    stats = api.get(one.path + "/stats").json()
    assert set(stats) == {"memory_bytes", "memory_limit", "cpu_usage_usec"}
    assert 0 < stats["memory_bytes"] < stats["memory_limit"] == 512 << 20
    assert api.delete(one.path).json() == {"ok": True}
    error(api.get(one.path), 404, "SESSION_NOT_FOUND")
    error(api.delete(one.path), 404, "SESSION_NOT_FOUND")
    error(api.post(one.path + "/exec", {"cmd": "true"}), 404, "SESSION_NOT_FOUND")


def test_the_shell_remembers(session, api):
    """What Sandkasten promises and its own HEAD does not keep."""
    one = session()
    assert set(one.exec("cd /tmp; export A=7; f() { echo $A; }")) == \
        {"exit_code", "cwd", "output", "truncated", "duration_ms"}
    done = one.exec("f; pwd; false")
    assert (done["exit_code"], done["cwd"], done["output"], done["truncated"]) == (1, "/tmp", "7\n/tmp\n", False)
    assert isinstance(done["duration_ms"], int)
    assert api.get(one.path).json()["cwd"] == "/tmp"


def test_both_outputs_are_one(session):
    one = session()
    # Each waits for the other's byte to be read: their order is that of the writes.
    done = one.exec("for i in 1 2 3; do echo out$i; sleep 0.05; echo err$i >&2; sleep 0.05; done")
    assert done["output"] == "out1\nerr1\nout2\nerr2\nout3\nerr3\n"


def test_a_command_at_its_limit_is_over(session, api):
    one = session()
    began = time.monotonic()
    error(api.post(one.path + "/exec", {"cmd": "sleep 60; echo late", "timeout_ms": 300}), 504, "COMMAND_TIMEOUT")
    assert time.monotonic() - began < 10 * paddock.SLOW
    # Nothing of it is left in the next answer, and nothing of it runs.
    assert one.exec("echo next; pgrep -x sleep")["output"] == "next\n"


def test_streams_while_it_runs(session, api):
    one = session()
    first = threading.Event()
    chunks = []
    with api.stream("POST", one.path + "/exec/stream", {"cmd": "echo one; read -r _ < /tmp/go; echo zwö >&2"}) as out:
        # The pipe is written to only once the first line has come.
        one.client.daemon.client().post(one.path.replace("/v1/sessions", "/v1/sandboxes") + "/exec",
                                        {"argv": ["true"]})
        text = b""
        for piece in out:
            text += piece
            if b"one" in text and not first.is_set():
                first.set()
                response = one.client.daemon.client().post(
                    f"/v1/sandboxes/{one.id}/exec", {"command": "test -p /tmp/go || mkfifo /tmp/go; echo > /tmp/go"})
                assert response.status == 200
    chunks = events(text)
    assert chunks[-1][0] == "done" and set(chunks[-1][1]) == {"exit_code", "cwd", "duration_ms"}
    assert all(name == "chunk" and set(data) == {"chunk", "timestamp"} for name, data in chunks[:-1])
    assert "".join(data["chunk"] for _, data in chunks[:-1]) == "one\nzwö\n"
    assert first.is_set()
