"""What a handler finds again: what its job has kept, what is published, and how many work beside it."""

import pytest

from telecine.errors import BadSpec
from telecine.facts import KeptArtifact, Lease, Mode
from tests.support.builders import a_flow, a_stage
from tests.support.engine_fixture import Bed

FANS = a_flow(a_stage("plan"), a_stage("cut", "plan", fan_out=True), a_stage("join", "cut"))
MOVIE = ("movie", "7")


def a_file(name: str, key: str, **facts: object) -> KeptArtifact:
    return KeptArtifact(name=name, token=0, key=key, size=len(key), sha256=f"sha of {key}", facts=dict(facts))


async def keep(bed: Bed, lease: Lease, *items: KeptArtifact) -> None:
    await bed.engine.keep(lease.task_id, lease.token, items)


async def freed(bed: Bed) -> list[str]:
    return [row["key"] for row in await bed.sql("select key from freed order by key")]


# -- What a job has kept ---------------------------------------------------------------------------


async def test_a_stage_finds_what_others_of_its_job_have_kept_at_every_position(bed: Bed) -> None:
    await bed.enact(FANS)
    await bed.submit()
    plan = await bed.take()
    await keep(bed, plan, KeptArtifact(name="at", token=0, value={"frame": 7}))
    await bed.done(plan, plan={"cut": ["a", "b"]})
    first, second = await bed.claim(2)
    await keep(bed, second, a_file("seg", "2", frames=24))
    await keep(bed, first, a_file("seg", "1"), a_file("init", "0"))

    cuts = await bed.engine.artifacts(second, ["cut"])
    everything = await bed.engine.artifacts(second, [])

    assert [(one.stage, one.position, one.kept.name, one.kept.key) for one in cuts] == [
        ("cut", 0, "init", "0"),
        ("cut", 0, "seg", "1"),
        ("cut", 1, "seg", "2"),
    ]
    kept = cuts[2].kept
    assert (kept.token, kept.size, kept.sha256, kept.facts) == (1, 1, "sha of 2", {"frames": 24})
    assert [(one.stage, one.kept.value) for one in everything if one.kept.key is None] == [("plan", {"frame": 7})]
    assert len({one.id for one in everything}) == 4


async def test_of_other_jobs_and_other_stage_versions_nothing_is_found(bed: Bed) -> None:
    await bed.enact(FANS)
    await bed.submit()
    await bed.submit()
    mine, other = await bed.claim(2)
    await keep(bed, mine, a_file("old", "1"), a_file("mine", "2"))
    await keep(bed, other, a_file("other", "3"))
    await bed.sql("update artifact set stage_version = 7 where name = 'old'")

    found = await bed.engine.artifacts(mine, ["plan", "join"])

    assert [one.kept.name for one in found] == ["mine"]


async def test_a_stage_that_does_not_exist_is_refused(bed: Bed) -> None:
    await bed.enact(FANS)
    await bed.submit()

    with pytest.raises(BadSpec, match="flow 'film' has no stage 'dub'; it has plan, cut, join"):
        await bed.engine.artifacts(await bed.take(), ["cut", "dub"])


# -- What is replaced ------------------------------------------------------------------------------


async def test_bytes_that_are_replaced_are_freed_with_the_record_and_others_are_not(bed: Bed) -> None:
    await bed.enact(FANS)
    await bed.submit()
    lease = await bed.take()
    await keep(bed, lease, a_file("a", "1/a"), a_file("b", "1/b"), KeptArtifact(name="at", token=0, value=1))
    await keep(bed, lease, a_file("a", "1/a"), KeptArtifact(name="at", token=0, value=2))
    nothing = await freed(bed)
    await bed.release(lease)
    lease = await bed.take()

    await keep(bed, lease, a_file("a", "2/a"))

    assert nothing == []
    assert await freed(bed) == ["1/a"]
    assert {one.kept.key for one in await bed.engine.artifacts(lease, [])} == {"2/a", "1/b", None}


async def test_bytes_of_another_stage_version_are_freed_too_and_so_are_those_that_a_value_replaces(bed: Bed) -> None:
    await bed.enact(FANS)
    await bed.submit()
    lease = await bed.take()
    await keep(bed, lease, a_file("a", "1/a"), a_file("b", "1/b"))
    await bed.sql("update artifact set stage_version = 7 where name = 'a'")

    await keep(bed, lease, a_file("a", "2/a"), KeptArtifact(name="b", token=0, value=1))

    assert await freed(bed) == ["1/a", "1/b"]


async def test_a_keep_that_is_refused_frees_nothing(bed: Bed) -> None:
    await bed.enact(FANS)
    await bed.submit()
    lease = await bed.take()
    await keep(bed, lease, a_file("a", "1/a"))
    await bed.release(lease)

    with pytest.raises(Exception, match="refused"):
        await keep(bed, lease, a_file("a", "2/a"))

    assert await freed(bed) == []


# -- How many work beside it -----------------------------------------------------------------------


async def test_the_brief_counts_the_slots_of_live_active_workers_that_serve_the_flow(bed: Bed) -> None:
    await bed.enact(FANS)  # ann, 4 slots
    await bed.submit()
    lease = await bed.take()
    await bed.enlist("bob", slots=3)
    await bed.enlist("other", slots=100, lanes=("films/cut@1", "fil/film/x@1"))
    drained = await bed.enlist("drained", slots=10)
    await bed.engine.set_mode(drained, Mode.DRAINING)
    gone = await bed.enlist("gone", slots=10)
    await bed.engine.retire(gone)

    many = (await (await bed.another_engine()).brief(lease)).slots
    bed.pass_time(31_000)
    none = (await (await bed.another_engine()).brief(lease)).slots

    assert (many, none) == (7, 1)
