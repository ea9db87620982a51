"""Which errors of a tool say that its code is wrong, and how a tool says otherwise."""

from __future__ import annotations

import pytest

from baton.core.failures.codes import ERRORS
from baton.ports import StepFailure
from baton.tools.define import Registry, raises, tool
from baton.tools.perform import ToolPerformer
from tests.tools.test_performing import CONTEXT, failure, perform, raising, run

NOTHING: dict[str, int] = {}


class NotListedError(KeyError):
    """Of an application: it is derived from an error that says "bug", and is none."""


BUGS = [
    *(
        AssertionError,
        AttributeError,
        ImportError,
        IndentationError,
        IndexError,
        KeyError,
        ModuleNotFoundError,
    ),
    *(NameError, NotImplementedError, RecursionError, SyntaxError, TabError, TypeError, UnboundLocalError),
    ZeroDivisionError,
]


def test_errors_of_python_that_say_bug_are_defects_and_the_list_is_closed() -> None:
    assert tuple(sorted(kind.__name__ for kind in BUGS)) == ERRORS
    for kind in BUGS:
        for function in raising(kind("x")):
            assert failure(function)[0] == "tool_defect"


def test_what_an_application_raises_on_purpose_is_none_whatever_it_is_derived_or_raised_from() -> None:
    def own() -> None:
        raise NotListedError("tea")

    def because() -> None:
        try:
            _ = NOTHING["tea"]
        except KeyError as error:
            raise LookupError("tea") from error

    def said() -> None:
        try:
            _ = NOTHING["tea"]
        except KeyError as error:
            raise StepFailure("not_listed", "tea") from error

    assert (failure(own)[0], failure(because)[0]) == ("tool_error", "tool_error")
    with pytest.raises(StepFailure) as caught:
        perform(said)
    assert (caught.value.code, caught.value.kind) == ("not_listed", "unknown")


def test_a_bug_in_what_is_done_about_a_failure_outside_is_told_as_that_failure() -> None:
    def clumsy() -> None:
        try:
            raise TimeoutError("no answer")
        except TimeoutError:
            _ = NOTHING["retry"]

    assert failure(clumsy)[0] == "timeout"


def test_the_nearest_class_of_an_error_has_its_code_and_class_at_the_tool_or_at_the_application() -> None:
    registry = Registry()

    class DeclinedError(NotListedError):
        pass

    @tool("pay", raises={NotListedError: ("of_tool", "permanent")}, registry=registry)
    async def pay(error: str) -> None:
        raise {"declined": DeclinedError, "listed": NotListedError, "key": KeyError}[error]("no")

    @tool("other", registry=registry)
    async def other() -> None:
        raise NotListedError("no")

    raises({KeyError: "of_app", DeclinedError: ("declined", "user_resolvable")}, registry=registry)
    raises({NotListedError: ("listed_of_app", "transient")}, registry=registry)
    for name, given, code, kind, happened in (
        ("pay", {"error": "declined"}, "declined", "user_resolvable", None),
        ("pay", {"error": "listed"}, "of_tool", "permanent", None),
        ("pay", {"error": "key"}, "of_app", "unknown", True),
        ("other", {}, "listed_of_app", "transient", None),
    ):
        with pytest.raises(StepFailure) as caught:
            run(ToolPerformer(registry).perform(name, given, CONTEXT))
        assert (caught.value.code, caught.value.kind, caught.value.happened) == (code, kind, happened)


def test_a_tool_moves_errors_out_of_the_list_and_into_it() -> None:
    registry = Registry()

    @tool("read", raises={KeyError: "not_listed", ValueError: "tool_defect"}, registry=registry)
    async def read(what: str) -> int:
        if what == "own":
            raise NotListedError(what)
        return {"1": 1}[what] if what.isdigit() else int(what)

    for name, what, code, kind in (
        ("read", "2", "not_listed", "unknown"),
        ("read", "own", "not_listed", "unknown"),
        ("read", "x", "tool_defect", "permanent"),
    ):
        with pytest.raises(StepFailure) as caught:
            run(ToolPerformer(registry).perform(name, {"what": what}, CONTEXT))
        assert (caught.value.code, caught.value.kind, caught.value.happened) == (code, kind, True)
