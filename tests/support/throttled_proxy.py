"""A slow line to a server: all connections together carry so many bytes in a second, there and back."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from urllib.parse import urlsplit

from tests.support.s3 import Bucket

PIECE = 64 << 10


class Line:
    """One direction; whatever goes over it also takes `delay` seconds."""

    def __init__(self, rate: float, delay: float) -> None:
        self._rate = rate
        self._delay = delay
        self._free_at = 0.0

    async def carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        loop = asyncio.get_running_loop()
        try:
            while data := await reader.read(PIECE):
                self._free_at = max(self._free_at, loop.time()) + len(data) / self._rate
                await asyncio.sleep(self._free_at - loop.time() + self._delay)
                writer.write(data)
                await writer.drain()
            writer.close()
        except ConnectionError:
            writer.transport.abort()
        except asyncio.CancelledError:
            writer.transport.abort()
            raise


@contextmanager
def slow_line(bucket: Bucket, *, up: float, down: float, delay: float = 0.0) -> Iterator[Bucket]:
    """The same bucket, at the end of a slow line; in a thread of its own."""
    place = urlsplit(bucket.endpoint)
    loop = asyncio.new_event_loop()
    there, here = Line(up, delay), Line(down, 0.0)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection(place.hostname, place.port)
        with suppress(asyncio.CancelledError):  # the line was cut
            await asyncio.gather(there.carry(reader, far_writer), here.carry(far_reader, writer))

    server = loop.run_until_complete(asyncio.start_server(serve, "127.0.0.1", 0))
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        yield replace(bucket, endpoint=f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        server.close()
        loop.run_until_complete(_end(loop))
        loop.close()


async def _end(loop: asyncio.AbstractEventLoop) -> None:
    """Cut all connections, and let the loop see to it."""
    rest = asyncio.all_tasks(loop) - {asyncio.current_task()}
    for task in rest:
        task.cancel()
    await asyncio.gather(*rest, return_exceptions=True)
    await asyncio.sleep(0)
