"""A sandbox and the world outside: ports, egress, secrets, models."""

from __future__ import annotations

import base64
from typing import Any, Dict, List, Literal, Mapping, Optional, Sequence, Union

import httpx

from .. import models, types
from .._http import Content, given, query, segment
from .._operations import operation
from .api import AsyncApi
from .socket import AsyncTunnel

Open = Literal["keep", "close"]
Targets = Union[str, Sequence[str]]


def secret_body(value: Union[str, bytes], metadata: Optional[Mapping[str, str]]) -> Dict[str, Any]:
    if isinstance(value, str):
        return given(value=value, metadata=metadata)
    return given(value=base64.b64encode(value).decode(), encoding="base64", metadata=metadata)


class AsyncPorts:
    """Servers in a sandbox, reached from outside."""

    def __init__(self, api: AsyncApi, sandbox: str) -> None:
        self._api, self._sandbox = api, sandbox

    @operation("listPorts", fixed=("port",))
    async def list(self) -> models.Ports:
        """The listening ports with their addresses, and the token that opens them."""
        return models.Ports._of(await self._api.json("GET", f"{self._sandbox}/ports"))

    @operation("listPorts")
    async def url(self, port: int) -> str:
        """The address of a port, whether something listens there or not."""
        return str((await self._api.json("GET", f"{self._sandbox}/ports{query({'port': port})}"))["url"])

    @operation("portGet", "portHead", "portPost", "portPut", "portPatch", "portDelete", "portOptions")
    async def request(
        self,
        method: str,
        port: int,
        path: str = "/",
        *,
        content: Optional[Content] = None,
        json: Any = None,
        headers: Optional[Mapping[str, str]] = None,
    ) -> httpx.Response:
        """Sends a request to a server in the sandbox. The path may have a query. The answer is the server's own, whatever its
        status; 502 means that nothing listens."""
        where = f"{self._sandbox}/ports/{port}/{path.lstrip('/')}"
        return await self._api.response(method.upper(), where, content=content, document=json, headers=headers)

    @operation("createPreview")
    async def preview(self, port: int, *, expires_seconds: Optional[int] = None) -> models.CreatePreviewAnswer:
        """A signed link to a port, for people and programs without a key."""
        return models.CreatePreviewAnswer._of(await self._api.json("POST", f"{self._sandbox}/previews", given(port=port, expires_seconds=expires_seconds)))

    @operation("openTunnel")
    def tunnel(self, port: int) -> AsyncTunnel:
        """A TCP connection to a port."""
        return AsyncTunnel(self._api, f"{self._sandbox}/tunnel/{port}")


class AsyncPreviews:
    """Servers in sandboxes by the signed links of `ports.preview`. No key is sent."""

    def __init__(self, api: AsyncApi) -> None:
        self._api = api

    @operation("previewGet", "previewHead", "previewPost", "previewPut", "previewPatch", "previewDelete", "previewOptions")
    async def request(
        self, method: str, url: str, *, content: Optional[Content] = None, json: Any = None, headers: Optional[Mapping[str, str]] = None
    ) -> httpx.Response:
        """The URL is that of the preview, or one below it. Under a domain of its own, a browser gets the ticket as a cookie on its
        first visit; here it is sent as one at once."""
        parsed = httpx.URL(url)
        ticket = parsed.params.get("paddock_ticket")
        if ticket:
            url, headers = str(parsed.copy_remove_param("paddock_ticket")), {**(headers or {}), "Cookie": f"paddock_preview={ticket}"}
        return await self._api.response(method.upper(), url, content=content, document=json, headers=headers, authorize=False)


class AsyncEgress:
    """What a sandbox may connect to."""

    def __init__(self, api: AsyncApi, sandbox: str) -> None:
        self._api, self._path = api, f"{sandbox}/egress"

    @operation("getEgress")
    async def get(self) -> models.EgressAnswer:
        """The policy in force, and where it comes from."""
        return models.EgressAnswer._of(await self._api.json("GET", self._path))

    @operation("setEgress", fields={"default": "policy", "rules": "policy", "allow": "policy", "deny": "policy", "limits": "policy", "ech": "policy"})
    async def set(self, policy: types.EgressPolicy, *, open: Optional[Open] = None) -> models.EgressAnswer:
        """Replaces the policy; `open` says what becomes of connections that are not allowed any more."""
        return models.EgressAnswer._of(await self._api.json("PUT", self._path + query({"open": open}), policy))

    @operation("resetEgress")
    async def reset(self, *, open: Optional[Open] = None) -> models.EgressAnswer:
        """Removes the sandbox's own policy."""
        return models.EgressAnswer._of(await self._api.json("DELETE", self._path + query({"open": open})))

    async def _rules(self, action: str, targets: Targets, inject: Optional[Sequence[types.EgressInject]], open: Optional[Open]) -> models.EgressAnswer:
        body = given(action=action, targets=[targets] if isinstance(targets, str) else list(targets), inject=inject)
        return models.EgressAnswer._of(await self._api.json("POST", f"{self._path}/rules{query({'open': open})}", body))

    @operation("addEgressRules", fixed=("action",))
    async def allow(self, targets: Targets, *, inject: Optional[Sequence[types.EgressInject]] = None, open: Optional[Open] = None) -> models.EgressAnswer:
        """Allows hosts, networks, URLs or sets such as "pypi". `inject` adds secrets to requests there."""
        return await self._rules("allow", targets, inject, open)

    @operation("addEgressRules", fixed=("action", "inject"))
    async def deny(self, targets: Targets, *, open: Optional[Open] = None) -> models.EgressAnswer:
        return await self._rules("deny", targets, None, open)

    @operation("createEgressToken")
    async def token(self, allowed_hosts: Sequence[str], *, ttl_seconds: Optional[int] = None) -> models.CreateEgressTokenAnswer:
        """A token for the sandbox's proxy that allows these hosts at most."""
        body = given(allowed_hosts=list(allowed_hosts), ttl_seconds=ttl_seconds)
        return models.CreateEgressTokenAnswer._of(await self._api.json("POST", f"{self._path}/token", body))

    @operation("listSandboxEgressSets")
    async def sets(self) -> models.EgressSetsAnswer:
        """The named sets, with their hosts, as this sandbox has them."""
        return models.EgressSetsAnswer._of(await self._api.json("GET", f"{self._path}/sets"))

    @operation("getEgressLog")
    async def log(
        self, *, after: Optional[int] = None, limit: Optional[int] = None, verdict: Optional[Literal["allow", "deny"]] = None
    ) -> models.GetEgressLogAnswer:
        """What was allowed and denied; `would_allow` of a denied one is a target for `allow`."""
        where = f"{self._path}/log{query({'after': after, 'limit': limit, 'verdict': verdict})}"
        return models.GetEgressLogAnswer._of(await self._api.json("GET", where))


