"""Every public call of the SDK, used against a real daemon. Each function here is a test, with and without await; see
conftest.py. `world` has what is outside of the SDK."""

import io
import json
import os
import tarfile
import uuid
from contextlib import suppress
from pathlib import Path

import httpx
import pytest
from paddock import AsyncPaddock, AsyncSandbox, CommandFailed, ConnectionLost, Ended, Exited, Output, Started, StartedCode, errors
from paddock._compat import async_sleep
from paddock.models import ExecutionError, ExecutionResult


async def eventually(check, what):
    """Waits for a state of the outside world that offers no event."""
    for _ in range(6000):
        value = await check()
        if value:
            return value
        await async_sleep(0.01)
    raise AssertionError(f"still not: {what}")


# ---- life


async def life(client, world):
    name = world.name("life")
    async with await client.sandboxes.create(name=name, metadata={"for": name}, env={"A": "1"}, limits={"memory_mb": 256}, ttl_seconds=600) as sandbox:
        assert sandbox.info.name == name and sandbox.info.limits.memory_mb == 256 and sandbox.id in repr(sandbox) or name in repr(sandbox)
        assert (await sandbox.run("echo $A")).stdout == "1\n"
        assert (await client.sandboxes.get(name)).id == sandbox.id
        assert [each.id async for each in client.sandboxes.list(metadata={"for": name}, status="running")] == [sandbox.id]
        page = await client.sandboxes.page(limit=1, metadata={"for": name})
        assert [each.id for each in page.sandboxes] == [sandbox.id] and page.next is None
        changed = await sandbox.change(name=name + "-b", metadata={"b": "2"}, limits={"memory_mb": 300}, idle_seconds=500, on_end="stop", auto_resume=True,
                                       ports_public=True, ttl_seconds=700)
        assert changed.name == name + "-b" and changed.metadata == {"b": "2"} and sandbox.info is changed
        assert (changed.limits.memory_mb, changed.idle_seconds, changed.on_end, changed.auto_resume, changed.ports_public) == (300, 500, "stop", True, True)
        before = changed.expires_at
        extended = await sandbox.extend(3600)
        assert before and extended.expires_at and extended.expires_at > before
        assert (await sandbox.refresh()).status == "running"
        stats = await sandbox.stats(history=True)
        assert stats.memory_limit_bytes == 300 << 20 and stats.history is not None
        assert any(part.name for part in (await sandbox.posture()).parts)
        async with await AsyncSandbox.connect(sandbox.id, client=client) as same:
            assert same.id == sandbox.id
        assert (await sandbox.refresh()).status == "running", "a connected one is not deleted at the end of a block"
    with pytest.raises(errors.NotFound) as caught:
        await client.sandboxes.get(sandbox.id)
    assert caught.value.code == "not_found" and caught.value.status == 404 and caught.value.request_id and "no such sandbox" in str(caught.value)
    await sandbox.delete()


async def from_the_environment(client, world):
    """`Sandbox.create()` finds address and key by itself, and closes its connections."""
    with world.environment(client):
        async with await AsyncSandbox.create(metadata={"a": "b"}) as sandbox:
            assert sandbox.info.metadata == {"a": "b"}
            async with await AsyncSandbox.connect(sandbox.id) as same:
                assert (await same.run(["true"])).ok
        with pytest.raises(errors.NotFound):
            await AsyncSandbox.connect(sandbox.id)
        with pytest.raises(errors.InvalidArgument):
            await AsyncSandbox.create(name="no/such name")
        async with AsyncPaddock() as found:
            assert found.url == client.url


async def states(client, world):
    async with await client.sandboxes.create() as sandbox:
        assert (await sandbox.pause()).status == "paused"
        with pytest.raises(errors.WrongState):
            await sandbox.run("true")
        assert (await sandbox.resume()).status == "running"
        await sandbox.files.write("kept", "x")
        assert (await sandbox.stop()).status == "stopped"
        assert (await sandbox.start()).status == "running"
        assert await sandbox.files.read("kept") == b"x"


async def lease(client, world):
    """A sandbox that lives as long as its client's connection."""
    sandbox = await client.sandboxes.create(delete_on_disconnect=True)
    assert (await sandbox.run("echo $((6*7))")).stdout == "42\n"
    await sandbox.aclose()

    async def gone():
        return sandbox.id not in [each.id async for each in client.sandboxes.list()]

    await eventually(gone, "the sandbox is deleted with its connection")


# ---- commands


async def commands(client, world):
    sandbox = await world.sandbox(client)
    result = await sandbox.run("echo out; echo err >&2; exit 3")
    assert (result.exit_code, result.stdout, result.stderr, result.ok, result.timed_out) == (3, "out\n", "err\n", False, False)
    assert (await sandbox.run(["echo", "$HOME *"])).stdout == "$HOME *\n"
    assert (await sandbox.run("pwd; id -un; cat; echo $X", cwd="/tmp", env={"X": "7"}, user="root", stdin="in\n")).stdout == "/tmp\nroot\nin\n7\n"
    late = await sandbox.run("sleep 600", timeout=0.3)
    assert late.timed_out and late.exit_code == 137
    raw = await sandbox.run(["printf", r"a\377"])
    assert raw.stdout_bytes == b"a\xff" and raw.stdout == "a�" and raw.stderr_bytes == b""
    with pytest.raises(CommandFailed) as caught:
        await sandbox.run("echo why >&2; exit 5", check=True)
    assert caught.value.result.exit_code == 5 and "why" in str(caught.value)
    with pytest.raises(errors.CommandNotFound):
        await sandbox.run(["/no/such/program"])
    assert (await sandbox.run("echo fine", check=True, kill_on_disconnect=False)).stdout == "fine\n"


