"""A film in a folder: whole at every moment, and nothing of anybody else's touched."""

import hashlib
import re
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from telecine.media.hls.export import MASTER, NOTE, HlsExport
from telecine.media.hls.playlists import Kind
from telecine.media.hls.recorded_film import Film
from tests.support.films import a_film, a_timing, a_video, an_audio, upto

Shelf = Callable[[Kind, str, int], Path]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "film"


def a_shelf(root: Path, film: Film, salt: bytes = b"") -> tuple[Film, Shelf]:
    """The film with bytes behind it; the exporter does not care which."""
    root.mkdir(exist_ok=True)

    def store(kind: str, name: str, number: int, size: int) -> str:
        content = hashlib.sha256(f"{kind}{name}{number}".encode() + salt).digest() * (size // 32 + 1)
        (root / f"{name}-{kind}-{number}").write_bytes(content[:size])
        return hashlib.sha256(content[:size]).hexdigest()

    def shelved(one):  # type: ignore[no-untyped-def]
        init = replace(one.init, sha256=store("init", one.name, 0, one.init.size))
        pieces = tuple(
            replace(piece, sha256=store("segment", one.name, piece.number, piece.size)) for piece in one.pieces
        )
        return replace(one, init=init, pieces=pieces)

    film = replace(film, videos=tuple(map(shelved, film.videos)), audios=tuple(map(shelved, film.audios)))
    return film, lambda kind, name, number: root / f"{name}-{kind}-{number}"


def files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def named(folder: Path) -> Iterator[Path]:
    """Every file that a player finds from the master on."""
    for listed in links(folder / MASTER):
        yield listed
        yield from links(listed)


def links(playlist: Path) -> list[Path]:
    found = re.findall(r'^([^#\n]+)$|URI="([^"]+)"', playlist.read_text(), re.MULTILINE)
    return [playlist.parent / (line or attribute) for line, attribute in found]


def no_place(kind: Kind, rung: str, number: int) -> Path:
    raise AssertionError(f"{kind} {rung} {number} was asked for again")


def test_a_film_lies_in_the_folder_as_any_player_expects(tmp_path: Path, folder: Path) -> None:
    film, shelf = a_shelf(tmp_path / "shelf", a_film(a_video(sizes=(900, 800, 700)), audios=(an_audio(),)))

    with HlsExport(folder, "7") as export:
        export.finish(film, shelf, {"poster.jpg": b"a picture"})

    assert files(folder) == {
        "master.m3u8",
        "poster.jpg",
        NOTE,
        *(f"video/h264-540p/{name}" for name in ("init.mp4", "index.m3u8", "iframe.m3u8")),
        *(f"video/h264-540p/seg_0000{number}.m4s" for number in range(3)),
        *(f"audio/en-aac-2/{name}" for name in ("init.mp4", "index.m3u8")),
        *(f"audio/en-aac-2/seg_0000{number}.m4s" for number in range(3)),
    }
    assert (folder / "video/h264-540p/seg_00001.m4s").read_bytes() == shelf("segment", "540p", 1).read_bytes()
    assert all(path.is_file() for path in named(folder))


def test_a_change_in_the_folder_never_reaches_the_artifact(tmp_path: Path, folder: Path) -> None:
    film, shelf = a_shelf(tmp_path / "shelf", a_film(audios=()))
    before = shelf("segment", "540p", 0).read_bytes()

    with HlsExport(folder, "7") as export:
        export.finish(film, shelf)
    with (folder / "video/h264-540p/seg_00000.m4s").open("r+b") as file:
        file.write(b"tagged")

    assert shelf("segment", "540p", 0).read_bytes() == before


def test_exporting_again_copies_nothing_and_changes_nothing(tmp_path: Path, folder: Path) -> None:
    film, shelf = a_shelf(tmp_path / "shelf", a_film())
    (tmp_path / "poster").write_bytes(b"a picture")
    with HlsExport(folder, "7") as export:
        export.finish(film, shelf, {"poster.jpg": tmp_path / "poster"})
    before = {path: (folder / path).stat().st_mtime_ns for path in files(folder)}

    with HlsExport(folder, "7") as export:
        export.finish(film, no_place, {"poster.jpg": tmp_path / "poster"})

    assert {path: (folder / path).stat().st_mtime_ns for path in files(folder)} == before


def test_a_growing_film_asks_for_each_segment_once(tmp_path: Path, folder: Path) -> None:
    film, shelf = a_shelf(tmp_path / "shelf", a_film(a_video(), a_video("360p")))
    asked: list[tuple[str, str, int]] = []

    def place(kind: Kind, rung: str, number: int) -> Path:
        asked.append((kind, rung, number))
        return shelf(kind, rung, number)

    with HlsExport(folder, "7") as export:
        for most in (0, 1, 1, 2, 3):
            export.update(upto(film, most), place)
            assert (folder / "video/h264-540p/index.m3u8").read_text().count("#EXTINF") == most
        export.finish(film, place)

    assert len(asked) == len(set(asked)) == 3 * (1 + 3)
    assert "#EXT-X-ENDLIST" in (folder / "video/h264-540p/index.m3u8").read_text()


def test_a_reader_sees_a_whole_state_at_every_moment(tmp_path: Path, folder: Path) -> None:
    many = 30
    film = a_film(
        a_video(sizes=(9000,) * many), audios=(an_audio(frames=(281,) * many),), timing=a_timing(segments=many)
    )
    film, shelf = a_shelf(tmp_path / "shelf", film)
    halves, looks, done = [], [], threading.Event()

    def watch() -> None:
        while not done.is_set():
            if (folder / MASTER).exists():
                halves.extend(path for path in named(folder) if not path.is_file())
                halves.extend(path for path in named(folder) if path.suffix == ".m4s" and not path.stat().st_size)
                looks.append(1)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        with HlsExport(folder, "7") as export:
            for most in range(many):
                export.update(upto(film, most), shelf)
            export.finish(film, shelf)
    finally:
        done.set()
        watcher.join()

    assert halves == []
    assert looks


def test_an_optional_rung_that_made_it_appears_in_the_end(tmp_path: Path, folder: Path) -> None:
    extra = a_video("1080p")
    film = a_film(a_video(), replace(extra, rung=replace(extra.rung, required=False)))
    film, shelf = a_shelf(tmp_path / "shelf", film)

    with HlsExport(folder, "7") as export:
        export.update(film, shelf)
        early = (folder / MASTER).read_text()
        export.finish(film, shelf)

    assert "1080p" not in early
    assert "video/h264-1080p/index.m3u8" in (folder / MASTER).read_text()


def test_a_new_version_stands_beside_the_old_one_until_it_is_whole(tmp_path: Path, folder: Path) -> None:
    old, old_shelf = a_shelf(tmp_path / "old", a_film(a_video(), a_video("360p"), audios=()))
    new, new_shelf = a_shelf(tmp_path / "new", a_film(audios=()), b"other")
    with HlsExport(folder, "7") as export:
        export.finish(old, old_shelf)
    during: list[bytes] = []

    def place(kind: Kind, rung: str, number: int) -> Path:
        during.append((folder / "video/h264-540p/seg_00000.m4s").read_bytes())
        return new_shelf(kind, rung, number)

    with HlsExport(folder, "8") as export:
        export.finish(new, place)

    assert set(during) == {old_shelf("segment", "540p", 0).read_bytes()}
    assert {path.split("/seg")[0] for path in files(folder) if "seg" in path} == {"video/h264-540p-2"}
    assert not (folder / "video/h264-360p").exists()
    with HlsExport(folder, "8") as export:
        export.finish(new, no_place)


def test_a_long_film_asks_no_more_of_the_file_system_than_a_short_one(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Path] = []

    def counting(path: Path, follow: Callable[[Path], object]) -> object:
        asked.append(path)
        return follow(path)

    counts = []
    for many in (3, 90):
        film = a_film(a_video(sizes=(40,) * many), audios=(), timing=a_timing(segments=many))
        film, shelf = a_shelf(tmp_path / f"shelf-{many}", film)
        with HlsExport(folder / str(many), "7") as export:
            export.update(film, shelf)
        asked.clear()
        with monkeypatch.context() as patch, HlsExport(folder / str(many), "7") as export:
            for name in ("resolve", "is_file", "exists", "stat"):
                real = getattr(Path, name)
                patch.setattr(Path, name, lambda path, *_, real=real, **__: counting(path, real))
            export.update(film, no_place)
        counts.append(len(asked))

    assert counts[0] == counts[1] > 0


def test_a_segment_that_was_made_anew_replaces_the_old_one(tmp_path: Path, folder: Path) -> None:
    first, shelf = a_shelf(tmp_path / "a", a_film(audios=()))
    again, other = a_shelf(tmp_path / "b", a_film(audios=()), b"in software")
    with HlsExport(folder, "7") as export:
        export.update(first, shelf)
        export.update(again, other)

    assert (folder / "video/h264-540p/seg_00002.m4s").read_bytes() == other("segment", "540p", 2).read_bytes()


def test_an_export_that_died_half_way_is_completed(tmp_path: Path, folder: Path) -> None:
    film, shelf = a_shelf(tmp_path / "shelf", a_film())

    def dying(kind: Kind, rung: str, number: int) -> Path:
        if number == 2:
            raise KeyboardInterrupt
        return shelf(kind, rung, number)

    with pytest.raises(KeyboardInterrupt), HlsExport(folder, "7") as export:
        export.finish(film, dying)
    assert not (folder / MASTER).exists()

    with HlsExport(folder, "7") as export:
        export.finish(film, shelf)

    assert all(path.is_file() for path in named(folder))
    assert not [path for path in files(folder) if path.endswith(".part")]


def test_two_tracks_of_one_kind_get_two_folders(tmp_path: Path, folder: Path) -> None:
    film, shelf = a_shelf(tmp_path / "shelf", a_film(audios=(an_audio("a"), an_audio("b", default=False))))

    with HlsExport(folder, "7") as export:
        export.finish(film, shelf)

    assert {path.split("/")[1] for path in files(folder) if path.startswith("audio")} == {"en-aac-2", "en-aac-2-2"}
