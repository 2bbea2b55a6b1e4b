"""Requests that are approved here and confirmed in a wallet elsewhere: WalletKit is the wallet, anvil the chain."""

import contextlib
import json
import os
import signal

import pytest

import agents_kit
import paddock
import signer
from agents_kit import pack
from spend_kit import ETHER, FRIEND, Bank
from test_events import Stream
from walletconnect_kit import CHAIN, FIRST, Wallet, anvil, connect, daemon, modules, relay, sessions  # noqa: F401

TYPED = {"types": {"EIP712Domain": [{"name": "name", "type": "string"}, {"name": "chainId", "type": "uint256"}, {"name": "verifyingContract", "type": "address"}],
                   "Mail": [{"name": "text", "type": "string"}]},
         "primaryType": "Mail", "domain": {"name": "Post", "chainId": 31337, "verifyingContract": FRIEND}, "message": {"text": "hello"}}

RULES = {"allow_messages": True, "typed": [signer.pb.TypedRule(chain=31337, contract=bytes.fromhex(FRIEND[2:]), primary_type="Mail")]}


@pytest.fixture(scope="module")
def agent(daemon):
    api = daemon.client()
    response = api.post("/v1/agents", {"manifest": agents_kit.manifest(permissions={"chains": [CHAIN]}), "consent": True, "name": "caller"})
    assert response.status == 201, response
    it = agents_kit.Agent(api, response.json())
    assert it.upload(pack("index.js", "sdk.js", "run.js")).status == 202
    it.wait("stopped")
    it.do("start")
    it.until_logged("hello by the API")
    yield it
    api = daemon.client()
    paddock.until(lambda: api.delete(it.path).status in (204, 404), "the agent is removed")


@pytest.fixture(scope="module")
def person(modules, relay, anvil):
    it = Wallet(modules, relay, anvil)
    yield it
    it.stop()


@pytest.fixture(scope="module")
def bank(daemon, agent, person):
    connect(daemon, person, label="phone")
    found = paddock.until(lambda: [w for w in daemon.client().get("/v1/wallets").json()["wallets"] if w["address"] == FIRST], "the account is a wallet")[0]
    assert (found["kind"], found["label"]) == ("external", "phone")
    return Bank(daemon, agent, wallet=signer.pb.Wallet(id=found["id"]), **RULES)


@pytest.fixture(autouse=True)
def session(daemon, bank, person):
    """Every test has a session, and a wallet whose owner agrees."""
    if not sessions(daemon):
        connect(daemon, person)
    person.do("mode", to="approve")


def asked(bank, person, value):
    """Approved here, and shown by the wallet, whose owner thinks about it."""
    person.do("mode", to="hold")
    answer = bank.send(value)
    item = bank.until_pending(value)
    bank.approve(item)
    request = person.wait("request")
    assert bank.get(item["id"])["state"] == "awaiting_wallet"
    return item, answer, request


def spent(bank):
    """Today, of the native asset, by the signer's ledger."""
    lines = bank.own("SPENT", scope=f"agent:{bank.agent.id}").lines
    return sum(int.from_bytes(line.day, "big") for line in lines if line.asset == signer.NATIVE)


def rpc(bank, method, *params):
    """From the agent, beside the test: {result} or {error}."""
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
    return bank.start(f"""const r = await fetch(env.ASSEGAI_API_PROXY + '/rpc/{CHAIN}', {{ method: 'POST',
        headers: {{ ...headers, 'content-type': 'application/json' }}, body: {json.dumps(body)} }}); return await r.json()""")


def pending(bank, kind):
    return paddock.until(lambda: next((t for t in bank.list(state="pending") if t["kind"] == kind), None), f"a {kind} is pending")


def test_the_wallet_sends(bank, person, anvil):
    before = anvil.balance(FRIEND)
    card, hash = bank.done(11)
    request = person.wait("request")
    assert request["method"] == "eth_sendTransaction" and request["chain"] == CHAIN
    sent = request["params"][0]
    assert (sent["from"], sent["to"].lower(), int(sent["value"], 16), sent["data"]) == (FIRST, FRIEND.lower(), 11, "0x")
    assert person.wait("answered")["result"] == hash
    bank.until_state(card["id"], "included", "confirmed", "final")
    assert anvil.balance(FRIEND) == before + 11


def test_the_owner_rejects(bank, person, anvil):
    person.do("mode", to="reject")
    answer = bank.send(12)
    item = bank.until_pending(12)
    bank.approve(item)
    assert bank.until_state(item["id"], "wallet_rejected")
    assert "rejected by user" in answer.result(60)["body"]["error"]


