"""Everything that can go wrong, as exceptions.

An answer of the server that is an error becomes an `ApiError`: one class for each code of docs/errors.md, with the server's
message, which says what to do about it, and the id under which the server's log has the details.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Dict, Mapping, Optional, Type

if TYPE_CHECKING:
    from ._mixins import Outputs


class PaddockError(Exception):
    """The base of all exceptions of this package."""


class ConfigurationError(PaddockError):
    """There is no address or no key to use."""


class ConnectionFailed(PaddockError):
    """The server cannot be reached, or did not answer in time."""


class ConnectionLost(ConnectionFailed):
    """The connection ended after the request was sent: the server may have done what it asked for."""


class CommandFailed(PaddockError):
    """`check=True`, and the command failed. `result` has its output."""

    def __init__(self, result: Outputs) -> None:
        self.result = result
        error = getattr(result, "error", None)
        what = f"{error.name}: {error.value}" if error is not None else f"exit code {result.exit_code}"
        tail = result.stderr.strip()[-2000:]
        super().__init__(f"{what}\n{tail}" if tail and error is None else what)


class ApiError(PaddockError):
    """The server refused the request, or failed."""

    code = ""

    def __init__(self, status: int, code: str, message: str, request_id: str = "", retry_after: Optional[float] = None) -> None:
        self.status, self.code, self.message = status, code, message
        self.request_id, self.retry_after = request_id, retry_after
        super().__init__(status, code, message, request_id, retry_after)

    @property
    def advice(self) -> str:
        """What to do about it: the part of the server's message after its first colon or semicolon, or else what this package
        knows about the code."""
        for mark in ("; ", ": "):
            _, found, rest = self.message.partition(mark)
            if found:
                return rest
        return ADVICE.get(self.code, "")

    def __str__(self) -> str:
        known = ADVICE.get(self.code, "")
        hint = f" ({known})" if known and known not in self.message else ""
        request = f", request {self.request_id}" if self.request_id else ""
        return f"{self.message}{hint} [{self.code}{request}]"


class InvalidArgument(ApiError):
    """A field, a parameter or a path is not valid."""


class BadRequest(ApiError):
    """The request itself is malformed."""


class Unauthorized(ApiError):
    """There is no key, or it is not valid."""


class Forbidden(ApiError):
    """The key's role does not allow this, or the user in the sandbox has no permission for that file."""


class NotFound(ApiError):
    """There is no such sandbox, image, key, file or path."""


class MethodNotAllowed(ApiError):
    """The path does not support this method."""


class Conflict(ApiError):
    """The name is already in use."""


class WrongState(ApiError):
    """The sandbox is stopped, the image is in use, the directory is not empty."""


class Gone(ApiError):
    """It existed and has been removed."""


class TooLarge(ApiError):
    """The body or the arguments are too large."""


class UnsupportedMedia(ApiError):
    """The body has the wrong type."""


class RangeNotSatisfiable(ApiError):
    """The file has no bytes in this range."""


class QuotaExceeded(ApiError):
    """A quota is used up; the message says which."""


class RateLimited(ApiError):
    """Too many creates; `retry_after` says when to try again."""


class Cancelled(ApiError):
    """The caller disconnected."""


class InternalError(ApiError):
    """A bug in the server."""


class NotSupported(ApiError):
    """Not implemented, or not supported on the server's machine."""


class CannotIsolate(ApiError):
    """A part of the isolation cannot be set up; the server does not run a sandbox without it."""


class Unavailable(ApiError):
    """A part of the server or the sandbox cannot be reached at the moment."""


class TimedOut(ApiError):
    """The sandbox did not answer in time."""


class StorageFull(ApiError):
    """The disk, or the sandbox's share of it, is full."""


class CommandNotFound(ApiError):
    """The program does not exist in the sandbox."""


class NotExecutable(ApiError):
    """The program exists but is not executable."""


#: The class of each code.
CODES: Dict[str, Type[ApiError]] = {
    "invalid_argument": InvalidArgument,
    "bad_request": BadRequest,
    "unauthorized": Unauthorized,
    "forbidden": Forbidden,
    "not_found": NotFound,
    "method_not_allowed": MethodNotAllowed,
    "conflict": Conflict,
    "wrong_state": WrongState,
    "gone": Gone,
    "length_required": BadRequest,
    "too_large": TooLarge,
    "uri_too_long": TooLarge,
    "unsupported_media": UnsupportedMedia,
    "range_not_satisfiable": RangeNotSatisfiable,
    "expectation_failed": BadRequest,
    "quota_exceeded": QuotaExceeded,
    "rate_limited": RateLimited,
    "header_too_large": TooLarge,
    "cancelled": Cancelled,
    "internal": InternalError,
    "not_supported": NotSupported,
    "cannot_isolate": CannotIsolate,
    "unavailable": Unavailable,
    "timeout": TimedOut,
    "http_version_not_supported": BadRequest,
    "storage_full": StorageFull,
    "command_not_found": CommandNotFound,
    "not_executable": NotExecutable,
}

ADVICE = {
    "unauthorized": "set PADDOCK_API_KEY, or pass key=; `paddock key create` makes a key",
    "quota_exceeded": "delete what is not needed any more, or ask the administrator for a larger quota",
    "rate_limited": "try again after `retry_after` seconds",
    "internal": "the server's log has the details under this request's id",
    "storage_full": "remove files, or create the sandbox with a larger limits.disk_mb",
}

# Answers without a body, such as those to HEAD, say what happened by their status alone.
BY_STATUS = {400: "invalid_argument", 401: "unauthorized", 403: "forbidden", 404: "not_found", 409: "wrong_state", 410: "gone",
             413: "too_large", 416: "range_not_satisfiable", 429: "rate_limited", 501: "not_supported", 503: "unavailable",
             504: "timeout", 507: "storage_full"}


def seconds(text: Optional[str]) -> Optional[float]:
    try:
        return max(0.0, float(text)) if text else None
    except ValueError:
        return None


def of_answer(status: int, headers: Mapping[str, str], body: bytes) -> ApiError:
    """The exception for an answer that is an error."""
    code, message = BY_STATUS.get(status, "internal"), f"the server answered {status}"
    request_id = headers.get("x-request-id", "")
    try:
        error = json.loads(body)["error"]
        code, message, request_id = str(error["code"]), str(error["message"]), str(error.get("request_id", request_id))
    except (ValueError, KeyError, TypeError):
        pass  # from something between us and the server, or without a body
    return CODES.get(code, ApiError)(status, code, message, request_id, seconds(headers.get("retry-after")))


def of_event(event: Mapping[str, object]) -> ApiError:
    """The exception for an `error` at the end of a stream."""
    code = str(event.get("code", "internal"))
    return CODES.get(code, ApiError)(200, code, str(event.get("message", "")), str(event.get("request_id", "")))
