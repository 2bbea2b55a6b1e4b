"""`make check` finds what it says that it finds: each check with a planted fault, in a copy of the tree."""

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
}
EXPECTED = {
    "format": ["src/base/planted.c"],
    "layers": ["base may not include loop.h of os"],
    "names": ["no file src/base/nosuch.c", "no command `paddock frobnicate`", "no setting data.nosuch"],
    "duplicates": ["src/base/planted.c", "src/base/buf.c"],
}


@pytest.mark.parametrize("check", PLANTED)
def test_a_planted_fault_is_found(tree, check):
    before, _ = findings(tree, check)
    name, content = PLANTED[check]
    place = tree / name
    try:
        place.write_text(content if content is not None else (tree / "src/base/buf.c").read_text())
        code, out = findings(tree, check)
    finally:
        place.unlink()
    assert before == 0
    assert code == 1
    for words in EXPECTED[check]:
        assert words in out
