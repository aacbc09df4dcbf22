"""The place of the page: it takes what nobody else has, and nothing of the API."""

import re
from base64 import b64encode
from hashlib import sha256
from pathlib import Path

import pytest

from telecine.api.http.auth import COOKIE
from telecine.api.routes import page
from tests.api.in_process_server import ANY_DATABASE, Front

pytestmark = ANY_DATABASE


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A page that was built, beside a secret that was not."""
    folder = tmp_path / "static"
    (folder / "assets").mkdir(parents=True)
    (folder / "index.html").write_text("<!doctype html><title>built</title>")
    (folder / "assets" / "app.js").write_text("1")
    (folder / ".hidden").write_text("hidden")
    (tmp_path / "secret.txt").write_text("secret")
    monkeypatch.setattr(page, "BUILT", folder)
    return folder


async def test_without_a_built_page_a_plain_one_says_where_things_are(front: Front, tmp_path: Path) -> None:
    answer = await front.nobody.get("/")

    assert answer.status_code == 200
    assert "/docs" in answer.text
    assert "telecine login" in answer.text
    assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]


async def test_the_plain_page_knows_who_is_logged_in(front: Front) -> None:
    await front.nobody.post(f"/login/{await front.house.keys.link()}")

    answer = await front.nobody.get("/")
    named = re.findall('href="(/[^"]*)"', answer.text)
    statuses = {path: (await front.nobody.get(path)).status_code for path in named}
    await front.nobody.post("/api/v1/logout", headers={"X-Telecine": "1"})

    assert "You are logged in as an administrator" in answer.text
    assert "Log in with a link" not in answer.text
    assert "/api/v1/videos" in statuses
    assert set(statuses.values()) == {200}


async def test_a_session_that_has_ended_is_none_on_the_plain_page(front: Front) -> None:
    await front.nobody.post(f"/login/{await front.house.keys.link()}")
    session = front.nobody.cookies[COOKIE]
    await front.nobody.post("/api/v1/logout", headers={"X-Telecine": "1"})

    answer = await front.nobody.get("/", headers={"Cookie": f"{COOKIE}={session}"})

    assert answer.status_code == 200
    assert "Log in with a link" in answer.text


async def test_the_description_of_the_api_loads_nothing_from_elsewhere(front: Front) -> None:
    answer = await front.nobody.get("/docs")

    assert answer.status_code == 200
    assert re.findall(r"https?://|src=", answer.text) == []
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; ")
    assert "; script-src 'sha256-" in policy
    assert "unsafe" not in policy


@pytest.mark.usefixtures("built")
async def test_a_built_page_answers_to_its_own_addresses(front: Front) -> None:
    home, deep, file = [await front.nobody.get(path) for path in ("/", "/videos/7", "/assets/app.js")]

    assert "built" in home.text
    assert deep.text == home.text
    assert "immutable" in file.headers["cache-control"]
    assert home.headers["cache-control"] == "no-cache"
    assert all("script-src 'self';" in one.headers["content-security-policy"] for one in (home, deep, file))


@pytest.mark.usefixtures("built")
async def test_nothing_beside_the_page_is_served(front: Front) -> None:
    paths = ("/../secret.txt", "/%2e%2e/secret.txt", "/assets/../../secret.txt", "/assets/%2e%2e%2f.hidden", "/.hidden")

    texts = [(await front.nobody.get(path)).text for path in paths]

    assert [text for text in texts if text in ("secret", "hidden")] == []


@pytest.mark.usefixtures("built")
async def test_a_file_that_is_not_there_is_not_the_page(front: Front) -> None:
    assert (await front.nobody.get("/assets/old.js")).status_code == 404


@pytest.mark.usefixtures("built")
async def test_an_unknown_address_of_the_api_stays_a_problem(front: Front) -> None:
    paths = ("/api/v1/nowhere", "/api", "/health/x", "/docs/x", "/metrics/x")

    answers = [await front.nobody.request(method, path) for path in paths for method in ("GET", "POST", "DELETE")]

    assert {answer.status_code for answer in answers} == {404}
    assert {answer.headers["content-type"] for answer in answers} == {"application/problem+json"}


@pytest.mark.usefixtures("built")
async def test_a_known_address_by_another_method_is_not_the_page(front: Front) -> None:
    answer = await front.nobody.get("/api/v1/logout")

    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")
    assert (await front.nobody.post("/videos/7")).status_code == 405


async def test_every_html_answer_has_a_strict_policy_and_the_other_safe_headers(front: Front) -> None:
    link = await front.house.keys.link()
    pages = ["/", "/docs", f"/login/{link}"]
    problems = ["/nowhere", "/api/v1/me", "/login"]

    for path in [*pages, *problems]:
        answer = await front.nobody.get(path)
        policy = answer.headers["content-security-policy"]

        assert "default-src 'none'" in policy, path
        assert "frame-ancestors 'none'" in policy, path
        assert "unsafe" not in policy, path
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert answer.headers["x-frame-options"] == "DENY"
        assert answer.headers["cross-origin-opener-policy"] == "same-origin"
        for style in re.findall("<style>(.*?)</style>", answer.text, re.DOTALL):
            assert b64encode(sha256(style.encode()).digest()).decode() in policy, path
    assert "form-action 'self'" in (await front.nobody.get(pages[2])).headers["content-security-policy"]


@pytest.mark.parametrize("path", ["/favicon.ico", "/favicon.svg"])
async def test_there_is_a_small_icon(front: Front, path: str) -> None:
    answer = await front.nobody.get(path)

    assert (answer.status_code, answer.headers["content-type"]) == (200, "image/svg+xml")
    assert len(answer.content) < 1_000
