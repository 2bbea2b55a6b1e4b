"""data.backend: copy, for hosts without btrfs: the same things, made by copying, and honest about the time."""

import os

import pytest

import paddock


@pytest.fixture(scope="module")
def copying(daemon_factory):
    daemon = daemon_factory("copy", environment={"PADDOCK_DATA_BACKEND": "copy"}).start()
    yield daemon
    daemon.finish()


@pytest.fixture
def client(copying):
    it = copying.client()
    yield it
    for box in it.get("/v1/sandboxes?limit=1000").json()["sandboxes"]:
        assert it.delete(f"/v1/sandboxes/{box['id']}").status == 204
    for kind in ("snapshots", "workspaces"):
        for one in it.get(f"/v1/{kind}").json()[kind]:
            assert it.delete(f"/v1/{kind}/{one['id']}").status == 204
    it.close()


def ok(response, status=201):
    assert response.status == status, response
    return response.json()


TREE = r"""
echo 1 > /etc/one; rm -rf /usr/share/doc/bash; ln /etc/one /etc/hard; mkfifo /etc/fifo; ln -s one /etc/soft
printf 'x' > $'/etc/new\nline'; install -o user -m 4750 /bin/true /usr/local/suid
truncate -s 100M /workspace/sparse; chown user /workspace/sparse; mv /usr/bin/yes /usr/local/moved
mkdir -p /opt/a/b/c && touch -d @1234567890 /opt/a/b/c/old
"""
LOOK = r"""
cat /etc/one /etc/soft; stat -c '%h %i' /etc/one /etc/hard | sort -u | wc -l; stat -c %F /etc/fifo; ls -d /usr/share/doc/bash 2>&1
cat $'/etc/new\nline'; stat -c '%U %a' /usr/local/suid; stat -c '%U %s' /workspace/sparse; du -k /workspace/sparse | cut -f1
ls /usr/bin/yes 2>&1; test -x /usr/local/moved && echo moved; stat -c %Y /opt/a/b/c/old; true
"""


def test_all_kinds_of_files(client):
    box = client.create()
    box.check(TREE, user="root")
    before = box.check(LOOK, user="root")
    ok(client.post(box.path + "/snapshots", {"name": "s"}))
    box.check("echo 2 > /etc/one", user="root")
    twin = client.create(snapshot="s")
    assert twin.check(LOOK, user="root") == before
    assert before.splitlines()[2] == "1" and "cannot access '/usr/share/doc/bash'" in before
    # What was made of it is its own, and the snapshot is as it was.
    twin.check("echo 3 > /etc/one", user="root")
    assert client.create(snapshot="s").check("cat /etc/one") == "1\n"
    assert box.check("cat /etc/one") == "2\n"


def test_fork(client):
    box = client.create()
    box.check("echo f > /workspace/f; echo 0123456789abcdef0123456789abcdef > /etc/machine-id", user="root")
    made = ok(client.post(box.path + "/fork", {"count": 3}))
    boxes = [paddock.Box(client, one) for one in made["sandboxes"]]
    for one in boxes:
        client.daemon.saw(one.id)
    assert made["stopped_us"] > 0
    assert [one.check("cat /workspace/f") for one in boxes] == ["f\n"] * 3
    assert len({one.check("cat /etc/machine-id") for one in (*boxes, box)}) == 4


def test_a_box_stands_still_until_its_files_are_copied(client, copying):
    """Two files that are always changed one after the other never differ by more in the copy; others are served meanwhile."""
    box, other = client.create(), client.create()
    box.check("cd /workspace; mkdir many; for i in $(seq 500); do echo $i > many/$i; done; head -c 16M /dev/urandom > big")
    box.put("/workspace/count.py", b"""
n = 0
a, b = open("/workspace/0-first", "w"), open("/workspace/z-last", "w")
while True:
    n += 1
    for f in (a, b):
        f.seek(0); f.write("%09d" % n); f.flush()
""")
    client.post(box.path + "/processes", {"argv": ["python3", "/workspace/count.py"], "tag": "count"})
    paddock.until(lambda: box.read("/workspace/z-last").status == 200 and box.read("/workspace/z-last").body, "it counts")
    apart = copying.client()
    made = paddock.Background(apart.post, box.path + "/snapshots", {"name": "still"})
    assert other.check("echo served") == "served\n"
    snapshot = ok(made.result())
    assert snapshot["stopped_us"] > 1000, "honest about the time"
    first = int(box.read("/workspace/z-last").body)
    paddock.until(lambda: int(box.read("/workspace/z-last").body) > first, "it goes on")
    twin = client.create(snapshot="still")
    a, b = (int(twin.read(f"/workspace/{name}").body) for name in ("0-first", "z-last"))
    assert a - b in (0, 1), (a, b)
    assert twin.check("ls /workspace/many | wc -l") == "500\n"
    apart.close()


def test_workspace_clones(client):
    ok(client.post("/v1/workspaces", {"name": "origin"}))
    box = client.create(workspace="origin")
    box.put("/workspace/f", b"1")
    ok(client.post("/v1/workspaces", {"name": "copy", "clone_of": "origin"}))
    box.put("/workspace/f", b"2")
    assert client.get("/v1/workspaces/copy/files/f").body == b"1"
    refused = client.post("/v1/workspaces", {"name": "limited", "disk_mb": 10})
    assert (refused.status, refused.code()) == (503, "cannot_isolate")
    refused = client.post("/v1/workspaces", {"name": "limited", "clone_of": "origin", "disk_mb": 10})
    assert (refused.status, refused.code()) == (503, "cannot_isolate")
    assert client.get("/v1/workspaces/limited").status == 404
    box.delete()


def test_images_of_snapshots(client):
    box = client.create()
    box.check("echo t > /usr/local/t", user="root")
    source = ok(client.post(box.path + "/snapshots", {}))
    ok(client.post("/v1/images", {"name": "seeded", "snapshot": source["id"]}))
    assert client.delete(f"/v1/snapshots/{source['id']}").status == 204
    twin = client.create(image="seeded")
    assert twin.check("cat /usr/local/t") == "t\n"
    twin.delete()
    assert client.delete("/v1/images/seeded").status == 204
    assert client.get("/v1/snapshots").json()["snapshots"] == []


def test_kills_while_copying(own_daemon):
    """The keeper dies while a box stands still: it goes on with the next one, and nothing half made is left."""
    daemon = own_daemon(environment={"PADDOCK_DATA_BACKEND": "copy"}).start()
    client = daemon.client(timeout=60)
    box = client.create()
    box.check("head -c 96M /dev/zero | tr '\\0' x > /workspace/big")
    boxes = daemon.data_dir / "snapshots"
    thread = paddock.Background(daemon.client().post, box.path + "/snapshots", {"name": "never"})
    paddock.until(lambda: [name for name in os.listdir(boxes) if name.startswith(".copy-")], "it copies", 10)
    daemon.kill_keeper()
    try:
        thread.result()
    except Exception:  # the connection broke
        pass
    daemon.start()
    client = daemon.client()
    assert client.get(box.path).json()["status"] == "running"
    assert paddock.Box(client, box.document).check("echo lives") == "lives\n"
    assert client.get("/v1/snapshots").json()["snapshots"] == [] and os.listdir(boxes) == []
