#!/usr/bin/python3
"""Plants small bugs, one at a time, and says which of them the tests do not find.

    test/mutants/run.py              all of the list
    test/mutants/run.py NAME …       some
    test/mutants/run.py --check      only whether each fits the sources, in a second
    test/mutants/run.py --compile    … and whether it compiles

The list is list.txt beside this file. Every bug that was fixed should leave one there: what it looked like, and the
test that finds it. A block is

    [name] what goes wrong
    file PATH
    test unit:NAME | it:FILE.py::TEST | escape:FILE.py::TEST [more of them]
    - a line, or a part of one, that is in the file exactly once
    + what stands there instead

The sources are copied to build/mutants and built there; the tree itself is not touched. Every named test must pass
without a bug: that is looked at first, once for each test. As root.

Some bugs take away a wall between boxes and this machine. The tests run in namespaces of their own for what such a
box could change of the machine for good: its name.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LIST = Path(__file__).with_name("list.txt")
# Two runs at a time need two of them.
COPY = Path(os.environ.get("PADDOCK_MUTANTS", ROOT / "build" / "mutants")) / "tree"
BUILD = COPY / "build" / "release"
BIN = COPY / "build" / "bin"
TIMEOUT_S = 300
GOAL = 0.95


class Mutant:
    def __init__(self, block):
        lines = block.splitlines()
        self.name, self.what = re.fullmatch(r"\[([\w-]+)\] (.+)", lines[0]).groups()
        self.file = self.tests = None
        old, new = [], []
        for line in lines[1:]:
            word, _, rest = line.partition(" ")
            if word == "file":
                self.file = rest
            elif word == "test":
                self.tests = rest.split()
            elif word in "-+":
                (old if word == "-" else new).append(rest)
            else:
                raise SystemExit(f"{self.name}: {line!r} is none of file, test, -, +")
        self.old, self.new = "\n".join(old), "\n".join(new)
        if not self.file or not self.tests or not self.old or self.old == self.new:
            raise SystemExit(f"{self.name}: it needs a file, a test, and a change")

    def check(self):
        """Why it does not fit, or None."""
        path = ROOT / self.file
        if not path.exists():
            return f"there is no {self.file}"
        count = path.read_text().count(self.old)
        if count != 1:
            return f"{self.file} has {self.old!r} {count} times"
        for test in self.tests:
            kind, _, name = test.partition(":")
            if kind != "unit" and not (ROOT / "test" / kind / name.partition("::")[0]).exists():
                return f"there is no test {name}"
        return None

    def plant(self):
        path = COPY / self.file
        path.write_text(path.read_text().replace(self.old, self.new))

    def revert(self):
        path = COPY / self.file
        path.write_text((ROOT / self.file).read_text())  # with a new time: ninja must see it


def read_list():
    text = re.sub(r"(?m)^#.*\n", "", LIST.read_text())
    mutants = [Mutant(block) for block in re.split(r"\n\s*\n", text.strip())]
    names = [m.name for m in mutants]
    assert len(set(names)) == len(names), "two of one name"
    return mutants


def copy_sources():
    COPY.mkdir(parents=True, exist_ok=True)
    names = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "-z"], cwd=ROOT, check=True, capture_output=True).stdout
    for name in filter(None, names.decode().split("\0")):
        source, target = ROOT / name, COPY / name
        if source.is_file() and not (target.exists() and target.read_bytes() == source.read_bytes()):
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target)
    if not (BUILD / "build.ninja").exists():
        # Not -Werror: a bug may leave a variable unused.
        subprocess.run(["/usr/bin/meson", "setup", str(BUILD), "-Dbuildtype=release", "-Dtests=enabled"], cwd=COPY, check=True,
                       stdout=subprocess.DEVNULL, env={**os.environ, "CC": os.environ.get("CC", "gcc")})


def programs():
    return re.search(r"(?m)^PROGRAMS := (.*)$", (ROOT / "Makefile").read_text())[1].split()


def build(tests):
    """Whether it could be built."""
    targets = [f"test/unit/test_{test[5:]}" for test in tests if test.startswith("unit:")]
    daemon = any(not test.startswith("unit:") for test in tests)
    result = subprocess.run(["ninja", "-C", str(BUILD), *targets, *(programs() if daemon else ())], capture_output=True, text=True)
    if result.returncode:
        print(result.stdout[-2000:])
        return False
    if daemon:
        BIN.mkdir(parents=True, exist_ok=True)
        for program in programs():
            target = BIN / Path(program).name
            target.unlink(missing_ok=True)
            shutil.copy(BUILD / program, target)
    return True


def passes(test):
    kind, _, name = test.partition(":")
    if kind == "unit":
        command, where = [str(BUILD / "test" / "unit" / f"test_{name}")], COPY
    else:
        command, where = ["/usr/bin/python3", "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", f"test/{kind}/{name}"], ROOT
    command = ["unshare", "--uts", *command]
    try:
        result = subprocess.run(command, cwd=where, capture_output=True, timeout=TIMEOUT_S, env={**os.environ, "PADDOCK_BIN": str(BIN)})
    except subprocess.TimeoutExpired:
        return False
    return result.returncode == 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--sound", action="store_true", help="the tests are known to pass without a bug")
    options = parser.parse_args()
    mutants = [m for m in read_list() if not options.names or m.name in options.names]
    if options.names and len(mutants) != len(set(options.names)):
        parser.error("no such mutant: " + " ".join(set(options.names) - {m.name for m in mutants}))
    bad = [(m.name, m.check()) for m in mutants if m.check()]
    for name, why in bad:
        print(f"{name}: {why}")
    if bad or options.check:
        print(f"{len(mutants) - len(bad)} of {len(mutants)} fit")
        return bool(bad)
    copy_sources()
    tests = sorted({test for m in mutants for test in m.tests})
    if not build(tests):
        return 1
    broken = [] if options.sound or options.compile else [test for test in tests if not passes(test)]
    if broken:
        print("these fail without a bug: " + " ".join(broken))
        return 1
    survived, invalid = [], []
    for m in mutants:
        began = time.monotonic()
        m.plant()
        try:
            if not build(m.tests):
                invalid.append(m.name)
                outcome = "does not compile"
            elif options.compile:
                outcome = "compiles"
            elif all(passes(test) for test in m.tests):
                survived.append(m)
                outcome = "SURVIVED"
            else:
                outcome = "found"
        finally:
            m.revert()
        print(f"{outcome:10} {m.name} ({time.monotonic() - began:.0f} s)", flush=True)
    ran = len(mutants) - len(invalid)
    if options.compile:
        print(f"{ran} of {len(mutants)} compile")
        return bool(invalid)
    found = ran - len(survived)
    for m in survived:
        print(f"not found: {m.name}: {m.what} ({m.file}; {' '.join(m.tests)})")
    print(f"{found} of {ran} found" + (f", {len(invalid)} do not compile" if invalid else ""))
    return bool(invalid) or found < GOAL * ran


if __name__ == "__main__":
    sys.exit(main())
