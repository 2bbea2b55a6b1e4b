"""What boxes may reach: policies of boxes, images and tenants, sets, how they are kept, and that they
hold at the gate when they should. What the gate itself can do is shown elsewhere.
"""

import base64
import json
import subprocess
import time

import pytest

import paddock
from internet import ECHO_PORT, internet
from verdicts import last, log

SETS = {"inside": ["a.test", "*.b.test:8443"], "lan": ["10.1.0.0/16:5432"]}
NO_LIMITS = {"connections": 0, "connections_per_second": 0, "bytes_per_second": 0, "bytes": 0}
NOTHING = {"default": "deny", "rules": [], "limits": NO_LIMITS}


def policy(*rules, default="deny", **limits):
    return {"default": default, "rules": list(rules), "limits": {**NO_LIMITS, **limits}}


def allow(**rule):
    return {"action": "allow", **rule}


def deny(**rule):
    return {"action": "deny", **rule}


def put(client, path, document, query=""):
    return client.send_json("PUT", f"{path}/egress{query}", document)


def held(client, path):
    response = client.get(f"{path}/egress")
    assert response.status == 200, response
    return response.json()


@pytest.fixture
def tenant(api, tenant):
    """With a policy that is taken away at the end."""
    yield tenant
    assert api.delete(f"{tenant.path}/egress").status == 200


# ---- one box ----

def test_nothing_by_default(api, make_box):
    box = make_box()
    assert held(api, box.path) == {"source": "none", "policy": NOTHING, "sets": {}}


def test_given_when_made(api, make_box):
    box = make_box(egress={"allow": ["example.org:443"], "deny": ["*.example.org"], "limits": {"connections": 7}})
    want = policy(deny(host="*.example.org"), allow(host="example.org", ports=[443]), connections=7)
    assert held(api, box.path) == {"source": "sandbox", "policy": want, "sets": {}}


def test_put_and_take_away(api, make_box):
    box = make_box()
    want = policy(allow(host="a.test", protocol="http", methods=["GET", "HEAD"], paths=["/v1"]),
                  deny(cidr="192.0.2.0/24", ports=[25, "8000-8100"]),
                  allow(host="db.test", cidr="192.0.2.7/32"), default="allow", bytes_per_second=1000, bytes=5)
    response = put(api, box.path, want)
    assert response.status == 200 and response.json()["policy"] == want, response
    assert held(api, box.path) == response.json()
    # What was shown can be put again.
    assert put(api, box.path, held(api, box.path)["policy"], "?open=close").json() == response.json()
    gone = api.delete(f"{box.path}/egress")
    assert (gone.status, gone.json()["source"], gone.json()["policy"]) == (200, "none", NOTHING)


BAD = [
    ({"rules": [{"action": "allow"}]}, "rules[0]"),
    ({"rules": [allow(host="a.b"), allow(host="127.0.0.1")]}, "rules[1]: host"),
    ({"rules": [allow(cidr="10.0.0.1/8")]}, "rules[0]: cidr"),
    ({"rules": [allow(host="a.b", ports=[0])]}, "rules[0]: ports"),
    ({"rules": [allow(host="a.b", protocol="udp")]}, "rules[0]: protocol"),
    ({"rules": [allow(host="a.b", protocol="tcp", methods=["GET"])]}, "rules[0]: methods"),
    ({"rules": [allow(set="no-such-set")]}, "rules[0]: set"),
    ({"rules": [allow(host="a.b", nonsense=1)]}, "nonsense"),
    ({"allow": ["no-such-set"]}, "allow"),
    ({"deny": ["a..b"]}, "deny"),
    ({"default": "perhaps"}, "default"),
    ({"limits": {"connections": "many"}}, "limits.connections"),
    ({"nonsense": 1}, "nonsense"),
    ([], "object"),
    ({"allow": ["a.test"] * 257}, "allow"),
]


