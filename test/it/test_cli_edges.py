"""The command line where it could go wrong: statuses, files, signals, pipes, images."""

import json
import os
import signal
import subprocess
import tarfile
import time

import pytest

import paddock


@pytest.fixture(scope="module")
def cli(daemon):
    """Runs paddock against the daemon; returns the finished process."""

    def run(*arguments, stdin=b"", **options):
        return subprocess.run(
            [str(paddock.BIN / "paddock"), *map(str, arguments)], input=stdin, capture_output=True,
            env=environment(daemon), timeout=60, check=False, **options,
        )

    return run


def environment(daemon):
    return paddock.clean_environment(PADDOCK_URL=daemon.url, PADDOCK_API_KEY=daemon.key)


@pytest.fixture
def made(cli):
    """The id of a box made by `paddock create`."""
    done = cli("create", "--metadata", "from=cli")
    assert done.returncode == 0, done
    box = done.stdout.decode().strip()
    yield box
    cli("rm", box)


def boxes(cli):
    return json.loads(cli("ls", "--json").stdout)


def test_arguments_are_taken_literally(cli):
    done = cli("run", "--", "printf", "%s|", "a b", "$HOME", "", "--url", "--")
    assert done.stdout == b"a b|$HOME||--url|--|"


def test_run_options(cli):
    done = cli("run", "--user", "root", "--env", "A=0", "-e", "A=1=2", "-e", "B=", "--workdir", "/tmp",
               "--memory", "128m", "--pids", "50", "--", "sh", "-c", "id -u; echo $A/$B; pwd")
    assert done.stdout.split() == [b"0", b"1=2/", b"/tmp"], done


def test_statuses(cli, made):
    assert cli("exec", made, "--", "true").returncode == 0
    assert cli("exec", made, "sh", "-c", "kill -9 $$").returncode == 128 + 9
    done = cli("exec", "--timeout", "200ms", made, "sleep", "60")
    assert done.returncode == 124 and b"ran out of time" in done.stderr
    assert cli("exec", "nosuchbox", "true").returncode == 125
    assert cli("run", "--image", "nosuchimage", "true").returncode == 125
    done = cli("exec", "-i", made, "cat", stdin=b"\xff\x00")  # any bytes, since input is streamed
    assert done.returncode == 0 and done.stdout == b"\xff\x00"
    assert cli("exec", made).returncode == 2
    assert cli("run", "--cpu", "x", "true").returncode == 2
    assert cli("frobnicate").returncode == 2
    assert cli("rm", "nosuchbox").returncode == 1


