"""The command line as tests call it."""

import json
import subprocess

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

    def ids(self):
        return set(self.ok("ls", "-q").split())
