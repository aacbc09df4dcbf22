"""How a user declares work: a flow is stages, a stage is a handler with needs and a policy.

flow = Flow("greet")

@flow.stage(phase="planning")
def plan(bench):
    return Done(plan={"shout": ["Ada", "Grace"]})

@flow.stage(needs=["plan"], fan_out=True)
def shout(bench):
    return Done(result=bench.input.upper())
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, Literal, Protocol, TypeVar

from telecine.errors import BadFlow
from telecine.facts import (
    JUST_DONE,
    MINUTE,
    PHASES,
    SECOND,
    Brief,
    Done,
    Failed,
    Json,
    KeptArtifact,
    Outcome,
    Policy,
    Status,
    StoredArtifact,
)
from telecine.graph import Graph, StageSpec, build

Run = Literal["process", "thread", "inline"]
Reader = Callable[[int, int], Awaitable[bytes]]
CHILD = "telecine.media.child"


class MediaChild(Protocol):
    """A media child at work. It talks in JSON objects, of any size, and hears them."""

    def __aiter__(self) -> AsyncIterator[dict[str, Json]]:
        """What it says, in order; `{"done": result}` comes last. `ChildFailed` if that never comes."""

    async def say(self, message: Json) -> None:
        """One object to it; waits while it does not listen. `ChildFailed` once it is gone."""


class LentSource(Protocol):
    """The source of a job on the disk of the server, for a worker that has no such disk."""

    async def stat(self) -> tuple[int, ...]:
        """Its size, and what else changes when somebody writes to it."""

    async def digest(self, told: Callable[[float, float], None]) -> str:
        """Its SHA-256, which the server computes; `told` hears how far that is."""

    async def read(self, start: int, length: int) -> bytes:
        """So many of its bytes, fewer where it ends."""


class Bench(Protocol):
    """What a handler sees: its input, a scratch folder, and a way to speak while it works.

    `checkpoint` and `keep` are fenced: they raise `HandlerStopped` once the lease is gone. Async
    handlers await them; in a sync handler they have happened when they return.
    """

    job_id: int
    flow: str
    stage: str
    position: int
    attempt: int
    max_attempts: int
    spec: Json
    input: Json
    subject: tuple[str, str] | None
    brief: Brief
    slots: int

    @property
    def scratch(self) -> Path:
        """A folder of this attempt's own, removed when it has ended."""

    def progress(self, done: float, of: float = 1.0, note: str | None = None) -> None:
        """Say how far the work is; it travels with the next beat and feeds the stall watch."""

    def log(self, message: str, level: str = "info", **data: Json) -> None: ...

    def step(self, command: str, *, exit_code: int | None = None, tail: str = "", **data: Json) -> None:
        """Record one external command of this attempt: what was run and how it ended."""

    def checkpoint(self, name: str, value: Json) -> Awaitable[None]:
        """Record `value` under `name` for this and any later attempt."""

    def saved(self, name: str, default: Json = None) -> Json:
        """What `checkpoint` recorded under `name`, by this or an earlier attempt."""

    def keep(self, name: str, path: Path, *, sha256: str | None = None, **facts: Json) -> Awaitable[KeptArtifact]:
        """Store the file as an artifact: whole, hashed, immutable, adopted by later attempts.

        `sha256`: its hash, if it is known. A worker without a database then leaves the check to the server."""

    def kept(self, name: str, *, check: bool = False) -> Awaitable[KeptArtifact | None]:
        """What this task kept under `name`, if its bytes are still there in full size; `check` hashes them, too."""

    def artifacts(self, *stages: str) -> Awaitable[list[StoredArtifact]]:
        """All that these stages of this job have kept so far, at every position; without names, all stages."""

    def published(self) -> Awaitable[list[StoredArtifact]]:
        """All artifacts of the subject's current version; none if nothing was published."""

    def fetch(self, kept: KeptArtifact) -> Awaitable[Path]:
        """The bytes as a file, checked by size and SHA-256. Only read it: it may be the artifact itself."""

    def read(self, kept: KeptArtifact, start: int = 0, length: int | None = None) -> Awaitable[bytes]:
        """Some of the bytes. Nothing is hashed."""

    def locate(self, kept: KeptArtifact) -> Path | None:
        """Where the artifact lies, if artifacts are a local folder. Only read it."""

    def child(
        self,
        order: Json,
        *,
        files: Mapping[str, int] | None = None,
        source: Reader | None = None,
        module: str = CHILD,
    ) -> AbstractAsyncContextManager[MediaChild]:
        """Run a media child on `order`; for inline handlers only. It is gone when the context has ended.

        `files` names descriptors that it inherits; bytes that it asks for over the file `ask` come from `source`.
        """

    def lend(self) -> LentSource | None:
        """The job's source, if it must be read through the server; None: its path is one of this machine."""

    @property
    def stopping(self) -> bool:
        """True once the job was cancelled or the lease is gone: return soon."""


