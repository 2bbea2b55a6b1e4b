"""Agents from manifests: install, build, start, logs, crashes, and what an agent may ask the daemon for.

The chain is anvil, the client inside is Assegai's SDK as its contract describes it (agents/sdk.js), and ethers, viem and
web3 as they are published."""

import io
import json
import tarfile

import pytest

import paddock
from agents_kit import CHAIN, HERE, RICH, TYPES, UNUSED, Agent, agent, anvil, api, cli, daemon, install, manifest, modules, pack  # noqa: F401

# ---- installing


def test_preview_installs_nothing(api):
    response = api.post("/v1/agents", {"manifest": manifest(), "consent": False})
    assert response.status == 200
    assert response.json()["manifest"]["permissions"]["chains"] == [CHAIN]
    assert "preview" not in [a["name"] for a in api.get("/v1/agents").json()["agents"]]


@pytest.mark.parametrize("change, says", [
    ({"dockerfile": "FROM scratch"}, "dockerfile"),
    ({"permissions": {"chains": ["eip155:1"], "rpcs": {"eip155:1": "http://169.254.169.254/latest"}}}, "agents.rpcs"),
    ({"permissions": {"hosts": ["10.0.0.0/8"]}}, "permissions.hosts[0]"),
    ({"resources": {"memory": "900GB"}}, "resources.memory"),
    ({"entrypoint": "../../etc/x.js"}, "entrypoint"),
    ({"entrypoint": "--eval=1.js"}, "entrypoint"),
    ({"entrypoint": "a;reboot.js"}, "entrypoint"),
    ({"runtime": "bash"}, "runtime"),
    ({"version": "1"}, "version"),
    ({"name": "a\u202eb"}, "name"),
    ({"name": "a\x1b[2J"}, "name"),
    ({"Permissions": {"chains": ["eip155:1"]}}, "Permissions"),
    ({"permissions": {"chains": ["eip155:01"]}}, "permissions.chains[0]"),
    ({"permissions": {"chains": ["eip155:1", "eip155:1"]}}, "permissions.chains[1]"),
    ({"permissions": {"chains": ["solana:x"]}}, "permissions.chains[0]"),
    ({"permissions": {"chains": [], "rpcs": {"eip155:1": "https://x.example"}}}, "permissions.rpcs"),
    ({"permissions": {"chains": ["eip155:1"], "rpcs": {"eip155:1": "file:///etc/passwd"}}}, "permissions.rpcs"),
    ({"permissions": {"chains": ["eip155:1"], "rpcs": {"eip155:1": "http://user:secret@x.example"}}}, "permissions.rpcs"),
    ({"permissions": {"apis": ["google"]}}, "permissions.apis[0]"),
    ({"permissions": {"contracts": ["0x1"]}}, "permissions.contracts[0]"),
    ({"permissions": {"hosts": ["*.example.org"]}}, "permissions.hosts[0]"),
    ({"permissions": {"hosts": ["169.254.169.254"]}}, "permissions.hosts[0]"),
    ({"permissions": {"sudo": True}}, 'permissions."sudo"'),
    ({"resources": {"memory": "-1MB"}}, "resources.memory"),
    ({"resources": {"cpu": "1e9"}}, "resources.cpu"),
    ({"spending_limits": {"daily": 1}}, "spending_limits.daily"),
    ({"spending_limits": {"daily": "1e3"}}, "spending_limits.daily"),
    ({"spending_limits": {"daily": "-1"}}, "spending_limits.daily"),
    ({"spending_limits": {"yearly": "1"}}, 'spending_limits."yearly"'),
])
def test_hostile_manifests_are_refused_by_field(api, change, says):
    response = api.post("/v1/agents", {"manifest": manifest(**change), "consent": True})
    assert response.status in (400, 403), response
    assert says in response.json()["error"]["message"]


def test_names_are_unique(install, api):
    install(name="twice")
    assert api.post("/v1/agents", {"manifest": manifest(), "name": "twice", "consent": True}).status == 409
    assert api.post("/v1/agents", {"manifest": manifest(), "name": "../x", "consent": True}).status == 400


