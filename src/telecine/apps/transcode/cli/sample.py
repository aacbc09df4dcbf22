"""A film to try things with."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Target = Annotated[Path, typer.Argument(metavar="FILE", help="Where to write it; its ending chooses the container.")]
Seconds = Annotated[int, typer.Option(min=1, max=3600, help="How long it is.")]
Height = Annotated[int, typer.Option(min=90, max=2160, help="How high the picture is; 16:9.")]

# By the ending of the file, FFmpeg's name of a container that takes H.264 and AAC.
CONTAINERS = {
    "": "mp4",
    ".mp4": "mp4",
    ".m4v": "mp4",
    ".mov": "mov",
    ".mkv": "matroska",
    ".ts": "mpegts",
    ".mts": "mpegts",
    ".m2ts": "mpegts",
    ".flv": "flv",
    ".avi": "avi",
}


def sample(file: Target = Path("sample.mp4"), *, seconds: Seconds = 24, height: Height = 720) -> None:
    """Write a small test film, to try `transcode` with."""
    from telecine.errors import BadSpec
    from telecine.media.sample import make_sample

    container = CONTAINERS.get(file.suffix.lower())
    if container is None:
        known = ", ".join(ending for ending in CONTAINERS if ending)
        raise BadSpec(f"no film of H.264 and AAC can be written as {file.suffix}; use one of {known}")
    if file.exists():
        raise BadSpec(f"{file} is there already; name another file")
    part = file.with_name(f"{file.name}.part")
    try:
        make_sample(part, seconds, 2 * round(height * 8 / 9), height - height % 2, container)
        part.rename(file)
    except OSError as error:
        raise BadSpec(f"{file} cannot be written: {error.strerror}") from error
    finally:
        part.unlink(missing_ok=True)
    print(f"Wrote {file}: {seconds} s of a moving test picture and a tone.")
