"""From the settings of a worker to the options of the flow."""

from __future__ import annotations

from telecine.apps import FlowContext
from telecine.apps.transcode.options import TranscodeOptions
from telecine.media.inputs import InputPolicy
from telecine.media.limits import SourceBounds
from telecine.settings import Settings, cores


def bounds_of(settings: Settings) -> SourceBounds:
    """What a source may be at most."""
    return SourceBounds(
        source_bytes=settings.max_source_bytes,
        seconds=settings.max_source_seconds,
        pixels=settings.max_pixels,
        streams=settings.max_streams,
    )


def options_from(context: FlowContext) -> TranscodeOptions:
    """The options that the settings of a worker make."""
    settings = context.settings
    return TranscodeOptions(
        ladder=settings.ladder,
        ladders=settings.ladders,
        segment_seconds=settings.segment_seconds,
        gop_seconds=settings.gop_seconds,
        damaged=settings.damaged,
        threads=settings.codec_threads or max(1, cores() // settings.slots),
        bounds=bounds_of(settings),
        gate=InputPolicy(
            most_bytes=settings.max_source_bytes,
            private=settings.allow_private_sources,
            bucket=context.open_bucket,
        ),
        hardware_patience=settings.hardware_patience_seconds,
        shared=context.shared,
        keep_completed_rungs=settings.keep_completed_rungs,
    )
