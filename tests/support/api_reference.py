"""The API reference, docs/api.md: written from the OpenAPI document of the server.

`python -m tests.support.docs` writes it again; tests/e2e/test_docs_site.py compares.
"""

from collections.abc import Iterator
from typing import Any

from fastapi import FastAPI

from telecine.api.app import all_routes
from telecine.api.http.routing import Route
from telecine.api.openapi.schema import described
from telecine.wiring.apps import api_of

HEAD = """# API reference

Every route of the server with its parameters, bodies and responses. `python -m tests.support.docs` writes this page
from the OpenAPI document, which a server offers at `/openapi.json`; `/docs` shows it as a page that sends requests.
[HTTP](http.md) explains keys, errors, cursors and limits. Every route can also respond with 422, 429 and 503, and with
401 and 403 if it needs a key: as a `Problem`.
"""
COMMON = {"401", "403", "422", "429", "503"}


def openapi_document() -> dict[str, Any]:
    """What `/openapi.json` serves, without a database."""
    application = FastAPI(separate_input_output_schemas=False)
    routers, notes = api_of()
    application.router.routes.extend(all_routes(routers))
    for route in application.routes:
        if isinstance(route, Route):
            route.describe()
    return described(application.openapi(), application.routes, notes)


def api_reference(document: dict[str, Any]) -> str:
    """The whole page: one section for each tag, then the schemas."""
    parts = [HEAD]
    for tag in document["tags"]:
        parts.append(f"\n## {tag['name'].capitalize()}\n\n{_plain(tag['description'])}.\n")
        for path, method, operation in _operations(document):
            if operation.get("tags", [""])[0] == tag["name"]:
                parts.append(_operation(path, method, operation))
    parts.append("\n## Schemas\n")
    schemas = document["components"]["schemas"]
    parts += [_schema(name, schemas[name]) for name in sorted(schemas)]
    return "".join(parts)


def _operations(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in sorted(document["paths"].items()):
        for method, operation in methods.items():
            yield path, method, operation


def _operation(path: str, method: str, operation: dict[str, Any]) -> str:
    about = _plain(operation.get("description") or operation["summary"])
    lines = [f"\n### `{method.upper()} {path}`\n", f"\n{about}.\n"]
    scope = operation.get("x-scope")
    needs = f"a key of scope `{scope}`" if scope else "no key"
    lines.append(f"\nOperation `{operation['operationId']}`; needs {needs}.\n")
    lines += _parameters(operation.get("parameters", []))
    for kind, content in operation.get("requestBody", {}).get("content", {}).items():
        lines.append(f"\nBody: `{kind}`, {_type(content.get('schema', {}))}.\n")
    lines += _responses(operation["responses"])
    return "".join(lines)


def _parameters(parameters: list[dict[str, Any]]) -> Iterator[str]:
    if parameters:
        yield "\n| parameter | in | type | |\n|---|---|---|---|\n"
    for one in parameters:
        needed = "" if one.get("required") or "default" in one["schema"] else " (optional)"
        default = f"Default: `{one['schema']['default']}`." if one["schema"].get("default") is not None else ""
        about = _cell(one.get("description") or one["schema"].get("description") or "")
        about += ". " if about and default else ""
        yield f"| `{one['name']}` | {one['in']}{needed} | {_type(one['schema'])} | {about}{default} |\n"


def _responses(responses: dict[str, Any]) -> Iterator[str]:
    yield "\n| status | body | |\n|---|---|---|\n"
    for status, said in sorted(responses.items()):
        bodies = [_body(kind, content) for kind, content in said.get("content", {}).items()]
        about = "" if said["description"] == "Successful Response" else _cell(said["description"])
        if status not in COMMON:
            yield f"| {status} | {', '.join(bodies) or '–'} | {about} |\n"


def _body(kind: str, content: dict[str, Any]) -> str:
    name = _type(content.get("schema", {}))
    return name if kind.endswith("json") and name != "any" else f"`{kind}`"


def _schema(name: str, schema: dict[str, Any]) -> str:
    about = " ".join(schema.get("description", "").split())
    lines = [f"\n### {name}\n", f"\n{about}\n" if about else ""]
    if "enum" in schema:
        lines.append("\nOne of " + ", ".join(f"`{value}`" for value in schema["enum"]) + ".\n")
    fields = schema.get("properties", {})
    if fields:
        lines.append("\n| field | type | |\n|---|---|---|\n")
    for field, kind in fields.items():
        needed = "" if field in schema.get("required", ()) else " (optional)"
        lines.append(f"| `{field}`{needed} | {_type(kind)} | {_cell(kind.get('description', ''))} |\n")
    return "".join(lines)


def _type(schema: dict[str, Any]) -> str:
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[1]
        return f"[{name}](#{name.lower()})"
    for several in ("anyOf", "oneOf", "allOf"):
        if several in schema:
            return " or ".join(dict.fromkeys(_type(one) for one in schema[several]))
    if "enum" in schema or "const" in schema:
        return ", ".join(f"`{value}`" for value in schema.get("enum", [schema.get("const")]))
    kind = schema.get("type", "any")
    if kind == "array":
        return f"list of {_type(schema.get('items', {}))}"
    if kind == "object" and isinstance(schema.get("additionalProperties"), dict) and schema["additionalProperties"]:
        return f"object of {_type(schema['additionalProperties'])}"
    return " or ".join(kind) if isinstance(kind, list) else str(kind)


def _plain(text: str) -> str:
    return " ".join(text.split()).rstrip(".")


def _cell(text: str) -> str:
    return _plain(text).replace("|", "\\|")
