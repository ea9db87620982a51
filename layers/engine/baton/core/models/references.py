"""What a model writes in a plan in place of a value: where it is taken from. It is no expression, and nothing is rendered."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

FROM, AT = "$from", "at"


def filled(value: Any, source: Callable[[int], Any]) -> Any:
    """The value with what it refers to: of a step by its number, 0 for the arguments of the one that has failed.

    Raises `ValueError` for what is not there.
    """
    if isinstance(value, list):
        return [filled(one, source) for one in value]
    if not isinstance(value, dict):
        return value
    if not is_reference(value):
        return {name: filled(one, source) for name, one in value.items()}
    found = source(value[FROM])
    for part in filter(None, str(value.get(AT, "")).split("/")):
        name = part.replace("~1", "/").replace("~0", "~")
        if isinstance(found, dict) and name in found:
            found = found[name]
        elif isinstance(found, list) and name.isdecimal() and int(name) < len(found):
            found = found[int(name)]
        else:
            raise ValueError(f"step {value[FROM]} has given nothing at {value[AT]}")
    return found


def is_reference(value: Any) -> bool:
    """Whether a value of a plan stands for what another step has given."""
    return (
        isinstance(value, dict)
        and value.keys() <= {FROM, AT}
        and isinstance(value.get(FROM), int)
        and not isinstance(value[FROM], bool)
    )
