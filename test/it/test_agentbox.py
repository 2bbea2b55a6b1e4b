"""agentbox's service, with real clients of gRPC, gRPC-Web and Connect, and its HTTP API in a sandbox."""

import http.client
import json
import os
import re
import subprocess
import time
from pathlib import Path

import grpc
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

import npm
import paddock

SOURCE = Path(__file__).parent / "agentbox"
PROTO = paddock.ROOT / "api" / "agentbox" / "sandbox.proto"
SERVICE = "/sandbox.v1.SandboxService/"


@pytest.fixture(scope="session")
def descriptors(sessiondir):
    out = sessiondir / "agentbox.set"
    subprocess.run(["protoc", f"--proto_path={PROTO.parent}", f"--descriptor_set_out={out}", PROTO.name], check=True)
    return out


@pytest.fixture(scope="session")
def home():
    return npm.install(SOURCE, "agentbox")


@pytest.fixture(params=["grpc", "grpc-web", "connect"])
def calls(request, home, descriptors, daemon):
    """Runs calls with one client of one protocol."""
    def run(*wanted, url=daemon.url, key=daemon.key):
        done = subprocess.run(["node", SOURCE / "client.js", request.param, url, key, PROTO, descriptors],
                              input=json.dumps(wanted), capture_output=True, text=True, timeout=120,
                              env={**os.environ, "NODE_PATH": str(home / "node_modules")}, cwd=home)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    run.protocol = request.param
    return run


@pytest.fixture
def name(api):
    it = f"session-{time.monotonic_ns()}"
    yield it
    api.delete(f"/v1/sandboxes/{it}")


def test_a_session(calls, name, api):
    """The nine calls, and their exact semantics."""
    made, again, got, listed, ok, failed, cwd, late, wrote, more, read, streamed, gone, twice, after = calls(
        ["CreateSession", {"session_id": name, "allowed_hosts": ["example.org", "*.example.net"]}],
        ["CreateSession", {"session_id": name}],
        ["GetSession", {"session_id": name}],
        ["ListSessions", {}],
        ["Exec", {"session_id": name, "command": "echo out; echo err >&2; pwd; echo x > f"}],
        ["Exec", {"session_id": name, "command": "exit 7", "workdir": "/tmp"}],
        ["Exec", {"session_id": name, "command": "pwd; cat f", "workdir": "/tmp"}],
        ["Exec", {"session_id": name, "command": "echo began; sleep 60 & wait", "timeout": 3}],
        ["WriteFile", {"session_id": name, "path": "dir/x.txt", "content": "häh\n"}],
        ["WriteFile", {"session_id": name, "path": "/workspace/dir/x.txt", "content": "more", "mode": "a"}],
        ["ReadFile", {"session_id": name, "path": "dir/x.txt"}],
        ["ExecStream", {"session_id": name, "command": "echo one; sleep 2; echo zwö >&2; exit 3"}],
        ["DestroySession", {"session_id": name}],
        ["DestroySession", {"session_id": name}],
        ["GetSession", {"session_id": name}],
    )
    info = made["session"]
    assert info["session_id"] == name and info["status"] == "running" and info["container_id"]
    assert info["allowed_hosts"] == ["example.org", "*.example.net"]
    assert abs(info["created_at"] - time.time()) < 60 and info["last_activity"] >= info["created_at"]
    assert again["session"]["container_id"] == info["container_id"] == got["session"]["container_id"]
    assert name in [s["session_id"] for s in listed["sessions"]]
    assert ok == {"exit_code": 0, "stdout": "out\n/workspace\n", "stderr": "err\n", "timed_out": False}
    assert failed["exit_code"] == 7 and cwd["stdout"] == "/tmp\n" and cwd["exit_code"] == 1
    assert late["exit_code"] == -1 and late["timed_out"] and late["stdout"] == "began\n"
    assert late["stderr"] == "Command timed out"
    assert wrote["success"] and more["success"] and read["content"] == "häh\nmore"
    first, *_, last = streamed
    assert (first["type"], first["data"]) == ("stdout", "one\n") and (last["type"], last["exit_code"]) == ("exit", 3)
    assert [m["data"] for m in streamed if m["type"] == "stderr"] == ["zwö\n"]
    assert last["at"] - first["at"] > 400  # while it runs, not at the end
    assert gone["success"] and not twice["success"]
    assert after == {"failed": 5, "message": "Session not found"}


