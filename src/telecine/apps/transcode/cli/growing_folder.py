"""A folder that is shown while it grows. It is a courtesy: what is in its way is told, and tried again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from telecine.cli.common import complain
from telecine.errors import TelecineError

if TYPE_CHECKING:
    from telecine.apps.transcode.videos.folder_export import FolderExport
    from telecine.world import World

SECONDS = 2.0
# A long film takes a second to list; a tenth of the time is enough for that.
PAUSE = 9


class GrowingFolder:
    def __init__(self, name: str, showing: FolderExport, world: World) -> None:
        self.showing = showing
        self._name = name
        self._world = world
        self._next = world.mono()
        self._told = ""

    async def grow(self) -> None:
        """Show what may be watched already, every few seconds. In the end `showing.finish` insists."""
        began = self._world.mono()
        if began < self._next:
            return
        try:
            await self.showing.update()
            self._told = ""
        except (TelecineError, OSError) as error:
            if str(error) != self._told:
                complain(f"{self._name} is not shown yet: {error}; encoding goes on")
            self._told = str(error)
        ended = self._world.mono()
        self._next = ended + max(SECONDS, PAUSE * (ended - began))
