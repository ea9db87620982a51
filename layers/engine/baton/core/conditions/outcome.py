"""What comes of asking a condition besides yes and no: an error with its code, or that the sandbox is to be asked.

How a kind of condition is judged is in its own file, what the sandbox is asked in questions.py.

| code | what happened | what its author changes |
|---|---|---|
| `condition_invalid` | a schema or a function from a blob is none; a stored condition cannot be compiled | the blob, or the condition |
| `condition_missing` | a value that it names is not there | guard it: `has(...)`, `exists`, `?` |
| `condition_type` | a value has a type that the operator cannot take | the operator, or convert the value |
| `condition_not_boolean` | it gave something else than true or false | make it a comparison |
| `condition_too_large` | its data, or the work on them, is above a cap | name less of the data, or let a tool count |
| `condition_error` | it broke in another way: division by zero, overflow, an exception in Python | what the message says |
| `condition_timeout` | the Python function took too long | the function, or `timeout` |
| `condition_memory` | it took too much memory | the function, or `max_memory_mb` |
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from baton.core.conditions.questions import Answer, Question
from baton.core.expressions import Lookup

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
    """What a condition is judged by. `lookup` gives the value of a path's root; `blobs` are by `cas://…`."""

    lookup: Lookup
    blobs: Mapping[str, Any]
    answers: Mapping[str, Answer]


class Fault(Struct, frozen=True):
    """What is wrong with a condition as it is written: `field` is the place of it, empty for all of it."""

    field: str
    message: str
    suggestion: str = ""
