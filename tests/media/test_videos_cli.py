"""Videos on the command line: listed, shown, rolled back, kept."""

import asyncio
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.cli import Said, Shell
from tests.media.transcode_env import settings_in, small, theatre

Source = Callable[[str], Path]


@pytest.fixture(scope="module")
def shell(source: Source, tmp_path_factory: pytest.TempPathFactory) -> Shell:
    """One film in two versions, of which the newer has one rung only; and one that could not be made."""
    folder = tmp_path_factory.mktemp("videos")
    film = Path(shutil.copy(source("mp4-h264"), folder / "film.mp4"))
    (folder / "noise.mp4").write_bytes(b"no film at all" * 100)

    async def made() -> None:
        async with theatre(folder) as house:
            await house.completed(small(film, poster=True))
            await house.completed(small(film, ladder=[{"height": 90, "kbps": 80}]), again=True)
            assert (await house.made(small(folder / "noise.mp4"))).status == "failed"

    asyncio.run(made())
    settings = settings_in(folder)
    (folder / "telecine.toml").write_text(f"artifacts_url = {json.dumps(settings.artifacts_url)}\n")
    return Shell(folder, settings.database_url)


def listed(shell: Shell) -> list[Any]:
    said = shell.quick("videos", "--json")
    assert said.code == 0, said.err
    found: list[Any] = said.json["videos"]
    return found


def film_of(shell: Shell) -> str:
    return next(one["id"] for one in listed(shell) if one["id"].startswith("film-"))


def told(shell: Shell, *options: str) -> Said:
    return shell.quick("video", film_of(shell), *options)


def test_videos_are_listed_with_their_status_page_by_page(shell: Shell) -> None:
    noise, film = listed(shell)
    first = shell.quick("videos", "--json", "--limit", "1").json
    text = shell.quick("videos").out

    assert (noise["status"], noise["version"]) == ("failed", None)
    assert (film["status"], film["beside"], film["version"], film["job"]["id"]) == ("ready", None, 2, 2)
    second = shell.quick("videos", "--json", "--limit", "1", "--cursor", first["next"]).json
    assert [page["videos"][0]["id"] for page in (first, second)] == [noise["id"], film["id"]]
    assert second["next"] is None
    assert "3.4 s" in text
    assert "90p" in text


def test_a_narrow_list_has_one_line_for_each_video_and_its_error_below(shell: Shell) -> None:
    noise, film = (one["id"] for one in listed(shell))

    narrow = shell("videos", COLUMNS="80").out.splitlines()
    wide = shell("videos", COLUMNS="160").out.splitlines()

    assert [line.split()[0] for line in (narrow[0], narrow[1], narrow[3])] == ["video", noise, film]
    assert (len(narrow), narrow[2][:5]) == (4, "     ")
    assert [line.split()[0] for line in wide] == ["video", noise, film]
    assert narrow[2].strip()[:20] in wide[1]


def test_a_video_shows_qualities_steps_versions_and_where_it_lies(shell: Shell) -> None:
    page = told(shell, "--json").json
    text = told(shell).out

    [picture, sound] = page["progress"]["qualities"]
    assert (picture["quality"], picture["status"], picture["segments_completed"]) == ("90p", "completed", 4)
    assert sound["kind"] == "audio"
    assert {step["name"]: step["status"] for step in page["steps"]} == {
        "probe": "completed", "thumbnail": "skipped", "transcode": "completed", "master_playlist": "completed",
        "finalize": "completed",
    }  # fmt: skip
    assert (page["claim"], page["workers"]) == ("completed", ["ann"])
    assert Path(page["master"]["place"]).read_text().startswith("#EXTM3U")
    assert [(v["number"], v["current"]) for v in page["versions"]] == [(2, True), (1, False)]
    assert page["master"]["place"] in text.replace("\n", "")
    assert "master_playlist: completed" in text


def test_a_video_that_could_not_be_made_says_why(shell: Shell) -> None:
    noise = listed(shell)[0]["id"]

    said = shell.quick("video", noise)

    assert said.code == 0
    assert "failed" in said.out
    assert "validate" in said.out or "plan" in said.out


def test_a_rollback_shows_the_older_version_with_its_facts_and_back_again(shell: Shell) -> None:
    back = told(shell, "--rollback")
    older = told(shell, "--json").json
    forth = told(shell, "--rollback", "--to", "2")
    newer = told(shell, "--json").json

    assert (back.code, back.out) == (0, f"{older['id']} shows version 1.\n")
    assert (older["version"], older["facts"]["qualities"]) == (1, ["90p", "180p"])
    assert older["poster"]["place"].endswith("poster.jpg")
    assert Path(older["poster"]["place"]).exists()
    assert forth.code == 0
    assert (newer["version"], newer["facts"]["qualities"], newer["poster"]) == (2, ["90p"], None)
    assert newer["facts"]["bytes"] == sum(one["bytes"] for one in newer["progress"]["qualities"])


def test_what_cannot_be_is_said_in_one_sentence(shell: Shell) -> None:
    ends = {
        ("--rollback", "--to", "9"): (3, "has no version 9"),
        ("--to", "1"): (2, "give both"),
        ("--keep", "9"): (3, "has no version 9"),
    }
    for options, (code, words) in ends.items():
        said = told(shell, *options)
        assert (said.code, said.err.count("\n")) == (code, 1)
        assert words in said.err
    assert shell.quick("video", "nobody").code == 3


def test_a_version_is_kept_and_let_go(shell: Shell) -> None:
    kept = told(shell, "--keep", "1", "--json").json["versions"]
    free = told(shell, "--let-go", "1", "--json").json["versions"]

    assert [[one["keep"] for one in some] for some in (kept, free)] == [[False, True], [False, False]]


def test_a_version_that_has_lost_a_file_is_not_shown(shell: Shell) -> None:
    told(shell, "--rollback", "--to", "1")
    master = Path(told(shell, "--json").json["master"]["place"])
    told(shell, "--rollback", "--to", "2")
    aside = master.rename(master.with_suffix(".aside"))

    said = told(shell, "--rollback")
    aside.rename(master)

    assert said.code == 4
    assert "version 1 is not whole: 1 of its files are gone" in said.err
    assert told(shell, "--json").json["version"] == 2


def test_videos_are_listed_by_status_and_deleted_ones_not_at_all(shell: Shell) -> None:
    """The last one here: what it deletes is not there for others."""
    ready = shell.quick("videos", "--json", "--status", "ready").json["videos"]
    wrong = shell.quick("videos", "--status", "lost")

    deleted = told(shell, "--delete", "--yes")

    assert [one["status"] for one in ready] == ["ready"]
    assert (wrong.code, wrong.err.count("\n")) == (2, 1)
    assert deleted.out.startswith(f"{ready[0]['id']} is deleted")
    assert [one["status"] for one in listed(shell)] == ["failed"]
    assert shell.quick("video", ready[0]["id"], "--delete", "--yes").code == 3
