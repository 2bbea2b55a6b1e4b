"""A client of port 49983 of a box, at the level of the wire: Connect in JSON and in protobuf.

Protobuf is the official implementation's, fed with api/e2b/*.proto; messages are written
and read as JSON documents in both codecs, so that one test serves for both.
"""

import base64
import functools
import hashlib
import http.client
import json
import subprocess
import tempfile
from urllib.parse import urlencode

from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory

import paddock

PORT = 49983
CODECS = ("json", "proto")


class ConnectError(Exception):
    def __init__(self, code, message, status):
        super().__init__(f"{code}: {message}")
        self.code, self.message, self.status = code, message, status


@functools.lru_cache(None)
def methods():
    """{"process.Process/List": (request class, reply class)}"""
    folder = paddock.ROOT / "api" / "e2b"
    with tempfile.NamedTemporaryFile() as out:
        subprocess.run(["protoc", f"--descriptor_set_out={out.name}", f"--proto_path={folder}",
                        *(str(path) for path in sorted(folder.glob("*.proto")))], check=True, timeout=30)
        files = descriptor_pb2.FileDescriptorSet.FromString(out.read()).file
    pool, found = descriptor_pool.DescriptorPool(), {}
    for file in files:
        pool.Add(file)
    make = message_factory.MessageFactory(pool).GetPrototype
    for file in files:
        for service in file.service:
            for method in service.method:
                found[f"{file.package}.{service.name}/{method.name}"] = tuple(
                    make(pool.FindMessageTypeByName(name.lstrip("."))) for name in (method.input_type, method.output_type))
    return found


def to_bytes(kind, document, codec):
    if codec == "json":
        return json.dumps(document).encode()
    return json_format.ParseDict(document, kind()).SerializeToString()


def from_bytes(kind, data, codec):
    if codec == "json":
        return json.loads(data)
    # 64-bit numbers come as strings and enums as names, as in the JSON mapping.
    return json_format.MessageToDict(kind.FromString(data))


def envelope(data, flags=0):
    return bytes([flags]) + len(data).to_bytes(4, "big") + data


def text(event, channel="stdout"):
    return base64.b64decode(event["event"]["data"][channel])


def b64(data):
    return base64.b64encode(data).decode()


class Stream:
    """The messages of a server stream. `error` after the last one."""

    def __init__(self, response, kind, codec, connection):
        self.response, self.kind, self.codec, self.connection = response, kind, codec, connection
        self.error, self.ended = None, False

    def exactly(self, n):
        data = b""
        while len(data) < n:
            piece = self.response.read(n - len(data))
            assert piece, f"the stream ends within an envelope: {data!r}"
            data += piece
        return data

    def __iter__(self):
        return self

    def __next__(self):
        assert not self.ended
        head = self.exactly(5)
        data = self.exactly(int.from_bytes(head[1:], "big"))
        if head[0] == 0:
            return from_bytes(self.kind, data, self.codec)
        assert head[0] == 2, head
        self.ended = True
        assert self.response.read() == b""
        self.error = json.loads(data).get("error")
        self.close()
        if self.error:
            raise ConnectError(self.error["code"], self.error.get("message"), 200)
        raise StopIteration

    def close(self):
        self.response.close()
        self.connection.close()


class Envd:
    def __init__(self, daemon, box, token, codec="json", user=None):
        self.daemon, self.box, self.token, self.codec, self.user = daemon, box, token, codec, user
        self.connection = None

    def by(self, codec=None, user=None):
        return Envd(self.daemon, self.box, self.token, codec or self.codec, user or self.user)

    def headers(self, extra=None):
        mine = {"E2b-Sandbox-Id": self.box, "E2b-Sandbox-Port": str(PORT)}
        if self.token:
            mine["X-Access-Token"] = self.token
        if self.user:
            mine["Authorization"] = "Basic " + b64(f"{self.user}:".encode())
        return {**mine, **(extra or {})}

    def open(self):
        return http.client.HTTPConnection(self.daemon.host, self.daemon.port, timeout=30)

    def request(self, method, where, body=None, headers=None, **query):
        self.connection = self.connection or self.open()
        if query:
            where += "?" + urlencode(query)
        try:
            self.connection.request(method, where, body, self.headers(headers))
            response = self.connection.getresponse()
            data = response.read()
        except Exception:
            self.connection.close()
            self.connection = None
            raise
        return paddock.Response(response.status, {k.lower(): v for k, v in response.getheaders()}, data)

    def call(self, name, headers=None, **document):
        """A unary call; dashes of keywords that Python owns are written with a trailing underscore."""
        ask, reply = methods()[name]
        response = self.request("POST", "/" + name, to_bytes(ask, document, self.codec), {
            "Content-Type": "application/" + self.codec, "Connect-Protocol-Version": "1", **(headers or {})})
        if response.status != 200:
            error = json.loads(response.body)
            raise ConnectError(error["code"], error["message"], response.status)
        assert response.headers["content-type"] == "application/" + self.codec
        return from_bytes(reply, response.body, self.codec)

    def stream(self, name, document, headers=None):
        ask, reply = methods()[name]
        connection = self.open()
        connection.request("POST", "/" + name, envelope(to_bytes(ask, document, self.codec)), self.headers({
            "Content-Type": "application/connect+" + self.codec, "Connect-Protocol-Version": "1", **(headers or {})}))
        response = connection.getresponse()
        assert response.status == 200, response.read()
        assert response.getheader("content-type") == "application/connect+" + self.codec
        return Stream(response, reply, self.codec, connection)

    def upload(self, name, messages):
        """A client stream; returns its one answer."""
        ask, reply = methods()[name]
        connection = self.open()
        connection.request("POST", "/" + name, (envelope(to_bytes(ask, each, self.codec)) for each in messages),
                           self.headers({"Content-Type": "application/connect+" + self.codec}), encode_chunked=True)
        answers = list(Stream(connection.getresponse(), reply, self.codec, connection))
        assert len(answers) == 1
        return answers[0]

    def start(self, *argv, headers=None, stdin=False, cwd=None, envs=None, **more):
        config = {"cmd": argv[0], "args": list(argv[1:])}
        if cwd is not None:
            config["cwd"] = cwd
        if envs:
            config["envs"] = envs
        return self.stream("process.Process/Start", {"process": config, "stdin": stdin, **more}, headers)

    def bash(self, command, **more):
        return self.start("/bin/bash", "-l", "-c", command, **more)

    def run(self, command, **more):
        """(stdout, stderr, end event)"""
        return collect(self.bash(command, **more))

    def fs(self, name, **document):
        return self.call("filesystem.Filesystem/" + name, **document)

    def process(self, name, **document):
        return self.call("process.Process/" + name, **document)

    def signature(self, path, operation, user="", expires=None):
        parts = [path, operation, user, self.token] + ([str(expires)] if expires is not None else [])
        return "v1_" + b64(hashlib.sha256(":".join(parts).encode()).digest()).rstrip("=")


def collect(stream):
    first = next(stream)
    assert first["event"]["start"]["pid"] > 1, first
    out, err, end = b"", b"", None
    for message in stream:
        event = message["event"]
        assert end is None, f"after the end: {event}"
        if "data" in event:
            out += base64.b64decode(event["data"].get("stdout", event["data"].get("pty", "")))
            err += base64.b64decode(event["data"].get("stderr", ""))
        elif "end" in event:
            end = event["end"]
    return out, err, end
