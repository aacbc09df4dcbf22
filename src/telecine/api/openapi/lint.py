"""What linters of OpenAPI (spectral, redocly) demand beyond what FastAPI writes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

TAGS = {
    "jobs": "Submit jobs, look at them, change them",
    "bulk": "The same for many jobs at once",
    "tasks": "The units of work of a job: failed, stale, their logs",
    "uploads": "Files on their way in: tus 1.0, or one PUT",
    "events": "What happens, live",
    "flows": "Kinds of jobs; pause and resume them",
    "apps": "What is installed",
    "workers": "The fleet, for administrators",
    "worker": "What workers without a database ask",
    "webhooks": "Who is told what, and each delivery",
    "keys": "Keys of programs",
    "login": "Sessions of browsers",
    "stats": "How much there is to do",
    "health": "Probes and metrics",
}
LICENSE = {"name": "Apache License 2.0", "identifier": "Apache-2.0"}
# Two routes with one address for different methods name its last part differently.
SAME_PATHS = {"/api/v1/uploads/{name}": "/api/v1/uploads/{upload_id}"}
# Open to all, and showing more, or anything at all, to whoever has a key.
OPTIONAL_KEY = ("/metrics",)


def complete(schema: dict[str, Any], tags: Mapping[str, str], optional_key: tuple[str, ...]) -> None:
    """Add what is missing, in place. `tags` and `optional_key` are those of apps."""
    known = {**TAGS, **tags}
    schema["info"].setdefault("license", LICENSE)
    schema.setdefault("servers", [{"url": "/", "description": "This server"}])
    used = {tag for _, operation in operations(schema) for tag in operation.get("tags", ())}
    schema["tags"] = [{"name": name, "description": about} for name, about in known.items() if name in used]
    for ours, theirs in SAME_PATHS.items():
        _join(schema["paths"], ours, theirs)
    for path, operation in operations(schema):
        operation.setdefault("description", f"{operation['summary']}.")
        is_optional = path.startswith((*OPTIONAL_KEY, *optional_key))
        operation.setdefault("security", [{}, {"key": []}] if is_optional else [])
    _add_items(schema)


def operations(schema: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for path, methods in schema["paths"].items():
        for operation in methods.values():
            yield path, operation


def _join(paths: dict[str, Any], ours: str, theirs: str) -> None:
    name, other = (path.rpartition("{")[2].rstrip("}") for path in (ours, theirs))
    for method, operation in paths.pop(ours, {}).items():
        for parameter in operation.get("parameters", ()):
            if parameter["in"] == "path" and parameter["name"] == name:
                parameter["name"] = other
                parameter.setdefault("description", "Name of the file")
        paths[theirs][method] = operation


def _add_items(part: Any) -> None:
    """Tuples say what stands where; linters want to know of every array what is in it."""
    if isinstance(part, list):
        for inner in part:
            _add_items(inner)
    elif isinstance(part, dict):
        kinds = part.get("prefixItems")
        if part.get("type") == "array" and isinstance(kinds, list) and "items" not in part:
            different = [kind for at, kind in enumerate(kinds) if kind not in kinds[:at]]
            part["items"] = different[0] if len(different) == 1 else {"anyOf": different}
        for inner in part.values():
            _add_items(inner)
