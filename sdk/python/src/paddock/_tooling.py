"""What the tools for agents are called, what they take, and the frameworks' own forms of them."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Awaitable, Callable, Dict, List, Mapping, Optional, Sequence

OUTPUT_MAX = 30_000  # characters; what a model reads costs its user money


@dataclass
class ToolResult:
    """What a tool says. Images are PNGs, such as charts."""

    text: str
    images: List[bytes] = field(default_factory=list)
    error: bool = False


def schema(required: Sequence[str], **properties: Mapping[str, Any]) -> Dict[str, Any]:
    return {"type": "object", "properties": dict(properties), "required": list(required), "additionalProperties": False}


def text(description: str) -> Dict[str, Any]:
    return {"type": "string", "description": description}


PATH = text("An absolute path, or one relative to /workspace.")

#: name: (description, JSON schema of the arguments)
TOOLS: Dict[str, Any] = {
    "run_command": (
        "Run a command in a bash shell in the sandbox, a Linux system of your own. Directory, variables and functions last from one command to the next. "
        "Returns the exit code, stdout and stderr.",
        schema(["command"], command=text("The command line."), timeout_seconds={"type": "number", "description": "Kill the command after this time. The default is 120."}),
    ),
    "run_code": (
        "Run code in an interpreter that keeps its variables. Returns what it prints, the value of the last expression, and charts as images.",
        schema(["code"], code=text("The code."), language={"type": "string", "enum": ["python", "javascript", "bash"], "description": "The default is python."}),
    ),
    "read_file": ("Read a text file of the sandbox.", schema(["path"], path=PATH)),
    "write_file": ("Write a text file in the sandbox. Missing directories are created.", schema(["path", "content"], path=PATH, content=text("All of the file."))),
    "edit_file": (
        "Replace text in a file of the sandbox, everywhere it occurs.",
        schema(["path", "old", "new"], path=PATH, old=text("The text as it is, with its white space."), new=text("The text that takes its place.")),
    ),
    "list_files": ("List a directory of the sandbox.", schema([], path=PATH)),
    "search_files": (
        "Find lines in the sandbox's files by an extended regular expression.",
        schema(["pattern"], pattern=text("The expression."), path=PATH, include=text("Names of the files to search, such as *.py.")),
    ),
}


def bounded(output: str) -> str:
    """Long output without its middle: the beginning and the end say most."""
    if len(output) <= OUTPUT_MAX:
        return output
    half = OUTPUT_MAX // 2
    return f"{output[:half]}\n[… {len(output) - 2 * half} characters left out …]\n{output[-half:]}"


def arguments_of(given: Any) -> Dict[str, Any]:
    """Arguments as a model gives them: an object, or the text of one."""
    if isinstance(given, str):
        given = json.loads(given or "{}")
    if not isinstance(given, Mapping):
        raise ValueError("the arguments are not an object")
    return dict(given)


def problem(name: str, arguments: Mapping[str, Any]) -> Optional[str]:
    """Why a call cannot be made, in words for the model."""
    if name not in TOOLS:
        return f"there is no tool {name}; there are {', '.join(TOOLS)}"
    properties = TOOLS[name][1]["properties"]
    for key in arguments:
        if key not in properties:
            return f"{name} takes no argument {key}"
    for key in TOOLS[name][1]["required"]:
        if key not in arguments:
            return f"{name} needs the argument {key}"
    for key, value in arguments.items():
        wanted = properties[key]["type"]
        if not isinstance(value, str if wanted == "string" else (int, float)) or isinstance(value, bool):
            return f"the argument {key} of {name} must be a {wanted}"
        if "enum" in properties[key] and value not in properties[key]["enum"]:
            return f"the argument {key} of {name} must be one of {', '.join(properties[key]['enum'])}"
    return None


# ---- definitions

Call = Callable[[str, Dict[str, Any]], str]
AsyncCall = Callable[[str, Dict[str, Any]], Awaitable[str]]


def for_chat(names: Sequence[str]) -> List[Dict[str, Any]]:
    return [{"type": "function", "function": {"name": name, "description": TOOLS[name][0], "parameters": TOOLS[name][1]}} for name in names]


def for_responses(names: Sequence[str]) -> List[Dict[str, Any]]:
    return [{"type": "function", "name": name, "description": TOOLS[name][0], "parameters": TOOLS[name][1], "strict": False} for name in names]


def for_anthropic(names: Sequence[str]) -> List[Dict[str, Any]]:
    return [{"name": name, "description": TOOLS[name][0], "input_schema": TOOLS[name][1]} for name in names]


def for_openai_agents(names: Sequence[str], call: AsyncCall) -> List[Any]:
    from agents import FunctionTool, RunContextWrapper

    def make(name: str) -> Any:
        async def invoke(context: RunContextWrapper[Any], arguments: str) -> str:
            return await call(name, arguments_of(arguments))

        return FunctionTool(name=name, description=TOOLS[name][0], params_json_schema=dict(TOOLS[name][1]), on_invoke_tool=invoke, strict_json_schema=False)

    return [make(name) for name in names]


def for_langchain(names: Sequence[str], call: Optional[Call], async_call: AsyncCall) -> List[Any]:
    from langchain_core.tools import StructuredTool

    def make(name: str) -> Any:
        def run(**arguments: Any) -> str:
            assert call is not None
            return call(name, arguments)

        async def run_async(**arguments: Any) -> str:
            return await async_call(name, arguments)

        return StructuredTool(name=name, description=TOOLS[name][0], args_schema=TOOLS[name][1], func=run if call else None, coroutine=run_async)

    return [make(name) for name in names]


def for_pydantic_ai(names: Sequence[str], call: AsyncCall) -> List[Any]:
    from pydantic_ai import Tool

    def make(name: str) -> Any:
        async def run(**arguments: Any) -> str:
            return await call(name, arguments)

        return Tool.from_schema(run, name=name, description=TOOLS[name][0], json_schema=TOOLS[name][1])

    return [make(name) for name in names]
