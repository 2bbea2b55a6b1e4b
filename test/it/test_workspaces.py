"""Workspaces: files with a name of their own, which outlive boxes."""

import os

import pytest

import paddock


@pytest.fixture
def workspaces(api):
    """Makes workspaces that are removed after the test."""
    made = []

    def make(name, **body):
        response = api.post("/v1/workspaces", {"name": name, **body})
        assert response.status == 201, response
        made.append(name)
        return response.json()

    yield make
    for name in reversed(made):
        paddock.until(lambda: api.delete(f"/v1/workspaces/{name}").status in (204, 404), f"workspace {name} is removed")


def files(client, name, path, method="GET", body=None, query=""):
    return client.request(method, f"/v1/workspaces/{name}/files/{path}" + (f"?{query}" if query else ""), body)


def test_a_workspace_survives_its_boxes(workspaces, make_box, api):
    made = workspaces("code")
    assert set(made) == {"id", "name", "tenant", "disk", "readonly", "used_by", "created_at"}
    assert made["name"] == "code" and made["used_by"] == [] and made["disk"]["limit_mb"] == api.get("/v1/capabilities").json()["defaults"]["limits"].get("disk_mb")
    box = make_box(workspace="code")
    assert box.document["workspace"] == {"name": "code", "mode": "rw"}
    assert box.check("echo hello > f; stat -c '%U %n' f; pwd") == "user f\n/workspace\n"
    assert api.get("/v1/workspaces/code").json()["used_by"] == [{"id": box.id, "path": "/workspace", "mode": "rw", "status": "running"}]
    box.delete()
    assert api.get("/v1/workspaces/code").json()["used_by"] == []
    again = make_box(workspace={"name": "code", "mode": "rw"})
    assert again.check("cat f; echo more >> f; cat f") == "hello\nhello\nmore\n"


def test_rw_is_exclusive_and_ro_is_shared(workspaces, make_box, api):
    workspaces("shared")
    writer = make_box(workspace="shared")
    writer.put("/workspace/f", b"by the writer")
    second = api.try_create(workspace="shared")
    assert second.status == 409 and second.code() == "conflict", second
    readers = [make_box(workspace={"name": "shared", "mode": "ro"}) for _ in range(2)]
    for reader in readers:
        assert reader.check("cat f") == "by the writer"
        assert "Read-only" in reader.exec("echo x > f").err.decode()
        assert reader.exec("echo x > /workspace/new", user="root").exit_code != 0
    writer.put("/workspace/f", b"changed")
    assert readers[0].check("cat f") == "changed"
    writer.delete()
    make_box(workspace="shared").check("cat f")


def test_a_stopped_box_gives_way(workspaces, make_box, api):
    workspaces("lent")
    first = make_box(workspace="lent")
    first.put("/workspace/f", b"1")
    assert api.request("POST", first.path + "/stop").status == 200
    second = make_box(workspace="lent")
    refused = api.request("POST", first.path + "/start")
    assert refused.status == 409 and refused.code() == "conflict"
    second.put("/workspace/f", b"2")
    second.delete()
    assert api.request("POST", first.path + "/start").status == 200
    assert first.check("cat f") == "2"


def test_deletable_only_when_not_in_use(workspaces, make_box, api):
    workspaces("used")
    box = make_box(workspace={"name": "used", "mode": "ro"})
    refused = api.delete("/v1/workspaces/used")
    assert refused.status == 409 and refused.code() == "wrong_state"
    assert api.request("POST", box.path + "/stop").status == 200
    assert api.delete("/v1/workspaces/used").status == 409, "a stopped box needs it to start again"
    box.delete()
    assert api.delete("/v1/workspaces/used").status == 204
    assert api.get("/v1/workspaces/used").status == 404 and api.delete("/v1/workspaces/used").status == 404
    assert api.try_create(workspace="used").status == 404


def test_clone(workspaces, make_box, api):
    workspaces("origin", disk_mb=64)
    box = make_box(workspace="origin")
    box.put("/workspace/f", b"original")
    copy = workspaces("copy", clone_of="origin")
    assert copy["disk"]["limit_mb"] == 64
    box.put("/workspace/f", b"changed")
    other = make_box(workspace="copy")
    assert other.check("cat f") == "original"
    other.put("/workspace/f", b"other")
    assert box.check("cat f") == "changed"
    assert api.post("/v1/workspaces", {"name": "x", "clone_of": "none"}).status == 404


