"""Disk: a quota that the file system keeps, and figures that are true."""

import contextlib
import fcntl
import os
import struct
import subprocess

import pytest

import paddock

MB = 1 << 20
FILL = "head -c {} /dev/urandom > {}"


def used(box):
    return box.get()["disk"]["used_bytes"]


def test_a_full_box_gets_an_error_and_its_neighbour_does_not(make_box):
    full, other = make_box(limits={"disk_mb": 20}), make_box(limits={"disk_mb": 20})
    assert full.document["limits"]["disk_mb"] == 20 and full.document["disk"]["limit_mb"] == 20
    output = full.exec(FILL.format(60 * MB, "/workspace/big"))
    assert output.exit_code != 0
    assert b"No space left" in output.err or b"Disk quota exceeded" in output.err, output
    # Everything that the box writes counts, as root too.
    for path in ("/tmp/x", "/etc/x", "/usr/local/x", "/home/user/x"):
        assert full.exec(FILL.format(30 * MB, path), user="root").exit_code != 0, path
    response = full.put("/workspace/upload", os.urandom(25 * MB))
    assert response.status == 507 and response.code() == "storage_full", response
    assert other.check(FILL.format(10 * MB, "/workspace/fine") + "; echo fine") == "fine\n"
    assert full.check("echo still answers") == "still answers\n"
    # Room that was given back can be used again, once the file system has noticed.
    full.exec("rm -f /workspace/big /tmp/x /etc/x /usr/local/x /home/user/x; sync -f /workspace", user="root")
    paddock.until(lambda: full.exec(FILL.format(5 * MB, "/workspace/small")).exit_code == 0, "there is room again", 60)


def test_usage_is_shown(make_box, api):
    box = make_box(limits={"disk_mb": 100})
    before = used(box)
    box.check(FILL.format(16 * MB, "/workspace/f") + "; sync -f /workspace", user="root")
    paddock.until(lambda: used(box) >= before + 16 * MB, "the object shows it", 40)
    assert used(box) < before + 24 * MB
    stats = api.get(box.path + "/stats").json()
    assert stats["disk_bytes"] >= before + 16 * MB
    assert api.request("POST", box.path + "/stop").status == 200
    assert used(box) >= before + 16 * MB, "a stopped box uses its disk all the same"


def test_the_quota_outlives_stops_and_restarts(own_daemon):
    daemon = own_daemon().start()
    box = daemon.client().create(limits={"disk_mb": 20})
    assert daemon.client().request("POST", box.path + "/stop").status == 200
    daemon.restart()
    box = box.with_client(daemon.client())
    assert box.client.request("POST", box.path + "/start").status == 200
    assert box.get()["disk"]["limit_mb"] == 20
    assert box.exec(FILL.format(60 * MB, "/workspace/big")).exit_code != 0


def test_forks_have_the_quota_too(make_box, api):
    box = make_box(limits={"disk_mb": 24})
    box.check(FILL.format(10 * MB, "/workspace/f"))
    response = api.post(box.path + "/fork", {"count": 1})
    assert response.status == 201, response
    fork = paddock.Box(api, response.json()["sandboxes"][0])
    assert fork.document["limits"]["disk_mb"] == 24
    assert fork.exec(FILL.format(40 * MB, "/workspace/g")).exit_code != 0
    assert box.check(FILL.format(5 * MB, "/workspace/h") + "; echo fine") == "fine\n"
    fork.delete()


def test_the_default_and_the_maximum_are_configured(own_daemon):
    daemon = own_daemon(environment={"PADDOCK_DEFAULTS_DISK_MB": 30, "PADDOCK_MAX_DISK_MB": 40}).start()
    api = daemon.client()
    box = api.create()
    assert box.document["limits"]["disk_mb"] == 30
    assert box.exec(FILL.format(60 * MB, "/workspace/big")).exit_code != 0
    assert api.try_create(limits={"disk_mb": 41}).status == 400
    assert api.try_create(limits={"disk_mb": 0}).status == 400
    assert api.post("/v1/workspaces", {"name": "w", "disk_mb": 41}).status == 400
    assert api.post("/v1/workspaces", {"name": "w"}).json()["disk"]["limit_mb"] == 30
    assert api.delete("/v1/workspaces/w").status == 204


