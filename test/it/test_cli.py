"""The command line, with the README's commands as they stand there."""

import os
import pty
import re
import subprocess

import pytest

import paddock


@pytest.fixture
def paddock_cli(daemon):
    def run(*arguments, input=None, check=True, **environment):
        result = subprocess.run(
            [paddock.BIN / "paddock", *arguments], input=input, capture_output=True, timeout=60,
            env=paddock.clean_environment(**{"PADDOCK_URL": daemon.url, "PADDOCK_KEY_FILE": daemon.data_dir / "admin.key", **environment}),
            **({} if input is not None else {"stdin": subprocess.DEVNULL}))
        assert not check or result.returncode == 0, result.stderr.decode()
        return result

    return run


@pytest.fixture
def shell(daemon, tmp_path):
    """Runs a line in bash, with `paddock` on the PATH."""
    def run(line):
        result = subprocess.run(
            ["bash", "-euc", line], capture_output=True, text=True, timeout=60, cwd=tmp_path, stdin=subprocess.DEVNULL,
            env=paddock.clean_environment(
                PADDOCK_URL=daemon.url, PADDOCK_KEY_FILE=daemon.data_dir / "admin.key",
                PATH=f"{paddock.BIN}:{os.environ['PATH']}"))
        assert result.returncode == 0, f"{line}\n{result.stderr}"
        return result.stdout

    return run


def test_the_issue_in_three_lines(shell, api):
    before = len(api.list())
    assert shell("paddock run -- python3 -c 'print(6*7)'") == "42\n"
    assert len(api.list()) == before, "`run` leaves no box"
    out = shell("""
id=$(paddock create)  ; paddock exec $id -- sh -c 'echo hi > /workspace/a; id -u'
paddock cp $id:/workspace/a - ; paddock ls ; paddock rm $id ; paddock doctor
""")
    lines = out.splitlines()
    assert lines[0] == "1000" and lines[1] == "hi"
    assert re.search(r"running", out)
    assert len(api.list()) == before


def test_run_passes_output_and_status(paddock_cli):
    result = paddock_cli("run", "--", "sh", "-c", "echo out; echo err >&2; exit 7", check=False)
    assert (result.returncode, result.stdout, result.stderr) == (7, b"out\n", b"err\n")


def test_exec_passes_binary_and_stdin(paddock_cli, box):
    data = bytes(range(256)) * 100
    assert paddock_cli("exec", "-i", box.id, "--", "cat", input=b"text in\n").stdout == b"text in\n"
    result = paddock_cli("exec", box.id, "--", "/usr/bin/python3", "-c",
                         "import sys; sys.stdout.buffer.write(bytes(range(256)) * 100)")
    assert result.stdout == data


def test_create_flags(paddock_cli, daemon):
    out = paddock_cli("create", "--name", "by-cli", "--memory", "100", "--pids", "50", check=False)
    if out.returncode != 0:  # the flags' names are the CLI's own affair: find them in its help
        text = paddock_cli("help", "create").stdout.decode()
        pytest.fail(f"flags changed?\n{out.stderr.decode()}\n{text}")
    box_id = out.stdout.decode().strip()
    assert paddock.ID.match(box_id)
    daemon.saw(box_id)
    assert daemon.client().get(f"/v1/sandboxes/{box_id}").json()["limits"]["pids"] == 50
    paddock_cli("rm", "by-cli")


def test_cp_both_ways(paddock_cli, box, tmp_path):
    data = os.urandom(300_000)
    (tmp_path / "in").write_bytes(data)
    paddock_cli("cp", tmp_path / "in", f"{box.id}:/workspace/copied")
    paddock_cli("cp", f"{box.id}:/workspace/copied", tmp_path / "out")
    assert (tmp_path / "out").read_bytes() == data
    paddock_cli("cp", "-", f"{box.id}:/workspace/from-stdin", input=b"piped")
    assert paddock_cli("cp", f"{box.id}:/workspace/from-stdin", "-").stdout == b"piped"
    result = paddock_cli("cp", f"{box.id}:/no/such/file", "-", check=False)
    assert result.returncode != 0 and result.stdout == b"" and b"paddock:" in result.stderr


def test_failures_are_failures(paddock_cli):
    for arguments in (["exec", "nobody", "--", "true"], ["rm", "nobody"], ["cp", "nobody:/x", "-"], ["nonsense"],
                      ["create", "--image", "no-such-image"], ["create", "--no-such-flag"], []):
        result = paddock_cli(*arguments, check=False)
        assert result.returncode != 0 and result.stderr and not result.stdout, arguments


def test_no_daemon_is_said(paddock_cli):
    result = paddock_cli("ls", check=False, PADDOCK_URL="http://127.0.0.1:1")
    assert result.returncode != 0 and b"127.0.0.1:1" in result.stderr


