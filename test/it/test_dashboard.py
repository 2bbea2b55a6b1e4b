"""The dashboard's server side: its files, its headers, and sessions, which no page of another origin may use."""

import gzip
import json
import re
import time

import pytest

import paddock
from test_terminal import Socket

HTML = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
PAGE = {"X-Paddock-Dashboard": "1"}
STRICT = ("default-src 'none'", "script-src 'self'", "style-src 'self'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'none'")


@pytest.fixture
def guest(daemon):
    """Somebody without a key."""
    client = paddock.Client(daemon)
    yield client
    client.close()


def origin(daemon):
    return f"{daemon.scheme}://{daemon.host}:{daemon.port}"


def page(daemon, **more):
    """The headers that a page of this server sends."""
    return {**PAGE, "Origin": origin(daemon), "Sec-Fetch-Site": "same-origin", **more}


def sign_in(client, key, **headers):
    return client.request("POST", "/dashboard/session", json.dumps({"key": key}).encode(),
                          {"Content-Type": "application/json", **page(client.daemon), **headers})


def cookie_of(response):
    assert response.status == 200, response
    return response.headers["set-cookie"].split(";")[0]


@pytest.fixture
def cookie(daemon, guest):
    return cookie_of(sign_in(guest, daemon.key))


# ---- files ----


def test_root_is_for_browsers_only(guest):
    shown = guest.get("/", headers=HTML)
    assert shown.status == 200 and shown.headers["content-type"].startswith("text/html") and b'id="app"' in shown.body
    for accept in ({}, {"Accept": "*/*"}, {"Accept": "application/json"}, {"Accept": "text/html-not"}):
        answer = guest.get("/", headers=accept)
        assert answer.status == 404 and answer.code() == "not_found", accept
    assert guest.request("POST", "/", b"", HTML).status == 404
    assert guest.request("HEAD", "/", headers=HTML).body == b""


def assets(guest):
    text = guest.get("/", headers=HTML).body.decode()
    return sorted(set(re.findall(r'"(/dashboard/assets/[^"]+)"', text)))


def test_files_are_compressed_kept_and_known_again(guest):
    found = assets(guest)
    assert any(name.endswith(".js") for name in found) and any(name.endswith(".css") for name in found)
    first = 0
    for name in found:
        plain = guest.get(name)
        packed = guest.get(name, headers={"Accept-Encoding": "br, gzip;q=0.8"})
        assert plain.status == 200 and "content-encoding" not in plain.headers
        assert packed.headers["content-encoding"] == "gzip" and gzip.decompress(packed.body) == plain.body
        assert packed.headers["cache-control"] == "public, max-age=31536000, immutable"
        assert "accept-encoding" in packed.headers["vary"]
        again = guest.get(name, headers={"If-None-Match": packed.headers["etag"]})
        assert again.status == 304 and again.body == b"" and again.headers["etag"] == packed.headers["etag"]
        assert guest.get(name, headers={"If-None-Match": '"0"', "Accept-Encoding": "gzip;q=0"}).body == plain.body
        first += len(packed.body)
    assert first < 250_000, "the first page"
    assert guest.get("/", headers=HTML).headers["cache-control"] == "no-cache"


@pytest.mark.parametrize("name", ["nothing.js", "..%2f..%2fetc%2fpasswd", "%00", "index.html", ""])
def test_no_other_file(guest, name):
    assert guest.get(f"/dashboard/assets/{name}").status in (400, 404)


def test_every_answer_is_safe(daemon, guest, cookie):
    answers = [guest.get("/", headers=HTML), *(guest.get(name) for name in assets(guest)),
               guest.get("/dashboard/session", headers=page(daemon, Cookie=cookie)), guest.get("/dashboard/nothing"),
               sign_in(guest, "pdk_" + "0" * 40), sign_in(guest, daemon.key)]
    for answer in answers:
        policy = answer.headers["content-security-policy"]
        assert all(rule in policy for rule in STRICT) and "unsafe" not in policy and "http" not in policy, policy
        assert answer.headers["x-content-type-options"] == "nosniff" and answer.headers["x-frame-options"] == "DENY"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert answer.headers["cross-origin-opener-policy"] == "same-origin"
    text = answers[0].body.decode()
    assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\bon\w+=|\bstyle=|https?:|\"//", text), "nothing inline, nothing of others"


# ---- sessions ----


