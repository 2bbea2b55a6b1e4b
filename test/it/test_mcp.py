"""MCP at /mcp and /sandbox/NAME/mcp: sessions, streams, cancellation, who may do what. test/mcp has the official clients."""

import contextlib
import http.client
import json
import re
import socket
import time

import paddock
import pytest

LEGACY = ("2025-03-26", "2025-06-18", "2025-11-25")
MODERN = "2026-07-28"
META = "io.modelcontextprotocol/"


class Mcp:
    """A client as small as it gets. `send` returns status, headers and all messages of the answer."""

    def __init__(self, daemon, key=None, path="/mcp"):
        self.daemon, self.path, self.n = daemon, path, 0
        self.headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        if key != "":
            self.headers["Authorization"] = f"Bearer {key or daemon.key}"

    def open(self, method="POST", body=None, headers=()):
        connection = http.client.HTTPConnection(self.daemon.host, self.daemon.port, timeout=30 * paddock.SLOW)
        wanted = {**self.headers, **dict(headers)}
        connection.request(method, self.path, body if isinstance(body, (bytes, type(None))) else json.dumps(body).encode(),
                           {k: v for k, v in wanted.items() if v is not None})
        return connection, connection.getresponse()

    def send(self, body=None, method="POST", **headers):
        connection, answer = self.open(method, body, {k.replace("_", "-"): v for k, v in headers.items()})
        with contextlib.closing(connection):
            text = answer.read().decode()
        kind = answer.getheader("content-type") or ""
        if kind.startswith("text/event-stream"):
            return answer.status, answer, [json.loads(d) for d in re.findall(r"^data: (\{.*)$", text, re.M)]
        return answer.status, answer, [json.loads(text)] if text else []

    def begin(self, version="2025-11-25", capabilities=None):
        status, answer, (result,) = self.send({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": version, "capabilities": capabilities or {}, "clientInfo": {"name": "test", "version": "1"}}})
        assert status == 200, result
        self.headers["Mcp-Session-Id"] = answer.getheader("mcp-session-id")
        assert self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})[0] == 202
        return result["result"]

    def request(self, method, **params):
        self.n += 1
        return {"jsonrpc": "2.0", "id": self.n, "method": method, "params": params}

    def ask(self, method, **params):
        return self.send(self.request(method, **params))[2][-1]

    def tool(self, name, /, **arguments):
        return self.ask("tools/call", name=name, arguments=arguments)["result"]

    def modern(self, method, capabilities=None, **params):
        body = self.request(method, _meta={META + "protocolVersion": MODERN, META + "clientCapabilities": capabilities or {}}, **params)
        name = params.get("name") or params.get("uri")
        return body, {"MCP-Protocol-Version": MODERN, "Mcp-Method": method, **({"Mcp-Name": name} if name else {})}


@pytest.fixture
def mcp(daemon):
    it = Mcp(daemon)
    it.begin()
    yield it
    it.send(method="DELETE")


@pytest.fixture
def box(mcp):
    it = mcp.tool("sandbox_create")["structuredContent"]["id"]
    yield it
    mcp.tool("sandbox_delete", sandbox=it)


@pytest.fixture
def stranger(api, daemon):
    """The key of another tenant."""
    made = api.post("/v1/keys", {"tenant": "mcp-stranger", "role": "user", "create_tenant": True}).json()
    yield made["key"]
    api.delete(f"/v1/keys/{made['id']}")


# ---- both eras ----


@pytest.mark.parametrize("version", LEGACY)
def test_handshake(daemon, version):
    it = Mcp(daemon)
    result = it.begin(version)
    assert result["protocolVersion"] == version and result["serverInfo"]["name"] == "paddock"
    assert re.fullmatch(r"[!-~]+", it.headers["Mcp-Session-Id"])
    assert it.ask("ping")["result"] == {}
    assert it.send(method="DELETE")[0] == 204
    assert it.send(it.request("ping"))[0] == 404


