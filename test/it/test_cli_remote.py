"""The command line and daemons elsewhere: https, contexts, keys, and the daemon of this machine."""

import json
import os
import pty
import select
import socket
import subprocess
import threading
import urllib.request

import pytest

import agents_kit
import paddock
from clitool import Cli
from spend_kit import owner


@pytest.fixture(scope="module")
def authority(workdir):
    """An authority of ours, a certificate of it for localhost, and another for a stranger."""
    place = workdir / "remote"
    place.mkdir(mode=0o755)

    def openssl(*arguments):
        subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True, cwd=place)

    openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=test authority")
    for name, subject in (("good", "DNS:localhost,IP:127.0.0.1"), ("stranger", "DNS:stranger.example")):
        openssl("req", "-newkey", "rsa:2048", "-nodes", "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={name}")
        (place / "ext").write_text(f"subjectAltName={subject}\n")
        openssl("x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2", "-out", f"{name}.pem", "-extfile", "ext")
        (place / f"{name}.key").chmod(0o644)
    return place


@pytest.fixture(scope="module")
def far(daemon_factory, authority):
    """A daemon that speaks TLS."""
    it = daemon_factory("far", environment={"PADDOCK_TLS_CERT": authority / "good.pem", "PADDOCK_TLS_KEY": authority / "good.key"}).start()
    it.delete_all = lambda: Cli(it, PADDOCK_CA=authority / "ca.pem").ok("rm", "--all")  # the others' client speaks no TLS
    yield it
    it.finish()


@pytest.fixture
def home(tmp_path):
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


def bare(home, **environment):
    """A command line that knows of no daemon."""
    class Nobody:
        url, key = "", ""
    cli = Cli(Nobody, HOME=home, XDG_CONFIG_HOME="", **environment)
    for name in ("PADDOCK_URL", "PADDOCK_API_KEY"):
        if name not in environment:
            del cli.environment[name]
    return cli


# ---- https --------------------------------------------------------------------


def test_https_with_certificates_checked(far, authority, tmp_path):
    cli = Cli(far)
    assert "certificate" in cli.refused("ls") and "--ca" in cli.refused("ls")
    cli.environment["PADDOCK_CA"] = str(authority / "ca.pem")
    box = cli.ok("create").strip()
    assert cli.ok("exec", "-i", box, "--", "cat", stdin=os.urandom(10).hex().encode() * 100000)
    data = os.urandom(5 << 20)
    (tmp_path / "data").write_bytes(data)
    cli.ok("cp", tmp_path / "data", f"{box}:/workspace/data")
    cli.ok("cp", f"{box}:/workspace/data", tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == data
    assert cli("run", "--", "sh", "-c", "exit 9").returncode == 9
    cli.ok("rm", box)
    del cli.environment["PADDOCK_CA"]
    assert cli.ok("ls", "--ca", authority / "ca.pem").startswith("ID")
    assert "certificates in PEM" in cli.refused("ls", "--ca", "/etc/hostname")


def test_a_stranger_is_not_believed(far, authority, daemon_factory):
    """A certificate of the right authority for another name; nothing is sent to it."""
    listener = socket.create_server(("127.0.0.1", 0))
    import ssl
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority / "stranger.pem", authority / "stranger.key")
    heard = []

    def serve():
        connection, _ = listener.accept()
        try:
            with context.wrap_socket(connection, server_side=True) as tls:
                heard.append(tls.recv(1000))
        except (ssl.SSLError, OSError):
            pass

    thread = threading.Thread(target=serve)
    thread.start()
    cli = Cli(far, PADDOCK_CA=authority / "ca.pem", PADDOCK_URL=f"https://127.0.0.1:{listener.getsockname()[1]}")
    assert "certificate" in cli.refused("ls")
    thread.join(20)
    listener.close()
    assert not b"".join(heard)


