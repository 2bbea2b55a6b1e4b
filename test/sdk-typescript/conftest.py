"""One daemon for the suite, with a provider of models behind it, and the package as users install it."""

import json
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[0] / "it"))

import money_kit  # noqa: E402
import npm  # noqa: E402
import paddock  # noqa: E402
from fixtures import *  # noqa: E402,F401,F403 - pytest finds fixtures by their names here
from provider import KEYS, Provider  # noqa: E402


@pytest.fixture(scope="session")
def tarball():
    done = subprocess.run([paddock.ROOT / "sdk/typescript/build"], capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr
    return Path(done.stdout.strip())


@pytest.fixture(scope="session")
def home(tarball):
    """A directory with the package in node_modules, and the frameworks and platforms of package-lock.json beside it."""
    place = npm.install(HERE, "sdk-typescript-test")
    package = place / "node_modules/@paddock/sandbox"
    shutil.rmtree(package, ignore_errors=True)
    package.mkdir(parents=True)
    with tarfile.open(tarball) as tar:
        for entry in tar:
            entry.name = entry.name.removeprefix("package/")
            tar.extract(entry, package)
    for name in ("run.mjs", "scenarios"):
        shutil.rmtree(place / name, ignore_errors=True)
        (shutil.copytree if (HERE / name).is_dir() else shutil.copy)(HERE / name, place / name)
    return place


@pytest.fixture(scope="session")
def provider(sessiondir):
    (sessiondir / "provider").mkdir()
    it = Provider(sessiondir / "provider")
    yield it
    it.stop()


@pytest.fixture(scope="session")
def daemon(daemon_factory, sessiondir, provider):
    # The fixture of this name in fixtures.py has no models.
    config = sessiondir / "sdk.json"
    providers = {name: {"url": provider.url, "secret": f"{name}-key"} for name in KEYS}
    config.write_text(json.dumps({"ai": {"providers": providers, "ca_file": str(provider.authority)}}))
    it = daemon_factory("sdk", arguments=["--config", str(config)], environment={"PADDOCK_WEBHOOKS_REFUSE": "link-local"}).start()
    client = it.client()
    for name, key in KEYS.items():
        assert client.send_json("PUT", f"/v1/secrets/{name}-key", {"value": key}).status in (200, 201)
    client.close()
    yield it
    it.finish()


@pytest.fixture(scope="session")
def money(daemon_factory, sessiondir):
    """Another daemon, with an agent that asks for transactions: what scenarios need to know of it."""
    with money_kit.money(daemon_factory, sessiondir) as it, money_kit.served(it) as others:
        yield {"url": it.daemon.url, "apiKey": it.daemon.key, "others": others}
