"""Handlers that will not end are ended: by a cancel, by a limit, by their own silence. Nothing else suffers."""

from telecine.engine import Engine
from tests.fault.crew import Crew, ended, lives, on, outcomes, pid_in, result, rows, until
from tests.flows_for_tests import mixed, polite, stubborn, stuck, wait_beside


def test_a_cancel_ends_a_handler_that_ignores_it_and_all_its_children(url: str, workers: Crew) -> None:
    async def play(engine: Engine) -> None:
        await engine.register(stubborn)
        job = await engine.submit("stubborn", {"folder": str(workers.folder)})
        workers.start("ann")
        [file] = await until(lambda: workers.files("family"))
        family = [int(pid) for pid in file.read_text().split()]
        assert all(lives(pid) for pid in family)

        await engine.cancel(job.job_id)

        assert await ended(engine, job.job_id) == ["cancelled"]
        assert [pid for pid in family if lives(pid)] == []

    on(url, play)


def test_a_cancelled_handler_may_tidy_up(url: str, workers: Crew) -> None:
    async def play(engine: Engine) -> None:
        await engine.register(polite)
        job = await engine.submit("polite", {"folder": str(workers.folder)})
        workers.start("ann")
        await workers.started()

        await engine.cancel(job.job_id)

        assert await ended(engine, job.job_id) == ["cancelled"]
        [tidied] = workers.files("tidied")
        assert tidied.read_text() == "True"

    on(url, play)


def test_a_cancel_ends_an_inline_handler(url: str, workers: Crew) -> None:
    async def play(engine: Engine) -> None:
        await engine.register(wait_beside)
        job = await engine.submit("wait_beside", {"folder": str(workers.folder)})
        workers.start("ann")
        await workers.started()

        await engine.cancel(job.job_id)

        assert await ended(engine, job.job_id) == ["cancelled"]

    on(url, play)


def test_a_handler_without_progress_is_ended_as_stalled_and_one_without_end_as_timed_out(
    url: str, workers: Crew
) -> None:
    async def play(engine: Engine) -> None:
        await engine.register(stuck)
        spec = {"folder": str(workers.folder)}
        stalled = await engine.submit("stuck", spec, skip=("late",))
        late = await engine.submit("stuck", spec, skip=("stalled",))
        workers.start("ann", slots=2)
        handlers = await workers.started(2)

        assert await ended(engine, stalled.job_id, late.job_id) == ["failed", "failed"]

        assert await outcomes(engine, stalled.job_id) == ["stalled"]
        assert await outcomes(engine, late.job_id) == ["timed_out"]
        await until(lambda: not [pid for pid in handlers if lives(pid)])

    on(url, play)


def test_a_hog_on_the_loop_loses_its_own_lease_and_no_other(url: str, workers: Crew) -> None:
    async def play(engine: Engine) -> None:
        await engine.register(mixed)
        job = await engine.submit("mixed", {"folder": str(workers.folder)})
        workers.start("ann", slots=2, hostname="elsewhere")
        await workers.started(word="hogging")
        [neighbour] = workers.files("neighbour")

        workers.start("bob", slots=2)
        await workers.started(2, word="hogging")
        workers.go()

        assert await ended(engine, job.job_id) == ["completed"]
        attempts = await rows(engine, "select t.stage, a.outcome from attempt a join task t on t.id = a.task_id")
        ends = [(row["stage"], row["outcome"]) for row in attempts]
        assert sorted(ends) == [(0, "done"), (0, "lost"), (1, "done")]
        assert workers.files("neighbour") == [neighbour]
        assert await result(engine, job.job_id) == pid_in(neighbour)

    on(url, play)
