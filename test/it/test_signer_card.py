"""What paddock-signer tells people about a request: risks, limits before and after, names, what was simulated, and what came of it."""

import os

import pytest
import signer as rig
from signer import ETHER, NATIVE, amount, facts, pb, request, state

TOKEN, SPENDER, FRIEND = b"\x33" * 20, b"\x44" * 20, bytes.fromhex("d8da6bf26964af9d7eed9e03e53415d37aa96045")
ALIKE = FRIEND[:2] + b"\x01" * 16 + FRIEND[-2:]
FEE = b"\xff" * 20
MAX = 2**256 - 1


@pytest.fixture
def signer(tmp_path):
    os.chmod(tmp_path, 0o711)
    one = rig.Signer(tmp_path / "signer")
    yield one
    one.kill()


@pytest.fixture
def wallet(signer):
    return signer.wallet()


def word(n):
    return n.to_bytes(32, "big")


def transfer(to, n):
    return bytes.fromhex("a9059cbb") + bytes(12) + to + word(n)


def approval(spender, n):
    return bytes.fromhex("095ea7b3") + bytes(12) + spender + word(n)


def token_limit(**fields):
    return pb.Limit(**{"chain": 31337, "asset": TOKEN, "per_tx": amount(1000), "day": amount(5000), **fields})


def ask(signer, **fields):
    return signer.api.ask("REQUEST", **request(**fields))


def risks(item):
    return {r.name: r for r in item.risks}


def moves(wallet, *each, **fields):
    """(asset, to, amount[, approval])"""
    return facts(method=pb.SIM_METHOD_SIMULATE_V1, moves=[pb.Move(**{"asset": a, "from": wallet.address, "to": to, "amount": amount(n), "approval": bool(rest)})
                                                          for a, to, n, *rest in each], **fields)


def signed(signer, **fields):
    item = ask(signer, **fields)
    assert item.state == state("pending"), item.error
    signer.api.ask("APPROVE", id=item.id, digest=item.digest, by="ann", facts=fields.get("facts", facts()))
    return signer.api.ask("SIGN", id=item.id, facts=fields.get("facts", facts()))


# ---- risks ----


def test_a_first_transfer_is_said_once(signer, wallet):
    signer.agent("dca", wallet)
    item = ask(signer, to=FRIEND)
    assert risks(item)["recipient.new"].level == pb.RISK_LEVEL_WARNING and "0xd8dA6BF26964aF9D7eEd9e03E53415D37aA96045" in risks(item)["recipient.new"].text
    assert item.effects[0].first
    signer.api.ask("CANCEL", id=item.id, by="agent")
    signed(signer, to=FRIEND)
    item = ask(signer, to=FRIEND, value=2)
    assert "recipient.new" not in risks(item) and not item.effects[0].first


@pytest.mark.parametrize("known", ["contact", "listed", "of the wallet", "own account"])
def test_poisoned_addresses_are_a_danger(signer, wallet, known):
    """An address that begins and ends like a known one: of somebody paid before, listed in the rules, or the wallet's own."""
    listed = [pb.AddressRule(chain=31337, address=FRIEND)]
    signer.agent("dca", wallet, addresses=listed if known == "listed" else [])
    if known == "contact":
        signed(signer, to=FRIEND)
    if known == "of the wallet":
        signer.rules(f"wallet:{wallet.id}", addresses=listed, fee_per_tx=amount(ETHER), fee_day=amount(ETHER))
    model = wallet.address if known == "own account" else FRIEND
    poisoned = model[:2] + b"\x01" * 16 + model[-2:]
    item = ask(signer, to=poisoned, value=5)
    risk = risks(item)["address.poisoned"]
    assert item.risks[0] == risk and risk.level == pb.RISK_LEVEL_DANGER and "0x" + model.hex() in risk.text.lower() and "0x" + poisoned.hex() in risk.text.lower()
    for other in (model[:2] + b"\x01" * 17 + bytes([model[-1] ^ 1]), bytes([model[0], model[1] ^ 1]) + b"\x01" * 16 + model[-2:], FRIEND):
        assert "address.poisoned" not in risks(ask(signer, to=other, value=6))


