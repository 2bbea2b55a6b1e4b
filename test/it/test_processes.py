"""Processes that outlive their request: start, find, attach by offset, input, signals, wait."""

import hashlib
import os
import time

import pytest

import paddock
from events import Result, Stream, data


@pytest.fixture
def box(make_box):
    return make_box()


def start(box, **document):
    response = box.client.post(box.path + "/processes", document)
    assert response.status == 201, response
    return response.json()


def path(box, process):
    return f"{box.path}/processes/{process}"


def wait(box, process, query=""):
    response = box.client.get(path(box, process) + "/wait" + query)
    assert response.status == 200, response
    return response.json()


def follow(box, process, query="", form="ndjson"):
    return Result(Stream(box.client, "GET", path(box, process) + "/output?follow=1" + query, form=form))


# ---- start, list, end -----------------------------------------------------


def test_start_list_get(box):
    before = time.monotonic()
    made = start(box, command="echo hi; sleep 7900", tag="server", cwd="/tmp", env={"A": "1"})
    assert time.monotonic() - before < 60, "nobody waits for its end"
    assert made["pid"] > 1 and made["tag"] == "server" and made["running"]
    found = box.client.get(path(box, "server")).json()
    assert found["pid"] == made["pid"] and found["cwd"] == "/tmp" and found["user"] == "user" and found["exit"] is None
    assert found["argv"][-1] == "echo hi; sleep 7900" and found["running"] and not found["pty"]
    assert box.client.get(path(box, made["pid"])).json()["tag"] == "server"
    other = start(box, argv=["sleep", "7901"])
    assert other["tag"] is None
    pids = [p["pid"] for p in box.client.get(box.path + "/processes").json()["processes"]]
    assert {made["pid"], other["pid"]} <= set(pids)
    assert box.client.delete(path(box, "server")).status == 204
    assert wait(box, "server")["signal"] == "SIGKILL"
    assert not box.client.get(path(box, "server")).json()["running"]
    assert box.client.delete(path(box, "server")).status == 404, "it does not run any more"


def test_delete_kills_the_tree(box):
    made = start(box, command="sleep 7902 & setsid sleep 7903 & (trap '' TERM; sleep 7904)")
    for word in ("7902", "7903", "7904"):
        box.find_process(word)
    assert box.client.delete(path(box, made["pid"])).status == 204

    def left():
        return [w for w in box.check("cat /proc/[0-9]*/cmdline | tr '\\0' '\\n'").split() if w in ("7902", "7903", "7904")]

    paddock.until(lambda: not left(), "all of them are gone")


def test_a_tag_is_one_process(box):
    start(box, argv=["sleep", "7905"], tag="one")
    response = box.client.post(box.path + "/processes", {"argv": ["true"], "tag": "one"})
    assert (response.status, response.code()) == (409, "conflict")
    box.client.delete(path(box, "one"))
    wait(box, "one")
    assert start(box, argv=["true"], tag="one")["pid"], "the name is free again"


BAD = {
    "nothing": {}, "both": {"argv": ["true"], "command": "true"}, "tag empty": {"argv": ["true"], "tag": ""},
    "tag a number": {"argv": ["true"], "tag": "12"}, "tag with colon": {"argv": ["true"], "tag": "shell:default"},
    "tag long": {"argv": ["true"], "tag": "x" * 64}, "stdin text": {"argv": ["true"], "stdin": "x"},
    "pty true": {"argv": ["true"], "pty": True}, "pty empty": {"argv": ["true"], "pty": {}},
    "pty zero": {"argv": ["true"], "pty": {"cols": 0, "rows": 1}}, "pty huge": {"argv": ["true"], "pty": {"cols": 10, "rows": 99999}},
    "unknown": {"argv": ["true"], "name": "x"},
    "kill without a stream": {"argv": ["true"], "kill_on_disconnect": True}, "cwd": {"argv": ["true"], "cwd": "/no/such"},
}


@pytest.mark.parametrize("document", BAD.values(), ids=BAD.keys())
def test_start_refuses(box, document):
    response = box.client.post(box.path + "/processes", document)
    assert (response.status, response.code()) == (400, "invalid_argument"), response


