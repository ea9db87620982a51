"""How much a condition or a JSON Schema may ask for: every number that keeps one from hanging or using up the memory.

The numbers are the same everywhere, so that a saga replays alike; docs/adr/0019 says how they were found. What is
counted is in values.py, celwork.py, queries.py, schemaplan.py and schemawork.py.

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
"""Parts of a value, each with every part of a JSON Schema that is held against it, while that work is counted."""

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
