"""How people see and decide: /v1/transactions and what belongs to it, by REST, the command line, MCP, events and webhooks."""

import base64
import contextlib
import csv
import hashlib
import hmac
import http.client
import io
import json
import os
import pty
import re
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
import yaml

import agents_kit
import paddock
import signer
from agents_kit import modules, pack  # noqa: F401
from clitool import Cli
from spend_kit import ETHER, Anvil, Bank
from test_dashboard import cookie_of, page, sign_in
from test_events import Stream
from test_mcp import Mcp
from test_openapi import DOCUMENT, check
from test_webhooks import LOOPBACK, Receiver

CHAIN = "eip155:31337"
FRIEND = "0x00000000000000000000000000000000000000f1"
CONTRACT = "0x00000000000000000000000000000000000c0de5"
EVIL = "=cmd|' /C calc'!A0\x1b[31m\u202e\nApprove me"


@pytest.fixture(scope="module")
def document():
    return yaml.safe_load(DOCUMENT.read_text())


@pytest.fixture(scope="module")
def anvil(modules):  # noqa: F811
    it = Anvil(modules, 31337, "--slots-in-an-epoch", "1")
    it.ask("anvil_setCode", CONTRACT, "0x00")
    yield it
    it.stop()


@pytest.fixture(scope="module")
def daemon(daemon_factory, workdir, anvil):
    config = workdir / "transactions.yaml"
    config.write_text(json.dumps({"listeners": [{"address": "127.0.0.1:0", "dialect": "rest", "anonymous": True}], "agents": {"chains": {CHAIN: {"name": "Anvil", "rpc": [f"http://127.0.0.1:{anvil.port}/"], "poll_ms": 100,
                                                                    "explorer": "https://explorer.example/"}}}}))
    it = daemon_factory("transactions", arguments=["--config", str(config)], environment=LOOPBACK).start()
    yield it
    it.finish()


@pytest.fixture(scope="module")
def api(daemon):
    return daemon.client()


@pytest.fixture(scope="module")
def cli(daemon):
    return Cli(daemon)


@pytest.fixture(scope="module")
def bank(daemon, api):
    """An agent whose requests wait for people."""
    response = api.post("/v1/agents", {"manifest": agents_kit.manifest(), "consent": True, "name": "spender"})
    assert response.status == 201, response
    agent = agents_kit.Agent(api, response.json())
    assert agent.upload(pack("index.js", "sdk.js", "run.js")).status == 202
    agent.wait("stopped")
    agent.do("start")
    agent.until_logged("hello by the API")
    yield Bank(daemon, agent, index=1, allow_dangerous=True)
    paddock.until(lambda: api.delete(agent.path).status in (204, 404), "the agent is removed")


@pytest.fixture(scope="module")
def stranger(daemon, api):
    """A client of another tenant."""
    made = api.post("/v1/keys", {"tenant": "tx-stranger", "role": "user", "create_tenant": True}).json()
    yield paddock.Client(daemon, made["key"])
    api.delete(f"/v1/keys/{made['id']}")


@pytest.fixture
def pending(bank, api):
    """Makes requests that wait; what is left of them is rejected."""
    made = []

    def make(value, **more):
        got = bank.send(value, headers={"Prefer": "respond-async"}, **{"to": FRIEND, **more}).result(120)
        assert got["status"] == 202, got
        made.append(got["body"]["id"])
        return bank.get(made[-1])

    yield make
    for one in made:
        assert bank.say(one, "reject").status in (200, 409)


# ---- REST


def test_the_card(document, bank, pending, api):
    tx = pending(2001, reason=EVIL)
    check(document, "get", "/v1/transactions/{}", api.get(f"/v1/transactions/{tx['id']}"))
    check(document, "get", "/v1/transactions", api.get("/v1/transactions"))
    card = tx["card"]
    assert tx["agent_name"] == "spender" and tx["chain_name"] == "Anvil" and tx["state"] == "pending" and tx["reason"] == EVIL
    assert card["sentence"].startswith("Agent spender wants to send 0.000000000000002001 ETH to ") and FRIEND in card["sentence"]
    assert "Anvil (eip155:31337)" in card["sentence"]
    assert card["recipient"]["address"] == FRIEND and card["recipient"]["contract"] is False and card["confirm"] is None
    assert card["simulation"]["method"] == "simulate_v1" and card["simulation"]["deltas"] == [
        {"asset": tx["effects"][0]["asset"], "amount": "-2001"}]
    assert int(card["fee"]["worst_case"]) > 0 and all(one["passed"] for one in card["trace"])
    (limit,) = [one for one in card["limits"] if one["window"] == "transaction" and not one["fee"] and one["scope"].startswith("agent:")]
    assert (limit["before"], limit["after"], limit["limit"]) == ("0", "2001", str(ETHER))


def test_words_of_an_agent_cannot_steer_a_terminal(pending):
    text = pending(2002, reason=EVIL)["card"]["text"]
    quoted = text.partition("The agent says, in its own words\n")[2]
    assert quoted.startswith("  \"=cmd|' /C calc'!A0\ufffd[31m\ufffd Approve me\"\n\nDigest 0x")
    assert not set(text) & {"\x1b", "\u202e"}


def test_approved_once_by_somebody_who_is_known(document, bank, pending, api, anvil):
    tx, before = pending(2003), anvil.balance(FRIEND)
    path = f"/v1/transactions/{tx['id']}"
    other = api.post(f"{path}/approve", {"digest": "0x" + "00" * 32})
    assert (other.status, other.json()["error"]["code"]) == (409, "conflict")
    for body in ({}, {"digest": "0x12"}, {"digest": "0x" + "zz" * 32}, {"digest": tx["digest"], "yes": True}):
        assert api.post(f"{path}/approve", body).status == 400, body
    done = api.post(f"{path}/approve", {"digest": tx["digest"]})
    check(document, "post", "/v1/transactions/{}/approve", done)
    assert done.status == 200 and done.json()["state"] != "pending"
    again = api.post(f"{path}/approve", {"digest": tx["digest"]})
    assert (again.status, again.json()["error"]["code"]) == (409, "wrong_state")
    key = next(one for one in api.get("/v1/keys").json()["keys"] if one["id"] == "k_admin")
    now = bank.until_state(tx["id"], "confirmed", "final")
    assert key["id"] in now["decided_by"] and now["card"]["approvers"] == {"needed": 1, "have": 1}
    assert anvil.balance(FRIEND) == before + 2003 and now["card"]["block"] and now["card"]["attempts"][0]["hash"] == now["hash"]
    check(document, "get", "/v1/transactions/{}", api.get(path))


