"""Where the server is, and which key opens it.

As for the command line: what is passed, then PADDOCK_URL, PADDOCK_API_KEY and PADDOCK_KEY_FILE, then this machine's daemon.
The key of this machine's daemon is sent to this machine only.
"""

from __future__ import annotations

import ipaddress
import json
import os
import stat
from dataclasses import dataclass
from typing import Optional
from urllib.parse import urlsplit

from .errors import ConfigurationError

NOTE = "/run/paddock.json"  # the daemon's note on where it listens and where its key is
DEFAULT_URL = "http://127.0.0.1:7080"
DEFAULT_KEYS = ("/var/lib/paddock/admin.key", "./var/lib/admin.key")


@dataclass(frozen=True)
class Settings:
    url: str
    key: Optional[str]
    ca: Optional[str]  # a file with the authorities to trust with https


@dataclass(frozen=True)
class Local:
    url: str
    key_file: str


def local_daemon() -> Optional[Local]:
    """The daemon of this machine, by its note: root's, of nobody else's writing, of a process that runs."""
    try:
        fd = os.open(NOTE, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    with os.fdopen(fd, "rb") as file:
        about = os.fstat(fd)
        if not stat.S_ISREG(about.st_mode) or about.st_uid != 0 or about.st_mode & 0o022:
            return None
        try:
            note = json.loads(file.read(8192))
            with open(f"/proc/{int(note['pid'])}/comm", encoding="ascii") as comm:
                if not comm.read().startswith("paddock"):
                    return None
            return Local(str(note["url"]), str(note["key_file"]))
        except (OSError, ValueError, KeyError, TypeError):
            return None


def is_loopback(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def read_key(path: str) -> str:
    try:
        with open(path, encoding="ascii") as file:
            return file.read().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"cannot read the key file {path}: {error}") from error


def find_key(url: str, local: Optional[Local]) -> str:
    key, file = os.environ.get("PADDOCK_API_KEY"), os.environ.get("PADDOCK_KEY_FILE")
    if key:
        return key.strip()
    if file:
        return read_key(file)
    if is_loopback(url):
        for path in ([local.key_file] if local and local.url == url else []) + list(DEFAULT_KEYS):
            if os.access(path, os.R_OK):
                return read_key(path)
    raise ConfigurationError(
        f"no API key for {url}: set PADDOCK_API_KEY, or pass key=; `paddock key create` makes a key"
        + (" (on the server's machine, root finds the daemon's own)" if is_loopback(url) else "")
    )


def find(url: Optional[str] = None, key: Optional[str] = None, ca: Optional[str] = None) -> Settings:
    local = local_daemon()
    url = (url or os.environ.get("PADDOCK_URL") or (local.url if local else DEFAULT_URL)).rstrip("/")
    if urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).hostname:
        raise ConfigurationError(f"{url!r} is not an address of a server, such as http://127.0.0.1:7080")
    key = key or find_key(url, local)
    if not key.isascii() or not key.isprintable():
        raise ConfigurationError("the API key contains characters that no key has")
    return Settings(url, key, ca or os.environ.get("PADDOCK_CA") or None)
