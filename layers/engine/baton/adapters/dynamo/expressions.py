"""Update expressions and conditions, made from the attributes that change or that were seen."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from baton.adapters.dynamo.items import Item


def changing(changes: Mapping[str, Any]) -> tuple[str, Item]:
    """An update expression that sets each attribute to its value, or removes it where that is None."""
    sets = [f"#{name} = :{name}" for name, value in changes.items() if value is not None]
    removes = [f"#{name}" for name, value in changes.items() if value is None]
    values = {f":{name}": value for name, value in changes.items() if value is not None}
    return f"SET {', '.join(sets)} REMOVE {', '.join(removes)}", values


def unchanged(seen: Mapping[str, Any]) -> tuple[str, Item]:
    """A condition that each attribute has the value that was seen, or is absent where that is None."""
    terms = [
        f"attribute_not_exists(#{name})" if value is None else f"#{name} = :seen_{name}"
        for name, value in seen.items()
    ]
    values = {f":seen_{name}": value for name, value in seen.items() if value is not None}
    return " AND ".join(terms), values
