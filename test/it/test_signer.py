"""paddock-signer over its sockets: limits hold whoever asks and however often it is killed."""

import contextlib
import json
import os
import random
import resource
import sqlite3
import stat
import subprocess
from pathlib import Path

import paddock
import pytest
import signer as rig
from signer import ETHER, NATIVE, Failed, amount, facts, pb, request, state

ANSWERS = Path(__file__).resolve().parents[2] / "build/release/test/unit/eth/eth_answers"
FEE = b"\xff" * 20
FEE_LIMITS = {"fee_per_tx": amount(ETHER), "fee_day": amount(1000 * ETHER)}


@pytest.fixture
def signer(tmp_path):
    os.chmod(tmp_path, 0o711)
    one = rig.Signer(tmp_path / "signer")
    yield one
    one.kill()


@pytest.fixture
def wallet(signer):
    return signer.wallet()


def answers(question):
    return subprocess.run([ANSWERS], input=question + "\n", capture_output=True, text=True, check=True).stdout.strip()


def may_lock_much():
    """As root without CAP_SYS_RESOURCE (24), the limit of locked memory cannot be raised."""
    caps = int(next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("CapEff")).split()[1], 16)
    return bool(caps >> 24 & 1) or resource.getrlimit(resource.RLIMIT_MEMLOCK)[1] == resource.RLIM_INFINITY


def decode(raw):
    """A transaction as eth_answers reads it."""
    line = answers(f"decode {raw.hex()}").split()
    names = ["type", "chain", "nonce", "gas", "price", "value", "to", "data", "hash", "sender"]
    return {k: int(v) if v.isdigit() and k in names[:6] else v for k, v in zip(names, line)}


def approve(signer, item, by="ann", **more):
    return signer.api.ask("APPROVE", id=item.id, digest=item.digest, by=by, facts=facts(**more))


def sign(signer, item, **more):
    return signer.api.ask("SIGN", id=item.id, facts=facts(**more))


# ---- peers ----


def test_an_api_keeps_nobody_out(signer):
    """However many channels the api opens, the owner reaches the kill switch."""
    many = [signer.peer("API") for _ in range(40)]
    assert signer.owner.ask("PAUSE", paused=True).cancelled == 0
    for peer in many:
        peer.close()


# ---- the way of a request ----


def test_from_request_to_final(signer, wallet):
    signer.agent("dca", wallet, day=5 * ETHER)
    item = signer.api.ask("REQUEST", **request(value=ETHER, reason="weekly"))
    assert item.state == state("pending") and item.call_class == "native" and not item.error
    assert item.summary.startswith("Agent dca wants to send 1 (native) to 0x2222")
    assert [c.passed for c in item.trace] == [True] * len(item.trace) and len(item.trace) > 8
    assert signer.spent("agent:dca") == ETHER and signer.spent("agent:dca", window="reserved") == ETHER
    assert signer.api.fails("SIGN", id=item.id, facts=facts()).code == "wrong_state"
    assert signer.api.fails("APPROVE", id=item.id, digest=b"\0" * 32, by="ann", facts=facts()).code == "conflict"
    item = approve(signer, item)
    assert item.state == state("approved") and item.decided_by == "ann"
    item = sign(signer, item, nonce=7)
    tx = decode(item.raw)
    assert item.state == state("signed") and tx["hash"] == item.hash.hex()
    assert (tx["type"], tx["chain"], tx["nonce"], tx["value"], tx["to"]) == (2, 31337, 7, ETHER, "22" * 20)
    assert tx["sender"] == wallet.address.hex() == "f39fd6e51aad88f6f4ce6ab8827279cfffb92266"
    assert signer.spent("agent:dca") == ETHER and signer.spent("agent:dca", window="reserved") == 0
    assert sign(signer, item, nonce=99).raw == item.raw  # the same bytes, whatever is asked
    for name in ("broadcast", "included", "confirmed", "broadcast", "included", "confirmed", "final"):
        assert signer.api.ask("REPORT", id=item.id, state=state(name)).state == state(name)
    assert signer.api.fails("REPORT", id=item.id, state=state("dropped")).code == "wrong_state"
    assert signer.api.ask("AUDIT_VERIFY").broken_at == 0


def test_refusals_have_the_texts_of_assegai(signer, wallet):
    signer.agent("dca", wallet, day=2 * ETHER)
    transfer = bytes.fromhex("a9059cbb") + b"\0" * 12 + b"\x22" * 20 + amount(5)

    def error(**fields):
        item = signer.api.ask("REQUEST", **request(**fields))
        assert item.state == state("denied")
        return item.error
    assert error(value=ETHER + 1) == "Requested amount exceeds the configured allowance for this token"
    assert error(to=b"\x33" * 20, value=0, data=transfer).startswith("No allowance found for 0x3333333333333333333333333333333333333333 on chain eip155:31337")
    assert error(to=b"\x33" * 20, value=1, data=transfer) == "ERC20 transfers must have a transaction value of 0"
    assert error(chain=1, facts=facts(chain=1)) == "Chain eip155:1 is not allowed for this agent"
    assert error(agent="nobody") == "Chain eip155:31337 is not allowed for this agent"
    assert error(facts=facts(chain=1)).startswith("RPC Error")
    assert error(to=b"", value=0, data=b"\x60") == "Contract creation is not allowed"
    assert error(facts=facts(failure="execution reverted: no")) == "The transaction would fail: execution reverted: no"
    assert error(facts=facts(max_fee=amount(10**13))).startswith("Fees of at most")
    assert error(facts=facts(account_delegated=True)).startswith("The account's code is another contract's")
    for value in (ETHER, ETHER - 1):
        assert signer.api.ask("REQUEST", **request(value=value)).state == state("pending")
    assert error(value=2) == "Total spending limit exceeded"
    assert signer.spent("agent:dca") == 2 * ETHER - 1  # what is refused reserves nothing


