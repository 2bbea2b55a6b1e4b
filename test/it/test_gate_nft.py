"""The way out where BPF is not to be had: connections come to the gate by nf_tables rules, or
by the proxy port alone.

What boxes may and may not reach does not depend on how they are brought there: the tests of
test_gate.py, and those of the posture's network, run here once more, against a daemon with
`egress.capture: nft`. What is new is that the rules are out of the box's reach, which way is
chosen, and that boxes keep theirs.
"""

import contextlib
import ctypes
import errno
import json
import os
import socket
import struct
import subprocess

import pytest

import paddock
from internet import ECHO_PORT
# Tests and fixtures: they use the daemon that `gated` is in this file.
from test_gate import (allow, both, client, give, inside, net, out, tried, worked,  # noqa: F401
                       test_addresses_ports_and_protocols, test_any_name_server_answers, test_bypass, test_change_at_once,  # noqa: F401
                       test_named_hosts, test_nothing_reached_the_servers,  # noqa: F401
                       test_nothing_without_a_rule, test_questions_carry_nothing_out, test_restarts,  # noqa: F401
                       test_the_gate_dies_in_flight, test_the_gate_has_nothing)  # noqa: F401
from test_posture_inside import test_interfaces_cannot_be_changed, test_loopback_works, test_only_loopback_and_it_is_up  # noqa: F401
from test_posture_outside import one, test_network_from_outside  # noqa: F401


@pytest.fixture(scope="module")
def gated(daemon_factory, net):
    it = daemon_factory("nft", environment={"PADDOCK_GATE_DNS": net.dns, "PADDOCK_EGRESS_CAPTURE": "nft"})
    try:
        it.start()
    except AssertionError as error:
        if "egress.capture: nft is not to be had here" in str(error):
            pytest.skip(f"this kernel lacks what the rules need: {str(error).splitlines()[-1]}")
        raise
    yield it
    it.finish()


@pytest.fixture(scope="module")
def daemon(gated):
    """For tests of the posture, which use everybody's daemon elsewhere."""
    return gated


def capture(client):
    """What the posture says of it."""
    parts = client.get("/v1/posture").json()["parts"]
    return [part for part in parts if part["name"] == "egress.capture"][0]


# ---- what is new to the rules ---------------------------------------------


def test_it_is_said(client):
    part = capture(client)
    assert part["ok"] and part["detail"] == "nf_tables rules", part


def test_other_datagrams_are_refused_at_once(out, net):
    give(out, default="allow")
    code = """
import socket, sys
for address in sys.argv[1:]:
    for port in (1, 123, 443, 54, 15004):
        s = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM)
        s.connect((address, port))
        s.settimeout(5)
        s.send(b"x")
        try:
            s.recv(1)
        except ConnectionRefusedError:
            continue
        except TimeoutError:
            pass
        print("not refused:", address, port)
"""
    for user in ("user", "root"):
        output = out.python(code, net.host(10), net.host6, "8.8.8.8", user=user)
        assert (output.exit_code, output.out) == (0, b""), output


def test_loopback_is_the_boxes_own(out, net):
    give(out, allow("a.test"))
    code = """
import socket, sys
for family, every, own in ((socket.AF_INET, "0.0.0.0", "127.1.2.3"), (socket.AF_INET6, "::", "::1")):
    server = socket.socket(family)
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    server.bind((every, 7))
    server.listen()
    one = socket.create_connection((own, 7), timeout=5)
    two, _ = server.accept()
    two.sendall(b"mine")
    assert one.recv(10) == b"mine" and two.getsockname()[0] == own
    # The same port of another's address is another's.
    other = socket.create_connection((sys.argv[1], 7), timeout=5)
    other.sendall(b"theirs")
    assert other.recv(10) == b"theirs"
    server.settimeout(0)
    try:
        server.accept()
        print("a connection to elsewhere came here")
    except BlockingIOError:
        pass
print("fine")
"""
    assert worked(inside(out, ["names", "a.test"])[0]) == [net.host(10)]
    output = out.python(code, net.host(10))
    assert output.out == b"fine\n", output


