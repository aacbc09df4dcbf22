"""Sources on the web: whole and hashed, and only what belongs together is joined."""

import asyncio
import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from telecine.errors import MediaRefused, SourceUnreachable
from telecine.media.inputs import InputPolicy, download, reach
from tests.support.web_server import Answer, Request, Site, serve

FILM = bytes(range(251)) * 20_000  # some five megabytes
HASH = hashlib.sha256(FILM).hexdigest()
MARK = '"first cut"'
BREAK = 3 << 20

OPEN = InputPolicy(private=("127.0.0.0/8",), pause_seconds=0)


@pytest.fixture
def site() -> Iterator[Site]:
    with serve() as site:
        yield site


def bring(source: str, path: Path, gate: InputPolicy = OPEN) -> tuple[int, str]:
    fetched = asyncio.run(download(source, path, gate))
    assert path.stat().st_size == fetched.size
    return fetched.size, fetched.sha256


def a_film(request: Request) -> None:
    """Whole or from where it is asked for, as good servers do."""
    if request.first:
        span = f"bytes {request.first}-{len(FILM) - 1}/{len(FILM)}"
        request.say(206, FILM[request.first :], ETag=MARK, Content_Range=span)
    else:
        request.say(200, FILM, ETag=MARK)


def breaking_off(request: Request) -> None:
    request.head(200, len(FILM), ETag=MARK)
    request.wfile.write(FILM[:BREAK])
    request.hang_up()


def one_after_the_other(*answers: Answer) -> Answer:
    left = list(answers)

    def answer(request: Request) -> None:
        left.pop(0)(request)

    return answer


def to(location: str) -> Answer:
    return lambda request: request.say(302, Location=location)


def whole(request: Request) -> None:
    request.say(200, FILM, ETag=MARK)


def test_a_film_comes_whole_with_its_hash_and_progress(site: Site, tmp_path: Path) -> None:
    site.pages["/film"] = a_film
    said: list[tuple[float, float]] = []

    fetched = asyncio.run(download(site.url("/film"), tmp_path / "film", OPEN, lambda *at: said.append(at)))

    assert (fetched.size, fetched.sha256) == (len(FILM), HASH)
    assert (tmp_path / "film").read_bytes() == FILM
    assert said[-1] == (len(FILM), len(FILM))
    assert said == sorted(said)
    assert site.asked[0][1]["Accept-Encoding"] == "identity"


def test_a_film_without_a_size_comes_whole_too(site: Site, tmp_path: Path) -> None:
    def in_pieces(request: Request) -> None:
        request.head(200, None, Transfer_Encoding="chunked")
        for start in range(0, len(FILM), 100_000):
            piece = FILM[start : start + 100_000]
            request.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece))
        request.wfile.write(b"0\r\n\r\n")

    site.pages["/film"] = in_pieces

    assert bring(site.url("/film"), tmp_path / "film") == (len(FILM), HASH)


def test_a_broken_download_goes_on_where_it_broke(site: Site, tmp_path: Path) -> None:
    site.pages["/film"] = one_after_the_other(breaking_off, a_film)

    assert bring(site.url("/film"), tmp_path / "film") == (len(FILM), HASH)

    [_, (_, again)] = site.asked
    assert (again["Range"], again["If-Range"]) == (f"bytes={BREAK}-", MARK)


def test_a_server_that_cannot_go_on_begins_anew(site: Site, tmp_path: Path) -> None:
    site.pages["/film"] = one_after_the_other(breaking_off, whole)

    assert bring(site.url("/film"), tmp_path / "film") == (len(FILM), HASH)


def test_without_a_mark_nothing_is_joined(site: Site, tmp_path: Path) -> None:
    def breaking_off_unmarked(request: Request) -> None:
        request.head(200, len(FILM), ETag="W/" + MARK)
        request.wfile.write(FILM[:BREAK])
        request.hang_up()

    site.pages["/film"] = one_after_the_other(breaking_off_unmarked, lambda request: request.say(200, FILM))

    assert bring(site.url("/film"), tmp_path / "film") == (len(FILM), HASH)
    assert "Range" not in site.asked[1][1]


@pytest.mark.parametrize(
    "other",
    [
        lambda request: request.say(200, FILM, ETag='"second cut"'),
        lambda request: request.say(206, FILM[BREAK:-1], ETag=MARK, Content_Range=f"bytes {BREAK}-9/{len(FILM) - 1}"),
        lambda request: request.say(416, ETag='"second cut"'),
    ],
)
def test_a_film_that_changed_in_the_middle_is_refused(other: Answer, site: Site, tmp_path: Path) -> None:
    site.pages["/film"] = one_after_the_other(breaking_off, other)

    with pytest.raises(MediaRefused, match="was changed while it was read; submit it again") as refused:
        bring(site.url("/film"), tmp_path / "film")

    assert refused.value.code == "source_changed"


