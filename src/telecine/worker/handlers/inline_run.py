"""A handler on the worker's own loop, whose first step is taken at once.

A handler that never waits is over after that step and needs no task of its own. One that waits goes on in the task in
which it began, so that `asyncio.current_task()` is the same from its first line to its last.
"""

from __future__ import annotations

from asyncio import Future
from collections.abc import Callable, Coroutine, Generator
from contextvars import copy_context
from typing import Any


class EagerCoroutine:
    """A coroutine in a context of its own. When it is over, `error` or `result` says how."""

    __slots__ = ("_context", "_coroutine", "_waits_for", "error", "result")

    def __init__(self, coroutine: Coroutine[Any, Any, object]) -> None:
        self._coroutine = coroutine
        self._context = copy_context()
        self._waits_for: Future[Any] | None = None
        self.result: object = None
        self.error: BaseException | None = None

    def begin(self) -> bool:
        """Take the first step; is it over?"""
        return self._step(self._coroutine.send, None)

    def __await__(self) -> Generator[Any, Any, None]:
        """Go on to the end, in the task that awaits this. Whatever is thrown at the task reaches the handler."""
        over = False
        while not over:
            try:
                sent = yield self._waits_for
            except GeneratorExit:
                self._coroutine.close()
                raise
            except BaseException as error:
                over = self._step(self._coroutine.throw, error)
            else:
                over = self._step(self._coroutine.send, sent)

    def _step(self, resume: Callable[[Any], Any], value: object) -> bool:
        try:
            self._waits_for = self._context.run(resume, value)
        except StopIteration as end:
            self.result = end.value
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # a cancellation, too, is how it ended
            self.error = error
        else:
            return False
        return True
