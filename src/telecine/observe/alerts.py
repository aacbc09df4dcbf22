"""What operators are alerted to: which events give rise to which alerts. Pure; cooldowns are the database's business.

task.lost                       stale_job_recovered         a worker vanished, its task is ready again
job.failed                      job_max_retries_exceeded    if it was for lack of attempts
task.retrying, task.error       job_failed_pattern          the subject fails again and again
worker.registered               worker_startup
worker.left, worker.lost        worker_shutdown
"""

from __future__ import annotations

from collections.abc import Sequence

from telecine.engine.webhooks.delivery_builder import AlertRules, News
from telecine.facts import Millis

STALE = "stale_job_recovered"
EXHAUSTED = "job_max_retries_exceeded"
PATTERN = "job_failed_pattern"
STARTUP = "worker_startup"
SHUTDOWN = "worker_shutdown"
ALERTS = (STALE, EXHAUSTED, PATTERN, STARTUP, SHUTDOWN)

_PLAIN = {
    "task.lost": STALE,
    "worker.registered": STARTUP,
    "worker.left": SHUTDOWN,
    "worker.lost": SHUTDOWN,
    "worker.offline": SHUTDOWN,
}
_FAILED = ("task.retrying", "task.error")
EVENTS = (*_PLAIN, *_FAILED, "job.failed")


def rules_for(host: str, *, kinds: Sequence[str], cooldown: Millis, pattern: int) -> AlertRules:
    """So many failed attempts of one subject are a `pattern`."""

    def judge(one: News) -> Sequence[str]:
        if one.kind in _PLAIN:
            return [_PLAIN[one.kind]]
        if one.kind == "job.failed":
            return [EXHAUSTED] if one.exhausted else []
        return [PATTERN] if one.failures >= pattern else []

    return AlertRules(host=host, kinds=tuple(kinds), events=EVENTS, judge=judge, cooldown=cooldown, pattern=pattern)
