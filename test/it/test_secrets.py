"""Secrets: kept by paddock-vault, used by boxes, never shown.

The canary tests look for a value where it must not be (canary.py).
"""

import base64
import hashlib
import http.client
import json
import os
import re
import resource
import secrets as random
import signal
import socket
import subprocess
from pathlib import Path

import pytest

import paddock
from canary import canary, forms, in_files, in_memory, memory_has, nowhere, tree_has  # noqa: F401 (others have them from here)


def vault_pid(daemon):
    def look():
        return [pid for pid, name in daemon.programs().items() if name == "paddock-vault"]

    return paddock.until(look, "there is a paddock-vault")[0]


def kill_vault(daemon):
    pid = vault_pid(daemon)
    daemon.api_kills += 1
    paddock.kill(pid)
    assert paddock.wait_gone(pid)
    paddock.until(lambda: vault_pid(daemon) != pid, "a new paddock-vault")


def put(client, name, value, box=None, **more):
    path = f"/v1/sandboxes/{box.id}/secrets/{name}" if box else f"/v1/secrets/{name}"
    return client.send_json("PUT", path, {"value": value, **more})


# ---- the API --------------------------------------------------------------


@pytest.fixture
def tenant(daemon):
    """Clients of two tenants of their own."""
    admin, made = daemon.client(), []
    for name in ("a", "b"):
        response = admin.post("/v1/keys", {"name": "t", "role": "user", "tenant": f"{name}{random.token_hex(4)}", "create_tenant": True})
        assert response.status == 201, response
        made.append(daemon.client(key=response.json()["key"]))
    yield made
    for client in (*made, admin):
        client.close()


def test_set_list_replace_remove(tenant):
    mine, other = tenant
    first = put(mine, "TOKEN", "one")
    assert first.status == 201 and first.json()["version"] == 1
    second = put(mine, "TOKEN", base64.b64encode(b"\0binary").decode(), encoding="base64")
    assert second.status == 200 and second.json()["version"] == 2
    assert put(mine, "another.name-1", "x").status == 201
    listed = mine.get("/v1/secrets").json()["secrets"]
    assert [entry["name"] for entry in listed] == ["TOKEN", "another.name-1"]
    assert [entry["version"] for entry in listed[0]["versions"]] == [2, 1]
    assert all(re.match(r"^\d{4}-\d\d-\d\dT", entry["updated_at"]) for entry in listed)
    assert set(listed[0]) == {"name", "version", "updated_at", "versions", "metadata"}
    # nobody else's
    assert other.get("/v1/secrets").json() == {"secrets": []}
    assert other.delete("/v1/secrets/TOKEN").status == 404
    # there is no way to read one
    assert mine.get("/v1/secrets/TOKEN").status == 405
    assert mine.delete("/v1/secrets/TOKEN").status == 204
    assert mine.delete("/v1/secrets/TOKEN").code() == "not_found"
    assert [entry["name"] for entry in mine.get("/v1/secrets").json()["secrets"]] == ["another.name-1"]


def test_metadata(tenant):
    mine, _ = tenant
    box = mine.create()
    for whose, path in ((None, "/v1/secrets"), (box, f"{box.path}/secrets")):
        assert put(mine, "NOTED", "v", whose).json()["metadata"] == {}
        noted = {"team": "billing", "häslein": "", "k" * 128: "v" * 1024}
        assert put(mine, "NOTED", "v", whose, metadata=noted).json()["metadata"] == noted
        assert put(mine, "NOTED", "v", whose, metadata=None).json()["metadata"] == noted, "without any they stay"
        listed = mine.get(path).json()["secrets"]
        assert [entry["metadata"] for entry in listed if entry["name"] == "NOTED"] == [noted]
        for bad in ({"": "x"}, {"k" * 129: ""}, {"k": "v" * 1025}, {str(i): "" for i in range(33)}, {str(i): "v" * 1024 for i in range(8)}, {"k": 1}):
            assert put(mine, "NOTED", "v", whose, metadata=bad).status == 400, bad
        assert put(mine, "NOTED", "v", whose, metadata={}).json() | {"updated_at": 0, "versions": 0} == {
            "name": "NOTED", "version": 4, "metadata": {}, "updated_at": 0, "versions": 0}
        assert mine.delete(f"{path}/NOTED").status == 204
    box.delete()


def test_versions_are_kept_up_to_eight(tenant):
    mine = tenant[0]
    for number in range(10):
        assert put(mine, "V", f"v{number}").status in (200, 201)
    versions = mine.get("/v1/secrets").json()["secrets"][0]["versions"]
    assert [entry["version"] for entry in versions] == [10, 9, 8, 7, 6, 5, 4, 3]


