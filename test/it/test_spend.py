"""Spending: from an agent's request to the end of its transaction, with anvil as the chain and the real signer."""

import contextlib
import io
import json
import re
import subprocess
import tarfile
from pathlib import Path

import pytest

import agents_kit
import paddock
import signer
from agents_kit import RICH, modules  # noqa: F401
from clitool import Cli
from spend_kit import ACCOUNTS, ETHER, FRIEND, Bank, agents, anvil, bank, daemon, front, honest, kill_signer, make_token, other, shaky  # noqa: F401

HERE = Path(__file__).resolve().parent


# ---- decisions


def test_approved(bank, anvil):
    before = anvil.balance(FRIEND)
    card, hash = bank.done(1001)
    assert bank.until_state(card["id"], "confirmed", "final")["hash"] == hash
    assert anvil.balance(FRIEND) == before + 1001
    assert anvil.ask("eth_getTransactionByHash", hash)["from"] == bank.account.lower()


def test_rejected(bank):
    wait = bank.start(f"return attempt(sdk.requestTransaction({{ chain: '{bank.chain}', to: '{FRIEND}', value: '1002' }}))")
    item = bank.until_pending(1002)
    assert bank.say(item["id"], "reject", note="no").status == 200
    assert wait.result(30) == {"code": "TRANSACTION_REJECTED", "status": 403, "message": "Transaction rejected by user"}
    assert bank.get(item["id"])["state"] == "rejected"
    assert bank.say(item["id"], "approve", digest=item["digest"]).status == 409


def test_refused_by_the_policy(bank):
    got = bank.run(f"""return {{
      much: await attempt(sdk.requestTransaction({{ chain: '{bank.chain}', to: '{FRIEND}', value: '{2 * ETHER}' }})),
      checksum: await attempt(sdk.requestTransaction({{ chain: '{bank.chain}', to: '0xF39Fd6e51aad88F6F4ce6aB8827279cffFb92266', value: '1' }})),
      code: await attempt(sdk.requestTransaction({{ chain: '{bank.chain}', to: '{FRIEND}', value: '0', data: '0xa9059cbb' }})),
      address: await sdk.getWalletAddress('{bank.chain}') }}""")
    assert got["much"] == {"code": "INSUFFICIENT_ALLOWANCE", "status": 403, "message": "Requested amount exceeds the configured allowance for this token"}
    assert got["checksum"]["status"] == 400
    assert got["code"]["status"] == 403 and "no code" in got["code"]["message"]
    assert got["address"] == bank.account
    assert [t["state"] for t in bank.list(state="denied")][:2] == ["denied", "denied"]


def test_nobody_decides(bank):
    bank.allow(expiry_s=1)
    assert bank.send(1003).result(30) == {"status": 500, "body": {"error": "Transaction approval timeout"}}
    assert next(t for t in bank.list() if t["value"] == "1003")["state"] == "expired"
    bank.allow()


def test_async_status_and_cancel(bank):
    got = bank.send(1004, headers={"Prefer": "respond-async, wait=1"}).result(30)
    assert got["status"] == 202 and got["body"]["status"] == "pending", got
    id = got["body"]["id"]
    look = f"""const one = async (verb, path) => {{ const r = await fetch(env.ASSEGAI_API_PROXY + path, {{ method: verb, headers }}); return {{ status: r.status, body: await r.json() }} }};
      return {{ before: await one('GET', '/agent/transactions/{id}'), cancel: await one('POST', '/agent/transactions/{id}/cancel'),
        after: await one('GET', '/agent/transactions/{id}'), twice: await one('POST', '/agent/transactions/{id}/cancel'), none: await one('GET', '/agent/transactions/nonsense') }}"""
    got = bank.run(look)
    assert got["before"]["body"] == {"id": id, "status": "pending", "txHash": None, "error": None}
    assert got["cancel"]["body"]["status"] == got["after"]["body"]["status"] == "cancelled"
    assert got["twice"]["status"] == 409
    assert got["none"]["status"] == 404
    id = bank.send(1005, headers={"Prefer": "respond-async"}).result(30)["body"]["id"]
    bank.approve(bank.get(id))
    bank.until_state(id, "broadcast", "included", "confirmed", "final")
    got = bank.run(f"return (await fetch(env.ASSEGAI_API_PROXY + '/agent/transactions/{id}', {{ headers }})).json()")
    assert got["txHash"] == bank.get(id)["hash"]


def test_a_key_is_used_once(bank, anvil):
    before = anvil.balance(FRIEND)
    key = {"Idempotency-Key": "first"}
    waits = [bank.send(1006, headers=key), bank.send(1006, headers=key)]
    item = bank.until_pending(1006)
    bank.approve(item)
    hashes = {w.result(60)["body"]["txHash"] for w in waits} | {bank.send(1006, headers=key).result(60)["body"]["txHash"]}
    assert len(hashes) == 1
    assert bank.send(1007, headers=key).result(30)["status"] == 409
    bank.until_state(item["id"], "confirmed", "final")
    assert anvil.balance(FRIEND) == before + 1006
    assert len([t for t in bank.list() if t["value"] == "1006"]) == 1


def test_a_client_that_gives_up_and_asks_again(bank, anvil):
    """The SDK aborts after 30 s and its user calls it again: here after one second, while it is pending and after it was sent."""
    before = anvil.balance(FRIEND)
    ask = f"sdk.requestTransaction({{ chain: '{bank.chain}', to: '{FRIEND}', value: '1008' }})"
    aborted = bank.run(f"sdk.timeout = 1000; return attempt({ask})")
    assert aborted["code"] == "TIMEOUT"
    again = bank.start(f"sdk.timeout = 1500; return attempt({ask})")
    item = bank.until_pending(1008)
    assert again.result(30)["code"] == "TIMEOUT"
    bank.approve(item)
    card = bank.until_state(item["id"], "broadcast", "included", "confirmed", "final")
    assert bank.run(f"return {ask}") == {"success": True, "txHash": card["hash"]}
    assert len([t for t in bank.list() if t["value"] == "1008"]) == 1
    anvil.receipt(card["hash"])
    assert anvil.balance(FRIEND) == before + 1008
    # Asked for once more, it is a new request.
    wait = bank.send(1008)
    assert bank.say(bank.until_pending(1008)["id"], "reject").status == 200
    assert wait.result(30)["status"] == 403


