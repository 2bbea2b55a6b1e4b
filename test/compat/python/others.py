"""Ports, volumes and secrets."""

import http.client
import os
from urllib.parse import urlsplit

from scenario import book, w

SCENARIOS, scenario = book()
BASE = urlsplit(os.environ.get("E2B_SANDBOX_URL", "http://localhost"))


def ask(host, path="/", **headers):
    """A browser would find the host by DNS; here only its name counts."""
    connection = http.client.HTTPConnection(BASE.hostname, BASE.port, timeout=20)
    connection.request("GET", path, headers={"Host": host, **headers})
    response = connection.getresponse()
    body = response.read()
    connection.close()
    return response.status, body


@scenario("host of a server in the box")
async def host(world):
    await w(world.main.commands.run("mkdir -p /tmp/www; echo served > /tmp/www/f"))
    await w(world.main.commands.run("exec python3 -m http.server 8123 -b 127.0.0.1 -d /tmp/www", background=True, timeout=0))
    name = world.main.get_host(8123)
    assert name == f"8123-{world.main.sandbox_id}.{os.environ['E2B_DOMAIN']}:{BASE.port}"
    await world.until("the server answers", lambda: ask(name, "/f") == (200, b"served\n"))
    assert ask(world.main.get_host(8124))[0] == 502


@scenario("volumes", since="2.63.0")
async def volumes(world):
    name = f"py-{world.mode}-{os.getpid()}"
    volume = await w(world.Volume.create(name))
    await world.rejects("VolumeException SandboxException", world.Volume.create, name)
    await w(volume.write_file("/a/file.txt", "häslein\n"))
    assert await w(volume.read_file("/a/file.txt")) == "häslein\n"
    assert await w(volume.exists("/a")) is True and await w(volume.exists("/nothing")) is False
    b = await world.box(volume_mounts={"/workspace": volume})
    assert await w(b.files.read("/workspace/a/file.txt")) == "häslein\n"
    await w(b.kill())
    # Several, and where the client says.
    other = await w(world.Volume.create(f"{name}-other"))
    b = await world.box(volume_mounts={"/data": volume, "/home/user/more": other.name})
    await w(b.commands.run("cat /data/a/file.txt >more/copy"))
    assert await w(other.read_file("/copy")) == "häslein\n"
    shown = (await w(b.get_info())).volume_mounts
    assert sorted((one.name, one.path) if hasattr(one, "name") else (one["name"], one["path"]) for one in shown) == [
        (name, "/data"), (other.name, "/home/user/more")]
    await world.rejects("VolumeException SandboxException", world.Volume.destroy, other.volume_id)
    await world.rejects("InvalidArgumentException SandboxException", world.Sandbox.create, volume_mounts={"/a": volume, "/a/b": other})
    await w(b.kill())
    assert await w(world.Volume.destroy(other.volume_id)) is True
    assert await w(world.Volume.destroy(volume.volume_id)) is True


@scenario("secrets", since="2.63.0")
async def secrets(world):
    name = f"py-{world.mode}-{os.getpid()}"
    made = await w(world.Secret.create(name, "first value"))
    assert (made.name, made.version) == (name, 1)
    assert (await w(world.Secret.update(name, "second value", metadata={"team": "billing"}))).version == 2
    assert (await w(world.Secret.update(name, "third value"))).metadata == {"team": "billing"}
    assert (await w(world.Secret.get_info(name))).metadata == {"team": "billing"}
    assert name in [each.name for each in await world.pages(world.Secret.list())]
    assert await w(world.Secret.exists(name)) is True and await w(world.Secret.destroy(name)) is True
    assert await w(world.Secret.exists(name)) is False
