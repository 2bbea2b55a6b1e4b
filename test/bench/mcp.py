"""MCP: a tool that runs a shell command, and what sessions cost."""

import contextlib
import http.client
import json
import time

from common import Ours, paddock
from remember import add_times

SESSIONS = 200


class Client:
    """One connection that is kept, as the SDKs keep theirs."""

    def __init__(self, daemon):
        self.connection = http.client.HTTPConnection(daemon.host, daemon.port)
        self.headers = {"Authorization": f"Bearer {daemon.key}", "Content-Type": "application/json",
                        "Accept": "application/json, text/event-stream"}

    def send(self, method, params, **headers):
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
        self.connection.request("POST", "/mcp", body, {**self.headers, **headers})
        answer = self.connection.getresponse()
        document = json.loads(answer.read())
        if "result" not in document:
            raise SystemExit(document)
        return answer, document["result"]

    def begin(self):
        answer, _ = self.send("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}})
        self.headers["Mcp-Session-Id"] = answer.getheader("mcp-session-id")

    def call(self, name, /, **arguments):
        return self.send("tools/call", {"name": name, "arguments": arguments})[1]["structuredContent"]


def listen(client, daemon):
    """A second connection that waits for messages, as the SDKs have one."""
    waiting = http.client.HTTPConnection(daemon.host, daemon.port)
    waiting.request("GET", "/mcp", headers=client.headers)
    answer = waiting.getresponse()
    answer.readline()
    return waiting, answer


def measure(work, book, options, stack):
    ours, rounds = Ours(work), 100 if options.quick else 1000
    stack.callback(ours.daemon.finish)
    daemon = ours.daemon.start()
    client = Client(daemon)
    client.begin()
    box = client.call("sandbox_create")["id"]
    client.call("exec", sandbox=box, command="true")
    times = []
    for _ in range(rounds):
        begun = time.monotonic()
        client.call("exec", sandbox=box, command="true")
        times.append((time.monotonic() - begun) * 1000)
    add_times(book, "MCP: tools/call of exec, 'true' in a shell", times, 1.5)

    pid = daemon.api_pid()
    before = paddock.rss_kb(pid)
    with contextlib.ExitStack() as open_ones:
        for _ in range(SESSIONS):
            one = Client(daemon)
            open_ones.callback(one.connection.close)
            one.begin()
            one.send("tools/list", {})
            one.call("exec", sandbox=box, command="true")
            open_ones.callback(listen(one, daemon)[0].close)
        after = paddock.rss_kb(pid)
    book.add(f"MCP: {SESSIONS} sessions at once, memory of paddock-api", (after - before) / 1024, "MiB", 64)
    client.call("sandbox_delete", sandbox=box)
    daemon.stop()
