"""One ledger of what a tenant holds: everything counts, against its own tenant and nobody else's."""

import concurrent.futures
import time

import pytest

import paddock

KB = 1024


class Tenant:
    """A client of a tenant of its own, with a quota."""

    def __init__(self, api, daemon, name):
        self.api, self.name = api, f"{name}-{time.monotonic_ns()}"
        made = api.post("/v1/tenants", {"name": self.name})
        assert made.status == 201, made
        self.key = api.post("/v1/keys", {"tenant": self.name, "role": "user"}).json()
        self.client = daemon.client(self.key["key"])

    def __getattr__(self, name):
        return getattr(self.client, name)

    def quota(self, **values):
        response = self.api.send_json("PUT", f"/v1/tenants/{self.name}/quota", values)
        assert response.status == 200, response
        return response.json()

    def show(self):
        return self.api.get(f"/v1/tenants/{self.name}/quota").json()

    @property
    def used(self):
        return self.show()["used"]

    def close(self):
        for box in self.list():
            self.delete(f"/v1/sandboxes/{box['id']}")
        for one in self.get("/v1/snapshots").json()["snapshots"]:
            self.delete(f"/v1/snapshots/{one['id']}")
        for one in self.get("/v1/workspaces").json()["workspaces"]:
            assert self.delete(f"/v1/workspaces/{one['name']}").status == 204
        self.client.close()
        assert self.api.delete(f"/v1/keys/{self.key['id']}").status == 204


@pytest.fixture
def two(api, daemon):
    tenants = [Tenant(api, daemon, "greedy"), Tenant(api, daemon, "other")]
    yield tenants
    for one in tenants:
        one.close()


def refused(response, *words):
    assert (response.status, response.code()) == (429, "quota_exceeded"), response
    message = response.json()["error"]["message"]
    for word in words:
        assert word in message, message


def workspace(tenant, name, **wish):
    return tenant.post("/v1/workspaces", {"name": name, **wish})


def need_disk_limits(response):
    if response.status == 501:
        pytest.skip("no quotas of disk on this machine")
    assert response.status == 201, response
    return response


def test_workspaces_are_disk(two):
    greedy, other = two
    greedy.quota(disk_mb=100)
    assert need_disk_limits(workspace(greedy, "w0")).json()["disk"]["limit_mb"] == 100 // 8, "a share of it"
    assert greedy.delete("/v1/workspaces/w0").status == 204
    need_disk_limits(workspace(greedy, "w1", disk_mb=60))
    assert greedy.used["disk_mb"] == 60 and greedy.used["workspaces"] == 1
    refused(workspace(greedy, "w2", disk_mb=60), "disk", "60 of 100")
    refused(greedy.post("/v1/workspaces", {"name": "w2", "clone_of": "w1"}), "disk")
    refused(greedy.try_create(limits={"disk_mb": 60}), "disk")
    assert workspace(other, "w2", disk_mb=60).status == 201, "it is another tenant's"
    assert greedy.delete("/v1/workspaces/w1").status == 204
    assert greedy.used["disk_mb"] == 0
    greedy.create(limits={"disk_mb": 60}).delete()


def test_snapshots_are_disk(two):
    greedy, other = two
    boxes = []
    for tenant in two:
        boxes.append(paddock.Box(tenant.client, need_disk_limits(tenant.try_create(limits={"disk_mb": 64})).json()))
        boxes[-1].check("dd if=/dev/urandom of=/workspace/big bs=1M count=20 status=none")
    greedy.quota(disk_mb=100)
    taken = greedy.post(f"{boxes[0].path}/snapshots", {})
    assert taken.status == 201, taken
    assert 64 + 20 <= greedy.used["disk_mb"] <= 64 + 36, greedy.used
    assert greedy.used["snapshots"] == 1
    refused(greedy.post(f"{boxes[0].path}/snapshots", {}), "disk")
    assert len(greedy.get("/v1/snapshots").json()["snapshots"]) == 1, "what is refused leaves nothing"
    assert other.post(f"{boxes[1].path}/snapshots", {}).status == 201
    assert greedy.delete(f"/v1/snapshots/{taken.json()['id']}").status == 204
    assert greedy.used["disk_mb"] == 64
    assert greedy.post(f"{boxes[0].path}/snapshots", {}).status == 201


def test_numbers(two):
    greedy, other = two
    greedy.quota(workspaces=1, snapshots=1, templates=1, webhooks=1, processes=300)
    box, its = greedy.create(), other.create()
    refused(greedy.try_create(), "processes", "256 of 300")
    hook = {"url": "http://127.0.0.1:9/", "events": ["oom"]}
    for path, body, word in (("/v1/workspaces", lambda i: {"name": f"w{i}"}, "workspaces"),
                             (f"{box.path}/snapshots", lambda i: {}, "snapshots"),
                             ("/v1/webhooks", lambda i: hook, "webhooks")):
        assert greedy.post(path, body(1)).status == 201
        refused(greedy.post(path, body(2)), word, "1 of 1")
        assert other.post(path.replace(box.id, its.id), body(2)).status == 201
    used = greedy.used
    assert (used["workspaces"], used["snapshots"], used["webhooks"], used["processes"]) == (1, 1, 1, 256)
    assert used["events"] >= 1
    for tenant in two:
        for one in tenant.get("/v1/webhooks").json()["webhooks"]:
            tenant.delete(f"/v1/webhooks/{one['id']}")


