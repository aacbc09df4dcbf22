"""A source that is read several times in one process. Where opening it means to read all of it, it is opened once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Self

from av.container import InputContainer

from telecine.media.child.protocol import ChildSession
from telecine.media.child.source import open_source
from telecine.media.orders import Remux


class SourcePasses:
    """The source of a remux, as often as it is needed."""

    def __init__(self, order: Remux, talk: ChildSession) -> None:
        self.order = order
        self.talk = talk
        self.headers: dict[int, bytes] = {}  # of streams whose container has lost it
        self._known: InputContainer | None = None

    @contextmanager
    def opened(self) -> Iterator[InputContainer]:
        """The source at its first byte. One pass must have ended before the next one begins."""
        if not self.order.thorough:
            with self._open() as container:
                for index, header in self.headers.items():
                    open_source.stream_of(container, index).codec_context.extradata = header
                yield container
            return
        if self._known is None:
            self._known = self._open()
        else:
            open_source.rewind(self._known)
        yield self._known

    def _open(self) -> InputContainer:
        return open_source.open_source(self.talk, self.order.format, thorough=self.order.thorough, fflags="+genpts")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._known is not None:
            self._known.close()
