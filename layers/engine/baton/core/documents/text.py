"""Text to data: JSON and YAML documents, with the line and column of every value. And data to YAML.

No meaning here. YAML is read as JSON would be: no dates, no octal or base-60 numbers, no tags, no
duplicate keys, and no aliases, because a few lines of them can stand for gigabytes.
"""

from __future__ import annotations

import json
import math
import re
import sys
from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

from baton.core.expressions import escape
from baton.core.on_demand import OnDemand
from baton.errors import MalformedDocument, Problem

if TYPE_CHECKING:
    import yaml
else:
    yaml = OnDemand("yaml")  # the API gets JSON nearly always

MAX_VALUES = 100_000
MAX_DEPTH = 100

NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?P<fraction>(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?)")
_NOT_A_NUMBER = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
_JSON_WORDS = {"true": True, "false": False, "null": None}
_YAML_WORDS: dict[str, bool | None] = {
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys(("null", "Null", "NULL", "~", ""), None),
}
_JSON_STRING = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"')
_JSON_WORD = re.compile(r"[^\s,\]}]+")
# Messages of JSON's parser about YAML in flow style; the last one from Python 3.13 on.
_FLOW_YAML = ("Expecting property name", "Expecting value", "Illegal trailing comma")
_JSON_SPACE = re.compile(r"[ \t\n\r]*")
_SURROGATE = re.compile("[\ud800-\udfff]")
_UNPRINTABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(slots=True)
class TextPosition:
    """Position of a value's beginning, counted from 1, and those of its items, by reference token.

    A tree, because one JSON Pointer for each value could take far more memory than the text.
    """

    line: int
    column: int
    items: dict[str, TextPosition] | None = None


@dataclass(frozen=True)
class Document:
    """A parsed text: its value, and the place of each part of it, which is computed on demand."""

    value: Any
    places: Callable[[], TextPosition]

    @cached_property
    def place(self) -> TextPosition:
        """Positions of the value and its parts."""
        return self.places()

    def locate(self, problem: Problem) -> Problem:
        """Return the problem with the position of its path, or of the nearest value around it."""
        place = self.place
        for token in problem.path.split("/")[1:]:
            if place.items is None or token not in place.items:
                break
            place = place.items[token]
        return Problem(problem.path, problem.message, problem.suggestion, place.line, place.column)


def parse_document(text: str, *, json_only: bool = False) -> Document:
    """Parse JSON or YAML. Raises `MalformedDocument` with line and column of the first fault."""
    looks_like_json = text.lstrip().startswith(("{", "["))
    if (json_only or looks_like_json) and _is_json(text, strict=json_only):
        try:
            return Document(_plain_json(text), lambda: _JsonReader(text).document().place)
        except _NotPlainError:
            return _JsonReader(text).document()
    return _YamlReader(text).document()


class _NotPlainError(Exception):
    """Something that only the reader with its positions can judge."""


def _plain_json(text: str) -> Any:
    """Return the value of JSON in which nothing needs a closer look. Raises `_NotPlainError`."""
    if "\\u" in text or _SURROGATE.search(text):
        raise _NotPlainError
    value = json.loads(
        text, object_pairs_hook=_pairs, parse_int=_int, parse_float=_float, parse_constant=_float
    )
    level: list[Any] = [value]
    depth = count = 0
    while level:
        count += len(level)
        if depth > MAX_DEPTH or count > MAX_VALUES:
            raise _NotPlainError
        depth += 1
        parts = [
            one.values() if isinstance(one, dict) else one for one in level if isinstance(one, (dict, list))
        ]
        level = [inner for part in parts for inner in part]
    return value


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise _NotPlainError
    return found


def _int(word: str) -> int:
    if len(word) > 300:
        raise _NotPlainError
    return int(word)


def _float(word: str) -> float:
    value = float(word)
    if not math.isfinite(value):
        raise _NotPlainError
    return value


def _is_json(text: str, *, strict: bool) -> bool:
    """Return true for JSON, which its own parser checks first, because that has the better messages.

    False for what may be YAML in flow style. Numbers and constants are left for the reader.
    """
    try:
        json.loads(text, parse_int=str, parse_float=str, parse_constant=str)
    except json.JSONDecodeError as error:
        if not strict and error.msg.startswith(_FLOW_YAML):
            return False
        message, hint = of_json(error.msg)
        raise _malformed(message, error.lineno, error.colno, hint) from error
    except RecursionError as error:
        raise _malformed(f"nested deeper than {MAX_DEPTH} levels", 1, 1) from error
    return True


