"""Calls in turns: raw HTTP, the SDK, and both with await. Prints the medians in milliseconds; sdk_python.py runs it."""

import asyncio
import http.client
import json
import random
import statistics
import sys
import time
from urllib.parse import urlsplit

from paddock import AsyncPaddock, Paddock


async def main(rounds):
    with Paddock() as client, client.sandboxes.create() as sandbox:
        async with AsyncPaddock() as other:
            same = await other.sandboxes.get(sandbox.id)
            where, path, times = urlsplit(client.url), f"/v1/sandboxes/{sandbox.id}", {"raw": [], "sdk": [], "async raw": [], "async sdk": []}
            connection = http.client.HTTPConnection(where.netloc)
            reader, writer = await asyncio.open_connection(where.hostname, where.port)
            request = f"GET {path} HTTP/1.1\r\nHost: {where.netloc}\r\nAuthorization: Bearer {client.key}\r\n\r\n".encode()

            def raw():
                connection.request("GET", path, headers={"Authorization": f"Bearer {client.key}"})
                return json.loads(connection.getresponse().read())

            async def raw_async():
                writer.write(request)
                head = (await reader.readuntil(b"\r\n\r\n")).lower()
                length = int(head.partition(b"content-length:")[2].split(b"\r\n")[0])
                return json.loads(await reader.readexactly(length))

            calls = [("raw", raw), ("sdk", sandbox.refresh), ("async raw", raw_async), ("async sdk", same.refresh)]
            for _ in range(rounds + 50):
                random.shuffle(calls)  # what a call leaves to do for the machine slows the next one
                for name, call in calls:
                    begun = time.perf_counter()
                    answer = call()
                    if name.startswith("async"):
                        await answer
                    times[name].append(time.perf_counter() - begun)
            writer.close()
            return {name: statistics.median(each[50:]) * 1000 for name, each in times.items()}


print(json.dumps(asyncio.run(main(int(sys.argv[1])))))