# Enters namespaces of a process (argv[1]; of the kinds argv[3:]), lists the rules there and, if argv[2] says so, tries
# to remove them, by messages to the kernel. Prints [number of rules or -errno, errno].
ASK = """
import ctypes, json, os, socket, struct, sys
for kind in sys.argv[3:]:
    fd = os.open(f"/proc/{sys.argv[1]}/ns/{kind}", os.O_RDONLY)
    if ctypes.CDLL(None, use_errno=True).setns(fd, 0):
        raise OSError(ctypes.get_errno(), f"setns {kind}")
    os.close(fd)
if "user" in sys.argv[3:]:
    os.setgroups([]); os.setgid(0); os.setuid(0)
try:
    s = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 12)
except OSError as error:
    print(json.dumps(["socket", error.errno]))
    sys.exit()
def message(kind, flags, family, resource=0, body=b"", seq=1):
    return struct.pack("=IHHII", 20 + len(body), kind, flags, seq, 0) + struct.pack("=BB", family, 0) + struct.pack(">H", resource) + body
def answers():
    while True:
        data = s.recv(65536)
        while data:
            size, kind = struct.unpack("=IH", data[:6])
            yield kind, struct.unpack("=i", data[16:20])[0]
            data = data[(size + 3) & ~3:]
NEWRULE, GETRULE, DELTABLE = (10 << 8) + 6, (10 << 8) + 7, (10 << 8) + 2
s.send(message(GETRULE, 1 | 0x300, 1))
rules = 0
for kind, first in answers():
    if kind == 2:
        rules = first
    if kind in (2, 3):
        break
    rules += kind == NEWRULE
if sys.argv[2] == "list":
    print(json.dumps([rules, 0]))
    sys.exit()
name = struct.pack("=HH", 12, 1) + b"paddock\\0"
s.send(message(16, 1, 0, 10) + message(DELTABLE, 5, 1, 0, name, 2) + message(17, 1, 0, 10))
kind, first = next(answers())
print(json.dumps([rules, -first]))
"""


def ask(pid, *kinds, remove=True):
    done = subprocess.run(["/usr/bin/python3", "-c", ASK, str(pid), "remove" if remove else "list", *kinds], capture_output=True, timeout=30 * paddock.SLOW)
    assert done.returncode == 0, done
    return json.loads(done.stdout)


def test_rules_are_out_of_reach(out, client, gated, net):
    give(out, allow("a.test"))
    # From inside: there is no such socket, for nobody.
    for user in ("user", "root"):
        answer = out.python_json(ASK, "self", "remove", user=user)
        assert answer[0] == "socket", answer
    # What if the filter had a hole? Root of the box's user namespace, in its network, without a filter.
    pid = int(paddock.read(gated.run_dir / "boxes" / out.id / "pid"))
    assert ask(pid, "net", "user") == [-errno.EPERM, errno.EPERM]  # for listing and for removing
    worked(inside(out, ["tcp", "a.test", ECHO_PORT])[0])
    # The control: the host's root may do both, and without the rules nothing comes to the gate.
    other = client.create()
    give(other, allow("a.test"))
    worked(inside(other, ["tcp", "a.test", ECHO_PORT])[0])
    assert ask(int(paddock.read(gated.run_dir / "boxes" / other.id / "pid")), "net") == [4, 0]
    assert "no" in inside(other, ["tcp", net.host(10), ECHO_PORT])[0]
    worked(inside(out, ["tcp", "a.test", ECHO_PORT])[0])
    other.delete()


def test_sockets_of_others_are_not_to_be_had(out):
    """A program in the box that would take the gate's place cannot be given others' connections."""
    code = """
import socket
for family, level, option in ((socket.AF_INET, 0, 19), (socket.AF_INET6, 41, 75)):
    try:
        socket.socket(family).setsockopt(level, option, 1)
        print("transparent")
    except PermissionError:
        pass
"""
    for user in ("user", "root"):
        output = out.python(code, user=user)
        assert (output.exit_code, output.out) == (0, b""), output


# ---- which way, and for how long ------------------------------------------


CALLS = {"x86_64": {"bpf": 321, "socket": 41}, "aarch64": {"bpf": 280, "socket": 198}}


def refusing(*what):
    """Prepares a daemon's process so that it lacks what a kernel may lack: "bpf", "netfilter"."""
    calls = CALLS[os.uname().machine]

    def prepare():
        paddock.die_with_parent()
        code = [(0x20, 0, 0, 0)]  # the call's number
        if "bpf" in what:
            code += [(0x15, 0, 1, calls["bpf"]), (0x06, 0, 0, 0x00050000 + errno.EPERM)]
        if "netfilter" in what:  # socket(AF_NETLINK, …, NETLINK_NETFILTER)
            code += [(0x15, 0, 5, calls["socket"]), (0x20, 0, 0, 16), (0x15, 0, 3, socket.AF_NETLINK), (0x20, 0, 0, 32), (0x15, 0, 1, 12),
                     (0x06, 0, 0, 0x00050000 + errno.EPROTONOSUPPORT)]
        code += [(0x06, 0, 0, 0x7FFF0000)]
        filters = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *each) for each in code))
        program = struct.pack("=HxxxxxxQ", len(code), ctypes.addressof(filters))
        if ctypes.CDLL(None).prctl(22, 2, program, 0, 0):  # PR_SET_SECCOMP, SECCOMP_MODE_FILTER
            os._exit(1)

    return prepare


def reaches(box, net):
    """How a box gets out: directly, by its proxy, and whether it is told names."""
    results = inside(box, ["http", net.host(10), 80, "a.test"], ["http", net.host6, 80, "six.test"], ["proxied", "a.test", 80],
                     ["dns", "127.0.0.1", "a.test"], ["dns", "8.8.8.8", "a.test"])
    return ["ok" in each for each in results]


