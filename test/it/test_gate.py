"""The boxes' way out: what a policy allows gets through, and nothing else does.

"The internet" is internet.py's. Each bypass of shared/attacks.md, section C, is tried from
inside a box as its user and as its root, and from the host, where it must work: a control
that shows that the attempt is a real one.
"""

import json
import os
import signal
import subprocess
import threading
import time
from pathlib import Path

import pytest

import paddock
from internet import BANNER_PORT, ECHO_PORT, PROXY_PORT, SILENT_PORT, SINK_PORT, UDP_PORT, Internet

PROBE = (Path(__file__).parent / "gate_probe.py").read_text().replace("TIMEOUT = 8", f"TIMEOUT = {8 * paddock.SLOW}")


@pytest.fixture(scope="module")
def net(workdir, request):
    directory = workdir / f"internet-{request.module.__name__}"  # other files use this fixture, too
    directory.mkdir()
    it = Internet(directory).start()
    it.set("a.test", it.host(10))
    it.set("b.test", it.host(11))
    it.set("six.test", it.host6)
    it.set("evil.test", it.host(66))
    it.set("x.evil.test", it.host(66))
    it.set("in.test", it.private)
    it.set("shared.test", it.shared)
    it.set("meta.test", it.link_local)
    it.set("loop.test", "127.0.0.1")
    it.set("own.test", it.gateway)
    it.set("nowhere.test")
    yield it
    it.stop()


@pytest.fixture(scope="module")
def gated(daemon_factory, net):
    it = daemon_factory("gate", environment={"PADDOCK_GATE_DNS": net.dns}).start()
    yield it
    it.finish()


@pytest.fixture(scope="module")
def client(gated):
    it = gated.client()
    yield it
    it.close()


@pytest.fixture(scope="module")
def out(client):
    """A box; tests give it the policy that they need."""
    it = client.create(limits={"nofile": 4096})
    yield it
    it.delete()


@pytest.fixture
def asker(client):
    """A box for who uses up its questions to DNS: the next test would have none."""
    it = client.create()
    yield it
    it.delete()


def gate_pid(daemon):
    def look():
        return [pid for pid, name in daemon.programs().items() if name == "paddock-gate"]

    return paddock.until(look, "the keeper has a paddock-gate")[0]


def allow(host=None, **more):
    return {"action": "allow", **({"host": host} if host else {}), **more}


def give(box, *rules, query="", default="deny", **limits):
    response = box.client.send_json("PUT", f"{box.path}/egress{query}",
                                    {"default": default, "rules": list(rules), "limits": limits})
    assert response.status == 200, response


def inside(box, *attempts, user="user"):
    output = box.python(PROBE, json.dumps(attempts), user=user, timeout_ms=paddock.ms(60000))
    assert output.exit_code == 0, output
    return json.loads(output.out)


def outside(*attempts):
    done = subprocess.run(["/usr/bin/python3", "-c", PROBE, json.dumps(attempts)], capture_output=True, timeout=60 * paddock.SLOW, check=True)
    return json.loads(done.stdout)


def worked(result):
    assert "ok" in result, result
    return result["ok"]


def both(box, *attempts):
    """The results as user; as root they must be of the same kind."""
    user, root = (inside(box, *attempts, user=who) for who in ("user", "root"))
    for one, two, what in zip(user, root, attempts):
        assert set(one) == set(two), (what, one, two)
    return user


def verdicts(box, after=0):
    response = box.client.get(f"{box.path}/egress/log?after={after}&limit=256")
    assert response.status == 200, response
    return response.json()["verdicts"]


def last_id(box):
    return max((each["id"] for each in verdicts(box)), default=0)


def reason(box, after, **want):
    """Waits for a verdict with these fields."""
    def look():
        return [each for each in verdicts(box, after) if all(each[key] == value for key, value in want.items())]

    return paddock.until(look, f"a verdict {want} among {verdicts(box, after)}")[0]


def run_aside(box, code):
    """Runs a script in the background; returns when it has called opened()."""
    box.remove("/tmp/opened")
    code = 'def opened():\n    open("/tmp/opened", "w").close()\n' + code
    helper = paddock.Background(box.with_client(box.client.daemon.client()).exec, ["/usr/bin/python3", "-c", code], timeout_ms=paddock.ms(60000))
    paddock.until(lambda: not helper.is_alive() or box.read("/tmp/opened").status == 200, "the script has begun", 30)
    return helper


# ---- what is allowed ------------------------------------------------------


