"""Handlers that will not end are ended: by a cancel, by a limit, by their own silence. Nothing else suffers."""

from telecine.engine import Engine
from tests.fault.worker_processes import SHORT, Crew, ended, lives, on, outcomes, pid_in, result, rows, until
from tests.support.flows import mixed, polite, quick, stubborn, stuck, wait_and_record, wait_apart, wait_beside


def test_a_cancel_ends_a_handler_that_ignores_it_and_all_its_children(url: str, workers: Crew) -> None:
    async def play(engine: Engine) -> None:
        await engine.jobs.register(stubborn)
        job = await engine.jobs.submit("stubborn", {"folder": str(workers.folder)})
        workers.start("ann")
        [file] = await until(lambda: workers.files("family"))
        family = [int(pid) for pid in file.read_text().split()]
        assert all(lives(pid) for pid in family)

        await engine.jobs.cancel(job.job_id)

        assert await ended(engine, job.job_id) == ["cancelled"]
        assert [pid for pid in family if lives(pid)] == []

    on(url, play)


def test_a_cancelled_handler_may_tidy_up(url: str, workers: Crew) -> None:
    async def play(engine: Engine) -> None:
        await engine.jobs.register(polite)
        job = await engine.jobs.submit("polite", {"folder": str(workers.folder)})
        workers.start("ann")
        await workers.started()

        await engine.jobs.cancel(job.job_id)

        assert await ended(engine, job.job_id) == ["cancelled"]
        [tidied] = workers.files("tidied")
        assert tidied.read_text() == "True"

    on(url, play)


def test_a_cancel_ends_an_inline_handler(url: str, workers: Crew) -> None:
    async def play(engine: Engine) -> None:
        await engine.jobs.register(wait_beside)
        job = await engine.jobs.submit("wait_beside", {"folder": str(workers.folder)})
        workers.start("ann")
        await workers.started()

        await engine.jobs.cancel(job.job_id)

        assert await ended(engine, job.job_id) == ["cancelled"]

    on(url, play)


def test_a_thread_that_does_not_listen_keeps_its_slot_and_nothing_more(url: str, workers: Crew) -> None:
    async def play(engine: Engine) -> None:
        await engine.jobs.register(wait_apart)
        await engine.jobs.register(quick)
        job = await engine.jobs.submit("wait_apart", {"folder": str(workers.folder)})
        ann = workers.start("ann", slots=2)
        await workers.started()

        await engine.jobs.cancel(job.job_id)
        assert await ended(engine, job.job_id) == ["cancelled"]
        other = await engine.jobs.submit("quick")

        assert await ended(engine, other.job_id) == ["completed"]
        ann.terminate()
        assert await until(lambda: ann.poll() is not None)
        assert ann.returncode == 0

    on(url, play)


def test_a_checkpoint_after_the_lease_is_gone_stops_the_handler(url: str, workers: Crew) -> None:
    async def play(engine: Engine) -> None:
        await engine.jobs.register(wait_and_record)
        job = await engine.jobs.submit("wait_and_record", {"folder": str(workers.folder)})
        workers.start("ann", beat=30.0, lease=60_000, news=30.0)  # it will not learn of it by a beat
        await workers.started()
        [task] = await rows(engine, "select id, token from task")

        await engine.release([(task["id"], task["token"])])
        workers.go()

        await workers.started(word="stopped")
        assert await ended(engine, job.job_id) == ["completed"]  # by the next attempt, whose lease is good
        assert await outcomes(engine, job.job_id) == ["released", "done"]
        assert [row["token"] for row in await rows(engine, "select token from artifact")] == [2]

    on(url, play)


def test_a_handler_without_progress_is_ended_as_stalled_and_one_without_end_as_timed_out(
    url: str, workers: Crew
) -> None:
    async def play(engine: Engine) -> None:
        await engine.jobs.register(stuck)
        spec = {"folder": str(workers.folder)}
        stalled = await engine.jobs.submit("stuck", spec, skip=("late",))
        late = await engine.jobs.submit("stuck", spec, skip=("stalled",))
        workers.start("ann", slots=2)

        assert await ended(engine, stalled.job_id, late.job_id) == ["failed", "failed"]

        handlers = [pid_in(path) for path in workers.files("started")]
        assert await outcomes(engine, stalled.job_id) == ["stalled"]
        assert await outcomes(engine, late.job_id) == ["timed_out"]
        await until(lambda: not [pid for pid in handlers if lives(pid)])

    on(url, play)


def test_a_hog_on_the_loop_loses_its_own_lease_and_no_other(url: str, workers: Crew) -> None:
    async def play(engine: Engine) -> None:
        await engine.jobs.register(mixed)
        job = await engine.jobs.submit("mixed", {"folder": str(workers.folder)})
        workers.start("ann", slots=2, hostname="elsewhere", **SHORT)
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
