"""src/eth against ethers: thousands of random questions, the same answers."""

import subprocess
from pathlib import Path

import npm
import pytest

HERE = Path(__file__).parent / "eth"
PROGRAM = Path(__file__).resolve().parents[2] / "build/release/test/unit/eth/eth_answers"


@pytest.mark.parametrize("seed", [1, 2])
def test_answers_are_those_of_ethers(seed):
    home = npm.install(HERE, "eth")
    done = subprocess.run(["node", HERE / "oracle.mjs", home, PROGRAM, str(seed)], capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stdout + done.stderr
