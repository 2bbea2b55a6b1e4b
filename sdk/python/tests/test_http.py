"""Without a daemon: where address and key come from, which requests are repeated, how errors read."""

import json
import os

import httpx
import pytest

import paddock
from paddock import _settings, _wire, errors
from paddock._tar import unpack


@pytest.fixture
def place(tmp_path, monkeypatch):
    """No variables, no daemon on this machine, an empty directory."""
    for name in ("PADDOCK_URL", "PADDOCK_API_KEY", "PADDOCK_KEY_FILE", "PADDOCK_CA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(_settings, "NOTE", str(tmp_path / "note"))
    monkeypatch.setattr(_settings, "DEFAULT_KEYS", (str(tmp_path / "no.key"), "./var/lib/admin.key"))
    return tmp_path


def test_what_is_passed_wins(place, monkeypatch):
    monkeypatch.setenv("PADDOCK_URL", "http://env:1")
    monkeypatch.setenv("PADDOCK_API_KEY", "pdk_env")
    assert _settings.find() == _settings.Settings("http://env:1", "pdk_env", None)
    assert _settings.find("https://given/", "pdk_given") == _settings.Settings("https://given", "pdk_given", None)


def test_the_local_daemon_is_found_by_its_note(place):
    (place / "key").write_text("pdk_local\n")
    (place / "note").write_text(json.dumps({"url": "http://127.0.0.1:7099", "key_file": str(place / "key"), "pid": os.getpid()}))
    assert _settings.find("http://127.0.0.1:1", "k").url == "http://127.0.0.1:1"
    with pytest.raises(errors.ConfigurationError):  # the process of the note is no daemon
        _settings.find()
    comm = open("/proc/self/comm").read()
    try:
        open("/proc/self/comm", "w").write("paddockd")
        assert _settings.find() == _settings.Settings("http://127.0.0.1:7099", "pdk_local", None)
        (place / "note").chmod(0o666)
        with pytest.raises(errors.ConfigurationError):  # anybody could have written it
            _settings.find()
    finally:
        open("/proc/self/comm", "w").write(comm.strip())


def test_the_key_of_this_machine_stays_on_it(place):
    (place / "var/lib").mkdir(parents=True)
    (place / "var/lib/admin.key").write_text("pdk_root")
    assert _settings.find().key == "pdk_root" and _settings.find("http://localhost:9").key == "pdk_root"
    for url in ("http://192.0.2.1:7080", "https://example.org", "http://127.0.0.1.example.org"):
        with pytest.raises(errors.ConfigurationError, match="PADDOCK_API_KEY"):
            _settings.find(url)


def test_bad_settings_are_refused(place, monkeypatch):
    for url in ("127.0.0.1:7080", "ftp://x", "http://"):
        with pytest.raises(errors.ConfigurationError, match="address"):
            _settings.find(url, "k")
    with pytest.raises(errors.ConfigurationError, match="characters"):
        _settings.find("http://x", "key\nInjected: header")
    monkeypatch.setenv("PADDOCK_KEY_FILE", str(place / "missing"))
    with pytest.raises(errors.ConfigurationError, match="missing"):
        _settings.find("http://x")


# ---- repeating


class Script(httpx.BaseTransport):
    """Answers, or failures, one after the other."""

    def __init__(self, *steps):
        self.steps, self.seen = list(steps), []

    def handle_request(self, request):
        self.seen.append(f"{request.method} {request.url.path}")
        step = self.steps.pop(0)
        if isinstance(step, Exception):
            raise step
        status, body, *headers = step
        return httpx.Response(status, headers=headers[0] if headers else {}, stream=httpx.ByteStream(json.dumps(body).encode()))


def refusal(code, message="why: do this"):
    return {"error": {"code": code, "message": message, "request_id": "r-1"}}


def client(*steps):
    script = Script(*steps)
    return paddock.Paddock("http://x", "k", transport=script, retries=2), script


OK = (200, {"status": "ok", "timestamp": 1, "version": "v"})
REFUSED, BROKEN = httpx.ConnectError("refused"), httpx.ReadError("reset")
DONE = (200, {"exit_code": 0, "signal": None, "stdout": "", "stderr": "", "encoding": "utf-8", "truncated": False, "timed_out": False,
              "oom_killed": False, "duration_ms": 1})


def sandbox_of(it):
    document = {"id": "a" * 20, "name": None, "status": "running", "image": "i", "image_digest": "d", "backend": "b", "tenant": "t", "user": "u",
                "workdir": "/workspace", "created_at": "2026-01-01T00:00:00.000Z", "expires_at": None, "idle_seconds": 0, "on_end": "delete",
                "auto_resume": False, "snapshot": None, "workspace": None, "secrets": [], "limits": {"cpu": 1, "memory_mb": 1, "pids": 1, "nofile": 1},
                "disk": {"used_bytes": None, "limit_mb": None}, "readonly_root": False, "sudo": True, "require": [], "ports_public": False, "metadata": {}}
    return paddock.Sandbox(it, paddock.models.SandboxInfo._of(document))


def test_reads_are_repeated():
    it, script = client(REFUSED, BROKEN, OK)
    assert it.server.health().status == "ok" and len(script.seen) == 3
    it, script = client((503, refusal("unavailable")), OK)
    assert it.server.health().status == "ok"
    it, script = client(BROKEN, BROKEN, BROKEN)
    with pytest.raises(errors.ConnectionLost):
        it.server.health()
    assert len(script.seen) == 3


def test_a_command_is_not_run_twice():
    for step, raised in ((BROKEN, errors.ConnectionLost), ((503, refusal("unavailable")), errors.Unavailable), ((500, refusal("internal")), errors.InternalError),
                         (httpx.ReadTimeout("late"), errors.ConnectionLost)):
        it, script = client(step, DONE)
        with pytest.raises(raised):
            sandbox_of(it).run("true")
        assert len(script.seen) == 1, step


def test_a_command_that_was_not_sent_is():
    it, script = client(REFUSED, (429, refusal("rate_limited"), {"Retry-After": "0"}), DONE)
    assert sandbox_of(it).run("true").ok and len(script.seen) == 3
    it, script = client((429, refusal("rate_limited"), {"Retry-After": "3600"}))
    with pytest.raises(errors.RateLimited) as caught:
        sandbox_of(it).run("true")
    assert caught.value.retry_after == 3600
    it, script = client((429, refusal("quota_exceeded"), {"Retry-After": "1"}))
    with pytest.raises(errors.QuotaExceeded):
        sandbox_of(it).run("true")


def test_a_delete_that_was_done_is_done():
    it, script = client(BROKEN, (404, refusal("not_found")))
    it.snapshots.remove("s")
    assert len(script.seen) == 2
    it, script = client((404, refusal("not_found")))
    with pytest.raises(errors.NotFound):
        it.snapshots.remove("s")


def test_a_body_in_pieces_is_sent_once():
    it, script = client(BROKEN, OK)
    taken = []

    class Reads(Script):
        def handle_request(self, request):
            taken.append(b"".join(request.stream))
            return super().handle_request(request)

    it._api.transport = Reads(BROKEN, OK)
    with pytest.raises(errors.ConnectionLost):
        sandbox_of(it).files.write("a", iter([b"1", b"2"]))
    assert taken == [b"12"]


def test_errors_have_the_servers_words():
    it, _ = client((409, refusal("wrong_state", "the sandbox is paused; resume it first")))
    with pytest.raises(errors.WrongState) as caught:
        sandbox_of(it).run("true")
    error = caught.value
    assert (error.code, error.status, error.request_id, error.advice) == ("wrong_state", 409, "r-1", "resume it first")
    assert str(error) == "the sandbox is paused; resume it first [wrong_state, request r-1]"
    it, _ = client((502, "not ours"))
    with pytest.raises(errors.ApiError, match="502"):
        sandbox_of(it).run("true")
    it, _ = client(REFUSED, REFUSED, REFUSED)
    with pytest.raises(errors.ConnectionFailed, match="cannot reach http://x.*PADDOCK_URL"):
        it.server.health()


# ---- protocols


def test_lines_in_any_pieces():
    text = b'{"a":1}\n\n{"b":"\xc3\xa4"}\n{"c":3}\n'
    for size in (1, 2, 3, 7, 100):
        lines = _wire.Lines()
        found = [each for at in range(0, len(text), size) for each in lines.feed(text[at:at + size])]
        assert found == [{"a": 1}, {"b": "ä"}, {"c": 3}], size


def test_server_sent_events_in_any_pieces():
    text = b": comment\n\nid: 7\r\nevent: a\r\ndata: 1\r\ndata:2\r\n\r\ndata: x\n\nevent: end\n\n"
    for size in (1, 2, 5, 100):
        reader = _wire.ServerEvents()
        found = [each for at in range(0, len(text), size) for each in reader.feed(text[at:at + size])]
        assert [(each.type, each.data, each.id) for each in found] == [("a", "1\n2", "7"), ("message", "x", "7"), ("end", "", "7")], size


@pytest.mark.parametrize("size", (0, 1, 125, 126, 65535, 65536, 100_000))
def test_frames(size):
    data = os.urandom(size)
    sent = bytearray(_wire.frame(_wire.BINARY, data))
    assert sent[1] & 0x80, "a client masks"
    width = {126: 2, 127: 8}.get(sent[1] & 0x7F, 0)
    mask, payload = sent[2 + width:6 + width], sent[6 + width:]
    assert bytes(byte ^ mask[i % 4] for i, byte in enumerate(payload)) == data
    plain = bytes([sent[0], sent[1] & 0x7F]) + bytes(sent[2:2 + width]) + data
    for step in (1, 3, len(plain)) if size < 1000 else (4096, len(plain)):
        frames = _wire.Frames()
        assert [each for at in range(0, len(plain), step) for each in frames.feed(plain[at:at + step])] == [(_wire.BINARY, data)]


def test_fragments_and_bad_frames():
    frames = _wire.Frames()
    assert list(frames.feed(b"\x01\x02he\x89\x00\x80\x03llo")) == [(_wire.PING, b""), (_wire.TEXT, b"hello")]
    for bad in (b"\x80\x01x", b"\x82\x81mask1", b"\x82\x7f\x7f\xff\xff\xff\xff\xff\xff\xff"):
        with pytest.raises(_wire.ProtocolError):
            list(_wire.Frames().feed(bad))


def test_a_hostile_archive_stays_where_it_belongs(tmp_path):
    import io
    import tarfile

    def member(name, kind=tarfile.REGTYPE, data=b"x", link=""):
        info = tarfile.TarInfo(name)
        info.type, info.size, info.linkname = kind, len(data) if kind == tarfile.REGTYPE else 0, link
        return info, io.BytesIO(data)

    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for info, data in (member("../out"), member("/abs"), member("a/../../out2"), member("good/file"), member("link", tarfile.SYMTYPE, link="/etc"),
                           member("link/passwd"), member("hard", tarfile.LNKTYPE, link="/etc/passwd"), member("fifo", tarfile.FIFOTYPE)):
            archive.addfile(info, data)
    buffer.seek(0)
    home = tmp_path / "home"
    written = unpack(buffer, home)
    assert [str(path.relative_to(home)) for path in written] == ["good/file", "link/passwd"]
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["file", "good", "home", "link", "passwd"] and not (home / "link").is_symlink()
    (home / "way").symlink_to(tmp_path)
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        archive.addfile(*member("way/escaped"))
    buffer.seek(0)
    assert unpack(buffer, home) == [] and not (tmp_path / "escaped").exists()
