"""The first looks: is this a job that can be done, and what will come of it?"""

from __future__ import annotations

from fractions import Fraction

from telecine.apps.transcode.options import TranscodeOptions
from telecine.apps.transcode.spec import parse
from telecine.apps.transcode.stages.fetch import ladder_of
from telecine.apps.transcode.stages.source import look_at, reach_file, reach_upload, uploaded_origin
from telecine.facts import Done, Outcome
from telecine.flow import Bench
from telecine.media.inputs import is_remote, reach
from telecine.media.ladders.ladder import climb
from telecine.media.plain_json import to_plain

USUAL_RATE = Fraction(25)


async def validate(bench: Bench, options: TranscodeOptions) -> Outcome:
    """The spec makes sense, and its source can be reached: nothing is fetched yet."""
    spec = parse(bench.spec)
    ladder_of(spec, options)
    upload = uploaded_origin(spec)
    if upload is not None:
        return Done(result={"size": await reach_upload(bench, upload, options)})
    if not is_remote(spec.source):
        return Done(result={"size": await reach_file(bench, spec, options)})
    return Done(result={"size": await reach(spec.source, options.gate)})


async def plan(bench: Bench, options: TranscodeOptions) -> Outcome:
    """What is in the source, by its head: refused early, or told which qualities it will have."""
    spec = parse(bench.spec)
    source = await look_at(bench, spec, options)
    if source is None:
        return Done(result={"source": None})
    rungs, skipped = [], []
    if source.picture is not None:
        climbed = climb(ladder_of(spec, options), source.picture, source.picture.rate or USUAL_RATE)
        rungs = [rung.name for rung in climbed.rungs]
        skipped = [to_plain(one) for one in climbed.skipped]
    return Done(result={"source": to_plain(source), "qualities": rungs, "skipped": skipped})
