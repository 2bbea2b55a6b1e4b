"""What every kernel must do: a box with its limits, its end by memory, pause, fork, no network, and the daemon's death.

Runs in a guest (run.py), and as well on the machine itself.
"""

import os
import platform
import time
from pathlib import Path

import pytest

import paddock

LIMITS = {"cpu": 0.5, "memory_mb": 96, "pids": 40}


@pytest.fixture(scope="module")
def one(daemon):
    with paddock.boxes_of(daemon.client()) as make:
        yield make(name="smoke", limits=LIMITS)


def post(box, verb, document=None):
    response = box.client.post(f"{box.path}/{verb}", document or {})
    assert response.status in (200, 201), response
    return response.json()


def limit(box, v1, v2):
    """The text of a limit's file, wherever its controller lives here."""
    for directory in paddock.cgroup_dirs(box.id).values():
        for name in (v1, v2):
            if (directory / name).exists():
                return paddock.read(directory / name).strip()
    raise AssertionError(f"neither {v1} nor {v2} for {box}")


@pytest.mark.skipif("PADDOCK_GUEST" not in os.environ, reason="is about a guest")
def test_it_is_the_machine_that_was_meant():
    assert platform.release().startswith(os.environ["PADDOCK_GUEST_KERNEL"])
    controllers = set(paddock.cgroup_mounts())
    if os.environ["PADDOCK_GUEST_LAYOUT"] == "unified":
        assert controllers == {"unified"}
    else:
        assert {"unified", "memory", "pids", "cpu"} <= controllers


def test_create_and_exec(one):
    assert one.check("id -u; pwd; echo x > /workspace/f; cat /workspace/f; rm /workspace/f") == "1000\n/workspace\nx\n"
    assert one.check("id -u; echo x > /etc/mine; cat /etc/mine", user="root") == "0\nx\n"
    assert one.check("cd /tmp; x=1", shell="default") == "" and one.check("pwd; echo $x", shell="default") == "/tmp\n1\n"


def test_limits_are_in_its_groups(one):
    assert limit(one, "memory.limit_in_bytes", "memory.max") == str(LIMITS["memory_mb"] << 20)
    assert limit(one, "pids.max", "pids.max") == str(LIMITS["pids"])
    assert limit(one, "cpu.cfs_quota_us", "cpu.max").split()[0] == "50000"


def test_every_process_of_it_is_in_its_groups(one):
    """By the kernel's word: in each hierarchy with a controller, PID 1 is in the box's own group."""
    lines = [line.split(":", 2) for line in paddock.read(f"/proc/{one.pid1()}/cgroup").splitlines()]
    wanted = {"memory", "pids", "cpu"}
    own = {name for _, names, path in lines if path.split("/")[-1] == one.id for name in (names.split(",") if names else wanted)}
    assert wanted <= own, lines


FORK = """
import os, signal
made = []
try:
    while len(made) < 100:
        pid = os.fork()
        if not pid: signal.pause()
        made.append(pid)
except OSError as error: print(error.errno, len(made))
for pid in made: os.kill(pid, 9)
"""


def test_its_storage_is_whole_blocks(daemon):
    """A guest's disk is small, and what is a share of it is no round figure by itself."""
    assert (daemon.data_dir / "disk.btrfs").stat().st_size % (1 << 20) == 0


def test_too_many_processes(one):
    errno, made = map(int, one.python(FORK).text.split())
    assert errno == 11 and 20 < made < LIMITS["pids"]


def test_out_of_memory(one):
    output = one.python("x = bytearray(300 << 20)", timeout_ms=int(15_000 * paddock.SLOW))
    assert output.exit_code != 0 and output.signal, output
    paddock.until(lambda: one.client.get(one.path + "/stats").json()["oom_kills"] >= 1, "the kill is counted")
    assert one.check("echo alive") == "alive\n"


def test_statistics(one):
    stats = one.client.get(one.path + "/stats").json()
    assert stats["memory_bytes"] > 0 and stats["pids"] >= 1 and stats["cpu_usec"] > 0, stats


def test_pause_and_resume(one):
    counter = 'i=0; while :; do i=$((i+1)); echo $i > /workspace/next; mv /workspace/next /workspace/count; sleep 0.05; done'
    one.exec(f"setsid sh -c '{counter}' >/dev/null 2>&1 &")
    paddock.until(lambda: one.read("/workspace/count").status == 200, "it counts")
    assert post(one, "pause")["status"] == "paused"
    frozen = [path / "cgroup.events" for path in paddock.cgroup_dirs(one.id).values() if (path / "cgroup.events").exists()]
    assert frozen and all("frozen 1" in paddock.read(path) for path in frozen)
    pid = one.pid1()
    before = [paddock.cpu_seconds(each) for each in one.processes()]
    time.sleep(0.5)
    assert [paddock.cpu_seconds(each) for each in one.processes()] == before, "nothing runs in it"
    assert post(one, "resume")["status"] == "running" and one.pid1() == pid
    first = int(one.read("/workspace/count").body or 0)
    paddock.until(lambda: int(one.read("/workspace/count").body or 0) > first, "it counts on")


def test_fork(one, daemon):
    one.put("/workspace/forked", b"kept")
    made = post(one, "fork", {"count": 2})["sandboxes"]
    for document in made:
        daemon.saw(document["id"])
        twin = paddock.Box(one.client, document)
        assert twin.read("/workspace/forked").body == b"kept"
        assert twin.pid1() != one.pid1()
        twin.delete()


def test_no_network(one):
    """The gate takes a connection and ends it; nothing comes back. In a namespace without the host's links."""
    script = """
import socket
s = socket.socket(); s.settimeout(100)
try: s.connect(('192.0.2.1', 80)); s.send(b'x'); print('answered' if s.recv(1) else 'closed')
except TimeoutError: print('silent')
except OSError as error: print('refused')
"""
    assert one.python(script).text.strip() in ("refused", "closed")
    denied = "import socket\ntry: print(socket.getaddrinfo('example.com', 80))\nexcept OSError as e: print('no', e)"
    assert one.python(denied).text.startswith("no")
    assert paddock.namespace(one.pid1(), "net") != paddock.namespace("self", "net")


def test_the_daemon_is_killed_and_boxes_survive(own_daemon):
    daemon = own_daemon().start()
    box, asleep = daemon.client().create(limits=LIMITS), daemon.client().create()
    box.check("cd /tmp; x=kept", shell="default")
    box.exec("setsid sleep 7300 >/dev/null 2>&1 &")
    pid, groups = box.find_process("7300"), paddock.cgroup_dirs(box.id)
    paddock.until(lambda: paddock.comm(pid) == "sleep", "setsid has become sleep")
    post(asleep, "pause")
    daemon.kill_keeper()
    assert paddock.comm(pid) == "sleep" and all(path.exists() for path in groups.values())
    daemon.start()
    box, asleep = box.with_client(daemon.client()), asleep.with_client(daemon.client())
    assert box.check("echo $PWD $x", shell="default") == "/tmp kept\n"
    assert paddock.comm(pid) == "sleep"
    assert asleep.get()["status"] == "paused" and post(asleep, "resume")["status"] == "running"
    assert asleep.check("echo on") == "on\n"
    assert paddock.cgroup_dirs(box.id) == groups
    box.delete()
    assert paddock.wait_gone(pid, 0)
    assert not any(path.exists() for path in groups.values())
    assert Path(f"/proc/{asleep.pid1()}").exists()