@pytest.mark.parametrize("document, names", BAD, ids=str)
def test_refused(api, box, document, names):
    before = held(api, box.path)
    response = put(api, box.path, document)
    assert (response.status, response.code()) == (400, "invalid_argument"), response
    assert names in response.json()["error"]["message"]
    made = api.try_create(egress=document)
    assert (made.status, made.code()) == (400, "invalid_argument")
    assert "egress" in made.json()["error"]["message"]
    assert held(api, box.path) == before


def test_bad_requests(api, box):
    assert put(api, box.path, {}, "?open=maybe").code() == "invalid_argument"
    assert put(api, "/v1/sandboxes/nobody", {}).code() == "not_found"
    assert api.get("/v1/sandboxes/nobody/egress").code() == "not_found"
    assert api.request("PUT", f"{box.path}/egress", b"{", {"content-type": "application/json"}).code() == "invalid_argument"
    for query in ("after=x", "limit=0", "limit=257", "verdict=maybe", "what=1"):
        assert api.get(f"{box.path}/egress/log?{query}").code() == "invalid_argument"


def test_rules_are_put_first(api, make_box):
    box = make_box(egress={"allow": ["one.test"]})

    def add(action, *targets):
        response = api.post(f"{box.path}/egress/rules", {"action": action, "targets": list(targets)})
        assert response.status == 200, response
        return response.json()["policy"]["rules"]

    assert add("allow", "two.test", "https://three.test/v1") == [
        allow(host="two.test"), allow(host="three.test", protocol="tls", ports=[443], paths=["/v1"]), allow(host="one.test")]
    # What is said anew is said once, by the newer.
    assert add("deny", "one.test", "one.test") == [
        deny(host="one.test"), allow(host="two.test"), allow(host="three.test", protocol="tls", ports=[443], paths=["/v1"])]
    for body in ({"action": "allow", "targets": []}, {"action": "perhaps", "targets": ["a.b"]}, {"targets": ["a.b"]},
                 {"action": "allow", "targets": ["a.b", "a..b"]}):
        assert api.post(f"{box.path}/egress/rules", body).code() == "invalid_argument"


def test_other_tenants_do_not_see_it(tenant, make_box):
    box = make_box(egress={"allow": ["a.test"]})
    assert tenant.get(f"{box.path}/egress").code() == "not_found"
    assert tenant.get(f"{box.path}/egress/log").code() == "not_found"
    assert put(tenant, box.path, {}).code() == "not_found"
    assert tenant.post(f"{box.path}/egress/rules", {"action": "allow", "targets": ["b.test"]}).code() == "not_found"


PRIVATE = ["10.0.0.0/8", "169.254.169.254", "127.0.0.1:80", "fd00::/8", "192.168.1.0/24"]


@pytest.mark.parametrize("target", PRIVATE)
def test_private_addresses_are_the_admin_s(api, tenant, target):
    box = tenant.create(egress={"deny": [target], "allow": ["192.0.2.0/24", "0.0.0.0/0"]})
    assert tenant.try_create(egress={"allow": [target]}).code() == "forbidden"
    assert put(tenant, box.path, {"allow": [target]}).code() == "forbidden"
    assert tenant.post(f"{box.path}/egress/rules", {"action": "allow", "targets": [target]}).code() == "forbidden"
    assert put(api, box.path, {"allow": [target]}).status == 200
    # What an admin opened stays open when its user adds something else, but is not theirs to set again.
    added = tenant.post(f"{box.path}/egress/rules", {"action": "allow", "targets": ["a.test"]})
    assert added.status == 200 and len(added.json()["policy"]["rules"]) == 2
    assert put(tenant, box.path, added.json()["policy"]).code() == "forbidden"


# ---- tenants ----

