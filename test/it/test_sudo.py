"""sudo and su: a program of ours that asks PID 1, since nothing in a box gains rights by being executed."""

import os

import paddock
from test_images import Tar


def sh(box, command, user="user", **more):
    return box.exec(["/bin/bash", "-c", command], user=user, **more)


def test_a_user_becomes_root(box):
    result = sh(box, "sudo id -u; sudo -n whoami; id -u")
    assert (result.out, result.exit_code) == (b"0\nroot\n1000\n", 0), result


def test_nothing_in_the_box_is_set_uid_and_no_new_privs_stays(box):
    assert b"NoNewPrivs:\t1" in sh(box, "sudo cat /proc/self/status").out
    assert sh(box, "stat -c '%a %U' /usr/bin/sudo /usr/bin/su").out == b"755 root\n755 root\n"
    bounding = [line for line in sh(box, "sudo cat /proc/self/status").out.splitlines() if line.startswith(b"CapBnd")]
    assert bounding == [b"CapBnd:\t0000000000000000"]


def test_status_streams_and_directory_are_the_command_s(box):
    result = sh(box, "cd /tmp && echo in | sudo sh -c 'cat; pwd; echo err >&2; exit 7'; echo $?")
    assert (result.out, result.err) == (b"in\n/tmp\n7\n", b"err\n"), result
    result = sh(box, "sudo sh -c 'kill -TERM $$'; echo $?")
    assert result.out == b"143\n", result
    result = sh(box, "sudo nosuch; echo $?")
    assert (result.out, result.err) == (b"1\n", b"sudo: nosuch: command not found\n")
    assert sh(box, "sudo -D /usr pwd").out == b"/usr\n"


def test_the_environment_is_sudo_s(box):
    env = "export A=1 LANG=C.UTF-8 TERM=vt100;"
    kept = dict(line.split("=", 1) for line in sh(box, env + "sudo env").out.decode().splitlines())
    assert "A" not in kept and kept["LANG"] == "C.UTF-8" and kept["TERM"] == "vt100"
    assert (kept["HOME"], kept["USER"], kept["LOGNAME"], kept["SHELL"]) == ("/root", "root", "root", "/bin/bash")
    assert (kept["SUDO_USER"], kept["SUDO_UID"], kept["SUDO_GID"], kept["SUDO_COMMAND"]) == ("user", "1000", "1000", "env")
    assert kept["PATH"] == "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    assert sh(box, env + "sudo -E printenv A").out == b"1\n"
    assert sh(box, env + "sudo --preserve-env=A printenv A").out == b"1\n"
    assert sh(box, "sudo B=2 C='x y' sh -c 'echo $B $C'").out == b"2 x y\n"


def test_other_users_and_shells(box):
    assert sh(box, "sudo -u nobody id -un").out == b"nobody\n"
    assert sh(box, "sudo -u '#65534' id -u").out == b"65534\n"
    assert sh(box, "sudo sudo -u user id -u", user="root").out == b"1000\n"
    assert b"unknown user" in sh(box, "sudo -u nosuch true").err
    assert sh(box, "sudo -i pwd").out == b"/root\n"
    assert sh(box, "sudo -s echo 'a  b' '$HOME;'").out == b"a  b /root;\n"
    assert sh(box, "sudo -i printf '%s-' 'one two' three").out == b"one two-three-"
    assert sh(box, "su -c 'id -u; echo $HOME'").out == b"0\n/root\n"
    assert sh(box, "su - -c pwd").out == b"/root\n"
    assert sh(box, "su nobody -s /bin/sh -c 'id -un'").out == b"nobody\n"
    assert sh(box, "sudo -v && sudo -k && sudo -l").out.endswith(b"NOPASSWD: ALL\n")


def test_services_do_not_become_root(box):
    result = sh(box, "sudo id", user="nobody")
    assert result.exit_code == 1 and b"may not become another" in result.err
    sh(box, "printf 'svc:x:200:200::/:/bin/sh\\n' >>/etc/passwd", user="root")
    assert sh(box, "sudo id -u", user="svc").exit_code == 1
    sh(box, "printf 'sudo:x:27:svc\\n' >>/etc/group", user="root")
    assert sh(box, "sudo id -u", user="svc").out == b"0\n"


