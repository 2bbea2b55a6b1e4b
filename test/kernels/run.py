#!/usr/bin/python3
"""Tests on other kernels: `run.py smoke`, `run.py all`, or `run.py GUEST…` (`--tests` for a choice of your own).

`make test` runs the smoke, `make test-kernels` all. What they are is in guests.py. A line
for each file as soon as it is done; the last line counts.
"""

import argparse
import subprocess
import sys
import xml.etree.ElementTree as xml
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import machine  # noqa: E402
import rootfs  # noqa: E402
from guests import GUESTS, SELECTION, SMOKE  # noqa: E402


def known(tests):
    """Whether pytest finds all of them, asked on this machine: a test that was renamed is not left out in silence."""
    done = subprocess.run(["/usr/bin/python3", "-m", "pytest", "-q", "--collect-only", "-p", "no:cacheprovider", *sum(tests, [])],
                          cwd=machine.ROOT, capture_output=True, text=True)
    if done.returncode:
        print("\n".join(done.stdout.splitlines()[-10:] + done.stderr.splitlines()[-10:]))
    return done.returncode == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("guests", nargs="+", metavar="GUEST", help="smoke, all, or of: " + ", ".join(GUESTS))
    parser.add_argument("--tests", nargs="+", help="files or test ids instead of the selection")
    parser.add_argument("--timeout", type=int, default=7200)
    options = parser.parse_args()
    smoke = options.guests == ["smoke"]
    names = ["debian12"] if smoke else list(GUESTS) if options.guests == ["all"] else options.guests
    unknown = [name for name in names if name not in GUESTS]
    if unknown:
        parser.error(f"no guest named {', '.join(unknown)}")
    tests = [[test] for test in options.tests] if options.tests else SMOKE if smoke else SELECTION
    if not known(tests + SELECTION):
        return 1
    total, broken = 0, 0
    for name in names:
        try:
            report, why, took = machine.run(GUESTS[name], tests, options.timeout, "smoke" if smoke else name)
        except rootfs.Unavailable as error:
            report, why, took = None, str(error), 0
        if why:
            print(why)
        if not report:
            broken += 1
            continue
        passed, failed, skipped = machine.count(xml.parse(report).getroot())
        for test in failed:
            print(f"FAILED {name}: {test}")
        print(f"{name}: {passed} passed, {len(failed)} failed, {skipped} skipped in {took:.0f} s", flush=True)
        total, broken = total + passed, broken + len(failed)
    print(f"{total} passed, {broken} failed")
    return 0 if total and not broken else 1


if __name__ == "__main__":
    sys.exit(main())
