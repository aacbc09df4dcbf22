"""Read by Schemathesis (SCHEMATHESIS_HOOKS): what it may expect of us beyond the schema, and how it gets to jobs.

Its own check for valid data takes every 422 for a fault of the schema. Ours has two kinds: `bad_request` says that
the form is wrong, which valid data must never hear; any other code says that the sense is (a stage which a flow does
not have, a cursor which no list gave), which no schema can tell.
"""

from typing import Any

import schemathesis
from schemathesis import Case, CheckContext, GenerationMode, HookContext, Response

FLOW = "echo"


@schemathesis.check
def valid_data_is_not_called_malformed(ctx: CheckContext, response: Response, case: Case) -> None:
    if case.meta is None or case.meta.generation.mode is not GenerationMode.POSITIVE or response.status_code != 422:
        return
    code = response.json().get("code")
    assert code != "bad_request", f"valid data was called malformed: {response.text}"


@schemathesis.hook
def map_body(context: HookContext, body: Any) -> Any:
    """A flow that is there, no stage that is not: else no job would ever be made, and nothing could follow one."""
    if context.operation is not None and context.operation.path in ("/api/v1/jobs", "/api/v1/bulk/submit"):
        for job in body.get("jobs", [body]) if isinstance(body, dict) else ():
            _made_possible(job)
    return body


def _made_possible(job: Any) -> None:
    if not isinstance(job, dict) or not _is_name(job.get("flow")):
        return  # wrong on purpose: it stays so
    job["flow"] = FLOW
    for name in ("skip", "after"):
        values = job.get(name)
        if isinstance(values, list) and len(values) <= 100 and all(_is_name(v) or _is_id(v) for v in values):
            del job[name]


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) <= 255 and "\0" not in value


def _is_id(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 1 <= value <= 2**53
