"""What a step's failure knows of what its tool raised: the code, the class, the status, and the pause that it asks for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, ClassVar

import pytest

from baton.ports import StepContext, StepFailure
from baton.tools.define import Registry, tool
from baton.tools.perform import ToolPerformer

CONTEXT = StepContext(saga="s1", tenant="acme", user="ada", node="n")


def known(function: Callable[[], None]) -> tuple[str, str, int, str]:
    registry = Registry()
    tool("t", registry=registry)(function)
    with pytest.raises(StepFailure) as caught:
        asyncio.run(ToolPerformer(registry).perform("t", {}, CONTEXT))
    error = caught.value
    return error.code, error.kind, error.status, error.retry_after


class _Busy(Exception):
    """As libraries for HTTP raise it."""

    status_code = 429
    headers: ClassVar = {"Retry-After": "30"}


def test_what_is_known_of_an_exception_is_known_of_the_failure() -> None:
    def busy() -> None:
        raise _Busy("later")

    assert known(busy) == ("rate_limited", "transient", 429, "30")


def test_what_a_tool_says_counts_before_what_it_was_raised_from() -> None:
    def tables() -> None:
        try:
            raise _Busy("later")
        except _Busy as error:
            raise StepFailure("no_tables", "none") from error

    def without_cause() -> None:
        try:
            raise _Busy("later")
        except _Busy:
            raise StepFailure("no_tables", "none") from None

    def more_exactly() -> None:
        try:
            raise _Busy("later")
        except _Busy:
            raise StepFailure("Rate-Limited", "full", kind="permanent", status=503, retry_after="5")  # noqa: B904  # the cause is found all the same

    assert known(tables) == ("no_tables", "transient", 429, "30")
    assert known(without_cause) == ("no_tables", "unknown", 0, "")
    assert known(more_exactly) == ("rate_limited", "permanent", 503, "5")


def test_a_status_is_enough_and_nonsense_is_passed_over() -> None:
    def only_a_status() -> None:
        raise StepFailure("", "gone", status=404)

    def nonsense() -> None:
        wrong: Any = [1]
        raise StepFailure(wrong, wrong, kind=wrong, status=wrong, retry_after=wrong * 99)

    assert known(only_a_status) == ("not_found", "recoverable", 404, "")
    assert known(nonsense) == ("_1_", "unknown", 0, ("1, " * 99).join(["[", ""])[:100])
