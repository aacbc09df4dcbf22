"""Documents as programs: their blocks are written, run and compared with what they promise.

In a document that is run
- a `python NAME` or `toml NAME` block is a file of that name, a `sh` block is typed into one shell, in order;
- a `text` block right after a `sh` block is what it must print: these lines in this order, `…` for anything;
- `<!-- run … -->` is typed too, but readers do not see it: it waits where they would look at the screen;
- `console` blocks are for readers only.

`python -m tests.support.docs` writes the tables of options in docs/cli.md, of settings in docs/settings.md and of
routes in docs/http.md again, and the whole of docs/api.md.
"""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import typer
from fastapi import FastAPI

from telecine.api.app import all_routes
from telecine.api.openapi.schema import described
from telecine.cli.app import app
from telecine.settings import PREFIX, Settings
from telecine.wiring.apps import api_of
from tests.support.api_reference import api_reference, openapi_document

ROOT = Path(__file__).parents[2]
PATIENCE = 90.0
_BLOCK = re.compile(
    r"^```(?P<language>\w*)[ ]?(?P<name>[^\n]*)\n(?P<text>.*?)^```$|^<!-- run\n(?P<hidden>.*?)^-->$",
    re.MULTILINE | re.DOTALL,
)
_TABLE = re.compile(r"(<!-- options of (?P<command>[a-z ]+) -->\n).*?(<!-- end -->)", re.DOTALL)
EVERYWHERE = {"--database", "--json", "--help"}


@dataclass(frozen=True)
class Block:
    language: str
    name: str
    text: str
    line: int
    promise: str = ""

    @property
    def is_file(self) -> bool:
        return self.name.endswith((".py", ".toml"))

    def with_words(self, old: str, new: str) -> "Block":
        return replace(self, text=self.text.replace(old, new), promise=self.promise.replace(old, new))


def blocks_of(path: Path) -> list[Block]:
    """All blocks of a document; what a shell block promises to print is with it."""
    text = path.read_text()
    found: list[Block] = []
    for match in _BLOCK.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        if match["hidden"] is not None:
            found.append(Block("sh", "hidden", match["hidden"], line))
        elif match["language"] == "text" and found and found[-1].language == "sh" and not found[-1].promise:
            last = found.pop()
            found.append(Block(last.language, last.name, last.text, last.line, match["text"]))
        else:
            found.append(Block(match["language"], match["name"].strip(), match["text"], line))
    return found


def environ(**more: str) -> dict[str, str]:
    """A stranger's: no settings, our program on the path, a wide screen without colour."""
    plain = {name: value for name, value in os.environ.items() if not name.startswith("TELECINE_")}
    path = f"{Path(sys.executable).parent}{os.pathsep}{plain.get('PATH', '')}"
    return {**plain, "PATH": path, "COLUMNS": "120", "NO_COLOR": "1", **more}


