"""Attacks that must fail in a box, each with a control in which it succeeds.

The control runs the same code with less in its way (on the host, in a bare chroot,
in a bare mount namespace): an attack that fails everywhere would prove nothing.
"""

import ctypes
import json
import os
import shutil
import socket
import subprocess
import tempfile
import threading
from pathlib import Path

import pytest

import paddock

ATTACK = (Path(__file__).parent / "attack.py").read_text()
both_users = pytest.mark.parametrize("user", ["user", "root"])


def in_box(box, user, *arguments):
    output = box.python(ATTACK, *map(str, arguments), user=user, timeout_ms=paddock.ms(30_000))
    if output.exit_code >= 128:
        return {"success": False, "detail": f"killed by signal {output.signal}"}
    assert output.exit_code == 0, output
    return json.loads(output.out)


def outside(*arguments, prefix=(), **options):
    """The control. `prefix` weakens: for example `unshare -m`, so that the host's mounts stay as they are."""
    result = subprocess.run([*prefix, "/usr/bin/python3", "-c", ATTACK, *map(str, arguments)], capture_output=True, text=True,
                            timeout=30 * paddock.SLOW, **options)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def refused(verdict, secret=None):
    assert not verdict["success"], f"ESCAPE: {verdict['detail']}"
    assert secret is None or secret not in verdict["detail"], f"ESCAPE: {verdict['detail']}"


@pytest.fixture
def jail():
    """A directory to chroot into: the weakest of boxes. Has what python's start needs, by bind mounts of its own."""
    path = Path(tempfile.mkdtemp(prefix="pdk-jail-", dir="/var/tmp"))
    (path / "tmp").mkdir()
    (path / "proc").mkdir()
    yield path
    shutil.rmtree(path)


# ---- leaving the root directory -------------------------------------------


@both_users
@pytest.mark.parametrize("attack", ["chroot_fchdir", "dot_dot", "proc_root", "leaked_fds", "file_handles"])
def test_reading_the_hosts_file(box, user, attack, marker):
    path, secret = marker
    refused(in_box(box, user, attack, path), secret)


def test_control_chroot_fchdir(jail, marker):
    path, secret = marker
    assert outside("--jail", jail, "chroot_fchdir", path) == {"success": True, "detail": secret}


def test_control_dot_dot_and_proc_root(jail, marker):
    """In a bare chroot with the host's /proc, the root of any other process is the way out."""
    path, secret = marker
    prefix = ["unshare", "-m", "--propagation", "private", "sh", "-c", f'mount --rbind /proc {jail}/proc && exec "$@"', "sh"]
    assert outside("--jail", jail, "proc_root", path, prefix=prefix) == {"success": True, "detail": secret}
    verdict = outside("--jail", jail, "dot_dot", path, prefix=prefix)
    assert verdict == {"success": True, "detail": secret}


def test_control_leaked_fds(jail, marker):
    path, secret = marker
    prefix = ["unshare", "-m", "--propagation", "private", "sh", "-c", f'mount --rbind /proc {jail}/proc && exec "$@"', "sh"]
    leak = os.open("/", os.O_RDONLY | os.O_DIRECTORY)
    try:
        verdict = outside("--jail", jail, "leaked_fds", path, prefix=prefix, pass_fds=[leak])
    finally:
        os.close(leak)
    assert verdict == {"success": True, "detail": secret}


def test_control_file_handles(jail, marker):
    path, secret = marker
    kinds = {point: kind for _, point, _, kind, _, _ in paddock.mountinfo()}
    if kinds["/"] != "ext4":
        pytest.skip("the control knows the root inode of ext4 only")
    verdict = outside("--jail", "/", "file_handles", path)
    assert verdict == {"success": True, "detail": secret}


@both_users
@pytest.mark.parametrize("attack", ["bind_mount", "unmask"])
def test_mounts(box, user, attack, marker):
    refused(in_box(box, user, attack, marker[0]))


def test_control_mounts(marker):
    prefix = ["unshare", "-m", "--propagation", "private"]
    assert outside("bind_mount", marker[0], prefix=prefix)["success"]
    assert outside("unmask", marker[0], prefix=["unshare", "-m", "--propagation", "private", "sh", "-c",
                                                'mount -t tmpfs none /dev/shm && exec "$@"', "sh"])["success"]


