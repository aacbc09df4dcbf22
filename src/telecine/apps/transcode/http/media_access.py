"""Who may watch: the owner with a key or a session, whoever has a signed link, or everybody if `open_media` says so.

What somebody may not see is as absent as what does not exist.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends
from starlette.requests import HTTPConnection

from telecine.api.http.auth import address_of, caller_or_nobody
from telecine.api.http.context import house_of
from telecine.apps.transcode.http.media_state import room_of
from telecine.apps.transcode.videos import links
from telecine.engine.accounts.keys import Caller, Scope
from telecine.errors import KeyInvalid, NotFound
from telecine.facts import SECOND, Instant

YEAR_SECONDS = 31_536_000


@dataclass(frozen=True, slots=True)
class Viewer:
    """Somebody who wants to watch one video."""

    video: str
    link: links.SignedLink | None
    caller: Caller | None
    is_open: bool

    def may_see(self, owner: str, now: Instant, *, shown: bool) -> None:
        """`NotFound` for what this viewer may not see; `shown`: it is published, now or until not long ago."""
        if self.link is not None:
            if self.link.expires_at <= now:
                raise KeyInvalid("this link has expired: ask for the video's playback addresses again")
            allowed = shown or self.link.reach == "p"
        else:
            mine = self.caller is not None and self.caller.may_see(owner)
            allowed = mine or (self.is_open and shown)
        if not allowed:
            raise self.nothing()

    def nothing(self) -> NotFound:
        return NotFound(f"there is no such thing to watch of video {self.video!r}")

    def keeping(self, now: Instant) -> str:
        """How long what never changes may be kept: not by others if it came by a key, nor beyond the link."""
        if self.link is not None:
            return f"public, max-age={min(YEAR_SECONDS, (self.link.expires_at - now) // SECOND)}, immutable"
        return f"{'public' if self.is_open else 'private'}, max-age={YEAR_SECONDS}, immutable"


async def viewer_of(connection: HTTPConnection) -> Viewer:
    house = house_of(connection)
    video, token = connection.path_params["video"], connection.path_params.get("token")
    is_open = house.settings.open_media
    if "\0" in video:
        raise NotFound("there is no such video")
    if token is not None:
        link = links.read(await room_of(house).secret(), video, token)
        if link is None:
            house.rates.stranger(address_of(connection))
            raise KeyInvalid("this link is not valid: ask for the video's playback addresses again")
        return Viewer(video, link, None, False)
    try:
        caller = await caller_or_nobody(connection)
    except KeyInvalid:
        if not is_open:
            raise
        caller = None  # a session that has ended takes nothing from who needs none
    if caller is not None and caller.scope is Scope.WORKER:
        caller = None
    if caller is None and not is_open:
        house.rates.stranger(address_of(connection))
        raise KeyInvalid("to watch this needs a key, a session, or a signed link: GET /api/v1/videos/{id} gives one")
    return Viewer(video, None, caller, is_open)


Watches = Annotated[Viewer, Depends(viewer_of)]
