"""E2B's volumes, secrets and rules on the wire: what its clients do not show. test/compat asks the clients themselves."""

import socket
import time
from urllib.parse import quote

import pytest

from paddock import until
from test_e2b import E2B, document, e2b, stranger  # noqa: F401 - fixtures
from test_openapi import conform, plain, resolve


class Volume:
    def __init__(self, e2b, name=None):
        self.e2b, self.name = e2b, name or f"v{time.monotonic_ns()}"
        made = e2b.call("POST", "/volumes", {"name": self.name})
        assert made.status == 201, made
        self.id, self.token = made.json()["volumeID"], made.json()["token"]

    def call(self, method, what, path, body=None, token=None, **query):
        query = "".join(f"&{key}={value}" for key, value in query.items())
        return self.e2b.client.request(method, f"/volumecontent/{self.id}/{what}?path={quote(path, safe='')}{query}", body,
                                       {"Authorization": f"Bearer {self.token if token is None else token}"})

    def remove(self):
        return self.e2b.call("DELETE", f"/volumes/{self.id}").status


@pytest.fixture
def volume(e2b):  # noqa: F811
    it = Volume(e2b)
    yield it
    for box in e2b.made:  # which may have it
        assert e2b.call("DELETE", f"/sandboxes/{box}").status in (204, 404)
    assert it.remove() == 204


def conforms(document, method, pattern, response):  # noqa: F811
    responses = {plain(key): item for key, item in document["paths"].items()}[plain(pattern)][method.lower()]["responses"]
    answer = resolve(document, responses.get(response.status) or responses["default"])
    conform(document, answer["content"]["application/json"]["schema"], response.json())
    return response


def test_answers_are_as_written(document, e2b, volume):  # noqa: F811
    for method, what, query, body, status in (("PUT", "file", {}, b"x", 201), ("GET", "path", {}, None, 200),
                                              ("PATCH", "path", {}, b'{"mode": 384}', 200), ("POST", "dir", {}, None, 409)):
        response = conforms(document, method, f"/volumecontent/{{}}/{what}", volume.call(method, what, "/f", body, **query))
        assert response.status == status, response
    assert conforms(document, "GET", "/volumecontent/{}/dir", volume.call("GET", "dir", "/")).json()[0]["mode"] == 0o600
    assert conforms(document, "GET", "/volumes", e2b.call("GET", "/volumes")).status == 200
    assert conforms(document, "GET", "/volumes/{}", e2b.call("GET", f"/volumes/{volume.name}")).json()["token"] == volume.token
    box = e2b.create(volumeMounts=[{"name": volume.name, "path": "/workspace/"}])
    shown = conforms(document, "GET", "/sandboxes/{}", e2b.call("GET", f"/sandboxes/{box['sandboxID']}")).json()
    assert shown["volumeMounts"] == [{"name": volume.name, "path": "/workspace"}]


def test_a_volume_is_a_workspace(e2b, api, volume):  # noqa: F811
    assert api.get(f"/v1/workspaces/{volume.name}").json()["id"] == volume.id
    assert volume.call("PUT", "file", "/d/é +&.txt", b"bytes").status == 201
    assert api.get(f"/v1/workspaces/{volume.name}/files/d/{quote('é +&.txt')}").body == b"bytes"
    read = volume.call("GET", "file", "/d/é +&.txt")
    assert (read.status, read.body) == (200, b"bytes")


def test_only_its_token_opens_a_volume(e2b, volume):  # noqa: F811
    other = Volume(e2b)
    try:
        assert volume.call("PUT", "file", "/f", b"x").status == 201
        for token in ("", "x", other.token, e2b.key, volume.token[:-1], volume.token + "0"):
            for method, what, body in (("GET", "file", None), ("GET", "path", None), ("GET", "dir", None), ("PUT", "file", b"y"),
                                       ("POST", "dir", None), ("PATCH", "path", b"{}"), ("DELETE", "path", None)):
                assert volume.call(method, what, "/f", body, token=token).status == 401, (token, method, what)
        assert volume.call("GET", "file", "/f").body == b"x"
        # A token is of a volume, not of a name: what is called like its id is another.
        twin = Volume(e2b, name=volume.id)
        assert twin.call("PUT", "file", "/f", b"of the twin").status == 201
        assert volume.call("GET", "file", "/f").body == b"x"
        assert twin.remove() == 204
    finally:
        assert other.remove() == 204
    assert other.call("GET", "dir", "/").status == 401, "and not when it is gone"


