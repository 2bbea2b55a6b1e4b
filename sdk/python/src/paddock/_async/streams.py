"""Answers that come while things happen: output, code, events, changes of files.

Nothing is sent before the first event is asked for, or the `with` block is entered. A stream that can be taken up where it
broke off is: output by its offsets, events by their ids.
"""

from __future__ import annotations

import json
from collections import deque
from typing import Any, AsyncIterator, Callable, Deque, Dict, Generic, Optional, TypeVar, Union

import httpx

from .._compat import async_sleep
from .._http import NDJSON, SSE, query
from .._wire import Lines, ServerEvent, ServerEvents
from ..errors import ConnectionFailed, ConnectionLost, PaddockError, Unavailable, of_event
from ..events import CodeEvent, Ended, Exited, Output, RunEvent, Started, code_event, run_event
from ..models import Event, FileEvent
from .api import AsyncApi

T = TypeVar("T")
S = TypeVar("S", bound="AsyncStream[Any]")
QUIET = 60.0  # seconds; the server says something every 15


class AsyncStream(Generic[T]):
    """An iterator over what comes, and a context manager which closes the connection."""

    def __init__(self, api: AsyncApi, request: Callable[[], httpx.Request]) -> None:
        self._api, self._request = api, request
        self._response: Optional[httpx.Response] = None
        self._chunks: Optional[AsyncIterator[bytes]] = None
        self._pending: Deque[T] = deque()
        self._over, self._failures = False, 0

    # -- what a kind of stream says

    def _reset(self) -> None:
        """A new connection: its bytes begin anew."""

    def _feed(self, data: bytes) -> None:
        """Puts what the bytes mean into _pending; sets _over at the end."""
        raise NotImplementedError

    def _resumed(self) -> Optional[httpx.Request]:
        """The request that continues after a loss, or None if nothing does."""
        return None

    # -- what all do

    async def _open(self, request: httpx.Request) -> None:
        self._response = await self._api.send(request)
        stream = self._response.stream
        assert isinstance(stream, httpx.AsyncByteStream)
        self._chunks = stream.__aiter__()
        self._reset()

    async def _drop(self) -> None:
        response, self._response, self._chunks = self._response, None, None
        if response is not None and isinstance(response.stream, httpx.AsyncByteStream):
            await response.stream.aclose()

    async def _read(self) -> None:
        """Takes the next bytes, over as many connections as that needs."""
        try:
            if self._chunks is None:
                again = self._resumed() if self._failures else None
                await self._open(again or self._request())
            assert self._chunks is not None
            self._feed(await self._chunks.__anext__())
            if self._pending:
                self._failures = 0
            return
        except StopAsyncIteration:
            loss: PaddockError = ConnectionLost("the stream ended before what it is about did")
        except httpx.TransportError as error:
            loss = ConnectionLost(f"the stream broke off: {error or type(error).__name__}")
        except (ConnectionFailed, Unavailable) as error:
            loss = error
        await self._drop()
        self._failures += 1
        if self._over:
            return
        if self._resumed() is None or self._failures > self._api.retries + 3:
            self._over = True
            raise loss
        await async_sleep(0.1 * 2 ** (self._failures - 1))

    async def __anext__(self) -> T:
        while not self._pending:
            if self._over:
                await self._drop()
                raise StopAsyncIteration
            await self._read()
        return self._pending.popleft()

    def __aiter__(self: S) -> S:
        return self

    async def aclose(self) -> None:
        """Closes the connection. What the stream is about goes on, unless it was told otherwise."""
        self._over = True
        self._pending.clear()
        await self._drop()

    async def __aenter__(self: S) -> S:
        if self._chunks is None and not self._over:
            await self._open(self._request())
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