def test_an_unknown_version_gets_the_newest_with_a_handshake(daemon):
    assert Mcp(daemon).begin("1999-01-01")["protocolVersion"] == "2025-11-25"


def test_each_request_stands_for_itself(daemon, box):
    it = Mcp(daemon)
    body, headers = it.modern("tools/call", name="exec", arguments={"sandbox": box, "command": "echo here"})
    status, answer, (message,) = it.send(body, **headers)
    assert status == 200 and message["result"]["resultType"] == "complete"
    assert message["result"]["structuredContent"]["stdout"] == "here\n"
    assert answer.getheader("mcp-session-id") is None
    assert it.send(body, **{**headers, "Mcp-Name": "file_read"})[2][0]["error"]["code"] == -32020
    assert it.send(method="GET", MCP_Protocol_Version=MODERN)[0] == 405
    assert it.send(method="DELETE")[0] == 405


def test_batches_are_of_the_oldest_version_only(daemon):
    batch = [{"jsonrpc": "2.0", "id": n, "method": "ping"} for n in (1, 2)] + [{"jsonrpc": "2.0", "method": "notifications/x"}]
    old, new = Mcp(daemon), Mcp(daemon)
    old.begin("2025-03-26")
    new.begin("2025-06-18")
    status, _, (answers,) = old.send(batch)
    assert status == 200 and sorted(a["id"] for a in answers) == [1, 2]
    assert old.send(batch[2:])[0] == 202
    assert new.send(batch)[0] == 400


# ---- bad input ----


@pytest.mark.parametrize("body, status, code", [
    (b"{", 400, -32700), (b"", 400, -32700), (b'"x"', 400, -32600), (b"[]", 400, -32600),
    (b'{"jsonrpc":"1.0","id":1,"method":"ping"}', 400, -32600), (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', 400, -32600),
    (b'{"jsonrpc":"2.0","id":1,"method":"nope"}', 200, -32601), (b'{"jsonrpc":"2.0","id":1,"method":"tools/call"}', 200, -32602),
    (b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"nope"}}', 200, -32602),
    (b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"exec","arguments":[]}}', 200, -32602),
    (b'{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"paddock://outputs/x/stdout"}}', 200, -32002),
    (b'{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"file:///etc/passwd"}}', 200, -32002),
    (b'{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"loud"}}', 200, -32602),
    (b'{"jsonrpc":"2.0","id":1,"method":"prompts/list"}', 200, -32601),
])
def test_what_is_wrong_is_said(mcp, body, status, code):
    got, _, (message,) = mcp.send(body)
    assert (got, message["error"]["code"]) == (status, code), message


@pytest.mark.parametrize("tool, arguments, word", [
    ("exec", {"sandbox": "none-such", "command": "true"}, "not_found"), ("exec", {"command": "true"}, "sandbox"),
    ("exec", {"sandbox": "x", "command": "true", "extra": 1}, "extra"), ("exec", {"sandbox": "x", "command": 7}, "command"),
    ("sandbox_create", {"image": "none-such"}, "image"), ("sandbox_create", {"egress": {"x": 1}}, "egress"),
    ("sandboxExecutor", {"sandbox_name": "x", "tool_name": "sandbox_create"}, "tool_name"), ("getSandbox", {}, "name"),
    ("fork", {"sandbox": "x", "count": 1000}, "count"), ("sandbox_list", {"status": "odd"}, "status"),
])
def test_tools_say_what_is_wrong_to_the_model(mcp, tool, arguments, word):
    result = mcp.tool(tool, **arguments)
    assert result["isError"] is True and word in result["content"][0]["text"]


def test_tools_are_typed(mcp):
    tools = mcp.ask("tools/list")["result"]["tools"]
    assert 15 < len(tools) <= 20
    for tool in tools:
        assert tool["outputSchema"]["type"] == "object" and tool["inputSchema"]["type"] == "object", tool["name"]
        assert {"readOnlyHint", "openWorldHint"} <= set(tool["annotations"]) and tool["title"] and tool["description"], tool["name"]


