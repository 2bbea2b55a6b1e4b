"""Spending where people have a part: wallets in pages, what a card shows, several who approve, the owner's own channel."""

import json
import subprocess

import pytest

import paddock
import signer
from agents_kit import modules  # noqa: F401
from clitool import Cli
from spend_kit import ACCOUNTS, ETHER, FRIEND, Bank, agents, anvil, bank, daemon, front, honest, make_token, other, owner, shaky  # noqa: F401

TYPED = {"types": {"EIP712Domain": [{"name": "name", "type": "string"}, {"name": "chainId", "type": "uint256"}, {"name": "verifyingContract", "type": "address"}],
                   "Mail": [{"name": "text", "type": "string"}]},
         "primaryType": "Mail", "domain": {"name": "Post", "chainId": 31337, "verifyingContract": FRIEND}, "message": {"text": "hello"}}


# ---- a wallet in a page


@pytest.fixture(scope="module")
def page(daemon, agents):
    """An agent whose account is in somebody's browser."""
    agent = agents("page")
    peer = owner(daemon)
    wallet = peer.ask("WALLET_ADD", kind=signer.pb.WALLET_KIND_EXTERNAL, label="browser", address=bytes.fromhex(ACCOUNTS[3][2:])).wallet
    peer.close()
    typed = signer.pb.TypedRule(chain=31337, contract=bytes.fromhex(FRIEND[2:]), primary_type="Mail")
    return Bank(daemon, agent, index=3, wallet=wallet, allow_messages=True, typed=[typed])


def ethers(modules, index, message=None, typed=None):
    """What the wallet with this account of the development chains signs."""
    script = """const { HDNodeWallet } = require("ethers");
      const [index, message, typed] = JSON.parse(process.argv[1]);
      const wallet = HDNodeWallet.fromPhrase("test test test test test test test test test test test junk", undefined, `m/44'/60'/0'/0/${index}`);
      const { EIP712Domain, ...types } = typed ? typed.types : {};
      (typed ? wallet.signTypedData(typed.domain, types, typed.message) : wallet.signMessage(message)).then((s) => console.log(s));"""
    done = subprocess.run(["node", "-e", script, json.dumps([index, message, typed])], cwd=modules, capture_output=True, text=True, timeout=60 * paddock.SLOW, check=True)
    return done.stdout.strip()


def rpc(bank, method, *params):
    """From the agent, beside the test: {result} or {error}."""
    return bank.start(f"return (await rpc({{ jsonrpc: '2.0', id: 7, method: '{method}', params: {json.dumps(params)} }})).body")


def asked(page, method, *params):
    """Approved here: the page is to ask its wallet."""
    wait = rpc(page, method, *params)
    item = paddock.until(lambda: next((t for t in page.list(state="pending") if t["kind"] != "transaction"), None), "it is pending")
    page.approve(page.get(item["id"]))
    page.until_state(item["id"], "awaiting_wallet")
    return wait, item["id"]


def refused(page, id, text, **answer):
    response = page.say(id, "wallet", **answer)
    assert response.status == 400 and text in response.json()["error"]["message"], response
    assert page.get(id)["state"] == "awaiting_wallet"


def test_a_signature_of_a_page(page, modules):
    """Only the account's own signature of this very message is taken; anything else leaves the request as it is."""
    wait, id = asked(page, "personal_sign", "0x" + b"hello".hex(), ACCOUNTS[3])
    right = ethers(modules, 3, "hello")
    refused(page, id, "not the account's", signature=ethers(modules, 4, "hello"))
    refused(page, id, "not the account's", signature=ethers(modules, 3, "other"))
    refused(page, id, "not the account's", signature="0x" + "00" * 65)
    refused(page, id, "not the account's", signature=right[:-2])
    refused(page, id, "bytes", signature="0x" + "00" * 4097)
    refused(page, id, "its answer is a signature", hash="0x" + "11" * 32)
    assert page.say(id, "wallet", signature=right).status == 200
    assert wait.result(60)["result"] == right
    assert page.say(id, "wallet", signature=right).status == 409


