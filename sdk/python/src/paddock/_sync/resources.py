# Made by sdk/python/generate from _async/resources.py. Edit that instead.
"""What belongs to a tenant or to the installation rather than to one sandbox."""

from __future__ import annotations

from typing import Any, Dict, List, Literal, Mapping, Optional, Sequence, Union

from .. import models, types
from .._http import Content, given, query, segment
from .._operations import operation
from .api import Api
from .files import WorkspaceFiles
from .network import FROM_ALLOWANCE, secret_body
from .streams import EventStream

POLICY = dict.fromkeys(("default", "rules", "allow", "deny", "limits", "ech"), "policy")
QUOTA = dict.fromkeys(
    ("boxes", "cpu", "memory_mb", "disk_mb", "processes", "helpers", "workspaces", "snapshots", "templates", "webhooks", "secrets", "secrets_kb",
     "creates_per_minute"), "quota",
)  # fmt: skip


class Group:
    """Methods that share a connection."""

    def __init__(self, api: Api) -> None:
        self._api = api


class Snapshots(Group):
    """Saved files of sandboxes; `sandbox.snapshot` makes them."""

    @operation("listSnapshots")
    def list(self) -> List[models.Snapshot]:
        return [models.Snapshot._of(each) for each in (self._api.json("GET", "/v1/snapshots"))["snapshots"]]

    @operation("getSnapshot")
    def get(self, id: str) -> models.Snapshot:
        return models.Snapshot._of(self._api.json("GET", f"/v1/snapshots/{segment(id)}"))

    @operation("removeSnapshot")
    def remove(self, id: str) -> None:
        self._api.bytes("DELETE", f"/v1/snapshots/{segment(id)}")


class Workspaces(Group):
    """Files that outlive sandboxes."""

    @operation("createWorkspace")
    def create(
        self, name: str, *, disk_mb: Optional[int] = None, clone_of: Optional[str] = None, readonly: Optional[bool] = None
    ) -> models.Workspace:
        body = given(name=name, disk_mb=disk_mb, clone_of=clone_of, readonly=readonly)
        return models.Workspace._of(self._api.json("POST", "/v1/workspaces", body, timeout=None))

    @operation("listWorkspaces")
    def list(self) -> List[models.Workspace]:
        return [models.Workspace._of(each) for each in (self._api.json("GET", "/v1/workspaces"))["workspaces"]]

    @operation("getWorkspace")
    def get(self, name: str) -> models.Workspace:
        return models.Workspace._of(self._api.json("GET", f"/v1/workspaces/{segment(name)}"))

    @operation("removeWorkspace")
    def remove(self, name: str) -> None:
        """Deletes the workspace and its files."""
        self._api.bytes("DELETE", f"/v1/workspaces/{segment(name)}")

    def files(self, name: str) -> WorkspaceFiles:
        """The files of a workspace, without a sandbox."""
        return WorkspaceFiles(self._api, f"/v1/workspaces/{segment(name)}", lambda: "/")


class Images(Group):
    """Images that sandboxes are created from."""

    @operation("listImages")
    def list(self) -> List[models.Image]:
        return [models.Image._of(each) for each in (self._api.json("GET", "/v1/images"))["images"]]

    @operation("createImage")
    def create(self, name: str, snapshot: str) -> models.Image:
        """Makes an image of a snapshot (admin)."""
        return models.Image._of(self._api.json("POST", "/v1/images", given(name=name, snapshot=snapshot), timeout=None))

    @operation("importImage")
    def load(self, name: str, archive: Content) -> models.Image:
        """Imports an uncompressed tar archive of a root file system, or one of `docker save` or an OCI tool (admin)."""
        where = f"/v1/images/{segment(name)}"
        return models.Image._of(self._api.json("PUT", where, content=archive, headers={"Content-Type": "application/x-tar"}, timeout=None))

    @operation("removeImage")
    def remove(self, name: str) -> None:
        self._api.bytes("DELETE", f"/v1/images/{segment(name)}")


class Keys(Group):
    """API keys (admin)."""

    @operation("createKey")
    def create(
        self,
        *,
        name: Optional[str] = None,
        tenant: Optional[str] = None,
        role: Optional[Literal["admin", "user"]] = None,
        create_tenant: Optional[bool] = None,
    ) -> models.Key:
        """Only this answer has the key itself."""
        return models.Key._of(self._api.json("POST", "/v1/keys", given(name=name, tenant=tenant, role=role, create_tenant=create_tenant)))

    @operation("listKeys")
    def list(self) -> List[models.Key]:
        return [models.Key._of(each) for each in (self._api.json("GET", "/v1/keys"))["keys"]]

    @operation("removeKey")
    def remove(self, id: str) -> None:
        """Revokes a key, at once."""
        self._api.bytes("DELETE", f"/v1/keys/{segment(id)}")


