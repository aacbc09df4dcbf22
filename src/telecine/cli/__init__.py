"""The command line. A command imports what it needs when it runs, so that `telecine --help` is quick."""

from __future__ import annotations

import gc
import sys


def main() -> None:
    # What is imported stays: to look through all of it again and again for garbage is a tenth of a server's start.
    # `perform` begins to look when the work begins.
    gc.disable()
    from telecine.cli.app import run

    sys.exit(run(sys.argv[1:]))
