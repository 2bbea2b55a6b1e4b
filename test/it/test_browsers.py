"""Browsers in boxes, and hellos that hide a name.

Chromium puts into every ClientHello what an encrypted one looks like (GREASE). The gate cannot
tell one from the other and intercepts what the rules allow by the name that can be read; with the
policies that a box gets for its browsers Chromium does not send it in the first place.
"""

import json
import shutil

import pytest

import paddock
from internet import FIRST_PORT, SILENT_PORT, internet
from test_gate import allow, give, inside, last_id, outside, reason, verdicts, worked
from test_secrets import kill_vault, put

MANAGED = "/etc/chromium/policies/managed"
PAGE = "<p id=\"p\">run at site.test</p>"


@pytest.fixture(scope="module")
def net(workdir):
    with internet(workdir / "world-browsers", ("site.test", "evil.test", "api.test")) as it:
        yield it


@pytest.fixture(scope="module")
def site(daemon_factory, net):
    it = daemon_factory("browsers", environment=net.environment).start()
    yield it
    it.finish()


@pytest.fixture(scope="module")
def client(site):
    it = site.client()
    yield it
    it.close()


@pytest.fixture(scope="module")
def box(client):
    it = client.create(egress={"rules": [allow("site.test")]}, limits={"memory_mb": 1024, "pids": 512})
    yield it
    it.delete()


@pytest.fixture(scope="module")
def slow(site, client):
    """A request to a server that never says a word of TLS: begun first, and judged last."""
    assert put(client, "KEY", "a-key-of-some-length").status in (200, 201)
    it = site.client()
    made = client.create(egress={"rules": [allow("api.test", inject=[{"secret": "KEY", "header": "X-Key"}])]})
    yield paddock.Background(made.with_client(it).exec, ["curl", "-sS", "-m", "60", "-w", "%{http_code} %{time_total}", f"https://api.test:{SILENT_PORT}/"],
                             timeout_ms=90000)
    made.delete()
    it.close()


def browse(box, url, *flags):
    """What Chromium makes of a page, as it comes but for its own sandbox, which cannot be made within one."""
    assert shutil.which("chromium"), "scripts/deps test"
    return box.exec(["chromium", "--headless", "--no-sandbox", *flags, "--dump-dom", url], timeout_ms=60000,
                    env={"HOME": "/home/user"})


def tell_chromium(box, **policy):
    text = json.dumps(policy)
    box.check(f"mkdir -p {MANAGED} && printf %s '{text}' > {MANAGED}/zz-user.json", user="root")


def test_begin(slow):
    assert slow.is_alive()


def test_chromium_as_it_comes(box, net):
    """It knows that it is not to hide names, and its TLS passes untouched, to the server's own certificate."""
    authority = "".join(net.authority.read_text().splitlines()[1:-1])
    tell_chromium(box, CACertificates=[authority])
    net.seen()
    after = last_id(box)
    output = browse(box, "https://site.test/page")
    assert PAGE in output.text and "<title>A page</title>" in output.text, output
    assert "/page" in [each.get("path") for each in net.seen()]
    seen = verdicts(box, after)
    assert all(each["reason"] == "rule" and not each["path"] for each in seen if each["host"] == "site.test"), seen
    # and what is not allowed is not reached
    output = browse(box, "https://evil.test/page")
    assert "run at" not in output.text, output
    assert [each for each in net.seen() if "path" in each] == []


def test_chromium_that_hides(box, net):
    """With its own default: it is intercepted by the name that can be read, and trusts that."""
    tell_chromium(box, EncryptedClientHelloEnabled=True)
    give(box, allow("site.test", protocol="tls"))  # whose requests, once they are seen, are still TLS to it
    net.seen()
    after = last_id(box)
    output = browse(box, "https://site.test/page")
    assert PAGE in output.text and "<title>A page</title>" in output.text, output
    assert {each["sni"] for each in net.seen() if each.get("path") == "/page"} == {"site.test"}
    reason(box, after, verdict="allow", reason="ech", host="site.test", protocol="tls")
    reason(box, after, verdict="allow", reason="rule", host="site.test", path="/page")


def test_chromium_without_policies(box, net):
    """As its headless shell is, which reads none: it trusts what is in its user's database."""
    box.check(f"rm {MANAGED}/*.json", user="root")
    after = last_id(box)
    output = browse(box, "https://site.test/page")
    assert PAGE in output.text, output
    reason(box, after, verdict="allow", reason="ech", host="site.test")


def test_refused_by_wish(box, net, client):
    response = client.send_json("PUT", f"{box.path}/egress", {"rules": [allow("site.test")], "ech": "refuse"})
    assert response.status == 200 and response.json()["policy"]["ech"] == "refuse", response
    after = last_id(box)
    assert "no" in inside(box, ["ech", net.host(10), 443, "site.test"])[0]
    refusal = reason(box, after, verdict="deny", reason="ech")
    assert refusal["address"] == net.host(10) and refusal["would_allow"] == f"{net.host(10)}/32:443", refusal
    # rules that are added leave it
    response = client.send_json("POST", f"{box.path}/egress/rules", {"action": "allow", "targets": ["b.test"]})
    assert response.status == 200 and response.json()["policy"]["ech"] == "refuse", response


