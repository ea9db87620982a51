"""Compiled conditions: frozen data in the graph, one struct for each kind.

Their form in a document is in document.py; the file of each kind judges it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from baton.core.expressions import Lookup


class _Condition(msgspec.Struct, frozen=True, tag_field="is", omit_defaults=True, kw_only=True):
    """Root of the tagged union."""


class Cel(_Condition, frozen=True, tag="cel", kw_only=True):
    """An expression of the Common Expression Language that gives a boolean."""

    expression: str


class JsonPath(_Condition, frozen=True, tag="jsonpath", kw_only=True):
    """Values that `query` (RFC 9535) finds in the value of `of`, compared by `operator` with `value`."""

    query: str
    operator: str = "exists"
    value: Any = None
    of: str = "output"


class Matches(_Condition, frozen=True, tag="schema", kw_only=True):
    """Test of the value of `of` against a JSON Schema: `schema`, or the schema in the blob `ref`."""

    schema: Any = None
    ref: str = ""
    invert: bool = False
    of: str = "output"


class Compare(_Condition, frozen=True, tag="compare", kw_only=True):
    """Two values, each JSON with expressions."""

    left: Any
    operator: str
    right: Any


class AllOf(_Condition, frozen=True, tag="all", kw_only=True):
    """Holds when all hold; asked in order, as far as needed."""

    conditions: tuple[Condition, ...]


class AnyOf(_Condition, frozen=True, tag="any", kw_only=True):
    """Holds when one holds; asked in order, as far as needed."""

    conditions: tuple[Condition, ...]


class Not(_Condition, frozen=True, tag="not", kw_only=True):
    """Holds when the other does not."""

    condition: Condition


class Python(_Condition, frozen=True, tag="python", kw_only=True):
    """`evaluate(output, context)` in a sandbox: the source here, or in the blob `ref`.

    `of` is the expression of its first argument; `needs` are those whose values `context` holds.
    """

    code: str = ""
    ref: str = ""
    of: str = "output"
    needs: tuple[str, ...] = ()
    timeout_ms: int = 1_000
    memory_mb: int = 50


Condition = Cel | JsonPath | Matches | Compare | AllOf | AnyOf | Not | Python


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """One evaluation of `evaluate(output, context)`. Equal questions have equal answers."""

    key: str
    """SHA-256 of all the rest, in hexadecimal."""
    code: str
    data: bytes
    """JSON `{"output": …, "context": …}`."""
    timeout_ms: int
    memory_mb: int


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """Answer to a question: `value`, or None with the code and message of a failure, ready for the log."""

    value: bool | None
    code: str = ""
    message: str = ""


INVALID = "condition_invalid"
MISSING = "condition_missing"
TYPE = "condition_type"
NOT_BOOLEAN = "condition_not_boolean"
TOO_LARGE = "condition_too_large"
ERROR = "condition_error"
TIMEOUT = "condition_timeout"
MEMORY = "condition_memory"
CODES = (INVALID, MISSING, TYPE, NOT_BOOLEAN, TOO_LARGE, ERROR, TIMEOUT, MEMORY)


class ConditionError(Exception):
    """A condition that broke. It never counts as true, nor as false."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class Unanswered(Exception):
    """The condition cannot be judged before these questions are answered."""

    def __init__(self, questions: frozenset[Question]) -> None:
        super().__init__(f"{len(questions)} questions are open")
        self.questions = questions


class Facts(Struct, frozen=True):
    """Data by which a condition is judged.

    `lookup` returns the value of a path's root; `blobs` are keyed by `cas://…`.
    """

    lookup: Lookup
    blobs: Mapping[str, Any]
    answers: Mapping[str, Answer]


class Fault(Struct, frozen=True):
    """Fault of a condition; `field` is its place in the condition, empty for the whole condition."""

    field: str
    message: str
    suggestion: str = ""


Composite = AllOf | AnyOf | Not


def parts(condition: Condition) -> tuple[Condition, ...]:
    """The conditions right inside."""
    if isinstance(condition, (AllOf, AnyOf)):
        return condition.conditions
    return (condition.condition,) if isinstance(condition, Not) else ()


def leaves(condition: Condition) -> Iterator[Condition]:
    """Return the conditions without inner conditions, in the order in which they would be asked."""
    inside = parts(condition)
    if not inside:
        yield condition
    for part in inside:
        yield from leaves(part)


def judge_composite(condition: Composite, ask: Callable[[Condition], bool]) -> bool:
    """Return true if a composite condition holds. Raises the exceptions of `ask`."""
    if isinstance(condition, Not):
        return not ask(condition.condition)
    verdicts = map(ask, condition.conditions)
    return all(verdicts) if isinstance(condition, AllOf) else any(verdicts)


DATA_DEPTH = 64
"""Objects and lists inside each other, in the values that a condition reads. libcel crashes on deep data."""

DATA_UNITS = 200_000
"""Size of the values that a condition reads, together."""

CEL_LENGTH = 4_096
"""Characters of an expression."""

CEL_WORK = 2_000_000
"""Units that an expression may touch or build, by an upper bound that is worked out before it is run."""

CEL_BUILT = 1_000_000
"""Units of the largest value that an expression may build on its way."""

CEL_ROUNDS = 10_000
"""Rounds of all loops (`all`, `exists`, `map`, `filter`) together; libcel's own number."""

PATTERN_WEIGHT = 20_000
"""Length of a regular expression, each part times the counts of its repetitions."""

QUERY_LENGTH = 2_000
"""Characters of a JSONPath query."""

QUERY_STEPS = 100_000
"""Values that a query may look at, each as often as it does."""

SCHEMA_BYTES = 98_304
"""Size of a JSON Schema."""

SCHEMA_DEPTH = 200
"""Parts of a JSON Schema inside each other, references followed."""

SCHEMA_PLACES = 400_000
"""Places of a JSON Schema, each as often as its references lead to it."""

SCHEMA_PATTERNS = 60_000
"""The same of all regular expressions of a JSON Schema together; 500 bytes of memory each."""

SCHEMA_WORK = 5_000_000
"""Places that a JSON Schema is looked at for a value, texts by their units; 20 to 100 ns each."""

SCHEMA_PAIRS = 50_000
"""Parts of a value, each with every part of a JSON Schema that is held
against it, while that work is counted.
"""

SCHEMA_TOLD = 600_000
"""Units that the messages about a value may have to copy, at most; about 100 bytes each."""

COMPILED_BYTES = 33_554_432
"""Memory of the compiled JSON Schemas that a process keeps, by estimate; and of the patterns of queries."""

PROBLEMS = 100
"""Violations of a JSON Schema that are told."""

PROBLEM_LENGTH = 300
"""Characters of the message of a violation."""

CODE_LENGTH = 20_000
"""Characters of a Python function."""

NESTING = 16
"""Conditions inside each other."""

CONDITIONS = 200
"""Conditions inside one condition."""

PYTHON_TIMEOUT_MS = (10, 10_000)
PYTHON_MEMORY_MB = (10, 256)
"""From and to: what a Python function may be given."""

PLANS = 2_048
"""Compiled conditions of each kind that a process keeps."""
