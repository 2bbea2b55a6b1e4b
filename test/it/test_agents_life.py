"""What an agent's sandbox has and keeps: its limits, its identity, its log, its pauses over a restart of the daemon."""

import datetime
import json
import os
import signal
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest

import paddock
from agents_kit import CHAIN, agent, anvil, api, daemon, install, modules, pack  # noqa: F401

FILES = ("index.js", "sdk.js", "run.js")


@pytest.fixture(scope="module")
def other(install):
    it = install(pack(*FILES), name="other", resources={"memory": "300MB", "cpu": "0.25"}, permissions={"chains": []})
    it.wait("stopped")
    it.do("start")
    it.until_logged("hello by the API")
    return it


def test_the_limits_of_the_manifest_are_those_of_the_sandbox(other):
    box = other.box()
    limits = other.api.get(box.path).json()["limits"]
    assert (limits["memory_mb"], limits["cpu"]) == (300, 0.25)
    total = box.exec("grep MemTotal /proc/meminfo").text.split()[1]
    assert int(total) == 300 * 1024
    # More than that ends the agent's sandbox' process, not the machine's.
    hungry = box.exec(["node", "-e", "const a = []; for (;;) a.push(Buffer.alloc(1 << 24, 1))"])
    assert hungry.exit_code != 0


def test_nothing_of_the_root_can_be_written(other):
    box = other.box()
    for path in ("/", "/agent-code", "/usr", "/etc", "/var", "/opt", "/root"):
        assert box.exec(["touch", f"{path}/planted"]).exit_code != 0, path
    assert box.exec("mount -o remount,rw /").exit_code != 0
    assert box.exec("echo x >> /agent-code/index.js").exit_code != 0


def test_an_agent_cannot_be_another(agent, other):
    """Every mixture of ids and tokens is refused, but for its own."""
    mine, theirs = (json.loads(each.box().exec("cat /agent-workspace/env.json").text) for each in (other, agent))
    pairs = [(i["ASSEGAI_AGENT_ID"], t["ASSEGAI_AGENT_TOKEN"]) for i in (mine, theirs) for t in (mine, theirs)]
    pairs += [(mine["ASSEGAI_AGENT_ID"], ""), (mine["ASSEGAI_AGENT_ID"], mine["ASSEGAI_AGENT_TOKEN"][:-1]), ("", mine["ASSEGAI_AGENT_TOKEN"])]
    got = other.run(f"""
      const seen = [];
      for (const [id, token] of {json.dumps(pairs)})
        for (const path of ["/agent/log", "/agent/query-chain", "/rpc/{CHAIN}", "/agent/request-transaction", "/agent/wallet-address/{CHAIN}", "/api/openai/v1/models"]) {{
          const get = path.includes("wallet") || path.endsWith("models");
          const r = await fetch(env.ASSEGAI_API_PROXY + path, {{ method: get ? "GET" : "POST",
            headers: {{ "Content-Type": "application/json", "X-Assegai-Agent-ID": id, "X-Assegai-Agent-Token": token }}, body: get ? undefined : "{{}}" }});
          seen.push([r.status, await r.text()]);
        }}
      return seen""")
    own, foreign = got[:6], got[6:]
    assert all(status != 401 for status, _ in own), own
    for status, text in foreign:
        assert (status, json.loads(text)) == (401, {"error": "Unauthorized: Missing agent credentials in headers"}), text
    bare = other.run("""const r = await fetch(env.ASSEGAI_API_PROXY + "/agent/log", { method: "POST", body: "{}", headers: { "Content-Type": "application/json" } });
      return [r.status, await r.json()]""")
    assert bare == [401, {"error": "Unauthorized: Missing agent credentials in headers"}]


def test_the_token_of_the_last_start_is_nobodys(agent):
    old = agent.run("return env.ASSEGAI_AGENT_TOKEN")
    agent.do("restart")
    paddock.until(lambda: agent.box().exec("test -s /agent-workspace/env.json").exit_code == 0 and agent.run("return env.ASSEGAI_AGENT_TOKEN") != old, "it has a new one")
    got = agent.run(f"""
      const r = await fetch(env.ASSEGAI_API_PROXY + "/agent/log", {{ method: "POST", body: JSON.stringify({{ level: "info", message: "x" }}),
        headers: {{ ...headers, "X-Assegai-Agent-Token": "{old}" }} }});
      return r.status""")
    assert got == 401


@pytest.mark.parametrize("form", ("application/x-ndjson", "text/event-stream"))
def test_the_log_is_followed_live_by_level(agent, daemon, form):
    client = daemon.client()
    response = client.start("GET", f"{agent.path}/logs?level=warn&after={agent.logs()[-1]['id']}", headers={"accept": form})
    agent.run("""for (const level of ["debug", "info", "success", "warn", "error"]) await sdk.log(level, `live ${level}`); return 1""")
    seen = []
    while len(seen) < 2:
        line = response.readline().decode().strip()
        if form.endswith("ndjson") or line.startswith("data:"):
            seen.append(json.loads(line.removeprefix("data:"))["message"])
    assert seen == ["live warn", "live error"]
    client.close()


def test_the_command_line_follows_by_level(agent, daemon):
    follow = subprocess.Popen([paddock.BIN / "paddock", "agent", "logs", "-f", "--level", "warn", "--after", str(agent.logs()[-1]["id"]), "shared", "--url", daemon.url,
                               "--key-file", str(daemon.data_dir / "admin.key")], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
                              env=paddock.clean_environment(), preexec_fn=paddock.die_with_parent)
    agent.run("""await sdk.log("info", "too low"); await sdk.log("warn", "high enough"); return 1""")
    line = follow.stdout.readline()
    agent.run("""await sdk.log("debug", "too low"); await sdk.log("error", "higher", { why: 1 }); return 1""")
    second = follow.stdout.readline()
    follow.kill()
    follow.wait()
    follow.stdout.close()
    assert " warn " in line and line.endswith(" high enough\n")
    assert " error " in second and second.endswith('higher {"why":1}\n')


