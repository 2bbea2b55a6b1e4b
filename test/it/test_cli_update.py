"""paddock update: a sandbox that lives gets another name, other limits and another end."""

import json

import pytest

import paddock
from clitool import Cli


@pytest.fixture(scope="module")
def cli(daemon):
    return Cli(daemon)


def limit_of(box, controller, *files):
    for directory in paddock.cgroup_dirs(box).values():
        for name in files:
            if (directory / name).exists():
                return (directory / name).read_text().split()[0]
    raise AssertionError(f"no {files} of {box}")


def test_limits_of_a_living_sandbox(cli, make_box):
    box = make_box(limits={"memory_mb": 256, "cpu": 0.5, "pids": 50})
    cli.ok("update", box.id, "--memory", "512m", "--cpu", "1.5", "--pids", "99")
    assert limit_of(box.id, "memory", "memory.max", "memory.limit_in_bytes") == str(512 << 20)
    assert limit_of(box.id, "cpu", "cpu.max", "cpu.cfs_quota_us") == "150000"
    assert limit_of(box.id, "pids", "pids.max") == "99"
    limits = json.loads(cli.ok("inspect", box.id))["limits"]
    assert (limits["memory_mb"], limits["cpu"], limits["pids"]) == (512, 1.5, 99)
    cli.ok("update", box.id, "--memory", "128m")
    assert limit_of(box.id, "memory", "memory.max", "memory.limit_in_bytes") == str(128 << 20)
    assert json.loads(cli.ok("inspect", box.id))["limits"]["cpu"] == 1.5, "what is not named stays"


def test_memory_that_is_in_use_is_not_taken_away(cli, api, make_box):
    box = make_box(limits={"memory_mb": 256})
    api.post(f"/v1/sandboxes/{box.id}/processes", {"argv": ["python3", "-c", "x = b'x' * (100 << 20); print('have', flush=True); input()"], "stdin": True, "tag": "eater"})
    paddock.until(lambda: cli("logs", box.id, "eater").out == "have\n", "the memory is in use", 30)
    assert "uses more memory" in cli.refused("update", box.id, "--memory", "64m", "--name", "not-this")
    inspected = json.loads(cli.ok("inspect", box.id))
    assert inspected["limits"]["memory_mb"] == 256 and inspected["name"] is None, "nothing is changed by halves"


def test_name_labels_and_end(cli, make_box):
    box, other = make_box(name="update-one", metadata={"a": "b"}), make_box(name="update-two")
    cli.ok("update", "update-one", "--name", "update-new", "--metadata", "c=d", "--ttl", "2h", "--on-end", "stop")
    inspected = json.loads(cli.ok("inspect", "update-new"))
    assert inspected["id"] == box.id and inspected["metadata"] == {"c": "d"} and inspected["on_end"] == "stop"
    assert 7000 < paddock.seconds_until(inspected["expires_at"]) <= 7200
    assert "update-one" in cli.refused("inspect", "update-one")
    assert "already" in cli.refused("update", box.id, "--name", "update-two")
    assert json.loads(cli.ok("inspect", "update-new"))["id"] == box.id
    cli.ok("update", box.id, "--ttl", "never")
    assert json.loads(cli.ok("inspect", box.id))["expires_at"] is None
    assert other.id in cli.ids()


def test_what_is_refused(cli, api, make_box):
    box = make_box()
    assert "nothing" in cli.refused("update", box.id)
    assert "limits.memory_mb" in cli.refused("update", box.id, "--memory", "1")
    assert api.request("PATCH", box.path, json.dumps({"limits": {"nofile": 100}}), {"Content-Type": "application/json"}).status == 400
    assert api.request("PATCH", box.path, json.dumps({"name": "a/b"}), {"Content-Type": "application/json"}).status == 400
    assert "yes or no" in cli.refused("update", box.id, "--auto-resume", "maybe")


def test_it_lasts(own_daemon):
    daemon = own_daemon().start()
    cli = Cli(daemon)
    box = cli.ok("create", "--name", "before").strip()
    cli.ok("update", box, "--name", "after", "--memory", "300m")
    daemon.restart()
    inspected = json.loads(Cli(daemon).ok("inspect", "after"))
    assert inspected["id"] == box and inspected["limits"]["memory_mb"] == 300
