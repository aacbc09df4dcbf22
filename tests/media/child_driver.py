"""Drive the real media child as a worker does: a socket pair, JSON lines, the source as a descriptor, acks.

    said = run(Probe(size=…), folder, source=path)        one order, one process
    looked = look(path, folder)                            probe, scan, and remux if it must be
    said = each(looked, orders, folder)                    every order in a process of its own, two at a time

Tests, proofs and benchmarks share it.
"""

from __future__ import annotations

import hashlib
import json
import socket
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from telecine.media.orders import (
    AudioTrackOrder,
    EncodeAudio,
    EncodeVideo,
    MakeInits,
    Probe,
    Remux,
    Rung,
    Scan,
    Segment,
    Timing,
    plain_order,
)
from telecine.media.plain_json import from_plain
from telecine.media.planner import missing, video_order
from telecine.media.source import Packets, Picture, Samples, Sound, Source, retold
from telecine.media.timeline.grid import Chunk, Span, span_of, span_of_sound, timing_for
from telecine.media.timeline.index import Index, build_index
from tests.media.fork_server import ForkServer, start

PATIENCE = 60.0  # seconds without a word
AT_ONCE = 2
nursery: ForkServer | None = None  # where children come from; None: each is started as a worker starts it


class ChildFault(AssertionError):
    """The child said an error, or ended without a last word."""


@dataclass
class Said:
    """All that a child said, and the folder that it worked in."""

    scratch: Path
    lines: list[dict[str, Any]] = field(default_factory=list)
    stderr: str = ""
    exit_code: int | None = None

    def all(self, name: str) -> list[Any]:
        return [line[name] for line in self.lines if name in line]

    @property
    def done(self) -> Any:
        """Its result; a fault if there is none."""
        if not (last := self.all("done")):
            raise ChildFault(f"{self.error or 'no last word'}; exit code {self.exit_code}\n{self.stderr[-2000:]}")
        return last[0]

    @property
    def error(self) -> dict[str, Any] | None:
        return next(iter(self.all("error")), None)

    @property
    def segments(self) -> list[Segment]:
        return [from_plain(Segment, one) for one in self.all("segment")]


def run(
    order: Any,
    scratch: Path,
    *,
    source: Path | None = None,
    patience: float = PATIENCE,
    on_segment: Callable[[Segment], bool] = lambda segment: True,
) -> Said:
    """Carry out one order in `scratch`. `on_segment` answers whether to go on; if not, the child is killed."""
    scratch.mkdir(parents=True, exist_ok=True)
    ours, theirs = socket.socketpair()
    with ours, tempfile.TemporaryFile() as errors:
        with theirs:
            child, files = (nursery.start if nursery else start)(scratch, theirs, errors.fileno(), source)
        said = Said(scratch)
        try:
            ours.settimeout(patience)
            _say(ours, {"order": plain_order(order), "files": files})
            _listen(ours, said, on_segment)
        except BaseException:
            child.kill()
            raise
        finally:
            ours.close()
            said.exit_code = child.wait(timeout=patience)
            errors.seek(0)
            said.stderr = errors.read().decode(errors="replace")
    return said


def _listen(line: socket.socket, said: Said, on_segment: Callable[[Segment], bool]) -> None:
    with line.makefile("rb") as lines:
        for text in lines:
            message = json.loads(text)
            said.lines.append(message)
            if (segment := message.get("segment")) is None:
                continue
            if not on_segment(from_plain(Segment, segment)):
                return
            _say(line, {"ack": [segment["rung"], segment["number"]]})


def _say(line: socket.socket, message: Any) -> None:
    try:
        line.sendall(json.dumps(message).encode() + b"\n")
    except (BrokenPipeError, ConnectionResetError):
        return  # it is gone; what it said before is still to be read


# --- what is in a file -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Looked:
    """The file that workers read, and all that was seen in it."""

    path: Path
    source: Source
    index: Index | None
    samples: dict[int, Samples]
    notes: tuple[str, ...] = ()
    remuxed: bool = False

    @property
    def picture(self) -> Picture:
        assert self.source.picture is not None
        return self.source.picture

    @property
    def times(self) -> Index:
        assert self.index is not None
        return self.index


def probe(path: Path, folder: Path) -> Source:
    return from_plain(Source, run(Probe(size=path.stat().st_size), folder / "probe", source=path).done)


def look(path: Path, folder: Path) -> Looked:
    """Probe, scan, and remux first if the file cannot be sought in or has no proper times."""
    source = probe(path, folder)
    if source.seekable:
        looked = scan(path, source, folder / "scan")
        if looked.index is None or not looked.index.needs_remux:
            return looked
    streams = [source.picture.stream] if source.picture else []
    order = Remux(format=source.format, streams=(*streams, *(sound.stream for sound in source.sounds)))
    said = run(order, folder / "remux", source=path)
    copy = said.scratch / said.done["path"]
    told = retold(source, probe(copy, folder / "copy"))
    looked = scan(copy, told, folder / "copy", remuxed=True)
    # The copy is whole by its own account: what the original lacked, only the remuxer has seen.
    index = looked.index and replace(looked.index, damaged=looked.index.damaged + said.done["damaged"])
    return replace(looked, index=index, notes=(*map(str, said.all("note")), *looked.notes))


