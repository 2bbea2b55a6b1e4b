"""One run of a guest: its payload, qemu, and the report that comes back.

qemu emulates (TCG): that works on every machine, also in one that is virtual itself, and
costs a factor of ten or more. One processor: with two the 6.12 kernel panicked in its own
text patching under emulation. The calibration of clocks is given on the command line,
and the check of the timer left out, since both go wrong while the host is busy.

The guest gets the payload as a tar archive on its second disk, talks on its first serial
port (console.log), and sends its reports as a tar archive through the second one.
"""

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
        for name in ("job.json", "install"):
            tar.add(work / name, name)
        skip = lambda info: None if "__pycache__" in info.name else info  # noqa: E731
        for name in ("build/bin", "test/it", "test/escape", "test/kernels", "etc", "api"):
            tar.add(ROOT / name, name, filter=skip)


def command(guest, image, directory, memory_mb):
    append = f"root=/dev/vda rw console=ttyS0 quiet panic=-1 no_timer_check tsc_early_khz=2300000 lpj=4000000 {guest.append}"
    return ["qemu-system-x86_64", "-accel", "tcg", "-cpu", "max", "-smp", "1", "-m", str(memory_mb), "-nodefaults",
            "-display", "none", "-no-reboot", "-kernel", image / "vmlinuz", "-initrd", image / "initrd", "-append", append.strip(),
            "-drive", f"file={image / 'disk.img'},format=raw,if=virtio,snapshot=on",
            "-drive", f"file={directory / 'payload.tar'},format=raw,if=virtio,read-only=on",
            "-serial", f"file:{directory / 'console.log'}", "-serial", f"file:{directory / 'results.tar'}"]


def run(guest, tests, timeout, memory_mb=3072):
    """Runs the tests in the guest. Returns (the JUnit report or None, what went wrong as a whole or "", seconds)."""
    directory = RESULTS / guest.name
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    image = rootfs.image(guest)
    begun = time.monotonic()
    payload(directory / "payload.tar", {"tests": tests, "slow": SLOW, "guest": guest.name, "kernel": guest.kernel,
                                        "layout": guest.layout})
    late = False
    try:
        subprocess.run([str(word) for word in command(guest, image, directory, memory_mb)], stdin=subprocess.DEVNULL, timeout=timeout, check=False)
    except subprocess.TimeoutExpired:
        late = True
    took = time.monotonic() - begun
    (directory / "payload.tar").unlink()
    received = unpack(directory)
    if not received:
        console = (directory / "console.log").read_text(errors="replace").splitlines()[-40:]
        why = f"no end after {timeout} s" if late else "it sent no report"
        return None, f"{guest.name}: {why}\n" + "\n".join(console), took
    merge(received, tests, directory / "report.xml")
    return directory / "report.xml", "", took


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
    """One report of all; what the guest did not come to is a failure in it."""
    whole = xml.Element("testsuites")
    for number, test in enumerate(tests):
        if number in received:
            whole.extend(xml.fromstring(received[number]).iter("testsuite"))
        else:
            case = xml.SubElement(xml.SubElement(whole, "testsuite", name=test), "testcase", classname=test, name="whole")
            xml.SubElement(case, "failure", message="it did not come to its end")
    xml.ElementTree(whole).write(file, encoding="utf-8")
