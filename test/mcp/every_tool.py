"""Calls every tool of Paddock once and holds what it gives against the schema that it promises. Prints the tools that kept it.

    every_tool.py URL KEY
"""

import asyncio
import json
import sys

import httpx2
import jsonschema
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

PNG = "class P:\n  def _repr_png_(self): return b'\\x89PNG'\nprint('x')\nP()"
CALLS = [
    ("sandbox_create", {"name": "every", "env": {"A": "b"}, "metadata": {"k": "v"}, "ttl_seconds": 600, "cpu": 1, "memory_mb": 256}),
    ("sandbox_list", {"limit": 1}), ("sandbox_list", {"status": "running"}), ("sandbox_get", {"sandbox": "every"}),
    ("exec", {"sandbox": "every", "command": "echo $A; exit 3"}), ("exec", {"sandbox": "every", "command": "kill -9 $$", "stateful": False}),
    ("exec", {"sandbox": "every", "command": "sleep 9", "timeout_ms": 50, "shell": "other"}), ("exec", {"sandbox": "every", "command": "seq 90000"}),
    ("run_code", {"sandbox": "every", "code": PNG}), ("run_code", {"sandbox": "every", "code": "1/0"}),
    ("run_code", {"sandbox": "every", "code": "echo hi", "language": "bash"}),
    ("file_write", {"sandbox": "every", "path": "/tmp/d/a.txt", "content": "one\ntwo\n"}),
    ("file_write", {"sandbox": "every", "path": "/tmp/d/b.bin", "content": "/w==", "encoding": "base64"}),
    ("file_read", {"sandbox": "every", "path": "/tmp/d/a.txt", "limit": 1}), ("file_read", {"sandbox": "every", "path": "/tmp/d/b.bin"}),
    ("file_edit", {"sandbox": "every", "path": "/tmp/d/a.txt", "old": "one", "new": "1"}),
    ("file_list", {"sandbox": "every", "path": "/tmp", "depth": 3}),
    ("file_search", {"sandbox": "every", "path": "/tmp/d", "pattern": "^t"}), ("file_search", {"sandbox": "every", "pattern": "*.txt", "path": "/tmp", "mode": "name"}),
    ("processes", {"sandbox": "every", "action": "start", "command": "python3 -m http.server 8000", "tag": "web"}),
    ("processes", {"sandbox": "every"}), ("ports", {"sandbox": "every"}), ("processes", {"sandbox": "every", "action": "signal", "process": "web"}),
    ("snapshot", {"sandbox": "every", "name": "every-snapshot"}), ("fork", {"sandbox": "every", "count": 2, "name_prefix": "every-fork"}),
    ("createSandbox", {"name": "every-named"}), ("getSandbox", {"name": "every-named"}), ("transactions", {}),
    ("sandboxExecutor", {"sandbox_name": "every-named", "tool_name": "exec", "arguments": {"command": "true"}}),
    ("deleteSandbox", {"name": "every-named"}),
    *(("sandbox_delete", {"sandbox": name}) for name in ("every-fork-1", "every-fork-2", "every")),
]


async def main(url, key):
    async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {key}"}, timeout=60) as http:
        async with Client(streamable_http_client(url, http_client=http), mode="legacy") as client:
            tools = {tool.name: tool.model_dump(by_alias=True, exclude_none=True) for tool in (await client.list_tools()).tools}
            for tool in tools.values():
                for schema in (tool["inputSchema"], tool["outputSchema"]):
                    jsonschema.Draft202012Validator.check_schema(schema)
            for name, arguments in CALLS:
                jsonschema.validate(arguments, tools[name]["inputSchema"])
                result = await client.call_tool(name, arguments)
                assert not result.is_error, (name, arguments, result.content)
                schema = {"additionalProperties": False, **tools[name]["outputSchema"]}
                jsonschema.validate(result.structured_content, schema)
            return sorted({name for name, _ in CALLS})


print(json.dumps(asyncio.run(main(*sys.argv[1:]))))
