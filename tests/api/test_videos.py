"""Videos over HTTP: listed, begun, made anew, rolled back; each owner sees his own."""

import asyncio
import hashlib
from pathlib import Path
from typing import Any

import pytest

from telecine.apps.transcode.videos.source_policy import SourcePolicy
from telecine.engine.accounts.keys import Caller, Scope
from telecine.engine.queries.view_models import JobView
from telecine.engine.uploads.records import none_such
from telecine.errors import NotAllowed
from telecine.facts import Failed
from tests.api.call_counter import counted_reads
from tests.api.in_process_server import Front
from tests.api.video_fixtures import FLOW, begun, finished, published
from tests.support.builders import a_flow

VIDEOS = "/api/v1/videos"
SHA = hashlib.sha256(b"film").hexdigest()
WEB = {"source": "https://films.example/a.mp4"}


async def ids(client: Any, query: str = "") -> list[str]:
    return [one["id"] for one in (await client.get(VIDEOS + query)).json()["items"]]


async def test_videos_are_listed_the_newest_first_and_only_ones_own(front: Front) -> None:
    for number in range(3):
        await published(front, f"film-{number}")
    await published(front, "bobs", owner="bob")

    first = (await front.ada.get(VIDEOS + "?limit=2")).json()
    rest = (await front.ada.get(VIDEOS + f"?limit=2&cursor={first['next']}")).json()

    assert [one["id"] for one in first["items"] + rest["items"]] == ["film-2", "film-1", "film-0"]
    assert rest["next"] is None
    assert await ids(front.bob) == ["bobs"]
    assert await ids(front.bob, "?owner=ada") == []
    assert await ids(front.admin) == ["bobs", "film-2", "film-1", "film-0"]
    assert await ids(front.admin, "?owner=bob") == ["bobs"]


async def test_videos_are_listed_by_how_they_stand_page_by_page(front: Front) -> None:
    for number in range(4):
        await published(front, f"ready-{number}")
        await begun(front, f"running-{number}")
    await front.bed.settle(front.running.pop("running-0"), Failed("no", permanent=True))
    await front.parts.engine.jobs.submit("transcode", WEB, owner="ada", subject=("video", "waiting"))

    assert await ids(front.ada, "?status=ready") == ["ready-3", "ready-2", "ready-1", "ready-0"]
    assert await ids(front.ada, "?status=processing") == ["running-3", "running-2", "running-1"]
    assert await ids(front.ada, "?status=failed") == ["running-0"]
    assert await ids(front.ada, "?status=pending") == ["waiting"]
    page = (await front.ada.get(VIDEOS + "?status=ready&limit=3")).json()
    rest = (await front.ada.get(VIDEOS + f"?status=ready&limit=3&cursor={page['next']}")).json()
    assert [one["id"] for one in page["items"] + rest["items"]] == ["ready-3", "ready-2", "ready-1", "ready-0"]
    assert rest["next"] is None
    assert (await front.ada.get(VIDEOS + "?status=lost")).status_code == 422
    assert (await front.ada.get(VIDEOS + "?cursor=x")).status_code == 422


async def test_a_foreign_video_is_as_absent_as_none(front: Front) -> None:
    await published(front, "film-1")
    ways = [
        ("GET", ""),
        ("DELETE", ""),
        ("POST", "/retranscode"),
        ("POST", "/rollback"),
        ("POST", "/versions/1/keep"),
        ("POST", "/versions/1/let-go"),
    ]

    for method, path in ways:
        foreign = await front.bob.request(method, f"{VIDEOS}/film-1{path}")
        absent = await front.bob.request(method, f"{VIDEOS}/film-9{path}")
        assert (foreign.status_code, absent.status_code) == (404, 404), (method, path)
        assert foreign.json()["detail"] == absent.json()["detail"].replace("film-9", "film-1")
        assert (await front.nobody.request(method, f"{VIDEOS}/film-1{path}")).status_code == 401
        assert (await front.worker.request(method, f"{VIDEOS}/film-1{path}")).status_code == 403
    assert (await front.ada.get(f"{VIDEOS}/film-1")).json()["version"] == 1