class Tenants(Group):
    """Tenants, their quotas and policies (admin)."""

    @operation("createTenant")
    def create(self, name: str) -> models.Tenant:
        return models.Tenant._of(self._api.json("POST", "/v1/tenants", {"name": name}))

    @operation("listTenants")
    def list(self) -> List[models.Tenant]:
        return [models.Tenant._of(each) for each in (self._api.json("GET", "/v1/tenants"))["tenants"]]

    @operation("getQuota")
    def get(self, id: str) -> models.Tenant:
        """A tenant with its quota and what it uses of it."""
        return models.Tenant._of(self._api.json("GET", f"/v1/tenants/{segment(id)}/quota"))

    @operation("setQuota", fields=QUOTA)
    def set_quota(self, id: str, quota: types.Quota) -> models.Tenant:
        """Replaces the whole quota."""
        return models.Tenant._of(self._api.json("PUT", f"/v1/tenants/{segment(id)}/quota", quota))

    @operation("getTenantAi")
    def ai(self, id: str) -> models.AiAccount:
        """Its limits for models, and its spending."""
        return models.AiAccount._of(self._api.json("GET", f"/v1/tenants/{segment(id)}/ai"))

    @operation("setTenantAi", fields=FROM_ALLOWANCE)
    def set_ai(self, id: str, allowance: types.AiAllowance) -> models.AiAccount:
        return models.AiAccount._of(self._api.json("PUT", f"/v1/tenants/{segment(id)}/ai", allowance))

    @operation("changeTenantAi", fields=FROM_ALLOWANCE)
    def change_ai(self, id: str, allowance: types.AiAllowance) -> models.AiAccount:
        return models.AiAccount._of(self._api.json("PATCH", f"/v1/tenants/{segment(id)}/ai", allowance))

    @operation("getTenantEgress")
    def egress(self, id: str) -> models.EgressAnswer:
        """The egress policy of its sandboxes that have none of their own."""
        return models.EgressAnswer._of(self._api.json("GET", f"/v1/tenants/{segment(id)}/egress"))

    @operation("setTenantEgress", fields=POLICY)
    def set_egress(self, id: str, policy: types.EgressPolicy) -> models.EgressAnswer:
        return models.EgressAnswer._of(self._api.json("PUT", f"/v1/tenants/{segment(id)}/egress", policy))

    @operation("resetTenantEgress")
    def reset_egress(self, id: str) -> models.EgressAnswer:
        return models.EgressAnswer._of(self._api.json("DELETE", f"/v1/tenants/{segment(id)}/egress"))


class Events(Group):
    """Events of sandboxes."""

    @operation("listEvents", fields={"type": "types"})
    def page(
        self,
        *,
        after: Optional[int] = None,
        sandbox: Optional[str] = None,
        types: Optional[Sequence[str]] = None,
        limit: Optional[int] = None,
    ) -> models.Events:
        """A page of the last seven days, from the oldest on; `next` is `after` of the next page."""
        return models.Events._of(self._api.json("GET", "/v1/events" + query({**self._params(after, sandbox, types), "limit": limit})))

    @operation("listEvents", fields={"type": "types"}, fixed=("limit",))
    def stream(self, *, after: Optional[int] = None, sandbox: Optional[str] = None, types: Optional[Sequence[str]] = None) -> EventStream:
        """Events as they happen, from the next one or from the one after `after`. It has no end; leave the loop, and close it."""
        return EventStream(self._api, self._params(after, sandbox, types))

    def _params(self, after: Optional[int], sandbox: Optional[str], types: Optional[Sequence[str]]) -> Dict[str, Union[str, int, None]]:
        return {"after": after, "sandbox": sandbox, "type": ",".join(types) if types else None}


