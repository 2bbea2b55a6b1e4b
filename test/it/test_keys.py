"""Keys, roles and tenants."""

import contextlib
import os
import re
import sqlite3

import pytest

import paddock

KEY = re.compile(r"^(pdk|e2b)_([0-9a-f]{40})$")


@pytest.fixture
def make_key(api):
    made = []

    def make(**spec):
        response = api.post("/v1/keys", spec)
        assert response.status == 201, response
        made.append(response.json())
        return made[-1]

    yield make
    for key in made:
        assert api.delete(f"/v1/keys/{key['id']}").status in (204, 404)


def test_admin_key_file(daemon):
    path = daemon.data_dir / "admin.key"
    assert path.stat().st_mode & 0o7777 == 0o600 and path.stat().st_uid == 0
    assert KEY.match(daemon.key), "one line, a prefix and 40 hex digits"


def test_admin_key_is_made_once(own_daemon):
    daemon = own_daemon().start()
    key = daemon.key
    daemon.restart()
    assert daemon.key == key
    assert daemon.client().get("/v1/sandboxes").status == 200


def test_either_prefix(daemon):
    digits = KEY.match(daemon.key)[2]
    for prefix, status in (("pdk_", 200), ("e2b_", 200), ("", 401), ("sk_", 401), ("PDK_", 401)):
        client = paddock.Client(daemon, prefix + digits)
        assert client.get("/v1/sandboxes").status == status, prefix
        client.close()


def test_life_of_a_key(api, daemon, make_key):
    made = make_key(name="ci", role="user")
    assert KEY.match(made["key"])
    client = paddock.Client(daemon, made["key"])
    assert client.get("/v1/sandboxes").status == 200
    listed = {key["id"]: key for key in api.get("/v1/keys").json()["keys"]}
    assert listed[made["id"]]["name"] == "ci" and listed[made["id"]]["role"] == "user"
    assert "key" not in listed[made["id"]], "a key is shown once"
    assert made["key"] not in api.get("/v1/keys").body.decode()
    assert api.delete(f"/v1/keys/{made['id']}").status == 204
    # in force at once, on a connection that used it before too
    assert client.get("/v1/sandboxes").status == 401
    assert api.delete(f"/v1/keys/{made['id']}").status == 404
    client.close()


def test_keys_survive_a_restart_and_so_does_their_removal(own_daemon):
    daemon = own_daemon().start()
    api = daemon.client()
    kept, gone = (api.post("/v1/keys", {"name": name, "role": "user"}).json() for name in ("kept", "gone"))
    assert api.delete(f"/v1/keys/{gone['id']}").status == 204
    daemon.restart()
    assert paddock.Client(daemon, kept["key"]).get("/v1/sandboxes").status == 200
    assert paddock.Client(daemon, gone["key"]).get("/v1/sandboxes").status == 401


def test_no_key_is_stored(daemon, make_key):
    """Hashes only: neither the text nor its bytes lie in the store, whatever the prefix."""
    made = [make_key(name="k", role="user")["key"], daemon.key]
    for top, _, files in os.walk(daemon.data_dir / "store"):
        for name in files:
            with open(os.path.join(top, name), "rb") as file:
                data = file.read()
            for key in made:
                digits = KEY.match(key)[2]
                assert digits.encode() not in data and bytes.fromhex(digits) not in data, name


def test_no_key_is_logged(daemon):
    paddock.Client(daemon, daemon.key).get("/v1/sandboxes")
    assert KEY.match(daemon.key)[2] not in paddock.read(daemon.log_file)


def test_roles(api, daemon, make_key):
    user = paddock.Client(daemon, make_key(role="user")["key"])
    for method, path in (("GET", "/v1/keys"), ("POST", "/v1/keys"), ("DELETE", "/v1/keys/k_x"), ("PUT", "/v1/images/x")):
        response = user.request(method, path, b"{}" if method != "GET" else None, {"Content-Type": "application/json"})
        assert (response.status, response.code()) == (403, "forbidden"), path
    box = user.create()
    box.delete()
    admin = paddock.Client(daemon, make_key(role="admin")["key"])
    assert admin.get("/v1/keys").status == 200
    for client in (user, admin):
        client.close()


BAD = [{"role": "root"}, {"role": 1}, {"role": ""}, {"name": "x" * 5000}, {"tenant": "a/b"}, {"tenant": ""}, {"x": 1}, []]


@pytest.mark.parametrize("spec", BAD, ids=[str(spec)[:30] for spec in BAD])
def test_bad_keys(api, spec):
    response = api.post("/v1/keys", spec)
    assert (response.status, response.code()) == (400, "invalid_argument")


def test_names_belong_to_their_tenant(daemon, make_key):
    """What tenants cannot reach of each other: test_tenants_apart.py."""
    one, two = (paddock.Client(daemon, make_key(role="user", tenant=name)["key"]) for name in ("tenant-one", "tenant-two"))
    box = one.create(name="shared-name", metadata={"t": "one"})
    other = two.create(name="shared-name")
    assert other.id != box.id
    assert [one_["id"] for one_ in two.list()] == [other.id]
    assert two.list("metadata.t=one") == []
    assert two.get("/v1/sandboxes/shared-name").json()["id"] == other.id
    box.delete()
    other.delete()
    for client in (one, two):
        client.close()


def test_all_of_a_hash_is_compared(own_daemon):
    """Another last byte in the store: the key's hash is found by its beginning, but it is not this one."""
    daemon = own_daemon().start()
    api = daemon.client()
    keys = [api.post("/v1/keys", {"role": "user"}).json() for _ in range(2)]
    daemon.stop()
    with contextlib.closing(sqlite3.connect(daemon.data_dir / "store" / "paddock.db")) as store:
        (hash_,), = store.execute("SELECT hash FROM keys WHERE id = ?", (keys[0]["id"],))
        assert len(hash_) == 32
        store.execute("UPDATE keys SET hash = ? WHERE id = ?", (hash_[:31] + bytes([hash_[31] ^ 1]), keys[0]["id"]))
        store.commit()
    daemon.start()
    assert [paddock.Client(daemon, key["key"]).get("/v1/sandboxes").status for key in keys] == [401, 200]


def test_keys_of_one_tenant_share_boxes(daemon, make_key):
    one, two = (paddock.Client(daemon, make_key(role="user", tenant="team")["key"]) for _ in range(2))
    box = one.create()
    assert two.get(box.path).status == 200
    box.with_client(two).delete()
    for client in (one, two):
        client.close()
