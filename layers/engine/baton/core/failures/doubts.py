"""Whether the effect of a failed attempt may have happened.

What is done about a doubt is in runtime/steps/effect_claims.py.

It matters to tools that may act only once. A failure that leaves a doubt is not tried again before `verify` or a
person has looked. So what is unknown is a doubt; a tool that knows says so (`StepFailure(..., happened=False)`).
"""

from __future__ import annotations

from collections.abc import Mapping

from baton.core.failures.codes import ALIASES, CATASTROPHIC, TRANSIENT, UNKNOWN, class_of

DOUBTFUL = frozenset({TRANSIENT, CATASTROPHIC, UNKNOWN})
"""Classes of failures after which it may have happened: the answer did not come, or says nothing. The others refuse."""

BY_CODE: Mapping[str, bool] = {
    # It was refused, and the same may be accepted later.
    "rate_limited": False,
    "deadlock": False,
    "file_locked": False,
    "element_not_found": False,
    # No call was made.
    "breaker_open": False,
    "in_progress": False,
    # The tool did return: only what it returned is of no use.
    "result_invalid": True,
    # It was raised somewhere in the tool: before it acted, or after.
    "tool_defect": True,
    "result_too_large": True,
    "rows_refused": True,
    "output_invalid": True,
    "cancelled": True,
    # Another caller with the same key is at it.
    "conflict": True,
}
"""Codes for which it is not as their class says: whether there is a doubt."""


def leaves_doubt(code: str, class_: str = "", happened: bool | None = None) -> bool:
    """Whether it may have happened. `happened` is what the tool itself says.

    What has happened for sure and came to no result is a doubt, too: its result is unknown.
    """
    if happened is not None:
        return happened
    code = ALIASES.get(code, code)
    return BY_CODE.get(code, (class_ or class_of(code)) in DOUBTFUL)


def says_nothing(code: str, class_: str, status: int, *, doubt: bool, refused: bool) -> bool:
    """Whether a call that has failed had no answer, or one that says nothing: whatever it was to do may have happened. `refused`: it is known that it has not."""
    if refused:
        return False
    return doubt or code == "timeout" or status >= 500 or leaves_doubt(code, class_)