def test_hidden_sandboxes(two):
    """Those that reach the files of workspaces: so many of a tenant, whatever its quota of sandboxes."""
    greedy, other = two
    greedy.quota(boxes=1, helpers=3)
    for tenant in two:
        for i in range(8):
            assert workspace(tenant, f"w{i}").status == 201

    def touch(tenant, i):
        client = tenant.client.daemon.client(tenant.key["key"])
        response = client.request("PUT", f"/v1/workspaces/w{i}/files/f", b"x")
        client.close()
        return response

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda i: touch(greedy, i), range(8)))
    good = [one for one in answers if one.status in (200, 201, 204)]
    assert 1 <= len(good) <= 3, [one.status for one in answers]
    for one in answers:
        if one not in good:
            refused(one, "hidden")
    assert greedy.used["helpers"] == len(good) and greedy.used["boxes"] == 0
    assert touch(other, 0).status in (200, 201, 204), "another tenant's affair"
    assert touch(greedy, answers.index(good[0])).status in (200, 201, 204), "one that is there is used"


def test_secrets(two):
    greedy, other = two
    greedy.quota(secrets=3, secrets_kb=64)

    def put(tenant, name, size):
        return tenant.send_json("PUT", f"/v1/secrets/{name}", {"value": "x" * size})

    for i in range(3):
        assert put(greedy, f"s{i}", 10).status in (200, 201)
    refused(put(greedy, "s3", 10), "secrets", "3 of 3")
    assert put(greedy, "s0", 40 * KB).status in (200, 201)
    refused(put(greedy, "s0", 40 * KB), "secrets' files", "KiB")
    assert put(other, "s3", 40 * KB).status in (200, 201)
    assert greedy.used["secrets"] == 3 and 40 <= greedy.used["secrets_kb"] <= 44
    assert greedy.delete("/v1/secrets/s0").status == 204
    assert greedy.used["secrets"] == 2 and greedy.used["secrets_kb"] <= 2
    assert put(greedy, "s0", 40 * KB).status in (200, 201)
    for tenant in two:
        for one in tenant.get("/v1/secrets").json()["secrets"]:
            tenant.delete(f"/v1/secrets/{one['name']}")
    assert greedy.used["secrets"] == 0 and greedy.used["secrets_kb"] == 0


def test_secrets_of_sandboxes_count(two):
    greedy, _ = two
    greedy.quota(secrets=1)
    box = greedy.create()
    assert greedy.send_json("PUT", f"{box.path}/secrets/a", {"value": "x"}).status in (200, 201)
    refused(greedy.send_json("PUT", "/v1/secrets/b", {"value": "x"}), "secrets")
    box.delete()
    paddock.until(lambda: greedy.used["secrets"] == 0, "they go with it")
    assert greedy.send_json("PUT", "/v1/secrets/b", {"value": "x"}).status in (200, 201)
    assert greedy.delete("/v1/secrets/b").status == 204


def test_templates(two):
    greedy, other = two
    greedy.quota(templates=1)

    def request(tenant, name):
        client = tenant.client.daemon.client(tenant.key["key"])
        response = client.post("/v3/templates", {"name": name})
        client.close()
        return response

    assert request(greedy, "one").status in (200, 201, 202)
    answer = request(greedy, "two")
    assert answer.status == 429 and "templates" in answer.body.decode(), answer
    assert request(other, "two").status in (200, 201, 202)
    assert greedy.used["templates"] == 1


def test_defaults_and_restart(own_daemon):
    """Without a quota the configuration decides; all of it is there after a restart."""
    daemon = own_daemon(environment={"PADDOCK_MAX_TENANT_WORKSPACES": "2", "PADDOCK_MAX_TENANT_SECRETS": "0"}).start()
    api = daemon.client()
    shown = api.get("/v1/tenants/default/quota").json()
    assert shown["limits"]["workspaces"] == 2 and shown["quota"]["workspaces"] == 0
    assert shown["limits"]["secrets"] == 0 and shown["limits"]["helpers"] == 16
    for i in range(2):
        assert api.post("/v1/workspaces", {"name": f"w{i}"}).status == 201
    refused(api.post("/v1/workspaces", {"name": "w2"}), "workspaces", "2 of 2")
    numbers = {"boxes": 5, "cpu": 2.5, "memory_mb": 4000, "disk_mb": 6, "processes": 7000, "helpers": 8, "workspaces": 3,
               "snapshots": 10, "templates": 11, "webhooks": 12, "secrets": 13, "secrets_kb": 14, "creates_per_minute": 15}
    assert api.send_json("PUT", "/v1/tenants/default/quota", numbers).status == 200
    assert api.send_json("PUT", "/v1/secrets/kept", {"value": "x" * 5 * KB}).status in (200, 201)
    before = api.get("/v1/tenants/default/quota").json()
    assert before["quota"] == numbers == before["limits"]
    daemon.restart()
    api = daemon.client()
    paddock.until(lambda: api.get("/v1/tenants/default/quota").json()["used"]["secrets"] == 1, "the vault tells")
    after = api.get("/v1/tenants/default/quota").json()
    assert after["quota"] == numbers
    for item in ("workspaces", "secrets", "secrets_kb", "disk_mb"):
        assert after["used"][item] == before["used"][item], item
