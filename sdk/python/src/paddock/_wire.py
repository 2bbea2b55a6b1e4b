"""Protocols without I/O: lines of JSON, Server-Sent Events, WebSocket frames. Bytes go in, what they say comes out."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import struct
from dataclasses import dataclass
from typing import Any, Dict, Iterator, List, Optional, Tuple

from .errors import PaddockError


class Lines:
    """Objects, one per line."""

    def __init__(self) -> None:
        self.rest: List[bytes] = []

    def feed(self, data: bytes) -> Iterator[Dict[str, Any]]:
        if b"\n" not in data:
            self.rest.append(data)
            return
        *lines, rest = (b"".join(self.rest) + data).split(b"\n")
        self.rest = [rest] if rest else []
        for line in lines:
            if line.strip():
                yield json.loads(line)


@dataclass
class ServerEvent:
    type: str
    data: str
    id: Optional[str]


class ServerEvents:
    """Server-Sent Events, as the HTML standard has them."""

    def __init__(self) -> None:
        self.rest = b""
        self.type, self.data, self.id = "", [""][:0], None  # type: str, List[str], Optional[str]

    def feed(self, data: bytes) -> Iterator[ServerEvent]:
        *lines, self.rest = (self.rest + data).split(b"\n")
        for raw in lines:
            line = raw.rstrip(b"\r").decode("utf-8", "replace")
            if not line:
                if self.data or self.type:
                    yield ServerEvent(self.type or "message", "\n".join(self.data), self.id)
                self.type, self.data = "", []
                continue
            name, _, value = line.partition(":")
            value = value[1:] if value.startswith(" ") else value
            if name == "event":
                self.type = value
            elif name == "data":
                self.data.append(value)
            elif name == "id":
                self.id = value


# ---- WebSocket, RFC 6455, the client's half

TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10
MESSAGE_MAX = 64 << 20


class ProtocolError(PaddockError):
    """The server does not speak as it should."""


def handshake() -> Tuple[Dict[str, str], str]:
    """(headers of the request, the Sec-WebSocket-Accept that must come back)"""
    key = base64.b64encode(os.urandom(16)).decode()
    accept = base64.b64encode(hashlib.sha1(f"{key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11".encode()).digest()).decode()
    return {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": key}, accept


def frame(opcode: int, data: bytes) -> bytes:
    """One final frame, masked as a client's must be."""
    size = len(data)
    head = bytes([0x80 | opcode])
    if size < 126:
        head += bytes([0x80 | size])
    elif size < 1 << 16:
        head += struct.pack("!BH", 0x80 | 126, size)
    else:
        head += struct.pack("!BQ", 0x80 | 127, size)
    mask = os.urandom(4)
    pattern = (mask * (size // 4 + 1))[:size]
    masked = (int.from_bytes(data, "big") ^ int.from_bytes(pattern, "big")).to_bytes(size, "big")
    return head + mask + masked


class Frames:
    """Messages out of bytes: (opcode, data); fragments are put together."""

    def __init__(self) -> None:
        self.rest = bytearray()
        self.opcode, self.parts, self.size = 0, [b""][:0], 0  # type: int, List[bytes], int

    def feed(self, data: bytes) -> Iterator[Tuple[int, bytes]]:
        self.rest += data
        while (found := self._frame()) is not None:
            final, opcode, payload = found
            if opcode >= CLOSE:
                yield opcode, payload
                continue
            if (opcode == 0) != bool(self.opcode):
                raise ProtocolError("a fragment of a message out of its order")
            self.opcode = opcode or self.opcode
            self.size += len(payload)
            if self.size > MESSAGE_MAX:
                raise ProtocolError("a message is too large")
            self.parts.append(payload)
            if final:
                message = self.opcode, b"".join(self.parts)
                self.opcode, self.parts, self.size = 0, [], 0
                yield message

    def _frame(self) -> Optional[Tuple[bool, int, bytes]]:
        rest = self.rest
        if len(rest) < 2:
            return None
        size, at = rest[1] & 0x7F, 2
        if rest[1] & 0x80:
            raise ProtocolError("a frame of the server is masked")
        if size >= 126:
            width = 2 if size == 126 else 8
            if len(rest) < 2 + width:
                return None
            size, at = int.from_bytes(rest[2 : 2 + width], "big"), 2 + width
        if size > MESSAGE_MAX:
            raise ProtocolError("a frame is too large")
        if len(rest) < at + size:
            return None
        final, opcode, payload = bool(rest[0] & 0x80), rest[0] & 0x0F, bytes(rest[at : at + size])
        del rest[: at + size]
        return final, opcode, payload