def test_poisoned_recipient_of_a_token(signer, wallet):
    signer.agent("dca", wallet, limits=[token_limit()])
    signed(signer, to=TOKEN, value=0, data=transfer(FRIEND, 1), facts=facts(gas=60000))
    item = ask(signer, to=TOKEN, value=0, data=transfer(ALIKE, 1), facts=facts(gas=60000))
    assert "address.poisoned" in risks(item)


def test_risks_by_what_is_asked(signer, wallet):
    signer.agent("dca", wallet, limits=[token_limit(unlimited_approvals=True)], allow_messages=True, allow_dangerous=True, allow_creation=True, max_pending=50,
                 addresses=[pb.AddressRule(chain=31337, address=b"\x55" * 20, call=True)])
    gas = {"gas": 60000}
    cases = {
        "approval.given": ("WARNING", {"to": TOKEN, "data": approval(SPENDER, 7)}),
        "approval.unlimited": ("DANGER", {"to": TOKEN, "data": approval(SPENDER, MAX)}),
        "class.dangerous": ("DANGER", {"to": TOKEN, "data": bytes.fromhex("a22cb465") + bytes(12) + SPENDER + word(1)}),
        "class.unknown": ("DANGER", {"to": b"\x55" * 20, "data": b"\x12\x34\x56\x78", "facts": moves(wallet, **gas)}),
        "class.creation": ("WARNING", {"to": b"", "data": b"\x60\x00"}),
        "simulation.missing": ("WARNING", {"to": FRIEND}),
        "simulation.more": ("WARNING", {"to": b"\x56" * 20, "value": 1, "facts": moves(wallet, (NATIVE, b"\x56" * 20, 9))}),
        "token.unnamed": ("NOTE", {"to": TOKEN, "data": transfer(FRIEND, 3)}),
    }
    for name, (level, fields) in cases.items():
        item = ask(signer, **{"value": 0, "facts": facts(**gas), **fields})
        assert item.state == state("pending"), (name, item.error)
        assert pb.RiskLevel.Name(risks(item)[name].level)[11:] == level and risks(item)[name].text, name
        assert [r.level for r in item.risks] == sorted((r.level for r in item.risks), reverse=True)
    note = signer.api.ask("REQUEST", agent="dca", kind=pb.REQUEST_KIND_MESSAGE, chain=31337, data=b"log in", facts=facts())
    assert risks(note)["class.message"].level == pb.RISK_LEVEL_WARNING and "simulation.missing" not in risks(note)
    assert "simulation.missing" not in risks(ask(signer, to=FRIEND, value=3, facts=moves(wallet, (NATIVE, FRIEND, 3))))


def test_risks_and_limits_are_of_the_newest_evaluation(signer, wallet):
    signer.agent("dca", wallet)
    item = ask(signer, to=FRIEND, value=7)
    assert "simulation.missing" in risks(item)
    item = signer.api.ask("APPROVE", id=item.id, digest=item.digest, by="ann", facts=moves(wallet, (NATIVE, FRIEND, 7)))
    assert "simulation.missing" not in risks(item) and item.method == pb.SIM_METHOD_SIMULATE_V1 and item.sim_block == 5
    assert [int.from_bytes(m.amount, "big") for m in item.moves] == [7]


# ---- limits ----