def test_a_killed_run_over_https_leaves_nothing(far, authority):
    cli = Cli(far, PADDOCK_CA=authority / "ca.pem")
    run = cli.start("run", "--", "sleep", "7778", stdin=subprocess.DEVNULL)
    paddock.until(lambda: cli.ids(), "the sandbox")
    run.kill()
    run.wait()
    paddock.until(lambda: not cli.ids(), "the sandbox to go")


def test_a_terminal_over_https(far, authority):
    cli = Cli(far, PADDOCK_CA=authority / "ca.pem")
    master, slave = pty.openpty()
    run = cli.start("run", "-it", "--", "sh", "-c", "read x; echo got $x; exit 4", stdin=slave, stdout=slave, stderr=slave, start_new_session=True)
    os.close(slave)
    os.write(master, b"keys\n")
    seen = b""
    while b"got keys" not in seen:
        assert select.select([master], [], [], 30)[0], seen
        seen += os.read(master, 65536)
    assert run.wait(30) == 4
    os.close(master)


# ---- contexts -----------------------------------------------------------------


def test_login_and_contexts(far, authority, daemon, home, tmp_path):
    cli = bare(home)
    (tmp_path / "key").write_text(far.key + "\n")
    cli.ok("login", far.url, "--name", "far", "--key-file", tmp_path / "key", "--ca", os.path.relpath(authority / "ca.pem", tmp_path), cwd=tmp_path)
    kept = home / ".config" / "paddock" / "contexts.json"
    assert kept.stat().st_mode & 0o777 == 0o600 and kept.parent.stat().st_mode & 0o077 == 0
    box = cli.ok("create", cwd="/").strip()  # from any directory
    assert box in Cli(far, PADDOCK_CA=authority / "ca.pem").ids()
    cli.ok("rm", box)
    cli.ok("login", daemon.url, "--name", "near", stdin=daemon.key.encode() + b"\n")  # from the prompt's place
    listed = cli.json("context", "ls")
    assert [(c["name"], c["current"]) for c in listed] == [("far", False), ("near", True)] and daemon.key not in json.dumps(listed)
    assert cli.json("tenant", "ls", "--context", "far") != []
    cli.ok("context", "use", "far")
    assert next(c for c in cli.json("context", "ls") if c["current"])["url"] == far.url
    assert 'did you mean "near"' in cli.refused("context", "use", "naer")
    assert "no context" in cli.refused("ls", "--context", "nowhere")
    cli.ok("context", "rm", "far")
    assert [c["name"] for c in cli.json("context", "ls")] == ["near"]
    kept.chmod(0o644)
    assert "chmod 600" in cli.refused("ls", "--context", "near")


def test_login_tries_the_key(daemon, home):
    cli = bare(home, PADDOCK_API_KEY="pdk_" + "0" * 40)
    assert cli("login", daemon.url).returncode == 1
    assert json.loads(bare(home).ok("context", "ls", "--json")) == []


def test_a_key_is_not_sent_elsewhere(daemon, home):
    """The key of a context goes to that context's address and to no other."""
    cli = bare(home)
    cli.ok("login", daemon.url, "--name", "near", stdin=daemon.key.encode() + b"\n")
    listener = socket.create_server(("127.0.0.2", 0))
    done = cli("ls", "--url", f"http://192.0.2.1:{listener.getsockname()[1]}", timeout=30)
    listener.close()
    assert "no API key" in done.err, done


def test_a_prompt_does_not_show_the_key(daemon, home):
    cli = bare(home)
    master, slave = pty.openpty()
    login = cli.start("login", daemon.url, "--name", "typed", stdin=slave, stdout=slave, stderr=slave, start_new_session=True)
    os.close(slave)
    seen = b""
    while b"API key: " not in seen:
        assert select.select([master], [], [], 30)[0]
        seen += os.read(master, 65536)
    os.write(master, daemon.key.encode() + b"\n")
    assert login.wait(30) == 0
    try:
        while select.select([master], [], [], 0)[0]:
            seen += os.read(master, 65536)
    except OSError:
        pass
    os.close(master)
    assert daemon.key.encode() not in seen
    assert cli.ok("ls").startswith("ID")


