"""Drives a real Paddock daemon from outside.

Nothing here knows how the daemon is built: a Daemon is the four programs, two
directories and a port; a Client is a keep-alive HTTP connection with a key; a
Box is an id with the REST calls that concern it. What is read of the host
(cgroups, mounts, namespaces, processes) is read from /proc and /sys, never from
the daemon, so that a test does not believe what it is meant to check.
"""

import base64
import contextlib
import ctypes
import datetime
import http.client
import json
import os
import re
import select
import signal
import socket
import subprocess
import threading
import time
from pathlib import Path
from urllib.parse import quote

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(os.environ.get("PADDOCK_BIN", ROOT / "build" / "bin")).resolve()
READY = re.compile(rb"^paddock: ready on (https?)://(.+):(\d+) \(key in (.+)\)$")
ID = re.compile(r"^[a-z0-9]{20}$")
NAMESPACES = ("cgroup", "ipc", "mnt", "net", "pid", "user", "uts")


# Time limits are this many times as long on an emulated machine (test/kernels), and as written elsewhere.
SLOW = float(os.environ.get("PADDOCK_SLOW", "1"))
SANITIZED = os.environ.get("PADDOCK_SANITIZED") == "1"  # `make test-asan`: freed memory is kept for a while, to find its use


# ---- waiting --------------------------------------------------------------


def until(condition, what, timeout=30.0):
    """Polls a condition of the outside world which offers no event to wait for. The limit is for what hangs: no test measures by it."""
    timeout *= SLOW
    end = time.monotonic() + timeout
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"after {timeout} s still not: {what}")
        time.sleep(0.01)


def until_still(look, what, looks=5):
    """Polls a figure until it has begun and no longer changes, which nothing tells; returns it."""
    seen = []

    def stands():
        time.sleep(0.2)
        seen.append(look())
        return seen[-1] and len(seen) >= looks and len(set(seen[-looks:])) == 1
    until(stands, what)
    return seen[-1]


def given_time(run, begun, limit_ms=300):
    """Runs what a time limit is to end, and gives it more of it until it has got as far as `begun` says: how long that takes is the
    machine's affair."""
    for limit in (limit_ms, 3000, 20_000):
        result = run(limit)
        if begun(result):
            break
    return result


def wait_gone(pid, timeout=30.0):
    """Waits for a process that need not be our child; True if it ended in time."""
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([fd], [], [], timeout * SLOW)[0])
    finally:
        os.close(fd)


def kill(pid, signo=signal.SIGKILL):
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signo)


@contextlib.contextmanager
def traced(pid, *arguments):
    """strace on a process; begins when it is attached.

    It is killed at the end, and the kernel lets go of what it traced. Asked to end, strace
    waits for each of them to stop: for ever, if one is in vfork for another that it holds.
    """
    strace = subprocess.Popen(["strace", *arguments, "-p", str(pid)], stderr=subprocess.PIPE, text=True)
    try:
        assert "attached" in strace.stderr.readline()
        yield
    finally:
        strace.kill()
        strace.communicate()


def ms(limit):
    """A limit for an exec that it is not meant to reach, in milliseconds."""
    return min(int(limit * SLOW), 600_000)  # the most that the API takes


# ---- the host, as the kernel tells it -------------------------------------


def cpu_seconds(pid):
    """Processor time of a process so far: what it costs, however busy the machine is."""
    fields = read(f"/proc/{pid}/stat").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def read(path):
    return Path(path).read_text(errors="surrogateescape")


def pids():
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def proc_status(pid):
    lines = read(f"/proc/{pid}/status").splitlines()
    return {key: value.strip() for key, _, value in (line.partition(":") for line in lines)}


def rss_kb(pid, field="VmRSS"):
    return int(proc_status(pid)[field].split()[0])


def namespace(pid, kind):
    """The inode of a process's namespace, or None when the process is gone, or not ours to look at."""
    try:
        return int(os.readlink(f"/proc/{pid}/ns/{kind}").split("[")[1].rstrip("]"))
    except OSError:
        return None


