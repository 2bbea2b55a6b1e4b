"""The few things that code with and without await needs under names which differ by `Async` alone (see sdk/python/generate)."""

from __future__ import annotations

import inspect
from threading import Lock
from time import sleep
from typing import Any, Awaitable, Callable, Dict, Optional

import anyio
import anyio.to_thread
from anyio import Lock as AsyncLock

async_sleep = anyio.sleep

__all__ = ["AsyncLock", "Lock", "async_caller", "async_sleep", "plain_caller", "sleep"]


def async_caller(call: Callable[[str, Any], Any]) -> Callable[[str, Dict[str, Any]], Awaitable[str]]:
    """A tool for a framework that awaits: one that blocks runs in a thread."""
    if inspect.iscoroutinefunction(call):
        return call

    async def run(name: str, arguments: Dict[str, Any]) -> str:
        return str(await anyio.to_thread.run_sync(call, name, arguments))

    return run


def plain_caller(call: Callable[[str, Any], Any]) -> Optional[Callable[[str, Dict[str, Any]], str]]:
    """A tool for a framework that does not await, if it can be called so."""
    return None if inspect.iscoroutinefunction(call) else call
