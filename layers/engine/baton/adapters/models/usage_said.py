"""What a provider says that a request has used, in whichever form, as `Usage`. Pure; the only file that reads it.

A figure that is no whole number from 0 is not said. What is not said, or cannot be so, counts as the most that it can have been.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from baton.core.models.usage import Usage, most_used

_INPUT: Final = ("prompt_tokens", "input_tokens")
_OUTPUT: Final = ("completion_tokens", "output_tokens")
_CACHED: Final = ("cached_tokens", "cache_read_input_tokens")
_WRITTEN: Final = ("cache_write_tokens", "cache_creation_input_tokens")
"""The second of both stands beside `input_tokens` that are without it."""
_FIGURES: Final = (*_INPUT, *_OUTPUT, *_CACHED, *_WRITTEN, "total_tokens", "reasoning_tokens")
_DETAILS: Final = (
    "prompt_tokens_details", "input_tokens_details", "completion_tokens_details", "output_tokens_details",
)  # fmt: skip


class UsageSaid:
    """The figures of one answer. A stream may say them several times, sums so far or only a part of them: the highest counts."""

    def __init__(self) -> None:
        self._figures: dict[str, int] = {}

    def see(self, usage: Any) -> None:
        """A `usage` as it came."""
        if not isinstance(usage, Mapping):
            return
        places = [usage, *(inner for name in _DETAILS if isinstance(inner := usage.get(name), Mapping))]
        for name in _FIGURES:
            counts = [count for place in places if (count := _count(place.get(name))) is not None]
            if counts:
                self._figures[name] = max(self._figures.get(name, 0), *counts)

    @property
    def is_said(self) -> bool:
        """Tell whether anything is known of what was used."""
        return any(map(self._of, ("total_tokens", *_INPUT, *_OUTPUT)))

    def usage(self, model: str, read: int, written: int, *, is_empty: bool = False) -> Usage:
        """What was used, by a request of up to `read` tokens whose answer has up to `written`. `is_empty`: there is no answer."""
        if not self.is_said:
            return most_used(model, read, written)
        given, output, total = self._input(), max(map(self._of, _OUTPUT)), self._of("total_tokens")
        reasoning = self._of("reasoning_tokens")
        if given and total > given + output:  # thinking may be counted beside the rest of the answer
            output = total - given
        elif given and output:
            output += reasoning if reasoning > output else 0
        elif given:
            is_none = is_empty and any(name in self._figures for name in _OUTPUT)
            output = 0 if is_none else written
        elif output:
            given = total - output if total > output else read
        else:  # the sum alone: a token of output is the dearer one
            output = min(total, written) or total
            given = total - output
        return Usage(
            model=model,
            input=given,
            cached=max(map(self._of, _CACHED)),
            written=max(map(self._of, _WRITTEN)),
            output=output,
            reasoning=min(reasoning, output),
        )

    def _input(self) -> int:
        if self._of("prompt_tokens") or not self._of("input_tokens"):
            return self._of("prompt_tokens")
        return sum(map(self._of, ("input_tokens", _CACHED[1], _WRITTEN[1])))

    def _of(self, name: str) -> int:
        return self._figures.get(name, 0)


def _count(value: Any) -> int | None:
    """A number of tokens; None for what is none."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if type(value) is int and value >= 0 else None
