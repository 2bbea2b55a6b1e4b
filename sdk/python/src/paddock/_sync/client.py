# Made by sdk/python/generate from _async/client.py. Edit that instead.
"""The client: an address, a key, and everything that the API has."""

from __future__ import annotations

from typing import Optional, TypeVar

import httpx

from .._settings import find
from .api import Api
from .files import Urls
from .network import Previews
from .resources import (
    Agents,
    Audit,
    Events,
    Images,
    Keys,
    Links,
    Secrets,
    Server,
    Signer,
    Snapshots,
    Tenants,
    Transactions,
    Wallets,
    Webhooks,
    Workspaces,
)
from .sandbox import Sandboxes

C = TypeVar("C", bound="Paddock")


class Paddock:
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
        transport: Optional[httpx.BaseTransport] = None,
    ) -> None:
        self._api = Api(find(url, key, ca), timeout, retries, transport)
        self.sandboxes = Sandboxes(self)
        self.snapshots = Snapshots(self._api)
        self.workspaces = Workspaces(self._api)
        self.images = Images(self._api)
        self.keys = Keys(self._api)
        self.tenants = Tenants(self._api)
        self.events = Events(self._api)
        self.audit = Audit(self._api)
        self.agents = Agents(self._api)
        self.transactions = Transactions(self._api)
        self.wallets = Wallets(self._api)
        self.signer = Signer(self._api)
        self.webhooks = Webhooks(self._api)
        self.secrets = Secrets(self._api)
        self.links = Links(self._api)
        self.server = Server(self._api)
        self.urls = Urls(self._api)
        self.previews = Previews(self._api)

    @property
    def url(self) -> str:
        return self._api.settings.url

    @property
    def key(self) -> str:
        return self._api.settings.key or ""

    def close(self) -> None:
        """Closes the connections."""
        self._api.close()

    def __enter__(self: C) -> C:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
