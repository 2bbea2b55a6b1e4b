"""Port 49983 of a box, as E2B's clients speak to it: both codecs, byte by byte where that matters."""

import contextlib
import gzip
import http.client
import json
import os
import subprocess
import time

import pytest

import paddock
from envd import CODECS, PORT, ConnectError, Envd, b64, envelope, text


@pytest.fixture(scope="module")
def api_box(daemon):
    """A box that was made as E2B's clients make it: {sandboxID, envdAccessToken, …}"""
    client = daemon.client()
    made = client.post("/v2/sandboxes", {"templateID": "base", "timeout": 300, "envVars": {"FROM_BOX": "b", "BOTH": "b"}})
    assert made.status == 201, made
    yield made.json()
    assert client.delete(f"/sandboxes/{made.json()['sandboxID']}").status == 204
    client.close()


@pytest.fixture(scope="module")
def one(daemon, api_box):
    return Envd(daemon, api_box["sandboxID"], api_box["envdAccessToken"])


@pytest.fixture(params=CODECS)
def envd(one, request):
    return one.by(request.param)


@pytest.fixture
def folder(one, request):
    """A directory of its own for each test, in the user's home."""
    name = "t-" + os.urandom(6).hex()
    one.fs("MakeDir", path=name)
    yield f"/home/user/{name}"
    one.fs("Remove", path=name)


def failing(code, call, *arguments, **options):
    with pytest.raises(ConnectError) as caught:
        call(*arguments, **options)
    assert caught.value.code == code, caught.value
    return caught.value


def put(envd, path, data):
    response = envd.request("POST", "/files", data, {"Content-Type": "application/octet-stream"}, path=path)
    assert response.status == 200, response
    return response.json()


def get(envd, path, headers=None):
    return envd.request("GET", "/files", None, headers, path=path)


# ---- processes ----


def test_run(envd):
    out, err, end = envd.run("echo out; echo err >&2; exit 3")
    assert (out, err) == (b"out\n", b"err\n")
    assert end == {"exitCode": 3, "exited": True, "status": "exit status 3", "error": "exit status 3"}
    assert envd.run("true")[2] == {"exited": True, "status": "exit status 0"}


def test_environment(envd, one):
    out, _, _ = envd.run("env", envs={"BOTH": "call", "E2B_SANDBOX": "false"})
    env = dict(line.split("=", 1) for line in out.decode().splitlines())
    wanted = {"FROM_BOX": "b", "BOTH": "call", "E2B_SANDBOX": "true", "E2B_SANDBOX_ID": one.box,
              "E2B_TEMPLATE_ID": "base", "USER": "user", "HOME": "/home/user", "LOGNAME": "user"}
    assert wanted.items() <= env.items()


def test_directory_and_user(envd):
    assert envd.run("pwd; id -un")[0] == b"/home/user\nuser\n"
    assert envd.by(user="root").run("pwd; id -un")[0] == b"/root\nroot\n"
    for cwd, where in (("/tmp", b"/tmp\n"), ("~", b"/home/user\n"), ("..", b"/home\n"), ("~/../../usr", b"/usr\n")):
        assert envd.run("pwd", cwd=cwd)[0] == where
    error = failing("invalid_argument", list, envd.bash("pwd", cwd="/nope"))
    assert "cwd '/nope' does not exist" in error.message
    failing("unauthenticated", list, envd.by(user="nobody-here").bash("true"))


def test_output_is_bytes_and_much(envd):
    out, err, end = envd.run("head -c 300000 /dev/zero | tr '\\0' '\\377'; head -c 100000 /dev/zero >&2")
    assert out == b"\xff" * 300000 and err == b"\0" * 100000 and end["exited"]


def test_input(envd):
    stream = envd.start("/bin/cat", stdin=True)
    pid = next(stream)["event"]["start"]["pid"]
    data = os.urandom(200_000)  # more than one piece of ours
    envd.process("SendInput", process={"pid": pid}, input={"stdin": b64(data)})
    envd.process("CloseStdin", process={"pid": pid})
    got = b""
    for message in stream:
        got += text(message) if "data" in message["event"] else b""
    assert got == data
    failing("not_found", envd.process, "SendInput", process={"pid": pid}, input={"stdin": ""})


def test_stdin_is_open_unless_refused(envd):
    stream = envd.stream("process.Process/Start", {"process": {"cmd": "cat"}, "tag": "cat-" + envd.codec})
    pid = next(stream)["event"]["start"]["pid"]
    envd.process("CloseStdin", process={"tag": "cat-" + envd.codec})
    assert next(stream)["event"]["end"]["status"] == "exit status 0"
    stream = envd.start("/bin/sleep", "60", stdin=False)
    pid = next(stream)["event"]["start"]["pid"]
    failing("internal", envd.process, "SendInput", process={"pid": pid}, input={"stdin": b64(b"x")})
    failing("internal", envd.process, "SendInput", process={"pid": pid}, input={"pty": b64(b"x")})
    failing("unimplemented", envd.process, "SendInput", process={"pid": pid})
    envd.process("SendSignal", process={"pid": pid}, signal="SIGNAL_SIGTERM")
    end = next(stream)["event"]["end"]
    assert (end["exitCode"], end.get("exited", False), end["status"]) == (-1, False, "signal: terminated")


def test_stream_of_input(envd):
    stream = envd.start("/bin/cat", stdin=True)
    pid = next(stream)["event"]["start"]["pid"]
    pieces = [{"data": {"input": {"stdin": b64(b"%d\n" % i)}}} for i in range(50)]
    assert envd.upload("process.Process/StreamInput",
                       [{"start": {"process": {"pid": pid}}}, {"keepalive": {}}, *pieces]) == {}
    envd.process("CloseStdin", process={"pid": pid})
    got = b""
    for message in stream:
        got += text(message) if "data" in message["event"] else b""
    assert got == b"".join(b"%d\n" % i for i in range(50))
    for bad, code in (([pieces[0]], "invalid_argument"), ([{"start": {"process": {"pid": 999999}}}], "not_found")):
        failing(code, envd.upload, "process.Process/StreamInput", bad)


