# Made by sdk/python/generate from api/openapi.yaml. Edit that instead.
"""What the API answers, as classes. Fields that an answer may leave out are None then; unknown ones are ignored."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Dict, List, Literal, Optional, Union

from ._mixins import CodeOutputs, Outputs, Piece, moment

__all__ = [
    "Agent",
    "AgentLimits",
    "AgentLimitsTyped",
    "AgentLimitsWallet",
    "AgentLog",
    "AgentManifest",
    "AgentManifestPermissions",
    "AgentManifestResources",
    "AgentManifestSpendingLimits",
    "AgentUpgrade",
    "AiAccount",
    "AiAccountAllow",
    "AiAccountSpent",
    "AiAllowance",
    "AiBody",
    "AiCall",
    "AiCost",
    "AiLimits",
    "Asset",
    "AuditEntries",
    "AuditEntriesVerified",
    "AuditEntry",
    "Capabilities",
    "CapabilitiesBackend",
    "CapabilitiesDefaults",
    "CapabilitiesMax",
    "Catalogue",
    "Chain",
    "ChangeModeAnswer",
    "ContextInfo",
    "CreateEgressTokenAnswer",
    "CreatePreviewAnswer",
    "CreateWatcherAnswer",
    "Dialect",
    "DialectDisabled",
    "DialectPort",
    "Dialects",
    "DialectsListener",
    "EgressAnswer",
    "EgressInject",
    "EgressPolicy",
    "EgressPolicyLimits",
    "EgressRule",
    "EgressSetsAnswer",
    "EgressVerdict",
    "Event",
    "Events",
    "ExecResult",
    "Execution",
    "ExecutionError",
    "ExecutionResult",
    "FileEvent",
    "FileFound",
    "FileInfo",
    "FileList",
    "FileMatches",
    "FileMatchesMatch",
    "FileNews",
    "FileSum",
    "ForkSandboxAnswer",
    "GetEgressLogAnswer",
    "GetSandboxAiCallAnswer",
    "GetUsageAnswer",
    "Health",
    "HostMount",
    "Image",
    "InstallAgentAnswer",
    "Key",
    "Limits",
    "Link",
    "ListAgentLogsAnswer",
    "ListSandboxAiCallsAnswer",
    "ListTransactionsAnswer",
    "ModelUsage",
    "MoveFileAnswer",
    "OutputPiece",
    "Ports",
    "PortsPort",
    "Posture",
    "PosturePart",
    "ProcessEnd",
    "ProcessExit",
    "ProcessInfo",
    "ProcessOutput",
    "ProcessStarted",
    "Quota",
    "ReplaceInFileAnswer",
    "RotateVaultAnswer",
    "SandboxAi",
    "SandboxAiAllow",
    "SandboxAiProvider",
    "SandboxAiSpent",
    "SandboxInfo",
    "SandboxInfoDisk",
    "SandboxInfoWorkspace",
    "SandboxInfoWorkspaceItem",
    "SandboxPage",
    "Secret",
    "SecretMount",
    "SecretVersion",
    "Secrets",
    "ShellInfo",
    "SignUrlAnswer",
    "SignerStatus",
    "Snapshot",
    "Spending",
    "SpendingAddress",
    "SpendingAmounts",
    "SpendingLimit",
    "SpendingLine",
    "SpendingWindow",
    "Stats",
    "StatsHistory",
    "Tenant",
    "TenantUse",
    "Transaction",
    "TransactionCard",
    "TransactionCardAllowance",
    "TransactionCardApprovers",
    "TransactionCardAttempt",
    "TransactionCardCall",
    "TransactionCardFee",
    "TransactionCardLimit",
    "TransactionCardRecipient",
    "TransactionCardRisk",
    "TransactionCardSimulation",
    "TransactionCardSimulationDelta",
    "TransactionCardSimulationMove",
    "TransactionCardTrace",
    "TransactionEffect",
    "UpgradeAgentAnswer",
    "Wallet",
    "WalletPairing",
    "WalletSession",
    "Webhook",
    "WebhookDelivery",
    "Workspace",
    "WorkspaceDisk",
    "WorkspaceUsedBy",
]


@dataclass
class SandboxInfoWorkspace:
    """The workspace at /workspace; null means its own."""

    name: str
    mode: Literal["rw", "ro"]

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> SandboxInfoWorkspace:
        return cls(
            name=d["name"],
            mode=d["mode"],
        )


@dataclass
class SandboxInfoWorkspaceItem:
    """`SandboxInfoWorkspaceItem` of the API."""

    name: str
    path: str
    mode: Literal["rw", "ro"]

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> SandboxInfoWorkspaceItem:
        return cls(
            name=d["name"],
            path=d["path"],
            mode=d["mode"],
        )


@dataclass
class Limits:
    """`Limits` of the API."""

    #: Cores.
    cpu: float
    #: Memory and swap together.
    memory_mb: int
    #: Processes and threads.
    pids: int
    #: Open files of a process.
    nofile: int
    #: Limit of its own files, enforced by the file system; absent if there is none.
    disk_mb: Optional[int] = None

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> Limits:
        return cls(
            cpu=d["cpu"],
            memory_mb=d["memory_mb"],
            pids=d["pids"],
            nofile=d["nofile"],
            disk_mb=d.get("disk_mb"),
        )


@dataclass
class SandboxInfoDisk:
    """`SandboxInfoDisk` of the API."""

    #: The last measurement. Showing this one sandbox makes a new one; null before the first.
    used_bytes: Optional[int]
    limit_mb: Optional[int]

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> SandboxInfoDisk:
        return cls(
            used_bytes=d["used_bytes"],
            limit_mb=d["limit_mb"],
        )


@dataclass
class SecretMount:
    """Exactly one of `file` and `env`."""

    #: The sandbox's own secret of this name, else the tenant's.
    name: str
    #: A file name below /run/secrets, which is in memory; mode 0400, owned by the user. For sandboxes only.
    file: Optional[str] = None
    #: The name of a variable.
    env: Optional[str] = None
    #: The newest version when absent.
    version: Optional[int] = None

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> SecretMount:
        return cls(
            name=d["name"],
            file=d.get("file"),
            env=d.get("env"),
            version=d.get("version"),
        )


@dataclass
class HostMount:
    """`HostMount` of the API."""

    #: The directory, absolute, without links on the way. Its owner is the user (uid 1000) in the sandbox;
    #: files of others belong to nobody there.
    source: str
    #: Where it is in the sandbox. Missing directories are made.
    path: str
    #: ro when absent. rw is refused for a directory of root.
    mode: Optional[Literal["rw", "ro"]] = None

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> HostMount:
        return cls(
            source=d["source"],
            path=d["path"],
            mode=d.get("mode"),
        )


@dataclass
class SandboxInfo:
    """`SandboxInfo` of the API."""

    id: str
    name: Optional[str]
    #: A stopped sandbox has files but no processes and can be started again.
    status: Literal["creating", "running", "paused", "stopped", "deleting"]
    #: As given in the request.
    image: str
    #: The digest of the image at that time.
    image_digest: str
    #: The kind of its isolation: one of `backends` of `/v1/capabilities`.
    backend: str
    tenant: str
    user: str
    workdir: str
    created_at: datetime
    expires_at: Optional[datetime]
    #: 0 means that it may be idle forever.
    idle_seconds: int
    on_end: Literal["delete", "stop", "pause"]
    auto_resume: bool
    #: The snapshot it was created from, as given in the request.
    snapshot: Optional[str]
    #: The workspace at /workspace; null means its own.
    workspace: Optional[SandboxInfoWorkspace]
    #: All workspaces that it mounts, also the one at /workspace.
    workspaces: List[SandboxInfoWorkspaceItem]
    limits: Limits
    disk: SandboxInfoDisk
    secrets: List[SecretMount]
    readonly_root: bool
    #: Whether its users become root by `sudo` and `su`.
    sudo: bool
    require: List[Literal["landlock.truncate", "landlock.ioctl_dev", "landlock.scopes", "overlay.detached", "cgroup.kill", "cgroup.freeze", "limit.socket_memory", "limit.disk", "egress.capture", "view.proc", "view.uptime", "view.calls"]]
    ports_public: bool
    metadata: Dict[str, str]
    mounts: Optional[List[HostMount]] = None
    #: null: as the files of its image or snapshot say.
    timezone: Optional[str] = None

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> SandboxInfo:
        return cls(
            id=d["id"],
            name=d["name"],
            status=d["status"],
            image=d["image"],
            image_digest=d["image_digest"],
            backend=d["backend"],
            tenant=d["tenant"],
            user=d["user"],
            workdir=d["workdir"],
            created_at=moment(d["created_at"]),
            expires_at=None if d["expires_at"] is None else moment(d["expires_at"]),
            idle_seconds=d["idle_seconds"],
            on_end=d["on_end"],
            auto_resume=d["auto_resume"],
            snapshot=d["snapshot"],
            workspace=None if d["workspace"] is None else SandboxInfoWorkspace._of(d["workspace"]),
            workspaces=[SandboxInfoWorkspaceItem._of(each) for each in d.get("workspaces", [])],
            limits=Limits._of(d["limits"]),
            disk=SandboxInfoDisk._of(d["disk"]),
            secrets=[SecretMount._of(each) for each in d.get("secrets", [])],
            mounts=[HostMount._of(each) for each in d["mounts"]] if d.get("mounts") is not None else None,
            readonly_root=d["readonly_root"],
            timezone=d.get("timezone"),
            sudo=d["sudo"],
            require=d.get("require", []),
            ports_public=d["ports_public"],
            metadata=d["metadata"],
        )


@dataclass
class SandboxPage:
    """`SandboxPage` of the API."""

    sandboxes: List[SandboxInfo]
    #: The cursor of the next page; null on the last.
    next: Optional[str]

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> SandboxPage:
        return cls(
            sandboxes=[SandboxInfo._of(each) for each in d.get("sandboxes", [])],
            next=d["next"],
        )


@dataclass
class Snapshot:
    """`Snapshot` of the API."""

    id: str
    name: Optional[str]
    tenant: str
    #: The image of the original sandbox.
    image: str
    image_digest: str
    #: The backend of the original sandbox. A sandbox made from the snapshot has the same.
    backend: str
    #: Size of the sandbox's own files; shared with the sandbox until one of them changes.
    bytes: int
    #: How long the sandbox was frozen, in microseconds.
    stopped_us: int
    created_at: datetime

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> Snapshot:
        return cls(
            id=d["id"],
            name=d["name"],
            tenant=d["tenant"],
            image=d["image"],
            image_digest=d["image_digest"],
            backend=d["backend"],
            bytes=d["bytes"],
            stopped_us=d["stopped_us"],
            created_at=moment(d["created_at"]),
        )


@dataclass
class ForkSandboxAnswer:
    """`ForkSandboxAnswer` of the API."""

    sandboxes: List[SandboxInfo]
    #: How long the original stood still, in microseconds.
    stopped_us: int

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> ForkSandboxAnswer:
        return cls(
            sandboxes=[SandboxInfo._of(each) for each in d.get("sandboxes", [])],
            stopped_us=d["stopped_us"],
        )


@dataclass
class WorkspaceDisk:
    """`WorkspaceDisk` of the API."""

    used_bytes: int
    limit_mb: Optional[int]

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> WorkspaceDisk:
        return cls(
            used_bytes=d["used_bytes"],
            limit_mb=d["limit_mb"],
        )


@dataclass
class WorkspaceUsedBy:
    """`WorkspaceUsedBy` of the API."""

    id: str
    #: Where it is mounted.
    path: str
    mode: Literal["rw", "ro"]
    status: str

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> WorkspaceUsedBy:
        return cls(
            id=d["id"],
            path=d["path"],
            mode=d["mode"],
            status=d["status"],
        )


@dataclass
class Workspace:
    """`Workspace` of the API."""

    id: str
    name: str
    tenant: str
    disk: WorkspaceDisk
    #: Whether it is a snapshot of another workspace, which never changes.
    readonly: bool
    #: The sandboxes that refer to it.
    used_by: List[WorkspaceUsedBy]
    created_at: datetime

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> Workspace:
        return cls(
            id=d["id"],
            name=d["name"],
            tenant=d["tenant"],
            disk=WorkspaceDisk._of(d["disk"]),
            readonly=d["readonly"],
            used_by=[WorkspaceUsedBy._of(each) for each in d.get("used_by", [])],
            created_at=moment(d["created_at"]),
        )


@dataclass
class FileInfo:
    """`FileInfo` of the API."""

    #: U+FFFD replaces bytes that are not valid UTF-8.
    name: str
    type: Literal["file", "directory", "symlink", "fifo", "socket", "device", "unknown"]
    size: int
    mode: str
    uid: int
    gid: int
    modified_at: Optional[datetime]
    #: The bytes of the name; present only if it is not valid UTF-8.
    name_base64: Optional[str] = None
    #: In lists of more than one level and in results of `findFiles`: the path relative to the start.
    path: Optional[str] = None
    path_base64: Optional[str] = None
    #: Of a symlink.
    target: Optional[str] = None

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> FileInfo:
        return cls(
            name=d["name"],
            name_base64=d.get("name_base64"),
            path=d.get("path"),
            path_base64=d.get("path_base64"),
            type=d["type"],
            size=d["size"],
            mode=d["mode"],
            uid=d["uid"],
            gid=d["gid"],
            modified_at=None if d["modified_at"] is None else moment(d["modified_at"]),
            target=d.get("target"),
        )


@dataclass
class FileList:
    """`FileList` of the API."""

    path: str
    entries: List[FileInfo]
    #: With `limit`: the cursor of the next page; null on the last.
    next: Optional[str] = None

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> FileList:
        return cls(
            path=d["path"],
            entries=[FileInfo._of(each) for each in d.get("entries", [])],
            next=d.get("next"),
        )


@dataclass
class StatsHistory:
    """`StatsHistory` of the API."""

    at: datetime
    cpu_usec: int
    memory_bytes: int
    disk_bytes: int
    pids: int
    oom_kills: int
    net_rx_bytes: int
    net_tx_bytes: int

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> StatsHistory:
        return cls(
            at=moment(d["at"]),
            cpu_usec=d["cpu_usec"],
            memory_bytes=d["memory_bytes"],
            disk_bytes=d["disk_bytes"],
            pids=d["pids"],
            oom_kills=d["oom_kills"],
            net_rx_bytes=d["net_rx_bytes"],
            net_tx_bytes=d["net_tx_bytes"],
        )


@dataclass
class Stats:
    """`Stats` of the API."""

    memory_bytes: int
    memory_limit_bytes: int
    #: Since the sandbox was created.
    cpu_usec: int
    #: Of its own files.
    disk_bytes: int
    #: 0: none.
    disk_limit_bytes: int
    pids: int
    pids_limit: int
    oom_kills: int
    #: Received in its network namespace since it was started. That has only a loopback interface, so what is
    #: sent within the sandbox counts, too, and is received as it is sent.
    net_rx_bytes: int
    net_tx_bytes: int
    #: With `?history=1`; the oldest first.
    history: Optional[List[StatsHistory]] = None

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> Stats:
        return cls(
            memory_bytes=d["memory_bytes"],
            memory_limit_bytes=d["memory_limit_bytes"],
            cpu_usec=d["cpu_usec"],
            disk_bytes=d["disk_bytes"],
            disk_limit_bytes=d["disk_limit_bytes"],
            pids=d["pids"],
            pids_limit=d["pids_limit"],
            oom_kills=d["oom_kills"],
            net_rx_bytes=d["net_rx_bytes"],
            net_tx_bytes=d["net_tx_bytes"],
            history=[StatsHistory._of(each) for each in d["history"]] if d.get("history") is not None else None,
        )


@dataclass
class PosturePart:
    """`PosturePart` of the API."""

    name: str
    ok: bool
    required: bool
    detail: str

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> PosturePart:
        return cls(
            name=d["name"],
            ok=d["ok"],
            required=d["required"],
            detail=d["detail"],
        )


@dataclass
class Posture:
    """`Posture` of the API."""

    #: Whether it is the default.
    backend: str
    #: Whether every required part is available.
    ok: bool
    parts: List[PosturePart]
    #: Of a sandbox: the directories of the machine that it has.
    mounts: Optional[List[HostMount]] = None

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> Posture:
        return cls(
            backend=d["backend"],
            ok=d["ok"],
            parts=[PosturePart._of(each) for each in d.get("parts", [])],
            mounts=[HostMount._of(each) for each in d["mounts"]] if d.get("mounts") is not None else None,
        )


@dataclass
class ExecResult(Outputs):
    """`ExecResult` of the API."""

    #: 128 plus the signal's number if a signal ended it.
    exit_code: int
    #: Name of the signal, such as SIGKILL.
    signal: Optional[str]
    stdout: str
    stderr: str
    #: Encoding of both outputs; base64 if one of them is not text.
    encoding: Literal["utf-8", "base64"]
    #: Whether there was more output than is kept.
    truncated: bool
    timed_out: bool
    #: Whether a process of the sandbox was killed during the run because memory ran out.
    oom_killed: bool
    duration_ms: float
    #: The memory limit; present with `oom_killed`.
    memory_limit_mb: Optional[int] = None
    shell: Optional[str] = None
    #: Of the shell, after the command.
    cwd: Optional[str] = None
    #: Whether the shell ended and was restarted.
    restarted: Optional[bool] = None

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> ExecResult:
        return cls(
            exit_code=d["exit_code"],
            signal=d["signal"],
            stdout=d["stdout"],
            stderr=d["stderr"],
            encoding=d["encoding"],
            truncated=d["truncated"],
            timed_out=d["timed_out"],
            oom_killed=d["oom_killed"],
            memory_limit_mb=d.get("memory_limit_mb"),
            duration_ms=d["duration_ms"],
            shell=d.get("shell"),
            cwd=d.get("cwd"),
            restarted=d.get("restarted"),
        )


@dataclass
class ShellInfo:
    """`ShellInfo` of the API."""

    name: str
    pid: Optional[int]
    #: Whether it runs. If not, the next command starts it.
    running: bool
    user: str
    #: As last reported.
    cwd: str
    busy: bool
    #: Number of waiting commands.
    queued: int
    started_at: Optional[str]

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> ShellInfo:
        return cls(
            name=d["name"],
            pid=d["pid"],
            running=d["running"],
            user=d["user"],
            cwd=d["cwd"],
            busy=d["busy"],
            queued=d["queued"],
            started_at=d["started_at"],
        )


@dataclass
class ProcessExit:
    """`ProcessExit` of the API."""

    exit_code: int
    signal: Optional[str]
    timed_out: bool
    #: Whether a process of the sandbox was killed during the run because memory ran out.
    oom_killed: bool
    duration_ms: float
    #: The memory limit; present with `oom_killed`.
    memory_limit_mb: Optional[int] = None

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> ProcessExit:
        return cls(
            exit_code=d["exit_code"],
            signal=d["signal"],
            timed_out=d["timed_out"],
            oom_killed=d["oom_killed"],
            memory_limit_mb=d.get("memory_limit_mb"),
            duration_ms=d["duration_ms"],
        )


@dataclass
class ProcessInfo:
    """`ProcessInfo` of the API."""

    #: In the sandbox.
    pid: int
    #: Of a shell it is `shell:NAME`.
    tag: Optional[str]
    argv: List[str]
    #: In which it was started.
    cwd: str
    user: str
    pty: bool
    running: bool
    started_at: Optional[str]
    exit: Optional[ProcessExit]
    #: Written so far.
    stdout_bytes: int
    stderr_bytes: int

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> ProcessInfo:
        return cls(
            pid=d["pid"],
            tag=d["tag"],
            argv=d.get("argv", []),
            cwd=d["cwd"],
            user=d["user"],
            pty=d["pty"],
            running=d["running"],
            started_at=d["started_at"],
            exit=None if d["exit"] is None else ProcessExit._of(d["exit"]),
            stdout_bytes=d["stdout_bytes"],
            stderr_bytes=d["stderr_bytes"],
        )


@dataclass
class ProcessStarted:
    """`ProcessStarted` of the API."""

    pid: int
    tag: Optional[str]
    pty: bool
    running: bool

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> ProcessStarted:
        return cls(
            pid=d["pid"],
            tag=d["tag"],
            pty=d["pty"],
            running=d["running"],
        )


@dataclass
class OutputPiece(Piece):
    """`OutputPiece` of the API."""

    offset: int
    data: str
    encoding: Literal["utf-8", "base64"]

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> OutputPiece:
        return cls(
            offset=d["offset"],
            data=d["data"],
            encoding=d["encoding"],
        )


@dataclass
class ProcessOutput:
    """`ProcessOutput` of the API."""

    pid: int
    tag: Optional[str]
    argv: List[str]
    cwd: str
    user: str
    pty: bool
    running: bool
    started_at: Optional[str]
    exit: Optional[ProcessExit]
    stdout_bytes: int
    stderr_bytes: int
    stdout: OutputPiece
    stderr: OutputPiece

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> ProcessOutput:
        return cls(
            pid=d["pid"],
            tag=d["tag"],
            argv=d.get("argv", []),
            cwd=d["cwd"],
            user=d["user"],
            pty=d["pty"],
            running=d["running"],
            started_at=d["started_at"],
            exit=None if d["exit"] is None else ProcessExit._of(d["exit"]),
            stdout_bytes=d["stdout_bytes"],
            stderr_bytes=d["stderr_bytes"],
            stdout=OutputPiece._of(d["stdout"]),
            stderr=OutputPiece._of(d["stderr"]),
        )


@dataclass
class ProcessEnd:
    """`ProcessEnd` of the API."""

    running: bool
    exit_code: Optional[int] = None
    signal: Optional[str] = None
    timed_out: Optional[bool] = None
    oom_killed: Optional[bool] = None
    memory_limit_mb: Optional[int] = None
    truncated: Optional[bool] = None
    duration_ms: Optional[float] = None

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> ProcessEnd:
        return cls(
            running=d["running"],
            exit_code=d.get("exit_code"),
            signal=d.get("signal"),
            timed_out=d.get("timed_out"),
            oom_killed=d.get("oom_killed"),
            memory_limit_mb=d.get("memory_limit_mb"),
            truncated=d.get("truncated"),
            duration_ms=d.get("duration_ms"),
        )


@dataclass
class ExecutionResult:
    """A value in all the forms that it can be shown in. What is binary is in base64. Forms that are too large
        are left out."""

    #: Whether it is the value of the last expression.
    main: bool
    #: Whether there was more.
    truncated: bool
    text: Optional[str] = None
    html: Optional[str] = None
    markdown: Optional[str] = None
    latex: Optional[str] = None
    svg: Optional[str] = None
    png: Optional[str] = None
    jpeg: Optional[str] = None
    pdf: Optional[str] = None
    javascript: Optional[str] = None
    #: Also of a dict or list of Python.
    json: Optional[Any] = None
    #: A DataFrame or Series of pandas, or a data frame of R: the values of each column.
    data: Optional[Dict[str, List[Any]]] = None
    #: A figure of matplotlib as what it shows: `type` (line, scatter, bar, pie, box_and_whisker, superchart
    #: or unknown), `title`, `elements` and, by its type, labels, units, ticks and scales of the axes.
    chart: Optional[Dict[str, Any]] = None
    #: Other MIME types.
    extra: Optional[Dict[str, Any]] = None

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> ExecutionResult:
        return cls(
            main=d["main"],
            truncated=d["truncated"],
            text=d.get("text"),
            html=d.get("html"),
            markdown=d.get("markdown"),
            latex=d.get("latex"),
            svg=d.get("svg"),
            png=d.get("png"),
            jpeg=d.get("jpeg"),
            pdf=d.get("pdf"),
            javascript=d.get("javascript"),
            json=d.get("json"),
            data=d.get("data"),
            chart=d.get("chart"),
            extra=d.get("extra"),
        )


@dataclass
class ExecutionError:
    """`ExecutionError` of the API."""

    #: The exception's. ExitStatus in bash; Interrupted and ProcessExit in JavaScript. Timeout, Restarted and
    #: InterpreterDied where the interpreter is gone.
    name: str
    value: str
    traceback: str

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> ExecutionError:
        return cls(
            name=d["name"],
            value=d["value"],
            traceback=d["traceback"],
        )


@dataclass
class Execution(CodeOutputs):
    """`Execution` of the API."""

    #: Of this interpreter; 0 when it is gone.
    execution_count: int
    stdout: str
    stderr: str
    #: Encoding of both outputs; base64 if one of them is not text.
    encoding: Literal["utf-8", "base64"]
    results: List[ExecutionResult]
    error: Optional[ExecutionError]
    duration_ms: float
    timed_out: bool
    #: Whether a process of the sandbox was killed during the run because memory ran out.
    oom_killed: bool
    #: Whether the interpreter is gone; the next code starts with an empty namespace.
    state_lost: bool
    #: Whether there was more output than is kept.
    truncated: bool
    #: The memory limit; present with `oom_killed`.
    memory_limit_mb: Optional[int] = None

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> Execution:
        return cls(
            execution_count=d["execution_count"],
            stdout=d["stdout"],
            stderr=d["stderr"],
            encoding=d["encoding"],
            results=[ExecutionResult._of(each) for each in d.get("results", [])],
            error=None if d["error"] is None else ExecutionError._of(d["error"]),
            duration_ms=d["duration_ms"],
            timed_out=d["timed_out"],
            oom_killed=d["oom_killed"],
            memory_limit_mb=d.get("memory_limit_mb"),
            state_lost=d["state_lost"],
            truncated=d["truncated"],
        )


@dataclass
class ContextInfo:
    """`ContextInfo` of the API."""

    id: str
    language: Literal["python", "javascript", "typescript", "r", "java", "bash"]
    #: That it was started in.
    cwd: str
    user: str
    #: null if it does not run; the next code starts it.
    pid: Optional[int]
    busy: bool
    #: Number of waiting executions.
    queued: int
    created_at: datetime

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> ContextInfo:
        return cls(
            id=d["id"],
            language=d["language"],
            cwd=d["cwd"],
            user=d["user"],
            pid=d["pid"],
            busy=d["busy"],
            queued=d["queued"],
            created_at=moment(d["created_at"]),
        )


@dataclass
class PortsPort:
    """`PortsPort` of the API."""

    port: int
    address: str
    #: null if PID 1 cannot see which process it is.
    pid: Optional[int]
    process: Optional[str]
    #: The address of this port; private unless the sandbox has `ports_public`.
    url: str

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> PortsPort:
        return cls(
            port=d["port"],
            address=d["address"],
            pid=d["pid"],
            process=d["process"],
            url=d["url"],
        )


@dataclass
class Ports:
    """`Ports` of the API."""

    public: bool
    #: Opens the ports of this sandbox and nothing else, in the header `X-Paddock-Traffic-Token` or
    #: `E2b-Traffic-Access-Token`.
    traffic_token: str
    ports: List[PortsPort]

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> Ports:
        return cls(
            public=d["public"],
            traffic_token=d["traffic_token"],
            ports=[PortsPort._of(each) for each in d.get("ports", [])],
        )


@dataclass
class CreatePreviewAnswer:
    """`CreatePreviewAnswer` of the API."""

    url: str
    expires_at: datetime

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> CreatePreviewAnswer:
        return cls(
            url=d["url"],
            expires_at=moment(d["expires_at"]),
        )


@dataclass
class Link:
    """`Link` of the API."""

    id: str
    #: Its id.
    from_: str
    #: Its id.
    to: str
    port: int
    listen: int
    #: Whether `from` listens. It does not while it is stopped or the port is in use.
    up: bool

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> Link:
        return cls(
            id=d["id"],
            from_=d["from"],
            to=d["to"],
            port=d["port"],
            listen=d["listen"],
            up=d["up"],
        )


@dataclass
class FileSum:
    """`FileSum` of the API."""

    files: int
    directories: int
    bytes: int
    #: Sockets, devices and the like.
    skipped: int

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> FileSum:
        return cls(
            files=d["files"],
            directories=d["directories"],
            bytes=d["bytes"],
            skipped=d["skipped"],
        )


@dataclass
class MoveFileAnswer:
    """`MoveFileAnswer` of the API."""

    copied: bool

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> MoveFileAnswer:
        return cls(
            copied=d["copied"],
        )


@dataclass
class ChangeModeAnswer:
    """`ChangeModeAnswer` of the API."""

    changed: int

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> ChangeModeAnswer:
        return cls(
            changed=d["changed"],
        )


@dataclass
class FileFound:
    """`FileFound` of the API."""

    entries: List[FileInfo]
    #: There is more.
    truncated: bool

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> FileFound:
        return cls(
            entries=[FileInfo._of(each) for each in d.get("entries", [])],
            truncated=d["truncated"],
        )


@dataclass
class FileMatchesMatch:
    """`FileMatchesMatch` of the API."""

    #: Relative to the start.
    path: str
    #: From 1.
    line: int
    #: From 1, in bytes.
    column: int
    #: The line, truncated if it is long.
    text: str
    path_base64: Optional[str] = None

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> FileMatchesMatch:
        return cls(
            path=d["path"],
            path_base64=d.get("path_base64"),
            line=d["line"],
            column=d["column"],
            text=d["text"],
        )


@dataclass
class FileMatches:
    """`FileMatches` of the API."""

    matches: List[FileMatchesMatch]
    truncated: bool
    #: Number of files searched.
    files: int
    skipped: int

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> FileMatches:
        return cls(
            matches=[FileMatchesMatch._of(each) for each in d.get("matches", [])],
            truncated=d["truncated"],
            files=d["files"],
            skipped=d["skipped"],
        )


@dataclass
class ReplaceInFileAnswer:
    """`ReplaceInFileAnswer` of the API."""

    replaced: int
    file: FileInfo

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> ReplaceInFileAnswer:
        return cls(
            replaced=d["replaced"],
            file=FileInfo._of(d["file"]),
        )


@dataclass
class SignUrlAnswer:
    """`SignUrlAnswer` of the API."""

    url: str
    expires_at: datetime

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> SignUrlAnswer:
        return cls(
            url=d["url"],
            expires_at=moment(d["expires_at"]),
        )


@dataclass
class CreateWatcherAnswer:
    """`CreateWatcherAnswer` of the API."""

    id: str

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> CreateWatcherAnswer:
        return cls(
            id=d["id"],
        )


@dataclass
class FileEvent:
    """`FileEvent` of the API."""

    type: Literal["create", "write", "remove", "rename", "chmod", "overflow"]
    #: Relative to the watched path.
    path: str
    directory: bool
    path_base64: Optional[str] = None
    #: Of `rename`.
    old_path: Optional[str] = None
    old_path_base64: Optional[str] = None

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> FileEvent:
        return cls(
            type=d["type"],
            path=d["path"],
            path_base64=d.get("path_base64"),
            old_path=d.get("old_path"),
            old_path_base64=d.get("old_path_base64"),
            directory=d["directory"],
        )


@dataclass
class FileNews:
    """`FileNews` of the API."""

    events: List[FileEvent]
    #: Whether more events occurred than are kept.
    overflow: bool
    #: Whether no more events will follow, because the watched path is gone or the sandbox has stopped.
    ended: bool

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> FileNews:
        return cls(
            events=[FileEvent._of(each) for each in d.get("events", [])],
            overflow=d["overflow"],
            ended=d["ended"],
        )


@dataclass
class Image:
    """`Image` of the API."""

    #: The first of its names.
    name: Optional[str]
    names: List[str]
    digest: str
    created_at: Optional[datetime]
    #: The view of the server's own /usr.
    machine: bool
    #: In the answer to an import: the number of device nodes, fifos and sockets that were left out.
    skipped: Optional[int] = None
    #: For an image from `docker save` or an OCI tool: the default user of its sandboxes.
    user: Optional[str] = None
    #: The default directory of its sandboxes.
    workdir: Optional[str] = None
    #: Default variables of its sandboxes, which a sandbox can override.
    env: Optional[Dict[str, str]] = None
    #: What `paddock run` runs if it is given no command, followed by `cmd`; sandboxes start without it.
    entrypoint: Optional[List[str]] = None
    #: For information only.
    cmd: Optional[List[str]] = None

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> Image:
        return cls(
            name=d["name"],
            names=d.get("names", []),
            digest=d["digest"],
            created_at=None if d["created_at"] is None else moment(d["created_at"]),
            machine=d["machine"],
            skipped=d.get("skipped"),
            user=d.get("user"),
            workdir=d.get("workdir"),
            env=d.get("env"),
            entrypoint=d.get("entrypoint"),
            cmd=d.get("cmd"),
        )


@dataclass
class Key:
    """`Key` of the API."""

    id: str
    name: Optional[str]
    tenant: str
    role: Literal["admin", "user"]
    created_at: datetime
    #: Only in the answer to its creation.
    key: Optional[str] = None

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> Key:
        return cls(
            id=d["id"],
            key=d.get("key"),
            name=d["name"],
            tenant=d["tenant"],
            role=d["role"],
            created_at=moment(d["created_at"]),
        )


@dataclass
class Event:
    """`Event` of the API."""

    #: Increases and is never reused: a number among the events of the tenant, or, for an admin, of all.
    id: int
    type: Literal["created", "started", "exited", "paused", "resumed", "stopped", "oom", "expired", "deleted", "forked", "snapshot", "ai.budget.warning", "ai.budget.exceeded", "transaction.pending", "transaction.decided", "transaction.changed"]
    at: datetime
    #: Its id; of `transaction.*` the sandbox in which the agent runs, or empty.
    sandbox: str
    tenant: str
    #: The sandbox's name (where it has one) and image; of `exited` exit_code, signal and oom; of
    #: `ai.budget.*` scope (sandbox or tenant), window, limit_usd, spent_usd and reserved_usd; of
    #: `transaction.*` id, agent, agent_name, chain, state and summary.
    data: Dict[str, Any]

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> Event:
        return cls(
            id=d["id"],
            type=d["type"],
            at=moment(d["at"]),
            sandbox=d["sandbox"],
            tenant=d["tenant"],
            data=d["data"],
        )


@dataclass
class Events:
    """`Events` of the API."""

    events: List[Event]
    #: For `after` of the next page.
    next: int
    #: The oldest event that is kept.
    first: int

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> Events:
        return cls(
            events=[Event._of(each) for each in d.get("events", [])],
            next=d["next"],
            first=d["first"],
        )


@dataclass
class AgentUpgrade:
    """A new version that is not there yet, or could not be built."""

    version: str
    status: Literal["waiting", "building", "failed"]
    #: Why the build failed.
    reason: Optional[str]

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> AgentUpgrade:
        return cls(
            version=d["version"],
            status=d["status"],
            reason=d["reason"],
        )


@dataclass
class AgentManifestPermissions:
    """`AgentManifestPermissions` of the API."""

    #: CAIP-2 ids such as eip155:1.
    chains: Optional[List[str]] = None
    #: URLs of nodes; agents.rpcs of the configuration must list them.
    rpcs: Optional[Dict[str, str]] = None
    apis: Optional[List[Literal["openai", "anthropic"]]] = None
    #: The contracts that it may call; none means any.
    contracts: Optional[List[str]] = None
    #: Hosts that it may connect to.
    hosts: Optional[List[str]] = None

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> AgentManifestPermissions:
        return cls(
            chains=d.get("chains"),
            rpcs=d.get("rpcs"),
            apis=d.get("apis"),
            contracts=d.get("contracts"),
            hosts=d.get("hosts"),
        )


@dataclass
class AgentManifestResources:
    """`AgentManifestResources` of the API."""

    memory: Optional[str] = None
    cpu: Optional[str] = None

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> AgentManifestResources:
        return cls(
            memory=d.get("memory"),
            cpu=d.get("cpu"),
        )


@dataclass
class AgentManifestSpendingLimits:
    """`AgentManifestSpendingLimits` of the API."""

    per_transaction: Optional[str] = None
    daily: Optional[str] = None
    weekly: Optional[str] = None
    monthly: Optional[str] = None

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> AgentManifestSpendingLimits:
        return cls(
            per_transaction=d.get("per_transaction"),
            daily=d.get("daily"),
            weekly=d.get("weekly"),
            monthly=d.get("monthly"),
        )


@dataclass
class AgentManifest:
    """The content of assegai.json."""

    name: str
    version: str
    runtime: Literal["node", "python"]
    entrypoint: str
    description: Optional[str] = None
    author: Optional[str] = None
    permissions: Optional[AgentManifestPermissions] = None
    resources: Optional[AgentManifestResources] = None
    spending_limits: Optional[AgentManifestSpendingLimits] = None

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> AgentManifest:
        return cls(
            name=d["name"],
            version=d["version"],
            description=d.get("description"),
            author=d.get("author"),
            runtime=d["runtime"],
            entrypoint=d["entrypoint"],
            permissions=AgentManifestPermissions._of(d["permissions"]) if d.get("permissions") is not None else None,
            resources=AgentManifestResources._of(d["resources"]) if d.get("resources") is not None else None,
            spending_limits=AgentManifestSpendingLimits._of(d["spending_limits"]) if d.get("spending_limits") is not None else None,
        )


@dataclass
class Agent:
    """`Agent` of the API."""

    id: str
    name: str
    tenant: str
    status: Literal["waiting", "building", "failed", "stopped", "starting", "running", "stopping", "crashed"]
    #: Why the build failed, or how the program ended last.
    reason: Optional[str]
    #: The id of the sandbox in which it runs.
    sandbox: Optional[str]
    #: The id of the key that consented to the manifest.
    consented_by: str
    #: In a row.
    crashes: int
    created_at: datetime
    started_at: Optional[datetime]
    next_start_at: Optional[datetime]
    upgrade: Optional[AgentUpgrade]
    manifest: AgentManifest

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> Agent:
        return cls(
            id=d["id"],
            name=d["name"],
            tenant=d["tenant"],
            status=d["status"],
            reason=d["reason"],
            sandbox=d["sandbox"],
            consented_by=d["consented_by"],
            crashes=d["crashes"],
            created_at=moment(d["created_at"]),
            started_at=None if d["started_at"] is None else moment(d["started_at"]),
            next_start_at=None if d["next_start_at"] is None else moment(d["next_start_at"]),
            upgrade=None if d["upgrade"] is None else AgentUpgrade._of(d["upgrade"]),
            manifest=AgentManifest._of(d["manifest"]),
        )


@dataclass
class InstallAgentAnswer:
    """`InstallAgentAnswer` of the API."""

    manifest: AgentManifest

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> InstallAgentAnswer:
        return cls(
            manifest=AgentManifest._of(d["manifest"]),
        )


@dataclass
class UpgradeAgentAnswer:
    """`UpgradeAgentAnswer` of the API."""

    manifest: AgentManifest
    #: What it asks for beyond the present manifest, such as `permissions.chains: eip155:1`.
    asks_more: List[str]

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> UpgradeAgentAnswer:
        return cls(
            manifest=AgentManifest._of(d["manifest"]),
            asks_more=d.get("asks_more", []),
        )


@dataclass
class Catalogue:
    """`Catalogue` of the API."""

    name: str
    #: The public key (Ed25519) of its index, in hexadecimal digits.
    key: str
    #: A directory of a web server; or
    url: Optional[str] = None
    #: A directory where the command line runs.
    path: Optional[str] = None

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> Catalogue:
        return cls(
            name=d["name"],
            url=d.get("url"),
            path=d.get("path"),
            key=d["key"],
        )


@dataclass
class AgentLog:
    """`AgentLog` of the API."""

    id: int
    at: datetime
    level: Literal["debug", "info", "success", "warn", "error"]
    source: Literal["agent", "stdout", "stderr", "build", "daemon"]
    message: str
    #: Any JSON value; null if there is none.
    data: Any

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> AgentLog:
        return cls(
            id=d["id"],
            at=moment(d["at"]),
            level=d["level"],
            source=d["source"],
            message=d["message"],
            data=d["data"],
        )


@dataclass
class ListAgentLogsAnswer:
    """`ListAgentLogsAnswer` of the API."""

    entries: List[AgentLog]
    #: For `after` of the next request.
    next: int

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> ListAgentLogsAnswer:
        return cls(
            entries=[AgentLog._of(each) for each in d.get("entries", [])],
            next=d["next"],
        )


@dataclass
class AgentLimitsWallet:
    """`AgentLimitsWallet` of the API."""

    chain: str
    wallet: str

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> AgentLimitsWallet:
        return cls(
            chain=d["chain"],
            wallet=d["wallet"],
        )


@dataclass
class SpendingLimit:
    """Of one asset on one chain. Nothing of an asset without an entry may be spent. Amounts are in base units; a
        window without an amount is not limited."""

    chain: str
    #: An address of a token, or `native`.
    asset: str
    per_transaction: str
    day: Optional[str] = None
    week: Optional[str] = None
    month: Optional[str] = None
    lifetime: Optional[str] = None
    #: Of a token, for people.
    decimals: Optional[int] = None
    #: For people.
    symbol: Optional[str] = None
    #: Whether an unlimited approval may be given; it counts as per_transaction.
    unlimited_approvals: Optional[bool] = None

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> SpendingLimit:
        return cls(
            chain=d["chain"],
            asset=d["asset"],
            per_transaction=d["per_transaction"],
            day=d.get("day"),
            week=d.get("week"),
            month=d.get("month"),
            lifetime=d.get("lifetime"),
            decimals=d.get("decimals"),
            symbol=d.get("symbol"),
            unlimited_approvals=d.get("unlimited_approvals"),
        )


@dataclass
class SpendingAddress:
    """`SpendingAddress` of the API."""

    address: str
    #: null means every chain.
    chain: Optional[str] = None
    deny: Optional[bool] = None
    #: Calls that cannot be decoded are allowed to it.
    call: Optional[bool] = None
    #: What the owner calls it; only the owner gives names.
    note: Optional[str] = None

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> SpendingAddress:
        return cls(
            chain=d.get("chain"),
            address=d["address"],
            deny=d.get("deny"),
            call=d.get("call"),
            note=d.get("note"),
        )


@dataclass
class AgentLimitsTyped:
    """`AgentLimitsTyped` of the API."""

    chain: str
    contract: str
    primary_type: str

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> AgentLimitsTyped:
        return cls(
            chain=d["chain"],
            contract=d["contract"],
            primary_type=d["primary_type"],
        )


@dataclass
class SpendingWindow:
    """`SpendingWindow` of the API."""

    days: List[Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]]
    #: UTC.
    start: str
    #: Not included; 24:00 is the end of the day.
    end: str

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> SpendingWindow:
        return cls(
            days=d.get("days", []),
            start=d["start"],
            end=d["end"],
        )


@dataclass
class AgentLimits:
    """`AgentLimits` of the API."""

    #: Its id.
    agent: str
    #: The wallet for each chain. No other chain is allowed.
    wallets: List[AgentLimitsWallet]
    limits: List[SpendingLimit]
    addresses: List[SpendingAddress]
    #: Typed data without a decoder that may be signed.
    typed: List[AgentLimitsTyped]
    #: Times at which it may spend; none means always.
    windows: List[SpendingWindow]
    #: Recipients and contracts must be in `addresses`.
    only_listed: bool
    allow_creation: bool
    #: Operators, ownership and upgrades, always with a person.
    allow_dangerous: bool
    allow_messages: bool
    require_simulation: bool
    paused: bool
    #: How many different keys must approve.
    approvers: int
    #: Native, to listed recipients: no person is asked up to this much.
    auto_below: Optional[str]
    max_pending: int
    expiry_seconds: int
    #: A first transfer to a new recipient is not signed before this long.
    cool_down_seconds: int
    #: Paused after this many refusals within an hour; 0: never.
    suspend_after: int

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> AgentLimits:
        return cls(
            agent=d["agent"],
            wallets=[AgentLimitsWallet._of(each) for each in d.get("wallets", [])],
            limits=[SpendingLimit._of(each) for each in d.get("limits", [])],
            addresses=[SpendingAddress._of(each) for each in d.get("addresses", [])],
            typed=[AgentLimitsTyped._of(each) for each in d.get("typed", [])],
            windows=[SpendingWindow._of(each) for each in d.get("windows", [])],
            only_listed=d["only_listed"],
            allow_creation=d["allow_creation"],
            allow_dangerous=d["allow_dangerous"],
            allow_messages=d["allow_messages"],
            require_simulation=d["require_simulation"],
            paused=d["paused"],
            approvers=d["approvers"],
            auto_below=d["auto_below"],
            max_pending=d["max_pending"],
            expiry_seconds=d["expiry_seconds"],
            cool_down_seconds=d["cool_down_seconds"],
            suspend_after=d["suspend_after"],
        )


@dataclass
class AiCost:
    """In US dollars, by days of UTC. Sandboxes that the agent had before count too."""

    #: Today.
    day: float
    #: Today and the 6 days before.
    week: float
    #: Today and the 29 days before.
    month: float
    #: All that is kept, which is 400 days.
    lifetime: float

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> AiCost:
        return cls(
            day=d["day"],
            week=d["week"],
            month=d["month"],
            lifetime=d["lifetime"],
        )


@dataclass
class Asset:
    """`Asset` of the API."""

    #: The token's address, or 0xEeeeeEeeeEeEeeEeEeEeeEEEeeeeEeeeeeeeEEeE for the chain's own asset.
    address: str
    #: As the owner called it when the limit was set, never what the token says of itself. null: show the
    #: address.
    symbol: Optional[str]
    #: As pinned by the owner; null: show base units.
    decimals: Optional[int]

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> Asset:
        return cls(
            address=d["address"],
            symbol=d["symbol"],
            decimals=d["decimals"],
        )


@dataclass
class SpendingAmounts:
    """In base units; sliding windows of 24 hours, 7 days and 30 days."""

    day: Optional[str]
    week: Optional[str]
    month: Optional[str]
    lifetime: Optional[str]

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> SpendingAmounts:
        return cls(
            day=d["day"],
            week=d["week"],
            month=d["month"],
            lifetime=d["lifetime"],
        )


@dataclass
class SpendingLine:
    """`SpendingLine` of the API."""

    chain: str
    #: Whether it is what fees have cost.
    fee: bool
    asset: Asset
    per_transaction: Optional[str]
    spent: SpendingAmounts
    limit: SpendingAmounts
    #: The part that waits for a decision or a signature.
    reserved: str

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> SpendingLine:
        return cls(
            chain=d["chain"],
            fee=d["fee"],
            asset=Asset._of(d["asset"]),
            per_transaction=d["per_transaction"],
            spent=SpendingAmounts._of(d["spent"]),
            limit=SpendingAmounts._of(d["limit"]),
            reserved=d["reserved"],
        )


@dataclass
class Spending:
    """`Spending` of the API."""

    #: agent:ID or wallet:ID.
    scope: str
    #: What the agent's models have cost; null for a wallet.
    ai_cost_usd: Optional[AiCost]
    #: Each asset that has a limit or was spent.
    lines: List[SpendingLine]

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> Spending:
        return cls(
            scope=d["scope"],
            ai_cost_usd=None if d["ai_cost_usd"] is None else AiCost._of(d["ai_cost_usd"]),
            lines=[SpendingLine._of(each) for each in d.get("lines", [])],
        )


@dataclass
class TransactionEffect:
    """What is counted against the limits, and whom it reaches."""

    asset: Asset
    #: In base units.
    amount: str
    #: Recipient or spender.
    to: Optional[str]
    #: The spender may take the amount.
    approval: bool
    #: An approval without an end.
    unlimited: bool
    #: `to` is called within a wrapper, or is given control; the amount may be 0.
    target: bool
    #: The wallet never sent anything to `to`.
    first_time: bool
    #: The owner's name for `to`.
    note: Optional[str]

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> TransactionEffect:
        return cls(
            asset=Asset._of(d["asset"]),
            amount=d["amount"],
            to=d["to"],
            approval=d["approval"],
            unlimited=d["unlimited"],
            target=d["target"],
            first_time=d["first_time"],
            note=d["note"],
        )


@dataclass
class TransactionCardRecipient:
    """Who gets it; for calls of contracts the contract."""

    address: str
    #: Whether the wallet never sent anything there; null if that is not known.
    first_time: Optional[bool]
    #: Whether the address has code; null if that is not known.
    contract: Optional[bool]
    #: From the list of addresses in the agent's limits.
    note: Optional[str]

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> TransactionCardRecipient:
        return cls(
            address=d["address"],
            first_time=d["first_time"],
            contract=d["contract"],
            note=d["note"],
        )


@dataclass
class TransactionCardAllowance:
    """Of approvals."""

    asset: Asset
    spender: str
    #: What the spender may take now; null if that is not known.
    before: Optional[str]
    #: What the spender may take from then on.
    after: str
    unlimited: bool

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> TransactionCardAllowance:
        return cls(
            asset=Asset._of(d["asset"]),
            spender=d["spender"],
            before=d["before"],
            after=d["after"],
            unlimited=d["unlimited"],
        )


@dataclass
class TransactionCardLimit:
    """`TransactionCardLimit` of the API."""

    #: agent:ID or wallet:ID.
    scope: str
    #: Whether it is a limit for fees.
    fee: bool
    asset: Asset
    window: Literal["transaction", "day", "week", "month", "lifetime"]
    limit: str
    before: str
    after: str

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> TransactionCardLimit:
        return cls(
            scope=d["scope"],
            fee=d["fee"],
            asset=Asset._of(d["asset"]),
            window=d["window"],
            limit=d["limit"],
            before=d["before"],
            after=d["after"],
        )


@dataclass
class TransactionCardFee:
    """Of transactions; null where it could not be estimated."""

    asset: Asset
    #: The limit.
    gas: int
    #: The limit times the highest price, in base units.
    worst_case: str

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> TransactionCardFee:
        return cls(
            asset=Asset._of(d["asset"]),
            gas=d["gas"],
            worst_case=d["worst_case"],
        )


@dataclass
class TransactionCardRisk:
    """`TransactionCardRisk` of the API."""

    level: Literal["note", "warning", "danger"]
    #: Such as recipient.new; docs/design/signer.md has the list.
    name: str
    text: str

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> TransactionCardRisk:
        return cls(
            level=d["level"],
            name=d["name"],
            text=d["text"],
        )


@dataclass
class TransactionCardSimulationMove:
    """`TransactionCardSimulationMove` of the API."""

    asset: Asset
    from_: str
    to: str
    amount: str
    #: `from` lets `to` take the amount.
    approval: bool

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> TransactionCardSimulationMove:
        return cls(
            asset=Asset._of(d["asset"]),
            from_=d["from"],
            to=d["to"],
            amount=d["amount"],
            approval=d["approval"],
        )


@dataclass
class TransactionCardSimulationDelta:
    """`TransactionCardSimulationDelta` of the API."""

    asset: Asset
    amount: str

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> TransactionCardSimulationDelta:
        return cls(
            asset=Asset._of(d["asset"]),
            amount=d["amount"],
        )


@dataclass
class TransactionCardSimulation:
    """`TransactionCardSimulation` of the API."""

    method: Literal["none", "estimate", "trace", "simulate_v1"]
    block: Optional[int]
    moves: List[TransactionCardSimulationMove]
    #: What the wallet gains and loses, without fees.
    deltas: List[TransactionCardSimulationDelta]

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> TransactionCardSimulation:
        return cls(
            method=d["method"],
            block=d["block"],
            moves=[TransactionCardSimulationMove._of(each) for each in d.get("moves", [])],
            deltas=[TransactionCardSimulationDelta._of(each) for each in d.get("deltas", [])],
        )


@dataclass
class TransactionCardTrace:
    """`TransactionCardTrace` of the API."""

    step: int
    name: str
    passed: bool
    text: str

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> TransactionCardTrace:
        return cls(
            step=d["step"],
            name=d["name"],
            passed=d["passed"],
            text=d["text"],
        )


@dataclass
class TransactionCardCall:
    """`TransactionCardCall` of the API."""

    class_: str
    #: The decoded call, a line for each part, indented by two spaces for each level. Selectors are guesses.
    tree: List[str]

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> TransactionCardCall:
        return cls(
            class_=d["class"],
            tree=d.get("tree", []),
        )


@dataclass
class TransactionCardApprovers:
    """`TransactionCardApprovers` of the API."""

    needed: int
    have: int

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> TransactionCardApprovers:
        return cls(
            needed=d["needed"],
            have=d["have"],
        )


@dataclass
class TransactionCardAttempt:
    """`TransactionCardAttempt` of the API."""

    generation: int
    hash: str
    nonce: int
    signed_at: datetime

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> TransactionCardAttempt:
        return cls(
            generation=d["generation"],
            hash=d["hash"],
            nonce=d["nonce"],
            signed_at=moment(d["signed_at"]),
        )


@dataclass
class TransactionCard:
    """Everything that a person needs to decide. In answers for one transaction only."""

    #: Who wants to do what, in one sentence. The words of the agent are not in it.
    sentence: str
    #: The whole card as plain text, for terminals and chats. Words of others are quoted, without control
    #: characters.
    text: str
    #: With a risk of level danger: eight hexadecimal digits of the address, which a person must type to
    #: approve. They are from its middle, or where it differs from an address that it looks like.
    confirm: Optional[str]
    #: Which digits they are, as a sentence for a person.
    confirm_hint: Optional[str]
    #: Who gets it; for calls of contracts the contract.
    recipient: Optional[TransactionCardRecipient]
    #: Of approvals.
    allowance: Optional[TransactionCardAllowance]
    #: What counts before this transaction and with it. Absent limits have no entry.
    limits: List[TransactionCardLimit]
    #: Of transactions; null where it could not be estimated.
    fee: Optional[TransactionCardFee]
    risks: List[TransactionCardRisk]
    simulation: TransactionCardSimulation
    #: Every check of the policy, in the order of evaluation.
    trace: List[TransactionCardTrace]
    call: TransactionCardCall
    #: Call data, the bytes of a message, or the JSON of typed data.
    data: str
    #: Of messages and typed data, once they are signed.
    signature: Optional[str]
    approvers: TransactionCardApprovers
    #: The signed transactions, the newest first.
    attempts: List[TransactionCardAttempt]
    #: The block that has it.
    block: Optional[int]
    block_hash: Optional[str]
    #: null while it is in no block.
    confirmations: Optional[int]
    confirmations_needed: Optional[int]
    #: It was sent long ago and is in no block: `speed-up` and `cancel` help.
    stuck: bool
    #: What hinders it now, such as a node that does not answer.
    note: Optional[str]
    #: How the receipt differs from the simulation.
    deviation: Optional[str]

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> TransactionCard:
        return cls(
            sentence=d["sentence"],
            text=d["text"],
            confirm=d["confirm"],
            confirm_hint=d["confirm_hint"],
            recipient=None if d["recipient"] is None else TransactionCardRecipient._of(d["recipient"]),
            allowance=None if d["allowance"] is None else TransactionCardAllowance._of(d["allowance"]),
            limits=[TransactionCardLimit._of(each) for each in d.get("limits", [])],
            fee=None if d["fee"] is None else TransactionCardFee._of(d["fee"]),
            risks=[TransactionCardRisk._of(each) for each in d.get("risks", [])],
            simulation=TransactionCardSimulation._of(d["simulation"]),
            trace=[TransactionCardTrace._of(each) for each in d.get("trace", [])],
            call=TransactionCardCall._of(d["call"]),
            data=d["data"],
            signature=d["signature"],
            approvers=TransactionCardApprovers._of(d["approvers"]),
            attempts=[TransactionCardAttempt._of(each) for each in d.get("attempts", [])],
            block=d["block"],
            block_hash=d["block_hash"],
            confirmations=d["confirmations"],
            confirmations_needed=d["confirmations_needed"],
            stuck=d["stuck"],
            note=d["note"],
            deviation=d["deviation"],
        )


@dataclass
class Transaction:
    """`Transaction` of the API."""

    id: str
    kind: Literal["transaction", "message", "typed_data"]
    #: Its id.
    agent: str
    #: null once the agent is removed.
    agent_name: Optional[str]
    tenant: Optional[str]
    #: A CAIP-2 id.
    chain: str
    chain_name: Optional[str]
    #: The id of the wallet.
    wallet: Optional[str]
    from_: Optional[str]
    #: null for the creation of a contract and for messages.
    to: Optional[str]
    #: Of the native asset, in base units.
    value: str
    class_: Literal["native", "erc20_transfer", "approval", "nft", "wrapped", "message", "unknown", "creation", "dangerous", "typed"]
    state: Literal["denied", "pending", "rejected", "expired", "cancelled", "approved", "signed", "broadcast", "included", "confirmed", "final", "reverted", "replaced", "dropped", "failed", "awaiting_wallet", "wallet_rejected", "wallet_timeout", "mismatch"]
    #: One sentence, made by the signer.
    summary: str
    #: What is approved.
    digest: str
    #: The agent's own words. Show them quoted and below the facts.
    reason: Optional[str]
    #: Of denied ones: what the agent was told.
    error: Optional[str]
    effects: List[TransactionEffect]
    #: Approved without a person, by the rule `auto_below`.
    automatic: bool
    created_at: datetime
    #: When it stops waiting for a person.
    expires_at: Optional[datetime]
    decided_at: Optional[datetime]
    #: Those who approved, or the one who rejected: ids and names of keys.
    decided_by: Optional[str]
    #: Of the newest change of state.
    changed_at: datetime
    #: Of the newest signed transaction.
    hash: Optional[str]
    nonce: Optional[int]
    #: How often it was signed: more than 1 after a speed-up or a cancellation.
    generation: int
    #: Of a transaction that was sent: a nonce of its account before its own, which neither the chain has nor
    #: Paddock sends. Until that is sent it is not mined.
    waits_for_nonce: Optional[int]
    card: Optional[TransactionCard] = None

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> Transaction:
        return cls(
            id=d["id"],
            kind=d["kind"],
            agent=d["agent"],
            agent_name=d["agent_name"],
            tenant=d["tenant"],
            chain=d["chain"],
            chain_name=d["chain_name"],
            wallet=d["wallet"],
            from_=d["from"],
            to=d["to"],
            value=d["value"],
            class_=d["class"],
            state=d["state"],
            summary=d["summary"],
            digest=d["digest"],
            reason=d["reason"],
            error=d["error"],
            effects=[TransactionEffect._of(each) for each in d.get("effects", [])],
            automatic=d["automatic"],
            created_at=moment(d["created_at"]),
            expires_at=None if d["expires_at"] is None else moment(d["expires_at"]),
            decided_at=None if d["decided_at"] is None else moment(d["decided_at"]),
            decided_by=d["decided_by"],
            changed_at=moment(d["changed_at"]),
            hash=d["hash"],
            nonce=d["nonce"],
            generation=d["generation"],
            waits_for_nonce=d["waits_for_nonce"],
            card=TransactionCard._of(d["card"]) if d.get("card") is not None else None,
        )


@dataclass
class ListTransactionsAnswer:
    """`ListTransactionsAnswer` of the API."""

    transactions: List[Transaction]
    #: For `after` of the next page; null on the last one.
    next: Optional[str]

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> ListTransactionsAnswer:
        return cls(
            transactions=[Transaction._of(each) for each in d.get("transactions", [])],
            next=d["next"],
        )


@dataclass
class Wallet:
    """`Wallet` of the API."""

    id: str
    kind: Literal["test", "generated", "imported", "external"]
    label: str
    address: str
    created_at: datetime

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> Wallet:
        return cls(
            id=d["id"],
            kind=d["kind"],
            label=d["label"],
            address=d["address"],
            created_at=moment(d["created_at"]),
        )


@dataclass
class WalletPairing:
    """`WalletPairing` of the API."""

    #: Of the session that comes of it.
    id: str
    #: wc:…
    uri: str
    #: The QR code of the URI: rows of 0 and 1, without a quiet zone.
    qr: List[str]
    expires_at: datetime

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> WalletPairing:
        return cls(
            id=d["id"],
            uri=d["uri"],
            qr=d.get("qr", []),
            expires_at=moment(d["expires_at"]),
        )


@dataclass
class WalletSession:
    """`WalletSession` of the API."""

    id: str
    #: The wallet's name for itself.
    name: Optional[str]
    url: Optional[str]
    #: CAIP-10 ids such as eip155:1:0x….
    accounts: List[str]
    created_at: datetime
    expires_at: datetime

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> WalletSession:
        return cls(
            id=d["id"],
            name=d["name"],
            url=d["url"],
            accounts=d.get("accounts", []),
            created_at=moment(d["created_at"]),
            expires_at=moment(d["expires_at"]),
        )


@dataclass
class Chain:
    """`Chain` of the API."""

    #: A CAIP-2 id.
    id: str
    name: Optional[str]
    #: What people call the chain's native asset, such as ETH; null: not known.
    symbol: Optional[str]
    #: The https address of a block explorer; a transaction is below it at `/tx/HASH`.
    explorer: Optional[str]
    #: `unknown`: nothing was asked yet. `wrong_chain`: a node answered with another chain id; nothing is
    #: signed.
    status: Literal["unknown", "ok", "down", "wrong_chain"]
    #: Without the URL of the node.
    error: Optional[str]
    #: The newest block that was seen.
    block: Optional[int]
    checked_at: Optional[datetime]
    #: How many are configured.
    nodes: int
    #: How many make a transaction confirmed.
    confirmations: int
    #: Transactions that are followed: of the key's tenant, or for administrators all of them.
    under_way: int

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> Chain:
        return cls(
            id=d["id"],
            name=d["name"],
            symbol=d["symbol"],
            explorer=d["explorer"],
            status=d["status"],
            error=d["error"],
            block=d["block"],
            checked_at=None if d["checked_at"] is None else moment(d["checked_at"]),
            nodes=d["nodes"],
            confirmations=d["confirmations"],
            under_way=d["under_way"],
        )


@dataclass
class SignerStatus:
    """`SignerStatus` of the API."""

    #: Whether there is a signer that answers. If not, the other members are null. All but `paused` are null
    #: for keys that are not an administrator's.
    available: bool
    paused: Optional[bool]
    wallets: Optional[int]
    #: Requests that wait for a decision or a signature.
    pending: Optional[int]
    #: The number of the newest entry of the audit log.
    audit_seq: Optional[int]
    #: Keep it elsewhere to notice later that entries were changed.
    audit_hash: Optional[str]

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> SignerStatus:
        return cls(
            available=d["available"],
            paused=d["paused"],
            wallets=d["wallets"],
            pending=d["pending"],
            audit_seq=d["audit_seq"],
            audit_hash=d["audit_hash"],
        )


@dataclass
class AuditEntry:
    """`AuditEntry` of the API."""

    seq: int
    at: datetime
    actor: str
    action: str
    object: str
    #: JSON, as it was hashed.
    detail: str
    prev: str
    #: SHA-256 of prev, seq, time and the texts, each preceded by its length.
    hash: str

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> AuditEntry:
        return cls(
            seq=d["seq"],
            at=moment(d["at"]),
            actor=d["actor"],
            action=d["action"],
            object=d["object"],
            detail=d["detail"],
            prev=d["prev"],
            hash=d["hash"],
        )


@dataclass
class AuditEntriesVerified:
    """With `verify=true`."""

    entries: int
    #: The first entry that does not fit; null if the chain is whole.
    broken_at: Optional[int]

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> AuditEntriesVerified:
        return cls(
            entries=d["entries"],
            broken_at=d["broken_at"],
        )


@dataclass
class AuditEntries:
    """`AuditEntries` of the API."""

    entries: List[AuditEntry]
    #: For `after` of the next page.
    next: int
    #: With `verify=true`.
    verified: Optional[AuditEntriesVerified] = None

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> AuditEntries:
        return cls(
            entries=[AuditEntry._of(each) for each in d.get("entries", [])],
            next=d["next"],
            verified=AuditEntriesVerified._of(d["verified"]) if d.get("verified") is not None else None,
        )


@dataclass
class WebhookDelivery:
    """`WebhookDelivery` of the API."""

    event: int
    type: Optional[str]
    at: datetime
    #: From 1.
    attempt: int
    #: HTTP status; null if there was no answer.
    status: Optional[int]
    error: Optional[str]
    duration_ms: int
    #: Whether it was delivered or given up.
    final: bool

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> WebhookDelivery:
        return cls(
            event=d["event"],
            type=d["type"],
            at=moment(d["at"]),
            attempt=d["attempt"],
            status=d["status"],
            error=d["error"],
            duration_ms=d["duration_ms"],
            final=d["final"],
        )


@dataclass
class Webhook:
    """`Webhook` of the API."""

    id: str
    url: str
    tenant: str
    events: List[Literal["created", "started", "exited", "paused", "resumed", "stopped", "oom", "expired", "deleted", "forked", "snapshot", "ai.budget.warning", "ai.budget.exceeded", "transaction.pending", "transaction.decided", "transaction.changed"]]
    created_at: datetime
    #: Since the start of the daemon.
    delivered: int
    #: Failed attempts since the start of the daemon.
    failed: int
    #: Events whose delivery failed and will be repeated.
    pending: int
    #: Only in the answer to its creation.
    secret: Optional[str] = None
    #: The last attempts since the start of the daemon, the newest first. In the answer for one webhook only.
    deliveries: Optional[List[WebhookDelivery]] = None

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> Webhook:
        return cls(
            id=d["id"],
            url=d["url"],
            tenant=d["tenant"],
            events=d.get("events", []),
            created_at=moment(d["created_at"]),
            delivered=d["delivered"],
            failed=d["failed"],
            pending=d["pending"],
            secret=d.get("secret"),
            deliveries=[WebhookDelivery._of(each) for each in d["deliveries"]] if d.get("deliveries") is not None else None,
        )


@dataclass
class SecretVersion:
    """`SecretVersion` of the API."""

    version: int
    created_at: datetime

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> SecretVersion:
        return cls(
            version=d["version"],
            created_at=moment(d["created_at"]),
        )


@dataclass
class Secret:
    """`Secret` of the API."""

    name: str
    #: The newest.
    version: int
    updated_at: datetime
    #: The versions that are kept, newest first.
    versions: List[SecretVersion]
    metadata: Dict[str, str]

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> Secret:
        return cls(
            name=d["name"],
            version=d["version"],
            updated_at=moment(d["updated_at"]),
            versions=[SecretVersion._of(each) for each in d.get("versions", [])],
            metadata=d["metadata"],
        )


@dataclass
class Secrets:
    """`Secrets` of the API."""

    secrets: List[Secret]

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> Secrets:
        return cls(
            secrets=[Secret._of(each) for each in d.get("secrets", [])],
        )


@dataclass
class RotateVaultAnswer:
    """`RotateVaultAnswer` of the API."""

    #: The id of the new key.
    key: str
    #: Files that were sealed again.
    resealed: int

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> RotateVaultAnswer:
        return cls(
            key=d["key"],
            resealed=d["resealed"],
        )


@dataclass
class Quota:
    """0 or absent means the default of the configuration (`max.tenant`), or no limit if there is none."""

    #: All sandboxes that exist.
    boxes: Optional[int] = None
    #: Cores; the sum of the limits of running sandboxes.
    cpu: Optional[float] = None
    #: The sum of the limits of running sandboxes.
    memory_mb: Optional[int] = None
    #: The sum of the limits of sandboxes and workspaces, of the sizes of snapshots, and of the build cache,
    #: which gives way when room is needed. A sandbox or workspace that asks for no limit gets
    #: `defaults.disk_mb`, or if that is not set a share: the quota divided by that of sandboxes, or by 8.
    disk_mb: Optional[int] = None
    #: The sum of the limits (`pids`) of running sandboxes.
    processes: Optional[int] = None
    #: Hidden sandboxes at a time, which serve the files of workspaces.
    helpers: Optional[int] = None
    workspaces: Optional[int] = None
    #: Those of templates included.
    snapshots: Optional[int] = None
    templates: Optional[int] = None
    webhooks: Optional[int] = None
    #: Those of sandboxes included.
    secrets: Optional[int] = None
    #: The size of all versions of all secrets on disk.
    secrets_kb: Optional[int] = None
    creates_per_minute: Optional[int] = None

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> Quota:
        return cls(
            boxes=d.get("boxes"),
            cpu=d.get("cpu"),
            memory_mb=d.get("memory_mb"),
            disk_mb=d.get("disk_mb"),
            processes=d.get("processes"),
            helpers=d.get("helpers"),
            workspaces=d.get("workspaces"),
            snapshots=d.get("snapshots"),
            templates=d.get("templates"),
            webhooks=d.get("webhooks"),
            secrets=d.get("secrets"),
            secrets_kb=d.get("secrets_kb"),
            creates_per_minute=d.get("creates_per_minute"),
        )


@dataclass
class TenantUse:
    """What a tenant holds at the moment, in the units of its quota."""

    boxes: int
    cpu: float
    memory_mb: int
    disk_mb: int
    processes: int
    helpers: int
    workspaces: int
    snapshots: int
    templates: int
    webhooks: int
    secrets: int
    secrets_kb: int
    #: Number of events in the log. When it is full, the tenant with the most loses its oldest.
    events: int
    #: Size of the build logs of templates. Where there is too much, the tenant with the most loses its
    #: oldest; the same holds for the following.
    logs_kb: int
    #: Number of entries of the egress log.
    verdicts: int
    #: Number of calls in the log of models.
    ai_calls: int
    #: Size of their text, where it is kept.
    ai_text_kb: int

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> TenantUse:
        return cls(
            boxes=d["boxes"],
            cpu=d["cpu"],
            memory_mb=d["memory_mb"],
            disk_mb=d["disk_mb"],
            processes=d["processes"],
            helpers=d["helpers"],
            workspaces=d["workspaces"],
            snapshots=d["snapshots"],
            templates=d["templates"],
            webhooks=d["webhooks"],
            secrets=d["secrets"],
            secrets_kb=d["secrets_kb"],
            events=d["events"],
            logs_kb=d["logs_kb"],
            verdicts=d["verdicts"],
            ai_calls=d["ai_calls"],
            ai_text_kb=d["ai_text_kb"],
        )


@dataclass
class Tenant:
    """`Tenant` of the API."""

    id: str
    name: str
    created_at: datetime
    quota: Quota
    #: What applies, the quota or else the default of the configuration; 0 means no limit.
    limits: Quota
    used: TenantUse

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> Tenant:
        return cls(
            id=d["id"],
            name=d["name"],
            created_at=moment(d["created_at"]),
            quota=Quota._of(d["quota"]),
            limits=Quota._of(d["limits"]),
            used=TenantUse._of(d["used"]),
        )


@dataclass
class EgressInject:
    """A `secret` and exactly one of `header`, `query` and `placeholder`; or a `header` and its `value`."""

    #: Of a header, where it is no secret: it is not masked in answers.
    value: Optional[str] = None
    #: The name of a secret of the sandbox or its tenant; the value must have at least 4 bytes.
    secret: Optional[str] = None
    #: Replaces this header.
    header: Optional[str] = None
    #: Text before the value in the header, such as "Bearer ".
    prefix: Optional[str] = None
    #: Sets this query parameter.
    query: Optional[str] = None
    #: Replaces `{{secret.NAME}}` in the target, in headers (also within Basic credentials) and in the body. A
    #: placeholder of a secret that is not for this host is refused with 403.
    placeholder: Optional[bool] = None

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> EgressInject:
        return cls(
            value=d.get("value"),
            secret=d.get("secret"),
            header=d.get("header"),
            prefix=d.get("prefix"),
            query=d.get("query"),
            placeholder=d.get("placeholder"),
        )


@dataclass
class EgressRule:
    """A `set`, a `host` or a `cidr`. If both `host` and `cidr` are given, both must match."""

    action: Literal["allow", "deny"]
    set: Optional[str] = None
    #: A name, `*.example.org` for all names below it, or `*`.
    host: Optional[str] = None
    #: A network or an address.
    cidr: Optional[str] = None
    #: tls: TLS, judged by the name in its ClientHello; http: HTTP in clear; tcp: any bytes, for a host to the
    #: addresses that DNS gave the sandbox. Absent or any: each of these except HTTP/2 in clear, whose
    #: requests cannot be judged and which needs tcp.
    protocol: Optional[Literal["any", "tcp", "tls", "http"]] = None
    ports: Optional[List[Union[int, str]]] = None
    #: With methods or paths, a rule applies to requests: in clear (`http`), within TLS (`tls`) or both
    #: (absent, `any`). For requests within TLS the gate intercepts the TLS of its hosts, as for `inject`,
    #: unless an earlier rule decides. A deny rule also denies connections to its hosts that cannot be
    #: inspected (TLS without a name, other protocols), unless its protocol is http.
    methods: Optional[List[str]] = None
    #: Each path and all paths below it. A deny rule also matches other spellings (escapes, upper case).
    paths: Optional[List[str]] = None
    #: Secrets that the gate adds to requests over TLS to this host (an allow rule with `host`, not `*`). The
    #: gate intercepts the TLS of these hosts with a certificate of the installation's authority
    #: (`getAuthority`), which the sandbox trusts, and checks the server's own certificate. HTTP/1.1 and
    #: HTTP/2 (gRPC) work if client and server both support them; WebSocket works over HTTP/1.1. The value is
    #: masked in the answer, and the sandbox never holds it. Answers are complete (`Range` is dropped) and
    #: must not be compressed; neither must bodies with placeholders.
    inject: Optional[List[EgressInject]] = None

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> EgressRule:
        return cls(
            action=d["action"],
            set=d.get("set"),
            host=d.get("host"),
            cidr=d.get("cidr"),
            protocol=d.get("protocol"),
            ports=d.get("ports"),
            methods=d.get("methods"),
            paths=d.get("paths"),
            inject=[EgressInject._of(each) for each in d["inject"]] if d.get("inject") is not None else None,
        )


@dataclass
class EgressPolicyLimits:
    """0 or absent means no limit other than the gate's own."""

    #: Open at once.
    connections: Optional[int] = None
    connections_per_second: Optional[int] = None
    #: Both directions together.
    bytes_per_second: Optional[int] = None
    #: In total, both directions together. A restart of the daemon resets the count; a stop of the sandbox or
    #: a change of its policy does not.
    bytes: Optional[int] = None

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> EgressPolicyLimits:
        return cls(
            connections=d.get("connections"),
            connections_per_second=d.get("connections_per_second"),
            bytes_per_second=d.get("bytes_per_second"),
            bytes=d.get("bytes"),
        )


