"""Log lines: one event each, whatever was logged; with ids, without secrets."""

import io
import json
import logging
from collections.abc import Iterator

import pytest
import structlog

from telecine.engine.accounts.keys import written
from telecine.facts import JobId, Lease, TaskId, WorkerId
from telecine.observe.logs import LogFormatter, shown, struck
from telecine.worker.current import current_lease

SECRET = "5" * 64
LEASE = Lease(TaskId(7), 3, WorkerId(2), 0, JobId(5), "film", "cut", 1, 0, 1, 3, None)


class Lines:
    """What one logger wrote."""

    def __init__(self, style: str) -> None:
        self._stream = io.StringIO()
        self._handler = logging.StreamHandler(self._stream)
        self._handler.setFormatter(LogFormatter(style, trace_of=lambda job: f"trace {job}"))
        self.log = logging.getLogger("tests.unit.test_logs")
        self.log.handlers[:] = [self._handler]
        self.log.setLevel(logging.DEBUG)
        self.log.propagate = False

    @property
    def text(self) -> str:
        return self._stream.getvalue()

    @property
    def json(self) -> dict[str, object]:
        [line] = self.text.splitlines()
        return json.loads(line)  # type: ignore[no-any-return]


@pytest.fixture(autouse=True)
def _nobody_runs() -> Iterator[None]:
    yield
    current_lease.set(None)


def test_a_line_begins_with_the_same_keys_always() -> None:
    lines = Lines("json")

    lines.log.info("hello %s", "you", extra={"status": 200})

    assert list(lines.json) == ["at", "level", "logger", "message", "status"]
    assert (lines.json["message"], lines.json["status"]) == ("hello you", 200)


def test_a_line_of_an_attempt_names_job_task_token_worker_and_trace() -> None:
    lines = Lines("json")

    current_lease.set(LEASE)
    lines.log.warning("slow")

    ids = {key: lines.json[key] for key in ("job", "task", "token", "worker", "trace")}
    assert ids == {"job": 5, "task": 7, "token": 3, "worker": 2, "trace": "trace 5"}


def test_a_logger_of_structlog_writes_the_same_lines() -> None:
    lines = Lines("json")
    wrapped = structlog.wrap_logger(
        lines.log,
        processors=[structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        wrapper_class=structlog.stdlib.BoundLogger,
    )

    current_lease.set(LEASE)
    wrapped.warning("slow", speed=0.5)

    assert list(lines.json)[:4] == ["at", "level", "logger", "message"]
    assert (lines.json["message"], lines.json["speed"], lines.json["job"]) == ("slow", 0.5, 5)


def test_a_line_within_a_request_has_its_id() -> None:
    lines = Lines("text")

    with structlog.contextvars.bound_contextvars(request="r1"):
        lines.log.info("asked")

    assert lines.text.endswith(" INFO    asked request=r1\n")


@pytest.mark.parametrize("style", ["json", "text"])
@pytest.mark.parametrize("odd", ["\n", "\r\n", "\x1b[2J", "\x00", "\x85", "\u2028"])
def test_what_was_logged_cannot_begin_a_line_of_its_own(style: str, odd: str) -> None:
    lines = Lines(style)

    lines.log.info("name %s", f"a{odd}2026-01-01 00:00:00Z ERROR forged", extra={"key": f"b{odd}c"})

    assert len(lines.text.splitlines()) == 1
    assert odd not in lines.text.rstrip("\n")


def test_a_traceback_in_text_is_indented_so_that_its_message_forges_nothing() -> None:
    lines = Lines("text")

    try:
        raise ValueError("a\n2026-01-01 00:00:00Z ERROR forged")
    except ValueError:
        lines.log.exception("it broke")

    first, *rest = lines.text.splitlines()
    assert first.endswith("it broke")
    assert "Traceback" in rest[0]
    assert all(line.startswith("    ") for line in rest)


@pytest.mark.parametrize("style", ["json", "text"])
@pytest.mark.parametrize(
    "told",
    [
        written("owner", "0" * 12, SECRET),
        f"GET /login/{SECRET}",
        f"Authorization: Bearer {SECRET}",
        f"postgresql://telecine:{SECRET}@db/telecine",
        f"https://bucket/key?X-Amz-Signature={SECRET}&x=1",
        f"/media/a.m4s?token={SECRET}",
    ],
)
def test_no_secret_reaches_a_line_or_a_traceback(style: str, told: str) -> None:
    lines = Lines(style)

    try:
        raise RuntimeError(told)
    except RuntimeError:
        lines.log.exception("about %s", told, extra={"field": told})

    assert SECRET not in lines.text
    assert "…" in lines.text


def test_a_line_stays_json_whatever_is_struck_out_of_it() -> None:
    lines = Lines("json")

    lines.log.info(
        "at %s", "http://host:8484/x", extra={"who": "a@b", "then": f"s3://k:{SECRET}@h", "odd": "bearer a\\b"}
    )

    assert (lines.json["message"], lines.json["who"], lines.json["then"]) == (
        "at http://host:8484/x",
        "a@b",
        "s3://k:…@h",
    )


def test_plain_words_stay_as_they_are() -> None:
    text = (
        "worker ada serves transcode with 2 slots on sqlite:///.telecine/telecine.db; key=value, http://127.0.0.1:8484"
    )

    assert shown(struck(text)) == text
