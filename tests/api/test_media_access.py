"""Who may watch: the owner, whoever has a signed link, or everybody if the operator wants it so."""

from telecine.facts import DAY, HOUR
from tests.api.in_process_server import Front
from tests.api.video_fixtures import SEGMENT, begun, finished, link_of, piece_of, published


async def test_others_see_nothing_and_nobody_needs_a_key(front: Front) -> None:
    piece = await piece_of(front, await published(front, "film-1"))
    address = f"/media/v/film-1/{piece.path}"
    session = await front.house.keys.log_in(await front.house.keys.link())
    cookie = {"Cookie": f"telecine_session={session.text}"}

    codes = [(await one.get(address)).status_code for one in (front.ada, front.admin, front.bob, front.worker)]

    assert codes == [200, 200, 404, 401]
    assert (await front.nobody.get(address)).status_code == 401
    assert (await front.nobody.get(address, headers=cookie)).status_code == 200
    absent = await front.bob.get(f"/media/v/film-9/{piece.path}")
    foreign = await front.bob.get(address)
    assert absent.json()["detail"].replace("film-9", "film-1") == foreign.json()["detail"]


async def test_a_piece_is_not_there_below_a_video_of_ones_own(front: Front) -> None:
    shown = await piece_of(front, await published(front, "film-1"))
    hidden = await piece_of(front, await begun(front, "film-2"))
    await published(front, "bobs", owner="bob")
    await begun(front, "bobs-next", owner="bob")

    for video in ("bobs", "bobs-next"):
        for piece in (shown, hidden):
            assert (await front.bob.get(f"/media/v/{video}/{piece.path}")).status_code == 404


async def test_a_signed_link_needs_no_key_and_opens_one_video(front: Front) -> None:
    piece = await piece_of(front, await published(front, "film-1"))
    other = await piece_of(front, await published(front, "film-2"))
    base = await link_of(front, "film-1")

    allowed = await front.nobody.get(base + piece.path)

    assert (allowed.status_code, allowed.content) == (200, SEGMENT)
    assert allowed.headers["cache-control"].startswith("public, max-age=")
    assert (await front.nobody.get(base + other.path)).status_code == 404
    assert (await front.nobody.get(base.replace("film-1", "film-2") + other.path)).status_code == 401
    assert (await front.nobody.get(base + "v1/poster.jpg")).status_code == 200


async def test_addresses_are_told_as_paths_and_in_full(front: Front) -> None:
    await published(front, "film-1")

    plain = (await front.ada.get("/api/v1/videos/film-1")).json()["playback"]
    front.house.settings = front.settings.model_copy(update={"public_url": "https://films.example"})
    public = (await front.ada.get("/api/v1/videos/film-1")).json()["playback"]

    assert plain["master"].startswith("/media/t/")
    assert plain["urls"]["master"] == f"http://telecine.test{plain['master']}"
    assert public["urls"]["master"] == public["master"] == f"https://films.example{plain['master']}"
    assert (plain["urls"]["preview"], public["urls"]["preview"]) == (None, None)


async def test_a_link_ends_and_cannot_be_altered(front: Front) -> None:
    piece = await piece_of(front, await published(front, "film-1"))
    base = await link_of(front, "film-1")
    token = base.split("/")[3]
    later = f"{token[0]}{int(token[1:].partition('.')[0], 16) + 3600:x}.{token.partition('.')[2]}"

    for bad in (later, "p" + token[1:], token[:-1], token + "a", "w.x", "", "w" + "f" * 400):
        answer = await front.nobody.get(f"/media/t/{bad}/film-1/{piece.path}")
        assert answer.status_code in (401, 404), bad
    front.parts.store.now = await now(front) + 14 * HOUR
    ended = await front.nobody.get(base + piece.path)

    assert (ended.status_code, ended.json()["code"]) == (401, "key_invalid")
    assert "expired" in ended.json()["detail"]


