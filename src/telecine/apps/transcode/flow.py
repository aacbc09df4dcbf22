"""The transcode flow: any video to adaptive streams, exact to the frame, resumed at the segment.

    validate ─▶ plan ─▶ fetch ─┬─▶ audio × track ─┬──────────────────▶ package ─▶ verify ─▶ publish
                               └─▶ video × chunk ─┴─▶ poster, sprites ──────────────────────▲

With hardware, `encoder` opens it before `video`, and `fallback` and `again` come after it: see `tasks`.

Handlers run inside the worker: they move bytes and talk to the engine. All that touches media does so in a sandboxed
child process of its own.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from traceback import format_exception
from typing import Any

from telecine.apps.transcode.names import NAME
from telecine.apps.transcode.options import TranscodeOptions
from telecine.apps.transcode.plan import PICTURES
from telecine.apps.transcode.stages.encode import encode_chunk, encode_track
from telecine.apps.transcode.stages.encode_tasks import fall_back, open_encoder
from telecine.apps.transcode.stages.fetch import fetch
from telecine.apps.transcode.stages.package import package
from telecine.apps.transcode.stages.pictures import make_poster, make_sprites
from telecine.apps.transcode.stages.publish import publish
from telecine.apps.transcode.stages.validate import plan, validate
from telecine.apps.transcode.stages.verify import verify
from telecine.errors import ArtifactError, MediaError, Refused, is_full
from telecine.facts import Failed, Outcome
from telecine.flow import Bench, Flow

_PLANNING: dict[str, Any] = {"phase": "planning", "stall": 60.0, "version": PICTURES}
_FETCHING: dict[str, Any] = {"phase": "downloading_inputs", "stall": 120.0, "version": PICTURES}
_SOUND: dict[str, Any] = {"fan_out": True, "stall": 120.0, "version": PICTURES}
Work = Callable[[Bench, TranscodeOptions], Awaitable[Outcome]]


def transcode_flow(options: TranscodeOptions) -> Flow:
    """The flow with its options bound to its handlers."""
    flow = Flow(NAME)

    def stage(name: str, work: Work, **about: Any) -> None:
        async def handler(bench: Bench) -> Outcome:
            return await spoken(work, bench, options)

        flow.stage(name, run="inline", **about)(handler)

    stage("validate", validate, phase="validating", title="Check the request", weight=0.2, backoff=2.0)
    stage("plan", plan, needs=["validate"], title="Look at the source", weight=0.3, **_PLANNING)
    stage("fetch", fetch, needs=["plan"], title="Fetch and index", weight=3.0, **_FETCHING)
    stage("audio", encode_track, needs=["fetch"], title="Encode sound", weight=4.0, **_SOUND)
    quick = {"attempts": 2, "backoff": 1.0, "stall": 60.0}
    stage("encoder", open_encoder, needs=["fetch"], title="Open the encoder", fan_out=True, weight=0.1, **quick)
    coding: dict[str, Any] = {"fan_out": True, "stall": 300.0, "version": PICTURES}
    stage("video", encode_chunk, needs=["fetch", "encoder"], title="Encode pictures", weight=80.0, **coding)
    planned = ["fetch", "encoder", "fallback"]
    stage("fallback", fall_back, needs=["fetch", "encoder", "video"], title="Look for gaps", weight=0.1, stall=60.0)
    stage("again", encode_chunk, needs=planned, title="Encode pictures in software", weight=0.0, **coding)
    pictures = {"needs": [*planned, "video", "again"], "optional": True, "stall": 120.0}
    stage("poster", make_poster, title="Choose a poster", weight=0.5, **pictures)
    stage("sprites", make_sprites, title="Make sprites", weight=1.5, **pictures)
    late = {"phase": "uploading_outputs"}
    everything = [*planned, "audio", "video", "again"]
    stage("package", package, needs=everything, title="Write playlists", weight=0.5, **late)
    stage("verify", verify, needs=[*planned, "package"], title="Check the result", weight=9.0, stall=300.0, **late)
    last = [*planned, "package", "verify", "poster", "sprites"]
    stage("publish", publish, needs=last, title="Publish", weight=0.2, **late)
    return flow


async def spoken(work: Work, bench: Bench, options: TranscodeOptions) -> Outcome:
    """What media errors mean for the task: some will not be cured by another try."""
    try:
        return await work(bench, options)
    except Refused as error:
        return Failed(str(error), code=error.code, permanent=True)
    except MediaError as error:
        return Failed(str(error), code=error.code, permanent=bool(getattr(error, "permanent", False)))
    except ArtifactError as error:
        return Failed(str(error), code=error.code)
    except OSError as error:
        bench.log("".join(format_exception(error)), level="error")
        return failed_by_system(error)


def failed_by_system(error: OSError) -> Failed:
    """A disk or a connection failed, which another attempt may find in order. The sentence holds no path."""
    code, what = ("no_space", "the disk is full") if is_full(error) else ("io_error", "a file or a connection failed")
    return Failed(f"{what}: {error.strerror or type(error).__name__}", code=code)
