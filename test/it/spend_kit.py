"""What the tests of spending share: chains behind a proxy that can be made to lie, the owner's socket, requests of an agent that wait."""

import functools
import http.server
import json
import shutil
import socket
import subprocess
import threading
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import agents_kit
import npm
import paddock
import signer
from agents_kit import Agent, modules, pack  # noqa: F401
from clitool import Cli

HERE = Path(__file__).resolve().parent
ETHER = 10**18
FRIEND = "0x00000000000000000000000000000000000000f1"
# Accounts of the development chains that tests use as wallets: anvil has them unlocked.
ACCOUNTS = ["0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266", "0x70997970C51812dc3A010C7d01b50e0d17dc79C8",
            "0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC", "0x90F79bf6EB2c4f870365E785982E1f101E93b906",
            "0x15d34AAf54267DB7D7c367839AAf71A00a2C6A65"]


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Anvil:
    def __init__(self, modules, chain=31337, *arguments):
        self.port, self.chain = free_port(), chain
        binary = modules / "node_modules/@foundry-rs/anvil-linux-amd64/bin/anvil"
        self.process = subprocess.Popen([binary, "--port", str(self.port), "--chain-id", str(chain), "--silent", *arguments],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, preexec_fn=paddock.die_with_parent)
        paddock.until(self.answers, "anvil answers")

    def answers(self):
        with socket.socket() as s:
            return s.connect_ex(("127.0.0.1", self.port)) == 0

    def ask(self, method, *params):
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}/", body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=60) as response:
            answer = json.load(response)
        assert "error" not in answer, answer
        return answer["result"]

    def number(self, method, *params):
        return int(self.ask(method, *params), 16)

    def balance(self, account):
        return self.number("eth_getBalance", account, "latest")

    def receipt(self, hash):
        """When it is mined: anvil does that by itself, a little later."""
        return paddock.until(lambda: self.ask("eth_getTransactionReceipt", hash), f"{hash} is mined")

    def stop(self):
        self.process.kill()
        self.process.wait()


class Front(http.server.ThreadingHTTPServer):
    """A node between the daemon and anvil. `change` gets the requests and the answers of a batch and may change the answers;
    `instead` may answer without asking anvil, also with a status and bytes; with `down` connections are closed."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, anvil):
        self.anvil, self.change, self.instead, self.down, self.calls = anvil, None, None, False, []
        super().__init__(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def port(self):
        return self.server_address[1]


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_POST(self):
        front = self.server
        body = self.rfile.read(int(self.headers["content-length"]))
        asked = json.loads(body)
        front.calls.append([r["method"] for r in asked] if isinstance(asked, list) else [asked["method"]])
        if front.down:
            self.close_connection = True
            return
        said, status = front.instead(asked) if front.instead else None, 200
        if isinstance(said, tuple):
            status, said = said
        elif said is not None:
            said = json.dumps(said).encode()
        if said is None:
            request = urllib.request.Request(f"http://127.0.0.1:{front.anvil.port}/", body, {"Content-Type": "application/json"})
            with urllib.request.urlopen(request, timeout=60) as response:
                said = response.read()
        if front.change:
            said = front.change(asked, json.loads(said))
            said = said if isinstance(said, bytes) else json.dumps(said).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)


def owner(daemon):
    """The owner's channel to the signer, which is started when it is first needed."""
    end = socket.socket(socket.AF_UNIX)
    end.connect(str(daemon.run_dir / "owner.sock"))
    return signer.Peer(end)


