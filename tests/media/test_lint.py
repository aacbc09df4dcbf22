"""The linter: silent on a correct film, and each rule found that is broken on purpose."""

import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

import pytest

from telecine.media.hls.export import HlsExport
from telecine.media.hls.lint import check, check_folder
from telecine.media.hls.lint_media import MeasuredSegment, measured
from telecine.media.hls.recorded_film import Film
from tests.media.cmaf import Shelf, a_real_film
from tests.support.films import upto

MASTER = "master.m3u8"
HIGH, LOW = "video/h264-240p", "video/h264-180p"
INDEX, IFRAMES, OTHER = f"{HIGH}/index.m3u8", f"{HIGH}/iframe.m3u8", f"{LOW}/index.m3u8"
SOUND = "audio/en-aac-2/index.m3u8"


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Shelf:
    return a_real_film(tmp_path_factory.mktemp("shelf"))


@pytest.fixture(scope="module")
def correct(shelf: Shelf, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("correct")
    with HlsExport(folder, "1") as export:
        export.finish(shelf.film, shelf.place)
    return folder


@pytest.fixture
def film(correct: Path, tmp_path: Path) -> Path:
    """A film that the test may spoil."""
    return Path(shutil.copytree(correct, tmp_path / "film"))


def clauses(folder: Path) -> set[str]:
    return {finding.clause for finding in check_folder(folder)}


def test_a_correct_film_has_no_findings(correct: Path) -> None:
    assert check_folder(correct) == []


def test_a_growing_film_has_no_findings_at_any_length(shelf: Shelf, tmp_path: Path) -> None:
    with HlsExport(tmp_path / "film", "1") as export:
        for most in range(6):
            export.update(upto(shelf.film, most), shelf.place)

            assert check_folder(tmp_path / "film") == []


@pytest.mark.parametrize("kept", ["videos", "audios"])
def test_a_film_without_sound_or_without_pictures_has_no_findings(shelf: Shelf, tmp_path: Path, kept: str) -> None:
    film = Film(timing=shelf.film.timing, **{kept: getattr(shelf.film, kept)})
    with HlsExport(tmp_path / "film", "1") as export:
        export.finish(film, shelf.place)

    assert check_folder(tmp_path / "film") == []


def test_known_facts_spare_the_bytes_of_the_segments(correct: Path) -> None:
    opened: list[str] = []

    def read(uri: str) -> bytes:
        opened.append(uri)
        return (correct / uri).read_bytes()

    def known(uri: str, init: object) -> MeasuredSegment:
        return measured((correct / uri).read_bytes(), init)  # type: ignore[arg-type]

    assert check(read, measure=known) == []
    assert not [uri for uri in opened if uri.endswith(".m4s")]


def test_uris_are_resolved_against_the_master(correct: Path) -> None:
    def read(uri: str) -> bytes:
        assert uri.startswith("7/package@1/")
        return (correct / uri.removeprefix("7/package@1/")).read_bytes()

    assert check(read, "7/package@1/master.m3u8") == []


# --- one rule at a time ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Spoiled:
    """How a list is spoilt, and which clause must be found; `also` are those that follow of necessity."""

    name: str
    file: str
    change: Callable[[str], str]
    clause: str
    also: tuple[str, ...] = ()


def swap(old: str, new: str, *, count: int = 1) -> Callable[[str], str]:
    def change(text: str) -> str:
        changed, times = re.subn(old, new, text, count=count, flags=re.MULTILINE)
        assert times, f"{old} is not in the list"
        return changed

    return change


def scaled(name: str, by: Fraction) -> Callable[[str], str]:
    """The first figure of this name, times `by`."""

    def change(text: str) -> str:
        return re.sub(rf"(?<=[:,]){name}=(\d+)", lambda at: f"{name}={int(int(at[1]) * by)}", text, count=1)

    return change


UP, DOWN = Fraction(112, 100), Fraction(88, 100)
VARIANT = "RFC 8216 4.3.4.2"
GROUP = "RFC 8216 4.3.4.1"
UNREADABLE = "RFC 8216 6.2.1"
MAP = "RFC 8216 4.3.2.5"
TARGET = "RFC 8216 4.3.3.1"
KIND = "RFC 8216 4.3.3.5"
FORM = "RFC 8216 4.3.1"
SPOILED = [
    Spoiled("no EXTM3U", MASTER, swap("#EXTM3U\n", ""), FORM),
    Spoiled("no version", INDEX, swap("#EXT-X-VERSION:7\n", ""), FORM),
    Spoiled("old version", MASTER, swap("VERSION:7", "VERSION:3"), FORM),
    Spoiled("dependent", MASTER, swap("#EXT-X-INDEPENDENT-SEGMENTS\n", ""), "RFC 8216 4.3.5.1"),
    Spoiled("bandwidth too high", MASTER, scaled("BANDWIDTH", UP), "Apple 1.27"),
    Spoiled("bandwidth too low", MASTER, scaled("BANDWIDTH", DOWN), "Apple 1.27"),
    Spoiled("average too high", MASTER, scaled("AVERAGE-BANDWIDTH", UP), "Apple 1.26"),
    Spoiled("average too low", MASTER, scaled("AVERAGE-BANDWIDTH", DOWN), "Apple 1.26"),
    Spoiled("no average", MASTER, swap(r",AVERAGE-BANDWIDTH=\d+", ""), VARIANT),
    Spoiled("no codecs", MASTER, swap(r'(STREAM-INF.*),CODECS="[^"]+",R', r"\1,R"), VARIANT),
    Spoiled("codecs without audio", MASTER, swap(",mp4a.40.2", ""), VARIANT),
    Spoiled("other codecs", MASTER, swap(r"avc1\.64", "avc1.42"), VARIANT),
    Spoiled("other resolution", MASTER, swap("RESOLUTION=426x240,F", "RESOLUTION=426x238,F"), VARIANT, ("Apple 6.1",)),
    Spoiled("other frame rate", MASTER, swap(r"FRAME-RATE=24\.000", "FRAME-RATE=25.000"), VARIANT),
    Spoiled("no video range", MASTER, swap("VIDEO-RANGE=SDR,A", "A"), VARIANT),
    Spoiled("captions left open", MASTER, swap(",CLOSED-CAPTIONS=NONE", ""), VARIANT),
    Spoiled(
        "unknown group",
        MASTER,
        swap('AUDIO="audio"', 'AUDIO="stereo"', count=0),
        GROUP,
        (
            VARIANT,
            "Apple 1.26",
            "Apple 1.27",
        ),
    ),
    Spoiled("two defaults", MASTER, swap("DEFAULT=NO", "DEFAULT=YES"), GROUP),
    Spoiled("no default", MASTER, swap("DEFAULT=YES", "DEFAULT=NO"), GROUP),
    Spoiled("one name twice", MASTER, swap('NAME="Kommentar"', 'NAME="English"'), GROUP),
    Spoiled("smallest first", MASTER, lambda text: "\n".join(_swapped(text.splitlines())), "Apple 1.32"),
    Spoiled("no I-frames for a rung", MASTER, swap(r"#EXT-X-I-FRAME-STREAM-INF.*180p.*\n", ""), "Apple 6.1"),
    Spoiled("dangling list", MASTER, swap(f"^{LOW}/index", f"{LOW}/gone"), UNREADABLE),
    Spoiled("dangling segment", INDEX, swap("seg_00002", "seg_00009"), UNREADABLE),
    Spoiled("dangling audio", SOUND, swap("seg_00002", "seg_00009"), UNREADABLE),
    Spoiled("no map", INDEX, swap("#EXT-X-MAP.*\n", ""), MAP, (UNREADABLE,)),
    Spoiled("dangling map", INDEX, swap("init.mp4", "gone.mp4"), MAP, (UNREADABLE,)),
    Spoiled("no end", INDEX, swap("#EXT-X-ENDLIST\n", ""), KIND),
    Spoiled("no kind", INDEX, swap("#EXT-X-PLAYLIST-TYPE:VOD\n", ""), KIND),
    Spoiled("no target", INDEX, swap("#EXT-X-TARGETDURATION:1\n", ""), TARGET, ("Apple 8.2",)),
    Spoiled("target too short", INDEX, swap("TION:1$", "TION:0"), TARGET, ("Apple 8.2",)),
    Spoiled("another target", SOUND, swap("TION:1$", "TION:2"), "Apple 8.2"),
    Spoiled("one frame off", INDEX, swap("#EXTINF:1.000000", "#EXTINF:1.041700"), "Apple 8.1"),
    Spoiled("drift", INDEX, swap("#EXTINF:1.000000", "#EXTINF:1.015000", count=0), "Apple 8.1"),
    Spoiled("audio drift", SOUND, swap(r"#EXTINF:[\d.]+", "#EXTINF:1.070000"), "Apple 8.1"),
    Spoiled(
        "a segment left out",
        OTHER,
        swap(r"#EXTINF.*\nseg_00002.m4s\n", ""),
        "RFC 8216 4.3.2.3",
        (
            "Apple 8.22",
            "Apple 8.3",
            "Apple 6.10",
            "Apple 8.1",
        ),
    ),
    Spoiled(
        "the end left out",
        OTHER,
        swap(r"#EXTINF.*\nseg_00003.m4s\n#EXTINF.*\nseg_00004.m4s\n", ""),
        "Apple 8.3",
        ("Apple 8.22", "Apple 6.10", "Apple 1.27"),
    ),
    Spoiled("audio ends early", SOUND, swap(r"#EXTINF.*\nseg_00004.m4s\n", ""), "Apple 8.3"),
    Spoiled("not I-frames only", IFRAMES, swap("#EXT-X-I-FRAMES-ONLY\n", ""), "RFC 8216 4.3.3.6"),
    Spoiled("range too short", IFRAMES, swap(r"RANGE:(\d+)\d@", r"RANGE:\1@"), "Apple 6.10", ("Apple 1.27",)),
    Spoiled("range elsewhere", IFRAMES, swap(r"@[1-9]\d+", "@77"), "Apple 6.10"),
    Spoiled("range of no keyframe", IFRAMES, swap("seg_00001", "seg_00003"), "Apple 6.10"),
    Spoiled(
        "a keyframe left out",
        IFRAMES,
        swap(r"#EXTINF.*\n#EXT-X-BYTE.*\nseg_00004.m4s\n", ""),
        "Apple 6.10",
        ("Apple 1.27", "Apple 8.1"),
    ),
    Spoiled("I-frame times", IFRAMES, swap("#EXTINF:0.500000", "#EXTINF:0.550000"), "Apple 8.1"),
    Spoiled("I-frames of nothing", IFRAMES, swap("init.mp4", "gone.mp4"), UNREADABLE),
    Spoiled(
        "I-frame bandwidth",
        MASTER,
        swap(r"I-FRAME-STREAM-INF:BANDWIDTH=\d+", "I-FRAME-STREAM-INF:BANDWIDTH=10"),
        "Apple 1.27",
    ),
]


def _swapped(lines: list[str]) -> list[str]:
    at = [number for number, line in enumerate(lines) if line.startswith("#EXT-X-STREAM-INF")]
    first, second = (lines[number : number + 2] for number in at)
    return [*lines[: at[0]], *second, *first, *lines[at[1] + 2 :], ""]


@pytest.mark.parametrize("case", SPOILED, ids=lambda case: case.name)
def test_a_broken_rule_is_found_by_its_clause(film: Path, case: Spoiled) -> None:
    path = film / case.file
    path.write_text(case.change(path.read_text()))

    found = clauses(film)

    assert case.clause in found
    assert found <= {case.clause, *case.also}


def test_rungs_that_do_not_share_their_borders_are_found(film: Path) -> None:
    index = film / LOW / "index.m3u8"
    joined = (film / LOW / "seg_00000.m4s").read_bytes() + (film / LOW / "seg_00001.m4s").read_bytes()
    (film / LOW / "seg_00000.m4s").write_bytes(joined)
    text = re.sub(r"#EXTINF.*\nseg_00001.m4s\n", "", index.read_text()).replace("1.000000", "2.000000", 1)
    index.write_text(text)

    assert "Apple 8.22" in clauses(film)


def test_a_segment_that_begins_without_a_keyframe_is_found(film: Path) -> None:
    segment = film / HIGH / "seg_00001.m4s"
    data = segment.read_bytes()
    at = data.index(b"trun")
    first_flags = at + 4 + 4 + 4 + 4  # version and flags, count, offset
    assert data[at + 7] & 0x4
    segment.write_bytes(data[:first_flags] + b"\x01\x01\x00\x00" + data[first_flags + 4 :])

    assert "RFC 8216 4.3.5.1" in clauses(film)


def test_a_damaged_segment_is_found(film: Path) -> None:
    segment = film / HIGH / "seg_00001.m4s"
    segment.write_bytes(segment.read_bytes()[:-10])

    assert clauses(film) == {"RFC 8216 6.2.1"}


def test_a_growing_list_must_say_where_to_start(shelf: Shelf, tmp_path: Path) -> None:
    with HlsExport(tmp_path / "film", "1") as export:
        export.update(shelf.film, shelf.place)
    path = tmp_path / "film" / HIGH / "index.m3u8"
    path.write_text(path.read_text().replace("#EXT-X-START:TIME-OFFSET=0\n", ""))

    assert clauses(tmp_path / "film") == {"RFC 8216 4.3.5.2"}


def test_a_growing_film_that_needs_more_than_its_planned_bandwidth_is_found(shelf: Shelf, tmp_path: Path) -> None:
    small = [replace(one, rung=replace(one.rung, maxrate=10_000, bufsize=10_000)) for one in shelf.film.videos]
    with HlsExport(tmp_path / "film", "1") as export:
        export.update(replace(shelf.film, videos=tuple(small)), shelf.place)

    assert clauses(tmp_path / "film") == {VARIANT}


def test_a_missing_master_is_a_finding_and_not_a_crash(tmp_path: Path) -> None:
    assert clauses(tmp_path) == {"RFC 8216 6.2.1"}
