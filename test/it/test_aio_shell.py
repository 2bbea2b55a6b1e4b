"""AIO's shell, bash and proxy routes. Every answer is checked against the published document."""

import json

import pytest

import aio_shapes
import paddock
from test_terminal import TEXT, Socket


@pytest.fixture
def ask(make_box, api):
    box = make_box()

    def ask(method, path, document=None, **more):
        return aio_shapes.call(api, box, method, path, document, **more)

    ask.box = box
    return ask


def test_shell_keeps_state(ask):
    first = ask("POST", "/v1/shell/exec", {"command": "cd /tmp; x=5; echo hi; echo oops >&2"})["data"]
    assert (first["status"], first["exit_code"], first["output"]) == ("completed", 0, "hi\noops\n")
    again = ask("POST", "/v1/shell/exec", {"id": first["session_id"], "command": "pwd; echo $x; false"})["data"]
    assert (again["output"], again["exit_code"]) == ("/tmp\n5\n", 1)
    other = ask("POST", "/v1/shell/exec", {"command": "pwd", "exec_dir": "/usr"})["data"]
    assert other["output"] == "/usr\n" and other["session_id"] != first["session_id"]
    strict = ask("POST", "/v1/shell/exec", {"command": "pwd", "exec_dir": "/no/such", "strict": True})
    assert strict["success"] is False and "/no/such" in strict["message"]


def test_ps_shows_a_plain_shell(ask):
    """Nothing of the text that makes a session of a bash is in its arguments, nor left in its environment."""
    run = ask("POST", "/v1/shell/exec", {"id": "ps", "command": "ps -ww -o args= -p $$; tty; echo $0 ${BASH_EXECUTION_STRING-none} $SHLVL; env"})["data"]
    args, terminal, shell, *env = run["output"].splitlines()
    assert (args, shell) == ("bash", "bash none 1") and terminal == "/dev/tty", run
    assert not [line for line in env if "__paddock" in line]
    fds = ask("POST", "/v1/shell/exec", {"id": "ps", "command": "ls /proc/self/fd"})["data"]["output"].split()
    assert fds == ["0", "1", "2", "3"], "the fourth is of ls"


def test_shell_soft_and_hard_limits(ask):
    run = ask("POST", "/v1/shell/exec", {"id": "s", "command": "read -r x; echo got $x", "timeout": 0.2})["data"]
    assert run["status"] == "running" and run["exit_code"] is None
    assert ask("POST", "/v1/shell/exec", {"id": "s", "command": "true"})["success"] is False
    assert ask("POST", "/v1/shell/write", {"id": "s", "input": "it", "press_enter": True})["data"]["status"] == "running"
    assert ask("POST", "/v1/shell/wait", {"id": "s", "seconds": 20})["data"]["status"] == "completed"
    seen = ask("POST", "/v1/shell/view", {"id": "s"})["data"]
    assert seen["output"].endswith("got it\n") and seen["exit_code"] == 0
    hard = ask("POST", "/v1/shell/exec", {"id": "s", "command": "echo a; sleep 60", "hard_timeout": 0.3})["data"]
    assert hard["status"] == "hard_timeout" and hard["output"].startswith("a\n")  # bash may add "Killed"
    quiet = ask("POST", "/v1/shell/exec", {"id": "s", "command": "sleep 60", "no_change_timeout": 1})["data"]
    assert quiet["status"] == "no_change_timeout"
    assert ask("POST", "/v1/shell/kill", {"id": "s"})["data"]["status"] == "terminated"
    long = ask("POST", "/v1/shell/exec", {"id": "s", "command": "seq 20000"})["data"]
    assert len(long["output"]) < 30100 and long["output"].endswith("20000\n")
    whole = ask("POST", "/v1/shell/exec", {"id": "s", "command": "seq 20000", "truncate": False})["data"]
    assert len(whole["output"]) > 100000


def test_shell_sessions(ask):
    made = ask("POST", "/v1/shell/sessions/create", {"id": "a", "exec_dir": "/usr"})["data"]
    assert made == {"session_id": "a", "working_dir": "/usr"}
    assert ask("POST", "/v1/shell/sessions/update", {"id": "a", "no_change_timeout": 3})["success"]
    assert ask("POST", "/v1/shell/exec", {"id": "a", "command": "sleep 60", "async_mode": True})["data"]["status"] == "running"
    assert list(ask("GET", "/v1/shell/sessions")["data"]["sessions"]) == ["a"]
    assert ask("GET", "/v1/shell/sessions/stats")["data"]["active_sessions"] == 1
    assert ask("DELETE", "/v1/shell/sessions/a")["success"]
    assert ask("DELETE", "/v1/shell/sessions/a")["success"] is False
    assert ask("DELETE", "/v1/shell/sessions")["success"]
    for path in ("view", "wait", "kill"):
        assert ask("POST", f"/v1/shell/{path}", {"id": "none"})["success"] is False
        assert ask("POST", f"/v1/shell/{path}", {})["detail"]
    assert "/terminal?ticket=" in ask("GET", "/v1/shell/terminal-url")["data"]