# ---- the runtime ----------------------------------------------------------


@both_users
def test_overwrite_of_the_runtime(box, user):
    before = (paddock.BIN / "paddock-init").read_bytes()
    refused(in_box(box, user, "overwrite_runtime"))
    assert (paddock.BIN / "paddock-init").read_bytes() == before


def test_control_overwrite(workdir):
    program = workdir / "victim"
    shutil.copy("/bin/sleep", program)
    victim = subprocess.Popen([program, "100"])
    assert outside("overwrite_runtime", victim.pid)["success"]
    victim.wait()


@both_users
def test_memory_of_pid_1(box, user):
    verdict = in_box(box, user, "trace_pid_1")
    refused(verdict)
    assert box.check("echo alive") == "alive\n"


def test_control_memory():
    victim = subprocess.Popen(["sleep", "100"])
    verdict = outside("trace_pid_1", victim.pid)
    victim.kill()
    victim.wait()
    assert verdict["success"] and all(way in verdict["detail"] for way in ("ptrace", "process_vm_readv", "mem", "pidfd_getfd"))


@both_users
def test_namespaces_cannot_be_joined(box, user):
    refused(in_box(box, user, "join_namespaces"))


def test_control_namespaces():
    victim = subprocess.Popen(["unshare", "-m", "-u", "-i", "sleep", "100"])
    paddock.until(lambda: paddock.comm(victim.pid) == "sleep", "the victim runs")
    verdict = outside("join_namespaces", victim.pid)
    victim.kill()
    victim.wait()
    assert verdict["success"]


@both_users
def test_socket_of_pid_1(box, user):
    refused(in_box(box, user, "pid_1_socket", box.run_dir / "init.sock"))


def test_control_socket_of_pid_1(box):
    """Root of the host reaches it by its path: the walls are what keeps the box from it."""
    assert outside("pid_1_socket", box.run_dir / "init.sock")["success"]
    assert box.check("echo alive") == "alive\n", "a stranger's connection does PID 1 no harm"


# ---- the kernel's hooks ---------------------------------------------------

HOOKS = ["release_agent", "kernel_hooks", "kernel_memory", "user_namespace", "device_nodes", "raw_sockets", "keyrings",
         "terminal_injection"]


@both_users
@pytest.mark.parametrize("attack", HOOKS)
def test_kernel_hooks(box, user, attack):
    refused(in_box(box, user, attack))


@pytest.mark.parametrize("attack", HOOKS)
def test_control_kernel_hooks(attack):
    verdict = outside(attack, prefix=["unshare", "-m", "--propagation", "private"])
    if attack == "release_agent" and not verdict["success"] and "cgroup" not in paddock.read("/proc/filesystems"):
        pytest.skip("the kernel has no cgroup v1")
    assert verdict["success"], verdict


@both_users
def test_subvolumes_cannot_be_made(box, user):
    refused(in_box(box, user, "subvolume", "/workspace"))
    assert box.check("ls -A /workspace") == ""


def test_control_subvolume(box):
    """Without the filter the file system lets the same user make one in the same directory."""
    place = next(path for path in box.data_dir.iterdir() if path.name == "workspace")
    owner = str(place.stat().st_uid)
    verdict = outside("subvolume", place, prefix=["setpriv", "--reuid", owner, "--regid", owner, "--clear-groups"])
    if not verdict["success"] and "Permission denied" in verdict["detail"]:
        verdict = outside("subvolume", place)  # the way to it is root's
    assert verdict["success"] and "inode 256" in verdict["detail"], verdict


@both_users
def test_ioctl_requests(box, user):
    refused(in_box(box, user, "ioctl_requests"))


def test_control_ioctl_requests():
    assert outside("ioctl_requests")["success"]


# ---- PID 1 must answer -------------------------------------------------------


def answers(box, seconds=5):
    """PID 1 starts something for root, whom the box's user cannot stop, in time."""
    client = paddock.Client(box.client.daemon, box.client.key, timeout=seconds)
    try:
        return box.with_client(client).exec(["/bin/echo", "alive"], user="root").text == "alive\n"
    finally:
        client.close()


