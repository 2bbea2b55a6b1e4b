"""What the tests of agents share: anvil as the chain, a daemon that knows it, agents that are installed and removed."""

import io
import json
import socket
import subprocess
import tarfile
from pathlib import Path

import pytest

import npm
import paddock

HERE = Path(__file__).resolve().parent / "agents"
CHAIN = "eip155:31337"
RICH = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"  # anvil's first account
# What require() never reads: anvil itself, other kinds of modules, types and sources. The rest would take a minute to unpack.
UNUSED = ("@foundry-rs", "@typescript", "/_esm/", "/_types/", "/lib.esm/", "/src.ts/", "/lib/esm/", "/lib/types/", "/esm/", "/dist/web3", "/dist/ethers")
TYPES = (".map", ".d.ts", ".d.mts", ".d.cts")


def manifest(**more):
    return {"name": "Test Agent", "version": "1.0.0", "runtime": "node", "entrypoint": "index.js",
            "permissions": {"chains": [CHAIN], "apis": ["openai"]}, "resources": {"memory": "512MB", "cpu": "1.0"}, **more}


def pack(*files, **texts):
    """A tar archive of files of the tests and of texts."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name in files:
            tar.add(HERE / name, name)
        for name, text in texts.items():
            info = tarfile.TarInfo(name.replace("__", "/").replace("_dot_", "."))
            info.size = len(text)
            tar.addfile(info, io.BytesIO(text.encode()))
    return out.getvalue()


class Agent:
    def __init__(self, api, document):
        self.api, self.id = api, document["id"]
        self.path = f"/v1/agents/{self.id}"

    def get(self):
        response = self.api.get(self.path)
        assert response.status == 200, response
        return response.json()

    def upload(self, data):
        return self.api.request("PUT", f"{self.path}/code", data)

    def wait(self, *statuses, timeout=180):
        def look():
            now = self.get()
            assert now["status"] != "failed" or "failed" in statuses, now
            return now if now["status"] in statuses else None

        return paddock.until(look, f"the agent is {' or '.join(statuses)}", timeout)

    def do(self, verb):
        response = self.api.request("POST", f"{self.path}/{verb}")
        assert response.status == 200, response
        return response.json()

    def logs(self, query="limit=1000"):
        response = self.api.get(f"{self.path}/logs?{query}")
        assert response.status == 200, response
        return response.json()["entries"]

    def messages(self, source=None):
        return [e["message"] for e in self.logs() if source in (None, e["source"])]

    def until_logged(self, message, source=None):
        return paddock.until(lambda: message in self.messages(source), f"{message!r} is logged")

    def box(self):
        return paddock.Box(self.api, {"id": self.get()["sandbox"]})

    def run(self, script):
        """Runs JavaScript in the agent's sandbox, with its credentials: what it returns."""
        done = self.box().exec(["node", "/agent-code/run.js", script], cwd="/agent-code")
        assert done.exit_code == 0, done
        return json.loads(done.text)

    def remove(self):
        return self.api.delete(self.path)


@pytest.fixture(scope="module")
def modules():
    return npm.install(HERE, "agents")


@pytest.fixture(scope="module")
def anvil(modules):
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    binary = modules / "node_modules/@foundry-rs/anvil-linux-amd64/bin/anvil"
    process = subprocess.Popen([binary, "--port", str(port), "--silent"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                               preexec_fn=paddock.die_with_parent)

    def answers():
        with socket.socket() as s:
            return s.connect_ex(("127.0.0.1", port)) == 0

    paddock.until(answers, "anvil answers")
    yield port
    process.kill()
    process.wait()


@pytest.fixture(scope="module")
def daemon(daemon_factory, workdir, anvil):
    config = workdir / "agents.yaml"
    config.write_text(json.dumps({"agents": {
        "chains": {CHAIN: {"name": "Anvil", "rpc": [f"http://127.0.0.1:9/dead", f"http://127.0.0.1:{anvil}/"]},
                   "eip155:5": {"rpc": ["http://127.0.0.1:9/v3/0123456789abcdef0123456789abcdef"]}},
        "rpcs": [f"http://host.docker.internal:{anvil}"]}}))
    it = daemon_factory("agents", arguments=["--config", str(config)]).start()
    yield it
    it.finish()


@pytest.fixture(scope="module")
def api(daemon):
    return daemon.client()


@pytest.fixture(scope="module")
def install(api):
    made = []

    def make(data=None, name=None, **more):
        response = api.post("/v1/agents", {"manifest": manifest(**more), "consent": True, **({"name": name} if name else {})})
        assert response.status == 201, response
        made.append(Agent(api, response.json()))
        if data is not None:
            assert made[-1].upload(data).status == 202
        return made[-1]

    yield make
    for agent in made:
        if api.get(agent.path).status == 200:
            paddock.until(lambda a=agent: a.remove().status in (204, 404), "the agent is removed")


@pytest.fixture(scope="module")
def agent(install):
    it = install(pack("index.js", "sdk.js", "run.js"), name="shared")
    it.wait("stopped")
    it.do("start")
    it.until_logged("hello by the API")
    return it


def cli(daemon, *words):
    where = () if words[0] == "new" else ("--url", daemon.url, "--key-file", str(daemon.data_dir / "admin.key"))
    return subprocess.run([paddock.BIN / "paddock", "agent", *words, *where],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120 * paddock.SLOW, env=paddock.clean_environment())
