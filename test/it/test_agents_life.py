"""What an agent's sandbox has and keeps: its limits, its identity, its log, its pauses over a restart of the daemon."""

import datetime
import json
import subprocess

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
