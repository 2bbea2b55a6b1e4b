"""Tenants, their quotas, the machine's budget, and what boxes use."""

import pytest

import paddock


@pytest.fixture
def tenant(api, tenant):
    """With a quota that can be set."""
    def quota(**values):
        response = api.send_json("PUT", f"{tenant.path}/quota", values)
        assert response.status == 200, response
        return response.json()

    tenant.quota = quota
    return tenant


def used(api, tenant):
    return api.get(f"/v1/tenants/{tenant.name}/quota").json()["used"]


NONE = dict.fromkeys(("boxes", "cpu", "memory_mb", "disk_mb", "processes", "helpers", "workspaces", "snapshots", "templates",
                      "webhooks", "secrets", "secrets_kb"), 0)
SHOWN = {"events": 0, "logs_kb": 0, "verdicts": 0, "ai_calls": 0, "ai_text_kb": 0}


def is_used(api, tenant, **expected):
    """Nothing else is; events come as they come."""
    each = api.get("/v1/capabilities").json()["defaults"]["limits"].get("disk_mb", 0)
    assert {**used(api, tenant), "events": 0} == {**NONE, **SHOWN, "disk_mb": each * expected.get("boxes", 0), **expected}


def test_tenants(api, tenant):
    assert tenant.tenant["quota"] == {**NONE, "creates_per_minute": 0} and tenant.tenant["used"] == {**NONE, **SHOWN}
    listed = {one["id"]: one for one in api.get("/v1/tenants").json()["tenants"]}
    assert listed[tenant.tenant["id"]]["name"] == tenant.name and "default" in listed
    assert api.post("/v1/tenants", {"name": tenant.name}).code() == "conflict"
    for bad in ({"name": "a/b"}, {"name": ""}, {}, {"name": "x", "y": 1}):
        assert api.post("/v1/tenants", bad).code() == "invalid_argument"
    assert api.get("/v1/tenants/none/quota").code() == "not_found"
    by_id = api.get(f"/v1/tenants/{tenant.tenant['id']}/quota").json()
    assert by_id == api.get(f"/v1/tenants/{tenant.name}/quota").json()


def test_only_admins(tenant):
    for method, path, body in (("GET", "/v1/tenants", None), ("POST", "/v1/tenants", {"name": "x"}),
                               ("GET", f"/v1/tenants/{tenant.name}/quota", None),
                               ("PUT", f"/v1/tenants/{tenant.name}/quota", {"boxes": 0})):
        response = tenant.send_json(method, path, body) if body else tenant.request(method, path)
        assert (response.status, response.code()) == (403, "forbidden")


BAD = [{"boxes": -1}, {"boxes": "1"}, {"cpu": -0.5}, {"memory_mb": 1.5}, {"nonsense": 1}, [], {"creates_per_minute": 10**9}]


@pytest.mark.parametrize("values", BAD, ids=str)
def test_bad_quotas(api, tenant, values):
    response = api.send_json("PUT", f"/v1/tenants/{tenant.name}/quota", values)
    assert (response.status, response.code()) == (400, "invalid_argument")


def refused(response, code="quota_exceeded", status=429):
    assert (response.status, response.code()) == (status, code), response
    assert int(response.headers["retry-after"]) >= 1
    return response.json()["error"]["message"]


def test_boxes(api, tenant):
    tenant.quota(boxes=2)
    boxes = [tenant.create() for _ in range(2)]
    assert "sandboxes" in refused(tenant.try_create())
    assert used(api, tenant)["boxes"] == 2
    boxes[0].delete()
    tenant.create()
    refused(tenant.try_create())
    api.create().delete()  # another tenant's affair


def test_cpu_and_memory(api, tenant):
    tenant.quota(cpu=1.5, memory_mb=300)
    tenant.create(limits={"cpu": 1, "memory_mb": 100})
    is_used(api, tenant, boxes=1, cpu=1, memory_mb=100, processes=256)
    assert "CPU" in refused(tenant.try_create(limits={"cpu": 0.6, "memory_mb": 100}))
    assert "memory" in refused(tenant.try_create(limits={"cpu": 0.5, "memory_mb": 201}))
    tenant.create(limits={"cpu": 0.5, "memory_mb": 200})


def test_disk(api, tenant):
    tenant.quota(disk_mb=100)
    # Who asks for no limit gets a share: the quota does not lock its tenant out, and the first does not take it all.
    shared = tenant.try_create()
    if shared.status == 429 and "data.backend" in shared.json()["error"]["message"]:
        pytest.skip("no quotas of disk on this machine")
    assert shared.status == 201 and shared.json()["limits"]["disk_mb"] == 100 // 8, shared
    tenant.delete(f"/v1/sandboxes/{shared.json()['id']}")
    tenant.quota(disk_mb=100, boxes=4)
    boxes = [tenant.create() for _ in range(4)]
    assert {box.document["limits"]["disk_mb"] for box in boxes} == {25}
    for box in boxes:
        box.delete()
    tenant.quota(disk_mb=100)
    first = tenant.try_create(limits={"disk_mb": 60})
    if first.status == 501:
        pytest.skip("no quotas of disk on this machine")
    assert first.status == 201, first
    refused(tenant.try_create(limits={"disk_mb": 60}))
    tenant.create(limits={"disk_mb": 40})


