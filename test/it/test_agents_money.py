"""Agents that spend, as people meet them: examples, the SDK's errors, signing in, the contracts of a manifest, nodes whose names change, and 1,000 requests at once."""

import ctypes
import json
import os
import random
import socket
import struct
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import agents_kit
import internet
import paddock
import signer
from agents_kit import Agent, modules, pack  # noqa: F401
from clitool import Cli
from spend_kit import ACCOUNTS, ETHER, FRIEND, Anvil, Bank, Front, Handler, free_port, owner

HERE = Path(__file__).resolve().parent
CHAIN = "eip155:31337"
TOKEN, OTHER = "0x5FbDB2315678afecb367f032d93F642f64180aa3", "0xe7f1725E7734CE288F8367e1Bb143E90bb3F0512"
RETURNS_TRUE = "0x60016000526020" + "6000f3"
REFUSED = "is not among permissions.contracts of this agent"


class Names:
    """A name server whose answer changes."""

    def __init__(self):
        self.answers, self.asked = {}, []
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        # Port 53 of an address that nobody else uses.
        self.address = next(a for a in (f"127.53.{i % 200 + 1}.{free_port() % 250 + 1}" for i in range(200)) if self.bind(a))
        threading.Thread(target=self.serve, daemon=True).start()

    def bind(self, address):
        try:
            self.socket.bind((address, 53))
            return True
        except OSError:
            return False

    def serve(self):
        while True:
            question, peer = self.socket.recvfrom(2048)
            name_end = question.index(b"\0", 12) + 5
            kind = struct.unpack("!H", question[name_end - 4:name_end - 2])[0]
            name = question[13:13 + question[12]].decode()
            found = [socket.inet_aton(a) for a in self.answers.get(name, [])] if kind == 1 else []
            self.asked += [name] if kind == 1 else []
            answers = b"".join(b"\xc0\x0c\0\1\0\1\0\0\0\0\0\4" + a for a in found)
            self.socket.sendto(question[:2] + b"\x81\x80" + struct.pack("!HHHH", 1, len(found), 0, 0) + question[12:name_end] + answers, peer)


def with_names(file):
    """The daemon sees this file as /etc/resolv.conf; nobody else does."""
    libc = ctypes.CDLL(None, use_errno=True)

    def prepare():
        paddock.die_with_parent()
        new_mounts, private, bind = 0x20000, 0x44000, 0x1000
        if libc.unshare(new_mounts) or libc.mount(b"none", b"/", None, private, None) or libc.mount(str(file).encode(), b"/etc/resolv.conf", None, bind, None):
            raise OSError(ctypes.get_errno(), "resolv.conf")

    return prepare


@pytest.fixture(scope="module")
def anvil(modules):
    it = Anvil(modules)
    for contract in (TOKEN, OTHER):
        it.ask("anvil_setCode", contract, RETURNS_TRUE)
    yield it
    it.stop()


@pytest.fixture(scope="module")
def names():
    return Names()


@pytest.fixture(scope="module")
def rebound_port():
    return free_port()


@pytest.fixture(scope="module")
def daemon(daemon_factory, workdir, anvil, names, rebound_port):
    config, resolv = workdir / "money.yaml", workdir / "resolv.conf"
    urls = [f"http://{name}.rebound.test:{rebound_port}/" for name in ("node", *REBOUND)]
    config.write_text(json.dumps({"agents": {"chains": {CHAIN: {"rpc": [f"http://127.0.0.1:{anvil.port}/"], "poll_ms": 100}}, "rpcs": urls}}))
    resolv.write_text(f"nameserver {names.address}\n")
    it = daemon_factory("money", arguments=["--config", str(config)], prepare=with_names(resolv)).start()
    yield it
    it.finish()


@pytest.fixture(scope="module")
def cli(daemon):
    return Cli(daemon, PADDOCK_RUN_DIR=daemon.run_dir)