def test_signals_and_list(envd):
    stream = envd.bash("sleep 60; true")
    pid = next(stream)["event"]["start"]["pid"]
    listed = {each["pid"]: each for each in envd.process("List")["processes"]}
    assert listed[pid]["config"] == {"cmd": "/bin/bash", "args": ["-l", "-c", "sleep 60; true"], "cwd": "/home/user"}
    failing("unimplemented", envd.process, "SendSignal", process={"pid": pid})
    failing("unimplemented", envd.process, "SendSignal", signal="SIGNAL_SIGKILL")
    envd.process("SendSignal", process={"pid": pid}, signal="SIGNAL_SIGKILL")
    assert [each["event"]["end"] for each in stream] == [
        {"exitCode": -1, "status": "signal: killed", "error": "signal: killed"}]
    error = failing("not_found", envd.process, "SendSignal", process={"pid": pid}, signal="SIGNAL_SIGKILL")
    assert error.message == f"process with pid {pid} not found" and error.status == 404
    assert pid not in [each["pid"] for each in envd.process("List").get("processes", [])]


def test_connect(envd):
    stream = envd.start("/bin/sh", "-c", "read x; echo got $x; exit 5", stdin=True)
    pid = next(stream)["event"]["start"]["pid"]
    stream.close()  # its client goes; it does not
    again = envd.stream("process.Process/Connect", {"process": {"pid": pid}})
    assert next(again)["event"]["start"]["pid"] == pid
    envd.process("SendInput", process={"pid": pid}, input={"stdin": b64(b"it\n")})
    messages = list(again)
    assert text(messages[0]) == b"got it\n" and messages[1]["event"]["end"]["exitCode"] == 5
    # Its end is remembered.
    retained = list(envd.stream("process.Process/Connect", {"process": {"pid": pid}}))
    assert [list(each["event"]) for each in retained] == [["start"], ["end"]]
    assert retained[1]["event"]["end"]["exitCode"] == 5
    failing("not_found", list, envd.stream("process.Process/Connect", {"process": {"pid": 999999}}))
    failing("unimplemented", list, envd.stream("process.Process/Connect", {}))


def test_terminal(envd):
    stream = envd.start("/bin/bash", "-i", "-l", pty={"size": {"cols": 70, "rows": 20}}, stdin=True)
    pid = next(stream)["event"]["start"]["pid"]
    envd.process("Update", process={"pid": pid}, pty={"size": {"cols": 99, "rows": 33}})
    failing("internal", envd.process, "SendInput", process={"pid": pid}, input={"stdin": b64(b"x")})
    failing("internal", envd.process, "CloseStdin", process={"pid": pid})
    envd.process("SendInput", process={"pid": pid}, input={"pty": b64(b"stty size; exit\n")})
    out = b"".join(text(each, "pty") for each in stream if "data" in each["event"])
    assert b"33 99" in out


def test_deadline_kills(envd):
    stream = envd.bash("trap '' TERM; echo $$; while :; do sleep 1; done", headers={"Connect-Timeout-Ms": "400"})
    pid = next(stream)["event"]["start"]["pid"]
    failing("deadline_exceeded", list, stream)
    paddock.until(lambda: pid not in [each["pid"] for each in envd.process("List").get("processes", [])],
                  "the process is killed")


def test_keepalive(envd):
    stream = envd.bash("sleep 1.5", headers={"Keepalive-Ping-Interval": "1"})
    kinds = [list(each["event"])[0] for each in stream]
    assert (kinds[0], set(kinds[1:-1]), kinds[-1]) == ("start", {"keepalive"}, "end")


def made_ahead(envd):
    """Runs commands until one is run by a shell that was made ahead."""
    paddock.until(lambda: b"__paddock" in envd.run("tr '\\0' ' ' < /proc/$$/cmdline")[0], "a shell that was made ahead")


def test_a_shell_made_ahead(daemon):
    client = daemon.client()
    made = client.post("/v2/sandboxes", {"templateID": "base", "timeout": 300}).json()
    envd = Envd(daemon, made["sandboxID"], made["envdAccessToken"])
    made_ahead(envd)
    assert not envd.process("List"), "one that waits is nobody's process"
    # It is as one that was started for the command.
    out, err, end = envd.run('echo "$0" $# "[$1$REPLY]" $LINENO $-; shopt -q login_shell && ls /proc/$$/fd; cat; nosuch')
    assert out.split() == [b"/bin/bash", b"0", b"[]", b"1", b"hBc", b"0", b"1", b"2"], out
    assert err == b"/bin/bash: line 1: nosuch: command not found\n" and end["exitCode"] == 127
    made_ahead(envd)
    paddock.until(lambda: envd.run("ps -ww -o args= -p $$; env | grep paddock")[0] == b'/bin/bash -l -c eval "$__paddock"\n',
                  "a shell that was made ahead, without any source text of ours")
    made_ahead(envd)
    assert envd.run("set -e; false; echo on")[::2] == (b"", {
        "exitCode": 1, "exited": True, "status": "exit status 1", "error": "exit status 1"})
    made_ahead(envd)
    listed = envd.bash("read x < /dev/zero")
    pid = next(listed)["event"]["start"]["pid"]
    assert [each["config"]["args"][2] for each in envd.process("List")["processes"]] == ["read x < /dev/zero"]
    envd.process("SendSignal", process={"pid": pid}, signal="SIGNAL_SIGKILL")
    assert next(listed)["event"]["end"]["status"] == "signal: killed"
    made_ahead(envd)
    failing("deadline_exceeded", list, envd.bash("sleep 60", headers={"Connect-Timeout-Ms": "300"}))
    # What a login reads has changed, or the shell is gone, or somebody else asks: another one is started.
    made_ahead(envd)
    envd.run("echo 'export MARK=new' >> ~/.profile")
    assert envd.run("echo $MARK")[0] == b"new\n"
    made_ahead(envd)
    envd.run("pkill -9 -f -- __paddock")
    assert envd.run("echo on")[0] == b"on\n"
    made_ahead(envd)
    assert envd.by(user="root").run("id -un; pwd")[0] == b"root\n/root\n"
    assert envd.run("echo $OWN", envs={"OWN": "1"})[0] == b"1\n"
    assert envd.run("echo [$OWN]; pwd")[0] == b"[]\n/home/user\n"
    assert client.delete(f"/sandboxes/{envd.box}").status == 204
    client.close()


