"""WalletConnect with real peers: WalletKit is the wallet, a small relay has a mailbox, anvil is the chain (docs/walletconnect.md)."""

import json
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest

import paddock
import provider
from walletconnect_kit import CHAIN, FIRST, PROJECT, SECOND, Relay, Wallet, anvil, connect, daemon, modules, relay, sessions, wallet, wallets  # noqa: F401


@pytest.fixture(autouse=True)
def ended(daemon):
    """Every test begins and ends without sessions."""
    yield
    for one in sessions(daemon):
        assert daemon.client().delete(f"/v1/wallets/sessions/{one['id']}").status == 204


def answers(relay, wallet, what, tag, **more):
    """The daemon answers what the wallet asks, and the wallet has the answer. What fails because the relay is away is asked again."""
    before = len(relay.published(tag))

    def asked():
        wallet.tell(what, **more)
        return wallet.wait("done", "failed", what=what)["event"] == "done"

    paddock.until(asked, f"the wallet has the answer to {what}", 90)
    assert len(relay.published(tag)) > before


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
    it.topic = it.wait("session")["topic"]
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
    it.wait("deleted", topic=it.topic)
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
    topic = it.wait("session")["topic"]
    assert run("end", sessions(daemon)[0]["id"]).returncode == 0
    it.wait("deleted", topic=topic)
    assert sessions(daemon) == []


def test_the_line_is_there_only_when_it_is_needed(daemon, relay, wallet):
    paddock.until(lambda: relay.clients() == [], "the daemon is not connected")
    it = wallet()
    session = connect(daemon, it)
    assert len(relay.clients()) == 1
    daemon.client().delete(f"/v1/wallets/sessions/{session['id']}")
    it.wait("deleted", topic=it.topic)
    paddock.until(lambda: relay.clients() == [], "the daemon has left")


def test_a_session_ends_with_its_time(daemon, relay, wallet):
    it = wallet(lasts=1)
    pairing = daemon.client().post("/v1/wallets/connect", {"chains": [CHAIN]}).json()
    it.do("pair", uri=pairing["uri"])
    it.wait("session")
    paddock.until(lambda: f"session {pairing['id']}: its time is over" in daemon.log(400), "its time is over")
    assert sessions(daemon) == []
    paddock.until(lambda: relay.clients() == [], "the daemon has left")
    daemon.kill_api()
    assert sessions(daemon) == []
    it.do("disconnect")


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


FORGED = {
    "another controller": {"controller": {"publicKey": "ab" * 32, "metadata": {"name": "x", "description": "", "url": "", "icons": []}}},
    "no controller": {"controller": {}},
    "an account of a chain that was not asked for": {"namespaces": {"eip155": {"accounts": [f"eip155:1:{FIRST}"], "methods": ["eth_sendTransaction"], "events": []}}},
    "no account": {"namespaces": {"eip155": {"accounts": [], "methods": ["eth_sendTransaction"], "events": []}}},
    "a namespace of something else": {"namespaces": {"solana": {"accounts": ["solana:x:y"], "methods": [], "events": []}}},
}


@pytest.mark.parametrize("what", FORGED)
def test_a_settlement_that_is_forged_is_refused(daemon, relay, wallet, what):
    """Of a wallet that is not WalletKit: each part of a settlement is compared with what was agreed on, and the same wallet is taken without it."""
    it = wallet(address=SECOND)
    it.do("forge", parts=FORGED[what])
    try:
        answered = len(relay.published(1103))
        it.tell("pair", uri=daemon.client().post("/v1/wallets/connect", {"chains": [CHAIN]}).json()["uri"])
        paddock.until(lambda: len(relay.published(1103)) > answered, "the offer is answered")
        it.wait("session", "failed", what=None)  # how the wallet has taken that
        assert sessions(daemon) == []
    finally:
        it.do("forge", parts={})
    session = connect(daemon, it, chains=[CHAIN])
    assert session["accounts"] == [f"{CHAIN}:{SECOND}"]


def test_only_accounts_that_were_asked_for_are_taken(daemon, wallet):
    it = wallet(address=SECOND)
    accounts = [f"eip155:1:{SECOND}", f"{CHAIN}:{SECOND}", f"eip155:1:{FIRST}"]
    it.do("forge", parts={"namespaces": {"eip155": {"accounts": accounts, "methods": ["eth_sendTransaction"], "events": []}}})
    try:
        assert connect(daemon, it, chains=[CHAIN])["accounts"] == [f"{CHAIN}:{SECOND}"]
    finally:
        it.do("forge", parts={})


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


def other(daemon_factory, workdir, name, relay, **more):
    """A daemon with a configuration of its own."""
    config = workdir / f"{name}.yaml"
    walletconnect = {"walletconnect": {"relay": relay, "project_id": PROJECT}} if relay else {}
    config.write_text(json.dumps({"agents": {"chains": {CHAIN: {"rpc": ["http://127.0.0.1:9/"]}}, **walletconnect}, **more}))
    return daemon_factory(name, arguments=["--config", str(config)]).start()


def test_by_tls(daemon_factory, workdir, modules, anvil):
    """wss:// with an authority that is trusted; certificates of others, and for other names, are refused."""
    place = workdir / "relay-authority"
    place.mkdir()
    provider.certificates(place)
    secure = Relay(modules, tls=place)
    trust = {"ai": {"ca_file": str(place / "ca.pem")}}
    made = [other(daemon_factory, workdir, "trusts", secure.url, **trust), other(daemon_factory, workdir, "distrusts", secure.url),
            other(daemon_factory, workdir, "misnamed", secure.url.replace("127.0.0.1", "localhost"), **trust),
            other(daemon_factory, workdir, "away", "ws://127.0.0.1:9"), other(daemon_factory, workdir, "off", None)]
    pool = ThreadPoolExecutor(len(made))
    asked = [pool.submit(lambda d: d.client(timeout=60).post("/v1/wallets/connect", {}), d) for d in made[1:]]
    it = Wallet(modules, secure, anvil)
    session = connect(made[0], it)
    assert session["accounts"] == [f"{CHAIN}:{FIRST}"] and len(secure.clients()) == 1
    for answer, why in zip([a.result() for a in asked[:3]], ["certificate", "mismatch", ""]):
        said = answer.json()["error"]["message"]
        assert answer.status == 503 and "relay does not answer" in said and why in said, answer
    off = asked[3].result()
    assert off.status == 501 and "project_id" in off.json()["error"]["message"]
    assert len(secure.clients()) == 1
    it.stop()
    for one in made:
        one.finish()
    secure.stop()
