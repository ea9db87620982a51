"""Conditions in Python: CEL as text, and functions for the other kinds of conditions.

The compiler validates operators, queries and schemas. This module also converts a Python function to text.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import re
import symtable
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from baton.builder.values import DEEPEST, Collector, Duration, Node, Reference
from baton.core.expressions import escape
from baton.errors import Problem

Writer = Callable[[Collector, str, Any], Any]
"""Function that converts a user's value to JSON at a path, and records its faults."""


@dataclass(frozen=True, eq=False)
class DocumentObject:
    """Part of a document: the key, the writer and the value of each of its fields."""

    fields: tuple[tuple[str, Writer, Any], ...]


def present_fields(*fields: tuple[str, Writer, Any]) -> tuple[tuple[str, Writer, Any], ...]:
    """Return the fields that are not None. None stands for an omitted field."""
    return tuple(field for field in fields if field[2] is not None)


def write_object(made: Collector, path: str, part: DocumentObject) -> dict[str, Any]:
    """Return the JSON object of a part."""
    return {key: write(made, f"{path}/{key}", value) for key, write, value in part.fields}


def only(kind: type[DocumentObject], what: str, suggestion: str) -> Writer:
    """Return the writer of a field that accepts only one kind of part."""

    def write(made: Collector, path: str, value: Any) -> Any:
        if isinstance(value, kind):
            return write_object(made, path, value)
        return made.replace(path, f"`{made.shown(value)}` is not {what}", suggestion)

    return write


def list_of(write: Writer) -> Writer:
    """Return the writer of a list or tuple whose items all have this writer."""

    def write_all(made: Collector, path: str, values: Any) -> Any:
        if not isinstance(values, (list, tuple)):
            return made.replace(path, f"`{made.shown(values)}` is not a list", "write [ ] around it")
        return [write(made, f"{path}/{index}", value) for index, value in enumerate(values)]

    return write_all


# ---- what is made last -------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Later:
    """A value computed with the document, because its computation loads modules that a worker
    does not need.
    """

    make: Callable[[Collector, str], Any]


def copy_finished(made: Collector, path: str, value: Any) -> Any:
    """Return a copy of the value with all nested `Later` values computed."""
    if isinstance(value, Later):
        return value.make(made, path)
    if isinstance(value, dict):
        return {key: copy_finished(made, f"{path}/{escape(key)}", item) for key, item in value.items()}
    if isinstance(value, list):
        return [copy_finished(made, f"{path}/{index}", item) for index, item in enumerate(value)]
    return value


def raise_if(problems: list[Problem]) -> None:
    """Raise `InvalidDefinition` if there are problems."""
    if problems:
        from baton.core.documents.compile import refusal_of

        raise refusal_of(problems)


# ---- JSON Schemas ------------------------------------------------------------------------------------------------


def any_schema(made: Collector, path: str, value: Any) -> Any:
    """Return a JSON Schema: unchanged, by name, or of a type that pydantic describes."""
    if isinstance(value, (Mapping, bool, str)):
        return made.value(path, value)
    if isinstance(value, (Reference, Node, DocumentObject)):
        return made.replace(path, f"`{made.shown(value)}` is not a schema", "write a type, or a JSON Schema")
    return Later(lambda made, path: _described(made, path, value))


def schema_by_name(made: Collector, path: str, value: Any) -> Any:
    """Return JSON Schemas by name."""
    return made.members(path, value, any_schema)


def _described(made: Collector, path: str, described: Any) -> Any:
    from pydantic import PydanticUserError, TypeAdapter
    from pydantic.errors import PydanticSchemaGenerationError

    from baton.tools.define import JsonSchemas

    try:
        return made.value(path, TypeAdapter(described).json_schema(schema_generator=JsonSchemas))
    except (PydanticUserError, PydanticSchemaGenerationError, NameError) as error:
        return made.replace(path, f"no JSON Schema for {described!r}: {error}")


