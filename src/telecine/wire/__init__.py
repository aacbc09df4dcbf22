"""The protocol between a worker and a server: JSON over HTTP, with a version.

    POST /api/worker/claim     {"worker": 7, "request": "5f…", "lanes": {"thumbs/resize@1": "thumbs"}, "wanted": 2}
      → {"leases": [{"task_id": 31, "token": 4, …}]}

codec          facts as JSON and back; also between a worker and its child process, which must start fast:
               so this package imports nothing
requests       what a worker sends: strict, with bounds
responses      what a server answers: typed, and read tolerantly
registration   how a worker gets its key and its number; the `VERSION` of the protocol
convert        messages as facts and back
"""
