"""The flow: one stage, in a process of its own, so that a picture that crashes the decoder costs one attempt."""

import av
from pydantic import BaseModel, Field

from telecine import Bench, Flow

flow = Flow("thumbnails")


class ThumbnailSpec(BaseModel, extra="forbid"):
    source: str = Field(pattern="^/", description="A picture, by its absolute path")
    width: int = Field(320, ge=16, le=4096)


@flow.stage(title="Shrink the picture")
def shrink(bench: Bench) -> None:
    wanted = ThumbnailSpec.model_validate(bench.spec)
    with av.open(wanted.source) as source:
        frame = next(source.decode(video=0))
    height = max(2, frame.height * wanted.width // frame.width)
    small = frame.reformat(width=wanted.width, height=height, format="yuvj420p")
    path = bench.scratch / "thumbnail.jpg"
    with av.open(str(path), "w", format="mjpeg") as file:
        stream = file.add_stream("mjpeg")
        stream.width, stream.height, stream.pix_fmt = small.width, small.height, "yuvj420p"
        for packet in (*stream.encode(small), *stream.encode()):
            file.mux(packet)
    bench.keep("thumbnail.jpg", path, width=small.width, height=small.height)
