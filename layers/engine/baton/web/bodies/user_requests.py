"""The bodies of requests about users. Their docstrings are their descriptions in the OpenAPI document."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema

from baton.core.money import MOST_USD, amount_of, micro_dollars
from baton.core.outside.users import USER_PATTERN, USER_SHAPE, is_user
from baton.core.user_rules import LONGEST_NOTE
from baton.web.bodies.reading import Body, Plainly

_DOLLARS = r"^([1-9][0-9]{0,5}(\.[0-9]{1,6})?|0\.0{0,5}[1-9][0-9]{0,5})$"  # more than 0
_MORE = "must be more than 0; a user who may spend nothing is blocked instead"


def _user(name: str) -> str:
    if not is_user(name):
        raise ValueError(USER_SHAPE)
    return name


def _limit(value: Any) -> int:
    """Micro-dollars; 0: null, the limit of all users."""
    if value is None:
        return 0
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if value == "0":
        raise ValueError(_MORE)
    if not is_number and not (isinstance(value, str) and re.fullmatch(_DOLLARS, value)):
        raise ValueError(f"`{str(value)[:40]}` is not an amount of dollars; give for example 2 or '2.00'")
    if not (found := micro_dollars([amount_of(value)])):
        raise ValueError(_MORE)
    return found


_LIMIT_SCHEMA = {
    "anyOf": [
        {"type": "number", "exclusiveMinimum": 0, "maximum": MOST_USD},
        {"type": "string", "pattern": _DOLLARS, "examples": ["2.00"]},
        {"type": "null"},
    ]
}


class UserBody(Body):
    """A user, and the reason for the decision."""

    user: Annotated[str, AfterValidator(_user)] = Field(
        description="As lists of sagas show it.",
        examples=["ada"],
        json_schema_extra={"pattern": f"^{USER_PATTERN}$"},
    )
    note: Annotated[str, Plainly] = Field(
        "",
        max_length=LONGEST_NOTE,
        description="For operators who look at it next.",
        examples=["a loop of a script"],
    )


class UserLimitBody(UserBody):
    """The limit of a user's spending on a day."""

    limit_usd: Annotated[int, BeforeValidator(_limit), WithJsonSchema(_LIMIT_SCHEMA)] = Field(
        description="Dollars a day (UTC). Null: as much as all users."
    )