def test_files_without_a_box(workspaces, make_box, api):
    workspaces("files")
    assert files(api, "files", "a/b.txt", "PUT", b"from outside").status == 201
    assert files(api, "files", "a/b.txt", "PUT", b"again").status == 200
    assert files(api, "files", "a/b.txt").body == b"again"
    assert api.request("HEAD", "/v1/workspaces/files/files/a/b.txt").headers["content-length"] == "5"
    listed = files(api, "files", "", query="list=1")
    assert listed.status == 200 and [entry["name"] for entry in listed.json()["entries"]] == ["a"]
    big = os.urandom(3_000_000)
    assert files(api, "files", "big", "PUT", big).status == 201
    assert files(api, "files", "big").body == big
    # A box at the same time sees the same files.
    box = make_box(workspace="files")
    assert box.check("cat a/b.txt; stat -c %U a/b.txt") == "againuser\n"
    box.put("/workspace/from-box", b"inside")
    assert files(api, "files", "from-box").body == b"inside"
    assert files(api, "files", "a", "DELETE", query="recursive=1").status == 204
    assert box.exec("ls a").exit_code != 0
    assert [one["id"] for one in api.list() if one["workspace"]] == [box.id], "the helper is in no list"
    assert api.get("/v1/workspaces/files").json()["used_by"] == [{"id": box.id, "path": "/workspace", "mode": "rw", "status": "running"}]


def test_wrong_files(workspaces, api):
    workspaces("strict")
    assert files(api, "strict", "none").status == 404
    assert files(api, "none", "f").status == 404
    assert files(api, "strict", "a/../../etc/passwd").status == 400
    assert files(api, "strict", "a/%2e%2e/x", "PUT", b"").status == 400
    assert files(api, "strict", "f", query="nonsense=1").status == 400
    assert files(api, "strict", "", "DELETE", query="recursive=1").status in (403, 409), "the workspace itself stays"
    assert files(api, "strict", "f", "PUT", b"x").status == 201


def test_a_workspace_with_a_helper_can_be_deleted(workspaces, api):
    workspaces("helped")
    assert files(api, "helped", "f", "PUT", b"x").status == 201
    assert api.delete("/v1/workspaces/helped").status == 204
    workspaces("helped")
    assert files(api, "helped", "f").status == 404, "a new one of the same name is empty"


def test_the_helper_goes_when_nobody_asks(own_daemon):
    daemon = own_daemon().start()
    api = daemon.client()
    assert api.post("/v1/workspaces", {"name": "w"}).status == 201
    assert files(api, "w", "f", "PUT", b"x").status == 201
    helper, = os.listdir(daemon.run_dir / "boxes")
    assert api.get(f"/v1/sandboxes/{helper}").status == 404, "nobody sees it, whoever knows its id"
    assert api.post(f"/v1/sandboxes/{helper}/exec", {"argv": ["true"]}).status == 404
    paddock.until(lambda: not os.listdir(daemon.run_dir / "boxes"), "the helper is gone", 20)
    assert files(api, "w", "f").body == b"x"
    another, = os.listdir(daemon.run_dir / "boxes")
    assert another != helper
    # What is left of one at a restart is cleared away.
    daemon.restart()
    paddock.until(lambda: not os.listdir(daemon.run_dir / "boxes"), "the old helper is cleared away")
    api = daemon.client()
    assert files(api, "w", "f").body == b"x"
    assert api.delete("/v1/workspaces/w").status == 204


def test_workspaces_survive_a_restart(own_daemon):
    daemon = own_daemon().start()
    api = daemon.client()
    assert api.post("/v1/workspaces", {"name": "kept", "disk_mb": 50}).status == 201
    box = api.create(workspace="kept")
    box.put("/workspace/f", b"kept")
    daemon.restart()
    api = daemon.client()
    listed, = api.get("/v1/workspaces").json()["workspaces"]
    assert listed["name"] == "kept" and listed["disk"]["limit_mb"] == 50
    assert listed["used_by"] == [{"id": box.id, "path": "/workspace", "mode": "rw", "status": "running"}]
    assert api.try_create(workspace="kept").status == 409, "it is still exclusive"
    assert api.delete("/v1/workspaces/kept").status == 409
    box.with_client(api).delete()
    assert api.create(workspace="kept").check("cat f") == "kept"
    daemon.delete_all()
    assert api.delete("/v1/workspaces/kept").status == 204


