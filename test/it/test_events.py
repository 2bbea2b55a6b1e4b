"""The log of events: pages, streams that resume, tenants apart, nothing lost."""

import http.client
import json
import re
import sqlite3
import threading
import time

import pytest

import paddock


class Stream:
    """GET /v1/events as server-sent events, read by a thread; fields() are what came."""

    def __init__(self, daemon, query="", key=None, last=None):
        self.client = daemon.client() if key is None else paddock.Client(daemon, key)
        headers = {"Accept": "text/event-stream"}
        if last is not None:
            headers["Last-Event-ID"] = str(last)
        self.response = self.client.start("GET", "/v1/events" + (f"?{query}" if query else ""), headers=headers)
        assert self.response.status == 200 and self.response.getheader("content-type") == "text/event-stream"
        self.events, self.comments, self.ended = [], 0, False
        self.thread = threading.Thread(target=self.read, daemon=True)
        self.thread.start()
        paddock.until(lambda: self.comments, "the stream has begun")

    def read(self):
        fields = {}
        try:
            for line in self.response:
                line = line.decode().rstrip("\n")
                if line.startswith(":"):
                    self.comments += 1
                elif line:
                    name, _, value = line.partition(": ")
                    fields[name] = value
                elif fields:
                    self.events.append(fields)
                    fields = {}
        except (OSError, http.client.HTTPException):
            pass
        self.ended = True

    def wait(self, count, timeout=10):
        paddock.until(lambda: len(self.events) >= count, f"{count} events, not {self.events}", timeout)
        return [(event["event"], json.loads(event["data"])["sandbox"]) for event in self.events[:count]]

    def close(self):
        if self.client.connection and self.client.connection.sock:
            self.client.connection.sock.shutdown(2)
        self.thread.join(10)
        self.client.close()


def page(api, query=""):
    response = api.get("/v1/events" + (f"?{query}" if query else ""))
    assert response.status == 200, response
    return response.json()


def of_box(api, box, **more):
    query = "&".join([f"sandbox={box.id}", *(f"{key}={value}" for key, value in more.items())])
    return [event["type"] for event in page(api, query)["events"]]


def test_life_of_a_box(api):
    box = api.create(name="watched", metadata={"a": "b"})
    box.delete()
    # An event is told when it is on disk, which may be a moment after the answer.
    paddock.until(lambda: of_box(api, box) == ["created", "deleted"], "both are told")
    events = page(api, f"sandbox={box.id}")["events"]
    ids = [event["id"] for event in events]
    assert ids == sorted(ids) and len(set(ids)) == 2
    for event in events:
        assert event["tenant"] == "default" and event["sandbox"] == box.id
        assert event["data"] == {"name": "watched", "image": "machine"}
        assert event["at"].endswith("Z")


@pytest.mark.parametrize("path", ["/v1/events", "/v1/sandboxes/{id}/fs/watch?path=/workspace"])
def test_a_reader_that_left_is_noticed(api, make_box, daemon, path):
    """By what it said, which is nothing but the end: long before something is to be written to it."""
    def connections():
        return int(re.search(rb"^paddock_http_connections (\d+)", api.get("/metrics").body, re.M)[1])

    reader = daemon.client()
    response = reader.start("GET", path.format(id=make_box().id), headers={"Accept": "text/event-stream"})
    assert response.status == 200 and response.readline()
    before = connections()
    left = time.monotonic()
    response.close()
    reader.close()
    paddock.until(lambda: connections() < before, "the daemon has closed the connection")
    assert time.monotonic() - left < 10, "only the comment of every 15 s told it"


def test_exit_and_expiry(api):
    box = api.create()
    paddock.kill(box.pid1())
    paddock.until(lambda: "exited" in of_box(api, box), "the exit is told")
    exited = page(api, f"sandbox={box.id}&type=exited")["events"][0]
    assert exited["data"]["signal"] == 9 and exited["data"]["exit_code"] == 137 and exited["data"]["oom"] is False
    box.delete()
    short = api.create(ttl_seconds=1)
    paddock.until(lambda: "deleted" in of_box(api, short), "its time is over")
    assert of_box(api, short) == ["created", "expired", "deleted"]


