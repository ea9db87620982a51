"""Regular expressions whose time is linear, with what they have found: RE2, within bounds.

How heavy a pattern is, the conditions' room knows (conditions/patterns.py); its own engine finds no groups.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from baton.core.conditions import limits as bounds
from baton.core.conditions.patterns import PROGRAM_BYTES, time_of, weight
from baton.core.conditions.values import units
from baton.core.pipelines import limits
from baton.core.pipelines.base import Work
from baton.core.pipelines.shapes import Shape, Wrong, checked, text

_CHEAPER = 10  # a unit of a pattern's time is so much less than one of ours

_SHARE = 5  # so many groups take as long again as the pattern without them: each place of the text is kept for each


class Pattern:
    """A compiled pattern."""

    def __init__(self, source: str) -> None:
        """Raises `Wrong`."""
        if weight(source) > bounds.PATTERN_WEIGHT:
            raise Wrong("the pattern is too large", "repeat less: {1,1000} counts a thousand times")
        import re2  # half a megabyte, which most cold starts do not need

        options = re2.Options()
        options.max_mem, options.log_errors = PROGRAM_BYTES, False
        try:
            self._engine: Any = re2.compile(source, options)
        except (re2.error, UnicodeEncodeError) as error:
            raise Wrong(
                f"`{source[:100]}` is not a regular expression: {_said(error)}",
                "the syntax is RE2's, without look-around and back-references",
            ) from error
        self._source = source
        self.names: tuple[str, ...] = tuple(sorted(self._engine.groupindex, key=self._engine.groupindex.get))

    def charge(self, texts: Sequence[str], work: Work) -> None:
        """Before it is held against these texts."""
        shares = _SHARE + self._engine.groups
        work.spend(
            sum(1 + time_of(self._source, units(one)) * shares // (_CHEAPER * _SHARE) for one in texts)
        )

    def found(self, text: str) -> dict[str, str | None] | None:
        """The named groups; without any, the first group or all of it under the empty name. None for no match."""
        match = self._engine.search(text)
        if match is None:
            return None
        if self.names:
            return dict(match.groupdict())
        return {"": match.group(1 if self._engine.groups else 0)}


def _said(error: Exception) -> str:
    said = error.args[0]
    return said.decode(errors="replace") if isinstance(said, bytes) else str(error)


PATTERN: Shape = checked(text(limits.PATTERN, "a regular expression"), Pattern)
