"""Lifetime, pause and resume, stop and start: what a box is between its making and its end."""

import subprocess
import time
from datetime import datetime, timedelta, timezone

import pytest

import paddock

# A deadline is kept within a second; a loaded machine may add a little of its own.
SLACK = 1.5 * paddock.SLOW


def now():
    return datetime.now(timezone.utc)


def when(text):
    return datetime.fromisoformat(text.replace("Z", "+00:00"))


def post(box, verb, body=None):
    return box.client.post(f"{box.path}/{verb}", body) if body is not None else box.client.request("POST", f"{box.path}/{verb}")


def change(box, verb):
    response = post(box, verb)
    assert response.status == 200, response
    return response.json()


def patch(box, **document):
    return box.client.send_json("PATCH", box.path, document)


def status(box):
    response = box.client.get(box.path)
    return response.json()["status"] if response.status == 200 else None


def counter(box):
    """Starts a process that counts on disk ten times a second; returns a reader."""
    box.exec("(i=0; while :; do i=$((i+1)); echo $i > /workspace/n.new; mv /workspace/n.new /workspace/n; sleep 0.1; done) "
             ">/dev/null 2>&1 & disown")
    return lambda: int(box.check("cat /workspace/n"))


# ---- pause and resume -----------------------------------------------------


def test_pause_and_resume(make_box):
    box = make_box()
    read = counter(box)
    paddock.until(lambda: box.exec("cat /workspace/n").exit_code == 0, "it counts")
    document = change(box, "pause")
    assert document["status"] == "paused" and box.get()["status"] == "paused"
    pid = box.pid1()
    for refused in (box.try_exec(["true"]), box.read("/etc/hostname"), box.put("/workspace/x", b"x")):
        assert refused.status == 409 and refused.code() == "wrong_state", refused
    before = time.monotonic()
    assert paddock.cgroup_dirs(box.id), "its groups stay"
    time.sleep(0.5)
    assert change(box, "resume")["status"] == "running"
    assert box.pid1() == pid
    first = read()
    # Had it gone on meanwhile it would have counted further than the time that it ran.
    assert first <= 10 * (time.monotonic() - before) + 10
    paddock.until(lambda: read() > first, "it counts on after the pause")


def test_pause_is_idempotent_and_listed(make_box, api):
    box = make_box(metadata={"paused": "this"})
    for _ in range(2):
        assert change(box, "pause")["status"] == "paused"
    assert [one["id"] for one in api.list("status=paused&metadata.paused=this")] == [box.id]
    assert api.list("status=running&metadata.paused=this") == []
    for _ in range(2):
        assert change(box, "resume")["status"] == "running"
    assert box.check("echo on") == "on\n"


