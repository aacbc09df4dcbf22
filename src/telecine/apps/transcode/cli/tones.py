"""Colours of the statuses of videos."""

from __future__ import annotations

from telecine.cli import format

# A video is ready when it can be watched; a task, when it may begin.
TONES = {**format.TONES, "ready": "green"}
