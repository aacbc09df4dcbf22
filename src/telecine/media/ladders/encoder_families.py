"""Encoder families, as data: which encoder makes a rendition, with which options, each with its reason.

A family is fixed in the plan and is a label of the rendition's tasks: pieces of two families do not fit together.
Hardware is named here, tried by a test encode (`trial`) where a worker starts, and left for `fallback` if it fails.
Values are templates over the rung and `{gop}`.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from telecine.media.orders import ChildLimits, MakeInits, Rung


@dataclass(frozen=True, slots=True)
class EncoderOption:
    """One option of an encoder, and why it is there."""

    name: str
    value: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EncoderFamily:
    """One way to make H.264. `params` go to the encoder in one string, `params_name`."""

    name: str
    codec: str
    label: str | None  # what a worker must offer; None: every worker can
    options: tuple[EncoderOption, ...]
    lossless: tuple[EncoderOption, ...] = ()  # instead of `options`; none: it cannot
    params: tuple[EncoderOption, ...] = ()
    params_name: str = ""
    pixels: str = "yuv420p"
    fallback: str | None = None
    hardware: bool = False

    @property
    def needs(self) -> tuple[str, ...]:
        """What must be reachable in the sandbox besides the scratch folder: the driver and what it loads."""
        return _DRIVER if self.hardware else ()


_DRIVER = ("/dev/dri", "/dev/nvidia*", "/dev/kfd", "/usr/lib", "/usr/lib64", "/lib", "/lib64", "/etc", "/proc", "/sys")

_QUALITY = (
    EncoderOption("crf", "{crf}", "constant quality: chunks need not share a bit budget"),
    EncoderOption("maxrate", "{encoder_maxrate}", "the cap that documents and the master playlist promise"),
    EncoderOption("bufsize", "{bufsize}", "over how long the rate may be higher"),
    EncoderOption("rc_init_occupancy", "{encoder_occupancy}", "a full buffer would raise every chunk above the cap"),
)
_PINNED = (
    EncoderOption("preset", "{preset}", "decides transforms and references, which stand in the init"),
    EncoderOption("level", "{level}", "left to the encoder it follows the bit rate, and the init with it"),
    EncoderOption("a53cc", "0", "no captions in the pictures: the master playlist says that there are none"),
)
_STITCHED = (
    EncoderOption(
        "stitchable", "1", "without it the quality of a chunk stands in the PPS, and each needs its own init"
    ),
    EncoderOption("keyint", "{gop}", "one GOP per fragment: all rungs cut at the same frame"),
    EncoderOption("min-keyint", "{gop}", "no earlier one either"),
    EncoderOption("scenecut", "0", "nor one where the picture changes"),
    EncoderOption("open-gop", "0", "a segment must decode alone"),
)

X264 = EncoderFamily(
    name="x264",
    codec="libx264",
    label=None,
    options=(*_PINNED, EncoderOption("profile", "{profile}", "stands in the init and in CODECS"), *_QUALITY),
    lossless=(
        *_PINNED,
        EncoderOption("profile", "high444", "the only one with a lossless mode"),
        EncoderOption("qp", "0", "no loss at all: proofs compare pictures"),
    ),
    params_name="x264-params",
    params=(
        *_STITCHED,
        EncoderOption("ref", "{refs}", "presets differ here; the init must not"),
        EncoderOption("bframes", "{bframes}", "the same"),
    ),
)

# A second software family: whatever is said about families can be tried on any machine.
X264_ALT = EncoderFamily(
    name="x264-alt",
    codec="libx264",
    label="alt",
    options=X264.options,
    lossless=X264.lossless,
    params_name="x264-params",
    params=(
        *_STITCHED,
        EncoderOption("ref", "1", "another init than x264's, so that mixing them is noticed"),
        EncoderOption("bframes", "0", "the same"),
        EncoderOption("weightp", "0", "the same"),
    ),
    fallback="x264",
)

NVENC = EncoderFamily(
    name="nvenc",
    codec="h264_nvenc",
    label="nvenc",
    options=(
        EncoderOption("preset", "p4", "the middle one: the card is fast enough for it"),
        EncoderOption("tune", "hq", "film, not a call"),
        EncoderOption("profile", "{profile}", "stands in the init and in CODECS"),
        EncoderOption("level", "{level}", "stands in the init"),
        EncoderOption("rc", "vbr", "with cq: constant quality below a peak"),
        EncoderOption("cq", "{crf}", "near enough to x264's scale"),
        *_QUALITY[1:],
        EncoderOption("g", "{gop}", "one GOP per fragment; forced keyframes are not to be trusted here"),
        EncoderOption("bf", "{bframes}", "pinned: it stands in the init"),
        EncoderOption("refs", "{refs}", "the same"),
        EncoderOption("forced-idr", "1", "a keyframe must be one that decoding can begin at"),
        EncoderOption("no-scenecut", "1", "no keyframe where the picture changes"),
        EncoderOption("strict_gop", "1", "nor anywhere else"),
    ),
    pixels="nv12",
    fallback="x264",
    hardware=True,
)

QSV = EncoderFamily(
    name="qsv",
    codec="h264_qsv",
    label="qsv",
    options=(
        EncoderOption("preset", "{preset}", "the names are x264's"),
        EncoderOption("profile", "{profile}", "stands in the init and in CODECS"),
        EncoderOption("global_quality", "{crf}", "constant quality (ICQ)"),
        *_QUALITY[1:],
        EncoderOption("g", "{gop}", "one GOP per fragment"),
        EncoderOption("bf", "{bframes}", "pinned: it stands in the init"),
        EncoderOption("refs", "{refs}", "the same"),
        EncoderOption("idr_interval", "0", "every I frame is one that decoding can begin at"),
        EncoderOption("adaptive_i", "0", "no keyframe where the picture changes"),
        EncoderOption("adaptive_b", "0", "no other pattern of B frames either"),
    ),
    pixels="nv12",
    fallback="x264",
    hardware=True,
)

AMF = EncoderFamily(
    name="amf",
    codec="h264_amf",
    label="amf",
    options=(
        EncoderOption("usage", "transcoding", "film, not a call"),
        EncoderOption("quality", "balanced", "the middle one"),
        EncoderOption("profile", "{profile}", "stands in the init and in CODECS"),
        EncoderOption("level", "{level}", "stands in the init"),
        EncoderOption("rc", "qvbr", "constant quality below a peak"),
        EncoderOption("qvbr_quality_level", "{crf}", "near enough to x264's scale"),
        *_QUALITY[1:],
        EncoderOption("g", "{gop}", "one GOP per fragment"),
        EncoderOption("bf", "0", "cards differ in whether they have B frames"),
        EncoderOption("header_spacing", "0", "SPS and PPS stand in the init"),
    ),
    pixels="nv12",
    fallback="x264",
    hardware=True,
)

VIDEOTOOLBOX = EncoderFamily(
    name="videotoolbox",
    codec="h264_videotoolbox",
    label="videotoolbox",
    options=(
        EncoderOption("profile", "{profile}", "stands in the init and in CODECS"),
        EncoderOption("level", "{level}", "stands in the init"),
        EncoderOption("b", "{maxrate}", "it has no constant quality on every chip"),
        *_QUALITY[1:],
        EncoderOption("g", "{gop}", "one GOP per fragment"),
        EncoderOption("bf", "0", "its reordering is not pinned"),
        EncoderOption("allow_sw", "0", "in software x264 does better"),
    ),
    pixels="nv12",
    fallback="x264",
    hardware=True,
)

FAMILIES: dict[str, EncoderFamily] = {
    family.name: family for family in (X264, X264_ALT, NVENC, QSV, AMF, VIDEOTOOLBOX)
}  # fmt: skip


class UnknownFamily(ValueError):
    """A rung names an encoder family that this release does not have."""


def family_of(rung: Rung) -> EncoderFamily:
    found = FAMILIES.get(rung.family)
    if found is None:
        raise UnknownFamily(f"no encoder family {rung.family!r}; there are {', '.join(FAMILIES)}")
    if rung.lossless and not found.lossless:
        raise UnknownFamily(f"the encoder family {rung.family!r} has no lossless mode")
    return found


def options_for(rung: Rung, gop: int) -> dict[str, str]:
    """The options as FFmpeg takes them."""
    family = family_of(rung)
    names = {name: getattr(rung, name) for name in (*Rung.__slots__, "encoder_maxrate", "encoder_occupancy")}
    names |= {"gop": gop}
    chosen = family.lossless if rung.lossless else family.options
    options = {option.name: option.value.format_map(names) for option in chosen}
    if family.params:
        pairs = (f"{param.name}={param.value.format_map(names)}" for param in family.params)
        options[family.params_name] = ":".join(pairs)
    return options


def trial(name: str) -> MakeInits:
    """An order that shows whether a machine has this family: it must open, encode, and make an init."""
    rung = Rung(
        name=f"trial-{name}", width=320, height=180, crf=30, maxrate=400_000, bufsize=800_000, level="3.0", family=name
    )
    return MakeInits(rate=Fraction(25), gop=25, rungs=(rung,), tracks=(), limits=ChildLimits(cpu_seconds=30))
