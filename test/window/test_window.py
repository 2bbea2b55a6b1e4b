"""paddock-window on a desktop of its own (desktop.py), with a real daemon and WebKit as it is: its sandbox is on, nothing is disabled."""

import base64
import http.server
import json
import re
import signal
import socket
import subprocess
import threading
from pathlib import Path

import pytest

import paddock
from test_cli_remote import authority, far  # noqa: F401 - fixtures
from desktop import HOME, Desktop, Inspector, Window, X, free_port

AWAY = "Paddock is not reachable"
NOBODY = 65534
WHO = "fetch('/dashboard/session', {headers: {'X-Paddock-Dashboard': '1'}})"


@pytest.fixture(scope="module")
def shared(desktop, daemon):
    """A window that most tests use, with the developer tools, which they look through."""
    port = free_port()
    it = Window(desktop, "--devtools", PADDOCK_URL=daemon.url, PADDOCK_API_KEY=daemon.key, WEBKIT_INSPECTOR_HTTP_SERVER=f"127.0.0.1:{port}")
    it.port = port
    it.until("shows the dashboard", state="here", signed_in=True, title=HOME)
    yield it
    assert it.again("--quit").returncode == 0
    assert it.process.wait(30) == 0


@pytest.fixture(scope="module")
def page(shared):
    it = Inspector(shared.port)
    yield it
    it.close()


def read(path):
    try:
        return path.read_bytes()
    except OSError:
        return b""


def test_shows_the_dashboard(shared, desktop, daemon, page):
    """Signed in, drawn, and the page has neither the key nor the session's cookie."""
    assert paddock.until(lambda: len(desktop.shoot().colours()) > 64, "something is drawn")
    assert page.run("location.href") == daemon.url + "/"
    assert page.run("document.cookie") == ""
    assert page.run("new Intl.NumberFormat(navigator.language).format(1.5)") == "1.5"  # the charts do this; the locale is C
    assert page.run("document.body.innerText.includes('default')")
    assert daemon.key not in page.run("document.documentElement.outerHTML + JSON.stringify({...localStorage, ...sessionStorage})")
    who = page.settle(WHO + ".then(r => r.json())")
    assert who["signed_in"] and who["role"] == "admin"


def test_key_stays_out_of_processes(shared, daemon):
    """No command line has it, and of the environments only paddock-watch's."""
    names = shared.processes()
    assert {"paddock-window", "paddock-watch"} <= set(names.values())
    assert any(name.startswith("WebKitWeb") for name in names.values()), names
    for pid, name in names.items():
        assert daemon.key.encode() not in read(Path(f"/proc/{pid}/cmdline")), name
        if name != "paddock-watch":
            assert daemon.key.encode() not in read(Path(f"/proc/{pid}/environ")), name
    [watch] = [pid for pid, name in names.items() if name == "paddock-watch"]
    assert Path(f"/proc/{watch}").stat().st_uid == 0  # not dumpable: other processes of the user cannot read it


def settled(page):
    """An answer to a request of the page: what it tried before has been decided by then. A navigation may cancel the request."""
    paddock.until(lambda: page.settle(WHO + ".then(r => r.status, () => 0)") == 200, "the page gets an answer")


class Elsewhere:
    """A web server of somebody else."""

    def __init__(self):
        asked = self.asked = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                asked.append(self.path)
                self.send_response(200)
                self.end_headers()
                self.wfile.write(b"<title>elsewhere</title>")

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture(scope="module")
def elsewhere():
    it = Elsewhere()
    yield it
    it.server.shutdown()
    it.server.server_close()