def scan(path: Path, source: Source, folder: Path, *, remuxed: bool = False) -> Looked:
    order = Scan(format=source.format, picture=source.picture, sounds=source.sounds)
    said = run(order, folder, source=path)
    found = json.loads((folder / said.done["path"]).read_text())
    index = None
    if source.picture is not None:
        index = build_index(from_plain(Packets, found["packets"]), declared=source.picture.rate, remuxed=remuxed)
    samples = {one.stream: one for one in (from_plain(Samples, item) for item in found["sounds"])}
    return Looked(path, source, index, samples, tuple(map(str, said.all("note"))), remuxed)


# --- what is made of it ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Made:
    """A rung or a track as recorded: its segments, in order."""

    segments: tuple[Segment, ...]
    bodies: tuple[bytes, ...]

    def after(self, init: bytes) -> bytes:
        """A file that a decoder can read."""
        return init + b"".join(self.bodies)


def timing(looked: Looked, segment: Fraction = Fraction(1)) -> Timing:
    return timing_for(looked.times, segment=segment, gop=min(segment, Fraction(2)))


def span(looked: Looked, segment: Fraction = Fraction(1)) -> Span:
    """What every track fills."""
    if looked.index is not None:
        return span_of(looked.index, timing(looked, segment))
    return span_of_sound(next(iter(looked.samples.values())), segment=segment)


def chunks_of(looked: Looked, grid: Timing, most: int) -> list[Chunk]:
    """So many segments each; all in one if nobody can seek."""
    if looked.times.sequential:
        most = grid.segments
    firsts = range(0, grid.segments, most)
    return [Chunk(first=first, count=min(most, grid.segments - first)) for first in firsts]


def make_inits(
    grid: Timing, rungs: Sequence[Rung], tracks: Sequence[AudioTrackOrder], folder: Path
) -> dict[str, bytes]:
    """The init segments of a plan, by rung and track."""
    order = MakeInits(rate=grid.rate, gop=grid.gop, rungs=tuple(rungs), tracks=tuple(tracks))
    said = run(order, folder / "inits")
    assert said.done is not None
    return {init["name"]: (said.scratch / init["path"]).read_bytes() for init in said.all("init")}


def video_orders(
    looked: Looked,
    grid: Timing,
    rungs: Sequence[Rung],
    chunks: Iterable[Chunk],
    inits: Mapping[str, bytes],
    *,
    mend: bool = False,
) -> list[EncodeVideo]:
    """One order for each chunk. A child whose encoder makes another init than the plan's refuses to go on."""
    hashes = {name: hashlib.sha256(init).hexdigest() for name, init in inits.items()}
    return [
        video_order(
            looked.times,
            grid,
            looked.picture,
            missing(chunk, rungs, (), hashes),
            format=looked.source.format,
            mend=mend,
        )
        for chunk in chunks
    ]


def each(looked: Looked, orders: Sequence[Any], folder: Path) -> list[Said]:
    """Every order in a process and a folder of its own, two at a time."""
    homes = [folder / f"task{number}" for number in range(len(orders))]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(lambda one: run(one[0], one[1], source=looked.path), zip(orders, homes, strict=True)))


def gather(spoken: Sequence[Said]) -> dict[str, Made]:
    """Join what several children said, by rung or track."""
    pieces: dict[str, dict[int, tuple[Segment, bytes]]] = {}
    for said in spoken:
        assert said.done is not None
        assert not said.all("rung_failed"), said.all("rung_failed")
        for segment in said.segments:
            known = pieces.setdefault(segment.rung, {})
            assert segment.number not in known, f"{segment.rung} {segment.number} was made twice"
            known[segment.number] = (segment, (said.scratch / segment.path).read_bytes())
    return {name: _made(known) for name, known in pieces.items()}


def _made(known: dict[int, tuple[Segment, bytes]]) -> Made:
    ordered = [known[number] for number in sorted(known)]
    return Made(tuple(segment for segment, _ in ordered), tuple(body for _, body in ordered))


def audio_order(sound: Sound, track: AudioTrackOrder, film: Span, *, format: str) -> EncodeAudio:
    """Encode one track over the whole span of the film."""
    start = round(film.start / sound.time_base)
    return EncodeAudio(sound=sound, format=format, track=track, start=start, length=film.length, borders=film.borders)


def audio_orders(looked: Looked, film: Span) -> list[EncodeAudio]:
    return [
        audio_order(sound, AudioTrackOrder(name=f"audio-{number}"), film, format=looked.source.format)
        for number, sound in enumerate(looked.source.sounds, 1)
        if sound.stream in looked.samples
    ]
