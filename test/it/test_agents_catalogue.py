"""Catalogues of agents: what is published is found and installed, and nothing that its owner did not sign. Archives, directories and
their manifests; upgrades in place."""

import hashlib
import http.server
import io
import json
import os
import ssl
import subprocess
import tarfile
import threading
import time

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

import paddock
from agents_kit import Agent, manifest

MAGIC = "paddock-catalogue-1"
WAITS = "console.log('version ' + VERSION); require('fs').appendFileSync('/agent-workspace/starts', VERSION + ' '); setInterval(() => {}, 1000)"


def program(version):
    return f"const VERSION = '{version}';\n{WAITS}"


def asks(version="1.0.0", **more):
    return manifest(name="Price Watch", version=version, description="Watches prices", permissions={}, **more)


def write_agent(place, document, files=None):
    place.mkdir(parents=True)
    (place / "assegai.json").write_text(json.dumps(document))
    for name, text in (files or {"index.js": program(document["version"])}).items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text(text)
    return place


def archive(path, entries, mode="w"):
    """A tar archive of (name, text or TarInfo) pairs."""
    with tarfile.open(path, mode) as tar:
        for name, what in entries:
            info = what if isinstance(what, tarfile.TarInfo) else tarfile.TarInfo(name)
            data = what.encode() if isinstance(what, str) else b""
            if not isinstance(what, tarfile.TarInfo):
                info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return path


def link(name, target, kind=tarfile.SYMTYPE):
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return (name, info)


@pytest.fixture(scope="module")
def shop(workdir):
    """A catalogue with three versions of an agent, and its key."""
    place = workdir / "shop"
    place.mkdir()
    key = workdir / "shop.pem"
    public = run("key", str(key)).stdout.strip()
    for version in ("1.0.0", "1.9.0", "1.10.0"):
        run("publish", str(write_agent(workdir / f"watch-{version}", asks(version))), str(place), "--key", str(key))
    assert key.stat().st_mode & 0o077 == 0
    return place, key, public


@pytest.fixture(scope="module")
def site(daemon_factory, workdir, shop):
    config = workdir / "catalogue.yaml"
    config.write_text(json.dumps({"agents": {"catalogues": [{"name": "shop", "path": str(shop[0]), "key": shop[2]}]}}))
    it = daemon_factory("catalogue", arguments=["--config", str(config)]).start()
    yield it
    it.finish()


@pytest.fixture(scope="module")
def api(site):
    client = site.client()
    yield client
    for each in client.get("/v1/agents").json()["agents"]:
        paddock.until(lambda e=each: client.delete(f"/v1/agents/{e['id']}").status in (204, 404), "the agent is removed")


@pytest.fixture
def home(tmp_path):
    """Of somebody who has seen nothing yet."""
    return {"HOME": str(tmp_path)}


