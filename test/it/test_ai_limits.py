"""What boxes and tenants may use of models, set by calls; warnings, tokens, the log of calls, minutes over restarts."""

import contextlib
import json
import sqlite3
import subprocess
import threading
import time

import pytest

import paddock
from test_ai import chat, cost, fresh, gateways, modules, open_stream, provider  # noqa: F401 (fixtures)

ONE = cost(60, 40, 50)  # dollars that a chat takes
PATH = "/api/openai/v1/chat/completions"


@pytest.fixture(scope="module")
def gateway(gateways):  # noqa: F811
    """No limits but a ceiling for boxes."""
    return gateways(max={"parallel": 8, "week": 50})


@pytest.fixture
def box(gateway):
    gateway.new_box()
    return gateway


@pytest.fixture
def tenant(gateway):
    """A tenant of its own: its name, a client with a key of it, and a box."""
    name = f"t{time.monotonic_ns()}"
    assert gateway.api.post("/v1/tenants", {"name": name}).status == 201
    client = gateway.daemon.client(gateway.api.post("/v1/keys", {"tenant": name}).json()["key"])
    assert client.send_json("PUT", "/v1/secrets/openai-key", {"value": "sk-openai-7f3c9d"}).status in (200, 201)
    return name, client, client.create()


def set_limits(client, place, method="PUT", **limits):
    answer = client.send_json(method, f"{place}/ai", limits)
    assert answer.status == 200, answer
    return answer.json()


def kill_api(gateway):
    """What was answered is on disk: writes keep their order, and this one is waited for."""
    set_limits(gateway.api, gateway.box.path, "PATCH")
    gateway.daemon.kill_api()
    gateway.api = gateway.daemon.client()


def code(answer):
    return answer[0], json.loads(answer[2])["error"]["code"]


def events(gateway, box, kind):
    return gateway.api.get(f"/v1/events?sandbox={box.id}&type={kind}").json()["events"]


def with_token(gateway, token, path="/api/openai/v1/models"):
    return gateway.send(path, authorization=f"Bearer {token}")[0]


