"""The walls as the host's kernel shows them, against golden/posture.json.

Read from /proc and /sys only. To accept a wanted change of the posture, run with
PADDOCK_GOLDEN=write and review the difference in the commit.
"""

import contextlib
import ctypes
import fcntl
import json
import os
import re
import socket
import subprocess
from pathlib import Path

import pytest

import paddock

GAUGES = {f"/proc/{name}" for name in ("cpuinfo", "loadavg", "meminfo", "stat", "swaps")}  # answered by paddock-gauge
GOLDEN = Path(__file__).parent / "golden" / "posture.json"
CAPS = ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")
LIMITS = {"cpu": 0.5, "memory_mb": 192, "pids": 77, "nofile": 444}


@pytest.fixture(scope="module")
def client(daemon):
    it = daemon.client()
    yield it
    it.close()


@pytest.fixture(scope="module")
def one(client):
    it = client.create(limits=LIMITS)
    yield it
    it.delete()


@pytest.fixture(scope="module")
def two(client):
    it = client.create()
    yield it
    it.delete()


@pytest.fixture(scope="module")
def processes(one, daemon):
    """Host pids by role: PID 1, and a started process of each user."""
    helpers = []
    found = {"init": one.pid1()}
    for user, seconds in (("user", "7001"), ("root", "7000")):
        client = daemon.client()
        helpers.append((client, paddock.Background(one.with_client(client).exec, ["sleep", seconds], user=user)))
        found[user] = one.find_process(seconds)
    yield found
    for user in ("user", "root"):
        paddock.kill(found[user])
    for client, helper in helpers:
        assert helper.result().signal == "SIGKILL"
        client.close()


def golden(section, actual):
    """Compares with the golden file, or writes it when asked to."""
    book = json.loads(GOLDEN.read_text()) if GOLDEN.exists() else {}
    actual = json.loads(json.dumps(actual))
    if os.environ.get("PADDOCK_GOLDEN") == "write":
        book[section] = actual
        GOLDEN.parent.mkdir(exist_ok=True)
        GOLDEN.write_text(json.dumps(book, indent=1, sort_keys=True) + "\n")
    assert actual == book.get(section), f"section {section} of {GOLDEN}"


# ---- namespaces and ids ---------------------------------------------------


def test_every_namespace_is_its_own(one, two, processes):
    host = paddock.namespaces("self")
    boxes = [one.namespaces(), two.namespaces()]
    for kind in paddock.NAMESPACES:
        inodes = [host[kind], *(box[kind] for box in boxes)]
        assert len(set(inodes)) == 3, f"{kind}: {inodes}"
    for role in ("user", "root"):
        assert paddock.namespaces(processes[role]) == boxes[0], role


def id_maps(pid):
    return {name: [tuple(map(int, line.split())) for line in paddock.read(f"/proc/{pid}/{name}").splitlines()]
            for name in ("uid_map", "gid_map")}


def test_uid_ranges(one, two):
    ranges = []
    for box in (one, two):
        maps = id_maps(box.pid1())
        assert maps["uid_map"] == maps["gid_map"]
        (inside, outside, count), = maps["uid_map"]
        assert (inside, count) == (0, 65536)
        assert outside >= 65536, "no id of the host's own users is in the range"
        ranges.append(range(outside, outside + count))
    assert not set(ranges[0]) & set(ranges[1]), "two boxes share ids"


def test_real_ids(one, processes):
    base = id_maps(one.pid1())["uid_map"][0][1]
    for role, uid in (("init", 0), ("root", 0), ("user", 1000)):
        status = paddock.proc_status(processes[role])
        assert set(status["Uid"].split()) == {str(base + uid)}, role
        assert set(status["Gid"].split()) == {str(base + uid)}, role
        assert set(status["Groups"].split()) <= {str(base + uid)}, role


# ---- privileges -----------------------------------------------------------


def test_status_golden(processes):
    golden("status", {
        role: {key: paddock.proc_status(pid)[key] for key in (*CAPS, "NoNewPrivs", "Seccomp", "Seccomp_filters")}
        for role, pid in processes.items()
    })


