"""How much a condition may ask for: every number that keeps one from hanging or from using up the memory.

Belongs here: the numbers, each with what it is for. They are the same everywhere, so that a saga replays alike;
how they were found is in docs/adr/0019. Does not belong here: what is counted (values.py, celwork.py, queries.py).

A *unit* is one JSON value, or 32 characters of text.
"""

from __future__ import annotations

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
"""Length of a regular expression times its counted repetitions."""

QUERY_LENGTH = 2_000
"""Characters of a JSONPath query."""

QUERY_STEPS = 100_000
"""Values that a query may look at, each as often as it does."""

SCHEMA_BYTES = 65_536
"""Size of a JSON Schema."""

SCHEMA_DEPTH = 200
"""Parts of a JSON Schema inside each other, references followed."""

SCHEMA_WORK = 5_000_000
"""Size of a JSON Schema with its references put in their places, times the values it is held against."""

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
