"""What may be named as a source by whom: the server fetches it with its own rights, not with those of who asks.

    http(s)://      everybody; addresses inside the operator's network are refused by whoever fetches it
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
from pathlib import Path, PurePosixPath
from typing import Any

from telecine.engine.keys import Caller
from telecine.engine.uploads import DONE, Upload, none_such
from telecine.errors import BadSpec, NotAllowed, WrongState
from telecine.facts import Json
from telecine.flows.transcode.spec import UPLOAD, TranscodeSpec, parse, upload_of
from telecine.media.ladder_spec import read_ladder

WEB = ("http", "https")
BUCKET = "s3"
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
FindUpload = Callable[[str], Awaitable[Upload]]


class Allowing:
    """Looks at specs of the transcode flow before they are submitted by strangers."""

    def __init__(self, folders: Iterable[str], ladders: Mapping[str, Any], find_upload: FindUpload) -> None:
        self._ladders = ladders
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
        if spec.ladder is not None:
            read_ladder(spec.ladder, self._ladders)
        found = _SCHEME.match(spec.source)
        scheme = found[1].lower() if found else None
        if scheme is None:
            return await self._path(spec, caller)
        if scheme == UPLOAD.removesuffix("://"):
            return await self._upload(spec, caller)
        if scheme == BUCKET:
            self._bucket(spec.source, caller)
        elif scheme not in WEB:
            raise BadSpec(f"{scheme}:// is no place for a source; give http(s)://, s3://, upload:// or a path")
        return spec

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
