"""What becomes of an upload: the wishes that came with it, and the one transaction that makes it a video with a job."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import PurePosixPath, PureWindowsPath
from typing import Any

from telecine.api.uploads.handler import UploadWishes
from telecine.apps.transcode.names import KIND, NAME
from telecine.apps.transcode.spec import UPLOAD, TranscodeSpec, digest, parse
from telecine.apps.transcode.videos.source_policy import check_wishes
from telecine.apps.transcode.videos.start import LOOK_BACK, is_there, mark_of, video_id
from telecine.apps.transcode.videos.upload_check import looker_of
from telecine.engine import Engine, Submission
from telecine.engine.jobs.submit import priority_of
from telecine.engine.queries.job_lists import JobFilter
from telecine.engine.uploads.records import Upload
from telecine.engine.uploads.submit_upload import submit_upload
from telecine.errors import BadSpec
from telecine.facts import JobId, Status
from telecine.json_limits import check_json
from telecine.settings import Settings
from telecine.wiring import Parts

# What browsers' clients say of a file by themselves, and what senders remark for their own use.
REMARKS = ("filename", "filetype", "type", "relativePath", "lastModified")
OWN_REMARK = "x-"
NOT_WISHES = ("source", "size")
MAX_NAME = 255
NAMELESS = "upload"


class FilmUploads:
    """Takes uploads: each becomes a video with a job."""

    def __init__(self, parts: Parts) -> None:
        self._engine = parts.engine
        self._look = looker_of(parts)

    def wishes(self, said: Mapping[str, str], settings: Settings) -> UploadWishes:
        return wishes_of(said, settings.ladders, settings.ladder)

    async def check(self, handle: int, size: int) -> None:
        await self._look(handle, size)

    async def finish(self, upload: Upload, sha256: str) -> None:
        await become(self._engine, upload, sha256)


def wishes_of(said: Mapping[str, str], ladders: Mapping[str, Any], usual_ladder: str) -> UploadWishes:
    """The wishes among what the sender says of a file; `BadSpec` in one sentence if they make no sense."""
    name = _called(said)
    asked = {key: _value(key, text) for key, text in said.items() if key not in (*REMARKS, "name", "title")}
    asked = {key: value for key, value in asked.items() if not key.startswith(OWN_REMARK)}
    priority = asked.pop("priority", None)
    if wrong := next((key for key in asked if key in NOT_WISHES), None):
        raise BadSpec(f"{wrong!r} is not for an upload to say")
    asked["name"] = (said.get("title") or _stem(name))[:MAX_NAME]
    spec = parse({"source": f"{UPLOAD}{'0' * 32}", **asked})
    check_wishes(spec, ladders, usual_ladder)
    plain = spec.model_dump(exclude_defaults=True, exclude={"source"})
    return UploadWishes(name, plain if priority is None else {**plain, "priority": priority_of(priority)})


def _called(said: Mapping[str, str]) -> str:
    """The last part of whatever the sender calls it: a label for people, never a path."""
    told = said.get("name") or said.get("filename") or said.get("title") or ""
    last = PurePosixPath(PureWindowsPath(told).as_posix()).name
    printable = "".join(char for char in last if char.isprintable()).strip()
    return printable[:MAX_NAME] or NAMELESS


def _stem(name: str) -> str:
    return PurePosixPath(name).stem or name


def _value(key: str, text: str) -> Any:
    """Headers and addresses hold text only: lists are parted by commas, a ladder of one's own is JSON."""
    if key == "qualities":
        return [part.strip() for part in text.split(",") if part.strip()]
    if key == "ladder" and text.startswith("["):
        check_json(text, "ladder")
        try:
            return json.loads(text)
        except ValueError:
            raise BadSpec("ladder: rungs are JSON, or the name of a ladder") from None
    return text


# -- The submit --------------------------------------------------------------------------------------


async def become(engine: Engine, upload: Upload, sha256: str) -> None:
    """Make it a video with a job, exactly once however often and wherever this is asked.

    The same film with the same wishes was there before: then that is the answer, and these bytes are not needed.
    """
    wishes = {**upload.spec}
    priority = wishes.pop("priority", "normal")
    spec = parse({**wishes, "source": f"{UPLOAD}{upload.id}", "sha256": sha256, "size": upload.length})
    video = video_id(spec, upload.owner)
    deleted = await engine.subjects.deleted_at((KIND, video))
    before = await _made_before(engine, spec, video, upload.owner) if deleted is None else None
    one = Submission(
        flow=NAME,
        spec=spec.model_dump(exclude_defaults=True),
        owner=upload.owner,
        subject=(KIND, video),
        priority=priority,
        dedupe_key=mark_of(spec) if deleted is None else None,
    )
    await submit_upload(engine, upload, sha256, one, before)


async def _made_before(engine: Engine, spec: TranscodeSpec, video: str, owner: str) -> JobId | None:
    """The job that has made this already, if its result is still there."""
    page = await engine.queries.jobs(JobFilter(flow=NAME, owner=owner, subject=(KIND, video)), limit=LOOK_BACK)
    for line in page.items:
        if line.status != Status.COMPLETED:
            continue
        job = await engine.queries.job(line.id)
        asked = parse(job.spec)
        if asked.sha256 == spec.sha256 and digest(asked) == digest(spec) and await is_there(engine, job):
            return JobId(job.id)
    return None
