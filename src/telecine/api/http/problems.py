"""What went wrong, as `application/problem+json`: one sentence, and a code that does not change."""

from __future__ import annotations

import json
import logging
import math
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from telecine.api.http.request_id import current_id
from telecine.api.http.validation_messages import OURS, faults_of
from telecine.errors import (
    ArtifactError,
    Conflict,
    KeyInvalid,
    LeaseLost,
    LockLost,
    MediaRefused,
    NoSpace,
    NotAllowed,
    NotFound,
    Refused,
    Rejected,
    StoreBroken,
    StoreError,
    TelecineError,
    TooLarge,
    TooMany,
    VersionMismatch,
    WorkerGone,
)

log = logging.getLogger(__name__)

KIND = "application/problem+json"
MAX_FAULTS = 20
MAX_QUOTED = 200
FAULT = "something went wrong inside the server; its log says what"
UNREADABLE = "There was an error parsing the body"  # FastAPI's words for bytes that are no text

# The first that fits.
STATUS: tuple[tuple[type[TelecineError], int], ...] = (
    (NotFound, 404),
    (KeyInvalid, 401),
    (NotAllowed, 403),
    (TooMany, 429),
    (TooLarge, 413),
    (NoSpace, 507),
    (VersionMismatch, 412),
    (Conflict, 409),
    (LeaseLost, 409),
    (LockLost, 409),
    (WorkerGone, 410),
    (Rejected, 422),
    (StoreBroken, 500),
    (StoreError, 503),
    (ArtifactError, 503),
    (MediaRefused, 422),
    (Refused, 422),
)
CODES = {
    400: "bad_request",
    404: "not_found",
    405: "method_not_allowed",
    406: "not_acceptable",
    413: "too_large",
    415: "bad_type",
    422: "bad_request",
}


class Problem(BaseModel):
    """One sentence that tells what to do, and a stable code for programs."""

    type: str = "about:blank"
    title: str = Field(examples=["Not Found"])
    status: int = Field(examples=[404])
    code: str = Field(examples=["not_found"])
    detail: str = Field(examples=["there is no job 7"])
    instance: str | None = Field(None, examples=["4f0c…"], description="The request's id, as in the server's log")
    errors: list[dict[str, Any]] | None = Field(None, description="What is wrong, by field, if several things are")


class ProblemResponse(JSONResponse):
    """In ASCII, since a sentence may quote what no encoding can carry, such as half of a surrogate pair."""

    media_type = KIND

    def render(self, content: Any) -> bytes:
        return json.dumps(content).encode()


def problem(status: int, code: str, detail: str, *, headers: dict[str, str] | None = None, **more: Any) -> JSONResponse:
    body = {"type": "about:blank", "title": HTTPStatus(status).phrase, "status": status, "code": code, "detail": detail}
    named = {"instance": request_id} if (request_id := current_id()) else {}
    return ProblemResponse({**body, **named, **more}, status_code=status, headers=headers)


def of_error(error: TelecineError) -> JSONResponse:
    """An error of ours as an answer."""
    status = next((status for kind, status in STATUS if isinstance(error, kind)), 500)
    headers = None
    if isinstance(error, TooMany):
        headers = {"Retry-After": str(math.ceil(error.seconds))}
    elif isinstance(error, KeyInvalid):
        headers = {"WWW-Authenticate": "Bearer"}
    elif status == HTTPStatus.SERVICE_UNAVAILABLE:
        headers = {"Retry-After": "2"}
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        log.warning("answered with %s: %s", status, error)
    return problem(status, error.code, _told(error, status), headers=headers)


def _told(error: TelecineError, status: int) -> str:
    """What drivers say names hosts, users and buckets: that is for the log, not for whoever asks."""
    if isinstance(error, StoreBroken):
        return FAULT
    if status == HTTPStatus.SERVICE_UNAVAILABLE and error.__cause__ is not None:
        what = "the store of films" if isinstance(error, ArtifactError) else "the database"
        return f"{what} does not answer as it should just now: ask again in a moment"
    return str(error)


def answers(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The problems of a route, for its documentation."""
    return {status: {"model": Problem, "content": {KIND: {}}} for status in statuses}


def _allowed(request: Request) -> str:
    """The methods of all routes with this address; a router names only those of the first that it finds."""
    path = request.url.path
    fitting = (route for route in request.app.routes if isinstance(route, Route) and route.path_regex.match(path))
    methods = {method for route in fitting for method in route.methods or ()}
    return ", ".join(sorted(methods | ({"HEAD"} if "GET" in methods else set())))


def _better(request: Request, error: HTTPException, headers: dict[str, str]) -> str:
    """What to do, where the framework says only what is not."""
    path = request.url.path[:MAX_QUOTED]
    if error.detail == HTTPStatus(error.status_code).phrase:
        if error.status_code == HTTPStatus.NOT_FOUND:
            return f"there is no route {path}; /openapi.json lists all of them"
        if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
            return f"{path} takes {headers['Allow']}, not {request.method}"
    if error.detail == UNREADABLE:
        return "the body cannot be read: send JSON in UTF-8"
    return str(error.detail)


def install(app: FastAPI) -> None:
    """Let every error, of ours or not, be a problem."""

    async def ours(request: Request, error: Exception) -> Response:
        assert isinstance(error, TelecineError)
        return of_error(error)

    async def theirs(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        code = CODES.get(error.status_code, "http_error")
        headers = dict(error.headers or {})
        if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
            headers["Allow"] = _allowed(request)
        return problem(error.status_code, code, _better(request, error, headers), headers=headers)

    async def invalid(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        faults = faults_of(request, error.errors())
        # The form is right and the sense is not, where only our own rules complain.
        senseless = all(fault["type"] == OURS for fault in error.errors())
        told = [{"at": fault.at, "message": fault.message} for fault in faults[:MAX_FAULTS]]
        return problem(422, "bad_spec" if senseless else "bad_request", str(faults[0]), errors=told)

    async def too_deep(request: Request, error: Exception) -> Response:
        return problem(400, "bad_request", "the body is nested too deeply")

    async def fault(request: Request, error: Exception) -> Response:
        return problem(500, "internal_error", FAULT)

    app.add_exception_handler(TelecineError, ours)
    app.add_exception_handler(HTTPException, theirs)
    app.add_exception_handler(RequestValidationError, invalid)
    app.add_exception_handler(RecursionError, too_deep)
    app.add_exception_handler(Exception, fault)