def run(*words, ok=True, home=None, **environment):
    done = subprocess.run([paddock.BIN / "paddock", "agent", *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120 * paddock.SLOW,
                          env={**paddock.clean_environment(), **(home or {}), **environment})
    assert not ok or done.returncode == 0, done.stderr
    return done


def at(site):
    return ("--url", site.url, "--key-file", str(site.data_dir / "admin.key"))


def refused(*words, says, **options):
    done = run(*words, ok=False, **options)
    assert done.returncode == 1 and says in done.stderr, done


def sign(key, document, where):
    """An index as its owner could make it, whatever is in it."""
    private = serialization.load_pem_private_key(key.read_bytes(), None)
    body = document if isinstance(document, bytes) else json.dumps(document).encode()
    signature = private.sign(f"{MAGIC}\n".encode() + body)
    (where / "index.signed").write_bytes(f"{MAGIC} {signature.hex()}\n".encode() + body)


def copied(shop, tmp_path, change=None):
    """A copy of the catalogue whose index says something else, properly signed."""
    place = tmp_path / "copy"
    place.mkdir()
    for each in shop[0].iterdir():
        (place / each.name).write_bytes(each.read_bytes())
    document = json.loads((place / "index.signed").read_bytes().split(b"\n", 1)[1])
    if change:
        change(document)
        sign(shop[1], document, place)
    return place, document


# ---- search and install


def test_search(site, home):
    shown = run("search", *at(site), home=home).stdout
    assert [line.split()[:3] for line in shown.splitlines()[1:]] == [["price-watch", v, "node"] for v in ("1.0.0", "1.9.0", "1.10.0")]
    assert run("search", "PRICE", "watches", *at(site), home=home).stdout == shown
    assert len(run("search", "price", "nowhere", *at(site), home=home).stdout.splitlines()) == 1
    found = json.loads(run("search", "--json", *at(site), home=home).stdout)
    assert found[0]["manifest"]["version"] == "1.0.0" and found[0]["catalogue"] == "shop"


def test_install_by_name(site, api, home):
    assert "--yes" in run("install", "price-watch@1.0.0", *at(site), ok=False, home=home).stderr
    assert run("install", "price-watch@1.0.0", "--yes", "--name", "by-name", *at(site), home=home).stdout == "by-name\n"
    assert api.get("/v1/agents/by-name").json()["manifest"]["version"] == "1.0.0"
    run("install", "price-watch", "--yes", "--name", "newest", *at(site), home=home)
    assert api.get("/v1/agents/newest").json()["manifest"]["version"] == "1.10.0"
    refused("install", "price-watch@3.0.0", "--yes", *at(site), says="no catalogue has", home=home)
    refused("install", "Price Watch", "--yes", *at(site), says="neither a file here nor the name", home=home)


def test_upgrade_in_place(site, api, home, workdir):
    run("install", "price-watch@1.0.0", "--yes", "--start", "--name", "grows", *at(site), home=home)
    it = Agent(api, {"id": "grows"})
    it.until_logged("version 1.0.0")
    first = it.get()
    # Nothing more is asked for, so nobody is asked.
    shown = run("upgrade", "grows", "price-watch@1.9.0", *at(site), home=home)
    assert shown.stdout == "grows\n"
    it.until_logged("version 1.9.0")
    now = it.wait("running")
    assert (now["manifest"]["version"], now["upgrade"], now["id"]) == ("1.9.0", None, first["id"])
    assert now["sandbox"] != first["sandbox"]
    assert it.box().exec("cat /agent-workspace/starts").text == "1.0.0 1.9.0 "
    # More is asked for: not without consent.
    greedy = write_agent(workdir / "greedy", asks("2.0.0", resources={"memory": "600MB"}, spending_limits={"daily": "0.5"}))
    asked = run("upgrade", "grows", str(greedy), *at(site), ok=False, home=home)
    assert asked.returncode == 1 and "--yes" in asked.stderr
    assert "new        resources.memory: 600MB" in asked.stderr and "new        spending_limits.daily: 0.5" in asked.stderr
    assert it.get()["manifest"]["version"] == "1.9.0"
    run("upgrade", "grows", str(greedy), "--yes", *at(site), home=home)
    it.until_logged("version 2.0.0")
    paddock.until(lambda: it.get()["status"] == "running", "it runs")
    assert api.get(it.box().path).json()["limits"]["memory_mb"] == 600
    assert it.box().exec("cat /agent-workspace/starts").text == "1.0.0 1.9.0 2.0.0 "
    # A build that fails changes nothing.
    broken = write_agent(workdir / "broken", asks("3.0.0"), {"other.js": ""})
    refused("upgrade", "grows", str(broken), "--yes", *at(site), says="the old one goes on: the entrypoint index.js", home=home)
    after = it.get()
    assert (after["manifest"]["version"], after["status"], after["upgrade"]["status"]) == ("2.0.0", "running", "failed")
    assert run("upgrade", "nobody", str(broken), *at(site), ok=False, home=home).returncode == 1


def test_an_upgrade_survives_a_restart(site, api, workdir):
    """One that waits for its files goes on waiting; the agent keeps what it is."""
    made = api.post("/v1/agents", {"manifest": asks(), "name": "waits", "consent": True}).json()
    it = Agent(api, made)
    site.kill_api()
    it.api = api = site.client()
    assert it.get()["status"] == "waiting"
    data = archive(workdir / "waits.tar", [("index.js", program("1.0.0"))]).read_bytes()
    assert it.upload(data).status == 202
    it.wait("stopped")
    assert it.upload(data).status == 409
    response = api.post(f"{it.path}/upgrade", {"manifest": asks("1.1.0", resources={"memory": "700MB"}), "consent": False})
    assert response.json()["asks_more"] == ["resources.memory: 700MB"]
    assert it.get()["upgrade"] is None
    assert api.post(f"{it.path}/upgrade", {"manifest": asks("1.1.0"), "consent": True}).status == 201
    assert it.get()["upgrade"] == {"version": "1.1.0", "status": "waiting", "reason": None}
    site.kill_api()
    it.api = site.client()
    assert it.get()["upgrade"]["status"] == "waiting"
    assert it.api.post(f"{it.path}/upgrade", {"manifest": asks("1.2.0"), "consent": True}).status == 201
    assert it.upload(data).status == 202
    paddock.until(lambda: it.get()["upgrade"] is None, "it is upgraded")
    assert it.get()["manifest"]["version"] == "1.2.0"
    site.kill_api()
    it.api = site.client()
    assert it.get()["manifest"]["version"] == "1.2.0"
    assert it.do("start")["status"] == "running"


# ---- archives and directories


@pytest.mark.parametrize("mode, name", [("w", "a.tar"), ("w:gz", "a.tar.gz"), ("w:gz", "a.tgz"), ("w:xz", "a.tar.xz")])
def test_an_archive_brings_its_manifest(site, api, tmp_path, mode, name):
    path = archive(tmp_path / name, [("./assegai.json", json.dumps(asks())), ("index.js", program("1.0.0"))], mode)
    called = name.replace(".", "-")
    run("install", str(path), "--yes", "--name", called, *at(site))
    assert api.get(f"/v1/agents/{called}").json()["status"] == "stopped"


def test_a_zstd_archive(site, api, tmp_path):
    plain = archive(tmp_path / "a.tar", [("assegai.json", json.dumps(asks())), ("index.js", program("1.0.0"))])
    subprocess.run(["zstd", "-q", str(plain)], check=True)
    run("install", str(tmp_path / "a.tar.zst"), "--yes", "--name", "zstd", *at(site))
    assert api.get("/v1/agents/zstd").json()["status"] == "stopped"


MANIFEST = "assegai.json", json.dumps(asks())
HOSTILE = {
    "an absolute name": ([("/etc/passwd", "x")], "leads out"),
    "dots": ([("a/../../b", "x")], "leads out"),
    "a link out": ([link("a", "/etc/passwd")], "is a link that leads out"),
    "a link up": ([link("d/a", "../../x")], "is a link that leads out"),
    "a hard link out": ([link("a", "../x", tarfile.LNKTYPE)], "is a link that leads out"),
    "a link through a link": ([MANIFEST, link("a/b/top", "../.."), link("out", "a/b/top/../x")], "entry out is a link that may lead out of the archive through another"),
    "a link behind a link": ([MANIFEST, link("a/b/up", "../../x"), link("a", "d")], "entry a/b/up is a link that may lead out"),
    "a link through a later link": ([MANIFEST, link("e/out", "d/../../x"), link("e/d", "../f")], "entry e/out is a link that may lead out"),
    "a hard link to a link": ([MANIFEST, link("a/b/up", "../../x"), link("out", "a/b/up", tarfile.LNKTYPE)], "entry out is a link that may lead out"),
    "a hard link to a link behind a link": ([MANIFEST, link("d", "a/b"), link("a/b/up", "../../x"), link("out", "d/up", tarfile.LNKTYPE)], "entry out is a"),
    "a pipe": ([link("a", "", tarfile.FIFOTYPE)], "is neither a file"),
    "a link to a device": ([link("a", "/dev/null", tarfile.LNKTYPE)], "is a link that leads out"),
    "a device": ([("null", tarfile.TarInfo("null"))], "is neither a file"),
    "a manifest that is a link": ([link("assegai.json", "index.js")], "is no file"),
    "two manifests": ([("assegai.json", "{}"), ("./assegai.json", "{}")], "is there twice"),
    "a large manifest": ([("assegai.json", " " * 70000)], "has more than"),
    "no manifest": ([("index.js", "x"), ("sub/assegai.json", "{}")], "has no assegai.json at its top"),
    "a Dockerfile": ([("Dockerfile", "FROM scratch"), ("assegai.json", "{}")], "Dockerfile"),
    "twice the same key": ([("assegai.json", '{"name": "a", "name": "b"}')], "assegai.json"),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_hostile_archives_are_refused(site, tmp_path, what):
    entries, says = HOSTILE[what]
    for _, info in entries:
        if isinstance(info, tarfile.TarInfo) and info.name == "null":
            info.type = tarfile.CHRTYPE
    path = archive(tmp_path / "bad.tar", entries)
    refused("install", str(path), "--yes", *at(site), says=says)


def test_links_that_stay_inside(site, api, tmp_path):
    path = archive(tmp_path / "links.tar", [MANIFEST, ("a/b/index.js", program("1.0.0")), link("d", "a/b"), link("index.js", "d/index.js"), link("a/b/up", "../../d"),
                                            link("a/c", "b/../../a/b/index.js"), link("a/same", "a/b/index.js", tarfile.LNKTYPE)])
    run("install", str(path), "--yes", "--name", "links", *at(site))
    assert api.get("/v1/agents/links").json()["status"] == "stopped"


def test_a_bomb_is_refused(site, tmp_path):
    """A few kilobytes that become more than a gibibyte. It is read once, and never kept."""
    info = tarfile.TarInfo("zeros")
    info.size = 3 << 29
    with (tmp_path / "bomb.tar.zst").open("wb") as out:
        zstd = subprocess.Popen(["zstd", "-q", "-1", "-c"], stdin=subprocess.PIPE, stdout=out)
        zstd.stdin.write(info.tobuf())
        for _ in range(info.size >> 20):
            zstd.stdin.write(bytes(1 << 20))
        zstd.stdin.close()
        assert zstd.wait() == 0
    assert (tmp_path / "bomb.tar.zst").stat().st_size < 1 << 20
    refused("install", str(tmp_path / "bomb.tar.zst"), "--yes", *at(site), says="when it is unpacked")


def test_what_is_no_archive_is_refused(site, tmp_path):
    (tmp_path / "a.tar").write_bytes(os.urandom(4096))
    refused("install", str(tmp_path / "a.tar"), "--yes", *at(site), says="no tar archive")
    (tmp_path / "a.tar.gz").write_bytes(b"nothing")
    assert run("install", str(tmp_path / "a.tar.gz"), "--yes", *at(site), ok=False).returncode == 1
    whole = archive(tmp_path / "b.tar", [("assegai.json", json.dumps(asks())), ("index.js", "x" * 5000)]).read_bytes()
    (tmp_path / "c.tar").write_bytes(whole[:3000])
    refused("install", str(tmp_path / "c.tar"), "--yes", *at(site), says="cut off")
    refused("install", "-", "--yes", *at(site), says="--manifest")


def test_a_directory_is_sent_without_what_is_ignored(site, api, tmp_path):
    place = write_agent(tmp_path / "dir", asks(), {
        "index.js": "console.log(require('child_process').execSync('find . -type f | sort').toString()); setInterval(() => {}, 1000)", "lib/a.js": "", "lib/node_modules/x/y.js": "",
        "node_modules/evil/index.js": "", ".git/config": "", ".env": "SECRET=1", "debug.log": "", "out/big": "", "__pycache__/a.pyc": "", ".gitignore": "*.log\nout/\n"})
    run("install", str(place), "--yes", "--start", "--name", "ignores", *at(site))
    it = Agent(api, {"id": "ignores"})
    it.until_logged("./lib/a.js")
    assert it.messages("stdout")[:4] == ["./.gitignore", "./assegai.json", "./index.js", "./lib/a.js"]
    (place / ".gitignore").write_text("*\n!index.js\n")
    refused("install", str(place), "--yes", "--name", "negated", *at(site), says='"!"')


# ---- what nobody signed


def test_an_index_of_another_key_is_refused(site, shop, home, tmp_path):
    place, document = copied(shop, tmp_path)
    other = tmp_path / "other.pem"
    other.write_bytes(Ed25519PrivateKey.generate().private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()))
    sign(other, document, place)
    refused("search", "--catalogue", str(place), "--catalogue-key", shop[2], says="the signature", home=home)
    text = (shop[0] / "index.signed").read_bytes()
    for bad in (text.replace(b"1.9.0", b"9.9.0"), text[:-1], text + b" ", text.replace(b"paddock-catalogue-1", b"paddock-catalogue-2"), b"", b"{}", text.split(b"\n", 1)[1]):
        (place / "index.signed").write_bytes(bad)
        done = run("search", "--catalogue", str(place), "--catalogue-key", shop[2], ok=False, home=home)
        assert done.returncode == 1 and ("signature" in done.stderr or "no index" in done.stderr), (bad[:40], done)


def test_an_older_index_is_refused(shop, home, tmp_path):
    words = lambda place: ("search", "--catalogue", str(place), "--catalogue-key", shop[2])  # noqa: E731
    place, _ = copied(shop, tmp_path)
    old = (place / "index.signed").read_bytes()
    run(*words(place), home=home)
    run("index", str(place), "--key", str(shop[1]), home=home)
    run(*words(place), home=home)
    new = (place / "index.signed").read_bytes()
    (place / "index.signed").write_bytes(old)
    refused(*words(place), says="older than one that was seen", home=home)
    document = json.loads(new.split(b"\n", 1)[1])
    sign(shop[1], {**document, "agents": document["agents"][:1]}, place)
    refused(*words(place), says="two different indexes", home=home)
    (place / "index.signed").write_bytes(new)
    run(*words(place), home=home)


BAD = {
    "an archive elsewhere": (lambda d: d["agents"][0].update(archive="../../etc/passwd.tar"), "plain name"),
    "an absolute archive": (lambda d: d["agents"][0].update(archive="/etc/x.tar"), "plain name"),
    "a hidden archive": (lambda d: d["agents"][0].update(archive=".x.tar"), "plain name"),
    "an archive of another server": (lambda d: d["agents"][0].update(archive="https:--x@y.tar"), "plain name"),
    "no archive": (lambda d: d["agents"][0].update(archive="index.signed"), "plain name"),
    "the same twice": (lambda d: d["agents"].append(d["agents"][0]), "twice"),
    "a bad name": (lambda d: d["agents"][0].update(name="../x"), "name must be"),
    "a bad version": (lambda d: d["agents"][0].update(version="1.0"), "version must be"),
    "a bad hash": (lambda d: d["agents"][0].update(sha256="A" * 64), "sha256 must be"),
    "a manifest that is text": (lambda d: d["agents"][0].update(manifest="x"), "manifest must be an object"),
    "a huge archive": (lambda d: d["agents"][0].update(size=1 << 40), "size"),
    "an unknown field": (lambda d: d["agents"][0].update(run="rm -rf /"), "run"),
    "an unknown field at its top": (lambda d: d.update(mirror="http://x"), "mirror"),
    "no number": (lambda d: d.update(serial=0), "serial"),
    "an end in the past": (lambda d: d.update(expires=int(time.time() * 1000) - 1), "has expired"),
    "too many": (lambda d: d.update(agents=d["agents"][:1] * 2001), "at most 2000"),
}


@pytest.mark.parametrize("what", BAD)
def test_a_hostile_index_is_refused(shop, home, tmp_path, what):
    change, says = BAD[what]
    place, _ = copied(shop, tmp_path, change)
    refused("search", "--catalogue", str(place), "--catalogue-key", shop[2], says=says, home=home)


def test_an_index_with_a_key_twice_or_without_an_end_is_refused(shop, home, tmp_path):
    place, document = copied(shop, tmp_path)
    words = ("search", "--catalogue", str(place), "--catalogue-key", shop[2])
    text = json.dumps(document).encode()
    sign(shop[1], text.replace(b'"serial":', b'"serial": 9, "serial":', 1), place)
    refused(*words, says="the index", home=home)
    sign(shop[1], text + b" " * (5 << 20), place)
    refused(*words, says="more than", home=home)
    (place / "index.signed").unlink()
    (place / "index.signed").symlink_to(shop[0] / "index.signed")
    assert run(*words, ok=False, home=home).returncode == 1


def test_an_archive_that_was_changed_is_refused(site, shop, home, tmp_path):
    place, document = copied(shop, tmp_path)
    words = ("install", "price-watch@1.0.0", "--yes", "--name", "changed", "--catalogue", str(place), "--catalogue-key", shop[2], *at(site))
    path = place / "price-watch-1.0.0.tar"
    good = path.read_bytes()
    path.write_bytes(good.replace(b"version ", b"Version ", 1))
    refused(*words, says="its hash differs", home=home)
    path.write_bytes(good + b"\0")
    refused(*words, says="more than", home=home)
    path.write_bytes(good[:-512])
    refused(*words, says="its hash differs", home=home)
    path.unlink()
    refused(*words, says="price-watch-1.0.0.tar", home=home)
    # Its hash is right, and its manifest another than people have searched.
    evil = archive(path, [("assegai.json", json.dumps(asks(resources={"memory": "1GB"}))), ("index.js", "x")]).read_bytes()
    document["agents"][0].update(size=len(evil), sha256=hashlib.sha256(evil).hexdigest())
    sign(shop[1], document, place)
    refused(*words, says="another manifest", home={"HOME": str(tmp_path / "somebody")} if (tmp_path / "somebody").mkdir() is None else home)


def test_publishing(shop, workdir, tmp_path):
    place, key, _ = shop
    refused("publish", str(workdir / "watch-1.0.0"), str(place), "--key", str(key), says="published already")
    refused("publish", str(workdir / "watch-1.0.0"), str(tmp_path), says="--key FILE")
    other = tmp_path / "k.pem"
    run("key", str(other))
    refused("index", str(place), "--key", str(other), says="the signature")
    other.chmod(0o644)
    refused("index", str(place), "--key", str(other), says="chmod 600")
    (tmp_path / "bad.pem").write_text("x")
    (tmp_path / "bad.pem").chmod(0o600)
    refused("index", str(place), "--key", str(tmp_path / "bad.pem"), says="no Ed25519 key")
    assert run("key", str(key)).stdout.strip() == shop[2]


@pytest.fixture(scope="module")
def server(shop, workdir):
    """A web server with a certificate of an authority of its own."""
    key, cert = workdir / "web.key", workdir / "web.crt"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", cert, "-days", "2", "-subj", "/CN=localhost",
                    "-addext", "subjectAltName=DNS:localhost"], check=True, capture_output=True)

    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *args):
            super().__init__(*args, directory=str(shop[0]))

        def do_GET(self):
            if self.path.startswith("/moved/"):
                self.send_response(302)
                self.send_header("Location", self.path.replace("/moved", "/agents"))
                self.end_headers()
                return
            self.path = self.path.removeprefix("/agents")
            super().do_GET()

        def log_message(self, *args):
            pass

    it = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    it.socket = context.wrap_socket(it.socket, server_side=True)
    threading.Thread(target=it.serve_forever, daemon=True).start()
    yield f"https://localhost:{it.server_address[1]}", str(cert)
    it.shutdown()