def play(path: Path, folder: Path, *, instead: Mapping[str, str] | None = None) -> None:
    """Do what the document says, in `folder`, and compare what it promises; some words are put `instead` of others."""
    blocks = [block for block in blocks_of(path) if block.language == "sh" or block.is_file]
    for old, new in (instead or {}).items():
        assert any(old in block.text + block.promise for block in blocks), f"{path.name} does not say {old!r}"
        blocks = [block.with_words(old, new) for block in blocks]
    script = "".join(_part(number, block) for number, block in enumerate(blocks))
    log = folder / ".log"
    with log.open("w") as said:
        shell = subprocess.Popen(
            ["bash", "-c", f"set -euo pipefail\ntrap 'kill $(jobs -p) 2>/dev/null || true; wait' EXIT\n{script}"],
            cwd=folder,
            env=environ(),
            stdout=said,
            stderr=said,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
    try:
        code = shell.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        os.killpg(shell.pid, signal.SIGKILL)
        code = shell.wait()
    outputs = {int(file.suffix[1:]): file.read_text() for file in folder.glob(".said.*")}
    last = max(outputs, default=0)
    assert code == 0, f"{path.name}, line {blocks[last].line}: exit code {code}\n{outputs.get(last)}\n{log.read_text()}"
    for number, block in enumerate(blocks):
        missing = broken_promise(block.promise, outputs.get(number, ""))
        assert not missing, f"{path.name}, line {block.line}: no line like {missing!r} in\n{outputs[number]}"


def _part(number: int, block: Block) -> str:
    if block.is_file:
        return f"cat > {block.name} <<'END OF FILE'\n{block.text}END OF FILE\n"
    return f"{{\n{block.text}\n}} > .said.{number} 2>&1\n"


def broken_promise(promise: str, output: str) -> str | None:
    """The first promised line that did not come, in its turn."""
    lines = iter(_squeezed(line) for line in output.splitlines())
    for wanted in filter(None, map(_squeezed, promise.splitlines())):
        pattern = re.compile(".*".join(re.escape(part) for part in re.split(" ?… ?", wanted)))
        if not any(pattern.fullmatch(line) for line in lines):
            return wanted
    return None


def _squeezed(line: str) -> str:
    return " ".join(line.split())


# -- docs/cli.md -------------------------------------------------------------------------------------


def commands() -> Iterator[tuple[str, Any]]:
    """Every command with its full name, `workers drain` among them."""
    for name, command in typer.main.get_command(app).commands.items():  # type: ignore[attr-defined]
        yield name, command
        for below, inner in getattr(command, "commands", {}).items():
            yield f"{name} {below}", inner


def options_table(command: Any) -> str:
    """Arguments and options of a command, but for those that all have."""
    rows = [row for param in command.params if (row := _row(param))]
    return "".join(["| | |\n|---|---|\n", *rows]) if rows else ""


def _row(param: Any) -> str:
    if param.param_type_name == "argument":
        return f"| `{param.metavar}` | {param.help} |\n"
    if EVERYWHERE & set(param.opts):
        return ""
    value = "" if param.is_flag else f" {param.metavar or param.name.upper()}"
    default = "" if param.is_flag or param.default in (None, "") else f" Default: `{param.default}`."
    names = ", ".join(f"`{name}`" if name == "-f" else f"`{name}{value}`" for name in param.opts)
    return f"| {names} | {param.help}{default} |\n"


def with_tables(text: str) -> str:
    """The text with its tables of options as they must be."""
    known = dict(commands())
    return _TABLE.sub(lambda found: f"{found[1]}{options_table(known[found['command']])}{found[3]}", text)


# -- docs/settings.md --------------------------------------------------------------------------------

_SETTINGS = re.compile(r"(<!-- settings -->\n).*?(<!-- end -->)", re.DOTALL)
OWN_WORDS = {"slots": "one per core", "worker_name": "the machine's name"}


def with_settings(text: str) -> str:
    """The text with its table of settings as it must be."""
    rows = ["| setting | variable | default | meaning |\n|---|---|---|---|\n"]
    for name, field in Settings.model_fields.items():
        default = OWN_WORDS.get(name) or ("none" if field.default in ((), None) else f"`{_plain(field.default)}`")
        rows.append(f"| `{name}` | `{PREFIX}{name.upper()}` | {default} | {field.description or ''} |\n")
    return _SETTINGS.sub(lambda found: f"{found[1]}{''.join(rows)}{found[2]}", text)


def _plain(value: Any) -> str:
    return ", ".join(value) if isinstance(value, tuple) else str(value)


# -- docs/http.md ------------------------------------------------------------------------------------

_ROUTES = re.compile(r"(<!-- routes -->\n).*?(<!-- end -->)", re.DOTALL)


def with_routes(text: str) -> str:
    """The text with its table of routes as it must be: from the description that the server gives of itself."""
    application = FastAPI()
    routers, notes = api_of()
    application.router.routes.extend(all_routes(routers))
    whole = described(application.openapi(), application.routes, notes)
    rows = [
        f"| `{method.upper()} {path}` | {operation.get('x-scope', 'everybody')} | {operation['summary']} |\n"
        for path, methods in sorted(whole["paths"].items())
        for method, operation in methods.items()
    ]
    table = "".join(["| route | for | |\n|---|---|---|\n", *rows])
    return _ROUTES.sub(lambda found: f"{found[1]}{table}{found[2]}", text)


if __name__ == "__main__":
    pages = (("cli.md", with_tables), ("settings.md", with_settings), ("http.md", with_routes))
    for name, written in pages:
        page = ROOT / "docs" / name
        page.write_text(written(page.read_text()))
    (ROOT / "docs" / "api.md").write_text(api_reference(openapi_document()))
