"""Everything that the API can do, the command line can do: a verb for each operation, and the verbs that only pass one on."""

import json

import pytest
import yaml

import paddock
from clitool import Cli

# What is no verb of a person: requests to servers in a sandbox and to models, and what clients poll.
OTHERS = {"portGet", "portHead", "portPost", "portPut", "portPatch", "portDelete", "portOptions", "previewOptions", "previewGet", "previewHead", "previewPost", "previewPut",
          "previewPatch", "previewDelete", "aiGet", "aiPost", "createWatcher", "pollWatcher", "removeWatcher", "watchFiles", "health", "healthz",
          "readyz", "openapi",
          # a wallet's page answers; the owner has `paddock wallet` and `paddock agent allow`
          "answerTransaction", "setAgentLimits", "connectWallet", "listWalletSessions", "removeWalletSession"}
# {a verb: the operations that it uses}
VERBS = {
    "create": "createSandbox", "ls": "listSandboxes", "inspect": "getSandbox", "rm": "deleteSandbox", "update": "changeSandbox",
    "extend": "extendSandbox", "pause": "pauseSandbox", "resume": "resumeSandbox", "stop": "stopSandbox", "start": "startSandbox",
    "fork": "forkSandbox", "stats": "getSandboxStats", "info": "getCapabilities getSandboxPosture", "doctor": "getPosture getDialects",
    "snapshot create": "createSnapshot", "snapshot ls": "listSnapshots", "snapshot show": "getSnapshot", "snapshot rm": "removeSnapshot",
    "workspace create": "createWorkspace", "workspace ls": "listWorkspaces", "workspace show": "getWorkspace",
    "workspace rm": "removeWorkspace", "exec": "exec startProcess writeProcessInput", "shells create": "createShell",
    "shells ls": "listShells", "shells show": "getShell", "shells rm": "removeShell", "ps": "listProcesses", "attach": "getProcess resizeProcess",
    "kill": "killProcess signalProcess", "logs": "readProcessOutput", "wait": "waitForProcess", "shell": "openTerminal",
    "code run": "execute executeInContext", "code create": "createContext", "code ls": "listContexts", "code show": "getContext",
    "code rm": "removeContext", "code restart": "restartContext", "code interrupt": "interruptContext", "ports": "listPorts",
    "url": "createPreview", "forward": "openTunnel", "link create": "createLink", "link ls": "listLinks", "link rm": "deleteLink",
    "cp": "readFile writeFile uploadFiles statFile", "files ls": "readFile", "files rm": "removeFile", "files mv": "moveFile",
    "files cp": "copyFile", "files mkdir": "makeDirectory", "files chmod": "changeMode", "files stat": "statPath", "files find": "findFiles",
    "files grep": "grepFiles", "files replace": "replaceInFile", "files sign": "signUrl", "image ls": "listImages", "image of": "createImage",
    "image import": "importImage", "image rm": "removeImage", "key create": "createKey", "key ls": "listKeys", "key rm": "removeKey",
    "events": "listEvents", "webhook create": "createWebhook", "webhook ls": "listWebhooks", "webhook show": "getWebhook",
    "webhook rm": "removeWebhook", "secret ls": "listSecrets listSandboxSecrets", "secret set": "setSecret setSandboxSecret",
    "secret rm": "removeSecret removeSandboxSecret", "vault rotate": "rotateVault", "vault ca": "getAuthority", "tenant create": "createTenant",
    "tenant ls": "listTenants", "quota set": "setQuota", "quota show": "getQuota", "egress show": "getEgress getTenantEgress",
    "egress set": "setEgress setTenantEgress", "egress reset": "resetEgress resetTenantEgress", "egress allow": "addEgressRules",
    "egress token": "createEgressToken", "egress sets": "listSandboxEgressSets listEgressSets", "egress log": "getEgressLog",
    "ai show": "getSandboxAi getTenantAi", "ai set": "setSandboxAi changeSandboxAi setTenantAi changeTenantAi",
    "ai rotate": "rotateSandboxAiToken", "ai calls": "listSandboxAiCalls getSandboxAiCall", "ai usage": "getUsage", "metrics": "metrics",
    "agent install": "installAgent uploadAgentCode", "agent ls": "listAgents", "agent show": "getAgent", "agent rm": "removeAgent",
    "agent start": "startAgent", "agent stop": "stopAgent", "agent restart": "restartAgent", "agent logs": "listAgentLogs",
    "agent upgrade": "upgradeAgent", "agent search": "listCatalogues",
    "tx ls": "listTransactions", "tx show": "getTransaction", "tx approve": "approveTransaction", "tx reject": "rejectTransaction",
    "tx cancel": "cancelTransaction", "tx speed-up": "speedUpTransaction", "tx revoke": "revokeTransaction", "tx export": "listTransactions", "tx watch": "listEvents",
    "tx pause": "pauseSigner", "tx limits": "getAgentLimits", "tx spent": "getAgentSpending getWalletSpending",
    "tx status": "getSigner listChains listWallets", "tx audit": "listSignerAudit", "audit ls": "listAudit",
    "api": "readWorkspaceFile statWorkspaceFile writeWorkspaceFile removeWorkspaceFile",
}


