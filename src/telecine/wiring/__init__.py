"""Settings -> running parts. The only place that names backends."""

from __future__ import annotations

import asyncio
import logging
import os
import sqlite3
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from telecine import worker as working
from telecine.apps import FlowContext
from telecine.artifacts import Artifacts, S3Access, open_bucket
from telecine.dispatch import Bell
from telecine.dispatch.task_end import DUTY_SECONDS, end
from telecine.engine import Engine
from telecine.engine.maintenance.retention import Ages
from telecine.errors import ArtifactDamaged, BadSpec, SchemaMissing, Unreachable
from telecine.facts import DAY, SECOND, Millis
from telecine.flow import Flow
from telecine.locks import Locks
from telecine.plural import counted
from telecine.private_files import make_private_folder
from telecine.settings import Settings
from telecine.store import Store
from telecine.store.migrate import check, newest
from telecine.store.open import Migratable, bring_up_to_date, dialect_of, open_store
from telecine.store.sqlite_errors import translated
from telecine.wiring import apps, bells
from telecine.wiring.patience import settle_schema, wait_for
from telecine.world import World

if TYPE_CHECKING:
    from telecine.observe.tracing import Tracing
    from telecine.worker import FlowSource, Worker

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Parts:
    """What is open: the settings that it was made from, the database, the bell, the engine on both.

    `news` is what to wait on before the next look at events: with Redis it rings whenever some were written, by
    any process; else it is the bell, which rings when lanes got work.
    """

    settings: Settings
    store: Store
    bell: Bell
    engine: Engine
    world: World
    news: Bell | None = None
    tracing: Tracing | None = None


@asynccontextmanager
async def open_engine(
    settings: Settings,
    *,
    world: World | None = None,
    create: bool = True,
    checked: bool = True,
    is_patient: bool = False,
) -> AsyncIterator[Parts]:
    """Open the database and an engine on it; close both afterwards. `is_patient`: wait for a PostgreSQL that is away.

    An embedded SQLite database is migrated on the way, and made if there is none (with `create`); PostgreSQL, which
    others share, is refused while its schema is not the one of this release.
    """
    world = world or World()
    store = _open(settings, world, create)
    try:
        if checked:
            await settle_schema(store, settings.database_url, world, is_patient=is_patient)
        bell = await bells.hang_bell(settings, store, world, required=checked)
        try:
            yield _parts(settings, store, bell, world)
        finally:
            await bell.close()
    finally:
        await store.close()


def _parts(settings: Settings, store: Store, bell: Bell, world: World) -> Parts:
    lease = round(settings.lease_seconds * SECOND)
    redis = bells.redis_of(bell)
    if redis is None:
        return Parts(settings, store, bell, Engine(store, bell=bell, world=world, lease=lease), world, bell)
    engine = Engine(store, bell=bell, news=redis.news, hints=redis.hints, world=world, lease=lease)
    return Parts(settings, store, bell, engine, world, redis.news)


def installed_flows(
    settings: Settings, *, shared: bool | None = None, gathered: apps.Gathered | None = None
) -> list[Flow]:
    """The flows of all installed apps. `shared`: workers share no disk; None: as the settings say."""
    is_shared = open_artifacts(settings).folder is None if shared is None else shared

    def context(section: Any) -> FlowContext:
        open_one = lambda place: open_bucket(place, s3_access(settings))  # noqa: E731 - a closure for one field
        return FlowContext(settings=settings, section=section, shared=is_shared, open_bucket=open_one)

    return apps.flows_of(context, settings, gathered)


def open_artifacts(settings: Settings) -> Artifacts:
    """Where files that tasks keep are stored."""
    return Artifacts(settings.artifacts_url, s3_access(settings))


async def try_artifacts(artifacts: Artifacts, world: World | None = None) -> Millis:
    """Store a small file, read it back and delete it; how long that took. `ArtifactError` says what went wrong."""
    world = world or World()
    began, key = world.mono(), f".telecine-doctor/{world.new_id()}"
    with TemporaryDirectory() as folder:
        path = Path(folder) / "mark"
        path.write_bytes(key.encode())
        stored = await artifacts.put(key, path)
    try:
        if (found := await artifacts.digest(key)) != stored:
            raise ArtifactDamaged(f"{key} was stored with {stored.size} bytes and read back with {found.size}")
    finally:
        await artifacts.delete(key)
    return round((world.mono() - began) * SECOND)


def s3_access(settings: Settings) -> S3Access:
    """How a bucket is reached."""
    return S3Access(
        endpoint=settings.s3_endpoint,
        region=settings.s3_region,
        access_key_id=settings.s3_access_key_id,
        secret_access_key=settings.s3_secret_access_key,
    )


