"""What some models of models.py can do besides holding their fields."""

from __future__ import annotations

import base64
from datetime import datetime
from typing import Optional, Tuple

from .errors import CommandFailed


def moment(text: str) -> datetime:
    """A time as the API writes it. (Python before 3.11 does not read a Z.)"""
    return datetime.fromisoformat(text[:-1] + "+00:00" if text.endswith("Z") else text)


def decode(data: str, encoding: str) -> bytes:
    return base64.b64decode(data) if encoding == "base64" else data.encode("utf-8", "surrogatepass")


class Outputs:
    """stdout and stderr as text and as bytes. The API sends base64 where one of them is not UTF-8; `stdout` and `stderr` are
    text even then, with U+FFFD for what is none."""

    exit_code: int
    stdout: str
    stderr: str
    encoding: str
    _raw: Optional[Tuple[bytes, bytes]] = None

    def __post_init__(self) -> None:
        if self.encoding == "base64":
            self._raw = base64.b64decode(self.stdout), base64.b64decode(self.stderr)
            self.stdout, self.stderr = (each.decode("utf-8", "replace") for each in self._raw)

    @property
    def stdout_bytes(self) -> bytes:
        return self._raw[0] if self._raw else self.stdout.encode("utf-8", "surrogatepass")

    @property
    def stderr_bytes(self) -> bytes:
        return self._raw[1] if self._raw else self.stderr.encode("utf-8", "surrogatepass")

    @property
    def ok(self) -> bool:
        """Whether the command exited with 0."""
        return self.exit_code == 0

    def check(self) -> None:
        """Raises CommandFailed unless the command exited with 0."""
        if not self.ok:
            raise CommandFailed(self)


class CodeOutputs(Outputs):
    """The same for code: it has an error instead of an exit code."""

    error: Optional[object]

    @property
    def ok(self) -> bool:
        """Whether the code raised nothing."""
        return self.error is None


class Piece:
    """A piece of output with its place in the whole."""

    offset: int
    data: str
    encoding: str
    _raw: Optional[bytes] = None

    def __post_init__(self) -> None:
        if self.encoding == "base64":
            self._raw = base64.b64decode(self.data)
            self.data = self._raw.decode("utf-8", "replace")

    @property
    def bytes(self) -> bytes:
        return self._raw if self._raw is not None else self.data.encode("utf-8", "surrogatepass")

    @property
    def end(self) -> int:
        """The offset of the byte after the last one."""
        return self.offset + len(self.bytes)
