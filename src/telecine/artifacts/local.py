"""Files of a local folder, beyond what obstore does with them."""

from __future__ import annotations

import os
from pathlib import Path


def files_under(folder: Path, prefix: str) -> list[str]:
    top = folder / prefix
    return sorted(str((Path(at) / name).relative_to(folder)) for at, _, names in os.walk(top) for name in names)


def unlink(folder: Path, key: str) -> None:
    """The file, and the folders that it leaves empty."""
    path = folder / key
    path.unlink(missing_ok=True)
    for parent in path.parents:
        if parent == folder:
            return
        try:
            parent.rmdir()
        except OSError:
            return


def flush(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
