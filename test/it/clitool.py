"""The command line as tests call it."""

import json
import os
import pty
import select
import subprocess
import termios
import time

import paddock


class Cli:
    """`paddock` with a daemon's address and key; calling it gives the finished process, with text."""

    def __init__(self, daemon, **environment):
        self.daemon = daemon
        self.environment = paddock.clean_environment(**{"PADDOCK_URL": daemon.url, "PADDOCK_API_KEY": daemon.key, **environment})

    def __call__(self, *arguments, stdin=b"", timeout=60, **options):
        done = subprocess.run([paddock.BIN / "paddock", *map(str, arguments)], input=stdin, capture_output=True,
                              env=self.environment, timeout=timeout, check=False, **options)
        done.out, done.err = done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")
        return done

    def ok(self, *arguments, **options):
        done = self(*arguments, **options)
        assert done.returncode == 0, (arguments, done)
        return done.out

    def json(self, *arguments, **options):
        return json.loads(self.ok(*arguments, "--json", **options))

    def refused(self, *arguments, **options):
        done = self(*arguments, **options)
        assert done.returncode != 0, (arguments, done)
        return done.err

    def start(self, *arguments, **options):
        return subprocess.Popen([paddock.BIN / "paddock", *map(str, arguments)], env=self.environment, **options)

    def on_terminal(self, *arguments, answers=()):
        """On a terminal of its own; each answer is typed when its prompt is there. Gives the exit status (negative: a signal),
        what the terminal showed, and whether it shows what is typed afterwards."""
        pid, master = pty.fork()
        if pid == 0:
            os.execve(paddock.BIN / "paddock", ["paddock", *map(str, arguments)], {k: str(v) for k, v in self.environment.items()})
        shown, end = b"", time.monotonic() + 60 * paddock.SLOW

        def more():
            assert select.select([master], [], [], max(0, end - time.monotonic()))[0], shown
            try:
                return os.read(master, 4096)
            except OSError:  # EIO: nobody has the other end any more
                return b""

        at = 0
        for prompt, answer in answers:
            while prompt.encode() not in shown[at:]:
                new = more()
                assert new, (prompt, shown)
                shown += new
            at = shown.index(prompt.encode(), at) + len(prompt.encode())
            os.write(master, answer.encode())
        while new := more():
            shown += new
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        echo = bool(termios.tcgetattr(master)[3] & termios.ECHO)
        os.close(master)
        return status, shown.decode(errors="replace"), echo

    def ids(self):
        return set(self.ok("ls", "-q").split())
