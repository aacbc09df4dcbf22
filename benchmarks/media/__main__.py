"""python -m benchmarks.media [--quick]: our encoding beside FFmpeg's, same settings, same film, same run.

A table, and as the last line one JSON object. Nothing here passes or fails by time.

The minute is half a minute played twice, so of FFmpeg's commands half is enough, and it counts twice. In the full run
those that we are compared with encode a half before and a half after us, so that a machine that becomes slower
meanwhile does so for both.

Encoders are set alike on both sides, pictures are scaled as each side does it: FFmpeg's commands scale every rung from
the source, as people write them; ours scales one from another's picture, and so does one more command of FFmpeg
(`cpu_vs_sharing_command`). Memory is used for a moment before each command, ours and theirs, so that nobody waits for
the host to give it.

Our time is that of the job, on a worker that is there already; FFmpeg's has its start in it, which takes no time.
`engine_overhead` compares what the two programs used themselves, ours and the bare one, with what our media children
used: these do the same work for both, and cost now more and now less. What ours used while nothing but checks ran is
left out, like the checks. `engine_overhead_as_run`, in the full run, is the plain difference, with the children in it.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.media import commands, film
from benchmarks.media.measure import Cost, run, touch_memory
from benchmarks.media.ours import CHECKING
from benchmarks.media.segment import order_for_first, rungs_for
from telecine.apps.transcode.plan import TranscodePlan
from telecine.media.orders import Rung, Timing
from telecine.media.plain_json import from_plain

BALANCED_SECONDS = 12  # two segments and a little more: two slots share them evenly
TEN_MINUTES = 10  # times the minute
OURS, BARE = "ours, 60 s", "the same children, bare, 60 s"
ONE_SLOT, TWO_SLOTS = (f"ours, {BALANCED_SECONDS} s, {slots}" for slots in ("one slot", "two slots"))
COMMAND, THREAD, PER_RUNG = "one command, 60 s", "one command, one thread each, 60 s", "one command per rung, 60 s"
SHARING = "the same, 360 from 720, 60 s"


@dataclass
class Bench:
    """One run of everything, and what it found."""

    folder: Path
    quick: bool
    rungs: tuple[Rung, ...]
    timing: Timing
    costs: dict[str, list[Cost]] = field(default_factory=dict)
    told: dict[str, list[Any]] = field(default_factory=dict)
    count: int = 0

    @property
    def rounds(self) -> int:
        return 1 if self.quick else 3

    def fresh(self) -> Path:
        self.count += 1
        path = self.folder / str(self.count)
        path.mkdir()
        return path

    def note(self, name: str, cost: Cost) -> None:
        self.costs.setdefault(name, []).append(cost)
        largest = f"{cost.rss >> 20:6} MB in the largest process" if cost.rss else ""
        print(f"{name:34} {cost.cpu:8.1f} s CPU {cost.wall:8.1f} s wall {largest}", flush=True)

    def ours(self, name: str, path: Path, *options: str) -> dict[str, Any]:
        """Our own run; checking is taken out of its figures, and noted beside them."""
        folder = self.fresh()
        cost, said = run([sys.executable, "-m", "benchmarks.media.ours", path, folder, *options])
        told: dict[str, Any] = json.loads(said.splitlines()[-1])
        told["folder"] = folder
        cost = Cost(cost.wall, cost.cpu - told["touched"], 0)
        if "steps" in told:
            children = sum(one["cpu_seconds"] for one in told["steps"] if one["stage"] in CHECKING)
            checking = children + told["checking"]
            self.note(f"{name}: checking", Cost(told["verify_wall"], checking, 0))
            rss = max(one["max_rss_bytes"] for one in told["steps"])
            cost = Cost(told["wall"] - told["verify_wall"], cost.cpu - checking, rss)
        else:
            cost = Cost(told["first_segment"], cost.cpu, 0)
        self.note(name, cost)
        return told

    def cpu(self, name: str) -> float:
        return median(cost.cpu for cost in self.costs[name])

    def wall(self, name: str) -> float:
        return median(cost.wall for cost in self.costs[name])


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.media")
    parser.add_argument("--quick", action="store_true", help="one round on one minute of film: under six minutes")
    asked = parser.parse_args()
    begun = time.monotonic()
    half = film.big_buck_bunny()
    minute = film.twice(half)
    short = film.first(half, BALANCED_SECONDS)
    with tempfile.TemporaryDirectory(prefix="telecine-bench-") as folder:
        rungs, timing = rungs_for(half, Path(folder) / "looked")
        bench = Bench(Path(folder), quick=asked.quick, rungs=rungs, timing=timing)
        figures: dict[str, Any] = {}
        for _ in range(bench.rounds):
            figures = one_round(bench, half, minute, short)
        if not asked.quick:
            long = film.repeated(half, 2 * TEN_MINUTES)
            figures |= {"first_segment_vs_child_10min": first_segment(bench, long)}
    figures["seconds"] = round(time.monotonic() - begun, 1)
    print(json.dumps(figures))
    return 0


def one_round(bench: Bench, half: Path, minute: Path, short: Path) -> dict[str, Any]:
    single = bench.fresh()
    peers: dict[str, Callable[[Path], list[str]]] = {
        COMMAND: lambda folder: commands.single(half, bench.rungs, bench.timing, folder, threads=None),
        THREAD: lambda folder: commands.single(half, bench.rungs, bench.timing, folder, threads=1),
        SHARING: lambda folder: commands.sharing(half, bench.rungs, bench.timing, folder),
    }
    before = {} if bench.quick else {name: measured(command(bench.fresh())) for name, command in peers.items()}
    told = bench.ours(OURS, minute, "--slots", "2")
    assert from_plain(TranscodePlan, told["plan"]).rungs == bench.rungs, "both encode the same"
    for name, command in peers.items():
        after = measured(command(single if name == COMMAND else bench.fresh()))
        bench.note(name, before.get(name, after) + after)
    bare(bench, minute, told)
    bench.note(PER_RUNG, per_rung(bench, half).times(2))
    bench.ours(ONE_SLOT, short, "--slots", "1", "--chunk", "1")
    bench.ours(TWO_SLOTS, short, "--slots", "2", "--chunk", "1")
    bench.told.setdefault("limit", []).append(side_by_side(half))
    found = figures_of(bench) | made(bench, told, minute, single)
    if not bench.quick:
        found["engine_overhead_as_run"] = round(bench.cpu(OURS) / bench.cpu(BARE) - 1, 4)
    return found | {"first_segment_vs_child": first_segment(bench, minute)}


def measured(command: list[str]) -> Cost:
    touch_memory()
    return run(command)[0]


def side_by_side(path: Path) -> float:
    """How much two cores of this machine do more than one: two encodes that share nothing, against one."""
    touch_memory()
    alone = run(commands.pinned(path, 0))[0].wall
    with ThreadPoolExecutor(2) as pool:
        both = list(pool.map(lambda core: run(commands.pinned(path, core))[0].wall, (0, 1)))
    print(f"{'one encode, and two at once':34} {alone:8.1f} s {max(both):12.1f} s")
    return 2 * alone / max(both)


def per_rung(bench: Bench, path: Path) -> Cost:
    """One command for each rung, two at a time: what counts is their CPU."""
    folder = bench.fresh()
    touch_memory()
    begun = time.monotonic()
    with ThreadPoolExecutor(2) as pool:
        costs = list(pool.map(lambda rung: run(commands.per_rung(path, rung, bench.timing, folder))[0], bench.rungs))
    total = sum(costs, Cost(0, 0, 0))
    return Cost(time.monotonic() - begun, total.cpu, total.rss)


def bare(bench: Bench, path: Path, told: dict[str, Any]) -> None:
    """The same orders without an engine; in the quick run only the short ones, for what the program itself uses."""
    folder = bench.fresh()
    steps = [one for one in told["steps"] if one["stage"] not in CHECKING]
    orders = [one["order"] for one in steps if not (bench.quick and one["stage"] == "video")]
    (folder / "orders.json").write_text(json.dumps(orders))
    touch_memory()
    cost, said = run([sys.executable, "-m", "benchmarks.media.bare", path, folder / "orders.json", folder])
    own = told["own_cpu"] - told["checking"] - json.loads(said.splitlines()[-1])["own_cpu"]
    bench.told.setdefault("overhead", []).append(own / sum(one["cpu_seconds"] for one in steps))
    if not bench.quick:
        bench.note(BARE, cost)


def first_segment(bench: Bench, path: Path) -> float:
    """Until a viewer can begin, against a child that does nothing but encode segment 0."""
    folder = bench.fresh()
    ours = []
    for _ in range(bench.rounds):
        told = bench.ours(f"until segment 0, {path.stem}", path, "--until-first", "--slots", "2")
        ours.append(told["first_segment"])
    order = folder / "order.json"
    order.write_text(json.dumps([order_for_first(path, bench.fresh())]))
    alone = []
    for n in range(bench.rounds):
        touch_memory()
        _, said = run([sys.executable, "-m", "benchmarks.media.bare", path, order, folder / f"b{n}", "--slots", "1"])
        alone.append(json.loads(said.splitlines()[-1])["wall"])
    print(f"{'segment 0':34} {median(ours):8.1f} s ours {median(alone):8.1f} s a bare child")
    return round(median(ours) / median(alone), 3)


def figures_of(bench: Bench) -> dict[str, Any]:
    return {
        "cpu_vs_single_command": round(bench.cpu(OURS) / min(bench.cpu(COMMAND), bench.cpu(THREAD)), 3),
        "wall_vs_single_command": round(bench.wall(OURS) / min(bench.wall(COMMAND), bench.wall(THREAD)), 3),
        "cpu_vs_sharing_command": round(bench.cpu(OURS) / bench.cpu(SHARING), 3),
        "cpu_vs_per_rung": round(bench.cpu(OURS) / bench.cpu(PER_RUNG), 3),
        "two_slots_speedup": round(bench.wall(ONE_SLOT) / bench.wall(TWO_SLOTS), 3),
        "two_cores_speedup": round(median(bench.told["limit"]), 3),
        "engine_overhead": round(median(bench.told["overhead"]), 4),
        "child_rss_mb": max(cost.rss for cost in bench.costs[OURS]) >> 20,
    }


def made(bench: Bench, told: dict[str, Any], minute: Path, single: Path) -> dict[str, Any]:
    """What came out, beside a single pass over the half: how large, and how like the source the worst rung is."""
    size = 2 * sum((single / f"{rung.name}.mp4").stat().st_size for rung in bench.rungs)
    films = [
        (path, rung)
        for rung in bench.rungs
        for path in (join(told, rung.name, bench.fresh()), single / f"{rung.name}.mp4")
    ]
    with ThreadPoolExecutor(2) as pool:  # nobody looks at the clock here
        decibels = iter(pool.map(lambda one: quality(one[0], minute, one[1]), films))
    deltas = {rung.name: round(next(decibels) - next(decibels), 3) for rung in bench.rungs}
    return {
        "size_vs_single_pass": round(sum(told["sizes"].values()) / size, 4),
        "xpsnr_delta_db": min(deltas.values()),
        "xpsnr_delta_db_by_rung": deltas,
    }


def join(told: dict[str, Any], rung: str, folder: Path) -> Path:
    """A rendition as one file: its init and its segments in order."""
    names = {name: told["folder"] / "artifacts" / key for name, key in told["keys"] if name.startswith(f"{rung}/")}
    path = folder / f"{rung}.mp4"
    parts = [names[f"{rung}/init.mp4"], *(names[name] for name in sorted(names) if name.endswith(".m4s"))]
    path.write_bytes(b"".join(part.read_bytes() for part in parts))
    return path


def quality(one: Path, source: Path, rung: Rung) -> float:
    """XPSNR of the brightness over the half, in dB."""
    _, said = run(commands.xpsnr(one, source, rung, film.FRAMES))
    found = re.findall(r"XPSNR\s+y:\s*([\d.]+)", said)
    return float(found[-1])


if __name__ == "__main__":
    sys.exit(main())
