"""What the documentation of PyPI's agent-sandbox shows, run with that package: program.py sync|async URL KEY.

Every method of the package that is not about a browser is called, and `Recorder` knows which were. One source for both
clients: `do` awaits what the asynchronous one returns. KEY may be "-": none is sent.
"""

import asyncio
import inspect
import sys

from agent_sandbox import AsyncSandbox, Sandbox
from agent_sandbox.core.api_error import ApiError

PARTS = ("auth", "bash", "code", "file", "jupyter", "mcp", "nodejs", "proxy", "sandbox", "shell", "skills", "util")
SKILL = "---\nname: greet\ndescription: says hello\n---\n# Greet\n"


async def do(result):
    return await result if inspect.isawaitable(result) else result


async def collect(pieces):
    if hasattr(pieces, "__aiter__"):
        return b"".join([piece async for piece in pieces])
    return b"".join(pieces)


async def failure(call):
    try:
        got = await do(call())
        await collect(got)
    except ApiError as e:
        return e
    raise AssertionError("it succeeded")


class Part:
    def __init__(self, part, name, called):
        self.part, self.name, self.called = part, name, called

    def __getattr__(self, method):
        self.called.add(f"{self.name}.{method}")
        return getattr(self.part, method)


class Recorder:
    """The client, and which of its methods were called."""

    def __init__(self, client):
        self.client, self.called = client, set()

    def __getattr__(self, name):
        return Part(getattr(self.client, name), name, self.called)

    def left_out(self):
        public = {f"{p}.{m}" for p in PARTS for m in dir(getattr(self.client, p)) if not m.startswith(("_", "with_raw"))}
        return sorted(public - self.called)


def good(answer):
    assert answer.success is True, answer
    return answer.data


def bad(answer, word=""):
    assert answer.success is False and word in answer.message, answer
    return answer


async def readme(client):
    """The program on the package's first page."""
    context = await do(client.sandbox.get_context())
    result = await do(client.shell.exec_command(command="ls -la"))
    assert "total" in good(result).output, result
    return context


async def shells(client):
    run = good(await do(client.shell.exec_command(command="cd /tmp && pwd", id="s")))
    assert (run.output, run.exit_code, run.status) == ("/tmp\n", 0, "completed"), run
    assert good(await do(client.shell.exec_command(command="cat", id="s", async_mode=True))).status == "running"
    good(await do(client.shell.write_to_process(id="s", input="typed", press_enter=True)))
    assert good(await do(client.shell.view(id="s"))).session_id == "s"
    assert good(await do(client.shell.wait_for_process(id="s", seconds=1))).status == "running"
    assert good(await do(client.shell.kill_process(id="s"))).status == "terminated"
    made = good(await do(client.shell.create_session(id="t", exec_dir="/usr")))
    assert made.working_dir == "/usr", made
    good(await do(client.shell.update_session(id="t", no_change_timeout=3)))
    assert "/terminal?ticket=" in good(await do(client.shell.get_terminal_url()))
    assert good(await do(client.shell.get_session_stats())).total_sessions >= 2
    assert {"s", "t"} <= set(good(await do(client.shell.list_sessions())).sessions)
    good(await do(client.shell.cleanup_session(session_id="t")))
    good(await do(client.shell.cleanup_all_sessions()))
    bad(await do(client.shell.view(id="s")), "no session")


async def bashes(client):
    assert good(await do(client.bash.create_session(session_id="b", exec_dir="/usr"))).status == "ready"
    run = good(await do(client.bash.exec(command="pwd; echo err >&2", session_id="b")))
    assert (run.stdout, run.stderr, run.exit_code) == ("/usr\n", "err\n", 0), run
    run = good(await do(client.bash.exec(command="read x; echo $x", session_id="b", async_mode=True)))
    good(await do(client.bash.write(session_id="b", input="it\n")))
    read = good(await do(client.bash.output(session_id="b", command_id=run.command_id, wait=True)))
    assert read.stdout == "it\n", read
    good(await do(client.bash.exec(command="sleep 600", session_id="b", async_mode=True)))
    good(await do(client.bash.kill(session_id="b")))
    assert [s.session_id for s in good(await do(client.bash.sessions()))] == ["b"]
    good(await do(client.bash.close_session(session_id="b")))
    bad(await do(client.bash.exec(command="true", session_id="b")), "closed")