def test_too_much(mcp):
    assert mcp.send(b"x" * (5 << 20))[0] == 413


def test_accept_and_type(mcp):
    assert mcp.send(mcp.request("ping"), Accept="application/json")[0] == 406
    assert mcp.send(mcp.request("ping"), Content_Type="text/plain")[0] == 415


# ---- who asks ----


def test_without_a_key(daemon):
    it = Mcp(daemon, key="")
    status, answer, _ = it.send(it.request("ping"))
    assert status == 401
    where = re.fullmatch(r'Bearer resource_metadata="http://[^/]+(/.+)"', answer.getheader("www-authenticate"))[1]
    it.path = where
    status, _, (about,) = it.send(method="GET")
    assert status == 200 and about["resource"].endswith("/mcp") and about["bearer_methods_supported"] == ["header"]


@pytest.mark.parametrize("headers", [{"Host": "evil.example"}, {"Origin": "http://evil.example"}, {"Origin": "null"}])
def test_other_sites_are_refused(mcp, headers):
    assert mcp.send(mcp.request("ping"), **headers)[0] == 403


def test_pages_of_this_machine_are_not(mcp):
    assert mcp.send(mcp.request("ping"), Origin="http://localhost:6274", Host="localhost")[0] == 200


def test_tenants_do_not_see_each_other(daemon, mcp, box, stranger):
    other = Mcp(daemon, key=stranger)
    other.headers["Mcp-Session-Id"] = mcp.headers["Mcp-Session-Id"]
    assert other.send(other.request("ping"))[0] == 404, "the session of another"
    del other.headers["Mcp-Session-Id"]
    other.begin()
    assert "not_found" in other.tool("exec", sandbox=box, command="true")["content"][0]["text"]
    assert other.tool("sandbox_list")["structuredContent"]["sandboxes"] == []
    link = next(c for c in mcp.tool("exec", sandbox=box, command="seq 20000")["content"] if c["type"] == "resource_link")
    assert mcp.ask("resources/read", uri=link["uri"])["result"]["contents"][0]["text"].endswith("20000\n")
    assert other.ask("resources/read", uri=link["uri"])["error"]["code"] == -32002
    assert other.ask("resources/list")["result"]["resources"] == []
    assert other.ask("resources/read", uri=f"paddock://sandboxes/{box}/files/etc/hostname")["error"]["code"] == -32002
    scoped = Mcp(daemon, key=stranger, path=f"/sandbox/{box}/mcp")
    scoped.begin()
    assert "not_found" in scoped.tool("exec", command="true")["content"][0]["text"]


def test_quotas_and_events_hold(daemon, api, stranger):
    """There is no other way around the core than that of the REST API."""
    other = Mcp(daemon, key=stranger)
    other.begin()
    assert api.send_json("PUT", "/v1/tenants/mcp-stranger/quota", {"boxes": 1}).status == 200
    box = other.tool("sandbox_create")["structuredContent"]["id"]
    for tool, arguments in (("sandbox_create", {}), ("createSandbox", {}), ("fork", {"sandbox": box})):
        result = other.tool(tool, **arguments)
        assert result["isError"] and "quota_exceeded" in result["content"][0]["text"]
    other.tool("sandbox_delete", sandbox=box)
    kinds = [e["type"] for e in api.get(f"/v1/events?sandbox={box}").json()["events"]]
    assert kinds[0] == "created" and "deleted" in kinds
    assert api.send_json("PUT", "/v1/tenants/mcp-stranger/quota", {"boxes": 0}).status == 200


# ---- one sandbox ----


