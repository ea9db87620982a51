"""What has come where a stream of parts was asked for: such a stream, a whole answer or error as JSON, or a page. Pure.

The only file that classes an answer by what it is. Which failure an error is, is said in failing.py.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterable, AsyncIterator, Mapping
from typing import Any, Final

import msgspec

from baton.core.failures import quoted
from baton.ports import StepFailure

_BLANK: Final = b"\xef\xbb\xbf \t\r\n"
_LONGEST_FIELD: Final = 16
_is_stream = re.compile(rb":|(data|event|id|retry)\s*(:|[\r\n]|$)").match
_TITLE: Final = re.compile(r"<title[^>]*>(.*?)</title", re.IGNORECASE | re.DOTALL)
_MOST_PAGE, _TOLD = 8_192, 200
_SAYS: Final = ("message", "detail", "msg")


async def as_stream(parts: AsyncIterable[bytes], host: str) -> AsyncIterator[bytes]:
    """The bytes of an answer as those of a stream: JSON that came whole is a stream of one part.

    Raises `StepFailure` for a page and for any other text: no model has answered.
    """
    begin, source = b"", aiter(parts)
    async for part in source:
        begin += part
        if len(begin.lstrip(_BLANK)) >= _LONGEST_FIELD:
            break
    first = begin.lstrip(_BLANK)
    if not first or _is_stream(first):
        yield begin
        async for part in source:
            yield part
        return
    is_json = first[:1] in b"{["
    rest = [first]
    async for part in source:
        rest.append(part)
        if not is_json and sum(map(len, rest)) > _MOST_PAGE:
            break
    whole = b"".join(rest)
    if not is_json:
        raise _no_answer(whole.decode(errors="replace"), host)
    try:
        data = msgspec.json.decode(whole)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise StepFailure(
            "invalid_response", f"the answer of {host} is JSON that cannot be read", happened=True
        ) from None
    for one in data if isinstance(data, list) else [data]:
        yield b"data: " + msgspec.json.encode(one) + b"\n\n"


def error_in(part: Any) -> Mapping[str, Any] | None:
    """The error that a part is, of a provider that does not put it under `error`."""
    if not isinstance(part, Mapping) or "choices" in part or "usage" in part:
        return None
    text = next((part[name] for name in _SAYS if isinstance(part.get(name), str)), None)
    if text is None and part.get("object") != "error":
        return None
    return {**part, "message": text or "it says no more"}


def _no_answer(text: str, host: str) -> StepFailure:
    if not text.startswith("<"):
        return StepFailure(
            "invalid_response", f"{host} answered with text in place of a stream: {quoted(text, _TOLD)}"
        )
    title = _TITLE.search(text)
    named = f" (`{quoted(' '.join(title[1].split()), _TOLD)}`)" if title else ""
    return StepFailure(
        "invalid_response",
        f"{host} answered with a page{named}; look at the address of the profile, and at what stands before it",
    )
