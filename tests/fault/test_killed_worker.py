"""A worker dies without a word: its work goes on elsewhere, once, and nothing of it is left running."""

import signal
import time

from telecine.engine import Engine
from tests.fault.worker_processes import (
    BRISK,
    SHORT,
    Crew,
    children_of,
    ended,
    enlisted,
    lives,
    on,
    outcomes,
    pid_in,
    result,
    rows,
    status,
    stop,
    until,
)
from tests.support.flows import murder, stubborn, wait


def test_another_worker_finishes_what_a_killed_one_had_begun(url: str, workers: Crew) -> None:
    async def play(engine: Engine) -> None:
        await engine.jobs.register(wait)
        job = await engine.jobs.submit("wait", {"folder": str(workers.folder)})
        ann = workers.start("ann", hostname="elsewhere", **SHORT)
        [handler] = await workers.started()

        ann.kill()
        workers.start("bob")
        await workers.started(2)
        workers.go()

        assert await ended(engine, job.job_id) == ["completed"]
        assert await outcomes(engine, job.job_id) == ["lost", "done"]
        assert await result(engine, job.job_id) != handler

    on(url, play)


def test_no_process_of_a_killed_worker_is_left_two_seconds_later(sqlite_url: str, workers_on_sqlite: Crew) -> None:
    workers = workers_on_sqlite

    async def play(engine: Engine) -> None:
        await engine.jobs.register(stubborn)
        ann = workers.start("ann")
        await engine.jobs.submit("stubborn", {"folder": str(workers.folder)})
        [family] = await until(lambda: workers.files("family"))
        everyone = [int(pid) for pid in family.read_text().split()] + children_of(ann.pid)
        assert all(lives(pid) for pid in everyone)

        ann.kill()

        await until(lambda: not [pid for pid in everyone if lives(pid)], within=2.0)

    on(sqlite_url, play)


def test_on_the_same_machine_a_killed_worker_is_missed_within_a_sweep(url: str, workers: Crew) -> None:
    async def play(engine: Engine) -> None:
        await engine.jobs.register(wait)
        job = await engine.jobs.submit("wait", {"folder": str(workers.folder)})
        long = {"lease": 60_000, "beat": 5.0}
        ann = workers.start("ann", **long)
        await workers.started()
        workers.start("bob", **long)
        await enlisted(engine, "bob")

        ann.kill()
        killed = time.monotonic()
        ann.wait()  # until somebody collects it, a killed process is still there
        await workers.started(2)

        assert time.monotonic() - killed < BRISK["sweep"] + 2.0
        workers.go()
        assert await ended(engine, job.job_id) == ["completed"]

    on(url, play)


def test_a_handler_that_kills_its_worker_three_times_is_put_in_quarantine(url: str, workers: Crew) -> None:
    async def play(engine: Engine) -> None:
        await engine.jobs.register(murder)
        job = await engine.jobs.submit("murder", {"folder": str(workers.folder)})
        for turn in range(3):
            victim = workers.start(f"victim-{turn}")
            assert await until(lambda v=victim: v.poll() is not None) is True
            assert victim.returncode == -signal.SIGKILL
        workers.start("survivor", flows=["echo"])

        assert await ended(engine, job.job_id) == ["failed"]

        [row] = await rows(engine, f"select error from job where id = {job.job_id}")
        assert "quarantined" in row["error"]
        assert await outcomes(engine, job.job_id) == ["lost", "lost", "lost"]
        assert not [pid_in(path) for path in workers.files("started") if lives(pid_in(path))]

    on(url, play)


def test_a_stopped_worker_that_wakes_too_late_changes_nothing(url: str, workers: Crew) -> None:
    async def play(engine: Engine) -> None:
        await engine.jobs.register(wait)
        job = await engine.jobs.submit("wait", {"folder": str(workers.folder)})
        zombie = workers.start("zombie", hostname="elsewhere", **SHORT)
        [handler] = await workers.started()

        await stop(engine, zombie)
        workers.start("bob")
        await workers.started(2)
        workers.go()
        assert await ended(engine, job.job_id) == ["completed"]
        winner = await result(engine, job.job_id)
        zombie.send_signal(signal.SIGCONT)

        # Its handler has ended as well meanwhile, and its word is refused; had it not, it would be killed now.
        await until(lambda: not lives(handler))
        await until(lambda: "refused" in workers.log() or "lease could not be renewed" in workers.log())
        assert await outcomes(engine, job.job_id) == ["lost", "done"]
        assert await result(engine, job.job_id) == winner != handler

    on(url, play)


def test_a_stopped_workers_child_is_dead_when_it_wakes(url: str, workers: Crew) -> None:
    async def play(engine: Engine) -> None:
        await engine.jobs.register(wait)
        job = await engine.jobs.submit("wait", {"folder": str(workers.folder)})
        zombie = workers.start("zombie", hostname="elsewhere", **SHORT)
        [handler] = await workers.started()

        await stop(engine, zombie)
        workers.start("bob")
        both = await workers.started(2)
        zombie.send_signal(signal.SIGCONT)

        await until(lambda: not lives(handler))
        assert await status(engine, job.job_id) == "processing"
        assert [pid for pid in both if lives(pid)] == [pid for pid in both if pid != handler]
        workers.go()
        assert await ended(engine, job.job_id) == ["completed"]
        assert await outcomes(engine, job.job_id) == ["lost", "done"]

    on(url, play)