def test_sign_in_and_out(daemon, guest):
    answer = sign_in(guest, daemon.key)
    attributes = {part.strip().lower() for part in answer.headers["set-cookie"].split(";")[1:]}
    assert {"httponly", "samesite=strict", "path=/"} <= attributes and not any(a.startswith(("domain", "max-age")) for a in attributes)
    assert answer.json()["role"] == "admin" and answer.json()["signed_in"] is True and daemon.key not in answer.body.decode()
    assert answer.headers["cache-control"] == "no-store"
    cookie = cookie_of(answer)
    assert daemon.key.split("_", 1)[1] not in cookie
    assert guest.get("/v1/sandboxes", headers=page(daemon, Cookie=cookie)).status == 200
    assert guest.get("/v1/keys", headers=page(daemon, Cookie=cookie)).status == 200
    known = guest.get("/dashboard/session", headers=page(daemon, Cookie=f"a=b; {cookie}; c=d")).json()
    assert known["signed_in"] and known["tenant"] == "default"
    gone = guest.request("DELETE", "/dashboard/session", headers=page(daemon, Cookie=cookie))
    assert gone.status == 204 and "max-age=0" in gone.headers["set-cookie"].lower()
    assert guest.get("/v1/sandboxes", headers=page(daemon, Cookie=cookie)).status == 401, "the server has forgotten it, too"
    assert guest.get("/dashboard/session", headers=page(daemon, Cookie=cookie)).json()["signed_in"] is False


@pytest.mark.parametrize("key", ["", "x", "pdk_", "pdk_" + "0" * 40, "k_admin", "'; --", "\u0000"])
def test_no_session_without_a_key(guest, key):
    answer = sign_in(guest, key)
    assert answer.status in (400, 401) and "set-cookie" not in answer.headers
    assert key not in answer.body.decode() or len(key) < 5


def test_bodies_that_are_no_sign_in(daemon, guest):
    headers = {"Content-Type": "application/json", **page(daemon)}
    for body, status in ((b"", 400), (b"{}", 400), (b"[]", 400), (b'{"key":1}', 400), (b'{"key":"' + b"x" * 5000 + b'"}', 413)):
        assert guest.request("POST", "/dashboard/session", body, headers).status == status, body[:20]
    form = {**headers, "Content-Type": "application/x-www-form-urlencoded"}
    assert guest.request("POST", "/dashboard/session", b"key=x", form).status == 415


def test_rights_of_the_key(daemon, guest, api):
    made = api.post("/v1/keys", {"name": "dash", "role": "user", "tenant": "dash-other", "create_tenant": True}).json()
    cookie = cookie_of(sign_in(guest, made["key"]))
    box = api.create()
    headers = page(daemon, Cookie=cookie)
    assert guest.get("/v1/keys", headers=headers).status == 403
    assert guest.get(box.path, headers=headers).status == 404, "another tenant's sandbox does not exist"
    assert guest.get("/v1/sandboxes", headers=headers).json()["sandboxes"] == []
    assert api.delete(f"/v1/keys/{made['id']}").status == 204
    assert guest.get("/v1/sandboxes", headers=headers).status == 401, "the session ends with its key"
    box.delete()


def test_session_ends(own_daemon):
    daemon = own_daemon(environment={"PADDOCK_DASHBOARD_SESSION_SECONDS": "1"}).start()
    guest = paddock.Client(daemon)
    cookie = cookie_of(sign_in(guest, daemon.key))
    headers = page(daemon, Cookie=cookie)
    used = time.monotonic()
    answer = guest.get("/v1/sandboxes", headers=headers)
    if time.monotonic() - used < 0.9:  # a machine may be that slow
        assert answer.status == 200
    paddock.until(lambda: time.monotonic() > used + 4, "time to pass")
    assert guest.get("/v1/sandboxes", headers=headers).status == 401
    daemon.kill_api()
    paddock.until(daemon.healthy, "the api is back")
    assert guest.get("/v1/sandboxes", headers=headers).status == 401, "and a restart brings it not back"


def test_many_sessions_of_one_key(daemon, guest):
    cookies = [cookie_of(sign_in(guest, daemon.key)) for _ in range(20)]
    states = [guest.get("/v1/sandboxes?limit=1", headers=page(daemon, Cookie=each)).status for each in cookies]
    assert states[-16:] == [200] * 16 and 401 in states[:4], "the oldest make place"
    assert len(set(cookies)) == 20


# ---- other origins ----

FOREIGN = [{"Origin": "http://evil.example"}, {"Origin": "null"}, {"Origin": "http://127.0.0.1:1"}, {"Sec-Fetch-Site": "cross-site"},
           {"Sec-Fetch-Site": "same-site"}, {"Sec-Fetch-Site": "none"}, {"X-Paddock-Dashboard": "0"}, {"X-Paddock-Dashboard": ""},
           {"Origin": "file://"}, {"Host": "evil.example"}, {"Host": "evil.example:7080", "Origin": "http://evil.example:7080"},
           {"Host": "127.evil.example"}, {"Host": "localhost.evil.example"}]


