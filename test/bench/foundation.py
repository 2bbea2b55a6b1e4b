"""The figures of the foundation: start, create, exec, read, requests per CPU second."""

import subprocess

from common import Ours, cpu_seconds, percentile, summary
from peers import Bubblewrap, Docker, Nginx, Runc, make_rootfs


def requests_per_cpu_second(port, pids, seconds):
    before = cpu_seconds(pids)
    result = subprocess.run(["wrk", "-t1", "-c16", f"-d{seconds}s", f"http://127.0.0.1:{port}/health"], capture_output=True, text=True,
                            check=True)
    used = cpu_seconds(pids) - before
    count = int(result.stdout.split(" requests in")[0].split()[-1])
    if "Non-2xx" in result.stdout or used <= 0:
        raise SystemExit(result.stdout)
    return count / used, count / seconds


def measure(work, book, options, stack):
    quick = options.quick
    ours, root = Ours(work), make_rootfs(work)

    first, starts = ours.starts(5 if quick else 20)
    starts = summary(starts)
    book.add("start to ready p50", starts["p50"], "ms", 150, **starts)
    book.add("start to ready p99", starts["p99"], "ms")
    book.add("first start (makes store and image)", first, "ms")

    daemon = ours.daemon.start()
    stack.callback(daemon.finish)
    resident, proportional = ours.idle_memory()
    book.add("idle, resident", resident, "MiB", 20)
    book.add("idle, proportional", proportional, "MiB")

    peers = {"bwrap": Bubblewrap(work, root), "runc run": Runc(work, root)}
    if not options.no_docker:
        peers["docker run --rm"] = Docker(work, root)
        stack.callback(peers["docker run --rm"].stop)
    rounds = {"bwrap": 10, "runc run": 10, "docker run --rm": 2} if quick else {"bwrap": 40, "runc run": 40, "docker run --rm": 6}

    create = ours.request("create", "POST", "/v1/sandboxes", b"{}")
    delete = ours.request("delete", "DELETE", "/v1/sandboxes/@ID@")
    ours.latencies(5, create, delete)
    for peer in peers.values():
        peer.round()
    times = {"create": [], **{name: [] for name in peers}}
    for _ in range(5):  # interleaved, so that all see the same neighbours
        times["create"] += ours.latencies(10 if quick else 60, create, delete)
        for name, peer in peers.items():
            times[name] += [peer.round() for _ in range(rounds[name])]
    made = {name: summary(values) for name, values in times.items()}
    book.add("POST /v1/sandboxes p50", made["create"]["p50"], "ms", 4, **made["create"])
    book.add("POST /v1/sandboxes p99", made["create"]["p99"], "ms", 15)
    for name in peers:
        book.add(f"{name} p50", made[name]["p50"], "ms", **made[name])
        book.add(f"{name} p99", made[name]["p99"], "ms")
    for name, target in (("docker run --rm", 60), ("runc run", 1), ("bwrap", None)):
        if name in peers:
            book.add(f"{name} / create, p50", made[name]["p50"] / made["create"]["p50"], "times", target, least=True)

    client = daemon.client()
    box = client.create()
    box.put("/workspace/kilobyte", b"k" * 1024)
    for name, file, target in (
        ("exec of /bin/true", ours.request("exec", "POST", f"{box.path}/exec", b'{"argv":["/bin/true"]}'), 3),
        ("read of 1 kB", ours.request("read", "GET", box.file_path("/workspace/kilobyte")), 0.5),
    ):
        ours.latencies(10, file)
        values = summary(ours.latencies(50 if quick else 500, file))
        book.add(f"{name} p50", values["p50"], "ms", target, **values)
        book.add(f"{name} p99", values["p99"], "ms")
    box.delete()

    nginx = Nginx(work, client.get("/health").body.decode())
    stack.callback(nginx.stop)
    results = {"ours": [], "nginx": []}
    for _ in range(2 if quick else 5):
        results["ours"].append(requests_per_cpu_second(daemon.port, [daemon.api_pid()], 2))
        results["nginx"].append(requests_per_cpu_second(nginx.port, [nginx.process.pid], 2))
    per_cpu = {name: percentile([value for value, _ in values], 0.5) for name, values in results.items()}
    for name, value in per_cpu.items():
        book.add(f"GET /health, {name}, per CPU second", value, "requests")
    book.add("GET /health, ours / nginx", per_cpu["ours"] / per_cpu["nginx"], "times", 0.8, least=True)
    client.close()
