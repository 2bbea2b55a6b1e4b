"""What runs in a sandbox: shells, processes, code contexts."""

from __future__ import annotations

from typing import Any, Dict, List, Literal, Mapping, Optional, Sequence, Union

from .. import models, types
from .._http import NDJSON, Content, given, milliseconds, query, segment
from .._operations import operation
from .api import AsyncApi
from .streams import QUIET, AsyncCodeStream, AsyncRunStream

Language = Literal["python", "javascript", "typescript", "r", "java", "bash"]
Command = Union[str, Sequence[str]]


def command_of(command: Command) -> Dict[str, Any]:
    """A string is a command line for a shell, a list a program with its arguments."""
    return {"command": command} if isinstance(command, str) else {"argv": list(command)}


class AsyncShells:
    """Shells that keep their state; `sandbox.shell` runs commands in them."""

    def __init__(self, api: AsyncApi, sandbox: str) -> None:
        self._api, self._path = api, f"{sandbox}/shells"

    @operation("createShell")
    async def create(self, name: str, *, cwd: Optional[str] = None, env: Optional[Mapping[str, str]] = None, user: Optional[str] = None) -> models.ShellInfo:
        """Only needed for a shell with its own directory, variables or user: the first command of a shell creates it."""
        return models.ShellInfo._of(await self._api.json("POST", self._path, given(name=name, cwd=cwd, env=env, user=user)))

    @operation("listShells")
    async def list(self) -> List[models.ShellInfo]:
        return [models.ShellInfo._of(each) for each in (await self._api.json("GET", self._path))["shells"]]

    @operation("getShell")
    async def get(self, name: str) -> models.ShellInfo:
        return models.ShellInfo._of(await self._api.json("GET", f"{self._path}/{segment(name)}"))

    @operation("removeShell")
    async def remove(self, name: str) -> None:
        """Ends the shell and everything that it has started."""
        await self._api.bytes("DELETE", f"{self._path}/{segment(name)}")


class AsyncProcess:
    """A process that outlives its client, by its pid or its tag."""

    def __init__(self, api: AsyncApi, sandbox: str, name: Union[int, str]) -> None:
        self._api, self._sandbox, self.name = api, sandbox, name
        self._path = f"{sandbox}/processes/{segment(name)}"

    def __repr__(self) -> str:
        return f"<process {self.name}>"

    @operation("getProcess")
    async def info(self) -> models.ProcessInfo:
        return models.ProcessInfo._of(await self._api.json("GET", self._path))

    @operation("killProcess")
    async def kill(self) -> None:
        """Kills the process and everything that it has started."""
        await self._api.bytes("DELETE", self._path)

    @operation("readProcessOutput", fixed=("follow",))
    async def output(self, *, stdout: Optional[int] = None, stderr: Optional[int] = None) -> models.ProcessOutput:
        """The output that there is now, from these offsets on. The last MiB of each stream is kept."""
        return models.ProcessOutput._of(await self._api.json("GET", f"{self._path}/output{query({'stdout': stdout, 'stderr': stderr})}"))

    @operation("readProcessOutput", fixed=("follow",))
    def follow(self, *, stdout: int = 0, stderr: int = 0) -> AsyncRunStream:
        """The output from these offsets on, as it is written, and then the end."""
        where = f"{self._path}/output{query({'follow': 1, 'stdout': stdout, 'stderr': stderr})}"
        stream = AsyncRunStream(self._api, self._sandbox, lambda: self._api.build("GET", where, accept=NDJSON, timeout=QUIET), process=segment(self.name))
        stream._next.update(stdout=stdout, stderr=stderr)
        return stream

    @operation("waitForProcess", fields={"timeout_ms": "timeout"})
    async def wait(self, timeout: Optional[float] = None) -> models.ProcessEnd:
        """Waits for the end; after `timeout` seconds the answer is that it still runs."""
        return models.ProcessEnd._of(await self._api.json("GET", f"{self._path}/wait{query({'timeout_ms': milliseconds(timeout)})}", timeout=None))

    @operation("writeProcessInput", fields={"close": "close"})
    async def write(self, data: Content = b"", *, close: Optional[bool] = None) -> None:
        """Writes to its stdin or its terminal; `close` ends its input."""
        await self._api.bytes("POST", f"{self._path}/stdin{query({'close': close})}", content=data, timeout=None)

    @operation("signalProcess")
    async def signal(self, signal: Union[str, int]) -> None:
        """Sends a signal, such as "SIGTERM", to its process group."""
        await self._api.json("POST", f"{self._path}/signal", {"signal": signal})

    @operation("resizeProcess")
    async def resize(self, cols: int, rows: int) -> None:
        await self._api.json("POST", f"{self._path}/resize", {"cols": cols, "rows": rows})