def shown_to_the_agent(page, id):
    return page.run(f"return (await fetch(env.ASSEGAI_API_PROXY + '/agent/transactions/{id}', {{ headers }})).json()")


def test_a_signature_is_not_only_in_memory(page, modules, daemon):
    """It is there when every program is another one."""
    wait, id = asked(page, "personal_sign", "0x" + b"kept".hex(), ACCOUNTS[3])
    right = ethers(modules, 3, "kept")
    assert page.say(id, "wallet", signature=right).status == 200
    assert wait.result(60)["result"] == right
    for end in (daemon.kill_api, daemon.restart):
        end()
        card = page.get(id)
        assert card["state"] == "broadcast" and card["card"]["signature"] == right


def test_a_signature_that_comes_late(page, modules):
    """The request was given up: the account's own signature is taken all the same, and whoever asks for the request gets it."""
    wait, id = asked(page, "personal_sign", "0x" + b"late".hex(), ACCOUNTS[3])
    page.own("REPORT", id=id, state=signer.state("wallet_timeout"))
    assert "timeout" in wait.result(60)["error"]["message"]
    answer = page.say(id, "wallet", signature=ethers(modules, 4, "late"))
    assert answer.status == 400 and "not the account's" in answer.json()["error"]["message"]
    assert page.get(id)["state"] == "wallet_timeout" and page.get(id)["card"]["signature"] is None
    right = ethers(modules, 3, "late")
    assert page.say(id, "wallet", signature=right).status == 200
    assert page.get(id)["state"] == "broadcast" and page.get(id)["card"]["signature"] == right
    assert shown_to_the_agent(page, id)["status"] == "broadcast"
    assert page.say(id, "wallet", signature=right).status == 409


def test_typed_data_of_a_page(page, modules):
    wait, id = asked(page, "eth_signTypedData_v4", ACCOUNTS[3], json.dumps(TYPED))
    other = {**TYPED, "message": {"text": "another"}}
    refused(page, id, "not the account's", signature=ethers(modules, 3, typed=other))
    right = ethers(modules, 3, typed=TYPED)
    assert page.say(id, "wallet", signature=right).status == 200
    assert wait.result(60)["result"] == right


def test_a_contract_judges_the_signature_of_a_page(page, anvil):
    """EIP-1271: the account is a contract, whose signatures have any length."""
    signature = "0x" + "5a" * 97
    wait, id = asked(page, "personal_sign", "0x" + b"contract".hex(), ACCOUNTS[3])
    try:
        anvil.ask("anvil_setCode", ACCOUNTS[3], "0x63ffffffff60e01b60005260206000f3")
        refused(page, id, "not the account's", signature=signature)
        # Agrees where the offset is 64 and the length 97.
        anvil.ask("anvil_setCode", ACCOUNTS[3], "0x" + "602435604014" "604435606114" "16" "631626ba7e0260e01b" "60005260206000f3")
        refused(page, id, "not the account's", signature=signature + "00")
        assert page.say(id, "wallet", signature=signature).status == 200
        assert wait.result(60)["result"] == signature
    finally:
        anvil.ask("anvil_setCode", ACCOUNTS[3], "0x")


def test_a_hash_of_a_page_is_compared(page, anvil):
    wait = page.send(2001)
    item = page.until_pending(2001)
    page.approve(item)
    page.until_state(item["id"], "awaiting_wallet")
    refused(page, item["id"], "its answer is a hash", signature="0x" + "00" * 65)
    hash = anvil.ask("eth_sendTransaction", {"from": ACCOUNTS[3], "to": FRIEND, "value": hex(2002)})
    assert page.say(item["id"], "wallet", hash=hash).status == 200
    page.until_state(item["id"], "mismatch")
    wait.result(60)


# ---- what a card shows


