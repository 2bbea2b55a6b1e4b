# /v1/sandbox/observe: what the sandbox uses, now (live) and over a time (a session, which a process in the sandbox samples).
# A session is ~/.aio/observe/session.json and samples.jsonl beside it; a report is an archive of both.
import datetime
import io
import pwd
import re
import secrets
import signal
import tarfile
import time

DIR = os.path.join(HOME, "observe")
REPORTS = os.path.join(DIR, "reports")
SESSION, SAMPLES = os.path.join(DIR, "session.json"), os.path.join(DIR, "samples.jsonl")
SAMPLES_MAX, REPORTS_MAX = 16 << 20, 20
TICK = os.sysconf("SC_CLK_TCK")
ALARM = 90.0  # per cent of memory or disk, at which an event is written


def stamp(seconds=None):
    at = datetime.datetime.fromtimestamp(seconds if seconds is not None else time.time(), datetime.timezone.utc)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def read(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as f:
            return f.read()
    except OSError:
        return ""


def number(*paths):
    """The first of these files that has a number."""
    for path in paths:
        text = read(path).strip()
        if text.isdigit():
            return int(text)
    return None


def table(path):
    return {k: int(v) for k, v in (line.split()[:2] for line in read(path).splitlines() if len(line.split()) > 1) if v.isdigit()}


def memory():
    return {k.rstrip(":"): int(v) * 1024 for k, v in (line.split()[:2] for line in read("/proc/meminfo").splitlines())}


def cgroup():
    root = "/sys/fs/cgroup"
    stat = table(f"{root}/memory.stat") or table(f"{root}/memory/memory.stat")
    cpu, events = table(f"{root}/cpu.stat") or table(f"{root}/cpu/cpu.stat"), table(f"{root}/memory.events")
    usage = cpu.get("usage_usec")
    if usage is None:
        ns = number(f"{root}/cpuacct/cpuacct.usage")
        fields = [int(n) for n in read("/proc/stat").split("\n", 1)[0].split()[1:]]
        usage = ns // 1000 if ns is not None else int((sum(fields[:3]) if len(fields) > 2 else 0) * 1e6 / TICK)
    info = memory()
    most = number(f"{root}/memory.max", f"{root}/memory/memory.limit_in_bytes") or info.get("MemTotal")
    now = number(f"{root}/memory.current", f"{root}/memory/memory.usage_in_bytes")
    if now is None:
        now = max(info.get("MemTotal", 0) - info.get("MemAvailable", 0), 0)
    most = min(most, info["MemTotal"]) if most and info.get("MemTotal") else most
    return {"cpu_usage_pct": None, "cpu_usage_usec": usage, "cpu_nr_periods": cpu.get("nr_periods"),
            "cpu_nr_throttled": cpu.get("nr_throttled"), "cpu_throttled_usec": cpu.get("throttled_usec"),
            "mem_current_bytes": now, "mem_max_bytes": most, "mem_usage_pct": round(100 * now / most, 2) if most else None,
            "oom": events.get("oom"), "oom_kill": events.get("oom_kill"), "memory_anon_bytes": stat.get("anon", stat.get("rss")),
            "memory_file_bytes": stat.get("file", stat.get("cache")), "memory_shmem_bytes": stat.get("shmem"),
            "memory_slab_bytes": stat.get("slab")}


def disks():
    found = []
    for path in dict.fromkeys(("/", os.getcwd())):
        s = os.statvfs(path)
        total, free = s.f_blocks * s.f_frsize, s.f_bavail * s.f_frsize
        used = max(total - s.f_bfree * s.f_frsize, 0)
        inodes = s.f_files - s.f_ffree
        found.append({"path": path, "used_bytes": used, "total_bytes": total, "free_bytes": free,
                      "usage_pct": round(100 * used / total, 2) if total else 0.0, "inode_used": inodes, "inode_total": s.f_files,
                      "inode_usage_pct": round(100 * inodes / s.f_files, 2) if s.f_files else None})
    return found


def user(uid):
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def process(pid, uptime):
    with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as f:
        comm, _, rest = f.read().partition("(")[2].rpartition(")")
    field = rest.split()
    rss = int(field[21]) * os.sysconf("SC_PAGE_SIZE")
    try:
        fds = len(os.listdir(f"/proc/{pid}/fd"))
    except OSError:
        fds = None
    return {"pid": pid, "user": user(os.stat(f"/proc/{pid}").st_uid), "comm": comm, "rss_bytes": rss, "rss_mib": round(rss / 1048576, 2),
            "cpu_pct": None, "threads": int(field[17]), "fds": fds, "state": field[0],
            "uptime_sec": max(round(uptime - int(field[19]) / TICK, 1), 0.0), "ppid": int(field[1]),
            "ticks": int(field[11]) + int(field[12])}


def processes():
    uptime, found = float(read("/proc/uptime").split()[0]), {}
    for pid in (int(n) for n in os.listdir("/proc") if n.isdigit()):
        try:
            found[pid] = process(pid, uptime)
        except (OSError, IndexError):
            continue  # it has ended
    return found


def sample(rows, with_disk, window=0.2):
    """Two looks, from which the share of the CPU follows."""
    first, old, began = cgroup(), processes() if rows else {}, time.monotonic()
    time.sleep(window)
    now, new, took = cgroup(), processes() if rows else {}, time.monotonic() - began
    now["cpu_usage_pct"] = round(max(now["cpu_usage_usec"] - first["cpu_usage_usec"], 0) / took / 1e4, 2)
    for pid, p in new.items():
        ticks = p.pop("ticks")
        p["cpu_pct"] = round((ticks - old[pid].get("ticks", ticks)) / TICK / took * 100, 1) if pid in old else None
    top = sorted(new.values(), key=lambda p: (-(p["cpu_pct"] or 0), -p["rss_bytes"]))[:rows]
    return {"captured_at": stamp(), "cgroup": now, "disk": disks() if with_disk else [], "top_processes": top}


def session():
    try:
        return json.loads(read(SESSION))
    except ValueError:
        return None


def is_running(s):
    """Its sampler is the process that has the session's id in its command line: the pid alone may be another's by now."""
    return bool(s and not s.get("stopped") and s["session_id"] in read(f"/proc/{s['pid']}/cmdline").split("\0"))


def save(s):
    os.makedirs(DIR, exist_ok=True)
    with open(SESSION + ".new", "w", encoding="utf-8") as f:
        json.dump(s, f)
    os.rename(SESSION + ".new", SESSION)


def events(n=20):
    found = [json.loads(line)["event"] for line in read(SAMPLES).splitlines() if line.startswith('{"event"')]
    return found[-n:]


def write_line(f, document):
    f.write(json.dumps(document) + "\n")
    f.flush()


def watch(s):
    """The sampler's life."""
    end = time.time() + s["duration"] if s["duration"] else None
    high = set()
    with open(SAMPLES, "a", encoding="utf-8") as f:
        while (end is None or time.time() < end) and f.tell() < SAMPLES_MAX:
            began = time.monotonic()
            one = sample(10 if s["processes"] else 0, s["disk"], min(0.2, s["interval"]))
            shares = {"memory": one["cgroup"]["mem_usage_pct"] or 0, **{f"disk {d['path']}": d["usage_pct"] for d in one["disk"]}}
            for what, share in shares.items():
                if share >= ALARM and what not in high:
                    write_line(f, {"event": {"ts": stamp(), "type": "high_usage", "message": f"{what} is {share} % full", "data": {what: share}}})
            high = {what for what, share in shares.items() if share >= ALARM}
            if s["mode"] == "capture":
                write_line(f, one)
            else:
                os.utime(SAMPLES)
            time.sleep(max(s["interval"] - (time.monotonic() - began), 0.01))
        if f.tell() >= SAMPLES_MAX:
            write_line(f, {"event": {"ts": stamp(), "type": "full", "message": "the samples have reached their most bytes", "data": {}}})


def detach(s):
    """The sampler: this script once more, as a process of its own."""
    if os.fork():
        return
    os.setsid()
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    words = read("/proc/self/cmdline").split("\0")
    source = words[words.index("-c") + 1]
    os.execv(sys.executable, [sys.executable, "-I", "-c", source, "sample", s["session_id"]])


def start(mode, key, duration, interval, with_processes, with_disk):
    s = session()
    if is_running(s):
        if key and key == s.get("key"):
            begun(s)
        refuse(f"the observation {s['session_id']} is running: stop it first")
    now = time.time()
    s = {"session_id": secrets.token_hex(8), "mode": mode, "key": key, "started": now, "duration": float(duration or 0),
         "interval": float(interval or (1 if mode == "capture" else 5)), "processes": with_processes != "false" and
         (mode == "capture" or with_processes == "true"), "disk": with_disk == "true", "pid": 0}
    os.makedirs(DIR, exist_ok=True)
    with open(SAMPLES, "w", encoding="utf-8"):
        pass
    save(s)
    detach(s)
    end = time.monotonic() + 10
    while not is_running(session()) and time.monotonic() < end:
        time.sleep(0.01)
    begun(session())


def ends(s):
    return stamp(s["started"] + s["duration"]) if s["duration"] else None


def begun(s):
    done({"session_id": s["session_id"], "mode": s["mode"], "started_at": stamp(s["started"]), "ends_at": ends(s),
          "interval_seconds": s["interval"], "runtime_dir": DIR})


def status():
    s = session()
    if not is_running(s):
        done({"mode": "off", "running": False, "session_id": s and s["session_id"], "report_count": len(reports())})
    last = stamp(os.stat(SAMPLES).st_mtime) if os.path.exists(SAMPLES) else None
    done({"mode": s["mode"], "running": True, "session_id": s["session_id"], "started_at": stamp(s["started"]), "ends_at": ends(s),
          "interval_seconds": s["interval"], "last_sample_at": last, "runtime_dir": DIR, "report_count": len(reports())})


def live(rows):
    s = session()
    one = sample(int(rows), True)
    done({**one, "mode": s["mode"] if is_running(s) else "off", "recent_events": events()})


def reports():
    found = []
    for name in os.listdir(REPORTS) if os.path.isdir(REPORTS) else []:
        if name.endswith(".json"):
            try:
                found.append(json.loads(read(os.path.join(REPORTS, name))))
            except ValueError:
                continue
    return sorted(found, key=lambda r: r["created_at"])


def export(wanted, key, reason):
    s = session()
    if not s or (wanted and wanted != s["session_id"]):
        refuse("there is no such observation" if wanted else "nothing was observed yet: start first")
    for r in reports():
        if key and r.get("key") == key:
            done({k: v for k, v in r.items() if k != "key"})
    os.makedirs(REPORTS, exist_ok=True)
    for old in reports()[:-REPORTS_MAX + 1]:
        drop(old["report_id"])
    name = secrets.token_hex(8)
    path = os.path.join(REPORTS, f"{name}.tar.gz")
    with tarfile.open(path, "w:gz") as t:
        for file in (SESSION, SAMPLES):
            if os.path.exists(file):
                data = read(file).encode()
                member = tarfile.TarInfo(os.path.basename(file))
                member.size, member.mtime = len(data), int(time.time())
                t.addfile(member, io.BytesIO(data))
    info = {"report_id": name, "session_id": s["session_id"], "reason": reason, "created_at": stamp(), "path": path, "size_bytes": os.stat(path).st_size}
    with open(os.path.join(REPORTS, f"{name}.json"), "w", encoding="utf-8") as f:
        json.dump({**info, "key": key}, f)
    return info


def find(name):
    for r in reports():
        if r["report_id"] == name and re.fullmatch("[0-9a-f]{16}", name):
            return {k: v for k, v in r.items() if k != "key"}
    refuse(f"there is no report {name!r}")


def drop(name):
    info = find(name)
    for end in (".json", ".tar.gz"):
        try:
            os.unlink(os.path.join(REPORTS, name + end))
        except FileNotFoundError:
            pass
    return info


def stop(wanted):
    s = session()
    if not is_running(s) or (wanted and wanted != s["session_id"]):
        refuse("no observation is running" if not wanted else f"the observation {wanted!r} is not running")
    os.kill(s["pid"], signal.SIGKILL)
    save({**s, "stopped": True})
    export(s["session_id"], "", "stop")
    done({"session_id": s["session_id"], "stopped": True, "report_ready": True})


def main(what, *words):
    if what == "sample":
        s = session()
        if s and s["session_id"] == words[0]:
            save({**s, "pid": os.getpid()})
            watch(s)
            save({**session(), "stopped": True})
        sys.exit(0)
    if what == "export":
        done(export(*words))
    if what == "reports":
        done([{k: v for k, v in r.items() if k != "key"} for r in reports()])
    if what == "report":
        done(find(*words))
    if what == "delete":
        done(drop(*words))
    {"start": start, "stop": stop, "status": status, "live": live}[what](*words)


run(main)
