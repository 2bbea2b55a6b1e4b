"""Templates on the wire: what the clients in test/compat do not show. Errors, tenants, the store, uploads."""

import io
import tarfile

import pytest
import yaml

import paddock
from test_e2b import E2B, stranger  # noqa: F401 (a fixture)
from test_openapi import conform, plain, resolve


@pytest.fixture
def e2b(daemon):
    it = E2B(daemon, daemon.key)
    yield it
    for template in it.call("GET", "/templates").json():
        paddock.until(lambda one=template: it.call("DELETE", f"/templates/{one['templateID']}").status in (204, 404), "it is removed")
    it.close()


def request(e2b, name, **more):
    response = e2b.call("POST", "/v3/templates", {"name": name, **more})
    assert response.status == 202, response
    return response.json()


def begin(e2b, build, **plan):
    return e2b.call("POST", f"/v2/templates/{build['templateID']}/builds/{build['buildID']}", plan)


def status(e2b, build, query=""):
    response = e2b.call("GET", f"/templates/{build['templateID']}/builds/{build['buildID']}/status{query}")
    assert response.status == 200, response
    return response.json()


def finish(e2b, build):
    return paddock.until(lambda: (now := status(e2b, build))["status"] in ("ready", "error") and now, "the build ends")


def built(e2b, name, *steps, **plan):
    build = request(e2b, name)
    assert begin(e2b, build, steps=list(steps), **plan).status == 202
    end = finish(e2b, build)
    assert end["status"] == "ready", end
    return build


def step(kind, *args, **more):
    return {"type": kind, "args": list(args), **more}


def boxes(api):
    return {box["id"] for box in api.get("/v1/sandboxes").json()["sandboxes"]}


def test_a_build_leaves_nothing_but_its_snapshot(e2b, api):
    before, snapshots = boxes(api), len(api.get("/v1/snapshots").json()["snapshots"])
    build = built(e2b, "leaves", step("RUN", "true"))
    paddock.until(lambda: boxes(api) <= before, "the box of the build is gone")
    assert len(api.get("/v1/snapshots").json()["snapshots"]) == snapshots + 1
    assert all(one["names"] for one in e2b.call("GET", "/snapshots").json()), "it is the template's, not a snapshot by itself"
    assert e2b.call("DELETE", f"/templates/{build['templateID']}").status == 204
    paddock.until(lambda: len(api.get("/v1/snapshots").json()["snapshots"]) == snapshots, "its files go with it")


def test_answers_are_as_written(e2b):
    document = yaml.safe_load((paddock.ROOT / "api/e2b/openapi.yaml").read_text())
    routes = {plain(path): item for path, item in document["paths"].items()}

    def check(method, path, pattern, body=None):
        response = e2b.call(method, path, body)
        answers = routes[pattern][method.lower()]["responses"]
        answer = resolve(document, answers.get(response.status, answers.get("default")))
        if response.body:
            conform(document, answer["content"]["application/json"]["schema"], response.json(), f"{method} {path}")
        return response

    build = check("POST", "/v3/templates", "/v3/templates", {"name": "written:one", "tags": ["two"]}).json()
    assert build["tags"] == ["one", "two"]
    one = f"/templates/{build['templateID']}"
    assert status(e2b, build)["status"] == "waiting"
    check("POST", f"/v2{one}/builds/{build['buildID']}", "/v2/templates/{}/builds/{}", {"steps": [step("RUN", "exit 7")]})
    finish(e2b, build)
    failed = check("GET", f"{one}/builds/{build['buildID']}/status", "/templates/{}/builds/{}/status").json()
    assert failed["reason"] == {"message": "failed to run command 'exit 7': exit status 7", "step": "1"}
    check("GET", "/templates", "/templates")
    check("GET", one, "/templates/{}")
    check("GET", one + "/tags", "/templates/{}/tags")
    check("GET", one + "/files/abc", "/templates/{}/files/{}")
    check("PATCH", f"/v2{one}", "/v2/templates/{}", {"public": False})
    assert check("PATCH", f"/v2{one}", "/v2/templates/{}", {"public": True}).status == 501
    assert check("POST", "/templates/tags", "/templates/tags", {"target": "written", "tags": ["x"]}).status == 404
    assert check("DELETE", one, "/templates/{}").status == 204


