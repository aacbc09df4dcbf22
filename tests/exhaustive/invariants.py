"""What must hold (in brackets: the number of the invariant in the catalogue of faults)."""

from __future__ import annotations

from telecine.facts import State
from telecine.lifecycle import After
from tests.exhaustive.world import Unit, World

WORKER_WORDS = ("done", "failed", "hopeless", "release")


class Broken(AssertionError):
    """An invariant did not hold."""


def require(holds: bool, sentence: str) -> None:
    if not holds:
        raise Broken(sentence)


def check_grant(world: World, n: int, granted: Unit, attempts: int) -> None:
    require(granted.token > granted.ended[0], "a token was granted twice [S3]")
    require(not world.cancel_asked, "granted after a cancel [S13]")
    require(all(unit.state is State.DONE for unit in world.units[:n]), "granted before its needs [S7]")
    require(granted.tries <= attempts, "more attempts than allowed [S11]")


def check_refused(world: World, unit: Unit, token: int, said: str) -> None:
    """Whoever lawfully holds a lease and repeats himself is heard in the end."""
    lawful = unit.state is State.RUNNING and token == unit.token and bool(unit.left)
    if said in WORKER_WORDS and not (said == "done" and world.cancel_asked):
        require(not lawful, f"{said} of token {token}, the lawful holder's, was refused [S15]")


def check_heard(world: World, n: int, token: int, said: str, verdict: After) -> None:
    unit = world.units[n]
    require(unit.state is State.RUNNING, f"{said} moved a task that is {unit.state} [S6]")
    require(token == unit.token, f"accepted token {token}, the last one granted is {unit.token} [S4]")
    require(token > unit.ended[0], f"the lease was ended by {unit.ended[1]} and again by {said} [S14 S15]")
    require(
        unit.left is not None and (unit.left > 0) == (said in WORKER_WORDS),
        f"{said} of token {token} at the wrong time [S16]",
    )
    if verdict.state is State.DONE:
        require(not world.cancel_asked, f"done of token {token} after a cancel [S13]")
    require(
        not (said == "hopeless" and verdict.state is State.READY),
        f"a permanent error of token {token} was retried [S12]",
    )
    require(0 <= verdict.tries <= unit.tries, "tries out of bounds [S11]")
    require(verdict.losses < 3 or verdict.state.is_final, "three losses and no quarantine [S12]")
    halted = world.cancel_asked or world.failing
    require(
        not (halted and verdict.state is State.READY), f"{said} of token {token} gave new work to a halted job [S13]"
    )


def checked(before: World, after: World) -> None:
    """What must hold of every step, whoever made it."""
    again = before.generation != after.generation
    for was, now in zip(before.units, after.units, strict=True):
        if was is now:
            continue
        require(now.token in (was.token, was.token + 1), "a token fell or leapt [S3]")
        require(again or not was.state.is_final or now.state is was.state, "a task that had ended changed [S6]")
        require(now.commits <= 1, "committed twice [S5]")
        require((now.state is State.RUNNING) == (now.left is not None), "a lease without a holder [S4]")
    if before.status is not after.status:
        require(again or not before.status.is_final, "a job that had ended changed [S6]")
        ended = all(unit.state.is_final for unit in after.units)
        require(after.status.is_final == ended, "the job's status is not that of its tasks [S18]")
