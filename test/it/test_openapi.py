"""api/openapi.yaml is the truth: the code has its routes, the answers have its shapes."""

import json
import re
import shlex
import subprocess

import pytest
import yaml

import paddock

DOCUMENT = paddock.ROOT / "api" / "openapi.yaml"
METHODS = ("get", "put", "post", "delete", "head", "patch", "options")


@pytest.fixture(scope="module")
def document():
    return yaml.safe_load(DOCUMENT.read_text())


def plain(path):
    """Parameter names do not matter: /v1/sandboxes/{id} and /v1/sandboxes/{box} are one route."""
    return re.sub(r"\{[^}]*\}", "{}", path)


def built_routes():
    """{document: routes}: what `paddock-api --routes` prints, under the headings of the dialects."""
    result = subprocess.run([paddock.BIN / "paddock-api", "--routes"], capture_output=True, text=True, timeout=10)
    assert result.returncode == 0, result.stderr
    found, heading = {}, ""
    for line in filter(None, map(str.strip, result.stdout.splitlines())):
        if line.startswith("#"):
            heading = line.strip("# ")
        else:
            method, path = line.split()
            found.setdefault(heading, set()).add((method, plain(path)))
    return found


@pytest.mark.parametrize("dialect, file", [("", "openapi.yaml"), ("e2b", "e2b/openapi.yaml"),
                                           ("interpreter", "e2b/interpreter.yaml")])
def test_routes_both_ways(dialect, file):
    document = yaml.safe_load((paddock.ROOT / "api" / file).read_text())
    written = {(method.upper(), plain(path)) for path, item in document["paths"].items() for method in item if method in METHODS}
    built = built_routes()[dialect]
    assert built - written == set(), "in the code, not in the document"
    assert written - built == set(), "in the document, not in the code"


def test_served_document_is_the_file(document, daemon):
    response = paddock.Client(daemon).get("/openapi.json")
    assert response.status == 200 and response.headers["content-type"].startswith("application/json")
    # As JSON would write it: YAML knows dates and integer keys that JSON does not.
    assert response.json() == json.loads(json.dumps(document, default=str))


def test_document_is_openapi_3(document):
    assert document["openapi"].startswith("3.")
    assert document["info"]["title"] and document["info"]["version"]
    names = [operation["operationId"] for item in document["paths"].values() for method, operation in item.items() if method in METHODS]
    assert len(names) == len(set(names))
    for path, item in document["paths"].items():
        for method, operation in item.items():
            if method in METHODS:
                assert operation["responses"], f"{method} {path}"
                asked = set(re.findall(r"\{([^}]*)\}", path))
                given = {resolve(document, parameter)["name"]
                         for parameter in (*item.get("parameters", ()), *operation.get("parameters", ()))
                         if resolve(document, parameter)["in"] == "path"}
                assert asked == given, f"{method} {path}"


def test_error_codes_are_the_table(document):
    """The document and src/base/err_codes.def name the same codes."""
    table = set(re.findall(r'^X\(\w+,\s+"(\w+)"', (paddock.ROOT / "src/base/err_codes.def").read_text(), re.M))
    text = json.dumps(document, default=str)
    enums = [set(found) for found in _enums(document) if {"not_found", "internal"} <= set(found)]
    assert enums, "the document lists no error codes"
    assert all(found == table for found in enums), text[:0]


def _enums(node):
    if isinstance(node, dict):
        if isinstance(node.get("enum"), list):
            yield node["enum"]
        for value in node.values():
            yield from _enums(value)
    elif isinstance(node, list):
        for value in node:
            yield from _enums(value)


# ---- live answers ---------------------------------------------------------


def resolve(document, node):
    while "$ref" in node:
        place = document
        for part in node["$ref"].removeprefix("#/").split("/"):
            place = place[part]
        node = place
    return node


TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "integer": int, "number": (int, float), "null": type(None)}


