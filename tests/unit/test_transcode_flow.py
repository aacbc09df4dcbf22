"""Which stages of the transcode flow belong to one release."""

from __future__ import annotations

from telecine.apps.transcode.flow import transcode_flow
from telecine.apps.transcode.options import Options
from telecine.apps.transcode.plan import PICTURES


def test_what_looks_at_the_source_and_what_encodes_it_have_one_version() -> None:
    """Else an old worker of a mixed fleet would look at a film that new ones encode."""
    versions = {stage.name: stage.version for stage in transcode_flow(Options()).graph.stages}

    assert {name for name, version in versions.items() if version == PICTURES} == {
        "plan", "fetch", "audio", "video", "again"
    }  # fmt: skip
