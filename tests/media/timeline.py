"""What a viewer sees of a file: its index, and the number of the picture that each output frame shows.

In this process and without an encoder: quick enough for many small films.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, replace
from pathlib import Path

from telecine.media.child.pictures.frames import FrameSelector
from telecine.media.child.protocol import ChildSession
from telecine.media.child.source import remux
from telecine.media.child.source.reader import FileSource, SourceReader
from telecine.media.child.timing import scan
from telecine.media.orders import EncodeVideo, Remux, Scan
from telecine.media.plain_json import from_plain
from telecine.media.source import Packets, Samples, Source, retold
from telecine.media.timeline.grid import timing_for
from telecine.media.timeline.index import Index, build_index
from tests.media.in_process import Listener, Told, carry_out
from tests.media.patterns import read_number
from tests.media.test_probe import probed


@dataclass(frozen=True)
class Timeline:
    """The file that workers read, what was seen in it, and all notes on the way."""

    path: Path
    source: Source
    index: Index
    sounds: dict[int, Samples]
    notes: tuple[str, ...]
    damaged: int
    undecodable: int  # frames at the beginning that are left out

    def numbers(self, *, mend: bool = False) -> list[int]:
        """The number of the picture that each output frame shows."""
        shown: list[int] = []
        handle = os.open(self.path, os.O_RDONLY)
        try:
            talk = ChildSession(Listener(), source=SourceReader(FileSource(handle)), scratch=self.path.parent)
            order = self._order(mend)
            for frames, picture in FrameSelector(order, talk, 0, len(order.times)):
                shown += [read_number(picture)] * len(frames)
        finally:
            os.close(handle)
        return shown

    def _order(self, mend: bool) -> EncodeVideo:
        assert self.source.picture is not None
        timing = timing_for(self.index)
        times = self.index.times_of(timing)
        return EncodeVideo(
            picture=self.source.picture,
            format=self.source.format,
            timing=timing,
            first=0,
            times=times,
            keys=self.index.keys_for(times),
            drops=self.index.drops(times),
            wanted=(),
            mend=mend,
        )


def look(path: Path) -> Timeline:
    """Probe and scan, by way of a copy where the flow makes one."""
    source = probed(path)
    if source.seekable:
        seen = _scan(path, source, remuxed=False)
        if not seen.index.needs_remux:
            return seen
    pictures = [source.picture.stream] if source.picture else []
    order = Remux(format=source.format, streams=(*pictures, *(one.stream for one in source.sounds)))
    told = carry_out(remux.run, order, path.parent, path)
    copy = path.parent / told.result["path"]
    seen = _scan(copy, retold(source, probed(copy)), remuxed=True)
    return replace(seen, notes=(*told.notes, *seen.notes), damaged=seen.damaged + told.result["damaged"])


def _scan(path: Path, source: Source, *, remuxed: bool) -> Timeline:
    assert source.picture is not None
    order = Scan(format=source.format, picture=source.picture, sounds=source.sounds)
    told: Told = carry_out(scan.run, order, path.parent, path)
    found = json.loads((path.parent / told.result["path"]).read_text())
    packets = from_plain(Packets, found["packets"])
    index = build_index(packets, declared=source.picture.rate, remuxed=remuxed)
    sounds = {one.stream: one for one in (from_plain(Samples, item) for item in found["sounds"])}
    return Timeline(path, source, index, sounds, tuple(told.notes), told.result["damaged"], told.result["undecodable"])