async def shells(client, world):
    sandbox = await world.sandbox(client)
    name = world.name("sh")
    assert (await sandbox.shell("cd /tmp; x=1; f() { echo f$x; }", name=name)).cwd == "/tmp"
    result = await sandbox.shell("pwd; f; cat", name=name, stdin="in\n", timeout=30, kill_on_disconnect=False)
    assert result.stdout == "/tmp\nf1\nin\n" and result.shell == name
    with pytest.raises(CommandFailed):
        await sandbox.shell("false", name=name, check=True)
    other = name + "-2"
    made = await sandbox.shells.create(other, cwd="/", env={"Y": "2"}, user="root")
    assert made.name == other and made.user == "root"
    assert (await sandbox.shell("echo $Y; id -u", name=other)).stdout == "2\n0\n"
    assert {name, other, "default"} <= {each.name for each in await sandbox.shells.list()}
    assert (await sandbox.shells.get(other)).cwd == "/"
    await sandbox.shells.remove(other)
    assert other not in {each.name for each in await sandbox.shells.list()}


async def streams(client, world):
    sandbox = await world.sandbox(client)
    events = [event async for event in sandbox.stream("echo out; echo err >&2; exit 4", env={"A": "b"}, cwd="/", timeout=60)]
    assert isinstance(events[0], Started) and isinstance(events[-1], Exited) and events[-1].exit_code == 4
    assert {(event.type, event.data, event.offset) for event in events if isinstance(event, Output)} == {("stdout", "out\n", 0), ("stderr", "err\n", 0)}
    stream = sandbox.stream(["cat"], stdin="x" * 300_000, user="root")
    ended = await stream.wait()
    assert ended.exit_code == 0 and stream.pid and stream.result is ended
    async with sandbox.stream("echo begun; sleep 600", kill_on_disconnect=True) as stream:
        assert isinstance(await anext(stream), Started)
        assert (await anext(stream)).bytes == b"begun\n"
    last = [event async for event in sandbox.stream("cd /; echo $PWD", shell=world.name("st"))][-1]
    assert (last.cwd, last.exit_code) == ("/", 0)
    with pytest.raises(errors.CommandNotFound):
        await sandbox.stream(["/no/such"]).wait()
    closed = sandbox.stream("sleep 600", kill_on_disconnect=True)
    await anext(closed)
    await closed.aclose()
    with pytest.raises(ConnectionLost):
        await closed.wait()
    async with await client.sandboxes.create() as other:
        stream = other.stream("echo hi; sleep 600")
        assert [type(await anext(stream)) for _ in range(2)] == [Started, Output]
        await other.delete()
        with pytest.raises(errors.ApiError):
            await stream.wait()


async def streams_resume(client, world):
    """A connection that breaks in the middle: every byte comes once, and in order."""
    sandbox = await world.sandbox(client)
    async with AsyncPaddock(client.url, world.daemon.key, transport=AsyncCutter()) as broken:
        same, cutter = await broken.sandboxes.get(sandbox.id), broken._api.transport
        cutter.left = 3
        stream = same.stream("for i in $(seq 1 400); do echo line $i; [ $((i % 40)) = 0 ] && sleep 0.02; done; echo end >&2; exit 6")
        events = [event async for event in stream]
        out = b"".join(event.bytes for event in events if isinstance(event, Output) and event.type == "stdout")
        assert out.decode() == "".join(f"line {i}\n" for i in range(1, 401))
        assert [type(event) for event in events].count(Started) == 1 and events[-1].exit_code == 6
        assert cutter.left == 0, "the connection broke each time"
        cutter.left = 2
        process = await same.processes.start("for i in $(seq 1 200); do echo $i; [ $((i % 20)) = 0 ] && sleep 0.02; done")
        followed = [event async for event in process.follow(stdout=2)]
        assert b"".join(event.bytes for event in followed if isinstance(event, Output)).split() == [str(i).encode() for i in range(2, 201)]
        cutter.left = 1
        with pytest.raises(ConnectionLost):  # a shell's command cannot be taken up: the loss is told, not hidden
            await same.stream("for i in $(seq 1 400); do echo line $i; done", shell=world.name("cut")).wait()


class AsyncCutter(httpx.AsyncBaseTransport):
    """Breaks streams off after 150 bytes, in the middle of a line or not, as long as there are cuts left."""

    def __init__(self):
        self.below, self.left = httpx.AsyncHTTPTransport(), 0

    async def handle_async_request(self, request):
        response = await self.below.handle_async_request(request)
        if "ndjson" in request.headers.get("accept", ""):
            response.stream = AsyncCut(self, response.stream)
        return response

    async def aclose(self):
        await self.below.aclose()


class AsyncCut(httpx.AsyncByteStream):
    def __init__(self, owner, below):
        self.owner, self.below = owner, below

    async def __aiter__(self):
        budget = 150
        async for chunk in self.below:
            if self.owner.left and len(chunk) >= budget:
                self.owner.left -= 1
                yield chunk[:budget]
                raise httpx.ReadError("cut by the test")
            budget -= len(chunk)
            yield chunk

    async def aclose(self):
        await self.below.aclose()


# ---- processes


