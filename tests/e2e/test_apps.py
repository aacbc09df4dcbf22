"""An app of somebody else: installed as a package of its own into a fresh environment, and used."""

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any

import httpx
import pytest

from telecine.apps import App, AppFlow
from tests.e2e.cli import ended, first_object, until
from tests.support.docs import ROOT, blocks_of

EXAMPLE = ROOT / "examples" / "app-thumbnails"
PAGE = ROOT / "docs" / "apps.md"
RUN = "import sys; sys.argv[0] = 'telecine'; from telecine.cli import main; main()"
PATIENCE = 60.0


class Place:
    """A fresh environment that sees our packages, and a folder to work in."""

    def __init__(self, folder: Path) -> None:
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder / "venv"], check=True)
        self.python = folder / "venv" / "bin" / "python"
        self.site = next((folder / "venv" / "lib").glob("python*/site-packages"))
        ours = sysconfig.get_path("purelib")
        (self.site / "ours.pth").write_text(f"import site; site.addsitedir({ours!r})\n")
        self.work = folder / "work"
        self.work.mkdir()

    def install(self, source: Path) -> None:
        how = ["--quiet", "--disable-pip-version-check", "--no-deps", "--no-build-isolation", "--no-index"]
        pip = [sys.executable, "-m", "pip", "--python", str(self.python), "install", *how, str(source)]
        subprocess.run(pip, check=True, timeout=PATIENCE)

    @property
    def environ(self) -> dict[str, str]:
        ours = {name: value for name, value in os.environ.items() if not name.startswith(("TELECINE_", "PYTHON"))}
        return {**ours, "COLUMNS": "120", "NO_COLOR": "1", "TELECINE_PORT": "0"}

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [self.python, "-c", RUN, *arguments]
        return subprocess.run(
            command, cwd=self.work, env=self.environ, capture_output=True, text=True, timeout=PATIENCE, check=False
        )

    @contextmanager
    def server(self) -> Iterator[httpx.Client]:
        """A server with one worker inside, and a client with the key of an administrator."""
        out, log = self.work / "serve.out", self.work / "serve.log"
        out.write_text("")
        key = json.loads(self.run("keys", "create", "--scope", "admin", "--json").stdout)["key"]
        with out.open("w") as said, log.open("w") as errors:
            command = [self.python, "-c", RUN, "serve", "--workers", "1", "--json"]
            process = subprocess.Popen(command, cwd=self.work, env=self.environ, stdout=said, stderr=errors)
        with ended(process):
            address = first_object(out, process)["address"]
            with httpx.Client(base_url=address, headers={"Authorization": f"Bearer {key}"}) as client:
                yield client


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    folder = tmp_path_factory.mktemp("apps")
    shutil.copytree(EXAMPLE, folder / "source")
    place = Place(folder)
    place.install(folder / "source")
    (place.work / "large.ppm").write_bytes(b"P6 64 48 255\n" + bytes(range(256)) * 36)
    return place


def test_the_example_is_small() -> None:
    assert sum(len(path.read_text().splitlines()) for path in EXAMPLE.rglob("*.py")) < 120


def test_the_page_about_apps_shows_the_example_as_it_is() -> None:
    files = {path.name: path.read_text() for path in EXAMPLE.rglob("*") if path.suffix in (".py", ".toml")}

    shown = {block.name: block.text for block in blocks_of(PAGE) if block.name}

    assert shown == files


@pytest.mark.parametrize(("kind", "heading"), [(App, "field"), (AppFlow, "field of `AppFlow`")])
def test_the_page_about_apps_names_every_field(kind: type, heading: str) -> None:
    table = PAGE.read_text().partition(f"| {heading} |")[2].partition("\n\n")[0]

    assert re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE) == [field.name for field in fields(kind)]


