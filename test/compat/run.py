"""Runs the scenarios of python/ with one version of a package of E2B's, sync or async, against the daemon that the
environment names.

    run.py sync|async VERSION [PACKAGE]         one JSON object a line: {scenario, ok, ms, error}
    run.py --list sync|async VERSION [PACKAGE]  the scenarios' names, without the package being there

PACKAGE is e2b or e2b_code_interpreter.

A scenario is written once. `w` awaits what the asynchronous classes return and takes what the others return as it is;
`world.begin` runs a call beside the scenario, as a task or in a thread.
"""

import asyncio
import importlib
import inspect
import json
import sys
import time
import traceback
from pathlib import Path

HERE = Path(__file__).resolve().parent
FILES = {"e2b": ("control", "commands", "files", "templates", "others"), "e2b_code_interpreter": ("interpreter",)}
LATEST_S = 40


def known(version, package="e2b"):
    sys.path.insert(0, str(HERE / "python"))
    number = [int(n) for n in version.split(".")]
    every = [each for name in FILES[package] for each in importlib.import_module(name).SCENARIOS]
    return [each for each in every if [int(n) for n in each.since.split(".")] <= number]


async def w(value):
    return await value if inspect.isawaitable(value) else value


class World:
    def __init__(self, mode, version, package="e2b"):
        e2b = importlib.import_module(package)
        self.sdk, self.mode, self.version = e2b, mode, version
        self.asynchronous = mode == "async"
        prefix = "Async" if self.asynchronous else ""
        for name in ("Sandbox", "Template", "Volume", "Secret"):
            setattr(self, name, getattr(e2b, prefix + name, None))
        self.made = []

    async def box(self, template=None, **options):
        one = await w(self.Sandbox.create(template, **options) if template else self.Sandbox.create(**options))
        self.made.append(one)
        return one

    def begin(self, call, *arguments, **options):
        """A future for what may take long."""
        async def run():
            if self.asynchronous:
                return await w(call(*arguments, **options))
            return await asyncio.to_thread(call, *arguments, **options)
        return asyncio.ensure_future(run())

    async def until(self, what, ask, latest_s=15):
        end = time.monotonic() + latest_s
        while True:
            value = await w(ask())
            if value:
                return value
            assert time.monotonic() < end, f"{what}: not within {latest_s} s"
            await asyncio.sleep(0.025)

    async def rejects(self, names, call, *arguments, **options):
        """The error of a call that must fail with one of these classes, by their names."""
        try:
            value = await self.begin(call, *arguments, **options)
        except Exception as error:  # noqa: BLE001 - it is what we look at
            classes = {each.__name__ for each in type(error).__mro__}
            assert classes & set(names.split()), f"{type(error).__name__}: {error}"
            return error
        raise AssertionError(f"nothing was raised, instead of {names}: {value!r}")

    async def pages(self, paginator):
        found = []
        while paginator.has_next:
            found.extend(await w(paginator.next_items()))
        return found


async def main(mode, version, package="e2b"):
    world = World(mode, version, package)
    world.main = await world.box(timeout=300, metadata={"run": f"{mode} {version}"}, envs={"OF_BOX": "yes"})
    for each in known(version, package):
        begun, error = time.monotonic(), None
        try:
            await asyncio.wait_for(each.run(world), LATEST_S)
        except BaseException:  # noqa: BLE001 - told by the test
            error = traceback.format_exc()[-3000:]
        print(json.dumps({"scenario": each.name, "ok": error is None, "ms": int(1000 * (time.monotonic() - begun)), "error": error}), flush=True)
    for box in world.made:
        try:
            await w(box.kill())
        except Exception:  # noqa: BLE001, S110 - most of them are gone
            pass


if __name__ == "__main__":
    if sys.argv[1] == "--list":
        print("\n".join(each.name for each in known(*sys.argv[3:])))
    else:
        asyncio.run(main(*sys.argv[1:]))
