"""How the child is heard, and what it may touch: lines out, acks in, one source, one folder.

worker ── {"order": …, "files": {"source": 7}} ──▶ child
       ◀── {"segment": …} {"progress": 120} … {"done": …} ──
       ── {"ack": ["360p", 4]} ──▶
"""

from __future__ import annotations

import json
import socket
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from telecine.media.child.source.reader import SourceReader
from telecine.media.orders import Init, Segment
from telecine.media.plain_json import to_plain

_BETWEEN_PROGRESS = 0.25  # seconds
_BETWEEN_SIGNS = 5.0  # seconds


class OrderRefused(Exception):
    """The order cannot be carried out, and we know why. `permanent`: to try again is useless."""

    def __init__(self, code: str, message: str, *, permanent: bool = False) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.permanent = permanent


class ParentGone(Exception):
    """Whoever gave the order has hung up."""


class JsonChannel(Protocol):
    """A way to say and to hear JSON objects."""

    def say(self, message: Mapping[str, Any]) -> None: ...

    def hear(self) -> dict[str, Any]:
        """The next object; waits for it. `ParentGone` if there will be none."""

    def close(self) -> None: ...


class SocketChannel:
    """One end of a socket pair; a JSON object per line, both ways."""

    def __init__(self, descriptor: int) -> None:
        self._socket = socket.socket(fileno=descriptor)
        self._socket.setblocking(True)
        self._socket.set_inheritable(False)
        self._lines = self._socket.makefile("rb")

    def say(self, message: Mapping[str, Any]) -> None:
        try:
            self._socket.sendall(json.dumps(message, separators=(",", ":")).encode() + b"\n")
        except OSError as error:
            raise ParentGone from error

    def hear(self) -> dict[str, Any]:
        try:
            line = self._lines.readline()
        except OSError as error:
            raise ParentGone from error
        if not line.endswith(b"\n"):
            raise ParentGone
        heard: dict[str, Any] = json.loads(line)
        return heard

    def close(self) -> None:
        """Hang up so that what we said last is read: with unheard words in it, a closing socket resets the other."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RD)
            while self._socket.recv(1 << 16):
                pass
            self._socket.shutdown(socket.SHUT_WR)


class StdoutChannel:
    """A person replays an order: lines go to the terminal, and each segment counts as recorded at once."""

    def __init__(self, out: BinaryIO | None = None) -> None:
        self._out = out or sys.stdout.buffer
        self._acks: list[dict[str, Any]] = []

    def say(self, message: Mapping[str, Any]) -> None:
        self._out.write(json.dumps(message).encode() + b"\n")
        self._out.flush()
        if segment := message.get("segment"):
            self._acks.append({"ack": [segment["rung"], segment["number"]]})

    def hear(self) -> dict[str, Any]:
        if not self._acks:
            raise ParentGone
        return self._acks.pop(0)

    def close(self) -> None:
        self._out.flush()


class ChildSession:
    """What an operation gets besides its order."""

    def __init__(self, line: JsonChannel, *, source: SourceReader | None, scratch: Path) -> None:
        self._line = line
        self._source = source
        self._unrecorded: dict[str, set[int]] = {}
        self._frames_said: float = 0
        self._frames = 0
        self._toward_next = 0
        self._next_progress = 0.0
        self._next_sign = time.monotonic() + _BETWEEN_SIGNS
        self.scratch = scratch

    @property
    def source(self) -> SourceReader:
        """The file to work on: `read`, `seek`, `tell`."""
        if self._source is None:
            raise OrderRefused("bad_order", "this order needs a source, and none was given", permanent=True)
        return self._source

    @property
    def size(self) -> int:
        """Bytes of the source."""
        return self.source.size

    def say(self, **message: Any) -> None:
        self._line.say(to_plain(message))

    def init(self, init: Init) -> None:
        self.say(init=init)

    def may_close(self, rung: str) -> None:
        """Wait until all that was said of this rung is recorded.

        So at most one closed segment per rung is unrecorded at any moment: a crash costs no more.
        """
        while self._unrecorded.get(rung):
            self._hear_ack()

    def segment(self, segment: Segment) -> None:
        """Say it. Whoever closes the next one asks first whether it may."""
        self._check_source()
        self._unrecorded.setdefault(segment.rung, set()).add(segment.number)
        self.say(segment=segment)

    def progress(self, frames: int) -> None:
        """How many frames are done. Said four times a second at most."""
        if frames != self._frames:
            self._frames, self._toward_next = frames, 0
        if (now := time.monotonic()) >= self._next_progress:
            self._next_progress = now + _BETWEEN_PROGRESS
            self._next_sign = now + _BETWEEN_SIGNS
            self._say_progress(self._frames)

    def alive(self) -> None:
        """We are at work, though no frame is done: less is missing of the next one. Said every few seconds at most.

        The number must grow: whoever watches takes one that stands still for a hang.
        """
        self._toward_next += 1
        if (now := time.monotonic()) >= self._next_sign:
            self._next_sign = now + _BETWEEN_SIGNS
            self._say_progress(self._frames + 1 - 1 / (1 + self._toward_next))

    def note(self, text: str) -> None:
        """Something for the attempt's log."""
        self.say(note=text)

    def rung_failed(self, rung: str, code: str, message: str) -> None:
        """This rung will not come; the others go on."""
        self.say(rung_failed={"rung": rung, "code": code, "message": message})

    def done(self, result: Mapping[str, Any]) -> None:
        """The last word. It waits until everything that was said is recorded."""
        self._check_source()
        while any(self._unrecorded.values()):
            self._hear_ack()
        self._say_progress(self._frames)
        self.say(done=result)

    def _check_source(self) -> None:
        if self._source is not None:
            self._source.check()

    def _say_progress(self, frames: float) -> None:
        if frames != self._frames_said:
            self._frames_said = frames
            self.say(progress=frames)

    def _hear_ack(self) -> None:
        ack = self._line.hear().get("ack")
        if ack is not None:  # what a newer worker may say besides is not for us
            rung, number = ack
            self._unrecorded.get(rung, set()).discard(number)