def _malformed(message: str, line: int, column: int, suggestion: str = "") -> MalformedDocument:
    problem = Problem("", message, suggestion, line, column)
    return MalformedDocument(f"line {line}, column {column}: {message}", (problem,))


class _Reader:
    """Base class of the readers of both languages: limits, keys, strings and numbers."""

    def __init__(self) -> None:
        self._values = 0

    def _enter(self, depth: int, line: int, column: int) -> TextPosition:
        self._values += 1
        if depth > MAX_DEPTH:
            raise _malformed(f"nested deeper than {MAX_DEPTH} levels", line, column)
        if self._values > MAX_VALUES:
            raise _malformed(f"more than {MAX_VALUES} values", line, column)
        return TextPosition(line, column)

    def _new_key(self, key: str, known: dict[str, Any], line: int, column: int) -> str:
        if key in known:
            raise _malformed(f"the key `{key[:40]}` is there twice", line, column)
        return self._string(key, line, column)

    def _string(self, value: str, line: int, column: int) -> str:
        if _SURROGATE.search(value):
            raise _malformed("half of a surrogate pair is not a character", line, column)
        return value

    def _number(self, word: str, line: int, column: int) -> int | float | None:
        """Return the number; None for a text that is not one."""
        match = NUMBER.fullmatch(word)
        if not match:
            return None
        try:
            value = float(word) if match["fraction"] else int(word)
        except ValueError:  # more digits than Python converts
            value = math.inf
        if not -sys.float_info.max <= value <= sys.float_info.max:  # isfinite() fails on large integers
            raise _malformed(f"the number {word[:40]} is too large", line, column)
        return value


class _JsonReader(_Reader):
    """Reads text that is known to be JSON."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self._text = text
        self._at = 0
        self._line_ends = [match.start() for match in re.finditer("\n", text)]

    def document(self) -> Document:
        value, place = self._value(0)
        return Document(value, lambda: place)

    def _value(self, depth: int) -> tuple[Any, TextPosition]:
        char = self._next()
        place = self._enter(depth, *self._here())
        if char == "{":
            return self._object(place, depth), place
        if char == "[":
            return self._array(place, depth), place
        if char == '"':
            return self._string(self._quoted(), place.line, place.column), place
        word = self._take(_JSON_WORD)
        if word in _JSON_WORDS:
            return _JSON_WORDS[word], place
        number = self._number(word, place.line, place.column)
        if number is None:
            raise _malformed(f"`{word}` is not a JSON value", place.line, place.column)
        return number, place

    def _object(self, place: TextPosition, depth: int) -> dict[str, Any]:
        result: dict[str, Any] = {}
        place.items = {}
        self._at += 1
        while self._next() != "}":
            line, column = self._here()
            key = self._new_key(self._quoted(), result, line, column)
            self._next()
            self._at += 1  # the colon
            result[key], place.items[escape(key)] = self._value(depth + 1)
            self._comma()
        self._at += 1
        return result

    def _array(self, place: TextPosition, depth: int) -> list[Any]:
        result: list[Any] = []
        place.items = {}
        self._at += 1
        while self._next() != "]":
            value, place.items[str(len(result))] = self._value(depth + 1)
            result.append(value)
            self._comma()
        self._at += 1
        return result

    def _next(self) -> str:
        self._take(_JSON_SPACE)
        return self._text[self._at]

    def _comma(self) -> None:
        if self._next() == ",":
            self._at += 1

    def _quoted(self) -> str:
        quoted = self._take(_JSON_STRING)
        return str(json.loads(quoted)) if "\\" in quoted else quoted[1:-1]

    def _take(self, pattern: re.Pattern[str]) -> str:
        match = pattern.match(self._text, self._at)
        assert match is not None
        self._at = match.end()
        return match.group()

    def _here(self) -> tuple[int, int]:
        line = bisect_left(self._line_ends, self._at)
        start = self._line_ends[line - 1] + 1 if line else 0
        return line + 1, self._at - start + 1


class _YamlReader(_Reader):
    """Reads YAML from the parser's events."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self._text = text.removeprefix("\ufeff")

        # The C parser when PyYAML was built with it. Only its events are used: composing a tree recurses in C
        # without a limit, so that a deep document would kill the process.
        loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        parse: Callable[..., Iterator[Any]] = yaml.parse
        self._events = parse(self._text, Loader=loader)

    def document(self) -> Document:
        if found := _UNPRINTABLE.search(self._text):
            before = self._text[: found.start()]
            line, column = before.count("\n") + 1, found.start() - before.rfind("\n")
            raise _malformed(f"the control character {found.group()!a} is not allowed", line, column)
        try:
            return self._document()
        except yaml.YAMLError as error:
            mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
            message = getattr(error, "problem", None) or getattr(error, "context", None) or str(error)
            line, column = _of(mark) if mark else (1, 1)
            at = mark.index if mark else 0
            before = self._text[:at].rpartition("\n")[2]
            message, hint = of_yaml(message, before, self._text[at : at + 1])
            raise _malformed(message, line, column, hint) from error

    def _document(self) -> Document:
        next(self._events)  # the stream's start
        if isinstance(next(self._events), yaml.StreamEndEvent):
            raise _malformed("the document is empty", 1, 1)
        value, place = self._value(next(self._events), 0)
        document = Document(value, lambda: place)
        next(self._events)  # the document's end
        after = next(self._events)
        if not isinstance(after, yaml.StreamEndEvent):
            raise _malformed("there is a second document", *_of(after.start_mark))
        return document

    def _value(self, event: Any, depth: int) -> tuple[Any, TextPosition]:
        line, column = _of(event.start_mark)
        place = self._enter(depth, line, column)
        if isinstance(event, yaml.AliasEvent):
            raise _malformed("aliases (*name) are not allowed; write the value out", line, column)
        if event.tag is not None:
            raise _malformed(f"tags are not allowed: {event.tag}", line, column, "quote the text")
        if isinstance(event, yaml.MappingStartEvent):
            return self._mapping(place, depth), place
        if isinstance(event, yaml.SequenceStartEvent):
            return self._sequence(place, depth), place
        is_plain, _ = event.implicit
        if is_plain:
            return self._plain(event.value, line, column), place
        return self._string(event.value, line, column), place

    def _plain(self, word: str, line: int, column: int) -> Any:
        if word in _YAML_WORDS:
            return _YAML_WORDS[word]
        if _NOT_A_NUMBER.fullmatch(word):
            raise _malformed(f"`{word}` is not a JSON value", line, column)
        number = self._number(word, line, column)
        return self._string(word, line, column) if number is None else number

    def _mapping(self, place: TextPosition, depth: int) -> dict[str, Any]:
        result: dict[str, Any] = {}
        place.items = {}
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            line, column = _of(event.start_mark)
            if not isinstance(event, yaml.ScalarEvent) or event.tag is not None:
                raise _malformed("a key must be a string", line, column)
            key = self._new_key(event.value, result, line, column)
            result[key], place.items[escape(key)] = self._value(next(self._events), depth + 1)
        return result

    def _sequence(self, place: TextPosition, depth: int) -> list[Any]:
        result: list[Any] = []
        place.items = {}
        while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
            value, place.items[str(len(result))] = self._value(event, depth + 1)
            result.append(value)
        return result


