"""The control plane: making, finding, listing, pausing, ending; snapshots and forks."""

import datetime
import re

from scenario import book, w

SCENARIOS, scenario = book()
GONE = "NotFoundException SandboxNotFoundException"


def left(info):
    return (info.end_at - datetime.datetime.now(datetime.timezone.utc)).total_seconds()


@scenario("create")
async def create(world):
    assert re.fullmatch("[a-z0-9]{20}", world.main.sandbox_id)
    b = await world.box("base", metadata={"purpose": "a b&c=d", "k/1": "ü"}, envs={"A": "1"}, timeout=60)
    info = await w(b.get_info())
    assert (info.sandbox_id, info.template_id, str(getattr(info.state, "value", info.state))) == (b.sandbox_id, "base", "running")
    assert dict(info.metadata) == {"purpose": "a b&c=d", "k/1": "ü"}
    assert info.cpu_count >= 1 and info.memory_mb >= 16 and 50 < left(info) < 90
    assert await w(b.kill()) is True


@scenario("create from an unknown template")
async def unknown_template(world):
    error = await world.rejects("SandboxException " + GONE, world.Sandbox.create, "no-such-template")
    assert "not found" in str(error)


@scenario("create with a wrong key")
async def wrong_key(world):
    await world.rejects("AuthenticationException", world.Sandbox.create, api_key="e2b_" + "0" * 40)


@scenario("what a box may reach", since="2.39.0")
async def reach(world):
    b = await world.box(network={"allow_out": ["example.org"], "deny_out": [world.sdk.ALL_TRAFFIC]})
    shown = (await w(b.get_info())).network
    assert (shown["allow_out"] if isinstance(shown, dict) else shown.allow_out) == ["example.org"]
    await w(b.kill())


@scenario("connect")
async def connect(world):
    again = await w(world.Sandbox.connect(world.main.sandbox_id))
    assert again.sandbox_id == world.main.sandbox_id and await w(again.is_running()) is True


@scenario("connect never shortens a life")
async def connect_long(world):
    before = (await w(world.main.get_info())).end_at
    await w(world.Sandbox.connect(world.main.sandbox_id, timeout=5))
    assert (await w(world.main.get_info())).end_at == before
    await w(world.Sandbox.connect(world.main.sandbox_id, timeout=600))
    assert (await w(world.main.get_info())).end_at > before


@scenario("connect to what is not there")
async def connect_none(world):
    await world.rejects(GONE, world.Sandbox.connect, "z" * 20)
    await world.rejects(GONE, world.Sandbox.get_info, "z" * 20)


@scenario("list by metadata, in pages")
async def listing(world):
    mine = f"list of {world.mode} {world.version} & more"
    made = [(await world.box(metadata={"mine": mine, "i": str(i)})).sandbox_id for i in range(3)]
    query = world.sdk.SandboxQuery
    found = await world.pages(world.Sandbox.list(query=query(metadata={"mine": mine}), limit=2))
    assert [each.sandbox_id for each in found] == made[::-1]
    one = await world.pages(world.Sandbox.list(query=query(metadata={"mine": mine, "i": "1"})))
    assert [each.sandbox_id for each in one] == [made[1]]
    paused = query(metadata={"mine": mine}, state=[world.sdk.SandboxState.PAUSED])
    assert await world.pages(world.Sandbox.list(query=paused)) == []
    for each in made:
        assert await w(world.Sandbox.kill(each)) is True
    assert await world.pages(world.Sandbox.list(query=query(metadata={"mine": mine}))) == []


@scenario("timeout")
async def timeout(world):
    b = await world.box(timeout=60)
    await w(b.set_timeout(120))
    assert left(await w(b.get_info())) > 90
    await w(world.Sandbox.set_timeout(b.sandbox_id, 1))

    async def gone():
        try:
            await w(world.Sandbox.get_info(b.sandbox_id))
        except Exception as error:  # noqa: BLE001
            return "NotFound" in type(error).__name__
    await world.until("the box ends", gone)


@scenario("kill")
async def kill(world):
    b = await world.box()
    assert await w(world.Sandbox.kill(b.sandbox_id)) is True and await w(world.Sandbox.kill(b.sandbox_id)) is False


@scenario("metrics")
async def metrics(world):
    last = (await w(world.main.get_metrics()))[-1]
    assert last.cpu_count >= 1 and last.cpu_used_pct >= 0 and 0 < last.mem_used < last.mem_total


def pause(world, b):
    return (b.pause if hasattr(b, "pause") else b.beta_pause)()


@scenario("pause and connect")
async def pausing(world):
    b = await world.box(metadata={"mine": f"pause of {world.mode} {world.version}"})
    await w(pause(world, b))
    state = (await w(b.get_info())).state
    assert str(getattr(state, "value", state)) == "paused"
    again = await w(world.Sandbox.connect(b.sandbox_id, timeout=90))
    assert 60 < left(await w(again.get_info())) < 100
    await w(again.kill())


@scenario("pause keeps memory and processes")
async def pausing_keeps(world):
    b = await world.box()
    h = await w(b.commands.run("x=in-memory; read go; echo $x $go", background=True, stdin=True))
    await w(b.files.write("/tmp/kept", "on disk"))
    await w(h.disconnect())
    await w(pause(world, b))
    again = await w(world.Sandbox.connect(b.sandbox_id))
    handle = await w(again.commands.connect(h.pid))
    await w(again.commands.send_stdin(h.pid, "went\n"))
    assert (await world.begin(handle.wait)).stdout == "in-memory went\n"
    assert await w(again.files.read("/tmp/kept")) == "on disk"
    await w(again.kill())


@scenario("snapshot", since="2.39.0")
async def snapshot(world):
    b = await world.box()
    await w(b.files.write("/home/user/kept", "x"))
    taken = await w(b.create_snapshot())
    copy = await world.box(taken.snapshot_id)
    assert copy.sandbox_id != b.sandbox_id and await w(copy.files.read("/home/user/kept")) == "x"
    assert taken.snapshot_id in [each.snapshot_id for each in await world.pages(world.Sandbox.list_snapshots())]
    await w(copy.kill())
    assert await w(world.Sandbox.delete_snapshot(taken.snapshot_id)) is True
    assert await w(world.Sandbox.delete_snapshot(taken.snapshot_id)) is False


@scenario("fork", since="2.63.0")
async def fork(world):
    b = await world.box(metadata={"of": "fork"})
    forks = await w(b.fork(count=2, timeout=60))
    assert len({b.sandbox_id, *(each.sandbox_id for each in forks)}) == 3
    world.made.extend(forks)
    for each in forks:
        assert (await w(each.get_info())).metadata["of"] == "fork"