def test_wrong_key_is_said(paddock_cli, tmp_path):
    (tmp_path / "key").write_text("pdk_" + "0" * 40 + "\n")
    result = paddock_cli("--key-file", tmp_path / "key", "ls", check=False)
    assert result.returncode != 0 and b"key" in result.stderr.lower()


def test_keys(paddock_cli, daemon):
    key = paddock_cli("key", "create", "--name", "cli", "--role", "user").stdout.decode().strip()
    assert paddock.Client(daemon, key).get("/v1/sandboxes").status == 200
    line = next(line for line in paddock_cli("key", "ls").stdout.decode().splitlines() if "cli" in line)
    assert key not in line
    paddock_cli("key", "rm", line.split()[0])
    assert paddock.Client(daemon, key).get("/v1/sandboxes").status == 401


def test_output_of_a_box_cannot_talk_to_the_terminal_in_listings(paddock_cli, api, daemon):
    """Metadata and names shown by `ls` and `inspect` carry no escape sequences."""
    box = api.create(metadata={"x": "\x1b]52;c;aGFja2Vk\x07\x1b[2J"})
    try:
        for arguments in (("ls",), ("inspect", box.id)):
            assert b"\x1b" not in paddock_cli(*arguments).stdout
    finally:
        box.delete()


def test_doctor(paddock_cli):
    result = paddock_cli("doctor")
    text = result.stdout.decode().lower()
    for part in ("user", "overlay", "seccomp", "landlock", "memory", "pids"):
        assert part in text, text


def test_version_and_help(paddock_cli):
    assert re.search(rb"\d+\.\d+\.\d+", paddock_cli("version").stdout)
    overview = paddock_cli("help").stdout.decode()
    for command in ("serve", "run", "create", "exec", "cp", "ls", "rm", "key", "image", "doctor"):
        assert command in overview
        assert "usage: paddock" in paddock_cli("help", command).stdout.decode()
    # A word that several commands begin with: all of them, and what they are for.
    shown = paddock_cli("help", "egress").stdout.decode()
    for line in overview.splitlines():
        if line.startswith("  egress "):
            command, summary = re.match(r"  (egress \S+)  +(.*)", line).groups()
            assert f"paddock {command} " in shown and summary in shown, shown
    wrong = paddock_cli("egress", "nonsense", check=False)
    assert (wrong.returncode, wrong.stdout) == (2, b"") and b"paddock egress log" in wrong.stderr


def test_man_page_names_every_command_and_option(paddock_cli):
    page = (paddock.ROOT / "man" / "paddock.1").read_text()
    for line in paddock_cli("help").stdout.decode().splitlines():
        match = re.match(r"^  (\S+(?: \S+)?)  +", line)
        if match:
            assert re.search(rf"^\.It Cm {match[1]}\b", page, re.M), match[1]
            for option in re.findall(r"^  (?:-\w,|   ) --([a-z-]+)", paddock_cli("help", *match[1].split()).stdout.decode(), re.M):
                assert f"Fl Fl {option}" in page or option == "help", (match[1], option)


def test_interrupted_run_leaves_no_box(daemon, api):
    before = api.list()
    process = subprocess.Popen(
        [paddock.BIN / "paddock", "run", "--", "sleep", "7500"], stdin=subprocess.DEVNULL,
        env=paddock.clean_environment(PADDOCK_URL=daemon.url, PADDOCK_KEY_FILE=daemon.data_dir / "admin.key"))
    before_ids = {one["id"] for one in before}
    made = paddock.until(lambda: [one for one in api.list("status=running") if one["id"] not in before_ids], "the box of `run`")
    box = paddock.Box(api, made[0])
    daemon.saw(box.id)
    box.find_process("7500")
    process.terminate()
    assert process.wait(10) != 0
    paddock.until(lambda: api.list() == before, "`run` that was interrupted removes its box")


def test_serve_needs_root(tmp_path):
    result = subprocess.run(
        [paddock.BIN / "paddock", "serve", "--listen", "127.0.0.1:0", "--data-dir", tmp_path / "d", "--run-dir", tmp_path / "r"],
        user=65534, group=65534, extra_groups=[], capture_output=True, text=True, timeout=20, env=paddock.clean_environment())
    assert result.returncode != 0 and "root" in result.stderr


def test_terminal_is_left_as_it_was(daemon, box):
    """`exec` from a terminal neither hangs nor changes its modes."""
    import termios
    master, slave = pty.openpty()
    before = termios.tcgetattr(slave)
    result = subprocess.run(
        [paddock.BIN / "paddock", "exec", box.id, "--", "echo", "hi"], stdin=slave, capture_output=True, timeout=20,
        env=paddock.clean_environment(PADDOCK_URL=daemon.url, PADDOCK_KEY_FILE=daemon.data_dir / "admin.key"))
    assert result.stdout == b"hi\n" and termios.tcgetattr(slave) == before
    os.close(master)
    os.close(slave)
