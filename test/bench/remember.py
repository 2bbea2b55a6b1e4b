"""The figures of the computer that remembers: pool, shells, a thousand boxes, pause, fork, streams, adoption."""

import json
import subprocess
import threading
import time

from common import Ours, paddock, proportional_kb, summary
from peers import Docker, make_rootfs

GB = 1 << 30
MIB = 1 << 20


def configure(ours, text):
    path = ours.work / "paddock.yaml"
    path.write_text(text)
    ours.daemon.arguments = ["--config", str(path)]
    return ours.daemon


def running(daemon):
    return sum((path / "state").exists() for path in (daemon.run_dir / "boxes").iterdir())


def add_times(book, what, values, target=None, worst=None):
    values = summary(values)
    book.add(f"{what} p50", values["p50"], "ms", target, **values)
    book.add(f"{what} p99", values["p99"], "ms", worst)


# ---- the pool -------------------------------------------------------------


def creates_at_once(daemon, count):
    """Seconds until the last of `count` boxes, created at one moment, has answered a command.

    The requests alone: client.create() also looks for the box's traces on the host, and a hundred threads that
    walk all control groups at the same time take a minute."""
    start, failures = threading.Barrier(count + 1), []

    def one():
        client = daemon.client()
        client.get("/health")  # connected
        start.wait()
        try:
            made = client.post("/v1/sandboxes", {})
            assert made.status == 201, made
            done = client.post(f"/v1/sandboxes/{made.json()['id']}/exec", {"argv": ["/bin/true"]})
            assert done.status == 200 and done.json()["exit_code"] == 0, done
        except Exception as failure:  # noqa: BLE001 - told to the main thread
            failures.append(failure)
        client.close()

    threads = [threading.Thread(target=one) for _ in range(count)]
    for thread in threads:
        thread.start()
    start.wait()
    begun = time.perf_counter()
    for thread in threads:
        thread.join()
    took = time.perf_counter() - begun
    if failures:
        raise SystemExit(f"{len(failures)} of {count} creates failed: {failures[0]}")
    daemon.delete_all()
    return took


