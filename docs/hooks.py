"""What the site needs beyond docs/: the pages beside README.md, and titles of code blocks.

The pages are written for GitHub. This turns what differs: links between the two folders, and `python NAME` fences.
"""

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
BESIDE_README = {
    "README.md": "index.md",
    "ARCHITECTURE.md": "architecture.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
}
_OUT_OF_DOCS = re.compile(r"\]\((?P<up>(?:\.\./)*)(?P<name>README|ARCHITECTURE|CHANGELOG|CONTRIBUTING)\.md(?=[)#])")
_NAMED_FENCE = re.compile(r"^```(?P<language>python|toml) (?P<name>[\w.]+)$", re.MULTILINE)
_TO_SOURCE = re.compile(r"\[(?P<text>[^\]]+)\]\((?:\.\./)+(?:src|tests|examples|deploy|proof|benchmarks)/[^)]*\)")


def on_files(files: Files, config: Any) -> Files:
    for name, page in BESIDE_README.items():
        if page != "index.md":
            files.append(File.generated(config, page, content=(ROOT / name).read_text()))
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    if page.file.src_uri in BESIDE_README.values():
        markdown = markdown.replace("](docs/", "](")
    if page.file.src_uri != "decisions/README.md":
        markdown = _OUT_OF_DOCS.sub(_inside, markdown)
    markdown = _TO_SOURCE.sub(r"\g<text>", markdown)
    return _NAMED_FENCE.sub(r'```\g<language> title="\g<name>"', markdown)


def _inside(link: re.Match[str]) -> str:
    """`../ARCHITECTURE.md` of a page in docs/ becomes `architecture.md`; from docs/decisions/ it keeps one `../`."""
    return f"]({link['up'].removeprefix('../')}{BESIDE_README[link['name'] + '.md']}"