def test_rejected_cancelled_and_expired_free_what_they_reserved(signer, wallet):
    signer.agent("dca", wallet, day=ETHER)
    item = signer.api.ask("REQUEST", **request(value=ETHER))
    assert signer.api.ask("REJECT", id=item.id, by="ann", note="no").state == state("rejected")
    assert signer.spent("agent:dca") == signer.spent(f"wallet:{wallet.id}") == 0
    item = signer.api.ask("REQUEST", **request(value=ETHER))
    assert signer.api.ask("CANCEL", id=item.id, by="agent").state == state("cancelled")
    signer.agent("dca", wallet, day=ETHER, expiry_s=1)
    item = signer.api.ask("REQUEST", **request(value=ETHER))
    paddock.until(lambda: signer.api.ask("GET", id=item.id).state == state("expired"), "the request expires")
    assert signer.spent("agent:dca") == 0
    assert signer.api.fails("APPROVE", id=item.id, digest=item.digest, by="ann", facts=facts()).code == "wrong_state"


def test_equal_requests_are_one(signer, wallet):
    signer.agent("dca", wallet, day=10 * ETHER)
    first = signer.api.ask("REQUEST", **request(value=5))
    again = signer.api.ask("REQUEST", **request(value=5))
    assert again.id == first.id and again.attached and not first.attached
    keyed = signer.api.ask("REQUEST", **request(value=6, idem_key="k1"))
    other = signer.api.ask("REQUEST", **request(value=6, idem_key="k2"))
    assert keyed.id != other.id  # two keys, two wishes
    assert signer.api.fails("REQUEST", **request(value=7, idem_key="k1")).code == "conflict"
    approve(signer, keyed)
    sign(signer, keyed)
    assert signer.api.ask("REQUEST", **request(value=6, idem_key="k1")).id == keyed.id  # also when it was done long ago
    assert signer.spent("agent:dca") == 5 + 6 + 6


def test_policy_runs_again_at_approval_and_at_signing(signer, wallet):
    signer.agent("dca", wallet, day=2 * ETHER)
    item = signer.api.ask("REQUEST", **request(value=ETHER))
    failed = signer.api.fails("APPROVE", id=item.id, digest=item.digest, by="ann", facts=facts(failure="execution reverted"))
    assert failed.code == "forbidden" and signer.api.ask("GET", id=item.id).state == state("pending")
    approve(signer, item)
    signer.agent("dca", wallet, day=ETHER - 1)
    assert signer.api.fails("SIGN", id=item.id, facts=facts()).message == "Total spending limit exceeded"
    signer.agent("dca", wallet, day=ETHER)
    assert signer.api.fails("SIGN", id=item.id, facts=facts(chain=1)).code == "forbidden"
    assert sign(signer, item).state == state("signed")


def test_several_people_must_approve(signer, wallet):
    signer.agent("dca", wallet, approvers=2)
    item = signer.api.ask("REQUEST", **request())
    assert approve(signer, item).state == state("pending")
    assert approve(signer, item).state == state("pending")  # the same one twice
    assert approve(signer, item, by="bob").state == state("approved")


def test_small_sums_to_listed_recipients_need_nobody(signer, wallet):
    listed = pb.AddressRule(chain=31337, address=b"\x22" * 20)
    signer.agent("dca", wallet, addresses=[listed], auto_below=amount(100))
    item = signer.api.ask("REQUEST", **request(value=100))
    assert item.state == state("approved") and item.automatic
    assert signer.api.ask("REQUEST", **request(value=101)).state == state("pending")
    assert signer.api.ask("REQUEST", **request(value=1, to=b"\x23" * 20)).state == state("pending")


def test_signatures_are_spending(signer, wallet):
    owner, token = "0x" + wallet.address.hex(), "0x" + "33" * 20
    fields = [("owner", "address"), ("spender", "address"), ("value", "uint256"), ("nonce", "uint256"), ("deadline", "uint256")]

    def permit(value, chain=31337):
        return json.dumps({"types": {"Permit": [{"name": n, "type": t} for n, t in fields]}, "primaryType": "Permit",
                           "domain": {"name": "T", "chainId": chain, "verifyingContract": token},
                           "message": {"owner": owner, "spender": "0x" + "44" * 20, "value": str(value), "nonce": 0, "deadline": 1}}).encode()

    def ask(kind, data):
        return signer.api.ask("REQUEST", agent="dca", kind=kind, chain=31337, data=data, facts=facts())
    limit = pb.Limit(chain=31337, asset=b"\x33" * 20, per_tx=amount(100), lifetime=amount(150))
    signer.agent("dca", wallet, limits=[limit])
    typed, message = pb.REQUEST_KIND_TYPED, pb.REQUEST_KIND_MESSAGE
    assert ask(typed, permit(101)).error == "Requested amount exceeds the configured allowance for this token"
    assert ask(typed, permit(2**256 - 1)).error == "An unlimited approval is not allowed for this token"
    assert ask(typed, permit(5, chain=1)).state == state("denied")
    item = ask(typed, permit(100))
    assert item.state == state("pending") and item.call_class == "approval"
    assert signer.spent("agent:dca", asset=b"\x33" * 20, window="lifetime") == 100
    assert ask(typed, permit(51)).error == "Total spending limit exceeded"
    approve(signer, item)
    assert len(sign(signer, item).raw) == 65
    assert ask(message, b"hello").error == "Signing messages is not allowed"
    signer.agent("dca", wallet, limits=[limit], allow_messages=True)
    item = ask(message, b"hello")
    approve(signer, item)
    known = answers("message ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80 68656c6c6f").split()[0]
    assert sign(signer, item).raw.hex() == known


# ---- what a taken-over api cannot do ----