def test_links_elsewhere(shared, desktop, daemon, page, elsewhere):
    """A link opens in the user's browser. A page cannot go there by itself, nor to files, nor to other parts of the daemon."""
    page.run(f"const a = document.createElement('a'); a.href = '{elsewhere.url}/link?a=b#c'; document.body.append(a); a.click()", gesture=True)
    paddock.until(lambda: desktop.opened() == [f"{elsewhere.url}/link?a=b#c"], "the browser was asked")
    page.run(f"open('{elsewhere.url}/open')", gesture=True)
    paddock.until(lambda: desktop.opened()[1:] == [f"{elsewhere.url}/open"], "the browser was asked")
    page.run(f"a.target = '_blank'; a.rel = 'noopener'; a.href = '{elsewhere.url}/blank'; a.click()", gesture=True)
    paddock.until(lambda: desktop.opened()[2:] == [f"{elsewhere.url}/blank"], "the browser was asked")
    before = page.run("window.mark = 7")
    for target in (elsewhere.url + "/silent", "file:///etc/passwd", "javascript:void(document.title='script')", "data:text/html,x", "/v1/sandboxes",
                   f"http://{daemon.host}:{daemon.port}@evil.example/", "ftp://127.0.0.1/"):
        page.run(f"location.href = {json.dumps(target)}")
    page.run("const f = document.createElement('iframe'); f.src = '" + elsewhere.url + "/frame'; document.body.append(f)")
    settled(page)
    assert page.run("window.mark") == before and page.run("location.href").startswith(daemon.url + "/")
    assert shared.status()["title"] != "script"
    assert elsewhere.asked == [] and len(desktop.opened()) == 3


SERVER = """
import http.server, json, urllib.parse
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        with open('/tmp/asked', 'a') as f:
            f.write(json.dumps([self.path, self.headers.get('Cookie')]) + '\\n')
        self.send_response(200)
        self.send_header('Content-Type', 'text/html')
        self.send_header('Access-Control-Allow-Origin', '*')
        self.end_headers()
        self.wfile.write(b'''<title>sandbox</title><script>
          const tell = (what) => fetch('told/' + encodeURIComponent(what));
          const attempt = (name, f) => { try { tell(name + ':' + f()); } catch (e) { tell(name + ' failed'); } };
          attempt('parent', () => parent.document.title);
          attempt('cookie', () => document.cookie);
          attempt('top', () => { top.location = '/v1/sandboxes'; return 'tried'; });
          fetch('/v1/sandboxes', {headers: {'X-Paddock-Dashboard': '1'}, credentials: 'include'}).then(
            (r) => tell('api answered ' + r.status), () => tell('api failed'));
        </script>''')
http.server.ThreadingHTTPServer(('127.0.0.1', 8000), Handler).serve_forever()
"""


@pytest.fixture(scope="module")
def served(daemon):
    """A sandbox with a hostile web page on port 8000."""
    box = daemon.client().create(ports_public=True)
    started = box.client.post(box.path + "/processes", {"argv": ["python3", "-c", SERVER]})
    assert started.status == 201, started
    paddock.until(lambda: daemon.client().get(f"{box.path}/ports/8000/ready").status == 200, "the server listens")
    link = box.client.post(box.path + "/previews", {"port": 8000, "expires_seconds": 600}).json()["url"]
    yield box, link
    box.delete()


def told(box):
    return [json.loads(line) for line in box.check("cat /tmp/asked").splitlines()]


def test_page_of_a_sandbox(shared, desktop, daemon, page, served):
    """The preview of a port has no session and cannot take the window over; as a page of its own it does not load at all."""
    box, link = served
    ticket = re.search(r"ticket=([^&]+)", link) or re.search(r"/previews/[^/]+/\d+/([^/]+)/", link)
    path = f"/v1/previews/{box.id}/8000/{ticket[1]}/"
    page.run(f"const p = document.createElement('iframe'); p.sandbox = 'allow-scripts allow-forms'; p.src = '{path}framed'; document.body.append(p)")
    paddock.until(lambda: any("api" in asked for asked, _ in told(box)), "the framed page ran")
    page.run(f"location.href = '{box.path}/ports/8000/port'")
    page.run(f"location.href = '{path}whole'")
    paddock.until(lambda: any(asked.endswith("/whole") for asked, _ in told(box)), "the sandbox was asked for a whole page")
    settled(page)
    asked = told(box)
    names = [name for name, _ in asked]
    assert any("parent%20failed" in name for name in names) and any("api%20failed" in name for name in names), names
    assert all(cookie is None or "paddock" not in cookie for _, cookie in asked)
    assert not any(name.endswith("/port") for name in names), names
    assert page.run("location.href").split("#")[0] == daemon.url + "/"
    assert shared.status()["title"] == HOME and page.run("document.title") == HOME