# ---- this machine's daemon ----------------------------------------------------


def test_found_from_any_directory(own_daemon, home):
    """serve leaves a note; in a mount namespace with a /run of its own, where no other daemon has left one."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]

    def own_run():
        paddock.die_with_parent()
        unshare()
        subprocess.run("mount --make-rprivate / && mount -t tmpfs tmpfs /run", shell=True, check=True)

    daemon = own_daemon(listen=f"127.0.0.1:{port}", prepare=own_run).start()
    into = ["nsenter", "-t", str(daemon.keeper_pid), "-m"]
    pid = daemon.keeper_pid
    environment = bare(home).environment

    def ls():
        return subprocess.run(["nsenter", f"--mount=/proc/{pid}/ns/mnt", paddock.BIN / "paddock", "ls"], env=environment, cwd="/", capture_output=True, check=False, timeout=30)

    note = subprocess.run([*into, "cat", "/run/paddock.json"], capture_output=True, check=False)
    if note.returncode != 0:  # the keeper's own mount namespace may not show /run: look through the note's process
        pytest.fail(note.stderr.decode())
    assert json.loads(note.stdout)["key_file"] == str(daemon.data_dir / "admin.key")
    assert ls().returncode == 0, ls()
    assert json.loads(note.stdout)["run_dir"] == str(daemon.run_dir)
    wallets = subprocess.run(["nsenter", f"--mount=/proc/{pid}/ns/mnt", paddock.BIN / "paddock", "wallet", "ls"], env=environment, cwd="/", capture_output=True, check=False, timeout=30)
    assert wallets.returncode == 0 and b"ADDRESS" in wallets.stdout, wallets
    subprocess.run([*into, "chmod", "666", "/run/paddock.json"], check=True)
    assert ls().returncode == 1, "a note that others could have written is not believed"


def test_wallets_are_those_of_the_daemon_that_is_named(daemon, own_daemon, home, workdir):
    """Beside the daemon of the note there is another, which PADDOCK_URL names: its signer is meant, or nothing is done. The note goes with its
    daemon."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    run = workdir / "a-run-of-its-own"
    run.mkdir()

    def own_run():
        paddock.die_with_parent()
        unshare()
        subprocess.run(f"mount --make-rprivate / && mount --bind {run} /run", shell=True, check=True)

    noted = own_daemon(listen=f"127.0.0.1:{port}", prepare=own_run).start()
    environment = bare(home).environment

    def call(*arguments, **more):
        done = subprocess.run(["nsenter", f"--mount=/proc/{noted.keeper_pid}/ns/mnt", paddock.BIN / "paddock", *arguments], env={**environment, **more}, cwd="/",
                              capture_output=True, check=False, timeout=60)
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    def labels(one):
        text = Cli(one, PADDOCK_RUN_DIR=one.run_dir).ok("wallet", "ls")
        return [line.split()[1] for line in text.splitlines()[1:]]

    noted_url, other = f"http://127.0.0.1:{port}", {"PADDOCK_URL": daemon.url, "PADDOCK_API_KEY": daemon.key}
    code, _, err = call("wallet", "new", "wrong", **other)
    assert code != 0 and noted_url in err and daemon.url in err and "--run-dir" in err, err
    assert labels(noted) == []
    for more in ({}, {"PADDOCK_URL": noted_url}, {"PADDOCK_URL": f"http://localhost:{port}/"}):
        code, out, err = call("wallet", "ls", **more)
        assert code == 0 and out.startswith("ID"), (more, err)
        assert ("several daemons" in err and noted_url in err) == (not more), err  # which it is, where nobody said it
    # Both named, and of two daemons: the agent is one's and the rules would be the other's.
    assert call("wallet", "test", "4", "--name", "till", "--run-dir", noted.run_dir)[0] == 0
    made = daemon.client().post("/v1/agents", {"manifest": agents_kit.manifest(), "consent": True, "name": "astray"})
    assert made.status == 201, made
    try:
        code, _, err = call("agent", "allow", "astray", "--wallet", "till", "--limit", "1", "--yes", "--run-dir", noted.run_dir, **other)
        assert code != 0 and "is not the one whose wallets these are" in err, err
        peer = owner(noted)
        assert not peer.ask("RULES_GET", scope=f"agent:{made.json()['id']}").rules.wallets
        peer.close()
    finally:
        paddock.until(lambda: daemon.client().delete(f"/v1/agents/{made.json()['id']}").status in (204, 404), "the agent is removed")
    assert (run / "paddock.json").exists()
    noted.stop()
    assert not (run / "paddock.json").exists(), "the note of a daemon that has ended"


