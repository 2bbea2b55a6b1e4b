"""E2B's control plane on the wire: what its clients do not show. test/compat asks the clients themselves."""

import json
import re
import time
from urllib.parse import quote

import pytest
import yaml

import paddock
from test_openapi import conform, plain, resolve


class E2B:
    """Speaks as E2B's clients do: chunked bodies, the key in X-API-KEY."""

    def __init__(self, daemon, key):
        self.client, self.key, self.made = paddock.Client(daemon), key.replace("pdk_", "e2b_", 1), []

    def call(self, method, path, document=None, **headers):
        body = None if document is None else iter([json.dumps(document).encode()])
        response = self.client.request(method, path, body, {"X-API-KEY": self.key, "Content-Type": "application/json", **headers},
                                       encode_chunked=True)
        if response.status >= 400:
            error = response.json()
            assert error["code"] == response.status and isinstance(error["message"], str), error
        return response

    def create(self, generation="/v2", **spec):
        response = self.call("POST", f"{generation}/sandboxes", {"templateID": "base", **spec})
        assert response.status == 201, response
        box = response.json()
        self.client.daemon.saw(box["sandboxID"])
        self.made.append(box["sandboxID"])
        return box

    def info(self, box):
        response = self.call("GET", f"/sandboxes/{box['sandboxID']}")
        assert response.status == 200, response
        return response.json()

    def ends_in(self, box):
        return paddock.seconds_until(self.info(box)["endAt"])

    def close(self):
        for box in self.made:
            assert self.call("DELETE", f"/sandboxes/{box}").status in (204, 404)
        self.client.close()


@pytest.fixture
def e2b(daemon):
    it = E2B(daemon, daemon.key)
    yield it
    it.close()


@pytest.fixture
def stranger(tenant, daemon):
    """Somebody of another tenant."""
    it = E2B(daemon, tenant.key)
    yield it
    it.close()


@pytest.fixture(scope="module")
def document():
    return yaml.safe_load((paddock.ROOT / "api/e2b/openapi.yaml").read_text())


def test_both_generations(e2b):
    old, new = e2b.create("", secure=False), e2b.create()
    assert set(old) == set(new) == {"sandboxID", "templateID", "alias", "clientID", "envdVersion", "envdAccessToken", "domain"}
    assert 5 < e2b.ends_in(old) <= 15 and 290 < e2b.ends_in(new) <= 300
    assert old["envdAccessToken"] != new["envdAccessToken"], "each has its own"
    assert e2b.info(old)["envdAccessToken"] == old["envdAccessToken"], "which stays"


def test_it_is_a_box_like_any_other(e2b, api):
    box = e2b.create(envVars={"A": "b"}, metadata={"k": "v"}, autoPause=True)
    ours = api.get(f"/v1/sandboxes/{box['sandboxID']}").json()
    assert (ours["metadata"], ours["on_end"], ours["status"]) == ({"k": "v"}, "pause", "running")
    done = api.post(f"/v1/sandboxes/{box['sandboxID']}/exec", {"command": "echo $A"}).json()
    assert done["stdout"] == "b\n"


def test_answers_are_as_written(document, e2b):
    box = e2b.create(metadata={"a": "b"})
    one = f"/sandboxes/{box['sandboxID']}"

    def check(method, path, pattern, body=None):
        response = e2b.call(method, path, body)
        responses = {plain(key): item for key, item in document["paths"].items()}[plain(pattern)][method.lower()]["responses"]
        answer = resolve(document, responses.get(response.status) or responses["default"])
        content = answer.get("content", {}).get("application/json")
        assert bool(content) == bool(response.body), response
        if content:
            conform(document, content["schema"], response.json())
        return response

    check("GET", one, "/sandboxes/{}")
    check("GET", "/v2/sandboxes", "/v2/sandboxes")
    check("GET", "/sandboxes", "/sandboxes")
    check("POST", f"/v2{one}/connect", "/v2/sandboxes/{}/connect", {})
    check("GET", one + "/metrics", "/sandboxes/{}/metrics")
    check("GET", one + "/logs", "/sandboxes/{}/logs")
    check("GET", f"/v2{one}/logs", "/v2/sandboxes/{}/logs")
    check("GET", "/snapshots", "/snapshots")
    check("GET", "/templates/aliases/base", "/templates/aliases/{}")
    assert check("GET", "/templates/aliases/none", "/templates/aliases/{}").status == 404
    assert check("GET", "/teams", "/teams").status == 501
    assert check("POST", "/sandboxes", "/sandboxes", {"templateID": 1}).status == 400
    assert check("DELETE", one, "/sandboxes/{}").status == 204
    assert check("DELETE", one, "/sandboxes/{}").status == 404


