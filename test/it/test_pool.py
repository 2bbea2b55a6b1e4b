"""Warm boxes: claimed by creates that ask for no more, invisible until then, refilled, adopted."""

import contextlib
import os
import signal
import sqlite3
import threading
import time

import pytest

import paddock


@pytest.fixture
def pooled(own_daemon, workdir):
    """Starts a daemon whose configuration has a pool."""
    made = []

    def make(warm=3, more=""):
        path = workdir / f"pool-{time.monotonic_ns()}.yaml"
        path.write_text(f"pool:\n  machine:\n    warm: {warm}\n{more}")
        daemon = own_daemon(arguments=["--config", str(path)])
        daemon.config = path
        made.append(daemon)
        return daemon.start()

    yield make
    for daemon in made:
        drain(daemon)
    

def running(daemon):
    """Ids of the boxes that the keeper runs, whatever the api says."""
    found = set()
    for name in os.listdir(daemon.run_dir / "boxes"):
        if (daemon.run_dir / "boxes" / name / "state").exists():
            found.add(name)
            daemon.saw(name)
    return found


def filled(daemon, count):
    return paddock.until(lambda: len(r := running(daemon)) == count and r, f"{count} boxes run", 20)


def kept(daemon, count):
    """The store knows this many warm boxes: one that runs without a row goes with the api that made it."""
    def look():
        store = sqlite3.connect(f"file:{daemon.data_dir}/store/paddock.db?mode=ro", uri=True)
        try:
            return store.execute("SELECT count(*) FROM boxes WHERE status = 'pool'").fetchone()[0] == count
        finally:
            store.close()

    paddock.until(look, f"{count} warm boxes have a row", 20)


def drain(daemon):
    """Takes the pool out of the configuration, so that none is left."""
    if daemon.process:
        daemon.stop()
    daemon.config.write_text("")
    daemon.start()
    paddock.until(lambda: not running(daemon) - {box["id"] for box in daemon.client().list()}, "the pool is gone", 20)


def test_claims_keep_the_backend(pooled):
    daemon = pooled()
    api = daemon.client()
    warm = filled(daemon, 3)
    refused = api.try_create(backend="other")
    assert refused.status == 400 and "must be one of: native" in refused.json()["error"]["message"]
    assert api.list() == [] and running(daemon) == warm, "nothing was claimed for it"
    for wish in ({}, {"backend": "native"}):
        box = api.create(**wish)
        assert box.id in warm and box.get()["backend"] == "native"


def test_claim(pooled):
    daemon = pooled()
    api = daemon.client()
    warm = filled(daemon, 3)
    assert api.list() == [], "they are nobody's"
    for box in warm:
        assert api.get(f"/v1/sandboxes/{box}").status == 404
        assert api.delete(f"/v1/sandboxes/{box}").status == 404
    box = api.create(metadata={"a": "b"}, env={"X": "1"}, ttl_seconds=500, ai={"day": 0.25})
    assert box.id in warm
    assert api.get(f"{box.path}/ai").json()["own"] == {"day": 0.25}
    assert box.document["status"] == "running" and box.document["metadata"] == {"a": "b"}
    assert box.document["expires_at"] and box.document["tenant"] == "default"
    assert box.check("hostname; echo $X") == f"{box.id}\n1\n"
    assert [one["id"] for one in api.list()] == [box.id] and box.get()["status"] == "running"
    assert [e["type"] for e in api.get(f"/v1/events?sandbox={box.id}").json()["events"]] == ["created"]
    filled(daemon, 4)  # refilled
    box.delete()
    assert [e["type"] for e in api.get("/v1/events").json()["events"]] == ["created", "deleted"]


def test_a_burst_waits_for_nobody(pooled):
    """Neither a create that is served from the pool nor the command after it asks the keeper for anything."""
    daemon = pooled(8)
    warm = filled(daemon, 8)
    kept(daemon, 8)
    start, made = threading.Barrier(8), []

    def one():
        client = daemon.client()
        start.wait()
        box = client.create()
        made.append((box.id, box.check("echo on")))
        client.close()

    os.kill(daemon.keeper_pid, signal.SIGSTOP)
    try:
        threads = [threading.Thread(target=one) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60 * paddock.SLOW)
    finally:
        os.kill(daemon.keeper_pid, signal.SIGCONT)
    assert {box for box, _ in made} == warm and {out for _, out in made} == {"on\n"}


