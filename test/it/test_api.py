"""The REST surface: every route, and every refusal with its status and code."""

import json
import os
import re
import signal
import time
from datetime import datetime

import pytest
import yaml

import paddock

TIME = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$")


def parse_time(text):
    assert TIME.match(text), text
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


# ---- the life of a box ----------------------------------------------------


def test_create_defaults(make_box):
    before = time.time()
    made = make_box().document
    assert paddock.ID.match(made["id"])
    assert made["status"] == "running"
    assert made["image"] == "machine"
    assert made["backend"] == "native"
    assert before - 1 <= parse_time(made["created_at"]) <= time.time() + 1
    assert made["expires_at"] is None
    assert made["metadata"] == {}
    assert set(made["limits"]) >= {"cpu", "memory_mb", "pids", "nofile"}
    assert all(value > 0 for value in made["limits"].values())


def test_the_smallest_limits_work(make_box, api):
    """What the document calls the least is accepted by every program and runs a command; one less is refused by the API."""
    schema = yaml.safe_load((paddock.ROOT / "api/openapi.yaml").read_text())["components"]["schemas"]["SandboxCreate"]
    limits = schema["properties"]["limits"]["properties"]
    least = {name: limits[name]["minimum"] for name in ("memory_mb", "pids", "nofile")}
    for name, value in least.items():
        response = api.try_create(limits={name: value - 1})
        assert (response.status, response.code()) == (400, "invalid_argument"), (name, response.body)
        assert f"limits.{name} must be between {value} and" in response.json()["error"]["message"]
    box = make_box(limits=least)
    assert {name: box.document["limits"][name] for name in least} == least
    assert box.check("ulimit -n; echo a | cat") == f"{least['nofile']}\na\n"


def test_create_with_everything(make_box, api):
    spec = {
        "name": "the-full-one",
        "image": "machine",
        "user": "root",
        "env": {"COLOUR": "green", "EMPTY": ""},
        "workdir": "/tmp",
        "limits": {"cpu": 0.5, "memory_mb": 256, "pids": 64, "nofile": 512, "disk_mb": 100},
        "ttl_seconds": 600,
        "metadata": {"owner": "tests", "ünïcode": "värde"},
        "readonly_root": True,
    }
    made = make_box(**spec)
    seen = made.get()
    for key in ("name", "image", "metadata", "limits"):
        assert seen[key] == spec[key], key
    assert parse_time(seen["expires_at"]) - parse_time(seen["created_at"]) == pytest.approx(600, abs=1)
    assert api.get("/v1/sandboxes/the-full-one").json() == seen
    assert made.check("echo $COLOUR; id -un; pwd; echo ${EMPTY-unset}").split("\n") == [
        "green", "root", "/tmp", "", "",
    ]


def test_get_equals_create(make_box):
    made = make_box()
    # What it has on disk is measured when it is shown, and the file system takes its time with that.
    assert {**made.get(), "disk": None} == {**made.document, "disk": None}


def test_delete_means_gone(api):
    box = api.create(name="short-lived")
    pid, cgroups = box.pid1(), paddock.cgroup_dirs(box.id)
    assert cgroups, "the box has cgroups"
    box.delete()
    assert not os.path.exists(f"/proc/{pid}")
    assert not any(path.exists() for path in cgroups.values())
    for method, path in (("GET", ""), ("DELETE", ""), ("GET", "/files/etc/passwd")):
        response = api.request(method, box.path + path)
        assert (response.status, response.code()) == (404, "not_found")
    again = api.create(name="short-lived")
    assert again.id != box.id
    again.delete()


def test_delete_by_name(api):
    box = api.create(name="by-name")
    assert api.delete("/v1/sandboxes/by-name").status == 204
    assert api.get(box.path).status == 404


def test_box_ends_by_its_ttl(api, daemon):
    box = api.create(ttl_seconds=1)
    pid = box.pid1()
    assert paddock.wait_gone(pid, 5), "the box outlived its ttl"

    def ended():
        response = api.get(box.path)
        return response.status == 404 or response.json()["status"] == "stopped"

    paddock.until(ended, "the box is reported as ended")
    assert api.delete(box.path).status in (204, 404)