def test_what_was_decided_survives_the_api(bank, pending, daemon, api):
    tx = pending(2004)
    assert bank.say(tx["id"], "reject", note="no").status == 200
    daemon.kill_api()
    paddock.until(lambda: daemon.client().get(f"/v1/transactions/{tx['id']}").status == 200, "the api is back")
    assert bank.get(tx["id"])["state"] == "rejected"
    assert bank.say(tx["id"], "approve", digest=tx["digest"]).status == 409


def test_withdrawn(document, pending, api):
    tx = pending(2005)
    done = api.post(f"/v1/transactions/{tx['id']}/cancel", {})
    check(document, "post", "/v1/transactions/{}/cancel", done)
    assert done.status == 200 and done.json()["state"] == "cancelled"
    for verb in ("cancel", "speed-up", "reject", "revoke"):
        refused = api.post(f"/v1/transactions/{tx['id']}/{verb}", {"note": None})
        assert (refused.status, refused.json()["error"]["code"]) == (409, "wrong_state"), verb
    assert api.post(f"/v1/transactions/{tx['id']}/wallet", {"rejected": True}).status == 409
    for body in ({}, {"rejected": False}, {"rejected": True, "hash": "0x" + "11" * 32}, {"hash": "0x11"}):
        assert api.post(f"/v1/transactions/{tx['id']}/wallet", body).status == 400, body


@pytest.fixture
def slow_mining(anvil):
    """Blocks are made when the test says so."""
    anvil.ask("evm_setAutomine", False)
    yield
    anvil.ask("evm_setAutomine", True)
    anvil.ask("evm_mine")


def test_speed_up_and_cancel_what_was_sent(document, bank, pending, api, cli, anvil, slow_mining):
    tx, before = pending(2030), anvil.balance(FRIEND)
    path = f"/v1/transactions/{tx['id']}"
    assert api.post(f"{path}/approve", {"digest": tx["digest"]}).status == 200
    hashes = [bank.until_state(tx["id"], "broadcast")["hash"]]
    faster = api.post(f"{path}/speed-up", {"note": "it is urgent"})
    assert faster.status == 200, faster
    check(document, "post", "/v1/transactions/{}/speed-up", faster)
    hashes.insert(0, bank.until_state(tx["id"], "broadcast")["hash"])
    assert json.loads(cli.ok("tx", "speed-up", tx["id"], "--json"))["id"] == tx["id"]
    hashes.insert(0, bank.until_state(tx["id"], "broadcast")["hash"])
    ended = api.post(f"{path}/cancel", {"note": "not needed any more"})
    assert ended.status == 200, ended
    check(document, "post", "/v1/transactions/{}/cancel", ended)
    attempts = bank.get(tx["id"])["card"]["attempts"]
    assert [one["hash"] for one in attempts[1:]] == hashes and len(set(hashes)) == 3
    paddock.until(lambda: anvil.ask("eth_getTransactionByHash", attempts[0]["hash"]), "the replacement is sent")
    anvil.ask("evm_mine")
    bank.until_state(tx["id"], "replaced")
    assert anvil.balance(FRIEND) == before
    entries = api.get("/dashboard/audit?limit=20").json()["entries"]
    for action, note in (("transaction.speed_up", "it is urgent"), ("transaction.cancel", "not needed any more")):
        assert any(one["action"] == action and tx["id"] in one["target"] and note in json.dumps(one) for one in entries), action


def test_two_keys_must_agree(document, bank, pending, api, daemon):
    """M of N: one key counts once, and nothing is signed before the second."""
    made = api.post("/v1/keys", {"name": "second, and third (k_admin)", "tenant": "default", "role": "user"})
    assert made.status == 201, made
    second = paddock.Client(daemon, made.json()["key"])
    bank.allow(allow_dangerous=True, approvers=2)
    try:
        tx = pending(2031)
        path, body = f"/v1/transactions/{tx['id']}/approve", {"digest": tx["digest"]}
        assert tx["card"]["approvers"] == {"needed": 2, "have": 0}
        first = api.post(path, body)
        check(document, "post", "/v1/transactions/{}/approve", first)
        assert first.status == 200 and first.json()["state"] == "pending" and first.json()["card"]["approvers"] == {"needed": 2, "have": 1}
        again = api.post(path, body)
        assert again.status == 409 or again.json()["card"]["approvers"]["have"] == 1, "the same key counts once"
        assert bank.get(tx["id"])["state"] == "pending"
        assert second.post(path, body).status == 200
        done = bank.until_state(tx["id"], "confirmed", "final")
        assert done["card"]["approvers"] == {"needed": 2, "have": 2}, "a name with a comma is one name"
        assert made.json()["id"] in done["decided_by"]
    finally:
        bank.allow(allow_dangerous=True)
        api.delete(f"/v1/keys/{made.json()['id']}")


def test_pages_and_filters(bank, pending, api):
    made = [pending(3000 + n)["id"] for n in range(4)]

    def ids(query):
        response = api.get(f"/v1/transactions?{query}")
        assert response.status == 200, response
        return [one["id"] for one in response.json()["transactions"]], response.json()["next"]

    first, after = ids("state=pending&limit=3")
    assert first == made[:0:-1] and after == made[1]
    rest, after = ids(f"state=pending&limit=3&after={after}")
    assert rest == [made[0]] and after is None
    assert ids("state=pending&limit=4")[1] is None
    assert ids(f"state=pending&chain={CHAIN}&agent=spender")[0] == made[::-1]
    assert ids("chain=eip155:1") == ([], None)
    assert ids("state=pending&asset=native&limit=2") == (made[:1:-1], made[2])
    assert ids(f"asset={FRIEND}") == ([], None)
    for query in ("state=odd", "chain=1", "asset=0x1", "limit=501", "limit=0", "format=xml", "nonsense=1"):
        assert api.get(f"/v1/transactions?{query}").status == 400, query
    assert ids("agent=nobody") == ([], None)
    assert "card" not in api.get("/v1/transactions").json()["transactions"][0]


def test_csv(bank, pending, api):
    tx = pending(2006, reason=EVIL)
    answer = api.get("/v1/transactions?format=csv&state=pending")
    assert answer.status == 200 and answer.headers["content-type"].startswith("text/csv")
    (row,) = csv.DictReader(io.StringIO(answer.body.decode(), newline=""))
    assert row["id"] == tx["id"] and row["value"] == "2006" and row["to"] == FRIEND and row["agent_name"] == "spender"
    assert row["reason"] == "'" + EVIL, "no formula"
    assert answer.body.endswith(b"\r\n") and answer.body.count(b"\"'=cmd") == 1
    assert "paddock-next" not in answer.headers
    other = pending(2043, reason="\n@SUM(1+1)")
    rows = csv.DictReader(io.StringIO(api.get("/v1/transactions?format=csv&state=pending").body.decode(), newline=""))
    assert {row["id"]: row["reason"] for row in rows}[other["id"]] == "'\n@SUM(1+1)"


