"""Which published qualities may stand beside new ones."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from telecine.apps.transcode.plan import PICTURES, AudioPlan, SourceLocation, TranscodePlan
from telecine.apps.transcode.stages.carried_renditions import check_same_grid, same_tracks
from telecine.errors import MediaRefused
from telecine.media.orders import AudioTrackOrder
from telecine.media.source import Picture, Sound
from telecine.media.timeline.grid import timing_of

SDR = Picture(stream=0, codec="h264", width=64, height=36, time_base=Fraction(1, 25))


def a_plan(picture: Picture) -> TranscodePlan:
    timing = timing_of(Fraction(25), 50, segment=Fraction(2), gop=Fraction(2))
    about = {"length": Fraction(2), "borders": (Fraction(0),), "rungs": (), "skipped": (), "sounds": (), "inits": {}}
    return TranscodePlan(
        origin=SourceLocation(), format="mp4", picture=picture, timing=timing, pictures=PICTURES, **about
    )  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "picture", [replace(SDR, transfer=16), replace(SDR, transfer=18), replace(SDR, interlaced=True)]
)
def test_pictures_that_another_release_maps_differently_are_not_mixed(picture: Picture) -> None:
    plan = a_plan(picture)

    check_same_grid(plan, plan)
    with pytest.raises(MediaRefused) as caught:
        check_same_grid(plan, replace(plan, pictures=1))

    assert caught.value.code == "other_grid"


def test_plain_pictures_of_an_older_release_stay() -> None:
    check_same_grid(a_plan(SDR), replace(a_plan(SDR), pictures=1))


def test_sound_of_another_length_is_made_again() -> None:
    sound = Sound(stream=1, codec="aac", rate=48000, channels=2, time_base=Fraction(1, 48000))
    plan = replace(a_plan(SDR), sounds=(AudioPlan(track=AudioTrackOrder(name="audio-1"), sound=sound, start=0),))

    assert same_tracks(plan, plan, {"audio-1"}) == {"audio-1"}
    assert same_tracks(plan, plan, set()) == set()
    assert same_tracks(plan, replace(plan, sound_length=Fraction(3, 2)), {"audio-1"}) == set()