def conform(document, schema, value, where="$"):
    """The part of JSON Schema that the document uses. Unknown members are a mistake too."""
    schema = resolve(document, schema)
    for part in schema.get("allOf", ()):
        conform(document, part, value, where)
    options = schema.get("oneOf") or schema.get("anyOf")
    if options:
        failures = []
        for option in options:
            try:
                return conform(document, option, value, where)
            except AssertionError as error:
                failures.append(str(error))
        raise AssertionError(f"{where}: {failures}")
    kinds = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else list(kinds)
    if schema.get("nullable"):
        kinds.append("null")
    if kinds:
        assert any(isinstance(value, TYPES[kind]) and not (isinstance(value, bool) and kind in ("integer", "number"))
                   for kind in kinds), f"{where}: {value!r} is not {kinds}"
    if "enum" in schema and value is not None:
        assert value in schema["enum"], f"{where}: {value!r}"
    if "pattern" in schema and isinstance(value, str):
        assert re.search(schema["pattern"], value), f"{where}: {value!r} does not match {schema['pattern']}"
    if isinstance(value, dict):
        missing = set(schema.get("required", ())) - set(value)
        assert not missing, f"{where}: {missing} missing"
        properties = schema.get("properties", {})
        for name, member in value.items():
            if name in properties:
                conform(document, properties[name], member, f"{where}.{name}")
            elif isinstance(schema.get("additionalProperties"), dict):
                conform(document, schema["additionalProperties"], member, f"{where}.{name}")
            else:
                assert not properties or schema.get("additionalProperties") is True, f"{where}.{name} is not in the document"
    if isinstance(value, list) and "items" in schema:
        for i, item in enumerate(value):
            conform(document, schema["items"], item, f"{where}[{i}]")
    return None


def check(document, method, path, response):
    operations = {plain(key): item for key, item in document["paths"].items()}
    responses = operations[plain(path)][method]["responses"]
    answer = responses.get(str(response.status)) or responses.get(response.status) or responses.get("default")
    assert answer, f"{method} {path}: status {response.status} is not in the document"
    content = resolve(document, answer).get("content", {}).get("application/json")
    if content:
        conform(document, content["schema"], response.json())


def test_live_answers(document, api, daemon):
    made = api.try_create(name="conforms", metadata={"a": "b"}, ttl_seconds=500)
    assert made.status == 201
    box = paddock.Box(api, made.json())
    sandboxes, one = "/v1/sandboxes", "/v1/sandboxes/{}"
    check(document, "post", sandboxes, made)
    check(document, "get", sandboxes, api.get(sandboxes))
    check(document, "get", one, api.get(box.path))
    check(document, "post", one + "/exec", box.try_exec("echo hi"))
    check(document, "post", one + "/exec", box.try_exec("sleep 60", timeout_ms=100))
    files = one + "/files/{}"
    check(document, "put", files, box.put("/workspace/f", b"x"))
    check(document, "get", files, box.ls("/workspace"))
    check(document, "get", files, box.ls("/dev"))
    check(document, "get", files, box.read("/none"))
    check(document, "delete", files, box.remove("/workspace/f"))
    for path in ("/health", "/healthz", "/readyz", "/v1/capabilities", "/v1/dialects", "/v1/images", "/v1/keys"):
        check(document, "get", path, api.get(path))
    check(document, "post", sandboxes, api.post(sandboxes, {"nmae": 1}))
    check(document, "post", sandboxes, api.try_create(name="conforms"))
    check(document, "get", sandboxes, paddock.Client(daemon).get(sandboxes))
    check(document, "delete", one, api.delete(box.path))
    check(document, "get", one, api.get(box.path))


def test_live_answers_of_contexts(document, api, make_box):
    box, one = make_box(), "/v1/sandboxes/{}"
    contexts = one + "/contexts"
    made = api.post(box.path + "/contexts", {"language": "python"})
    check(document, "post", contexts, made)
    mine = f"{box.path}/contexts/{made.json()['id']}"
    check(document, "get", contexts, api.get(box.path + "/contexts"))
    check(document, "get", contexts + "/{}", api.get(mine))
    for code in ("print(1); 2", "1/0", "import os; os._exit(1)"):
        check(document, "post", contexts + "/{}/execute", api.post(mine + "/execute", {"code": code}))
    check(document, "post", one + "/execute", api.post(box.path + "/execute", {"code": "echo $A", "language": "bash", "env": {"A": "1"}}))
    check(document, "post", contexts + "/{}/interrupt", api.post(mine + "/interrupt", {}))
    check(document, "post", contexts + "/{}/restart", api.post(mine + "/restart", {}))
    check(document, "delete", contexts + "/{}", api.delete(mine))
    check(document, "get", contexts + "/{}", api.get(mine))


