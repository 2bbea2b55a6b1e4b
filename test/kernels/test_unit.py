"""The systemd unit as `make install` installs it: start, restart, stop, and SIGKILL of the daemon, with boxes throughout.

Only in a guest: it installs into the machine and starts a service of it.
"""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import paddock

pytestmark = pytest.mark.skipif("PADDOCK_GUEST" not in os.environ, reason="installs into the machine that it runs on")
INSTALLED = Path("/work/install")
DATA, RUN = Path("/var/lib/paddock"), Path("/run/paddock")
OWN = Path("/sys/fs/cgroup/system.slice/paddock.service")


def systemctl(*words, check=True):
    done = subprocess.run(["systemctl", *words], capture_output=True, text=True, timeout=60 * paddock.SLOW)
    assert not check or done.returncode == 0, done.stderr + journal()
    return done.stdout.strip()


def journal():
    return subprocess.run(["journalctl", "-u", "paddock", "-n", "30", "--no-pager"], capture_output=True, text=True).stdout


class Unit:
    """What paddock.Client wants to know of a daemon."""

    host, port, run_dir, scheme = "127.0.0.1", 7080, RUN, "http"

    def __init__(self):
        self.seen = set()

    def saw(self, box_id):
        self.seen.add(box_id)

    def client(self):
        return paddock.Client(self, (DATA / "admin.key").read_text().strip())

    def main_pid(self):
        return int(systemctl("show", "-p", "MainPID", "--value", "paddock"))

    def ready(self):
        def look():
            try:
                return paddock.Client(self, timeout=5).get("/readyz").status == 200
            except OSError:
                return False

        paddock.until(look, "the unit answers", 30)
        return self.client()


@pytest.fixture(scope="module")
def unit():
    for top in ("usr", "etc"):
        shutil.copytree(INSTALLED / top, f"/{top}", dirs_exist_ok=True, symlinks=True)
    systemctl("daemon-reload")
    systemctl("start", "paddock")
    it = Unit()
    client = it.ready()
    yield it
    for box in client.list():
        client.delete(f"/v1/sandboxes/{box['id']}")
    systemctl("stop", "paddock")


@pytest.fixture
def box(unit):
    client = unit.client()
    it = client.create(limits={"memory_mb": 128, "pids": 50})
    it.check("cd /tmp; x=kept", shell="default")
    yield it
    it.with_client(unit.ready()).delete()


def check(unit, box, pid):
    """The same box as before, with its shell, its limits and its group."""
    again = box.with_client(unit.ready())
    assert again.pid1() == pid and again.get()["status"] == "running"
    assert again.check("echo $PWD $x", shell="default") == "/tmp kept\n"
    assert paddock.cgroup_dirs(box.id)
    return again


def has_leaves():
    """systemd 254 and newer puts the daemon into a leaf of the unit's group (DelegateSubgroup=)."""
    return int(re.match(r"systemd (\d+)", systemctl("--version"))[1]) >= 254


def is_below_the_unit():
    return has_leaves() or "memory" in paddock.cgroup_mounts()


def test_boxes_are_where_a_restart_leaves_them(unit, box):
    """Below the unit's own group; with v2 only if systemd can put the next daemon beside them."""
    groups = paddock.cgroup_dirs(box.id)
    for controller, path in groups.items():
        if controller == "unified" and (path / "memory.max").exists():
            assert str(path).startswith(f"{OWN}/" if has_leaves() else "/sys/fs/cgroup/paddock/")
            assert paddock.read(path / "memory.max").strip() == str(128 << 20)
        else:
            assert "/system.slice/paddock.service/" in str(path), groups
    if OWN.exists() and has_leaves():
        assert paddock.read(OWN / "cgroup.procs") == "", "it stays a group that can have limited children"
        assert str(unit.main_pid()) in paddock.read(OWN / "daemon/cgroup.procs").split()
        assert paddock.read(OWN / "daemon/cpu.weight") == "1000\n"
    elif OWN.exists():
        assert paddock.read(OWN / "cgroup.subtree_control").strip() == "", "it stays a group that a process can be put in"
        assert not [path for path in OWN.iterdir() if path.is_dir()], "nothing is left there"