def test_shell_events(ask, api):
    reply = api.request("POST", f"/sandbox/{ask.box.id}/v1/shell/exec", json.dumps({"command": "echo hi"}).encode(),
                        {"Content-Type": "application/json", "Accept": "text/event-stream"})
    assert reply.status == 200 and b"event: output" in reply.body and b"event: result" in reply.body


def test_bash(ask):
    run = ask("POST", "/v1/bash/exec", {"command": "echo $A; echo e >&2; pwd; exit 3", "env": {"A": "1"},
                                        "exec_dir": "/usr"})["data"]
    assert (run["stdout"], run["stderr"], run["exit_code"], run["status"]) == ("1\n/usr\n", "e\n", 3, "completed")
    sid = run["session_id"]
    run = ask("POST", "/v1/bash/exec", {"session_id": sid, "command": "read x; echo got $x; pwd", "async_mode": True})["data"]
    assert run["status"] == "running"
    assert ask("POST", "/v1/bash/write", {"session_id": sid, "input": "it\n"})["success"]
    text, at = "", 0
    while True:
        more = ask("POST", "/v1/bash/output", {"session_id": sid, "command_id": run["command_id"], "offset": at, "wait": True})["data"]
        text, at = text + more["stdout"], more["offset"]
        if more["command"]["status"] != "running":
            break
    assert text == "got it\n/usr\n" and more["command"]["exit_code"] == 0
    soft = ask("POST", "/v1/bash/exec", {"session_id": sid, "command": "echo a; sleep 60", "timeout": 0.5})["data"]
    assert soft["status"] == "running" and soft["stdout"] == "a\n" and soft["offset"] == 2
    assert ask("GET", "/v1/bash/sessions")["data"][0]["current_command"] == "echo a; sleep 60"
    assert ask("POST", "/v1/bash/kill", {"session_id": sid})["success"]
    hard = ask("POST", "/v1/bash/exec", {"session_id": sid, "command": "sleep 60", "hard_timeout": 0.2})["data"]
    assert hard["status"] == "timed_out"
    assert ask("POST", f"/v1/bash/sessions/{sid}/close")["success"]
    assert ask("POST", "/v1/bash/exec", {"session_id": sid, "command": "true"})["success"] is False
    assert ask("POST", "/v1/bash/output", {"session_id": "none"})["success"] is False
    assert ask("POST", "/v1/bash/exec", {})["detail"]
    assert ask("POST", "/v1/bash/sessions/create", {"session_id": "b"})["data"]["status"] == "ready"


def test_output_counts_against_the_tenant(daemon, tenant):
    """What commands wrote and nobody has read yet is bounded by the tenant's 64 MiB, in every dialect."""
    box = tenant.create()
    most = 8 << 20  # of each stream of a command
    waiting = []
    for _ in range(5):  # each holds what its command has written until it ends, and none ends
        client = daemon.client(tenant.key)
        connection = client.connect()
        body = json.dumps({"command": f"head -c {most} /dev/zero | tr '\\0' x | tee /dev/stderr; exec sleep 600"}).encode()
        connection.request("POST", f"/sandbox/{box.id}/v1/bash/exec", body, client.headers({"Content-Type": "application/json"}))
        waiting.append(client)

    def refused():
        answer = tenant.post(f"/v1/sandboxes/{box.id}/exec", {"command": "true"})
        return answer.status != 200 and "output of this tenant's commands" in answer.json()["error"]["message"]

    paddock.until(refused, "the tenant's output to be counted", timeout=60)
    for client in waiting:
        client.close()


SERVER = """
import http.server
class H(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = (self.path + ' ' + str(self.headers.get('x-aio-api-key'))).encode()
        self.send_response(200); self.send_header('Content-Length', str(len(body))); self.end_headers(); self.wfile.write(body)
s = http.server.HTTPServer(('127.0.0.1', 8123), H)
print('up', flush=True)
s.serve_forever()
"""


def test_proxy(ask, api, daemon, tenant):
    run = ask("POST", "/v1/bash/exec", {"command": "exec python3 -c \"$S\"", "env": {"S": SERVER}, "async_mode": True})["data"]
    up = ask("POST", "/v1/bash/output", {"session_id": run["session_id"], "wait": True})["data"]
    assert up["stdout"] == "up\n", up
    base = f"/sandbox/{ask.box.id}"
    key = {"X-AIO-API-Key": daemon.key}
    assert api.get(f"{base}/proxy/8123/a/b?x=1&ticket=t", headers=key).body == b"/a/b?x=1 None"
    assert api.get(f"{base}/absproxy/8123/a", headers=key).body == b"/absproxy/8123/a None"
    assert tenant.get(f"{base}/proxy/8123/a").status == 404
    assert api.get(f"{base}/proxy/0/").status in (200, 400, 422)


def test_terminal_page(ask, api):
    page = api.get(f"/sandbox/{ask.box.id}/terminal")
    assert page.status == 200 and b"/v1/shell/ws" in page.body


