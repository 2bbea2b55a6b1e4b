"""An agent that tries three fixes of a bug at once: it forks the sandbox three times, and keeps the fix that passes the tests.

    python3 three_fixes.py DIRECTORY "python3 -m unittest"    # without arguments: a small broken program
"""

import asyncio
import json
import os
import sys
import tempfile
from pathlib import Path

from openai import AsyncOpenAI
from paddock import AsyncSandbox

MODEL = os.environ.get("OPENAI_MODEL", "gpt-4o-mini")
BROKEN = {
    "median.py": "def median(numbers):\n    middle = len(numbers) // 2\n    return numbers[middle]\n",
    "test_median.py": "import unittest\nfrom median import median\n\n\nclass Test(unittest.TestCase):\n    def test(self):\n"
                      "        self.assertEqual(median([3, 1, 2]), 2)\n        self.assertEqual(median([4, 1, 3, 2]), 2.5)\n",
}
PROPOSE = {
    "type": "function",
    "function": {"name": "propose", "description": "Propose three different fixes.", "parameters": {
        "type": "object", "required": ["fixes"], "properties": {"fixes": {"type": "array", "minItems": 3, "maxItems": 3, "items": {
            "type": "object", "required": ["idea", "path", "content"], "properties": {
                "idea": {"type": "string"}, "path": {"type": "string", "description": "The file to replace."},
                "content": {"type": "string", "description": "All of the file."}}}}}}},
}


async def proposals(client, sources, output):
    question = f"These files:\n{json.dumps(sources)}\nfail their tests:\n{output}\nPropose three different fixes of the program, not of the tests."
    answer = await client.chat.completions.create(
        model=MODEL, messages=[{"role": "user", "content": question}], tools=[PROPOSE], tool_choice={"type": "function", "function": {"name": "propose"}})
    return json.loads(answer.choices[0].message.tool_calls[0].function.arguments)["fixes"]


async def attempt(fork, fix, test):
    """Applies a fix in a fork and runs the tests there."""
    async with fork:
        await fork.files.write(fix["path"], fix["content"])
        return await fork.run(test, timeout=300)


async def main(directory, test):
    async with AsyncOpenAI() as client, await AsyncSandbox.create(ttl_seconds=3600) as sandbox:
        await sandbox.files.upload(directory, "/workspace")
        before = await sandbox.run(test, timeout=300)
        if before.ok:
            print("The tests pass already.")
            return 0
        sources = {file.path or file.name: await sandbox.files.read_text(file.path or file.name) for file in (await sandbox.files.find("*.py")).entries}
        fixes = await proposals(client, sources, before.stdout + before.stderr)
        forks = await sandbox.fork(len(fixes))
        results = await asyncio.gather(*(attempt(fork, fix, test) for fork, fix in zip(forks, fixes)))
        for fix, result in zip(fixes, results):
            print(f"{'passes' if result.ok else 'fails '}  {fix['idea']}")
        passing = [fix for fix, result in zip(fixes, results) if result.ok]
        if not passing:
            print("None of them works.")
            return 1
        print(f"\n--- {passing[0]['path']}\n{passing[0]['content']}")
        return 0


if __name__ == "__main__":
    if len(sys.argv) > 1:
        sys.exit(asyncio.run(main(sys.argv[1], " ".join(sys.argv[2:]) or "python3 -m unittest")))
    with tempfile.TemporaryDirectory() as place:
        for name, content in BROKEN.items():
            Path(place, name).write_text(content)
        sys.exit(asyncio.run(main(place, "python3 -m unittest")))