def waiting_shells(daemon, box):
    """Shells in the box that wait for their command, or did, as the host sees them."""
    group = next(iter(paddock.cgroup_dirs(box).values()))
    found = []
    for pid in paddock.read(group / "cgroup.procs").split():
        with contextlib.suppress(OSError):  # it has ended meanwhile
            if "__paddock" in paddock.read(f"/proc/{pid}/cmdline"):
                found.append(int(pid))
    return found


def test_the_first_command_finds_a_shell(daemon):
    """A create of E2B's clients starts it: nobody has to run a command before."""
    client = daemon.client()
    for variables in ({}, {"MINE": "1"}):
        made = client.post("/v2/sandboxes", {"templateID": "base", "timeout": 300, "envVars": variables}).json()
        paddock.until(lambda: waiting_shells(daemon, made["sandboxID"]), "a shell that was made ahead")
        envd = Envd(daemon, made["sandboxID"], made["envdAccessToken"])
        assert not envd.process("List"), "one that waits is nobody's process"
        out, _, end = envd.run("tr '\\0' ' ' < /proc/$$/cmdline; echo [$MINE]")
        assert b"__paddock" in out and out.endswith(f"[{variables.get('MINE', '')}]\n".encode()), out
        assert end["status"] == "exit status 0"
        assert client.delete(f"/sandboxes/{envd.box}").status == 204
    client.close()


def test_a_long_command_does_not_keep_the_next_waiting(daemon):
    """The next shell is made behind the end of a command, or while one runs on: two at the same time find theirs."""
    client = daemon.client()
    made = client.post("/v2/sandboxes", {"templateID": "base", "timeout": 300}).json()
    envd = Envd(daemon, made["sandboxID"], made["envdAccessToken"])
    paddock.until(lambda: waiting_shells(daemon, envd.box), "a shell that was made ahead")
    running = envd.bash("tr '\\0' ' ' < /proc/$$/cmdline; read x < /dev/zero")
    pid = next(running)["event"]["start"]["pid"]
    assert b"__paddock" in text(next(running))
    paddock.until(lambda: len(waiting_shells(daemon, envd.box)) == 2, "the one that runs, and the next")
    assert b"__paddock" in envd.run("tr '\\0' ' ' < /proc/$$/cmdline")[0]
    envd.process("SendSignal", process={"pid": pid}, signal="SIGNAL_SIGKILL")
    assert next(running)["event"]["end"]["status"] == "signal: killed"
    assert client.delete(f"/sandboxes/{envd.box}").status == 204
    client.close()


def test_what_is_no_call(one):
    json_type = {"Content-Type": "application/json"}
    assert one.request("GET", "/process.Process/List").status == 405
    assert one.request("POST", "/process.Process/List", b"{}", {"Content-Type": "text/plain"}).status == 415
    assert one.request("POST", "/process.Process/Start", b"{}", json_type).status == 415
    assert one.request("POST", "/process.Process/Nothing", b"{}", json_type).status == 404
    for body in (b"{", b"[]", b'{"process":{"pid":"x"}}'):
        response = one.request("POST", "/process.Process/SendSignal", body, json_type)
        assert response.status == 400 and response.json()["code"] == "invalid_argument", response
    response = one.request("POST", "/process.Process/List", b"\xff\xff", {"Content-Type": "application/proto"})
    assert response.status == 400 and response.json()["code"] == "invalid_argument"
    assert one.request("POST", "/process.Process/List", b"{}", {**json_type, "Connect-Protocol-Version": "2"}).status == 400
    assert one.request("POST", "/process.Process/List", b"{}", {**json_type, "Connect-Timeout-Ms": "soon"}).status == 400
    assert one.request("POST", "/process.Process/List", b"", json_type).status == 200  # how some say {}
    stream_type = {"Content-Type": "application/connect+json"}
    for body in (b"", b"\0\0\0\0\x05{}", envelope(b"{}") * 2, envelope(b"{}", 1), envelope(b"{}", 2)):
        response = one.request("POST", "/process.Process/Start", body, stream_type)
        assert response.status == 200 and response.body[0] == 2 and "error" in json.loads(response.body[5:]), response


def test_names_in_snake_case(one):
    body = json.dumps({"process": {"cmd": "true"}, "is_new": 1}).encode()
    response = one.request("POST", "/process.Process/Start", envelope(body), {"Content-Type": "application/connect+json"})
    assert b'"exited":true' in response.body
    watcher = one.fs("CreateWatcher", path="/tmp", include_entry=True)["watcherId"]
    one.fs("RemoveWatcher", watcher_id=watcher)


# ---- who may ask ----