def namespaces(pid):
    return {kind: namespace(pid, kind) for kind in NAMESPACES}


def processes_in(kind, inode):
    return [pid for pid in pids() if namespace(pid, kind) == inode]


def descendants(pid):
    found = []
    for task in _listdir(f"/proc/{pid}/task"):
        with contextlib.suppress(OSError):
            for child in read(f"/proc/{pid}/task/{task}/children").split():
                found += [int(child), *descendants(int(child))]
    return found


def _listdir(path):
    try:
        return os.listdir(path)
    except OSError:
        return []


def mountinfo(pid="self"):
    """[(root, mount point, options, fs type, source, super options)]"""
    mounts = []
    for line in read(f"/proc/{pid}/mountinfo").splitlines():
        left, right = line.split(" - ", 1)
        fields, tail = left.split(" "), right.split(" ")
        mounts.append((fields[3], fields[4], fields[5], tail[0], tail[1], tail[2]))
    return mounts


def cgroup_mounts():
    """{controller or "unified": mount point}"""
    found = {}
    for _, point, _, kind, _, options in mountinfo():
        if kind == "cgroup2":
            found.setdefault("unified", point)
        elif kind == "cgroup":
            for option in options.split(","):
                if option not in ("rw", "ro", "xattr"):
                    found.setdefault(option, point)
    return found


def cgroup_dirs(name):
    """Every cgroup directory of this name: {controller: path}"""
    found = {}
    for controller, point in cgroup_mounts().items():
        for top, directories, _ in os.walk(point):
            if name in directories:
                found[controller] = Path(top) / name
                break
    return found


def namespace_fds(pid):
    """{fd: inode} of the namespaces that a process holds open."""
    found = {}
    for fd in _listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(OSError):
            match = re.fullmatch(r"[a-z_]+:\[(\d+)\]", os.readlink(f"/proc/{pid}/fd/{fd}"))
            if match and match[0].split(":")[0] in NAMESPACES:
                found[fd] = int(match[1])
    return found


def waits_for_the_host(pid):
    """A zombie whose parent is gone too: the host's PID 1 takes its time to reap."""
    try:
        state, parent = read(f"/proc/{pid}/stat").rsplit(")", 1)[1].split()[:2]
        return state == "Z" and parent == "1"
    except OSError:
        return True


def in_other_box(pid, own):
    """Whether a process lives in a box that is none of ours: another daemon may run here too."""
    try:
        parts = re.split(r"[/\n]", read(f"/proc/{pid}/cgroup"))
    except OSError:
        return True
    return any(ID.match(part) and part not in own for part in parts)


def processes_of(boxes, own_ids):
    """Processes in the namespaces of boxes that are gone.

    The kernel gives a freed namespace's number to the next one made, by whomever:
    three numbers must agree, and the process must not be in another daemon's box.
    """
    inside = {(box["pid"], box["mnt"], box["net"]) for box in boxes}
    return [f"process {pid} ({comm(pid)}) is in the namespaces of a box" for pid in pids()
            if tuple(namespace(pid, kind) for kind in ("pid", "mnt", "net")) in inside
            and not in_other_box(pid, own_ids) and not waits_for_the_host(pid)]


def comm(pid):
    try:
        return read(f"/proc/{pid}/comm").strip()
    except (FileNotFoundError, ProcessLookupError):
        return "gone"


def clean_environment(**extra):
    """Ours without PADDOCK_*: to the daemon those are settings."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("PADDOCK_")}
    return {**kept, **{k: str(v) for k, v in extra.items()}}


def seconds_until(text):
    """From now to a time as the API writes it."""
    when = datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))
    return (when - datetime.datetime.now(datetime.timezone.utc)).total_seconds()


def die_with_parent():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


# ---- HTTP -----------------------------------------------------------------


class Response:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    def json(self):
        return json.loads(self.body)

    def code(self):
        """The error's code, after checking that the error has its promised form."""
        error = self.json()["error"]
        assert set(error) == {"code", "message", "request_id"}, error
        assert all(isinstance(value, str) and value for value in error.values()), error
        assert self.headers["content-type"].startswith("application/json")
        return error["code"]

    def __repr__(self):
        return f"<{self.status} {self.body[:300]!r}>"