def test_every_step(api, make_box):
    box = make_box()
    for step, event in (("pause", "paused"), ("resume", "resumed"), ("stop", "stopped"), ("start", "started")):
        response = api.post(f"{box.path}/{step}", {})
        assert response.status == 200, response
        paddock.until(lambda: of_box(api, box)[-1:] == [event], f"{event} is told")
    snapshot = api.post(f"{box.path}/snapshots", {})
    assert snapshot.status == 201, snapshot
    told = paddock.until(lambda: page(api, f"sandbox={box.id}&type=snapshot")["events"], "the snapshot is told")[0]
    assert told["data"]["snapshot"] == snapshot.json()["id"]
    fork = api.post(f"{box.path}/fork", {"count": 1})
    assert fork.status == 201, fork
    twin = paddock.Box(api, fork.json()["sandboxes"][0])
    api.daemon.saw(twin.id)
    paddock.until(lambda: sorted(of_box(api, twin)) == ["created", "forked"], "the fork is told")
    assert page(api, f"sandbox={twin.id}&type=forked")["events"][0]["data"]["source"] == box.id
    assert of_box(api, box) == ["created", "paused", "resumed", "stopped", "started", "snapshot"]
    twin.delete()
    assert api.delete(f"/v1/snapshots/{snapshot.json()['id']}").status == 204


def test_out_of_memory(api, make_box):
    box = make_box(limits={"memory_mb": 64})
    box.python("x = bytearray(200 << 20)")
    paddock.until(lambda: "oom" in of_box(api, box), "it is told", timeout=20)


def test_pages(api):
    start = page(api, "limit=1000")["next"]
    while (more := page(api, f"after={start}&limit=1000"))["events"]:
        start = more["next"]
    boxes = [api.create() for _ in range(3)]
    for box in boxes:
        box.delete()
    for box in boxes:
        paddock.until(lambda: of_box(api, box) == ["created", "deleted"], "all are told")
    seen, after = [], start
    for _ in range(10):
        part = page(api, f"after={after}&limit=2")
        assert len(part["events"]) <= 2
        if not part["events"]:
            break
        seen += [(event["type"], event["sandbox"]) for event in part["events"]]
        after = part["next"]
    assert sorted(seen) == sorted([(t, b.id) for b in boxes for t in ("created", "deleted")])
    assert page(api, f"after={after}") == {"events": [], "next": after, "first": page(api)["first"]}
    only = page(api, f"after={start}&type=deleted,oom")["events"]
    assert [event["type"] for event in only] == ["deleted"] * 3


BAD = ["after=x", "after=-1", "limit=0", "limit=100000", "type=nonsense", "type=", "sandbox=", "what=1"]


@pytest.mark.parametrize("query", BAD)
def test_bad_queries(api, query):
    for headers in ({}, {"Accept": "text/event-stream"}):
        if "limit" in query and headers:
            continue
        response = api.get(f"/v1/events?{query}", headers=headers)
        assert (response.status, response.code()) == (400, "invalid_argument")


def test_stream(daemon, api):
    stream = Stream(daemon)
    box = api.create()
    assert stream.wait(1) == [("created", box.id)]
    box.delete()
    assert stream.wait(2)[1] == ("deleted", box.id)
    ids = [int(event["id"]) for event in stream.events]
    assert ids == sorted(ids) == [json.loads(event["data"])["id"] for event in stream.events]
    stream.close()
    # a filter on type and box
    one, two = api.create(), api.create()
    stream = Stream(daemon, f"type=deleted&sandbox={two.id}")
    one.delete()
    two.delete()
    assert stream.wait(1) == [("deleted", two.id)]
    assert len(stream.events) == 1
    stream.close()


