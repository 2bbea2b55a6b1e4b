"""The audit log: who changed what, by which way, for whom it is to be seen, what it must not have, and what makes it evidence.

That every route and every tool that changes something has an entry, and that its answer waits for it, is in test_stored.py."""

import contextlib
import json
import sqlite3

import paddock
import pytest
from clitool import Cli
from dialects import tool
from test_dashboard import cookie_of, page, sign_in


@pytest.fixture(scope="module")
def site(daemon_factory):
    daemon = daemon_factory("audit").start()
    yield daemon
    daemon.delete_all()
    daemon.finish()


def entries(client, **query):
    text = "&".join(f"{k}={v}" for k, v in query.items())
    answer = client.get("/v1/audit" + (f"?{text}" if text else ""))
    assert answer.status == 200, answer
    return answer.json()["entries"]


def newest(client, action):
    return next(e for e in entries(client) if e["action"] == action)


def send(client, method, path, body=None, status=(200, 201, 202, 204), **headers):
    data = json.dumps(body).encode() if body is not None else b""
    answer = client.request(method, path, data, {"Content-Type": "application/json", **headers})
    assert answer.status in status, answer
    return answer.json() if answer.body else None


def test_management(site):
    admin = site.client()
    tenant = send(admin, "POST", "/v1/tenants", {"name": "audited"})
    key = send(admin, "POST", "/v1/keys", {"name": "k", "tenant": "audited", "role": "user"})
    send(admin, "PUT", f"/v1/tenants/{tenant['id']}/quota", {"boxes": 7})
    send(admin, "PUT", "/v1/secrets/audit-secret", {"value": "never-to-be-shown"})
    send(admin, "DELETE", f"/v1/keys/{key['id']}")
    seen = entries(admin)
    assert [e["action"] for e in seen[:5]] == ["key.delete", "secret.set", "quota.set", "key.create", "tenant.create"]
    assert [e["target"] for e in seen[:5]] == [key["id"], "audit-secret", tenant["id"], key["id"], tenant["id"]]
    assert all(e["key"] == "k_admin" and e["role"] == "admin" and e["tenant"] == "default" and e["via"] == "rest" for e in seen[:5])
    assert '"boxes": 7' in seen[2]["detail"] or '"boxes":7' in seen[2]["detail"]
    text = admin.get("/v1/audit").body.decode()
    assert "never-to-be-shown" not in text and key["key"] not in text


def test_sandboxes_and_policies(site):
    admin = site.client()
    box = send(admin, "POST", "/v1/sandboxes", {"name": "audited", "env": {"TOKEN": "never-to-be-shown"}})
    site.saw(box["id"])
    send(admin, "POST", f"/v1/sandboxes/{box['id']}/exec", {"command": "true"})
    send(admin, "POST", f"/v1/sandboxes/{box['id']}/egress/rules", {"action": "allow", "targets": ["pypi.example"]})
    send(admin, "DELETE", f"/v1/sandboxes/{box['id']}")
    seen = [e for e in entries(admin) if box["id"] in e["target"]]
    assert [e["action"] for e in seen] == ["sandbox.delete", "policy.rule", "sandbox.create"], "and not the command"
    assert "pypi.example" in seen[1]["detail"]
    assert "never-to-be-shown" not in admin.get("/v1/audit").body.decode()


def test_rules_with_secrets_are_not_shown(site):
    """By name the secret is shown to nobody, by value not even here: E2B's rules have plain values."""
    admin = site.client()
    box = send(admin, "POST", "/v1/sandboxes", {})
    site.saw(box["id"])
    rules = {"a.example": [{"transform": {"headers": {"X-Key": "never-to-be-shown"}}}]}
    send(admin, "PUT", f"/sandboxes/{box['id']}/network", {"allowOut": ["a.example"], "denyOut": ["0.0.0.0/0"], "rules": rules}, **{"X-API-KEY": site.key})
    entry = newest(admin, "policy.set")
    assert entry["target"] == box["id"] and entry["via"] == "e2b"
    assert "never-to-be-shown" not in admin.get("/v1/audit").body.decode()


