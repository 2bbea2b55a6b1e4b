# Made by sdk/python/generate from _async/tools.py. Edit that instead.
"""A sandbox as tools for agents; see ../tools.py."""

from __future__ import annotations

import base64
from typing import Any, Dict, List, Mapping, Optional, Sequence

from .. import _tooling
from .._compat import async_caller, plain_caller
from .._tooling import TOOLS, ToolResult, arguments_of, bounded, problem
from ..errors import ApiError
from .sandbox import Sandbox


def field(thing: Any, name: str) -> Any:
    """Of a client's object, or of a dictionary."""
    return thing.get(name) if isinstance(thing, Mapping) else getattr(thing, name, None)


class SandboxTools:
    """The tools of one sandbox; `only` names those to offer."""

    def __init__(self, sandbox: Sandbox, *, only: Optional[Sequence[str]] = None) -> None:
        self.sandbox = sandbox
        self.names = list(TOOLS if only is None else only)
        unknown = [name for name in self.names if name not in TOOLS]
        if unknown:
            raise ValueError(f"there is no tool {unknown[0]}; there are {', '.join(TOOLS)}")

    # -- running them

    def run(self, name: str, arguments: Any) -> ToolResult:
        """Runs a tool with its arguments, an object or the text of one. Errors are results, too."""
        try:
            given = arguments_of(arguments)
        except ValueError as error:
            return ToolResult(f"error: {error}", error=True)
        wrong = problem(name, given) if name in self.names else f"there is no tool {name}; there are {', '.join(self.names)}"
        if wrong:
            return ToolResult(f"error: {wrong}", error=True)
        try:
            return self._run(name, given)
        except ApiError as error:
            return ToolResult(f"error: {error.message}", error=True)
        except UnicodeDecodeError:
            return ToolResult("error: the file is not text", error=True)

    def call(self, name: str, arguments: Any) -> str:
        """The same, as text."""
        return (self.run(name, arguments)).text

    def _run(self, name: str, given: Dict[str, Any]) -> ToolResult:
        files = self.sandbox.files
        if name == "run_command":
            return self._command(given["command"], given.get("timeout_seconds", 120))
        if name == "run_code":
            return self._code(given["code"], given.get("language", "python"))
        if name == "read_file":
            return ToolResult(bounded(files.read_text(given["path"])))
        if name == "write_file":
            written = files.write(given["path"], given["content"])
            return ToolResult(f"wrote {written.size} bytes to {given['path']}")
        if name == "edit_file":
            answer = files.replace(given["path"], given["old"], given["new"])
            return ToolResult(f"replaced {answer.replaced} of it in {given['path']}")
        if name == "list_files":
            entries = sorted(files.list(given.get("path", "")), key=lambda each: each.name)
            return ToolResult(bounded("\n".join(f"{each.name}/" if each.type == "directory" else f"{each.name}  {each.size}" for each in entries) or "(empty)"))
        matches = files.grep(given["pattern"], given.get("path", ""), regex=True, include=given.get("include"), limit=200)
        lines = [f"{match.path}:{match.line}: {match.text}" for match in matches.matches]
        return ToolResult(bounded("\n".join(lines) + ("\n(there is more)" if matches.truncated else "") or "(no match)"))

    def _command(self, command: str, timeout: float) -> ToolResult:
        result = self.sandbox.shell(command, timeout=timeout)
        parts = [f"exit code {result.exit_code}" + (f" (killed after {timeout:g} seconds)" if result.timed_out else "") + f", in {result.cwd}"]
        if result.oom_killed:
            parts[0] += f"; a process was killed because the {result.memory_limit_mb} MiB of memory ran out"
        for name, output in (("stdout", result.stdout), ("stderr", result.stderr)):
            if output:
                parts.append(f"{name}:\n{bounded(output.rstrip())}")
        return ToolResult("\n".join(parts), error=not result.ok)

    def _code(self, code: str, language: Any) -> ToolResult:
        execution = self.sandbox.execute(code, language=language, timeout=600)
        images = [base64.b64decode(each.png) for each in execution.results if each.png]
        parts = [bounded(each.rstrip()) for each in (execution.stdout, execution.stderr) if each]
        parts += [bounded(each.text) for each in execution.results if each.text and not each.png]
        parts += [f"[chart: {(each.chart or {}).get('title') or 'without a title'}]" for each in execution.results if each.png]
        if execution.error:
            parts.append(bounded(execution.error.traceback or f"{execution.error.name}: {execution.error.value}"))
        return ToolResult("\n".join(parts) or "(no output)", images, not execution.ok)

    # -- OpenAI

    def openai(self) -> List[Dict[str, Any]]:
        """`tools` of chat.completions."""
        return _tooling.for_chat(self.names)

    def openai_results(self, message: Any) -> List[Dict[str, Any]]:
        """Runs the tool calls of a message of chat.completions; returns the messages that answer them."""
        found = []
        for call in field(message, "tool_calls") or ():
            function = field(call, "function")
            said = self.call(field(function, "name"), field(function, "arguments"))
            found.append({"role": "tool", "tool_call_id": field(call, "id"), "content": said})
        return found

    def openai_responses(self) -> List[Dict[str, Any]]:
        """`tools` of responses."""
        return _tooling.for_responses(self.names)

    def openai_outputs(self, response: Any) -> List[Dict[str, Any]]:
        """Runs the function calls of a response; returns the items that answer them."""
        found = []
        for item in field(response, "output") or ():
            if field(item, "type") == "function_call":
                said = self.call(field(item, "name"), field(item, "arguments"))
                found.append({"type": "function_call_output", "call_id": field(item, "call_id"), "output": said})
        return found

    # -- Anthropic

    def anthropic(self) -> List[Dict[str, Any]]:
        """`tools` of messages."""
        return _tooling.for_anthropic(self.names)

    def anthropic_results(self, message: Any) -> List[Dict[str, Any]]:
        """Runs the tools that a message uses; returns the content of the user's message that answers it, charts included."""
        found: List[Dict[str, Any]] = []
        for block in field(message, "content") or ():
            if field(block, "type") == "tool_use":
                result = self.run(field(block, "name"), field(block, "input"))
                content: List[Dict[str, Any]] = [{"type": "text", "text": result.text or "(nothing)"}]
                for image in result.images:
                    source = {"type": "base64", "media_type": "image/png", "data": base64.b64encode(image).decode()}
                    content.append({"type": "image", "source": source})
                found.append({"type": "tool_result", "tool_use_id": field(block, "id"), "content": content, "is_error": result.error})
        return found

    # -- frameworks

    def openai_agents(self) -> List[Any]:
        """Tools of the OpenAI Agents SDK."""
        return _tooling.for_openai_agents(self.names, async_caller(self.call))

    def langchain(self) -> List[Any]:
        """Tools of LangChain."""
        return _tooling.for_langchain(self.names, plain_caller(self.call), async_caller(self.call))

    def pydantic_ai(self) -> List[Any]:
        """Tools of Pydantic AI."""
        return _tooling.for_pydantic_ai(self.names, async_caller(self.call))
