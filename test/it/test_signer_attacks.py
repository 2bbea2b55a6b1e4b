"""What an adversary tried against the signer, and how it ended: an agent, a taken-over api, a crafted contract, a race with the owner.

One signer for the file, an agent and a wallet of its own for each test, as in test_signer_bypasses.py.
"""

import json
import os
import re

import frames
import pytest
import signer as rig
from signer import NATIVE, amount, pb, state
from test_signer_bypasses import FEES, OTHER, SPENDER, TOKEN, Agent, call, is_denied, multicall, padded, transfer, words

ANOTHER = b"\x66" * 20


@pytest.fixture(scope="module")
def signer(tmp_path_factory):
    base = tmp_path_factory.mktemp("attacks")
    os.chmod(base, 0o711)
    one = rig.Signer(base / "signer")
    yield one
    one.kill()


@pytest.fixture
def agent(signer, request):
    return Agent(signer, re.sub(r"\W+", "-", request.node.name).strip("-")[:60])


def sign_fails(agent, item, **more):
    return agent.signer.api.fails("SIGN", id=item.id, facts=agent.facts(**more))


# ---- rules that change between the question, the approval and the signature ----


def test_a_wallet_that_was_taken_away_signs_nothing(agent):
    pending, approved = agent.ask(), agent.ask(value=amount(2))
    assert agent.approve(approved).state == state("approved")
    agent.signer.rules(f"agent:{agent.name}", limits=[pb.Limit(chain=31337, asset=NATIVE, per_tx=amount(100), day=amount(100))], max_pending=50)
    failed = agent.signer.api.fails("APPROVE", id=pending.id, digest=pending.digest, by="ann", facts=agent.facts())
    assert failed.code == "forbidden" and "Chain eip155:31337 is not allowed" in failed.message
    failed = sign_fails(agent, approved)
    assert failed.code == "forbidden" and "Chain eip155:31337 is not allowed" in failed.message
    agent.put()  # given back, it goes on
    assert agent.sign(approved).raw


def test_another_wallet_does_not_sign_what_was_approved_for_the_first(agent):
    item = agent.ask()
    assert agent.approve(item).state == state("approved")
    other = agent.signer.wallet(kind=pb.WALLET_KIND_GENERATED, label="other")
    agent.signer.agent(agent.name, other, per_tx=100, day=100)
    assert sign_fails(agent, item).code == "forbidden"


def test_more_approvers_hold_for_what_one_has_approved(agent):
    item = agent.ask()
    assert agent.approve(item).state == state("approved")
    agent.put(approvers=2)
    failed = sign_fails(agent, item)
    assert failed.code == "forbidden" and "more people" in failed.message
    agent.put(approvers=1)
    assert agent.sign(item).raw


def test_what_needed_nobody_needs_somebody_when_the_rule_is_gone(agent):
    listed = [pb.AddressRule(address=OTHER)]
    agent.put(auto_below=amount(10), addresses=listed)
    item = agent.ask(value=amount(5))
    assert item.state == state("approved") and item.automatic
    agent.put(auto_below=amount(4))
    failed = sign_fails(agent, item)
    assert failed.code == "forbidden" and "more people" in failed.message


def test_what_grew_after_it_was_approved_automatically_needs_somebody(agent):
    agent.put(auto_below=amount(10), addresses=[pb.AddressRule(address=OTHER)])
    item = agent.ask(value=amount(5), facts=agent.sim((NATIVE, OTHER, 5)))
    assert item.state == state("approved") and item.automatic
    assert agent.signer.api.fails("SIGN", id=item.id, facts=agent.sim((NATIVE, OTHER, 50))).code == "forbidden"
    assert agent.signer.api.ask("SIGN", id=item.id, facts=agent.sim((NATIVE, OTHER, 5))).raw


# ---- rules that nobody looked at ----


def test_limits_of_an_agent_for_fees_hold(agent):
    agent.put(fee_per_tx=amount(10**9))
    is_denied(agent.ask(), "Fees of at most")
    fee = int.from_bytes(agent.facts().max_fee, "big") * (60000 + 12000)
    agent.put(fee_per_tx=amount(fee), fee_day=amount(2 * fee - 1))
    one, two = agent.ask(), agent.ask(value=amount(2))
    for item in (one, two):
        assert agent.approve(item).state == state("approved")
    assert agent.sign(one).raw
    failed = sign_fails(agent, two)
    assert failed.code == "forbidden" and "Fees of at most" in failed.message


def test_the_cool_down_of_a_wallet_holds(agent):
    agent.signer.rules(f"wallet:{agent.wallet.id}", **FEES, cool_down_s=3600)
    item = agent.ask()
    assert agent.approve(item).state == state("approved")
    assert sign_fails(agent, item).code == "unavailable"