def test_who_fails_is_not_in_it_unless_forbidden(site):
    admin = site.client()
    send(admin, "DELETE", "/v1/keys/k_nobody", status=(404,))
    made = send(admin, "POST", "/v1/keys", {"name": "u", "tenant": "forbidden", "role": "user", "create_tenant": True})
    assert newest(admin, "key.create")["target"] == made["id"] and not any(e["target"] == "k_nobody" for e in entries(admin))
    send(site.client(made["key"]), "POST", "/v1/tenants", {"name": "mine"}, status=(403,))
    refused = newest(admin, "tenant.create")
    assert (refused["key"], refused["verdict"], refused["code"], refused["tenant"]) == (made["id"], "refused", "forbidden", "forbidden")


def test_everybody_sees_the_own_tenants(site):
    admin = site.client()
    key = send(admin, "POST", "/v1/keys", {"name": "u", "tenant": "onlooker", "role": "user", "create_tenant": True})["key"]
    user = paddock.Client(site, key=key)
    assert entries(user) == []
    send(user, "POST", "/v1/workspaces", {"name": "mine"})
    assert [(e["action"], e["tenant"]) for e in entries(user)] == [("workspace.create", "onlooker")]
    assert entries(admin)[0]["tenant"] == "onlooker"
    assert user.get("/dashboard/trend").status == 403
    nobody = paddock.Client(site, key=None)
    assert nobody.get("/v1/audit").status == 401
    send(user, "DELETE", "/v1/workspaces/mine")


def test_the_way(site):
    guest = paddock.Client(site, key=None)
    cookie = cookie_of(sign_in(guest, site.key))
    send(guest, "POST", "/v1/workspaces", {"name": "by-page"}, **page(site), Cookie=cookie)
    seen = entries(site.client())
    assert (seen[0]["action"], seen[0]["via"], seen[0]["key"]) == ("workspace.create", "dashboard", "k_admin")
    assert (seen[1]["action"], seen[1]["key"]) == ("dashboard.signin", "k_admin")
    send(site.client(), "DELETE", "/v1/workspaces/by-page")


def test_pages(site):
    admin = site.client()
    all_of_them = entries(admin)
    assert len(all_of_them) > 3 and [e["id"] for e in all_of_them] == sorted((e["id"] for e in all_of_them), reverse=True)
    first = admin.get("/v1/audit?limit=2").json()
    assert first["entries"] == all_of_them[:2]
    assert admin.get(f"/v1/audit?limit=1&cursor={first['next']}").json()["entries"] == all_of_them[2:3]
    assert admin.get("/v1/audit").json()["next"] is None
    for bad in ("cursor=x", "cursor=0", "limit=0", "since=yesterday", "until=1", "before=3"):
        assert admin.get(f"/v1/audit?{bad}").status == 400, bad


def test_kept_over_a_restart(site):
    admin = site.client()
    send(admin, "POST", "/v1/workspaces", {"name": "kept"})
    before = entries(admin)
    site.stop()
    site.start()
    assert entries(site.client()) == before
    send(site.client(), "DELETE", "/v1/workspaces/kept")
    assert newest(site.client(), "workspace.delete")["id"] == before[0]["id"] + 1


