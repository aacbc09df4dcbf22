"""What a worker says about itself: who it is, and how much it has done. Plain values, as in `facts`."""

from __future__ import annotations

from dataclasses import dataclass, field

from telecine.facts import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class Registration:
    """One incarnation of a worker process: a restart is another worker with the same name."""

    name: str
    hostname: str
    lanes: tuple[str, ...]
    slots: int = 1
    kind: str = "local"
    release: str = ""
    labels: tuple[str, ...] = ()
    capabilities: dict[str, Json] = field(default_factory=dict)
    metadata: dict[str, Json] = field(default_factory=dict)
    boot_id: str | None = None
    pid_space: str | None = None
    pid: int | None = None
    pid_started: int | None = None


@dataclass(frozen=True, slots=True)
class Totals:
    """What a worker has done since it started, as it counts itself."""

    load: int = 0
    done: int = 0
    failed: int = 0


NO_TOTALS = Totals()