def test_refreshes(e2b):
    box = e2b.create(timeout=60)
    path = f"/sandboxes/{box['sandboxID']}/refreshes"
    assert e2b.call("POST", path).status == 204 and e2b.ends_in(box) > 50, "a life is not made shorter"
    assert e2b.call("POST", path, {"duration": 200}).status == 204 and e2b.ends_in(box) > 190
    assert e2b.call("POST", "/sandboxes/none/refreshes", {"duration": 1}).status == 404


def test_resume_of_the_first_generation(e2b):
    box = e2b.create()
    one = f"/sandboxes/{box['sandboxID']}"
    assert e2b.call("POST", one + "/resume", {"timeout": 40}).status == 409
    assert e2b.call("POST", one + "/pause").status == 204
    assert e2b.call("POST", one + "/pause").status == 409
    assert e2b.info(box)["endAt"].startswith("9999"), "paused, it has no end"
    resumed = e2b.call("POST", one + "/resume", {"timeout": 40, "autoPause": False})
    assert (resumed.status, resumed.json()["envdAccessToken"]) == (201, box["envdAccessToken"])
    assert 20 < e2b.ends_in(box) <= 40


def test_pause_without_memory(e2b, api):
    box = e2b.create()
    ours = paddock.Box(api, api.get(f"/v1/sandboxes/{box['sandboxID']}").json())
    ours.put("/workspace/kept", b"x")
    one = f"/sandboxes/{box['sandboxID']}"
    assert e2b.call("POST", one + "/pause", {"memory": False}).status == 204
    assert ours.get()["status"] == "stopped" and e2b.info(box)["state"] == "paused"
    assert e2b.call("POST", f"/v2{one}/connect", {}).status == 201
    assert ours.read("/workspace/kept").body == b"x"
    # With its memory, and then without: it is started anew.
    started = api.post(ours.path + "/processes", {"command": "sleep 1000", "tag": "t"})
    assert started.status == 201, started
    assert e2b.call("POST", one + "/pause").status == 204
    assert e2b.call("POST", f"/v2{one}/connect", {"memory": False}).status == 201
    assert e2b.info(box)["state"] == "running"
    assert api.get(ours.path + "/processes/t").status == 404


def test_a_token_opens_one_box(e2b, daemon, api):
    one, other = e2b.create(), e2b.create(network={"allowPublicTraffic": False})
    paddock.Box(api, {"id": one["sandboxID"]}).put("/tmp/f", b"of one")

    def read(token, box=None):
        named = {"E2b-Sandbox-Id": box["sandboxID"], "E2b-Sandbox-Port": "49983"} if box else {}
        return e2b.client.request("GET", "/files?path=/tmp/f&username=user", headers={"X-Access-Token": token, **named})

    token = one["envdAccessToken"]
    assert read(token, one).body == b"of one"
    assert read(token).body == b"of one", "as old clients ask: the token says which box"
    assert read(other["envdAccessToken"], one).status == 401 and read(token, other).status == 502, "one is public"
    assert read(one["sandboxID"] + "0" * 64).status == 401 and read(one["sandboxID"] + "0" * 64, one).status == 401
    assert read(other["trafficAccessToken"], other).status == 502, "tokens of another kind are other tokens"
    assert read("x").status == 502 and read("z" * 84).status == 502, "a box that is not there"
    assert e2b.client.request("GET", "/health", headers={"X-Access-Token": token}).status == 204
    assert e2b.client.request("GET", "/health").status == 200, "ours"


