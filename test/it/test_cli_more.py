"""The command line's commands: copies, options, lists, processes, shells, tenants, completion."""

import io
import json
import os
import pty
import re
import select
import shlex
import signal
import socket
import subprocess
import tarfile
import termios
import threading
import time

import pytest

import paddock
from clitool import Cli


@pytest.fixture(scope="module")
def cli(daemon):
    return Cli(daemon)


@pytest.fixture(scope="module")
def made(cli):
    box = cli.ok("create", "--name", "cli-more", "--metadata", "purpose=more").strip()
    yield box
    cli("rm", box)


def on_terminal(cli, *arguments, size=(24, 200)):
    """Runs it on a terminal; all that it showed, and the exit code."""
    master, slave = pty.openpty()
    termios.tcsetwinsize(slave, size)
    process = cli.start(*arguments, stdin=slave, stdout=slave, stderr=slave, start_new_session=True)
    os.close(slave)
    seen = b""
    try:
        while True:
            assert select.select([master], [], [], 60)[0], seen
            piece = os.read(master, 65536)
            if not piece:
                break
            seen += piece
    except OSError:
        pass
    finally:
        os.close(master)
    return seen.decode(errors="replace"), process.wait(30)


# ---- cp -----------------------------------------------------------------------


@pytest.fixture
def tree(tmp_path):
    root = tmp_path / "tree"
    (root / "sub" / "deep").mkdir(parents=True)
    (root / "a.txt").write_text("a")
    (root / "b.txt").write_text("b")
    (root / "sub" / "c.md").write_text("c")
    (root / "sub" / "deep" / "run.sh").write_text("#!/bin/sh\necho ran\n")
    (root / "sub" / "deep" / "run.sh").chmod(0o755)
    (root / "link").symlink_to("a.txt")
    return root


def test_cp_of_trees_both_ways(cli, made, tree, tmp_path):
    cli.ok("cp", "-r", tree, f"{made}:/workspace")  # into a directory that is there
    assert cli.ok("exec", made, "--", "/workspace/tree/sub/deep/run.sh") == "ran\n"
    assert cli.ok("exec", made, "--", "readlink", "/workspace/tree/link") == "a.txt\n"
    cli.ok("cp", "-r", tree, f"{made}:/workspace/new")  # under a new name
    assert cli.ok("exec", made, "--", "cat", "/workspace/new/sub/c.md") == "c"
    back = tmp_path / "back"
    cli.ok("cp", "-r", f"{made}:/workspace/tree", back)
    assert (back / "sub" / "c.md").read_text() == "c" and os.readlink(back / "link") == "a.txt"
    assert (back / "sub" / "deep" / "run.sh").stat().st_mode & 0o777 == 0o755
    cli.ok("cp", "-r", f"{made}:/workspace/tree", back)  # back is a directory now
    assert (back / "tree" / "a.txt").read_text() == "a"
    err = cli.refused("cp", f"{made}:/workspace/tree", tmp_path / "x")
    assert "-r" in err
    assert "-r" in cli.refused("cp", tree, f"{made}:/workspace/x")


def test_cp_of_several_sources(cli, made, tree, tmp_path):
    cli.ok("exec", made, "--", "mkdir", "-p", "/workspace/several")
    cli.ok("cp", tree / "a.txt", tree / "b.txt", f"{made}:/workspace/several")
    assert cli.ok("exec", made, "--", "ls", "/workspace/several").split() == ["a.txt", "b.txt"]
    (tmp_path / "out").mkdir()
    cli.ok("cp", f"{made}:/workspace/several/a.txt", f"{made}:/workspace/several/b.txt", tmp_path / "out")
    assert sorted(os.listdir(tmp_path / "out")) == ["a.txt", "b.txt"]
    assert "not a directory" in cli.refused("cp", tree / "a.txt", tree / "b.txt", f"{made}:/workspace/several/a.txt")


