"""The plan of one job, as `fetch` has made it: every later stage works by this, and by nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from telecine.media.orders import AudioTrackOrder, Init, Rung, Timing
from telecine.media.source import Picture, Sound

# Version of the stages that look at the source and make pictures and sound. It changes with what pictures look like,
# how long the sound is or what the inits hold: a film is never made half by one release and half by another.
PICTURES = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceLocation:
    """Where workers read the source: a file in place, which must stay as it is, an upload, or what `fetch` kept."""

    path: str | None = None
    identity: tuple[int, ...] = ()  # of the file: size, time of change, inode, device
    upload: str | None = None  # its id
    artifact: str | None = None  # its name among what `fetch` kept
    size: int = 0
    sha256: str = ""  # of the bytes that came in, also where workers read a remuxed copy


@dataclass(frozen=True, slots=True, kw_only=True)
class AudioPlan:
    """One audio track: what it is made of, and what it becomes."""

    track: AudioTrackOrder
    sound: Sound
    start: int  # PTS of the film's first moment, in the stream's time base
    default: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SkippedRung:
    name: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TranscodePlan:
    """What is made of the source. A film without pictures has a grid of milliseconds."""

    origin: SourceLocation
    format: str
    picture: Picture | None
    timing: Timing
    length: Fraction
    borders: tuple[Fraction, ...]  # when each segment begins, in seconds
    rungs: tuple[Rung, ...]
    skipped: tuple[SkippedRung, ...]
    sounds: tuple[AudioPlan, ...]
    inits: dict[str, Init]  # by rung or track; `path` is the artifact's name
    init_stage: str = "fetch"  # whose inits of pictures count
    video_stage: str = "video"  # and whose segments: what another encoder had made is left aside
    carried: tuple[str, ...] = ()  # rungs and tracks taken over from the version before
    carried_ids: tuple[int, ...] = ()  # and the artifacts that they consist of
    verify: str = "sample"
    mend: bool = False  # what cannot be decoded is stood in for, with a warning; else it fails the job
    poster: bool = True
    sprites: bool = True
    sound_length: Fraction | None = None  # where it goes on a little longer than the pictures
    lead: int = 0  # frames at the start that show the first picture before its time: the sound starts earlier
    warnings: tuple[str, ...] = ()
    pictures: int = 1  # the `PICTURES` that it was made with; older releases did not record it

    @property
    def segments(self) -> int:
        return len(self.borders)

    @property
    def heard(self) -> Fraction:
        """How long the sound lasts."""
        return self.sound_length or self.length

    @property
    def made(self) -> tuple[Rung, ...]:
        """The rungs that this job encodes itself."""
        return tuple(rung for rung in self.rungs if rung.name not in self.carried)

    @property
    def source_name(self) -> str:
        return self.origin.path or "the source"


def piece_name(rung: str, number: int) -> str:
    """What a segment is called among the artifacts of its task."""
    return f"{rung}/{number:05d}.m4s"


def init_name(rung: str) -> str:
    return f"{rung}/init.mp4"