def test_signals_reach_the_command(box):
    script = ("sudo sh -c 'trap \"echo got; exit 5\" INT; echo $$ >/tmp/ready; while :; do sleep 0.05; done' & "
              "until test -s /tmp/ready; do sleep 0.02; done; kill -INT $!; wait $!; echo $?")
    assert sh(box, script).out == b"got\n5\n"


def test_a_time_limit_ends_the_command_too(box):
    assert sh(box, "sudo sleep 1000", timeout_ms=500).timed_out
    paddock.until(lambda: b"sleep" not in sh(box, "sudo ps ax -o args= | grep '^slee[p]'").out, "the command is gone")


def test_a_client_that_is_killed_takes_its_command_with_it(box):
    sh(box, "(sudo sh -c 'echo $$ >/tmp/pid; sleep 1000' & until test -s /tmp/pid; do sleep 0.02; done; kill -9 $!)")
    pid = sh(box, "cat /tmp/pid").out.decode().strip()
    paddock.until(lambda: sh(box, f"test -e /proc/{pid}").exit_code, "the command is gone")


def test_a_terminal_of_its_own(box):
    """Job control, /dev/tty and the size: the command has a terminal like the caller's."""
    script = r'''
import fcntl, os, pty, struct, termios
pid, fd = pty.fork()
if pid == 0:
    fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("4H", 31, 97, 0, 0))
    os.execvp("sudo", ["sudo", "bash", "--norc", "-ic", "tty; tty </dev/tty; stty size </dev/tty; sleep 0.1 & fg; exit 3"])
out = b""
while True:
    try: data = os.read(fd, 4096)
    except OSError: break
    if not data: break
    out += data
print(out.decode().replace("\r", ""), os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
'''
    result = box.exec(["/usr/bin/python3", "-c", script], user="user")
    for told in (b"/dev/pts/", b"/dev/tty\n", b"31 97\n", b"sleep 0.1\n"):
        assert told in result.out, result
    assert b"job" not in result.out, result
    assert result.out.rstrip().endswith(b"3"), result


def test_hostile_requests(box):
    """What a program can send instead of our client: PID 1 answers none of it, and lives."""
    script = r'''
import array, fcntl, os, socket, struct
ADDRESS = b"\0paddock/sudo"
def talk(packet, fds=()):
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.settimeout(5)
    s.connect(ADDRESS)
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
    s.sendmsg([packet], rights)
    try: return s.recv(300)[:1]
    except OSError: return b"-"
def sealed(text):
    fd = os.memfd_create("r", os.MFD_ALLOW_SEALING)
    os.write(fd, text)
    fcntl.fcntl(fd, 1033, 1 | 2 | 4 | 8)
    return fd
plain = os.memfd_create("p"); os.write(plain, b"root\0001\0\0true\0")
rd, wr = os.pipe()
cwd = os.open("/", os.O_RDONLY)
std = [cwd, 0, 1, 2]
good = b"root\0001\0\0true\0A=1\0"
print(talk(b"R\0", [sealed(good), *std]), flush=True)
for what in (good[:-1], b"", b"\0", b"root\000", b"root\0000\0\0", b"root\0009\0\0true\0", b"root\0004294967295\0\0true\0",
             b"root\000-1\0\0true\0", b"\0001\0\0true\0", b"root\0001\0\0\0", b"nosuch\0001\0\0true\0", os.urandom(5000)):
    assert talk(b"R\0", [sealed(what), *std]) == b"E", what
assert talk(b"R\0", [plain, *std]) == b"E"
assert talk(b"R\0", [rd, *std]) == b"E"
assert talk(b"R\0", [sealed(good), rd, 0, 1, 2]) == b"E"
for packet, fds in ((b"R", [sealed(good), *std]), (b"R\0", []), (b"R\0", [sealed(good)]), (b"K\x09", []), (b"X" * 500, []),
                    (b"R\0", [sealed(good), *std, *std])):
    print(talk(packet, fds), flush=True)
held = []
for i in range(200):
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET); s.setblocking(False)
    try: s.connect(ADDRESS)
    except OSError: pass
    held.append(s)
'''
    result = box.exec(["/usr/bin/python3", "-c", script], user="user")
    assert result.exit_code == 0, result
    lines = result.out.splitlines()
    assert lines[0] == b"b'S'" and all(line in (b"b''", b"b'-'", b"b'S'") for line in lines[1:]), lines
    paddock.until(lambda: sh(box, "sudo id -u").out == b"0\n", "it serves again")


