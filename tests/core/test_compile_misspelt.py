"""A misspelt key of a document: one mistake is one problem, and what is wrong inside is told where it is written."""

from __future__ import annotations

import pytest

from tests.core.build import problems_of
from tests.kit.sentences import Says

TEXT = "name: w\nnodes:\n  a: {tool: t}\n  b:\n    tool: t\n    %s\n"


@pytest.mark.parametrize(
    ("field", "hint"),
    [
        ("afterr: a", "did you mean `after`?"),
        ("afterr: nowhere", "did you mean `after`? There is no node `nowhere`"),
        ("joins: 5", "did you mean `join`? This waits for 5 nodes, and none leads here: it can never fire; leave `join` out"),
        (
            "whn: true",
            (
                "did you mean `when`? A condition is a text or an object, not a boolean; "
                'write it as a text: "true"'
            ),
        ),
        ("descriptn: [a]", "did you mean `description`? It must be a string"),
    ],
)  # fmt: skip
def test_what_the_nearest_key_could_not_have_is_told_with_the_key(field: str, hint: str, says: Says) -> None:
    key = field.partition(":")[0]
    (problem,) = problems_of(TEXT % field)
    assert (problem.path, problem.suggestion) == (f"/nodes/b/{key}", hint)
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
