"""Conditions: the decision to run a node, the choice of edges, the decision to repeat a loop.

model.py has the compiled form, document.py the form in documents, one file for each kind its judgement.
The first condition that needs them imports these modules and their libraries.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from importlib import import_module
from typing import Any

import msgspec

from baton.core.conditions import model
from baton.core.conditions.model import (
    CODES,
    MEMORY,
    TOO_LARGE,
    AllOf,
    Answer,
    AnyOf,
    Cel,
    Compare,
    Condition,
    ConditionError,
    Facts,
    Fault,
    JsonPath,
    Matches,
    Not,
    Python,
    Question,
    Unanswered,
)
from baton.core.expressions import Lookup, Path

__all__ = [
    "CODES",
    "Answer",
    "ConditionError",
    "Question",
    "Unanswered",
    "blobs_of",
    "faults_of",
    "judge",
    "names_of",
]

# A caller that only reads graphs needs none of them.
_KINDS: dict[type, str] = {
    Cel: "cel",
    JsonPath: "jsonpath",
    Matches: "matches",
    Compare: "compare",
    Python: "python",
}
_encode = msgspec.json.encode


@lru_cache(maxsize=len(_KINDS))
def _kind(kind: type) -> Any:
    """The module that judges conditions of this kind: `names`, `faults` and `judge`."""
    return import_module(f"{__name__}.{_KINDS[kind]}")


def names_of(condition: Condition) -> tuple[Path, ...]:
    """Every value that it reads, each once. Raises `ConditionError` for one that cannot be compiled."""
    return _names(_encode(condition))


@lru_cache(maxsize=4 * model.PLANS)
def _names(encoded: bytes) -> tuple[Path, ...]:
    condition: Condition = _decoder().decode(encoded)
    found = (path for leaf in model.leaves(condition) for path in _kind(type(leaf)).names(leaf))
    return tuple(dict.fromkeys(one for path in found for one in (path, *path.picks)))


@lru_cache(maxsize=1)
def _decoder() -> Any:
    return msgspec.json.Decoder(Condition)


def blobs_of(condition: Condition) -> frozenset[str]:
    """The blobs (`cas://…`) that it needs itself: schemas and functions."""
    return frozenset(_references(condition))


def _references(condition: Condition) -> Iterator[str]:
    for leaf in model.leaves(condition):
        if isinstance(leaf, (Matches, Python)) and leaf.ref:
            yield leaf.ref


def faults_of(condition: Condition) -> list[Fault]:
    """Return the faults of a condition without inner conditions.

    Faults of composite conditions are found in document.py.
    """
    found: list[Fault] = _kind(type(condition)).faults(condition)
    return found


def judge(
    condition: Condition, lookup: Lookup, blobs: Mapping[str, Any], answers: Mapping[str, Answer]
) -> bool:
    """Return true if the condition holds.

    `lookup` returns the value of a path's root and raises `ExpressionError` where the root has none.

    Raises `ConditionError` if the condition breaks, `Unanswered` for Python code
    that the sandbox has not run yet.
    """
    facts = Facts(lookup, blobs, answers)

    def ask(one: Condition) -> bool:
        if isinstance(one, (AllOf, AnyOf, Not)):
            return model.judge_composite(one, ask)
        holds: bool = _kind(type(one)).judge(one, facts)
        return holds

    try:
        return ask(condition)
    except RecursionError as error:
        raise ConditionError(TOO_LARGE, "the condition or its data are nested too deeply") from error
    except MemoryError as error:
        raise ConditionError(MEMORY, "the condition took too much memory") from error
