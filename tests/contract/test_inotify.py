"""An ear on a file."""

from pathlib import Path

from telecine.dispatch.inotify import FileListener


def test_an_ear_hears_its_file_and_no_other_and_when_it_is_gone(tmp_path: Path) -> None:
    file, other = tmp_path / "one.db-wal", tmp_path / "one.db-wal.bak"
    file.write_text("")
    ear = FileListener.at(file)
    assert ear is not None
    try:
        assert not ear.heard()
        other.write_text("x")
        assert not ear.heard()
        file.write_text("x")
        assert ear.heard()
        assert not ear.heard()
        assert not ear.is_gone
        file.unlink()
        assert ear.heard()
        assert ear.is_gone
    finally:
        ear.close()


def test_there_is_no_ear_for_a_file_that_is_not_there(tmp_path: Path) -> None:
    assert FileListener.at(tmp_path / "away" / "one.db-wal") is None
