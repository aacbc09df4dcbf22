"""The transcode app as one value. Each function imports what it needs when it is called: see `telecine.apps`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any

from telecine.apps import App, AppFlow, FlowContext, SubjectKind
from telecine.apps.transcode.names import KIND, MOVED, NAME, STATUSES

if TYPE_CHECKING:
    from fastapi import APIRouter

    from telecine.api.http.context import SourceLender
    from telecine.api.openapi.notes import ApiNotes
    from telecine.apps.transcode.client import Videos
    from telecine.apps.transcode.spec import TranscodeSpec
    from telecine.apps.transcode.stages.inspection import SegmentInspector
    from telecine.apps.transcode.videos.from_upload import FilmUploads
    from telecine.apps.transcode.videos.source_policy import SourcePolicy
    from telecine.cli.commands.doctor_disk import DoctorCheck
    from telecine.facts import Json
    from telecine.flow import Flow
    from telecine.settings import Settings
    from telecine.wiring import Parts
    from telecine.world import World


def _flow(context: FlowContext) -> Flow:
    from telecine.apps.transcode.flow import transcode_flow
    from telecine.apps.transcode.settings import options_from

    return transcode_flow(options_from(context))


def _spec() -> type[TranscodeSpec]:
    from telecine.apps.transcode.spec import TranscodeSpec

    return TranscodeSpec


def _check(spec: Json, settings: Settings) -> None:
    from telecine.apps.transcode.spec import parse
    from telecine.apps.transcode.videos.source_policy import check_source, check_wishes

    wanted = parse(spec)
    check_wishes(wanted, settings.ladders, settings.ladder)
    check_source(wanted.source, settings.allow_private_sources)


def _policy(parts: Parts) -> SourcePolicy:
    from telecine.apps.transcode.videos.source_policy import SourcePolicy
    from telecine.media.ladders.ladder_spec import check_ladders

    settings = parts.settings
    check_ladders(settings.ladder, settings.ladders)
    return SourcePolicy(
        settings.source_folders,
        settings.ladders,
        parts.engine.uploads().find,
        usual_ladder=settings.ladder,
        private=settings.allow_private_sources,
    )


def _inspector(parts: Parts) -> SegmentInspector:
    from telecine.apps.transcode.stages.inspection import SegmentInspector

    return SegmentInspector(parts.engine.brief, parts.engine.artifacts)


def _lender() -> SourceLender:
    from telecine.apps.transcode.stages.source_lending import lend

    return lend


def _commands() -> Mapping[str, Sequence[Any]]:
    from telecine.apps.transcode.cli import sample, transcode_command, videos_command

    return {"Media": (transcode_command.transcode, videos_command.videos, videos_command.video, sample.sample)}


def _doctor(settings: Settings, world: World) -> AsyncIterator[DoctorCheck]:
    from telecine.apps.transcode.cli.doctor_media import examine_media

    return examine_media(settings, world)


def _client(parts: Parts) -> Videos:
    from telecine.apps.transcode.client import Videos

    return Videos(parts.engine)


async def _labels(world: World) -> Sequence[str]:
    from telecine.apps.transcode.encoder_probe import labels_of, possible

    return await labels_of(possible(), world)


def _routers() -> Sequence[APIRouter]:
    from telecine.apps.transcode.http.media_routes import router as media_router
    from telecine.apps.transcode.http.video_routes import router as video_router

    return (video_router, media_router)


def _api_notes() -> ApiNotes:
    from telecine.apps.transcode.http.video_examples import NOTES

    return NOTES


def _uploads(parts: Parts) -> FilmUploads:
    from telecine.apps.transcode.videos.from_upload import FilmUploads

    return FilmUploads(parts)


def _background(parts: Parts) -> AbstractAsyncContextManager[None]:
    from telecine.apps.transcode.videos.watch_folders import watching

    return watching(parts)


def _cleanup(parts: Parts) -> Callable[[], Awaitable[int]] | None:
    if not parts.settings.cleanup_partial_on_failure:
        return None
    from telecine.apps.transcode.videos.failed_cleanup import FailedCleanup

    return FailedCleanup(parts.engine).look


app = App(
    name=NAME,
    title="Any video to adaptive streams, exact to the frame, resumed at the segment",
    flows={NAME: AppFlow(make=_flow, spec=_spec, check=_check, policy=_policy, inspector=_inspector, lender=_lender)},
    subjects=(SubjectKind(name=KIND, statuses=STATUSES),),
    commands=_commands,
    doctor=_doctor,
    client=_client,
    labels=_labels,
    routers=_routers,
    api_notes=_api_notes,
    uploads=_uploads,
    own_facts=frozenset({MOVED}),
    background=_background,
    cleanup=_cleanup,
)
