"""The transcode flow: any video to adaptive streams, exact to the frame, resumed at the segment.

    validate ─▶ plan ─▶ fetch ─┬─▶ audio × track ─┬──────────────────▶ package ─▶ verify ─▶ publish
                               └─▶ video × chunk ─┴─▶ poster, sprites ──────────────────────▲

Handlers run inside the worker: they move bytes and talk to the engine. All that touches media does so in a sandboxed
child process of its own.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from telecine.errors import MediaError, Refused
from telecine.facts import Failed, Outcome
from telecine.flow import Bench, Flow
from telecine.flows.transcode.encoding import encode_chunk, encode_track
from telecine.flows.transcode.fetching import fetch
from telecine.flows.transcode.looking import plan, validate
from telecine.flows.transcode.options import Options
from telecine.flows.transcode.packaging import package
from telecine.flows.transcode.pictures import make_poster, make_sprites
from telecine.flows.transcode.publishing import publish
from telecine.flows.transcode.verifying import verify

NAME = "transcode"
Work = Callable[[Bench, Options], Awaitable[Outcome]]


def transcode_flow(options: Options) -> Flow:
    """The flow with its options bound to its handlers."""
    flow = Flow(NAME)

    def stage(name: str, work: Work, **about: Any) -> None:
        async def handler(bench: Bench) -> Outcome:
            return await spoken(work, bench, options)

        flow.stage(name, run="inline", **about)(handler)

    stage("validate", validate, phase="validating", title="Check the request", weight=0.2, backoff=2.0)
    stage("plan", plan, needs=["validate"], phase="planning", title="Look at the source", weight=0.3, stall=60.0)
    stage("fetch", fetch, needs=["plan"], phase="downloading_inputs", title="Fetch and index", weight=3.0, stall=120.0)
    stage("audio", encode_track, needs=["fetch"], title="Encode sound", fan_out=True, weight=4.0, stall=120.0)
    stage("video", encode_chunk, needs=["fetch"], title="Encode pictures", fan_out=True, weight=80.0, stall=300.0)
    pictures = {"needs": ["fetch", "video"], "optional": True, "stall": 120.0}
    stage("poster", make_poster, title="Choose a poster", weight=0.5, **pictures)
    stage("sprites", make_sprites, title="Make sprites", weight=1.5, **pictures)
    late = {"phase": "uploading_outputs"}
    stage("package", package, needs=["fetch", "audio", "video"], title="Write playlists", weight=0.5, **late)
    stage("verify", verify, needs=["fetch", "package"], title="Check the result", weight=9.0, stall=300.0, **late)
    last = ["fetch", "package", "verify", "poster", "sprites"]
    stage("publish", publish, needs=last, title="Publish", weight=0.2, **late)
    return flow


async def spoken(work: Work, bench: Bench, options: Options) -> Outcome:
    """What media errors mean for the task: some will not be cured by another try."""
    try:
        return await work(bench, options)
    except Refused as error:
        return Failed(str(error), code=error.code, permanent=True)
    except MediaError as error:
        return Failed(str(error), code=error.code, permanent=bool(getattr(error, "permanent", False)))
