"""What a film is called in addresses: its own name, as far as ASCII can write it."""

import pytest

from telecine.flows.transcode.spec import parse
from telecine.videos.beginning import video_id


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("Big Buck Bunny", "big-buck-bunny"),
        ("Über uns – Teil 2", "uber-uns-teil-2"),
        ("Café…", "cafe"),
        ("映画", "video"),
        ("--", "video"),
    ],
)
def test_a_name_keeps_its_letters_without_their_marks(name: str, shown: str) -> None:
    found = video_id(parse({"source": "/films/a.mkv", "name": name}))

    assert found.rpartition("-")[0] == shown


def test_two_films_or_two_owners_never_share_a_name() -> None:
    one, other = (parse({"source": f"/films/{folder}/film.mkv"}) for folder in "ab")

    assert len({video_id(one), video_id(other), video_id(one, "ann"), video_id(one, "bob")}) == 4