def test_csv_that_is_cut_says_so(bank, pending, api):
    made = [pending(3010 + n)["id"] for n in range(3)][::-1]
    seen, after = [], ""
    for left in (2, 1, 0):
        answer = api.get(f"/v1/transactions?format=csv&state=pending&limit=1{after}")
        seen += [row["id"] for row in csv.DictReader(io.StringIO(answer.body.decode(), newline=""))]
        assert answer.headers.get("paddock-next") == (seen[-1] if left else None)
        after = f"&after={seen[-1]}"
    assert seen == made


class Parts(BaseHTTPRequestHandler):
    """A daemon with more transactions than it tells at once."""

    def do_GET(self):
        part = 2 if "after=one" in self.path else 1
        body = b"id,state\r\n" + (b"two,x\r\n" if part == 2 else b"one,x\r\n")
        self.send_response(200)
        self.send_header("Content-Type", "text/csv")
        self.send_header("Content-Length", str(len(body)))
        if part == 1:
            self.send_header("Paddock-Next", "one")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def test_cli_exports_all_parts(cli):
    server = HTTPServer(("127.0.0.1", 0), Parts)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        assert cli.ok("tx", "export", "--url", f"http://127.0.0.1:{server.server_address[1]}") == "id,state\r\none,x\r\ntwo,x\r\n"
    finally:
        server.shutdown()
        server.server_close()


def test_others_see_and_decide_nothing(bank, pending, api, stranger, daemon):
    tx = pending(2007)
    path = f"/v1/transactions/{tx['id']}"
    assert stranger.get("/v1/transactions").json()["transactions"] == []
    for verb, body in (("approve", {"digest": tx["digest"]}), ("reject", {}), ("cancel", {}), ("speed-up", {}), ("revoke", {}), ("wallet", {"rejected": True})):
        assert stranger.post(f"{path}/{verb}", body).status == 404, verb
    assert stranger.get(path).status == 404
    for thing in ("limits", "spending"):
        assert stranger.get(f"{bank.agent.path}/{thing}").status == 404
    assert stranger.get(f"/v1/wallets/{bank.wallet.id}/spending").status in (403, 404)
    assert stranger.get("/v1/wallets").json()["wallets"] == []
    assert stranger.get("/v1/signer/audit").status == 403
    assert stranger.send_json("PUT", "/v1/signer", {"paused": True}).status == 403
    assert paddock.Client(daemon).get(path).status == 401
    # The agent's own token, and the others of its sandbox: known, and worth nothing here.
    token = bank.run("return env.ASSEGAI_AGENT_TOKEN")
    inside = paddock.Client(daemon, token)
    for method, where, body in (("POST", f"{path}/approve", {"digest": tx["digest"]}), ("GET", path, None), ("POST", f"{path}/reject", {}), ("POST", f"{path}/revoke", {})):
        refused = inside.send_json(method, where, body) if body is not None else inside.get(where)
        assert (refused.status, refused.json()["error"]["code"]) == (403, "forbidden"), where
    assert bank.get(tx["id"])["state"] == "pending"


def test_who_has_no_key_decides_nothing(bank, pending, api):
    """By a listener that asks for none: what is there can be seen, and nobody is known who could decide."""
    tx, bodies = pending(2051), {"approve": "digest", "reject": None, "cancel": None, "speed-up": None, "revoke": None}
    keyless = api.get("/v1/dialects").json()["listeners"][1]["port"]

    def send(method, path, body=None, **headers):
        connection = http.client.HTTPConnection("127.0.0.1", keyless, timeout=60)
        with contextlib.closing(connection):
            connection.request(method, path, json.dumps(body) if body is not None else None, {"Content-Type": "application/json", **headers})
            return connection.getresponse().status

    assert send("GET", f"/v1/transactions/{tx['id']}") == 200, "the control"
    for verb, field in bodies.items():
        assert send("POST", f"/v1/transactions/{tx['id']}/{verb}", {field: tx[field]} if field else {}) == 403, verb
    assert send("POST", f"/v1/transactions/{tx['id']}/wallet", {"rejected": True}) == 403
    assert send("PUT", "/v1/signer", {"paused": True}) == 403
    for forged in ({"Origin": "https://evil.example"}, {"Origin": "null"}, {"Host": "evil.example"}):
        assert send("GET", f"/v1/transactions/{tx['id']}", **forged) == 401, forged
    assert bank.get(tx["id"])["state"] == "pending" and not api.get("/v1/signer").json()["paused"]


FORGED = {
    "another site": {"Origin": "https://evil.example"}, "a sandbox of the browser": {"Origin": "null"}, "another port": {"Origin": "http://127.0.0.1:1"},
    "a form of another site": {"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site", "Content-Type": "application/x-www-form-urlencoded"},
    "as text": {"Origin": "https://evil.example", "Content-Type": "text/plain"}, "no origin": {"Origin": None},
    "no origin, as text": {"Origin": None, "Content-Type": "text/plain", "Sec-Fetch-Site": None}, "our origin by a link": {"Sec-Fetch-Site": "none"},
    "same site only": {"Sec-Fetch-Site": "same-site"}, "no header of ours": {"X-Paddock-Dashboard": None}, "a name that leads here": {"Host": "evil.example"},
    "a name that leads here, and says so": {"Host": "evil.example", "Origin": "http://evil.example"},
}


