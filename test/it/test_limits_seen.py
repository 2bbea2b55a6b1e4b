"""What a box sees of its limits, and the runtimes that size themselves by it: 512 MiB and one processor."""

import os
import re
import shutil
import signal
import subprocess
import time
import uuid

import pytest

import paddock

LIMITS = {"cpu": 1, "memory_mb": 512}
MIB = 1024 * 1024


@pytest.fixture
def small(make_box):
    return make_box(limits=LIMITS)


def test_processors(small, make_box):
    assert small.check("nproc").strip() == "1"
    assert small.check(["/usr/bin/python3", "-c", "import os; print(os.cpu_count(), len(os.sched_getaffinity(0)))"]) == "1 1\n"
    if os.cpu_count() > 1:  # a limit above the machine's is refused
        assert make_box(limits={"cpu": 1.5}).check("nproc").strip() == "2"
    assert make_box(limits={"cpu": 0.1}).check("nproc").strip() == "1"


def test_memory_by_a_call(small):
    """Who asks the kernel instead of reading /proc/meminfo: sysconf of glibc, busybox's free."""
    script = """
import ctypes, json, os
class Info(ctypes.Structure):
    _fields_ = [("uptime", ctypes.c_long), ("loads", ctypes.c_ulong * 3), ("ram", ctypes.c_ulong * 4), ("swap", ctypes.c_ulong * 2),
                ("procs", ctypes.c_ushort), ("pad", ctypes.c_ushort), ("high", ctypes.c_ulong * 2), ("unit", ctypes.c_uint), ("behind", ctypes.c_uint * 3)]
info = Info(behind=(1, 2, 3))
kept = bytearray(os.urandom(20 << 20))
libc = ctypes.CDLL(None, use_errno=True)
assert libc.sysinfo(ctypes.byref(info)) == 0
bad = libc.sysinfo(ctypes.c_void_p(4096)), ctypes.get_errno()
print(json.dumps([os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGESIZE"), info.ram[0] * info.unit, info.ram[1] * info.unit, list(info.loads),
                  list(info.swap), info.procs, info.uptime, list(info.behind)[1:], bad]))
"""
    for user in ("user", "root"):
        pages, total, free, loads, swap, processes, uptime, behind, bad = small.python_json(script, user=user)
        assert pages == total == 512 * MIB and free <= 492 * MIB
        assert loads == [0] * 3 and swap == [0] * 2 and processes < 20
        assert abs(uptime - float(small.check("cat /proc/uptime").split()[0])) < 60 * paddock.SLOW
        assert behind == [2, 3] and bad == [-1, 14], "no more than the kernel writes, and its own error"


def test_control_groups(small):
    found = small.check("cat /sys/fs/cgroup/memory/memory.limit_in_bytes /sys/fs/cgroup/memory.max 2>/dev/null; true").split()
    assert found == [str(512 * MIB)]
    assert small.exec("touch /sys/x; mkdir /sys/fs/cgroup/memory/x /sys/fs/cgroup/x; ! test -e /sys/fs/cgroup/memory/x", user="root").exit_code == 0
    # Its own alone: no other group is below, and it cannot be written.
    assert small.check("find /sys/fs/cgroup -mindepth 3 -type d") == ""
    limit = "$(ls /sys/fs/cgroup/memory/memory.limit_in_bytes /sys/fs/cgroup/memory.max 2>/dev/null)"
    assert small.exec(f"echo -1 > {limit}", user="root").exit_code != 0


def test_node(small):
    heap = int(small.check(["/usr/bin/node", "-p", "require('v8').getHeapStatistics().heap_size_limit"]))
    assert heap <= 512 * MIB
    assert small.check(["/usr/bin/node", "-p", "require('os').availableParallelism()"]) == "1\n"


