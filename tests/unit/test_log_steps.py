"""How a step looks on a terminal: what was done and what it took, not the whole order."""

from typing import Any

import pytest

from telecine.cli.commands.logs import command, figures

RUNG = {"name": "720p", "width": 1280}
ORDERS: list[tuple[dict[str, Any], str]] = [
    (
        {"op": "video", "times": list(range(5_000)), "wanted": [{"rung": RUNG, "segments": [3, 4, 5]}]},
        "media video: 720p (segments 3-5)",
    ),
    (
        {"op": "video", "wanted": [{"rung": RUNG, "segments": [3]}, {"rung": {"name": "360p"}, "segments": [1, 7]}]},
        "media video: 720p (segment 3), 360p (2 segments)",
    ),
    ({"op": "audio", "track": {"name": "audio-eng-2"}}, "media audio: audio-eng-2"),
    ({"op": "inits", "rungs": [RUNG], "tracks": [{"name": "audio-1"}]}, "media inits: 720p, audio-1"),
    ({"op": "sprites", "stills": [{}, {}]}, "media sprites: 2 stills"),
    ({"op": "probe", "size": 7}, "media probe"),
]


@pytest.mark.parametrize(("order", "told"), ORDERS)
def test_a_media_child_is_told_by_what_it_was_ordered(order: dict[str, Any], told: str) -> None:
    data = {"order": order, "note": 1}

    assert command("python -I -m telecine.media.child", data) == told
    assert data == {"note": 1}


def test_an_order_of_another_shape_is_told_as_a_command() -> None:
    assert command("python -m mine", {"order": {"op": "mine", "wanted": [1]}}) == "python -m mine"


def test_another_command_is_told_as_it_is_with_what_it_took() -> None:
    data: dict[str, Any] = {"exit_code": 0, "wall_seconds": 1.234, "cpu_seconds": 2.06, "note": 1}

    assert command("say Ada", data) == "say Ada"
    assert figures(data) == "  exit 0  1.2 s  CPU 2.1 s"
    assert data == {"note": 1}
