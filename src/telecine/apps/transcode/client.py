"""Videos for Python programs: `client.app("transcode")`, or `Videos(engine)` for those who want its types."""

from __future__ import annotations

from telecine.apps.transcode.names import KIND
from telecine.apps.transcode.videos.status import VideoStatus
from telecine.apps.transcode.videos.video_view import Video, VideoPage, page_of, videos_of
from telecine.engine import Engine
from telecine.engine.jobs import delete_subject
from telecine.engine.queries.view_models import Page


class Videos:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def get(self, video_id: str) -> VideoPage:
        """One video in full: status, versions, jobs, qualities with their progress; `NotFound` if there is none."""
        return await page_of(self._engine, video_id)

    async def list(
        self,
        *,
        owner: str | None = None,
        status: VideoStatus | None = None,
        cursor: str | None = None,
        limit: int = 100,
    ) -> Page[Video]:
        """A page of videos, the newest first. One by `status` may be short: go on while there is a `next`."""
        return await videos_of(self._engine, owner=owner, status=status, cursor=cursor, limit=limit)

    async def delete(self, video_id: str, *, actor: str = "") -> None:
        """Cancel its jobs and hide it for good; its bytes go when the last worker has released it."""
        await delete_subject.delete(self._engine, (KIND, video_id), actor=actor)
