"""The programs of examples/python: offline, with a model that follows a script; with a real model where there is a key."""

import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from conftest import ROOT, SDK
from model import Model, results_of

EXAMPLES = ROOT / "examples" / "python"
PRIMES = "print([n for n in range(2, 72) if all(n % d for d in range(2, n))])"
MEDIAN = "def median(numbers):\n    numbers = sorted(numbers)\n    middle = len(numbers) // 2\n    return numbers[middle]{}\n"
HALF = " if len(numbers) % 2 else (numbers[middle - 1] + numbers[middle]) / 2"


def sandbox_id(request):
    """The id of the sandbox that an earlier call made, as its result has it."""
    return re.search(r'"id":\s*"([a-z0-9]{20})"', "".join(results_of(request)))[1]


# name: (arguments, standard input, script of the model, what it prints at the end)
RUNS = {
    "coding_agent": ([], "", [("write_file", {"path": "primes.py", "content": PRIMES + "\nprint(1/0)"}), ("run_command", {"command": "python3 primes.py"}),
                              ("edit_file", {"path": "primes.py", "old": "\nprint(1/0)", "new": "\n"}), ("run_command", {"command": "python3 primes.py"}),
                              "It prints prime numbers."], ["It prints prime numbers.", "--- primes.py", PRIMES]),
    "data_analyst": (["sales.csv", "Which month was best?"], "",
                     [("run_code", {"code": "import pandas as pd\nd = pd.read_csv('data.csv')\nd.loc[d.sales.idxmax(), 'month']"}),
                      ("run_code", {"code": "import matplotlib.pyplot as p\np.plot(d.sales)\np.title('Sales')\np.show()"}), "March was best."],
                     ["saved chart-1.png", "March was best."]),
    "package_tester": (["WHEEL"], "", [("run_command", {"command": "pip install -q --no-index --no-deps /workspace/*.whl && echo installed"}),
                                       ("run_command", {"command": "pip list 2>/dev/null | grep paddock; curl -sm 3 http://example.org"}), "It works."],
                       ["It works.", "which was denied"]),
    "teaching_repl": ([], "x = 3\nfor i in range(2):\n    print(i + x)\n\nx + nothing\nx\n",
                      [("run_code", {"code": "sorted(k for k in globals() if k == 'x')"}), "The name is not known yet."],
                      ["3\n4\n", "NameError: name 'nothing' is not defined\nTeacher: The name is not known yet.\n3\n"]),
    "three_fixes": ([], "", [("propose", {"fixes": [{"idea": "sort", "path": "median.py", "content": MEDIAN.format("")},
                                                    {"idea": "sort and halve", "path": "median.py", "content": MEDIAN.format(HALF)},
                                                    {"idea": "nothing", "path": "median.py", "content": "def median(n): return n\n"}]})],
                    ["fails   sort", "passes  sort and halve", "fails   nothing", "--- median.py"]),
    "mcp_host": (["Which kernel?"], "", [("sandbox_create", {}), lambda request: ("exec", {"sandbox": sandbox_id(request), "command": "uname -s"}),
                                         lambda request: ("sandbox_delete", {"sandbox": sandbox_id(request)}), "It is Linux."],
                 ["-> sandbox_create", "-> exec", "-> sandbox_delete", "It is Linux."]),
    "sandkasten_quickstart": ([], "", [], ["Linux\n[0, 1, 4, 9, 16]\nprint([n * n for n in range(5)])\n"]),
    "sandkasten_agent": ([], "", [("write_file", {"path": "fib.py", "content": "a, b = 0, 1\nfor _ in range(20):\n    print(a)\n    a, b = b, a + b\n"}),
                                  ("exec", {"cmd": "python3 fib.py"}), ("read_file", {"path": "fib.py"}), "There are 20 numbers."],
                         ["There are 20 numbers."]),
    "agentbox_quickstart": ([], "", [], ["0 42\n0 Requirement already satisfied: pip", "True"]),
}
# What the tools must have told the model, in the last request.
TOLD = {"coding_agent": ["wrote", "ZeroDivisionError", "replaced", "[2, 3, 5"], "data_analyst": ["March", "[image]"], "package_tester": ["installed", "paddock"],
        "teaching_repl": ["['x']"], "mcp_host": ["running", "Linux"], "sandkasten_agent": ["wrote fib.py", "4181", "a, b = b"]}


