"""What agents reach through the daemon: nodes that lie, hang or lead elsewhere, exact rate limits, models, and the examples with both."""

import contextlib
import http.server
import json
import select
import socket
import subprocess
import threading

import pytest

import paddock
from agents_kit import CHAIN, Agent, anvil, api, cli, install, modules, pack  # noqa: F401
from provider import CHUNKS, KEYS, Provider

FILES = ("index.js", "sdk.js", "run.js")
MEAN, INWARD, CLOUD, NAMED, SECOND, OWN = "eip155:666", "eip155:667", "eip155:668", "eip155:669", "eip155:670", "eip155:671"
FRAMED = {"jsonrpc": "2.0", "id": 1, "result": "0x1"}


DRIP, STOPS = object(), object()
LONG = b'{"jsonrpc": "2.0", "id": 1, "result": "' + b"x" * (15 << 20) + b'"}'


class Mean:
    """A node that answers as it is told: (status, headers, body), None: never, DRIP: a byte now and then, or STOPS: LONG, whose end comes once
    `on` is set; or a dictionary of these, by the first parameter."""

    def __init__(self):
        self.answer, self.seen, self.go, self.on, self.cut = None, [], threading.Event(), threading.Event(), []
        node = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_GET(self):
                node.seen.append((self.command, self.path))
                self.send_error(500)

            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"]))
                node.seen.append((self.command, self.path, json.loads(body), dict(self.headers)))
                answer = node.answer[json.loads(body)["params"][0]] if isinstance(node.answer, dict) else node.answer
                if answer is None:
                    node.go.wait(60)
                    self.close_connection = True
                    return
                if answer is DRIP:
                    self.drip()
                    return
                if answer is STOPS:
                    self.stop_within()
                    return
                status, headers, data = answer
                data = data if isinstance(data, bytes) else json.dumps(data).encode()
                self.send_response(status)
                for name, value in {"Content-Length": str(len(data)), **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(data)
                self.close_connection = "Content-Length" in headers

            def drip(self):
                self.send_response(200)
                self.send_header("Content-Length", "100000")
                self.end_headers()
                self.close_connection = True
                with contextlib.suppress(OSError):
                    while not node.go.wait(0.2):
                        self.wfile.write(b" ")

            def stop_within(self):
                self.send_response(200)
                self.send_header("Content-Length", str(len(LONG)))
                self.end_headers()
                self.close_connection = True
                try:
                    self.wfile.write(LONG[:-2])
                    while not node.on.wait(0.1):
                        if select.select([self.connection], [], [], 0)[0]:
                            raise ConnectionError
                    self.wfile.write(LONG[-2:])
                except OSError:
                    node.cut.append(self.path)

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def holds(self, answer):
        self.answer, self.seen, self.cut = answer, [], []
        self.on.clear()

    def stop(self):
        self.go.set()
        self.on.set()
        self.server.shutdown()
        self.server.server_close()


def local_names():
    """Names of /etc/hosts that lead to this machine, but for localhost."""
    for line in open("/etc/hosts"):
        words = line.split("#")[0].split()
        if words and words[0] in ("127.0.0.1", "127.0.1.1", "::1"):
            yield from (name for name in words[1:] if name != "localhost")


def own_address():
    """Of this machine, as others see it; the loopback's where it has no other."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        try:
            s.connect(("203.0.113.1", 9))
        except OSError:
            return "127.0.0.1"
        return s.getsockname()[0]


@pytest.fixture(scope="module")
def mean():
    it = Mean()
    yield it
    it.stop()


@pytest.fixture(scope="module")
def provider(workdir):
    place = workdir / "provider-agents"
    place.mkdir()
    it = Provider(place)
    yield it
    it.stop()


@pytest.fixture(scope="module")
def daemon(daemon_factory, workdir, anvil, mean, provider):
    config = workdir / "chain.yaml"
    name = next(local_names(), "localhost.invalid")
    config.write_text(json.dumps({
        "ai": {"providers": {each: {"url": provider.url, "secret": f"{each}-key"} for each in KEYS}, "ca_file": str(provider.authority)},
        "agents": {"chains": {CHAIN: {"rpc": [f"http://127.0.0.1:{anvil}/"]}, MEAN: {"rpc": [f"http://127.0.0.1:{mean.port}/v2/0123456789abcdef0123"]},
                              INWARD: {"rpc": [f"http://{name}:{mean.port}/"]}, CLOUD: {"rpc": ["http://169.254.169.254/latest/meta-data"]},
                              NAMED: {"rpc": [f"http://localhost:{mean.port}/"]},
                              OWN: {"rpc": [f"http://{own_address()}:9/"]}, SECOND: {"rpc": [f"http://127.0.0.1:{mean.port}/v2/first", f"http://127.0.0.1:{anvil}/"]}}}}))
    it = daemon_factory("chain", arguments=["--config", str(config)]).start()
    for each, key in KEYS.items():
        assert it.client().send_json("PUT", f"/v1/secrets/{each}-key", {"value": key}).status in (200, 201)
    yield it
    it.finish()


def started(install, name, **permissions):
    it = install(pack(*FILES), name=name, permissions=permissions)
    it.wait("stopped")
    it.do("start")
    it.until_logged("hello by the API")
    return it


@pytest.fixture(scope="module")
def agent(install):
    """All of these tests together ask less than thirty times."""
    return started(install, "reads", chains=[CHAIN, MEAN, INWARD, CLOUD, NAMED, OWN], apis=["openai"])


# ---- nodes

LIES = {
    "elsewhere": (302, {"Location": "http://127.0.0.1:1/"}, FRAMED),
    "elsewhere for good": (308, {"Location": "/other"}, b""),
    "no JSON": (200, {}, b"<html>"),
    "nothing": (200, {}, b""),
    "another id": (200, {}, {**FRAMED, "id": 2}),
    "no id": (200, {}, {"jsonrpc": "2.0", "result": "0x1"}),
    "a list": (200, {}, [FRAMED]),
    "both": (200, {}, {**FRAMED, "error": {"code": 1, "message": "x"}}),
    "neither": (200, {}, {"jsonrpc": "2.0", "id": 1}),
    "a key twice": (200, {}, b'{"jsonrpc": "2.0", "id": 1, "result": "0x1", "result": "0x2"}'),
    "more than it says": (200, {"Content-Length": "5"}, FRAMED),
    "less than it says": (200, {"Content-Length": "5000"}, FRAMED),
    "a long head": (200, {"X-Long": "x" * 60000}, FRAMED),
    "out of order": (503, {}, FRAMED),
    "too often": (429, {"Retry-After": "1"}, FRAMED),
}


def ask_all(agent, mean, answers):
    mean.answer = answers
    return agent.run(f"""
      const seen = {{}};
      for (const what of {json.dumps(list(answers))}) seen[what] = await attempt(sdk.queryChain("{MEAN}", "eth_getCode", [what]));
      return seen""")


def test_a_node_that_lies_is_not_believed(agent, mean):
    seen = ask_all(agent, mean, LIES)
    assert {what: got for what, got in seen.items() if got.get("status") not in (400, 500)} == {}
    assert all("0123456789abcdef" not in json.dumps(got) for got in seen.values())
    assert all(path.startswith("/v2/") and method == "POST" for method, path, *_ in mean.seen), "a redirect was followed"
    mean.answer = (200, {}, FRAMED)
    assert agent.run(f'return await sdk.getBlockNumber("{MEAN}")') == "0x1"


def error(**more):
    return 200, {}, {"jsonrpc": "2.0", "id": 1, "error": {"message": "no", "code": -32000, **more}}


# No result can be read from them, and what can be read of an error is the node's and nobody else's: 400, not our own 403, 501 and 429.
HOSTILE = {
    "deep": ((200, {}, b'{"jsonrpc": "2.0", "id": 1, "result": ' + b"[" * 500_000), 500),
    "deep and closed": ((200, {}, b'{"jsonrpc": "2.0", "id": 1, "result": ' + b"[" * 5000 + b"]" * 5000 + b"}"), 500),
    "huge": ((200, {}, b'{"jsonrpc": "2.0", "id": 1, "result": "' + b"x" * (17 << 20) + b'"}'), 500),
    "a thousand times its size": ((200, {}, b'{"jsonrpc": "2.0", "id": 1, "result": [' + b"0," * (7 << 20) + b"0]}"), 500),
    "an id that is a text": ((200, {}, {**FRAMED, "id": "1"}), 500),
    "an id that is no whole number": ((200, {}, {**FRAMED, "id": 1.5}), 500),
    "an id beyond 64 bits": ((200, {}, b'{"jsonrpc": "2.0", "id": 18446744073709551617, "result": "0x1"}'), 500),
    "no UTF-8": ((200, {}, b'{"jsonrpc": "2.0", "id": 1, "result": "\xff"}'), 500),
    "a surrogate": ((200, {}, b'{"jsonrpc": "2.0", "id": 1, "result": "\\ud800"}'), 500),
    "two documents": ((200, {}, json.dumps(FRAMED).encode() * 2), 500),
    "an error that is a text": ((200, {}, {"jsonrpc": "2.0", "id": 1, "error": "no"}), 400),
    "an error that is a list": ((200, {}, {"jsonrpc": "2.0", "id": 1, "error": [1, 2]}), 400),
    "a code beyond 64 bits": ((200, {}, b'{"jsonrpc": "2.0", "id": 1, "error": {"code": 1e400, "message": "no"}}'), 400, 500),
    "a message that is none": (error(message={"a": 1}), 400),
    "a message with a NUL": (error(message="a\0b"), 400, 500),
    "a long message": (error(message="x" * 100_000), 400),
    "our code for a method": (error(code=-32601), 400),
    "our code for what is missing": (error(code=-32004), 400),
    "our code for too much": (error(code=-32005), 400),
    "a person's no": (error(code=4001, message="Transaction rejected by user"), 400),
}


def test_answers_made_to_hurt(install, mean):
    """And the daemon is as well as before."""
    it = started(install, "hurt", chains=[MEAN])
    seen = ask_all(it, mean, {what: answer for what, (answer, *_) in HOSTILE.items()})
    assert {what: got for what, got in seen.items() if got.get("status") not in HOSTILE[what][1:]} == {}
    assert {what for what, got in seen.items() if got["status"] == 400 and not got["message"].startswith("RPC Error: ")} == set()
    mean.answer = (200, {}, FRAMED)
    assert it.run(f'return await sdk.getBlockNumber("{MEAN}")') == "0x1"


def ask_long(it, daemon, n):
    return paddock.Background(Agent(daemon.client(), {"id": it.id}).run, f"""
      const one = {{ jsonrpc: "2.0", id: 1, method: "eth_getCode", params: ["long"] }};
      const seen = await Promise.all(Array.from({{ length: {n} }}, () => rpc(one, "{MEAN}")));
      return seen.map((r) => [r.status, r.body.error?.code, r.body.error?.message ?? r.body.result.length])""")


def test_unfinished_answers_have_a_bound(install, agent, daemon, mean):
    """An agent and its node could hold thirty answers of 16 MiB for as long as a node may take. Here they hold two."""
    it = started(install, "holds", chains=[MEAN])
    pid = daemon.api_pid()
    before = paddock.rss_kb(pid)
    with open(f"/proc/{pid}/clear_refs", "w") as f:
        f.write("5")  # the peak begins anew
    mean.holds({"long": STOPS, "short": (200, {}, FRAMED)})
    asked = ask_long(it, daemon, 30)
    try:
        paddock.until(lambda: len(mean.cut) >= 28, "all but two are given up")
        got = agent.run(f'return await sdk.queryChain("{MEAN}", "eth_getCode", ["short"])')
    finally:
        mean.on.set()
    assert got == "0x1", "a short answer waits for nobody"
    seen = asked.result()
    assert sorted(status for status, *_ in seen) == [200] * 30
    whole = [said for _, code, said in seen if code is None]
    assert len(whole) <= 2 and set(whole) <= {15 << 20}
    assert {code for _, code, _ in seen if code} == {-32005}
    assert sum(str(said).startswith("limit exceeded: ") for _, _, said in seen) >= 28
    assert paddock.rss_kb(pid, "VmHWM") < before + 250_000


def test_agents_together_have_a_bound(install, agent, daemon, mean):
    """Whoever holds most gives up something, and nobody else does."""
    modest, *greedy = [started(install, name, chains=[MEAN]) for name in ("modest", "greedy", "greedy-too")]
    mean.holds({"long": STOPS})
    one = ask_long(modest, daemon, 1)
    try:
        paddock.until(lambda: mean.seen, "the first one asks")
        asked = [ask_long(it, daemon, 2) for it in greedy]
        paddock.until(lambda: mean.cut, "one of five is given up")
    finally:
        mean.on.set()
    assert one.result() == [[200, None, 15 << 20]]
    seen = [each for it in asked for each in it.result()]
    assert [said for _, code, said in seen if code], seen
    assert {said for _, code, said in seen if code} == {"limit exceeded: nodes are answering too much at once, ask again"}


def test_a_slow_node_leaves_time_to_the_next(install, mean):
    """The SDK gives up after 30 s."""
    it = started(install, "waits", chains=[SECOND])
    mean.answer, mean.seen = DRIP, []
    assert int(it.run(f'return await sdk.getBlockNumber("{SECOND}")'), 16) >= 0
    assert [path for _, path, *_ in mean.seen] == ["/v2/first"]


def test_a_node_learns_nothing_about_the_agent(agent, mean):
    mean.answer, mean.seen = (200, {}, FRAMED), []
    agent.run(f'return await sdk.getBlockNumber("{MEAN}")')
    _, _, body, headers = mean.seen[0]
    assert body == {"jsonrpc": "2.0", "id": 1, "method": "eth_blockNumber", "params": []}
    assert not [name for name in headers if name.lower().startswith("x-") or name.lower() in ("authorization", "cookie")]
    token = agent.run("return env.ASSEGAI_AGENT_TOKEN")
    assert token not in json.dumps(headers)


def test_an_answer_quotes_no_key(agent, mean):
    mean.answer = (200, {}, {"jsonrpc": "2.0", "id": 1, "error": {"code": -32000, "message": "https://node/v2/0123456789abcdef0123: no"}})
    got = agent.run(f'return await attempt(sdk.getBlockNumber("{MEAN}"))')
    assert got["status"] == 400 and "0123456789abcdef0123" not in got["message"] and "RPC Error" in got["message"]


def test_a_node_is_never_a_metadata_service(agent):
    got = agent.run(f'return await attempt(sdk.getBlockNumber("{CLOUD}"))')
    assert got["status"] == 500 and "refused" in got["message"]


@pytest.mark.skipif(not list(local_names()), reason="/etc/hosts has no second name of this machine")
def test_a_name_does_not_lead_to_this_machine(agent, mean):
    """Whoever has the name could point it here: only an address or localhost means this machine."""
    mean.answer, mean.seen = (200, {}, FRAMED), []
    got = agent.run(f'return await attempt(sdk.getBlockNumber("{INWARD}"))')
    assert got["status"] == 500 and "this machine" in got["message"] and mean.seen == []
    assert agent.run(f'return await sdk.getBlockNumber("{NAMED}")') == "0x1"


def test_an_address_of_this_machine_may_be_configured(agent):
    """It is dialled, though nobody is there; only names are not believed."""
    got = agent.run(f'return [await attempt(sdk.getBlockNumber("{OWN}")), await sdk.getBlockNumber("{CHAIN}")]')
    assert got[0]["status"] == 500 and "Connection refused" in got[0]["message"], got
    assert int(got[1], 16) >= 0


def test_the_sdk_gives_up_and_the_daemon_goes_on(agent, mean):
    """The SDK aborts after 30 s of its own; here sooner. Nobody waits for the answer any more."""
    mean.answer, mean.seen = None, []
    got = agent.run(f"""
      const standard = sdk.timeout;
      sdk.timeout = 300;
      const gone = await attempt(sdk.getBlockNumber("{MEAN}"));
      sdk.timeout = standard;
      return {{ standard, gone, alive: (await sdk.healthCheck()).status, block: await sdk.getBlockNumber("{CHAIN}") }}""")
    assert (got["standard"], got["gone"]["code"], got["alive"]) == (30000, "TIMEOUT", "ok")
    assert got["block"].startswith("0x")


# ---- rate limits


def test_thirty_requests_in_ten_seconds_exactly(install):
    it = started(install, "counts", chains=[CHAIN])
    got = it.run("""
      const one = { jsonrpc: "2.0", id: 1, method: "eth_blockNumber" };
      const seen = (await Promise.all(Array.from({ length: 45 }, () => rpc(one)))).map((r) => r.status);
      const r = await fetch(`${env.ASSEGAI_API_PROXY}/rpc/eip155:31337`, { method: "POST", headers, body: JSON.stringify(one) });
      return { ok: seen.filter((s) => s === 200).length, over: seen.filter((s) => s === 429).length, wait: Number(r.headers.get("retry-after")), body: await r.json() }""")
    assert (got["ok"], got["over"], got["body"]) == (30, 15, {"error": "Rate limit exceeded"})
    assert 1 <= got["wait"] <= 10


def test_each_request_of_a_batch_counts(install):
    it = started(install, "batches", chains=[CHAIN])
    got = it.run("""
      const batch = (n) => Array.from({ length: n }, (_, id) => ({ jsonrpc: "2.0", id, method: "eth_blockNumber" }));
      return [(await rpc(batch(31))).status, (await rpc(batch(29))).status, (await rpc(batch(2))).status, (await rpc(batch(1))).status, (await rpc(batch(1))).status]""")
    assert got == [429, 200, 429, 200, 429]


@pytest.mark.parametrize("name, most, call", [
    ("openai", 100, 'sdk.callOpenAI({ model: "gpt-4o-mini", messages: [{ role: "user", content: "x" }] })'),
    ("anthropic", 50, 'sdk.callClaude({ model: "claude-3-5-haiku-latest", messages: [{ role: "user", content: "x" }] })'),
])
def test_models_are_counted_exactly(install, name, most, call):
    it = started(install, f"models-{name}", chains=[], apis=[name])
    got = it.run(f"""
      const seen = [];
      while (seen.length < {most} + 5) seen.push(...await Promise.all(Array.from({{ length: 5 }}, () => attempt({call}))));
      return {{ ok: seen.filter((s) => s.value).length, over: seen.filter((s) => s.code === "RATE_LIMITED").length, first: seen.find((s) => !s.value) }}""")
    assert (got["ok"], got["over"]) == (most, 5), got["first"]


# ---- models


def test_models_through_the_gateway(agent, provider):
    provider.take()
    got = agent.run("""return {
      answer: await sdk.callOpenAI({ model: "gpt-4o-mini", messages: [{ role: "user", content: "hello" }] }),
      claude: await attempt(sdk.callClaude({ model: "claude-3-5-haiku-latest", messages: [] })),
      other: await fetch(env.ASSEGAI_API_PROXY + "/api/google/v1/x", { method: "POST", headers, body: "{}" }).then((r) => r.status) }""")
    assert got["answer"]["choices"][0]["message"]["content"] == "".join(CHUNKS)
    assert (got["claude"]["status"], got["claude"]["code"]) == (403, "FORBIDDEN")
    assert got["other"] in (403, 404)
    [request] = provider.take()
    assert request["headers"]["authorization"] == f"Bearer {KEYS['openai']}"
    assert not [name for name in request["headers"] if "assegai" in name]
    assert KEYS["openai"] not in agent.box().exec("env; cat /agent-workspace/env.json").text


def test_what_models_cost_is_beside_the_spending(install, daemon, api):
    """In the agent's name: of its earlier sandboxes too, and after a restart of the api."""
    it = started(install, "costly", chains=[CHAIN], apis=["openai"])
    call = 'return await attempt(sdk.callOpenAI({ model: "gpt-4o-mini", messages: [{ role: "user", content: "x" }] }))'

    def cost():
        answer = daemon.client().get(f"{it.path}/spending")
        assert answer.status == 200, answer
        return answer.json()["ai_cost_usd"]

    def asked(before):
        assert "value" in it.run(call)
        paddock.until(lambda: cost()["day"] > before, "the call is settled")
        return cost()

    assert cost() == {"day": 0, "week": 0, "month": 0, "lifetime": 0}
    first = asked(0)
    box = it.get()["sandbox"]
    assert first["day"] == first["week"] == first["month"] == first["lifetime"] == api.get(f"/v1/usage?box={box}").json()["total"]["cost_usd"]
    it.do("stop")
    assert cost() == first
    it.do("start")
    it.wait("running")
    assert it.get()["sandbox"] != box
    second = asked(first["day"])
    assert abs(second["day"] - 2 * first["day"]) < 1e-9
    daemon.kill_api()
    paddock.until(lambda: daemon.client().get(it.path).status == 200, "the api is back")
    assert cost() == second
    shown = subprocess.run([paddock.BIN / "paddock", "tx", "spent", "costly", "--url", daemon.url, "--key-file", str(daemon.data_dir / "admin.key")],
                           capture_output=True, text=True, timeout=60, env=paddock.clean_environment())
    assert shown.returncode == 0 and "MODELS, USD" in shown.stdout and f"{second['day']:.4f}" in shown.stdout, shown


@pytest.mark.parametrize("runtime", ("node", "python"))
@pytest.mark.parametrize("kind, level, says", [("monitor", "info", "block "), ("analyst", "success", "".join(CHUNKS))])
def test_examples_with_a_chain_and_a_model(daemon, api, workdir, kind, runtime, level, says):
    place, name = workdir / f"whole-{kind}-{runtime}", f"whole-{kind}-{runtime}"
    assert cli(daemon, "new", kind, str(place), "--runtime", runtime).returncode == 0
    done = cli(daemon, "install", str(place), "--yes", "--start", "--name", name)
    assert done.returncode == 0, done.stderr
    it = Agent(api, {"id": name})
    paddock.until(lambda: any(e["level"] == level and says in e["message"] for e in it.logs() if e["source"] == "agent"), f"{says!r} is logged")
    assert [e["message"] for e in it.logs("level=error")] == []
    assert cli(daemon, "rm", name).returncode == 0
