"""E2B's code interpreter over a year: four versions of the Python package, synchronous and asynchronous, and three older
ones of the npm package (test_compat.py has the newest), unmodified, each with an e2b of its time.

Versions before 2.7 (npm) and 2.9 (Python) do not know E2B_SANDBOX_URL: they reach a sandbox by HTTPS and its name in the
wildcard domain. They get a daemon with a certificate, and a resolver that knows the domain.
"""

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import clients
import npm
import wheels
from test_compat import DOMAIN
from test_compat import scenarios as js_scenarios

HERE = Path(__file__).resolve().parent
PACKAGE = "e2b_code_interpreter"
BY_NAME = {"2.4.1", "2.6.2", "code-2.4.2", "code-2.6.1"}
RELEASES = [name.rpartition("-")[2] for name in wheels.sets() if name.startswith("e2b-code-interpreter-")]
RUNS = [(how, release) for release in RELEASES for how in ("sync", "async")]
RUNS += [("node", name) for name in json.loads((HERE / "interpreter" / "package.json").read_text())["dependencies"]]


def command(how, release, *options):
    if how == "node":
        return ["node", HERE / "run.js", *options, release]
    return [sys.executable, HERE / "run.py", *options, how, release, PACKAGE]


def scenarios(how, release):
    if how == "node":
        return js_scenarios(release)
    return subprocess.run(command(how, release, "--list"), capture_output=True, text=True, check=True, timeout=30).stdout.splitlines()


@pytest.fixture(scope="session")
def plain_daemon(daemon_factory):
    it = daemon_factory("codes").start()
    yield it
    it.finish()


@pytest.fixture(scope="session")
def certificate(tmp_path_factory):
    place = tmp_path_factory.mktemp("certificate")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj",
                    "/CN=test", "-addext", f"subjectAltName=DNS:*.{DOMAIN}", "-keyout", place / "key.pem", "-out", place / "cert.pem"],
                   check=True, capture_output=True)
    return place


@pytest.fixture(scope="session")
def named_daemon(daemon_factory, certificate):
    cert, key = certificate / "cert.pem", certificate / "key.pem"
    it = daemon_factory("codes-named", environment={
        "PADDOCK_PORTS_DOMAIN": DOMAIN, "PADDOCK_TLS_CERT": cert, "PADDOCK_TLS_KEY": key, "PADDOCK_PORTS_CERT": cert,
        "PADDOCK_PORTS_KEY": key}).start()
    yield it
    it.stop()
    it.environment = {}  # what is left is looked for without TLS
    it.finish()


def environment(daemon, how, release, certificate):
    modules = npm.install(HERE / "interpreter", "compat-interpreter") if how == "node" else ""
    path = [] if how == "node" else [str(wheels.install(f"e2b-code-interpreter-{release}"))]
    env = clients.environment(daemon, modules, PYTHONDONTWRITEBYTECODE="1")
    if release in BY_NAME:
        path.append(str(HERE / "resolve"))
        for name in ("E2B_SANDBOX_URL", "E2B_VOLUME_API_URL"):
            del env[name]
        env |= {"E2B_API_URL": f"https://api.{DOMAIN}:{daemon.port}", "E2B_DOMAIN": f"{DOMAIN}:{daemon.port}", "COMPAT_DOMAIN": DOMAIN,
                "NODE_OPTIONS": f"--require={HERE / 'resolve.js'}", "NODE_EXTRA_CA_CERTS": str(certificate / "cert.pem"),
                "SSL_CERT_FILE": str(certificate / "cert.pem")}
    return env | {"PYTHONPATH": ":".join(path)}


@pytest.fixture(scope="session")
def code_outcomes(request, plain_daemon, named_daemon, certificate):
    """What became of the scenarios of a run: {name: line}. Two at a time, as they wait a lot."""
    def run(how, release):
        env = environment(named_daemon if release in BY_NAME else plain_daemon, how, release, certificate)
        done = subprocess.run(command(how, release), env=env, capture_output=True, text=True, timeout=400)
        lines = {line["scenario"]: line for line in map(json.loads, done.stdout.splitlines())}
        return {**lines, None: f"exit status {done.returncode}\n{done.stderr[-2000:]}"}

    asked = [item.callspec.params for item in request.session.items if hasattr(item, "callspec")]
    wanted = dict.fromkeys((one["how"], one["release"]) for one in asked if "how" in one)
    with ThreadPoolExecutor(2) as pool:
        begun = {pair: pool.submit(run, *pair) for pair in wanted}
        yield lambda *pair: begun[pair].result()


@pytest.mark.parametrize("how, release, scenario", [(how, release, name) for how, release in RUNS for name in scenarios(how, release)])
def test_code(code_outcomes, how, release, scenario):
    outcome = code_outcomes(how, release).get(scenario)
    assert outcome, f"it did not run: {code_outcomes(how, release)[None]}"
    assert outcome["ok"], outcome["error"]


def test_the_versions():
    assert len(RELEASES) >= 4 and len(RUNS) >= 11 and BY_NAME <= {release for _, release in RUNS}
    text = (HERE / "interpreter" / "package-lock.json").read_text()
    assert '"resolved"' not in text
    assert all("integrity" in entry or not path for path, entry in json.loads(text)["packages"].items())
