"""What E2B's own client measures, unmodified: as installed, and with a warm pool."""

import json
import subprocess
import sys

from common import HERE, Ours, paddock
from remember import add_times, configure, running

sys.path.insert(0, str(HERE.parent / "compat"))

import clients  # noqa: E402


def ask(daemon, *arguments):
    done = subprocess.run(["node", HERE / "e2b.js", *map(str, arguments)], env=clients.environment(daemon, clients.install()),
                          capture_output=True, text=True, timeout=600)
    if done.returncode != 0:
        raise SystemExit(f"{done.stderr}\n{daemon.log()}")
    return json.loads(done.stdout)


def measure(work, book, options, stack):
    ours, rounds, many = Ours(work), 30 if options.quick else 300, 20 if options.quick else 100
    stack.callback(ours.daemon.finish)
    for warm in (0, many):
        daemon = configure(ours, f"pool:\n  machine:\n    warm: {warm}\n" if warm else "").start()
        how = "from a warm pool" if warm else "as installed"

        def full(daemon=daemon, warm=warm):
            return running(daemon) >= warm

        paddock.until(full, "the pool is full", 120)
        times = ask(daemon, "latencies", rounds)
        add_times(book, f"E2B: Sandbox.create() and commands.run('true'), {how}", times["create_and_run"], 6 if warm else 8, 30)
        if not warm:
            add_times(book, "E2B: commands.run('true')", times["run"], 5)
            add_times(book, "E2B: files.read of 1 kB", times["read"], 2)
        paddock.until(full, "the pool is full", 120)
        times = ask(daemon, "at-once", many)
        book.add(f"E2B: {many} Sandbox.create() at once, {how}", times["at_once"] / 1000, "s", 1.5)
        book.add(f"E2B: {many} Sandbox.create() at once, {how}, all answer a command", times["answered"] / 1000, "s",
                 0.6 if warm else None)
        daemon.stop()
    configure(ours, "")  # the pool goes with the next start, before it is looked for what was left