def unshare():
    import ctypes
    assert ctypes.CDLL(None, use_errno=True).unshare(0x00020000) == 0


# ---- previews -----------------------------------------------------------------


def test_ports_have_names_below_localhost(daemon, make_box):
    """The default on loopback: pages with absolute URLs work, since each port has an origin of its own."""
    box = make_box()
    cli = Cli(daemon)
    assert cli.ok("url", box.id, "8000") == f"http://8000-{box.id}.localhost:{daemon.port}/\n"
    box.check("mkdir -p /tmp/site/deep; echo '<a href=/deep/page>x</a>' > /tmp/site/index.html; echo found > /tmp/site/deep/page")
    box.client.post(f"{box.path}/processes", {"argv": ["python3", "-m", "http.server", "-d", "/tmp/site", "8000"]})
    paddock.until(lambda: any(p["port"] == 8000 for p in box.client.get(f"{box.path}/ports").json()["ports"]), "the server listens", 30)
    link = cli.ok("url", "--sign", "--ttl", "5m", box.id, "8000").strip()
    assert link.startswith(f"http://8000-{box.id}.localhost:{daemon.port}/?")
    jar = subprocess.run(["mktemp"], capture_output=True, text=True, check=True).stdout.strip()
    # As a browser does it: names below localhost are this machine.
    curl = ["curl", "-sSL", "-b", jar, "-c", jar, "--resolve", f"8000-{box.id}.localhost:{daemon.port}:127.0.0.1"]
    page = subprocess.run([*curl, link], capture_output=True, text=True, check=True).stdout
    assert "href=/deep/page" in page
    assert subprocess.run([*curl, f"http://8000-{box.id}.localhost:{daemon.port}/deep/page"], capture_output=True, text=True, check=True).stdout == "found\n"
    os.unlink(jar)


def test_the_domain_of_e2b_has_the_port(daemon, api):
    request = urllib.request.Request(f"{daemon.url}/sandboxes", json.dumps({"templateID": "base"}).encode(),
                                     {"X-API-Key": daemon.key, "Content-Type": "application/json"})
    made = json.load(urllib.request.urlopen(request))
    try:
        assert made["domain"] == f"localhost:{daemon.port}"
    finally:
        api.delete(f"/v1/sandboxes/{made['sandboxID']}")


def test_an_empty_domain_stays_empty(tmp_path):
    def domain(text):
        (tmp_path / "c.yaml").write_text(text)
        shown = subprocess.run([paddock.BIN / "paddock", "config", "show", "--config", tmp_path / "c.yaml"], capture_output=True, check=True, env=paddock.clean_environment())
        return json.loads(shown.stdout)["ports"]["domain"]

    assert domain("listen: 127.0.0.1:7080\n") == "localhost" and domain("listen: '[::1]:7080'\n") == "localhost"
    assert domain("listen: 127.0.0.1:7080\nports: {domain: ''}\n") == ""
    assert domain("listen: 0.0.0.0:7080\n") == "" and domain("ports: {domain: boxes.example}\n") == "boxes.example"
