"""What AIO's routes do by a script in the sandbox: skills, Markdown, observation; and the document of what is served."""

import io
import json
import tarfile
import threading
import http.server
import zipfile

import paddock
from aio_shapes import SHAPES, call, check
from test_aio_walk import BOUNDARY, form

SKILL = """---
name: greet
description: >
  says hello
  to everybody
tags: [a, "b c"]
needs:
  - python
  - node
limits:
  tries: 3
---
# Greet

Say hello.
"""


def register(api, box, body):
    answer = api.request("POST", f"/sandbox/{box.id}/v1/skills/register", body, {"Content-Type": f"multipart/form-data; boundary={BOUNDARY}"})
    return check(answer, "POST", "/v1/skills/register")


def archive(**files):
    """A zip, as text for `form`."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as z:
        for name, text in files.items():
            z.writestr(name, text)
    return data.getvalue()


def form_of(name, data, **fields):
    head = f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\n'.encode()
    return head + data + b"\r\n" + form(**fields)


# ---- skills ----

def test_skills(make_box, api):
    box = make_box()
    made = register(api, box, form(file=("greet.md", SKILL)))["data"]
    assert made["count"] == 1 and made["registered"][0]["name"] == "greet"
    meta = made["registered"][0]["metadata"]
    assert meta == {"name": "greet", "description": "says hello to everybody", "tags": ["a", "b c"], "needs": ["python", "node"],
                    "limits": {"tries": 3}}
    path = made["registered"][0]["path"]
    assert box.check(["cat", f"{path}/SKILL.md"]) == SKILL
    two = archive(**{"one/SKILL.md": "# One\n", "one/run.py": "1", "two/SKILL.md": "---\nname: second\n---\n# Two\n"})
    assert [s["name"] for s in register(api, box, form_of("both.zip", two))["data"]["registered"]] == ["one", "second"]
    listed = call(api, box, "GET", "/v1/skills/metadatas")["data"]["skills"]
    assert [s["name"] for s in listed] == ["greet", "one", "second"]
    assert [s["name"] for s in call(api, box, "GET", "/v1/skills/metadatas?names=one,none")["data"]["skills"]] == ["one"]
    assert call(api, box, "GET", "/v1/skills/greet/content")["data"]["content"] == "# Greet\n\nSay hello.\n"
    box.check("mkdir -p /tmp/own && echo '# Own' > /tmp/own/SKILL.md")
    assert register(api, box, form(path="/tmp/own", name="mine"))["data"]["registered"][0]["name"] == "mine"
    assert call(api, box, "DELETE", "/v1/skills/mine")["data"]["name"] == "mine"
    assert call(api, box, "DELETE", "/v1/skills/mine")["success"] is False
    assert call(api, box, "DELETE", "/v1/skills")["data"]["count"] == 3
    assert call(api, box, "GET", "/v1/skills/metadatas")["data"]["skills"] == []
    assert box.check("ls -A /tmp") == "own\n"


def test_skills_refused(make_box, api):
    box = make_box()
    for body, word in ((form(path="/none"), "No such file"), (form(file=("a.md", SKILL), name="../up"), "name"),
                       (form_of("x.zip", archive(**{"../out/SKILL.md": "x"})), "leads out"),
                       (form_of("x.zip", archive(**{"readme": "x"})), "SKILL.md"),
                       (form_of("x.bin", bytes(range(256))), "no zip")):
        found = register(api, box, body)
        assert found["success"] is False and word in found["message"], found
    assert register(api, box, form(name="x"))["detail"]
    assert call(api, box, "GET", "/v1/skills/..%2f..%2fetc/content")["success"] is False
    assert box.check("ls -A /tmp") == ""


# ---- Markdown ----

PAGE = """<html><head><title>The title</title><style>b{}</style></head><body><h2>Head</h2><p>Some <b>bold</b> &amp; <a href="http://x/">link</a>
more.</p><ul><li>one<li>two</ul><pre>code
  indented</pre><blockquote>said</blockquote><table><tr><th>A<th>B</tr><tr><td>1</td><td>x|y</td></tr></table><script>no()</script></body></html>"""


def markdown(api, box, uri):
    found = call(api, box, "POST", "/v1/util/convert_to_markdown", {"uri": uri})
    return found["data"] if found["success"] else found["message"]


def test_markdown(api, box, place):
    box.put(f"{place}/p.html", PAGE.encode())
    assert markdown(api, box, f"{place}/p.html") == ("# The title\n\n## Head\n\nSome **bold** & [link](http://x/) more.\n\n- one\n- two\n\n"
                                                     "```\ncode\n  indented\n```\n\n> said\n\n| A | B |\n| --- | --- |\n| 1 | x\\|y |")
    box.put(f"{place}/t.csv", b"a,b\n1,\"two, three\"\n")
    assert markdown(api, box, f"file://{place}/t.csv") == "| a | b |\n| --- | --- |\n| 1 | two, three |"
    box.put(f"{place}/j.json", b'{"a":[1]}')
    assert markdown(api, box, f"{place}/j.json") == '```json\n{\n  "a": [\n    1\n  ]\n}\n```'
    box.put(f"{place}/plain.txt", "ünï\n".encode())
    assert markdown(api, box, f"{place}/plain.txt") == "ünï\n"
    assert markdown(api, box, "data:text/html,<h1>Hi</h1>") == "# Hi"
    word = archive(**{"word/document.xml": '<w:document xmlns:w="w"><w:body><w:p><w:pPr><w:pStyle w:val="Heading1"/></w:pPr><w:r><w:t>Top</w:t></w:r></w:p>'
                                           '<w:p><w:r><w:t>Text</w:t></w:r></w:p></w:body></w:document>'})
    box.put(f"{place}/d.docx", word)
    assert markdown(api, box, f"{place}/d.docx") == "# Top\n\nText"
    sheet = archive(**{"xl/workbook.xml": '<workbook xmlns="x"><sheets><sheet name="S"/></sheets></workbook>',
                       "xl/sharedStrings.xml": '<sst xmlns="x"><si><t>Name</t></si></sst>',
                       "xl/worksheets/sheet1.xml": '<worksheet xmlns="x"><sheetData><row><c r="A1" t="s"><v>0</v></c><c r="C1"><v>7</v></c></row></sheetData></worksheet>'})
    box.put(f"{place}/s.xlsx", sheet)
    assert markdown(api, box, f"{place}/s.xlsx") == "## S\n\n| Name |  | 7 |\n| --- | --- | --- |"


def test_markdown_refused(api, box, place):
    box.put(f"{place}/b.bin", bytes(64))
    box.put(f"{place}/p.pdf", b"%PDF-1.4\n")
    box.put(f"{place}/broken.json", b"{")
    box.check(f"echo x > {place}/roots; chmod 600 {place}/roots", user="root")
    for uri, word in ((f"{place}/none", "No such file"), (place, "directory"), (f"{place}/b.bin", "no format"), ("ftp://x/y", "ftp"),
                      (f"{place}/broken.json", "Expecting"), (f"{place}/roots", "Permission denied")):
        assert word in markdown(api, box, uri), uri
    said = markdown(api, box, f"{place}/p.pdf")
    assert "pdftotext" in said


def test_the_sandbox_fetches_and_not_the_host(api, box):
    """A server of the host is not what a sandbox reaches by this name."""
    asked = []

    class Server(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_):
            pass

    server = http.server.HTTPServer(("127.0.0.1", 0), Server)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        assert "Connection refused" in markdown(api, box, f"http://127.0.0.1:{server.server_port}/x")
    finally:
        server.shutdown()
        server.server_close()
    assert asked == []


# ---- observation ----

def test_observation(make_box, api):
    box = make_box()

    def ask(method, path, body=None):
        return call(api, box, method, f"/v1/sandbox/observe/{path}", body)

    assert ask("GET", "status")["data"]["mode"] == "off"
    now = ask("GET", "live?top_rows=5")["data"]
    assert now["mode"] == "off" and now["cgroup"]["mem_current_bytes"] > 0 and now["cgroup"]["mem_max_bytes"] == box.get()["limits"]["memory_mb"] << 20
    assert 0 < len(now["top_processes"]) <= 5 and now["disk"][0]["path"] == "/"
    begun = ask("POST", "start", {"interval_seconds": 0.1, "idempotency_key": "k", "duration_seconds": 600})["data"]
    assert ask("POST", "start", {"idempotency_key": "k"})["data"] == begun
    assert "running" in ask("POST", "start", {})["message"]
    assert ask("GET", "status")["data"]["running"] is True
    samples = f"{begun['runtime_dir']}/samples.jsonl"
    paddock.until(lambda: int(box.check(f"wc -l < {samples}")) > 1, "two samples")
    sampler = box.find_process(begun["session_id"])
    assert ask("POST", "stop", {"session_id": begun["session_id"]})["data"] == {"session_id": begun["session_id"], "stopped": True, "report_ready": True}
    assert paddock.wait_gone(sampler) and ask("GET", "status")["data"]["running"] is False
    assert "no observation" in ask("POST", "stop", {})["message"]
    made = ask("POST", "export", {"reason": "again", "idempotency_key": "e"})["data"]
    assert ask("POST", "export", {"idempotency_key": "e"})["data"]["report_id"] == made["report_id"]
    assert [r["reason"] for r in ask("GET", "reports")["data"]] == ["stop", "again"]
    report = api.get(f"/sandbox/{box.id}/v1/sandbox/observe/reports/{made['report_id']}")
    assert report.status == 200 and report.headers["content-type"] == "application/gzip" and len(report.body) == made["size_bytes"]
    with tarfile.open(fileobj=io.BytesIO(report.body)) as t:
        lines = t.extractfile("samples.jsonl").read().splitlines()
    assert json.loads(lines[0])["cgroup"]["mem_current_bytes"] > 0
    assert ask("DELETE", f"reports/{made['report_id']}")["data"]["report_id"] == made["report_id"]
    assert api.get(f"/sandbox/{box.id}/v1/sandbox/observe/reports/{made['report_id']}").status == 404


def test_an_observation_ends_by_itself(make_box, api):
    box = make_box()
    begun = call(api, box, "POST", "/v1/sandbox/observe/start", {"mode": "guardrail", "interval_seconds": 0.1, "duration_seconds": 1})["data"]
    assert begun["ends_at"] and begun["mode"] == "guardrail"
    paddock.until(lambda: not call(api, box, "GET", "/v1/sandbox/observe/status")["data"]["running"], "the observation to end")


def test_an_image_without_python(make_box, api):
    """What a script would do is refused by name."""
    box = make_box()
    box.check("mv /usr/bin/python3 /usr/bin/python3.gone; rm -f /usr/local/bin/python3", user="root")
    for method, path, body in (("GET", "/v1/skills/metadatas", None), ("GET", "/v1/sandbox/observe/live", None),
                               ("POST", "/v1/util/convert_to_markdown", {"uri": "/etc/hostname"})):
        found = call(api, box, method, path, body)
        assert found["success"] is False and "python3" in found["message"], found
    assert "no Python" in call(api, box, "GET", "/v1/sandbox/packages/python")["message"]


def test_a_sandbox_that_lies(make_box, api):
    """A python3 that prints something else: what it says is not passed on."""
    box = make_box()
    box.check("mv /usr/bin/python3 /usr/bin/python3.gone; printf '#!/bin/sh\\necho \"$FAKE\"\\n' > /usr/bin/python3; chmod 755 /usr/bin/python3", user="root")
    for fake in ("", "[]", "{}", '{"success": true, "message": 3, "data": null}', "x" * 1000):
        box.check(["sed", "-i", f"2c printf '%s' '{fake}'", "/usr/bin/python3"], user="root")
        found = call(api, box, "GET", "/v1/skills/metadatas")
        assert found["success"] is False and "python3" in found["message"], found


# ---- packages, variables, the document ----

def test_packages(api, box):
    python = call(api, box, "GET", "/v1/sandbox/packages/python")["data"].splitlines()
    assert all("==" in line for line in python) and python == sorted(python, key=lambda line: line.split("==")[0].lower())
    node = call(api, box, "GET", "/v1/sandbox/packages/nodejs")["data"].splitlines()
    assert any(line.startswith("npm@") for line in node)


def test_variables_of_the_sandbox(make_box, api):
    box = make_box(env={"WORKSPACE": "/tmp/work", "TICKET_TTL_SECONDS": "60"})
    assert call(api, box, "GET", "/v1/sandbox")["workspace"] == "/tmp/work"
    assert call(api, box, "POST", "/v1/file/write", {"file": "a.txt", "content": "x"})["data"]["file"] == "/tmp/work/a.txt"
    assert api.post(f"/sandbox/{box.id}/tickets", {}).json()["expires_in"] == 60


def test_ports_that_are_taken(make_box, api):
    box = make_box()
    call(api, box, "POST", "/v1/bash/exec", {"command": "exec python3 -m http.server 8765", "async_mode": True})
    paddock.until(lambda: "8765" in call(api, box, "GET", "/v1/sandbox")["detail"]["system"]["occupied_ports"], "the server's port")


def plain(path):
    return "/".join("{}" if part.startswith("{") else part for part in path.split("/"))


def test_the_document_says_what_is_served(api, box, daemon):
    nobody = paddock.Client(daemon)  # it is the same for every sandbox, and no secret
    answer = nobody.get(f"/sandbox/{box.id}/v1/openapi.json")
    assert answer.status == 200
    document = answer.json()
    assert document["openapi"].startswith("3.") and document["servers"] == [{"url": f"/sandbox/{box.id}"}]
    served = {(plain(path), method) for path, methods in document["paths"].items() for method in methods}
    for path, methods in SHAPES["paths"].items():
        for method in methods:
            known = ("/v1/browser/{}", method) if path.startswith("/v1/browser/") else (plain(path), method)
            assert known in served, known
    body = document["paths"]["/v1/bash/exec"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    assert body["required"] == ["command"] and body["properties"]["env"]["additionalProperties"] == {"type": "string"}
    assert all(operation["summary"] for methods in document["paths"].values() for operation in methods.values())
    page = nobody.get(f"/sandbox/{box.id}/v1/docs")
    text = page.body.decode()
    assert page.status == 200 and "/v1/shell/exec" in text and "http" not in text and "default-src 'none'" in page.headers["content-security-policy"]
    nobody.close()
