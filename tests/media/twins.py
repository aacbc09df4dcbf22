"""Films that repeat what others show: another container, rate, size or codec of a kind that stays.

They are left to the proof. What each has of its own is in a kind that `make test` tries: every container, every codec,
every way to find a frame (by keyframes, from open groups, by a map of times, by one decode), every odd clock.
"""

# Of pictures: how sound lies beside them does not matter here.
PICTURES = frozenset({
    "mkv-h264-open-gop", "mp4-h264-all-intra", "mp4-hevc-open-gop", "ts-hevc", "mp4-av1", "mkv-mpeg2", "avi-mpeg4",
    "mp4-mpeg4", "mp4-23.976", "mp4-29.97", "mp4-50", "mkv-60", "mkv-vfr-phone", "mp4-turned-180", "mp4-turned-270",
    "mkv-anamorphic-tall", "mp4-h264-10-bit", "webm-vp9-odd-size", "mkv-size-change", "mkv-starts-at-10-s",
    "mp4-audio-later", "ts-audio-later", "mkv-audio-earlier", "mp4-audio-short", "mp4-mono", "mkv-5.1", "mp4-44100",
    "mkv-three-languages", "mp4-no-audio",
})  # fmt: skip
# Of sound: how pictures are coded does not matter here.
SOUNDS = frozenset({
    "mp4-h264-open-gop", "mkv-h264-open-gop", "ts-h264-open-gop", "ts-hevc", "mkv-av1", "mp4-fragmented",
    "avi-mpeg4-b-frames", "avi-h264-b-frames", "mp4-29.97", "ts-59.94", "mkv-vfr-phone", "mp4-vfr-slideshow",
    "mkv-starts-at-10-s", "ts-audio-later", "mkv-audio-earlier", "mp4-no-composition-offsets", "mkv-repeated-pts",
    "mp4-cover-first",
})  # fmt: skip


def unlike(names: list[str], twins: frozenset[str]) -> list[str]:
    """Those of the names that repeat nothing."""
    return [name for name in names if name not in twins]