def test_resume(daemon, api):
    stream = Stream(daemon)
    one = api.create()
    stream.wait(1)
    last = stream.events[0]["id"]
    stream.close()
    one.delete()
    two = api.create()
    two.delete()
    expected = [("deleted", one.id), ("created", two.id), ("deleted", two.id)]
    for options in ({"last": last}, {"query": f"after={last}"}, {"query": "after=1", "last": last}):
        again = Stream(daemon, **options)
        assert again.wait(3) == expected, options
        again.close()


def test_an_id_from_the_future_means_now(daemon, api):
    stream = Stream(daemon, last=10**15)
    box = api.create()
    assert stream.wait(1) == [("created", box.id)]
    box.delete()
    stream.close()


def test_tenants_see_their_own(daemon, api):
    keys = [api.post("/v1/keys", {"tenant": f"events-{i}", "role": "user", "create_tenant": True}).json() for i in range(2)]
    clients = [paddock.Client(daemon, key["key"]) for key in keys]
    streams = [Stream(daemon, key=key["key"]) for key in keys]
    boxes = [client.create() for client in clients]
    for i in range(2):
        assert streams[i].wait(1) == [("created", boxes[i].id)]
        assert {event["sandbox"] for event in page(clients[i])["events"]} == {boxes[i].id}
        assert page(clients[i], f"sandbox={boxes[1 - i].id}")["events"] == []
    for box in boxes:
        assert {event["sandbox"] for event in page(api, f"sandbox={box.id}")["events"]} == {box.id}
    for i in range(2):
        boxes[i].delete()
        streams[i].wait(2)
        assert len(streams[i].events) == 2
        streams[i].close()
        clients[i].close()
        assert api.delete(f"/v1/keys/{keys[i]['id']}").status == 204


def test_nothing_is_lost_over_restarts(own_daemon):
    """The api is killed at any moment: every box that was answered has its events, in order, once."""
    daemon = own_daemon().start()
    api = daemon.client()
    made = []
    for round_number in range(3):
        for _ in range(3):
            box = api.create()
            made.append(box)
        made[-1].delete()
        daemon.kill_api()
        api = daemon.client()
        made = [paddock.Box(api, box.document) for box in made]
    daemon.restart()
    api = daemon.client()
    events = page(api, "limit=1000")["events"]
    ids = [event["id"] for event in events]
    assert ids == sorted(set(ids))
    for box in made:
        types = [event["type"] for event in events if event["sandbox"] == box.id]
        assert types[:1] == ["created"] and types.count("created") == 1, (box, types)
    for box in made:
        if api.get(box.path).status == 200:
            paddock.Box(api, box.document).delete()


def test_a_box_that_ended_while_nobody_looked(own_daemon):
    daemon = own_daemon().start()
    box = daemon.client().create()
    pid = box.pid1()
    daemon.stop()
    paddock.kill(pid)
    assert paddock.wait_gone(pid)
    daemon.start()
    api = daemon.client()
    paddock.until(lambda: of_box(api, box) == ["created", "exited"], "its end is told")
    paddock.Box(api, box.document).delete()


def test_a_stop_ends_the_streams_at_once(own_daemon):
    daemon = own_daemon().start()
    stream = Stream(daemon)
    began = time.monotonic()
    daemon.stop()
    assert time.monotonic() - began < 5
    paddock.until(lambda: stream.ended, "the stream has ended")
    stream.close()


# ---- what one tenant learns of others, and takes from them --------------------------


def tenant(daemon, api, name):
    return paddock.Client(daemon, api.post("/v1/keys", {"tenant": name, "role": "user", "create_tenant": True}).json()["key"])


def churn(client, times=1):
    for _ in range(times):
        client.create().delete()