def test_unknown_names_and_bad_input(calls, name):
    results = calls(
        ["Exec", {"session_id": "nobody", "command": "true"}],
        ["ExecStream", {"session_id": "nobody", "command": "true"}],
        ["WriteFile", {"session_id": "nobody", "path": "x", "content": ""}],
        ["ReadFile", {"session_id": "nobody", "path": "x"}],
        ["PipInstall", {"session_id": "nobody", "packages": ["six"]}],
        ["GetSession", {"session_id": ""}],
        ["CreateSession", {"session_id": "../x"}],
        ["CreateSession", {"tenant_id": "../x"}],
        ["CreateSession", {"allowed_hosts": ["10.0.0.0/8"]}],
        ["CreateSession", {"session_id": name}],
        ["WriteFile", {"session_id": name, "path": "/workspace-evil/x", "content": ""}],
        ["WriteFile", {"session_id": name, "path": "/etc/passwd", "content": ""}],
        ["WriteFile", {"session_id": name, "path": "../etc/x", "content": ""}],
        ["WriteFile", {"session_id": name, "path": "/mnt/user-data/other", "content": ""}],
        ["WriteFile", {"session_id": name, "path": "x", "content": "", "mode": "q"}],
        ["ReadFile", {"session_id": name, "path": "/etc/passwd"}],
        ["ReadFile", {"session_id": name, "path": "nothing"}],
        ["WriteFile", {"session_id": name, "path": "/mnt/user-data/outputs/x", "content": "1"}],
        ["ReadFile", {"session_id": name, "path": "/mnt/user-data/outputs/x"}],
        ["PipInstall", {"session_id": name, "packages": ["--index-url=http://x", "six"]}],
        ["PipInstall", {"session_id": name, "packages": []}],
    )
    exec_, stream, write, read, pip, nobody, up, tenant, net, made, *rest = results
    assert exec_["exit_code"] == -1 and exec_["stderr"] == "Session not found" and pip == exec_
    assert [(m["type"], m["data"]) for m in stream] == [("error", "Session not found")]
    assert write["error"] == read["error"] == "Session not found" and not write["success"]
    assert nobody["failed"] == 5 and up["failed"] == tenant["failed"] == net["failed"] == 3
    assert made["session"]["session_id"] == name
    *refused, mode, passwd, missing, outputs, kept, option, none = rest
    assert all(r == {"success": False, "error": "Path not allowed", **({"_error": "error"} if "_error" in r else {})}
               for r in refused), refused
    assert not mode["success"] and passwd["error"] == "Path not allowed" and not missing["success"]
    assert outputs["success"] and kept["content"] == "1"
    assert option["exit_code"] == none["exit_code"] == -1 and option["stderr"] == "Invalid package name"


def test_links_do_not_lead_out(calls, name):
    """As the original's realpath: where a link leads decides, and not how it is written."""
    setup = "echo in > inner; ln -s inner ok; ln -s /etc/hostname link; ln -s /tmp dir; ln -s /mnt/user-data/outputs out; echo x > /tmp/x"
    _, ran, *results = calls(
        ["CreateSession", {"session_id": name}], ["Exec", {"session_id": name, "command": setup}],
        ["ReadFile", {"session_id": name, "path": "ok"}], ["WriteFile", {"session_id": name, "path": "ok", "content": "new"}],
        ["WriteFile", {"session_id": name, "path": "out/y", "content": "1"}], ["ReadFile", {"session_id": name, "path": "out/y"}],
        ["ReadFile", {"session_id": name, "path": "link"}], ["ReadFile", {"session_id": name, "path": "dir/x"}],
        ["WriteFile", {"session_id": name, "path": "dir/x", "content": "2"}], ["WriteFile", {"session_id": name, "path": "dir/new/y", "content": "3"}],
        ["WriteFile", {"session_id": name, "path": "link", "content": "4"}], ["WriteFile", {"session_id": name, "path": "dir/x", "content": "5", "mode": "a"}],
        ["Exec", {"session_id": name, "command": "cat inner /tmp/x; ls -d /tmp/new"}])
    *kept, after = results
    assert ran["exit_code"] == 0
    assert kept[0]["content"] == "in\n" and kept[1]["success"] and kept[2]["success"] and kept[3]["content"] == "1"
    assert [each["error"] for each in kept[4:]] == ["Path not allowed"] * 6
    assert after["stdout"] == "newx\n" and "No such file" in after["stderr"]


