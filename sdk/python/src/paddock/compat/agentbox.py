"""agentbox's Python calls without grpcio: `from paddock.compat.agentbox import grpc, sandbox_pb2, sandbox_pb2_grpc`.

agentbox has no client library for Python; its programs use what protoc makes of its definition. The names here are those of
that code, and the server is Paddock's main address or a listener with `dialect: agentbox`. The calls go over Connect with
JSON. An error of a call is a `grpc.RpcError`.
"""

from __future__ import annotations

import json
import struct
from types import SimpleNamespace
from typing import Any, Dict, Iterator, Mapping, Optional, Sequence, Tuple, Type

import httpx

from .._settings import find, is_loopback
from .._sync.api import Api
from ..errors import ConfigurationError, PaddockError

__all__ = ["grpc", "sandbox_pb2", "sandbox_pb2_grpc"]


class RpcError(PaddockError):
    """A call failed; `code()` and `details()` say how."""

    def __init__(self, code: str, details: str) -> None:
        super().__init__(f"{code}: {details}")
        self._code, self._details = code, details

    def code(self) -> str:
        return self._code.upper()

    def details(self) -> str:
        return self._details


class Message:
    """A message with the fields of its class; a field that is not set has the empty value of its kind."""

    FIELDS: Mapping[str, Any] = {}

    def __init__(self, **values: Any) -> None:
        unknown = set(values) - set(self.FIELDS)
        if unknown:
            raise ValueError(f'Protocol message {type(self).__name__} has no "{sorted(unknown)[0]}" field.')
        for name, empty in self.FIELDS.items():
            default = [] if empty is list or isinstance(empty, list) else empty() if isinstance(empty, type) else empty
            setattr(self, name, values.get(name, default))

    def __getattr__(self, name: str) -> Any:  # for type checkers; __init__ sets what there is
        raise AttributeError(f"{type(self).__name__} has no field {name}")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={getattr(self, name)!r}' for name in self.FIELDS)})"

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self.__dict__ == other.__dict__

    def to_json(self) -> Dict[str, Any]:
        return {camel(name): getattr(self, name) for name in self.FIELDS if getattr(self, name) not in (None, "", 0, [])}

    @classmethod
    def of_json(cls, data: Mapping[str, Any]) -> Message:
        values: Dict[str, Any] = {}
        for name, empty in cls.FIELDS.items():
            if camel(name) in data:
                value = data[camel(name)]
                if isinstance(empty, list):
                    value = [empty[0].of_json(each) for each in value]
                elif isinstance(empty, type) and issubclass(empty, Message):
                    value = empty.of_json(value)
                values[name] = value
        return cls(**values)


def camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)


def message(name: str, **fields: Any) -> Type[Message]:
    return type(name, (Message,), {"FIELDS": fields, "__module__": __name__})


SessionInfo = message("SessionInfo", session_id=str, container_id=str, created_at=float, last_activity=float, status=str, tenant_id=str, allowed_hosts=list)
ExecResponse = message("ExecResponse", exit_code=int, stdout=str, stderr=str, timed_out=bool)
Piece = message("ExecStreamResponse", type=str, data=str, exit_code=int)

sandbox_pb2 = SimpleNamespace(
    SessionInfo=SessionInfo,
    CreateSessionRequest=message("CreateSessionRequest", session_id=str, tenant_id=str, allowed_hosts=list),
    CreateSessionResponse=message("CreateSessionResponse", session=SessionInfo),
    DestroySessionRequest=message("DestroySessionRequest", session_id=str),
    DestroySessionResponse=message("DestroySessionResponse", success=bool),
    GetSessionRequest=message("GetSessionRequest", session_id=str),
    GetSessionResponse=message("GetSessionResponse", session=SessionInfo),
    ListSessionsRequest=message("ListSessionsRequest"),
    ListSessionsResponse=message("ListSessionsResponse", sessions=[SessionInfo]),
    ExecRequest=message("ExecRequest", session_id=str, command=str, timeout=int, workdir=str),
    ExecResponse=ExecResponse,
    ExecStreamRequest=message("ExecStreamRequest", session_id=str, command=str, workdir=str),
    ExecStreamResponse=Piece,
    WriteFileRequest=message("WriteFileRequest", session_id=str, path=str, content=str, mode=str),
    WriteFileResponse=message("WriteFileResponse", success=bool, error=str),
    ReadFileRequest=message("ReadFileRequest", session_id=str, path=str),
    ReadFileResponse=message("ReadFileResponse", success=bool, content=str, error=str),
    PipInstallRequest=message("PipInstallRequest", session_id=str, packages=list),
)

