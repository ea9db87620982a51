"""How much a pipeline may ask for. The numbers are the same everywhere, so that a pipeline that fails fails everywhere.

Work is counted, not timed: a *unit* is one value that is touched or made, or 32 characters of a text (base.py counts them).
How large data and result may be is a setting, `ResultBytes`.
"""

from __future__ import annotations

STEPS = 32
"""Steps of a pipeline."""

REQUESTS = 8
"""Of them, requests."""

ROWS = 50_000
"""Rows of a table."""

CELLS = 1_000_000
"""Rows times columns of a table that a step makes."""

WORK = 5_000_000
"""Units of all steps together: 1 to 4 seconds of a processor."""

FIELDS = 64
"""Names in one list of a step: columns, keys, aggregates, formats."""

CONDITIONS = 100
"""Conditions inside one condition."""

NESTING = 8
"""Conditions inside each other."""

NAME = 200
"""Characters of the name of a field."""

PATTERN = 1_000
"""Characters of a regular expression."""

EXPRESSION = 2_000
"""Characters of a JMESPath expression."""

FORMAT = 60
"""Characters of a format of dates."""

DATE = 100
"""Characters of a date."""

PREVIEW_ROWS = 50
PREVIEW_ITEMS = 20
PREVIEW_TEXT = 200
PREVIEW_LEVELS = 4
"""What a preview shows: rows, items of lists and objects, characters of texts, lists and objects inside each other."""

PROBLEMS = 20
"""Problems that one failure tells."""
