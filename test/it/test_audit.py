"""The audit log: who changed what, by which way, for whom it is to be seen, and what it must not have."""

import json

import paddock
import pytest
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