def test_api_cannot_loosen_or_take_keys(signer, wallet):
    rules = signer.agent("dca", wallet, day=ETHER)
    looser = pb.Rules()
    looser.CopyFrom(rules)
    looser.limits[0].day = amount(ETHER + 1)
    for changed in (looser, pb.Rules(scope="agent:new", limits=rules.limits, wallets=rules.wallets), pb.Rules(scope=f"wallet:{wallet.id}", **FEE_LIMITS)):
        assert signer.api.fails("RULES_PUT", rules=changed).code == "forbidden"
    stricter = pb.Rules()
    stricter.CopyFrom(rules)
    stricter.limits[0].day = amount(5)
    signer.api.ask("RULES_PUT", rules=stricter)
    assert signer.api.fails("RULES_PUT", rules=rules).code == "forbidden"  # not back, either
    for kind in (pb.WALLET_KIND_GENERATED, pb.WALLET_KIND_TEST, pb.WALLET_KIND_IMPORTED):
        assert signer.api.fails("WALLET_ADD", kind=kind, label="x").code == "forbidden"
    for name, fields in (("WALLET_EXPORT", {"id": wallet.id, "password": b"12345678"}),
                         ("WALLET_REMOVE", {"id": wallet.id}), ("SETTLE", {"id": "x"})):
        assert signer.api.fails(name, **fields).code == "not_supported"
    signer.api.ask("PAUSE", paused=True)
    assert signer.api.fails("PAUSE", paused=False).code == "forbidden"
    assert signer.api.ask("REQUEST", **request()).error.startswith("Agent is paused")
    signer.restart()
    assert signer.api.ask("REQUEST", **request(value=2)).error.startswith("Agent is paused")
    signer.owner.ask("PAUSE", paused=False)
    assert signer.api.ask("REQUEST", **request()).state == state("pending")


def test_api_adds_external_wallets(signer, wallet):
    """They spend nothing until the owner's rules name them."""
    added = signer.api.ask("WALLET_ADD", kind=pb.WALLET_KIND_EXTERNAL, label="phone", address=b"\x55" * 20).wallet
    again = signer.api.ask("WALLET_ADD", kind=pb.WALLET_KIND_EXTERNAL, label="other", address=b"\x55" * 20).wallet
    assert again.id == added.id and again.label == "phone"
    assert signer.api.fails("WALLET_ADD", kind=pb.WALLET_KIND_EXTERNAL, label="phone", address=b"\x55").code == "invalid_argument"
    rules = signer.agent("dca", wallet, day=ETHER)
    turned = pb.Rules()
    turned.CopyFrom(rules)
    turned.wallets[0].wallet = added.id
    assert signer.api.fails("RULES_PUT", rules=turned).code == "forbidden"
    have = len(signer.api.ask("WALLET_LIST").wallets)
    for n in range(256 - have):
        signer.api.ask("WALLET_ADD", kind=pb.WALLET_KIND_EXTERNAL, label="x", address=n.to_bytes(20, "big"))
    assert signer.api.fails("WALLET_ADD", kind=pb.WALLET_KIND_EXTERNAL, label="x", address=b"\x66" * 20).code == "quota_exceeded"


def test_reports_of_the_api_free_nothing(signer, wallet):
    signer.agent("dca", wallet, day=ETHER)
    for ending in (["failed"], ["broadcast", "dropped"], ["broadcast", "included", "reverted"], ["broadcast", "replaced"]):
        item = signer.api.ask("REQUEST", **request(value=ETHER))
        assert item.state == state("pending"), ending
        approve(signer, item)
        sign(signer, item)
        for name in ending:
            signer.api.ask("REPORT", id=item.id, state=state(name))
        # The bytes are out: whoever has them can send them.
        assert signer.spent("agent:dca") == ETHER
        assert signer.api.ask("REQUEST", **request(value=1)).error == "Total spending limit exceeded"
        if ending[-1] == "dropped":  # which nothing has replaced
            assert "may still send it" in signer.owner.fails("SETTLE", id=item.id).message and signer.spent("agent:dca") == ETHER
            signer.api.ask("REPORT", id=item.id, state=state("replaced"))
        signer.owner.ask("SETTLE", id=item.id, note="seen on the chain")
        assert signer.spent("agent:dca") == 0


ENDINGS = (["failed"], ["broadcast", "included", "reverted"], ["broadcast", "replaced"])


@pytest.mark.parametrize("ending", ENDINGS, ids=lambda ending: ending[-1])
def test_what_a_block_ended_counts_when_it_comes_back(signer, wallet, ending):
    """A reorganisation takes away the block that ended it, and the owner has settled it: it can be mined after all, and counts. It is listed for
    those who look until the block is final."""
    signer.agent("dca", wallet, day=ETHER)
    item = signer.api.ask("REQUEST", **request(value=ETHER))
    approve(signer, item)
    sign(signer, item)

    def report(name, **fields):
        return signer.api.ask("REPORT", id=item.id, state=state(name), **fields)

    def watched():
        return [i.id for i in signer.api.ask("LIST", state=state(ending[-1]), unsure=True).items]
    for name in ending:
        report(name)
    assert watched() == [item.id]
    signer.owner.ask("SETTLE", id=item.id, note="seen on the chain")
    assert signer.spent("agent:dca") == 0
    assert report("broadcast").state == state("broadcast")
    assert signer.spent("agent:dca") == ETHER and signer.api.ask("REQUEST", **request(value=1)).error == "Total spending limit exceeded"
    signer.restart()
    assert signer.spent("agent:dca") == ETHER
    assert signer.owner.fails("SETTLE", id=item.id).code == "wrong_state"
    # Without the owner it counted all the time, and once.
    for name in (*ending[ending[0] == "broadcast":], "broadcast") if len(ending) > 1 else ():
        report(name)
    assert signer.spent("agent:dca") == ETHER
    report("included")
    changed = report("reverted").changed_ms
    assert signer.api.fails("REPORT", id=item.id, state=state("replaced"), sure=True).code == "wrong_state"
    sure = report("reverted", sure=True)
    assert sure.sure and sure.changed_ms == changed and signer.spent("agent:dca") == ETHER
    assert not signer.api.ask("LIST", state=state("reverted"), unsure=True).items and len(signer.api.ask("LIST", state=state("reverted")).items) == 1
    # What nobody expects: it counts all the same.
    signer.owner.ask("SETTLE", id=item.id, note="final")
    assert signer.spent("agent:dca") == 0 and not report("broadcast").sure and signer.spent("agent:dca") == ETHER


