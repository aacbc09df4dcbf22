"""What an export does not touch: folders of others, files of others, and streams of another film."""

import json
from pathlib import Path

import pytest

from telecine.errors import BadSpec
from telecine.media.hls.export import NOTE, HlsExport
from tests.media.test_export import a_shelf, files, folder
from tests.support.films import a_film

__all__ = ["folder"]


def test_a_folder_with_other_things_is_refused_and_left_alone(folder: Path) -> None:
    folder.mkdir()
    (folder / "thesis.txt").write_text("years of work")

    with pytest.raises(BadSpec, match="is not empty and no export of Telecine: choose another folder"):
        HlsExport(folder, "7")

    assert files(folder) == {"thesis.txt"}


def test_a_strangers_file_in_an_export_is_neither_overwritten_nor_removed(tmp_path: Path, folder: Path) -> None:
    film, shelf = a_shelf(tmp_path / "shelf", a_film(audios=()))
    with HlsExport(folder, "7") as export:
        export.finish(film, shelf)
    (folder / "video/h264-540p/notes.txt").write_text("mine")
    (folder / "poster.jpg").write_text("mine, too")

    with HlsExport(folder, "8") as export:
        with pytest.raises(BadSpec, match=r"poster\.jpg is in the way"):
            export.finish(film, shelf, {"poster.jpg": b"ours"})
        export.finish(film, shelf)

    assert (folder / "video/h264-540p/notes.txt").read_text() == "mine"
    assert (folder / "poster.jpg").read_text() == "mine, too"


@pytest.mark.parametrize("path", ["../precious", "elsewhere/precious", "/etc/precious", "a/../../precious"])
def test_a_forged_note_cannot_lead_outside(tmp_path: Path, folder: Path, path: str) -> None:
    folder.mkdir()
    (folder / "elsewhere").symlink_to(tmp_path)
    for note in ({"folders": {}, "files": {path: "1:a"}}, {"folders": {"540p": path}, "files": {}}):
        (folder / NOTE).write_text(json.dumps({"format": 1, "version": "6", **note}))

        with pytest.raises(BadSpec, match="leads out of the export"):
            HlsExport(folder, "7")


@pytest.mark.parametrize("note", ["{", "[]", '{"format": 1}', '{"format": 99, "files": {}, "folders": {}}'])
def test_a_note_that_makes_no_sense_is_refused(folder: Path, note: str) -> None:
    folder.mkdir()
    (folder / NOTE).write_text(note)

    with pytest.raises(BadSpec, match="choose another folder"):
        HlsExport(folder, "7")


def test_two_exports_do_not_write_into_one_folder_at_once(folder: Path) -> None:
    with HlsExport(folder, "7"), pytest.raises(BadSpec, match="another export is writing"):
        HlsExport(folder, "8")

    with HlsExport(folder, "8"):
        pass


def test_a_folder_that_holds_another_film_is_refused(tmp_path: Path, folder: Path) -> None:
    film, shelf = a_shelf(tmp_path / "shelf", a_film())
    with HlsExport(folder, "7", "one-film") as export:
        export.finish(film, shelf)

    with pytest.raises(BadSpec, match="holds another film, one-film"), HlsExport(folder, "8", "another-film"):
        pass

    with HlsExport(folder, "8", "one-film"):
        pass


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(BadSpec, match="there can be no folder"):
        HlsExport(tmp_path / "file", "7")