@pytest.mark.skipif(not shutil.which("java", path="/usr/bin"), reason="no JVM on this machine")
def test_java(small):
    told = small.check("java -XshowSettings:system -version 2>&1; java -XX:+PrintFlagsFinal -version 2>/dev/null | grep -w MaxHeapSize")
    # A limit that is the size of the machine is none to the JVM, and sysinfo(2) says that the machine has 512 MiB.
    assert ("Memory Limit: 512.00M" in told or "Memory Limit: Unlimited" in told) and "Effective CPU Count: 1" in told, told
    assert int(told.split("MaxHeapSize")[1].split()[1]) <= 256 * MIB


def test_go(small, tmp_path):
    source = tmp_path / "procs.go"
    source.write_text('package main\n\nimport (\n\t"fmt"\n\t"runtime"\n)\n\nfunc main() { fmt.Println(runtime.GOMAXPROCS(0), runtime.NumCPU()) }\n')
    go = shutil.which("go") or "/usr/local/go/bin/go"
    if not os.path.exists(go):
        pytest.skip("no Go on this machine")
    environment = {**os.environ, "HOME": str(tmp_path), "CGO_ENABLED": "0", "GO111MODULE": "off", "GOCACHE": str(tmp_path / "cache")}
    subprocess.run([go, "build", "-o", tmp_path / "procs", source], check=True, env=environment, cwd=tmp_path)
    small.put("/tmp/procs", (tmp_path / "procs").read_bytes())
    assert small.check("chmod +x /tmp/procs && /tmp/procs") == "1 1\n"


# ---- /proc, answered by paddock-gauge ----


def meminfo(box):
    """Of the box, in bytes."""
    return {name: int(rest.split()[0]) * 1024 for name, _, rest in (line.partition(":") for line in box.check("cat /proc/meminfo").splitlines())}


def test_memory_in_proc(small):
    seen = meminfo(small)
    assert seen["MemTotal"] == 512 * MIB
    assert 400 * MIB < seen["MemFree"] <= seen["MemAvailable"] <= 512 * MIB
    assert seen["SwapTotal"] == seen["SwapFree"] == 0
    assert small.check("free -b").splitlines()[1].split()[1] == str(512 * MIB)
    # What it uses is gone: 100 MiB held by one program.
    hold = "x = bytearray(100 << 20)\nfor i in range(0, len(x), 4096): x[i] = 1\nprint(open('/proc/meminfo').read())"
    less = {line.split(":")[0]: int(line.split()[1]) * 1024 for line in small.check(["/usr/bin/python3", "-c", hold]).splitlines() if line}
    assert seen["MemAvailable"] - less["MemAvailable"] > 90 * MIB
    assert less["AnonPages"] > 100 * MIB


def test_processors_in_proc(small, make_box):
    assert small.check("grep -c ^processor /proc/cpuinfo") == "1\n"
    model = "grep -m1 '^model name' /proc/cpuinfo || true"
    assert small.check(model) == subprocess.run(model, shell=True, capture_output=True, text=True).stdout
    assert small.check("grep ^cpu /proc/stat | cut -d' ' -f1") == "cpu\ncpu0\n"
    wide = make_box(limits={"cpu": os.cpu_count()})
    assert wide.check("grep -c ^processor /proc/cpuinfo; grep -c ^cpu /proc/stat") == f"{os.cpu_count()}\n{os.cpu_count() + 1}\n"


def test_time_used_in_stat(small):
    """The processor's time that the box has used, not the machine's."""
    def used():
        user, _, system, idle = map(int, small.check("head -1 /proc/stat").split()[1:5])
        return user + system, idle
    before, _ = used()
    assert before < 500
    small.check(["/usr/bin/python3", "-c", "import time\nend = time.process_time() + 1\nwhile time.process_time() < end: pass"])
    after, _ = used()
    assert 90 <= after - before < 400


def check_uptime(box, boot):
    """Uptime, boot time and processes' start times agree: they count from `boot`."""
    up, btime = box.check("cat /proc/uptime; grep btime /proc/stat").split()[0::3]
    near = 4 + paddock.SLOW
    assert abs(time.time() - float(up) - boot) < near and abs(int(btime) - boot) < near, (up, btime, boot)
    # ps reckons when a program started from both.
    began = time.time()
    started = box.check("LC_ALL=C ps -o lstart= -p $$").strip()
    assert abs(time.mktime(time.strptime(started, "%a %b %d %H:%M:%S %Y")) - began) < 10 * paddock.SLOW, started


