"""apt, pip and npm in the default image: with their egress sets, from the registries that this machine has."""

import pytest

import paddock
from test_cli import paddock_cli  # noqa: F401

NEEDED = "apt,pypi,npm"


@pytest.fixture(scope="module")
def connected(daemon):
    """A box as `paddock create --allow apt,pypi,npm` makes it."""
    with paddock.boxes_of(daemon.client()) as make:
        yield make(egress={"allow": NEEDED.split(",")}, limits={"memory_mb": 1024, "disk_mb": 2000})


def sh(box, command, user="user", timeout_ms=140000):
    return box.exec(["/bin/bash", "-c", command], user=user, timeout_ms=timeout_ms)


def test_sets_of_the_command_line(paddock_cli, api):  # noqa: F811
    box = paddock_cli("create", "--allow", NEEDED).stdout.decode().strip()
    try:
        assert set(api.get(f"/v1/sandboxes/{box}/egress").json()["sets"]) == set(NEEDED.split(","))
    finally:
        paddock_cli("rm", box)


def test_the_machine_s_packages_are_known(box):
    listed = sh(box, "dpkg -s bash | grep ^Status; dpkg -S /usr/bin/env; dpkg --audit; apt-mark showmanual | head -1")
    assert listed.exit_code == 0 and b"install ok installed" in listed.out and b"coreutils" in listed.out, listed
    assert sh(box, "id _apt").exit_code == 0
    assert b"people" not in sh(box, "awk -F: '$3 >= 1000 && $1 != \"user\" && $1 != \"nobody\" { print \"people\" }' /etc/passwd").out


@pytest.mark.slow
def test_apt(connected):
    assert sh(connected, "command -v hello").exit_code != 0
    done = sh(connected, "sudo apt-get update && sudo DEBIAN_FRONTEND=noninteractive apt-get install -y hello && hello")
    assert done.exit_code == 0 and done.out.endswith(b"Hello, world!\n"), done
    assert b"can not drop privileges" not in done.err and b"unsandboxed" not in done.err, done.err
    assert b"install ok installed" in sh(connected, "dpkg -s hello").out
    assert sh(connected, "sudo apt-get remove -y hello && ! command -v hello").exit_code == 0


@pytest.mark.slow
def test_pip(connected):
    done = sh(connected, "cd /tmp && pip install cowsay && command -v cowsay && cowsay -t moo && python3 -c 'import cowsay'")
    assert done.exit_code == 0 and b"/home/user/.local/bin/cowsay" in done.out and b"moo" in done.out, done
    done = sh(connected, "sudo pip install pyfiglet && python3 -c 'import pyfiglet; print(pyfiglet.__file__)'")
    assert done.exit_code == 0 and b"/usr/local/lib" in done.out, done


@pytest.mark.slow
def test_npm(connected):
    done = sh(connected, "npm i -g semver 2>&1 && command -v semver && semver 1.2.3")
    assert done.exit_code == 0 and b"/home/user/.local/bin/semver\n1.2.3\n" in done.out, done
    done = sh(connected, "cd && mkdir p && cd p && npm init -y >/dev/null && npm i is-number && node -e 'console.log(require(\"is-number\")(5))'")
    assert done.exit_code == 0 and done.out.endswith(b"true\n"), done


@pytest.mark.slow
def test_each_needs_only_its_own_set(make_box):
    box = make_box(egress={"allow": ["pypi"]})
    assert sh(box, "pip download --no-deps -d /tmp/x iniconfig").exit_code == 0
    assert sh(box, "npm view is-number version --fetch-retries=0").exit_code != 0


def test_a_package_does_not_replace_our_sudo(box):
    assert b"/usr/bin/sudo.distrib" in sh(box, "dpkg-divert --list").out