def test_path_of_one_sandbox(daemon, mcp):
    name = mcp.tool("sandbox_create", name="mcp-one")["structuredContent"]["name"]
    it = Mcp(daemon, path=f"/sandbox/{name}/mcp")
    it.begin()
    tools = it.ask("tools/list")["result"]["tools"]
    assert {"exec", "run_code", "file_read"} <= {t["name"] for t in tools}
    assert not {"sandbox_create", "sandbox_list", "sandbox_delete", "createSandbox"} & {t["name"] for t in tools}
    assert all("sandbox" not in t["inputSchema"]["properties"] for t in tools)
    assert it.tool("exec", command="hostname")["structuredContent"]["stdout"] == f"{name}\n"
    assert it.tool("exec", command="true", sandbox="other")["isError"]
    assert it.ask("tools/call", name="sandbox_list", arguments={})["error"]["code"] == -32602
    elsewhere = Mcp(daemon, path="/mcp")
    elsewhere.headers["Mcp-Session-Id"] = it.headers["Mcp-Session-Id"]
    assert elsewhere.send(elsewhere.request("ping"))[0] == 404, "a session is of its path"
    mcp.tool("sandbox_delete", sandbox=name)


def test_sandboxes_of_one_tenant_do_not_see_each_other(daemon, mcp, box):
    """At the path of one sandbox there is nothing of another one: output that was kept, files, names."""
    other = mcp.tool("sandbox_create", name="mcp-other")["structuredContent"]["id"]
    link = next(c for c in mcp.tool("exec", sandbox=box, command="seq 20000")["content"] if c["type"] == "resource_link")["uri"]
    file = f"paddock://sandboxes/{box}/files/etc/hostname"
    own, foreign = Mcp(daemon, path=f"/sandbox/{box}/mcp"), Mcp(daemon, path=f"/sandbox/{other}/mcp")
    for each in (own, foreign):
        each.begin()
    assert link in [r["uri"] for r in own.ask("resources/list")["result"]["resources"]], "the control"
    assert all("contents" in own.ask("resources/read", uri=uri)["result"] for uri in (link, file)), "the control"
    assert foreign.ask("resources/list")["result"]["resources"] == []
    for uri in (link, file):
        assert foreign.ask("resources/read", uri=uri)["error"]["code"] == -32002, uri
    typed = {"ref": {"type": "ref/resource", "uri": "paddock://sandboxes/{sandbox}/files/{+path}"}, "argument": {"name": "sandbox", "value": ""}}
    assert own.ask("completion/complete", **typed)["result"]["completion"]["values"] == []
    mcp.tool("sandbox_delete", sandbox=other)


# ---- streams ----


def events(answer):
    """(id, message) of each event as it comes; the message is None for one without data."""
    number = None
    for line in answer:
        line = line.decode().rstrip("\n")
        if line.startswith("id: "):
            number = line[4:]
        elif line.startswith("data:"):
            text = line[5:].strip()
            yield number, json.loads(text) if text else None


def slow_exec(mcp, box, command, **more):
    return mcp.open(body={"jsonrpc": "2.0", "id": "slow", "method": "tools/call", "params": {
        "name": "exec", "arguments": {"sandbox": box, "command": command, **more}, "_meta": {"progressToken": "p"}}})


def test_progress_and_resumption(mcp, box):
    connection, answer = slow_exec(mcp, box, "echo first; until test -e /tmp/go; do read -t 0.05 <> <(:); done; echo last")
    coming = events(answer)
    number, nothing = next(coming)
    assert nothing is None, "an id to resume from comes first"
    seen = [next(coming) for _ in range(2)]
    assert [m["params"]["message"] for _, m in seen] == ["first", "first"]
    assert seen[0][1]["params"]["progress"] < seen[1][1]["params"]["progress"]
    connection.close()
    mcp.tool("exec", sandbox=box, command="touch /tmp/go", shell="other")
    connection, answer = mcp.open("GET", headers={"Last-Event-ID": seen[0][0]})
    again = list(events(answer))
    assert again[0] == seen[1], "what was missed comes again"
    assert again[-1][1]["id"] == "slow" and again[-1][1]["result"]["structuredContent"]["stdout"] == "first\nlast\n"
    connection.close()
    connection, answer = mcp.open("GET", headers={"Last-Event-ID": number})
    assert list(events(answer))[-1] == again[-1], "and once more"
    connection.close()
    assert mcp.send(method="GET", Last_Event_ID="99-1")[0] == 400


