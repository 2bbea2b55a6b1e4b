"""Who decides, and when: several persons, hours, first recipients, small sums, the kill switch; and what happens when they race."""

import os
import threading
from collections import Counter

import pytest
import signer as rig
from signer import ETHER, NATIVE, Failed, amount, facts, pb, request, state

FRIEND = b"\x22" * 20


@pytest.fixture(scope="module")
def signer(tmp_path_factory):
    base = tmp_path_factory.mktemp("people")
    os.chmod(base, 0o711)
    one = rig.Signer(base / "signer")
    yield one
    one.kill()


@pytest.fixture
def wallet(signer):
    made = signer.wallet(kind=pb.WALLET_KIND_GENERATED)
    signer.rules(f"wallet:{made.id}", fee_per_tx=amount(ETHER), fee_day=amount(1000 * ETHER))
    return made


@pytest.fixture
def name(request):
    return request.node.name.replace("_", "-")[:60]


@pytest.fixture
def peers(signer):
    made = [signer.peer("API") for _ in range(10)]
    yield made
    for peer in made:
        peer.close()


def at_once(peers, work):
    """work(k, peer) of every stream at the same time; what they return, failures as their codes."""
    results, ready = [None] * len(peers), threading.Barrier(len(peers))

    def run(k):
        ready.wait()
        try:
            results[k] = work(k, peers[k])
        except Failed as failed:
            results[k] = failed.code
    threads = [threading.Thread(target=run, args=(k,)) for k in range(len(peers))]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    return results


def vote(peer, item, by, **more):
    return peer.ask("APPROVE", id=item.id, digest=item.digest, by=by, facts=facts(**more))


# ---- several persons ----


def test_one_person_counts_once_however_often(signer, wallet, name, peers):
    signer.agent(name, wallet, approvers=2)
    item = signer.api.ask("REQUEST", **request(agent=name))
    assert item.approvers == 2
    results = at_once(peers, lambda k, peer: vote(peer, item, "ann").state)
    assert set(results) == {state("pending")}
    assert vote(signer.api, item, "bob").state == state("approved")
    assert signer.api.ask("GET", id=item.id).decided_by == "ann, bob"


def test_persons_who_approve_at_once(signer, wallet, name, peers):
    """Ten persons, three are needed: the third makes it approved, the others come too late, and one signature is made."""
    signer.agent(name, wallet, approvers=3, day=ETHER)
    item = signer.api.ask("REQUEST", **request(agent=name, value=5))
    results = at_once(peers, lambda k, peer: vote(peer, item, f"person{k}").state)
    assert Counter(results) == {state("pending"): 2, state("approved"): 1, "wrong_state": 7}
    raws = at_once(peers, lambda k, peer: peer.ask("SIGN", id=item.id, facts=facts()).raw)
    assert len(set(raws)) == 1 and signer.spent(f"agent:{name}") == 5
    assert len(signer.api.ask("GET", id=item.id).decided_by.split(", ")) == 3


def test_everybody_sees_the_same_digest(signer, wallet, name):
    """New facts change what is counted and shown, and never what is approved; another digest is refused, whoever brings it."""
    signer.agent(name, wallet, approvers=2, day=ETHER)
    item = signer.api.ask("REQUEST", **request(agent=name, value=5))
    first = vote(signer.api, item, "ann", method=pb.SIM_METHOD_SIMULATE_V1,
                 moves=[pb.Move(**{"asset": NATIVE, "from": wallet.address, "to": FRIEND, "amount": amount(9)})])
    assert first.digest == item.digest == signer.api.ask("GET", id=item.id).digest and signer.spent(f"agent:{name}") == 9
    assert signer.api.fails("APPROVE", id=item.id, digest=bytes(32), by="bob", facts=facts()).code == "conflict"
    assert vote(signer.api, item, "bob").state == state("approved") and signer.spent(f"agent:{name}") == 5


