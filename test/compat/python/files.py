"""Files."""

import io
import json
import urllib.request

from scenario import book, w

SCENARIOS, scenario = book()
GONE = "NotFoundException FileNotFoundException"


@scenario("file as text and bytes")
async def text(world):
    f = world.main.files
    made = await w(f.write("/tmp/text", "häslein\n"))
    assert (made.name, made.path) == ("text", "/tmp/text")
    assert await w(f.read("/tmp/text")) == "häslein\n" and bytes(await w(f.read("/tmp/text", format="bytes"))) == "häslein\n".encode()
    data = bytes(range(256)) * 5000
    await w(f.write("bytes", data))
    assert bytes(await w(f.read("/home/user/bytes", format="bytes"))) == data
    await w(f.write("/tmp/stream", io.BytesIO(data)))
    parts = await w(f.read("/tmp/stream", format="stream"))
    got = b"".join([each async for each in parts]) if world.asynchronous else b"".join(parts)
    assert got == data
    await w(f.write("/tmp/empty", ""))
    assert await w(f.read("/tmp/empty")) == ""


@scenario("many files at once")
async def many(world):
    made = await w(world.main.files.write_files([{"path": "/tmp/many/a", "data": "one"}, {"path": "/tmp/many/b b", "data": b"two"},
                                                 {"path": "many/ü", "data": "three"}]))
    assert [each.path for each in made] == ["/tmp/many/a", "/tmp/many/b b", "/home/user/many/ü"]
    assert await w(world.main.files.read("many/ü")) == "three"


@scenario("file in a place of root")
async def of_root(world):
    f = world.main.files
    for place in ("/app", "/opt", "/root", "/usr/local"):
        await w(f.write(f"{place}/deep/file", "x"))
        assert await w(f.read(f"{place}/deep/file")) == "x"
        owners = await w(world.main.commands.run(f"sudo stat -c %U {place}/deep {place}/deep/file"))
        assert owners.stdout == "user\nuser\n"
        await w(f.make_dir(f"{place}/made"))
        await w(f.rename(f"{place}/deep/file", f"{place}/made/file"))
        assert [each.name for each in await w(f.list(f"{place}/made"))] == ["file"]
        await w(f.remove(f"{place}/made"))
        await w(f.remove(f"{place}/deep"))
        assert await w(f.exists(f"{place}/made/file")) is False


@scenario("exists never throws")
async def exists(world):
    f = world.main.files
    await w(f.write("/tmp/is-file", "x"))
    await w(world.main.commands.run("ln -sfn circle /tmp/circle; sudo mkdir -m 700 -p /srv/closed"))
    for path in ("/tmp/is-file/below", "/tmp/circle/below", "/srv/closed/none", "/tmp/" + "n" * 300, "/root/none"):
        assert await w(f.exists(path)) is False, path
    assert await w(f.exists("/srv/closed")) is True


@scenario("file that is not there")
async def missing(world):
    f = world.main.files
    for call, arguments in ((f.read, ["/tmp/none"]), (f.get_info, ["/tmp/none"]), (f.list, ["/tmp/none"]), (f.rename, ["/tmp/none", "/tmp/other"])):
        await world.rejects(GONE, call, *arguments)


@scenario("list and info")
async def listing(world):
    f = world.main.files
    await w(world.main.commands.run("mkdir -p /tmp/list/d/e; echo 12345 > /tmp/list/a; chmod 640 /tmp/list/a; ln -sfn a /tmp/list/l"))
    assert sorted(each.name for each in await w(f.list("/tmp/list"))) == ["a", "d", "l"]
    assert sorted(each.path for each in await w(f.list("/tmp/list", depth=2))) == ["/tmp/list/a", "/tmp/list/d", "/tmp/list/d/e", "/tmp/list/l"]
    a = await w(f.get_info("/tmp/list/a"))
    assert (a.size, a.mode, a.permissions, a.owner, a.group) == (6, 0o640, "-rw-r-----", "user", "user")
    d = await w(f.get_info("/tmp/list/d"))
    assert getattr(d.type, "value", d.type) == "dir" and d.size > 0
    await world.rejects("InvalidArgumentException", f.list, "/tmp/list/a")


@scenario("rename, remove, exists, directory")
async def renaming(world):
    f = world.main.files
    await w(f.write("/tmp/old", "x"))
    assert (await w(f.rename("/tmp/old", "/tmp/renamed"))).path == "/tmp/renamed"
    assert await w(f.exists("/tmp/old")) is False and await w(f.exists("/tmp/renamed")) is True
    await w(f.remove("/tmp/renamed"))
    assert await w(f.exists("/tmp/renamed")) is False
    assert await w(f.make_dir("/tmp/made/here")) is True and await w(f.make_dir("/tmp/made/here")) is False


@scenario("watch")
async def watch(world):
    f, seen = world.main.files, []
    await w(f.make_dir("/tmp/watched"))
    if world.asynchronous:
        handle = await w(f.watch_dir("/tmp/watched", on_event=seen.append))
    else:
        handle = f.watch_dir("/tmp/watched")

    def names():
        if not world.asynchronous:
            seen.extend(handle.get_new_events())
        return {(each.type.value, each.name) for each in seen}
    await w(f.write("/tmp/watched/file", "x"))
    await world.until("create and write", lambda: {("create", "file"), ("write", "file")} <= names())
    await w(f.rename("/tmp/watched/file", "/tmp/watched/other"))
    await world.until("rename", lambda: ("rename", "file") in names())
    await w(f.remove("/tmp/watched/other"))
    await world.until("remove", lambda: ("remove", "other") in names())
    await w(handle.stop())
    await world.rejects(GONE, f.watch_dir, "/tmp/none", *([seen.append] if world.asynchronous else []))


@scenario("metadata of a file", since="2.63.0")
async def metadata(world):
    made = await w(world.main.files.write("/tmp/described", "x", metadata={"origin": "here"}))
    assert dict(made.metadata) == {"origin": "here"}
    assert dict((await w(world.main.files.get_info("/tmp/described"))).metadata) == {"origin": "here"}


def fetch(url, data=None, headers=None):
    with urllib.request.urlopen(urllib.request.Request(url, data, headers or {}), timeout=20) as response:  # noqa: S310
        return response.read()


@scenario("signed links")
async def links(world):
    await w(world.main.files.write("/tmp/linked", "by link"))
    assert fetch(await w(world.main.download_url("/tmp/linked", use_signature_expiration=60))) == b"by link"
    body = b'--B\r\nContent-Disposition: form-data; name="file"\r\n\r\nwithout a name\r\n--B--\r\n'
    sent = fetch(await w(world.main.upload_url("/tmp/sent", use_signature_expiration=60)), body, {"Content-Type": "multipart/form-data; boundary=B"})
    assert json.loads(sent)[0]["path"] == "/tmp/sent" and await w(world.main.files.read("/tmp/sent")) == "without a name"
