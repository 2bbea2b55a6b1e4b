"""Out of memory is said: of exec, processes, shells and contexts, in events and by the command line."""

import subprocess

import pytest

import paddock

EAT = "python3 -c 'x = bytearray(1 << 30)'"


@pytest.fixture(scope="module")
def tight(daemon):
    with paddock.boxes_of(daemon.client()) as make:
        yield make(limits={"memory_mb": 100})


def said(document):
    return document["oom_killed"], document.get("memory_limit_mb")


def test_exec(tight):
    ran = tight.client.post(f"{tight.path}/exec", {"argv": ["/bin/sh", "-c", "exec " + EAT]}).json()
    assert said(ran) == (True, 100) and ran["signal"] == "SIGKILL"
    ran = tight.client.post(f"{tight.path}/exec", {"argv": ["/bin/sh", "-c", EAT + "; exit 3"]}).json()
    assert said(ran) == (True, 100) and ran["exit_code"] == 3
    for other in (["false"], ["true"], ["/bin/sh", "-c", "kill -9 $$"]):
        assert said(tight.client.post(f"{tight.path}/exec", {"argv": other}).json()) == (False, None)


def test_process(tight):
    made = tight.client.post(f"{tight.path}/processes", {"argv": ["/bin/sh", "-c", EAT], "tag": "eater"})
    assert made.status == 201, made
    def ended():
        shown = tight.client.get(f"{tight.path}/processes/eater").json()
        return not shown["running"] and shown
    assert said(paddock.until(ended, "it has ended")["exit"]) == (True, 100)


def test_shell(tight):
    ran = tight.client.post(f"{tight.path}/exec", {"command": EAT, "shell": "s"}).json()
    assert said(ran) == (True, 100) and ran["exit_code"] == 137 and not ran["restarted"]
    ran = tight.client.post(f"{tight.path}/exec", {"command": "echo $?; sh -c 'kill -9 $$'", "shell": "s"}).json()
    assert said(ran) == (False, None) and ran["exit_code"] == 137 and ran["stdout"] == "137\n"
    ran = tight.client.post(f"{tight.path}/exec", {"command": "exec " + EAT, "shell": "s"}).json()
    assert said(ran) == (True, 100) and ran["restarted"]


def test_context(tight):
    ran = tight.client.post(f"{tight.path}/execute", {"code": "x = bytearray(1 << 30)"}).json()
    assert said(ran) == (True, 100) and "100 MiB" in ran["error"]["value"], ran


def test_event(tight):
    assert said(tight.client.post(f"{tight.path}/exec", {"argv": ["/bin/sh", "-c", EAT]}).json()) == (True, 100)
    seen = [each for each in tight.client.get(f"/v1/events?sandbox={tight.id}&limit=500").json()["events"]
            if each["type"].endswith("oom")]
    assert seen and seen[-1]["data"]["memory_limit_mb"] == 100, seen


def test_command_line(daemon, tight):
    told = subprocess.run([paddock.BIN / "paddock", "exec", tight.id, "--", "sh", "-c", EAT], capture_output=True, timeout=60,
                          env=paddock.clean_environment(PADDOCK_URL=daemon.url, PADDOCK_KEY_FILE=daemon.data_dir / "admin.key"))
    assert told.returncode == 137 and b"paddock: out of memory: the sandbox's limit is 100 MiB" in told.stderr, told


THRASH = r"""
import mmap, os
size = 30 << 20
with open("/workspace/f", "wb") as f: f.write(os.urandom(size))
eaten = []
def anon():
    text = dict(line.split()[:2] for line in open([p for p in ("/sys/fs/cgroup/memory/memory.stat", "/sys/fs/cgroup/memory.stat") if os.path.exists(p)][0]))
    return max(int(text.get("rss", 0)), int(text.get("anon", 0)))
while anon() < (92 << 20): eaten.append(bytearray(os.urandom(1 << 20)))
m = mmap.mmap(os.open("/workspace/f", os.O_RDONLY), size, prot=mmap.PROT_READ)
m.madvise(mmap.MADV_RANDOM)
print("full", flush=True)
while True:
    for at in range(0, size, 4096): m[at]
"""


@pytest.mark.slow
def test_thrashing_ends(own_daemon):
    """Without this it would go on for as long as anybody waits."""
    daemon = own_daemon(environment={"PADDOCK_MAX_THRASH_SECONDS": "4"}).start()
    box = daemon.client().create(limits={"memory_mb": 100})
    ran = box.client.post(f"{box.path}/exec", {"argv": ["python3", "-c", THRASH], "timeout_ms": 60000}).json()
    assert ran["stdout"] == "full\n" and ran["signal"] == "SIGKILL" and not ran["timed_out"], ran
    assert said(ran) == (True, 100)
    assert box.exec(["true"]).exit_code == 0
