"""Several workspaces in a box, each where the client says. test_workspaces.py has what is true of one."""

import json
import os

import pytest

import paddock
from clitool import Cli
from test_mounts import paddock_mounts


@pytest.fixture(scope="module")
def own(daemon_factory, workdir):
    """A daemon that is restarted, with a directory of the machine that may be mounted."""
    (workdir / "host").mkdir()
    os.chown(workdir / "host", 4321, 4321)
    config = workdir / "many.json"
    config.write_text(json.dumps({"mounts": {"allow": [{"path": str(workdir / "host"), "writable": True}]}}))
    it = daemon_factory("many", arguments=["--config", str(config)]).start()
    client = it.client()
    for name in ("a", "b", "c"):
        assert client.post("/v1/workspaces", {"name": name}).status == 201
    client.close()
    yield it
    it.finish()


@pytest.fixture
def make(own):
    client = own.client()
    with paddock.boxes_of(client) as make:
        yield make
    client.close()


def at(name, path, mode="rw"):
    return {"name": name, "path": path, "mode": mode}


def test_where_the_client_says(make, own):
    wish = [at("a", "/data"), at("b", "/home/user/deep/er"), at("c", "/workspace/in", "ro")]
    box = make(workspaces=wish)
    assert box.document["workspaces"] == wish and box.document["workspace"] is None
    assert box.check("for d in /data /home/user/deep/er /workspace; do stat -c %U $d && echo $d >$d/f || exit 1; done") == "user\n" * 3
    assert "Read-only" in box.exec("echo x >/workspace/in/f").err.decode()
    assert box.check("stat -c %U /home/user/deep") == "user\n", "as the owner of the directory that it is in"
    assert own.client().get("/v1/workspaces/b").json()["used_by"] == [
        {"id": box.id, "path": "/home/user/deep/er", "mode": "rw", "status": "running"}]
    options = {point: given.split(",") for _, point, given in paddock_mounts(box)}
    for path in ("/data", "/home/user/deep/er", "/workspace/in"):
        assert {"nosuid", "nodev"} <= set(options[path])
    box.delete()
    other = make(workspace="b", workspaces=[at("a", "/x/y", "ro"), at("a", "/x/z", "ro")])
    assert other.check("cat /workspace/f /x/y/f /x/z/f") == "/home/user/deep/er\n/data\n/data\n"
    assert other.document["workspace"] == {"name": "b", "mode": "rw"} and len(other.document["workspaces"]) == 3


def test_one_writer_of_each(make, own):
    first = make(workspaces=[at("a", "/a"), at("b", "/b", "ro")])
    client = own.client()
    refused = client.try_create(workspaces=[at("c", "/c"), at("a", "/elsewhere")])
    assert refused.status == 409 and refused.code() == "conflict", refused
    assert client.delete("/v1/workspaces/b").status == 409, "also where it is not the first, and is only read"
    second = make(workspaces=[at("b", "/b"), at("a", "/a", "ro")])
    second.check("echo x >/b/x")
    assert first.check("cat /b/x") == "x\n"
    forked = client.post(f"{first.path}/fork", {})
    assert forked.status == 409 and "clone that" in forked.json()["error"]["message"]


def test_stop_start_and_another_daemon(make, own):
    wish = [at("a", "/data/a"), at("b", "/opt/b", "ro")]
    box = make(workspaces=wish)
    box.check("echo kept >/data/a/f")
    own.restart()
    box.client = own.client()
    assert box.check("cat /data/a/f && echo more >>/data/a/f") == "kept\n", "the same mounts"
    # The keeper has it from its state file.
    assert box.client.delete("/v1/workspaces/a").status == 409
    assert box.client.try_create(workspaces=[at("a", "/data")]).status == 409
    copy = box.client.post("/v1/workspaces", {"name": "copy", "clone_of": "a"})
    assert copy.status == 201
    assert box.client.get("/v1/workspaces/copy/files/f").body == b"kept\nmore\n"
    assert box.client.delete("/v1/workspaces/copy").status == 204
    assert box.client.post(f"{box.path}/stop", {}).status == 200
    own.restart()
    box.client = own.client()
    assert box.client.post(f"{box.path}/start", {}).status == 200
    assert box.get()["workspaces"] == wish
    assert box.check("cat /data/a/f") == "kept\nmore\n"
    assert box.exec("touch /opt/b/x").exit_code != 0


def test_copies_of_the_box(make, own):
    """A fork has what can be shared; a snapshot has the box's own files, and the mount point."""
    box = make(workspaces=[at("a", "/data", "ro")])
    client = box.client
    twin = paddock.Box(client, client.post(f"{box.path}/fork", {}).json()["sandboxes"][0])
    assert twin.document["workspaces"] == [at("a", "/data", "ro")] and "/data" in [point for _, point, _ in paddock_mounts(twin)]
    twin.delete()
    snapshot = client.post(f"{box.path}/snapshots", {}).json()["id"]
    other = make(snapshot=snapshot)
    assert other.document["workspaces"] == [] and other.check("ls -A /data") == ""


