"""E2B's own clients, unmodified, each version against one real daemon.

run.js does the scenarios and prints how each ended; here every pair of version and
scenario is a test. npm installs the clients into build/compat from the lock file.
"""

import json
import subprocess
from concurrent.futures import ThreadPoolExecutor
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
def outcomes(request, modules, e2b_daemon):
    """What became of the scenarios of a package: {name: line}. Two packages at a time, as they wait a lot."""
    env = clients.environment(e2b_daemon, modules, E2B_DOMAIN=DOMAIN)

    def run(package):
        done = subprocess.run(["node", HERE / "run.js", package], env=env, capture_output=True, text=True, timeout=140)
        lines = {line["scenario"]: line for line in map(json.loads, done.stdout.splitlines())}
        return {**lines, None: f"exit status {done.returncode}\n{done.stderr[-2000:]}"}

    asked = [item.callspec.params for item in request.session.items if hasattr(item, "callspec")]
    with ThreadPoolExecutor(2) as pool:
        begun = {package: pool.submit(run, package) for package in dict.fromkeys(one["package"] for one in asked if "package" in one)}
        yield lambda package: begun[package].result()


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
