"""A box knows itself by name, in every image; and what it may not reach says so."""

import json
import subprocess

import pytest

import paddock
from test_images import Tar
from verdicts import last as verdict

LOOKUP = r"""
#include <arpa/inet.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
int main(int argc, char **argv)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *found;
	struct timespec a, b;
	clock_gettime(CLOCK_MONOTONIC, &a);
	int r = getaddrinfo(argv[1], NULL, &hints, &found);
	clock_gettime(CLOCK_MONOTONIC, &b);
	for (struct addrinfo *i = r ? NULL : found; i; i = i->ai_next) {
		char text[64];
		getnameinfo(i->ai_addr, i->ai_addrlen, text, sizeof(text), NULL, 0, NI_NUMERICHOST);
		printf("%s ", text);
	}
	printf("%s %ld\n", r ? gai_strerror(r) : "found", (b.tv_sec - a.tv_sec) * 1000 + (b.tv_nsec - a.tv_nsec) / 1000000);
}
"""


@pytest.fixture(scope="module")
def lookup(workdir):
    """A resolver of musl's: {name: (addresses and result, milliseconds)}."""
    (workdir / "lookup.c").write_text(LOOKUP)
    subprocess.run(["musl-gcc", "-static", "-O1", "-o", workdir / "lookup", workdir / "lookup.c"], check=True)
    return (workdir / "lookup").read_bytes()


@pytest.fixture(scope="module")
def bare(api, lookup):
    """An image without any of the files that name things, and with links that lead nowhere."""
    import tarfile
    tar = Tar().file("bin/lookup", lookup, 0o755).add("etc/resolv.conf", tarfile.SYMTYPE, link="../run/systemd/resolve/stub-resolv.conf")
    assert api.request("PUT", "/v1/images/bare", tar.bytes(), {"Content-Type": "application/x-tar"}).status in (200, 201)
    yield "bare"
    api.delete("/v1/images/bare")


def test_the_machine_s_image(make_box):
    box = make_box(name="my-box")
    assert box.check("hostname; hostname -f; cat /etc/hostname").split() == ["my-box"] * 3
    assert box.check("getent ahostsv4 localhost | head -1; getent ahostsv4 my-box | head -1").split()[::3] == ["127.0.0.1", "127.0.1.1"]
    assert box.check("getent hosts ip6-localhost").split()[0] == "::1"
    assert len(box.check("cat /etc/machine-id").strip()) == 32
    other = make_box()
    assert other.check("cat /etc/machine-id") != box.check("cat /etc/machine-id")
    assert other.check("getent hosts $(hostname)").split()[1] == other.check("hostname").strip()


@pytest.mark.parametrize("readonly", [False, True])
def test_an_image_without_files(make_box, bare, readonly):
    box = make_box(image=bare, name="tiny-box", readonly_root=readonly)
    for name, want in (("localhost", {"127.0.0.1", "::1"}), ("tiny-box", {"127.0.0.1", "127.0.1.1", "::1"}), ("ip6-localhost", {"::1"})):
        found = box.check(["/bin/lookup", name]).split()
        assert found[-2] == "found" and set(found[:-2]) <= want and found[0] in want, (name, found)
    if not readonly:
        assert box.check(["/bin/cat", "/etc/resolv.conf"]) == "nameserver 127.0.0.1\n"
        assert box.check(["/bin/cat", "/etc/hostname"]) == "tiny-box\n"
        assert len(box.check(["/bin/cat", "/etc/machine-id"])) == 33


def test_an_image_s_own_files_stay(api, make_box):
    hosts = b"127.0.0.1 localhost loghost\n10.1.2.3 db\n::1 ip6-localhost\n"
    tar = Tar().file("etc/hosts", hosts).file("etc/resolv.conf", b"nameserver 9.9.9.9\n").file("etc/machine-id", b"0" * 32 + b"\n")
    assert api.request("PUT", "/v1/images/own", tar.bytes(), {"Content-Type": "application/x-tar"}).status in (200, 201)
    box = make_box(image="own", name="first")
    assert box.check(["/bin/cat", "/etc/hosts"]) == hosts.decode() + "127.0.1.1 first # paddock\n"
    assert box.check(["/bin/cat", "/etc/resolv.conf"]) == "nameserver 9.9.9.9\n"
    assert box.check(["/bin/cat", "/etc/machine-id"]) == "0" * 32 + "\n"
    box.delete()
    api.delete("/v1/images/own")


def test_a_fork_has_its_own_name(make_box, api):
    box = make_box(name="parent")
    response = api.post(f"{box.path}/fork", {"count": 1})
    assert response.status == 201, response
    fork = paddock.Box(api, response.json()["sandboxes"][0])
    try:
        name = fork.check("hostname").strip()
        assert name != "parent" and fork.check("cat /etc/hostname").strip() == name
        assert [line for line in fork.check("cat /etc/hosts").splitlines() if "paddock" in line] == [f"127.0.1.1 {name} # paddock"]
    finally:
        fork.delete()


def test_a_denied_name_fails_at_once_and_says_why(make_box, bare):
    box = make_box(image=bare)
    told = box.check(["/bin/lookup", "denied.example"]).split()
    assert int(told[-1]) < 4500 and "found" not in told, told
    assert verdict(box, verdict="deny")["host"] == "denied.example"
    machine = make_box()
    script = r'''
import socket, struct, time
start = time.monotonic()
try: socket.getaddrinfo("denied.example", 80); print("found")
except socket.gaierror as e: print(e.errno == socket.EAI_NONAME, time.monotonic() - start < 4.5)
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(5)
q = struct.pack("!HHHHHH", 7, 0x100, 1, 0, 0, 1) + b"\6denied\7example\0" + struct.pack("!HH", 1, 1)
s.sendto(q + b"\0" + struct.pack("!HHIH", 41, 1232, 0, 0), ("127.0.0.1", 53))
m = s.recv(2000)
opt = m[len(q):]
assert opt[:3] == b"\0\0\x29", opt
size, code, n, info = struct.unpack("!HHHH", opt[9:17])
print(m[3] & 15, code, info, opt[17:].decode())
assert size == len(opt) - 11 and n == size - 4
'''
    assert machine.check(["/usr/bin/python3", "-c", script]) == (
        "True True\n3 15 15 paddock: the policy of this sandbox does not allow this name\n")


def test_programs_take_a_denied_name_as_final(make_box):
    """Nobody is told to try again: docs/egress.md compares it with REFUSED."""
    box = make_box()
    assert box.check("node -e \"require('dns').lookup('denied.example', e => console.log(e.code))\"") == "ENOTFOUND\n"
    assert box.check("node -e \"fetch('http://denied.example/').catch(e => console.log(e.cause.code))\"") == "ENOTFOUND\n"
    curl = box.exec("curl -sS -m 20 http://denied.example/")
    assert curl.exit_code == 6 and b"Could not resolve host: denied.example" in curl.err


def test_a_denied_host_says_why(make_box):
    box = make_box()
    http = box.check("curl -sS -m 10 http://192.0.2.1/ -w '%{http_code}\\n'")
    assert http.endswith("403\n") and "does not allow" in http, http
    proxied = box.check("curl -sS -m 10 -x http://127.0.0.1:15004 http://denied.example/ -w '%{http_code}\\n'")
    assert proxied.endswith("403\n") and "denied.example" in proxied
    tls = box.exec("curl -sS -m 10 --resolve denied.example:443:192.0.2.1 https://denied.example/")
    assert tls.exit_code and b"access denied" in tls.err.lower(), tls
