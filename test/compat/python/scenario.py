"""What a scenario is: see ../run.py."""

import inspect


class Scenario:
    def __init__(self, name, since, run):
        self.name, self.since, self.run = name, since, run


def book():
    """A list, and the decorator that puts scenarios into it."""
    every = []

    def scenario(name, since="0"):
        def put(run):
            every.append(Scenario(name, since, run))
            return run
        return put
    return every, scenario


async def w(value):
    return await value if inspect.isawaitable(value) else value
