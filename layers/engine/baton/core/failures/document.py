"""Bounds and patterns of what documents say of failures: the models and the published schema share them.

The models are in core/documents/parts/failing.py, the schema is in docschema.py.
"""

from __future__ import annotations

MOST_PAUSES, MOST_TIMES, MOST_MULTIPLIER, MOST_POLICIES = 99, 100, 100, 100
CODE_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$"
NAME_PATTERN = r"^[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)*$"
TIME_OF_DAY_PATTERN = "^([01][0-9]|2[0-3]):[0-5][0-9]$"
OFFSET_PATTERN = "^[+-](0[0-9]|1[0-4]):[0-5][0-9]$"
