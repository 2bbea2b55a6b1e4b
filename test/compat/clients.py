"""The clients of E2B that package-lock.json names, installed once into build/compat."""

import os
import shutil
import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent
HOME = HERE.parents[1] / "build" / "compat"


def install():
    """The directory with node_modules, with these packages and no others."""
    lock = (HERE / "package-lock.json").read_bytes()
    stamp = HOME / "installed"
    if not stamp.exists() or stamp.read_bytes() != lock:
        shutil.rmtree(HOME, ignore_errors=True)
        HOME.mkdir(parents=True)
        for name in ("package.json", "package-lock.json"):
            shutil.copy(HERE / name, HOME)
        done = subprocess.run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"], cwd=HOME, capture_output=True,
                              text=True, timeout=140)
        assert done.returncode == 0, done.stderr
        stamp.write_bytes(lock)
    return HOME


def environment(daemon, modules, **more):
    """What points a client at a daemon."""
    url = f"http://{daemon.host}:{daemon.port}"
    return {**os.environ, "E2B_API_URL": url, "E2B_SANDBOX_URL": url, "E2B_VOLUME_API_URL": url,
            "E2B_API_KEY": daemon.key.replace("pdk_", "e2b_", 1),
            "COMPAT_MODULES": str(modules), **more}