@pytest.mark.parametrize("plan, code, says", [
    ({"fromImage": "python:3"}, 404, "nothing is fetched"),
    ({"fromImage": "x", "fromImageRegistry": {"type": "registry"}}, 501, "import"),
    ({"fromTemplate": "none"}, 404, "not found"),
    ({"fromImage": "base", "fromTemplate": "base"}, 400, "exclude"),
    ({"steps": [step("FROM", "x")]}, 400, "type must be"),
    ({"steps": [step("RUN")]}, 400, "not empty"),
    ({"steps": [step("ENV", "A")]}, 400, "names and values"),
    ({"steps": [step("COPY", "a", "b")]}, 400, "filesHash"),
    ({"steps": [step("USER", "no such name")]}, 400, "USER"),
    ({"steps": {}}, 400, "array"),
    ({"nonsense": 1}, 400, "nonsense"),
])
def test_plans_that_are_refused(e2b, plan, code, says):
    build = request(e2b, "refused")
    response = begin(e2b, build, **plan)
    assert (response.status, says in response.json()["message"]) == (code, True), response
    assert status(e2b, build)["status"] == "waiting", "it can be begun with a better plan"


@pytest.mark.parametrize("name, code", [("base", 409), ("a b", 400), ("-x", 400), ("x:-", 400), ("x" * 64, 400)])
def test_names(e2b, name, code):
    assert e2b.call("POST", "/v3/templates", {"name": name}).status == code


def test_a_build_begins_once(e2b):
    build = built(e2b, "once")
    assert begin(e2b, build).status == 409
    assert e2b.call("POST", f"/v2/templates/{build['templateID']}/builds/none", {}).status == 404


@pytest.mark.parametrize("steps, at, says", [
    ([step("RUN", "true"), step("COPY", "a", "b", filesHash="nothing")], "2", "not uploaded"),
    ([step("ENV", "A=B", "c")], "1", "ENV"),
    ([step("RUN", "true", "nobodyhere")], "1", "nobodyhere"),
])
def test_steps_that_fail(e2b, api, steps, at, says):
    before = boxes(api)
    build = request(e2b, "fails")
    assert begin(e2b, build, steps=steps).status == 202
    end = finish(e2b, build)
    assert end["status"] == "error" and end["reason"]["step"] == at and says in end["reason"]["message"], end
    assert end["logEntries"][-1]["level"] == "error"
    assert e2b.call("POST", "/v2/sandboxes", {"templateID": "fails"}).status == 404
    paddock.until(lambda: boxes(api) <= before, "the box of the build is gone")


def test_boxes_name_their_template(e2b):
    build = built(e2b, "named", step("USER", "somebody"))
    box = e2b.create(templateID="named")
    assert box["templateID"] == build["templateID"] and box["alias"] == "named"
    for query in ("named", build["templateID"]):
        assert [one["sandboxID"] for one in e2b.call("GET", f"/v2/sandboxes?template={query}").json()] == [box["sandboxID"]]
    assert e2b.call("DELETE", f"/templates/{build['templateID']}").status == 204
    assert e2b.info(box)["state"] == "running", "it lives on"


@pytest.mark.parametrize("value, means", [
    ('{"a": `b` $(c)}', '{"a": `b` $(c)}'), ("$ONE/${ONE}x$", "1/1x$"), ("\\$ONE $NONE.", "$ONE ."), ("a\nb $", "a\nb $"), ("", ""), ("é*", "é*"),
])
def test_values_of_variables(e2b, api, value, means):
    built(e2b, "values", step("ENV", "ONE", "1"), step("ENV", "TWO", value))
    box = e2b.create(templateID="values")
    assert api.post(f"/v1/sandboxes/{box['sandboxID']}/exec", {"command": 'printf %s "$TWO"'}).json()["stdout"] == means


