"""Talk to a program in the peers' environment: one line of JSON out, one line of JSON back."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from benchmarks.engine.environment import REPOSITORY

GOODBYE_S = 60.0
_TAIL_CHARACTERS = 3_000


class Silent(RuntimeError):
    """The program ended, or said nothing in time; the message carries its last words."""


class Desk:
    """A running program that answers requests; leaving the context ends it."""

    def __init__(self, python: Path, module: str, *arguments: str) -> None:
        self._name = " ".join([module.rpartition(".")[2], *arguments[:1]])
        # It lives as long as the desk does; __exit__ closes it.
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115
        self._program = subprocess.Popen(
            [python, "-m", module, *arguments],
            cwd=REPOSITORY,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            # Its own group: whatever it started can be ended with it, and nothing else.
            start_new_session=True,
        )

    def ask(self, *, within: float, **request: object) -> dict[str, Any]:
        """Send one request and return the answer."""
        assert self._program.stdin
        try:
            self._program.stdin.write(json.dumps(request) + "\n")
            self._program.stdin.flush()
        except BrokenPipeError:
            raise Silent(self._last_words("ended")) from None
        return self.hear(within=within)

    def hear(self, *, within: float) -> dict[str, Any]:
        """Return the next line that the program says."""
        assert self._program.stdout
        # One answer per question, so nothing can sit unread in the buffer above the pipe.
        readable, _, _ = select.select([self._program.stdout], [], [], within)
        if not readable:
            raise Silent(self._last_words(f"said nothing for {within:.0f} s"))
        line = self._program.stdout.readline()
        if not line:
            raise Silent(self._last_words("ended"))
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _last_words(self, what: str) -> str:
        self._errors.seek(0)
        return f"{self._name} {what}\n{self._errors.read()[-_TAIL_CHARACTERS:]}"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._program.stdin
        assert self._program.stdout
        try:
            with suppress(BrokenPipeError):
                self._program.stdin.close()
            self._program.wait(timeout=GOODBYE_S)
        except subprocess.TimeoutExpired:
            print(f"{self._name} did not end by itself", file=sys.stderr)
        finally:
            self._end_group()
            self._program.stdout.close()
            self._errors.close()

    def _end_group(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._program.pid, signal.SIGKILL)
        self._program.wait()