_EXPRESSION = re.compile(r"\$\{[^}]*\}")
_CEL_STRING_OR_COMMENT = re.compile(
    r"//[^\n]*"
    r"|[rR]?(?P<long>'{3}|\"{3})(?s:.*?)(?P=long)"
    r"|[rR](?P<raw>['\"])[^\n]*?(?P=raw)"
    r"|(?P<quote>['\"])(?:\\.|[^\\\n])*?(?P=quote)"
)
_MAYBE = re.compile(r"(ctx\.\w+\.output)\?")
_LEFT_OUT: Any = object()


class Condition(DocumentObject):
    """A condition, created by the functions of this module."""


Holds = Condition | Reference | str
"""A condition. A text is CEL, and a reference is a value that is true or false."""


def cel(expression: str) -> Condition:
    """Return a CEL condition, equivalent to the text alone."""
    return Condition((("cel", _cel, expression),))


def jsonpath(
    query: str, operator: str | None = None, value: Any = _LEFT_OUT, *, of: Reference | str | None = None
) -> Condition:
    """Return a condition on the result of a JSONPath query, compared by `operator` with `value`.

    Example: `jsonpath("$.rows[*].price", "sum_gt", 100)`. The query applies to the value `of`, by default the
    output of the node, or the saga's input in `when`.
    """
    operand = () if value is _LEFT_OUT else (("value", Collector.value, value),)
    return Condition(
        (
            ("jsonpath", Collector.value, query),
            *present_fields(("operator", Collector.value, operator)),
            *operand,
            *present_fields(("of", Collector.value, of)),
        )
    )


def matches(
    # An object, because for type checkers `int | None` and `Annotated[…]` are no types when they are values.
    schema: object,
    *,
    invert: bool | None = None,
    of: Reference | str | None = None,
) -> Condition:
    """Return a condition that a value conforms to a schema: a type, a JSON Schema, the name of one under
    `schemas`, or `cas://sha256/…`.
    """
    return Condition(
        (
            ("schema", any_schema, schema),
            *present_fields(("invert", Collector.value, invert), ("of", Collector.value, of)),
        )
    )


def compare(left: Any, operator: str, right: Any) -> Condition:
    """Return a condition on two values, which may contain references: `compare(OUTPUT.total, ">",
    quote.output.limit)`.
    """
    sides = DocumentObject(
        (
            ("left", Collector.value, left),
            ("operator", Collector.value, operator),
            ("right", Collector.value, right),
        )
    )
    return Condition((("compare", write_object, sides),))


def all_of(*conditions: Holds) -> Condition:
    """Return a condition that holds if all conditions hold. They are evaluated in order, as far as needed."""
    return Condition((("all", list_of(condition), conditions),))


def any_of(*conditions: Holds) -> Condition:
    """Return a condition that holds if one condition holds. They are evaluated in order, as far as needed."""
    return Condition((("any", list_of(condition), conditions),))


def not_(negated: Holds) -> Condition:
    """Return a condition that holds if the given one does not."""
    return Condition((("not", condition, negated),))


def python(
    function: Callable[..., object] | str,
    *,
    needs: Sequence[Reference | str] | None = None,
    of: Reference | str | None = None,
    timeout: Duration | None = None,
    max_memory_mb: int | None = None,
) -> Condition:
    """Return a condition of a Python function of `output` and `context`, which runs in a sandbox and returns
    a bool.

    The document contains the function's source under the name `evaluate`. Names outside of the function are
    not available to it. The source can also be given as text or as `cas://sha256/…`. `context` contains the
    values in `needs`.
    """
    return Condition(
        (
            ("python", _code, function),
            *present_fields(
                ("needs", list_of(_name), needs),
                ("of", Collector.value, of),
                ("timeout", Collector.duration, timeout),
                ("max_memory_mb", Collector.value, max_memory_mb),
            ),
        )
    )


# ---- writing them ------------------------------------------------------------------------------------------------


