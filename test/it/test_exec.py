"""POST …/exec: what runs, as whom, with what, and how it ends."""

import json
import os
import socket
import time

import pytest

import paddock


def test_argv_is_not_a_shell(box):
    assert box.check(["/bin/echo", "a b", "$HOME", "*", ""]) == "a b $HOME * \n"


def test_argv_is_found_by_path(box):
    assert box.check(["echo", "x"]) == "x\n"


def test_command_is_bash(box):
    assert box.check('a=(1 2 3); echo "${a[1]} $BASH_VERSION" | cut -d" " -f1') == "2\n"
    assert box.check("echo $0").strip().endswith("bash")


def test_stdout_and_stderr_are_apart(box):
    output = box.exec("echo out; echo err >&2")
    assert (output.out, output.err, output.encoding) == (b"out\n", b"err\n", "utf-8")
    assert not output.truncated and not output.timed_out and output.signal is None


def test_answer_has_exactly_the_promised_fields(box):
    assert set(box.exec(["true"]).document) == {
        "exit_code", "signal", "stdout", "stderr", "encoding", "truncated", "timed_out", "oom_killed", "duration_ms",
    }


def test_default_user_and_place(box):
    assert box.check("id -u; id -un; id -g; pwd; echo $HOME; echo $USER").split() == [
        "1000", "user", "1000", "/workspace", "/home/user", "user",
    ]


def test_workspace_is_the_users(box):
    assert box.check("touch a && mkdir b && rm -r a b && echo fine") == "fine\n"


def test_root(box):
    assert box.check("id -u; id -g; echo $HOME; echo $USER", user="root").split() == ["0", "0", "/root", "root"]
    assert box.check("touch /root/x && cat /root/x && rm /root/x", user="root") == ""


def test_groups_are_the_users_own(box):
    assert box.check(["id", "-G"]).split() == ["1000"]
    assert box.check(["id", "-G"], user="root").split() == ["0"]


def test_user_cannot_become_root(box):
    script = """
import os, json
out = {}
for name, call in dict(setuid=lambda: os.setuid(0), setresuid=lambda: os.setresuid(0, 0, 0),
                       setgroups=lambda: os.setgroups([0]), setgid=lambda: os.setgid(0)).items():
    try: call(); out[name] = "done"
    except OSError as e: out[name] = e.errno
print(json.dumps(out))
"""
    assert set(box.python_json(script).values()) == {1}


def test_unknown_user(box):
    response = box.try_exec(["true"], user="nobody-of-this-name")
    assert response.status == 400 and response.code() == "invalid_argument"


def test_a_user_who_changes_is_seen_at_once(make_box):
    """PID 1 remembers whom it found, but not past a change: in place and of the same length, one behind another, by a
    new file, of the groups."""
    box = make_box()
    assert [box.check("id -u; id -G").split() for _ in range(2)] == [["1000", "1000"]] * 2
    swap = "sed 's/:{}:/:{}:/' /etc/{} > /tmp/new && cat /tmp/new > /etc/{}"
    for old, new in [(1000, 1001), (1001, 1002), (1002, 1003)] * 3:
        assert box.check(swap.format(old, new, "passwd", "passwd"), user="root") == ""
        assert box.check("id -u").split() == [str(new)], "in place"
        if new == 1003:
            assert box.check(swap.format(new, 1000, "passwd", "passwd"), user="root") == ""
            assert box.check("id -u").split() == ["1000"]
    assert box.check("sed -i 's/:1000:1000:/:1077:1000:/' /etc/passwd", user="root") == ""
    assert box.check("id -u").split() == ["1077"], "a new file"
    assert box.check("echo 'extra:x:4711:user' >> /etc/group", user="root") == ""
    assert box.check("id -G").split() == ["1000", "4711"]
    # and once both have been left alone for long enough to be remembered
    assert box.check("touch -d '1 hour ago' /etc/passwd /etc/group; sleep 3.1", user="root") == ""
    assert [box.check("id -u").split() for _ in range(3)] == [["1077"]] * 3
    assert box.check(swap.format(1077, 1078, "passwd", "passwd") + "; touch -r /etc/group /etc/passwd", user="root") == ""
    assert box.check("id -u").split() == ["1078"]
    assert box.try_exec(["true"], user="gone").status == 400 and box.check("id -u").split() == ["1078"]
    # remembered, then changed by somebody whom PID 1 does not see, then asked for when the change is old
    assert box.check("sleep 3.1", user="root") == ""
    later = swap.format(1078, 1079, "passwd", "passwd")
    box.check(f"(sleep 1; {later}; sleep 3.1) > /dev/null 2>&1 &", user="root")
    box.check("true")
    group = next(iter(paddock.cgroup_dirs(box.id).values()))
    paddock.until(lambda: len(paddock.read(group / "cgroup.procs").split()) == 1, "PID 1 is alone")
    assert box.check("id -u").split() == ["1079"]


