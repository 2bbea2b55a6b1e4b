#!/usr/bin/python3
"""make bench: the figures of the foundation, with peers measured in the same run.

Prints a table (p50, p99, target, verdict) and writes build/bench.json. Everything
that is started here is stopped here; nothing outside build/, /var/tmp and /dev/shm is touched
but cgroups of names of our own. Exit status 1 when a target is missed.

    test/bench/bench.py [--quick] [--no-docker]
"""

import argparse
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "it"))
sys.dont_write_bytecode = True

import paddock  # noqa: E402

TICKS = os.sysconf("SC_CLK_TCK")


def percentile(values, share):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def summary(values):
    return {"n": len(values), "min": min(values), "p50": percentile(values, 0.50), "p90": percentile(values, 0.90),
            "p99": percentile(values, 0.99)}


def timed(command):
    """Milliseconds of one run of a program. posix_spawn, so that our own size does not count."""
    null = os.open("/dev/null", os.O_RDWR)
    begun = time.perf_counter()
    pid = os.posix_spawn(command[0], command, os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, null, 0), (os.POSIX_SPAWN_DUP2, null, 1)])
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    took = (time.perf_counter() - begun) * 1000
    os.close(null)
    if status != 0:
        raise SystemExit(f"{' '.join(map(str, command))}: exit status {status}")
    return took


def cpu_seconds(pids):
    total = 0
    for pid in pids:
        fields = paddock.read(f"/proc/{pid}/stat").rsplit(")", 1)[1].split()
        total += int(fields[11]) + int(fields[12])
    return total / TICKS


# ---- ours -----------------------------------------------------------------


def memory_dir(work):
    return Path("/dev/shm") / work.name