@pytest.fixture(scope="module")
def make(daemon):
    api, made = daemon.client(), []

    def one(name, data=None, start=True, **permissions):
        manifest = agents_kit.manifest(permissions={"chains": [CHAIN], **permissions}, **({"runtime": "python", "entrypoint": "main.py"} if data else {}))
        response = api.post("/v1/agents", {"manifest": manifest, "consent": True, "name": name})
        assert response.status == 201, response
        it = Agent(api, response.json())
        made.append(it)
        assert it.upload(data or pack("index.js", "sdk.js", "run.js")).status == 202
        if start:
            it.wait("stopped", timeout=120)
            it.do("start")
            it.until_logged("ready" if data else "hello by the API")
        return it

    yield one
    api = daemon.client()
    for it in made:
        paddock.until(lambda: api.delete(it.path).status in (204, 404), "the agent is removed")


@pytest.fixture(scope="module")
def bank(daemon, make):
    return Bank(daemon, make("spender"), index=1)


# ---- the examples


@pytest.mark.parametrize("runtime, index", (("node", 2), ("python", 3)))
def test_the_dca_example_spends(daemon, cli, anvil, workdir, runtime, index):
    """As a person does it: new, install, allow what the manifest asks for, start, approve."""
    place, name, to = workdir / f"spending-dca-{runtime}", f"spending-dca-{runtime}", ACCOUNTS[1]
    cli.ok("agent", "new", "dca", place, "--runtime", runtime)
    cli.ok("agent", "install", place, "--yes", "--name", name)
    cli.ok("wallet", "test", index, "--name", name)
    cli.ok("agent", "allow", name, "--wallet", name, "--yes")
    before = anvil.balance(to)
    cli.ok("agent", "start", name)
    api = daemon.client()
    it = Agent(api, api.get(f"/v1/agents/{name}").json())
    [item] = paddock.until(lambda: api.get(f"/v1/transactions?agent={it.id}&state=pending").json()["transactions"], "it asks", 60)
    assert item["value"] == str(ETHER // 100) and item["to"] == to
    cli.ok("tx", "approve", item["id"], "--digest", item["digest"])
    said = paddock.until(lambda: next((e for e in it.logs() if e["level"] == "success" and e["source"] == "agent"), None), "it was told", 60)
    assert anvil.receipt(said["data"]["txHash"])["from"] == ACCOUNTS[index].lower()
    assert anvil.balance(to) == before + ETHER // 100
    assert [e["message"] for e in it.logs("level=error")] == []
    cli.ok("agent", "rm", name)


# ---- the SDK


def ask(value, to=FRIEND, **more):
    return f"sdk.requestTransaction({json.dumps({'chain': CHAIN, 'to': to, 'value': str(value), **more})})"


def test_errors_of_the_sdk(bank):
    """Its classes come from the exact texts."""
    seen = len(bank.list(state="pending"))
    bank.allow(limits=[signer.pb.Limit(chain=31337, asset=bytes.fromhex(TOKEN[2:]), per_tx=signer.amount(50))], max_pending=3)
    transfer = "0xa9059cbb" + FRIEND[2:].rjust(64, "0")
    got = bank.run(f"""return {{
      much: await attempt({ask(ETHER + 1)}),
      token: await attempt({ask(0, TOKEN, data=transfer + f"{51:064x}")}),
      none: await attempt({ask(0, OTHER, data=transfer + f"{1:064x}")}),
      chain: await attempt(sdk.requestTransaction({{ chain: "eip155:1", to: "{FRIEND}", value: "1" }})),
      form: await attempt(sdk.requestTransaction({{ chain: "{CHAIN}", to: "{FRIEND}x", value: "1" }})),
      amount: await attempt({ask("0x10")}) }}""")
    assert got["much"] == {"code": "INSUFFICIENT_ALLOWANCE", "status": 403, "message": "Requested amount exceeds the configured allowance for this token"}
    assert got["token"] == got["much"]
    assert (got["none"]["code"], got["none"]["status"]) == ("INSUFFICIENT_ALLOWANCE", 403) and got["none"]["message"].startswith("No allowance found for ")
    assert (got["chain"]["code"], got["chain"]["status"]) == ("FORBIDDEN", 403) and "is not whitelisted" in got["chain"]["message"]
    assert got["form"]["code"] == "VALIDATION_ERROR" and (got["amount"]["code"], got["amount"]["status"]) == ("API_ERROR", 400)
    assert len(bank.list(state="pending")) == seen


def test_a_total_that_is_exceeded(bank, daemon):
    bank.own("RULES_PUT", rules=signer.pb.Rules(scope=f"agent:{bank.agent.id}", wallets=[signer.pb.AgentWallet(chain=31337, wallet=bank.wallet.id)],
                                                limits=[signer.pb.Limit(chain=31337, asset=signer.NATIVE, per_tx=signer.amount(ETHER), day=signer.amount(5000))]))
    spent = int(next(x for x in daemon.client().get(f"{bank.agent.path}/spending").json()["lines"] if not x["fee"])["spent"]["day"])
    got = bank.run(f"return attempt({ask(5001 - spent)})")
    assert got == {"code": "FORBIDDEN", "status": 403, "message": "Total spending limit exceeded"}
    bank.allow()


def test_rejected_and_timed_out(bank):
    wait = bank.start(f"return attempt({ask(2001)})")
    assert bank.say(bank.until_pending(2001)["id"], "reject").status == 200
    assert wait.result(60) == {"code": "TRANSACTION_REJECTED", "status": 403, "message": "Transaction rejected by user"}
    bank.allow(expiry_s=1)
    assert bank.run(f"return attempt({ask(2002)})") == {"code": "TRANSACTION_TIMEOUT", "status": 500, "message": "Transaction approval timeout"}
    bank.allow(max_pending=1)
    wait = bank.start(f"return attempt({ask(2003)})")
    item = bank.until_pending(2003)
    got = bank.run(f"return attempt({ask(2004)})")
    assert (got["code"], got["status"]) == ("RATE_LIMITED", 429) and got["message"].startswith("Rate limit exceeded"), got
    bank.approve(item)
    assert wait.result(60)["value"]["success"] is True
    bank.allow()


@pytest.fixture(scope="module", autouse=True)
def impatient(daemon, make):
    """An agent whose SDK gives up after its own 30 s, while the other tests run."""
    it = Bank(daemon, make("impatient"), index=0)
    it.first = it.start(f"const begun = Date.now(), got = await attempt({ask(2010)}); return {{ ...got, ms: Date.now() - begun }}")
    return it


# ---- signing in


def site(modules, *words, stdin=None):
    done = subprocess.run(["node", HERE / "agents/siwe.js", modules, *words], input=json.dumps(stdin), capture_output=True, text=True, timeout=60 * paddock.SLOW, check=True)
    return json.loads(done.stdout)


def test_signing_in(bank, modules):
    """EIP-4361: a site makes the message, the agent has it signed by approval, the siwe package judges the signature."""
    asked = site(modules, "ask", bank.account)
    sign = "return (await rpc({{ jsonrpc: '2.0', id: 1, method: 'personal_sign', params: [{}, '{}'] }})).body"
    refused = bank.run(sign.format(json.dumps("0x" + asked["message"].encode().hex()), bank.account))
    assert refused["error"]["code"] == 4100, refused  # unless the owner allows messages
    bank.allow(allow_messages=True)
    wait = bank.start(sign.format(json.dumps("0x" + asked["message"].encode().hex()), bank.account))
    [item] = paddock.until(lambda: bank.list(state="pending"), "it waits for a person")
    card = bank.get(item["id"])
    assert "shop.example.org wants you to sign in" in json.dumps(card)  # what a person reads
    bank.approve(card)
    signature = wait.result(60)["result"]
    answer = {"message": asked["message"], "signature": signature, "nonce": asked["nonce"], "domain": "shop.example.org"}
    assert site(modules, "check", stdin=answer) == {"address": bank.account}
    for wrong in ({"nonce": "otherotherother"}, {"domain": "evil.example.org"}, {"message": asked["message"].replace("Sign in", "Pay")}):
        assert site(modules, "check", stdin={**answer, **wrong})["address"] is False
    bank.allow()


# ---- contracts of the manifest


ONE = "const one = (method, ...params) => rpc({ jsonrpc: '2.0', id: 1, method, params });"


def send(**fields):
    return f"(await one('eth_sendTransaction', {json.dumps(fields)})).body"


def typed(contract):
    return json.dumps({"domain": {"chainId": 31337, "verifyingContract": contract}, "primaryType": "Note", "message": {"text": "hello"},
                       "types": {"EIP712Domain": [{"name": "chainId", "type": "uint256"}, {"name": "verifyingContract", "type": "address"}], "Note": [{"name": "text", "type": "string"}]}})


@pytest.fixture(scope="module")
def listed(daemon, make):
    tokens = [signer.pb.Limit(chain=31337, asset=bytes.fromhex(c[2:]), per_tx=signer.amount(50)) for c in (TOKEN, OTHER)]
    notes = [signer.pb.TypedRule(chain=31337, contract=bytes.fromhex(c[2:]), primary_type="Note") for c in (TOKEN, OTHER)]
    return Bank(daemon, make("listed", contracts=[TOKEN]), index=4, limits=tokens, typed=notes)


def transfer(n):
    return "0xa9059cbb" + FRIEND[2:].rjust(64, "0") + f"{n:064x}"


def test_contracts_of_the_manifest(listed, anvil):
    """The owner's rules allow both contracts, the manifest one of them."""
    got = listed.run(f"""{ONE} return {{
      rpc: {send(to=OTHER, data=transfer(1))},
      input: {send(to=OTHER.lower(), input=transfer(1))},
      payment: {send(to=OTHER, value="0x1")},
      sdk: await attempt({ask(0, OTHER, data=transfer(1))}),
      paid: await attempt({ask(1, OTHER)}),
      typed: (await one('eth_signTypedData_v4', '{listed.account}', {json.dumps(typed(OTHER))})).body }}""")
    for name in ("rpc", "input", "payment", "typed"):
        assert got[name]["error"]["code"] == 4100 and REFUSED in got[name]["error"]["message"], (name, got[name])
    for name in ("sdk", "paid"):
        assert (got[name]["code"], got[name]["status"]) == ("FORBIDDEN", 403) and REFUSED in got[name]["message"], (name, got[name])
    assert listed.list() == []
    for what in (send(to=TOKEN, data=transfer(7)), send(to=TOKEN.lower(), value="0x0", input=transfer(8)), send(to=FRIEND, value="0x9"),
                 f"(await one('eth_signTypedData_v4', '{listed.account}', {json.dumps(typed(TOKEN))})).body"):
        wait = listed.start(f"{ONE} return {what}")
        [item] = paddock.until(lambda: listed.list(state="pending"), "it is pending")
        listed.approve(listed.get(item["id"]))
        assert "result" in (said := wait.result(60)), said
    hashes = [t["hash"] for t in listed.list() if t["kind"] == "transaction"]
    assert len({anvil.receipt(h)["transactionHash"] for h in hashes}) == 3


def test_a_manifest_without_contracts_leaves_it_to_the_policy(bank):
    got = bank.run(f"""{ONE} return {{ rpc: {send(to=OTHER, data=transfer(1))}, unknown: {send(to=OTHER, data="0x12345678")} }}""")
    for name in ("rpc", "unknown"):
        assert got[name]["error"]["code"] == 4100 and REFUSED not in got[name]["error"]["message"], got
    assert {t["state"] for t in bank.list() if t["to"] == OTHER} == {"denied"}


HOSTILE = [None, "", "0x", 0, 1, True, [], {}, [TOKEN], FRIEND[:-1], FRIEND + "0", FRIEND + " ", " " + FRIEND, FRIEND + "\0", FRIEND + "\n", "0X" + FRIEND[2:], FRIEND[2:], "vitalik.eth",
           "0x" + "\uff11" * 40, "0x" + "g" * 40, "f39Fd6e51aad88F6F4ce6aB8827279cffFb92266", "0xF39Fd6e51aad88F6F4ce6aB8827279cffFb92266", "-" + FRIEND[1:], "0x-" + FRIEND[3:]]


def test_hostile_recipients(bank):
    pending = len(bank.list(state="pending"))
    many = json.dumps(HOSTILE)
    twice = json.dumps(f'{{"jsonrpc":"2.0","id":1,"method":"eth_sendTransaction","params":[{{"to":"{FRIEND}","to":"{TOKEN}","value":"0x1"}}]}}')
    got = bank.run(f"""{ONE}
      const post = async (body) => {{ const r = await fetch(env.ASSEGAI_API_PROXY + '/agent/request-transaction', {{ method: 'POST', headers, body }}); return [r.status, (await r.json()).error]; }};
      const seen = [];
      for (const to of {many}) seen.push([to, (await one('eth_sendTransaction', {{ to, value: '0x1' }})).body, await post(JSON.stringify({{ chain: '{CHAIN}', to, value: '1' }}))]);
      seen.push(['none', (await one('eth_sendTransaction', {{ value: '0x1', data: '0x6000' }})).body, await post(JSON.stringify({{ chain: '{CHAIN}', value: '1' }}))]);
      seen.push(['twice', (await rpc({twice})).body, await post('{{"chain":"{CHAIN}","to":"{FRIEND}","to":"{TOKEN}","value":"1"}}')]);
      seen.push(['To', (await one('eth_sendTransaction', {{ to: '{FRIEND}', To: '{TOKEN}', value: '0x1' }})).body, await post(JSON.stringify({{ chain: '{CHAIN}', to: '{FRIEND}', To: '{TOKEN}', value: '1' }}))]);
      return seen;""")
    for to, rpc, (status, error) in got:
        assert "error" in rpc and "result" not in rpc, (to, rpc)
        assert status in (400, 422) and error, (to, status, error)
    assert len(bank.list(state="pending")) == pending


# ---- a node whose name leads elsewhere


REBOUND = {"loop": ["127.8.9.10"], "cloud": ["169.254.169.254"], "zero": ["0.0.0.0"]}


class Closing(Handler):
    """Each request has a connection of its own, and so a look at the name."""

    def end_headers(self):
        self.send_header("connection", "close")
        self.close_connection = True
        super().end_headers()


class Node(Front):
    def __init__(self, anvil, listener):
        Front.__init__(self, anvil)
        self.shutdown()
        self.socket.close()
        self.socket = listener
        self.server_address, self.RequestHandlerClass = listener.getsockname(), Closing
        threading.Thread(target=self.serve_forever, daemon=True).start()


@pytest.fixture
def elsewhere(rebound_port):
    """A listener at an address that is not this machine's: in a network namespace that lives as long as it does."""
    net, link = f"11.{random.randrange(1, 255)}.{random.randrange(1, 255)}", f"pdkm{os.getpid() % 1000000}"

    def listen():
        assert ctypes.CDLL(None, use_errno=True).unshare(0x40000000) == 0  # CLONE_NEWNET, of this thread alone
        internet.run("ip", "link", "set", "lo", "up")
        subprocess.run(["nsenter", f"--net=/proc/{os.getpid()}/ns/net", "ip", "link", "add", link, "type", "veth", "peer", "name", "node", "netns", str(threading.get_native_id())], check=True)
        internet.run("ip", "addr", "add", f"{net}.2/24", "dev", "node")
        internet.run("ip", "link", "set", "node", "up")
        return socket.create_server((f"{net}.2", rebound_port))

    with ThreadPoolExecutor(1) as pool:
        listener = pool.submit(listen).result()
    internet.run("ip", "addr", "add", f"{net}.1/24", "dev", link)
    internet.run("ip", "link", "set", link, "up")
    yield listener
    internet.run("ip", "link", "del", link)


def test_a_name_that_is_bound_anew(make, anvil, names, rebound_port, elsewhere):
    """A name of `rpcs` leads to a node at first, then to this machine: what was checked is what is dialled."""
    address = elsewhere.getsockname()[0]
    outside, inside = Node(anvil, elsewhere), Node(anvil, socket.create_server(("127.0.0.1", rebound_port)))
    names.answers = {"node": [address], **REBOUND}
    chains = {f"eip155:{100 + i}": f"http://{name}.rebound.test:{rebound_port}/" for i, name in enumerate(REBOUND)}
    it = make("rebound", chains=[CHAIN, *chains], rpcs={CHAIN: f"http://node.rebound.test:{rebound_port}/", **chains})
    assert "value" in it.run(f"return attempt(sdk.getBlockNumber('{CHAIN}'))") and len(outside.calls) == 1
    names.answers["node"] = ["127.0.0.1"]
    for chain, url in chains.items():
        got = it.run(f"return attempt(sdk.getBlockNumber('{chain}'))")
        assert "value" not in got and got["status"] == 500, (url, got)
    names.asked = []
    # An answer is kept for five seconds, whatever its server says.
    got = paddock.until(lambda: (lambda said: said if "node" in names.asked else None)(it.run(f"await new Promise((go) => setTimeout(go, 500)); return attempt(sdk.getBlockNumber('{CHAIN}'))")),
                        "the name is looked up again")
    assert "value" not in got and got["status"] == 500 and "this machine" in got["message"], got
    assert names.asked == ["node"]  # once: there is no second look between the check and the connection
    assert inside.calls == []
    outside.shutdown()
    inside.shutdown()


# ---- a thousand at once


AGENTS, CONNECTIONS = 20, 50
WAITS = "import json, os, signal\njson.dump(dict(os.environ), open('/agent-workspace/env.json', 'w'))\nprint('ready', flush=True)\nsignal.pause()\n"
# Every connection is open before the first request is sent.
CLIENT = r"""
import asyncio, json, sys
count, first, to = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
env = json.load(open("/agent-workspace/env.json"))

async def main():
    ends = [await asyncio.open_connection("127.0.0.1", 15004) for _ in range(count)]
    async def one(i, reader, writer):
        body = json.dumps({"chain": "eip155:31337", "to": to, "value": str(10**15 + first + i)})
        writer.write((f"POST /agent/request-transaction HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json\r\nIdempotency-Key: {first + i}\r\n"
                      f"X-Assegai-Agent-ID: {env['ASSEGAI_AGENT_ID']}\r\nX-Assegai-Agent-Token: {env['ASSEGAI_AGENT_TOKEN']}\r\nContent-Length: {len(body)}\r\n\r\n{body}").encode())
        head, _, rest = (await reader.read()).partition(b"\r\n\r\n")
        return [10**15 + first + i, int(head.split()[1]), json.loads(rest)]
    print(json.dumps(await asyncio.gather(*(one(i, *end) for i, end in enumerate(ends)))))
asyncio.run(main())
"""


class Connections:
    """The most connections to a port of this machine that were seen while a block ran."""

    def __init__(self, port):
        self.port, self.most, self.over = f":{port:04X}", 0, threading.Event()

    def look(self):
        while not self.over.wait(0.01):
            rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
            self.most = max(self.most, sum(row[2].endswith(self.port) and row[3] == "01" for row in rows))

    def __enter__(self):
        self.thread = threading.Thread(target=self.look)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()


def test_a_thousand_at_once_through_the_daemon(daemon, make, anvil):
    """Nobody is asked, so that limits are all there is: the wallet's for all agents, and each agent's own."""
    to, each_limit, all_limit = "0x00000000000000000000000000000000000000c5", 8 * 10**15 + 77, 100 * 10**15 + 12345
    with ThreadPoolExecutor(AGENTS) as pool, Connections(anvil.port) as connections:
        agents = [make(f"racer-{i}", pack(**{"main.py": WAITS, "client.py": CLIENT}), start=False) for i in range(AGENTS)]
        for it in agents:
            it.wait("stopped", timeout=180)
            it.do("start")
        for it in agents:
            it.until_logged("ready")
        peer = owner(daemon)
        wallet = peer.ask("WALLET_ADD", kind=signer.pb.WALLET_KIND_TEST, label="race", test_index=5).wallet
        account = "0x" + wallet.address.hex()
        fees = signer.amount(100 * ETHER)
        native = {"chain": 31337, "asset": signer.NATIVE, "per_tx": signer.amount(ETHER)}
        peer.ask("RULES_PUT", rules=signer.pb.Rules(scope=f"wallet:{wallet.id}", fee_per_tx=fees, fee_day=fees, limits=[signer.pb.Limit(**native, day=signer.amount(all_limit))]))
        for it in agents:
            peer.ask("RULES_PUT", rules=signer.pb.Rules(scope=f"agent:{it.id}", limits=[signer.pb.Limit(**native, day=signer.amount(each_limit))], max_pending=CONNECTIONS,
                                                        wallets=[signer.pb.AgentWallet(chain=31337, wallet=wallet.id)], auto_below=signer.amount(ETHER),
                                                        addresses=[signer.pb.AddressRule(chain=31337, address=bytes.fromhex(to[2:]))]))
        nonce = anvil.number("eth_getTransactionCount", account, "latest")
        waits = [pool.submit(paddock.Box(daemon.client(timeout=300), {"id": it.get()["sandbox"]}).exec, ["python3", "/agent-code/client.py", str(CONNECTIONS), str(i * CONNECTIONS), to])
                 for i, it in enumerate(agents)]
        done = [w.result(300) for w in waits]
    assert 0 < connections.most < 100  # 64 for the node, and some that are being closed
    for one in done:
        assert one.exit_code == 0, one
    answers = [json.loads(one.text) for one in done]
    sent = {answer["txHash"]: value for all in answers for value, status, answer in all if status == 200}
    refused = [(status, answer["error"]) for all in answers for _, status, answer in all if status != 200]
    assert len(sent) + len(refused) == AGENTS * CONNECTIONS
    assert set(refused) == {(403, "Total spending limit exceeded")}, (set(refused), daemon.log())
    mined = {h: int(anvil.ask("eth_getTransactionByHash", h)["value"], 16) for h in sent if anvil.receipt(h)}
    assert mined == sent
    assert anvil.number("eth_getTransactionCount", account, "latest") == nonce + len(sent)  # and nothing else
    total = sum(mined.values())
    assert anvil.balance(to) == total <= all_limit
    assert all_limit - total < 10**15 + AGENTS * CONNECTIONS  # the limit was used up

    def spent(path):
        return int(next(x for x in daemon.client().get(f"{path}/spending").json()["lines"] if not x["fee"])["spent"]["day"])

    assert spent(f"/v1/wallets/{wallet.id}") == total
    for it, answered in zip(agents, answers):
        own = sum(value for value, status, _ in answered if status == 200)
        assert own <= each_limit and (own == 0 or spent(it.path) == own)


# ---- last, because it takes 30 s


def test_given_up_and_asked_again_is_spent_once(impatient, anvil):
    """The SDK aborts, its user calls it again: that attaches to the first request, and there is one transaction."""
    before, gone = anvil.balance(FRIEND), impatient.first.result(90 * paddock.SLOW)
    assert gone["code"] == "TIMEOUT" and 29000 < gone["ms"] < 60000, gone
    again = impatient.start(f"return {ask(2010)}")
    [item] = impatient.list()
    assert item["state"] == "pending"
    impatient.approve(item)
    hash = again.result(60)["txHash"]
    assert [t["hash"] for t in impatient.list()] == [hash]
    anvil.receipt(hash)
    assert anvil.balance(FRIEND) == before + 2010
