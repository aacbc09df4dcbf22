"""How `telecine events` prints one event."""

import pytest

from telecine.cli.commands.events import _line
from telecine.engine.events.stream import Event


@pytest.mark.parametrize(
    ("stage", "position", "shown"),
    [("cut", 0, "job 7  cut[0]"), ("cut", 3, "job 7  cut[3]"), ("cut", None, "job 7  cut"), (None, None, "job 7")],
)
def test_the_position_of_a_task_is_shown_also_if_it_is_the_first(
    stage: str | None, position: int | None, shown: str
) -> None:
    task = None if position is None else 5
    event = Event(
        seq=1, at=0, kind="x", job_id=7, task_id=task, stage=stage, token=None, worker=None, data={}, position=position
    )

    assert _line(event).endswith(shown)