@pytest.mark.parametrize("files, more, says", [
    (pack("index.js", "sdk.js", Dockerfile="FROM scratch\n"), {}, "Dockerfile"),
    (pack("sdk.js"), {}, "entrypoint index.js"),
    (pack("index.js", package_dot_json='{"dependencies": {"ethers": "6"}}'), {}, "package-lock.json"),
])
def test_builds_that_fail_say_why(install, files, more, says):
    it = install(files, name=f"fails-{says[:4].lower()}", **more)
    now = it.wait("failed")
    assert says in now["reason"]
    assert any(says in m for m in it.messages("build"))
    assert it.api.request("POST", f"{it.path}/start").status == 409


# ---- running


def test_contract_of_the_sandbox(agent):
    env = agent.run("return env")
    assert env["NODE_ENV"] == "production"
    assert env["ASSEGAI_API_PROXY"] == "http://host.docker.internal:8765"
    assert env["ASSEGAI_AGENT_ID"] == agent.id
    box = agent.box()
    assert box.exec("touch /agent-code/x /usr/x").exit_code != 0
    assert box.exec("touch /agent-workspace/x && touch /tmp/x").exit_code == 0
    assert box.exec("sudo -n true").exit_code != 0
    assert box.exec("curl -sSf -m 5 http://192.0.2.7/").exit_code != 0
    about = agent.api.get(box.path).json()
    assert about["limits"]["memory_mb"] == 512
    assert about["readonly_root"] is True


def test_logs_have_levels_and_sources(agent):
    agent.until_logged("hello on stderr")
    entries = {e["message"]: e for e in agent.logs()}
    assert entries["hello on stdout"]["source"] == "stdout"
    assert entries["hello on stderr"]["level"] == "error"
    said = entries["hello by the API"]
    assert (said["level"], said["source"], said["data"]) == ("success", "agent", {"answer": 42})
    assert {e["level"] for e in agent.logs("level=error")} == {"error"}
    first = agent.logs("limit=2&after=0")
    assert [e["id"] for e in first] == sorted(e["id"] for e in agent.logs())[:2]


def test_logs_are_followed_live(agent, daemon):
    last = agent.logs()[-1]["id"]
    client = daemon.client()
    response = client.start("GET", f"{agent.path}/logs?after={last}", headers={"accept": "application/x-ndjson"})
    agent.run("await sdk.log('warn', 'followed'); return 1")
    line = json.loads(response.readline())
    assert (line["level"], line["message"]) == ("warn", "followed")
    client.close()


def test_stop_is_told_and_the_workspace_stays(agent):
    starts = agent.run("return require('fs').readFileSync('/agent-workspace/starts', 'utf8')")
    token = agent.run("return env.ASSEGAI_AGENT_TOKEN")
    box = agent.get()["sandbox"]
    now = agent.do("stop")
    assert (now["status"], now["sandbox"]) == ("stopped", None)
    assert agent.api.get(f"/v1/sandboxes/{box}").status == 404
    assert "bye" in agent.messages("stdout")
    assert agent.do("start")["status"] == "running"
    agent.until_logged("hello by the API")
    paddock.until(lambda: agent.run("return require('fs').readFileSync('/agent-workspace/starts', 'utf8')") == starts + "x", "it has started again")
    assert agent.run("return env.ASSEGAI_AGENT_TOKEN") != token


def test_restart_is_a_new_sandbox(agent):
    before = agent.get()["sandbox"]
    now = agent.do("restart")
    assert now["status"] == "running" and now["sandbox"] != before
    paddock.until(lambda: agent.box().exec("test -s /agent-workspace/env.json").exit_code == 0, "it is there")


def test_an_api_that_dies_loses_no_line(agent, daemon):
    agent.box().exec("touch /agent-workspace/count")
    agent.until_logged("line 5")
    daemon.kill_api()
    agent.api = daemon.client()
    assert agent.wait("running")
    seen = [m for m in agent.messages("stdout") if m.startswith("line ")]
    more = f"line {len(seen) + 5}"
    agent.until_logged(more)
    agent.box().exec("rm /agent-workspace/count")
    lines = [int(m.split()[1]) for m in agent.messages("stdout") if m.startswith("line ")]
    assert lines == list(range(1, len(lines) + 1))


