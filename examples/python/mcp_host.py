"""An MCP host: it connects a model to Paddock's MCP server, which offers sandboxes as tools.

    python3 mcp_host.py "How much memory does a sandbox have?"
"""

import asyncio
import os
import sys

import httpx2
from anthropic import AsyncAnthropic
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from paddock import Paddock

MODEL = os.environ.get("ANTHROPIC_MODEL", "claude-sonnet-4-5")


def content_of(result):
    """What a tool says, as Anthropic wants it."""
    found = []
    for item in result.content:
        if item.type == "text":
            found.append({"type": "text", "text": item.text})
        elif item.type == "image":
            found.append({"type": "image", "source": {"type": "base64", "media_type": item.mime_type, "data": item.data}})
    return found


async def main(task):
    with Paddock() as server:  # finds the address and the key, as the SDK does everywhere
        url, key = f"{server.url}/mcp", server.key
    async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {key}"}, timeout=300) as http, AsyncAnthropic() as anthropic:
        async with Client(streamable_http_client(url, http_client=http)) as host:
            listed = (await host.list_tools()).tools
            tools = [{"name": tool.name, "description": tool.description or "", "input_schema": tool.input_schema} for tool in listed]
            messages = [{"role": "user", "content": f"{task} Delete the sandboxes that you create."}]
            for _ in range(30):
                message = await anthropic.messages.create(model=MODEL, max_tokens=4096, messages=messages, tools=tools)
                used = [block for block in message.content if block.type == "tool_use"]
                if not used:
                    break
                results = []
                for block in used:
                    print(f"-> {block.name} {block.input}")
                    result = await host.call_tool(block.name, block.input)
                    results.append({"type": "tool_result", "tool_use_id": block.id, "content": content_of(result), "is_error": bool(result.is_error)})
                messages += [{"role": "assistant", "content": message.content}, {"role": "user", "content": results}]
            print("".join(block.text for block in message.content if block.type == "text"))


if __name__ == "__main__":
    asyncio.run(main(" ".join(sys.argv[1:]) or "Run `uname -a` in a sandbox and tell me which kernel it has."))