def test_what_was_never_signed_does_not_come_back(signer, wallet):
    signer.agent("dca", wallet)
    item = signer.api.ask("REQUEST", **request())
    approve(signer, item)
    signer.api.ask("REPORT", id=item.id, state=state("failed"))
    assert signer.spent("agent:dca") == 0
    assert signer.api.fails("REPORT", id=item.id, state=state("broadcast")).code == "wrong_state" and signer.spent("agent:dca") == 0


@pytest.mark.parametrize("field", [
    {"max_pending": 3}, {"expiry_s": 60}, {"suspend_after": 3}, {"auto_below": amount(1)}, {"allow_messages": True}, {"allow_creation": True}, {"allow_dangerous": True},
    {"wallets": [pb.AgentWallet(chain=1, wallet="w")]}, {"typed": [pb.TypedRule(chain=1, contract=b"\x11" * 20, primary_type="Mail")]},
    {"addresses": [pb.AddressRule(address=b"\x10" * 20), pb.AddressRule(chain=1, address=b"\x11" * 20, call=True)]}], ids=lambda field: next(iter(field)))
def test_a_wallet_has_no_rule_that_would_not_hold(signer, wallet, field):
    """The owner is told, and what was there stays."""
    before = signer.api.ask("RULES_GET", scope=f"wallet:{wallet.id}").rules
    failed = signer.owner.fails("RULES_PUT", rules=pb.Rules(scope=f"wallet:{wallet.id}", **FEE_LIMITS, **field))
    name = next(iter(field)).replace("addresses", "call")
    assert failed.code == "invalid_argument" and f"{name} is for agents" in str(failed)
    assert signer.api.ask("RULES_GET", scope=f"wallet:{wallet.id}").rules == before
    signer.rules("agent:dca", **field)


def test_test_accounts_sign_for_development_chains_alone(signer, wallet):
    signer.agent("dca", wallet, chain=1)
    assert "test account" in signer.api.ask("REQUEST", **request(chain=1, facts=facts(chain=1))).error
    signer.agent("dca", wallet)
    assert "test account" in signer.api.ask("REQUEST", **request(facts=facts(loopback=False))).error


def test_simulation_only_makes_it_stricter(signer, wallet):
    signer.agent("dca", wallet, day=ETHER)

    def moves(**fields):
        return facts(method=pb.SIM_METHOD_SIMULATE_V1, moves=[pb.Move(**{"asset": NATIVE, "from": wallet.address, "to": b"\x22" * 20, "amount": amount(1), **fields})])
    item = signer.api.ask("REQUEST", **request(value=ETHER, facts=moves()))
    assert item.state == state("pending") and signer.spent("agent:dca") == ETHER  # less in the simulation counts for nothing
    signer.api.ask("CANCEL", id=item.id, by="agent")
    assert signer.api.ask("REQUEST", **request(value=1, facts=moves(amount=amount(2 * ETHER)))).state == state("denied")
    assert "No allowance" in signer.api.ask("REQUEST", **request(value=1, facts=moves(asset=b"\x55" * 20))).error
    assert signer.api.ask("REQUEST", **request(value=1, facts=moves(approval=True))).state == state("denied")


@pytest.mark.parametrize("malformed", [
    {"to": b"\x22" * 19}, {"value": b"\1"}, {"chain": 0}, {"agent": ""}, {"agent": "a/b"}, {"kind": 9}, {"facts": None}, {"data": b"x" * 140000},
    {"kind": pb.REQUEST_KIND_TYPED, "to": b"", "value": b"", "data": b"{}"}, {"facts": facts(max_fee=b"x" * 33)}])
def test_malformed_requests_are_refused_by_name(signer, wallet, malformed):
    signer.agent("dca", wallet)
    failed = signer.api.fails("REQUEST", **{k: v for k, v in {**request(), **malformed}.items() if v is not None})
    assert failed and failed.code in ("invalid_argument", "too_large") and failed.message
    assert signer.api.ask("STATUS").pending == 0


# ---- races and ends ----


def test_a_thousand_at_once_never_exceed_a_limit(signer, wallet):
    """100 wei for the wallet, 60 for each of two agents: 1000 requests of 1 wei, from ten streams, none waiting for another."""
    signer.rules(f"wallet:{wallet.id}", limits=[pb.Limit(chain=31337, asset=NATIVE, per_tx=amount(1), day=amount(100))], **FEE_LIMITS)
    for name in ("a", "b"):
        signer.agent(name, wallet, per_tx=1, day=60, max_pending=2000)
    peers = [signer.peer("API") for _ in range(10)]
    for n in range(100):
        for k, peer in enumerate(peers):
            peer.post("REQUEST", **request(agent="ab"[k % 2], value=1, to=(n * 10 + k + 1).to_bytes(20, "big")))
    items = [peer.next() for peer in peers for _ in range(100)]
    pending = [i for i in items if i.state == state("pending")]
    assert len(pending) == 100 and len({i.id for i in items}) == 1000
    assert {i.error for i in items if i.state == state("denied")} == {"Total spending limit exceeded"}
    per_agent = [sum(i.agent == name for i in pending) for name in "ab"]
    assert max(per_agent) <= 60 and [signer.spent(f"agent:{n}") for n in "ab"] == per_agent
    # All approved and signed at once, each twice: 100 signatures with 100 nonces.
    for i, item in enumerate(pending):
        peers[i % 10].post("APPROVE", id=item.id, digest=item.digest, by="ann", facts=facts())
        for _ in range(2):
            peers[i % 10].post("SIGN", id=item.id, facts=facts())
    signed = {}
    for i, item in enumerate(pending):
        assert peers[i % 10].next().state == state("approved")
        for _ in range(2):
            signed.setdefault(item.id, set()).add(peers[i % 10].next().raw)
    assert all(len(raws) == 1 for raws in signed.values()) and len(signed) == 100
    assert signer.spent(f"wallet:{wallet.id}") == 100
    assert sorted(signer.api.ask("GET", id=i).nonce for i in signed) == list(range(100))
    for peer in peers:
        peer.close()


