"""Rich without what strangers may do to a terminal; see `terminal`. Apart, because to import Rich takes its time."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import IO, Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.control import Control
from rich.segment import ControlType, Segment
from rich.table import Table
from rich.text import Text

from telecine.cli.terminal import UNSAFE, safe


class SafeConsole(Console):
    """Escapes the text of whatever it renders; what moves the cursor is a segment of another kind."""

    @property
    def file(self) -> IO[str]:
        """The stream behind all proxies. A live display puts its own before `SafeStream`, and Rich looks behind one
        only: what moves the cursor would be escaped like the text of strangers."""
        found: Any = self._file or (sys.stderr if self.stderr else sys.stdout)
        while (behind := getattr(found, "rich_proxied_file", None)) is not None:
            found = behind
        return found  # type: ignore[no-any-return]

    @file.setter
    def file(self, stream: IO[str]) -> None:
        self._file = stream

    def print(self, *objects: Any, **how: Any) -> None:
        cells = [_safe_cell(one) for one in objects]
        if how.get("end") == "\r":  # ours: as text it would be escaped like a stranger's
            cells.append(Control(ControlType.CARRIAGE_RETURN))
            how["end"] = ""
        super().print(*cells, **how)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            is_safe = segment.control or not UNSAFE.search(segment.text)
            yield segment if is_safe else Segment(safe(segment.text), segment.style)


class SafeTable(Table):
    """Escapes cells before they are measured, so that columns stay straight."""

    def add_row(self, *cells: RenderableType | None, **how: Any) -> None:
        super().add_row(*(_safe_cell(cell) for cell in cells), **how)


def _safe_cell(cell: Any) -> Any:
    if isinstance(cell, str):
        return safe(cell)
    if isinstance(cell, Text) and UNSAFE.search(cell.plain):
        return Text(safe(cell.plain), style=cell.style)
    return cell
