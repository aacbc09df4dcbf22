"""What jobs may not ask: nobody reaches the operator's own network through a source."""

import asyncio
from collections.abc import Iterator, Sequence
from ipaddress import ip_address
from pathlib import Path

import pytest

from telecine.addresses import Resolve, is_public, resolve
from telecine.errors import MediaRefused
from telecine.media.inputs import InputPolicy, download
from tests.support.web_server import Answer, Request, Site, serve

FILM = b"a film, if a short one"


@pytest.fixture
def site() -> Iterator[Site]:
    with serve() as site:
        site.pages["/film"] = a_film
        yield site


def a_film(request: Request) -> None:
    request.say(200, FILM)


def to(location: str) -> Answer:
    return lambda request: request.say(302, Location=location)


def bring(source: str, path: Path, gate: InputPolicy) -> bytes:
    asyncio.run(download(source, path, gate))
    return path.read_bytes()


def answers(names: dict[str, list[str]], *, then: str | None = None) -> Resolve:
    """A name server with more names: the internet, which a test cannot have."""
    asked: list[str] = []

    async def answer(host: str, port: int) -> Sequence[str]:
        asked.append(host)
        if then is not None and len(asked) > 1:
            return [then]
        return names[host] if host in names else await resolve(host, port)

    return answer


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "2130706433", "0x7f.1", "0.0.0.0", "[::1]", "[::ffff:127.0.0.1]"]
)
def test_an_address_inside_is_refused_however_it_is_written(host: str, site: Site, tmp_path: Path) -> None:

    with pytest.raises(MediaRefused, match="not on the public internet; list it in allow_private_sources") as refused:
        bring(site.url("/film", host), tmp_path / "film", InputPolicy(pause_seconds=0))

    assert refused.value.code == "source_private"
    assert site.asked == []


@pytest.mark.parametrize("target", ["http://localhost:{}/film", "http://169.254.169.254/latest", "//10.0.0.1/film"])
def test_a_redirect_to_an_address_inside_is_refused(target: str, site: Site, tmp_path: Path) -> None:
    site.pages["/door"] = to(target.format(site.port))
    gate = InputPolicy(private=("door.example",), pause_seconds=0, resolve=answers({"door.example": ["127.0.0.1"]}))

    with pytest.raises(MediaRefused, match="not on the public internet"):
        bring(site.url("/door", "door.example"), tmp_path / "film", gate)

    assert [path for path, _ in site.asked] == ["/door"]


@pytest.mark.parametrize("target", ["file:///etc/passwd", "ftp://example.com/film", "gopher://127.0.0.1/"])
def test_a_redirect_to_anything_but_the_web_is_refused(target: str, site: Site, tmp_path: Path) -> None:
    site.pages["/door"] = to(target)

    with pytest.raises(MediaRefused, match="only http:// and https:// are asked"):
        bring(site.url("/door"), tmp_path / "film", InputPolicy(private=("127.0.0.1",)))


def test_one_address_inside_spoils_a_name_that_has_others_outside(site: Site, tmp_path: Path) -> None:
    gate = InputPolicy(pause_seconds=0, resolve=answers({"film.example": ["93.184.215.14", "127.0.0.1"]}))

    with pytest.raises(MediaRefused, match=r"film\.example is at 127\.0\.0\.1"):
        bring(site.url("/film", "film.example"), tmp_path / "film", gate)


def test_the_checked_address_is_the_one_that_is_asked(site: Site, tmp_path: Path) -> None:
    """A name server that answers otherwise the second time is not asked a second time."""
    lying = answers({"film.example": ["127.0.0.1"]}, then="127.66.66.66")
    gate = InputPolicy(private=("127.0.0.1",), pause_seconds=0, resolve=lying)

    assert bring(site.url("/film", "film.example"), tmp_path / "film", gate) == FILM

    assert site.asked[0][1]["Host"] == f"film.example:{site.port}"


def test_a_host_whose_first_address_is_dead_is_asked_at_the_next(site: Site, tmp_path: Path) -> None:
    gate = InputPolicy(private=("film.example",), resolve=answers({"film.example": ["127.0.0.2", "127.0.0.1"]}))

    assert bring(site.url("/film", "film.example"), tmp_path / "film", gate) == FILM


@pytest.mark.parametrize("allowed", ["127.0.0.1", "127.0.0.0/8", "LocalHost"])
def test_what_the_operator_allows_may_be_asked(allowed: str, site: Site, tmp_path: Path) -> None:
    gate = InputPolicy(private=(allowed,), resolve=answers({"localhost": ["127.0.0.1"]}))

    assert bring(site.url("/film", "localhost"), tmp_path / "film", gate) == FILM


@pytest.mark.parametrize(
    ("address", "public"),
    [
        ("93.184.215.14", True), ("2606:2800:21f:cb07:6820:80da:af6b:8b2c", True), ("64:ff9b::5db8:d70e", True),
        ("::ffff:93.184.215.14", True),
        ("10.1.2.3", False), ("172.16.0.1", False), ("192.168.1.1", False), ("127.0.0.1", False), ("0.0.0.0", False),
        ("169.254.169.254", False), ("100.64.0.1", False), ("224.0.0.1", False), ("240.0.0.1", False),
        ("255.255.255.255", False), ("198.18.0.1", False), ("::", False), ("::1", False), ("fe80::1", False),
        ("fc00::1", False), ("ff02::1", False), ("::ffff:10.0.0.1", False), ("::127.0.0.1", False),
        ("2002:7f00:1::", False), ("64:ff9b::7f00:1", False), ("2001:db8::1", False),
        ("2001:0:1:2:3:4:80ff:fffe", False),
    ],
)  # fmt: skip
def test_public_is_what_anybody_could_ask(address: str, public: bool) -> None:
    assert is_public(ip_address(address)) is public
