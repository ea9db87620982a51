"""Values that are known when a workflow runs, and conversion of the builder's arguments to plain JSON.

A `Reference` names a value of a running saga: `hold.output.tables[0].id` becomes
`${ctx.hold.output.tables[0].id}`, which the compiler validates. `Collector` converts references, tuples,
enumerations, durations, times, and names of nodes and tools, and records the places of invalid ones.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, NoReturn

from baton.core.expressions import escape
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


Duration = str | float | timedelta
Nodes = Node | str | Sequence[Node | str]

_SURROGATE = re.compile("[\ud800-\udfff]")
_LARGEST = sys.float_info.max
DEEPEST = 100  # as for the reader of documents, whose parser need not be loaded for this
_MILLISECOND = timedelta(milliseconds=1)
_LONGEST_SHOWN = 60


class Collector:
    """Collector of a workflow's problems.

    Null replaces each broken value. `stand_ins` contains the paths of these nulls, so that the compiler's
    problems about them are dropped.
    """

    def __init__(self, origin: Origin) -> None:
        self.origin = origin
        self.problems: list[Problem] = []
        self.stand_ins: set[str] = set()

    def note(self, path: str, message: str, suggestion: str = "") -> None:
        self.problems.append(Problem(path, message, suggestion))

    def replace(self, path: str, message: str, suggestion: str = "") -> Any:
        """Record a problem with a value, and return the null that replaces it."""
        self.note(path, message, suggestion)
        self.stand_ins.add(path)
        return None

    @property
    def formatted(self) -> set[str]:
        """Expressions of all references that are parts of longer texts."""
        return self.origin.formatted | EVERYWHERE.formatted

    @staticmethod
    def shown(value: Any) -> str:
        """Return a value as shown in messages."""
        text = repr(value)
        return text if len(text) <= _LONGEST_SHOWN else f"{text[: _LONGEST_SHOWN - 1]}…"

    def value(self, path: str, value: Any) -> Any:
        """Return the value as JSON; record a problem if it is none."""
        if isinstance(value, Reference):
            return self._reference(path, value)
        if isinstance(value, (Mapping, list, tuple)) and value and path.count("/") >= DEEPEST:
            return self.replace(path, f"nested deeper than {DEEPEST} levels")
        if isinstance(value, Mapping):
            return self._object(path, value, Collector.value)
        if isinstance(value, (list, tuple)):
            return [self.value(f"{path}/{index}", item) for index, item in enumerate(value)]
        if isinstance(value, str):
            return self._text(path, value)
        return self._other(path, value)

    def _other(self, path: str, value: Any) -> Any:
        if value is None or isinstance(value, bool):
            return value
        kind = type(value).__name__
        if isinstance(value, (int, float)):
            if not -_LARGEST <= value <= _LARGEST:
                return self.replace(path, f"this {kind} is not a JSON number, or too large")
            return int(value) if isinstance(value, int) else float(value)
        if isinstance(value, Node):
            return self.replace(path, f"`{value.name}` is a node, not a value", "write its `.output`")
        return self.replace(path, f"a {kind} is not a JSON value", "write text, a number, a list or a dict")

    def _reference(self, path: str, reference: Reference) -> Any:
        origin = origin_of(reference)
        text = expression_of(reference)
        return text if origin in (self.origin, EVERYWHERE) else self._foreign(path, text, origin)

    def _foreign(self, path: str, what: str, origin: Origin) -> Any:
        return self.replace(
            path,
            f"`{what}` belongs to the workflow `{origin.name}`, not to `{self.origin.name}`",
            "use a node of this workflow, or hand the value over as input or output",
        )

    def members(self, path: str, value: Any, write: Callable[[Collector, str, Any], Any]) -> Any:
        """Return an object with members converted by `write`, or any other value unchanged."""
        return self._object(path, value, write) if isinstance(value, Mapping) else self.value(path, value)

    def _object(
        self, path: str, value: Mapping[Any, Any], write: Callable[[Collector, str, Any], Any]
    ) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for key, item in value.items():
            if isinstance(key, str) and _SURROGATE.search(key):
                self.note(path, "half of a surrogate pair is not a character, in a key neither")
            elif isinstance(key, str):
                place = f"{path}/{escape(key)}"
                result[str.__str__(key)] = write(self, place, item)
            else:
                self.note(path, f"a key must be text, not {key!r}")
        return result

    def _text(self, path: str, value: str) -> Any:
        if _SURROGATE.search(value):
            return self.replace(path, "half of a surrogate pair is not a character")
        if "$${" in value:
            lost = next((text for text in sorted(self.formatted) if f"${text}" in value), "")
            if lost:
                self.note(
                    path,
                    f"the `$` directly before {lost} makes it literal text, because `$${{` stands for `${{`",
                    "put something between them, or write the sign as a word",
                )
        return str.__str__(value)  # what a StrEnum stands for

    # ---- times -----------------------------------------------------------------------------------------------

    def duration(self, path: str, value: Any) -> Any:
        """Return the value as a duration of a document; record a problem if it is none."""
        if isinstance(value, timedelta):
            milliseconds = round(value / _MILLISECOND)
            return f"{milliseconds}ms" if milliseconds % 1_000 else f"{milliseconds // 1_000}s"
        return self.value(path, value)

    def time(self, path: str, value: Any) -> Any:
        """Return the value as a time of a document; record a problem if it is none."""
        if not isinstance(value, datetime):
            return self.value(path, value)
        if value.tzinfo is None:
            return self.replace(path, f"`{value}` is in no time zone", "write datetime(…, tzinfo=UTC)")
        try:
            return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
        except OverflowError:
            return self.replace(path, f"`{value}` is not a time that can be written in UTC")

    def measure(self, path: str, value: Any) -> Any:
        """Return a number, a duration, or an object of them."""
        return self.duration(path, value) if isinstance(value, timedelta) else self.measures(path, value)

    def measures(self, path: str, value: Any) -> Any:
        return self.members(path, value, Collector.measure)

    # ---- names -----------------------------------------------------------------------------------------------

    def nodes(self, path: str, value: Any) -> Any:
        """Return a name for one node or a list for several, as given."""
        if isinstance(value, (Node, str)):
            return self.node(path, value)
        if isinstance(value, (list, tuple)):
            found = [self.node(f"{path}/{index}", item) for index, item in enumerate(value)]
            return [name for name in found if name is not None]
        return self.replace(
            path,
            f"`{self.shown(value)}` is neither a node nor a list of nodes",
            "write the node, its name, or a list of them",
        )

    def node(self, path: str, value: Any) -> Any:
        """Return the name of a node."""
        if isinstance(value, Node):
            if value.origin is not self.origin:
                return self._foreign(path, value.name, value.origin)
            return value.name
        if isinstance(value, str):
            return self._text(path, value)
        return self.replace(
            path, f"`{self.shown(value)}` is not a node", "write the node itself, or its name"
        )

    def tool(self, path: str, value: Any) -> Any:
        """Return the name of a tool, given as a name or as the function that `@tool` declared."""
        if isinstance(value, str):
            return self._text(path, value)
        from baton.tools import define

        names = sorted(name for name, tool in define.REGISTRY.items() if tool.function is value)
        called = str(getattr(value, "__name__", self.shown(value)))
        if not names:
            self.replace(
                path, f"`{called}` is not a tool", "declare it with @tool, or write the name of a tool"
            )
        elif len(names) > 1:
            self.replace(
                path, f"`{called}` is the function of several tools", f"write one: {', '.join(names)}"
            )
        # A text in any case, so that the rest can be looked at.
        return names[0] if names else called
