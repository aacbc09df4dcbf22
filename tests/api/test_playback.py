"""Real players on a real server: a browser with hls.js from another origin, FFmpeg, Shaka Packager."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from telecine.media.hls.lint import check_folder
from tests.api.live_server import Cinema, cinema, ffmpeg_says, mirrored
from tests.browser import rig
from tests.browser.rig import assert_without_gap
from tests.media.make_video import Film, Shot, shoot
from tests.media.readers import packager_complaints
from tests.media.transcode_env import small

FRAMES = 85
LENGTH = FRAMES / 25


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with rig.page(tmp_path_factory.mktemp("page")) as url:
        yield url


@pytest.fixture(scope="module")
def house(page: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cinema]:
    folder = tmp_path_factory.mktemp("house")
    with cinema(folder, allowed_origins=(page,), source_folders=(str(folder),)) as found:
        yield found


@pytest.fixture(scope="module")
def video(house: Cinema) -> dict[str, Any]:
    film = shoot(house.folder / "film.mp4", Film(shots=(Shot(count=FRAMES),)))
    return house.ready(small(film, poster=True, sprites=True))


def test_a_published_film_plays_and_seeks_in_a_browser_by_its_signed_link(
    house: Cinema, page: str, video: dict[str, Any]
) -> None:
    played = rig.show(page, video["playback"]["urls"]["master"], seconds=40)

    assert played.done["errors"] == []
    assert played.done["first"]["duration"] == pytest.approx(LENGTH, abs=0.001)
    assert_without_gap(played.done["first"], LENGTH)
    assert played.done["frozen"] == []
    assert [one["height"] for one in played.done["shown"]] == [90, 180, 90]
    assert played.done["played"]["ended"]


def test_other_readers_have_nothing_against_it(house: Cinema, video: dict[str, Any], tmp_path: Path) -> None:
    master = house.address + video["playback"]["master"]

    copied = mirrored(house.nobody, master, tmp_path / "film")

    (tmp_path / "scratch").mkdir()
    assert check_folder(tmp_path / "film", copied) == []
    assert packager_complaints(tmp_path / "film", tmp_path / "scratch", copied) == []
    assert ffmpeg_says(master) == []


def test_lists_are_asked_for_anew_and_sent_only_when_they_changed(house: Cinema, video: dict[str, Any]) -> None:
    first = house.nobody.get(video["playback"]["master"])

    again = house.nobody.get(video["playback"]["master"], headers={"If-None-Match": first.headers["etag"]})

    assert first.headers["content-type"] == "application/vnd.apple.mpegurl"
    assert first.headers["cache-control"] == "no-cache"
    assert (again.status_code, again.content) == (304, b"")
    assert house.nobody.head(video["playback"]["master"]).headers["content-length"] == str(len(first.content))
    assert house.ada.get(f"/media/v/{video['id']}/master.m3u8").content == first.content
    assert house.nobody.get(f"/media/v/{video['id']}/master.m3u8").status_code == 401


def test_poster_and_thumbnails_are_there_with_the_sheets_that_they_name(house: Cinema, video: dict[str, Any]) -> None:
    poster = house.nobody.get(video["playback"]["poster"])
    thumbs = house.nobody.get(video["playback"]["thumbnails"])

    sheets = set(re.findall(r"^(\S+\.jpg)#xywh", thumbs.text, re.MULTILINE))
    assert poster.content.startswith(b"\xff\xd8")
    assert thumbs.headers["content-type"].startswith("text/vtt")
    assert sheets
    for sheet in sheets:
        answer = house.nobody.get(video["playback"]["thumbnails"].rpartition("/")[0] + f"/{sheet}")
        assert (answer.status_code, answer.headers["content-type"]) == (200, "image/jpeg")


def test_only_pages_that_are_listed_may_play_it(house: Cinema, page: str, video: dict[str, Any]) -> None:
    address = video["playback"]["master"]

    listed = house.nobody.get(address, headers={"Origin": page})
    other = house.nobody.get(address, headers={"Origin": "https://elsewhere.example"})

    assert listed.headers["access-control-allow-origin"] == page
    assert "access-control-allow-origin" not in other.headers


def test_a_video_says_all_about_itself(house: Cinema, video: dict[str, Any]) -> None:
    assert (video["status"], video["version"], video["length_ms"]) == ("ready", 1, 3_400)
    assert video["source"].endswith("film.mp4")
    assert {one["quality"]: one["status"] for one in video["progress"]["qualities"] if one["kind"] == "video"} == {
        "90p": "completed",
        "180p": "completed",
    }
    assert [one["number"] for one in video["versions"]] == [1]
    assert [one["id"] for one in video["jobs"]] == [video["progress"]["job_id"]]
    assert video["playback"]["preview"] is None


def test_a_quality_that_the_film_has_not_is_refused_at_once(house: Cinema, video: dict[str, Any]) -> None:
    answer = house.ada.post(f"/api/v1/videos/{video['id']}/retranscode", json={"qualities": ["999p"]})

    assert answer.status_code == 422
    assert answer.json()["detail"].startswith("qualities: ")
    assert "no rung '999p'; it has 90p, 180p" in answer.json()["detail"]


def test_chosen_qualities_are_made_anew_while_the_old_version_plays_on(
    house: Cinema, video: dict[str, Any], tmp_path: Path
) -> None:
    """The last one with this video: it has another version afterwards."""
    master = house.address + video["playback"]["master"]
    old = mirrored(house.nobody, master, tmp_path / "old")
    pieces = sorted(path for path in (tmp_path / "old").rglob("*.m4s"))

    wanted = {"qualities": ["180p"], "wishes": {"preset": "veryfast"}}
    answer = house.ada.post(f"/api/v1/videos/{video['id']}/retranscode", json=wanted)
    house.until(video["id"], "another version is shown", lambda now: now["version"] == 2)

    assert answer.status_code == 202
    for path in pieces:
        again = house.nobody.get("/" + str(path.relative_to(tmp_path / "old")))
        assert again.content == path.read_bytes()
    new = mirrored(house.nobody, master, tmp_path / "new")
    assert check_folder(tmp_path / "new", new) == []
    assert "/v2/" in "".join(str(path) for path in (tmp_path / "new").rglob("*.m3u8"))
    rolled = house.ada.post(f"/api/v1/videos/{video['id']}/rollback")
    assert rolled.json()["version"] == 1
    assert house.nobody.get(master).content == (tmp_path / "old" / old).read_bytes()


def test_a_film_is_watched_while_it_is_encoded_by_its_signed_link(page: str, tmp_path: Path) -> None:
    """The encoder is much quicker than a browser, so it rests until somebody watches."""
    frames = 200
    with cinema(tmp_path / "house", allowed_origins=(page,), source_folders=(str(tmp_path),)) as house:
        film = shoot(tmp_path / "film.mp4", Film(shots=(Shot(count=frames),)))
        begun = house.begun(small(film, preset="veryslow", chunk_segments=1))
        house.until(begun["id"], "something can be watched", lambda video: watchable(house, video))
        house.pause("transcode")
        growing = house.video(begun["id"])
        assert growing["playback"]["master"] is None
        preview = house.address + growing["playback"]["preview"]

        played = rig.show(page, preview, "watch", seconds=60, opened=lambda: house.pause("transcode", False))

        assert played.opened["time"] < 1
        assert played.opened["duration"] < frames / 25
        assert played.done["ended"]
        assert played.done["time"] == pytest.approx(frames / 25, abs=0.03)
        assert not [error for error in played.done["errors"] if error["fatal"]]
        assert_without_gap(played.done, frames / 25)
        assert house.video(begun["id"])["status"] == "ready"


def watchable(house: Cinema, video: dict[str, Any]) -> bool:
    preview = video["playback"]["preview"]
    return preview is not None and house.nobody.get(preview).status_code == 200
