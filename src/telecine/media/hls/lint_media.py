"""Rules for one rendition: what its lists say against what its bytes are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from math import floor

from telecine.errors import TelecineError
from telecine.media.hls.lint_text import Playlist, parse
from telecine.media.mp4.boxes import InitFacts, fragments, read_init

Read = Callable[[str], bytes]

MAP = "RFC 8216 4.3.2.5"
FORM = "RFC 8216 4.3.1"
MISSING = "RFC 8216 6.2.1"
TARGET = "RFC 8216 4.3.3.1"
KIND = "RFC 8216 4.3.3.5"
START = "RFC 8216 4.3.5.2"
CONTINUOUS = "RFC 8216 4.3.2.3"
INDEPENDENT = "RFC 8216 4.3.5.1"
SUMS = "Apple 8.1"
KEYFRAMES = "Apple 6.10"
LOWEST_VERSION = 7
UNREADABLE = (OSError, LookupError, ValueError, TelecineError)  # damage is a ValueError


@dataclass(frozen=True, slots=True, kw_only=True)
class LintFinding:
    """One rule that is broken: which, in which list, and what is wrong in one sentence."""

    clause: str
    where: str
    what: str

    def __str__(self) -> str:
        return f"{self.where}: {self.what} ({self.clause})"


@dataclass(frozen=True, slots=True, kw_only=True)
class LintedFragment:
    """A fragment: where it lies in its segment, when it begins, and where its first sample ends."""

    offset: int
    start: int
    head: int
    key: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredSegment:
    """A segment as its bytes are. Times are in ticks of its track."""

    size: int
    start: int
    duration: int
    frames: int
    shots: tuple[LintedFragment, ...]


Measure = Callable[[str, InitFacts], MeasuredSegment]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadRendition:
    """A rendition whose lists and bytes could be read. `segments` follow the entries of the list."""

    listed: Playlist
    init: InitFacts
    segments: tuple[MeasuredSegment, ...]

    @property
    def frame(self) -> Fraction:
        """How long its longest frame is shown, in seconds."""
        most = max((Fraction(one.duration, one.frames) for one in self.segments), default=Fraction(0))
        return most / self.init.timescale

    @property
    def borders(self) -> list[Fraction]:
        """When each segment begins, and at last the end."""
        lengths = accumulate((one.duration for one in self.segments), initial=0)
        return [Fraction(at, self.init.timescale) for at in lengths]

    @property
    def parts(self) -> list[tuple[int, Fraction]]:
        return [(one.size, Fraction(one.duration, self.init.timescale)) for one in self.segments]


def measured(data: bytes, init: InitFacts) -> MeasuredSegment:
    """Measure a segment. `Damaged` if it is none."""
    found = fragments(data, init)
    return MeasuredSegment(
        size=len(data),
        start=found[0].start,
        duration=sum(one.duration for one in found),
        frames=sum(one.frames for one in found),
        shots=tuple(
            LintedFragment(offset=one.offset, start=one.start, head=one.first_end, key=one.first_is_key)
            for one in found
        ),
    )


def hear(uri: str, read: Read, measure: Measure) -> tuple[ReadRendition | None, list[LintFinding]]:
    """Read a media list and all that it names. What cannot be read is a finding; then there is nothing to judge."""
    listed, findings = open_list(uri, read)
    if listed is None:
        return None, findings
    if listed.map is None:
        return None, [*findings, LintFinding(clause=MAP, where=uri, what="EXT-X-MAP is missing")]
    try:
        init = read_init(read(listed.map))
    except UNREADABLE as error:
        return None, [*findings, LintFinding(clause=MAP, where=listed.map, what=f"the init cannot be read: {error}")]
    segments = []
    for entry in listed.entries:
        try:
            segments.append(measure(entry.uri, init))
        except UNREADABLE as error:
            findings.append(LintFinding(clause=MISSING, where=uri, what=f"{entry.uri} cannot be read: {error}"))
    if len(segments) < len(listed.entries):
        return None, findings
    return ReadRendition(listed=listed, init=init, segments=tuple(segments)), findings


def open_list(uri: str, read: Read) -> tuple[Playlist | None, list[LintFinding]]:
    try:
        listed = parse(uri, read(uri).decode())
    except UNREADABLE as error:
        return None, [LintFinding(clause=MISSING, where=uri, what=f"the list cannot be read: {error}")]
    return listed, list(_form(listed))


def _form(listed: Playlist) -> Iterator[LintFinding]:
    if not listed.begins:
        yield LintFinding(clause=FORM, where=listed.uri, what="the first line is not #EXTM3U")
    version = listed.number("X-VERSION")
    if version is None or version < LOWEST_VERSION:
        said = "missing" if version is None else f"{version}"
        yield LintFinding(
            clause=FORM, where=listed.uri, what=f"EXT-X-VERSION is {said}, at least {LOWEST_VERSION} is due"
        )


def judge(one: ReadRendition) -> list[LintFinding]:
    """Every rule that a media list can break by itself."""
    return [*_kind(one.listed), *target_holds(one.listed), *_sums(one), *_continuous(one), *_independent(one)]


def _kind(listed: Playlist) -> Iterator[LintFinding]:
    kind = listed.tags.get("X-PLAYLIST-TYPE")
    if kind not in ("VOD", "EVENT"):
        yield LintFinding(clause=KIND, where=listed.uri, what=f"EXT-X-PLAYLIST-TYPE is {kind}, neither VOD nor EVENT")
    if kind == "VOD" and not listed.ends:
        yield LintFinding(clause=KIND, where=listed.uri, what="a VOD list has no EXT-X-ENDLIST")
    if kind == "EVENT" and not listed.ends and listed.tags.get("X-START") != "TIME-OFFSET=0":
        yield LintFinding(clause=START, where=listed.uri, what="players begin a growing list near its end: EXT-X-START")


def target_holds(listed: Playlist) -> Iterator[LintFinding]:
    target = listed.number("X-TARGETDURATION")
    if target is None or target.denominator != 1:
        yield LintFinding(clause=TARGET, where=listed.uri, what="EXT-X-TARGETDURATION is no whole number")
        return
    for entry in listed.entries:
        if floor(entry.length + Fraction(1, 2)) > target:
            what = f"{entry.uri} lasts {float(entry.length)} s, more than the target {target} s and a half"
            yield LintFinding(clause=TARGET, where=listed.uri, what=what)


def _sums(one: ReadRendition) -> Iterator[LintFinding]:
    told = accumulate((entry.length for entry in one.listed.entries), initial=Fraction(0))
    for number, (said, truth) in enumerate(zip(told, one.borders, strict=True)):
        if abs(said - truth) >= max(one.frame, Fraction(1, 1000)):
            what = f"{number} EXTINF add up to {float(said):.6f} s, the bytes to {float(truth):.6f} s"
            yield LintFinding(clause=SUMS, where=one.listed.uri, what=what)
            return


def _continuous(one: ReadRendition) -> Iterator[LintFinding]:
    due = 0
    for entry, segment in zip(one.listed.entries, one.segments, strict=True):
        if segment.start != due:
            what = f"{entry.uri} begins at tick {segment.start}, the one before ends at {due}"
            yield LintFinding(clause=CONTINUOUS, where=one.listed.uri, what=what)
            return
        due += segment.duration


def _independent(one: ReadRendition) -> Iterator[LintFinding]:
    for entry, segment in zip(one.listed.entries, one.segments, strict=True):
        if not segment.shots[0].key:
            what = f"{entry.uri} does not begin with a keyframe"
            yield LintFinding(clause=INDEPENDENT, where=one.listed.uri, what=what)


def judge_iframes(uri: str, read: Read, one: ReadRendition) -> list[LintFinding]:
    """The I-frame list of a rendition: byte ranges of keyframes in its segments, and when they are shown."""
    listed, findings = open_list(uri, read)
    if listed is None:
        return findings
    if "X-I-FRAMES-ONLY" not in listed.tags:
        findings.append(LintFinding(clause="RFC 8216 4.3.3.6", where=uri, what="EXT-X-I-FRAMES-ONLY is missing"))
    keys = {
        (entry.uri, shot.head, shot.offset): Fraction(shot.start, one.init.timescale)
        for entry, segment in zip(one.listed.entries, one.segments, strict=True)
        for shot in segment.shots
        if shot.key
    }
    findings += [*_kind(listed), *target_holds(listed), *_ranges(listed, keys, one.frame)]
    if one.listed.ends and len(listed.entries) < len(keys):
        what = f"{len(listed.entries)} of {len(keys)} keyframes are listed"
        findings.append(LintFinding(clause=KEYFRAMES, where=uri, what=what))
    return findings


def _ranges(listed: Playlist, keys: dict[tuple[str, int, int], Fraction], frame: Fraction) -> Iterator[LintFinding]:
    told = Fraction(0)
    for entry in listed.entries:
        size, offset = entry.range or (0, 0)
        truth = keys.get((entry.uri, size, offset))
        if truth is None:
            what = f"{size} bytes at {offset} of {entry.uri} are not the moof and first sample of a keyframe"
            yield LintFinding(clause=KEYFRAMES, where=listed.uri, what=what)
        elif abs(told - truth) >= frame:
            what = f"a keyframe at {float(truth):.6f} s is listed at {float(told):.6f} s"
            yield LintFinding(clause=SUMS, where=listed.uri, what=what)
            return
        told += entry.length
