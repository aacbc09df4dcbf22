"""Subjects as people see them: there from the first submit, with facts, versions and jobs."""

import pytest

from telecine.errors import BadSpec, NotFound
from telecine.facts import KeptArtifact
from tests.support.builders import a_flow
from tests.support.engine_fixture import Bed

FILM = a_flow("cut")


async def test_a_subject_is_there_as_soon_as_somebody_wants_something_of_it(bed: Bed) -> None:
    await bed.enact(FILM)
    with pytest.raises(NotFound, match="there is no video 'a'"):
        await bed.engine.subjects.get("video", "a")
    job_id = await bed.submit(subject=("video", "a"), owner="ann")
    await bed.submit(subject=("video", "a"), owner="bob")

    view = await bed.engine.subjects.get("video", "a")

    assert (view.owner, view.facts, view.version, view.versions) == ("ann", {}, None, ())
    assert (view.created_at, view.updated_at) == (bed.now, bed.now)
    assert [job.id for job in view.jobs] == [job_id + 1, job_id]
    assert view.job == view.jobs[0]


async def test_a_subject_shows_its_facts_and_versions_the_newest_first(bed: Bed) -> None:
    await bed.enact(FILM)
    jobs = []
    for size in (10, 20):
        jobs.append(await bed.submit(subject=("video", "a")))
        lease = await bed.take()
        items = [KeptArtifact(name=name, token=1, key=f"{size}{name}", size=size, sha256="s") for name in "xy"]
        await bed.engine.keep(lease.task_id, 1, items)
        bed.pass_time(1_000)
        await bed.done(lease, publish=True, facts={"height": size})
    await bed.sql("update subject_version set keep = true where number = 1")

    view = await bed.engine.subjects.get("video", "a")

    assert (view.facts, view.version, view.updated_at - view.created_at) == ({"height": 20}, 2, 2_000)
    new, old = view.versions
    assert (new.number, new.job_id, new.current, new.keep, new.left_at) == (2, jobs[1], True, False, None)
    assert (old.number, old.job_id, old.current, old.keep) == (1, jobs[0], False, True)
    assert (old.left_at, old.published_at) == (new.published_at, new.published_at - 1_000)
    assert [(v.files, v.bytes) for v in view.versions] == [(2, 40), (2, 20)]


async def test_lists_go_from_the_newest_back_page_by_page_also_within_one_moment(bed: Bed) -> None:
    await bed.enact(FILM)
    for name in ("a", "b", "ä-1", "c"):
        await bed.submit(subject=("video", name))
    bed.pass_time(1)
    newest = await bed.submit(subject=("video", "new"))
    await bed.submit(subject=("movie", "other"))

    pages, cursor = [], None
    while True:
        page = await bed.engine.subjects.list("video", cursor=cursor, limit=2)
        pages.append([one.id for one in page.items])
        cursor = page.next
        if cursor is None:
            break
    first = (await bed.engine.subjects.list("video", limit=1)).items[0]

    assert [len(page) for page in pages] == [2, 2, 1]
    assert pages[0][0] == "new"
    assert sorted([*pages[0][1:], *pages[1], *pages[2]]) == ["a", "b", "c", "ä-1"]
    assert first.job is not None
    assert (first.job.id, first.version) == (newest, None)


async def test_an_owner_sees_his_own(bed: Bed) -> None:
    await bed.enact(FILM)
    for owner in ("ann", "bob", ""):
        await bed.submit(subject=("video", f"of {owner}"), owner=owner)

    lists = [
        [one.id for one in (await bed.engine.subjects.list("video", owner=who)).items] for who in ("ann", "", "eve")
    ]

    assert lists == [["of ann"], ["of "], []]
    assert len((await bed.engine.subjects.list("video")).items) == 3


@pytest.mark.parametrize("cursor", ["", "x", "1-zz", "a-61"])
async def test_a_cursor_of_another_list_is_refused(bed: Bed, cursor: str) -> None:
    with pytest.raises(BadSpec, match="is not one that this list gave"):
        await bed.engine.subjects.list("video", cursor=cursor)