@dataclass
class EgressPolicy:
    """The first matching rule decides; if none matches, `default` does. `allow` and `deny` are short forms for
        rules that follow `rules`, with those of `deny` first. Answers have only `rules`."""

    default: Optional[Literal["deny", "allow"]] = None
    rules: Optional[List[EgressRule]] = None
    allow: Optional[List[str]] = None
    deny: Optional[List[str]] = None
    #: 0 or absent means no limit other than the gate's own.
    limits: Optional[EgressPolicyLimits] = None
    #: How to treat TLS with an encrypted ClientHello (ECH) where the rules ask for names. The readable name
    #: need not be the true one, and browsers always send something that looks like ECH. `intercept`: if the
    #: readable name is allowed, the gate intercepts the connection with a certificate of the installation's
    #: authority and sends that name to the server without ECH; the log has the reason `ech`. `refuse`: the
    #: connection counts as TLS without a name. If rules allow the address regardless of the name, the
    #: connection passes unchanged in both cases. Answers contain this field only if it is `refuse`.
    ech: Optional[Literal["intercept", "refuse"]] = None

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> EgressPolicy:
        return cls(
            default=d.get("default"),
            rules=[EgressRule._of(each) for each in d["rules"]] if d.get("rules") is not None else None,
            allow=d.get("allow"),
            deny=d.get("deny"),
            limits=EgressPolicyLimits._of(d["limits"]) if d.get("limits") is not None else None,
            ech=d.get("ech"),
        )