def approve(amount):
    return f"0x095ea7b3{int(FRIEND, 16):064x}{amount:064x}"


def permit_of(token, account):
    """Of 90, by EIP-2612."""
    domain = (("name", "string"), ("version", "string"), ("chainId", "uint256"), ("verifyingContract", "address"))
    members = (("owner", "address"), ("spender", "address"), ("value", "uint256"), ("nonce", "uint256"), ("deadline", "uint256"))
    return {"types": {name: [{"name": n, "type": t} for n, t in of] for name, of in (("EIP712Domain", domain), ("Permit", members))},
            "primaryType": "Permit", "domain": {"name": "Coin", "version": "1", "chainId": 31337, "verifyingContract": token},
            "message": {"owner": account, "spender": FRIEND, "value": "90", "nonce": "0", "deadline": "99999999999"}}


def shown(card):
    allowance = card["card"]["allowance"]
    return allowance["spender"].lower(), allowance["before"], allowance["after"]


def test_a_card_shows_the_allowance_before_and_after(bank, anvil):
    """approve() of OpenZeppelin's token, asked of the node at each evaluation, and a permit as typed data."""
    token = make_token(anvil, bank.account)
    permit = permit_of(token, bank.account)
    bank.allow(limits=[signer.pb.Limit(chain=31337, asset=bytes.fromhex(token[2:]), per_tx=signer.amount(300), symbol="COIN")], allow_messages=True)
    try:
        card, _ = bank.done(0, token, data=approve(70))
        assert shown(card) == (FRIEND, "0", "70")
        bank.until_state(card["id"], "confirmed", "final")
        wait = bank.send(0, token, data=approve(80))
        item = bank.until_pending(0)
        assert shown(bank.get(item["id"])) == (FRIEND, "70", "80")
        anvil.receipt(anvil.ask("eth_sendTransaction", {"from": bank.account, "to": token, "data": approve(75)}))
        bank.approve(item)
        assert wait.result(60)["status"] == 200
        assert shown(bank.get(item["id"])) == (FRIEND, "75", "80")
        bank.until_state(item["id"], "confirmed", "final")
        wait = rpc(bank, "eth_signTypedData_v4", bank.account, json.dumps(permit))
        item = paddock.until(lambda: next((t for t in bank.list(state="pending") if t["kind"] == "typed_data"), None), "it is pending")
        assert shown(bank.get(item["id"])) == (FRIEND, "80", "90")
        assert bank.say(item["id"], "reject").status == 200
        wait.result(60)
    finally:
        bank.allow()


def test_an_increased_allowance_is_shown_as_a_whole(shaky, other, honest):
    """Where it cannot be simulated: a simulation that shows more than the call says is refused."""
    def lacks(asked, said):
        return [{"jsonrpc": "2.0", "id": r["id"], "error": {"code": -32601, "message": "no"}} if r["method"] in ("eth_simulateV1", "debug_traceCall") else s for r, s in zip(asked, said)]

    token = make_token(other, shaky.account)
    other.receipt(other.ask("eth_sendTransaction", {"from": shaky.account, "to": token, "data": approve(80)}))
    shaky.allow(limits=[signer.pb.Limit(chain=1337, asset=bytes.fromhex(token[2:]), per_tx=signer.amount(300), symbol="COIN")])
    honest.change = lacks
    try:
        id = shaky.send(0, token, data=f"0x39509351{int(FRIEND, 16):064x}{15:064x}", headers={"Prefer": "respond-async"}).result(60)["body"]["id"]
        assert shown(shaky.get(id)) == (FRIEND, "80", "95")
        assert shaky.say(id, "reject").status == 200
    finally:
        shaky.allow()


# ---- allowances are taken back


def coins(chain, *tokens):
    return [signer.pb.Limit(chain=chain, asset=bytes.fromhex(token[2:]), per_tx=signer.amount(300), symbol="COIN") for token in tokens]