@pytest.fixture(scope="module")
def cli(daemon):
    return Cli(daemon)


@pytest.fixture(scope="module")
def box(api):
    with paddock.boxes_of(api) as make:
        yield make(name="verbs")


def text(done):
    assert done.returncode == 0, done
    return done.stdout.decode()


def document(done):
    return json.loads(text(done))


def test_every_operation_has_a_verb(cli):
    document = yaml.safe_load((paddock.ROOT / "api/openapi.yaml").read_text())
    operations = {one["operationId"] for path in document["paths"].values() for one in path.values() if isinstance(one, dict) and "operationId" in one}
    named = {name for names in VERBS.values() for name in names.split()}
    assert operations - named - OTHERS == set(), "no verb"
    assert named - operations == set(), "no such operation"
    overview = text(cli("help"))
    assert [verb for verb in VERBS if f"\n  {verb} " not in overview] == []


def test_files(cli, box):
    there = lambda *words: cli("files", words[0], box.id, *words[1:])  # noqa: E731
    text(there("mkdir", "-p", "/workspace/a/b"))
    box.put("/workspace/a/one.txt", b"first\nsecond Line\n")
    text(there("cp", "/workspace/a/one.txt", "/workspace/a/b/two.txt"))
    text(there("mv", "/workspace/a/b/two.txt", "/workspace/a/b/three.txt"))
    assert there("mv", "/workspace/a/one.txt", "/workspace/a/b/three.txt").returncode == 1, "not over another without --force"
    assert sorted(text(there("find", "/workspace/", "*.txt")).split()) == ["/workspace/a/b/three.txt", "/workspace/a/one.txt"]
    assert "/workspace/a/one.txt:2:second Line\n" in text(there("grep", "-i", "LINE", "/workspace"))
    assert text(there("grep", "second", "/workspace/a/one.txt")) == "/workspace/a/one.txt:2:second Line\n"
    assert there("grep", "nowhere", "/workspace").returncode == 1
    text(there("replace", "/workspace/a/one.txt", "first", "1st"))
    assert box.read("/workspace/a/one.txt").body == b"1st\nsecond Line\n"
    text(there("chmod", "-m", "0600", "/workspace/a/one.txt"))
    assert document(there("stat", "/workspace/a/one.txt"))["mode"].endswith("600")
    assert there("chmod", "/workspace/a/one.txt").returncode == 1
    listing = text(there("ls", "/workspace/a"))
    assert listing.startswith("MODE") and listing.splitlines()[2].split()[-1] == "one.txt"
    assert [entry["name"] for entry in document(there("ls", "/workspace/a", "--json"))] == ["b", "one.txt"]
    assert there("rm", "/workspace/a").returncode == 1, "a directory with something in it"
    text(there("rm", "-r", "/workspace/a"))
    assert there("stat", "/workspace/a").returncode == 1
    assert text(there("sign", "/workspace/x")).startswith("http")


def test_long_directory(cli, box):
    """More than one page of the API."""
    box.check("mkdir -p /workspace/many && cd /workspace/many && seq 1 2300 | xargs touch")
    assert len(document(cli("files", "ls", box.id, "/workspace/many", "--json"))) == 2300
    assert len(text(cli("files", "ls", box.id, "/workspace/many")).splitlines()) == 2301