def test_live_answers_of_processes(document, api, make_box):
    box, one = make_box(), "/v1/sandboxes/{}"
    shells, processes = one + "/shells", one + "/processes"
    check(document, "post", one + "/exec", api.post(box.path + "/exec", {"command": "exit 3", "shell": "default"}))
    check(document, "post", shells, api.post(box.path + "/shells", {"name": "s"}))
    check(document, "get", shells, api.get(box.path + "/shells"))
    check(document, "get", shells + "/{}", api.get(box.path + "/shells/s"))
    check(document, "delete", shells + "/{}", api.delete(box.path + "/shells/s"))
    check(document, "get", shells + "/{}", api.get(box.path + "/shells/s"))
    made = api.post(box.path + "/processes", {"command": "echo x; exit 2", "tag": "t"})
    check(document, "post", processes, made)
    mine = f"{box.path}/processes/t"
    check(document, "get", processes + "/{}/wait", api.get(mine + "/wait"))
    check(document, "get", processes + "/{}/wait", api.get(f"{box.path}/processes/none/wait"))
    check(document, "get", processes, api.get(box.path + "/processes"))
    check(document, "get", processes + "/{}", api.get(mine))
    check(document, "get", processes + "/{}/output", api.get(mine + "/output"))
    check(document, "post", processes + "/{}/signal", api.post(mine + "/signal", {"signal": 15}))
    check(document, "get", one + "/terminal", api.get(box.path + "/terminal"))
    stream = api.request("POST", box.path + "/exec", b'{"command":"echo x; echo y >&2"}', {"Content-Type": "application/json", "Accept": "application/x-ndjson"})
    event = document["components"]["schemas"]["StreamEvent"]
    kinds = [json.loads(line)["type"] for line in stream.body.splitlines()]
    assert kinds[0] == "start" and kinds[-1] == "exit"
    for line in stream.body.splitlines():
        conform(document, event, json.loads(line))