def test_no_other_page_decides_with_the_session(bank, pending, daemon, api):
    """The browser would send the cookie along. The same requests of our own page are taken: that is the control."""
    tx, guest = pending(2050), paddock.Client(daemon)
    cookie = cookie_of(sign_in(guest, daemon.key))
    paths = {f"/v1/transactions/{tx['id']}/{verb}": body for verb, body in
             (("approve", {"digest": tx["digest"]}), ("reject", {}), ("cancel", {}), ("speed-up", {}), ("revoke", {}), ("wallet", {"rejected": True}))}
    paths |= {"/v1/wallets/connect": {}, "/v1/agents": {"manifest": agents_kit.manifest(), "consent": True, "name": "forged"},
              f"{bank.agent.path}/stop": {}}

    def send(method, path, body, **change):
        headers = page(daemon, Cookie=cookie, **{"Content-Type": "application/json", **change})
        return guest.request(method, path, json.dumps(body).encode(), {name: value for name, value in headers.items() if value is not None})

    for what, change in FORGED.items():
        for path, body in paths.items():
            assert send("POST", path, body, **change).status in ((401, 403) if "Host" in change else (403,)), (what, path)
        for path, body in ((f"{bank.agent.path}/limits", {"paused": True}), ("/v1/signer", {"paused": True})):
            assert send("PUT", path, body, **change).status in (401, 403), (what, path)
    assert bank.get(tx["id"])["state"] == "pending" and not api.get("/v1/signer").json()["paused"] and bank.agent.get()["status"] == "running"
    # A body that a form can send is no JSON, whoever sends it.
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"):
        refused = send("POST", f"/v1/transactions/{tx['id']}/approve", {"digest": tx["digest"]}, **{"Content-Type": kind})
        assert refused.status in (400, 415), (kind, refused)
    done = send("POST", f"/v1/transactions/{tx['id']}/reject", {"note": "by the page"})
    assert (done.status, done.json()["state"]) == (200, "rejected")


def test_limits_only_get_stricter(document, bank, api):
    path = f"{bank.agent.path}/limits"
    shown = api.get(path)
    check(document, "get", "/v1/agents/{}/limits", shown)
    before = shown.json()
    same = api.send_json("PUT", path, {key: before[key] for key in before if key not in ("agent", "wallets", "typed") and before[key] is not None})
    assert (same.status, same.json()) == (200, before), "what was shown can be put"
    assert before["wallets"] == [{"chain": CHAIN, "wallet": bank.wallet.id}] and before["allow_dangerous"] and not before["paused"]
    try:
        changed = api.send_json("PUT", path, {"approvers": 2, "limits": [{"chain": CHAIN, "asset": "native", "per_transaction": "1000", "day": "5000"}],
                                              "addresses": [{"address": FRIEND, "deny": True}],
                                              "windows": [{"days": ["mon", "sun"], "start": "08:00", "end": "24:00"}]})
        check(document, "put", "/v1/agents/{}/limits", changed)
        assert changed.status == 200, changed
        now = changed.json()
        assert now["approvers"] == 2 and now["limits"][0]["day"] == "5000" and now["windows"][0]["end"] == "24:00" and now["addresses"][0]["deny"]
        assert now["max_pending"] == before["max_pending"], "what was not named stays"
        for looser in ({"approvers": 1}, {"addresses": [{"address": FRIEND, "deny": True, "note": "a name"}]}, {"allow_messages": True}, {"addresses": []}, {"windows": []},
                       {"limits": [{"chain": CHAIN, "asset": "native", "per_transaction": "1001", "day": "5000"}]}):
            assert api.send_json("PUT", path, looser).status == 403, looser
        for wrong in ({"approvers": 0}, {"nonsense": 1}, {"limits": {}}, {"limits": [{"chain": "1", "asset": "native", "per_transaction": "1"}]},
                      {"limits": [{"chain": CHAIN, "asset": "native", "per_transaction": "-1"}]}, {"windows": [{"days": ["mon"], "start": "8", "end": "9"}]},
                      {"windows": [{"days": ["day"], "start": "08:00", "end": "09:00"}]}, {"addresses": [{"address": bank.account.swapcase().replace("X", "x")}]},
                      []):
            assert api.send_json("PUT", path, wrong).status == 400, wrong
    finally:
        bank.allow(allow_dangerous=True)
    assert api.get(path).json()["limits"][0]["per_transaction"] == str(ETHER)
    try:
        assert api.send_json("PUT", path, {"paused": True}).json()["paused"]
        assert bank.send(1).result(120)["body"]["error"].startswith("Agent is paused")
    finally:
        bank.allow(allow_dangerous=True)


def test_spending(document, bank, pending, api):
    def line(path, **wanted):
        answer = api.get(path)
        assert answer.status == 200, answer
        check(document, "get", re.sub(r"/(agents|wallets)/[^/]+/", r"/\1/{}/", path), answer)
        return next(one for one in answer.json()["lines"] if all(one[k] == v for k, v in wanted.items()))

    before = line(f"{bank.agent.path}/spending", fee=False)
    pending(2008)
    after = line(f"{bank.agent.path}/spending", fee=False)
    assert int(after["spent"]["day"]) == int(before["spent"]["day"]) + 2008 and int(after["reserved"]) >= 2008
    assert after["per_transaction"] == str(ETHER) and after["limit"]["day"] is None
    assert int(line(f"/v1/wallets/{bank.wallet.id}/spending", fee=False)["spent"]["lifetime"]) >= 2008
    assert line(f"/v1/wallets/{bank.wallet.id}/spending", fee=True)["limit"]["day"] == str(100 * ETHER)


def test_wallets_chains_and_the_signer(document, bank, api):
    for path in ("/v1/wallets", "/v1/chains", "/v1/signer", "/v1/signer/audit?verify=true&limit=3"):
        answer = api.get(path)
        assert answer.status == 200, answer
        check(document, "get", path.partition("?")[0], answer)
    (wallet,) = api.get("/v1/wallets").json()["wallets"]
    assert wallet["address"] == bank.account and wallet["kind"] == "test" and "key" not in json.dumps(wallet)
    (chain,) = api.get("/v1/chains").json()["chains"]
    assert chain["id"] == CHAIN and chain["name"] == "Anvil" and chain["status"] == "ok" and chain["explorer"] == "https://explorer.example"
    status, page = api.get("/v1/signer").json(), api.get("/v1/signer/audit?verify=true&limit=3").json()
    assert status["available"] and not status["paused"] and status["wallets"] == 1
    assert page["verified"] == {"entries": status["audit_seq"], "broken_at": None} and len(page["entries"]) == 3
    more = api.get(f"/v1/signer/audit?after={page['next']}&limit=500").json()["entries"]
    assert more[0]["prev"] == page["entries"][-1]["hash"] and "verified" not in more
    assert api.get("/v1/signer/audit?after=x").status == 400


def test_decisions_are_in_the_audit_log_of_the_api(bank, pending, daemon):
    tx = pending(2009)
    bank.say(tx["id"], "reject", note="not today")
    entries = daemon.client().get("/dashboard/audit?limit=20").json()["entries"]
    entry = next(one for one in entries if one["action"] == "transaction.reject")
    assert tx["id"] in entry["target"] and entry["status"] == 200 and "not today" in json.dumps(entry)


# ---- events