async def test_the_same_source_and_wishes_are_the_same_video_for_one_owner(front: Front) -> None:
    await front.parts.engine.jobs.register(FLOW)

    first = await front.ada.post(VIDEOS, json=WEB)
    again = await front.ada.post(VIDEOS, json=WEB)
    other = await front.bob.post(VIDEOS, json=WEB)

    assert (first.status_code, first.json()["how"]) == (201, "submitted")
    assert first.headers["location"] == f"{VIDEOS}/{first.json()['id']}"
    assert (again.status_code, again.json()) == (200, {**first.json(), "how": "continued"})
    assert other.status_code == 201
    assert other.json()["id"] != first.json()["id"]
    assert await ids(front.bob) == [other.json()["id"]]


async def test_an_owner_names_only_what_he_may(front: Front, tmp_path: Path) -> None:
    await front.parts.engine.jobs.register(FLOW)
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    for folder in (inside, outside):
        folder.mkdir()
        (folder / "a.mp4").write_bytes(b"film")
    (inside / "link.mp4").symlink_to(outside / "a.mp4")
    front.house.checks = {
        "transcode": SourcePolicy([str(inside), "s3://open/films"], {}, none_found, usual_ladder="web")
    }
    sources = {
        str(inside / "a.mp4"): 201,
        str(outside / "a.mp4"): 403,
        str(inside / ".." / "outside" / "a.mp4"): 403,
        str(inside / "link.mp4"): 403,
        f"{inside}-other/a.mp4": 403,
        "/etc/passwd": 403,
        "films/a.mp4": 422,
        "file:///etc/passwd": 422,
        "ftp://films.example/a.mp4": 422,
        "s3://open/films/a.mp4": 201,
        "s3://open/films/../secret/a.mp4": 403,
        "s3://open/films-of-others/a.mp4": 403,
        "s3://other/a.mp4": 403,
        f"upload://{'0' * 32}": 404,
        "https://films.example/b.mp4": 201,
        "/a\0b": 422,
        "": 422,
    }

    found = {source: (await front.ada.post(VIDEOS, json={"source": source})).status_code for source in sources}

    assert found == sources
    assert (await front.admin.post(VIDEOS, json={"source": str(outside / "a.mp4")})).status_code == 201
    assert (await front.admin.post(VIDEOS, json={"source": "s3://other/a.mp4"})).status_code == 201
    assert (await front.admin.post(VIDEOS, json={"source": "/nowhere/a.mp4"})).status_code == 422
    job = {"flow": "transcode", "spec": {"source": "/etc/passwd"}}
    assert (await front.ada.post("/api/v1/jobs", json=job)).status_code == 403


async def test_a_source_inside_the_operators_network_is_refused_at_once_unless_it_is_listed(front: Front) -> None:
    await front.parts.engine.jobs.register(FLOW)
    listed = SourcePolicy([], {}, none_found, usual_ladder="web", private=["10.0.0.0/8"])
    front.house.checks = {"transcode": listed}
    inside = ("127.0.0.1:9", "localhost", "[::1]", "169.254.169.254", "192.168.1.7", "[::ffff:192.168.1.7]")

    refused = [await front.ada.post(VIDEOS, json={"source": f"http://{host}/a.mp4"}) for host in inside]
    taken = await front.ada.post(VIDEOS, json={"source": "http://10.1.2.3/a.mp4"})

    assert {answer.status_code for answer in refused} == {422}
    assert "127.0.0.1 is not on the public internet: upload the film instead" in refused[0].json()["detail"]
    assert taken.status_code == 201


