"""Keep and log: what outlives the lease, recorded only under it."""

from typing import Any

import pytest

from telecine.engine.jobs.graph_cache import GraphCache
from telecine.engine.leases.lease_operations import keep
from telecine.errors import LeaseLost, StoreError
from telecine.facts import LEASE, MINUTE, SECOND, HeldLease, KeptArtifact, LogEntry, Released
from telecine.store import Steps
from tests.support.builders import a_flow, a_policy, a_stage
from tests.support.engine_fixture import Bed

CUT = a_flow("cut")


async def two_leases(bed: Bed) -> list:  # type: ignore[type-arg]
    await bed.enact(CUT)
    await bed.submit()
    await bed.submit()
    return await bed.claim(2)


# -- Keep ------------------------------------------------------------------------------------------


def a_checkpoint(name: str = "at", value: object = 1) -> KeptArtifact:
    return KeptArtifact(name=name, token=0, value=value)


def an_artifact(name: str = "a.m4s", sha: str = "abc") -> KeptArtifact:
    return KeptArtifact(name=name, token=0, key=f"job/{sha}/{name}", size=5, sha256=sha, facts={"frames": 24})


async def test_what_is_kept_is_found_by_the_next_attempt(bed: Bed) -> None:
    lease, _ = await two_leases(bed)
    await bed.engine.keep(lease.task_id, 1, [a_checkpoint(value={"frame": 7}), an_artifact()])
    await bed.release(lease)

    lease = await bed.take()
    kept = (await bed.engine.brief(lease)).kept

    assert lease.needs_brief
    assert (kept["at"].value, kept["at"].token) == ({"frame": 7}, 1)
    artifact = kept["a.m4s"]
    assert (artifact.key, artifact.size, artifact.sha256, artifact.facts) == ("job/abc/a.m4s", 5, "abc", {"frames": 24})


async def test_a_name_is_replaced_under_the_current_token(bed: Bed) -> None:
    lease, _ = await two_leases(bed)
    await bed.engine.keep(lease.task_id, 1, [a_checkpoint(value=1)])
    await bed.release(lease)
    lease = await bed.take()

    await bed.engine.keep(lease.task_id, 2, [a_checkpoint(value=2)])

    kept = (await bed.engine.brief(lease)).kept["at"]
    assert (kept.value, kept.token) == (2, 2)
    assert await bed.count("artifact") == 1


@pytest.mark.parametrize("token", [0, 1, 3])
async def test_under_any_other_token_nothing_is_kept(bed: Bed, token: int) -> None:
    lease, _ = await two_leases(bed)
    await bed.release(lease)
    lease = await bed.take()
    await bed.engine.keep(lease.task_id, 2, [a_checkpoint(value="good")])

    with pytest.raises(LeaseLost):
        await bed.engine.keep(lease.task_id, token, [a_checkpoint(value="stale"), a_checkpoint("new")])

    assert {name: kept.value for name, kept in (await bed.engine.brief(lease)).kept.items()} == {"at": "good"}


async def test_after_the_lease_nothing_is_kept(bed: Bed) -> None:
    lease, _ = await two_leases(bed)
    bed.pass_time(LEASE)

    with pytest.raises(LeaseLost, match="lease_expired"):
        await bed.engine.keep(lease.task_id, 1, [a_checkpoint()])

    assert await bed.count("artifact") == 0


async def test_for_a_task_that_is_done_or_unknown_nothing_is_kept(bed: Bed) -> None:
    lease, _ = await two_leases(bed)
    await bed.done(lease)

    for task_id in (lease.task_id, 10**9):
        with pytest.raises(LeaseLost):
            await bed.engine.keep(task_id, 1, [a_checkpoint()])


async def test_a_call_that_names_something_twice_keeps_the_last(bed: Bed) -> None:
    lease, _ = await two_leases(bed)

    await bed.engine.keep(lease.task_id, 1, [a_checkpoint(value=1), a_checkpoint(value=2)])

    assert (await bed.engine.brief(lease)).kept["at"].value == 2


async def test_another_stage_version_does_not_see_what_was_kept(bed: Bed) -> None:
    lease, _ = await two_leases(bed)
    await bed.engine.keep(lease.task_id, 1, [a_checkpoint()])
    await bed.sql("update artifact set stage_version = 7")

    assert (await bed.engine.brief(lease)).kept == {}


