"""What apps say about their routes in the description of the API."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiNotes:
    """What an app adds to the description of the API: examples by model, descriptions of tags by name, and the
    beginnings of paths that are open to all and show more to callers with a key."""

    examples: Mapping[str, Any] = field(default_factory=dict)
    tags: Mapping[str, str] = field(default_factory=dict)
    optional_key: tuple[str, ...] = ()

    def joined(self, other: ApiNotes) -> ApiNotes:
        return ApiNotes(
            examples={**other.examples, **self.examples},
            tags={**other.tags, **self.tags},
            optional_key=(*self.optional_key, *other.optional_key),
        )
