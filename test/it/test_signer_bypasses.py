"""How limits get bypassed (WALLET.md 5.4), row by row, and the signer's answer to each: docs/design/signer.md has the table.

One signer for the file, an agent and a wallet of its own for each test. test/mutants/list.txt takes the answers away one by one.
"""

import json
import os
import re
import threading

import pytest
import signer as rig
from signer import ETHER, NATIVE, Failed, amount, facts, pb, request, state

TOKEN, SPENDER, OTHER = b"\x33" * 20, b"\x44" * 20, b"\x22" * 20
MAX = 2**256 - 1
FEES = {"fee_per_tx": amount(ETHER), "fee_day": amount(1000 * ETHER)}


@pytest.fixture(scope="module")
def signer(tmp_path_factory):
    base = tmp_path_factory.mktemp("bypasses")
    os.chmod(base, 0o711)
    one = rig.Signer(base / "signer")
    yield one
    one.kill()


class Agent:
    """With 100 wei and 100 of a token a day, and gas enough for calls."""

    def __init__(self, signer, name, **rules):
        self.signer, self.name, self.wallet = signer, name, signer.wallet(kind=pb.WALLET_KIND_GENERATED, label=name)
        signer.rules(f"wallet:{self.wallet.id}", **FEES)
        self.rules = {"per_tx": 100, "day": 100, "max_pending": 50, **rules}
        self.put()

    def put(self, **more):
        self.rules |= more
        limit = pb.Limit(chain=31337, asset=TOKEN, per_tx=amount(100), day=amount(100), unlimited_approvals=self.rules.get("unlimited", False))
        self.signer.agent(self.name, self.wallet, limits=[limit], **{k: v for k, v in self.rules.items() if k != "unlimited"})

    def ask(self, **fields):
        return self.signer.api.ask("REQUEST", **{**request(agent=self.name), "facts": self.facts(), **fields})

    def facts(self, **fields):
        return facts(**{"gas": 60000, **fields})

    def call(self, data, to=TOKEN, value=0, **fields):
        return self.ask(to=to, value=amount(value), data=data, **fields)

    def sign_typed(self, document):
        return self.ask(kind=pb.REQUEST_KIND_TYPED, to=b"", value=b"", data=json.dumps(document).encode())

    def approve(self, item, by="ann", **more):
        return self.signer.api.ask("APPROVE", id=item.id, digest=item.digest, by=by, facts=self.facts(**more))

    def sign(self, item, **more):
        return self.signer.api.ask("SIGN", id=item.id, facts=self.facts(**more))

    def spent(self, asset=NATIVE, scope=None):
        return self.signer.spent(scope or f"agent:{self.name}", asset=asset)

    def sim(self, *moves, **fields):
        """(asset, to, amount[, approval]) out of the account"""
        return self.facts(method=pb.SIM_METHOD_SIMULATE_V1, **fields, moves=[
            pb.Move(**{"asset": a, "from": self.wallet.address, "to": to, "amount": amount(n), "approval": bool(more)}) for a, to, n, *more in moves])


@pytest.fixture
def agent(signer, request):
    return Agent(signer, re.sub(r"\W+", "-", request.node.name).strip("-")[:60])


def words(*values):
    return b"".join(v if isinstance(v, bytes) and len(v) == 32 else bytes(12) + v if isinstance(v, bytes) else v.to_bytes(32, "big") for v in values)


def call(selector, *values):
    return bytes.fromhex(selector) + words(*values)


def padded(data):
    return len(data).to_bytes(32, "big") + data + bytes(-len(data) % 32)


def transfer(n, to=OTHER):
    return call("a9059cbb", to, n)


def multicall(*calls):
    offsets, tail = [], b""
    for each in calls:
        offsets.append(32 * len(calls) + len(tail))
        tail += padded(each)
    return bytes.fromhex("ac9650d8") + words(32, len(calls), *offsets) + tail


