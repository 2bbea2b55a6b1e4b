"""Spending: from an agent's request to the end of its transaction, with anvil as the chain and the real signer."""

import json

import pytest

import agents_kit
import paddock
import signer
from agents_kit import modules, pack  # noqa: F401
from spend_kit import ACCOUNTS, ETHER, FRIEND, Anvil, Bank, Front


@pytest.fixture(scope="module")
def anvil(modules):
    it = Anvil(modules, 31337, "--slots-in-an-epoch", "1")
    yield it
    it.stop()


@pytest.fixture(scope="module")
def other(modules):
    """A chain that is made to fail."""
    it = Anvil(modules, 1337)
    yield it
    it.stop()


@pytest.fixture(scope="module")
def front(other):
    it = Front(other)
    yield it
    it.shutdown()


@pytest.fixture(scope="module")
def daemon(daemon_factory, workdir, anvil, front):
    config = workdir / "spend.yaml"
    config.write_text(json.dumps({"agents": {"chains": {
        "eip155:31337": {"name": "Anvil", "rpc": ["http://127.0.0.1:9/dead", f"http://127.0.0.1:{anvil.port}/"], "poll_ms": 100},
        "eip155:1337": {"rpc": [f"http://127.0.0.1:{front.port}/"], "poll_ms": 100, "stuck_blocks": 3}}}}))
    it = daemon_factory("spend", arguments=["--config", str(config)]).start()
    yield it
    it.finish()


@pytest.fixture(scope="module")
def agents(daemon):
    api, made = daemon.client(), []

    def make(name):
        response = api.post("/v1/agents", {"manifest": agents_kit.manifest(permissions={"chains": ["eip155:31337", "eip155:1337"]}), "consent": True, "name": name})
        assert response.status == 201, response
        it = agents_kit.Agent(api, response.json())
        made.append(it)
        assert it.upload(pack("index.js", "sdk.js", "run.js")).status == 202
        it.wait("stopped")
        it.do("start")
        it.until_logged("hello by the API")
        return it

    yield make
    api = daemon.client()
    for it in made:
        paddock.until(lambda: api.delete(it.path).status in (204, 404), "the agent is removed")


@pytest.fixture(scope="module")
def bank(daemon, agents):
    return Bank(daemon, agents("spender"), index=1)


@pytest.fixture(scope="module")
def shaky(daemon, agents, other):
    return Bank(daemon, agents("shaky"), chain=1337, index=2)


# ---- decisions


def test_approved(bank, anvil):
    before = anvil.balance(FRIEND)
    card, hash = bank.done(1001)
    assert anvil.balance(FRIEND) == before + 1001
    assert anvil.ask("eth_getTransactionByHash", hash)["from"] == bank.account.lower()
    assert bank.until_state(card["id"], "confirmed", "final")["hash"] == hash


def test_rejected(bank):
    wait = bank.start(f"return attempt(sdk.requestTransaction({{ chain: '{bank.chain}', to: '{FRIEND}', value: '1002' }}))")
    item = bank.until_pending(1002)
    assert bank.say(item["id"], "reject", note="no").status == 200
    assert wait.result(30) == {"code": "TRANSACTION_REJECTED", "status": 403, "message": "Transaction rejected by user"}
    assert bank.get(item["id"])["state"] == "rejected"
    assert bank.say(item["id"], "approve", digest=item["digest"]).status == 409
