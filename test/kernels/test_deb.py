"""The Debian package on a machine with systemd: installed, upgraded under sandboxes that run, removed, purged.

Only in a guest: it installs into the machine. The payload has two packages of the same programs, one with a lower version;
PADDOCK_BEFORE names a real earlier one instead (see machine.py), as `make test-upgrade` does.
"""

import os
import subprocess
from pathlib import Path

import pytest

import paddock
from test_unit import DATA, Unit, check, systemctl

pytestmark = pytest.mark.skipif("PADDOCK_GUEST" not in os.environ, reason="installs into the machine that it runs on")
SETTINGS = Path("/etc/paddock/paddock.yaml")


def dpkg(*words):
    done = subprocess.run(["dpkg", *map(str, words)], capture_output=True, text=True, timeout=120 * paddock.SLOW,
                          env=os.environ | {"DEBIAN_FRONTEND": "noninteractive"})
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def package(which):
    [found] = Path("/work/deb", which).glob("*.deb")
    return found


def version():
    return subprocess.run(["dpkg-query", "-W", "-f", "${Version}", "paddock"], capture_output=True, text=True, check=True).stdout


def as_user(*command):
    return subprocess.run(["setpriv", "--reuid=4321", "--regid=4321", *command], capture_output=True, text=True,
                          env=os.environ | {"HOME": "/nonexistent"})


@pytest.fixture(scope="module")
def unit():
    dpkg("-i", package("before"))
    it = Unit()
    it.ready()
    yield it
    if SETTINGS.exists():
        dpkg("--purge", "paddock")


def test_install(unit):
    """It runs, also after the next boot, and its group reads the key; others do not."""
    assert systemctl("is-enabled", "paddock") == "enabled"
    key = (DATA / "admin.key").stat()
    group = subprocess.run(["getent", "group", "paddock"], capture_output=True, text=True).stdout.split(":")
    assert (key.st_mode & 0o777, key.st_uid, key.st_gid) == (0o640, 0, int(group[2]))
    refused = as_user("--clear-groups", "paddock", "ls")
    assert refused.returncode and "admin.key" in refused.stderr
    member = as_user(f"--groups={group[2]}", "paddock", "ls", "-q")
    assert (member.returncode, member.stdout) == (0, ""), member.stderr
    for file in ("bash-completion/completions/paddock", "zsh/vendor-completions/_paddock", "fish/vendor_completions.d/paddock.fish"):
        assert Path("/usr/share", file).stat().st_size > 1000


def test_upgrade(unit):
    """The new programs serve, and a sandbox of the old ones goes on with its shell and its settings."""
    old, main = version(), unit.main_pid()
    box = unit.client().create(limits={"memory_mb": 128})
    box.check("cd /tmp; x=kept", shell="default")
    box.check("cat > /tmp/note <<< before; sleep 7890 >/dev/null 2>&1 & echo $! > /tmp/pid")
    others = [unit.client().create(limits={"memory_mb": 64}, name=f"other-{n}") for n in range(2)]
    pids = [each.pid1() for each in others]
    assert others[1].client.post(f"{others[1].path}/pause", {}).status == 200
    pid = box.pid1()
    SETTINGS.write_text(SETTINGS.read_text() + "\nlog_level: debug\n")
    dpkg("-i", "--force-confdef", "--force-confold", package("now"))
    assert version() != old and subprocess.run(["dpkg", "--compare-versions", version(), "gt", old]).returncode == 0
    again = check(unit, box, pid)
    assert unit.main_pid() != main, "the new programs run"
    assert again.check("cat /tmp/note; tr '\\0' ' ' < /proc/$(cat /tmp/pid)/cmdline") == "before\nsleep 7890 "
    others = [each.with_client(again.client) for each in others]
    assert [each.pid1() for each in others] == pids and others[0].check("echo on") == "on\n"
    assert others[1].get()["status"] == "paused" and again.client.post(f"{others[1].path}/resume", {}).status == 200
    assert others[1].check("echo on") == "on\n"
    assert SETTINGS.read_text().endswith("log_level: debug\n")
    for each in (again, *others):
        each.delete()


def test_remove(unit):
    """Sandboxes stop, since nobody could reach them any more; what they wrote is there when the package is again."""
    box = unit.ready().create()
    box.check("echo kept > /workspace/note")
    pid = box.pid1()
    dpkg("--remove", "paddock")
    assert not Path(f"/proc/{pid}").exists() and SETTINGS.exists() and not Path("/usr/bin/paddock").exists()
    dpkg("-i", "--force-confdef", "--force-confold", package("now"))
    again = box.with_client(unit.ready())
    assert again.get()["status"] == "stopped"
    assert again.client.post(f"{again.path}/start", {}).status == 200
    assert again.check("cat /workspace/note") == "kept\n"
    again.delete()


def test_purge(unit):
    """The settings go; the data does not, and that is said."""
    said = dpkg("--purge", "paddock")
    assert str(DATA) in said and (DATA / "admin.key").exists() and not SETTINGS.exists()
    assert systemctl("is-active", "paddock", check=False) == "inactive"
