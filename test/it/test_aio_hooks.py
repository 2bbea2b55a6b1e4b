"""AIO's shutdown hooks: they run before a sandbox is stopped or deleted, by whatever dialect, also after a restart of the api."""

import contextlib
import sqlite3
import time

import paddock
from aio_shapes import call


def add(api, box, name, command, **more):
    found = call(api, box, "POST", "/v1/sandbox/hooks", {"name": name, "command": command, **more})
    assert found.get("success"), found
    return found["data"]


def change(api, box, step):
    answer = api.request("POST", f"/v1/sandboxes/{box.id}/{step}")
    assert answer.status == 200, answer


def test_register_list_remove(make_box, api):
    box = make_box()
    made = add(api, box, "late", "true", priority=200)
    assert made == {"name": "late", "event": "shutdown", "command": "true", "timeout": 10, "priority": 200, "source": "api"}
    add(api, box, "early", "true", timeout=2.5)
    assert add(api, box, "late", "false", priority=200)["command"] == "false"
    assert [h["name"] for h in call(api, box, "GET", "/v1/sandbox/hooks?event=shutdown")["data"]] == ["early", "late"]
    assert call(api, box, "DELETE", "/v1/sandbox/hooks/early")["success"]
    assert call(api, box, "DELETE", "/v1/sandbox/hooks/early")["success"] is False
    assert [h["name"] for h in call(api, box, "GET", "/v1/sandbox/hooks")["data"]] == ["late"]


def test_refused(api, box):
    for body, field in (({"name": "a b", "command": "x"}, "name"), ({"name": "n" * 65, "command": "x"}, "name"), ({"name": "a"}, "command"),
                        ({"name": "a", "command": "x", "event": "startup"}, "event"), ({"name": "a", "command": "x", "timeout": 31}, "timeout")):
        assert call(api, box, "POST", "/v1/sandbox/hooks", body)["detail"][0]["loc"][-1] == field, body
    assert call(api, box, "GET", "/v1/sandbox/hooks?event=startup")["detail"]
    assert call(api, box, "GET", "/v1/sandbox/hooks")["data"] == []


def test_they_run_before_a_stop(make_box, api):
    box = make_box()
    log = "/workspace/order"
    add(api, box, "second", f"echo second >> {log}; id -un >> {log}", priority=20)
    add(api, box, "first", f"sleep 0.2; echo first >> {log}", priority=10)
    change(api, box, "stop")
    change(api, box, "start")
    assert box.check(["cat", log]) == "first\nsecond\nuser\n"
    change(api, box, "stop")
    change(api, box, "start")
    assert box.check(["wc", "-l", log]).split()[0] == "6"


def test_they_run_before_a_delete(make_box, api):
    name = f"hooks-{time.monotonic_ns()}"
    assert api.post("/v1/workspaces", {"name": name}).status == 201
    box = make_box(workspace=name)
    add(api, box, "save", "sync; echo saved > /workspace/saved")
    assert api.delete(f"/v1/sandboxes/{box.id}").status == 204
    other = make_box(workspace=name)
    assert other.check("cat /workspace/saved") == "saved\n"
    other.delete()
    assert api.delete(f"/v1/workspaces/{name}").status == 204


def test_a_hook_that_hangs_has_its_time(make_box, api):
    box = make_box()
    add(api, box, "hangs", "echo begun > /workspace/begun; exec sleep 600", timeout=3)
    change(api, box, "stop")
    change(api, box, "start")
    assert box.check("cat /workspace/begun") == "begun\n"


def test_they_are_remembered(own_daemon):
    """By the sandbox and by the store: the api that deletes it is another one."""
    it = own_daemon().start()
    client = it.client()
    box = client.create()
    add(client, box, "mark", "echo ran > /workspace/ran")
    it.kill_api()
    client = it.client()
    change(client, box, "stop")
    change(client, box, "start")
    assert box.with_client(client).check("cat /workspace/ran") == "ran\n"
    paused = client.create()
    add(client, paused, "mark", "echo ran > /workspace/ran")
    change(client, paused, "pause")
    assert client.delete(f"/v1/sandboxes/{paused.id}").status == 204  # one that stands still runs nothing


def test_what_is_answered_is_stored(own_daemon):
    """Nobody is told that a hook is registered before the store has it: an api that dies then would forget it."""
    it = own_daemon().start()
    client = it.client()
    box = client.create()
    with contextlib.closing(sqlite3.connect(it.data_dir / "store" / "paddock.db", isolation_level=None)) as store:
        store.execute("BEGIN IMMEDIATE")  # its writes wait
        adding = paddock.Background(add, it.client(), box, "mark", "echo ran > /workspace/ran")
        adding.join(2)
        assert not adding.value, f"answered without being stored: {adding.value}"
        store.execute("ROLLBACK")
    assert adding.result()["name"] == "mark"


def test_two_ask_for_the_end(make_box, api, daemon):
    """A stop and a delete while the hooks run: both are answered, and the hooks run once."""
    name = f"hooks-{time.monotonic_ns()}"
    assert api.post("/v1/workspaces", {"name": name}).status == 201
    box = make_box(workspace=name)
    add(api, box, "once", "echo ran >> /workspace/ran; sleep 4")
    stopper = daemon.client()
    stop = paddock.Background(stopper.request, "POST", f"/v1/sandboxes/{box.id}/stop")
    box.find_process("4")
    assert api.delete(f"/v1/sandboxes/{box.id}").status == 204
    assert stop.result().status in (200, 409)
    other = make_box(workspace=name)
    assert other.check("cat /workspace/ran") == "ran\n"
    other.delete()
    assert api.delete(f"/v1/workspaces/{name}").status == 204
    stopper.close()
