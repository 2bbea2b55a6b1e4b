"""Degrees of the walls: what an older kernel cannot give is missing indeed, is said, and can be required.

`posture.without` takes features away that this kernel has. That it does so is seen from outside: a listener of the host in
the box's own network namespace, the box's mounts, the files of its control group.
"""

import contextlib
import ctypes
import os
import socket
import subprocess

import pytest

import paddock

LEFT_OUT = ("landlock.truncate", "landlock.ioctl_dev", "landlock.scopes", "overlay.detached", "cgroup.kill", "cgroup.freeze", "view.proc",
            "view.uptime", "view.calls")
FEATURES = {*LEFT_OUT, "limit.socket_memory", "limit.disk", "egress.capture"}


def configured(own_daemon, text, **options):
    daemon = own_daemon(**options)
    config = daemon.base / "paddock.yaml"
    config.write_text(text)
    daemon.arguments += ["--config", str(config)]
    return daemon


@pytest.fixture(scope="module")
def older(daemon_factory):
    """A daemon whose boxes have what Linux 6.1 without cgroup v2 gives."""
    it = daemon_factory("older")
    config = it.base / "paddock.yaml"
    config.write_text(f"posture: {{without: [{', '.join(LEFT_OUT)}]}}\n")
    it.arguments += ["--config", str(config)]
    it.start()
    yield it
    it.finish()


def features(client, path):
    response = client.get(path)
    assert response.status == 200, response
    return {part["name"]: part for part in response.json()["parts"] if part["name"] in FEATURES}


@contextlib.contextmanager
def in_network_of(pid):
    """This thread in a process's network namespace, for a while."""
    libc, home = ctypes.CDLL(None, use_errno=True), os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    theirs = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY)
    assert libc.setns(theirs, 0x40000000) == 0
    try:
        yield
    finally:
        assert libc.setns(home, 0x40000000) == 0
        os.close(home)
        os.close(theirs)


CONNECT = """
import socket, sys
s = socket.socket(socket.AF_UNIX)
try:
    s.connect("\\0paddock-outside")
    print("connected")
except OSError as error:
    print(type(error).__name__)
"""


def test_the_scopes_are_really_gone(older, daemon):
    """A listener outside the box's Landlock domain, on an abstract name that its network namespace shares."""
    seen = {}
    for it in (older, daemon):
        client = it.client()
        with paddock.boxes_of(client) as make:
            box = make()
            with in_network_of(box.pid1()):
                listener = socket.socket(socket.AF_UNIX)
                listener.bind("\0paddock-outside")
                listener.listen()
            with listener:
                seen[it] = (box.python(CONNECT).text.strip(), features(client, box.path + "/posture")["landlock.scopes"]["ok"])
        client.close()
    assert seen[older] == ("connected", False)
    if seen[daemon][1]:
        assert seen[daemon][0] == "PermissionError"


def test_layers_are_attached(older, daemon):
    """The overlay's own options tell which way it got them; none of it is left in the keeper's namespace."""
    for it, detached in ((older, False), (daemon, True)):
        client = it.client()
        with paddock.boxes_of(client) as make:
            box = make()
            has = features(client, box.path + "/posture")["overlay.detached"]["ok"]
            options = [line[5] for line in paddock.mountinfo(box.pid1()) if line[1] == "/"][0]
            assert ("lowerdir=/proc/self/fd/" in options) is (not has), options
            assert detached or not has
            # The keeper may be in the middle of the next sandbox, which it makes ahead.
            paddock.until(lambda: not [line[1] for line in paddock.mountinfo(it.keeper_pid)
                                       if line[1].endswith(("/scratch/lower", "/scratch/store"))], "nothing is left attached")
        client.close()


def test_killed_one_by_one(older):
    client = older.client()
    box = client.create()
    box.check("for i in $(seq 50); do setsid sleep 1000 & done; echo done")
    inside = box.processes()
    assert len(inside) > 50
    box.delete()
    paddock.until(lambda: not [pid for pid in inside if paddock.comm(pid) == "sleep"], "all processes are gone")
    client.close()


def test_without_a_freezer(older):
    """What needs one is refused with a reason, not done without."""
    client = older.client()
    with paddock.boxes_of(client) as make:
        box = make()
        response = client.post(box.path + "/pause", {})
        assert response.status == 501 and response.code() == "not_supported", response
        assert "freeze" in response.json()["error"]["message"]
        response = client.post(box.path + "/snapshots", {"name": "x"})
        assert response.status == 501, response
        assert box.check("echo alive") == "alive\n"
    client.close()