def test_the_wallets_number_of_persons_holds_too(signer, wallet, name):
    signer.rules(f"wallet:{wallet.id}", fee_per_tx=amount(ETHER), fee_day=amount(ETHER), approvers=3)
    signer.agent(name, wallet, approvers=2, addresses=[pb.AddressRule(chain=31337, address=FRIEND)], auto_below=amount(100))
    item = signer.api.ask("REQUEST", **request(agent=name, value=1))
    assert item.state == state("pending") and item.approvers == 3
    states = [vote(signer.api, item, by).state for by in ("ann", "bob", "cho")]
    assert states == [state("pending"), state("pending"), state("approved")]


def test_more_persons_are_asked_for_meanwhile(signer, wallet, name):
    """Also a request that waits needs as many as the rules say when somebody approves."""
    signer.agent(name, wallet)
    item = signer.api.ask("REQUEST", **request(agent=name))
    signer.agent(name, wallet, approvers=2)
    assert vote(signer.api, item, "ann").state == state("pending")
    assert vote(signer.api, item, "bob").state == state("approved")


@pytest.mark.parametrize("by", ["", "x" * 129])
def test_somebody_approves(signer, wallet, by):
    signer.agent("nobody", wallet)
    item = signer.api.ask("REQUEST", **request(agent="nobody"))
    assert signer.api.fails("APPROVE", id=item.id, digest=item.digest, by=by, facts=facts()).code == "invalid_argument"


def test_approved_and_rejected_at_once(signer, wallet, name, peers):
    """One of them wins; a request that was rejected or cancelled is never signed, and its amount is free."""
    signer.agent(name, wallet, day=10, max_pending=50)
    for _ in range(5):
        item = signer.api.ask("REQUEST", **request(agent=name, value=10))

        def act(k, peer):
            if k % 3 == 0:
                return vote(peer, item, f"p{k}").state and peer.ask("SIGN", id=item.id, facts=facts()).state
            return peer.ask("REJECT" if k % 3 == 1 else "CANCEL", id=item.id, by=f"p{k}").state
        results = at_once(peers, act)
        last = signer.api.ask("GET", id=item.id)
        if last.state == state("signed"):
            assert last.raw and signer.spent(f"agent:{name}") == 10
            signer.api.ask("REPORT", id=item.id, state=state("failed"))
            signer.owner.ask("SETTLE", id=item.id, note="test")
        else:
            assert last.state in (state("rejected"), state("cancelled")) and not last.raw and results.count(state("signed")) == 0
        assert signer.spent(f"agent:{name}") == 0


# ---- the kill switch ----


def test_the_kill_switch_in_the_middle(signer, wallet, name, peers):
    """Whatever is asked, approved and signed while it falls: afterwards nothing waits, and nothing more is signed."""
    signer.agent(name, wallet, day=ETHER, max_pending=5000)

    def work(k, peer):
        if k == 0:
            peer.ask("PAUSE", paused=True, cancel_pending=True)
            return None
        for n in range(30):
            item = peer.ask("REQUEST", **request(agent=name, value=1, to=(k * 1000 + n + 1).to_bytes(20, "big")))
            if item.state == state("pending"):
                vote(peer, item, "ann")
                peer.ask("SIGN", id=item.id, facts=facts())
        return None
    try:
        at_once(peers, work)
        items = [i for i in signer.api.ask("LIST", agent=name, max=500).items]
        states = Counter(pb.State.Name(i.state) for i in items)
        assert set(states) <= {"STATE_SIGNED", "STATE_DENIED", "STATE_CANCELLED"}
        assert signer.spent(f"agent:{name}") == states["STATE_SIGNED"]
        assert signer.api.ask("REQUEST", **request(agent=name, value=7)).error == "Agent is paused: all spending is stopped"
        signed = next((i for i in items if i.state == state("signed")), None)
        if signed is not None:  # what is out already can still be replaced by nothing
            assert signer.api.fails("SIGN", id=signed.id, facts=facts(), mode=pb.SIGN_MODE_SPEED_UP).code == "forbidden"
            assert signer.api.ask("SIGN", id=signed.id, facts=facts(), mode=pb.SIGN_MODE_CANCEL).generation == 2
        assert signer.api.fails("PAUSE", paused=False).code == "forbidden"
    finally:
        signer.owner.ask("PAUSE", paused=False)
    assert signer.api.ask("REQUEST", **request(agent=name, value=7)).state == state("pending")


