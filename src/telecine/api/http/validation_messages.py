"""What is wrong with a request, in our words: pydantic speaks to those who wrote the models, not to those who ask."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, get_args

from pydantic import BaseModel
from starlette.requests import Request

OURS = "value_error"
UNKNOWN = "extra_forbidden"
LONGEST = 80

# By pydantic's kinds of errors; filled in with what the error knows.
SENTENCES = {
    "missing": "it is missing",
    "string_type": "a text is wanted",
    "string_unicode": "it has a character that is none",
    "string_too_short": "at least {min_length} characters are wanted",
    "string_too_long": "at most {max_length} characters are taken",
    "string_pattern_mismatch": "it has not the right form: {pattern}",
    "int_type": "a whole number is wanted",
    "int_parsing": "a whole number is wanted",
    "int_parsing_size": "a smaller number is wanted",
    "int_from_float": "a whole number is wanted",
    "float_type": "a number is wanted",
    "float_parsing": "a number is wanted",
    "finite_number": "a number is wanted that is not infinite",
    "bool_type": "true or false is wanted",
    "bool_parsing": "true or false is wanted",
    "greater_than": "more than {gt} is wanted",
    "greater_than_equal": "at least {ge} is wanted",
    "less_than": "less than {lt} is wanted",
    "less_than_equal": "at most {le} is taken",
    "list_type": "a list is wanted",
    "dict_type": "an object is wanted",
    "too_short": "at least {min_length} are wanted",
    "too_long": "at most {max_length} are taken",
    "literal_error": "use {expected}",
    "enum": "use {expected}",
    "model_type": "an object is wanted",
    "model_attributes_type": "an object is wanted",
}


@dataclass(frozen=True, slots=True)
class ValidationFault:
    """One thing that is wrong, and where."""

    at: str
    message: str
    within: str | None = None  # what the sentence begins with, if not with the place itself

    def __str__(self) -> str:
        place = self.at if self.within is None else self.within
        return f"{place}: {self.message}" if place else self.message


def faults_of(request: Request, errors: Sequence[Mapping[str, Any]]) -> list[ValidationFault]:
    """All that is wrong, one for each place. Unknown fields come first: they tell why another one is missing."""
    ordered = sorted(errors, key=lambda error: error["type"] != UNKNOWN)
    by_place: dict[str, ValidationFault] = {}
    for error in ordered:
        fault = _fault(request, error)
        by_place.setdefault(fault.at or fault.message, fault)
    return [*by_place.values()]


def _fault(request: Request, error: Mapping[str, Any]) -> ValidationFault:
    source, *place = error["loc"]
    if error["type"] == "json_invalid":
        return ValidationFault("", f"the body is not JSON: {_reason(error)} at character {place[-1] if place else 0}")
    if source == "path":
        return ValidationFault("", _id(str(place[0]), error))
    if source != "body":
        return ValidationFault(".".join(str(part) for part in place), _sentence(error))
    if not place and error["type"] != OURS:
        return ValidationFault("", _body(error))
    field = getattr(request.scope.get("route"), "body_field", None)
    return _in_body(field.field_info.annotation if field else None, place, error)


def _in_body(kind: Any, place: list[Any], error: Mapping[str, Any]) -> ValidationFault:
    """Without the names of our classes and functions, which pydantic puts between those of fields."""
    models, path = _models(kind), list[str]()
    parts = place[:-1] if error["type"] == UNKNOWN else place
    for part in parts:
        known = [model.model_fields[part] for model in models if part in model.model_fields]
        if known:
            models = [model for one in known for model in _models(one.annotation)]
        elif not isinstance(part, int):
            models = [model for model in models if model.__name__.endswith(part)] or models
            continue
        path.append(str(part))
    if error["type"] != UNKNOWN:
        return ValidationFault(".".join(path), _sentence(error))
    name, fields = str(place[-1])[:LONGEST], [*dict.fromkeys(name for model in models for name in model.model_fields)]
    return ValidationFault(".".join((*path, name)), f"there is no `{name}`; {_hint(name, fields)}", ".".join(path))


def _models(kind: Any) -> list[type[BaseModel]]:
    """The models that a type is made of, also those of lists and of choices."""
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return [kind]
    return [model for part in get_args(kind) for model in _models(part)]


def _hint(name: str, known: Iterable[str]) -> str:
    names = [*known]
    near = get_close_matches(name, names, n=1)
    return f"did you mean `{near[0]}`?" if near else f"there is {', '.join(f'`{one}`' for one in names)}"


def _sentence(error: Mapping[str, Any]) -> str:
    """In our words, else in those of whoever complains."""
    words = SENTENCES.get(error["type"])
    if words is None:
        return str(error["msg"]).removeprefix("Value error, ")
    try:
        return words.format(**error.get("ctx") or {})
    except KeyError:
        return str(error["msg"])


def _body(error: Mapping[str, Any]) -> str:
    if error["type"] == "missing":
        return "a body is missing: send a JSON object, with Content-Type: application/json"
    if error["type"] in ("model_type", "model_attributes_type", "dict_type"):
        if isinstance(error.get("input"), (bytes, str)):
            return "the body is not read as JSON: send it with Content-Type: application/json"
        return "the body must be a JSON object"
    return _sentence(error)


def _reason(error: Mapping[str, Any]) -> str:
    text = str((error.get("ctx") or {}).get("error", "something else"))
    return f"{text[:1].lower()}{text[1:]}"


def _id(name: str, error: Mapping[str, Any]) -> str:
    """`job_id` is a job's id."""
    thing, _, what = name.rpartition("_")
    called = f"a {thing}'s {what}" if thing else f"the {name}"
    given = repr(str(error.get("input"))[:LONGEST])
    if error["type"] in ("int_parsing", "int_parsing_size", "int_from_float"):
        return f"{called} is a number, not {given}"
    if error["type"] in ("greater_than_equal", "less_than_equal"):
        return f"{called} is a number from 1 on, not {given}"
    return f"{given} is not {called}: {_sentence(error)}"