def execute(to, value, data):
    return bytes.fromhex("b61d27f6") + words(to, value, 96) + padded(data)


def is_denied(item, text):
    assert item.state == state("denied") and text in item.error, item.error or pb.State.Name(item.state)


# ---- approve(max), and then somebody else pulls ----


def test_row_approvals_are_spending(agent):
    is_denied(agent.call(call("095ea7b3", SPENDER, MAX)), "unlimited approval")
    is_denied(agent.call(call("095ea7b3", SPENDER, 2**255)), "unlimited approval")
    is_denied(agent.call(call("39509351", SPENDER, MAX)), "unlimited approval")  # increaseAllowance
    is_denied(agent.call(call("095ea7b3", SPENDER, 101)), "exceeds the configured allowance")
    assert agent.call(call("095ea7b3", SPENDER, 60)).state == state("pending") and agent.spent(TOKEN) == 60
    is_denied(agent.call(transfer(41)), "Total spending limit exceeded")
    agent.put(unlimited=True)
    item = agent.call(call("095ea7b3", b"\x45" * 20, MAX))
    is_denied(item, "Total spending limit exceeded")  # it counts as all that one request may spend


# ---- permit, Permit2, EIP-3009, orders: signatures without a transaction ----


def document(primary, fields, message, contract=TOKEN, chain=31337, types=None):
    return {"types": {primary: [{"name": n, "type": t} for n, t in fields], **(types or {})}, "primaryType": primary,
            "domain": {"name": "T", "chainId": chain, "verifyingContract": "0x" + contract.hex()}, "message": message}


def permit(agent, value, **more):
    fields = [("owner", "address"), ("spender", "address"), ("value", "uint256"), ("nonce", "uint256"), ("deadline", "uint256")]
    return document("Permit", fields, {"owner": "0x" + agent.wallet.address.hex(), "spender": "0x" + SPENDER.hex(), "value": str(value), "nonce": 0, "deadline": 1}, **more)


def test_row_signatures_are_spending(agent):
    is_denied(agent.sign_typed(permit(agent, MAX)), "unlimited approval")
    is_denied(agent.sign_typed(permit(agent, 101)), "exceeds the configured allowance")
    is_denied(agent.sign_typed(permit(agent, 1, contract=b"\x55" * 20)), "No allowance found")
    is_denied(agent.sign_typed(permit(agent, 1, chain=1)), "chain")
    assert agent.sign_typed(permit(agent, 70)).state == state("pending") and agent.spent(TOKEN) == 70
    fields = [("from", "address"), ("to", "address"), ("value", "uint256"), ("validAfter", "uint256"), ("validBefore", "uint256"), ("nonce", "bytes32")]
    message = {"from": "0x" + agent.wallet.address.hex(), "to": "0x" + OTHER.hex(), "value": "31", "validAfter": 0, "validBefore": 1, "nonce": "0x" + "00" * 32}
    is_denied(agent.sign_typed(document("TransferWithAuthorization", fields, message)), "Total spending limit exceeded")
    details = {"PermitDetails": [{"name": n, "type": t} for n, t in (("token", "address"), ("amount", "uint160"), ("expiration", "uint48"), ("nonce", "uint48"))]}
    single = document("PermitSingle", [("details", "PermitDetails"), ("spender", "address"), ("sigDeadline", "uint256")],
                      {"details": {"token": "0x" + TOKEN.hex(), "amount": "31", "expiration": 1, "nonce": 0}, "spender": "0x" + SPENDER.hex(), "sigDeadline": 1},
                      contract=bytes.fromhex("000000000022d473030f116ddee9f6b43ac78ba3"), types=details)
    is_denied(agent.sign_typed(single), "Total spending limit exceeded")


