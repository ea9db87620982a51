"""The values that a part of a log names: events, entries, and the state that is folded from them.

What the values hold is not looked into: text in them that looks like a reference is none.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from baton.core.graph.graph import hash_of
from baton.core.log.events import Gives, Value

SCHEME = "cas://sha256/"
PERIOD = "@"
"""What comes behind the digest of a value that is not kept for ever: where it is."""
_encode = msgspec.json.Encoder().encode


def value_of(part: Any, ref: str) -> Value | None:
    """The value that `part` names by this reference, whatever its period: a blob, or what a summary stands for and the entry still holds."""
    for value in _values(part):
        if value.ref.partition(PERIOD)[0] == ref:
            return value
    if isinstance(part, Gives) and part.full is not None and not part.full.ref:
        # The summary names it by its hash, as if it were a blob.
        return part.full if SCHEME + hash_of(_encode(part.full.v)) == ref else None
    return None


def _values(part: Any) -> Iterator[Value]:
    if isinstance(part, Value):
        yield part
    elif isinstance(part, msgspec.Struct):
        for name in part.__struct_fields__:
            yield from _values(getattr(part, name))
    elif isinstance(part, dict):
        for item in part.values():
            yield from _values(item)
    elif isinstance(part, tuple):
        for item in part:
            yield from _values(item)