def test_templates_are_built_from_steps(site):
    admin = site.client()
    made = send(admin, "POST", "/dashboard/templates", {"name": "tools", "steps": [
        {"type": "RUN", "args": ["echo from-the-build; echo made > /workspace/made"]}, {"type": "ENV", "args": ["COLOUR", "blue"]}]})
    paddock.until(lambda: admin.get("/dashboard/templates").json()["templates"][0]["status"] in ("ready", "error"), "the end of the build")
    log = admin.get(f"/dashboard/templates/{made['id']}/log").json()
    assert log["status"] == "ready" and any(line["message"] == "from-the-build" for line in log["lines"])
    box = send(admin, "POST", f"/dashboard/templates/{made['id']}/sandboxes")
    site.saw(box["id"])
    done = send(admin, "POST", f"/v1/sandboxes/{box['id']}/exec", {"command": "cat /workspace/made; echo $COLOUR"})
    assert done["stdout"] == "made\nblue\n"
    target = newest(admin, "sandbox.create")["target"].split()
    assert target[0] == made["id"] and target[-1] == box["id"], "what was asked for, and what was made"
    for body in ({"name": "x", "steps": [{"type": "COPY", "args": ["a", "b"]}]}, {"name": "x", "steps": {}}, {"steps": []}, {"name": "x", "steps": [{"type": "RUN"}]}):
        send(admin, "POST", "/dashboard/templates", body, (400, 501))
    send(admin, "DELETE", f"/v1/sandboxes/{box['id']}")
    send(admin, "DELETE", f"/dashboard/templates/{made['id']}")
    assert admin.get("/dashboard/templates").json()["templates"] == []


def test_trend(site):
    found = site.client().get("/dashboard/trend").json()
    assert len(found["bounds"]) == 12 and 1 <= len(found["samples"]) <= 121
    one = found["samples"][-1]
    assert len(one["buckets"]) == 12 and one["at_ms"] > 1.7e12 and one["memory_bytes"] >= 0


def test_filters(site):
    admin = site.client()
    made = send(admin, "POST", "/v1/keys", {"name": "u", "tenant": "filtered", "role": "user", "create_tenant": True})
    user = paddock.Client(site, key=made["key"])
    box = send(user, "POST", "/v1/sandboxes", {"name": "box-of-filters"})
    site.saw(box["id"])
    send(user, "POST", "/v1/workspaces", {"name": "w"})
    send(user, "DELETE", "/v1/workspaces/w")
    send(user, "DELETE", "/v1/sandboxes/box-of-filters")

    def acts(**query):
        return [e["action"] for e in entries(admin, **query)]

    assert acts(tenant="filtered") == ["sandbox.delete", "workspace.delete", "workspace.create", "sandbox.create"]
    assert acts(actor=made["id"]) == acts(tenant="filtered")
    assert acts(sandbox=box["id"]) == ["sandbox.delete", "sandbox.create"], "also where it was named by its name"
    assert acts(tenant="filtered", kind="workspace") == ["workspace.delete", "workspace.create"]
    assert acts(tenant="filtered", kind="workspace.create") == ["workspace.create"] and acts(tenant="filtered", kind="work") == []
    last, *_, first = entries(admin, tenant="filtered")
    assert acts(tenant="filtered", since=last["at"])[0] == "sandbox.delete"
    assert "sandbox.delete" not in acts(tenant="filtered", until=last["at"]) and acts(until=first["at"], tenant="filtered") == []
    assert entries(user) == entries(admin, tenant="filtered"), "and no other tenant's"


def test_agents_of_models_and_tools(site):
    """A tool has an entry with the sandbox's id, one that fails has none, and one that only looks has none."""
    admin = site.client()
    before = entries(admin)[0]["id"]

    def call(which, /, **arguments):
        op = tool("/mcp", which, **arguments)
        return send(admin, op.method, op.path, op.body, **op.headers)["result"]

    made = json.loads(call("sandbox_create", name="by-tool")["content"][0]["text"])
    site.saw(made["id"])
    call("exec", sandbox="by-tool", command="true")
    call("sandbox_list")
    assert call("sandbox_delete", sandbox="nobody").get("isError")
    call("sandbox_delete", sandbox="by-tool")
    seen = [e for e in entries(admin) if e["id"] > before]
    assert [(e["action"], e["target"], e["via"]) for e in seen] == [
        ("sandbox.delete", made["id"], "MCP"), ("sandbox.create", made["id"], "MCP")]


