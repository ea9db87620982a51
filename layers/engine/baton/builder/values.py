"""What a user hands to the builder, as plain JSON values; what is none is noted with its place.

Belongs here: references, tuples, enumerations, durations and what is wrong with them. Does not belong here: the
fields of a document (workflow.py).
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from baton.builder.references import Node, Origin, Reference, expression_of, origin_of
from baton.core.expressions import escape
from baton.errors import Problem

Duration = str | float | timedelta
After = Node | str | Sequence[Node | str]

_SURROGATE = re.compile("[\ud800-\udfff]")
_LARGEST = sys.float_info.max
DEEPEST = 100  # as for the reader of documents, whose parser need not be loaded for this
_MILLISECOND = timedelta(milliseconds=1)


class Collector:
    """Collects the problems of one workflow. In the place of each broken value stands null.

    `stand_ins` are the paths where it does, so that nobody complains about the null.
    """

    def __init__(self, origin: Origin) -> None:
        self.origin = origin
        self.problems: list[Problem] = []
        self.stand_ins: set[str] = set()

    def note(self, path: str, message: str, suggestion: str = "") -> None:
        self.problems.append(Problem(path, message, suggestion))

    def replace(self, path: str, message: str, suggestion: str = "") -> Any:
        """Note a problem with a value; gives the null that stands in for it."""
        self.note(path, message, suggestion)
        self.stand_ins.add(path)
        return None

    def value(self, path: str, value: Any) -> Any:
        """The JSON value."""
        if isinstance(value, Reference):
            return self._reference(path, value)
        if isinstance(value, (Mapping, list, tuple)) and value and path.count("/") >= DEEPEST:
            return self.replace(path, f"nested deeper than {DEEPEST} levels")
        if isinstance(value, Mapping):
            return self._object(path, value)
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
        return text if origin is self.origin else self._foreign(path, text, origin)

    def _foreign(self, path: str, what: str, origin: Origin) -> Any:
        return self.replace(
            path,
            f"`{what}` belongs to the workflow `{origin.name}`, not to `{self.origin.name}`",
            "use a node of this workflow, or hand the value over as input or output",
        )

    def _object(self, path: str, value: Mapping[Any, Any]) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for key, item in value.items():
            if isinstance(key, str) and _SURROGATE.search(key):
                self.note(path, "half of a surrogate pair is not a character, in a key neither")
            elif isinstance(key, str):
                place = f"{path}/{escape(key)}"
                result[str.__str__(key)] = self.value(place, item)
            else:
                self.note(path, f"a key must be text, not {key!r}")
        return result

    def _text(self, path: str, value: str) -> Any:
        if _SURROGATE.search(value):
            return self.replace(path, "half of a surrogate pair is not a character")
        if "$${" in value:
            lost = next((text for text in sorted(self.origin.formatted) if f"${text}" in value), "")
            if lost:
                self.note(
                    path,
                    f"the `$` directly before {lost} makes it literal text, because `$${{` stands for `${{`",
                    "put something between them, or write the sign as a word",
                )
        return str.__str__(value)  # what a StrEnum stands for

    def duration(self, path: str, value: Duration) -> Any:
        if isinstance(value, timedelta):
            milliseconds = round(value / _MILLISECOND)
            return f"{milliseconds}ms" if milliseconds % 1_000 else f"{milliseconds // 1_000}s"
        return self.value(path, value)

    def after(self, path: str, value: After) -> Any:
        """A name for one node, a list for several, as it was given."""
        if isinstance(value, (Node, str)):
            return self._node(path, value)
        if isinstance(value, (list, tuple)):
            found = [self._node(f"{path}/{index}", item) for index, item in enumerate(value)]
            return [name for name in found if name is not None]
        return self.replace(path, f"`{value!r}` is neither a node nor a list of nodes", "write after=[node]")

    def _node(self, path: str, value: Any) -> Any:
        if isinstance(value, Node):
            if value.origin is not self.origin:
                return self._foreign(path, value.name, value.origin)
            return value.name
        if isinstance(value, str):
            return self._text(path, value)
        return self.replace(path, f"`{value!r}` is not a node", "write the node itself, or its name")