class Audit(Group):
    """Who did what, the newest first."""

    @operation("listAudit")
    def list(
        self, *, sandbox: Optional[str] = None, tenant: Optional[str] = None, kind: Optional[str] = None, actor: Optional[str] = None,
        since: Optional[str] = None, until: Optional[str] = None, limit: Optional[int] = None, cursor: Optional[str] = None
    ) -> models.AuditPage:
        """A page; `cursor` is the `next` of the page before. `kind` is an action such as "key.create", or an area such as "key"."""
        params = {"sandbox": sandbox, "tenant": tenant, "kind": kind, "actor": actor, "since": since, "until": until, "limit": limit,
                  "cursor": cursor}
        return models.AuditPage._of(self._api.json("GET", "/v1/audit" + query(params)))


class Webhooks(Group):
    """Events, sent to a server of yours."""

    @operation("createWebhook")
    def create(self, url: str, *, events: Optional[Sequence[str]] = None, secret: Optional[str] = None) -> models.Webhook:
        """Only this answer has the secret with which deliveries are signed."""
        return models.Webhook._of(self._api.json("POST", "/v1/webhooks", given(url=url, events=events, secret=secret)))

    @operation("listWebhooks")
    def list(self) -> List[models.Webhook]:
        return [models.Webhook._of(each) for each in (self._api.json("GET", "/v1/webhooks"))["webhooks"]]

    @operation("getWebhook")
    def get(self, id: str) -> models.Webhook:
        """One webhook, with its last deliveries."""
        return models.Webhook._of(self._api.json("GET", f"/v1/webhooks/{segment(id)}"))

    @operation("removeWebhook")
    def remove(self, id: str) -> None:
        self._api.bytes("DELETE", f"/v1/webhooks/{segment(id)}")


class Agents(Group):
    """Agents that are installed from manifests."""

    @operation("installAgent", fixed=("consent", "name"))
    def preview(self, manifest: types.AgentManifest) -> models.InstallAgentAnswer:
        """What a manifest asks for, as the daemon understands it. Nothing is installed."""
        return models.InstallAgentAnswer._of(self._api.json("POST", "/v1/agents", given(manifest=manifest, consent=False)))

    @operation("installAgent", fixed=("consent",))
    def install(self, manifest: types.AgentManifest, *, name: Optional[str] = None) -> models.Agent:
        """Consents to what the manifest asks for. The agent waits for its files (`upload`)."""
        return models.Agent._of(self._api.json("POST", "/v1/agents", given(manifest=manifest, name=name, consent=True)))

    @operation("uploadAgentCode")
    def upload(self, agent: str, archive: Content) -> models.Agent:
        """Its files, as a tar archive. The image is built from them: the agent is `building` until it is `stopped` or `failed`."""
        where = f"/v1/agents/{segment(agent)}/code"
        return models.Agent._of(self._api.json("PUT", where, content=archive, headers={"Content-Type": "application/x-tar"}, timeout=None))

    @operation("listAgents")
    def list(self) -> List[models.Agent]:
        return [models.Agent._of(each) for each in (self._api.json("GET", "/v1/agents"))["agents"]]

    @operation("getAgent")
    def get(self, agent: str) -> models.Agent:
        return models.Agent._of(self._api.json("GET", f"/v1/agents/{segment(agent)}"))

    @operation("upgradeAgent", fixed=("consent",))
    def preview_upgrade(self, agent: str, manifest: types.AgentManifest) -> models.UpgradeAgentAnswer:
        """What a new version asks for, and what of that is new. Nothing changes."""
        where = f"/v1/agents/{segment(agent)}/upgrade"
        return models.UpgradeAgentAnswer._of(self._api.json("POST", where, given(manifest=manifest, consent=False)))

    @operation("upgradeAgent", fixed=("consent",))
    def upgrade(self, agent: str, manifest: types.AgentManifest) -> models.Agent:
        """Consents to what the new version asks for. The agent goes on, and waits for the new files (`upload`)."""
        return models.Agent._of(self._api.json("POST", f"/v1/agents/{segment(agent)}/upgrade", given(manifest=manifest, consent=True)))

    @operation("listCatalogues")
    def catalogues(self) -> List[models.Catalogue]:
        """The catalogues of the configuration."""
        return [models.Catalogue._of(each) for each in (self._api.json("GET", "/v1/catalogues"))["catalogues"]]

    @operation("startAgent")
    def start(self, agent: str) -> models.Agent:
        return models.Agent._of(self._api.json("POST", f"/v1/agents/{segment(agent)}/start"))

    @operation("stopAgent")
    def stop(self, agent: str) -> models.Agent:
        return models.Agent._of(self._api.json("POST", f"/v1/agents/{segment(agent)}/stop"))

    @operation("restartAgent")
    def restart(self, agent: str) -> models.Agent:
        return models.Agent._of(self._api.json("POST", f"/v1/agents/{segment(agent)}/restart"))

    @operation("listAgentLogs")
    def logs(self, agent: str, *, level: Optional[str] = None, after: Optional[int] = None, limit: Optional[int] = None) -> models.ListAgentLogsAnswer:
        """The newest entries, or those behind the one with the id `after`."""
        where = f"/v1/agents/{segment(agent)}/logs{query({'level': level, 'after': after, 'limit': limit})}"
        return models.ListAgentLogsAnswer._of(self._api.json("GET", where))

    @operation("removeAgent")
    def remove(self, agent: str) -> None:
        self._api.bytes("DELETE", f"/v1/agents/{segment(agent)}")

    @operation("getAgentLimits")
    def limits(self, agent: str) -> models.AgentLimits:
        """What it may spend. Empty rules allow nothing."""
        return models.AgentLimits._of(self._api.json("GET", f"/v1/agents/{segment(agent)}/limits"))

    @operation("setAgentLimits")
    def restrict(
        self,
        agent: str,
        *,
        limits: Optional[Sequence[types.SpendingLimit]] = None,
        addresses: Optional[Sequence[types.SpendingAddress]] = None,
        windows: Optional[Sequence[types.SpendingWindow]] = None,
        only_listed: Optional[bool] = None,
        allow_creation: Optional[bool] = None,
        allow_dangerous: Optional[bool] = None,
        allow_messages: Optional[bool] = None,
        require_simulation: Optional[bool] = None,
        paused: Optional[bool] = None,
        approvers: Optional[int] = None,
        auto_below: Optional[str] = None,
        max_pending: Optional[int] = None,
        expiry_seconds: Optional[int] = None,
        cool_down_seconds: Optional[int] = None,
        suspend_after: Optional[int] = None,
    ) -> models.AgentLimits:
        """Makes its limits stricter; Forbidden is raised for anything that allows more than before. `paused=True` pauses it."""
        body = given(
            limits=limits, addresses=addresses, windows=windows, only_listed=only_listed, allow_creation=allow_creation,
            allow_dangerous=allow_dangerous, allow_messages=allow_messages, require_simulation=require_simulation, paused=paused,
            approvers=approvers, auto_below=auto_below, max_pending=max_pending, expiry_seconds=expiry_seconds,
            cool_down_seconds=cool_down_seconds, suspend_after=suspend_after,
        )  # fmt: skip
        return models.AgentLimits._of(self._api.json("PUT", f"/v1/agents/{segment(agent)}/limits", body))

    @operation("getAgentSpending")
    def spending(self, agent: str) -> models.Spending:
        """What it has spent, beside its limits."""
        return models.Spending._of(self._api.json("GET", f"/v1/agents/{segment(agent)}/spending"))


