"""What may be named as a source by whom: the server fetches it with its own rights, not with those of who asks.

    http(s)://      everybody; addresses inside the operator's network are refused here if they are written out, and
                    by whoever fetches it if a name leads there
    upload://       the owner of the upload
    /path           an owner only inside `source_folders`, after every link was followed
    s3://           an owner only below a prefix that `source_folders` names: the server's key opens all its buckets
    anything else   nobody

An administrator may name whatever the server can read.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from ipaddress import IPv4Address
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import urlsplit

from telecine.addresses import first_inside, written_out
from telecine.apps.transcode.spec import UPLOAD, TranscodeSpec, parse, upload_of
from telecine.engine.accounts.keys import Caller
from telecine.engine.uploads.records import DONE, Upload, none_such
from telecine.errors import BadSpec, NotAllowed, WrongState
from telecine.facts import Json
from telecine.media.ladders.ladder_spec import read_ladder

WEB = ("http", "https")
BUCKET = "s3"
LOOPBACK = IPv4Address("127.0.0.1")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
FindUpload = Callable[[str], Awaitable[Upload]]


def check_wishes(spec: TranscodeSpec, ladders: Mapping[str, Any], usual: str) -> None:
    """Refuse a ladder that there is not, and rungs that the ladder has not. `usual` is the ladder of the settings."""
    names = [step.name for step in read_ladder(usual if spec.ladder is None else spec.ladder, ladders)]
    # A rung of the source's own size is called after the film.
    unknown = [] if "" in names else [name for name in spec.qualities or () if name not in names]
    if unknown:
        raise BadSpec(f"qualities: the ladder has no rung {unknown[0]!r}; it has {', '.join(names)}")


def check_source(source: str, private: Iterable[str] = ()) -> str | None:
    """The scheme of a source; `BadSpec` for places that no worker fetches from. No name is looked up here: whoever
    fetches the source does that. `private` are the addresses that the operator allows."""
    found = _SCHEME.match(source)
    scheme = found[1].lower() if found else None
    if scheme in WEB:
        _check_web(source, tuple(private))
    elif scheme not in (None, BUCKET, UPLOAD.removesuffix("://")):
        raise BadSpec(f"{scheme}:// is no place for a source; give http(s)://, s3://, upload:// or a path")
    return scheme


def _check_web(source: str, private: tuple[str, ...]) -> None:
    try:
        host = urlsplit(source).hostname or ""
    except ValueError:
        raise BadSpec("source: this address is not understood") from None
    address = LOOPBACK if host.rstrip(".") == "localhost" else written_out(host)
    if address is not None and first_inside(host, [str(address)], private) is not None:
        raise BadSpec(
            f"source: {host} is not on the public internet: upload the film instead; "
            "the operator can list it in allow_private_sources"
        )


class SourcePolicy:
    """Looks at specs of the transcode flow before they are submitted by strangers."""

    def __init__(
        self,
        folders: Iterable[str],
        ladders: Mapping[str, Any],
        find_upload: FindUpload,
        *,
        usual_ladder: str,
        private: Iterable[str] = (),
    ) -> None:
        self._ladders, self._usual_ladder = ladders, usual_ladder
        self._private = tuple(private)
        self._prefixes = tuple(f"{place.rstrip('/')}/" for place in folders if _SCHEME.match(place))
        self._folders = tuple(Path(place).resolve() for place in folders if not _SCHEME.match(place))
        self._find_upload = find_upload

    async def __call__(self, spec: Json, caller: Caller) -> None:
        await self.checked(parse(spec), caller)

    async def checked(self, spec: TranscodeSpec, caller: Caller) -> TranscodeSpec:
        """The spec with what is known of its source: a path without links, an upload's size and hash.

        Raises what is wrong with it.
        """
        if "\0" in spec.source:
            raise BadSpec("source: it has a character that cannot be stored: NUL")
        self.sensible(spec)
        scheme = check_source(spec.source, self._private)
        if scheme is None:
            return await self._path(spec, caller)
        if scheme == UPLOAD.removesuffix("://"):
            return await self._upload(spec, caller)
        if scheme == BUCKET:
            self._bucket(spec.source, caller)
        return spec

    def sensible(self, spec: TranscodeSpec) -> None:
        """Refuse wishes that no film could be made by."""
        check_wishes(spec, self._ladders, self._usual_ladder)

    async def _path(self, spec: TranscodeSpec, caller: Caller) -> TranscodeSpec:
        if caller.is_admin:
            return spec
        try:
            path = await asyncio.to_thread(Path(spec.source).resolve)
        except (OSError, ValueError, RuntimeError):
            raise BadSpec(f"{spec.source!r} is not a path") from None
        if not any(path.is_relative_to(folder) for folder in self._folders):
            raise NotAllowed(
                "this path is in none of the folders that owners may name (source_folders): upload the film instead"
            )
        return spec.model_copy(update={"source": str(path)})

    def _bucket(self, source: str, caller: Caller) -> None:
        # Keys of a bucket are plain text: `..` leads nowhere, but some servers would think otherwise.
        inside = source.startswith(self._prefixes) and ".." not in source.split("/")
        if not caller.is_admin and not inside:
            raise NotAllowed("this bucket is in none of the places that owners may name (source_folders)")

    async def _upload(self, spec: TranscodeSpec, caller: Caller) -> TranscodeSpec:
        upload_id = upload_of(spec.source) or ""
        upload = await self._find_upload(upload_id)
        if not caller.may_see(upload.owner):
            raise none_such(upload_id)
        if upload.state != DONE:
            raise WrongState(f"upload {upload_id} has not come to its end: it is {upload.state}")
        known = {"sha256": upload.sha256, "size": upload.length}
        return spec.model_copy(update={**known, "name": spec.name or PurePosixPath(upload.name).stem or None})
