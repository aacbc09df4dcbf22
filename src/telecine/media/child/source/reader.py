"""The source as FFmpeg reads it: no path, no network. Bytes come from an inherited descriptor, or are asked for."""

from __future__ import annotations

import io
import os
import socket
import struct
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

BLOCK = 1 << 20
_KEPT_BLOCKS = 8  # FFmpeg reads a file at a few places in turn: pictures, sound, the index at its end
_REQUEST = struct.Struct(">QQ")
_REPLY = struct.Struct(">Q")


class SourceFailed(OSError):
    """Bytes that the source is said to have did not come."""


class ByteSource(Protocol):
    """Where bytes come from."""

    size: int

    def at(self, start: int, length: int) -> bytes:
        """Up to `length` bytes; none only at the end."""


class FileSource:
    """A file that the worker has opened for us. Never moves its offset: others may share it."""

    def __init__(self, descriptor: int) -> None:
        os.set_inheritable(descriptor, False)
        self._descriptor = descriptor
        self.size = os.fstat(descriptor).st_size

    def at(self, start: int, length: int) -> bytes:
        return os.pread(self._descriptor, length, start)


class RangeSource:
    """Ranges that the worker brings: a request is (start, length), the reply its length and the bytes."""

    def __init__(self, descriptor: int, size: int) -> None:
        self._socket = socket.socket(fileno=descriptor)
        self._socket.setblocking(True)
        self._socket.set_inheritable(False)
        self._replies = self._socket.makefile("rb", buffering=BLOCK)
        self._blocks: OrderedDict[int, bytes] = OrderedDict()
        self.size = size

    def at(self, start: int, length: int) -> bytes:
        number, offset = divmod(start, BLOCK)
        return self._block(number)[offset : offset + length]

    def close(self) -> None:
        self._replies.close()
        self._socket.close()

    def _block(self, number: int) -> bytes:
        if number not in self._blocks:
            self._blocks[number] = self._ask(number * BLOCK, min(BLOCK, self.size - number * BLOCK))
            if len(self._blocks) > _KEPT_BLOCKS:
                self._blocks.popitem(last=False)
        self._blocks.move_to_end(number)
        return self._blocks[number]

    def _ask(self, start: int, length: int) -> bytes:
        try:
            self._socket.sendall(_REQUEST.pack(start, length))
        except OSError as error:
            raise SourceFailed("whoever brings the source has hung up") from error
        (coming,) = _REPLY.unpack(self._exactly(_REPLY.size))
        if coming != length:
            raise SourceFailed(f"the source gave {coming} of {length} bytes at {start}")
        return self._exactly(coming)

    def _exactly(self, length: int) -> bytes:
        try:
            read: bytes = self._replies.read(length)
        except OSError as error:  # who hangs up with a request unread resets the line
            raise SourceFailed("whoever brings the source has hung up") from error
        if len(read) != length:
            raise SourceFailed("whoever brings the source has hung up")
        return read


class SourceReader:
    """A seekable binary reader, as FFmpeg wants it."""

    def __init__(self, source: ByteSource) -> None:
        self._source = source
        self._at = 0
        self.size = source.size
        self.failure: SourceFailed | None = None  # FFmpeg may take a failed read for the end of the file
        self._watcher: Callable[[int], None] | None = None

    def read(self, length: int = -1) -> bytes:
        left = max(0, self.size - self._at)
        wanted = left if length < 0 else min(length, left)
        if wanted == 0 or self.failure is not None:  # it was raised once; whoever asks on gets an end
            return b""
        got = self._got(wanted)
        self._at += len(got)
        if self._watcher is not None:
            self._watcher(self._at)
        return got

    @contextmanager
    def watched(self, watcher: Callable[[int], None]) -> Iterator[None]:
        """Meanwhile, tell after each read how far it has come."""
        self._watcher = watcher
        try:
            yield
        finally:
            self._watcher = None

    def check(self) -> None:
        """Raise what went wrong with the source, if anything did: nothing made since then is to be trusted."""
        if self.failure is not None:
            raise self.failure

    def _got(self, wanted: int) -> bytes:
        try:
            got = self._source.at(self._at, wanted)
            if not got:
                raise SourceFailed(f"the source ends at {self._at}, but it had {self.size} bytes")
        except SourceFailed as error:
            self.failure = error
            raise
        except OSError as error:
            self.failure = SourceFailed(f"the source cannot be read: {os.strerror(error.errno or 0)}")
            raise self.failure from error
        return got

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self.size}[whence & 3]  # FFmpeg adds flags
        self._at = max(0, start + offset)
        return self._at

    def tell(self) -> int:
        return self._at

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True
