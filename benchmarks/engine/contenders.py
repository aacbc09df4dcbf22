"""Who takes part, and how a turn of each is taken."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.engine import ours
from benchmarks.engine.desk import Desk
from benchmarks.engine.measures import JOBS_PER_CALL, Drained, Enqueued
from benchmarks.engine.rounds import Contender, Sample
from benchmarks.engine.scale import PeerScale, Scale
from benchmarks.engine.server import Server

OURS_POSTGRES = "telecine"
OURS_SQLITE = "telecine sqlite"
NOTIFY = "notify + claim"
ANSWER_S = 180.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """Where a run takes place."""

    python: Path
    directory: Path
    servers: dict[str, Server]
    names: Iterator[int]

    def fresh(self, store: str, name: str) -> str:
        """Return an empty place in that store."""
        if store == "sqlite":
            return str(self.directory / f"{name}-{next(self.names)}.db")
        return self.servers[store].fresh(name)


def ground(python: Path, directory: Path, servers: dict[str, Server]) -> Ground:
    return Ground(python=python, directory=directory, servers=servers, names=itertools.count())


def contenders(scale: Scale, site: Ground, *, peers_only: bool) -> list[Contender]:
    """Ours and theirs side by side: neighbours in this list are neighbours in time."""
    turns = [Contender(name=NOTIFY, measure=lambda: _notify(scale, site))]
    if not peers_only:
        turns.append(Contender(name=OURS_POSTGRES, measure=lambda: _ours_postgres(scale, site)))
    for peer in scale.peers:
        if peer.store == "sqlite" and not peers_only:
            turns.append(Contender(name=OURS_SQLITE, measure=lambda: _ours_sqlite(scale, site)))
        turns.append(_peer(peer, scale, site))
    return turns


def _peer(peer: PeerScale, scale: Scale, site: Ground) -> Contender:
    def measure() -> Sample:
        with Desk(site.python, "benchmarks.engine.runner", peer.name) as desk:
            answer = desk.ask(
                measure="drain",
                place=site.fresh(peer.store, peer.name),
                jobs=peer.jobs,
                processes=peer.processes,
                window=peer.window,
                within=ANSWER_S,
            )
            if peer.singly:
                place = site.fresh(peer.store, f"{peer.name}_single")
                seconds = scale.single_seconds
                answer |= desk.ask(measure="single", place=place, seconds=seconds, within=ANSWER_S)
        return Sample(
            drain=Drained(**answer["drain"]),
            bulk=Enqueued(**answer["bulk"]) if answer["bulk"] else None,
            single=Enqueued(**answer["single"]) if peer.singly else None,
        )

    return Contender(name=peer.name, measure=measure, rounds=peer.rounds)


def _notify(scale: Scale, site: Ground) -> Sample:
    with Desk(site.python, "benchmarks.engine.runner", "notify") as desk:
        place = site.fresh("postgres", "notify")
        answer = desk.ask(measure="pickup", place=place, samples=scale.pickups, within=ANSWER_S)
    return Sample(pickup_ms=tuple(answer["pickup_ms"]))


def _ours_postgres(scale: Scale, site: Ground) -> Sample:
    def fresh(name: str) -> str:
        return site.fresh("postgres", f"telecine_{name}")

    # The pick-up first, next to the bare NOTIFY; the drain last, next to the peers' drains.
    pickup_ms = tuple(ours.pickup_postgres(fresh("pickup"), samples=scale.pickups))
    single = ours.submit_singly(fresh("single"), seconds=scale.single_seconds)
    bulk = ours.bulk_postgres(fresh("bulk"), jobs=scale.jobs, per_call=JOBS_PER_CALL)
    drain = ours.drain_postgres(fresh("drain"), jobs=scale.jobs, processes=scale.processes, batch=scale.batch)
    return Sample(drain=drain, bulk=bulk, single=single, pickup_ms=pickup_ms)


def _ours_sqlite(scale: Scale, site: Ground) -> Sample:
    def fresh(name: str) -> Path:
        return Path(site.fresh("sqlite", f"telecine_{name}"))

    pickup_ms = tuple(ours.pickup_sqlite(fresh("pickup"), samples=scale.pickups))
    single = ours.submit_singly(f"sqlite:///{fresh('single')}", seconds=scale.single_seconds)
    drain = ours.drain_sqlite(fresh("drain"), jobs=scale.sqlite_jobs, batch=scale.batch)
    return Sample(drain=drain, single=single, pickup_ms=pickup_ms)
