"""The flow of the benchmark: one stage, and one that fans out. Their work is done by simulated workers."""

from telecine import Bench, Done, Flow

POSITIONS = 10_000

single = Flow("bench-single")
wide = Flow("bench-wide")


@single.stage(run="inline")
async def only(bench: Bench) -> Done:
    return Done()


@wide.stage(phase="planning", run="inline")
async def plan(bench: Bench) -> Done:
    return Done(plan={"segment": list(range(POSITIONS))})


@wide.stage(needs=["plan"], fan_out=True, run="inline")
async def segment(bench: Bench) -> Done:
    return Done()
