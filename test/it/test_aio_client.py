"""PyPI's agent-sandbox, unmodified, synchronous and asynchronous, against a real sandbox: aio/program.py.

It runs below /sandbox/{name}, and at the root of a listener that is bound to one sandbox, with a key and without one.
"""

import fcntl
import http.client
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import paddock

HERE = Path(__file__).resolve().parent / "aio"
HOME = HERE.parents[2] / "build" / "aio-client"


@pytest.fixture(scope="module")
def python():
    """A Python with the packages of requirements.txt and no others, made once, by one of the test processes."""
    wanted = (HERE / "requirements.txt").read_bytes()
    HOME.parent.mkdir(exist_ok=True)
    with HOME.with_suffix(".lock").open("w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        stamp = HOME / "installed"
        if not stamp.exists() or stamp.read_bytes() != wanted:
            shutil.rmtree(HOME, ignore_errors=True)
            subprocess.run([sys.executable, "-m", "venv", HOME], check=True, timeout=120)
            subprocess.run([HOME / "bin" / "pip", "install", "--quiet", "--disable-pip-version-check", "--require-hashes", "--no-deps",
                            "--only-binary", ":all:", "-r", HERE / "requirements.txt"], check=True, timeout=300)
            stamp.write_bytes(wanted)
    return HOME / "bin" / "python"


def run(python, kind, url, key):
    done = subprocess.run([python, HERE / "program.py", kind, url, key], capture_output=True, text=True, timeout=120 * paddock.SLOW)
    assert done.returncode == 0 and done.stdout == "done\n", done.stderr


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_the_published_client(python, make_box, daemon, kind):
    run(python, kind, f"{daemon.url}/sandbox/{make_box().id}", daemon.key)


# ---- at the root of a listener ----

@pytest.fixture(scope="module")
def bound(daemon_factory):
    """A daemon with two listeners for the sandbox "pet": {with a key, without}. `url` has their addresses."""
    it = daemon_factory("bound")
    file = it.base / "paddock.yaml"
    file.write_text("listeners:\n  - {address: 127.0.0.1:0, dialect: aio, sandbox: pet}\n"
                    "  - {address: '[::1]:0', dialect: aio, sandbox: pet, anonymous: true}\n")
    it.arguments = ["--config", str(file)]
    it.start()
    client = it.client()
    it.pet = client.create(name="pet")
    it.listeners = [(host, int(port)) for host, port in re.findall(r"listening on (\S+):(\d+) for aio", it.log(1000))]
    yield it
    it.pet.delete()
    it.finish()


def ask(listener, method, path, body=None, **headers):
    connection = http.client.HTTPConnection(listener[0].strip("[]"), listener[1], timeout=60 * paddock.SLOW)
    headers = {k.replace("_", "-"): v for k, v in headers.items()}
    connection.request(method, path, None if body is None else json.dumps(body), {"Content-Type": "application/json", **headers})
    answer = connection.getresponse()
    found = answer.status, answer.read()
    connection.close()
    return found


def test_at_the_root_of_a_listener(python, bound):
    host, port = bound.listeners[0]
    run(python, "sync", f"http://{host}:{port}", bound.key)


def test_a_listener_without_keys(python, bound):
    """The program of the package's first page has none."""
    host, port = bound.listeners[1]
    run(python, "async", f"http://{host}:{port}", "-")


def test_what_a_bound_listener_serves(bound):
    keyed, open_to_all = bound.listeners
    assert ask(keyed, "GET", "/v1/sandbox")[0] == 401
    assert ask(keyed, "GET", "/v1/sandbox", X_AIO_API_Key="pdk_" + "0" * 40)[0] == 401
    status, body = ask(keyed, "GET", "/v1/sandbox", X_AIO_API_Key=bound.key)
    assert status == 200 and json.loads(body)["home_dir"] == "/home/user"
    assert ask(keyed, "GET", "/v1/sandboxes", X_AIO_API_Key=bound.key)[0] == 404  # no other dialect
    ticket = json.loads(ask(keyed, "POST", "/tickets", {}, X_AIO_API_Key=bound.key)[1])["ticket"]
    assert ask(keyed, "GET", f"/auth?ticket={ticket}")[0] == 200
    assert ask(open_to_all, "GET", "/v1/sandbox")[0] == 200
    assert ask(open_to_all, "GET", "/v1/sandbox", X_AIO_API_Key="pdk_" + "0" * 40)[0] == 401  # a bad key is no key
    assert ask(open_to_all, "GET", "/v1/sandbox", Origin="http://evil.example")[0] == 401
    assert ask(open_to_all, "GET", "/v1/sandbox", Host="evil.example")[0] == 401
    # A page of this machine's other servers, and a page that has the browser fetch without an Origin.
    here = f"[::1]:{open_to_all[1]}"
    for origin in ("http://localhost:3000", "http://127.0.0.1:1", "http://[::1]", "http://[::1]:1", f"https://localhost:{open_to_all[1]}", "null"):
        assert ask(open_to_all, "GET", "/v1/sandbox", Origin=origin)[0] == 401, origin
    assert ask(open_to_all, "GET", "/v1/sandbox", Origin=f"http://{here}")[0] == 200
    for site, status in (("cross-site", 401), ("same-site", 401), ("same-origin", 200), ("none", 200)):
        assert ask(open_to_all, "GET", "/v1/sandbox", Sec_Fetch_Site=site)[0] == status, site
    # The sandbox's MCP is there, too.
    listing = {"jsonrpc": "2.0", "id": 1, "method": "tools/list",
               "params": {"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {},
                                    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"}}}}
    for path in ("/mcp", "/v1/mcp"):
        status, body = ask(keyed, "POST", path, listing, Authorization=f"Bearer {bound.key}", Accept="application/json, text/event-stream",
                           MCP_Protocol_Version="2026-07-28", Mcp_Method="tools/list")
        names = [t["name"] for t in json.loads(body)["result"]["tools"]]
        assert status == 200 and "exec" in names and "sandbox_create" not in names
        assert ask(keyed, "POST", path, listing, Accept="application/json, text/event-stream")[0] == 401
    # A server in the sandbox.
    run_server = {"command": "exec python3 -m http.server 8123 --bind 127.0.0.1", "async_mode": True, "exec_dir": "/usr/share"}
    assert ask(open_to_all, "POST", "/v1/bash/exec", run_server)[0] == 200
    paddock.until(lambda: ask(open_to_all, "GET", "/proxy/8123/")[0] == 200, "the server in the sandbox")
    assert ask(keyed, "GET", "/proxy/8123/")[0] == 401


def test_a_bound_listener_knows_one_sandbox(bound):
    """Another of the same tenant is not there, by no path and for nobody; by its own id its sandbox is."""
    client = bound.client()
    other = client.create(name="other")
    for listener, headers in ((bound.listeners[0], {"X_AIO_API_Key": bound.key}), (bound.listeners[1], {})):
        for name in ("other", other.id, "nobody", "%6fther"):
            for path in ("/v1/sandbox", "/v1/mcp", "/mcp", "/tickets", "/terminal", "/proxy/8123/", "/absproxy/8123/", ""):
                for method in ("GET", "POST"):
                    assert ask(listener, method, f"/sandbox/{name}{path}", **headers)[0] == 404, (name, path)
        status, body = ask(listener, "POST", f"/sandbox/{other.id}/v1/bash/exec", {"command": "touch /tmp/was-here"}, **headers)
        assert status == 404, body
        for name in ("pet", bound.pet.id):
            assert ask(listener, "GET", f"/sandbox/{name}/v1/sandbox", **headers)[0] == 200, name
    assert other.exec("test -e /tmp/was-here").exit_code == 1
    # The control: at the common listener it is there.
    answer = client.get("/sandbox/other/v1/sandbox")
    assert answer.status == 200
    other.delete()
    client.close()