def test_crashes_are_held_back(install):
    it = install(pack(index_dot_js="console.error('oh no'); process.exit(3)"), name="crashes")
    it.wait("stopped")
    it.api.request("POST", f"{it.path}/start")
    now = paddock.until(lambda: (lambda d: d if d["crashes"] >= 2 else None)(it.get()), "it has crashed twice")
    assert "exit code 3" in now["reason"]
    paddock.until(lambda: {"starting again in 1 s", "starting again in 2 s"} <= set(it.messages("daemon")), "the pauses grow")
    paddock.until(lambda: it.api.request("POST", f"{it.path}/stop").status == 200, "it is stopped")
    assert it.get()["status"] == "stopped"


def test_an_end_with_0_is_an_end(install):
    it = install(pack(index_dot_js="console.log('done')"), name="ends")
    it.wait("stopped")
    it.api.request("POST", f"{it.path}/start")
    it.until_logged("it ended with exit code 0", "daemon")
    assert it.wait("stopped")["crashes"] == 0


def test_python(install):
    program = ("import json, os, sys, urllib.request\n"
               "request = urllib.request.Request(os.environ['ASSEGAI_API_PROXY'] + '/agent/log', json.dumps({'level': 'warn', 'message': 'from Python'}).encode(),\n"
               "    {'Content-Type': 'application/json', 'X-Assegai-Agent-ID': os.environ['ASSEGAI_AGENT_ID'], 'X-Assegai-Agent-Token': os.environ['ASSEGAI_AGENT_TOKEN']})\n"
               "print(urllib.request.urlopen(request).read().decode())\n")
    it = install(pack(main_dot_py=program), name="python", runtime="python", entrypoint="main.py")
    it.wait("stopped")
    it.api.request("POST", f"{it.path}/start")
    it.until_logged("from Python", "agent")
    it.until_logged('{"success":true}', "stdout")


def test_remove_leaves_nothing(install, api):
    it = install(pack("index.js", "sdk.js"), name="goes")
    it.wait("stopped")
    it.do("start")
    box = it.get()["sandbox"]
    assert it.remove().status == 204
    assert it.api.get(it.path).status == 404
    assert api.get(f"/v1/sandboxes/{box}").status == 404
    assert f"agent-{it.id}" not in [w["name"] for w in api.get("/v1/workspaces").json()["workspaces"]]


# ---- the API proxy


def test_sdk(agent):
    got = agent.run(f"""
      const health = await sdk.healthCheck();
      const block = await sdk.getBlockNumber("{CHAIN}");
      return {{ health, block, balance: await sdk.getBalance("{CHAIN}", "{RICH}"), count: await sdk.getTransactionCount("{CHAIN}", "{RICH}"),
        price: await sdk.getGasPrice("{CHAIN}"), contract: await sdk.isContract("{CHAIN}", "{RICH}") }}""")
    assert got["health"]["status"] == "ok" and got["health"]["timestamp"] > 1e12
    assert int(got["balance"], 16) == 10000 * 10**18
    assert got["contract"] is False


def test_sdk_errors(agent):
    got = agent.run(f"""return {{
      chain: await attempt(sdk.getBalance("eip155:1", "{RICH}")),
      method: await attempt(sdk.queryChain("{CHAIN}", "anvil_setBalance", ["{RICH}", "0x0"])),
      node: await attempt(sdk.queryChain("{CHAIN}", "eth_getBalance", ["nonsense", "latest"])),
      send: await attempt(sdk.requestTransaction({{ chain: "{CHAIN}", to: "{RICH}", value: "1" }})),
      other: await attempt(sdk.requestTransaction({{ chain: "eip155:1", to: "{RICH}", value: "1" }})),
      value: await attempt(sdk.requestTransaction({{ chain: "{CHAIN}", to: "{RICH}", value: "0.1" }})),
      wallet: await attempt(sdk.getWalletAddress("{CHAIN}")),
      openai: await attempt(sdk.callOpenAI({{ model: "gpt-4o-mini", messages: [] }})),
      claude: await attempt(sdk.callClaude({{ model: "claude", messages: [] }})),
      level: await attempt(sdk.log("loud", "x")),
    }}""")
    assert (got["chain"]["code"], got["chain"]["status"]) == ("FORBIDDEN", 403)
    assert got["method"]["status"] == 403
    assert got["node"]["code"] == "RPC_ERROR" and got["node"]["status"] == 400
    assert got["node"]["message"].startswith("RPC Error: ")
    # Nobody has allowed it anything yet.
    assert (got["send"]["status"], got["send"]["message"]) == (403, f"Chain {CHAIN} is not allowed for this agent")
    assert got["other"]["status"] == 403
    assert got["value"]["status"] == 400
    assert got["wallet"]["status"] == 501
    assert (got["openai"]["status"], got["openai"]["message"]) == (500, "OpenAI API key not configured in Assegai Settings.")
    assert (got["claude"]["code"], got["claude"]["status"]) == ("FORBIDDEN", 403)
    assert got["level"]["status"] == 400