def test_cp_of_patterns_in_the_sandbox(cli, made, tree, tmp_path):
    cli.ok("cp", "-r", tree, f"{made}:/workspace/globs")
    out = tmp_path / "out"
    out.mkdir()
    cli.ok("cp", f"{made}:/workspace/globs/*.txt", out)
    assert sorted(os.listdir(out)) == ["a.txt", "b.txt"]
    cli.ok("cp", f"{made}:/workspace/glo*/s?b/[ab-d].md", out)
    assert (out / "c.md").read_text() == "c"
    assert "fits" in cli.refused("cp", f"{made}:/workspace/globs/*.none", out)
    cli.ok("exec", made, "--", "touch", "/workspace/globs/star*")
    cli.ok("cp", f"{made}:/workspace/globs/star*", out)  # a name like that is a name first
    assert (out / "star*").exists()


def test_cp_out_of_a_hostile_sandbox_stays_in_its_directory(cli, make_box, tmp_path):
    """A sandbox's links are copied, never followed: not those it sends, nor those that are there."""
    box = make_box()
    outside = tmp_path / "outside"
    outside.mkdir()
    target = tmp_path / "target"
    target.mkdir()
    (target / "dir").symlink_to(outside)
    box.check(["sh", "-c", "mkdir -p /workspace/t/dir; echo evil > /workspace/t/dir/file; ln -s /etc /workspace/t/abs"])
    done = cli("cp", "-r", f"{box.id}:/workspace/t/.", target)
    assert done.returncode != 0 and not os.listdir(outside), done
    clean = tmp_path / "clean"
    cli.ok("cp", "-r", f"{box.id}:/workspace/t", clean)
    assert os.readlink(clean / "abs") == "/etc" and (clean / "dir" / "file").read_text() == "evil\n"


def test_table_fits_the_terminal(cli, made):
    """Long names are cut there, with an ellipsis; in a pipe nothing is."""
    name = "long-" + "n" * 55
    box = cli.ok("create", "--name", name).strip()
    try:
        seen, code = on_terminal(cli, "ls", size=(24, 70))
        assert code == 0 and "…" in seen and max(map(len, seen.splitlines())) <= 70, seen
        assert name in cli.ok("ls") and "…" not in cli.ok("ls")
    finally:
        cli.ok("rm", box)


def test_top_sorts(cli, made):
    other = cli.ok("create").strip()
    try:
        cli.ok("exec", "-d", other, "sh", "-c", "sleep 900 & sleep 900 & sleep 900 & wait")
        paddock.until(lambda: cli.ok("top", "-n", "1", "-s", "pids").splitlines()[1].startswith(other), "the one with most is first")
        looked = json.loads(cli.ok("top", "-n", "1", "--sort", "memory", "--json"))["sandboxes"]
        memory = [box["stats"]["memory_bytes"] for box in looked]
        assert len(memory) >= 2 and memory == sorted(memory, reverse=True)
        assert "not \"mem\"" in cli.refused("top", "--sort", "mem", "-n", "1")
    finally:
        cli.ok("rm", other)


@pytest.fixture
def slow_line(daemon):
    """The address of a proxy that lets some 16 MB a second through to the daemon."""
    def serve():
        with listener.accept()[0] as client, socket.create_connection((daemon.host, daemon.port)) as server:
            while True:
                for sock in select.select([client, server], [], [])[0]:
                    piece = sock.recv(1 << 19)
                    if not piece:
                        return
                    (server if sock is client else client).sendall(piece)
                    time.sleep(len(piece) / 16e6)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        thread.join()


def test_import_shows_progress(cli, slow_line, tmp_path):
    """Bytes of how many, a rate, and the time that is left."""
    big = tmp_path / "big.tar"
    with tarfile.open(big, "w") as tar:
        info = tarfile.TarInfo("etc/zeros")
        info.size = 40 << 20
        tar.addfile(info, io.BytesIO(bytes(info.size)))
    seen, code = on_terminal(cli, "image", "import", "--url", slow_line, "progress", str(big))
    cli("image", "rm", "progress")
    assert code == 0 and re.search(r"big.tar  [\d.]+ [KM]iB of 40\.?\d* MiB  \d+%  [\d.]+ [KM]iB/s  \d:\d\d left", seen), seen


