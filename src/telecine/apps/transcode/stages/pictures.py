"""Poster and sprites, from keyframes that were recorded anyway: the source is not decoded a second time."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from telecine.apps.transcode.options import TranscodeOptions
from telecine.apps.transcode.plan import TranscodePlan
from telecine.apps.transcode.stages.child_calls import answer, made_file
from telecine.apps.transcode.stages.recorded_rows import RecordedRows, collect, dropped_by
from telecine.apps.transcode.stages.stage_inputs import all_pieces, plan_of
from telecine.facts import Done, Outcome
from telecine.flow import Bench
from telecine.media.orders import MakePoster, MakeSprites, Still
from telecine.media.planner import SPRITE_WIDTH, KeyframePick, poster_picks, sprite_interval, sprite_picks

COLUMNS = ROWS = 10
THUMBS = "thumbs.vtt"


async def make_poster(bench: Bench, options: TranscodeOptions) -> Outcome:
    """The best of some candidates, as JPEG."""
    plan, recorded = await _recorded(bench)
    picks = poster_picks(plan.timing, [video.rung for video in recorded.film.videos])
    stills = await _stills(bench, recorded, picks)
    found = await answer(bench, MakePoster(stills=stills, limits=options.limits(plan.picture)))
    for file in found["files"]:
        await bench.keep(file["path"], made_file(bench, file["path"]), width=file["width"], height=file["height"])
    return Done(result={key: value for key, value in found.items() if key != "files"})


async def make_sprites(bench: Bench, options: TranscodeOptions) -> Outcome:
    """Small pictures of the whole film on sheets, and a VTT file that says which is where."""
    plan, recorded = await _recorded(bench)
    picks = sprite_picks(plan.timing, [video.rung for video in recorded.film.videos])
    width, height = _sprite_size(plan)
    stills = await _stills(bench, recorded, picks)
    order = MakeSprites(
        stills=stills, width=width, height=height, columns=COLUMNS, rows=ROWS, limits=options.limits(plan.picture)
    )
    found = await answer(bench, order, of=len(stills))
    for file in found["files"]:
        await bench.keep(file["path"], made_file(bench, file["path"]))
    path = bench.scratch / THUMBS
    path.write_text(thumbs(plan.length, len(stills), (width, height)))
    await bench.keep(THUMBS, path)
    return Done(result={"sprites": len(stills), "sheets": len(found["files"])})


def thumbs(length: Fraction, count: int, size: tuple[int, int]) -> str:
    """Which part of which sheet stands for which time."""
    every = sprite_interval(length)
    lines = ["WEBVTT", ""]
    for k in range(count):
        sheet, place = divmod(k, COLUMNS * ROWS)
        row, column = divmod(place, COLUMNS)
        until = min(Fraction((k + 1) * every), length)
        box = f"{column * size[0]},{row * size[1]},{size[0]},{size[1]}"
        lines += [f"{_clock(Fraction(k * every))} --> {_clock(until)}", f"sheet_{sheet:03d}.jpg#xywh={box}", ""]
    return "\n".join(lines)


def _clock(seconds: Fraction) -> str:
    whole = round(seconds * 1000)
    hours, rest = divmod(whole, 3_600_000)
    minutes, rest = divmod(rest, 60_000)
    return f"{hours:02d}:{minutes:02d}:{rest // 1000:02d}.{rest % 1000:03d}"


def _sprite_size(plan: TranscodePlan) -> tuple[int, int]:
    """As wide as a sprite, or as high if the film stands upright; the film's own shape, in even pixels."""
    rung = plan.rungs[0]
    scale = Fraction(SPRITE_WIDTH, max(rung.width, rung.height))
    return tuple(max(2, 2 * round(side * scale / 2)) for side in (rung.width, rung.height))  # type: ignore[return-value]


async def _recorded(bench: Bench) -> tuple[TranscodePlan, RecordedRows]:
    plan = plan_of(bench)
    dropped = dropped_by(bench.brief.results.get(plan.video_stage))
    return plan, collect(plan, await all_pieces(bench, plan), dropped)


async def _stills(bench: Bench, recorded: RecordedRows, picks: Sequence[KeyframePick]) -> tuple[Still, ...]:
    """One small file per picture: the init, and the fragment up to the end of its keyframe."""
    stills = []
    inits: dict[str, bytes] = {}
    pieces = {(one.name, piece.number): piece for one in recorded.film.videos for piece in one.pieces}
    for number, pick in enumerate(picks):
        if pick.rung not in inits:
            inits[pick.rung] = await bench.read(recorded.init(pick.rung))
        fragments = pieces[pick.rung, pick.segment].fragments
        offset, _, _, head = fragments[min(pick.fragment, len(fragments) - 1)]
        data = await bench.read(recorded.piece(pick.rung, pick.segment), offset, head)
        name = f"still-{number:05d}.mp4"
        (bench.scratch / name).write_bytes(inits[pick.rung] + data)
        stills.append(Still(file=name, at=pick.at))
    return tuple(stills)