def test_environment(box):
    assert box.check("echo $A-$B", env={"A": "1 2", "B": "ü"}) == "1 2-ü\n"
    plain = dict(line.split("=", 1) for line in box.check(["env"]).splitlines())
    assert plain["HOME"] == "/home/user" and "/usr/bin" in plain["PATH"].split(":")
    host = set(os.environ) - {"PATH", "HOME", "USER", "LANG", "TERM", "SHELL", "LOGNAME", "PWD", "SHLVL", "_"}
    assert not host & set(plain), "nothing of the daemon's environment comes in"


def test_environment_of_the_box_and_of_the_exec(make_box):
    box = make_box(env={"A": "box", "B": "box"})
    assert box.check("echo $A $B", env={"B": "exec"}) == "box exec\n"


def test_cwd(box):
    assert box.check("pwd", cwd="/tmp") == "/tmp\n"
    response = box.try_exec(["pwd"], cwd="/no/such/directory")
    assert response.status == 400 and response.code() in ("invalid_argument", "not_found")
    response = box.try_exec(["pwd"], cwd="/root")
    assert response.status in (400, 403), "the user may not enter root's home"


def test_stdin(box):
    assert box.check(["cat"], stdin="hello\n") == "hello\n"
    assert box.check(["wc", "-c"], stdin="x" * 500_000) == "500000\n"
    assert box.check(["cat"]) == "", "without stdin there is an end of file, not a wait"


def test_stdin_that_nobody_reads(box):
    assert box.exec(["true"], stdin="x" * 900_000).exit_code == 0


def test_binary_output(box):
    output = box.exec(["/usr/bin/printf", r"\xff\x00\xfe"])
    assert (output.encoding, output.out, output.err) == ("base64", b"\xff\x00\xfe", b"")
    output = box.exec("printf 'a\\0b'")
    assert output.out == b"a\0b"
    output = box.exec("echo plain; printf '\\xff' >&2")
    assert (output.encoding, output.out, output.err) == ("base64", b"plain\n", b"\xff")


def test_unicode_split_over_chunks_stays_text(box):
    output = box.exec(["/usr/bin/python3", "-c", "import sys; sys.stdout.write('aü€😀' * 60000)"])
    assert output.encoding == "utf-8" and output.text == "aü€😀" * 60000


def test_control_characters_survive_json(box):
    output = box.exec(["/usr/bin/printf", r'\x1b[31m"\\\t\x01\x7f\xe2\x80\xa8'])
    assert output.text == '\x1b[31m"\\\t\x01\x7f\u2028'


@pytest.mark.parametrize("how, code, signo", [
    ("exit 0", 0, None), ("exit 3", 3, None), ("exit 255", 255, None), ("kill -9 $$", 137, "SIGKILL"),
    ("kill -SEGV $$", 139, "SIGSEGV"), ("kill -TERM $$", 143, "SIGTERM"), ("no-such-command-at-all", 127, None),
])
def test_exit_codes_and_signals(box, how, code, signo):
    output = box.exec(how)
    assert (output.exit_code, output.signal, output.timed_out) == (code, signo, False)