def condition(made: Collector, path: str, value: Any) -> Any:
    """Write a condition of any kind."""
    if path.count("/") >= DEEPEST:
        return made.replace(path, f"nested deeper than {DEEPEST} levels")
    if isinstance(value, Condition):
        return write_object(made, path, value)
    if isinstance(value, (str, Reference)):
        return _cel(made, path, value)
    return made.replace(
        path,
        f"`{made.shown(value)}` is not a condition",
        "write CEL as text, or cel(), jsonpath(), matches(), compare(), all_of(), any_of(), not_() or python()",
    )


def _cel(made: Collector, path: str, value: Any) -> Any:
    """Write CEL with references as bare names. In quotes they would be text."""
    text = made.value(path, value)
    if not isinstance(text, str):
        return text
    known = {text} if isinstance(value, Reference) else made.formatted
    found = [match for match in _EXPRESSION.finditer(text) if match[0] in known]
    quoted = [match.span() for match in _CEL_STRING_OR_COMMENT.finditer(text) if match[0][0] != "/"]
    for match in found:
        name = match[0][2:-1]
        if any(begin < match.start() < end for begin, end in quoted):
            made.note(path, f"`{name}` stands in quotes, where it is only text", "leave the quotes out")
        elif there := _MAYBE.match(name):
            made.note(path, f"`{name}` cannot stand in CEL", f"write has({there[1]}) && {there[1]}…")
    return _EXPRESSION.sub(lambda match: match[0][2:-1] if match[0] in known else match[0], text)


def _name(made: Collector, path: str, value: Any) -> Any:
    """Return a reference as written between `${` and `}`."""
    text = made.value(path, value)
    is_reference = isinstance(text, str) and (isinstance(value, Reference) or text in made.formatted)
    return text[2:-1] if is_reference else text


def _code(made: Collector, path: str, value: Any) -> Any:
    if not callable(value):
        return made.value(path, value)

    def make(made: Collector, path: str) -> Any:

        try:
            return source_of(value)
        except ValueError as error:
            return made.replace(path, *error.args)

    return Later(make)


_REWRITE = "write it as a `def` at the top of a module, or its source as text"


def source_of(function: Callable[..., Any]) -> str:
    """Return the source of the function. Raises `ValueError` with the fault and its correction."""
    called = str(getattr(function, "__name__", repr(function)))
    try:
        text = textwrap.dedent(inspect.getsource(function))
        (tree,) = ast.parse(text).body
    except (OSError, TypeError, ValueError, SyntaxError) as error:
        raise ValueError(f"the source of `{called}` cannot be read alone", _REWRITE) from error
    if not isinstance(tree, ast.FunctionDef):
        raise ValueError(f"`{called}` is not a plain function", _REWRITE)
    if tree.decorator_list:
        raise ValueError(f"`{called}` has a decorator, which the sandbox does not have", "take it away")
    if outside := sorted(_names_outside(tree)):
        raise ValueError(
            f"`{called}` uses {', '.join(f'`{name}`' for name in outside)}, and only the function itself is sent",
            "put it inside the function, or hand it over with `needs`",
        )
    return re.sub(rf"\bdef\s+{re.escape(tree.name)}\b", "def evaluate", text, count=1).strip() + "\n"


def _names_outside(tree: ast.FunctionDef) -> set[str]:
    """Return the names that the code reads and neither defines nor gets from Python. Annotations
    are ignored.
    """
    table = symtable.symtable(ast.unparse(_WithoutAnnotations().visit(tree)), "<condition>", "exec")
    return {name for part in _tables(table) for name in _read_in(part)} - set(dir(builtins))


def _read_in(table: symtable.SymbolTable) -> Iterator[str]:
    for symbol in table.get_symbols():
        if symbol.is_global() and symbol.is_referenced():
            yield symbol.get_name()


def _tables(table: symtable.SymbolTable) -> Iterator[symtable.SymbolTable]:
    yield table
    for child in table.get_children():
        yield from _tables(child)


class _WithoutAnnotations(ast.NodeTransformer):
    def visit_arg(self, node: ast.arg) -> ast.arg:
        node.annotation = None
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None
        return self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        self.generic_visit(node)
        value = node.value or ast.Constant(None)
        return ast.copy_location(ast.Assign([node.target], value), node)
