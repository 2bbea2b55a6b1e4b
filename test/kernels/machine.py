"""One run of a guest: its payload, qemu, and the report that comes back.

qemu emulates (TCG): that works on every machine, also in one that is virtual itself, and
costs a factor of ten or more. One processor: with two the 6.12 kernel panicked in its own
text patching under emulation. The calibration of clocks is given on the command line,
and the check of the timer left out, since both go wrong while the host is busy.

The guest gets the payload as a tar archive on its second disk, talks on its first serial
port (console.log), and sends its reports as a tar archive through the second one.
"""

import contextlib
import fcntl
import json
import os
import shutil
import subprocess
import tarfile
import tempfile
import time
import xml.etree.ElementTree as xml
from pathlib import Path

import rootfs

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "build" / "kernels" / "results"
# Time limits of the tests in a guest are this many times those of a real machine.
SLOW = int(os.environ.get("PADDOCK_SLOW", "10"))


def payload(file, job):
    """What the guest unpacks: this source tree as far as tests want it, and what `make install` installs."""
    with tempfile.TemporaryDirectory() as work, tarfile.open(file, "w") as tar:
        work = Path(work)
        (work / "job.json").write_text(json.dumps(job))
        # BUILT: the programs are what `make build` left, also while a test runs with them.
        subprocess.run(["make", "--no-print-directory", "-s", "install-files", f"DESTDIR={work}/install", "PREFIX=/usr/local"], cwd=ROOT, check=True)
        packages(work / "deb")
        for name in ("job.json", "install", "deb"):
            tar.add(work / name, name)
        skip = lambda info: None if "__pycache__" in info.name else info  # noqa: E731
        for name in ("build/bin", "test/it", "test/escape", "test/kernels", "etc", "api"):
            tar.add(ROOT / name, name, filter=skip)


def packages(directory):
    """Two Debian packages of which the later is an upgrade: PADDOCK_BEFORE names the earlier one, else it is the same with a lower version."""
    for which, version in (("before", ["--version", "0.0.1"]), ("now", [])):
        named = os.environ.get("PADDOCK_BEFORE") if which == "before" else None
        file = named or subprocess.run(["scripts/deb", *version], cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()
        (directory / which).mkdir(parents=True)
        shutil.copy(ROOT / file, directory / which)


def command(guest, image, directory, memory_mb):
    append = f"root=/dev/vda rw console=ttyS0 quiet panic=-1 no_timer_check tsc_early_khz=2300000 lpj=4000000 {guest.append}"
    return ["qemu-system-x86_64", "-accel", "tcg", "-cpu", "max", "-smp", "1", "-m", str(memory_mb), "-nodefaults",
            "-display", "none", "-no-reboot", "-kernel", image / "vmlinuz", "-initrd", image / "initrd", "-append", append.strip(),
            "-drive", f"file={image / 'disk.img'},format=raw,if=virtio,snapshot=on",
            "-drive", f"file={directory / 'payload.tar'},format=raw,if=virtio,read-only=on",
            "-serial", f"file:{directory / 'console.log'}", "-serial", f"file:{directory / 'results.tar'}"]


@contextlib.contextmanager
def own(directory):
    """A run has its directory to itself: another one in this tree waits."""
    directory.parent.mkdir(parents=True, exist_ok=True)
    with open(directory.with_suffix(".lock"), "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print(f"{directory.name}: waits for another run in this tree", flush=True)
            fcntl.flock(lock, fcntl.LOCK_EX)
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir()
        yield directory


def run(guest, tests, timeout, name=None, memory_mb=3072):
    """Runs the tests in the guest. Returns (the JUnit report or None, what went wrong as a whole or "", seconds)."""
    with own(RESULTS / (name or guest.name)) as directory:
        image = rootfs.image(guest)
        begun = time.monotonic()
        payload(directory / "payload.tar", {"tests": tests, "slow": SLOW, "guest": guest.name, "kernel": guest.kernel,
                                            "layout": guest.layout})
        received, late = {}, False
        # setpriv: the emulator does not outlive who started it.
        with subprocess.Popen(["setpriv", "--pdeathsig", "KILL", *map(str, command(guest, image, directory, memory_mb))],
                              stdin=subprocess.DEVNULL) as qemu:
            while qemu.poll() is None and not late:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    qemu.wait(2)
                progress(guest, tests, received, directory, begun)
                late = time.monotonic() - begun > timeout
            if late:
                qemu.kill()
        took = time.monotonic() - begun
        (directory / "payload.tar").unlink()
        if not received:
            console = (directory / "console.log").read_text(errors="replace").splitlines()[-40:]
            why = f"no end after {timeout} s" if late else "it sent no report"
            return None, f"{guest.name}: {why}\n" + "\n".join(console), took
        merge(received, tests, directory / "report.xml")
        return directory / "report.xml", f"{guest.name}: no end after {timeout} s" if late else "", took


def progress(guest, tests, received, directory, begun):
    """Takes what has come and was not there before, and says so: a line for a file."""
    for number, report in unpack(directory).items():
        if number not in received:
            received[number] = report
            passed, failed, skipped = count(xml.fromstring(report))
            print(f"{guest.name} {time.monotonic() - begun:.0f} s: {file_of(tests[number])}: "
                  f"{passed} passed, {len(failed)} failed, {skipped} skipped", flush=True)


def file_of(arguments):
    return arguments[0].partition("::")[0]


def count(root):
    passed, failed, skipped = 0, [], 0
    for case in root.iter("testcase"):
        if case.find("failure") is not None or case.find("error") is not None:
            failed.append(f"{case.get('classname')}.{case.get('name')}")
        elif case.find("skipped") is not None:
            skipped += 1
        else:
            passed += 1
    return passed, failed, skipped


def unpack(directory):
    """{number of a test: its report} as far as the guest came."""
    received = {}
    try:
        with tarfile.open(directory / "results.tar") as tar:
            for member in tar:
                received[int(Path(member.name).stem)] = tar.extractfile(member).read()
    except (tarfile.TarError, OSError):
        pass
    return received


def merge(received, tests, file):
    """One report of all. What the guest did not come to is a failure in it, and so is a file of which nothing ran."""
    whole = xml.Element("testsuites")
    for number, arguments in enumerate(tests):
        suites = list(xml.fromstring(received[number]).iter("testsuite")) if number in received else []
        if any(suite.find("testcase") is not None for suite in suites):
            whole.extend(suites)
        else:
            name = file_of(arguments)
            case = xml.SubElement(xml.SubElement(whole, "testsuite", name=name), "testcase", classname=name, name="whole")
            xml.SubElement(case, "failure", message="nothing of it ran" if number in received else "it did not come to its end")
    xml.ElementTree(whole).write(file, encoding="utf-8")
