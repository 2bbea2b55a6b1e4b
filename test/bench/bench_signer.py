"""paddock-signer: how many requests 50 agents queue in a second, and what one decision costs with a long ledger.

The agents share the api's one stream, as they do in the daemon; each asks again as soon as it is answered.
"""

import os
import subprocess
import time

from common import paddock, summary  # which makes test/it importable
import signer as rig

AGENTS = 50


def queue(signer, each):
    """All of the agents' requests; seconds, and milliseconds of every one."""
    wallet = signer.wallet()
    for n in range(AGENTS):
        signer.agent(f"a{n}", wallet, day=rig.ETHER, max_pending=each + 1)
    left, began, took = {n: each for n in range(AGENTS)}, {}, []

    def ask(n):
        left[n] -= 1
        began[signer.api.post("REQUEST", **rig.request(agent=f"a{n}", value=1, to=(left[n] + 1).to_bytes(20, "big")))] = (n, time.perf_counter())

    start = time.perf_counter()
    for n in range(AGENTS):
        ask(n)
    while began:
        kind, _, stream, body, _ = signer.api.receive()
        n, since = began.pop(stream)
        took.append((time.perf_counter() - since) * 1000)
        reply = rig.pb.ItemReply()
        reply.ParseFromString(body)
        if kind != rig.frames.REPLY or reply.item.state != rig.state("pending"):
            raise SystemExit(f"agent a{n}: {kind} {reply.item.error}")
        if left[n]:
            ask(n)
    whole = time.perf_counter() - start
    if signer.spent(f"wallet:{wallet.id}") != AGENTS * each or signer.api.ask("AUDIT_VERIFY").broken_at:
        raise SystemExit("the ledger or the audit log is not that of the requests")
    return whole, took


def measure(work, book, options, stack):
    os.chmod(work, 0o711)
    signer = rig.Signer(work / "signer")
    stack.callback(signer.kill)
    each = 4 if options.quick else 60
    whole, took = queue(signer, each)
    book.add("requests queued by 50 agents", AGENTS * each / whole, "/s", 500, least=True, **summary(took))
    program = paddock.ROOT / "build" / "release" / "test" / "unit" / "policy" / "bench_policy"
    text = subprocess.run([program, "10000"], capture_output=True, text=True, check=True).stdout
    book.add("decision with 10000 ledger entries, p50", float(text.split("p50 ")[1].split()[0]) / 1000, "ms", 1)
    book.add("signer resident", paddock.rss_kb(signer.program.pid) / 1024, "MiB")
