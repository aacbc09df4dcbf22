"""Uploads as they are shown."""

from __future__ import annotations

from pydantic import BaseModel, Field

from telecine.engine.uploads.records import DONE, Upload


class UploadResponse(BaseModel):
    """One file on its way in, and what became of it."""

    id: str = Field(examples=["9f2c4e0b7a1d4f6c8e3b5a7d9c1e2f40"])
    name: str = Field(examples=["holiday.mp4"])
    state: str = Field(examples=["done"], description="`open`, `checking`, `done` or `refused`")
    length: int = Field(examples=[1_048_576])
    received: int = Field(examples=[1_048_576])
    progress: float = Field(examples=[1.0], description="From 0 to 1: how much has come")
    sha256: str | None = Field(None, description="Of the whole file, once it was looked at")
    video: str | None = Field(None, examples=["holiday-3f9a2c41"])
    job: int | None = Field(None, examples=[7])
    how: str | None = Field(
        None,
        examples=["submitted"],
        description="`submitted`: a new job; `continued`: one that was under way does it; `made before`",
    )
    error: str | None = Field(None, description="Why it was refused")
    created_at: int
    updated_at: int
    expires_at: int | None = Field(None, description="When it goes if no byte comes; a refused one, anyway")


class UploadList(BaseModel):
    items: list[UploadResponse]
    next: str | None = Field(None, description="Cursor of the next page; null: there is none")


def shown(upload: Upload) -> UploadResponse:
    same = ("id", "name", "state", "length", "received", "sha256", "how", "error", "created_at", "updated_at")
    return UploadResponse(
        **{name: getattr(upload, name) for name in same},
        progress=upload.received / max(1, upload.length),
        video=upload.subject_id,
        job=upload.job_id,
        expires_at=None if upload.state == DONE else upload.expires_at,
    )


def headers_of(upload: Upload) -> dict[str, str]:
    """How it stands, for whoever reads headers only."""
    found = {"Upload-Offset": str(upload.received), "Telecine-State": upload.state}
    if upload.subject_id is not None:
        made = {"Telecine-Video": upload.subject_id, "Telecine-Job": str(upload.job_id)}
        found |= {**made, "Telecine-How": str(upload.how)}
    return found
