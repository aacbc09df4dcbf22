"""Text and JSON that every database can hold.

PostgreSQL stores neither NUL nor half a surrogate pair, and JSON has no NaN; titles of films and the output of tools
have all of them. Work that is done shall not be lost for a character, so what cannot be stored is replaced.
"""

from __future__ import annotations

import json
import math
import re
from json.encoder import c_make_encoder, encode_basestring_ascii  # type: ignore[attr-defined]

from telecine.facts import Json

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_MARK = "\ufffd"
_read = json.JSONDecoder().raw_decode
_exact = json.JSONEncoder(allow_nan=False)
# What `encode` makes anew each time, which takes as long as to use it: made once, where there is one in C. It does not
# look for values that contain themselves, so it is given only what contains nothing.
_exactly = c_make_encoder and c_make_encoder(
    None, _exact.default, encode_basestring_ascii, None, ": ", ", ", False, False, False
)
_CONTAINS_NOTHING = frozenset({str, int, float, bool, type(None)})


def is_storable(text: str) -> bool:
    return _UNSTORABLE.search(text) is None


def storable(text: str) -> str:
    return _UNSTORABLE.sub(_MARK, text)


def dumps(value: Json) -> str:
    """JSON of `value`; what JSON does not know becomes text, what cannot be stored is replaced, NaN is null."""
    try:
        text = json.dumps(value, allow_nan=False, default=str)
    except ValueError:
        return json.dumps(_cleaned(value), default=str)
    # Every surrogate is escaped so, also the pair of a harmless emoji: a second look finds it clean.
    if "\\u0000" in text or "\\ud" in text:
        return json.dumps(_cleaned(value), default=str)
    return text


def exact(value: Json) -> str:
    """JSON of `value`, or TypeError, ValueError or RecursionError: nothing is replaced."""
    if _exactly and type(value) is dict and _CONTAINS_NOTHING.issuperset(map(type, value.values())):
        return "".join(_exactly(value, 0))
    return _exact.encode(value)


def loads(text: str) -> Json:
    """JSON as a database gives it back: nothing stands around it, so nothing has to be skipped."""
    return _read(text)[0]


def _cleaned(value: Json) -> Json:
    match value:
        case str():
            return storable(value)
        case float():
            return value if math.isfinite(value) else None
        case dict():
            return {_cleaned(key): _cleaned(item) for key, item in value.items()}
        case list() | tuple():
            return [_cleaned(item) for item in value]
        case _:
            return value
