"""A sandbox as tools, in the hands of the real clients and frameworks, with a model that follows a script."""

import anyio
import pytest
from model import Model

import paddock
from paddock.tools import TOOLS, AsyncSandboxTools, SandboxTools

TASK = "write 42 into a file and read it"
SCRIPT = (("write_file", {"path": "n.txt", "content": "42\n"}),
          [("run_command", {"command": "cd /tmp; cat /workspace/n.txt; exit 3"}), ("read_file", {"path": "n.txt"})],
          ("run_command", {"command": "pwd"}), "it is 42")


@pytest.fixture(scope="module")
def client(daemon):
    with paddock.Paddock(daemon.url, daemon.key) as it:
        yield it


@pytest.fixture
def sandbox(client):
    with client.sandboxes.create() as it:
        yield it


@pytest.fixture
def model(monkeypatch):
    with Model(*SCRIPT) as it:
        for name, value in it.environment().items():
            monkeypatch.setenv(name, value)
        yield it


def check(model, answer):
    """The model was offered the tools, and got what they said."""
    assert answer == "it is 42"
    wrote, ran, read, where = model.results()
    assert wrote == "wrote 3 bytes to n.txt"
    assert ran.startswith("exit code 3") and "stdout:\n42" in ran
    assert read == "42\n" and where.endswith("stdout:\n/tmp"), "the shell keeps its directory"
    names = {(tool.get("function") or tool)["name"] for tool in model.seen[0]["tools"]}
    assert names == set(TOOLS)
    for tool in model.seen[0]["tools"]:
        shape = tool.get("function") or tool
        parameters = shape.get("parameters") or shape["input_schema"]
        assert shape["description"] and set(parameters["properties"]) == set(TOOLS[shape["name"]][1]["properties"])


# ---- the providers' own clients


def test_openai_chat(sandbox, model):
    import openai

    tools, messages = SandboxTools(sandbox), [{"role": "user", "content": TASK}]
    while True:
        said = openai.OpenAI().chat.completions.create(model="gpt-x", messages=messages, tools=tools.openai()).choices[0].message
        results = tools.openai_results(said)
        if not results:
            break
        messages += [said, *results]
    check(model, said.content)


def test_openai_responses(sandbox, model):
    import openai

    tools, items = SandboxTools(sandbox), [{"role": "user", "content": TASK}]
    while True:
        response = openai.OpenAI().responses.create(model="gpt-x", input=items, tools=tools.openai_responses())
        outputs = tools.openai_outputs(response)
        if not outputs:
            break
        items += [*response.output, *outputs]
    check(model, response.output_text)


def test_anthropic(sandbox, model):
    import anthropic

    tools, messages = SandboxTools(sandbox), [{"role": "user", "content": TASK}]
    while True:
        said = anthropic.Anthropic().messages.create(model="claude-x", max_tokens=100, messages=messages, tools=tools.anthropic())
        results = tools.anthropic_results(said)
        if not results:
            break
        messages += [{"role": "assistant", "content": said.content}, {"role": "user", "content": results}]
    check(model, said.content[0].text)


def asynchronously(daemon, body):
    async def main():
        async with paddock.AsyncPaddock(daemon.url, daemon.key) as client:
            async with await client.sandboxes.create() as sandbox:
                return await body(AsyncSandboxTools(sandbox))

    return anyio.run(main)


def test_the_clients_with_await(daemon, model):
    import anthropic
    import openai

    async def by_chat(tools):
        messages = [{"role": "user", "content": TASK}]
        while True:
            said = (await openai.AsyncOpenAI().chat.completions.create(model="gpt-x", messages=messages, tools=tools.openai())).choices[0].message
            results = await tools.openai_results(said)
            if not results:
                return said.content
            messages += [said, *results]

    async def by_messages(tools):
        messages = [{"role": "user", "content": TASK}]
        while True:
            said = await anthropic.AsyncAnthropic().messages.create(model="claude-x", max_tokens=100, messages=messages, tools=tools.anthropic())
            results = await tools.anthropic_results(said)
            if not results:
                return said.content[0].text
            messages += [{"role": "assistant", "content": said.content}, {"role": "user", "content": results}]

    async def by_responses(tools):
        items = [{"role": "user", "content": TASK}]
        while True:
            response = await openai.AsyncOpenAI().responses.create(model="gpt-x", input=items, tools=tools.openai_responses())
            outputs = await tools.openai_outputs(response)
            if not outputs:
                return response.output_text
            items += [*response.output, *outputs]

    for body in (by_chat, by_messages, by_responses):
        model.steps, model.seen = list(SCRIPT), []
        check(model, asynchronously(daemon, body))


# ---- frameworks


def test_openai_agents(daemon, sandbox, model):
    from agents import Agent, OpenAIResponsesModel, Runner
    from openai import AsyncOpenAI

    def agent(tools):  # its own client: the framework's is of one event loop
        return Agent(name="a", model=OpenAIResponsesModel("gpt-x", AsyncOpenAI()), tools=tools)

    check(model, Runner.run_sync(agent(SandboxTools(sandbox).openai_agents()), TASK).final_output)

    async def body(tools):
        return (await Runner.run(agent(tools.openai_agents()), TASK)).final_output

    model.steps, model.seen = list(SCRIPT), []
    check(model, asynchronously(daemon, body))


