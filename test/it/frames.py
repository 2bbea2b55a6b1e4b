"""The internal protocol (docs/wire.md) for tests that stand in for one of our programs.

Numbers come from api/wire.proto; messages are {field number: str | bytes | int | [..]}.
"""

import array
import os
import re
import signal
import socket
import struct
import subprocess
from fcntl import F_DUPFD, fcntl
from pathlib import Path

import paddock

PROTO = (Path(__file__).resolve().parents[2] / "api" / "wire.proto").read_text()
TYPES = {name: int(number) for name, number in re.findall(r"^  TYPE_(\w+) = (\d+);", PROTO, re.M)}
ROLES = {name: int(number) for name, number in re.findall(r"^  VAULT_ROLE_(\w+) = (\d+);", PROTO, re.M)}
CALL, REPLY, FAIL, EVENT = 1, 2, 3, 8
LAST, FD = 1, 2
HEADER = struct.Struct("<IHBBII")


def varint(number):
    out = b""
    while number > 127:
        out, number = out + bytes([number & 127 | 128]), number >> 7
    return out + bytes([number])


def encode(fields):
    out = b""
    for number, value in fields.items():
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, int):
                out += varint(number << 3) + varint(each)
            else:
                raw = each.encode() if isinstance(each, str) else encode(each) if isinstance(each, dict) else each
                out += varint(number << 3 | 2) + varint(len(raw)) + raw
    return out


def decode(data):
    """{field number: bytes or int}; the last of each."""
    def take():
        nonlocal at
        number = shift = 0
        while True:
            byte = data[at]
            at, number, shift = at + 1, number | (byte & 127) << shift, shift + 7
            if byte < 128:
                return number

    at, fields = 0, {}
    while at < len(data):
        key = take()
        if key & 7 == 0:
            fields[key >> 3] = take()
        else:
            size = take()
            fields[key >> 3], at = data[at:at + size], at + size
    return fields


class Failed(Exception):
    """A FAIL frame: its code."""


class Channel:
    """One end of a channel."""

    def __init__(self, end):
        self.end, self.stream = end, 0
        self.end.settimeout(20)

    @classmethod
    def pair(cls):
        ours, theirs = socket.socketpair()
        return cls(ours), theirs

    def send(self, kind, name, fields, stream=0, flags=0, fd=None):
        body = encode(fields)
        data = HEADER.pack(len(body), TYPES[name], kind, flags | (FD if fd is not None else 0), stream, 0) + body
        fds = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [fd]))] if fd is not None else []
        sent = self.end.sendmsg([data], fds)
        self.end.sendall(data[sent:])

    def receive(self):
        """(kind, type, stream, body, fd or None); EOFError at the end."""
        head, fd = b"", None
        while len(head) < HEADER.size:
            data, control, _, _ = self.end.recvmsg(HEADER.size - len(head), socket.CMSG_SPACE(4))
            for _, _, raw in control:
                (fd,) = struct.unpack("i", raw)
            if not data:
                raise EOFError
            head += data
        size, number, kind, _, stream, _ = HEADER.unpack(head)
        body = b""
        while len(body) < size:
            piece = self.end.recv(size - len(body))
            if not piece:
                raise EOFError
            body += piece
        return kind, number, stream, body, fd

    def answer(self):
        """(fields, fd) of the next answer; Failed with the code."""
        kind, _, _, body, fd = self.receive()
        if kind == FAIL:
            raise Failed(decode(body)[1].decode())
        return decode(body), fd

    def call(self, name, fields):
        self.stream += 1
        self.send(CALL, name, fields, self.stream)
        return self.answer()[0]

    def code(self, name, fields):
        """The code that a call fails with; None where it does not."""
        try:
            self.call(name, fields)
        except Failed as failed:
            return str(failed)
        return None

    def bring(self, event, fields, other):
        """An EVENT with an fd, which is closed here."""
        self.send(EVENT, event, fields, fd=other.fileno())
        other.close()

    def close(self):
        self.end.close()


class Program:
    """One of our programs alone, with sockets (or fds) as its 3, 4, …"""

    def __init__(self, name, fds, **environment):
        high = [fcntl(each if isinstance(each, int) else each.fileno(), F_DUPFD, 100) for each in fds]

        def place():
            for number, fd in enumerate(high, 3):
                os.dup2(fd, number)
        self.process = subprocess.Popen([paddock.BIN / name], preexec_fn=place, close_fds=True, stdin=subprocess.DEVNULL,
                                        pass_fds=range(3, 3 + len(high)), env={k: str(v) for k, v in environment.items()})
        for fd in high:
            os.close(fd)
        for each in fds:
            if not isinstance(each, int):
                each.close()

    pid = property(lambda self: self.process.pid)

    def stop(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
