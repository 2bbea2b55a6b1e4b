"""`make deb`: what the package is. Installing, upgrading and removing it is test/kernels/test_deb.py's, in a guest with systemd."""

import concurrent.futures
import grp
import subprocess

import pytest

import paddock


WINDOW = {"paddock-window", "paddock-watch"}  # of a package of their own, which test/window looks at


def build():
    done = subprocess.run(["scripts/deb"], cwd=paddock.ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return paddock.ROOT / done.stdout.strip()


@pytest.fixture(scope="module")
def package():
    return build()


def test_same_bytes(package):
    before = package.read_bytes()
    assert build().read_bytes() == before


def test_several_at_once(package):
    """The guest of `make test` gets a package while these tests make theirs."""
    before = package.read_bytes()
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        assert all(made.read_bytes() == before for made in pool.map(lambda _: build(), range(3)))


def test_bare_machine(package, workdir):
    """apt finds everything that it needs for a machine with no package at all, and btrfs's programs are in."""
    status = workdir / "status"
    status.write_text("")
    done = subprocess.run(["apt-get", "-o", f"Dir::State::status={status}", "--simulate", "--no-install-recommends", "install", package],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    planned = {line.split()[1] for line in done.stdout.splitlines() if line.startswith("Inst ")}
    assert {"paddock", "btrfs-progs", "libnghttp2-14", "libsqlite3-0"} <= planned
    assert not [name for name in planned if "gtk" in name or "webkit" in name]  # the desktop's application is apart


def test_contents(package):
    listed = subprocess.run(["dpkg-deb", "-c", package], capture_output=True, text=True, check=True).stdout.splitlines()
    files = {line.split()[5]: line.split()[:2] for line in listed}
    for name in ("usr/bin/paddock", "usr/libexec/paddock/paddockd", "usr/libexec/paddock/paddock-signer", "usr/lib/systemd/system/paddock.service", "usr/share/man/man1/paddock.1.gz",
                 "usr/share/bash-completion/completions/paddock"):
        assert f"./{name}" in files
    assert all(owner == "root/root" and mode[5] != "w" and mode[8] != "w" for mode, owner in files.values())
    programs = {path.name for path in (paddock.ROOT / "build/bin").iterdir()} - WINDOW
    names = {name.rpartition("/")[2] for name in files}
    assert programs <= names and not WINDOW & names
    unit = subprocess.run(f"dpkg-deb --fsys-tarfile {package} | tar -xO ./usr/lib/systemd/system/paddock.service", shell=True, check=True,
                          capture_output=True, text=True).stdout
    assert "ExecStart=/usr/bin/paddock serve" in unit and "/usr/local" not in unit


def test_group_of_the_key(own_daemon):
    """`admin_group` lets a group read the administrator's key, the next start without it takes that back; no such group, no start."""
    daemon = own_daemon(environment={"PADDOCK_ADMIN_GROUP": "nogroup"}).start()
    key = daemon.data_dir / "admin.key"
    modes = [(key.stat().st_mode & 0o777, key.stat().st_gid)]
    daemon.stop()
    daemon.environment.pop("PADDOCK_ADMIN_GROUP")
    daemon.start()
    modes.append((key.stat().st_mode & 0o777, key.stat().st_gid))
    assert modes == [(0o640, grp.getgrnam("nogroup").gr_gid), (0o600, 0)]
    daemon.stop()
    serve = subprocess.run([paddock.BIN / "paddock", "serve", "--data-dir", daemon.data_dir, "--run-dir", daemon.run_dir, "--listen", "127.0.0.1:0"],
                           env=paddock.clean_environment(PADDOCK_ADMIN_GROUP="no-such-group"), capture_output=True, text=True, timeout=60 * paddock.SLOW)
    assert serve.returncode and "no group named no-such-group" in serve.stderr, serve
