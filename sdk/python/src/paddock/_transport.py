"""What carries the requests of both clients.

The synchronous client has httpx's transport. With await, that transport spends most of a short call in its locks and in anyio's
cancel scopes (0.3 ms of 0.5 above a bare connection), so requests without TLS under asyncio go over connections of our own. h11
reads and writes the protocol for both. Whatever else there is, TLS and other event loops, is httpx's.
"""

from __future__ import annotations

import asyncio
import select
import ssl
import time
from typing import AsyncIterator, Dict, List, Optional, Set, Tuple, Type, Union, cast

import h11
import httpx

CONNECTIONS = httpx.Limits(max_connections=None, max_keepalive_connections=20, keepalive_expiry=30)
HELD = 1 << 18  # bytes that were received and not read; more stay in the kernel
HEAD = 100 * 1024  # bytes of an answer's head

Verify = Union[ssl.SSLContext, bool]
Origin = Tuple[str, int]


def readable(descriptor: int) -> bool:
    """Whether something can be read without waiting: of a connection in no use, that is its end."""
    if hasattr(select, "poll"):
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        return bool(poll.poll(0))
    return bool(select.select([descriptor], [], [], 0)[0])


class Latch:
    """Something that one task waits for, with a time limit that costs no second task."""

    def __init__(self, loop: asyncio.AbstractEventLoop, late: Type[httpx.TimeoutException]) -> None:
        self.loop, self.late = loop, late
        self.waiter: Optional[asyncio.Future[None]] = None

    def open(self) -> None:
        if self.waiter is not None and not self.waiter.done():
            self.waiter.set_result(None)

    def _expire(self, waiter: asyncio.Future[None]) -> None:
        if not waiter.done():
            waiter.set_exception(self.late("it took too long"))

    async def wait(self, timeout: Optional[float]) -> None:
        waiter = self.waiter = self.loop.create_future()
        timer = None if timeout is None else self.loop.call_later(timeout, self._expire, waiter)
        try:
            await waiter
        finally:
            self.waiter = None
            if timer is not None:
                timer.cancel()


class Connection(asyncio.Protocol):
    """One connection, for one request at a time. After the answer to an upgrade, `read` and `write` are all it has."""

    def __init__(self, loop: asyncio.AbstractEventLoop, origin: Origin) -> None:
        self.loop, self.origin, self.since = loop, origin, 0.0
        self.http = h11.Connection(h11.CLIENT, max_incomplete_event_size=HEAD)
        self.inbox, self.held = bytearray(), False
        self.input, self.output = Latch(loop, httpx.ReadTimeout), Latch(loop, httpx.WriteTimeout)
        self.ended, self.gone, self.full = False, False, False  # nothing more comes; asyncio is done with it; nothing more fits
        self.error: Optional[Exception] = None

    # -- what asyncio tells

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)  # uvloop's is none by its class

    def data_received(self, data: bytes) -> None:
        self.inbox += data
        if len(self.inbox) > HELD and not self.held:
            self.held = True
            self.transport.pause_reading()
        self.input.open()

    def eof_received(self) -> None:
        self.ended = True
        self.input.open()

    def connection_lost(self, error: Optional[Exception]) -> None:
        self.ended, self.gone, self.error = True, True, error
        self.input.open()
        self.output.open()

    def pause_writing(self) -> None:
        self.full = True

    def resume_writing(self) -> None:
        self.full = False
        self.output.open()

    # -- bytes

    async def read(self, limit: int, timeout: Optional[float] = None) -> bytes:
        """b"" is the end."""
        if not self.inbox:
            if not self.ended:
                await self.input.wait(timeout)
            if not self.inbox:
                if self.error is not None:
                    raise httpx.ReadError(str(self.error)) from self.error
                return b""
        data = bytes(self.inbox[:limit])
        del self.inbox[:limit]
        if self.held and len(self.inbox) <= HELD // 2:
            self.held = False
            if not self.gone:
                self.transport.resume_reading()
        return data

    async def write(self, data: bytes, timeout: Optional[float] = None) -> None:
        if not self.ended:
            self.transport.write(data)
            while self.full and not self.ended:
                await self.output.wait(timeout)
        if self.ended:
            raise httpx.WriteError(str(self.error or "the server closed the connection"))

    def close(self) -> None:
        self.ended = True
        if not self.gone:
            self.transport.abort()

    async def aclose(self) -> None:
        self.ended = True
        if not self.gone:
            self.transport.close()

    # -- messages

    async def send(self, request: httpx.Request, timeout: Optional[float]) -> None:
        http, stream = self.http, request.stream
        assert isinstance(stream, httpx.AsyncByteStream)
        try:
            data = http.send(h11.Request(method=request.method, target=request.url.raw_path, headers=request.headers.raw)) or b""
            async for piece in stream:
                if data and not isinstance(stream, httpx.ByteStream):
                    await self.write(data, timeout)
                    data = b""
                data += http.send(h11.Data(data=piece)) or b""
            data += http.send(h11.EndOfMessage()) or b""
        except h11.LocalProtocolError as error:
            raise httpx.LocalProtocolError(str(error)) from error
        if data:
            await self.write(data, timeout)

    async def event(self, timeout: Optional[float]) -> Union[h11.Event, Type[h11.NEED_DATA], Type[h11.PAUSED]]:
        """The next part of the answer. It is never NEED_DATA."""
        http = self.http
        try:
            while (event := http.next_event()) is h11.NEED_DATA:
                data = await self.read(65536, timeout)
                if not data and http.their_state is h11.SEND_RESPONSE:
                    raise httpx.RemoteProtocolError("the server closed the connection without an answer")
                http.receive_data(data)
        except h11.RemoteProtocolError as error:
            raise httpx.RemoteProtocolError(str(error)) from error
        return event

    async def answer(self, timeout: Optional[float]) -> Union[h11.Response, h11.InformationalResponse]:
        while True:
            event = await self.event(timeout)
            if isinstance(event, h11.Response):
                return event
            if isinstance(event, h11.InformationalResponse) and event.status_code == 101:
                self.inbox[:0] = self.http.trailing_data[0]
                return event

    def usable(self, loop: asyncio.AbstractEventLoop, now: float) -> bool:
        """Whether it can have another request: nothing came since the last answer, not even the end."""
        if self.loop is not loop or self.ended or self.inbox or now - self.since > (CONNECTIONS.keepalive_expiry or 0):
            return False
        return not readable(self.transport.get_extra_info("socket").fileno())


