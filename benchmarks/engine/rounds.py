"""Interleaved rounds: everybody has a turn in every round, and nobody is always first."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from benchmarks.engine.desk import Silent
from benchmarks.engine.measures import Drained, Enqueued
from benchmarks.engine.noise import Noise


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """What one contender did in one turn."""

    drain: Drained | None = None
    bulk: Enqueued | None = None
    single: Enqueued | None = None
    pickup_ms: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Contender:
    """Somebody who can be measured; `rounds` is None for every round."""

    name: str
    measure: Callable[[], Sample]
    rounds: frozenset[int] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """A sample with its circumstances: the round, and the cores that others kept busy."""

    contender: str
    round_number: int
    sample: Sample
    others: float | None


@dataclass(slots=True)
class Scores:
    """All turns of a run."""

    turns: list[Turn] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    def of(self, contender: str) -> list[Turn]:
        return [turn for turn in self.turns if turn.contender == contender]

    def by_round(self, contender: str, rate: Callable[[Sample], float | None]) -> Mapping[int, float]:
        rates = {turn.round_number: rate(turn.sample) for turn in self.of(contender)}
        return {number: value for number, value in rates.items() if value is not None}


def play(contenders: Sequence[Contender], *, rounds: int, ours: Sequence[int]) -> Scores:
    """Run all rounds; a peer that breaks is reported and does not stop the others."""
    scores = Scores()
    for number in range(rounds):
        begun = time.monotonic()
        for contender in _in_turn(contenders, number):
            noise = Noise(ours)
            try:
                sample = contender.measure()
            except Silent as problem:
                scores.failures.append(f"round {number + 1}, {contender.name}: {problem}")
                continue
            scores.turns.append(
                Turn(
                    contender=contender.name,
                    round_number=number,
                    sample=sample,
                    others=noise.cores(),
                )
            )
        took = time.monotonic() - begun
        print(f"round {number + 1} of {rounds}: {took:.0f} s", file=sys.stderr, flush=True)
    return scores


def _in_turn(contenders: Sequence[Contender], number: int) -> Iterator[Contender]:
    start = number % len(contenders)
    for contender in (*contenders[start:], *contenders[:start]):
        if contender.rounds is None or number in contender.rounds:
            yield contender
