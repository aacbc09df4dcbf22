"""Keys over HTTP: administrators make all, owners their own; each is shown once."""

from telecine.engine.keys import Scope
from tests.api.front import Front

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
    bodies = [{"scope": "admin"}, {"owner": "bob"}, {"scope": "worker"}, {"days": 0}, {"days": 1e9}]

    answers = [await front.ada.post(KEYS, json=body) for body in bodies]

    assert [answer.status_code for answer in answers] == [403, 403, 422, 422, 422]


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
