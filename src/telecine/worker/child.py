"""Handlers in child processes: the only module that starts one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from telecine.facts import Brief, Fact
from telecine.worker.held import Attempt
from telecine.worker.source import FlowSource

if TYPE_CHECKING:
    from telecine.worker.execution import Tools


async def run_in_child(attempt: Attempt, brief: Brief, source: FlowSource, tools: Tools) -> Fact:
    raise NotImplementedError
