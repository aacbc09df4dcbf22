"""A source behind http(s)://, asked at a checked address. Each redirect is checked like the first address."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

import httpx

from telecine.errors import MediaRefused
from telecine.media.inputs.address_policy import InputPolicy
from telecine.media.inputs.download import BLOCK, DownloadStream, TransferBroken, changed

REDIRECTS = 5
REDIRECTING = (301, 302, 303, 307, 308)
PATIENCE = (408, 425, 429)  # these and 5xx pass
PORTS = {"http": 80, "https": 443}

_CONTENT_RANGE = re.compile(r"bytes (\d+)-\d+/(\d+|\*)")


@dataclass(frozen=True, slots=True)
class WebFile:
    """One address."""

    url: httpx.URL
    gate: InputPolicy

    @classmethod
    def at(cls, source: str, gate: InputPolicy) -> WebFile:
        return cls(_parsed(source), gate)

    @property
    def shown(self) -> str:
        """Without a query or a password: signed links are secrets."""
        return _shown(self.url)

    @asynccontextmanager
    async def open(self, at: int, mark: str | None) -> AsyncIterator[DownloadStream]:
        headers = {"Accept": "*/*", "Accept-Encoding": "identity", "User-Agent": "telecine"}
        if at and mark:
            headers |= {"Range": f"bytes={at}-", "If-Range": mark}
        timeout = httpx.Timeout(self.gate.read_seconds, connect=self.gate.connect_seconds)
        # The environment's proxies would resolve the name once more.
        async with httpx.AsyncClient(trust_env=False, timeout=timeout) as client:
            response = await self._follow(client, headers)
            try:
                yield self._stream(response, mark)
            finally:
                await response.aclose()

    async def _follow(self, client: httpx.AsyncClient, headers: Mapping[str, str]) -> httpx.Response:
        url = self.url
        for _ in range(REDIRECTS + 1):
            response = await self._ask(client, url, headers)
            if response.status_code not in REDIRECTING:
                return response
            await response.aclose()
            url = self._redirected(url, response.headers.get("location", ""))
        raise MediaRefused(
            f"the source {self.shown} redirects more than {REDIRECTS} times; give the last address", code="redirects"
        )

    async def _ask(self, client: httpx.AsyncClient, url: httpx.URL, headers: Mapping[str, str]) -> httpx.Response:
        """Send one request to the first checked address that answers."""
        failure: Exception | None = None
        for address in await self.gate.addresses(url.host, url.port or PORTS[url.scheme]):
            request = client.build_request(
                "GET",
                url.copy_with(host=address),
                headers={**headers, "Host": url.netloc.decode()},
                # The certificate must be the name's, not the address's.
                extensions={"sni_hostname": url.host},
            )
            try:
                return await client.send(request, stream=True)
            except (httpx.ConnectError, httpx.ConnectTimeout) as error:
                failure = error
            except httpx.TransportError as error:
                raise TransferBroken(_said(error)) from error
        raise TransferBroken(_said(failure)) from failure

    def _redirected(self, url: httpx.URL, location: str) -> httpx.URL:
        try:
            target = str(url.join(location))
        except httpx.InvalidURL:
            target = ""
        if not location or not target:
            raise MediaRefused(f"the source {self.shown} redirects to nowhere; give its address", code="redirects")
        return _parsed(target)

    def _stream(self, response: httpx.Response, mark: str | None) -> DownloadStream:
        self._check_status(response)
        coding = response.headers.get("content-encoding", "identity")
        if coding != "identity":
            raise MediaRefused(
                f"the source {self.shown} comes packed ({coding}) though it was asked for as it is; "
                "have its server send it plain",
                code="source_packed",
            )
        length = response.headers.get("content-length", "")
        first, total = 0, int(length) if length.isdigit() else None
        found = _mark(response.headers)
        if response.status_code == httpx.codes.PARTIAL_CONTENT:
            first, total = _range(response.headers.get("content-range", ""))
            # It answers If-Range: the mark still holds, even if it is not repeated.
            found = found or mark
        return DownloadStream(at=first, total=total, mark=found, blocks=_blocks(response))

    def _check_status(self, response: httpx.Response) -> None:
        status = response.status_code
        if status in (200, 206):
            return
        said = f"{status} {response.reason_phrase}".strip()
        if status == httpx.codes.REQUESTED_RANGE_NOT_SATISFIABLE:
            raise changed(self.shown)
        if status in PATIENCE or status >= 500:
            raise TransferBroken(f"it answers {said}")
        if status in (401, 403, 407):
            raise MediaRefused(
                f"the source {self.shown} may not be read: it answers {said}; give an address that may",
                code="source_forbidden",
            )
        raise MediaRefused(
            f"the source {self.shown} is not there: it answers {said}; check the address", code="source_missing"
        )


async def _blocks(response: httpx.Response) -> AsyncIterator[bytes]:
    try:
        async for block in response.aiter_raw(BLOCK):
            yield block
    except httpx.TransportError as error:
        raise TransferBroken(_said(error)) from error


def _parsed(source: str) -> httpx.URL:
    """An address that may be asked at all. Redirects come here, too."""
    try:
        url = httpx.URL(source)
    except httpx.InvalidURL as error:
        raise MediaRefused(f"the source's address is not understood: {error}", code="source_missing") from error
    if url.scheme not in PORTS:
        raise MediaRefused(
            f"the source leads to {url.scheme}://; only http:// and https:// are asked", code="unknown_scheme"
        )
    if not url.host:
        raise MediaRefused(f"the source's address {_shown(url)} names no host", code="source_missing")
    return url


def _shown(url: httpx.URL) -> str:
    return str(url.copy_with(userinfo=b"", query=None, fragment=None))


def _mark(headers: httpx.Headers) -> str | None:
    """A strong ETag, else the time of the last change: what If-Range takes."""
    tag: str = headers.get("etag", "")
    return tag if tag and not tag.startswith("W/") else headers.get("last-modified")


def _range(text: str) -> tuple[int, int | None]:
    found = _CONTENT_RANGE.fullmatch(text)
    if found is None:
        raise TransferBroken(f"the answer's range {text!r} is not understood")
    return int(found[1]), int(found[2]) if found[2] != "*" else None


def _said(error: Exception | None) -> str:
    return str(error) or type(error).__name__