def test_tenant(api, tenant):
    box, own = tenant.create(), tenant.create(egress={"allow": ["own.test"]})
    assert held(api, box.path)["source"] == "none" and held(api, tenant.path)["source"] == "none"
    assert put(api, tenant.path, {"allow": ["a.test"]}).json() == held(api, tenant.path)
    assert held(api, box.path) == {"source": "tenant", "policy": policy(allow(host="a.test")), "sets": {}}
    assert held(api, own.path)["policy"] == policy(allow(host="own.test"))
    # A rule more makes it the box's own.
    tenant.post(f"{box.path}/egress/rules", {"action": "allow", "targets": ["b.test"]})
    assert held(api, box.path) == {"source": "sandbox", "policy": policy(allow(host="b.test"), allow(host="a.test")), "sets": {}}
    assert tenant.delete(f"{box.path}/egress").json()["source"] == "tenant"
    assert api.delete(f"{tenant.path}/egress").json()["source"] == "none"
    assert held(api, box.path)["source"] == "none"
    assert put(api, tenant.path, {"allow": ["a..b"]}).code() == "invalid_argument"
    assert api.get("/v1/tenants/nobody/egress").code() == "not_found"
    for method in ("GET", "DELETE"):
        assert tenant.request(method, f"{tenant.path}/egress").code() == "forbidden"
    assert put(tenant, tenant.path, {}).code() == "forbidden"


def test_fork_has_the_policy(api, make_box):
    box = make_box(egress={"allow": ["a.test"]})
    twins = api.post(f"{box.path}/fork", {"count": 2})
    assert twins.status == 201, twins
    for twin in twins.json()["sandboxes"]:
        path = f"/v1/sandboxes/{twin['id']}"
        assert held(api, path) == held(api, box.path)
        put(api, path, {})
        assert api.delete(path).status == 204
    assert held(api, box.path)["policy"] == policy(allow(host="a.test"))


# ---- the configuration, and restarts ----

@pytest.fixture
def configured(own_daemon, workdir):
    """A daemon with sets and policies of its own."""
    def make(egress, **options):
        path = workdir / f"egress-{time.monotonic_ns()}.yaml"
        path.write_text(json.dumps({"egress": egress, **options}))
        daemon = own_daemon(arguments=("--config", str(path)))
        daemon.config = path
        return daemon
    return make


def test_configuration(configured):
    egress = {"sets": SETS, "policy": {"allow": ["inside"]}, "images": {"machine": {"allow": ["lan"]}}, "refuse": ["c.test"],
              "private": "anyone"}
    daemon = configured(egress, pool={"machine": {"warm": 1}}).start()
    api = daemon.client()
    sets = api.get("/v1/egress/sets").json()["sets"]
    assert {name: sets[name] for name in SETS} == SETS and "github" in sets
    box = api.create()
    by_image = {"source": "image", "policy": policy(allow(set="lan")), "sets": {"lan": SETS["lan"]}}
    assert held(api, box.path) == by_image
    own = api.create(egress={"allow": ["inside", "10.0.0.0/8"]})
    want = {"source": "sandbox", "policy": policy(allow(set="inside"), allow(cidr="10.0.0.0/8")), "sets": {"inside": SETS["inside"]}}
    assert held(api, own.path) == want
    put(api, "/v1/tenants/default", {"deny": ["d.test"]})
    # All of it is there after the api died, and after the daemon was stopped.
    daemon.kill_api()
    api = daemon.client()
    assert held(api, box.path) == by_image and held(api, own.path) == want
    daemon.stop()
    daemon.config.write_text(json.dumps({"egress": egress}))  # without the pool, whose boxes would stay
    daemon.start()
    api = daemon.client()
    assert held(api, box.path) == by_image and held(api, own.path) == want
    assert held(api, "/v1/tenants/default")["policy"] == policy(deny(host="d.test"))


BAD_CONFIGURATION = [({"policy": {"allow": ["nowhere"]}}, "egress.policy"), ({"sets": {"x": ["y"]}}, "egress.sets"),
                     ({"images": {"machine": {"rules": [{}]}}}, "egress.images"), ({"refuse": ["a..b"]}, "egress.refuse"),
                     ({"private": "nobody"}, "egress.private"), ({"sets": {"X": []}}, "egress.sets")]


