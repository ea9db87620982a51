"""Compiled conditions: frozen data in the graph, one struct for each kind.

document.py reads conditions from documents, and the file of each kind judges them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from baton.core.expressions import Lookup


class _Condition(msgspec.Struct, frozen=True, tag_field="is", omit_defaults=True, kw_only=True):
    """Root of the tagged union of conditions."""


class Cel(_Condition, frozen=True, tag="cel", kw_only=True):
    """An expression of the Common Expression Language that gives a boolean."""

    expression: str


class JsonPath(_Condition, frozen=True, tag="jsonpath", kw_only=True):
    """The values that `query` (RFC 9535) finds in the value of `of`, compared with `value` by `operator`."""

    query: str
    operator: str = "exists"
    value: Any = None
    of: str = "output"


class Matches(_Condition, frozen=True, tag="schema", kw_only=True):
    """Validation of the value of `of` by a JSON Schema: `schema`, or the blob `ref`."""

    schema: Any = None
    ref: str = ""
    invert: bool = False
    of: str = "output"


class Compare(_Condition, frozen=True, tag="compare", kw_only=True):
    """Comparison of two values, each JSON with expressions."""

    left: Any
    operator: str
    right: Any


class AllOf(_Condition, frozen=True, tag="all", kw_only=True):
    """Holds when all conditions hold. They are evaluated in order, up to the first that does not hold."""

    conditions: tuple[Condition, ...]


class AnyOf(_Condition, frozen=True, tag="any", kw_only=True):
    """Holds when one condition holds. They are evaluated in order, up to the first that holds."""

    conditions: tuple[Condition, ...]


class Not(_Condition, frozen=True, tag="not", kw_only=True):
    """Holds when the inner condition does not."""

    condition: Condition


class Python(_Condition, frozen=True, tag="python", kw_only=True):
    """`evaluate(output, context)` in a sandbox, from `code` or from the blob `ref`.

    `of` is the expression of its first argument. `needs` are the expressions whose values `context` has.
    """

    code: str = ""
    ref: str = ""
    of: str = "output"
    needs: tuple[str, ...] = ()
    timeout_ms: int = 1_000
    memory_mb: int = 50


Condition = Cel | JsonPath | Matches | Compare | AllOf | AnyOf | Not | Python


class SandboxQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """One evaluation of `evaluate(output, context)`. Equal questions have equal answers."""

    key: str
    """SHA-256 of all other fields, in hexadecimal."""
    code: str
    data: bytes
    """JSON `{"output": …, "context": …}`."""
    timeout_ms: int
    memory_mb: int


class SandboxAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Answer of the sandbox: `value`, or None with the code and message of a failure, ready for the log."""

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
    """Error for a condition that broke. It counts neither as true nor as false."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class Unanswered(Exception):
    """Questions that the sandbox must answer before the condition can be judged."""

    def __init__(self, questions: frozenset[SandboxQuestion]) -> None:
        super().__init__(f"{len(questions)} questions are open")
        self.questions = questions


class Facts(Struct, frozen=True):
    """Inputs of a judgement. `lookup` gives the value of a path's root; `blobs` are by `cas://…`."""

    lookup: Lookup
    blobs: Mapping[str, Any]
    answers: Mapping[str, SandboxAnswer]


class Fault(Struct, frozen=True):
    """A mistake in a condition. `field` is its place in the condition, empty for the whole condition."""

    field: str
    message: str
    suggestion: str = ""


Composite = AllOf | AnyOf | Not


def need(package: str) -> str:
    """Return the remedy for a library that only some applications ship."""
    return f"write `{package}` into layers/app/requirements.txt, then install and deploy it"


def parts(condition: Condition) -> tuple[Condition, ...]:
    """Return the direct inner conditions."""
    if isinstance(condition, (AllOf, AnyOf)):
        return condition.conditions
    return (condition.condition,) if isinstance(condition, Not) else ()


def leaves(condition: Condition) -> Iterator[Condition]:
    """Yield all conditions without inner conditions, in the order of evaluation."""
    inside = parts(condition)
    if not inside:
        yield condition
    for part in inside:
        yield from leaves(part)


def judge_composite(condition: Composite, ask: Callable[[Condition], bool]) -> bool:
    """Return true if the composite holds. Raises what `ask` raises."""
    if isinstance(condition, Not):
        return not ask(condition.condition)
    verdicts = map(ask, condition.conditions)
    return all(verdicts) if isinstance(condition, AllOf) else any(verdicts)


DATA_DEPTH = 64
"""Levels of objects and lists in the values that a condition reads. libcel crashes on deep data."""

DATA_UNITS = 200_000
"""Total size of the values that a condition reads, in units."""

CEL_LENGTH = 4_096
"""Length of an expression, in characters."""

CEL_WORK = 2_000_000
"""Units that an expression may touch or build. An upper bound is computed before the expression runs."""

CEL_BUILT = 1_000_000
"""Units of the largest value that an expression may build as an intermediate result."""

CEL_ROUNDS = 10_000
"""Rounds of all loops (`all`, `exists`, `map`, `filter`) together; the limit of libcel itself."""

PATTERN_WEIGHT = 20_000
"""Weight of a regular expression: its length, with each part times the counts of its repetitions."""

QUERY_LENGTH = 2_000
"""Length of a JSONPath query, in characters."""

QUERY_STEPS = 100_000
"""Values that a query may visit. Each visit counts."""

SCHEMA_BYTES = 98_304
"""Size of a JSON Schema, in bytes."""

SCHEMA_DEPTH = 200
"""Nesting of a JSON Schema, with references followed."""

SCHEMA_PLACES = 400_000
"""Places of a JSON Schema. A place counts once for each reference that leads to it."""

SCHEMA_PATTERNS = 60_000
"""Weight of all regular expressions of a JSON Schema together; 500 bytes of memory for each unit."""

SCHEMA_WORK = 5_000_000
"""Places of a JSON Schema that are checked for a value, with texts by their units; 20 to 100 ns each."""

SCHEMA_PAIRS = 50_000
"""Pairs of a part of a value and a part of its JSON Schema, while their work is counted."""

SCHEMA_TOLD = 600_000
"""Units that the messages about a value may copy; about 100 bytes each."""

COMPILED_BYTES = 33_554_432
"""Estimated memory of the compiled JSON Schemas that a process keeps; the same for patterns of queries."""

PROBLEMS = 100
"""Violations of a JSON Schema that are reported."""

PROBLEM_LENGTH = 300
"""Length of the message of a violation, in characters."""

CODE_LENGTH = 20_000
"""Length of a Python function, in characters."""

NESTING = 16
"""Levels of conditions inside each other."""

CONDITIONS = 200
"""Number of conditions inside one condition."""

PYTHON_TIMEOUT_MS = (10, 10_000)
PYTHON_MEMORY_MB = (10, 256)
"""Minimum and maximum limit of a Python function."""

PLANS = 2_048
"""Compiled conditions of each kind that a process keeps."""