async def test_an_artifact_without_its_hash_is_refused(bed: Bed) -> None:
    lease, _ = await two_leases(bed)

    with pytest.raises(StoreError):
        await bed.engine.keep(lease.task_id, 1, [KeptArtifact(name="a", token=0, key="k", size=1)])

    assert await bed.count("artifact") == 0


async def test_what_is_new_ends_a_row_of_losses_and_what_is_not_new_does_not(bed: Bed) -> None:
    """Else a task that records that it began, and then kills its worker, would do so for ever."""
    await bed.enact(CUT)
    await bed.submit()
    losses = []
    for item in (a_checkpoint(value=1), a_checkpoint(value=1), a_checkpoint(value=2)):
        lease = await bed.take()
        await bed.engine.keep(lease.task_id, lease.token, [item])
        losses.append((await bed.task(lease.task_id))["losses"])
        await bed.lose(lease)

    assert losses == [0, 1, 0]


async def test_keeping_moves_the_stall_limit(bed: Bed) -> None:
    await bed.enact(a_flow(a_stage("cut", policy=a_policy(stall=10 * SECOND))))
    await bed.submit()
    lease = await bed.take()
    bed.pass_time(5 * SECOND)

    await bed.engine.keep(lease.task_id, 1, [an_artifact()])

    assert (await bed.task(lease.task_id))["stops_at"] == bed.now + 10 * SECOND


# -- Log -------------------------------------------------------------------------------------------


async def test_lines_of_the_current_token_are_kept_and_others_dropped(bed: Bed) -> None:
    lease, _ = await two_leases(bed)
    await bed.engine.settle([])
    step = {"exit_code": 1, "tail": "no such file"}

    await bed.engine.log(
        [
            LogEntry(task_id=lease.task_id, token=1, message="one"),
            LogEntry(task_id=lease.task_id, token=1, message="two", kind="step", level="error", data=step),
            LogEntry(task_id=lease.task_id, token=7, message="stale"),
            LogEntry(task_id=lease.task_id, token=1, message="x" * 5_000),
        ]
    )

    rows = await bed.sql("select message, kind, level from job_log order by id")
    assert [(r["message"][:9], r["kind"], r["level"]) for r in rows] == [
        ("one", "log", "info"),
        ("two", "step", "error"),
        ("x" * 9, "log", "info"),
    ]
    assert len(rows[2]["message"]) == 4_096


async def test_words_that_no_database_can_hold_are_kept_as_far_as_they_can(bed: Bed) -> None:
    """Titles come from files and lines from tools: NUL, halves of surrogate pairs and NaN occur."""
    lease, other = await two_leases(bed)
    bad = "a\x00b\ud800c"

    await bed.engine.log([LogEntry(task_id=lease.task_id, token=1, message=bad, data={"tail": bad})])
    await bed.engine.keep(lease.task_id, 1, [a_checkpoint(value={bad: [bad, float("nan")]})])
    await bed.engine.beat(bed.worker, [HeldLease(task_id=lease.task_id, token=1, note=bad)])
    answers = [await bed.done(lease, result={"title": bad}), await bed.fail(other, bad, code="bad")]

    good = "a\ufffdb\ufffdc"
    assert [answer.accepted for answer in answers] == [True, True]
    assert [row["message"] for row in await bed.sql("select message from job_log")] == [good]
    assert (await bed.engine.brief(lease)).kept["at"].value == {good: [good, None]}
    assert (await bed.task(lease.task_id))["note"] == good


async def test_release_under_a_beat_that_was_lost_is_still_heard(bed: Bed) -> None:
    lease, _ = await two_leases(bed)
    bed.pass_time(LEASE - MINUTE // 60)

    assert (await bed.say(lease, Released())).accepted


@pytest.mark.parametrize("before", [1, 40])
async def test_to_keep_one_file_reads_no_others(bed: Bed, before: int) -> None:
    lease, _ = await two_leases(bed)
    await bed.engine.keep(lease.task_id, 1, [an_artifact(f"{number}.m4s") for number in range(before)])
    work = keep(lease.task_id, 1, [an_artifact("0.m4s")], GraphCache())
    read = {}

    def overheard() -> Steps[None]:
        answer: Any = None
        while True:
            try:
                step = work.send(answer)
            except StopIteration:
                return
            answer = yield step
            read[step.name] = len(answer or ())

    await bed.store.run(overheard)

    assert max(read.values()) == 1
