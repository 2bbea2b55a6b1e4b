"""Every scenario of scenarios.py, with and without await, against one daemon; and that they make every public call."""

import contextlib
import functools
import inspect
import io
import itertools
import http.server
import os
import queue
import subprocess
import sys
import tarfile
import tempfile
import threading
import types
from pathlib import Path

import anyio
import driver
import generate
import money_kit
import pytest
from conftest import HERE
from provider import KEYS, Provider

import paddock
from paddock._async import client as async_client, files as async_files, network as async_network, processes as async_processes
from paddock._async import resources as async_resources, sandbox as async_sandbox, socket as async_socket, streams as async_streams

SOURCE = HERE / "scenarios.py"
FLAVOURS = ("sync", "async")
MODULES = (async_client, async_files, async_network, async_processes, async_resources, async_sandbox, async_socket, async_streams)
INTERNAL = {"AsyncTree", "Group", "AsyncStream", "AsyncWebSocket"}  # their methods are those of what is made of them
called = {flavour: set() for flavour in FLAVOURS}


def load(flavour):
    """The scenarios as they are, or without await."""
    module = types.ModuleType(f"scenarios_{flavour}")
    text = SOURCE.read_text()
    exec(compile(text if flavour == "async" else generate.sync_of(text, SOURCE.name), f"{SOURCE}[{flavour}]", "exec"), vars(module))
    return module


SCENARIOS = {flavour: load(flavour) for flavour in FLAVOURS}
NAMES = [name for name, value in vars(SCENARIOS["async"]).items()
         if inspect.iscoroutinefunction(value) and list(inspect.signature(value).parameters) == ["client", "world"]]


def public(flavour):
    """{Class.method: (class, name)} of what users call."""
    found = {}
    for module in MODULES:
        module = sys.modules[module.__name__.replace("_async", f"_{flavour}")]
        for name, each in vars(module).items():
            if inspect.isclass(each) and each.__module__ == module.__name__ and each.__name__ not in INTERNAL and f"Async{each.__name__}" not in INTERNAL:
                for method in vars(each):
                    if not method.startswith("_") and inspect.isfunction(inspect.unwrap(getattr(vars(each)[method], "__func__", vars(each)[method]))):
                        found[f"{each.__name__.replace('Async', '')}.{method}"] = each, method
    return found


def recorded(flavour, label, function):
    @functools.wraps(function)
    def call(*arguments, **options):
        called[flavour].add(label)
        return function(*arguments, **options)

    return call


for _flavour in FLAVOURS:
    for _label, (_class, _name) in public(_flavour).items():
        _was = vars(_class)[_name]
        if isinstance(_was, classmethod):
            setattr(_class, _name, classmethod(recorded(_flavour, _label, _was.__func__)))
        else:
            setattr(_class, _name, recorded(_flavour, _label, _was))