async def files(client, home):
    path = f"{home}/hello.txt"
    assert good(await do(client.file.write_file(file=path, content="Hello, World!\n"))).file == path
    assert good(await do(client.file.read_file(file=path))).content == "Hello, World!\n"
    missing = bad(await do(client.file.read_file(file="/none")), "No such file")
    assert missing.data.content == "", missing
    assert good(await do(client.file.replace_in_file(file=path, old_str="World", new_str="there"))).replaced_count == 1
    assert good(await do(client.file.search_in_file(file=path, regex="there"))).line_numbers == [0]
    assert good(await do(client.file.find_files(path=home, glob="hello.*"))).files == [path]
    assert good(await do(client.file.grep_files(path=home, pattern="Hello"))).match_count == 1
    assert [f.name for f in good(await do(client.file.glob_files(path=home, pattern="*.txt"))).files] == ["hello.txt"]
    assert "hello.txt" in [f.name for f in good(await do(client.file.list_path(path=home))).files]
    up = good(await do(client.file.upload_file(file=("up.bin", b"\x00\xff"), path=f"{home}/up.bin")))
    assert up.file_size == 2 and await collect(client.file.download_file(path=f"{home}/up.bin")) == b"\x00\xff"
    assert (await failure(lambda: client.file.download_file(path="/none"))).status_code == 404
    seen = good(await do(client.file.str_replace_editor(command="view", path=path)))
    assert "Hello" in seen.output
    bad(await do(client.file.str_replace_editor(command="view", path="/none")))
    for refused in (client.file.write_file(file="/proc/none", content=""), client.file.list_path(path="/none"),
                    client.file.find_files(path="/none", glob="*"), client.file.grep_files(path="/none", pattern="x")):
        bad(await do(refused))
    watch = (await do(client.file.watch_create(path=home, debounce=50)))["data"]["watcher_id"]
    assert (await do(client.file.watch_poll(watcher_id=watch)))["data"]["events"] == []
    assert (await do(client.file.watch_list()))["data"]["watchers"][0]["watcher_id"] == watch
    assert (await do(client.file.watch_wait(path=path, timeout=1)))["data"]["triggered"] is False
    assert (await do(client.file.watch_stop(watcher_id=watch)))["success"] is True
    assert (await do(client.file.watch_events(watcher_id=watch)))["success"] is False


async def code(client):
    run = good(await do(client.jupyter.execute_code(code="import math\nprint(math.sqrt(16))\nmath.pi")))
    assert run.status == "ok" and run.outputs[0].text == "4.0\n" and run.outputs[1].data["text/plain"].startswith("3.14"), run
    again = good(await do(client.jupyter.execute_code(code="math.e", session_id=run.session_id)))
    assert again.outputs[0].data["text/plain"].startswith("2.718"), again
    raised = good(await do(client.jupyter.execute_code(code="1 / 0")))
    assert raised.status == "error" and raised.outputs[-1].ename == "ZeroDivisionError", raised
    assert good(await do(client.jupyter.get_info())).default_kernel == "python3"
    assert good(await do(client.jupyter.create_session(session_id="py"))).session_id == "py"
    assert "py" in good(await do(client.jupyter.list_sessions())).sessions
    good(await do(client.jupyter.delete_session(session_id="py")))
    bad(await do(client.jupyter.delete_session(session_id="py")))
    good(await do(client.jupyter.delete_sessions()))

    node = good(await do(client.nodejs.execute_code(code="console.log([1, 2, 3].map(x => x * 2))")))
    assert node.stdout == "[ 2, 4, 6 ]\n" and node.exit_code == 0, node
    assert good(await do(client.nodejs.get_info())).node_version
    good(await do(client.nodejs.create_session(session_id="js")))
    assert "js" in good(await do(client.nodejs.list_sessions())).sessions
    assert good(await do(client.nodejs.get_session(session_id="js"))).session.session_id == "js"
    good(await do(client.nodejs.update_session(session_id="js")))
    good(await do(client.nodejs.delete_session(session_id="js")))
    unified = good(await do(client.code.execute_code(language="python", code="print('unified')")))
    assert unified.stdout == "unified\n" and len(good(await do(client.code.get_info())).languages) == 2


