"""A coding agent: it writes a program in a sandbox, runs it, and corrects it until it works.

    python3 coding_agent.py "a program that prints the first 20 prime numbers"
"""

import os
import sys

from openai import OpenAI
from paddock import Sandbox
from paddock.tools import SandboxTools

MODEL = os.environ.get("OPENAI_MODEL", "gpt-4o-mini")
INSTRUCTIONS = "You are a programmer with a Linux sandbox. Write the program, run it, correct it until it works, then say in a sentence what it does."


def main(task):
    client = OpenAI()
    with Sandbox.create(ttl_seconds=3600) as sandbox:
        tools = SandboxTools(sandbox)
        messages = [{"role": "system", "content": INSTRUCTIONS}, {"role": "user", "content": task}]
        for _ in range(30):
            message = client.chat.completions.create(model=MODEL, messages=messages, tools=tools.openai()).choices[0].message
            if not message.tool_calls:
                break
            for call in message.tool_calls:
                print(f"-> {call.function.name} {call.function.arguments[:100]}")
            messages += [message, *tools.openai_results(message)]
        print(message.content)
        for file in sandbox.files.list():
            print(f"\n--- {file.name}\n{sandbox.files.read_text(file.name)}" if file.type == "file" else f"--- {file.name}/")


if __name__ == "__main__":
    main(" ".join(sys.argv[1:]) or "a program that prints the first 20 prime numbers")
