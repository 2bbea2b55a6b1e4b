"""Named sets follow the image; the log of verdicts lasts; both from the command line.

Every image here is made up, and so are its mirrors. The machine's own are whatever it has, and machine.test besides.
"""

import json
import re
import sqlite3
import subprocess
import tarfile

import pytest

import paddock
from internet import internet
from test_e2b import E2B
from test_images import Tar
from test_templates import built, step
from verdicts import last as verdict, log

NAMES = ("mirror.test", "extra.test", "machine.test", "deb.test", "proxy.test", "other.test", "a.test", "b.test", "template.test")


@pytest.fixture(scope="module")
def world(daemon_factory, workdir):
    """A daemon whose boxes have an internet; its machine has a mirror of its own."""
    with internet(workdir / "sets-net", NAMES) as net:
        config = workdir / "sets.json"
        config.write_text(json.dumps({"gate": {"dns": net.dns}, "egress": {"sets": {"given": ["a.test"]}}}))
        daemon = daemon_factory("sets", arguments=("--config", str(config)),
                                environment={"PIP_INDEX_URL": "http://machine.test/simple"}).start()
        daemon.net, daemon.api, daemon.config = net, daemon.client(), config
        yield daemon
        daemon.finish()


@pytest.fixture
def images(world):
    made = []

    def put(name, archive):
        response = world.api.request("PUT", f"/v1/images/{name}", archive.bytes(), {"Content-Type": "application/x-tar"})
        assert response.status in (200, 201), response
        made.append(name)
        return response.json()

    yield put
    for name in made:
        assert world.api.delete(f"/v1/images/{name}").status in (204, 404)


@pytest.fixture
def inside(world, images):
    """Makes boxes of that daemon; removed before their images are."""
    with paddock.boxes_of(world.api) as make:
        yield make


def sets_of(box):
    response = box.client.get(f"{box.path}/egress/sets")
    assert response.status == 200, response
    return response.json()


def reaches(box, host):
    """By the proxy, with what a busybox has: no resolver, no curl."""
    asked = f"GET http://{host}/ HTTP/1.1\\r\\nHost: {host}\\r\\nConnection: close\\r\\n\\r\\n"
    result = box.exec(["/bin/sh", "-c", f"printf '{asked}' | busybox nc -w 20 127.0.0.1 15004"])
    text = result.out.decode()
    return " 200 OK" in text and f"\"{host}\"" in text


# ---- sets ----

PIP = b"[global]\nindex-url = https://user:word@mirror.test/simple\nextra-index-url = http://extra.test:8080/x\n"
SOURCES = b"Types: deb\nURIs: http://deb.test/debian mirror+file:/etc/apt/list.txt\nSuites: x\nComponents: main\n"


def mirrored():
    tar = Tar().file("etc/pip.conf", PIP).file("home/user/.npmrc", b"registry=https://mirror.test/npm/\n", 0o600)
    for name in ("etc/apt", "etc/apt/sources.list.d", "etc/apt/apt.conf.d"):
        tar.add(name, tarfile.DIRTYPE, mode=0o755)
    tar.file("etc/apt/sources.list.d/x.sources", SOURCES).file("etc/apt/list.txt", b"# no\nhttp://other.test/debian\n")
    tar.file("etc/apt/apt.conf.d/01proxy", b'Acquire::http::Proxy "http://proxy.test:3128";\n')
    tar.file("etc/os-release", b"NAME=Made-up\nID=madeup\n")
    return tar.file("root/.gitconfig", b'[url "https://mirror.test/gh/"]\n\tinsteadOf = https://github.com/\n')