def test_json_rpc(bank, anvil):
    """What libraries send: eth_sendTransaction, personal_sign and typed data."""
    bank.allow(allow_messages=True, typed=[signer.pb.TypedRule(chain=31337, contract=bytes.fromhex(FRIEND[2:]), primary_type="Note")])
    one = "const one = (method, ...params) => rpc({ jsonrpc: '2.0', id: 7, method, params });"
    fields = {"from": bank.account.lower(), "to": FRIEND, "value": "0x3f1", "gas": "0x5208", "maxFeePerGas": "0x1", "chainId": "0x7a69", "type": "0x2"}
    sent = bank.start(f"{one} return one('eth_sendTransaction', {json.dumps(fields)})")
    item = bank.until_pending(1009)
    bank.approve(item)
    assert sent.result(60)["body"]["result"] == bank.get(item["id"])["hash"]
    for wrong in ({**fields, "from": FRIEND}, {**fields, "chainId": "0x1"}, {**fields, "type": "0x4"}, {**fields, "accessList": []}):
        assert "error" in bank.run(f"{one} return one('eth_sendTransaction', {json.dumps(wrong)})")["body"]
    typed = {"domain": {"chainId": 31337, "verifyingContract": FRIEND}, "primaryType": "Note", "message": {"text": "hello"},
             "types": {"EIP712Domain": [{"name": "chainId", "type": "uint256"}, {"name": "verifyingContract", "type": "address"}], "Note": [{"name": "text", "type": "string"}]}}
    for method, params in (("personal_sign", ["0x68656c6c6f", bank.account]), ("eth_signTypedData_v4", [bank.account, json.dumps(typed)])):
        wait = bank.start(f"{one} return one('{method}', ...{json.dumps(params)})")
        item = paddock.until(lambda: next(iter(bank.list(state="pending")), None), "it is pending")
        bank.approve(bank.get(item["id"]))
        # anvil has the same keys.
        assert wait.result(60)["body"]["result"] == anvil.ask(method, params[0], typed if method == "eth_signTypedData_v4" else params[1])
    wait = bank.start(f"{one} return one('personal_sign', 'no', '{bank.account}')")
    item = paddock.until(lambda: next(iter(bank.list(state="pending")), None), "it is pending")
    bank.say(item["id"], "reject")
    assert wait.result(30)["body"]["error"]["code"] == 4001
    assert bank.run(f"{one} return one('eth_accounts')")["body"]["result"] == [bank.account]
    bank.allow()


def test_fields_that_agents_may_not_set(bank):
    """EIP-7702, blobs, access lists; nonce and fees where they would hold: refused on both ways, and nobody is asked."""
    before = len(bank.list())
    plain = {"from": bank.account, "to": FRIEND, "value": "0x3f2"}
    by_rpc = [{"authorizationList": []}, {"authorizationList": [{"chainId": "0x7a69", "address": FRIEND, "nonce": "0x0"}]}, {"accessList": []}, {"blobs": []}, {"sidecars": []},
              {"blobVersionedHashes": ["0x01" + "00" * 31]}, {"maxFeePerBlobGas": "0x1"}, {"type": "0x3"}, {"type": "0x4"}, {"type": "0x7f"}, {"from": FRIEND}, {"privateFor": []}]
    by_route = [{"authorizationList": []}, {"accessList": []}, {"blobVersionedHashes": []}, {"maxFeePerGas": "1"}, {"maxPriorityFeePerGas": "1"}, {"gasPrice": "1"}, {"nonce": "1"},
                {"type": "4"}, {"from": bank.account}]
    got = bank.run(f"""const said = [];
      for (const more of {json.dumps(by_rpc)}) said.push((await rpc({{ jsonrpc: '2.0', id: 1, method: 'eth_sendTransaction', params: [{{ ...{json.dumps(plain)}, ...more }}] }})).body.error?.message);
      for (const more of {json.dumps(by_route)}) said.push((await fetch(env.ASSEGAI_API_PROXY + '/agent/request-transaction', {{ method: 'POST', headers,
        body: JSON.stringify({{ chain: '{bank.chain}', to: '{FRIEND}', value: '1010', ...more }}) }})).status);
      return said""")
    assert all(got[:len(by_rpc)]) and got[len(by_rpc):] == [400] * len(by_route), got
    assert len(bank.list()) == before