def run(name, daemon, place, env, wheel=None):
    arguments, entered, *_ = RUNS[name]
    (place / "sales.csv").write_text("month,sales\nJanuary,3\nFebruary,4\nMarch,9\n")
    packages = next(path for path in sys.path if path.endswith("sdk-python/packages"))
    kept = {key: value for key, value in os.environ.items() if not key.startswith("PADDOCK_")}
    return subprocess.run([sys.executable, EXAMPLES / f"{name}.py", *(str(wheel) if each == "WHEEL" else each for each in arguments)], cwd=place,
                          input=entered, capture_output=True, text=True, timeout=140,
                          env={**kept, **env, "PYTHONPATH": f"{SDK / 'src'}:{packages}", "PADDOCK_URL": daemon.url, "PADDOCK_API_KEY": daemon.key})


@pytest.fixture(scope="module")
def outcomes(request, daemon, tmp_path_factory):
    """All of them, two at a time: {name: (outcome, what the model saw, where it ran)}."""
    wheel = tmp_path_factory.mktemp("wheel")
    made = subprocess.run([SDK / "build", wheel], capture_output=True, text=True, check=True).stdout.strip()

    def one(name):
        place = tmp_path_factory.mktemp(name)
        with Model(*RUNS[name][2]) as model:
            return run(name, daemon, place, model.environment(), made), model.seen, place

    places = [item.callspec.params["name"] for item in request.session.items if item.originalname == "test_example"]
    with ThreadPoolExecutor(2) as pool:
        begun = {name: pool.submit(one, name) for name in dict.fromkeys(places)}
        yield lambda name: begun[name].result()


@pytest.mark.parametrize("name", RUNS)
def test_example(outcomes, name):
    done, seen, place = outcomes(name)
    assert done.returncode == 0, done.stderr[-3000:]
    for words in RUNS[name][3]:
        assert words in done.stdout, done.stdout
    told = results_of(seen[-1]) if seen else []
    for words, result in zip(TOLD.get(name, ()), told):
        assert words in result, told
    assert len(told) >= len(TOLD.get(name, ()))
    if name == "data_analyst":
        assert (place / "chart-1.png").read_bytes().startswith(b"\x89PNG")


def test_every_example_is_run_and_listed():
    programs = {path.stem for path in EXAMPLES.glob("*.py")}
    assert programs == set(RUNS)
    listed = set(re.findall(r"^\| `(\w+)\.py`", (EXAMPLES / "README.md").read_text(), re.M))
    assert listed == programs


# The calls of the others' public quick starts, in their order. Ours make these and no other: only the import and texts differ.
QUICK_STARTS = {
    "python/sandkasten_quickstart.py": "SandboxClient create_session exec write exec read destroy close",
    "python/sandkasten_agent.py": "exec write read Agent SandboxClient create_session run destroy close",
    "python/agentbox_quickstart.py": "insecure_channel SandboxServiceStub CreateSession Exec WriteFile PipInstall DestroySession",
    "typescript/sandkasten-quickstart.ts": "SandboxClient createSession exec destroy",
    "typescript/agentbox-quickstart.ts": "Sandbox create exec writeFile readFile runPython pipInstall destroy",
}


@pytest.mark.parametrize("program", QUICK_STARTS)
def test_a_quick_start_makes_the_same_calls(program):
    text = (EXAMPLES.parent / program).read_text()
    ours = re.findall(r"\b(?:client|session|stub|sandbox|grpc|sandbox_pb2_grpc|Runner)\.(\w+)\(|(?:= |new |\b)(SandboxClient|Sandbox|Agent)\(", text)
    assert [one or other for one, other in ours] == QUICK_STARTS[program].split()


def real(name):
    """Whether a program can run with a real model, which costs money: only where that is wanted."""
    key = "ANTHROPIC_API_KEY" if name in ("data_analyst", "mcp_host") else "OPENAI_API_KEY"
    return os.environ.get("PADDOCK_TEST_REAL_MODELS") == "1" and os.environ.get(key) and name not in ("agentbox_quickstart", "sandkasten_quickstart", "package_tester")


def test_examples_with_real_models(daemon, tmp_path):
    for name in filter(real, RUNS):
        done = run(name, daemon, tmp_path, {})
        assert done.returncode == 0 and done.stdout.strip(), done.stderr[-3000:]
