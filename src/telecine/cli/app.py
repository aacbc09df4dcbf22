"""The list of commands, and how each of them ends."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

from telecine.apps.installed import Installed, installed
from telecine.cli.commands import doctor, events, fleet, jobs, logs, serve, setup, submit, watch, webhooks, worker
from telecine.cli.common import BAD_INPUT, INTERRUPTED, OK, AsJson, Database, before_command, complain, exit_code
from telecine.cli.terminal import safe_streams
from telecine.errors import TelecineError

HELP = """Durable media processing: every task is a leased row in a SQL database, so no work is ever lost.

Settings come from TELECINE_* variables or telecine.toml; `telecine config` shows them.

Exit codes: 0 fine, 1 the doctor found something or a bug of ours, 2 bad input, 3 not found, 4 conflict, \
5 the job failed, 6 no database, 7 not let in, 130 interrupted."""

app = typer.Typer(
    name="telecine",
    help=HELP,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        print(f"telecine {version('telecine')}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
    database: Database = None,
    as_json: AsJson = False,
) -> None:
    """Options before the command; see `common.Before`."""


PANELS = {
    "Jobs": (
        *(submit.submit, jobs.jobs, jobs.job, watch.watch, jobs.cancel, jobs.retry, jobs.edit, logs.logs),
        events.events,
    ),
    "Server": (serve.serve, serve.login, serve.keys, webhooks.webhooks),
    "Fleet": (worker.worker, fleet.workers, fleet.flows, fleet.locks),
    "Set-up": (setup.migrate, doctor.doctor, setup.config),
}
GROUPS = {fleet.workers: "workers", fleet.flows: "flows", serve.keys: "keys", webhooks.webhooks: "webhooks"}


def _name(command: Any) -> str:
    """What a person types: the name of a group, or the function's with dashes."""
    if isinstance(command, typer.Typer):
        return GROUPS.get(command) or str(command.info.name)
    return str(command.__name__).lower().replace("_", "-")


def _add(panels: Mapping[str, Sequence[Any]]) -> None:
    for panel, commands in panels.items():
        for command in commands:
            if isinstance(command, typer.Typer):
                app.add_typer(command, name=_name(command), rich_help_panel=panel)
            else:
                app.command(_name(command), rich_help_panel=panel)(command)


def _add_apps(known: Installed) -> list[str]:
    """Add the commands of apps; a sentence for each app whose commands are left out."""
    faults: list[str] = []
    taken = {_name(command) for commands in PANELS.values() for command in commands}
    for one in known.apps:
        try:
            panels = one.commands() if one.commands is not None else {}
            names = [_name(command) for commands in panels.values() for command in commands]
        except Exception as error:
            faults.append(f"commands of app {one.name} are left out: {type(error).__name__}: {error}")
            continue
        if twice := next((name for name in names if name in taken or names.count(name) > 1), None):
            faults.append(f"commands of app {one.name} are left out: {twice!r} is taken")
            continue
        taken |= {*names}
        _add(panels)
    return faults


def _installed_words(known: Installed) -> str:
    """What `--help` says at its end."""
    listed = [f"{one.name} ({one.title[:1].lower()}{one.title[1:]})" for one in known.apps]
    faults = [f"{sentence}." for sentence in (*known.faults, *command_faults)]
    return " ".join([f"Apps: {', '.join(listed) or 'none'}.", *faults])


command_faults = _add_apps(installed())
_add(PANELS)
app.info.epilog = _installed_words(installed())


def run(arguments: Sequence[str]) -> int:
    """Run one command; whatever is expected to go wrong ends in one sentence and a number."""
    with safe_streams():
        return _run(arguments)


def _run(arguments: Sequence[str]) -> int:
    before_command.forget()
    try:
        code = app(list(arguments), standalone_mode=False) or OK
        sys.stdout.flush()  # here, where a reader that has left can still be told from a fault
        return code
    except TelecineError as error:
        complain(str(error))
        return exit_code(error)
    except (KeyboardInterrupt, typer.Abort):
        return INTERRUPTED
    except BrokenPipeError:
        return _unread()
    except SystemExit as ended:
        # Typer makes this of a broken pipe that it sees itself, with the code of a fault.
        if not isinstance(ended.__context__, BrokenPipeError):
            raise
        return _unread()
    except Exception as error:
        # Typer's own errors; their class has moved between its releases, this method has not.
        sentence = getattr(error, "format_message", None)
        if sentence is None:
            raise
        context = getattr(error, "ctx", None)
        hint = f" (see `{context.command_path} --help`)" if context is not None else ""
        _reword(error)
        if words := " ".join(sentence().split()):  # none when the help was all that was to say
            complain(f"{words}{hint}")
        return BAD_INPUT


def _unread() -> int:
    """Whoever read us has left, and that is fine; Python would complain once more when it flushes at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return OK


_WRONG = {
    "int_parsing": "{given!r} is not a whole number",
    "int_from_float": "{given!r} is not a whole number",
    "float_parsing": "{given!r} is not a number",
    "greater_than_equal": "{given} is too small; the least is {ge}",
    "less_than_equal": "{given} is too much; the most is {le}",
    "value_error": "{error}",  # of choices: Typer's own words, which name them
}


def _reword(error: Exception) -> None:
    """Typer asks pydantic whether a value fits, and repeats what that says to programmers."""
    faults = getattr(error.__cause__, "errors", None)
    if faults is None:
        return
    first = faults()[0]
    words = _WRONG.get(first["type"], "{given!r} does not fit")
    said = words.format(given=first["input"], **first.get("ctx", {}))
    error.message = said.rstrip(".")  # type: ignore[attr-defined]