async def processes(client, world):
    sandbox = await world.sandbox(client)
    tag = world.name("p")
    process = await sandbox.processes.start(["cat"], tag=tag, stdin=True, cwd="/tmp", env={"A": "b"}, user="root", timeout=120)
    assert str(process.name) in repr(process)
    info = await process.info()
    assert (info.tag, info.cwd, info.user, info.running) == (tag, "/tmp", "root", True)
    await process.write("one\n")
    await process.write(b"two\n", close=True)
    ended = await process.wait(timeout=60)
    assert not ended.running and ended.exit_code == 0
    output = await process.output()
    assert output.stdout.data == "one\ntwo\n" and output.stdout.end == 8
    assert (await process.output(stdout=4, stderr=0)).stdout.bytes == b"two\n"
    assert tag in {each.tag for each in await sandbox.processes.list()}
    sleeper = await sandbox.processes.start("sleep 600")
    assert (await sandbox.processes.get(sleeper.name).wait(timeout=0.01)).running
    await sleeper.signal("SIGTERM")
    assert (await sleeper.wait()).signal == "SIGTERM"
    terminal = await sandbox.processes.start(["sleep", "600"], pty={"cols": 80, "rows": 24})
    await terminal.resize(100, 30)
    await terminal.kill()
    assert [event async for event in terminal.follow()][-1].signal == "SIGKILL"
    events = [event async for event in sandbox.processes.stream("echo hi", tag=world.name("q"), kill_on_disconnect=True, timeout=60)]
    assert [type(event) for event in events] == [Started, Output, Exited]
    with pytest.raises(errors.NotFound):
        await sandbox.processes.get("no-such").info()


# ---- code


async def code(client, world):
    sandbox = await world.sandbox(client)
    first = await sandbox.execute("import os\nx = 6\nprint('hi')\nx * 7", env={"E": "1"}, timeout=60, kill_on_disconnect=False)
    assert first.stdout == "hi\n" and first.results[0].text == "42" and first.results[0].main and first.ok
    failed = await sandbox.execute("1/0")
    assert failed.error and failed.error.name == "ZeroDivisionError" and not failed.ok
    with pytest.raises(CommandFailed, match="ZeroDivisionError"):
        await sandbox.execute("1/0", check=True)
    assert (await sandbox.execute("echo $((1+1))", language="bash")).stdout == "2\n"
    chart = await sandbox.execute("import matplotlib.pyplot as p\np.plot([1, 2, 3])\np.title('T')\np.show()", timeout=120)
    assert chart.results[0].png and chart.results[0].chart and chart.results[0].chart["title"] == "T"
    events = [event async for event in sandbox.execute_stream("print('a')\n1 + 1", context="python", language=None)]
    assert [type(event) for event in events] == [StartedCode, Output, ExecutionResult, Ended] and events[-1].execution_count > 0
    context = await sandbox.contexts.create("python", cwd="/tmp", env={"C": "ctx"}, user="root")
    assert context.id in repr(context) and (await context.info()).cwd == "/tmp"
    assert (await context.execute("import os; v = 1; (os.environ['C'], os.getcwd())", check=True)).results[0].text == "('ctx', '/tmp')"
    assert sandbox.contexts.get(context.id).id == context.id
    assert {"python", context.id} <= {each.id for each in await sandbox.contexts.list()}
    stream = context.stream("print('begun', flush=True)\nimport time\ntime.sleep(600)", env={"D": "1"}, timeout=300)
    assert [type(await anext(stream)) for _ in range(2)] == [StartedCode, Output]
    await context.interrupt()
    rest = [event async for event in stream]
    assert any(isinstance(event, ExecutionError) and event.name == "KeyboardInterrupt" for event in rest) and stream.result is rest[-1]
    assert (await context.execute("v")).results[0].text == "1"
    await context.restart()
    assert (await context.execute("v")).error.name == "NameError"
    await context.remove()
    with pytest.raises(errors.NotFound):
        await context.info()


# ---- terminals


async def terminals(client, world):
    sandbox = await world.sandbox(client)
    async with sandbox.terminal(cols=100, rows=30, term="xterm", lang="C.UTF-8", user="root", cwd="/tmp") as terminal:
        assert terminal.pid
        await terminal.write("stty size; pwd; echo do''ne\n")
        seen = await terminal.read_until(lambda text: b"done\r\n" in text and text.endswith(b"# "))  # bash sets the size that it has read before its prompt
        assert b"30 100" in seen and b"/tmp" in seen
        await terminal.resize(120, 40)

        async def resized():
            await terminal.write("stty size; echo do''ne\n")
            return b"40 120" in await terminal.read_until(lambda text: text.count(b"done\r\n") > 0)

        await eventually(resized, "the size is changed")
        await terminal.write("exit 7\n")
        async for _ in terminal:
            pass
        assert terminal.exit and terminal.exit.exit_code == 7 and await terminal.read() == b""


async def terminals_resume(client, world):
    """A terminal whose connection breaks goes on where it was: no byte is lost and none comes twice."""
    sandbox = await world.sandbox(client)
    process = await sandbox.processes.start("for i in $(seq 1 300); do echo line $i; [ $((i % 30)) = 0 ] && sleep 0.02; done; exit 9", pty={"cols": 80, "rows": 24})
    terminal = sandbox.terminal(process=process.name, offset=0)
    await terminal.connect()
    seen, pieces = b"", 0
    while piece := await terminal.read():
        seen, pieces = seen + piece, pieces + 1
        if pieces in (2, 4):
            await terminal._socket._stream.aclose()
    assert seen.replace(b"\r", b"").decode() == "".join(f"line {i}\n" for i in range(1, 301))
    assert terminal.offset == len(seen) and terminal.exit.exit_code == 9
    await terminal.aclose()
    left = sandbox.terminal(kill_on_disconnect=True)
    await left.write("true\n")
    pid = left.pid
    await left.aclose()
    assert not (await sandbox.processes.get(pid).wait(timeout=60)).running


# ---- files