def test_nothing_without_a_rule(out, net):
    give(out)
    tries = [["http", net.host(10), 80, "a.test"], ["tls", net.host(10), 443, "a.test"], ["tcp", net.host(10), ECHO_PORT],
             ["http", net.host6, 80, f"[{net.host6}]"]]
    for result in outside(*tries):
        worked(result)
    net.seen(), net.questions()
    for result in both(out, *tries, ["names", "a.test"], ["proxied", "a.test", 80], ["socks", "a.test", 80]):
        assert "no" in result, result
    assert net.seen() == [] and net.questions() == []


def test_named_hosts(out, net):
    give(out, allow("a.test"), allow("six.test"))
    results = both(out, ["names", "a.test"], ["verified", "a.test", 443, net.authority.read_text()], ["http", "a.test", 80, "a.test", "/x?y=z"],
                   ["http", "six.test", 80, "six.test"], ["tls", "six.test", 8443, "six.test"], ["split_hello", net.host(10), 443, "a.test"],
                   ["proxied", "a.test", 443, "a.test"], ["proxied", "a.test", 80], ["socks", "a.test", 80],
                   ["through", "http://a.test/p", ], ["through", "https://a.test/q"])
    assert worked(results[0]) == [net.host(10)]
    assert worked(results[1])["sni"] == "a.test"
    plain = worked(results[2])
    assert (plain["path"], plain["host"], plain["address"]) == ("/x?y=z", "a.test", net.host(10))
    assert worked(results[3])["address"] == net.host6
    assert worked(results[4])["sni"] == "six.test"
    assert worked(results[5]) == "16"
    for result in results[6:]:
        assert worked(result)["host"] == "a.test"


def test_a_proxy_is_a_convenience(out, net):
    give(out, allow("a.test"))
    proxy = "http://127.0.0.1:15004"
    code = f"""
import json, os, sys, urllib.request
sys.argv[1:] = ["[]"]
{PROBE}
print(json.dumps([through("http://a.test/p", http="{proxy}"), through("https://a.test/q", https="{proxy}")]))
"""
    output = out.python(code)
    assert output.exit_code == 0, output
    one, two = json.loads(output.out.splitlines()[-1])
    assert one["path"] == "/p" and two["path"] == "/q"
    assert not [name for name in one["headers"] if name.lower().startswith("proxy")]


def test_addresses_ports_and_protocols(out, net):
    give(out, allow(cidr=f"{net.host(11)}/32", ports=[80]), allow("a.test", protocol="tls", ports=[443]),
         allow("b.test", ports=[BANNER_PORT]), allow("evil.test", protocol="tcp", ports=[BANNER_PORT]))
    after = last_id(out)
    results = both(out, ["http", net.host(11), 80, net.host(11)], ["http", net.host(11), 8080, net.host(11)],
                   ["tls", "a.test", 443, "a.test"], ["tls", "a.test", 8443, "a.test"], ["http", "a.test", 443, "a.test"],
                   ["banner", "b.test", BANNER_PORT], ["banner", "evil.test", BANNER_PORT],
                   ["banner_then_tls", "b.test", BANNER_PORT, "other.test"])
    assert worked(results[0])["address"] == net.host(11)
    assert "no" in results[1] and "no" in results[3] and "no" in results[4] and "no" in results[7], results
    assert worked(results[2])["port"] == 443
    assert worked(results[5])["text"].startswith("SSH-") and worked(results[6])["echo"] == "more\n"
    assert reason(out, after, verdict="deny", address=net.host(11), port=8080)["reason"] == "no_rule"
    assert reason(out, after, verdict="allow", host="a.test", port=443)["protocol"] == "tls"
    assert reason(out, after, verdict="deny", host="b.test", port=BANNER_PORT)["reason"] == "mismatch"


def test_requests_by_method_and_path(out, net):
    give(out, {"action": "deny", "host": "a.test", "paths": ["/api/admin"]}, allow("a.test", methods=["GET"], paths=["/api"]))
    after = last_id(out)
    pair = "GET /api/1 HTTP/1.1\r\nHost: a.test\r\n\r\nPOST /api/2 HTTP/1.1\r\nHost: a.test\r\nContent-Length: 0\r\n\r\n"
    results = both(out, ["http", "a.test", 80, "a.test", "/api/x"], ["http", "a.test", 80, "a.test", "/api", "POST"],
                   ["http", "a.test", 80, "a.test", "/other"], ["http", "a.test", 80, "a.test", "/api/admin/x"],
                   ["http", "a.test", 80, "a.test", "/api/%2e%2e/other"], ["tls", "a.test", 443, "a.test"], ["raw", "a.test", 80, pair])
    assert worked(results[0])["path"] == "/api/x"
    assert all("no" in each for each in results[1:6]), results
    assert worked(results[6]).count("HTTP/1.1 200") == 1 and "HTTP/1.1 403" in worked(results[6])
    assert reason(out, after, verdict="deny", method="POST", path="/api/2")["host"] == "a.test"
    assert not [each for each in net.seen() if each.get("method") == "POST" or each.get("path") == "/other"]