@pytest.mark.parametrize("egress, names", BAD_CONFIGURATION, ids=str)
def test_bad_configuration(workdir, egress, names):
    path = workdir / "egress-bad.yaml"
    path.write_text(json.dumps({"egress": egress}))
    result = subprocess.run([paddock.BIN / "paddock", "config", "check", "--config", path], capture_output=True, text=True,
                            env=paddock.clean_environment(), timeout=10)
    assert result.returncode == 1 and names in result.stderr, result


def test_boxes_have_the_files_that_sets_follow(make_box):
    """What says where packages come from, without what would say who asks."""
    box = make_box()
    for name in ("/etc/pip.conf", "/etc/npmrc"):
        try:
            text = open(name, "rb").read()
        except FileNotFoundError:
            continue
        response = box.read(name)
        secret = b"_auth" in text or b"_password" in text or b"@" in text
        assert response.status == (404 if secret else 200) and (secret or response.body == text), name


# ---- the command line ----

@pytest.fixture
def cli(daemon):
    def run(*arguments, code=0, **options):
        environment = paddock.clean_environment(PADDOCK_URL=daemon.url, PADDOCK_KEY_FILE=daemon.data_dir / "admin.key")
        result = subprocess.run([paddock.BIN / "paddock", *arguments], capture_output=True, text=True, env=environment, timeout=30,
                                **options)
        assert result.returncode == code, result
        return result.stdout if code == 0 else result.stderr
    return run


def test_command_line(api, make_box, cli):
    box = make_box()
    cli("egress", "allow", box.id, "a.test", "*.b.test:443")
    cli("egress", "deny", "--close", box.id, "c.test")
    want = policy(deny(host="c.test"), allow(host="a.test"), allow(host="*.b.test", ports=[443]))
    assert held(api, box.path)["policy"] == want
    assert json.loads(cli("egress", "show", box.id))["policy"] == want
    cli("egress", "set", box.id, "-", input=json.dumps({"allow": ["d.test"]}))
    assert held(api, box.path)["policy"] == policy(allow(host="d.test"))
    assert cli("egress", "log", box.id).split() == ["ID", "AT", "TIMES", "VERDICT", "REASON", "PROTOCOL", "WHAT", "WOULD_ALLOW"]
    cli("egress", "reset", box.id)
    assert held(api, box.path)["source"] == "none"
    assert "no-such-set" in cli("egress", "allow", box.id, "no-such-set", code=1)
    made = cli("create", "--allow", "a.test", "--allow", "192.0.2.0/24").strip()
    assert held(api, f"/v1/sandboxes/{made}")["policy"] == policy(allow(host="a.test"), allow(cidr="192.0.2.0/24"))
    assert api.delete(f"/v1/sandboxes/{made}").status == 204


# ---- in force ----

@pytest.fixture(scope="module")
def world(daemon_factory, workdir):
    """A daemon whose boxes have an internet."""
    with internet(workdir / "egress-net", ("a.test", "b.test", "c.test", "evil.test")) as net:
        net.set("inner.test", net.private)
        config = workdir / "egress-world.json"
        egress = {"sets": {"mine": ["a.test"]}, "refuse": ["evil.test"]}
        config.write_text(json.dumps({"gate": {"dns": net.dns}, "egress": egress, "pool": {"machine": {"warm": 1}}}))
        daemon = daemon_factory("egress", arguments=("--config", str(config))).start()
        daemon.net, daemon.api = net, daemon.client()
        yield daemon
        daemon.stop()
        config.write_text(json.dumps({"gate": {"dns": net.dns}, "egress": egress}))  # without the pool
        daemon.start()
        daemon.finish()


