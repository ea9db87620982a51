"""The syntax tree of a CEL expression, read off the bytes that the library makes of a checked one.

It knows the few kinds of nodes there are, and their wire format (`cel.expr.Expr`, protobuf), so that no library for
protobuf is needed. What is allowed in an expression is in celnames.py, what it costs in celwork.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Const:
    """A literal; `value` of a text and of a whole number, null for all others. `type` in JSON, if it has one there."""

    value: str | int | None
    is_bytes: bool = False
    type: str = ""


@dataclass(frozen=True)
class Name:
    """A variable, of the condition or of a loop, or a type such as `int`."""

    name: str


@dataclass(frozen=True)
class Field:
    """`operand.name`, or `has(operand.name)`."""

    operand: Tree
    name: str
    is_test: bool


@dataclass(frozen=True)
class Call:
    """A function or an operator; the target of a method is the first of `args`."""

    function: str
    args: tuple[Tree, ...]


@dataclass(frozen=True)
class Items:
    """A list, or an object with its keys and values one after the other; `message` for a protobuf message."""

    items: tuple[Tree, ...]
    message: str = ""


@dataclass(frozen=True)
class Loop:
    """What a macro becomes: `all`, `exists`, `exists_one`, `map`, `filter`."""

    variable: str
    over: Tree
    result: str
    start: Tree
    goes_on: Tree
    step: Tree
    end: Tree


Tree = Const | Name | Field | Call | Items | Loop


def read_tree(serialized: bytes) -> Tree:
    """The tree of `Expression.serialize()`: a `google.protobuf.Any` of a `CheckedExpr`."""
    return _expr(_message(_message(serialized, 2), 4))


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """(field number, value) of a message: a number, or bytes."""
    position = 0
    while position < len(data):
        key, position = _varint(data, position)
        number, wire = key >> 3, key & 7
        if wire == 0:
            value, position = _varint(data, position)
            yield number, value
        else:
            length, position = (8, position) if wire == 1 else _varint(data, position)
            yield number, data[position : position + length]
            position += length


def _varint(data: bytes, position: int) -> tuple[int, int]:
    result = shift = 0
    while True:
        byte = data[position]
        result |= (byte & 127) << shift
        position += 1
        if byte < 128:
            return result, position
        shift += 7


def _all(data: bytes, number: int) -> list[bytes]:
    return [value for found, value in _fields(data) if found == number and isinstance(value, bytes)]


def _message(data: bytes, number: int) -> bytes:
    return next(iter(_all(data, number)), b"")


def _text(data: bytes, number: int) -> str:
    return _message(data, number).decode()


def _expr(data: bytes) -> Tree:
    number, inner = next(
        (number, value) for number, value in _fields(data) if number != 2 and isinstance(value, bytes)
    )
    return _READERS[number](inner)


# By field number of a literal whose value no caller reads.
_TYPES = {1: "null", 2: "boolean", 4: "number", 5: "number"}


def _const(data: bytes) -> Const:
    number, value = next(_fields(data), (0, b""))
    if number == 6 and isinstance(value, bytes):
        return Const(value.decode(), type="string")
    if number == 3 and isinstance(value, int):
        return Const(value if value < 1 << 63 else value - (1 << 64), type="number")
    return Const(None, is_bytes=number == 7, type=_TYPES.get(number, ""))


def _name(data: bytes) -> Tree:
    return Name(_text(data, 1))


def _field(data: bytes) -> Tree:
    is_test = any(number == 3 and value for number, value in _fields(data))
    return Field(_expr(_message(data, 1)), _text(data, 2), is_test)


def _call(data: bytes) -> Tree:
    args = (*_all(data, 1), *_all(data, 3))
    return Call(_text(data, 2), tuple(map(_expr, args)))


def _list(data: bytes) -> Tree:
    return Items(tuple(map(_expr, _all(data, 1))))


def _object(data: bytes) -> Tree:
    entries = _all(data, 2)
    parts = [part for entry in entries for number in (3, 4) for part in _all(entry, number)]
    return Items(tuple(map(_expr, parts)), _text(data, 1))


def _loop(data: bytes) -> Tree:
    over, start, goes_on, step, end = (_expr(_message(data, number)) for number in (2, 4, 5, 6, 7))
    return Loop(_text(data, 1), over, _text(data, 3), start, goes_on, step, end)


_READERS = {3: _const, 4: _name, 5: _field, 6: _call, 7: _list, 8: _object, 9: _loop}