def allowance(chain, token, account):
    return chain.number("eth_call", {"to": token, "data": f"0xdd62ed3e{int(account, 16):064x}{int(FRIEND, 16):064x}"}, "latest")


def confirm(bank, item):
    bank.approve(item)
    bank.until_state(item["id"], "confirmed", "final")


def revoked(bank, id, **body):
    response = bank.say(id, "revoke", **body)
    assert response.status == 200, response
    return response.json()


def cannot_revoke(bank, id, text):
    response = bank.say(id, "revoke")
    assert (response.status, response.json()["error"]["code"]) == (409, "wrong_state") and text in response.json()["error"]["message"], response


def waits(bank, token, data):
    return bank.get(bank.send(0, token, data=data, headers={"Prefer": "respond-async"}).result(60)["body"]["id"])


def test_an_allowance_is_taken_back(bank, anvil, daemon):
    """A person asks for it, and the new request waits for an approval as every other does; when it is mined, nobody may take anything."""
    token = make_token(anvil, bank.account)
    stranger = daemon.client().post("/v1/keys", {"tenant": "no-friend", "role": "user", "create_tenant": True}).json()
    inside = paddock.Client(daemon, bank.run("return env.ASSEGAI_AGENT_TOKEN"))
    bank.allow(limits=coins(31337, token))
    try:
        asked = waits(bank, token, approve(50))
        id = asked["id"]
        cannot_revoke(bank, id, "the request is pending")
        bank.approve(asked)
        bank.until_state(id, "confirmed", "final")
        assert allowance(anvil, token, bank.account) == 50
        for client, status in ((paddock.Client(daemon, stranger["key"]), 404), (inside, 403), (paddock.Client(daemon), 401)):
            assert client.post(f"/v1/transactions/{id}/revoke", {}).status == status
        assert bank.list(state="pending") == []
        first = revoked(bank, id, note="not needed any more")
        assert (first["state"], first["reason"], first["agent"], first["wallet"], first["chain"]) == ("pending", f"revoke {id}", bank.agent.id, bank.wallet.id, bank.chain)
        assert (first["to"], first["value"], first["card"]["data"]) == (asked["to"], "0", approve(0)) and shown(first) == (FRIEND, "50", "0")
        assert revoked(bank, id)["id"] == first["id"]
        # What was rejected is over: it can be asked for again, also by the command line.
        assert bank.say(first["id"], "reject").status == 200
        said = Cli(daemon).ok("tx", "revoke", id).splitlines()
        second = bank.get(said[0].split(":")[0])
        assert said == [f"{second['id']}: pending", f"Approve it with: paddock tx approve {second['id']}"] and second["id"] != first["id"]
        confirm(bank, second)
        assert allowance(anvil, token, bank.account) == 0
        cannot_revoke(bank, id, "the allowance is 0 already")
        cannot_revoke(bank, second["id"], "gives no allowance")
        # It was given anew: what was done before does not answer.
        anvil.receipt(anvil.ask("eth_sendTransaction", {"from": bank.account, "to": token, "data": approve(7)}))
        third = revoked(bank, id)
        assert third["state"] == "pending" and third["id"] not in (first["id"], second["id"])
        assert bank.say(third["id"], "reject").status == 200
    finally:
        bank.allow()