async def test_a_rung_that_the_ladder_has_not_is_refused_at_once(front: Front) -> None:
    await published(front, "film-1")

    wrong = await front.ada.post(VIDEOS, json={**WEB, "ladder": "web", "qualities": ["721p"]})
    anew = await front.ada.post(
        f"{VIDEOS}/film-1/retranscode", json={"qualities": ["721p"], "wishes": {"ladder": "web"}}
    )
    ladder = await front.ada.post(f"{VIDEOS}/film-1/retranscode", json={"wishes": {"ladder": "webb"}})

    assert [answer.status_code for answer in (wrong, anew, ladder)] == [422, 422, 422]
    assert wrong.json()["detail"].startswith("qualities: the ladder has no rung '721p'; it has ")
    assert ladder.json()["detail"] == "there is no ladder 'webb'; did you mean 'web'?"


async def none_found(upload_id: str) -> Any:
    raise none_such(upload_id)


async def test_an_upload_is_a_source_for_its_owner_once_it_has_come_to_its_end(front: Front) -> None:
    await front.parts.engine.jobs.register(FLOW)
    done, still_open = "a" * 32, "b" * 32
    for upload, state, sha in ((done, "done", f"'{SHA}'"), (still_open, "open", "null")):
        await front.bed.sql(
            "insert into upload (id, owner, name, length, received, state, sha256, created_at, updated_at, expires_at) "
            f"values ('{upload}', 'ada', 'My Film.mp4', 4, 4, '{state}', {sha}, 0, 0, 9000000000000)"
        )

    mine = await front.ada.post(VIDEOS, json={"source": f"upload://{done}"})
    foreign = await front.bob.post(VIDEOS, json={"source": f"upload://{done}"})
    early = await front.ada.post(VIDEOS, json={"source": f"upload://{still_open}"})

    assert (mine.status_code, mine.json()["id"].rpartition("-")[0]) == (201, "my-film")
    spec = (await front.parts.engine.queries.job(mine.json()["job_id"])).spec
    assert (spec["sha256"], spec["size"]) == (SHA, 4)
    assert (foreign.status_code, early.status_code) == (404, 409)


async def test_a_check_of_specs_says_what_is_wrong_with_one(front: Front) -> None:
    check = front.house.checks["transcode"]
    ada = Caller("k", "key", Scope.OWNER, "ada", "")

    with pytest.raises(NotAllowed, match="source_folders"):
        await check({"source": "/films/a.mp4"}, ada)
    answers = [
        (await front.ada.post(VIDEOS, json={**WEB, **bad})).json()
        for bad in ({"preset": "warp"}, {"ladder": "unheard-of"}, {"laddr": "hd"}, {"segment_seconds": -1})
    ]

    assert [answer["status"] for answer in answers] == [422] * 4
    assert "unheard-of" in answers[1]["detail"]


async def test_an_administrator_makes_a_video_for_somebody_else(front: Front) -> None:
    await front.parts.engine.jobs.register(FLOW)

    made = (await front.admin.post(VIDEOS, json={**WEB, "owner": "ada", "priority": "high"})).json()

    assert await ids(front.ada) == [made["id"]]
    assert (await front.parts.engine.queries.job(made["job_id"])).priority == 8
    assert (await front.bob.post(VIDEOS, json={**WEB, "owner": "ada"})).status_code == 403


async def test_a_video_is_made_anew_once_while_the_old_version_is_shown(front: Front) -> None:
    await published(front, "film-1")

    first = await front.ada.post(f"{VIDEOS}/film-1/retranscode", json={"qualities": ["720p"]})
    again = await front.ada.post(f"{VIDEOS}/film-1/retranscode", json={"qualities": ["720p"]})
    other = await front.ada.post(f"{VIDEOS}/film-1/retranscode")

    assert (first.status_code, first.json()["how"]) == (202, "submitted")
    assert (again.status_code, again.json()["code"]) == (409, "wrong_state")
    assert f"job {first.json()['job_id']} works on this video just now" in again.json()["detail"]
    assert (other.status_code, other.json()["code"]) == (409, "wrong_state")
    job = await front.parts.engine.queries.job(first.json()["job_id"])
    assert job.spec == {"source": "/films/a.mp4", "qualities": ["720p"]}
    shown = (await front.ada.get(f"{VIDEOS}/film-1")).json()
    assert (shown["status"], shown["beside"], shown["version"]) == ("ready", "re-transcode waits", 1)


