"""Files of a local folder, beyond what obstore does with them."""

from __future__ import annotations

import os
from pathlib import Path

READABLE = 0o644


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


def linked(folder: Path, key: str, path: Path) -> bool:
    """One more name for the file, in the folder; false where they lie on different disks."""
    target = folder / key
    target.parent.mkdir(parents=True, exist_ok=True)
    path.chmod(READABLE)  # as other artifacts: workers may be other users
    try:
        os.link(path, target, follow_symlinks=False)
    except FileExistsError:
        if os.path.samefile(path, target):
            return True
        target.unlink()
        os.link(path, target, follow_symlinks=False)
    except OSError:
        return False
    return True


def flush(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