async def others(client, home):
    assert "==" in good(await do(client.sandbox.get_python_packages()))
    assert "npm@" in good(await do(client.sandbox.get_nodejs_packages()))
    assert good(await do(client.sandbox.register_hook(name="bye", command="true"))).name == "bye"
    assert [h.name for h in good(await do(client.sandbox.list_hooks(event="shutdown")))] == ["bye"]
    good(await do(client.sandbox.remove_hook(name="bye")))

    assert good(await do(client.mcp.list_mcp_servers())) == ["sandbox"]
    tools = good(await do(client.mcp.list_mcp_tools(server_name="sandbox"))).tools
    assert "exec" in [t.name for t in tools]
    ran = good(await do(client.mcp.execute_mcp_tool("sandbox", "exec", request={"command": "echo by mcp"})))
    assert "by mcp" in ran.content[0].text, ran
    bad(await do(client.mcp.list_mcp_tools(server_name="none")))

    made = good(await do(client.skills.register_skills(file=("greet.md", SKILL.encode()))))
    assert made.count == 1 and made.registered[0].metadata["description"] == "says hello", made
    assert [s.name for s in good(await do(client.skills.list_metadata(names="greet"))).skills] == ["greet"]
    assert good(await do(client.skills.get_content(name="greet"))).content == "# Greet\n"
    assert good(await do(client.skills.delete_skill(name="greet"))).name == "greet"
    good(await do(client.skills.clear_skills()))
    assert good(await do(client.util.convert_to_markdown(uri=f"{home}/hello.txt"))).startswith("Hello")

    assert good(await do(client.proxy.list_mappings())) == [] and good(await do(client.proxy.list_excludes())) == []
    assert good(await do(client.proxy.get_upstream())) is None
    for refused in (client.proxy.add_mapping(source="myapp.com", target=":3000"), client.proxy.add_exclude(pattern="*.internal"),
                    client.proxy.set_upstream(server="proxy.example.com:3128")):
        bad(await do(refused), "no browser")
    for absent in (client.proxy.remove_mapping(source="myapp.com"), client.proxy.remove_exclude(pattern="*.internal"), client.proxy.remove_upstream()):
        bad(await do(absent))
    assert good(await do(client.proxy.diagnose(url="http://127.0.0.1:9/"))).target_reachable is False

    assert (await do(client.auth.create_ticket()))["ticket"] and await do(client.auth.authenticate())


async def program(client, stranger):
    context = await readme(client)
    home = context.home_dir
    assert home == "/home/user" and context.version, context
    await shells(client)
    await bashes(client)
    await files(client, home)
    await code(client)
    await others(client, home)
    assert not client.left_out(), client.left_out()

    info = await do(client.browser.get_info())
    assert info.success is False and info.message == "this image has no browser", info
    shot = await failure(client.browser.screenshot)
    assert shot.status_code == 501 and "no browser" in str(shot.body), shot
    denied = await failure(stranger.sandbox.get_context)
    assert denied.status_code == 401, denied


def main():
    kind, url, key = sys.argv[1:]
    make = Sandbox if kind == "sync" else AsyncSandbox
    client, stranger = (make(base_url=url, headers={} if k == "-" else {"X-AIO-API-Key": k}) for k in (key, "pdk_" + "0" * 40))
    asyncio.run(program(Recorder(client), stranger))
    print("done")


main()