def machine_boot():
    return time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)


def test_uptime_and_boot(make_box):
    before = time.time()
    box = make_box()
    has = [part["ok"] for part in box.client.get(box.path + "/posture").json()["parts"] if part["name"] == "view.uptime"]
    assert has == [paddock.namespace(box.pid1(), "time") != paddock.namespace("self", "time")]
    check_uptime(box, before if has[0] else machine_boot())
    assert box.check("ps -o etimes= -p 1").strip() in [str(n) for n in range(int(time.time() - before) + 3)]


def test_boot_id(make_box):
    """The sandbox's own, new with every start, and nobody in it can change it."""
    path = "/proc/sys/kernel/random/boot_id"
    one, other = make_box(), make_box()

    def read(box):
        text = box.check(f"cat {path}")
        assert str(uuid.UUID(text.strip())) == text.strip() and uuid.UUID(text.strip()).version == 4 and text.endswith("\n")
        return text

    first = read(one)
    assert first == read(one) and len({first, read(other), paddock.read(path) + "\n", paddock.read(path)}) == 4
    for user in ("user", "root"):
        assert one.exec(f"echo x > {path}", user=user).exit_code != 0
        assert one.exec(f"umount {path}", user=user).exit_code != 0
    assert one.exec(f"chmod 666 {path}", user="root").exit_code != 0
    assert read(one) == first
    assert one.client.post(one.path + "/pause", {}).status < 300 and one.client.post(one.path + "/resume", {}).status < 300
    assert read(one) == first, "a pause is no boot"
    assert one.client.post(one.path + "/stop", {}).status < 300 and one.client.post(one.path + "/start", {}).status < 300
    assert read(one) != first


def test_load_and_swap(small):
    assert small.check("cat /proc/loadavg").startswith("0.00 0.00 0.00 1/")
    assert small.check("cat /proc/swaps").splitlines() == ["Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority"]
    assert small.check("swapon --show; top -bn1 | head -5 >/dev/null; vmstat >/dev/null; echo ok") == "ok\n"


def test_each_box_sees_its_own(small, make_box):
    other = make_box(limits={"cpu": min(2, os.cpu_count()), "memory_mb": 256})
    assert meminfo(other)["MemTotal"] == 256 * MIB and meminfo(small)["MemTotal"] == 512 * MIB
    # Whoever it is in the box, up to the last of its ids.
    last = "import os; os.setfsuid = __import__('ctypes').CDLL(None).setfsuid; os.setfsuid(65535); print(open('/proc/meminfo').readline())"
    assert small.check(["/usr/bin/python3", "-c", last], user="root").split()[1] == str(512 * 1024)


def test_limits_that_change_are_seen(make_box):
    box = make_box(limits=LIMITS)
    assert box.client.send_json("PATCH", box.path, {"limits": {"memory_mb": 300}}).status == 200
    assert meminfo(box)["MemTotal"] == 300 * MIB


def test_files_of_proc_cannot_be_written(small):
    for name in ("meminfo", "cpuinfo", "stat", "loadavg", "swaps"):
        assert small.exec(f"echo 1 > /proc/{name}", user="root").exit_code != 0
        assert small.exec(f"umount /proc/{name}; chmod 777 /proc/{name}; truncate -s0 /proc/{name}", user="root").exit_code != 0
        assert small.check(f"stat -c %a /proc/{name}") == "444\n"
    assert meminfo(small)["MemTotal"] == 512 * MIB


def gauge_of(daemon):
    found = [pid for pid, name in daemon.programs().items() if name == "paddock-gauge"]
    return found[0] if found else None


