"""Images: import of archives and directories, content addresses, and hostile archives."""

import io
import os
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

import paddock

PASSWD = "root:x:0:0:root:/root:/bin/sh\nuser:x:1000:1000:user:/home/user:/bin/sh\n"
GROUP = "root:x:0:\nuser:x:1000:\n"
APPLETS = ("sh", "ls", "cat", "echo", "true", "id", "sleep", "pwd", "stat", "mount", "head", "env", "touch")


def busybox():
    """Debian's busybox-static: a whole userland in one file."""
    path = shutil.which("busybox")
    assert path, "busybox-static is not installed: run `make deps`"
    return Path(path).read_bytes()


class Tar:
    """Builds archives that tar(1) would not."""

    def __init__(self, base=True):
        self.stream = io.BytesIO()
        self.tar = tarfile.open(fileobj=self.stream, mode="w", format=tarfile.PAX_FORMAT)
        if base:
            for name in ("bin", "etc", "home", "home/user", "root"):
                self.add(name, tarfile.DIRTYPE, mode=0o755)
            self.file("bin/busybox", busybox(), 0o755)
            for applet in APPLETS:
                self.add(f"bin/{applet}", tarfile.SYMTYPE, link="busybox")
            self.file("etc/passwd", PASSWD.encode())
            self.file("etc/group", GROUP.encode())

    def add(self, name, kind=tarfile.REGTYPE, data=b"", mode=0o644, link="", device=(0, 0), pax=None, uid=0):
        info = tarfile.TarInfo(name)
        info.type, info.size, info.mode, info.linkname, info.uid, info.gid = kind, len(data), mode, link, uid, uid
        info.devmajor, info.devminor = device
        info.pax_headers = pax or {}
        self.tar.addfile(info, io.BytesIO(data))
        return self

    def file(self, name, data, mode=0o644):
        return self.add(name, data=data, mode=mode)

    def bytes(self):
        self.tar.close()
        return self.stream.getvalue()


@pytest.fixture
def images(api):
    """Imports archives; what was imported is removed after the test."""
    made = []

    class Images:
        def try_put(self, name, data):
            response = api.request("PUT", f"/v1/images/{name}", data, {"Content-Type": "application/x-tar"})
            if response.status in (200, 201):
                made.append(name)
            return response

        def put(self, name, data):
            response = self.try_put(name, data)
            assert response.status in (200, 201), response
            return response.json()

        def list(self):
            return {name: image for image in api.get("/v1/images").json()["images"] for name in image["names"]}

    yield Images()
    for name in made:
        assert api.delete(f"/v1/images/{name}").status in (204, 404)


def boot(make_box, image):
    return make_box(image=image)


def test_default_image(api):
    listed = {name: image for image in api.get("/v1/images").json()["images"] for name in image["names"]}
    assert listed["machine"]["digest"].startswith("sha256:")


def test_import_and_use(images, make_box):
    made = images.put("tiny", Tar().bytes())
    assert made["name"] == "tiny" and made["digest"].startswith("sha256:") and len(made["digest"]) == 71
    assert images.list()["tiny"]["digest"] == made["digest"]
    box = make_box(image="tiny")
    assert box.document["image"] == "tiny"
    assert box.check(["id", "-u"]).strip() == "1000"
    assert box.check(["/bin/sh", "-c", "echo $PWD; echo hi > f; cat f"]) == "/workspace\nhi\n"
    names = set(box.check(["ls", "/"]).split())
    assert names == {"bin", "etc", "home", "root", "dev", "proc", "tmp", "workspace"} | (names & {"sys", "run"}) | {"usr"}  # /usr/bin/sudo is ours
    missing = box.try_exec(["python3"])  # on a machine that is so slow that PID 1 did not wait for it, it is the program's own end
    assert missing.status == 400 or missing.json()["exit_code"] == 127, missing


def test_two_boxes_of_one_image_do_not_share_writes(images, make_box):
    images.put("tiny", Tar().bytes())
    one, two = make_box(image="tiny"), make_box(image="tiny")
    assert one.put("/bin/evil", b"x", "user=root").status == 201
    assert two.read("/bin/evil").status == 404
    one.delete()
    third = make_box(image="tiny")
    assert third.read("/bin/evil").status == 404


def test_content_addressed(images):
    data = Tar().bytes()
    first, second = images.put("one", data), images.put("two", data)
    assert first["digest"] == second["digest"] and images.list()["one"] == images.list()["two"]
    other = images.put("three", Tar().file("etc/extra", b"x").bytes())
    assert other["digest"] != first["digest"]


