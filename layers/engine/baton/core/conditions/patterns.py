"""Regular expressions of JSONPath, on an engine with linear time, and the weight of a pattern.

The engine is that of the JSON Schema library (RE2's syntax, without look-around and back-references), so
that no further package is needed.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from baton.core.conditions import model
from baton.core.conditions.values import ResultCache

_TOKENS = re.compile(
    r"""(?P<times>\{(?P<least>\d*),?(?P<most>\d*)\})
      | (?P<letters>\\[wWdDsS]|\\[pP](?:\{[^}]*\})?)
      | (?P<one>\\.)
      | (?P<set>\[\^?\]?(?:\[:[^]]*:\]|\\.|[^]])*\]?)
      | (?P<open>\()
      | (?P<close>\))
      | (?P<any>.)""",
    re.VERBOSE | re.DOTALL,
)
_LETTERS = re.compile(r"\\[pP]")
_FOLDED = re.compile(r"\(\?[a-zA-Z]*i")
_OF_LETTERS = 100  # what a class of Unicode's comes to, compiled, where one character is 1
_OF_SET = 4
PROGRAM_BYTES = 1 << 20
"""Memory of a compiled pattern, in bytes. A larger pattern is refused."""

MACHINE_BYTES = 1 << 17
"""Memory of a running pattern, in bytes. With less memory a pattern is slower, and still linear."""

_WEIGHT_BYTES = 500


class BadPattern(Exception):
    """A pattern that does not compile or is too large."""


@lru_cache(maxsize=64)  # a pattern is charged for each of the texts that it is held against
def weight(pattern: str) -> int:
    """Return the compiled size, roughly in characters. A part counts once for each repetition around it."""
    groups = [0]
    last = 0
    for token in _TOKENS.finditer(pattern):
        kind = token.lastgroup
        if kind == "open":
            groups[-1] += last
            groups.append(0)
            last = 0
        elif kind == "close":
            last += groups.pop() + 1
            groups = groups or [0]
        elif kind == "times":
            last *= max(1, int((token["most"] or token["least"] or "1")[:9]))
        else:
            groups[-1] += last
            last = 1
            if kind == "any" and token[0] == ".":
                last = _OF_LETTERS // 10
            elif kind == "letters":
                last = _OF_LETTERS if token["letters"][1] in "pP" else _OF_LETTERS // 10
            elif kind == "set":
                last = _OF_SET + len(token["set"]) + _OF_LETTERS * len(_LETTERS.findall(token["set"]))
    total = sum(groups) + last
    return max(1, total * 3 if _FOLDED.search(pattern) else total)


def time_of(pattern: str, length: int) -> int:
    """Return the units of work to match a pattern against a text of `length` units."""
    return 1 + 4 * weight(pattern) + length * weight(pattern) // 6


def pattern_bytes(total: int) -> int:
    """Estimate the bytes of compiled patterns with a total weight."""
    return _WEIGHT_BYTES * total


def options() -> Any:
    """Return the library's options for an engine with linear time and bounded memory."""
    import jsonschema_rs  # twelve megabytes, which most cold starts do not need

    return jsonschema_rs.RegexOptions(size_limit=PROGRAM_BYTES, dfa_size_limit=MACHINE_BYTES)


def matcher(pattern: str, whole: bool) -> Any:
    """Return a function that tests if a text matches, as a whole or anywhere. Raises `BadPattern`."""
    if weight(pattern) > model.PATTERN_WEIGHT:
        raise BadPattern("the pattern is too large; repeat less: {1,1000} counts a thousand times")
    return _matcher((pattern, whole))[0]


def _compiled(key: tuple[str, bool]) -> tuple[Any, int]:
    import jsonschema_rs

    pattern, whole = key
    try:
        schema = {"pattern": f"^(?:{pattern})$" if whole else pattern}
        check = jsonschema_rs.validator_for(schema, pattern_options=options()).is_valid
    except (jsonschema_rs.ValidationError, ValueError) as error:
        raise BadPattern(
            f"`{pattern[:100]}` is not a regular expression without look-around and back-references"
        ) from error
    return check, pattern_bytes(weight(pattern))


_matcher = ResultCache(_compiled, model.COMPILED_BYTES, lambda made: made[1])