def test_pause_and_resume_take_milliseconds(make_box):
    box = make_box()
    took = []
    for _ in range(20):
        for verb in ("pause", "resume"):
            began = time.monotonic()
            change(box, verb)
            took.append(time.monotonic() - began)
    took.sort()
    print(f"pause/resume over HTTP: median {1000 * took[len(took) // 2]:.2f} ms")
    assert took[len(took) // 10] < 0.05 * paddock.SLOW  # some meet no other load


def test_a_paused_box_can_be_deleted(make_box):
    box = make_box()
    pid = box.pid1()
    change(box, "pause")
    box.delete()
    assert paddock.wait_gone(pid, 0)


def test_auto_resume(make_box):
    box = make_box(auto_resume=True)
    box.put("/workspace/f", b"kept")
    change(box, "pause")
    assert box.check("cat /workspace/f") == "kept"
    assert status(box) == "running"
    change(box, "pause")
    assert box.read("/workspace/f").body == b"kept"
    assert status(box) == "running"


def test_looking_does_not_resume(make_box, api):
    box = make_box(auto_resume=True)
    change(box, "pause")
    box.get(), api.list(), api.get(box.path + "/stats")
    assert status(box) == "paused"


def test_pause_and_use_at_once(make_box, daemon):
    """What runs at the moment of a pause stands still with the box; the next use lets both go on."""
    box = make_box(auto_resume=True)
    for _ in range(15):
        helper = paddock.Background(box.with_client(daemon.client()).check, "echo here")
        change(box, "pause")
        assert box.check("echo there") == "there\n"
        assert helper.result() == "here\n"


def test_pause_while_programs_ask_pid_1(make_box):
    """What waits for PID 1's answer (sysinfo) cannot be frozen, and PID 1 that is frozen does not answer: it is tried anew."""
    box = make_box()
    box.exec("for i in 1 2 3 4; do setsid python3 -c 'import os\nwhile True: os.sysconf(\"SC_PHYS_PAGES\")' >/dev/null 2>&1 & done")
    paddock.until(lambda: box.exec("pgrep -fc PHYS_PAGES").text.strip() == "4", "they run")
    for _ in range(100):
        assert change(box, "pause")["status"] == "paused"
        assert change(box, "resume")["status"] == "running"


def test_paused_box_survives_restarts(own_daemon):
    daemon = own_daemon().start()
    box = daemon.client().create(name="frozen")
    box.put("/workspace/f", b"kept")
    pid = box.pid1()
    change(box, "pause")
    daemon.kill_api()
    box = box.with_client(daemon.client())
    assert status(box) == "paused" and box.try_exec(["true"]).status == 409
    daemon.restart()
    box = box.with_client(daemon.client())
    assert status(box) == "paused" and box.pid1() == pid
    assert change(box, "resume")["status"] == "running"
    assert box.check("cat /workspace/f") == "kept"


# ---- stop and start -------------------------------------------------------


def test_stop_and_start(make_box):
    box = make_box(name="stops", env={"E": "e"}, limits={"memory_mb": 128})
    box.put("/workspace/f", b"kept")
    box.exec("echo root > /etc/mine; echo tmp > /tmp/t", user="root")
    box.exec("setsid sleep 7600 >/dev/null 2>&1 &")
    pid = box.pid1()
    assert change(box, "stop")["status"] == "stopped"
    assert paddock.wait_gone(pid, 0), "its processes are gone when it answers"
    for refused in (box.try_exec(["true"]), box.read("/workspace/f"), post(box, "pause"), post(box, "resume")):
        assert refused.status == 409 and refused.code() == "wrong_state", refused
    assert change(box, "stop")["status"] == "stopped"
    assert change(box, "start")["status"] == "running"
    assert box.pid1() != pid
    assert box.check("cat /workspace/f /etc/mine /tmp/t; hostname; echo $E") == "kept" + "root\ntmp\nstops\ne\n"
    assert "7600" not in box.check("cat /proc/[0-9]*/cmdline | tr '\\0' ' '")
    assert change(box, "start")["status"] == "running"


def test_stopped_box_survives_restarts_and_starts(own_daemon):
    daemon = own_daemon().start()
    box = daemon.client().create()
    box.put("/workspace/f", b"kept")
    change(box, "stop")
    daemon.restart()
    box = box.with_client(daemon.client())
    assert status(box) == "stopped"
    change(box, "start")
    assert box.check("cat /workspace/f") == "kept"
    change(box, "stop")
    box.delete()


def test_box_that_ended_by_itself_starts_again(make_box):
    box = make_box()
    box.put("/workspace/f", b"kept")
    paddock.kill(box.pid1())
    paddock.until(lambda: status(box) == "stopped", "it has stopped")
    change(box, "start")
    assert box.check("cat /workspace/f") == "kept"


def test_many_stops_and_starts(make_box):
    box = make_box()
    for i in range(8):
        box.put(f"/workspace/{i}", b"x")
        change(box, "stop")
        change(box, "start")
    assert box.check("ls /workspace | wc -l") == "8\n"


def test_stopping_ends_what_waits(make_box, daemon):
    box = make_box()
    helper = paddock.Background(box.with_client(daemon.client()).try_exec, ["sleep", "7700"])
    box.find_process("7700")
    change(box, "stop")
    assert helper.result().status == 409


# ---- time to live ---------------------------------------------------------


def events(box, kind):
    return box.client.get(f"/v1/events?sandbox={box.id}&type={kind}").json()["events"]


def ended_at(box, deadline, what, ready=None):
    """By the daemon's own log: how long it takes until we notice is the machine's affair. `ready`: since when it runs, where
    it did not until then."""
    ended = when(paddock.until(lambda: events(box, "expired"), what)[-1]["at"])
    early, late = ((ended - each).total_seconds() for each in (deadline, max(deadline, ready or deadline)))
    assert -0.05 <= early and late <= SLACK, f"{what}: {early:.2f} s after its time"


def gone_at(box, deadline, what, ready=None):
    paddock.until(lambda: status(box) is None, what, max(0, (deadline - now()).total_seconds()) + 30)
    ended_at(box, deadline, what, ready)
    paddock.until(lambda: not box.run_dir.exists(), "nothing of it runs any more")


def test_ttl_deletes(api):
    box = api.create(ttl_seconds=1)
    gone_at(box, when(box.document["expires_at"]), "ttl")


@pytest.mark.parametrize("on_end, end", [("stop", "stopped"), ("pause", "paused")])
def test_ttl_that_stops_or_pauses(make_box, on_end, end):
    box = make_box(ttl_seconds=3, on_end=on_end)
    box.put("/workspace/f", b"kept")
    paddock.until(lambda: status(box) == end, end)
    ended_at(box, when(box.document["expires_at"]), end)
    # It has a new time when it is wanted again.
    document = change(box, "start" if on_end == "stop" else "resume")
    assert when(document["expires_at"]) > now()
    assert box.check("cat /workspace/f") == "kept"


def test_extend(api):
    box = api.create(ttl_seconds=3)
    before = now()
    response = post(box, "extend", {"ttl_seconds": 6})
    assert response.status == 200, response
    deadline = when(response.json()["expires_at"])
    assert before + timedelta(seconds=5.9) < deadline < now() + timedelta(seconds=6.1)
    assert when(box.get()["expires_at"]) == deadline
    paddock.until(lambda: now() > when(box.document["expires_at"]) + timedelta(seconds=0.5), "the first end has passed")
    assert status(box) == "running"
    gone_at(box, deadline, "the extended ttl")


def test_extend_for_ever_and_wrongly(make_box):
    box = make_box(ttl_seconds=100)
    assert post(box, "extend", {"ttl_seconds": 0}).json()["expires_at"] is None
    for body in ({}, {"ttl_seconds": -1}, {"ttl_seconds": "1"}, {"ttl_seconds": 1 << 40}, {"ttl": 1}):
        assert post(box, "extend", body).status == 400, body


def test_extended_ttl_survives_a_restart(own_daemon):
    daemon = own_daemon().start()
    box = daemon.client().create(ttl_seconds=500)
    deadline = when(post(box, "extend", {"ttl_seconds": 2}).json()["expires_at"])
    daemon.restart()
    gone_at(box.with_client(daemon.client()), deadline, "the extended ttl after a restart", now())


def test_ttl_deletes_stopped_and_paused_boxes(api):
    boxes = [api.create(ttl_seconds=2) for _ in range(2)]
    change(boxes[0], "stop")
    change(boxes[1], "pause")
    for box in boxes:
        gone_at(box, when(box.document["expires_at"]), "ttl")


# ---- idleness -------------------------------------------------------------


def test_idle_box_goes_and_a_used_one_stays(api):
    idle, used = api.create(idle_seconds=1), api.create(idle_seconds=3)
    end = time.monotonic() + 4
    while time.monotonic() < end or status(idle):  # nobody uses that
        assert used.check("echo on") == "on\n"
        time.sleep(0.2)
    assert status(used) == "running"
    paddock.until(lambda: status(used) is None, "it is idle now")


def test_files_count_as_use_and_looking_does_not(api):
    looked, read = api.create(idle_seconds=1), api.create(idle_seconds=3)
    end = time.monotonic() + 4
    while time.monotonic() < end or status(looked):
        assert read.ls("/workspace").status == 200
        api.list()
        time.sleep(0.2)
    assert status(read) == "running"
    read.delete()


def test_a_long_command_is_use(make_box):
    box = make_box(idle_seconds=2)
    assert box.check("sleep 3.5; echo done") == "done\n"


def test_a_shell_is_use_while_a_command_runs_in_it(api):
    box = api.create(idle_seconds=2)
    assert box.check("cd /tmp; sleep 3.5; pwd", shell="default") == "/tmp\n"
    assert box.check("pwd", shell="default") == "/tmp\n"
    paddock.until(lambda: status(box) is None, "a shell that waits is idle")


def test_a_shell_survives_a_pause(make_box):
    box = make_box(auto_resume=True)
    box.check("cd /tmp; x=kept", shell="default")
    change(box, "pause")
    assert box.check("echo $PWD $x", shell="default") == "/tmp kept\n"


def test_auto_pause_and_resume(make_box):
    box = make_box(idle_seconds=1, on_end="pause", auto_resume=True)
    box.put("/workspace/f", b"kept")
    for n in (1, 2):
        paddock.until(lambda: status(box) == "paused", "it pauses by itself")
        assert box.check("cat /workspace/f") == "kept"
        paddock.until(lambda: len(events(box, "resumed")) == n, "it was resumed, and that is told")


def test_idleness_is_kept_over_a_restart(own_daemon):
    daemon = own_daemon().start()
    api = daemon.client()
    idle, used = api.create(idle_seconds=3), api.create(idle_seconds=300)
    daemon.restart()
    api = daemon.client()
    # A second more than without one: the last use is not known better than that.
    gone_at(idle.with_client(api), when(idle.document["created_at"]) + timedelta(seconds=4), "idleness after a restart", now())
    assert status(used.with_client(api)) == "running"


# ---- changes --------------------------------------------------------------


def test_patch(own_daemon):
    daemon = own_daemon().start()
    box = daemon.client().create(name="patched", metadata={"a": "1", "b": "2"})
    response = patch(box, metadata={"c": "3"}, idle_seconds=1000, on_end="stop", auto_resume=True)
    assert response.status == 200, response
    expected = {"metadata": {"c": "3"}, "idle_seconds": 1000, "on_end": "stop", "auto_resume": True}
    assert {key: response.json()[key] for key in expected} == expected
    daemon.restart()
    box = box.with_client(daemon.client())
    assert {key: box.get()[key] for key in expected} == expected
    assert [one["id"] for one in box.client.list("metadata.c=3")] == [box.id]
    assert patch(box).status == 200
    assert {key: box.get()[key] for key in expected} == expected
    for _ in range(50):  # it does not fill anything up
        assert patch(box, metadata={"k": "v" * 1000}).status == 200
    for wrong in ({"on_end": "explode"}, {"metadata": {"": "x"}}, {"idle_seconds": -1}, {"name": "a/b"}, {"metadata": {"k": 1}}):
        assert patch(box, **wrong).status == 400, wrong
    assert box.get()["on_end"] == "stop"


def test_idle_by_patch(make_box):
    box = make_box()
    time.sleep(1.5)
    begun = time.monotonic()
    assert patch(box, idle_seconds=2, on_end="stop").status == 200
    paddock.until(lambda: status(box) == "stopped", "idle")
    assert time.monotonic() - begun > 1.9, "the time begins with the wish"


@pytest.mark.parametrize("wrong", [{"on_end": "x"}, {"on_end": 1}, {"idle_seconds": -1}, {"idle_seconds": 1 << 33}, {"auto_resume": 1}])
def test_wrong_lifetimes(api, wrong):
    assert api.try_create(**wrong).status == 400


def test_another_tenant_has_no_say(api, daemon, make_box):
    key = api.post("/v1/keys", {"tenant": "stranger-life", "create_tenant": True}).json()
    stranger, box = daemon.client(key["key"]), make_box()
    for verb in ("pause", "resume", "stop", "start"):
        assert stranger.request("POST", f"{box.path}/{verb}").status == 404
    assert stranger.post(box.path + "/extend", {"ttl_seconds": 1}).status == 404
    assert stranger.send_json("PATCH", box.path, {"metadata": {}}).status == 404
    assert stranger.post(box.path + "/fork", {"count": 1}).status == 404
    assert stranger.post(box.path + "/snapshots", {}).status == 404
    assert status(box) == "running"
    assert api.delete(f"/v1/keys/{key['id']}").status == 204


# ---- the command line -----------------------------------------------------


@pytest.fixture
def cli(daemon):
    def run(*arguments, check=True):
        result = subprocess.run(
            [paddock.BIN / "paddock", *arguments], capture_output=True, text=True, timeout=60 * paddock.SLOW, stdin=subprocess.DEVNULL,
            env=paddock.clean_environment(PADDOCK_URL=daemon.url, PADDOCK_KEY_FILE=daemon.data_dir / "admin.key"))
        assert not check or result.returncode == 0, result.stderr
        return result

    return run


def test_commands(cli, api, daemon):
    cli("workspace", "create", "--disk", "64m", "cli-ws")
    box = cli("create", "--workspace", "cli-ws", "--idle", "1h", "--ttl", "2h", "--on-end", "stop", "--auto-resume",
              "--disk", "100").stdout.strip()
    daemon.saw(box)
    document = api.get(f"/v1/sandboxes/{box}").json()
    assert document["workspace"] == {"name": "cli-ws", "mode": "rw"} and document["idle_seconds"] == 3600
    assert document["on_end"] == "stop" and document["auto_resume"] and document["limits"]["disk_mb"] == 100
    for verb, state in (("pause", "paused"), ("resume", "running"), ("stop", "stopped"), ("start", "running")):
        cli(verb, box)
        assert api.get(f"/v1/sandboxes/{box}").json()["status"] == state
    cli("extend", box, "never")
    assert api.get(f"/v1/sandboxes/{box}").json()["expires_at"] is None
    assert cli("extend", box, "soon", check=False).returncode == 1
    assert cli("pause", "none", check=False).returncode == 1
    assert "cli-ws" in cli("workspace", "ls").stdout and box in cli("workspace", "ls").stdout
    cli("rm", box)
    box = cli("create").stdout.strip()
    cli("exec", box, "--", "sh", "-c", "echo kept > /workspace/f")
    made = cli("snapshot", "create", box, "cli-snap").stdout.strip()
    assert made in cli("snapshot", "ls").stdout
    twin = cli("create", "--snapshot", "cli-snap").stdout.strip()
    forks = cli("fork", "-n", "2", "--name-prefix", "cli-fork", box).stdout.split()
    assert len(forks) == 2
    for one in (twin, *forks, "cli-fork-2"):
        daemon.saw(one)
        assert cli("exec", one, "--", "cat", "/workspace/f").stdout == "kept\n"
    cli("snapshot", "rm", "cli-snap")
    cli("rm", box, twin, *forks)
    cli("workspace", "rm", "cli-ws")