def test_what_a_warm_box_cannot_be(pooled):
    daemon = pooled(2)
    api = daemon.client()
    warm = filled(daemon, 2)
    for wish in ({"name": "x"}, {"limits": {"memory_mb": 100}}, {"limits": {"cpu": 0.5}}, {"readonly_root": True},
                 {"limits": {"pids": 77}}):
        box = api.create(**wish)
        assert box.id not in warm, wish
        box.delete()
    # what says the same as the default is the default
    box = api.create(limits={"memory_mb": 512}, image="machine", user="root", workdir="/")
    assert box.id in warm and box.check("id -u; pwd") == "0\n/\n"
    assert api.try_create(env={"": "x"}).code() == "invalid_argument"
    box.delete()


def test_an_empty_pool_is_no_error(pooled):
    daemon = pooled(1)
    api = daemon.client()
    filled(daemon, 1)
    boxes = [api.create() for _ in range(6)]
    assert len({box.id for box in boxes}) == 6
    for box in boxes:
        assert box.check("echo ok") == "ok\n"
        box.delete()


def test_quotas_hold_for_claims(pooled):
    daemon = pooled(2)
    api = daemon.client()
    filled(daemon, 2)
    assert api.get("/v1/tenants/default/quota").json()["used"]["boxes"] == 0
    assert api.send_json("PUT", "/v1/tenants/default/quota", {"boxes": 1}).status == 200
    box = api.create()
    assert api.try_create().code() == "quota_exceeded"
    assert api.get("/v1/tenants/default/quota").json()["used"]["boxes"] == 1
    box.delete()


def test_adopted_after_restarts(pooled):
    daemon = pooled(2)
    warm = filled(daemon, 2)
    kept(daemon, 2)
    daemon.restart()
    assert running(daemon) == warm, "the same boxes"
    api = daemon.client()
    box = api.create()
    assert box.id in warm and box.check("echo ok") == "ok\n"
    filled(daemon, 3)
    kept(daemon, 2)
    daemon.kill_api()
    api = daemon.client()
    assert [one["id"] for one in api.list()] == [box.id], "claimed is claimed"
    assert len(running(daemon)) == 3
    paddock.Box(api, box.document).delete()


def test_one_that_dies_is_replaced(pooled):
    daemon = pooled(1)
    first = filled(daemon, 1)
    box = next(iter(first))
    paddock.kill(int(paddock.read(daemon.run_dir / "boxes" / box / "pid")))
    paddock.until(lambda: (r := running(daemon)) and box not in r, "another one", 20)
    api = daemon.client()
    assert api.get("/v1/events").json()["events"] == []
    api.create().delete()


def test_a_smaller_pool_after_a_restart(pooled):
    daemon = pooled(3)
    filled(daemon, 3)
    daemon.stop()
    daemon.config.write_text("pool: {machine: {warm: 1}}\n")
    daemon.start()
    filled(daemon, 1)
    daemon.stop()
    daemon.config.write_text("pool: {machine: {warm: 1}}\ndefaults: {limits: {memory_mb: 256}}\n")
    daemon.start()
    api = daemon.client()
    filled(daemon, 1)
    box = paddock.until(lambda: api.create(), "a box")
    assert box.document["limits"]["memory_mb"] == 256
    box.delete()


def test_an_unknown_image_only_warns(own_daemon, workdir):
    path = workdir / f"pool-{time.monotonic_ns()}.yaml"
    path.write_text("pool: {nothing: {warm: 2}}\n")
    daemon = own_daemon(arguments=["--config", str(path)]).start()
    daemon.client().create().delete()