@pytest.mark.parametrize("signo", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_end_a_run_and_its_box(cli, daemon, signo):
    before = {box["id"] for box in boxes(cli)}
    process = subprocess.Popen([paddock.BIN / "paddock", "run", "--", "sleep", "300"], stdin=subprocess.DEVNULL,
                               env=environment(daemon))
    paddock.until(lambda: {box["id"] for box in boxes(cli) if box["status"] == "running"} - before, "the box")
    process.send_signal(signo)
    assert process.wait(20) == 128 + signo
    assert {box["id"] for box in boxes(cli)} == before


def test_a_broken_pipe_does_not_leave_the_box(cli, daemon):
    before = len(boxes(cli))
    reader, writer = os.pipe()
    os.close(reader)
    process = subprocess.run([paddock.BIN / "paddock", "run", "--", "echo", "x"], stdin=subprocess.DEVNULL,
                             stdout=writer, stderr=subprocess.PIPE, env=environment(daemon), check=False)
    os.close(writer)
    assert process.returncode == 125 and b"Broken pipe" in process.stderr
    assert len(boxes(cli)) == before


def test_table_and_document(cli, made):
    lines = cli("ls").stdout.decode().splitlines()
    assert lines[0].split() == ["ID", "NAME", "STATUS", "IMAGE", "CREATED", "EXPIRES"]
    assert any(line.split()[:3] == [made, "-", "running"] for line in lines[1:])
    document = json.loads(cli("inspect", made).stdout)
    assert document["id"] == made and document["metadata"] == {"from": "cli"}


def test_ls_reads_all_pages(cli, make_box):
    """`ls` asks for a hundred at a time."""
    made = {make_box(limits={"memory_mb": 16}).id for _ in range(105)}
    assert made <= {box["id"] for box in boxes(cli)}
    assert made <= {line.split()[0] for line in cli("ls").stdout.decode().splitlines()}


def test_cp_keeps_permissions_and_odd_names(cli, made, tmp_path):
    data = os.urandom(3 << 20)
    source, target = tmp_path / "source", tmp_path / "target"
    source.write_bytes(data)
    source.chmod(0o750)
    assert cli("cp", source, f"{made}:/workspace/a b%?").returncode == 0
    done = cli("exec", made, "stat", "-c", "%a %s", "/workspace/a b%?")
    assert done.stdout.split() == [b"750", str(3 << 20).encode()]
    assert cli("cp", f"{made}:/workspace/a b%?", target, umask=0o022).returncode == 0
    assert target.read_bytes() == data and target.stat().st_mode & 0o777 == 0o750
    (tmp_path / "dir").mkdir()
    assert cli("cp", f"{made}:/workspace/a b%?", tmp_path / "dir").returncode == 0
    assert (tmp_path / "dir" / "a b%?").read_bytes() == data
    assert cli("cp", source, f"{made}:/workspace/").returncode == 0
    assert cli("exec", made, "cmp", "/workspace/source", "/workspace/a b%?").returncode == 0
    assert cli("cp", "/proc/version", f"{made}:/workspace/v").returncode == 0  # claims a size of 0
    assert cli("exec", made, "cat", "/workspace/v").stdout.startswith(b"Linux version")


def test_cp_refuses(cli, made, tmp_path):
    target = tmp_path / "t"
    target.write_text("kept")
    for arguments in (
        (f"{made}:/workspace/missing", target), (f"{made}:/workspace", target), (f"{made}:relative", target),
        (tmp_path, f"{made}:/workspace/d"), (target, tmp_path / "u"), (f"{made}:/a", f"{made}:/b"),
        (tmp_path / "missing", f"{made}:/workspace/x"), (target, f"{made}:/proc/version"),
    ):
        done = cli("cp", *arguments)
        assert done.returncode == 1 and done.stderr.startswith(b"paddock: "), (arguments, done)
    assert target.read_text() == "kept"


def test_a_key_cannot_bring_a_header(daemon, tmp_path):
    bad = tmp_path / "key"
    bad.write_text("x\r\nEvil: header\n")
    done = subprocess.run([paddock.BIN / "paddock", "ls", "--url", daemon.url, "--key-file", bad],
                          env=paddock.clean_environment(), check=False, capture_output=True)
    assert done.returncode == 1 and b"does not hold an API key" in done.stderr


def test_images_from_directories_and_archives(cli, tmp_path):
    root = tmp_path / "root"
    (root / "etc").mkdir(parents=True)
    (root / "etc" / "marker").write_text("from an image\n")
    done = cli("image", "import", "cli-dir", root)
    assert done.returncode == 0, done
    (root / "etc" / "marker").write_text("another\n")
    archive = tmp_path / "root.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(root, ".")
    done = cli("image", "import", "cli-gz", archive)
    assert done.returncode == 0, done
    names = {line.split()[0] for line in cli("image", "ls").stdout.decode().splitlines()[1:]}
    assert {"cli-dir", "cli-gz", "machine"} <= names
    broken = tmp_path / "broken.tar.gz"
    broken.write_bytes(archive.read_bytes()[:-20])
    done = cli("image", "import", "cli-broken", broken)
    assert done.returncode == 1 and b"gzip failed; nothing was imported" in done.stderr
    assert b"cli-broken" not in cli("image", "ls").stdout
    assert cli("image", "rm", "cli-dir", "cli-gz").returncode == 0


def test_doctor_has_a_line_for_each_part(cli):
    done = cli("doctor")
    lines = done.stdout.decode().splitlines()
    assert done.returncode == 0, done
    assert len(lines) > 5 and all(line.split()[0] in ("ok", "--", "FAIL") for line in lines)
    assert lines[-1].startswith("ok    daemon")


# ---- signals to a client go to the command --------------------------------


@pytest.fixture
def client_of(daemon):
    """Starts `paddock` with a command that says "started", and waits for that; gives the client."""
    clients = []

    def start(*arguments):
        client = subprocess.Popen([paddock.BIN / "paddock", *arguments], text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, env=environment(daemon))
        clients.append(client)
        assert client.stdout.readline() == "started\n"
        return client

    yield start
    for client in clients:
        client.kill()
        client.communicate()


@pytest.fixture(params=["exec", "run"])
def signalled(request, client_of, made):
    """Starts a script by `exec` or `run`, with its traps set before its first line."""
    lead = ["exec", made] if request.param == "exec" else ["run", "--"]
    return lambda script, traps=":": client_of(*lead, "sh", "-c", f"{traps}; echo started; {script}")


@pytest.mark.parametrize("name", ["INT", "TERM", "HUP"])
def test_a_command_gets_the_clients_signal_and_time(signalled, name):
    client = signalled("while :; do sleep 0.05; done", f"trap 'sleep 0.5; echo tidied; exit 7' {name}")
    client.send_signal(signal.Signals["SIG" + name])
    out, err = client.communicate(timeout=20)
    assert (out, client.returncode) == ("tidied\n", 7), err


def test_an_interrupted_command_without_a_handler(signalled):
    client = signalled("exec sleep 300")
    client.send_signal(signal.SIGINT)
    client.communicate(timeout=20)
    assert client.returncode == 130


def test_a_command_that_ignores_the_signal_is_killed(signalled):
    client = signalled("while :; do sleep 0.05; done", "trap '' INT")
    client.send_signal(signal.SIGINT)
    _, err = client.communicate(timeout=30)
    assert client.returncode == 130 and "did not end within 5 s of SIGINT" in err


def test_a_second_ctrl_c_kills_at_once(signalled):
    client = signalled("while :; do sleep 0.05; done", "trap 'echo heard' INT")
    client.send_signal(signal.SIGINT)
    assert client.stdout.readline() == "heard\n"
    time.sleep(0.3)  # one that follows at once is taken for the same (timeout(1) sends two)
    client.send_signal(signal.SIGINT)
    _, err = client.communicate(timeout=20)
    assert client.returncode == 130 and "did not end" not in err


def test_interrupting_leaves_no_process(cli, made, client_of):
    client = client_of("exec", made, "sh", "-c", "echo started; sleep 4444 | cat")
    client.send_signal(signal.SIGINT)
    client.communicate(timeout=20)
    assert client.returncode == 130
    paddock.until(lambda: b"4444" not in cli("exec", made, "ps", "ax", "-o", "args=").stdout, "it is gone")


# ---- a command in a shell: it gets the signal, and the shell stays ----------


@pytest.fixture
def in_shell(cli, client_of, made):
    """The client of a command that runs in a shell with a variable of its own, after the command's first line."""
    def start(command, shell):
        assert cli("exec", "--shell", shell, made, "kept=yes").returncode == 0
        return client_of("exec", "--shell", shell, made, "--", command)

    return start


def kept(cli, made, shell):
    return cli("exec", "--shell", shell, made, "echo $kept").stdout


def test_a_command_in_a_shell_gets_sigint_and_time(in_shell, cli, made):
    client = in_shell("python3 -c 'import signal, time, sys\n"
                      "signal.signal(signal.SIGINT, lambda *_: (time.sleep(0.5), print(\"tidied\"), sys.exit(7)))\n"
                      "print(\"started\", flush=True)\nwhile True: time.sleep(0.05)'; echo not this", "tidy")
    client.send_signal(signal.SIGINT)
    out, err = client.communicate(timeout=30)
    assert (out, client.returncode) == ("tidied\n", 130), err
    assert kept(cli, made, "tidy") == b"yes\n"


@pytest.mark.parametrize("command", ["sleep 4445", "while :; do :; done", "f() { while :; do sleep 0.05; done; }; f"])
def test_ctrl_c_gives_up_the_command_and_not_the_shell(in_shell, cli, made, command):
    client = in_shell(f"echo started; {command}; echo not this", "given-up")
    client.send_signal(signal.SIGINT)
    out, err = client.communicate(timeout=30)
    assert (out, client.returncode) == ("", 130), err
    assert kept(cli, made, "given-up") == b"yes\n"


def test_a_command_in_a_shell_that_ignores_sigint(in_shell, cli, made):
    """A second Ctrl-C leaves it to the daemon, which kills it; the shell stays."""
    client = in_shell("python3 -c 'import signal, time\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n"
                      "print(\"started\", flush=True)\ntime.sleep(4446)'", "ignored")
    client.send_signal(signal.SIGINT)
    time.sleep(0.3)  # one that follows at once is taken for the same
    client.send_signal(signal.SIGINT)
    client.communicate(timeout=20)
    assert client.returncode == 130
    assert kept(cli, made, "ignored") == b"yes\n"
    assert b"4446" not in cli("exec", made, "ps", "ax", "-o", "args=").stdout


def test_who_hangs_up_on_a_shell_lets_the_command_tidy_up(in_shell, cli, made):
    client = in_shell("rm -f /tmp/tidied; trap 'echo mine' USR1; (trap 'echo bye >/tmp/tidied; exit' INT; echo started; while :; do sleep 0.05; done)", "hung-up")
    client.kill()
    client.wait(20)
    assert kept(cli, made, "hung-up") == b"yes\n"
    assert cli("exec", made, "cat", "/tmp/tidied").stdout == b"bye\n"


# ---- files ------------------------------------------------------------------


def test_files_take_one_connection(cli, made, daemon, tmp_path):
    """However many pages a list has, and however many paths are removed."""
    def connections(*arguments):
        subprocess.run(["strace", "-qq", "-e", "trace=connect", "-o", tmp_path / "calls", paddock.BIN / "paddock", *arguments],
                       check=True, capture_output=True, env=environment(daemon))
        return paddock.read(tmp_path / "calls").count(f"htons({daemon.port})")

    assert cli("exec", made, "sh", "-c", "mkdir many && cd many && seq 1 2001 | xargs touch").returncode == 0
    assert len(json.loads(cli("files", "ls", "--json", made, "/workspace/many").stdout)) == 2001
    assert connections("files", "ls", made, "/workspace/many") == 1
    assert connections("files", "rm", made, *(f"/workspace/many/{n}" for n in range(1, 10))) == 1


def test_what_was_removed_as_json(cli, made):
    assert cli("exec", made, "touch", "a", "c").returncode == 0
    done = cli("files", "rm", "--json", made, "/workspace/a", "/workspace/b", "/workspace/c")
    assert done.returncode == 1 and b"/workspace/b" in done.stderr
    assert json.loads(done.stdout) == {"removed": ["/workspace/a", "/workspace/c"]}
