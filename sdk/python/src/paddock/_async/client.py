"""The client: an address, a key, and everything that the API has."""

from __future__ import annotations

from typing import Optional, TypeVar

import httpx

from .._settings import find
from .api import AsyncApi
from .files import AsyncUrls
from .network import AsyncPreviews
from .resources import (
    AsyncAgents,
    AsyncAudit,
    AsyncEvents,
    AsyncImages,
    AsyncKeys,
    AsyncLinks,
    AsyncSecrets,
    AsyncServer,
    AsyncSigner,
    AsyncSnapshots,
    AsyncTenants,
    AsyncTransactions,
    AsyncWallets,
    AsyncWebhooks,
    AsyncWorkspaces,
)
from .sandbox import AsyncSandboxes

C = TypeVar("C", bound="AsyncPaddock")


class AsyncPaddock:
    """A client of one server.

    Address and key are those of PADDOCK_URL and PADDOCK_API_KEY unless they are given, or else this machine's daemon and its
    key file. `timeout`, in seconds, is for each read; calls that wait for something (a command, a snapshot) have none.
    `retries` are for requests that did nothing or can be repeated. `transport` replaces the connections.
    """

    def __init__(
        self,
        url: Optional[str] = None,
        key: Optional[str] = None,
        *,
        ca: Optional[str] = None,
        timeout: float = 60.0,
        retries: int = 3,
        transport: Optional[httpx.AsyncBaseTransport] = None,
    ) -> None:
        self._api = AsyncApi(find(url, key, ca), timeout, retries, transport)
        self.sandboxes = AsyncSandboxes(self)
        self.snapshots = AsyncSnapshots(self._api)
        self.workspaces = AsyncWorkspaces(self._api)
        self.images = AsyncImages(self._api)
        self.keys = AsyncKeys(self._api)
        self.tenants = AsyncTenants(self._api)
        self.events = AsyncEvents(self._api)
        self.audit = AsyncAudit(self._api)
        self.agents = AsyncAgents(self._api)
        self.transactions = AsyncTransactions(self._api)
        self.wallets = AsyncWallets(self._api)
        self.signer = AsyncSigner(self._api)
        self.webhooks = AsyncWebhooks(self._api)
        self.secrets = AsyncSecrets(self._api)
        self.links = AsyncLinks(self._api)
        self.server = AsyncServer(self._api)
        self.urls = AsyncUrls(self._api)
        self.previews = AsyncPreviews(self._api)

    @property
    def url(self) -> str:
        return self._api.settings.url

    @property
    def key(self) -> str:
        return self._api.settings.key or ""

    async def aclose(self) -> None:
        """Closes the connections."""
        await self._api.aclose()

    async def __aenter__(self: C) -> C:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()