def test_row_signatures_nobody_can_read_are_refused(agent):
    order = document("OrderComponents", [("offerer", "address"), ("salt", "uint256")], {"offerer": "0x" + agent.wallet.address.hex(), "salt": 1})
    is_denied(agent.sign_typed(order), "cannot be decoded")
    is_denied(agent.sign_typed(document("SafeTx", [("to", "address")], {"to": "0x" + OTHER.hex()})), "hand over control")
    is_denied(agent.sign_typed(document("UserOperation", [("sender", "address")], {"sender": "0x" + OTHER.hex()})), "hand over control")
    is_denied(agent.ask(kind=pb.REQUEST_KIND_MESSAGE, to=b"", value=b"", data=b"\x01" * 32), "Signing messages is")  # eth_sign's raw hash has no call at all
    agent.put(allow_dangerous=True)
    for data in (b"Sign in", b"\x01" * 32):  # the permission for messages is needed for both
        is_denied(agent.ask(kind=pb.REQUEST_KIND_MESSAGE, to=b"", value=b"", data=data), "Signing messages is not allowed")


# ---- EIP-7702, blobs, unprotected transactions ----


def test_row_delegated_accounts_do_not_sign(agent):
    is_denied(agent.ask(value=amount(1), facts=agent.facts(account_delegated=True)), "EIP-7702")
    is_denied(agent.sign_typed(document("Authorization", [("chainId", "uint256"), ("address", "address"), ("nonce", "uint64")],
                                        {"chainId": 31337, "address": "0x" + OTHER.hex(), "nonce": 0})), "hand over control")
    for legacy, kind in ((False, b"\x02"), (True, b"\xf8")):
        item = agent.ask(value=amount(2 + legacy))
        agent.approve(item)
        raw = agent.sign(item, legacy=legacy).raw
        assert raw[:1] == kind  # type 2, or type 0 with the chain's id: there is no way to ask for another
        if legacy:
            assert (31337 * 2 + 35).to_bytes(2, "big") in raw or (31337 * 2 + 36).to_bytes(2, "big") in raw


# ---- value inside calls ----


def test_row_value_counts_in_every_call(agent):
    is_denied(agent.call(call("d0e30db0"), value=101), "exceeds the configured allowance")  # WETH deposit
    is_denied(agent.call(execute(OTHER, 101, b""), value=101, to=b"\x66" * 20), "exceeds the configured allowance")
    # What leaves in the simulation counts where it is more.
    is_denied(agent.ask(value=amount(1), facts=agent.sim((NATIVE, OTHER, 101))), "exceeds the configured allowance")
    item = agent.ask(value=amount(1), facts=agent.sim((NATIVE, OTHER, 61)))
    assert item.state == state("pending") and agent.spent() == 61
    is_denied(agent.ask(value=amount(40)), "Total spending limit exceeded")


# ---- wrappers ----


def test_row_wrappers_are_opened(agent):
    is_denied(agent.call(multicall(transfer(60), transfer(50))), "exceeds the configured allowance")
    is_denied(agent.call(multicall(multicall(multicall(transfer(101))))), "exceeds the configured allowance")
    is_denied(agent.call(execute(TOKEN, 0, call("095ea7b3", SPENDER, MAX)), to=b"\x66" * 20), "unlimited approval")
    is_denied(agent.call(multicall(transfer(1), call("a22cb465", SPENDER, 1))), "hand over control")
    nested = transfer(1)
    for _ in range(6):
        nested = multicall(nested)
    is_denied(agent.call(nested), "cannot be decoded")
    for opaque in (b"\x12\x34\x56\x78" + bytes(32), bytes.fromhex("3593564c") + bytes(96), transfer(1) + b"\0", transfer(1)[:-1]):
        is_denied(agent.call(opaque, to=b"\x66" * 20), "cannot be decoded")
    # A contract that the owner lists may be called so, and then the simulation is counted; without one it is refused.
    agent.put(addresses=[pb.AddressRule(chain=31337, address=b"\x66" * 20, call=True)])
    is_denied(agent.call(b"\x12\x34\x56\x78", to=b"\x66" * 20), "a simulation")
    is_denied(agent.call(b"\x12\x34\x56\x78", to=b"\x66" * 20, facts=agent.sim((TOKEN, OTHER, 101))), "exceeds the configured allowance")
    assert agent.call(b"\x12\x34\x56\x78", to=b"\x66" * 20, facts=agent.sim((TOKEN, OTHER, 99))).state == state("pending") and agent.spent(TOKEN) == 99


