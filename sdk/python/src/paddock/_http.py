"""Requests and answers without the sending: what the synchronous and the asynchronous client share.

Requests go to a transport directly (see _transport.py). httpx.Client adds cookies, redirects and authentication, none of which the API
has, and doubles the time of a call.
"""

from __future__ import annotations

import json
import os
import platform
import random
import ssl
from typing import Any, AsyncIterator, Dict, Iterable, Iterator, List, Mapping, Optional, Tuple, Union
from urllib.parse import quote, urlencode, urlsplit

import httpx

from ._settings import Settings
from ._version import __version__
from .errors import ApiError, ConnectionFailed, ConnectionLost, PaddockError, RateLimited, Unavailable

AGENT = f"paddock-sandbox/{__version__} python/{platform.python_version()}"
NDJSON = "application/x-ndjson"
SSE = "text/event-stream"
IDEMPOTENT = frozenset(("GET", "HEAD", "PUT", "DELETE", "OPTIONS"))
NEVER: Optional[float] = None

Content = Union[bytes, bytearray, memoryview, str, Iterable[bytes]]
Scalar = Union[str, int, float, bool, None]


def segment(text: object) -> str:
    """One segment of a path: an id or a name."""
    return quote(str(text), safe="")


def file_segments(path: str) -> str:
    """An absolute path of a file as the rest of a URL's. Bytes that are no UTF-8 are as os.fsdecode leaves them."""
    return quote(os.fsencode(path.lstrip("/")), safe="/")


def query(params: Mapping[str, Scalar]) -> str:
    """Absent values are left out, booleans are 1 and 0."""
    given = [(key, str(int(value)) if isinstance(value, bool) else str(value)) for key, value in params.items() if value is not None]
    return "?" + urlencode(given, quote_via=quote) if given else ""


def given(**fields: Any) -> Dict[str, Any]:
    """The members of a body, without those that are None."""
    return {key.rstrip("_"): value for key, value in fields.items() if value is not None}


def milliseconds(timeout: Optional[float]) -> Optional[int]:
    return None if timeout is None else max(1, round(timeout * 1000))