def test_live_answers_of_files(document, api, make_box):
    box, one = make_box(), "/v1/sandboxes/{}"
    files, fs = one + "/files/{}", one + "/fs/"

    def ask(op, expect, **wish):
        response = api.post(f"{box.path}/fs/{op}", wish)
        assert response.status == expect, response
        check(document, "post", fs + op, response)
        return response

    ask("mkdir", 204, path="/workspace/d/e", mode="0750")
    check(document, "put", files, box.put("/workspace/d/a", b"one\ntwo\n"))
    check(document, "put", files, box.put("/workspace/d/a", b"three\n", "append=1"))
    ask("copy", 200, **{"from": "/workspace/d", "to": "/workspace/c", "recursive": True})
    ask("copy", 409, **{"from": "/workspace/d", "to": "/workspace/c", "recursive": True})
    ask("move", 200, **{"from": "/workspace/c/a", "to": "/workspace/c/b"})
    ask("chmod", 200, path="/workspace/c", mode="0755", recursive=True)
    box.check("touch '/workspace/d/'$'\\xff'; ln -s a /workspace/d/l")
    found = ask("find", 200, path="/workspace", pattern="*", limit=100).json()
    assert any("path_base64" in entry for entry in found["entries"])
    assert ask("grep", 200, path="/workspace", pattern="t[wh]", regex=True).json()["matches"]
    ask("grep", 400, path="/workspace", pattern="(", regex=True)
    ask("replace", 200, path="/workspace/d/a", old="two", new="2")
    ask("replace", 409, path="/workspace/d/a", old="two", new="2")
    check(document, "get", fs + "stat", api.get(f"{box.path}/fs/stat?path=/workspace/d/l"))
    signed = ask("sign", 200, path="/workspace/d/a", method="GET", expires_seconds=60).json()
    assert signed["url"].startswith("http")
    for query in ("list=1", "list=1&depth=3", "list=1&limit=1", "list=1&limit=100"):
        listed = box.ls("/workspace", query)
        assert listed.json()["entries"]
        check(document, "get", files, listed)
    archive = box.read("/workspace/d", "archive=tar")
    assert archive.status == 200 and archive.headers["content-type"] == "application/x-tar"
    unpacked = box.put("/workspace/u", archive.body, "archive=tar")
    assert unpacked.json()["files"] == 3
    check(document, "put", files, unpacked)
    body = b'--B\r\nContent-Disposition: form-data; name="f"; filename="x/y"\r\n\r\nz\r\n--B--\r\n'
    form = api.request("POST", box.path + "/files/workspace/form", body, {"Content-Type": "multipart/form-data; boundary=B"})
    assert form.status == 201
    check(document, "post", files, form)
    watcher = ask("watchers", 201, path="/workspace", recursive=True).json()["id"]
    box.check("echo x > /workspace/w; mv /workspace/w /workspace/v")
    path, kinds = f"{box.path}/fs/watchers/{watcher}", set()

    def renamed():
        news = api.get(path)
        check(document, "get", fs + "watchers/{}", news)
        kinds.update(event["type"] for event in news.json()["events"])
        return "rename" in kinds
    paddock.until(renamed, "the rename is told")
    check(document, "delete", fs + "watchers/{}", api.delete(path))
    check(document, "get", fs + "watchers/{}", api.get(path))


def test_live_answers_of_the_rest(document, api, make_box):
    """Life, snapshots, workspaces, events, webhooks, tenants, stats."""
    box, one = make_box(ttl_seconds=500), "/v1/sandboxes/{}"

    def post(path, expect, wish, route=None):
        response = api.post(path, wish)
        assert response.status == expect, response
        check(document, "post", route or path, response)
        return response.json()

    def get(path, route=None):
        response = api.get(path)
        assert response.status == 200, response
        check(document, "get", route or path.partition("?")[0], response)
        return response.json()

    for step in ("pause", "resume", "stop", "start"):
        post(f"{box.path}/{step}", 200, {}, f"{one}/{step}")
    post(box.path + "/extend", 200, {"ttl_seconds": 900}, one + "/extend")
    check(document, "patch", one, api.request("PATCH", box.path, b'{"idle_seconds":600}', {"Content-Type": "application/json"}))
    get(box.path + "/stats?history=1", one + "/stats")
    snapshot = post(box.path + "/snapshots", 201, {"name": "conforms"}, one + "/snapshots")
    get("/v1/snapshots"), get("/v1/snapshots/conforms", "/v1/snapshots/{}")
    image = post("/v1/images", 201, {"name": "conforms", "snapshot": "conforms"})
    get("/v1/images")
    check(document, "delete", "/v1/images/{}", api.delete(f"/v1/images/{image['name']}"))
    fork = post(box.path + "/fork", 201, {"count": 2}, one + "/fork")
    for made in fork["sandboxes"]:
        check(document, "delete", one, api.delete(f"/v1/sandboxes/{made['id']}"))
    check(document, "delete", "/v1/snapshots/{}", api.delete(f"/v1/snapshots/{snapshot['id']}"))
    post("/v1/workspaces", 201, {"name": "conforms"})
    get("/v1/workspaces"), get("/v1/workspaces/conforms", "/v1/workspaces/{}")
    put = api.request("PUT", "/v1/workspaces/conforms/files/f", b"x")
    assert put.status == 201
    check(document, "put", "/v1/workspaces/{}/files/{}", put)
    get("/v1/workspaces/conforms/files/?list=1", "/v1/workspaces/{}/files/{}")
    check(document, "delete", "/v1/workspaces/{}", api.delete("/v1/workspaces/conforms"))
    events = get("/v1/events?limit=1000")
    assert {"paused", "resumed", "stopped", "started", "forked", "snapshot"} <= {event["type"] for event in events["events"]}
    hook = post("/v1/webhooks", 201, {"url": "http://127.0.0.1:9/", "events": ["oom"]})
    get("/v1/webhooks"), get(f"/v1/webhooks/{hook['id']}", "/v1/webhooks/{}")
    check(document, "delete", "/v1/webhooks/{}", api.delete(f"/v1/webhooks/{hook['id']}"))
    post("/v1/tenants", 201, {"name": "conforms"})
    tenant = next(one for one in get("/v1/tenants")["tenants"] if one["name"] == "conforms")
    quota = api.request("PUT", f"/v1/tenants/{tenant['id']}/quota", b'{"boxes":3}', {"Content-Type": "application/json"})
    assert quota.status == 200, quota
    check(document, "put", "/v1/tenants/{}/quota", quota)
    get(f"/v1/tenants/{tenant['id']}/quota", "/v1/tenants/{}/quota")
    get("/v1/posture")


