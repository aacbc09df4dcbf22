"""What answers about videos look like, for the documentation."""

from __future__ import annotations

from typing import Any

from telecine.api.openapi.examples import JOB_LINE
from telecine.api.openapi.notes import ApiNotes
from telecine.apps.transcode.names import KIND, NAME

_AT = JOB_LINE["created_at"]
_ID = "big-buck-bunny-3f9a2c41"
_JOB = {**JOB_LINE, "flow": NAME, "subject": [KIND, _ID]}
_LINK = f"/media/t/w6955b900.kT0yqN5m1c2v3b4n5m6a7s8d9f0g1h2j/{_ID}"

LINE: dict[str, Any] = {
    "id": _ID,
    "owner": "ada",
    "status": "ready",
    "beside": "re-transcoding 40 %",
    "version": 1,
    "facts": {"duration_ms": 30_000, "width": 1_920, "height": 1_080, "rate": "24", "qualities": ["720p", "1080p"]},
    "job": _JOB,
    "open_job": _JOB,
    "created_at": _AT,
}
QUALITY: dict[str, Any] = {
    "quality": "720p",
    "kind": "video",
    "status": "in_progress",
    "segments_total": 5,
    "segments_completed": 2,
    "progress_percent": 40.0,
    "bytes": 3_686_400,
    "started_at": _AT + 2_000,
    "completed_at": None,
    "error_message": None,
    "reason": None,
    "width": 1_280,
    "height": 720,
}
PROGRESS: dict[str, Any] = {
    "job_id": 7,
    "status": "processing",
    "step": "transcode",
    "percent": 38.6,
    "qualities": [QUALITY],
    "length_ms": 30_000,
    "worked_ms": 9_400,
    "eta_ms": 14_900,
    "speed": 1.2,
    "error": None,
    "warnings": [],
}
VERSION: dict[str, Any] = {
    "id": 3,
    "number": 1,
    "job_id": 4,
    "current": True,
    "keep": False,
    "published_at": _AT - 86_400_000,
    "left_at": None,
    "files": 41,
    "bytes": 31_457_280,
}
PATHS: dict[str, Any] = {
    "master": f"{_LINK}/master.m3u8",
    "poster": f"{_LINK}/v1/poster.jpg",
    "thumbnails": f"{_LINK}/v1/thumbs.vtt",
    "preview": None,
}
URLS: dict[str, Any] = {name: path and f"https://films.example{path}" for name, path in PATHS.items()}
PLAYBACK: dict[str, Any] = {**PATHS, "urls": URLS, "expires_at": _AT + 43_200_000}
FULL: dict[str, Any] = {
    **LINE,
    "source": "https://example.org/big-buck-bunny.mp4",
    "length_ms": 30_000,
    "versions": [VERSION],
    "jobs": [_JOB],
    "progress": PROGRESS,
    "steps": [{"name": "probe", "status": "completed"}, {"name": "transcode", "status": "in_progress"}],
    "claim": "claimed",
    "workers": ["ann"],
    "playback": PLAYBACK,
}

EXAMPLES: dict[str, Any] = {
    "Video": LINE,
    "VideoDetails": FULL,
    "Quality": QUALITY,
    "VideoProgress": PROGRESS,
    "VersionView": VERSION,
    "Playback": PLAYBACK,
    "MediaUrls": URLS,
    "VideoStarted": {"id": _ID, "job_id": 7, "how": "submitted"},
    "ShownVersion": {"id": _ID, "version": 1},
    "KeptVersion": {"id": _ID, "version": 1, "keep": True, "changed": True},
    "Page_Video_": {"items": [LINE], "next": None},
}

# A job for the same bytes and wishes was there before: the answer of 200.
GOES_ON = {"id": _ID, "job_id": 7, "how": "continued"}

NOTES = ApiNotes(
    examples=EXAMPLES,
    tags={
        "videos": "Films by the video they belong to: versions, playback, re-transcode",
        "media": "Playlists, segments and pictures for players",
    },
    optional_key=("/media/",),
)
