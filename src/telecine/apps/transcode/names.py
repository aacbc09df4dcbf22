"""Words of the transcode app that are stored or published. Imports nothing, so that every process may read them."""

from __future__ import annotations

NAME = "transcode"  # of the app and of its flow
KIND = "video"  # of its subjects
MOVED = "moved_to"  # a fact of a video: where its source was seen last
STATUSES = ("pending", "processing", "ready", "failed")