def test_another_session_does_not_resume_it(daemon, mcp, box):
    connection, answer = slow_exec(mcp, box, "until test -e /tmp/refused; do read -t 0.05 <> <(:); done")
    number = next(events(answer))[0]
    other = Mcp(daemon)
    other.begin()
    assert other.send(method="GET", Last_Event_ID=number)[0] == 400
    connection.close()
    mcp.tool("exec", sandbox=box, command="touch /tmp/refused", shell="other")


def until_gone(mcp, box, what):
    found = mcp.tool("exec", sandbox=box, shell="look",
                     command=f"for i in $(seq 200); do pgrep -fx '{what}' >/dev/null || {{ echo gone; break; }}; read -t 0.05 <> <(:); done")
    return found["structuredContent"]["stdout"] == "gone\n"


@pytest.mark.parametrize("stateful", [True, False])
def test_cancellation(mcp, box, stateful):
    connection, answer = slow_exec(mcp, box, "exec sleep 613" if not stateful else "sleep 613", stateful=stateful)
    next(events(answer))
    assert mcp.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "slow"}})[0] == 202
    assert [m for _, m in events(answer) if m and "id" in m] == [], "a cancelled call has no answer"
    assert until_gone(mcp, box, "sleep 613")
    connection.close()


def test_in_the_newer_era_going_away_cancels(daemon, mcp, box):
    it = Mcp(daemon)
    body, headers = it.modern("tools/call", name="exec", arguments={"sandbox": box, "command": "touch /tmp/up; exec sleep 617", "stateful": False})
    connection = http.client.HTTPConnection(daemon.host, daemon.port)
    connection.request("POST", "/mcp", json.dumps(body), {**it.headers, **headers})
    mcp.tool("exec", sandbox=box, command="until test -e /tmp/up; do read -t 0.05 <> <(:); done")
    connection.close()
    assert until_gone(mcp, box, "sleep 617")


def test_in_the_older_era_it_does_not(mcp, box):
    connection, answer = slow_exec(mcp, box, "touch /tmp/up; sleep 1; touch /tmp/done", stateful=False)
    connection.close()
    found = mcp.tool("exec", sandbox=box, command="for i in $(seq 200); do test -e /tmp/done && echo yes && break; read -t 0.05 <> <(:); done")
    assert found["structuredContent"]["stdout"] == "yes\n"


def test_waiting_stream_ends_with_the_session(daemon):
    it = Mcp(daemon)
    it.begin()
    connection, answer = it.open("GET")
    assert answer.status == 200 and answer.getheader("content-type") == "text/event-stream"
    assert it.send(method="DELETE")[0] == 204
    assert [m for _, m in events(answer) if m] == []
    connection.close()


def test_a_call_that_takes_long_becomes_a_stream(mcp, box):
    """Without anything to say: so that proxies and clients see that it lives."""
    status, answer, messages = mcp.send(mcp.request("tools/call", name="exec", arguments={"sandbox": box, "command": "sleep 5.5"}))
    assert answer.getheader("content-type") == "text/event-stream"
    assert messages[-1]["result"]["structuredContent"]["exit_code"] == 0


def test_streams_end_when_the_daemon_goes(own_daemon):
    daemon = own_daemon().start()
    it = Mcp(daemon)
    it.begin()
    connection, answer = it.open("GET")
    next(events(answer))
    begun = time.monotonic()
    daemon.stop()
    assert answer.read().strip() == b"" and time.monotonic() - begun < 10 * paddock.SLOW
    connection.close()


# ---- asking back ----


