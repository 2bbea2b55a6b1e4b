"""The kinds of isolation: named at a create, kept by everything that is made of a sandbox, and over restarts."""

import json
import os
import subprocess

import pytest

import paddock


def ok(response, status=201):
    assert response.status == status, response
    return response.json()


def test_named_or_not(make_box):
    for wish in ({}, {"backend": None}, {"backend": "native"}):
        box = make_box(**wish)
        assert box.get()["backend"] == "native" and box.check("echo lives") == "lives\n"


@pytest.mark.parametrize("name", ["gvisor", "", "Native", "native ", "../native", "x" * 200, 7, ["native"]])
def test_unknown_is_refused(api, name):
    before = {box["id"] for box in api.list()}
    response = api.try_create(backend=name)
    assert response.status == 400 and "backend" in response.json()["error"]["message"], response
    assert {box["id"] for box in api.list()} == before
    if name == "gvisor":
        assert "must be one of: native" in response.json()["error"]["message"]


def test_capabilities_say_what_each_can(api, make_box):
    document = ok(api.get("/v1/capabilities"), 200)
    assert document["defaults"]["backend"] == "native"
    (native,) = document["backends"]
    assert native["name"] == "native" and native["available"] is True
    can = native["can"]
    assert can == sorted(can) and "snapshots" in can
    assert not {"own_kernel", "memory_snapshots", "foreign_snapshots"} & set(can)
    box = make_box()
    paused = api.post(box.path + "/pause", {})
    assert (paused.status == 200) == ("pause" in can), paused
    assert ("capture" in can) == ("egress.capture" not in native["missing"])


def test_disk_quota_is_the_disks(own_daemon):
    for kind in ("copy", "auto"):
        daemon = own_daemon(environment={"PADDOCK_DATA_BACKEND": kind}).start()
        (native,) = daemon.client().get("/v1/capabilities").json()["backends"]
        limited = daemon.client().try_create(limits={"disk_mb": 64})
        assert (limited.status == 201) == ("disk_quota" in native["can"]), limited
        assert kind != "copy" or limited.status != 201
        daemon.finish()


def test_copies_keep_it(api, make_box):
    box = make_box()
    snapshot = ok(api.post(box.path + "/snapshots", {}))
    try:
        assert snapshot["backend"] == "native"
        (listed,) = [one for one in api.get("/v1/snapshots").json()["snapshots"] if one["id"] == snapshot["id"]]
        assert listed["backend"] == "native"
        assert make_box(snapshot=snapshot["id"]).get()["backend"] == "native"
        assert make_box(snapshot=snapshot["id"], backend="native").get()["backend"] == "native"
        assert api.try_create(snapshot=snapshot["id"], backend="other").status == 400
        for twin in ok(api.post(box.path + "/fork", {"count": 2}))["sandboxes"]:
            assert twin["backend"] == "native"
            assert api.delete(f"/v1/sandboxes/{twin['id']}").status == 204
    finally:
        assert api.delete(f"/v1/snapshots/{snapshot['id']}").status == 204


def test_command_line(daemon, api):
    def run(*arguments):
        return subprocess.run(
            [paddock.BIN / "paddock", *arguments], capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL,
            env=paddock.clean_environment(PADDOCK_URL=daemon.url, PADDOCK_KEY_FILE=daemon.data_dir / "admin.key"))

    made = run("create", "--backend", "native")
    assert made.returncode == 0, made.stderr
    box = made.stdout.strip()
    try:
        assert json.loads(run("inspect", box).stdout)["backend"] == "native"
    finally:
        assert api.delete(f"/v1/sandboxes/{box}").status == 204
    assert run("run", "--backend", "native", "--", "echo", "lives").stdout == "lives\n"
    refused = run("create", "--backend", "paper")
    assert refused.returncode != 0 and "must be one of: native" in refused.stderr


# ---- state files: protobuf with fields below 16 of two wire types ----

def fields(data):
    """(number, wire type, value, the bytes of all of it)"""
    def varint(at):
        value = shift = 0
        while True:
            value |= (data[at] & 0x7f) << shift
            at, shift = at + 1, shift + 7
            if not data[at - 1] & 0x80:
                return value, at

    at = 0
    while at < len(data):
        start = at
        tag, at = varint(at)
        value, at = varint(at)
        if tag & 7 == 2:
            value, at = data[at:at + value], at + value
        yield tag >> 3, tag & 7, value, data[start:at]


def with_backend(state, name):
    """BoxState with another BoxSpec.backend; None: without one, as a version wrote it that had no choice."""
    out = b""
    for number, _, value, raw in fields(state):
        if number == 5:
            spec = b"".join(raw for number, _, _, raw in fields(value) if number != 10)
            if name is not None:
                spec += bytes([10 << 3 | 2, len(name)]) + name
            assert len(spec) < 1 << 14
            raw = bytes([5 << 3 | 2, len(spec) & 0x7f | 0x80, len(spec) >> 7]) + spec
        out += raw
    return out


def test_state_of_the_version_before_is_native(own_daemon):
    daemon = own_daemon().start()
    box = daemon.client().create()
    before = box.pid1()
    daemon.stop()
    state = box.run_dir / "state"
    written = state.read_bytes()
    assert b"native" in written
    state.write_bytes(with_backend(written, None))
    assert b"native" not in state.read_bytes()
    daemon.start()
    box = box.with_client(daemon.client())
    assert box.pid1() == before and box.get()["backend"] == "native"
    assert box.check("echo lives") == "lives\n"


def test_a_box_of_a_later_version_is_left_alone(own_daemon):
    daemon = own_daemon().start()
    box = daemon.client().create()
    before = box.pid1()
    daemon.stop()
    state = box.run_dir / "state"
    written = state.read_bytes()
    state.write_bytes(with_backend(written, b"later"))
    daemon.start()
    assert 'has no backend "later"' in daemon.log(1000)
    assert daemon.client().get(box.path).json()["status"] == "stopped"
    daemon.client().create().delete()  # and the leftovers of that are cleared away
    assert os.path.exists(f"/proc/{before}") and state.exists()
    daemon.stop()
    state.write_bytes(written)
    daemon.start()
    box = box.with_client(daemon.client())
    assert box.pid1() == before and box.check("echo lives") == "lives\n"
