"""Spending where people have a part: wallets in pages, what a card shows, several who approve, the owner's own channel."""

import json
import subprocess

import pytest

import paddock
import signer
from agents_kit import modules  # noqa: F401
from spend_kit import ACCOUNTS, ETHER, FRIEND, Bank, agents, anvil, bank, daemon, front, honest, other, owner, shaky  # noqa: F401

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
