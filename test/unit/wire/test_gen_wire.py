#!/usr/bin/python3
"""scripts/gen-wire refuses what the codec cannot do, by name, and makes the rest compile. TAP."""
import os
import subprocess
import sys
import tempfile

GEN, SRC = sys.argv[1], sys.argv[2]
HEAD = 'syntax = "proto3";\npackage t;\n'

# (what it says, the file, or None where it must succeed)
CASES = [
    ("float fields are not supported", HEAD + "message M { float a = 1; }"),
    ("fixed64 fields are not supported", HEAD + "message M { repeated fixed64 a = 1; }"),
    ("[packed = false] is not supported", HEAD + "message M { repeated int32 a = 1 [packed = false]; }"),
    ("only proto3 is supported", 'syntax = "proto2";\nmessage M { optional int32 a = 1; }'),
    ("is already taken", HEAD + "message A { message B {} } message A_B {}"),
    (None, HEAD + "message A { A a = 1; repeated A more = 2; message B { map<int32, B> default = 1; } oneof x "
                  "{ B b = 3; bool return = 4; } } enum E { E_ZERO = 0; } message HTTPHead { optional E int = 100000; }"),
]


def run(text, folder):
    path = os.path.join(folder, "t.proto")
    with open(path, "w") as f:
        f.write(text)
    header, source = os.path.join(folder, "t_gen.h"), os.path.join(folder, "t_gen.c")
    done = subprocess.run([GEN, "--prefix", "t", "--header", header, "--source", source, path],
                          capture_output=True, text=True)
    if done.returncode:
        return done.stderr
    done = subprocess.run(["cc", "-std=gnu17", "-Wall", "-Wextra", "-Werror", "-Wno-missing-field-initializers",
                           f"-I{SRC}/base", f"-I{SRC}/wire", "-c", source, "-o", os.path.join(folder, "t.o")],
                          capture_output=True, text=True)
    return done.stderr


print(f"1..{len(CASES)}")
failed = 0
for i, (want, text) in enumerate(CASES, 1):
    with tempfile.TemporaryDirectory() as folder:
        said = run(text, folder)
    ok = want in said if want else said == ""
    failed += not ok
    print(f"{'ok' if ok else 'not ok'} {i} - {want or 'everything else compiles'}" + ("" if ok else f"\n# {said}"))
sys.exit(failed > 0)
