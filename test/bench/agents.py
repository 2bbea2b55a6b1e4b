"""Agents: what the JSON-RPC proxy adds to a node's own time, and what an agent that waits costs.

The same client runs beside the node and in an agent's sandbox, in turns. An agent may ask 30 times in 10 s, so several
agents share the rounds."""

import io
import json
import socket
import subprocess
import tarfile
import time

from common import Ours, cpu_seconds, paddock, percentile, proportional_kb
import npm

CHAINS = {"anvil": "eip155:31337", "a trivial node": "eip155:1"}
EACH = 14  # requests of a turn: two nodes fit the limit
LIMIT_S = 11
# Milliseconds of requests over one connection; the first one opens it.
CLIENT = r"""
import http.client, json, os, sys, time
host, port, path, rounds = sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
env = json.load(open("/agent-workspace/env.json")) if os.path.exists("/agent-workspace/env.json") else {}
headers = {"Content-Type": "application/json", "X-Assegai-Agent-ID": env.get("ASSEGAI_AGENT_ID", ""), "X-Assegai-Agent-Token": env.get("ASSEGAI_AGENT_TOKEN", "")}
body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "eth_blockNumber", "params": []})
connection, times = http.client.HTTPConnection(host, port), []
for i in range(rounds + 1):
    begun = time.perf_counter()
    connection.request("POST", path, body, headers)
    answer = connection.getresponse()
    text = answer.read()
    if answer.status != 200 or b"result" not in text:
        sys.exit(f"{answer.status} {text!r}")
    if i:
        times.append((time.perf_counter() - begun) * 1000)
print(json.dumps(times))
"""
WAITS = b"import json, os, signal\njson.dump(dict(os.environ), open('/agent-workspace/env.json', 'w'))\nprint('ready', flush=True)\nsignal.pause()\n"


# A node that answers every request with the same bytes, as a process of its own.
NODE = r"""
import socket, threading
server = socket.create_server(("127.0.0.1", 0))
print(server.getsockname()[1], flush=True)
body = b'{"jsonrpc":"2.0","id":1,"result":"0x1"}'
answer = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
def serve(peer):
    peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    have = b""
    while piece := peer.recv(65536):
        have += piece
        while b"\r\n\r\n" in have:
            head, rest = have.split(b"\r\n\r\n", 1)
            length = next(int(line.split(b":")[1]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length"))
            if len(rest) < length:
                break
            have = rest[length:]
            peer.sendall(answer)
while True:
    threading.Thread(target=serve, args=(server.accept()[0],), daemon=True).start()
"""


def start_node(stack):
    process = subprocess.Popen(["/usr/bin/python3", "-c", NODE], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, preexec_fn=paddock.die_with_parent)
    stack.callback(process.stdout.close)
    stack.callback(process.wait)
    stack.callback(process.kill)
    return int(process.stdout.readline())


def start_anvil(stack):
    modules = npm.install(paddock.ROOT / "test/it/agents", "agents")
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    process = subprocess.Popen([modules / "node_modules/@foundry-rs/anvil-linux-amd64/bin/anvil", "--port", str(port), "--silent"],
                               stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, preexec_fn=paddock.die_with_parent)
    stack.callback(process.wait)
    stack.callback(process.kill)

    def answers():
        with socket.socket() as s:
            return s.connect_ex(("127.0.0.1", port)) == 0

    paddock.until(answers, "anvil answers")
    return port


def code(client):
    """The archive of an agent that waits, with a client beside it."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for path, text in (("main.py", WAITS), ("client.py", client.encode())):
            info = tarfile.TarInfo(path)
            info.size = len(text)
            tar.addfile(info, io.BytesIO(text))
    return out.getvalue()


def install(api, name, client=CLIENT, chains=tuple(CHAINS.values())):
    manifest = {"name": "Bench", "version": "1.0.0", "runtime": "python", "entrypoint": "main.py", "permissions": {"chains": list(chains)}}
    made = api.post("/v1/agents", {"manifest": manifest, "name": name, "consent": True})
    assert made.status == 201, made
    assert api.request("PUT", f"/v1/agents/{name}/code", code(client)).status == 202
    paddock.until(lambda: api.get(f"/v1/agents/{name}").json()["status"] == "stopped", "the agent is built")


def start(api, name):
    assert api.request("POST", f"/v1/agents/{name}/start").status == 200
    logs = f"/v1/agents/{name}/logs?limit=1000"
    paddock.until(lambda: any(e["message"] == "ready" for e in api.get(logs).json()["entries"]), "the agent is ready")
    return paddock.Box(api, {"id": api.get(f"/v1/agents/{name}").json()["sandbox"]})


def own_kb(daemon):
    return sum(proportional_kb(pid) for pid in daemon.programs())


def take_turns(boxes, ports, client, direct, proxied):
    for what, chain in CHAINS.items():
        for box in boxes:
            beside = subprocess.run(["/usr/bin/python3", client, "127.0.0.1", str(ports[what]), "/", str(EACH)], capture_output=True, text=True, check=True)
            inside = box.exec(["python3", "/agent-code/client.py", "127.0.0.1", "15004", f"/rpc/{chain}", str(EACH - 1)])
            assert inside.exit_code == 0, inside
            direct[what] += json.loads(beside.stdout)
            proxied[what] += json.loads(inside.text)


def measure_proxy(boxes, ports, client, book, rounds):
    all_direct, all_proxied = {what: [] for what in CHAINS}, {what: [] for what in CHAINS}
    for i in range(rounds):
        take_turns(boxes, ports, client, all_direct, all_proxied)
        if i + 1 < rounds:  # the limit of each agent begins anew
            time.sleep(LIMIT_S)
    for what in CHAINS:
        direct, proxied = all_direct[what], all_proxied[what]
        book.add(f"agents: {what} asked directly, p50", percentile(direct, 0.5), "ms")
        book.add(f"agents: {what} through the proxy, p50", percentile(proxied, 0.5), "ms")
        book.add(f"agents: the proxy above {what}, p50", percentile(proxied, 0.5) - percentile(direct, 0.5), "ms", 0.3)


def measure_idle(daemon, before, boxes, book):
    count = len(boxes)
    book.add("agents: our programs for each that runs", (own_kb(daemon) - before) / count, "KiB")
    begun, at = cpu_seconds(daemon.programs()), time.monotonic()
    time.sleep(5)  # what is measured is that nothing happens
    book.add("agents: our CPU while all of them wait", (cpu_seconds(daemon.programs()) - begun) / (time.monotonic() - at) * 100, "%", 1)


def measure(work, book, options, stack):
    ports = {"anvil": start_anvil(stack), "a trivial node": start_node(stack)}
    ours = Ours(work)
    stack.callback(ours.daemon.finish)
    config = work / "agents.yaml"
    config.write_text(json.dumps({"agents": {"chains": {chain: {"rpc": [f"http://127.0.0.1:{ports[what]}/"]} for what, chain in CHAINS.items()}}}))
    ours.daemon.arguments += ["--config", str(config)]
    client = work / "client.py"
    client.write_text(CLIENT)
    daemon = ours.daemon.start()
    api, names = daemon.client(), [f"bench-{i}" for i in range(3 if options.quick else 12)]
    for name in names:
        install(api, name)
    before = own_kb(daemon)
    boxes = [start(api, name) for name in names]
    measure_idle(daemon, before, boxes, book)
    measure_proxy(boxes, ports, client, book, 1 if options.quick else 5)
    for name in names:
        paddock.until(lambda: api.delete(f"/v1/agents/{name}").status in (204, 404), "the agent is removed")
