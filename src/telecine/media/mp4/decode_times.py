"""Decode times of a closed group of pictures whose composition offsets are never negative (decision 0017).

The first picture is decoded when it is shown. With B frames later pictures must be decoded ahead of the ones that are
shown before them: so the next few are decoded within a tick each, and from there on decoding runs ahead by a constant
number of frames. Players that do not know signed offsets or edit lists then show every picture in time.
"""

from __future__ import annotations

from collections.abc import Sequence

# Longer samples are avoided where the order allows it: FFmpeg repeats them when it makes a constant rate.
MAX_FRAMES_PER_SAMPLE = 2


def decode_times(shown: Sequence[int], step: int) -> list[int]:
    """When to decode samples that are shown at these times, in decode order; `step` ticks apart when sorted.

    Times rise by at least one tick, never pass the time of showing, and no sample lasts beyond the end of the group.
    `ValueError` if that cannot be: a picture is shown before the first one, or there are too few ticks.
    """
    count, first = len(shown), shown[0]
    end = first + count * step
    due = _latest(shown)
    ahead = max(-(-(first + number * step - latest) // step) for number, latest in enumerate(due))
    times, after = [0] * count, end
    for number in range(count - 1, -1, -1):
        usual = first + (number if number <= ahead else (number - ahead) * step)
        longest = min(MAX_FRAMES_PER_SAMPLE * step, end - shown[number])
        times[number] = after = min(due[number], after - 1, max(usual, after - longest))
    if times[0] != first:
        raise ValueError(f"{count} pictures from {first} on cannot be decoded in time at {step} ticks per frame")
    return times


def _latest(shown: Sequence[int]) -> list[int]:
    """Until when each sample must be decoded: before whatever is shown first of it and those after it."""
    latest = list(shown)
    for number in range(len(latest) - 2, -1, -1):
        latest[number] = min(latest[number], latest[number + 1])
    return latest