def test_credentials(agent, api):
    text = "Unauthorized: Missing agent credentials in headers"
    got = agent.run("""
      const ask = async (headers) => { const r = await fetch(env.ASSEGAI_API_PROXY + "/agent/wallet-address/eip155:31337", { headers });
        return [r.status, await r.json()]; };
      const id = headers["X-Assegai-Agent-ID"], token = headers["X-Assegai-Agent-Token"];
      return [await ask({}), await ask({ "X-Assegai-Agent-ID": id }), await ask({ "X-Assegai-Agent-ID": id, "X-Assegai-Agent-Token": token + "x" }),
        await ask({ "X-Assegai-Agent-ID": "another", "X-Assegai-Agent-Token": token })]""")
    assert got == [[401, {"error": text}]] * 4
    # The credentials alone are worth nothing: another sandbox is another connection.
    env = agent.run("return env")
    other = api.create()
    done = other.exec(["curl", "-sS", "-m", "20", "-w", "%{http_code}", "-H", f"X-Assegai-Agent-ID: {agent.id}", "-H", f"X-Assegai-Agent-Token: {env['ASSEGAI_AGENT_TOKEN']}",
                       f"http://host.docker.internal:8765/agent/wallet-address/{CHAIN}"])
    assert done.text.endswith("404") and "address" not in done.text
    other.delete()
    # Nor is the proxy served to those outside.
    assert api.get(f"/agent/wallet-address/{CHAIN}").status == 404


def test_rpc(agent):
    got = agent.run(f"""
      const one = (method, params = []) => ({{ jsonrpc: "2.0", id: 1, method, params }});
      return {{
        id: await rpc(one("eth_chainId")), version: await rpc(one("net_version")), accounts: await rpc(one("eth_accounts")),
        batch: await rpc([{{ jsonrpc: "2.0", id: "a", method: "eth_blockNumber" }}, one("eth_sendRawTransaction", ["0x00"]),
          {{ jsonrpc: "2.0", id: 9007199254740991, method: "eth_getBalance", params: ["{RICH}", "latest"] }}]),
        twice: await rpc('{{"jsonrpc":"2.0","id":1,"method":"eth_chainId","method":"eth_accounts"}}'),
        large: await rpc(Array(51).fill(one("eth_chainId"))),
        send: await rpc(one("eth_sendTransaction", [{{ from: "{RICH}", to: "{RICH}", value: "0x1" }}])),
        sign: await rpc(one("personal_sign", ["0x00", "{RICH}"])),
        filter: await rpc(one("eth_getFilterChanges", ["0x1"])),
        chain: await rpc(one("eth_chainId"), "eip155:1"),
      }}""")
    assert got["id"] == {"status": 200, "body": {"jsonrpc": "2.0", "id": 1, "result": "0x7a69"}}
    assert got["version"]["body"]["result"] == "31337"
    assert got["accounts"]["body"]["result"] == []
    first, second, third = got["batch"]["body"]
    assert first["id"] == "a" and first["result"].startswith("0x")
    assert second["error"]["code"] == -32601
    assert third["id"] == 9007199254740991 and int(third["result"], 16) == 10000 * 10**18
    assert got["twice"]["body"]["error"]["code"] == -32700
    assert got["large"]["body"]["error"]["code"] == -32600
    assert got["send"]["body"]["error"]["code"] == 4100  # it has no wallet
    assert got["sign"]["body"]["error"]["code"] == 4100
    assert got["filter"]["body"]["error"]["message"] == "filter not found"
    assert got["chain"]["status"] == 403


