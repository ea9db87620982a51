"""Conditions as Python says them: CEL as text, and functions for the other ways of asking.

The compiler says which operators, queries and schemas there are.
conditions.py turns a Python function into text.
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

from baton.builder.references import Node, Reference
from baton.builder.values import DEEPEST, Collector, Duration
from baton.core.expressions import escape
from baton.errors import Problem

Writer = Callable[[Collector, str, Any], Any]
"""Makes the JSON value of what a user handed in, at a path; notes what is wrong with it."""


@dataclass(frozen=True, eq=False)
class Part:
    """An object of a document: the key, the writer and the value of each of its fields."""

    fields: tuple[tuple[str, Writer, Any], ...]


def given(*fields: tuple[str, Writer, Any]) -> tuple[tuple[str, Writer, Any], ...]:
    """The fields that are not None, which stands for those that were left out."""
    return tuple(field for field in fields if field[2] is not None)


def written(made: Collector, path: str, part: Part) -> dict[str, Any]:
    """The object that a part becomes."""
    return {key: write(made, f"{path}/{key}", value) for key, write, value in part.fields}


def only(kind: type[Part], what: str, suggestion: str) -> Writer:
    """The writer of a field that takes nothing but one kind of part."""

    def write(made: Collector, path: str, value: Any) -> Any:
        if isinstance(value, kind):
            return written(made, path, value)
        return made.replace(path, f"`{made.shown(value)}` is not {what}", suggestion)

    return write


def list_of(write: Writer) -> Writer:
    """The writer of a list, or tuple, whose items all have that one."""

    def write_all(made: Collector, path: str, values: Any) -> Any:
        if not isinstance(values, (list, tuple)):
            return made.replace(path, f"`{made.shown(values)}` is not a list", "write [ ] around it")
        return [write(made, f"{path}/{index}", value) for index, value in enumerate(values)]

    return write_all


# ---- what is made last -------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Later:
    """A value that is made when the document is asked for, because making
    it loads what a worker need not pay for.
    """

    make: Callable[[Collector, str], Any]


def finished(made: Collector, path: str, value: Any) -> Any:
    """A copy of the value, with everything in it made."""
    if isinstance(value, Later):
        return value.make(made, path)
    if isinstance(value, dict):
        return {key: finished(made, f"{path}/{escape(key)}", item) for key, item in value.items()}
    if isinstance(value, list):
        return [finished(made, f"{path}/{index}", item) for index, item in enumerate(value)]
    return value


def raise_if(problems: list[Problem]) -> None:
    if problems:
        from baton.core.documents.compile import refusal_of

        raise refusal_of(problems)


# ---- JSON Schemas ------------------------------------------------------------------------------------------------


def any_schema(made: Collector, path: str, value: Any) -> Any:
    """A JSON Schema: as it is, the name of one, or of a type that pydantic describes."""
    if isinstance(value, (Mapping, bool, str)):
        return made.value(path, value)
    if isinstance(value, (Reference, Node, Part)):
        return made.replace(path, f"`{made.shown(value)}` is not a schema", "write a type, or a JSON Schema")
    return Later(lambda made, path: _described(made, path, value))


def schema_by_name(made: Collector, path: str, value: Any) -> Any:
    """JSON Schemas by name."""
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


class Condition(Part):
    """What has to hold; made by the functions of this file."""


Holds = Condition | Reference | str
"""A condition; a text is CEL, and a reference is a value that is true or false."""


def cel(expression: str) -> Condition:
    """An expression of CEL, the same as the text alone."""
    return Condition((("cel", _cel, expression),))


def jsonpath(
    query: str, operator: str | None = None, value: Any = _LEFT_OUT, *, of: Reference | str | None = None
) -> Condition:
    """What a JSONPath query finds, held by `operator` against `value`:
    `jsonpath("$.rows[*].price", "sum_gt", 100)`.

    It looks into the value `of`, by default what the node gave; in `when`, the saga's input.
    """
    operand = () if value is _LEFT_OUT else (("value", Collector.value, value),)
    return Condition(
        (
            ("jsonpath", Collector.value, query),
            *given(("operator", Collector.value, operator)),
            *operand,
            *given(("of", Collector.value, of)),
        )
    )


def matches(
    # An object, because for type checkers `int | None` and `Annotated[…]` are no types when they are values.
    schema: object,
    *,
    invert: bool | None = None,
    of: Reference | str | None = None,
) -> Condition:
    """Whether a value fits a schema: a type, a JSON Schema, the name of one
    under `schemas`, or `cas://sha256/…`.
    """
    return Condition(
        (
            ("schema", any_schema, schema),
            *given(("invert", Collector.value, invert), ("of", Collector.value, of)),
        )
    )


def compare(left: Any, operator: str, right: Any) -> Condition:
    """Two values, with references in them: `compare(OUTPUT.total, ">", quote.output.limit)`."""
    sides = Part(
        (
            ("left", Collector.value, left),
            ("operator", Collector.value, operator),
            ("right", Collector.value, right),
        )
    )
    return Condition((("compare", written, sides),))


def all_of(*conditions: Holds) -> Condition:
    """Holds when all hold; they are asked in their order, as far as needed."""
    return Condition((("all", list_of(condition), conditions),))


def any_of(*conditions: Holds) -> Condition:
    """Holds when one holds; they are asked in their order, as far as needed."""
    return Condition((("any", list_of(condition), conditions),))


def not_(negated: Holds) -> Condition:
    """Holds when the other does not."""
    return Condition((("not", condition, negated),))


def python(
    function: Callable[..., object] | str,
    *,
    needs: Sequence[Reference | str] | None = None,
    of: Reference | str | None = None,
    timeout: Duration | None = None,
    max_memory_mb: int | None = None,
) -> Condition:
    """A function of `output` and `context` that gives True or False, run in a sandbox.

    A function's source is what goes into the document, under the name `evaluate`:
    nothing outside of it is there when it runs. It may be given as that text,
    too, or as `cas://sha256/…`. `context` holds the values that it `needs`.
    """
    return Condition(
        (
            ("python", _code, function),
            *given(
                ("needs", list_of(_name), needs),
                ("of", Collector.value, of),
                ("timeout", Collector.duration, timeout),
                ("max_memory_mb", Collector.value, max_memory_mb),
            ),
        )
    )


# ---- writing them ------------------------------------------------------------------------------------------------


def condition(made: Collector, path: str, value: Any) -> Any:
    """The writer of whatever has to hold."""
    if path.count("/") >= DEEPEST:
        return made.replace(path, f"nested deeper than {DEEPEST} levels")
    if isinstance(value, Condition):
        return written(made, path, value)
    if isinstance(value, (str, Reference)):
        return _cel(made, path, value)
    return made.replace(
        path,
        f"`{made.shown(value)}` is not a condition",
        "write CEL as text, or cel(), jsonpath(), matches(), compare(), all_of(), any_of(), not_() or python()",
    )


def _cel(made: Collector, path: str, value: Any) -> Any:
    """CEL, in which a reference is its bare name. In quotes it would be text, which no author means."""
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
    """What a reference stands for, as it is written between `${` and `}`."""
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
    """Raises `ValueError` with what is wrong and what would be right."""
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
    """What it reads that is neither its own nor Python's. Annotations are not looked at when it runs."""
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