def test_gauge_is_confined(own_daemon):
    daemon = own_daemon().start()
    gauge = paddock.until(lambda: gauge_of(daemon), "paddock-gauge runs")
    status = dict(line.split(":\t", 1) for line in open(f"/proc/{gauge}/status").read().splitlines() if ":\t" in line)
    assert set(status["Uid"].split()) == set(status["Gid"].split()) == {"59005"} and not status["Groups"].strip()
    assert {status[f"Cap{kind}"] for kind in ("Inh", "Prm", "Eff", "Bnd", "Amb")} == {"0" * 16}
    assert status["Seccomp"] == "2" and status["NoNewPrivs"] == "1"


def test_gauge_that_is_killed_comes_back(own_daemon):
    daemon = own_daemon().start()
    box = daemon.client().create(limits=LIMITS)
    for _ in range(3):
        gauge = paddock.until(lambda: gauge_of(daemon), "paddock-gauge runs")
        daemon.api_kills += 1  # one that the keeper mends
        os.kill(gauge, signal.SIGKILL)
        paddock.until(lambda: gauge_of(daemon) not in (None, gauge), "another one runs")
        assert meminfo(box)["MemTotal"] == 512 * MIB
    assert box.check("for i in $(seq 50); do cat /proc/stat >/dev/null || exit 1; done; echo ok") == "ok\n"


def test_request_of_a_gauge_that_is_killed_fails(own_daemon):
    """One that stands still holds up who reads; with its end they get an error or the next one's answer."""
    daemon = own_daemon().start()
    box = daemon.client().create(limits=LIMITS)
    gauge = paddock.until(lambda: gauge_of(daemon), "paddock-gauge runs")
    os.kill(gauge, signal.SIGSTOP)
    box.check("touch /tmp/begun; (cat /proc/meminfo > /tmp/out 2>&1; echo $? > /tmp/code) >/dev/null 2>&1 </dev/null &")
    # PID 1, other files and other boxes do not wait for it.
    assert box.check("cat /proc/uptime >/dev/null; echo ok") == "ok\n"
    other = daemon.client().create()
    assert other.check("echo ok") == "ok\n"
    other.delete()
    daemon.api_kills += 1
    os.kill(gauge, signal.SIGKILL)
    paddock.until(lambda: box.exec("cat /tmp/code").text.strip(), "the reader went on")
    assert meminfo(box)["MemTotal"] == 512 * MIB


@pytest.mark.parametrize("taken", [False, True])
def test_gauge_that_hangs_is_ended(own_daemon, taken):
    """A reader whose request it has read cannot be killed, and its box not be removed, until it answers or ends."""
    daemon = own_daemon().start()
    box = daemon.client().create(limits=LIMITS)
    gauge = paddock.until(lambda: gauge_of(daemon), "paddock-gauge runs")
    daemon.api_kills += 1
    reader = "(cat /proc/meminfo >/dev/null 2>&1; echo $? > /tmp/code) >/dev/null 2>&1 </dev/null &"
    if taken:  # stopped between a request and its answer
        strace = subprocess.Popen(["strace", "-o", daemon.base / "strace", "-e", "trace=read", "-e", "inject=read:signal=SIGSTOP:when=1", "-p", str(gauge)],
                                  stderr=subprocess.PIPE, text=True)
        assert "attached" in strace.stderr.readline()
        box.check(reader)
        paddock.until(lambda: "stopped by SIGSTOP" in paddock.read(daemon.base / "strace"), "it is stopped")
        strace.send_signal(signal.SIGINT)
        strace.communicate()
        assert paddock.until(lambda: paddock.proc_status(gauge)["State"][0] == "T", "it stays so")
    else:
        os.kill(gauge, signal.SIGSTOP)
        box.check(reader)
    assert box.exec("cat /tmp/code").exit_code, "it waits"
    paddock.until(lambda: gauge_of(daemon) not in (None, gauge), "another one runs", 30)
    assert paddock.until(lambda: box.exec("cat /tmp/code").text.strip(), "the reader went on") == ("1" if taken else "0")
    assert meminfo(box)["MemTotal"] == 512 * MIB
    box.delete()