# ---- words and examples ---------------------------------------------------


def operations(document):
    return [(method, path, item, operation) for path, item in document["paths"].items()
            for method, operation in item.items() if method in METHODS]


def test_every_operation_has_a_summary_of_its_own(document):
    summaries = [operation["summary"] for _, _, _, operation in operations(document)]
    assert [text for text in summaries if not re.fullmatch(r"[A-Z][a-z]+ .{3,60}[^.]", text)] == []
    assert sorted(text for text in summaries if summaries.count(text) > 1) == []


def flat(document, schema):
    """The schema with the members of its allOf, so that `conform` knows them all."""
    schema = resolve(document, schema)
    parts = [flat(document, part) for part in schema.get("allOf", ())] + [schema]
    return {**schema, "allOf": [], "properties": {name: member for part in parts for name, member in part.get("properties", {}).items()},
            "required": [name for part in parts for name in part.get("required", ())]}


def test_every_operation_has_an_example_that_fits(document):
    """A curl command with the operation's method and path; its JSON is what the schema says."""
    for method, path, _, operation in operations(document):
        name = operation["operationId"]
        words = shlex.split(operation["x-codeSamples"][0]["source"])
        url = next(word for word in words if word.startswith("$url")).removeprefix("$url").partition("?")[0]
        assert re.fullmatch(re.sub(r"\{path\}", ".+", re.sub(r"\{(?!path)[^}]*\}", "[^/]+", path)), url), name
        given = words[words.index("-X") + 1] if "-X" in words else \
            "HEAD" if "-I" in words else "PUT" if "-T" in words else \
            "POST" if {"--json", "-d", "--data-binary", "-F"} & set(words) else "GET"
        assert given == method.upper(), name
        content = resolve(document, operation.get("requestBody", {})).get("content", {})
        if "--json" in words:
            body = json.loads(words[words.index("--json") + 1])
            conform(document, flat(document, content["application/json"].get("schema", {})), body, name)
        else:
            assert "application/json" not in content, f"{name}: no body"


def test_every_request_body_has_an_example_that_fits(document):
    for method, path, _, operation in operations(document):
        for kind, body in resolve(document, operation.get("requestBody", {})).get("content", {}).items():
            if kind == "application/x-tar":
                continue  # nobody reads one
            found = [body["example"]] if "example" in body else [each["value"] for each in body.get("examples", {}).values()]
            assert found, f"{method} {path}: no example of {kind}"
            for example in found:
                conform(document, flat(document, body["schema"]), example, f"{method} {path}")


def test_no_description_is_cut_at_a_comma(document):
    """In a flow mapping of YAML the rest of an unquoted sentence becomes a key."""
    def keys(node, where="$"):
        if isinstance(node, dict):
            for key, value in node.items():
                yield f"{where}.{key}"
                yield from keys(value, f"{where}.{key}")
        elif isinstance(node, list):
            for i, value in enumerate(node):
                yield from keys(value, f"{where}[{i}]")

    assert [key for key in keys(document) if " " in key] == []
