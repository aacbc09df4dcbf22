"""Keys: only hashes are stored, a slip is found, revoked and expired ones open nothing, links work once."""

import pytest

from telecine.api.http.rate_limits import RateLimits
from telecine.engine.accounts.keys import Scope, read, written
from telecine.errors import KeyInvalid
from tests.api.in_process_server import Front


async def test_a_key_opens_what_its_scope_says(front: Front) -> None:
    mine = await front.ada.get("/api/v1/me")

    assert mine.json() == {"owner": "ada", "scope": "owner", "name": ""}
    assert (await front.admin.get("/api/v1/me")).status_code == 200
    assert (await front.worker.get("/api/v1/me")).status_code == 403
    assert (await front.nobody.get("/api/v1/me")).status_code == 401


async def test_no_secret_is_in_the_database(front: Front) -> None:
    key = await front.key(Scope.OWNER, owner="ada")
    secret = read(key)[2]

    rows = await front.bed.sql("select * from api_key")

    assert secret not in str(rows)
    assert len(rows) > 1


@pytest.mark.parametrize("place", [8, 20, -1])
def test_a_slip_of_the_pen_is_found_without_the_database(place: int) -> None:
    key = written("owner", "0" * 12, "1" * 64)
    slipped = key[:place] + ("0" if key[place] != "0" else "1") + (key[place + 1 :] if place != -1 else "")

    with pytest.raises(KeyInvalid):
        read(slipped)
    assert read(key)[1] == "0" * 12


async def test_a_revoked_key_opens_nothing(front: Front) -> None:
    client = await front.client(Scope.OWNER, owner="eve")
    [key] = await front.house.keys.list(owner="eve")

    await front.house.keys.revoke(key.id)

    answer = await client.get("/api/v1/me")
    assert (answer.status_code, answer.json()["code"]) == (401, "key_invalid")
    assert "revoked" in answer.json()["detail"]


async def test_an_expired_key_opens_nothing(front: Front) -> None:
    client = await front.client(Scope.OWNER, owner="eve", life=1)

    front.parts.store.now = 4_000_000_000_000

    assert "expired" in (await client.get("/api/v1/me")).json()["detail"]


async def test_a_login_link_works_once(front: Front) -> None:
    link = await front.house.keys.link()
    first = await front.nobody.post(f"/login/{link}")
    again = await front.nobody.post(f"/login/{link}")

    assert first.status_code == 303
    assert "HttpOnly" in first.headers["set-cookie"]
    assert again.status_code == 401
    front.nobody.cookies.clear()


async def test_a_page_of_somebody_else_cannot_change_anything_with_a_cookie(front: Front) -> None:
    session = await front.house.keys.log_in(await front.house.keys.link())
    cookie = {"Cookie": f"telecine_session={session.text}"}

    assert (await front.nobody.get("/api/v1/me", headers=cookie)).status_code == 200
    assert (await front.nobody.post("/api/v1/logout", headers=cookie)).status_code == 403
    assert (await front.nobody.post("/api/v1/logout", headers={**cookie, "X-Telecine": "1"})).status_code == 204
    assert (await front.nobody.get("/api/v1/me", headers=cookie)).status_code == 401


async def test_whoever_guesses_keys_is_slowed_down(front: Front) -> None:
    limit = front.settings.bad_key_limit
    front.house.rates = RateLimits(lambda: 0.0, per_key=limit, per_stranger=limit)  # a minute that does not pass
    codes = [(await front.nobody.get("/api/v1/me")).status_code for _ in range(limit + 2)]

    assert codes[:limit] == [401] * limit
    assert codes[-1] == 429
    assert (await front.ada.get("/api/v1/me")).status_code == 200
