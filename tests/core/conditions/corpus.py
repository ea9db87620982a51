"""A case of a condition: as a document writes it, what it is asked about, and what is to come of it.

How a case is tried, in this process or in another. The cases are in ordinary.py and hostile.py. Of kind `python` too:
its answer is then that of the sandbox, or of `answer`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from baton.core.conditions import ConditionError, SandboxAnswer, Unanswered, judge
from baton.core.conditions.document import read_condition
from baton.core.expressions import ExpressionError, Lookup, Path

REFUSED = "refused"
"""What is expected of a condition that the compiler does not take."""

_NOTHING = object()


@dataclass(frozen=True)
class Case:
    """`expected`: whether it holds, the code that it fails with, or `REFUSED`.

    `output` may be a function that makes it. `context` has the other roots; nodes stand under `ctx`. `says` is in the
    message, or for a refusal in the message or the suggestion.
    """

    name: str
    condition: Any
    expected: bool | str
    output: Any = None
    context: Mapping[str, Any] = field(default_factory=dict)
    says: str = ""
    schemas: Mapping[str, Any] = field(default_factory=dict)
    blobs: Mapping[str, Any] = field(default_factory=dict)
    answer: SandboxAnswer | None = None


def lookup_in(output: Any, context: Mapping[str, Any]) -> Lookup:
    """As the engine's: nothing of a node is an error, or null for a path that may be null."""

    def lookup(path: Path) -> Any:
        found: Any = {"output": output, **context}.get(path.root, _NOTHING)
        if path.root == "ctx":
            found = context.get("ctx", {}).get(path.node, {}).get(path.steps[1], _NOTHING)
        if path.root == "join":
            found = {path.steps[0]: found[path.steps[0]]}
        if found is _NOTHING and not path.may_be_null:
            raise ExpressionError(f"`{path.text}`: there is nothing")
        return None if found is _NOTHING else found

    return lookup


def outcome(case: Case) -> tuple[bool | str, str]:
    """What comes of a case: as `expected`, and the words to it."""
    condition, problems = read_condition(case.condition, "", case.schemas)
    if condition is None:
        assert problems
        return REFUSED, "; ".join(
            f"{problem.path}: {problem.message} {problem.suggestion}" for problem in problems
        )
    output = case.output() if isinstance(case.output, Callable) else case.output  # type: ignore[arg-type]  # a protocol here
    lookup = lookup_in(output, case.context)
    answers: dict[str, SandboxAnswer] = {}
    while True:
        try:
            return judge(condition, lookup, case.blobs, answers), ""
        except ConditionError as error:
            return error.code, error.message
        except Unanswered as open_:
            assert case.answer is not None, "a question, and no answer to it"
            answers |= {question.key: case.answer for question in open_.questions}
