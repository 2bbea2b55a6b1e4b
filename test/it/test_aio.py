"""The AIO sandbox API: its frame. Every reply is checked against the published document by the file's fixtures."""

import time

import paddock


def test_context(make_box, api):
    box = make_box(name=f"aio-{time.monotonic_ns()}")
    shown = api.get(f"/sandbox/{box.document['name']}/v1/sandbox")
    assert shown.status == 200, shown
    document = shown.json()
    assert document["home_dir"] == "/home/user" and document["detail"]["system"]["user"] == "user"
    assert document["detail"]["runtime"]["python"][0]["ver"].startswith("3.")


def test_who_asks(make_box, api, daemon, tenant):
    box = make_box()
    path = f"/sandbox/{box.id}/v1/sandbox"
    nobody = paddock.Client(daemon, "pdk_" + "0" * 40)
    assert nobody.get(path).status == 401 and tenant.get(path).status == 404
    nobody.key = None
    assert nobody.get(path).status == 401
    assert nobody.request("GET", path, headers={"X-AIO-API-Key": daemon.key}).status == 200
    ticket = api.post(f"/sandbox/{box.id}/tickets", {}).json()
    assert ticket["expires_in"] == 30
    assert nobody.get(f"/sandbox/{box.id}/auth?ticket={ticket['ticket']}").status == 200
    other = make_box()
    assert nobody.get(f"/sandbox/{other.id}/auth?ticket={ticket['ticket']}").status == 401
    end = ticket["ticket"].split(".")
    assert nobody.get(f"/sandbox/{box.id}/auth?ticket={end[0]}.{int(end[1]) + 60}.{end[2]}").status == 401
    nobody.close()


def test_a_ticket_takes_no_large_body(box, api):
    path = f"/sandbox/{box.id}/tickets"
    assert api.request("POST", path, b"").status == 200 and api.post(path, {}).status == 200
    assert api.request("POST", path, b"x" * 5000, {"Content-Type": "text/plain"}).status == 413
