"""A flow whose pieces wait only so long for a worker with the label `gpu`."""

import asyncio

from telecine import Bench, Done, Flow, Piece

patient = Flow("patient")


@patient.stage(name="plan", run="inline")
async def plan_patient_pieces(bench: Bench) -> Done:
    piece = Piece(labels=("gpu",), optional=True, patience=bench.spec["patience"])
    return Done(plan={"cut": [piece] * bench.spec["pieces"]})


@patient.stage(name="cut", needs=("plan",), fan_out=True, run="inline")
async def cut_slowly(bench: Bench) -> None:
    await asyncio.sleep(bench.spec["seconds"])


@patient.stage(name="check", needs=("cut",), run="inline")
async def count_what_was_cut(bench: Bench) -> Done:
    return Done(result=len(bench.brief.results.get("cut", [])))