def test_logs_come_in_pages(e2b):
    build = built(e2b, "pages", step("RUN", "seq 250; echo bad >&2"))
    seen, page = [], None
    while page is None or page["logEntries"]:
        page = status(e2b, build, f"?logsOffset={len(seen)}")
        assert len(page["logEntries"]) <= 100 and page["logs"] == [entry["message"] for entry in page["logEntries"]]
        seen += page["logs"]
    assert [line for line in seen if line.isdigit()] == [str(n) for n in range(1, 251)]
    assert status(e2b, build, "?level=warn")["logs"] == ["bad"]
    assert len(status(e2b, build, "?limit=3")["logs"]) == 3
    assert e2b.call("GET", f"/templates/{build['templateID']}/builds/{build['buildID']}/status?level=loud").status == 400


def archive(**files):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        for name, text in files.items():
            entry = tarfile.TarInfo(name.replace("__", "/"))
            entry.size = len(text)
            tar.addfile(entry, io.BytesIO(text))
    return out.getvalue()


def test_uploads_need_their_signature(e2b, stranger, daemon):
    build = request(e2b, "uploads")
    where = f"/templates/{build['templateID']}/files/abc"
    assert stranger.call("GET", where).status == 404
    assert e2b.call("GET", where.replace("abc", "a.c")).status == 400
    link = e2b.call("GET", where).json()
    assert link["present"] is False
    path = link["url"].split(f":{daemon.port}")[1]
    client = paddock.Client(daemon)
    body = archive(a__b=b"deep", c=b"flat")
    for wrong in (where, path.replace("abc", "abd"), path[:-1] + ("0" if path[-1] != "0" else "1"), path.replace("expires=", "expires=9")):
        assert client.request("PUT", wrong, body).status in (401, 403), wrong
    # Parts of what is signed do not run into each other: "abc1" until 23 is not "abc" until 123.
    moved = e2b.call("GET", where + "1").json()["url"].split(f":{daemon.port}")[1]
    moved = moved.replace("/abc1?", "/abc?").replace("expires=", "expires=1")
    assert "/abc?" in moved and client.request("PUT", moved, body).status == 403
    assert client.request("PUT", path, body).status == 200
    client.close()
    assert e2b.call("GET", where).json()["present"] is True
    steps = [step("COPY", "*", "/opt/all/", "root", "0700", filesHash="abc"), step("RUN", "cat /opt/all/b; echo; stat -c '%U %a' /opt/all/c", "root")]
    assert begin(e2b, build, steps=steps).status == 202
    end = finish(e2b, build)
    assert end["status"] == "ready" and "deep" in end["logs"] and "root 700" in end["logs"], end
    assert e2b.call("GET", where).json()["present"] is False, "it is gone with the build"


def test_strangers_see_nothing(e2b, stranger):
    build = built(e2b, "mine")
    one = f"/templates/{build['templateID']}"
    assert stranger.call("GET", "/templates").json() == []
    for method, path, body in (("GET", one, None), ("GET", one + "/tags", None), ("DELETE", one, None), ("GET", "/templates/aliases/mine", None),
                               ("GET", f"{one}/builds/{build['buildID']}/status", None), ("PATCH", f"/v2{one}", {}),
                               ("POST", f"/v2{one}/builds/{build['buildID']}", {}), ("POST", "/templates/tags", {"target": "mine", "tags": ["x"]}),
                               ("DELETE", "/templates/tags", {"name": "mine", "tags": ["default"]}),
                               ("POST", "/v2/sandboxes", {"templateID": "mine"}), ("POST", "/v2/sandboxes", {"templateID": build["templateID"]})):
        assert stranger.call(method, path, body).status == 404, (method, path)
    theirs = request(stranger, "mine")
    assert theirs["templateID"] != build["templateID"], "a name is a tenant's"
    assert begin(stranger, theirs, fromTemplate=build["templateID"]).status == 404
    assert stranger.call("DELETE", f"/templates/{theirs['templateID']}").status == 204


