#!/usr/bin/python3
"""The lists of system calls (src/os/seccomp_*.c) against the kernel's own tables.

arm64 has the generic table: no open, stat, fork, poll, pipe, dup2 and the like. So what stands outside
`#ifdef __x86_64__` must be in the generic table, what stands inside must not, and whatever an old call may do on
x86-64, its successor must be allowed to do on arm64: a libc there has nothing else. Numbers without names must be of
the range that all architectures share.
"""

import re
import subprocess
import sys
from pathlib import Path

SOURCES = Path(sys.argv[1])
# What arm64 asks of the generic table (its asm/unistd.h), besides what everybody has.
WANTED = {"__ARCH_WANT_RENAMEAT", "__ARCH_WANT_NEW_STAT", "__ARCH_WANT_SET_GET_RLIMIT", "__ARCH_WANT_TIME32_SYSCALLS",
          "__ARCH_WANT_SYS_CLONE3", "__ARCH_WANT_MEMFD_SECRET"}
SHARED = 424  # from here on numbers are the same everywhere

SUCCESSOR = {
    "open": "openat", "creat": "openat", "stat": "newfstatat", "lstat": "newfstatat", "access": "faccessat",
    "readlink": "readlinkat", "unlink": "unlinkat", "rmdir": "unlinkat", "mkdir": "mkdirat", "mknod": "mknodat",
    "link": "linkat", "symlink": "symlinkat", "chmod": "fchmodat", "chown": "fchownat", "lchown": "fchownat",
    "rename": "renameat", "utime": "utimensat", "utimes": "utimensat", "futimesat": "utimensat", "getdents": "getdents64",
    "poll": "ppoll", "select": "pselect6", "pipe": "pipe2", "dup2": "dup3", "fork": "clone", "vfork": "clone",
    "epoll_create": "epoll_create1", "epoll_wait": "epoll_pwait", "inotify_init": "inotify_init1", "signalfd": "signalfd4",
    "eventfd": "eventfd2", "getpgrp": "getpgid", "pause": "ppoll", "alarm": "setitimer", "time": "clock_gettime",
}
NO_SUCCESSOR = {"arch_prctl", "iopl", "ioperm", "modify_ldt", "uselib", "ustat", "sysfs"}  # of x86's hardware, or gone

# In a box these do not exist (ENOSYS) although the generic table has them: clone3, whose flags a filter cannot see
# (libc falls back to clone), and what programs do without.
# aio's requests come from a pool that all boxes share.
UNKNOWN_IN_BOX = {"clone3", "set_mempolicy_home_node", "io_pgetevents", "io_cancel", "io_destroy", "io_getevents", "io_setup",
                  "io_submit"}


def generic_calls():
    """{name: number} of arm64, as the preprocessor sees it."""
    text = "".join(f"#define {name}\n" for name in sorted(WANTED)) + "#include <asm-generic/unistd.h>\n"
    done = subprocess.run(["gcc", "-E", "-dM", "-x", "c", "-"], input=text, capture_output=True, text=True, check=True)
    macros = dict(re.findall(r"#define __NR_?(\w+) (\w+)", done.stdout))
    calls = {}
    for name, value in macros.items():
        if not name.startswith("3264_") and name not in ("syscalls", "arch_specific_syscall"):
            while not value.isdigit():
                value = macros[re.sub(r"^__NR_?", "", value)]
            calls[name] = int(value)
    return calls


def lists(path):
    """(names for all, names for x86 alone, names for others alone, numbers)"""
    text = re.sub(r"/\*.*?\*/", " ", path.read_text(), flags=re.S)
    found, state, numbers = {"all": set(), "x86": set(), "other": set()}, "all", set()
    for line in text.splitlines():
        if line.startswith("#ifdef __x86_64__"):
            state = "x86"
        elif line.startswith("#else") and state == "x86":
            state = "other"
        elif line.startswith("#endif"):
            state = "all"
        elif not line.startswith("#"):
            found[state] |= set(re.findall(r"\bC\((\w+)\)", line)) | set(re.findall(r"__NR_(\w+)", line))
            if re.fullmatch(r"[\s\d,]+", line):
                numbers |= {int(number) for number in re.findall(r"\d+", line)}
    return found["all"], found["x86"], found["other"], numbers


checks = []


def check(what, bad):
    checks.append((not bad, what if not bad else f"{what}: {sorted(bad)}"))


generic = generic_calls()
check("the generic table was read", set() if len(generic) > 290 and generic["openat"] == 56 and generic["newfstatat"] == 79 and
      generic["fstat"] == 80 and generic["clone"] == 220 and generic["mmap"] == 222 else {len(generic)})
check("the generic table has no old calls", set(SUCCESSOR) & set(generic))
for source in sorted(SOURCES.glob("os/seccomp_*.c")):
    common, x86, other, numbers = lists(source)
    check(f"{source.name}: what is for all is in the generic table", common - set(generic))
    check(f"{source.name}: what is for x86 alone is not", x86 & set(generic))
    check(f"{source.name}: what is for others is there", other - set(generic))
    check(f"{source.name}: nothing for x86 is unknown to this test", x86 - set(SUCCESSOR) - NO_SUCCESSOR)
    check(f"{source.name}: successors of what x86 may do", {SUCCESSOR[name] for name in x86 if name in SUCCESSOR} - common - other)
    check(f"{source.name}: bare numbers are shared", {number for number in numbers if number < SHARED})
common, _, other, numbers = lists(SOURCES / "os" / "seccomp_box.c")
judged = {name for name, number in generic.items() if name in common | other or number in numbers}
check("a box's list judges every call of arm64, or leaves it out on purpose", (set(generic) - judged) ^ UNKNOWN_IN_BOX)

print(f"1..{len(checks)}")
for number, (good, what) in enumerate(checks, 1):
    print(f"{'ok' if good else 'not ok'} {number} {what}")
sys.exit(0 if all(good for good, _ in checks) else 1)
