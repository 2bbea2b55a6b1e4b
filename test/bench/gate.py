"""The figures of the way out: what the gate adds to a connection, beside the same connection made directly."""

import json
import os
import signal
import subprocess
import sys
import time

from common import HERE, Ours, paddock, summary

from internet import ECHO_PORT, Internet

PORT = 6000
GB = 1 << 30

# Connects, shakes hands, asks and reads the first byte of the answer; milliseconds.
TLS = """
import json, socket, ssl, sys, time
context, times = ssl.create_default_context(cafile=sys.argv[3] if len(sys.argv) > 3 else None), []
for _ in range(int(sys.argv[2])):
    begun = time.perf_counter()
    with socket.create_connection((sys.argv[1], 443)) as raw:
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with context.wrap_socket(raw, server_hostname="api.test") as tls:
            tls.sendall(b"GET / HTTP/1.1\\r\\nHost: api.test\\r\\nConnection: close\\r\\n\\r\\n")
            assert tls.recv(1)
            times.append((time.perf_counter() - begun) * 1000)
            while tls.recv(65536):
                pass
print(json.dumps(times))
"""

HOLD = """
import socket, sys
held = []
for _ in range(int(sys.argv[3])):
    one = socket.create_connection((sys.argv[1], int(sys.argv[2])))
    one.sendall(b"x")
    assert one.recv(1) == b"x"
    held.append(one)
print("held", flush=True)
sys.stdin.read()
"""


def output(*command):
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, check=True).stdout


class World:
    """Servers that both the box and the host reach."""

    def __init__(self, work, stack):
        self.peer = work / "peer"
        subprocess.run(["gcc", "-O2", "-D_GNU_SOURCE", "-o", self.peer, HERE / "peer.c"], check=True)
        (work / "internet").mkdir()
        self.net = Internet(work / "internet").start()
        stack.callback(self.net.stop)
        self.address = self.net.host(20)
        self.net.set("api.test", self.net.host(10))
        server = subprocess.Popen(["nsenter", "-t", str(self.net.process.pid), "-n", self.peer, "serve", str(PORT)],
                                  stdout=subprocess.PIPE, start_new_session=True)
        stack.callback(self.end, server)
        assert server.stdout.readline() == b"ready\n"

    @staticmethod
    def end(server):
        """It has a child."""
        os.killpg(server.pid, signal.SIGKILL)
        server.wait()


def add_added(book, what, through, direct, target):
    through, direct = summary(through), summary(direct)
    for how, values in (("directly", direct), ("through the gate", through)):
        book.add(f"{what}, {how} p50", values["p50"], "ms", **values)
        book.add(f"{what}, {how} p99", values["p99"], "ms")
    book.add(f"{what}, added p50", through["p50"] - direct["p50"], "ms", target)


def run_seconds(pid):
    """Of one thread, to the nanosecond: ticks, which are sampled, say little of what runs for microseconds."""
    return int(paddock.read(f"/proc/{pid}/schedstat").split()[0]) / 1e9


def resident_kb(pid):
    """To the page: VmRSS is a sum of counters that lag behind."""
    return next(int(line.split()[1]) for line in paddock.read(f"/proc/{pid}/smaps_rollup").splitlines() if line.startswith("Rss:"))


def connections(book, world, box, gate, rounds):
    def milliseconds(text):
        return [int(line) / 1e6 for line in text.split()]

    direct, through = [], []
    dial = ["/workspace/peer", "dial", world.address, str(PORT), str(rounds)]
    for _ in range(5):
        direct += milliseconds(output(world.peer, "dial", world.address, PORT, rounds))
        through += milliseconds(box.check(dial, timeout_ms=60_000))
    add_added(book, "new plain connection", through, direct, 0.3)

    made, before = 0, run_seconds(gate)
    for _ in range(5):
        made += len(box.check(["/bin/sh", "-c", f"for i in 1 2 3 4; do {' '.join(dial)} & done; wait"], timeout_ms=60_000).split())
    book.add("new connections per CPU second of the gate, four clients", made / (run_seconds(gate) - before), "connections", 8000, least=True)