def test_libraries_send_and_sign(daemon, agents, modules, bank):
    """ethers, viem and web3.js as they are published: a transaction and a message each, which a person approves meanwhile."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name in ("index.js", "sdk.js", "run.js"):
            tar.add(HERE / "agents" / name, name)
        tar.add(modules / "node_modules", "node_modules", filter=lambda i: None if i.name.endswith(agents_kit.TYPES) or any(part in i.name for part in agents_kit.UNUSED) else i)
    it = Bank(daemon, agents("libraries", out.getvalue()), index=4, allow_messages=True)
    url = "env.ASSEGAI_API_PROXY + '/rpc/eip155:31337'"
    wait = it.start(f"""
      const {{ FetchRequest, JsonRpcProvider, verifyMessage }} = require("ethers");
      const request = new FetchRequest({url});
      for (const [k, v] of Object.entries(headers)) request.setHeader(k, v);
      const provider = new JsonRpcProvider(request);
      const signer = await provider.getSigner();
      const ethers = {{ hash: (await signer.sendTransaction({{ to: "{FRIEND}", value: 1501n }})).hash, who: verifyMessage("hello", await signer.signMessage("hello")) }};
      provider.destroy();
      const {{ createWalletClient, http }} = require("viem");
      const {{ foundry }} = require("viem/chains");
      const client = createWalletClient({{ chain: foundry, transport: http({url}, {{ fetchOptions: {{ headers }}, timeout: 120000, retryCount: 0 }}) }});
      const [account] = await client.getAddresses();
      const viem = {{ hash: await client.sendTransaction({{ account, to: "{FRIEND}", value: 1502n }}), who: verifyMessage("hello", await client.signMessage({{ account, message: "hello" }})) }};
      const {{ Web3, HttpProvider }} = require("web3");
      const web3 = new Web3(new HttpProvider({url}, {{ providerOptions: {{ headers }} }}));
      const sent = await new Promise((good, bad) => web3.eth.sendTransaction({{ from: account, to: "{FRIEND}", value: "1503" }}).on("transactionHash", good).on("error", bad));
      const signed = await web3.eth.personal.sign("hello", account, "");
      return {{ ethers, viem, web3: {{ hash: sent, who: verifyMessage("hello", signed) }} }}""")
    while not wait.done():
        for item in it.list(state="pending"):
            it.approve(it.get(item["id"]))
    got = wait.result()
    sent = {t["value"]: t["hash"] for t in it.list() if t["kind"] == "transaction"}
    assert [got[name]["hash"] for name in ("ethers", "viem", "web3")] == [sent[v] for v in ("1501", "1502", "1503")]
    assert {got[name]["who"] for name in ("ethers", "viem", "web3")} == {ACCOUNTS[4]}


# ---- the chain


@pytest.fixture
def slow_mining(anvil):
    """Blocks are made when the test says so."""
    anvil.ask("evm_setAutomine", False)
    yield
    anvil.ask("evm_setAutomine", True)
    anvil.ask("evm_mine")


def test_finality(bank, anvil):
    card, hash = bank.done(1101)
    bank.until_state(card["id"], "confirmed", "final")
    anvil.ask("anvil_mine", "0x5")
    final = bank.until_state(card["id"], "final")
    assert final["card"]["block"] == int(anvil.receipt(hash)["blockNumber"], 16)


def test_reorganisation(bank, anvil):
    """The block goes, with its transaction: it is sent again, and the same hash is mined again."""
    card, hash = bank.done(1102)
    bank.until_state(card["id"], "confirmed")
    anvil.ask("evm_setAutomine", False)
    anvil.ask("anvil_reorg", 1, [])
    assert anvil.ask("eth_getTransactionReceipt", hash) is None
    bank.until_state(card["id"], "broadcast")
    paddock.until(lambda: anvil.ask("eth_getTransactionByHash", hash), "it was sent again")
    anvil.ask("evm_setAutomine", True)
    anvil.ask("evm_mine")
    assert bank.until_state(card["id"], "confirmed", "final")["hash"] == hash


def test_dropped_by_the_node(bank, anvil, slow_mining):
    card, hash = bank.done(1103)
    assert anvil.ask("anvil_dropTransaction", hash) == hash
    paddock.until(lambda: anvil.ask("eth_getTransactionByHash", hash), "it was sent again")
    anvil.ask("evm_mine")
    bank.until_state(card["id"], "confirmed", "final")


def test_replaced_by_something_else(bank, anvil, slow_mining):
    card, hash = bank.done(1104)
    nonce = anvil.ask("eth_getTransactionByHash", hash)["nonce"]
    other = anvil.ask("eth_sendTransaction", {"from": bank.account, "to": FRIEND, "value": "0x1", "nonce": nonce, "maxFeePerGas": hex(10**12), "maxPriorityFeePerGas": hex(10**11)})
    anvil.ask("evm_mine")
    assert anvil.receipt(other)["status"] == "0x1"
    assert bank.until_state(card["id"], "replaced")["hash"] == hash


def test_settle(bank, anvil, slow_mining):
    """What ended without spending counts until the owner has looked at the chain and says so."""
    counted = bank.counted
    cli = Cli(bank.daemon, PADDOCK_RUN_DIR=bank.daemon.run_dir)
    before = counted()
    card, hash = bank.done(1107)
    refused = cli.refused("wallet", "settle", card["id"], "--yes")
    assert "the request is broadcast" in refused
    nonce = anvil.ask("eth_getTransactionByHash", hash)["nonce"]
    anvil.ask("eth_sendTransaction", {"from": bank.account, "to": FRIEND, "value": "0x1", "nonce": nonce, "maxFeePerGas": hex(10**12), "maxPriorityFeePerGas": hex(10**11)})
    anvil.ask("evm_mine")
    bank.until_state(card["id"], "replaced")
    assert counted() == before + 1107
    question = "Count it no longer? [y/N] "
    status, shown, _ = cli.on_terminal("wallet", "settle", card["id"], answers=[(question, "n\n")])
    assert status != 0 and hash in shown and "Look at the chain" in shown and counted() == before + 1107
    assert cli.on_terminal("wallet", "settle", card["id"], "--note", "seen in the explorer", answers=[(question, "y\n")])[0] == 0
    assert counted() == before and bank.get(card["id"])["state"] == "replaced"
    assert cli.json("wallet", "settle", card["id"], "--yes") == {"settled": card["id"]} and counted() == before  # once more changes nothing
    spent, _ = bank.done(1108)
    anvil.ask("evm_mine")
    bank.until_state(spent["id"], "confirmed", "final")
    assert re.search("the request is (confirmed|final)", cli.refused("wallet", "settle", spent["id"], "--yes")) and counted() == before + 1108


def test_settle_what_reverted(bank, anvil, slow_mining):
    """It costs its fee alone. What the owner said of it holds for every program that comes."""
    address, before = f"0x{0xdead:040x}", bank.counted()
    card, hash = bank.done(1109, address)
    anvil.ask("anvil_setCode", address, "0x60006000fd")  # it was simulated before that
    anvil.ask("evm_mine")
    assert anvil.receipt(hash)["status"] == "0x0"
    bank.until_state(card["id"], "reverted")
    assert bank.counted() == before + 1109
    bank.settle(card["id"])
    assert bank.counted() == before
    bank.daemon.restart()
    assert bank.get(card["id"])["state"] == "reverted" and bank.counted() == before


@pytest.mark.parametrize("restart", (False, True), ids=("", "after a restart"))
@pytest.mark.parametrize("ending", ("reverted", "replaced"))
def test_a_reorganisation_takes_away_what_ended_it(bank, anvil, slow_mining, ending, restart):
    """The owner has settled it; then the block that ended it goes. It is under way again and counts, and it is mined after all."""
    value = 1110 + 2 * (ending == "replaced") + restart
    address, before = f"0x{0xdeae0000 + value:040x}", bank.counted()
    card, hash = bank.done(value, address)
    if ending == "reverted":
        anvil.ask("anvil_setCode", address, "0x60006000fd")
    else:
        nonce = anvil.ask("eth_getTransactionByHash", hash)["nonce"]
        anvil.ask("eth_sendTransaction", {"from": bank.account, "to": FRIEND, "value": "0x1", "nonce": nonce, "maxFeePerGas": hex(10**12), "maxPriorityFeePerGas": hex(10**11)})
    anvil.ask("evm_mine")
    bank.until_state(card["id"], ending)
    bank.settle(card["id"])
    assert bank.counted() == before
    if restart:
        bank.daemon.kill_api()
        assert bank.get(card["id"])["state"] == ending
    anvil.ask("anvil_reorg", 1, [])
    anvil.ask("anvil_setCode", address, "0x")
    bank.until_state(card["id"], "broadcast")
    assert bank.counted() == before + value
    paddock.until(lambda: anvil.ask("eth_getTransactionByHash", hash), "it was sent again")
    anvil.ask("evm_mine")
    assert bank.until_state(card["id"], "confirmed", "final")["hash"] == hash
    assert bank.counted() == before + value and anvil.balance(address) == value


def test_what_ended_is_looked_at_until_it_is_final(bank, anvil, slow_mining):
    card, hash = bank.done(1114)
    assert bank.say(card["id"], "cancel").status == 200
    second = bank.get(card["id"])["hash"]
    paddock.until(lambda: anvil.ask("eth_getTransactionByHash", second), "the replacement is sent")
    anvil.ask("evm_mine")
    bank.until_state(card["id"], "replaced")

    def watched():
        return card["id"] in [i.id for i in bank.own("LIST", state=signer.state("replaced"), unsure=True).items]
    assert watched()
    anvil.ask("anvil_mine", "0x5")
    paddock.until(lambda: not watched(), "it is final", 120)
    assert bank.get(card["id"])["state"] == "replaced"


def test_new_recipients_wait(bank, anvil):
    """The first transfer to an address is approved and held back; the next one goes at once, and so it does after a restart."""
    address, again = f"0x{0xc001:040x}", f"0x{0xc002:040x}"
    bank.allow(cool_down_s=4)
    card, _ = bank.done(1110, address)
    signed = bank.own("GET", id=card["id"]).attempts[0].signed_ms
    assert signed - bank.own("GET", id=card["id"]).created_ms >= 4000
    bank.allow(cool_down_s=3600)
    bank.done(1111, address)
    wait = bank.send(1112, again)
    item = bank.until_pending(1112)
    bank.approve(item)
    held = paddock.until(lambda: (lambda t: t if t["card"]["note"] else None)(bank.get(item["id"])), "it is said why it waits")
    assert held["state"] == "approved" and "must wait" in held["card"]["note"] and anvil.balance(again) == 0
    bank.daemon.restart()
    paddock.until(lambda: "must wait" in (bank.get(item["id"])["card"]["note"] or ""), "it waits in the next daemon, too")
    assert bank.get(item["id"])["state"] == "approved" and not bank.own("GET", id=item["id"]).raw
    assert bank.say(item["id"], "cancel").status == 200
    bank.until_state(item["id"], "cancelled")
    bank.allow()
    with contextlib.suppress(Exception):
        wait.result(60)  # its line ended with the daemon


def bumped(before, after):
    """Both fees an eighth higher, rounded up."""
    for fee in ("maxFeePerGas", "maxPriorityFeePerGas"):
        old, new = int(before[fee], 16), int(after[fee], 16)
        assert new >= old + -(-old // 8), (fee, old, new)
    return before["nonce"] == after["nonce"]


def test_speed_up(bank, anvil, slow_mining):
    card, first = bank.done(1105)
    before = anvil.ask("eth_getTransactionByHash", first)
    response = bank.say(card["id"], "speed-up")
    assert response.status == 200, response
    second = bank.get(card["id"])["hash"]
    assert second != first
    after = paddock.until(lambda: anvil.ask("eth_getTransactionByHash", second), "the second is sent")
    assert bumped(before, after) and after["value"] == before["value"]
    anvil.ask("evm_mine")
    done = bank.until_state(card["id"], "confirmed", "final")
    assert done["hash"] == second and [a["hash"] for a in done["card"]["attempts"]] == [second, first]


def test_cancel_what_was_sent(bank, anvil, slow_mining):
    before = anvil.balance(FRIEND)
    card, first = bank.done(1106)
    old = anvil.ask("eth_getTransactionByHash", first)
    assert bank.say(card["id"], "cancel").status == 200
    second = bank.get(card["id"])["hash"]
    new = paddock.until(lambda: anvil.ask("eth_getTransactionByHash", second), "the second is sent")
    assert bumped(old, new) and new["value"] == "0x0" and new["to"] == bank.account.lower()
    anvil.ask("evm_mine")
    bank.until_state(card["id"], "replaced")
    assert anvil.balance(FRIEND) == before
    assert bank.say(card["id"], "cancel").status == 409


def test_nonces_in_order(bank, anvil, slow_mining):
    """Several at once have nonces one after the other, and all are mined."""
    start = anvil.number("eth_getTransactionCount", bank.account, "latest")
    waits = [bank.send(v) for v in range(1110, 1114)]
    for value in range(1110, 1114):
        bank.approve(bank.until_pending(value))
    hashes = [w.result(60)["body"]["txHash"] for w in waits]
    assert sorted(int(anvil.ask("eth_getTransactionByHash", h)["nonce"], 16) for h in hashes) == list(range(start, start + 4))
    anvil.ask("evm_mine")
    for value in range(1110, 1114):
        bank.until_state(next(t["id"] for t in bank.list() if t["value"] == str(value)), "confirmed", "final")


# ---- tokens and wallets elsewhere


def test_token(bank, anvil):
    """A transfer of an ERC-20 token: its limit, what is simulated, what the receipt shows."""
    token = make_token(anvil, bank.account)
    words = f"{int(FRIEND, 16):064x}" + f"{250:064x}"
    transfer, balance = f"0xa9059cbb{words}", f"0x70a08231{int(FRIEND, 16):064x}"
    refused = bank.send(0, token, transfer).result(60)
    assert refused["status"] == 403 and refused["body"]["error"].startswith("No allowance found for"), refused
    bank.allow(limits=[signer.pb.Limit(chain=31337, asset=bytes.fromhex(token[2:]), per_tx=signer.amount(300), symbol="COIN")])
    valued = bank.send(1, token, transfer).result(60)
    assert valued == {"status": 403, "body": {"error": "ERC20 transfers must have a transaction value of 0"}}
    card, hash = bank.done(0, token, data=transfer)
    assert card["class"] == "erc20_transfer" and card["card"]["simulation"]["method"] == "simulate_v1"
    assert [m["amount"] for m in card["card"]["simulation"]["moves"]] == ["250"]
    done = bank.until_state(card["id"], "confirmed", "final")
    assert done["card"]["deviation"] is None
    assert anvil.number("eth_call", {"to": token, "data": balance}, "latest") == 250
    # More than it has: the token says no, and so does the simulation.
    much = bank.send(0, token, f"0xa9059cbb{int(FRIEND, 16):064x}{299:064x}")
    item = bank.until_pending(0)
    anvil.receipt(anvil.ask("eth_sendTransaction", {"from": bank.account, "to": token, "data": f"0xa9059cbb{int(RICH, 16):064x}{999750:064x}"}))
    response = bank.say(item["id"], "approve", digest=item["digest"])
    assert response.status == 403 and "fail" in response.json()["error"]["message"], response
    assert bank.say(item["id"], "reject").status == 200 and much.result(30)["status"] == 403
    bank.allow()


@pytest.fixture
def elsewhere(daemon, bank):
    wallet = bank.own("WALLET_ADD", kind=signer.pb.WALLET_KIND_EXTERNAL, label="phone", address=bytes.fromhex(ACCOUNTS[3][2:])).wallet
    yield Bank(daemon, bank.agent, index=3, wallet=wallet)
    bank.allow()
    bank.own("WALLET_REMOVE", id=wallet.id)


def test_a_wallet_elsewhere(elsewhere, anvil):
    """The page asks a wallet, which sends what was approved, refuses, or sends something else."""
    def given(value):
        wait = elsewhere.send(value)
        item = elsewhere.until_pending(value)
        elsewhere.approve(item)
        assert elsewhere.until_state(item["id"], "awaiting_wallet")["from"] == ACCOUNTS[3]
        return wait, item["id"]

    def sends(value):
        return anvil.ask("eth_sendTransaction", {"from": ACCOUNTS[3], "to": FRIEND, "value": hex(value)})

    wait, id = given(1401)
    hash = sends(1401)
    assert elsewhere.say(id, "wallet", hash=hash).status == 200
    assert wait.result(60) == {"status": 200, "body": {"success": True, "txHash": hash}}
    elsewhere.until_state(id, "confirmed", "final")
    assert elsewhere.say(id, "wallet", rejected=True).status == 409
    wait, id = given(1402)
    assert elsewhere.say(id, "wallet", rejected=True).status == 200
    assert wait.result(60) == {"status": 403, "body": {"error": "Transaction rejected by user"}}
    wait, id = given(1403)
    assert elsewhere.say(id, "wallet", hash=sends(9999)).status == 200
    assert elsewhere.until_state(id, "mismatch")
    wait.result(60)
    for seconds in (3, 15, 60):  # a slow machine needs longer to come as far as the wallet
        listed = signer.pb.AddressRule(chain=31337, address=bytes.fromhex(FRIEND[2:]))
        elsewhere.allow(addresses=[listed], auto_below=signer.amount(2000), expiry_s=seconds)
        wait = elsewhere.send(1404)
        tx = paddock.until(lambda: next((t for t in elsewhere.list() if int(t["value"]) == 1404 and t["state"] != "expired"), None), "it is asked for")
        if elsewhere.until_state(tx["id"], "wallet_timeout", "expired", timeout=100)["state"] == "wallet_timeout":
            break
    assert wait.result(60)["body"] == {"error": "Transaction approval timeout"}
    assert elsewhere.say(tx["id"], "wallet", rejected=True).status == 409
    assert elsewhere.say(tx["id"], "wallet", hash=sends(1404)).status == 200  # it was sent all the same
    elsewhere.until_state(tx["id"], "confirmed", "final")
    anvil.ask("anvil_mine", "0x5")  # what was confirmed becomes final: the wallet can be removed
    paddock.until(lambda: not [t for t in elsewhere.list(state="confirmed")], "all of it is final")


def signed_elsewhere(modules, anvil, index, to, value):
    """A transaction that a wallet has signed and not sent: its bytes and its hash."""
    script = """const { HDNodeWallet, keccak256 } = require("ethers");
      const [index, tx] = JSON.parse(process.argv[1]);
      const wallet = HDNodeWallet.fromPhrase("test test test test test test test test test test test junk", undefined, `m/44'/60'/0'/0/${index}`);
      wallet.signTransaction(tx).then((raw) => console.log(JSON.stringify([raw, keccak256(raw)])));"""
    tx = {"type": 2, "chainId": 31337, "nonce": anvil.number("eth_getTransactionCount", ACCOUNTS[index], "latest"), "to": to, "value": str(value), "gasLimit": 21000,
          "maxFeePerGas": str(10**11), "maxPriorityFeePerGas": str(10**9)}
    done = subprocess.run(["node", "-e", script, json.dumps([index, tx])], cwd=modules, capture_output=True, text=True, timeout=60 * paddock.SLOW, check=True)
    return json.loads(done.stdout)


@pytest.mark.parametrize("settled", (True, False), ids=("settled", "not settled"))
@pytest.mark.parametrize("value", (1421, 1422), ids=("same", "other"))
def test_dropped_and_sent_again(elsewhere, anvil, modules, settled, value):
    """No node knows what the wallet has sent: it is dropped, and the owner says that it was not spent. Its bytes are public: when somebody sends
    them after all it counts again, once, and is followed and compared like every other; also in an api that began later."""
    asked, before = (1421, 1423)[settled], elsewhere.counted()
    wait = elsewhere.send(asked)
    item = elsewhere.until_pending(asked)
    elsewhere.approve(item)
    elsewhere.until_state(item["id"], "awaiting_wallet")
    sent = asked if value == 1421 else 9
    raw, hash = signed_elsewhere(modules, anvil, 3, FRIEND, sent)
    assert elsewhere.say(item["id"], "wallet", hash=hash).status == 200
    assert wait.result(60)["body"]["txHash"] == hash
    elsewhere.until_state(item["id"], "dropped", timeout=60)
    assert elsewhere.counted() == before + asked
    if settled:
        elsewhere.settle(item["id"])
        assert elsewhere.counted() == before
    elsewhere.daemon.kill_api()
    assert elsewhere.get(item["id"])["state"] == "dropped"
    assert anvil.ask("eth_sendRawTransaction", raw) == hash
    if sent == asked:
        assert elsewhere.until_state(item["id"], "confirmed", "final", timeout=60)["hash"] == hash
        assert elsewhere.counted() == before + asked
    else:
        elsewhere.until_state(item["id"], "mismatch", timeout=60)
        assert elsewhere.counted() == before + asked + sent


# ---- a node that fails


def test_a_node_that_is_down(shaky, honest, other):
    honest.down = True
    got = shaky.send(1201).result(60)
    assert got["status"] == 500 and got["body"]["error"].startswith("RPC Error: "), got
    honest.down = False
    wait = shaky.send(1202)
    item = shaky.until_pending(1202)
    honest.down = True
    assert shaky.say(item["id"], "approve", digest=item["digest"]).status == 503
    assert shaky.get(item["id"])["state"] == "pending"
    honest.down = False
    shaky.approve(item)
    assert wait.result(60)["status"] == 200
    shaky.until_state(item["id"], "confirmed", "final")


def test_a_node_that_goes_while_it_is_sent(shaky, honest, other):
    """The bytes are signed, the node takes them and says nothing: they are sent again, and nothing is spent twice."""
    before = other.balance(FRIEND)

    def swallow(asked, said):
        return b"" if any(r["method"] == "eth_sendRawTransaction" for r in asked) else said

    wait = shaky.send(1203)
    item = shaky.until_pending(1203)
    honest.change, seen = swallow, len(honest.calls)
    shaky.approve(item)
    paddock.until(lambda: any("eth_sendRawTransaction" in c for c in honest.calls[seen:]), "it is sent")
    assert shaky.get(item["id"])["state"] == "signed"
    honest.change = None
    assert wait.result(60)["status"] == 200
    shaky.until_state(item["id"], "confirmed", "final")
    assert other.balance(FRIEND) == before + 1203


def test_what_no_node_takes_leaves_no_gap(shaky, honest, other):
    """The node refuses a signed transaction for good: the agent is told, and nothing takes its nonce, so that the next one is mined."""
    before, refused = other.balance(FRIEND), []

    def poor(asked):
        raw = next((r["params"][0] for r in asked if r["method"] == "eth_sendRawTransaction"), None)
        if raw is None or (refused and raw != refused[0]):
            return None
        refused[:] = [raw]
        return [{"jsonrpc": "2.0", "id": 1, "result": "0x539"}, {"jsonrpc": "2.0", "id": 2, "error": {"code": -32003, "message": "Insufficient funds for gas * price + value"}}]

    wait = shaky.send(1206)
    item = shaky.until_pending(1206)
    honest.instead = poor
    shaky.approve(item)
    got = wait.result(60)
    assert got["status"] == 500 and got["body"]["error"].startswith("RPC Error: Insufficient funds"), got
    shaky.until_state(item["id"], "replaced")
    card, _ = shaky.done(1207)
    shaky.until_state(card["id"], "confirmed", "final")
    assert other.balance(FRIEND) == before + 1207


def test_settle_what_failed(shaky, honest, other):
    """It was signed and never sent: something else had its nonce by then. It counts until the owner has looked."""
    def busy(asked):
        if any(r["method"] == "eth_sendRawTransaction" for r in asked):
            return [{"jsonrpc": "2.0", "id": r["id"], **({"result": hex(1337)} if r["method"] == "eth_chainId" else {"error": {"code": -32000, "message": "busy"}})} for r in asked]
        return None

    before = shaky.counted()
    honest.instead = busy
    wait = shaky.send(1291)
    item = shaky.until_pending(1291)
    shaky.approve(item)
    shaky.until_state(item["id"], "signed")
    nonce = shaky.own("GET", id=item["id"]).nonce
    other.receipt(other.ask("eth_sendTransaction", {"from": shaky.account, "to": FRIEND, "value": "0x1", "nonce": hex(nonce)}))
    honest.instead = None
    assert wait.result(60)["status"] == 500
    shaky.until_state(item["id"], "failed")
    assert shaky.counted() == before + 1291
    shaky.settle(item["id"])
    assert shaky.counted() == before
    shaky.daemon.restart()
    assert shaky.get(item["id"])["state"] == "failed" and shaky.counted() == before


def test_words_of_a_node_are_one_line_of_the_card(shaky, honest):
    """Its error is shown while the transaction cannot be sent: quoted, and without what steers a terminal."""
    evil = "nope\n\n  DANGER    none\r\nDigest 0x00\x1b[2J\u009b\u202e" + "\u00e4" * 300

    def refuse(asked):
        if not any(r["method"] == "eth_sendRawTransaction" for r in asked):
            return None
        return [{"jsonrpc": "2.0", "id": 1, "result": "0x539"}, {"jsonrpc": "2.0", "id": 2, "error": {"code": -32000, "message": evil}}]

    wait = shaky.send(1216)
    item = shaky.until_pending(1216)
    honest.instead = refuse
    shaky.approve(item)
    card = paddock.until(lambda: (lambda c: c if "nope" in (c["note"] or "") else None)(shaky.get(item["id"])["card"]), "the node's words are noted")
    assert "nope    DANGER    none  Digest 0x00" in card["note"] and not set(card["note"]) & set("\n\r\x1b")
    (line,) = [one for one in card["text"].split("\n") if "nope" in one]
    assert line.startswith('  note      "') and line.endswith('"') and not set(card["text"]) & set("\r\x1b\x9b\u202e")
    assert not [one for one in card["text"].split("\n") if one.startswith(("  DANGER    none", "Digest 0x00"))]
    honest.instead = None
    assert wait.result(120)["status"] == 200


def test_stuck(shaky, honest, other):
    """It was sent, and blocks come without it: it is called stuck until it is in one."""
    def blind(asked, said):
        for r, s in zip(asked, said):
            if r["method"] == "eth_getTransactionReceipt":
                s["result"] = None
            if r["method"] == "eth_getTransactionCount" and r["params"][1] == "latest":
                s["result"] = "0x0"
        return said

    honest.change = blind
    card, _ = shaky.done(1208)
    assert not card["card"]["stuck"]
    seen = len(honest.calls)
    paddock.until(lambda: any("eth_getTransactionReceipt" in c for c in honest.calls[seen:]), "it is looked at")
    other.ask("anvil_mine", "0x4")
    paddock.until(lambda: shaky.get(card["id"])["card"]["stuck"], "it is stuck")
    honest.change = None
    assert not shaky.until_state(card["id"], "confirmed", "final")["card"]["stuck"]


def test_another_chain_under_the_same_address(shaky, honest, daemon):
    def lie(asked, said):
        for r, s in zip(asked, said):
            if r["method"] == "eth_chainId":
                s["result"] = "0x1"
        return said

    def health():
        return next(c for c in daemon.client().get("/v1/chains").json()["chains"] if c["id"] == "eip155:1337")["status"]

    wait = shaky.send(1204)
    item = shaky.until_pending(1204)
    honest.change = lie
    response = shaky.say(item["id"], "approve", digest=item["digest"])
    assert response.status == 503 and "another chain" in response.json()["error"]["message"], response
    assert health() == "wrong_chain"
    got = shaky.send(1205).result(60)
    assert got["status"] == 500 and "another chain" in got["body"]["error"]
    honest.change = None
    shaky.approve(item)
    assert wait.result(60)["status"] == 200
    assert health() == "ok"


NONSENSE = [("eth_estimateGas", "0x" + "f" * 64), ("eth_estimateGas", -1), ("eth_getTransactionCount", "0x" + "f" * 17), ("eth_getTransactionCount", None),
            ("eth_getBalance", "a lot"), ("eth_getCode", 7), ("eth_getBlockByNumber", None), ("eth_getBlockByNumber", {"number": "0x1"}),
            ("eth_maxPriorityFeePerGas", "0x" + "f" * 64), ("eth_chainId", {"result": "0x539"})]
GARBAGE = [b"", b"{", b"[]", b"[1,2,3]", b'{"jsonrpc":"2.0","id":1,"result":"0x539"}', b'[{"jsonrpc":"2.0","id":1,"result":"0x1","result":"0x539"}]', b"[" * 100000]


def test_nonsense_of_a_node_is_refused(shaky, honest):
    """What a node answers to a request depends on its value: all of them at once."""
    first = 1220

    def lie(asked, said):
        value = next(int(r["params"][0]["value"], 16) for r in asked if r["method"] == "eth_estimateGas") - first
        if value >= len(NONSENSE):
            return GARBAGE[value - len(NONSENSE)]
        for r, s in zip(asked, said):
            if r["method"] == NONSENSE[value][0]:
                s["result"] = NONSENSE[value][1]
                s.pop("error", None)
        return said

    honest.change = lie
    n = len(NONSENSE) + len(GARBAGE)
    got = shaky.run(f"""return Promise.all([...Array({n}).keys()].map((i) => attempt(sdk.requestTransaction({{ chain: '{shaky.chain}', to: '{FRIEND}', value: String({first} + i) }}))))""")
    assert all(g.get("status") in (403, 500) for g in got), got
    assert all(g["message"].startswith("RPC Error: ") for g in got[len(NONSENSE):]), got
    assert not [t for t in shaky.list() if first <= int(t["value"]) < first + n and t["state"] != "denied"]


def test_answers_to_others_are_not_believed(shaky, honest):
    def swap(asked, said):
        said[0]["id"], said[-1]["id"] = said[-1]["id"], said[0]["id"]
        return said

    honest.change = swap
    assert shaky.send(1212).result(60)["status"] == 500
    honest.change = lambda asked, said: said + [said[0]]
    assert shaky.send(1212).result(60)["status"] == 500


def test_a_simulation_that_shows_more_is_counted(shaky, honest):
    """A node says that ten ether leave the account: refused, whatever the call says."""
    def lie(asked, said):
        for r, s in zip(asked, said):
            if r["method"] == "eth_simulateV1":
                me = "0x" + "0" * 24 + shaky.account[2:].lower()
                s["result"][0]["calls"][0]["logs"].append({"address": "0x" + "ee" * 20, "data": "0x" + f"{10 * ETHER:064x}",
                    "topics": ["0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef", me, "0x" + "0" * 24 + "22" * 20]})
        return said

    honest.change = lie
    got = shaky.send(1213).result(60)
    assert got["status"] == 403 and "allowance" in got["body"]["error"], got


@pytest.mark.parametrize("without, method", [((), "simulate_v1"), (("eth_simulateV1",), "trace"), (("eth_simulateV1", "debug_traceCall"), "estimate")])
def test_how_it_was_simulated_is_said(shaky, honest, without, method):
    def lacks(asked, said):
        for r, s in zip(asked, said):
            if r["method"] in without:
                s.pop("result", None)
                s["error"] = {"code": -32601, "message": "the method does not exist"}
        return said

    honest.change = lacks
    id = shaky.send(1214, headers={"Prefer": "respond-async"}).result(60)["body"]["id"]
    assert shaky.get(id)["card"]["simulation"]["method"] == method
    assert shaky.say(id, "reject").status == 200


def test_a_receipt_that_lies_about_its_block(shaky, honest, other):
    """The receipt names a block that is not at its height: the transaction is in no block."""
    def lie(asked, said):
        for r, s in zip(asked, said):
            if r["method"] == "eth_getTransactionReceipt" and s.get("result"):
                s["result"]["blockHash"] = "0x" + "11" * 32
        return said

    honest.change = lie
    card, hash = shaky.done(1215)
    seen = len(honest.calls)
    paddock.until(lambda: sum("eth_getTransactionReceipt" in c for c in honest.calls[seen:]) > 5, "it is looked at")
    assert shaky.get(card["id"])["state"] == "broadcast"
    honest.change = None
    shaky.until_state(card["id"], "confirmed", "final")


def test_nothing_polls_when_nothing_is_under_way(bank, anvil, shaky, honest, other):
    other.ask("anvil_mine", "0x100")  # everything is final
    paddock.until(lambda: not shaky.list(state="confirmed") and not shaky.list(state="broadcast") and not shaky.list(state="included"), "all is final", 60)
    ended = [signer.state(name) for name in ("replaced", "reverted", "failed")]
    paddock.until(lambda: not any(i.chain == shaky.number for s in ended for i in shaky.own("LIST", state=s, unsure=True).items), "all that ended is final", 60)
    seen = len(honest.calls)
    bank.done(1216)
    assert len(honest.calls) == seen


REFUSALS = [{"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": "batch requests are not supported"}}, (403, b"no batches on this plan"), (500, b'{"message": "oops"}')]


@pytest.mark.parametrize("refusal", REFUSALS, ids=("error", "status", "failure"))
def test_a_node_without_batches_is_asked_singly(daemon, shaky, honest, other, refusal):
    """Some nodes refuse them: each is tried once with one, and then no more."""
    honest.instead = lambda asked: refusal if isinstance(asked, list) else None
    before, seen, value = other.balance(FRIEND), len(honest.calls), 1250 + REFUSALS.index(refusal)
    card, hash = shaky.done(value)
    shaky.until_state(card["id"], "confirmed", "final")
    assert other.receipt(hash)["status"] == "0x1" and other.balance(FRIEND) == before + value
    assert card["card"]["simulation"]["method"] == "simulate_v1"
    calls = honest.calls[seen:]
    assert sum(len(c) > 1 for c in calls) == 1
    singles = [c[0] for c in calls if len(c) == 1]
    assert singles[0] == "eth_chainId"
    before_sending = singles[:singles.index("eth_sendRawTransaction")]
    assert before_sending[-1] == "eth_chainId"
    # One that serves another chain meanwhile is not believed, and sent nothing.
    honest.change = lambda asked, said: {**said, "result": "0x1"} if asked["method"] == "eth_chainId" else said
    assert shaky.send(value).result(60)["status"] == 500
    honest.change = honest.instead = None
    other.ask("anvil_mine", "0x100")
    shaky.until_state(card["id"], "final", timeout=60)
    daemon.kill_api()  # which forgets it


# ---- restarts


ENDED = ("denied", "rejected", "cancelled", "expired", "wallet_rejected", "wallet_timeout", "dropped")


def test_everything_restarts_with_a_request_in_each_state(daemon, bank, anvil, elsewhere, modules):
    """Keeper, api and signer at once: what had ended has ended, nothing counts twice or no longer, and what waited goes on. What is signed
    and sent is in test_kill_9_at_each_state."""
    aside = {"Prefer": "respond-async"}
    ids = {}

    def ask(name, it, value, to=FRIEND, **rules):
        it.allow(**rules)
        ids[name] = it.send(value, to, headers=aside).result(60)["body"].get("id")

    def give(name, value):
        ask(name, elsewhere, value)
        elsewhere.approve(elsewhere.get(ids[name]))
        elsewhere.until_state(ids[name], "awaiting_wallet")

    give("wallet_rejected", 1501)
    assert elsewhere.say(ids["wallet_rejected"], "wallet", rejected=True).status == 200
    give("wallet_timeout", 1502)
    elsewhere.own("REPORT", id=ids["wallet_timeout"], state=signer.state("wallet_timeout"))
    give("dropped", 1503)
    assert elsewhere.say(ids["dropped"], "wallet", hash="0x" + "77" * 32).status == 200
    give("awaiting_wallet", 1504)
    ask("denied", bank, 2 * ETHER)
    ids["denied"] = next(t for t in bank.list(state="denied"))["id"]
    for name, value in (("rejected", 1511), ("cancelled", 1512)):
        ask(name, bank, value)
        assert bank.say(ids[name], {"rejected": "reject", "cancelled": "cancel"}[name]).status == 200
    ask("expired", bank, 1513, expiry_s=1)
    ask("pending", bank, 1514)
    stranger = f"0x{0x5715:040x}"
    ask("approved", bank, 1515, stranger, cool_down_s=3600)  # held back
    bank.approve(bank.get(ids["approved"]))
    for name in ENDED:
        bank.until_state(ids[name], name, timeout=60)
    states = {name: bank.get(id)["state"] for name, id in ids.items()}
    assert states == {name: name for name in ids}
    counted, audit = bank.counted(), len(bank.own("AUDIT", max=500).entries)
    daemon.restart()
    assert {name: bank.get(id)["state"] for name, id in ids.items()} == states and anvil.balance(stranger) == 0
    assert bank.counted() == counted and bank.own("AUDIT_VERIFY").broken_at == 0 and len(bank.own("AUDIT", max=500).entries) >= audit
    bank.allow()
    before = anvil.balance(FRIEND)
    bank.approve(bank.get(ids["pending"]))
    bank.until_state(ids["pending"], "confirmed", "final")
    hash = anvil.ask("eth_sendTransaction", {"from": ACCOUNTS[3], "to": FRIEND, "value": hex(1504)})
    assert elsewhere.say(ids["awaiting_wallet"], "wallet", hash=hash).status == 200
    bank.until_state(ids["awaiting_wallet"], "confirmed", "final")
    bank.until_state(ids["approved"], "confirmed", "final", timeout=60)
    assert anvil.balance(FRIEND) == before + 1514 + 1504 and anvil.balance(stranger) == 1515
    assert bank.counted() == counted


@pytest.mark.parametrize("who", ("api", "signer", "daemon"))
def test_kill_9_at_each_state(daemon, shaky, honest, other, who):
    kill = {"api": daemon.kill_api, "signer": lambda: kill_signer(daemon), "daemon": daemon.restart}[who]
    before, value = other.balance(FRIEND), {"api": 1300, "signer": 1310, "daemon": 1320}[who]
    # pending
    id = shaky.send(value, headers={"Prefer": "respond-async"}).result(60)["body"]["id"]
    kill()
    item = paddock.until(lambda: (lambda r: r.json() if r.status == 200 else None)(daemon.client().get(f"/v1/transactions/{id}")), "it is there")
    assert item["state"] == "pending"
    # approved: no node answers, so that it cannot be signed
    approvals = []

    def after_approval(asked, said):
        if any(r["method"] == "eth_simulateV1" for r in asked):
            approvals.append(1)
            if len(approvals) > 1:
                return b""
        return said

    honest.change = after_approval
    paddock.until(lambda: shaky.say(id, "approve", digest=item["digest"]).status == 200, "it is approved")
    paddock.until(lambda: len(approvals) > 1, "facts are asked for")
    kill()
    paddock.until(lambda: daemon.client().get(f"/v1/transactions/{id}").json().get("state") == "approved", "it is approved")
    # signed: the node takes nothing
    honest.change = lambda asked, said: b"" if any(r["method"] == "eth_sendRawTransaction" for r in asked) else said
    shaky.until_state(id, "signed")
    kill()
    paddock.until(lambda: daemon.client().get(f"/v1/transactions/{id}").json().get("state") == "signed", "it is signed")
    # broadcast: nobody mines
    other.ask("evm_setAutomine", False)
    honest.change = None
    card = shaky.until_state(id, "broadcast")
    kill()
    shaky.until_state(id, "broadcast")
    # included: the block at its height is shown until that is known, and then the node says no more. An answer that comes while the signer is
    # asked for all anew is not looked at: a number of answers would not do.
    def until_included(asked, said):
        if not any(r["method"] == "eth_getBlockByNumber" and r["params"][0].startswith("0x") for r in asked):
            return said
        try:
            return b"" if shaky.get(id)["state"] == "included" else said
        except (AssertionError, OSError):  # it is being restarted
            return b""

    honest.change = until_included
    other.ask("evm_setAutomine", True)
    other.ask("evm_mine")
    shaky.until_state(id, "included")
    kill()
    paddock.until(lambda: daemon.client().get(f"/v1/transactions/{id}").json().get("state") == "included", "it is included")
    honest.change = None
    card = shaky.until_state(id, "confirmed")
    kill()
    assert paddock.until(lambda: (lambda r: r.json() if r.status == 200 else None)(daemon.client().get(f"/v1/transactions/{id}")), "it is there")["state"] == "confirmed"
    other.ask("anvil_mine", "0x100")
    shaky.until_state(id, "final", timeout=60)
    assert other.balance(FRIEND) == before + value
    assert len([t for t in shaky.list() if t["value"] == str(value)]) == 1 and card["hash"]


def test_removing_an_agent_takes_back_what_was_approved(daemon, agents, anvil):
    """Approved and held back for its cool-down: it is cancelled with what waits, before the removal is answered, and counts no more."""
    stranger = "0x00000000000000000000000000000000000000d9"
    agent = agents("leaving")
    bank = Bank(daemon, agent, index=4, cool_down_s=3600)
    made = {}
    for value in (1901, 1902):
        got = bank.send(value, stranger, headers={"Prefer": "respond-async"}).result(60)
        assert got["status"] == 202, got
        made[value] = bank.get(got["body"]["id"])
    bank.approve(made[1901])
    assert [bank.get(x["id"])["state"] for x in made.values()] == ["approved", "pending"] and bank.counted() == 1901 + 1902
    api = daemon.client()
    paddock.until(lambda: api.delete(agent.path).status in (204, 404), "the agent is removed")
    for item in made.values():
        now = bank.get(item["id"])
        assert (now["state"], now["decided_by"]) == ("cancelled", "removal of the agent"), now
    assert bank.counted() == 0