WRAPPER, DENIED = b"\x66" * 20, b"\x99" * 20


def safe(to, value, data, operation=0, gas_price=0, refund=bytes(20)):
    return bytes.fromhex("6a761202") + words(to, value, 320, operation, 0, 0, gas_price, bytes(20), refund, 320 + 32 + len(data) + -len(data) % 32) + padded(data) + padded(b"")


def multisend(*calls):
    packed = b"".join(b"\0" + to + value.to_bytes(32, "big") + len(data).to_bytes(32, "big") + data for to, value, data in calls)
    return bytes.fromhex("8d80ff0a") + words(32) + padded(packed)


def aggregate3(to, data):
    return bytes.fromhex("82ad56cb") + words(32, 1, 32, to, 0, 96) + padded(data)


WRAPPED = {
    "execute": lambda to, value, data: execute(to, value, data),
    "safe": lambda to, value, data: safe(to, value, data),
    "multisend": lambda to, value, data: multisend((OTHER, 0, b""), (to, value, data)),
    "a safe's multicall": lambda to, value, data: multicall(safe(to, value, data)),
    "deep": lambda to, value, data: execute(OTHER, 0, multicall(execute(to, value, data))),
}
OPAQUE = b"\x12\x34\x56\x78" + bytes(32)


@pytest.mark.parametrize("how", WRAPPED)
def test_row_inner_targets_are_judged_like_the_outermost(agent, how):
    """Value and calls within a wrapper, against every rule for addresses: each is let through when the rule is not there."""
    wrap, gets = WRAPPED[how], {"to": WRAPPER, "value": 3}
    rules = {"addresses": [pb.AddressRule(chain=31337, address=each) for each in (WRAPPER, OTHER, TOKEN)]}
    inner = {"value": (3, b""), "a call": (0, bytes.fromhex("d0e30db0")), "a call with value": (3, bytes.fromhex("d0e30db0"))}
    for what, (value, data) in inner.items():
        agent.put(addresses=[], only_listed=False, cool_down_s=0)
        item = agent.call(wrap(DENIED, value, data), **gets)
        assert item.state == state("pending"), (what, item.error)
        reached = [x for x in item.effects if x.to == DENIED]
        assert reached and reached[0].target and reached[0].first and int.from_bytes(reached[0].amount, "big") == value, item
        assert any(r.name == "recipient.new" and DENIED.hex() in r.text.lower() for r in item.risks), item.risks
        agent.signer.api.ask("CANCEL", id=item.id, by="agent")
        agent.put(addresses=[*rules["addresses"], pb.AddressRule(chain=31337, address=DENIED, deny=True)])
        is_denied(agent.call(wrap(DENIED, value, data), **gets), f"{DENIED.hex()} is denied")
        agent.put(only_listed=True, **rules)
        is_denied(agent.call(wrap(DENIED, value, data), **gets), f"{DENIED.hex()} is not allowed")
        agent.put(addresses=[*rules["addresses"], pb.AddressRule(chain=31337, address=DENIED)])
        item = agent.call(wrap(DENIED, value, data), **gets)
        assert item.state == state("pending"), (what, item.error)
        agent.signer.api.ask("CANCEL", id=item.id, by="agent")


def test_row_a_simulation_pays_nobody_who_is_denied(agent):
    """What a call that cannot be read sends is known from the simulation alone."""
    listed = pb.AddressRule(chain=31337, address=WRAPPER, call=True)
    gets = {"to": WRAPPER, "facts": agent.sim((TOKEN, DENIED, 5))}
    agent.put(addresses=[listed])
    item = agent.call(OPAQUE, **gets)
    assert item.state == state("pending"), item.error
    agent.signer.api.ask("CANCEL", id=item.id, by="agent")
    agent.put(addresses=[listed, pb.AddressRule(address=DENIED, deny=True)])
    is_denied(agent.call(OPAQUE, **gets), "is denied")


