"""Agents, approvals, transactions and wallets of the dashboard in Chromium: one walk (money.mjs), of which each step is a test.

The daemon is real, the chain is anvil, the agent is the one of test/it/agents and asks from inside its sandbox, the wallet elsewhere is
WalletKit with the relay of test/it/walletconnect."""

import json
import re
import subprocess
from pathlib import Path

import npm
import paddock
import pytest
from test_agents import RICH, Agent, manifest, pack
from walletconnect_kit import CHAIN, FIRST, KEYS, PROJECT, anvil, daemon, modules, relay  # noqa: F401 - fixtures

HERE = Path(__file__).resolve().parent
STEPS = re.findall(r'^  async "([^"]+)"\(\)', (HERE / "money.mjs").read_text(), re.M)
EVIL = "<img src=x onerror=window.pwned=1>"


class Steps(dict):
    said = ""


@pytest.fixture(scope="module")
def walk(daemon, anvil, modules, relay):  # noqa: F811
    """{step: {ms, error}} of one run of the walk."""
    api = daemon.client()
    asked = manifest(description=f"Says hello. {EVIL}", spending_limits={"per_transaction": "1.0", "daily": "3.0", "weekly": "5.0", "monthly": "20.0"})
    made = api.post("/v1/agents", {"manifest": asked, "consent": True, "name": "payer"})
    assert made.status == 201, made
    agent = Agent(api, made.json())
    assert agent.upload(pack("index.js", "sdk.js", "run.js")).status == 202
    agent.wait("stopped")
    agent.do("start")
    agent.until_logged("hello by the API")
    home = npm.install(HERE, "dashboard-test")
    world = {"modules": str(home / "node_modules"), "url": daemon.url, "key": daemon.key, "shots": str(paddock.ROOT / "build" / "dashboard-shots"),
             "agent": agent.id, "chain": CHAIN, "address": RICH, "paddock": str(paddock.ROOT / "build" / "bin" / "paddock"), "run_dir": str(daemon.run_dir), "node": f"http://127.0.0.1:{anvil.port}/", "wallets": str(modules),
             "phone": {"relay": relay.url, "project": PROJECT, "rpc": f"http://127.0.0.1:{anvil.port}", "key": KEYS[FIRST], "chain": CHAIN}}
    done = subprocess.run(["node", HERE / "money.mjs", json.dumps(world)], capture_output=True, text=True, timeout=400 * paddock.SLOW, check=False)
    (paddock.ROOT / "build" / "dashboard-money.jsonl").write_text(done.stdout)
    if api.get(agent.path).status == 200:
        paddock.until(lambda: agent.remove().status in (204, 404), "the agent is removed")
    found = Steps({step["name"]: step for step in map(json.loads, done.stdout.splitlines())})
    found.said = done.stderr[-3000:]
    assert found, found.said
    return found


@pytest.mark.parametrize("step", STEPS)
def test_step(walk, step):
    assert step in walk, f"the walk ended before it: {list(walk)[-1]}: {walk.said}"
    assert not walk[step]["error"], walk[step]["error"]
