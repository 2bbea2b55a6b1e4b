"""The dashboard's figures: the size of the first page, the list with a thousand sandboxes, the echo of a terminal (figures.mjs).

The goals are for an idle machine; the limits here are for one on which everything else runs, too. What was measured is in
build/dashboard-figures.json, and printed with -s."""

import json
import sqlite3
import subprocess
from pathlib import Path

import npm
import paddock
import pytest

HERE = Path(__file__).resolve().parent
MANY = 1000
LETTERS = "0123456789abcdefghjkmnpqrstvwxyz"


def row_id(number):
    return "".join(LETTERS[number >> shift & 31] for shift in range(0, 100, 5))


def fill(daemon):
    """A thousand stopped sandboxes in the store: one that was made, 999 rows like it. Returns what takes them out again."""
    client = daemon.client()
    box = client.create()
    answer = client.request("POST", f"/v1/sandboxes/{box.id}/stop", b"")
    assert answer.status == 200, answer
    daemon.stop()
    with sqlite3.connect(daemon.data_dir / "store" / "paddock.db") as db:
        names = [row[1] for row in db.execute("PRAGMA table_info(boxes)")]
        one = dict(zip(names, db.execute(f"SELECT {', '.join(names)} FROM boxes WHERE id = ?", (box.id,)).fetchone()))
        for i in range(1, MANY):
            new = one | {"id": row_id(i + (i << 60)), "name": f"agent-{i}", "created_ms": one["created_ms"] - i * 1000, "metadata": json.dumps({"team": f"t{i % 7}"})}
            db.execute(f"INSERT INTO boxes ({', '.join(new)}) VALUES ({', '.join('?' * len(new))})", tuple(new.values()))
    db.close()
    daemon.start()

    def empty():
        daemon.stop()
        with sqlite3.connect(daemon.data_dir / "store" / "paddock.db") as again:
            again.execute("DELETE FROM boxes WHERE name LIKE 'agent-%'")
        again.close()
        daemon.start()
    return empty


@pytest.fixture(scope="module")
def figures(daemon_factory):
    daemon = daemon_factory("figures").start()
    home = npm.install(HERE, "dashboard-test")
    empty = fill(daemon)
    box = daemon.client().create()
    done = subprocess.run(["node", HERE / "figures.mjs", home / "node_modules", daemon.url, daemon.key, box.id], capture_output=True, text=True,
                          timeout=120 * paddock.SLOW, check=False)
    empty()
    daemon.delete_all()
    daemon.finish()
    assert done.returncode == 0, done.stderr[-3000:]
    (paddock.ROOT / "build" / "dashboard-figures.json").write_text(done.stdout)
    print(done.stdout)
    return json.loads(done.stdout)


def test_first_page(figures):
    """At most 250 KB, compressed, with the chart's code."""
    assert figures["files"] >= 4 and 20_000 < figures["first_page_bytes"] <= 250_000, figures


def test_list_with_a_thousand(figures):
    """Goal: 300 ms from the navigation to the frame that has it."""
    assert figures["sandboxes"] >= MANY and figures["list_ms"] <= 3000 * paddock.SLOW, figures


def test_echo(figures):
    """Goal: 8 ms at the median from the key to the terminal's buffer."""
    assert figures["echo_ms"] <= 100 * paddock.SLOW, figures