def test_a_third_party_app_brings_a_command_a_flow_and_a_route(place: Place) -> None:
    shown = place.run("--help")
    submitted = place.run("thumbnail", "large.ppm", "--width", "32")
    refused = place.run("submit", "thumbnails", '{"source": "large.ppm"}')

    assert "Make a small picture of a large one." in shown.stdout
    assert "thumbnails (small pictures of large ones)" in " ".join(shown.stdout.split())
    assert (submitted.returncode, submitted.stdout, submitted.stderr) == (0, "Submitted job 1.\n", "")
    assert (refused.returncode, refused.stderr) == (2, "telecine: source: string should match pattern '^/'\n")
    with place.server() as admin:
        apps = {one["name"]: one for one in admin.get("/api/v1/apps").json()["items"]}
        made = until(lambda: finished(admin, 1), PATIENCE)
        picture = admin.get("/api/v1/thumbnails/1")
        nothing = admin.get("/api/v1/thumbnails/2")
        key = admin.post("/api/v1/keys", json={"scope": "owner", "owner": "ada"}).json()["key"]
        spec = {"flow": "thumbnails", "spec": {"source": "/etc/picture.png"}}
        stranger = admin.post("/api/v1/jobs", json=spec, headers={"Authorization": f"Bearer {key}"})
        wrong = admin.post("/api/v1/jobs", json={"flow": "thumbnails", "spec": {"source": "/a.png", "width": 1}})
        paths = admin.get("/openapi.json").json()["paths"]
    assert apps["thumbnails"]["version"] == "0.1.0"
    assert apps["thumbnails"]["flows"] == ["thumbnails"]
    assert apps["thumbnails"]["specs"]["thumbnails"]["properties"]["width"]["default"] == 320
    assert "transcode" in apps
    assert made["status"] == "completed", made
    assert (picture.status_code, picture.headers["content-type"]) == (200, "image/jpeg")
    assert picture.content.startswith(b"\xff\xd8\xff")
    assert nothing.status_code == 404
    assert (stranger.status_code, stranger.json()["detail"][:22]) == (403, "only an administrator ")
    assert (wrong.status_code, wrong.json()["detail"]) == (422, "width: input should be greater than or equal to 16")
    assert "/api/v1/thumbnails/{job_id}" in paths


def finished(client: httpx.Client, job_id: int) -> Any:
    job = client.get(f"/api/v1/jobs/{job_id}").json()
    return job if job["status"] in ("completed", "failed", "cancelled") else None


BROKEN = '''
from fastapi import APIRouter
from telecine.apps import App, AppFlow
from telecine.flow import Flow

router = APIRouter()
router.add_api_route("/api/v1/{anything}", lambda: None)


def jobs() -> None:
    """Not the one that everybody knows."""


def flow(context):
    raise RuntimeError("no flow today")


app = App(
    name="clash",
    title="Clashes",
    flows={"clash": AppFlow(make=flow)},
    routers=lambda: [router],
    commands=lambda: {"Jobs": [jobs]},
)
'''


@pytest.fixture
def faulty(place: Place) -> Iterator[None]:
    """Two more packages: one that cannot be imported, and one whose every part is wrong."""
    about = place.site / "faulty-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: faulty\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[telecine.apps]\nabsent = no_such_module:app\nclash = clash_app:app\n")
    (place.site / "clash_app.py").write_text(BROKEN)
    yield
    shutil.rmtree(about)
    (place.site / "clash_app.py").unlink()


def test_a_faulty_app_is_reported_in_a_sentence_and_stops_no_other(place: Place, faulty: None) -> None:
    absent = "app no_such_module:app of faulty is left out: ModuleNotFoundError: No module named 'no_such_module'"
    command = "commands of app clash are left out: 'jobs' is taken"
    flows = "flows of app clash are left out: RuntimeError: no flow today"
    shown = " ".join(place.run("--help").stdout.split())
    listed = place.run("jobs", "--json")
    checks = [json.loads(line) for line in place.run("doctor", "--json").stdout.splitlines()]

    apps = [(check["verdict"], check["finding"]) for check in checks if check["name"] == "app"]

    assert listed.returncode == 0, listed.stderr
    assert f"{absent}. {command}." in shown
    assert [finding for verdict, finding in apps if verdict == "ok"] == [
        "transcode 0.2.0 (1 flow: transcode)", "clash 1.0 (1 flow: clash)", "thumbnails 0.1.0 (1 flow: thumbnails)",
    ]  # fmt: skip
    wrong = [finding for verdict, finding in apps if verdict == "wrong"]
    assert wrong[:2] == [absent, flows]
    assert wrong[2].startswith("routes of app clash are left out: /api/v1/{anything} collides with /api/v1/")
    assert wrong[3:] == [command]
    with place.server() as admin:
        assert admin.get("/api/v1/flows").status_code == 200
        names = [one["name"] for one in admin.get("/api/v1/flows").json()["items"]]
        assert admin.get("/api/v1/thumbnails/99").status_code == 404
    assert sorted(names) == ["thumbnails", "transcode"]
    log = (place.work / "serve.log").read_text()
    assert absent in log
    assert flows in log
