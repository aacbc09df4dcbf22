"""Small flows that workers run in tests. They tell a test how far they are by files in `spec["folder"]`.

`started.<pid>` says that a handler has begun; a handler that waits goes on when the file `go` is there.
"""

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from telecine import Bench, Done, Failed, Flow
from telecine.errors import HandlerStopped
from tests.support.patient_flow import patient

PATIENCE = 60.0
assert patient  # a worker finds it here


def say(bench: Bench, word: str, text: str = "") -> None:
    """Leave a file that a test waits for; whole, or not there."""
    folder = Path(bench.spec["folder"])
    draft = folder / f".{word}.{os.getpid()}"
    draft.write_text(text)
    draft.rename(folder / f"{word}.{os.getpid()}")


def may_go(bench: Bench) -> bool:
    return (Path(bench.spec["folder"]) / "go").exists()


def wait_for_go(bench: Bench) -> None:
    deadline = time.monotonic() + PATIENCE
    while not may_go(bench) and time.monotonic() < deadline:
        time.sleep(0.01)


# -- plain ones ------------------------------------------------------------------------------------

echo = Flow("echo")


@echo.stage(name="echo")
def echo_in_a_process(bench: Bench) -> Done:
    return Done(result=bench.spec)


quick = Flow("quick")


@quick.stage(name="quick", run="inline")
async def do_nothing(bench: Bench) -> None:
    return None


everywhere = Flow("everywhere")


@everywhere.stage()
async def process_async(bench: Bench) -> Done:
    await asyncio.sleep(0)
    await bench.checkpoint("pid", os.getpid())
    return Done(result=[bench.saved("pid"), os.getpid()])


@everywhere.stage()
def process_sync(bench: Bench) -> Done:
    bench.checkpoint("pid", os.getpid())
    return Done(result=[bench.saved("pid"), os.getpid()])


@everywhere.stage(run="thread")
async def thread_async(bench: Bench) -> Done:
    await bench.checkpoint("pid", os.getpid())
    return Done(result=[bench.saved("pid"), os.getpid()])


@everywhere.stage(run="thread")
def thread_sync(bench: Bench) -> Done:
    bench.checkpoint("pid", os.getpid())
    return Done(result=[bench.saved("pid"), os.getpid()])


@everywhere.stage(run="inline")
async def inline(bench: Bench) -> Done:
    await bench.checkpoint("pid", os.getpid())
    return Done(result=[bench.saved("pid"), os.getpid()])


# -- fan-out and what is handed on -----------------------------------------------------------------

fan = Flow("fan")


@fan.stage(phase="planning", run="inline")
async def plan(bench: Bench) -> Done:
    return Done(plan={"piece": list(range(bench.spec["pieces"]))})


@fan.stage(needs=["plan"], fan_out=True, run="inline")
async def piece(bench: Bench) -> Done:
    return Done(result=bench.input * 2)


@fan.stage(needs=["piece"], phase="uploading_outputs")
def gather(bench: Bench) -> Done:
    return Done(result=sum(bench.brief.results["piece"]))


# -- ones that wait to be told ---------------------------------------------------------------------

wait = Flow("wait")


@wait.stage(name="wait", backoff=0.01)
def wait_in_a_process(bench: Bench) -> Done:
    say(bench, "started")
    wait_for_go(bench)
    say(bench, "ended")
    return Done(result=os.getpid())


wait_beside = Flow("wait_beside")


@wait_beside.stage(name="wait", run="inline")
async def wait_on_the_loop(bench: Bench) -> Done:
    say(bench, f"started.{bench.job_id}")
    while not may_go(bench):
        await asyncio.sleep(0.01)
    return Done(result=os.getpid())


wait_apart = Flow("wait_apart")


@wait_apart.stage(name="wait", run="thread", attempts=1)
def wait_in_a_thread(bench: Bench) -> Done:
    say(bench, "started")
    wait_for_go(bench)
    return Done(result=bench.stopping)


wait_and_record = Flow("wait_and_record")


@wait_and_record.stage(name="wait")
def record_when_told(bench: Bench) -> None:
    say(bench, "started")
    wait_for_go(bench)
    try:
        bench.checkpoint("late", 1)
    except HandlerStopped:
        say(bench, "stopped")
        raise


mixed = Flow("mixed")


