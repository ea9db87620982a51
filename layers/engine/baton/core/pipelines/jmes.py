"""JMESPath expressions whose work is counted: the library's parser, and its interpreter with a counter.

Only this module knows the library. The first `transform` imports it; import it nowhere else.
"""

from __future__ import annotations

from typing import Any

from jmespath.exceptions import JMESPathError
from jmespath.parser import Parser
from jmespath.visitor import TreeInterpreter

from baton.core.pipelines.base import DATA, INVALID, Broken, Work
from baton.core.pipelines.shapes import Wrong


class Expression:
    """A parsed expression."""

    def __init__(self, source: str) -> None:
        """Raises `Wrong`."""
        try:
            self._tree: Any = Parser().parse(source).parsed
        except RecursionError as error:
            raise Wrong("the expression is nested too deep") from error
        except JMESPathError as error:
            raise Wrong(f"not a JMESPath expression: {_line(error)}") from error

    def of(self, value: Any, work: Work) -> Any:
        """What it makes of a value. Raises `Broken`."""
        try:
            return _Counting(work).visit(self._tree, value)
        except RecursionError as error:
            raise Broken(INVALID, "it is nested too deep", "expression") from error
        # What the library lets out where a value does not fit, besides its own errors.
        except (JMESPathError, ArithmeticError, AttributeError, TypeError, ValueError) as error:
            raise Broken(DATA, _line(error), "expression") from error


def _line(error: Exception) -> str:
    """Its first line: the others point into the expression, for a terminal."""
    return str(error).partition("\n")[0][:300]


class _Counting(TreeInterpreter):  # type: ignore[misc]  # the library has no types
    """Every step costs a unit, a list what is in it, and a function what it is given."""

    def __init__(self, work: Work) -> None:
        super().__init__()
        self._work = work

    def visit(self, node: Any, *args: Any, **kwargs: Any) -> Any:
        self._work.spend(1)
        found = super().visit(node, *args, **kwargs)
        if type(found) is list:  # what flattens it next makes as much as its lists have
            self._work.spend(len(found) + sum(len(one) for one in found if type(one) is list))
        return found

    def visit_comparator(self, node: Any, value: Any) -> Any:
        sides = [self.visit(child, value) for child in node["children"]]
        for side in sides:
            self._work.weigh(side)
        known = [{"type": "literal", "value": side, "children": []} for side in sides]
        return super().visit_comparator({**node, "children": known}, value)

    def visit_function_expression(self, node: Any, value: Any) -> Any:
        given = [self.visit(child, value) for child in node["children"]]
        for one in given:
            self._work.weigh(one)
        if node["value"] == "join" and len(given) > 1 and isinstance(given[1], list):
            self._work.spend(len(str(given[0])) * len(given[1]) >> 5)
        return self._functions.call_function(node["value"], given)
