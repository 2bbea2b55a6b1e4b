"""What may be included from where: a dialect compiles against the public headers of the core's rooms
(src/api/core/*/include), and a header of the core's own, or of another dialect, must not be found with a dialect's
flags.

And which room of the core uses which: a use is a symbol that an object of one room takes from an object of another.
Rooms stand in an order (src/layers.txt): a room is compiled with the headers of the rooms below it, and uses no symbol
of one above.

`core_rooms.py SOURCE BUILD --measure` prints the uses between rooms, the order with the fewest upward uses and those uses."""
import collections
import json
import os
import random
import re
import shlex
import subprocess
import sys

source, build = sys.argv[1:3]
core = os.path.join(source, "src/api/core")


def flags_of(folders):
    """How the compiler is called for a file below one of these folders."""
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as f:
        for c in json.load(f):
            path = os.path.relpath(os.path.join(c["directory"], c["file"]), source)
            if path.startswith(folders):
                words = shlex.split(c["command"])
                return path, c["directory"], [w for w in words if w.startswith(("-I", "-D", "-std"))]
    raise SystemExit(f"Bail out! nothing below {folders} is compiled")


def compiles(directory, flags, header):
    return subprocess.run(["cc", "-fsyntax-only", *flags, "-x", "c", "-"], cwd=directory, text=True,
                          input=f'#include "defs.h"\n#include "{header}"\nint x;\n', capture_output=True).returncode == 0


def symbols(path):
    """What an object defines, and what it takes from others."""
    defined, taken = set(), set()
    for line in subprocess.run(["nm", path], check=True, capture_output=True, text=True).stdout.splitlines():
        kind, name = line.split()[-2:]
        if kind == "U":
            taken.add(name)
        elif kind.isupper():
            defined.add(name)
    return defined, taken


def uses_between_rooms():
    """[(file, its room, symbol, the room that defines it)], from the objects of the last build."""
    home, takes = {}, []
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as f:
        commands = json.load(f)
    for c in commands:
        path = os.path.relpath(os.path.join(c["directory"], c["file"]), core)
        if path.startswith(".."):
            made = os.path.relpath(os.path.join(c["directory"], c["file"]), os.path.join(build, "src/api/core"))
            if made.startswith(".."):
                continue
            path = "session/" + os.path.basename(made)  # the drivers of contexts
        words = shlex.split(c["command"])
        defined, taken = symbols(os.path.join(c["directory"], words[words.index("-o") + 1]))
        for name in defined:
            home[name] = path.split("/")[0]
        takes.append((path, taken))
    return [(path, path.split("/")[0], name, home[name]) for path, taken in takes for name in sorted(taken)
            if name in home and home[name] != path.split("/")[0]]


def upward(order, uses):
    place = {room: i for i, room in enumerate(order)}
    return [u for u in uses if place[u[3]] > place[u[1]]]


def best_order(uses):
    """The order of rooms with the fewest uses that go upwards: each room is moved to its best place until none moves."""
    weight = collections.Counter((u[1], u[3]) for u in uses)

    def cost(order):
        place = {room: i for i, room in enumerate(order)}
        return sum(n for (a, b), n in weight.items() if place[b] > place[a])

    found = []
    for seed in range(8):
        order = sorted({r for u in uses for r in (u[1], u[3])})
        random.Random(seed).shuffle(order)
        before = None
        while before != cost(order):
            before = cost(order)
            for room in list(order):
                rest = [r for r in order if r != room]
                order = min((rest[:i] + [room] + rest[i:] for i in range(len(rest) + 1)), key=cost)
        found.append((before, order))
    return min(found)[1]


def read_rooms():
    """The order of the rooms, from below."""
    with open(os.path.join(source, "src/layers.txt"), encoding="utf-8") as f:
        return [room for room in re.findall(r"^api/core/(\w+):", f.read(), re.M)]


def measure():
    uses = uses_between_rooms()
    order = best_order(uses)
    pairs = collections.Counter((u[1], u[3]) for u in uses)
    up = upward(order, uses)
    print(f"{len(uses)} uses between {len(order)} rooms, in {len(pairs)} pairs; {len(up)} go upwards in the best order:")
    print("\n".join(order))
    for path, _, name, other in sorted(up, key=lambda u: (order.index(u[1]), u)):
        print(f"{path} {name}  # {other}")


