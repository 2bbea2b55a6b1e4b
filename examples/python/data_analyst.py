"""A data analyst: it answers a question about a CSV file with Python in a sandbox, and its charts are saved here.

    python3 data_analyst.py sales.csv "Which month was the best, and why?"
"""

import base64
import os
import sys
from pathlib import Path

from anthropic import Anthropic
from paddock import Sandbox
from paddock.tools import SandboxTools

MODEL = os.environ.get("ANTHROPIC_MODEL", "claude-sonnet-4-5")


def main(file, question):
    client = Anthropic()
    with Sandbox.create(ttl_seconds=3600) as sandbox:
        sandbox.files.upload(file, "data.csv")
        tools = SandboxTools(sandbox, only=["run_code"])
        messages = [{"role": "user", "content": f"/workspace/data.csv is the data; pandas and matplotlib are there. Draw charts where they help. {question}"}]
        charts = 0
        for _ in range(30):
            message = client.messages.create(model=MODEL, max_tokens=4096, messages=messages, tools=tools.anthropic())
            results = tools.anthropic_results(message)
            if not results:
                break
            for result in results:
                for block in result["content"]:
                    if block["type"] == "image":
                        charts += 1
                        Path(f"chart-{charts}.png").write_bytes(base64.b64decode(block["source"]["data"]))
                        print(f"saved chart-{charts}.png")
            messages += [{"role": "assistant", "content": message.content}, {"role": "user", "content": results}]
        print("".join(block.text for block in message.content if block.type == "text"))


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main(sys.argv[1], " ".join(sys.argv[2:]) or "What does it show?")
