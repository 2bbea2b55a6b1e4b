"""Sandkasten's HTTP API, as its clients use it."""

import base64
import hashlib
import http.client
import json
import re
import subprocess
import time

import pytest

import paddock


class Session:
    """What Sandkasten's own clients send, and nothing that they do not."""

    def __init__(self, client, **body):
        self.client = client
        response = client.post("/v1/sessions", body)
        assert response.status == 201, response
        self.info = response.json()
        self.id = self.info["id"]
        client.daemon.saw(self.id)
        self.path = f"/v1/sessions/{self.id}"

    def exec(self, cmd, **body):
        response = self.client.post(self.path + "/exec", {"cmd": cmd, **body})
        assert response.status == 200, response
        return response.json()

    def write(self, path, **body):
        response = self.client.post(self.path + "/fs/write", {"path": path, **body})
        assert response.status == 200 and response.json() == {"ok": True}, response

    def read(self, path, query=""):
        response = self.client.get(f"{self.path}/fs/read?path={path}{query}")
        assert response.status == 200, response
        return response.json()


@pytest.fixture
def session(api):
    made = []

    def make(**body):
        made.append(Session(api, **body))
        return made[-1]

    yield make
    for one in made:
        assert api.delete(one.path).status in (200, 404, 410)


@pytest.fixture
def workspace_ids(api):
    names = []
    yield names
    for name in names:
        paddock.until(lambda: api.delete(f"/v1/workspaces/{name}").status in (204, 404), f"{name} is removed")


def events(text):
    """[(event, data)] of a stream of Server-Sent Events."""
    found = []
    for block in text.decode().split("\n\n"):
        lines = dict(line.split(": ", 1) for line in block.splitlines() if not line.startswith(":"))
        if lines:
            found.append((lines["event"], json.loads(lines["data"])))
    return found


def error(response, status, code):
    assert response.status == status, response
    document = response.json()
    assert set(document) <= {"error_code", "message", "details"} and document["error_code"] == code, document
    assert document["message"]


def test_life_of_a_session(session, api):
    one = session(ttl_seconds=600)
    assert set(one.info) == {"id", "image", "status", "cwd", "acquire_source", "created_at", "expires_at"}
    assert one.info["status"] == "running" and one.info["cwd"] == "/workspace" and one.info["acquire_source"] == "cold"
    listed = api.get("/v1/sessions").json()
    assert isinstance(listed, list) and one.id in [s["id"] for s in listed]
    shown = api.get(one.path).json()
    assert set(shown) == {"id", "image", "status", "cwd", "created_at", "expires_at"}
    stats = api.get(one.path + "/stats").json()
    assert set(stats) == {"memory_bytes", "memory_limit", "cpu_usage_usec"}
    assert 0 < stats["memory_bytes"] < stats["memory_limit"] == 512 << 20
    assert api.delete(one.path).json() == {"ok": True}
    error(api.get(one.path), 404, "SESSION_NOT_FOUND")
    error(api.delete(one.path), 404, "SESSION_NOT_FOUND")
    error(api.post(one.path + "/exec", {"cmd": "true"}), 404, "SESSION_NOT_FOUND")


def test_the_shell_remembers(session, api):
    """What Sandkasten promises and its own HEAD does not keep."""
    one = session()
    assert set(one.exec("cd /tmp; export A=7; f() { echo $A; }")) == \
        {"exit_code", "cwd", "output", "truncated", "duration_ms"}
    done = one.exec("f; pwd; false")
    assert (done["exit_code"], done["cwd"], done["output"], done["truncated"]) == (1, "/tmp", "7\n/tmp\n", False)
    assert isinstance(done["duration_ms"], int)
    assert api.get(one.path).json()["cwd"] == "/tmp"


def test_both_outputs_are_one(session):
    one = session()
    # Each leaves time for the other's to be read: their order is that of the writes.
    done = one.exec("for i in 1 2 3; do echo out$i; sleep 0.3; echo err$i >&2; sleep 0.3; done")
    assert done["output"] == "out1\nerr1\nout2\nerr2\nout3\nerr3\n"