@pytest.mark.parametrize("name, body, status", [
    ("1digit", {"value": "x"}, 400), ("a" * 65, {"value": "x"}, 400), ("a%20b", {"value": "x"}, 400),
    ("ok", {"value": ""}, 400), ("ok", {}, 400), ("ok", {"value": 7}, 400), ("ok", {"value": "x", "more": 1}, 400),
    ("ok", {"value": "???", "encoding": "base64"}, 400), ("ok", {"value": "x", "encoding": "rot13"}, 400),
    ("ok", {"value": "x" * 65537}, 400),
])
def test_bad_values_are_refused(api, name, body, status):
    response = api.send_json("PUT", f"/v1/secrets/{name}", body)
    assert response.status == status, response
    assert response.code() == "invalid_argument"


def test_the_largest_value_arrives(tenant, daemon):
    mine = tenant[0]
    assert put(mine, "BIG", "y" * 65536).status == 201
    box = mine.create(secrets=[{"name": "BIG", "file": "big"}])
    assert box.check(["stat", "-c", "%s %a %U", "/run/secrets/big"]) == "65536 400 user\n"
    box.delete()


def test_secrets_of_a_box(tenant):
    mine, other = tenant
    box = mine.create()
    assert put(mine, "KEY", "of-the-tenant").status == 201
    assert put(other, "KEY", "foreign", box).status == 404
    run = {"secrets": [{"name": "KEY", "env": "KEY"}]}
    assert box.check("echo $KEY", **run) == "of-the-tenant\n"
    assert put(mine, "KEY", "of-the-box", box).status == 201
    assert box.check("echo $KEY", **run) == "of-the-box\n"
    assert [entry["name"] for entry in mine.get(f"{box.path}/secrets").json()["secrets"]] == ["KEY"]
    assert mine.delete(f"{box.path}/secrets/KEY").status == 204
    assert box.check("echo $KEY", **run) == "of-the-tenant\n"
    box.delete()


def test_a_removed_box_takes_its_secrets_along(daemon):
    client = daemon.client()
    box = client.create()
    files = daemon.data_dir / "vault" / "secrets"
    before = set(os.listdir(files))
    assert put(client, "OWN", "x", box).status == 201
    assert set(os.listdir(files)) - before
    box.delete()
    paddock.until(lambda: set(os.listdir(files)) <= before, "the sealed file is gone")
    client.close()


# ---- mounted --------------------------------------------------------------


def test_mounted_file_and_variable(tenant):
    mine, value = tenant[0], canary()
    assert put(mine, "TOKEN", "old").status == 201
    assert put(mine, "TOKEN", value).status == 200
    wish = [{"name": "TOKEN", "file": "token"}, {"name": "TOKEN", "env": "TOKEN"}, {"name": "TOKEN", "env": "OLD", "version": 1}]
    box = mine.create(secrets=wish)
    assert box.get()["secrets"] == wish
    assert box.check("cat /run/secrets/token; echo; echo $TOKEN; echo $OLD") == f"{value}\n{value}\nold\n"
    assert box.check(["stat", "-c", "%a %U", "/run/secrets/token"]) == "400 user\n"
    assert box.check(["stat", "-f", "-c", "%T", "/run/secrets"]) == "tmpfs\n"
    # a command's own variables go before the box's
    assert box.check("echo $TOKEN", env={"TOKEN": "mine"}) == "mine\n"
    # they are there after a stop and a start, with the value of then
    assert put(mine, "TOKEN", "newer").status == 200
    assert mine.post(f"{box.path}/stop", {}).status == 200
    assert mine.post(f"{box.path}/start", {}).status == 200
    assert box.check("cat /run/secrets/token; echo; echo $TOKEN") == "newer\nnewer\n"
    box.delete()


def test_variable_of_one_command_only(tenant):
    mine, value = tenant[0], canary()
    assert put(mine, "TOKEN", value).status == 201
    box = mine.create()
    assert box.check("echo $TOKEN", secrets=[{"name": "TOKEN", "env": "TOKEN"}]) == value + "\n"
    assert box.check("echo $TOKEN") == "\n"
    box.delete()


