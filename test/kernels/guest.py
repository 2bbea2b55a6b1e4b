"""In a guest: runs the tests of the job, sends the report through the second serial port, and ends the machine."""

import json
import os
import subprocess
import tarfile
import termios
import tty
from pathlib import Path

WORK = Path("/work")
OUT = Path("/run/results")


def main():
    OUT.mkdir()
    job = json.loads((WORK / "job.json").read_text())
    os.environ.update(PADDOCK_SLOW=str(job["slow"]), PADDOCK_GUEST=job["guest"], HOME="/root", PYTHONDONTWRITEBYTECODE="1", PYTHONPATH=str(WORK / "test/kernels"),
                      PADDOCK_GUEST_KERNEL=job["kernel"], PADDOCK_GUEST_LAYOUT=job["layout"])
    subprocess.run(["ip", "link", "set", "lo", "up"], check=False)
    subprocess.run(["/usr/bin/python3", "-m", "pytest", "-v", "--color=no", "-p", "no:cacheprovider", "-p", "instant", "--tb=short", "--durations=15",
                    f"--junit-xml={OUT / 'report.xml'}", *job["tests"]], cwd=WORK, check=False)


def send():
    fd = os.open("/dev/ttyS1", os.O_WRONLY | os.O_NOCTTY)
    tty.setraw(fd)
    with open(fd, "wb", closefd=False) as port, tarfile.open(fileobj=port, mode="w|gz") as tar:
        tar.add(OUT, ".")
    termios.tcdrain(fd)
    os.close(fd)


if __name__ == "__main__":
    try:
        main()
        send()
    finally:
        os.sync()
        subprocess.run(["systemctl", "poweroff", "--force", "--force"], check=False)