def test_logs_are_the_life_of_a_box(e2b):
    box = e2b.create()
    one = f"/sandboxes/{box['sandboxID']}"
    assert e2b.call("POST", one + "/pause").status == 204 and e2b.call("POST", one + "/connect", {"timeout": 60}).status == 201

    def said(query=""):
        return [entry["message"] for entry in e2b.call("GET", f"/v2{one}/logs{query}").json()["logs"]]

    paddock.until(lambda: len(said()) == 3, "three events are on disk")
    lived = said()
    assert [re.sub(r".*\.", "", word) for word in lived] == ["created", "paused", "resumed"]
    assert said("?direction=backward") == lived[::-1] and said("?direction=backward&limit=1") == lived[2:]
    assert said("?search=paus") == [lived[1]] and said("?level=error") == []
    old = e2b.call("GET", one + "/logs").json()
    assert [json.loads(entry["line"])["message"] for entry in old["logs"]] == [entry["message"] for entry in old["logEntries"]] == lived
    assert {(line["level"], line["logger"]) for line in (json.loads(entry["line"]) for entry in old["logs"])} == {("info", "lifecycle")}
    assert e2b.call("GET", f"/v2{one}/logs?limit=x").status == 400
    assert e2b.call("GET", "/v2/sandboxes/none/logs").status == 404


def test_pages(e2b):
    mine = {"page": str(time.monotonic_ns())}
    made = [e2b.create(metadata=mine)["sandboxID"] for _ in range(3)]
    query = f"metadata={quote(quote('page=' + mine['page']))}"
    first = e2b.call("GET", f"/v2/sandboxes?{query}&limit=2")
    assert [one["sandboxID"] for one in first.json()] == made[:0:-1]
    assert first.headers["x-total-running"] == "3"
    second = e2b.call("GET", f"/v2/sandboxes?{query}&limit=2&nextToken={first.headers['x-next-token']}")
    assert [one["sandboxID"] for one in second.json()] == made[:1] and "x-next-token" not in second.headers
    assert second.headers["x-total-running"] == "3", "whatever the page"
    both = e2b.call("GET", f"/v2/sandboxes?{query}&state=running&state=paused")
    assert len(both.json()) == 3
    paused = e2b.call("GET", f"/v2/sandboxes?{query}&state=paused")
    assert paused.json() == [] and paused.headers["x-total-running"] == "0"
    assert [one["sandboxID"] for one in e2b.call("GET", f"/sandboxes?{query}").json()] == made[::-1]
    started = both.json()[1]["startedAt"]
    from_then = e2b.call("GET", f"/v2/sandboxes?{query}&startedAfter={quote(started)}").json()
    assert made[1] in [one["sandboxID"] for one in from_then] and min(one["startedAt"] for one in from_then) == started
    for bad in ("state=gone", "limit=0", "limit=x", "order=up", "startedAfter=yesterday", "nextToken=x", "metadata=%25zz", "what=1"):
        assert e2b.call("GET", f"/v2/sandboxes?{bad}").status == 400, bad


def test_strangers_see_nothing(e2b, stranger):
    box = e2b.create()
    one = f"/sandboxes/{box['sandboxID']}"
    for method, path, body in (("GET", one, None), ("DELETE", one, None), ("POST", one + "/pause", {}), ("POST", f"/v2{one}/connect", {}),
                               ("POST", one + "/timeout", {"timeout": 1}), ("POST", one + "/refreshes", {}), ("GET", one + "/metrics", None),
                               ("GET", one + "/logs", None), ("POST", one + "/fork", {}), ("POST", one + "/snapshots", {}),
                               ("POST", one + "/resume", {}), ("PUT", one + "/network", {})):
        assert stranger.call(method, path, body).status == 404, path
    assert stranger.call("GET", "/v2/sandboxes").json() == []
    assert e2b.info(box)["state"] == "running"


