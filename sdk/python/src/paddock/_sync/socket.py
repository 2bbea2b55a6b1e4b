# Made by sdk/python/generate from _async/socket.py. Edit that instead.
"""Terminals and tunnels: WebSockets over the connections of httpx."""

from __future__ import annotations

import json
from collections import deque
from typing import Any, Iterator, Callable, Deque, Dict, Mapping, Optional, Tuple, TypeVar, Union

import httpcore
import httpx

from .._compat import Lock, sleep
from .._http import headers_of, query
from .._wire import BINARY, CLOSE, PING, PONG, TEXT, Frames, ProtocolError, frame, handshake
from ..errors import ConnectionFailed, ConnectionLost, Unavailable, of_answer, of_event
from ..models import ProcessExit
from .api import Api

BROKEN = (httpx.TransportError, httpcore.NetworkError, httpcore.TimeoutException, httpcore.ProtocolError, OSError)
TM = TypeVar("TM", bound="Terminal")
TN = TypeVar("TN", bound="Tunnel")


class WebSocket:
    """One connection. Messages are (opcode, bytes); None is the end."""

    def __init__(self, api: Api, path: str) -> None:
        self._api, self._path = api, path
        self._stream: Any = None  # httpcore's network stream
        self._response: Optional[httpx.Response] = None
        self._frames, self._inbox = Frames(), deque()  # type: Frames, Deque[Tuple[int, bytes]]
        self._lock, self._ended = Lock(), False

    def connect(self) -> None:
        headers, accept = handshake()
        request = self._api.build("GET", self._path, headers=headers)
        try:
            response = self._api.transport_for(request).handle_request(request)
        except httpx.TransportError as error:
            raise self._api.lost(request, error) from error
        if response.status_code != 101:
            raise of_answer(response.status_code, headers_of(response), self._api.body(request, response))
        if response.headers.get("sec-websocket-accept") != accept:
            raise ProtocolError("the server's WebSocket handshake is not valid")
        self._response, self._stream = response, response.extensions["network_stream"]

    def receive(self, timeout: Optional[float] = None) -> Optional[Tuple[int, bytes]]:
        while not self._inbox:
            if self._ended:
                return None
            data = self._stream.read(65536, timeout=timeout)
            if not data:
                raise ConnectionLost("the server closed the connection")
            for opcode, payload in self._frames.feed(data):
                if opcode == PING:
                    self._write(frame(PONG, payload))
                elif opcode == CLOSE:
                    self._ended = True
                elif opcode != PONG:
                    self._inbox.append((opcode, payload))
        return self._inbox.popleft()

    def send(self, opcode: int, data: bytes) -> None:
        self._write(frame(opcode, data))

    def _write(self, data: bytes) -> None:
        with self._lock:
            self._stream.write(data)

    def close(self) -> None:
        stream, response, self._stream, self._response = self._stream, self._response, None, None
        if stream is not None:
            try:
                stream.write(frame(CLOSE, b"\x03\xe8"))
            except BROKEN:
                pass  # it is gone, which is what was wanted
            stream.close()
        if response is not None and isinstance(response.stream, httpx.SyncByteStream):
            response.stream.close()


