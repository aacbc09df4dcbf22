"""What the media routes keep for the life of the server, and the addresses under which they are found."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from urllib.parse import quote

from telecine.api.http.context import ServerContext
from telecine.apps.transcode.names import KIND
from telecine.apps.transcode.stages.package import MASTER
from telecine.apps.transcode.videos import links
from telecine.apps.transcode.videos.playlist_cache import PlaylistCache
from telecine.engine.queries.published_files import PublishedFiles
from telecine.facts import Instant

ROOM = "media"


@dataclass(slots=True)
class MediaState:
    house: ServerContext
    watching: PublishedFiles
    screening: PlaylistCache
    _secret: str | None = field(default=None, repr=False)

    async def secret(self) -> str:
        """Read once: whoever changes it in the database restarts the servers."""
        if self._secret is None:
            self._secret = (await self.signing())[0]
        return self._secret

    async def signing(self) -> tuple[str, Instant]:
        return await self.house.engine.queries.secret_and_time(links.SECRET)


def room_of(house: ServerContext) -> MediaState:
    if ROOM not in house.rooms:
        watching = house.engine.published_files(KIND)
        screening = PlaylistCache(house.engine.queries, house.artifacts, house.world.mono)
        house.rooms[ROOM] = MediaState(house, watching, screening)
    room: MediaState = house.rooms[ROOM]
    return room


@dataclass(frozen=True, slots=True, kw_only=True)
class MediaUrls:
    """Where a film and what belongs to it are."""

    master: str | None = None
    poster: str | None = None
    thumbnails: str | None = None
    preview: str | None = None

    def under(self, base: str) -> MediaUrls:
        whole = {one.name: getattr(self, one.name) for one in fields(MediaUrls)}
        return MediaUrls(**{name: path and base + path for name, path in whole.items()})


@dataclass(frozen=True, slots=True, kw_only=True)
class Playback(MediaUrls):
    """Where a video is watched, without a key, until `expires_at`: whoever has such an address may watch. `urls` has
    the same in full, for players elsewhere."""

    urls: MediaUrls
    expires_at: Instant


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayableVideo:
    """What there is of a video to be watched: a version, pictures beside it, a job whose preview can be."""

    video: str
    version: int | None
    poster: str | None = None
    thumbnails: str | None = None
    growing: int | None = None


async def playback(house: ServerContext, show: PlayableVideo, asked: str) -> Playback:
    """`asked`: the address under which whoever asks has reached us; it counts where the settings name none."""
    secret, now = await room_of(house).signing()
    until = links.ends(now, house.settings.playback_hours)
    public = house.settings.public_url

    def address(reach: links.Reach, path: str) -> str:
        return f"/media/t/{links.signed(secret, show.video, reach, until)}/{quote(show.video, safe='')}/{path}"

    def beside(name: str | None) -> str | None:
        return None if name is None or show.version is None else address("w", f"v{show.version}/{name}")

    paths = MediaUrls(
        master=None if show.version is None else address("w", MASTER),
        poster=beside(show.poster),
        thumbnails=beside(show.thumbnails),
        preview=None if show.growing is None else address("p", f"preview/{show.growing}/{MASTER}"),
    )
    urls = paths.under(public or asked.rstrip("/"))
    shown = urls if public else paths
    same = {one.name: getattr(shown, one.name) for one in fields(MediaUrls)}
    return Playback(**same, urls=urls, expires_at=until)
