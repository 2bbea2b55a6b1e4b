"""The Python SDK: what it adds to the time of a call over raw HTTP on one connection
(http.client; asyncio's streams), in turns in one process."""

import json
import os
import subprocess
import sys

from common import HERE, Ours, paddock

sys.path.insert(0, str(HERE.parent / "compat"))
import wheels  # noqa: E402

SDK = paddock.ROOT / "sdk" / "python"


def measure(work, book, options, stack):
    ours = Ours(work)
    stack.callback(ours.daemon.finish)
    daemon = ours.daemon.start()
    path = os.pathsep.join([str(SDK / "src"), str(wheels.install("packages", SDK / "tests", "sdk-python"))])
    done = subprocess.run([sys.executable, HERE / "sdk_python_calls.py", "200" if options.quick else "3000"], capture_output=True, text=True,
                          env={**paddock.clean_environment(), "PYTHONPATH": path, "PADDOCK_URL": daemon.url, "PADDOCK_API_KEY": daemon.key})
    if done.returncode:
        raise SystemExit(done.stderr)
    times = json.loads(done.stdout)
    # With await most of it is httpx's own (anyio's cancel scopes around every read and write), which has no target.
    for name, before, target in (("Python SDK", "", 0.3), ("Python SDK with await", "async ", None)):
        raw, sdk = times[f"{before}raw"], times[f"{before}sdk"]
        book.add(f"{name}: GET of a sandbox, above raw HTTP", sdk - raw, "ms", target, raw=raw, sdk=sdk)
    daemon.stop()
