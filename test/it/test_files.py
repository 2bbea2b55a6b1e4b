"""The file API: bytes of any size, odd names, and paths that try to leave the box."""

import hashlib
import http.client
import json
import os
import socket
import stat

import pytest

import paddock

MIB = 1 << 20


def names(response):
    assert response.status == 200, response
    return {entry["name"]: entry for entry in response.json()["entries"]}


# ---- the plain cases ------------------------------------------------------


def test_put_get_head_delete(box, place):
    path = f"{place}/a.txt"
    made = box.put(path, b"hello\n")
    assert made.status == 201, made
    replaced = box.put(path, b"hello again\n")
    assert replaced.status in (200, 204)
    got = box.read(path)
    assert (got.status, got.body) == (200, b"hello again\n")
    assert got.headers["content-length"] == "12"
    head = box.head(path)
    assert (head.status, head.body, head.headers["content-length"]) == (200, b"", "12")
    assert box.check(f"cat {path}; stat -c '%a %U %G' {path}") == "hello again\n644 user user\n"
    assert box.remove(path).status == 204
    for response in (box.read(path), box.remove(path)):
        assert (response.status, response.code()) == (404, "not_found")
    assert box.head(path).status == 404


def test_empty_file(box, place):
    assert box.put(f"{place}/e", b"").status == 201
    got = box.read(f"{place}/e")
    assert (got.status, got.body) == (200, b"")
    assert box.head(f"{place}/e").headers["content-length"] == "0"


def test_get_is_not_sniffed(box, place):
    """A box's file must not become a page in somebody's browser."""
    box.put(f"{place}/x.html", b"<script>alert(1)</script>")
    got = box.read(f"{place}/x.html")
    assert "html" not in got.headers["content-type"]
    assert got.headers["x-content-type-options"] == "nosniff"


def test_replacing_keeps_the_mode(box, place):
    box.check(f"echo a > {place}/x; chmod 750 {place}/x")
    assert box.put(f"{place}/x", b"b").status in (200, 204)
    assert box.check(f"cat {place}/x; stat -c %a {place}/x") == "b750\n"


def test_put_is_atomic(box, place, daemon):
    """A reader sees the old bytes or the new; a broken upload leaves the old and no debris."""
    box.put(f"{place}/f", b"old")
    with daemon.raw() as connection:
        connection.sendall(
            f"PUT {box.file_path(place + '/f')} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {daemon.key}\r\n"
            "Content-Length: 1000000\r\n\r\n".encode() + b"n" * 100_000
        )
        assert box.read(f"{place}/f").body == b"old"
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    paddock.until(lambda: box.check(["ls", "-A", place]).split() == ["f"], "no debris of the broken upload")
    assert box.read(f"{place}/f").body == b"old"


def test_missing_parents(box, place):
    response = box.put(f"{place}/a/b/c", b"x")
    # Parents are made: an agent that writes a file wants it there.
    assert response.status == 201, response
    assert box.check(f"stat -c '%a %U' {place}/a/b") == "755 user\n"


def test_list(box, place):
    box.check(f"cd {place}; echo 12345 > f; mkdir d; ln -s f l; mkfifo p; chmod 600 f; touch .hidden")
    entries = names(box.ls(place))
    assert set(entries) == {"f", "d", "l", "p", ".hidden"}
    assert {name: entry["type"] for name, entry in entries.items()} == {
        "f": "file", "d": "directory", "l": "symlink", "p": "fifo", ".hidden": "file",
    }
    assert entries["f"]["size"] == 6 and entries["l"]["target"] == "f"
    assert set(names(box.ls("/"))) >= {"usr", "etc", "proc", "dev", "workspace", "tmp"}


def test_list_refusals(box, place):
    box.put(f"{place}/f", b"")
    response = box.ls(f"{place}/f")
    assert response.status in (400, 409) and response.code() in ("invalid_argument", "wrong_state")
    assert box.ls(f"{place}/none").status == 404


