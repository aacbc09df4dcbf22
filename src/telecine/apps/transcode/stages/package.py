"""Package: playlists from what was recorded. Nothing is joined, copied or renamed: they name the pieces as they lie.

<job>/package@1/0/<token>/master.m3u8
<job>/package@1/0/<token>/720p/index.m3u8  ──▶  ../../../../../<job>/video@2/3/1/720p/00012.m4s
"""

from __future__ import annotations

import json

from telecine.apps.transcode.options import TranscodeOptions
from telecine.apps.transcode.stages.recorded_rows import INIT, RecordedRows, collect, dropped_by
from telecine.apps.transcode.stages.stage_inputs import PLAN, all_pieces, plan_of
from telecine.errors import ChildFailed
from telecine.facts import Done, Outcome
from telecine.flow import Bench
from telecine.media.hls import playlists
from telecine.media.hls.playlists import Kind
from telecine.media.plain_json import to_plain

# From a playlist's folder up to the root of all artifacts: job, stage, position, token, and its own folder.
TO_ROOT = "../" * 5
MASTER = "master.m3u8"
LISTS: dict[Kind, str] = {"media": "index.m3u8", "iframes": "iframes.m3u8"}


async def package(bench: Bench, options: TranscodeOptions) -> Outcome:
    plan = plan_of(bench)
    dropped = dropped_by(bench.brief.results.get(plan.video_stage))
    recorded = collect(plan, await all_pieces(bench, plan), dropped)
    if plan.rungs and not recorded.film.videos:
        raise ChildFailed("every rung was given up, so there is nothing to publish", code="no_rungs", permanent=True)
    for name, text in texts_of(recorded).items():
        path = bench.scratch / name.replace("/", "-")
        path.write_text(text)
        await bench.keep(name, path)
    path = bench.scratch / PLAN
    path.write_text(json.dumps(to_plain(plan)))
    await bench.keep(PLAN, path)
    film = recorded.film
    return Done(
        result={
            "master": MASTER,
            "dropped": dropped,
            "sizes": {one.name: sum(piece.size for piece in one.pieces) for one in film.renditions},
        }
    )


def texts_of(recorded: RecordedRows) -> dict[str, str]:
    """All playlists by the name that they are kept under; the master comes last: what it names is there."""

    def uri(kind: Kind, rung: str, number: int) -> str:
        if kind in LISTS:
            return f"{rung}/{LISTS[kind]}"
        return f"{TO_ROOT}{recorded.kept[rung, INIT if kind == 'init' else number].key}"

    film = recorded.film
    texts = {f"{one.name}/{LISTS['media']}": playlists.media(film, one.name, uri) for one in film.renditions}
    texts |= {f"{one.name}/{LISTS['iframes']}": playlists.iframes(film, one.name, uri) for one in film.videos}
    return {**texts, MASTER: playlists.master(film, uri)}
