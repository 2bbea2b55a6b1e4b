"""A session of the official Python client with Paddock. Prints one JSON object: what it saw.

    client.py URL|stdio KEY MODE [PROGRAM ARGUMENTS…]    MODE: legacy, or a version of the newer era
"""

import asyncio
import json
import sys

import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client


async def main(url, key, mode, *program):
    headers = {"Authorization": f"Bearer {key}"}
    async with httpx2.AsyncClient(headers=headers, timeout=60) as http:
        if url == "stdio":
            server = StdioServerParameters(command=program[0], args=list(program[1:]), env=None)
        else:
            server = streamable_http_client(url, http_client=http)
        async with Client(server, mode=mode) as client:
            return await talk(client)


async def talk(client):
    seen = {"tools": [tool.name for tool in (await client.list_tools()).tools]}
    box = (await client.call_tool("sandbox_create", {})).structured_content["id"]
    try:
        await client.call_tool("exec", {"sandbox": box, "command": "cd /tmp; X=kept"})
        seen["exec"] = (await client.call_tool("exec", {"sandbox": box, "command": "echo $X $PWD"})).structured_content["stdout"]
        await client.call_tool("file_write", {"sandbox": box, "path": "/tmp/a", "content": "one\ntwo\n"})
        seen["file"] = (await client.call_tool("file_read", {"sandbox": box, "path": "/tmp/a", "offset": 2})).structured_content["content"]
        progress = []

        async def on_progress(done, total, message):
            progress.append(message)

        await client.call_tool("exec", {"sandbox": box, "command": "echo going; sleep 1.6"}, progress_callback=on_progress)
        seen["progress"] = progress
        seen["failed"] = (await client.call_tool("file_read", {"sandbox": box, "path": "/nope"})).is_error
        resource = await client.read_resource(f"paddock://sandboxes/{box}/files/tmp/a")
        seen["resource"] = resource.contents[0].text
    finally:
        await client.call_tool("sandbox_delete", {"sandbox": box})
    return seen


print(json.dumps(asyncio.run(main(*sys.argv[1:]))))
