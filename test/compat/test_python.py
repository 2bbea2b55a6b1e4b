"""E2B's own package for Python, unmodified, each version against one real daemon, synchronous and asynchronous.

run.py does the scenarios and prints how each ended; here every one of them is a test. The packages come from the
machine's own index, as python/*.txt names them with their hashes.
"""

import json
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import clients
import wheels
from test_compat import DOMAIN

HERE = Path(__file__).resolve().parent
RUNS = [(mode, name.rpartition("-")[2]) for name in wheels.sets() if name.startswith("e2b-2") for mode in ("sync", "async")]


def scenarios(mode, version):
    return subprocess.run([sys.executable, HERE / "run.py", "--list", mode, version], capture_output=True, text=True, check=True,
                          timeout=30).stdout.splitlines()


@pytest.fixture(scope="session")
def python_daemon(daemon_factory):
    it = daemon_factory("e2bpy", environment={"PADDOCK_PORTS_DOMAIN": DOMAIN}).start()
    yield it
    it.finish()


@pytest.fixture(scope="session")
def python_outcomes(request, python_daemon):
    """What became of the scenarios of a run: {name: line}. Some runs at a time, as they wait a lot."""
    def run(mode, version):
        path = wheels.install(f"e2b-{version}")
        env = clients.environment(python_daemon, "", E2B_DOMAIN=DOMAIN, PYTHONPATH=str(path), PYTHONDONTWRITEBYTECODE="1")
        done = subprocess.run([sys.executable, HERE / "run.py", mode, version], env=env, capture_output=True, text=True, timeout=400)
        lines = {line["scenario"]: line for line in map(json.loads, done.stdout.splitlines())}
        return {**lines, None: f"exit status {done.returncode}\n{done.stderr[-2000:]}"}

    asked = [item.callspec.params for item in request.session.items if hasattr(item, "callspec")]
    wanted = dict.fromkeys((one["mode"], one["version"]) for one in asked if "mode" in one)
    with ThreadPoolExecutor(3) as pool:
        begun = {pair: pool.submit(run, *pair) for pair in wanted}
        yield lambda *pair: begun[pair].result()


@pytest.mark.parametrize("mode, version, scenario", [(mode, version, name) for mode, version in RUNS for name in scenarios(mode, version)])
def test_python(python_outcomes, mode, version, scenario):
    outcome = python_outcomes(mode, version).get(scenario)
    assert outcome, f"it did not run: {python_outcomes(mode, version)[None]}"
    assert outcome["ok"], outcome["error"]


def test_the_sets_are_pinned_and_name_no_host():
    """Where packages come from is the machine's business; what they are is ours."""
    assert len(RUNS) >= 8
    for name in wheels.sets():
        text = (HERE / "python" / f"{name}.txt").read_text()
        assert "://" not in text and "index" not in text
        entries = re.split(r"\n(?=\S)", text.strip())
        assert all(re.match(r"[\w.-]+==[\w.]+ \\\n\s+--hash=sha256:[0-9a-f]{64}", entry) for entry in entries), name

