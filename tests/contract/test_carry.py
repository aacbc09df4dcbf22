"""Publishing: a new version has the files of its job and those that it carries over, for as long as it needs them."""

import asyncio

import pytest

from telecine.engine.maintenance.retention import Ages
from telecine.facts import DAY, Done, KeptArtifact, Lease, LeaseOutcome, StoredArtifact
from tests.support.builders import a_flow
from tests.support.engine_fixture import Bed
from tests.support.retention import retire_all

FILM = a_flow("cut")
MOVIE = ("movie", "7")


async def a_version(bed: Bed, *keys: str, carry: tuple[int, ...] = (), subject: tuple[str, str] = MOVIE) -> Lease:
    """A job that keeps these files and publishes them."""
    await bed.submit(subject=subject)
    lease = await bed.take()
    items = [
        KeptArtifact(name=f"name of {key}", token=1, key=key, size=1, sha256=key, facts={"of": key}) for key in keys
    ]
    await bed.engine.keep(lease.task_id, lease.token, items)
    assert (await bed.done(lease, publish=True, carry=carry)).state == "done"
    return lease


async def shown(bed: Bed, lease: Lease) -> list[StoredArtifact]:
    return await bed.engine.published(lease)


def keys_of(shelved: list[StoredArtifact]) -> list[str | None]:
    return [one.kept.key for one in shelved]


async def test_a_subject_shows_the_files_of_its_current_version_with_their_places(bed: Bed) -> None:
    await bed.enact(FILM)
    await bed.submit(subject=MOVIE)
    first = await bed.take()
    await bed.engine.keep(first.task_id, 1, [KeptArtifact(name="at", token=1, value=1)])
    before = await shown(bed, first)
    await bed.done(first)

    lease = await a_version(bed, "a", "b")

    assert before == []
    [a, b] = await shown(bed, lease)
    assert (a.stage, a.position, a.kept.name, a.kept.facts) == ("cut", 0, "name of a", {"of": "a"})
    assert (b.kept.key, b.kept.size, b.kept.sha256, b.kept.token) == ("b", 1, "b", 1)


async def test_of_a_job_without_subject_nothing_is_published(bed: Bed) -> None:
    await bed.enact(FILM)
    await bed.submit()

    assert await shown(bed, await bed.take()) == []


async def test_what_is_carried_over_belongs_to_the_new_version_and_not_to_the_job(bed: Bed) -> None:
    await bed.enact(FILM)
    old = await a_version(bed, "a", "b")
    [a, _] = await shown(bed, old)

    lease = await a_version(bed, "c", carry=(a.id,))

    found = await shown(bed, lease)
    assert keys_of(found) == ["a", "c"]
    assert (found[0].stage, found[0].position, found[0].kept) == (a.stage, a.position, a.kept)
    assert found[0].id != a.id
    assert keys_of(await bed.engine.artifacts(lease, [])) == ["c"]
    assert (await bed.views.job(lease.job_id)).output_count == 1
    await bed.audited()


async def test_what_was_carried_over_can_be_carried_on(bed: Bed) -> None:
    await bed.enact(FILM)
    lease = await a_version(bed, "a")
    for key in ("b", "c"):
        ids = tuple(one.id for one in await shown(bed, lease))
        lease = await a_version(bed, key, carry=ids)

    assert keys_of(await shown(bed, lease)) == ["a", "b", "c"]


async def test_an_old_version_goes_and_what_the_new_one_carries_stays(bed: Bed) -> None:
    await bed.enact(FILM)
    old = await a_version(bed, "a", "b")
    new = await a_version(bed, "c", carry=((await shown(bed, old))[0].id,))

    gone = await retire_all(bed, Ages(versions=0))
    bed.pass_time(31 * DAY)
    archived = await retire_all(bed)

    assert (gone.versions, gone.files) == (1, ("b",))
    assert (archived.jobs, archived.files) == (2, ())
    assert keys_of(await shown(bed, new)) == ["a", "c"]


@pytest.mark.parametrize("whose", ["nobody", "another subject", "no version"])
async def test_what_is_not_of_the_same_subject_cannot_be_carried(bed: Bed, whose: str) -> None:
    await bed.enact(FILM)
    await a_version(bed, "mine")
    other = await a_version(bed, "other", subject=("movie", "8"))
    await bed.submit(subject=MOVIE)
    lease = await bed.take()
    await bed.engine.keep(lease.task_id, 1, [KeptArtifact(name="own", token=1, key="own", size=1, sha256="s")])
    [own] = await bed.engine.artifacts(lease, [])
    id_ = {"nobody": 10**9, "another subject": (await shown(bed, other))[0].id, "no version": own.id}[whose]

    answer = await bed.done(lease, publish=True, carry=(id_,))

    assert (answer.accepted, answer.state) == (True, "error")
    error = (await bed.views.job(lease.job_id)).error
    assert error is not None
    assert error["code"] == "bad_carry"
    assert f"artifact {id_} cannot be carried over" in error["message"]
    assert keys_of(await shown(bed, lease)) == ["mine"]