class AsyncRunStream(AsyncStream[RunEvent]):
    """A command as it runs: Started, Output…, Exited. `result` is the last event, `pid` known from the first."""

    def __init__(self, api: AsyncApi, sandbox: str, request: Callable[[], httpx.Request], *, resumable: bool = True, process: Optional[str] = None) -> None:
        super().__init__(api, request)
        self._sandbox, self._resumable, self._process = sandbox, resumable, process
        self._next: Dict[str, int] = {"stdout": 0, "stderr": 0}
        self._lines, self._started = Lines(), False
        self.pid: Optional[int] = None
        self.result: Optional[Exited] = None

    def _reset(self) -> None:
        self._lines = Lines()

    def _resumed(self) -> Optional[httpx.Request]:
        if not self._resumable or not (self.pid or self._process):
            return None
        path = f"{self._sandbox}/processes/{self.pid or self._process}/output"
        return self._api.build("GET", path + query({"follow": 1, **self._next}), accept=NDJSON, timeout=QUIET)

    def _feed(self, data: bytes) -> None:
        for document in self._lines.feed(data):
            if document.get("type") == "error":
                self._over = True
                raise of_event(document)
            event = run_event(document)
            if isinstance(event, Started):
                self.pid = event.pid
                if self._started:
                    continue  # of a connection after the first
                self._started = True
            elif isinstance(event, Output):
                event = event.after(self._next[event.type])
                if event is None:
                    continue
                self._next[event.type] = event.end
            elif isinstance(event, Exited):
                self.result, self._over = event, True
            if event is not None:
                self._pending.append(event)

    async def wait(self) -> Exited:
        """Reads the rest and returns how it ended."""
        async for _ in self:
            pass
        if self.result is None:
            raise ConnectionLost("the stream was closed before the end of the command")
        return self.result


class AsyncCodeStream(AsyncStream[CodeEvent]):
    """Code as it runs: StartedCode, Output, ExecutionResult…, ExecutionError if it failed, Ended."""

    def __init__(self, api: AsyncApi, request: Callable[[], httpx.Request]) -> None:
        super().__init__(api, request)
        self._lines = Lines()
        self.result: Optional[Ended] = None

    def _feed(self, data: bytes) -> None:
        for document in self._lines.feed(data):
            if document.get("type") == "error" and "code" in document:
                self._over = True
                raise of_event(document)
            event = code_event(document)
            if isinstance(event, Ended):
                self.result, self._over = event, True
            if event is not None:
                self._pending.append(event)


class AsyncEventStream(AsyncStream[Event]):
    """Events as they happen, without an end. `lost` says whether some were missed because the server no longer had them."""

    def __init__(self, api: AsyncApi, params: Dict[str, Union[str, int, None]]) -> None:
        super().__init__(api, lambda: api.build("GET", "/v1/events" + query(params), accept=SSE, timeout=QUIET))
        self._params, self._events = params, ServerEvents()
        self.lost = False

    def _reset(self) -> None:
        self._events = ServerEvents()

    def _resumed(self) -> Optional[httpx.Request]:
        return self._request()

    def _feed(self, data: bytes) -> None:
        for event in self._events.feed(data):
            if event.type == "lost":
                self.lost = True
            elif event.data:
                found = Event._of(json.loads(event.data))
                self._params["after"] = found.id
                self._pending.append(found)


class AsyncWatch(AsyncStream[FileEvent]):
    """Changes of files. When the `with` block begins, everything that happens from then on is reported."""

    def __init__(self, api: AsyncApi, request: Callable[[], httpx.Request]) -> None:
        super().__init__(api, request)
        self._events, self.ready = ServerEvents(), False

    def _feed(self, data: bytes) -> None:
        for event in self._events.feed(data):
            self._take(event)

    def _take(self, event: ServerEvent) -> None:
        document = json.loads(event.data) if event.data else {}
        if event.type == "ready":
            self.ready = True
        elif event.type == "end":
            self._over = True
        elif event.type == "error":
            self._over = True
            raise of_event(document)
        elif document or event.type == "overflow":
            self._pending.append(FileEvent._of({"type": event.type, "path": "", "directory": False, **document}))

    async def __aenter__(self: W) -> W:
        while not self.ready and not self._over:
            await self._read()
        return self


W = TypeVar("W", bound=AsyncWatch)
