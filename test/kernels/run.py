#!/usr/bin/python3
"""Tests on other kernels: `run.py smoke`, `run.py all`, or `run.py GUEST…` (`--tests` for a choice of your own).

`make test` runs the smoke, `make test-kernels` all. The last line counts.
"""

import argparse
import sys
import xml.etree.ElementTree as xml
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import machine  # noqa: E402
import rootfs  # noqa: E402
from guests import GUESTS  # noqa: E402

SMOKE = ["test/kernels/test_smoke.py", "test/kernels/test_machine.py"]
SELECTION = [
    *SMOKE, "test/kernels/test_unit.py", "test/kernels/test_groups.py",
    *(f"test/it/test_{name}.py" for name in (
        "posture_inside", "posture_outside", "bombs", "lifecycle", "snapshots", "restart", "gate", "gate_nft", "disk", "create_cost")),
    "test/escape",
]


def count(report):
    passed, failed, skipped = 0, [], 0
    for case in xml.parse(report).getroot().iter("testcase"):
        if case.find("failure") is not None or case.find("error") is not None:
            failed.append(f"{case.get('classname')}.{case.get('name')}")
        elif case.find("skipped") is not None:
            skipped += 1
        else:
            passed += 1
    return passed, failed, skipped


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("guests", nargs="+", metavar="GUEST", help="smoke, all, or of: " + ", ".join(GUESTS))
    parser.add_argument("--tests", nargs="+", help="files or test ids instead of the selection")
    parser.add_argument("--timeout", type=int, default=7200)
    options = parser.parse_args()
    if options.guests == ["smoke"]:
        chosen, tests = [GUESTS["debian12"]], SMOKE
    else:
        names = list(GUESTS) if options.guests == ["all"] else options.guests
        unknown = [name for name in names if name not in GUESTS]
        if unknown:
            parser.error(f"no guest named {', '.join(unknown)}")
        chosen, tests = [GUESTS[name] for name in names], SELECTION
    tests = options.tests or tests
    total, broken = 0, 0
    for guest in chosen:
        try:
            report, why, took = machine.run(guest, tests, options.timeout)
        except rootfs.Unavailable as error:
            report, why, took = None, str(error), 0
        if not report:
            print(why)
            broken += 1
            continue
        passed, failed, skipped = count(report)
        for name in failed:
            print(f"FAILED {guest.name}: {name}")
        print(f"{guest.name}: {passed} passed, {len(failed)} failed, {skipped} skipped in {took:.0f} s", flush=True)
        total, broken = total + passed, broken + len(failed)
    print(f"{total} passed, {broken} failed")
    return 0 if total and not broken else 1


if __name__ == "__main__":
    sys.exit(main())