def test_token(one, daemon, api_box, make_box):
    for token in (None, "", "x", api_box["envdAccessToken"][:-1] + "x", daemon.client().key):
        stranger = Envd(daemon, one.box, token)
        assert failing("unauthenticated", stranger.process, "List").status == 401
        for method, path in (("GET", "/files?path=/etc/passwd"), ("GET", "/envs"), ("GET", "/metrics")):
            response = stranger.request(method, path)
            assert response.status == 401 and response.json()["code"] == 401, (path, response)
        assert stranger.request("GET", "/health").status == 204
    other = make_box()  # not public: to a stranger it is not there
    assert Envd(daemon, other.id, one.token).request("GET", "/envs").status == 502
    other = make_box(ports_public=True)
    assert failing("unauthenticated", Envd(daemon, other.id, one.token).process, "List").status == 401
    response = Envd(daemon, "a" * 20, one.token).request("GET", "/health")
    assert response.status == 502 and response.json()["code"] == 502


def test_the_token_names_the_sandbox(one, daemon):
    """Python's clients before 2.31 send no other header after they have connected; their connect has too many."""
    class Bare(Envd):
        def headers(self, extra=None):
            return {"X-Access-Token": self.token, **(extra or {})}
    bare = Bare(daemon, one.box, one.token)
    assert bare.run("echo $E2B_SANDBOX_ID")[0].decode().strip() == one.box
    assert bare.fs("Stat", path="/tmp")["entry"]["type"] == "FILE_TYPE_DIRECTORY" and bare.request("GET", "/health").status == 204
    failing("unauthenticated", Bare(daemon, one.box, one.token[:-4] + "0000").fs, "Stat", path="/tmp")
    headers = {"E2b-Sandbox-Id": one.box, "E2b-Sandbox-Port": str(PORT), "X-API-Key": daemon.key.replace("pdk_", "e2b_"),
               "Content-Type": "application/json"}
    for path in ("/sandboxes", "/v2/sandboxes"):
        answer = daemon.client().request("POST", f"{path}/{one.box}/connect", b'{"timeout": 300}', headers)
        assert answer.status == 200 and answer.json()["sandboxID"] == one.box, answer


def test_plain_paths(one):
    assert one.request("GET", "/health").status == 204
    envs = one.request("GET", "/envs").json()
    assert envs["FROM_BOX"] == "b" and envs["E2B_SANDBOX"] == "true"
    metrics = one.request("GET", "/metrics").json()
    assert metrics["cpu_count"] >= 1 and metrics["mem_used"] > 0 and abs(metrics["ts"] - time.time()) < 60
    for path in ("/init", "/freeze", "/unfreeze", "/fsfreeze", "/fsthaw", "/collapse", "/"):
        assert one.request("POST", path, b"{}").status == 404
    preflight = one.request("OPTIONS", "/process.Process/Start")
    assert preflight.status == 204 and preflight.headers["access-control-allow-origin"] == "*"


# ---- the file system ----


def test_stat(envd, folder):
    put(envd, folder + "/f", b"12345")
    entry = envd.fs("Stat", path=folder + "/./x/../f")["entry"]
    entry.pop("modifiedTime")
    assert entry == {"name": "f", "type": "FILE_TYPE_FILE", "path": folder + "/f", "size": "5", "mode": 0o644,
                     "permissions": "-rw-r--r--", "owner": "user", "group": "user"}
    relative = envd.fs("Stat", path=os.path.basename(folder))["entry"]
    assert (relative["path"], relative["type"], relative["permissions"]) == (folder, "FILE_TYPE_DIRECTORY", "drwxr-xr-x")
    assert int(relative["size"]) > 0 and int(envd.fs("Stat", path="/dev/shm")["entry"]["size"]) > 0, "a tmpfs says 40, btrfs 0"
    assert int(envd.fs("Stat", path="/proc/self/task")["entry"]["size"]) > 0
    assert envd.fs("Stat", path="~/" + os.path.basename(folder))["entry"]["path"] == folder
    assert envd.fs("Stat", path="")["entry"]["path"] == "/home/user"
    assert envd.fs("Stat", path="/tmp")["entry"]["permissions"] == "dtrwxrwxrwx"
    failing("not_found", envd.fs, "Stat", path=folder + "/nope")
    failing("invalid_argument", envd.fs, "Stat", path="~root/x")


def test_links(envd, folder):
    put(envd, folder + "/f", b"12345")
    envd.run(f"cd {folder}; ln -s f to-file; ln -s . to-dir; ln -s nowhere broken; ln -s loop loop")
    link = envd.fs("Stat", path=folder + "/to-file")["entry"]
    assert (link["type"], link["symlinkTarget"], link["mode"]) == ("FILE_TYPE_FILE", folder + "/f", 0o644)
    assert link["permissions"] == "Lrwxrwxrwx"
    entries = envd.fs("ListDir", path=folder, depth=1)["entries"]
    assert [(each["name"], each["type"][10:]) for each in entries] == [
        ("broken", "SYMLINK"), ("f", "FILE"), ("loop", "SYMLINK"), ("to-dir", "DIRECTORY"), ("to-file", "FILE")]
    through = envd.fs("ListDir", path=folder + "/to-dir")["entries"]
    assert [each["path"] for each in through] == [f"{folder}/to-dir/{each['name']}" for each in entries]
    failing("failed_precondition", envd.fs, "ListDir", path=folder + "/loop")
    failing("not_found", envd.fs, "ListDir", path=folder + "/broken")


