"""The init segment of each rung and track, before anything is encoded: it is final from the first moment."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from telecine.media.child.encode.encoder import Encoder, black, timing_of
from telecine.media.child.protocol import ChildSession, OrderRefused
from telecine.media.mp4.boxes import read_init
from telecine.media.orders import Init, MakeInits, Rung


def run(order: MakeInits, talk: ChildSession) -> Mapping[str, Any]:
    """Say an `Init` for each; an encoder that cannot open fails the plan, not the hundredth chunk."""
    for rung in order.rungs:
        talk.init(kept(talk.scratch, rung.name, video_init(rung, order)))
    if order.tracks:
        from telecine.media.child.sound.audio_track import audio_init  # noqa: PLC0415

        for track in order.tracks:
            talk.init(kept(talk.scratch, track.name, audio_init(track)))
    return {"inits": len(order.rungs) + len(order.tracks)}


def warm_up(order: MakeInits) -> None:
    from telecine.media.child.encode import chunk  # noqa: PLC0415

    chunk.warm_up_encoders(order.rungs, order.limits.threads)
    if order.tracks:
        from telecine.media.child.sound import audio_track  # noqa: PLC0415

        audio_track.audio_init(order.tracks[0])


def video_init(rung: Rung, order: MakeInits) -> bytes:
    """Encode one black frame as a chunk would: the init is that of every later chunk."""
    encoder = Encoder(rung, timing_of(order.rate, order.gop), threads=order.limits.threads)
    encoder.encode(black(rung), 0)
    encoder.finish()
    if encoder.init is None:
        raise OrderRefused("muxer_failed", f"no init came for {rung.name}")
    return encoder.init


def kept(scratch: Path, name: str, data: bytes) -> Init:
    """Write an init into the scratch folder, whole or not at all."""
    facts = read_init(data)
    path = scratch / f"{name}-init.mp4"
    part = path.with_suffix(".part")
    with part.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    part.rename(path)
    return Init(
        name=name,
        path=path.name,
        size=len(data),
        sha256=hashlib.sha256(data).hexdigest(),
        codecs=facts.codecs,
        timescale=facts.timescale,
    )
