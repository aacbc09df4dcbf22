"""Carry out one order and end.

python -I -m telecine.media.child FD                            started by a worker; talks over the socket
python -I -m telecine.media.child plan.json [--source PATH]     by hand: an attempt can be replayed
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

from telecine.media.child.error_report import report
from telecine.media.child.protocol import (
    ChildSession,
    JsonChannel,
    OrderRefused,
    ParentGone,
    SocketChannel,
    StdoutChannel,
)
from telecine.media.child.sandbox import lockdown
from telecine.media.child.sandbox.canary import Canary
from telecine.media.child.source.reader import FileSource, RangeSource, SourceReader
from telecine.media.orders import ORDERS
from telecine.media.plain_json import from_plain

Operation = Callable[[Any, ChildSession], Mapping[str, Any]]

# Operation -> module and function that carry it out.
_HOMES = {
    "probe": ("source.probe", "run"),
    "scan": ("timing.scan", "run"),
    "remux": ("source.remux", "run"),
    "inits": ("encode.inits", "run"),
    "video": ("encode.chunk", "run"),
    "audio": ("sound.audio_track", "run"),
    "poster": ("pictures.stills", "poster"),
    "sprites": ("pictures.stills", "sprites"),
    "decode": ("pictures.decode", "run"),
    "canary": ("sandbox.canary", "run"),
}
_KINDS: dict[str, Any] = {kind.op: kind for kind in (*ORDERS, Canary)}


def preload() -> None:
    """All that any order may need: for who forks children instead of starting them."""
    for module, _ in _HOMES.values():
        import_module(f"telecine.media.child.{module}")
    lockdown.import_lazies()


def main(arguments: list[str]) -> int:
    try:
        line, first = _opened(arguments)
    except ParentGone:
        return 1
    work = _Work()
    try:
        return work.carry_out(first, line)
    except ParentGone:
        return 1
    except Exception as error:
        traceback.print_exc()
        said = report(error, work.operation, work.source)
        with suppress(ParentGone):
            line.say({"error": {"code": said.code, "message": said.message, "permanent": said.permanent}})
        return 1
    finally:
        line.close()


def _opened(arguments: list[str]) -> tuple[JsonChannel, dict[str, Any]]:
    """The line to talk over, and what was said first."""
    if len(arguments) == 1 and arguments[0].isdigit():
        channel = SocketChannel(int(arguments[0]))
        lockdown.die_with_parent(int(arguments[0]))
        return channel, channel.hear()
    parser = argparse.ArgumentParser(prog="telecine.media.child", description="Carry out one order.")
    parser.add_argument("plan", type=Path, help="the order as JSON, as the attempt's log has it")
    parser.add_argument("--source", type=Path, help="the file to work on")
    asked = parser.parse_args(arguments)
    plan = json.loads(asked.plan.read_text())
    first = plan if "order" in plan else {"order": plan}
    first["files"] = {"source": os.open(asked.source, os.O_RDONLY)} if asked.source else {}
    return StdoutChannel(), first


class _Work:
    """One order, and what of it an error report needs to know."""

    def __init__(self) -> None:
        self.operation = ""
        self.source: SourceReader | None = None

    def carry_out(self, first: Mapping[str, Any], line: JsonChannel) -> int:
        told = first.get("order")
        if not isinstance(told, dict):
            raise OrderRefused("bad_order", "the first line holds no order", permanent=True)
        if told.get("op") not in _KINDS:
            raise OrderRefused("bad_order", f"this release knows no operation {told.get('op')!r}", permanent=True)
        order = _understood(told)
        self.operation, self.source = told["op"], _source(first)
        talk = ChildSession(line, source=self.source, scratch=Path.cwd())
        netns = lockdown.leave_network()
        module, name = _HOMES[told["op"]]
        operation = import_module(f"telecine.media.child.{module}")
        talk.say(sandbox=lockdown.enter(order, operation, talk.scratch, netns=netns))
        carry_out: Operation = getattr(operation, name)
        talk.done(carry_out(order, talk))
        return 0


def _understood(told: Mapping[str, Any]) -> Any:
    try:
        return from_plain(_KINDS[told["op"]], {name: value for name, value in told.items() if name != "op"})
    except (TypeError, ValueError) as error:
        raise OrderRefused("bad_order", f"the order does not fit its operation: {error}", permanent=True) from error


def _source(first: Mapping[str, Any]) -> SourceReader | None:
    files = first.get("files") or {}
    if "source" in files:
        return SourceReader(FileSource(files["source"]))
    if "ask" not in files:
        return None
    size = first["order"].get("size")
    if size is None:
        raise OrderRefused(
            "bad_order", "a source that is asked for in ranges needs its size in the order", permanent=True
        )
    return SourceReader(RangeSource(files["ask"], size))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