def test_make_move_list_remove(envd, folder):
    made = envd.fs("MakeDir", path=folder + "/a/b/c")["entry"]
    assert (made["path"], made["type"], made["owner"]) == (folder + "/a/b/c", "FILE_TYPE_DIRECTORY", "user")
    failing("already_exists", envd.fs, "MakeDir", path=folder + "/a/b/c")
    put(envd, folder + "/a/f", b"1")
    failing("invalid_argument", envd.fs, "MakeDir", path=folder + "/a/f")
    failing("invalid_argument", envd.fs, "ListDir", path=folder + "/a/f")
    failing("not_found", envd.fs, "ListDir", path=folder + "/nope")

    def names(depth):
        return [each["path"][len(folder):] for each in envd.fs("ListDir", path=folder, depth=depth)["entries"]]
    assert names(0) == names(1) == ["/a"]
    assert names(2) == ["/a", "/a/b", "/a/f"]
    assert names(9) == ["/a", "/a/b", "/a/b/c", "/a/f"]
    moved = envd.fs("Move", source=folder + "/a/f", destination=folder + "/new/g")["entry"]
    assert (moved["name"], moved["path"], moved["size"]) == ("g", folder + "/new/g", "1")
    failing("not_found", envd.fs, "Move", source=folder + "/a/f", destination=folder + "/x")
    assert envd.fs("Remove", path=folder + "/a") == {}
    assert envd.fs("Remove", path=folder + "/a") == {}
    assert names(5) == ["/new", "/new/g"]
    assert envd.by(user="root").fs("MakeDir", path="made-by-" + envd.codec)["entry"]["owner"] == "root"


def owner(one, path):
    return one.run(f"sudo stat -c %U:%G:%a {path}")[0].decode().strip()


@pytest.mark.parametrize("place", ["/app", "/opt", "/root", "/usr/local", "/srv"])
def test_root_does_the_work_and_the_user_owns_it(one, place):
    """As E2B's envd: nothing is refused for the user's rights, and what is made is the user's."""
    base = f"{place}/t-{os.urandom(4).hex()}"
    assert put(one, base + "/a/b/f", b"hello") == [{"path": base + "/a/b/f", "name": "f", "type": "file"}]
    assert get(one, base + "/a/b/f").body == b"hello"
    for made, mode in ((base, 755), (base + "/a", 755), (base + "/a/b", 755), (base + "/a/b/f", 644)):
        assert owner(one, made) == f"user:user:{mode}"
    assert one.fs("MakeDir", path=base + "/d/e")["entry"]["owner"] == "user" and owner(one, base + "/d") == "user:user:755"
    assert one.fs("Stat", path=base + "/a/b/f")["entry"]["owner"] == "user"
    assert one.fs("Move", source=base + "/a/b/f", destination=base + "/new/g")["entry"]["path"] == base + "/new/g"
    assert owner(one, base + "/new") == "user:user:755"
    events = one.stream("filesystem.Filesystem/WatchDir", {"path": base})
    assert "start" in next(events)
    one.by(user="root").fs("MakeDir", path=base + "/of-root")
    assert next(events)["filesystem"]["name"] == "of-root"
    events.close()
    assert owner(one, base + "/of-root") == "root:root:755"
    assert [each["name"] for each in one.fs("ListDir", path=base)["entries"]] == ["a", "d", "new", "of-root"]
    # A file of root that is written becomes the user's; one that root alone may read is read.
    one.run(f"sudo sh -c 'umask 077; mkdir {base}/closed; echo secret > {base}/closed/f'")
    assert get(one, base + "/closed/f").body == b"secret\n" and owner(one, base + "/closed/f") == "root:root:600"
    put(one, base + "/closed/f", b"mine")
    assert owner(one, base + "/closed/f") == "user:user:600" and owner(one, base + "/closed") == "root:root:700"
    # One that somebody else has stays theirs when it is moved, and goes when it is removed.
    one.run(f"sudo install -o nobody /dev/null {base}/closed/n; sudo mkdir /dev/shm/{os.path.basename(base)}")
    one.fs("Move", source=base + "/closed/n", destination=f"/dev/shm/{os.path.basename(base)}/n")
    assert owner(one, f"/dev/shm/{os.path.basename(base)}/n").startswith("nobody:")
    assert one.fs("Remove", path=base) == {} and one.fs("Remove", path=f"/dev/shm/{os.path.basename(base)}") == {}
    failing("not_found", one.fs, "Stat", path=base)


def test_a_sandbox_without_sudo_keeps_its_users_apart(daemon, make_box):
    """Its programs must not get root's rights by a link that they lay where a client writes."""
    box = make_box(sudo=False)
    made = daemon.client().post(f"/v2/sandboxes/{box.id}/connect", {"timeout": 300}).json()
    there = Envd(daemon, box.id, made["envdAccessToken"])
    there.run("ln -s /etc/evil.d/x link")
    response = there.request("POST", "/files", b"x", {"Content-Type": "application/octet-stream"}, path="/etc/evil.d/x")
    assert response.status == 403, response
    failing("permission_denied", there.fs, "MakeDir", path="/root/x")
    failing("not_found", there.fs, "Stat", path="/root/x")
    put(there, "mine", b"1")
    assert there.fs("Stat", path="mine")["entry"]["owner"] == "user"
    assert there.by(user="root").fs("MakeDir", path="/root/x")["entry"]["owner"] == "root"


def test_root_of_the_sandbox_stays_in_it(one, folder):
    """Links and dots are followed inside the sandbox, and what is read-only there stays so."""
    marker = "/tmp/paddock-outside-" + os.urandom(4).hex()
    one.run(f"cd {folder}; ln -s {'../' * 40}{marker[1:]} up; ln -s /proc/1/root{marker} proc")
    for path in (folder + "/" + "../" * 40 + marker[1:], folder + "/up", folder + "/proc", "/proc/1/root" + marker):
        one.request("POST", "/files", b"x", {"Content-Type": "application/octet-stream"}, path=path)
    assert not os.path.exists(marker)
    for path in ("/proc/sys/kernel/core_pattern", "/sys/kernel/x", "/proc/sysrq-trigger"):
        response = one.request("POST", "/files", b"x", {"Content-Type": "application/octet-stream"}, path=path)
        assert response.status in (400, 403, 404), (path, response)


