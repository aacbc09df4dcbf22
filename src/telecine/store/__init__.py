"""The seam to the database: one method that runs a transaction.

A transaction is written once, as a generator that yields what it wants of the database and gets rows
back. It knows no driver: PostgreSQL drives it with awaits on a connection, SQLite drives it in
one go inside its writer thread, a test drives two of them statement by statement in every order.

    def rename(job_id: int, name: str) -> Steps[bool]:
        rows = yield Ask("subject_get", {"kind": "picture", "id": name})
        if not rows:
            return False
        yield Write("job_rename", {"jobs": [{"id": job_id, "name": name}]})
        return True

    await store.run(lambda: rename(7, "seven"))

Statements live in `sql/<dialect>/*.sql` under the same names with the same parameters. A transaction
may be run again from the start when the database asks for it, so it must be a function of its
arguments and of the rows that it reads.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

Row = Mapping[str, Any]
Rows = Sequence[Row]


@dataclass(frozen=True, slots=True)
class Ask:
    """One named statement; answers with its rows.

    `whole` says that this statement is the entire transaction, which spares PostgreSQL the round
    trips of BEGIN and COMMIT. `rings`: a whole one that creates work; PostgreSQL has a second statement
    `name_ring` that also notifies `channel` with `payload`, in the same commit.
    """

    name: str
    params: Mapping[str, Any]
    whole: bool = False
    rings: bool = False


@dataclass(frozen=True, slots=True)
class Columns:
    """Rows by column, for whoever has thousands of them: each list has one value per row."""

    lists: Mapping[str, Sequence[Any]]


@dataclass(frozen=True, slots=True)
class Write:
    """Many rows into one or more tables at once, by group.

    PostgreSQL has one statement of this name and takes each column of each group as an array
    parameter `group_column`; SQLite has a statement (or a short script) `name_group` for each group, run
    for every row. `common` are parameters that all rows share.
    """

    name: str
    groups: Mapping[str, Sequence[Mapping[str, Any]] | Columns]
    common: Mapping[str, Any] = field(default_factory=dict)
    whole: bool = False


@dataclass(frozen=True, slots=True)
class Reserve:
    """Fresh ids of jobs (tasks get theirs as they are written); an id that is not used leaves a gap, no more."""

    table: str
    count: int


Step = Ask | Write | Reserve
T = TypeVar("T")
Steps = Generator[Step, Any, T]


class Store(Protocol):
    """A database that can run transactions. `now` replaces its clock in tests and simulation."""

    now: int | None

    async def run(self, make: Callable[[], Steps[T]]) -> T:
        """Run the transaction that `make` describes; again from the start on a deadlock or the like."""

    async def read(self, make: Callable[[], Steps[T]]) -> T:
        """Run statements that only read."""

    async def close(self) -> None: ...


class Doorbell(Protocol):
    """A bell that a commit can ring by itself, where the database can: its ring comes a round trip earlier."""

    def word(self) -> tuple[str, str] | None:
        """The channel and what to say there with the next commit; None: nothing, somebody rings afterwards."""

    def said(self) -> None:
        """It went out: the ring that follows would only repeat it."""


async def ask(store: Store, name: str, params: Mapping[str, Any]) -> Rows:
    """One statement that is a transaction of its own."""

    def steps() -> Steps[Rows]:
        rows: Rows = yield Ask(name, params, whole=True)
        return rows

    return await store.run(steps)