def _of(mark: Any) -> tuple[int, int]:
    return mark.line + 1, mark.column + 1


_INDENTATION = "check the indentation of this line and the ones above"
_QUOTE = "quote the text that begins here"
_FOLLOWS = "something follows the end of the document"
_ESCAPE = "write `\\\\` for a backslash, or use single quotes"
# The parser's message, a line with the character before the place and the one there, and one that says `behind` if
# something else stands before the place in its line.
OF_YAML = tuple(
    (re.compile(pattern, re.DOTALL), message, hint)
    for pattern, message, hint in (
        (
            r"expected ',' or .*\n\$\{\n",
            "an expression inside braces or brackets is not quoted",
            'quote expressions inside braces and brackets: `"${…}"`',
        ),
        (
            r"expected ',' or ",
            "a comma, or the closing bracket or brace, must be here",
            "close the bracket or brace, or quote a text with one of `{}[],` or `: ` in it",
        ),
        (
            r"cannot start any token\n.?\t\n|tab character",
            "there is a tab where only spaces can be",
            "tabs are not allowed, use spaces",
        ),
        (r"cannot start any token", "no text without quotes begins with this character", _QUOTE),
        (
            r"mapping values are not allowed",
            "there is a `:` where no key can be",
            f"quote a text with `: ` in it, or {_INDENTATION}",
        ),
        (
            r"sequence entries are not allowed",
            "no list can begin here",
            "begin the list on a line of its own",
        ),
        (r"mapping keys are not allowed", "no key can begin with `?`", _QUOTE),
        (
            r"expected (key|'-' indicator|<block end>).*\nbehind$",
            "something follows a value that has ended",
            "quote the whole text; in single quotes, `''` stands for one of them",
        ),
        (
            r"expected (key|'-' indicator|<block end>)",
            "this line goes with none of the lines above",
            _INDENTATION,
        ),
        (
            r"expected ':'",
            "a key is without its `:`",
            f"write `:` and a value behind the key, or {_INDENTATION}",
        ),
        (
            r"expected node content|expected the node content",
            "a value is missing here",
            "close what is open, or quote a text with one of `{}[],` in it",
        ),
        (r"unexpected end of stream", "a quotation mark is not closed", "close the quotation mark"),
        (r"unknown escape character", "there is no such escape in double quotes", _ESCAPE),
        (
            r"hexdecimal|hexadecimal|Unicode character escape",
            "`\\x`, `\\u` and `\\U` need 2, 4 and 8 hexadecimal digits of a character",
            _ESCAPE,
        ),
        (
            r"expected (a )?comment or (a )?line ?break|indentation indicator|chomping",
            "nothing can stand behind `|` or `>` in its line but `-` or `+`",
            "begin the text on the next line",
        ),
        (
            r"document (indicator|separator)|<document start>",
            _FOLLOWS,
            "leave out `---`, `...` and what follows",
        ),
        (
            r"directive|%YAML|YAML document|version number",
            "lines that begin with `%` are not allowed",
            "leave the line out",
        ),
        (r"[Tt]ag|URI|the expected '>'", "tags (`!…`) are not allowed", _QUOTE),
        (r"alphabetic or numeric", "names of values (`&…`, `*…`) are not allowed", _QUOTE),
    )
)
OF_JSON = (
    (
        "Expecting property name",
        "a key in double quotes must be here",
        "no comma stands before a closing brace",
    ),
    (
        "Expecting value",
        "a value must be here",
        "a text stands in double quotes, and no comma before a closing bracket",
    ),
    ("Illegal trailing comma", "a comma stands before the closing bracket or brace", "leave the comma out"),
    ("Expecting ':'", "a `:` must be here", "write `:` and a value behind the key"),
    (
        "Expecting ','",
        "a comma, or the closing bracket or brace, must be here",
        "close the bracket or brace, or write a comma between two values",
    ),
    ("Unterminated string", "a quotation mark is not closed", "close the quotation mark"),
    ("Invalid control character", "a text goes over the end of its line", "write `\\n` for a new line"),
    ("Invalid \\", "there is no such escape", "write `\\\\` for a backslash"),
    ("Extra data", _FOLLOWS, "leave it out"),
)


