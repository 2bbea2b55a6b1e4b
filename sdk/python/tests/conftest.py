"""The SDK against a real daemon. `scenarios.py` is written for the asynchronous client; the tests of the synchronous one are
made of it as that client is made of the other, by sdk/python/generate.

The driver of the daemon (test/it) and the SDK have the same name. The driver is loaded first and called `driver` here; whoever
imports `paddock` afterwards gets the SDK. The packages that the tests need are in build/sdk-python.
"""

import importlib.machinery
import importlib.util
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
SDK, ROOT = HERE.parent, HERE.parents[2]

sys.dont_write_bytecode = True
sys.path[:0] = [str(ROOT / "test" / "it"), str(ROOT / "test" / "compat")]
import fixtures  # noqa: E402
import internet  # noqa: E402,F401
import money_kit  # noqa: E402,F401
import paddock as driver  # noqa: E402
import provider  # noqa: E402,F401
import wheels  # noqa: E402
from fixtures import *  # noqa: E402,F401,F403 - pytest finds fixtures by their names here

sys.modules["driver"] = driver
del sys.modules["paddock"]
sys.path[:2] = [str(SDK / "src"), str(wheels.install("packages", HERE, "sdk-python")), str(HERE)]


def load(name, path):
    """A module by its path, whatever its ending."""
    loader = importlib.machinery.SourceFileLoader(name, str(path))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    loader.exec_module(module)
    return module


sys.modules["generate"] = load("generate", SDK / "generate")