def ways(client, box):
    """Everything that takes secrets for one thing that is run: functions of a script for bash, and the wish."""
    def send(path, document):
        return client.post(f"{box.path}/{path}", document)

    def stream(path, document):
        return client.request("POST", f"{box.path}/{path}", json.dumps(document).encode(),
                              {"Content-Type": "application/json", "Accept": "application/x-ndjson"})

    return {
        "exec": lambda script, **more: send("exec", {"command": script, **more}),
        "stream": lambda script, **more: stream("exec", {"command": script, **more}),
        "shell": lambda script, **more: send("exec", {"command": script, "shell": "work", **more}),
        "process": lambda script, **more: stream("processes", {"command": script, **more}),
        "bash": lambda script, **more: send("execute", {"language": "bash", "code": script, **more}),
        "python": lambda script, **more: send("execute", {
            "code": f"import subprocess; print(subprocess.run(['bash', '-c', {script!r}], capture_output=True, text=True).stdout)", **more}),
        "javascript": lambda script, **more: send("execute", {
            "language": "javascript", "code": f"console.log(require('child_process').execFileSync('bash', ['-c', {json.dumps(script)}]).toString())", **more}),
    }


WAYS = ("exec", "stream", "shell", "process", "bash", "python", "javascript")
BIG = 60000


@pytest.mark.parametrize("way", WAYS)
def test_variable_of_whatever_is_run(tenant, way):
    mine, value = tenant[0], "it's \"quoted\" $HOME `id` \\ " + canary()
    box = mine.create(secrets=[])
    assert put(mine, "TOKEN", value).status == 201 and put(mine, "BIG", "b" * BIG).status == 201
    run = ways(mine, box)[way]
    # a digest, so that the value is in the environment and not in the answer
    script = 'printf %s "$TOKEN" | sha256sum; echo "${#BIG}"; env | grep -c ^TOKEN=; echo "old:$OLD"'
    digest = hashlib.sha256(value.encode()).hexdigest()
    wish = [{"name": "TOKEN", "env": "TOKEN"}, {"name": "BIG", "env": "BIG"}]
    answer = run(script, secrets=wish)
    assert answer.status == 200, answer
    text = answer.body.decode()
    assert digest in text and str(BIG) in text and value.split()[-1] not in text, text[:2000]
    # afterwards it is gone, from the environment and, but for what bash and interpreters leave in theirs, from all memory
    after = run('echo "left:${TOKEN-none}:${BIG-none}"')
    assert b"left:none:none" in after.body, after
    needles = {value.encode()}
    keeps = {"shell": "bash", "bash": "bash", "python": "python3", "javascript": "node"}.get(way)
    wiped = [mine.daemon.api_pid(), *(pid for pid in box.processes() if paddock.comm(pid) != keeps)]
    assert box.pid1() in wiped
    paddock.until(lambda: not any(memory_has(pid, needles) for pid in wiped), "nobody else has it")
    for bad, code in [([{"name": "NONE", "env": "X"}], "not_found"), ([{"name": "TOKEN", "file": "x"}], "invalid_argument"),
                      ([{"name": "TOKEN"}], "invalid_argument"), ([{"name": "TOKEN", "env": "a=b"}], "invalid_argument"),
                      ([{"name": "TOKEN", "env": "X", "version": 9}], "not_found"), ("x", "invalid_argument")]:
        assert run("true", secrets=bad).code() == code, bad
    box.delete()


def test_secrets_of_a_shells_command_do_not_stay(tenant):
    """However the command ends: by itself, by `exit`, by `set -e`, out of time; and whatever it does with them."""
    mine, value = tenant[0], canary()
    assert put(mine, "TOKEN", value).status == 201
    box = mine.create()
    wish = {"shell": "s", "secrets": [{"name": "TOKEN", "env": "TOKEN"}]}
    assert box.check("export KEPT=1; cd /tmp", shell="s") == ""
    for command, status in (("test -n \"$TOKEN\"", 0), ("export TOKEN; export TOKEN=$TOKEN", 0), ("(exit 7)", 7), ("exit 3", 3),
                            ("set -e; false", 1), ("declare -gx TOKEN", 0), ("f() { test -n \"$TOKEN\"; }; f", 0), ("no ( such", 2)):
        result = box.try_exec(command, **wish)
        assert result.status == 200 and result.json()["exit_code"] == status, (command, result)
        left = box.check("echo ${TOKEN-none} $KEPT $PWD; env | grep -c ^TOKEN=; set +e", shell="s")
        assert left == "none 1 /tmp\n0\n", command
    assert box.try_exec("while :; do :; done", timeout_ms=300, **wish).json()["timed_out"]
    assert box.check("echo ${TOKEN-none} $KEPT", shell="s") == "none 1\n"
    # what it exported for good is the shell's
    assert box.check("export MORE=2; echo $TOKEN | wc -c", **wish) == f"{len(value) + 1}\n"
    assert box.check("echo $MORE; exit", shell="s") == "2\n"
    assert box.check("echo $MORE ${TOKEN-none}", shell="s") == "2 none\n"
    assert not memory_has(mine.daemon.api_pid(), {value.encode()})
    for more in ({"env": {"A": "b"}}, {"user": "root"}):
        assert box.try_exec("true", **wish, **more).code() == "invalid_argument"
    box.delete()


