"""docs/uploads.md can be followed."""

from pathlib import Path

from tests.support.docs import ROOT, play


def test_the_page_about_uploads_can_be_followed(tmp_path: Path) -> None:
    play(ROOT / "docs" / "uploads.md", tmp_path)