@dataclass
class EgressAnswer:
    """`EgressAnswer` of the API."""

    source: Literal["sandbox", "image", "tenant", "default", "none"]
    policy: EgressPolicy
    sets: Dict[str, List[str]]

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> EgressAnswer:
        return cls(
            source=d["source"],
            policy=EgressPolicy._of(d["policy"]),
            sets=d["sets"],
        )


@dataclass
class CreateEgressTokenAnswer:
    """`CreateEgressTokenAnswer` of the API."""

    token: str
    #: For HTTPS_PROXY and its like in the sandbox.
    proxy: str
    expires_at: datetime

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> CreateEgressTokenAnswer:
        return cls(
            token=d["token"],
            proxy=d["proxy"],
            expires_at=moment(d["expires_at"]),
        )


@dataclass
class EgressSetsAnswer:
    """`EgressSetsAnswer` of the API."""

    sets: Dict[str, List[str]]
    #: For each set; several where one adds to another.
    sources: Dict[str, List[Literal["configuration", "machine", "tool", "known", "image", "template"]]]

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> EgressSetsAnswer:
        return cls(
            sets=d["sets"],
            sources=d["sources"],
        )


@dataclass
class EgressVerdict:
    """`EgressVerdict` of the API."""

    #: Increases, also over restarts.
    id: int
    #: Time of the last occurrence.
    at: datetime
    first_at: datetime
    #: Number of occurrences.
    count: int
    verdict: Literal["allow", "deny"]
    #: `rule` and `no_rule`: by the policy; `address`: the name leads to an address that is not public and
    #: that no rule names; `mismatch`: SNI, Host, the proxy's target and the address do not agree; `ech`: an
    #: encrypted ClientHello, allowed by `rule` and intercepted for that, or denied because the policy wishes
    #: it or it cannot be intercepted at the moment; `secret`: a secret of the rule, or of a placeholder, is
    #: not there, not for this host or does not fit: the answer (403) says which.
    reason: Literal["rule", "no_rule", "no_policy", "address", "mismatch", "no_name", "unresolved", "limit", "malformed", "token", "unreachable", "ech", "secret", "none", "other"]
    #: `rules[N]` of the policy, `default`, or `refuse`: the installation's.
    rule: Optional[str]
    protocol: Optional[str]
    host: Optional[str]
    address: Optional[str]
    port: int
    method: Optional[str]
    path: Optional[str]
    via: Optional[str]
    #: A target that would allow it, if a rule can.
    would_allow: Optional[str]

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> EgressVerdict:
        return cls(
            id=d["id"],
            at=moment(d["at"]),
            first_at=moment(d["first_at"]),
            count=d["count"],
            verdict=d["verdict"],
            reason=d["reason"],
            rule=d["rule"],
            protocol=d["protocol"],
            host=d["host"],
            address=d["address"],
            port=d["port"],
            method=d["method"],
            path=d["path"],
            via=d["via"],
            would_allow=d["would_allow"],
        )