def test_sessions_that_begin_alike(calls, name, api):
    """The original names its containers by the first eight characters."""
    ids = [f"{name}-1", f"{name}-2"]
    made = calls(*(["CreateSession", {"session_id": each}] for each in ids))
    assert len({each["session"]["container_id"] for each in made}) == 2
    wrote = calls(*(["WriteFile", {"session_id": each, "path": "x", "content": each}] for each in ids),
                  *(["ReadFile", {"session_id": each, "path": "x"}] for each in ids), *(["DestroySession", {"session_id": each}] for each in ids))
    assert [each["content"] for each in wrote[2:4]] == ids and all(each["success"] for each in wrote[4:])


def test_a_timeout_leaves_nothing(calls, name):
    """The original kills the shell and leaves its children."""
    _, late, left = calls(["CreateSession", {"session_id": name}],
                          ["Exec", {"session_id": name, "command": "sleep 777 & setsid sleep 778 & sleep 779", "timeout": 1}],
                          ["Exec", {"session_id": name, "command": "pgrep -x sleep"}])
    assert late["timed_out"] and left["exit_code"] == 1, left


def test_exit_codes_are_right(calls, name):
    """Also of many commands that end at once, each with its own."""
    codes = [0, 1, 7, 126, 127, 255] * 5
    _, *done = calls(["CreateSession", {"session_id": name}], *(["Exec", {"session_id": name, "command": f"true & exit {code}"}] for code in codes))
    assert [each["exit_code"] for each in done] == codes


def test_keys(calls, daemon, name, tenant):
    """The original has none, and lists everybody's sessions."""
    key = tenant.key
    for wrong in ("", "pdk_" + "0" * 40):
        assert [r["failed"] for r in calls(["ListSessions", {}], ["CreateSession", {}], key=wrong)] == [16, 16]
    calls(["CreateSession", {"session_id": name}])
    listed, got, run = calls(["ListSessions", {}], ["GetSession", {"session_id": name}],
                             ["Exec", {"session_id": name, "command": "true"}], key=key)
    assert listed["sessions"] == [] and got["failed"] == 5 and run["stderr"] == "Session not found"


def test_tenants_have_storage(calls, name, api):
    tenant = f"t{time.monotonic_ns()}"
    made, *_ = calls(["CreateSession", {"session_id": name, "tenant_id": tenant}],
                     ["WriteFile", {"session_id": name, "path": "kept", "content": "here"}],
                     ["WriteFile", {"session_id": name, "path": "/mnt/user-data/outputs/o", "content": "out"}],
                     ["DestroySession", {"session_id": name}])
    assert made["session"]["tenant_id"] == tenant
    _, kept, out = calls(["CreateSession", {"session_id": name, "tenant_id": tenant}],
                         ["ReadFile", {"session_id": name, "path": "kept"}],
                         ["ReadFile", {"session_id": name, "path": "/mnt/user-data/outputs/o"}])
    assert kept["content"] == "here" and out["content"] == "out"
    calls(["DestroySession", {"session_id": name}])
    paddock.until(lambda: api.delete(f"/v1/workspaces/agentbox-{tenant}").status == 204, "its storage is removed")


def test_hosts_without_a_wish_are_the_usual_ones(calls, name, api):
    info = calls(["CreateSession", {"session_id": name}])[0]["session"]
    policy = api.get(f"/v1/sandboxes/{name}/egress").json()["policy"]
    sets = {rule.get("set") for rule in policy["rules"]}
    assert policy["default"] == "deny" and "github" in sets and "pypi" in sets
    assert "github.com" in info["allowed_hosts"]


def test_a_wildcard_means_the_name_itself_too(calls, name, api):
    calls(["CreateSession", {"session_id": name, "allowed_hosts": ["*.example.net"]}])
    policy = api.get(f"/v1/sandboxes/{name}/egress").json()["policy"]
    assert {rule["host"] for rule in policy["rules"]} == {"*.example.net", "example.net"}
    # No package index among them: pip is not even tried.
    done = calls(["PipInstall", {"session_id": name, "packages": ["six"]}])[0]
    assert done["exit_code"] == -1 and "allowed_hosts" in done["stderr"]


