"""WalletConnect with real peers: WalletKit is the wallet, a small relay has a mailbox, anvil is the chain (docs/walletconnect.md)."""

import json
import subprocess

import pytest

import paddock
from walletconnect_kit import CHAIN, FIRST, SECOND, anvil, connect, daemon, modules, relay, sessions, wallet  # noqa: F401


@pytest.fixture(autouse=True)
def ended(daemon):
    """Every test begins and ends without sessions."""
    yield
    for one in sessions(daemon):
        assert daemon.client().delete(f"/v1/wallets/sessions/{one['id']}").status == 204


def answers(relay, wallet, what, tag, **more):
    """The daemon answers what the wallet asks. Whether WalletKit notices is not ours: it loses answers that are too fast for it."""
    before = len(relay.published(tag))
    wallet.tell(what, **more)
    paddock.until(lambda: len(relay.published(tag)) > before, f"{what} is answered")


def external(daemon):
    response = daemon.client().get("/v1/wallets")
    assert response.status == 200, response
    return {w["address"]: w for w in response.json()["wallets"] if w["kind"] == "external"}


def test_pair_and_settle(daemon, relay, modules, wallet):
    response = daemon.client().post("/v1/wallets/connect", {"chains": [CHAIN], "label": "phone"})
    assert response.status == 201, response
    pairing = response.json()
    assert pairing["uri"].startswith("wc:") and "@2?relay-protocol=irn&symKey=" in pairing["uri"]
    read = subprocess.run(["node", "qr.mjs"], cwd=modules, input=json.dumps(pairing["qr"]), capture_output=True, text=True, timeout=60 * paddock.SLOW)
    assert read.stdout == pairing["uri"]
    assert sessions(daemon) == []
    it = wallet()
    it.do("pair", uri=pairing["uri"])
    proposal = it.wait("proposal")
    assert proposal["name"] == "Paddock" and proposal["chains"] == [CHAIN] and "eth_sendTransaction" in proposal["methods"]
    it.wait("session")
    session = paddock.until(lambda: sessions(daemon), "the session is listed")[0]
    assert session["id"] == pairing["id"] and session["name"] == "Test Wallet" and session["url"] == "https://wallet.example"
    assert session["accounts"] == [f"{CHAIN}:{FIRST}"]
    paddock.until(lambda: external(daemon).get(FIRST), "the account is a wallet")
    assert external(daemon)[FIRST]["label"] == "phone"
    answers(relay, it, "ping", 1115)
    answers(relay, it, "extend", 1107)


def test_a_session_outlives_the_api_and_the_relays_line(daemon, relay, wallet):
    it = wallet()
    before = connect(daemon, it)
    daemon.kill_api()
    assert sessions(daemon) == [before]
    answers(relay, it, "ping", 1115)
    relay.ask("/down?ms=1500")
    answers(relay, it, "ping", 1115)
    daemon.restart()
    assert sessions(daemon) == [before]
    answers(relay, it, "ping", 1115)


def test_the_wallet_ends_the_session(daemon, wallet):
    it = wallet()
    connect(daemon, it)
    it.do("disconnect")
    paddock.until(lambda: sessions(daemon) == [], "the session is gone")
    daemon.kill_api()
    assert sessions(daemon) == []


def test_it_is_ended_here(daemon, relay, wallet):
    it = wallet()
    session = connect(daemon, it)
    client = daemon.client()
    assert client.delete(f"/v1/wallets/sessions/{session['id']}").status == 204
    it.wait("deleted")
    assert client.delete(f"/v1/wallets/sessions/{session['id']}").status == 404