def test_gauge_that_rests_is_left_alone(own_daemon):
    """The control: nothing waits, so nothing hangs, however long nobody asks; nor where many ask."""
    daemon = own_daemon().start()
    box = daemon.client().create(limits=LIMITS)
    gauge = paddock.until(lambda: gauge_of(daemon), "paddock-gauge runs")
    end = time.monotonic() + 12  # two looks of the keeper
    while time.monotonic() < end:
        assert box.check("for i in $(seq 20); do cat /proc/stat /proc/meminfo >/dev/null || exit 1; done; sleep 1; echo ok") == "ok\n"
    assert gauge_of(daemon) == gauge


def cpu_seconds(pid):
    fields = paddock.read(f"/proc/{pid}/stat").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


LOOP = """
import os
for i in range(50):
    if os.fork() == 0:
        fd = os.open("/proc/" + ("meminfo", "stat", "cpuinfo", "loadavg", "swaps")[i % 5], os.O_RDONLY)
        while True:
            os.pread(fd, 65536, 0)
os.wait()
"""


def test_who_reads_in_a_loop_pays_for_it(own_daemon):
    """paddock-gauge must not work more for a box than the box does itself, and has no priority over others."""
    daemon = own_daemon().start()
    box = daemon.client().create(limits={"cpu": 0.5, "pids": 100})
    gauge = paddock.until(lambda: gauge_of(daemon), "paddock-gauge runs")
    assert paddock.read(f"/proc/{gauge}/stat").rpartition(")")[2].split()[16] == "0"
    groups = paddock.cgroup_dirs(box.id)

    def own():
        if "cpuacct" in groups:
            return int(paddock.read(groups["cpuacct"] / "cpuacct.usage")) / 1e9
        return int(re.search(r"usage_usec (\d+)", paddock.read(groups["unified"] / "cpu.stat"))[1]) / 1e6

    before, box_before = cpu_seconds(gauge), own()
    assert box.python(LOOP, timeout_ms=paddock.ms(6000)).timed_out
    gauge_s, box_s = cpu_seconds(gauge) - before, own() - box_before
    assert box_s > 0.2, "it read in a loop"
    assert gauge_s < 1.2 * box_s, f"{gauge_s:.2f} s of paddock-gauge for {box_s:.2f} s of the box"


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_boxes_of_an_earlier_keeper(own_daemon, how):
    daemon = own_daemon().start()
    box = daemon.client().create(limits=LIMITS)
    assert meminfo(box)["MemTotal"] == 512 * MIB
    boot = box.check("grep btime /proc/stat")
    daemon.stop() if how == signal.SIGTERM else daemon.kill_keeper()
    daemon.start()
    assert meminfo(box)["MemTotal"] == 512 * MIB
    assert abs(int(box.check("grep btime /proc/stat").split()[1]) - int(boot.split()[1])) <= 1
    points = [point for _, point, *_ in paddock.mountinfo(box.pid1())]
    assert points.count("/proc/meminfo") == 1


def test_without(own_daemon):
    daemon = own_daemon()
    config = daemon.base / "paddock.yaml"
    config.write_text("posture: {without: [view.proc]}\n")
    daemon.arguments += ["--config", str(config)]
    daemon.start()
    box = daemon.client().create(limits=LIMITS)
    assert "/proc/meminfo" not in [point for _, point, *_ in paddock.mountinfo(box.pid1())]
    assert daemon.client().try_create(require=["view.proc"]).code() == "cannot_isolate"
    assert gauge_of(daemon) is None


def test_without_its_own_uptime(own_daemon):
    """As before Linux 6.3: the machine's uptime, and then its boot time, too."""
    daemon = own_daemon()
    config = daemon.base / "paddock.yaml"
    config.write_text("posture: {without: [view.uptime]}\n")
    daemon.arguments += ["--config", str(config)]
    daemon.start()
    box = daemon.client().create(limits=LIMITS)
    assert paddock.namespace(box.pid1(), "time") == paddock.namespace("self", "time")
    check_uptime(box, machine_boot())
    assert daemon.client().try_create(require=["view.uptime"]).code() == "cannot_isolate"
    # It stays so under a keeper that would give others their own.
    daemon.stop()
    config.write_text("posture: {}\n")
    daemon.start()
    check_uptime(box, machine_boot())