def test_templates_outlive_the_daemon(own_daemon):
    daemon = own_daemon().start()
    e2b = E2B(daemon, daemon.key)
    build = built(e2b, "stays:v1", step("ENV", "SAID", "it's \"so\""), step("WORKDIR", "/srv/x"), step("RUN", "echo kept > file"))
    waiting = request(e2b, "unbuilt")
    e2b.client.close()
    daemon.kill_api()
    e2b, api = E2B(daemon, daemon.key), daemon.client()
    assert [tag["tag"] for tag in e2b.call("GET", f"/templates/{build['templateID']}/tags").json()] == ["v1"]
    assert status(e2b, build)["status"] == "ready"
    assert status(e2b, waiting)["status"] == "error", "its steps never came"
    box = e2b.create(templateID="stays:v1")
    result = api.post(f"/v1/sandboxes/{box['sandboxID']}/exec", {"command": "pwd; cat file; echo $SAID"}).json()
    assert result["stdout"] == "/srv/x\nkept\nit's \"so\"\n"
    e2b.close()
    api.close()


def test_the_size_of_its_boxes(e2b):
    build = request(e2b, "sized", cpuCount=1, memoryMB=256)
    assert begin(e2b, build).status == 202
    assert finish(e2b, build)["status"] == "ready"
    info = e2b.info(e2b.create(templateID="sized"))
    assert (info["cpuCount"], info["memoryMB"]) == (1, 256)
    huge = request(e2b, "huge", cpuCount=1000)
    assert begin(e2b, huge).status == 400 and status(e2b, huge)["status"] == "waiting"


def test_one_that_is_being_built_stays(e2b):
    build = request(e2b, "busy")
    assert begin(e2b, build, steps=[step("RUN", "for i in $(seq 100); do [ -e /tmp/go ] && exit; sleep 0.1; done")]).status == 202
    paddock.until(lambda: "RUN" in status(e2b, build)["logs"][-1], "its step has begun")
    assert e2b.call("DELETE", f"/templates/{build['templateID']}").status == 409
    listed = {box["sandboxID"]: box for box in e2b.call("GET", "/v2/sandboxes").json()}
    mine = [box for box in paddock.Client(e2b.client.daemon, e2b.key.replace("e2b_", "pdk_")).get("/v1/sandboxes").json()["sandboxes"]
            if box["metadata"].get("build") == build["buildID"]]
    assert len(mine) == 1 and mine[0]["id"] not in listed
    assert e2b.call("DELETE", f"/sandboxes/{mine[0]['id']}").status == 204
    end = finish(e2b, build)
    assert end["status"] == "error" and end["reason"]["step"] == "1", end


def test_errors_in_e2b_s_words(e2b):
    build = request(e2b, "words")
    assert begin(e2b, build, steps=[step("RUN", "whoami", "root123")]).status == 202
    assert finish(e2b, build)["reason"] == {
        "message": "failed to run command 'whoami': command failed: unauthenticated: invalid username: 'root123'", "step": "1"}
    built(e2b, "tagged:v1")
    for template, says in (("tagged:v2", "tag 'v2' does not exist for template 'tagged'"),
                           ("tagged", "tag 'default' does not exist for template 'tagged'"), ("nowhere", "template 'nowhere' not found")):
        answer = e2b.call("POST", "/v2/sandboxes", {"templateID": template})
        assert answer.status == 404 and (answer.json()["code"], answer.json()["message"]) == (404, says)
    answer = e2b.call("DELETE", "/templates/tags", {"name": "tagged", "tags": ["v9"]})
    assert answer.status == 404 and answer.json()["message"] == "tag 'v9' does not exist for template 'tagged'"