def test_filters_belong_to_their_agent(agent, install):
    filter_id = agent.run('return (await rpc({ jsonrpc: "2.0", id: 1, method: "eth_newBlockFilter" })).body.result')
    use = f'return (await rpc({{ jsonrpc: "2.0", id: 1, method: "eth_getFilterChanges", params: ["{filter_id}"] }})).body'
    assert agent.run(use)["result"] == []
    other = install(pack("index.js", "sdk.js", "run.js"), name="other")
    other.wait("stopped")
    other.do("start")
    other.until_logged("hello by the API")
    assert other.run(use)["error"]["message"] == "filter not found"


def test_rate_limits(agent):
    got = agent.run("""
      const one = { jsonrpc: "2.0", id: 1, method: "eth_blockNumber" };
      const seen = [];
      for (let i = 0; i < 100 && !seen.includes(429); i++) seen.push((await rpc(one)).status);
      const last = await rpc(one);
      return { seen, last, free: (await rpc({ jsonrpc: "2.0", id: 1, method: "eth_chainId" })).status, sdk: await attempt(sdk.getBlockNumber("eip155:31337")) }""")
    assert got["seen"].count(200) <= 60 and got["seen"][-1] == 429
    assert got["last"] == {"status": 429, "body": {"error": "Rate limit exceeded"}}
    assert got["free"] == 200
    assert got["sdk"]["code"] == "RATE_LIMITED"


def test_contracts_are_enforced(install):
    it = install(pack("index.js", "sdk.js", "run.js"), name="contracts",
                 permissions={"chains": [CHAIN], "contracts": [RICH]})
    it.wait("stopped")
    it.do("start")
    it.until_logged("hello by the API")
    other = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8"
    got = it.run(f"""return [
      await attempt(sdk.requestTransaction({{ chain: "{CHAIN}", to: "{other}", value: "0", data: "0xa9059cbb" }})),
      await attempt(sdk.requestTransaction({{ chain: "{CHAIN}", to: "{RICH.lower()}", value: "0", data: "0xa9059cbb" }})),
      await attempt(sdk.callOpenAI({{ model: "gpt-4o-mini", messages: [] }}))]""")
    assert got[0]["status"] == 403 and "permissions.contracts" in got[0]["message"]
    assert got[1]["status"] == 403 and "is not allowed for this agent" in got[1]["message"]
    assert got[2]["status"] == 403


def test_keys_of_nodes_stay_with_the_daemon(install):
    it = install(pack("index.js", "sdk.js", "run.js"), name="deadnode", permissions={"chains": ["eip155:5"]})
    it.wait("stopped")
    it.do("start")
    it.until_logged("hello by the API")
    got = it.run('return await attempt(sdk.getBlockNumber("eip155:5"))')
    assert got["status"] == 500
    assert "0123456789" not in json.dumps(got)


