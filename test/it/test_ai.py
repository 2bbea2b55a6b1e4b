"""The AI gateway: the providers' own clients through it, keys that nobody sees, limits, budgets, usage.

The provider is a local server over TLS with an authority of its own (provider.py).
"""

import http.client
import json
import os
import re
import select
import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import npm
import paddock
from canary import canary, forms, in_memory, nowhere
from provider import CHUNKS, KEYS, VECTOR, Provider
from test_secrets import kill_vault, vault_pid

HERE = Path(__file__).resolve().parent / "ai"
TEXT = "".join(CHUNKS)
MINI = {"input": 0.15, "cache_read": 0.075, "output": 0.60}  # dollars for a million, of etc/prices.json
INSIDE = 15004  # the proxy port of every box


def chat(**more):
    return {"model": "gpt-4o-mini", "messages": [{"role": "user", "content": "hello"}], "max_tokens": 50, **more}


@pytest.fixture(scope="module")
def modules():
    return npm.install(HERE, "ai")


@pytest.fixture(scope="module")
def provider(workdir, request):
    place = workdir / f"provider-{request.module.__name__}"
    place.mkdir()
    it = Provider(place)
    yield it
    it.stop()


class Gateway:
    """A daemon with the gateway, and a box that uses it."""

    def __init__(self, daemon, provider):
        self.daemon, self.provider = daemon, provider
        self.api = daemon.client()
        for name, key in KEYS.items():
            assert self.api.send_json("PUT", f"/v1/secrets/{name}-key", {"value": key}).status in (200, 201)
        self.new_box()

    def new_box(self):
        self.box = self.api.create()
        self.about = self.api.get(f"{self.box.path}/ai").json()
        self.token = self.about["token"]

    def send(self, path, body=None, method=None, **headers):
        """A request with the box's token: (status, headers, body)."""
        connection = http.client.HTTPConnection(self.daemon.host, self.daemon.port, timeout=30)
        headers = {"authorization": f"Bearer {self.token}", **{k.replace("_", "-"): v for k, v in headers.items()}}
        text = json.dumps(body) if isinstance(body, dict) else body
        connection.request(method or ("GET" if body is None else "POST"), path, text, {k: v for k, v in headers.items() if v})
        response = connection.getresponse()
        text = response.read()
        connection.close()
        return response.status, {k.lower(): v for k, v in response.getheaders()}, text

    def about_now(self):
        return self.api.get(f"{self.box.path}/ai").json()

    def chat(self, **more):
        return self.send("/api/openai/v1/chat/completions", chat(**more))

    def sdk(self, modules, call, **environment):
        done = subprocess.run(["node", str(HERE / "run.js"), call], capture_output=True, text=True, timeout=60,
                              env={**os.environ, "AI_URL": f"http://{self.daemon.host}:{self.daemon.port}", "AI_TOKEN": self.token,
                                   "AI_MODULES": str(modules), **environment})
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def usage(self, **query):
        query.setdefault("box", self.box.id)
        return self.api.get("/v1/usage?" + "&".join(f"{k}={v}" for k, v in query.items())).json()


@pytest.fixture(scope="module")
def gateways(daemon_factory, provider):
    """Starts daemons with the gateway; all are finished strictly."""
    made = []

    def make(**ai):
        daemon = daemon_factory("ai")
        config = daemon.base / "paddock.yaml"
        providers = {name: {"url": provider.url, "secret": f"{name}-key", **ai.pop(name, {})} for name in KEYS}
        config.write_text(json.dumps({"ai": {"providers": providers, "ca_file": str(provider.authority), **ai}}))
        daemon.arguments += ["--config", str(config)]
        made.append(daemon.start())
        return Gateway(daemon, provider)

    yield make
    for daemon in made:
        daemon.finish()


@pytest.fixture(scope="module")
def gateway(gateways):
    return gateways(openai={"models": ["gpt-4o-*", "text-embedding-3-*"]})


@pytest.fixture(autouse=True)
def fresh(provider):
    provider.take()
    provider.hold, provider.echo = False, None
    provider.go.clear()
    provider.begun.clear()
    provider.hung_up.clear()