def test_row_the_payee_in_a_wrapper_is_new(agent):
    """The cool-down of a first transfer, and who is named: the payee, not the wrapper that is known."""
    item = agent.ask(to=WRAPPER, value=amount(1))
    agent.approve(item)
    agent.sign(item)
    agent.put(cool_down_s=3600)
    item = agent.call(execute(DENIED, 5, b""), to=WRAPPER, value=7)
    assert f"send 0.000000000000000005 (native) to 0x{DENIED.hex()}" in item.summary, item.summary
    assert [(x.to, int.from_bytes(x.amount, "big"), x.first) for x in item.effects] == [(DENIED, 5, True), (WRAPPER, 2, False)]
    assert agent.spent() == 8
    agent.approve(item)
    with pytest.raises(Failed, match="must wait"):
        agent.sign(item)


def test_row_what_a_wrapper_hides_is_an_unknown_call(agent):
    """One that cannot be read needs the permission to call for itself, and not only for the wrapper."""
    wrapped = {"facts": agent.sim(), "to": WRAPPER}
    listed = [pb.AddressRule(chain=31337, address=WRAPPER, call=True), pb.AddressRule(chain=31337, address=OTHER)]
    for wrap in (execute, lambda to, _, data: aggregate3(to, data), lambda to, _, data: multisend((to, 0, data)), lambda to, _, data: execute(to, 0, data + b"\0")):
        agent.put(addresses=listed)
        item = agent.call(wrap(OTHER, 0, OPAQUE), **wrapped)
        is_denied(item, "cannot be decoded")
        assert [c.text for c in item.trace if c.name == "addresses"][0].startswith("Every address that can be read is allowed")
        agent.put(addresses=[*listed[:1], pb.AddressRule(chain=31337, address=OTHER, call=True)])
        item = agent.call(wrap(OTHER, 0, OPAQUE), **wrapped)
        assert item.state == state("pending") and item.call_class == "unknown", item.error
        agent.signer.api.ask("CANCEL", id=item.id, by="agent")


def test_row_a_crowd_hides_nobody(agent):
    """A call has more parts than are judged: the last of them is one that is denied. No permission to call the wrapper allows that."""
    agent.put(addresses=[pb.AddressRule(chain=31337, address=WRAPPER, call=True), pb.AddressRule(chain=31337, address=DENIED, deny=True)])
    for n, denied in ((62, False), (64, True)):
        calls = [(bytes(18) + bytes([8, i]), 0, b"") for i in range(n)]
        item = agent.call(multisend(*calls, (WRAPPER, 0, OPAQUE)), to=WRAPPER, facts=agent.sim())
        assert (item.state == state("denied")) == denied, item.error
        is_denied(agent.call(multisend(*calls, (DENIED, 0, OPAQUE)), to=WRAPPER, facts=agent.sim()), "more addresses than" if denied else "is denied")


def test_row_who_gets_control_is_judged(agent):
    """An operator, an owner, the code of an upgrade, and who gets the refund of a Safe's gas."""
    agent.put(allow_dangerous=True)
    for data in (call("a22cb465", DENIED, 1), call("f2fde38b", DENIED), call("3659cfe6", DENIED), safe(OTHER, 0, b"", gas_price=1, refund=DENIED)):
        agent.put(addresses=[])
        item = agent.call(data)
        assert item.state == state("pending"), item.error
        assert DENIED in [x.to for x in item.effects if x.target]
        agent.signer.api.ask("CANCEL", id=item.id, by="agent")
        agent.put(addresses=[pb.AddressRule(chain=31337, address=DENIED, deny=True)])
        is_denied(agent.call(data), "is denied")
    assert agent.call(call("a22cb465", DENIED, 0)).state == state("pending")  # which may be taken back from anybody