class AsyncProcesses:
    """Processes that outlive their clients."""

    def __init__(self, api: AsyncApi, sandbox: str) -> None:
        self._api, self._sandbox = api, sandbox

    def get(self, name: Union[int, str]) -> AsyncProcess:
        """The process with this pid or tag; nothing is asked."""
        return AsyncProcess(self._api, self._sandbox, name)

    @operation("listProcesses")
    async def list(self) -> List[models.ProcessInfo]:
        """Running processes, including shells, and recently ended ones."""
        return [models.ProcessInfo._of(each) for each in (await self._api.json("GET", f"{self._sandbox}/processes"))["processes"]]

    @operation("startProcess", fields={"argv": "command", "timeout_ms": "timeout"}, fixed=("kill_on_disconnect",))
    async def start(
        self,
        command: Command,
        *,
        tag: Optional[str] = None,
        cwd: Optional[str] = None,
        env: Optional[Mapping[str, str]] = None,
        user: Optional[str] = None,
        stdin: Optional[bool] = None,
        pty: Optional[types.TerminalSize] = None,
        timeout: Optional[float] = None,
        secrets: Optional[Sequence[types.SecretMount]] = None,
    ) -> AsyncProcess:
        """Starts a process. Its output is kept, to be read or followed at any time."""
        body = given(tag=tag, cwd=cwd, env=env, user=user, stdin=stdin, pty=pty, timeout_ms=milliseconds(timeout), secrets=secrets)
        started = models.ProcessStarted._of(await self._api.json("POST", f"{self._sandbox}/processes", {**command_of(command), **body}))
        return AsyncProcess(self._api, self._sandbox, started.pid)

    @operation("startProcess", fields={"argv": "command", "timeout_ms": "timeout"})
    def stream(
        self,
        command: Command,
        *,
        tag: Optional[str] = None,
        cwd: Optional[str] = None,
        env: Optional[Mapping[str, str]] = None,
        user: Optional[str] = None,
        stdin: Optional[bool] = None,
        pty: Optional[types.TerminalSize] = None,
        timeout: Optional[float] = None,
        kill_on_disconnect: Optional[bool] = None,
        secrets: Optional[Sequence[types.SecretMount]] = None,
    ) -> AsyncRunStream:
        """Starts a process and follows its output from the start."""
        options = given(tag=tag, cwd=cwd, env=env, user=user, stdin=stdin, pty=pty, timeout_ms=milliseconds(timeout))
        body = {**command_of(command), **options, **given(kill_on_disconnect=kill_on_disconnect, secrets=secrets)}

        return AsyncRunStream(
            self._api,
            self._sandbox,
            lambda: self._api.build("POST", f"{self._sandbox}/processes", document=body, accept=NDJSON, timeout=QUIET),
            resumable=not kill_on_disconnect,
        )


class AsyncContext:
    """An interpreter with its own namespace. The context that `sandbox.execute` uses has the name of its language."""

    def __init__(self, api: AsyncApi, sandbox: str, id: str) -> None:
        self._api, self.id = api, id
        self._path = f"{sandbox}/contexts/{segment(id)}"

    def __repr__(self) -> str:
        return f"<context {self.id}>"

    @operation("getContext")
    async def info(self) -> models.ContextInfo:
        return models.ContextInfo._of(await self._api.json("GET", self._path))

    @operation("executeInContext", fields={"timeout_ms": "timeout"})
    async def execute(
        self,
        code: str,
        *,
        env: Optional[Mapping[str, str]] = None,
        timeout: Optional[float] = None,
        kill_on_disconnect: Optional[bool] = None,
        secrets: Optional[Sequence[types.SecretMount]] = None,
        check: bool = False,
    ) -> models.Execution:
        """Runs code and waits for its end. `check` raises CommandFailed if the code does."""
        body = given(code=code, env=env, timeout_ms=milliseconds(timeout), kill_on_disconnect=kill_on_disconnect, secrets=secrets)
        execution = models.Execution._of(await self._api.json("POST", f"{self._path}/execute", body, timeout=None))
        if check:
            execution.check()
        return execution

    @operation("executeInContext", fields={"timeout_ms": "timeout"})
    def stream(
        self,
        code: str,
        *,
        env: Optional[Mapping[str, str]] = None,
        timeout: Optional[float] = None,
        kill_on_disconnect: Optional[bool] = None,
        secrets: Optional[Sequence[types.SecretMount]] = None,
    ) -> AsyncCodeStream:
        """Runs code; output and results come as they are made."""
        body = given(code=code, env=env, timeout_ms=milliseconds(timeout), kill_on_disconnect=kill_on_disconnect, secrets=secrets)
        return AsyncCodeStream(self._api, lambda: self._api.build("POST", f"{self._path}/execute", document=body, accept=NDJSON, timeout=QUIET))

    @operation("restartContext")
    async def restart(self) -> models.ContextInfo:
        """Starts the interpreter again, with an empty namespace."""
        return models.ContextInfo._of(await self._api.json("POST", f"{self._path}/restart"))

    @operation("interruptContext")
    async def interrupt(self) -> models.ContextInfo:
        """Interrupts running code; the context keeps its state."""
        return models.ContextInfo._of(await self._api.json("POST", f"{self._path}/interrupt"))

    @operation("removeContext")
    async def remove(self) -> None:
        """Ends the interpreter and everything that it has started."""
        await self._api.bytes("DELETE", self._path)


class AsyncContexts:
    """Code contexts: interpreters that keep their state."""

    def __init__(self, api: AsyncApi, sandbox: str) -> None:
        self._api, self._sandbox = api, sandbox

    def get(self, id: str) -> AsyncContext:
        """The context with this id; nothing is asked."""
        return AsyncContext(self._api, self._sandbox, id)

    @operation("createContext")
    async def create(
        self, language: Language = "python", *, cwd: Optional[str] = None, env: Optional[Mapping[str, str]] = None, user: Optional[str] = None
    ) -> AsyncContext:
        body = given(language=language, cwd=cwd, env=env, user=user)
        info = models.ContextInfo._of(await self._api.json("POST", f"{self._sandbox}/contexts", body, timeout=None))
        return AsyncContext(self._api, self._sandbox, info.id)

    @operation("listContexts")
    async def list(self) -> List[models.ContextInfo]:
        return [models.ContextInfo._of(each) for each in (await self._api.json("GET", f"{self._sandbox}/contexts"))["contexts"]]