def test_pip(calls, name):
    _, done, used, streamed = calls(
        ["CreateSession", {"session_id": name}],
        ["PipInstall", {"session_id": name, "packages": ["cowsay==6.1"]}],
        ["Exec", {"session_id": name, "command": "python3 -c 'import cowsay; print(cowsay.__file__)'"}],
        ["PipInstallStream", {"session_id": name, "packages": ["cowsay==6.1"]}])
    assert done["exit_code"] == 0, done
    assert used["stdout"].startswith("/home/"), used
    assert streamed[-1]["type"] == "exit" and any("cowsay" in m["data"] for m in streamed)


# ---- Python's client, health and reflection ----


def pool_of(*files):
    pool = descriptor_pool.DescriptorPool()
    for file in files:
        pool.Add(file)
    return pool


def proto(path):
    """The messages of a .proto file by their full names."""
    out = subprocess.run(["protoc", f"--proto_path={path.parent}", "--descriptor_set_out=/dev/stdout", path.name],
                         check=True, capture_output=True).stdout
    pool = pool_of(*descriptor_pb2.FileDescriptorSet.FromString(out).file)
    factory = message_factory.MessageFactory(pool)
    return lambda name: factory.GetPrototype(pool.FindMessageTypeByName(name))


@pytest.fixture
def channel(daemon):
    with grpc.insecure_channel(f"{daemon.host}:{daemon.port}") as it:
        yield it


def bearer(daemon):
    return (("authorization", f"Bearer {daemon.key}"),)


def test_grpcio(channel, daemon, name):
    of = proto(PROTO)

    def call(method, request, reply, kind="unary_unary", **fields):
        message = of(f"sandbox.v1.{request}")(**fields)
        stub = getattr(channel, kind)(SERVICE + method, request_serializer=lambda m: m.SerializeToString(),
                                      response_deserializer=of(f"sandbox.v1.{reply}").FromString)
        return stub(message, metadata=bearer(daemon), timeout=30)

    assert call("CreateSession", "CreateSessionRequest", "CreateSessionResponse", session_id=name).session.status == "running"
    done = call("Exec", "ExecRequest", "ExecResponse", session_id=name, command="printf 'a\\xffb'")
    assert done.stdout == "a�b" and done.exit_code == 0
    stream = call("ExecStream", "ExecStreamRequest", "ExecStreamResponse", "unary_stream", session_id=name,
                  command="head -c 3000000 /dev/zero | tr '\\0' x")
    got = list(stream)
    assert sum(len(m.data) for m in got) == 3000000 and got[-1].type == "exit"
    # A client that goes away ends its command.
    stream = call("ExecStream", "ExecStreamRequest", "ExecStreamResponse", "unary_stream", session_id=name,
                  command="echo on; exec sleep 1000")
    assert next(stream).data == "on\n"
    stream.cancel()

    def gone():
        return call("Exec", "ExecRequest", "ExecResponse", session_id=name, command="pgrep -x sleep").exit_code == 1

    paddock.until(gone, "the command ends")


def test_health(channel):
    of = proto(paddock.ROOT / "api" / "grpc" / "health.proto")
    check = channel.unary_unary("/grpc.health.v1.Health/Check", request_serializer=lambda m: m.SerializeToString(),
                                response_deserializer=of("grpc.health.v1.HealthCheckResponse").FromString)
    for service in ("", "sandbox.v1.SandboxService"):
        assert check(of("grpc.health.v1.HealthCheckRequest")(service=service), timeout=10).status == 1
    with pytest.raises(grpc.RpcError) as failed:
        check(of("grpc.health.v1.HealthCheckRequest")(service="nothing"), timeout=10)
    assert failed.value.code() == grpc.StatusCode.NOT_FOUND