def at_once(count, call):
    """The results of so many calls that begin together."""
    results, barrier = [], threading.Barrier(count)

    def run():
        barrier.wait()
        results.append(call())

    threads = [threading.Thread(target=run) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(results) == count
    return results


# ---- limits of a box ------------------------------------------------------


def test_limits_of_a_box(box, provider):  # noqa: F811
    about = box.about
    assert about["own"] == {} and about["limits"]["day"] == 0 and about["sources"]["day"] is None
    assert (about["limits"]["parallel"], about["sources"]["parallel"]) == (8, "configuration")
    said = {"requests_per_minute": 2, "day": 1.5, "warn": 0.5, "models": ["gpt-4o-*"]}
    about = set_limits(box.api, box.box.path, **said)
    assert about["own"] == said and about["sources"]["day"] == "sandbox" and about["limits"]["day"] == 1.5
    # The next call already.
    assert code(box.chat(model="gpt-4")) == (403, "forbidden")
    assert box.chat()[0] == box.chat()[0] == 200
    status, headers, _ = box.chat()
    assert status == 429 and 1 <= int(headers["retry-after"]) <= 60
    # Changed in part, and taken back.
    about = set_limits(box.api, box.box.path, "PATCH", requests_per_minute=None, models=None, month=7)
    assert about["own"] == {"day": 1.5, "warn": 0.5, "month": 7}
    assert box.chat()[0] == 200 and len(provider.take()) == 3
    set_limits(box.api, box.box.path, "PATCH", day=ONE / 10)
    assert code(box.chat()) == (403, "budget_exceeded")
    assert set_limits(box.api, box.box.path)["own"] == {}
    assert box.chat()[0] == 200


@pytest.mark.parametrize("limits", [
    {"day": -1}, {"day": "1"}, {"requests_per_minute": 1.5}, {"warn": 1.1}, {"models": "gpt-4o"}, {"models": [""]}, {"models": ["x" * 129]},
    {"models": ["m"] * 101}, {"providers": ["nobody"]}, {"colour": "red"}, {"parallel": 9}, {"parallel": 0}, {"week": 50.1}, [],
])
def test_limits_that_are_none(box, limits):
    answer = box.api.send_json("PUT", f"{box.box.path}/ai", limits)
    assert (answer.status, answer.code()) == (400, "invalid_argument"), answer
    assert box.about_now()["own"] == {}
    if isinstance(limits, dict):
        assert box.api.try_create(ai=limits).status == 400


def test_limits_of_new_boxes_forks_and_after_restarts(gateways, provider):  # noqa: F811
    gateway = gateways(box={"day": 1, "warn": 0.9})
    said = {"day": 2 * ONE, "endpoints": ["models", "chat/completions"]}
    first = gateway.api.create(ai=said)
    twin = gateway.api.post(f"{first.path}/fork", {"count": 1}).json()["sandboxes"][0]
    assert set_limits(gateway.api, "/v1/tenants/default", month=5, providers=["openai"])["own"]["month"] == 5
    gateway.daemon.stop()
    gateway.daemon.start()
    gateway.api = gateway.daemon.client()
    for box_id in (first.id, twin["id"]):
        about = gateway.api.get(f"/v1/sandboxes/{box_id}/ai").json()
        assert about["own"] == said and about["allow"]["endpoints"] == [{"from": "sandbox", "patterns": said["endpoints"]}]
        assert (about["limits"]["month"], about["sources"]["month"]) == (5, "tenant")
        assert (about["limits"]["warn"], about["sources"]["warn"]) == (0.9, "default")
        assert about["allow"]["providers"] == [{"from": "tenant", "patterns": ["openai"]}]
        assert about["providers"]["openai"]["allowed"] and not about["providers"]["anthropic"]["allowed"]
    gateway.token = gateway.api.get(f"/v1/sandboxes/{twin['id']}/ai").json()["token"]
    assert gateway.chat()[0] == 200
    assert code(gateway.chat(max_tokens=1000)) == (403, "budget_exceeded")
    assert code(gateway.send("/api/openai/v1/embeddings", {"model": "text-embedding-3-small", "input": "x"})) == (403, "not_allowed")
    assert gateway.send("/api/anthropic/v1/models")[0] == 403
    # Those without any have the default.
    about = gateway.api.get(f"{gateway.api.create().path}/ai").json()
    assert (about["limits"]["day"], about["sources"]["day"]) == (1, "default")


# ---- limits of a tenant ---------------------------------------------------


def test_a_tenant_gives_less_never_more(gateway, tenant):
    name, client, mine = tenant
    set_limits(gateway.api, f"/v1/tenants/{name}", day=1, parallel=4, models=["gpt-*"])
    for limits in ({"day": 1.1}, {"day": 0}, {"parallel": 5}):
        answer = client.send_json("PUT", f"{mine.path}/ai", limits)
        assert answer.status == 400 and "tenant" in answer.json()["error"]["message"]
    about = set_limits(client, mine.path, day=1, parallel=3, models=["*-mini", "claude-*"])
    assert (about["limits"]["day"], about["limits"]["parallel"]) == (1, 3)
    # Both lists must allow it.
    gateway.token = about["token"]
    assert gateway.chat()[0] == 200 and code(gateway.chat(model="gpt-4o")) == (403, "forbidden")
    assert gateway.send("/api/anthropic/v1/messages", {"model": "claude-3-haiku-20240307", "max_tokens": 5, "messages": []})[0] == 403
    # What the tenant loses, its boxes lose at once; what was said for them stays.
    set_limits(gateway.api, f"/v1/tenants/{name}", "PATCH", day=0.5)
    about = client.get(f"{mine.path}/ai").json()
    assert (about["limits"]["day"], about["sources"]["day"], about["own"]["day"]) == (0.5, "tenant", 1)
    about = set_limits(client, mine.path, "PATCH", warn=0.5)
    assert about["own"]["day"] == 1 and about["limits"]["warn"] == 0.5
    assert about["tenant"]["limits"]["day"] == 0.5 and about["tenant"]["spent"]["day"] == pytest.approx(ONE)
    # Only admins set tenants, and nobody the boxes of others.
    for method in ("GET", "PUT", "PATCH"):
        assert client.send_json(method, f"/v1/tenants/{name}/ai", {"day": 100}).status == 403
    assert client.send_json("PUT", f"{gateway.box.path}/ai", {}).status == 404
    assert gateway.api.send_json("PUT", "/v1/tenants/nobody/ai", {}).status == 404


def test_boxes_of_a_tenant_share_its_budget(gateway, tenant, provider):  # noqa: F811
    name, client, mine = tenant
    # The answer of the first is spent, and the reservation of the next does not fit.
    set_limits(gateway.api, f"/v1/tenants/{name}", day=1.5 * ONE)
    gateway.token = client.get(f"{mine.path}/ai").json()["token"]
    assert gateway.chat()[0] == 200
    other = client.create()
    gateway.token = client.get(f"{other.path}/ai").json()["token"]
    assert code(gateway.chat(max_tokens=80)) == (403, "budget_exceeded")
    told = paddock.until(lambda: events(gateway, other, "ai.budget.exceeded"), "the refusal is told")[0]["data"]
    assert (told["scope"], told["window"]) == ("tenant", "day") and told["spent_usd"] == pytest.approx(ONE)
    set_limits(gateway.api, f"/v1/tenants/{name}", day=4 * ONE)
    assert gateway.chat(max_tokens=80)[0] == 200


def test_clients_understand(box, modules):  # noqa: F811
    set_limits(box.api, box.box.path, models=["gpt-4o"], requests_per_minute=1)
    got = box.sdk(modules, "refused", AI_MODEL="gpt-4o-mini")
    assert (got["error"], got["status"]) == ("PermissionDeniedError", 403) and "not allowed" in got["message"]
    set_limits(box.api, box.box.path, day=ONE / 100)
    got = box.sdk(modules, "refused_claude", AI_MODEL="claude-3-haiku-20240307")
    assert (got["error"], got["status"]) == ("PermissionDeniedError", 403) and "budget" in got["message"]


# ---- together -------------------------------------------------------------


def test_calls_at_a_time(box, provider):  # noqa: F811
    """Of many that come together exactly as many as may pass."""
    set_limits(box.api, box.box.path, parallel=3)
    provider.hold = True
    opened = at_once(16, lambda: open_stream(box))
    assert sorted(response.status for _, response in opened) == [200] * 3 + [429] * 13
    assert len(provider.take()) == 3 and box.about_now()["spent"]["parallel"] == 3
    provider.go.set()
    for connection, response in opened:
        response.read()
        connection.close()
    paddock.until(lambda: box.about_now()["spent"]["parallel"] == 0, "all are settled")


def test_minute_of_calls_at_a_time(box, provider):  # noqa: F811
    set_limits(box.api, box.box.path, requests_per_minute=5)
    assert sorted(at_once(16, lambda: box.chat()[0])) == [200] * 5 + [429] * 11
    assert len(provider.take()) == 5


def test_budget_of_calls_at_a_time(box, provider):  # noqa: F811
    """What is reserved counts: the budget is never passed, not even for a moment."""
    provider.hold = True
    connection, response = open_stream(box)
    assert provider.begun.wait(10)
    each = box.about_now()["spent"]["reserved"]
    set_limits(box.api, box.box.path, day=each * 4.5)
    opened = at_once(12, lambda: open_stream(box))
    assert sorted(answer.status for _, answer in opened) == [200] * 3 + [403] * 9
    spent = box.about_now()["spent"]
    assert spent["reserved"] == pytest.approx(4 * each) and len(provider.take()) == 4
    provider.go.set()
    for one, answer in [*opened, (connection, response)]:
        answer.read()
        one.close()
    spent = paddock.until(lambda: (now := box.about_now()["spent"])["reserved"] == 0 and now, "all are settled")
    assert spent["day"] == pytest.approx(4 * ONE)


# ---- warnings -------------------------------------------------------------


def test_warned_once(box, provider):  # noqa: F811
    """Once in a period: an event, and a header of the next answer."""
    def warned():
        return [event["data"] for event in events(box, box.box, "ai.budget.warning")]

    def header(**more):
        status, headers, _ = box.chat(**more)
        assert status == 200
        return headers.get("x-paddock-budget-warning")

    set_limits(box.api, box.box.path, day=1, week=10 * ONE, warn=0.15)
    assert header() is None and warned() == []
    assert header() is None
    told = paddock.until(warned, "the warning is told")
    assert [(one["scope"], one["window"]) for one in told] == [("sandbox", "week")]
    assert told[0]["spent_usd"] == pytest.approx(2 * ONE) and told[0]["limit_usd"] == pytest.approx(10 * ONE)
    assert header().startswith("sandbox week; spent=") and header() is None and len(warned()) == 1
    # A restart does not warn again, a greater budget does.
    kill_api(box)
    assert header() is None and len(warned()) == 1
    set_limits(box.api, box.box.path, "PATCH", week=30 * ONE)
    assert header() is None and paddock.until(lambda: len(warned()) == 2, "the greater budget is told of")
    # A budget that refuses is told of, once.
    for _ in range(3):
        assert code(box.chat(max_tokens=16000)) == (403, "budget_exceeded")
    assert header() and len(paddock.until(lambda: events(box, box.box, "ai.budget.exceeded"), "the refusal is told")) == 1


# ---- tokens ---------------------------------------------------------------


def test_token_is_changed_and_ends(box, provider):  # noqa: F811
    other = box.api.create()
    first, others = box.token, box.api.get(f"{other.path}/ai").json()["token"]
    about = box.api.post(f"{box.box.path}/ai/token", {}).json()
    second = about["token"]
    assert second != first and about["token_expires_at"] is None
    assert (with_token(box, first), with_token(box, second), with_token(box, others)) == (401, 200, 200)
    # A token of one turn, or of another box, says nothing about the next.
    assert len({first[20:], second[20:], others[20:]}) == 3 and first[:20] == second[:20] == box.box.id
    about = box.api.post(f"{box.box.path}/ai/token", {"ttl_seconds": 600}).json()
    third = about["token"]
    assert with_token(box, third) == 200 and 500 < paddock.seconds_until(about["token_expires_at"]) <= 600
    kill_api(box)
    assert box.about_now()["token"] == third and (with_token(box, second), with_token(box, first)) == (401, 401)
    brief = box.api.post(f"{box.box.path}/ai/token", {"ttl_seconds": 1}).json()["token"]
    paddock.until(lambda: with_token(box, brief) == 401, "its end")
    assert box.about_now()["token"] == brief, "it was refused for its age alone"
    # Inside, nobody needs one.
    assert box.box.exec(["python3", "-c", "import urllib.request as u; print(u.urlopen('http://127.0.0.1:15004/api/openai/v1/models').status)"]).text == "200\n"
    fourth = box.api.post(f"{box.box.path}/ai/token", {}).json()["token"]
    assert with_token(box, fourth) == 200
    for body in ({"ttl_seconds": 0}, {"ttl": 5}):
        assert box.api.post(f"{box.box.path}/ai/token", body).status == 400
    twin = box.api.post(f"{box.box.path}/fork", {"count": 1}).json()["sandboxes"][0]["id"]
    assert with_token(box, twin + fourth[20:]) == 401
    box.box.delete()
    assert with_token(box, fourth) == 401


# ---- calls ----------------------------------------------------------------


def test_calls(box, provider):  # noqa: F811
    def calls(query=""):
        return box.api.get(f"{box.box.path}/ai/calls{query}").json()

    assert calls() == {"calls": [], "next": None}
    assert box.chat()[0] == 200 and box.chat(model="gpt-4o-mini-2024-07-18")[0] == 500
    assert code(box.chat(model="nobody-knows")) == (403, "forbidden")  # never sent: no call
    provider.hold = True
    connection, response = open_stream(box)
    response.readline()
    assert provider.begun.wait(10)
    response.close()
    connection.close()
    listed = paddock.until(lambda: len(all_of := calls()["calls"]) == 3 and all_of, "the last is over")
    assert [(call["finish"], call["status"], call["model"], call["estimated"]) for call in listed] == [
        ("client", 200, "gpt-4o-mini", True), ("error", 500, "gpt-4o-mini-2024-07-18", False), ("complete", 200, "gpt-4o-mini", False)]
    last = listed[-1]
    assert (last["provider"], last["endpoint"], last["cost_usd"]) == ("openai", "chat/completions", pytest.approx(ONE))
    assert (last["input_tokens"], last["cache_read_tokens"], last["output_tokens"]) == (60, 40, 50) and last["duration_ms"] >= 0
    # Pages, also after a kill; of this box alone.
    kill_api(box)
    page = calls("?limit=2")
    assert page["calls"] == listed[:2] and page["next"] == listed[1]["id"]
    assert calls(f"?limit=2&before={page['next']}") == {"calls": listed[2:], "next": None}
    assert box.api.get(f"{box.box.path}/ai/calls?limit=0").status == 400
    assert box.api.get(f"{box.api.create().path}/ai/calls").json()["calls"] == []


# ---- their text -----------------------------------------------------------


def text_of(box, number=0):
    """The newest call but `number`, with its text; the list never has any."""
    listed = box.api.get(f"{box.box.path}/ai/calls").json()["calls"]
    assert all("request" not in call and "response" not in call for call in listed)
    one = box.api.get(f"{box.box.path}/ai/calls/{listed[number]['id']}").json()
    assert {key: one[key] for key in listed[number]} == listed[number]
    return one["request"], one["response"]


def test_text_is_kept_for_who_asks(box, provider):  # noqa: F811
    assert box.chat()[0] == 200 and box.about_now()["limits"]["log_bodies"] is False
    assert text_of(box) == (None, None)
    about = set_limits(box.api, box.box.path, log_bodies=True)
    assert (about["limits"]["log_bodies"], about["sources"]["log_bodies"], about["own"]) == (True, "sandbox", {"log_bodies": True})
    said = [{"role": "user", "content": "the key is 0123456789abcdef0123, password=hunter2"}]
    provider.echo = "whole"
    assert box.chat(messages=said)[0] == 200
    request, response = text_of(box)
    assert json.loads(request["text"])["messages"][0]["content"] == "the key is [redacted], password=[redacted]"
    answer = json.loads(response["text"])
    assert answer["usage"]["completion_tokens"] == 50 and "****" in answer["choices"][0]["message"]["content"]
    assert request["truncated"] is False and response["truncated"] is False
    # streams, as the client has them; long ones are cut, and end with a whole word
    provider.echo = None
    assert box.chat(stream=True, messages=[{"role": "user", "content": "wombat " * 5000}])[0] == 200
    request, response = text_of(box)
    assert request["truncated"] and 15000 < len(request["text"].encode()) <= 16384 and request["text"].endswith("wombat ")
    assert response["text"].endswith("data: [DONE]\n\n") and "prompt_tokens" not in response["text"] and not response["truncated"]
    # not in the log, and still there after a kill; no longer than the box
    before = [text_of(box, number) for number in range(3)]
    assert "wombat" not in box.daemon.log() and before[2] == (None, None)
    kill_api(box)
    assert [text_of(box, number) for number in range(3)] == before
    set_limits(box.api, box.box.path, "PATCH", log_bodies=None)
    assert box.chat()[0] == 200 and text_of(box) == (None, None) and text_of(box, 1) == before[0]
    for other in ("0", "x", "99999999999999999999", "1"):
        assert box.api.get(f"{box.box.path}/ai/calls/{other}").status == 404

    def stored():
        with contextlib.closing(sqlite3.connect(f"file:{box.daemon.data_dir}/store/paddock.db?mode=ro", uri=True)) as store:
            return store.execute("SELECT count(*) FROM ai_bodies WHERE box = ?", [box.box.id]).fetchone()[0]

    assert stored() == 2
    box.box.delete()
    paddock.until(lambda: stored() == 0, "it goes with the box")


def test_text_of_others(gateway, tenant):
    """A tenant's word holds for its boxes that said nothing; its no is no. Nobody reads the calls of others."""
    name, client, mine = tenant
    set_limits(gateway.api, f"/v1/tenants/{name}", log_bodies=True)
    about = client.get(f"{mine.path}/ai").json()
    assert (about["limits"]["log_bodies"], about["sources"]["log_bodies"]) == (True, "tenant")
    gateway.token = about["token"]
    assert gateway.chat()[0] == 200
    (call,) = client.get(f"{mine.path}/ai/calls").json()["calls"]
    assert "hello" in client.get(f"{mine.path}/ai/calls/{call['id']}").json()["request"]["text"]
    gateway.new_box()
    assert gateway.api.get(f"{gateway.box.path}/ai/calls/{call['id']}").status == 404
    assert client.get(f"{gateway.box.path}/ai/calls/{call['id']}").status == 404
    assert set_limits(client, mine.path, log_bodies=False)["limits"]["log_bodies"] is False
    set_limits(gateway.api, f"/v1/tenants/{name}", log_bodies=False)
    for limits in ({"log_bodies": True}, {"log_bodies": 1}, {"log_bodies": "yes"}):
        assert client.send_json("PUT", f"{mine.path}/ai", limits).status == 400


def test_text_is_forbidden_by_the_configuration(gateways):  # noqa: F811
    gateway = gateways(box={"log_bodies": True}, max={"log_bodies": False})
    about = gateway.about_now()
    assert (about["limits"]["log_bodies"], about["sources"]["log_bodies"]) == (False, "configuration")
    answer = gateway.api.send_json("PUT", f"{gateway.box.path}/ai", {"log_bodies": True})
    assert answer.status == 400 and "configuration" in answer.json()["error"]["message"]
    assert gateway.chat()[0] == 200 and text_of(gateway) == (None, None)


# ---- minutes --------------------------------------------------------------


@pytest.mark.parametrize("limit, passed", [({"requests_per_minute": 3}, [429, 429]), ({"tokens_per_minute": 400}, [200, 429])])
def test_a_restart_is_no_new_minute(box, provider, limit, passed):  # noqa: F811
    """Kills between calls: no more pass than without them. One call is under way when it happens: its input counts."""
    set_limits(box.api, box.box.path, **limit)
    began = time.monotonic()
    assert box.chat()[0] == 200
    kill_api(box)
    assert box.chat()[0] == 200
    provider.hold = True
    connection, response = open_stream(box)
    assert response.status == 200 and provider.begun.wait(10)
    kill_api(box)
    connection.close()
    provider.hold = False
    provider.go.set()
    status = [box.chat()[0] for _ in passed]
    assert status == passed or time.monotonic() - began > 55


# ---- the command line -----------------------------------------------------


def test_command_line(gateway, tenant):
    name, _, _ = tenant
    gateway.new_box()

    def cli(*arguments, status=0):
        done = subprocess.run([paddock.BIN / "paddock", "ai", *arguments], capture_output=True, text=True, timeout=60,
                              env=paddock.clean_environment(PADDOCK_URL=gateway.daemon.url,
                                                            PADDOCK_KEY_FILE=gateway.daemon.data_dir / "admin.key"))
        assert done.returncode == status, done
        return done.stdout

    cli("set", gateway.box.id, "--day", "0.5", "--requests-per-minute", "7", "--model", "gpt-4o-*", "--model", "claude-*")
    cli("set", gateway.box.id, "--parallel", "2")
    about = json.loads(cli("show", gateway.box.id))
    assert about["own"] == {"day": 0.5, "requests_per_minute": 7, "parallel": 2, "models": ["gpt-4o-*", "claude-*"]}
    assert gateway.chat()[0] == 200
    assert "chat/completions" in cli("calls", gateway.box.id)
    cli("set", gateway.box.id, "--log-bodies", "yes")
    assert gateway.chat()[0] == 200
    newest = gateway.api.get(f"{gateway.box.path}/ai/calls").json()["calls"][0]["id"]
    assert "hello" in json.loads(cli("calls", gateway.box.id, str(newest)))["request"]["text"]
    cli("set", gateway.box.id, "--log-bodies", "maybe", status=1)
    token = json.loads(cli("rotate", gateway.box.id))["token"]
    assert token != gateway.token and with_token(gateway, token) == 200
    cli("reset", gateway.box.id)
    assert gateway.about_now()["own"] == {}
    cli("set", "--tenant", name, "--month", "3")
    assert json.loads(cli("show", "--tenant", name))["own"] == {"month": 3}
    cli("set", gateway.box.id, "--day", "much", status=1)