class Transactions(Group):
    """What agents ask to spend or to sign, and the decisions of people."""

    @operation("listTransactions", fixed=("format",))
    def list(
        self,
        *,
        agent: Optional[str] = None,
        state: Optional[str] = None,
        chain: Optional[str] = None,
        asset: Optional[str] = None,
        limit: Optional[int] = None,
        after: Optional[str] = None,
    ) -> models.ListTransactionsAnswer:
        """The newest first, without cards; `next` is for `after` of the next page."""
        where = query({"agent": agent, "state": state, "chain": chain, "asset": asset, "limit": limit, "after": after})
        return models.ListTransactionsAnswer._of(self._api.json("GET", f"/v1/transactions{where}"))

    @operation("listTransactions", fixed=("format", "limit", "after"))
    def export_csv(
        self, *, agent: Optional[str] = None, state: Optional[str] = None, chain: Optional[str] = None, asset: Optional[str] = None
    ) -> str:
        """The newest 10,000 as CSV."""
        where = query({"agent": agent, "state": state, "chain": chain, "asset": asset, "format": "csv"})
        return (self._api.bytes("GET", f"/v1/transactions{where}")).decode()

    @operation("getTransaction")
    def get(self, id: str) -> models.Transaction:
        """With its card: everything that a person needs to decide."""
        return models.Transaction._of(self._api.json("GET", f"/v1/transactions/{segment(id)}"))

    @operation("approveTransaction")
    def approve(self, id: str, digest: str) -> models.Transaction:
        """`digest` is that of the transaction which a person saw. Conflict is raised if it is another one by now."""
        return models.Transaction._of(self._api.json("POST", f"/v1/transactions/{segment(id)}/approve", given(digest=digest)))

    @operation("rejectTransaction")
    def reject(self, id: str, *, note: Optional[str] = None) -> models.Transaction:
        return models.Transaction._of(self._api.json("POST", f"/v1/transactions/{segment(id)}/reject", given(note=note)))

    @operation("cancelTransaction")
    def cancel(self, id: str, *, note: Optional[str] = None) -> models.Transaction:
        """Withdraws it; one that was sent is replaced by a transaction that sends nothing."""
        return models.Transaction._of(self._api.json("POST", f"/v1/transactions/{segment(id)}/cancel", given(note=note)))

    @operation("speedUpTransaction")
    def speed_up(self, id: str, *, note: Optional[str] = None) -> models.Transaction:
        """Sends it again with higher fees."""
        return models.Transaction._of(self._api.json("POST", f"/v1/transactions/{segment(id)}/speed-up", given(note=note)))

    @operation("revokeTransaction")
    def revoke(self, id: str, *, note: Optional[str] = None) -> models.Transaction:
        """Takes back the allowance that it gave: a new transaction, which is to be approved."""
        return models.Transaction._of(self._api.json("POST", f"/v1/transactions/{segment(id)}/revoke", given(note=note)))

    @operation("answerTransaction")
    def answer(
        self, id: str, *, hash: Optional[str] = None, signature: Optional[str] = None, rejected: Optional[bool] = None
    ) -> models.Transaction:
        """What an external wallet did: exactly one of the three."""
        body = given(hash=hash, signature=signature, rejected=rejected)
        return models.Transaction._of(self._api.json("POST", f"/v1/transactions/{segment(id)}/wallet", body))


