"""python -m benchmarks.media.bare FILM ORDERS FOLDER: the same orders to the same child, by a bare script.

No database, no leases, no records: what is left when the engine is taken away.
"""

from __future__ import annotations

import argparse
import json
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from benchmarks.media.measure import own_cpu
from telecine.media.orders import ORDERS
from telecine.media.plain_json import from_plain
from tests.media.child_driver import run

KINDS = {kind.op: kind for kind in ORDERS}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.media.bare")
    parser.add_argument("film", type=Path)
    parser.add_argument("orders", type=Path, help="a JSON list of orders, as the steps of a job have them")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--slots", type=int, default=2)
    asked = parser.parse_args()
    orders = json.loads(asked.orders.read_text())
    begun = time.monotonic()

    def carry_out(place: tuple[int, dict[str, Any]]) -> None:
        number, order = place
        kind = KINDS[order.pop("op")]
        said = run(from_plain(kind, order), asked.folder / str(number), source=asked.film)
        if said.error:
            raise SystemExit(f"order {number} failed: {said.error}")

    with ThreadPoolExecutor(asked.slots) as pool:
        list(pool.map(carry_out, enumerate(orders)))
    print(json.dumps({"own_cpu": own_cpu(), "wall": time.monotonic() - begun}))


if __name__ == "__main__":
    main()