def test_paused_agents_and_wallets_sign_nothing(signer, wallet, name):
    signer.agent(name, wallet)
    item = signer.api.ask("REQUEST", **request(agent=name))
    vote(signer.api, item, "ann")
    signer.agent(name, wallet, paused=True)
    assert signer.api.fails("SIGN", id=item.id, facts=facts()).message == "Agent is paused"
    signer.agent(name, wallet)
    signer.rules(f"wallet:{wallet.id}", fee_per_tx=amount(ETHER), fee_day=amount(ETHER), paused=True)
    assert signer.api.fails("SIGN", id=item.id, facts=facts()).message == "Agent is paused"


# ---- small sums to listed recipients ----


def test_a_paused_agent_takes_allowances_back_and_nothing_else(signer, wallet, name):
    """Whoever says that a request revokes gets an approval of nothing through the pause of an agent, which a person approves."""
    token, spender, safe = b"\x11" * 20, b"\x22" * 20, b"\x33" * 20
    limits = [pb.Limit(chain=31337, asset=a, per_tx=amount(ETHER)) for a in (NATIVE, token)]

    def pause(paused):
        signer.rules(f"agent:{name}", limits=limits, wallets=[pb.AgentWallet(chain=31337, wallet=wallet.id)], paused=paused, max_pending=50)

    def approval(amount, selector="095ea7b3"):
        return bytes.fromhex(selector) + spender.rjust(32, b"\0") + amount.to_bytes(32, "big")

    def ask(data, value=0, to=token, **fields):
        return signer.api.ask("REQUEST", **{**request(agent=name, value=value, to=to, facts=facts(to_has_code=True)), "data": data, **fields})

    pause(True)
    for data, value, to, revokes in ((approval(0), 0, token, False), (approval(1), 0, token, True), (b"", 1, safe, True), (approval(0), 1, token, True), (approval(0, "a9059cbb"), 0, token, True)):
        assert ask(data, value, to, revokes=revokes).error == "Agent is paused"
    item = ask(approval(0), revokes=True)
    assert item.state == state("pending") and item.revokes, item.error
    approved = signer.api.ask("APPROVE", id=item.id, digest=item.digest, by="ann", facts=facts(to_has_code=True))
    assert approved.state == state("approved")
    signer.rules(f"wallet:{wallet.id}", fee_per_tx=amount(ETHER), fee_day=amount(ETHER), paused=True)
    assert "The wallet is paused" in signer.api.fails("SIGN", id=item.id, facts=facts(to_has_code=True)).message
    signer.rules(f"wallet:{wallet.id}", fee_per_tx=amount(ETHER), fee_day=amount(ETHER))
    signer.owner.ask("PAUSE", paused=True)
    assert "also no revocation" in signer.api.fails("SIGN", id=item.id, facts=facts(to_has_code=True)).message
    signer.owner.ask("PAUSE", paused=False)
    assert signer.api.ask("SIGN", id=item.id, facts=facts(to_has_code=True)).state == state("signed")
    pause(False)


def test_small_sums_at_once_stay_within_the_limit(signer, wallet, name, peers):
    """No person is asked, so the limit is all there is: 1,000 of 1 wei from ten streams, 100 wei."""
    signer.agent(name, wallet, day=100, max_pending=5000, addresses=[pb.AddressRule(chain=31337, address=FRIEND)], auto_below=amount(1))

    def work(k, peer):
        done = 0
        for n in range(100):
            item = peer.ask("REQUEST", **request(agent=name, value=1, idem_key=f"{k}-{n}"))
            if item.state == state("approved"):
                assert item.automatic
                done += peer.ask("SIGN", id=item.id, facts=facts()).state == state("signed")
        return done
    assert sum(at_once(peers, work)) == 100 == signer.spent(f"agent:{name}")


