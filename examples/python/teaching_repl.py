"""A Python prompt for learners: code runs in a sandbox and keeps its variables, and errors are explained.

    python3 teaching_repl.py
"""

import os
import sys

from paddock import Sandbox
from paddock.tools import SandboxTools
from pydantic_ai import Agent

MODEL = os.environ.get("OPENAI_MODEL", "gpt-4o-mini")
INSTRUCTIONS = ("You teach Python to beginners. Explain in at most three sentences why the code failed and how to think about it. "
                "You may try things in the learner's own interpreter with run_code. Do not hand out the corrected program.")


def cells(lines):
    """What was typed: single lines, or blocks that end with an empty line."""
    block = []
    for line in lines:
        if block or line.rstrip().endswith(":"):
            block.append(line)
            if line.strip():
                continue
        yield "".join(block) or line
        block = []
    if block:
        yield "".join(block)


def main():
    with Sandbox.create(idle_seconds=3600) as sandbox:
        teacher = Agent(f"openai-chat:{MODEL}", instructions=INSTRUCTIONS, tools=SandboxTools(sandbox, only=["run_code"]).pydantic_ai())
        print("Python, in a sandbox of your own. A block ends with an empty line; Ctrl-D ends the lesson.")
        for code in cells(sys.stdin):
            execution = sandbox.execute(code, timeout=30)
            print(execution.stdout, end="")
            print("".join(f"{result.text}\n" for result in execution.results if result.text), end="")
            if execution.error:
                print(f"{execution.error.name}: {execution.error.value}")
                print("Teacher:", teacher.run_sync(f"This code:\n{code}\nfailed with:\n{execution.error.traceback}").output)


if __name__ == "__main__":
    main()