# ---- the providers' own clients -------------------------------------------


@pytest.mark.parametrize("call, value, tokens", [
    ("chat", TEXT, (60, 40, 0, 50)),
    ("chat_stream", {"text": TEXT, "chunks": len(CHUNKS)}, (60, 40, 0, 50)),
    ("responses", TEXT, (30, 10, 0, 20)),
    ("responses_stream", {"text": TEXT, "chunks": len(CHUNKS) + 1}, (30, 10, 0, 20)),
    ("embeddings", len(VECTOR), (8, 0, 0, 0)),
    ("models", ["gpt-4o-mini"], (0, 0, 0, 0)),
    ("messages", TEXT, (11, 3, 4, 22)),
    ("messages_new", TEXT, (11, 3, 4, 22)),
    ("messages_stream", {"text": TEXT, "chunks": len(CHUNKS) + 5}, (11, 3, 0, 22)),
])
def test_clients(gateway, modules, provider, call, value, tokens):
    before = gateway.usage()["total"]
    assert gateway.sdk(modules, call) == {"value": value}
    seen = provider.take()
    assert len(seen) == 1
    after = gateway.usage()["total"]
    assert after["requests"] - before["requests"] == 1 and after["estimated"] == before["estimated"]
    names = ("input_tokens", "cache_read_tokens", "cache_write_tokens", "output_tokens")
    assert tuple(after[name] - before[name] for name in names) == tokens
    # The token stays here, the key goes there; nothing is packed.
    assert gateway.token not in json.dumps(seen)
    assert seen[0]["headers"]["accept-encoding"] == "identity"


def test_usage_chunk_for_who_asks(gateway, modules):
    assert gateway.sdk(modules, "chat_usage")["value"]["completion_tokens"] == 50


def test_clients_understand_refusals(gateway, modules, provider):
    """In their own words, and tried once."""
    began = time.monotonic()
    got = gateway.sdk(modules, "refused", AI_MODEL="gpt-4")
    assert (got["error"], got["status"]) == ("PermissionDeniedError", 403) and "gpt-4 is not allowed" in got["message"]
    got = gateway.sdk(modules, "refused_claude", AI_MODEL="claude-unheard-of")
    assert (got["error"], got["status"]) == ("PermissionDeniedError", 403) and "price_unknown" in got["message"]
    assert got["body"]["type"] == "error" and got["body"]["error"]["type"] == "permission_error"
    assert provider.take() == [] and time.monotonic() - began < 20


# ---- from inside ----------------------------------------------------------

INSIDE_CLIENT = """
import http.client, json, sys
c = http.client.HTTPConnection("127.0.0.1", %d, timeout=20)
for path in sys.argv[1:]:
    if path.endswith("completions"):
        c.request("POST", path, json.dumps({"model": "gpt-4o-mini", "messages": [], "max_tokens": 5}), {"Authorization": "Bearer whatever"})
    else:
        c.request("GET", path)
    r = c.getresponse()
    print(r.status, json.dumps(r.read().decode()))
""" % INSIDE


def test_box_needs_no_rule_and_no_token(gateway, provider):
    before = gateway.usage()["total"]["requests"]
    done = gateway.box.exec(["python3", "-c", INSIDE_CLIENT, "/api/openai/v1/chat/completions", "/api/openai/v1/models"])
    first, second = done.text.splitlines()
    assert first.startswith("200") and TEXT in first and second.startswith("200")
    assert gateway.usage()["total"]["requests"] == before + 2
    assert provider.take()[0]["headers"]["authorization"] == f"Bearer {KEYS['openai']}"
    # The way out is closed as before.
    port = provider.url.rsplit(":", 1)[1]
    assert gateway.box.exec(["bash", "-c", f"exec 3<>/dev/tcp/11.1.1.1/{port} && head -c1 <&3"]).exit_code != 0


