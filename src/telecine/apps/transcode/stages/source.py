"""Find the source and look at its head: where its bytes are, what is in it, whether it may come in at all."""

from __future__ import annotations

from pathlib import Path

from telecine.apps.transcode.options import TranscodeOptions
from telecine.apps.transcode.plan import SourceLocation
from telecine.apps.transcode.spec import TranscodeSpec, upload_of
from telecine.apps.transcode.stages.child_calls import answer
from telecine.apps.transcode.stages.source_feed import DOWNLOADED, SOURCE, gone, opened, uploaded
from telecine.apps.transcode.stages.source_lending import borrow, file_at, hashed, identity_of
from telecine.errors import MediaRefused, NotFound
from telecine.flow import Bench
from telecine.media.inputs import LocalFile, download, is_remote
from telecine.media.limits import check_size, check_source
from telecine.media.orders import Probe
from telecine.media.plain_json import from_plain
from telecine.media.source import Source

# How much of the stage's progress the bytes are; the rest is reading every packet.
BYTES_SHARE = 0.5


async def reach_file(bench: Bench, spec: TranscodeSpec, options: TranscodeOptions) -> int:
    """Whether a file in place can be read, by whoever has it; its size in bytes."""
    file = await file_at(bench, spec.source)
    check_size(file.size, options.bounds)
    return file.size


async def look_at(bench: Bench, spec: TranscodeSpec, options: TranscodeOptions) -> Source | None:
    """What the head of a file at hand says; one that lies elsewhere is looked at when it has come."""
    if (upload := uploaded_origin(spec)) is not None:
        return await probe(bench, upload, options)
    if is_remote(spec.source):
        return None
    return await probe(bench, _in_place(await file_at(bench, spec.source)), options)


async def find_origin(bench: Bench, spec: TranscodeSpec, options: TranscodeOptions) -> SourceLocation:
    """Where workers will read the bytes, which are there, whole and hashed, when this returns."""

    def told(done: float, of: float) -> None:
        bench.progress(BYTES_SHARE * done, of)

    if (upload := uploaded_origin(spec)) is not None:
        return upload
    if not is_remote(spec.source) and not options.shared:
        file = await file_at(bench, spec.source)
        check_size(file.size, options.bounds)
        sha256 = await hashed(bench, file, told)
        _check_hash(spec, sha256)
        return _in_place(file, sha256)
    kept = await bench.kept(SOURCE, check=True)
    if kept is None:
        path = Path(spec.source)
        if is_remote(spec.source):
            path = bench.scratch / DOWNLOADED
            await download(spec.source, path, options.gate, told)
        elif bench.lend() is not None:
            path = bench.scratch / DOWNLOADED
            await borrow(bench, await file_at(bench, spec.source), path, told)
        kept = await bench.keep(SOURCE, path)
        if bench.locate(kept) is not None:  # nobody needs it twice on one disk; beside a bucket, it is read from here
            (bench.scratch / DOWNLOADED).unlink(missing_ok=True)
    assert kept.sha256 is not None
    _check_hash(spec, kept.sha256)
    return SourceLocation(artifact=SOURCE, size=kept.size or 0, sha256=kept.sha256)


def uploaded_origin(spec: TranscodeSpec) -> SourceLocation | None:
    """An upload as workers will read it: its bytes were hashed when they came, and nobody changes them."""
    upload = upload_of(spec.source)
    if upload is None:
        return None
    if spec.size is None or spec.sha256 is None:
        raise MediaRefused(
            f"a job for {spec.source} must say its size and SHA-256: submit it through the server", code="bad_spec"
        )
    return SourceLocation(upload=upload, size=spec.size, sha256=spec.sha256)


async def reach_upload(bench: Bench, origin: SourceLocation, options: TranscodeOptions) -> int:
    """Whether its bytes can be read from here; their number."""
    check_size(origin.size, options.bounds)
    try:
        if len(await bench.read(uploaded(origin), origin.size - 1, 1)) == 1:
            return origin.size
    except NotFound:
        pass
    raise gone()


def _in_place(file: LocalFile, sha256: str = "") -> SourceLocation:
    return SourceLocation(path=str(file.path), identity=identity_of(file), size=file.size, sha256=sha256)


def _check_hash(spec: TranscodeSpec, sha256: str) -> None:
    if spec.sha256 is not None and spec.sha256 != sha256:
        raise MediaRefused(
            f"{spec.source} is not the file that was submitted (its SHA-256 differs): submit it again",
            code="source_changed",
        )


async def probe(bench: Bench, origin: SourceLocation, options: TranscodeOptions, *, thorough: bool = False) -> Source:
    """What is in it; refused with one sentence if it may not come in. `thorough`: also tracks that begin late."""
    order = Probe(size=origin.size, thorough=True, limits=options.limits()) if thorough else Probe(size=origin.size)
    async with opened(bench, origin) as reading:
        found = from_plain(Source, await answer(bench, order, reading, of=origin.size if thorough else 0.0))
    check_source(found, options.bounds)
    return found
