"""Fixtures shared by test/it and test/escape.

One daemon serves a whole session; it is finished strictly: whatever its boxes
leave behind fails the run. Tests that kill or configure the daemon start their
own with the `own_daemon` factory, finished as strictly.
"""

import os
import shutil
import signal
import tempfile
import time
from pathlib import Path

import pytest

import paddock

HANGS_S = int(int(os.environ.get("PADDOCK_HANGS_S", "150")) * paddock.SLOW)


def pytest_configure(config):
    # Whoever started us in the background may have had these ignored (nohup, a shell's &), and programs inherit it.
    for signo in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
        if signal.getsignal(signo) == signal.SIG_IGN:
            signal.signal(signo, signal.default_int_handler if signo == signal.SIGINT else signal.SIG_DFL)
    config.addinivalue_line("markers", "slow: takes more than five seconds")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item):
    """A test that hangs fails, so that the others still run."""
    def on_alarm(*_):
        raise TimeoutError(f"{item.name} hangs: no end after {HANGS_S} s")

    old = signal.signal(signal.SIGALRM, on_alarm)
    signal.alarm(HANGS_S)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, old)


def pytest_collection_modifyitems(config, items):
    if os.geteuid() != 0:
        raise pytest.UsageError("these tests start a daemon that makes namespaces: run as root")
    missing = [name for name in ("paddock", "paddockd", "paddock-api", "paddock-hook", "paddock-ai", "paddock-gate", "paddock-gauge", "paddock-vault", "paddock-signer", "paddock-init")
               if not os.access(paddock.BIN / name, os.X_OK)]
    if missing:
        raise pytest.UsageError(f"{', '.join(missing)} not in {paddock.BIN}: run `make build`")


@pytest.fixture(scope="session")
def sessiondir():
    # Not pytest's tmp_path: its names are long, and unix socket paths are not. Boxes'
    # files lie on the real disk, as they do in use, not on a tmpfs.
    path = Path(tempfile.mkdtemp(prefix="pdk-", dir="/var/tmp"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture(scope="module")
def workdir(sessiondir):
    """Each file's own, so that the names in it collide with nobody's."""
    path = Path(tempfile.mkdtemp(prefix="f", dir=sessiondir))
    path.chmod(0o755)
    return path


@pytest.fixture(scope="session")
def daemon_factory(sessiondir):
    count = 0

    def make(name="d", **options):
        nonlocal count
        count += 1
        base = sessiondir / f"{name}{count}"
        base.mkdir(mode=0o755)
        return paddock.Daemon(base, **options)

    return make


@pytest.fixture(scope="session")
def daemon(daemon_factory):
    # Receivers of webhooks are on loopback here, which is refused by default.
    it = daemon_factory("main", environment={"PADDOCK_WEBHOOKS_REFUSE": "link-local"}).start()
    yield it
    it.finish()


@pytest.fixture
def own_daemon(daemon_factory):
    """Makes daemons for one test; call .start() on them. All are finished afterwards."""
    made = []

    def make(**options):
        made.append(daemon_factory("own", **options))
        return made[-1]

    yield make
    for it in made:
        if it.data_dir.exists():
            it.finish()


@pytest.fixture(scope="module")
def api(daemon):
    """A client with the admin key."""
    client = daemon.client()
    yield client
    client.close()


@pytest.fixture
def make_box(daemon):
    """Creates boxes that are deleted after the test."""
    client = daemon.client()
    with paddock.boxes_of(client) as make:
        yield make
    client.close()


@pytest.fixture(scope="module")
def box(daemon):
    """A box for tests that leave it as it was."""
    client = daemon.client()
    it = client.create()
    yield it
    it.delete()
    client.close()


@pytest.fixture
def tenant(api, daemon):
    """A client of a user of a tenant of its own, which has nothing at the end."""
    name = f"tenant-{time.monotonic_ns()}"
    made = api.post("/v1/tenants", {"name": name})
    assert made.status == 201, made
    key = api.post("/v1/keys", {"tenant": name, "role": "user"}).json()
    client = daemon.client(key["key"])
    client.name, client.path, client.tenant = name, f"/v1/tenants/{name}", made.json()
    yield client
    for box in client.list():
        client.delete(f"/v1/sandboxes/{box['id']}")
    client.close()
    assert api.delete(f"/v1/keys/{key['id']}").status == 204


@pytest.fixture
def place(box):
    """A directory of its own for a test, in the shared box."""
    path = box.check("mktemp -d /workspace/t.XXXXXX").strip()
    yield path
    box.check(["rm", "-rf", path], user="root")


@pytest.fixture
def marker():
    """A file of the host whose content nothing in a box may ever see."""
    fd, path = tempfile.mkstemp(prefix="paddock-host-secret-", dir="/var/tmp")
    secret = os.urandom(16).hex()
    os.write(fd, secret.encode())
    os.close(fd)
    os.chmod(path, 0o644)
    yield Path(path), secret
    assert Path(path).read_text() == secret, "the host's file was changed"
    os.unlink(path)