def test_list_many(box, place):
    box.check(f"cd {place}; seq -f name-with-some-length-%05g 20000 | xargs touch")
    assert len(names(box.ls(place))) == 20000


def test_directory_is_not_a_file(box, place):
    box.check(f"mkdir {place}/d; touch {place}/d/x")
    for response in (box.read(f"{place}/d"), box.put(f"{place}/d", b"x"), box.remove(f"{place}/d")):
        assert response.status in (400, 409), response
        response.code()
    assert box.check(f"ls {place}/d") == "x\n"


def test_file_as_a_directory(box, place):
    box.put(f"{place}/f", b"x")
    for response in (box.read(f"{place}/f/g"), box.put(f"{place}/f/g", b"x")):
        assert response.status in (400, 404, 409), response
    assert box.read(f"{place}/f").body == b"x"


def test_remove_of_a_tree_is_asked_for(box, place):
    box.check(f"mkdir -p {place}/d/e; touch {place}/d/e/x; ln -s /etc {place}/d/link")
    response = box.remove(f"{place}/d", "recursive=1")
    assert response.status == 204, response
    assert box.check(["ls", "-A", place]) == ""
    assert "passwd" in names(box.ls("/etc")), "symlinks in the tree are removed, not followed"


def test_unknown_query(box, place):
    box.put(f"{place}/f", b"x")
    response = box.read(f"{place}/f", "lst=1")
    assert (response.status, response.code()) == (400, "invalid_argument")


# ---- ranges ---------------------------------------------------------------


@pytest.mark.parametrize("header, status, body, content_range", [
    ("bytes=0-3", 206, b"0123", "bytes 0-3/10"),
    ("bytes=4-", 206, b"456789", "bytes 4-9/10"),
    ("bytes=-3", 206, b"789", "bytes 7-9/10"),
    ("bytes=-30", 206, b"0123456789", "bytes 0-9/10"),
    ("bytes=9-100", 206, b"9", "bytes 9-9/10"),
    ("bytes=10-", 416, None, "bytes */10"),
    ("bytes=-0", 416, None, "bytes */10"),
    # not understood, or more than one: the whole file is a right answer
    ("bytes=5-2", 200, b"0123456789", None),
    ("lines=0-3", 200, b"0123456789", None),
    ("bytes=0-1,3-4", 200, b"0123456789", None),
    ("bytes=99999999999999999999999-", (200, 416), None, None),
])
def test_range(box, place, header, status, body, content_range):
    box.put(f"{place}/r", b"0123456789")
    got = box.read(f"{place}/r", headers={"Range": header})
    assert got.status in (status if isinstance(status, tuple) else (status,))
    if body is not None:
        assert got.body == body
    if content_range:
        assert got.headers["content-range"] == content_range


# ---- big files ------------------------------------------------------------


class Pattern:
    """A file-like source of repeatable bytes that is never in memory as a whole."""

    block = hashlib.sha256(b"paddock").digest() * 2048  # 64 KiB

    def __init__(self, size):
        self.left, self.digest = size, hashlib.sha256()

    def read(self, n=65536):
        piece = self.block[: min(n, self.left)]
        self.left -= len(piece)
        self.digest.update(piece)
        return piece


def reset_peak(pid):
    with open(f"/proc/{pid}/clear_refs", "w") as file:
        file.write("5")


