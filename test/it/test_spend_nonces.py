"""Transactions that wait for others that nobody sends: a node that was started anew, a node that names a nonce that is too high."""

import json

import pytest

import agents_kit
import paddock
from agents_kit import modules, pack  # noqa: F401
from clitool import Cli
from spend_kit import ETHER, Anvil, Bank, Front, owner


class Chain:
    """A development chain that is started anew behind the same address."""

    def __init__(self, modules):
        self.modules, self.front = modules, Front(Anvil(modules, 31337, "--slots-in-an-epoch", "1"))

    def anew(self):
        self.front.anvil.stop()
        self.front.anvil = Anvil(self.modules, 31337, "--slots-in-an-epoch", "1")

    def lies(self, nonce):
        """Of what waits in its pool, which is what a signature looks at."""

        def change(asked, said):
            for one, answer in zip(asked, said) if isinstance(asked, list) else ():
                if one["method"] == "eth_getTransactionCount" and one["params"][1] == "pending":
                    answer["result"] = hex(nonce)
            return said

        self.front.change = change if nonce is not None else None


@pytest.fixture(scope="module")
def chain(modules):
    it = Chain(modules)
    yield it
    it.front.shutdown()
    it.front.anvil.stop()


@pytest.fixture(scope="module")
def daemon(daemon_factory, workdir, chain):
    config = workdir / "nonces.yaml"
    config.write_text(json.dumps({"agents": {"chains": {"eip155:31337": {"rpc": [f"http://127.0.0.1:{chain.front.port}/"], "poll_ms": 100}}}}))
    it = daemon_factory("nonces", arguments=["--config", str(config)]).start()
    yield it
    it.finish()


@pytest.fixture(scope="module")
def agent(daemon):
    api = daemon.client()
    response = api.post("/v1/agents", {"manifest": agents_kit.manifest(), "consent": True, "name": "spender"})
    assert response.status == 201, response
    it = agents_kit.Agent(api, response.json())
    assert it.upload(pack("index.js", "sdk.js", "run.js")).status == 202
    it.wait("stopped", timeout=120)
    it.do("start")
    it.until_logged("hello by the API")
    yield it
    api = daemon.client()
    paddock.until(lambda: api.delete(it.path).status in (204, 404), "the agent is removed")


def test_a_chain_that_was_started_anew(daemon, agent, chain):
    """The tutorial a second time: a test account pays on the old chain, anvil is started anew, and it pays again."""
    bank = Bank(daemon, agent, index=1)
    for round in (1, 2):
        for n in range(2):
            card, hash = bank.done(100 * round + n)
            assert bank.until_state(card["id"], "confirmed", "final")["hash"] == hash
        assert chain.front.anvil.receipt(hash)["status"] == "0x1"
        if round == 1:  # what is final is not sent again: nothing but the nonce joins the two chains
            chain.front.anvil.ask("anvil_mine", "0x8")
            for item in bank.list():
                bank.until_state(item["id"], "final")
            chain.anew()


def test_a_nonce_that_is_too_high(daemon, agent, chain):
    """It is told what the transaction waits for; the owner gives it up and sets the nonce, and the wallet pays again. What was given up counts
    until something else was mined with its nonce."""
    cli = Cli(daemon, PADDOCK_RUN_DIR=daemon.run_dir)
    made = cli.json("wallet", "new", "till")
    peer = owner(daemon)
    wallet = next(w for w in peer.ask("WALLET_LIST").wallets if w.id == made["id"])
    peer.close()
    chain.front.anvil.ask("anvil_setBalance", made["address"], hex(10 * ETHER))
    bank = Bank(daemon, agent, wallet=wallet)
    before = bank.counted()
    chain.lies(3)
    card, _ = bank.done(1)
    chain.lies(None)
    waits = paddock.until(lambda: (lambda t: t if t["waits_for_nonce"] is not None else None)(bank.get(card["id"])), "it is said that it waits")
    assert (waits["nonce"], waits["waits_for_nonce"], waits["state"]) == (3, 0, "broadcast")
    assert "waits for the transaction 0 of its account" in waits["card"]["text"] and "wallet abandon" in waits["card"]["text"]
    assert json.loads(cli("doctor", "--json").out)["daemon"]["waiting_transactions"] == 1
    # A further one is behind it, and waits for the same.
    second, _ = bank.done(2)
    assert bank.get(second["id"])["nonce"] == 4
    assert "is broadcast" in cli.refused("wallet", "settle", card["id"], "--yes") and bank.counted() - before == 3
    for one in (card, second):
        assert cli.json("wallet", "abandon", one["id"], "--yes", "--note", "the node lied") == {"abandoned": one["id"]}
    assert cli.json("wallet", "nonce", "till", "eip155:31337")["next"] == 5
    assert cli.json("wallet", "nonce", "till", "31337", "0", "--yes")["next"] == 0
    assert "may still send it" in cli.refused("wallet", "settle", card["id"], "--yes") and bank.counted() - before == 3
    for n in range(3, 6):
        paid, _ = bank.done(n)
        assert bank.until_state(paid["id"], "included", "confirmed", "final")["nonce"] == n - 3
    for one in (card, second):  # they were in the node's pool all along, and are mined after all
        bank.until_state(one["id"], "included", "confirmed", "final")
    assert bank.counted() - before == 1 + 2 + 3 + 4 + 5
    # The same once more, with a node that forgets it: something else gets its nonce, and only then it stops counting.
    chain.lies(6)
    card, _ = bank.done(100)
    chain.lies(None)
    assert cli.json("wallet", "abandon", card["id"], "--yes") and cli.json("wallet", "nonce", "till", "31337", "5", "--yes")
    chain.front.anvil.ask("anvil_dropAllTransactions")
    for n in (10, 20):
        paid, _ = bank.done(n)
        bank.until_state(paid["id"], "included", "confirmed", "final")
    assert paid["nonce"] == 6
    bank.until_state(card["id"], "replaced")
    assert bank.counted() - before == 15 + 30 + 100
    assert bank.settle(card["id"])["settled"] == card["id"] and bank.counted() - before == 15 + 30
    assert json.loads(cli("doctor", "--json").out)["daemon"]["waiting_transactions"] == 0