@pytest.mark.parametrize("how", ["restart", "crash"])
def test_builds_survive_or_end_with_a_reason(own_daemon, how):
    daemon = own_daemon().start()
    e2b = E2B(daemon, daemon.key)
    good = built(e2b, "kept", step("RUN", "echo the log is kept"))
    bad = request(e2b, "broken")
    assert begin(e2b, bad, steps=[step("RUN", "echo before; exit 3")]).status == 202
    finish(e2b, bad)
    waiting = request(e2b, "waits")
    running = request(e2b, "runs")
    assert begin(e2b, running, steps=[step("RUN", "sleep 1000")]).status == 202
    api = daemon.client()
    paddock.until(lambda: any(box["status"] == "running" for box in api.get("/v1/sandboxes").json()["sandboxes"]), "its sandbox runs")
    before = {each["buildID"]: status(e2b, each) for each in (good, bad)}
    e2b.close(), api.close()
    if how == "restart":
        daemon.stop()
        daemon.start()
    else:
        daemon.kill_api()
    e2b, api = E2B(daemon, daemon.key), daemon.client()
    after = {each["buildID"]: status(e2b, each) for each in (good, bad)}
    assert after == before, "the logs, too"
    where = f"/templates/{good['templateID']}/builds/{good['buildID']}/logs"
    told = e2b.call("GET", where).json()["logs"]
    assert told == after[good["buildID"]]["logEntries"] and e2b.call("GET", where + "?direction=backward&limit=2").json()["logs"] == told[:-3:-1]
    assert "the log is kept" in after[good["buildID"]]["logs"] and after[bad["buildID"]]["reason"]["step"] == "1"
    for build in (waiting, running):
        now = status(e2b, build)
        assert now["status"] == "error" and "restarted" in now["reason"]["message"] and "restarted" in now["logs"][-1]
        assert begin(e2b, build, steps=[]).status == 409
    paddock.until(lambda: api.get("/v1/sandboxes").json()["sandboxes"] == [], "the sandbox of the build is removed")
    box = e2b.create(templateID="kept")
    assert e2b.call("DELETE", f"/sandboxes/{box['sandboxID']}").status == 204
    again = built(e2b, "runs", step("RUN", "true"))
    assert again["templateID"] == running["templateID"]
    e2b.close(), api.close()


def test_unchanged_steps_are_not_run_again(e2b, api, stranger):  # noqa: F811
    """The same base and the same first steps: what an earlier build of the tenant left is taken."""
    random = "cat /proc/sys/kernel/random/uuid"
    first = [step("ENV", "WHO", "me"), step("RUN", f"{random} > /opt/one", "root"), step("WORKDIR", "/srv/x"), step("USER", "worker")]

    def made(client, name, *steps, **plan):
        build = built(client, name, *steps, **plan)
        cached = [line for line in status(client, build)["logs"] if line.startswith("CACHED ")]
        box = client.create(templateID=name)
        at = f"/v1/sandboxes/{box['sandboxID']}"
        said = paddock.Client(client.client.daemon, client.key).post(at + "/exec", {"command": "cat /opt/*; echo $WHO $PWD $(id -un)"})
        assert client.call("DELETE", f"/sandboxes/{box['sandboxID']}").status == 204
        return said.json()["stdout"].split(), len(cached)

    one, n = made(e2b, "cached", *first)
    assert n == 0 and one[1:] == ["me", "/srv/x", "worker"]
    assert made(e2b, "cached", *first) == (one, 4), "nothing is run, and it is the same"
    two, n = made(e2b, "other-name", *first, step("RUN", f"{random} > /opt/two", "root"))
    assert n == 4 and two[0] == one[0] and two[2:] == one[1:], "only what was added"
    for plan in ({"force": True},):
        again, n = made(e2b, "cached", *first, **plan)
        assert n == 0 and again[0] != one[0], "skipCache"
    latest = again
    changed = [first[0], {**first[1], "force": True}, *first[2:]]
    again, n = made(e2b, "cached", *changed)
    assert n == 0 and again[0] not in (one[0], latest[0])
    # Another value, another order, another base: all of them are run.
    for steps, plan in (([step("ENV", "WHO", "you"), *first[1:]], {}), ([first[1], first[0], *first[2:]], {}), (first, {"fromTemplate": "other-name"})):
        _, n = made(e2b, "differs", *steps, **plan)
        assert n == 0, (steps, plan)
    theirs, n = made(stranger, "cached", *first)
    assert n == 0 and theirs[0] != one[0], "what is another tenant's is not taken"
    for template in stranger.call("GET", "/templates").json():
        assert stranger.call("DELETE", f"/templates/{template['templateID']}").status == 204
