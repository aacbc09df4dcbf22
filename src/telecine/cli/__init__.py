"""The command line. A command imports what it needs when it runs, so that `telecine --help` is quick."""

from __future__ import annotations

import sys


def main() -> None:
    from telecine.cli.app import run

    sys.exit(run(sys.argv[1:]))