def test_secrets_of_a_process_end_with_it(tenant):
    mine, value = tenant[0], canary()
    needles = {value.encode()}
    assert put(mine, "TOKEN", value).status == 201
    box = mine.create()
    started = mine.post(f"{box.path}/processes", {"argv": ["sleep", "600"], "tag": "one", "secrets": [{"name": "TOKEN", "env": "TOKEN"}]})
    assert started.status == 201, started
    # PID 1 answers first and wipes then
    paddock.until(lambda: [paddock.comm(pid) for pid in box.processes() if memory_has(pid, needles)] == ["sleep"],
                  "it has it, and nobody else")
    listed = mine.get(f"{box.path}/processes")
    assert listed.status == 200 and value not in listed.body.decode()
    assert mine.post(f"{box.path}/processes/one/signal", {"signal": "KILL"}).status in (200, 204)
    paddock.until(lambda: "sleep" not in [paddock.comm(pid) for pid in box.processes()], "it has ended")
    paddock.until(lambda: not any(memory_has(pid, needles) for pid in (*box.processes(), *mine.daemon.programs())), "nobody has it")
    box.delete()


@pytest.mark.parametrize("wish, code", [
    ([{"name": "NO_SUCH", "env": "X"}], "not_found"),
    ([{"name": "X", "file": "../x"}], "invalid_argument"),
    ([{"name": "X", "file": "/etc/passwd"}], "invalid_argument"),
    ([{"name": "X", "file": "a", "env": "A"}], "invalid_argument"),
    ([{"name": "X", "env": "A"}, {"name": "Y", "env": "A"}], "invalid_argument"),
    ([{"name": "X", "env": "A"}] * 65, "invalid_argument"),
])
def test_bad_mounts_make_no_box(api, wish, code):
    before = {box["id"] for box in api.list()}
    assert api.try_create(secrets=wish).code() == code
    assert {box["id"] for box in api.list()} == before


def test_forks_and_snapshots_have_none(tenant):
    mine, value = tenant[0], canary()
    assert put(mine, "TOKEN", value).status == 201
    box = mine.create(secrets=[{"name": "TOKEN", "file": "token"}, {"name": "TOKEN", "env": "TOKEN"}])
    assert put(mine, "OWN", value, box).status == 201
    response = mine.post(f"{box.path}/fork", {"count": 1})
    assert response.status in (200, 201), response
    fork = paddock.Box(mine, response.json()["sandboxes"][0])
    mine.daemon.saw(fork.id)
    assert fork.check("ls /run/secrets 2>/dev/null; echo $TOKEN") == "\n"
    assert fork.get()["secrets"] == []
    assert mine.get(f"{fork.path}/secrets").json() == {"secrets": []}
    fork.delete()
    box.delete()


# ---- the canary -----------------------------------------------------------


def test_canary_is_nowhere_else(own_daemon):
    """A secret that is only stored, then one that is mounted: where is the value, and where not?"""
    daemon = own_daemon().start()
    client, value, planted = daemon.client(), canary(), canary()
    assert put(client, "TOKEN", value).status == 201
    assert put(client, "TOKEN", value).status == 200
    box = client.create(secrets=[{"name": "TOKEN", "file": "token"}], env={"PLANTED": planted})
    box.check("true", secrets=[{"name": "TOKEN", "env": "TOKEN"}])
    assert put(client, "OWN", value, box).status == 201
    # A control in every place: the box's own variable is in the api, the database and a file of the box.
    box.check("echo -n $PLANTED > /workspace/planted")
    snapshot = client.post(f"{box.path}/snapshots", {"name": "s"})
    assert snapshot.status == 201, snapshot
    control = {planted.encode()}
    assert "paddock-api" in in_memory(daemon, control)
    files = in_files(daemon, control)
    for place in ("/store/", "/snapshots/", "/boxes/"):
        assert any(place in path for path in files), (place, files)
    assert memory_has(box.pid1(), {value.encode()}) == set(), "a file is a file"
    nowhere(daemon, value)
    client.close()


# ---- over every protocol that leads to the api ------------------------------


@pytest.fixture(scope="module")
def tls(daemon_factory, workdir):
    place = workdir / "tls-secrets"
    place.mkdir()
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                    "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", place / "key.pem",
                    "-out", place / "cert.pem"], check=True, capture_output=True)
    daemon = daemon_factory("tls", environment={"PADDOCK_TLS_CERT": place / "cert.pem", "PADDOCK_TLS_KEY": place / "key.pem"}).start()
    daemon.delete_all = lambda: None  # the command line cannot trust this certificate
    daemon.certificate = place / "cert.pem"
    yield daemon
    daemon.finish()