Handler = Callable[[Any], Outcome | Awaitable[Outcome | None] | None]
H = TypeVar("H", bound=Handler)


class Flow:
    """A named graph of stages and the handlers that do their work."""

    def __init__(self, name: str, *, version: int = 1) -> None:
        self.name = name
        self.version = version
        self.handlers: dict[str, Handler] = {}
        self.runs: dict[str, Run] = {}
        self._stages: list[StageSpec] = []
        self._graph: Graph | None = None

    def stage(  # the options of a stage, each a keyword with a default
        self,
        name: str | None = None,
        *,
        needs: Iterable[str] = (),
        phase: str = "processing",
        version: int = 1,
        title: str = "",
        labels: Iterable[str] = (),
        cost: float = 1.0,
        priority_offset: int = 0,
        optional: bool = False,
        fan_out: bool = False,
        weight: float = 1.0,
        attempts: int = 3,
        backoff: float = 10.0,
        backoff_cap: float = MINUTE * 5 / SECOND,
        jitter: float = 0.2,
        permanent: Iterable[str] = (),
        stall: float | None = None,
        limit: float | None = None,
        run: Run = "process",
    ) -> Callable[[H], H]:
        """Declare a stage; times are in seconds. `run` says where the handler lives.

        `process` (default): a child process of its own, which can be killed. `thread` and `inline`
        (async only) run inside the worker: quicker to start, for trusted code that yields.
        """
        if phase not in PHASES:
            raise BadFlow(f"phase {phase!r} is unknown; phases are {', '.join(PHASES)}")
        policy = Policy(
            max_attempts=attempts,
            base=round(backoff * SECOND),
            cap=round(backoff_cap * SECOND),
            jitter=jitter,
            permanent=tuple(permanent),
            stall=None if stall is None else round(stall * SECOND),
            limit=None if limit is None else round(limit * SECOND),
        )

        def declare(handler: H) -> H:
            called = name or str(getattr(handler, "__name__", "stage"))
            if run == "inline" and not inspect.iscoroutinefunction(handler):
                raise BadFlow(f"stage {called!r} runs inline, so its handler must be async")
            spec = StageSpec(
                name=called,
                needs=tuple(needs),
                phase=Status(phase),
                version=version,
                title=title or called.replace("_", " ").capitalize(),
                labels=tuple(labels),
                cost=round(cost * SECOND),
                priority_offset=priority_offset,
                optional=optional,
                fan_out=fan_out,
                weight=weight,
                policy=policy,
            )
            self._stages.append(spec)
            self.handlers[called] = handler
            self.runs[called] = run
            self._graph = None
            return handler

        return declare

    @property
    def graph(self) -> Graph:
        """The checked graph; raises `BadFlow` with one sentence if it cannot work."""
        if self._graph is None:
            self._graph = build(self.name, self.version, self._stages)
        return self._graph


def outcome_of(returned: object) -> Outcome:
    """Turn what a handler returned into an outcome; nothing at all means done."""
    match returned:
        case None:
            return JUST_DONE
        case Done() | Failed():
            return returned
        case _:
            return Failed(
                f"the handler returned {type(returned).__name__}; return Done(...) or Failed(...)",
                code="bad_return",
                permanent=True,
            )
