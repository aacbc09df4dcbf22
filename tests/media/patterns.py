"""Pictures that say their number, and sounds that say their second: what comes out of a transcode can be counted.

A picture carries its number as sixteen blocks along the top, black or white, and the same inverted beneath. The first
block is white and the last one black, so that a mirrored or turned picture is not read at all. The blocks survive
lossy coding, scaling and 10 bit.

A sound has a burst at every full second, whose pitch says which second it is, over a quiet hum whose pitch says which
track it is.
"""

from __future__ import annotations

import hashlib
import math
from array import array
from collections.abc import Iterable, Iterator
from fractions import Fraction
from functools import cache
from itertools import pairwise

import av
from av.audio.resampler import AudioResampler

BLOCKS = 16
BITS = BLOCKS - 2
BLACK, WHITE = 16, 235
BURST_SECONDS = 0.06
LOUD, QUIET = 0.5, 0.03


class Unreadable(AssertionError):
    """The picture does not carry a number, or not upright."""


# --- pictures ----------------------------------------------------------------------------------------------------


def paint(number: int, width: int = 320, height: int = 180) -> av.VideoFrame:
    """Picture `number`, upright, yuv420p: the code, a still background and a block that moves."""
    frame = av.VideoFrame(width, height, "yuv420p")
    luma, *chroma = frame.planes
    stride = luma.line_size
    band = height // 8
    bits = [True, *(bool(number >> bit & 1) for bit in reversed(range(BITS))), False]
    rows = [_blocks(bits, width, stride)] * band + [_blocks([not bit for bit in bits], width, stride)] * band
    rows += _scene(number, width, height - 2 * band, stride)
    luma.update(b"".join(rows))
    for value, plane in zip((110 + number % 30, 140 - number % 30), chroma, strict=True):
        plane.update(bytes([value]) * plane.buffer_size)
    return frame


def read_number(frame: av.VideoFrame) -> int:
    """The number that `paint` wrote, whatever has happened to the picture since."""
    grey = frame if frame.format.name in {"yuv420p", "gray"} else frame.reformat(format="gray")
    data, stride = bytes(grey.planes[0]), grey.planes[0].line_size
    upper = [_mean(data, stride, _middle(grey, column, 1 / 16)) for column in range(BLOCKS)]
    lower = [_mean(data, stride, _middle(grey, column, 3 / 16)) for column in range(BLOCKS)]
    contrast = [a - b for a, b in zip(upper, lower, strict=True)]
    if min(map(abs, contrast)) < 60 or contrast[0] < 0 or contrast[-1] > 0:
        raise Unreadable(f"no number in this picture: {[round(one) for one in contrast]}")
    return int("".join("1" if one > 0 else "0" for one in contrast[1:-1]), 2)


def picture_hash(frame: av.VideoFrame) -> str:
    """SHA-256 over size, format and every visible pixel."""
    seen = hashlib.sha256(f"{frame.format.name} {frame.width}x{frame.height}".encode())
    for plane, component in zip(frame.planes, frame.format.components, strict=False):
        wide = plane.width * -(-component.bits // 8)
        data, stride = memoryview(plane), plane.line_size
        if stride == wide:
            seen.update(data[: plane.height * stride])
        else:  # what pads the rows is no picture
            for row in range(plane.height):
                seen.update(data[row * stride : row * stride + wide])
    return seen.hexdigest()


def _blocks(bits: list[bool], width: int, stride: int) -> bytes:
    edges = [round(width * column / BLOCKS) for column in range(BLOCKS + 1)]
    row = b"".join(
        bytes([WHITE if bit else BLACK]) * (right - left)
        for bit, left, right in zip(bits, edges, edges[1:], strict=False)
    )
    return row.ljust(stride, b"\x10")


@cache
def _background(width: int, stride: int) -> bytes:
    return bytes(60 + (column * 7 // 5 + column // 9 * 13) % 90 for column in range(width)).ljust(stride, b"\x10")


def _scene(number: int, width: int, height: int, stride: int) -> list[bytes]:
    plain = _background(width, stride)
    side = min(width, height) // 4
    left = number * 3 % (width - side)
    marked = plain[:left] + b"\xc8" * side + plain[left + side :]
    top = number * 2 % (height - side)
    return [marked if top <= row < top + side else plain for row in range(height)]


def _middle(frame: av.VideoFrame, column: int, down: float) -> tuple[int, int]:
    return round(frame.width * (column + 0.5) / BLOCKS), round(frame.height * down)


def _mean(data: bytes, stride: int, middle: tuple[int, int]) -> float:
    x, y = middle
    near = b"".join(data[row * stride + x - 2 : row * stride + x + 3] for row in range(y - 1, y + 2))
    return sum(near) / len(near)


# --- sounds ------------------------------------------------------------------------------------------------------


def pitch_of(second: int) -> int:
    return 600 + 200 * (second % 16)


@cache
def _second(second: int, rate: int, hum: int) -> array[float]:
    """The sound of one second; every pitch is whole, so that seconds join without a click."""
    wave = array("f", (QUIET * math.sin(2 * math.pi * hum * i / rate) for i in range(rate)))
    for i in range(round(BURST_SECONDS * rate)):
        wave[i] += LOUD * math.sin(2 * math.pi * pitch_of(second) * (i + 0.5) / rate)
    return wave


def sound(start: Fraction, length: Fraction, *, rate: int = 48_000, hum: int = 220) -> array[float]:
    """Mono samples of the film's seconds from `start` on; before 0 there are bursts, too."""
    first, count = round(start * rate), round(length * rate)
    wave = array("f")
    for second in range(first // rate, -(-(first + count) // rate)):
        wave.extend(_second(second, rate, hum))
    skip = first - first // rate * rate
    return wave[skip : skip + count]


def bursts(samples: array[float], rate: int) -> dict[int, float]:
    """Which second's burst begins when, in seconds from the first sample."""
    loud = 0.35 * max((abs(one) for one in samples), default=0.0)
    found: dict[int, float] = {}
    i, quiet = 0, rate // 5  # so much silence parts two bursts
    last = -quiet
    while i < len(samples):
        if abs(samples[i]) < loud:
            i += 1
            continue
        if i - last >= quiet:
            found[_second_at(samples, i, rate)] = i / rate
        last = i
        i += 1
    return found


def _second_at(samples: array[float], at: int, rate: int) -> int:
    """Which second a burst belongs to: zero crossings of 40 ms in the middle of it."""
    window = samples[at + rate // 200 : at + rate // 200 + rate // 25]
    crossings = sum((a < 0) != (b < 0) for a, b in pairwise(window))
    return round((crossings * 12.5 - 600) / 200)


def heard(frames: Iterable[av.AudioFrame], rate: int = 48_000) -> array[float]:
    """Decoded frames as mono samples."""
    resampler = AudioResampler(format="flt", layout="mono", rate=rate)
    samples = array("f")
    for made in _resampled(frames, resampler):
        samples.frombytes(bytes(made.planes[0])[: made.samples * 4])
    return samples


def _resampled(frames: Iterable[av.AudioFrame], resampler: AudioResampler) -> Iterator[av.AudioFrame]:
    for frame in frames:
        frame.pts = None
        yield from resampler.resample(frame)
    yield from resampler.resample(None)