def test_the_owner_edits_the_amount(bank, daemon, person, anvil):
    """What was really sent is counted beside what was approved, the agent is told, and so is whoever listens."""
    person.do("mode", to="edit")
    before = spent(bank)
    stream = Stream(daemon, "type=transaction.changed")
    answer = bank.send(13)
    item = bank.until_pending(13)
    bank.approve(item)
    assert bank.until_state(item["id"], "mismatch")
    assert spent(bank) == before + 13 + 14
    told = lambda: [e["data"]["state"] for e in [json.loads(e["data"]) for e in list(stream.events)] if e["data"]["id"] == item["id"]]  # noqa: E731
    paddock.until(lambda: "mismatch" in told(), "the event is there")
    assert told() == ["awaiting_wallet", "broadcast", "mismatch"]
    stream.close()
    answer.result(60)
    assert anvil.ask("eth_getTransactionByHash", person.wait("answered")["result"])["value"] == hex(14)


def test_messages_and_typed_data(bank, person):
    answer = rpc(bank, "personal_sign", "0x" + b"hello".hex(), FIRST)
    item = pending(bank, "message")
    bank.approve(item)
    assert answer.result(60)["result"] == person.wait("answered")["result"]
    answer = rpc(bank, "eth_signTypedData_v4", FIRST, json.dumps(TYPED))
    item = pending(bank, "typed_data")
    bank.approve(item)
    assert answer.result(60)["result"] == person.wait("answered")["result"]


@pytest.mark.parametrize("mode", ("approve", "wrong"))
def test_a_signature_that_comes_late(bank, person, daemon, mode):
    """The request was given up. The wallet's signature is kept if it is the account's, and is there in the next api."""
    person.do("mode", to="hold")
    answer = rpc(bank, "personal_sign", "0x" + f"late {mode}".encode().hex(), FIRST)
    item = pending(bank, "message")
    bank.approve(item)
    person.wait("request")
    bank.own("REPORT", id=item["id"], state=signer.state("wallet_timeout"))
    assert "timeout" in answer.result(60)["error"]["message"]
    person.tell("release", to=mode)
    signature = person.wait("answered")["result"]
    if mode == "wrong":
        paddock.until(lambda: "a late signature of its wallet: the wallet's signature is not the account's" in daemon.log(400), "it is said")
        assert bank.get(item["id"])["state"] == "wallet_timeout"
        return
    bank.until_state(item["id"], "broadcast")
    daemon.kill_api()
    assert bank.get(item["id"])["card"]["signature"] == signature


def test_a_signer_that_is_away_loses_no_signature(bank, person, daemon):
    """The wallet has answered and the signer cannot keep it: it is told as soon as it is back."""
    person.do("mode", to="hold")
    answer = rpc(bank, "personal_sign", "0x" + b"away".hex(), FIRST)
    item = pending(bank, "message")
    bank.approve(item)
    person.wait("request")
    pid = next(p for p in daemon.programs() if paddock.comm(p) == "paddock-signer")
    os.kill(pid, signal.SIGSTOP)
    person.tell("release")
    signature = person.wait("answered")["result"]
    daemon.api_kills += 1
    paddock.kill(pid)
    assert answer.result(60)["result"] == signature
    assert bank.until_state(item["id"], "broadcast")["card"]["signature"] == signature


def test_a_signature_of_somebody_else(bank, person):
    person.do("mode", to="wrong")
    answer = rpc(bank, "personal_sign", "0x" + b"other".hex(), FIRST)
    item = pending(bank, "message")
    bank.approve(item)
    assert bank.until_state(item["id"], "mismatch")
    assert answer.result(60)["error"]["message"] == "the wallet's signature is not the account's"


@pytest.mark.parametrize(("says", "state"), [("1626ba7e", "broadcast"), ("ffffffff", "mismatch")])
def test_a_contract_judges_signatures(bank, person, anvil, says, state):
    """EIP-1271: what the account's key did not sign, the contract that the account is may accept."""
    person.do("mode", to="wrong")
    anvil.ask("anvil_setCode", FIRST, f"0x63{says}60e01b60005260206000f3")
    try:
        answer = rpc(bank, "personal_sign", "0x" + f"says {says}".encode().hex(), FIRST)
        item = pending(bank, "message")
        bank.approve(item)
        result = answer.result(60)
        assert bank.until_state(item["id"], state, "final")["state"] in (state, "final")
        assert ("result" in result) == (state == "broadcast")
    finally:
        anvil.ask("anvil_setCode", FIRST, "0x")


def test_killed_while_the_owner_thinks(bank, daemon, relay, person, anvil):
    """The api is another one; the wallet is not asked twice, and its answer counts."""
    count = len(relay.published(1108))
    item, answer, _ = asked(bank, person, 15)
    daemon.kill_api()
    person.tell("release")
    hash = person.wait("answered")["result"]
    assert bank.until_state(item["id"], "included", "confirmed", "final")["hash"] == hash
    assert len(relay.published(1108)) == count + 1


@contextlib.contextmanager
def vault_stopped(daemon):
    pid = next(p for p, name in daemon.programs().items() if name == "paddock-vault")
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


