"""Nodes as Python holds them, and references to values that are known only when a saga runs.

`hold.output.tables[0].id` becomes `${ctx.hold.output.tables[0].id}`. The compiler says whether there is such
a thing.
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
    """The workflow that references belong to. `formatted` are those that were put into longer texts."""

    __slots__ = ("formatted", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        self.formatted: set[str] = set()


EVERYWHERE = Origin("")
"""The origin of references that mean something in any workflow."""


class Reference:
    """A value that only a running saga knows: the saga's input, or what a node gives, or a part of either.

    `.name` and `["any name"]` lead to a field, `[0]` to an item. As a value of `with_` or of the output it
    keeps its
    type; in an f-string it becomes text, and in that of a condition the name of the value.
    It can be neither compared nor counted nor taken for true or false,
    because there is nothing yet to look at.
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
        """Raises `InvalidDefinition` for a key that cannot stand in an expression."""
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
"""In a `branch`, a `loop` and their conditions: what the node itself has just given."""


def expression_of(reference: Reference) -> str:
    """The reference as a document has it."""
    return f"${{{reference._text}}}"  # noqa: SLF001  # as below


def origin_of(reference: Reference) -> Origin:
    """The workflow that a reference belongs to: all public names are fields of the value."""
    return reference._origin  # noqa: SLF001  # the one way in for this room


@dataclass(frozen=True)
class Node:
    """A node of a workflow that is being built; others name it where they name nodes, and use its `output`."""

    name: str
    origin: Origin

    @property
    def output(self) -> Reference:
        """What the node gives: a tool's result, a signal's payload, a child's result."""
        return self._reference("output")

    @property
    def maybe(self) -> Reference:
        """The output, or null if the node gave none, because it was skipped: `${ctx.NODE.output?}`."""
        return self._reference("output?")

    @property
    def previous(self) -> Reference:
        """In a loop around both: what the node gave in the round before, or null."""
        return self._reference("previous")

    def _reference(self, field: str) -> Reference:
        return Reference(self.origin, f"ctx{_step('ctx', self.name)}.{field}")


@dataclass(frozen=True)
class SagaFields:
    """What every saga knows of itself."""

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
    """What a node in a loop knows of it."""

    origin: Origin

    @property
    def iteration(self) -> Reference:
        """Number of the round, from 0."""
        return Reference(self.origin, "loop.iteration")


@dataclass(frozen=True)
class JoinFields:
    """What a node knows of those before it."""

    origin: Origin

    @property
    def outputs(self) -> Reference:
        """By name, what the nodes gave whose ways led here in time."""
        return Reference(self.origin, "join.outputs")

    @property
    def arrived(self) -> Reference:
        """Their names."""
        return Reference(self.origin, "join.arrived")

    @property
    def errors(self) -> Reference:
        """The failures that were tolerated: `node`, `code`, `message` of each."""
        return Reference(self.origin, "join.errors")

    @property
    def batch(self) -> Reference:
        """What became of each node before it: `succeeded`, `failed`, `stopped`,
        `not_begun`, and `results` by name.
        """
        return Reference(self.origin, "join.batch")


class Roots:
    """What values of a workflow can refer to, besides its nodes."""

    _origin: Origin

    @property
    def input(self) -> Reference:
        """The saga's input."""
        return Reference(self._origin, "input")

    @property
    def saga(self) -> SagaFields:
        """The saga's own id, user, tenant and workflow."""
        return SagaFields(self._origin)

    @property
    def loop(self) -> LoopFields:
        """The innermost loop around the node that asks."""
        return LoopFields(self._origin)

    @property
    def join(self) -> JoinFields:
        """What came to the node that asks."""
        return JoinFields(self._origin)

    @property
    def item(self) -> Reference:
        """The item of the list that the node is done for, at a node with `map`."""
        return Reference(self._origin, "item")

    @property
    def index(self) -> Reference:
        """Its place in the list, from 0."""
        return Reference(self._origin, "index")

    @property
    def last_error(self) -> Reference:
        """The failure that led to the node that asks, or null: `node`, `code`, `class`, `message` and others."""
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