def test_row_dangers_are_not_crowded_out(agent):
    """A call that reaches many new addresses has more warnings than a card shows."""
    many = [(bytes(18) + bytes([7, i]), 1, b"") for i in range(20)]
    poisoned = agent.wallet.address[:2] + b"\x01" * 16 + agent.wallet.address[-2:]
    item = agent.call(multisend(*many, (poisoned, 1, b"")), to=WRAPPER, value=21)
    assert item.risks[0].name == "address.poisoned" and len(item.risks) == 16, item.risks


# ---- fees of an agent ----


def test_row_an_agents_fees_are_limited_also_faster(agent):
    """An agent's limit holds for what replaces a transaction; without one there is none, so that the api may not take it away."""
    item = agent.ask(value=amount(1))
    agent.approve(item)
    signed = agent.sign(item)
    rules = agent.signer.owner.ask("RULES_GET", scope=f"agent:{agent.name}").rules
    paid = int.from_bytes(signed.fee, "big")

    def faster():
        return agent.signer.api.fails("SIGN", id=item.id, facts=agent.facts(), mode=pb.SIGN_MODE_SPEED_UP)

    for limits in ({"fee_per_tx": amount(paid)}, {"fee_per_tx": amount(2 * paid), "fee_day": amount(paid)}):
        rules.ClearField("fee_day")
        for name, value in limits.items():
            setattr(rules, name, value)
        agent.signer.owner.ask("RULES_PUT", rules=rules)
        failed = faster()
        assert failed and failed.code == "forbidden" and "agent's limit for fees" in failed.message, failed
    looser = pb.Rules.FromString(rules.SerializeToString())
    looser.ClearField("fee_day")
    assert agent.signer.api.fails("RULES_PUT", rules=looser).code == "forbidden"
    agent.signer.owner.ask("RULES_PUT", rules=looser)
    assert faster() is None


def test_row_a_wallets_limit_is_not_dropped(agent):
    """A wallet's limit that is gone limits nothing: dropping it is no tightening."""
    scope = f"wallet:{agent.wallet.id}"
    rules = pb.Rules(scope=scope, **FEES)
    agent.signer.api.ask("RULES_PUT", rules=pb.Rules(scope=scope, limits=[pb.Limit(chain=31337, asset=NATIVE, per_tx=amount(5))], **FEES))
    assert agent.signer.api.fails("RULES_PUT", rules=rules).code == "forbidden"
    is_denied(agent.ask(value=amount(6)), "exceeds the configured allowance")
    agent.signer.owner.ask("RULES_PUT", rules=rules)
    assert agent.ask(value=amount(6)).state == state("pending")


# ---- operators, ownership, upgrades ----


@pytest.mark.parametrize("data", [call("a22cb465", SPENDER, 1), call("959b8c3f", SPENDER), call("f2fde38b", SPENDER), call("3659cfe6", SPENDER),
                                  bytes.fromhex("4f1ef286") + words(SPENDER, 64) + padded(b"")])
def test_row_control_is_not_handed_over(agent, data):
    is_denied(agent.call(data), "hand over control")
    agent.put(allow_dangerous=True, addresses=[pb.AddressRule(chain=31337, address=TOKEN)], auto_below=amount(100))
    item = agent.call(data)
    assert item.state == state("pending") and not item.automatic  # allowed by name, and still never without a person
    assert item.risks[0].name == "class.dangerous" and item.risks[0].level == pb.RISK_LEVEL_DANGER


def test_row_creation(agent):
    is_denied(agent.call(b"\x60\x00", to=b""), "Contract creation is not allowed")
    agent.put(allow_creation=True)
    assert agent.call(b"\x60\x00", to=b"").state == state("pending")


# ---- repeated, parallel, edited ----