def test_an_allowance_of_a_paused_agent_is_taken_back(bank, anvil, daemon):
    """A person asks, somebody approves, it is signed and mined. The agent itself gets nothing, and the kill switch stops everything."""
    def paused(value):
        bank.allow(limits=coins(31337, token), paused=value)

    token = make_token(anvil, bank.account)
    paused(False)
    try:
        given = waits(bank, token, approve(60))
        confirm(bank, given)
        own = waits(bank, token, approve(0))  # the agent's: it waits when it is paused, and is another request
        paused(True)
        refused = bank.send(0, token, data=approve(3)).result(60)
        assert refused["status"] == 403 and "Agent is paused" in str(refused["body"]), refused
        bank.own("PAUSE", paused=True)
        refused = bank.say(given["id"], "revoke")
        bank.own("PAUSE", paused=False)
        assert refused.status == 403 and "All spending is stopped" in refused.json()["error"]["message"] and "revocation" in refused.json()["error"]["message"], refused
        made = revoked(bank, given["id"])
        assert made["state"] == "pending" and made["id"] != own["id"] and revoked(bank, given["id"])["id"] == made["id"]
        assert bank.say(own["id"], "approve", digest=own["digest"]).status == 403
        confirm(bank, made)
        assert allowance(anvil, token, bank.account) == 0
        assert bank.say(own["id"], "reject").status == 200
    finally:
        bank.allow()


def test_what_gives_no_allowance_is_not_taken_back(bank, anvil):
    """A payment, and approve() of what has no allowances: of ERC-721 it is a token's number, and 0 is one."""
    other = "0x00000000000000000000000000000000000000a7"
    anvil.ask("anvil_setCode", other, "0x00")
    bank.allow(limits=coins(31337, other))
    try:
        card, _ = bank.done(2121)
        cannot_revoke(bank, card["id"], "gives no allowance")
        asked = waits(bank, other, approve(50))
        confirm(bank, asked)
        cannot_revoke(bank, asked["id"], "it is no ERC-20 token")
        assert bank.list(state="pending") == []
        assert bank.say("nonsense", "revoke").status == 404
    finally:
        bank.allow()


def word(*values):
    return "".join(f"{int(v, 16) if isinstance(v, str) else v:064x}" for v in values)