def hold_up(box, daemon, script, name):
    """Something of the box's user that goes on in the background."""
    box.put(f"/workspace/{name}", script.encode())
    client = daemon.client()
    run = paddock.Background(box.with_client(client).exec, ["/usr/bin/python3", f"/workspace/{name}"], timeout_ms=paddock.ms(20_000))
    paddock.until(lambda: box.read("/workspace/ready").status == 200, "the attack has begun")
    return run, client


def test_children_that_are_stopped_before_they_execute(make_box, daemon):
    """kill(-1, SIGSTOP) in a loop: whatever PID 1 starts as that user is stopped between clone and exec sooner or later."""
    box = make_box(limits={"cpu": 1, "pids": 200})
    run, client = hold_up(box, daemon, """
import os, signal, time
os.nice(0)
open("/workspace/ready", "w").close()
end = time.monotonic() + 8
while time.monotonic() < end:
    try: os.kill(-1, signal.SIGSTOP)
    except ProcessLookupError: pass
""", "stop.py")
    started = 0
    for _ in range(25):
        # Its output is of no interest, it may be stopped at any time; the answer has to come.
        response = box.try_exec(["/bin/true"], timeout_ms=100)
        assert response.status == 200, response
        started += 1
        assert answers(box), f"PID 1 is stuck after {started} starts"
    assert run.result().exit_code == 0
    client.close()
    assert box.check(["/bin/echo", "over"]) == "over\n"


def test_execution_of_a_file_with_a_lease(make_box, daemon):
    """The kernel lets an execve wait for the holder of a lease, 45 s by default."""
    box = make_box()
    run, client = hold_up(box, daemon, """
import fcntl, os, shutil, signal, time
signal.signal(signal.SIGIO, signal.SIG_IGN)
shutil.copy("/bin/true", "/workspace/leased")
fd = os.open("/workspace/leased", os.O_RDONLY)
fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_WRLCK)
open("/workspace/ready", "w").close()
time.sleep(8)
""", "lease.py")
    caller = daemon.client()
    leased = paddock.Background(box.with_client(caller).try_exec, ["/workspace/leased"], timeout_ms=paddock.ms(1000))
    for _ in range(10):
        assert answers(box, 2), "PID 1 waits for the lease"
    document = leased.result().json()
    assert document["timed_out"] or document["exit_code"] == 0, document  # the holder may have been too slow to matter
    assert run.result().exit_code == 0
    assert box.check(["/workspace/leased"]) == ""
    caller.close()
    client.close()


# ---- pools that all boxes share -------------------------------------------

POOLS = [("ptys", 65), ("aio_contexts", 8), ("inotify_instances", 129), ("huge_pages", 0)]


@both_users
@pytest.mark.parametrize("attack,most", POOLS)
def test_shared_pools(box, user, attack, most):
    """A box has its share, and its neighbour has its own whatever the first took."""
    refused(in_box(box, user, attack, most))


@pytest.mark.parametrize("attack,most", POOLS)
def test_control_shared_pools(attack, most):
    mount = 'mount -t devpts -o newinstance,ptmxmode=0666 none /dev/pts && exec "$@"'
    instances = Path("/proc/sys/fs/inotify/max_user_instances")
    if attack == "inotify_instances" and int(instances.read_text()) <= 256:
        pytest.skip("the host's own limit is as low: raising it for a control is not ours")
    assert outside(attack, most, prefix=["unshare", "-m", "--propagation", "private", "sh", "-c", mount, "sh"])["success"]


def test_one_box_leaves_ptys_to_others(box, make_box):
    other = make_box()
    hold = "import os, sys\nheld = []\ntry:\n  while True: held.append(os.open('/dev/ptmx', 2))\nexcept OSError: pass\n" \
           "print(len(held), flush=True)\nsys.stdin.read()"
    box.put("/workspace/hold.py", hold.encode())
    client = box.client.daemon.client()
    holder = paddock.Background(box.with_client(client).exec, "sleep 100 | python3 /workspace/hold.py", timeout_ms=paddock.ms(5000))
    box.find_process("/workspace/hold.py")
    assert other.python("import os; print(len([os.open('/dev/ptmx', 2) for _ in range(40)]))").text == "40\n"
    holder.result()
    client.close()
    box.check("rm /workspace/hold.py")


