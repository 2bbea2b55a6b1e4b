"""The peers of the WalletConnect tests: a relay, wallets on WalletKit, anvil. See test/it/walletconnect."""

import json
import os
import queue
import shutil
import ssl
import subprocess
import threading
import urllib.request
from pathlib import Path

import pytest

import npm
import paddock
from spend_kit import Anvil, free_port

HERE = Path(__file__).parent / "walletconnect"
PROJECT = "0123456789abcdef0123456789abcdef"
CHAIN = "eip155:31337"
# anvil's accounts 1 and 2
KEYS = {"0x70997970C51812dc3A010C7d01b50e0d17dc79C8": "0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d",
        "0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC": "0x5de4111afa1a4b94908f83103eb1f1706367c2e68ca870fc3fb9a804cdab365a"}
FIRST, SECOND = KEYS


def programs():
    home = npm.install(HERE, "walletconnect")
    for file in ("relay.mjs", "wallet.mjs", "qr.mjs"):
        temporary = home / f"{file}.{os.getpid()}"
        shutil.copy(HERE / file, temporary)
        temporary.rename(home / file)
    return home


@pytest.fixture(scope="module")
def modules():
    return programs()


class Relay:
    def __init__(self, home, tls=None):
        """`tls` is a directory with the files of provider.certificates."""
        self.port, self.tls = free_port(), tls
        self.url = f"{'wss' if tls else 'ws'}://127.0.0.1:{self.port}"
        files = [str(tls / "site.pem"), str(tls / "site.key")] if tls else []
        self.trust = ssl.create_default_context(cafile=tls / "ca.pem") if tls else None
        self.process = subprocess.Popen(["node", "relay.mjs", str(self.port), PROJECT, *files], cwd=home, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        text=True, preexec_fn=paddock.die_with_parent)
        assert self.process.stdout.readline() == "ready\n"

    def ask(self, path="/"):
        url = self.url.replace("ws", "http", 1) + path
        with urllib.request.urlopen(url, data=b"" if path != "/" else None, timeout=30 * paddock.SLOW, context=self.trust) as answer:
            return json.load(answer)

    def clients(self):
        """Of the daemon; the wallets stay connected."""
        return [c for c in self.ask()["clients"] if c["agent"].startswith("wc-2/paddock")]

    def published(self, tag):
        return [one for one in self.ask()["log"] if one["tag"] == tag]

    def stop(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


class Wallet:
    """A wallet and the person who holds it."""

    def __init__(self, home, relay, rpc, address=FIRST, chains=None, lasts=None):
        self.address = address
        trust = {"NODE_EXTRA_CA_CERTS": str(relay.tls / "ca.pem")} if relay.tls else {}
        setup = {"relay": relay.url, "project": PROJECT, "rpc": f"http://127.0.0.1:{rpc.port}", "key": KEYS[address], "chain": CHAIN, "chains": chains, "lasts": lasts}
        self.process = subprocess.Popen(["node", "wallet.mjs", json.dumps(setup)], cwd=home, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True, env={**os.environ, **trust}, preexec_fn=paddock.die_with_parent)
        self.events, self.seen, self.errors = queue.Queue(), [], []
        threading.Thread(target=self.read, daemon=True).start()
        threading.Thread(target=lambda: self.errors.extend(self.process.stderr), daemon=True).start()
        self.wait("ready")

    def read(self):
        for line in self.process.stdout:
            if line.startswith('{"event":'):  # the rest is what WalletKit logs
                self.events.put(json.loads(line))
            else:
                self.errors.append(line)

    def wait(self, *events, timeout=60, **fields):
        """The next event of one of these kinds; those before it are kept in `seen`."""
        while True:
            try:
                one = self.events.get(timeout=timeout * paddock.SLOW)
            except queue.Empty:
                raise AssertionError(f"no {' or '.join(events)} of the wallet: {self.seen[-5:]} {''.join(self.errors[-20:])}") from None
            self.seen.append(one)
            if one["event"] in events and all(one.get(k) == v for k, v in fields.items()):
                return one
            assert one["event"] != "failed", one

    def do(self, what, **more):
        self.tell(what, **more)
        return self.wait("done", what=what)

    def tell(self, what, **more):
        self.process.stdin.write(json.dumps({"do": what, **more}) + "\n")
        self.process.stdin.flush()

    def stop(self):
        self.process.kill()
        self.process.wait()


@pytest.fixture(scope="module")
def relay(modules):
    it = Relay(modules)
    yield it
    it.stop()


@pytest.fixture(scope="module")
def anvil(modules):
    it = Anvil(modules)
    yield it
    it.stop()


@pytest.fixture(scope="module")
def daemon(daemon_factory, workdir, anvil, relay):
    config = workdir / "walletconnect.yaml"
    config.write_text(json.dumps({"agents": {
        "chains": {CHAIN: {"name": "Anvil", "rpc": [f"http://127.0.0.1:{anvil.port}/"], "poll_ms": 100}, "eip155:5": {"rpc": ["http://127.0.0.1:9/"]}},
        "walletconnect": {"relay": relay.url, "project_id": PROJECT}}}))
    it = daemon_factory("walletconnect", arguments=["--config", str(config)]).start()
    yield it
    it.finish()


@pytest.fixture(scope="module")
def wallets(modules, relay, anvil):
    """WalletKit takes a second to start: the tests share the processes."""
    made = {}

    def give(**more):
        key = json.dumps(more, sort_keys=True)
        if key not in made:
            made[key] = Wallet(modules, relay, anvil, **more)
        it = made[key]
        paddock.until(lambda: it.do("count")["value"] == 0, "the wallet has no session of an earlier test")
        it.do("mode", to="approve")
        return it

    yield give
    for one in made.values():
        one.stop()


@pytest.fixture
def wallet(wallets):
    return wallets


def sessions(daemon):
    client = daemon.client()
    response = paddock.until(lambda: (r := client.get("/v1/wallets/sessions")).status != 503 and r, "the sessions were read")
    assert response.status == 200, response
    return response.json()["sessions"]


def connect(daemon, wallet, **body):
    """Pairs and settles: the session."""
    response = daemon.client().post("/v1/wallets/connect", body)
    assert response.status == 201, response
    pairing = response.json()
    wallet.do("pair", uri=pairing["uri"])
    wallet.topic = wallet.wait("session")["topic"]
    return paddock.until(lambda: next((s for s in sessions(daemon) if s["id"] == pairing["id"]), None), "the session is listed")