def test_the_standard_disk_limit_and_a_quota(own_daemon):
    """A configured standard above the quota gives way to it, and one below it holds."""
    api = own_daemon(environment={"PADDOCK_DEFAULTS_DISK_MB": 200}).start().client()
    made = api.post("/v1/keys", {"tenant": "small", "role": "user", "create_tenant": True}).json()
    tenant = paddock.Client(api.daemon, made["key"])
    for quota, limit in ((100, 100), (500, 200)):
        assert api.send_json("PUT", "/v1/tenants/small/quota", {"disk_mb": quota}).status == 200
        response = tenant.try_create()
        if response.status in (429, 501) and "data.backend" in response.json()["error"]["message"]:
            pytest.skip("no quotas of disk on this machine")
        assert response.status == 201 and response.json()["limits"]["disk_mb"] == limit, response
        tenant.delete(f"/v1/sandboxes/{response.json()['id']}")
    tenant.close()


def test_stopped_boxes_use_no_memory(api, tenant):
    box = tenant.create(limits={"memory_mb": 100})
    paddock.kill(box.pid1())
    paddock.until(lambda: box.get()["status"] == "stopped", "it has stopped")
    is_used(api, tenant, boxes=1)


def test_rate(api, tenant):
    tenant.quota(creates_per_minute=3)
    for _ in range(3):
        tenant.create().delete()
    response = tenant.try_create()
    refused(response, "rate_limited")
    assert 1 <= int(response.headers["retry-after"]) <= 21
    tenant.quota(creates_per_minute=1200)
    for _ in range(5):
        tenant.create().delete()


def test_what_is_refused_leaves_nothing(api, tenant):
    tenant.quota(boxes=1)
    kept = tenant.create(name="kept")
    for _ in range(3):
        refused(tenant.try_create(name="again"))
    kept.delete()
    tenant.create(name="again")
    assert used(api, tenant)["boxes"] == 1


def test_quotas_survive_a_restart(own_daemon):
    daemon = own_daemon().start()
    api = daemon.client()
    assert api.send_json("PUT", "/v1/tenants/default/quota", {"boxes": 1, "cpu": 2.25}).status == 200
    box = api.create()
    daemon.restart()
    api = daemon.client()
    shown = api.get("/v1/tenants/default/quota").json()
    assert shown["quota"]["boxes"] == 1 and shown["quota"]["cpu"] == 2.25
    assert shown["used"]["boxes"] == 1 and shown["used"]["memory_mb"] == box.document["limits"]["memory_mb"]
    refused(api.try_create())


def test_budget_of_memory(own_daemon):
    daemon = own_daemon(environment={"PADDOCK_MAX_BUDGET_MEMORY_MB": "1100"}).start()
    api = daemon.client()
    one = api.create(limits={"memory_mb": 512})
    api.create(limits={"memory_mb": 512})
    message = refused(api.try_create(limits={"memory_mb": 512}), "unavailable", 503)
    assert "memory" in message and "1100" in message
    # two of 512 and three times 2 for the kernel leave 70
    refused(api.try_create(limits={"memory_mb": 71}), "unavailable", 503)
    api.create(limits={"memory_mb": 64})
    one.delete()
    stopped = api.create(limits={"memory_mb": 500})
    assert api.post(stopped.path + "/stop", {}).status == 200
    api.create(limits={"memory_mb": 500})
    refused(api.post(stopped.path + "/start", {}), "unavailable", 503)


def test_budget_of_cpu(own_daemon):
    daemon = own_daemon(environment={"PADDOCK_MAX_BUDGET_CPU": "1.5"}).start()
    api = daemon.client()
    api.create(limits={"cpu": 1})
    assert "CPU" in refused(api.try_create(limits={"cpu": 1}), "unavailable", 503)
    api.create(limits={"cpu": 0.5})


# ---- what boxes use ----


def test_stats(api, make_box):
    box = make_box(limits={"memory_mb": 128, "pids": 50})
    response = api.get(f"{box.path}/stats")
    assert response.status == 200
    before = response.json()
    assert before["memory_limit_bytes"] == 128 << 20 and before["pids_limit"] == 50
    assert before["pids"] >= 1 and before["memory_bytes"] > 0 and before["oom_kills"] == 0
    box.python("import time\nend = time.process_time() + 0.3\nwhile time.process_time() < end: pass")
    after = api.get(f"{box.path}/stats").json()
    assert after["cpu_usec"] >= before["cpu_usec"] + 250_000
    assert "history" not in after
    assert after["net_tx_bytes"] == after["net_rx_bytes"]
    box.python("import socket\ns = socket.socket(type=socket.SOCK_DGRAM)\ns.bind(('127.0.0.1', 0))\n"
               "for _ in range(100): s.sendto(bytes(10_000), s.getsockname())")
    used = api.get(f"{box.path}/stats").json()["net_tx_bytes"] - after["net_tx_bytes"]
    assert 1_000_000 <= used < 1_100_000, "what was sent, and the heads of packets"
    other = make_box()
    assert api.get(f"{other.path}/stats").json()["net_tx_bytes"] < 100_000, "each has its own"
    box.python("x = bytearray(300 << 20)")
    assert api.get(f"{box.path}/stats").json()["oom_kills"] >= 1
    assert api.get(f"{box.path}/stats?history=x").code() == "invalid_argument"


@pytest.mark.slow
def test_history(api, make_box):
    box = make_box()

    def samples():
        return api.get(f"{box.path}/stats?history=1").json()["history"]

    paddock.until(samples, "the first sample")
    box.python("import time\nend = time.process_time() + 0.2\nwhile time.process_time() < end: pass")
    history = paddock.until(lambda: len(h := samples()) >= 2 and h, "the second sample")
    assert [sample["at"] for sample in history] == sorted(sample["at"] for sample in history)
    assert history[1]["cpu_usec"] >= history[0]["cpu_usec"] + 150_000
    assert set(history[0]) == {"at", "cpu_usec", "memory_bytes", "disk_bytes", "pids", "oom_kills", "net_rx_bytes", "net_tx_bytes"}