def test_killed_at_every_step(signer, wallet):
    """Each step is sent and the signer killed at once or a little later; what it had answered is there, the step can be asked for again,
    the ledger is that of the requests, and no request is signed twice with different bytes."""
    rng = random.Random(16)
    signer.agent("dca", wallet, day=1000, max_pending=1000)
    raws, counted = {}, 0

    def step(name, **fields):
        """Until it is answered, with a kill after the first attempt."""
        nonlocal signer
        signer.api.post(name, **fields)
        wait = rng.choice([0, 0.0005, 0.001, 0.002, 0.004, 0.008])
        answered = None
        if wait:
            signer.api.end.settimeout(wait)
            try:
                answered = signer.api.next()
            except (TimeoutError, Failed):
                pass
        signer.restart()
        try:
            item = signer.api.ask(name, **fields)
        except Failed as failed:  # it was done before the kill
            assert failed.code == "wrong_state", failed
            item = signer.api.ask("GET", id=fields["id"])
        if answered is not None:
            assert item.id == answered.id and item.digest == answered.digest
        return item

    for n in range(12):
        item = step("REQUEST", **request(value=10, to=(n + 1).to_bytes(20, "big"), idem_key=f"k{n}"))
        assert item.state == state("pending")
        counted += 10
        assert signer.spent("agent:dca") == counted
        item = step("APPROVE", id=item.id, digest=item.digest, by="ann", facts=facts())
        assert item.state == state("approved")
        if n % 4 == 3:
            item = step("REJECT", id=item.id, by="ann")
            assert item.state == state("rejected")
            counted -= 10
        else:
            item = step("SIGN", id=item.id, facts=facts())
            raws[item.id] = item.raw
            item = step("REPORT", id=item.id, state=state("broadcast"))
            assert item.state == state("broadcast") and item.raw == raws[item.id]
        assert signer.spent("agent:dca") == signer.spent(f"wallet:{wallet.id}") == counted
    assert len(set(raws.values())) == len(raws) == 9
    assert sorted(decode(raw)["nonce"] for raw in raws.values()) == list(range(9))
    assert signer.api.ask("AUDIT_VERIFY").broken_at == 0
    signer.kill()
    with contextlib.closing(sqlite3.connect(signer.directory / "signer.db")) as db:
        assert db.execute("SELECT count(*), count(DISTINCT raw) FROM signatures").fetchone() == (9, 9)
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    signer.start()


def test_replacements_have_the_nonce_and_an_eighth_more(signer, wallet):
    signer.rules(f"wallet:{wallet.id}", **FEE_LIMITS)
    signer.agent("dca", wallet, day=ETHER)
    item = signer.api.ask("REQUEST", **request(value=5))
    approve(signer, item)
    first = decode(sign(signer, item, max_fee=amount(1001), priority_fee=amount(9)).raw)
    faster = signer.api.ask("SIGN", id=item.id, facts=facts(max_fee=amount(1), priority_fee=amount(1)), mode=pb.SIGN_MODE_SPEED_UP)
    second = decode(faster.raw)
    assert second["price"] == 1001 + 126 and faster.generation == 2
    assert {k: second[k] for k in ("nonce", "value", "to", "gas")} == {k: first[k] for k in ("nonce", "value", "to", "gas")}
    cancel = signer.api.ask("SIGN", id=item.id, facts=facts(max_fee=amount(5000), priority_fee=amount(50)), mode=pb.SIGN_MODE_CANCEL)
    third = decode(cancel.raw)
    assert third["to"] == wallet.address.hex() and third["value"] == 0 and third["nonce"] == first["nonce"] and third["price"] == 5000
    assert signer.spent(f"wallet:{wallet.id}", asset=FEE) == 21000 * 5000 and signer.spent("agent:dca") == 5
    signer.rules(f"wallet:{wallet.id}", fee_per_tx=amount(21000 * 5000), fee_day=amount(ETHER))
    assert signer.api.fails("SIGN", id=item.id, facts=facts(), mode=pb.SIGN_MODE_SPEED_UP).code == "forbidden"


def test_refused_too_often_is_paused(signer, wallet):
    signer.agent("dca", wallet, suspend_after=3)
    for n in range(3):
        assert signer.api.ask("REQUEST", **request(value=ETHER + n + 1)).error.startswith("Requested amount")
    assert signer.api.ask("REQUEST", **request()).error == "Agent is paused"