def test_a_command_at_its_limit_is_over(session, api):
    one = session()
    began = time.monotonic()
    error(api.post(one.path + "/exec", {"cmd": "sleep 60; echo late", "timeout_ms": 300}), 504, "COMMAND_TIMEOUT")
    assert time.monotonic() - began < 10 * paddock.SLOW
    # Nothing of it is left in the next answer, and nothing of it runs.
    assert one.exec("echo next; pgrep -x sleep")["output"] == "next\n"


def test_streams_while_it_runs(session, daemon, api):
    one = session()
    one.exec("mkfifo /tmp/go")
    other = daemon.client()
    response = other.start("POST", one.path + "/exec/stream",
                           json.dumps({"cmd": "echo one; read -r _ < /tmp/go; echo zwö >&2"}),
                           {"Content-Type": "application/json"})
    assert response.status == 200 and response.getheader("content-type") == "text/event-stream"
    text = b""
    while b"one" not in text:
        text += response.read1()
    # The command goes on only now: what came was sent while it ran.
    assert api.post(f"/v1/sandboxes/{one.id}/exec", {"command": "echo > /tmp/go"}).status == 200
    text += response.read()
    other.close()
    *chunks, last = events(text)
    assert last[0] == "done" and set(last[1]) == {"exit_code", "cwd", "duration_ms"} and last[1]["exit_code"] == 0
    assert all(name == "chunk" and set(data) == {"chunk", "timestamp"} for name, data in chunks)
    assert "".join(data["chunk"] for _, data in chunks) == "one\nzwö\n"


def stream(api, one, **body):
    return events(api.post(one.path + "/exec/stream", body).body)


def test_a_stream_always_says_how_it_ended(session, api):
    one = session()
    assert [name for name, _ in stream(api, one, cmd="exit 3")] == ["done"]
    assert stream(api, one, cmd="exit 3")[-1][1]["exit_code"] == 3
    # A character whose bytes come apart is one character.
    assert "".join(d["chunk"] for n, d in stream(api, one, cmd=r"printf '\303'; sleep 0.1; printf '\266'")
                   if n == "chunk") == "ö"
    found = paddock.given_time(lambda limit: stream(api, one, cmd="echo before; sleep 60", timeout_ms=limit), lambda found: found[0][0] == "chunk")
    assert found[0][1]["chunk"] == "before\n" and found[-1][0] == "error" and "time limit" in found[-1][1]["error"]
    error(api.post(one.path + "/exec/stream", {"cmd": ""}), 400, "INVALID_REQUEST")


def test_files(session, api):
    one = session()
    one.write("a/b.txt", text="häh")
    one.write("/workspace/c.bin", content_base64=base64.b64encode(bytes(range(256))).decode())
    assert one.exec("cat a/b.txt; stat -c %s c.bin")["output"] == "häh256\n"
    assert one.read("c.bin") == {"path": "c.bin", "truncated": False,
                                 "content_base64": base64.b64encode(bytes(range(256))).decode()}
    cut = one.read("/workspace/c.bin", "&max_bytes=10")
    assert base64.b64decode(cut["content_base64"]) == bytes(range(10)) and cut["truncated"]
    one.exec("head -c 20000001 /dev/urandom > big; sha256sum < big > sum; : > empty")
    whole = one.read("big", "&max_bytes=50000000")
    assert hashlib.sha256(base64.b64decode(whole["content_base64"])).hexdigest() == one.exec("cat sum")["output"].split()[0]
    assert not whole["truncated"] and one.read("big")["truncated"] and one.read("empty")["content_base64"] == ""


@pytest.mark.parametrize("path", ["/etc/passwd", "/workspace/../etc/passwd", "../x", "", "/workspaces/x", "a/../../b"])
def test_paths_stay_in_the_workspace(session, api, path):
    one = session()
    error(api.post(one.path + "/fs/write", {"path": path, "text": "x"}), 400, "INVALID_REQUEST")
    error(api.get(f"{one.path}/fs/read?path={path}"), 400, "INVALID_REQUEST")