def test_limits_of_the_unit_bound_boxes(unit):
    if not is_below_the_unit():
        pytest.skip("boxes are not below the unit with cgroup v2 and systemd older than 254")
    grow = ["/usr/bin/python3", "-c", "x = bytearray(400 << 20)"]
    used = int(systemctl("show", "-p", "MemoryCurrent", "--value", "paddock"))
    box, other = (unit.client().create(limits={"memory_mb": 600}) for _ in range(2))
    systemctl("set-property", "--runtime", "paddock", f"MemoryMax={used + (150 << 20)}")
    try:
        response = box.try_exec(grow, timeout_ms=paddock.ms(15_000))
        # The kernel takes whom it likes of the unit, and the daemon last: the program, perhaps PID 1 of the box with it.
        assert response.code() == "wrong_state" if response.status != 200 else response.json()["signal"], response
    finally:
        systemctl("set-property", "--runtime", "paddock", "MemoryMax=infinity")
    assert systemctl("is-active", "paddock") == "active"
    assert other.exec(grow, timeout_ms=paddock.ms(15_000)).exit_code == 0
    for each in (box, other):
        each.delete()


def test_enough_memory_is_all_that_a_box_takes(unit, box):
    output = box.python("x = bytearray(400 << 20)", timeout_ms=paddock.ms(15_000))
    assert output.signal, output
    assert systemctl("is-active", "paddock") == "active", "the unit does not fall with a box (OOMPolicy)"


def test_boxes_are_not_spared_as_the_daemon_is(unit, box):
    """When memory runs out: what the unit has by OOMScoreAdjust= is not to be had in a box."""
    assert int(paddock.read(f"/proc/{unit.main_pid()}/oom_score_adj")) == -500
    assert int(paddock.read(f"/proc/{box.pid1()}/oom_score_adj")) == 0
    for wish in (-500, -1):
        assert "ermission denied" in box.exec(f"echo {wish} > /proc/self/oom_score_adj", user="root").err.decode()
    assert box.check("echo 0 > /proc/self/oom_score_adj; cat /proc/self/oom_score_adj", user="root") == "0\n"


def test_restart(unit, box):
    pid, main = box.pid1(), unit.main_pid()
    systemctl("restart", "paddock")
    check(unit, box, pid)
    assert unit.main_pid() != main


def test_stop_and_start(unit, box):
    pid = box.pid1()
    systemctl("stop", "paddock")
    assert Path(f"/proc/{pid}").exists(), "sandboxes go on"
    systemctl("start", "paddock")
    check(unit, box, pid)
    if (OWN / "daemon").exists():  # made anew
        assert paddock.read(OWN / "daemon/cpu.weight") == "1000\n"


def test_sigkill(unit, box):
    """systemd starts the next daemon by itself."""
    pid, main = box.pid1(), unit.main_pid()
    paddock.kill(main)
    paddock.until(lambda: unit.main_pid() not in (0, main), "systemd has started it again", 30)
    check(unit, box, pid)


def test_new_boxes_after_all_that(unit, box):
    other = unit.client().create(limits={"memory_mb": 64})
    homes = [{path.parent for path in paddock.cgroup_dirs(each.id).values()} for each in (box, other)]
    assert homes[0] == homes[1], "a restarted daemon keeps to its place"
    groups = paddock.cgroup_dirs(other.id)
    other.delete()
    assert groups and not any(path.exists() for path in groups.values())


def test_systemd_leaves_boxes_their_controllers(unit, box):
    """systemd enables controllers for its units and takes them away again: not from boxes."""
    before = {path: sorted(os.listdir(path)) for path in paddock.cgroup_dirs(box.id).values()}
    other = Path("/run/systemd/system/pdk-other.service")
    other.write_text("[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/bin/true\nCPUQuota=50%\nMemoryMax=100M\nTasksMax=20\n")
    systemctl("daemon-reload")
    systemctl("start", "pdk-other")
    systemctl("stop", "pdk-other")
    other.unlink()
    systemctl("daemon-reload")
    assert {path: sorted(os.listdir(path)) for path in paddock.cgroup_dirs(box.id).values()} == before
    assert box.check("echo on") == "on\n"
