"""E2B's code interpreter, port 49999 of a box, by plain HTTP: what the npm package does not look at."""

import http.client
import json

import pytest

import paddock


class Interpreter:
    """A box that E2B's control plane made, and its port 49999."""

    def __init__(self, client, **wish):
        made = client.post("/v2/sandboxes", {"templateID": "code-interpreter-v1", "timeout": 300, **wish})
        assert made.status == 201, made
        self.client, self.document, self.id = client, made.json(), made.json()["sandboxID"]
        client.daemon.saw(self.id)
        self.anonymous = paddock.Client(client.daemon)
        self.token = {"X-Access-Token": self.document["envdAccessToken"]}

    def headers(self, **more):
        return {"E2b-Sandbox-Id": self.id, "E2b-Sandbox-Port": "49999", "Content-Type": "application/json", **more}

    def request(self, method, path, body=None, client=None, **headers):
        data = None if body is None else json.dumps(body).encode()
        return (client or self.anonymous).request(method, path, data, self.headers(**headers))

    def try_execute(self, code, client=None, **wish):
        return self.request("POST", "/execute", {"code": code, **wish}, client, **self.token)

    def execute(self, code, **wish):
        response = self.try_execute(code, **wish)
        assert response.status == 200, response
        assert response.headers["content-type"] == "application/x-ndjson"
        lines = [json.loads(line) for line in response.body.splitlines()]
        assert lines[-1] == {"type": "end_of_execution"}
        return lines[:-1]

    def out(self, code, **wish):
        return "".join(line["text"] for line in self.execute(code, **wish) if line["type"] == "stdout")

    def start(self, code, client):
        return client.start("POST", "/execute", json.dumps({"code": code}).encode(), self.headers(**self.token))


@pytest.fixture(scope="module")
def box(api):
    it = Interpreter(api)
    yield it
    assert api.delete(f"/sandboxes/{it.id}").status == 204


def test_lines(box):
    lines = box.execute("import sys\nprint('ü')\nprint('e', file=sys.stderr)\n{'a': 1}")
    assert [line["type"] for line in lines] == ["stdout", "stderr", "result", "number_of_executions"]
    assert lines[0]["text"] == "ü\n" and lines[0]["timestamp"].endswith("Z") and lines[1]["text"] == "e\n"
    assert lines[2] == {"type": "result", "text": "{'a': 1}", "json": {"a": 1}, "is_main_result": True}
    assert lines[3] == {"type": "number_of_executions", "execution_count": 1}


@pytest.mark.parametrize("language, code, text", [
    ("python", "'plain'", "plain"), ("python", "\"it's\"", "it's"), ("python", "'a\\nb'", "a\\nb"), ("python", "['x']", "['x']"),
    ("python", "b'x'", "b'x'"), ("python", "''", ""), ("javascript", "'plain'", "plain"), ("javascript", "[\"it's\"]", "[ \"it's\" ]")])
def test_strings_have_no_quotes(box, language, code, text):
    [result] = [line for line in box.execute(code, language=language) if line["type"] == "result"]
    assert result["text"] == text and result["is_main_result"]


def test_code_is_run_by_root(box):
    """The kernels of E2B are root's, in the home of the user."""
    show = "import os; print(os.getuid(), os.getcwd(), os.environ['HOME'])"
    assert box.out(show) == "0 /home/user /root\n"
    context = box.request("POST", "/contexts", {"cwd": "/root"}).json()
    assert context["cwd"] == "/root" and box.out(show, context_id=context["id"]) == "0 /root /root\n"
    named = box.request("POST", "/contexts", {"user": "user"}).json()
    assert box.out("import os, pwd; print(pwd.getpwuid(os.getuid()).pw_name)", context_id=named["id"]) == "user\n"


def test_errors_are_lines(box):
    [error, _] = box.execute("1/0")
    assert (error["type"], error["name"], error["value"]) == ("error", "ZeroDivisionError", "division by zero")
    assert "1/0" in error["traceback"]


def test_what_is_not_text(box):
    """Bytes that are no UTF-8 become U+FFFD, once each; a character that comes in pieces stays one."""
    assert box.out("import os; os.write(1, b'a\\xff\\xc3\\xbc\\xe2\\x82!\\xf0\\x9f'); None") == "a\ufffdü\ufffd\ufffd!\ufffd\ufffd"
    code = "import os, time\nfor byte in 'ü€😀'.encode():\n    os.write(1, bytes([byte])); time.sleep(0.02)\n"
    assert box.out(code) == "ü€😀"