# ---- files that boxes share -----------------------------------------------

DEVICES = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev"]
OWN = [*DEVICES, "/etc/passwd", "/usr/bin/env", "/tmp", "/proc/self/status", "/proc/sys/kernel/ostype", "/dev/shm", "/run"]
SHARED = ["/proc/meminfo", "/sys/devices/system/cpu/online"]  # SECURITY.md, "Known gaps": the control


@both_users
def test_boxes_do_not_see_what_others_open(make_box, daemon, user):
    """/dev of a box is its own: one that all have would tell by inotify when a neighbour opens /dev/null, and be a common lock."""
    one, two, client = make_box(), make_box(), daemon.client()
    run = paddock.Background(in_box, one.with_client(client), user, "watch", *OWN, *SHARED)
    paddock.until(lambda: one.read("/tmp/watching").status == 200, "it watches")
    two.check("for f in " + " ".join(path for path in OWN + SHARED if path != "/dev/random") + "; do head -c 1 $f || ls $f; done >/tmp/out 2>&1; true")
    one.put("/tmp/enough", b"")
    seen = set(run.result()["detail"].split())
    client.close()
    assert set(SHARED) <= seen, "the control: it does see what is shared"
    # The others are opened by whatever is started in the box itself.
    quiet = {"/dev/zero", "/dev/full", "/dev/urandom", "/usr/bin/env", "/proc/sys/kernel/ostype", "/dev/shm", "/run"}
    assert not seen & quiet, f"seen of a neighbour: {seen & quiet}"


def test_boxes_share_no_lock(make_box, daemon):
    one, two, client = make_box(), make_box(), daemon.client()
    hold = "import fcntl, os, sys, time\nheld = [os.open(path, os.O_RDONLY) for path in sys.argv[1:]]\nfor one in held: fcntl.flock(one, fcntl.LOCK_EX)\n" \
           "open('/tmp/held', 'w').close()\ntime.sleep(100)"
    run = paddock.Background(one.with_client(client).try_exec, ["/usr/bin/python3", "-c", hold, *DEVICES, "/usr/bin/env", *SHARED],
                             timeout_ms=paddock.ms(5000))
    paddock.until(lambda: one.read("/tmp/held").status == 200, "all are locked")
    assert set(in_box(one, "user", "locks", *DEVICES)["detail"].split()) == set(DEVICES), "the control: in the same box they are"
    refused(in_box(two, "user", "locks", *DEVICES, "/usr/bin/env"))
    assert in_box(two, "user", "locks", *SHARED)["success"], "the control: what is shared"
    run.result()
    client.close()


# ---- others on the host ---------------------------------------------------


class Server:
    """A unix socket that gives its secret to whoever connects."""

    def __init__(self, address):
        self.secret = os.urandom(8).hex()
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.bind(address)
        self.socket.listen(16)
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self):
        while True:
            try:
                connection, _ = self.socket.accept()
            except OSError:
                return
            with connection:
                connection.sendall(self.secret.encode())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        # accept() holds the socket, and so its name: only behind the thread's end it is free again.
        self.socket.shutdown(socket.SHUT_RDWR)
        self.thread.join()
        self.socket.close()


@both_users
def test_abstract_socket_of_the_host(box, user):
    name = f"paddock-escape-{os.getpid()}"
    with Server("\0" + name) as server:
        assert outside("abstract_socket", name) == {"success": True, "detail": server.secret}
        refused(in_box(box, user, "abstract_socket", name), server.secret)


@both_users
def test_path_socket_of_the_host(box, user):
    path = tempfile.mktemp(prefix="pdk-", dir="/var/tmp")
    with Server(path) as server:
        os.chmod(path, 0o777)
        assert outside("path_socket", path) == {"success": True, "detail": server.secret}
        refused(in_box(box, user, "path_socket", path), server.secret)
    os.unlink(path)