def test_upgrade_passes(out, net):
    give(out, allow("a.test"))
    ask = "GET /ws HTTP/1.1\r\nHost: a.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
    code = PROBE.replace('if __name__ == "__main__":', "if False:") + f"""
c = connect("a.test", 80)
assert exchange(c, {ask!r}.encode()).startswith(b"HTTP/1.1 101")
for size in (1, 70000, 5):
    data = os.urandom(size)
    got = b""
    c.sendall(data)
    while len(got) < size:
        got += c.recv(65536)
    assert got == data
print("fine")
"""
    assert out.python(code).out == b"fine\n"


# ---- what is not ----------------------------------------------------------


def host_header(host, more=""):
    return f"GET /h HTTP/1.1\r\nHost: {host}\r\n{more}\r\n"


def smuggled(head):
    return f"POST /s HTTP/1.1\r\nHost: a.test\r\n{head}"


# name -> (attempt in the box, its control on the host, the reason in the log or None)
BYPASSES = {
    "another host": lambda n: (["tls", n.host(66), 443, "evil.test"], None, "no_rule"),
    "its address": lambda n: (["http", n.host(66), 80, n.host(66)], None, "no_rule"),
    "SNI of an allowed name to another address": lambda n: (["tls", n.host(66), 443, "a.test"], None, "mismatch"),
    "another SNI to an allowed address": lambda n: (["tls", n.host(10), 443, "evil.test", "evil.test"], None, "no_rule"),
    "no SNI": lambda n: (["tls", n.host(10), 443, None, "evil.test"], None, "no_name"),
    "encrypted ClientHello": lambda n: (["ech", n.host(10), 443, "a.test"], None, "ech"),
    "CONNECT, then an encrypted ClientHello": lambda n: (["ech", "a.test", 443, "a.test", True], ["ech", n.host(10), 443, "a.test"], "ech"),
    "CONNECT, then one with another SNI": lambda n: (["ech", "a.test", 443, "evil.test", True], ["ech", n.host(10), 443, "evil.test"], "mismatch"),
    "Host of another": lambda n: (["http", n.host(10), 80, "evil.test"], None, "no_rule"),
    "Host of an allowed name to another address": lambda n: (["http", n.host(66), 80, "a.test"], None, "mismatch"),
    "allowed name, other inner Host": lambda n: (["proxied", "a.test", 80, None, "evil.test"], ["http", n.host(10), 80, "evil.test"], "mismatch"),
    "CONNECT, then another SNI": lambda n: (["proxied", "a.test", 443, "evil.test", "evil.test"], ["tls", n.host(10), 443, "evil.test"], "mismatch"),
    "CONNECT, then no SNI": lambda n: (["proxied", "a.test", 443, "", "a.test"], ["tls", n.host(10), 443, None], "no_name"),
    "CONNECT elsewhere": lambda n: (["proxied", "evil.test", 443, "evil.test"], ["tls", n.host(66), 443, "evil.test"], "no_rule"),
    "CONNECT to an address": lambda n: (["proxied", n.host(66), 443, "a.test"], ["tls", n.host(66), 443, "a.test"], "mismatch"),
    "absolute-form elsewhere": lambda n: (["through", "http://evil.test/", ], ["http", n.host(66), 80, "evil.test"], None),
    "SOCKS elsewhere": lambda n: (["socks", "evil.test", 80], ["http", n.host(66), 80, "evil.test"], "no_rule"),
    "SOCKS to an address": lambda n: (["socks", n.host(66), 80, None, 1], ["http", n.host(66), 80, n.host(66)], "no_rule"),
    "SOCKS with a NUL": lambda n: (["socks", "evil.test\0.a.test", 80], ["http", n.host(66), 80, "evil.test"], "malformed"),
    "raw bytes": lambda n: (["tcp", n.host(66), ECHO_PORT], None, "no_rule"),
    "the DNS port over TCP": lambda n: (["tcp", n.host(66), 53, "\0\5hello"], None, None),
    "DNS over TLS": lambda n: (["tls", n.host(66), 8443, "evil.test"], None, "no_rule"),
    "QUIC": lambda n: (["udp", n.host(10), UDP_PORT], None, None),
    "private address": lambda n: (["http", n.private, 80, n.private], None, "no_rule"),
    "shared address": lambda n: (["http", n.shared, 80, n.shared], None, "no_rule"),
    "link-local address": lambda n: (["http", n.link_local, 80, n.link_local], None, "no_rule"),
    "mapped address": lambda n: (["http", f"::ffff:{n.private}", 80, n.private], None, "no_rule"),
    "IPv6": lambda n: (["http", n.host6, 80, "a.test"], None, "mismatch"),
}