def test_posture_says_it(older):
    client = older.client()
    with paddock.boxes_of(client) as make:
        box = make()
        machine, own = features(client, "/v1/posture"), features(client, box.path + "/posture")
        assert set(machine) == FEATURES == set(own)
        for name in LEFT_OUT:
            assert not machine[name]["ok"] and not own[name]["ok"]
            assert machine[name]["detail"].startswith("left out by posture.without: ")
            assert not own[name]["required"]
        assert {name: part["ok"] for name, part in machine.items()} == {name: part["ok"] for name, part in own.items()}
        assert client.get("/v1/posture").json()["ok"] is True
    client.close()


def test_a_create_can_require(older, daemon):
    client = older.client()
    response = client.try_create(require=["limit.disk", "landlock.scopes"])
    assert response.status == 503 and response.code() == "cannot_isolate", response
    message = response.json()["error"]["message"]
    assert "landlock.scopes is required and not to be had here" in message and "posture.without" in message
    assert client.list() == []
    response = client.try_create(require=["landlock.everything"])
    assert response.status == 400 and response.code() == "invalid_argument", response
    with paddock.boxes_of(client) as make:
        box = make(require=["limit.disk"])
        assert box.get()["require"] == ["limit.disk"]
        assert features(client, box.path + "/posture")["limit.disk"]["required"] is True
        assert make().get()["require"] == []
    client.close()


def test_a_requirement_holds_at_every_start(own_daemon):
    """Stopped here, started on a machine that gives less: it is not started, and works again where it can."""
    daemon = configured(own_daemon, "posture: {}\n").start()
    client = daemon.client()
    wanted = [name for name, part in features(client, "/v1/posture").items() if part["ok"] and name in LEFT_OUT]
    box, plain = client.create(require=wanted), client.create()
    for one in (box, plain):
        assert client.post(one.path + "/stop", {}).status == 200
    assert client.get(box.path + "/posture").code() == "wrong_state"
    client.close()
    daemon.stop()
    (daemon.base / "paddock.yaml").write_text("posture: {without: [overlay.detached]}\n")
    daemon.start()
    client = daemon.client()
    response = client.post(box.path + "/start", {})
    assert response.code() == "cannot_isolate" and "overlay.detached is required" in response.json()["error"]["message"]
    assert client.post(plain.path + "/start", {}).status == 200
    assert features(client, plain.path + "/posture")["overlay.detached"]["ok"] is False
    client.close()
    daemon.stop()
    (daemon.base / "paddock.yaml").write_text("posture: {}\n")
    daemon.start()
    client = daemon.client()
    # The one that ran all the time still has what it was started with.
    assert features(client, plain.path + "/posture")["overlay.detached"]["ok"] is False
    assert client.post(box.path + "/start", {}).status == 200
    assert {name for name, part in features(client, box.path + "/posture").items() if part["required"]} == set(wanted)
    client.close()


def test_the_configuration_can_require(own_daemon):
    daemon = configured(own_daemon, "posture: {require: [limit.disk]}\n", environment={"PADDOCK_DATA_BACKEND": "copy"})
    with pytest.raises(AssertionError, match="posture.require: limit.disk is required and not to be had here: no disk limits"):
        daemon.start()
    del daemon.environment["PADDOCK_DATA_BACKEND"]
    daemon.start()
    client = daemon.client()
    with paddock.boxes_of(client) as make:
        assert features(client, make().path + "/posture")["limit.disk"]["required"] is True
    client.close()


def test_the_pool_does_not_serve_requirements(own_daemon):
    """A warm box may be older than the requirement; it is made anew."""
    daemon = configured(own_daemon, "pool: {machine: {warm: 1}}\n").start()
    client = daemon.client()
    box = client.create(require=["limit.disk"])
    assert box.get()["require"] == ["limit.disk"]
    client.close()
    daemon.stop()
    (daemon.base / "paddock.yaml").write_text("pool: null\n")  # its end finds no warm boxes
    daemon.start()


def test_command_line(older):
    environment = paddock.clean_environment(PADDOCK_URL=older.url, PADDOCK_API_KEY=older.key)
    done = subprocess.run([str(paddock.BIN / "paddock"), "run", "--require", "landlock.scopes", "--", "true"], env=environment,
                          capture_output=True)
    assert done.returncode == 125 and b"landlock.scopes is required" in done.stderr, done
    done = subprocess.run([str(paddock.BIN / "paddock"), "run", "--require", "limit.disk", "--", "echo", "made"], env=environment,
                          capture_output=True)
    assert done.stdout == b"made\n", done
