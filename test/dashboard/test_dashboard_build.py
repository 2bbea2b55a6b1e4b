"""How the pages get into the api program (scripts/dashboard): committed pages that are those of the sources, and a build without npm."""

import re
import shutil
import subprocess

import paddock
import pytest

ROOT = paddock.ROOT
PYTHON = "/usr/bin/python3"


def dashboard(*args, root=ROOT, path=None):
    env = {"PATH": path} if path else None
    return subprocess.run([PYTHON, root / "scripts" / "dashboard", *args], capture_output=True, text=True, env=env, timeout=300 * paddock.SLOW, check=False)


@pytest.fixture
def tree(tmp_path):
    """A copy of what scripts/dashboard reads, and a PATH without npm."""
    (tmp_path / "scripts").mkdir()
    (tmp_path / "empty").mkdir()
    shutil.copy(ROOT / "scripts" / "dashboard", tmp_path / "scripts")
    shutil.copytree(ROOT / "dashboard", tmp_path / "dashboard", ignore=shutil.ignore_patterns("node_modules", "dist"))
    return tmp_path


def without_npm(tree):
    return dashboard(tree / "out.c", root=tree, path=str(tree / "empty"))


def test_committed_pages_are_those_of_the_sources():
    done = dashboard("--check")
    assert done.returncode == 0, done.stderr


def test_builds_without_npm(tree):
    done = without_npm(tree)
    assert done.returncode == 0, done.stderr
    text = (tree / "out.c").read_text()
    assert '{ "/", "text/html; charset=utf-8"' in text and not (tree / "build").exists()


def test_changed_source_without_npm_is_refused(tree):
    with (tree / "dashboard" / "src" / "main.tsx").open("a") as f:
        f.write("// changed\n")
    done = without_npm(tree)
    assert done.returncode != 0 and not (tree / "out.c").exists()
    assert "apt-get install nodejs npm" in done.stderr and "make dashboard" in done.stderr


def test_new_source_counts_as_a_change(tree):
    (tree / "dashboard" / "src" / "new.ts").write_text("export {};\n")
    assert "npm is not installed" in without_npm(tree).stderr


def test_pages_that_the_manifest_does_not_describe_are_refused(tree):
    manifest = tree / "dashboard" / "built" / "MANIFEST"
    manifest.write_text(re.sub(r"^[0-9a-f]{64} ", "0" * 64 + " ", manifest.read_text(), count=1, flags=re.M))
    done = without_npm(tree)
    assert done.returncode != 0 and "is not what dashboard/built/MANIFEST says" in done.stderr


def test_build_asks_for_no_npm():
    wanted = re.search(r"^build='(.*?)'", (ROOT / "scripts" / "deps").read_text(), re.M | re.S)[1].split()
    assert not {"nodejs", "npm"} & set(wanted) and "gcc" in wanted


def test_lock_file_names_no_registry():
    text = (ROOT / "dashboard" / "package-lock.json").read_text()
    assert '"resolved"' not in text and text.count('"integrity"') > 10


def test_types():
    """The sources of the dashboard are strict TypeScript without an error."""
    assert dashboard("--check").returncode == 0  # node_modules is there afterwards
    home = ROOT / "build" / "dashboard"
    done = subprocess.run(["node", home / "node_modules" / "typescript" / "bin" / "tsc", "--noEmit", "-p", home], capture_output=True, text=True, timeout=300 * paddock.SLOW, check=False)
    assert done.returncode == 0, done.stdout
