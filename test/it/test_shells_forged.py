"""What a program writes to its shell's own descriptors does not pass for the command's status."""

import pytest

FORGE = r"""
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
shell = os.getppid()
wrote = 0
text = (b"R" + sys.argv[1].encode() + b" 0 /\0\0") if len(sys.argv) > 1 else b"garbage"
pid = libc.syscall(434, shell, 0)
for fd in os.listdir(f"/proc/{shell}/fd"):
    for get in (lambda: os.open(f"/proc/{shell}/fd/{fd}", os.O_WRONLY | os.O_NONBLOCK), lambda: libc.syscall(438, pid, int(fd), 0)):
        try:
            it = get()
            if it >= 0 and "socket" in os.readlink(f"/proc/self/fd/{it}"): wrote += os.write(it, text) > 0
        except OSError: pass
sys.stdout.write(f"wrote {wrote}\n"); sys.stdout.flush()
import time; time.sleep(0.3)
sys.exit(7)
"""


def run(box, command):
    return box.client.post(f"{box.path}/exec", {"command": command, "shell": "s"})


@pytest.mark.parametrize("argument", ["", "$__paddock_id"])
def test_forged_status(box, argument):
    box.put("/tmp/forge.py", FORGE.encode())
    assert run(box, "cd /tmp; export KEPT=1").json()["exit_code"] == 0
    told = run(box, f"python3 /tmp/forge.py {argument}")
    if told.status == 200:  # it could not write there at all
        assert told.json()["exit_code"] == 7 and told.json()["stdout"] == "wrote 0\n", told
    else:
        assert "shell was broken" in told.json()["error"]["message"] and "unknown" in told.json()["error"]["message"]
    after = run(box, "echo $KEPT $PWD").json()
    assert (after["exit_code"], after["stdout"]) == (0, "1 /tmp\n")


def test_nobody_opens_the_channel_by_its_path(box):
    shown = run(box, "for f in 250 251; do python3 -c 'open(\"/proc/'$$'/fd/'$f'\", \"wb\")' 2>&1 | tail -1; done; ls -l /proc/$$/fd | grep -c pipe").json()
    assert "pipe" not in shown["stdout"]