def test_stopped_box(make_box, api):
    box = make_box(name="stops")
    pid = box.pid1()
    paddock.kill(pid)
    assert paddock.wait_gone(pid)
    paddock.until(lambda: box.get()["status"] == "stopped", "status stopped")
    response = box.try_exec(["/bin/true"])
    assert (response.status, response.code()) == (409, "wrong_state")
    response = box.read("/etc/passwd")
    assert (response.status, response.code()) == (409, "wrong_state")
    response = box.put("/workspace/a", b"x")
    assert (response.status, response.code()) == (409, "wrong_state")
    assert box.id in [one["id"] for one in api.list("status=stopped")]
    assert box.id not in [one["id"] for one in api.list("status=running")]
    response = api.try_create(name="stops")
    assert (response.status, response.code()) == (409, "conflict")


# ---- what a create refuses ------------------------------------------------

BAD_CREATES = {
    "unknown field": {"nmae": "x"},
    "unknown field in limits": {"limits": {"memory": 5}},
    "name is a number": {"name": 5},
    "name is null in a list": {"name": ["a"]},
    "name over-long": {"name": "a" * 300},
    "name with a slash": {"name": "a/b"},
    "name with a newline": {"name": "a\nb"},
    "name with a NUL": {"name": "a\0b"},
    "name with dots only": {"name": ".."},
    "image is a number": {"image": 1},
    "image with a path": {"image": "../../etc"},
    "user is a number": {"user": 0},
    "user over-long": {"user": "u" * 5000},
    "env is a list": {"env": ["A=1"]},
    "env value is a number": {"env": {"A": 1}},
    "env name with =": {"env": {"A=B": "1"}},
    "env name empty": {"env": {"": "1"}},
    "env value with NUL": {"env": {"A": "x\0y"}},
    "workdir relative": {"workdir": "workspace"},
    "workdir with NUL": {"workdir": "/a\0b"},
    "limits is a list": {"limits": []},
    "cpu zero": {"limits": {"cpu": 0}},
    "cpu negative": {"limits": {"cpu": -1}},
    "cpu a string": {"limits": {"cpu": "1"}},
    "cpu beyond the ceiling": {"limits": {"cpu": 1e6}},
    "memory zero": {"limits": {"memory_mb": 0}},
    "memory negative": {"limits": {"memory_mb": -5}},
    "memory a fraction": {"limits": {"memory_mb": 1.5}},
    "memory beyond the ceiling": {"limits": {"memory_mb": 10**9}},
    "memory beyond 64 bits": {"limits": {"memory_mb": 2**70}},
    "pids zero": {"limits": {"pids": 0}},
    "pids beyond 32 bits": {"limits": {"pids": 2**32 + 5}},
    "nofile beyond the ceiling": {"limits": {"nofile": 10**9}},
    "ttl negative": {"ttl_seconds": -1},
    "ttl a string": {"ttl_seconds": "5"},
    "ttl beyond 64 bits": {"ttl_seconds": 2**64},
    "metadata a list": {"metadata": []},
    "metadata value a number": {"metadata": {"a": 1}},
    "metadata key over-long": {"metadata": {"k" * 5000: "v"}},
    "metadata value over-long": {"metadata": {"k": "v" * 100_000}},
    "readonly_root a string": {"readonly_root": "yes"},
    "a list for a document": [],
    "a string for a document": "x",
}


@pytest.mark.parametrize("spec", BAD_CREATES.values(), ids=BAD_CREATES.keys())
def test_create_refuses(api, spec):
    response = api.post("/v1/sandboxes", spec)
    if response.status == 201:  # do not let a wrong acceptance leak a box
        api.delete(f"/v1/sandboxes/{response.json()['id']}")
    assert (response.status, response.code()) == (400, "invalid_argument")