@both_users
def test_api_from_within(box, user, daemon):
    assert outside("tcp", daemon.port)["success"]
    refused(in_box(box, user, "tcp", daemon.port))


@both_users
def test_shared_memory_of_the_host(box, user):
    key, secret = 0x7AD0C0DE, os.urandom(15).hex().encode()
    libc = ctypes.CDLL(None)
    libc.shmat.restype = ctypes.c_void_p
    number = libc.shmget(key, 4096, 0o1666)
    assert number >= 0
    try:
        ctypes.memmove(libc.shmat(number, None, 0), secret, len(secret))
        assert outside("shared_memory", key) == {"success": True, "detail": outside("shared_memory", key)["detail"]}
        assert secret.decode() in outside("shared_memory", key)["detail"]
        refused(in_box(box, user, "shared_memory", key), secret.decode())
    finally:
        libc.shmctl(number, 0, None)


@both_users
def test_processes_of_the_host(box, user):
    victim = subprocess.Popen(["paddock-escape-victim", "100"], executable="/bin/sleep")
    try:
        assert outside("foreign_processes", victim.pid)["success"]
        refused(in_box(box, user, "foreign_processes", victim.pid))
        assert victim.poll() is None
    finally:
        victim.kill()
        victim.wait()


class Gift:
    """A directory, a terminal and a file of the host, open to everybody, handed to whoever listens on a socket."""

    def __init__(self, workdir):
        self.top = Path(tempfile.mkdtemp(prefix="gift-", dir=workdir))
        self.top.chmod(0o777)
        for name in ("file", "other", "gone"):
            (self.top / name).write_text("content")
            (self.top / name).chmod(0o666)
        shutil.copy("/bin/true", self.top / "program")
        (self.top / "program").chmod(0o755)
        (self.top / "empty").mkdir()
        self.master, self.slave = os.openpty()
        os.chmod(os.ttyname(self.slave), 0o666)

    def give(self, path):
        def connect():
            s = socket.socket(socket.AF_UNIX)
            try:
                s.connect(str(path))
                return s
            except OSError:
                s.close()

        s = paddock.until(connect, "somebody listens")
        fds = [os.open(self.top, os.O_RDONLY | os.O_DIRECTORY), self.slave, os.open(self.top / "file", os.O_PATH)]
        socket.send_fds(s, [b"x"], fds)
        os.close(fds[0])
        os.close(fds[2])
        return s

    def close(self):
        os.close(self.master)
        os.close(self.slave)
        shutil.rmtree(self.top)


@both_users
def test_directory_of_the_host_by_descriptor(make_box, daemon, workdir, user):
    """Landlock is the last wall: a descriptor that leads out, however it came in, is of no use."""
    gift, box = Gift(workdir), make_box()
    client = daemon.client()
    try:
        run = paddock.Background(in_box, box.with_client(client), user, "directory_by_descriptor", "/workspace/socket")
        place = next(path for path in box.data_dir.iterdir() if path.name == "workspace")
        with gift.give(place / "socket"):
            verdict = run.result()
        # SECURITY.md, "Features by kernel".
        abi = ctypes.CDLL(None).syscall(444, None, 0, 1)
        lacks = {way for way, since in (("truncate a file", 3), ("ask a terminal", 5)) if abi < since}
        assert not verdict["success"] or set(verdict["detail"].split(", ")) <= lacks, f"ESCAPE: {verdict['detail']}"
        assert sorted(path.name for path in gift.top.iterdir()) == ["empty", "file", "gone", "other", "program"]
        assert (gift.top / "file").read_text() == "content" or "truncate a file" in lacks
    finally:
        client.close()
        gift.close()


def test_control_directory_by_descriptor(workdir):
    gift = Gift(workdir)
    place = Path(tempfile.mkdtemp(prefix="taker-", dir=workdir))
    place.chmod(0o777)
    run = paddock.Background(outside, "directory_by_descriptor", place / "socket",
                             prefix=["setpriv", "--reuid", "1000", "--regid", "1000", "--clear-groups"])
    try:
        with gift.give(place / "socket"):
            verdict = run.result()
        assert verdict["success"] and verdict["detail"] == (
            "ask a terminal, create, execute, fifo, link in, link out, list, mkdir, read a file, rename, rmdir, symlink, terminal, "
            "truncate a file, unlink, write a file"), verdict
    finally:
        gift.close()
        shutil.rmtree(place)


