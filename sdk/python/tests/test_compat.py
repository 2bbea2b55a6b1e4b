"""Programs that were written for other sandboxes' clients, with the import changed."""

import anyio
import driver
import pytest

from paddock import errors
from paddock.compat import agentbox, sandkasten


@pytest.fixture(params=("main", "dialect"))
def address(request, daemon, own):
    """Paddock's own address, and a listener of Sandkasten's own."""
    return (daemon.url, daemon.key) if request.param == "main" else own


@pytest.fixture(scope="module")
def own(daemon_factory):
    daemon = daemon_factory("sandkasten")
    config = daemon.base / "paddock.yaml"
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    config.write_text(f"listeners:\n  - {{address: 127.0.0.1:{port}, dialect: sandkasten}}\n")
    daemon.arguments += ["--config", str(config)]
    daemon.start()
    yield f"http://127.0.0.1:{port}", daemon.key
    daemon.finish()


def test_sandkasten(address):
    async def main():
        url, key = address
        async with sandkasten.SandboxClient(base_url=url, api_key=key, timeout=60) as client:
            async with await client.create_session(image="python", ttl_seconds=600) as session:
                result = await session.exec("cd /tmp; export X=1; echo out; echo err >&2", timeout_ms=20000)
                assert (result.exit_code, result.cwd, sorted(result.output.split()), result.truncated) == (0, "/tmp", ["err", "out"], False)
                assert (await session.exec("echo $X; pwd", raw_output=True)).output == "1\n/tmp\n"
                await session.write("hello.py", "print('hi')")
                assert (await session.exec("python3 /workspace/hello.py")).output == "hi\n"
                read = await session.read("hello.py")
                assert read.decode() == "print('hi')" == read.content.decode() and not read.truncated
                assert (await session.read("hello.py", max_bytes=5)).truncated
                assert len(await session.upload({"a.txt": "1", "b.bin": b"\0"}, path="/workspace")) == 2
                assert await session.read("b.bin") == b"\0"
                chunks = [chunk async for chunk in session.exec_stream("echo one; exit 0")]
                assert "".join(chunk.output for chunk in chunks) == "one\n" and chunks[-1].done and chunks[-1].exit_code == 0
                assert (await session.stats()).memory_limit > 0
                info = await session.info()
                assert info.id == session.id and info.status == "running"
                assert session.id in {each.id for each in await client.list_sessions()}
                assert (await client.get_session(session.id)).id == session.id
                with pytest.raises(sandkasten.SandkastenAPIError) as caught:
                    await session.read("missing")
                assert caught.value.status_code in (400, 404) and caught.value.response_body
                with pytest.raises(sandkasten.SandkastenAPIError):
                    async for _ in (await client.get_session("no-such")).exec_stream("true"):
                        pass
            async with await client.create_session(workspace_id="kept-1") as session:
                await session.write("a", "1")
            assert "kept-1" in {each.id for each in await client.list_workspaces()}
            await client.delete_workspace("kept-1")
        async with sandkasten.session(url, key) as session:
            assert (await session.exec("echo hi")).output == "hi\n"

    anyio.run(main)


def test_sandkasten_tools(daemon):
    """Tools of the OpenAI Agents SDK, called as it calls them."""
    from agents.tool_context import ToolContext

    async def main():
        async with sandkasten.SandboxClient(daemon.url, daemon.key) as client:
            async with sandkasten.sandbox_tools_for_workspace(client, "kept-2") as (session, tools):
                by_name = {tool.name: tool for tool in tools}
                assert set(by_name) == {"sandbox_exec", "sandbox_write_file", "sandbox_read_file", "sandbox_list_files", "sandbox_stats"}

                async def call(name, arguments):
                    context = ToolContext(context=None, tool_name=name, tool_call_id="1", tool_arguments=arguments)
                    return await by_name[name].on_invoke_tool(context, arguments)

                assert await call("sandbox_write_file", '{"path": "f", "content": "hello"}') == "wrote f"
                assert await call("sandbox_read_file", '{"path": "f"}') == "hello"
                assert "hello" in await call("sandbox_exec", '{"cmd": "cat /workspace/f"}')
                assert " f" in await call("sandbox_list_files", '{"path": "/workspace"}')
                assert "memory_limit=" in await call("sandbox_stats", "{}")
            await client.delete_workspace("kept-2")

    anyio.run(main)


def test_agentbox(daemon, monkeypatch):
    """The calls of agentbox's quick start."""
    monkeypatch.setenv("PADDOCK_API_KEY", daemon.key)
    grpc, pb2 = agentbox.grpc, agentbox.sandbox_pb2
    with grpc.insecure_channel(f"127.0.0.1:{daemon.port}") as channel:
        stub = agentbox.sandbox_pb2_grpc.SandboxServiceStub(channel)
        made = stub.CreateSession(pb2.CreateSessionRequest(allowed_hosts=["example.org", "files.example.org"]))
        session_id = made.session.session_id
        assert made.session.status == "running" and made.session.container_id and "example.org" in made.session.allowed_hosts
        result = stub.Exec(pb2.ExecRequest(session_id=session_id, command="python3 -c 'print(1+1)'", timeout=30, workdir="/workspace"))
        assert (result.exit_code, result.stdout, result.stderr, result.timed_out) == (0, "2\n", "", False)
        assert stub.WriteFile(pb2.WriteFileRequest(session_id=session_id, path="script.py", content="print('hello')", mode="w")).success
        assert stub.ReadFile(pb2.ReadFileRequest(session_id=session_id, path="script.py")).content == "print('hello')"
        assert not stub.ReadFile(pb2.ReadFileRequest(session_id=session_id, path="no")).success
        pieces = list(stub.ExecStream(pb2.ExecStreamRequest(session_id=session_id, command="python3 script.py; exit 3")))
        assert [(each.type, each.data) for each in pieces[:-1]] == [("stdout", "hello\n")] and (pieces[-1].type, pieces[-1].exit_code) == ("exit", 3)
        assert stub.GetSession(pb2.GetSessionRequest(session_id=session_id)).session.session_id == session_id
        assert session_id in {each.session_id for each in stub.ListSessions(pb2.ListSessionsRequest()).sessions}
        assert stub.DestroySession(pb2.DestroySessionRequest(session_id=session_id)).success
        with pytest.raises(grpc.RpcError) as caught:
            stub.GetSession(pb2.GetSessionRequest(session_id=session_id))
        assert caught.value.code() == "NOT_FOUND" and "Session not found" in caught.value.details()
        with pytest.raises(ValueError):
            pb2.ExecRequest(sesion_id="x")
        with pytest.raises(AttributeError):
            stub.NoSuch
    assert driver and errors
