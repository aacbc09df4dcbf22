"""Whatever stands in a playlist, the linter answers with findings; it never raises and never passes nonsense."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from telecine.media.hls.export import HlsExport
from telecine.media.hls.lint import check
from telecine.media.hls.lint_media import MeasuredSegment, measured
from telecine.media.hls.lint_text import parse
from telecine.media.mp4.boxes import InitFacts
from tests.media.cmaf import a_real_film

Files = dict[str, bytes]
WORDS = ["", "0", "-1", "1e9", "²", "9" * 40, "\\x00", '"', "=,=", "@", "x", "../../..", "master.m3u8", "#EXT-X-"]


@pytest.fixture(scope="module")
def film(tmp_path_factory: pytest.TempPathFactory) -> Files:
    shelf, folder = a_real_film(tmp_path_factory.mktemp("shelf")), tmp_path_factory.mktemp("film")
    with HlsExport(folder, "1") as export:
        export.finish(shelf.film, shelf.place)
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@settings(max_examples=80, deadline=None)
@given(st.data())
def test_a_list_that_was_garbled_never_breaks_the_linter(film: Files, data: st.DataObject) -> None:
    lists = sorted(name for name in film if name.endswith(".m3u8"))
    files = dict(film)
    for _ in range(data.draw(st.integers(1, 3))):
        name = data.draw(st.sampled_from(lists))
        files[name] = _garbled(files[name].decode(), data).encode()

    def measure(uri: str, init: InitFacts) -> MeasuredSegment:
        return known.setdefault(uri, measured(files[uri], init))

    findings = check(files.__getitem__, measure=measure)

    same = all(parse(name, files[name].decode()) == parse(name, film[name].decode()) for name in lists)
    assert all(finding.clause and finding.what for finding in findings)
    assert not (same and findings)


known: dict[str, MeasuredSegment] = {}


def _garbled(text: str, data: st.DataObject) -> str:
    lines = text.splitlines()
    at = data.draw(st.integers(0, max(0, len(lines) - 1)))
    match data.draw(st.sampled_from(["drop", "double", "swap", "word", "cut"])):
        case "drop":
            del lines[at : at + 1]
        case "double":
            lines[at:at] = lines[at : at + 1]
        case "swap":
            lines = lines[at:] + lines[:at]
        case "word":
            head, *rest = (lines[at] if lines else "").split(",")
            word = data.draw(st.sampled_from(WORDS))
            lines[at : at + 1] = [",".join([head.partition(":")[0].partition("=")[0] + ":" + word, *rest])]
        case "cut":
            lines[at : at + 1] = [lines[at][: len(lines[at]) // 2]] if lines else []
    return "\n".join(lines)


def test_bytes_that_are_no_text_are_a_finding(film: Files) -> None:
    found = check({**film, "video/h264-240p/index.m3u8": b"\xff\xfe\x00"}.__getitem__)

    assert [finding.where for finding in found][:1] == ["video/h264-240p/index.m3u8"]


def test_what_cannot_be_found_anywhere_is_a_finding(tmp_path: Path) -> None:
    assert [finding.clause for finding in check({}.__getitem__)] == ["RFC 8216 6.2.1"]