@pytest.fixture(scope="module")
def tried(out, net):
    """All of them at once, as user and as root, and their controls."""
    give(out, allow("a.test"), allow("*.b.test"))
    cases = {name: make(net) for name, make in BYPASSES.items()}
    controls = outside(*[control or attempt for attempt, control, _ in cases.values()])
    net.seen()
    after = last_id(out)
    results = {user: inside(out, *[attempt for attempt, _, _ in cases.values()], user=user) for user in ("user", "root")}
    # An allowed name is connected before its first bytes are judged: what counts is that none of them come through.
    reached = [each for each in net.seen() if "tls_error" not in each]
    return dict(zip(cases, controls)), {user: dict(zip(cases, each)) for user, each in results.items()}, reached, after


@pytest.mark.parametrize("name", BYPASSES)
def test_bypass(name, tried, out, net):
    controls, results, reached, after = tried
    worked(controls[name])
    assert "no" in results["user"][name] and "no" in results["root"][name], results
    why = BYPASSES[name](net)[2]
    if why:
        reason(out, after, reason=why)


def test_nothing_reached_the_servers(tried):
    _, _, reached, _ = tried
    assert reached == []


def test_requests_that_can_be_read_in_two_ways(out, net):
    give(out, allow("a.test"))
    bad = [smuggled("Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /no HTTP/1.1\r\nHost: a.test\r\n\r\n"),
           smuggled("Content-Length: 0\r\nContent-Length: 5\r\n\r\nhello"), smuggled("Transfer-Encoding: xchunked\r\n\r\n"),
           smuggled("Content-Length : 5\r\n\r\nhello"), "GET /s HTTP/1.1\nHost: a.test\n\n", host_header("a.test", "Host: evil.test\r\n"),
           "GET http://evil.test/s HTTP/1.1\r\nHost: a.test\r\n\r\n", host_header("a.test:81"),
           host_header("a.test", "X: a\r\n b\r\n"), host_header("a.test@evil.test")]
    net.seen()
    after = last_id(out)
    for text, result in zip(bad, both(out, *[["raw", net.host(10), 80, text] for text in bad])):
        assert "no" in result or " 40" in result["ok"][:20] or " 50" in result["ok"][:20], (text, result)
    assert [each for each in net.seen() if "method" in each] == []
    assert reason(out, after, reason="malformed")
    # A second request for another host on the connection of an allowed one.
    pair = host_header("a.test") + host_header("evil.test", "Connection: close\r\n")
    assert worked(outside(["raw", net.host(10), 80, pair])[0]).count("HTTP/1.1 200") == 2
    text = worked(both(out, ["raw", net.host(10), 80, pair])[0])
    assert text.count("HTTP/1.1 200") == 1 and "HTTP/1.1 403" in text


@pytest.mark.parametrize("name", ["in.test", "shared.test", "meta.test", "loop.test", "own.test"])
def test_names_that_lead_inside(name, out, net, gated):
    """By rebinding, or because somebody's zone says so."""
    where = {"in.test": net.private, "shared.test": net.shared, "meta.test": net.link_local, "own.test": net.gateway}.get(name)
    port = gated.port if name in ("loop.test", "own.test") else 80
    give(out, default="allow")
    if where and name != "own.test":
        worked(outside(["http", where, 80, name])[0])
    after = last_id(out)
    attempts = [["names", name], ["proxied", name, port], ["socks", name, port]]
    if where:
        attempts += [["http", where, port, name], ["http", where, port, where]]
    for result in both(out, *attempts):
        assert "no" in result, result
    assert reason(out, after, verdict="deny", reason="address", host=name)
    # A rule that names the address opens it, for an admin.
    if name == "in.test":
        give(out, allow("in.test", cidr=f"{net.private}/32"))
        for result in both(out, ["names", name], ["proxied", name, 80], ["http", net.private, 80, name]):
            worked(result)