def test_ids_tell_nothing_of_others(own_daemon):
    """A tenant gets the same ids and cursors whether another is idle or busy; an admin sees the difference."""
    seen, all_of = [], []
    for noise in (0, 5):
        daemon = own_daemon().start()
        api = daemon.client()
        quiet, busy = tenant(daemon, api, "quiet"), tenant(daemon, api, "busy")
        empty = page(quiet)
        churn(busy, noise)
        stream = Stream(daemon, key=quiet.key)
        pages = [page(quiet)]
        for _ in range(2):
            churn(quiet)
            churn(busy, noise)
            pages.append(page(quiet))
            pages.append(page(quiet, "type=created"))
        stream.wait(4)
        stream.close()
        daemon.kill_api()  # numbers go on where they were
        paddock.until(daemon.healthy, "the daemon is back")
        quiet, busy = (paddock.Client(daemon, client.key) for client in (quiet, busy))
        churn(busy, noise)
        churn(quiet)
        pages.append(page(quiet, f"after={pages[-2]['next']}"))
        assert [event["type"] for event in pages[-1]["events"]] == ["created", "deleted"], "resumes after a restart"
        numbers = [[event["id"] for event in one["events"]] + [one["next"], one["first"]] for one in [empty, *pages]]
        seen.append((numbers, [event["id"] for event in stream.events]))
        all_of.append(page(daemon.client(), "limit=1000")["next"])
        again = Stream(daemon, key=quiet.key, last=2)
        assert [kind for kind, _ in again.wait(4)] == ["created", "deleted"] * 2
        assert [event["id"] for event in again.events] == ["3", "4", "5", "6"]
        again.close()
        daemon.finish()
    assert seen[0] == seen[1]
    assert seen[0][0][-1] == [5, 6, 6, 1], seen[0]
    assert all_of[1] > all_of[0] + 20, "the control: an admin sees the others"


def test_a_busy_tenant_loses_its_own(own_daemon):
    """The log is full: what goes are events of the tenant that has the most, in memory and on disk."""
    daemon = own_daemon().start()
    api = daemon.client()
    quiet, busy = tenant(daemon, api, "quiet"), tenant(daemon, api, "busy")
    churn(quiet, 3)
    churn(busy)
    before = page(quiet)
    ids = {row["name"]: row["id"] for row in api.get("/v1/tenants").json()["tenants"]}
    daemon.stop()
    with sqlite3.connect(daemon.data_dir / "store" / "paddock.db") as db:
        last, number = db.execute("SELECT max(id), max(CASE WHEN tenant = ? THEN number END) FROM events", (ids["busy"],)).fetchone()
        now = int(time.time() * 1000)
        db.executemany("INSERT INTO events (id, at_ms, tenant, box, type, data, number) VALUES (?, ?, ?, 'x', 'created', '{}', ?)",
                       [(last + i, now, ids["busy"], number + i) for i in range(1, 9993)])  # and so it is full
    db.close()
    daemon.start()
    quiet, busy, api = (paddock.Client(daemon, client.key) for client in (quiet, busy, api))
    assert page(quiet) == before, "though they are the oldest of all"
    churn(busy, 5)
    churn(quiet)
    held = tuple(api.get(f"/v1/tenants/{name}/quota").json()["used"]["events"] for name in ("busy", "quiet"))
    assert held == (10000 - 8, 8)
    assert page(quiet, "limit=1000")["events"][:6] == before["events"]
    assert page(busy)["first"] > 1 and page(busy, f"after={page(busy)['first']}")["events"][0]["id"] == page(busy)["first"] + 1
    lost = Stream(daemon, key=busy.key, last=1)
    paddock.until(lambda: lost.events, "it is told")
    assert lost.events[0]["event"] == "lost"
    lost.close()
    daemon.stop()
    with sqlite3.connect(daemon.data_dir / "store" / "paddock.db") as db:
        assert dict(db.execute("SELECT tenant, count(*) FROM events GROUP BY tenant")) == {ids["busy"]: held[0], ids["quiet"]: held[1]}
    db.close()
