"""Machines that are laid out in other ways: each gives a working box and names the fallback, or refuses with a reason.

All of it is simulated in private namespaces: file systems in files, devices that are hidden behind others, control groups
and sysfs that are read-only, root without its capabilities, a container's root.
"""

import contextlib
import ctypes
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

import paddock
from test_doctor import doctor

MS_RDONLY, MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = 1, 32, 4096, 16384, 1 << 18
CLONE_NEWNS = 0x20000
PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}


def libc_call(name, *arguments):
    libc = ctypes.CDLL(None, use_errno=True)
    if getattr(libc, name)(*arguments) != 0:
        raise OSError(ctypes.get_errno(), f"{name}: {os.strerror(ctypes.get_errno())}")


def mount(source, target, kind, flags, data=None):
    libc_call("mount", *(part.encode() if part else None for part in (source, str(target), kind)), ctypes.c_ulong(flags),
              data.encode() if data else None)


def private(*steps, parent=True):
    """For preexec_fn: a mount namespace of its own in which the steps are taken."""
    def prepare():
        if parent:
            paddock.die_with_parent()
        libc_call("unshare", CLONE_NEWNS)
        mount(None, "/", None, MS_REC | MS_PRIVATE)
        for step in steps:
            step()
    return prepare


def hide_loops():
    mount("/dev/null", "/dev/loop-control", None, MS_BIND)


def freeze_sys():
    for _, point, *_ in reversed(paddock.mountinfo()):
        if point == "/sys" or point.startswith("/sys/"):
            mount(None, point, None, MS_REMOUNT | MS_BIND | MS_RDONLY)


@contextlib.contextmanager
def serving(make, **options):
    """A started daemon of the fixture's, with a client; it is checked and finished by the fixture."""
    daemon = make(**options).start()
    client = daemon.client()
    yield daemon, client
    client.close()


def parts(client):
    return {part["name"]: part for part in client.get("/v1/posture").json()["parts"]}


def works(client, **spec):
    """A box runs, writes where boxes write, keeps its memory limit, is snapshotted and forked."""
    with paddock.boxes_of(client) as make:
        box = make(limits={"memory_mb": 64}, **spec)
        assert box.check("echo 1 > /workspace/a; echo 2 > /usr/local/b; cat /workspace/a /usr/local/b; id -u", user="root") == "1\n2\n0\n"
        assert box.exec("head -c 256M /dev/zero | tail").exit_code != 0
        assert client.post(box.path + "/snapshots", {"name": "of"}).status == 201
        assert make(snapshot="of", limits={"memory_mb": 64}).check("cat /usr/local/b") == "2\n"
        assert client.delete("/v1/snapshots/of").status == 204


# ---- file systems of the data directory -------------------------------------


@pytest.fixture
def own_mounts():
    """This thread, and what it starts, in a mount namespace of its own: nobody else holds what is mounted."""
    home = os.open("/proc/thread-self/ns/mnt", os.O_RDONLY)
    here = os.getcwd()
    libc_call("unshare", CLONE_NEWNS)
    mount(None, "/", None, MS_REC | MS_PRIVATE)
    yield
    libc_call("setns", home, CLONE_NEWNS)
    os.close(home)
    os.chdir(here)


@pytest.fixture
def mounted(tmp_path, own_mounts):
    """Mounts a new file system, in a file."""
    points = []

    def make(kind, size="4G"):
        point = Path(f"/var/tmp/pdk-layout-{os.getpid()}-{kind}")
        point.mkdir()
        points.append(point)
        if kind == "tmpfs":
            subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "none", point], check=True)
            return point
        if not shutil.which(f"mkfs.{kind}"):
            pytest.skip(f"no mkfs.{kind} here")
        image = tmp_path / kind
        with open(image, "wb") as file:
            file.truncate(4 << 30)
        subprocess.run([f"mkfs.{kind}", "-q", image], check=True, stdout=subprocess.DEVNULL)
        done = subprocess.run(["mount", "-o", "loop", image, point], capture_output=True, text=True)
        if done.returncode:
            pytest.skip(f"this kernel does not mount {kind}: {done.stderr}")
        return point

    yield make
    for point in points:
        subprocess.run(["umount", point], check=False)
        point.rmdir()