def test_privileges_by_principle(processes):
    """What the golden may never come to say."""
    for role, pid in processes.items():
        status = paddock.proc_status(pid)
        assert status["NoNewPrivs"] == "1" and status["Seccomp"] == "2", role
        assert int(status["CapBnd"], 16) == 0, f"{role}: bounding set {status['CapBnd']}"
        assert int(status["CapAmb"], 16) == 0, role
    status = paddock.proc_status(processes["user"])
    assert all(int(status[cap], 16) == 0 for cap in CAPS)


def test_dumpable_and_traced_by_nobody(processes):
    for role, pid in processes.items():
        assert paddock.proc_status(pid)["TracerPid"] == "0", role


def test_limits_golden(processes):
    def table(pid):
        lines = paddock.read(f"/proc/{pid}/limits").splitlines()[1:]
        rows = (re.match(r"^(.*?)\s{2,}(\S+)\s+(\S+)", line).groups() for line in lines)
        # Inherited from whoever started the daemon where no box sets it: not ours to fix in a golden.
        return {name: [soft, hard] for name, soft, hard in rows
                if name in ("Max open files", "Max core file size", "Max realtime priority", "Max nice priority",
                            "Max locked memory", "Max msgqueue size")}

    golden("limits", {role: table(pid) for role, pid in processes.items() if role != "init"})
    assert table(processes["user"])["Max open files"] == [str(LIMITS["nofile"])] * 2


# ---- mounts ---------------------------------------------------------------


def normalised_mounts(box):
    """The box's mount table without what differs from run to run and from machine to machine."""
    table = []
    for root, point, options, kind, source, extra in paddock.mountinfo(box.pid1()):
        if kind in ("ext4", "btrfs", "xfs"):
            kind, extra = "disk", ""
        extra = re.sub(r"\b(lowerdir|upperdir|workdir|size|nr_inodes|gid|uid)\+?=[^,]*", r"\1=…", extra)
        # Kernels spell the same differently: "volatile" before 6.6, and what a file system does anyhow.
        words = {"fsync=volatile" if word == "volatile" else word for word in extra.split(",")
                 if word != "inode64" and not word.startswith("uuid=")}
        # Nobody asks for it: newer kernels show it for an overlay that nothing is written to.
        if "upperdir" not in extra:
            words.discard("redirect_dir=on")
        table.append(" ".join((point, kind, ",".join(sorted(options.split(","))), ",".join(sorted(words)))).strip())
    return sorted(table)


# What a box sees of /proc beside its processes. Everything else that this kernel has there is masked.
PROC = {"cgroups", "cpuinfo", "devices", "filesystems", "loadavg", "meminfo", "mounts", "net", "self", "stat", "swaps", "sys",
        "sysvipc", "thread-self", "uptime", "version", "vmstat"}


def is_mask(line):
    return line.startswith("/proc/") and line.split()[0] not in {"/proc/sys", "/proc/sys/kernel/random/boot_id", *GAUGES}


def golden_mounts(section, actual):
    """Without masks, which are there for what this kernel has, and control groups, which lie as this machine's do: both have their own test."""
    golden(section, [line for line in actual if not is_mask(line) and not line.startswith("/sys/fs/cgroup")])


def test_control_groups_are_its_own_and_only_read(one):
    """One tree of version 2, or a directory for each hierarchy of version 1, by the first of the controllers that it has."""
    groups = paddock.cgroup_dirs(one.id)
    wanted = {"/sys/fs/cgroup": groups.get("unified")}
    if not wanted["/sys/fs/cgroup"] or not (wanted["/sys/fs/cgroup"] / "memory.max").exists():
        wanted = {f"/sys/fs/cgroup/{name}": groups[name] for name in ("cpuacct", "pids", "cpu", "memory") if name in groups}
        wanted = {point: path for path, point in {path: point for point, path in wanted.items()}.items()}
        cpuset = Path(paddock.cgroup_mounts()["cpuset"]) / "paddock"  # shared by all: it limits nothing
        wanted["/sys/fs/cgroup/cpuset"] = cpuset
    mounts = {point: set(options.split(",")) for _, point, options, kind, *_ in paddock.mountinfo(one.pid1()) if kind in ("cgroup", "cgroup2")}
    assert set(mounts) == set(wanted)
    for point, path in wanted.items():
        assert {"ro", "nodev", "noexec", "nosuid"} <= mounts[point], point
        assert os.path.samestat(os.stat(f"/proc/{one.pid1()}/root{point}"), os.stat(path)), (point, path)


