"""Idempotency keys: a hash of who, at which node of which saga, does what, with which canonical parameters.

canonical.py says which parameters are the same, rules.py what a key is made of, author.py how the author of a tool
says so.
"""

from __future__ import annotations

from baton.core.effects.keys.author import Key, check_rule
from baton.core.effects.keys.canonical import LISTED, canonical, relevant
from baton.core.effects.keys.rules import (
    IN_PROGRESS,
    NODE,
    REFUSE,
    SAGA,
    STRATEGIES,
    WAIT,
    KeyIncomplete,
    KeyRule,
    Strategy,
    about,
    key_of,
    names_of,
    parameters_of,
)

__all__ = [
    "IN_PROGRESS",
    "LISTED",
    "NODE",
    "REFUSE",
    "SAGA",
    "STRATEGIES",
    "WAIT",
    "Key",
    "KeyIncomplete",
    "KeyRule",
    "Strategy",
    "about",
    "canonical",
    "check_rule",
    "key_of",
    "names_of",
    "parameters_of",
    "relevant",
]
