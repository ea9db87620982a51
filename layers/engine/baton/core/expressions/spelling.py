"""Names that were misspelt: which of those that there are was meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def closest(name: str, known: Iterable[str]) -> str:
    """The most similar known name, or an empty string."""
    return next(iter(difflib.get_close_matches(name, list(known), n=1, cutoff=0.5)), "")


def nearest(name: str, known: Iterable[str]) -> str:
    """`did you mean ...?` for the most similar known name, or an empty string."""
    close = closest(name, known)
    return f"did you mean `{close}`?" if close else ""


def hinted(said: str, hint: str) -> str:
    """Both as sentences; the hint may be empty."""
    return f"{said}. {hint[:1].upper()}{hint[1:]}".rstrip()