# ---- what a call spends, and the card shows ----


def effects(item):
    return [(e.asset, int.from_bytes(e.amount, "big"), e.to) for e in item.effects]


@pytest.mark.parametrize("data", [
    call("23b872dd", ANOTHER, OTHER, 101),  # transferFrom
    call("36c78516", ANOTHER, OTHER, 101, TOKEN),  # Permit2's
    call("30f28b7a", TOKEN, 200, 0, 1, OTHER, 101, ANOTHER, 256, 0),  # permitTransferFrom
    bytes.fromhex("f242432a") + words(ANOTHER, OTHER, 1, 101, 160, 0),  # ERC-1155
], ids=["transferFrom", "permit2", "permit-transfer", "1155"])
def test_money_that_somebody_lets_the_wallet_spend_is_spent(agent, data):
    is_denied(agent.call(data), "exceeds the configured allowance")


def test_an_allowance_from_somebody_is_on_the_card(agent):
    item = agent.call(call("23b872dd", ANOTHER, OTHER, 60))
    assert item.state == state("pending") and effects(item) == [(TOKEN, 60, OTHER)] and agent.spent(TOKEN) == 60
    # What comes in is no spending.
    own = agent.wallet.address
    item = agent.call(call("23b872dd", ANOTHER, own, 10**6))
    assert item.state == state("pending") and effects(item) == [] and agent.spent(TOKEN) == 60


def test_recipients_of_other_peoples_money_are_looked_at(agent):
    agent.put(addresses=[pb.AddressRule(address=OTHER, deny=True)])
    is_denied(agent.call(call("23b872dd", ANOTHER, OTHER, 1)), "is denied")


def test_the_token_0_is_no_nothing(agent):
    nft, own = b"\x88" * 20, agent.wallet.address
    is_denied(agent.call(call("23b872dd", own, OTHER, 0), to=nft), "No allowance found")
    is_denied(agent.call(call("095ea7b3", SPENDER, 0), to=nft), "An approval of 0")
    shown = agent.sim((nft, SPENDER, 1, True))
    is_denied(agent.call(call("095ea7b3", SPENDER, 0), to=nft, facts=shown), "approval in the simulation")


def test_an_allowance_can_be_taken_back(agent):
    item = agent.call(call("095ea7b3", SPENDER, 0))  # the owner has a limit for this token
    assert item.state == state("pending") and effects(item) == [(TOKEN, 0, SPENDER)] and agent.spent(TOKEN) == 0
    other = b"\x99" * 20
    assert agent.call(call("095ea7b3", SPENDER, 0), to=other, facts=agent.sim((other, SPENDER, 0, True))).state == state("pending")
    agent.put(only_listed=True, addresses=[pb.AddressRule(address=TOKEN)])
    assert agent.call(call("095ea7b3", ANOTHER, 0)).state == state("pending")


def safe(gas_price=0, refund_to=bytes(20)):
    data = padded(b"")
    return bytes.fromhex("6a761202") + words(OTHER, 0, 320, 0, 0, 10**18, gas_price, bytes(20), refund_to, 320 + len(data)) + data + padded(b"")


def test_a_safe_refunds_no_gas_to_anybody(agent):
    assert agent.call(safe()).state == state("pending")
    is_denied(agent.call(safe(gas_price=1, refund_to=ANOTHER)), "hand over control")


def test_value_counts_behind_any_number_of_effects(agent):
    """The contract is one that may be called in any way, and the api lies about the simulation."""
    agent.put(addresses=[pb.AddressRule(address=TOKEN, call=True)])
    full = multicall(*[transfer(0 + 1, bytes(19) + bytes([i])) for i in range(1, 70)])
    is_denied(agent.call(full, value=101, facts=agent.sim()), "exceeds the configured allowance")


# ---- one agent against everybody ----


def test_a_list_ends_where_it_is_large_and_goes_on(signer, agent):
    """128 KiB each: a page of them does not fit into anything."""
    ids = []
    for i in range(90):
        item = agent.ask(data=bytes([255]) + i.to_bytes(4, "big") + bytes(100 * 1024), to=TOKEN)
        assert item.state == state("denied")
        ids.append(item.id)
    seen, after = [], ""
    while True:
        page = signer.api.ask("LIST", agent=agent.name, after=after, max=500)
        seen += [i.id for i in page.items]
        if not page.more:
            break
        after = seen[-1]
    assert seen == ids[::-1]