@pytest.fixture
def inside(world):
    """Makes boxes of that daemon; removed afterwards."""
    with paddock.boxes_of(world.api) as make:
        yield make


def fetch(box, url, *options):
    """The server's account of the request, or None when there was no answer of it."""
    output = box.exec(["curl", "-sS", "-m", "20", *options, url])
    try:
        return json.loads(output.out) if output.exit_code == 0 else None
    except ValueError:
        return None  # the gate's own answer


def test_denied_then_allowed_by_advice(inside):
    box = inside(egress={"allow": ["mine"]})
    assert fetch(box, "http://a.test/x")["path"] == "/x"
    passed = last(box, verdict="allow", protocol="http")
    assert (passed["rule"], passed["reason"], passed["host"], passed["port"], passed["would_allow"]) == \
        ("rules[0]", "rule", "a.test", 80, None)
    assert fetch(box, "http://b.test/") is None
    refused = last(box, verdict="deny", host="b.test")
    assert refused["reason"] == "no_rule" and refused["rule"] is None
    # The advice is what the command line takes.
    box.client.post(f"{box.path}/egress/rules", {"action": "allow", "targets": [refused["would_allow"]]})
    assert fetch(box, "http://b.test/")["host"] == "b.test"
    assert fetch(box, "http://c.test/") is None


def test_nothing_without_a_policy(world, inside):
    box = inside()
    world.net.seen()
    assert fetch(box, "http://a.test/") is None
    assert fetch(box, f"http://{world.net.host(10)}/") is None
    assert not [seen for seen in world.net.seen() if seen.get("port") == 80]
    refused = last(box, address=world.net.host(10))
    assert (refused["verdict"], refused["would_allow"]) == ("deny", f"{world.net.host(10)}/32:80")
    box.client.post(f"{box.path}/egress/rules", {"action": "allow", "targets": [refused["would_allow"]]})
    assert fetch(box, f"http://{world.net.host(10)}/")["address"] == world.net.host(10)


ECHO = """
import socket, sys
s = socket.create_connection(("a.test", int(sys.argv[1])), 20)
print("open", flush=True)
for line in sys.stdin:
    try:
        s.sendall(line.encode())
        data = s.recv(100)
    except OSError:
        data = b""
    print("alive" if data else "ended", flush=True)
"""


@pytest.mark.parametrize("query, want", [("", "alive"), ("?open=keep", "alive"), ("?open=close", "ended")])
def test_open_connections(inside, query, want):
    box = inside(egress={"allow": ["a.test"]})
    box.put("/tmp/echo.py", ECHO.encode())
    box.exec("mkfifo /tmp/in; (sleep 60 > /tmp/in & echo $! > /tmp/sleeper); "
             f"(python3 /tmp/echo.py {ECHO_PORT} < /tmp/in > /tmp/out 2>&1 &)")

    def said():
        response = box.read("/tmp/out")
        return response.body.decode().split() if response.status == 200 else []

    def says(count):
        paddock.until(lambda: len(said()) >= count, "it says more", 20)
        return said()

    assert says(1) == ["open"]
    box.check("echo x > /tmp/in")
    assert says(2) == ["open", "alive"]
    assert put(box.client, box.path, {}, query).status == 200
    assert fetch(box, "http://a.test/") is None, "new connections are refused at once"
    box.check("echo x > /tmp/in")
    assert says(3)[2] == want


def test_tenant_and_reset(world, inside):
    tenant = "/v1/tenants/default"
    box, own = inside(), inside(egress={"allow": ["b.test"]})
    assert fetch(box, "http://a.test/") is None
    try:
        put(world.api, tenant, {"allow": ["a.test"]})
        paddock.until(lambda: fetch(box, "http://a.test/"), "the tenant's policy holds for its box")
        assert fetch(own, "http://a.test/") is None and fetch(own, "http://b.test/")
        world.api.delete(f"{own.path}/egress")
        assert fetch(own, "http://a.test/") and fetch(own, "http://b.test/") is None
    finally:
        world.api.delete(f"{tenant}/egress")
    paddock.until(lambda: not fetch(box, "http://a.test/"), "it does not hold any more")