@pytest.mark.parametrize("killed", (False, True), ids=("stopped", "killed"))
def test_a_wallet_is_asked_when_its_number_is_kept(bank, daemon, relay, person, killed):
    """A number that was sent and not written down would be sent again after a restart: paid twice. While the vault does not write, the wallet
    is not asked; when the api dies then, it never is."""
    count = len(relay.published(1108))
    person.do("mode", to="approve")
    with vault_stopped(daemon):
        listed = signer.pb.AddressRule(chain=31337, address=bytes.fromhex(FRIEND[2:]))
        bank.allow(addresses=[listed], auto_below=signer.amount(100), expiry_s=8 if killed else 300, **RULES)
        value = 31 + killed
        answer = bank.send(value)
        item = paddock.until(lambda: next((t for t in bank.list(state="awaiting_wallet") if int(t["value"]) == value), None), "it waits for the wallet")
        person.do("ping")  # whose answer is behind all that was sent before
        assert len(relay.published(1108)) == count, "the wallet was asked before its number was kept"
        if killed:
            daemon.kill_api()
    bank.allow(**RULES)
    if killed:
        bank.until_state(item["id"], "wallet_timeout")
        person.do("ping")
        assert len(relay.published(1108)) == count
    else:
        assert answer.result(60)["status"] == 200
        bank.until_state(item["id"], "included", "confirmed", "final")
        assert len(relay.published(1108)) == count + 1


def test_answered_while_the_daemon_is_down(bank, daemon, relay, person):
    """The relay keeps the answer, and the daemon asks for nothing twice."""
    count = len(relay.published(1108))
    item, answer, _ = asked(bank, person, 16)
    daemon.kill_keeper()
    person.tell("release")
    hash = person.wait("answered")["result"]
    daemon.start()
    assert bank.until_state(item["id"], "included", "confirmed", "final")["hash"] == hash
    assert len(relay.published(1108)) == count + 1


def test_the_relay_drops_the_line_meanwhile(bank, relay, person):
    item, answer, _ = asked(bank, person, 17)
    relay.ask("/down?ms=1000")
    person.tell("release")
    assert bank.until_state(item["id"], "included", "confirmed", "final")
    assert answer.result(60)["status"] == 200


def test_the_wallet_leaves_meanwhile(bank, daemon, person):
    item, answer, _ = asked(bank, person, 18)
    person.do("disconnect")
    assert bank.until_state(item["id"], "wallet_timeout")
    assert "error" in answer.result(60)["body"]
    person.do("forget")
    assert sessions(daemon) == []


def automatic(bank, value, seconds):
    """Approved by its rules, with this much time for the wallet."""
    listed = signer.pb.AddressRule(chain=31337, address=bytes.fromhex(FRIEND[2:]))
    bank.allow(addresses=[listed], auto_below=signer.amount(100), expiry_s=seconds, **RULES)
    return bank.send(value)


def too_late(bank, relay, person, value, mode):
    """The wallet has sent it, and its answer stays in the relay until the time is over: the request's id."""
    person.do("mode", to=mode)
    for seconds in (3, 15, 60):  # a slow machine needs longer to come as far as the wallet
        known = {t["id"] for t in bank.list()}
        answer = automatic(bank, value, seconds)
        item = paddock.until(lambda: next((t for t in bank.list() if t["id"] not in known), None), "it is asked for")
        state = bank.until_state(item["id"], "wallet_timeout", "expired", timeout=100)["state"]
        assert "timeout" in answer.result(60)["body"]["error"]
        hash = sent(person) if state == "wallet_timeout" else None
        if hash:
            return item["id"], hash
        if state == "wallet_timeout":
            bank.own("SETTLE", id=item["id"], note="again")
    raise AssertionError("the wallet was never fast enough")


def sent(person):
    """The hash in the wallet's answer to the request that it shows; None: it shows none, or does not answer any more."""
    shows = False
    while shows or not person.events.empty():
        one = person.events.get(timeout=60 * paddock.SLOW)
        shows |= one["event"] == "request"
        if shows and one["event"] in ("answered", "failed"):
            return one.get("result")
    return None


def test_the_time_is_over(bank, daemon, relay, person):
    """By the clock it ends as wallet_timeout, which counts. A late answer is believed: it is followed, or a mismatch, also where the
    owner has settled it meanwhile and the api is another one."""
    before = spent(bank)
    relay.ask("/hold?tag=1109")
    try:
        same, hash = too_late(bank, relay, person, 22, "approve")
        edited, _ = too_late(bank, relay, person, 24, "edit")
        assert spent(bank) == before + 22 + 24
        bank.own("SETTLE", id=same, note="it never answered")
        assert spent(bank) == before + 24
        daemon.kill_api()
    finally:
        relay.ask("/release")
        bank.allow(**RULES)
    assert bank.until_state(same, "included", "confirmed", "final")["hash"] == hash
    assert bank.until_state(edited, "mismatch")
    assert spent(bank) == before + 22 + 24 + 25


def test_cancelled_is_not_asked(bank, daemon, relay, person):
    """What was not approved never reaches the wallet."""
    count = len(relay.published(1108))
    answer = bank.send(19)
    item = bank.until_pending(19)
    assert bank.say(item["id"], "reject", note="no").status == 200
    answer.result(60)
    assert len(relay.published(1108)) == count