def test_by_the_command_line(daemon, modules, wallet):
    """The code in the terminal is read by a decoder, the wallet pairs by it, and the command says who is there."""
    where = ("--url", daemon.url, "--key-file", str(daemon.data_dir / "admin.key"))
    command = subprocess.Popen([paddock.BIN / "paddock", "wallet", "connect", "--chain", CHAIN, "--label", "phone", *where], stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=paddock.clean_environment())
    lines = []
    while not lines or not lines[-1].startswith("wc:"):
        lines.append(command.stdout.readline().rstrip("\n"))
        assert lines[-1], lines
    rows = [["01"[c in half] for c in line] for line in lines[:-1] for half in ("\u2580\u2588", "\u2584\u2588")]
    rows = ["".join(row[4:-4]) for row in rows[4:4 + len(rows[0]) - 8]]
    read = subprocess.run(["node", "qr.mjs"], cwd=modules, input=json.dumps(rows), capture_output=True, text=True, timeout=60 * paddock.SLOW)
    assert read.stdout == lines[-1]
    it = wallet()
    it.do("pair", uri=read.stdout)
    assert command.stdout.read() == f"Test Wallet is connected:\n  {CHAIN}:{FIRST}\n"
    assert command.wait() == 0
    run = lambda *words: subprocess.run([paddock.BIN / "paddock", "wallet", *words, *where], capture_output=True, text=True, env=paddock.clean_environment())  # noqa: E731
    listed = run("sessions").stdout
    assert "Test Wallet" in listed and ("in 6d" in listed or "in 7d" in listed), listed
    assert run("end", sessions(daemon)[0]["id"]).returncode == 0
    it.wait("deleted")
    assert sessions(daemon) == []


def test_the_line_is_there_only_when_it_is_needed(daemon, relay, wallet):
    paddock.until(lambda: relay.ask()["clients"] == [], "nobody is connected")
    it = wallet()
    session = connect(daemon, it)
    assert len(relay.ask()["clients"]) == 2
    daemon.client().delete(f"/v1/wallets/sessions/{session['id']}")
    it.wait("deleted")
    it.stop()
    paddock.until(lambda: relay.ask()["clients"] == [], "the daemon has left")


def test_a_refused_pairing_and_one_without_our_chains(daemon, relay, wallet):
    it = wallet()
    it.do("mode", to="reject")
    uri = daemon.client().post("/v1/wallets/connect", {}).json()["uri"]
    it.do("pair", uri=uri)
    it.wait("proposal")
    other = wallet(address=SECOND, chains=["eip155:1"])
    answered = len(relay.published(1103))
    other.tell("pair", uri=daemon.client().post("/v1/wallets/connect", {"chains": [CHAIN]}).json()["uri"])
    paddock.until(lambda: len(relay.published(1103)) > answered, "the offer is answered")
    assert sessions(daemon) == [] and SECOND not in external(daemon)


def test_accounts_change(daemon, relay, wallet):
    it = wallet()
    connect(daemon, it, chains=[CHAIN, "eip155:5"])
    answers(relay, it, "update", 1105, chains=[CHAIN, "eip155:5"])
    paddock.until(lambda: sessions(daemon)[0]["accounts"] == [f"{CHAIN}:{FIRST}", f"eip155:5:{FIRST}"], "the accounts are the new ones")


def test_who_may(daemon):
    client = daemon.client()
    made = client.post("/v1/keys", {"tenant": "other", "create_tenant": True, "name": "x", "role": "user"})
    assert made.status == 201, made
    user = daemon.client(made.json()["key"])
    assert user.post("/v1/wallets/connect", {"label": "x"}).status == 403
    assert user.get("/v1/wallets/sessions").status == 403
    assert user.delete("/v1/wallets/sessions/wc_x").status == 403
    assert client.post("/v1/wallets/connect", {"chains": ["eip155:7"]}).json()["error"]["message"] == "chains: eip155:7 is not among agents.chains"
    assert client.post("/v1/wallets/connect", {"label": "x" * 65}).status == 400


def test_a_relay_that_is_away(daemon_factory, workdir):
    config = workdir / "away.yaml"
    config.write_text(json.dumps({"agents": {"chains": {CHAIN: {"rpc": ["http://127.0.0.1:9/"]}}, "walletconnect": {"relay": "ws://127.0.0.1:9", "project_id": "x"}}}))
    it = daemon_factory("away", arguments=["--config", str(config)]).start()
    response = it.client(timeout=60).post("/v1/wallets/connect", {})
    assert response.status == 503 and "relay does not answer" in response.json()["error"]["message"], response
    it.finish()
    config.write_text(json.dumps({"agents": {"chains": {CHAIN: {"rpc": ["http://127.0.0.1:9/"]}}}}))
    it = daemon_factory("off", arguments=["--config", str(config)]).start()
    response = it.client().post("/v1/wallets/connect", {})
    assert response.status == 501 and "project_id" in response.json()["error"]["message"]
    it.finish()