def test_another_tenant_knows_nothing_of_it(volume, stranger):  # noqa: F811
    assert stranger.call("GET", f"/volumes/{volume.id}").status == 404
    assert stranger.call("DELETE", f"/volumes/{volume.id}").status == 404
    assert volume.id not in [each["volumeID"] for each in stranger.call("GET", "/volumes").json()]
    refused = stranger.call("POST", "/v2/sandboxes", {"templateID": "base", "volumeMounts": [{"name": volume.name, "path": "/workspace"}]})
    assert refused.status == 404


def test_bad_requests_for_files(volume):
    for method, what, path, query in (("GET", "file", "/../etc/passwd", {}), ("PUT", "file", "a/../../x", {}), ("DELETE", "path", "/", {}),
                                      ("GET", "dir", "/", {"depth": 65}), ("POST", "dir", "/d", {"mode": 0o10000}),
                                      ("POST", "dir", "/d", {"uid": "user"}), ("POST", "dir", "/d", {"force": "perhaps"}),
                                      ("GET", "path", "/", {"unheardOf": 1})):
        assert volume.call(method, what, path, **query).status == 400, (method, what, path, query)
    assert volume.call("GET", "path", "/" + "x" * 5000).status in (400, 414)
    assert volume.call("PATCH", "path", "/", b'{"unheardOf": 1}').status == 400
    assert volume.call("GET", "dir", "/").json() == [], "and nothing was made"
    assert volume.call("PUT", "file", "/f", b"x").status == 201
    assert volume.call("GET", "dir", "/f").status == 400
    assert volume.call("GET", "file", "/").status == 400


def test_a_write_without_force(volume):
    assert volume.call("PUT", "file", "/f", b"first", force="false").status == 201
    assert volume.call("PUT", "file", "/f", b"second", force="false").status == 409
    assert volume.call("GET", "file", "/f").body == b"first"
    for query in ({}, {"force": "true"}):
        assert volume.call("PUT", "file", "/f", b"third", **query).status == 201
    assert volume.call("GET", "file", "/f").body == b"third"


def test_links_lead_nowhere_on_the_host(e2b, api, volume, tmp_path):  # noqa: F811
    there = tmp_path / "there"
    there.write_text("of the host")
    box = e2b.create(volumeMounts=[{"name": volume.name, "path": "/workspace"}])
    made = api.post(f"/v1/sandboxes/{box['sandboxID']}/exec", {"command": f"ln -s {there} s && ln -s {tmp_path} d && ln -s /etc/new n"})
    assert made.json()["exit_code"] == 0
    for path in ("/s", "/d/there"):
        assert volume.call("GET", "file", path).status == 404, path
    assert volume.call("PUT", "file", "/d/there", b"x").status >= 400
    assert there.read_text() == "of the host"
    assert volume.call("PUT", "file", "/n", b"x").status >= 400, "the rest of the hidden box cannot be written"
    assert volume.call("GET", "path", "/s").json()["type"] == "symlink"


def test_uploads_that_break_off(daemon, volume):
    """Before the hidden box is there, and in the middle: nothing stays, and others are served."""
    for sent in (b"", b"x" * 2_000_000):
        with socket.create_connection((daemon.host, daemon.port)) as link:
            link.sendall(f"PUT /volumecontent/{volume.id}/file?path=/f HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {volume.token}\r\n"
                         "Content-Length: 8000000\r\n\r\n".encode() + sent)
        assert volume.call("GET", "path", "/f").status == 404
        assert volume.call("PUT", "file", "/g", b"y" * 3_000_000).status == 201
    until(lambda: [each["name"] for each in volume.call("GET", "dir", "/").json()] == ["g"], "only what was whole")


def test_several_where_the_client_says(document, e2b, api, volume):  # noqa: F811
    other = Volume(e2b)
    try:
        mounts = [{"name": volume.name, "path": "/data/one/"}, {"name": other.name, "path": "/home/user/two"}]
        box = e2b.create(volumeMounts=mounts)
        shown = conforms(document, "GET", "/sandboxes/{}", e2b.call("GET", f"/sandboxes/{box['sandboxID']}")).json()
        assert shown["volumeMounts"] == [{**mounts[0], "path": "/data/one"}, mounts[1]]
        ran = api.post(f"/v1/sandboxes/{box['sandboxID']}/exec", {"command": "echo 1 >/data/one/f; echo 2 >/home/user/two/f"})
        assert ran.json()["exit_code"] == 0, ran
        assert (volume.call("GET", "file", "/f").body, other.call("GET", "file", "/f").body) == (b"1\n", b"2\n")
        assert other.remove() == 409
        assert e2b.call("DELETE", f"/sandboxes/{box['sandboxID']}").status == 204
    finally:
        assert other.remove() == 204