def test_download(shared, desktop, daemon, page, served):
    """A file of a sandbox lands in the user's downloads."""
    box, _ = served
    box.check("head -c 100000 /dev/urandom > /tmp/down.bin")
    content = base64.b64decode(box.check("base64 /tmp/down.bin"))
    url = box.client.post(box.path + "/fs/sign", {"path": "/tmp/down.bin", "method": "GET", "expires_seconds": 60}).json()["url"]
    place = url.split(f":{daemon.port}", 1)[-1]
    page.run(f"const d = document.createElement('a'); d.href = {json.dumps(place)}; d.download = 'down.bin'; document.body.append(d); d.click()")
    paddock.until(lambda: [file for file in desktop.base.rglob("down.bin") if read(file) == content], "the file was saved")


def test_dark(shared, desktop, page):
    dark = "matchMedia('(prefers-color-scheme: dark)').matches"
    assert page.run(dark) is False
    desktop.set_dark(True)
    paddock.until(lambda: page.run(dark), "the page is dark")
    desktop.set_dark(False)
    paddock.until(lambda: not page.run(dark), "the page is light")


def test_tray(shared, desktop):
    """It registers, draws itself, and has its menu; the window closes into it, and comes back from it and by a second start."""
    paddock.until(lambda: desktop.items, "the item is registered")
    assert desktop.item("Status") == "Active" and desktop.item("Title") == "Paddock"
    width, height, pixels = desktop.item("IconPixmap")[0]
    assert len(pixels) == width * height * 4 and len(set(pixels)) > 4
    assert list(desktop.menu()) == ["Open Paddock", "Approvals", None, "Quit"]

    desktop.set_tray(True)
    shared.until("sees the tray", tray=True)
    x = X(desktop.display)
    x.ask_to_close(HOME)
    shared.until("is hidden", visible=False)
    desktop.click("Open Paddock")
    shared.until("is back", visible=True)
    x.ask_to_close(HOME)
    shared.until("is hidden", visible=False)
    assert shared.again().returncode == 0
    shared.until("a second start shows the first", visible=True, title=HOME)
    desktop.set_tray(False)
    shared.until("has no tray", tray=False)


def test_second_start(shared, desktop, daemon):
    """One instance: a second start with another daemon is refused, and the first one's status is to be had."""
    before = desktop.owner("org.paddock.Window")
    other = shared.again("--url", "http://127.0.0.1:1")
    assert other.returncode == 1 and "runs already" in other.stderr
    assert json.loads(shared.again("--status").stdout)["url"] == daemon.url
    assert desktop.owner("org.paddock.Window") == before
    assert shared.again("--version").stdout.startswith("paddock-window ")


def test_goes_away_and_comes_back(desktop, own_daemon):
    """A daemon that stops is said to be away; when it is back, so is the page, at the same place and in the same session. Without a tray, closing ends it.
    Without --devtools the page cannot be inspected. The key comes from a file here."""
    own, port = own_daemon().start(), free_port()
    private = Desktop()
    try:
        state = private.base / "home" / "state" / "paddock"
        state.mkdir(parents=True)
        (state / "window").write_text("[window]\nwidth=900\nheight=700\n")
        window = Window(private, "--url", own.url, "--key-file", own.data_dir / "admin.key", WEBKIT_INSPECTOR_HTTP_SERVER=f"127.0.0.1:{port}")
        window.until("shows the dashboard", state="here", signed_in=True, title=HOME)
        own.stop()
        window.until("says that it is away", state="away", title=AWAY)
        paddock.until(lambda: len(private.shoot().colours()) > 8, "the page about it is drawn")
        own.start()
        window.until("is back, and still signed in", state="here", signed_in=True, title=HOME, sessions=1)
        own.kill_api()  # sessions outlive it
        window.until("is still signed in", state="here", signed_in=True, title=HOME, sessions=1)
        paddock.until(lambda: len(private.shoot().colours()) > 64, "the page is drawn")
        assert private.shoot(left=910).colours() == {b"\0\0\0"}  # as wide as it was left
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port))
        x = X(private.display)
        x.ask_to_close(HOME)
        assert window.process.wait(30) == 0
        assert "width=900" in (state / "window").read_text()
    finally:
        private.stop()


def test_wrong_key(desktop, daemon, workdir):
    """The dashboard asks for a key, and the window says why it has none."""
    private = Desktop()
    try:
        wrong = workdir / "wrong.key"
        wrong.write_text("pdk_" + "0" * 40)
        window = Window(private, "--url", daemon.url, "--key-file", wrong)
        window.until("shows the sign-in page", state="here", signed_in=False)
        assert window.again("--quit").returncode == 0 and window.process.wait(30) == 0
    finally:
        private.stop()