class Ours:
    def __init__(self, work):
        self.work = work
        self.lat = work / "lat"
        subprocess.run(["gcc", "-O2", "-D_GNU_SOURCE", "-o", self.lat, HERE / "lat.c"], check=True)
        base = work / "daemon"
        base.mkdir()
        self.daemon = paddock.Daemon(base)
        # RUN is on a tmpfs wherever /run is one, which is everywhere but on this project's machines.
        self.daemon.run_dir = memory_dir(work)
        self.daemon.run_dir.mkdir()

    def request(self, name, method, path, body=b""):
        file = self.work / f"{name}.http"
        head = (f"{method} {path} HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer {self.daemon.key}\r\n"
                + (f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n" if body else "") + "\r\n")
        file.write_bytes(head.encode() + body)
        return file

    def latencies(self, rounds, *files):
        """Milliseconds."""
        result = subprocess.run([self.lat, self.daemon.host, str(self.daemon.port), str(rounds), *files], capture_output=True, text=True)
        if result.returncode != 0:
            raise SystemExit(f"{result.stderr}\n{self.daemon.log()}")
        return [int(line) / 1e6 for line in result.stdout.split()]

    def starts(self, count):
        """The first start makes the directories, the store and the image; the others are what a restart costs."""
        times = []
        for _ in range(count + 1):
            begun = time.perf_counter()
            self.daemon.start()
            times.append((time.perf_counter() - begun) * 1000)
            self.daemon.stop()
        return times[0], times[1:]

    def idle_memory(self):
        """MiB over all our programs: (resident, proportional)."""
        resident = proportional = 0
        for pid in self.daemon.programs():
            resident += paddock.rss_kb(pid)
            for line in paddock.read(f"/proc/{pid}/smaps_rollup").splitlines():
                if line.startswith("Pss:"):
                    proportional += int(line.split()[1])
        return resident / 1024, proportional / 1024


# ---- peers ----------------------------------------------------------------


def make_rootfs(work):
    """The smallest userland there is, the same for every peer."""
    root = work / "rootfs"
    for name in ("bin", "proc", "dev", "sys", "tmp", "etc"):
        (root / name).mkdir(parents=True)
    source = shutil.which("busybox")
    if not source:
        raise SystemExit("busybox-static is not installed")
    shutil.copy(source, root / "bin" / "busybox")
    for applet in ("true", "sh"):
        (root / "bin" / applet).symlink_to("busybox")
    return root


class Bubblewrap:
    def __init__(self, work, root):
        self.command = [shutil.which("bwrap"), "--unshare-all", "--ro-bind", str(root), "/", "--proc", "/proc", "--dev", "/dev",
                        "--tmpfs", "/tmp", "--die-with-parent", "/bin/true"]

    def round(self):
        return timed(self.command)


class Runc:
    def __init__(self, work, root):
        self.bundle, self.state, self.count = work / "bundle", work / "runc", 0
        self.bundle.mkdir()
        subprocess.run(["runc", "spec"], cwd=self.bundle, check=True)
        file = self.bundle / "config.json"
        spec = json.loads(file.read_text())
        spec["process"].update(terminal=False, args=["/bin/true"])
        spec["root"] = {"path": str(root), "readonly": True}
        spec["linux"]["cgroupsPath"] = f"/paddock-bench-{os.getpid()}/runc"
        file.write_text(json.dumps(spec))

    def round(self):
        self.count += 1
        return timed([shutil.which("runc"), "--root", str(self.state), "run", "--bundle", str(self.bundle), f"bench{self.count}"])


class Docker:
    """Debian's dockerd by hand: own directories, own socket, no network, no firewall rules."""

    def __init__(self, work, root):
        self.base = work / "docker"
        self.base.mkdir()
        self.socket = f"unix://{self.base}/sock"
        self.program = "/usr/bin/docker" if os.access("/usr/bin/docker", os.X_OK) else shutil.which("docker")
        dockerd = shutil.which("dockerd")
        if not dockerd:
            raise SystemExit("dockerd (docker.io) is not installed")
        self.litter = [path for path in map(Path, ("/etc/docker/key.json", "/run/docker")) if not path.exists()]
        self.log = open(self.base / "log", "wb")
        self.process = subprocess.Popen(
            [dockerd, "--host", self.socket, "--data-root", self.base / "data", "--exec-root", self.base / "exec",
             "--pidfile", self.base / "pid", "--iptables=false", "--ip6tables=false", "--ip-forward=false", "--bridge=none",
             "--cgroup-parent", f"/paddock-bench-{os.getpid()}"],
            stdout=self.log, stderr=subprocess.STDOUT, preexec_fn=paddock.die_with_parent)
        paddock.until(lambda: self.call("version").returncode == 0, f"dockerd answers, see {self.base}/log", 60)
        tar = subprocess.Popen(["tar", "-C", root, "-c", "."], stdout=subprocess.PIPE)
        subprocess.run([self.program, "-H", self.socket, "import", "-", "bench"], stdin=tar.stdout, check=True, capture_output=True)
        tar.stdout.close()
        tar.wait()

    def call(self, *arguments):
        if self.process.poll() is not None:
            raise SystemExit(f"dockerd ended\n{paddock.read(self.base / 'log')[-3000:]}")
        return subprocess.run([self.program, "-H", self.socket, *arguments], capture_output=True)

    def round(self):
        return timed([self.program, "-H", self.socket, "run", "--rm", "--network", "none", "bench", "/bin/true"])

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()
        for path in self.litter:  # made outside its directories in spite of all flags
            shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink(missing_ok=True)


class Nginx:
    """The limit: a static answer of the same bytes from one worker."""

    def __init__(self, work, body):
        self.base = work / "nginx"
        self.base.mkdir()
        with paddock.socket.create_server(("127.0.0.1", 0)) as probe:
            self.port = probe.getsockname()[1]
        text = body.replace('"', '\\"')
        (self.base / "conf").write_text(f"""
daemon off; master_process off; worker_processes 1; pid {self.base}/pid; error_log {self.base}/error.log;
events {{ worker_connections 1024; }}
http {{
  access_log off; keepalive_requests 100000000; keepalive_timeout 75s; default_type application/json; server_tokens off;
  client_body_temp_path {self.base}/b; proxy_temp_path {self.base}/p; fastcgi_temp_path {self.base}/f;
  uwsgi_temp_path {self.base}/u; scgi_temp_path {self.base}/s;
  server {{ listen 127.0.0.1:{self.port}; location = /health {{ return 200 "{text}"; }} }}
}}
""")
        self.process = subprocess.Popen(["nginx", "-c", self.base / "conf", "-p", self.base], stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL, preexec_fn=paddock.die_with_parent)

        def answers():
            with contextlib.suppress(OSError), paddock.socket.create_connection(("127.0.0.1", self.port), 1):
                return True

        paddock.until(answers, "nginx answers")

    def stop(self):
        self.process.terminate()
        self.process.wait()


def requests_per_cpu_second(port, pids, seconds):
    before = cpu_seconds(pids)
    result = subprocess.run(["wrk", "-t1", "-c16", f"-d{seconds}s", f"http://127.0.0.1:{port}/health"], capture_output=True, text=True,
                            check=True)
    used = cpu_seconds(pids) - before
    count = int(result.stdout.split(" requests in")[0].split()[-1])
    if "Non-2xx" in result.stdout or used <= 0:
        raise SystemExit(result.stdout)
    return count / used, count / seconds


# ---- the run --------------------------------------------------------------


class Book:
    """The rows of the table."""

    def __init__(self):
        self.rows, self.data = [], {}

    def add(self, what, value, unit, target=None, least=False, **more):
        """A figure against its target: at most, or with `least` at least."""
        verdict = "" if target is None else "pass" if (value >= target if least else value <= target) else "FAIL"
        bound = "" if target is None else f"{'>=' if least else '<='} {target:g} {unit}".strip()
        self.rows.append((what, f"{value:.2f} {unit}".strip(), bound, verdict))
        self.data[what] = {"value": round(value, 4), "unit": unit, "target": target, "verdict": verdict, **more}

    def show(self):
        heads = ("what", "measured", "target", "verdict")
        widths = [max(len(row[i]) for row in (heads, *self.rows)) for i in range(4)]
        for row in (heads, tuple("-" * width for width in widths), *self.rows):
            print("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())

    def failed(self):
        return [row[0] for row in self.rows if row[3] == "FAIL"]


def measure(work, book, options, stack):
    quick = options.quick
    ours, root = Ours(work), make_rootfs(work)

    first, starts = ours.starts(5 if quick else 20)
    starts = summary(starts)
    book.add("start to ready p50", starts["p50"], "ms", 150, **starts)
    book.add("start to ready p99", starts["p99"], "ms")
    book.add("first start (makes store and image)", first, "ms")

    daemon = ours.daemon.start()
    stack.callback(daemon.finish)
    resident, proportional = ours.idle_memory()
    book.add("idle, resident", resident, "MiB", 20)
    book.add("idle, proportional", proportional, "MiB")

    peers = {"bwrap": Bubblewrap(work, root), "runc run": Runc(work, root)}
    if not options.no_docker:
        peers["docker run --rm"] = Docker(work, root)
        stack.callback(peers["docker run --rm"].stop)
    rounds = {"bwrap": 10, "runc run": 10, "docker run --rm": 2} if quick else {"bwrap": 40, "runc run": 40, "docker run --rm": 6}

    create = ours.request("create", "POST", "/v1/sandboxes", b"{}")
    delete = ours.request("delete", "DELETE", "/v1/sandboxes/@ID@")
    ours.latencies(5, create, delete)
    for peer in peers.values():
        peer.round()
    times = {"create": [], **{name: [] for name in peers}}
    for _ in range(5):  # interleaved, so that all see the same neighbours
        times["create"] += ours.latencies(10 if quick else 60, create, delete)
        for name, peer in peers.items():
            times[name] += [peer.round() for _ in range(rounds[name])]
    made = {name: summary(values) for name, values in times.items()}
    book.add("POST /v1/sandboxes p50", made["create"]["p50"], "ms", 4, **made["create"])
    book.add("POST /v1/sandboxes p99", made["create"]["p99"], "ms", 15)
    for name in peers:
        book.add(f"{name} p50", made[name]["p50"], "ms", **made[name])
        book.add(f"{name} p99", made[name]["p99"], "ms")
    for name, target in (("docker run --rm", 60), ("runc run", 1), ("bwrap", None)):
        if name in peers:
            book.add(f"{name} / create, p50", made[name]["p50"] / made["create"]["p50"], "times", target, least=True)

    client = daemon.client()
    box = client.create()
    box.put("/workspace/kilobyte", b"k" * 1024)
    for name, file, target in (
        ("exec of /bin/true", ours.request("exec", "POST", f"{box.path}/exec", b'{"argv":["/bin/true"]}'), 3),
        ("read of 1 kB", ours.request("read", "GET", box.file_path("/workspace/kilobyte")), 0.5),
    ):
        ours.latencies(10, file)
        values = summary(ours.latencies(50 if quick else 500, file))
        book.add(f"{name} p50", values["p50"], "ms", target, **values)
        book.add(f"{name} p99", values["p99"], "ms")
    box.delete()

    nginx = Nginx(work, client.get("/health").body.decode())
    stack.callback(nginx.stop)
    results = {"ours": [], "nginx": []}
    for _ in range(2 if quick else 5):
        results["ours"].append(requests_per_cpu_second(daemon.port, [daemon.api_pid()], 2))
        results["nginx"].append(requests_per_cpu_second(nginx.port, [nginx.process.pid], 2))
    per_cpu = {name: percentile([value for value, _ in values], 0.5) for name, values in results.items()}
    for name, value in per_cpu.items():
        book.add(f"GET /health, {name}, per CPU second", value, "requests")
    book.add("GET /health, ours / nginx", per_cpu["ours"] / per_cpu["nginx"], "times", 0.8, least=True)
    client.close()


def clean_up(work, docker_cgroup):
    """What a killed peer may have left: mounts below our directory, cgroups of our name."""
    points = sorted((point for _, point, *_ in paddock.mountinfo() if point.startswith(str(work))), reverse=True)
    for point in points:
        subprocess.run(["umount", "-l", point], check=False)
    for mount in set(paddock.cgroup_mounts().values()):
        top = Path(mount) / docker_cgroup
        if top.is_dir():
            for directory, _, _ in os.walk(top, topdown=False):
                with contextlib.suppress(OSError):
                    os.rmdir(directory)
    shutil.rmtree(work, ignore_errors=True)
    shutil.rmtree(memory_dir(work), ignore_errors=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few rounds: to see that it works, not for figures")
    parser.add_argument("--no-docker", action="store_true", help="leave the slowest peer out")
    options = parser.parse_args()
    if os.geteuid() != 0:
        raise SystemExit("run as root")
    work = Path(tempfile.mkdtemp(prefix="pdk-bench-", dir="/var/tmp"))
    book = Book()
    try:
        with contextlib.ExitStack() as stack:
            measure(work, book, options, stack)
    finally:
        clean_up(work, f"paddock-bench-{os.getpid()}")
    book.show()
    out = paddock.ROOT / "build" / "bench.json"
    out.parent.mkdir(exist_ok=True)
    out.write_text(json.dumps({"quick": options.quick, "kernel": os.uname().release, "cpus": os.cpu_count(),
                               "when": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "figures": book.data}, indent=1) + "\n")
    if book.failed():
        raise SystemExit(f"missed: {', '.join(book.failed())}")


if __name__ == "__main__":
    main()