def test_mounts_that_cannot_be(e2b, volume):  # noqa: F811
    one = {"name": volume.name, "path": "/workspace"}
    for mounts, status in (([{**one, "path": "mnt"}], 400), ([one, {**one, "path": "/workspace/in"}], 400), ([{**one, "path": "/proc/x"}], 400),
                           ([one] * 2, 400), ([{**one, "path": f"/{i}"} for i in range(9)], 400), ([{"name": volume.name}], 400), ("x", 400),
                           ([{**one, "more": 1}], 400), ([{**one, "name": "none-such"}], 404)):
        refused = e2b.call("POST", "/v2/sandboxes", {"templateID": "base", "volumeMounts": mounts})
        assert refused.status == status, (mounts, refused)
    e2b.create(volumeMounts=[one])
    assert e2b.call("POST", "/v2/sandboxes", {"templateID": "base", "volumeMounts": [one]}).status == 409, "one writes at a time"
    assert volume.remove() == 409


# ---- secrets --------------------------------------------------------------


@pytest.fixture
def secret(e2b):  # noqa: F811
    name = f"s{time.monotonic_ns()}"
    assert e2b.call("POST", "/secrets", {"name": name, "value": "hush"}).status == 201
    yield name
    assert e2b.call("DELETE", f"/secrets/{name}").status in (204, 404)


def test_secrets_are_those_of_the_vault(document, e2b, api, stranger, secret):  # noqa: F811
    shown = conforms(document, "GET", "/secrets/{}", e2b.call("GET", f"/secrets/{secret.upper()}")).json()
    assert (shown["secretID"], shown["currentVersion"]) == (f"sec_{secret}", 1)
    assert secret in [each["name"] for each in api.get("/v1/secrets").json()["secrets"]]
    assert conforms(document, "GET", "/secrets", e2b.call("GET", "/secrets")).status == 200
    assert b"hush" not in e2b.call("GET", "/secrets").body
    assert stranger.call("GET", f"/secrets/{secret}").status == 404
    assert stranger.call("GET", "/secrets").json() == []
    assert stranger.call("DELETE", f"/secrets/{secret}").status == 404


def test_pages_of_secrets(e2b, secret):  # noqa: F811
    more = [f"{secret}-{n}" for n in range(3)]
    for name in more:
        assert e2b.call("POST", "/secrets", {"name": name, "value": "v"}).status == 201
    found, token = [], ""
    while token is not None:
        page = e2b.call("GET", f"/secrets?limit=2&nextToken={token}")
        assert page.status == 200 and len(page.json()) <= 2
        found += [each["name"] for each in page.json()]
        token = page.headers.get("x-next-token")
    assert found == sorted(set(found)) and {secret, *more} <= set(found)
    for name in more:
        assert e2b.call("DELETE", f"/secrets/sec_{name}").status == 204


def test_metadata_of_secrets(e2b, stranger, secret):  # noqa: F811
    def shown():
        listed = {each["name"]: each["metadata"] for each in e2b.call("GET", "/secrets").json()}
        one = e2b.call("GET", f"/secrets/{secret}").json()["metadata"]
        assert listed.get(secret) == one
        return one

    def update(**more):
        answer = e2b.call("POST", f"/secrets/{secret}", {"value": "hush", **more})
        assert answer.status == 200, answer
        return answer.json()["metadata"]

    assert shown() == {}
    first = {"of": "team \"a\"", "ü": ""}
    assert update(metadata=first) == first == shown()
    assert update() == first == shown(), "an update without metadata leaves them"
    assert stranger.call("POST", "/secrets", {"name": secret, "value": "v", "metadata": {"of": "b"}}).json()["metadata"] == {"of": "b"}
    assert shown() == first, "each tenant has its own"
    assert update(metadata={}) == {} == shown()
    update(metadata=first)
    assert e2b.call("DELETE", f"/secrets/{secret}").status == 204
    made = e2b.call("POST", "/secrets", {"name": secret, "value": "v"})
    assert made.status == 201 and made.json()["metadata"] == {}, "they go with the secret"


