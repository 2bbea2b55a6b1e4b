#!/usr/bin/python3
"""make bench: our figures, with peers measured in the same run.

Prints a table (measured, target, verdict) and writes build/bench.json. Everything
that is started here is stopped here; nothing outside build/, /var/tmp and /dev/shm is touched
but cgroups of names of our own, and caches that are dropped. Exit status 1 when a target is missed.

    test/bench/bench.py [--quick] [--no-docker] [SECTION…]
"""

import argparse
import contextlib
import importlib
import json
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

from common import Book, memory_dir, paddock

# modules beside this one, each with measure(work, book, options, stack)
SECTIONS = ("foundation", "remember", "gate", "e2b", "mcp", "agentbox", "agents", "spend", "sdk_typescript", "sdk_python", "signer")
MODULES = {"signer": "bench_signer"}  # test/it has a module of that name


def clean_up(work, docker_cgroup):
    """What a killed peer may have left: mounts below our directory, cgroups of our name."""
    points = sorted((point for _, point, *_ in paddock.mountinfo() if point.startswith(str(work))), reverse=True)
    for point in points:
        subprocess.run(["umount", "-l", point], check=False)
    for mount in set(paddock.cgroup_mounts().values()):
        top = Path(mount) / docker_cgroup
        if top.is_dir():
            for directory, _, _ in os.walk(top, topdown=False):
                with contextlib.suppress(OSError):
                    os.rmdir(directory)
    shutil.rmtree(work, ignore_errors=True)
    shutil.rmtree(memory_dir(work), ignore_errors=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few rounds: to see that it works, not for figures")
    parser.add_argument("--no-docker", action="store_true", help="leave the slowest peer out")
    parser.add_argument("sections", nargs="*", metavar="SECTION", help=f"of {', '.join(SECTIONS)}; all of them")
    options = parser.parse_args()
    if unknown := set(options.sections) - set(SECTIONS):
        parser.error(f"no such section: {', '.join(unknown)}")
    if os.geteuid() != 0:
        raise SystemExit("run as root")
    book = Book()
    for name in options.sections or SECTIONS:
        work = Path(tempfile.mkdtemp(prefix="pdk-bench-", dir="/var/tmp"))
        try:
            with contextlib.ExitStack() as stack:
                importlib.import_module(MODULES.get(name, name)).measure(work, book, options, stack)
        finally:
            clean_up(work, f"paddock-bench-{os.getpid()}")
    book.show()
    out = paddock.ROOT / "build" / "bench.json"
    out.parent.mkdir(exist_ok=True)
    out.write_text(json.dumps({"quick": options.quick, "kernel": os.uname().release, "cpus": os.cpu_count(),
                               "when": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "figures": book.data}, indent=1) + "\n")
    if book.failed():
        raise SystemExit(f"missed: {', '.join(book.failed())}")


if __name__ == "__main__":
    main()