def test_starts_the_daemon(workdir):
    """On a machine without a daemon: in a network and a /run of its own, so that no other daemon here is found. It goes on without the window."""
    private, base = Desktop(), workdir / "started"
    base.mkdir()
    apart = ["unshare", "-mn", "sh", "-c", 'ip link set lo up && mount -t tmpfs none /run && exec "$@"', "sh"]
    try:
        window = Window(private, wrap=apart, PADDOCK_DATA_DIR=base / "data", PADDOCK_RUN_DIR=base / "run")
        window.until("shows the dashboard of the daemon that it started", state="here", signed_in=True, title=HOME, url="http://127.0.0.1:7080")
        network = paddock.namespace(window.process.pid, "net")
        [keeper] = [pid for pid in paddock.processes_in("net", network) if paddock.comm(pid) == "paddockd"]
        assert window.again("--quit").returncode == 0 and window.process.wait(30) == 0
        assert paddock.comm(keeper) == "paddockd"
        paddock.kill(keeper, signal.SIGTERM)
        assert paddock.wait_gone(keeper)
    finally:
        private.stop()


BY_HAND = "Start it as root: `systemctl start paddock`, or `paddock serve` where it is not installed as a service."


@pytest.mark.parametrize("service", [False, True])
def test_a_user_without_a_daemon(service):
    """Somebody who is not root: the service is started without a question for a password, or the window says who can start the daemon."""
    private = Desktop(user=NOBODY)
    tools = private.base / "tools"
    tools.mkdir()
    fake = tools / "systemctl"
    fake.write_text(f"#!/bin/sh\necho \"$@\" >> {private.base}/started\necho 'Interactive authentication required.' >&2\nexit 1\n")
    fake.chmod(0o755)
    units = "mkdir -p /run/systemd/system && mount -t tmpfs none /etc/systemd/system && touch /etc/systemd/system/paddock.service && " if service else ""
    # Root's daemon may be installed on this machine: it is not there either.
    apart = ["unshare", "-mn", "sh", "-c", f'ip link set lo up && mount -t tmpfs none /run && {units}exec setpriv --reuid={NOBODY} --regid={NOBODY} --clear-groups --pdeathsig=KILL "$@"', "sh"]
    try:
        window = Window(private, wrap=apart)
        said = f"It could not be started: Interactive authentication required.\n{BY_HAND}" if service else BY_HAND
        window.until("says what can be done", state="away", title=AWAY, start=said)
        assert f"\nUid:\t{NOBODY}\t{NOBODY}\t" in read(Path(f"/proc/{window.process.pid}/status")).decode()
        assert read(private.base / "started") == (b"--no-ask-password start paddock.service\n" if service else b"")
        assert window.again("--quit").returncode == 0 and window.process.wait(60) == 0
    finally:
        private.stop()


def test_package():
    """A package of its own, with what a desktop needs to find it. That the daemon's does without is test/it/test_deb.py's."""
    made = subprocess.run(["scripts/deb", "--window"], cwd=paddock.ROOT, check=True, capture_output=True, text=True).stdout.strip()
    show = lambda *options: subprocess.run(["dpkg-deb", *options], cwd=paddock.ROOT, check=True, capture_output=True, text=True).stdout
    assert "libwebkit2gtk-4.1-0" in show("-f", made, "Depends")
    listed = show("-c", made)
    for name in ("bin/paddock-window", "libexec/paddock/paddock-watch", "share/applications/org.paddock.Window.desktop",
                 "share/icons/hicolor/scalable/apps/org.paddock.Window.svg", "share/metainfo/org.paddock.Window.metainfo.xml", "share/man/man1/paddock-window.1.gz"):
        assert f" ./usr/{name}\n" in listed


@pytest.mark.parametrize("trusted", [True, False])
def test_certificate(trusted, authority, far):
    """With --ca the window trusts what the command line does; without it, neither does."""
    private = Desktop()
    try:
        words = ["--ca", authority / "ca.pem"] if trusted else []
        window = Window(private, "--url", far.url.replace("127.0.0.1", "localhost"), "--key-file", far.data_dir / "admin.key", *words)
        if trusted:
            window.until("shows the dashboard by TLS", state="here", signed_in=True, title=HOME)
        else:
            window.until("does not trust it", state="away", title=AWAY)
        assert window.again("--quit").returncode == 0 and window.process.wait(30) == 0
    finally:
        private.stop()