def test_links_do_not_lead_out(session, api):
    one = session()
    one.exec("echo in > inner; ln -s inner ok; ln -s /etc/hostname link; ln -s /tmp dir; echo x > /tmp/x")
    assert base64.b64decode(one.read("ok")["content_base64"]) == b"in\n"
    one.write("ok", text="new")
    for path in ("link", "dir/x"):
        error(api.get(f"{one.path}/fs/read?path={path}"), 400, "INVALID_REQUEST")
    for path in ("link", "dir/x", "dir/new/y"):
        error(api.post(one.path + "/fs/write", {"path": path, "text": "y"}), 400, "INVALID_REQUEST")
    body, headers = form([("file", "x", b"y"), ("path", None, b"dir")])
    error(api.request("POST", one.path + "/fs/upload", body, headers), 400, "INVALID_REQUEST")
    assert one.exec("cat inner /tmp/x; ls -d /tmp/new 2>&1 | grep -c 'No such'")["output"] == "newx\n1\n"


def test_holes_of_the_original(workspace_ids, session, api, daemon):
    """What its own documents or code do wrong (interfaces/sandkasten.md), one by one."""
    one = session(ttl_seconds=900)
    # The end of a command cannot be forged by what it prints.
    done = one.exec("printf '__SANDKASTEN_END__:x:0:/etc\\n'; cd /tmp; false")
    assert (done["exit_code"], done["cwd"], done["output"]) == (1, "/tmp", "__SANDKASTEN_END__:x:0:/etc\n")
    # A use extends the session by what it asked for, not by the default.
    before = api.get(one.path).json()["expires_at"]
    assert 300 < paddock.seconds_until(before) <= 900
    one.exec("sleep 1.1")
    after = api.get(one.path).json()["expires_at"]
    assert after > before and paddock.seconds_until(after) <= 901
    # No suffix of a path opens it.
    nobody = paddock.Client(daemon)
    for path in (f"{one.path}.js", "/v1/sessions/x.css", f"{one.path}/stats.png", f"{one.path}/exec.ico"):
        assert nobody.get(path).status == 401, path
    nobody.close()
    # A session that does not run is no error of the server.
    assert api.post(f"/v1/sandboxes/{one.id}/pause", {}).status == 200
    error(api.post(one.path + "/exec", {"cmd": "true"}), 409, "INVALID_REQUEST")
    assert api.post(f"/v1/sandboxes/{one.id}/resume", {}).status == 200
    # A workspace that a session has stays.
    workspace_ids.append("held-1")
    two = session(workspace_id="held-1")
    assert api.delete("/v1/workspaces/held-1").status == 409 and two.exec("echo on")["output"] == "on\n"
    # Limits of the request.
    assert one.exec("true #" + "x" * ((1 << 20) - 6))["exit_code"] == 0
    error(api.post(one.path + "/exec", {"cmd": "x" * ((1 << 20) + 1)}), 400, "INVALID_REQUEST")
    for body in ({"ttl_seconds": 86401}, {"ttl_seconds": -1}):
        error(api.post("/v1/sessions", body), 400, "INVALID_REQUEST")
    for name in ("a", "A-b", "x" * 65, "a_b"):
        error(api.post("/v1/sessions", {"workspace_id": name}), 400, "INVALID_WORKSPACE")
    # The request's id comes back.
    assert api.request("GET", one.path, headers={"X-Request-ID": "mine-1"}).headers["x-request-id"] == "mine-1"
    assert api.get(one.path).headers["x-request-id"]
    # Much output is cut and says so.
    cut = one.exec("head -c 20000000 /dev/zero | tr '\\0' x")
    assert cut["truncated"] and len(cut["output"]) >= 5 << 20


def form(fields):
    """multipart/form-data of (name, filename or None, bytes)."""
    body = b""
    for name, filename, data in fields:
        where = f'; filename="{filename}"' if filename is not None else ""
        body += f'--edge\r\nContent-Disposition: form-data; name="{name}"{where}\r\n\r\n'.encode() + data + b"\r\n"
    return body + b"--edge--\r\n", {"Content-Type": "multipart/form-data; boundary=edge"}


