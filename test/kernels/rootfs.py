"""Root file systems of guests, by mmdebstrap, kept by what they are made of.

The mirrors are those of this machine's own apt, and apt verifies what it fetches with
Debian's keys. An image is made once for a list of packages and never written to: a guest
runs on a copy that qemu throws away.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from guests import LEFT_OUT

ROOT = Path(__file__).resolve().parents[2]
SHARED = Path("/var/cache/paddock-test")
SIZE = "6G"

# The test's unit unpacks the second disk and hands over to what it finds there.
UNIT = """[Unit]
Description=The tests of Paddock
After=basic.target

[Service]
Type=oneshot
ExecStart=/bin/sh -c 'mkdir -p /work && tar -xf /dev/vdb -C /work && exec /usr/bin/python3 /work/test/kernels/guest.py'
StandardOutput=tty
StandardError=tty
TTYPath=/dev/console
TimeoutStartSec=infinity
LimitNOFILE=1048576
TasksMax=infinity
"""

# A small initial file system: what finds the disk, and nothing else.
INITRAMFS = """#!/bin/sh
[ "$1" = prereqs ] && exit 0
. /usr/share/initramfs-tools/hook-functions
manual_add_modules virtio_pci virtio_blk ext4
"""

MASKED = ("getty@tty1.service", "serial-getty@ttyS0.service", "systemd-timesyncd.service", "systemd-resolved.service",
          "apt-daily.timer", "apt-daily-upgrade.timer", "dpkg-db-backup.timer", "e2scrub_all.timer", "fstrim.timer")


class Unavailable(Exception):
    """A guest that cannot be made, and why."""


def cache():
    named = os.environ.get("PADDOCK_TEST_CACHE")
    if named:
        return Path(named) / "kernels"
    return SHARED / "kernels" if os.access(SHARED, os.W_OK) else ROOT / "build" / "kernels" / "cache"


def mirrors():
    """{label: address} of Debian's archives in this machine's apt: "Debian", "Debian-Security"."""
    found = known_mirrors()
    if "Debian" not in found:  # its lists may have been removed to save space
        subprocess.run(["apt-get", "update", "-qq"], check=False)
        found = known_mirrors()
    if "Debian" not in found:
        raise Unavailable("apt of this machine knows no mirror of Debian")
    return found


def known_mirrors():
    lines = subprocess.run(["apt-get", "indextargets", "--format", "$(ORIGIN) $(LABEL) $(REPO_URI)", "Created-By: Packages"],
                           check=True, capture_output=True, text=True).stdout.splitlines()
    found = {}
    for line in lines:
        origin, label, address = line.split(" ", 2)
        if origin == "Debian":
            found.setdefault(label, address)
    return found


def recipe(guest):
    """What an image is made of; its hash is the image's name."""
    return {"suite": guest.suite, "backports": guest.backports, "packages": guest.packages, "left_out": LEFT_OUT,
            "unit": UNIT, "initramfs": INITRAMFS, "masked": MASKED, "size": SIZE}


def image(guest):
    """A directory with disk.img, vmlinuz and initrd."""
    key = hashlib.sha256(json.dumps(recipe(guest)).encode()).hexdigest()[:16]
    place = cache() / f"{guest.suite}{'-backports' if guest.backports else ''}-{key}"
    place.parent.mkdir(parents=True, exist_ok=True)
    with open(place.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # another run may be making it
        if not place.exists():
            make(guest, place)
    return place


def make(guest, place):
    work = Path(tempfile.mkdtemp(prefix="making-", dir=place.parent))
    try:
        bootstrap(guest, work / "root", work / "log")
        (work / "image").mkdir()
        furnish(work / "root")
        for name, pattern in (("vmlinuz", "vmlinuz-*"), ("initrd", "initrd.img-*")):
            [found] = (work / "root/boot").glob(pattern)
            shutil.move(found, work / "image" / name)
        disk = work / "image/disk.img"
        subprocess.run(["truncate", "-s", SIZE, disk], check=True)
        subprocess.run(["mkfs.ext4", "-q", "-F", "-O", "^has_journal", "-E", "lazy_itable_init=1", "-d", work / "root", disk], check=True)
        os.rename(work / "image", place)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def sources(guest):
    address = mirrors()
    yield f"deb {address['Debian']} {guest.suite} main"
    if "Debian-Security" in address:
        yield f"deb {address['Debian-Security']} {guest.suite}-security main"
    if guest.backports:
        yield f"deb {address['Debian']} {guest.suite}-backports main"


def bootstrap(guest, root, log):
    hook = root.with_name("hook")
    preferences = ""
    if guest.backports:
        preferences = f"Package: linux-*\nPin: release n={guest.suite}-backports\nPin-Priority: 900\n"
    conf = "$1/etc/initramfs-tools"
    hook.write_text(f"""#!/bin/sh -e
mkdir -p {conf}/conf.d {conf}/hooks
echo MODULES=list > {conf}/conf.d/paddock
cat > {conf}/hooks/paddock <<'EOF'
{INITRAMFS}EOF
chmod 755 {conf}/hooks/paddock
""")
    hook.chmod(0o755)
    command = ["mmdebstrap", "--variant=minbase", "--mode=root", "--format=directory", f"--essential-hook={hook}",
               "--aptopt=APT::Install-Recommends false", f"--include={','.join(guest.packages)}"]
    command += [f"--dpkgopt=path-exclude={pattern}" for pattern in LEFT_OUT]
    if preferences:
        pinned = root.with_name("preferences")
        pinned.write_text(preferences)
        command.append(f"--setup-hook=mkdir -p \"$1/etc/apt/preferences.d\" && cp {pinned} \"$1/etc/apt/preferences.d/paddock\"")
    with open(log, "wb") as out:
        done = subprocess.run([*command, guest.suite, root, *sources(guest)], stdout=out, stderr=subprocess.STDOUT)
    if done.returncode:
        tail = "\n".join(log.read_text(errors="replace").splitlines()[-15:])
        raise Unavailable(f"mmdebstrap for {guest.name} failed:\n{tail}")


def furnish(root):
    units = root / "etc/systemd/system"
    (units / "paddock-tests.service").write_text(UNIT)
    wants = units / "multi-user.target.wants"
    wants.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(FileExistsError):
        (wants / "paddock-tests.service").symlink_to("../paddock-tests.service")
    for name in MASKED:
        (units / name).unlink(missing_ok=True)
        (units / name).symlink_to("/dev/null")
    (root / "etc/hostname").write_text("guest\n")
    (root / "etc/hosts").write_text("127.0.0.1 localhost\n127.0.1.1 guest\n")
    (root / "etc/fstab").write_text("")