def test_refusals_come_first(inside):
    box = inside(egress={"allow": ["evil.test", "*"], "default": "allow"})
    assert fetch(box, "http://a.test/") and fetch(box, "http://evil.test/") is None
    refused = last(box, host="evil.test")
    assert (refused["verdict"], refused["would_allow"]) == ("deny", None), "no rule of the box's helps"


def test_private_addresses(world, inside):
    box = inside(egress={"default": "allow", "allow": ["inner.test"]})
    assert fetch(box, "http://a.test/") and fetch(box, "http://inner.test/") is None
    refused = last(box, host="inner.test", verdict="deny")
    assert (refused["reason"], refused["protocol"], refused["would_allow"]) == ("address", "dns", None)
    # The address alone does not help the name, so that is not advised.
    assert box.client.post(f"{box.path}/egress/rules", {"action": "allow", "targets": [f"{world.net.private}/32"]}).status == 200
    assert fetch(box, f"http://{world.net.private}/") and fetch(box, "http://inner.test/") is None
    # Named by an admin, together with the name, and then by it alone.
    assert put(box.client, box.path, {"rules": [allow(host="inner.test", cidr=f"{world.net.private}/32")]}).status == 200
    assert fetch(box, "http://inner.test/")["address"] == world.net.private
    assert fetch(box, f"http://{world.net.private}/") is None


def test_methods_and_paths(inside):
    box = inside(egress={"rules": [allow(host="a.test", methods=["GET"], paths=["/v1"])]})
    assert fetch(box, "http://a.test/v1/x")["path"] == "/v1/x"
    for url, options in (("http://a.test/v2", ()), ("http://a.test/v1", ("-d", "x")), ("http://a.test/v10", ())):
        assert fetch(box, url, *options) is None, url
    refused = last(box, method="POST")
    assert (refused["verdict"], refused["path"], refused["host"]) == ("deny", "/v1", "a.test")


def test_bytes_are_counted(inside):
    box = inside(egress={"allow": ["a.test"], "limits": {"bytes": 3000}})
    assert fetch(box, "http://a.test/")
    assert fetch(box, "http://a.test/", "-d", "x" * 5000) is None
    assert fetch(box, "http://a.test/") is None
    assert last(box, verdict="deny")["reason"] == "limit"


def test_forks_starts_and_restarts(world, inside):
    box = inside(egress={"allow": ["a.test"]})
    client = box.client

    def has_way_out(it):
        return fetch(it, "http://a.test/") and fetch(it, "http://b.test/") is None

    assert has_way_out(box)
    twin = client.post(f"{box.path}/fork", {"count": 1}).json()["sandboxes"][0]
    twin = paddock.Box(client, twin)
    assert has_way_out(twin)
    assert client.delete(twin.path).status == 204
    for verb in ("stop", "start"):
        assert client.post(f"{box.path}/{verb}", {}).status == 200
    paddock.until(lambda: fetch(box, "http://a.test/"), "it has its policy after a start")
    assert has_way_out(box)
    world.kill_api()
    world.api = world.client()
    assert has_way_out(box.with_client(world.api))


def test_the_log_has_what_was_said_before_it_was_asked_for(inside):
    box = inside(egress={"allow": ["a.test"]})
    for number in range(20):
        box.check(f"curl -s http://a.test/{number} http://b{number}.test/ || true")
        said = {(v["host"], v["path"]) for v in log(box, "?limit=256")["verdicts"]}
        assert ("a.test", f"/{number}") in said and (f"b{number}.test", None) in said, said