async def now(front: Front) -> int:
    [row] = await front.bed.ask("pulse_get")
    return int(row["now"])


async def test_whoever_guesses_links_is_slowed_down(front: Front) -> None:
    limit = front.settings.bad_key_limit

    codes = [(await front.nobody.get(f"/media/t/w1.{'a' * 32}/film/master.m3u8")).status_code for _ in range(limit + 2)]

    assert codes[:limit] == [401] * limit
    assert codes[-1] == 429


async def test_open_media_shows_what_is_published_to_everybody_and_nothing_else(front: Front) -> None:
    front.house.settings = front.settings.model_copy(update={"open_media": True})
    shown = await piece_of(front, await published(front, "film-1"))
    hidden = await piece_of(front, await begun(front, "film-2"))

    assert (await front.nobody.get(f"/media/v/film-1/{shown.path}")).status_code == 200
    assert (await front.bob.get(f"/media/v/film-1/{shown.path}")).status_code == 200
    assert (await front.nobody.get(f"/media/v/film-2/{hidden.path}")).status_code == 404
    stale = {"Cookie": "telecine_session=tcn_gone"}
    assert (await front.nobody.get(f"/media/v/film-1/{shown.path}", headers=stale)).status_code == 200


async def test_what_is_still_made_is_its_owners_by_key_or_by_a_link_for_previews(front: Front) -> None:
    await published(front, "film-1")
    job_id = await begun(front, "film-1", data=b"new" * 50)
    piece = await piece_of(front, job_id)
    watch, preview = await link_of(front, "film-1", "poster"), await link_of(front, "film-1", "preview")

    assert (await front.ada.get(f"/media/v/film-1/{piece.path}")).content == b"new" * 50
    assert (await front.nobody.get(preview + piece.path)).status_code == 200
    assert (await front.nobody.get(watch + piece.path)).status_code == 404
    assert (await front.bob.get(f"/media/v/film-1/{piece.path}")).status_code == 404


async def test_a_version_that_was_replaced_plays_on_for_a_day_and_then_only_for_its_owner(front: Front) -> None:
    piece = await piece_of(front, await published(front, "film-1"))
    base = await link_of(front, "film-1")
    await begun(front, "film-1", data=b"new" * 50)
    await finished(front, "film-1")

    soon = await front.nobody.get(base + piece.path)
    moment = await now(front)
    front.parts.store.now = moment + 25 * HOUR
    late_base = await link_of(front, "film-1")
    late = await front.nobody.get(late_base + piece.path)

    assert (soon.status_code, late.status_code) == (200, 404)
    assert (await front.ada.get(f"/media/v/film-1/{piece.path}")).status_code == 200
    assert (await front.nobody.get(late_base + "v2/poster.jpg")).status_code == 200
    assert (await front.nobody.get(late_base + "v1/poster.jpg")).status_code == 404
    assert moment + DAY < front.parts.store.now


async def test_a_deleted_video_is_gone_for_every_way_of_watching(front: Front) -> None:
    piece = await piece_of(front, await published(front, "film-1"))
    base = await link_of(front, "film-1")

    assert (await front.ada.delete("/api/v1/videos/film-1")).status_code == 204

    for client in (front.ada, front.admin, front.bob):
        assert (await client.get(f"/media/v/film-1/{piece.path}")).status_code == 404
    for path in (piece.path, "master.m3u8", "v1/poster.jpg"):
        assert (await front.nobody.get(base + path)).status_code == 404


async def test_servers_on_one_database_sign_with_the_same_secret(front: Front) -> None:
    piece = await piece_of(front, await published(front, "film-1"))
    base = await link_of(front, "film-1")

    front.house.rooms.pop("media")  # another server has nothing in its memory

    assert (await front.nobody.get(base + piece.path)).status_code == 200
    assert len(await front.bed.sql("select * from secret where name = 'playback'")) == 1