def test_set_user_id(box, workdir):
    program = workdir / "sid"
    shutil.copy("/usr/bin/id", program)
    program.chmod(0o4755)
    assert outside("set_user_id", program)["success"], "the control: outside, a user becomes root by it"
    program.unlink()
    box.check("cp /usr/bin/id /tmp/sid && chmod 4755 /tmp/sid", user="root")
    refused(in_box(box, "user", "set_user_id", "/tmp/sid"))
    box.check("rm /tmp/sid", user="root")


# ---- the file API as a confused deputy ------------------------------------


def test_symlink_race_in_the_file_api(make_box, daemon, marker):
    """A directory that is a symlink to the host's path at one moment and a directory at the next."""
    box = make_box()
    path, secret = marker
    host_directory = str(path.parent)
    box.put("/workspace/swap.py", f"""
import ctypes, os
os.makedirs("/workspace/real", exist_ok=True)
os.symlink("{host_directory}", "/workspace/link")
libc = ctypes.CDLL(None)
print("go", flush=True)
while True:
    libc.renameat2(-100, b"/workspace/real", -100, b"/workspace/link", 2)  # RENAME_EXCHANGE
""".encode())
    client = daemon.client()
    helper = paddock.Background(box.with_client(client).exec, ["/usr/bin/python3", "/workspace/swap.py"], timeout_ms=paddock.ms(4000))
    box.find_process("/workspace/swap.py")
    # The control: whoever resolves the path on the host's side falls for it.
    upper = next((top for top, directories, files in os.walk(box.data_dir) if "swap.py" in files), None)
    assert upper, "the box's upper directory is where the keeper said"
    fell = paddock.until(lambda: _reads(f"{upper}/link/{path.name}", secret), "the host falls for the symlink")
    assert fell
    for i in range(300):
        for name in ("link", "real"):
            response = box.read(f"/workspace/{name}/{path.name}")
            assert secret.encode() not in response.body, "ESCAPE: the host's file was read"
            box.put(f"/workspace/{name}/planted-{path.name}", b"x")
    assert helper.result().timed_out
    assert not os.path.exists(f"{host_directory}/planted-{path.name}"), "ESCAPE: a file was planted on the host"
    assert path.read_text() == secret
    client.close()


def _reads(path, secret):
    try:
        return Path(path).read_text() == secret
    except OSError:
        return False


def test_hard_links_to_root_files(box):
    """Protected hard links: a user's link to a file of root does not become the user's to write."""
    box.exec("ln /etc/shadow /workspace/h 2>/dev/null; ln /etc/passwd /workspace/h2 2>/dev/null")
    for name in ("h", "h2"):
        box.put(f"/workspace/{name}", b"changed")
    assert "root:" in box.check(["cat", "/etc/passwd"])


def test_a_box_cannot_fool_the_daemon_about_paths(box, marker, daemon):
    """/etc/passwd of the box decides about users in the box, and about nothing else."""
    path, secret = marker
    box.check(f"cp /etc/passwd /tmp/saved; echo 'evil:x:0:0::{path.parent}:/bin/sh' >> /etc/passwd", user="root")
    try:
        output = box.exec("id -u; cat ~/" + path.name, user="evil")
        assert secret not in output.text
        response = box.read(str(path), "user=evil")
        assert secret.encode() not in response.body
    finally:
        box.check("cat /tmp/saved > /etc/passwd", user="root")


def test_hostile_pid_1_stand_in(make_box, daemon):
    """A box that sends garbage through every pipe it has does not upset the api."""
    box = make_box()
    pid = daemon.api_pid()
    box.exec("cat /dev/urandom | head -c 5000000; cat /dev/urandom | head -c 5000000 >&2", timeout_ms=paddock.ms(10_000))
    assert daemon.api_pid() == pid and daemon.healthy()
