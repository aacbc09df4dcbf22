"""The description of the API is whole: names, summaries, problems, schemas, examples; the page tells the same."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from tests.api.in_process_server import ANY_DATABASE, Front
from tests.support.docs import ROOT, play, with_routes

PAGE = ROOT / "docs" / "http.md"
PROBLEM = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}


@pytest.fixture(scope="module")
def kept() -> dict[str, Any]:
    return {}


@pytest.fixture
def schema(front: Front, kept: dict[str, Any]) -> dict[str, Any]:
    """Of the application; made once, which takes its time."""
    if not kept:
        kept.update(front.app.openapi())
    return kept


def operations(schema: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for path, methods in schema["paths"].items():
        for method, operation in methods.items():
            yield f"{method.upper()} {path}", operation


@ANY_DATABASE
async def test_every_operation_has_a_name_of_its_own_and_a_summary(schema: dict[str, Any]) -> None:
    found = list(operations(schema))

    names = [operation["operationId"] for _, operation in found]
    silent = [place for place, operation in found if len(operation.get("summary", "").split()) < 2]
    odd = [name for name in names if not re.fullmatch(r"[a-z]+(_[a-z]+)*", name)]

    assert len(names) == len(set(names)) > 60
    assert (silent, odd) == ([], [])


@ANY_DATABASE
async def test_every_operation_says_who_may_come_and_what_can_go_wrong(schema: dict[str, Any]) -> None:
    wrong = []
    for place, operation in operations(schema):
        errors = {code: said for code, said in operation["responses"].items() if code.isdigit() and int(code) >= 400}
        needs = {"422", "429", "503"} | ({"401", "403"} if "x-scope" in operation else set())
        if not needs <= errors.keys() or ("x-scope" in operation) != (operation["security"] == [{"key": []}]):
            wrong.append(place)
        wrong += [f"{place} {code}" for code, said in errors.items() if said["content"] != PROBLEM]

    assert wrong == []


@ANY_DATABASE
async def test_every_answer_of_the_public_routes_has_a_schema_and_an_example(schema: dict[str, Any]) -> None:
    kinds, without = schema["components"]["schemas"], []
    for place, operation in operations(schema):
        if not re.search(r" /api/v1/(jobs|bulk|tasks|failed-|stale-|flows|stats|workers|keys|videos)", place):
            continue
        for code, said in operation["responses"].items():
            if code.startswith("2") and code != "204":
                refs = re.findall(r"schemas/(\w+)", str(said["content"]["application/json"]["schema"]))
                without += [f"{place} {code}"] if not refs or any("examples" not in kinds[ref] for ref in refs) else []
        body = re.findall(r"schemas/(\w+)", str(operation.get("requestBody", "")))
        without += [f"{place} {ref}" for ref in body if "examples" not in kinds[ref]]

    assert without == []


@ANY_DATABASE
async def test_examples_are_examples_of_their_schemas(schema: dict[str, Any]) -> None:
    faults, count = [], 0
    for name, kind in schema["components"]["schemas"].items():
        for example in kind.get("examples", ()):
            count += 1
            whole = {"$ref": f"#/components/schemas/{name}", "components": schema["components"]}
            faults += [f"{name}: {error.message}" for error in jsonschema_rs.iter_errors(whole, example)]

    assert count > 30
    assert faults == []


@ANY_DATABASE
async def test_links_lead_to_operations_that_are_there(schema: dict[str, Any]) -> None:
    names = {operation["operationId"] for _, operation in operations(schema)}

    links = {
        link["operationId"]
        for _, operation in operations(schema)
        for said in operation["responses"].values()
        for link in said.get("links", {}).values()
        if "operationId" in link
    }

    assert links
    assert links <= names


@ANY_DATABASE
async def test_the_description_is_served_to_everybody(front: Front) -> None:
    answer = await front.nobody.get("/openapi.json")

    assert answer.status_code == 200
    assert answer.json()["components"]["securitySchemes"]["key"]["scheme"] == "bearer"


def test_the_page_lists_all_routes() -> None:
    text = PAGE.read_text()

    assert with_routes(text) == text, "run `python -m tests.support.docs`"


def test_what_the_page_says_can_be_done(tmp_path: Path) -> None:
    play(PAGE, tmp_path)


@pytest.mark.parametrize("code", ["key_reused", "version_mismatch", "wrong_state", "dedupe_taken", "too_large"])
def test_the_page_names_the_codes(code: str) -> None:
    assert f"`{code}`" in PAGE.read_text()


@ANY_DATABASE
async def test_linters_find_nothing(schema: dict[str, Any]) -> None:
    """The rules of spectral (`spectral:oas`) and redocly (`recommended`) that were once broken; both find no error."""
    found = list(operations(schema))
    shapes = [re.sub(r"\{[^}]*\}", "{}", path) for path in schema["paths"]]
    tags = {tag["name"] for tag in schema["tags"] if tag["description"]}
    parameters = {
        place: {one["name"] for one in operation.get("parameters", ()) if one["in"] == "path"}
        for place, operation in found
    }

    assert len(shapes) == len(set(shapes))
    assert {tag for _, operation in found for tag in operation["tags"]} == tags
    assert [place for place, operation in found if not operation["tags"] or not operation.get("description")] == []
    assert [place for place, operation in found if "security" not in operation] == []
    assert [place for place, names in parameters.items() if names != set(re.findall(r"\{([^}]*)\}", place))] == []
    assert [place for place, part in parts(schema) if part.get("type") == "array" and "items" not in part] == []
    assert schema["info"]["license"]["identifier"] == "Apache-2.0"
    assert schema["servers"]


@ANY_DATABASE
async def test_bounds_are_written_in_the_words_of_json_schema(schema: dict[str, Any]) -> None:
    """Pydantic writes `ge` for `minimum` where it cannot push a bound through a validator."""
    odd = {"ge", "gt", "le", "lt", "min_length", "max_length"}

    assert [place for place, part in parts(schema) if "type" in part and odd & part.keys()] == []


@ANY_DATABASE
async def test_an_example_says_what_its_status_means(schema: dict[str, Any]) -> None:
    """Examples of answers stand with the answer, where they differ from that of the schema, and fit it."""
    examples = {
        (place, status): said["content"]["application/json"]
        for place, operation in operations(schema)
        for status, said in operation["responses"].items()
        if "example" in said.get("content", {}).get("application/json", {})
    }

    for content in examples.values():
        whole = {"components": schema["components"], **content["schema"]}
        jsonschema_rs.validator_for(whole).validate(content["example"])
    told = {place: content["example"] for place, content in examples.items()}
    assert told[("POST /api/v1/jobs", "200")]["created"] is False
    assert [job["created"] for job in told[("POST /api/v1/bulk/submit", "200")]["jobs"]] == [False]
    assert told[("POST /api/v1/videos", "200")]["how"] == "continued"


def parts(inside: Any, place: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    if isinstance(inside, dict):
        yield place, inside
    pairs = inside.items() if isinstance(inside, dict) else enumerate(inside) if isinstance(inside, list) else ()
    for name, part in pairs:
        yield from parts(part, f"{place}/{name}")
