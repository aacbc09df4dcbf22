"""Flows that find again what others have kept, from wherever a handler may live."""

import asyncio
from pathlib import Path
from typing import Any

from telecine import Bench, Done, Flow
from telecine.facts import KeptArtifact
from telecine.flow import Run

shelves = Flow("shelves")
CONTENT = b"0123456789" * 1000


@shelves.stage(run="inline")
async def make(bench: Bench) -> Done:
    path = bench.scratch / "made"
    path.write_bytes(CONTENT)
    await bench.keep("deep/a.bin", path, kind="digits")
    path.write_bytes(b"")
    await bench.keep("empty", path)
    await bench.checkpoint("at", 7)
    return Done()


async def look(bench: Bench) -> Done:
    shelved = {one.kept.name: one for one in await bench.artifacts("make")}
    path = await bench.fetch(shelved["deep/a.bin"].kept)
    again = await bench.fetch(shelved["deep/a.bin"].kept)
    part = await bench.read(shelved["deep/a.bin"].kept, 1005, 10)
    empty = await bench.read(shelved["empty"].kept)
    return told(bench, shelved, (path, again), (part, empty))


def look_at_once(bench: Bench) -> Done:
    """The same in plain code: what is awaited there has happened here."""
    shelved = {one.kept.name: one for one in value(bench.artifacts("make"))}
    path, again = (value(bench.fetch(shelved["deep/a.bin"].kept)) for _ in range(2))
    part = value(bench.read(shelved["deep/a.bin"].kept, 1005, 10))
    empty = value(bench.read(shelved["empty"].kept))
    return told(bench, shelved, (path, again), (part, empty))


def value(happened: Any) -> Any:
    return happened.value


def told(bench: Bench, shelved: dict[str, Any], paths: tuple[Path, Path], parts: tuple[bytes, bytes]) -> Done:
    a = shelved["deep/a.bin"]
    located = bench.locate(a.kept)
    return Done(
        result={
            "names": sorted(shelved),
            "place": [a.stage, a.position, a.kept.facts],
            "value": shelved["at"].kept.value,
            "same": paths[0].read_bytes() == CONTENT and paths[0] == paths[1],
            "in_place": located == paths[0],
            "parts": [part.decode() for part in parts],
            "slots": bench.slots,
        }
    )


RUNS: list[tuple[Run, bool]] = [
    ("inline", True),
    ("thread", True),
    ("thread", False),
    ("process", True),
    ("process", False),
]
for run, waits in RUNS:
    shelves.stage(f"{run}_{'async' if waits else 'sync'}", needs=["make"], run=run)(look if waits else look_at_once)


spoilt = Flow("spoilt")


@spoilt.stage(run="inline", backoff=0.01, attempts=2)
async def resume(bench: Bench) -> Done:
    """Keeps three files and fails; the next attempt tells what it finds of them."""
    if bench.attempt == 1:
        for name in ("whole", "changed", "shorter", "gone"):
            path = bench.scratch / name
            path.write_bytes(CONTENT)
            await bench.keep(name, path)
        raise RuntimeError("fall over")
    while not Path(bench.spec["folder"], "go").exists():
        await asyncio.sleep(0.01)
    names = ("whole", "changed", "shorter", "gone", "never")
    cheap = [name for name in names if await bench.kept(name)]
    hashed = [name for name in names if await bench.kept(name, check=True)]
    fetched = [await _fetched(bench, bench.brief.kept[name]) for name in names[:-1]]
    return Done(result={"cheap": cheap, "hashed": hashed, "fetched": fetched})


async def _fetched(bench: Bench, kept: KeptArtifact) -> str:
    try:
        await bench.fetch(kept)
    except Exception as error:
        return type(error).__name__
    return "whole"
