"""One letter, one request: to an address that was checked, signed, within its time, and no further.

Receivers are strangers. Redirects are not followed, proxies of the environment are not used, of an answer the status
counts and at most 64 KB are read, as they come and never unpacked. Nothing that a receiver says is stored or logged,
and of its address only the host: the rest may be a secret.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from ssl import SSLContext

import httpx

from telecine.addresses import Resolve, first_inside, resolve
from telecine.engine.webhooks.subscriptions import WEB_PORTS, check_url
from telecine.errors import BadSpec, TelecineError
from telecine.triage import Verdict, triage

log = logging.getLogger(__name__)

MAX_ANSWER = 64 << 10
BLOCK = 16 << 10
READ_SECONDS = 1.0
MAX_PAUSE = 3_600.0


@dataclass(frozen=True, slots=True)
class ReceiverReply:
    """What a receiver said, and for how long it wants to be left alone."""

    status: int
    pause: float = 0.0


class DeliveryNotSent(TelecineError):
    """No answer came; the message says why."""

    code = "not_sent"


class WebhookRequestSender:
    """Sends. `private` are the places inside the operator's network that may be asked; `trust` says whose certificates
    are good, if not those of the usual authorities."""

    def __init__(
        self,
        *,
        timeout: float,
        private: Sequence[str] = (),
        resolve: Resolve = resolve,
        trust: SSLContext | None = None,
    ) -> None:
        self._timeout = timeout
        self._private = tuple(private)
        self._resolve = resolve
        # No connection is used twice: two hosts may share an address, and a certificate is checked for one of them.
        self._client = httpx.AsyncClient(
            verify=trust or True,
            trust_env=False,
            follow_redirects=False,
            timeout=timeout,
            limits=httpx.Limits(max_keepalive_connections=0),
        )

    async def close(self) -> None:
        await self._client.aclose()

    async def send(self, url: str, body: bytes, headers: Mapping[str, str]) -> ReceiverReply:
        """Post it; `DeliveryNotSent` if no status came in time, or if it may not be sent there."""
        deadline = asyncio.get_running_loop().time() + self._timeout
        try:
            async with asyncio.timeout_at(deadline):
                response = await self._ask(url, body, headers)
        except TimeoutError:
            raise DeliveryNotSent(f"no answer within {self._timeout:g} seconds") from None
        except BadSpec as error:
            raise DeliveryNotSent(str(error)) from None
        except DeliveryNotSent:
            raise
        except Exception as error:  # of the network, the client, or a transport that closed under it
            if triage(error) is Verdict.BUG:
                log.warning("a delivery could not be sent: %r", error)
            raise DeliveryNotSent(_told(error)) from None
        return await _answer(response, deadline)

    async def _ask(self, url: str, body: bytes, headers: Mapping[str, str]) -> httpx.Response:
        """The head of the answer of the first checked address that can be connected to."""
        check_url(url, self._private)
        place = httpx.URL(url)
        own = {"Content-Type": "application/json", "Accept-Encoding": "identity", "User-Agent": "telecine"}
        failure: httpx.TransportError | None = None
        for address in await self._addresses(place):
            request = self._client.build_request(
                "POST",
                place.copy_with(host=address),
                content=body,
                headers={**own, **headers, "Host": place.netloc.decode()},
                # The certificate must be the name's, not the address's.
                extensions={"sni_hostname": place.host},
            )
            try:
                return await self._client.send(request, stream=True)
            except (httpx.ConnectError, httpx.ConnectTimeout) as error:
                failure = error
        raise failure or DeliveryNotSent(f"the host {place.host} has no address")

    async def _addresses(self, place: httpx.URL) -> Sequence[str]:
        try:
            found = await self._resolve(place.host, place.port or WEB_PORTS[place.scheme])
        except (OSError, UnicodeError):
            raise DeliveryNotSent(f"the host {place.host} is not known") from None
        if (inside := first_inside(place.host, found, self._private)) is not None:
            raise DeliveryNotSent(
                f"{place.host} is at {inside}, which is not on the public internet; "
                "the operator can list it in allow_private_webhooks"
            )
        return found


async def _answer(response: httpx.Response, deadline: float) -> ReceiverReply:
    """The status says it all; of the rest a little is read, so that a receiver in good faith can finish."""
    until = min(deadline, asyncio.get_running_loop().time() + READ_SECONDS)
    left = MAX_ANSWER
    try:
        with suppress(Exception):  # it has answered: what becomes of the rest makes no difference
            async with asyncio.timeout_at(until):
                async for block in response.aiter_raw(BLOCK):
                    left -= len(block)
                    if left <= 0:
                        break
        return ReceiverReply(response.status_code, _pause(response.headers.get("retry-after", "")))
    finally:
        with suppress(Exception):
            await response.aclose()


def _told(error: Exception) -> str:
    """Not the error's own text: it may repeat the address, or what the receiver said."""
    match error:
        case httpx.ConnectError() if "CERTIFICATE" in str(error):
            return "its certificate is not valid for this host"
        case httpx.ConnectError():
            return "it could not be connected to"
        case httpx.ConnectTimeout() | httpx.TimeoutException():
            return "no answer came in time"
        case httpx.RemoteProtocolError():
            return "it hung up, or answered with something that is not HTTP"
        case _:
            return "the connection broke"


def _pause(text: str) -> float:
    return min(float(text), MAX_PAUSE) if text.isdecimal() and len(text) < 7 else 0.0
