"""Sandkasten's Python client: `from paddock.compat.sandkasten import SandboxClient`.

The names, arguments and results are Sandkasten's (docs/sandkasten.md says what differs); the server is Paddock's main address
or a listener with `dialect: sandkasten`.
"""

from __future__ import annotations

import base64
import json
import shlex
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, AsyncIterator, Dict, List, Mapping, Optional, Union

import httpx

from .._async.api import AsyncApi
from .._http import Content, given, headers_of, multipart, query, segment
from .._settings import find
from .._wire import ServerEvents
from ..errors import PaddockError

__all__ = [
    "ExecChunk",
    "ExecResult",
    "ReadResult",
    "SandboxClient",
    "SandkastenAPIError",
    "SandkastenError",
    "SandkastenStreamError",
    "Session",
    "SessionInfo",
    "SessionStats",
    "WorkspaceInfo",
    "create_sandkasten_tools",
    "sandbox_tools_for_workspace",
    "session",
]


class SandkastenError(PaddockError):
    """The base of this module's exceptions."""


class SandkastenAPIError(SandkastenError):
    """The server refused the request, or failed."""

    def __init__(self, message: str, status_code: Optional[int] = None, response_body: Optional[str] = None, error_code: str = "") -> None:
        super().__init__(message)
        self.status_code, self.response_body, self.error_code = status_code, response_body, error_code


class SandkastenStreamError(SandkastenError):
    """A stream of output ended with an error."""


@dataclass
class ExecResult:
    exit_code: int
    cwd: str
    output: str
    truncated: bool
    duration_ms: int


@dataclass
class ExecChunk:
    output: str
    timestamp: int
    done: bool = False
    exit_code: int = 0
    cwd: str = ""
    duration_ms: int = 0


@dataclass
class SessionInfo:
    id: str
    image: str
    status: str
    cwd: str
    created_at: str
    expires_at: str
    workspace_id: Optional[str] = None
    container_id: str = ""
    last_activity: str = ""


@dataclass
class SessionStats:
    memory_bytes: int
    memory_limit: int
    cpu_usage_usec: int


@dataclass
class WorkspaceInfo:
    id: str


class ReadResult(bytes):
    """The bytes of a file, as older clients return them, with the fields that newer ones have."""

    path: str
    truncated: bool

    def __new__(cls, content: bytes, path: str, truncated: bool) -> ReadResult:
        result = super().__new__(cls, content)
        result.path, result.truncated = path, truncated
        return result

    @property
    def content(self) -> bytes:
        return bytes(self)


def _info(data: Mapping[str, Any]) -> SessionInfo:
    return SessionInfo(
        id=data["id"], image=data["image"], status=data["status"], cwd=data.get("cwd", ""), created_at=data["created_at"],
        expires_at=data.get("expires_at", ""), workspace_id=data.get("workspace_id"), container_id=data.get("container_id", data["id"]),
        last_activity=data.get("last_activity", ""),
    )  # fmt: skip


class SandboxClient:
    """A client of Sandkasten's API. Without arguments it finds the server as the rest of this package does."""

    def __init__(self, base_url: Optional[str] = None, api_key: Optional[str] = None, timeout: float = 120.0) -> None:
        self._api = AsyncApi(find(base_url, api_key), timeout, 3, None)

    async def _send(self, method: str, path: str, document: Any = None, *, content: Optional[Content] = None, headers: Optional[Mapping[str, str]] = None) -> Any:
        request = self._api.build(method, path, document=document, content=content, headers=headers)
        try:
            response = await self._api.transport.handle_async_request(request)
        except httpx.TransportError as error:
            raise self._api.lost(request, error) from error
        body = await self._api.body(request, response)
        _check(response, body)
        return json.loads(body or b"null")

    async def create_session(self, *, image: str = "python", ttl_seconds: Optional[int] = None, workspace_id: Optional[str] = None) -> Session:
        data = await self._send("POST", "/v1/sessions", given(image=image, ttl_seconds=ttl_seconds, workspace_id=workspace_id))
        return Session(self, data["id"])

    async def get_session(self, session_id: str) -> Session:
        data = await self._send("GET", f"/v1/sessions/{segment(session_id)}")
        return Session(self, data["id"])

    async def list_sessions(self) -> List[SessionInfo]:
        return [_info(each) for each in await self._send("GET", "/v1/sessions")]

    async def list_workspaces(self) -> List[WorkspaceInfo]:
        data = await self._send("GET", "/v1/workspaces")
        # Paddock's own address lists its own workspaces, which have names; a listener of Sandkasten's lists their ids.
        return [WorkspaceInfo(each.get("name") or each["id"]) for each in data["workspaces"]]

    async def delete_workspace(self, workspace_id: str) -> None:
        await self._send("DELETE", f"/v1/workspaces/{segment(workspace_id)}")

    async def close(self) -> None:
        await self._api.aclose()

    async def __aenter__(self) -> SandboxClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