@pytest.mark.parametrize("version", ["v1", "v1alpha"])
def test_reflection(channel, daemon, version):
    of = proto(paddock.ROOT / "api" / "grpc" / "reflection.proto")
    ask = of("grpc.reflection.v1.ServerReflectionRequest")
    method = channel.stream_stream(f"/grpc.reflection.{version}.ServerReflection/ServerReflectionInfo",
                                   request_serializer=lambda m: m.SerializeToString(),
                                   response_deserializer=of("grpc.reflection.v1.ServerReflectionResponse").FromString)
    asked = [ask(list_services=""), ask(file_containing_symbol="sandbox.v1.SandboxService.Exec"),
             ask(file_by_filename="sandbox.proto"), ask(file_containing_symbol="no.such")]
    services, symbol, file, none = method(iter(asked), metadata=bearer(daemon), timeout=10)
    assert "sandbox.v1.SandboxService" in [s.name for s in services.list_services_response.service]
    # Enough for a client that knows nothing: the service by its description alone.
    described = descriptor_pb2.FileDescriptorProto.FromString(symbol.file_descriptor_response.file_descriptor_proto[0])
    assert {m.name for m in described.service[0].method} >= {"CreateSession", "ExecStream", "PipInstall"}
    assert file.file_descriptor_response == symbol.file_descriptor_response
    assert none.error_response.error_code == 5
    with pytest.raises(grpc.RpcError) as failed:
        list(method(iter(asked), timeout=10))
    assert failed.value.code() == grpc.StatusCode.UNAUTHENTICATED


# ---- in a sandbox: port 2024 ----


def inside(box, method, path, body=None):
    headers = {"Host": f"2024-{box.id}.localhost:{box.client.daemon.port}", "Content-Type": "application/json"}
    return box.client.request(method, path, json.dumps(body) if body is not None else None, headers)