def test_a_server_that_never_gets_on_is_unreachable_for_now(site: Site, tmp_path: Path) -> None:
    site.pages["/film"] = lambda request: request.say(503)

    with pytest.raises(SourceUnreachable, match="broke off at byte 0 and does not go on: it answers 503"):
        bring(site.url("/film"), tmp_path / "film")

    assert len(site.asked) == 5


def test_a_busy_server_is_asked_again(site: Site, tmp_path: Path) -> None:
    site.pages["/film"] = one_after_the_other(lambda request: request.say(429), a_film)

    assert bring(site.url("/film"), tmp_path / "film") == (len(FILM), HASH)


@pytest.mark.parametrize(
    ("status", "code"), [(404, "source_missing"), (403, "source_forbidden"), (410, "source_missing")]
)
def test_what_is_not_there_is_refused_without_its_secrets(status: int, code: str, site: Site, tmp_path: Path) -> None:
    site.pages["/film"] = lambda request: request.say(status)
    address = site.url("/film?X-Signature=secret").replace("http://", "http://me:secret@")

    with pytest.raises(MediaRefused) as refused:
        bring(address, tmp_path / "film")

    assert refused.value.code == code
    assert site.url("/film") in str(refused.value)
    assert "secret" not in str(refused.value)


def test_too_large_a_film_is_refused_before_it_comes(site: Site, tmp_path: Path) -> None:
    site.pages["/film"] = a_film
    narrow = InputPolicy(private=OPEN.private, most_bytes=len(FILM) - 1)

    with pytest.raises(MediaRefused, match=r"has 5\.0 MB, and at most 5\.0 MB are taken") as refused:
        bring(site.url("/film"), tmp_path / "film", narrow)

    assert refused.value.code == "too_large"
    assert not (tmp_path / "film").exists()


def test_too_large_a_film_that_hides_its_size_is_refused_while_it_comes(site: Site, tmp_path: Path) -> None:
    def without_a_size(request: Request) -> None:
        request.head(200, None, Connection="close")
        try:
            for _ in range(4):
                request.wfile.write(FILM)
        except OSError:
            request.close_connection = True

    site.pages["/film"] = without_a_size
    narrow = InputPolicy(private=OPEN.private, most_bytes=8_000_000)

    with pytest.raises(MediaRefused, match=r"at most 8\.0 MB are taken"):
        bring(site.url("/film"), tmp_path / "film", narrow)

    assert (tmp_path / "film").stat().st_size <= 8_000_000


def test_a_packed_answer_is_refused(site: Site, tmp_path: Path) -> None:
    site.pages["/film"] = lambda request: request.say(200, b"...", Content_Encoding="gzip")

    with pytest.raises(MediaRefused, match=r"comes packed \(gzip\)"):
        bring(site.url("/film"), tmp_path / "film")


def test_redirects_are_followed_five_times_and_no_more(site: Site, tmp_path: Path) -> None:
    site.pages["/film"] = a_film
    for k in range(6):
        site.pages[f"/{k}"] = to(f"/{k - 1}" if k else "/film")

    assert bring(site.url("/4"), tmp_path / "film") == (len(FILM), HASH)
    with pytest.raises(MediaRefused, match="redirects more than 5 times"):
        bring(site.url("/5"), tmp_path / "film")


def test_reaching_says_the_size_and_brings_nothing(site: Site) -> None:
    site.pages["/film"] = a_film
    site.pages["/gone"] = lambda request: request.say(404)
    site.pages["/busy"] = lambda request: request.say(500)

    assert asyncio.run(reach(site.url("/film"), OPEN)) == len(FILM)
    with pytest.raises(MediaRefused, match="is not there"):
        asyncio.run(reach(site.url("/gone"), OPEN))
    with pytest.raises(SourceUnreachable, match="cannot be reached: it answers 500"):
        asyncio.run(reach(site.url("/busy"), OPEN))


def test_a_server_that_is_not_there_is_unreachable(site: Site) -> None:
    nobody = Site(1)

    with pytest.raises(SourceUnreachable, match="cannot be reached"):
        asyncio.run(reach(nobody.url("/film"), OPEN))