def test_log_pages(inside):
    box = inside(egress={"allow": ["a.test"]})
    for path in ("1", "2", "3"):
        fetch(box, f"http://a.test/{path}")
    fetch(box, "http://b.test/")
    last(box, verdict="deny", host="b.test")
    everything = log(box)["verdicts"]
    ids = [verdict["id"] for verdict in everything]
    assert ids == sorted(set(ids)) and log(box)["first"] == ids[0] and log(box)["next"] == ids[-1]
    one = log(box, "?limit=1")
    assert one["verdicts"] == everything[:1] and one["next"] == ids[0]
    assert log(box, f"?after={one['next']}")["verdicts"] == everything[1:]
    assert log(box, f"?after={ids[-1]}") == {"verdicts": [], "next": ids[-1], "first": ids[0]}
    allowed = log(box, "?verdict=allow")["verdicts"]
    assert [v["path"] for v in allowed if v["protocol"] == "http"] == ["/1", "/2", "/3"]
    assert {(v["host"], v["reason"]) for v in allowed if v["protocol"] == "dns"} == {("a.test", "rule")}
    assert {v["host"] for v in log(box, "?verdict=deny")["verdicts"]} == {"b.test"}


def test_audit(world, inside):
    box = inside(egress={"allow": ["a.test"]})
    fetch(box, "http://a.test/seen?secret=1")
    fetch(box, "http://b.test/")
    last(box, verdict="deny", host="b.test")
    lines = [line for line in paddock.read(world.log_file).splitlines() if f"box={box.id}" in line]
    figures = dict(line.rsplit(" ", 1) for line in world.api.get("/metrics").body.decode().splitlines() if line[0] != "#")
    assert int(figures["paddock_egress_allowed_total"]) >= 1 and int(figures["paddock_egress_denied_total"]) >= 1
    assert [line for line in lines if "egress allowed" in line and 'host="a.test"' in line and 'path="/seen"' in line]
    assert [line for line in lines if "egress denied" in line and 'host="b.test"' in line and 'allow="b.test' in line]
    assert "secret" not in "".join(lines), "a query may hold what a log must not"


# ---- tokens, as agentbox has them ----

def test_tokens_restrict(inside):
    box = inside(egress={"allow": ["a.test", "b.test"]})
    made = box.client.post(f"{box.path}/egress/token", {"allowed_hosts": ["a.test", "*.evil.test", "c.test"]})
    assert made.status == 201, made
    token, proxy = made.json()["token"], made.json()["proxy"]
    claims = json.loads(base64.urlsafe_b64decode(token.split(".")[1] + "=="))
    assert claims["iss"] == "sandbox-egress-control" and claims["session_id"] == box.id
    assert claims["allowed_hosts"] == "a.test,*.evil.test,c.test" and claims["exp"] - claims["iat"] == 4 * 3600
    plain = "http://127.0.0.1:15004"
    assert fetch(box, "http://a.test/", "-x", proxy) and fetch(box, "http://b.test/", "-x", plain)
    assert fetch(box, "http://b.test/", "-x", proxy) is None, "it names another host"
    assert fetch(box, "http://c.test/", "-x", proxy) is None, "it opens nothing"
    assert fetch(box, "http://a.test/", "-x", proxy.replace(token, token[:-4] + "AAAA")) is None
    other = inside(egress={"allow": ["a.test"]})
    assert fetch(other, "http://a.test/", "-x", plain)
    assert fetch(other, "http://a.test/", "-x", proxy) is None, "it is another box's"


@pytest.mark.parametrize("body", [{}, {"allowed_hosts": []}, {"allowed_hosts": ["10.0.0.0/8"]}, {"allowed_hosts": ["a.b:443"]},
                                  {"allowed_hosts": ["a,b.test"]}, {"allowed_hosts": ["a.b"], "ttl_seconds": 0},
                                  {"allowed_hosts": ["*"]}], ids=str)
def test_bad_tokens(api, box, body):
    assert api.post(f"{box.path}/egress/token", body).code() == "invalid_argument"