class Terminal:
    """A terminal in a sandbox. Iterating it yields its output until its program ends; then `exit` says how.

    The program outlives the connection. A connection that breaks is made again, and no byte of the output is lost.
    """

    def __init__(self, api: Api, sandbox: str, params: Mapping[str, Union[str, int, bool, None]]) -> None:
        self._api, self._sandbox, self._params = api, sandbox, dict(params)
        self._socket: Optional[WebSocket] = None
        self._closed = False
        self.pid: Optional[int] = None
        #: The next byte of the output.
        self.offset = int(params.get("offset") or 0)
        self.exit: Optional[ProcessExit] = None

    def connect(self) -> None:
        """Opens the terminal, or takes it up again. Reading and writing do this as well."""
        params = self._params
        if self.pid is not None:
            params = {"process": self.pid, "offset": self.offset, "kill_on_disconnect": params.get("kill_on_disconnect")}
        socket = WebSocket(self._api, f"{self._sandbox}/terminal" + query(params))
        socket.connect()
        self._socket = socket
        while self._socket is not None and not self._take():
            pass

    def _take(self) -> bytes:
        """The next message: its bytes, or none if it said something else. b"attached" only has to be true."""
        assert self._socket is not None
        message = self._socket.receive()
        if message is None:
            self._drop()
            if self.exit is None and not self._closed:
                raise ConnectionLost("the server closed the terminal's connection")
            return b""
        opcode, data = message
        if opcode == BINARY:
            self.offset += len(data)
            return data
        document: Dict[str, Any] = json.loads(data)
        if document.get("type") == "attached":
            self.pid, self.offset = document["pid"], document["offset"]
            return b"attached"
        if document.get("type") == "exit":
            self.exit = ProcessExit._of(document)
            self._drop()
        elif document.get("type") == "error":
            self._drop()
            raise of_event(document)
        return b""

    def _drop(self) -> None:
        socket, self._socket = self._socket, None
        if socket is not None:
            socket.close()

    def read(self) -> bytes:
        """Output, as soon as there is some; b"" after the program's end."""
        failures = 0
        while self.exit is None and not self._closed:
            try:
                if self._socket is None:
                    self.connect()
                data = self._take() if self._socket is not None else b""
                if data:
                    return data
                failures = 0
            except (ConnectionFailed, Unavailable, *BROKEN) as error:
                self._drop()
                failures += 1
                if self._closed:
                    return b""
                if failures > self._api.retries + 3:
                    raise ConnectionLost(f"the terminal's connection broke off: {error or type(error).__name__}") from error
                sleep(0.1 * 2 ** (failures - 1))
        return b""

    def read_until(self, what: Union[str, bytes, Callable[[bytes], bool]]) -> bytes:
        """Output up to and with the first piece in which `what` has come, or all until the program's end."""
        seen = bytearray()
        wanted = what.encode() if isinstance(what, str) else what
        while piece := self.read():
            seen += piece
            if wanted(bytes(seen)) if callable(wanted) else wanted in seen:
                break
        return bytes(seen)

    def write(self, data: Union[str, bytes]) -> None:
        """Types. ConnectionLost means that the program may or may not have got it."""
        self._send(BINARY, data.encode() if isinstance(data, str) else data)

    def resize(self, cols: int, rows: int) -> None:
        self._send(TEXT, json.dumps({"type": "resize", "cols": cols, "rows": rows}).encode())

    def _send(self, opcode: int, data: bytes) -> None:
        if self._socket is None:
            self.connect()
        assert self._socket is not None
        try:
            self._socket.send(opcode, data)
        except BROKEN as error:
            raise ConnectionLost(f"the terminal's connection broke off: {error or type(error).__name__}") from error

    def __iter__(self) -> Iterator[bytes]:
        while piece := self.read():
            yield piece

    def close(self) -> None:
        """Leaves. The program goes on, unless `kill_on_disconnect` was set; `sandbox.processes` ends it."""
        self._closed = True
        self._drop()

    def __enter__(self: TM) -> TM:
        if self._socket is None and self.exit is None:
            self.connect()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Tunnel:
    """A TCP connection to a port in a sandbox."""

    def __init__(self, api: Api, path: str) -> None:
        self._socket = WebSocket(api, path)
        self._open, self._ended = False, False

    def connect(self) -> None:
        if not self._open:
            self._socket.connect()
            self._open = True

    def read(self) -> bytes:
        """Bytes as they come; b"" when the other side sends no more."""
        self.connect()
        while not self._ended:
            try:
                message = self._socket.receive()
            except BROKEN as error:
                raise ConnectionLost(f"the tunnel broke off: {error or type(error).__name__}") from error
            if message is None or message[0] == TEXT:
                self._ended = True
            elif message[1]:
                return message[1]
        return b""

    def write(self, data: bytes) -> None:
        self.connect()
        try:
            self._socket.send(BINARY, data)
        except BROKEN as error:
            raise ConnectionLost(f"the tunnel broke off: {error or type(error).__name__}") from error

    def end(self) -> None:
        """Says that no more bytes follow; the other side may still send."""
        self.connect()
        self._socket.send(TEXT, b"end")

    def close(self) -> None:
        self._socket.close()

    def __enter__(self: TN) -> TN:
        self.connect()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
