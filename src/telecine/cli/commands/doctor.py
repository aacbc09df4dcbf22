"""`telecine doctor`: look at everything, change nothing, start nothing that lasts, one line per check."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from telecine.cli import format
from telecine.cli.commands.doctor_disk import DoctorCheck, examine_folder, examine_privacy, is_folder
from telecine.cli.common import AsJson, Database, perform, settings_for
from telecine.errors import TelecineError
from telecine.facts import MINUTE, SECOND, Millis
from telecine.plural import counted

if TYPE_CHECKING:
    from telecine.settings import Loaded, Settings
    from telecine.wiring import Parts
    from telecine.wiring.database import DatabaseVitals

MAX_OFFSET: Millis = 2 * SECOND
MAX_TRANSACTION: Millis = 5 * MINUTE
PULSES = 10
AUDIT_SECONDS = 10.0
MARKS = {"ok": ("✓", "green"), "warning": ("!", "yellow"), "wrong": ("✗", "red")}


def doctor(database: Database = None, as_json: AsJson = False) -> None:
    """Check settings, database, durability, wake-ups, clocks, disk, stored state, and the installed apps."""
    perform(_doctor(database, as_json))


async def _doctor(database: str | None, as_json: bool) -> int:
    seen: Counter[str] = Counter()
    async for check in examine(database):
        seen[check.verdict] += 1
        if as_json:
            format.print_line(asdict(check))
        else:
            _print(check)
    if not as_json:
        print(f"\n{_sum(seen)}")
    return 1 if seen["wrong"] else 0


def _sum(seen: Counter[str]) -> str:
    if seen["wrong"]:
        return f"{seen['wrong']} of these must be put right."
    return f"Nothing is wrong; {counted(seen['warning'], 'warning')}." if seen["warning"] else "All is well."


def _print(check: DoctorCheck) -> None:
    from rich.table import Table
    from rich.text import Text

    mark, style = MARKS[check.verdict]
    line = Table.grid(padding=(0, 2, 0, 0))
    line.add_column(width=1)
    line.add_column(width=12)
    line.add_column(overflow="fold")
    line.add_row(Text(mark, style=style), check.name, check.finding)
    format.console().print(line)


async def examine(database: str | None) -> AsyncIterator[DoctorCheck]:
    """All checks, in the order in which one depends on the other."""
    try:
        loaded = settings_for(database)
    except TelecineError as error:
        yield DoctorCheck("settings", "wrong", str(error))
        return
    yield _settings(loaded)
    yield examine_folder("scratch", loaded.settings.scratch)
    yield await _artifacts(loaded.settings)
    yield examine_privacy(loaded.settings)
    async for check in _database(loaded.settings):
        yield check
    from telecine.cli.commands.doctor_apps import examine_apps
    from telecine.world import World

    async for check in examine_apps(loaded.settings, World()):
        yield check


def _settings(loaded: Loaded) -> DoctorCheck:
    places = sorted({place for place in loaded.sources.values() if place != "default"})
    chosen = sum(place != "default" for place in loaded.sources.values())
    return DoctorCheck("settings", "ok", f"{chosen} set by {', '.join(places)}" if chosen else "all by default")


async def _artifacts(settings: Settings) -> DoctorCheck:
    """Can something be stored there, read back and deleted? A folder that is not there yet is not made for it."""
    place = settings.artifacts_url
    local = None if "://" in place and not place.startswith("file://") else Path(place.removeprefix("file://"))
    if local is not None and not is_folder(local):
        return examine_folder("artifacts", local)
    from telecine.wiring import open_artifacts, try_artifacts

    try:
        took = await try_artifacts(open_artifacts(settings))
    except TelecineError as error:
        return DoctorCheck("artifacts", "wrong", f"{settings.shown('artifacts_url')}: {error}")
    if local is None:
        said = f"{settings.shown('artifacts_url')}: a file was stored, read and deleted in {format.span(took)}"
        return DoctorCheck("artifacts", "ok", said)
    return examine_folder("artifacts", local)


async def _database(settings: Settings) -> AsyncIterator[DoctorCheck]:
    from telecine.wiring import open_engine
    from telecine.wiring.database import database_vitals

    if (not_yet := _not_yet(settings)) is not None:
        yield not_yet
        return
    address = settings.shown("database_url")
    try:
        async with open_engine(settings, create=False, checked=False) as parts:
            before = time.time()  # noqa: TID251 - the one place where this machine's clock is looked at
            signs = await database_vitals(parts)
            offset = signs.now - round((before + time.time()) / 2 * SECOND)  # noqa: TID251 - the same
            yield DoctorCheck("database", "ok", f"{signs.product}, {format.size(signs.bytes)}, {address}")
            yield _durability(signs)
            yield _clock(offset)
            yield _oldest(signs)
            if settings.queue_mode != "database":
                yield await _redis(parts)
            async for check in _inside(parts):
                yield check
    except TelecineError as error:
        yield DoctorCheck("database", "wrong", f"{error} ({address})")


def _not_yet(settings: Settings) -> DoctorCheck | None:
    """A SQLite file that is not there is no fault where it can be made: whoever brings work makes it."""
    from telecine.wiring import sqlite_path
    from telecine.wiring.database import is_sqlite

    path = sqlite_path(settings.database_url)
    if not is_sqlite(settings.database_url) or path.exists():
        return None
    place = examine_folder("database", path.parent)
    if place.verdict == "wrong":
        return place
    return DoctorCheck("database", "ok", f"there is none yet at {path}; the first job, or `telecine migrate`, makes it")


def _durability(signs: DatabaseVitals) -> DoctorCheck:
    sqlite = signs.product.startswith("SQLite")
    pages = f"journal_mode={signs.whole_pages}" if sqlite else f"full_page_writes={signs.whole_pages}"
    commit = f"synchronous={signs.synchronous}" if sqlite else f"synchronous_commit={signs.synchronous}"
    said = ", ".join([commit, pages] if sqlite else [commit, f"fsync={signs.fsync}", pages])
    if signs.is_durable:
        return DoctorCheck("durability", "ok", said)
    return DoctorCheck("durability", "wrong", f"{said}: a power cut may take what was acknowledged")


def _clock(offset: Millis) -> DoctorCheck:
    if abs(offset) <= MAX_OFFSET:
        return DoctorCheck("clock", "ok", f"the database's is {offset:+d} ms from this machine's")
    which = "ahead of" if offset > 0 else "behind"
    found = f"the database's is {format.span(abs(offset))} {which} this machine's; the database's counts"
    return DoctorCheck("clock", "warning", found)


def _oldest(signs: DatabaseVitals) -> DoctorCheck:
    if signs.oldest is None:
        return DoctorCheck("transactions", "ok", "none is open for long")
    found = f"the oldest is open for {format.span(signs.oldest)}"
    if signs.oldest > MAX_TRANSACTION:
        return DoctorCheck("transactions", "wrong", f"{found}: it holds up events and keeps dead rows alive")
    return DoctorCheck("transactions", "ok", found)


async def _inside(parts: Parts) -> AsyncIterator[DoctorCheck]:
    """What needs our tables."""
    from telecine.wiring import schema_of

    try:
        yield DoctorCheck("schema", "ok", f"version {await schema_of(parts)}")
    except TelecineError as error:
        yield DoctorCheck("schema", "wrong", str(error))
        return
    yield await _wakeups(parts)
    yield await _pulse(parts)
    yield await _audit(parts)


async def _redis(parts: Parts) -> DoctorCheck:
    """Is it there? Only `redis` needs it, and only to begin."""
    from telecine.wiring.bells import redis_of

    bell, settings = redis_of(parts.bell), parts.settings
    assert bell is not None
    place = settings.shown("redis_url")
    pulse = await bell.ping()
    if pulse is not None:
        return DoctorCheck("redis", "ok", f"Redis {pulse.version}, answers in {pulse.milliseconds:.1f} ms, {place}")
    silent = f"{place} does not answer ({bell.vitals().last_error})"
    if settings.queue_mode == "redis":
        return DoctorCheck("redis", "wrong", f"{silent}: nothing starts without it while queue_mode is `redis`")
    return DoctorCheck("redis", "warning", f"{silent}: the database carries the wake-ups until it does")


async def _wakeups(parts: Parts) -> DoctorCheck:
    from telecine.wiring import wakeups_work

    works = await wakeups_work(parts)
    if works is None:
        return DoctorCheck("wake-ups", "ok", "by looking at the file")
    if works:
        return DoctorCheck("wake-ups", "ok", "LISTEN hears NOTIFY")
    found = (
        f"LISTEN hears nothing (a transaction pooler?): workers look every {parts.settings.poll_seconds:g} s instead"
    )
    return DoctorCheck("wake-ups", "warning", found)


async def _pulse(parts: Parts) -> DoctorCheck:
    """Without a pulse nobody brings lost work back."""
    pulse = await parts.engine.queries.pulse()
    stats = await parts.engine.queries.stats()
    running, waiting = stats.tasks["running"], stats.tasks["ready"] + stats.tasks["parked"]
    fleet = f"{counted(stats.workers, 'worker')}, {running} running, {waiting} waiting"
    silent = pulse.now - pulse.swept_at
    if silent <= max(parts.engine.lease, PULSES * parts.settings.sweep_seconds * SECOND):
        return DoctorCheck("pulse", "ok", f"swept {format.span(silent)} ago; {fleet}")
    since = f"nobody has swept for {format.span(silent)}" if pulse.swept_at else "nobody has ever swept"
    if running:
        return DoctorCheck("pulse", "wrong", f"{since} while work is under way ({fleet}): start a worker")
    if waiting:
        return DoctorCheck("pulse", "warning", f"{since} while work waits ({fleet}): start a worker")
    return DoctorCheck("pulse", "ok", f"{since}, and nothing waits")


async def _audit(parts: Parts) -> DoctorCheck:
    """Compare everything that is stored twice, for as long as a person likes to wait."""
    from telecine.engine.maintenance.audit import AuditFinding, AuditPosition

    place: AuditPosition | None = AuditPosition()
    findings: list[AuditFinding] = []
    give_up = parts.world.mono() + AUDIT_SECONDS
    while place is not None and parts.world.mono() < give_up:
        found = await parts.engine.maintenance.inspect(place)
        findings += found.findings
        place = found.next
    if findings:
        more = f" (and {len(findings) - 1} more)" if len(findings) > 1 else ""
        return DoctorCheck("audit", "wrong", f"{findings[0].message}{more}")
    whole = "every" if place is None else f"in the first {AUDIT_SECONDS:g} s every"
    return DoctorCheck("audit", "ok", f"{whole} derived column that was looked at is right")
