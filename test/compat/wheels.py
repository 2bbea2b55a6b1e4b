"""Python packages for the tests: each file of python/*.txt is one set, with hashes, installed once below build/."""

import fcntl
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
BUILD = HERE.parents[1] / "build"


def sets():
    """"e2b-2.63.0" and so on."""
    return sorted((path.stem for path in (HERE / "python").glob("*.txt")), key=lambda name: [int(n) for n in name.rpartition("-")[2].split(".")])


def install(name, where=HERE / "python", into="compat-python"):
    """A directory for PYTHONPATH."""
    lock = (where / f"{name}.txt").read_bytes()
    home = BUILD / into / name
    home.parent.mkdir(parents=True, exist_ok=True)
    with (home.parent / f"{name}.lock").open("w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        stamp = home / "installed"
        if not stamp.exists() or stamp.read_bytes() != lock:
            shutil.rmtree(home, ignore_errors=True)
            done = subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--require-hashes",
                                   "--only-binary", ":all:", "--target", home, "-r", where / f"{name}.txt"],
                                  capture_output=True, text=True, timeout=600)
            assert done.returncode == 0, done.stderr
            stamp.write_bytes(lock)
    return home