class Client:
    """One keep-alive connection. Not for use by two threads at once."""

    def __init__(self, daemon, key=None, timeout=60):
        self.daemon, self.key, self.timeout = daemon, key, timeout * SLOW
        self.connection = None

    def headers(self, extra=None):
        authorization = {"Authorization": f"Bearer {self.key}"} if self.key else {}
        return {**authorization, **(extra or {})}

    def connect(self):
        if self.connection and self.connection.sock:
            # The server may close an idle connection at any time, and does so when it restarts.
            if select.select([self.connection.sock], [], [], 0)[0]:
                self.connection.close()
        if not self.connection:
            self.connection = http.client.HTTPConnection(
                self.daemon.host, self.daemon.port, timeout=self.timeout
            )
        return self.connection

    def start(self, method, path, body=None, headers=None, **options):
        """Sends a request and returns http.client's response with the body unread."""
        connection = self.connect()
        try:
            connection.request(method, path, body=body, headers=self.headers(headers), **options)
            return connection.getresponse()
        except Exception:
            connection.close()
            raise

    def request(self, method, path, body=None, headers=None, **options):
        try:
            response = self.start(method, path, body, headers, **options)
            data = response.read()
        except Exception:
            self.close()
            raise
        return Response(
            response.status, {k.lower(): v for k, v in response.getheaders()}, data
        )

    def send_json(self, method, path, document):
        body = document if isinstance(document, bytes) else json.dumps(document).encode()
        return self.request(method, path, body, {"Content-Type": "application/json"})

    def get(self, path, **options):
        return self.request("GET", path, **options)

    def delete(self, path):
        return self.request("DELETE", path)

    def post(self, path, document):
        return self.send_json("POST", path, document)

    def close(self):
        if self.connection:
            self.connection.close()
            self.connection = None

    # -- boxes

    def try_create(self, **spec):
        response = self.post("/v1/sandboxes", spec)
        if response.status == 201:
            self.daemon.saw(response.json()["id"])
        return response

    def create(self, **spec):
        response = self.try_create(**spec)
        assert response.status == 201, response
        return Box(self, response.json())

    def list(self, query=""):
        """All pages of a listing."""
        boxes, cursor = [], ""
        while True:
            join = "&".join(part for part in (query, f"cursor={quote(cursor)}" if cursor else "") if part)
            response = self.get("/v1/sandboxes" + (f"?{join}" if join else ""))
            assert response.status == 200, response
            page = response.json()
            boxes += page["sandboxes"]
            cursor = page["next"]
            if not cursor:
                return boxes


class Output:
    """The result of an exec, with the streams decoded to bytes."""

    def __init__(self, document):
        self.document = document
        self.exit_code = document["exit_code"]
        self.signal = document["signal"]
        self.timed_out = document["timed_out"]
        self.truncated = document["truncated"]
        self.duration_ms = document["duration_ms"]
        self.encoding = document["encoding"]
        decode = base64.b64decode if self.encoding == "base64" else lambda text: text.encode()
        self.out, self.err = decode(document["stdout"]), decode(document["stderr"])

    @property
    def text(self):
        return self.out.decode()

    def __repr__(self):
        return f"<exit {self.exit_code} out={self.out[:2000]!r} err={self.err[-2000:]!r}>"


class Box:
    def __init__(self, client, document):
        self.client, self.document, self.id = client, document, document["id"]

    def __repr__(self):
        return f"<box {self.id}>"

    @property
    def path(self):
        return f"/v1/sandboxes/{self.id}"

    def with_client(self, client):
        return Box(client, self.document)

    def get(self):
        response = self.client.get(self.path)
        assert response.status == 200, response
        return response.json()

    def delete(self):
        response = self.client.delete(self.path)
        assert response.status == 204 and response.body == b"", response

    # -- exec

    def try_exec(self, what, **options):
        key = "command" if isinstance(what, str) else "argv"
        return self.client.post(self.path + "/exec", {key: what, **options})

    def exec(self, what, **options):
        response = self.try_exec(what, **options)
        assert response.status == 200, response
        return Output(response.json())

    def check(self, what, **options):
        """The standard output of a command that must succeed."""
        output = self.exec(what, **options)
        assert output.exit_code == 0, output
        return output.text

    def python(self, script, *arguments, **options):
        return self.exec(["/usr/bin/python3", "-c", script, *arguments], **options)

    def python_json(self, script, *arguments, **options):
        output = self.python(script, *arguments, **options)
        assert output.exit_code == 0, output
        return json.loads(output.out)

    # -- files; a path is absolute, text or bytes

    def file_path(self, path, query=""):
        raw = path if isinstance(path, bytes) else path.encode()
        assert raw.startswith(b"/")
        return f"{self.path}/files/{quote(raw[1:], safe='/')}" + (f"?{query}" if query else "")

    def put(self, path, data, query="", **options):
        return self.client.request("PUT", self.file_path(path, query), data, **options)

    def read(self, path, query="", headers=None):
        return self.client.request("GET", self.file_path(path, query), headers=headers)

    def head(self, path, query=""):
        return self.client.request("HEAD", self.file_path(path, query))

    def remove(self, path, query=""):
        return self.client.delete(self.file_path(path, query))

    def ls(self, path, query="list=1"):
        return self.client.get(self.file_path(path, query))

    # -- the host's view

    @property
    def run_dir(self):
        return self.client.daemon.run_dir / "boxes" / self.id

    @property
    def data_dir(self):
        return self.client.daemon.disk / "boxes" / self.id

    def pid1(self):
        return int(read(self.run_dir / "pid"))

    def processes(self):
        return processes_in("pid", namespace(self.pid1(), "pid"))

    def namespaces(self):
        found = namespaces(self.pid1())
        self.client.daemon.saw_namespaces(found)
        return found

    def find_process(self, argument):
        """The host pid of a process of the box with this word in its command line."""
        inode = namespace(self.pid1(), "pid")

        def look():
            for pid in processes_in("pid", inode):
                with contextlib.suppress(OSError):
                    if argument.encode() in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0"):
                        return pid
            return None

        return until(look, f"a process with {argument!r} in {self}")


@contextlib.contextmanager
def boxes_of(client):
    """A function that makes boxes; at the end of the block they are removed."""
    made = []

    def make(**spec):
        made.append(client.create(**spec))
        return made[-1]

    try:
        yield make
    finally:
        for box in made:
            response = client.delete(box.path)
            assert response.status in (204, 404), response


class Background(threading.Thread):
    """Runs a call on a connection of its own; result() joins and re-raises."""

    def __init__(self, call, *arguments, **options):
        super().__init__(daemon=True)
        self.call, self.value, self.error = (call, arguments, options), None, None
        self.start()

    def run(self):
        call, arguments, options = self.call
        try:
            self.value = call(*arguments, **options)
        except BaseException as error:  # noqa: BLE001 - handed to result()
            self.error = error

    def result(self, timeout=60):
        self.join(timeout * SLOW)
        assert not self.is_alive(), "the background call did not return"
        if self.error:
            raise self.error
        return self.value


# ---- the daemon -----------------------------------------------------------


