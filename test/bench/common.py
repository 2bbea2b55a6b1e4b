"""What every section of `make bench` uses: statistics, the daemon under test, the table."""

import os
import subprocess
import sys
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


def memory_dir(work):
    return Path("/dev/shm") / work.name


def proportional_kb(pid):
    """A process's share of memory (PSS); 0 when it is gone."""
    try:
        lines = paddock.read(f"/proc/{pid}/smaps_rollup").splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("Pss:")), 0)


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
            proportional += proportional_kb(pid)
        return resident / 1024, proportional / 1024


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
