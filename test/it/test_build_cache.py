"""What builds keep between their steps: found by others, also after a failure and a restart, and bounded."""

import json

import pytest

import paddock
from test_e2b import E2B
from test_ledger import Tenant
from test_templates import archive, begin, finish, request, status, step

UUID = "cat /proc/sys/kernel/random/uuid"


@pytest.fixture(scope="module")
def own(daemon_factory, workdir):
    """Its cache has room for little."""
    config = workdir / "cache.json"
    config.write_text(json.dumps({"max": {"build_cache_mb": 24}, "defaults": {"disk_mb": 64}}))
    it = daemon_factory("cache", arguments=["--config", str(config)]).start()
    yield it
    it.finish()


@pytest.fixture
def tenant(own):
    """A tenant of its own: what is cached is told by how many of its steps are."""
    admin = own.client()
    it = Tenant(admin, own, "builder")
    it.e2b = E2B(own, it.key["key"])
    yield it
    for template in it.e2b.call("GET", "/templates").json():
        paddock.until(lambda one=template: it.e2b.call("DELETE", f"/templates/{one['templateID']}").status in (204, 404), "it is removed")
    it.e2b.close(), it.close(), admin.close()


class Build:
    def __init__(self, tenant, *steps, name="t", **plan):
        self.build = request(tenant.e2b, name)
        assert begin(tenant.e2b, self.build, steps=list(steps), **plan).status == 202
        self.end = finish(tenant.e2b, self.build)
        paddock.until(lambda: tenant.used["boxes"] == 0, "the sandbox of the build, which counts as disk, is removed")
        self.logs = status(tenant.e2b, self.build)["logs"]
        self.cached = sum(line.startswith("CACHED ") for line in self.logs)
        self.ok = self.end["status"] == "ready"

    def said(self, word):
        """What a step printed after this word."""
        return [line.split()[1] for line in self.logs if line.startswith(word + " ")]


ONE = step("RUN", f"{UUID} >/opt/one; echo one $(cat /opt/one)", "root")
TWO = step("RUN", f"{UUID} >/opt/two; echo two $(cat /opt/two)", "root")
SHOW = step("RUN", "echo one $(cat /opt/one); echo two $(cat /opt/two)", "root")
FAILS = step("RUN", "exit 3", "root")


def test_steps_before_a_failure_are_kept(tenant):
    first = Build(tenant, step("ENV", "WHO", "me"), ONE, step("WORKDIR", "/srv/x"), TWO, step("USER", "worker"), FAILS)
    assert not first.ok and first.cached == 0
    second = Build(tenant, step("ENV", "WHO", "me"), ONE, step("WORKDIR", "/srv/x"), TWO, step("USER", "worker"),
                   step("RUN", "echo state $WHO:$PWD:$(id -un)"), SHOW)
    assert second.ok and second.cached == 4, "USER is run again: only what changes files is kept"
    assert second.said("one") == first.said("one") and second.said("two") == first.said("two")
    assert second.said("state") == ["me:/srv/x:worker"]


def test_a_change_in_the_middle(tenant):
    first = Build(tenant, ONE, step("RUN", "echo a >/opt/a", "root"), TWO)
    assert first.ok and first.cached == 0
    second = Build(tenant, ONE, step("RUN", "echo b >/opt/a", "root"), TWO, SHOW)
    assert second.cached == 1 and second.said("one") == first.said("one")
    assert second.said("two")[0] != first.said("two")[0], "what comes after a change is run"
    third = Build(tenant, ONE, step("RUN", "echo a >/opt/a", "root"), TWO, SHOW, name="other")
    assert third.cached == 3 and third.said("two") == first.said("two"), "both ways are kept"


def test_files_count(tenant, own):
    def copied(files_hash, text):
        build = request(tenant.e2b, "t")
        link = tenant.e2b.call("GET", f"/templates/{build['templateID']}/files/{files_hash}").json()
        assert own.client().request("PUT", link["url"].split(f":{own.port}")[1], archive(f=text)).status == 200
        steps = [step("COPY", "f", "/opt/f", "root", "", filesHash=files_hash), ONE]
        assert begin(tenant.e2b, build, steps=[*steps, FAILS]).status == 202
        finish(tenant.e2b, build)
        return sum(line.startswith("CACHED ") for line in status(tenant.e2b, build)["logs"])

    assert [copied("aaaa", b"1"), copied("aaaa", b"1"), copied("bbbb", b"2"), copied("aaaa", b"1")] == [0, 2, 0, 2]


