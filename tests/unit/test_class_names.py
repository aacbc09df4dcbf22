"""One name, one class: a reader who searches for a class finds one."""

import ast
from collections import defaultdict
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "telecine"


def test_public_class_names_are_unique_across_the_package() -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for path in SOURCE.rglob("*.py"):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(str(path.relative_to(SOURCE)))

    assert len(places) > 300
    assert {name: found for name, found in places.items() if len(found) > 1} == {}
