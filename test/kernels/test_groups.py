"""Where the daemon puts its control groups on a machine with cgroup v2 alone."""

import contextlib
import ctypes
import os
from pathlib import Path

import pytest

import paddock

TOP = Path("/sys/fs/cgroup")
pytestmark = pytest.mark.skipif(not (TOP / "cgroup.controllers").exists(), reason="needs cgroup v2 alone")
CLONE_NEWNS, CLONE_NEWCGROUP, MS_REC, MS_PRIVATE, MNT_DETACH = 0x20000, 0x02000000, 0x4000, 1 << 18, 2


@pytest.fixture
def group():
    """A group of the machine's own, as a container runtime makes one."""
    it = TOP / "pdk-container"
    (TOP / "cgroup.subtree_control").write_text("+cpu +memory +pids")
    it.mkdir()
    yield it

    def gone():
        for path, _, _ in os.walk(it, topdown=False):
            with contextlib.suppress(OSError):
                os.rmdir(path)
        return not it.exists()

    paddock.until(gone, "the group is removed")


def contained(group):
    """In the child: as in a container, the group is the root of what it sees."""
    def prepare():
        paddock.die_with_parent()
        libc = ctypes.CDLL(None, use_errno=True)
        (group / "cgroup.procs").write_text(str(os.getpid()))
        if libc.unshare(CLONE_NEWNS | CLONE_NEWCGROUP) or libc.mount(None, b"/", None, MS_REC | MS_PRIVATE, None) \
                or libc.umount2(str(TOP).encode(), MNT_DETACH) or libc.mount(b"cgroup2", str(TOP).encode(), b"cgroup2", 0, None):
            raise OSError(ctypes.get_errno(), "no namespaces for the daemon")

    return prepare


def test_in_a_container(group, own_daemon):
    """It makes way for its boxes: a group cannot have processes and limits of its children both."""
    daemon = own_daemon(prepare=contained(group)).start()
    box = daemon.client().create(limits={"memory_mb": 64, "pids": 30})
    [home] = [path for path in group.glob(f"paddock/*/{box.id}")]
    assert paddock.read(home / "memory.max").strip() == str(64 << 20) and paddock.read(home / "pids.max").strip() == "30"
    assert paddock.read(f"/proc/{daemon.keeper_pid}/cgroup").strip() == "0::/pdk-container/daemon"
    assert box.python("x = bytearray(200 << 20)", timeout_ms=paddock.ms(15_000)).signal


def test_in_a_group_with_others(own_daemon):
    """Nothing is changed in a group that is not ours: pytest is in it, too."""
    own = TOP / paddock.read("/proc/self/cgroup").strip().split("::/")[1]
    before = sorted(os.listdir(own)), paddock.read(own / "cgroup.subtree_control")
    daemon = own_daemon().start()
    box = daemon.client().create()
    assert str(paddock.cgroup_dirs(box.id)["unified"]).startswith(f"{TOP}/paddock/")
    assert (sorted(os.listdir(own)), paddock.read(own / "cgroup.subtree_control")) == before
    assert paddock.read(f"/proc/{daemon.keeper_pid}/cgroup") == paddock.read("/proc/self/cgroup")
