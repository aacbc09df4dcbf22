"""Read playlists, ours or anybody's, into values that rules can look at."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from fractions import Fraction
from posixpath import dirname, join, normpath
from urllib.parse import unquote

_ATTRIBUTE = re.compile(r'([A-Z0-9-]+)=("[^"]*"|[^",]*)')


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaylistEntry:
    """A segment or a part of one, as a media list names it."""

    uri: str
    length: Fraction
    range: tuple[int, int] | None = None  # size and offset


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """A tag of the master with the list that it names; `uri` is empty if it names none."""

    attributes: dict[str, str]
    uri: str

    def get(self, name: str) -> str | None:
        said = self.attributes.get(name)
        return None if said is None else said.strip('"')

    def number(self, name: str) -> Fraction | None:
        return number(self.get(name))


@dataclass(frozen=True, slots=True, kw_only=True)
class Playlist:
    """What a list says. URIs are resolved: they count from where the reader counts."""

    uri: str
    begins: bool  # with #EXTM3U
    tags: dict[str, str] = field(default_factory=dict)  # those that stand for themselves, without #EXT-
    entries: tuple[PlaylistEntry, ...] = ()
    variants: tuple[Variant, ...] = ()
    iframes: tuple[Variant, ...] = ()
    media: tuple[Variant, ...] = ()
    map: str | None = None

    @property
    def ends(self) -> bool:
        return "X-ENDLIST" in self.tags

    def number(self, tag: str) -> Fraction | None:
        return number(self.tags.get(tag))


def parse(uri: str, text: str) -> Playlist:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    reading = _Reading(uri)
    for line in lines:
        if line.startswith("#EXT"):
            name, _, value = line.removeprefix("#EXT").lstrip("-").partition(":")
            reading.tag(name, value)
        elif not line.startswith("#"):
            reading.link(line)
    return Playlist(
        uri=uri,
        begins=lines[:1] == ["#EXTM3U"],
        tags=reading.tags,
        entries=tuple(reading.entries),
        variants=tuple(reading.variants),
        iframes=tuple(reading.iframes),
        media=tuple(reading.media),
        map=reading.map,
    )


def number(text: str | None) -> Fraction | None:
    return Fraction(text) if text and re.fullmatch(r"-?\d+(\.\d+)?", text) else None


class _Reading:
    """The state between two lines."""

    def __init__(self, uri: str) -> None:
        self._uri = uri
        self.tags: dict[str, str] = {}
        self.entries: list[PlaylistEntry] = []
        self.variants: list[Variant] = []
        self.iframes: list[Variant] = []
        self.media: list[Variant] = []
        self.map: str | None = None
        self._length: Fraction | None = None
        self._range: tuple[int, int] | None = None
        self._stream: dict[str, str] | None = None

    def tag(self, name: str, value: str) -> None:
        match name:
            case "INF":
                self._length = number(value.partition(",")[0])
            case "X-BYTERANGE":
                size, _, offset = value.partition("@")
                self._range = (int(number(size) or 0), int(number(offset) or 0))
            case "X-STREAM-INF":
                self._stream = _attributes(value)
            case "X-I-FRAME-STREAM-INF":
                self.iframes.append(self._named(value))
            case "X-MEDIA":
                self.media.append(self._named(value))
            case "X-MAP":
                self.map = self._named(value).uri
            case _:
                self.tags[name] = value

    def link(self, line: str) -> None:
        uri = self._resolved(line)
        if self._stream is not None:
            self.variants.append(Variant(attributes=self._stream, uri=uri))
        else:
            self.entries.append(PlaylistEntry(uri=uri, length=self._length or Fraction(0), range=self._range))
        self._stream = self._length = self._range = None

    def _named(self, value: str) -> Variant:
        attributes = _attributes(value)
        said = attributes.get("URI", "").strip('"')
        return Variant(attributes=attributes, uri=self._resolved(said) if said else "")

    def _resolved(self, said: str) -> str:
        return normpath(join(dirname(self._uri), unquote(said)))


def _attributes(text: str) -> dict[str, str]:
    return dict(_ATTRIBUTE.findall(text))
