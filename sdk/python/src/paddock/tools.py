"""A sandbox as tools for agents.

    tools = SandboxTools(sandbox)
    answer = openai.OpenAI().chat.completions.create(model=…, messages=messages, tools=tools.openai())
    messages += [answer.choices[0].message, *tools.openai_results(answer.choices[0].message)]

There are forms for OpenAI, Anthropic, the OpenAI Agents SDK, LangChain and Pydantic AI. A framework is imported when its form
is asked for. What goes wrong in a tool is told to the model and not raised.
"""

from ._async.tools import AsyncSandboxTools
from ._sync.tools import SandboxTools
from ._tooling import TOOLS, ToolResult

__all__ = ["TOOLS", "AsyncSandboxTools", "SandboxTools", "ToolResult"]
