"""What a worker hears when an operation fails: a code, one sentence, and whether another attempt can help.

The one place that sorts errors. FFmpeg gives the same answer for the same bytes, so what it says about a source is
permanent; memory, disks, drivers and the way to the source are not. No sentence holds a path of this machine.
"""

from __future__ import annotations

import errno

from av.error import ExternalError, FFmpegError

from telecine.errors import is_full
from telecine.media.child.protocol import OrderRefused
from telecine.media.child.sandbox import lockdown
from telecine.media.child.source.reader import SourceReader

# What each operation does to the source. Others work on what we made ourselves.
_VERBS = {"probe": "open", "scan": "read", "remux": "copy", "video": "decode", "audio": "decode"}
# The state of this machine, not of the file.
_PASSING = frozenset(
    {
        *(errno.EAGAIN, errno.EINTR, errno.ETIMEDOUT, errno.EBUSY, errno.EMFILE, errno.ENFILE, errno.ENODEV),
        *(errno.EPIPE, errno.ECONNRESET, errno.ECONNREFUSED, errno.ECONNABORTED, errno.ESTALE, errno.EROFS),
        *(errno.ESRCH, errno.ECHILD, errno.ENOBUFS, errno.EINPROGRESS, errno.EALREADY, errno.ESHUTDOWN),
    }
)


def report(error: Exception, operation: str = "", source: SourceReader | None = None) -> OrderRefused:
    """The error as the worker shall read it."""
    limit = lockdown.memory_limit()
    if lockdown.is_out_of_memory(error, limit):
        return OrderRefused("out_of_memory", f"out of memory: the limit is {limit} bytes")
    if source is not None and source.failure is not None:
        # Whatever was made of it, a damaged file for one, the cause is that bytes did not come.
        return OrderRefused("source_failed", str(source.failure))
    if isinstance(error, OrderRefused):
        return error
    if isinstance(error, FFmpegError):
        return _of_ffmpeg(error, operation)
    if isinstance(error, OSError):
        return _of_system(error)
    message = (
        f"the media child failed in an unforeseen way ({type(error).__name__}): the attempt's log has its traceback"
    )
    return OrderRefused("child_error", message)


def reason(error: Exception) -> str:
    """Why, in the words of FFmpeg or of the system: without numbers, paths and functions."""
    said = str(getattr(error, "strerror", None) or "")
    if not said:
        return type(error).__name__
    return said[:1].lower() + said[1:] if said[1:2].islower() else said


def _of_ffmpeg(error: FFmpegError, operation: str) -> OrderRefused:
    if is_full(error):
        return _of_system(error)
    verb = _VERBS.get(operation)
    if verb is None or isinstance(error, ExternalError) or error.errno in _PASSING:
        return OrderRefused("ffmpeg_failed", f"FFmpeg failed: {reason(error)}")
    message = f"FFmpeg cannot {verb} this file: {reason(error)}; check whether it plays elsewhere, or convert it first"
    return OrderRefused("unreadable", message, permanent=True)


def _of_system(error: Exception) -> OrderRefused:
    if getattr(error, "errno", None) == errno.EFBIG:
        return OrderRefused("file_limit", "a file would be larger than a media child may write", permanent=True)
    if is_full(error):
        return OrderRefused("no_space", f"the disk of the scratch folder is full ({reason(error)}): make room")
    return OrderRefused("scratch_failed", f"a file of the scratch folder cannot be used: {reason(error)}")