@dataclass
class GetEgressLogAnswer:
    """`GetEgressLogAnswer` of the API."""

    verdicts: List[EgressVerdict]
    next: int
    #: The oldest that is kept.
    first: Optional[int]

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> GetEgressLogAnswer:
        return cls(
            verdicts=[EgressVerdict._of(each) for each in d.get("verdicts", [])],
            next=d["next"],
            first=d["first"],
        )


@dataclass
class AiLimits:
    """The limits in force. 0 means no limit; money is in dollars."""

    requests_per_minute: Optional[int] = None
    tokens_per_minute: Optional[int] = None
    parallel: Optional[int] = None
    day: Optional[float] = None
    week: Optional[float] = None
    month: Optional[float] = None
    warn: Optional[float] = None
    log_bodies: Optional[bool] = None

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> AiLimits:
        return cls(
            requests_per_minute=d.get("requests_per_minute"),
            tokens_per_minute=d.get("tokens_per_minute"),
            parallel=d.get("parallel"),
            day=d.get("day"),
            week=d.get("week"),
            month=d.get("month"),
            warn=d.get("warn"),
            log_bodies=d.get("log_bodies"),
        )


@dataclass
class AiAllowance:
    """Absent fields have the default (`ai.box`, `ai.tenant` of the configuration). For numbers, 0 means no
        limit; money is in dollars, days are in UTC, weeks begin on Monday. Lists contain patterns (`*` matches
        anything). Each list of the configuration, the tenant and the sandbox must allow a call; an empty list
        allows nothing."""

    requests_per_minute: Optional[int] = None
    tokens_per_minute: Optional[int] = None
    parallel: Optional[int] = None
    day: Optional[float] = None
    week: Optional[float] = None
    month: Optional[float] = None
    #: The fraction of a budget at which to warn.
    warn: Optional[float] = None
    #: Whether the text of calls is kept, for `GET /v1/sandboxes/{id}/ai/calls/{call}`. A sandbox without a
    #: setting has its tenant's. If the tenant or `ai.max` forbids it (false), it cannot be turned on.
    log_bodies: Optional[bool] = None
    providers: Optional[List[Literal["openai", "anthropic"]]] = None
    endpoints: Optional[List[str]] = None
    models: Optional[List[str]] = None

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> AiAllowance:
        return cls(
            requests_per_minute=d.get("requests_per_minute"),
            tokens_per_minute=d.get("tokens_per_minute"),
            parallel=d.get("parallel"),
            day=d.get("day"),
            week=d.get("week"),
            month=d.get("month"),
            warn=d.get("warn"),
            log_bodies=d.get("log_bodies"),
            providers=d.get("providers"),
            endpoints=d.get("endpoints"),
            models=d.get("models"),
        )