@pytest.mark.parametrize("path", ["/proc", "/proc/x", "/sys", "/dev/shm/x", "/run", "/run/paddock", "/", "data", "", "/a/../b", "/a//b", "/a/",
                                  "/./a", "/" + "x" * 300])
def test_where_it_cannot_be(own, path):
    refused = own.client().try_create(workspaces=[at("a", path)])
    assert refused.status == 400 and "workspaces[0]" in refused.json()["error"]["message"], refused


def test_what_cannot_be(own, workdir):
    client = own.client()
    host = {"source": str(workdir / "host"), "path": "/mnt/x"}
    for body in ({"workspaces": [at("a", "/x"), at("b", "/x")]}, {"workspaces": [at("a", "/x/y"), at("b", "/x")]},
                 {"workspaces": [at("a", "/x"), at("b", "/x/y")]}, {"workspace": "a", "workspaces": [at("b", "/workspace")]},
                 {"workspace": "a", "workspaces": [at("b", "/workspace/b")]}, {"workspaces": "a"}, {"workspaces": [at("a", "/x", "wo")]},
                 {"workspaces": [{"path": "/x"}]}, {"workspaces": [at("a", f"/{i}", "ro") for i in range(9)]},
                 {"workspace": "a", "workspaces": [at("b", f"/{i}", "ro") for i in range(8)]},
                 {"workspaces": [at("a", "/mnt/x/y")], "mounts": [host]}, {"workspaces": [at("a", "/mnt")], "mounts": [host]}):
        assert client.try_create(**body).status == 400, body
    assert client.try_create(workspaces=[at("a", "/x"), at("none", "/y")]).status == 404
    assert client.try_create(workspaces=[at("a", "/no/such/place")], readonly_root=True).status == 400
    assert client.list() == []


# What root of a box leaves where its next start looks for the mount point.
TRAPS = {
    "a link to the root": "ln -s / /trap",
    "a link to /etc": "ln -s /etc /trap",
    "a link upwards": "ln -s ../../../.. /trap",
    "a magic link": "ln -s /proc/1/root /trap",
    "a link to nothing": "ln -s nothing /trap",
    "a file": "touch /trap",
    "a pipe": "mkfifo /trap",
}


@pytest.mark.parametrize("trap", TRAPS)
def test_the_box_cannot_lead_it_elsewhere(make, own, trap):
    """By files that a snapshot has. Nothing is mounted and nothing is made."""
    plain = make()
    plain.check(TRAPS[trap], user="root")
    snapshot = plain.client.post(f"{plain.path}/snapshots", {}).json()["id"]
    for path in ("/trap", "/trap/x", "/trap/x/y"):
        refused = plain.client.try_create(snapshot=snapshot, workspaces=[at("b", path)])
        assert refused.status == 400 and path in refused.json()["error"]["message"], refused
    free = make(snapshot=snapshot, workspaces=[at("b", "/b")])
    points = {point for _, point, _ in paddock_mounts(free)}
    assert "/b" in points and not points & {"/x", "/etc/x", "/trap", "/trap/x"}
    assert free.exec("test -e /x || test -e /etc/x || test -e /x/y").exit_code != 0


def test_a_start_that_was_led_astray(make):
    """What is above a mount point is the box's own, and may be something else when it is started again."""
    box = make(workspaces=[at("a", "/above/point")])
    box.check("echo x >/above/point/f")
    box.check("mv /above /other && mkdir /etc/point && ln -s /etc /above", user="root")
    assert box.client.post(f"{box.path}/stop", {}).status == 200
    refused = box.client.post(f"{box.path}/start", {})
    assert refused.status == 400 and "leads through a link" in refused.json()["error"]["message"], refused
    assert box.get()["status"] == "stopped"


def test_the_command_line(own):
    cli = Cli(own)
    assert cli.ok("run", "--workspace", "a:/data", "--workspace", "b:ro", "--", "sh", "-c", "echo w >/data/w; cat /data/w; ls -d /workspace") == "w\n/workspace\n"
    assert "Read-only" in cli.refused("run", "--workspace", "b", "--workspace", "a:/data:ro", "--", "touch", "/data/w")
    assert "--workspace wants" in cli.refused("run", "--workspace", "a:data", "--", "true")


def test_each_has_its_own_limit(make, own):
    """df shows the quota of what is there, not the sandbox's or another's."""
    client = own.client()
    sizes = {"small": 32, "large": 48}
    for name, size in sizes.items():
        made = client.post("/v1/workspaces", {"name": name, "disk_mb": size})
        if made.status == 501:
            pytest.skip("no quotas of disk on this machine")
        assert made.status == 201, made
    box = make(workspaces=[at("small", "/s"), at("large", "/l")])
    posture = client.get(f"{box.path}/posture").json()
    shown = box.check("df -B1M --output=size /s /l").split()[1:]
    if "disk" in json.dumps(posture):
        assert shown == ["32", "48"]
    assert box.exec("head -c 40M /dev/zero >/s/f").exit_code != 0, "and each is enforced"
    box.check("head -c 40M /dev/zero >/l/f")
    box.delete()
    for name in sizes:
        paddock.until(lambda one=name: client.delete(f"/v1/workspaces/{one}").status in (204, 404), "it is removed")
