"""What a box sees of its limits, and the runtimes that size themselves by it: 512 MiB and one processor."""

import os
import shutil

import pytest

LIMITS = {"cpu": 1, "memory_mb": 512}
MIB = 1024 * 1024


@pytest.fixture
def small(make_box):
    return make_box(limits=LIMITS)


def test_processors(small, make_box):
    assert small.check("nproc").strip() == "1"
    assert small.check(["/usr/bin/python3", "-c", "import os; print(os.cpu_count(), len(os.sched_getaffinity(0)))"]) == "1 1\n"
    assert make_box(limits={"cpu": 1.5}).check("nproc").strip() == str(min(2, os.cpu_count()))
    assert make_box(limits={"cpu": 0.1}).check("nproc").strip() == "1"


def test_control_groups(small):
    found = small.check("cat /sys/fs/cgroup/memory/memory.limit_in_bytes /sys/fs/cgroup/memory.max 2>/dev/null; true").split()
    assert found == [str(512 * MIB)]
    assert small.exec("touch /sys/x; mkdir /sys/fs/cgroup/memory/x /sys/fs/cgroup/x; ! test -e /sys/fs/cgroup/memory/x", user="root").exit_code == 0
    # Its own alone: no other group is below, and it cannot be written.
    assert small.check("find /sys/fs/cgroup -mindepth 3 -type d") == ""
    limit = "$(ls /sys/fs/cgroup/memory/memory.limit_in_bytes /sys/fs/cgroup/memory.max 2>/dev/null)"
    assert small.exec(f"echo -1 > {limit}", user="root").exit_code != 0


def test_node(small):
    heap = int(small.check(["/usr/bin/node", "-p", "require('v8').getHeapStatistics().heap_size_limit"]))
    assert heap <= 512 * MIB
    assert small.check(["/usr/bin/node", "-p", "require('os').availableParallelism()"]) == "1\n"


@pytest.mark.skipif(not shutil.which("java", path="/usr/bin"), reason="no JVM on this machine")
def test_java(small):
    told = small.check("java -XshowSettings:system -version 2>&1; java -XX:+PrintFlagsFinal -version 2>/dev/null | grep -w MaxHeapSize")
    assert "Memory Limit: 512.00M" in told and "Effective CPU Count: 1" in told, told
    assert int(told.split("MaxHeapSize")[1].split()[1]) <= 256 * MIB
