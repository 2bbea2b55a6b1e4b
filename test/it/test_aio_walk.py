"""Every operation of AIO's document, once with success and once with failure, each answer checked against the document.

The table below must have all of them: `test_nothing_is_left_out` compares it with the document. Operations of the browser
and the display have one answer; so have those of a proxy that only a browser would use.
"""

import json

import paddock
import aio_shapes

BOUNDARY = "walk"


def form(**fields):
    """A multipart body; a tuple is a file: (name, text)."""
    parts = []
    for name, value in fields.items():
        file = f'; filename="{value[0]}"' if isinstance(value, tuple) else ""
        text = value[1] if isinstance(value, tuple) else value
        parts.append(f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{name}"{file}\r\n\r\n{text}\r\n')
    return ("".join(parts) + f"--{BOUNDARY}--\r\n").encode()


NONE = object()  # nothing can go wrong but the caller: see test_who_asks
SKILL = "---\nname: greet\ndescription: says hello\n---\n# Greet\n"
FILE = "/workspace/walk.txt"

# (method, path of the document, success, failure). What stands there is a body; or (values of the path's {names} and query,
# body) where the path is not used as it is. `seen` has the data of earlier answers by operation.
WALK = [
    ("GET", "/v1/sandbox", None, NONE),
    ("GET", "/v1/sandbox/packages/python", None, NONE),
    ("GET", "/v1/sandbox/packages/nodejs", None, NONE),
    ("POST", "/v1/sandbox/hooks", {"name": "walk", "command": "true"}, {"name": "walk"}),
    ("GET", "/v1/sandbox/hooks", None, ("?event=other", None)),
    ("DELETE", "/v1/sandbox/hooks/{name}", ("walk", None), ("none", None)),
    ("GET", "/v1/sandbox/observe/status", None, NONE),
    ("GET", "/v1/sandbox/observe/live", ("?top_rows=3", None), ("?top_rows=many", None)),
    ("POST", "/v1/sandbox/observe/start", {"interval_seconds": 0.2}, {"mode": "other"}),
    ("POST", "/v1/sandbox/observe/export", {"reason": "walk"}, {"session_id": "none"}),
    ("POST", "/v1/sandbox/observe/stop", {}, {"session_id": "none"}),
    ("GET", "/v1/sandbox/observe/reports", None, NONE),
    ("GET", "/v1/sandbox/observe/reports/{report_id}", (lambda seen: seen["POST /v1/sandbox/observe/export"]["report_id"], None), ("none", None)),
    ("DELETE", "/v1/sandbox/observe/reports/{report_id}",
     (lambda seen: seen["POST /v1/sandbox/observe/export"]["report_id"], None), ("none", None)),
    ("POST", "/v1/shell/sessions/create", {"id": "walk", "exec_dir": "/tmp"}, {"id": "no/name"}),
    ("POST", "/v1/shell/sessions/update", {"id": "walk", "no_change_timeout": 5}, {"id": "none"}),
    ("POST", "/v1/shell/exec", {"id": "walk", "command": "echo hi; cat", "timeout": 0.3}, {"id": "walk"}),
    ("POST", "/v1/shell/view", {"id": "walk"}, {"id": "none"}),
    ("POST", "/v1/shell/write", {"id": "walk", "input": "x", "press_enter": True}, {"id": "walk"}),
    ("POST", "/v1/shell/wait", {"id": "walk", "seconds": 1}, {"id": "none"}),
    ("POST", "/v1/shell/kill", {"id": "walk"}, {"id": "none"}),
    ("GET", "/v1/shell/terminal-url", None, NONE),
    ("GET", "/v1/shell/sessions/stats", None, NONE),
    ("GET", "/v1/shell/sessions", None, NONE),
    ("DELETE", "/v1/shell/sessions/{session_id}", ("walk", None), ("none", None)),
    ("DELETE", "/v1/shell/sessions", None, NONE),
    ("POST", "/v1/bash/sessions/create", {"session_id": "walk", "exec_dir": "/tmp"}, {"session_id": "no/name"}),
    ("POST", "/v1/bash/exec", {"session_id": "walk", "command": "cat; echo e >&2", "async_mode": True}, {"command": ""}),
    ("POST", "/v1/bash/write", {"session_id": "walk", "input": "x\n"}, {"session_id": "none", "input": "x"}),
    ("POST", "/v1/bash/output", {"session_id": "walk"}, {"session_id": "none"}),
    ("POST", "/v1/bash/kill", {"session_id": "walk"}, {"session_id": "walk", "signal": "SIGNONE"}),
    ("GET", "/v1/bash/sessions", None, NONE),
    ("POST", "/v1/bash/sessions/{session_id}/close", ("walk", {}), ("none", {})),
    ("POST", "/v1/file/write", {"file": FILE, "content": "one\ntwo\n"}, {"file": "/proc/none", "content": ""}),
    ("POST", "/v1/file/read", {"file": FILE}, {"file": "/none"}),
    ("POST", "/v1/file/replace", {"file": FILE, "old_str": "two", "new_str": "2"}, {"file": "/none", "old_str": "a", "new_str": "b"}),
    ("POST", "/v1/file/search", {"file": FILE, "regex": "o"}, {"file": FILE, "regex": "("}),
    ("POST", "/v1/file/find", {"path": "/workspace", "glob": "*.txt"}, {"path": "/none", "glob": "*"}),
    ("POST", "/v1/file/grep", {"path": "/workspace", "pattern": "one"}, {"path": "/none", "pattern": "one"}),
    ("POST", "/v1/file/glob", {"path": "/workspace", "pattern": "*"}, {"path": "/none", "pattern": "*"}),
    ("POST", "/v1/file/list", {"path": "/workspace"}, {"path": "/none"}),
    ("POST", "/v1/file/upload", form(path=FILE, file=("a.txt", "up")), form(path=FILE)),
    ("GET", "/v1/file/download", (f"?path={FILE}", None), ("?path=/none", None)),
    ("POST", "/v1/file/str_replace_editor", {"command": "view", "path": FILE}, {"command": "view", "path": "/none"}),
    ("POST", "/v1/file/watch", {"path": "/workspace", "debounce": 50}, {"path": "/none"}),
    ("GET", "/v1/file/watch", None, NONE),
    ("POST", "/v1/file/watch/{watcher_id}/poll", (lambda seen: seen["POST /v1/file/watch"]["watcher_id"], {}), ("none", {})),
    ("POST", "/v1/file/watch/wait", {"path": FILE, "timeout": 1}, {"path": "/none/x"}),
    ("GET", "/v1/file/watch/{watcher_id}/events", "streams", ("none", None)),
    ("DELETE", "/v1/file/watch/{watcher_id}", (lambda seen: seen["POST /v1/file/watch"]["watcher_id"], None), ("none", None)),
    ("POST", "/v1/jupyter/sessions/create", {"session_id": "walk"}, {"kernel_name": "ruby"}),
    ("POST", "/v1/jupyter/execute", {"code": "1 + 1", "session_id": "walk"}, {}),
    ("GET", "/v1/jupyter/info", None, NONE),
    ("GET", "/v1/jupyter/sessions", None, NONE),
    ("DELETE", "/v1/jupyter/sessions/{session_id}", ("walk", None), ("none", None)),
    ("DELETE", "/v1/jupyter/sessions", None, NONE),
    ("POST", "/v1/nodejs/sessions", {"session_id": "js"}, {"cwd": "relative"}),
    ("POST", "/v1/nodejs/execute", {"code": "1 + 1", "session_id": "js"}, {"code": "1", "version": "4"}),
    ("GET", "/v1/nodejs/info", None, NONE),
    ("GET", "/v1/nodejs/sessions", None, ("?version=4", None)),
    ("GET", "/v1/nodejs/sessions/{session_id}", ("js", None), ("none", None)),
    ("PATCH", "/v1/nodejs/sessions/{session_id}", ("js", {}), ("js", {"cwd": "/"})),
    ("DELETE", "/v1/nodejs/sessions/{session_id}", ("js", None), ("none", None)),
    ("POST", "/v1/code/execute", {"language": "python", "code": "print(1)"}, {"language": "cobol", "code": ""}),
    ("GET", "/v1/code/info", None, NONE),
    ("GET", "/v1/mcp/servers", None, NONE),
    ("GET", "/v1/mcp/{server_name}/tools", ("sandbox", None), ("none", None)),
    ("POST", "/v1/mcp/{server_name}/tools/{tool_name}", (("sandbox", "exec"), {"command": "true"}), (("sandbox", "none"), {})),
    ("POST", "/v1/util/convert_to_markdown", {"uri": FILE}, {"uri": "/none"}),
    ("POST", "/v1/skills/register", form(file=("greet.md", SKILL)), form(path="/none")),
    ("GET", "/v1/skills/metadatas", None, NONE),
    ("GET", "/v1/skills/{name}/content", ("greet", None), ("none", None)),
    ("DELETE", "/v1/skills/{name}", ("greet", None), ("none", None)),
    ("DELETE", "/v1/skills", None, NONE),
    ("GET", "/v1/proxy/mappings", None, NONE),
    ("POST", "/v1/proxy/mappings", NONE, {"source": "a.example", "target": ":3000"}),
    ("DELETE", "/v1/proxy/mappings/{source}", NONE, ("a.example", None)),
    ("GET", "/v1/proxy/excludes", None, NONE),
    ("POST", "/v1/proxy/excludes", NONE, {"pattern": "*.example"}),
    ("DELETE", "/v1/proxy/excludes", NONE, {"pattern": "*.example"}),
    ("GET", "/v1/proxy/diagnose", ("?url=http://127.0.0.1:9/", None), ("?url=ftp://127.0.0.1/", None)),
    ("GET", "/v1/proxy/health", None, NONE),
    ("GET", "/v1/proxy/upstream", None, NONE),
    ("PUT", "/v1/proxy/upstream", NONE, {"server": "proxy.example:3128"}),
    ("DELETE", "/v1/proxy/upstream", NONE, None),
    ("POST", "/tickets", {}, b"x" * 5000),
    ("GET", "/auth", None, NONE),
]


def is_refused(path):
    """What an image without a browser says no to, as a whole."""
    return path.startswith(("/v1/browser/", "/v1/display/"))


def operations():
    return {(method.upper(), path) for path, methods in aio_shapes.SHAPES["paths"].items() for method in methods}


def test_nothing_is_left_out():
    walked = [(method, path) for method, path, _, _ in WALK]
    assert len(walked) == len(set(walked)), "an operation stands there twice"
    assert set(walked) == {(method, path) for method, path in operations() if not is_refused(path)}


def send(client, box, method, path, what, seen):
    """The answer to one line of the table."""
    values, body = what if isinstance(what, tuple) else ("", what)
    if callable(values):
        values = values(seen)
    for value in values if isinstance(values, tuple) else (values,):
        head, brace, rest = path.partition("{")
        path = head + value + rest.partition("}")[2] if brace else path + value
    multipart = isinstance(body, bytes)
    headers = {} if body is None else {"Content-Type": f"multipart/form-data; boundary={BOUNDARY}" if multipart else "application/json"}
    data = body if multipart or body is None else json.dumps(body).encode()
    return client.request(method, f"/sandbox/{box.id}{path}", data, headers)


def failed(answer, document):
    return answer.status != 200 or document.get("success") is False


def test_every_operation(make_box, api):
    box, seen = make_box(), {}
    for method, path, good, bad in WALK:
        if bad is not NONE:
            answer = send(api, box, method, path, bad, seen)
            document = aio_shapes.check(answer, method, path)
            assert failed(answer, document if isinstance(document, dict) else answer.json()), (method, path, answer)
        if good is NONE or good == "streams":
            continue
        answer = send(api, box, method, path, good, seen)
        document = aio_shapes.check(answer, method, path)
        assert answer.status == 200, (method, path, answer)
        if isinstance(document, dict) and "success" in document:
            assert document["success"] is True, (method, path, document)
            seen[f"{method} {path}"] = document.get("data")


def test_what_has_no_browser(box, api):
    """One answer for all of it; where bytes are expected, with a status of its own."""
    for method, path in sorted(operations()):
        if not is_refused(path):
            continue
        answer = send(api, box, method, path, ("0", None if method == "GET" else {}) if "{" in path else None if method == "GET" else {}, {})
        document = aio_shapes.check(answer, method, path)
        document = document if isinstance(document, dict) else answer.json()
        assert answer.status in (200, 501) and document["success"] is False, (method, path, answer)
        assert document["message"] in ("this image has no browser", "this image has no display"), (method, path, document)


def test_who_asks(box, daemon, tenant):
    """Without a key, and with another tenant's, no operation says anything of the sandbox."""
    nobody = paddock.Client(daemon)
    for method, path in sorted(operations()):
        target = f"/sandbox/{box.id}" + path.replace("{", "").replace("}", "")
        for client, status in ((nobody, 401), (tenant, 404)):
            answer = client.request(method, target, b"{}" if method in ("POST", "PUT", "PATCH") else None, {"Content-Type": "application/json"})
            assert answer.status == status and answer.json()["success"] is False, (method, path, status, answer)
    nobody.close()
