"""Traces for OpenTelemetry: one for each job, from its submit through every attempt, wherever that ran.

No trace context is stored or sent along with a job. Its trace id, and the id of each span that others have as their
parent, are made from the job's number, or the task's and the token, and a seed that all processes of one installation
share. So a worker that knows nothing but its lease makes spans of the right trace, with the right parent:

    job                 from its submit to its end                            said by the server that counts the events
     ├─ submit                                                                the same
     └─ attempt         one for each claim: flow/stage                        said by the worker, near or far
         └─ settle      from its last word to the engine's answer             the same
    request             one for each HTTP request, in the caller's trace if it sends `traceparent`

A far worker sends `traceparent` with what it says during an attempt: those requests are in the job's trace, too.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from contextlib import suppress
from contextvars import ContextVar
from hashlib import blake2b
from importlib.metadata import version
from typing import Any

import structlog
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.trace import NonRecordingSpan, Span, SpanContext, SpanKind, Status, StatusCode, TraceFlags
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from telecine.facts import Done, Fact, Failed, Instant, Lease, Released, SettleReply
from telecine.observe.request_events import RequestEvent
from telecine.observe.requests import is_untraced
from telecine.worker.current import current_lease

log = logging.getLogger(__name__)

EXPORT_SECONDS = 5
FAREWELL_SECONDS = 8.0
NANOS = 1_000_000
MAX_SETTLING = 2_000
SAMPLED = TraceFlags(TraceFlags.SAMPLED)
SERVER_ERROR = 500

_next_ids: ContextVar[tuple[int, int] | None] = ContextVar("next_ids", default=None)


class _Ids(RandomIdGenerator):
    """Random, unless somebody has said which ones come next."""

    def generate_span_id(self) -> int:
        chosen = _next_ids.get()
        return chosen[1] if chosen else super().generate_span_id()

    def generate_trace_id(self) -> int:
        chosen = _next_ids.get()
        return chosen[0] if chosen else super().generate_trace_id()


class Ids:
    """Ids that every process of the installation works out alike."""

    def __init__(self, seed: str) -> None:
        self._seed = seed

    def trace(self, job_id: int) -> int:
        return self._made(16, "job", job_id)

    def job(self, job_id: int) -> int:
        return self._made(8, "root", job_id)

    def attempt(self, task_id: int, token: int) -> int:
        return self._made(8, "attempt", task_id, token)

    def _made(self, size: int, *of: object) -> int:
        text = "\n".join(map(str, (self._seed, *of)))
        return int.from_bytes(blake2b(text.encode(), digest_size=size).digest(), "big") or 1


class Tracing:
    """Makes spans and sends them, in a thread of its own; whoever traces nothing has none of this."""

    def __init__(self, endpoint: str, seed: str, role: str) -> None:
        named = {"service.name": f"telecine-{role}", "service.version": version("telecine")}
        self._provider = TracerProvider(resource=Resource.create(named), id_generator=_Ids())
        exporter = OTLPSpanExporter(endpoint=f"{endpoint}/v1/traces", timeout=EXPORT_SECONDS)
        self._provider.add_span_processor(BatchSpanProcessor(exporter))
        self._tracer = self._provider.get_tracer("telecine", version("telecine"))
        self._w3c = TraceContextTextMapPropagator()
        self.ids, self.seed = Ids(seed), seed
        self._attempts: dict[tuple[int, int], Span] = {}
        self._settling: dict[tuple[int, int], Span] = {}
        self._visits: dict[int, Span] = {}

    def trace_of(self, job_id: int) -> str:
        """The id of a job's trace, as people search for it."""
        return f"{self.ids.trace(job_id):032x}"

    def headers(self) -> dict[str, str]:
        """What a request that is made during an attempt carries."""
        lease = current_lease.get()
        if lease is None:
            return {}
        span = self.ids.attempt(lease.task_id, lease.token)
        return {"traceparent": f"00-{self.trace_of(lease.job_id)}-{span:016x}-01"}

    async def close(self) -> None:
        """Send what there is; not for long."""
        with suppress(TimeoutError):
            async with asyncio.timeout(FAREWELL_SECONDS):
                await asyncio.to_thread(self._provider.shutdown)

    # -- attempts: an `Observer` of a worker --------------------------------------------------------------

    def begun(self, lease: Lease) -> None:
        chosen = (0, self.ids.attempt(lease.task_id, lease.token))
        told: dict[str, str | int] = {
            "telecine.job": lease.job_id,
            "telecine.task": lease.task_id,
            "telecine.token": lease.token,
            "telecine.position": lease.position,
            "telecine.attempt": lease.attempt,
            "telecine.worker": lease.worker,
        }
        name, parent = f"{lease.flow}/{lease.stage}", self._inside(lease.job_id, self.ids.job(lease.job_id))
        self._attempts[lease.task_id, lease.token] = self._start(name, parent, chosen, SpanKind.CONSUMER, told)

    def ended(self, lease: Lease, fact: Fact) -> None:
        key = lease.task_id, lease.token
        if (span := self._attempts.pop(key, None)) is None:
            return
        span.set_attribute("telecine.outcome", type(fact).__name__.lower())
        match fact:
            case Done():
                span.set_status(Status(StatusCode.OK))
            case Failed(message=message, code=code):
                span.set_status(Status(StatusCode.ERROR, f"{code}: {message[:200]}"))
            case Released(reason=reason):
                span.set_attribute("telecine.reason", reason[:200])
        span.end()
        parent = self._inside(lease.job_id, self.ids.attempt(*key))
        self._settling[key] = self._tracer.start_span("settle", parent, SpanKind.CLIENT)
        if len(self._settling) > MAX_SETTLING:  # whoever lost his lease says nothing more about it
            del self._settling[next(iter(self._settling))]

    def settled(self, lease: Lease, answer: SettleReply) -> None:
        if (span := self._settling.pop((lease.task_id, lease.token), None)) is not None:
            span.set_attributes({"telecine.accepted": answer.accepted, "telecine.code": answer.code})
            span.end()

    # -- jobs: told by whoever counts the events -----------------------------------------------------------

    def heard(self, event: Mapping[str, Any]) -> None:
        subject, _, what = str(event["kind"]).partition(".")
        job_id, flow = event["job_id"], event["flow"]
        if subject != "job" or flow is None:
            return
        root = self.ids.job(job_id)
        told: dict[str, str | int] = {"telecine.job": job_id, "telecine.flow": flow}
        if what == "created":
            inside = self._inside(job_id, root)
            span = self._start("submit", inside, None, SpanKind.PRODUCER, told, event["at"])
            span.end(event["at"] * NANOS)
        elif what in ("completed", "failed", "cancelled"):
            # Opened again by a person, it ends once more: then the first end stays the root.
            first = event["generation"] == 1
            inside = Context() if first else self._inside(job_id, root)
            chosen = (self.ids.trace(job_id), root) if first else None
            name = f"job {flow}" if first else f"job {flow} again"
            span = self._start(name, inside, chosen, SpanKind.INTERNAL, told, event["created_at"])
            span.set_attribute("telecine.outcome", what)
            span.set_status(Status(StatusCode.ERROR if what == "failed" else StatusCode.OK))
            span.end(event["at"] * NANOS)

    # -- requests: a watcher of the API ----------------------------------------------------------------------

    def came(self, visit: RequestEvent) -> None:
        carried = {
            name.decode("latin-1"): value.decode("latin-1")
            for name, value in visit.headers
            if name in (b"traceparent", b"tracestate")
        }
        parent = self._w3c.extract(carried, Context())
        span = self._tracer.start_span(visit.method, parent, SpanKind.SERVER)
        self._visits[id(visit)] = span
        structlog.contextvars.bind_contextvars(trace=f"{span.get_span_context().trace_id:032x}")

    def answered(self, visit: RequestEvent) -> None:
        return None

    def over(self, visit: RequestEvent) -> None:
        span = self._visits.pop(id(visit), None)
        # A stream is open for hours, and machines ask every second: neither is worth a span.
        if span is None or visit.is_stream or is_untraced(visit):
            return
        span.update_name(f"{visit.method} {visit.route}")
        told: dict[str, str | int] = {
            "http.request.method": visit.method,
            "http.route": visit.route,
            "http.response.status_code": visit.status,
            "telecine.request": visit.id,
        }
        span.set_attributes(told)
        if visit.status >= SERVER_ERROR:
            span.set_status(Status(StatusCode.ERROR))
        span.end()

    # -- spans -------------------------------------------------------------------------------------------------

    def _inside(self, job_id: int, span_id: int) -> Context:
        parent = SpanContext(self.ids.trace(job_id), span_id, is_remote=True, trace_flags=SAMPLED)
        return trace.set_span_in_context(NonRecordingSpan(parent), Context())

    def _start(  # noqa: PLR0917 - what a span is made of
        self,
        name: str,
        parent: Context,
        ids: tuple[int, int] | None,
        kind: SpanKind,
        told: dict[str, str | int],
        at: Instant | None = None,
    ) -> Span:
        chosen = _next_ids.set(ids)
        try:
            return self._tracer.start_span(name, parent, kind, told, start_time=None if at is None else at * NANOS)
        finally:
            _next_ids.reset(chosen)
