"""The TypeScript SDK: what it adds to a request over node:http by hand."""

import json
import os
import subprocess

from common import HERE, Ours, paddock


def measure(work, book, options, stack):
    subprocess.run([paddock.ROOT / "sdk/typescript/build"], check=True, capture_output=True)
    ours, rounds = Ours(work), 200 if options.quick else 2000
    stack.callback(ours.daemon.finish)
    daemon = ours.daemon.start()
    package = paddock.ROOT / "build/sdk-typescript/package/dist/index.js"
    done = subprocess.run(["node", HERE / "sdk_typescript.mjs", package, str(rounds)], capture_output=True, text=True, check=True,
                          env={**os.environ, "PADDOCK_URL": daemon.url, "PADDOCK_API_KEY": daemon.key})
    for call, half in json.loads(done.stdout).items():
        # Starting a process varies by more than the target on a busy machine: of exec, the figure is for information.
        target = None if call == "exec" else 0.2
        book.add(f"TypeScript SDK: {call}, above node:http by hand", half["sdk"] - half["raw"], "ms", target, p50=half)
        book.add(f"TypeScript SDK: {call}, fetch by hand above node:http", half["fetch"] - half["raw"], "ms")
    daemon.stop()