def test_clients_of_pid_1_are_bounded(make_box, daemon):
    """64 at once: whoever connects and says nothing does not fill its descriptors, and is sent away in time."""
    box, client = make_box(), daemon.client()
    held = r"""
import socket, sys
held = []
for i in range(300):
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.settimeout(0.2)
    try: s.connect(b"\0paddock/sudo")
    except OSError: pass
    held.append(s)
print(len(held), flush=True)
open("/tmp/held", "w").close()
sys.stdin.read()
"""
    run = paddock.Background(box.with_client(client).exec, ["/bin/sh", "-c", 'sleep 100 | python3 -c "$1"', "sh", held],
                             timeout_ms=paddock.ms(6000))
    paddock.until(lambda: box.read("/tmp/held").status == 200, "they are connected")
    descriptors = len(os.listdir(f"/proc/{box.pid1()}/fd"))
    assert 64 <= descriptors < 100, descriptors
    assert sh(box, "echo alive").out == b"alive\n"
    run.result()
    client.close()
    paddock.until(lambda: sh(box, "sudo id -u").out == b"0\n", "there is room again")


def test_off(box, make_box, own_daemon):
    assert box.document["sudo"] is True
    without = make_box(sudo=False)
    assert without.document["sudo"] is False
    result = sh(without, "test -x /usr/bin/sudo && cmp -s /usr/bin/sudo /usr/bin/su; echo $?; su -c id </dev/null")
    assert result.out.startswith(b"1\n") and b"uid=0" not in result.out
    assert b"paddock/sudo" not in sh(without, "cat /proc/net/unix").out
    daemon = own_daemon(environment={"PADDOCK_DEFAULTS_SUDO": "false"}).start()
    asked = daemon.client().create(sudo=True)
    assert asked.document["sudo"] is False and sh(asked, "su -c id </dev/null").exit_code != 0


def test_an_image_turns_it_off(api, make_box):
    tar = Tar().file("etc/paddock/no-sudo", b"")
    assert api.request("PUT", "/v1/images/nosudo", tar.bytes(), {"Content-Type": "application/x-tar"}).status in (200, 201)
    box = make_box(image="nosudo", user="root")
    result = box.exec(["/usr/bin/sudo", "true"])
    assert result.exit_code == 1 and b"turned off" in result.err
    box.delete()
    api.delete("/v1/images/nosudo")


def test_images_of_others_have_it_too(api, make_box):
    """Also where the image's own is set-uid, which cannot work here; where /usr/bin is a link it is left alone."""
    tar = Tar().file("usr/bin/sudo", b"#!/bin/sh\necho image\n", 0o4755)
    assert api.request("PUT", "/v1/images/setuid", tar.bytes(), {"Content-Type": "application/x-tar"}).status in (200, 201)
    for more in ({}, {"readonly_root": True}):
        box = make_box(image="setuid", user="user", **more)
        assert box.exec(["/bin/sh", "-c", "sudo id -u"], user="user").out == b"0\n"
        assert box.exec(["/bin/sh", "-c", "ls -ld /usr /usr/bin | cut -c1-10; sudo sh -c 'echo x >/usr/bin/y; cat /usr/bin/y'"], user="user").out == (
            b"drwxr-xr-x\ndrwxr-xr-x\n" + (b"" if more else b"x\n"))
        box.delete()
    api.delete("/v1/images/setuid")


def test_readonly_root_and_snapshots(make_box, api):
    box = make_box(readonly_root=True)
    assert sh(box, "sudo id -u").out == b"0\n"


QUICK = """
import json, subprocess, time
took = {"sudo": [], "env": []}  # in turn, so that other load meets both
for _ in range(30):
    for name, each in took.items():
        begun = time.perf_counter()
        subprocess.run([name, "true"])
        each.append(1000 * (time.perf_counter() - begun))
print(json.dumps([sorted(each)[15] for each in took.values()]))
"""


def test_it_is_quick(box):
    """Milliseconds; on a busy machine, some times what a command takes there that starts another without sudo."""
    sh(box, "sudo true")
    sudo, plain = box.python_json(QUICK)
    assert sudo < max(5, 3 * plain), (sudo, plain)
