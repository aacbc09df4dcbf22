"""A worked example: draw the Mandelbrot set, band by band.

    plan ──▶ band × 6 ──▶ picture

`plan` decides how many bands there are; each band is a task of its own, drawn by whichever worker is free, in a child
process; `picture` waits for all of them. A band records every line that it has drawn, so when its worker dies, the
next one goes on after the last line. Try it by hand:

    telecine worker --flows examples/flows.py
    telecine submit mandelbrot '{"width": 100, "height": 40, "bands": 8, "pause": 0.1}'
"""

import time
from itertools import pairwise

from telecine import Bench, Done, Failed, Flow

SHADES = " .,:;-~=+*oO#%@"
DEEP = 200

flow = Flow("mandelbrot")


@flow.stage(phase="planning", title="Cut the picture into bands", run="inline")
async def plan(bench: Bench) -> Done | Failed:
    height, bands = bench.spec.get("height", 24), bench.spec.get("bands", 6)
    if not 1 <= bands <= height:
        # The next attempt would find the same, so there is none.
        return Failed(f"{height} lines cannot be cut into {bands} bands", permanent=True)
    cuts = [height * number // bands for number in range(bands + 1)]
    return Done(plan={"band": [{"first": first, "last": last} for first, last in pairwise(cuts)]})


@flow.stage(needs=["plan"], fan_out=True, title="Draw a band", stall=60)
def band(bench: Bench) -> Done:
    first, last = bench.input["first"], bench.input["last"]
    lines = bench.saved("lines", [])
    if lines:
        bench.log(f"band {bench.position + 1} goes on after line {len(lines)}, which somebody else had drawn")
    for y in range(first + len(lines), last):
        lines = [*lines, draw(y, bench.spec.get("width", 72), bench.spec.get("height", 24))]
        time.sleep(bench.spec.get("pause", 0.0))
        bench.checkpoint("lines", lines)  # from here on this line is never drawn again
        bench.progress(len(lines), of=last - first, note=f"line {len(lines)} of {last - first}")
    return Done(result=lines)


@flow.stage(needs=["band"], phase="uploading_outputs", title="Put the bands together")
def picture(bench: Bench) -> Done:
    lines = [line for lines in bench.brief.results["band"] for line in lines]
    path = bench.scratch / "mandelbrot.txt"
    path.write_text("\n".join(lines) + "\n")
    bench.keep("mandelbrot.txt", path, lines=len(lines))
    return Done(result={"lines": len(lines)})


def draw(y: int, width: int, height: int) -> str:
    """One line: how soon z² + c leaves the circle, for each point of the plane."""
    return "".join(shade(complex(-2.2 + 3.2 * x / width, -1.2 + 2.4 * (y + 0.5) / height)) for x in range(width))


def shade(c: complex) -> str:
    z = 0j
    for turn in range(DEEP):
        z = z * z + c
        if abs(z) > 2:
            return SHADES[min(turn // 2, len(SHADES) - 2)]
    return SHADES[-1]