class On(paddock.Daemon):
    """A daemon whose data lie elsewhere than its run directory."""

    def at(self, data):
        self.data_dir = data / "data"
        return self


@pytest.fixture
def make_on(workdir, own_mounts):
    made = []

    def make(data, **options):
        base = Path(tempfile.mkdtemp(prefix="layout", dir=workdir))
        base.chmod(0o755)
        made.append(On(base, **options).at(data))
        return made[-1]

    yield make
    for it in made:
        if it.process:
            it.finish()


@pytest.mark.parametrize("kind,backend,storage", [
    ("ext4", "auto", "btrfs in a loop file on ext4"),
    ("xfs", "auto", "btrfs in a loop file on xfs"),
    ("btrfs", "auto", "subvolumes on btrfs"),
    ("tmpfs", "auto", "btrfs in a loop file on tmpfs"),
    ("ext4", "copy", "plain directories on ext4"),
    ("xfs", "copy", "plain directories on xfs"),
    ("tmpfs", "copy", "plain directories on tmpfs"),
])
def test_file_systems(mounted, make_on, kind, backend, storage):
    """The same doctor, the same words: what it says is what the daemon then does."""
    data, environment = mounted(kind), {"PADDOCK_DATA_BACKEND": backend, "PADDOCK_DATA_SIZE_MB": "1024"}
    code, found = doctor(data, environment=environment)
    assert found["storage"] == ("ok", storage) and found["limit.disk"][0] == ("--" if backend == "copy" else "ok"), found
    if found["idmap"][0] == "FAIL":  # tmpfs before Linux 6.3
        assert code == 1 and f"lies on {kind}, which this kernel cannot mount with shifted ids" in found["idmap"][1]
        return
    assert code == 0 and found["box"][0] == "ok", found
    with serving(lambda **options: make_on(data, **options), environment=environment) as (daemon, client):
        assert parts(client)["storage"]["detail"] == storage
        works(client)
        response = client.try_create(limits={"disk_mb": 20})
        if backend == "copy":
            assert response.code() == "cannot_isolate", response
        else:
            box = paddock.Box(client, response.json())
            assert box.exec("head -c 40M /dev/urandom > /workspace/big").exit_code != 0
            box.delete()
        daemon.finish()


# ---- devices ------------------------------------------------------------------


def test_without_loop_devices(own_daemon):
    daemon = own_daemon(prepare=private(hide_loops))
    code, found = doctor(daemon.base, preexec_fn=private(hide_loops, parent=False))
    assert code == 1 and found["storage"][0] == "FAIL"
    with pytest.raises(AssertionError, match="no loop device for disk.btrfs .*set data.backend: copy, which has no disk limits"):
        daemon.start()
    assert "no loop device for disk.btrfs" in found["storage"][1]
    daemon.environment["PADDOCK_DATA_BACKEND"] = "copy"
    with serving(lambda: daemon) as (_, client):
        assert parts(client)["limit.disk"]["ok"] is False
        works(client)


def test_without_mkfs(own_daemon, tmp_path):
    """btrfs-progs are not installed: only what the daemon itself calls is in its PATH."""
    daemon = own_daemon(environment={"PATH": str(tmp_path)})
    with pytest.raises(AssertionError, match="mkfs.btrfs is not installed .*or set data.backend: copy"):
        daemon.start()
    del daemon.environment["PATH"]
    daemon.start()


def test_without_sk_lookup(own_daemon):
    """The way that connections come to the gate is named, and what is lost without any."""
    with serving(own_daemon, environment={"PADDOCK_EGRESS_CAPTURE": "proxy"}) as (_, client):
        part = parts(client)["egress.capture"]
        assert "proxy port and DNS alone" in part["detail"]
        assert client.try_create(require=["egress.capture"]).code() == "cannot_isolate"
        works(client)


# ---- control groups, containers --------------------------------------------------


def test_control_groups_are_read_only(own_daemon):
    """No limits, no boxes: the daemon says why when it starts, when it is asked, and in each refusal."""
    daemon = own_daemon(prepare=private(freeze_sys))
    code, found = doctor(daemon.base, preexec_fn=private(freeze_sys, parent=False))
    assert code == 1
    for name in ("limit.memory", "limit.cpu", "limit.pids"):
        assert found[name][0] == "FAIL" and found[name][1].endswith("Read-only file system"), found[name]
    assert found["box"] == ("FAIL", "not tried, since limit.memory failed")
    with serving(lambda: daemon) as (_, client):
        assert "this machine cannot isolate a sandbox: limit.memory: /sys/fs/cgroup" in daemon.log()
        response = client.try_create()
        assert response.code() == "cannot_isolate", response
        assert "limit.memory: " in response.json()["error"]["message"] and "Read-only" in response.json()["error"]["message"]
        assert client.get("/readyz").status == 503
        assert client.get("/v1/posture").json()["ok"] is False


