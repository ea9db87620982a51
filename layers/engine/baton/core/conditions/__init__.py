"""Conditions: decide if a node runs, which branch it takes and if a loop begins another round.

model.py defines conditions, document.py reads them from documents, and one file for each kind judges them.
The first condition that needs a file or its library imports it.
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
    SandboxAnswer,
    SandboxQuestion,
    Unanswered,
)
from baton.core.expressions import Lookup, Path

__all__ = [
    "CODES",
    "ConditionError",
    "SandboxAnswer",
    "SandboxQuestion",
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
    """Return the module that judges conditions of this kind: it has `names`, `faults` and `judge`."""
    return import_module(f"{__name__}.{_KINDS[kind]}")


def names_of(condition: Condition) -> tuple[Path, ...]:
    """Return each value that the condition reads, once.
    Raises `ConditionError` for a condition that does not compile.
    """
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
    """Return the blobs (`cas://…`) with the condition's schemas and functions."""
    return frozenset(_references(condition))


def _references(condition: Condition) -> Iterator[str]:
    for leaf in model.leaves(condition):
        if isinstance(leaf, (Matches, Python)) and leaf.ref:
            yield leaf.ref


def faults_of(condition: Condition) -> list[Fault]:
    """Return the faults of a condition without inner conditions. document.py reads composites itself."""
    found: list[Fault] = _kind(type(condition)).faults(condition)
    return found


def judge(
    condition: Condition, lookup: Lookup, blobs: Mapping[str, Any], answers: Mapping[str, SandboxAnswer]
) -> bool:
    """Return true if the condition holds.

    `lookup` gives the value of a path's root, and raises `ExpressionError` if there is none. Raises
    `ConditionError` for a condition that breaks, and `Unanswered` for Python that the sandbox has not
    evaluated yet.
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