def test_ids_of_requests_are_in_the_log(site):
    """As errors.md and rest.md promise: of what was done, of what was refused, and of what failed."""
    user = send(site.client(), "POST", "/v1/keys", {"name": "u", "tenant": "logged", "role": "user", "create_tenant": True})["key"]
    send(site.client(), "POST", "/v1/workspaces", {"name": "logged"}, **{"X-Request-Id": "was-done-1"})
    send(site.client(user), "POST", "/v1/tenants", {"name": "x"}, status=(403,), **{"X-Request-Id": "was-refused-1"})
    lost = send(site.client(user), "GET", "/v1/sandboxes/nobody", status=(404,))
    text = paddock.read(site.log_file)
    for line_of in ("was-done-1", "was-refused-1", lost["error"]["request_id"]):
        assert line_of in text, line_of
    assert newest(site.client(), "tenant.create")["request_id"] == "was-refused-1"
    send(site.client(), "DELETE", "/v1/workspaces/logged")


def test_nothing_that_was_answered_is_lost(site):
    """kill -9 of the api while sixteen clients change things: whatever was answered has its entry."""
    answered = []

    def work(number):
        client = site.client()
        for i in range(100):  # a tenant may have 1000
            name = f"killed-{number}-{i}"
            try:
                answer = client.request("POST", "/v1/workspaces", json.dumps({"name": name}).encode(), {
                    "Content-Type": "application/json", "X-Request-Id": name})
            except OSError:
                return
            except Exception:  # http.client: cut off within an answer
                return
            if answer.status == 201:
                answered.append(name)

    busy = [paddock.Background(work, n) for n in range(8)]
    paddock.until(lambda: len(answered) > 40, "some of them are answered")
    site.kill_api()
    for each in busy:
        each.result()
    paddock.until(site.healthy, "the api is back")
    known = {e["request_id"] for e in entries(site.client(), limit=2000)}
    assert set(answered) <= known, set(answered) - known
    for name in [w["name"] for w in site.client().get("/v1/workspaces").json()["workspaces"]]:
        send(site.client(), "DELETE", f"/v1/workspaces/{name}")


def store_of(daemon):
    return contextlib.closing(sqlite3.connect(daemon.data_dir / "store" / "paddock.db", isolation_level=None))


def test_users_push_out_nothing_of_administrators(site):
    """The rings of administrators are full; what a user does makes place for itself elsewhere."""
    made = send(site.client(), "POST", "/v1/keys", {"name": "u", "tenant": "pusher", "role": "user", "create_tenant": True})
    site.stop()
    with store_of(site) as store:
        for kind in (0, 1):
            count, last = store.execute("SELECT count(*), max(id) FROM audit WHERE kind = ?", (kind,)).fetchone()
            top = store.execute("SELECT max(id) FROM audit").fetchone()[0]
            store.executemany(
                "INSERT INTO audit (id, kind, at_ms, role, tenant, key, via, action, target, detail) VALUES (?, ?, 1, 1, 'default', 'k_admin', 'rest', 'filled', '', '')",
                [(top + 1 + i, kind) for i in range(2000 - count)])
    site.start()
    admin, user = site.client(), site.client(made["key"])
    before = {e["id"] for e in entries(admin, limit=2000)} | {e["id"] for e in entries(admin, limit=2000, cursor=entries(admin, limit=2000)[-1]["id"])}
    for i in range(5):
        send(user, "POST", "/v1/workspaces", {"name": "w"})
        send(user, "DELETE", "/v1/workspaces/w")
        box = send(user, "POST", "/v1/sandboxes", {})
        site.saw(box["id"])
        send(user, "DELETE", f"/v1/sandboxes/{box['id']}")
    assert len(entries(user)) == 20
    after, cursor = set(), ""
    while cursor is not None:
        page_of = admin.get(f"/v1/audit?limit=2000{cursor and '&cursor=' + cursor}").json()
        after |= {e["id"] for e in page_of["entries"]}
        cursor = page_of["next"]
    assert before <= after, "administrators' entries are gone"
    with store_of(site) as store:
        stored = {row[0] for row in store.execute("SELECT id FROM audit")}
    assert before <= stored
    send(admin, "POST", "/v1/workspaces", {"name": "one-more"})
    send(admin, "DELETE", "/v1/workspaces/one-more")
    with store_of(site) as store:
        assert store.execute("SELECT count(*) FROM audit WHERE kind = 0").fetchone()[0] == 2000, "an administrator's own do"
        store.execute("DELETE FROM audit WHERE action = 'filled'")