BYTE_BY_BYTE = """
import socket
def send(pieces):
    c = socket.create_connection(("127.0.0.1", %d), 20)
    c.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for piece in pieces:
        c.sendall(piece)
    return c
def answer(c):
    data = b""
    try:
        while (piece := c.recv(65536)):
            data += piece
    except ConnectionResetError:
        pass
    return data.split(b" ")[1].decode() if data else "nothing"
head = b"GET /api/openai/v1/models HTTP/1.1\\r\\nHost: x\\r\\nConnection: close\\r\\n\\r\\n"
other = b"GET http://a.test/ HTTP/1.1\\r\\n\\r\\n"
def slowly(text):
    for i in range(len(text)):
        yield text[i:i + 1]
        if i in (0, 4, 8):
            answer(send([other]))  # the gate does one thing after the other: it has seen what came before
print(answer(send(slowly(head))))
print(answer(send(slowly(other))))
cut = send([b"GET ", b"/ap"])
cut.shutdown(socket.SHUT_WR)
print(answer(cut))
""" % INSIDE


def test_a_request_in_small_pieces(gateway):
    """As long as it may become one for the gateway, what comes is left for it; an end before that is an end."""
    assert gateway.box.python(BYTE_BY_BYTE).text.split() == ["200", "400", "nothing"]


def test_box_reaches_nothing_else_that_way(gateway):
    key = gateway.daemon.key
    script = INSIDE_CLIENT.replace('c.request("GET", path)', f'c.request("GET", path, headers={{"Authorization": "Bearer {key}"}})')
    done = gateway.box.exec(["python3", "-c", script, "/api/openai/v1/models", "/v1/sandboxes", "/health"])
    assert [line.split()[0] for line in done.text.splitlines()] == ["200", "404", "404"]


# ---- who, what, where -----------------------------------------------------


def test_who_may(gateway, provider):
    path = "/api/openai/v1/models"
    assert gateway.send(path)[0] == 200
    assert gateway.send(path, authorization="", x_api_key=gateway.token)[0] == 200
    other = gateway.api.create()
    forged = other.id + gateway.token[len(other.id):]
    for token in ("", "Bearer nonsense", f"Bearer {gateway.daemon.key}", f"Bearer {forged}"):
        status, _, body = gateway.send(path, authorization=token)
        assert status == 401 and json.loads(body)["error"]["code"] == "invalid_api_key"
    # Assegai's clients read a text.
    status, _, body = gateway.send(path, authorization="", x_assegai_agent_token="x")
    assert status == 401 and isinstance(json.loads(body)["error"], str)
    assert gateway.send(path, authorization="", x_assegai_agent_token=gateway.token)[0] == 200
    token = gateway.api.get(f"{other.path}/ai").json()["token"]
    assert gateway.api.delete(other.path).status == 204
    assert gateway.send(path, authorization=f"Bearer {token}")[0] == 401
    assert len(provider.take()) == 3


@pytest.mark.parametrize("method, path", [
    ("GET", "/api/openai/v1/files"), ("POST", "/api/openai/v1/images/generations"), ("DELETE", "/api/openai/v1/models/x"),
    ("GET", "/api/openai/v1/models/../files"), ("GET", "/api/openai/v1/models/%2e%2e/files"), ("GET", "/api/openai//v1/models"),
    ("POST", "/api/anthropic/v1/messages/batches"), ("POST", "/api/anthropic/v1/chat/completions"),
])
def test_only_what_is_metered(gateway, provider, method, path):
    status, headers, _ = gateway.send(path, "{}" if method == "POST" else None, method=method)
    assert status in (400, 403) and provider.take() == []
    if status == 403:
        assert headers["x-should-retry"] == "false"


@pytest.mark.parametrize("body, status", [
    ('{"model":"gpt-4o-mini","model":"gpt-4"}', 400), ('{"model":"gpt-4"}', 403), ("{", 400), ('{"messages":[]}', 400),
    ('{"model":"gpt-4o-mini","background":true}', 403),
])
def test_bodies(gateway, provider, body, status):
    assert gateway.send("/api/openai/v1/responses", body)[0] == status
    assert provider.take() == []