def test_events_and_signed_webhooks(bank, daemon, api, pending):
    receiver = Receiver()
    types = "transaction.pending,transaction.decided,transaction.changed"
    hook = api.post("/v1/webhooks", {"url": receiver.url, "events": types.split(",")}).json()
    stream = Stream(daemon, f"type={types}")
    try:
        tx = pending(2010)
        api.post(f"/v1/transactions/{tx['id']}/approve", {"digest": tx["digest"]})
        mine = lambda text: json.loads(text)["data"]["id"] == tx["id"]  # noqa: E731 - those of the test before may still come
        paddock.until(lambda: any(mine(event["data"]) and '"state":"confirmed"' in event["data"] for event in list(stream.events)), "it is confirmed")
        seen, told = [], [(event["event"], json.loads(event["data"])) for event in list(stream.events) if mine(event["data"])]
        for kind, event in told:
            assert event["data"]["agent_name"] == "spender" and event["data"]["chain"] == CHAIN
            assert event["sandbox"] == bank.agent.get()["sandbox"] and event["type"] == kind
            seen.append((kind, event["data"]["state"]))
        assert seen[:2] == [("transaction.pending", "pending"), ("transaction.decided", "approved")], seen
        assert [state for _, state in seen[2:5]] == ["signed", "broadcast", "included"] and {kind for kind, _ in seen[2:]} == {"transaction.changed"}
        got = lambda: [(e["type"], e["data"]["state"]) for e in receiver.events() if e["data"]["id"] == tx["id"]]  # noqa: E731
        paddock.until(lambda: len(got()) >= len(seen), "the webhook has them")
        assert got()[:len(seen)] == seen
        _, headers, body = receiver.got[0]
        t, v1 = re.fullmatch(r"t=(\d+),v1=([0-9a-f]{64})", headers["Paddock-Signature"]).groups()
        assert hmac.compare_digest(v1, hmac.new(hook["secret"].encode(), t.encode() + b"." + body, hashlib.sha256).hexdigest())
    finally:
        stream.close()
        api.delete(f"/v1/webhooks/{hook['id']}")
        receiver.close()


# ---- the command line


@contextlib.contextmanager
def terminal(cli, *words):
    """A command on a terminal: the process, and an object to read and write."""
    main, side = pty.openpty()
    process = cli.start(*words, stdin=side, stdout=side, stderr=side)
    os.close(side)
    try:
        yield process, os.fdopen(main, "r+b", buffering=0)
    finally:
        process.kill()
        process.wait()


def read_until(file, end):
    text = b""
    while end not in text:
        piece = file.read(4096)
        assert piece, text
        text += piece
    return text.decode()


def test_cli_shows_and_decides(cli, bank, pending):
    tx = pending(2011, reason=EVIL)
    assert tx["id"] in cli.ok("tx", "ls", "--pending") and cli.json("tx", "ls", "-a", "spender", "-p")[0]["id"] == tx["id"]
    shown = cli.ok("tx", "show", tx["id"])
    assert shown == bank.get(tx["id"])["card"]["text"] and "\x1b" not in shown and f"Digest {tx['digest']}\n" in shown
    assert "(native)" not in shown + cli.ok("tx", "ls", "--pending") and " ETH" in cli.ok("tx", "ls", "--pending"), "the chain's symbol"
    assert "--digest" in cli.refused("tx", "approve", tx["id"]), "nobody was asked"
    assert "not the request that was shown" in cli.refused("tx", "approve", tx["id"], "--digest", "0x" + "11" * 32)
    assert cli.ok("tx", "reject", tx["id"], "-m", "no").startswith(f"{tx['id']}: rejected")
    assert "rejected" in cli.refused("tx", "reject", tx["id"])
    tx = pending(2012)
    assert cli.json("tx", "approve", tx["id"], "--digest", tx["digest"])["state"] != "pending"
    tx = pending(2013)
    assert cli.ok("tx", "cancel", tx["id"]).startswith(f"{tx['id']}: cancelled")
    assert cli.refused("tx", "speed-up", tx["id"])


@pytest.mark.parametrize("typed, state", [(b"n\n", "pending"), (b"y\n", "approved")])
def test_cli_asks(cli, bank, pending, typed, state):
    tx = pending(2014)
    with terminal(cli, "tx", "approve", tx["id"]) as (process, file):
        text = read_until(file, b"[y/N] ")
        assert "Agent spender wants to send" in text and "first" not in text.partition("wants")[0]
        file.write(typed)
        assert process.wait(30) == (0 if state == "approved" else 1)
    assert (bank.get(tx["id"])["state"] == "pending") == (state == "pending")


OPERATOR = "0x" + bytes(range(0x30, 0x44)).hex()
HANDS_OVER = "0xa22cb465" + "00" * 12 + OPERATOR[2:] + "00" * 31 + "01"  # setApprovalForAll


def test_dangerous_ones_need_the_middle_of_the_address(cli, bank, pending):
    """That of the operator who is given control, not of the contract that is called; the danger stands before all facts."""
    tx = pending(0, to=CONTRACT, data=HANDS_OVER)
    assert tx["class"] == "dangerous" and tx["card"]["confirm"] == OPERATOR[18:26] and "digits 17 to 24" in tx["card"]["confirm_hint"]
    assert any(risk["level"] == "danger" for risk in tx["card"]["risks"])
    text = tx["card"]["text"]
    assert 0 < text.index("DANGER") < text.index("request  ") and text.count("DANGER") == 1
    for typed, code in ((b"y\n", 1), (OPERATOR[-4:].encode() + b"\n", 1), (CONTRACT[18:26].encode() + b"\n", 1), (OPERATOR[18:26].encode() + b"\n", 0)):
        with terminal(cli, "tx", "approve", tx["id"]) as (process, file):
            read_until(file, b"not from this request. ")
            assert bank.get(tx["id"])["state"] == "pending"
            file.write(typed)
            assert process.wait(30) == code
    assert bank.get(tx["id"])["state"] != "pending"


def test_a_poisoned_address_is_not_confirmed_by_what_it_shares(bank, pending):
    """The digits are some in which it differs from the address that it looks like; those at its ends are the same."""
    known, poisoned = OPERATOR, OPERATOR[:34] + "ffff" + OPERATOR[38:]
    bank.allow(allow_dangerous=True, addresses=[signer.pb.AddressRule(chain=bank.number, address=bytes.fromhex(known[2:]))])
    try:
        card = pending(2040, to=poisoned)["card"]
        assert [r["name"] for r in card["risks"]][0] == "address.poisoned" and "digits 29 to 36" in card["confirm_hint"], card
        assert card["confirm"] == poisoned[30:38] != known[30:38]
        token = pending(0, to=CONTRACT, data="0xa9059cbb" + "00" * 12 + poisoned[2:] + "00" * 31 + "00")  # of nothing: the recipient does not count
        assert token["card"]["confirm"] is None
    finally:
        bank.allow(allow_dangerous=True)


