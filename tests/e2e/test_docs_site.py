"""docs/ is a site: it builds strictly, asks no other host, and its pages are plain to read."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.api_reference import api_reference, openapi_document
from tests.support.docs import ROOT

PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
HAND_WRITTEN = [page for page in PAGES if page.name != "api.md"]
MAX_LINE = 120
MAX_README_LINES = 100
_MADE = re.compile(r"<!-- (?:options of [a-z -]+|settings|routes) -->\n.*?<!-- end -->", re.DOTALL)
_CODE = re.compile(r"^```.*?^```$|^<!-- run\n.*?^-->$|`[^`\n]+`", re.MULTILINE | re.DOTALL)
_ODD = re.compile(r"\b(?:he|his|him|whoever|nobody|somebody|anew|lest)\b", re.IGNORECASE)
_OTHER_HOST = re.compile(r"""(?:<(?:script|img|iframe)[^>]+src|<link[^>]+href)=["']?(?:https?:)?//[^"'\s>]+""")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("docs") / "site"
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", folder],
        cwd=ROOT, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_the_site_has_every_page_and_a_search_index(site: Path) -> None:
    expected = {page.relative_to(ROOT / "docs").with_suffix(".html") for page in (ROOT / "docs").rglob("*.md")}
    built = {page.relative_to(site) for page in site.rglob("*.html")}

    assert {Path("decisions/index.html") if p == Path("decisions/README.html") else p for p in expected} <= built
    assert {Path("architecture.html"), Path("contributing.html"), Path("changelog.html")} <= built
    assert "lease" in (site / "search" / "search_index.json").read_text()


def test_the_site_asks_no_other_host(site: Path) -> None:
    pages = list(site.rglob("*.html"))

    assert len(pages) > 30
    assert {found for page in pages for found in _OTHER_HOST.findall(page.read_text())} == set()
    assert {sheet.name for sheet in site.rglob("*.css") if re.search(r"url\(.?https?:", sheet.read_text())} == set()


def test_the_api_reference_is_that_of_the_server() -> None:
    page = (ROOT / "docs" / "api.md").read_text()

    assert page == api_reference(openapi_document()), "run `python -m tests.support.docs`"


@pytest.mark.parametrize("page", HAND_WRITTEN, ids=lambda page: str(page.relative_to(ROOT)))
def test_lines_are_short_and_words_are_plain(page: Path) -> None:
    text = _MADE.sub("", page.read_text())
    prose = _CODE.sub("", text)

    long = [line for line in text.splitlines() if len(line) > MAX_LINE and not line.startswith(("|", "{"))]

    assert long == []
    assert _ODD.findall(prose) == []


def test_the_readme_fits_on_a_page() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) <= MAX_README_LINES


def test_every_schema_that_the_api_document_refers_to_is_in_it() -> None:
    document = openapi_document()

    wanted = set(re.findall(r"#/components/schemas/([^\"']+)", json.dumps(document)))

    assert "Problem" in wanted
    assert wanted - document["components"]["schemas"].keys() == set()
    assert [name for name in document["components"]["schemas"] if "__" in name] == []
