"""The table for people and the figures for machines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import median

from benchmarks.engine.contenders import NOTIFY, OURS_POSTGRES, OURS_SQLITE
from benchmarks.engine.measures import quantile
from benchmarks.engine.rounds import Sample, Scores, Turn
from benchmarks.engine.scale import Scale

Rate = Callable[[Sample], float | None]

HEAD = ("", "drain/s", "min", "max", "bulk/s", "single/s", "jobs", "rounds", "once", "others")


def drain(sample: Sample) -> float | None:
    return sample.drain.rate if sample.drain else None


def bulk(sample: Sample) -> float | None:
    return sample.bulk.rate if sample.bulk else None


def single(sample: Sample) -> float | None:
    return sample.single.rate if sample.single else None


def table(scores: Scores, scale: Scale) -> str:
    """Medians over the rounds; `others` is the median of the cores that others kept busy."""
    names = list(dict.fromkeys(turn.contender for turn in scores.turns))
    rows = [_row(name, scores, scale) for name in names if _middle(scores, name, drain)]
    rows.sort(key=lambda row: -int(row[1].replace(",", "")))
    lines = _aligned([HEAD, *rows])
    pickups = [line for name in names if (line := _pickup_line(name, scores))]
    notes = [
        "drain: first handler's start to last job seen done in the database.",
        "w: a window; the rate is what was durably done when it closed.",
    ]
    return "\n".join([*lines, "", *pickups, "", *notes])


def _row(name: str, scores: Scores, scale: Scale) -> tuple[str, ...]:
    turns = scores.of(name)
    rates = list(scores.by_round(name, drain).values())
    drains = [turn.sample.drain for turn in turns if turn.sample.drain]
    windowed = any(one.done < one.jobs for one in drains)
    return (
        name,
        f"{median(rates):,.0f}",
        f"{min(rates):,.0f}",
        f"{max(rates):,.0f}",
        _number(_middle(scores, name, bulk)),
        _number(_middle(scores, name, single)),
        f"{drains[0].jobs:,}" + (" w" if windowed else ""),
        f"{len(turns)} of {scale.rounds}",
        "yes" if all(one.once for one in drains) else "NO",
        _others(turns),
    )


def _pickup_line(name: str, scores: Scores) -> str:
    waits = pickups(scores, name)
    if not waits:
        return ""
    p50, p99 = quantile(waits, 0.5), quantile(waits, 0.99)
    return f"pick-up, {name}: p50 {p50:.2f} ms, p99 {p99:.2f} ms, {len(waits)} samples"


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) for row in rows]


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}"


def _others(turns: Sequence[Turn]) -> str:
    known = [turn.others for turn in turns if turn.others is not None]
    return f"{median(known):.2f}" if known else "?"


def _middle(scores: Scores, name: str, rate: Rate) -> float | None:
    rates = scores.by_round(name, rate).values()
    return median(rates) if rates else None


def pickups(scores: Scores, name: str) -> list[float]:
    """All samples of all rounds; a quantile of a few would say little."""
    return [wait for turn in scores.of(name) for wait in turn.sample.pickup_ms]


def ratio(scores: Scores, name: str, other: str, rate: Rate) -> float | None:
    """The median of the ratios round by round: neighbours in time share their noise."""
    mine, theirs = scores.by_round(name, rate), scores.by_round(other, rate)
    shared = [mine[number] / theirs[number] for number in mine if number in theirs]
    return round(median(shared), 3) if shared else None


def figures(scores: Scores, scale: Scale) -> dict[str, object]:
    """What the rounds say, under the names that the issue asks for."""
    found: dict[str, object] = {"rounds": scale.rounds, "medians": _medians(scores)}
    if scores.of(OURS_POSTGRES):
        found |= {
            **{
                f"postgres_vs_{peer.name}": ratio(scores, OURS_POSTGRES, peer.name, drain)
                for peer in scale.peers
                if peer.store != "sqlite"
            },
            "sqlite_vs_huey": ratio(scores, OURS_SQLITE, "huey", drain),
            "bulk_enqueue_vs_pgqueuer": ratio(scores, OURS_POSTGRES, "pgqueuer", bulk),
            **{
                f"single_enqueue_vs_{peer.name}": ratio(scores, OURS_POSTGRES, peer.name, single)
                for peer in scale.peers
                if peer.singly and peer.store == "postgres"
            },
            "sqlite_single_enqueue_vs_huey": ratio(scores, OURS_SQLITE, "huey", single),
            **_pickup_figures(scores),
        }
    return found


def _pickup_figures(scores: Scores) -> dict[str, float]:
    ours, bare = pickups(scores, OURS_POSTGRES), pickups(scores, NOTIFY)
    return {
        "pickup_p50_vs_notify": round(quantile(ours, 0.5) / quantile(bare, 0.5), 3),
        "pickup_p99_vs_notify": round(quantile(ours, 0.99) / quantile(bare, 0.99), 3),
        "sqlite_pickup_p50_ms": round(quantile(pickups(scores, OURS_SQLITE), 0.5), 3),
    }


def _medians(scores: Scores) -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = {}
    for name in dict.fromkeys(turn.contender for turn in scores.turns):
        rates = {"drain": drain, "bulk": bulk, "single": single}
        row = {what: _middle(scores, name, rate) for what, rate in rates.items()}
        waits = pickups(scores, name)
        if waits:
            row |= {"p50_ms": quantile(waits, 0.5), "p99_ms": quantile(waits, 0.99)}
        found[name] = {what: round(value, 2) for what, value in row.items() if value is not None}
    return found