def test_refusal_names_the_field(api):
    response = api.post("/v1/sandboxes", {"limits": {"memory_mb": "many"}})
    assert "memory_mb" in response.json()["error"]["message"]
    response = api.post("/v1/sandboxes", {"nmae": "x"})
    assert "nmae" in response.json()["error"]["message"]


def test_unknown_image(api):
    response = api.try_create(image="no-such-image")
    assert (response.status, response.code()) == (404, "not_found")
    assert "no-such-image" in response.json()["error"]["message"]


def test_duplicate_name(make_box, api):
    first = make_box(name="twin")
    response = api.try_create(name="twin")
    assert (response.status, response.code()) == (409, "conflict")
    assert first.get()["status"] == "running"


def test_two_creates_of_one_name_at_once(daemon):
    """The name is taken when the create begins, not when it ends."""
    clients = [daemon.client() for _ in range(8)]
    calls = [paddock.Background(client.try_create, name="race") for client in clients]
    answers = [call.result() for call in calls]
    assert sorted(answer.status for answer in answers) == [201] + [409] * 7
    assert clients[0].delete("/v1/sandboxes/race").status == 204
    for client in clients:
        client.close()


def test_failed_create_leaves_no_trace(api, daemon):
    before = (len(api.list()), sorted(os.listdir(daemon.disk / "boxes")), sorted(os.listdir(daemon.run_dir / "boxes")))
    for spec in ({"image": "no-such-image"}, {"user": "nobody-of-this-name"}, {"workdir": "/no/such/place"}):
        response = api.try_create(**spec)
        if response.status == 201:  # a workdir may be made, a user looked up at exec
            assert api.delete(f"/v1/sandboxes/{response.json()['id']}").status == 204
    after = (len(api.list()), sorted(os.listdir(daemon.disk / "boxes")), sorted(os.listdir(daemon.run_dir / "boxes")))
    assert before == after


BAD_JSON = {
    "empty": b"",
    "not JSON": b"name=x",
    "trailing garbage": b'{"name":"x"} x',
    "two documents": b"{}{}",
    "duplicate key": b'{"name":"a","name":"b"}',
    "single quotes": b"{'name':'x'}",
    "trailing comma": b'{"name":"x",}',
    "comment": b'{/**/"name":"x"}',
    "NaN": b'{"ttl_seconds":NaN}',
    "invalid UTF-8": b'{"name":"\xff\xfe"}',
    "lone surrogate": b'{"name":"\\ud800"}',
    "raw control character": b'{"name":"a\x01b"}',
    "deep nesting": b'{"metadata":' + b"[" * 10_000 + b"]" * 10_000 + b"}",
    "unterminated": b'{"name":"x"',
    "byte order mark": b'\xef\xbb\xbf{"name":"x"}',
}


@pytest.mark.parametrize("body", BAD_JSON.values(), ids=BAD_JSON.keys())
def test_bad_json(api, body):
    response = api.post("/v1/sandboxes", body)
    assert response.status == 400 and response.code() in ("invalid_argument", "bad_request")


def test_unsupported_media_type(api):
    for kind in ("text/plain", "application/x-www-form-urlencoded", "application/jsonx"):
        response = api.request("POST", "/v1/sandboxes", b"{}", {"Content-Type": kind})
        assert (response.status, response.code()) == (415, "unsupported_media"), kind
    response = api.request(
        "POST", "/v1/sandboxes", b'{"nmae":1}', {"Content-Type": "Application/JSON; charset=utf-8"}
    )
    assert response.status == 400, "parameters and case of the media type do not matter"


@pytest.mark.parametrize("framing", ["Content-Length: 33554432", "Transfer-Encoding: chunked"])
def test_body_too_large(daemon, framing):
    """Refused early, and so that a client that is still sending gets to read why."""
    piece = b"10000\r\n" + b"a" * 65536 + b"\r\n" if "chunked" in framing else b"a" * 65536
    with daemon.raw() as connection:
        received, closed = paddock.exchange(connection, (
            f"POST /v1/sandboxes HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {daemon.key}\r\n"
            f"Content-Type: application/json\r\n{framing}\r\n\r\n").encode() + piece * 512)
    assert paddock.statuses(received) == [413] and b'"too_large"' in received and closed