def test_a_full_workspace(api, make_box):
    assert api.post("/v1/workspaces", {"name": "small", "disk_mb": 20}).status == 201
    box = make_box(workspace="small")
    assert box.exec(FILL.format(60 * MB, "/workspace/big")).exit_code != 0
    assert box.check(FILL.format(20 * MB, "/tmp/elsewhere") + "; echo fine") == "fine\n", "the box's own files are apart"
    paddock.until(lambda: api.get("/v1/workspaces/small").json()["disk"]["used_bytes"] > 10 * MB, "its use is shown", 40)
    response = api.request("PUT", "/v1/workspaces/small/files/up", os.urandom(25 * MB))
    assert response.status == 507 and response.code() == "storage_full", response
    box.delete()
    assert api.delete("/v1/workspaces/small").status == 204


def test_boxes_have_a_limit_by_default(own_daemon):
    """E2B's clients cannot ask for one: a quarter of the storage, at most 10 GiB; none where that is configured."""
    daemon = own_daemon(environment={"PADDOCK_DATA_SIZE_MB": 1024}).start()
    api = daemon.client()
    box = api.create()
    assert box.document["limits"]["disk_mb"] == 256
    assert box.exec("fallocate -l 300M /workspace/big").exit_code != 0
    assert api.get("/v1/capabilities").json()["defaults"]["limits"]["disk_mb"] == 256
    assert api.post("/v1/workspaces", {"name": "w"}).json()["disk"]["limit_mb"] == 256
    # What a box starts with does not use up its share.
    box.check("head -c 100M /dev/urandom > /workspace/big; sync -f /workspace", user="root")
    paddock.until(lambda: used(box) > 100 * MB, "it is counted")
    assert api.post(box.path + "/snapshots", {"name": "large"}).status == 201
    assert api.create(snapshot="large").check("fallocate -l 200M /workspace/more; stat -c %s /workspace/more") == f"{200 * MB}\n"
    daemon.environment["PADDOCK_DEFAULTS_DISK_MB"] = 0
    daemon.restart()
    assert daemon.client().create().get()["disk"]["limit_mb"] is None


def test_copy_backend_has_no_quotas_and_says_so(own_daemon):
    daemon = own_daemon(environment={"PADDOCK_DATA_BACKEND": "copy"}).start()
    api = daemon.client()
    box = api.create()
    assert box.check("echo fine") == "fine\n" and box.get()["disk"]["limit_mb"] is None
    refused = api.try_create(limits={"disk_mb": 10})
    assert refused.status in (501, 503), refused
    assert api.request("POST", box.path + "/stop").status == 200
    assert api.request("POST", box.path + "/start").status == 200
    assert api.post("/v1/workspaces", {"name": "w"}).status == 201
    assert api.create(workspace="w").check("echo x > f; cat f") == "x\n"
    daemon.delete_all()
    assert api.delete("/v1/workspaces/w").status == 204


def fills(box, file, mb):
    return box.exec(f"fallocate -l {mb}M {file} && sync -f {file}").exit_code == 0


@pytest.mark.parametrize("small_disk", ["3000M"], indirect=True)
def test_the_loop_file_grows(small_disk, own_daemon):
    """Where the disk of our own is nearly full and the host has room, it becomes larger."""
    daemon = own_daemon()
    daemon.data_dir = small_disk / "data"
    daemon.start()
    file = daemon.data_dir / "disk.btrfs"
    first = file.stat().st_size
    assert 2000 * MB < first < 2500 * MB, "four fifths of what is free"
    box = daemon.client().create(limits={"disk_mb": 4000})
    assert fills(box, "/workspace/big", 1700)
    paddock.until(lambda: file.stat().st_size > first, "it grows", 20)
    paddock.until(lambda: fills(box, "/workspace/more", 600), "there is room", 20)
    # A restart finds it as it is, and what is in it.
    daemon.restart()
    assert paddock.Box(daemon.client(), box.document).check("stat -c %s /workspace/more") == f"{600 * MB}\n"


