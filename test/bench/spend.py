"""Spending through all of the programs: agents in their sandboxes, the api, the signer, and anvil as the node.

50 agents queue requests at once, each over one connection that is kept; and what all of it adds to the daemon's memory."""

import json
import time
from concurrent.futures import ThreadPoolExecutor

from common import Ours, cpu_seconds, paddock, proportional_kb, summary
import agents
import signer
import spend_kit

CHAIN = 31337
# Requests to as many recipients, from the same moment in every sandbox: seconds at the end, and milliseconds of each.
CLIENT = r"""
import http.client, json, sys, time
first, count, at = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
env = json.load(open("/agent-workspace/env.json"))
headers = {"Content-Type": "application/json", "Prefer": "respond-async", "X-Assegai-Agent-ID": env["ASSEGAI_AGENT_ID"], "X-Assegai-Agent-Token": env["ASSEGAI_AGENT_TOKEN"]}
connection, times = http.client.HTTPConnection("127.0.0.1", 15004), []
connection.connect()
time.sleep(max(0, at - time.time()))
for i in range(first, first + count):
    begun = time.perf_counter()
    connection.request("POST", "/agent/request-transaction", json.dumps({"chain": "eip155:31337", "to": "0x%040x" % i, "value": "1", "data": "0x", "gasLimit": "21000"}), headers)
    answer = connection.getresponse()
    text = answer.read()
    if answer.status != 202 or b'"pending"' not in text:
        sys.exit(f"{answer.status} {text!r}")
    times.append((time.perf_counter() - begun) * 1000)
print(json.dumps({"end": time.time(), "times": times}))
"""


def own(daemon, name, **fields):
    peer = spend_kit.owner(daemon)
    try:
        return peer.ask(name, **fields)
    finally:
        peer.close()


def allow(daemon, api, names, pending):
    """A wallet for all of them."""
    wallet = own(daemon, "WALLET_ADD", kind=signer.pb.WALLET_KIND_TEST, label="bench", test_index=1).wallet
    much = signer.amount(spend_kit.ETHER)
    own(daemon, "RULES_PUT", rules=signer.pb.Rules(scope=f"wallet:{wallet.id}", fee_per_tx=much, fee_day=signer.amount(1000 * spend_kit.ETHER)))
    native = signer.pb.Limit(chain=CHAIN, asset=signer.NATIVE, per_tx=much)
    for name in names:
        own(daemon, "RULES_PUT", rules=signer.pb.Rules(scope=f"agent:{api.get(f'/v1/agents/{name}').json()['id']}", limits=[native],
                                                       wallets=[signer.pb.AgentWallet(chain=CHAIN, wallet=wallet.id)], max_pending=pending))


def queue(boxes, first, each):
    """All of the agents' requests: how many a second, and milliseconds of every one."""
    at = time.time() + 3  # a client has connected by then
    with ThreadPoolExecutor(len(boxes)) as pool:
        waits = [pool.submit(box.exec, ["python3", "/agent-code/client.py", str(first), str(each), str(at)]) for box in boxes]
        done = [wait.result() for wait in waits]
    for one in done:
        if one.exit_code:
            raise SystemExit(f"an agent's request failed: {one}")
    said = [json.loads(one.text) for one in done]
    return len(boxes) * each / (max(s["end"] for s in said) - at), [t for s in said for t in s["times"]]


def share(daemon):
    """KiB of each of our programs."""
    return {pid: (name, proportional_kb(pid)) for pid, name in daemon.programs().items()}


def added(before, after, name=None):
    """MiB that were added: in all, or in the programs of this name."""
    return sum(kb - before.get(pid, ("", 0))[1] for pid, (called, kb) in after.items() if name in (None, called)) / 1024


def at_rest(daemon):
    """What a burst needed goes back two seconds after it: what is left when that has happened."""
    paddock.until_still(lambda: sum(kb for _, kb in share(daemon).values()) // 128, "memory is at rest", looks=15)
    return share(daemon)


def measure_memory(daemon, before, requests, book):
    """paddock-ai, which connects to nodes, runs from the first request on: it counts."""
    after = at_rest(daemon)
    book.add(f"spend: added to our programs by {requests} requests", added(before, after), "MiB", 6)
    for name in ("paddock-signer", "paddock-ai", "paddock-api"):
        book.add(f"spend: of these {name}", added(before, after, name), "MiB")
    return after


def measure_queue(daemon, api, names, boxes, anvil, book, each):
    pids = daemon.programs()
    mine, node = cpu_seconds(pids), cpu_seconds([anvil])
    rate, took = queue(boxes, 0x2000, each)
    count = len(boxes) * each
    book.add(f"spend: requests queued by {len(boxes)} agents", rate, "/s", 500, least=True, **summary(took))
    book.add("spend: our CPU for a request", (cpu_seconds(pids) - mine) / count * 1000, "ms")
    book.add("spend: the node's CPU for a request", (cpu_seconds([anvil]) - node) / count * 1000, "ms")
    for name in names:
        pending = api.get(f"/v1/transactions?agent={api.get(f'/v1/agents/{name}').json()['id']}&state=pending&limit=500").json()["transactions"]
        if len({t["to"] for t in pending}) != each + 2:
            raise SystemExit(f"{name} has {len(pending)} requests pending")


def measure(work, book, options, stack):
    anvil = spend_kit.Anvil(agents.npm.install(paddock.ROOT / "test/it/agents", "agents"), CHAIN)
    stack.callback(anvil.stop)
    ours = Ours(work)
    stack.callback(ours.daemon.finish)
    config = work / "spend.yaml"
    config.write_text(json.dumps({"agents": {"chains": {f"eip155:{CHAIN}": {"rpc": [f"http://127.0.0.1:{anvil.port}/"]}}}}))
    ours.daemon.arguments += ["--config", str(config)]
    daemon = ours.daemon.start()
    api, names, each = daemon.client(), [f"bench-{i}" for i in range(5 if options.quick else 50)], 10 if options.quick else 60
    for name in names:
        agents.install(api, name, CLIENT, [f"eip155:{CHAIN}"])
    boxes = [agents.start(daemon.client(), name) for name in names]
    before = at_rest(daemon)
    allow(daemon, api, names, each + 2)
    queue(boxes, 0x1000, 2)
    some = measure_memory(daemon, before, 2 * len(boxes), book)
    measure_queue(daemon, api, names, boxes, anvil.process.pid, book, each)
    book.add("spend: memory of a request that is pending", added(some, at_rest(daemon)) * 1024 / (len(boxes) * each), "KiB")
    for name in names:
        paddock.until(lambda: api.delete(f"/v1/agents/{name}").status in (204, 404), "the agent is removed")