# ---- listing --------------------------------------------------------------


def test_list_filters_and_pages(own_daemon):
    daemon = own_daemon().start()
    api = daemon.client()
    assert api.get("/v1/sandboxes").json() == {"sandboxes": [], "next": None}
    boxes = [
        api.create(name=f"n{i}", metadata={"parity": "even" if i % 2 == 0 else "odd", "i": str(i)})
        for i in range(7)
    ]
    ids = [box.id for box in boxes]
    assert sorted(one["id"] for one in api.list()) == sorted(ids)

    by = {query: [one["name"] for one in api.list(query)] for query in (
        "metadata.parity=even", "metadata.parity=odd&metadata.i=3", "metadata.i=9", "metadata.none=x",
        "status=running", "status=stopped", "limit=2", "limit=3&metadata.parity=even",
    )}
    assert sorted(by["metadata.parity=even"]) == ["n0", "n2", "n4", "n6"]
    assert by["metadata.parity=odd&metadata.i=3"] == ["n3"]
    assert by["metadata.i=9"] == by["metadata.none=x"] == by["status=stopped"] == []
    assert sorted(by["status=running"]) == sorted(f"n{i}" for i in range(7))
    assert sorted(by["limit=2"]) == sorted(f"n{i}" for i in range(7))
    assert sorted(by["limit=3&metadata.parity=even"]) == ["n0", "n2", "n4", "n6"]

    first = api.get("/v1/sandboxes?limit=3").json()
    assert len(first["sandboxes"]) == 3 and first["next"]
    # A page stays right when boxes come and go between two of them.
    gone = first["sandboxes"][-1]["id"]
    assert api.delete(f"/v1/sandboxes/{gone}").status == 204
    rest = api.list(f"cursor={paddock.quote(first['next'])}")
    assert not {one["id"] for one in rest} & {one["id"] for one in first["sandboxes"]}
    assert {one["id"] for one in rest} | {one["id"] for one in first["sandboxes"]} >= set(ids)


@pytest.mark.parametrize("query", [
    "limit=0", "limit=-1", "limit=x", "limit=99999999999999999999", "status=nonsense", "cursor=nonsense",
    "unknown=1", "limit=1&limit=2",
])
def test_list_refuses(api, query):
    response = api.get(f"/v1/sandboxes?{query}")
    assert (response.status, response.code()) == (400, "invalid_argument")


def test_list_metadata_with_escapes(make_box, api):
    made = make_box(metadata={"a key": "x&y=z/ü"})
    assert [one["id"] for one in api.list("metadata.a%20key=x%26y%3Dz%2F%C3%BC")] == [made.id]


# ---- routing --------------------------------------------------------------


def test_unknown_paths(api, box):
    for path in ("/", "/v1", "/v1/", "/v1/sandboxes/", "/v4/sandboxes", "/v1/sandboxes/nobody",
                 f"{box.path}/nothing", "/health/", "/Health", "/v1/../health", "/%2e%2e/health",
                 "/v1/sandboxes/" + "x" * 300):
        response = api.get(path)
        assert (response.status, response.code()) == (404, "not_found"), path


def test_wrong_methods(api, box):
    for path, allowed in (
        ("/health", {"GET", "HEAD"}),
        ("/v1/sandboxes", {"GET", "POST"}),
        (box.path, {"GET", "DELETE"}),
        (f"{box.path}/exec", {"POST"}),
        (f"{box.path}/files/etc/passwd", {"GET", "HEAD", "PUT", "DELETE"}),
        ("/metrics", {"GET"}),
    ):
        response = api.request("PROPFIND", path)
        assert (response.status, response.code()) == (405, "method_not_allowed"), path
        assert {m.strip() for m in response.headers["allow"].split(",")} >= allowed, path
        assert "PROPFIND" not in response.headers["allow"]


def test_unknown_method_is_not_a_crash(api):
    response = api.request("BREW", "/health")
    assert response.status in (405, 501)