@dataclass
class SandboxAiAllow:
    """`SandboxAiAllow` of the API."""

    from_: Optional[Literal["tenant", "sandbox"]] = None
    patterns: Optional[List[str]] = None

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> SandboxAiAllow:
        return cls(
            from_=d.get("from"),
            patterns=d.get("patterns"),
        )


@dataclass
class SandboxAiSpent:
    """`SandboxAiSpent` of the API."""

    day: Optional[float] = None
    week: Optional[float] = None
    month: Optional[float] = None
    #: Reserved for calls in progress.
    reserved: Optional[float] = None
    #: Number of calls in progress.
    parallel: Optional[int] = None

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> SandboxAiSpent:
        return cls(
            day=d.get("day"),
            week=d.get("week"),
            month=d.get("month"),
            reserved=d.get("reserved"),
            parallel=d.get("parallel"),
        )


@dataclass
class SandboxAiProvider:
    """`SandboxAiProvider` of the API."""

    path: Optional[str] = None
    inside: Optional[str] = None
    #: Whether the lists of the tenant and the sandbox allow it.
    allowed: Optional[bool] = None
    #: From the configuration; an empty list means all.
    endpoints: Optional[List[str]] = None
    #: From the configuration; an empty list means all.
    models: Optional[List[str]] = None

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> SandboxAiProvider:
        return cls(
            path=d.get("path"),
            inside=d.get("inside"),
            allowed=d.get("allowed"),
            endpoints=d.get("endpoints"),
            models=d.get("models"),
        )