class Bank:
    """One agent with a wallet, what it asks for, and what people say."""

    def __init__(self, daemon, agent, chain=31337, index=1, wallet=None, **rules):
        self.daemon, self.agent, self.chain = daemon, agent, f"eip155:{chain}"
        self.number = chain
        self.account = ACCOUNTS[index]
        self.people = daemon.client()
        self.pool = ThreadPoolExecutor(8)
        self.wallet = wallet or self.own("WALLET_ADD", kind=signer.pb.WALLET_KIND_TEST, label=f"test {index}", test_index=index).wallet
        self.allow(**rules)

    def own(self, name, **fields):
        peer = owner(self.daemon)
        try:
            return peer.ask(name, **fields)
        finally:
            peer.close()

    def allow(self, per_tx=ETHER, limits=(), fees=ETHER, agent=None, **fields):
        wallets = [signer.pb.AgentWallet(chain=self.number, wallet=self.wallet.id)]
        native = signer.pb.Limit(chain=self.number, asset=signer.NATIVE, per_tx=signer.amount(per_tx))
        self.own("RULES_PUT", rules=signer.pb.Rules(scope=f"wallet:{self.wallet.id}", fee_per_tx=signer.amount(fees), fee_day=signer.amount(100 * fees)))
        fields = {"max_pending": 50, **fields}
        self.own("RULES_PUT", rules=signer.pb.Rules(scope=f"agent:{(agent or self.agent).id}", limits=[native, *limits], wallets=wallets, **fields))

    # ---- the agent

    def run(self, script):
        return Agent(self.daemon.client(timeout=300), {"id": self.agent.id}).run(script)

    def start(self, script):
        """The same beside the test."""
        return self.pool.submit(self.run, script)

    def send(self, value=1, to=FRIEND, data="0x", headers=None, **more):
        """POST /agent/request-transaction: {status, body}, when it is answered."""
        body = {"chain": self.chain, "to": to, "value": str(value), "data": data, "gasLimit": "21000", **more}
        return self.start(f"""const r = await fetch(env.ASSEGAI_API_PROXY + '/agent/request-transaction', {{ method: 'POST',
            headers: {{ ...headers, ...{json.dumps(headers or {})} }}, body: JSON.stringify({json.dumps(body)}) }});
            return {{ status: r.status, body: await r.json() }}""")

    # ---- the ledger

    def counted(self):
        """Ever, of the native asset, for this agent on this chain."""
        lines = [x for x in self.own("SPENT", scope=f"agent:{self.agent.id}").lines if x.chain == self.number and x.asset == signer.NATIVE]
        return sum(int.from_bytes(x.lifetime, "big") for x in lines)

    def settle(self, id):
        return Cli(self.daemon, PADDOCK_RUN_DIR=self.daemon.run_dir).json("wallet", "settle", id, "--yes", "--note", "seen in the explorer")

    # ---- people

    def list(self, **query):
        text = "&".join(f"{k}={v}" for k, v in {"agent": self.agent.id, "limit": 500, **query}.items())
        response = self.daemon.client().get(f"/v1/transactions?{text}")
        assert response.status == 200, response
        return response.json()["transactions"]

    def get(self, id):
        response = self.daemon.client().get(f"/v1/transactions/{id}")
        assert response.status == 200, response
        return response.json()

    def until_pending(self, value):
        return paddock.until(lambda: next((t for t in self.list(state="pending") if int(t["value"]) == value), None), f"a request for {value} is pending", 120)

    def until_state(self, id, *states, timeout=120):
        return paddock.until(lambda: (lambda t: t if t["state"] in states else None)(self.get(id)), f"{id} is {' or '.join(states)}", timeout)

    def say(self, id, verb, **body):
        return self.daemon.client().post(f"/v1/transactions/{id}/{verb}", body)

    def approve(self, item):
        response = self.say(item["id"], "approve", digest=item["digest"])
        assert response.status == 200, response
        return response.json()

    def done(self, value, to=FRIEND, **more):
        """Asked for, approved, sent: its card."""
        wait = self.send(value, to, **more)
        item = self.until_pending(value)
        self.approve(item)
        answer = wait.result(60)
        assert answer["status"] == 200, answer
        return self.get(item["id"]), answer["body"]["txHash"]


def kill_signer(daemon):
    pid = next(p for p in daemon.programs() if paddock.comm(p) == "paddock-signer")
    daemon.api_kills += 1
    paddock.kill(pid)
    assert paddock.wait_gone(pid)


# ---- a daemon with two chains: one that is well, one that is made to fail


@pytest.fixture(scope="module")
def anvil(modules):
    it = Anvil(modules, 31337, "--slots-in-an-epoch", "1")
    yield it
    it.stop()


@pytest.fixture(scope="module")
def other(modules):
    """A chain that is made to fail."""
    it = Anvil(modules, 1337)
    yield it
    it.stop()


@pytest.fixture(scope="module")
def front(other):
    it = Front(other)
    yield it
    it.shutdown()


@pytest.fixture(scope="module")
def daemon(daemon_factory, workdir, anvil, front):
    config = workdir / "spend.yaml"
    config.write_text(json.dumps({"agents": {"chains": {
        "eip155:31337": {"name": "Anvil", "rpc": ["http://127.0.0.1:9/dead", f"http://127.0.0.1:{anvil.port}/"], "poll_ms": 100, "lost_s": 2},
        "eip155:1337": {"rpc": [f"http://127.0.0.1:{front.port}/"], "poll_ms": 100, "stuck_blocks": 3}}}}))
    it = daemon_factory("spend", arguments=["--config", str(config)]).start()
    yield it
    it.finish()


@pytest.fixture(scope="module")
def agents(daemon):
    api, made = daemon.client(), []

    def make(name, data=None):
        response = api.post("/v1/agents", {"manifest": agents_kit.manifest(permissions={"chains": ["eip155:31337", "eip155:1337"]}), "consent": True, "name": name})
        assert response.status == 201, response
        it = agents_kit.Agent(api, response.json())
        made.append(it)
        assert it.upload(data or pack("index.js", "sdk.js", "run.js")).status == 202
        it.wait("stopped", timeout=120)
        it.do("start")
        it.until_logged("hello by the API")
        return it

    yield make
    api = daemon.client()
    for it in made:
        paddock.until(lambda: api.delete(it.path).status in (204, 404), "the agent is removed")


@pytest.fixture(scope="module")
def bank(daemon, agents):
    return Bank(daemon, agents("spender"), index=1)


@pytest.fixture(scope="module")
def shaky(daemon, agents, other):
    return Bank(daemon, agents("shaky"), chain=1337, index=2)


@pytest.fixture
def honest(front):
    yield front
    front.change, front.instead, front.down = None, None, False


@functools.cache
def code_of(contract):
    home = npm.install(HERE / "spend", "spend")
    shutil.copy(HERE / "spend/compile.js", home)
    return subprocess.run(["node", "compile.js", contract], cwd=home, capture_output=True, text=True, timeout=120 * paddock.SLOW, check=True).stdout.strip()


def make_token(anvil, owner, contract="Coin"):
    """OpenZeppelin's ERC-20, all of which the owner has, or another contract of compile.js: its address."""
    return anvil.receipt(anvil.ask("eth_sendTransaction", {"from": owner, "data": code_of(contract)}))["contractAddress"]