def test_other_spellings_of_addresses(out, net):
    a, b, c, d = (int(part) for part in net.private.split("."))
    number = (a << 24) + (b << 16) + (c << 8) + d
    spellings = [str(number), hex(number), f"0{a:o}.{b}.{c}.{d}", f"{a}.{(b << 16) + (c << 8) + d}", f"{hex(a)}.{b}.{c}.{d}"]
    for each in spellings:  # the control: outside they are that address
        assert worked(outside(["http", each, 80, net.private])[0])["address"] == net.private
    sixes = [f"[::ffff:{net.private}]", f"[64:ff9b::{a:02x}{b:02x}:{c:02x}{d:02x}]", f"[2002:{a:02x}{b:02x}:{c:02x}{d:02x}::1]", f"[::{net.private}]"]
    give(out, default="allow")
    for result in both(out, *[["proxied", each, 80] for each in spellings + sixes], *[["socks", each, 80] for each in spellings],
                       *[["http", each.strip("[]"), 80, "a.test"] for each in sixes]):
        assert "no" in result, result


def test_rebinding_after_the_check(out, net):
    net.set("moving.test", net.host(20))
    give(out, allow("moving.test"))
    results = inside(out, ["names", "moving.test"], ["http", net.host(20), 80, "moving.test"])
    assert worked(results[0]) == [net.host(20)]
    net.set("moving.test", net.private)
    results = both(out, ["http", net.private, 80, "moving.test"], ["tls", net.private, 443, "moving.test"], ["http", net.host(20), 80, "moving.test"])
    assert "no" in results[0] and "no" in results[1]
    assert worked(results[2])["address"] == net.host(20)  # what it was told holds


def test_redirects_are_judged_again(out, net):
    give(out, allow("a.test"))
    code = PROBE.replace('if __name__ == "__main__":', "if False:") + f"""
import urllib.request, urllib.error
ask = urllib.request.Request("http://a.test/moved", headers={{"X-To": "http://{net.private}/secret"}})
try:
    print(urllib.request.urlopen(ask, timeout=5).read())
except OSError as error:
    print("refused", error)
"""
    assert out.python(code).out.startswith(b"refused")
    done = subprocess.run(["curl", "-sL", "-m", "5", "-H", f"X-To: http://{net.private}/secret", f"http://{net.host(10)}/moved"],
                          capture_output=True, check=True)
    assert json.loads(done.stdout)["address"] == net.private


def test_questions_carry_nothing_out(out, net):
    give(out, allow("a.test"), allow("*.b.test"))
    secret = "kwqgzlxbnrg"
    tunnel = [["dns", net.host(53), f"{secret}.evil.test"], ["dns", net.host(53), "evil.test", 16]]
    assert [worked(each) for each in outside(*tunnel)]
    assert (f"{secret}.evil.test", 1) in net.questions()
    results = both(out, *tunnel, ["dns", "8.8.8.8", f"{secret}.evil.test"], ["dns", "127.0.0.1", f"{secret}.evil.test"],
                   ["dns", net.host(53), f"{secret}.evil.test", 1, True], ["dns", net.host(53), "x.b.test", 16],
                   ["dns", net.host(53), "a.test", 28], ["dns", net.host(53), "a.test"], ["dns", net.host(53), "a.test", 1, True])
    codes = [worked(each) for each in results]
    assert codes == [[3, 0]] * 5 + [[0, 0], [0, 0], [0, 1], [0, 1]]
    asked = net.questions()
    assert not [name for name, _ in asked if secret in name or "evil" in name], asked
    assert not [name for name, kind in asked if kind not in (1, 28)], asked


def test_any_name_server_answers(out, net):
    """From the address that was asked (the probe looks at it). TCP of loopback is the box's own."""
    give(out, allow("a.test"))
    elsewhere = ["8.8.8.8", "192.168.1.1", "2001:db8::53", net.host6]
    asked = [["dns", server, "a.test"] for server in ("127.0.0.1", "127.0.0.53", "::1", *elsewhere)]
    asked += [["dns", server, "a.test", 1, True] for server in elsewhere]
    for what, result in zip(asked, both(out, *asked)):
        assert worked(result) == [0, 1], what


def test_questions_are_limited(asker, net):
    give(asker, allow("*.b.test"))
    net.questions()
    code = PROBE.replace('if __name__ == "__main__":', "if False:") + """
s, codes = socket.socket(socket.AF_INET, socket.SOCK_DGRAM), []
s.settimeout(TIMEOUT)
for i in range(600):
    name = b"n%d" % i
    s.sendto(b"\\7\\7\\1\\0\\0\\1\\0\\0\\0\\0\\0\\0" + bytes([len(name)]) + name + b"\\1b\\4test\\0\\0\\1\\0\\1", ("8.8.8.8", 53))
    if i % 50 == 49:
        codes += [s.recv(512)[3] & 15 for _ in range(50)]
print(json.dumps([codes.count(5), codes.count(3)]))
"""
    output = asker.python(code)
    assert output.exit_code == 0, output
    refused, unknown = json.loads(output.out)
    assert refused > 0 and refused + unknown == 600
    assert len({name for name, _ in net.questions()}) <= unknown


