"""A disk that is full: the daemon starts on it, serves, deletes, and says what is wrong."""

import re
import subprocess

import pytest

import paddock

MB = 1 << 20
# As an ordinary user: data as far as it goes, and small files for what is left.
FILL = """
head -c 3G /dev/zero >> /workspace/big
for i in $(seq 300); do head -c 60000 /dev/zero > /workspace/$i || break; done
for i in $(seq 300); do head -c 1000 /dev/zero > /workspace/s$i || break; done
true
"""


@pytest.fixture(params=["ext4", "tmpfs"])
def small(request, workdir):
    """A file system of 1500 MB of its own for a daemon's data."""
    image, point = workdir / f"full.{request.param}", workdir / "full"
    point.mkdir()
    if request.param == "tmpfs":
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1500M", "none", point], check=True)
    else:
        subprocess.run(["truncate", "-s", "1500M", image], check=True)
        subprocess.run(["mkfs.ext4", "-q", "-m", "0", image], check=True)
        subprocess.run(["mount", "-o", "loop", image, point], check=True)
    yield point
    paddock.until(lambda: subprocess.run(["umount", point], capture_output=True).returncode == 0, "it is free", 30)
    point.rmdir()
    image.unlink(missing_ok=True)


def ready(daemon):
    response = daemon.client().get("/readyz")
    return response.status, " ".join(response.json().get("reasons", []))


def metric(daemon, name):
    return int(re.search(rf"^paddock_storage_{name} (\d+)$", daemon.client().get("/metrics").body.decode(), re.M)[1])


def is_full(daemon):
    return ready(daemon)[0] == 503 and "is full" in ready(daemon)[1]


def refuses(daemon):
    """Nothing new, and it says why."""
    assert is_full(daemon), ready(daemon)
    for response in (daemon.client().try_create(), daemon.client().post("/v1/workspaces", {"name": "w"})):
        assert response.status == 507 and response.code() == "storage_full" and "is full" in response.json()["error"]["message"], response
    assert metric(daemon, "ok") == 0


def test_a_box_fills_the_disk(small, own_daemon):
    daemon = own_daemon(environment={"PADDOCK_DATA_SIZE_MB": 2048})
    daemon.data_dir = small / "data"
    daemon.start()
    assert ready(daemon) == (200, "") and metric(daemon, "ok") == 1
    assert metric(daemon, "size_bytes") == 2048 * MB and metric(daemon, "beneath_free_bytes") > 1200 * MB
    neighbour = daemon.client().create()
    neighbour.check("echo kept > /workspace/kept")
    box = daemon.client().create(limits={"disk_mb": 4000})

    def fill():
        output = box.exec(FILL, timeout_ms=paddock.ms(50_000))
        assert b"No space left" in output.err, output
        # What others on this machine have not written yet is reckoned with, and then is no more.
        return is_full(daemon) and metric(daemon, "beneath_free_bytes") < 900 * MB

    paddock.until(fill, "it is full for good", 100)
    refuses(daemon)
    assert metric(daemon, "used_bytes") > 400 * MB
    for again in (daemon.restart, lambda: (daemon.stop(), daemon.start())):
        (daemon.disk / "tools/usr/bin/sudo").chmod(0o700)  # as of an older version: it is made anew, or at least used
        again()
        refuses(daemon)
        assert neighbour.with_client(daemon.client()).check("cat /workspace/kept") == "kept\n"
        out = doctor_says(daemon)
        assert re.search(r"^--  +storage.room +\d+ of \d+ MiB are free", out, re.M) and re.search(r"^--  +daemon .*is not ready: .* is full", out, re.M), out
    box.with_client(daemon.client()).delete()
    paddock.until(lambda: daemon.client().try_create().status == 201, "there is room again, and soon", 20)
    assert daemon.client().create().check("head -c 10M /dev/zero > f; stat -c %s f") == f"{10 * MB}\n"


def doctor_says(daemon):
    done = subprocess.run([paddock.BIN / "paddock", "doctor", "--data-dir", daemon.data_dir, "--run-dir", daemon.run_dir], capture_output=True, text=True,
                          env=paddock.clean_environment(PADDOCK_URL=daemon.url))
    return done.stdout
