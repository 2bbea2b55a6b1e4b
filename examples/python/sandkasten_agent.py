"""The agent of Sandkasten's quick start, for the OpenAI Agents SDK: the same calls, and only the import of the client is Paddock's.

    python3 sandkasten_agent.py
"""

import asyncio
import os

from agents import Agent, Runner, function_tool
from paddock.compat.sandkasten import SandboxClient, Session

session: Session


@function_tool
async def exec(cmd: str, timeout_ms: int = 30000) -> str:
    """Run a command in the sandbox's shell, which keeps its state."""
    result = await session.exec(cmd, timeout_ms=timeout_ms)
    return f"exit_code={result.exit_code}\ncwd={result.cwd}\n---\n{result.output}"


@function_tool
async def write_file(path: str, content: str) -> str:
    """Write a file below /workspace."""
    await session.write(path, content)
    return f"wrote {path}"


@function_tool
async def read_file(path: str) -> str:
    """Read a file below /workspace."""
    return (await session.read(path)).decode()


async def main():
    global session
    agent = Agent(name="coding-assistant", instructions="You write programs in a Linux sandbox and test them.",
                  model=os.environ.get("OPENAI_MODEL", "gpt-4o-mini"), tools=[exec, write_file, read_file])
    client = SandboxClient(base_url=os.environ.get("PADDOCK_URL"), api_key=os.environ.get("PADDOCK_API_KEY"))
    session = await client.create_session(image="sandbox-runtime:python")
    try:
        result = await Runner.run(agent, "Write fib.py, which prints the first 20 Fibonacci numbers, and run it.")
        print(result.final_output)
    finally:
        await session.destroy()
        await client.close()


if __name__ == "__main__":
    asyncio.run(main())
