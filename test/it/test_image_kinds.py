"""Images by hand: root file systems with what a sandbox cannot have, docker save, OCI archives, and what is neither."""

import gzip
import hashlib
import io
import json
import os
import shutil
import socket
import tarfile

import pytest

import paddock
from clitool import Cli

BUSYBOX = "/usr/bin/busybox"


@pytest.fixture(scope="module")
def cli(daemon):
    return Cli(daemon)


@pytest.fixture
def imported(cli):
    """Imports a file and removes the image after the test."""
    made = []

    def run(name, path):
        made.append(name)
        return json.loads(cli.ok("image", "import", name, path, "--json"))

    yield run
    for name in made:
        cli("image", "rm", name)


def add(tar, name, data=b"", kind=tarfile.REGTYPE, mode=0o644, **more):
    info = tarfile.TarInfo(name)
    info.type, info.mode, info.size = kind, mode, len(data) if kind == tarfile.REGTYPE else 0
    for key, value in more.items():
        setattr(info, key, value)
    tar.addfile(info, io.BytesIO(data))


def archive(entries):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for entry in entries:
            add(tar, *entry[:1], **entry[1])
    return out.getvalue()


def directory(name):
    return (name, {"kind": tarfile.DIRTYPE, "mode": 0o755})


def shell():
    """A root file system that can run something: busybox is static on Debian, else what it needs is not there."""
    with open(BUSYBOX, "rb") as f:
        binary = f.read()
    return [directory("bin"), ("bin/busybox", {"data": binary, "mode": 0o755}),
            *[(f"bin/{name}", {"kind": tarfile.SYMTYPE, "linkname": "busybox"}) for name in ("sh", "cat", "ls", "id", "pwd", "env", "echo", "true")]]


CONFIG = {"architecture": "amd64", "os": "linux",
          "config": {"User": "1234:5", "WorkingDir": "/srv", "Env": ["PATH=/bin", "FROM_IMAGE=a b=c"], "Entrypoint": ["/bin/sh"], "Cmd": ["-c", "echo ran $FROM_IMAGE in $PWD as $(id -u); exit 3"]}}
FIRST = [*shell(), directory("etc"), ("etc/passwd", {"data": b"root:x:0:0::/root:/bin/sh\n"}), ("etc/kept", {"data": b"kept"}), ("etc/gone", {"data": b"x"}), directory("opt"), directory("opt/old"), ("opt/old/a", {"data": b"x"}), directory("srv")]
SECOND = [("etc/.wh.gone", {}), ("etc/new", {"data": b"new"}), ("opt/old/.wh..wh..opq", {}), ("opt/old/b", {"data": b"b"}),
          directory("dev"), ("dev/null", {"kind": tarfile.CHRTYPE, "devmajor": 1, "devminor": 3}), ("srv/fifo", {"kind": tarfile.FIFOTYPE})]


def check_layers(cli, image):
    out = cli.ok("run", "--image", image, "--", "sh", "-c", "cat /etc/kept /etc/new; ls /etc/gone /opt/old 2>&1; id -u; pwd; echo $FROM_IMAGE")
    assert "keptnew" in out and "No such file" in out and "/opt/old:\nb\n" in out, out
    assert out.splitlines()[-3:] == ["1234", "/srv", "a b=c"], out
    assert cli.ok("run", "--image", image, "-u", "0", "-w", "/", "-e", "FROM_IMAGE=mine", "--", "sh", "-c", "id -u; pwd; echo $FROM_IMAGE").split() == ["0", "/", "mine"]


def check_command(cli, image):
    """Without a command it is run as docker would."""
    done = cli("run", "--image", image)
    assert (done.out, done.returncode) == ("ran a b=c in /srv as 1234\n", 3), done
    assert cli("run", "-e", "FROM_IMAGE=mine", "-u", "0", "-i", "--image", image).out == "ran mine in /srv as 0\n"


def test_an_image_without_a_command(cli):
    assert "the image machine says no command" in cli.refused("run")
    assert not cli.ids()


