"""Directories of the machine in a box: off by default, for administrators and tenants that the configuration names."""

import json
import os
import subprocess

import pytest

import paddock
from clitool import Cli

OWNER = 4321  # a user of the machine that nothing else is


@pytest.fixture(scope="module")
def shared(workdir):
    """A tree of OWNER's with traps in it, and a configuration that allows it."""
    base = workdir / "shared"
    (base / "data" / "sub").mkdir(parents=True)
    (base / "data" / "file").write_text("of the machine\n")
    (base / "data" / "private").write_text("of the owner\n")
    (base / "data" / "private").chmod(0o600)
    (base / "data" / "link").symlink_to("/etc")
    (base / "data" / "inner").symlink_to("sub")
    for path in (base, *base.rglob("*")):
        os.chown(path, OWNER, OWNER, follow_symlinks=False)
    (base / "data" / "roots").write_text("of root\n")
    (base / "data" / "roots").chmod(0o600)
    (base / "root").mkdir()
    (base / "root" / "file").write_text("readable\n")
    (base / "root" / "secret").write_text("not readable\n")
    (base / "root" / "secret").chmod(0o600)
    return base


@pytest.fixture(scope="module")
def mounting(daemon_factory, shared, workdir):
    config = workdir / "mounts.json"
    config.write_text(json.dumps({"mounts": {"allow": [
        {"path": str(shared / "data"), "writable": True, "tenants": ["friends"]},
        {"path": str(shared / "root"), "writable": True},
        {"path": str(shared / "data" / "sub")}]}}))
    it = daemon_factory("mounts", arguments=["--config", str(config)]).start()
    yield it
    it.finish()


@pytest.fixture
def make(mounting):
    client = mounting.client()
    with paddock.boxes_of(client) as make:
        yield make
    client.close()


def wish(source, path="/mnt/data", mode="rw"):
    return {"mounts": [{"source": str(source), "path": path, "mode": mode}]}


def test_reading_and_writing(make, shared):
    box = make(**wish(shared / "data"))
    assert box.document["mounts"] == [{"source": str(shared / "data"), "path": "/mnt/data", "mode": "rw"}]
    assert box.check("cat /mnt/data/file /mnt/data/private; stat -c %U /mnt/data/file") == "of the machine\nof the owner\nuser\n"
    box.check("echo new >/mnt/data/new; mkdir /mnt/data/d; echo more >>/mnt/data/file")
    made = (shared / "data" / "new").stat()
    assert (made.st_uid, made.st_gid) == (OWNER, OWNER) and (shared / "data" / "file").read_text() == "of the machine\nmore\n"
    (shared / "data" / "later").write_text("seen\n")
    assert box.check("cat /mnt/data/later") == "seen\n"


def test_nobody_else_s_files(make, shared):
    box = make(**wish(shared / "data"))
    assert box.exec("cat /mnt/data/roots").exit_code != 0
    assert box.exec("cat /mnt/data/roots", user="root").exit_code != 0, "not root's either"
    assert box.exec("echo x >/mnt/data/asroot", user="root").exit_code != 0 and not (shared / "data" / "asroot").exists()
    assert box.exec("cp /bin/true /mnt/data/s && chown 0 /mnt/data/s", user="root").exit_code != 0
    assert box.exec("mknod /mnt/data/n c 1 3", user="root").exit_code != 0
    [options] = [o for _, point, o, *_ in paddock_mounts(box) if point == "/mnt/data"]
    assert {"nosuid", "nodev"} <= set(options.split(","))


def paddock_mounts(box):
    text = box.check("cat /proc/self/mountinfo")
    found = []
    for line in text.splitlines():
        fields = line.split(" - ")[0].split(" ")
        found.append((fields[3], fields[4], fields[5]))
    return found


def test_read_only(make, shared):
    box = make(**wish(shared / "data", mode="ro"))
    assert box.check("cat /mnt/data/private") == "of the owner\n"
    assert "Read-only" in box.exec("echo x >/mnt/data/no").err.decode()
    assert box.exec("mount -o remount,rw /mnt/data", user="root").exit_code != 0
    box = make(mounts=[{"source": str(shared / "data"), "path": "/mnt/a"}])
    assert box.document["mounts"][0]["mode"] == "ro", "without a mode it cannot be written to"


def test_a_directory_of_root_s(make, shared, mounting):
    answer = mounting.client().post("/v1/sandboxes", wish(shared / "root"))
    assert answer.status == 400 and "belongs to root" in answer.json()["error"]["message"]
    box = make(**wish(shared / "root", mode="ro"))
    assert box.check("cat /mnt/data/file") == "readable\n"
    for user in ("user", "root"):
        assert box.exec("cat /mnt/data/secret", user=user).exit_code != 0


@pytest.mark.parametrize("where, status", [("/etc", 403), ("/", 400), ("{}/data/../..", 400), ("{}", 403), ("{}/data-not", 403),
                                           ("{}/data/link", 400), ("{}/data/link/apt", 400), ("{}/data/inner", 400),
                                           ("{}/data/none", 400), ("{}/data/file", 400), ("relative", 400)])
def test_what_is_refused(mounting, shared, where, status):
    answer = mounting.client().post("/v1/sandboxes", wish(where.format(shared), mode="ro"))
    assert answer.status == status, answer


def test_the_longest_entry_counts(mounting, shared):
    answer = mounting.client().post("/v1/sandboxes", wish(shared / "data" / "sub"))
    assert answer.status == 403 and "read-only" in answer.json()["error"]["message"]