@pytest.mark.parametrize("wishes", [[{}] * 4, [{"preset": name} for name in ("fast", "slow", "medium", "slower")]])
async def test_of_re_transcodes_that_come_at_once_one_is_begun(front: Front, wishes: list[dict[str, str]]) -> None:
    await published(front, "film-1")

    answers = await asyncio.gather(
        *(front.ada.post(f"{VIDEOS}/film-1/retranscode", json={"wishes": wish}) for wish in wishes)
    )

    assert sorted(answer.status_code for answer in answers) == [202, 409, 409, 409]
    assert await front.bed.count("job", "outcome is null") == 1


async def test_a_video_that_nobody_works_on_yet_has_no_step_that_began(front: Front) -> None:
    await front.parts.engine.jobs.register(a_flow("validate", "publish", name="transcode"))
    made = (await front.ada.post(VIDEOS, json=WEB)).json()

    with counted_reads(front.parts.store) as reads:
        shown = (await front.ada.get(f"{VIDEOS}/{made['id']}")).json()

    assert sum(isinstance(read, JobView) for read in reads) == 1
    assert shown["status"] == "pending"
    assert shown["steps"][0] == {"name": "probe", "status": "pending"}


async def test_what_a_video_was_made_of_cannot_be_wished_otherwise(front: Front) -> None:
    await published(front, "film-1")

    for wishes in ({"source": "/etc/passwd"}, {"sha256": SHA}, {"name": "x"}):
        answer = await front.ada.post(f"{VIDEOS}/film-1/retranscode", json={"wishes": wishes})
        assert answer.status_code == 403
    bad = await front.ada.post(f"{VIDEOS}/film-1/retranscode", json={"wishes": {"preset": "warp"}})
    assert (bad.status_code, bad.json()["code"]) == (422, "bad_spec")


async def test_an_older_version_is_shown_again_kept_and_let_go(front: Front) -> None:
    await published(front, "film-1")
    await begun(front, "film-1", data=b"new")
    await finished(front, "film-1")

    rolled = await front.ada.post(f"{VIDEOS}/film-1/rollback")
    kept = await front.ada.post(f"{VIDEOS}/film-1/versions/2/keep")
    again = await front.ada.post(f"{VIDEOS}/film-1/versions/2/keep")
    let_go = await front.ada.post(f"{VIDEOS}/film-1/versions/2/let-go")

    assert rolled.json() == {"id": "film-1", "version": 1}
    assert kept.json() == {"id": "film-1", "version": 2, "keep": True, "changed": True}
    assert (again.json()["changed"], let_go.json()["changed"]) == (False, True)
    assert (await front.ada.get(f"{VIDEOS}/film-1")).json()["version"] == 1
    assert (await front.ada.post(f"{VIDEOS}/film-1/rollback", json={"version": 9})).status_code == 404
    assert (await front.ada.post(f"{VIDEOS}/film-1/rollback")).status_code == 409
    assert (await front.ada.post(f"{VIDEOS}/film-1/versions/9/keep")).status_code == 404


async def test_a_version_whose_bytes_are_gone_is_not_shown_again(front: Front) -> None:
    job_id = await published(front, "film-1")
    await begun(front, "film-1", data=b"new")
    await finished(front, "film-1")
    await front.house.artifacts.delete(f"{job_id}/video@1/0/1/720p/00000.m4s")

    answer = await front.ada.post(f"{VIDEOS}/film-1/rollback", json={"version": 1})

    assert (answer.status_code, answer.json()["code"]) == (409, "wrong_state")


async def test_a_video_tells_no_secret_of_its_source(front: Front) -> None:
    await front.parts.engine.jobs.register(FLOW)
    made = (await front.ada.post(VIDEOS, json={"source": "https://me:pass@films.example/a.mp4?token=abc&x=1"})).json()

    video = (await front.ada.get(f"{VIDEOS}/{made['id']}")).json()

    assert video["source"] == "https://me:***@films.example/a.mp4?token=***&x=1"
    assert video["playback"]["master"] is None
    assert video["status"] == "pending"
