"""Which version a subject shows, and which stay: people decide, in turn with publishing and retention."""

import asyncio

import pytest

from telecine.engine.jobs import versions
from telecine.engine.jobs.graph_cache import GraphCache
from telecine.engine.maintenance.retention import Ages, retire_jobs, retire_versions
from telecine.errors import NotFound, WrongState
from telecine.facts import DAY, Done, Json, KeptArtifact, LeaseOutcome
from tests.support.builders import a_flow
from tests.support.engine_fixture import Bed

FILM = a_flow("cut")
WHO = ("video", "a")


async def published(bed: Bed, *heights: int) -> None:
    """One version after the other, a second apart, each with a file and a fact of its own."""
    await bed.enact(FILM)
    for height in heights:
        await bed.submit(subject=WHO)
        lease = await bed.take()
        await bed.engine.keep(lease.task_id, 1, [KeptArtifact(name="x", token=1, key=f"{height}p", size=1, sha256="s")])
        await bed.done(lease, publish=True, facts={"height": height, "title": "A"})
        bed.pass_time(1_000)


async def show(bed: Bed, number: int, facts: dict[str, Json] | None = None) -> bool:
    return await bed.store.run(lambda: versions.show(WHO, number, facts=facts, actor="ann"))


async def shown(bed: Bed) -> tuple[int | None, list[str | None]]:
    """The number of the version that is shown, and the keys of its files."""
    view = await bed.engine.subjects.get(*WHO)
    return view.version, [one.kept.key for one in await bed.views.published(*WHO)]


async def told(bed: Bed) -> list[tuple[str, Json]]:
    batch = await bed.engine.events.after(0)
    return [(e.kind, e.data) for e in batch.events if e.kind.startswith("subject.")]  # type: ignore[union-attr]


async def test_an_older_version_is_shown_again_with_its_facts_and_an_event_says_so(bed: Bed) -> None:
    await published(bed, 360, 720)

    changed = await show(bed, 1, {"height": 360})

    view = await bed.engine.subjects.get(*WHO)
    assert (changed, await shown(bed), view.facts) == (True, (1, ["360p"]), {"height": 360, "title": "A"})
    assert [(v.number, v.current, v.left_at) for v in view.versions] == [(2, False, bed.now), (1, True, None)]
    assert await told(bed) == [
        ("subject.version_shown", {"kind": "video", "id": "a", "number": 1, "actor": "ann"}),
    ]


async def test_to_show_what_is_shown_changes_nothing(bed: Bed) -> None:
    await published(bed, 360, 720)

    assert await show(bed, 2) is False
    assert (await shown(bed), await told(bed)) == ((2, ["720p"]), [])


async def test_what_is_published_after_a_rollback_gets_a_number_of_its_own(bed: Bed) -> None:
    await published(bed, 360, 720)
    await show(bed, 1)

    await published(bed, 1080)

    view = await bed.engine.subjects.get(*WHO)
    assert await shown(bed) == (3, ["1080p"])
    assert [(v.number, v.left_at is None) for v in view.versions] == [(3, True), (2, False), (1, False)]


async def test_a_version_that_is_shown_again_is_not_freed_and_the_one_that_it_replaced_is(bed: Bed) -> None:
    await published(bed, 360, 720)
    await show(bed, 1)
    bed.pass_time(DAY)

    gone = await retire_versions(bed.store, 1_000)

    assert (gone.versions, gone.files) == (1, ("720p",))
    assert await shown(bed) == (1, ["360p"])


async def test_a_kept_version_outlives_its_time_until_it_is_let_go(bed: Bed) -> None:
    await published(bed, 360, 720)
    first = await bed.store.run(lambda: versions.keep(WHO, 1))
    again = await bed.store.run(lambda: versions.keep(WHO, 1))
    bed.pass_time(DAY)

    kept = await retire_versions(bed.store, 1_000)
    await bed.store.run(lambda: versions.keep(WHO, 1, False))
    freed = await retire_versions(bed.store, 1_000)

    assert (first, again, kept.versions, freed.files) == (True, False, 0, ("360p",))
    assert [kind for kind, _ in await told(bed)] == ["subject.version_kept", "subject.version_let_go"]


async def test_a_version_whose_files_were_freed_is_neither_shown_nor_kept(bed: Bed) -> None:
    await published(bed, 360, 720)
    bed.pass_time(DAY)
    await retire_jobs(bed.store, GraphCache(), Ages(jobs=1_000, versions=1_000))

    for deed in (lambda: versions.show(WHO, 1), lambda: versions.keep(WHO, 1)):
        with pytest.raises(WrongState, match="the files of version 1 of video 'a' were freed"):
            await bed.store.run(deed)
    assert await shown(bed) == (2, ["720p"])


async def test_what_does_not_exist_is_said_so(bed: Bed) -> None:
    await published(bed, 360)

    with pytest.raises(NotFound, match="video 'a' has no version 7"):
        await show(bed, 7)
    with pytest.raises(NotFound, match="there is no video 'b'"):
        await bed.store.run(lambda: versions.keep(("video", "b"), 1))


async def test_a_rollback_and_a_publish_at_once_leave_one_version_shown(bed: Bed) -> None:
    await published(bed, 360, 720)
    other = await bed.another_engine()
    await bed.submit(subject=WHO)
    lease = await bed.take()
    await bed.engine.keep(lease.task_id, 1, [KeptArtifact(name="x", token=1, key="1080p", size=1, sha256="s")])

    await asyncio.gather(show(bed, 1), other.settle([LeaseOutcome(lease.task_id, 1, Done(publish=True))]))

    view = await bed.engine.subjects.get(*WHO)
    assert [v.number for v in view.versions if v.left_at is None] == [view.version]
    assert view.version in (1, 3)
    await bed.audited()


async def test_the_files_of_any_version_can_be_listed(bed: Bed) -> None:
    await published(bed, 360, 720)

    view = await bed.engine.subjects.get(*WHO)

    listed = {v.number: [one.kept.key for one in await bed.views.of_version(v.id)] for v in view.versions}
    assert listed == {1: ["360p"], 2: ["720p"]}


async def test_a_subject_names_its_open_job_even_if_a_later_one_has_ended(bed: Bed) -> None:
    await bed.enact(FILM)
    waits = await bed.submit(subject=WHO, priority="low")
    ended = await bed.submit(subject=WHO, priority="high")
    await bed.done(await bed.take())

    view = await bed.engine.subjects.get(*WHO)
    [line] = (await bed.engine.subjects.list("video")).items

    for found in (view, line):
        assert found.job is not None
        assert found.open_job is not None
        assert (found.job.id, found.open_job.id) == (ended, waits)