# method: (class of the answer, whether it is a stream)
METHODS: Dict[str, Tuple[Type[Message], bool]] = {
    "CreateSession": (sandbox_pb2.CreateSessionResponse, False),
    "DestroySession": (sandbox_pb2.DestroySessionResponse, False),
    "GetSession": (sandbox_pb2.GetSessionResponse, False),
    "ListSessions": (sandbox_pb2.ListSessionsResponse, False),
    "Exec": (ExecResponse, False),
    "ExecStream": (Piece, True),
    "WriteFile": (sandbox_pb2.WriteFileResponse, False),
    "ReadFile": (sandbox_pb2.ReadFileResponse, False),
    "PipInstall": (ExecResponse, False),
    "PipInstallStream": (Piece, True),
}


class Channel:
    """Connections to one server. Without a key in PADDOCK_API_KEY, and off this machine, calls are sent without one."""

    def __init__(self, target: str) -> None:
        url = target if "://" in target else f"http://{target}"
        try:
            settings = find(url)
        except ConfigurationError:
            settings = find(url, "none")
            if not is_loopback(url):
                raise
        self.api = Api(settings, 600.0, 0, None)

    def close(self) -> None:
        self.api.close()

    def __enter__(self) -> Channel:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class SandboxServiceStub:
    """One method for each call of the service."""

    def __init__(self, channel: Channel) -> None:
        self._api = channel.api

    def __getattr__(self, name: str) -> Any:
        if name not in METHODS:
            raise AttributeError(name)
        answer, streamed = METHODS[name]
        path = f"/sandbox.v1.SandboxService/{name}"

        def call(request: Message, timeout: Optional[float] = None, metadata: Sequence[Tuple[str, str]] = ()) -> Any:
            headers = dict(metadata)
            if streamed:
                return self._stream(path, answer, request, headers)
            response = self._api.response("POST", path, document=request.to_json(), headers=headers)
            if response.status_code != 200:
                raise _error(response.content, response.status_code)
            return answer.of_json(response.json())

        return call

    def _stream(self, path: str, answer: Type[Message], message: Message, headers: Mapping[str, str]) -> Iterator[Message]:
        """Connect's streams: each message after a byte of flags and four of length."""
        body = json.dumps(message.to_json()).encode()
        sent = self._api.build("POST", path, content=struct.pack("!BI", 0, len(body)) + body, timeout=None,
                               headers={"Content-Type": "application/connect+json", **headers})
        response = self._api.transport.handle_request(sent)
        stream, rest = response.stream, b""
        assert isinstance(stream, httpx.SyncByteStream)
        if response.status_code != 200:
            raise _error(self._api.body(sent, response), response.status_code)
        try:
            for piece in stream:
                rest += piece
                while len(rest) >= 5 and len(rest) >= 5 + (size := struct.unpack("!I", rest[1:5])[0]):
                    flags, data, rest = rest[0], rest[5 : 5 + size], rest[5 + size :]
                    if flags & 2:
                        end = json.loads(data or b"{}")
                        if end.get("error"):
                            raise RpcError(end["error"].get("code", "unknown"), end["error"].get("message", ""))
                        return
                    yield answer.of_json(json.loads(data))
        finally:
            stream.close()
        raise RpcError("unavailable", "the stream ended before the call did")


def _error(body: bytes, status: int) -> RpcError:
    try:
        data = json.loads(body)
        return RpcError(str(data["code"]), str(data.get("message", "")))
    except (ValueError, KeyError, TypeError):
        return RpcError("unknown", f"the server answered {status}")


sandbox_pb2_grpc = SimpleNamespace(SandboxServiceStub=SandboxServiceStub)
grpc = SimpleNamespace(insecure_channel=Channel, RpcError=RpcError, Channel=Channel)