def test_limits_before_and_after(signer, wallet):
    signer.agent("dca", wallet, day=10, week=50, lifetime=70, per_tx=9)
    signer.rules(f"wallet:{wallet.id}", limits=[pb.Limit(chain=31337, asset=NATIVE, per_tx=amount(9), month=amount(100))], fee_per_tx=amount(ETHER), fee_day=amount(ETHER))
    ask(signer, value=4)
    item = ask(signer, value=6)

    def lines(item):
        return {(line.scope, line.asset, line.window): tuple(int.from_bytes(b, "big") for b in (line.before, line.after, line.limit)) for line in item.limits}
    agent, purse, fee = "agent:dca", f"wallet:{wallet.id}", 21000 * 2 * 10**9
    wanted = {(agent, NATIVE, "per_tx"): (0, 6, 9), (agent, NATIVE, "day"): (4, 10, 10), (agent, NATIVE, "week"): (4, 10, 50), (agent, NATIVE, "lifetime"): (4, 10, 70),
              (purse, NATIVE, "per_tx"): (0, 6, 9), (purse, NATIVE, "month"): (4, 10, 100), (purse, FEE, "per_tx"): (0, fee, ETHER), (purse, FEE, "day"): (0, fee, ETHER)}
    assert lines(item) == wanted
    assert risks(item)["limit.near"].level == pb.RISK_LEVEL_NOTE and {line.decimals for line in item.limits} == {18}
    # When it is looked at again, what it has reserved itself is not counted twice.
    assert lines(signer.api.ask("APPROVE", id=item.id, digest=item.digest, by="ann", facts=facts())) == wanted
    refused = ask(signer, value=1)
    assert refused.state == state("denied") and lines(refused)[agent, NATIVE, "day"] == (10, 11, 10)
    listed = next(i for i in signer.api.ask("LIST").items if i.id == item.id)
    assert lines(listed) == wanted and listed.risks and not (listed.trace or listed.data or listed.tree or listed.moves or listed.raw)


def test_more_in_the_simulation_is_in_the_limits(signer, wallet):
    signer.agent("dca", wallet, day=100)
    item = ask(signer, value=1, facts=moves(wallet, (NATIVE, b"\x22" * 20, 8)))
    assert [int.from_bytes(line.after, "big") for line in item.limits if line.window == "day" and line.scope == "agent:dca"] == [8]


# ---- names ----


def test_decimals_and_names_are_the_owners(signer, wallet):
    named = token_limit(decimals=2, symbol="USDC", per_tx=amount(10**6), day=amount(10**7))
    signer.agent("dca", wallet, limits=[named], addresses=[pb.AddressRule(chain=31337, address=FRIEND, note="Vitalik")])
    item = ask(signer, to=TOKEN, value=0, data=transfer(FRIEND, 12345), facts=facts(gas=60000))
    assert item.summary == "Agent dca wants to send 123.45 USDC of 0x3333333333333333333333333333333333333333 to 0xd8dA6BF26964aF9D7eEd9e03E53415D37aA96045"
    assert (item.effects[0].decimals, item.effects[0].symbol, item.effects[0].note) == (2, "USDC", "Vitalik")
    assert {(line.decimals, line.symbol) for line in item.limits if line.asset == TOKEN} == {(2, "USDC")} and "token.unnamed" not in risks(item)
    assert any("123.45 USDC of 0x3333" in c.text for c in item.trace)
    assert "transfer" in item.tree
    native = [pb.Limit(chain=31337, asset=NATIVE, per_tx=amount(ETHER))]
    kept = {"wallets": [pb.AgentWallet(chain=31337, wallet=wallet.id)]}

    def put(**fields):
        return signer.api.fails("RULES_PUT", rules=pb.Rules(**{"scope": "agent:dca", "limits": [*native, named], **kept, **fields}))
    # A taken-over api cannot make an amount or an address look like another one.
    for changed in ({"decimals": 18}, {"symbol": "DUST"}):
        failed = put(limits=[*native, token_limit(**{"decimals": 2, "symbol": "USDC", "per_tx": amount(5), "day": amount(5), **changed})])
        assert failed.code == "forbidden" and "names" in failed.message
    assert put(addresses=[pb.AddressRule(chain=31337, address=FRIEND, note="My bank")]).code == "forbidden"
    assert put(addresses=[pb.AddressRule(chain=31337, address=FRIEND, note="Vitalik")]) is None
    for bad in ({"decimals": 37}, {"symbol": "U SDC"}, {"symbol": "ÜSDC"}, {"symbol": "X" * 17}):
        failed = signer.owner.fails("RULES_PUT", rules=pb.Rules(scope="agent:dca", limits=[token_limit(**bad)]))
        assert failed.code == "invalid_argument"