@dataclass
class AiAccountAllow:
    """`AiAccountAllow` of the API."""

    from_: Optional[Literal["tenant", "sandbox"]] = None
    patterns: Optional[List[str]] = None

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> AiAccountAllow:
        return cls(
            from_=d.get("from"),
            patterns=d.get("patterns"),
        )


@dataclass
class AiAccountSpent:
    """`AiAccountSpent` of the API."""

    day: Optional[float] = None
    week: Optional[float] = None
    month: Optional[float] = None
    #: Reserved for calls in progress.
    reserved: Optional[float] = None
    #: Number of calls in progress.
    parallel: Optional[int] = None

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> AiAccountSpent:
        return cls(
            day=d.get("day"),
            week=d.get("week"),
            month=d.get("month"),
            reserved=d.get("reserved"),
            parallel=d.get("parallel"),
        )


@dataclass
class AiAccount:
    """`AiAccount` of the API."""

    limits: AiLimits
    #: Where each limit comes from; null if there is no limit.
    sources: Dict[str, Optional[Literal["sandbox", "tenant", "default", "configuration"]]]
    own: AiAllowance
    spent: AiAccountSpent
    #: The lists of the tenant and the sandbox, in addition to the configuration's.
    allow: Optional[Dict[str, List[AiAccountAllow]]] = None

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> AiAccount:
        return cls(
            limits=AiLimits._of(d["limits"]),
            sources=d["sources"],
            own=AiAllowance._of(d["own"]),
            allow={key: [AiAccountAllow._of(each) for each in each] for key, each in d["allow"].items()} if d.get("allow") is not None else None,
            spent=AiAccountSpent._of(d["spent"]),
        )


