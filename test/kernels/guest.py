"""In a guest: runs the files of the job one by one, sends the report of each as soon as it is there, and ends the machine."""

import contextlib
import json
import os
import subprocess
import tarfile
import termios
import tty
from pathlib import Path

WORK = Path("/work")


def main(send):
    job = json.loads((WORK / "job.json").read_text())
    # TMPDIR: Debian 13's /tmp is the guest's memory.
    os.environ.update(PADDOCK_SLOW=str(job["slow"]), PADDOCK_GUEST=job["guest"], PADDOCK_GUEST_KERNEL=job["kernel"],
                      PADDOCK_GUEST_LAYOUT=job["layout"], HOME="/root", TMPDIR="/var/tmp", PYTHONDONTWRITEBYTECODE="1",
                      PYTHONPATH=str(WORK / "test/kernels"))
    subprocess.run(["ip", "link", "set", "lo", "up"], check=False)
    for number, arguments in enumerate(job["tests"]):
        report = Path(f"/run/{number}.xml")
        # faulthandler_timeout: a test that takes long says where it is, for who looks at the console.
        subprocess.run(["/usr/bin/python3", "-m", "pytest", "-v", "--color=no", "-p", "no:cacheprovider", "-p", "instant", "--tb=short",
                        "-o", "faulthandler_timeout=60", "--durations=8", f"--junit-xml={report}", *arguments], cwd=WORK, check=False)
        if report.exists():
            send(report)


def write(raw, name, data):
    """One member of a tar archive, all of it now: tarfile keeps the last block until the next."""
    info = tarfile.TarInfo(name)
    info.size = len(data)
    raw.write(info.tobuf() + data + bytes(-len(data) % 512))
    raw.flush()


@contextlib.contextmanager
def port():
    """Sends files through the second serial port, as a tar archive that can be read also if it ends early."""
    fd = os.open("/dev/ttyS1", os.O_WRONLY | os.O_NOCTTY)
    tty.setraw(fd)
    with open(fd, "wb", closefd=False) as raw:
        yield lambda path: write(raw, path.name, path.read_bytes())
    termios.tcdrain(fd)
    os.close(fd)


if __name__ == "__main__":
    try:
        with port() as send:
            main(send)
    finally:
        os.sync()
        subprocess.run(["systemctl", "poweroff", "--force", "--force"], check=False)