def test_one_of_a_kind(cli, box):
    text(cli("shells", "create", box.id, "s"))
    assert document(cli("shells", "show", box.id, "s"))["name"] == "s"
    context = text(cli("code", "create", box.id)).strip()
    assert document(cli("code", "show", box.id, context))["id"] == context
    text(cli("code", "run", "--in", context, box.id, "-", stdin=b"x = 1"))
    text(cli("code", "restart", box.id, context))
    assert cli("code", "run", "--in", context, box.id, "-", stdin=b"print(x)").returncode == 1
    text(cli("code", "interrupt", box.id, context))
    snapshot = text(cli("snapshot", "create", box.id)).strip()
    assert document(cli("snapshot", "show", snapshot))["id"] == snapshot
    text(cli("snapshot", "rm", snapshot))
    text(cli("workspace", "create", "shown"))
    assert document(cli("workspace", "show", "shown"))["name"] == "shown"
    text(cli("workspace", "rm", "shown"))
    assert b"no-such" in cli("workspace", "show", "no-such").stderr


def test_webhooks(cli):
    made = document(cli("webhook", "create", "-e", "created", "http://127.0.0.1:1/"))
    assert made["secret"] and made["events"] == ["created"]
    assert made["id"] in text(cli("webhook", "ls"))
    assert "deliveries" in document(cli("webhook", "show", made["id"]))
    text(cli("webhook", "rm", made["id"]))
    assert made["id"] not in text(cli("webhook", "ls"))


def test_wait(cli, box):
    process = text(cli("exec", "-d", box.id, "sh", "-c", "exit 7")).strip()
    assert cli("wait", box.id, process).returncode == 7
    sleeper = text(cli("exec", "-d", box.id, "sleep", "7000")).strip()
    assert cli("wait", "--timeout", "200ms", box.id, sleeper).returncode == 124
    text(cli("kill", box.id, sleeper))
    assert cli("wait", box.id, sleeper).returncode == 137
    assert cli("wait", box.id, "999999").returncode == 125


def test_ports(cli, box):
    process = text(cli("exec", "-d", box.id, "python3", "-m", "http.server", "8123")).strip()
    paddock.until(lambda: "8123" in text(cli("ports", box.id)), "the server listens")
    assert text(cli("ports", box.id)).splitlines()[0].split() == ["PORT", "PROCESS", "PID", "URL"]
    text(cli("kill", box.id, process))


def test_the_daemon_itself(cli, box):
    assert document(cli("info"))["version"] and document(cli("info", box.id))["ok"]
    assert "# TYPE" in text(cli("metrics"))
    assert text(cli("vault", "ca")).startswith("-----BEGIN CERTIFICATE-----")
    assert "REQUESTS" in text(cli("ai", "usage", "--by", "day"))


def test_egress_of_tenants(cli, box, workdir):
    policy = workdir / "policy.json"
    policy.write_text(json.dumps({"default": "deny", "rules": [{"action": "allow", "host": "example.org"}]}))
    text(cli("tenant", "create", "with-egress"))
    text(cli("egress", "set", "--tenant", "with-egress", str(policy)))
    assert "example.org" in json.dumps(document(cli("egress", "show", "--tenant", "with-egress"))["policy"])
    text(cli("egress", "reset", "--tenant", "with-egress"))
    assert "example.org" not in json.dumps(document(cli("egress", "show", "--tenant", "with-egress"))["policy"])
    assert text(cli("egress", "token", box.id, "example.org")).startswith("http")


def test_any_request(cli, box, workdir):
    assert document(cli("api", f"/v1/sandboxes/{box.id}"))["name"] == "verbs"
    assert document(cli("api", f"/v1/sandboxes/{box.id}/exec", "-d", '{"command": "echo hi"}'))["stdout"] == "hi\n"
    body = workdir / "body"
    body.write_bytes(b"\0\1 bytes")
    text(cli("api", "-X", "PUT", "--type", "application/octet-stream", "-d", f"@{body}", f"/v1/sandboxes/{box.id}/files/workspace/raw"))
    assert cli("api", f"/v1/sandboxes/{box.id}/files/workspace/raw").stdout == b"\0\1 bytes"
    refused = cli("api", "/v1/sandboxes/nobody")
    assert refused.returncode == 1 and b"nobody" in refused.stderr
    for wrong in ("v1/sandboxes", "/v1/x y", "/a\r\nX: y"):
        assert cli("api", wrong).returncode != 0