@pytest.mark.parametrize("small_disk", ["3000M"], indirect=True)
def test_a_configured_size_is_the_size(small_disk, own_daemon):
    """The file never grows past it; a larger one is had by the next start, a smaller one takes nothing away."""
    daemon = own_daemon(environment={"PADDOCK_DATA_SIZE_MB": 1024})
    daemon.data_dir = small_disk / "data"
    daemon.start()
    file = daemon.data_dir / "disk.btrfs"
    box = daemon.client().create(limits={"disk_mb": 4000})
    assert fills(box, "/workspace/big", 700) and not fills(box, "/workspace/more", 400)
    box.exec("i=0; while fallocate -l 16M /workspace/$i; do i=$((i + 1)); done; sync -f /workspace")
    paddock.until(lambda: ready(daemon)[0] == 503, "/readyz tells that the storage is full")
    assert "data.size_mb" in ready(daemon)[1] and daemon.client().try_create().status == 507
    assert file.stat().st_size == 1024 * MB
    for size, has in ((1536, 1536), (1024, 1536)):
        daemon.environment["PADDOCK_DATA_SIZE_MB"] = size
        daemon.restart()
        assert file.stat().st_size == has * MB
        paddock.until(lambda: ready(daemon) == (200, ""), "there is room")
        box = box.with_client(daemon.client())
        assert box.check("stat -c %s /workspace/big") == f"{700 * MB}\n"
    assert fills(box, "/workspace/more", 200)


# ---- subvolumes within ----------------------------------------------------


def make_subvolume(parent, name):
    """As boxes of an older filter could, or an administrator."""
    fd = os.open(parent, os.O_RDONLY)
    fcntl.ioctl(fd, 0x5000940E, bytearray(struct.pack("q4088s", 0, name.encode())))  # BTRFS_IOC_SUBVOL_CREATE
    os.close(fd)
    return parent / name


def make_readonly(subvolume):
    fd = os.open(subvolume, os.O_RDONLY)
    fcntl.ioctl(fd, 0x4008941A, struct.pack("Q", 2))  # BTRFS_IOC_SUBVOL_SETFLAGS: RDONLY
    os.close(fd)


def plant(place):
    """Subvolumes side by side and in each other, with files, one of them read-only."""
    for name in ("a", "b", "c"):
        outer = make_subvolume(place, name)
        (outer / "dir").mkdir()
        inner = make_subvolume(outer / "dir", "inner")
        (make_subvolume(inner, "deepest") / "file").write_text("x")
        make_readonly(inner)
    make_readonly(place / "a")


def test_a_box_with_subvolumes_in_it_can_be_removed(api):
    box = api.create()
    home = box.data_dir
    plant(home / "workspace")
    box.delete()
    paddock.until(lambda: not home.exists(), "its files are gone")


def test_subvolumes_deeper_than_a_path(api):
    """700 in each other: no call takes a path to the last."""
    box = api.create()
    home, here = box.data_dir, os.open(box.data_dir / "workspace", os.O_RDONLY)
    for _ in range(700):
        fcntl.ioctl(here, 0x5000940E, bytearray(struct.pack("q4088s", 0, b"deep" * 10)))
        below = os.open("deep" * 10, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)
    box.delete()
    paddock.until(lambda: not home.exists(), "its files are gone", 30)


def test_a_snapshot_that_would_lose_something_fails(api, make_box):
    box = make_box()
    box.check("echo kept > /workspace/kept")
    nested = make_subvolume(box.data_dir / "workspace", "nested")
    (nested / "file").write_text("x")
    for response in (api.post(box.path + "/snapshots", {}), api.post(box.path + "/fork", {"count": 1})):
        assert response.status == 409 and "subvolume" in response.json()["error"]["message"], response
    # The box's own way out: an empty one is removed like a directory.
    box.check("rm -r /workspace/nested", user="root")
    response = api.post(box.path + "/fork", {"count": 1})
    assert response.status == 201, response
    fork = paddock.Box(api, response.json()["sandboxes"][0])
    assert fork.check("cat /workspace/kept") == "kept\n"
    fork.delete()


def test_a_workspace_with_subvolumes_in_it(api):
    assert api.post("/v1/workspaces", {"name": "nest"}).status == 201
    made = api.get("/v1/workspaces/nest").json()
    place = next(path for path in (api.daemon.disk / "workspaces").iterdir() if path.name == made["id"])
    plant(place)
    response = api.post("/v1/workspaces", {"name": "clone", "clone_of": "nest"})
    assert response.status in (400, 409), response
    assert api.delete("/v1/workspaces/nest").status == 204
    paddock.until(lambda: not place.exists(), "its files are gone")


# ---- the disk beneath -----------------------------------------------------


