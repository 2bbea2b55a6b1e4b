"""Images that real tools have written: dockerd, skopeo and mmdebstrap, each without a registry."""

import contextlib
import json
import os
import shutil
import subprocess
import sys

import pytest

import paddock
from clitool import Cli

sys.path.append(str(paddock.ROOT / "test" / "kernels"))
import rootfs  # noqa: E402

DOCKERFILE = r"""FROM scratch
COPY bin /bin
RUN ["/bin/sh", "-c", "mkdir -p /etc /srv /opt/old && echo root:x:0:0::/root:/bin/sh >/etc/passwd && echo kept >/etc/kept && echo x >/etc/gone && echo a >/opt/old/a"]
RUN ["/bin/sh", "-c", "rm -r /etc/gone /opt/old && mkdir /opt/old && echo b >/opt/old/b && mkfifo /srv/fifo"]
ENV FROM_IMAGE="a b=c"
USER 1234:5
WORKDIR /srv
ENTRYPOINT ["/bin/sh"]
"""
PACKAGES = "base-files,base-passwd,dash,coreutils,libc6"
HOOK = 'for each in passwd group; do cp "$1/usr/share/base-passwd/$each.master" "$1/etc/$each"; done'
PROGRAMS = ("sh", "mkdir", "rm", "mkfifo", "cat", "ls", "id", "pwd")


def need(*programs):
    for program in programs:
        if not shutil.which(program):
            pytest.skip(f"there is no {program} (scripts/deps test)")


@pytest.fixture(scope="module")
def cli(daemon):
    return Cli(daemon)


@contextlib.contextmanager
def dockerd(place):
    """One of our own, with everything of it below `place`; yields what runs `docker`."""
    environment = {**os.environ, "DOCKER_HOST": f"unix://{place}/sock", "DOCKER_BUILDKIT": "0"}
    command = ["dockerd", "--data-root", place / "data", "--exec-root", place / "exec", "--pidfile", place / "pid", "--host", f"unix://{place}/sock",
               "--bridge=none", "--iptables=false", "--ip6tables=false", "--storage-driver=vfs"]

    def docker(*arguments):
        return subprocess.run(["docker", *map(str, arguments)], env=environment, capture_output=True, text=True, timeout=120 * paddock.SLOW)

    with open(place / "log", "wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        paddock.until(lambda: process.poll() is not None or docker("info").returncode == 0, "dockerd", timeout=60)
        if process.poll() is not None:
            pytest.skip(f"dockerd does not start here: {(place / 'log').read_text()[-500:]}")
        yield docker
    finally:
        process.terminate()
        process.wait(timeout=60 * paddock.SLOW)


@pytest.fixture(scope="module")
def saved(workdir):
    """What `docker save` writes of an image of three layers, two of them made by running something."""
    need("dockerd", "docker", "busybox")
    place = workdir / "docker"
    (place / "context" / "bin").mkdir(parents=True)
    shutil.copy(shutil.which("busybox"), place / "context/bin/busybox")
    for name in PROGRAMS:
        (place / "context/bin" / name).symlink_to("busybox")
    (place / "context/Dockerfile").write_text(DOCKERFILE)
    with dockerd(place) as docker:
        for step in (("build", "--network", "none", "-t", "real:1", place / "context"), ("save", "real:1", "-o", place / "saved.tar")):
            done = docker(*step)
            assert done.returncode == 0, done.stdout + done.stderr
    return place / "saved.tar"


def check(cli, image, path):
    said = json.loads(cli.ok("image", "import", image, path, "--json"))
    try:
        assert (said["user"], said["workdir"], said["entrypoint"], said["skipped"]) == ("1234", "/srv", ["/bin/sh"], 1)
        out = cli.ok("run", "--image", image, "--", "sh", "-c", 'cat /etc/kept; ls /etc/gone || ls /opt/old; id -u; pwd; echo "$FROM_IMAGE"')
        assert out.split("\n") == ["kept", "b", "1234", "/srv", "a b=c", ""]
    finally:
        cli.ok("image", "rm", image)


@pytest.mark.slow
def test_docker_save(cli, saved):
    check(cli, "docker-saved", saved)


@pytest.mark.slow
def test_oci_archive_of_skopeo(cli, saved, tmp_path):
    need("skopeo")
    path = tmp_path / "oci.tar"
    subprocess.run(["skopeo", "copy", "--insecure-policy", f"docker-archive:{saved}", f"oci-archive:{path}"], check=True, capture_output=True)
    check(cli, "skopeo-oci", path)


@pytest.mark.slow
def test_debian_tree(cli, tmp_path):
    """A directory of mmdebstrap's, with the nodes of /dev. Packages are unpacked and not configured, which takes
    minutes; the hook does what base-passwd does then."""
    need("mmdebstrap")
    tree = tmp_path / "tree"
    try:
        mirror = rootfs.mirrors()["Debian"]
    except rootfs.Unavailable as error:
        pytest.skip(str(error))
    made = subprocess.run(["mmdebstrap", "--variant=extract", "--mode=root", "--format=directory", f"--include={PACKAGES}", f"--extract-hook={HOOK}",
                           "bookworm", tree, f"deb {mirror} bookworm main"], capture_output=True, text=True, timeout=120 * paddock.SLOW)
    assert made.returncode == 0, made.stderr[-2000:]
    assert (tree / "dev/null").is_char_device()
    try:
        said = json.loads(cli.ok("image", "import", "debian-tree", tree, "--json", timeout=100 * paddock.SLOW))
        assert said["skipped"] >= 5, said
        out = cli.ok("run", "--image", "debian-tree", "-u", "root", "--", "sh", "-c", "cat /etc/debian_version; id -un; stat -c %U:%G /usr/bin/stat")
        assert out.startswith("12.") and out.endswith("root\nroot:root\n"), out
        assert cli.ok("run", "--image", "debian-tree", "-u", "daemon", "--", "id", "-un") == "daemon\n"
    finally:
        cli("image", "rm", "debian-tree")
        shutil.rmtree(tree, ignore_errors=True)