def heads(cli):
    return {each["chain"]: each for each in cli.json("audit", "verify")}


@pytest.fixture(scope="module")
def evidence(daemon_factory):
    """A daemon with a short log."""
    daemon = daemon_factory("evidence").start()
    admin = daemon.client()
    user = send(admin, "POST", "/v1/keys", {"name": "u", "tenant": "watched", "role": "user", "create_tenant": True})["key"]
    for i in range(4):
        send(admin, "POST", "/v1/workspaces", {"name": f"a{i}"})
        send(daemon.client(user), "POST", "/v1/workspaces", {"name": f"u{i}"})
    send(daemon.client(user), "POST", "/v1/tenants", {"name": "\u00e4\u0007"}, status=(403,))
    yield daemon
    daemon.finish()


def test_the_chain_holds(evidence, tmp_path):
    cli = Cli(evidence)
    found = heads(cli)
    assert set(found) == {"admins", "users"} and found["admins"]["oldest"] == 1 and found["users"]["newest"] == 5
    export = cli.ok("audit", "export")
    log = tmp_path / "log"
    log.write_text(export)
    assert len(export.splitlines()) == len(entries(evidence.client())) and cli.ok("audit", "verify", log) == cli.ok("audit", "verify")
    assert [json.loads(line) for line in cli.ok("audit", "export", "--kind", "key").splitlines()] == entries(evidence.client(), kind="key")
    assert "key.create" in cli.ok("audit", "ls", "--kind", "key")
    evidence.stop()
    evidence.start()
    assert heads(cli) == found, "also after a restart"
    send(evidence.client(), "POST", "/v1/workspaces", {"name": "later"})
    cli.ok("audit", "verify", "--knows", found["admins"]["hash"])
    log.write_text(export.replace('"a1"', '"a9"').replace('"target":"', '"target":"x', 1))
    assert "was changed" in cli.refused("audit", "verify", log)


@pytest.mark.parametrize("name,sql,said", [
    ("changed", "UPDATE audit SET key = 'k_nobody' WHERE kind = 2 AND number = 3", "was changed"),
    ("moved in time", "UPDATE audit SET at_ms = at_ms - 1 WHERE kind = 0 AND number = 2", "was changed"),
    ("left out", "DELETE FROM audit WHERE kind = 0 AND number = 3", "is broken between"),
    ("the oldest is gone", "DELETE FROM audit WHERE kind = 2 AND number = 1", "older ones are missing"),
    ("the newest is gone", "DELETE FROM audit WHERE id = (SELECT max(id) FROM audit)", "no entry has the hash"),
])
def test_whoever_changes_the_log_is_found_out(evidence, name, sql, said):
    cli = Cli(evidence)
    with store_of(evidence) as store:
        newest_kind = store.execute("SELECT kind FROM audit ORDER BY id DESC LIMIT 1").fetchone()[0]
        rows = store.execute("SELECT * FROM audit").fetchall()
    known = heads(cli)[{0: "admins", 2: "users"}[newest_kind]]["hash"]
    evidence.stop()
    with store_of(evidence) as store:
        store.execute(sql)
    evidence.start()
    assert said in cli.refused("audit", "verify", "--knows", known), name
    evidence.stop()
    with store_of(evidence) as store:
        store.execute("DELETE FROM audit")
        store.executemany(f"INSERT INTO audit VALUES ({', '.join('?' * len(rows[0]))})", rows)
    evidence.start()
    cli.ok("audit", "verify", "--knows", known)