def test_contexts(box):
    standing = box.request("GET", "/contexts").json()
    assert {"id": "javascript", "language": "javascript", "cwd": "/home/user"} in standing
    made = box.request("POST", "/contexts", {"language": "js", "cwd": "/tmp", "something": "new"})
    assert made.status == 200 and set(made.json()) == {"id", "language", "cwd"}
    context = made.json()
    assert context["language"] == "javascript" and context["cwd"] == "/tmp"
    assert context in box.request("GET", "/contexts").json()
    box.execute("let x = 5", context_id=context["id"])
    assert box.out("console.log(x, process.cwd())", context_id=context["id"]) == "5 /tmp\n"
    assert box.request("POST", f"/contexts/{context['id']}/restart").status == 204
    [error, *_] = box.execute("x", context_id=context["id"])
    assert error["name"] == "ReferenceError"
    assert box.request("DELETE", f"/contexts/{context['id']}").status == 204
    assert context not in box.request("GET", "/contexts").json()


def test_default_contexts(box):
    box.execute("y = 1")
    assert box.out("print(y)", context_id="python") == box.out("print(y)", language="python") == "1\n"
    assert box.out("import os; print(os.getcwd(), os.environ['E2B_SANDBOX'], os.environ['E2B_SANDBOX_ID'])") == (
        f"/home/user true {box.id}\n")
    assert box.request("POST", "/contexts/python/restart").status == 204
    assert box.execute("y")[0]["name"] == "NameError"
    assert box.request("DELETE", "/contexts/javascript").status == 204, "also where no code has made it yet"


def test_variables(box):
    assert box.out("import os; print(os.environ.get('V'))", env_vars={"V": "w"}) == "w\n"
    assert box.out("import os; print(os.environ.get('V'))") == "None\n"


@pytest.mark.parametrize("wish, status", [
    ({"context_id": "nosuch"}, 404), ({"context_id": "python", "language": "python"}, 400), ({"language": "cobol"}, 400),
    ({"env_vars": {"A": 1}}, 400), ({"code": None}, 400), ({"code": 1}, 400)])
def test_bad_wishes(box, wish, status):
    response = box.try_execute(**{"code": "1", **wish})
    assert response.status == status and response.headers["content-type"].startswith("text/plain")


def test_a_language_that_is_not_installed(api):
    box = Interpreter(api)
    assert box.out("rm $(command -v R)", language="bash") == ""
    for response in (box.try_execute("1", language="r"), box.request("POST", "/contexts", {"language": "R"})):
        assert response.status == 400 and "r-base-core" in response.body.decode(), response
    api.delete(f"/sandboxes/{box.id}")


@pytest.mark.parametrize("method, path, status", [
    ("GET", "/health", 200), ("GET", "/execute", 405), ("GET", "/nothing", 404), ("DELETE", "/contexts/", 404),
    ("DELETE", "/contexts/nosuch", 404), ("POST", "/contexts/nosuch/restart", 404), ("DELETE", "/contexts/a/b", 404)])
def test_paths(box, method, path, status):
    assert box.request(method, path).status == status


def test_code_needs_the_token(box):
    for headers in ({}, {"X-Access-Token": ""}, {"X-Access-Token": "0" * 64},
                    {"X-Access-Token": Interpreter(box.client).document["envdAccessToken"]}):
        assert box.request("POST", "/execute", {"code": "1"}, **headers).status == 401


def test_private_ports(api):
    box = Interpreter(api, network={"allowPublicTraffic": False})
    assert box.request("GET", "/contexts").status == 502, "nobody is told of it"
    assert box.try_execute("1").status == 403, "with the access token alone"
    pass_ = {"E2b-Traffic-Access-Token": box.document["trafficAccessToken"]}
    assert box.request("GET", "/contexts", **pass_).status == 200
    assert box.request("POST", "/execute", {"code": "1"}, **pass_).status == 401
    assert box.request("POST", "/execute", {"code": "1"}, **pass_, **box.token).status == 200
    api.delete(f"/sandboxes/{box.id}")


def test_the_head_comes_before_the_turn(daemon, api):
    """A client waits for the head for thirty seconds only: code that waits for other code has it at once."""
    box = Interpreter(api)
    first, second = daemon.client(), daemon.client()
    running = box.start("print('go', flush=True)\nimport time\ntime.sleep(100)", first)
    assert json.loads(running.readline())["text"] == "go\n"
    waiting = box.start("print('after')", second)
    assert waiting.status == 200
    running.close()  # who goes takes the code along
    first.close()
    assert json.loads(waiting.readline())["text"] == "after\n"
    second.close()
    api.delete(f"/sandboxes/{box.id}")


def test_death_and_the_end_of_the_box(daemon, api):
    box = Interpreter(api)
    [error] = box.execute("import os; os._exit(3)")
    assert error["type"] == "error" and error["name"] == "InterpreterDied"
    assert box.out("print(1)") == "1\n"
    client = daemon.client()
    running = box.start("print('go', flush=True)\nimport time\ntime.sleep(100)", client)
    assert json.loads(running.readline())["text"] == "go\n"
    assert api.delete(f"/sandboxes/{box.id}").status == 204
    with pytest.raises((http.client.HTTPException, OSError)):  # broken, not ended
        running.read()
    client.close()
    gone = box.try_execute("1")
    assert gone.status == 502 and gone.json()["code"] == 502