@dataclass
class SandboxAi:
    """`SandboxAi` of the API."""

    limits: AiLimits
    #: Where each limit comes from; null if there is no limit.
    sources: Dict[str, Optional[Literal["sandbox", "tenant", "default", "configuration"]]]
    own: AiAllowance
    #: The lists of the tenant and the sandbox, in addition to the configuration's.
    allow: Dict[str, List[SandboxAiAllow]]
    spent: SandboxAiSpent
    token: str
    token_expires_at: Optional[datetime]
    providers: Dict[str, SandboxAiProvider]
    tenant: AiAccount

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> SandboxAi:
        return cls(
            limits=AiLimits._of(d["limits"]),
            sources=d["sources"],
            own=AiAllowance._of(d["own"]),
            allow={key: [SandboxAiAllow._of(each) for each in each] for key, each in d["allow"].items()},
            spent=SandboxAiSpent._of(d["spent"]),
            token=d["token"],
            token_expires_at=None if d["token_expires_at"] is None else moment(d["token_expires_at"]),
            providers={key: SandboxAiProvider._of(each) for key, each in d["providers"].items()},
            tenant=AiAccount._of(d["tenant"]),
        )


@dataclass
class AiCall:
    """`AiCall` of the API."""

    id: Optional[int] = None
    #: When it began.
    at: Optional[datetime] = None
    duration_ms: Optional[int] = None
    provider: Optional[str] = None
    endpoint: Optional[str] = None
    model: Optional[str] = None
    #: The provider's status; 0 if there was no answer.
    status: Optional[int] = None
    #: `client`: it went away. `broken`: the provider did. `budget`: cut off, it took more than was reserved.
    #: `lost`: the daemon was killed; what was reserved is what it cost.
    finish: Optional[Literal["complete", "error", "client", "broken", "timeout", "budget", "lost"]] = None
    estimated: Optional[bool] = None
    #: Without tokens read from or written to a cache.
    input_tokens: Optional[int] = None
    cache_read_tokens: Optional[int] = None
    cache_write_tokens: Optional[int] = None
    output_tokens: Optional[int] = None
    cost_usd: Optional[float] = None

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> AiCall:
        return cls(
            id=d.get("id"),
            at=moment(d["at"]) if d.get("at") is not None else None,
            duration_ms=d.get("duration_ms"),
            provider=d.get("provider"),
            endpoint=d.get("endpoint"),
            model=d.get("model"),
            status=d.get("status"),
            finish=d.get("finish"),
            estimated=d.get("estimated"),
            input_tokens=d.get("input_tokens"),
            cache_read_tokens=d.get("cache_read_tokens"),
            cache_write_tokens=d.get("cache_write_tokens"),
            output_tokens=d.get("output_tokens"),
            cost_usd=d.get("cost_usd"),
        )