def test_upload(session, api):
    one = session()
    # The directory may stand behind the files.
    body, headers = form([("files", "x.txt", b"1"), ("file", "dir/y.bin", b"\0" * 300000), ("path", None, b"up/here")])
    response = api.request("POST", one.path + "/fs/upload", body, headers)
    assert response.json() == {"ok": True, "paths": ["/workspace/up/here/x.txt", "/workspace/up/here/y.bin"]}, response
    assert one.exec("cat up/here/x.txt; stat -c %s up/here/y.bin")["output"] == "1300000\n"
    for fields in ([("path", None, b"/etc"), ("file", "x", b"1")], [("path", None, b"a")], [("file", "..", b"1")],
                   [("file", f"f{i}", b"") for i in range(101)]):
        body, headers = form(fields)
        error(api.request("POST", one.path + "/fs/upload", body, headers), 400, "INVALID_REQUEST")
    assert one.exec("ls /etc/x f0")["exit_code"] == 2
    body, headers = form([("file", "big", b"x" * (11 << 20))])
    error(api.request("POST", one.path + "/fs/upload", body, headers), 413, "INVALID_REQUEST")


def test_a_workspace_outlives_its_session(workspace_ids, session, api):
    workspace_ids.append("proj-1")
    one = session(workspace_id="proj-1")
    assert one.info["workspace_id"] == "proj-1"
    one.write("kept", text="here")
    # Written while a session has it, and read without one.
    assert api.delete(one.path).status == 200
    files = "/v1/workspaces/proj-1/fs"
    assert api.post(files + "/write", {"path": "more/x", "text": "y"}).json() == {"ok": True}
    assert base64.b64decode(api.get(files + "/read?path=kept").json()["content_base64"]) == b"here"
    assert sorted((e["name"], e["is_dir"]) for e in api.get(files + "?path=/workspace").json()["entries"]) == \
        [("kept", False), ("more", True)]
    body, headers = form([("file", "z", b"zz")])
    assert api.request("POST", files + "/upload", body, headers).json() == {"ok": True, "paths": ["/workspace/z"]}
    two = session(workspace_id="proj-1")
    assert two.exec("cat kept more/x z")["output"] == "hereyzz"
    for bad in ("A", "x", "a_b", "x" * 65):
        error(api.post("/v1/sessions", {"workspace_id": bad}), 400, "INVALID_WORKSPACE")
    error(api.get("/v1/workspaces/no-such/fs"), 404, "WORKSPACE_NOT_FOUND")
    error(api.get(files + "/read?path=nothing"), 404, "INVALID_REQUEST")


def test_use_keeps_a_session_alive_for_the_time_it_asked_for(session, api):
    """Sandkasten's own resets to the configured time instead."""
    one = session(ttl_seconds=6)
    end = paddock.seconds_until(one.info["expires_at"])
    assert 0 < end <= 6
    for _ in range(5):
        time.sleep(1.5)  # longer in all than the time to live: the uses are what is tested
        one.exec("true")
    assert 0 < paddock.seconds_until(api.get(one.path).json()["expires_at"]) <= 6
    # It is never just gone: that it has expired is known before its event is stored.
    first = paddock.until(lambda: [answer for answer in [api.get(one.path)] if answer.status != 200], "the session ends")
    error(first[0], 410, "SESSION_EXPIRED")
    error(api.get(one.path), 410, "SESSION_EXPIRED")
    error(api.post(one.path + "/exec", {"cmd": "true"}), 410, "SESSION_EXPIRED")


def test_images(session, api):
    assert session(image="python").exec("python3 -c 'print(6*7)'")["output"] == "42\n"
    assert session(image="sandbox-runtime:node").info["status"] == "running"
    error(api.post("/v1/sessions", {"image": "no-such-image"}), 400, "INVALID_IMAGE")


