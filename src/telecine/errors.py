"""Every error that we raise on purpose. The message is what the reader needs in order to act.

TelecineError
  NotFound               no such job, task, worker or lock
  Refused                the request makes no sense as it is
    BadFlow              a flow that cannot be registered (cycle, falling phase, …)
    BadSpec              a submit, an edit or an option with a wrong value
    UnknownSetting       a setting that does not exist; names the nearest
  Conflict               the request is fine but the world says no
    KeyReused            an idempotency key came back with another body
    DedupeTaken          another unfinished job holds the dedupe key
    VersionMismatch      somebody edited the job in between
    WrongState           e.g. retry of a job that has not failed
    LockHeld             somebody else holds the named lock
  NotAllowed             the caller may not do this
    KeyInvalid           no key, or one that is unknown, revoked or expired
    WorkerRevoked        somebody shut this worker out: it does not come back by itself
  TooMany                too many requests: slow down
  TooLarge               a request that is larger than what is read
  NoSpace                the disk has no room for what is announced
  LeaseLost              the token is not current, or the lease has run out
  LockLost               the named lock ran out or was taken over
  WorkerGone             the worker is unknown or was given up: register again
  StoreError
    Unreachable          the database did not answer; nothing is known about the last request
    Rejected             the database refuses this very request: to repeat it is useless
    StoreBroken          the database answers with an error that is neither an outage nor about the request
    SchemaTooNew         the database was migrated by a newer release
    SchemaMissing        the database was never migrated
  ArtifactError          bytes could not be stored, read or deleted
    ArtifactDamaged      bytes are not those that were recorded
    ArtifactsFull        there is no space for them; also a NoSpace
  MediaError             work on media went wrong
    ChildFailed          the media child said so, or ended without a last word
    MediaRefused         this source is not taken: no repetition helps, another source or setting does
    SourceUnreachable    the place of a source does not answer, or breaks off: later it may
  HandlerStopped         raised inside a handler whose lease is gone or whose job was cancelled
"""

from __future__ import annotations

import errno
import re

# No space, a quota that is used up, or a bound on files that a process has.
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
# Where the client of a bucket looks for credentials when nobody gave it any.
METADATA_SERVICES = ("169.254.169.254", "169.254.170.2", "[fd00:ec2::254]", "/latest/api/token", "/latest/meta-data")
NO_CREDENTIALS = (
    "no credentials for the bucket: set s3_access_key_id and s3_secret_access_key (or AWS_ACCESS_KEY_ID and "
    "AWS_SECRET_ACCESS_KEY)"
)
_CODE = re.compile(r"\(os error (\d+)\)")  # as the store of artifacts tells an errno


class TelecineError(Exception):
    """Root of the tree above."""

    code = "error"


class NotFound(TelecineError):
    code = "not_found"


class Refused(TelecineError):
    code = "refused"


class BadFlow(Refused):
    code = "bad_flow"


class BadSpec(Refused):
    code = "bad_spec"


class UnknownSetting(Refused):
    code = "unknown_setting"


class Conflict(TelecineError):
    code = "conflict"


class KeyReused(Conflict):
    code = "key_reused"


class DedupeTaken(Conflict):
    code = "dedupe_taken"

    def __init__(self, key: str, job_id: int) -> None:
        super().__init__(f"dedupe key {key!r} is held by job {job_id}, which has not finished")
        self.key = key
        self.job_id = job_id


class VersionMismatch(Conflict):
    code = "version_mismatch"


class WrongState(Conflict):
    code = "wrong_state"


class LockHeld(Conflict):
    code = "lock_held"


class NotAllowed(TelecineError):
    code = "not_allowed"


class KeyInvalid(NotAllowed):
    code = "key_invalid"


class TooMany(TelecineError):
    code = "too_many_requests"

    def __init__(self, message: str, seconds: float) -> None:
        super().__init__(message)
        self.seconds = seconds  # until another try makes sense


class TooLarge(TelecineError):
    code = "too_large"


class QuotaExceeded(TooLarge):
    code = "quota_exceeded"


class NoSpace(TelecineError):
    code = "no_space"


class LeaseLost(TelecineError):
    code = "lease_lost"

    def __init__(self, task_id: int, token: int, code: str = "lease_lost") -> None:
        super().__init__(f"task {task_id}: token {token} is refused ({code}); stop working on it")
        self.task_id = task_id
        self.token = token
        self.code = code


class LockLost(TelecineError):
    code = "lock_lost"


class WorkerGone(TelecineError):
    code = "worker_gone"


class WorkerRevoked(NotAllowed):
    code = "worker_revoked"


class StoreError(TelecineError):
    code = "store_error"


class Unreachable(StoreError):
    code = "unreachable"


class Rejected(StoreError):
    code = "rejected"


class StoreBroken(StoreError):
    code = "store_broken"


class SchemaTooNew(StoreError):
    code = "schema_too_new"


class SchemaMissing(StoreError):
    code = "schema_missing"


class ArtifactError(TelecineError):
    code = "artifact_error"


class ArtifactDamaged(ArtifactError):
    code = "artifact_damaged"


class ArtifactsFull(ArtifactError, NoSpace):
    code = "no_space"


class MediaError(TelecineError):
    code = "media_error"
    permanent = False  # to try again may help


class ChildFailed(MediaError):
    code = "child_failed"

    def __init__(self, message: str, *, code: str = "child_failed", permanent: bool = False) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.permanent = permanent


class MediaRefused(MediaError):
    code = "media_refused"
    permanent = True

    def __init__(self, message: str, *, code: str = "media_refused") -> None:
        super().__init__(message)
        self.code = code


class SourceUnreachable(MediaError):
    code = "source_unreachable"


class HandlerStopped(TelecineError):
    code = "handler_stopped"


def is_full(error: Exception) -> bool:
    """Whether there was no space, by what the system said."""
    if isinstance(error, OSError) and error.errno is not None:
        return error.errno in FULL
    return any(int(code) in FULL for code in _CODE.findall(str(error)))


def lacks_credentials(error: Exception) -> bool:
    """Whether a bucket's client found no key and asked the cloud's metadata service for one, in vain."""
    words = str(error)
    return any(place in words for place in METADATA_SERVICES)
