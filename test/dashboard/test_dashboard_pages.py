"""The dashboard in Debian's Chromium, against a real daemon: one walk through all of it (walk.mjs), of which each step is a test."""

import json
import re
import subprocess
from pathlib import Path

import npm
import paddock
import pytest

HERE = Path(__file__).resolve().parent
STEPS = re.findall(r'^  async "([^"]+)"\(\)', (HERE / "walk.mjs").read_text(), re.M)


@pytest.fixture(scope="module")
def walk(daemon_factory):
    """{step: {ms, error}} of one run of the walk."""
    daemon = daemon_factory("dash").start()
    home = npm.install(HERE, "dashboard-test")
    done = subprocess.run(["node", HERE / "walk.mjs", home / "node_modules", daemon.url, daemon.key, paddock.ROOT / "build" / "dashboard-shots"],
                          capture_output=True, text=True, timeout=400 * paddock.SLOW, check=False)
    (paddock.ROOT / "build" / "dashboard-walk.jsonl").write_text(done.stdout)
    for box in daemon.client().list():
        daemon.saw(box["id"])
    daemon.delete_all()
    found = {step["name"]: step for step in map(json.loads, done.stdout.splitlines())}
    assert found, done.stderr[-3000:]
    yield found
    daemon.finish()


@pytest.mark.parametrize("step", STEPS)
def test_step(walk, step):
    assert step in walk, f"the walk ended before it: {list(walk)[-1]}"
    assert not walk[step]["error"], walk[step]["error"]