def test_program_that_is_not_there(box):
    """argv names no program: that is the request's mistake, or 127 as a shell says it."""
    for argv, code in ((["/no/such/program"], 127), (["no-such-program"], 127), (["/etc/passwd"], 126), (["/tmp"], 126)):
        response = box.try_exec(argv)
        if response.status == 200:
            assert response.json()["exit_code"] == code, argv
        else:
            assert (response.status, response.code()) == (400, "command_not_found" if code == 127 else "not_executable"), argv


BAD_EXECS = {
    "nothing to run": {},
    "both": {"argv": ["true"], "command": "true"},
    "argv empty": {"argv": []},
    "argv a string": {"argv": "true"},
    "argv with a number": {"argv": ["echo", 1]},
    "argv with NUL": {"argv": ["echo", "a\0b"]},
    "argv[0] empty": {"argv": [""]},
    "command a list": {"command": ["true"]},
    "command empty with NUL": {"command": "\0"},
    "env a list": {"argv": ["true"], "env": []},
    "env with a number": {"argv": ["true"], "env": {"A": 1}},
    "cwd relative": {"argv": ["true"], "cwd": "x"},
    "cwd a number": {"argv": ["true"], "cwd": 1},
    "user a number": {"argv": ["true"], "user": 0},
    "stdin a number": {"argv": ["true"], "stdin": 1},
    "timeout negative": {"argv": ["true"], "timeout_ms": -1},
    "timeout a string": {"argv": ["true"], "timeout_ms": "1"},
    "timeout a fraction": {"argv": ["true"], "timeout_ms": 1.5},
    "unknown field": {"argv": ["true"], "timeout": 5},
    "a list": [],
}


@pytest.mark.parametrize("document", BAD_EXECS.values(), ids=BAD_EXECS.keys())
def test_exec_refuses(box, document):
    response = box.client.post(box.path + "/exec", document)
    assert (response.status, response.code()) == (400, "invalid_argument")


def test_arguments_too_long_for_the_kernel(box):
    response = box.try_exec(["echo", "x" * 200_000])  # beyond MAX_ARG_STRLEN
    assert response.status in (400, 413) or response.json()["exit_code"] != 0
    assert box.check(["echo", "alive"]) == "alive\n"


# ---- limits of an exec ----------------------------------------------------


def test_timeout(box):
    output = paddock.given_time(lambda limit: box.exec("echo before; sleep 600; echo after", timeout_ms=limit), lambda output: output.out)
    assert output.timed_out and output.out == b"before\n"
    assert output.exit_code == 137 and output.signal == "SIGKILL"
    assert 250 <= output.duration_ms < 60_000


def test_timeout_kills_the_whole_group(box):
    """Children, children that ignore signals, and children that left by setsid."""
    output = box.exec(
        "sleep 601 & (trap '' TERM HUP INT; sleep 602) & setsid sleep 603 & "
        "(setsid sh -c 'sleep 604 & sleep 605') & wait",
        timeout_ms=400,
    )
    assert output.timed_out

    def left():
        return [line for line in box.check("cat /proc/[0-9]*/cmdline | tr '\\0' '\\n'").split()
                if line in ("601", "602", "603", "604", "605")]

    paddock.until(lambda: not left(), "the group of the timed-out exec is gone")


def test_timeout_of_one_exec_leaves_another_alone(daemon, box):
    client = daemon.client()
    other = paddock.Background(box.with_client(client).exec, "sleep 1.5; echo done")
    assert box.exec("sleep 600", timeout_ms=300).timed_out
    assert other.result().out == b"done\n"
    client.close()


def test_timeout_with_output_flowing(box):
    output = paddock.given_time(lambda limit: box.exec("while :; do echo line; done", timeout_ms=limit), lambda output: output.out)
    assert output.timed_out and output.out.startswith(b"line\n")


def test_output_is_truncated_not_buffered(box, daemon):
    output = box.exec("head -c 200000000 /dev/zero | tr '\\0' a; echo end >&2", timeout_ms=60_000)
    assert output.truncated and output.exit_code == 0 and output.err == b"end\n"
    assert 0 < len(output.out) < 64 << 20 and set(output.out) == {ord("a")}
    small = box.exec("echo x")
    assert not small.truncated