def test_list_and_wrong_wishes(workspaces, api):
    one, two = workspaces("list-1"), workspaces("list-2", disk_mb=10)
    names = [w["name"] for w in api.get("/v1/workspaces").json()["workspaces"]]
    assert [name for name in names if name.startswith("list-")] == [one["name"], two["name"]]
    assert api.get(f"/v1/workspaces/{two['id']}").json()["name"] == "list-2"
    assert api.post("/v1/workspaces", {"name": "list-1"}).code() == "conflict"
    for body in ({}, {"name": ""}, {"name": "a/b"}, {"name": 1}, {"name": "x", "disk_mb": 0}, {"name": "x", "size": 1}):
        assert api.post("/v1/workspaces", body).status == 400, body
    for wish in (1, "", {"mode": "ro"}, {"name": "list-1", "mode": "x"}, {"name": "list-1", "extra": 1}, []):
        assert api.try_create(workspace=wish).status == 400, wish
    assert api.try_create(workspace="none").status == 404


def test_tenants_do_not_see_each_other(workspaces, api, daemon):
    made = workspaces("private")
    assert files(api, "private", "secret", "PUT", b"secret").status == 201
    key = api.post("/v1/keys", {"tenant": "stranger-ws", "create_tenant": True}).json()
    stranger = daemon.client(key["key"])
    assert stranger.get("/v1/workspaces").json()["workspaces"] == []
    for ref in ("private", made["id"]):
        assert stranger.get(f"/v1/workspaces/{ref}").status == 404
        assert stranger.delete(f"/v1/workspaces/{ref}").status == 404
        assert files(stranger, ref, "secret").status == 404
        assert files(stranger, ref, "secret", "PUT", b"x").status == 404
        assert stranger.try_create(workspace=ref).status == 404
        assert stranger.post("/v1/workspaces", {"name": "stolen", "clone_of": ref}).status == 404
    assert stranger.post("/v1/workspaces", {"name": "private"}).status == 201, "names are each tenant's own"
    assert files(stranger, "private", "secret").status == 404
    assert files(api, "private", "secret").body == b"secret"
    assert stranger.delete("/v1/workspaces/private").status == 204
    assert api.delete(f"/v1/keys/{key['id']}").status == 204


def test_fork_leaves_an_exclusive_workspace_alone(workspaces, make_box, api):
    workspaces("exclusive")
    box = make_box(workspace="exclusive")
    refused = api.post(box.path + "/fork", {"count": 1})
    assert refused.status == 409 and refused.code() == "wrong_state"
    box.delete()
    reader = make_box(workspace={"name": "exclusive", "mode": "ro"})
    response = api.post(reader.path + "/fork", {"count": 1})
    assert response.status == 201, response
    fork = paddock.Box(api, response.json()["sandboxes"][0])
    assert fork.document["workspace"] == {"name": "exclusive", "mode": "ro"}
    fork.delete()


def test_snapshot_of_a_workspace(workspaces, make_box, api):
    """A clone that never changes: read by any number of boxes and without one, cloned, removed."""
    workspaces("living")
    box = make_box(workspace="living")
    box.put("/workspace/f", b"then")
    made = workspaces("kept", clone_of="living", readonly=True)
    assert made["readonly"] and not api.get("/v1/workspaces/living").json()["readonly"]
    box.put("/workspace/f", b"now")
    readers = [make_box(workspace={"name": "kept", "mode": "ro"}) for _ in range(2)]
    for reader in readers:
        assert reader.check("cat /workspace/f") == "then"
        assert "Read-only" in reader.exec("echo x > /workspace/f", user="root").err.decode()
    refused = api.try_create(workspace="kept")
    assert (refused.status, refused.code()) == (409, "wrong_state") and "ro" in refused.json()["error"]["message"]
    assert api.get("/v1/workspaces/kept/files/f").body == b"then"
    for method, path in (("PUT", "f"), ("PUT", "new"), ("DELETE", "f")):
        response = api.request(method, f"/v1/workspaces/kept/files/{path}", b"x" if method == "PUT" else None)
        assert (response.status, response.code()) == (409, "wrong_state")
    workspaces("again", clone_of="kept")
    assert make_box(workspace="again").check("cat /workspace/f; echo more >> /workspace/f; cat /workspace/f") == "thenthenmore\n"
    wrong = api.post("/v1/workspaces", {"name": "empty", "readonly": True})
    assert (wrong.status, wrong.code()) == (400, "invalid_argument")