DIRECT, BY_PROXY = [True] * 5, [False, False, True, True, False]
NO_SK_LOOKUP = "no sk_lookup: Operation not permitted"


@pytest.mark.parametrize("missing, detail, ok, way, said", [
    (["bpf"], f"nf_tables rules; {NO_SK_LOOKUP}", True, DIRECT, "connections of sandboxes are brought to the gate by: nf_tables rules"),
    (["bpf", "netfilter"], f"none: proxy port and DNS alone; {NO_SK_LOOKUP}; no nft: Protocol not supported", False, BY_PROXY,
     "sandboxes reach the gate by their proxy port and DNS alone"),
], ids=["no bpf", "nothing"])
def test_the_next_best(own_daemon, net, gated, missing, detail, ok, way, said):
    """What is not there is done without, and it is said which way is taken. Without parts the sockets are made later."""
    it = own_daemon(environment={"PADDOCK_GATE_DNS": net.dns, "PADDOCK_PARTS": 0}, prepare=refusing(*missing)).start()
    with contextlib.closing(it.client()) as own:
        part = capture(own)
        assert (part["detail"], part["ok"], part["required"]) == (detail, ok, False)
        assert paddock.read(it.log_file).count(said) == 1
        box = own.create()
        give(box, allow("a.test"), allow("six.test"))
        paddock.until(lambda: "ok" in inside(box, ["proxied", "a.test", 80])[0], "the gate has the box's sockets")
        assert reaches(box, net) == way


@pytest.mark.parametrize("missing, name, why", [("bpf", "sk_lookup", "Operation not permitted"), ("netfilter", "nft", "Protocol not supported")])
def test_a_way_that_is_named_must_be_there(own_daemon, missing, name, why):
    it = own_daemon(environment={"PADDOCK_EGRESS_CAPTURE": name}, prepare=refusing(missing))
    with pytest.raises(AssertionError, match=f"egress.capture: {name} is not to be had here: {why}"):
        it.start()
    it.prepare, it.environment = paddock.die_with_parent, {}  # so that it can be finished


def test_proxy_alone(own_daemon, net):
    it = own_daemon(environment={"PADDOCK_GATE_DNS": net.dns, "PADDOCK_EGRESS_CAPTURE": "proxy"}).start()
    with contextlib.closing(it.client()) as own:
        part = capture(own)
        assert part["ok"] and part["detail"] == "none: proxy port and DNS alone", part
        box = own.create()
        give(box, allow("a.test"), allow("six.test"))
        results = both(box, ["names", "a.test"], ["proxied", "a.test", 443, "a.test"], ["socks", "a.test", 80], ["http", "a.test", 80, "a.test"],
                       ["tls", net.host(10), 443, "a.test"], ["http", net.host6, 80, "six.test"], ["udp", net.host(10), 443],
                       ["udp", net.host6, 443], ["dns", "8.8.8.8", "a.test"])
        assert worked(results[0]) == [net.host(10)] and worked(results[1])["sni"] == "a.test" and worked(results[2])["host"] == "a.test"
        for result in results[3:]:
            assert "Network is unreachable" in result["no"], results
        give(box)
        assert "no" in inside(box, ["proxied", "a.test", 80])[0]


def test_boxes_keep_their_way(own_daemon, net, gated):
    """Over restarts of the daemon, whatever it is told meanwhile; new boxes get what it is told."""
    it = own_daemon(environment={"PADDOCK_GATE_DNS": net.dns})
    ways = {"nft": DIRECT, "sk_lookup": DIRECT, "proxy": BY_PROXY}
    rules = {"nft": 4, "sk_lookup": 0, "proxy": 0}
    boxes = {}
    for way in ("nft", "sk_lookup", "proxy", "auto", "no bpf"):
        it.environment["PADDOCK_EGRESS_CAPTURE"] = "auto" if way == "no bpf" else way
        if way == "no bpf":  # its program cannot be had any more: refused, but for what needs none
            it.prepare = refusing("bpf")
            ways["sk_lookup"] = [False, False, True, True, True]
        it.restart()
        with contextlib.closing(it.client()) as own:
            if way in ways:
                boxes[way] = own.create()
                give(boxes[way], allow("a.test"), allow("six.test"))
            for name, box in boxes.items():
                box = box.with_client(own)
                paddock.until(lambda: "ok" in inside(box, ["proxied", "a.test", 80])[0], f"the box by {name} is back after {way}", 30)
                assert reaches(box, net) == ways[name], (name, way)
                pid = int(paddock.read(it.run_dir / "boxes" / box.id / "pid"))
                assert ask(pid, "net", remove=False)[0] == rules[name], (name, way)
    said = [line for line in paddock.read(it.log_file).splitlines() if "connections cannot be brought to the gate by" in line]
    assert len(said) == 1 and boxes["sk_lookup"].id in said[0] and "sk_lookup (Operation not permitted)" in said[0], said
