"""Names of artifacts: only those that every store can hold, so that none fails when its bytes are there."""

from __future__ import annotations

import re
from typing import Final

from telecine.errors import BadSpec
from telecine.facts import Lease

# File systems take 255 bytes. A local store first writes to a name that is a few bytes longer.
MAX_PART_BYTES: Final = 240
# Buckets take keys of 1,024 bytes, with the prefix of the bucket and that of the attempt.
MAX_NAME_BYTES: Final = 700
MAX_SHOWN: Final = 60
_CONTROL: Final = re.compile("[\x00-\x1f\x7f-\x9f]")
# What the local store calls a file that is not whole yet.
_STAGED: Final = re.compile(r"#\d+$")


def check_name(name: str) -> None:
    """`BadSpec` in one sentence for a name that some store cannot hold."""
    if (wrong := _fault(name)) is not None:
        shown = name if len(name) <= MAX_SHOWN else f"{name[:MAX_SHOWN]}…"
        raise BadSpec(f"artifact name {shown!r} {wrong}")


def _fault(name: str) -> str | None:
    parts = name.split("/")
    if any(part in ("", ".", "..") for part in parts) or "\\" in name:
        return "is not a plain relative path"
    if _CONTROL.search(name):
        return "has control characters: leave them out"
    try:
        sizes = [len(part.encode()) for part in parts]
    except UnicodeEncodeError:
        return "is not valid Unicode"
    if max(sizes) > MAX_PART_BYTES:
        return f"has a part of {max(sizes)} bytes: at most {MAX_PART_BYTES} are possible"
    if len(name.encode()) > MAX_NAME_BYTES:
        return f"has {len(name.encode())} bytes: at most {MAX_NAME_BYTES} are possible"
    if any(_STAGED.search(part) for part in parts):
        return "ends in # and a number, which marks unfinished files: choose another"
    return None


def key_of(job_id: int, stage: str, position: int, token: int, *, name: str) -> str:
    """`<job>/<stage>@<version>/<position>/<token>/<name>`: no two attempts ever write the same key."""
    check_name(name)
    return f"{job_id}/{stage}/{position}/{token}/{name}"


def key_for_lease(lease: Lease, name: str) -> str:
    """The key of what the attempt with this lease keeps under a name."""
    return key_of(lease.job_id, f"{lease.stage}@{lease.version}", lease.position, lease.token, name=name)
