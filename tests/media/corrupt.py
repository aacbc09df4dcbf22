"""What is done to a written film afterwards: turned, cut, trimmed, encrypted; and files that only pose as films."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from random import Random

import av

from tests.media.make_video import ffmpeg, packager
from tests.media.patterns import paint

Spoiler = Callable[[Path], Path]
KEY = "00112233445566778899aabbccddeeff"


def _beside(path: Path, name: str) -> Path:
    return path.with_name(f"{path.stem}.{name}{path.suffix}")


def _replaced(path: Path, *arguments: object, inputs: tuple[object, ...] = ()) -> Path:
    """Run FFmpeg over the file, without coding anything anew."""
    made = _beside(path, "made")
    ffmpeg(*inputs, "-i", path, *arguments, "-c", "copy", "-fflags", "+bitexact", made)
    return made.replace(path)


def turned(degrees: int) -> Spoiler:
    """A display matrix that asks for `degrees` clockwise, as a phone writes it."""
    return lambda path: _replaced(path, inputs=("-display_rotation", -degrees))


def trimmed(start: Fraction) -> Spoiler:
    """Begin later, without coding anew: what comes before is in the file, and an edit list hides it."""
    return lambda path: _replaced(path, inputs=("-ss", f"{float(start):.3f}"))


def with_cover(path: Path) -> Path:
    """Cover art as the first video stream."""
    cover = path.with_name("cover.jpg")
    with av.open(str(cover), "w", format="mjpeg") as out:
        stream = out.add_stream("mjpeg", rate=1)
        stream.width, stream.height, stream.pix_fmt = 320, 320, "yuvj420p"
        out.mux(stream.encode(paint(9999, 320, 320).reformat(format="yuvj420p")))
        out.mux(stream.encode(None))
    made = _beside(path, "made")
    ffmpeg(
        "-i", cover, "-i", path, "-map", "0", "-map", "1", "-c", "copy",
        "-disposition:v:0", "attached_pic", "-fflags", "+bitexact", "-f", "mp4", made,
    )  # fmt: skip
    return made.replace(path)


def repeated(path: Path) -> Path:
    """Give frame 40 the time of frame 39."""
    made = _beside(path, "made")
    with av.open(str(path)) as source, av.open(str(made), "w", container_options={"fflags": "+bitexact"}) as out:
        copies = {one.index: out.add_stream_from_template(one) for one in source.streams}
        seen = 0
        earlier = None
        for packet in source.demux():
            if packet.size == 0:
                continue
            if packet.stream.type == "video":
                if seen == 40:
                    packet.pts = packet.dts = earlier
                earlier = packet.pts
                seen += 1
            packet.stream = copies[packet.stream.index]
            out.mux(packet)
    return made.replace(path)


def without_offsets(path: Path) -> Path:
    """Give every frame the time at which it is decoded: no composition offsets, as careless muxers write it."""
    made = _beside(path, "made")
    with av.open(str(path)) as source, av.open(str(made), "w", container_options={"fflags": "+bitexact"}) as out:
        copies = {one.index: out.add_stream_from_template(one) for one in source.streams}
        seen = 0
        for packet in source.demux():
            if packet.size == 0:
                continue
            if packet.stream.type == "video":
                packet.pts = packet.dts = seen * packet.duration
                seen += 1
            packet.stream = copies[packet.stream.index]
            out.mux(packet)
    return made.replace(path)


def without_default_duration(path: Path) -> Path:
    """A Matroska file that does not say how long its frames are, as browsers record them."""
    data = bytearray(path.read_bytes())
    at = data.index(b"\x23\xe3\x83")  # DefaultDuration; becomes Void
    size = data[at + 3] & 0x7F
    data[at : at + 4 + size] = bytes([0xEC, 0x80 | (size + 2)]) + bytes(size + 2)
    path.write_bytes(data)
    return path


def without_first_packet(path: Path) -> Path:
    """Leave out the first picture, on which the others up to the next keyframe depend."""
    made = _beside(path, "made")
    with av.open(str(path)) as source, av.open(str(made), "w", container_options={"fflags": "+bitexact"}) as out:
        copies = {one.index: out.add_stream_from_template(one) for one in source.streams}
        is_first = True
        for packet in source.demux():
            if packet.size == 0:
                continue
            if packet.stream.type == "video" and is_first:
                is_first = False
                continue
            packet.stream = copies[packet.stream.index]
            out.mux(packet)
    return made.replace(path)


# --- damage ------------------------------------------------------------------------------------------------------


def cut(path: Path) -> Path:
    """The last third never arrived."""
    data = path.read_bytes()
    path.write_bytes(data[: len(data) * 2 // 3 + 17])
    return path


def blotted(path: Path) -> Path:
    """Noise over a twentieth of the file, in the middle."""
    data = bytearray(path.read_bytes())
    middle, length = len(data) // 2, len(data) // 20
    data[middle : middle + length] = Random(3).randbytes(length)
    path.write_bytes(data)
    return path


def lying_sizes(path: Path) -> Path:
    """The sample table of the video says that each picture has two gigabytes."""
    data = bytearray(path.read_bytes())
    at = data.index(b"stsz") + 12
    count = int.from_bytes(data[at : at + 4], "big")
    data[at + 4 : at + 4 + 4 * count] = b"\x7f\xff\xff\xff" * count
    path.write_bytes(data)
    return path


def lying_count(path: Path) -> Path:
    """The sample table of the video says that there are 2^31 pictures of one byte."""
    data = bytearray(path.read_bytes())
    at = data.index(b"stsz") + 8
    data[at : at + 8] = b"\0\0\0\1\x80\0\0\0"
    path.write_bytes(data)
    return path


def encrypted(path: Path) -> Path:
    """Common Encryption, every sample."""
    made = _beside(path, "made")
    packager(
        f"in={path},stream=video,output={made}", "--enable_raw_key_encryption", "--clear_lead", "0",
        "--keys", f"label=:key_id={KEY}:key={KEY}",
    )  # fmt: skip
    return made.replace(path)


# --- not media ---------------------------------------------------------------------------------------------------


def _written(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


def empty(path: Path) -> Path:
    return _written(path, b"")


def text(path: Path) -> Path:
    return _written(path, b"Dear diary, today nothing was filmed.\n" * 400)


def noise(path: Path) -> Path:
    return _written(path, Random(11).randbytes(60_000))


def zeros(path: Path) -> Path:
    return _written(path, bytes(60_000))


def picture(path: Path) -> Path:
    with av.open(str(path), "w", format="image2") as out:
        stream = out.add_stream("png", rate=1)
        stream.width, stream.height, stream.pix_fmt = 320, 180, "rgb24"
        out.mux(stream.encode(paint(1).reformat(format="rgb24")))
        out.mux(stream.encode(None))
    return path


def hls(path: Path) -> Path:
    lines = ["#EXTM3U", "#EXT-X-TARGETDURATION:6", "#EXTINF:6.0,", "http://127.0.0.1:9/a.ts", "#EXT-X-ENDLIST", ""]
    return _written(path, "\n".join(lines).encode())


def dash(path: Path) -> Path:
    manifest = (
        '<?xml version="1.0"?><MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="static" '
        'mediaPresentationDuration="PT6S">'
        "<BaseURL>http://127.0.0.1:9/</BaseURL><Period><AdaptationSet><Representation id='1' bandwidth='1' "
        "mimeType='video/mp4'><BaseURL>a.mp4</BaseURL></Representation></AdaptationSet></Period></MPD>"
    )
    return _written(path, manifest.encode())


def concat(path: Path) -> Path:
    return _written(path, b"ffconcat version 1.0\nfile /etc/hostname\nfile http://127.0.0.1:9/a.mp4\n")


def sdp(path: Path) -> Path:
    lines = ["v=0", "o=- 0 0 IN IP4 127.0.0.1", "s=x", "c=IN IP4 127.0.0.1", "t=0 0", "m=video 9 RTP/AVP 96", ""]
    return _written(path, "\r\n".join([*lines[:-1], "a=rtpmap:96 H264/90000", ""]).encode())


def subtitles(path: Path) -> Path:
    words = path.with_name("words.srt")
    words.write_text("1\n00:00:00,000 --> 00:00:02,000\nNothing to see here.\n")
    ffmpeg("-i", words, "-c", "copy", "-fflags", "+bitexact", path)
    return path