def test_a_list_of_long_cards_fits_into_frames(signer, agent):
    agent.put(unlimited=True)
    many = multicall(*[transfer(1, bytes(18) + bytes([1, i])) for i in range(60)])
    for i in range(400):
        agent.call(many + b"", gas_hint=100000 + i, idem_key=str(i), reason="r" * 500)
    n, after, pages = 0, "", 0
    while True:
        page = signer.api.ask("LIST", agent=agent.name, after=after, max=500)
        n, pages = n + len(page.items), pages + 1
        if not page.more:
            break
        after = page.items[-1].id
    assert n == 400 and pages > 1


def test_the_kill_switch_cancels_any_amount(tmp_path):
    """Each request has 128 KiB; together they are more than a call may use."""
    os.chmod(tmp_path, 0o711)
    signer = rig.Signer(tmp_path / "signer")
    try:
        agent = Agent(signer, "large", max_pending=200, allow_creation=True)
        for i in range(90):
            item = agent.ask(to=b"", value=amount(0), data=i.to_bytes(4, "big") + bytes(120 * 1024))
            assert item.state == state("pending"), item.error
        assert signer.api.ask("PAUSE", paused=True, cancel_pending=True).cancelled == 90
        assert signer.api.ask("STATUS").paused and signer.api.ask("STATUS").pending == 0
    finally:
        signer.kill()


def test_refusals_do_not_fill_the_disk(tmp_path):
    """An agent that is refused in a loop, or asks and withdraws in a loop, is answered and not written down."""
    os.chmod(tmp_path, 0o711)
    signer = rig.Signer(tmp_path / "signer")
    try:
        agent, other = Agent(signer, "loop"), Agent(signer, "other")
        large = bytes(100 * 1024)
        item = agent.ask(data=b"\xff" * 4 + large, to=TOKEN)
        assert item.state == state("denied") and len(signer.api.ask("GET", id=item.id).data) <= 4096
        item = agent.ask(value=amount(1), reason="first")
        signer.api.ask("CANCEL", id=item.id, by="agent")
        failed = 0
        for first in range(0, 2000, 200):  # whoever does not read its answers is not read from either
            for i in range(200):
                signer.api.post("REQUEST", **rig.request(agent="loop", value=101 + first + i))
            for _ in range(200):
                try:
                    assert signer.api.next().state == state("denied")
                except rig.Failed as e:
                    assert "Rate limit exceeded" in e.message and e.code == "rate_limited"
                    failed += 1
        assert failed == 2
        before = signer.api.ask("STATUS").audit_seq
        for value in (1, 101):
            e = signer.api.fails("REQUEST", **rig.request(agent="loop", value=value))
            assert "Rate limit exceeded" in e.message
        assert signer.api.ask("STATUS").audit_seq == before
        assert other.ask().state == state("pending")  # nobody else is held back
    finally:
        signer.kill()


def test_who_reads_late_gets_all_answers(signer, agent):
    """Answers of more than the signer keeps for a peer: it waits, answers others meanwhile, and goes on when they are read."""
    agent.put(addresses=[pb.AddressRule(address=TOKEN, call=True)])
    item = agent.ask(data=b"\xff" * 4 + bytes(100 * 1024), to=TOKEN, facts=agent.sim())
    assert item.state == state("pending"), item.error
    size, late = 0, signer.peer("API")
    late.stream, body = 200, pb.Get(id=item.id).SerializeToString()
    late.end.sendall(b"".join(frames.HEADER.pack(len(body), rig.TYPE["GET"], frames.CALL, 0, n, 0) + body for n in range(1, 201)))
    assert signer.api.ask("STATUS").pending >= 1
    for _ in range(200):
        got = late.next()
        assert got.id == item.id
        size += got.ByteSize()
    assert size > 16 * 1024 * 1024 and late.ask("STATUS").pending >= 1
    late.close()
    agent.put()


def test_the_audit_log_is_read_whole(tmp_path):
    """Entries of a megabyte together: each is there with all that it says."""
    os.chmod(tmp_path, 0o711)
    signer = rig.Signer(tmp_path / "signer")
    try:
        for i in range(60):
            signer.rules("agent:large", addresses=[pb.AddressRule(address=(1000 * i + k).to_bytes(20, "big"), deny=True) for k in range(1000)])
        seen, after = [], 0
        while page := signer.api.ask("AUDIT", after=after, max=500).entries:
            seen += page
            after = page[-1].seq
        assert [e.seq for e in seen] == list(range(1, len(seen) + 1)) and len(seen) >= 60
        assert all(json.loads(e.detail)["now"]["addresses"] for e in seen if e.action == "rules.put")
    finally:
        signer.kill()