async def test_the_same_outcome_again_gets_the_same_answer_and_another_carry_does_not(bed: Bed) -> None:
    await bed.enact(FILM)
    ids = tuple(one.id for one in await shown(bed, await a_version(bed, "a", "b")))
    await bed.submit(subject=MOVIE)
    lease = await bed.take()
    words = [LeaseOutcome(lease.task_id, 1, Done(publish=True, carry=carry)) for carry in (ids, ids, ids[:1])]

    answers = [(await bed.engine.settle([word]))[0] for word in words]

    assert [(answer.accepted, answer.repeated) for answer in answers] == [(True, False), (True, True), (False, False)]
    assert await bed.count("subject_version") == 2
    assert keys_of(await shown(bed, lease)) == ["a", "b"]


async def test_a_version_that_is_freed_while_another_carries_from_it_costs_no_file(bed: Bed) -> None:
    """Whoever comes first: either the files go over, or the outcome is refused. Never a version without its bytes."""
    await bed.enact(FILM)
    old = await a_version(bed, "a")
    [a] = await shown(bed, old)
    await a_version(bed, "b")
    await bed.submit(subject=MOVIE)
    lease = await bed.take()
    other = await bed.another_engine()

    publishing = other.settle([LeaseOutcome(lease.task_id, 1, Done(publish=True, carry=(a.id,)))])
    [[answer], gone] = await asyncio.gather(publishing, retire_all(bed, Ages(versions=0)))

    named = {row["key"] for row in await bed.sql("select key from artifact")}
    assert not named & set(gone.files)
    assert ("a" in named) == (answer.state == "done")


# -- Left behind -----------------------------------------------------------------------------------


async def kept_two(bed: Bed, lease: Lease) -> list[int]:
    items = [
        KeptArtifact(name=name, token=1, key=f"{lease.stage} {name}", size=1, sha256=name) for name in ("film", "work")
    ]
    await bed.engine.keep(lease.task_id, 1, items)
    return [one.id for one in await bed.engine.artifacts(lease, [lease.stage])]


async def test_working_files_do_not_belong_to_the_version_and_are_freed_at_once(bed: Bed) -> None:
    await bed.enact(a_flow("cut", "join", "tell"))
    await bed.submit(subject=MOVIE)
    cut = await bed.take()
    both = await kept_two(bed, cut)
    await bed.engine.keep(cut.task_id, 1, [KeptArtifact(name="at", token=1, value=1)])
    await bed.done(cut)
    join = await bed.take()
    _, work = await kept_two(bed, join)

    await bed.done(join, publish=True, leave=(*both, work))

    assert keys_of(await shown(bed, join)) == ["join film"]
    assert keys_of(await bed.engine.artifacts(join, [])) == [None, "join film"]
    freed = [row["key"] for row in await bed.sql("select key from freed order by key")]
    assert freed == ["cut film", "cut work", "join work"]
    # The job goes on: of its tasks, those that have nothing left have kept nothing.
    assert await bed.status(join.job_id) == "processing"
    await bed.audited()


async def test_a_task_whose_files_are_all_left_behind_has_kept_nothing(bed: Bed) -> None:
    await bed.enact(a_flow("cut", "join", "tell"))
    await bed.submit(subject=MOVIE)
    cut = await bed.take()
    both = await kept_two(bed, cut)
    await bed.done(cut)

    await bed.done(await bed.take(), publish=True, leave=tuple(both))

    assert [row["kept"] for row in await bed.sql("select kept from task order by stage")] == [0, 0, 0]
    await bed.audited()


async def test_nobody_leaves_behind_what_a_version_shows_or_another_job_has_kept(bed: Bed) -> None:
    await bed.enact(a_flow("cut", "join"))
    await bed.submit(subject=MOVIE)
    cut = await bed.take()
    both = await kept_two(bed, cut)
    await bed.done(cut, publish=True)
    first = await shown(bed, cut)
    join = await bed.take()
    await bed.submit(subject=("movie", "8"))
    other = await bed.take()
    theirs = await kept_two(bed, other)

    await bed.done(join, publish=True, leave=(*both, *theirs))

    rows = await bed.sql("select version_id from artifact order by id")
    assert len(first) == 2
    assert len({row["version_id"] for row in rows[:2]} - {None}) == 1
    assert await shown(bed, join) == []
    assert keys_of(await bed.engine.artifacts(other, [])) == ["cut film", "cut work"]
    assert await bed.count("freed") == 0
    await bed.audited()