@pytest.mark.parametrize("text", ["pool: 3", "pool: [machine]", "pool: {machine: 3}", "pool: {machine: {warm: -1}}",
                                  "pool: {machine: {}}", "pool: {machine: {warm: 1, x: 2}}", "pool: {'../x': {warm: 1}}",
                                  "pool: {machine: {warm: 999}}\nmax: {boxes: 10}"])
def test_bad_configurations(workdir, text):
    import subprocess

    path = workdir / "bad-pool.yaml"
    path.write_text(text + "\n")
    run = subprocess.run([paddock.BIN / "paddock", "config", "check", "--config", path], capture_output=True, text=True,
                         env=paddock.clean_environment())
    assert run.returncode != 0 and "pool" in run.stderr, run


def test_claims_are_fast(pooled):
    """Not a benchmark, which is `make bench`: a claim must not be a cold start in disguise."""
    daemon = pooled(30)
    api = daemon.client()
    filled(daemon, 30)
    took = []
    for _ in range(20):
        begin = time.perf_counter()
        box = api.create()
        took.append(time.perf_counter() - begin)
        api.delete(box.path)
    took.sort()
    print(f"p50 {took[10] * 1e6:.0f} us, min {took[0] * 1e6:.0f} us")
    assert took[2] < 0.05  # some meet no other load


# ---- parts ----


@pytest.mark.parametrize("parts", [0, 3])
def test_parts(own_daemon, parts):
    """They are made ahead, refilled, and nobody needs them."""
    daemon = own_daemon(environment={"PADDOCK_PARTS": parts}).start()
    paddock.until(lambda: daemon.spare_networks() == parts, "they are made", 15)
    api = daemon.client()
    boxes = [api.create() for _ in range(5)]
    assert [box.check("echo ok") for box in boxes] == ["ok\n"] * 5
    paddock.until(lambda: daemon.spare_networks() == parts, "they are made again", 15)


def test_boxes_for_e2b_have_a_login_shell(pooled):
    """Once a client of E2B's has created one; others do not pay for it."""
    daemon = pooled(warm=3)
    warm = filled(daemon, 3)
    client = daemon.client()
    first = client.post("/v2/sandboxes", {"templateID": "base"}).json()["sandboxID"]
    daemon.saw(first)

    def with_shells():
        found = set()
        for box in running(daemon) - {first}:
            group = next(iter(paddock.cgroup_dirs(box).values()), None)
            pids = paddock.read(group / "cgroup.procs").split() if group else []
            for pid in pids:
                with contextlib.suppress(OSError):  # it has ended meanwhile
                    if "__paddock" in paddock.read(f"/proc/{pid}/cmdline"):
                        found.add(box)
        return found

    paddock.until(lambda: len(found := with_shells()) == 3 and warm < found | {first}, "those that wait have one, and the new one")
    assert client.delete(f"/sandboxes/{first}").status == 204
    client.close()


def loop_files():
    found = []
    for name in os.listdir("/sys/block"):
        path = f"/sys/block/{name}/loop/backing_file"
        if os.path.exists(path):
            found.append(paddock.read(path).strip())
    return found


def test_an_orderly_end_leaves_the_disk(pooled):
    """What the daemon started for itself ends with it: then the file system can be unmounted and copied."""
    daemon = pooled(2)
    filled(daemon, 2)
    kept(daemon, 2)
    api = daemon.client()
    assert api.post("/v1/workspaces", {"name": "served"}).status == 201
    assert api.request("PUT", "/v1/workspaces/served/files/x", b"data").status in (200, 201, 204)  # by a hidden box
    assert len(running(daemon)) > 2
    box = api.create()
    api.close()
    daemon.stop()
    assert running(daemon) == {box.id}, "that of a client goes on"
    daemon.start()
    paddock.Box(daemon.client(), box.document).delete()
    daemon.stop()
    assert not running(daemon)
    if (daemon.data_dir / "disk.btrfs").exists():
        mine = str(daemon.data_dir / "disk.btrfs")
        paddock.until(lambda: not [path for path in loop_files() if path == mine], "the disk is free")
    daemon.start()
    assert daemon.client().delete("/v1/workspaces/served").status == 204