def test_row_a_repeated_request_is_the_same(agent):
    first = agent.ask(value=amount(60))
    assert agent.ask(value=amount(60)).id == first.id and agent.spent() == 60
    keyed = agent.ask(value=amount(20), idem_key="k")
    agent.approve(keyed)
    raw = agent.sign(keyed).raw
    assert agent.ask(value=amount(20), idem_key="k").id == keyed.id and agent.sign(keyed).raw == raw and agent.spent() == 80
    with pytest.raises(Failed, match="conflict"):
        agent.ask(value=amount(21), idem_key="k")


def test_row_parallel_requests_do_not_race_a_limit(agent, signer):
    """1,000 of 1 wei from ten streams, and 100 wei: while other streams approve, sign, reject and cancel what comes."""
    agent.put(max_pending=2000)
    peers = [signer.peer("API") for _ in range(10)]
    taken, lock = [], threading.Lock()

    def run(k, peer):
        for n in range(100):
            item = peer.ask("REQUEST", **{**request(agent=agent.name, value=1, to=(k * 100 + n + 1).to_bytes(20, "big")), "facts": agent.facts()})
            if item.state != state("pending"):
                assert item.error == "Total spending limit exceeded"
                continue
            if n % 3 == 0:
                peer.ask("APPROVE", id=item.id, digest=item.digest, by="ann", facts=agent.facts())
                peer.ask("SIGN", id=item.id, facts=agent.facts())
            elif n % 3 == 1:
                peer.ask("REJECT" if k % 2 else "CANCEL", id=item.id, by="ann")
                continue
            with lock:
                taken.append(item.id)
            assert len(taken) <= 100
    threads = [threading.Thread(target=run, args=(k, peer)) for k, peer in enumerate(peers)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert agent.spent() == len(taken) == 100 == agent.spent(scope=f"wallet:{agent.wallet.id}")
    for peer in peers:
        peer.close()


def test_row_what_is_approved_is_what_was_shown(agent, signer):
    shown, other = agent.ask(value=amount(5)), agent.ask(value=amount(90))
    for digest in (other.digest, b"", shown.digest[:-1], bytes(32)):
        assert signer.api.fails("APPROVE", id=shown.id, digest=digest, by="ann", facts=agent.facts()).code == "conflict"
    # The policy runs again at approval, and again at the signature.
    signer.api.ask("CANCEL", id=other.id, by="agent")
    assert "would fail" in signer.api.fails("APPROVE", id=shown.id, digest=shown.digest, by="ann", facts=agent.facts(failure="no")).message
    agent.approve(shown)
    assert signer.api.fails("SIGN", id=shown.id, facts=agent.facts(chain_id=1)).code == "forbidden"
    agent.put(day=4)
    assert signer.api.fails("SIGN", id=shown.id, facts=agent.facts()).message == "Total spending limit exceeded"
    agent.put(day=100)
    assert agent.sign(shown).state == state("signed")
    assert signer.api.fails("APPROVE", id=shown.id, digest=shown.digest, by="bob", facts=agent.facts()).code == "wrong_state"


# ---- between the simulation and the block ----


def test_row_a_simulation_that_lies(agent, signer):
    """It can be asked again at approval and at signing, each time it may only add; and the receipt is compared with it."""
    item = agent.call(transfer(10), facts=agent.sim((TOKEN, OTHER, 10)))
    assert signer.api.fails("APPROVE", id=item.id, digest=item.digest, by="ann", facts=agent.sim((TOKEN, OTHER, 101))).code == "forbidden"
    assert signer.api.fails("APPROVE", id=item.id, digest=item.digest, by="ann", facts=agent.sim((TOKEN, SPENDER, MAX, True))).code == "forbidden"
    agent.signer.api.ask("APPROVE", id=item.id, digest=item.digest, by="ann", facts=agent.sim((TOKEN, OTHER, 30)))
    assert agent.spent(TOKEN) == 30  # what the newest simulation shows is reserved
    item = signer.api.ask("SIGN", id=item.id, facts=agent.sim())  # nothing leaves, it says: the call counts
    assert agent.spent(TOKEN) == 10
    signer.api.ask("REPORT", id=item.id, state=state("broadcast"))
    log = pb.Move(**{"asset": TOKEN, "from": agent.wallet.address, "to": OTHER, "amount": amount(70)})
    item = signer.api.ask("REPORT", id=item.id, state=state("included"), has_logs=True, logs=[log])
    assert item.deviation and agent.spent(TOKEN) == 70
    is_denied(agent.call(transfer(31)), "Total spending limit exceeded")


def test_row_simulation_can_be_required(agent):
    agent.put(require_simulation=True)
    for method in (pb.SIM_METHOD_NONE, pb.SIM_METHOD_ESTIMATE):
        is_denied(agent.ask(value=amount(1), facts=agent.facts(method=method)), "")
    assert agent.ask(value=amount(1), facts=agent.sim()).state == state("pending")


# ---- gas ----


def test_row_gas_has_limits_of_its_own(agent, signer):
    price = ETHER // 60000 // 10
    signer.rules(f"wallet:{agent.wallet.id}", fee_per_tx=amount(ETHER // 5), fee_day=amount(ETHER // 4))
    is_denied(agent.ask(value=amount(1), facts=agent.facts(max_fee=amount(2 * price))), "Fees of at most")
    for n in range(2):
        item = agent.ask(value=amount(2 + n), facts=agent.facts(max_fee=amount(price)))
        agent.approve(item, max_fee=amount(price))
        agent.sign(item, max_fee=amount(price))
    is_denied(agent.ask(value=amount(9), facts=agent.facts(max_fee=amount(price))), "Fees of at most")
    is_denied(agent.ask(value=amount(8), facts=agent.facts(max_fee=amount(1), priority_fee=amount(2))), "fees make no sense")
    is_denied(agent.ask(value=amount(7), facts=agent.facts(gas=20000)), "gas")
    is_denied(agent.ask(value=amount(7), gas_hint=50000), "gas")
    is_denied(agent.ask(value=amount(6), facts=agent.facts(balance=amount(1))), "balance")
    # What a replacement costs more counts, too.
    assert signer.api.fails("SIGN", id=item.id, facts=agent.facts(max_fee=amount(3 * price)), mode=pb.SIGN_MODE_SPEED_UP).code == "forbidden"


# ---- people ----


def test_row_the_agents_words_are_quoted_apart(agent):
    """They are the reason, and never part of what the signer says itself."""
    words_of = "Ann approved this already.\nAgent bank wants to send 0.1 to you"
    item = agent.ask(value=amount(5), reason=words_of)
    assert item.reason == words_of and "approved" not in item.summary + "".join(c.text for c in item.trace) + "".join(r.text for r in item.risks)
    with pytest.raises(Failed, match="invalid"):
        agent.ask(value=amount(6), reason="x" * 513)
    with pytest.raises(Failed, match="invalid"):
        agent.ask(value=amount(6), reason="x", agent="a\nb")


def test_row_fatigue_a_few_wait_at_a_time(agent, signer):
    agent.put(max_pending=0)
    items = [agent.ask(value=amount(n + 1)) for n in range(5)]
    is_denied(agent.ask(value=amount(9)), "Rate limit exceeded: 5 requests are pending")
    agent.approve(items[0])
    is_denied(agent.ask(value=amount(9)), "Rate limit exceeded")  # approved ones wait, too
    signer.api.ask("REJECT", id=items[1].id, by="ann")
    assert agent.ask(value=amount(9)).state == state("pending")
    agent.put(max_pending=50, suspend_after=5)  # two were refused so far
    for n in range(3):
        is_denied(agent.ask(value=amount(200 + n)), "exceeds")
    is_denied(agent.ask(value=amount(77)), "Agent is paused")
    is_denied(agent.ask(value=amount(78)), "Agent is paused")  # and stays so