def test_wallets_elsewhere_are_counted_here(signer):
    wallet = signer.wallet(kind=pb.WALLET_KIND_EXTERNAL, address=b"\x77" * 20)
    signer.agent("dca", wallet, day=ETHER)

    def given(value):
        item = signer.api.ask("REQUEST", **request(value=value))
        approve(signer, item)
        assert signer.api.fails("SIGN", id=item.id, facts=facts()).code == "not_supported"
        return signer.api.ask("REPORT", id=item.id, state=state("awaiting_wallet"))
    item = given(ETHER)
    assert signer.spent("agent:dca") == ETHER and signer.spent("agent:dca", window="reserved") == 0
    signer.api.ask("REPORT", id=item.id, state=state("wallet_rejected"))
    assert signer.spent("agent:dca") == 0
    item = given(10)
    signer.api.ask("REPORT", id=item.id, state=state("broadcast"), hash=b"h" * 32)
    more = [pb.Effect(asset=NATIVE, amount=amount(ETHER), to=b"\x22" * 20)]
    assert signer.api.ask("REPORT", id=item.id, state=state("mismatch"), actual=more).hash == b"h" * 32
    assert signer.spent("agent:dca") == ETHER + 10  # what was spent is counted, beyond the limit as it is
    assert signer.api.ask("REQUEST", **request(value=1)).error == "Total spending limit exceeded"


def test_wallets_elsewhere_that_answer_late(signer):
    """What was given up, settled by the owner and sent all the same counts again; a late refusal releases."""
    wallet = signer.wallet(kind=pb.WALLET_KIND_EXTERNAL, address=b"\x78" * 20)
    signer.agent("late", wallet, day=ETHER, allow_messages=True)

    def given_up(value):
        item = signer.api.ask("REQUEST", **request("late", value=value))
        approve(signer, item)
        signer.api.ask("REPORT", id=item.id, state=state("awaiting_wallet"))
        signer.api.ask("REPORT", id=item.id, state=state("wallet_timeout"))
        return item
    item = given_up(30)
    assert signer.spent("agent:late") == 30
    signer.owner.ask("SETTLE", id=item.id, note="no answer")
    assert signer.spent("agent:late") == 0
    signer.api.ask("REPORT", id=item.id, state=state("broadcast"), hash=b"h" * 32)
    assert signer.spent("agent:late") == signer.spent(f"wallet:{wallet.id}") == 30
    assert signer.owner.fails("SETTLE", id=item.id).code == "wrong_state"
    signer.restart()
    assert signer.spent("agent:late") == 30
    kept = given_up(7)  # and where nobody settled it, once
    signer.api.ask("REPORT", id=kept.id, state=state("broadcast"), hash=b"i" * 32)
    assert signer.spent("agent:late") == 37
    refused = given_up(5)
    assert signer.api.fails("REPORT", id=refused.id, state=state("mismatch")).code == "wrong_state"
    signer.api.ask("REPORT", id=refused.id, state=state("wallet_rejected"))
    assert signer.spent("agent:late") == 37


@pytest.mark.parametrize("kind", (pb.WALLET_KIND_TEST, pb.WALLET_KIND_EXTERNAL), ids=("here", "elsewhere"))
def test_what_was_sent_outlives_its_wallet(signer, kind):
    """A wallet can be removed when nothing of it waits; what is on the chain is followed to its end, and what was dropped may come back."""
    wallet = signer.wallet(kind=kind, address=b"\x7a" * 20) if kind == pb.WALLET_KIND_EXTERNAL else signer.wallet(label="gone")
    signer.agent("gone", wallet, day=ETHER)
    items = [signer.api.ask("REQUEST", **request("gone", value=value)) for value in (5, 6)]
    for item, way in zip(items, (("included",), ("dropped",) if kind == pb.WALLET_KIND_EXTERNAL else ("dropped", "replaced"))):
        approve(signer, item)
        if kind == pb.WALLET_KIND_EXTERNAL:
            way = ("awaiting_wallet", "broadcast", *way)
        else:
            sign(signer, item)
            way = ("broadcast", *way)
        for name in way:
            signer.api.ask("REPORT", id=item.id, state=state(name))
    signer.owner.ask("SETTLE", id=items[1].id, note="lost")
    signer.owner.ask("WALLET_REMOVE", id=wallet.id)
    for name in ("confirmed", "final"):
        assert signer.api.ask("REPORT", id=items[0].id, state=state(name)).state == state(name)
    assert signer.spent("agent:gone") == 5
    assert signer.api.ask("REPORT", id=items[1].id, state=state("broadcast")).state == state("broadcast")
    assert signer.spent("agent:gone") == 11
    if kind == pb.WALLET_KIND_TEST:
        assert signer.api.fails("REPORT", id=items[1].id, state=state("mismatch")).code == "wrong_state"


def test_a_message_that_a_wallet_elsewhere_signs_has_its_signature(signer):
    """It is stored in the step that says so, or there is no such step; also where the wallet answers late."""
    wallet = signer.wallet(kind=pb.WALLET_KIND_EXTERNAL, address=b"\x79" * 20)
    signer.agent("signs", wallet, allow_messages=True)

    def given(text):
        item = signer.api.ask("REQUEST", **{**request("signs"), "kind": pb.REQUEST_KIND_MESSAGE, "to": b"", "value": b"", "data": text})
        approve(signer, item)
        return signer.api.ask("REPORT", id=item.id, state=state("awaiting_wallet"))

    def refused(item, **fields):
        assert signer.api.fails("REPORT", id=item.id, state=state("broadcast"), **fields).code == "invalid_argument"

    for way in ((), ("wallet_timeout",)):
        item = given(b"hello " + repr(way).encode())
        for name in way:
            signer.api.ask("REPORT", id=item.id, state=state(name))
        for wrong in ({}, {"signature": b""}, {"signature": b"s" * 4097}, {"hash": b"h" * 32}):
            refused(item, **wrong)
        assert signer.api.ask("GET", id=item.id).state == state(*(way or ("awaiting_wallet",)))
        assert signer.api.ask("REPORT", id=item.id, state=state("broadcast"), signature=b"s" * 4096).raw == b"s" * 4096
        signer.restart()
        kept = signer.api.ask("GET", id=item.id)
        assert kept.state == state("broadcast") and kept.raw == b"s" * 4096
    sent = signer.api.ask("REQUEST", **request("signs", value=3))
    approve(signer, sent)
    signer.api.ask("REPORT", id=sent.id, state=state("awaiting_wallet"))
    refused(sent, hash=b"h" * 32, signature=b"s" * 65)  # a transaction has none


