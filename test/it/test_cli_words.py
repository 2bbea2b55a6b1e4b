"""What the command line says and leaves behind: exit codes, errors, what a killed client leaves."""

import json
import os
import re
import select
import signal
import socket
import subprocess

import pytest

import paddock
from clitool import Cli


@pytest.fixture(scope="module")
def cli(daemon):
    return Cli(daemon)


# ---- what a client leaves -----------------------------------------------------


def test_a_run_that_is_killed_leaves_nothing(cli):
    before = cli.ids()
    run = cli.start("run", "--", "sleep", "7777", stdin=subprocess.DEVNULL)
    made = paddock.until(lambda: cli.ids() - before, "the sandbox")
    run.send_signal(signal.SIGKILL)
    run.wait()
    paddock.until(lambda: not (cli.ids() & made), "the sandbox to go with its client")


def test_a_sandbox_is_tied_to_its_connection(daemon, api):
    """The answer is a line and then silence; the sandbox lives as long as the connection does."""
    body = json.dumps({"delete_on_disconnect": True}).encode()
    with socket.create_connection((daemon.host, daemon.port)) as s:
        s.sendall(b"POST /v1/sandboxes HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + daemon.key.encode() +
                  b"\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        text = b""
        while not re.search(rb'"id":"([a-z0-9]{20})"', text):
            assert select.select([s], [], [], 30)[0]
            text += s.recv(65536)
        box = re.search(rb'"id":"([a-z0-9]{20})"', text)[1].decode()
        assert b" 201 " in text and b"application/x-ndjson" in text
        assert api.get(f"/v1/sandboxes/{box}").status == 200
    paddock.until(lambda: api.get(f"/v1/sandboxes/{box}").status == 404, "the sandbox to go")


def test_a_tied_sandbox_that_is_removed_ends_the_answer(daemon, api):
    with socket.create_connection((daemon.host, daemon.port)) as s:
        s.sendall(b"POST /v1/sandboxes HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + daemon.key.encode() +
                  b"\r\nContent-Type: application/json\r\nContent-Length: 29\r\n\r\n" + b'{"delete_on_disconnect":true}')
        text = b""
        while not re.search(rb'"id":"([a-z0-9]{20})"', text):
            text += s.recv(65536)
        api.delete(f"/v1/sandboxes/{re.search(rb'.id.:.([a-z0-9]{20})', text)[1].decode()}")
        s.settimeout(20)
        while b"\r\n0\r\n\r\n" not in text:
            piece = s.recv(65536)
            assert piece, text
            text += piece


def test_a_restart_removes_what_was_tied(own_daemon):
    daemon = own_daemon().start()
    cli = Cli(daemon)
    run = cli.start("run", "--", "sleep", "7777", stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
    paddock.until(lambda: cli.ids(), "the sandbox")
    run.send_signal(signal.SIGSTOP)  # it cannot tidy up
    daemon.kill_api()
    paddock.until(lambda: not cli.ids(), "the sandbox to go", timeout=30)
    run.send_signal(signal.SIGCONT)
    run.wait(20)


# ---- exit codes ---------------------------------------------------------------


def test_exit_codes_of_commands_that_cannot_run(cli, make_box):
    box = make_box()
    box.put("/workspace/plain", b"#!/bin/sh\n")
    for how in (("exec", box.id), ("run",)):
        done = cli(*how, "--", "nosuchcommand")
        assert done.returncode == 127 and "nosuchcommand" in done.err, done
        assert cli(*how, "--", "/etc/passwd").returncode == 126
        assert cli(*how, "--", "/nosuch/program").returncode == 127
    assert cli("exec", box.id, "--", "/workspace/plain").returncode == 126
    assert cli("exec", box.id, "--", "/workspace").returncode == 126
    assert cli("run", "--image", "nosuchimage", "--", "true").returncode == 125
    assert cli("exec", "nosuchbox", "--", "true").returncode == 125
    assert cli("exec", "--user", "nosuch", box.id, "--", "true").returncode == 125


def test_codes_of_the_api(api, make_box):
    box = make_box()
    response = api.post(f"/v1/sandboxes/{box.id}/exec", {"argv": ["nosuchcommand"]})
    assert (response.status, response.code()) == (400, "command_not_found")
    response = api.post(f"/v1/sandboxes/{box.id}/exec", {"argv": ["/etc/passwd"]})
    assert (response.status, response.code()) == (400, "not_executable")


# ---- stdin --------------------------------------------------------------------


def test_exec_leaves_stdin_alone(daemon, box):
    """As in `while read line; do paddock exec …; done < file`."""
    script = 'while read line; do paddock exec "$1" -- echo "$line"; done'
    done = subprocess.run(["bash", "-c", script, "x", box.id], input=b"a\nb\nc\n", capture_output=True, timeout=60, check=True,
                          env={**Cli(daemon).environment, "PATH": f"{paddock.BIN}:{os.environ['PATH']}"})
    assert done.stdout.split() == [b"a", b"b", b"c"]
    assert Cli(daemon).ok("run", "-i", "--", "cat", stdin=b"passed on") == "passed on"
    assert Cli(daemon).ok("run", "--", "cat", stdin=b"not passed on") == ""


# ---- refusals -----------------------------------------------------------------


def test_a_user_that_is_not_there_is_refused(cli, api):
    before = cli.ids()
    assert "nosuch" in cli.refused("create", "--user", "nosuch")
    assert "nosuch" in cli.refused("run", "--user", "nosuch", "--", "true")
    paddock.until(lambda: cli.ids() == before, "no sandbox")
    response = api.post("/v1/sandboxes", {"user": "nosuch"})
    assert (response.status, response.code()) == (400, "invalid_argument") and "user" in response.json()["error"]["message"]
    box = cli.ok("create", "--user", "nobody").strip()
    assert cli.ok("exec", box, "--", "id", "-un") == "nobody\n"
    cli.ok("rm", box)


def test_errors_name_the_object_and_the_next_step(cli):
    for command in (("exec", "nosuch", "--", "true"), ("inspect", "nosuch"), ("rm", "nosuch"), ("pause", "nosuch"), ("ps", "nosuch"),
                    ("cp", "nosuch:/a", "-"), ("cp", "/etc/hostname", "nosuch:/tmp/"), ("stats", "nosuch"), ("update", "nosuch", "--name", "x")):
        err = cli.refused(*command)
        assert '"nosuch"' in err and "paddock ls" in err, (command, err)


def test_did_you_mean(cli, api):
    assert "did you mean `paddock create`" in cli.refused("craete")
    assert "did you mean `paddock inspect`" in cli.refused("inpsect")
    assert "did you mean `paddock snapshot ls`" in cli.refused("snapshot", "lss")
    assert "did you mean --memory" in cli.refused("create", "--memroy", "1g")
    assert "did you mean" not in cli.refused("frobnicate")

    def message(body):
        return api.post("/v1/sandboxes", body).json()["error"]["message"]

    assert 'did you mean "image"' in message({"imgae": "x"})
    assert 'did you mean "memory_mb"' in message({"limits": {"memory": 5}})
    assert "did you mean" not in message({"frobnicate": 5})


def test_messages_say_sandbox(cli):
    """One word for one thing: no message and no help calls it a box."""
    texts = [cli.ok("help")] + [cli.ok("help", *name.split()) for name in commands(cli)]
    for text in texts:
        assert not re.search(r"\bbox(es)?\b", text, re.I), text


def commands(cli):
    return [line[2:18].strip() for line in cli.ok("help").splitlines() if re.match(r"  [a-z]", line)]


def test_keys_do_not_invent_tenants(cli):
    err = cli.refused("key", "create", "--tenant", "no-such-tenant")
    assert '"no-such-tenant"' in err and "--create-tenant" in err
    assert "no-such-tenant" not in cli.ok("tenant", "ls")
    key = cli.json("key", "create", "--tenant", "told-to", "--create-tenant")
    assert key["tenant"] == "told-to"
    assert cli.json("key", "create", "--tenant", "told-to")["tenant"] == "told-to"