@pytest.mark.parametrize("change", FOREIGN, ids=str)
@pytest.mark.parametrize("method, path", [("POST", "/v1/sandboxes"), ("DELETE", "/v1/sandboxes/x"), ("GET", "/v1/sandboxes"), ("GET", "/v1/events"),
                                          ("POST", "/dashboard/session"), ("DELETE", "/dashboard/session"),
                                          ("POST", "/dashboard/templates"), ("DELETE", "/dashboard/templates/x"), ("GET", "/v1/audit")])
def test_request_of_another_page(daemon, guest, cookie, change, method, path):
    body = json.dumps({"key": daemon.key}).encode() if path == "/dashboard/session" and method == "POST" else None
    answer = guest.request(method, path, body, {**page(daemon, Cookie=cookie, **({"Content-Type": "application/json"} if body else {})), **change})
    # By another name the browser would not even send the cookie: it is then a request without one.
    assert answer.status in ((401, 403) if "Host" in change else (403,)), answer
    assert "set-cookie" not in answer.headers
    assert guest.get("/v1/sandboxes?limit=1", headers=page(daemon, Cookie=cookie)).status == 200, "and the session goes on"


def test_unsafe_methods_need_an_origin(daemon, guest, cookie):
    headers = {**PAGE, "Cookie": cookie}
    assert guest.get("/v1/sandboxes", headers=headers).status == 200
    assert guest.request("POST", "/v1/sandboxes", b"{}", {**headers, "Content-Type": "application/json"}).status == 403
    assert guest.request("DELETE", "/v1/sandboxes/x", headers=headers).status == 403
    assert guest.request("POST", "/dashboard/templates", b"{}", {**headers, "Content-Type": "application/json"}).status == 403
    assert guest.request("POST", "/dashboard/templates/x/sandboxes", b"", headers).status == 403
    assert guest.request("POST", "/dashboard/session", json.dumps({"key": daemon.key}).encode(), {**PAGE, "Content-Type": "application/json"}).status == 403