class Wallets(Group):
    """Wallets that agents spend from. They are added on the machine itself (`paddock wallet`)."""

    @operation("listWallets")
    def list(self) -> List[models.Wallet]:
        return [models.Wallet._of(each) for each in (self._api.json("GET", "/v1/wallets"))["wallets"]]

    @operation("getWalletSpending")
    def spending(self, id: str) -> models.Spending:
        """What all agents together have spent from it (admin)."""
        return models.Spending._of(self._api.json("GET", f"/v1/wallets/{segment(id)}/spending"))

    @operation("connectWallet")
    def connect(self, *, chains: Optional[Sequence[str]] = None, label: Optional[str] = None) -> models.WalletPairing:
        """A URI for a WalletConnect wallet, to be shown as a QR code (admin)."""
        return models.WalletPairing._of(self._api.json("POST", "/v1/wallets/connect", given(chains=chains, label=label)))

    @operation("listWalletSessions")
    def sessions(self) -> List[models.WalletSession]:
        """Sessions with WalletConnect wallets (admin)."""
        return [models.WalletSession._of(each) for each in (self._api.json("GET", "/v1/wallets/sessions"))["sessions"]]

    @operation("removeWalletSession")
    def disconnect(self, id: str) -> None:
        self._api.bytes("DELETE", f"/v1/wallets/sessions/{segment(id)}")


class Signer(Group):
    """The program that holds the keys and decides what is signed."""

    @operation("getSigner")
    def get(self) -> models.SignerStatus:
        return models.SignerStatus._of(self._api.json("GET", "/v1/signer"))

    @operation("pauseSigner", fixed=("paused",))
    def pause(self, *, cancel_pending: Optional[bool] = None) -> models.SignerStatus:
        """The kill switch (admin). Only the owner ends it, on the machine itself."""
        return models.SignerStatus._of(self._api.json("PUT", "/v1/signer", given(paused=True, cancel_pending=cancel_pending)))

    @operation("listSignerAudit")
    def audit(
        self, *, after: Optional[int] = None, limit: Optional[int] = None, verify: Optional[bool] = None
    ) -> models.AuditEntries:
        """The chain of entries (admin). `verify` has the signer check all of it first."""
        params = {"after": after, "limit": limit, "verify": "true" if verify else None}
        return models.AuditEntries._of(self._api.json("GET", f"/v1/signer/audit{query(params)}"))

    @operation("listChains")
    def chains(self) -> List[models.Chain]:
        """The chains of the configuration, with their health."""
        return [models.Chain._of(each) for each in (self._api.json("GET", "/v1/chains"))["chains"]]