def test_docker_save(cli, imported, tmp_path):
    first, second = archive(FIRST), archive(SECOND)
    text = json.dumps(CONFIG).encode()
    name = hashlib.sha256(text).hexdigest() + ".json"
    manifest = [{"Config": name, "RepoTags": ["x:latest"], "Layers": ["aa/layer.tar", "bb/layer.tar"]}]
    path = tmp_path / "saved.tar"
    path.write_bytes(archive([("aa/layer.tar", {"data": first}), ("bb/layer.tar", {"data": second}), (name, {"data": text}),
                              ("manifest.json", {"data": json.dumps(manifest).encode()})]))
    said = imported("saved", path)
    assert said["skipped"] == 2 and said["entrypoint"] == ["/bin/sh"] and said["user"] == "1234" and said["env"]["FROM_IMAGE"] == "a b=c"
    check_layers(cli, "saved")
    check_command(cli, "saved")
    assert "skipped 2" in cli("image", "import", "saved", path).err
    manifest.append(manifest[0])
    path.write_bytes(archive([("manifest.json", {"data": json.dumps(manifest).encode()})]))
    assert "2 images" in cli.refused("image", "import", "two", path)


@pytest.mark.parametrize("nested", [False, True])
def test_oci_archive(cli, imported, tmp_path, nested):
    blobs = {}

    def blob(data):
        digest = hashlib.sha256(data).hexdigest()
        blobs[f"blobs/sha256/{digest}"] = data
        return {"mediaType": "x", "digest": f"sha256:{digest}", "size": len(data)}

    manifest = json.dumps({"schemaVersion": 2, "config": blob(json.dumps(CONFIG).encode()),
                           "layers": [blob(gzip.compress(archive(FIRST))), blob(gzip.compress(archive(SECOND)))]}, indent=2).encode()
    index = {"schemaVersion": 2, "manifests": [blob(b'{"not": "for us"}') | {"platform": {"architecture": "riscv64", "os": "linux"}},
                                               blob(manifest) | {"platform": {"architecture": "amd64", "os": "linux"}}]}
    if nested:
        index = {"schemaVersion": 2, "manifests": [blob(json.dumps(index).encode())]}
    path = tmp_path / "oci.tar"
    path.write_bytes(archive([("oci-layout", {"data": b'{"imageLayoutVersion":"1.0.0"}'}), ("index.json", {"data": json.dumps(index).encode()}),
                              *[(name, {"data": data}) for name, data in blobs.items()]]))
    name = "oci-nested" if nested else "oci"
    assert imported(name, path)["workdir"] == "/srv"
    check_layers(cli, name)
    check_command(cli, name)


def saved(path, *layers):
    names = [f"{i}/layer.tar" for i in range(len(layers))]
    manifest = [{"Config": "c.json", "RepoTags": None, "Layers": names}]
    path.write_bytes(archive([("manifest.json", {"data": json.dumps(manifest).encode()}), ("c.json", {"data": json.dumps(CONFIG).encode()}),
                              *[(name, {"data": archive(layer)}) for name, layer in zip(names, layers)]]))
    return path


@pytest.mark.parametrize("n, said", [(100_000, "its list has 100000 layers; 1000 are the most"), (1000, "it lacks the file 0/layer.tar")])
def test_a_list_of_many_layers_is_refused(cli, tmp_path, n, said):
    """Before the first of them is looked at: each costs the time of several programs."""
    path = tmp_path / "many.tar"
    manifest = [{"Config": "c.json", "RepoTags": None, "Layers": [f"{i}/layer.tar" for i in range(n)]}]
    path.write_bytes(archive([("manifest.json", {"data": json.dumps(manifest).encode()}), ("c.json", {"data": json.dumps(CONFIG).encode()})]))
    assert said in cli.refused("image", "import", "many", path)


def link(name, target):
    return (name, {"kind": tarfile.SYMTYPE, "linkname": target})


PROGRAM = b"#!/bin/sh\ntouch /workspace/.paddock-root/owned\nexec sleep 1000\n"


@pytest.mark.parametrize("first, second", [
    ([link("x", "/usr/bin")], [("x/find", {"data": PROGRAM, "mode": 0o755})]),
    ([link("x", "../../usr/bin")], [("x/find", {"data": PROGRAM, "mode": 0o755})]),
    ([link("x", "/usr"), link("y", "x/bin")], [("y/find", {"data": PROGRAM, "mode": 0o755})]),
    ([link("x", "/usr/bin")], [("x/.wh.find", {})]),
    ([link("x", "/usr/bin")], [("x/.wh..wh..opq", {})]),
    ([link("x", "/usr")], [directory("x/bin"), ("x/bin/find", {"data": PROGRAM, "mode": 0o755})]),
    ([link("a\nb", "/usr/bin")], [("a\nb/find", {"data": PROGRAM, "mode": 0o755})]),
], ids=["absolute", "relative", "two", "whiteout", "opaque", "directory", "newline"])
def test_a_layer_does_not_leave_the_image_by_a_link(cli, tmp_path, first, second):
    """The script that unpacks it has its tools where such a link leads: they are not the image's to replace or remove."""
    said = cli.refused("image", "import", "leaves", saved(tmp_path / "leaves.tar", [*FIRST, *first], second))
    assert "leads out of the image" in said or "line break" in said, said


