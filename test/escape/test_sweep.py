"""Every system call number from 0 to 600, against a golden list.

golden/syscalls.json holds runs of numbers of one class. To accept a wanted change of
the filter, run with PADDOCK_GOLDEN=write and review the difference in the commit.
"""

import json
import os
import subprocess
from pathlib import Path

import pytest

import paddock

SWEEP = (Path(__file__).parent / "sweep.py").read_text()
GOLDEN = Path(__file__).parent / "golden" / "syscalls.json"

# x86-64 numbers of what an escape would need. Golden or not, none of these may get through.
NEVER = {
    "mount": 165, "umount2": 166, "pivot_root": 155, "chroot": 161, "setns": 308, "open_tree": 428, "move_mount": 429,
    "fsopen": 430, "fsconfig": 431, "fsmount": 432, "fspick": 433, "mount_setattr": 442, "bpf": 321, "perf_event_open": 298,
    "userfaultfd": 323, "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427, "keyctl": 250, "add_key": 248,
    "request_key": 249, "kexec_load": 246, "kexec_file_load": 320, "init_module": 175, "finit_module": 313, "delete_module": 176,
    "reboot": 169, "swapon": 167, "swapoff": 168, "acct": 163, "quotactl": 179, "quotactl_fd": 443, "sethostname": 170,
    "setdomainname": 171, "settimeofday": 164, "clock_settime": 227, "syslog": 103, "vhangup": 153, "open_by_handle_at": 304,
    "fanotify_init": 300, "iopl": 172, "ioperm": 173, "modify_ldt": 154, "move_pages": 279, "migrate_pages": 256, "kcmp": 312,
    "lookup_dcookie": 212, "nfsservctl": 180, "clone3": 435, "memfd_secret": 447, "uselib": 134, "ustat": 136, "sysfs": 139,
    "_sysctl": 156, "io_setup": 206, "create_module": 174, "get_kernel_syms": 177, "query_module": 178, "vserver": 236, "statmount": 457,
    "listmount": 458, "lsm_set_self_attr": 460, "open_tree_attr": 467,
}
# And without these nothing runs.
ALWAYS = {
    "read": 0, "write": 1, "open": 2, "close": 3, "stat": 4, "mmap": 9, "brk": 12, "rt_sigaction": 13, "access": 21, "clone": 56,
    "fork": 57, "execve": 59, "wait4": 61, "fcntl": 72, "getcwd": 79, "futex": 202, "openat": 257, "getrandom": 318,
    "statx": 332, "rseq": 334, "epoll_pwait2": 441, "faccessat2": 439, "openat2": 437, "socket": 41, "memfd_create": 319,
    "inotify_init1": 294, "pidfd_open": 434, "ptrace": 101, "landlock_create_ruleset": 444,
}


def runs(classes):
    """{"0": …, "1": …} as ["0-14 allowed", …]: short enough to be reviewed."""
    lines, numbers = [], sorted(classes, key=int)
    start = numbers[0]
    for number, following in zip(numbers, [*numbers[1:], None]):
        if following is None or classes[following] != classes[start]:
            lines.append(f"{start}-{number} {classes[start]}" if start != number else f"{start} {classes[start]}")
            start = following
    return lines


@pytest.fixture(scope="module")
def swept(box):
    return {user: box.python_json(SWEEP, user=user, timeout_ms=paddock.ms(180_000)) for user in ("user", "root")}


def outside(numbers):
    """The control: the same calls without a box."""
    found = {}
    for number in numbers:
        result = subprocess.run(["/usr/bin/python3", "-c", SWEEP, str(number), str(number)], capture_output=True, text=True,
                                check=True)
        found.update(json.loads(result.stdout))
    return found


def spread(lines):
    """The inverse of runs()."""
    found = {}
    for line in lines:
        numbers, kind = line.split()
        first, _, last = numbers.partition("-")
        found.update({str(number): kind for number in range(int(first), int(last or first) + 1)})
    return found


@pytest.mark.parametrize("user", ["user", "root"])
def test_golden(swept, user):
    book = json.loads(GOLDEN.read_text()) if GOLDEN.exists() else {}
    if os.environ.get("PADDOCK_GOLDEN") == "write":
        book[user] = runs(swept[user])
        GOLDEN.parent.mkdir(exist_ok=True)
        GOLDEN.write_text(json.dumps(book, indent=1) + "\n")
    expected = spread(book[user])
    differs = {number: (expected[number], kind) for number, kind in swept[user].items() if kind != expected[number]}
    # A call that the filter allows and the kernel does not have is no difference of the filter.
    lacking = outside(number for number, (wanted, found) in differs.items() if (wanted, found) == ("allowed", "unknown"))
    differs = {number: pair for number, pair in differs.items() if lacking.get(number) != "unknown"}
    assert not differs, "number: (golden, found)"


@pytest.mark.parametrize("user", ["user", "root"])
def test_never(swept, user):
    through = {name: swept[user][str(number)] for name, number in NEVER.items()
               if swept[user][str(number)] not in ("refused", "unknown")}
    assert not through


@pytest.mark.parametrize("user", ["user", "root"])
def test_always(swept, user):
    broken = {name: swept[user][str(number)] for name, number in ALWAYS.items() if swept[user][str(number)] != "allowed"}
    assert not broken


def test_unknown_numbers(swept):
    for classes in swept.values():
        assert {classes[str(number)] for number in range(480, 601)} == {"unknown"}
        assert {classes[str(number)] for number in range(337, 424)} == {"unknown"}


def test_control_outside():
    """Without the filter most of NEVER gets through: the sweep can tell the difference."""
    numbers = [NEVER[name] for name in ("mount", "setns", "bpf", "keyctl", "io_uring_setup", "fsopen", "chroot", "clone3",
                                        "open_by_handle_at", "umount2", "pivot_root")]
    assert list(outside(numbers).values()).count("allowed") >= 8


def test_box_and_daemon_survive_the_sweep(swept, box, daemon):
    assert box.check("echo alive") == "alive\n"
    assert daemon.healthy()
