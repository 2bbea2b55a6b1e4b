"""The next sandbox is made ahead as far as it can be, and used by a create that fits; groups of dead daemons are removed.

Whether it was used is told by the run directory: RUN/next becomes RUN/boxes/ID, with its inode.
"""

import contextlib
import hashlib
import os
import signal
from pathlib import Path

import pytest

import paddock


@pytest.fixture(scope="module")
def daemon(daemon_factory):
    daemon = daemon_factory("ahead").start()
    yield daemon
    daemon.finish()


def instance(daemon):
    return hashlib.sha256(str(daemon.run_dir).encode()).hexdigest()[:16]


def groups(daemon, name=""):
    """Of all hierarchies: the daemon's own directory, or a group in it."""
    found = [path / name for path in paddock.cgroup_dirs(instance(daemon)).values()]
    return [path for path in found if path.is_dir()]


def is_empty(path):
    events = path / "cgroup.events"
    return "populated 0" in events.read_text() if events.exists() else not (path / "cgroup.procs").read_text()


def following(daemon):
    """The inode of what the next sandbox begins with, once all of it is there."""
    def made():
        with contextlib.suppress(OSError):  # a descriptor that was just closed
            return look()
        return None

    def look():
        kinds = [os.readlink(f"/proc/{daemon.keeper_pid}/fd/{fd}").split(":")[0] for fd in paddock.namespace_fds(daemon.keeper_pid)]
        there = (daemon.run_dir / "next").is_dir() and (daemon.disk / "spare" / "next").is_dir() and "user" in kinds
        return there and (daemon.run_dir / "next").stat().st_ino

    return paddock.until(made, "the next sandbox is made ahead")


def began_with(box):
    return box.run_dir.stat().st_ino


def test_used_by_the_next_create(daemon):
    client = daemon.client()
    first = client.create()
    first.put("/workspace/first", b"x")
    for _ in range(3):
        made = following(daemon)
        box = client.create()
        assert began_with(box) == made
        assert box.check("hostname").strip() == box.id
        assert box.check("ls -A /workspace /tmp; id -un") == "/tmp:\n\n/workspace:\nuser\n"
        assert paddock.read(f"/proc/{box.pid1()}/uid_map") != paddock.read(f"/proc/{first.pid1()}/uid_map")
        assert all((path / box.id).is_dir() for path in groups(daemon)), "its groups have its name"
        box.delete()


def test_named_fits_too(daemon):
    client = daemon.client()
    client.create().delete()
    made = following(daemon)
    box = client.create(name="some-name")
    assert began_with(box) == made and box.check("hostname") == "some-name\n"
    box.delete()


@pytest.mark.parametrize("other", [{"limits": {"memory_mb": 200}}, {"limits": {"pids": 77}}, {"limits": {"disk_mb": 64}},
                                   {"readonly_root": True}, {"sudo": False}])
def test_not_used_for_another_kind(daemon, other):
    client = daemon.client()
    client.create().delete()
    made = following(daemon)
    answer = client.try_create(**other)
    assert answer.status in (201, 400), answer
    if answer.status == 400:
        pytest.skip(f"not on this machine: {answer.json()}")
    box = paddock.Box(client, answer.json())
    assert began_with(box) != made
    # and the next is likely to be the same
    made = following(daemon)
    again = client.create(**other)
    assert began_with(again) == made
    if "pids" in other.get("limits", {}):
        for each in (box, again):
            path = paddock.cgroup_dirs(each.id)["pids"] / "pids.max" if "pids" in paddock.cgroup_dirs(each.id) else None
            assert path is None or path.read_text() == "77\n"
    box.delete()
    again.delete()


def test_killed_keeper_leaves_nothing_of_it(own_daemon):
    daemon = own_daemon().start()
    daemon.client().create().delete()
    following(daemon)
    daemon.kill_keeper()
    assert (daemon.run_dir / "next").is_dir(), "the control"
    daemon.start()
    assert not (daemon.run_dir / "next").exists() and not (daemon.disk / "spare" / "next").exists()
    paddock.until(lambda: not groups(daemon, "next"), "the groups are gone")
    box = daemon.client().create()
    assert box.check("echo works") == "works\n"


def test_stopped_keeper_leaves_nothing_of_it(own_daemon):
    daemon = own_daemon().start()
    box = daemon.client().create()
    following(daemon)
    daemon.stop()
    assert not (daemon.run_dir / "next").exists() and not groups(daemon, "next")
    daemon.start()
    assert box.with_client(daemon.client()).check("echo works") == "works\n"


@pytest.fixture
def apart():
    """The environment of daemons with a parent of their own for their groups: one elsewhere on the machine looks only below its own."""
    parent = f"pdk-ahead-{os.getpid()}"
    yield {"PADDOCK_CGROUP_PARENT": parent}
    for path in paddock.cgroup_dirs(parent).values():
        path.rmdir()


def test_groups_of_dead_daemons_are_removed(daemon_factory, apart):
    dead, living = (daemon_factory(name, environment=apart).start() for name in ("dead", "living"))
    box = living.client().create()
    dead.client().create().delete()
    os.kill(dead.keeper_pid, signal.SIGKILL)
    dead.process.wait()
    assert groups(dead), "the control"
    stranger = daemon_factory("stranger").start()
    assert groups(dead), "another parent's groups are not looked at"
    third = daemon_factory("third", environment=apart).start()
    paddock.until(lambda: not groups(dead), "the groups of the dead one are gone")
    assert len(groups(living)) == len(groups(third)) > 0 and len(groups(stranger)) == len(groups(third))
    stranger.finish()
    assert box.check("echo works") == "works\n" and living.client().create().check("echo new") == "new\n"
    third.finish()
    dead.process = None
    dead.start().finish()
    living.finish()


def test_groups_with_processes_stay(daemon, daemon_factory):
    """A daemon was killed, and its sandboxes go on: the next one finds them."""
    dead = daemon_factory("survivors").start()
    box, ended = dead.client().create(), dead.client().create()
    pid = ended.pid1()
    dead.kill_keeper()
    paddock.kill(pid)
    assert paddock.wait_gone(pid)
    empty = [path / ended.id for path in groups(dead)]
    paddock.until(lambda: all(is_empty(path) for path in empty), "the kernel has taken it out of its groups")
    other = daemon_factory("other").start()
    paddock.until(lambda: not any(map(Path.exists, empty)), "the groups of one that ended are gone")
    assert all((path / box.id).is_dir() for path in groups(dead))
    other.finish()
    dead.start()
    assert box.with_client(dead.client()).check("echo works") == "works\n"
    dead.finish()