def test_an_image_says_where_its_packages_come_from(world, images, inside):
    images("mirrored", mirrored())
    box, plain = inside(image="mirrored", egress={"allow": ["pypi"]}), inside(egress={"allow": ["pypi"]})
    own, machine = sets_of(box), sets_of(plain)
    assert own["sets"]["pypi"] == ["mirror.test", "extra.test:8080"] and own["sources"]["pypi"] == ["image"]
    assert own["sets"]["npm"] == ["mirror.test"]
    apt = ["deb.test", "other.test", "proxy.test:3128"]
    assert own["sets"]["apt"] == own["sets"]["madeup"] == apt
    # Well-known ones only grow, what the administrator gave stays.
    assert own["sets"]["github"] == machine["sets"]["github"] + ["mirror.test"]
    assert own["sources"]["github"][-1] == "image" and "known" in own["sources"]["github"]
    assert (own["sets"]["given"], own["sources"]["given"]) == (["a.test"], ["configuration"])
    assert machine == world.api.get("/v1/egress/sets").json()
    assert "machine.test" in machine["sets"]["pypi"] and "machine" in machine["sources"]["pypi"]
    assert "madeup" not in machine["sets"]
    # What is shown is what holds.
    shown = box.client.get(f"{box.path}/egress").json()
    assert shown["sets"] == {"pypi": own["sets"]["pypi"]}
    assert reaches(box, "mirror.test") and not reaches(box, "machine.test")
    assert verdict(box, verdict="deny")["host"] == "machine.test"
    assert reaches(plain, "machine.test") and not reaches(plain, "mirror.test")


def test_names_that_only_an_image_knows(images, inside, world):
    images("mirrored", mirrored())
    box = inside(image="mirrored", egress={"rules": [{"action": "allow", "set": "madeup"}]})
    assert reaches(box, "deb.test") and not reaches(box, "mirror.test")
    assert box.client.post(f"{box.path}/egress/rules", {"action": "allow", "targets": ["madeup"]}).status == 200
    refused = world.api.try_create(egress={"allow": ["madeup"]})
    assert refused.code() == "invalid_argument" and "madeup" in refused.json()["error"]["message"]


def test_what_an_image_does_not_say(images, inside, world):
    """The machine's holds; a further index stands beside it."""
    images("silent", Tar())
    images("further", Tar().file("etc/pip.conf", b"[global]\nextra-index-url = https://extra.test/x\n"))
    machine = world.api.get("/v1/egress/sets").json()
    assert sets_of(inside(image="silent")) == machine
    further = sets_of(inside(image="further"))
    assert further["sets"]["pypi"] == machine["sets"]["pypi"] + ["extra.test"]
    assert further["sources"]["pypi"] == machine["sources"]["pypi"] + ["image"]