def test_a_program_that_is_not_there(box):
    response = box.client.post(box.path + "/processes", {"argv": ["/no/such/program"]})
    assert (response.status, response.code()) == (400, "command_not_found"), response


def test_what_is_not_there(box):
    for process in ("99999", "nobody", "0", "-1", "x" * 200, "%00"):
        for method, tail in (("GET", ""), ("GET", "/wait"), ("GET", "/output"), ("GET", "/output?follow=1"), ("DELETE", ""), ("POST", "/stdin")):
            response = box.client.request(method, path(box, process) + tail, b"" if method == "POST" else None)
            assert response.status == 404, (method, process, tail, response)
        assert box.client.post(path(box, process) + "/signal", {"signal": 15}).status == 404
        assert box.client.post(path(box, process) + "/resize", {"cols": 1, "rows": 1}).status == 404


def test_strangers(daemon, api, box):
    made = start(box, argv=["sleep", "7906"])
    key = api.post("/v1/keys", {"name": "p", "role": "user", "tenant": "procs-other", "create_tenant": True}).json()["key"]
    stranger = paddock.Client(daemon, key)
    for method, tail in (("GET", ""), ("GET", "/wait"), ("GET", "/output"), ("DELETE", "")):
        assert stranger.request(method, path(box, made["pid"]) + tail).status == 404
    assert stranger.get(box.path + "/processes").status == 404
    stranger.close()
    assert box.client.get(path(box, made["pid"])).json()["running"]


# ---- output ---------------------------------------------------------------


@pytest.mark.parametrize("form", ("ndjson", "sse"))
def test_attach_from_an_offset_and_see_the_end(box, form):
    made = start(box, command="printf 0123456789; printf abc >&2; exit 4")
    assert wait(box, made["pid"])["exit_code"] == 4
    result = follow(box, made["pid"], form=form)
    assert (result.out, result.err, result.exit_code) == (b"0123456789", b"abc", 4), "the end came before"
    assert result.begin["pid"] == made["pid"] and result.begin["running"] is False
    result = follow(box, made["pid"], "&stdout=4&stderr=2", form=form)
    assert (result.out, result.err) == (b"456789", b"c")
    assert result.events[1][1]["offset"] == 4
    result = follow(box, made["pid"], "&stdout=10&stderr=99")
    assert (result.out, result.err) == (b"", b"")


def test_attach_while_it_runs(box):
    made = start(box, command="echo a; sleep 0.5; echo b; sleep 0.5; echo c")
    results = [paddock.Background(follow, box, made["pid"]) for _ in range(3)]
    assert [r.result().out for r in results] == [b"a\nb\nc\n"] * 3


def test_output_without_follow(box):
    made = start(box, command="printf 'ü\\n'; printf '\\xff' >&2; sleep 7907")
    paddock.until(lambda: box.client.get(path(box, made["pid"])).json()["stderr_bytes"] == 1, "it has written")
    document = box.client.get(path(box, made["pid"]) + "/output").json()
    assert document["stdout"] == {"offset": 0, "data": "ü\n", "encoding": "utf-8"}
    assert document["stderr"] == {"offset": 0, "data": "/w==", "encoding": "base64"}
    assert document["running"] and document["exit"] is None and document["stdout_bytes"] == 3
    document = box.client.get(path(box, made["pid"]) + "/output?stdout=2&stderr=1").json()
    assert document["stdout"]["data"] == "\n" and document["stderr"]["data"] == ""
    assert box.client.get(path(box, made["pid"]) + "/output?stdout=x").status == 400


def test_a_lot_of_output_keeps_the_newest(box):
    made = start(box, command="head -c 5000000 /dev/zero | tr '\\0' x; echo END")
    assert wait(box, made["pid"])["exit_code"] == 0
    document = box.client.get(path(box, made["pid"]) + "/output").json()
    assert document["stdout_bytes"] == 5_000_004 and document["stdout"]["data"].endswith("xEND\n")
    assert document["stdout"]["offset"] + len(document["stdout"]["data"]) == 5_000_004
    assert len(document["stdout"]["data"]) >= 500_000


