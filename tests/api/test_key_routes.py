"""Keys over HTTP: administrators make all, owners their own; each is shown once."""

import asyncio

import pytest

from telecine.engine.accounts import keys
from telecine.engine.accounts.keys import Scope
from tests.api.in_process_server import Front

KEYS = "/api/v1/keys"


async def test_an_owner_makes_uses_and_revokes_keys_of_his_own(front: Front) -> None:
    made = await front.ada.post(KEYS, json={"name": "phone", "days": 1})
    key = made.json()
    phone = {"Authorization": f"Bearer {key['key']}"}

    used = await front.nobody.get("/api/v1/me", headers=phone)
    listed = (await front.ada.get(KEYS)).json()["items"]
    gone = await front.ada.delete(f"{KEYS}/{key['id']}")

    assert (made.status_code, made.headers["cache-control"]) == (201, "no-store")
    assert used.json() == {"owner": "ada", "scope": "owner", "name": "phone"}
    assert {shown["owner"] for shown in listed} == {"ada"}
    assert key["key"] not in str(listed)
    assert (gone.status_code, (await front.nobody.get("/api/v1/me", headers=phone)).status_code) == (204, 401)
    assert (await front.ada.delete(f"{KEYS}/{key['id']}")).status_code == 404


async def test_an_owner_makes_no_key_for_others(front: Front) -> None:
    bodies = [
        {"scope": "admin"},
        {"owner": "bob"},
        {"scope": "worker"},
        {"days": 0},
        {"days": 1e9},
        {"days": "1"},
        {"days": True},
    ]

    answers = [await front.ada.post(KEYS, json=body) for body in bodies]

    assert [answer.status_code for answer in answers] == [403, 403, 422, 422, 422, 422, 422]


async def test_an_administrator_makes_keys_for_others_and_sees_all(front: Front) -> None:
    made = await front.admin.post(KEYS, json={"owner": "eve"})
    admin = await front.admin.post(KEYS, json={"scope": "admin", "name": "second"})
    nobodys = await front.admin.post(KEYS, json={})
    both = await front.admin.post(KEYS, json={"scope": "admin", "owner": "eve"})

    listed = (await front.admin.get(KEYS)).json()["items"]

    assert [answer.status_code for answer in (made, admin, nobodys, both)] == [201, 201, 422, 422]
    assert {"", "ada", "bob", "eve"} == {key["owner"] for key in listed}


async def test_a_key_of_somebody_else_is_as_absent_as_none(front: Front) -> None:
    [his] = [key.id for key in await front.house.keys.list(owner="bob")]
    same = {"X-Request-Id": "one"}

    foreign = await front.ada.delete(f"{KEYS}/{his}", headers=same)
    unknown = await front.ada.delete(f"{KEYS}/{'0' * 12}", headers=same)

    assert foreign.status_code == 404
    assert foreign.text.replace(his, "N") == unknown.text.replace("0" * 12, "N")
    assert (await front.bob.get("/api/v1/me")).status_code == 200


async def test_an_owner_without_a_name_cannot_touch_keys_of_administrators(front: Front) -> None:
    nameless = await front.client(Scope.OWNER)
    admins = [key.id for key in await front.house.keys.list() if key.scope != "owner"]

    answers = [await nameless.delete(f"{KEYS}/{key}") for key in admins]

    assert {answer.status_code for answer in answers} == {404}
    assert {key["scope"] for key in (await nameless.get(KEYS)).json()["items"]} == {"owner"}


async def test_the_list_goes_on_where_its_page_ended_and_is_the_owners_own(front: Front) -> None:
    made = [(await front.ada.post(KEYS, json={"name": f"key {number}"})).json()["id"] for number in range(4)]

    first = (await front.ada.get(KEYS, params={"limit": 3})).json()
    rest = (await front.ada.get(KEYS, params={"limit": 3, "cursor": first["next"]})).json()
    wrong = [await front.ada.get(KEYS, params=query) for query in ({"cursor": "x"}, {"limit": 0}, {"limit": 10**6})]
    found = first["items"] + rest["items"]

    assert (len(first["items"]), len(rest["items"]), rest["next"]) == (3, 2, None)
    assert set(made) < {key["id"] for key in found}
    assert [key["created_at"] for key in found] == sorted((key["created_at"] for key in found), reverse=True)
    assert [answer.status_code for answer in wrong] == [422] * 3


async def test_an_administrator_goes_through_everybodys_pages(front: Front) -> None:
    seen: list[str] = []
    cursor: str | None = ""
    while cursor is not None:
        page = (await front.admin.get(KEYS, params={"limit": 1} | ({"cursor": cursor} if cursor else {}))).json()
        seen += [key["id"] for key in page["items"]]
        cursor = page["next"]

    assert sorted(seen) == sorted(key.id for key in await front.house.keys.list())
    assert len(seen) == 4


async def test_an_owner_has_only_so_many_valid_keys_also_if_he_asks_at_once(front: Front) -> None:
    front.house.settings = front.settings.model_copy(update={"max_keys_per_owner": 3})

    answers = await asyncio.gather(*(front.ada.post(KEYS, json={}) for _ in range(6)))
    made = [answer.json()["id"] for answer in answers if answer.status_code == 201]
    by_admin = await front.admin.post(KEYS, json={"owner": "ada"})
    await front.ada.delete(f"{KEYS}/{made[0]}")
    after = await front.ada.post(KEYS, json={})

    assert sorted(answer.status_code for answer in answers) == [201, 201, *[409] * 4]
    assert (by_admin.status_code, by_admin.json()["code"]) == (409, "conflict")
    assert "ada has 3 keys, and no owner more than 3: revoke one" in by_admin.json()["detail"]
    assert after.status_code == 201
    assert (await front.bob.post(KEYS, json={})).status_code == 201


async def test_whoever_makes_and_revokes_without_end_fills_no_table(
    front: Front, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keys, "MAX_DEAD", 2)
    made = []
    for _ in range(5):
        made.append((await front.ada.post(KEYS, json={})).json()["id"])
        await front.ada.delete(f"{KEYS}/{made[-1]}")
    await front.ada.post(KEYS, json={})

    left = [key.id for key in await front.house.keys.list(owner="ada") if key.revoked_at]

    assert left == made[-1:-3:-1]
