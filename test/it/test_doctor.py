"""`paddock doctor`, and what a daemon does on a machine that cannot give everything.

The doctor makes and ends a box by the daemon's own code, so that a line that says "ok" is what a create will find. What a
machine lacks is simulated: the name of an old kernel by the personality that Linux has for it, the rest in private
namespaces.
"""

import os
import resource
import subprocess

import pytest

import paddock


def doctor(directory, *arguments, environment=None, command=(), **options):
    """(exit code, {part: (mark, detail)})"""
    done = subprocess.run([*command, str(paddock.BIN / "paddock"), "doctor", "--data-dir", str(directory), *arguments],
                          env=paddock.clean_environment(**(environment or {})), capture_output=True, timeout=60, **options)
    parts = {}
    for line in done.stdout.decode().splitlines():
        mark, name, detail = line.split(None, 2)
        parts[name] = (mark, detail)
    assert parts, done
    return done.returncode, parts


def test_a_line_for_each_step_of_a_create(tmp_path):
    code, parts = doctor(tmp_path / "not" / "there")
    assert code == 0, parts
    for name in ("kernel", "root", "namespace.user", "landlock", "seccomp", "limit.memory", "limit.cpu", "limit.pids", "limit.swap",
                 "storage", "limit.disk", "idmap", "overlay", "box"):
        assert parts[name][0] == "ok", (name, parts[name])
    assert parts["egress.capture"][1].startswith(("sk_lookup", "nf_tables"))
    much = resource.getrlimit(resource.RLIMIT_MEMLOCK)[1] == resource.RLIM_INFINITY or bool(int(paddock.proc_status("self")["CapEff"], 16) >> 24 & 1)
    assert parts["wallets.memory"][0] == ("ok" if much else "--"), parts["wallets.memory"]
    # It leaves nothing: no directory, no control group, no loop device.
    assert os.listdir(tmp_path) == []
    assert not [path for path in paddock.cgroup_mounts().values() for top, names, _ in os.walk(path)
                for name in names if name.startswith("doctor-")]
    loops = subprocess.run(["losetup", "-a"], capture_output=True, text=True).stdout
    assert str(tmp_path) not in loops


def test_what_is_missing_is_said_with_its_cost(tmp_path):
    code, parts = doctor(tmp_path, environment={"PADDOCK_DATA_BACKEND": "copy"})
    assert code == 0 and parts["storage"][1].startswith("plain directories on ")
    assert parts["limit.disk"] == ("--", "no disk limits; snapshots and forks copy every file; needs btrfs (data.backend: btrfs)")
    config = tmp_path / "paddock.yaml"
    config.write_text("posture: {without: [overlay.detached, landlock.scopes, cgroup.freeze, cgroup.kill]}\n")
    code, parts = doctor(tmp_path / "data", "--config", str(config))
    assert code == 0 and parts["box"][0] == "ok", parts
    for name in ("overlay.detached", "landlock.scopes", "cgroup.freeze", "cgroup.kill"):
        mark, detail = parts[name]
        assert mark == "--" and detail.startswith("left out by posture.without: "), parts[name]
    # The box is made with attached layers then, which is said together with what it costs.
    assert "4 more mount calls" in parts["overlay.detached"][1]


def test_required_and_not_there(tmp_path):
    config = tmp_path / "paddock.yaml"
    config.write_text("posture: {require: [limit.disk]}\ndata: {backend: copy}\n")
    code, parts = doctor(tmp_path / "data", "--config", str(config))
    assert code == 1 and parts["box"][0] == "ok"
    assert parts["posture.require"][0] == "FAIL" and "limit.disk is required and not to be had here" in parts["posture.require"][1]


def test_an_old_kernel_is_refused_at_the_start(tmp_path, own_daemon):
    """uname says 2.6 with the personality that Linux has for programs that expect it."""
    code, parts = doctor(tmp_path, command=("setarch", "--uname-2.6"))
    assert code == 1 and parts["kernel"][0] == "FAIL", parts
    assert "is too old: Paddock needs Linux 6.1 or newer" in parts["kernel"][1]
    assert "box" not in parts and os.listdir(tmp_path) == []
    daemon = own_daemon()
    daemon.command = lambda: ["setarch", "--uname-2.6", *paddock.Daemon.command(daemon)]
    with pytest.raises(AssertionError, match="is too old: Paddock needs Linux 6.1 or newer"):
        daemon.start()
    assert not daemon.data_dir.exists()


def test_a_failed_trial_is_not_for_ever(own_daemon):
    """No uid range is free at the start: creates are refused for that, and work when there is one again."""
    base = 1 << 30
    daemon = own_daemon(environment={"PADDOCK_UIDS_SLOTS": "1", "PADDOCK_UIDS_BASE": str(base)}).start()
    client = daemon.client()
    box = client.create()
    daemon.restart()
    client = daemon.client()
    assert "uid ranges of this machine are in use" in daemon.log()
    assert client.get("/v1/posture").json()["ok"] is False
    refused = client.try_create()
    assert refused.status == 503 and "uid ranges of this machine are in use" in refused.json()["error"]["message"], refused
    assert box.with_client(client).check("echo alive") == "alive\n"
    box.with_client(client).delete()
    client.create().delete()
    assert client.get("/v1/posture").json()["ok"] is True
    client.close()


def test_not_root(tmp_path):
    tmp_path.chmod(0o755)
    code, parts = doctor(tmp_path, user=65534, group=65534, extra_groups=[])
    assert code == 1 and parts["root"] == ("FAIL", "must run as root")
    assert "box" not in parts
