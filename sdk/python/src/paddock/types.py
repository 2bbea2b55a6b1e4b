# Made by sdk/python/generate from api/openapi.yaml. Edit that instead.
"""Dictionaries that requests take. Every key but those of the class with an underscore may be left out."""

from __future__ import annotations

from typing import Any, Literal, Mapping, Optional, Sequence, TypedDict, Union

__all__ = [
    "AgentManifest",
    "AgentManifestPermissions",
    "AgentManifestResources",
    "AgentManifestSpendingLimits",
    "AiAllowance",
    "EgressInject",
    "EgressPolicy",
    "EgressPolicyLimits",
    "EgressRule",
    "HostMount",
    "Limits",
    "Quota",
    "SandboxCreate",
    "SecretMount",
    "SpendingAddress",
    "SpendingLimit",
    "SpendingWindow",
    "TerminalSize",
    "Workspace",
    "WorkspaceMount",
]


class Limits(TypedDict, total=False):
    """Absent limits have the configured default; /v1/capabilities has the maxima."""

    cpu: Optional[float]
    memory_mb: Optional[int]
    pids: Optional[int]
    nofile: Optional[int]
    #: Needs storage on btrfs. The configured default, or the share of a tenant with a quota of disk, when
    #: absent.
    disk_mb: Optional[int]


class _Workspace(TypedDict):
    name: str


class Workspace(_Workspace, total=False):

    #: Only one running sandbox at a time may mount it rw; any number may read.
    mode: Optional[Literal["rw", "ro"]]


class _WorkspaceMount(TypedDict):
    name: str


class WorkspaceMount(_WorkspaceMount, total=False):

    #: Absolute, without `..`, and not in /proc, /sys, /dev or /run. Default /workspace.
    path: Optional[str]
    #: Only one running sandbox at a time may mount it rw; any number may read.
    mode: Optional[Literal["rw", "ro"]]


class _SecretMount(TypedDict):
    #: The sandbox's own secret of this name, else the tenant's.
    name: str


class SecretMount(_SecretMount, total=False):
    """Exactly one of `file` and `env`."""

    #: A file name below /run/secrets, which is in memory; mode 0400, owned by the user. For sandboxes only.
    file: Optional[str]
    #: The name of a variable.
    env: Optional[str]
    #: The newest version when absent.
    version: Optional[int]


class _HostMount(TypedDict):
    #: The directory, absolute, without links on the way. Its owner is the user (uid 1000) in the sandbox;
    #: files of others belong to nobody there.
    source: str
    #: Where it is in the sandbox. Missing directories are made.
    path: str


class HostMount(_HostMount, total=False):

    #: ro when absent. rw is refused for a directory of root.
    mode: Optional[Literal["rw", "ro"]]


class AiAllowance(TypedDict, total=False):
    """Absent fields have the default (`ai.box`, `ai.tenant` of the configuration). For numbers, 0 means no
    limit; money is in dollars, days are in UTC, weeks begin on Monday. Lists contain patterns (`*` matches
    anything). Each list of the configuration, the tenant and the sandbox must allow a call; an empty list
    allows nothing."""

    requests_per_minute: Optional[int]
    tokens_per_minute: Optional[int]
    parallel: Optional[int]
    day: Optional[float]
    week: Optional[float]
    month: Optional[float]
    #: The fraction of a budget at which to warn.
    warn: Optional[float]
    #: Whether the text of calls is kept, for `GET /v1/sandboxes/{id}/ai/calls/{call}`. A sandbox without a
    #: setting has its tenant's. If the tenant or `ai.max` forbids it (false), it cannot be turned on.
    log_bodies: Optional[bool]
    providers: Optional[Sequence[Literal["openai", "anthropic"]]]
    endpoints: Optional[Sequence[str]]
    models: Optional[Sequence[str]]


class EgressInject(TypedDict, total=False):
    """A `secret` and exactly one of `header`, `query` and `placeholder`; or a `header` and its `value`."""

    #: Of a header, where it is no secret: it is not masked in answers.
    value: Optional[str]
    #: The name of a secret of the sandbox or its tenant; the value must have at least 4 bytes.
    secret: Optional[str]
    #: Replaces this header.
    header: Optional[str]
    #: Text before the value in the header, such as "Bearer ".
    prefix: Optional[str]
    #: Sets this query parameter.
    query: Optional[str]
    #: Replaces `{{secret.NAME}}` in the target, in headers (also within Basic credentials) and in the body. A
    #: placeholder of a secret that is not for this host is refused with 403.
    placeholder: Optional[bool]


class _EgressRule(TypedDict):
    action: Literal["allow", "deny"]