def test_icmp(out, net):
    worked(outside(["ping", net.host(10), "SOCK_RAW"])[0])
    give(out, default="allow")
    for result in both(out, ["ping", net.host(10), "SOCK_RAW"], ["ping", net.host(10), "SOCK_DGRAM"]):
        assert "PermissionError" in result["no"], result


def test_a_bad_token_takes_away(out, net):
    give(out, allow("a.test"))
    after = last_id(out)
    for header in ("Basic c2FuZGJveDpqd3RfYS5iLmM=", "Basic !", "Bearer x"):
        extra = f"Proxy-Authorization: {header}\r\n"
        assert "407" in both(out, ["proxied", "a.test", 80, None, None, extra])[0]["no"]
        text = worked(both(out, ["raw", "127.0.0.1", 15004, f"GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\n{extra}\r\n"])[0])
        assert text.startswith("HTTP/1.1 407") and "the token is not valid" in text
    assert reason(out, after, reason="token", host="a.test")


# ---- limits, change, failure ----------------------------------------------


def test_limits(out, net):
    give(out, allow(cidr=f"{net.host(10)}/32"), connections=2)
    code = PROBE.replace('if __name__ == "__main__":', "if False:")
    flows = code + f"""
held, good = [], 0
for _ in range(4):
    try:
        held.append(connect("{net.host(10)}", {ECHO_PORT}))
        good += exchange(held[-1], b"x") == b"x"
    except OSError:
        pass
print(good)
"""
    assert out.python(flows).out == b"2\n"
    give(out, allow(cidr=f"{net.host(10)}/32"), bytes_per_second=200000)
    speed = code + f"""
c = connect("{net.host(10)}", {SINK_PORT})
begin = time.monotonic()
c.sendall(b"x" * 600000); c.shutdown(1)
print(c.recv(20) == b"600000", time.monotonic() - begin)
"""
    fine, took = out.python(speed).text.split()
    assert fine == "True" and float(took) > 1.2
    after = last_id(out)
    give(out, allow(cidr=f"{net.host(10)}/32"), bytes=1)
    assert "no" in inside(out, ["tcp", net.host(10), ECHO_PORT])[0]
    assert reason(out, after, reason="limit")


def test_change_at_once(out, net):
    give(out, allow("a.test"))
    code = PROBE.replace('if __name__ == "__main__":', "if False:") + f"""
c = connect("a.test", {ECHO_PORT})
assert exchange(c, b"one") == b"one"
opened()
try:
    while True:
        assert exchange(c, b"x") == b"x"
        time.sleep(0.02)
except OSError:
    print("cut")
"""
    helper = run_aside(out, code)
    give(out, allow("b.test"))
    assert "no" in inside(out, ["tcp", net.host(10), ECHO_PORT])[0]
    assert helper.is_alive()  # the open one goes on
    give(out, allow("b.test"), query="?open=close")
    assert helper.result().out == b"cut\n"


def test_the_gate_dies_in_flight(out, net, gated):
    give(out, allow(cidr=f"{net.host(10)}/32"))
    code = PROBE.replace('if __name__ == "__main__":', "if False:") + f"""
c = connect("{net.host(10)}", {ECHO_PORT})
assert exchange(c, b"one") == b"one"
opened()
try:
    print(c.recv(1))
except OSError as error:
    print("cut")
end = time.monotonic() + 20
while time.monotonic() < end:
    try:
        assert tcp("{net.host(10)}", {ECHO_PORT}) == "hello"
        print("again")
        break
    except OSError:
        time.sleep(0.05)
"""
    helper = run_aside(out, code)
    pid = gate_pid(gated)
    gated.api_kills += 1  # the log will say that it was started again
    paddock.kill(pid)
    assert helper.result().out in (b"cut\nagain\n", b"b''\nagain\n"), helper.result()
    assert gate_pid(gated) != pid
    # A box whose policy came with the new gate is held to it.
    assert "no" in inside(out, ["tcp", net.host(66), ECHO_PORT])[0]