def test_what_is_not_there_is_not_found(envd, folder):
    """exists() of the clients throws for any other code."""
    put(envd, folder + "/f", b"1")
    envd.run(f"cd {folder}; ln -s loop loop")
    for path in ("/nope", "/f/below", "/loop/x", "/" + "n" * 300, "/f/"  + "x/" * 100):
        failing("not_found", envd.fs, "Stat", path=folder + path)


def test_a_large_directory(envd, folder):
    envd.run(f"cd {folder}; seq -f 'file-%05g' 3000 | xargs touch")
    entries = envd.fs("ListDir", path=folder)["entries"]
    assert [each["name"] for each in entries] == [f"file-{i:05}" for i in range(1, 3001)]


def event(message):
    it = message.get("filesystem", message)
    return it.get("type", "")[11:], it["name"]


def test_watch(envd, folder):
    stream = envd.stream("filesystem.Filesystem/WatchDir", {"path": folder, "recursive": True, "includeEntry": True})
    assert next(stream) == {"start": {}}
    put(envd, folder + "/f", b"1")
    assert [event(next(stream)) for _ in range(2)] == [("CREATE", "f"), ("WRITE", "f")]
    put(envd, folder + "/f", b"22")
    put(envd, folder + "/last", b"")
    seen = []
    while not seen or event(seen[-1])[1] != "last":
        seen.append(next(stream))
    assert {event(each) for each in seen[:-1]} == {("WRITE", "f")}
    assert seen[-2]["filesystem"]["entry"]["size"] == "2" and seen[-2]["filesystem"]["entry"]["path"] == folder + "/f"
    envd.fs("MakeDir", path=folder + "/d")
    envd.fs("Move", source=folder + "/f", destination=folder + "/d/g")
    envd.fs("Remove", path=folder + "/d/g")
    while event(seen[-1]) != ("REMOVE", "d/g"):
        seen.append(next(stream))
    events = [event(each) for each in seen]
    assert ("CREATE", "d") in events
    assert events.index(("RENAME", "f")) < events.index(("CREATE", "d/g")) < events.index(("REMOVE", "d/g"))
    assert not [name for _, name in events if ".paddock" in name]
    stream.close()
    for path, code in ((folder + "/nope", "not_found"), (folder + "/last", "invalid_argument")):
        failing(code, list, envd.stream("filesystem.Filesystem/WatchDir", {"path": path}))
        failing(code, envd.fs, "CreateWatcher", path=path)


@pytest.mark.parametrize("entries", (False, True))
def test_watch_by_polling(envd, folder, entries):
    watcher = envd.fs("CreateWatcher", path=folder, includeEntry=entries)["watcherId"]
    assert envd.fs("GetWatcherEvents", watcherId=watcher) == {}
    put(envd, folder + "/f", b"1")
    found = []
    paddock.until(lambda: found.extend(envd.fs("GetWatcherEvents", watcherId=watcher).get("events", [])) or len(found) >= 2,
                  "events")
    assert [event(each) for each in found[:2]] == [("CREATE", "f"), ("WRITE", "f")]
    assert [each.get("entry", {}).get("path") for each in found[:2]] == [folder + "/f" if entries else None] * 2
    assert envd.fs("RemoveWatcher", watcherId=watcher) == {}
    failing("not_found", envd.fs, "GetWatcherEvents", watcherId=watcher)
    failing("not_found", envd.fs, "RemoveWatcher", watcherId=watcher)


# ---- /files ----


def form(parts):
    body = b""
    for name, filename, data in parts:
        named = b"" if filename is None else b'; filename="%s"' % filename.encode()
        body += (b'--BOUND\r\nContent-Disposition: form-data; name="%s"%s\r\n'
                 b"Content-Type: application/octet-stream\r\n\r\n%s\r\n" % (name.encode(), named, data))
    return body + b"--BOUND--\r\n", {"Content-Type": "multipart/form-data; boundary=BOUND"}


def test_upload_a_form(one, folder):
    large = os.urandom(1_500_000)
    body, headers = form([("file", folder + "/a/one", b"1"), ("other", "x", b"ignored"), ("file", folder + "/two", large)])
    response = one.request("POST", "/files", body, headers)
    assert response.status == 200 and response.json() == [
        {"path": folder + "/a/one", "name": "one", "type": "file"}, {"path": folder + "/two", "name": "two", "type": "file"}]
    assert get(one, folder + "/a/one").body == b"1" and get(one, folder + "/two").body == large
    body, headers = form([("file", "ignored-name", b"new")])
    assert one.request("POST", "/files", body, headers, path=folder + "/two").status == 200
    assert get(one, folder + "/two").body == b"new"
    assert one.request("POST", "/files", body[:-6], headers, path=folder + "/cut").status == 400
    assert get(one, folder + "/cut").status == 404


def test_upload_without_a_name(one, folder):
    """The path of the query is enough; an upload that writes nothing is no success."""
    data = os.urandom(300_000)
    body, headers = form([("file", None, data)])
    assert one.request("POST", "/files", body, headers, path=folder + "/f").json() == [
        {"path": folder + "/f", "name": "f", "type": "file"}]
    assert get(one, folder + "/f").body == data
    signed = Envd(one.daemon, one.box, None)
    answer = signed.request("POST", "/files", body, headers, path=folder + "/g", username="user",
                            signature=one.signature(folder + "/g", "write", "user"))
    assert answer.status == 200 and get(one, folder + "/g").body == data
    for parts, query in (([("file", None, b"1")], {}), ([("other", "x", b"1")], {}), ([("other", None, b"1")], {"path": folder + "/h"}),
                         ([], {"path": folder + "/h"}), ([("file", "", b"1")], {}),
                         ([("file", "a", b"1"), ("file", "b", b"2")], {"path": folder + "/i"})):
        body, headers = form(parts)
        answer = one.request("POST", "/files", body, headers, **query)
        assert answer.status == 400 and answer.json()["code"] == 400, (parts, answer)
    assert get(one, folder + "/h").status == 404


