"""Money for the suites of the SDKs: a daemon with an agent that asks, wallets here and elsewhere, and chains. What is not the SDK's part (the
agent, the owner's wallet on a phone) is done by `Money`, which scenarios in other languages reach by HTTP."""

import contextlib
import http.server
import json
import threading

import agents_kit
import paddock
import signer
import walletconnect_kit
from spend_kit import ACCOUNTS, ETHER, FRIEND, Anvil, Bank

TOKEN = "0x00000000000000000000000000000000000000c7"  # on the still chain; it answers everything with 0
STILL, QUICK = 1337, 31337  # a chain that mines nothing, so that what was sent can be replaced; one that mines at once


class Money:
    """Who else takes part: the agent, and people with wallets elsewhere."""

    def __init__(self, daemon, agent, quick, person):
        self.daemon, self.agent, self.quick, self.person = daemon, agent, quick, person
        self.turn, self.asked = threading.Lock(), 0
        self.bank = Bank(daemon, agent, chain=STILL, index=1)
        self.page = self.bank.own("WALLET_ADD", kind=signer.pb.WALLET_KIND_EXTERNAL, label="page", address=bytes.fromhex(ACCOUNTS[3][2:])).wallet
        wallets = [signer.pb.AgentWallet(chain=STILL, wallet=self.bank.wallet.id), signer.pb.AgentWallet(chain=QUICK, wallet=self.page.id)]
        limits = [signer.pb.Limit(chain=chain, asset=signer.NATIVE, per_tx=signer.amount(ETHER)) for chain in (STILL, QUICK)]
        limits.append(signer.pb.Limit(chain=STILL, asset=bytes.fromhex(TOKEN[2:]), per_tx=signer.amount(ETHER), symbol="COIN"))
        for wallet in (self.bank.wallet, self.page):
            self.bank.own("RULES_PUT", rules=signer.pb.Rules(scope=f"wallet:{wallet.id}", fee_per_tx=signer.amount(ETHER), fee_day=signer.amount(100 * ETHER)))
        self.bank.own("RULES_PUT", rules=signer.pb.Rules(scope=f"agent:{agent.id}", limits=limits, wallets=wallets, max_pending=50))

    def ask(self, elsewhere=False, allows=False):
        """The agent asks for a transaction, from its wallet here or from the one elsewhere, or for an allowance: {id, value, to}."""
        with self.turn:
            self.asked += 1
            value = 5000 + self.asked
        chain = f"eip155:{QUICK if elsewhere else STILL}"
        what = {"value": 0, "to": TOKEN, "data": f"0x095ea7b3{int(FRIEND, 16):064x}{value:064x}"} if allows else {"value": value, "to": FRIEND}
        got = self.bank.send(**what, chain=chain, headers={"Prefer": "respond-async"}).result(60)
        assert got["status"] == 202, got
        return {"id": got["body"]["id"], "value": str(what["value"]), "to": what["to"], "wallet": self.page.id if elsewhere else self.bank.wallet.id}

    def send(self, value, to):
        """The wallet elsewhere sends: {hash}."""
        return {"hash": self.quick.ask("eth_sendTransaction", {"from": ACCOUNTS[3], "to": to, "value": hex(int(value))})}

    def pair(self, uri):
        """The wallet on a phone reads a QR code, and its owner agrees."""
        with self.turn:
            self.person.do("pair", uri=uri)
            self.person.wait("session")
        return {}


@contextlib.contextmanager
def money(daemon_factory, workdir):
    with contextlib.ExitStack() as stack:
        modules = walletconnect_kit.programs()
        stopped = lambda it: stack.callback(it.stop) and it  # noqa: E731
        still, quick = stopped(Anvil(modules, STILL, "--no-mining")), stopped(Anvil(modules, QUICK))
        still.ask("anvil_setCode", TOKEN, "0x60206000f3")
        relay = stopped(walletconnect_kit.Relay(modules))
        person = stopped(walletconnect_kit.Wallet(modules, relay, quick))
        config = workdir / "money.yaml"
        config.write_text(json.dumps({"agents": {
            "chains": {f"eip155:{one.chain}": {"rpc": [f"http://127.0.0.1:{one.port}/"], "poll_ms": 100} for one in (still, quick)},
            "walletconnect": {"relay": relay.url, "project_id": walletconnect_kit.PROJECT}}}))
        daemon = daemon_factory("money", arguments=["--config", str(config)]).start()
        api = daemon.client()
        permissions = {"chains": [f"eip155:{one.chain}" for one in (still, quick)]}
        response = api.post("/v1/agents", {"manifest": agents_kit.manifest(permissions=permissions), "consent": True, "name": "spender"})
        assert response.status == 201, response
        agent = agents_kit.Agent(api, response.json())
        assert agent.upload(agents_kit.pack("index.js", "sdk.js", "run.js")).status == 202
        agent.wait("stopped")
        agent.do("start")
        agent.until_logged("hello by the API")
        yield Money(daemon, agent, quick, person)
        api = daemon.client()
        paddock.until(lambda: api.delete(agent.path).status in (204, 404), "the agent is removed")
        daemon.finish()


@contextlib.contextmanager
def served(it):
    """The same for programs in other languages: POST /ask, /send and /pair with the arguments as JSON."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            given = json.loads(self.rfile.read(int(self.headers["content-length"])))
            try:
                status, said = 200, {"ask": it.ask, "send": it.send, "pair": it.pair}[self.path[1:]](**given)
            except Exception as e:  # noqa: BLE001 - the scenario fails with it
                status, said = 500, {"error": repr(e)}
            body = json.dumps(said).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