def test_bodies_are_bounded(gateway, provider):
    """One that is too large, and many that never end: the daemon does not keep all of it."""
    assert gateway.send("/api/openai/v1/responses", " " * (33 << 20))[0] in (413, 429)
    pieces, open_ones = b"x" * (1 << 20), []
    head = (f"POST /api/openai/v1/responses HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {gateway.token}\r\n"
            f"content-length: {30 << 20}\r\n\r\n").encode()
    for _ in range(5):
        open_ones.append(gateway.daemon.raw())
        open_ones[-1].sendall(head)
        try:
            for _ in range(20):
                open_ones[-1].sendall(pieces)
        except OSError:
            pass  # it was answered
    answered = select.select(open_ones, [], [], 20)[0]
    assert answered and len(answered) < len(open_ones)
    assert all(sock.recv(4096).startswith(b"HTTP/1.1 429 ") for sock in answered)
    for sock in open_ones:
        sock.close()
    assert provider.take() == []
    paddock.until(lambda: gateway.send("/api/openai/v1/models")[0] == 200, "others are served again")


def test_headers(gateway, provider):
    status, headers, _ = gateway.send("/api/openai/v1/chat/completions", chat(), cookie="a=b", openai_organization="mine",
                                      x_assegai_agent_id="x", x_stainless_lang="js", user_agent="me")
    assert status == 200
    sent = provider.take()[0]["headers"]
    assert {"cookie", "openai-organization", "x-assegai-agent-id", "x-api-key"} & set(sent) == set()
    assert sent["x-stainless-lang"] == "js" and sent["user-agent"] == "me"
    assert {"set-cookie", "openai-organization"} & set(headers) == set() and headers["x-request-id"]
    gateway.send("/api/anthropic/v1/messages", {"model": "claude-3-haiku-20240307", "max_tokens": 5, "messages": []},
                 anthropic_beta="prompt-caching-2024-07-31,context-1m-2025-08-07", anthropic_version="2023-06-01")
    sent = provider.take()[0]["headers"]
    assert sent["anthropic-beta"] == "prompt-caching-2024-07-31" and sent["anthropic-version"] == "2023-06-01"
    assert sent["x-api-key"] == KEYS["anthropic"] and "authorization" not in sent


# ---- keys -----------------------------------------------------------------


def test_key_of_a_box_comes_first_and_none_is_told(gateway, provider):
    gateway.new_box()
    secret = "sk-wrong-0d9f8e7a"
    assert gateway.api.send_json("PUT", f"{gateway.box.path}/secrets/openai-key", {"value": secret}).status in (200, 201)
    status, _, body = gateway.chat()
    assert status == 502 and secret not in body.decode() and "does not accept the key" in body.decode()
    assert provider.take()[0]["headers"]["authorization"] == f"Bearer {secret}"
    gateway.new_box()
    assert gateway.chat()[0] == 200
    log = gateway.daemon.log()
    assert all(value not in log for value in (secret, *KEYS.values(), gateway.token))


def test_key_is_nowhere(gateway, provider):
    """Calls from outside and inside: while they are under way, when they wait for paddock-ai and after them."""
    key = canary()
    provider.accepts.add(key)
    gateway.new_box()
    daemon, box, needles = gateway.daemon, gateway.box, forms(key)
    assert gateway.api.send_json("PUT", f"{box.path}/secrets/openai-key", {"value": key}).status in (200, 201)
    assert gateway.chat()[0] == 200
    provider.hold = True
    connection, response = open_stream(gateway)
    response.readline()
    assert provider.begun.wait(10) and "paddock-ai" in daemon.programs().values()
    assert in_memory(daemon, needles, box) == {"paddock-ai"}, "who masks it in the answer"
    provider.go.set()
    assert response.read()
    connection.close()
    paddock.until(lambda: in_memory(daemon, needles, box) == set(), "the call is over: nobody needs it any more")
    provider.hold = False
    done = box.exec(["python3", "-c", INSIDE_CLIENT, "/api/openai/v1/chat/completions"])
    assert done.text.startswith("200")
    assert {each["headers"]["authorization"] for each in provider.take()} == {f"Bearer {key}"}
    # lent, and not fetched yet: the api has a ticket and no key
    (pid,) = carriers(gateway)
    paddock.kill(pid, signal.SIGSTOP)
    with ThreadPoolExecutor(1) as pool:
        call = pool.submit(gateway.chat)
        paddock.until(lambda: gateway.about_now()["spent"]["parallel"] == 1, "it is under way")
        assert in_memory(daemon, needles, box) == set()
        paddock.kill(pid, signal.SIGCONT)
        assert call.result(30)[0] == 200
    # one that the provider does not take, and says so
    provider.accepts.remove(key)
    assert gateway.chat()[0] == 502
    assert "paddock-api" in in_memory(daemon, {box.id.encode()}), "the scanner finds nothing"
    nowhere(daemon, key, box)
    gateway.new_box()