def test_a_layer_may_follow_the_links_of_its_image(cli, imported, tmp_path):
    """The control: links that stay inside are followed, and a directory takes the place of a link that does not."""
    imported("follows", saved(tmp_path / "follows.tar", [*FIRST, directory("usr"), directory("usr/lib"), link("lib", "usr/lib"), link("var", "/usr")],
                              [("lib/file", {"data": b"in lib "}), directory("var"), ("var/file", {"data": b"in var"})]))
    assert cli.ok("run", "--image", "follows", "--", "sh", "-c", "cat /usr/lib/file /var/file; ls -ld /var").startswith("in lib in var")


def test_a_root_file_system_with_devices(cli, imported, tmp_path):
    """As debootstrap leaves it: /dev is full of nodes."""
    path = tmp_path / "root.tar"
    path.write_bytes(archive([*shell(), directory("etc"), ("etc/passwd", {"data": b"root:x:0:0::/root:/bin/sh\n"}), directory("dev"),
                              ("dev/null", {"kind": tarfile.CHRTYPE, "devmajor": 1, "devminor": 3}), ("dev/loop0", {"kind": tarfile.BLKTYPE, "devmajor": 7}),
                              directory("run"), ("run/initctl", {"kind": tarfile.FIFOTYPE})]))
    assert imported("devices", path)["skipped"] == 3
    assert cli.ok("run", "--image", "devices", "--", "sh", "-c", "echo works; ls /run").split()[0] == "works"


def test_a_directory_with_sockets(cli, tmp_path):
    """An archive cannot hold them, so tar leaves them out: they are counted with the rest, in one sentence."""
    tree = tmp_path / "tree"
    (tree / "bin").mkdir(parents=True)
    shutil.copy(BUSYBOX, tree / "bin/sh")
    os.mkfifo(tree / "fifo")
    with socket.socket(socket.AF_UNIX) as one, socket.socket(socket.AF_UNIX) as two:
        one.bind(f"/proc/self/fd/{(opened := os.open(tree, os.O_RDONLY))}/first")
        two.bind(f"/proc/self/fd/{opened}/bin/second")
        os.close(opened)
        done = cli("image", "import", "sockets", tree)
    assert done.returncode == 0 and done.err == "paddock: skipped 3 device nodes, sockets and fifos\n", done
    assert cli.ok("run", "--image", "sockets", "--", "sh", "-c", "echo works") == "works\n"
    cli.ok("image", "rm", "sockets")


def test_an_image_without_users(cli, imported, tmp_path):
    path = tmp_path / "bare.tar"
    path.write_bytes(archive(shell()))
    imported("bare", path)
    assert cli.ok("run", "--image", "bare", "--", "id", "-u") == "1000\n"
    assert cli.ok("run", "--image", "bare", "-u", "0", "--", "id", "-u") == "0\n"
    assert cli.ok("run", "--image", "bare", "-u", "root", "--", "id", "-u") == "0\n"
    assert cli.ok("run", "--image", "bare", "-u", "4321", "--", "sh", "-c", "id -u; id -g").split() == ["4321", "4321"]
    assert "nosuch" in cli.refused("run", "--image", "bare", "-u", "nosuch", "--", "true")


def test_what_is_neither_is_refused_with_help(cli, tmp_path):
    def refused(data):
        (tmp_path / "x").write_bytes(data)
        return cli.refused("image", "import", "neither", tmp_path / "x")

    assert "docker save" in refused(b"PK\x03\x04" + b"zip" * 1000)
    assert "compressed" in refused(gzip.compress(archive(shell())))
    nested = [directory("rootfs"), directory("rootfs/etc"), directory("rootfs/usr"), directory("rootfs/bin")]
    assert "tar -C rootfs" in refused(archive(nested))
    assert "neither" not in cli.ok("image", "ls")