def test_langchain(daemon, sandbox, model):
    from langchain.agents import create_agent
    from langchain_anthropic import ChatAnthropic
    from langchain_openai import ChatOpenAI

    asked = {"messages": [{"role": "user", "content": TASK}]}
    agent = create_agent(ChatOpenAI(model="gpt-x"), tools=SandboxTools(sandbox).langchain())
    check(model, agent.invoke(asked)["messages"][-1].content)

    async def body(tools):
        agent = create_agent(ChatAnthropic(model="claude-x"), tools=tools.langchain())
        return (await agent.ainvoke(asked))["messages"][-1].content

    model.steps, model.seen = list(SCRIPT), []
    check(model, asynchronously(daemon, body))


def test_pydantic_ai(daemon, sandbox, model):
    from pydantic_ai import Agent

    check(model, Agent("openai-chat:gpt-x", tools=SandboxTools(sandbox).pydantic_ai()).run_sync(TASK).output)

    async def body(tools):
        return (await Agent("anthropic:claude-x", tools=tools.pydantic_ai()).run(TASK)).output

    model.steps, model.seen = list(SCRIPT), []
    check(model, asynchronously(daemon, body))


# ---- the tools themselves


def test_each_tool(sandbox):
    tools = SandboxTools(sandbox)
    assert tools.call("write_file", {"path": "src/a.py", "content": "x = 1\ny = 2\n"}) == "wrote 12 bytes to src/a.py"
    assert "replaced 1" in tools.call("edit_file", '{"path": "src/a.py", "old": "x = 1", "new": "x = 7"}')
    assert tools.call("read_file", {"path": "/workspace/src/a.py"}) == "x = 7\ny = 2\n"
    assert tools.call("list_files", {}) == "src/" and tools.call("list_files", {"path": "src"}) == "a.py  12"
    assert tools.call("search_files", {"pattern": "^y", "path": "src", "include": "*.py"}) == "a.py:2: y = 2"
    assert tools.call("search_files", {"pattern": "nothing-has-this"}) == "(no match)"
    assert tools.call("run_code", {"code": "a = 20\nprint('hi')\na + 1"}) == "hi\n21"
    assert tools.call("run_code", {"code": "a * 2"}) == "40" and tools.call("run_code", {"code": "echo $((2+3))", "language": "bash"}) == "5"
    failed = tools.run("run_code", {"code": "1/0"})
    assert failed.error and "ZeroDivisionError" in failed.text
    chart = tools.run("run_code", {"code": "import matplotlib.pyplot as p\np.plot([1, 2])\np.title('Rise')\np.show()"})
    assert chart.images[0].startswith(b"\x89PNG") and "[chart: Rise]" in chart.text and not chart.error
    blocks = tools.anthropic_results({"content": [{"type": "tool_use", "id": "1", "name": "run_code", "input": {"code": "p.plot([2, 1])\np.show()"}}]})
    assert [block["type"] for block in blocks[0]["content"]] == ["text", "image"]
    late = tools.run("run_command", {"command": "sleep 600", "timeout_seconds": 0.3})
    assert late.error and "killed after 0.3 seconds" in late.text
    assert "err" in tools.call("run_command", {"command": "echo err >&2"})
    long = tools.call("run_command", {"command": "seq 1 20000"})
    assert len(long) < 31_000 and "left out" in long and long.rstrip().endswith("20000")


def test_what_goes_wrong_is_told_to_the_model(sandbox):
    tools = SandboxTools(sandbox, only=["read_file", "write_file", "edit_file", "run_command"])
    for name, arguments, words in (
            ("read_file", {"path": "missing"}, "No such file"), ("read_file", {}, "needs the argument path"), ("read_file", {"path": 1}, "must be a string"),
            ("read_file", "not JSON", "error:"), ("read_file", "[1]", "not an object"), ("no_such", {}, "there is no tool"), ("run_code", {"code": "1"}, "there is no tool"),
            ("read_file", {"path": "a", "more": 1}, "takes no argument more"), ("edit_file", {"path": "missing", "old": "a", "new": "b"}, "error:"),
            ("run_command", {"command": "x", "timeout_seconds": True}, "must be a number")):
        result = tools.run(name, arguments)
        assert result.error and words in result.text, (name, arguments, result)
    assert tools.run("write_file", {"path": "bin", "content": "x"}).error is False
    sandbox.files.write("bin", b"\xff\xfe")
    assert "not text" in tools.call("read_file", {"path": "bin"})
    assert [tool["name"] for tool in tools.anthropic()] == tools.names
    with pytest.raises(ValueError, match="there is no tool"):
        SandboxTools(sandbox, only=["nonsense"])
    assert tools.run("run_code", {"code": "1", "language": "cobol"}).error and SandboxTools(sandbox).run("run_code", {"code": "1", "language": "cobol"}).error