@pytest.mark.parametrize("how", ["whole", "bytes"])
@pytest.mark.parametrize("name", ["openai", "anthropic"])
def test_key_is_masked_in_answers(gateway, provider, name, how):
    """A provider that quotes it, in a header, in JSON, in a stream and cut wherever it can be."""
    def send(**more):
        if name == "openai":
            return gateway.chat(**more)
        return gateway.send("/api/anthropic/v1/messages", chat(**{**more, "model": "claude-3-haiku-20240307"}))

    provider.echo = how
    key, before = KEYS[name], gateway.usage()["total"]
    stars = "*" * len(key)
    for stream in (False, True):
        status, headers, body = send(stream=stream)
        body = body.decode()
        assert (status, headers["x-quoted"]) == (200, stars)
        assert key not in body and body.count(stars) == 1, body
        assert all(json.loads(line[6:]) for line in body.splitlines() if line.startswith("data: {"))
        assert key in str(provider.take()[0]["headers"]), "it was the key that was quoted"
    after = gateway.usage()["total"]
    assert after["requests"] - before["requests"] == 2 and after["estimated"] == before["estimated"]


def test_key_is_missing(gateways):
    gateway = gateways(openai={"secret": "nowhere"})
    status, headers, body = gateway.chat()
    assert status == 500 and "OpenAI API key not configured" in body.decode() and headers["x-should-retry"] == "false"


def test_provider_must_prove_itself(gateways, workdir, provider):
    """With another authority the same server is nobody."""
    gateway = gateways(ca_file="/etc/ssl/certs/ca-certificates.crt")
    status, _, body = gateway.chat()
    assert status == 502 and "certificate" in body.decode() and provider.take() == []
    assert gateway.usage()["total"]["requests"] == 0


def carriers(gateway):
    return [pid for pid in paddock.descendants(gateway.daemon.keeper_pid) if paddock.comm(pid) == "paddock-ai"]


