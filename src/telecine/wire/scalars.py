"""Scalars of JSON bodies, as strict as the schema: a string or a boolean is not a number, a number is not a boolean."""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator, Field
from pydantic_core import PydanticKnownError

# The largest number that every database and every reader of JSON holds exactly.
BIGGEST = 2**53 - 1


def _whole(value: object) -> object:
    """Numbers only, and 7.0 is one: to JSON it is the same as 7."""
    if isinstance(value, (bool, str)):
        raise PydanticKnownError("int_type")
    return value


# Bounds stand before it: after it, they would be missing in the schema.
WHOLE = BeforeValidator(_whole)
Whole = Annotated[int, WHOLE]
Number = Annotated[int, Field(ge=0, le=BIGGEST), WHOLE]
# A strict float takes 7 as well as 7.0, which are the same to JSON.
Real = Annotated[float, Field(strict=True, allow_inf_nan=False)]
Flag = Annotated[bool, Field(strict=True)]
# Part of a path: a string by nature.
PathNumber = Annotated[int, Field(ge=0, le=BIGGEST)]
