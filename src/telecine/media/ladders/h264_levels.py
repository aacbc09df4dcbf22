"""H.264 levels: what a decoder of each can do (ITU-T H.264, table A-1), and the lowest that a rendition needs.

The level stands in the init segment and in CODECS. It is pinned from size, rate and peak, never left to the encoder:
all pieces of a rendition must say the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

# Two references and a pyramid of three B frames: what x264 then keeps in the decoder's picture buffer.
REFS = 2
BFRAMES = 3
BUFFERED = 4


@dataclass(frozen=True, slots=True)
class H264Level:
    name: str
    blocks_per_second: int  # MaxMBPS, macroblocks of 16 × 16
    blocks: int  # MaxFS, of one frame
    buffered_blocks: int  # MaxDpbMbs
    rate: int  # MaxBR, in 1250 bit/s: the factor of the High profile
    buffer: int  # MaxCPB, in 1250 bits

    def takes(self, width: int, height: int, rate: Fraction) -> bool:
        """Whether such frames fit, and as many as the encoder refers to."""
        wide, high = in_blocks(width), in_blocks(height)
        return (
            wide * high <= self.blocks
            and max(wide, high) ** 2 <= 8 * self.blocks
            and wide * high * rate <= self.blocks_per_second
            and wide * high * BUFFERED <= self.buffered_blocks
        )

    def carries(self, maxrate: int, bufsize: int) -> bool:
        return maxrate <= self.rate * 1250 and bufsize <= self.buffer * 1250


# Lower levels are left out: nothing that plays video today is so weak.
LEVELS = (
    H264Level("3.0", 40_500, 1_620, 8_100, 10_000, 10_000),
    H264Level("3.1", 108_000, 3_600, 18_000, 14_000, 14_000),
    H264Level("3.2", 216_000, 5_120, 20_480, 20_000, 20_000),
    H264Level("4.0", 245_760, 8_192, 32_768, 20_000, 25_000),
    H264Level("4.1", 245_760, 8_192, 32_768, 50_000, 62_500),
    H264Level("4.2", 522_240, 8_704, 34_816, 50_000, 62_500),
    H264Level("5.0", 589_824, 22_080, 110_400, 135_000, 135_000),
    H264Level("5.1", 983_040, 36_864, 184_320, 240_000, 240_000),
    H264Level("5.2", 2_073_600, 36_864, 184_320, 240_000, 240_000),
    H264Level("6.0", 4_177_920, 139_264, 696_320, 240_000, 240_000),
    H264Level("6.1", 8_355_840, 139_264, 696_320, 480_000, 480_000),
    H264Level("6.2", 16_711_680, 139_264, 696_320, 800_000, 800_000),
)


def in_blocks(pixels: int) -> int:
    return -(-pixels // 16)


def level_for(width: int, height: int, rate: Fraction, *, maxrate: int, bufsize: int) -> str:
    """The lowest level that takes it; the highest there is when none does."""
    fitting = (level for level in LEVELS if level.takes(width, height, rate) and level.carries(maxrate, bufsize))
    return next(fitting, LEVELS[-1]).name
