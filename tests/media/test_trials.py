"""A worker offers the encoders that it really has: each was tried."""

import asyncio
from pathlib import Path

from telecine.apps.transcode.encoder_probe import labels_of, possible
from telecine.media.ladders.encoder_families import FAMILIES
from telecine.world import World


def test_an_encoder_that_encodes_is_offered_and_one_that_does_not_is_not() -> None:
    families = [FAMILIES["x264-alt"], FAMILIES["nvenc"]]

    assert asyncio.run(labels_of(families, World())) == ("alt",)


def test_without_a_card_nothing_is_tried(tmp_path: Path) -> None:
    assert possible(tmp_path) == []


def test_with_a_card_every_family_in_hardware_is_tried(tmp_path: Path) -> None:
    (tmp_path / "dri").mkdir()
    (tmp_path / "dri" / "renderD128").touch()

    assert {family.name for family in possible(tmp_path)} >= {"nvenc", "qsv", "amf"}
