"""`make demo`: two workers draw a picture, one of them is killed, and the picture is whole all the same.

Everything is real: the workers are processes of their own (`telecine worker`), all state is in a SQLite file, and
the kill is a kill -9. On a terminal the picture grows before your eyes; in a pipe the story comes as plain lines.
"""

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.live import Live
from rich.text import Text

from examples.flows import flow
from telecine import Client, Settings, connect
from telecine.engine.shown import JobView, TaskView

ROOT = Path(__file__).parents[1]
FOLDER = Path(".demo")
URL = f"sqlite:///{FOLDER}/telecine.db"
SPEC = {"width": 72, "height": 18, "bands": 6, "pause": 0.4}
VICTIM, SURVIVOR = "ann", "bob"
PATIENCE = 60.0


@contextmanager
def workers(*names: str) -> Iterator[dict[str, subprocess.Popen[bytes]]]:
    """`telecine worker --flows examples/flows.py`, once per name; ended in order afterwards."""
    command = [sys.executable, "-c", "from telecine.cli import main; main()", "worker"]
    command += ["--flows", "examples/flows.py", "--database", URL, "--slots", "1"]
    plain = {name: value for name, value in os.environ.items() if not name.startswith("TELECINE_")}
    places = {"TELECINE_SCRATCH": f"{FOLDER}/scratch", "TELECINE_ARTIFACTS_URL": f"{FOLDER}/artifacts"}
    running: dict[str, subprocess.Popen[bytes]] = {}
    try:
        for name in names:
            with (FOLDER / f"{name}.log").open("wb") as log:
                own = [*command, "--name", name]
                running[name] = subprocess.Popen(own, env={**plain, **places}, stdout=log, stderr=log)
        yield running
    finally:
        for worker in running.values():
            worker.send_signal(signal.SIGTERM)
        for worker in running.values():
            worker.wait(PATIENCE)


class Story:
    """What has happened so far, and the picture as far as it is drawn."""

    def __init__(self, console: Console) -> None:
        self.said: list[str] = []
        self._console = console
        self._began = time.monotonic()

    def tell(self, sentence: str) -> None:
        line = f"{time.monotonic() - self._began:5.1f} s  {sentence}"
        self.said.append(line)
        if not self._console.is_terminal:
            self._console.print(line, highlight=False, soft_wrap=True)

    def scene(self, bands: Sequence[TaskView]) -> Text:
        text = Text("\n")
        for task in bands:
            text.append_text(_band(task))
        text.append("\n")
        for line in self.said[-4:]:
            text.append(f"{line}\n", style="bold" if "kill" in line else "")
        return text


def _band(task: TaskView) -> Text:
    """A finished band shows its lines; one in the making says who draws it and how far."""
    height = task.input["last"] - task.input["first"]
    if task.state == "done":
        return Text("".join(f"  {line}\n" for line in task.result), style="cyan")
    if task.state == "running" and task.worker is not None:
        full = round(30 * (task.progress or 0.0))
        bar = Text(f"  {task.worker.name} draws  {'█' * full}{'░' * (30 - full)}  {task.note or ''}\n", style="yellow")
    else:
        bar = Text(f"  band {task.position + 1} waits\n", style="dim")
    return bar.append("\n" * (height - 1))


async def play(client: Client, console: Console) -> JobView:
    """Submit, watch, kill one worker in the middle of a band, and watch the other finish."""
    await client.register(flow)
    job = await client.submit("mandelbrot", SPEC)
    story = Story(console)
    story.tell(f"job {job.job_id} is submitted; workers {VICTIM} and {SURVIVOR} start")
    with workers(VICTIM, SURVIVOR) as running, Live(console=console, auto_refresh=False, transient=True) as live:
        seen: dict[int, tuple[str, str | None]] = {}
        heard, deadline = 0, time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            bands = (await client.views.tasks(job.job_id, stage="band")).items
            _tell_changes(story, bands, seen)
            for line in await client.logs(job.job_id, after=heard):
                story.tell(line.message)
                heard = line.id
            if running[VICTIM].poll() is None and _in_mid_band(bands):
                running[VICTIM].kill()
                running[VICTIM].wait()
                story.tell(f"kill -9 {VICTIM}, in the middle of a band")
            if console.is_terminal:
                live.update(story.scene(bands), refresh=True)
            view = await client.job(job.job_id)
            if view.ended_at is not None:
                break
            await asyncio.sleep(0.1)
    for sentence in story.said if console.is_terminal else ():
        console.print(sentence, highlight=False)
    return view


def _tell_changes(story: Story, bands: Sequence[TaskView], seen: dict[int, tuple[str, str | None]]) -> None:
    for task in bands:
        who = None if task.worker is None else task.worker.name
        before = seen.get(task.position)
        if before == (task.state, who):
            continue
        seen[task.position] = (task.state, who)
        if task.state == "running":
            story.tell(f"{who} draws band {task.position + 1}{', for the second time' if task.losses else ''}")
        elif task.state == "done":
            story.tell(f"band {task.position + 1} is drawn")
        elif before is not None and task.losses:
            story.tell(f"band {task.position + 1} is given back: its worker is gone")


def _in_mid_band(bands: Sequence[TaskView]) -> bool:
    """The victim has drawn something of a band, and not all of it."""
    return any(
        task.worker is not None and task.worker.name == VICTIM and 0 < (task.progress or 0) < 1
        for task in bands
        if task.state == "running"
    )


async def finale(client: Client, view: JobView, console: Console) -> None:
    attempts = (await client.views.attempts(view.id)).items
    ends = [attempt.outcome for attempt in attempts]
    [output] = [file for file in view.outputs if file.name == "mandelbrot.txt"]
    path = FOLDER / "artifacts" / output.key
    console.print(f"\n[cyan]{path.read_text()}[/cyan]", highlight=False)
    program = Path(sys.executable).parent / "telecine"
    shown = program.relative_to(ROOT) if program.is_relative_to(ROOT) else program
    console.print(
        f"Job {view.id} is {view.status}: {ends.count('done')} tasks done, each once; "
        f"{ends.count('lost')} attempt lost.\n"
        f"The picture: {path}\n\n"
        f"Try next:\n"
        f"  {shown} job {view.id} --database {URL}     what happened, stage by stage\n"
        f"  {shown} logs {view.id} --database {URL}    what the handlers said\n"
        f"  examples/flows.py    the flow itself, yours to change",
        highlight=False,
        soft_wrap=True,
    )


async def main() -> int:
    os.chdir(ROOT)
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir()
    console = Console()
    async with connect(settings=Settings(database_url=URL)) as client:
        view = await play(client, console)
        if view.status != "completed":
            console.print(f"Job {view.id} is {view.status}: {view.error}; the workers' logs are in {FOLDER}")
            return 1
        await finale(client, view, console)
    return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