# ---- the terminal of a browser ----

def read_text(socket, word):
    """What the terminal shows, up to a word."""
    seen = ""
    while word not in seen:
        message = socket.control()
        assert message["type"] in ("output", "ping"), message
        seen += message.get("data", "") if message["type"] == "output" else ""
    return seen


def test_terminal_over_a_websocket(ask, api, daemon, tenant):
    path = f"/sandbox/{ask.box.id}/v1/shell/ws"
    socket = Socket(daemon, path)
    assert socket.status == 101
    assert socket.control()["type"] == "session_id" and socket.control() == {"type": "ready"}
    read_text(socket, "$ ")  # test_terminal.PROMPT says why
    for message in ({"type": "pong"}, {"type": "resize", "data": {"cols": 91, "rows": 33}}, {"type": "input", "data": "stty size; echo \u00f6$((6*7))\n"}):
        socket.send(TEXT, json.dumps(message))
    shown = read_text(socket, "\u00f642")
    assert "33 91" in shown
    process = ask.box.find_process("-l")
    socket.close()
    assert paddock.wait_gone(process, timeout=30)  # it ends with its connection
    for wrong in ({"type": "input"}, {"type": "resize", "data": {"cols": 0, "rows": 1}}, {"type": "other"}, {}):
        socket = Socket(daemon, path)
        assert [socket.control()["type"] for _ in range(2)] == ["session_id", "ready"]
        socket.send(TEXT, json.dumps(wrong))
        assert socket.rest()[2] not in (None, 1000), wrong
        socket.close()
    for headers, key, status in ((["Origin: http://evil.example"], None, 403), ([], "", 401), ([f"X-AIO-API-Key: {tenant.key}"], "", 404)):
        refused = Socket(daemon, path, headers, key=key)
        assert refused.status == status, (headers, refused.status)
        refused.close()
    ticket = api.post(f"/sandbox/{ask.box.id}/tickets", {}).json()["ticket"]
    by_ticket = Socket(daemon, f"{path}?ticket={ticket}", key="")
    assert by_ticket.status == 101 and by_ticket.control()["type"] == "session_id"
    by_ticket.close()


def test_a_ticket_ends(make_box, api, daemon):
    box = make_box(env={"TICKET_TTL_SECONDS": "1"})
    nobody = paddock.Client(daemon)
    ticket = api.post(f"/sandbox/{box.id}/tickets", {}).json()
    assert ticket["expires_in"] == 1
    paddock.until(lambda: nobody.get(f"/sandbox/{box.id}/auth?ticket={ticket['ticket']}").status == 401, "the ticket to end")
    url = aio_shapes.call(api, box, "GET", "/v1/shell/terminal-url")["data"]
    assert url.startswith(f"http://{daemon.host}:{daemon.port}/sandbox/{box.id}/terminal?ticket=")
    nobody.close()


def test_sessions_make_place(make_box, api):
    """Of 48 sessions of a sandbox, the one that is idle longest and that nobody named goes first; named ones stay."""
    box = make_box(limits={"memory_mb": 1024, "pids": 400})

    def run(id=None):
        found = aio_shapes.call(api, box, "POST", "/v1/shell/exec", {"command": "true", **({"id": id} if id else {})})
        return found["data"]["session_id"] if found["success"] else found["message"]

    first = run()
    named = [run(f"n{i}") for i in range(46)]
    second = run()
    third = run()
    kept = set(aio_shapes.call(api, box, "GET", "/v1/shell/sessions")["data"]["sessions"])
    assert first not in kept and {second, third, *named} <= kept
    assert run("one") == "one" and run("two") == "two"
    assert "48 sessions" in run()
    assert run("n0") == "n0"
    assert aio_shapes.call(api, box, "DELETE", "/v1/shell/sessions")["success"]
    assert run()


def test_sessions_from_before_a_restart_count(own_daemon):
    """A new api has forgotten them, but the box has not: it has 64 terminals, and 48 sessions at most."""
    daemon = own_daemon().start()
    api = daemon.client()
    box = api.create(limits={"memory_mb": 2048, "pids": 400})

    def run(client, id=None):
        found = aio_shapes.call(client, box, "POST", "/v1/shell/exec", {"command": "echo $((6 * 7))", **({"id": id} if id else {})})
        assert found["success"] and found["data"]["output"].strip() == "42", found
        return found["data"]["session_id"]

    def sessions(client):
        return set(aio_shapes.call(client, box, "GET", "/v1/shell/sessions")["data"]["sessions"])

    named = {run(api, f"n{i}") for i in range(4)}
    before = [run(api) for _ in range(50)]
    daemon.kill_api()
    api = daemon.client()
    made = [run(api) for _ in range(20)]
    kept = sessions(api)
    assert len(kept) <= 48 and named <= kept and made[-1] in kept and before[-1] in kept, "the newest of before stay, too"
    assert aio_shapes.call(api, box, "POST", "/v1/shell/sessions/create", {"id": "late"})["success"] and len(sessions(api)) <= 48
    box.with_client(api).delete()
