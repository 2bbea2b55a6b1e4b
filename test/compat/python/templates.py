"""Templates: built from steps, named, tagged, and boxes of them."""

import os
import tempfile
import urllib.error
import urllib.request
from pathlib import Path

from scenario import book, w

SCENARIOS, scenario = book()
serial = 0


def unique(world):
    global serial
    serial += 1
    return f"py-{world.mode}-{world.version.replace('.', '-')}-{os.getpid()}-{serial}"


def remove(template):
    ask = urllib.request.Request(f"{os.environ['E2B_API_URL']}/templates/{template}", method="DELETE",  # noqa: S310
                                 headers={"X-API-Key": os.environ["E2B_API_KEY"]})
    try:
        return urllib.request.urlopen(ask, timeout=20).status  # noqa: S310
    except urllib.error.HTTPError as error:
        return error.code


def build(world, template, name, **options):
    return world.begin(world.Template.build, template, alias=name, **options)


@scenario("template of all kinds of steps")
async def steps(world):
    root = Path(tempfile.mkdtemp(prefix="compat-"))
    (root / "tree").mkdir()
    (root / "one.txt").write_text("one\n")
    (root / "tree" / "a.txt").write_text("a\n")
    name, lines = unique(world), []
    template = (world.Template(file_context_path=str(root)).from_base_image().run_cmd(f"echo {name}").set_envs({"FIRST": "one two"})
                .run_cmd('echo "said $FIRST"; id -un > /tmp/who').run_cmd("id -un > /root/who", user="root")
                .set_workdir("/opt/app").copy("one.txt", "renamed.txt").copy("tree", "/opt/tree/").set_user("builder").run_cmd("pwd; id -un"))
    info = await build(world, template, name, on_build_logs=lambda entry: lines.append(entry.message))
    for want in ("said one two", "/opt/app", "builder"):
        assert want in lines, lines
    b = await world.box(name)
    r = await w(b.commands.run('echo "$FIRST"; pwd; id -un; cat /tmp/who renamed.txt /opt/tree/a.txt; sudo cat /root/who'))
    assert r.stdout.split("\n") == ["one two", "/opt/app", "builder", "user", "one", "a", "root", ""]
    await w(b.kill())
    assert remove(info.template_id) == 204


@scenario("template that fails")
async def failing(world):
    name = unique(world)
    error = await world.rejects("BuildException", world.Template.build, world.Template().from_base_image().run_cmd("exit 4"), alias=name)
    assert "failed to run command 'exit 4': exit status 4" in str(error)
    await world.rejects("SandboxException NotFoundException", world.Sandbox.create, name)
    remove(name)


@scenario("template with a start command")
async def starting(world):
    name = unique(world)
    template = world.Template().from_base_image().set_start_cmd("echo hello > /tmp/started; exec sleep 1000", "test -e /tmp/started")
    info = await build(world, template, name)
    b = await world.box(name)
    assert (await w(b.commands.run("cat /tmp/started"))).stdout == "hello\n"
    await w(b.kill())
    assert remove(info.template_id) == 204


@scenario("template whose steps were run before")
async def cached(world):
    name = unique(world)

    def template():
        return world.Template().from_base_image().set_envs({"OF": name}).run_cmd("cat /proc/sys/kernel/random/uuid > /tmp/drawn")

    async def drawn():
        b = await world.box(name)
        out = (await w(b.commands.run("cat /tmp/drawn"))).stdout
        await w(b.kill())
        return out
    info = await build(world, template(), name)
    first, lines = await drawn(), []
    await build(world, template(), name, on_build_logs=lambda entry: lines.append(entry.message))
    assert await drawn() == first and len([each for each in lines if each.startswith("CACHED ")]) == 2, lines
    await build(world, template(), name, skip_cache=True)
    assert await drawn() != first
    # Each step is kept, also of a build that fails later.
    await world.rejects("BuildException", world.Template.build, template().run_cmd("echo more > /tmp/more").run_cmd("exit 3"), alias=name)
    lines.clear()
    await build(world, template().run_cmd("echo more > /tmp/more").run_cmd("cat /tmp/more"), name, on_build_logs=lambda entry: lines.append(entry.message))
    assert len([each for each in lines if each.startswith("CACHED ")]) == 3, lines
    assert remove(info.template_id) == 204


@scenario("template with tags", since="2.20.0")
async def tags(world):
    name = unique(world)
    one = await world.begin(world.Template.build, world.Template().from_base_image().run_cmd("echo 1 > /tmp/n"), f"{name}:v1")
    two = await world.begin(world.Template.build, world.Template().from_base_image().run_cmd("echo 2 > /tmp/n"), name)
    assert one.template_id == two.template_id

    async def says(ref):
        b = await world.box(ref)
        out = (await w(b.commands.run("cat /tmp/n"))).stdout.strip()
        await w(b.kill())
        return out
    assert await says(f"{name}:v1") == "1" and await says(name) == "2"
    tagged = await w(world.Template.assign_tags(name, ["stable"]))
    assert tagged.build_id == two.build_id and await says(f"{name}:stable") == "2"
    await w(world.Template.remove_tags(name, "v1"))
    error = await world.rejects("SandboxException NotFoundException", world.Sandbox.create, f"{name}:v1")
    assert "does not exist" in str(error)
    assert remove(one.template_id) == 204
