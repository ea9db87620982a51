"""Primitives on texts and on any JSON: expressions, dates, and JMESPath."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, tzinfo
from typing import Any, Final

from jmespath.exceptions import JMESPathError
from jmespath.parser import Parser
from jmespath.visitor import TreeInterpreter

from baton.core.conditions.values import is_number, type_of
from baton.core.expressions import nearest
from baton.core.pipelines import base
from baton.core.pipelines.base import (
    DATA,
    FLAG,
    INVALID,
    PATTERN,
    Broken,
    PipelineProblems,
    Primitive,
    PrimitiveCall,
    PrimitiveField,
    WorkBudget,
    Wrong,
    checked_shape,
    one_or_list_shape,
    text_shape,
)
from baton.core.pipelines.tables import FIELD

# ---- regex_extract ---------------------------------------------------------------------------------------------


def _extract(call: PrimitiveCall) -> Any:
    rows, field, pattern = call.rows, call.fields["field"], call.fields["pattern"]
    values = call.column(field)
    for place, value in enumerate(values):
        if value is not None and not isinstance(value, str):
            right = "texts are searched; convert it with `transform` first"
            raise Broken(DATA, f"`{field}` is {type_of(value)} in row {place}", "field", right)
    pattern.charge([value for value in values if value is not None], call.work)
    names = pattern.names or (call.fields["into"],)
    _add(call, len(names))
    nothing = dict.fromkeys(names)
    made = []
    for row, value in zip(rows, values, strict=True):
        found = None if value is None else pattern.found(value)
        if found is not None and not pattern.names:
            found = {names[0]: found[""]}
        made.append({**row, **(found or nothing)})
    return made


def _add(call: PrimitiveCall, more: int) -> None:
    """Charge for rows with so many fields more before they are made."""
    rows = call.rows
    call.work.make(len(rows), max(map(len, rows), default=0) + more)


def _into_something(fields: Mapping[str, Any], path: str, told: PipelineProblems) -> None:
    names, into = fields["pattern"].names, fields["into"]
    if not names and into is None:
        right = "name the new field, or name groups: `(?P<year>[0-9]{4})`"
        told.wrong(path, "`into` is missing, and the pattern has no named groups", right)
    if names and into is not None:
        told.wrong(f"{path}/into", f"the pattern names its groups: {', '.join(names)}", "leave `into` out")


EXTRACT = Primitive(
    "regex_extract",
    "Adds what a regular expression finds first in a text: one field for each named group, or one in all. Null for no match.",
    (
        PrimitiveField("field", FIELD, "the text, or the way to it"),
        PrimitiveField("pattern", PATTERN, "in RE2's syntax, without look-around and back-references"),
        PrimitiveField("into", FIELD, "the new field, where no group has a name: for the first group, or the whole match", None),
    ),
    _extract,
    check=_into_something,
)  # fmt: skip

# ---- parse_date ------------------------------------------------------------------------------------------------

ISO, UNIX, UNIX_MS = "iso", "unix", "unix_ms"
_DIRECTIVES: Final = "aAbBdfHIjmMpSyYzZ"
_DIRECTIVE = re.compile(r"%(.?)", re.DOTALL)


def _format(given: str) -> str:
    """Check a format. Raises `Wrong`."""
    if given in {ISO, UNIX, UNIX_MS}:
        return given
    found = _DIRECTIVE.findall(given)
    known = ", ".join(f"%{one}" for one in _DIRECTIVES)
    if not found:
        right = nearest(given, (ISO, UNIX, UNIX_MS)) or "such as `%d.%m.%Y %H:%M`"
        raise Wrong(f"`{given}` is neither {ISO}, {UNIX} nor {UNIX_MS}, and has no directives", right)
    for one in found:
        if one not in {*_DIRECTIVES, "%"}:
            raise Wrong(f"there is no `%{one}` in a format", f"there are {known}")
        if one != "%" and found.count(one) > 1:
            raise Wrong(f"`%{one}` is there twice")
    return given


def _zone(name: str) -> tzinfo:
    """Return the time zone. Raises `Wrong` for a name that is not in the IANA's database."""
    from zoneinfo import ZoneInfo, available_timezones  # reads files, which most cold starts do not need

    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:
        right = nearest(name, available_timezones()) or "such as `Europe/Berlin`"
        raise Wrong(f"there is no time zone `{name}`", right) from error


