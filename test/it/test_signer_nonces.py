"""Which nonce a transaction gets, and the owner's way out where a wallet waits for transactions that nobody sends."""

import os

import pytest
import signer as rig
from signer import ETHER, amount, facts, pb, request, state

HIGH = 65535


@pytest.fixture
def signer(tmp_path):
    os.chmod(tmp_path, 0o711)
    one = rig.Signer(tmp_path / "signer")
    yield one
    one.kill()


@pytest.fixture(params=["GENERATED", "TEST"])
def kind(request):
    return request.param


@pytest.fixture
def agent(signer, kind):
    return Agent(signer, kind)


class Agent:
    def __init__(self, signer, kind):
        self.signer = signer
        self.wallet = signer.wallet(kind=pb.WALLET_KIND_TEST, label="w", test_index=1) if kind == "TEST" else signer.wallet(kind=pb.WALLET_KIND_GENERATED, label="w")
        signer.rules(f"wallet:{self.wallet.id}", fee_per_tx=amount(ETHER), fee_day=amount(100 * ETHER))
        signer.agent("dca", self.wallet, max_pending=50)
        self.asked = 0

    def approved(self):
        self.asked += 1
        item = self.signer.api.ask("REQUEST", **request(value=self.asked))
        assert item.state == state("pending"), item.error
        return self.signer.api.ask("APPROVE", id=item.id, digest=item.digest, by="ann", facts=facts())

    def signed(self, **said):
        return self.signer.api.ask("SIGN", id=self.approved().id, facts=facts(**said))

    def sent(self, **said):
        return self.report(self.signed(**said), "broadcast")

    def report(self, item, name, **fields):
        return self.signer.api.ask("REPORT", id=item.id, state=state(name), **fields)

    def nonce(self, **fields):
        return self.signer.owner.ask("NONCE", wallet=self.wallet.id, chain=31337, **fields)


def test_a_node_is_believed_within_reason(agent):
    assert [agent.signed(nonce=n).nonce for n in (7, 7, 3, 9 + 64)] == [7, 8, 9, 73]  # more than is known here, but not by much
    item = agent.approved()
    failed = agent.signer.api.fails("SIGN", id=item.id, facts=facts(nonce=74 + 65))
    assert failed.code == "unavailable" and "139 transactions, and 74 are known here" in failed.message and "wallet nonce" in failed.message
    assert agent.nonce().next == 74
    assert agent.signer.api.ask("SIGN", id=item.id, facts=facts(nonce=5)).nonce == 74  # it was not lost


def test_a_nonce_that_is_too_high_is_undone(agent):
    """A node that answers 65535 to the first question is believed. The owner gives up what was signed, and sets the nonce."""
    api, owner = agent.signer.api, agent.signer.owner
    jammed = agent.sent(nonce=HIGH)
    assert jammed.nonce == HIGH and agent.nonce().next == HIGH + 1
    for name, fields in (("NONCE", {"wallet": agent.wallet.id, "chain": 31337, "set": True}), ("ABANDON", {"id": jammed.id})):
        assert api.fails(name, **fields).code == "not_supported"  # the owner alone
    assert "broadcast" in owner.fails("SETTLE", id=jammed.id).message
    assert owner.fails("WALLET_REMOVE", id=agent.wallet.id)
    spent = agent.signer.spent("agent:dca")
    dropped = owner.ask("ABANDON", id=jammed.id, note="the node lied")
    assert dropped.state == state("dropped") and agent.signer.spent("agent:dca") == spent  # whoever has its bytes may send it
    assert "may still send it" in owner.fails("SETTLE", id=jammed.id).message
    assert agent.nonce(set=True, next=2).next == 2
    assert [agent.signed(nonce=2).nonce for _ in range(2)] == [2, 3]
    # It is mined after all; or something else has its nonce, and only then it stops counting.
    assert agent.report(jammed, "broadcast").state == state("broadcast")
    owner.ask("ABANDON", id=jammed.id)
    assert agent.report(jammed, "replaced").state == state("replaced")
    before = agent.signer.spent("agent:dca")
    owner.ask("SETTLE", id=jammed.id)
    assert agent.signer.spent("agent:dca") == before - 1
    actions = [e.action for e in owner.ask("AUDIT").entries]
    assert "nonce" in actions and actions.count("dropped") == 2


def test_what_is_under_way_keeps_its_nonce(agent):
    """Setting the nonce back replaces nothing that is under way; what was given up leaves its place to others."""
    first, second, third = (agent.sent(nonce=0) for _ in range(3))
    assert [x.nonce for x in (first, second, third)] == [0, 1, 2]
    agent.signer.owner.ask("ABANDON", id=second.id)
    agent.nonce(set=True, next=0)
    assert [agent.sent(nonce=0).nonce for _ in range(3)] == [1, 3, 4]
    assert [x.nonce for x in agent.signer.api.ask("GET", id=second.id).attempts] == [1]
    agent.signer.restart()
    assert agent.sent(nonce=0).nonce == 5


def test_test_accounts_follow_a_chain_that_begins_anew(agent, kind):
    one, other = b"\x01" * 32, b"\x02" * 32
    assert [agent.report(agent.sent(nonce=0, genesis=one), "included", block=n).nonce for n in (1, 2)] == [0, 1]
    item = agent.signed(nonce=0, genesis=other)
    assert item.nonce == (0 if kind == "TEST" else 2)
    assert agent.signed(nonce=0, genesis=other).nonce == (1 if kind == "TEST" else 3)
    assert agent.signed(nonce=0).nonce == (2 if kind == "TEST" else 4)  # one that does not say


def test_only_what_was_sent_is_given_up(agent):
    owner = agent.signer.owner
    waits = agent.approved()
    assert owner.fails("ABANDON", id=waits.id).code == "wrong_state"
    item = agent.report(agent.sent(), "included", block=1)
    assert owner.fails("ABANDON", id=item.id).code == "wrong_state"
    assert owner.fails("ABANDON", id="nobody").code == "not_found"
    assert owner.fails("NONCE", wallet="nobody", chain=1).code == "not_found"
    for bad in ({"chain": 0}, {"chain": 31337, "set": True, "next": 2**63}):
        assert owner.fails("NONCE", wallet=agent.wallet.id, **bad).code == "invalid_argument"
