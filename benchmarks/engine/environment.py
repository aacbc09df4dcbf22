"""The peers' own environment, so that none of their dependencies ever meets ours."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import venv
from pathlib import Path

BENCHMARKS = Path(__file__).resolve().parent.parent
REPOSITORY = BENCHMARKS.parent
LOCK = BENCHMARKS / "requirements" / "peers.lock"
HOME = BENCHMARKS / ".peers-venv"
INSTALL_S = 900.0


def peers_python() -> Path:
    """Return the interpreter of the peers' environment, made or renewed when the lock says so."""
    python = HOME / "bin" / "python"
    stamp = HOME / "lock.sha256"
    wanted = hashlib.sha256(LOCK.read_bytes()).hexdigest()
    if not stamp.exists() or stamp.read_text() != wanted:
        print(f"making {HOME.relative_to(REPOSITORY)} from {LOCK.name} ...", file=sys.stderr)
        venv.create(HOME, clear=True, with_pip=True, symlinks=True)
        install = [str(python), "-m", "pip", "install", "--quiet", "--no-deps", "--require-hashes"]
        subprocess.run([*install, "-r", str(LOCK)], check=True, timeout=INSTALL_S, stdout=sys.stderr)
        stamp.write_text(wanted)
    return python
