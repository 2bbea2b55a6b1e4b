"""Packages from the npm registry for the tests, as a package-lock.json beside them names them."""

import fcntl
import shutil
import subprocess
from pathlib import Path

BUILD = Path(__file__).resolve().parents[2] / "build"


def install(source, name):
    """A directory below build/ with node_modules: these packages and no others, installed once, by one of the test processes."""
    home, lock = BUILD / name, (source / "package-lock.json").read_bytes()
    BUILD.mkdir(exist_ok=True)
    with (BUILD / f"{name}.lock").open("w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        stamp = home / "installed"
        if not stamp.exists() or stamp.read_bytes() != lock:
            fill(source, home)
            stamp.write_bytes(lock)
    return home


def fill(source, home):
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir()
    for file in ("package.json", "package-lock.json"):
        shutil.copy(source / file, home)
    done = subprocess.run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"], cwd=home, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr
