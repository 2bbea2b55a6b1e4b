"""The AIO sandbox API: code, jupyter and nodejs. Every reply is checked against the published document."""

import paddock
from aio_shapes import call


def execute(api, box, path, **body):
    found = call(api, box, "POST", path, body)
    assert found.get("success"), found
    return found["data"]


def test_python_has_jupyters_outputs(api, box):
    code = "import sys\nprint('to out')\nprint('to err', file=sys.stderr)\n6 * 7"
    done = execute(api, box, "/v1/jupyter/execute", code=code)
    assert done["status"] == "ok" and done["kernel_name"] == "python3" and done["code"] == code and done["execution_count"] == 1
    streams = {o["name"]: o["text"] for o in done["outputs"] if o["output_type"] == "stream"}
    assert streams == {"stdout": "to out\n", "stderr": "to err\n"}
    results = [o for o in done["outputs"] if o["output_type"] == "execute_result"]
    assert len(results) == 1 and results[0]["data"]["text/plain"] == "42"


def test_a_character_stays_whole(api, box):
    """Each half is there when the daemon reads, and the other channel's output between them."""
    code = """import os, time
both = "\N{GRINNING FACE}".encode()
for channel, piece in (1, both[:2]), (2, b"err"), (1, both[2:]):
    os.write(channel, piece)
    time.sleep(0.1)"""
    done = execute(api, box, "/v1/jupyter/execute", code=code)
    texts = {name: "".join(o["text"] for o in done["outputs"] if o["name"] == name) for name in ("stdout", "stderr")}
    assert texts == {"stdout": "\N{GRINNING FACE}", "stderr": "err"}
    half = execute(api, box, "/v1/jupyter/execute", code="import os\nos.write(1, b'a\\xf0\\x9f')\nNone")
    assert [o["text"] for o in half["outputs"] if o["output_type"] == "stream"] == ["a\N{REPLACEMENT CHARACTER}\N{REPLACEMENT CHARACTER}"]


def test_a_session_remembers(api, box):
    first = execute(api, box, "/v1/jupyter/execute", code="x = 20")
    again = execute(api, box, "/v1/jupyter/execute", code="x + 1", session_id=first["session_id"])
    assert again["outputs"][0]["data"]["text/plain"] == "21" and again["session_id"] == first["session_id"]
    other = execute(api, box, "/v1/jupyter/execute", code="x")
    assert other["status"] == "error" and other["outputs"][-1]["ename"] == "NameError" and other["outputs"][-1]["traceback"]
    named = execute(api, box, "/v1/jupyter/execute", code="y = 1", session_id="a-name-of-36-characters-0123456789ab", cwd="/tmp")
    assert named["session_id"] == "a-name-of-36-characters-0123456789ab"
    there = execute(api, box, "/v1/jupyter/execute", code="import os\nprint(os.getcwd(), y)", session_id=named["session_id"])
    assert there["outputs"][0]["text"] == "/tmp 1\n"


def test_sessions_that_nobody_named_make_room(make_box, api):
    box = make_box()
    named = execute(api, box, "/v1/jupyter/sessions/create", session_id="kept")
    assert named["session_id"] == "kept"
    made = [execute(api, box, "/v1/jupyter/execute", code="1")["session_id"] for _ in range(7)]
    listed = call(api, box, "GET", "/v1/jupyter/sessions")["data"]["sessions"]
    assert "kept" in listed and set(listed) - {"kept"} == set(made[-4:])


def test_jupyter_sessions(api, box):
    made = execute(api, box, "/v1/jupyter/sessions/create", session_id="mine", cwd="/tmp")
    assert made["session_id"] == "mine"
    assert "exists" in execute(api, box, "/v1/jupyter/sessions/create", session_id="mine")["message"]
    auto = execute(api, box, "/v1/jupyter/sessions/create")["session_id"]
    listed = call(api, box, "GET", "/v1/jupyter/sessions")["data"]["sessions"]
    assert {"mine", auto} <= set(listed) and listed["mine"]["kernel_name"] == "python3"
    about = call(api, box, "GET", "/v1/jupyter/info")["data"]
    assert about["default_kernel"] == "python3" and about["active_sessions"] >= 2
    assert call(api, box, "DELETE", "/v1/jupyter/sessions/mine")["success"]
    assert not call(api, box, "DELETE", "/v1/jupyter/sessions/mine")["success"]
    assert call(api, box, "DELETE", "/v1/jupyter/sessions")["success"]
    assert call(api, box, "GET", "/v1/jupyter/sessions")["data"]["sessions"] == {}


def test_time_is_limited(api, box):
    done = paddock.given_time(lambda limit: execute(api, box, "/v1/jupyter/execute", code="import time\nprint('here', flush=True)\ntime.sleep(60)",
                                                    timeout=limit // 1000), lambda done: "text" in done["outputs"][0], 1000)
    assert done["status"] == "timeout" and done["outputs"][0]["text"] == "here\n"
    done = execute(api, box, "/v1/nodejs/execute", code="setTimeout(() => {}, 60000)", timeout=1)
    assert done["status"] == "timeout" and done["exit_code"] != 0


def test_wrong_bodies(api, box):
    for path, body, field in (
            ("/v1/jupyter/execute", {}, "code"),
            ("/v1/jupyter/execute", {"code": "1", "timeout": 0}, "timeout"),
            ("/v1/jupyter/execute", {"code": "1", "timeout": 301}, "timeout"),
            ("/v1/nodejs/execute", {"code": 1}, "code"),
            ("/v1/nodejs/execute", {"code": "1", "files": {"a": 1}}, "files"),
            ("/v1/nodejs/sessions", {"max_idle_time": 1}, "max_idle_time"),
            ("/v1/code/execute", {"code": "1"}, "language"),
            ("/v1/code/execute", {"code": "1", "language": "cobol"}, "language")):
        found = call(api, box, "POST", path, body)
        assert field in found["detail"][0]["loc"][-1], (path, body, found)


def test_what_cannot_be_is_refused_by_name(api, box):
    for path, body, word in (
            ("/v1/jupyter/execute", {"code": "1", "kernel_name": "python2.7"}, "python2.7"),
            ("/v1/jupyter/execute", {"code": "1", "session_id": "no/name"}, "context's id"),
            ("/v1/jupyter/execute", {"code": "1", "session_id": "x" * 41}, "session_id"),
            ("/v1/jupyter/execute", {"code": "1", "cwd": "relative"}, "cwd"),
            ("/v1/nodejs/execute", {"code": "1", "version": "4"}, "Node.js"),
            ("/v1/nodejs/execute", {"code": "1", "files": {"../x": ""}}, "files"),
            ("/v1/nodejs/execute", {"code": "1", "stateful": True, "stdin": "x"}, "stdin")):
        found = call(api, box, "POST", path, body)
        assert not found["success"] and word in found["message"] and found["data"] is None, (path, body, found)
    execute(api, box, "/v1/jupyter/execute", code="1", session_id="of-python")
    found = call(api, box, "POST", "/v1/nodejs/execute", {"code": "1", "session_id": "of-python"})
    assert not found["success"] and "python" in found["message"]


def test_code_runs_both_languages(api, box):
    done = execute(api, box, "/v1/code/execute", language="python", code="print('hi')\n1 + 1")
    assert done["status"] == "ok" and done["stdout"] == "hi\n" and done["exit_code"] == 0 and done["session_id"] is None
    done = execute(api, box, "/v1/code/execute", language="python", code="1 / 0")
    assert done["status"] == "error" and done["exit_code"] == 1 and "ZeroDivisionError" in "".join(done["traceback"])
    done = execute(api, box, "/v1/code/execute", language="javascript", code="console.log(1 + 1)")
    assert done["stdout"] == "2\n" and done["language"] == "javascript"
    kept = execute(api, box, "/v1/code/execute", language="javascript", code="var z = 5", stateful=True)
    done = execute(api, box, "/v1/code/execute", language="javascript", code="console.log(z)", stateful=True, session_id=kept["session_id"])
    assert done["stdout"] == "5\n"
    languages = {one["language"]: one for one in call(api, box, "GET", "/v1/code/info")["data"]["languages"]}
    assert languages["python"]["runtime_version"].startswith("3.") and languages["javascript"]["max_timeout"] == 300


def test_code_without_state_leaves_nothing(make_box, api):
    box = make_box()
    execute(api, box, "/v1/code/execute", language="python", code="open('/tmp/x', 'w').write('1')")
    assert call(api, box, "GET", "/v1/jupyter/sessions")["data"]["sessions"] == {}
    execute(api, box, "/v1/nodejs/execute", code="console.log(__dirname)", cwd="/tmp")
    left = box.check("ls -A /tmp").split()
    assert left == ["x"], left


def test_node(api, box):
    done = execute(api, box, "/v1/nodejs/execute", code="const fs = require('fs');\nconsole.log(fs.readFileSync(0, 'utf8') + require('./a/b.js').c)",
                   stdin="in ", files={"a/b.js": "exports.c = 'it''s'".replace("''", "\\'")})
    assert done["stdout"] == "in it's\n" and done["exit_code"] == 0 and done["session_id"] is None
    done = execute(api, box, "/v1/nodejs/execute", code="import fs from 'fs';\nconsole.log(await Promise.resolve(typeof fs.statSync + typeof require))")
    assert done["stdout"] == "functionfunction\n", done
    done = execute(api, box, "/v1/nodejs/execute", code="console.error('bad'); process.exit(3)")
    assert done["status"] == "error" and done["exit_code"] == 3 and done["stderr"] == "bad\n"
    done = execute(api, box, "/v1/nodejs/execute", code="null.x")
    assert done["outputs"][-1]["ename"] == "TypeError" and done["exit_code"] == 1
    version = call(api, box, "GET", "/v1/nodejs/info")["data"]["node_version"]
    assert execute(api, box, "/v1/nodejs/execute", code="1", version="node" + version.split(".")[0])["status"] == "ok"


def test_node_sessions(api, box):
    made = execute(api, box, "/v1/nodejs/sessions", session_id="js", cwd="/tmp")
    assert made["created"] and made["session"]["cwd"] == "/tmp"
    assert not execute(api, box, "/v1/nodejs/sessions", session_id="js")["created"]
    execute(api, box, "/v1/nodejs/execute", code="const a = 1", session_id="js")
    done = execute(api, box, "/v1/nodejs/execute", code="console.log(a, process.cwd())", session_id="js", stateful=True)
    assert done["stdout"] == "1 /tmp\n" and done["session_id"] == "js"
    assert call(api, box, "GET", "/v1/nodejs/sessions/js")["data"]["session"]["state"] == "idle"
    assert "js" in call(api, box, "GET", "/v1/nodejs/sessions")["data"]["sessions"]
    assert call(api, box, "PATCH", "/v1/nodejs/sessions/js", {"max_idle_time": 86400})["data"]["updated"]
    assert not call(api, box, "PATCH", "/v1/nodejs/sessions/js", {"cwd": "/"})["success"]
    assert call(api, box, "DELETE", "/v1/nodejs/sessions/js")["data"]["deleted"]
    assert not call(api, box, "GET", "/v1/nodejs/sessions/js")["success"]


def test_sessions_survive_a_restart_of_the_api(own_daemon):
    it = own_daemon().start()
    client = it.client()
    box = client.create()
    execute(client, box, "/v1/jupyter/execute", code="x = 5", session_id="mine")
    it.kill_api()
    done = execute(it.client(), box, "/v1/jupyter/execute", code="x", session_id="mine")
    assert done["outputs"][0]["data"]["text/plain"] == "5"


def test_there_is_no_browser(api, box):
    for method, path in (("GET", "/v1/browser/info"), ("POST", "/v1/browser/page/navigate"), ("GET", "/v1/browser/tabs"),
                         ("DELETE", "/v1/browser/tabs/{index}"), ("POST", "/v1/browser/actions"), ("POST", "/v1/display/record")):
        found = call(api, box, method, path.replace("{index}", "0"), {} if method == "POST" else None)
        assert not found["success"] and found["message"].startswith("this image has no "), (path, found)
    shot = api.get(f"/sandbox/{box.id}/v1/browser/screenshot")
    assert shot.status == 501 and shot.json()["message"] == "this image has no browser"