def test_a_snapshot_is_a_template_of_its_tenant(e2b, stranger, api):
    box = e2b.create()
    ours = paddock.Box(api, api.get(f"/v1/sandboxes/{box['sandboxID']}").json())
    ours.put("/workspace/f", b"in the snapshot")
    name = f"t{time.monotonic_ns()}"
    made = e2b.call("POST", f"/sandboxes/{box['sandboxID']}/snapshots", {"name": name})
    assert (made.status, made.json()["names"]) == (201, [name])
    snapshot = made.json()["snapshotID"]
    for template in (snapshot, name, name + ":default"):
        copy = e2b.create(templateID=template)
        assert e2b.call("GET", f"/v2/sandboxes?template={snapshot}").json()[0]["sandboxID"] == copy["sandboxID"]
        assert paddock.Box(api, {"id": copy["sandboxID"]}).read("/workspace/f").body == b"in the snapshot"
        assert stranger.call("POST", "/v2/sandboxes", {"templateID": template}).status == 404
    assert stranger.call("DELETE", f"/templates/{snapshot}").status == 404
    assert e2b.call("DELETE", "/templates/base").status == 403
    assert e2b.call("DELETE", f"/templates/{snapshot}").status == 204
    assert e2b.call("DELETE", f"/templates/{snapshot}").status == 404


def test_pages_of_snapshots(e2b):
    box = e2b.create()
    names = [f"p{time.monotonic_ns()}-{i}" for i in range(3)]
    made = [e2b.call("POST", f"/sandboxes/{box['sandboxID']}/snapshots", {"name": name}).json()["snapshotID"] for name in names]
    found, token = [], ""
    while True:
        page = e2b.call("GET", "/snapshots?limit=1" + (f"&nextToken={token}" if token else ""))
        assert page.status == 200 and len(page.json()) <= 1, page
        found += [one["snapshotID"] for one in page.json()]
        token = page.headers.get("x-next-token")
        if not token:
            break
    assert [one for one in found if one in made] == made and len(found) == len(set(found))
    assert [one["snapshotID"] for one in e2b.call("GET", f"/snapshots?name={names[1]}").json()] == [made[1]]
    other = e2b.create()["sandboxID"]
    of_other = e2b.call("POST", f"/sandboxes/{other}/snapshots").json()["snapshotID"]
    of = {id: [one["snapshotID"] for one in e2b.call("GET", f"/snapshots?sandboxID={id}").json()] for id in (box["sandboxID"], other, "none")}
    assert of == {box["sandboxID"]: made, other: [of_other], "none": []}
    made.append(of_other)
    for bad in ("limit=0", "limit=x", "nextToken=nothing"):
        assert e2b.call("GET", f"/snapshots?{bad}").status == 400, bad
    for snapshot in made:
        assert e2b.call("DELETE", f"/templates/{snapshot}").status == 204


def test_metrics_of_many(e2b, stranger):
    boxes = [e2b.create()["sandboxID"] for _ in range(2)]
    path = f"/sandboxes/metrics?sandbox_ids={','.join(boxes)},none"

    def sampled():
        answer = e2b.call("GET", path)
        assert answer.status == 200, answer
        return set(answer.json()["sandboxes"]) == set(boxes)

    paddock.until(sampled, "both were sampled", 30)
    assert stranger.call("GET", path).json() == {"sandboxes": {}}


def test_forks_have_the_files(e2b, api):
    box = e2b.create(timeout=100)
    paddock.Box(api, api.get(f"/v1/sandboxes/{box['sandboxID']}").json()).put("/workspace/f", b"x")
    forked = e2b.call("POST", f"/sandboxes/{box['sandboxID']}/fork", {"count": 2, "timeout": 50})
    assert forked.status == 201, forked
    for entry in forked.json():
        twin = entry["sandbox"]
        e2b.made.append(twin["sandboxID"])
        e2b.client.daemon.saw(twin["sandboxID"])
        assert 30 < e2b.ends_in(twin) <= 50
        assert paddock.Box(api, {"id": twin["sandboxID"]}).read("/workspace/f").body == b"x"


