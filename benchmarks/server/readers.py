"""A hundred browsers that watch: from the commit of an event to its arrival at each of them.

python -m benchmarks.server.readers PORT KEY COUNT SECONDS: some of them, in a process of its own; prints arrivals.
"""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
import time
from contextlib import suppress

from benchmarks.server.rates import SPEC, quantile
from benchmarks.server.street import Street
from telecine.client import connect

READERS = 100
PROCESSES = 2
EVENTS_PER_SECOND = 200
JOB = re.compile(rb'"kind":"job\.created".*?"job":(\d+)')


async def latencies(street: Street, seconds: float) -> list[float]:
    """Milliseconds from commit to arrival, for every reader and event."""
    each = READERS // PROCESSES
    crowd = [
        subprocess.Popen(
            [
                sys.executable,
                "-m",
                "benchmarks.server.readers",
                str(street.ours),
                street.owner,
                str(each),
                str(seconds),
            ],
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(PROCESSES)
    ]
    await asyncio.sleep(3.0)  # all of them have been answered by then
    committed = await _submit_evenly(street, seconds)
    found: list[float] = []
    for process in crowd:
        said, _ = await asyncio.to_thread(process.communicate, timeout=seconds + 60)
        for job, at in json.loads(said):
            if job in committed:
                found.append(1_000 * (at - committed[job]))
    wanted = len(committed) * each * PROCESSES
    if len(found) != wanted:
        raise SystemExit(f"of {wanted} events {len(found)} arrived")
    return found


async def _submit_evenly(street: Street, seconds: float) -> dict[int, float]:
    """So many jobs a second, each in a transaction of its own; when each was committed."""
    committed: dict[int, float] = {}
    async with connect(street.url) as client:
        begun = time.monotonic()

        async def one(at: float) -> None:
            await asyncio.sleep(max(0.0, at - time.monotonic()))
            made = await client.submit("bench-single", SPEC, owner="ada")
            committed[made.job_id] = time.monotonic()

        count = int(seconds * EVENTS_PER_SECOND)
        await asyncio.gather(*(one(begun + n / EVENTS_PER_SECOND) for n in range(count)))
    return committed


async def _read(port: int, key: str, late: float, arrived: list[tuple[int, float]]) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 22)
    who = f"Host: 127.0.0.1\r\nAuthorization: Bearer {key}\r\nAccept: text/event-stream"
    writer.write(f"GET /api/v1/events HTTP/1.1\r\n{who}\r\n\r\n".encode())
    rest = b""
    with suppress(TimeoutError):
        async with asyncio.timeout(late - time.monotonic()):
            while some := await reader.read(1 << 16):
                now = time.monotonic()
                *lines, rest = (rest + some).split(b"\n")
                seen = (JOB.search(line) for line in lines if line.startswith(b"data:"))
                arrived += [(int(match[1]), now) for match in seen if match]
    writer.close()


async def _crowd(port: int, key: str, count: int, seconds: float) -> None:
    arrived: list[tuple[int, float]] = []
    late = time.monotonic() + seconds + 8.0
    await asyncio.gather(*(_read(port, key, late, arrived) for _ in range(count)))
    print(json.dumps(arrived))


def told(found: list[float]) -> str:
    return f"p50 {quantile(found, 0.5):.1f} ms, p99 {quantile(found, 0.99):.1f} ms of {len(found):,} arrivals"


if __name__ == "__main__":
    import uvloop

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_crowd(int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), float(sys.argv[4])))
