"""Nodes in Python, and references to values that exist only in a running saga.

`hold.output.tables[0].id` becomes `${ctx.hold.output.tables[0].id}`. The compiler validates the reference.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

from baton.errors import InvalidDefinition, Problem

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LARGEST_INDEX = 999_999_999
_AS_TEXT = 'write it into a text: f"{…} >= 80" is a condition, f"Hello {…}" a value'


class Origin:
    """Workflow that references belong to. `formatted` contains those that are parts of longer texts."""

    __slots__ = ("formatted", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        self.formatted: set[str] = set()


EVERYWHERE = Origin("")
"""Origin of references that are valid in any workflow."""


class Reference:
    """A value of a running saga: its input, a node's output, or a part of either.

    `.name` and `["any name"]` select a field, `[0]` an item. As a value of `with_` or of the output, a
    reference keeps its type. In an f-string it becomes text, and in that of a condition the name of the
    value. It cannot be compared, counted or used as a bool, because it has no value yet.
    """

    __slots__ = ("_origin", "_text")

    def __init__(self, origin: Origin, text: str) -> None:
        self._origin = origin
        self._text = text

    def __getattr__(self, name: str) -> Reference:
        if name.startswith("_"):
            # Python itself asks for such names: copying, pickling, showing.
            raise AttributeError(f'write ["{name}"] for a field whose name begins with `_`')
        return self[name]

    def __getitem__(self, key: str | int) -> Reference:
        """Return a reference to a part. Raises `InvalidDefinition` for a key that cannot be part of an
        expression.
        """
        return Reference(self._origin, self._text + _step(self._text, key))

    def __str__(self) -> str:
        self._origin.formatted.add(expression_of(self))
        return expression_of(self)

    def __repr__(self) -> str:
        return f"<reference {expression_of(self)}>"

    def __format__(self, spec: str) -> str:
        if spec:
            raise _refused(
                f"`{self._text}:{spec}`: its value is not known yet, so it cannot be formatted",
                "let a tool format it",
            )
        return str(self)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Reference):
            return self._origin is other._origin and self._text == other._text
        return self._unknown("compared", _AS_TEXT)

    if not TYPE_CHECKING:  # which refuses them by itself, unless they are here

        def __lt__(self, other: object) -> NoReturn:
            self._unknown("compared", _AS_TEXT)

        __le__ = __gt__ = __ge__ = __lt__

        def __add__(self, other: object) -> NoReturn:
            self._unknown("used in arithmetic", _AS_TEXT)

        __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __mod__ = __add__

    def __hash__(self) -> int:
        return hash((id(self._origin), self._text))

    def __bool__(self) -> bool:
        return self._unknown(
            "taken for true or false", "what depends on it is said with when=, branch= or loop="
        )

    def __iter__(self) -> NoReturn:
        self._unknown("iterated over")

    def __len__(self) -> int:
        return self._unknown("counted")

    def _unknown(self, what: str, instead: str = "") -> NoReturn:
        message = f"{expression_of(self)} is known only when the saga runs; it cannot be {what} here"
        raise TypeError(f"{message}; {instead}" if instead else message)


OUTPUT = Reference(EVERYWHERE, "output")
"""Output of the node itself, for a `branch`, a `loop` and their conditions."""


def expression_of(reference: Reference) -> str:
    """Return the reference as written in a document."""
    return f"${{{reference._text}}}"  # noqa: SLF001  # as below


def origin_of(reference: Reference) -> Origin:
    """Return the workflow of a reference. This is no method, because all public names are fields of the
    value.
    """
    return reference._origin  # noqa: SLF001  # the one way in for this room


@dataclass(frozen=True)
class Node:
    """A node of a workflow under construction. Other nodes refer to it and use its `output`."""

    name: str
    origin: Origin

    @property
    def output(self) -> Reference:
        """Output of the node: a tool's result, a signal's payload, a child's result."""
        return self._reference("output")

    @property
    def maybe(self) -> Reference:
        """Output of the node, or null if the node was skipped: `${ctx.NODE.output?}`."""
        return self._reference("output?")

    @property
    def previous(self) -> Reference:
        """For nodes in a loop: output of the node in the previous round, or null."""
        return self._reference("previous")

    def _reference(self, field: str) -> Reference:
        return Reference(self.origin, f"ctx{_step('ctx', self.name)}.{field}")


@dataclass(frozen=True)
class SagaFields:
    """References to fields of the saga."""

    origin: Origin

    @property
    def id(self) -> Reference:
        return Reference(self.origin, "saga.id")

    @property
    def user(self) -> Reference:
        return Reference(self.origin, "saga.user")

    @property
    def tenant(self) -> Reference:
        return Reference(self.origin, "saga.tenant")

    @property
    def workflow(self) -> Reference:
        """The name of the workflow."""
        return Reference(self.origin, "saga.workflow")


@dataclass(frozen=True)
class LoopFields:
    """References to fields of the enclosing loop."""

    origin: Origin

    @property
    def iteration(self) -> Reference:
        """Number of the round, from 0."""
        return Reference(self.origin, "loop.iteration")


@dataclass(frozen=True)
class JoinFields:
    """References to the results of a node's predecessors."""

    origin: Origin

    @property
    def outputs(self) -> Reference:
        """Outputs by name of the nodes whose edges led here in time."""
        return Reference(self.origin, "join.outputs")

    @property
    def arrived(self) -> Reference:
        """Names of the nodes whose edges led here in time."""
        return Reference(self.origin, "join.arrived")

    @property
    def errors(self) -> Reference:
        """Tolerated failures: `node`, `code`, `message` of each."""
        return Reference(self.origin, "join.errors")

    @property
    def batch(self) -> Reference:
        """Result of each predecessor: `succeeded`, `failed`, `stopped`, `not_begun`, and
        `results` by name.
        """
        return Reference(self.origin, "join.batch")


class Roots:
    """References of a workflow besides its nodes."""

    _origin: Origin

    @property
    def input(self) -> Reference:
        """The saga's input."""
        return Reference(self._origin, "input")

    @property
    def saga(self) -> SagaFields:
        """Identifier, user, tenant and workflow of the saga."""
        return SagaFields(self._origin)

    @property
    def loop(self) -> LoopFields:
        """Innermost loop around the node."""
        return LoopFields(self._origin)

    @property
    def join(self) -> JoinFields:
        """Results of the node's predecessors."""
        return JoinFields(self._origin)

    @property
    def item(self) -> Reference:
        """Current item of the list, in a node with `map`."""
        return Reference(self._origin, "item")

    @property
    def index(self) -> Reference:
        """Position of the item in the list, from 0."""
        return Reference(self._origin, "index")

    @property
    def last_error(self) -> Reference:
        """Failure that led to the node, or null: `node`, `code`, `class`, `message` and others."""
        return Reference(self._origin, "last_error")


def _step(text: str, key: Any) -> str:
    if isinstance(key, int) and not isinstance(key, bool) and 0 <= key <= _LARGEST_INDEX:
        return f"[{key}]"
    if isinstance(key, str):
        if _NAME.fullmatch(key):
            return f".{key}"
        for quote in ('"', "'"):
            if not {quote, "\\", "}"} & set(key):
                return f"[{quote}{key}{quote}]"
    raise _refused(
        f"`{text}[{key!r}]` cannot be written as an expression",
        'write .name, [0] or ["name"], the name without } and \\',
    )


def _refused(message: str, suggestion: str) -> InvalidDefinition:
    return InvalidDefinition(message, (Problem("", message, suggestion),))
