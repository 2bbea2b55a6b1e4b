"""A sandbox."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, AsyncIterator, Dict, List, Literal, Mapping, Optional, Sequence, TypeVar, Union

import httpx

from .. import models, types
from .._http import NDJSON, given, milliseconds, query, segment
from .._operations import operation
from .._wire import Lines
from ..errors import ConnectionLost, NotFound
from .api import AsyncApi
from .files import AsyncFiles
from .network import AsyncEgress, AsyncPorts, AsyncSandboxAi, AsyncSandboxSecrets
from .processes import AsyncContexts, AsyncProcesses, AsyncShells, Command, Language, command_of
from .socket import AsyncTerminal
from .streams import QUIET, AsyncCodeStream, AsyncRunStream

if TYPE_CHECKING:
    from typing_extensions import Unpack  # for type checkers, which bring it along

    from .client import AsyncPaddock

OnEnd = Literal["delete", "stop", "pause"]
S = TypeVar("S", bound="AsyncSandbox")


class AsyncSandbox:
    """A sandbox. In a `with` block, one that `create` made is deleted at the end.

    `info` is what the server said about it last; `refresh` asks again.
    """

    def __init__(self, client: AsyncPaddock, info: models.SandboxInfo) -> None:
        self._client, self._api, self.info = client, client._api, info
        self._path = f"/v1/sandboxes/{info.id}"
        self._delete, self._close = False, False
        self._lease: Optional[AsyncIterator[bytes]] = None  # the connection that a sandbox with delete_on_disconnect lives by
        self._leased: Optional[httpx.AsyncByteStream] = None
        api, path = self._api, self._path
        self.files = AsyncFiles(api, path, lambda: self.info.workdir)
        self.processes = AsyncProcesses(api, path)
        self.shells = AsyncShells(api, path)
        self.contexts = AsyncContexts(api, path)
        self.ports = AsyncPorts(api, path)
        self.egress = AsyncEgress(api, path)
        self.secrets = AsyncSandboxSecrets(api, path)
        self.ai = AsyncSandboxAi(api, path)

    def __repr__(self) -> str:
        return f"<sandbox {self.info.name or self.id} {self.info.status}>"

    @property
    def id(self) -> str:
        return self.info.id

    # -- its life

    @classmethod
    async def create(cls, *, client: Optional[AsyncPaddock] = None, **options: Unpack[types.SandboxCreate]) -> AsyncSandbox:
        """Creates a sandbox; `AsyncPaddock().sandboxes.create` lists the options. Without a client, one is made of PADDOCK_URL and
        PADDOCK_API_KEY, or for this machine's daemon, and closed with the sandbox."""
        from .client import AsyncPaddock

        used = client or AsyncPaddock()
        try:
            sandbox = await used.sandboxes.create(**options)
        except BaseException:
            if client is None:
                await used.aclose()
            raise
        sandbox._close = client is None
        return sandbox

    @classmethod
    async def connect(cls, id: str, *, client: Optional[AsyncPaddock] = None) -> AsyncSandbox:
        """The sandbox with this id or name. A `with` block does not delete it."""
        from .client import AsyncPaddock

        used = client or AsyncPaddock()
        try:
            sandbox = await used.sandboxes.get(id)
        except BaseException:
            if client is None:
                await used.aclose()
            raise
        sandbox._close = client is None
        return sandbox

    async def __aenter__(self: S) -> S:
        return self

    async def __aexit__(self, *_: object) -> None:
        try:
            if self._delete:
                await self.delete()
        finally:
            await self.aclose()

    async def aclose(self) -> None:
        """Closes the connections that belong to this object. With `delete_on_disconnect`, that deletes the sandbox."""
        leased, self._leased, self._lease = self._leased, None, None
        if leased is not None:
            await leased.aclose()
        if self._close:
            await self._client.aclose()

    @operation("getSandbox")
    async def refresh(self) -> models.SandboxInfo:
        """Asks the server about it."""
        return self._take(await self._api.json("GET", self._path))

    def _take(self, document: Dict[str, Any]) -> models.SandboxInfo:
        self.info = models.SandboxInfo._of(document)
        return self.info

    @operation("deleteSandbox")
    async def delete(self) -> None:
        """Kills its processes and removes its files. It is no error if it is gone already."""
        self._delete = False
        try:
            await self._api.bytes("DELETE", self._path)
        except NotFound:
            pass

    @operation("changeSandbox")
    async def change(
        self,
        *,
        name: Optional[str] = None,
        metadata: Optional[Mapping[str, str]] = None,
        limits: Optional[types.Limits] = None,
        ttl_seconds: Optional[int] = None,
        idle_seconds: Optional[int] = None,
        on_end: Optional[OnEnd] = None,
        auto_resume: Optional[bool] = None,
        ports_public: Optional[bool] = None,
    ) -> models.SandboxInfo:
        """Changes name, limits, metadata or expiry; what is not given stays."""
        body = given(name=name, metadata=metadata, limits=limits, ttl_seconds=ttl_seconds, idle_seconds=idle_seconds, on_end=on_end)
        return self._take(await self._api.json("PATCH", self._path, {**body, **given(auto_resume=auto_resume, ports_public=ports_public)}))

    @operation("extendSandbox")
    async def extend(self, ttl_seconds: int) -> models.SandboxInfo:
        """Sets its expiry, counted from now; 0 is never."""
        return self._take(await self._api.json("POST", f"{self._path}/extend", {"ttl_seconds": ttl_seconds}))

    @operation("pauseSandbox")
    async def pause(self) -> models.SandboxInfo:
        """Freezes all processes; the memory stays in use."""
        return self._take(await self._api.json("POST", f"{self._path}/pause"))

    @operation("resumeSandbox")
    async def resume(self) -> models.SandboxInfo:
        return self._take(await self._api.json("POST", f"{self._path}/resume"))

    @operation("stopSandbox")
    async def stop(self) -> models.SandboxInfo:
        """Ends all processes; the files stay."""
        return self._take(await self._api.json("POST", f"{self._path}/stop"))

    @operation("startSandbox")
    async def start(self) -> models.SandboxInfo:
        """Starts a stopped sandbox."""
        return self._take(await self._api.json("POST", f"{self._path}/start"))

    @operation("createSnapshot")
    async def snapshot(self, name: Optional[str] = None) -> models.Snapshot:
        """Saves its files as they are now. `create(snapshot=…)` makes sandboxes of it."""
        return models.Snapshot._of(await self._api.json("POST", f"{self._path}/snapshots", given(name=name), timeout=None))

    @operation("forkSandbox")
    async def fork(
        self, count: int = 1, *, name_prefix: Optional[str] = None, metadata: Optional[Mapping[str, str]] = None
    ) -> List[AsyncSandbox]:
        """Creates sandboxes with the same files: all of them or none. A `with` block deletes a fork."""
        body = given(count=count, name_prefix=name_prefix, metadata=metadata)
        answer = models.ForkSandboxAnswer._of(await self._api.json("POST", f"{self._path}/fork", body, timeout=None))
        forks = [AsyncSandbox(self._client, info) for info in answer.sandboxes]
        for fork in forks:
            fork._delete = True
        return forks

    @operation("getSandboxStats")
    async def stats(self, *, history: Optional[bool] = None) -> models.Stats:
        """CPU, memory, disk and network; with `history` also of the last hour."""
        return models.Stats._of(await self._api.json("GET", f"{self._path}/stats{query({'history': history})}"))

    @operation("getSandboxPosture")
    async def posture(self) -> models.Posture:
        """Its isolation features."""
        return models.Posture._of(await self._api.json("GET", f"{self._path}/posture"))

    # -- running things in it

    @operation("exec", fields={"argv": "command", "timeout_ms": "timeout"}, fixed=("shell",))
    async def run(
        self,
        command: Command,
        *,
        cwd: Optional[str] = None,
        env: Optional[Mapping[str, str]] = None,
        user: Optional[str] = None,
        stdin: Optional[str] = None,
        timeout: Optional[float] = None,
        kill_on_disconnect: Optional[bool] = None,
        secrets: Optional[Sequence[types.SecretMount]] = None,
        check: bool = False,
    ) -> models.ExecResult:
        """Runs a command and waits for its end: a string in a shell, a list as a program with its arguments. At its `timeout`,
        in seconds, everything that it started is killed. `check` raises CommandFailed unless the exit code is 0."""
        body = {**command_of(command), **given(cwd=cwd, env=env, user=user, stdin=stdin, timeout_ms=milliseconds(timeout))}
        body.update(given(kill_on_disconnect=kill_on_disconnect, secrets=secrets))
        result = models.ExecResult._of(await self._api.json("POST", f"{self._path}/exec", body, timeout=None))
        if check:
            result.check()
        return result

    @operation("exec", fields={"shell": "name", "timeout_ms": "timeout"}, fixed=("argv", "cwd", "env", "user"))
    async def shell(
        self,
        command: str,
        *,
        name: str = "default",
        stdin: Optional[str] = None,
        timeout: Optional[float] = None,
        kill_on_disconnect: Optional[bool] = None,
        secrets: Optional[Sequence[types.SecretMount]] = None,
        check: bool = False,
    ) -> models.ExecResult:
        """Runs a command in a shell that keeps its directory, variables and functions from one command to the next."""
        body = given(command=command, shell=name, stdin=stdin, timeout_ms=milliseconds(timeout), kill_on_disconnect=kill_on_disconnect, secrets=secrets)
        result = models.ExecResult._of(await self._api.json("POST", f"{self._path}/exec", body, timeout=None))
        if check:
            result.check()
        return result

    @operation("exec", fields={"argv": "command", "timeout_ms": "timeout"})
    def stream(
        self,
        command: Command,
        *,
        cwd: Optional[str] = None,
        env: Optional[Mapping[str, str]] = None,
        user: Optional[str] = None,
        stdin: Optional[str] = None,
        timeout: Optional[float] = None,
        shell: Optional[str] = None,
        kill_on_disconnect: Optional[bool] = None,
        secrets: Optional[Sequence[types.SecretMount]] = None,
    ) -> AsyncRunStream:
        """Runs a command and yields its output as it is written: Started, Output…, Exited. A broken connection is made again
        and continues with the next byte, except for commands in a shell."""
        body = {**command_of(command), **given(cwd=cwd, env=env, user=user, stdin=stdin, timeout_ms=milliseconds(timeout), shell=shell)}
        body.update(given(kill_on_disconnect=kill_on_disconnect, secrets=secrets))

        return AsyncRunStream(
            self._api,
            self._path,
            lambda: self._api.build("POST", f"{self._path}/exec", document=body, accept=NDJSON, timeout=QUIET),
            resumable=shell is None and not kill_on_disconnect,
        )

    @operation("execute", fields={"timeout_ms": "timeout"})
    async def execute(
        self,
        code: str,
        *,
        language: Optional[Language] = None,
        context: Optional[str] = None,
        env: Optional[Mapping[str, str]] = None,
        timeout: Optional[float] = None,
        kill_on_disconnect: Optional[bool] = None,
        secrets: Optional[Sequence[types.SecretMount]] = None,
        check: bool = False,
    ) -> models.Execution:
        """Runs code in an interpreter that keeps its state, by default Python: results, charts and errors come back as such."""
        body = given(code=code, language=language, context=context, env=env, timeout_ms=milliseconds(timeout))
        body.update(given(kill_on_disconnect=kill_on_disconnect, secrets=secrets))
        execution = models.Execution._of(await self._api.json("POST", f"{self._path}/execute", body, timeout=None))
        if check:
            execution.check()
        return execution

    @operation("execute", fields={"timeout_ms": "timeout"})
    def execute_stream(
        self,
        code: str,
        *,
        language: Optional[Language] = None,
        context: Optional[str] = None,
        env: Optional[Mapping[str, str]] = None,
        timeout: Optional[float] = None,
        kill_on_disconnect: Optional[bool] = None,
        secrets: Optional[Sequence[types.SecretMount]] = None,
    ) -> AsyncCodeStream:
        """Runs code; output and results come as they are made."""
        body = given(code=code, language=language, context=context, env=env, timeout_ms=milliseconds(timeout))
        body.update(given(kill_on_disconnect=kill_on_disconnect, secrets=secrets))
        return AsyncCodeStream(self._api, lambda: self._api.build("POST", f"{self._path}/execute", document=body, accept=NDJSON, timeout=QUIET))

    @operation("openTerminal")
    def terminal(
        self,
        *,
        cols: int = 80,
        rows: int = 24,
        term: Optional[str] = None,
        lang: Optional[str] = None,
        user: Optional[str] = None,
        cwd: Optional[str] = None,
        process: Union[int, str, None] = None,
        offset: Optional[int] = None,
        kill_on_disconnect: Optional[bool] = None,
    ) -> AsyncTerminal:
        """A login shell in a new terminal, or the terminal of a process."""
        params = {"cols": cols, "rows": rows, "term": term, "lang": lang, "user": user, "cwd": cwd} if process is None else {"process": process}
        return AsyncTerminal(self._api, self._path, {**params, "offset": offset, "kill_on_disconnect": kill_on_disconnect})