def test_the_api_cannot_make_requests_wait_longer(signer, wallet):
    signer.agent("dca", wallet, expiry_s=60)
    rules = signer.api.ask("RULES_GET", scope="agent:dca").rules
    rules.expiry_s = 61
    assert signer.api.fails("RULES_PUT", rules=rules).code == "forbidden"
    rules.expiry_s = 0  # 300
    assert signer.api.fails("RULES_PUT", rules=rules).code == "forbidden"
    rules.expiry_s = 59
    signer.api.ask("RULES_PUT", rules=rules)


def test_what_a_spender_could_take_before(signer, wallet):
    signer.agent("dca", wallet, limits=[token_limit()])
    before = pb.Move(**{"asset": TOKEN, "from": wallet.address, "to": SPENDER, "amount": amount(3), "approval": True})
    item = ask(signer, to=TOKEN, value=0, data=approval(SPENDER, 7), facts=facts(gas=60000, allowances=[before]))
    assert item.effects[0].allowance == amount(3) and item.to_has_code
    item = ask(signer, to=TOKEN, value=0, data=approval(FRIEND, 7), facts=facts(gas=60000, allowances=[before]))
    assert item.effects[0].allowance == b""


# ---- what came of it ----


def log(wallet, asset, to, n, approval=False):
    return pb.Move(**{"asset": asset, "from": wallet.address, "to": to, "amount": amount(n), "approval": approval})


def included(signer, item, *logs):
    signer.api.ask("REPORT", id=item.id, state=state("broadcast"))
    return signer.api.ask("REPORT", id=item.id, state=state("included"), block=9, block_hash=b"b" * 32, has_logs=True, logs=logs)


def test_a_receipt_as_simulated_is_no_deviation(signer, wallet):
    signer.agent("dca", wallet, limits=[token_limit()])
    for given in (moves(wallet, (TOKEN, FRIEND, 5), gas=60000), facts(gas=60000)):
        item = signed(signer, to=TOKEN, value=0, data=transfer(FRIEND, 5), facts=given)
        item = included(signer, item, log(wallet, TOKEN, FRIEND, 5))
        assert item.deviation == "" and item.block == 9 and item.block_hash == b"b" * 32
    assert signer.spent("agent:dca", asset=TOKEN) == 10
    native = signed(signer, value=5)
    assert included(signer, native).deviation == ""  # no log says anything about the native asset
    again = signer.api.ask("REPORT", id=native.id, state=state("broadcast"))
    assert again.block == 0 and again.block_hash == b""


def test_a_receipt_with_more_than_simulated_is_counted(signer, wallet):
    """A token that takes a fee of its own, or a contract that behaves otherwise on the chain."""
    signer.agent("dca", wallet, limits=[token_limit()])
    item = signed(signer, to=TOKEN, value=0, data=transfer(FRIEND, 5), facts=moves(wallet, (TOKEN, FRIEND, 5), gas=60000))
    item = included(signer, item, log(wallet, TOKEN, FRIEND, 5), log(wallet, TOKEN, SPENDER, 100))
    assert item.deviation == "105 of 0x3333333333333333333333333333333333333333 left the account, where 5 was expected"
    assert signer.spent("agent:dca", asset=TOKEN) == signer.spent(f"wallet:{wallet.id}", asset=TOKEN) == 105
    # After a reorganisation it is included again: the same is not counted twice.
    assert included(signer, item, log(wallet, TOKEN, FRIEND, 5), log(wallet, TOKEN, SPENDER, 100)).deviation
    assert signer.spent("agent:dca", asset=TOKEN) == 105
    signer.restart()
    assert signer.spent("agent:dca", asset=TOKEN) == 105 and signer.api.ask("GET", id=item.id).deviation


