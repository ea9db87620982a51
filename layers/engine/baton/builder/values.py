"""Conversion of the builder's arguments to plain JSON values, with the locations of invalid ones.

Converts references, tuples, enumerations, durations, times, and names of nodes and tools. The fields are in
workflow.py, control.py and conditions.py.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from baton.builder.references import EVERYWHERE, Node, Origin, Reference, expression_of, origin_of
from baton.core.expressions import escape
from baton.errors import Problem

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