@dataclass
class ListSandboxAiCallsAnswer:
    """`ListSandboxAiCallsAnswer` of the API."""

    calls: List[AiCall]
    #: For `before`; null on the last page.
    next: Optional[int]

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> ListSandboxAiCallsAnswer:
        return cls(
            calls=[AiCall._of(each) for each in d.get("calls", [])],
            next=d["next"],
        )


@dataclass
class AiBody:
    """Null where it was not kept, or is not any more. At most 16 KiB; what looks like a key, a token or a
        password is `[redacted]`."""

    text: str
    truncated: bool

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> AiBody:
        return cls(
            text=d["text"],
            truncated=d["truncated"],
        )


@dataclass
class GetSandboxAiCallAnswer:
    """`GetSandboxAiCallAnswer` of the API."""

    request: Optional[AiBody]
    response: Optional[AiBody]
    id: Optional[int] = None
    #: When it began.
    at: Optional[datetime] = None
    duration_ms: Optional[int] = None
    provider: Optional[str] = None
    endpoint: Optional[str] = None
    model: Optional[str] = None
    #: The provider's status; 0 if there was no answer.
    status: Optional[int] = None
    #: `client`: it went away. `broken`: the provider did. `budget`: cut off, it took more than was reserved.
    #: `lost`: the daemon was killed; what was reserved is what it cost.
    finish: Optional[Literal["complete", "error", "client", "broken", "timeout", "budget", "lost"]] = None
    estimated: Optional[bool] = None
    #: Without tokens read from or written to a cache.
    input_tokens: Optional[int] = None
    cache_read_tokens: Optional[int] = None
    cache_write_tokens: Optional[int] = None
    output_tokens: Optional[int] = None
    cost_usd: Optional[float] = None

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> GetSandboxAiCallAnswer:
        return cls(
            id=d.get("id"),
            at=moment(d["at"]) if d.get("at") is not None else None,
            duration_ms=d.get("duration_ms"),
            provider=d.get("provider"),
            endpoint=d.get("endpoint"),
            model=d.get("model"),
            status=d.get("status"),
            finish=d.get("finish"),
            estimated=d.get("estimated"),
            input_tokens=d.get("input_tokens"),
            cache_read_tokens=d.get("cache_read_tokens"),
            cache_write_tokens=d.get("cache_write_tokens"),
            output_tokens=d.get("output_tokens"),
            cost_usd=d.get("cost_usd"),
            request=None if d["request"] is None else AiBody._of(d["request"]),
            response=None if d["response"] is None else AiBody._of(d["response"]),
        )


@dataclass
class ModelUsage:
    """`ModelUsage` of the API."""

    requests: int
    #: The number of calls whose tokens the provider did not report.
    estimated: int
    #: Without tokens read from or written to a cache.
    input_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    output_tokens: int
    cost_usd: float
    day: Optional[str] = None
    tenant: Optional[str] = None
    box: Optional[str] = None
    provider: Optional[str] = None
    model: Optional[str] = None

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> ModelUsage:
        return cls(
            day=d.get("day"),
            tenant=d.get("tenant"),
            box=d.get("box"),
            provider=d.get("provider"),
            model=d.get("model"),
            requests=d["requests"],
            estimated=d["estimated"],
            input_tokens=d["input_tokens"],
            cache_read_tokens=d["cache_read_tokens"],
            cache_write_tokens=d["cache_write_tokens"],
            output_tokens=d["output_tokens"],
            cost_usd=d["cost_usd"],
        )


@dataclass
class GetUsageAnswer:
    """`GetUsageAnswer` of the API."""

    usage: List[ModelUsage]
    total: ModelUsage

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> GetUsageAnswer:
        return cls(
            usage=[ModelUsage._of(each) for each in d.get("usage", [])],
            total=ModelUsage._of(d["total"]),
        )


@dataclass
class CapabilitiesBackend:
    """`CapabilitiesBackend` of the API."""

    name: str
    available: bool
    #: Parts of the posture that the machine does not support.
    missing: List[str]
    #: What its sandboxes can do on this machine. `capture`: every connection goes through the gate, not only
    #: those to its proxy port. `disk_quota`: files have a limit. `pause`: it can be paused. `snapshots`: its
    #: files can be copied; `memory_snapshots`: its processes with them. `foreign_snapshots`: it starts from
    #: snapshots that other backends took. `own_kernel`: it does not share the host's kernel.
    can: List[str]

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> CapabilitiesBackend:
        return cls(
            name=d["name"],
            available=d["available"],
            missing=d.get("missing", []),
            can=d.get("can", []),
        )


@dataclass
class CapabilitiesDefaults:
    """`CapabilitiesDefaults` of the API."""

    backend: str
    image: str
    user: str
    workdir: str
    #: 0 means never.
    ttl_seconds: int
    limits: Limits

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> CapabilitiesDefaults:
        return cls(
            backend=d["backend"],
            image=d["image"],
            user=d["user"],
            workdir=d["workdir"],
            ttl_seconds=d["ttl_seconds"],
            limits=Limits._of(d["limits"]),
        )


@dataclass
class CapabilitiesMax:
    """`CapabilitiesMax` of the API."""

    limits: Limits
    sandboxes: int
    #: 0 means no maximum.
    ttl_seconds: int
    #: Also the default.
    exec_timeout_ms: int
    #: Of stdout, and of stderr.
    exec_output_bytes: int
    #: Of a JSON body.
    body_bytes: int

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> CapabilitiesMax:
        return cls(
            limits=Limits._of(d["limits"]),
            sandboxes=d["sandboxes"],
            ttl_seconds=d["ttl_seconds"],
            exec_timeout_ms=d["exec_timeout_ms"],
            exec_output_bytes=d["exec_output_bytes"],
            body_bytes=d["body_bytes"],
        )


@dataclass
class Capabilities:
    """`Capabilities` of the API."""

    version: str
    api: Literal["v1"]
    backends: List[CapabilitiesBackend]
    defaults: CapabilitiesDefaults
    max: CapabilitiesMax
    images: List[str]
    features: List[str]

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> Capabilities:
        return cls(
            version=d["version"],
            api=d["api"],
            backends=[CapabilitiesBackend._of(each) for each in d.get("backends", [])],
            defaults=CapabilitiesDefaults._of(d["defaults"]),
            max=CapabilitiesMax._of(d["max"]),
            images=d.get("images", []),
            features=d.get("features", []),
        )


@dataclass
class DialectDisabled:
    """`DialectDisabled` of the API."""

    what: str
    why: str

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> DialectDisabled:
        return cls(
            what=d["what"],
            why=d["why"],
        )


@dataclass
class Dialect:
    """`Dialect` of the API."""

    name: str
    version: Optional[str]
    #: Another beginning that all its paths may have.
    alias: Optional[str]
    routes: List[str]
    paths: List[str]
    disabled: List[DialectDisabled]

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> Dialect:
        return cls(
            name=d["name"],
            version=d["version"],
            alias=d["alias"],
            routes=d.get("routes", []),
            paths=d.get("paths", []),
            disabled=[DialectDisabled._of(each) for each in d.get("disabled", [])],
        )


@dataclass
class DialectsListener:
    """`DialectsListener` of the API."""

    #: An IPv4 or IPv6 address.
    address: str
    port: int
    tls: bool
    #: Whether requests without a key are a user's.
    anonymous: bool
    #: The sandbox that it is for; null: all.
    sandbox: Optional[str]
    #: The only dialect here; null: all of them.
    dialect: Optional[str]
    #: In the order in which a request is offered to them.
    dialects: List[Dialect]

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> DialectsListener:
        return cls(
            address=d["address"],
            port=d["port"],
            tls=d["tls"],
            anonymous=d["anonymous"],
            sandbox=d["sandbox"],
            dialect=d["dialect"],
            dialects=[Dialect._of(each) for each in d.get("dialects", [])],
        )


@dataclass
class DialectPort:
    """`DialectPort` of the API."""

    port: int
    dialect: str
    version: Optional[str]
    routes: List[str]
    paths: List[str]

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> DialectPort:
        return cls(
            port=d["port"],
            dialect=d["dialect"],
            version=d["version"],
            routes=d.get("routes", []),
            paths=d.get("paths", []),
        )


@dataclass
class Dialects:
    """`Dialects` of the API."""

    listeners: List[DialectsListener]
    #: Ports of every sandbox that the server answers itself.
    ports: List[DialectPort]

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> Dialects:
        return cls(
            listeners=[DialectsListener._of(each) for each in d.get("listeners", [])],
            ports=[DialectPort._of(each) for each in d.get("ports", [])],
        )


@dataclass
class Health:
    """`Health` of the API."""

    status: Literal["ok", "unavailable"]
    #: Milliseconds since 1970.
    timestamp: int
    version: str
    reasons: Optional[List[str]] = None

    @classmethod
    def _of(cls, d: Dict[str, Any]) -> Health:
        return cls(
            status=d["status"],
            timestamp=d["timestamp"],
            version=d["version"],
            reasons=d.get("reasons"),
        )
