"""Paddock: isolated Linux sandboxes for AI agents.

    from paddock import Sandbox

    with Sandbox.create() as sandbox:
        print(sandbox.run("uname -a").stdout)

`Paddock` is the client for everything else; `AsyncSandbox` and `AsyncPaddock` are the same with await.
"""

from . import errors, events, models, types
from ._async.client import AsyncPaddock
from ._async.sandbox import AsyncSandbox
from ._sync.client import Paddock
from ._sync.sandbox import Sandbox
from ._version import __version__
from .errors import ApiError, CommandFailed, ConnectionFailed, ConnectionLost, NotFound, PaddockError
from .events import Ended, Exited, Output, Started, StartedCode
from .models import ExecResult, Execution, SandboxInfo

__all__ = [
    "ApiError",
    "AsyncPaddock",
    "AsyncSandbox",
    "CommandFailed",
    "ConnectionFailed",
    "ConnectionLost",
    "Ended",
    "ExecResult",
    "Execution",
    "Exited",
    "NotFound",
    "Output",
    "Paddock",
    "PaddockError",
    "Sandbox",
    "SandboxInfo",
    "Started",
    "StartedCode",
    "__version__",
    "errors",
    "events",
    "models",
    "types",
]
