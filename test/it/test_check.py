"""`make check` finds what it says that it finds: each check with a planted fault, in a copy of the tree."""

import importlib.machinery
import importlib.util
import json
import shutil
import subprocess

import pytest
from paddock import BIN, ROOT


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """A copy of what git knows, as a repository of its own, with the programs that are built."""
    top = tmp_path_factory.mktemp("tree")
    names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True,
                           capture_output=True).stdout.split(b"\0")
    for name in filter(None, names):
        name = name.decode()
        if (ROOT / name).exists():
            (top / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, top / name)
    (top / "build").mkdir()
    (top / "build/bin").symlink_to(BIN)
    for command in (["init", "-q"], ["add", "-A"]):
        subprocess.run(["git", *command], cwd=top, check=True)
    return top


def findings(tree, check):
    done = subprocess.run([tree / "scripts/check", check], check=False, capture_output=True, text=True)
    return done.returncode, done.stdout


PLANTED = {
    "format": ("src/base/planted.c", "int  planted(void){return 1;}\n"),
    "layers": ("src/base/planted.h", '#include "loop.h"\n'),
    "names": ("docs/planted.md", "See `src/base/nosuch.c`, run `paddock frobnicate`, set `data.nosuch`.\n"),
    "duplicates": ("src/base/planted.c", None),
    "mutants": ("test/mutants/list.txt", "[gone] what is planted stands nowhere\nfile src/base/buf.c\ntest unit:buf\n- no_such_line();\n+ ;\n"),
}
EXPECTED = {
    "format": ["src/base/planted.c"],
    "layers": ["base may not include loop.h of os"],
    "names": ["no file src/base/nosuch.c", "no command `paddock frobnicate`", "no setting data.nosuch"],
    "duplicates": ["src/base/planted.c", "src/base/buf.c"],
    "mutants": ["gone: src/base/buf.c has 'no_such_line();' 0 times"],
}


@pytest.mark.parametrize("check", PLANTED)
def test_a_planted_fault_is_found(tree, check):
    before, _ = findings(tree, check)
    name, content = PLANTED[check]
    place = tree / name
    was = place.read_bytes() if place.exists() else None
    try:
        place.write_text(content if content is not None else (tree / "src/base/buf.c").read_text())
        code, out = findings(tree, check)
    finally:
        place.unlink()
        if was is not None:
            place.write_bytes(was)
    assert before == 0
    assert code == 1
    for words in EXPECTED[check]:
        assert words in out


# What each file of the planted pair is said to have: nothing of `planted_used`, which the other file calls, and of
# `planted_tested`, which its own file uses and a test calls.
PLANTED_H = "int planted_used(void), planted_own(void), planted_tested(void), planted_for_tests(void), planted_dead(void), planted_kept(void);\n"
PLANTED_C = """#include "planted.h"
int planted_used(void) { return planted_own() + planted_tested(); }
int planted_own(void) { return 1; }
int planted_tested(void) { return 2; }
int planted_for_tests(void) { return 3; }
int planted_dead(void) { return 4; } /* planted_dead in a comment is no use of it */
int planted_kept(void) { return 5; }
"""
USER_C = "#include \"planted.h\"\nint main(void) { return planted_used(); }\n"


def test_what_is_exported_for_nothing_is_found(tmp_path):
    """scripts/check-exports on a tree of two files, compiled here."""
    for name, content in {"src/planted.h": PLANTED_H, "src/planted.c": PLANTED_C, "src/user.c": USER_C, "test/test_planted.c": "planted_tested(), planted_for_tests()",
                          "src/exports.txt": "planted_kept a reason\nplanted_used is used\nplanted_own\n"}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(content)
    build = tmp_path / "build/release"
    (build / "src").mkdir(parents=True)
    (tmp_path / "scripts").mkdir()
    shutil.copy2(ROOT / "scripts/check-exports", tmp_path / "scripts")
    commands = []
    for name in ("planted", "user"):
        subprocess.run(["gcc", "-O2", "-c", f"../../src/{name}.c", "-o", f"src/{name}.o"], cwd=build, check=True)
        commands.append({"directory": str(build), "file": f"../../src/{name}.c", "output": f"src/{name}.o"})
    (build / "compile_commands.json").write_text(json.dumps(commands))

    def found():
        done = subprocess.run([tmp_path / "scripts/check-exports"], check=False, capture_output=True, text=True)
        assert done.returncode == (1 if done.stdout else 0) and not done.stderr, done
        return done.stdout.splitlines()

    assert found() == ["src/planted.c: nothing uses planted_dead", "src/planted.c: only tests use planted_for_tests",
                       "src/exports.txt: planted_own needs a reason", "src/exports.txt: planted_used needs no exception any more"]
    (tmp_path / "src/exports.txt").write_text("planted_kept a reason\n")
    assert found()[2:] == ["src/planted.c: planted_own is used in this file only: make it static"]
    (build / "src/user.o").unlink()
    assert "most objects are missing" in found()[0]


def test_lanes():
    """scripts/test runs every file in exactly one lane, and the lanes take about as long as each other."""
    loader = importlib.machinery.SourceFileLoader("scripts_test", str(ROOT / "scripts/test"))
    script = importlib.util.module_from_spec(importlib.util.spec_from_loader("scripts_test", loader))
    loader.exec_module(script)
    names, seconds = script.units(), script.measured()
    assert not set(seconds) - set(names), "test/seconds.txt has what there is no more"
    made = script.lanes([*names, "test/it/test_of_tomorrow.py"], seconds)
    assert len(made) == 3 and sorted(sum(made, [])) == sorted([*names, "test/it/test_of_tomorrow.py"])
    assert {len(set(lane) & set(script.DAEMON_SUITES)) for lane in made} == {0, len(script.DAEMON_SUITES) - 1}
    loads = [sum(seconds.get(name, script.NEW) for name in lane) for lane in made]
    assert max(loads) < 1.1 * sum(loads) / 3, loads
    assert script.lanes(names, {})  # without a measurement