class EgressRule(_EgressRule, total=False):
    """A `set`, a `host` or a `cidr`. If both `host` and `cidr` are given, both must match."""

    set: str
    #: A name, `*.example.org` for all names below it, or `*`.
    host: str
    #: A network or an address.
    cidr: str
    #: tls: TLS, judged by the name in its ClientHello; http: HTTP in clear; tcp: any bytes, for a host to the
    #: addresses that DNS gave the sandbox. Absent or any: each of these except HTTP/2 in clear, whose
    #: requests cannot be judged and which needs tcp.
    protocol: Literal["any", "tcp", "tls", "http"]
    ports: Sequence[Union[int, str]]
    #: With methods or paths, a rule applies to requests: in clear (`http`), within TLS (`tls`) or both
    #: (absent, `any`). For requests within TLS the gate intercepts the TLS of its hosts, as for `inject`,
    #: unless an earlier rule decides. A deny rule also denies connections to its hosts that cannot be
    #: inspected (TLS without a name, other protocols), unless its protocol is http.
    methods: Sequence[str]
    #: Each path and all paths below it. A deny rule also matches other spellings (escapes, upper case).
    paths: Sequence[str]
    #: Secrets that the gate adds to requests over TLS to this host (an allow rule with `host`, not `*`). The
    #: gate intercepts the TLS of these hosts with a certificate of the installation's authority
    #: (`getAuthority`), which the sandbox trusts, and checks the server's own certificate. HTTP/1.1 and
    #: HTTP/2 (gRPC) work if client and server both support them; WebSocket works over HTTP/1.1. The value is
    #: masked in the answer, and the sandbox never holds it. Answers are complete (`Range` is dropped) and
    #: must not be compressed; neither must bodies with placeholders.
    inject: Sequence[EgressInject]


class EgressPolicyLimits(TypedDict, total=False):
    """0 or absent means no limit other than the gate's own."""

    #: Open at once.
    connections: Optional[int]
    connections_per_second: Optional[int]
    #: Both directions together.
    bytes_per_second: Optional[int]
    #: In total, both directions together. A restart of the daemon resets the count; a stop of the sandbox or
    #: a change of its policy does not.
    bytes: Optional[int]


class EgressPolicy(TypedDict, total=False):
    """The first matching rule decides; if none matches, `default` does. `allow` and `deny` are short forms for
    rules that follow `rules`, with those of `deny` first. Answers have only `rules`."""

    default: Optional[Literal["deny", "allow"]]
    rules: Optional[Sequence[EgressRule]]
    allow: Optional[Sequence[str]]
    deny: Optional[Sequence[str]]
    #: 0 or absent means no limit other than the gate's own.
    limits: Optional[EgressPolicyLimits]
    #: How to treat TLS with an encrypted ClientHello (ECH) where the rules ask for names. The readable name
    #: need not be the true one, and browsers always send something that looks like ECH. `intercept`: if the
    #: readable name is allowed, the gate intercepts the connection with a certificate of the installation's
    #: authority and sends that name to the server without ECH; the log has the reason `ech`. `refuse`: the
    #: connection counts as TLS without a name. If rules allow the address regardless of the name, the
    #: connection passes unchanged in both cases. Answers contain this field only if it is `refuse`.
    ech: Optional[Literal["intercept", "refuse"]]


class TerminalSize(TypedDict):

    cols: int
    rows: int


class AgentManifestPermissions(TypedDict, total=False):

    #: CAIP-2 ids such as eip155:1.
    chains: Sequence[str]
    #: URLs of nodes; agents.rpcs of the configuration must list them.
    rpcs: Mapping[str, str]
    apis: Sequence[Literal["openai", "anthropic"]]
    #: The contracts that it may call; none means any.
    contracts: Sequence[str]
    #: Hosts that it may connect to.
    hosts: Sequence[str]


class AgentManifestResources(TypedDict, total=False):

    memory: str
    cpu: str


class AgentManifestSpendingLimits(TypedDict, total=False):

    per_transaction: str
    daily: str
    weekly: str
    monthly: str


class _AgentManifest(TypedDict):
    name: str
    version: str
    runtime: Literal["node", "python"]
    entrypoint: str


class AgentManifest(_AgentManifest, total=False):
    """The content of assegai.json."""

    description: str
    author: str
    permissions: AgentManifestPermissions
    resources: AgentManifestResources
    spending_limits: AgentManifestSpendingLimits


class _SpendingLimit(TypedDict):
    chain: str
    #: An address of a token, or `native`.
    asset: str
    per_transaction: str


class SpendingLimit(_SpendingLimit, total=False):
    """Of one asset on one chain. Nothing of an asset without an entry may be spent. Amounts are in base units; a
    window without an amount is not limited."""

    day: Optional[str]
    week: Optional[str]
    month: Optional[str]
    lifetime: Optional[str]
    #: Of a token, for people.
    decimals: Optional[int]
    #: For people.
    symbol: Optional[str]
    #: Whether an unlimited approval may be given; it counts as per_transaction.
    unlimited_approvals: Optional[bool]


class _SpendingAddress(TypedDict):
    address: str


class SpendingAddress(_SpendingAddress, total=False):

    #: null means every chain.
    chain: Optional[str]
    deny: Optional[bool]
    #: Calls that cannot be decoded are allowed to it.
    call: Optional[bool]
    #: What the owner calls it; only the owner gives names.
    note: Optional[str]


class SpendingWindow(TypedDict):

    days: Sequence[Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]]
    #: UTC.
    start: str
    #: Not included; 24:00 is the end of the day.
    end: str