def test_a_receipt_with_another_asset_an_approval_or_less(signer, wallet):
    signer.agent("dca", wallet, limits=[token_limit()])
    other = b"\x66" * 20

    def sent():
        return signed(signer, to=TOKEN, value=0, data=transfer(FRIEND, 5), facts=moves(wallet, (TOKEN, FRIEND, 5), gas=60000))
    assert "3 of 0x6666666666666666666666666666666666666666" in included(signer, sent(), log(wallet, TOKEN, FRIEND, 5), log(wallet, other, FRIEND, 3)).deviation
    assert signer.spent("agent:dca", asset=other) == 3
    assert included(signer, sent()).deviation.startswith("0 of 0x3333")
    taken = included(signer, sent(), log(wallet, TOKEN, FRIEND, 5), log(wallet, TOKEN, SPENDER, MAX, approval=True))
    assert "which nobody was shown" in taken.deviation
    # The approval counts as all there is, and the ledger can still be read.
    signer.restart()
    assert signer.spent("agent:dca", asset=TOKEN, window="lifetime") == MAX
    assert ask(signer, to=TOKEN, value=0, data=transfer(FRIEND, 1), facts=facts(gas=60000)).state == state("denied")


def test_reports_cannot_make_the_ledger_unreadable(signer):
    wallet = signer.wallet(kind=pb.WALLET_KIND_EXTERNAL, address=b"\x77" * 20)
    signer.agent("dca", wallet, max_pending=10)
    items = [ask(signer, value=n + 1) for n in range(3)]
    for item in items:
        signer.api.ask("APPROVE", id=item.id, digest=item.digest, by="ann", facts=facts())
        for name in ("awaiting_wallet", "broadcast"):
            signer.api.ask("REPORT", id=item.id, state=state(name))
    for item in items:
        signer.api.ask("REPORT", id=item.id, state=state("mismatch"), actual=[pb.Effect(asset=NATIVE, amount=amount(MAX), to=FRIEND)] * 2)
    signer.restart()
    assert signer.spent("agent:dca", window="lifetime") == MAX
    assert ask(signer, value=1).state == state("denied") and signer.api.ask("AUDIT_VERIFY").broken_at == 0


def test_logs_that_make_no_sense_are_refused(signer, wallet):
    signer.agent("dca", wallet)
    item = signed(signer, value=1)
    signer.api.ask("REPORT", id=item.id, state=state("broadcast"))
    for bad in ([pb.Move(asset=b"x")], [log(wallet, TOKEN, FRIEND, 1)] * 513):
        assert signer.api.fails("REPORT", id=item.id, state=state("included"), has_logs=True, logs=bad).code == "invalid_argument"
    assert signer.api.fails("REPORT", id=item.id, state=state("included"), block_hash=b"x").code == "invalid_argument"
    assert signer.api.ask("GET", id=item.id).state == state("broadcast")


def test_every_signature_is_kept(signer, wallet):
    signer.rules(f"wallet:{wallet.id}", fee_per_tx=amount(ETHER), fee_day=amount(ETHER))
    signer.agent("dca", wallet)
    first = signed(signer, value=5)
    second = signer.api.ask("SIGN", id=first.id, facts=facts(), mode=pb.SIGN_MODE_SPEED_UP, generation=1)
    assert signer.api.ask("SIGN", id=first.id, facts=facts(), mode=pb.SIGN_MODE_SPEED_UP, generation=1).raw == second.raw
    assert signer.api.fails("SIGN", id=first.id, facts=facts(), mode=pb.SIGN_MODE_CANCEL, generation=1).code == "conflict"
    third = signer.api.ask("SIGN", id=first.id, facts=facts(), mode=pb.SIGN_MODE_CANCEL, generation=2)
    item = signer.api.ask("GET", id=first.id)
    assert [(a.generation, a.raw, a.hash, a.nonce) for a in item.attempts] == [(i.generation, i.raw, i.hash, 0) for i in (first, second, third)]
    assert item.raw == third.raw and item.gas == 21000 and int.from_bytes(item.fee, "big") == 21000 * 2 * 10**9
    assert [i.seq for i in signer.api.ask("LIST").items] == [1] and item.changed_ms >= item.created_ms