def test_navigation_is_no_use_of_the_session(daemon, guest, cookie, api):
    """A link to a file of a sandbox, followed in the browser, shows nothing: it would be a page on our origin."""
    box = api.create()
    box.put("/tmp/x.html", b"<script>alert(1)</script>")
    way = f"{box.path}/files/tmp/x.html"
    walk = {"Cookie": cookie, "Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "navigate", **HTML}
    assert guest.get(way, headers=walk).status == 403
    shown = guest.get(way, headers=page(daemon, Cookie=cookie))
    assert shown.status == 200 and shown.headers["content-type"] == "application/octet-stream"
    assert shown.headers["x-content-type-options"] == "nosniff"
    box.delete()


def test_token_of_another_host(daemon, guest):
    """What was made for one name of the machine does not count for another."""
    answer = sign_in(guest, daemon.key, Host=f"localhost:{daemon.port}", Origin=f"http://localhost:{daemon.port}")
    cookie = cookie_of(answer)
    assert guest.get("/v1/sandboxes", headers=page(daemon, Cookie=cookie)).status == 401
    here = page(daemon, Cookie=cookie, Host=f"localhost:{daemon.port}", Origin=f"http://localhost:{daemon.port}")
    assert guest.get("/v1/sandboxes", headers=here).status == 200


def test_key_comes_before_cookie(daemon, guest, cookie):
    """A client with a key is asked nothing about pages."""
    assert guest.get("/v1/sandboxes", headers={"Cookie": cookie, "Authorization": f"Bearer {daemon.key}", "Origin": "http://evil.example"}).status == 200
    assert guest.get("/v1/sandboxes", headers=page(daemon, Cookie=cookie, Authorization="Bearer pdk_" + "0" * 40)).status == 401
    assert guest.get("/v1/sandboxes", headers={**page(daemon), "Cookie": "paddock_session_1=" + "0" * 64}).status == 401


def test_cookie_of_nonsense(daemon, guest, cookie):
    name = cookie.split("=")[0]
    for value in ("", "0", "g" * 64, "0" * 64, "0" * 65, "0" * 5000):
        assert guest.get("/v1/sandboxes", headers=page(daemon, Cookie=f"{name}={value}")).status in (401, 431), value[:9]


def test_only_the_own_api_takes_it(daemon, guest, cookie):
    for path in ("/sandboxes", "/v1/sessions", "/api/v1/sandbox", "/mcp"):
        assert guest.get(path, headers=page(daemon, Cookie=cookie)).status in (401, 403, 405), path


# ---- terminals ----


def test_terminal_by_session(daemon, api, cookie):
    box = api.create()
    way = f"{box.path}/terminal"

    def status(*headers):
        socket = Socket(daemon, way, [f"Cookie: {cookie}", *headers], key="")
        socket.connection.close()
        return socket.status

    assert status(f"Origin: {origin(daemon)}") == 101
    assert status(f"Origin: {origin(daemon)}", "Sec-Fetch-Site: same-origin") == 101
    assert status() == 403, "browsers always say who asks"
    for foreign in ("Origin: http://evil.example", "Origin: null", "Origin: http://127.0.0.1:1"):
        assert status(foreign) == 403, foreign
    assert status(f"Origin: {origin(daemon)}", "Sec-Fetch-Site: cross-site") == 403
    box.delete()


def test_boxes_do_not_see_the_cookie(daemon, api, guest, cookie):
    """A server in a sandbox that answers with what it was sent."""
    box = api.create()
    box.put("/tmp/echo.py", b"""
import http.server
class Echo(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        text = str(self.headers).encode()
        self.send_response(200)
        self.send_header("Set-Cookie", "paddock_session_%d=stolen; Path=/")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)
http.server.HTTPServer(("127.0.0.1", 8123), Echo).serve_forever()
""" % daemon.port)
    assert api.post(f"{box.path}/processes", {"argv": ["python3", "/tmp/echo.py"]}).status == 201
    way = f"{box.path}/ports/8123/"
    paddock.until(lambda: api.get(way).status == 200, "the server in the sandbox answers")
    assert guest.get(way, headers=page(daemon, Cookie=cookie)).status == 401, "pages of sandboxes are shown by signed links"
    answer = api.get(way, headers={"Cookie": f"a=b; {cookie}"})
    assert answer.status == 200 and b"paddock_session" not in answer.body and "set-cookie" not in answer.headers
    assert "sandbox" in answer.headers["content-security-policy"]
    by_name = api.get("/", headers={"Host": f"8123-{box.id}.localhost:{daemon.port}", "Cookie": f"a=b; {cookie}; __Host-{cookie}"})
    assert by_name.status == 200 and b"paddock_session" not in by_name.body and b"a=b" in by_name.body
    assert "set-cookie" not in by_name.headers
    box.delete()


# ---- what the pages show beyond the API ----


def test_state_is_for_whoever_may_see_it(daemon, guest, tenant, api, box):
    for path in ("load", "pool", "templates", "settings", "templates/x/log", "trend"):
        assert guest.get(f"/dashboard/{path}", headers=page(daemon)).status == 401, path
    for path in ("pool", "settings", "trend"):
        assert tenant.get(f"/dashboard/{path}").status == 403, path
    paddock.until(lambda: box.id in {each["id"] for each in api.get("/dashboard/load").json()["sandboxes"]}, "the sandbox was measured")
    assert tenant.get("/dashboard/load").json() == {"sandboxes": []}, "others' sandboxes are not told of"
    assert tenant.get("/dashboard/templates").json() == {"templates": []}
    assert tenant.get("/dashboard/templates/none/log").status == 404
    assert api.get("/dashboard/pool").json()["images"] == []


def test_settings_say_where_they_come_from(own_daemon):
    daemon = own_daemon(environment={"PADDOCK_PARTS": "3", "PADDOCK_MAX_LIMITS_PIDS": "512"})
    file = daemon.base / "paddock.yaml"
    known = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
    file.write_text(f"defaults: {{limits: {{memory_mb: 128}}}}\npool: {{machine: {{warm: 1}}}}\nkeys: [{{sha256: {known}, role: user}}]\n")
    daemon.arguments = ["--config", str(file)]
    client = daemon.start().client()
    answer = client.get("/dashboard/settings")
    assert known.encode() not in answer.body, "hashes of keys are nobody's to see"
    found = {each["name"]: each for each in answer.json()["settings"]}
    assert found["keys"]["value"] == "(set)" and found["keys"]["source"] == str(file)
    assert found["parts"] == {"name": "parts", "value": 3, "source": "PADDOCK_PARTS"}
    assert found["max.limits.pids"]["source"] == "PADDOCK_MAX_LIMITS_PIDS"
    assert found["defaults.limits.memory_mb"] == {"name": "defaults.limits.memory_mb", "value": 128, "source": str(file)}
    assert found["listen"]["source"] == "command line"
    assert found["defaults.limits.cpu"]["source"] == "default"
    assert "origins" not in found and not any(name.startswith("origins") for name in found)
    paddock.until(lambda: client.get("/dashboard/pool").json()["images"] == [{"image": "machine", "ready": 1, "wanted": 1}], "the pool is filled")
    client.close()
    daemon.arguments = []  # without a pool what waited in it goes
    daemon.restart()