def make_worker(parts: Parts, flows: Iterable[Flow | FlowSource], labels: Sequence[str] = ()) -> Worker:
    """A worker on this engine; its beats have a connection of their own, which nothing else can keep waiting."""
    from telecine.worker.local_engine import LocalEngine  # noqa: PLC0415 - for workers only

    settings = parts.settings
    options = working.WorkerOptions(
        name=settings.worker_name,
        scratch=settings.scratch,
        slots=settings.slots,
        labels=tuple(dict.fromkeys((*settings.labels, *labels))),
        artifacts=settings.artifacts_url,
        s3=s3_access(settings),
        media_nice=settings.media_nice,
        grace=settings.drain_grace_seconds,
        poll=settings.poll_seconds,
        beat=settings.beat_seconds,
        sweep=settings.sweep_seconds,
        lease=parts.engine.lease,
        observer=parts.tracing,
    )

    @asynccontextmanager
    async def open_beat_engine() -> AsyncIterator[LocalEngine]:
        store = _open(settings, parts.world, create=False, size=1)
        try:
            yield LocalEngine(Engine(store, world=parts.world, lease=parts.engine.lease))
        finally:
            await store.close()

    engine = LocalEngine(parts.engine)
    return working.Worker(engine, parts.bell, flows, options, parts.world, open_beat_engine)


async def run_worker(settings: Settings, sources: Sequence[FlowSource], *, world: World | None = None) -> None:
    """Register the flows, then work until SIGTERM or SIGINT; a second signal ends at once."""
    from telecine.wiring.observers import traced  # noqa: PLC0415 - it imports us

    make_scratch(settings.scratch)
    async with open_engine(settings, world=world, is_patient=True) as plain, traced(plain, "worker") as parts:
        own = installed_flows(settings)
        flows = own + [flow for source in sources for flow in working.load_flows(source)]
        for flow in flows:
            await wait_for(partial(parts.engine.jobs.register, flow), parts.world)
        worker = make_worker(parts, [*own, *sources], await apps.machine_labels(parts.world))
        worker.obey_signals()
        served = ", ".join(flow.name for flow in flows)
        place = settings.shown("database_url")
        async with housekeeping(parts):
            slots = counted(settings.slots, "slot")
            log.info("worker %s serves %s with %s on %s", settings.worker_name, served, slots, place)
            await worker.run()
        log.info("worker %s has left", settings.worker_name)


def make_scratch(folder: Path) -> None:
    try:
        make_private_folder(folder)
    except OSError as error:
        raise BadSpec(f"there can be no scratch folder at {folder}: {error.strerror}") from error


@asynccontextmanager
async def housekeeping(parts: Parts, *, sweep: bool = False) -> AsyncIterator[None]:
    """Do the fleet's duties while the body runs: audit and retention, and the sweep where no worker does it."""
    settings = parts.settings
    keeper = working.Housekeeper(
        parts.engine,
        make_locks(parts),
        name=f"{settings.worker_name} ({os.getpid()})",
        artifacts=open_artifacts(settings),
        tidy=apps.cleanup_of(parts),
        ages=Ages(jobs=round(settings.retention_days * DAY), versions=round(settings.version_days * DAY)),
    )
    duties = [asyncio.create_task(keeper.run(), name="housekeeping")]
    if sweep:
        period = round(settings.sweep_seconds * SECOND)
        duties.append(asyncio.create_task(working.sweep_on(parts.engine, period), name="sweep"))
    try:
        yield
    finally:
        await end(*duties, again=DUTY_SECONDS)


def make_locks(parts: Parts) -> Locks:
    return bells.locks_on(parts.bell, parts.store, parts.world)


def _open(settings: Settings, world: World, create: bool, size: int | None = None) -> Store:
    url = settings.database_url
    if dialect_of(url) == "sqlite" and not create and not sqlite_path(url).exists():
        raise SchemaMissing(f"there is no database at {sqlite_path(url)}: `telecine migrate` makes it")
    try:
        return open_store(url, dice=world.dice, size=size or settings.pool_size)
    except sqlite3.Error as error:
        raise Unreachable(f"the database cannot be opened: {translated(error, sqlite_path(url))}") from error
    except OSError as error:
        raise Unreachable(f"{sqlite_path(url)} cannot be opened: {error}") from error


def sqlite_path(url: str) -> Path:
    return Path(url.removeprefix("sqlite:///"))


async def schema_of(parts: Parts) -> int:
    """The version of the schema; refused if it is not this release's."""
    dialect = dialect_of(parts.settings.database_url)
    assert isinstance(parts.store, Migratable)
    check(dialect, await parts.store.schema_version())
    return newest(dialect)


async def wakeups_work(parts: Parts) -> bool | None:
    """Does a ring reach other processes by way of the database? None where none has to travel."""
    return await bells.wakeups_work(parts.bell)


async def migrate_database(settings: Settings) -> tuple[int | None, int]:
    """Bring the schema up to date; the version before and after."""
    url = settings.database_url
    store = _open(settings, World(), create=True)
    try:
        assert isinstance(store, Migratable)
        before = await store.schema_version()
        await bring_up_to_date(store, url)
        return before, newest(dialect_of(url))
    finally:
        await store.close()
