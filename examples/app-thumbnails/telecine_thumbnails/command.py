"""`telecine thumbnail FILE`: submit a job."""

from pathlib import Path
from typing import Annotated

import typer

from telecine.cli.common import Database, perform, session

File = Annotated[Path, typer.Argument(metavar="FILE", help="The picture.")]
Width = Annotated[int, typer.Option(min=16, max=4096, help="How wide the thumbnail is.")]


def thumbnail(file: File, *, width: Width = 320, database: Database = None) -> None:
    """Make a small picture of a large one."""

    async def submit() -> None:
        from telecine_thumbnails.flow import flow

        async with session(database, create=True) as client:
            made = await client.submit(flow, {"source": str(file.absolute()), "width": width})
        print(f"Submitted job {made.job_id}.")

    perform(submit())


commands = {"Media": [thumbnail]}