@pytest.mark.parametrize("change", [{"to": b"\x23" * 20}, {"value": amount(101)}, {"chain": 1}, {"data": b"\xa9\x05\x9c\xbb" + bytes(12) + FRIEND + bytes(31) + b"\1"},
                                    {"approvers": 2}, {"cool_down_s": 60}, {"deny": True}, {"auto_below": b""}])
def test_what_needs_a_person_nonetheless(signer, wallet, change):
    """Listed recipients, native value alone, and up to the sum: nothing else is approved by itself."""
    rules = {k: change[k] for k in ("approvers", "cool_down_s", "auto_below") if k in change}
    listed = pb.AddressRule(chain=31337, address=FRIEND, deny=change.get("deny", False))
    name = "auto-" + "-".join(change)
    signer.agent(name, wallet, **{"addresses": [listed], "auto_below": amount(100), **rules})
    item = signer.api.ask("REQUEST", **{**request(agent=name, value=100), **{k: change[k] for k in ("to", "value", "chain", "data") if k in change}})
    assert item.state in (state("pending"), state("denied")) and not item.automatic
    # Without the change it would have been.
    signer.agent(name + "-plain", wallet, addresses=[pb.AddressRule(chain=31337, address=FRIEND)], auto_below=amount(100))
    assert signer.api.ask("REQUEST", **request(agent=name + "-plain", value=100)).automatic


@pytest.fixture
def quiet(tmp_path_factory):
    """A signer that nothing but this test changes."""
    base = tmp_path_factory.mktemp("quiet")
    os.chmod(base, 0o711)
    one = rig.Signer(base / "signer")
    yield one
    one.kill()


def test_apis_are_told_what_others_change(quiet, name):
    """By the owner, by another api, and by the time: each once, when it is stored. Whoever asked is not told."""
    signer, wallet = quiet, quiet.wallet()
    signer.rules(f"wallet:{wallet.id}", fee_per_tx=amount(ETHER), fee_day=amount(1000 * ETHER))
    mine, yours = signer.peer("API"), signer.peer("API")
    assert yours.ask("STATUS") and mine.ask("STATUS")  # both are there
    signer.agent(name, wallet, max_pending=10, expiry_s=300)
    item = mine.ask("REQUEST", **request(name, value=5))
    signer.owner.ask("CANCEL", id=item.id, by="owner")
    assert mine.told() == yours.told() == item.id
    item = mine.ask("REQUEST", **request(name, value=6))
    mine.ask("APPROVE", id=item.id, digest=item.digest, by="ann", facts=facts())
    assert yours.told() == item.id
    mine.ask("SIGN", id=item.id, facts=facts())
    assert yours.told() == item.id
    mine.ask("REPORT", id=item.id, state=state("failed"))
    assert yours.told() == item.id
    signer.owner.ask("SETTLE", id=item.id, note="test")
    assert mine.told() == yours.told() == item.id
    signer.agent(name, wallet, max_pending=10, expiry_s=1)
    item = mine.ask("REQUEST", **request(name, value=7))
    assert mine.told() == yours.told() == item.id
    assert mine.ask("GET", id=item.id).state == state("expired")
    signer.agent(name, wallet, max_pending=10, expiry_s=300)
    items = [mine.ask("REQUEST", **request(name, value=v)).id for v in (8, 9)]
    assert signer.owner.ask("PAUSE", paused=True, cancel_pending=True).cancelled == 2
    assert sorted([mine.told(), mine.told()]) == sorted([yours.told(), yours.told()]) == sorted(items)
    signer.owner.ask("PAUSE", paused=False)