@pytest.mark.slow
def test_200_mb_both_ways_in_bounded_memory(make_box, daemon):
    box = make_box(limits={"memory_mb": 256})
    size = 200 * MIB
    watched = [*daemon.lasting(), box.pid1()]
    for pid in watched:
        reset_peak(pid)

    source = Pattern(size)
    response = box.client.request(
        "PUT", box.file_path("/workspace/big"), source, {"Content-Length": str(size)}
    )
    assert response.status == 201, response
    assert box.check("sha256sum < /workspace/big", timeout_ms=60_000).split()[0] == source.digest.hexdigest()

    answer, got = box.client.start("GET", box.file_path("/workspace/big")), hashlib.sha256()
    assert answer.status == 200 and int(answer.headers["content-length"]) == size
    while piece := answer.read(1 << 16):
        got.update(piece)
    assert got.hexdigest() == source.digest.hexdigest()

    peaks = {paddock.comm(pid): paddock.rss_kb(pid, "VmHWM") // 1024 for pid in watched}
    assert all(peak < 40 for peak in peaks.values()), f"MiB at the peak: {peaks}"


def test_chunked_upload(box, place):
    def pieces():
        for i in range(300):
            yield b"%05d" % i * 2000

    response = box.client.request("PUT", box.file_path(f"{place}/c"), pieces(), encode_chunked=True,
                                  headers={"Transfer-Encoding": "chunked"})
    assert response.status == 201, response
    assert box.read(f"{place}/c").body == b"".join(pieces())


def test_slow_reader_is_held_back(make_box, daemon):
    """A client that does not read costs a window, not the file's size."""
    box = make_box()
    box.check("head -c 150000000 /dev/zero > big")
    before = {pid: paddock.rss_kb(pid) for pid in daemon.lasting()}
    with daemon.raw() as connection:
        connection.sendall(
            f"GET {box.file_path('/workspace/big')} HTTP/1.1\r\nHost: x\r\n"
            f"Authorization: Bearer {daemon.key}\r\n\r\n".encode()
        )
        assert connection.recv(1000).startswith(b"HTTP/1.1 200")
        assert box.check("echo busy") == "busy\n", "the same box answers others meanwhile"
        for pid, rss in before.items():
            assert paddock.rss_kb(pid) < rss + 20_000, paddock.comm(pid)
    assert box.check("echo fine") == "fine\n"


def test_file_that_shrinks_while_it_is_read(make_box, daemon):
    """The length was promised: a short file must look broken, never complete."""
    box = make_box()
    box.check("head -c 100000000 /dev/zero > f")
    client = daemon.client()
    answer = client.start("GET", box.file_path("/workspace/f"))
    assert answer.status == 200
    box.check("truncate -s 1000 f")
    with pytest.raises((http.client.IncompleteRead, ConnectionError)):
        while answer.read(65536):
            pass
    client.close()


def test_growing_and_endless_files(box):
    for path in ("/dev/zero", "/dev/urandom", "/dev/full", "/dev/ptmx", "/dev/tty"):
        response = box.read(path)
        assert response.status in (400, 403, 404, 409), path
        response.code()
    assert box.read("/proc/kmsg").body in (b"",) or box.read("/proc/kmsg").status == 403


def test_proc_files_have_bytes_though_their_size_is_zero(box):
    got = box.read("/proc/self/status")
    assert got.status in (200, 400), got
    if got.status == 200:
        assert got.body.startswith(b"Name:")


# ---- names ----------------------------------------------------------------


ODD = [b"with space", b"new\nline", "ünïcödé €".encode(), b"\xff\xfe not utf-8", b"%41", b"a?b#c&d=e", b"-rf", b"'\"`$x",
       b"x" * 255, b"\x01\x7f", b"...", b"a\\b"]


@pytest.mark.parametrize("name", ODD, ids=[repr(name[:20]) for name in ODD])
def test_odd_names(box, place, name):
    path = place.encode() + b"/" + name
    assert box.put(path, b"content of " + name).status == 201
    assert box.read(path).body == b"content of " + name
    seen = box.python("import os,sys; sys.stdout.buffer.write(b'|'.join(os.listdir(sys.argv[1].encode())))", place)
    assert seen.out == name
    listing = box.ls(place)
    assert listing.status == 200 and len(listing.json()["entries"]) == 1
    try:
        assert listing.json()["entries"][0]["name"] == name.decode()
    except UnicodeDecodeError:
        json.loads(listing.body.decode("utf-8"))  # whatever stands for it is valid JSON
    assert box.remove(path).status == 204


def test_name_too_long(box, place):
    response = box.put(f"{place}/" + "x" * 256, b"")
    assert response.status == 400 and response.code() == "invalid_argument"
    response = box.put(f"{place}/" + "/".join(["y" * 200] * 25), b"")
    assert response.status in (400, 414)


@pytest.mark.parametrize("escape", ["%00", "a%00b", "%zz", "%", "%4", "%ff%00"])
def test_bad_escapes(box, escape):
    response = box.client.get(f"{box.path}/files/tmp/{escape}")
    assert response.status == 400 and response.code() in ("invalid_argument", "bad_request")


# ---- paths that try to leave ----------------------------------------------


def test_dot_dot_stays_in_the_box(box, marker, daemon):
    path, secret = marker
    box.check("echo inside > /workspace/../tmp/inside")
    with daemon.raw() as connection:  # http.client would not, but make sure that nobody tidies the path
        for dots in ("../" * 12, "%2e%2e/" * 12, "..%2f" * 12, "workspace/" + "../" * 12, "/" * 5):
            for target, wanted in ((str(path), None), ("/tmp/inside", b"inside\n")):
                connection.sendall(
                    f"GET {box.path}/files/{dots}{target[1:]} HTTP/1.1\r\nHost: x\r\n"
                    f"Authorization: Bearer {daemon.key}\r\n\r\n".encode()
                )
                (status, _, body), = paddock.read_responses(connection, 1)
                assert secret.encode() not in body
                assert status in (200, 400, 404), dots
                if status == 200:
                    assert wanted and body == wanted
                elif wanted is None:
                    assert status in (400, 404)


def test_symlinks_resolve_inside(box, place, marker):
    path, secret = marker
    box.check(f"""cd {place}
        echo own > own; ln -s own relative; ln -s {place}/own absolute; ln -s {path} host; ln -s / root
        ln -s /proc/1/root proc1root; ln -s /proc/self/root selfroot; ln -s loop loop
        ln -s ../../../../../../../../..{path} climb; ln -s /etc/passwd passwd; ln -s missing dangling""")
    assert box.read(f"{place}/relative").body == b"own\n"
    assert box.read(f"{place}/absolute").body == b"own\n"
    assert b"user:" in box.read(f"{place}/passwd").body
    assert box.read("/etc/passwd").body == box.read(f"{place}/root/etc/passwd").body
    for name in ("host", "climb", f"root{path}", f"proc1root{path}", f"selfroot{path}"):
        response = box.read(f"{place}/{name}")
        assert response.status in (403, 404), name
        assert secret.encode() not in response.body
    response = box.read(f"{place}/loop")
    assert response.status == 400 and response.code() == "invalid_argument"
    # Writing through a link may make or replace a file of the box, never one of the host.
    for name in ("host", "climb", f"proc1root{path}"):
        box.put(f"{place}/{name}", b"overwritten")
    assert path.read_text() == secret
    assert box.remove(f"{place}/host").status == 204
    assert path.exists()


def test_magic_links_of_pid_1(box, marker):
    path, secret = marker
    for link in ("root", "cwd", "fd/0/..", "fd/3", "ns/mnt", "exe", "map_files"):
        for query in ("", "user=root"):
            response = box.read(f"/proc/1/{link}{path}", query)
            assert response.status in (400, 403, 404, 409), link
            assert secret.encode() not in response.body


def test_fifo_does_not_hang(box, place):
    box.check(["mkfifo", f"{place}/fifo"])
    for response in (box.read(f"{place}/fifo"), box.client.request("HEAD", box.file_path(f"{place}/fifo"))):
        assert response.status in (200, 400, 409), response
    response = box.read(f"{place}/fifo")
    assert response.status in (400, 409) and response.code()
    assert box.check("echo alive") == "alive\n"


def test_socket_is_not_a_file(box, place):
    box.check(["/usr/bin/python3", "-c", f"import socket; socket.socket(socket.AF_UNIX).bind('{place}/s')"])
    response = box.read(f"{place}/s")
    assert response.status in (400, 409), response


# ---- rights ---------------------------------------------------------------


def test_rights_are_the_users(box):
    box.check("mkdir -p /root/private && echo secret > /root/private/f && chmod 700 /root /root/private", user="root")
    for response in (box.read("/root/private/f"), box.put("/root/private/g", b""), box.put("/etc/passwd", b""),
                     box.remove("/root/private/f"), box.ls("/root/private")):
        assert (response.status, response.code()) == (403, "forbidden"), response
    got = box.read("/root/private/f", "user=root")
    assert (got.status, got.body) == (200, b"secret\n")
    assert box.put("/root/private/g", b"by root", "user=root").status == 201
    assert box.check("stat -c %U /root/private/g; cat /root/private/g", user="root") == "root\nby root"
    assert box.remove("/root/private/g", "user=root").status == 204
    response = box.read("/etc/passwd", "user=nobody-of-this-name")
    assert (response.status, response.code()) == (400, "invalid_argument")


def test_setuid_bits_are_not_kept(box, place):
    box.check(f"cp /bin/true {place}/s; chmod 6755 {place}/s")
    box.put(f"{place}/s", b"#!/bin/sh\nid -u\n")
    mode = int(box.check(["stat", "-c", "%a", f"{place}/s"]), 8)
    assert not mode & (stat.S_ISUID | stat.S_ISGID)


def test_readonly_root(make_box):
    box = make_box(readonly_root=True)
    for path in ("/etc/x", "/usr/bin/x", "/x", "/opt/x"):
        response = box.put(path, b"x", "user=root")
        assert response.status in (403, 409), path
        assert "read-only" in response.json()["error"]["message"].lower(), path
        assert box.exec(f"echo x > {path}", user="root").exit_code != 0
    for path in ("/workspace/x", "/tmp/x", "/dev/shm/x"):
        assert box.put(path, b"x").status == 201, path


def test_boxes_do_not_see_each_others_files(make_box):
    one, two = make_box(), make_box()
    assert one.put("/workspace/a", b"one").status == 201
    assert one.put("/etc/changed", b"one", "user=root").status == 201
    assert one.put("/usr/bin/changed", b"one", "user=root").status == 201
    for path in ("/workspace/a", "/etc/changed", "/usr/bin/changed"):
        assert two.read(path).status == 404
    assert not os.path.exists("/usr/bin/changed")


def test_disk_full_is_said(make_box):
    """A full file system is the box's problem and an honest answer: /dev/shm has a size."""
    box = make_box()
    size = int(box.check("df --output=size -B1 /dev/shm | tail -1"))
    assert size < 64 << 30, "/dev/shm is bounded"
    box.exec("head -c 1T /dev/zero > /dev/shm/fill", timeout_ms=30_000)
    response = box.put("/dev/shm/more", b"x" * MIB)
    if response.status != 201:  # the memory limit may have come first
        assert (response.status, response.code()) == (507, "storage_full")
    assert box.exec("rm -f /dev/shm/*; echo fine").out == b"fine\n"


def test_a_file_that_was_read_is_read_although_its_sandbox_ends(daemon):
    """The connection goes on: the answer was complete, whatever becomes of the sandbox that gave it."""
    reader, remover = daemon.client(), daemon.client()
    for _ in range(20):
        box = reader.create()
        box.put("/workspace/a", b"of the first")
        assert reader.get(f"{box.path}/files/workspace/a").body == b"of the first"
        removal = paddock.Background(remover.delete, box.path)
        assert reader.get("/v1/images").status == 200
        assert removal.result().status == 204
    reader.close()
    remover.close()