def test_bad_requests(session, api, daemon, tenant):
    one = session()
    for body in ({}, {"cmd": 1}, {"cmd": "x" * (1024 * 1024 + 1)}, {"cmd": "true", "timeout_ms": 600001},
                 {"cmd": "true", "timeout_ms": -1}, b"{", b"[]"):
        error(api.post(one.path + "/exec", body), 400, "INVALID_REQUEST")
    error(api.post(one.path + "/exec", b" " * (2 << 20) + b"{}"), 413, "INVALID_REQUEST")
    error(api.post("/v1/sessions", {"ttl_seconds": 86401}), 400, "INVALID_REQUEST")
    for body in ({"path": "x"}, {"path": "x", "text": "a", "content_base64": "YQ=="}, {"path": "x", "content_base64": "%"}):
        error(api.post(one.path + "/fs/write", body), 400, "INVALID_REQUEST")
    error(api.get("/v1/sessions/nothing/here"), 404, "INVALID_REQUEST")
    # Without a key, and with another tenant's.
    nobody = paddock.Client(daemon, "pdk_" + "0" * 40)
    for path in ("/v1/sessions", one.path, one.path + "/stats", "/v1/workspaces/x/fs"):
        error(nobody.get(path), 401, "UNAUTHORIZED")
    nobody.close()
    assert tenant.get("/v1/sessions").json() == []
    error(tenant.get(one.path), 404, "SESSION_NOT_FOUND")
    error(tenant.post(one.path + "/exec", {"cmd": "true"}), 404, "SESSION_NOT_FOUND")
    error(tenant.post(one.path + "/fs/write", {"path": "x", "text": "y"}), 404, "SESSION_NOT_FOUND")
    error(tenant.delete(one.path), 404, "SESSION_NOT_FOUND")


def test_a_client_that_goes_away_ends_its_command(session, daemon):
    one = session()
    one.exec("mkfifo /tmp/on")
    other = daemon.client()
    response = other.start("POST", one.path + "/exec/stream", json.dumps({"cmd": "echo on; exec sleep 1000"}),
                           {"Content-Type": "application/json"})
    while b"on" not in response.read1():
        pass
    response.close()
    other.close()
    paddock.until(lambda: one.exec("pgrep -x sleep")["exit_code"] == 1, "the command ends")


# ---- with its own configuration ----

CONFIG = """
listen: 127.0.0.1:0
api_key: a-key-of-their-own-making
default_image: sandbox-runtime:base
allowed_images: [python]
session_ttl_seconds: 77
defaults:
  cpu_limit: 0.5
  mem_limit_mb: 256
  pids_limit: 100
  max_exec_timeout_ms: 5000
  network_mode: none
  exec_mode: stateless
pool:
  enabled: true
  images: {python: 1}
workspace:
  enabled: true
security:
  seccomp: mvp
dashboard:
  enabled: true
"""


class Bound(paddock.Client):
    """A client of the listener that serves Sandkasten's API alone."""

    def connect(self):
        port = int(re.search(r"listening on \S+:(\d+) for sandkasten", self.daemon.log(1000))[1])
        if not self.connection:
            self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=self.timeout)
        return self.connection


def test_its_own_configuration(own_daemon, tmp_path):
    file = tmp_path / "sandkasten.yaml"
    file.write_text(CONFIG)
    daemon = own_daemon(arguments=["--config", str(file)], environment={"SANDKASTEN_PIDS_LIMIT": "90",
                                                                        "SANDKASTEN_NONSENSE": "1"}).start()
    client = Bound(daemon, "a-key-of-their-own-making")
    assert client.get("/healthz").json() == {"status": "ok"}
    assert client.get("/v1/sandboxes").status == 404  # it speaks nothing else
    paddock.until(lambda: daemon.client().get("/v1/capabilities").status == 200, "ready")
    one = Session(client, image="python", workspace_id="w1")
    assert 70 < paddock.seconds_until(one.info["expires_at"]) <= 77
    assert one.exec("nproc; awk '/MemTotal/{print $2}' /proc/meminfo")["output"] == "1\n262144\n"
    ours = daemon.client().get(f"/v1/sandboxes/{one.id}").json()
    assert ours["limits"]["pids"] == 90 and ours["limits"]["cpu"] == 0.5
    error(client.post(one.path + "/exec", {"cmd": "sleep 60", "timeout_ms": 60000}), 504, "COMMAND_TIMEOUT")
    error(client.post("/v1/sessions", {"image": "node"}), 400, "INVALID_IMAGE")
    assert client.delete(one.path).json() == {"ok": True}
    assert client.get("/v1/workspaces").json() == {"workspaces": [{"id": "w1"}]}
    paddock.until(lambda: client.delete("/v1/workspaces/w1").json() == {"ok": True}, "the workspace is removed")
    error(client.delete("/v1/workspaces/w1"), 404, "WORKSPACE_NOT_FOUND")
    # From the pool, once there is one.
    paddock.until(lambda: Session(client).info["acquire_source"] == "pool", "a session from the pool", 30)
    wrong = Bound(daemon, "a-key-of-their-own-makinh")
    error(wrong.get("/v1/sessions"), 401, "UNAUTHORIZED")
    wrong.close()
    client.close()
    log = daemon.log(1000)
    for said in ("exec_mode is not honoured", "security.seccomp is not honoured", "dashboard", "SANDKASTEN_NONSENSE"):
        assert said in log, log
    assert "a-key-of" not in log
    daemon.stop()
    file.write_text("listen: 127.0.0.1:0\napi_key: ''\n")  # no pool, so that no box of it is left