class Quota(TypedDict, total=False):
    """0 or absent means the default of the configuration (`max.tenant`), or no limit if there is none."""

    #: All sandboxes that exist.
    boxes: Optional[int]
    #: Cores; the sum of the limits of running sandboxes.
    cpu: Optional[float]
    #: The sum of the limits of running sandboxes.
    memory_mb: Optional[int]
    #: The sum of the limits of sandboxes and workspaces, of the sizes of snapshots, and of the build cache,
    #: which gives way when room is needed. A sandbox or workspace that asks for no limit gets
    #: `defaults.disk_mb`, or if that is not set a share: the quota divided by that of sandboxes, or by 8.
    disk_mb: Optional[int]
    #: The sum of the limits (`pids`) of running sandboxes.
    processes: Optional[int]
    #: Hidden sandboxes at a time, which serve the files of workspaces.
    helpers: Optional[int]
    workspaces: Optional[int]
    #: Those of templates included.
    snapshots: Optional[int]
    templates: Optional[int]
    webhooks: Optional[int]
    #: Those of sandboxes included.
    secrets: Optional[int]
    #: The size of all versions of all secrets on disk.
    secrets_kb: Optional[int]
    creates_per_minute: Optional[int]


class SandboxCreate(TypedDict, total=False):

    #: Unique among the tenant's sandboxes; usable instead of the id.
    name: Optional[str]
    #: A name or a digest.
    image: Optional[str]
    #: The kind of isolation, one of `backends` of `/v1/capabilities`. When absent it is that of the snapshot,
    #: or the default. A snapshot of another backend is refused, unless this one can start from
    #: `foreign_snapshots`.
    backend: Optional[str]
    #: The user of the image that runs commands.
    user: Optional[str]
    #: Variables of every command.
    env: Optional[Mapping[str, str]]
    #: The working directory of commands; an absolute path that exists.
    workdir: Optional[str]
    #: Absent limits have the configured default; /v1/capabilities has the maxima.
    limits: Optional[Limits]
    #: The sandbox expires after this time. 0 means never, if the configuration allows that.
    ttl_seconds: Optional[int]
    #: The sandbox ends when it was not used for this time. Every command and every file operation is a use,
    #: and so is any operation that is still in progress. Showing the sandbox is not a use.
    idle_seconds: Optional[int]
    on_end: Optional[Literal["delete", "stop", "pause"]]
    #: The next use of a paused sandbox resumes it.
    auto_resume: Optional[bool]
    #: A snapshot's name or id, instead of an image.
    snapshot: Optional[str]
    #: A workspace to mount at /workspace. When absent, the sandbox has its own, which is deleted with it.
    workspace: Optional[Union[str, Workspace]]
    #: Workspaces and where to mount them. Together with `workspace` at most 8. No mount may lie in another
    #: one of these or of `mounts`. A path that is missing is created; a path that leads through a symbolic
    #: link is refused, also at a later start.
    workspaces: Optional[Sequence[WorkspaceMount]]
    #: At most 64 entries; a list can be filtered by them.
    metadata: Optional[Mapping[str, str]]
    #: Secrets that are mounted at every start, as files in memory and as variables of every process. They are
    #: not part of snapshots and forks.
    secrets: Optional[Sequence[SecretMount]]
    #: Directories of the daemon's machine that are mounted at every start. Only for administrators and for
    #: tenants that `mounts.allow` of the configuration names; refused (403) otherwise. Not part of snapshots
    #: and forks.
    mounts: Optional[Sequence[HostMount]]
    #: Makes everything but /workspace, /tmp and /dev/shm read-only.
    readonly_root: Optional[bool]
    #: Whether its users can become root with `sudo` and `su`, without a password. A file /etc/paddock/no-sudo
    #: in the image, or `defaults.sudo: false` in the configuration, also turns it off.
    sudo: Optional[bool]
    #: Time zone: /etc/localtime and /etc/timezone are set at every start. By default `defaults.timezone` of
    #: the configuration, or whatever the files of the image or snapshot say.
    timezone: Optional[str]
    #: Isolation features that this sandbox must have at every start. If one is not available, the create
    #: fails with `cannot_isolate` and names it.
    require: Optional[Sequence[Literal["landlock.truncate", "landlock.ioctl_dev", "landlock.scopes", "overlay.detached", "cgroup.kill", "cgroup.freeze", "limit.socket_memory", "limit.disk", "egress.capture", "view.proc", "view.uptime", "view.calls"]]]
    ai: Optional[AiAllowance]
    #: Its egress policy. When absent, the policy of its image, tenant or the installation applies.
    egress: Optional[EgressPolicy]
    #: Anyone who knows the id can reach its ports without a key, a token or a signed link.
    ports_public: Optional[bool]
    #: The sandbox lives as long as this connection. The answer is a stream (`application/x-ndjson`): the
    #: sandbox as one line, then empty lines. When the client disconnects for any reason, the sandbox is
    #: deleted; when the sandbox is gone, the stream ends.
    delete_on_disconnect: Optional[bool]
    #: The Host header that its servers see instead of the client's; `${PORT}` stands for the port.
    mask_host: Optional[str]
