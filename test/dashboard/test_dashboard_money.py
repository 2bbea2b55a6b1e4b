"""Agents, approvals, transactions and wallets of the dashboard in Chromium: one walk (money.mjs), of which each step is a test.

The daemon is real, the chain is anvil behind a node that can be told to do less, the agent is the one of test/it/agents and asks from inside
its sandbox, the wallet elsewhere is WalletKit with the relay of test/it/walletconnect."""

import json
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import npm
import paddock
import pytest
from agents_kit import RICH, Agent, manifest, pack
from provider import KEYS as AI_KEYS
from provider import Provider
from spend_kit import Anvil, Front, make_token
from walletconnect_kit import CHAIN, FIRST, KEYS, PROJECT, modules, relay  # noqa: F401 - fixtures

HERE = Path(__file__).resolve().parent
STEPS = re.findall(r'^  async "([^"]+)"\(\)', (HERE / "money.mjs").read_text(), re.M)
EVIL = "<img src=x onerror=window.pwned=1>"


class Steps(dict):
    said = ""


class Node(Front):
    """Passes on to anvil. The walk tells it by `test_mood` which methods it does not have, which it refuses, and what it says then."""

    def __init__(self, anvil):
        super().__init__(anvil)
        self.mood = {}
        self.instead, self.change = self.refuse, self.lack

    def refuse(self, asked):
        if isinstance(asked, dict) and asked["method"] == "test_mood":
            self.mood = asked["params"][0]
            return {"jsonrpc": "2.0", "id": asked["id"], "result": True}
        every = asked if isinstance(asked, list) else [asked]
        if not any(one["method"] in self.mood.get("refuses", ()) for one in every):
            return None
        said = [{"jsonrpc": "2.0", "id": one["id"], **({"error": {"code": -32000, "message": self.mood["says"]}} if one["method"] in self.mood["refuses"]
                                                      else {"result": self.anvil.ask(one["method"], *one["params"])})} for one in every]
        return said if isinstance(asked, list) else said[0]

    def lack(self, asked, said):
        none = lambda one: {"jsonrpc": "2.0", "id": one["id"], "error": {"code": -32601, "message": "the method does not exist"}}  # noqa: E731
        lacks = self.mood.get("without", ())
        if isinstance(asked, dict):
            return none(asked) if asked["method"] in lacks else said
        return [none(one) if one["method"] in lacks else next((a for a in said if a["id"] == one["id"]), None) for one in asked]


@pytest.fixture(scope="module")
def anvil(modules):  # noqa: F811
    it = Anvil(modules)
    yield it
    it.stop()


@pytest.fixture(scope="module")
def node(anvil):
    it = Node(anvil)
    yield it
    it.shutdown()


@pytest.fixture(scope="module")
def daemon(daemon_factory, workdir, node, relay):  # noqa: F811
    place = workdir / "provider-dashboard"
    place.mkdir()
    provider = Provider(place)
    config = workdir / "dashboard-money.yaml"
    config.write_text(json.dumps({
        "ai": {"providers": {each: {"url": provider.url, "secret": f"{each}-key"} for each in AI_KEYS}, "ca_file": str(provider.authority)},
        "agents": {"chains": {CHAIN: {"name": "Anvil", "symbol": "tETH", "rpc": [f"http://127.0.0.1:{node.port}/"], "poll_ms": 100}},
                   "walletconnect": {"relay": relay.url, "project_id": PROJECT}}}))
    it = daemon_factory("dashboard-money", arguments=["--config", str(config)]).start()
    for each, key in AI_KEYS.items():
        assert it.client().send_json("PUT", f"/v1/secrets/{each}-key", {"value": key}).status in (200, 201)
    yield it
    it.finish()
    provider.stop()


@pytest.fixture(scope="module")
def walk(daemon, anvil, node, modules, relay):  # noqa: F811
    """{step: {ms, error}} of one run of the walk."""
    pool = ThreadPoolExecutor(2)
    token, home = pool.submit(make_token, anvil, RICH), pool.submit(npm.install, HERE, "dashboard-test")
    api = daemon.client()
    asked = manifest(description=f"Says hello. {EVIL}", author=EVIL, spending_limits={"per_transaction": "1.0", "daily": "3.0", "weekly": "5.0", "monthly": "20.0"})
    made = api.post("/v1/agents", {"manifest": asked, "consent": True, "name": "payer"})
    assert made.status == 201, made
    agent = Agent(api, made.json())
    assert agent.upload(pack("index.js", "sdk.js", "run.js")).status == 202
    agent.wait("stopped")
    agent.do("start")
    agent.until_logged("hello by the API")
    world = {"modules": str(home.result() / "node_modules"), "url": daemon.url, "key": daemon.key, "shots": str(paddock.ROOT / "build" / "dashboard-shots"),
             "agent": agent.id, "chain": CHAIN, "address": RICH, "paddock": str(paddock.ROOT / "build" / "bin" / "paddock"), "run_dir": str(daemon.run_dir),
             "node": f"http://127.0.0.1:{anvil.port}/", "front": f"http://127.0.0.1:{node.port}/", "token": token.result(), "wallets": str(modules),
             "phone": {"relay": relay.url, "project": PROJECT, "rpc": f"http://127.0.0.1:{anvil.port}", "key": KEYS[FIRST], "chain": CHAIN}}
    done = subprocess.run(["node", HERE / "money.mjs", json.dumps(world)], capture_output=True, text=True, timeout=900 * paddock.SLOW, check=False)
    (paddock.ROOT / "build" / "dashboard-money.jsonl").write_text(done.stdout)
    if api.get(agent.path).status == 200:
        paddock.until(lambda: agent.remove().status in (204, 404), "the agent is removed")
    found = Steps({step["name"]: step for step in map(json.loads, done.stdout.splitlines())})
    found.said = f"exit status {done.returncode}: {done.stderr[-3000:]}"
    assert found, found.said
    return found


@pytest.mark.parametrize("step", STEPS)
def test_step(walk, step):
    assert step in walk, f"the walk ended before it: {list(walk)[-1]}: {walk.said}"
    assert not walk[step]["error"], walk[step]["error"]