def test_cp_shows_progress_on_a_terminal_only(cli, made, tmp_path):
    fifo = tmp_path / "slow"
    os.mkfifo(fifo)
    writer = subprocess.Popen(["bash", "-c", f"exec 3>{fifo}; for i in 1 2 3 4 5 6 7 8; do head -c 1000000 /dev/zero >&3; sleep 0.2; done"])
    seen, code = on_terminal(cli, "cp", fifo, f"{made}:/workspace/slow")
    writer.wait()
    assert code == 0 and re.search(r"slow  \d[\d.]* MiB", seen), seen
    assert cli("cp", "/etc/hostname", f"{made}:/workspace/quick").err == ""


# ---- options ------------------------------------------------------------------


def test_options_in_a_cluster(cli, made):
    seen, code = on_terminal(cli, "run", "-itu", "root", "--", "sh", "-c", "test -t 0 && id -un")
    assert (code, seen.split()) == (0, ["root"])
    assert cli.ok("exec", "-iuroot", made, "--", "sh", "-c", "id -un; cat", stdin=b"in") == "root\nin"
    assert "unknown option -Z" in cli.refused("exec", "-iZ", made, "--", "true")


def test_variables(daemon, tmp_path):
    cli = Cli(daemon, FROM_OUTSIDE="outside", EMPTY="")
    listed = tmp_path / "env"
    listed.write_text("# a comment\n\nA=from file\nB=from file\nFROM_OUTSIDE\nNOT_SET_ANYWHERE\n")
    show = "echo $A/$B/$FROM_OUTSIDE/${EMPTY-unset}/${NOT_SET_ANYWHERE-unset}"
    assert cli.ok("run", "-e", "FROM_OUTSIDE", "-e", "EMPTY", "-e", "NOT_SET_ANYWHERE", "--", "sh", "-c", show) == "//outside//unset\n"
    assert cli.ok("run", "--env-file", listed, "-e", "B=flag", "--", "sh", "-c", show) == "from file/flag/outside/unset/unset\n"
    box = cli.ok("create").strip()
    assert cli.ok("exec", "--env-file", listed, box, "--", "sh", "-c", show) == "from file/from file/outside/unset/unset\n"
    cli.ok("rm", box)
    (tmp_path / "bad").write_text("=x\n")
    assert "KEY=VALUE" in cli.refused("run", "--env-file", tmp_path / "bad", "--", "true")


def test_volumes_are_copies(cli, tree):
    out = cli.ok("run", "-v", f"{tree}:/data/in", "--", "sh", "-c", "cat /data/in/a.txt; echo changed > /data/in/a.txt && cat /data/in/a.txt; id -u; stat -c %u /data/in/a.txt")
    assert out == "achanged\n1000\n1000\n"
    assert (tree / "a.txt").read_text() == "a"
    done = cli("run", "-v", f"{tree}:/data:ro", "--", "sh", "-c", "cat /data/sub/c.md; echo x > /data/a.txt")
    assert done.returncode != 0 and done.out == "c" and "ermission" in done.err
    # A directory that is made for it is the user's, too; one that was there stays as it was.
    assert cli.ok("run", "-v", f"{tree}:/data/in", "--", "sh", "-c", "touch /data/in/new && stat -c %U /data/in /data") == "user\nroot\n"
    assert cli.ok("run", "-v", f"{tree}:/opt", "--", "stat", "-c", "%U %a", "/opt") == "root 755\n"
    before = cli.ids()
    for bad in ("/etc/hostname:/x", f"{tree}", f"{tree}:relative", "/nosuch:/x", f"{tree}:/x:rx"):
        assert cli("create", "-v", bad).returncode != 0
    assert cli.ids() == before


# ---- names and lists ----------------------------------------------------------