def test_by_digest(images, make_box):
    digest = images.put("tiny", Tar().bytes())["digest"]
    box = make_box(image=digest)
    assert box.check(["echo", "hi"]) == "hi\n"


def test_a_name_moves_and_boxes_stay(images, make_box):
    images.put("moving", Tar().file("etc/v", b"1").bytes())
    old = make_box(image="moving")
    images.put("moving", Tar().file("etc/v", b"2").bytes())
    new = make_box(image="moving")
    assert (old.read("/etc/v").body, new.read("/etc/v").body) == (b"1", b"2")


def test_import_survives_a_restart(own_daemon):
    daemon = own_daemon().start()
    api = daemon.client()
    made = api.request("PUT", "/v1/images/tiny", Tar().bytes(), {"Content-Type": "application/x-tar"})
    assert made.status in (200, 201), made
    box = api.create(image="tiny")
    daemon.restart()
    api = daemon.client()
    assert box.with_client(api).check(["echo", "old"]) == "old\n"
    assert api.create(image="tiny").check(["echo", "new"]) == "new\n"


def test_image_in_use(images, make_box, api):
    """Removing an image must not pull the ground from under a box."""
    images.put("used", Tar().bytes())
    box = make_box(image="used")
    response = api.delete("/v1/images/used")
    assert response.status in (204, 409)
    assert box.check(["echo", "fine"]) == "fine\n"
    box.delete()


def test_machine_cannot_be_removed(api):
    response = api.delete("/v1/images/machine")
    assert response.status in (400, 403, 409), response
    assert api.delete("/v1/images/no-such-image").status == 404


def test_cli_imports_directories_and_archives(daemon, workdir, make_box, images):
    tree = workdir / "tree"
    tree.mkdir(exist_ok=True)
    with tarfile.open(fileobj=io.BytesIO(Tar().bytes())) as archive:
        archive.extractall(tree)
    (workdir / "tree.tar").write_bytes(Tar().bytes())
    subprocess.run(["gzip", "-kf", workdir / "tree.tar"], check=True)
    for name, source in (("from-dir", tree), ("from-tar", workdir / "tree.tar"), ("from-gz", workdir / "tree.tar.gz")):
        result = subprocess.run(
            [paddock.BIN / "paddock", "image", "import", name, source],
            env=paddock.clean_environment(PADDOCK_URL=daemon.url, PADDOCK_KEY_FILE=daemon.data_dir / "admin.key"),
            capture_output=True, text=True)
        assert result.returncode == 0, result.stderr
        box = make_box(image=name)
        assert box.check(["id", "-un"]) == "user\n"
        box.delete()
        assert daemon.client().delete(f"/v1/images/{name}").status == 204


# ---- hostile archives -----------------------------------------------------


@pytest.mark.parametrize("name", ["", "a/b", "..", "x" * 300, "sha256:x", "a%00b", "A B", "-x"])
def test_bad_names(images, name):
    response = images.try_put(paddock.quote(name, safe="%"), Tar().bytes())
    assert response.status in (400, 404, 405), response


@pytest.mark.parametrize("name", ["a:", ":a", "a:b:c", "a:-b", "sha256:" + "0" * 20, "a:" + "x" * 62])
def test_bad_tags(images, name):
    assert images.try_put(paddock.quote(name), Tar().bytes()).status == 400


def test_name_and_tag(images, make_box, api):
    """Each tag is an image of its own; E2B's clients find it as a template and as the base of a build."""
    def with_bash(name, data):
        return Tar().file("bin/bash", b'#!/bin/sh\nexec /bin/sh "$@"\n', 0o755).file(name, data).bytes()

    one = images.put("ubuntu:22.04", with_bash("etc/one", b"1"))
    other = images.put("ubuntu:24.04-RC1", with_bash("etc/other", b"2"))
    assert one["digest"] != other["digest"] and {"ubuntu:22.04", "ubuntu:24.04-RC1"} <= set(images.list())
    assert boot(make_box, "ubuntu:22.04").check(["cat", "/etc/one"]) == "1"
    assert api.post("/v1/sandboxes", {"image": "ubuntu"}).status == 404
    for template, status in (("ubuntu:24.04-RC1", 201), ("ubuntu", 404), ("ubuntu:latest", 404), ("ubuntu:none", 404)):
        response = api.post("/v2/sandboxes", {"templateID": template})
        assert response.status == status, (template, response)
        if status == 201:
            assert response.json()["templateID"] == template
            assert api.delete(f"/sandboxes/{response.json()['sandboxID']}").status == 204
    images.put("debian:latest", with_bash("etc/deb", b"3"))
    for image in ("docker.io/library/ubuntu:22.04", "ubuntu:22.04", "library/debian", "debian:latest", "debian"):
        build = api.post("/v3/templates", {"name": "of-tag"}).json()
        where = f"/templates/{build['templateID']}/builds/{build['buildID']}"
        assert api.post(f"/v2{where}", {"fromImage": image, "steps": [{"type": "RUN", "args": ["cat /etc/one || cat /etc/deb"]}]}).status == 202
        end = paddock.until(lambda at=where: (now := api.get(at + "/status").json())["status"] in ("ready", "error") and now, "the build ends")
        assert end["status"] == "ready", end
    paddock.until(lambda: api.delete(f"/templates/{build['templateID']}").status in (204, 404), "it is removed")


