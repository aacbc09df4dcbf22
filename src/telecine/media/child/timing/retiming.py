"""Times for frames that have none, or one that cannot be: between those of their neighbours on the screen. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise


def is_whole(times: Sequence[int | None]) -> bool:
    """Has every frame a time, and each its own?"""
    return None not in times and len(set(times)) == len(times)


def ascends(times: Sequence[int | None]) -> bool:
    """Is no frame shown before one that comes earlier in the file?"""
    known = [time for time in times if time is not None]
    return all(before <= after for before, after in pairwise(known))


def retimed(shown: Sequence[int], times: Sequence[int | None], step: int) -> dict[int, int]:
    """The time of each packet in `shown`, which says in which order the packets' frames come on the screen.

    If each has a time, only the order was wrong. Else a time counts if it is later than all before it, and the others
    are spread evenly between those that count.
    """
    given = [times[number] if number < len(times) else None for number in shown]
    if is_whole(given):
        return dict(zip(shown, sorted(one for one in given if one is not None), strict=True))
    kept = _kept(given)
    if not kept:
        return {number: at * max(step, 1) for at, number in enumerate(shown)}
    found: dict[int, int] = {}
    for (at, time), (next_at, next_time) in pairwise(kept):
        for nth in range(at, next_at):
            found[shown[nth]] = time + (next_time - time) * (nth - at) // (next_at - at)
    first_at, first = kept[0]
    last_at, last = kept[-1]
    step = step or (last - first) // max(last_at - first_at, 1) or 1
    for nth in range(first_at):
        found[shown[nth]] = first - (first_at - nth) * step
    for nth in range(last_at, len(shown)):
        found[shown[nth]] = last + (nth - last_at) * step
    return found


def with_decode_times(times: Mapping[int, int]) -> dict[int, tuple[int, int]]:
    """Each packet's PTS with a DTS: ascending by the packet's number, and never later than the PTS."""
    numbers = sorted(times)
    ascending = sorted(times.values())
    lead = max((early - times[number] for number, early in zip(numbers, ascending, strict=True)), default=0)
    return {number: (times[number], early - lead) for number, early in zip(numbers, ascending, strict=True)}


def _kept(times: Sequence[int | None]) -> list[tuple[int, int]]:
    kept: list[tuple[int, int]] = []
    for at, time in enumerate(times):
        if time is not None and (not kept or time > kept[-1][1]):
            kept.append((at, time))
    return kept