def _check(response: httpx.Response, body: bytes) -> None:
    if response.status_code < 400:
        return
    text = body.decode("utf-8", "replace")
    try:
        data: Dict[str, Any] = json.loads(text)
        data = data.get("error", data)
        message, code = str(data["message"]), str(data.get("error_code") or data.get("code") or "")
    except (ValueError, KeyError, AttributeError):
        message, code = f"the server answered {response.status_code}", ""
    raise SandkastenAPIError(message, response.status_code, text, code)


class Session:
    """A sandbox with a shell that keeps its state."""

    def __init__(self, client: SandboxClient, session_id: str) -> None:
        self._client, self._id = client, session_id
        self._path = f"/v1/sessions/{segment(session_id)}"

    @property
    def id(self) -> str:
        return self._id

    async def exec(self, cmd: str, *, timeout_ms: int = 30000, raw_output: bool = False) -> ExecResult:
        data = await self._client._send("POST", f"{self._path}/exec", {"cmd": cmd, "timeout_ms": timeout_ms, "raw_output": raw_output})
        return ExecResult(data["exit_code"], data["cwd"], data["output"], data.get("truncated", False), int(data.get("duration_ms", 0)))

    async def exec_stream(self, cmd: str, *, timeout_ms: int = 30000, raw_output: bool = False) -> AsyncIterator[ExecChunk]:
        """Output as it comes; the last chunk is `done` and has the exit code."""
        api = self._client._api
        body = {"cmd": cmd, "timeout_ms": timeout_ms, "raw_output": raw_output}
        request = api.build("POST", f"{self._path}/exec/stream", document=body, accept="text/event-stream")
        try:
            response = await api.transport.handle_async_request(request)
        except httpx.TransportError as error:
            raise api.lost(request, error) from error
        stream = response.stream
        assert isinstance(stream, httpx.AsyncByteStream)
        if response.status_code >= 400:
            _check(response, await api.body(request, response))
        events = ServerEvents()
        try:
            async for piece in stream:
                for event in events.feed(piece):
                    data = json.loads(event.data or "{}")
                    if event.type == "chunk":
                        yield ExecChunk(data.get("chunk", ""), data.get("timestamp", 0))
                    elif event.type == "done":
                        yield ExecChunk("", 0, True, data.get("exit_code", 0), data.get("cwd", ""), int(data.get("duration_ms", 0)))
                        return
                    elif event.type == "error":
                        raise SandkastenStreamError(data.get("error", "the stream failed"))
        except httpx.TransportError as error:
            raise SandkastenStreamError(f"the stream broke off: {error}") from error
        finally:
            await stream.aclose()
        raise SandkastenStreamError("the stream ended before the command did")

    async def write(self, path: str, content: Union[str, bytes]) -> None:
        data = content.encode() if isinstance(content, str) else content
        await self._client._send("POST", f"{self._path}/fs/write", {"path": path, "content_base64": base64.b64encode(data).decode("ascii")})

    async def read(self, path: str, *, max_bytes: Optional[int] = None) -> ReadResult:
        data = await self._client._send("GET", f"{self._path}/fs/read{query({'path': path, 'max_bytes': max_bytes})}")
        return ReadResult(base64.b64decode(data["content_base64"]), data.get("path", path), data.get("truncated", False))

    async def upload(self, files: Mapping[str, Content], *, path: Optional[str] = None) -> List[str]:
        """Writes several files, by their names, into a directory; returns their paths."""
        kind, body = multipart(files)
        if path is not None:
            mark = kind.rpartition("=")[2]
            body = f'--{mark}\r\nContent-Disposition: form-data; name="path"\r\n\r\n{path}\r\n'.encode() + body
        data = await self._client._send("POST", f"{self._path}/fs/upload", content=body, headers={"Content-Type": kind})
        return list(data["paths"])

    async def stats(self) -> SessionStats:
        data = await self._client._send("GET", f"{self._path}/stats")
        return SessionStats(data["memory_bytes"], data["memory_limit"], data["cpu_usage_usec"])

    async def info(self) -> SessionInfo:
        return _info(await self._client._send("GET", self._path))

    async def destroy(self) -> None:
        await self._client._send("DELETE", self._path)

    async def __aenter__(self) -> Session:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.destroy()