def test_a_gate_without_policies_serves_nobody(out, net, gated):
    """A new gate has the boxes' sockets before the api has told it what they may: until then nothing passes."""
    give(out, allow(cidr=f"{net.host(10)}/32"))
    code = PROBE.replace('if __name__ == "__main__":', "if False:") + f"""
out, end = [(0, 0, tcp("{net.host(10)}", {ECHO_PORT}))], time.monotonic() + 60
opened()
while time.monotonic() < end and not os.path.exists("/workspace/enough"):
    begun = time.time()
    try:
        said = tcp("{net.host(10)}", {ECHO_PORT})
    except OSError as error:
        said = type(error).__name__
    out.append((begun, time.time(), said))
    open("/workspace/tries", "ab").write(b".")
    time.sleep(0.01)
print(json.dumps(out))
"""
    out.exec(["rm", "-f", "/workspace/enough", "/workspace/tries"])
    helper = run_aside(out, code)
    api, pid, files = gated.api_pid(), gate_pid(gated), Path(f"/proc/{out.pid1()}/root/workspace")
    paddock.until(lambda: (files / "tries").exists(), "it tries")
    gated.api_kills += 1
    os.kill(api, signal.SIGSTOP)
    try:
        paddock.kill(pid)
        paddock.until(lambda: gate_pid(gated) not in (None, pid), "another gate")
        began = time.time()
        net.seen()
        tried = (files / "tries").stat().st_size  # the api, which stands still, cannot be asked
        paddock.until(lambda: (files / "tries").stat().st_size > tried + 4, "it tries again and again")
        reached, ended = net.seen(), time.time()
    finally:
        os.kill(api, signal.SIGCONT)
    paddock.until(lambda: "ok" in inside(out, ["tcp", net.host(10), ECHO_PORT])[0], "the way out is back", 30)
    out.put("/workspace/enough", b"")
    seen = json.loads(helper.result().out)
    assert seen[0][2] == "hello" == seen[-1][2], "the control: with a policy it passes, before and after"
    # What began before may have passed by the old gate and be noted late.
    between = [said for first, last, said in seen if began < first and last < ended]
    assert len(between) > 3 and "hello" not in between, seen
    assert reached == [], "not even a connection was made"


def test_used_bytes_outlive_the_gate(client, net, gated):
    """Otherwise whoever could make the gate end would have begun anew."""
    box = client.create()
    give(box, allow(cidr=f"{net.host(10)}/32"), bytes=10_000_000)
    code = PROBE.replace('if __name__ == "__main__":', "if False:") + f"""
size = int(sys.argv[1])
try:
    c = connect("{net.host(10)}", {SINK_PORT})
    c.sendall(b"x" * size); c.shutdown(1)
    print(c.recv(20) == b"%d" % size)
except OSError:
    print("cut")
"""
    assert box.python(code, "6000000").out == b"True\n"
    pid = gate_pid(gated)
    gated.api_kills += 1
    paddock.kill(pid)
    paddock.until(lambda: gate_pid(gated) != pid and "ok" in inside(box, ["tcp", net.host(10), ECHO_PORT])[0], "the way out is back", 30)
    after = last_id(box)
    assert box.python(code, "7000000").out in (b"cut\n", b"False\n")
    assert reason(box, after, reason="limit")
    give(box, allow(cidr=f"{net.host(10)}/32"), bytes=100_000_000)  # the control
    assert box.python(code, "7000000").out == b"True\n"
    assert client.post(box.path + "/stop", {}).status == 200 and client.post(box.path + "/start", {}).status == 200
    worked(inside(box, ["tcp", net.host(10), ECHO_PORT])[0])
    give(box, allow(cidr=f"{net.host(10)}/32"), bytes=10_000_000)
    assert "no" in inside(box, ["tcp", net.host(10), ECHO_PORT])[0]  # a stop is no new beginning, either
    box.delete()


def test_restarts(out, net, gated):
    give(out, allow("a.test"))
    worked(inside(out, ["tcp", "a.test", ECHO_PORT])[0])
    gate = gate_pid(gated)
    gated.kill_api()
    assert gate_pid(gated) == gate
    worked(inside(out, ["tcp", "a.test", ECHO_PORT])[0])
    gated.restart()
    paddock.until(lambda: "ok" in inside(out, ["tcp", "a.test", ECHO_PORT])[0], "the way out is back", 30)
    assert "no" in inside(out, ["tcp", net.host(66), ECHO_PORT])[0]