def only_v2():
    """What a container sees on a machine with the unified hierarchy."""
    for _, point, *_ in reversed(paddock.mountinfo()):
        if point.startswith("/sys/fs/cgroup/"):
            libc_call("umount2", point.encode(), 2)
    mount("none", "/sys/fs/cgroup", "cgroup2", 0)
    mount(None, "/sys/fs/cgroup", None, MS_REMOUNT | MS_BIND | MS_RDONLY)


def test_the_unified_hierarchy_is_read_only(tmp_path):
    """It does not say that there is none."""
    code, found = doctor(tmp_path, preexec_fn=private(only_v2, parent=False))
    assert code == 1
    for name in ("limit.memory", "limit.cpu", "limit.pids"):
        assert found[name][0] == "FAIL" and found[name][1].startswith("/sys/fs/cgroup") and found[name][1].endswith(": Read-only file system"), found[name]


def test_a_container_without_privilege(own_daemon):
    """Read-only sysfs, a pid namespace, and no CAP_SYS_ADMIN: refused before anything is made."""
    daemon = own_daemon(prepare=private(freeze_sys))
    inner = paddock.Daemon.command(daemon)
    daemon.command = lambda: ["unshare", "--pid", "--fork", "--kill-child", "setpriv", "--bounding-set", "-sys_admin,-net_admin", *inner]
    with pytest.raises(AssertionError, match=r"root lacks capabilities \(sys_admin, net_admin\): .*privileged container"):
        daemon.start()
    assert not daemon.data_dir.exists()


def test_a_rootless_container(own_daemon):
    daemon = own_daemon()
    inner = paddock.Daemon.command(daemon)
    daemon.command = lambda: ["unshare", "--user", "--map-root-user", *inner]
    with pytest.raises(AssertionError, match=r"root of a user namespace \(a rootless container\?\) cannot make sandboxes"):
        daemon.start()
    assert not daemon.data_dir.exists()


@pytest.fixture
def over_root(workdir):
    """A preexec step: the root is an overlay over the machine's own, as a container's is."""
    store = workdir / "container"
    for name in ("upper", "work", "root"):
        (store / name).mkdir(parents=True)

    def step():
        mount("overlay", store / "root", "overlay", 0, f"lowerdir=/,upperdir={store}/upper,workdir={store}/work")
        for name in ("proc", "sys", "dev", "run", "var/tmp", "work"):
            if os.path.isdir(f"/{name}"):
                mount(f"/{name}", store / "root" / name, None, MS_BIND | MS_REC)
        # Not chroot: who is in one makes no user namespaces.
        os.chdir(store / "root")
        libc_call("syscall", ctypes.c_long(PIVOT_ROOT[os.uname().machine]), b".", b".")
        libc_call("umount2", b".", 2)  # MNT_DETACH
        os.chdir("/")

    yield step
    shutil.rmtree(store, ignore_errors=True)


def test_a_privileged_container(own_daemon, over_root):
    """Its /usr lies on an overlay, which cannot be a layer of boxes: said at once, and not by the first create's errno."""
    daemon = own_daemon(prepare=private(over_root))
    code, found = doctor(daemon.base, preexec_fn=private(over_root, parent=False))
    assert code == 1 and found["idmap"][0] == "FAIL", found
    assert "/usr lies on overlay, which this kernel cannot mount with shifted ids" in found["idmap"][1]
    with serving(lambda: daemon) as (_, client):
        assert "/usr lies on overlay" in client.try_create().json()["error"]["message"]
    # With images of its own it works: theirs lie on the data directory.
    code, found = doctor(daemon.base, environment={"PADDOCK_DEFAULTS_IMAGE": "mine"}, preexec_fn=private(over_root, parent=False))
    assert code == 0 and found["image.machine"][0] == "--" and found["box"][0] == "ok", found