def test_new_recipients_wait(signer, wallet):
    signer.agent("dca", wallet, cool_down_s=3600)
    item = signer.api.ask("REQUEST", **request())
    approve(signer, item)
    assert signer.api.fails("SIGN", id=item.id, facts=facts()).code == "unavailable"
    signer.agent("dca", wallet)
    sign(signer, item)
    signer.agent("dca", wallet, cool_down_s=3600)
    item = signer.api.ask("REQUEST", **request(value=2))  # to the same address, which is known by now
    approve(signer, item)
    assert sign(signer, item).state == state("signed")


# ---- keys ----


def test_keys_are_sealed_and_shown_once(signer):
    added = signer.owner.ask("WALLET_ADD", kind=pb.WALLET_KIND_GENERATED, label="mine")
    key = bytes.fromhex(added.backup[2:])
    assert len(key) == 32
    files = b"".join(f.read_bytes() for f in signer.directory.iterdir())
    assert key not in files and added.backup[2:].encode() not in files
    assert all(stat.S_IMODE(f.stat().st_mode) == 0o600 and f.stat().st_uid == rig.UID for f in signer.directory.iterdir())
    exported = answers(f"make {key.hex()} {b'correct horse'.hex()}")
    if may_lock_much():
        exported = signer.owner.ask("WALLET_EXPORT", id=added.wallet.id, password=b"correct horse").keystore.hex()
        assert answers(f"open {b'correct horse'.hex()} {exported}") == key.hex()
    else:
        assert "128 MiB" in signer.owner.fails("WALLET_EXPORT", id=added.wallet.id, password=b"correct horse").message
    assert signer.owner.fails("WALLET_EXPORT", id=added.wallet.id, password=b"short").code == "invalid_argument"
    exported = bytes.fromhex(exported)
    signer.owner.ask("WALLET_REMOVE", id=added.wallet.id)
    assert signer.owner.fails("WALLET_ADD", kind=pb.WALLET_KIND_IMPORTED, label="x", keystore=exported, password=b"wrong").code == "unauthorized"
    back = signer.owner.ask("WALLET_ADD", kind=pb.WALLET_KIND_IMPORTED, label="x", keystore=exported, password=b"correct horse")
    assert back.wallet.address == added.wallet.address and not back.backup


@pytest.mark.parametrize("count", [0, 12, 24])
def test_generated_keys_are_written_down_as_words(signer, count):
    added = signer.owner.ask("WALLET_ADD", kind=pb.WALLET_KIND_GENERATED, label="mine", words=count)
    words, key = added.mnemonic, added.backup[2:]
    assert len(words.split()) == (count or 24) and len(set(words.split())) > 6
    assert answers(f"mnemonic {words.encode().hex()} - 0") == key
    signer.restart()
    files = b"".join(f.read_bytes() for f in signer.directory.iterdir())
    assert words.encode() not in files and bytes.fromhex(key) not in files
    # Each of the two brings it back.
    signer.owner.ask("WALLET_REMOVE", id=added.wallet.id)
    for fields in ({"mnemonic": words.upper().encode()}, {"key": bytes.fromhex(key)}):
        back = signer.owner.ask("WALLET_ADD", kind=pb.WALLET_KIND_IMPORTED, label="back", **fields)
        assert back.wallet.address == added.wallet.address and not back.backup and not back.mnemonic
        signer.owner.ask("WALLET_REMOVE", id=back.wallet.id)
    other = signer.owner.ask("WALLET_ADD", kind=pb.WALLET_KIND_IMPORTED, label="1", mnemonic=words.encode(), account=1, passphrase=b"p")
    assert other.wallet.address != added.wallet.address
    assert answers(f"mnemonic {words.encode().hex()} {b'p'.hex()} 1") != key


@pytest.mark.parametrize(("fields", "code", "why"), [
    ({}, "invalid_argument", "imported from"), ({"mnemonic": b"x", "key": b"k" * 32}, "invalid_argument", "imported from"), ({"key": b"k" * 31}, "invalid_argument", "32 bytes"),
    ({"key": bytes(32)}, "invalid_argument", "32 bytes"), ({"key": b"\xff" * 32}, "invalid_argument", "32 bytes"), ({"mnemonic": b"test " * 12}, "invalid_argument", "belong together"),
    ({"mnemonic": b"test test tesst"}, "invalid_argument", "word 3"), ({"mnemonic": b"test " * 11 + b"junk"}, "forbidden", "known to everybody"),
    ({"mnemonic": b"test " * 11 + b"junk", "account": 9}, "forbidden", "known to everybody"), ({"mnemonic": b"test " * 11 + b"junk", "account": 2**31}, "invalid_argument", "account"),
    ({"mnemonic": b"test " * 11 + b"junk", "passphrase": "ä".encode()}, "invalid_argument", "ASCII"), ({"key": b"k" * 32, "account": 1}, "invalid_argument", "belong to words")])
def test_what_is_no_key_is_refused(signer, fields, code, why):
    failed = signer.owner.fails("WALLET_ADD", kind=pb.WALLET_KIND_IMPORTED, label="x", **fields)
    assert failed.code == code and why in failed.message
    assert signer.owner.fails("WALLET_ADD", kind=pb.WALLET_KIND_GENERATED, label="x", words=13).code == "invalid_argument"
    assert signer.api.ask("STATUS").wallets == 0


