"""Models of request bodies about one user: a block, a limit, and facts to erase."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema

from baton.core.money import LONGEST_NOTE, MOST_USD, amount_of, micro_dollars
from baton.core.outside import USER_PATTERN, USER_SHAPE, is_user
from baton.web.bodies.requests import Body, Plainly

_DAY_DOLLARS = r"^([1-9][0-9]{0,5}(\.[0-9]{1,6})?|0\.0{0,5}[1-9][0-9]{0,5})$"  # more than 0
_MORE = "must be more than 0; a user who may spend nothing is blocked instead"


def _user(name: str) -> str:
    if not is_user(name):
        raise ValueError(USER_SHAPE)
    return name


def _limit(value: Any) -> int:
    """Return micro-dollars. 0 stands for null, the limit of all users."""
    if value is None:
        return 0
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number and not (isinstance(value, str) and re.fullmatch(f"{_DAY_DOLLARS}|0", value)):
        raise ValueError(f"`{str(value)[:40]}` is not an amount of dollars; give for example 2 or '2.00'")
    if not (found := micro_dollars([amount_of(value)])):
        raise ValueError(_MORE)
    return found


_LIMIT_SCHEMA = {
    "anyOf": [
        {"type": "number", "exclusiveMinimum": 0, "maximum": MOST_USD},
        {"type": "string", "pattern": _DAY_DOLLARS, "examples": ["2.00"]},
        {"type": "null"},
    ]
}


class UserFactsBody(Body):
    """A user whose facts are erased."""

    user: Annotated[str, AfterValidator(_user)] = Field(
        description="Name of the user, as in lists of sagas.",
        examples=["ada"],
        json_schema_extra={"pattern": f"^{USER_PATTERN}$"},
    )


class UserBody(UserFactsBody):
    """A user, and the reason for the decision."""

    note: Annotated[str, Plainly] = Field(
        "", max_length=LONGEST_NOTE, description="Note for other operators.", examples=["a loop of a script"]
    )


class UserLimitBody(UserBody):
    """Daily spending limit of a user."""

    limit_usd: Annotated[int, BeforeValidator(_limit), WithJsonSchema(_LIMIT_SCHEMA)] = Field(
        description="Limit in US dollars per day (UTC). Null applies the limit of all users."
    )