@pytest.fixture
def small_disk(request, workdir):
    """A file system of its own for a daemon's data, which others cannot fill and which fills nobody."""
    image, point = workdir / "small.img", workdir / "small"
    subprocess.run(["truncate", "-s", getattr(request, "param", "2200M"), image], check=True)
    subprocess.run(["mkfs.ext4", "-q", "-m", "0", image], check=True)
    point.mkdir()
    subprocess.run(["mount", "-o", "loop", image, point], check=True)
    yield point
    paddock.until(lambda: subprocess.run(["umount", point], capture_output=True).returncode == 0, "it is free", 30)
    point.rmdir()
    image.unlink()


def ready(daemon):
    response = daemon.client().get("/readyz")
    return response.status, " ".join(response.json().get("reasons", []))


@pytest.mark.slow
def test_the_disk_beneath_is_full(small_disk, own_daemon):
    """The loop file is larger than what holds it: writers are stopped before the file system breaks, and go on afterwards."""
    daemon = own_daemon(environment={"PADDOCK_DATA_SIZE_MB": 4096})
    daemon.data_dir = small_disk / "data"
    daemon.start()
    assert ready(daemon) == (200, "")
    api = daemon.client()
    writer, neighbour = api.create(), api.create()
    ballast = small_disk / "of somebody else"
    with open(ballast, "wb") as file:
        os.posix_fallocate(file.fileno(), 0, 1150 * MB)
    paddock.until(lambda: ready(daemon)[0] == 503, "/readyz tells that there is little room")
    output = writer.exec("head -c 3000000000 /dev/urandom > /workspace/big", timeout_ms=paddock.ms(60_000))
    assert output.exit_code != 0 and b"No space left" in output.err, output
    status, reason = ready(daemon)
    assert status == 503 and "full" in reason, reason
    free = os.statvfs(small_disk)
    assert free.f_bavail * free.f_frsize > 64 * MB, "nothing failed beneath"
    # The neighbour reads and removes, and the file system lives.
    assert neighbour.check("cat /etc/passwd | head -1; rm -f /workspace/none; echo fine").endswith("fine\n")
    ballast.unlink()
    paddock.until(lambda: ready(daemon) == (200, ""), "there is room again")
    paddock.until(lambda: neighbour.exec(FILL.format(MB, "/workspace/small")).exit_code == 0, "it can write again")
    writer.check("rm /workspace/big")
    daemon.restart()
    paddock.Box(daemon.client(), neighbour.document).check("test -s /workspace/small")


def take_all(disk, name):
    """As somebody else does, to the last block."""
    ballast = disk / name
    with open(ballast, "wb") as file:
        for size in (256 * MB, MB, 65536, 4096):
            with contextlib.suppress(OSError):
                while True:
                    os.posix_fallocate(file.fileno(), os.fstat(file.fileno()).st_size, size)
    return ballast


def test_a_start_on_a_full_disk(small_disk, own_daemon):
    """Others have taken the last block: it starts, reads, deletes, and writes to its database what that takes."""
    daemon = own_daemon(environment={"PADDOCK_DATA_SIZE_MB": 4096})
    daemon.data_dir = small_disk / "data"
    daemon.start()
    boxes = [daemon.client().create() for _ in range(3)]
    boxes[0].check("echo kept > /workspace/kept; sync -f /workspace")
    for box in boxes:
        assert box.client.post(box.path + "/stop", {}).status == 200
    daemon.stop()
    ballast = take_all(small_disk, "ballast")
    assert os.statvfs(small_disk).f_bavail == 0
    store = daemon.data_dir / "store"
    assert (store / "paddock.db-shm").exists() and (store / "paddock.db-wal").stat().st_blocks * 512 >= 6 * MB, "kept for this moment"
    daemon.start()
    assert ready(daemon)[0] == 503 and "full" in ready(daemon)[1]
    assert daemon.client().try_create().status == 507
    boxes[1].with_client(daemon.client()).delete()
    assert daemon.client().post(boxes[0].path + "/start", {}).status == 200
    daemon.restart()
    boxes[2].with_client(daemon.client()).delete()
    daemon.stop()
    daemon.start()
    assert [box["id"] for box in daemon.client().list()] == [boxes[0].id], "the deletions are in the database"
    assert boxes[0].with_client(daemon.client()).check("cat /workspace/kept") == "kept\n"
    ballast.unlink()
    paddock.until(lambda: ready(daemon) == (200, ""), "there is room again")
    assert daemon.client().create().check("echo fine") == "fine\n"