async def files(client, world):
    sandbox = await world.sandbox(client)
    home = f"/workspace/{world.name('files')}"
    at = sandbox.files
    written = await at.write(f"{home}/ä b/c.txt", "hello\n", mode="0600")
    assert (written.size, written.mode) == (6, "0600")
    await at.write(f"{home}/ä b/c.txt", b"more\n", append=True)
    assert await at.read(f"{home}/ä b/c.txt") == b"hello\nmore\n" and await at.read_text(f"{home}/ä b/c.txt") == "hello\nmore\n"
    assert await at.read(f"{home}/ä b/c.txt", offset=6, length=4) == b"more" and await at.read(f"{home}/ä b/c.txt", length=0) == b""
    assert await at.read(f"{home}/ä b/c.txt", offset=6) == b"more\n"
    await at.write("relative", "r", user="root")
    assert await at.read_text("/workspace/relative", user="root") == "r"
    assert (await at.stat(f"{home}/ä b/c.txt")).size == 11 and (await at.stat(home)).type == "directory" and "directory" in repr(await at.stat(home))
    assert await at.exists(home) and not await at.exists(f"{home}/no")
    big = [b"%d\n" % i * 1000 for i in range(500)]
    assert (await at.write(f"{home}/big", (piece for piece in big))).size == sum(map(len, big))
    assert b"".join([chunk async for chunk in at.chunks(f"{home}/big")]) == b"".join(big)
    assert [each.name for each in sorted(await at.list(home, limit=1), key=lambda each: each.name)] == ["big", "ä b"]
    assert "ä b/c.txt" in {each.path for each in await at.list(home, depth=3)}
    assert (await at.info(f"{home}/big")).type == "file"
    assert (await at.move(f"{home}/big", f"{home}/bigger")).copied is False
    assert (await at.copy(f"{home}/ä b", f"{home}/d", recursive=True, overwrite=False)).files == 1
    await at.mkdir(f"{home}/m/n", mode="0700", parents=True)
    assert await at.chmod(f"{home}/m", "0750", recursive=True) == 2
    assert {each.path for each in (await at.find("*.txt", home, type="file", limit=10)).entries} == {"ä b/c.txt", "d/c.txt"}
    matches = await at.grep("MO.E", home, regex=True, ignore_case=True, include="*.txt", limit=10)
    assert {(match.path, match.line) for match in matches.matches} == {("ä b/c.txt", 2), ("d/c.txt", 2)}
    assert (await at.replace(f"{home}/d/c.txt", "more", "less", count=1)).replaced == 1
    with pytest.raises(errors.Conflict):
        await at.replace(f"{home}/d/c.txt", "more", "less")
    many = await at.write_many(home, {"one.txt": "1", "sub/two.bin": b"\0\1"})
    assert len(many) == 2 and await at.read(f"{home}/sub/two.bin") == b"\0\1"
    await at.remove(f"{home}/bigger")
    with pytest.raises(errors.Conflict):
        await at.remove(home)
    await at.remove(home, recursive=True)
    with pytest.raises(errors.NotFound):
        await at.stat(home)


async def trees(client, world):
    sandbox, here = await world.sandbox(client), world.directory()
    (here / "up" / "deep").mkdir(parents=True)
    (here / "up" / "deep" / "f").write_text("x")
    (here / "up" / "run.sh").write_text("echo ran")
    (here / "up" / "run.sh").chmod(0o755)
    home = f"/workspace/{world.name('tree')}"
    assert (await sandbox.files.upload(here / "up", home)).files == 2
    assert (await sandbox.run([f"{home}/run.sh"])).exit_code in (0, 126) and (await sandbox.run(f"sh {home}/run.sh")).stdout == "ran\n"
    assert (await sandbox.files.upload(here / "up" / "run.sh", f"{home}/copy")).files == 1
    await sandbox.run(f"ln -s /etc/passwd {home}/link")
    got = await sandbox.files.download(home, here / "down")
    assert sorted(str(path.relative_to(here / "down")) for path in got) == ["copy", "deep/f", "run.sh"], "no links"
    assert (here / "down" / "deep" / "f").read_text() == "x" and os.access(here / "down" / "run.sh", os.X_OK)
    assert await sandbox.files.download(f"{home}/run.sh", here / "one") == [here / "one"] and (here / "one").read_text() == "echo ran"
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        member = tarfile.TarInfo("from/tar")
        member.size = 3
        archive.addfile(member, io.BytesIO(b"tar"))
    assert (await sandbox.files.unpack(home, buffer.getvalue())).files == 1
    packed = b"".join([chunk async for chunk in sandbox.files.chunks(f"{home}/from", archive="tar")])
    assert tarfile.open(fileobj=io.BytesIO(packed)).getnames()[-1].endswith("tar")


async def signed(client, world):
    sandbox = await world.sandbox(client)
    path = f"/workspace/{world.name('signed')}"
    put = await sandbox.files.sign(path, method="PUT", expires_seconds=600)
    assert (await client.urls.write(put.url, "by url")).size == 6
    get = await sandbox.files.sign(path, user="root")
    assert await client.urls.read(get.url) == b"by url" and (await client.urls.stat(get.url)).size == 6
    with pytest.raises(errors.ApiError):
        await client.urls.read(get.url.replace("signature=", "signature=0"))


async def watching(client, world):
    sandbox = await world.sandbox(client)
    home = f"/workspace/{world.name('watch')}"
    await sandbox.files.mkdir(home)
    async with sandbox.files.watch(home, recursive=True) as watch:
        assert watch.ready
        await sandbox.files.write(f"{home}/a", "x")
        async for event in watch:
            if event.path == "a":
                break
    async with await sandbox.files.watcher(home, recursive=True) as watcher:
        assert watcher.id
        await sandbox.run(["touch", f"{home}/b"])

        async def told():
            return "b" in {event.path for event in (await watcher.poll()).events}

        await eventually(told, "the watcher tells of the file")
    with pytest.raises(errors.NotFound):
        await watcher.poll()
    again = await sandbox.files.watcher(home)
    await again.remove()


