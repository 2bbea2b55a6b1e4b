"""What the documentation of PyPI's agent-sandbox shows, run with that package: program.py sync|async URL KEY.

One source for both clients: `do` awaits what the asynchronous one returns.
"""

import asyncio
import inspect
import sys

from agent_sandbox import AsyncSandbox, Sandbox
from agent_sandbox.core.api_error import ApiError


async def do(result):
    return await result if inspect.isawaitable(result) else result


async def failure(call):
    try:
        got = await do(call())
        if hasattr(got, "__aiter__"):
            [piece async for piece in got]
        else:
            list(got)
    except ApiError as e:
        return e
    raise AssertionError("it succeeded")


async def program(client, stranger):
    context = await do(client.sandbox.get_context())
    assert context.home_dir == "/home/user" and context.version, context

    path = f"{context.home_dir}/hello.txt"
    written = await do(client.file.write_file(file=path, content="Hello, World!\n"))
    assert written.success and written.data.file == path, written
    assert (await do(client.file.read_file(file=path))).data.content == "Hello, World!\n"

    run = await do(client.jupyter.execute_code(code="import math\nprint(math.sqrt(16))\nmath.pi"))
    assert run.success and run.data.status == "ok", run
    assert run.data.outputs[0].text == "4.0\n" and run.data.outputs[1].data["text/plain"].startswith("3.14"), run
    again = await do(client.jupyter.execute_code(code="math.e", session_id=run.data.session_id))
    assert again.data.outputs[0].data["text/plain"].startswith("2.718"), again
    raised = await do(client.jupyter.execute_code(code="1 / 0"))
    assert raised.data.status == "error" and raised.data.outputs[-1].ename == "ZeroDivisionError", raised
    assert (await do(client.jupyter.get_info())).data.default_kernel == "python3"

    node = await do(client.nodejs.execute_code(code="console.log([1, 2, 3].map(x => x * 2))"))
    assert node.data.stdout == "[ 2, 4, 6 ]\n" and node.data.exit_code == 0, node
    code = await do(client.code.execute_code(language="python", code="print('unified')"))
    assert code.data.stdout == "unified\n", code

    info = await do(client.browser.get_info())
    assert info.success is False and info.message == "this image has no browser", info
    shot = await failure(client.browser.screenshot)
    assert shot.status_code == 501 and "no browser" in str(shot.body), shot
    denied = await failure(stranger.sandbox.get_context)
    assert denied.status_code == 401, denied


def main():
    kind, url, key = sys.argv[1:]
    make = Sandbox if kind == "sync" else AsyncSandbox
    client, stranger = (make(base_url=url, headers={"X-AIO-API-Key": k}) for k in (key, "pdk_" + "0" * 40))
    asyncio.run(program(client, stranger))
    print("done")


main()
