"""The programs of an earlier commit make sandboxes, and these programs take them over. `make test-upgrade` names the earlier ones'
directory in PADDOCK_BEFORE_BIN. No part of `make test`, which has no earlier programs: pytest runs it by its name alone."""

import os
from pathlib import Path

import paddock

BEFORE = Path(os.environ["PADDOCK_BEFORE_BIN"]).resolve()


def ask(client, method, path, body=None):
    response = client.request(method, path, body) if body is None else client.post(path, body)
    assert response.status < 300, response
    return response.json() if response.body else None


def runs_from(daemon):
    return Path(f"/proc/{daemon.keeper_pid}/exe").readlink().parent


def test_sandboxes_of_the_programs_before(own_daemon, monkeypatch):
    with monkeypatch.context() as earlier:
        earlier.setattr(paddock, "BIN", BEFORE)
        daemon = own_daemon().start()
    assert runs_from(daemon) == BEFORE
    client = daemon.client()
    box, paused, stopped = (client.create(name=name) for name in ("runs", "paused", "stopped"))
    box.check("cd /tmp; x=kept", shell="default")
    box.check("echo before > /tmp/note; sleep 7890 >/dev/null 2>&1 & echo $! > /tmp/pid")
    context = ask(client, "POST", f"{box.path}/contexts", {"language": "python"})["id"]
    ask(client, "POST", f"{box.path}/execute", {"context": context, "code": "x = 41"})
    snapshot = ask(client, "POST", f"{box.path}/snapshots", {"name": "kept"})
    session = ask(client, "POST", f"/sandbox/{box.id}/v1/shell/exec", {"command": "cd /usr; y=kept"})["data"]["session_id"]
    stopped.check("echo kept > /workspace/note")
    for each, verb in ((paused, "pause"), (stopped, "stop")):
        ask(client, "POST", f"{each.path}/{verb}", {})
    pids = box.pid1(), paused.pid1()
    client.close()
    daemon.stop()

    daemon.start()
    assert runs_from(daemon) == paddock.BIN
    client = daemon.client()
    box, paused, stopped = (each.with_client(client) for each in (box, paused, stopped))
    assert (box.pid1(), paused.pid1()) == pids
    assert [each.get()["status"] for each in (box, paused, stopped)] == ["running", "paused", "stopped"]
    assert box.check("echo $PWD $x", shell="default") == "/tmp kept\n"
    assert box.check("cat /tmp/note; tr '\\0' ' ' < /proc/$(cat /tmp/pid)/cmdline") == "before\nsleep 7890 "
    assert ask(client, "POST", f"{box.path}/execute", {"context": context, "code": "x + 1"})["results"][0]["text"] == "42"
    again = ask(client, "POST", f"/sandbox/{box.id}/v1/shell/exec", {"id": session, "command": "echo $PWD $y"})["data"]
    assert again["output"] == "/usr kept\n", again
    # What is made now, in a sandbox whose first process is of the earlier programs.
    fresh = ask(client, "POST", f"/sandbox/{box.id}/v1/shell/exec", {"command": "tty; echo on"})["data"]
    assert fresh["output"] == "/dev/tty\non\n", fresh
    assert box.check("echo on", shell="another") == "on\n" and box.check("echo on") == "on\n"
    for each, verb in ((paused, "resume"), (stopped, "start")):
        ask(client, "POST", f"{each.path}/{verb}", {})
    assert paused.check("echo on") == "on\n" and stopped.check("cat /workspace/note") == "kept\n"
    assert client.create(snapshot=snapshot["id"]).check("cat /tmp/note") == "before\n"
    client.close()
