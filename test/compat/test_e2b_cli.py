"""E2B's own command line, unmodified, against one real daemon."""

import json
import os
import pty
import re
import select
import subprocess
import time
from pathlib import Path

import pytest

import clients
import npm
from test_compat import DOMAIN

HERE = Path(__file__).resolve().parent


@pytest.fixture(scope="module")
def cli_daemon(daemon_factory):
    it = daemon_factory("e2bcli", environment={"PADDOCK_PORTS_DOMAIN": DOMAIN}).start()
    yield it
    it.finish()


class Cli:
    def __init__(self, daemon, home):
        self.program = npm.install(HERE / "cli", "compat-cli") / "node_modules" / ".bin" / "e2b"
        self.env = clients.environment(daemon, "", E2B_DOMAIN=DOMAIN, HOME=str(home), NO_COLOR="1", CI="1")

    def run(self, *arguments, status=0, **options):
        done = subprocess.run([self.program, *arguments], env=self.env, capture_output=True, text=True, timeout=60, **options)
        assert done.returncode == status, (arguments, done.returncode, done.stdout[-2000:], done.stderr[-2000:])
        return done.stdout

    def boxes(self, *arguments):
        return json.loads(self.run("sandbox", "list", "--format", "json", *arguments))


@pytest.fixture(scope="module")
def cli(cli_daemon, tmp_path_factory):
    return Cli(cli_daemon, tmp_path_factory.mktemp("home"))


@pytest.fixture
def box(cli, cli_daemon):
    made = cli_daemon.client().post("/v2/sandboxes", {"templateID": "base", "timeout": 300, "metadata": {"by": "cli"}}).json()
    yield made["sandboxID"]
    cli_daemon.client().delete(f"/sandboxes/{made['sandboxID']}")


def test_list_and_info(cli, box):
    [one] = [each for each in cli.boxes() if each["sandboxId"] == box]
    assert one["state"] == "running" and one["metadata"] == {"by": "cli"}
    assert box in cli.run("sandbox", "list") and box in cli.run("sandbox", "info", box)
    assert [each["sandboxId"] for each in cli.boxes("--metadata", "by=cli")] == [box] and cli.boxes("--metadata", "by=none") == []


def test_exec(cli, box):
    assert cli.run("sandbox", "exec", box, "echo", "hello", "there").strip() == "hello there"
    cli.run("sandbox", "exec", box, "exit 7", status=7)
    assert cli.run("sandbox", "exec", "--user", "root", "--cwd", "/tmp", box, "id -un; pwd").split() == ["root", "/tmp"]
    assert cli.run("sandbox", "exec", box, "cat", input="by a pipe\n").strip() == "by a pipe"


def test_connect(cli, box):
    """A terminal, as a person has it."""
    pid, fd = pty.fork()
    if pid == 0:
        os.execve(cli.program, [str(cli.program), "sandbox", "connect", box], {**cli.env, "TERM": "xterm"})
    seen, end = b"", time.monotonic() + 40
    typed = [(b"$", b"echo $((6*7))-$(id -un)\r"), (b"42-user", b"exit\r")]
    try:
        while time.monotonic() < end:
            if not select.select([fd], [], [], 1)[0]:
                continue
            try:
                piece = os.read(fd, 4096)
            except OSError:
                break
            if not piece:
                break
            seen += piece
            if typed and typed[0][0] in seen:
                os.write(fd, typed.pop(0)[1])
        _, status = os.waitpid(pid, 0)
    finally:
        os.close(fd)
    assert not typed and os.waitstatus_to_exitcode(status) == 0, seen


def test_pause_resume_logs_metrics_kill(cli, box):
    cli.run("sandbox", "pause", box)
    assert [each["state"] for each in cli.boxes("--state", "paused") if each["sandboxId"] == box] == ["paused"]
    cli.run("sandbox", "resume", box)
    assert cli.run("sandbox", "exec", box, "echo back").strip() == "back"
    assert "created" in cli.run("sandbox", "logs", box)
    cli.run("sandbox", "metrics", box)
    assert box in cli.run("sandbox", "kill", box)
    assert box not in [each["sandboxId"] for each in cli.boxes()]
    cli.run("sandbox", "exec", box, "true", status=1)


def test_template(cli, tmp_path):
    (tmp_path / "e2b.Dockerfile").write_text("FROM e2bdev/base\nENV SAYS=hello\nCOPY a.txt /opt/a.txt\nRUN cat /opt/a.txt && echo built\n")
    (tmp_path / "a.txt").write_text("from the context\n")
    name = f"cli-{os.getpid()}"
    out = cli.run("template", "create", name, cwd=tmp_path)
    assert "from the context" in out and "built" in out, out
    listed = json.loads(cli.run("template", "list", "--format", "json"))
    [one] = [each for each in listed if name in each["names"] or name in each["aliases"]]
    assert one["buildStatus"] in ("ready", "uploaded")
    assert re.search(name, cli.run("template", "list"))
    cli.run("template", "delete", "--yes", one["templateID"])
    assert name not in cli.run("template", "list")


def test_template_that_fails(cli, tmp_path):
    (tmp_path / "e2b.Dockerfile").write_text("FROM e2bdev/base\nRUN exit 3\n")
    done = subprocess.run([cli.program, "template", "create", f"cli-bad-{os.getpid()}"], env=cli.env, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode != 0 and "exit status 3" in done.stdout + done.stderr


def test_the_lock_names_no_host():
    text = (HERE / "cli" / "package-lock.json").read_text()
    assert '"resolved"' not in text
    assert all("integrity" in entry or not path for path, entry in json.loads(text)["packages"].items())
