"""Nothing above the engine reaches through it to the store."""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "telecine"
ABOVE = ("api", "apps", "cli", "observe", "worker", "wiring", "client.py")
PRIVATE = {"store", "_store", "_silent_store"}
# Wiring opens the store and keeps it here.
WIRING = {"parts"}


def reaches_of(text: str, *, is_wiring: bool = False) -> list[str]:
    """Expressions that take a store out of something; wiring opens the store, so its own parts may have one."""
    found = []
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.Attribute) or node.attr not in PRIVATE:
            continue
        owner = ast.unparse(node.value)
        if is_wiring and owner in WIRING:
            continue
        found.append(f"{owner}.{node.attr}")
    return found


@pytest.mark.parametrize("part", ABOVE)
def test_no_module_above_the_engine_uses_its_store(part: str) -> None:
    place = SOURCE / part
    files = [place] if place.is_file() else sorted(place.rglob("*.py"))
    found = {
        str(file.relative_to(SOURCE)): reaches
        for file in files
        if (reaches := reaches_of(file.read_text(), is_wiring=part == "wiring"))
    }

    assert files
    assert found == {}


def test_a_reach_is_found() -> None:
    assert reaches_of("house.engine.store.read(x)") == ["house.engine.store"]
    assert reaches_of("engine._store.run(x)") == ["engine._store"]
    assert reaches_of("self._engine._silent_store") == ["self._engine._silent_store"]
    assert reaches_of("parts.store", is_wiring=True) == []
    assert reaches_of("parts.store") == ["parts.store"]
    assert reaches_of("parts.engine._store", is_wiring=True) == ["parts.engine._store"]
