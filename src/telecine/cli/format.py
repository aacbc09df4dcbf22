"""How values look on a terminal: times, sizes, states, bars and tables."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING, Any

from telecine.facts import DAY, HOUR, MINUTE, SECOND, Instant, Millis

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

# A pipe has no width: lines that are meant for grep are neither cut nor wrapped.
PIPE_WIDTH = 1 << 20
WIDE = 110
ROOMY = 150
BAR_WIDTH = 24
NARROWEST = 3

TONES = {
    "pending": "bright_black",
    "validating": "cyan",
    "planning": "cyan",
    "downloading_inputs": "cyan",
    "processing": "blue",
    "uploading_outputs": "blue",
    "completed": "green",
    "failed": "red",
    "cancelled": "yellow",
    "new": "bright_black",
    "ready": "cyan",
    "scheduled": "cyan",
    "retrying": "yellow",
    "running": "blue",
    "done": "green",
    "error": "red",
    "skipped": "bright_black",
    "idle": "green",
    "busy": "blue",
    "draining": "yellow",
    "disabled": "red",
    "offline": "red",
    "active": "green",
    "paused": "yellow",
}


@cache
def console() -> Console:
    """Rich obeys NO_COLOR and TERM by itself. Without markup: what is shown may hold brackets of its own."""
    from telecine.cli.rich_output import SafeConsole

    plain = SafeConsole(highlight=False, markup=False, soft_wrap=False)
    if plain.is_terminal or "COLUMNS" in os.environ:
        return plain
    return SafeConsole(highlight=False, markup=False, soft_wrap=False, width=PIPE_WIDTH)


def print_json(value: object) -> None:
    print(json.dumps(value, indent=2, ensure_ascii=False, default=str))


def print_line(value: object) -> None:
    """One object of a stream; a reader at the other end of a pipe gets it at once."""
    print(json.dumps(value, ensure_ascii=False, default=str), flush=True)


def table(*columns: str, right: Iterable[str] = ()) -> Table:
    """A table without lines; only its last column gives way when the terminal is narrow."""
    from telecine.cli.rich_output import SafeTable

    made = SafeTable(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for name in columns[:-1]:
        made.add_column(name, justify="right" if name in right else "left", no_wrap=True, overflow="ellipsis")
    made.add_column(columns[-1], overflow="fold")
    return made


def print_rows(table: Table, rows: Sequence[Sequence[str | Text]], notes: Sequence[Text | None]) -> None:
    """Print a table, one line for each row, with what is to be noted of a row below it."""
    from rich.segment import Segment, Segments
    from rich.text import Text

    lines = [[one_line(cell) for cell in cells] for cells in rows]
    heads = [str(column.header) for column in table.columns]
    for column, width in zip(table.columns, _widths([heads, *lines]), strict=True):
        column.no_wrap, column.overflow, column.width = True, "ellipsis", width
    for cells in lines:
        table.add_row(*cells)
    for line, note in zip(console().render_lines(table, pad=False), [None, *notes], strict=True):
        if is_pipe():  # without the blanks up to the end of the longest line
            print("".join(segment.text for segment in line).rstrip())
        else:
            console().print(Segments([*line, Segment.line()]), end="")
        if note is not None:
            console().print(Text.assemble("     ", one_line(note)), no_wrap=True, overflow="ellipsis")


def _widths(lines: Sequence[Sequence[str | Text]]) -> list[int]:
    """How wide the columns are: the widest gives way, never the first, whose words are typed again."""
    from rich.cells import cell_len

    widths = [max(cell_len(str(cell)) for cell in column) for column in zip(*lines, strict=True)]
    gaps = 2 * (len(widths) - 1)
    while sum(widths) + gaps > console().width and max(widths[1:]) > NARROWEST:
        widths[widths.index(max(widths[1:]), 1)] -= 1
    return widths


def one_line(words: str | Text) -> str | Text:
    """The same without line breaks; what has none is left as it is."""
    return " ".join(str(words).split()) if len(f"{words}.".splitlines()) > 1 else words


def is_roomy() -> bool:
    """Is there room for a sentence beside the columns of a list?"""
    return console().width >= ROOMY


def is_wide() -> bool:
    """Is there room for more than the most needed columns?"""
    return console().width >= WIDE


def state(word: str, tones: Mapping[str, str] = TONES) -> Text:
    from rich.text import Text

    return Text(word.replace("_", " "), style=tones.get(word, ""))


def dim(words: str) -> Text:
    from rich.text import Text

    return Text(words, style="bright_black")


def bar(done: float, width: int = BAR_WIDTH, style: str = "blue") -> Text:
    """A progress bar that also reads well in a log: filled, rest, per cent."""
    from rich.text import Text

    full = min(width, int(done * width))
    if console().color_system is None or console().no_color:
        return Text(f"{'#' * full}{'-' * (width - full)} {done:4.0%}")
    return Text.assemble(("━" * full, style), ("━" * (width - full), "bright_black"), f" {done:4.0%}")


def utc(at: Instant | None) -> str:
    """A moment in UTC, to the second."""
    return "" if at is None else datetime.fromtimestamp(at / SECOND, UTC).strftime("%Y-%m-%d %H:%M:%S")


def iso(at: Instant | None) -> str | None:
    """The same for JSON, to the millisecond."""
    if at is None:
        return None
    return datetime.fromtimestamp(at / SECOND, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def span(length: Millis, most: int = 2) -> str:
    """A length of time in its largest units."""
    if length < SECOND:
        return f"{max(0, length)} ms"
    if length < 10 * SECOND:
        return f"{length / SECOND:.1f} s"
    units = [("d", DAY), ("h", HOUR), ("min", MINUTE), ("s", SECOND)]
    parts: list[str] = []
    for name, unit in units:
        if length >= unit and len(parts) < most:
            parts.append(f"{length // unit} {name}")
            length %= unit
        elif parts:
            break
    return " ".join(parts)


def has_paused(elapsed: Millis, worked: Millis) -> bool:
    """Was there a time worth a word in which nobody worked? Between two tasks a moment passes always."""
    return 0 < worked < elapsed - max(5 * SECOND, elapsed // 10)


def took(elapsed: Millis, worked: Millis) -> str:
    """From start to end; and how much of it was work, where nobody was at it for a while."""
    return span(elapsed) + (f" ({span(worked)} of work)" if has_paused(elapsed, worked) else "")


def ago(at: Instant | None, now: Instant) -> str:
    """How long ago, or how far ahead, a moment is by the database's clock."""
    if at is None:
        return ""
    return f"{span(now - at)} ago" if at <= now else f"in {span(at - now)}"


def moment(at: Instant | None, now: Instant) -> str:
    return "" if at is None else f"{ago(at, now)} ({utc(at)} UTC)"


def size(count: int | None) -> str:
    if count is None:
        return ""
    amount = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if amount < 1000:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:.1f} TB"


def is_pipe() -> bool:
    """Is there no width to obey?"""
    return console().width == PIPE_WIDTH


def is_terminal() -> bool:
    return sys.stdout.isatty() and console().is_terminal


def compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def fault(what: object, message: object) -> str:
    """What went wrong and how that is told; the word once where one is the other."""
    return ": ".join(dict.fromkeys(str(part) for part in (what, message) if part))


def short(text: str, most: int) -> str:
    """Not longer than this; in a pipe, whole."""
    return text if len(text) <= most or is_pipe() else text[: most - 1] + "…"
