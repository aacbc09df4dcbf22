"""tus 1.0 on the wire: its headers, read and written, and what it answers when they make no sense."""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from email.utils import formatdate
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import Depends
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from telecine.api.http.problems import KIND, of_error
from telecine.api.http.request_id import current_id
from telecine.api.http.routing import Route
from telecine.errors import TelecineError
from telecine.facts import SECOND, Instant

VERSION = "1.0.0"
EXTENSIONS = "creation,creation-with-upload,checksum,termination,expiration"
ALGORITHMS = ("sha1", "sha256")
CONTENT = "application/offset+octet-stream"
VERSIONED = ("POST", "PATCH", "HEAD")  # who asks in any other way need not speak tus
OVERRIDE = "X-HTTP-Method-Override"
MISMATCH = 460
MAX_DIGITS = 18
MAX_METADATA = 8_192

_PAIR = re.compile(r"([^\s,]+)(?: ([A-Za-z0-9+/=]*))?")
_DIGEST = re.compile(r"sha-256=:?([A-Za-z0-9+/=]+):?", re.IGNORECASE)


class TusError(TelecineError):
    """An answer that tus asks for and that is no other error of ours."""

    def __init__(self, status: int, code: str, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.headers = dict(headers or {})

    def answer(self) -> Response:
        title = "Checksum Mismatch" if self.status == MISMATCH else HTTPStatus(self.status).phrase
        body: dict[str, Any] = {
            "type": "about:blank",
            "title": title,
            "status": self.status,
            "code": self.code,
            "detail": str(self),
        }
        if request_id := current_id():
            body["instance"] = request_id
        return JSONResponse(body, status_code=self.status, media_type=KIND, headers=self.headers)


class TusRoute(Route):
    """A route whose every answer, also a refusal, says which tus is spoken here."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def spoken(request: Request) -> Response:
            try:
                response = await handle(request)
            except TusError as error:
                response = error.answer()
            except TelecineError as error:
                response = of_error(error)
            response.headers["Tus-Resumable"] = VERSION
            response.headers["Cache-Control"] = "no-store"
            return response

        return spoken


def check_version(request: Request) -> None:
    """Whoever speaks another tus is told which one is spoken here; after he was asked who he is."""
    said = request.headers.get("tus-resumable")
    if said != VERSION and (said is not None or request.method in VERSIONED):
        raise TusError(
            412,
            "bad_version",
            f"tus {VERSION} is spoken here: send the header Tus-Resumable: {VERSION}",
            {"Tus-Version": VERSION},
        )


# The last parameter of a route: the one before says who may come.
Spoken = Annotated[None, Depends(check_version)]


def bad(message: str) -> TusError:
    return TusError(400, "bad_request", message)


def number(headers: Headers, name: str) -> int | None:
    """A header that is a count of bytes; None without it."""
    text = headers.get(name)
    if text is None:
        return None
    if not text.isascii() or not text.isdigit() or len(text) > MAX_DIGITS:
        raise bad(f"{name} is a number of bytes, not {text[:40]!r}")
    return int(text)


def metadata(headers: Headers) -> dict[str, str]:
    """What the sender says of the file: `name ZmlsbQ==,ladder d2Vi`."""
    found: dict[str, str] = {}
    text = headers.get("upload-metadata", "")
    if len(text) > MAX_METADATA:
        raise bad(f"Upload-Metadata is longer than {MAX_METADATA} characters")
    for part in text.split(",") if text.strip() else ():
        pair = _PAIR.fullmatch(part.strip())
        if pair is None or pair[1] in found:
            raise bad(f"Upload-Metadata is pairs of a name and its value in Base64, not {part.strip()[:60]!r}")
        try:
            found[pair[1]] = base64.b64decode(pair[2] or "", validate=True).decode()
        except (binascii.Error, UnicodeDecodeError):
            raise bad(f"Upload-Metadata: the value of {pair[1][:60]!r} is not text in Base64") from None
    return found


@dataclass(frozen=True, slots=True)
class Checksum:
    """What the bytes of one request must hash to."""

    algorithm: str
    digest: bytes

    def begin(self) -> Any:
        return hashlib.new(self.algorithm, usedforsecurity=False)


def checksum(headers: Headers) -> Checksum | None:
    text = headers.get("upload-checksum")
    if text is None:
        return None
    algorithm, _, value = text.strip().partition(" ")
    if algorithm not in ALGORITHMS:
        raise bad(f"Upload-Checksum: {algorithm[:40]!r} is not known here; use {' or '.join(ALGORITHMS)}")
    digest = _unpacked(value)
    if len(digest) != hashlib.new(algorithm, usedforsecurity=False).digest_size:
        raise bad(f"Upload-Checksum is {algorithm}, a space and the hash in Base64")
    return Checksum(algorithm, digest)


def promised_sha256(headers: Headers) -> str | None:
    """The hash of a whole file that was sent with it, as hexadecimal digits; any of three headers."""
    if (plain := headers.get("x-checksum-sha256")) is not None:
        if not re.fullmatch("[0-9a-fA-F]{64}", plain):
            raise bad("X-Checksum-Sha256 is 64 hexadecimal digits")
        return plain.lower()
    text = headers.get("content-digest") or headers.get("digest")
    found = _DIGEST.search(text) if text is not None else None
    if found is None:
        return None
    digest = _unpacked(found[1])
    if len(digest) != hashlib.sha256().digest_size:
        raise bad("the digest is no SHA-256 in Base64")
    return digest.hex()


def _unpacked(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        return b""


def http_date(at: Instant) -> str:
    return formatdate(at / SECOND, usegmt=True)