def test_upload_plain_and_gzip(one, folder):
    data = bytes(range(256)) * 8000
    assert put(one, folder + "/plain", data) == [{"path": folder + "/plain", "name": "plain", "type": "file"}]
    packed = {"Content-Type": "application/octet-stream", "Content-Encoding": "gzip"}
    assert one.request("POST", "/files", gzip.compress(data), packed, path=folder + "/packed").status == 200
    assert get(one, folder + "/plain").body == get(one, folder + "/packed").body == data
    assert put(one, folder + "/empty", b"") and get(one, folder + "/empty").body == b""
    # A bomb is written as it unfolds, and not held.
    bomb = gzip.compress(bytes(64 << 20))
    assert one.request("POST", "/files", bomb, packed, path=folder + "/bomb").status == 200
    assert one.fs("Stat", path=folder + "/bomb")["entry"]["size"] == str(64 << 20)
    for body in (b"not gzip", gzip.compress(data)[:-20]):
        assert one.request("POST", "/files", body, packed, path=folder + "/bad").status == 400
        assert get(one, folder + "/bad").status == 404
    kinds = (({"Content-Type": "text/plain"}, 415), ({"Content-Type": "multipart/form-data"}, 400),
             ({**packed, "Content-Encoding": "br"}, 415))
    for headers, status in kinds:
        assert one.request("POST", "/files", b"", headers, path=folder + "/bad").status == status
    assert one.request("POST", "/files", b"", {"Content-Type": "application/octet-stream"}).status == 400
    response = one.request("POST", "/files", b"", {"Content-Type": "application/octet-stream"}, path="/sys/x")
    assert response.status == 403 and response.json()["code"] == 403
    assert one.request("POST", "/files", b"", {"Content-Type": "application/octet-stream"}, path="x", username="nobody-here").status == 401


def test_download(one, folder):
    put(one, folder + "/f", b"0123456789")
    response = get(one, folder + "/f")
    assert response.body == b"0123456789" and response.headers["accept-ranges"] == "bytes"
    for asked, status, body, said in (("bytes=2-4", 206, b"234", "bytes 2-4/10"), ("bytes=7-", 206, b"789", "bytes 7-9/10"),
                                      ("bytes=-3", 206, b"789", "bytes 7-9/10"), ("bytes=5-99", 206, b"56789", "bytes 5-9/10"),
                                      ("bytes=10-", 416, b"", "bytes */10"), ("bytes=4-2", 200, b"0123456789", None)):
        response = get(one, folder + "/f", {"Range": asked})
        assert (response.status, response.body, response.headers.get("content-range")) == (status, body, said), asked
    response = get(one, folder + "/nope")
    assert response.status == 404 and response.json()["code"] == 404
    assert get(one, folder).status == 400
    assert get(one, "/proc/self/status").body.startswith(b"Name:")


def test_download_as_gzip(one, folder):
    data = b"line\n" * 50_000
    put(one, folder + "/f", data)
    for asked, status, packed in (("gzip", 200, True), ("gzip;q=0.5", 200, True), ("gzip, deflate, br", 200, False),
                                  ("identity", 200, False), ("identity;q=0, gzip", 200, True), ("gzip;q=0", 200, False),
                                  ("br, identity;q=0", 406, None), ("*;q=0", 406, None)):
        response = get(one, folder + "/f", {"Accept-Encoding": asked})
        assert response.status == status, asked
        if status == 200:
            assert (response.headers.get("content-encoding") == "gzip") is packed, asked
            assert (gzip.decompress(response.body) if packed else response.body) == data
    assert get(one, folder + "/f", {"Accept-Encoding": "gzip", "Range": "bytes=0-3"}).body == b"line"


def test_metadata(one, folder):
    kind = {"Content-Type": "application/octet-stream"}
    response = one.request("POST", "/files", b"x", {**kind, "X-Metadata-Owner": "me", "X-Metadata-B": "2"}, path=folder + "/f")
    assert response.json()[0]["metadata"] == {"owner": "me", "b": "2"}
    assert one.fs("Stat", path=folder + "/f")["entry"]["metadata"] == {"owner": "me", "b": "2"}
    assert one.fs("ListDir", path=folder)["entries"][0]["metadata"] == {"owner": "me", "b": "2"}
    out, _, _ = one.run(f"python3 -c \"import os; print(os.getxattr('{folder}/f', 'user.e2b.owner'))\"")
    assert out == b"b'me'\n"
    one.request("POST", "/files", b"y", {**kind, "X-Metadata-C": "3"}, path=folder + "/f")
    assert one.fs("Stat", path=folder + "/f")["entry"]["metadata"] == {"c": "3"}
    put(one, folder + "/f", b"z")
    assert "metadata" not in one.fs("Stat", path=folder + "/f")["entry"]
    for name, value in (("X-Metadata-K", "\xe9"), ("X-Metadata-" + "k" * 247, "v"), ("X-Metadata-Big", "v" * 5000)):
        assert one.request("POST", "/files", b"", {**kind, name: value}, path=folder + "/f").status == 400, name