def of_yaml(message: str, before: str, here: str) -> tuple[str, str]:
    """Return the message and the hint for a parser's error.

    `before`: the text before the place in its line; `here`: the text behind it.
    """
    told = f"{message}\n{before[-1:]}{here[:1]}\n{'behind' if before.strip() else ''}"
    found = ((ours, hint) for pattern, ours, hint in OF_YAML if pattern.search(told))
    return next(found, ("this cannot be read as YAML", f"{_INDENTATION}, or quote the text"))


def of_json(message: str) -> tuple[str, str]:
    """Return the message and the hint for a parser's error."""
    found = ((ours, hint) for begins, ours, hint in OF_JSON if message.startswith(begins))
    return next(found, ("this cannot be read as JSON", ""))


# ---- data to text ------------------------------------------------------------------------------------------------

_LINE_ENDS = frozenset("\x85\u2028\u2029")
_LONGEST_ROW = 80


def write_yaml(value: Any) -> str:
    """Write a JSON value as YAML, keys in their order. `parse_document` gives the same value back."""

    text: str = yaml.dump(
        value,
        Dumper=_dumper(),
        sort_keys=False,
        allow_unicode=True,
        default_flow_style=False,
        width=float("inf"),
    )
    return text


@cache
def _dumper() -> type[yaml.SafeDumper]:
    """Return the class that writes every value out where it stands, lists set in."""

    class Dumper(yaml.SafeDumper):
        def ignore_aliases(self, data: Any) -> bool:
            return True

        def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
            super().increase_indent(flow, False)

        def text(self, value: str) -> yaml.ScalarNode:
            style = None
            if "${" in value or NUMBER.fullmatch(value) or not _LINE_ENDS.isdisjoint(value):
                # An expression, as everybody writes it; what YAML 1.1 takes for text and JSON for a number; what
                # YAML takes for the end of a line.
                style = '"'
            elif "\n" in value:
                style = "|"
            return self.represent_scalar("tag:yaml.org,2002:str", value, style=style)

        def row(self, value: list[Any]) -> yaml.SequenceNode:
            """Write a list on one line if it is short and simple."""
            is_flat = not any(isinstance(item, (list, dict)) for item in value)
            is_row = is_flat and sum(len(str(item)) + 2 for item in value) <= _LONGEST_ROW
            return self.represent_sequence("tag:yaml.org,2002:seq", value, flow_style=is_row)

    Dumper.add_representer(str, Dumper.text)
    Dumper.add_representer(list, Dumper.row)
    return Dumper
