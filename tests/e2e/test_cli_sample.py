"""`telecine sample`: a film to try things with, in the container that its name asks for."""

from pathlib import Path

import av
import pytest

from tests.e2e.cli import Shell


@pytest.mark.parametrize(
    ("name", "container"),
    [("film.mp4", "mp4"), ("film.MOV", "mov"), ("film.mkv", "matroska"), ("film.ts", "mpegts"), ("film", "mp4")],
)
def test_the_ending_chooses_the_container(tmp_path: Path, sqlite_url: str, name: str, container: str) -> None:
    said = Shell.prepare(tmp_path, sqlite_url).quick("sample", name, "--seconds", "1", "--height", "90")

    assert (said.code, said.err) == (0, "")
    with av.open(str(tmp_path / name)) as film:
        assert container in film.format.name.split(",")
        assert [stream.codec_context.name for stream in film.streams] == ["h264", "aac"]
