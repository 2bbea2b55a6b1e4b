"""E2B's own clients, unmodified, each version against one real daemon.

run.js does the scenarios and prints how each ended; here every pair of version and
scenario is a test. npm installs the clients into build/compat from the lock file.
"""

import json
import subprocess
from pathlib import Path

import pytest

import clients

HERE = Path(__file__).resolve().parent
PACKAGES = [*(name for name in json.loads((HERE / "package.json").read_text())["dependencies"])]
DOMAIN = "boxes.example"


def scenarios(package):
    return subprocess.run(["node", HERE / "run.js", "--list", package], capture_output=True, text=True, check=True,
                          timeout=30).stdout.splitlines()


@pytest.fixture(scope="session")
def modules():
    return clients.install()


@pytest.fixture(scope="session")
def e2b_daemon(daemon_factory):
    it = daemon_factory("e2b", environment={"PADDOCK_PORTS_DOMAIN": DOMAIN}).start()
    yield it
    it.finish()


@pytest.fixture(scope="session")
def outcomes(modules, e2b_daemon):
    """{package: {scenario: what became of it}}, made when it is asked for."""
    made = {}

    def of(package):
        if package not in made:
            env = clients.environment(e2b_daemon, modules, E2B_DOMAIN=DOMAIN)
            done = subprocess.run(["node", HERE / "run.js", package], env=env, capture_output=True, text=True, timeout=140)
            made[package] = {line["scenario"]: line for line in map(json.loads, done.stdout.splitlines())}
            made[package][None] = f"exit status {done.returncode}\n{done.stderr[-2000:]}"
        return made[package]

    return of


@pytest.mark.parametrize("package, scenario", [(package, name) for package in PACKAGES for name in scenarios(package)])
def test_scenario(outcomes, package, scenario):
    outcome = outcomes(package).get(scenario)
    assert outcome, f"it did not run: {outcomes(package)[None]}"
    assert outcome["ok"], outcome["error"]


def test_the_lock_names_no_host():
    """Where packages come from is the machine's business."""
    text = (HERE / "package-lock.json").read_text()
    assert '"resolved"' not in text
    assert all("integrity" in entry or not path for path, entry in json.loads(text)["packages"].items())
