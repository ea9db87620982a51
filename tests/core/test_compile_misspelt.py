"""A misspelt key of a document: one mistake is one problem, and what is wrong inside is told where it is written."""

from __future__ import annotations

import pytest

from tests.core.build import problems_of
from tests.kit.sentences import Says

TEXT = "name: w\nnodes:\n  a: {tool: t}\n  b:\n    tool: t\n    %s\n"


@pytest.mark.parametrize(
    "field",
    [
        "afterr: a",
        "afterr: nowhere",
        "joins: 5",
        "whn: 1",
        "descriptn: [a]",
    ],
)  # fmt: skip
def test_what_the_nearest_key_could_not_have_is_told_with_the_key(field: str, says: Says) -> None:
    key = field.partition(":")[0]
    (problem,) = problems_of(TEXT % field)
    assert problem.path == f"/nodes/b/{key}"
    says(problem.suggestion)
    says(problem.message)
    assert (problem.line, problem.column) == (6, len(f"    {key}: ") + 1)


def test_what_is_wrong_inside_has_its_own_place(says: Says) -> None:
    problems = problems_of(TEXT % "withs:\n      x: ${ctx.absent.output}")
    assert [(problem.path, problem.line) for problem in problems] == [
        ("/nodes/b/withs", 7),
        ("/nodes/b/withs/x", 7),
        ("/nodes/b/withs/x", 7),
    ]
    says([problem.message for problem in problems])


def test_each_item_of_a_list_has_its_own_place_too(says: Says) -> None:
    problems = problems_of(TEXT % "afterr: [absent, nowhere]")
    says([(problem.path, problem.suggestion) for problem in problems])


def test_only_the_first_of_several_refusals_is_told_with_the_key(says: Says) -> None:
    assert [
        problem.path for problem in problems_of(TEXT % "when: input.x > 1 && ctx.y.output && ctx.z.output")
    ] == ["/nodes/b/when"] * 2
    (problem,) = problems_of(TEXT % "whn: input.x > 1 && ctx.y.output && ctx.z.output")
    says(problem.suggestion)
