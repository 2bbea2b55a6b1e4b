"""The machines that Paddock is tested on, as data.

A guest is a distribution with its own kernel, and a layout of control groups. Guests
that differ in the kernel's command line only share one root file system.
"""

from dataclasses import dataclass

COMMON = (
    "systemd", "systemd-sysv", "linux-image-amd64", "initramfs-tools", "kmod", "zstd",
    # what the programs link to and start
    "libnghttp2-14", "libsqlite3-0", "libyaml-0-2", "zlib1g", "btrfs-progs",
    # what the tests use, in a box and beside it
    "python3", "python3-pytest", "busybox-static", "curl", "iproute2", "openssl", "procps", "strace",
)

# Drivers of hardware that a guest does not have, and text that nobody reads there.
LEFT_OUT = (
    *(f"*/lib/modules/*/kernel/{name}/*" for name in (
        "sound", "drivers/gpu", "drivers/media", "drivers/staging", "drivers/infiniband", "drivers/scsi", "drivers/usb",
        "drivers/net/ethernet", "drivers/net/wireless", "drivers/iio", "drivers/hwmon", "drivers/input", "drivers/platform")),
    "/usr/share/doc/*", "/usr/share/man/*", "/usr/share/locale/*",
)


@dataclass(frozen=True)
class Guest:
    name: str
    kernel: str  # what `uname -r` begins with
    suite: str
    packages: tuple
    backports: bool = False  # the kernel is the one of SUITE-backports
    append: str = ""  # to the kernel's command line
    layout: str = "unified"  # of the control groups


BOOKWORM = (*COMMON, "libssl3")
TRIXIE = (*COMMON, "libssl3t64")

GUESTS = {guest.name: guest for guest in (
    Guest("debian12", "6.1.", "bookworm", BOOKWORM),
    Guest("debian12-hybrid", "6.1.", "bookworm", BOOKWORM, layout="hybrid",
          append="systemd.unified_cgroup_hierarchy=0 systemd.legacy_systemd_cgroup_controller=0"),
    Guest("debian12-backports", "6.12.", "bookworm", BOOKWORM, backports=True),
    Guest("debian13", "6.12.", "trixie", TRIXIE),
    Guest("newest", "7.", "trixie", TRIXIE, backports=True),
)}