def test_libraries(modules, install, anvil):
    """Unmodified ethers, viem and web3 in an agent, at the address of the manifest's own node."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name in ("index.js", "sdk.js", "run.js"):
            tar.add(HERE / name, name)
        tar.add(modules / "node_modules", "node_modules", filter=lambda i: None if i.name.endswith(TYPES) or any(part in i.name for part in UNUSED) else i)
    it = install(out.getvalue(), name="libraries",
                 permissions={"chains": [CHAIN], "rpcs": {CHAIN: f"http://host.docker.internal:{anvil}"}})
    it.wait("stopped", timeout=120)
    it.do("start")
    it.until_logged("hello by the API")
    url = "env.ASSEGAI_API_PROXY + '/rpc/eip155:31337'"
    got = it.run(f"""
      const {{ FetchRequest, JsonRpcProvider }} = require("ethers");
      const request = new FetchRequest({url});
      for (const [k, v] of Object.entries(headers)) request.setHeader(k, v);
      const provider = new JsonRpcProvider(request);
      const balance = await provider.getBalance("{RICH}");
      const block = await provider.getBlock("latest");
      const network = (await provider.getNetwork()).chainId;
      const failed = await provider.getSigner("{RICH}").then((s) => s.sendTransaction({{ to: "{RICH}", value: 1n }})).catch((e) => String(e.message));
      provider.destroy();
      return {{ balance, number: block.number, network, failed }}""")
    assert int(got["balance"]) == 10000 * 10**18 and got["network"] == "31337"
    assert isinstance(got["failed"], str)
    got = it.run(f"""
      const {{ createPublicClient, http }} = require("viem");
      const {{ foundry }} = require("viem/chains");
      const client = createPublicClient({{ chain: foundry, transport: http({url}, {{ fetchOptions: {{ headers }} }}) }});
      const filter = await client.createBlockFilter();
      return {{ balance: await client.getBalance({{ address: "{RICH}" }}), id: await client.getChainId(), block: await client.getBlockNumber(),
        changes: await client.getFilterChanges({{ filter }}), logs: await client.getLogs({{ fromBlock: 0n }}) }}""")
    assert int(got["balance"]) == 10000 * 10**18 and got["id"] == 31337
    got = it.run(f"""
      const {{ Web3, HttpProvider }} = require("web3");
      const web3 = new Web3(new HttpProvider({url}, {{ providerOptions: {{ headers }} }}));
      return {{ balance: await web3.eth.getBalance("{RICH}"), id: await web3.eth.getChainId(), net: await web3.eth.net.getId(),
        refused: await web3.eth.sign("0x00", "{RICH}").then(() => null, (e) => e.message) }}""")
    assert int(got["balance"]) == 10000 * 10**18 and got["id"] == "31337"
    assert got["refused"]


# ---- the command line


def test_command_line(daemon, workdir):
    place = workdir / "an-agent"
    place.mkdir()
    (place / "assegai.json").write_text(json.dumps(manifest(name="Of the CLI", spending_limits={"daily": "1.0"})))
    (place / "index.js").write_text("""console.log('\\x1b[31mred\\u009b\\u202eX');
      const headers = { "content-type": "application/json", "x-assegai-agent-id": process.env.ASSEGAI_AGENT_ID, "x-assegai-agent-token": process.env.ASSEGAI_AGENT_TOKEN };
      fetch(process.env.ASSEGAI_API_PROXY + "/agent/log", { method: "POST", headers, body: JSON.stringify({ level: "info", message: "of data", data: { a: "\\u009b31m\\u202e\\u001b" } }) });
      setInterval(() => {}, 1000)""")
    refused = cli(daemon, "install", str(place))
    assert refused.returncode == 1 and "--yes" in refused.stderr
    assert f"chains     {CHAIN}" in refused.stderr and "daily=1.0" in refused.stderr
    done = cli(daemon, "install", str(place), "--yes", "--start")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "of-the-cli\n"
    assert "running" in cli(daemon, "ls").stdout
    shown = paddock.until(lambda: (lambda text: text if "red" in text and "of data" in text else None)(cli(daemon, "logs", "of-the-cli", "--level", "info").stdout), "its output is shown")
    assert not set(shown) & set("\x1b\x9b\u202e") and "\\x1b[31mred\\xc2\\x9b\\xe2\\x80\\xaeX" in shown, "nothing of it steers a terminal"
    assert cli(daemon, "stop", "of-the-cli").returncode == 0
    assert json.loads(cli(daemon, "show", "of-the-cli").stdout)["status"] == "stopped"
    assert cli(daemon, "rm", "of-the-cli").returncode == 0
    (place / "Dockerfile").write_text("FROM scratch\n")
    refused = cli(daemon, "install", str(place), "--yes")
    assert refused.returncode == 1 and "Dockerfile" in refused.stderr
    (place / "Dockerfile").unlink()
    (place / "assegai.json").write_text(json.dumps(manifest(sudo=True)))
    refused = cli(daemon, "install", str(place), "--yes")
    assert refused.returncode == 1 and "sudo" in refused.stderr


@pytest.mark.parametrize("runtime", ("node", "python"))
@pytest.mark.parametrize("kind, level, says", [("monitor", "info", "block "), ("dca", "error", "is not allowed for this agent"), ("analyst", "error", "OpenAI API key not configured")])
def test_examples_work(daemon, api, workdir, kind, runtime, level, says):
    place, name = workdir / f"{kind}-{runtime}", f"{kind}-{runtime}"
    made = cli(daemon, "new", kind, str(place), "--runtime", runtime)
    assert made.returncode == 0, made.stderr
    done = cli(daemon, "install", str(place), "--yes", "--start", "--name", name)
    assert done.returncode == 0, done.stderr
    it = Agent(api, {"id": name})
    paddock.until(lambda: any(e["level"] == level and says in e["message"] for e in it.logs() if e["source"] == "agent"), f"{says!r} is logged")
    assert cli(daemon, "rm", name).returncode == 0
    assert cli(daemon, "new", kind, str(place)).returncode == 1  # nothing is overwritten