def test_a_catalogue_by_https(site, api, shop, server, home):
    url, cert = server
    choice = ("--catalogue", f"{url}/agents", "--catalogue-key", shop[2])
    refused("search", *choice, says="is not trusted", home=home)
    assert "1.10.0" in run("search", *choice, home=home, SSL_CERT_FILE=cert).stdout
    run("install", "price-watch@1.9.0", "--yes", "--name", "by-https", *choice, *at(site), home=home, SSL_CERT_FILE=cert)
    assert api.get("/v1/agents/by-https").json()["manifest"]["version"] == "1.9.0"
    refused("search", "--catalogue", f"{url}/moved/", "--catalogue-key", shop[2], says="status 302", home=home, SSL_CERT_FILE=cert)
    refused("search", "--catalogue", f"{url}/agents/none", "--catalogue-key", shop[2], says="status 404", home=home, SSL_CERT_FILE=cert)
    refused("search", "--catalogue", "http://192.0.2.1/agents", "--catalogue-key", shop[2], says="https://", home=home)
    refused("search", "--catalogue", f"{url}/agents?x=1", "--catalogue-key", shop[2], says="no query", home=home)


@pytest.mark.parametrize("entry, says", [
    ({"name": "x", "key": "0" * 64}, "either a url or a path"),
    ({"name": "x", "path": "/x", "url": "https://x/", "key": "0" * 64}, "either a url or a path"),
    ({"name": "x", "path": "x", "key": "0" * 64}, "absolute"),
    ({"name": "x", "path": "/x", "key": "0" * 63}, "64 hexadecimal digits"),
    ({"name": "x", "url": "ftp://x/", "key": "0" * 64}, "https://"),
    ({"path": "/x", "key": "0" * 64}, "name"),
    ({"name": "x", "path": "/x", "key": "0" * 64}, "agents.catalogues[0]: the catalogue's key is one under which anybody can sign"),
    ({"name": "x", "path": "/x", "key": "ec" + "ff" * 31}, "under which anybody can sign"),
])
def test_the_configuration_is_judged(workdir, entry, says):
    config = workdir / "bad.yaml"
    config.write_text(json.dumps({"agents": {"catalogues": [entry]}}))
    done = subprocess.run([paddock.BIN / "paddock", "config", "check", "--config", str(config)], capture_output=True, text=True, env=paddock.clean_environment())
    assert done.returncode != 0 and says in done.stderr, done
