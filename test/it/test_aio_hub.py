"""AIO's hub of MCP servers over REST. Every answer is checked against the published document."""

import json
import socket
import struct

import paddock
from aio_shapes import call


def test_servers_and_tools(api, box):
    assert call(api, box, "GET", "/v1/mcp/servers?include_hidden=true")["data"] == ["sandbox"]
    tools = {t["name"]: t for t in call(api, box, "GET", "/v1/mcp/sandbox/tools")["data"]["tools"]}
    assert {"exec", "run_code", "file_read", "file_write"} <= set(tools) and "sandbox_create" not in tools
    assert "command" in tools["exec"]["inputSchema"]["properties"]
    unknown = call(api, box, "GET", "/v1/mcp/other/tools")
    assert unknown["success"] is False and "other" in unknown["message"]


def test_a_tool_runs_in_this_sandbox(api, box):
    done = call(api, box, "POST", "/v1/mcp/sandbox/tools/exec", {"command": "hostname; exit 3"})["data"]
    assert done["structuredContent"]["exit_code"] == 3 and done["structuredContent"]["stdout"] == box.check("hostname")
    written = call(api, box, "POST", "/v1/mcp/sandbox/tools/file_write", {"path": "/tmp/hub.txt", "content": "by the hub"})["data"]
    assert not written.get("isError"), written
    assert box.check("cat /tmp/hub.txt") == "by the hub"
    assert call(api, box, "POST", "/v1/mcp/sandbox/tools/sandbox_get", {})["data"]["structuredContent"]["id"] == box.id


def test_a_tool_that_fails(api, box):
    done = call(api, box, "POST", "/v1/mcp/sandbox/tools/file_read", {"path": "/no/such/file"})
    assert done["success"] and done["data"]["isError"] and "No such file" in done["data"]["content"][0]["text"]
    done = call(api, box, "POST", "/v1/mcp/sandbox/tools/exec", {"no": "command"})["data"]
    assert done["isError"] and "no" in done["content"][0]["text"]
    for path in ("/v1/mcp/sandbox/tools/none", "/v1/mcp/none/tools/exec", "/v1/mcp/sandbox/tools/sandbox_delete"):
        assert call(api, box, "POST", path, {})["success"] is False
    assert call(api, box, "POST", "/v1/mcp/sandbox/tools/exec", [])["detail"][0]["loc"] == ["body"]


def test_the_hub_is_for_whoever_owns_the_sandbox(box, tenant):
    assert tenant.get(f"/sandbox/{box.id}/v1/mcp/sandbox/tools").status == 404
    assert tenant.post(f"/sandbox/{box.id}/v1/mcp/sandbox/tools/exec", {"command": "id"}).status == 404


def test_a_client_that_goes_ends_the_call(daemon, box):
    """The command of a call that nobody waits for any more ends with it."""
    client = daemon.client()
    connection = client.connect()
    connection.request("POST", f"/sandbox/{box.id}/v1/mcp/sandbox/tools/exec", json.dumps({"command": "sleep 987"}).encode(),
                       client.headers({"Content-Type": "application/json"}))
    process = box.find_process("987")
    connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # so that it is no half-close
    client.close()
    assert paddock.wait_gone(process, timeout=30)
