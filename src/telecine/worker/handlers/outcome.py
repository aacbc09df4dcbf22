"""From what a handler did to what is said about it. Imports little: a child process uses it too."""

from __future__ import annotations

import json
from collections.abc import Sequence

from telecine.errors import BadSpec, HandlerStopped, MediaError
from telecine.facts import JUST_DONE, Done, Fact, Failed, Piece, Released
from telecine.flow import outcome_of
from telecine.json_limits import MAX_DEPTH, MAX_PIECES, check_json

TRACE_CHARS = 16_000
MAX_OUTCOME_VALUES = 1_000_000  # as many as a server takes from a worker


def of_return(returned: object) -> Done | Failed:
    """What a handler returned, checked: a result that cannot be stored is the handler's failure."""
    if returned is None:
        return JUST_DONE
    outcome = outcome_of(returned)
    if isinstance(outcome, Done) and (outcome.result is not None or outcome.plan or outcome.facts):
        if odd := [name for name, pieces in (outcome.plan or {}).items() if not _is_list(pieces)]:
            why = f"the plan for {odd[0]!r} is no list: give one input for each task"
            return Failed(why, code="bad_plan", permanent=True)
        if (count := sum(map(len, (outcome.plan or {}).values()))) > MAX_PIECES:
            why = f"the plan has {count:,} pieces, and at most {MAX_PIECES:,} are taken: plan larger pieces"
            return Failed(why, code="bad_plan", permanent=True)
        plan = {name: [_plain(piece) for piece in pieces] for name, pieces in (outcome.plan or {}).items()}
        try:
            text = json.dumps([outcome.result, plan, outcome.facts], allow_nan=False)
            check_json(text, "the handler's outcome", max_values=MAX_OUTCOME_VALUES, max_depth=MAX_DEPTH + 4)
        except BadSpec as error:
            return Failed(str(error), code="bad_return", permanent=True)
        except (TypeError, ValueError, RecursionError) as error:
            return Failed(f"the handler's outcome is not JSON: {error}", code="bad_return", permanent=True)
    return outcome


def of_error(error: BaseException) -> Fact:
    if isinstance(error, HandlerStopped):
        return Released("stopped")
    if isinstance(error, MediaError):  # it has a code of its own, and knows whether another try can help
        return Failed(str(error), code=error.code, permanent=error.permanent)
    return Failed(f"{type(error).__name__}: {error}")


def trace_of(error: BaseException) -> str:
    import traceback  # noqa: PLC0415 - a child that succeeds need not load it

    return "".join(traceback.format_exception(error))[-TRACE_CHARS:]


def _is_list(pieces: object) -> bool:
    """A text is a sequence, too: of letters, which nobody wants one by one."""
    return isinstance(pieces, Sequence) and not isinstance(pieces, (str, bytes))


def _plain(piece: object) -> object:
    return [piece.input, piece.optional, piece.labels, piece.patience] if isinstance(piece, Piece) else piece