def test_every_mask_is_there(one):
    """The golden leaves masks out. They are an allow list's: what a future kernel adds to /proc is masked, too."""
    masks = [line for line in normalised_mounts(one) if is_mask(line)]
    assert {line.split()[0] for line in masks} == {
        f"/proc/{name}" for name in os.listdir("/proc") if not name.isdigit() and name not in PROC}
    assert len({line.split(" ", 1)[1] for line in masks}) == 1 and "ro" in masks[0].split()[2].split(","), masks[0]


def test_proc_shows_what_the_list_says(one):
    shown = one.check("""for f in /proc/[a-z]*; do
        if [ -d $f ]; then [ -n "$(ls -A $f)" ] && echo ${f#/proc/}; elif [ -n "$(head -c1 $f)" ]; then echo ${f#/proc/}; fi
    done 2>/dev/null; true""", user="root").split()
    assert set(shown) <= PROC and {"meminfo", "cpuinfo", "stat", "sys", "self", "mounts"} <= set(shown)


def test_mounts_golden(one):
    golden_mounts("mounts", normalised_mounts(one))


def test_mounts_of_a_readonly_box_golden(client):
    box = client.create(readonly_root=True)
    try:
        golden_mounts("mounts_readonly", normalised_mounts(box))
    finally:
        box.delete()


def test_mounts_by_principle(one, daemon):
    for root, point, options, kind, source, extra in paddock.mountinfo(one.pid1()):
        flags = set(options.split(","))
        assert kind in ("overlay", "proc", "tmpfs", "devpts", "ext4", "btrfs", "xfs", "mqueue", "sysfs", "cgroup", "cgroup2") or (kind == "fuse" and point in GAUGES), (point, kind)
        assert "nosuid" in flags, f"{point}: set-user-id bits count"
        if not point.startswith("/dev") and not (kind == "tmpfs" and "ro" in flags):  # masks: an empty file of ours
            assert "nodev" in flags, f"{point}: device nodes count"
        if point.startswith("/proc/"):
            assert "ro" in flags, f"{point} is writable"
        assert kind not in ("securityfs", "debugfs", "tracefs", "bpf"), point
    # No way back to the host's tree: what is mounted here is not shared with it.
    host = {(root, source) for root, _, _, kind, source, _ in paddock.mountinfo() if kind == "ext4" and root == "/"}
    mounted = {(root, source) for root, _, _, _, source, _ in paddock.mountinfo(one.pid1())}
    assert not host & mounted, "the host's root is mounted in the box"


def test_mounts_do_not_propagate(one):
    for line in paddock.read(f"/proc/{one.pid1()}/mountinfo").splitlines():
        assert " shared:" not in line and " master:" not in line, line


