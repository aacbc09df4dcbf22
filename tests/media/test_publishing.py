"""A version has what people watch, and nothing of what was needed on the way."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from telecine.apps.transcode.plan import TranscodePlan
from telecine.apps.transcode.stages.publish import working_files
from telecine.facts import StoredArtifact
from telecine.media.plain_json import from_plain
from telecine.wiring import housekeeping
from tests.media.transcode_env import Theatre, faults_of, play, small, until

Source = Callable[[str], Path]
Finished = Callable[[Path], None]


def names_of(shelved: list[StoredArtifact]) -> set[str]:
    return {one.kept.name for one in shelved}


def test_a_version_has_only_what_is_watched_and_the_rest_is_freed(source: Source, tmp_path: Path) -> None:
    async def story(house: Theatre) -> None:
        job = await house.completed(small(source("ts-h264-open-gop"), poster=True, sprites=True))
        assert job.subject is not None

        shown = names_of(await house.views.published(*job.subject))

        renditions = {"90p", "180p", "audio-1"}
        assert {name.partition("/")[0] for name in shown if "/" in name} == renditions
        assert {f"{name}/init.mp4" for name in renditions} < shown
        assert {"master.m3u8", "plan.json"} < shown
        assert any(name.endswith(".jpg") for name in shown)
        assert {name for name in shown if name.endswith((".mkv", "index.json"))} == set()
        async with housekeeping(house.parts):
            await until(swept, "the working files are gone")
        assert faults_of(await house.exported(job.id), house.folder / "readers") == []

    async def swept() -> bool:
        left = {path.name for path in (tmp_path / "artifacts").rglob("*") if path.is_file()}
        return not left & {"remuxed.mkv", "index.json", "source"}

    play(story, tmp_path)


def test_what_was_given_up_or_begun_by_another_encoder_is_left(finished: Finished, tmp_path: Path) -> None:
    async def story(house: Theatre) -> None:
        job = await house.ended(1)
        made = await house.views.kept(job.id)
        named = {one.id: one for one in made}
        [kept] = [one.kept for one in made if one.kept.name == "plan.json"]
        plan = from_plain(TranscodePlan, json.loads((tmp_path / "artifacts" / str(kept.key)).read_bytes()))

        given_up = working_files(plan, made, ["90p"])
        begun = working_files(replace(plan, init_stage="fallback", video_stage="again"), made, [])

        assert working_files(plan, made, []) == ()
        assert {named[id_].kept.name.partition("/")[0] for id_ in given_up} == {"90p"}
        assert {named[id_].kept.name.partition("/")[0] for id_ in begun} == {"90p", "180p"}
        assert {named[id_].stage for id_ in begun} == {"fetch", "video"}

    finished(tmp_path)
    play(story, tmp_path)
