"""Which stages of the transcode flow belong to one release, and which encoder a film gets."""

from __future__ import annotations

from dataclasses import replace

import pytest

from telecine.apps.transcode.flow import transcode_flow
from telecine.apps.transcode.options import TranscodeOptions
from telecine.apps.transcode.plan import PICTURES
from telecine.apps.transcode.spec import parse
from telecine.apps.transcode.stages.encode_tasks import family_for
from telecine.media.ladders.ladder import LADDERS, climb
from tests.unit.test_media_ladder import FILM, a_picture


def test_what_looks_at_the_source_and_what_encodes_it_have_one_version() -> None:
    """Else an old worker of a mixed fleet would look at a film that new ones encode."""
    versions = {stage.name: stage.version for stage in transcode_flow(TranscodeOptions()).graph.stages}

    assert {name for name, version in versions.items() if version == PICTURES} == {
        "plan", "fetch", "audio", "video", "again"
    }  # fmt: skip


@pytest.mark.parametrize(("lossless", "family"), [(False, "nvenc"), (True, "x264")])
def test_a_film_with_a_lossless_rung_is_not_given_to_hardware_that_cannot_make_it(lossless: bool, family: str) -> None:
    small, *others = LADDERS["web-compact"]
    rungs = climb((replace(small, lossless=lossless), *others), a_picture(1920, 1080), FILM).rungs

    assert family_for(parse({"source": "/film.mp4"}), ["nvenc"], rungs).name == family