def _read_date(value: Any, written: str, zone: tzinfo) -> datetime:
    """Read a date. Raises `ValueError`, `OverflowError`."""
    if written in {UNIX, UNIX_MS}:
        if isinstance(value, str):
            value = float(value)
        if not is_number(value):
            raise ValueError
        return datetime.fromtimestamp(value / 1_000 if written == UNIX_MS else value, UTC)
    if not isinstance(value, str):
        raise ValueError
    moment = datetime.fromisoformat(value) if written == ISO else datetime.strptime(value, written)  # noqa: DTZ007  # below
    return moment.replace(tzinfo=zone) if moment.tzinfo is None else moment


def _utc(value: Any, formats: tuple[str, ...], zone: tzinfo) -> str | None:
    """Return `2026-11-21T10:00:00.000Z`, always of the same length, so that texts sort as moments.

    None if `value` is not a date.
    """
    if isinstance(value, str) and len(value) > base.DATE:
        return None
    for written in formats:
        try:
            moment = _read_date(value, written, zone).astimezone(UTC)
        except (ValueError, OverflowError, OSError, re.error):
            continue
        return moment.replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"
    return None


def _dates(call: PrimitiveCall) -> Any:
    rows, fields = call.rows, call.fields
    formats, zone, field = fields["format"], fields["timezone"] or UTC, fields["field"]
    values = call.column(field)
    call.work.spend(len(values) * 2 * sum(map(len, formats)))
    _add(call, 1)
    into, made = fields["into"] or field, []
    for place, (row, value) in enumerate(zip(rows, values, strict=True)):
        found = None if value is None else _utc(value, formats, zone)
        if found is None and value is not None and fields["strict"]:
            shown = f"`{value[:40]}`" if isinstance(value, str) else f"{type_of(value)}"
            what = f"`{field}` in row {place} is {shown}, which is no date by {' or '.join(formats)}"
            raise Broken(DATA, what, "format", "add its format, or set `strict: false` for null instead")
        made.append({**row, into: found})
    return made


DATE = Primitive(
    "parse_date",
    "Reads a date or a time, and writes it as ISO 8601 in UTC with milliseconds: `2026-11-21T10:00:00.000Z`.",
    (
        PrimitiveField("field", FIELD, "the date, or the way to it"),
        PrimitiveField(
            "format",
            one_or_list_shape(checked_shape(text_shape(base.FORMAT, "a format"), _format), base.FIELDS),
            f"`{ISO}`, `{UNIX}` (seconds), `{UNIX_MS}`, or directives such as `%d.%m.%Y %H:%M`; of several, the first that fits",
            (ISO,),
        ),
        PrimitiveField(
            "timezone",
            checked_shape(text_shape(base.FORMAT, "the name of a time zone"), _zone),
            "of dates that name none, such as `Europe/Berlin`; UTC if left out",
            None,
        ),
        PrimitiveField("into", FIELD, "the field that gets it; `field` itself if left out", None),
        PrimitiveField("strict", FLAG, "false: null for a value that is no date, instead of a failure", True),
    ),
    _dates,
)  # fmt: skip


def _parsed(source: str) -> Any:
    """Parse an expression. Raises `Wrong`."""

    return Expression(source)


def _transform(call: PrimitiveCall) -> Any:
    return call.fields["expression"].of(call.value, call.work)


TRANSFORM = Primitive(
    "transform",
    "Makes any other JSON of any JSON: takes a list out of an answer, or computes new objects.",
    (
        PrimitiveField(
            "expression",
            checked_shape(text_shape(base.EXPRESSION, "a JMESPath expression"), _parsed),
            "in JMESPath: `flights[].{airline: carrier.name, price: price}`",
        ),
    ),
    _transform,
)


class Expression:
    """A parsed CEL expression of a pipeline's step."""

    def __init__(self, source: str) -> None:
        """Parse an expression. Raises `Wrong`."""
        try:
            self._tree: Any = Parser().parse(source).parsed
        except RecursionError as error:
            raise Wrong("the expression is nested too deep") from error
        except JMESPathError as error:
            raise Wrong(f"not a JMESPath expression: {_line(error)}") from error

    def of(self, value: Any, work: WorkBudget) -> Any:
        """Return the result of the expression for a value. Raises `Broken`."""
        try:
            return _Counting(work).visit(self._tree, value)
        except RecursionError as error:
            raise Broken(INVALID, "it is nested too deep", "expression") from error
        # What the library lets out where a value does not fit, besides its own errors.
        except (JMESPathError, ArithmeticError, AttributeError, TypeError, ValueError) as error:
            raise Broken(DATA, _line(error), "expression") from error


def _line(error: Exception) -> str:
    """Return the first line of an error: the others point into the expression, for a terminal."""
    return str(error).partition("\n")[0][:300]


class _Counting(TreeInterpreter):  # type: ignore[misc]  # the library has no types
    """Every step costs a unit, a list what is in it, and a function what it is given."""

    def __init__(self, work: WorkBudget) -> None:
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