HOSTILE = {
    "pattern": b"[global]\nindex-url = https://*/simple\nextra-index-url = https://*.test/ https://a.test/*\n",
    "private": b"[global]\nindex-url = http://10.1.2.3/simple\nextra-index-url = http://169.254.169.254/ http://[fd00::1]/\n",
    "huge": b"[global]\nindex-url = https://mirror.test/\n" + b"#" * (1 << 20),
    "binary": bytes(range(256)) * 100,
    "empty": b"",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_files_that_open_nothing(images, inside, world, name):
    images("hostile", Tar().file("etc/pip.conf", HOSTILE[name]))
    machine, own = world.api.get("/v1/egress/sets").json(), sets_of(inside(image="hostile"))
    assert own["sets"]["pypi"] == (["a.test"] if name == "pattern" else machine["sets"]["pypi"])


def test_links_stay_in_the_image(images, inside, world):
    """A link to the host's file leads to the image's, or nowhere; what is no file is not read."""
    tar = Tar().file("etc/real", PIP).add("etc/pip.conf", tarfile.SYMTYPE, link="/etc/real")
    tar.add("etc/npmrc", tarfile.SYMTYPE, link="../../../../../../etc/hostname").add("root/.npmrc", tarfile.FIFOTYPE)
    tar.add("etc/gitconfig", tarfile.SYMTYPE, link="/proc/self/environ").add("etc/apt", tarfile.SYMTYPE, link="apt")
    tar.add("etc/os-release", tarfile.SYMTYPE, link="/etc/os-release")
    images("linked", tar)
    machine, own = world.api.get("/v1/egress/sets").json(), sets_of(inside(image="linked"))
    assert own["sets"].pop("pypi") == ["mirror.test", "extra.test:8080"]
    machine["sets"].pop("pypi")
    assert own["sets"] == machine["sets"]


def test_what_is_denied_stays_denied(images, inside):
    """An image cannot take a host out of a set that is refused to it."""
    images("mirrored", mirrored())
    box = inside(image="mirrored", egress={"default": "allow", "deny": ["pypi"]})
    assert reaches(box, "b.test")
    assert not reaches(box, "mirror.test") and not reaches(box, "machine.test")


def test_an_image_of_a_snapshot(world, images, inside):
    """What its maker took over counts; what the code in a box wrote does not, until somebody makes an image of it."""
    box = inside(egress={"allow": ["pypi"]})
    box.check("mkdir -p /etc/xdg/pip && rm -f /etc/pip.conf && "
              "printf '[global]\\nindex-url = http://mirror.test/\\n' > /etc/pip.conf", user="root")
    twin = paddock.Box(world.api, world.api.post(f"{box.path}/fork", {"count": 1}).json()["sandboxes"][0])
    machine = world.api.get("/v1/egress/sets").json()
    assert sets_of(box) == sets_of(twin) == machine
    assert world.api.delete(twin.path).status == 204
    snapshot = world.api.post(f"{box.path}/snapshots", {}).json()
    try:
        made = world.api.post("/v1/images", {"name": "ofsnapshot", "snapshot": snapshot["id"]})
        assert made.status == 201, made
        later = inside(image="ofsnapshot", egress={"allow": ["pypi"]})
        assert (sets_of(later)["sets"]["pypi"], sets_of(later)["sources"]["pypi"]) == (["mirror.test"], ["image"])
        assert reaches(later, "mirror.test") and not reaches(later, "machine.test")
        assert later.client.delete(later.path).status == 204
        assert world.api.delete("/v1/images/ofsnapshot").status == 204
    finally:
        assert world.api.delete(f"/v1/snapshots/{snapshot['id']}").status == 204


def test_a_template(world):
    """Its files and its variables."""
    e2b = E2B(world, world.key)
    build = built(e2b, "sets-of-template", step("USER", "root"), step("RUN", "echo 'registry=https://mirror.test/' > /etc/npmrc"),
                  step("ENV", "PIP_INDEX_URL", "http://template.test/simple"))
    try:
        made = e2b.call("POST", "/sandboxes", {"templateID": "sets-of-template", "allow_internet_access": False}).json()
        box = paddock.Box(world.api, world.api.get(f"/v1/sandboxes/{made['sandboxID']}").json())
        assert box.client.post(f"{box.path}/egress/rules", {"action": "allow", "targets": ["pypi"]}).status == 200

        def check():
            own = sets_of(box)
            assert "template.test" in own["sets"]["pypi"] and "machine.test" not in own["sets"]["pypi"]
            assert own["sources"]["pypi"] == own["sources"]["npm"] == ["template"]
            assert own["sets"]["npm"] == ["mirror.test"]
            assert reaches(box, "template.test") and not reaches(box, "machine.test")

        check()
        twin = world.api.post(f"{box.path}/fork", {"count": 1}).json()["sandboxes"][0]
        world.kill_api()
        world.api = world.client()
        for document in (box.document, twin):
            box = paddock.Box(world.api, document)
            check()
            assert world.api.delete(box.path).status == 204
    finally:
        assert e2b.call("DELETE", f"/templates/{build['templateID']}").status == 204
        e2b.close()


def test_read_once(world, images, inside):
    """An image from before, without a record, is read at the next start; then it is not read again."""
    digest = images("mirrored", mirrored())["digest"].removeprefix("sha256:")
    box = inside(image="mirrored", egress={"allow": ["pypi"]})
    name = f"images/{digest}/sets.json"
    assert json.loads((world.disk / name).read_text())["sets"]["pypi"] == ["mirror.test", "extra.test:8080"]
    (world.disk / name).unlink()

    def restart():
        world.restart()
        world.api = world.client()
        it = box.with_client(world.api)
        assert sets_of(it)["sources"]["pypi"] == ["image"] and reaches(it, "mirror.test")
        return (world.disk / name).stat().st_mtime_ns

    assert restart() == restart()


# ---- the log ----

KNOCK = """
import socket, sys
address, first, n, step = sys.argv[1], *map(int, sys.argv[2:])
for i in range(n):
    try:
        with socket.create_connection((address, first + i * step), 20) as s:
            s.sendall(b"x\\n")
            s.recv(1)
    except OSError:
        pass
"""


def knock(world, box, n, step):
    box.python(KNOCK, world.net.host(60), "1000", str(n), str(step))


def rows(world, box):
    """What the store has of it, seen from outside."""
    with sqlite3.connect(f"file:{world.data_dir}/store/paddock.db?mode=ro", uri=True, timeout=20) as db:
        return db.execute("SELECT id, count FROM verdicts WHERE box = ? ORDER BY id", (box.id,)).fetchall()


def test_said_again(world, inside):
    box = inside(egress={"allow": ["a.test"]})
    knock(world, box, 40, 0)
    it = verdict(box, address=world.net.host(60), count=40)
    assert it["first_at"] <= it["at"] and (it["verdict"], it["reason"], it["port"]) == ("deny", "no_rule", 1000)
    knock(world, box, 3, 1)
    again = verdict(box, address=world.net.host(60), port=1000, count=41)
    assert again["id"] > it["id"] and again["first_at"] == it["first_at"]
    assert [v["port"] for v in log(box, f"?after={it['id']}")["verdicts"]] == [1000, 1001, 1002]
    paddock.until(lambda: rows(world, box) == [(v["id"], v["count"]) for v in log(box)["verdicts"]], "the store has the same")


def test_the_log_lasts(world, inside):
    """Over a stop without a moment's notice, over a kill but for that moment; it goes with its box."""
    box = inside(egress={"allow": ["a.test"]})
    knock(world, box, 5, 1)
    verdict(box, port=1004)
    before = log(box)
    world.stop()
    world.start()
    world.api = world.client()
    box = box.with_client(world.api)
    assert log(box) == before and len(before["verdicts"]) == 5
    knock(world, box, 3, 7)
    verdict(box, port=1014)
    before = log(box)["verdicts"]
    paddock.until(lambda: rows(world, box) == [(v["id"], v["count"]) for v in before], "the store has it")
    world.kill_api()
    world.api = world.client()
    box = box.with_client(world.api)
    assert log(box)["verdicts"] == before
    knock(world, box, 1, 1)  # said before the kill
    assert verdict(box, port=1000, count=3)["id"] > before[-1]["id"]
    assert box.client.delete(box.path).status == 204
    paddock.until(lambda: not rows(world, box), "the store has forgotten it")


def test_a_storm(world, inside):
    """The log is bounded, the audit too, and what that leaves out is counted."""
    box = inside(egress={"allow": ["a.test"]})
    knock(world, box, 600, 1)
    verdict(box, port=1599)
    assert [v["port"] for v in log(box, "?limit=256")["verdicts"]] == list(range(1600 - 256, 1600))
    paddock.until(lambda: len(rows(world, box)) == 256, "the store has as many")

    def told():
        lines = [line for line in paddock.read(world.log_file).splitlines() if f"box={box.id}" in line and "egress " in line]
        return (len([line for line in lines if "egress denied" in line]),
                sum(int(found[1]) for line in lines if (found := re.search(r"left_out=(\d+)", line))))

    paddock.until(lambda: sum(told()) == 600, "each verdict has a line or is counted")
    written, left_out = told()
    assert written >= 50 and left_out > 0


def test_a_line_for_every_kind_of_verdict(world, inside):
    box = inside(egress={"allow": ["a.test"]})

    def curl(*arguments):
        box.exec(["curl", "-sS", "-m", "20", *arguments])

    curl("http://a.test/direct")
    curl("http://b.test/")  # its name is refused
    curl("-x", "http://127.0.0.1:15004", "http://a.test/proxied")
    curl("-x", "http://127.0.0.1:15004", "http://b.test/proxied")
    curl("-x", "socks5h://127.0.0.1:15004", "http://b.test/")
    curl("-k", "--connect-to", f"b.test:443:{world.net.host(60)}:443", "https://b.test/")
    wanted = [
        ("allowed", "rule", {"protocol": "dns", "host": "a.test", "port": "53"}),
        ("denied", "no_rule", {"protocol": "dns", "host": "b.test", "port": "53"}),
        ("allowed", "rule", {"protocol": "http", "host": "a.test", "port": "80", "path": "/direct", "via": "direct", "rule": "rules[0]"}),
        ("allowed", "rule", {"protocol": "http", "host": "a.test", "path": "/proxied", "via": "proxy", "rule": "rules[0]"}),
        ("denied", "no_rule", {"host": "b.test", "via": "proxy", "port": "80"}),
        ("denied", "no_rule", {"host": "b.test", "via": "socks", "port": "80"}),
        ("denied", "no_rule", {"protocol": "tls", "host": "b.test", "address": world.net.host(60), "port": "443", "via": "direct"}),
    ]

    def missing():
        lines = [line for line in paddock.read(world.log_file).splitlines() if f"box={box.id} tenant=default " in line]
        said = [(found[1], dict(re.findall(r'(\w+)="?([^" ]*)"?', line))) for line in lines
                if (found := re.search(r"egress (allowed|denied)", line))]
        return [want for want in wanted if not any(
            kind == want[0] and parts["reason"] == want[1] and want[2].items() <= parts.items() for kind, parts in said)]

    try:
        paddock.until(lambda: not missing(), "there is a line for each")
    except AssertionError:
        assert missing() == []


# ---- the command line ----

@pytest.fixture
def cli(world):
    def start(*arguments, **options):
        environment = paddock.clean_environment(PADDOCK_URL=world.url, PADDOCK_KEY_FILE=world.data_dir / "admin.key")
        return subprocess.Popen([paddock.BIN / "paddock", "egress", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                text=True, env=environment, **options)

    def run(*arguments, code=0):
        process = start(*arguments)
        out, err = process.communicate(timeout=30)
        assert process.returncode == code, (out, err)
        return out if code == 0 else err

    run.start = start
    return run


INJECTED = [
    ("header:Authorization=Bearer {{secret.T}}", {"secret": "T", "header": "Authorization", "prefix": "Bearer "}),
    ("header:X-Key={{secret.A.b-c}}", {"secret": "A.b-c", "header": "X-Key"}),
    ("query:key={{secret.T}}", {"secret": "T", "query": "key"}),
    ("placeholder:{{secret.T}}", {"secret": "T", "placeholder": True}),
]


def test_injection_by_command(inside, cli):
    box = inside()
    for said, means in INJECTED:
        cli("allow", box.id, "api.test", "--inject", said)
        rules = box.client.get(f"{box.path}/egress").json()["policy"]["rules"]
        assert rules[0] == {"action": "allow", "host": "api.test", "inject": [means]}, said
    cli("allow", "--inject", INJECTED[0][0], "--inject", INJECTED[2][0], box.id, "b.test:443")
    rules = box.client.get(f"{box.path}/egress").json()["policy"]["rules"]
    assert rules[0]["inject"] == [INJECTED[0][1], INJECTED[2][1]] and rules[0]["ports"] == [443]
    for bad in ("header:X", "header:=x{{secret.T}}", "header:X=plain", "query:k=a{{secret.T}}", "placeholder:x", "cookie:a={{secret.T}}",
                "header:X={{secret.}}", "header:X={{secret.a}}b}}"):
        assert "--inject" in cli("allow", box.id, "api.test", "--inject", bad, code=1), bad
    # What cannot be is refused, not left out.
    for target in ("pypi", "192.0.2.0/24"):
        assert "inject" in cli("allow", box.id, target, "--inject", INJECTED[0][0], code=1)
    assert box.client.post(f"{box.path}/egress/rules",
                           {"action": "deny", "targets": ["a.test"], "inject": [INJECTED[0][1]]}).code() == "invalid_argument"


def test_sets_by_command(world, images, inside, cli):
    images("mirrored", mirrored())
    box = inside(image="mirrored")

    def table(*arguments):
        lines = cli("sets", *arguments).splitlines()
        assert lines[0].split() == ["SET", "FROM", "TARGETS"]
        return {line.split()[0]: re.split(r"  +", line)[1:] for line in lines[1:]}

    assert table(box.id)["pypi"] == ["image", "mirror.test extra.test:8080"] and table()["given"] == ["configuration", "a.test"]
    assert "machine.test" in table()["pypi"][1] and "madeup" not in table()


def test_following_the_log(world, inside, cli):
    box = inside(egress={"allow": ["a.test"]})
    knock(world, box, 2, 1)
    verdict(box, port=1001)
    process = cli.start("log", "--follow", box.id, bufsize=1)
    try:
        assert process.stdout.readline().split()[:3] == ["ID", "AT", "TIMES"]
        first = [process.stdout.readline().split() for _ in range(2)]
        assert [line[-2] for line in first] == [f"{world.net.host(60)}:{port}" for port in (1000, 1001)]
        knock(world, box, 1, 1)
        assert process.stdout.readline().split()[2:5] == ["2", "deny", "no_rule"]
        assert box.client.delete(box.path).status == 204
        out, err = process.communicate(timeout=20)
        assert process.returncode == 1 and "sandbox" in err and not out
    finally:
        process.kill()
        process.communicate()
