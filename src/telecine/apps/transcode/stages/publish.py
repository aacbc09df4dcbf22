"""Publish: the new version becomes the one that people see, in the transaction that ends this task.

What only the work needed goes with it: a copy of the source, the index, rungs that were given up, what another encoder
had begun.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from telecine.apps.transcode.options import TranscodeOptions
from telecine.apps.transcode.plan import TranscodePlan
from telecine.apps.transcode.stages.recorded_rows import collect
from telecine.apps.transcode.stages.stage_inputs import plan_of
from telecine.facts import Done, Json, Outcome, StoredArtifact
from telecine.flow import Bench

WHOLE = ("package", "poster", "sprites")  # stages that make nothing but what is shown
UNDETERMINED = "und"  # ISO 639-2 for a language that nobody has said


async def publish(bench: Bench, options: TranscodeOptions) -> Outcome:
    plan = plan_of(bench)
    packaged = bench.brief.results["package"]
    return Done(
        publish=bench.subject is not None,
        carry=plan.carried_ids,
        leave=working_files(plan, await bench.artifacts(), packaged["dropped"]),
        facts=facts_of(plan, packaged) if bench.subject is not None else None,
        result={"qualities": [rung.name for rung in plan.rungs if rung.name not in packaged["dropped"]]},
    )


def working_files(plan: TranscodePlan, made: Sequence[StoredArtifact], dropped: Iterable[str]) -> tuple[int, ...]:
    """Of all that the job has kept, what is of no use to whoever watches the film."""
    recorded = collect(plan, made, dropped)
    shown = {one.name for one in recorded.film.renditions}
    wanted = {None, *(kept.key for (name, _), kept in recorded.kept.items() if name in shown)}
    return tuple(one.id for one in made if one.stage not in WHOLE and one.kept.key not in wanted)


def facts_of(plan: TranscodePlan, packaged: Json) -> dict[str, Json]:
    """What a list of videos shows without looking at a job."""
    shown = plan.picture.shown if plan.picture is not None else None
    return {
        "duration_ms": round(plan.length * 1000),
        "width": shown[0] if shown else None,
        "height": shown[1] if shown else None,
        "rate": str(plan.timing.rate) if shown else None,
        "source_sha256": plan.origin.sha256,
        "qualities": [rung.name for rung in plan.rungs if rung.name not in packaged["dropped"]],
        "audio": [one.sound.language or UNDETERMINED for one in plan.sounds],
        "bytes": sum(packaged["sizes"].values()),
        "warnings": list(plan.warnings),
    }
