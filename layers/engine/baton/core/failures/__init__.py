"""When a step fails: what its failure is, what is done about it, and how it is told.

codes.py and names.py are the tables, names.py and evidence.py say what a failure is, policy.py,
policy.py, alternatives.py and matrix.py what can be done about it, strategies/ what is done, failover.py
what goes before that, sanitise.py what must not be written down. Nothing here is carried out.
"""

from __future__ import annotations

LONGEST = 512
"""Characters of a secret that may be cut in two at the end of a text."""


def sanitised(text: str) -> str:
    """The text with `[redacted]` in place of every secret; for every
    message about a failure before it is stored.
    """
    # Its many expressions are compiled for the first failure, and not for a cold start.
    from baton.core.failures.sanitise import sanitised as without_secrets

    return without_secrets(text)


def quoted(message: str, most: int = 2_000) -> str:
    """The beginning of a message without its secrets, as it is stored.

    It is cut after it is cleaned, and the end of a long one is left out: half a secret is not recognised.
    """
    longest = 10 * most
    clean = sanitised(message[:longest])
    return (clean if len(message) <= longest else clean[:-LONGEST])[:most]
