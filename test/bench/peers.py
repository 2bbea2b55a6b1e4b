"""What a user would pick instead, measured in the same run."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
from pathlib import Path

from common import paddock, timed


def make_rootfs(work):
    """The smallest userland there is, the same for every peer."""
    root = work / "rootfs"
    for name in ("bin", "proc", "dev", "sys", "tmp", "etc"):
        (root / name).mkdir(parents=True)
    source = shutil.which("busybox")
    if not source:
        raise SystemExit("busybox-static is not installed")
    shutil.copy(source, root / "bin" / "busybox")
    for applet in ("true", "sh"):
        (root / "bin" / applet).symlink_to("busybox")
    return root


class Bubblewrap:
    def __init__(self, work, root):
        self.command = [shutil.which("bwrap"), "--unshare-all", "--ro-bind", str(root), "/", "--proc", "/proc", "--dev", "/dev",
                        "--tmpfs", "/tmp", "--die-with-parent", "/bin/true"]

    def round(self):
        return timed(self.command)


class Runc:
    def __init__(self, work, root):
        self.bundle, self.state, self.count = work / "bundle", work / "runc", 0
        self.bundle.mkdir()
        subprocess.run(["runc", "spec"], cwd=self.bundle, check=True)
        file = self.bundle / "config.json"
        spec = json.loads(file.read_text())
        spec["process"].update(terminal=False, args=["/bin/true"])
        spec["root"] = {"path": str(root), "readonly": True}
        spec["linux"]["cgroupsPath"] = f"/paddock-bench-{os.getpid()}/runc"
        file.write_text(json.dumps(spec))

    def round(self):
        self.count += 1
        return timed([shutil.which("runc"), "--root", str(self.state), "run", "--bundle", str(self.bundle), f"bench{self.count}"])


class Docker:
    """Debian's dockerd by hand: own directories, own socket, no network, no firewall rules."""

    def __init__(self, work, root):
        self.base = work / "docker"
        self.base.mkdir()
        self.socket = f"unix://{self.base}/sock"
        self.program = "/usr/bin/docker" if os.access("/usr/bin/docker", os.X_OK) else shutil.which("docker")
        dockerd = shutil.which("dockerd")
        if not dockerd:
            raise SystemExit("dockerd (docker.io) is not installed")
        self.litter = [path for path in map(Path, ("/etc/docker/key.json", "/run/docker")) if not path.exists()]
        self.log = open(self.base / "log", "wb")
        self.process = subprocess.Popen(
            [dockerd, "--host", self.socket, "--data-root", self.base / "data", "--exec-root", self.base / "exec",
             "--pidfile", self.base / "pid", "--iptables=false", "--ip6tables=false", "--ip-forward=false", "--bridge=none",
             "--cgroup-parent", f"/paddock-bench-{os.getpid()}"],
            stdout=self.log, stderr=subprocess.STDOUT, preexec_fn=paddock.die_with_parent)
        paddock.until(lambda: self.call("version").returncode == 0, f"dockerd answers, see {self.base}/log", 60)
        tar = subprocess.Popen(["tar", "-C", root, "-c", "."], stdout=subprocess.PIPE)
        subprocess.run([self.program, "-H", self.socket, "import", "-", "bench"], stdin=tar.stdout, check=True, capture_output=True)
        tar.stdout.close()
        tar.wait()

    def call(self, *arguments):
        if self.process.poll() is not None:
            raise SystemExit(f"dockerd ended\n{paddock.read(self.base / 'log')[-3000:]}")
        return subprocess.run([self.program, "-H", self.socket, *arguments], capture_output=True)

    def round(self):
        return timed([self.program, "-H", self.socket, "run", "--rm", "--network", "none", "bench", "/bin/true"])

    def exec(self, name):
        return timed([self.program, "-H", self.socket, "exec", name, "/bin/true"])

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()
        for path in self.litter:  # made outside its directories in spite of all flags
            shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink(missing_ok=True)


class Nginx:
    """The limit: a static answer of the same bytes from one worker."""

    def __init__(self, work, body):
        self.base = work / "nginx"
        self.base.mkdir()
        with paddock.socket.create_server(("127.0.0.1", 0)) as probe:
            self.port = probe.getsockname()[1]
        text = body.replace('"', '\\"')
        (self.base / "conf").write_text(f"""
daemon off; master_process off; worker_processes 1; pid {self.base}/pid; error_log {self.base}/error.log;
events {{ worker_connections 1024; }}
http {{
  access_log off; keepalive_requests 100000000; keepalive_timeout 75s; default_type application/json; server_tokens off;
  client_body_temp_path {self.base}/b; proxy_temp_path {self.base}/p; fastcgi_temp_path {self.base}/f;
  uwsgi_temp_path {self.base}/u; scgi_temp_path {self.base}/s;
  server {{ listen 127.0.0.1:{self.port}; location = /health {{ return 200 "{text}"; }} }}
}}
""")
        self.process = subprocess.Popen(["nginx", "-c", self.base / "conf", "-p", self.base], stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL, preexec_fn=paddock.die_with_parent)

        def answers():
            with contextlib.suppress(OSError), paddock.socket.create_connection(("127.0.0.1", self.port), 1):
                return True

        paddock.until(answers, "nginx answers")

    def stop(self):
        self.process.terminate()
        self.process.wait()
