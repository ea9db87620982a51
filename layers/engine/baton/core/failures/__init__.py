"""Failures of steps: their codes and classes, the reactions to them, and their texts for people.

codes.py and names.py are the tables; names.py and evidence.py identify a failure; policy.py, alternatives.py
and matrix.py list the possible reactions, strategies/ chooses one; failover.py comes before that; sanitise.py
removes what must not be stored. Nothing here is carried out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from baton.core.on_demand import OnDemand

if TYPE_CHECKING:
    from baton.core.failures import sanitise
else:
    sanitise = OnDemand("baton.core.failures.sanitise")

LONGEST = 512
"""Characters of a secret that may be cut in two at the end of a text."""


def sanitised(text: str) -> str:
    """Return the text with `[redacted]` in place of every secret; for every message about a failure before it
    is stored.
    """
    # Its many expressions are compiled for the first failure, and not for a cold start.
    return sanitise.sanitised(text)


def quoted(message: str, most: int = 2_000) -> str:
    """Return the beginning of a message without its secrets, as it is stored.

    The message is cut after it is cleaned, and the end of a long one is left out: half a secret is not
    recognised.
    """
    longest = 10 * most
    clean = sanitised(message[:longest])
    return (clean if len(message) <= longest else clean[:-LONGEST])[:most]