@pytest.mark.parametrize("kdf", [{"n": 2**20, "r": 32, "p": 1}, {"n": 2**18, "r": 32, "p": 16}, {"n": 2**18, "r": 8, "p": 5}, {"n": 2**40, "r": 8, "p": 1}, {"n": 1000, "r": 8, "p": 1}, {"n": 2, "r": 2**40, "p": 1},
                                 {"n": 2**18, "r": 8, "p": 2**30}, {"n": -2, "r": 8, "p": 1}, {"n": 1e300, "r": 8, "p": 1}, {"c": 2**40, "prf": "hmac-sha256"}])
def test_keystores_that_cost_too_much_are_refused_at_once(signer, kdf):
    """A memory bomb: gigabytes of locked memory, or minutes, before the password can even be wrong."""
    crypto = {"cipher": "aes-128-ctr", "cipherparams": {"iv": "00" * 16}, "ciphertext": "00" * 32, "mac": "00" * 32, "kdf": "scrypt" if "n" in kdf else "pbkdf2",
              "kdfparams": {"dklen": 32, "salt": "00" * 32, **kdf}}
    before = Path(f"/proc/{signer.program.pid}/status").read_text()
    failed = signer.owner.fails("WALLET_ADD", kind=pb.WALLET_KIND_IMPORTED, label="x", keystore=json.dumps({"version": 3, "crypto": crypto}).encode(), password=b"x")
    assert failed.code == "invalid_argument" and "keystore" in failed.message

    def peak(text):
        return int(next(line for line in text.splitlines() if line.startswith("VmPeak")).split()[1])
    assert peak(Path(f"/proc/{signer.program.pid}/status").read_text()) - peak(before) < 32 * 1024


def test_without_its_master_key_nothing_is_opened(signer, wallet):
    signer.kill()
    key = signer.directory / "master.key"
    kept = key.read_text()
    key.unlink()
    signer.start()
    assert "master key is missing" in signer.api.fails("STATUS").message and not key.exists()
    signer.kill()
    key.write_text("11" * 32)
    os.chown(key, rig.UID, rig.UID)
    signer.start()
    assert "another master key" in signer.api.fails("STATUS").message
    signer.kill()
    key.write_text(kept)
    signer.start()
    assert signer.api.ask("STATUS").wallets == 1


def test_changed_audit_log_is_noticed(signer, wallet):
    signer.agent("dca", wallet)
    signer.api.ask("REQUEST", **request())
    entries = signer.api.ask("AUDIT").entries
    assert [e.action for e in entries] == ["wallet.add", "rules.put", "request"] and json.loads(entries[2].detail)["state"] == "pending"
    changed = json.loads(entries[1].detail)
    assert changed["before"]["limits"] == [] and changed["now"]["limits"][0]["per_tx"] == str(ETHER)
    signer.kill()
    with contextlib.closing(sqlite3.connect(signer.directory / "signer.db", isolation_level=None)) as db:
        db.execute("DROP TRIGGER audit_fixed")
        db.execute("UPDATE audit SET actor = 'nobody' WHERE seq = 2")
    for file in signer.directory.iterdir():
        os.chown(file, rig.UID, rig.UID)
    signer.start()
    assert signer.api.ask("AUDIT_VERIFY").broken_at == 2


def other(message, field, wallet):
    """Gives one field of the message another valid value."""
    name = field.name
    if field.type == field.TYPE_BYTES:
        value = b"\x77" * (20 if name in ("asset", "address", "contract") else 32)
    elif field.type == field.TYPE_STRING:
        value = wallet if name == "wallet" else "Other"
    elif field.type == field.TYPE_BOOL:
        value = not getattr(message, name)
    else:
        value = getattr(message, name) + 1
    assert value != getattr(message, name), name
    setattr(message, name, value)


def test_the_audit_tells_every_change_of_rules(signer, wallet):
    """Of each field of Rules, those of its lists included, found from the messages: before and now differ where it does, and nowhere else."""
    second = signer.wallet(label="second").id
    rules = signer.agent("dca", wallet, day=5 * ETHER, week=6 * ETHER, month=7 * ETHER, lifetime=8 * ETHER,
                         addresses=[pb.AddressRule(chain=1, address=b"\x11" * 20, note="a shop")],
                         typed=[pb.TypedRule(chain=1, contract=b"\x12" * 20, primary_type="Permit")],
                         windows=[pb.Window(days=31, from_minute=540, to_minute=1020)])
    tried = 0
    for field in pb.Rules.DESCRIPTOR.fields:
        deep = field.message_type.fields if field.message_type else [field]
        for inner in deep:
            path = inner.name if inner is field else f"{field.message_type.name}.{inner.name}"
            if path == "scope":
                continue  # the entry's object
            now = pb.Rules()
            now.CopyFrom(rules)
            other(now if inner is field else getattr(now, field.name)[0], inner, second)
            signer.owner.ask("RULES_PUT", rules=rules)
            signer.owner.ask("RULES_PUT", rules=now)
            entry = signer.api.ask("AUDIT", max=500).entries[-1]
            said = json.loads(entry.detail)
            assert {name for name in said["now"] if said["now"][name] != said["before"][name]} == {field.name}, path
            tried += 1
    assert tried > 35


def test_confined(signer, wallet):
    status = dict(line.split(":\t", 1) for line in Path(f"/proc/{signer.program.pid}/status").read_text().splitlines() if ":\t" in line)
    assert set(status["Uid"].split()) == {str(rig.UID)} == set(status["Gid"].split())
    assert all(int(status[name], 16) == 0 for name in ("CapEff", "CapPrm", "CapInh", "CapBnd", "CapAmb"))
    assert status["NoNewPrivs"] == "1" and status["Seccomp"] == "2"
    assert int(status["VmLck"].split()[0]) > 0
    assert os.readlink(f"/proc/{signer.program.pid}/root") == str(signer.directory)
    limits = Path(f"/proc/{signer.program.pid}/limits").read_text()
    assert [line.split()[4:6] for line in limits.splitlines() if line.startswith("Max core")] == [["0", "0"]]
