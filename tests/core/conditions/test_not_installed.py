"""A deployment without the library of a kind of condition: its documents are refused with what to install."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from baton.core.conditions import cel, faults_of
from baton.core.conditions.model import Cel, Condition, Python
from tests.kit.sentences import Says

CODE = "def evaluate(output, context):\n    return True\n"


@pytest.fixture(autouse=True)
def _without(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in ("cel_expr_python", "pydantic_monty"):
        monkeypatch.setitem(sys.modules, name, None)
    cel._library.cache_clear()
    yield
    cel._library.cache_clear()


@pytest.mark.parametrize(
    "condition", [Cel(expression="1 == 2 && 3 == 4"), Python(code=CODE)], ids=["cel", "python"]
)
def test_a_condition_whose_library_is_not_there_is_a_fault_with_its_remedy(
    condition: Condition, says: Says
) -> None:
    (fault,) = faults_of(condition)
    says([fault.message, fault.suggestion])