def test_many_flows(out, net, gated):
    """A thousand at the same time, bytes both ways over each; then again after they were idle."""
    give(out, allow("a.test"))
    old = gate_pid(gated)
    gated.api_kills += 1
    paddock.kill(old)  # a new one: nothing that others left behind is taken for room
    paddock.until(lambda: gate_pid(gated) != old and "ok" in inside(out, ["tcp", "a.test", ECHO_PORT])[0], "the way out is back", 30)
    pid = gate_pid(gated)
    before, fds = paddock.rss_kb(pid), len(os.listdir(f"/proc/{pid}/fd"))
    out.remove("/tmp/go")
    code = PROBE.replace('if __name__ == "__main__":', "if False:") + f"""
held = [connect("a.test", {ECHO_PORT}) for _ in range(1000)]
def both_ways(word):
    for i, each in enumerate(held):
        each.sendall(b"%6d%s" % (i, word) * 300)
    for i, each in enumerate(held):
        got = b""
        while len(got) < 300 * (6 + len(word)):
            got += each.recv(65536)
        assert got == b"%6d%s" % (i, word) * 300
both_ways(b"one")
opened()
while not os.path.exists("/tmp/go"):
    time.sleep(0.02)
both_ways(b"two")
print("all")
"""
    helper = run_aside(out, code)
    assert helper.is_alive(), helper.result()
    # Two sockets each, and of the gate's own memory 64 KiB at most (the kernel's for sockets is not in it).
    assert len(os.listdir(f"/proc/{pid}/fd")) >= fds + 2000
    assert paddock.rss_kb(pid) - before < 1000 * 64 and paddock.rss_kb(pid, "VmHWM") - before < 1000 * 64
    assert out.check("touch /tmp/go") == ""
    assert helper.result().out == b"all\n", helper.result()
    paddock.until(lambda: len(os.listdir(f"/proc/{pid}/fd")) < fds + 100, "the gate has closed them")
    assert gate_pid(gated) == pid


def test_hostile_servers(out, net):
    """One that never answers keeps nobody else waiting; one that is not there is said to be so."""
    give(out, allow("a.test"), allow(cidr=f"{net.host(10)}/32"))
    after = last_id(out)
    silent = threading.Thread(target=inside, args=(out.with_client(out.client.daemon.client()), ["tcp", net.host(10), SILENT_PORT, "x", 3]))
    silent.start()
    results = inside(out, ["http", "a.test", 80, "a.test"], ["tcp", net.host(10), 1], ["proxied", "a.test", 1], ["proxied", "nowhere.test", 80])
    assert worked(results[0])["host"] == "a.test"
    assert "no" in results[1] and "502" in results[2]["no"] and "403" in results[3]["no"], results
    assert reason(out, after, reason="unreachable", port=1)
    # Who speaks HTTP is told whose fault it is.
    answers = inside(out, ["raw", net.host(10), 1, "GET / HTTP/1.1\r\nHost: a.test:1\r\n\r\n"], ["raw", net.host(11), 80, "GET / HTTP/1.1\r\nHost: a.test\r\n\r\n"])
    assert worked(answers[0]).startswith("HTTP/1.1 502") and "cannot be reached" in worked(answers[0])
    assert worked(answers[1]).startswith("HTTP/1.1 403") and "does not fit" in worked(answers[1])
    silent.join()


def test_upstream_proxy(own_daemon, net):
    it = own_daemon(environment={"PADDOCK_GATE_DNS": net.dns, "PADDOCK_GATE_PROXY_VARIABLES": "true",
                                 "PADDOCK_GATE_UPSTREAM_PROXY": f"http://{net.host(30)}:{PROXY_PORT}"}).start()
    client = it.client()
    box = client.create()
    give(box, allow("a.test"))
    net.seen()
    results = both(box, ["http", "a.test", 80, "a.test"], ["tls", "a.test", 443, "a.test"], ["http", net.host(66), 80, "evil.test"])
    assert worked(results[0])["host"] == "a.test" and worked(results[1])["sni"] == "a.test" and "no" in results[2]
    seen = net.seen()
    assert {each["proxied"] for each in seen if "proxied" in each} == {f"{net.host(10)}:80", f"{net.host(10)}:443"}
    # Programs that heed the variables come by the box's proxy, also with a name that DNS would not tell them.
    assert json.loads(box.check("curl -sS http://a.test/v"))["path"] == "/v"
    assert box.check("curl -sS http://evil.test/") == "Host not allowed: evil.test\n"
    reason(box, 0, via="proxy", path="/v")
    assert box.check("curl -s http://127.0.0.1:9/; echo $?") == "7\n"
    box.delete()
    client.close()


def test_the_gate_has_nothing(gated):
    pid = gate_pid(gated)
    status = paddock.proc_status(pid)
    assert {status[name] for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")} == {"0" * 16}
    assert status["Seccomp"] == "2" and status["NoNewPrivs"] == "1" and "0" not in status["Uid"].split()
    kinds = {os.readlink(f"/proc/{pid}/fd/{fd}").split(":")[0] for fd in os.listdir(f"/proc/{pid}/fd")}
    assert kinds <= {"socket", "anon_inode", "/dev/null", "pipe", str(gated.log_file)}, kinds
