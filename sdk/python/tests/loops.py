"""A request, a stream and a terminal in the loop that is named. Prints which transport httpx gave besides ours."""

import sys

import paddock


async def main():
    async with paddock.AsyncPaddock() as client, await client.sandboxes.create() as sandbox:
        assert (await sandbox.run("echo hi")).stdout == "hi\n"
        assert [event.data async for event in sandbox.stream("echo hi") if event.type == "stdout"] == ["hi\n"]
        async with sandbox.terminal() as terminal:
            await terminal.write(b"exit 3\n")
            async for _ in terminal:
                pass
            assert terminal.exit.exit_code == 3
        print(type(client._api.transport.other).__name__)


if sys.argv[1] == "trio":
    import trio

    trio.run(main)
else:
    import uvloop

    uvloop.run(main())