class Secrets(Group):
    """Secrets of the tenant. Values go in and never come back."""

    @operation("listSecrets")
    def list(self) -> List[models.Secret]:
        return models.Secrets._of(self._api.json("GET", "/v1/secrets")).secrets

    @operation("setSecret", fixed=("encoding",))
    def set(self, name: str, value: Union[str, bytes], *, metadata: Optional[Mapping[str, str]] = None) -> models.Secret:
        """Sets a secret, or makes a new version of it."""
        return models.Secret._of(self._api.json("PUT", f"/v1/secrets/{segment(name)}", secret_body(value, metadata)))

    @operation("removeSecret")
    def remove(self, name: str) -> None:
        self._api.bytes("DELETE", f"/v1/secrets/{segment(name)}")

    @operation("rotateVault")
    def rotate(self) -> models.RotateVaultAnswer:
        """Rotates the master key of the installation (admin)."""
        return models.RotateVaultAnswer._of(self._api.json("POST", "/v1/vault/rotate", timeout=None))

    @operation("getAuthority")
    def authority(self) -> str:
        """The certificate, as PEM, that sandboxes trust for the hosts whose TLS is intercepted."""
        return (self._api.bytes("GET", "/v1/vault/ca.pem")).decode("ascii")


class Links(Group):
    """Ports of one sandbox, reachable from another."""

    @operation("createLink", fields={"from": "source", "to": "target"})
    def create(self, source: str, target: str, port: int, *, listen: Optional[int] = None) -> models.Link:
        """Connections to `listen` in `source` lead to `port` in `target`. Both are ids or names."""
        return models.Link._of(self._api.json("POST", "/v1/links", given(from_=source, to=target, port=port, listen=listen)))

    @operation("listLinks")
    def list(self) -> List[models.Link]:
        return [models.Link._of(each) for each in (self._api.json("GET", "/v1/links"))["links"]]

    @operation("deleteLink")
    def remove(self, id: str) -> None:
        self._api.bytes("DELETE", f"/v1/links/{segment(id)}")


class Server(Group):
    """The installation: its state and what it can do."""

    @operation("health", "healthz")
    def health(self) -> models.Health:
        """Whether the server answers."""
        return models.Health._of(self._api.json("GET", "/health"))

    @operation("readyz")
    def ready(self) -> models.Health:
        """Whether it is ready; Unavailable is raised if not."""
        return models.Health._of(self._api.json("GET", "/readyz"))

    @operation("getCapabilities")
    def capabilities(self) -> models.Capabilities:
        """Features and limits."""
        return models.Capabilities._of(self._api.json("GET", "/v1/capabilities"))

    @operation("getDialects")
    def dialects(self) -> models.Dialects:
        """Which APIs are served at which address (admin)."""
        return models.Dialects._of(self._api.json("GET", "/v1/dialects"))

    @operation("getPosture")
    def posture(self) -> models.Posture:
        """The isolation features of the machine (admin)."""
        return models.Posture._of(self._api.json("GET", "/v1/posture"))

    @operation("metrics")
    def metrics(self) -> str:
        """Metrics in Prometheus's text format (admin)."""
        return (self._api.bytes("GET", "/metrics")).decode()

    @operation("openapi")
    def openapi(self) -> Dict[str, Any]:
        """The definition of the API."""
        document: Dict[str, Any] = self._api.json("GET", "/openapi.json")
        return document

    @operation("listEgressSets")
    def egress_sets(self) -> models.EgressSetsAnswer:
        """The named sets of hosts, such as "pypi", as the machine has them."""
        return models.EgressSetsAnswer._of(self._api.json("GET", "/v1/egress/sets"))

    @operation("getUsage", fields={"from": "first", "to": "last", "box": "sandbox"})
    def usage(
        self,
        *,
        by: Optional[Sequence[str]] = None,
        first: Optional[str] = None,
        last: Optional[str] = None,
        sandbox: Optional[str] = None,
        provider: Optional[str] = None,
        model: Optional[str] = None,
    ) -> models.GetUsageAnswer:
        """Use and cost of models: `by` some of day, tenant, box, provider and model, from the day `first` to the day `last`."""
        params = {"by": ",".join(by) if by else None, "from": first, "to": last, "box": sandbox, "provider": provider, "model": model}
        return models.GetUsageAnswer._of(self._api.json("GET", f"/v1/usage{query(params)}"))
