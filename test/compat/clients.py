"""The clients of E2B that package-lock.json names, installed once into build/compat."""

import os
from pathlib import Path

import npm


def install():
    return npm.install(Path(__file__).resolve().parent, "compat")


def environment(daemon, modules, **more):
    """What points a client at a daemon."""
    url = f"http://{daemon.host}:{daemon.port}"
    return {**os.environ, "E2B_API_URL": url, "E2B_SANDBOX_URL": url, "E2B_VOLUME_API_URL": url,
            "E2B_API_KEY": daemon.key.replace("pdk_", "e2b_", 1),
            "COMPAT_MODULES": str(modules), **more}
