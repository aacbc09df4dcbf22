"""How much is measured in a quick run and in a full one."""

from __future__ import annotations

from dataclasses import dataclass

EVERY_ROUND: frozenset[int] | None = None
SLOW_WINDOW_S = 8.0
FAST_WINDOW_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerScale:
    """How one peer takes part.

    A slow peer gets a window: its rate is what was durably done when the window closed.
    """

    name: str
    store: str
    jobs: int
    processes: int = 2
    window: float = SLOW_WINDOW_S
    singly: bool = True
    rounds: frozenset[int] | None = EVERY_ROUND

    def takes_part(self, round_number: int) -> bool:
        return self.rounds is None or round_number in self.rounds


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """The sizes of a run. `pickups` are samples per round, on both sides."""

    rounds: int
    jobs: int
    sqlite_jobs: int
    processes: int
    batch: int
    single_seconds: float
    pickups: int
    queued_few: int
    queued_many: int
    pinned_claims: int
    killed_workers: int
    peers: tuple[PeerScale, ...]


PGQUEUER = PeerScale(name="pgqueuer", store="postgres", jobs=20_000, window=FAST_WINDOW_S)
RAW = PeerScale(name="raw", store="postgres", jobs=20_000, window=FAST_WINDOW_S, singly=False)
HUEY = PeerScale(name="huey", store="sqlite", jobs=2_000, processes=1)

QUICK = Scale(
    rounds=5,
    jobs=20_000,
    sqlite_jobs=6_000,
    processes=2,
    batch=200,
    single_seconds=1.0,
    pickups=40,
    queued_few=1_000,
    queued_many=1_000_000,
    pinned_claims=20_000,
    killed_workers=10,
    peers=(
        PGQUEUER,
        RAW,
        HUEY,
        # Two windows of eight seconds are what a run of four minutes can spare.
        PeerScale(name="procrastinate", store="postgres", jobs=6_000, singly=False, rounds=frozenset({1, 3})),
    ),
)

FULL = Scale(
    rounds=5,
    jobs=20_000,
    sqlite_jobs=20_000,
    processes=2,
    batch=200,
    single_seconds=2.0,
    pickups=250,
    queued_few=1_000,
    queued_many=1_000_000,
    pinned_claims=100_000,
    killed_workers=30,
    peers=(
        PGQUEUER,
        RAW,
        PeerScale(name="huey", store="sqlite", jobs=5_000, processes=1),
        PeerScale(name="procrastinate", store="postgres", jobs=20_000),
        PeerScale(name="dbos", store="postgres", jobs=5_000),
        PeerScale(name="saq", store="postgres", jobs=4_000, processes=1),
        PeerScale(name="chancy", store="postgres", jobs=5_000, window=FAST_WINDOW_S),
        PeerScale(name="celery", store="redis", jobs=12_000),
        PeerScale(name="dramatiq", store="redis", jobs=15_000),
        PeerScale(name="rq", store="redis", jobs=5_000),
    ),
)