if "--measure" in sys.argv:
    measure()
    raise SystemExit

rooms = [r for r in sorted(os.listdir(core)) if os.path.isdir(os.path.join(core, r, "include"))]
headers = {r: sorted(os.listdir(os.path.join(core, r, "include"))) for r in rooms}
public = sorted(h for r in rooms for h in headers[r])
own = sorted(f for room in rooms for f in os.listdir(os.path.join(core, room)) if f.endswith(".h"))
_, directory, inside = flags_of(("src/api/core/box/",))
outside = flags_of(("src/api/dialect/",))[2]

results = [("the core finds its own state", compiles(directory, inside, "core_base.h"))]
results += [(f"a dialect may include {h}", compiles(directory, outside, h)) for h in public]
results += [(f"a dialect may not include {h}", not compiles(directory, outside, h)) for h in own]
# A room has one public header, of at most 200 lines; common.h, job.h and core.h are everybody's.
MOST = 200
given = {"base": ["common.h", "job.h"], "state": ["core.h"]}
results += [(f"{r} has one public header", headers[r] == given.get(r, [r + ".h"])) for r in rooms]
for room in rooms:
    for header in headers[room]:
        with open(os.path.join(core, room, "include", header), encoding="utf-8") as f:
            results += [(f"{header} has at most {MOST} lines", len(f.readlines()) <= MOST)]
# No header of the core is everybody's, but for what all rooms share and for who asks.
included = collections.Counter(h for d, _, files in os.walk(os.path.join(source, "src")) for f in files if f.endswith((".c", ".h"))
                               for h in set(re.findall(r'^#include "([^"]+)"', open(os.path.join(d, f), encoding="utf-8").read(), re.M)))
results += [(f"{h} is included by at most 60 files", included[h] <= 60) for h in public + own if h not in ("core_base.h", "who.h")]
# What the wire says is the core's to read: nobody else in paddock-api knows its messages.
speaks = [os.path.relpath(os.path.join(d, f), source) for d, _, files in os.walk(os.path.join(source, "src/api")) for f in files
          if f.endswith((".c", ".h")) and (not d.startswith(core) or d.endswith("/include"))
          and re.search(r"wire_gen\.h|\bwire_|\bWIRE_", open(os.path.join(d, f), encoding="utf-8").read())]
results += [(f"only the core knows the wire's messages {speaks or ''}", not speaks)]
# A dialect sees the frame and itself: neither another dialect nor what stands above.
dialects = os.path.join(source, "src/api/dialect")
for mine in sorted(d for d in os.listdir(dialects) if os.path.isdir(os.path.join(dialects, d))):
    flags = flags_of((f"src/api/dialect/{mine}/",))[2]
    others = sorted({f for folder, _, files in os.walk(dialects) for f in files
                     if f.endswith(".h") and os.path.relpath(folder, dialects).split("/")[0] != mine})
    results += [(f"{mine} may include dialect.h", compiles(directory, flags, "dialect.h"))]
    results += [(f"{mine} may not include {h}", not compiles(directory, flags, h)) for h in others + ["plane.h"]]
# Rooms find and use only what is below them.
order = read_rooms()
results += [("layers.txt names every room", sorted(order) == rooms)]
if sorted(order) == rooms:
    for i, room in enumerate(order):
        _, at, flags = flags_of((f"src/api/core/{room}/",))
        seen = {os.path.relpath(os.path.join(at, f[2:]), core).split("/")[0] for f in flags if f.startswith("-I")}
        above = sorted(seen & set(order[i + 1:]))
        results += [(f"{room} finds no header of a room above it {above or ''}", not above)]
    up = upward(order, uses_between_rooms())
    results += [(f"{path} may not use {name}: {other} is above {room}", False) for path, room, name, other in up]
    results += [("uses between rooms go downwards", not up)]
print(f"1..{len(results)}")
for i, (what, ok) in enumerate(results, 1):
    print(f"{'ok' if ok else 'not ok'} {i} - {what}")