def test_what_is_asked_to_run_runs(tenant):
    steps = [ONE, TWO, FAILS]
    first = Build(tenant, *steps)
    whole = Build(tenant, *steps, force=True)
    assert whole.cached == 0 and whole.said("one") != first.said("one")
    again = Build(tenant, *steps)
    assert again.cached == 2
    part = Build(tenant, ONE, {**TWO, "force": True}, SHOW)
    assert part.cached == 1 and part.said("one") == whole.said("one") and part.said("two")[0] not in whole.said("two")
    last = Build(tenant, ONE, TWO, SHOW)
    assert last.cached == 3 and last.said("two") == []
    assert Build(tenant, ONE, TWO, SHOW, FAILS).cached == 3


@pytest.mark.parametrize("how", ["restart", "crash"])
def test_they_outlive_the_daemon(own, how):
    admin = own.client()
    it = Tenant(admin, own, f"builder-{how}")
    it.e2b = E2B(own, it.key["key"])
    first = Build(it, step("ENV", "WHO", "me"), ONE, FAILS)
    it.e2b.close(), it.client.close(), admin.close()
    if how == "restart":
        own.restart()
    else:
        own.kill_api()
    it.api, it.client, it.e2b = own.client(), own.client(it.key["key"]), E2B(own, it.key["key"])
    second = Build(it, step("ENV", "WHO", "me"), ONE, step("RUN", "echo one $(cat /opt/one); echo who $WHO", "root"))
    assert second.cached == 2 and second.said("one") == first.said("one") and second.said("who") == ["me"]
    [template] = it.e2b.call("GET", "/templates").json()
    assert it.e2b.call("DELETE", f"/templates/{template['templateID']}").status == 204
    it.e2b.close(), it.close(), it.api.close()


def test_nobody_sees_them(tenant, own):
    Build(tenant, ONE, FAILS)
    assert tenant.get("/v1/snapshots").json()["snapshots"] == [] and tenant.e2b.call("GET", "/snapshots").json() == []
    assert tenant.used["snapshots"] == 0 and tenant.used["disk_mb"] >= 1, "but they count as disk"
    admin = own.client()
    other = Tenant(admin, own, "neighbour")
    other.e2b = E2B(own, other.key["key"])
    assert Build(other, ONE, FAILS).cached == 0, "nor does another tenant have them"
    for one in (tenant, other):
        for template in one.e2b.call("GET", "/templates").json():
            assert one.e2b.call("DELETE", f"/templates/{template['templateID']}").status == 204
        assert one.used["disk_mb"] == 0, "they go with their template"
    other.e2b.close(), other.close(), admin.close()


def large(name, mb=8):
    return step("RUN", f"head -c {mb}M /dev/urandom >/opt/{name}", "root")


def test_the_longest_unused_makes_room(tenant):
    """24 MiB: three chains of 8 do not fit beside what is new. What is behind the last step shares files with what is before."""
    for name in ("a", "b"):
        assert Build(tenant, large(name), step("RUN", "true", "root"), FAILS, name=name).cached == 0
    assert 16 <= tenant.used["disk_mb"] <= 24, "each is counted once"
    assert Build(tenant, large("a"), step("RUN", "true", "root"), FAILS, name="a").cached == 2
    Build(tenant, large("c"), step("RUN", "true", "root"), FAILS, name="c")
    assert tenant.used["disk_mb"] <= 24
    assert Build(tenant, large("c"), step("RUN", "true", "root"), FAILS, name="c").cached == 2
    assert Build(tenant, large("b"), FAILS, name="b").cached == 0, "it was not used for longest"
    Build(tenant, large("huge", 40), FAILS, name="huge")
    assert tenant.used["disk_mb"] <= 24 and Build(tenant, large("huge", 40), FAILS, name="huge").cached == 0


def test_a_quota_needs_the_room(tenant):
    tenant.quota(disk_mb=100)
    Build(tenant, large("a", 16), FAILS)
    assert tenant.used["disk_mb"] >= 16
    made = tenant.post("/v1/workspaces", {"name": "needed", "disk_mb": 95})
    assert made.status == 201, made
    assert tenant.used["disk_mb"] == 95
    assert tenant.delete("/v1/workspaces/needed").status == 204
    assert Build(tenant, large("a", 16), FAILS).cached == 0