def test_a_state_is_bound_to_its_call(daemon, own_daemon, tmp_path):
    """By the fixtures of the conformance suite, which ask for something."""
    file = tmp_path / "paddock.yaml"
    file.write_text("listeners: [{address: '127.0.0.1:0', dialect: mcp-conformance}]\n")
    other = own_daemon(arguments=["--config", str(file)]).start()
    port = int(re.search(r"listening on \S+:(\d+) for", other.log(1000))[1])

    class Place:
        host, key = "127.0.0.1", "none"
    Place.port = port
    it = Mcp(Place)

    def call(tool, arguments, **more):
        body, headers = it.modern("tools/call", capabilities={"elicitation": {}}, name=tool, arguments=arguments, **more)
        return it.send(body, **headers)[2][0]

    tool, answers = "test_input_required_result_request_state", {"confirm": {"action": "accept", "content": {"ok": True}}}
    asked = call(tool, {"a": 1})["result"]
    assert asked["resultType"] == "input_required" and "confirm" in asked["inputRequests"]
    state = asked["requestState"]
    assert "state-ok" in call(tool, {"a": 1}, inputResponses=answers, requestState=state)["result"]["content"][0]["text"]
    for name, arguments, sealed in ((tool, {"a": 2}, state), ("test_input_required_result_tampered_state", {"a": 1}, state),
                                    (tool, {"a": 1}, state[:-8] + "AAAAAAA="), (tool, {"a": 1}, "AAAA")):
        assert call(name, arguments, inputResponses=answers, requestState=sealed)["error"]["code"] == -32602


# ---- the rest ----


def test_completion_and_levels(mcp):
    name = mcp.tool("sandbox_create", name="mcp-complete")["structuredContent"]["name"]
    ref = {"type": "ref/resource", "uri": "paddock://sandboxes/{sandbox}/files/{+path}"}
    found = mcp.ask("completion/complete", ref=ref, argument={"name": "sandbox", "value": "mcp-com"})["result"]["completion"]
    assert found["values"] == [name]
    assert mcp.ask("logging/setLevel", level="warning")["result"] == {}
    mcp.tool("sandbox_delete", sandbox=name)


def test_images_and_executor(mcp, box):
    code = "class P:\n  def _repr_png_(self): return b'\\x89PNG'\nP()"
    for result in (mcp.tool("run_code", sandbox=box, code=code),
                   mcp.tool("sandboxExecutor", sandbox_name=box, tool_name="run_code", arguments={"code": code})):
        assert [c["mimeType"] for c in result["content"] if c["type"] == "image"] == ["image/png"]
        assert result["structuredContent"]["results"][0]["formats"] == ["text", "png"] or "png" in result["structuredContent"]["results"][0]["formats"]


def test_a_slow_reader_does_not_hold_others(daemon, mcp, box):
    """A client that reads nothing of a long result."""
    with socket.create_connection((daemon.host, daemon.port)) as s:
        body = json.dumps(mcp.request("resources/read", uri=next(
            c for c in mcp.tool("exec", sandbox=box, command="seq 1000000")["content"] if c["type"] == "resource_link")["uri"])).encode()
        head = "".join(f"{k}: {v}\r\n" for k, v in {**mcp.headers, "Host": "localhost", "Content-Length": len(body)}.items())
        s.sendall(f"POST /mcp HTTP/1.1\r\n{head}\r\n".encode() + body)
        s.recv(10)
        assert mcp.ask("ping")["result"] == {}


@pytest.mark.skipif(paddock.SANITIZED, reason="a sanitizer keeps freed memory")
def test_calls_that_nobody_reads_are_bounded(daemon, mcp, box):
    """Each holds its arguments: past 64 MiB of a tenant those that are left behind end."""
    pid, filler = daemon.api_pid(), "x" * (3 << 20)
    before = paddock.rss_kb(pid)
    for _ in range(45):
        connection, answer = slow_exec(mcp, box, "sleep 60", stateful=False, env={"X": "x"}, stdin=filler)
        next(events(answer))
        connection.close()
    assert mcp.ask("ping")["result"] == {}
    assert paddock.rss_kb(pid) - before < 110 << 10