class World:
    """What scenarios need besides a client."""

    def __init__(self, daemon, money):
        self.daemon, self.money, self.numbers, self.shared = daemon, money, itertools.count(1), {}

    def name(self, what):
        return f"{what}-{next(self.numbers)}"

    def directory(self):
        return Path(tempfile.mkdtemp(prefix="sdk-", dir=self.daemon.base))

    def sandbox(self, client):
        """A sandbox that scenarios share, as they leave it usable."""
        if "id" not in self.shared:
            with paddock.Paddock(self.daemon.url, self.daemon.key) as own:
                self.shared["id"] = own.sandboxes.create().id
        return client.sandboxes.get(self.shared["id"])

    @contextlib.contextmanager
    def environment(self, client):
        old = {name: os.environ.get(name) for name in ("PADDOCK_URL", "PADDOCK_API_KEY")}
        os.environ.update(PADDOCK_URL=self.daemon.url, PADDOCK_API_KEY=self.daemon.key)
        try:
            yield
        finally:
            for name, value in old.items():
                os.environ.pop(name, None) if value is None else os.environ.update({name: value})

    @contextlib.contextmanager
    def receiver(self):
        """A server for webhooks: (its URL, a queue of bodies)."""
        bodies = queue.Queue()

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                bodies.put(self.rfile.read(int(self.headers["content-length"])))
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_):
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/hook", bodies
        finally:
            server.shutdown()
            server.server_close()

    def root_archive(self):
        """A root file system with nothing but busybox."""
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w") as archive:
            for name in ("bin", "etc", "tmp", "workspace"):
                member = tarfile.TarInfo(name)
                member.type, member.mode = tarfile.DIRTYPE, 0o755
                archive.addfile(member)
            archive.add("/bin/busybox", "bin/busybox")
            for name, text in (("etc/passwd", "root:x:0:0::/:/bin/sh\nuser:x:1000:1000::/workspace:/bin/sh\n"), ("etc/group", "root:x:0:\nuser:x:1000:\n")):
                member = tarfile.TarInfo(name)
                member.size = len(text)
                archive.addfile(member, io.BytesIO(text.encode()))
        return buffer.getvalue()


@pytest.fixture(scope="module")
def world(daemon_factory, workdir):
    place = workdir / "sdk-provider"
    place.mkdir()
    provider = Provider(place)
    daemon = daemon_factory("sdk", environment={"PADDOCK_WEBHOOKS_REFUSE": "link-local"})
    config = daemon.base / "paddock.yaml"
    providers = {name: {"url": provider.url, "secret": f"{name}-key"} for name in KEYS}
    config.write_text(generate.json.dumps({"ai": {"providers": providers, "ca_file": str(provider.authority)}}))
    daemon.arguments += ["--config", str(config)]
    daemon.start()
    with paddock.Paddock(daemon.url, daemon.key) as client:
        for name, key in KEYS.items():
            client.secrets.set(f"{name}-key", key)
    with money_kit.money(daemon_factory, workdir) as money:
        yield World(daemon, money)
    daemon.finish()
    provider.stop()


@pytest.mark.parametrize("flavour", FLAVOURS)
@pytest.mark.parametrize("name", NAMES)
def test_scenario(world, name, flavour):
    scenario = getattr(SCENARIOS[flavour], name)
    if flavour == "sync":
        with paddock.Paddock(world.daemon.url, world.daemon.key) as client:
            scenario(client, world)
        return

    async def main():
        async with paddock.AsyncPaddock(world.daemon.url, world.daemon.key) as client:
            await scenario(client, world)

    anyio.run(main)


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_every_public_call_was_made(request, flavour):
    ran = [item for item in request.session.items if item.originalname == "test_scenario"]
    if len(ran) != len(NAMES) * len(FLAVOURS):
        pytest.skip("only when all scenarios run")
    assert set(public(flavour)) - called[flavour] == set()


def test_a_stream_goes_on_over_a_crash_of_the_server(world):
    """kill -9 of the api while output is read: the command goes on, and so does the stream."""
    with paddock.Paddock(world.daemon.url, world.daemon.key, retries=6) as client, client.sandboxes.create() as sandbox:
        stream = sandbox.stream("for i in $(seq 1 60); do echo $i; sleep 0.05; done")
        seen, killer = b"", None
        for event in stream:
            if isinstance(event, paddock.Output):
                seen += event.bytes
                killer = killer or driver.Background(world.daemon.kill_api)
        killer.result()
        assert seen.split() == [str(i).encode() for i in range(1, 61)] and stream.result.exit_code == 0


def test_importing_imports_no_framework():
    """Importing and listing the package needs no daemon and no frameworks."""
    done = subprocess.run([sys.executable, "-c", "import paddock, sys; print([m for m in ('openai', 'langchain', 'mcp', 'pydantic') if m in sys.modules])"],
                          capture_output=True, text=True, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
    assert done.stdout.strip() == "[]", done.stderr