class Body(httpx.AsyncByteStream):
    """The body of an answer. Closing it gives the connection back if everything was read."""

    def __init__(self, pool: Pool, connection: Connection, timeout: Optional[float]) -> None:
        self.pool, self.connection, self.timeout = pool, connection, timeout
        self.closed = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while isinstance(event := await self.connection.event(self.timeout), h11.Data):
            yield bytes(event.data)

    async def aclose(self) -> None:
        if not self.closed:
            self.closed = True
            self.pool.give(self.connection)


class Pool:
    """Connections of our own, to be used again."""

    def __init__(self) -> None:
        self.idle: Dict[Origin, List[Connection]] = {}
        self.all: Set[Connection] = set()

    async def take(self, origin: Origin, timeout: Optional[float]) -> Connection:
        loop, now, idle = asyncio.get_running_loop(), time.monotonic(), self.idle.get(origin)
        while idle:
            connection = idle.pop()
            if connection.usable(loop, now):
                return connection
            self.drop(connection)
        try:
            opening = loop.create_connection(lambda: Connection(loop, origin), *origin)
            connection = (await asyncio.wait_for(opening, timeout))[1]
        except asyncio.TimeoutError as error:
            raise httpx.ConnectTimeout("no answer") from error
        except OSError as error:
            raise httpx.ConnectError(str(error)) from error
        self.all.add(connection)
        return connection

    def give(self, connection: Connection) -> None:
        http, idle = connection.http, self.idle.setdefault(connection.origin, [])
        if http.our_state is h11.DONE and http.their_state is h11.DONE and not connection.ended and connection in self.all:
            http.start_next_cycle()
            connection.since = time.monotonic()
            idle.append(connection)
            if len(idle) > (CONNECTIONS.max_keepalive_connections or 0):
                self.drop(idle.pop(0))
        else:
            self.drop(connection)

    def drop(self, connection: Connection) -> None:
        self.all.discard(connection)
        if not connection.loop.is_closed():
            connection.close()

    async def send(self, request: httpx.Request) -> httpx.Response:
        url, limits = request.url, request.extensions.get("timeout", {})
        connection = await self.take((url.host, url.port or 80), limits.get("connect"))
        try:
            try:
                await connection.send(request, limits.get("write"))
            except httpx.WriteError:
                pass  # the server may have answered before it closed
            head = await connection.answer(limits.get("read"))
        except BaseException:
            self.drop(connection)
            raise
        return httpx.Response(
            head.status_code,
            headers=head.headers.raw_items(),
            stream=Body(self, connection, limits.get("read")),
            extensions={"http_version": b"HTTP/" + head.http_version, "reason_phrase": head.reason, "network_stream": connection},
        )

    def close(self) -> None:
        for connection in list(self.all):
            self.drop(connection)
        self.idle.clear()


def Transport(verify: Verify) -> httpx.BaseTransport:
    """Of the synchronous client."""
    return httpx.HTTPTransport(verify=verify, limits=CONNECTIONS)


class AsyncTransport(httpx.AsyncBaseTransport):
    """Of the client with await."""

    def __init__(self, verify: Verify) -> None:
        self.verify, self.pool = verify, Pool()
        self.other: Optional[httpx.AsyncHTTPTransport] = None

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        if request.url.scheme == "http":
            try:
                ours = asyncio.current_task() is not None
            except RuntimeError:  # another library's loop
                ours = False
            if ours:
                return await self.pool.send(request)
        if self.other is None:
            self.other = httpx.AsyncHTTPTransport(verify=self.verify, limits=CONNECTIONS)
        return await self.other.handle_async_request(request)

    async def aclose(self) -> None:
        self.pool.close()
        if self.other is not None:
            await self.other.aclose()