def test_a_network_is_a_policy(e2b, api):
    def policy(box):
        answer = api.get(f"/v1/sandboxes/{box['sandboxID']}/egress").json()
        rules = [(rule["action"], rule.get("host") or rule.get("cidr")) for rule in answer["policy"]["rules"]]
        return answer["policy"]["default"], rules, e2b.info(box)["network"]

    box = e2b.create(network={"allowOut": ["example.org", "*.example.com", "192.0.2.0/24", "192.0.2.7"], "denyOut": ["0.0.0.0/0"]})
    default, rules, shown = policy(box)
    assert default == "deny"
    assert rules == [("allow", "example.org"), ("allow", "*.example.com"), ("allow", "192.0.2.0/24"), ("allow", "192.0.2.7/32")]
    assert shown["allowOut"] == [target for _, target in rules] and shown["denyOut"] == ["0.0.0.0/0"]

    put = f"/sandboxes/{box['sandboxID']}/network"
    assert e2b.call("PUT", put, {"allowOut": ["198.51.100.1"], "denyOut": ["198.51.100.0/24"]}).status == 204
    default, rules, shown = policy(box)
    assert (default, rules) == ("allow", [("allow", "198.51.100.1/32"), ("deny", "198.51.100.0/24")]), "what is allowed comes first"
    assert e2b.call("PUT", put, {"allow_internet_access": False}).status == 204
    assert policy(box)[:2] == ("deny", [])
    before = api.get(f"/v1/sandboxes/{e2b.create()['sandboxID']}/egress").json()
    assert e2b.call("PUT", put, {}).status == 204
    assert api.get(f"/v1/sandboxes/{box['sandboxID']}/egress").json() == before, "nothing said is that of everybody"
    assert "allowOut" not in policy(box)[2]
    assert policy(e2b.create(allow_internet_access=False))[:2] == ("deny", [])

    for bad, status in (({"denyOut": ["example.org"]}, 400), ({"allowOut": ["not a host"]}, 400), ({"unheardOf": 1}, 400),
                        ({"rules": {"example.org": [{"transform": {"headers": {"a": "${e2b.identity.tokens.b}"}}}]}}, 501),
                        ({"egressProxy": {"address": "192.0.2.1:1"}}, 501)):
        assert e2b.call("PUT", put, bad).status == status, bad
        assert e2b.call("POST", "/v2/sandboxes", {"templateID": "base", "network": bad}).status == status, bad
    assert e2b.call("PUT", "/sandboxes/none/network", {}).status == 404


def test_what_cannot_be_done_is_refused(e2b):
    for spec in ({"network": {"egressProxy": {"address": "192.0.2.1:1"}}}, {"network": {"httpsPorts": [8443]}},
                 {"iam": {"tokens": {"t": {"audience": "a", "tokenType": "JWT-SVID"}}}}):
        assert e2b.call("POST", "/v2/sandboxes", {"templateID": "base", **spec}).status == 501, spec
    for spec in ({"timeout": 2**40}, {"timeout": -1}, {"metadata": {"a": 1}}, {"unheard_of": 1}, {"network": {"unheardOf": 1}},
                 {"autoPause": True, "autoPauseMemory": False, "autoResume": {"enabled": True}}):
        assert e2b.call("POST", "/v2/sandboxes", {"templateID": "base", **spec}).status == 400, spec
    for spec in ({"network": {}, "iam": None, "volumeMounts": [], "mcp": None, "allow_internet_access": False},):
        e2b.create(**spec)


def test_limits_say_when_to_come_again(api, stranger):
    tenant = api.get("/v1/keys").json()["keys"][-1]["tenant"]
    assert api.send_json("PUT", f"/v1/tenants/{tenant}/quota", {"boxes": 1}).status == 200
    stranger.create()
    refused = stranger.call("POST", "/v2/sandboxes", {"templateID": "base"})
    assert refused.status == 429 and int(refused.headers["retry-after"]) >= 1


def test_keys(daemon, e2b):
    path = "/v2/sandboxes"
    assert e2b.client.get(path).json()["code"] == 401
    assert e2b.call("GET", path, Authorization="Bearer sk_e2b_of_another_kind").status == 200, "the key is what counts"
    e2b.key = "e2b_" + "0" * 40
    for path in (path, "/secrets", "/v2/nothing/here"):
        assert e2b.call("GET", path).status == 401
    e2b.key = daemon.key
    assert e2b.call("GET", "/v2/sandboxes").status == 200, "ours do, too"
    assert e2b.call("GET", "/v2/nothing/here").status == 404
    assert e2b.call("PATCH", "/v2/sandboxes").status == 405