def test_open_routes_need_no_key(daemon):
    nobody = paddock.Client(daemon)
    for path in ("/health", "/healthz", "/readyz"):
        response = nobody.get(path)
        assert response.status == 200, path
    assert nobody.get("/openapi.json").status == 200
    nobody.close()


def test_everything_else_needs_a_key(daemon, box):
    routes = [
        ("GET", "/v1/sandboxes"), ("POST", "/v1/sandboxes"), ("GET", box.path), ("DELETE", box.path),
        ("POST", f"{box.path}/exec"), ("GET", f"{box.path}/files/etc/passwd"),
        ("PUT", f"{box.path}/files/tmp/x"), ("GET", "/v1/capabilities"), ("GET", "/v1/nothing"),
    ]
    good = daemon.key
    wrong = good[:-1] + ("0" if good[-1] != "0" else "1")
    for key in (None, wrong, good[:-2], good + "00", "pdk_", "pdk_zz", "x" * 4000, good.upper()):
        client = paddock.Client(daemon, key)
        for method, path in routes:
            response = client.request(method, path, b"{}" if method in ("POST", "PUT") else None)
            assert (response.status, response.code()) == (401, "unauthorized"), (key, method, path)
            assert response.headers["www-authenticate"].lower().startswith("bearer")
        client.close()


@pytest.mark.parametrize("value", ["{key}", "Basic {key}", "Bearer", "Bearer ", "Bearer  {key} x", "bearer{key}"])
def test_malformed_authorization(daemon, value):
    client = paddock.Client(daemon)
    response = client.request("GET", "/v1/sandboxes", headers={"Authorization": value.format(key=daemon.key)})
    assert (response.status, response.code()) == (401, "unauthorized")
    client.close()


def test_request_id(api):
    response = api.request("GET", "/v1/nothing", headers={"X-Request-Id": "abc-123"})
    assert response.json()["error"]["request_id"] == "abc-123"
    assert response.headers["x-request-id"] == "abc-123"
    response = api.request("GET", "/v1/nothing", headers={"X-Request-Id": 'a"b<script>' + "x" * 500})
    made = response.json()["error"]["request_id"]
    assert re.fullmatch(r"[A-Za-z0-9_.-]{1,64}", made) and made == response.headers["x-request-id"]


def test_capabilities(api):
    response = api.get("/v1/capabilities")
    assert response.status == 200
    assert "native" in json.dumps(response.json())


def test_stats(make_box):
    box = make_box(limits={"memory_mb": 300})
    before = box.client.get(box.path + "/stats").json()
    assert {"memory_bytes", "cpu_usec", "pids", "oom_kills", "disk_bytes", "net_rx_bytes", "net_tx_bytes"} <= set(before)
    box.exec("head -c 100000000 /dev/urandom | md5sum; sleep 7800 >/dev/null 2>&1 &")
    box.find_process("7800")
    after = box.client.get(box.path + "/stats").json()
    assert after["cpu_usec"] > before["cpu_usec"] + 10_000
    assert after["pids"] > before["pids"] and 0 < after["memory_bytes"] <= 300 << 20
    assert after["oom_kills"] == 0
    box.exec(["/usr/bin/python3", "-c", "bytearray(1 << 30)"])
    assert box.client.get(box.path + "/stats").json()["oom_kills"] > 0


def test_posture(api):
    posture = api.get("/v1/posture").json()
    assert posture["ok"] is True and posture["backend"] == "native"
    assert all(part["ok"] for part in posture["parts"] if part["required"]), posture


def test_health_shape(daemon):
    client = paddock.Client(daemon)
    response = client.get("/health")
    assert response.status == 200 and response.json()["status"] == "ok"
    assert client.request("HEAD", "/health").body == b""
    client.close()


def test_sigpipe_does_not_kill(daemon, api):
    for pid in (daemon.keeper_pid, daemon.api_pid()):
        os.kill(pid, signal.SIGPIPE)
    assert api.get("/health").status == 200