def test_the_api_in_a_sandbox(make_box):
    box = make_box()
    assert inside(box, "GET", "/health").json() == {"status": "ok"}
    assert inside(box, "POST", "/exec", {"command": "echo a; echo b >&2; exit 4"}).json() == \
        {"exit_code": 4, "stdout": "a\n", "stderr": "b\n", "timed_out": False}
    late = inside(box, "POST", "/exec", {"command": "sleep 60", "timeout": 1}).json()
    assert late == {"exit_code": -1, "stdout": "", "stderr": "Command timed out", "timed_out": True}
    text = inside(box, "POST", "/exec/stream", {"command": "echo a; sleep 0.1; echo b >&2; exit 2"}).body.decode()
    lines = [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: ")]
    assert "event:" not in text and lines == [{"type": "stdout", "data": "a\n"}, {"type": "stderr", "data": "b\n"},
                                              {"type": "exit", "exit_code": 2}]
    assert inside(box, "POST", "/file/write", {"path": "x", "content": "1"}).json() == {"success": True}
    assert inside(box, "POST", "/file/write", {"path": "x", "content": "2", "mode": "a"}).json() == {"success": True}
    assert inside(box, "POST", "/file/read", {"path": "/workspace/x"}).json() == {"success": True, "content": "12"}
    assert inside(box, "POST", "/file/read", {"path": "nothing"}).json()["success"] is False
    refused = inside(box, "POST", "/file/write", {"path": "/workspace-evil/x", "content": ""})
    assert refused.status == 403 and refused.json() == {"error": "Path not allowed"}
    for body in ({}, {"command": 1}):
        assert inside(box, "POST", "/exec", body).status == 400
    stranger = paddock.Client(box.client.daemon, "pdk_" + "0" * 40)
    refused = inside(box.with_client(stranger), "POST", "/exec", {"command": "true"})
    assert refused.status == 404 and refused.json() == {"error": "no such sandbox"}
    stranger.close()


@pytest.mark.parametrize("made", ["rest", "e2b"])
def test_public_ports_do_not_open_it(api, daemon, make_box, made):
    """Everybody reaches the servers of such a sandbox, and nobody runs commands in it."""
    if made == "rest":
        box = make_box(ports_public=True)
    else:
        document = api.post("/sandboxes", {"templateID": "base"}).json()
        daemon.saw(document["sandboxID"])
        box = paddock.Box(api, {"id": document["sandboxID"]})
    assert inside(box, "POST", "/exec", {"command": "true"}).json()["exit_code"] == 0
    nobody = paddock.Client(daemon)
    public = nobody.request("GET", "/", headers={"Host": f"9-{box.id}.localhost:{daemon.port}"})
    assert public.status == 502 and "port is not open" in public.json()["message"], "the control: others are reached"
    for path, body in (("/exec", {"command": "touch /tmp/was-here"}), ("/exec/stream", {"command": "touch /tmp/was-here"}),
                       ("/file/write", {"path": "was-here", "content": ""}), ("/file/read", {"path": "/workspace"})):
        refused = inside(box.with_client(nobody), "POST", path, body)
        assert refused.status == 403 and set(refused.json()) == {"error"}, refused
    assert inside(box.with_client(nobody), "GET", "/health").status == 403
    assert inside(box, "POST", "/exec", {"command": "ls /tmp/was-here /workspace/was-here"}).json()["stdout"] == ""
    nobody.close()
    if made == "e2b":
        assert api.delete(f"/sandboxes/{box.id}").status == 204


def test_links_at_the_port(make_box):
    box = make_box()
    box.check("ln -s /etc/hostname /workspace/link; echo in > /workspace/inner; ln -s inner /workspace/ok")
    assert inside(box, "POST", "/file/read", {"path": "ok"}).json() == {"success": True, "content": "in\n"}
    for path, body in (("/file/read", {"path": "link"}), ("/file/write", {"path": "link", "content": "x"})):
        refused = inside(box, "POST", path, body)
        assert refused.status == 403 and refused.json() == {"error": "Path not allowed"}, refused


# ---- as agentbox is started ----


def test_sessions_survive_a_restart(own_daemon, home, descriptors, calls):
    """The original forgets its containers, and leaves them."""
    daemon = own_daemon().start()
    calls(["CreateSession", {"session_id": "kept", "allowed_hosts": ["example.org"]}], ["WriteFile", {"session_id": "kept", "path": "x", "content": "1"}],
          url=daemon.url, key=daemon.key)
    daemon.restart()
    listed, read, again = calls(["ListSessions", {}], ["ReadFile", {"session_id": "kept", "path": "x"}], ["CreateSession", {"session_id": "kept"}],
                                url=daemon.url, key=daemon.key)
    assert [each["session_id"] for each in listed["sessions"]] == ["kept"] and read["content"] == "1"
    assert again["session"]["allowed_hosts"] == ["example.org"]


def test_its_variables(own_daemon, home, descriptors, calls):
    daemon = own_daemon(arguments=["--agentbox-env"],
                        environment={"GRPC_PORT": "0", "SESSION_TIMEOUT": "99", "SANDBOX_RUNTIME": "runsc",
                                     "SIGNING_KEY": "x", "SANDBOX_IMAGE": "agentbox-sandbox:latest"}).start()
    port = int(re.search(r"listening on \S+:(\d+) for agentbox", daemon.log(1000))[1])
    made, run = calls(["CreateSession", {"session_id": "s1"}], ["Exec", {"session_id": "s1", "command": "echo hi"}],
                      url=f"http://127.0.0.1:{port}", key="")
    assert made["session"]["status"] == "running" and run["stdout"] == "hi\n"
    assert daemon.client().get("/v1/sandboxes/s1").json()["idle_seconds"] == 99
    log = daemon.log(1000)
    assert "SANDBOX_RUNTIME is not honoured" in log and "SIGNING_KEY is not honoured" in log
    # Only there, only from here: a page of another site, a wrong key and the main address get nothing.
    assert calls(["ListSessions", {}], url=daemon.url, key="")[0]["failed"] == 16
    assert calls(["ListSessions", {}], url=f"http://127.0.0.1:{port}", key="wrong")[0]["failed"] == 16
    for headers in ({"Origin": "http://evil.example"}, {"Host": f"evil.example:{port}"}):
        connection = http.client.HTTPConnection("127.0.0.1", port)
        connection.request("POST", SERVICE + "ListSessions", "{}", {"Content-Type": "application/json", **headers})
        assert connection.getresponse().status == 401
        connection.close()


def test_anonymous_is_for_loopback(tmp_path):
    file = tmp_path / "paddock.yaml"
    file.write_text("listeners: [{address: '0.0.0.0:50051', dialect: agentbox, anonymous: true}]\n")
    done = subprocess.run([paddock.BIN / "paddock", "config", "check", "--config", file], capture_output=True, text=True,
                          env=paddock.clean_environment())
    assert done.returncode == 1 and "loopback" in done.stderr
