"""What a stranger's worker has made is looked at before it is recorded: what is right passes, no lie does."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from telecine.apps.transcode.stages.inspection import BadSegment, SegmentInspector
from telecine.artifacts import Artifacts
from telecine.facts import Brief, JobId, KeptArtifact, Lease, StoredArtifact, TaskId, WorkerId
from telecine.media.mp4.box_walk import walk
from tests.media.make_video import Film, Shot, shoot
from tests.media.transcode_env import Theatre, play, small


@dataclass
class Made:
    """A film that was made, and all that is known of it."""

    artifacts: Artifacts
    folder: Path
    results: dict[str, Any]
    inputs: dict[tuple[str, int], Any]
    shelved: list[StoredArtifact]

    def lease(self, stage: str, position: int = 0) -> Lease:
        found = self.inputs.get((stage, position))
        place = {"stage": stage, "version": 1, "position": position, "attempt": 1, "max_attempts": 3}
        task = TaskId(100 * (1 + list(self.results).index(stage)) + position)
        return Lease(task, 1, WorkerId(1), 0, JobId(1), "transcode", spec={}, input=found, **place)

    def piece(self, name: str) -> StoredArtifact:
        return next(one for one in self.shelved if one.kept.name == name)

    def inspection(self) -> SegmentInspector:
        async def brief(lease: Lease) -> Brief:
            return Brief(results=self.results)

        async def shelved(lease: Lease, stages: Sequence[str]) -> list[StoredArtifact]:
            return [one for one in self.shelved if one.stage in stages]

        return SegmentInspector(brief, shelved)

    async def read(self, kept: KeptArtifact) -> bytes:
        """As the server does it for an inspector."""
        data = await self.artifacts.read(str(kept.key), 0, kept.size)
        if hashlib.sha256(data).hexdigest() != kept.sha256:
            raise ValueError("its bytes do not hash to what is said of them")
        return data

    def stored(self, name: str, data: bytes, kept: KeptArtifact) -> KeptArtifact:
        """The same record, of other bytes."""
        path = self.folder / "stranger" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        key = str(path.relative_to(self.folder))
        return replace(kept, key=key, size=len(data), sha256=hashlib.sha256(data).hexdigest())

    def bytes_of(self, kept: KeptArtifact) -> bytes:
        return (self.folder / str(kept.key)).read_bytes()


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    folder = tmp_path_factory.mktemp("inspected")
    film = shoot(folder / "film.mp4", Film(shots=(Shot(count=85),)))
    found: list[Made] = []

    async def story(house: Theatre) -> None:
        job = await house.completed(small(film, poster=True))
        rows = await house.sql(
            "select s.name, t.position, t.input, t.result from task t join stage s on s.job_id = t.job_id"
            f" and s.number = t.stage where t.job_id = {job.id}"
        )
        results = {row["name"]: json.loads(row["result"] or "null") for row in rows}
        inputs = {(row["name"], row["position"]): json.loads(row["input"] or "null") for row in rows}
        # What only the work needed is freed with the publication; its inits and segments stay.
        root = Path(house.parts.settings.artifacts_url)
        found.append(Made(Artifacts(str(root)), root, results, inputs, await house.views.kept(job.id)))

    play(story, folder)
    return found[0]


def refused(made: Made, lease: Lease, kept: KeptArtifact) -> str:
    with pytest.raises(BadSegment) as error:
        asyncio.run(made.inspection()(lease, kept, made.read))
    assert error.value.code == "bad_segment"
    return str(error.value)


def test_everything_that_our_own_workers_make_passes(made: Made) -> None:
    inspection = made.inspection()

    async def look() -> int:
        count = 0
        for one in made.shelved:
            if one.kept.key is not None and (made.folder / one.kept.key).exists():
                await inspection(made.lease(one.stage, one.position), one.kept, made.read)
                count += one.kept.name.endswith(".m4s")
        return count

    seen = asyncio.run(look())

    assert seen == 12  # two rungs and a track of four segments


def at(data: bytes, *path: str) -> int:
    """Where the body of a box begins."""
    start, end = 0, len(data)
    box = None
    for name in path:
        box = next(one for one in walk(data, start, end) if one.type == name)
        start, end = box.body, box.end
    assert box is not None
    return box.body


def tampered(data: bytes, offset: int, value: int) -> bytes:
    return data[:offset] + bytes([data[offset] ^ value]) + data[offset + 1 :]


BYTES: dict[str, Callable[[bytes], bytes]] = {
    "tfdt": lambda data: tampered(data, at(data, "moof", "traf", "tfdt") + 11, 1),
    "track": lambda data: tampered(data, at(data, "moof", "traf", "tfhd") + 7, 1),
    "sample count": lambda data: tampered(data, at(data, "moof", "traf", "trun") + 7, 1),
    "cut off": lambda data: data[:-10],
    "longer": lambda data: data + b"\0" * 16,
    "no boxes": lambda data: b"<html>" + data[6:],
    "empty": lambda data: b"",
}


@pytest.mark.parametrize("way", BYTES)
@pytest.mark.parametrize("name", ["90p/00001.m4s", "audio-1/00001.m4s"])
def test_a_segment_with_wrong_bytes_is_refused(made: Made, name: str, way: str) -> None:
    one = made.piece(name)
    kept = made.stored(f"{way}/{name}", BYTES[way](made.bytes_of(one.kept)), one.kept)

    assert name in refused(made, made.lease(one.stage, one.position), kept)


FACTS: dict[str, dict[str, Any]] = {
    "another number": {"number": 0},
    "another rung": {"rung": "180p"},
    "another length": {"duration": 1},
    "another start": {"start": 0},
    "another count": {"frames": 1},
    "other fragments": {"fragments": [[0, 10, 1, 5]]},
    "no fragments": {"fragments": None},
    "no number": {"number": "x"},
}


@pytest.mark.parametrize("lie", FACTS)
@pytest.mark.parametrize("name", ["90p/00001.m4s", "audio-1/00001.m4s"])
def test_a_segment_that_says_wrong_things_of_itself_is_refused(made: Made, name: str, lie: str) -> None:
    one = made.piece(name)
    kept = replace(one.kept, facts={**one.kept.facts, **FACTS[lie]})

    assert name in refused(made, made.lease(one.stage, one.position), kept)


def test_a_whole_segment_in_the_place_of_another_is_refused(made: Made) -> None:
    """It is right in itself, and says so: only the plan knows that it does not belong there."""
    right, other = made.piece("90p/00000.m4s"), made.piece("90p/00001.m4s")
    kept = replace(other.kept, name="90p/00000.m4s", facts={**other.kept.facts, "number": 0})
    foreign = replace(made.piece("180p/00001.m4s").kept, name="90p/00001.m4s")

    assert "begins at" in refused(made, made.lease(right.stage, right.position), kept)
    assert "90p" in refused(made, made.lease(other.stage, other.position), replace(foreign, facts=other.kept.facts))


def test_a_segment_of_another_chunk_is_not_for_this_task_to_make(made: Made) -> None:
    one = made.piece("90p/00003.m4s")
    elsewhere = made.lease("video", 1 - one.position)

    assert "not for this task" in refused(made, elsewhere, one.kept)


def test_a_record_that_names_other_bytes_is_refused(made: Made) -> None:
    one = made.piece("90p/00001.m4s")

    assert "hash" in refused(made, made.lease(one.stage, one.position), replace(one.kept, sha256="0" * 64))


@pytest.mark.parametrize(
    ("stage", "name", "data"),
    [
        ("package", "evil.html", b"<script>"),
        ("package", "master.m3u8", b"<script>"),
        ("poster", "poster.jpg", b"<svg>"),
        ("poster", "poster.svg", b"<svg>"),
        ("fetch", "90p/init.mp4", b"no boxes"),
    ],
)
def test_what_would_be_shown_must_be_what_its_name_says(made: Made, stage: str, name: str, data: bytes) -> None:
    kept = made.stored(name, data, KeptArtifact(name=name, token=1))

    assert name in refused(made, made.lease(stage), kept)