def test_the_beginning_of_an_id(cli, make_box):
    box = make_box()
    short = next(box.id[:n] for n in range(4, 20) if sum(i.startswith(box.id[:n]) for i in cli.ids()) == 1)
    assert json.loads(cli.ok("inspect", short))["id"] == box.id
    assert cli.ok("exec", "-i", short, "--", "cat", stdin=b"typed") == "typed"
    cli.ok("cp", "/etc/hostname", f"{short}:/workspace/")
    assert cli.ok("cp", f"{short}:/workspace/hostname", "-")
    cli.ok("pause", short)
    cli.ok("resume", short)
    others = [make_box() for _ in range(40)]  # two of them share a beginning
    first = {}
    twins = next((first[o.id[:1]], o) for o in others if first.setdefault(o.id[:1], o) is not o)
    assert twins
    shared = os.path.commonprefix([twins[0].id, twins[1].id])
    if len(shared) >= 3:
        assert "several" in cli.refused("inspect", shared)
    cli.ok("rm", short)
    assert box.id not in cli.ids()


def test_ls(cli, made):
    assert made in cli.ok("ls", "-q").split()
    assert cli.ok("ls", "-q", "--metadata", "purpose=more").split() == [made]
    assert cli.ok("ls", "-q", "--name", "cli-m*").split() == [made]
    assert made in cli.ok("ls", "-q", "--status", "running", "--image", "mach*").split()
    assert cli.ok("ls", "-q", "--status", "stopped", "--name", "cli-more") == ""
    row = next(line for line in cli.ok("ls").splitlines() if line.startswith(made))
    assert re.search(r"\d+[smh] ago", row), row
    assert cli.json("ls", "--name", "cli-more")[0]["id"] == made


def test_rm_all(own_daemon):
    cli = Cli(own_daemon().start())
    for _ in range(3):
        cli.ok("create")
    assert len(cli.ids()) == 3
    assert "--all" in cli.refused("rm")
    assert "exclude" in cli.refused("rm", "--all", "x")
    cli.ok("rm", "--all")
    assert cli.ids() == set()


def test_json_everywhere(cli, made):
    """Every command that prints takes --json, and prints JSON then."""
    for command in (("ls",), ("ps", made), ("inspect", made), ("stats", made), ("key", "ls"), ("tenant", "ls"), ("link", "ls"), ("image", "ls"),
                    ("snapshot", "ls"), ("workspace", "ls"), ("secret", "ls"), ("shells", "ls", made), ("code", "ls", made), ("egress", "show", made),
                    ("egress", "log", made), ("egress", "sets"), ("ai", "show", made), ("ai", "calls", made), ("quota", "show", "default"),
                    ("url", made, "80"), ("context", "ls")):
        cli.json(*command)
    box = cli.json("create")["id"]
    assert cli.json("rm", box) == {"removed": [box]}
    for line in cli.ok("events", "--json").splitlines():
        json.loads(line)


# ---- processes, shells, code --------------------------------------------------


