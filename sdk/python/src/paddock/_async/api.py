"""Sends requests: connections, errors, and attempts after the first."""

from __future__ import annotations

import json
from typing import Any, Mapping, Optional

import httpx

from .._compat import async_sleep
from .._http import ApiBase, Content, headers_of
from .._settings import Settings
from .._transport import AsyncTransport
from ..errors import ConnectionLost, NotFound, PaddockError, of_answer


class AsyncApi(ApiBase):
    def __init__(self, settings: Settings, timeout: float, retries: int, transport: Optional[httpx.AsyncBaseTransport]) -> None:
        super().__init__(settings, timeout, retries)
        self.transport: httpx.AsyncBaseTransport = transport or AsyncTransport(self.verify())
        self.foreign: Optional[httpx.AsyncBaseTransport] = None

    def transport_for(self, request: httpx.Request) -> httpx.AsyncBaseTransport:
        """Signed URLs may lead to another host, whose certificate is to be checked even where the API has no TLS."""
        if request.url.scheme == self.base.scheme or request.url.scheme != "https":
            return self.transport
        if self.foreign is None:
            self.foreign = httpx.AsyncHTTPTransport()
        return self.foreign

    async def send(self, request: httpx.Request) -> httpx.Response:
        """The answer, its body unread; an error's answer is raised."""
        attempt, uncertain = 0, False
        while True:
            failure: PaddockError
            try:
                response = await self.transport_for(request).handle_async_request(request)
                if response.status_code < 400:
                    return response
                failure = of_answer(response.status_code, headers_of(response), await self.body(request, response))
                if uncertain and request.method == "DELETE" and isinstance(failure, NotFound):
                    return httpx.Response(204, stream=httpx.ByteStream(b""))  # the attempt before did it
            except httpx.TransportError as error:
                failure = self.lost(request, error)
                failure.__cause__ = error
                uncertain = uncertain or isinstance(failure, ConnectionLost)
            pause = self.wait(request, attempt, failure)
            if pause is None:
                raise failure
            attempt += 1
            await async_sleep(pause)

    async def body(self, request: httpx.Request, response: httpx.Response) -> bytes:
        """The whole body of an answer."""
        stream = response.stream
        assert isinstance(stream, httpx.AsyncByteStream)
        try:
            return b"".join([chunk async for chunk in stream])
        except httpx.TransportError as error:
            raise self.lost(request, error) from error
        finally:
            await stream.aclose()

    async def bytes(self, method: str, path: str, **options: Any) -> bytes:
        request = self.build(method, path, **options)
        return await self.body(request, await self.send(request))

    async def json(self, method: str, path: str, document: Any = None, **options: Any) -> Any:
        request = self.build(method, path, document=document, **options)
        return json.loads(await self.body(request, await self.send(request)) or b"null")

    async def response(
        self,
        method: str,
        path: str,
        *,
        content: Optional[Content] = None,
        document: Any = None,
        headers: Optional[Mapping[str, str]] = None,
        authorize: bool = True,
    ) -> httpx.Response:
        """An answer that is for the caller to judge, such as that of a server in a sandbox."""
        request = self.build(method, path, document=document, content=content, headers=headers, authorize=authorize)
        try:
            response = await self.transport_for(request).handle_async_request(request)
        except httpx.TransportError as error:
            raise self.lost(request, error) from error
        body = await self.body(request, response)
        return httpx.Response(response.status_code, headers=response.headers, content=body, request=request)

    async def aclose(self) -> None:
        await self.transport.aclose()
        if self.foreign is not None:
            await self.foreign.aclose()