def bulk(book, world, box, size):
    direct, through = [], []
    for _ in range(7):
        direct.append(int(output(world.peer, "pull", world.address, PORT + 1, size)))
        through.append(int(box.check(["/workspace/peer", "pull", world.address, str(PORT + 1), str(size)], timeout_ms=60_000)))
    for how, values in (("directly", direct), ("through the gate", through)):
        book.add(f"bulk, {how}, p50 of 7", size / summary(values)["p50"] * 1000, "MB/s")
    book.add("bulk, through the gate / directly", summary(direct)["p50"] / summary(through)["p50"], "times", 0.7, least=True)


def intercepted(book, world, box, rounds):
    direct = json.loads(output(sys.executable, "-c", TLS, world.net.host(10), rounds, world.net.authority))
    through = json.loads(box.check(["/usr/bin/python3", "-c", TLS, "api.test", str(rounds)], timeout_ms=120_000))
    add_added(book, "intercepted TLS connection, to the first byte of an answer", through, direct, 3)


def creates(book, client, rules, rounds):
    """What a policy costs a create: the gate has it, and the vault its grants, before the answer."""
    def one(**wish):
        begun = time.perf_counter()
        box = client.create(**wish)
        took = (time.perf_counter() - begun) * 1000
        box.delete()
        return took

    plain, ruled = [], []
    for _ in range(rounds):
        plain.append(one())
        ruled.append(one(egress={"rules": rules}))
    for how, values in (("without a policy", plain), ("with three rules, one of them with a secret", ruled)):
        book.add(f"create {how} p50", summary(values)["p50"], "ms", **summary(values))


def idle(book, world, box, gate, count):
    """First of all: memory that earlier connections left free would be used again and not show."""
    before, open_before = resident_kb(gate), len(os.listdir(f"/proc/{gate}/fd"))
    made = box.client.post(f"{box.path}/processes", {"argv": ["/usr/bin/python3", "-c", HOLD, world.net.host(10), str(ECHO_PORT), str(count)],
                                                     "stdin": True})
    assert made.status == 201, made
    path = f"{box.path}/processes/{made.json()['pid']}"
    paddock.until(lambda: box.client.get(f"{path}/output").json()["stdout"]["data"] == "held\n", "all are held", 60)
    assert len(os.listdir(f"/proc/{gate}/fd")) >= open_before + 2 * count
    book.add(f"{count} idle flows, memory of the gate each", (resident_kb(gate) - before) / count, "KiB", 64)
    box.client.post(f"{path}/signal", {"signal": "KILL"})
    paddock.until(lambda: len(os.listdir(f"/proc/{gate}/fd")) <= open_before, "the gate has closed them", 60)


def measure(work, book, options, stack):
    ours, world = Ours(work), World(work, stack)
    ours.daemon.environment = {"PADDOCK_GATE_DNS": world.net.dns, "PADDOCK_GATE_CA_FILE": str(world.net.authority)}
    daemon = ours.daemon.start()
    stack.callback(daemon.finish)
    client = daemon.client()
    assert client.send_json("PUT", "/v1/secrets/TOKEN", {"value": "bench-" + "x" * 30}).status in (200, 201)
    rules = [
        {"action": "allow", "cidr": f"{world.address}/32", "protocol": "tcp"},
        {"action": "allow", "cidr": f"{world.net.host(10)}/32", "ports": [ECHO_PORT], "protocol": "tcp"},
        {"action": "allow", "host": "api.test", "inject": [{"secret": "TOKEN", "header": "Authorization"}]},
    ]
    box = client.create(limits={"nofile": 4096}, egress={"rules": rules})
    box.put("/workspace/peer", world.peer.read_bytes(), "mode=0755")
    gate = next(pid for pid, name in daemon.programs().items() if name == "paddock-gate")
    idle(book, world, box, gate, 100 if options.quick else 1000)
    connections(book, world, box, gate, 50 if options.quick else 1000)
    bulk(book, world, box, GB // 8 if options.quick else GB)
    intercepted(book, world, box, 20 if options.quick else 200)
    creates(book, client, rules, 10 if options.quick else 100)
    box.delete()
    client.close()