def padded(data):
    """Bytes as an encoder writes them, of a call in hexadecimal digits."""
    return word(len(data[2:]) // 2) + data[2:].ljust(-(-len(data[2:]) // 64) * 64, "0")


def test_an_allowance_that_permit2_keeps_is_taken_back(bank, anvil):
    token, permit2 = make_token(anvil, bank.account), make_token(anvil, bank.account, "Permit2")
    bank.allow(limits=coins(31337, token))
    try:
        given = waits(bank, permit2, f"0x87517c45{word(token, FRIEND, 50, 2**40)}")
        confirm(bank, given)
        made = revoked(bank, given["id"])
        assert (made["to"].lower(), made["card"]["data"]) == (permit2.lower(), f"0x87517c45{word(token, FRIEND, 0, 0)}")
        assert made["state"] == "pending" and revoked(bank, given["id"])["id"] == made["id"]
        confirm(bank, made)
        kept = anvil.ask("eth_call", {"to": permit2, "data": f"0x927da105{word(bank.account, token, FRIEND)}"}, "latest")
        assert int(kept[2:66], 16) == 0 < int(kept[66:130], 16)
        cannot_revoke(bank, given["id"], "the allowance is 0 already")
        cannot_revoke(bank, made["id"], "gives no allowance")
        wrong = waits(bank, token, f"0xac9650d8{word(32, 0)}")  # multicall of nothing
        confirm(bank, wrong)
        cannot_revoke(bank, wrong["id"], "gives no allowance")
    finally:
        bank.allow()


def test_allowances_in_a_batch_are_taken_back_one_by_one(bank, anvil):
    """Of a token that calls itself they are the account's. What another contract gives, that contract must take back."""
    token, second = make_token(anvil, bank.account), f"0x{0xf2:040x}"
    wrapper = f"0x{0xa8:040x}"
    anvil.ask("anvil_setCode", wrapper, "0x00")
    bank.allow(limits=coins(31337, token))
    calls = [padded(data) for data in (approve(50), f"0x095ea7b3{word(second, 60)}")]
    try:
        given = waits(bank, token, f"0xac9650d8{word(32, 2, 64, 64 + len(calls[0]) // 2)}{''.join(calls)}")
        confirm(bank, given)
        for spender in (FRIEND, second):
            made = revoked(bank, given["id"])
            assert made["card"]["data"] == f"0x095ea7b3{word(spender, 0)}" and made["to"].lower() == token.lower()
            assert revoked(bank, given["id"])["id"] == made["id"]
            confirm(bank, made)
        cannot_revoke(bank, given["id"], "the allowance is 0 already")
        inside = waits(bank, wrapper, f"0xb61d27f6{word(token, 0, 96)}{padded(approve(50))}")
        confirm(bank, inside)
        cannot_revoke(bank, inside["id"], "only that can take it back")
    finally:
        bank.allow()


def test_an_allowance_by_a_signature_is_taken_back_when_it_was_used(bank, anvil):
    token = make_token(anvil, bank.account)
    text = json.dumps(permit_of(token, bank.account))
    bank.allow(limits=coins(31337, token))
    try:
        wait = rpc(bank, "eth_signTypedData_v4", bank.account, text)
        item = paddock.until(lambda: next((t for t in bank.list(state="pending") if t["kind"] == "typed_data"), None), "it is pending")
        bank.approve(bank.get(item["id"]))
        signature = wait.result(60)["result"]
        cannot_revoke(bank, item["id"], "Whoever has it can use it until its deadline")
        used = f"0xd505accf{word(bank.account, FRIEND, 90, 99999999999, '0x' + signature[130:], '0x' + signature[2:66], '0x' + signature[66:130])}"
        assert anvil.receipt(anvil.ask("eth_sendTransaction", {"from": ACCOUNTS[4], "to": token, "data": used}))["status"] == "0x1"
        assert allowance(anvil, token, bank.account) == 90
        made = revoked(bank, item["id"])
        confirm(bank, made)
        assert allowance(anvil, token, bank.account) == 0
        cannot_revoke(bank, item["id"], "Whoever has it can use it until its deadline")
    finally:
        bank.allow()


def test_an_allowance_is_taken_back_before_it_is_mined(shaky, other, honest):
    """It is 0 until then. A node that does not say so hinders nothing."""
    def silent(asked):
        return (200, b"nonsense") if isinstance(asked, list) and [r["method"] for r in asked] == ["eth_chainId", "eth_call"] else None

    token = make_token(other, shaky.account)
    shaky.allow(limits=coins(1337, token))
    other.ask("evm_setAutomine", False)
    try:
        asked = waits(shaky, token, approve(50))
        shaky.approve(asked)
        shaky.until_state(asked["id"], "broadcast")
        made = revoked(shaky, asked["id"])
        honest.instead = silent
        assert revoked(shaky, asked["id"])["id"] == made["id"]
        assert ["eth_chainId", "eth_call"] in honest.calls
        honest.instead = None
        shaky.approve(made)
        shaky.until_state(made["id"], "broadcast")
        other.ask("evm_mine")
        for each in (asked, made):
            shaky.until_state(each["id"], "included", "confirmed", "final")
        assert allowance(other, token, shaky.account) == 0
    finally:
        other.ask("evm_setAutomine", True)
        shaky.allow()


# ---- the owner's channel


def test_the_owner_stops_everything(daemon, bank):
    """`paddock wallet pause --cancel-pending` passes the api by: whoever waits is told at once, and not when the request would expire."""
    def cli(*arguments):
        return subprocess.run([paddock.BIN / "paddock", "wallet", *arguments, "--run-dir", daemon.run_dir], capture_output=True, text=True, timeout=60 * paddock.SLOW, check=True)

    bank.allow(expiry_s=3000)
    waits = [bank.send(v) for v in (2101, 2102)]
    for value in (2101, 2102):
        bank.until_pending(value)
    cli("pause", "--cancel-pending")
    try:
        for wait in waits:
            assert wait.result(60) == {"status": 403, "body": {"error": "Transaction rejected by user: cancelled"}}
        assert bank.send(2103).result(60)["body"]["error"].startswith("Agent is paused")
    finally:
        cli("resume")
        bank.allow()
