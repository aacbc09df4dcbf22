"""A process is gone only with proof."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from telecine import world


def test_a_living_process_is_not_gone() -> None:
    started = world.process_start(os.getpid())

    assert started is not None
    assert not world.is_gone(os.getpid(), started)


def test_a_pid_with_another_start_is_another_process() -> None:
    started = world.process_start(os.getpid())
    assert started is not None

    assert world.is_gone(os.getpid(), started - 1)


def test_an_ended_process_is_gone_before_and_after_it_is_reaped() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    started = world.process_start(child.pid)
    assert started is not None

    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    as_zombie = world.is_gone(child.pid, started)
    child.communicate()

    assert as_zombie
    assert world.is_gone(child.pid, started)


def test_what_cannot_be_read_is_taken_for_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    """No descriptor left, or processes of others hidden: that proves nothing."""

    def refuse(self: Path, **options: object) -> str:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(Path, "read_text", refuse)

    assert not world.is_gone(os.getpid(), 1)