class Chunks(httpx.SyncByteStream, httpx.AsyncByteStream):
    """A body that comes in pieces, from a file or a generator. It can be sent once."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self.pieces, self.begun = pieces, False

    def __iter__(self) -> Iterator[bytes]:
        self.begun = True
        read = getattr(self.pieces, "read", None)
        if read is None:
            yield from self.pieces
        else:
            while piece := read(1 << 18):
                yield piece.encode() if isinstance(piece, str) else piece

    async def __aiter__(self) -> AsyncIterator[bytes]:
        if hasattr(self.pieces, "__aiter__"):
            self.begun = True
            async for piece in self.pieces:
                yield piece
        else:
            for piece in self:
                yield piece


class ApiBase:
    """An address, a key, and the rules for trying again."""

    def __init__(self, settings: Settings, timeout: float, retries: int) -> None:
        self.settings, self.timeout, self.retries = settings, timeout, retries
        self.base = httpx.URL(settings.url)
        self.prefix = self.base.raw_path.rstrip(b"/").decode()
        self._urls: Dict[str, httpx.URL] = {}
        host = self.base.netloc
        self.headers: List[Tuple[bytes, bytes]] = [(b"Host", host), (b"User-Agent", AGENT.encode())]
        self.authorized = [*self.headers, (b"Authorization", f"Bearer {settings.key}".encode())] if settings.key else self.headers

    def _url(self, path: str) -> httpx.URL:
        """Remembered, as parsing one costs a tenth of a call."""
        if len(self._urls) >= 256:
            self._urls.clear()
        url = httpx.URL(path) if "://" in path else self.base.copy_with(raw_path=(self.prefix + path).encode("ascii"))
        self._urls[path] = url
        return url

    def verify(self) -> Union[ssl.SSLContext, bool]:
        """What checks the server's certificate. Without TLS nothing does, and reading the system's authorities takes 20 ms."""
        if self.base.scheme != "https":
            return False
        return ssl.create_default_context(cafile=self.settings.ca)

    def build(
        self,
        method: str,
        path: str,
        *,
        document: Any = None,
        content: Optional[Content] = None,
        accept: Optional[str] = None,
        headers: Optional[Mapping[str, str]] = None,
        timeout: Optional[float] = -1,
        authorize: bool = True,
    ) -> httpx.Request:
        """A request; `path` may be a URL. A timeout of None waits as long as the answer takes, -1 is the client's."""
        stream: Union[httpx.ByteStream, Chunks]
        url = self._urls.get(path) or self._url(path)
        fields = list(self.authorized if authorize else self.headers)
        if url.host != self.base.host or url.port != self.base.port:
            fields[0] = (b"Host", url.netloc)
            if url.host.endswith(".localhost"):
                url = url.copy_with(host="127.0.0.1")  # RFC 6761; not every resolver knows
        if document is not None:
            content = json.dumps(document, separators=(",", ":")).encode()
            fields.append((b"Content-Type", b"application/json"))
        if accept:
            fields.append((b"Accept", accept.encode()))
        if headers:
            fields += [(name.encode("ascii"), value.encode("latin-1")) for name, value in headers.items()]
        if isinstance(content, str):
            content = content.encode()
        if content is None or isinstance(content, (bytes, bytearray, memoryview)):
            body = bytes(content or b"")
            stream = httpx.ByteStream(body)
            if body or method not in ("GET", "HEAD", "DELETE"):
                fields.append((b"Content-Length", str(len(body)).encode()))
        else:
            stream = Chunks(content)
            fields.append((b"Transfer-Encoding", b"chunked"))
        limit = self.timeout if timeout == -1 else timeout
        limits = {"connect": 10.0, "read": limit, "write": self.timeout, "pool": self.timeout}
        return httpx.Request(method, url, headers=fields, stream=stream, extensions={"timeout": limits})

    def lost(self, request: httpx.Request, error: Exception) -> PaddockError:
        """What httpx says, in the words of this package."""
        where = f"{request.url.scheme}://{request.url.netloc.decode()}"
        if isinstance(error, (httpx.ConnectError, httpx.ConnectTimeout, httpx.UnsupportedProtocol)):
            return ConnectionFailed(f"cannot reach {where}: {error or 'no answer'}; is the server running, and PADDOCK_URL right?")
        if isinstance(error, httpx.TimeoutException):
            return ConnectionLost(f"no answer from {where} to {request.method} {request.url.path} in time")
        return ConnectionLost(f"the connection to {where} ended during {request.method} {request.url.path}: {error or type(error).__name__}")

    def wait(self, request: httpx.Request, attempt: int, error: PaddockError) -> Optional[float]:
        """Seconds until the next attempt, or None: a request is repeated only if the first cannot have done anything, or if
        doing it twice is the same as once."""
        stream = request.stream
        if attempt >= self.retries or isinstance(stream, Chunks) and stream.begun:
            return None
        pause = 0.1 * 2**attempt * random.uniform(0.8, 1.2)
        if isinstance(error, ApiError):
            if isinstance(error, RateLimited):
                pause = max(pause, error.retry_after or 0)
                return pause if pause <= 30 else None
            return pause if isinstance(error, Unavailable) and request.method in IDEMPOTENT else None
        sent = isinstance(error, ConnectionLost)
        return pause if not sent or request.method in IDEMPOTENT else None


def headers_of(response: httpx.Response) -> Dict[str, str]:
    return {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in response.headers.raw}


def same_origin(one: str, other: str) -> bool:
    a, b = urlsplit(one), urlsplit(other)
    return (a.scheme, a.netloc) == (b.scheme, b.netloc)


def multipart(files: Mapping[str, Content]) -> Tuple[str, bytes]:
    """(content type, body) of a form with files."""
    mark = os.urandom(16).hex()
    parts = []
    for name, data in files.items():
        data = data.encode() if isinstance(data, str) else bytes(data) if isinstance(data, (bytes, bytearray, memoryview)) else b"".join(data)
        escaped = name.replace("\\", "\\\\").replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")
        head = f'--{mark}\r\nContent-Disposition: form-data; name="files"; filename="{escaped}"\r\nContent-Type: application/octet-stream\r\n\r\n'
        parts += [head.encode(), data, b"\r\n"]
    return f"multipart/form-data; boundary={mark}", b"".join([*parts, f"--{mark}--\r\n".encode()])
