"""The connections of the client with await (paddock/_transport.py), against servers that say exactly what a test wants."""

import asyncio
import contextlib
import os
import socket
import subprocess
import sys
import time

import driver
import httpx
import pytest
import wheels
from conftest import HERE, SDK

import paddock
from paddock import _transport, errors

HEALTH = b'{"status":"ok","timestamp":1,"version":"v"}'
OK = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(HEALTH), HEALTH)
WAIT = 60  # seconds that a test waits for what must happen


class Server:
    """Answers each request of a connection with the next of `answers`; None closes the connection, a function does as it likes."""

    def __init__(self, *answers):
        self.answers, self.requests, self.connections, self.closed = list(answers), [], 0, asyncio.Event()

    async def _serve(self, reader, writer):
        self.connections += 1
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                self.requests.append(head.split(b"\r\n")[0].decode())
                answer = self.answers.pop(0) if self.answers else OK
                if answer is None:
                    break
                if callable(answer):
                    await answer(reader, writer)
                else:
                    writer.write(answer)
        writer.close()
        self.closed.set()

    async def __aenter__(self):
        self.server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        host, port = self.server.sockets[0].getsockname()
        self.client = paddock.AsyncPaddock(f"http://{host}:{port}", "k", retries=0, timeout=WAIT)
        self.pool = self.client._api.transport.pool
        return self

    async def __aexit__(self, *_):
        await self.client.aclose()
        self.server.close()

    async def ask(self):
        return (await self.client.server.health()).status


def run(scenario):
    """A coroutine function as a test."""
    def test():
        asyncio.run(asyncio.wait_for(scenario(), 2 * WAIT))

    test.__name__ = scenario.__name__
    return test


@run
async def test_a_connection_is_used_again():
    async with Server() as it:
        for _ in range(5):
            assert await it.ask() == "ok"
        assert it.connections == 1 and len(it.pool.all) == 1
        assert await asyncio.gather(*(it.ask() for _ in range(30))) == ["ok"] * 30
        assert sum(map(len, it.pool.idle.values())) <= 20


@run
async def test_a_connection_that_ended_meanwhile_is_not():
    """Also not if the loop had no time to hear of it."""
    async with Server() as it:
        assert await it.ask() == "ok"
        (connection,) = it.pool.all
        peer = connection.transport.get_extra_info("socket")
        where = socket.socket(fileno=socket.dup(peer.fileno()))
        where.shutdown(socket.SHUT_RD)  # as the server's end does; nothing is awaited in between
        where.close()
        assert await it.ask() == "ok" and it.connections == 2


@run
async def test_an_answer_that_says_close_is_the_last():
    async with Server(OK.replace(b"200 OK\r\n", b"200 OK\r\nConnection: close\r\n")) as it:
        assert [await it.ask(), await it.ask()] == ["ok", "ok"] and it.connections == 2


@run
async def test_answers_in_chunks_and_pieces():
    async def slowly(reader, writer):
        text = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n" % (len(HEALTH), HEALTH)
        for byte in text:
            writer.write(bytes([byte]))
            await writer.drain()
            await asyncio.sleep(0)

    async with Server(slowly) as it:
        assert [await it.ask(), await it.ask()] == ["ok", "ok"] and it.connections == 1


@run
async def test_half_an_answer_is_an_error():
    async def half(reader, writer):
        writer.write(OK[:-5])
        writer.close()

    for answer in (None, half, b"no HTTP at all\r\n\r\n"):
        async with Server(answer) as it:
            with pytest.raises(errors.ConnectionLost):
                await it.ask()
            assert not it.pool.all
            assert await it.ask() == "ok"


@run
async def test_an_answer_that_does_not_come():
    async def never(reader, writer):
        await reader.read()

    async with Server(never, OK) as it:
        it.client._api.timeout = 0.05
        with pytest.raises(errors.ConnectionLost, match="in time"):
            await it.ask()
        await it.closed.wait()  # the connection went with the request
        assert not it.pool.all


@run
async def test_a_cancelled_request_takes_its_connection_along():
    arrived = asyncio.Event()

    async def never(reader, writer):
        arrived.set()
        await reader.read()

    async with Server(never) as it:
        asking = asyncio.ensure_future(it.ask())
        await arrived.wait()
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        await it.closed.wait()
        assert not it.pool.all and await it.ask() == "ok"


