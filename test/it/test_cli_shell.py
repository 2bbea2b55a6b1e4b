"""`paddock shell`, `exec -t` and `exec`: the command line on a terminal, and commands whose output comes as it is written."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time

import pytest

import paddock
from test_terminal import PROMPT


@pytest.fixture
def box(make_box):
    return make_box()


class Console:
    """`paddock …` in a terminal of its own."""

    def __init__(self, daemon, *arguments, cols=93, rows=29):
        self.master, slave = pty.openpty()
        self.resize(cols, rows)
        self.before = termios.tcgetattr(slave)
        self.slave = slave
        self.process = subprocess.Popen(
            [paddock.BIN / "paddock", *arguments], stdin=slave, stdout=slave, stderr=slave, start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
            env=paddock.clean_environment(TERM="xterm-256color", PADDOCK_URL=daemon.url, PADDOCK_KEY_FILE=daemon.data_dir / "admin.key"))
        self.text = b""

    def resize(self, cols, rows):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))

    def type(self, text):
        os.write(self.master, text.encode() if isinstance(text, str) else text)

    def expect(self, pattern, timeout=30):
        end = time.monotonic() + timeout
        while not re.search(pattern, self.text):
            assert select.select([self.master], [], [], max(0, end - time.monotonic()))[0], self.text
            self.text += os.read(self.master, 65536)
        seen, self.text = self.text, b""
        return seen

    def wait(self):
        """What it still writes is read, so that it can end."""
        ended = os.pidfd_open(self.process.pid)
        while (ready := select.select([self.master, ended], [], [], 30)[0]) and ended not in ready:
            self.text += os.read(self.master, 65536)
        os.close(ended)
        while select.select([self.master], [], [], 0)[0]:
            self.text += os.read(self.master, 65536)
        code = self.process.wait(1)
        restored = termios.tcgetattr(self.slave) == self.before
        os.close(self.slave)
        os.close(self.master)
        return code, restored


def test_paddock_shell(daemon, box):
    console = Console(daemon, "shell", box.id)
    console.type("stty size; echo $TERM\n")
    assert b"29 93\r\n" in console.expect(rb"xterm[^\r]*\r\n")
    console.type("trap 'stty size' WINCH; echo rea''dy\n")
    console.expect(rb"ready\r\n" + PROMPT)
    console.resize(60, 15)
    console.type("\n")  # bash runs a trap when it has read a line
    console.expect(rb"15 60\r\n")
    console.type("sleep 8001\n")
    pid = box.find_process("8001")
    console.type(b"\x03")
    assert paddock.wait_gone(pid, 15), "Ctrl-C goes to the program"
    console.type("echo still here: $?\n")
    console.expect(rb"still here: 130\r\n")
    console.type("exit 9\n")
    code, restored = console.wait()
    assert code == 9 and restored, "the exit code is the shell's, and our terminal is as it was"


def test_every_byte_goes_both_ways(daemon, box):
    """Colours out; control characters in, which our own terminal must not take for itself."""
    console = Console(daemon, "shell", box.id)
    console.type("stty raw -echo; printf '\\033[31mred\\033[0m %s' \"$(tput colors)\"; head -c 6 | od -An -tx1; stty sane; exit 3\n")
    console.expect(rb"\x1b\[31mred\x1b\[0m 256")
    console.type(b"\x03\x1a\x1c\x13\x00\xff")
    console.expect(rb"03 1a 1c 13 00 ff")
    assert console.wait() == (3, True)


def test_a_shell_that_is_killed(daemon, box):
    console = Console(daemon, "shell", box.id)
    console.type("exec sleep 8003\n")
    paddock.kill(box.find_process("8003"))
    assert console.wait() == (128 + 9, True)


@pytest.mark.parametrize("signo", [signal.SIGTERM, signal.SIGHUP])
def test_who_ends_the_command_line_ends_the_shell(daemon, box, signo):
    console = Console(daemon, "shell", box.id)
    console.type("sleep 8004\n")
    pid = box.find_process("8004")
    console.process.send_signal(signo)
    assert console.wait() == (128 + signo, True)
    assert paddock.wait_gone(pid, 15)


def test_a_box_that_goes_away(daemon, box):
    console = Console(daemon, "shell", box.id)
    console.type("echo $((6 * 7))\n")
    console.expect(rb"42\r\n")
    box.delete()
    assert console.wait() == (125, True)
    assert b"paddock: " in console.text


def test_a_box_that_is_not_there(daemon):
    console = Console(daemon, "shell", "nosuchbox")
    assert console.wait() == (125, True) and b"paddock: " in console.text


def test_paddock_shell_goes_on_after_a_restart_of_the_api(own_daemon):
    daemon = own_daemon().start()
    client = daemon.client()
    box = client.create()
    console = Console(daemon, "shell", box.id)
    console.type("x=remem''bered; echo $x\n")
    console.expect(rb"remembered\r\n")
    daemon.kill_api()
    console.type("echo got:$x\n")
    console.expect(rb"got:remembered\r\n")
    console.type("exit 5\n")
    assert console.wait() == (5, True)
    client.close()


def test_paddock_shell_with_options(daemon, box):
    console = Console(daemon, "shell", "-u", "root", "-w", "/usr", box.id)
    console.type("echo $(id -u):$(pwd); exit\n")
    console.expect(rb"0:/usr\r\n")
    assert console.wait() == (0, True)


def test_paddock_shell_needs_a_terminal(daemon, box):
    result = subprocess.run([paddock.BIN / "paddock", "shell", box.id], stdin=subprocess.DEVNULL, capture_output=True, timeout=30,
                            env=paddock.clean_environment(TERM="xterm-256color", PADDOCK_URL=daemon.url, PADDOCK_KEY_FILE=daemon.data_dir / "admin.key"))
    assert result.returncode != 0 and b"terminal" in result.stderr


def test_paddock_exec_t(daemon, box):
    console = Console(daemon, "exec", "-t", box.id, "--", "sh", "-c", "tty; stty size; read x; echo got:$x; exit 4")
    console.expect(rb"29 93\r\n")
    console.type("typed\n")
    console.expect(rb"got:typed\r\n")
    code, restored = console.wait()
    assert code == 4 and restored


def test_paddock_run_t(daemon, api):
    before = len(api.list())
    console = Console(daemon, "run", "-t", "--", "sh", "-c", "tty; exit 6")
    console.expect(rb"/dev/pts/")
    assert console.wait()[0] == 6
    paddock.until(lambda: len(api.list()) == before, "`run` leaves no box")


def cli(daemon, *arguments, **options):
    return subprocess.Popen([paddock.BIN / "paddock", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            env=paddock.clean_environment(TERM="xterm-256color", PADDOCK_URL=daemon.url, PADDOCK_KEY_FILE=daemon.data_dir / "admin.key"), **options)


def test_paddock_exec_streams(daemon, box):
    process = cli(daemon, "exec", box.id, "--", "sh", "-c",
                  "echo one; echo err >&2; until [ -e /tmp/go ]; do sleep 0.02; done; echo two; exit 3", stdin=subprocess.DEVNULL)
    assert process.stdout.readline() == b"one\n"
    box.check("touch /tmp/go")
    assert process.stdout.readline() == b"two\n"
    assert process.stderr.read() == b"err\n" and process.wait() == 3


def test_paddock_exec_streams_stdin(daemon, box):
    process = cli(daemon, "exec", "-i", box.id, "--", "cat", stdin=subprocess.PIPE)
    for line in (b"a\n", b"\xff\x00\xfe\n", b"c\n"):
        process.stdin.write(line)
        process.stdin.flush()
        assert process.stdout.readline() == line, "back before there is more"
    process.stdin.close()
    assert process.stdout.read() == b"" and process.wait() == 0


def test_paddock_exec_with_much_binary_both_ways(daemon, box):
    data = os.urandom(20_000_000)
    process = cli(daemon, "exec", "-i", box.id, "--", "cat", stdin=subprocess.PIPE)
    out, err = process.communicate(data, timeout=60)
    assert out == data and err == b"" and process.returncode == 0


def test_paddock_exec_of_what_does_not_read(daemon, box):
    process = cli(daemon, "exec", "-i", box.id, "--", "true", stdin=subprocess.PIPE)
    assert process.communicate(b"x" * 5_000_000, timeout=60)[0] == b"" and process.returncode == 0
    process = cli(daemon, "exec", "-i", box.id, "--", "sh", "-c", "exit 5", stdin=subprocess.PIPE)  # stdin stays open
    assert process.wait(30) == 5


def test_paddock_exec_interrupted(daemon, box):
    process = cli(daemon, "exec", box.id, "--", "sleep", "8002", stdin=subprocess.DEVNULL)
    pid = box.find_process("8002")
    process.terminate()
    process.wait(30)
    assert paddock.wait_gone(pid, 15), "who ends the command line ends the command"


def test_paddock_exec_in_a_shell(daemon, box):
    for command, out in (("x=5; cd /usr", b""), ("echo $x; pwd", b"5\n/usr\n")):
        process = cli(daemon, "exec", "--shell", "work", box.id, "--", command, stdin=subprocess.DEVNULL)
        assert process.communicate(timeout=30) == (out, b"") and process.returncode == 0
