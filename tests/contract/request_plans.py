"""What the public API asks, with small limits: `test_views_plans.py` measures how much work that is."""

from typing import Any

SOME = 50
FOREVER = 2**62
_JOB = 10_000

REQUESTS: list[tuple[str, dict[str, Any]]] = [
    ("job_owners", {"ids": [_JOB, _JOB + 1]}),
    ("task_owner", {"id": _JOB}),
    ("tasks_by_id", {"ids": [_JOB, _JOB + 1]}),
    ("failed_of_owner", {"owner": "rare", "flow": None, "below": FOREVER, "wanted": SOME}),
    (
        "stale_tasks",
        {"lane": "", "rank": 0, "after": 0, "age": 0, "owner": None, "flow": None, "most": SOME, "wanted": SOME},
    ),
    ("stats_jobs_of_owner", {"owner": "rare", "most": SOME}),
    ("stats_tasks_of_owner", {"owner": "rare", "most": SOME}),
    ("stats_jobs_of_owner", {"owner": "busy", "most": SOME}),
    ("stats_tasks_of_owner", {"owner": "busy", "most": SOME}),
    ("job_gone_due", {"wanted": SOME}),
    ("job_ended_at", {"id": _JOB}),
]