def pool(ours, book, quick):
    warm = 20 if quick else 100
    daemon = configure(ours, f"pool:\n  machine:\n    warm: {warm}\n").start()
    create, delete = ours.request("create", "POST", "/v1/sandboxes", b"{}"), ours.request("delete", "DELETE", "/v1/sandboxes/@ID@")
    times = []
    for _ in range(2 if quick else 6):
        paddock.until(lambda: running(daemon) >= warm, "the pool is full", 60)
        times += ours.latencies(warm // 2, create, delete)
    add_times(book, "create from a warm pool", times, 0.6)
    paddock.until(lambda: running(daemon) >= warm, "the pool is full", 60)
    book.add(f"{warm} creates at once from a warm pool, all answer a command", creates_at_once(daemon, warm), "s", 0.6)
    daemon.stop()
    (ours.work / "paddock.yaml").write_text("")
    daemon.start()
    paddock.until(lambda: running(daemon) == 0, "the pool is gone", 60)
    book.add(f"{warm} creates at once, cold", creates_at_once(daemon, warm), "s")


# ---- shells and streams ---------------------------------------------------


def shells(ours, book, quick, docker):
    box = ours.daemon.client().create()
    command = ours.request("shell", "POST", f"{box.path}/exec", b'{"command":"true","shell":"default"}')
    ours.latencies(20, command)
    add_times(book, "command in a stateful shell", ours.latencies(100 if quick else 2000, command), 0.5, 3)
    if docker:
        docker.call("run", "-d", "--name", "peer", "--network", "none", "bench", "/bin/sh", "-c", "sleep 600")
        add_times(book, "docker exec", [docker.exec("peer") for _ in range(3 if quick else 20)])
        docker.call("rm", "-f", "peer")
    box.delete()


def curl(ours, *arguments):
    """Bytes per second of one transfer."""
    result = subprocess.run(["curl", "-sSf", "-H", f"Authorization: Bearer {ours.daemon.key}", "-o", "/dev/null",
                             "-w", "%{size_download} %{size_upload} %{time_total}", *arguments], capture_output=True, text=True, check=True)
    down, up, seconds = map(float, result.stdout.split())
    return max(down, up), max(down, up) / seconds / 1e6


def streams(ours, book, quick):
    size = GB // 8 if quick else GB
    box = ours.daemon.client().create(limits={"memory_mb": 2048})
    base = f"http://{ours.daemon.host}:{ours.daemon.port}"
    body = json.dumps({"argv": ["head", "-c", str(size), "/dev/zero"], "timeout_ms": 60000})
    for kind, target in (("application/octet-stream", 400), ("application/x-ndjson", None)):
        got, speed = curl(ours, "-H", f"Accept: {kind}", "-H", "Content-Type: application/json", "-d", body, f"{base}{box.path}/exec")
        if got < size:
            raise SystemExit(f"{got} of {size} bytes came")
        book.add(f"1 GB of stdout as {kind}", speed, "MB/s", target, least=True)
    source = paddock.Path("/dev/shm") / ours.work.name / "source"
    with open(source, "wb") as file:
        file.truncate(size)
    where = f"{base}{box.file_path('/workspace/big')}"
    for what, arguments in (("upload of 1 GB", ("-T", source, where)), ("download of 1 GB", (where,))):
        got, speed = curl(ours, *arguments)
        if got != size:
            raise SystemExit(f"{what}: {got} of {size} bytes")
        book.add(what, speed, "MB/s", 500, least=True)
    source.unlink()
    box.delete()


# ---- life -----------------------------------------------------------------


def pauses(ours, book, quick):
    box, rounds = ours.daemon.client().create(), 20 if quick else 200
    box.client.post(f"{box.path}/exec", {"command": "sleep 1000 &", "shell": "default"})
    pause, resume = (ours.request(verb, "POST", f"{box.path}/{verb}", b"{}") for verb in ("pause", "resume"))
    add_times(book, "pause", ours.latencies(rounds, pause, resume), 3)
    box.client.post(f"{box.path}/pause", {})
    add_times(book, "resume", ours.latencies(rounds, resume, pause), 3)
    box.delete()


def forks(ours, book, quick):
    box = ours.daemon.client().create()
    box.check("mkdir d && cd d && for i in $(seq 100); do mkdir $i && (cd $i && seq 100 | xargs -I% sh -c 'echo % > %'); done; "
              "head -c 100000000 /dev/urandom > /workspace/blob", timeout_ms=120_000)
    times, stopped = [], []
    for _ in range(5 if quick else 20):
        begun = time.perf_counter()
        answer = box.client.post(f"{box.path}/fork", {"count": 1})
        times.append((time.perf_counter() - begun) * 1000)
        if answer.status != 201:
            raise SystemExit(str(answer))
        document = answer.json()
        stopped.append(document["stopped_us"] / 1000)
        for made in document["sandboxes"]:
            box.client.delete(f"/v1/sandboxes/{made['id']}")
    add_times(book, "fork of 10,000 files and 100 MB", times, 30)
    add_times(book, "fork stops the box for", stopped, 10)
    box.delete()


# ---- many -----------------------------------------------------------------


class Memory:
    """What boxes take, in MiB, each by what can be counted of them alone or nearly so:

    processes  the proportional share (PSS) of everything that runs in a box
    kernel     growth of slab, kernel stacks, page tables and per-CPU memory of the machine. Dentries and
               inodes that nobody holds are dropped before, so that what is counted cannot be taken back.
    available  loss of MemAvailable, for comparison. It is the machine's own guess about all of its memory: it
               counts slab that live boxes hold as free, and whatever an earlier benchmark gives back meanwhile
               (caches, deleted trees) as if the boxes had given it. It can be anything, also negative.
    """

    def __init__(self, daemon):
        paddock.Path("/proc/sys/vm/drop_caches").write_text("2")
        ours = daemon.programs()
        inside = [pid for pid in paddock.descendants(daemon.keeper_pid) if pid not in ours]
        self.processes = sum(proportional_kb(pid) for pid in inside) / 1024
        info = {line.split(":")[0]: int(line.split()[1]) / 1024 for line in paddock.read("/proc/meminfo").splitlines()}
        self.kernel = sum(info[part] for part in ("Slab", "KernelStack", "PageTables", "Percpu"))
        self.available = -info["MemAvailable"]

    def each(self, before, count):
        parts = {name: (value - getattr(before, name)) / count for name, value in vars(self).items()}
        return parts["processes"] + parts["kernel"], parts


def create_many(client, count):
    return [client.create() for _ in range(count)]


def start_shells(client, boxes):
    for box in boxes:
        if client.post(f"{box.path}/exec", {"command": "true", "shell": "default"}).status != 200:
            raise SystemExit("a shell does not answer")


def fill(client, count):
    start_shells(client, create_many(client, count))


def many(ours, book, quick):
    count = 100 if quick else 1000
    daemon = ours.daemon
    client = daemon.client()
    create, delete = ours.request("create", "POST", "/v1/sandboxes", b"{}"), ours.request("delete", "DELETE", "/v1/sandboxes/@ID@")
    fill(client, 10)
    few = summary(ours.latencies(60, create, delete))["p50"]
    before = Memory(daemon)
    boxes = create_many(client, count - 10)
    total, parts = Memory(daemon).each(before, count - 10)
    book.add(f"{count} idle boxes, PID 1 only: memory each", total, "MiB", **parts)
    start_shells(client, boxes)
    total, parts = Memory(daemon).each(before, count - 10)
    book.add(f"{count} idle boxes with a shell: memory each", total, "MiB", 1.6, **parts)
    book.add("  of it processes (PSS)", parts["processes"], "MiB")
    book.add("  of it kernel (slab, stacks, page tables, per CPU)", parts["kernel"], "MiB")
    book.add("  the same by MemAvailable (the whole machine's)", parts["available"], "MiB")
    crowd = summary(ours.latencies(60, create, delete))["p50"]
    book.add("create p50 at 10 boxes", few, "ms")
    book.add(f"create p50 at {count} boxes", crowd, "ms")
    book.add(f"create at {count} / at 10", crowd / few, "times", 2)
    resident, _ = ours.idle_memory()
    book.add(f"our programs at {count} boxes, resident", resident, "MiB", 60)
    daemon.delete_all()


def adoption(ours, book, quick):
    count = 50 if quick else 200
    daemon = ours.daemon
    client = daemon.client()
    fill(client, count)
    boxes = [box["id"] for box in client.list()]
    busy = [client.post(f"/v1/sandboxes/{box}/exec", {"command": "while :; do echo x; sleep 0.05; done &", "shell": "default"})
            for box in boxes[:20]]
    assert all(answer.status == 200 for answer in busy)
    client.close()
    daemon.kill_keeper()
    begun = time.perf_counter()
    daemon.start()
    ready = (time.perf_counter() - begun) * 1000
    client = daemon.client()
    paddock.until(lambda: len(client.list("status=running&limit=1000")) == count, "all are adopted", 20)
    for box in boxes[::20]:
        if client.post(f"/v1/sandboxes/{box}/exec", {"command": "true", "shell": "default"}).status != 200:
            raise SystemExit("a box that was adopted does not answer")
    book.add(f"kill -9 with {count} boxes: start to all adopted", (time.perf_counter() - begun) * 1000, "ms", 500, ready_ms=ready)
    daemon.delete_all()


def measure(work, book, options, stack):
    quick = options.quick
    ours = Ours(work)
    ours.daemon.arguments = []
    pool(ours, book, quick)
    stack.callback(ours.daemon.finish)
    docker = None
    if not options.no_docker:
        docker = Docker(work, make_rootfs(work))
        stack.callback(docker.stop)
    for part in (shells, streams, pauses, forks, many, adoption):
        if part is shells:
            part(ours, book, quick, docker)
        else:
            part(ours, book, quick)
