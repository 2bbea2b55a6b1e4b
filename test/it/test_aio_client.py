"""PyPI's agent-sandbox, unmodified, synchronous and asynchronous, against a real sandbox: aio/program.py."""

import fcntl
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent / "aio"
HOME = HERE.parents[2] / "build" / "aio-client"


@pytest.fixture(scope="module")
def python():
    """A Python with the packages of requirements.txt and no others, made once, by one of the test processes."""
    wanted = (HERE / "requirements.txt").read_bytes()
    HOME.parent.mkdir(exist_ok=True)
    with HOME.with_suffix(".lock").open("w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        stamp = HOME / "installed"
        if not stamp.exists() or stamp.read_bytes() != wanted:
            shutil.rmtree(HOME, ignore_errors=True)
            subprocess.run([sys.executable, "-m", "venv", HOME], check=True, timeout=120)
            subprocess.run([HOME / "bin" / "pip", "install", "--quiet", "--disable-pip-version-check", "--require-hashes", "--no-deps",
                            "--only-binary", ":all:", "-r", HERE / "requirements.txt"], check=True, timeout=300)
            stamp.write_bytes(wanted)
    return HOME / "bin" / "python"


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_the_published_client(python, make_box, daemon, kind):
    box = make_box()
    done = subprocess.run([python, HERE / "program.py", kind, f"{daemon.url}/sandbox/{box.id}", daemon.key],
                          capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and done.stdout == "done\n", done.stderr