@mixed.stage(run="inline")
async def hog(bench: Bench) -> None:
    """Keeps the worker's loop from turning: what an inline handler must never do."""
    while not list(Path(bench.spec["folder"]).glob("neighbour.*")):
        await asyncio.sleep(0.01)
    say(bench, "hogging")
    wait_for_go(bench)


@mixed.stage()
def neighbour(bench: Bench) -> Done:
    say(bench, "neighbour")
    wait_for_go(bench)
    return Done(result=os.getpid())


# -- ones that behave badly ------------------------------------------------------------------------

crash = Flow("crash")


@crash.stage(name="crash", attempts=1)
def end_badly(bench: Bench) -> Done | Failed:
    how = bench.spec["how"]
    print("a word before the end", flush=True)
    if how == "exit":
        os._exit(3)
    if how == "signal":
        os.kill(os.getpid(), signal.SIGSEGV)
    if how == "raise":
        raise KeyError("no such thing")
    if how == "return":
        return "neither done nor failed"  # type: ignore[return-value]
    if how == "not json":
        return Done(result=object())
    return Failed("could not", permanent=True)


stubborn = Flow("stubborn")


@stubborn.stage(name="stubborn", attempts=1)
def refuse_to_end(bench: Bench) -> None:
    """Ignores TERM, and has children that do, one of them in a session of its own."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sleeper = [sys.executable, "-c", "import signal, time; signal.signal(15, signal.SIG_IGN); time.sleep(600)"]
    near = subprocess.Popen(sleeper)
    far = subprocess.Popen(sleeper, start_new_session=True)
    say(bench, "family", f"{os.getpid()} {near.pid} {far.pid}")
    time.sleep(PATIENCE)


polite = Flow("polite")


@polite.stage(name="polite", attempts=1)
def tidy_up_when_told(bench: Bench) -> None:
    say(bench, "started")
    try:
        time.sleep(PATIENCE)
    finally:
        say(bench, "tidied", str(bench.stopping))


stuck = Flow("stuck")


@stuck.stage(name="stalled", attempts=1, stall=1.0)
def make_no_progress(bench: Bench) -> None:
    say(bench, "started")
    time.sleep(PATIENCE)


@stuck.stage(name="late", attempts=1, limit=1.0)
def take_too_long(bench: Bench) -> None:
    say(bench, "started")
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        bench.progress(time.monotonic() % 1)
        time.sleep(0.05)


murder = Flow("murder")


@murder.stage(name="murder")
def kill_the_worker(bench: Bench) -> None:
    say(bench, "started")
    keeper = os.getppid()
    worker = int(Path(f"/proc/{keeper}/stat").read_text().rpartition(")")[2].split()[1])
    os.kill(worker, signal.SIGKILL)
    time.sleep(PATIENCE)


# -- ones that leave something behind --------------------------------------------------------------

steps = Flow("steps")


@steps.stage(name="steps", backoff=0.01)
def count_up(bench: Bench) -> Done:
    """Counts to three, a checkpoint each; falls over after the second in the first attempt."""
    begun = bench.saved("reached", 0)
    for number in range(begun + 1, 4):
        bench.checkpoint("reached", number)
        bench.progress(number, of=3, note=f"step {number}")
        if number == 2 and bench.attempt == 1:
            os._exit(1)
    return Done(result={"begun": begun, "reached": bench.saved("reached")})


goods = Flow("goods")


@goods.stage(name="goods")
def make_a_file(bench: Bench) -> Done:
    path = bench.scratch / "made.txt"
    path.write_text("made here")
    kept = bench.keep("out/made.txt", path, kind="text")
    bench.log("kept it", where="scratch")
    bench.step("make --all", exit_code=0, tail="all made")
    print("printed by the handler")
    return Done(result={"scratch": str(bench.scratch), "awaitable": hasattr(kept, "__await__")})


# -- ones with a media child -----------------------------------------------------------------------

filming = Flow("filming")


@filming.stage(name="film", run="inline", attempts=1)
async def run_a_media_child(bench: Bench) -> Done:
    """Gives `spec["order"]` to the program `spec["program"]`; tells a test of the processes that it says."""
    async with bench.child(bench.spec["order"], module=bench.spec["program"]) as child:
        async for message in child:
            if "family" in message:
                say(bench, "family", " ".join(str(pid) for pid in message["family"]))
    return Done(result=message["done"])