@pytest.mark.parametrize("user", ["user", "root"])
def test_dev_stdout_and_stderr_can_be_opened(box, user):
    """Scripts write to /dev/stderr by name: the pipes belong to whom the process runs as."""
    output = box.exec("echo out > /dev/stdout; echo err > /dev/stderr; cat /dev/stdin", user=user, stdin="in\n")
    assert (output.out, output.err) == (b"out\nin\n", b"err\n")


def test_background_child_that_holds_stdout(box):
    """The answer comes when the process ends, not when the last copy of its pipe does."""
    begun = time.monotonic()
    output = box.exec("sleep 606 & echo started")
    assert output.out == b"started\n" and time.monotonic() - begun < 60
    box.exec("kill $(pidof sleep) 2>/dev/null; true")


@pytest.mark.parametrize("how", ["reset", "close"])
def test_client_that_goes_away(box, daemon, how):
    """Whoever no longer waits for the answer no longer wants the process."""
    body = json.dumps({"argv": ["sleep", "607"]}).encode()
    with daemon.raw() as connection:
        connection.sendall(
            f"POST {box.path}/exec HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {daemon.key}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body
        )
        pid = box.find_process("607")
        if how == "reset":
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    assert paddock.wait_gone(pid, 5), "the process outlived its client"
    assert box.check("echo fine") == "fine\n"


def test_many_at_once(box, daemon):
    clients = [daemon.client() for _ in range(12)]
    calls = [paddock.Background(box.with_client(c).exec, f"sleep 0.2; echo {i}") for i, c in enumerate(clients)]
    assert [call.result().out for call in calls] == [f"{i}\n".encode() for i in range(12)]
    for client in clients:
        client.close()


def test_no_zombies(box):
    for _ in range(5):
        box.exec("(true &) ; (setsid true &) ; true")

    def zombies():
        return box.check("grep -l '^State:.Z' /proc/[0-9]*/status 2>/dev/null | wc -l").strip() == "0"

    paddock.until(zombies, "PID 1 reaps orphans")


def test_signals_are_at_their_defaults(box):
    status = dict(line.split(":\t", 1) for line in box.check(["cat", "/proc/self/status"]).splitlines() if ":\t" in line)
    assert int(status["SigBlk"], 16) == 0 and int(status["SigIgn"], 16) == 0


def test_exec_has_only_its_three_fds(box):
    listing = box.check(["/usr/bin/python3", "-c", "import os; print(sorted(map(int, os.listdir('/proc/self/fd'))))"])
    assert json.loads(listing) == [0, 1, 2, 3]  # 3 is the listing itself


def test_exec_is_a_session_of_its_own_without_a_terminal(box):
    script = "import os; print(os.getpid() == os.getsid(0) == os.getpgid(0)); open('/dev/tty')"
    output = box.python(script)
    assert output.out == b"True\n" and b"No such device or address" in output.err


def test_umask_and_limits(make_box):
    box = make_box(limits={"nofile": 333})
    assert box.check("umask; ulimit -n; ulimit -Hn; ulimit -c").split() == ["0022", "333", "333", "0"]


def test_kill_of_pid_1_does_nothing(box):
    for user in ("user", "root"):
        box.exec("kill -9 1; kill -TERM 1; kill -STOP 1; kill -INT 1", user=user)
        assert box.check("echo alive") == "alive\n"


def test_kill_of_everything_spares_pid_1(make_box):
    box = make_box()
    output = box.exec("sleep 7001 & kill -9 -1", user="root")
    assert output.exit_code in (0, 137), output
    assert box.check("echo alive") == "alive\n"


def test_pid_1_stopped_by_ptrace_is_not_possible(box):
    output = box.python("""
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
print(libc.ptrace(16, 1, 0, 0), ctypes.get_errno())  # PTRACE_ATTACH
""", user="root")
    assert output.text.split() in (["-1", "1"], ["-1", "3"], ["-1", "38"])
    assert box.check("echo alive") == "alive\n"
