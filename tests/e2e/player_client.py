"""What a viewer gets to see of a film that was fetched piece by piece."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import httpx

from telecine.media.hls.lint import check_folder
from telecine.media.hls.lint_text import parse
from tests.media.readers import ffmpeg_complaints, packager_complaints
from tests.media.transcode_env import numbers_in


@dataclass(frozen=True)
class View:
    """By rendition: the numbers in its frames, the hashes of its init and segments; and what readers complain about."""

    frames: dict[str, list[int]]
    pieces: dict[str, list[str]]
    faults: list[Any]


def view(client: httpx.Client, folder: Path, master: str) -> View:
    """Look at a copy of the film; every piece must be what its ETag says."""
    scratch = folder / "readers"
    scratch.mkdir()
    frames, pieces = {}, {}
    listed = parse(master, (folder / master).read_text())
    for uri in dict.fromkeys(one.uri for one in (*listed.variants, *listed.media) if one.uri):
        files = _files(folder, uri)
        name = PurePosixPath(uri).parent.name
        pieces[name] = [_hashed(client, folder, path) for path in files]
        if not name.startswith("audio"):
            frames[name] = numbers_in(b"".join((folder / path).read_bytes() for path in files))
    faults = [
        *check_folder(folder, master),
        *ffmpeg_complaints(folder, master),
        *packager_complaints(folder, scratch, master),
    ]
    return View(frames, pieces, faults)


def _files(folder: Path, playlist: str) -> list[str]:
    """The init and the segments that a media list names."""
    listed = parse(playlist, (folder / playlist).read_text())
    return [str(listed.map), *(entry.uri for entry in listed.entries)]


def _hashed(client: httpx.Client, folder: Path, path: str) -> str:
    digest = hashlib.sha256((folder / path).read_bytes()).hexdigest()
    assert digest in client.head(f"/{path}").raise_for_status().headers["etag"]
    return digest