def test_metadata_outlive_a_restart(own_daemon):
    daemon = own_daemon().start()
    secrets = E2B(daemon, daemon.key)
    assert secrets.call("POST", "/secrets", {"name": "kept", "value": "v", "metadata": {"a": "b"}}).status == 201
    daemon.restart()
    secrets = E2B(daemon, daemon.key)
    assert secrets.call("GET", "/secrets/kept").json()["metadata"] == {"a": "b"}
    # They are in the file of the value, where both change together: also under another master key.
    assert daemon.client().request("POST", "/v1/vault/rotate").status == 200
    assert secrets.call("GET", "/secrets/kept").json()["metadata"] == {"a": "b"}
    files = [file for file in (daemon.data_dir / "vault").rglob("*") if file.is_file()]
    assert [b"a\0b\0" in file.read_bytes() for file in files].count(True) == 1, files


def test_bad_secrets(e2b, secret):  # noqa: F811
    for body, status in (({"name": secret.upper(), "value": "x"}, 409), ({"name": "sec_x", "value": "x"}, 400), ({"name": "a b", "value": "x"}, 400),
                         ({"name": "x"}, 400), ({"name": "x", "value": ""}, 400), ({"name": "x", "value": "v", "metadata": {"a": "b" * 1025}}, 400),
                         ({"name": "x", "value": "v", "metadata": {str(n): "" for n in range(33)}}, 400), ({"name": "x", "value": "v", "metadata": {"a": 1}}, 400),
                         ({"name": "x", "value": "v", "unheardOf": 1}, 400)):
        assert e2b.call("POST", "/secrets", body).status == status, body
    assert e2b.call("POST", "/secrets/none-such", {"value": "x"}).status == 404
    assert e2b.call("DELETE", "/secrets/none-such").status == 404
    assert e2b.call("GET", "/secrets?limit=0").status == 400
    assert e2b.call("GET", f"/secrets/{secret}").json()["currentVersion"] == 1, "nothing was changed"


def test_rules_become_injections(e2b, api):  # noqa: F811
    def rule(value, header="Authorization"):
        return [{"transform": {"headers": {header: value}}}]

    rules = {"*.example.org": rule("${e2b.secrets.Wide}", "x-key"), "api.example.org": rule("Bearer ${e2b.secrets.exact}")}
    box = e2b.create(network={"allowOut": ["*.example.org"], "denyOut": ["0.0.0.0/0"], "rules": rules})
    policy = api.get(f"/v1/sandboxes/{box['sandboxID']}/egress").json()["policy"]
    assert policy["default"] == "deny"
    assert [(each["host"], each.get("inject")) for each in policy["rules"]] == [
        ("api.example.org", [{"secret": "exact", "header": "Authorization", "prefix": "Bearer "}]),
        ("*.example.org", [{"secret": "wide", "header": "x-key"}]), ("*.example.org", None)], "the exact one first"
    shown = e2b.info(box)["network"]
    assert shown["allowOut"] == ["*.example.org"] and shown["rules"]["api.example.org"] == rules["api.example.org"]
    open_box = e2b.create(network={"rules": {"example.org": rule("${e2b.secrets.k}")}})
    assert api.get(f"/v1/sandboxes/{open_box['sandboxID']}/egress").json()["policy"]["default"] == "allow"

    secret = "${e2b.secrets.k}"
    for network, status in (({"denyOut": ["0.0.0.0/0"], "rules": {"a.example": rule(secret)}}, 400),
                            ({"denyOut": ["192.0.2.0/24"], "rules": {"a.example": rule(secret)}}, 400),
                            ({"allowOut": ["*.b.example"], "denyOut": ["0.0.0.0/0"], "rules": {"b.example": rule(secret)}}, 400),
                            ({"allowOut": ["*"], "denyOut": ["0.0.0.0/0"], "rules": {"b.example": rule(secret)}}, 204),
                            ({"allowOut": ["*.A.example."], "denyOut": ["0.0.0.0/0"], "rules": {"b.a.example": rule(secret)}}, 204),
                            ({"rules": {"*": rule(secret)}}, 400), ({"rules": {"192.0.2.1": rule(secret)}}, 400),
                            ({"rules": {"a.example": rule(secret, "Host")}}, 400), ({"rules": {"a.example": []}}, 400), ({"rules": []}, 204),
                            ({"rules": {"a.example": rule("plain")}}, 204), ({"rules": {"a.example": rule("two\nlines")}}, 400), ({"rules": {"a.example": rule(secret + "x")}}, 501),
                            ({"rules": {"a.example": rule(secret + secret)}}, 501),
                            ({"rules": {"a.example": rule("${e2b.identity.tokens.t}")}}, 501)):
        answer = e2b.call("PUT", f"/sandboxes/{box['sandboxID']}/network", network)
        assert answer.status == status, (network, answer)