def test_processes(cli, api, made):
    api.post(f"/v1/sandboxes/{made}/processes", {"command": "echo out; echo err >&2; read x; echo got $x; exit 3", "tag": "job", "stdin": True})
    row = next(line for line in cli.ok("ps", made).splitlines() if " job " in line)
    assert "running" in row and "echo out" in row
    paddock.until(lambda: cli("logs", made, "job").out == "out\n", "the output")
    assert cli("logs", made, "job").err == "err\n"
    follower = cli.start("logs", "-f", made, "job", stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    done = cli("attach", made, "job", stdin=b"typed\n")
    assert done.returncode == 3 and done.out == "out\ngot typed\n"
    assert follower.communicate(timeout=30)[0] == b"out\ngot typed\n" and follower.returncode == 0
    assert "exit 3" in cli.ok("ps", made)
    api.post(f"/v1/sandboxes/{made}/processes", {"argv": ["sleep", "8080"], "tag": "sleeper"})
    cli.ok("kill", "-s", "SIGTERM", made, "sleeper")
    paddock.until(lambda: "exit 143" in cli.ok("ps", made), "the signal's effect")
    api.post(f"/v1/sandboxes/{made}/processes", {"argv": ["sleep", "8081"], "tag": "sleeper2"})
    cli.ok("kill", made, "sleeper2")


def test_a_detached_command_goes_on(cli, made):
    """It outlives the client that started it, and is found again by its tag or its pid."""
    pid = cli.ok("exec", "-d", "--tag", "sleeps", made, "--", "sleep", "8082").strip()
    assert re.search(rf"^{pid} +sleeps +user +running ", cli.ok("ps", made), re.M), cli.ok("ps", made)
    cli.ok("kill", made, pid)
    cli.ok("exec", "-di", "--tag", "asks", made, "--", "sh", "-c", "read x; echo got $x; exit 3")
    done = cli("attach", made, "asks", stdin=b"it\n")
    assert (done.returncode, done.out) == (3, "got it\n")
    assert "--detach" in cli.refused("exec", "-d", "-s", "shell", made, "true")
    assert "--tag" in cli.refused("exec", "--tag", "x", "-s", "shell", made, "true")


def test_shells_with_users(cli, made):
    cli.ok("shells", "create", made, "rooted", "--user", "root", "--workdir", "/tmp", "-e", "A=b")
    assert cli.ok("exec", "--shell", "rooted", made, "--", "id -un; pwd; echo $A; cd /etc") == "root\n/tmp\nb\n"
    assert cli.ok("exec", "--shell", "rooted", made, "--", "pwd") == "/etc\n"
    row = next(line for line in cli.ok("shells", "ls", made).splitlines() if line.startswith("rooted"))
    assert "root" in row and "/etc" in row
    cli.ok("shells", "rm", made, "rooted")
    assert "rooted" not in cli.ok("shells", "ls", made)


def test_code(cli, made):
    assert cli.ok("code", "run", made, stdin=b"x = 20\nprint('hi')\nx + 1") == "hi\n21\n"
    done = cli("code", "run", made, stdin=b"x / 0")
    assert done.returncode == 1 and "ZeroDivisionError" in done.err
    context = cli.ok("code", "create", made, "--language", "python").strip()
    assert cli.ok("code", "run", "--in", context, made, stdin=b"'x' in globals()").strip() == "False"
    assert context in cli.ok("code", "ls", made)
    cli.ok("code", "rm", made, context)
    assert context not in cli.ok("code", "ls", made)


# ---- the rest -----------------------------------------------------------------


def test_events(cli, make_box):
    follower = cli.start("events", "-f", stdout=subprocess.PIPE)
    seen = b""
    make_box()
    while b"created" not in seen:  # the first may come before the follower listens
        if not select.select([follower.stdout], [], [], 0.5)[0]:
            make_box()
            continue
        seen += os.read(follower.stdout.fileno(), 65536)
    follower.kill()
    follower.wait()
    follower.stdout.close()
    box = make_box()
    paddock.until(lambda: any(box.id in line and "created" in line for line in cli.ok("events").splitlines()), "it is in the list")


def test_stats_and_top(cli, made):
    row = cli.ok("stats", made).splitlines()[1]
    assert row.startswith(made) and re.search(r"[\d.]+ (K|M)iB / [\d.]+ (M|G)iB", row), row
    looks = cli.ok("top", "-n", "2", "--interval", "100ms")
    assert looks.count(made) == 2 and re.search(r"\d+\.\d%", looks), looks


def test_tenants_and_quotas(cli):
    cli.ok("tenant", "create", "quotas")
    assert "quotas" in cli.ok("tenant", "ls")
    cli.ok("quota", "set", "quotas", "--sandboxes", "2", "--memory", "1g")
    cli.ok("quota", "set", "quotas", "--cpu", "1.5")
    quota = cli.json("quota", "show", "quotas")["quota"]
    assert (quota["boxes"], quota["memory_mb"], quota["cpu"], quota["disk_mb"]) == (2, 1024, 1.5, 0)
    assert "no limit" in cli.ok("quota", "show", "quotas")
    cli.ok("quota", "set", "quotas", "--none", "--sandboxes", "1")
    assert cli.json("quota", "show", "quotas")["quota"]["memory_mb"] == 0


def test_links(cli, make_box):
    one, two = make_box(), make_box()
    link = cli.ok("link", "create", one.id, two.id, "9000", "9001").strip()
    assert link in cli.ok("link", "ls")
    cli.ok("link", "rm", link)
    assert link not in cli.ok("link", "ls")


# ---- completion ---------------------------------------------------------------


def all_commands(cli):
    return [line[2:18].strip() for line in cli.ok("help").splitlines() if re.match(r"  [a-z]", line)]


def options_of(cli, command):
    return re.findall(r"^  (?:-\w,|   ) --([a-z-]+)", cli.ok("help", *command.split()), re.M)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_knows_every_command_and_option(cli, shell):
    text = cli.ok("completion", shell)
    for command in all_commands(cli):
        if shell == "fish":
            part = [line for line in text.splitlines() if f"'__paddock_is {command}'" in line]
            known = set(re.findall(r" -l ([a-z-]+)", "\n".join(part)))
        else:
            part = re.search(rf"\t'{command}'\)\n\t\toptions='([^']*)'", text)
            assert part, command
            known = {word[2:] for word in part[1].split() if word.startswith("--")}
        assert known == set(options_of(cli, command)), command


def complete(cli, line, cursor_word=""):
    words = line.split()
    script = cli.ok("completion", "bash") + """
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _paddock; printf '%s\\n' "${COMPREPLY[@]}"
"""
    done = subprocess.run(["bash", "-c", script, "x", *words, cursor_word], capture_output=True, text=True, check=True,
                          env={**cli.environment, "PATH": f"{paddock.BIN}:{os.environ['PATH']}"})
    return done.stdout.split()


def test_completion_in_bash(cli, made):
    assert "snapshot" in complete(cli, "paddock", "sn")
    assert set(complete(cli, "paddock snapshot")) == {"create", "ls", "rm", "show"}
    assert complete(cli, "paddock create", "--mem") == ["--memory"]
    assert made in complete(cli, "paddock exec")
    assert complete(cli, "paddock inspect", made[:6]) == [made]
    assert complete(cli, "paddock ls --status", "run") == ["running"]
    assert complete(cli, "paddock completion", "f") == ["fish"]


class Zsh:
    """A real zsh on a terminal, with our completion; line() is what the Tab key makes of a beginning."""

    def __init__(self, cli, directory):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(directory)
            os.execve("/usr/bin/zsh", ["zsh", "-f", "-i"], {**cli.environment, "HOME": str(directory), "TERM": "dumb",
                                                              "PATH": f"{paddock.BIN}:{os.environ['PATH']}"})
        self.run("PS1='>'; unsetopt zle_bracketed_paste prompt_sp prompt_cr; LISTMAX=1000")
        self.run("source <(paddock completion zsh)")

    def read(self, mark):
        seen = b""
        while mark not in seen:
            assert select.select([self.fd], [], [], 20 * paddock.SLOW)[0], seen
            seen += os.read(self.fd, 65536)
        return seen.decode(errors="replace")

    def run(self, command, key=b"\n"):
        self.count = getattr(self, "count", 0) + 1
        os.write(self.fd, command.encode() + b"; print -r -- do''ne" + str(self.count).encode() + key)
        return self.read(b"done%d" % self.count)

    def line(self, beginning):
        """The line that it becomes: what follows is typed in front of it, so that it is printed and not run."""
        os.write(self.fd, beginning.encode() + b"\t\x01print -r -- '<\x05>'; print -r -- do''ne\n")
        return re.findall(r"^<(.*)>", self.read(b"\ndone").replace("\r", ""), re.M)[-1].rstrip()  # the space goes with the cursor

    def choices(self, beginning, *expected):
        """The list that two Tab keys show, as soon as it has those: zsh leaves it out while there is more to read."""
        os.write(self.fd, beginning.encode() + b"\t\t")
        seen = ""
        while not set(expected) <= set(seen.split()):
            assert select.select([self.fd], [], [], 20 * paddock.SLOW)[0], seen
            seen += os.read(self.fd, 65536).decode(errors="replace").replace("\r", "")
        os.write(self.fd, b"\x15print -r -- do''ne\n")
        self.read(b"\ndone")

    def close(self):
        os.close(self.fd)
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


@pytest.fixture
def zsh(cli, tmp_path):
    it = Zsh(cli, tmp_path)
    yield it
    it.close()


def test_completion_in_zsh(zsh, cli, made, tmp_path):
    (tmp_path / "archive.tar").touch()
    assert zsh.line("paddock snap") == "paddock snapshot"
    assert zsh.line("paddock snapshot cr") == "paddock snapshot create"
    assert zsh.line("paddock create --mem") == "paddock create --memory"
    assert zsh.line(f"paddock inspect {made[:8]}") == f"paddock inspect {made}"
    assert zsh.line("paddock create --image mach") == "paddock create --image machine"
    assert zsh.line("paddock ls --status run") == "paddock ls --status running"
    assert zsh.line("paddock completion fi") == "paddock completion fish"
    assert zsh.line("paddock image import x arch") == "paddock image import x archive.tar"
    zsh.choices("paddock snapshot ", "create", "ls", "rm", "show")
    zsh.choices("paddock ", "run", "exec", "snapshot")


def fish(cli, line, directory="/"):
    script = "paddock completion fish | source; complete -C " + shlex.quote(line)
    done = subprocess.run(["fish", "--no-config", "-c", script], capture_output=True, text=True, check=True, cwd=directory,
                          env={**cli.environment, "HOME": str(directory), "PATH": f"{paddock.BIN}:{os.environ['PATH']}"})
    assert not done.stderr, done.stderr
    return [candidate.split("\t")[0] for candidate in done.stdout.splitlines()]


def test_completion_in_fish(cli, made, tmp_path):
    (tmp_path / "archive.tar").touch()
    assert fish(cli, "paddock snap") == ["snapshot"]
    assert fish(cli, "paddock snapshot ") == ["create", "ls", "rm", "show"]
    assert {"run", "exec", "image"} <= set(fish(cli, "paddock ")) and made not in fish(cli, "paddock ")
    assert fish(cli, "paddock create --mem") == ["--memory"]
    assert made in fish(cli, "paddock exec ") and fish(cli, f"paddock inspect {made[:8]}") == [made]
    assert fish(cli, "paddock create --image mach") == ["machine"]
    assert fish(cli, "paddock ls --status run") == ["running"]
    assert fish(cli, "paddock completion ") == ["bash", "fish", "zsh"]
    assert "archive.tar" in fish(cli, "paddock image import x arch", tmp_path)
    assert "archive.tar" in fish(cli, "paddock create --env-file arch", tmp_path)


def test_completion_is_valid(cli):
    assert subprocess.run(["bash", "-n"], input=cli.ok("completion", "bash"), text=True, check=False).returncode == 0
    assert "SHELL" in cli.refused("completion") and "zsh" in cli.refused("completion", "ksh")


# ---- --json ---------------------------------------------------------------------


def test_top_as_lines_of_json(cli, made):
    lines = [json.loads(line) for line in cli.ok("top", "--json", "-n", "2", "-i", "100ms").splitlines()]
    assert len(lines) == 2
    [mine] = [box for box in lines[1]["sandboxes"] if box["id"] == made]
    assert mine["stats"] and "name" in mine


def test_doctor_as_json(cli, tmp_path):
    done = cli("doctor", "--json", "--data-dir", tmp_path / "data")
    said = json.loads(done.out)
    assert said["daemon"]["ok"] and "answers" in said["daemon"]["detail"]
    assert said["machine"]["ok"] == (done.returncode == 0)
    assert {"root", "kernel"} <= {part["name"] for part in said["machine"]["parts"]}


@pytest.mark.parametrize("command", [["shell", "x"], ["attach", "x", "y"], ["exec", "x", "true"], ["run", "true"], ["forward", "x", "1"], ["completion", "zsh"]])
def test_where_json_makes_no_sense_it_is_refused(cli, command):
    done = cli(command[0], "--json", *command[1:])
    assert done.returncode == 2 and "there is no --json here" in done.err