@asynccontextmanager
async def session(
    base_url: Optional[str] = None,
    api_key: Optional[str] = None,
    *,
    image: str = "python",
    ttl_seconds: Optional[int] = None,
    workspace_id: Optional[str] = None,
) -> AsyncIterator[Session]:
    """A session for one block, with a client of its own."""
    async with SandboxClient(base_url, api_key) as client:
        async with await client.create_session(image=image, ttl_seconds=ttl_seconds, workspace_id=workspace_id) as made:
            yield made


# ---- tools for the OpenAI Agents SDK


def create_sandkasten_tools(session: Session) -> List[Any]:
    """The session as tools of the OpenAI Agents SDK, under Sandkasten's names."""
    from agents import function_tool

    def shown(result: ExecResult) -> str:
        return f"exit_code={result.exit_code}\ncwd={result.cwd}\n---\n{result.output}"

    async def sandbox_exec(cmd: str, timeout_ms: int = 30000) -> str:
        """Run a command in the sandbox's shell. Directory, variables and background jobs last from one command to the next."""
        return shown(await session.exec(cmd, timeout_ms=timeout_ms))

    async def sandbox_write_file(path: str, content: str) -> str:
        """Write a text file, by a path in /workspace or relative to it."""
        await session.write(path, content)
        return f"wrote {path}"

    async def sandbox_read_file(path: str, max_bytes: Optional[int] = None) -> str:
        """Read a text file, by a path in /workspace or relative to it."""
        result = await session.read(path, max_bytes=max_bytes)
        return result.decode("utf-8", "replace") + ("\n(truncated)" if result.truncated else "")

    async def sandbox_list_files(path: str = ".") -> str:
        """List a directory."""
        return shown(await session.exec(f"ls -la {shlex.quote(path or '.')}"))

    async def sandbox_stats() -> str:
        """Show what the sandbox uses of memory and processor."""
        stats = await session.stats()
        return f"memory_bytes={stats.memory_bytes}, memory_limit={stats.memory_limit}, cpu_usage_usec={stats.cpu_usage_usec}"

    tools = (sandbox_exec, sandbox_write_file, sandbox_read_file, sandbox_list_files, sandbox_stats)
    return [function_tool(each) for each in tools]


@asynccontextmanager
async def sandbox_tools_for_workspace(
    client: SandboxClient, workspace_id: str, *, image: str = "python", ttl_seconds: Optional[int] = None
) -> AsyncIterator[Any]:
    """(session, tools) on a workspace, for one block."""
    async with await client.create_session(image=image, workspace_id=workspace_id, ttl_seconds=ttl_seconds) as made:
        yield made, create_sandkasten_tools(made)