def test_signatures(one, daemon, folder):
    put(one, folder + "/f", b"signed")
    soon, late = int(time.time()) + 60, int(time.time()) - 60
    nobody, nowhere = Envd(daemon, one.box, None), daemon.client()
    nowhere.key = None

    def ask(method, **query):
        return [client.request(method, "/files?" + "&".join(f"{key}={paddock.quote(str(value), safe='')}" for key, value in query.items()),
                               b"w" if method == "POST" else None, {"Content-Type": "application/octet-stream"})
                for client in (nobody, nowhere)]  # with the box's name, and without

    path = folder + "/f"
    for response in ask("GET", path=path, signature=one.signature(path, "read")):
        assert (response.status, response.body) == (200, b"signed")
    for response in ask("GET", path=path, username="root", signature=one.signature(path, "read", "root", soon), signature_expiration=soon):
        assert response.status == 200
    for response in ask("POST", path=path, signature=one.signature(path, "write")):
        assert response.status == 200
    late_ones = ask("GET", path=path, signature=one.signature(path, "read", "", late), signature_expiration=late)
    for response in late_ones:
        assert response.status == 401 and response.json() == {"code": 401, "message": "signature is already expired"}
    for query in ({"path": path, "signature": one.signature(path, "write")}, {"path": path + "x", "signature": one.signature(path, "read")},
                  {"path": path, "signature": one.signature(path, "read", "", soon)}, {"path": path, "signature": "v1_x"},
                  {"path": path, "username": "root", "signature": one.signature(path, "read")}):
        named, nameless = ask("GET", **query)
        assert named.status == 401 and nameless.status in (401, 404), query


def test_signature_of_the_contract():
    vector = Envd(None, None, "0tQG31xiMp0IOQfaz9dcwi72L1CPo8e0")
    assert vector.signature("hello.txt", "read", "user") == "v1_gUtH/s9YCJWgCizjfUxuWfhFE4QSydOWEIIvfLwDr6E"


def test_compose(one, folder):
    parts = [os.urandom(400_000), b"", b"end"]
    for i, data in enumerate(parts):
        put(one, f"{folder}/part{i}", data)
    sources = [f"{folder}/part{i}" for i in range(3)]
    kind = {"Content-Type": "application/json"}
    body = json.dumps({"source_paths": sources, "destination": folder + "/part2"}).encode()
    response = one.request("POST", "/files/compose", body, kind)
    assert response.status == 200 and response.json() == {"path": folder + "/part2", "name": "part2", "type": "file"}
    assert get(one, folder + "/part2").body == b"".join(parts)
    assert [each["name"] for each in one.fs("ListDir", path=folder)["entries"]] == ["part2"]
    body = json.dumps({"source_paths": [folder + "/part2", folder + "/nope"], "destination": folder + "/x"}).encode()
    assert one.request("POST", "/files/compose", body, kind).status == 404
    assert [each["name"] for each in one.fs("ListDir", path=folder)["entries"]] == ["part2"]
    assert one.request("POST", "/files/compose", b"{}", kind).status == 400


# ---- other ways ----


def test_http2(one, daemon, tmp_path):
    body = tmp_path / "body"
    body.write_bytes(envelope(json.dumps({"process": {"cmd": "/bin/echo", "args": ["h2"]}}).encode()))
    result = subprocess.run(
        ["curl", "-sS", "--http2-prior-knowledge", "--max-time", "20", "-w", "%{http_version} %{http_code}", "-o", "-",
         "--data-binary", f"@{body}", "-H", "Content-Type: application/connect+json", "-H", f"E2b-Sandbox-Id: {one.box}",
         "-H", f"E2b-Sandbox-Port: {PORT}", "-H", f"X-Access-Token: {one.token}",
         f"http://{daemon.host}:{daemon.port}/process.Process/Start"], capture_output=True, timeout=30)
    assert result.returncode == 0, result.stderr
    assert result.stdout.endswith(b"2 200") and b64(b"h2\n").encode() in result.stdout and b'"end"' in result.stdout


def test_a_client_that_does_not_read(one):
    """The program waits; nothing is lost, and the api stays small."""
    stream = one.bash("yes 0123456789 | head -c 20000000; echo; echo done")
    assert next(stream)["event"]["start"]
    api = one.daemon.api_pid()
    before = paddock.rss_kb(api)
    one.run("sleep 0.5")
    assert paddock.rss_kb(api) - before < 16000
    total, last = 0, b""
    for message in stream:
        if "data" in message["event"]:
            last = (last + text(message))[-10:]
            total += len(text(message))
    assert total == 20000000 + 6 and last.endswith(b"\ndone\n")


# ---- the end of a sandbox ----


@pytest.mark.parametrize("how", ["kill", "expiry", "stop"])
@pytest.mark.parametrize("codec", CODECS)
def test_the_end_of_a_sandbox_drops_its_streams(daemon, how, codec):
    """As where envd itself is gone: the connection ends within the stream, and /health answers 502."""
    client = daemon.client()
    made = client.post("/v2/sandboxes", {"templateID": "base", "timeout": 300}).json()
    there = Envd(daemon, made["sandboxID"], made["envdAccessToken"], codec)
    command, watch = there.bash("echo begun; sleep 100"), there.stream("filesystem.Filesystem/WatchDir", {"path": "/tmp"})
    next(command), next(watch)
    assert text(next(command)) == b"begun\n"
    box = f"/sandboxes/{made['sandboxID']}"
    if how == "kill":
        assert client.delete(box).status == 204
    elif how == "expiry":
        assert client.post(box + "/timeout", {"timeout": 1}).status == 204
    else:
        assert client.post(f"/v1{box}/stop", {}).status in (200, 202, 204)
    for stream in (command, watch):
        with pytest.raises((http.client.IncompleteRead, ConnectionError)):
            while True:
                next(stream)
        stream.close()
    paddock.until(lambda: there.request("GET", "/health").status == 502, "the health route knows")
    answer = there.request("POST", "/files", b"x", {"Content-Type": "application/octet-stream"}, path="x")
    assert answer.status == 502 and answer.json()["message"] == "The sandbox was not found"
    client.delete(box)
    client.close()
