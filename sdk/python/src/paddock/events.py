"""The events of streams: what `stream` and `follow` yield.

    for event in sandbox.stream("make"):
        if isinstance(event, Output):
            print(event.data, end="")
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Any, Dict, Literal, Optional, Union

from ._mixins import Piece
from .models import ExecutionError, ExecutionResult

__all__ = ["CodeEvent", "Ended", "ExecutionError", "ExecutionResult", "Exited", "Output", "RunEvent", "Started", "StartedCode"]


@dataclass
class Started:
    """The process runs."""

    pid: int
    tag: Optional[str] = None
    type: Literal["start"] = "start"

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> Started:
        return cls(pid=d["pid"], tag=d.get("tag"))


@dataclass
class Output(Piece):
    """A piece of output. `data` is text; `bytes` is what was written. The output of a terminal is of type stdout."""

    type: Literal["stdout", "stderr"]
    #: Of the first byte.
    offset: int
    data: str
    encoding: Literal["utf-8", "base64"]

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> Output:
        return cls(type=d["type"], offset=d["offset"], data=d["data"], encoding=d["encoding"])

    def after(self, offset: int) -> Optional[Output]:
        """What of it begins at this offset, if anything: the rest was seen before, or not asked for."""
        if self.offset >= offset:
            return self
        rest = self.bytes[offset - self.offset :]
        return Output(self.type, offset, base64.b64encode(rest).decode(), "base64") if rest else None


@dataclass
class Exited:
    """The process has ended: the last event."""

    exit_code: int
    signal: Optional[str]
    timed_out: bool
    oom_killed: bool
    truncated: bool
    duration_ms: float
    memory_limit_mb: Optional[int] = None
    #: Of a command in a shell: its name, its directory after the command, whether it had to be restarted.
    shell: Optional[str] = None
    cwd: Optional[str] = None
    restarted: Optional[bool] = None
    type: Literal["exit"] = "exit"

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> Exited:
        return cls(
            exit_code=d["exit_code"], signal=d["signal"], timed_out=d["timed_out"], oom_killed=d["oom_killed"], truncated=d.get("truncated", False),
            duration_ms=d["duration_ms"], memory_limit_mb=d.get("memory_limit_mb"), shell=d.get("shell"), cwd=d.get("cwd"), restarted=d.get("restarted"),
        )


@dataclass
class StartedCode:
    """The code runs."""

    context: str
    language: str
    pid: int
    type: Literal["start"] = "start"

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> StartedCode:
        return cls(context=d["context"], language=d["language"], pid=d["pid"])


@dataclass
class Ended:
    """The code has ended: the last event. An ExecutionError came before if it failed."""

    execution_count: int
    timed_out: bool
    oom_killed: bool
    state_lost: bool
    truncated: bool
    duration_ms: float
    memory_limit_mb: Optional[int] = None
    type: Literal["end"] = "end"

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> Ended:
        return cls(
            execution_count=d["execution_count"], timed_out=d["timed_out"], oom_killed=d["oom_killed"], state_lost=d["state_lost"],
            truncated=d["truncated"], duration_ms=d["duration_ms"], memory_limit_mb=d.get("memory_limit_mb"),
        )


RunEvent = Union[Started, Output, Exited]
CodeEvent = Union[StartedCode, Output, ExecutionResult, ExecutionError, Ended]


def run_event(d: Dict[str, Any]) -> Optional[RunEvent]:
    """None for what only keeps the connection alive, or is newer than this package."""
    kind = d.get("type")
    if kind == "stdout" or kind == "stderr":
        return Output._of(d)
    return Started._of(d) if kind == "start" else Exited._of(d) if kind == "exit" else None


def code_event(d: Dict[str, Any]) -> Optional[CodeEvent]:
    kind = d.get("type")
    if kind == "stdout" or kind == "stderr":
        return Output._of(d)
    if kind == "result":
        return ExecutionResult._of(d)
    if kind == "error":
        return ExecutionError._of(d)
    return StartedCode._of(d) if kind == "start" else Ended._of(d) if kind == "end" else None
