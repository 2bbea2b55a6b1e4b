"""The Python SDK: what it adds to the time of a call over raw HTTP on one connection that is kept, in turns in one process. Raw
HTTP is the standard library's: http.client, and with await, for which it has no client of HTTP, asyncio's streams by hand."""

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
    for name, before in (("Python SDK", ""), ("Python SDK with await", "async ")):
        raw, sdk = times[f"{before}raw"], times[f"{before}sdk"]
        book.add(f"{name}: GET of a sandbox, above raw HTTP", sdk - raw, "ms", 0.3, raw=raw, sdk=sdk)
    daemon.stop()