def test_started_as_a_stream(box):
    result = Result(Stream(box.client, "POST", box.path + "/processes", {"command": "echo x; exit 2", "tag": "streamed"}))
    assert result.out == b"x\n" and result.exit_code == 2 and result.begin["tag"] == "streamed"
    assert box.client.get(path(box, "streamed")).json()["exit"]["exit_code"] == 2


def test_disconnect(box):
    stays = Stream(box.client, "POST", box.path + "/processes", {"argv": ["sleep", "7908"]})
    goes = Stream(box.client, "POST", box.path + "/processes", {"argv": ["sleep", "7909"], "kill_on_disconnect": True})
    pids = [next(iter(stream))[1]["pid"] for stream in (stays, goes)]
    stays.close()
    goes.close()
    assert wait(box, pids[1], "?timeout_ms=30000")["signal"] == "SIGHUP"  # SIGKILL for those who do not listen
    assert wait(box, pids[0], "?timeout_ms=300") == {"running": True}


# ---- wait -----------------------------------------------------------------


def test_wait(box):
    made = start(box, command="until test -e /tmp/go6; do sleep 0.05; done; exit 6")
    assert wait(box, made["pid"], "?timeout_ms=400") == {"running": True}
    box.check("touch /tmp/go6")
    answer = wait(box, made["pid"])
    assert answer["exit_code"] == 6 and answer["running"] is False and answer["duration_ms"] > 399
    assert wait(box, made["pid"])["exit_code"] == 6, "any number of times"
    assert box.client.get(path(box, made["pid"]) + "/wait?timeout_ms=x").status == 400


def test_time_limit(box):
    made = start(box, command="sleep 7910 & sleep 7911", timeout_ms=300)
    answer = wait(box, made["pid"])
    assert answer["timed_out"] and answer["exit_code"] == 137


# ---- input ----------------------------------------------------------------


def send(box, process, body, query="", **options):
    return box.client.request("POST", path(box, process) + "/stdin" + query, body, **options)


def test_stdin(box):
    made = start(box, argv=["cat"], stdin=True)
    assert send(box, made["pid"], b"one\n").status == 204
    assert send(box, made["pid"], bytes(range(256))).status == 204
    assert send(box, made["pid"], b"", "?close=1").status == 204
    assert follow(box, made["pid"]).out == b"one\n" + bytes(range(256))
    response = send(box, made["pid"], b"late")
    assert (response.status, response.code()) == (409, "wrong_state")


def test_stdin_is_closed_unless_wished(box):
    made = start(box, command="cat; sleep 7912")
    response = send(box, made["pid"], b"x")
    assert (response.status, response.code()) == (409, "wrong_state")


def test_stdin_with_the_last_bytes_and_the_close_in_one(box):
    made = start(box, argv=["sha256sum"], stdin=True)
    body = os.urandom(3_000_000)
    assert send(box, made["pid"], body, "?close=1").status == 204
    assert follow(box, made["pid"]).out.split()[0].decode() == hashlib.sha256(body).hexdigest()


def test_stdin_has_back_pressure(box, daemon):
    """80 MB do not vanish into a buffer while nobody reads them."""
    made = start(box, command="until [ -e /tmp/read-now ]; do sleep 0.02; done; wc -c", stdin=True)
    sent = 0

    def pieces():
        nonlocal sent
        for sent in range(800):
            yield b"x" * 100_000

    sending = paddock.Background(send, box.with_client(daemon.client()), made["pid"], pieces(), "?close=1", encode_chunked=True,
                                 headers={"Transfer-Encoding": "chunked"})
    assert paddock.until_still(lambda: sent, "the sender is stopped") < 400
    box.check("touch /tmp/read-now")
    assert sending.result().status == 204
    assert follow(box, made["pid"]).out.split() == [b"80000000"]
    assert paddock.rss_kb(daemon.api_pid()) < 100_000


def test_writers_at_once_do_not_mix_within_a_piece(daemon, box):
    made = start(box, argv=["cat"], stdin=True)
    clients = [daemon.client() for _ in range(4)]
    calls = [paddock.Background(send, box.with_client(c), made["pid"], bytes([65 + i]) * 1000) for i, c in enumerate(clients)]
    assert [c.result().status for c in calls] == [204] * 4
    send(box, made["pid"], b"", "?close=1")
    out = follow(box, made["pid"]).out
    assert sorted(out[i:i + 1000] for i in range(0, 4000, 1000)) == [bytes([65 + i]) * 1000 for i in range(4)]
    for client in clients:
        client.close()