class AsyncSandboxes:
    """All sandboxes of the key's tenant; with an admin key those of all."""

    def __init__(self, client: AsyncPaddock) -> None:
        self._client, self._api = client, client._api

    @operation("createSandbox")
    async def create(
        self,
        *,
        name: Optional[str] = None,
        image: Optional[str] = None,
        backend: Optional[str] = None,
        user: Optional[str] = None,
        env: Optional[Mapping[str, str]] = None,
        workdir: Optional[str] = None,
        limits: Optional[types.Limits] = None,
        ttl_seconds: Optional[int] = None,
        idle_seconds: Optional[int] = None,
        on_end: Optional[OnEnd] = None,
        auto_resume: Optional[bool] = None,
        snapshot: Optional[str] = None,
        workspace: Union[str, types.Workspace, None] = None,
        workspaces: Optional[Sequence[types.WorkspaceMount]] = None,
        metadata: Optional[Mapping[str, str]] = None,
        secrets: Optional[Sequence[types.SecretMount]] = None,
        mounts: Optional[Sequence[types.HostMount]] = None,
        readonly_root: Optional[bool] = None,
        sudo: Optional[bool] = None,
        timezone: Optional[str] = None,
        require: Optional[Sequence[str]] = None,
        ai: Optional[types.AiAllowance] = None,
        egress: Optional[types.EgressPolicy] = None,
        ports_public: Optional[bool] = None,
        delete_on_disconnect: Optional[bool] = None,
        mask_host: Optional[str] = None,
    ) -> AsyncSandbox:
        """Creates a sandbox; it runs when this returns. With `delete_on_disconnect` it lives as long as this program and
        this object do: the server deletes it when the connection ends for whatever reason."""
        body = given(
            name=name, image=image, backend=backend, user=user, env=env, workdir=workdir, limits=limits, ttl_seconds=ttl_seconds,
            idle_seconds=idle_seconds, on_end=on_end, auto_resume=auto_resume, snapshot=snapshot, workspace=workspace, workspaces=workspaces, metadata=metadata,
            secrets=secrets, mounts=mounts, readonly_root=readonly_root, sudo=sudo, timezone=timezone, require=require, ai=ai, egress=egress,
            ports_public=ports_public, delete_on_disconnect=delete_on_disconnect, mask_host=mask_host,
        )  # fmt: skip
        request = self._api.build("POST", "/v1/sandboxes", document=body, accept=NDJSON if delete_on_disconnect else None, timeout=None)
        response = await self._api.send(request)
        if delete_on_disconnect:
            assert isinstance(response.stream, httpx.AsyncByteStream)
            chunks = response.stream.__aiter__()
            sandbox = AsyncSandbox(self._client, models.SandboxInfo._of(await self._first_line(chunks)))
            sandbox._lease, sandbox._leased = chunks, response.stream
        else:
            sandbox = AsyncSandbox(self._client, models.SandboxInfo._of(json.loads(await self._api.body(request, response))))
        sandbox._delete = True
        return sandbox

    async def _first_line(self, chunks: AsyncIterator[bytes]) -> Dict[str, Any]:
        lines = Lines()
        while True:
            try:
                for document in lines.feed(await chunks.__anext__()):
                    return document
            except (httpx.TransportError, StopAsyncIteration) as error:
                raise ConnectionLost("the connection ended before the sandbox was made") from error

    @operation("getSandbox")
    async def get(self, id: str) -> AsyncSandbox:
        """The sandbox with this id or name."""
        return AsyncSandbox(self._client, models.SandboxInfo._of(await self._api.json("GET", f"/v1/sandboxes/{segment(id)}")))

    @operation("listSandboxes")
    async def page(
        self,
        *,
        status: Optional[Literal["creating", "running", "paused", "stopped"]] = None,
        metadata: Optional[Mapping[str, str]] = None,
        limit: Optional[int] = None,
        cursor: Optional[str] = None,
    ) -> models.SandboxPage:
        """One page of the list, in the order of creation."""
        params = {"status": status, "limit": limit, "cursor": cursor, **{f"metadata.{key}": value for key, value in (metadata or {}).items()}}
        return models.SandboxPage._of(await self._api.json("GET", f"/v1/sandboxes{query(params)}"))

    @operation("listSandboxes", fixed=("cursor", "limit"))
    async def list(
        self,
        *,
        status: Optional[Literal["creating", "running", "paused", "stopped"]] = None,
        metadata: Optional[Mapping[str, str]] = None,
    ) -> AsyncIterator[AsyncSandbox]:
        """All of them, page by page."""
        cursor: Optional[str] = None
        while True:
            page = await self.page(status=status, metadata=metadata, limit=1000, cursor=cursor)
            for info in page.sandboxes:
                yield AsyncSandbox(self._client, info)
            cursor = page.next
            if not cursor:
                return
