"""Agents: the tools of the SDK in every framework, and the examples, against a real daemon and a model that follows a script."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import paddock
from test_sdk import PLATFORMS, document, environment  # noqa: F401 - fixtures

HERE = Path(__file__).resolve().parent
EXAMPLES = paddock.ROOT / "examples/typescript"
FRAMEWORKS = ["tools", *re.findall(r"^  '?([\w: -]+?)'?: async \(sb, model\)", (HERE / "frameworks.mjs").read_text(), re.M), "a sandbox that is gone"]
SIEVE = """def primes(n):
    sieve = [True] * n
    for i in range(2, n):
        for k in range(i * i, n, i):
            sieve[k] = False
    return [i for i in range(2, n) if sieve[i]]
print(primes(30))
"""


@pytest.fixture(scope="module")
def place(home):
    for name in ("model.mjs", "frameworks.mjs", "example.mjs"):
        shutil.copy(HERE / name, home)
    shutil.rmtree(home / "examples", ignore_errors=True)
    shutil.copytree(EXAMPLES, home / "examples")
    return home


@pytest.fixture(scope="module")
def frameworks(place, environment):  # noqa: F811
    done = subprocess.run(["node", "frameworks.mjs"], cwd=place, env=environment, capture_output=True, text=True, timeout=140)
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return {line["scenario"]: line for line in lines}, done.stderr[-2000:]


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_framework(frameworks, name):
    lines, told = frameworks
    assert name in lines, f"it did not run: {told}"
    assert lines[name]["ok"], lines[name]["error"]


def test_frameworks_are_imported_only_when_used(place, environment):  # noqa: F811
    """Without any of them, the tools without a framework work, and the others say what to install."""
    alone = place / "alone"
    shutil.rmtree(alone, ignore_errors=True)
    alone.mkdir()
    shutil.copytree(place / "node_modules/@paddock", alone / "package/node_modules/@paddock")
    (alone / "package/try.mjs").write_text("""
import { Sandbox } from '@paddock/sandbox';
import { agentsTools, anthropicTools, langchainTools, vercelTools } from '@paddock/sandbox/tools';
const sb = await Sandbox.create();
console.log(anthropicTools(sb).tools.length);
for (const make of [agentsTools, langchainTools, vercelTools]) await make(sb).catch((e) => console.log(e.message));
await sb.delete();
""")
    # Outside of `home`, whose node_modules Node would find on its way up.
    apart = Path(shutil.copytree(alone / "package", Path("/var/tmp") / f"pdk-alone-{place.stat().st_ino}", dirs_exist_ok=True))
    try:
        done = subprocess.run(["node", "try.mjs"], cwd=apart, env=environment, capture_output=True, text=True, timeout=60)
    finally:
        shutil.rmtree(apart)
    assert done.stdout.splitlines() == ["7", "@openai/agents is not installed: npm install @openai/agents",
                                        "@langchain/core/tools is not installed: npm install @langchain/core",
                                        "ai is not installed: npm install ai"], done.stderr


def run_example(place, environment, name, script=(), **more):  # noqa: F811
    (place / f"{name}.json").write_text(json.dumps(list(script)))
    bun = str(place / PLATFORMS["bun"][0])
    done = subprocess.run(["node", "example.mjs", f"{name}.json", bun, f"examples/{name}.ts"], cwd=place, env={**environment, **more},
                          capture_output=True, text=True, timeout=90)
    *output, last = done.stdout.splitlines()
    told = json.loads(last)
    assert told["code"] == 0, f"{done.stdout}\n{done.stderr}"
    return "\n".join(output), told


def test_coding_agent(place, environment):  # noqa: F811
    output, told = run_example(place, environment, "coding-agent", [
        {"tool": "write_file", "args": {"path": "/workspace/sieve.py", "content": SIEVE.replace("in range(2, n):", "in range(2, m):")}},
        {"tool": "run_command", "args": {"command": "cd /workspace && python3 sieve.py"}},
        {"tool": "write_file", "args": {"path": "/workspace/sieve.py", "content": SIEVE}},
        {"tool": "run_command", "args": {"command": "python3 sieve.py"}},
        {"text": "The sieve works."},
    ])
    assert "NameError" in told["seen"][1]
    assert told["seen"][3] == "[2, 3, 5, 7, 11, 13, 17, 19, 23, 29]\n[exit code 0]"
    assert output.splitlines()[-1] == "The sieve works."
    assert "> run_command" in output


def test_three_fixes(place, environment):  # noqa: F811
    right = "def median(numbers):\n    n = sorted(numbers)\n    h = len(n) // 2\n    return n[h] if len(n) % 2 else (n[h - 1] + n[h]) / 2\n"
    wrong = "def median(numbers):\n    numbers.sort()\n    return numbers[len(numbers) // 2]\n"
    output, told = run_example(place, environment, "three-fixes", [{"tool": "propose", "args": {"fixes": [wrong, right, "syntax error"]}}])
    assert told["asked"] == 1
    assert output.splitlines()[:5] == ["before: exit code 1", "fix 1: exit code 1: AssertionError: even", "fix 2: exit code 0: passed",
                                       "fix 3: exit code 1: SyntaxError: invalid syntax", "fix 2 works:"]


def test_sandkasten_quickstart(place, environment, daemon):  # noqa: F811
    output, _ = run_example(place, environment, "sandkasten-quickstart", SANDKASTEN_URL=daemon.url, SANDKASTEN_API_KEY=daemon.key)
    assert output == "Linux\n/workspace"


def test_agentbox_quickstart(place, environment, daemon):  # noqa: F811
    output, _ = run_example(place, environment, "agentbox-quickstart", AGENTBOX_URL=daemon.url)
    version, *rest = output.splitlines()
    assert version.startswith("Python 3.")
    assert rest == ["print('written')", "45", "0 true", "true"]


def test_the_examples_fit_the_types_of_the_frameworks(place):
    done = subprocess.run(["node", "node_modules/typescript/bin/tsc", "--noEmit", "--strict", "--skipLibCheck", "--target", "es2022", "--module", "nodenext",
                           "--lib", "es2022,esnext.disposable,dom", "--types", "node", *(f"examples/{file.name}" for file in EXAMPLES.glob("*.ts"))],
                          cwd=place, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout


def test_every_example_is_listed_and_run():
    listed = set(re.findall(r"`([\w-]+\.ts)`", (EXAMPLES / "README.md").read_text()))
    run = {f"{name}.ts" for name in re.findall(r'run_example\(place, environment, "([\w-]+)"', Path(__file__).read_text())}
    assert {file.name for file in EXAMPLES.glob("*.ts")} == listed == run
