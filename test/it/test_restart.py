"""Restart is a non-event: boxes survive the death of everything of ours outside them."""

import contextlib
import http.client
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import threading
from datetime import datetime, timezone

import pytest

import paddock


def write_state(box):
    box.put("/workspace/kept", b"kept\n")
    box.put("/tmp/kept", b"in tmp\n")
    return box.pid1(), box.namespaces()


def check_state(box, before):
    assert (box.pid1(), box.namespaces()) == before, "it is the same box, not one like it"
    assert box.get()["status"] == "running"
    assert box.check("cat /workspace/kept /tmp/kept; id -un; pwd") == "kept\nin tmp\nuser\n/workspace\n"
    assert box.put("/workspace/new", b"x" * 100_000).status == 201
    assert box.read("/workspace/new").body == b"x" * 100_000
    assert box.remove("/workspace/new").status == 204


def test_kill_the_api(own_daemon):
    daemon = own_daemon().start()
    box = daemon.client().create(name="kept", metadata={"a": "b"}, env={"E": "env"}, ttl_seconds=3000)
    before, document = write_state(box), {**box.get(), "disk": None}
    keeper = daemon.keeper_pid
    for _ in range(3):
        daemon.kill_api()
        box = box.with_client(daemon.client())
        check_state(box, before)
        assert {**box.get(), "disk": None} == document
        assert box.check("echo $E") == "env\n"
    assert daemon.keeper_pid == keeper and daemon.process.poll() is None


def test_kill_the_keeper(own_daemon):
    daemon = own_daemon().start()
    boxes = [daemon.client().create(name=f"b{i}") for i in range(3)]
    before = [write_state(box) for box in boxes]
    for _ in range(2):
        daemon.kill_keeper()
        assert all(os.path.exists(f"/proc/{pid}") for pid, _ in before), "boxes go on without us"
        daemon.start()
        for box, state in zip(boxes, before):
            check_state(box.with_client(daemon.client()), state)
    api = daemon.client()
    new = api.create()
    maps = {paddock.read(f"/proc/{one.pid1()}/uid_map") for one in (*boxes, new)}
    assert len(maps) == 4, "an adopted box's uid range is not given out again"
    assert api.try_create(name="b1").status == 409


def test_keeper_dies_while_a_program_starts(own_daemon, workdir):
    """A change of the user undoes what ends a program with its parent: one that is just there ends all the same."""
    daemon = own_daemon().start()
    old = next(pid for pid, name in daemon.programs().items() if name == "paddock-gauge")
    trace = workdir / "starts"
    with paddock.traced(daemon.keeper_pid, "-f", "-o", trace, "-e", "trace=setresuid", "-e", "inject=setresuid:delay_exit=2000000"):
        daemon.api_kills += 1
        paddock.kill(old)
        paddock.until(lambda: "setresuid(" in trace.read_text(), "the next one changes its user")
        assert [pid for pid, name in daemon.programs().items() if name == "paddock-gauge" and pid != old], "the control"
        daemon.kill_keeper()  # which looks for what outlives it
    daemon.start()


def test_orderly_stop_and_start(own_daemon):
    daemon = own_daemon().start()
    box = daemon.client().create()
    before = write_state(box)
    daemon.stop()
    daemon.start()
    check_state(box.with_client(daemon.client()), before)


def test_a_running_process_survives(own_daemon):
    daemon = own_daemon().start()
    box = daemon.client().create()
    box.exec("setsid sleep 7300 >/dev/null 2>&1 &")
    pid = box.find_process("7300")
    daemon.restart()
    assert paddock.comm(pid) == "sleep"
    assert "7300" in box.with_client(daemon.client()).check("cat /proc/[0-9]*/cmdline | tr '\\0' ' '")


def test_answered_creates_survive(own_daemon):
    """kill -9 of everything at a random moment of a stream of creates."""
    daemon = own_daemon().start()
    for round_number in range(3):
        answered, go = [], threading.Event()

        def creates():
            client = daemon.client()
            try:
                while True:
                    answered.append(client.create().id)
                    go.set()
            except Exception:  # noqa: BLE001 - the daemon was killed, as planned
                go.set()

        thread = threading.Thread(target=creates, daemon=True)
        thread.start()
        assert go.wait(10)
        target = random.Random(round_number).randint(2, 12)
        paddock.until(lambda: len(answered) >= target or not thread.is_alive(), "some creates")
        daemon.kill_keeper()
        thread.join(10)
        daemon.start()
        api = daemon.client()
        listed = {box["id"]: box["status"] for box in api.list()}
        assert set(answered) <= set(listed), "an answered create was lost"
        assert all(listed[box] == "running" for box in answered)
        for box in answered:
            assert paddock.Box(api, {"id": box}).check("echo here") == "here\n"
        daemon.delete_all()
        assert paddock.until_empty(daemon.box_leftovers) == [], "of creates that were under way"


