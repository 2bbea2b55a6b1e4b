"""A package tester: it installs a Python package in a fresh sandbox, reads what it offers, and tries it.

    python3 package_tester.py requests        # from the package index that the server's machine uses
    python3 package_tester.py ./my.whl        # from a file; the sandbox then has no network access at all
"""

import os
import sys
from pathlib import Path

from langchain.agents import create_agent
from langchain_openai import ChatOpenAI
from paddock import Sandbox
from paddock.tools import SandboxTools

MODEL = os.environ.get("OPENAI_MODEL", "gpt-4o-mini")
INSTRUCTIONS = ("You test Python packages in a Linux sandbox. Install the package, import it, try three of its functions on small inputs, "
                "and report in five lines what works and what does not.")


def main(package):
    local = Path(package).is_file()
    with Sandbox.create(egress={"allow": [] if local else ["pypi"]}, ttl_seconds=3600) as sandbox:
        if local:
            sandbox.files.upload(package, Path(package).name)
        sandbox.shell("export PIP_USER=1 PIP_BREAK_SYSTEM_PACKAGES=1 PATH=$PATH:$HOME/.local/bin", check=True)  # it is thrown away anyway
        what = f"--no-index --no-deps /workspace/{Path(package).name}" if local else package
        agent = create_agent(ChatOpenAI(model=MODEL), tools=SandboxTools(sandbox).langchain(), system_prompt=INSTRUCTIONS)
        state = agent.invoke({"messages": [{"role": "user", "content": f"Test the package that `pip install {what}` installs."}]})
        print(state["messages"][-1].content)
        for verdict in sandbox.egress.log(verdict="deny").verdicts:
            print(f"the package tried to reach {verdict.host or verdict.address}:{verdict.port}, which was denied")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
