"""The platform does not know what a film is: these words belong to apps and to the library `media`."""

import re
from pathlib import Path

import telecine

SOURCE = Path(telecine.__file__).parent
WORDS = re.compile(r"\b(transcode|video|rung|film)\b", re.IGNORECASE)
OF_APPS = ("apps", "media")
# Module, word -> why it stays.
ALLOWED = {
    ("api/uploads/response.py", "video"): "the public field `video` and the header `Telecine-Video` of an upload",
    ("api/uploads/routes.py", "video"): "the same header, in the description of the route",
    ("cli/commands/logs.py", "rung"): "shows the recorded order of a media child in a few words: a key of that order",
    ("client.py", "transcode"): "three public methods forward to this app",
    ("client.py", "video"): "one of these methods",
    (
        "engine/jobs/delete_subject.py",
        "video",
    ): "the table `upload` stores no kind: uploads become subjects of this one",
    ("settings/media.py", "film"): "the settings of the built-in app are part of the one frozen `Settings`",
}


def found_words() -> dict[tuple[str, str], int]:
    found: dict[tuple[str, str], int] = {}
    for path in sorted(SOURCE.rglob("*.py")):
        place = path.relative_to(SOURCE)
        if place.parts[0] in OF_APPS:
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            for match in WORDS.finditer(line):
                found.setdefault((place.as_posix(), match[0].lower()), number)
    return found


def test_no_module_of_the_platform_speaks_of_films() -> None:
    found = found_words()

    assert {place: line for place, line in found.items() if place not in ALLOWED} == {}


def test_every_exception_is_still_needed() -> None:
    assert [place for place in ALLOWED if place not in found_words()] == []