def test_answered_deletes_stay_deleted(own_daemon):
    daemon = own_daemon().start()
    api = daemon.client()
    boxes = [api.create() for _ in range(4)]
    for box in boxes[:2]:
        box.delete()
    daemon.restart()
    assert {box["id"] for box in daemon.client().list()} == {box.id for box in boxes[2:]}


def exits(api, box):
    events = api.get(f"/v1/events?limit=1000&sandbox={box.id}").json()["events"]
    return [event["type"] for event in events].count("exited")


def test_box_that_died_while_the_daemon_was_down(own_daemon):
    daemon = own_daemon().start()
    api = daemon.client()
    dead, alive = api.create(name="dead"), api.create(name="alive")
    pid = dead.pid1()
    daemon.kill_keeper()
    paddock.kill(pid)
    assert paddock.wait_gone(pid)
    daemon.start()
    api = daemon.client()
    assert dead.with_client(api).get()["status"] == "stopped"
    # Its event can be read when it is on the disk, which may be after the state.
    paddock.until(lambda: exits(api, dead), "what happened while nobody looked is told")
    assert exits(api, dead) == 1 and exits(api, alive) == 0
    daemon.restart()
    api = daemon.client()
    assert exits(api, dead) == 1, "and told once"
    assert dead.with_client(api).try_exec(["true"]).status == 409
    assert alive.with_client(api).check("echo yes") == "yes\n"
    assert api.delete(dead.path).status == 204


def test_box_that_died_while_the_api_was_dead(own_daemon):
    """The keeper stands still while both die, so that nobody hears of the box's end: the next api finds it when it takes over."""
    daemon = own_daemon().start()
    client = daemon.client()
    dead, alive = client.create(name="dead"), client.create(name="alive")
    pid, api = dead.pid1(), daemon.api_pid()
    daemon.api_kills += 1
    os.kill(daemon.keeper_pid, signal.SIGSTOP)
    for one in (api, pid):
        os.kill(one, signal.SIGKILL)
        paddock.until(lambda: paddock.proc_status(one)["State"][0] == "Z", "it has ended")
    os.kill(daemon.keeper_pid, signal.SIGCONT)
    paddock.until(lambda: daemon.api_pid() not in (None, api), "a new paddock-api")
    paddock.until(daemon.healthy, "the new paddock-api answers")
    client = daemon.client()
    assert dead.with_client(client).get()["status"] == "stopped" and alive.with_client(client).check("echo yes") == "yes\n"
    paddock.until(lambda: exits(client, dead), "its end is told")
    assert exits(client, dead) == 1 and exits(client, alive) == 0
    daemon.kill_api()
    assert exits(daemon.client(), dead) == 1, "it is told once"


def test_ttl_that_ran_out_while_the_daemon_was_down(own_daemon):
    daemon = own_daemon().start()
    box = daemon.client().create(ttl_seconds=1)
    pid = box.pid1()
    daemon.kill_keeper()
    expires = box.document["expires_at"]
    paddock.until(lambda: datetime.now(timezone.utc).isoformat() > expires, "the ttl is over")
    daemon.start()
    assert paddock.wait_gone(pid, 5), "the ttl is kept by the next daemon"


def test_foreign_process_with_a_reused_pid_is_left_alone(own_daemon, tmp_path):
    """The pid in a run directory may long belong to another: it is told by its start time."""
    daemon = own_daemon().start()
    box = daemon.client().create()
    pid = box.pid1()
    daemon.kill_keeper()
    paddock.kill(pid)
    assert paddock.wait_gone(pid)
    innocent = subprocess.Popen(["sleep", "1000"])
    for name in os.listdir(box.run_dir):
        path = box.run_dir / name
        if path.is_file() and str(pid) in paddock.read(path):
            path.write_text(paddock.read(path).replace(str(pid), str(innocent.pid)))
    daemon.start()
    api = daemon.client()
    assert box.with_client(api).get()["status"] == "stopped"
    assert api.delete(box.path).status == 204
    assert innocent.poll() is None, "the daemon killed a stranger"
    innocent.kill()
    innocent.wait()


def test_debris_in_the_run_directory(own_daemon):
    """What a crash or a hand left there does not stop the start."""
    daemon = own_daemon().start()
    box = daemon.client().create()
    before = write_state(box)
    daemon.kill_keeper()
    debris = daemon.run_dir / "boxes" / ("z" * 20)
    debris.mkdir()
    (debris / "state").write_bytes(b"\xff\x00garbage")
    (daemon.run_dir / "boxes" / "not-an-id").mkdir()
    daemon.start()
    check_state(box.with_client(daemon.client()), before)
    for name in ("z" * 20, "not-an-id"):
        shutil.rmtree(daemon.run_dir / "boxes" / name, ignore_errors=True)


def test_api_that_dies_again_and_again_does_not_spin(own_daemon):
    daemon = own_daemon().start()
    for _ in range(5):
        daemon.kill_api()
    assert daemon.client().create().check("echo fine") == "fine\n"


