"""Sandkasten's quick start: the same calls in the same order, and only the import is Paddock's.

    python3 sandkasten_quickstart.py
"""

import asyncio
import os

from paddock.compat.sandkasten import SandboxClient


async def main():
    client = SandboxClient(base_url=os.environ.get("PADDOCK_URL"), api_key=os.environ.get("PADDOCK_API_KEY"))
    session = await client.create_session(image="sandbox-runtime:python")
    try:
        result = await session.exec("uname -s")
        print(result.output, end="")

        await session.write("squares.py", "print([n * n for n in range(5)])\n")
        result = await session.exec("python3 squares.py")
        print(result.output, end="")

        source = await session.read("squares.py")
        print(source.decode(), end="")
    finally:
        await session.destroy()
        await client.close()


if __name__ == "__main__":
    asyncio.run(main())