class Daemon:
    """`paddock serve` on directories of its own. start() returns when it is ready."""

    def __init__(self, base, environment=None, arguments=(), listen="127.0.0.1:0", prepare=die_with_parent):
        self.base = Path(base)
        self.data_dir, self.run_dir = self.base / "data", self.base / "run"
        self.log_file = self.base / "log"
        self.environment, self.arguments, self.listen = environment or {}, list(arguments), listen
        self.prepare = prepare  # runs in the new process, before the program does
        self.process, self.host, self.port, self.scheme = None, None, None, None
        self.api_kills = 0
        self.boxes_seen, self.namespaces_seen, self.inodes_own, self.cgroup_homes = set(), [], set(), set()
        self.looking = threading.Lock()

    def command(self):
        return [
            str(BIN / "paddock"), "serve", "--listen", self.listen,
            "--data-dir", str(self.data_dir), "--run-dir", str(self.run_dir), *self.arguments,
        ]

    def start(self, timeout=30):
        with open(self.log_file, "ab") as log:
            self.process = subprocess.Popen(
                self.command(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log,
                env=clean_environment(**self.environment), preexec_fn=self.prepare,
            )
        try:
            match = READY.match(self.read_line(timeout))
            assert match, f"no ready line\n{self.log()}"
        except AssertionError:
            self.process.kill()
            self.process.wait()
            self.process.stdout.close()
            self.process = None
            raise
        self.scheme, self.host, self.port = match[1].decode(), match[2].decode(), int(match[3])
        assert Path(match[4].decode()) == self.data_dir / "admin.key"
        # A restart comes back on the same address, as a service would.
        self.listen = f"{self.host}:{self.port}"
        # What the keeper made for itself; any further namespace that it holds is of a box.
        self.inodes_own = set(namespace_fds(self.keeper_pid).values())
        return self

    def read_line(self, timeout):
        end, line = time.monotonic() + timeout * SLOW, b""
        while not line.endswith(b"\n"):
            if not select.select([self.process.stdout], [], [], max(0, end - time.monotonic()))[0]:
                raise AssertionError(f"not ready after {timeout} s\n{self.log()}")
            byte = os.read(self.process.stdout.fileno(), 1)
            if not byte:
                raise AssertionError(f"exited with {self.process.wait()}\n{self.log()}")
            line += byte
        return line.rstrip(b"\n")

    def log(self, lines=40):
        return "\n".join(read(self.log_file).splitlines()[-lines:])

    @property
    def key(self):
        return (self.data_dir / "admin.key").read_text().strip()

    @property
    def url(self):
        return f"{self.scheme}://{self.host}:{self.port}"

    def client(self, key=None, **options):
        return Client(self, key or self.key, **options)

    def raw(self, timeout=20):
        return socket.create_connection((self.host, self.port), timeout=timeout * SLOW)

    # -- its processes

    @property
    def keeper_pid(self):
        return self.process.pid

    def programs(self):
        """{pid: comm} of the keeper and what it started, without the boxes."""
        own = namespace(self.keeper_pid, "pid")
        found = {self.keeper_pid: comm(self.keeper_pid)}
        for pid in descendants(self.keeper_pid):
            if namespace(pid, "pid") == own:
                found[pid] = comm(pid)
        return found

    def api_pid(self):
        def look():
            return [pid for pid, name in self.programs().items() if name == "paddock-api"]

        return until(look, "the keeper has a paddock-api")[0]

    def lasting(self):
        """The programs that stay: without helpers that come and go."""
        return [self.keeper_pid, self.api_pid()]

    def spare_networks(self):
        """How many network namespaces the keeper holds besides its own: made ahead (`parts`)."""
        links = set()
        for fd in os.listdir(f"/proc/{self.keeper_pid}/fd"):
            with contextlib.suppress(FileNotFoundError):
                links.add(os.readlink(f"/proc/{self.keeper_pid}/fd/{fd}"))
        return len({link for link in links if link.startswith("net:")} - {os.readlink(f"/proc/{self.keeper_pid}/ns/net")})

    def healthy(self):
        with contextlib.suppress(OSError, http.client.HTTPException):
            client = Client(self, timeout=5)
            try:
                return client.get("/readyz").status == 200
            finally:
                client.close()
        return False

    def kill_api(self):
        """kill -9 of the api; returns when the keeper has brought up the next one."""
        pid = self.api_pid()
        self.api_kills += 1
        kill(pid)
        assert wait_gone(pid)
        until(lambda: self.api_pid() != pid, "a new paddock-api")
        until(self.healthy, "the new paddock-api answers")

    def kill_keeper(self):
        """kill -9 of the keeper; the api must not outlive it."""
        others = [pid for pid in self.programs() if pid != self.keeper_pid]
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        for pid in others:
            assert wait_gone(pid), f"{comm(pid)} ({pid}) outlived its keeper"
        self.process = None

    def restart(self):
        if self.process:
            self.kill_keeper()
        return self.start()

    def stop(self, timeout=20):
        """An orderly end. Boxes go on: it is a restart that has not come yet."""
        others = [pid for pid in self.programs() if pid != self.keeper_pid]
        self.process.terminate()
        try:
            status = self.process.wait(timeout * SLOW)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise AssertionError(f"SIGTERM did not end the daemon\n{self.log()}") from None
        finally:
            self.process.stdout.close()
        self.process = None
        assert status == 0, f"exited with {status} on SIGTERM\n{self.log()}"
        for pid in others:
            assert wait_gone(pid), f"{comm(pid)} ({pid}) outlived its keeper"

    def delete_all(self):
        client = self.client()

        def none_left():
            boxes = client.list()
            for box in boxes:
                self.saw(box["id"])
                response = client.delete(f"/v1/sandboxes/{box['id']}")
                # 409: still being made for somebody who no longer waits
                assert response.status in (204, 404, 409), response
            return not boxes

        until(none_left, "all boxes are deleted", 30)
        client.close()

    def finish(self):
        """Deletes all boxes, stops, and asserts that nothing at all is left."""
        if not self.process:
            self.start()
        self.delete_all()
        left = until_empty(lambda: _listdir(self.disk / "boxes"))
        assert not left, f"files of boxes that are gone: {left}"
        self.stop()
        self.check_log()
        left = until_empty(self.left_behind)
        assert not left, "left behind:\n  " + "\n  ".join(left)

    def check_log(self):
        """A crash that the keeper mended is still a crash; a sanitizer's finding too."""
        text = read(self.log_file)
        assert "ERROR: AddressSanitizer" not in text and "runtime error" not in text, self.log(100)
        deaths = [line for line in text.splitlines() if "starting it again" in line]
        assert len(deaths) <= self.api_kills, "\n".join(deaths)

    # -- what it must not leave behind

    def saw(self, box_id):
        """Remembers where the host keeps a box, to look there again at the end."""
        self.boxes_seen.add(box_id)
        with contextlib.suppress(OSError, ValueError):
            pid = int(read(self.run_dir / "boxes" / box_id / "pid"))
            self.saw_namespaces(namespaces(pid))
            # One looks: a hundred threads that walk all control groups at the same time take a minute.
            if not self.cgroup_homes and self.looking.acquire(blocking=False):
                try:
                    self.cgroup_homes |= {path.parent for path in cgroup_dirs(box_id).values()}
                finally:
                    self.looking.release()

    def saw_namespaces(self, found):
        if None not in found.values() and found not in self.namespaces_seen:
            self.namespaces_seen.append(found)

    def box_leftovers(self):
        """Traces of boxes that no longer exist; the daemon may be running."""
        left = []
        for home in self.cgroup_homes:
            # `next`: made ahead of the box that it will be for, while the daemon runs
            left += [f"cgroup {home / name}" for name in _listdir(home)
                     if (home / name).is_dir() and not (self.process and name == "next" and not read(home / name / "cgroup.procs"))]
        for home in (self.disk / "boxes" if self.process else None, self.data_dir / "boxes", self.run_dir / "boxes"):
            left += [f"directory {home / name}" for name in (_listdir(home) if home else ())]
        left += processes_of(self.namespaces_seen, self.boxes_seen)
        for pid in self.programs() if self.process else ():
            left += [f"process {pid} ({comm(pid)}) holds a namespace as fd {fd}"
                     for fd, inode in namespace_fds(pid).items()
                     if inode not in self.inodes_own and not self.is_spare(pid, fd)]
        return left

    def is_spare(self, pid, fd):
        """A namespace that the keeper made ahead: eight for networks at most, besides the host's, and one for users.
        (By number, not by inode: the kernel gives a dead namespace's inode to the next.)"""
        kinds = [os.readlink(f"/proc/{pid}/fd/{each}").split(":")[0] for each in namespace_fds(pid)]
        kind = os.readlink(f"/proc/{pid}/fd/{fd}").split(":")[0]
        return pid == self.keeper_pid and kinds.count(kind) <= {"net": 9, "user": 1}.get(kind, 0)

    @property
    def disk(self):
        """Where boxes and images lie: mounted in the keeper's own mount namespace only."""
        return Path(f"/proc/{self.keeper_pid}/root{self.run_dir}/disk")

    def left_behind(self):
        """Everything that outlives a daemon which was stopped without boxes."""
        left = self.box_leftovers()
        places = (str(self.data_dir), str(self.run_dir))
        for root, point, *_ in mountinfo():
            if any(place in part for place in places for part in (root, point)):
                left.append(f"mount {root} on {point}")
        for pid in pids():
            with contextlib.suppress(OSError):
                words = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
                groups = read(f"/proc/{pid}/cgroup")
                if any(place in words for place in places) and pid != os.getpid():
                    left.append(f"process {pid} ({comm(pid)}): {words!r}")
                if any(box in groups for box in self.boxes_seen) and not waits_for_the_host(pid):
                    left.append(f"process {pid} ({comm(pid)}) in {groups!r}")
        return left


def until_empty(look, timeout=30.0):
    """Repeats a look for leftovers until there are none; returns the last look."""
    end = time.monotonic() + timeout * SLOW
    while True:
        found = look()
        if not found or time.monotonic() > end:
            return found
        time.sleep(0.05)


# ---- raw HTTP/1.1 ---------------------------------------------------------


def exchange(connection, data, timeout=5.0):
    """Sends bytes and reads until the peer closes or says nothing more for a while.

    Returns (bytes, closed).
    """
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        connection.sendall(data)
    received, end = b"", time.monotonic() + timeout * SLOW
    while True:
        if not select.select([connection], [], [], max(0, end - time.monotonic()))[0]:
            return received, False
        try:
            piece = connection.recv(65536)
        except ConnectionResetError:
            return received, True
        if not piece:
            return received, True
        received += piece


def read_responses(connection, count, timeout=20.0):
    """Reads exactly `count` responses from a keep-alive connection."""
    connection.settimeout(timeout * SLOW)
    stream = connection.makefile("rb")
    return [read_response(stream) for _ in range(count)]


def read_response(stream, method="GET"):
    """One response as (status, headers, body), by the framing rules of RFC 9112."""
    line = stream.readline()
    assert line, "closed before a response"
    status = int(line.split()[1])
    headers = {}
    while (line := stream.readline().strip()):
        name, _, value = line.partition(b":")
        headers[name.decode().lower()] = value.strip().decode()
    body = b""
    if status < 200 or status in (204, 304) or method == "HEAD":
        pass
    elif headers.get("transfer-encoding") == "chunked":
        pieces = []
        while (size := int(stream.readline().split(b";")[0], 16)):
            pieces.append(stream.read(size))
            assert stream.read(2) == b"\r\n"
        body = b"".join(pieces)
        while stream.readline().strip():
            pass
    else:
        body = stream.read(int(headers.get("content-length", 0)))
    return status, headers, body


def statuses(data):
    """The status codes of all responses in a byte stream (bodies here never hold a status line)."""
    return [int(code) for code in re.findall(rb"HTTP/1\.[01] (\d{3}) ", data)]