@pytest.mark.parametrize("path", ["/proc/x", "/dev", "/run/secrets", "/sys", "/", "mnt", "/a/../b", "/a//b"])
def test_where_it_cannot_be(mounting, shared, path):
    assert mounting.client().post("/v1/sandboxes", wish(shared / "data", path, "ro")).status == 400


def test_a_hostile_tree_does_not_redirect_it(make, shared):
    """A mount point that leads through a link of the image is refused; nothing of the host is written to."""
    box = make()
    box.check("rm -rf /mnt && ln -s /etc /mnt", user="root")
    snapshot = box.client.post(f"{box.path}/snapshots", {}).json()["id"]
    answer = box.client.post("/v1/sandboxes", {"snapshot": snapshot, **wish(shared / "data")})
    assert answer.status >= 400, answer


def test_users_of_a_tenant(mounting, shared):
    admin = mounting.client()
    for name in ("friends", "strangers"):
        admin.post("/v1/tenants", {"name": name})
    keys = {name: admin.post("/v1/keys", {"tenant": name, "role": "user"}).json()["key"] for name in ("friends", "strangers")}
    made = mounting.client(keys["friends"]).post("/v1/sandboxes", wish(shared / "data"))
    assert made.status == 201
    assert admin.delete(f"/v1/sandboxes/{made.json()['id']}").status == 204
    assert mounting.client(keys["strangers"]).post("/v1/sandboxes", wish(shared / "data")).status == 403
    assert mounting.client(keys["friends"]).post("/v1/sandboxes", wish(shared / "root", mode="ro")).status == 403


def test_it_is_off_by_default(api, shared):
    assert api.post("/v1/sandboxes", wish(shared / "data", mode="ro")).status == 403


def test_its_life(make, shared, mounting):
    box = make(**wish(shared / "data"))
    box.client.post(f"{box.path}/stop", {})
    assert box.client.post(f"{box.path}/start", {}).status == 200
    assert box.check("test -w /mnt/data && cat /mnt/data/private") == "of the owner\n"
    posture = box.client.get(f"{box.path}/posture").json()
    assert posture["mounts"] == box.document["mounts"]
    mounting.restart()
    box.client = mounting.client()
    assert box.check("test -w /mnt/data && cat /mnt/data/private") == "of the owner\n", "another daemon, the same mount"
    # Copies of the box have its own files only.
    twin = paddock.Box(box.client, box.client.post(f"{box.path}/fork", {"count": 1}).json()["sandboxes"][0])
    assert twin.document["mounts"] == [] and twin.check("ls -A /mnt/data") == ""
    twin.delete()
    snapshot = box.client.post(f"{box.path}/snapshots", {}).json()["id"]
    other = make(snapshot=snapshot)
    assert other.document["mounts"] == [] and other.check("ls -A /mnt/data") == ""


def test_the_command_line(mounting, shared):
    cli = Cli(mounting)
    assert cli.ok("run", "--mount", f"{shared}/data:/work:ro", "--", "cat", "/work/private") == "of the owner\n"
    assert "--mount wants" in cli.refused("run", "--mount", "data:/work", "true")
    assert "mounts.allow" in cli.refused("run", "--mount", "/etc:/work:ro", "true")


# ---- what is refused leaves nothing


def keeper_fds(daemon):
    return sorted(os.readlink(f"/proc/{daemon.keeper_pid}/fd/{fd}") for fd in paddock._listdir(f"/proc/{daemon.keeper_pid}/fd")
                  if os.path.islink(f"/proc/{daemon.keeper_pid}/fd/{fd}"))


def test_a_wish_that_is_refused_leaves_no_descriptor(mounting, shared):
    """The first directory is open when the second one is refused, by the keeper: what it leads to is nothing that the api sees."""
    client = mounting.client()

    def open_ones():
        return [path for path in keeper_fds(mounting) if path.startswith(str(shared))]

    assert open_ones() == []
    for last in ("none", "file", "link"):
        answer = client.try_create(mounts=[{"source": str(shared / "data"), "path": "/mnt/a", "mode": "rw"},
                                           {"source": str(shared / "data" / last), "path": "/mnt/b", "mode": "rw"}])
        assert answer.status == 400, answer
    paddock.until(lambda: open_ones() == [], "the keeper holds none of the directories")


@pytest.fixture
def elsewhere(workdir):
    """An allowed directory with another file system below it."""
    base = workdir / "elsewhere"
    (base / "tree" / "other").mkdir(parents=True)
    (base / "tree" / "same").mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "none", base / "tree" / "other"], check=True)
    for path in (base, *base.rglob("*")):
        os.chown(path, OWNER, OWNER)
    yield base / "tree"
    subprocess.run(["umount", base / "tree" / "other"], check=True)


def test_another_file_system_is_another_directory(own_daemon, elsewhere, workdir):
    config = workdir / "elsewhere.json"
    config.write_text(json.dumps({"mounts": {"allow": [{"path": str(elsewhere), "writable": True}]}}))
    client = own_daemon(arguments=["--config", str(config)]).start().client()
    assert client.try_create(**wish(elsewhere / "same")).status == 201, "the control"
    answer = client.try_create(**wish(elsewhere / "other"))
    assert (answer.status, answer.code()) == (400, "invalid_argument") and b"another file system" in answer.body, answer