def test_a_crash_loop_is_held_back_over_a_restart(install, daemon):
    it = install(pack(index_dot_js="process.exit(3)"), name="loops")
    it.wait("stopped")
    it.api.request("POST", f"{it.path}/start")
    paddock.until(lambda: "starting again in 4 s" in it.messages("daemon"), "it has crashed three times")
    daemon.restart()
    it.api = daemon.client()
    now = it.get()
    assert now["crashes"] >= 3 and "exit code 3" in now["reason"], now
    paddock.until(lambda: "starting again in 8 s" in it.messages("daemon"), "the pauses go on growing")
    entries = [(e["message"], datetime.datetime.fromisoformat(e["at"].replace("Z", "+00:00"))) for e in it.logs() if e["source"] == "daemon"]
    messages = [message for message, _ in entries]
    assert [m for m in messages if m.startswith("starting again")] == [f"starting again in {n} s" for n in (1, 2, 4, 8)]
    held = messages.index("starting again in 4 s")
    then = next(at for message, at in entries[held:] if message == "starting")
    assert (then - entries[held][1]).total_seconds() >= 3.9
    paddock.until(lambda: it.api.request("POST", f"{it.path}/stop").status == 200, "it is stopped")
    assert it.get()["crashes"] == 0


# ---- many at once

# Opens connections, says so, waits until the daemon has stopped to answer (or not), then asks on each: what came back.
CROWD = """
const net = require("net"), sleep = (ms) => new Promise((r) => setTimeout(r, ms)), [count, port, hold] = [%d, %d, %d];
const ask = `GET /health HTTP/1.1\\r\\nHost: x\\r\\nConnection: ${hold ? "keep-alive" : "close"}\\r\\n\\r\\n`;
const open = () => new Promise((yes, no) => {
  const s = net.connect(port, port === 8765 ? "host.docker.internal" : "127.0.0.1", () => { s.off("error", no); yes(s); });
  s.once("error", no);
});
const answer = (s) => new Promise((yes) => {
  let text = "";
  s.on("error", (e) => yes([e.code, text]));
  s.on("data", (d) => { text += d; if (hold && /[}]\\s*$/.test(text)) yes([+text.split(" ")[1], text.split("\\r\\n\\r\\n")[1]]); });
  s.on("end", () => yes([+text.split(" ")[1], text.split("\\r\\n\\r\\n")[1]]));
  s.write(ask);
});
const held = []; for (let i = 0; i < hold; i++) { held.push(await open()); await answer(held[i]); }
const ends = await Promise.all([...Array(count)].map(open));
if (!hold) for (;;) {
  const probe = fetch("http://host.docker.internal:8765/health").then((r) => r.text(), () => {});
  if (await Promise.race([probe, sleep(700).then(() => "away")]) === "away") break;
}
const got = await Promise.all(ends.map(answer));
[...held, ...ends].forEach((s) => s.destroy());
return got;
"""


def connections(box, port):
    """Of a sandbox to the gate: how many there are, and in how many something waits to be read."""
    rows = [line.split() for kind in ("tcp", "tcp6") for line in paddock.read(f"/proc/{box.pid1()}/net/{kind}").splitlines()[1:]]
    waiting = [row[4].split(":")[1] for row in rows if row[1].endswith(f":{port:04X}") and row[3] == "01"]
    return len(waiting), sum(int(n, 16) > 0 for n in waiting)


@pytest.mark.parametrize("port", (15004, 8765))
def test_while_the_api_is_busy_everybody_waits(agent, daemon, port):
    """More connections than a channel between programs holds: each is served or told that there are too many, none is cut."""
    agent.run("return 1")
    box, pid = agent.box(), daemon.api_pid()
    with ThreadPoolExecutor(1) as pool:
        script = pool.submit(agent.run, CROWD % (400, port, 0))
        paddock.until(lambda: connections(box, port)[0] >= 400, "the connections are open")
        os.kill(pid, signal.SIGSTOP)
        try:
            paddock.until(lambda: connections(box, port)[1] >= 400, "all have asked")
        finally:
            os.kill(pid, signal.SIGCONT)
        got = script.result(120)
    assert {status for status, _ in got} <= {200, 429}, [x for x in got if x[0] not in (200, 429)][:3]
    assert sum(status == 200 for status, _ in got) >= 128


def test_one_too_many_is_told_so(agent):
    """128 of one sandbox are served at once. More are told so, in the words of the API."""
    got = agent.run(CROWD % (60, 15004, 128))
    assert [(status, json.loads(text)) for status, text in got] == [(429, {"error": "too many connections at once: a sandbox has at most 128"})] * 60
    assert agent.run("return (await fetch(env.ASSEGAI_API_PROXY + '/health')).status") == 200


def test_a_limit_of_the_policy_is_told_too(install):
    """What the gate refuses of an agent's connections to the daemon is an answer as well."""
    it = install(pack(*FILES), name="limited", permissions={"chains": []})
    it.wait("stopped")
    it.do("start")
    it.until_logged("hello by the API")
    path = f"/v1/sandboxes/{it.get()['sandbox']}/egress"
    assert it.api.send_json("PUT", path, {"default": "deny", "rules": [], "limits": {"connections_per_second": 1}}).status == 200
    for port in (15004, 8765):
        got = it.run(CROWD % (20, port, 1))
        assert {status for status, _ in got} <= {200, 503} and got.count([503, "paddock: a limit of this sandbox is reached\n"]) >= 10, got
