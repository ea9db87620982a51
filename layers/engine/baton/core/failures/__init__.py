"""When a step fails: what its failure is, what is done about it, and how it is told.

Belongs here: the room's front door. codes.py and names.py are the tables, classes.py and evidence.py say what a failure
is, retry.py, cells.py, matrix.py and ladder.py what is done about it, policies.py what goes before that, sanitise.py
what must not be written down. Each is imported by whoever needs it; nothing here is carried out.
"""

from __future__ import annotations


def sanitised(text: str) -> str:
    """The text with `[redacted]` in place of every secret; for what is told of a failure before it is stored."""
    # Its many expressions are compiled for the first failure, and not for a cold start.
    from baton.core.failures.sanitise import sanitised as without_secrets

    return without_secrets(text)