# ---- signals and terminals ------------------------------------------------


@pytest.mark.parametrize("signal", ["SIGTERM", "TERM", 15, "SIGUSR1", 34])
def test_signals(box, signal):
    made = start(box, argv=["sleep", "7913"])
    assert box.client.post(path(box, made["pid"]) + "/signal", {"signal": signal}).status == 204
    answer = wait(box, made["pid"], "?timeout_ms=30000")
    assert answer["exit_code"] == 128 + {"SIGTERM": 15, "TERM": 15, 15: 15, "SIGUSR1": 10, 34: 34}[signal]


def test_stop_and_continue(box):
    made = start(box, command="while :; do echo x; sleep 0.05; done")
    signals = path(box, made["pid"]) + "/signal"

    def size():
        return box.client.get(path(box, made["pid"])).json()["stdout_bytes"]

    paddock.until(size, "it writes")
    assert box.client.post(signals, {"signal": "SIGSTOP"}).status == 204
    still = paddock.until_still(size, "it stands still")
    assert box.client.post(signals, {"signal": "SIGCONT"}).status == 204
    paddock.until(lambda: size() > still, "it goes on")
    box.client.delete(path(box, made["pid"]))


@pytest.mark.parametrize("signal", ["SIGNONE", "", 0, 65, -1, None, True, [], 1.5])
def test_no_such_signal(box, signal):
    made = start(box, argv=["sleep", "7914"])
    assert box.client.post(path(box, made["pid"]) + "/signal", {"signal": signal}).status == 400


def test_pty(box):
    made = start(box, command="tty; stty size; echo $TERM; trap 'stty size' WINCH; while :; do sleep 0.05; done", pty={"cols": 91, "rows": 33})
    assert made["pty"]

    def out():
        return box.client.get(path(box, made["pid"]) + "/output").json()["stdout"]["data"]

    paddock.until(lambda: "xterm-256color\r\n" in out(), "it has begun")
    assert out().startswith("/dev/pts/") and "\r\n33 91\r\n" in out()
    assert box.client.post(path(box, made["pid"]) + "/resize", {"cols": 120, "rows": 40}).status == 204
    paddock.until(lambda: "40 120\r\n" in out(), "it knows its new size")
    assert send(box, made["pid"], b"\x03").status == 204
    assert wait(box, made["pid"], "?timeout_ms=30000")["exit_code"] == 130, "Ctrl-C"


def test_resize_needs_a_terminal(box):
    made = start(box, argv=["sleep", "7915"])
    response = box.client.post(path(box, made["pid"]) + "/resize", {"cols": 80, "rows": 24})
    assert (response.status, response.code()) == (409, "wrong_state")


# ---- restarts -------------------------------------------------------------


def test_processes_survive_the_api_and_lose_no_byte(own_daemon):
    daemon = own_daemon().start()
    client = daemon.client()
    box = client.create()
    made = start(box, command="i=0; while [ $i -lt 60 ]; do echo line $i; i=$((i+1)); sleep 0.05; done; exit 9", tag="counter")
    stream = Stream(client, "GET", path(box, "counter") + "/output?follow=1")
    seen = b""
    with pytest.raises(Exception):
        for kind, event in stream:
            if kind == "stdout":
                seen += data(event)
            if seen.count(b"\n") == 10:
                daemon.kill_api()
        assert False, "the stream was cut"
    assert client.get(path(box, made["pid"])).json()["tag"] == "counter"
    result = follow(box, "counter", f"&stdout={len(seen)}")
    assert seen + result.out == b"".join(b"line %d\n" % i for i in range(60)) and result.exit_code == 9
    client.close()


def test_many(box, daemon):
    def one(i):
        client = daemon.client()
        mine = box.with_client(client)
        made = start(mine, command=f"echo {i}; exit {i}")
        result = follow(mine, made["pid"])
        client.close()
        return result.out, result.exit_code

    calls = [paddock.Background(one, i) for i in range(20)]
    assert [c.result() for c in calls] == [(f"{i}\n".encode(), i) for i in range(20)]
