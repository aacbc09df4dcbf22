"""What a worker and a server say to each other over HTTP: JSON, strict, with bounds, and with a version.

    POST /api/worker/claim     {"worker": 7, "request": "5f…", "lanes": {"thumbs/resize@1": "thumbs"}, "wanted": 2}
      → {"leases": [{"task_id": 31, "token": 4, …}]}

Both sides use the models in `said`; a field that is not known is refused, so a change of them is a new `VERSION`.
`values` turns them into the nouns of `facts` and back.
"""

from telecine.wire.registration import VERSION

__all__ = ["VERSION"]