def test_an_opaque_message_is_dangerous(bank, pending):
    """32 bytes are the hash of something: the agent needs both permissions, and the card shows them."""
    blob = bytes([0x80, *range(31)])
    sign = f"""const r = await fetch(env.ASSEGAI_API_PROXY + '/rpc/{bank.chain}', {{ method: 'POST', headers: {{ ...headers, 'Content-Type': 'application/json' }},
        body: JSON.stringify({{ jsonrpc: '2.0', id: 1, method: 'personal_sign', params: ['0x%s', '{bank.account}'] }}) }});
        return {{ status: r.status, body: await r.json() }}"""
    try:
        bank.allow(allow_messages=True)
        assert "nobody can read" in json.dumps(bank.start(sign % blob.hex()).result(60))
        bank.allow(allow_messages=True, allow_dangerous=True)
        waits = bank.start(sign % blob.hex())
        item = bank.get(paddock.until(lambda: next((t for t in bank.list(state="pending") if t["kind"] == "message"), None), "a message waits")["id"])
        assert item["class"] == "dangerous" and item["card"]["confirm"] and item["card"]["risks"][0]["name"] == "message.opaque"
        assert f"0x{blob.hex()}" in item["card"]["text"] and "no text" in item["card"]["text"]
        bank.say(item["id"], "reject")
        waits.result(60)
        bank.allow(allow_messages=True)
        waits = bank.start(sign % b"Sign in".hex())
        item = bank.get(paddock.until(lambda: next((t for t in bank.list(state="pending") if t["kind"] == "message"), None), "a message waits")["id"])
        assert item["class"] == "message" and item["card"]["confirm"] is None and '"Sign in"' in item["card"]["text"]
        bank.say(item["id"], "reject")
        waits.result(60)
    finally:
        bank.allow(allow_dangerous=True)


def test_cli_watches_and_notifies(cli, bank, pending, tmp_path):
    said, program = tmp_path / "said", tmp_path / "notify-send"
    program.write_text(f'#!/bin/sh\nprintf "%s|" "$@" > {said}\n')
    program.chmod(0o755)
    first = pending(2015)
    watch = Cli(cli.daemon, PATH=f"{tmp_path}:/usr/bin:/bin").start("tx", "watch", "--notify", "-n", "1", stdout=subprocess.PIPE)
    try:
        assert re.fullmatch(rf"\S+  pending  {first['id']}  .*\n", watch.stdout.readline().decode()), "what waits already; the stream is open by now"
        second = pending(2016)
        assert re.fullmatch(rf"\S+  pending  {second['id']}  .*\n", watch.stdout.readline().decode())
        assert watch.wait(60) == 0
    finally:
        watch.kill()
        watch.wait()
        watch.stdout.close()
    assert said.read_text() == f"--app-name=Paddock|--urgency=critical|--|An agent asks for a signature|{second['summary']}|"


