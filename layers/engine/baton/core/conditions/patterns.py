"""Regular expressions of JSONPath, by an engine whose time is linear, and how heavy a pattern is.

Belongs here: what keeps a pattern from hanging. The engine is that of the JSON Schema library (RE2's syntax, without
look-around and back-references), so that no further package is needed.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from baton.core.conditions import caps

_REPEATED = re.compile(r"\{(\d*),?(\d*)\}")
_CLASSES = re.compile(r"\\[pP]|\(\?\w*i|\[:")
_PROGRAM_BYTES = 1 << 20


class BadPattern(Exception):
    """What is wrong with a pattern."""


def weight(pattern: str) -> int:
    """Length times all counted repetitions: an upper bound of the compiled size, roughly in characters."""
    total = len(pattern) * (50 if _CLASSES.search(pattern) else 1)
    for least, most in _REPEATED.findall(pattern):
        total *= max(1, int((most or least or "1")[:9]))
    return total


def time_of(pattern: str, length: int) -> int:
    """Units of work of holding a pattern against a text of so many units."""
    return 1 + 4 * weight(pattern) + length * weight(pattern) // 6


@lru_cache(maxsize=caps.PLANS)
def matcher(pattern: str, whole: bool) -> Any:
    """A function that says whether a text matches, as a whole or anywhere. Raises `BadPattern`."""
    if weight(pattern) > caps.PATTERN_WEIGHT:
        raise BadPattern("the pattern is too large; repeat less: {1,1000} counts a thousand times")
    import jsonschema_rs  # twelve megabytes, which most cold starts do not need

    options = jsonschema_rs.RegexOptions(size_limit=_PROGRAM_BYTES, dfa_size_limit=_PROGRAM_BYTES)
    try:
        schema = {"pattern": f"^(?:{pattern})$" if whole else pattern}
        return jsonschema_rs.validator_for(schema, pattern_options=options).is_valid
    except (jsonschema_rs.ValidationError, ValueError) as error:
        raise BadPattern(
            f"`{pattern[:100]}` is not a regular expression without look-around and back-references"
        ) from error