def test_carrier_can_do_nothing_else(gateway):
    """paddock-ai: nobody, without capabilities, with its filter; and it is replaced when it dies."""
    assert gateway.chat()[0] == 200
    (pid,) = carriers(gateway)
    status = paddock.proc_status(pid)
    assert set(status["Uid"].split()) == set(status["Gid"].split()) == {"59004"} and not status["Groups"]
    assert {status[name] for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")} == {"0" * 16}
    assert status["Seccomp"] == "2" and status["NoNewPrivs"] == "1"
    assert re.search(r"Max core file size\s+0\s+0", paddock.read(f"/proc/{pid}/limits"))
    assert os.stat(f"/proc/{pid}/environ").st_uid == 0, "it can be dumped"
    # the api's channel, the keeper's, the vault's; nothing is listened on
    assert all(os.readlink(f"/proc/{pid}/fd/{fd}").startswith(("socket:", "anon_inode:", "pipe:", "/dev/null", str(gateway.daemon.log_file)))
               for fd in os.listdir(f"/proc/{pid}/fd"))
    paddock.kill(pid, signal.SIGSEGV)
    assert paddock.wait_gone(pid)
    paddock.until(lambda: gateway.chat()[0] == 200, "another paddock-ai")
    assert pid not in carriers(gateway)


def test_carrier_dies_in_mid_flight(gateway, provider):
    """The client sees a broken answer, and what went by is billed."""
    gateway.new_box()
    provider.hold = True
    connection, response = open_stream(gateway)
    response.readline()
    assert provider.begun.wait(10)
    paddock.kill(carriers(gateway)[0])
    with pytest.raises((http.client.IncompleteRead, ConnectionError)):
        response.read()
    connection.close()
    total = paddock.until(lambda: (t := gateway.usage()["total"])["requests"] and t, "the call was settled")
    assert total["estimated"] == 1 and total["cost_usd"] > 0


@pytest.mark.parametrize("who", ["vault", "carrier"])
def test_who_has_the_key_dies_before_it_is_sent(gateway, provider, who):
    """The call waits for one of the two when that dies: a clear error, nothing sent, nothing billed, and it works again."""
    gateway.new_box()
    paddock.until(lambda: gateway.send("/api/openai/v1/models")[0] == 200, "there is a paddock-ai again")
    provider.take()
    pid = vault_pid(gateway.daemon) if who == "vault" else carriers(gateway)[0]
    paddock.kill(pid, signal.SIGSTOP)
    with ThreadPoolExecutor(1) as pool:
        call = pool.submit(gateway.chat)
        paddock.until(lambda: gateway.about_now()["spent"]["parallel"] == 1, "it is under way")
        if who == "vault":
            kill_vault(gateway.daemon)
        else:
            paddock.kill(pid)
            assert paddock.wait_gone(pid)
        status, headers, body = call.result(30)
    error = json.loads(body)["error"]
    assert status in (502, 503) and "try again" in error["message"] and headers["retry-after"] == "1", body
    assert provider.take() == []
    spent = gateway.about_now()["spent"]
    assert spent["parallel"] == 0 and spent["reserved"] == 0 and spent["day"] == 0
    assert gateway.usage(box=gateway.box.id)["total"]["cost_usd"] == 0
    paddock.until(lambda: gateway.chat()[0] == 200, "it works again")


def test_rotation_while_calls_are_under_way(gateway):
    """A new master key of the vault: no call fails."""
    with ThreadPoolExecutor(3) as pool:
        calls = [pool.submit(gateway.send, "/api/openai/v1/models") for _ in range(12)]
        for _ in range(3):
            assert gateway.api.post("/v1/vault/rotate", {}).status == 200
        calls += [pool.submit(gateway.send, "/api/openai/v1/models") for _ in range(3)]
        assert [call.result(30)[0] for call in calls] == [200] * 15


# ---- streams --------------------------------------------------------------


def open_stream(gateway, **more):
    connection = http.client.HTTPConnection(gateway.daemon.host, gateway.daemon.port, timeout=20)
    connection.request("POST", "/api/openai/v1/chat/completions", json.dumps(chat(stream=True, **more)),
                       {"authorization": f"Bearer {gateway.token}"})
    return connection, connection.getresponse()


def test_stream_is_not_gathered(gateway, provider):
    """The first events are here while the provider still thinks about the rest."""
    provider.hold = True
    connection, response = open_stream(gateway)
    line = response.readline()
    assert CHUNKS[0] in line.decode() and not provider.go.is_set()
    assert gateway.api.get(f"{gateway.box.path}/ai").json()["spent"]["parallel"] == 1
    provider.go.set()
    rest = response.read().decode()
    assert CHUNKS[2] in rest and "[DONE]" in rest and "prompt_tokens" not in rest
    connection.close()


def test_client_goes_away(gateway, provider):
    """It is billed by what went by, and the provider is told."""
    gateway.new_box()
    provider.hold = True
    connection, response = open_stream(gateway)
    response.readline()
    assert provider.begun.wait(10)
    response.close()
    connection.close()
    assert provider.hung_up.wait(10)
    total = paddock.until(lambda: (t := gateway.usage()["total"])["requests"] and t, "the call was settled")
    assert total["estimated"] == 1 and total["output_tokens"] >= 1 and total["cost_usd"] > 0
    spent = gateway.api.get(f"{gateway.box.path}/ai").json()["spent"]
    assert spent["parallel"] == 0 and spent["reserved"] == 0 and spent["day"] == total["cost_usd"]


def test_errors_of_the_provider_cost_nothing(gateway):
    gateway.new_box()
    status, _, body = gateway.chat(model="gpt-4o-mini-2024-07-18")
    assert status == 500 and json.loads(body)["error"]["message"] == "out of order"
    total = gateway.usage()["total"]
    assert total["requests"] == 1 and total["cost_usd"] == 0


# ---- limits, budgets, usage -----------------------------------------------


def cost(input_tokens, cached, output):
    return (input_tokens * MINI["input"] + cached * MINI["cache_read"] + output * MINI["output"]) / 1e6


def test_usage_by_what_one_likes(gateway):
    gateway.new_box()
    assert gateway.chat()[0] == gateway.chat()[0] == 200
    assert gateway.send("/api/anthropic/v1/messages", {"model": "claude-3-haiku-20240307", "max_tokens": 5, "messages": []})[0] == 200
    rows = gateway.usage(by="model,provider")["usage"]
    assert {(row["provider"], row["model"], row["requests"]) for row in rows} == {("openai", "gpt-4o-mini", 2), ("anthropic", "claude-3-haiku-20240307", 1)}
    mini = next(row for row in rows if row["provider"] == "openai")
    assert mini["cost_usd"] == pytest.approx(2 * cost(60, 40, 50))
    assert gateway.usage(by="tenant")["usage"][0]["tenant"] == "default"
    assert gateway.usage(by="day", to="2020-01-01")["usage"] == []
    assert gateway.api.get("/v1/usage?by=colour").status == 400
    counters = dict(line.rsplit(" ", 1) for line in gateway.api.get("/metrics").body.decode().splitlines() if line[0] != "#")
    assert float(counters["paddock_ai_cost_dollars_total"]) >= mini["cost_usd"] and int(counters["paddock_ai_calls_total"]) >= 3
    # Another tenant sees nothing of it.
    key = gateway.api.post("/v1/keys", {"tenant": gateway.api.post("/v1/tenants", {"name": "other"}).json()["name"]}).json()["key"]
    assert gateway.daemon.client(key).get("/v1/usage").json()["usage"] == []


def test_limits_and_budgets(gateways, provider):
    """Reserved before, settled after, kept over restarts, and the same for parallel calls."""
    one = cost(60, 40, 50)
    gateway = gateways(box={"parallel": 1, "day": 4 * one}, tenant={"requests_per_minute": 5})
    provider.hold = True
    connection, response = open_stream(gateway)
    assert provider.begun.wait(10)
    status, headers, body = gateway.chat()
    assert status == 429 and int(headers["retry-after"]) >= 1 and "Rate limit" in body.decode()
    provider.hold = False
    provider.go.set()
    response.read()
    connection.close()
    # What was reserved (50 tokens and the body) is given back, what was used is spent.
    paddock.until(lambda: gateway.about_now()["spent"]["reserved"] == 0, "the call was settled")
    assert gateway.about_now()["spent"]["day"] == pytest.approx(one)
    status, headers, body = gateway.chat(max_tokens=5000)
    assert status == 403 and headers["x-should-retry"] == "false" and json.loads(body)["error"]["code"] == "budget_exceeded"
    assert gateway.chat()[0] == 200
    gateway.daemon.stop()
    gateway.daemon.start()
    gateway.api = gateway.daemon.client()
    assert gateway.about_now()["spent"]["day"] == pytest.approx(2 * one)
    assert gateway.chat()[0] == gateway.chat()[0] == 200
    assert json.loads(gateway.chat()[2])["error"]["code"] == "budget_exceeded"
    provider.take()
    # Another box of the tenant has a budget of its own, but not another minute.
    gateway.new_box()
    statuses = [gateway.chat()[0] for _ in range(6)]
    assert 429 in statuses and statuses.index(429) == len(provider.take())


def test_a_crash_does_not_make_it_free(gateways, provider):
    gateway = gateways(box={"day": 1})
    provider.hold = True
    connection, response = open_stream(gateway)
    assert provider.begun.wait(10)
    reserved = gateway.about_now()["spent"]["reserved"]
    assert reserved > 0
    gateway.daemon.kill_api()
    provider.go.set()
    connection.close()
    gateway.api = gateway.daemon.client()
    assert gateway.about_now()["spent"]["day"] == pytest.approx(reserved)
    assert gateway.usage()["total"]["estimated"] == 1
