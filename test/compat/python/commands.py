"""Commands and terminals."""

import asyncio

from scenario import book, w

SCENARIOS, scenario = book()


@scenario("command in the foreground")
async def foreground(world):
    r = await w(world.main.commands.run("echo out; echo err >&2"))
    assert (r.exit_code, r.stdout, r.stderr) == (0, "out\n", "err\n")


@scenario("command that fails")
async def failing(world):
    error = await world.rejects("CommandExitException", world.main.commands.run, "echo out; echo err >&2; exit 3")
    assert (error.exit_code, error.stdout, error.stderr) == (3, "out\n", "err\n")


@scenario("command with environment")
async def environment(world):
    r = await w(world.main.commands.run('echo "$OF_BOX $OF_CALL $E2B_SANDBOX $HOME $USER"', envs={"OF_CALL": "too"}))
    assert r.stdout == "yes too true /home/user user\n"


@scenario("command in a directory")
async def directory(world):
    run = world.main.commands.run
    assert (await w(run("pwd"))).stdout == "/home/user\n" and (await w(run("pwd", cwd="/tmp"))).stdout == "/tmp\n"
    error = await world.rejects("InvalidArgumentException SandboxException", run, "pwd", cwd="/no/such/place")
    assert "does not exist" in str(error)


@scenario("command as a user")
async def user(world):
    run = world.main.commands.run
    assert (await w(run("id -un"))).stdout == "user\n"
    assert (await w(run("id -un; echo $HOME", user="root"))).stdout == "root\n/root\n"
    assert (await w(run("sudo id -un"))).stdout == "root\n"


@scenario("command in the background")
async def background(world):
    h = await w(world.main.commands.run("sleep 0.2; echo done", background=True))
    listed = [each for each in await w(world.main.commands.list()) if each.pid == h.pid]
    assert [(each.cmd, each.args) for each in listed] == [("/bin/bash", ["-l", "-c", "sleep 0.2; echo done"])]
    r = await world.begin(h.wait)
    assert (r.exit_code, r.stdout) == (0, "done\n")
    assert h.pid not in [each.pid for each in await w(world.main.commands.list())]


@scenario("command that streams")
async def streaming(world):
    seen = []
    r = await world.begin(world.main.commands.run, "echo one; echo oops >&2; echo two", on_stdout=seen.append, on_stderr=seen.append)
    assert r.stdout == "one\ntwo\n" and "".join(each for each in seen if each != "oops\n") == "one\ntwo\n" and "oops\n" in seen


@scenario("input of a command")
async def stdin(world):
    h = await w(world.main.commands.run("read a; echo got $a", background=True, stdin=True))
    await w(world.main.commands.send_stdin(h.pid, "it\n"))
    assert (await world.begin(h.wait)).stdout == "got it\n"
    assert (await w(world.main.commands.run("cat; echo end"))).stdout == "end\n"


@scenario("kill a command")
async def kill(world):
    h = await w(world.main.commands.run("sleep 60", background=True))
    assert await w(h.kill()) is True
    assert (await world.rejects("CommandExitException", h.wait)).exit_code != 0
    other = await w(world.main.commands.run("sleep 60", background=True))
    assert await w(world.main.commands.kill(other.pid)) is True
    await world.rejects("CommandExitException", other.wait)
    assert await w(world.main.commands.kill(other.pid)) is False


@scenario("connect to a command")
async def connect(world):
    h = await w(world.main.commands.run("read a; echo got $a", background=True, stdin=True))
    await w(h.disconnect())
    again = await w(world.main.commands.connect(h.pid))
    await w(world.main.commands.send_stdin(h.pid, "it\n"))
    r = await world.begin(again.wait)
    assert again.pid == h.pid and (r.exit_code, r.stdout) == (0, "got it\n")
    await world.rejects("NotFoundException", world.main.commands.connect, 999999)


@scenario("command that takes too long")
async def too_long(world):
    await world.rejects("TimeoutException", world.main.commands.run, "exec sleep 4243", timeout=1)

    async def gone():
        return not any("4243" in " ".join(each.args) for each in await w(world.main.commands.list()))
    await world.until("it is killed", gone)


@scenario("much output")
async def much(world):
    out = (await world.begin(world.main.commands.run, "seq 1 200000")).stdout
    assert len(out) == 1288895 and out.endswith("\n199999\n200000\n")


@scenario("characters of any kind")
async def characters(world):
    assert (await w(world.main.commands.run("printf 'grün €uro 🐎\\n'"))).stdout == "grün €uro 🐎\n"


@scenario("many commands at once")
async def many(world):
    every = await asyncio.gather(*(world.begin(world.main.commands.run, f"echo {i}") for i in range(20)))
    assert [each.stdout for each in every] == [f"{i}\n" for i in range(20)]


@scenario("is it running")
async def running(world):
    assert await w(world.main.is_running()) is True
    b = await world.box()
    await w(b.kill())
    assert await w(b.is_running()) is False


END_OF_LIFE = "killed or reached its end of life"


@scenario("command whose sandbox is killed", since="2.39.0")
async def killed(world):
    b = await world.box(timeout=60)
    h = await w(b.commands.run("echo begun; sleep 60", background=True))
    ended = asyncio.ensure_future(world.rejects("TimeoutException", h.wait))
    await asyncio.sleep(0.2)  # so that the wait of the other thread has begun
    await w(b.kill())
    assert END_OF_LIFE in str(await ended)
    await world.rejects("TimeoutException NotFoundException SandboxException", b.commands.run, "true")
    assert await w(b.is_running()) is False


@scenario("command whose sandbox expires", since="2.39.0")
async def expires(world):
    b = await world.box(timeout=60)
    ended = asyncio.ensure_future(world.rejects("TimeoutException", b.commands.run, "sleep 60"))
    await w(world.Sandbox.set_timeout(b.sandbox_id, 1))
    assert END_OF_LIFE in str(await ended)


@scenario("terminal")
async def terminal(world):
    text = bytearray()
    size = world.sdk.PtySize(rows=24, cols=80)
    if world.asynchronous:
        h = await w(world.main.pty.create(size, on_data=text.extend, cwd="/tmp", timeout=20))
        reading = world.begin(h.wait)
    else:
        h = world.main.pty.create(size, cwd="/tmp", timeout=20)
        reading = world.begin(h.wait, on_pty=text.extend)
    send = world.main.pty.send_stdin
    await w(send(h.pid, b'echo "$((6*7)) $TERM $PWD"\n'))
    await world.until("its answer", lambda: b"42 xterm-256color /tmp" in text)
    await world.until("its prompt", lambda: text.endswith(b"$ "))  # before it bash sets the size that it has read
    await w(world.main.pty.resize(h.pid, world.sdk.PtySize(rows=45, cols=123)))
    await w(send(h.pid, b"stty size\n"))
    await world.until("its new size", lambda: b"45 123" in text)
    await w(send(h.pid, b"exit 5\n"))
    try:
        await reading
        raise AssertionError("it ends with its exit code")
    except world.sdk.CommandExitException as error:
        assert error.exit_code == 5
