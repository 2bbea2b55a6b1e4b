"""What a box sees of its disk: statfs tells the limit and what is used of it, to every program, and for the box's own disk alone."""

import json

import pytest

import paddock

MB = 1 << 20
LIMIT = 300 * MB
FILL = "head -c {} /dev/urandom > {}"

# The kernel's own answer, past the filter (SECCOMP_UNASKED), beside the one that programs get.
BOTH = """
import ctypes, json, os, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
NUMBERS = {"x86_64": (137, 138), "aarch64": (43, 44)}[os.uname().machine]
def ask(which, what, third, room=120):
    buffer = ctypes.create_string_buffer(room) if room else None
    if libc.syscall(NUMBERS[which], what, buffer, ctypes.c_ulong(third)) < 0:
        return ctypes.get_errno()
    return list(struct.unpack("<7Q", buffer.raw[:56]))
def both(which, what, room=120):
    return [ask(which, what, 0, room), ask(which, what, 0x70616464, room)]
"""


@pytest.fixture(scope="module")
def seen(daemon):
    client = daemon.client()
    box = client.create(limits={"disk_mb": LIMIT // MB})
    yield box
    box.delete()
    client.close()


def usage(box, path="/", **options):
    """Bytes in all and bytes used, as df reckons them."""
    return box.python_json(f"import json, shutil; u = shutil.disk_usage({path!r}); print(json.dumps([u.total, u.used]))", **options)


@pytest.mark.parametrize("user", ["user", "root"])
def test_every_program_is_told(seen, user):
    rows = [line.split() for line in seen.check("df -B1 --output=size,used,avail / /workspace /tmp /home/user", user=user).splitlines()[1:]]
    for size, used, avail in rows:
        assert int(size) == LIMIT and int(used) + int(avail) == LIMIT, rows
    assert len(rows) == 4
    assert usage(seen, user=user)[0] == LIMIT


def test_node_is_told(seen):
    assert json.loads(seen.check(["/usr/bin/node", "-p", "s = require('fs').statfsSync('/workspace'); s.blocks * s.bsize"])) == LIMIT


def test_by_relative_path_and_descriptor(seen):
    seen.check("mkdir -p /workspace/dir && ln -sfn dir /workspace/link")
    totals = seen.python_json("""
import json, os
def total(what):
    s = os.fstatvfs(what) if isinstance(what, int) else os.statvfs(what)
    return s.f_blocks * s.f_frsize
os.chdir("/workspace")
print(json.dumps([total(what) for what in (".", "dir", "link", "link/..", "../tmp", os.open("dir", os.O_RDONLY), os.open("/etc/passwd", os.O_RDONLY))]))
""")
    assert totals == [LIMIT] * 7


def test_use_and_limit_are_the_present_ones(make_box, api):
    box = make_box(limits={"disk_mb": 100})
    before = usage(box)[1]
    box.check(FILL.format(16 * MB, "/workspace/f"))
    # At once: not only when the file system gets round to write it. (Its own blocks come and go.)
    assert before + 15 * MB <= usage(box)[1] <= before + 20 * MB
    box.check("sync -f /workspace", user="root")
    assert before + 15 * MB <= usage(box)[1] <= before + 20 * MB
    response = api.send_json("PATCH", box.path, {"limits": {"disk_mb": 200}})
    assert response.status == 200, response
    assert usage(box)[0] == 200 * MB
    box.check("rm /workspace/f; sync -f /workspace", user="root")
    paddock.until(lambda: usage(box)[1] < before + 4 * MB, "the room is free again", 60)


def test_the_last_byte_fits(make_box):
    """What df calls available can be written, but for the file system's own needs; more cannot."""
    box = make_box(limits={"disk_mb": 40})
    total, used = usage(box)
    box.check(FILL.format(total - used - 4 * MB, "/workspace/f"))
    assert box.exec(FILL.format(8 * MB, "/workspace/g")).exit_code != 0
    assert usage(box)[1] >= total - 5 * MB


def test_everything_else_is_the_kernels(seen):
    """Other file systems and errors: the same answer as without PID 1 between them."""
    answers = seen.python_json(BOTH + """
paths = ["/proc", "/proc/meminfo", "/proc/self/fd", "/dev/shm", "/run", "/dev", "/sys", "/dev/pts"]
print(json.dumps({
    "paths": {path: both(0, path.encode()) for path in paths},
    "errors": {
        "none": both(0, b"/workspace/none"), "empty": both(0, b""), "file": both(0, b"/etc/passwd/x"), "root's": both(0, b"/root/x"),
        "long": both(0, b"/" + b"x" * 300), "endless": both(0, b"/" * 5000), "wild": both(0, ctypes.c_void_p(4096)),
        "no buffer": both(0, b"/", 0), "no such number": both(1, 999), "no number": both(1, -1), "fd, no buffer": both(1, os.open("/", 0), 0),
    },
    "own": both(0, b"/workspace"),
}))
""", user="user")
    # Of what lies in memory the figures may move between two questions; the size does not.
    for path, (asked, unasked) in answers["paths"].items():
        assert asked[:3] == unasked[:3], (path, asked, unasked)
    for what, (asked, unasked) in answers["errors"].items():
        assert asked == unasked and isinstance(asked, int), (what, asked, unasked)
    # The control: past the filter the disk is the machine's, of the same kind and in the same units.
    asked, unasked = answers["own"]
    assert asked[:2] == unasked[:2] and asked[2] * asked[1] == LIMIT and unasked[2] != asked[2], answers["own"]


def test_a_named_workspace_has_its_own_limit(make_box, api):
    made = api.post("/v1/workspaces", {"name": "seen-workspace", "disk_mb": 50})
    assert made.status == 201, made
    try:
        box = make_box(workspace="seen-workspace", limits={"disk_mb": 100})
        box.check(FILL.format(8 * MB, "/workspace/f"))
        total, used = usage(box, "/workspace")
        assert total == 50 * MB and used >= 8 * MB
        total, used = usage(box, "/")
        assert total == 100 * MB and used < 8 * MB
        box.delete()
    finally:
        paddock.until(lambda: api.delete("/v1/workspaces/seen-workspace").status == 204, "the workspace is removed")


def test_a_fork_and_a_restart(own_daemon):
    daemon = own_daemon().start()
    client = daemon.client()
    box = client.create(limits={"disk_mb": 70})
    forks = client.post(box.path + "/fork", {"count": 1})
    assert forks.status == 201, forks
    fork = paddock.Box(client, forks.json()["sandboxes"][0])
    assert usage(fork)[0] == 70 * MB
    # PID 1 needs nobody outside for it: neither a new keeper nor none at all changes the answer.
    daemon.restart()
    client = daemon.client()
    box = box.with_client(client)
    assert usage(box)[0] == 70 * MB
    assert client.request("POST", box.path + "/stop").status == 200
    assert client.request("POST", box.path + "/start").status == 200
    assert usage(box)[0] == 70 * MB


def test_signals_and_threads_meanwhile(seen):
    """A signal every millisecond and many who ask at once: each answer is whole, and none lands in memory that is used again."""
    assert seen.python_json("""
import ctypes, json, os, signal, threading
hits = 0
def on_alarm(*_):
    global hits
    hits += 1
signal.signal(signal.SIGALRM, on_alarm)
signal.siginterrupt(signal.SIGALRM, False)  # as most runtimes have it; without, a question that nobody has read yet ends with EINTR
signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
wrong = []
def run():
    for i in range(300):
        s = os.statvfs("/workspace")
        if s.f_blocks * s.f_frsize != %d:
            wrong.append(s.f_blocks)
threads = [threading.Thread(target=run) for _ in range(4)]
for t in threads:
    t.start()
run()
for t in threads:
    t.join()
signal.setitimer(signal.ITIMER_REAL, 0)
print(json.dumps([wrong, hits > 0]))
""" % LIMIT) == [[], True]


def test_callers_that_are_killed(seen):
    """A question whose caller is gone holds up nobody."""
    assert seen.python_json("""
import json, os, random, signal, time
for i in range(60):
    pid = os.fork()
    if pid == 0:
        while True:
            os.statvfs("/workspace")
    time.sleep(random.random() / 100)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
s = os.statvfs("/")
print(json.dumps(s.f_blocks * s.f_frsize))
""") == LIMIT
    assert seen.check("echo still answers") == "still answers\n"


def test_a_program_that_hides_its_memory(seen):
    """PID 1 has the rights of the caller and no more: it leaves the answer to the kernel."""
    asked, unasked = seen.python_json(BOTH + """
libc.prctl(4, 0, 0, 0, 0)  # PR_SET_DUMPABLE
print(json.dumps(both(0, b"/workspace")))
""")
    assert asked[2] == unasked[2]


def test_only_pid_1_listens(seen):
    """A program can have filters of its own, but no second listener: EBUSY, as the kernel says where there is one."""
    assert seen.python_json("""
import ctypes, json
libc = ctypes.CDLL(None, use_errno=True)
class Prog(ctypes.Structure):
    _fields_ = [("n", ctypes.c_ushort), ("code", ctypes.c_char_p)]
allow = Prog(1, (0x06).to_bytes(2, "little") + b"\\0\\0" + (0x7fff0000).to_bytes(4, "little"))
seccomp = {"x86_64": 317, "aarch64": 277}[__import__("os").uname().machine]
listening = libc.syscall(seccomp, 1, 8, ctypes.byref(allow)), ctypes.get_errno()
print(json.dumps([listening, libc.syscall(seccomp, 1, 0, ctypes.byref(allow))]))
""") == [[-1, 16], 0]


def test_without_it(own_daemon):
    daemon = own_daemon()
    config = daemon.base / "paddock.yaml"
    config.write_text("posture: {without: [view.calls]}\n")
    daemon.arguments += ["--config", str(config)]
    daemon.start()
    client = daemon.client()
    box = client.create(limits={"disk_mb": 70})
    assert usage(box)[0] > 70 * MB
    assert client.try_create(require=["view.calls"]).code() == "cannot_isolate"
    parts = {part["name"]: part["ok"] for part in client.get(box.path + "/posture").json()["parts"]}
    assert parts["view.calls"] is False and parts["limit.disk"] is True
