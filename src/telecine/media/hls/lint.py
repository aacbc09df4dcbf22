"""Check an HLS film against Apple's authoring rules and RFC 8216, from its master down to the bytes of its segments.

A finding names the clause that is broken. A growing film (EVENT) is held to the same rules, except those that only a
whole film can meet: measured bandwidth and equal total lengths.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path

from telecine.media.hls.lint_media import (
    INDEPENDENT,
    MISSING,
    LintFinding,
    Measure,
    Read,
    ReadRendition,
    hear,
    judge,
    judge_iframes,
    measured,
    open_list,
)
from telecine.media.hls.lint_text import Playlist, Variant
from telecine.media.hls.recorded_film import DEFAULT_HEIGHT, average, nearest, peak

VARIANT = "RFC 8216 4.3.4.2"
GROUP = "RFC 8216 4.3.4.1"
NEAR = Fraction(1, 10)


def check_folder(folder: Path, master: str = "master.m3u8") -> list[LintFinding]:
    """Check a film that lies in a folder."""
    return check(lambda uri: (folder / uri).read_bytes(), master)


def check(read: Read, master: str = "master.m3u8", measure: Measure | None = None) -> list[LintFinding]:
    """Check the film behind this master; `read` gets URIs that are resolved against `master`.

    `measure` spares reading every segment, if its facts are known from elsewhere.
    """
    listed, findings = open_list(master, read)
    if listed is None:
        return findings
    look = measure or (lambda uri, init: measured(read(uri), init))
    renditions: dict[str, ReadRendition] = {}
    for uri in dict.fromkeys(one.uri for one in (*listed.variants, *listed.media) if one.uri):
        one, found = hear(uri, read, look)
        findings += found
        if one is not None:
            renditions[uri] = one
            findings += judge(one)
    film = _Film(listed, renditions)
    return [*findings, *film.master(), *film.variants(), *film.groups(), *film.together(), *film.iframes(read)]


class _Film:
    """A master and those of its renditions that could be read."""

    def __init__(self, master: Playlist, renditions: dict[str, ReadRendition]) -> None:
        self._master = master
        self._renditions = renditions
        self._videos = [one for one in renditions.values() if one.init.kind == "vide"]
        self._whole = all(one.listed.ends for one in renditions.values())
        self._target = max((int(one.listed.number("X-TARGETDURATION") or 0) for one in renditions.values()), default=0)

    def master(self) -> Iterator[LintFinding]:
        master = self._master
        if not master.variants:
            yield self._found(VARIANT, "there is no EXT-X-STREAM-INF")
        if "X-INDEPENDENT-SEGMENTS" not in master.tags:
            yield self._found(INDEPENDENT, "EXT-X-INDEPENDENT-SEGMENTS is missing")
        sides = [min(size) for size in map(_size, master.variants) if size]
        if sides and abs(sides[0] - DEFAULT_HEIGHT) > min(abs(side - DEFAULT_HEIGHT) for side in sides):
            yield self._found("Apple 1.32", f"the first variant is {sides[0]}p, not the one nearest to 540p")

    def variants(self) -> Iterator[LintFinding]:
        for variant in self._master.variants:
            one = self._renditions.get(variant.uri)
            if one is None:
                continue
            audios = self._audios(variant)
            yield from self._codecs(variant, [one, *audios])
            yield from self._rates(variant, one, audios)
            if one.init.kind == "vide":
                yield from self._picture(variant, one)

    def _codecs(self, variant: Variant, heard: Sequence[ReadRendition]) -> Iterator[LintFinding]:
        said = {codec.strip().lower() for codec in (variant.get("CODECS") or "").split(",")}
        truth = {one.init.codecs.lower() for one in heard}
        if said != truth:
            yield self._found(VARIANT, f"CODECS of {variant.uri} are {_words(said)}, the inits say {_words(truth)}")

    def _rates(self, variant: Variant, one: ReadRendition, audios: Sequence[ReadRendition]) -> Iterator[LintFinding]:
        """The stream's own rate, and on top of it the most expensive of its audio tracks."""
        beside = [audio.parts for audio in audios]
        if one.init.kind != "vide":  # the stream is one of the tracks
            beside, own = [one.parts, *beside], [(0, Fraction(1))]
        else:
            own = one.parts
        peaks = [peak(own, self._target or 1), max((peak(parts, self._target or 1) for parts in beside), default=0)]
        means = [average(own), max(map(average, beside), default=0)]
        yield from self._covered(variant, sum(peaks))
        if self._whole:
            yield from self._near(variant, "BANDWIDTH", sum(peaks), "Apple 1.27")
            yield from self._near(variant, "AVERAGE-BANDWIDTH", sum(means), "Apple 1.26")

    def _covered(self, variant: Variant, truth: int) -> Iterator[LintFinding]:
        """BANDWIDTH is an upper bound, also while the film grows and it is only planned."""
        said = variant.number("BANDWIDTH")
        if said is None:
            if not self._whole:  # else `_near` says so
                yield self._found(VARIANT, f"{variant.uri} has no BANDWIDTH")
        elif said < truth and not (self._whole and said < (1 - NEAR) * truth):
            yield self._found(VARIANT, f"BANDWIDTH of {variant.uri} is {said}, but its segments need {truth}")

    def _near(self, variant: Variant, name: str, truth: int, clause: str) -> Iterator[LintFinding]:
        said = variant.number(name)
        if said is None:
            yield self._found(VARIANT, f"{variant.uri} has no {name}")
        elif abs(said - truth) > NEAR * truth:
            yield self._found(clause, f"{name} of {variant.uri} is {said}, measured was {truth}")

    def _picture(self, variant: Variant, one: ReadRendition) -> Iterator[LintFinding]:
        if _size(variant) != (one.init.width, one.init.height):
            truth = f"{one.init.width}x{one.init.height}"
            yield self._found(VARIANT, f"RESOLUTION of {variant.uri} is {variant.get('RESOLUTION')}, not {truth}")
        for name, words in (("VIDEO-RANGE", ("SDR", "PQ", "HLG")), ("CLOSED-CAPTIONS", ("NONE",))):
            if variant.get(name) not in words:
                yield self._found(VARIANT, f"{name} of {variant.uri} is {variant.get(name)}, not {_words(words)}")
        said = variant.number("FRAME-RATE")
        if one.frame and (said is None or abs(said - 1 / one.frame) > Fraction(1, 1000)):
            yield self._found(VARIANT, f"FRAME-RATE of {variant.uri} is {said}, not {float(1 / one.frame):.3f}")

    # --- audio groups ------------------------------------------------------------------------------------------------

    def groups(self) -> Iterator[LintFinding]:
        defined = {one.get("GROUP-ID") for one in self._master.media if one.get("TYPE") == "AUDIO"}
        named = {variant.get("AUDIO") for variant in self._master.variants} - {None}
        for group in sorted(map(str, named ^ defined)):
            wrong = "is named but not defined" if group in named else "is defined but no variant names it"
            yield self._found(GROUP, f"audio group {group!r} {wrong}")
        for group in sorted(map(str, defined)):
            members = [one for one in self._master.media if one.get("GROUP-ID") == group]
            names = [one.get("NAME") for one in members]
            if len(set(names)) < len(names) or None in names:
                yield self._found(GROUP, f"two tracks of audio group {group!r} have one name")
            if sum(one.get("DEFAULT") == "YES" for one in members) != 1:
                yield self._found(GROUP, f"audio group {group!r} needs exactly one default")

    def _audios(self, variant: Variant) -> list[ReadRendition]:
        tracks = [one for one in self._master.media if one.get("GROUP-ID") == variant.get("AUDIO")]
        return [self._renditions[one.uri] for one in tracks if one.uri in self._renditions]

    # --- across renditions -------------------------------------------------------------------------------------------

    def together(self) -> Iterator[LintFinding]:
        for one in self._renditions.values():
            target = one.listed.number("X-TARGETDURATION")
            if target != self._target:
                what = f"the target duration is {target}, another rendition's is {self._target}"
                yield LintFinding(clause="Apple 8.2", where=one.listed.uri, what=what)
        for one in self._videos[1:]:
            first = self._videos[0]
            shared = None if self._whole else min(len(one.borders), len(first.borders))
            if one.borders[:shared] != first.borders[:shared]:
                what = f"segments do not begin where those of {first.listed.uri} do"
                yield LintFinding(clause="Apple 8.22", where=one.listed.uri, what=what)
        yield from self._lengths()

    def _lengths(self) -> Iterator[LintFinding]:
        if not self._whole or not self._renditions:
            return
        first = next(iter(self._renditions.values()))
        for one in self._renditions.values():
            mine, other = one.borders[-1], first.borders[-1]
            # Audio ends at a whole frame of its own, with the encoder's delay before it.
            if abs(mine - other) > one.frame + first.frame + Fraction(2048, 44_100):
                what = f"lasts {float(mine):.3f} s, {first.listed.uri} lasts {float(other):.3f} s"
                yield LintFinding(clause="Apple 8.3", where=one.listed.uri, what=what)

    # --- I-frames ----------------------------------------------------------------------------------------------------

    def iframes(self, read: Read) -> Iterator[LintFinding]:
        sizes = {_size(one) for one in self._master.iframes}
        for variant in self._master.variants:
            one = self._renditions.get(variant.uri)
            if one is not None and one.init.kind == "vide" and _size(variant) not in sizes:
                yield self._found("Apple 6.1", f"{variant.uri} has no I-frame playlist")
        for variant in self._master.iframes:
            one = self._source(variant, read)
            if one is None:
                yield self._found(MISSING, f"{variant.uri} belongs to no rendition")
                continue
            yield from judge_iframes(variant.uri, read, one)
            yield from self._codecs(variant, [one])
            if self._whole:
                yield from self._iframe_rates(variant, read)

    def _source(self, variant: Variant, read: Read) -> ReadRendition | None:
        listed, _ = open_list(variant.uri, read)
        inits = {one.listed.map: one for one in self._videos}
        return inits.get(listed.map if listed else None)

    def _iframe_rates(self, variant: Variant, read: Read) -> Iterator[LintFinding]:
        listed, _ = open_list(variant.uri, read)
        parts = [(entry.range[0], entry.length) for entry in listed.entries if entry.range] if listed else []
        if parts:
            yield from self._near(variant, "BANDWIDTH", peak(parts, nearest(part[1] for part in parts)), "Apple 1.27")

    def _found(self, clause: str, what: str) -> LintFinding:
        return LintFinding(clause=clause, where=self._master.uri, what=what)


def _size(variant: Variant) -> tuple[int, int] | None:
    wide, _, high = (variant.get("RESOLUTION") or "").partition("x")
    return (int(wide), int(high)) if wide.isdecimal() and high.isdecimal() else None


def _words(words: Sequence[str] | set[str]) -> str:
    return ", ".join(sorted(words)) or "nothing"
