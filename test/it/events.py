"""Reads the daemon's streams: Server-Sent Events and lines of JSON, as they come."""

import base64
import json


class Stream:
    """One streamed answer. Iterating yields (type, object); stop early by close()."""

    def __init__(self, client, method, path, document=None, form="ndjson", timeout=30, body=None):
        accept = {"ndjson": "application/x-ndjson", "sse": "text/event-stream", "raw": "application/octet-stream"}[form]
        headers = {"Accept": accept}
        if document is not None:
            body = json.dumps(document).encode()
            headers["Content-Type"] = "application/json"
        self.client, self.form = type(client)(client.daemon, client.key, timeout=timeout), form
        self.response = self.client.start(method, path, body, headers)
        self.status = self.response.status
        if self.status == 200:
            assert self.response.headers["Content-Type"] == accept

    def lines(self):
        while True:
            line = self.response.readline()
            if not line:
                return
            yield line

    def __iter__(self):
        event = None
        for line in self.lines():
            if self.form == "ndjson":
                document = json.loads(line)
                yield document.pop("type"), document
            elif line.startswith(b"event: "):
                event = line[7:].strip().decode()
            elif line.startswith(b"data: "):
                yield event, json.loads(line[6:])
            else:
                assert line == b"\n" or line.startswith(b":"), line

    def close(self):
        self.response.close()
        self.client.close()


def data(event):
    return base64.b64decode(event["data"]) if event["encoding"] == "base64" else event["data"].encode()


class Result:
    """All of a stream: bytes of both outputs, checked to be without a gap, and the end."""

    def __init__(self, stream):
        self.begin, self.end, self.events = None, None, []
        self.out, self.err = bytearray(), bytearray()
        first = {"stdout": None, "stderr": None}
        for kind, event in stream:
            assert self.end is None, "something after the end"
            self.events.append((kind, event))
            if kind == "start":
                assert self.begin is None
                self.begin = event
            elif kind in first:
                so_far = self.out if kind == "stdout" else self.err
                first[kind] = event["offset"] if first[kind] is None else first[kind]
                assert event["offset"] == first[kind] + len(so_far), (kind, event["offset"], len(so_far))
                if kind == "stdout":
                    self.out += data(event)
                else:
                    self.err += data(event)
            elif kind in ("exit", "error"):
                self.end = (kind, event)
            else:
                assert kind == "keep-alive"
        stream.close()
        assert self.begin and self.end, self.events

    @property
    def exit_code(self):
        assert self.end[0] == "exit", self.end
        return self.end[1]["exit_code"]