@pytest.mark.parametrize("line, said", [
    ("defaults: {network_mode: host}", "never share the machine's network"),
    ("session_ttl_seconds: 0", "session_ttl_seconds"),
    ("default_image: base\nno_such: 1", "no_such"),
])
def test_what_its_configuration_cannot_have(tmp_path, line, said):
    file = tmp_path / "sandkasten.yaml"
    file.write_text("api_key: x\n" + line + "\n")
    done = subprocess.run([paddock.BIN / "paddock", "config", "check", "--config", file], capture_output=True, text=True,
                          env=paddock.clean_environment())
    assert done.returncode == 1 and said in done.stderr, done


def test_workspaces_that_are_off(own_daemon, tmp_path):
    """Sandkasten's own mounts them all the same."""
    file = tmp_path / "sandkasten.yaml"
    file.write_text("listen: 127.0.0.1:0\napi_key: a-key-of-their-own-making\n")
    client = Bound(own_daemon(arguments=["--config", str(file)]).start(), "a-key-of-their-own-making")
    error(client.post("/v1/sessions", {"workspace_id": "w1"}), 400, "INVALID_WORKSPACE")
    client.close()


# ---- its command line ----


def verb(daemon, *words, cwd=None):
    """`sandkasten VERB…`, by a link of that name."""
    link = daemon.base / "sandkasten"
    if not link.exists():
        link.symlink_to(paddock.BIN / "paddock")
    environment = paddock.clean_environment(PADDOCK_URL=daemon.url, PADDOCK_API_KEY=daemon.key)
    return subprocess.run([link, *words], capture_output=True, text=True, env=environment, cwd=cwd)


def test_its_verbs(session, daemon, tmp_path):
    one = session()
    assert one.id in verb(daemon, "ps").stdout
    assert "machine" in verb(daemon, "image", "list").stdout
    assert verb(daemon, "image", "validate", "machine").returncode == 0
    assert verb(daemon, "image", "validate", "nothing").returncode != 0
    assert verb(daemon, "version").stdout.startswith("paddock ")
    assert verb(daemon, "rm", one.id).returncode == 0 and one.id not in verb(daemon, "ps").stdout
    done = verb(daemon, "image", "pull", "alpine:latest")
    assert done.returncode == 1 and "image import" in done.stderr
    done = verb(daemon, "deamon")
    assert done.returncode == 1 and "did you mean `daemon`" in done.stderr
    # A file that its own daemon takes.
    done = verb(daemon, "init", "--listen", "127.0.0.1:0", "--skip-pull", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    file = tmp_path / "sandkasten.yaml"
    assert file.stat().st_mode & 0o777 == 0o600 and json.loads(file.read_text())["api_key"].startswith("sk-")
    assert verb(daemon, "init", cwd=tmp_path).returncode == 1
    assert verb(daemon, "init", "--force", "--api-key", 'a"b', cwd=tmp_path).returncode == 0
    assert json.loads(file.read_text())["api_key"] == 'a"b'
    check = subprocess.run([paddock.BIN / "paddock", "config", "check", "--config", file], capture_output=True, text=True,
                          env=paddock.clean_environment())
    assert check.returncode == 0, check