def first_bytes(net):
    """What has reached the server, as soon as it says so: who sent it has its answer before."""
    return paddock.until(lambda: [bytes.fromhex(each["first"]) for each in net.seen() if "first" in each], "it came")


def test_crafted_hello(box, net, client):
    """Whose inner part is for somebody else: the gate answers it, and nothing of it goes on."""
    give(box, allow("site.test"))
    authority = client.get("/v1/vault/ca.pem").body.decode()
    marker = "the inner hello is for evil.test"
    attempt = ["ech_issuer", net.host(10), FIRST_PORT, "site.test", authority, marker]
    # the control: as it is on the way without a gate
    sent = ["ech_send", net.host(10), FIRST_PORT, "site.test", marker]
    worked(outside(sent)[0])
    (seen,) = first_bytes(net)
    assert b"evil.test" in seen and b"\xfe\x0d" in seen
    after = last_id(box)
    for user in ("user", "root"):
        assert worked(inside(box, attempt, user=user)[0]) is True
        (seen,) = first_bytes(net)
        assert b"site.test" in seen and b"evil.test" not in seen and b"inner" not in seen
    reason(box, after, verdict="allow", reason="ech", host="site.test", port=FIRST_PORT)
    # to another's name it does not come at all
    after = last_id(box)
    # (it reads the gate's alert, in which there is no certificate)
    assert worked(inside(box, ["ech_issuer", net.host(11), FIRST_PORT, "evil.test", authority, marker])[0]) is False
    reason(box, after, verdict="deny", reason="no_rule", host="evil.test")
    assert [each for each in net.seen() if "first" in each] == []
    # where the rules ask for no name it goes through as it is
    give(box, allow(cidr=f"{net.host(10)}/32"))
    worked(inside(box, sent)[0])
    (seen,) = first_bytes(net)
    assert marker.encode() in seen


def test_in_time(client):
    """Nobody waits for it, and the first that runs finds it."""
    for _ in range(5):
        box = client.create(egress={"allow": ["site.test"]})
        assert "CERTIFICATE" in box.check("cat /run/paddock/ca.pem")
        box.delete()


def test_late_policy_and_files(client, net, site):
    """A box that was started before its policy has names; what a user has put there stays."""
    box = client.create()
    try:
        assert box.exec("ls /run/paddock /etc/chromium /etc/firefox").exit_code != 0
        box.check("mkdir -p /etc/firefox/policies ~/.pki && echo mine > /etc/firefox/policies/policies.json", user="root")
        give(box, allow("site.test"))
        authority = client.get("/v1/vault/ca.pem").body.decode()
        assert box.check("cat /run/paddock/ca.pem") == authority
        policy = json.loads(box.check(f"cat {MANAGED}/paddock.json"))
        assert policy == {"CACertificates": ["".join(authority.splitlines()[1:-1])], "EncryptedClientHelloEnabled": False}
        assert box.check("cat /etc/firefox/policies/policies.json") == "mine\n"
        assert box.check("ls -A ~/.pki", user="root") == ""
        assert box.check("head -c 15 ~/.pki/nssdb/cert9.db; stat -c ' %U %a' ~/.pki ~/.pki/nssdb/cert9.db") == "SQLite format 3 user 700\n user 600\n"
        assert json.loads(box.check("cat /run/paddock/firefox.json"))["policies"]["Certificates"] == {"Install": ["/run/paddock/ca.pem"]}
        # also when it has stopped between
        for verb in ("stop", "start"):
            assert client.post(f"{box.path}/{verb}", {}).status == 200
        assert box.check(f"cat /run/paddock/ca.pem {MANAGED}/paddock.json").startswith(authority)
    finally:
        box.delete()


def test_policy_of_the_tenant(client):
    box = client.create()
    try:
        assert client.send_json("PUT", "/v1/tenants/default/egress", {"allow": ["site.test"]}).status == 200
        paddock.until(lambda: box.exec("cat /run/paddock/ca.pem").exit_code == 0, "the box was told")
    finally:
        assert client.delete("/v1/tenants/default/egress").status in (200, 204)
        box.delete()


def test_without_a_vault(box, net, site):
    give(box, allow("site.test"))
    authority = net.authority.read_text()
    after = last_id(box)
    kill_vault(site)
    inside(box, ["ech_issuer", net.host(10), FIRST_PORT, "site.test", authority, "x"])
    paddock.until(lambda: [each for each in verdicts(box, after) if each["reason"] == "ech"], "a verdict")


def test_a_server_that_never_finishes_its_handshake(slow):
    output = slow.result(60)
    status, seconds = output.text.split()[-2:]
    assert status == "502" and "took too long" in output.text, output
    assert 9 < float(seconds) < 40, output