class AsyncSandboxSecrets:
    """Secrets of one sandbox. Values go in and never come back."""

    def __init__(self, api: AsyncApi, sandbox: str) -> None:
        self._api, self._path = api, f"{sandbox}/secrets"

    @operation("listSandboxSecrets")
    async def list(self) -> List[models.Secret]:
        return models.Secrets._of(await self._api.json("GET", self._path)).secrets

    @operation("setSandboxSecret", fixed=("encoding",))
    async def set(self, name: str, value: Union[str, bytes], *, metadata: Optional[Mapping[str, str]] = None) -> models.Secret:
        """Sets a secret, or makes a new version of it. It overrides the tenant's of the same name."""
        return models.Secret._of(await self._api.json("PUT", f"{self._path}/{segment(name)}", secret_body(value, metadata)))

    @operation("removeSandboxSecret")
    async def remove(self, name: str) -> None:
        await self._api.bytes("DELETE", f"{self._path}/{segment(name)}")


ALLOWANCE = (
    "requests_per_minute", "tokens_per_minute", "parallel", "day", "week", "month", "warn", "log_bodies", "providers", "endpoints", "models",
)  # fmt: skip
FROM_ALLOWANCE = dict.fromkeys(ALLOWANCE, "allowance")


class AsyncSandboxAi:
    """A sandbox's access to models: limits, spending, calls."""

    def __init__(self, api: AsyncApi, sandbox: str) -> None:
        self._api, self._path = api, f"{sandbox}/ai"

    @operation("getSandboxAi")
    async def get(self) -> models.SandboxAi:
        """Token, paths, limits and spending."""
        return models.SandboxAi._of(await self._api.json("GET", self._path))

    @operation("setSandboxAi", fields=FROM_ALLOWANCE)
    async def set(self, allowance: types.AiAllowance) -> models.SandboxAi:
        """Replaces the sandbox's settings; {} removes them."""
        return models.SandboxAi._of(await self._api.json("PUT", self._path, allowance))

    @operation("changeSandboxAi", fields=FROM_ALLOWANCE)
    async def change(self, allowance: types.AiAllowance) -> models.SandboxAi:
        """Changes some of the settings; None removes one."""
        return models.SandboxAi._of(await self._api.json("PATCH", self._path, allowance))

    @operation("rotateSandboxAiToken")
    async def rotate_token(self, *, ttl_seconds: Optional[int] = None) -> models.SandboxAi:
        """A new token for use from outside; the old one is not valid any more."""
        return models.SandboxAi._of(await self._api.json("POST", f"{self._path}/token", given(ttl_seconds=ttl_seconds)))

    @operation("listSandboxAiCalls")
    async def calls(self, *, limit: Optional[int] = None, before: Optional[int] = None) -> models.ListSandboxAiCallsAnswer:
        """The newest calls first."""
        return models.ListSandboxAiCallsAnswer._of(await self._api.json("GET", f"{self._path}/calls{query({'limit': limit, 'before': before})}"))

    @operation("getSandboxAiCall")
    async def call(self, call: int) -> models.GetSandboxAiCallAnswer:
        """One call, with its text where that is kept."""
        return models.GetSandboxAiCallAnswer._of(await self._api.json("GET", f"{self._path}/calls/{call}"))

    @operation("aiGet", "aiPost")
    async def request(self, method: str, provider: str, path: str, *, token: str, json: Any = None) -> httpx.Response:
        """Calls a model through the gateway, with the token of `get()`. The answer is the provider's own."""
        headers = {"Authorization": f"Bearer {token}"}
        return await self._api.response(method.upper(), f"/api/{segment(provider)}/{path.lstrip('/')}", document=json, headers=headers, authorize=False)
