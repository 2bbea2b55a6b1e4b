"""Packages from the npm registry for the tests, as a package-lock.json beside them names them."""

import shutil
import subprocess
from pathlib import Path

BUILD = Path(__file__).resolve().parents[2] / "build"


def install(source, name):
    """A directory below build/ with node_modules: these packages and no others, installed once."""
    home, lock = BUILD / name, (source / "package-lock.json").read_bytes()
    stamp = home / "installed"
    if not stamp.exists() or stamp.read_bytes() != lock:
        shutil.rmtree(home, ignore_errors=True)
        home.mkdir(parents=True)
        for file in ("package.json", "package-lock.json"):
            shutil.copy(source / file, home)
        done = subprocess.run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"], cwd=home, capture_output=True,
                              text=True, timeout=140)
        assert done.returncode == 0, done.stderr
        stamp.write_bytes(lock)
    return home
