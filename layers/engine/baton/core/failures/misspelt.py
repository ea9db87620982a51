"""Names in a document's rules that no failure has: near misses of codes and classes, and the names of exceptions.

A code of a tool's own (`sold_out`) is unlike all of them, and is none.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from baton.core.failures.classes import code_of
from baton.core.failures.codes import ALIASES, CLASSES, CODES
from baton.core.failures.names import EXCEPTIONS, SERVICES

_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_IS_EXCEPTION = re.compile(r"[A-Z]\w*[a-z]\w*(Error|Exception|Timeout|Interrupt)")
_IS_CLASS = re.compile(r"[A-Z][a-z0-9]+(?:[A-Z][a-z0-9]*)+")
_SUFFIX = re.compile("(Error|Exception)$")
_MOST_EDITS = 2
_SHORTEST = 4
_BY_LAST_PART = {name.rpartition(".")[2]: code for name, code in reversed(list(EXCEPTIONS.items()))}


def exception_meant(name: str) -> str | None:
    """What to write instead of the name of an exception or of a service's error; None for what is none."""
    last = name.rpartition(".")[2]
    known = EXCEPTIONS.get(name) or _BY_LAST_PART.get(last) or SERVICES.get(last)
    is_called = _IS_EXCEPTION.fullmatch(last) is not None
    if known is None and not is_called and not _IS_CLASS.fullmatch(last):
        return None
    if not any(letter.isupper() for letter in last) or last.isupper():
        return None  # `api_error`, `ETIMEDOUT`: a tool may say so itself
    short = _CAMEL.sub("_", _SUFFIX.sub("", last)).lower()
    if known is None:
        known = short if short in CODES or short in CLASSES else ALIASES.get(short) or near(short, CLASSES)
    if known:
        return f"write `{known}`"
    said = f'let the tool raise `StepFailure("{short}")`, and write `{short}`'
    # A service's own code may look so, too, and a tool may pass it on.
    return said if is_called else f"{said}; the code of a tool that says `{name}` itself is `{code_of(name)}`"


def near(code: str, more: Collection[str] = ()) -> str:
    """The code, or one of `more`, of which this is a near miss; empty for a known one, and for what is like none."""
    if code in CODES or code in more:
        return ""
    found = next((known for known in (*more, *CODES, *ALIASES) if _is_near(code, known)), "")
    return found if found in more else code_of(found)


def _is_near(code: str, known: str) -> bool:
    """Whether two names differ by slips of a finger: one in a word, two in all, or in how words are divided."""
    ours, theirs = _words(code), _words(known)
    if "".join(ours) == "".join(theirs):
        return True
    if len(ours) != len(theirs) or len(known) < _SHORTEST:
        return False
    pairs = [(one, other) for one, other in zip(ours, theirs, strict=True) if one != other]
    return len(pairs) <= _MOST_EDITS and all(_is_slip(one, other) for one, other in pairs)


def _words(name: str) -> list[str]:
    return re.split("[_.]", name)


def _is_slip(one: str, other: str) -> bool:
    """Whether one letter is missing, too many, another, or has changed places with its neighbour."""
    if len(one) > len(other):
        one, other = other, one
    start = _shared(one, other)
    if len(one) < len(other):
        return one[start:] == other[start + 1 :]
    swapped = (
        one[start : start + 2] == other[start : start + 2][::-1] and one[start + 2 :] == other[start + 2 :]
    )
    return swapped or one[start + 1 :] == other[start + 1 :]


def _shared(one: Iterable[str], other: Iterable[str]) -> int:
    """How many letters are the same from the beginning on."""
    count = 0
    for left, right in zip(one, other, strict=False):
        if left != right:
            break
        count += 1
    return count
