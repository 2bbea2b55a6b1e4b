"""What the headers of a file's answer say."""

from __future__ import annotations

from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Mapping, Optional


class FileStat:
    """Type, size, mode and time of a file."""

    def __init__(self, headers: Mapping[str, str]) -> None:
        self.size = int(headers.get("content-length", 0))
        self.mode: str = headers.get("x-file-mode", "")
        self.type: str = headers.get("x-file-type", "unknown")
        modified = headers.get("last-modified")
        self.modified_at: Optional[datetime] = parsedate_to_datetime(modified) if modified else None

    def __repr__(self) -> str:
        return f"FileStat(type={self.type!r}, size={self.size}, mode={self.mode!r}, modified_at={self.modified_at!r})"