# ---- network

SERVER = """
import http.server
class H(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    def answer(self):
        body = self.rfile.read(int(self.headers.get('content-length', 0)))
        text = f'{self.command} {self.path} {self.headers.get("x-a")} '.encode() + body
        self.send_response(207); self.send_header('content-length', str(len(text))); self.end_headers()
        if self.command != 'HEAD': self.wfile.write(text)
    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = answer
http.server.ThreadingHTTPServer(('127.0.0.1', 8123), H).serve_forever()
"""


async def serve(sandbox):
    process = await sandbox.processes.start(["python3", "-c", SERVER])

    async def listens():
        return 8123 in {each.port for each in (await sandbox.ports.list()).ports}

    await eventually(listens, "the server listens")
    return process


async def ports(client, world):
    async with await client.sandboxes.create() as sandbox:
        await serve(sandbox)
        assert "8123" in await sandbox.ports.url(8123)
        for method in ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"):
            answer = await sandbox.ports.request(method, 8123, "/p?q=1", headers={"x-a": "b"}, content=None if method == "GET" else "body")
            assert (answer.status_code, answer.text) == (207, f"{method} /p?q=1 b " + ("" if method == "GET" else "body"))
        assert (await sandbox.ports.request("head", 8123)).status_code == 207
        assert (await sandbox.ports.request("GET", 8124)).status_code == 502
        link = await sandbox.ports.preview(8123, expires_seconds=60)
        answer = await client.previews.request("POST", link.url, json={"a": 1})
        assert answer.status_code == 207 and answer.text.endswith('{"a":1}')
        ticket = link.url.rpartition("=")[2]
        assert (await client.previews.request("GET", f"{client.url}/v1/previews/{sandbox.id}/8123/{ticket}/by/path")).text.startswith("GET /by/path")
        assert (await client.previews.request("GET", f"{client.url}/v1/previews/{sandbox.id}/8123/1{ticket}/")).status_code in (401, 403, 404)
        async with sandbox.ports.tunnel(8123) as tunnel:
            await tunnel.write(b"GET /t HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            seen = b""
            while piece := await tunnel.read():
                seen += piece
            assert b"207" in seen and b"GET /t" in seen
            await tunnel.end()
        unused = sandbox.ports.tunnel(8123)
        await unused.connect()
        await unused.aclose()


async def links(client, world):
    async with await client.sandboxes.create() as server, await client.sandboxes.create() as user:
        await serve(server)
        link = await client.links.create(user.id, server.id, 8123, listen=8200)
        assert (link.from_, link.to, link.port, link.listen) == (user.id, server.id, 8123, 8200)
        assert link.id in {each.id for each in await client.links.list()}
        fetch = "import urllib.request as u; print(u.urlopen('http://127.0.0.1:8200/l').read().decode())"
        assert "GET /l" in (await user.run(["python3", "-c", fetch], check=True)).stdout
        await client.links.remove(link.id)
        assert link.id not in {each.id for each in await client.links.list()}


async def egress(client, world):
    async with await client.sandboxes.create(egress={"default": "deny", "allow": ["example.org"]}) as sandbox:
        now = await sandbox.egress.get()
        assert now.source == "sandbox" and now.policy.rules[0].host == "example.org"
        assert (await sandbox.egress.allow(["pypi", "*.example.com:443"], open="keep")).policy.rules[0].action == "allow"
        assert (await sandbox.egress.deny("bad.example")).policy.rules[0].action == "deny"
        await sandbox.secrets.set("token", "s3cret-value")
        injected = await sandbox.egress.allow("api.example.com", inject=[{"secret": "token", "header": "authorization", "prefix": "Bearer "}])
        assert any(rule.inject and rule.inject[0].secret == "token" for rule in injected.policy.rules)
        replaced = await sandbox.egress.set({"default": "deny", "rules": [{"action": "allow", "host": "example.net", "ports": [443]}], "limits": {"connections": 5}}, open="close")
        assert [rule.host for rule in replaced.policy.rules] == ["example.net"] and replaced.policy.limits.connections == 5
        assert "pypi" in (await sandbox.egress.sets()).sets
        token = await sandbox.egress.token(["example.net"], ttl_seconds=60)
        assert token.token in token.proxy
        await sandbox.run("python3 -c 'import socket; socket.create_connection((\"192.0.2.7\", 80), 5).recv(1)'", timeout=30)

        async def denied():
            return [verdict for verdict in (await sandbox.egress.log(after=0, limit=10, verdict="deny")).verdicts if verdict.address == "192.0.2.7"]

        assert (await eventually(denied, "the log has the connection"))[0].verdict == "deny"
        assert (await sandbox.egress.reset(open="close")).source != "sandbox"


async def secrets(client, world):
    name = world.name("S").replace("-", "_")
    assert (await client.secrets.set(name, "of the tenant")).version == 1
    assert (await client.secrets.set(name, b"\xffbytes", metadata={"for": "tests"})).version == 2
    assert [each.metadata for each in await client.secrets.list() if each.name == name] == [{"for": "tests"}]
    assert name in {each.name for each in await client.secrets.list()}
    async with await client.sandboxes.create(secrets=[{"name": name, "file": "it", "version": 1}]) as sandbox:
        assert (await sandbox.run("cat /run/secrets/it")).stdout == "of the tenant"
        await sandbox.secrets.set(name, "its own", metadata={"a": "b"})
        assert [each.name for each in await sandbox.secrets.list()] == [name]
        mount = [{"name": name, "env": "V"}]
        assert (await sandbox.run("echo $V", secrets=mount)).stdout == "its own\n"
        assert (await sandbox.shell("python3 -c 'import os; print(os.environ[\"V\"])'", secrets=mount)).stdout == "its own\n"
        assert (await sandbox.execute("import os; os.environ['V']", secrets=mount)).results[0].text == "'its own'"
        events = [event async for event in sandbox.stream("echo $V", secrets=mount)]
        assert events[1].data == "its own\n"
        await sandbox.secrets.remove(name)
        assert await sandbox.secrets.list() == []
    await client.secrets.remove(name)
    assert "BEGIN CERTIFICATE" in await client.secrets.authority()
    assert (await client.secrets.rotate()).key


async def ai(client, world):
    async with await client.sandboxes.create(ai={"day": 5, "log_bodies": True}) as sandbox:
        about = await sandbox.ai.get()
        assert about.limits.day == 5 and "openai" in about.providers
        body = {"model": "gpt-4o-mini", "messages": [{"role": "user", "content": "hello"}], "max_tokens": 50}
        answer = await sandbox.ai.request("POST", "openai", "v1/chat/completions", token=about.token, json=body)
        assert answer.status_code == 200 and "Hello" in answer.json()["choices"][0]["message"]["content"]

        async def listed():
            return (await sandbox.ai.calls(limit=5)).calls

        call = (await eventually(listed, "the call is in the log"))[0]
        assert call.model == "gpt-4o-mini" and (await sandbox.ai.call(call.id)).request.text
        assert (await sandbox.ai.change({"week": 7})).limits.week == 7
        assert (await sandbox.ai.set({"parallel": 2})).limits.parallel == 2
        assert (await sandbox.ai.rotate_token(ttl_seconds=600)).token != about.token

        async def summed():
            usage = await client.server.usage(by=["box", "model"], sandbox=sandbox.id, provider="openai", model="gpt-4o-mini", first="2020-01-01", last="2099-01-01")
            return usage if usage.total.requests else None

        usage = await eventually(summed, "the call is in the sums")
        assert usage.total.requests == 1 and usage.usage[0].box == sandbox.id
        assert (await sandbox.ai.request("GET", "openai", "v1/models", token="wrong")).status_code == 401


# ---- what outlives sandboxes


async def copies(client, world):
    name = world.name("snap")
    async with await client.sandboxes.create() as sandbox:
        await sandbox.files.write("a", "1")
        first, second = await sandbox.fork(2, name_prefix=name, metadata={"f": "1"})
        assert first.info.name == f"{name}-1" and first.info.metadata == {"f": "1"}
        async with first, second:
            await first.files.write("a", "2")
            assert [await each.files.read("a") for each in (sandbox, first, second)] == [b"1", b"2", b"1"]
        with pytest.raises(errors.NotFound):
            await client.sandboxes.get(first.id)
        snapshot = await sandbox.snapshot(name)
        assert snapshot.name == name and (await client.snapshots.get(name)).id == snapshot.id
        assert snapshot.id in {each.id for each in await client.snapshots.list()}
        async with await client.sandboxes.create(snapshot=name) as again:
            assert await again.files.read("a") == b"1"
        image = await client.images.create(f"{name}-image", name)
        assert image.name == f"{name}-image" and image.digest in {each.digest for each in await client.images.list()}
        await client.images.remove(f"{name}-image")
        await client.snapshots.remove(name)
        with pytest.raises(errors.NotFound):
            await client.snapshots.get(name)


async def images(client, world):
    name = world.name("image")
    image = await client.images.load(name, world.root_archive())
    assert image.digest.startswith("sha256:") and name in image.names
    async with await client.sandboxes.create(image=name) as sandbox:
        assert (await sandbox.run(["/bin/busybox", "echo", "hi"])).stdout == "hi\n"
    await client.images.remove(name)
    assert name not in {each.name for each in await client.images.list()}


async def workspaces(client, world):
    name = world.name("ws")
    made = await client.workspaces.create(name, disk_mb=50)
    assert made.name == name and made.disk.limit_mb == 50
    at = client.workspaces.files(name)
    assert (await at.write("/d/a.txt", "hello", mode="0640")).size == 5
    await at.write("d/a.txt", "!", append=True)
    assert await at.read("/d/a.txt", offset=1, length=3) == b"ell" and await at.read_text("d/a.txt") == "hello!"
    assert (await at.stat("d/a.txt")).size == 6 and await at.exists("d") and not await at.exists("e")
    assert [each.name for each in await at.list("d")] == ["a.txt"]
    async with await client.sandboxes.create(workspace={"name": name, "mode": "rw"}) as sandbox:
        assert await sandbox.files.read("d/a.txt") == b"hello!"
        assert (await client.workspaces.get(name)).used_by[0].id == sandbox.id
    async with await client.sandboxes.create(workspaces=[{"name": name, "path": "/mnt/kept", "mode": "ro"}]) as sandbox:
        assert await sandbox.files.read("/mnt/kept/d/a.txt") == b"hello!" and sandbox.info.workspaces[0].path == "/mnt/kept"
    clone = await client.workspaces.create(name + "-2", clone_of=name, readonly=True)
    assert clone.readonly and {name, name + "-2"} <= {each.name for each in await client.workspaces.list()}
    await at.remove("d", recursive=True)
    for each in (name, name + "-2"):
        await client.workspaces.remove(each)
    with pytest.raises(errors.NotFound):
        await client.workspaces.get(name)


async def tenants(client, world):
    name = world.name("tenant")
    tenant = await client.tenants.create(name)
    assert tenant.name == name and name in {each.name for each in await client.tenants.list()}
    assert (await client.tenants.set_quota(name, {"boxes": 1, "creates_per_minute": 100})).quota.boxes == 1
    assert (await client.tenants.get(name)).used.boxes == 0
    assert (await client.tenants.set_ai(name, {"day": 3})).limits.day == 3
    assert (await client.tenants.change_ai(name, {"week": 9})).limits.week == 9 and (await client.tenants.ai(name)).limits.day == 3
    assert (await client.tenants.set_egress(name, {"allow": ["example.org"]})).policy.rules[0].host == "example.org"
    assert (await client.tenants.egress(name)).source == "tenant"
    assert (await client.tenants.reset_egress(name)).source != "tenant"
    key = await client.keys.create(name="k", tenant=name, role="user", create_tenant=False)
    assert key.key and key.id in {each.id for each in await client.keys.list()}
    async with AsyncPaddock(client.url, key.key) as user:
        async with await user.sandboxes.create():
            with pytest.raises(errors.QuotaExceeded) as caught:
                await user.sandboxes.create()
            assert caught.value.retry_after is not None and caught.value.advice
        with pytest.raises(errors.Forbidden):
            await user.keys.list()
        await client.keys.remove(key.id)
        with pytest.raises(errors.Unauthorized) as refused:
            await user.sandboxes.page()
        assert "PADDOCK_API_KEY" in str(refused.value)
    newest = await client.audit.list(sandbox=key.id, limit=1)
    assert [(entry.action, entry.verdict) for entry in newest.entries] == [("key.delete", "done")]
    first = (await client.audit.list(sandbox=key.id, cursor=newest.next)).entries[0]
    assert first.action == "key.create" and first.code is None and first.at < newest.entries[0].at


async def events(client, world):
    async with client.events.stream(types=["created", "deleted"]) as stream:
        async with await client.sandboxes.create() as sandbox:
            pass
        seen = []
        async for event in stream:
            if event.sandbox == sandbox.id:
                seen.append(event.type)
                if event.type == "deleted":
                    break
        assert seen == ["created", "deleted"] and not stream.lost
    page = await client.events.page(sandbox=sandbox.id, types=["created", "deleted"], limit=10, after=0)
    assert [event.type for event in page.events] == ["created", "deleted"] and page.events[0].at
    again = client.events.stream(after=page.events[0].id, sandbox=sandbox.id)
    assert (await anext(again)).id == page.events[1].id
    await again.aclose()


async def webhooks(client, world):
    with world.receiver() as (url, deliveries):
        hook = await client.webhooks.create(url, events=["created"], secret="a-secret-of-mine")
        assert hook.id in {each.id for each in await client.webhooks.list()}
        async with await client.sandboxes.create() as sandbox:
            delivery = deliveries.get(timeout=60)
            while json.loads(delivery)["sandbox"] != sandbox.id:
                delivery = deliveries.get(timeout=60)

        async def counted():
            return (await client.webhooks.get(hook.id)).deliveries

        assert (await eventually(counted, "the delivery is counted"))[0].status == 200
        await client.webhooks.remove(hook.id)
        with pytest.raises(errors.NotFound):
            await client.webhooks.get(hook.id)


async def agents(client, world):
    manifest = {"name": "SDK", "version": "1.0.0", "runtime": "python", "entrypoint": "main.py", "permissions": {"chains": ["eip155:1"]}}
    assert (await client.agents.preview(manifest)).manifest.permissions.chains == ["eip155:1"]
    name = f"agent-{uuid.uuid4().hex[:8]}"
    agent = await client.agents.install(manifest, name=name)
    assert agent.status == "waiting" and agent.id in {each.id for each in await client.agents.list()}
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        text = b"import time\nprint('hello')\ntime.sleep(1000)\n"
        info = tarfile.TarInfo("main.py")
        info.size = len(text)
        tar.addfile(info, io.BytesIO(text))
    assert (await client.agents.upload(name, out.getvalue())).status == "building"

    async def built():
        return (await client.agents.get(name)).status == "stopped"

    await eventually(built, "the image is built")
    assert (await client.agents.start(name)).status == "running"

    async def hello():
        return [each for each in (await client.agents.logs(name, level="info", after=0, limit=1000)).entries if each.message == "hello"]

    assert (await eventually(hello, "its output is logged"))[0].source == "stdout"
    assert (await client.agents.restart(name)).status == "running"
    assert await client.agents.catalogues() == []
    newer = {**manifest, "version": "1.1.0", "permissions": {"chains": ["eip155:1", "eip155:10"]}}
    assert (await client.agents.preview_upgrade(name, newer)).asks_more == ["permissions.chains: eip155:10"]
    assert (await client.agents.upgrade(name, newer)).upgrade.status == "waiting"
    await client.agents.upload(name, out.getvalue())

    async def newest():
        now = await client.agents.get(name)
        return now.upgrade is None and now.status == "running" and now.manifest.version == "1.1.0"

    await eventually(newest, "it is upgraded and runs")
    assert (await client.agents.stop(name)).status == "stopped"
    assert (await client.agents.limits(name)).limits == [] and (await client.agents.spending(name)).lines == []
    assert (await client.agents.restrict(name, paused=True, approvers=2)).paused
    with pytest.raises(errors.Forbidden):
        await client.agents.restrict(name, paused=False)
    await client.agents.remove(name)
    with pytest.raises(errors.NotFound):
        await client.agents.get(agent.id)


async def transactions(client, world):
    """Without a wallet there are none."""
    page = await client.transactions.list(state="pending", chain="eip155:1", asset="native", limit=5)
    assert page.transactions == [] and page.next is None
    assert (await client.transactions.export_csv()).startswith("id,created_at,state,")
    for call in (client.transactions.get, client.transactions.reject, client.transactions.cancel, client.transactions.speed_up, client.transactions.revoke):
        with pytest.raises(errors.NotFound):
            await call("nonsense")
    with pytest.raises(errors.NotFound):
        await client.transactions.approve("nonsense", "0x" + "11" * 32)
    with pytest.raises(errors.InvalidArgument):
        await client.transactions.answer("nonsense", hash="0x" + "11" * 32, rejected=True)


async def in_state(client, id, *states):
    async def look():
        now = await client.transactions.get(id)
        return now if now.state in states else None

    return await eventually(look, f"{id} is {states}")


async def people_decide(client, world):
    """An agent asks, and everything that a person can say is said."""
    money = world.money
    async with AsyncPaddock(money.daemon.url, money.daemon.key) as client:
        asked = money.ask()
        tx = await client.transactions.get(asked["id"])
        assert (tx.state, tx.value, tx.to, tx.agent_name) == ("pending", asked["value"], asked["to"], "spender") and tx.card.sentence in tx.card.text
        assert tx.id in [each.id for each in (await client.transactions.list(state="pending", agent="spender")).transactions]
        assert (await client.transactions.reject(tx.id, note="not today")).state == "rejected"
        with pytest.raises(errors.ApiError) as caught:
            await client.transactions.approve(tx.id, tx.digest)
        assert caught.value.code == "wrong_state"
        withdrawn = await client.transactions.cancel(money.ask()["id"], note="not needed")
        assert withdrawn.state == "cancelled"
        # What was sent is sent again with higher fees, then replaced by nothing.
        tx = await client.transactions.get(money.ask()["id"])
        assert (await client.transactions.approve(tx.id, tx.digest)).state != "pending"
        first = (await in_state(client, tx.id, "broadcast")).hash
        assert (await client.transactions.speed_up(tx.id)).id == tx.id
        second = (await in_state(client, tx.id, "broadcast")).hash
        assert (await client.transactions.cancel(tx.id)).id == tx.id
        with pytest.raises(errors.ApiError) as caught:
            await client.transactions.revoke(tx.id, note="it gave none")
        assert caught.value.code == "wrong_state" and "gives no allowance" in str(caught.value)
        attempts = (await client.transactions.get(tx.id)).card.attempts
        assert [each.hash for each in attempts][1:] == [second, first] and second != first
        # What it lets somebody take is taken back by a request of its own.
        tx = await client.transactions.get(money.ask(allows=True)["id"])
        await client.transactions.approve(tx.id, tx.digest)
        await in_state(client, tx.id, "broadcast")
        taken = await client.transactions.revoke(tx.id)
        assert (taken.state, taken.reason, taken.to) == ("pending", f"revoke {tx.id}", tx.to)
        assert (await client.transactions.revoke(tx.id, note="again")).id == taken.id
        spending = await client.wallets.spending(asked["wallet"])
        assert spending.scope == f"wallet:{asked['wallet']}" and any(int(each.spent.lifetime) > 0 for each in spending.lines)


async def wallets_elsewhere(client, world):
    """A wallet in a page answers; one on a phone is connected, seen and sent away."""
    money = world.money
    async with AsyncPaddock(money.daemon.url, money.daemon.key) as client:
        for sends in (True, False):
            asked = money.ask(elsewhere=True)
            await client.transactions.approve(asked["id"], (await client.transactions.get(asked["id"])).digest)
            await in_state(client, asked["id"], "awaiting_wallet")
            said = {"hash": money.send(asked["value"], asked["to"])["hash"]} if sends else {"rejected": True}
            assert (await client.transactions.answer(asked["id"], **said)).id == asked["id"]
            done = await in_state(client, asked["id"], *(("confirmed", "final") if sends else ("wallet_rejected",)))
            assert done.hash == said.get("hash")
        pairing = await client.wallets.connect(label="phone")
        assert pairing.uri.startswith("wc:") and pairing.qr
        money.pair(pairing.uri)

        async def session():
            return next((each for each in await client.wallets.sessions() if each.id == pairing.id), None)

        assert (await eventually(session, "the session is listed")).name == "Test Wallet"
        await client.wallets.disconnect(pairing.id)
        assert await session() is None


async def signer(client, world):
    assert await client.wallets.list() == [] and await client.signer.chains() == []
    with pytest.raises(errors.ApiError):
        await client.wallets.spending("nonsense/../x")
    with pytest.raises(errors.ApiError):
        await client.wallets.connect(label="phone", chains=["eip155:7"])
    with pytest.raises(errors.ApiError):
        await client.wallets.disconnect("nonsense")
    with suppress(errors.ApiError):  # where it is configured
        assert await client.wallets.sessions() == []
    assert (await client.signer.pause(cancel_pending=True)).paused and (await client.signer.get()).paused
    entries = await client.signer.audit(limit=1, verify=True)
    assert entries.verified.broken_at is None and len(entries.entries) == 1
    assert (await client.signer.audit(after=entries.next, limit=1)).entries[0].prev == entries.entries[0].hash


async def server(client, world):
    assert (await client.server.health()).status == "ok" and (await client.server.ready()).status == "ok"
    able = await client.server.capabilities()
    assert able.api == "v1" and able.defaults.limits.memory_mb > 0 and able.backends[0].can
    assert (await client.server.posture()).ok
    listener = (await client.server.dialects()).listeners[0]
    assert listener.port == world.daemon.port and listener.dialect is None and listener.dialects[0].routes
    assert "paddock_" in await client.server.metrics()
    assert "/v1/sandboxes" in (await client.server.openapi())["paths"]
    assert "pypi" in (await client.server.egress_sets()).sets
    assert Path(world.daemon.data_dir, "admin.key").exists() and client.url == world.daemon.url
