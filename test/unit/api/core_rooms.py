"""What may be included from where: a dialect compiles against the public headers of the core's rooms
(src/api/core/include), and a header of the core's own, or of another dialect, must not be found with a dialect's flags."""
import json
import os
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


public = sorted(os.listdir(os.path.join(core, "include")))
own = sorted(f for room in os.listdir(core) if room != "include" and os.path.isdir(os.path.join(core, room))
             for f in os.listdir(os.path.join(core, room)) if f.endswith(".h"))
_, directory, inside = flags_of(("src/api/core/box/",))
outside = flags_of(("src/api/dialect/",))[2]

results = [("the core finds its own state", compiles(directory, inside, "core_base.h"))]
results += [(f"a dialect may include {h}", compiles(directory, outside, h)) for h in public]
results += [(f"a dialect may not include {h}", not compiles(directory, outside, h)) for h in own]
# A room has one public header; job.h, common.h and core.h are everybody's.
rooms = {r for r in os.listdir(core) if os.path.isdir(os.path.join(core, r))} - {"include", "state", "base"}
results += [("every room has one public header", rooms | {"core", "common", "job"} == {h[:-2] for h in public})]
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
print(f"1..{len(results)}")
for i, (what, ok) in enumerate(results, 1):
    print(f"{'ok' if ok else 'not ok'} {i} - {what}")