def test_exec_under_way_when_the_api_dies(own_daemon):
    daemon = own_daemon().start()
    box = daemon.client().create()
    helper = paddock.Background(box.with_client(daemon.client()).exec, ["sleep", "7400"])
    box.find_process("7400")
    daemon.kill_api()
    with pytest.raises(Exception):
        helper.result()
    box = box.with_client(daemon.client())
    assert box.check("echo next") == "next\n"
    # Nobody waits for it any more: as with a client that went away.
    paddock.until(lambda: "7400" not in box.check("cat /proc/[0-9]*/cmdline | tr '\\0' ' '"), "the orphaned exec is gone")


def test_two_daemons_side_by_side(own_daemon):
    one, two = own_daemon().start(), own_daemon().start()
    assert one.port != two.port and one.key != two.key
    in_one, in_two = one.client().create(name="same"), two.client().create(name="same")
    assert paddock.Client(two, one.key).get("/v1/sandboxes").status == 401
    assert [box["id"] for box in one.client().list()] == [in_one.id]
    assert [box["id"] for box in two.client().list()] == [in_two.id]
    in_one.put("/workspace/x", b"one")
    assert in_two.read("/workspace/x").status == 404
    assert paddock.read(f"/proc/{in_one.pid1()}/uid_map") != paddock.read(f"/proc/{in_two.pid1()}/uid_map"), \
        "boxes of two daemons share host ids"
    one.restart()
    assert in_two.check("echo untouched") == "untouched\n"
    in_two.delete()
    assert in_one.with_client(one.client()).check("echo untouched") == "untouched\n"


def test_second_daemon_on_the_same_directories_is_refused(own_daemon):
    daemon = own_daemon().start()
    box = daemon.client().create()
    second = paddock.Daemon(daemon.base)
    second.log_file = daemon.base / "log2"
    with pytest.raises(AssertionError, match="exited with [1-9]"):
        second.start(timeout=10)
    assert box.check("echo fine") == "fine\n"


def test_port_in_use_is_said(own_daemon):
    daemon = own_daemon().start()
    other = own_daemon(listen=f"127.0.0.1:{daemon.port}")
    with pytest.raises(AssertionError, match="(?i)in use"):
        other.start(timeout=10)
    other.listen = "127.0.0.1:0"


def test_a_store_that_cannot_be_opened_is_named(own_daemon):
    """As the api sees it, in whose root it lies: "/paddock.db", not "//paddock.db"."""
    daemon = own_daemon().start()
    daemon.stop()
    database = daemon.data_dir / "store" / "paddock.db"
    aside = database.with_suffix(".aside")
    database.rename(aside)
    database.symlink_to("elsewhere")
    daemon.api_kills += 1  # its end is what is wanted here
    with pytest.raises(AssertionError) as raised:
        daemon.start(timeout=10)
    said = str(raised.value) + daemon.log()
    assert "/paddock.db" in said and "//paddock.db" not in said, said[-2000:]
    database.unlink()
    aside.rename(database)


def test_store_of_a_newer_version_is_refused(own_daemon):
    daemon = own_daemon().start()
    daemon.client().create().delete()
    daemon.stop()
    database = daemon.data_dir / "store" / "paddock.db"
    with sqlite3.connect(database) as connection:
        version, = connection.execute("PRAGMA user_version").fetchone()
        connection.execute(f"PRAGMA user_version = {version + 1000}")
    connection.close()
    daemon.api_kills += 1  # its end is what is wanted here
    with pytest.raises(AssertionError, match="(?i)version|newer"):
        daemon.start(timeout=10)
    with sqlite3.connect(database) as connection:
        connection.execute(f"PRAGMA user_version = {version}")
    connection.close()


def test_removals_go_on(own_daemon):
    """What was being deleted when the keeper died is deleted by the next start; nobody has to ask again."""
    daemon = own_daemon().start()
    api = daemon.client()
    box, kept = api.create(), api.create()

    def noted():
        with contextlib.closing(sqlite3.connect(f"file:{daemon.data_dir}/store/paddock.db?mode=ro", uri=True)) as db:
            return db.execute("SELECT status FROM boxes WHERE id = ?", (box.id,)).fetchone() == ("deleting",)

    os.kill(daemon.keeper_pid, signal.SIGSTOP)  # it gets the call and does not answer
    deletion = paddock.Background(api.delete, box.path)
    paddock.until(noted, "the removal has begun")
    daemon.kill_keeper()
    with contextlib.suppress(OSError, http.client.HTTPException):
        assert deletion.result().status == 503
    daemon.start()
    paddock.until(lambda: daemon.client().get(box.path).status == 404, "it is removed")
    paddock.until(lambda: not (daemon.disk / "boxes" / box.id).exists(), "with its files")
    assert kept.with_client(daemon.client()).check("echo fine") == "fine\n"
