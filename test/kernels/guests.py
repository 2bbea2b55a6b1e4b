"""The machines that Paddock is tested on, and what is tested there, as data.

A guest is a distribution with its own kernel, and a layout of control groups. Guests
that differ in the kernel's command line only share one root file system.
"""

from dataclasses import dataclass

COMMON = (
    "systemd", "systemd-sysv", "linux-image-amd64", "initramfs-tools", "kmod", "zstd",
    # what the programs link to and start
    "libnghttp2-14", "libsodium23", "libsqlite3-0", "libyaml-0-2", "zlib1g", "btrfs-progs",
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


def of(file, *names):
    """Arguments for pytest: tests of a file by name, all of them without one. A name that is gone is an error."""
    return [f"{file}::{name}" for name in names] or [file]


SMOKE = [of("test/kernels/test_smoke.py"), of("test/kernels/test_machine.py"), of("test/kernels/test_deb.py")]

# What a kernel can do differently, in a quarter of an hour for a guest: emulation makes test/it as a whole
# one of hours. In are the walls (posture, escape, system calls), limits and what breaks against them,
# mounts and copies of files, freezing, what survives the daemon, and both ways of bringing connections to the
# gate. Out is what the programs decide by themselves, whatever the kernel (who may do what, wrong input, names,
# deadlines, parsers): `make test` runs all that on the machine itself. Out, too, are tests that only do what
# another does at a larger scale (a thousand flows, ten thousand files), since those measure the emulator.
SELECTION = [
    SMOKE[0],
    of("test/kernels/test_deb.py"),
    of("test/kernels/test_unit.py"),
    of("test/kernels/test_groups.py"),
    of("test/it/test_posture_outside.py"),
    of("test/it/test_disk_seen.py", "test_every_program_is_told", "test_use_and_limit_are_the_present_ones", "test_everything_else_is_the_kernels",
       "test_signals_and_threads_meanwhile"),
    of("test/it/test_limits_seen.py", "test_processors", "test_control_groups", "test_uptime_and_boot", "test_without_its_own_uptime",
       "test_each_box_sees_its_own", "test_gauge_that_is_killed_comes_back", "test_boxes_of_an_earlier_keeper"),
    of("test/it/test_bombs.py", "test_fork_bomb", "test_fork_bomb_does_not_survive_its_box",
       *(f"test_memory_bomb[{way}]" for way in ("many processes", "tmpfs", "memfd", "pipes", "sockets")), "test_cpu_bomb",
       "test_open_files_are_bounded", "test_pid_1_is_not_offered_with_what_it_starts"),
    of("test/it/test_disk.py", "test_a_full_box_gets_an_error_and_its_neighbour_does_not", "test_usage_is_shown",
       "test_forks_have_the_quota_too", "test_copy_backend_has_no_quotas_and_says_so", "test_the_loop_file_grows"),
    of("test/it/test_lifecycle.py", "test_pause_and_resume", "test_a_paused_box_can_be_deleted", "test_auto_resume", "test_pause_and_use_at_once",
       "test_paused_box_survives_restarts", "test_stop_and_start", "test_stopped_box_survives_restarts_and_starts",
       "test_box_that_ended_by_itself_starts_again", "test_stopping_ends_what_waits",
       "test_a_shell_survives_a_pause"),
    of("test/it/test_snapshots.py", "test_snapshot_becomes_a_box", "test_of_paused_and_stopped_boxes", "test_snapshots_survive_a_restart",
       "test_fork", "test_fork_of_a_paused_and_of_a_stopped_box", "test_snapshot_becomes_an_image",
       "test_readonly_root_shows_the_files_of_the_original"),
    of("test/it/test_restart.py", "test_kill_the_api", "test_kill_the_keeper", "test_orderly_stop_and_start", "test_a_running_process_survives",
       "test_box_that_died_while_the_daemon_was_down", "test_foreign_process_with_a_reused_pid_is_left_alone",
       "test_exec_under_way_when_the_api_dies"),
    of("test/it/test_gate.py", "test_nothing_without_a_rule", "test_named_hosts", "test_addresses_ports_and_protocols", "test_bypass",
       "test_nothing_reached_the_servers", "test_questions_carry_nothing_out", "test_any_name_server_answers", "test_icmp",
       "test_change_at_once", "test_the_gate_dies_in_flight", "test_restarts", "test_the_gate_has_nothing"),
    of("test/it/test_gate_nft.py", "test_it_is_said", "test_nothing_without_a_rule", "test_named_hosts", "test_addresses_ports_and_protocols",
       "test_bypass", "test_nothing_reached_the_servers", "test_any_name_server_answers", "test_other_datagrams_are_refused_at_once",
       "test_loopback_is_the_boxes_own", "test_rules_are_out_of_reach", "test_sockets_of_others_are_not_to_be_had",
       "test_network_from_outside", "test_restarts", "test_the_next_best", "test_boxes_keep_their_way"),
    of("test/it/test_mounts.py"),
    of("test/escape/test_sweep.py"),
    of("test/it/test_posture_inside.py"),
    of("test/escape/test_escape.py"),
]
