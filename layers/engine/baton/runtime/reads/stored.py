"""A value that is kept as a blob, for a caller who may read a saga whose log names it.

Which values a log names is core/log/references.py's to know.
"""

from __future__ import annotations

from contextlib import aclosing
from typing import Any

import msgspec

from baton.core.log.codec import decode_entry
from baton.core.log.events import Value
from baton.core.log.references import SCHEME, value_of
from baton.errors import NotFound, TooLarge
from baton.ports import Clock, Log
from baton.runtime.engine.request import Opened
from baton.runtime.invocation.store_retrier import StoreRetrier
from baton.runtime.log.history import records_of

PAGE = 200  # entries read at once, so that a long log is never in memory as a whole
PART = 1_000_000  # bytes of a large value in one answer: as a text in JSON they double, and double again


async def find_value(log: Log, call: StoreRetrier, clock: Clock, opened: Opened, digest: str) -> Value:
    """The value of this digest in the saga's state or, where that has let go of it, in its log, over all branches.

    Raises `NotFound`, and `TooLarge` for a log that cannot be read before the end of the request.
    """
    ref, state = SCHEME + digest, opened.history.state
    if (found := value_of(state, ref)) is not None:
        return found
    async with aclosing(records_of(log, call, opened.head.ref, state.lineage.branch + 1, 0, PAGE)) as pages:
        async for page in pages:
            for record in page:
                for event in decode_entry(record.data).events:
                    if (found := value_of(event, ref)) is not None:
                        return found
            if clock.now() >= call.deadline:
                raise TooLarge(
                    f"the log of this saga is too long to be searched within one request: of {state.version} "
                    f"versions it came to {page[-1].version}"
                )
    raise NotFound(f"the log of `{state.origin.saga}` names no value {ref}")


def shown(ref: str, data: bytes, after: int, most: int) -> dict[str, Any]:
    """The value if an answer has room for it (`most` bytes), else the part of its JSON that begins with byte `after`."""
    if len(data) <= most:
        return {"ref": ref, "size": len(data), "value": msgspec.json.decode(data), "part": None, "next": None}
    end = min(after + PART, len(data))
    while end < len(data) and data[end] & 0xC0 == 0x80:  # not within a character
        end -= 1
    text = data[after:end].decode(errors="replace")
    return {
        "ref": ref,
        "size": len(data),
        "value": None,
        "part": text,
        "next": end if end < len(data) else None,
    }
