"""Looks for a value where it must not be.

In the memory of every program of ours and of every process of a box (which holds their
environment and arguments, too), and in every file: the store with its log, the sealed
files, what boxes, snapshots and images consist of, the run directory, the logs. A test
plants another value first, or while the request is under way, to show that the scanner
finds it in the same places.
"""

import base64
import os
import secrets as random
from pathlib import Path

import paddock


def canary():
    return "canary-" + random.token_hex(12)


def forms(value):
    """The value, encoded as people do, and a piece of it: half a value is none the less one."""
    raw = value.encode()
    return {raw, raw[-20:-2], base64.b64encode(raw), raw.hex().encode()}


def memory_has(pid, needles):
    """Which of the needles are in the memory of a process (root may look, dumpable or not)."""
    found = set()
    try:
        maps = paddock.read(f"/proc/{pid}/maps").splitlines()
        memory = open(f"/proc/{pid}/mem", "rb", 0)
    except OSError:
        return found
    with memory:
        for line in maps:
            where, mode = line.split()[:2]
            if "r" not in mode or "[vvar" in line or "[vsyscall]" in line:
                continue
            start, end = (int(part, 16) for part in where.split("-"))
            tail = b""
            while start < end:
                try:
                    memory.seek(start)
                    piece = memory.read(min(end - start, 1 << 20))
                except (OSError, ValueError):
                    break
                if not piece:
                    break
                start += len(piece)
                text = tail + piece
                found |= {needle for needle in needles if needle in text}
                tail = text[-256:]
    return found


def tree_has(top, needles):
    """{needle: [paths]} of the files below a directory."""
    found = {}
    for folder, _, names in os.walk(top):
        for name in names:
            path = Path(folder) / name
            try:
                if path.is_symlink() or not path.is_file() or path.stat().st_size > 64 << 20:
                    continue
                data = path.read_bytes()
            except OSError:
                continue
            for needle in needles:
                if needle in data:
                    found.setdefault(needle, []).append(str(path))
    return found


def in_memory(daemon, needles, *boxes):
    """Who has one of them: names of programs, "box" for processes of the boxes."""
    found = {name for pid, name in daemon.programs().items() if memory_has(pid, needles)}
    return found | {"box" for box in boxes for pid in box.processes() if memory_has(pid, needles)}


def in_files(daemon, needles):
    found = {}
    for top in (daemon.base, daemon.disk):
        for paths in tree_has(top, needles).values():
            found.update(dict.fromkeys(paths))
    return set(found)


def nowhere(daemon, value, *boxes):
    """It is in no memory and no file. What is under way may end first."""
    needles = forms(value)
    paddock.until(lambda: not in_memory(daemon, needles, *boxes), f"nobody has it: {in_memory(daemon, needles, *boxes)}")
    assert in_files(daemon, needles) == set()