@run
async def test_a_refusal_before_the_body_was_sent():
    """The answer counts, though the rest of the body could not be written."""
    async def refuse(reader, writer):
        body = b'{"error":{"code":"too_large","message":"too much","request_id":"r"}}'
        writer.write(b"HTTP/1.1 413 Payload Too Large\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
        await writer.drain()
        writer.write_eof()
        await reader.read()

    async def pieces():
        while not it.pool.all or not next(iter(it.pool.all)).ended:
            yield b"x" * 65536

    async with Server(refuse) as it:
        with pytest.raises(errors.ApiError) as caught:
            await it.client._api.bytes("PUT", "/v1/x", content=pieces())
        assert caught.value.status == 413 and not it.pool.all


@run
async def test_what_nobody_reads_stays_with_the_server():
    size = 16 << 20

    async def much(reader, writer):
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size)
        for _ in range(size >> 20):
            writer.write(bytes(1 << 20))
            await writer.drain()

    async with Server(much) as it:
        api = it.client._api
        request = api.build("GET", "/big")
        response = await api.send(request)
        (connection,) = it.pool.all
        while not connection.held:
            await asyncio.sleep(0)
        assert len(connection.inbox) < 2 * _transport.HELD
        assert len(await api.body(request, response)) == size and not connection.held
        assert await it.ask() == "ok" and it.connections == 1


@run
async def test_bytes_right_after_an_upgrade():
    async def upgrade(reader, writer):
        writer.write(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\nfirst")
        assert await reader.readexactly(4) == b"ping"
        writer.write(b"pong")
        writer.close()

    async with Server(upgrade) as it:
        api = it.client._api
        response = await api.transport.handle_async_request(api.build("GET", "/up", headers={"Upgrade": "x", "Connection": "upgrade"}))
        stream = response.extensions["network_stream"]
        assert response.status_code == 101 and await stream.read(100, timeout=WAIT) == b"first"
        await stream.write(b"ping")
        assert [await stream.read(100, timeout=WAIT), await stream.read(100, timeout=WAIT)] == [b"pong", b""]
        await response.stream.aclose()
        assert not it.pool.all


@run
async def test_nobody_there():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and does not listen
        async with paddock.AsyncPaddock(f"http://127.0.0.1:{taken.getsockname()[1]}", "k", retries=0) as client:
            with pytest.raises(errors.ConnectionFailed, match="cannot reach"):
                await client.server.health()


@run
async def test_a_header_that_is_none_is_not_sent():
    async with Server() as it:
        with pytest.raises(errors.PaddockError):
            await it.client._api.json("GET", "/v1/health", headers={"X": "a\r\nInjected: b"})
        assert not it.requests


def test_a_client_outlives_its_loop():
    """Connections of a loop that has ended are not used in the next one."""
    found = []
    with socket.create_server(("127.0.0.1", 0)) as listener:
        client = paddock.AsyncPaddock(f"http://127.0.0.1:{listener.getsockname()[1]}", "k", retries=0)

        async def once():
            served = Server()
            server = await asyncio.start_server(served._serve, sock=listener.dup())
            found.append((await client.server.health()).status)
            server.close()

        asyncio.run(once())
        asyncio.run(once())
    assert found == ["ok", "ok"]


def test_idle_connections_grow_old(monkeypatch):
    now = [time.monotonic()]

    async def scenario():
        async with Server() as it:
            await it.ask()
            monkeypatch.setattr(_transport.time, "monotonic", lambda: now[0] + 31)
            await it.ask()
            assert it.connections == 2 and len(it.pool.all) == 1

    asyncio.run(scenario())


@run
async def test_tls_is_httpx_s():
    """The certificate is checked as before; ours are for connections without TLS."""
    server = await asyncio.start_server(lambda reader, writer: writer.close(), "127.0.0.1", 0)
    async with paddock.AsyncPaddock(f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}", "k", retries=0) as client:
        with pytest.raises(errors.PaddockError):
            await client.server.health()
        assert isinstance(client._api.transport.other, httpx.AsyncHTTPTransport) and not client._api.transport.pool.all
    server.close()


@pytest.mark.parametrize("loop, transport", (("uvloop", "NoneType"), ("trio", "AsyncHTTPTransport")))
def test_other_loops(daemon, loop, transport):
    """Against the daemon. uvloop is one of asyncio's; under trio, httpx's connections are used."""
    path = os.pathsep.join([str(SDK / "src"), str(wheels.install("packages", HERE, "sdk-python"))])
    done = subprocess.run([sys.executable, HERE / "loops.py", loop], capture_output=True, text=True,
                          env={**driver.clean_environment(), "PYTHONPATH": path, "PADDOCK_URL": daemon.url, "PADDOCK_API_KEY": daemon.key})
    assert (done.returncode, done.stdout.strip()) == (0, transport), done.stderr