@pytest.mark.parametrize("version, path, size, status", [
    ("--http1.1", "PUT /v1/secrets/TOKEN", 60000, "2"), ("--http2", "PUT /v1/secrets/TOKEN", 60000, "2"),
    ("--http1.1", "POST /secrets", 0, "2"), ("--http2", "POST /secrets", 0, "2"),
    ("--http1.1", "PUT /v1/secrets/TOKEN", 30000, "401"), ("--http2", "PUT /v1/secrets/TOKEN", 30000, "401"),
])
def test_canary_that_came_over_tls(tls, version, path, size, status):
    """While the connection is open and after it: neither TLS nor HTTP/2 keep what went through."""
    value, (method, path) = "x" * size + canary(), path.split()
    key = tls.key if status == "2" else "pdk_" + "x" * 40
    body = {"value": value} if method == "PUT" else {"value": value, "name": "t" + random.token_hex(4)}
    options = ["-sS", "--cacert", str(tls.certificate), version]
    # The second request of the same connection lasts until it is ended.
    words = [*options, "-X", method, "-H", f"Authorization: Bearer {key}", "-H", f"X-API-Key: {key}", "-H", "Content-Type: application/json",
             "-d", "@-", "-o", "/dev/null", "-w", "%{http_code}\n", tls.url + path,
             "--next", *options, "-N", "-H", f"Authorization: Bearer {tls.key}", "-H", "Accept: text/event-stream", tls.url + "/v1/events"]
    client = subprocess.Popen(["curl", *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        client.stdin.write(json.dumps(body))
        client.stdin.close()
        assert client.stdout.readline().startswith(status)
        nowhere(tls, value)
        assert client.poll() is None, "it is open"
    finally:
        client.terminate()
        client.wait()
        client.stdout.close()
    nowhere(tls, value)


def test_canary_of_refused_requests(own_daemon):
    daemon, kept = own_daemon().start(), []

    def send(path, body, **headers):
        kept.append(http.client.HTTPConnection(daemon.host, daemon.port, timeout=20))
        kept[-1].request("PUT", path, body, {"Authorization": f"Bearer {daemon.key}", "Content-Type": "application/json", **headers})
        response = kept[-1].getresponse()
        response.read()
        return response.status

    value = canary()
    body = json.dumps({"value": value})
    assert send("/v1/secrets/A", body, Authorization="Bearer nonsense") == 401
    assert send("/v1/secrets/A", body + "x") == 400 and send("/v1/secrets/1A", body) == 400 and send("/v1/secretz/A", body) == 404
    assert send("/v1/secrets/A", json.dumps({"value": value, "encoding": "base64"})) == 400
    assert send("/v1/secrets/A", json.dumps({"value": value, "more": value})) == 400
    assert send("/v1/secrets/A", iter([body[:20].encode(), body[20:].encode()])) == 201
    cut = daemon.raw()
    cut.sendall(f"PUT /v1/secrets/A HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {daemon.key}\r\nContent-Length: 500\r\n\r\n{body}".encode())
    paddock.until(lambda: "paddock-api" in in_memory(daemon, {value.encode()}), "half of it has arrived: the scanner sees it")
    cut.close()
    nowhere(daemon, value)
    for connection in kept:
        connection.close()


# ---- core files --------------------------------------------------------------


def test_programs_leave_no_core_file(own_daemon, tmp_path):
    """Where core files are wanted and a program beside ours leaves one, ours do not."""
    def wanted():
        resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        os.chdir(tmp_path)
        paddock.die_with_parent()

    def cores():
        return [path for path in tmp_path.iterdir() if path.name.startswith("core")]

    if "|" in paddock.read("/proc/sys/kernel/core_pattern") or "/" in paddock.read("/proc/sys/kernel/core_pattern"):
        pytest.skip("core files of this machine go elsewhere")
    with subprocess.Popen(["sleep", "600"], preexec_fn=wanted) as control:
        paddock.until(lambda: paddock.comm(control.pid) == "sleep", "it runs")
        control.send_signal(signal.SIGSEGV)
    assert cores(), "the control: nothing leaves a core file here"
    for path in cores():
        path.unlink()
    daemon = own_daemon(prepare=wanted).start()
    assert os.readlink(f"/proc/{daemon.keeper_pid}/cwd") == str(tmp_path)
    client = daemon.client()
    box = client.create()
    assert put(client, "TOKEN", "x").status == 201
    client.close()
    with socket.socket(socket.AF_UNIX) as owner:
        owner.connect(str(daemon.run_dir / "owner.sock"))  # which starts paddock-signer
    paddock.until((daemon.data_dir / "signer/signer.db").exists, "it has its database")
    for name in ("paddock-api", "paddock-gate", "paddock-vault", "paddock-signer"):
        for signo in (signal.SIGSEGV, signal.SIGABRT):
            (pid,) = paddock.until(lambda: [pid for pid, comm in daemon.programs().items() if comm == name], f"there is {name}")
            assert re.search(r"Max core file size\s+0\s+0", paddock.read(f"/proc/{pid}/limits")), name
            paddock.until(lambda: paddock.proc_status(pid)["Seccomp"] == "2", f"{name} is confined")
            assert os.stat(f"/proc/{pid}/environ").st_uid == 0, f"{name} can be dumped"
            daemon.api_kills += 1
            paddock.kill(pid, signo)
            assert paddock.wait_gone(pid)
    assert re.search(r"Max core file size\s+0\s+0", paddock.read(f"/proc/{box.pid1()}/limits"))
    assert cores() == []
    assert not [path for path in daemon.base.rglob("core*") if path.is_file()]


def test_canary_in_a_box_that_does_not_use_it(own_daemon):
    daemon = own_daemon().start()
    client, value = daemon.client(), canary()
    needles = forms(value)
    assert put(client, "TOKEN", value).status == 201
    box = client.create()
    assert put(client, "OWN", value, box).status == 201
    process = client.post(f"{box.path}/processes", {"argv": ["sleep", "60"], "env": {"PLANTED": "planted-" + "x" * 16}})
    assert process.status == 201, process
    pids = box.processes()
    assert len(pids) >= 2
    assert any(memory_has(pid, {b"planted-" + b"x" * 16}) for pid in pids), "the scanner finds nothing"
    assert not any(memory_has(pid, needles) for pid in pids)
    environ = box.check("cat /proc/*/environ 2>/dev/null; env", user="root").encode()
    assert b"PATH=" in environ and not any(needle in environ for needle in needles)
    client.close()


# ---- the vault as a program ----------------------------------------------


def test_posture(daemon):
    pid = vault_pid(daemon)
    status = paddock.proc_status(pid)
    assert status["Uid"].split() == ["59003"] * 4 and status["Gid"].split() == ["59003"] * 4
    assert status["Groups"] == ""
    for kind in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        assert int(status[kind], 16) == 0, kind
    assert status["NoNewPrivs"] == "1" and status["Seccomp"] == "2"
    assert int(status["VmLck"].split()[0]) > 0
    limits = paddock.read(f"/proc/{pid}/limits")
    assert re.search(r"Max core file size\s+0\s+0", limits)
    assert os.stat(f"/proc/{pid}/environ").st_uid == 0, "it can be dumped"
    targets = [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")]
    known = ("socket:", "anon_inode:", "pipe:", "/dev/null", str(daemon.data_dir / "vault"), str(daemon.log_file))
    assert all(target.startswith(known) for target in targets), targets
    sockets = {target[8:-1] for target in targets if target.startswith("socket:")}
    internet = {line.split()[9] for kind in ("tcp", "tcp6", "udp", "udp6")
                for line in paddock.read(f"/proc/{pid}/net/{kind}").splitlines()[1:]}
    assert not sockets & internet
    vault = daemon.data_dir / "vault"
    assert vault.stat().st_mode & 0o777 == 0o700 and vault.stat().st_uid == 59003
    assert (vault / "master.key").stat().st_mode & 0o777 == 0o600


def test_killed_vault_comes_back(own_daemon):
    daemon = own_daemon().start()
    client = daemon.client()
    box = client.create()
    assert put(client, "A", "tenant's").status == 201 and put(client, "B", "box's", box).status == 201
    kill_vault(daemon)
    # a call that comes meanwhile waits for the next one
    assert [entry["name"] for entry in client.get("/v1/secrets").json()["secrets"]] == ["A"]
    run = {"secrets": [{"name": "A", "env": "A"}, {"name": "B", "env": "B"}]}
    assert box.check("echo $A $B", **run) == "tenant's box's\n"
    assert put(client, "A", "again").json()["version"] == 2
    # and so does everything after the end of the others
    daemon.kill_api()
    assert box.check("echo $A $B", **run) == "again box's\n"
    client.close()
    daemon.restart()
    client = daemon.client()
    assert paddock.Box(client, {"id": box.id}).check("echo $A $B", **run) == "again box's\n"
    client.close()


def test_secrets_of_boxes_that_vanished_are_dropped(own_daemon):
    """A box whose removal the vault was not told of: the next meeting sorts it out."""
    daemon = own_daemon().start()
    client = daemon.client()
    box = client.create()
    assert put(client, "B", "x", box).status == 201 and put(client, "A", "x").status == 201
    files = daemon.data_dir / "vault" / "secrets"
    assert len(os.listdir(files)) == 2
    kept = {name: (files / name).read_bytes() for name in os.listdir(files)}
    box.delete()
    paddock.until(lambda: len(os.listdir(files)) == 1, "its secret is gone")
    for name, data in kept.items():  # as if it had been killed before
        (files / name).write_bytes(data)
        os.chown(files / name, 59003, 59003)
    kill_vault(daemon)
    paddock.until(lambda: len(os.listdir(files)) == 1, "its secret is gone again")
    assert [entry["name"] for entry in client.get("/v1/secrets").json()["secrets"]] == ["A"]
    client.close()


def test_rotation(own_daemon):
    daemon = own_daemon().start()
    client, vault = daemon.client(), daemon.data_dir / "vault"
    assert put(client, "A", "value-a").status == 201
    old_key, old = (vault / "master.key").read_text(), {p.name: p.read_bytes() for p in (vault / "secrets").iterdir()}
    user = daemon.client(key=client.post("/v1/keys", {"name": "u", "role": "user"}).json()["key"])
    assert user.post("/v1/vault/rotate", {}).code() == "forbidden"
    answer = client.post("/v1/vault/rotate", {})
    assert answer.status == 200 and answer.json()["resealed"] == 1
    new_key = (vault / "master.key").read_text()
    assert new_key != old_key and not (vault / "master.key.next").exists()
    assert all((vault / "secrets" / name).read_bytes() != data for name, data in old.items())
    box = client.create()
    run = {"secrets": [{"name": "A", "env": "A"}]}
    assert box.check("echo $A", **run) == "value-a\n"
    kill_vault(daemon)
    assert box.check("echo $A", **run) == "value-a\n"
    # cut off between the new key and the end: the next start finishes it
    daemon.stop()
    (vault / "master.key.next").write_text(random.token_hex(32) + "\n")
    os.chown(vault / "master.key.next", 59003, 59003)
    next_key = (vault / "master.key.next").read_text()
    daemon.start()
    client = daemon.client()
    assert client.get("/v1/secrets").status == 200
    assert (vault / "master.key").read_text() == next_key and not (vault / "master.key.next").exists()
    assert paddock.Box(client, {"id": box.id}).check("echo $A", **run) == "value-a\n"
    result = subprocess.run([paddock.BIN / "paddock", "vault", "rotate", "--url", daemon.url, "--key-file",
                             daemon.data_dir / "admin.key"], capture_output=True, text=True, timeout=20)
    assert result.returncode == 0 and json.loads(result.stdout)["resealed"] == 1, result
    user.close()
    client.close()


def test_wrong_missing_and_returned_master_key(own_daemon):
    daemon = own_daemon().start()
    client, key = daemon.client(), daemon.data_dir / "vault" / "master.key"
    assert put(client, "A", "value").status == 201
    right = key.read_text()
    client.close()
    for wrong, words in ((random.token_hex(32) + "\n", "not the one"), ("nonsense\n", "cannot be used"), (None, "missing")):
        daemon.stop()
        if wrong is None:
            key.unlink()
        else:
            key.write_text(wrong)
        daemon.start()
        client = daemon.client()
        response = client.get("/v1/secrets")
        assert response.status == 503 and words in response.json()["error"]["message"], response
        assert put(client, "A", "x").status == 503
        assert client.try_create(secrets=[{"name": "A", "env": "A"}]).status == 503
        box = client.create()  # the rest goes on
        box.delete()
        client.close()
    daemon.stop()
    key.write_text(right)
    os.chown(key, 59003, 59003)
    daemon.start()
    client = daemon.client()
    box = client.create(secrets=[{"name": "A", "env": "A"}])
    assert box.check("echo $A") == "value\n"
    client.close()


def test_tampered_files(own_daemon):
    daemon = own_daemon().start()
    client = daemon.client()
    assert put(client, "A", "value-a").status == 201
    names = set(os.listdir(daemon.data_dir / "vault" / "secrets"))
    assert put(client, "B", "value-b").status == 201
    folder = daemon.data_dir / "vault" / "secrets"
    (a,), (b,) = names, set(os.listdir(folder)) - names
    good = (folder / a).read_bytes()
    box = client.create()

    def use():
        return box.try_exec("echo $A", secrets=[{"name": "A", "env": "A"}])

    assert use().status == 200
    for at in (len(good) - 1, len(good) - 20, 16, 30, 33):  # tag, value, nonce, version, time
        data = bytearray(good)
        data[at] ^= 1
        (folder / a).write_bytes(data)
        assert use().status in (404, 500, 503), f"byte {at}"
        assert b"value-a" not in use().body
    for data in (b"", good[:20], good + b"x", (folder / b).read_bytes()):
        (folder / a).write_bytes(data)
        assert use().status in (404, 500), data
    (folder / a).write_bytes(good)
    assert use().status == 200
    # what cannot be read at the start does not keep the rest from working
    (folder / a).write_bytes(b"rubbish")
    kill_vault(daemon)
    assert [entry["name"] for entry in client.get("/v1/secrets").json()["secrets"]] == ["B"]
    client.close()


def test_credential_instead_of_a_file(own_daemon):
    """systemd's CREDENTIALS_DIRECTORY; a file that was there before gives way to it."""
    daemon = own_daemon()
    daemon.start()
    client, vault = daemon.client(), daemon.data_dir / "vault"
    assert put(client, "A", "value").status == 201
    client.close()
    daemon.stop()
    given = daemon.base / "credentials"
    given.mkdir(mode=0o700)
    (given / "paddock-master-key").write_text(random.token_hex(32))
    daemon.environment = {"CREDENTIALS_DIRECTORY": given}
    daemon.start()
    client = daemon.client()
    box = client.create(secrets=[{"name": "A", "env": "A"}])
    assert box.check("echo $A") == "value\n"
    assert not (vault / "master.key").exists()
    assert client.post("/v1/vault/rotate", {}).code() == "not_supported"
    client.close()
    daemon.stop()
    (given / "paddock-master-key").rename(given / "paddock-master-key-old")
    (given / "paddock-master-key").write_text(random.token_hex(32))
    daemon.start()
    client = daemon.client()
    assert client.get("/v1/secrets").status == 200  # so by now everything is sealed with the new one
    client.close()
    (given / "paddock-master-key-old").unlink()
    kill_vault(daemon)
    client = daemon.client()
    box = client.create(secrets=[{"name": "A", "env": "A"}])
    assert box.check("echo $A") == "value\n"
    client.close()


# ---- the command line ------------------------------------------------------


def test_command_line(daemon, tmp_path):
    def run(*words, **options):
        return subprocess.run([paddock.BIN / "paddock", "--url", daemon.url, "--key-file", daemon.data_dir / "admin.key", *words],
                              capture_output=True, timeout=20, **options)

    value = canary()
    assert run("secret", "set", "CLI", input=value.encode() + b"\n").returncode == 0
    (tmp_path / "value").write_bytes(b"from a file\n")
    assert run("secret", "set", "CLI_FILE", "--file", tmp_path / "value").returncode == 0
    listed = run("secret", "ls").stdout.decode()
    assert re.search(r"^CLI +1 +\d+s ago$", listed, re.M) and "CLI_FILE" in listed and value not in listed
    client = daemon.client()
    box = client.create(secrets=[{"name": "CLI", "env": "A"}, {"name": "CLI_FILE", "env": "B"}])
    assert box.check("echo $A; echo \"$B\"") == f"{value}\nfrom a file\n"
    made = run("create", "--secret-env", "A=CLI", "--secret-file", "b=CLI_FILE", "--secret-file", "c=CLI").stdout.decode().strip()
    script = ["sh", "-c", "echo $A; cat /run/secrets/b /run/secrets/c; echo $C"]
    assert run("exec", "--secret-env", "C=CLI_FILE", made, "--", *script).stdout.decode() == f"{value}\nfrom a file{value}from a file\n"
    assert run("exec", made, "--", *script).stdout.decode() == f"{value}\nfrom a file{value}\n"
    assert run("exec", "--shell", "x", "--secret-env", "C=CLI_FILE", made, "echo $C").stdout == b"from a file\n"
    assert run("rm", made).returncode == 0
    assert b"there is no secret NONE" in run("create", "--secret-env", "A=NONE").stderr
    assert run("secret", "set", "-s", box.id, "MINE", input=b"x").returncode == 0
    assert b"MINE" in run("secret", "ls", "-s", box.id).stdout
    assert run("secret", "rm", "-s", box.id, "MINE").returncode == 0
    assert run("secret", "set", "CLI", "--metadata", "team=billing", "--metadata", "a=", input=b"x").returncode == 0
    assert run("secret", "set", "CLI", "--metadata", "team", input=b"x").returncode != 0
    [shown] = [entry for entry in json.loads(run("secret", "ls", "--json").stdout) if entry["name"] == "CLI"]
    assert shown["metadata"] == {"team": "billing", "a": ""}
    assert run("secret", "rm", "CLI", "CLI_FILE").returncode == 0
    assert run("secret", "rm", "CLI").returncode == 1
    for bad in (b"", b"x" * 70000):
        assert run("secret", "set", "BAD", input=bad).returncode == 1
    assert "CLI" not in run("secret", "ls").stdout.decode()
    box.delete()
    client.close()
