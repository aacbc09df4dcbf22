"""How often the database is asked: every time is a round trip."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from telecine.store import Steps, Store


@contextmanager
def counted_reads(store: Store) -> Iterator[list[Any]]:
    """The answers to all that was read meanwhile, by the store itself."""
    found, read = list[Any](), store.read

    async def noted(make: Callable[[], Steps[Any]]) -> Any:
        answer = await read(make)
        found.append(answer)
        return answer

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "read", noted)
        yield found