GARBAGE = {"empty": b"", "noise": os.urandom(5000), "text": b"hello" * 1000, "half": None, "zip": b"PK\3\4" + b"\0" * 600}


@pytest.mark.parametrize("data", GARBAGE.values(), ids=GARBAGE.keys())
def test_not_an_archive(images, api, data):
    if data is None:
        data = Tar().bytes()[:200_000]
    before = images.list()
    response = images.try_put("garbage", data)
    assert response.status == 400, response
    assert response.code() in ("invalid_argument", "bad_request")
    assert images.list() == before
    assert api.try_create(image="garbage").status == 404


def test_upload_that_breaks_off_leaves_nothing(daemon, api):
    """The unpacking is done in a box of its own: that box must go too."""
    before = (len(api.list()), sorted(os.listdir(daemon.run_dir / "boxes")))
    data = Tar().bytes()
    with daemon.raw() as connection:
        connection.sendall(
            f"PUT /v1/images/broken HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {daemon.key}\r\n"
            f"Content-Type: application/x-tar\r\nContent-Length: {len(data)}\r\n\r\n".encode() + data[: len(data) // 2])
    paddock.until(lambda: (len(api.list()), sorted(os.listdir(daemon.run_dir / "boxes"))) == before, "the unpacking box is gone")
    assert "broken" not in api.get("/v1/images").body.decode()


@pytest.fixture
def target(workdir):
    """A directory of the host that hostile archives aim at."""
    path = workdir / "target"
    path.mkdir(exist_ok=True)
    (path / "precious").write_text("precious")
    yield path
    assert sorted(entry.name for entry in path.iterdir()) == ["precious"], "the host was written to"
    assert (path / "precious").read_text() == "precious"
    shutil.rmtree(path)


def hostile(target):
    up = "../" * 20
    return {
        "dot-dot": Tar().file(f"{up}{target}/evil", b"x"),
        "absolute": Tar().file(f"{target}/evil", b"x"),
        "through a symlink": Tar().add("link", tarfile.SYMTYPE, link=str(target)).file("link/evil", b"x"),
        "through a climbing symlink": Tar().add("link", tarfile.SYMTYPE, link=f"{up}{target}").file("link/evil", b"x"),
        "hard link to the host": Tar().add("hard", tarfile.LNKTYPE, link=f"{up}{target}/precious").file("hard", b"x"),
        "hard link absolute": Tar().add("hard", tarfile.LNKTYPE, link=f"{target}/precious"),
        "symlink replaced by a directory": Tar().add("d", tarfile.SYMTYPE, link=str(target)).add("d", tarfile.DIRTYPE, mode=0o777)
        .file("d/evil", b"x"),
        # CVE-2026-41579 and CVE-2026-47766: mount points that are symlinks
        "dev is a symlink": Tar().add("dev", tarfile.SYMTYPE, link=str(target)),
        "dev climbs": Tar().add("dev", tarfile.SYMTYPE, link=f"{up}{target}"),
        "proc is a symlink": Tar().add("proc", tarfile.SYMTYPE, link=str(target)),
        "tmp is a symlink": Tar().add("tmp", tarfile.SYMTYPE, link=str(target)),
        "workspace is a symlink": Tar().add("workspace", tarfile.SYMTYPE, link=str(target)),
        "etc is a symlink": Tar(base=False).file("bin/busybox", busybox(), 0o755).add("etc", tarfile.SYMTYPE, link=str(target)),
        "dev/shm is a symlink": Tar().add("dev", tarfile.DIRTYPE, mode=0o755).add("dev/shm", tarfile.SYMTYPE, link=str(target)),
        "dev is a file": Tar().file("dev", b"x"),
        "proc is a FIFO": Tar().add("proc", tarfile.FIFOTYPE),
        "dev is a symlink to proc": Tar().add("dev", tarfile.SYMTYPE, link="/proc/self/cwd"),
    }


@pytest.mark.parametrize("case", list(hostile("/nowhere")))
def test_hostile_archives(images, make_box, api, target, marker, case):
    """Refused at the import, or at the create, or harmless in a box that works: nothing else."""
    response = images.try_put("hostile", hostile(target)[case].bytes())
    if response.status not in (200, 201):
        assert response.status == 400, response
        response.code()
        return
    created = api.try_create(image="hostile")
    if created.status != 201:
        assert created.status in (400, 409, 503), created
        assert created.json()["error"]["message"]
        return
    box = paddock.Box(api, created.json())
    try:
        for path in ("/dev/planted", "/tmp/planted", "/workspace/planted", "/proc/planted", "/link/evil", "/d/planted"):
            box.put(path, b"x", "user=root")
        # Its /dev is ours, whatever the image had there.
        assert os.listdir(f"/proc/{box.pid1()}/root/dev/pts") is not None
        table = {point: kind for _, point, _, kind, _, _ in paddock.mountinfo(box.pid1())}
        assert table["/proc"] == "proc" and table["/dev"] in ("tmpfs", "devtmpfs")
    finally:
        box.delete()


def test_device_nodes(images, make_box):
    data = (Tar().add("disk", tarfile.BLKTYPE, mode=0o666, device=(254, 0)).add("disk2", tarfile.BLKTYPE, mode=0o666, device=(8, 0))
            .add("mem", tarfile.CHRTYPE, mode=0o666, device=(1, 1)).add("kmsg", tarfile.CHRTYPE, mode=0o666, device=(1, 11)).bytes())
    response = images.try_put("devices", data)
    if response.status == 400:
        return
    box = make_box(image="devices")
    for user in ("user", "root"):
        for name in ("disk", "disk2", "mem", "kmsg"):
            output = box.exec(["head", "-c", "16", f"/{name}"], user=user)
            assert output.exit_code != 0 and not output.out, name


def test_overlay_whiteouts_and_attributes(images, make_box):
    """Names and attributes that mean something to overlayfs come from outside: they may hide nothing."""
    data = (Tar().add("bin/.wh.busybox").add("etc/.wh..wh..opq").add("home/zero", tarfile.CHRTYPE, device=(0, 0))
            .add("opaque", tarfile.DIRTYPE, mode=0o755, pax={"SCHILY.xattr.trusted.overlay.opaque": "y"})
            .add("redirect", tarfile.DIRTYPE, mode=0o755, pax={"SCHILY.xattr.trusted.overlay.redirect": "/../../.."})
            .add("capable", data=b"\x7fELF", mode=0o755, pax={"SCHILY.xattr.security.capability": "\x01\0\0\x02\xff\xff\xff\xff" + "\0" * 12})
            .bytes())
    response = images.try_put("odd", data)
    if response.status == 400:
        return
    box = make_box(image="odd")
    assert box.check(["echo", "fine"]) == "fine\n"
    assert "etc" in box.check(["ls", "/"]).split()


def test_set_user_id_in_an_image(images, make_box):
    images.put("suid", Tar().file("bin/busybox.sid", busybox(), 0o6755).bytes())
    box = make_box(image="suid")
    output = box.exec(["/bin/busybox.sid", "id", "-u"])
    assert output.text.strip() == "1000", "set-user-id counts in the box"
    for top, _, files in os.walk(box.client.daemon.disk / "images"):
        if "busybox.sid" in files:
            reachable = all(os.stat(part).st_mode & 0o001 for part in Path(top).parents if part.exists())
            assert not reachable, "a user of the host can run an image's set-user-id file"


def test_archive_bomb_is_bounded(images, daemon):
    """A sparse or deep archive may fail, not take the daemon along."""
    deep = Tar()
    deep.add("/".join(["d" * 100] * 60), tarfile.DIRTYPE)
    response = images.try_put("deep", deep.bytes())
    assert response.status in (200, 201, 400), response
    assert daemon.healthy()


def test_odd_names_inside(images, make_box):
    data = Tar().file("etc/new\nline", b"1").file("etc/-rf", b"2").file("etc/ünï", b"3").bytes()
    images.put("names", data)
    box = make_box(image="names")
    assert [box.read(f"/etc/{name}").body for name in ("new\nline", "-rf", "ünï")] == [b"1", b"2", b"3"]


def test_owners_are_kept(images, make_box):
    images.put("owned", Tar().add("home/user/mine", data=b"x", mode=0o600, uid=1000).add("root/hers", data=b"x", mode=0o600).bytes())
    box = make_box(image="owned")
    assert box.check(["stat", "-c", "%u %a", "/home/user/mine"]) == "1000 600\n"
    assert box.exec(["cat", "/root/hers"]).exit_code != 0
    assert box.check(["cat", "/root/hers"], user="root") == "x"
