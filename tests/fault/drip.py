"""A flow of jobs that take a moment each, and have a result."""

import asyncio

from telecine import Bench, Done, Flow

drip = Flow("drip")


@drip.stage(name="drip", run="inline")
async def take_a_moment(bench: Bench) -> Done:
    await asyncio.sleep(0.01)
    return Done(result={"number": bench.spec["number"]})