def test_cli_watches_on_when_the_daemon_is_back(cli, daemon, bank, pending):
    """Where it was: what came meanwhile is told, nothing is told twice."""
    made = [pending(2040)["id"]]
    watch = cli.start("tx", "watch", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        assert made[0] in watch.stdout.readline().decode(), "the stream is open by now"
        made.append(pending(2041)["id"])
        assert made[1] in watch.stdout.readline().decode()
        daemon.kill_api()
        assert watch.stderr.readline() == b"The daemon is away. Waiting until it is back.\n"
        assert watch.stderr.readline() == b"The daemon is back.\n"
        made.append(pending(2042)["id"])
        assert made[2] in watch.stdout.readline().decode()
    finally:
        watch.kill()
        watch.wait()
        watch.stdout.close()
        watch.stderr.close()


def test_cli_exports(cli, bank, pending):
    tx = pending(2017, reason=EVIL)
    rows = list(csv.DictReader(io.StringIO(cli.ok("tx", "export", "-p").replace("\r\n", "\n"))))
    assert [row["id"] for row in rows] == [tx["id"]]
    everything = json.loads(cli.ok("tx", "export", "--format", "json"))
    assert everything[0]["id"] == tx["id"] and len(everything) > 5
    assert "csv or json" in cli.refused("tx", "export", "--format", "xml")


def test_cli_tells_what_was_spent(cli, bank):
    assert "native" in cli.ok("tx", "spent", "spender") and "fees" in cli.ok("tx", "spent", "-w", bank.wallet.id)
    assert json.loads(cli.ok("tx", "limits", "spender"))["agent"] == bank.agent.id
    status = cli.ok("tx", "status")
    assert "The signer runs" in status and bank.account in status and "Anvil" in status
    assert cli.json("tx", "status")["signer"]["available"] is True
    assert "wallet" in cli.ok("tx", "audit", "--verify")


# ---- MCP


ELICIT = {"elicitation": {"form": {}}}


def call(mcp, capabilities=None, **params):
    body, headers = mcp.modern("tools/call", capabilities, name="transactions", **params)
    return mcp.send(body, **headers)[2][-1]


def test_mcp_lists_and_shows(daemon, bank, pending, stranger):
    tx = pending(2018, reason=EVIL)
    mcp = Mcp(daemon)
    listed = call(mcp, arguments={})["result"]["structuredContent"]
    assert [one["id"] for one in listed["transactions"]] == [tx["id"]] and listed["text"] is None
    shown = call(mcp, arguments={"action": "show", "transaction": tx["id"]})["result"]["structuredContent"]
    assert shown["text"] == bank.get(tx["id"])["card"]["text"]
    for arguments in ({"action": "approve", "transaction": tx["id"]}, {"action": "show"}, {"action": "decide", "transaction": "nonsense"}):
        assert call(mcp, ELICIT, arguments=arguments)["result"]["isError"], arguments
    other = Mcp(daemon, stranger.key)
    assert call(other, arguments={})["result"]["structuredContent"]["transactions"] == []
    for action in ("show", "decide"):
        assert "not_found" in json.dumps(call(other, ELICIT, arguments={"action": action, "transaction": tx["id"]})["result"])


def test_mcp_the_user_decides(daemon, bank, pending, stranger):
    tx = pending(2019)
    mcp, arguments = Mcp(daemon), {"action": "decide", "transaction": tx["id"]}
    yes = {"decision": {"action": "accept", "content": {"decision": "approve"}}}
    refused = call(mcp, arguments=arguments)["result"]
    assert refused["isError"] and "elicitation" in json.dumps(refused), "a client that cannot ask decides nothing"
    # A model that answers itself, without the state that comes with the question, is asked.
    for answers in (None, yes):
        asked = call(mcp, ELICIT, arguments=arguments, **({"inputResponses": answers} if answers else {}))["result"]
        assert asked["resultType"] == "input_required" and asked["inputRequests"]["decision"]["method"] == "elicitation/create"
    form = asked["inputRequests"]["decision"]["params"]
    assert form["message"] == bank.get(tx["id"])["card"]["text"] and form["requestedSchema"]["required"] == ["decision"]
    state = asked["requestState"]
    # The state is for this call, this key and nobody else.
    sealed = base64.b64decode(state)
    forged = base64.b64encode(sealed[:-1] + bytes([sealed[-1] ^ 1])).decode()
    second = pending(2020)
    for who, given, about in ((mcp, forged, arguments), (Mcp(daemon, stranger.key), state, arguments), (mcp, state, {**arguments, "transaction": second["id"]})):
        assert call(who, ELICIT, arguments=about, inputResponses=yes, requestState=given)["error"]["code"] == -32602
    for answers in ({"decision": {"action": "decline"}}, {"decision": {"action": "accept", "content": {"decision": "perhaps"}}}, {"decision": {"action": "accept"}}):
        assert call(mcp, ELICIT, arguments=arguments, inputResponses=answers, requestState=state)["result"]["isError"]
    assert bank.get(tx["id"])["state"] == bank.get(second["id"])["state"] == "pending"
    done = call(mcp, ELICIT, arguments=arguments, inputResponses=yes, requestState=state)["result"]
    assert not done.get("isError") and done["structuredContent"]["transactions"][0]["state"] != "pending", done
    assert call(mcp, ELICIT, arguments=arguments, inputResponses=yes, requestState=state)["result"]["isError"], "decided once"
    asked = call(mcp, ELICIT, arguments={**arguments, "transaction": second["id"]})["result"]
    no = {"decision": {"action": "accept", "content": {"decision": "reject"}}}
    done = call(mcp, ELICIT, arguments={**arguments, "transaction": second["id"]}, inputResponses=no, requestState=asked["requestState"])["result"]
    assert done["structuredContent"]["transactions"][0]["state"] == "rejected"


def next_message(stream):
    return json.loads(next(line for line in iter(stream.readline, b"") if line.startswith(b"data: {"))[6:])


@pytest.mark.parametrize("answer, state", [({"action": "accept", "content": {"decision": "reject"}}, "rejected"), ({"action": "decline"}, "pending"),
                                           ({"action": "accept", "content": {"decision": "approve"}}, "approved")])
def test_mcp_the_user_decides_in_the_older_era(daemon, bank, pending, answer, state):
    """In a session the question is a request on the call's stream, and the call waits."""
    tx, mcp = pending(2045), Mcp(daemon)
    mcp.begin("2025-11-25", capabilities={"elicitation": {}})
    arguments = {"action": "decide", "transaction": tx["id"]}
    connection, stream = mcp.open(body=mcp.request("tools/call", name="transactions", arguments=arguments))
    with contextlib.closing(connection):
        asked = next_message(stream)
        assert asked["method"] == "elicitation/create" and asked["params"]["message"] == bank.get(tx["id"])["card"]["text"]
        assert mcp.send({"jsonrpc": "2.0", "id": "paddock-0", "result": answer})[0] == 202, "of no question"
        assert bank.get(tx["id"])["state"] == "pending"
        assert mcp.send({"jsonrpc": "2.0", "id": asked["id"], "result": answer})[0] == 202
        result = next_message(stream)["result"]
    now = bank.get(tx["id"])["state"]
    assert bool(result.get("isError")) == (state == "pending"), result
    assert (now != "pending") if state == "approved" else (now == state)
    mcp.send(method="DELETE")


def test_mcp_a_session_that_cannot_ask_decides_nothing(daemon, bank, pending):
    tx, mcp = pending(2046), Mcp(daemon)
    mcp.begin("2025-11-25")
    result = mcp.tool("transactions", action="decide", transaction=tx["id"])
    assert result["isError"] and "elicitation" in json.dumps(result) and bank.get(tx["id"])["state"] == "pending"
    mcp.send(method="DELETE")


def test_mcp_an_answer_that_comes_too_late(daemon, bank, pending):
    """The question was asked in time in both eras, and the request has expired when the user says yes."""
    arguments, yes = {"action": "decide"}, {"action": "accept", "content": {"decision": "approve"}}
    mcp, older = Mcp(daemon), Mcp(daemon)
    older.begin("2025-11-25", capabilities={"elicitation": {}})
    try:
        for seconds in (5, 20, 60):
            bank.allow(allow_dangerous=True, expiry_s=seconds)
            arguments["transaction"] = pending(2047)["id"]
            connection, stream = older.open(body=older.request("tools/call", name="transactions", arguments=arguments))
            asked = call(mcp, ELICIT, arguments=arguments)["result"]
            question = next_message(stream)
            if asked.get("resultType") == "input_required" and question.get("method") == "elicitation/create":
                break
            connection.close()
    finally:
        bank.allow(allow_dangerous=True)
    with contextlib.closing(connection):
        bank.until_state(arguments["transaction"], "expired", timeout=120)
        late = call(mcp, ELICIT, arguments=arguments, inputResponses={"decision": yes}, requestState=asked["requestState"])["result"]
        assert late["isError"] and "expired" in json.dumps(late), late
        assert older.send({"jsonrpc": "2.0", "id": question["id"], "result": yes})[0] == 202
        late = next_message(stream)["result"]
        assert late["isError"] and "expired" in json.dumps(late), late
    again = call(mcp, ELICIT, arguments=arguments)["result"]
    assert again["isError"] and "expired" in json.dumps(again), "and it is not asked about any more"
    assert bank.get(arguments["transaction"])["state"] == "expired"
    older.send(method="DELETE")


def test_mcp_dangerous_ones_need_the_digits(daemon, bank, pending):
    tx = pending(0, to=CONTRACT, data=HANDS_OVER)
    mcp, arguments = Mcp(daemon), {"action": "decide", "transaction": tx["id"]}
    asked = call(mcp, ELICIT, arguments=arguments)["result"]
    assert "confirm" in asked["inputRequests"]["decision"]["params"]["requestedSchema"]["properties"]

    def answer(**content):
        return call(mcp, ELICIT, arguments=arguments, requestState=asked["requestState"],
                    inputResponses={"decision": {"action": "accept", "content": {"decision": "approve", **content}}})["result"]

    assert answer()["isError"] and answer(confirm="0000")["isError"] and bank.get(tx["id"])["state"] == "pending"
    assert answer(confirm=OPERATOR[-4:])["isError"] and bank.get(tx["id"])["state"] == "pending"
    assert not answer(confirm=OPERATOR[18:26]).get("isError")
    assert bank.get(tx["id"])["state"] != "pending"


# ---- two tenants, each with an agent and a wallet


@pytest.fixture
def neighbour(daemon, api):
    """Another tenant that has all of it, too: its client, and its bank."""
    made = api.post("/v1/keys", {"tenant": "tx-neighbour", "role": "user", "create_tenant": True}).json()
    client = paddock.Client(daemon, made["key"])
    response = client.post("/v1/agents", {"manifest": agents_kit.manifest(), "consent": True, "name": "spender"})
    assert response.status == 201, response
    agent = agents_kit.Agent(client, response.json())
    assert agent.upload(pack("index.js", "sdk.js", "run.js")).status == 202
    agent.wait("stopped")
    agent.do("start")
    agent.until_logged("hello by the API")
    yield client, Bank(daemon, agent, index=2)
    paddock.until(lambda: client.delete(agent.path).status in (204, 404), "the agent is removed")
    api.delete(f"/v1/keys/{made['id']}")


def test_tenants_apart(daemon, api, bank, pending, neighbour):
    """Whatever lists, tells or exports has what is the tenant's own, which is the control, and nothing else."""
    client, own = neighbour
    receiver, types = Receiver(), "transaction.pending,transaction.decided,transaction.changed"
    hook = client.post("/v1/webhooks", {"url": receiver.url, "events": types.split(",")}).json()
    stream = Stream(daemon, f"type={types}", key=client.key)
    try:
        others = pending(2060)
        mine = own.send(2061, headers={"Prefer": "respond-async"}).result(60)["body"]["id"]
        assert own.say(mine, "reject").status == 200
        paddock.until(lambda: any('"rejected"' in e["data"] for e in list(stream.events)) and any(e["data"]["state"] == "rejected" for e in receiver.events()),
                      "what became of it is told")
        told = [json.loads(e["data"]) for e in list(stream.events)] + receiver.events()
        assert {e["data"]["id"] for e in told} == {mine}, "events of others"
    finally:
        stream.close()
        receiver.close()
        client.delete(f"/v1/webhooks/{hook['id']}")
    assert [one["id"] for one in client.get("/v1/transactions").json()["transactions"]] == [mine]
    assert {mine, others["id"]} <= {one["id"] for one in api.get("/v1/transactions").json()["transactions"]}
    rows = csv.DictReader(io.StringIO(client.get("/v1/transactions?format=csv").body.decode(), newline=""))
    assert [row["id"] for row in rows] == [mine]
    for query in (f"agent={bank.agent.id}", f"after={others['id']}", f"agent={bank.agent.id}&format=csv"):
        assert others["id"] not in client.get(f"/v1/transactions?{query}").body.decode(), query
    listed = call(Mcp(daemon, client.key), arguments={})["result"]["structuredContent"]["transactions"]
    assert listed == []
    assert [one["id"] for one in client.get("/v1/wallets").json()["wallets"]] == [own.wallet.id]
    assert {own.wallet.id, bank.wallet.id} == {one["id"] for one in api.get("/v1/wallets").json()["wallets"]}
    assert [one["id"] for one in client.get("/v1/agents").json()["agents"]] == [own.agent.id]
    for wallet in (own.wallet.id, bank.wallet.id):
        assert client.get(f"/v1/wallets/{wallet}/spending").status == 403, "of all tenants together"
    path = bank.agent.path
    for method, where, body in (("GET", path, None), ("DELETE", path, None), ("GET", f"{path}/logs", None), ("GET", f"{path}/limits", None),
                                ("GET", f"{path}/spending", None), ("PUT", f"{path}/limits", {"paused": True}), ("POST", f"{path}/start", {}),
                                ("POST", f"{path}/stop", {}), ("POST", f"{path}/restart", {}),
                                ("POST", f"/v1/transactions/{others['id']}/approve", {"digest": others["digest"]}),
                                ("POST", f"/v1/transactions/{others['id']}/reject", {}), ("POST", f"/v1/transactions/{others['id']}/revoke", {}), ("GET", f"/v1/transactions/{others['id']}", None)):
        answer = client.request(method, where) if body is None else client.send_json(method, where, body)
        assert answer.status == 404, (method, where, answer)
    assert client.request("PUT", f"{path}/code", pack("index.js")).status == 404
    # Nor has an agent anything of another agent, whose id it knows.
    got = own.run(f"""const ask = (id, method, end) => fetch(`${{env.ASSEGAI_API_PROXY}}/agent/transactions/${{id}}${{end}}`, {{ method, headers }}).then((r) => r.status);
      return [await ask("{mine}", "GET", ""), await ask("{others['id']}", "GET", ""), await ask("{others['id']}", "POST", "/cancel")]""")
    assert got == [200, 404, 404]
    assert bank.agent.get()["status"] == "running" and bank.get(others["id"])["state"] == "pending"
    # How much there is of others is not told either.
    status = client.get("/v1/signer").json()
    assert status["available"] and status["paused"] is False and status["wallets"] is status["pending"] is status["audit_seq"] is status["audit_hash"] is None
    assert api.get("/v1/signer").json()["wallets"] == 2
    assert client.get("/v1/chains").json()["chains"][0]["under_way"] == 0
    for route in ("/v1/signer/audit", "/v1/wallets/sessions"):
        assert client.get(route).status == 403, route


# ---- last: nothing is signed any more


def test_the_kill_switch(document, bank, pending, cli, api):
    tx = pending(2021)
    assert api.send_json("PUT", "/v1/signer", {"paused": False}).status == 403
    assert api.send_json("PUT", "/v1/signer", {}).status == 400
    stopped = api.send_json("PUT", "/v1/signer", {"paused": True})
    check(document, "put", "/v1/signer", stopped)
    assert stopped.json()["paused"] is True
    assert "PAUSED" in cli.ok("tx", "status")
    assert bank.say(tx["id"], "approve", digest=tx["digest"]).status == 403
    assert bank.send(2022).result(120)["body"]["error"].startswith("Agent is paused")
    assert "paddock wallet resume" in cli.ok("tx", "pause", "--cancel-pending")
    assert bank.get(tx["id"])["state"] == "cancelled"
    bank.own("PAUSE", paused=False)
    assert api.get("/v1/signer").json()["paused"] is False
