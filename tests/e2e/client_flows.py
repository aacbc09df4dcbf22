"""Small flows for the client's stories."""

from typing import Any

from telecine import Done, Failed, Flow

greet = Flow("greet")
broken = Flow("broken")
ALL = [greet, broken]


@greet.stage(phase="planning", run="thread")
def plan(bench: Any) -> Done:
    return Done(plan={"speak": bench.spec["names"]})


@greet.stage(needs=["plan"], fan_out=True, run="thread")
def speak(bench: Any) -> Done:
    return Done(result=bench.input.upper())


@broken.stage(run="thread")
def fail(bench: Any) -> Failed:
    return Failed("it is broken", permanent=True)