def beneath_root(pid):
    """What is left of a mount namespace when the file system at / is taken away. Its processes keep theirs."""
    libc = ctypes.CDLL(None, use_errno=True)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        namespace = os.open(f"/proc/{pid}/ns/mnt", os.O_RDONLY)
        said = "setns"
        if libc.setns(namespace, 0x20000) == 0 and libc.umount2(b"/", 2) == 0 and libc.setns(namespace, 0x20000) == 0:
            said = json.dumps(sorted(os.listdir("/")))
        os.write(writer, said.encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as file:
        said = file.read()
    os.waitpid(child, 0)
    return json.loads(said)


def test_nothing_lies_beneath_the_root(client):
    """The namespace of a box begins with what its masks are copies of: its root hides nothing of the host's tree."""
    box = client.create()
    try:
        masks, figures = {"null", "empty"}, {"cpuinfo", "loadavg", "meminfo", "stat", "swaps"}
        assert set(beneath_root(box.pid1())) == masks | figures
    finally:
        box.delete()


def test_control_beneath_the_root(workdir):
    """A root that is put over the host's shows the host's when it is taken away."""
    script = f"mount -t tmpfs none {workdir} && mount --move {workdir} / && exec sleep 100"
    it = subprocess.Popen(["unshare", "-m", "--propagation", "private", "sh", "-c", script])
    try:
        paddock.until(lambda: paddock.comm(it.pid) == "sleep", "the stand-in runs")
        assert "etc" in beneath_root(it.pid)
    finally:
        it.kill()
        it.wait()


def test_root_and_cwd(one, processes, marker):
    path, _ = marker
    for role, pid in processes.items():
        root = Path(f"/proc/{pid}/root")
        assert not (root / str(path)[1:]).exists(), role
        assert (root / "workspace").is_dir()
        assert os.stat(root).st_dev != os.stat("/").st_dev or os.stat(root).st_ino != os.stat("/").st_ino


# ---- PID 1 itself ---------------------------------------------------------


def fd_kind(pid, fd):
    target = os.readlink(f"/proc/{pid}/fd/{fd}")
    if group := re.match(r"^/sys/fs/btrfs/[\w-]+/qgroups/0_\d+/(\w+)$", target):
        return f"quota group: {group[1]}"
    return re.sub(r":\[\d+\]$", "", re.sub(r"^/memfd:.*", "memfd", target))


def fd_kinds(pid):
    return sorted(fd_kind(pid, fd) for fd in os.listdir(f"/proc/{pid}/fd"))


def test_fds_of_pid_1_golden(client):
    box = client.create(limits={"disk_mb": 64})
    try:
        def is_at_rest():
            """What PID 1 still does behind the answer, such as closing /etc/machine-id, is over soon; what stays, golden() complains of."""
            with contextlib.suppress(OSError):
                return fd_kinds(box.pid1()) == json.loads(GOLDEN.read_text())["fds"]

        with contextlib.suppress(AssertionError):
            paddock.until(is_at_rest, "PID 1 has nothing to do")
        fresh = fd_kinds(box.pid1())
        golden("fds", fresh)
        # By principle: no directory, no file of the host, no device but null, no namespace; of its own quota group the figures, to read.
        assert all(re.match(r"^(socket|pipe|anon_inode:.*|/dev/null|quota group: \w+)$", kind) for kind in fresh), fresh
        own = {fd: os.readlink(f"/proc/{box.pid1()}/fd/{fd}") for fd in os.listdir(f"/proc/{box.pid1()}/fd")
               if fd_kind(box.pid1(), fd).startswith("quota group")}
        assert len({os.path.dirname(path) for path in own.values()}) == 1, own
        for fd, path in own.items():
            info = Path(f"/proc/{box.pid1()}/fdinfo/{fd}").read_text()
            assert int(re.search(r"^flags:\s*(\d+)", info, re.MULTILINE)[1], 8) & 3 == os.O_RDONLY, path
            if path.endswith("max_referenced"):
                assert int(Path(path).read_text()) == 64 << 20
        box.exec("echo x; cat", stdin="y")
        box.exec("sleep 9", timeout_ms=50)
        box.put("/tmp/f", b"z")
        box.read("/tmp/f")
        paddock.until(lambda: fd_kinds(box.pid1()) == fresh, "what an operation opened is closed after it")
    finally:
        box.delete()


def test_pid_1_runs_from_a_sealed_memfd(one):
    """Same bytes as the program on disk, from a file that nothing can change."""
    pid = one.pid1()
    assert os.readlink(f"/proc/{pid}/exe").startswith("/memfd:")
    with open(f"/proc/{pid}/exe", "rb") as running:
        assert running.read() == (paddock.BIN / "paddock-init").read_bytes()
        seals = fcntl.fcntl(running.fileno(), 1034)  # F_GET_SEALS
    assert seals & 0xF == 0xF, f"seals {seals:#x}: want SEAL, SHRINK, GROW and WRITE"
    for flags in (os.O_WRONLY, os.O_RDWR):
        with pytest.raises(OSError):
            os.close(os.open(f"/proc/{pid}/exe", flags))


def test_pid_1_knows_nothing_of_the_host(one, daemon):
    pid = one.pid1()
    environment = Path(f"/proc/{pid}/environ").read_bytes()
    words = Path(f"/proc/{pid}/cmdline").read_bytes()
    for secret in (daemon.key, str(daemon.data_dir), str(daemon.run_dir)):
        assert secret.encode() not in environment and secret.encode() not in words
    assert len(environment) < 300, environment


def test_pid_1_is_small_and_static(one):
    assert paddock.rss_kb(one.pid1()) < 2048
    maps = paddock.read(f"/proc/{one.pid1()}/maps")
    assert ".so" not in maps, "no shared library of the image is loaded into PID 1"


# ---- cgroups --------------------------------------------------------------


def test_cgroup_values_are_the_limits(one):
    paths = paddock.cgroup_dirs(one.id)
    value = lambda controller, name: paddock.read(paths[controller] / name).strip()  # noqa: E731
    if "memory" in paths:
        size = LIMITS["memory_mb"] << 20
        assert int(value("memory", "memory.limit_in_bytes")) == size
        swap = paths["memory"] / "memory.memsw.limit_in_bytes"
        assert not swap.exists() or int(paddock.read(swap)) == size, "swap is not an extra"
        assert value("pids", "pids.max") == str(LIMITS["pids"])
        quota, period = (int(value("cpu", f"cpu.cfs_{name}_us")) for name in ("quota", "period"))
        assert quota / period == LIMITS["cpu"]
    else:
        assert int(value("unified", "memory.max")) == LIMITS["memory_mb"] << 20
        assert value("unified", "memory.swap.max") == "0"
        assert value("unified", "pids.max") == str(LIMITS["pids"])
        quota, period = map(int, value("unified", "cpu.max").split())
        assert quota / period == LIMITS["cpu"]


def test_every_process_is_in_the_cgroups(one, processes):
    for role, pid in processes.items():
        for line in paddock.read(f"/proc/{pid}/cgroup").splitlines():
            _, controllers, path = line.split(":", 2)
            wanted = not controllers or set(controllers.split(",")) & {"memory", "cpu", "pids"}
            assert not wanted or one.id in path, f"{role}: {line}"


def test_box_cannot_write_its_cgroups(one):
    base = id_maps(one.pid1())["uid_map"][0][1]
    for path in paddock.cgroup_dirs(one.id).values():
        for file in (path, *path.iterdir()):
            info = file.stat()
            assert not base <= info.st_uid < base + 65536, f"{file} belongs to the box"
            assert not info.st_mode & 0o002 or file.name == "cgroup.event_control", f"{file} is writable by all"


# ---- network --------------------------------------------------------------


def test_network_from_outside(one):
    devices = paddock.read(f"/proc/{one.pid1()}/net/dev").splitlines()[2:]
    names = {line.split(":")[0].strip() for line in devices}
    # Fallback tunnel devices come with the kernel's modules and are down; nothing else may be there.
    assert "lo" in names and not {name for name in names if re.match(r"^(eth|veth|en|wl|tap|tun\d)", name)}, names
    routes = paddock.read(f"/proc/{one.pid1()}/net/route").splitlines()[1:]
    assert routes == [], "no route leads out"


# ---- the daemon's own programs --------------------------------------------


def test_the_api_dropped_everything(daemon):
    status = paddock.proc_status(daemon.api_pid())
    assert all(int(status[cap], 16) == 0 for cap in CAPS), status
    assert status["NoNewPrivs"] == "1" and status["Seccomp"] == "2"
    assert "0" not in status["Uid"].split() and "0" not in status["Gid"].split()
    assert "0" not in status["Groups"].split()


def test_the_api_is_fenced_by_landlock_and_filter(daemon):
    """It cannot open what it was not given: looked at through its fds and its memory maps."""
    pid = daemon.api_pid()
    targets = [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")]
    files = [target for target in targets if target.startswith("/") and not target.startswith(("/memfd:", "/dev/null"))]
    allowed = (str(daemon.data_dir / "store"), str(daemon.log_file), f"/proc/{pid}/statm")
    assert all(target.startswith(allowed) for target in files), files


def test_the_keeper_holds_no_client_connection(daemon, client):
    client.get("/health")
    pid, inodes = daemon.keeper_pid, set()
    for fd in os.listdir(f"/proc/{pid}/fd"):
        match = re.match(r"socket:\[(\d+)\]", os.readlink(f"/proc/{pid}/fd/{fd}"))
        if match:
            inodes.add(match[1])
    established = {line.split()[9] for line in paddock.read("/proc/net/tcp").splitlines()[1:] if line.split()[3] == "01"}
    assert not inodes & established


def test_run_and_data_directories_are_private(daemon, one):
    for path in (daemon.run_dir, daemon.disk / "boxes", daemon.run_dir / "boxes", daemon.data_dir / "store"):
        mode = path.stat().st_mode & 0o777
        assert not mode & 0o022, f"{path} is {mode:o}"
    assert (daemon.data_dir / "admin.key").stat().st_mode & 0o777 == 0o600
    socket = one.run_dir / "init.sock"
    assert socket.is_socket()
    # Reaching PID 1's socket takes the keeper: no other user of the host may pass the directories.
    private = [part for part in (socket, one.run_dir, daemon.run_dir / "boxes", daemon.run_dir)
               if not part.stat().st_mode & 0o007]
    assert private, "every user of the host can reach the box's socket"


def test_upper_directory_is_private_to_the_host(daemon, one):
    parts = [one.data_dir, daemon.disk / "boxes"]
    assert any(not part.stat().st_mode & 0o007 for part in parts), \
        "a set-user-id file that a box leaves in its upper could be run by users of the host"


def confined(directory):
    """The walls that each program has put up, by strace's files, one of each process so that no line is cut by another's;
    of a box's PID 1 before it was executed."""
    found = {}
    for file in directory.iterdir():
        text = file.read_text()
        # A filter that PID 1 listens to is loaded by a call that returns a descriptor.
        calls = set(re.findall(r"^(landlock_restrict_self|seccomp)\((?:.*= 0|SECCOMP_SET_MODE_FILTER, .*NEW_LISTENER.*= \d+)$", text, re.MULTILINE))
        programs = re.findall(r'^exec\w*\(.*?\["(paddock[\w-]*)"(?:, "(\w+)")?', text, re.MULTILINE)
        if programs:
            program, verb = programs[-1]
            name = "sweep" if verb == "sweep" else program
            if name != "paddockd":  # its other helpers: copy, survey, flush
                found.setdefault(name, set()).update(calls)
    return found


def test_every_program_confines_itself(own_daemon, workdir):
    """Landlock shows nowhere from outside, so the calls are watched: each program makes them before it serves anybody."""
    daemon = own_daemon(environment={"PADDOCK_WEBHOOKS_REFUSE": "link-local"}).start()
    trace = workdir / "confined"
    trace.mkdir()
    with paddock.traced(daemon.keeper_pid, "-ff", "-o", trace / "of", "-e", "trace=execve,execveat,landlock_restrict_self,seccomp"):
        for name in ("paddock-gauge", "paddock-gate", "paddock-api"):
            pid = next(pid for pid, it in daemon.programs().items() if it == name)
            daemon.api_kills += 1
            paddock.kill(pid)
            paddock.until(lambda: name in {it for other, it in daemon.programs().items() if other != pid}, f"{name} is back")
        paddock.until(daemon.healthy, "the new paddock-api answers")
        client = daemon.client()
        client.create().delete()
        assert client.send_json("PUT", "/v1/secrets/one", {"value": "x"}).status in (200, 201)
        assert client.post("/v1/webhooks", {"url": "http://127.0.0.1:1/", "events": ["created"]}).status == 201
        client.create()
        paddock.until(lambda: "paddock-hook" in daemon.programs().values(), "paddock-hook runs")
        with socket.socket(socket.AF_UNIX) as owner:
            owner.connect(str(daemon.run_dir / "owner.sock"))  # which starts it
        paddock.until(lambda: {"paddock-gauge", "paddock-gate", "paddock-api", "paddock-hook", "paddock-signer", "sweep", "paddock-init"}
                      <= {name for name, calls in confined(trace).items()
                          if ("landlock_restrict_self" if name == "sweep" else "seccomp") in calls}, "all have begun")
    seen = confined(trace)
    assert seen.pop("sweep") == {"landlock_restrict_self"}
    for name, calls in seen.items():
        assert calls == {"landlock_restrict_self", "seccomp"}, (name, calls)
